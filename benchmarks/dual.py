"""Moving Targets by projections and by multipliers: fits, seconds, score and indicator.

``python -m benchmarks.dual`` fits both methods on the paper's tasks and folds, appends every fit to
``results/dual.csv`` as it is done, skips those that are there, and rebuilds
``docs/dual_benchmark.md``.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import sklearn
from sklearn.ensemble import (
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression, Ridge

from benchmarks._constraints import named_constraint
from benchmarks._storage import append_row, read_rows
from benchmarks.tasks import TASKS, Task, TaskData, load_task, split
from gedi_sklearn import (
    DualTargetsClassifier,
    DualTargetsRegressor,
    MovingTargetsClassifier,
    MovingTargetsRegressor,
)
from gedi_sklearn.metrics import gedi

HERE = Path(__file__).parent
RESULTS = HERE / "results" / "dual.csv"
TABLE = HERE.parent / "docs" / "dual_benchmark.md"
METHODS = ("moving_targets", "dual")
KEY = ("task", "learner", "constraint", "method", "fold")
COLUMNS = (
    *KEY,
    "fits",
    "seconds",
    "score_train",
    "gedi_seen",
    "score_val",
    "gedi_val",
    "converged",
    "scikit-learn",
)
# The classifier, the regressor, and `cv`: whose predictions the projection uses.
LEARNERS: dict[str, tuple[Callable[[], Any], Callable[[], Any], str]] = {
    "linear": (lambda: LogisticRegression(max_iter=1000), lambda: Ridge(1.0), "train"),
    "boosting": (
        lambda: GradientBoostingClassifier(random_state=0),
        lambda: GradientBoostingRegressor(random_state=0),
        "train",
    ),
    "forest, oob": (
        lambda: RandomForestClassifier(random_state=0),
        lambda: RandomForestRegressor(random_state=0),
        "oob",
    ),
}


def units(n_folds: dict[str, int]) -> Iterator[tuple[Task, str, str, str, int]]:
    """Yield task, learner, constraint, method and fold; both methods one after the other."""
    for task in TASKS:
        constraints = ("coarse",) if task.degree == 1 else ("coarse", "fine")
        for learner in LEARNERS:
            for constraint in constraints:
                for fold in range(n_folds[task.dataset]):
                    for method in METHODS:
                        yield task, learner, constraint, method, fold


def measure(
    task: Task, data: TaskData, learner: str, constraint: str, method: str, fold: int
) -> dict[str, Any]:
    """Fit one model and return its line of the CSV."""
    *_, (train, val) = split(task, data, n_folds=fold + 1)
    *factories, cv = LEARNERS[learner]
    own: dict[str, Any] = {}
    if method == "dual":
        wrapper = DualTargetsRegressor if task.is_regression else DualTargetsClassifier
    else:
        wrapper = MovingTargetsRegressor if task.is_regression else MovingTargetsClassifier
        own = {"target_weight": "harmonic", "solver": "highs"}
    bound = named_constraint(constraint, kernel=task.degree)
    model = wrapper(factories[task.is_regression](), bound, cv=cv, **own)
    start = time.perf_counter()
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        model.fit(data.X[train], data.y[train], sensitive_features=data.sensitive[train])
    seconds = time.perf_counter() - start
    kept = model.selected_iteration_
    return {
        "task": task,
        "learner": learner,
        "constraint": constraint,
        "method": method,
        "fold": fold,
        "fits": model.n_iter_ + 1,
        "seconds": round(seconds, 2),
        "score_train": round(float(model.score(data.X[train], data.y[train])), 4),
        # The predictions that the projection uses, which the constraint applies to.
        "gedi_seen": _seen(task, data, train, model, kept),
        "score_val": round(float(model.score(data.X[val], data.y[val])), 4),
        "gedi_val": round(_indicator(task, data, val, model.predict(data.X[val])), 4),
        "converged": not any(
            issubclass(w.category, ConvergenceWarning)
            and "search for multipliers" in str(w.message)
            for w in said
        ),
        "scikit-learn": sklearn.__version__,
    }


def _seen(task: Task, data: TaskData, rows: np.ndarray, model: Any, kept: int) -> float:
    reference = gedi(
        data.y[rows], sensitive_features=data.sensitive[rows], pos_label=_positive(task, data)
    )
    return round(float(model.history_["predictions_gedi"][kept] / reference), 4)


def _indicator(task: Task, data: TaskData, rows: np.ndarray, predictions: np.ndarray) -> float:
    return gedi(
        data.y[rows],
        predictions,
        sensitive_features=data.sensitive[rows],
        kernel=task.degree,
        relative=1,
        pos_label=_positive(task, data),
    )


def _positive(task: Task, data: TaskData) -> Any:
    return None if task.is_regression else np.unique(data.y)[1]


def run(n_folds: dict[str, int]) -> None:
    """Measure what is not in the results yet."""
    done = {tuple(row[name] for name in KEY) for row in read_rows(RESULTS, COLUMNS)}
    for unit in units(n_folds):
        if tuple(map(str, unit)) in done:
            continue
        task, *rest = unit
        row = measure(task, load_task(task), *rest)
        append_row(RESULTS, COLUMNS, row)
        print(*row.values(), flush=True)


def page() -> str:
    """Return the page of results, means over the folds."""
    cells: dict[tuple[str, ...], list[dict[str, str]]] = {}
    for row in read_rows(RESULTS, COLUMNS):
        cells.setdefault(tuple(row[name] for name in KEY[:3]), []).append(row)
    lines = [
        "# Benchmark: projection vs. dual method",
        "",
        "Rebuilt by `python -m benchmarks.dual`; what the dual is, and what these numbers mean:",
        "[moving_targets.md](moving_targets.md#the-dual-two-to-five-fits-instead-of-eleven). Each "
        "pair of numbers is `MovingTargets…` →",
        "`DualTargets…`, means over the folds, all parameters at their defaults but `constraint` "
        "(`CoarseConstraint` or `FineConstraint`, with `kernel=5` for a continuous attribute), "
        "`cv`",
        '("oob" for forests) and `solver="highs"`. Scores are R² (crimes) and accuracy (adult). '
        "GeDI is a share of that of y, and the",
        "threshold is 0.2: once for the predictions that the master sees, and once on the "
        "validation fold. Seconds were measured on a shared",
        "machine.",
        "",
        "| task | learner | constraint | folds | fits | seconds | score, training | GeDI, seen | "
        "score, validation | GeDI, validation | dual converged |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for key, rows in cells.items():
        by_method = {m: [row for row in rows if row["method"] == m] for m in METHODS}
        if not all(by_method.values()):
            continue

        def pair(name: str, form: str, by_method: dict[str, Any] = by_method) -> str:
            means = (np.mean([float(row[name]) for row in by_method[m]]) for m in METHODS)
            return " → ".join(format(mean, form) for mean in means)

        dual = by_method["dual"]
        converged = sum(row["converged"] == "True" for row in dual)
        numbers = [
            pair("fits", ".1f"),
            pair("seconds", ".1f"),
            *(pair(n, ".3f") for n in ("score_train", "gedi_seen", "score_val", "gedi_val")),
        ]
        cells_of_row = [*key, str(len(dual)), *numbers, f"{converged} of {len(dual)}"]
        lines.append("| " + " | ".join(cells_of_row) + " |")
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--folds", type=int, default=2, help="of Communities")
    parser.add_argument("--adult-folds", type=int, default=1)
    options = parser.parse_args()
    run({"crimes": options.folds, "adult": options.adult_folds})
    TABLE.write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()
