"""The four learning tasks of the paper (Table 3), with its features, scaling and folds."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from sklearn.model_selection import KFold, StratifiedKFold

from gedi_sklearn.datasets import load_adult, load_communities

N_FOLDS = 5


@dataclass(frozen=True)
class Task:
    """A data set and one of its protected attributes."""

    dataset: str
    protected: str
    protected_kind: str  # the paper's word: binary or continuous
    is_regression: bool

    @property
    def degree(self) -> int:
        """Degree of the polynomial kernel; a binary attribute has rank 1."""
        return 1 if self.protected_kind == "binary" else 5

    @property
    def score_name(self) -> str:
        return "R2" if self.is_regression else "Accuracy"

    @property
    def indicator_name(self) -> str:
        return f"GeDI-V{self.degree} %"

    def __str__(self) -> str:
        return f"{self.dataset}/{self.protected}"


TASKS = (
    Task("crimes", "race", "binary", is_regression=True),
    Task("crimes", "pctBlack", "continuous", is_regression=True),
    Task("adult", "sex", "binary", is_regression=False),
    Task("adult", "age", "continuous", is_regression=False),
)


@dataclass(frozen=True)
class TaskData:
    """Features (the attribute among them), target and attribute, scaled as in the paper."""

    X: np.ndarray
    y: np.ndarray
    sensitive: np.ndarray
    feature_names: tuple[str, ...]


def load_task(task: Task) -> TaskData:
    """Scale over ALL rows, before any split, as the paper does."""
    X, y, feature_names = _FEATURES[task.dataset]()
    return TaskData(X, y, X[:, feature_names.index(task.protected)], feature_names)


def split(
    task: Task, data: TaskData, *, n_folds: int = N_FOLDS, seed: int = 0
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield the first ``n_folds`` of the paper's five (train, validation) pairs of row numbers."""
    splitter = KFold if task.is_regression else StratifiedKFold
    folds = splitter(N_FOLDS, shuffle=True, random_state=seed).split(data.X, data.y)
    for _, fold in zip(range(n_folds), folds, strict=False):
        yield fold


@lru_cache(maxsize=1)
def _communities_features() -> tuple[np.ndarray, np.ndarray, tuple[str, ...]]:
    communities = load_communities()
    names = tuple(communities.feature_names)
    X = np.column_stack(
        [
            values if name == "race" else _standardize(values)
            for name, values in zip(names, communities.data.T, strict=True)
        ]
    )
    y = communities.target
    return X, (y - y.min()) / np.ptp(y), names


@lru_cache(maxsize=1)
def _adult_features() -> tuple[np.ndarray, np.ndarray, tuple[str, ...]]:
    adult = load_adult()
    columns: dict[str, np.ndarray] = {}
    for name, values in zip(adult.feature_names, adult.data.T, strict=True):
        if name == "sex":
            columns[name] = (values == "Male").astype(float)
        elif isinstance(values[0], str):
            columns |= {f"{name}={level}": values == level for level in np.unique(values)}
        else:
            columns[name] = _standardize(values.astype(float))
    return np.column_stack(list(columns.values())).astype(float), adult.target, tuple(columns)


def _standardize(values: np.ndarray) -> np.ndarray:
    return (values - values.mean()) / values.std()


_FEATURES = {"crimes": _communities_features, "adult": _adult_features}
