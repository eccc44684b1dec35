"""What decisions depend on, by what is bounded: ``python -m benchmarks.every_cut --help``."""

import argparse
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy.stats import rankdata
from sklearn.base import clone
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.metrics import brier_score_loss, r2_score, roc_auc_score

from benchmarks._tables import insert_between, markdown
from benchmarks.tasks import N_FOLDS, TASKS, Task, TaskData, load_task, split
from gedi_sklearn import (
    DependenceConstraint,
    ProjectedClassifier,
    ProjectedRegressor,
    SplineKernel,
)
from gedi_sklearn.metrics import gedi

PAGE = Path(__file__).parents[1] / "docs" / "every_cut_benchmark.md"
BEGIN = "<!-- every cut: begin (written by benchmarks.every_cut) -->"
END = "<!-- every cut: end -->"
HEADER = ["data", "bounded", "R² or AUC", "Brier", "worst of nine cuts", "top decile", "every cut"]
# The kernel of the constraint, and a finer one that measures.
KNOTS, KNOTS_MEASURED = 6, 8
DECILES = np.arange(1, 10) / 10


class Setting(NamedTuple):
    """What is bounded: of `on`, at a share of the plain model's, or of y's."""

    name: str
    on: str | None = None
    share: float = 0.0

    def model(self, task: Task) -> object:
        """Return the estimator on the task's learner."""
        if task.is_regression:
            learner = HistGradientBoostingRegressor(
                learning_rate=0.03, max_iter=200, max_leaf_nodes=8, random_state=0
            )
        else:
            learner = HistGradientBoostingClassifier(random_state=0)
        if self.on is None:
            return learner
        is_mean = self.on == "mean"
        on = ("predictions" if task.is_regression else "probabilities") if is_mean else self.on
        kernel = SplineKernel(KNOTS) if task.protected_kind == "continuous" else 1
        # A share of nothing is nothing in any unit.
        bound = DependenceConstraint(self.share, kernel=kernel, on=on, relative=self.share > 0)
        return (ProjectedRegressor if task.is_regression else ProjectedClassifier)(learner, bound)


SETTINGS = (
    Setting("nothing"),
    Setting("labels at 20 %", "predictions", 0.2),
    Setting("mean at 20 %", "mean", 0.2),
    Setting("mean at 0", "mean"),
    Setting("distribution at 50 %", "distribution", 0.5),
    Setting("distribution at 20 %", "distribution", 0.2),
    Setting("distribution at 0", "distribution"),
)


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.every_cut",
        description="Scores of the paper's validation folds, each from a model of the other rows: "
        "how good they are, and the deviation that the attribute explains of the share of rows "
        "above a cut, in points, of ranks pooled over the folds.",
    )
    names = [str(task) for task in TASKS]
    parser.add_argument("--tasks", nargs="+", choices=names, default=names)
    parser.add_argument("--settings", nargs="+", choices=[own.name for own in SETTINGS])
    parser.add_argument("--folds", type=int, choices=range(1, N_FOLDS + 1), default=N_FOLDS)
    parser.add_argument("--docs", action="store_true", help=f"write the table into {PAGE.name}")
    options = parser.parse_args(argv)
    chosen = [own for own in SETTINGS if not options.settings or own.name in options.settings]
    body = []
    for task in (task for task in TASKS if str(task) in options.tasks):
        for row in rows(task, chosen, options.folds):
            print(" | ".join(row), flush=True)
            body.append(row)
    if options.docs:
        table = markdown(HEADER, body)
        PAGE.write_text(insert_between(PAGE.read_text(), BEGIN, END, table, page=PAGE.name))


def rows(task: Task, settings: Sequence[Setting], n_folds: int) -> Iterator[list[str]]:
    """Yield the row of every setting that the task has."""
    data = load_task(task)
    for setting in settings:
        if setting.on == "predictions" and task.is_regression:
            continue  # these are the mean
        folds = [_fold(task, data, setting, *pair) for pair in split(task, data, n_folds=n_folds)]
        ranks, x = (np.concatenate(own) for own in list(zip(*folds, strict=True))[:2])
        scores, briers = np.mean([fold[2:] for fold in folds], axis=0)
        cuts = [_explained(ranks > decile, x) for decile in DECILES]
        every = gedi(ranks, sensitive_features=x, norm="sd", kernel=_kernel(x), on="distribution")
        brier = "" if np.isnan(briers) else f"{briers:.3f}"
        numbers = [f"{value:.1f}" for value in (max(cuts), cuts[-1], 100 * every)]
        yield [str(task), setting.name, f"{scores:.3f}", brier, *numbers]


def _fold(
    task: Task, data: TaskData, setting: Setting, train: np.ndarray, val: np.ndarray
) -> tuple[np.ndarray, np.ndarray, float, float]:
    """Return ranks and attribute of new rows, and how good their scores are."""
    model, x, y = clone(setting.model(task)), data.sensitive, data.y
    given = {} if setting.on is None else {"sensitive_features": x[train]}
    new = {} if setting.on is None else {"sensitive_features": x[val]}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # what they say is what is shown
        model.fit(data.X[train], y[train], **given)
        if task.is_regression:
            z = model.predict(data.X[val], **new)
            score, brier = r2_score(y[val], z), np.nan
        else:
            z = model.predict_proba(data.X[val], **new)[:, 1]
            score, brier = roc_auc_score(y[val], z), brier_score_loss(y[val], z)
    return rankdata(z) / len(z), x[val], float(score), float(brier)


def _explained(above: np.ndarray, x: np.ndarray) -> float:
    """Return the deviation that the attribute explains of a rate, in points, without chance."""
    own = above.astype(float)
    return 100 * gedi(own, sensitive_features=x, norm="adjusted_sd", kernel=_kernel(x))


def _kernel(x: np.ndarray) -> SplineKernel | int:
    return SplineKernel(KNOTS_MEASURED) if len(np.unique(x)) > 2 else 1


if __name__ == "__main__":
    main()
