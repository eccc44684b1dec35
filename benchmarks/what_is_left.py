"""What a bound of 20 % leaves on new rows: ``python -m benchmarks.what_is_left --help``.

The same bound in six forms: what its kernel does not see, it leaves. How much that is, two kernels
measure which no form has: a polynomial of degree 5, and a spline with eight knots.
"""

import argparse
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from joblib import Memory
from sklearn.base import BaseEstimator
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import accuracy_score, r2_score
from sklearn.utils import get_tags

from benchmarks._learners import LEARNERS
from benchmarks._storage import append_row, create, read_rows
from benchmarks._tables import insert_between, markdown
from benchmarks._units import PACKAGES, versions
from benchmarks.tasks import N_FOLDS, TASKS, Task, TaskData, load_task, split
from gedi_sklearn import (
    CoarseConstraint,
    DependenceConstraint,
    FineConstraint,
    MovingTargetsClassifier,
    MovingTargetsRegressor,
    PolynomialKernel,
    ProjectedClassifier,
    ProjectedRegressor,
    SplineKernel,
)
from gedi_sklearn.metrics import gedi

HERE = Path(__file__).parent
RESULTS = HERE / "results"
PAGE = HERE.parent / "docs" / "what_is_left.md"
BEGIN, END = "<!-- {}: begin (written by benchmarks.what_is_left) -->", "<!-- {}: end -->"
THRESHOLD = 0.2
_CRIMES, _SEX, _AGE = TASKS[1:]


@dataclass(frozen=True)
class Case:
    """A task, and the attributes of it that are constrained: each by itself, to the same share."""

    task: Task
    attributes: tuple[str, ...]

    def load(self) -> TaskData:
        return premium() if self.task.dataset == "premium" else load_task(self.task)

    def __str__(self) -> str:
        return f"{self.task.dataset}/{'+'.join(self.attributes)}"


def premium(n_samples: int = 3000) -> TaskData:
    """Simulate a premium that is lowest at the age of 50, and hardly rises or falls on the whole.

    Age explains two thirds of its variance, the mileage most of the rest.
    """
    rng = np.random.default_rng(0)
    age, mileage, noise = rng.uniform(18, 85, n_samples), *rng.normal(size=(2, n_samples))
    pay = 300 + 0.12 * (age - 50) ** 2 - 0.5 * age + 20 * mileage + 20 * noise
    return TaskData(np.c_[age, mileage], pay, age, ("age", "mileage"))


CASES = (
    Case(Task("premium", "age", "continuous", is_regression=True), ("age",)),
    Case(_CRIMES, ("pctBlack",)),
    Case(_AGE, ("age",)),
    Case(_AGE, ("age", "sex")),
)
DEFAULT_CASES = (Case(_SEX, ("sex",)), Case(_AGE, ("age",)))


@dataclass(frozen=True)
class Setting:
    """A form of the bound. A polynomial is standardised; its degree is 1 on a binary attribute."""

    name: str
    kind: type
    degree: int | None  # None: a spline

    def constraint(self, *, is_binary: bool) -> Any:
        kernel: Any = SplineKernel()
        if self.degree is not None:
            kernel = PolynomialKernel(1 if is_binary else self.degree, standardize=True)
        return self.kind(THRESHOLD, kernel=kernel)


SETTINGS = (
    Setting("coarse, degree 1", CoarseConstraint, 1),
    Setting("coarse, degree 5", CoarseConstraint, 5),
    Setting("fine, degree 5", FineConstraint, 5),
    Setting("sd, degree 3", DependenceConstraint, 3),
    Setting("sd, degree 5", DependenceConstraint, 5),
    Setting("sd, spline", DependenceConstraint, None),
)
PROJECTED, MOVING_TARGETS = "Projected", "Moving Targets"
# The learner does not see the attributes, where other columns stand in for them.
WITHOUT = ", learner without it"
# The master sees probabilities of rows held out, weighs them by their log loss, and is pulled less
# to the original labels. The pull was chosen with two of the folds in view.
HELD_OUT = f"{MOVING_TARGETS}, rows held out"
MODELS = (PROJECTED, MOVING_TARGETS, PROJECTED + WITHOUT, MOVING_TARGETS + WITHOUT, HELD_OUT)
ONLY_SPLINE = MODELS[2:]
SPLINE = SETTINGS[-1].name
DEFAULTS = "defaults"
# The share that each kernel explains, of the share that it explains of y.
MEASURES: dict[str, Callable[[np.ndarray], dict[str, Any]]] = {
    "left_polynomial": lambda x: {"norm": "sd", "kernel": _polynomial(x), "relative": True},
    "left_spline": lambda x: {"norm": "sd", "kernel": SplineKernel(8), "relative": True},
    "gedi": lambda x: {"kernel": _polynomial(x), "relative": 1},
}
KEY = ("case", "model", "setting")
COLUMNS = (*KEY, "attribute", "n_folds", "score", *MEASURES, *PACKAGES, "python")


