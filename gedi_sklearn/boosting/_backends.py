"""XGBoost and LightGBM behind one interface: trees grown round by round on given gradients.

A squared loss has the gradient f − y, whatever the package; scores and gradients have a column
for each output, (n, C). What is added to the trees' scores, the mean of y, is kept by the caller.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from importlib import import_module
from typing import Any, ClassVar, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.utils import check_array

from ._parameters import LIGHTGBM, XGBOOST, Table

# Trees of both packages are of one size: leaves, and the least weight of the rows in one.
_LEAVES, LEAF_WEIGHT = 31, 20
# Types of polars, as they begin.
_NUMBERS = ("Int8", "Int16", "Int32", "Int64", "UInt", "Float32", "Float64", "Boolean")
_CATEGORIES = ("Categorical", "Enum")
_PANDAS = "category"
_ADVICE = "Convert text to categories, and dates to numbers."


def check_features(X: Any) -> Any:
    """Return X as the packages take it: a frame as it is, or an array of numbers, some missing."""
    if hasattr(X, "columns"):
        _check_polars(X, _NUMBERS + _CATEGORIES, _ADVICE)
        _check_pandas(X)
        return X
    return check_array(X, accept_sparse="csr", ensure_all_finite="allow-nan", input_name="X")


def _check_polars(X: Any, kinds: tuple[str, ...], advice: str) -> None:
    """Refuse columns that the packages do not know: of polars they may end the whole process."""
    if not type(X).__module__.startswith("polars"):
        return
    types = {name: str(own).partition("(")[0] for name, own in X.schema.items()}
    if odd := {name: own for name, own in types.items() if not own.startswith(kinds)}:
        raise ValueError(f"X has columns that the trees cannot split: {odd}. {advice}")


def _check_pandas(X: Any) -> None:
    """Refuse columns that the packages cannot split, and infinity, as of an array."""
    if not hasattr(X, "iloc"):
        return
    types = zip(X.columns, X.dtypes, strict=True)
    if odd := {name: str(own) for name, own in types if own.kind not in "biuf" and own != _PANDAS}:
        raise ValueError(f"X has columns that the trees cannot split: {odd}. {_ADVICE}")
    for name, own in X.items():
        if own.dtype.kind == "f" and np.isinf(own.to_numpy(np.float64, na_value=np.nan)).any():
            raise ValueError(
                f"X contains infinity in column {name!r}; NaN stands for what is missing."
            )


class Settings(NamedTuple):
    """What a booster is told beside its rows.

    Attributes
    ----------
    params : dict
        What the user passes to the package.
    n_outputs : int
        C.
    learning_rate, seed, n_jobs : float, int, int
        As the packages know them.
    """

    params: dict[str, Any]
    n_outputs: int
    learning_rate: float
    seed: int
    n_jobs: int


class Backend(ABC):
    """A booster in training.

    Parameters
    ----------
    X : array-like of shape (n, p)
        The rows that the trees are grown on.
    settings : Settings
        All else.
    others : sequence of array-like of shape (m, p), default=()
        Further rows whose scores are asked for in every round.
    """

    # What the package may be told, and the parameter that bounds the weight of a leaf.
    table: ClassVar[Table]
    leaf_weight: ClassVar[str]

    @classmethod
    def checked(cls, params: dict[str, Any], X: Any) -> dict[str, Any]:
        """Return what the package is told of the caller's parameters, by their one name."""
        return cls.table.check(params, getattr(X, "columns", range(X.shape[1])))

    @abstractmethod
    def __init__(self, X: Any, settings: Settings, others: Sequence[Any] = ()) -> None: ...

    @abstractmethod
    def boost(self, gradient: np.ndarray, hessian: np.ndarray) -> None:
        """Grow one tree for each output on gradients (n, C) and weights (n,)."""

    @abstractmethod
    def scores(self, other: int | None = None) -> np.ndarray:
        """Return the scores of the training rows or of further ones, shape (n, C)."""

    @property
    @abstractmethod
    def n_rounds(self) -> int:
        """Rounds that have grown a tree."""

    @abstractmethod
    def finish(self) -> Any:
        """Return the booster of the package, which holds no rows."""

    @staticmethod
    @abstractmethod
    def predict(booster: Any, X: Any, n_rounds: int, n_jobs: int) -> np.ndarray:
        """Return the scores of new rows by the trees of the first rounds."""