@dataclass(frozen=True)
class Unit:
    """A model on all folds of a case."""

    case: Case
    model: str
    setting: str

    @property
    def key(self) -> tuple[str, ...]:
        return (str(self.case), self.model, self.setting)


def main(argv: Sequence[str] | None = None) -> None:
    options = parse(argv)
    path = options.output / "what_is_left.csv"
    if not options.report:
        asked = [
            unit
            for unit in units()
            if str(unit.case) in options.case
            and unit.model in options.model
            and unit.setting in options.setting
        ]
        run(asked, path, n_folds=options.folds)
    lines = read_rows(path, COLUMNS)
    tables = {"shares": table(lines), DEFAULTS: defaults_table(lines)}
    print("\n\n".join(tables.values()))
    if options.docs:
        page = PAGE.read_text(encoding="utf-8")
        for name, text in tables.items():
            begin, end = BEGIN.format(name), END.format(name)
            page = insert_between(page, begin, end, text, page=f"docs/{PAGE.name}")
        PAGE.write_text(page, encoding="utf-8")
    print(f"Results: {path}")


def parse(argv: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.what_is_left",
        description="What bounds of 20 percent in several forms leave of the dependence, on rows "
        "that the models have not seen. A run that was interrupted is taken up where it ended.",
    )
    cases = tuple(dict.fromkeys(map(str, (*CASES, *DEFAULT_CASES))))
    settings = (*(setting.name for setting in SETTINGS), DEFAULTS)
    parser.add_argument("--case", nargs="+", choices=cases, default=cases)
    parser.add_argument("--model", nargs="+", choices=MODELS, default=MODELS)
    parser.add_argument("--setting", nargs="+", choices=settings, default=settings)
    parser.add_argument("--folds", type=int, choices=range(1, N_FOLDS + 1), default=N_FOLDS)
    parser.add_argument(
        "--output", type=Path, default=RESULTS, help="folder (default: benchmarks/results)"
    )
    parser.add_argument("--report", action="store_true", help="run nothing, print what is there")
    parser.add_argument(
        "--docs", action="store_true", help=f"also write the tables of docs/{PAGE.name}"
    )
    return parser.parse_args(argv)


def models_of(case: Case) -> tuple[str, ...]:
    """Return the rows of a case: the premium's mileage says nothing of age."""
    return MODELS[:2] if case.task.is_regression else MODELS


def units() -> Iterator[Unit]:
    """Yield what the tables hold."""
    for case in CASES:
        for setting in SETTINGS:
            for model in models_of(case):
                if model not in ONLY_SPLINE or setting.name == SPLINE:
                    yield Unit(case, model, setting.name)
    for case in DEFAULT_CASES:
        yield Unit(case, MOVING_TARGETS, DEFAULTS)


def run(asked: Sequence[Unit], path: Path, *, n_folds: int) -> None:
    """Run what the CSV lacks; the lines of a unit are added once all its folds are done."""
    create(path, COLUMNS)
    done = {tuple(line[name] for name in KEY) for line in read_rows(path, COLUMNS)}
    missing = [unit for unit in asked if unit.key not in done]
    print(f"{len(asked) - len(missing)} of {len(asked)} units are in {path}.", file=sys.stderr)
    with tempfile.TemporaryDirectory() as folder:
        memory = Memory(folder, verbose=0)
        for unit in missing:
            for line in run_unit(unit, n_folds, memory):
                append_row(path, COLUMNS, line)
                named = ("attribute", "score", "left_polynomial", "left_spline", "gedi")
                print(*unit.key, *(line[name] for name in named), file=sys.stderr, flush=True)


def run_unit(unit: Unit, n_folds: int, memory: Memory) -> list[dict[str, Any]]:
    """Return a line for each attribute: its share in the predictions of all validation folds."""
    case, data = unit.case, unit.case.load()
    columns = [data.feature_names.index(name) for name in case.attributes]
    score = r2_score if case.task.is_regression else accuracy_score
    scores, rows, predictions = [], [], []
    for train, val in split(case.task, data, n_folds=n_folds):
        model = build(unit, data, columns, memory)
        with warnings.catch_warnings():
            # What a user would be told of a single fit is what the columns show here.
            for kind in (UserWarning, ConvergenceWarning):
                warnings.simplefilter("ignore", kind)
            predicted = model.fit(data.X[train], data.y[train]).predict(data.X[val])
        scores.append(score(data.y[val], predicted))
        rows.append(val)
        predictions.append(predicted)
    seen, pooled = np.concatenate(rows), np.concatenate(predictions)
    lines = []
    for name, x in zip(case.attributes, data.X[seen][:, columns].T, strict=True):
        shares = {
            measure: round(gedi(data.y[seen], pooled, sensitive_features=x, **options(x)), 4)
            for measure, options in MEASURES.items()
        }
        own = {"attribute": name, "n_folds": n_folds, "score": round(float(np.mean(scores)), 4)}
        lines.append(dict(zip(KEY, unit.key, strict=True)) | own | shares | versions())
    return lines