class XGBoost(Backend):
    """Trees of XGBoost, by histograms and leaf by leaf."""

    table = XGBOOST
    leaf_weight = "min_child_weight"

    def __init__(self, X: Any, settings: Settings, others: Sequence[Any] = ()) -> None:
        import xgboost

        self._rows = [_matrix(rows, settings.n_jobs) for rows in (X, *others)]
        for further in self._rows[1:]:  # the columns have been compared, as those of `predict`
            further.feature_names = self._rows[0].feature_names
        several = {"num_class": settings.n_outputs} if settings.n_outputs > 1 else {}
        own = {
            "tree_method": "hist",
            "grow_policy": "lossguide",
            "max_leaves": _LEAVES,
            "max_depth": 0,
            "min_child_weight": LEAF_WEIGHT,
            "reg_lambda": 0.0,
            "seed": settings.seed,
            **{name: _as_text(own) for name, own in self.checked(settings.params, X).items()},
            **several,
            "objective": "reg:squarederror",
            "base_score": 0.0,
            "eta": settings.learning_rate,
            "nthread": settings.n_jobs,
        }
        self._booster = xgboost.Booster(own, self._rows)

    def boost(self, gradient: np.ndarray, hessian: np.ndarray) -> None:
        hessian = np.broadcast_to(hessian[:, None], gradient.shape)
        grad, hess = (np.ascontiguousarray(own, np.float32) for own in (gradient, hessian))
        if gradient.shape[1] == 1:
            grad, hess = grad[:, 0], hess[:, 0]
        self._booster.boost(self._rows[0], self.n_rounds, grad=grad, hess=hess)

    def scores(self, other: int | None = None) -> np.ndarray:
        rows = self._rows[0 if other is None else 1 + other]
        found = self._booster.predict(rows, output_margin=True, training=other is None)
        return found.astype(np.float64).reshape(len(found), -1)

    @property
    def n_rounds(self) -> int:
        return self._booster.num_boosted_rounds()

    def finish(self) -> Any:
        self._booster.reset()
        return self._booster

    @staticmethod
    def predict(booster: Any, X: Any, n_rounds: int, n_jobs: int) -> np.ndarray:
        # The columns have been compared, and may come without names.
        found = booster.predict(
            _matrix(X, n_jobs),
            output_margin=True,
            validate_features=False,
            iteration_range=(0, n_rounds),
        )
        return found.astype(np.float64).reshape(len(found), -1)


def _as_text(value: Any) -> Any:
    """Return constraints of columns as XGBoost reads them from any language."""
    if not isinstance(value, list):
        return value
    text = str(value)
    return text if isinstance(value[0], list) else f"({text[1:-1]})"


def _matrix(X: Any, n_jobs: int) -> Any:
    import xgboost

    try:
        return xgboost.DMatrix(_named_categories(X), nthread=n_jobs, enable_categorical=True)
    except xgboost.core.XGBoostError as error:
        raise ValueError(
            "XGBoost cannot take X: its numbers are of single precision, at most 3.4e38 in size. "
            "Use another unit for larger ones, or backend='lightgbm'."
        ) from error


def _named_categories(X: Any) -> Any:
    """Return a frame whose categories are text or integers, as XGBoost takes them."""
    if not hasattr(X, "iloc"):
        return X
    odd = [
        position
        for position, own in enumerate(X.dtypes)
        if own == _PANDAS
        and own.categories.dtype.kind not in "iu"
        and not all(isinstance(level, str) for level in own.categories)
    ]
    X = X.copy(deep=False) if odd else X
    for position in odd:
        X.isetitem(position, X.iloc[:, position].cat.rename_categories(str))
    return X


class LightGBM(Backend):
    """Trees of LightGBM."""

    table = LIGHTGBM
    leaf_weight = "min_sum_hessian_in_leaf"

    def __init__(self, X: Any, settings: Settings, others: Sequence[Any] = ()) -> None:
        import lightgbm

        own = {
            "num_leaves": _LEAVES,
            "min_data_in_leaf": 1,
            "min_sum_hessian_in_leaf": LEAF_WEIGHT,
            "deterministic": True,
            "force_col_wise": True,
            "feature_pre_filter": False,  # else an error where it leaves no column
            "verbosity": -1,
            "seed": settings.seed,
            **self.checked(settings.params, X),
            "objective": "none",
            "metric": "none",
            "num_class": settings.n_outputs,
            "learning_rate": settings.learning_rate,
            "num_threads": settings.n_jobs,
        }
        rows = lightgbm.Dataset(_table(X), label=np.zeros(X.shape[0]), params=own)
        self._booster = lightgbm.Booster(own, rows)
        for number, other in enumerate(others):
            labels = np.zeros(other.shape[0])
            further = lightgbm.Dataset(_table(other), label=labels, reference=rows, params=own)
            self._booster.add_valid(further, str(number))

    def boost(self, gradient: np.ndarray, hessian: np.ndarray) -> None:
        hessian = np.broadcast_to(hessian[:, None], gradient.shape)
        pair = (gradient, hessian) if gradient.shape[1] > 1 else (gradient[:, 0], hessian[:, 0])
        self._booster.update(fobj=lambda scores, rows: pair)

    def scores(self, other: int | None = None) -> np.ndarray:
        found: list[np.ndarray] = []

        def keep(scores: np.ndarray, rows: Any) -> list[Any]:
            found.append(scores)
            return []  # measures nothing

        if other is None:
            self._booster.eval_train(keep)
        else:
            self._booster.eval_valid(keep)
        scores = found[other or 0]
        return scores.astype(np.float64).reshape(len(scores), -1)

    @property
    def n_rounds(self) -> int:
        return self._booster.current_iteration()

    def finish(self) -> Any:
        return self._booster.free_dataset()

    @staticmethod
    def predict(booster: Any, X: Any, n_rounds: int, n_jobs: int) -> np.ndarray:
        found = booster.predict(
            _table(X), raw_score=True, num_iteration=n_rounds, num_threads=n_jobs
        )
        return np.asarray(found, dtype=np.float64).reshape(len(found), -1)


def _table(X: Any) -> Any:
    """Return X as LightGBM takes it: a sparse matrix, no sparse array; pandas without pyarrow."""
    _check_polars(X, _NUMBERS, "LightGBM takes pandas categories: use X.to_pandas(), or XGBoost.")
    if not hasattr(X, "iloc"):
        return sp.csr_matrix(X) if sp.issparse(X) else X
    arrow = [j for j, own in enumerate(X.dtypes) if type(own).__name__ == "ArrowDtype"]
    X = X.copy(deep=False) if arrow else X
    for j in arrow:
        X.isetitem(j, X.iloc[:, j].to_numpy(np.float64, na_value=np.nan))
    return X


BACKENDS: dict[str, type[Backend]] = {"xgboost": XGBoost, "lightgbm": LightGBM}


def find_backend(name: str, caller: str) -> type[Backend]:
    """Return a backend by the name of its package.

    Raises
    ------
    ImportError
        If the package is missing.
    """
    try:
        import_module(name)
    except ModuleNotFoundError as error:
        raise ImportError(
            f"{caller}(backend={name!r}) needs {name}, which is missing: "
            "pip install '.[boosting]' in a clone."
        ) from error
    return BACKENDS[name]