def build(unit: Unit, data: TaskData, columns: Sequence[int], memory: Memory) -> Any:
    """Build the unfitted model of a unit, with defaults for all that its names do not say."""
    is_regression = unit.case.task.is_regression
    if unit.setting == DEFAULTS:
        kernel = _polynomial(data.X[:, columns[0]])
        forest = RandomForestClassifier(random_state=0)
        return MovingTargetsClassifier(
            forest, CoarseConstraint(kernel=kernel), sensitive_columns=columns
        )
    (setting,) = (setting for setting in SETTINGS if setting.name == unit.setting)
    constraints = [
        setting.constraint(is_binary=len(np.unique(data.X[:, column])) == 2) for column in columns
    ]
    learner = LEARNERS["HistGB-small" if is_regression else "HistGB"][is_regression]()
    options = {
        "constraint": constraints if len(constraints) > 1 else constraints[0],
        "sensitive_columns": list(columns),
        "drop_sensitive": unit.model.endswith(WITHOUT),
    }
    if unit.model == HELD_OUT:
        options |= {"loss": "log_loss", "cv": 3, "target_weight": _weak_pull}
    if unit.model.startswith(MOVING_TARGETS):
        kind = MovingTargetsRegressor if is_regression else MovingTargetsClassifier
        return kind(learner, **options)
    kind = ProjectedRegressor if is_regression else ProjectedClassifier
    return kind(FittedOnce(learner, memory), **options)


def _weak_pull(iteration: int) -> float:
    return 0.2 / iteration


class FittedOnce(BaseEstimator):
    """A learner that is fitted once on the same rows, whichever constraint it is wrapped in."""

    def __init__(self, estimator: Any, memory: Memory) -> None:
        self.estimator = estimator
        self.memory = memory

    def __sklearn_tags__(self) -> Any:
        return get_tags(self.estimator)

    def fit(self, X: np.ndarray, y: np.ndarray) -> Any:
        self.estimator_ = self.memory.cache(_fit)(self.estimator, X, y)
        self.classes_ = getattr(self.estimator_, "classes_", None)
        return self

    def predict(self, X: np.ndarray) -> np.ndarray:
        return self.estimator_.predict(X)

    def predict_proba(self, X: np.ndarray) -> np.ndarray:
        return self.estimator_.predict_proba(X)


def _fit(estimator: Any, X: np.ndarray, y: np.ndarray) -> Any:
    return estimator.fit(X, y)


def _polynomial(x: np.ndarray) -> PolynomialKernel:
    """Return the kernel of the paper's indicator: degree 1 for a binary attribute, else 5."""
    return PolynomialKernel(1 if len(np.unique(x)) == 2 else 5, standardize=True)


def table(lines: Sequence[Mapping[str, str]]) -> str:
    """Format a row for each model and attribute, a column for each form of the bound."""
    found = {(*(line[name] for name in KEY), line["attribute"]): line for line in lines}
    body = []
    for case in CASES:
        for model in models_of(case):
            for attribute in case.attributes:
                own = [found.get((str(case), model, s.name, attribute)) for s in SETTINGS]
                cells = ["" if line is None else _cell(line) for line in own]
                among = f" ({attribute})" if len(case.attributes) > 1 else ""
                body.append([f"{case}{among}, {case.task.score_name}", model, *cells])
    return markdown(["data, score", "model", *(setting.name for setting in SETTINGS)], body)


def _cell(line: Mapping[str, str]) -> str:
    left = (f"{float(line[name]):.2f}" for name in ("left_polynomial", "left_spline"))
    return f"{float(line['score']):.3f}; {' / '.join(left)}"


def defaults_table(lines: Sequence[Mapping[str, str]]) -> str:
    """Format the rows of a forest with all defaults, in the paper's indicator."""
    body = [
        [line["case"], *(f"{float(line[name]):.3f}" for name in ("score", "gedi", "left_spline"))]
        for line in lines
        if line["setting"] == DEFAULTS
    ]
    return markdown(["data", "accuracy", "GeDI %", "spline"], body)


if __name__ == "__main__":
    main()
