"""What decisions depend on, by what is bounded: ``python -m benchmarks.every_cut --help``.

Four tables: scores of the paper's validation folds, each from a model of the other rows, with and
without the attribute of these; the probabilities of constrained boosting, on the same folds; and
simulated upper limits of the largest cut.
"""

import argparse
import warnings
from collections.abc import Iterator, Sequence
from itertools import product
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
    ConstrainedBoostingClassifier,
    DependenceConstraint,
    ProjectedClassifier,
    ProjectedRegressor,
    SplineKernel,
)
from gedi_sklearn.metrics import gedi, gedi_inference

PAGE = Path(__file__).parents[1] / "docs" / "every_cut_benchmark.md"
BEGIN, END = "<!-- {}: begin (written by benchmarks.every_cut) -->", "<!-- {}: end -->"
_SCORES = ["data", "bounded", "R² or AUC", "Brier", "worst of nine cuts", "top decile", "every cut"]
HEADERS = {
    "every cut": _SCORES,
    "blind": _SCORES,
    "boosting": ["data", "cv", "asked", "probabilities", "labels", "AUC", "Brier"],
    "limits": ["rows", "samples", "true", "mean value", "limit holds", "mean excess"],
}
# The kernel of the constraint, and a finer one that measures.
KNOTS, KNOTS_MEASURED = 6, 8
DECILES = np.arange(1, 10) / 10
# Tasks of the table of boosting.
BOOSTED = ("crimes/pctBlack", "adult/sex")


class Setting(NamedTuple):
    """What is bounded: of `on`, at a share of the plain model's, or of y's; blind is without x."""

    name: str
    on: str | None = None
    share: float = 0.0
    is_blind: bool = False

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
        kind = ProjectedRegressor if task.is_regression else ProjectedClassifier
        return kind(learner, bound, sensitive_at_predict=not self.is_blind)


SETTINGS = (
    Setting("nothing"),
    Setting("labels at 20 %", "predictions", 0.2),
    Setting("mean at 20 %", "mean", 0.2),
    Setting("mean at 0", "mean"),
    Setting("distribution at 50 %", "distribution", 0.5),
    Setting("distribution at 20 %", "distribution", 0.2),
    Setting("distribution at 0", "distribution"),
)


BLIND = (
    Setting("nothing", is_blind=True),
    Setting("distribution at 50 %", "distribution", 0.5, is_blind=True),
    Setting("distribution at 20 %", "distribution", 0.2, is_blind=True),
)


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.every_cut",
        description="How good scores are, and the deviation that the attribute explains of the "
        "share of rows above a cut, in points, of ranks pooled over the folds; what boosting keeps "
        "of bounded probabilities; how often the upper limit of the largest cut holds.",
    )
    names = [str(task) for task in TASKS]
    parser.add_argument("--table", nargs="+", choices=HEADERS, default=list(HEADERS))
    parser.add_argument("--tasks", nargs="+", choices=names, default=names)
    parser.add_argument("--settings", nargs="+", choices=[own.name for own in SETTINGS])
    parser.add_argument("--folds", type=int, choices=range(1, N_FOLDS + 1), default=N_FOLDS)
    parser.add_argument("--samples", type=int, default=60, help="of the simulated limits")
    parser.add_argument("--docs", action="store_true", help=f"write the tables into {PAGE.name}")
    options = parser.parse_args(argv)
    for name in options.table:
        body = []
        for row in _body(name, options):
            print(" | ".join(row), flush=True)
            body.append(row)
        if options.docs:
            where, table = (BEGIN.format(name), END.format(name)), markdown(HEADERS[name], body)
            PAGE.write_text(insert_between(PAGE.read_text(), *where, table, page=PAGE.name))


def _body(table: str, options: argparse.Namespace) -> Iterator[list[str]]:
    """Yield the rows of a table."""
    tasks = [task for task in TASKS if str(task) in options.tasks]
    if table == "limits":
        yield from limits(options.samples)
    elif table == "boosting":
        for task in (task for task in tasks if str(task) in BOOSTED):
            yield from boosted(task, options.folds)
    else:
        chosen = [own for own in SETTINGS if not options.settings or own.name in options.settings]
        for task in tasks:
            yield from rows(task, BLIND if table == "blind" else chosen, options.folds)


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
    model, X, x, y = clone(setting.model(task)), data.X, data.sensitive, data.y
    if setting.is_blind:
        X = np.delete(X, data.feature_names.index(task.protected), axis=1)
    given = {} if setting.on is None else {"sensitive_features": x[train]}
    new = {} if setting.on is None or setting.is_blind else {"sensitive_features": x[val]}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # what they say is what is shown
        model.fit(X[train], y[train], **given)
        if task.is_regression:
            z = model.predict(X[val], **new)
            score, brier = r2_score(y[val], z), np.nan
        else:
            z = model.predict_proba(X[val], **new)[:, 1]
            score, brier = roc_auc_score(y[val], z), brier_score_loss(y[val], z)
    return rankdata(z) / len(z), x[val], float(score), float(brier)


def _explained(above: np.ndarray, x: np.ndarray) -> float:
    """Return the deviation that the attribute explains of a rate, in points, without chance."""
    own = above.astype(float)
    return 100 * gedi(own, sensitive_features=x, norm="adjusted_sd", kernel=_kernel(x))


def _kernel(x: np.ndarray) -> SplineKernel | int:
    return SplineKernel(KNOTS_MEASURED) if len(np.unique(x)) > 2 else 1


def boosted(task: Task, n_folds: int) -> Iterator[list[str]]:
    """Yield what boosting keeps of bounded probabilities; real targets are cut at their median."""
    data = load_task(task)
    y = (data.y > np.median(data.y)).astype(int) if task.is_regression else data.y
    name = f"{task}, above the median" if task.is_regression else str(task)
    kernel = SplineKernel(KNOTS) if task.protected_kind == "continuous" else 1
    folds = list(split(task, data, n_folds=n_folds))
    new = np.concatenate([val for _, val in folds])
    measured = {"sensitive_features": data.sensitive[new], "norm": "sd", "kernel": kernel}
    truth = (y[new] == np.unique(y)[1]).astype(float)
    for share, cv in product((0.5, 0.2), (None, 5)):
        bound = DependenceConstraint(share, kernel=kernel, on="probabilities")
        model = ConstrainedBoostingClassifier(constraint=bound, cv=cv, random_state=0)
        p, aucs = [], []
        for train, val in folds:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)
                model.fit(data.X[train], y[train], sensitive_features=data.sensitive[train])
            p.append(model.predict_proba(data.X[val])[:, 1])
            aucs.append(roc_auc_score(y[val], p[-1]))
        pooled = np.concatenate(p)
        kept = [
            gedi(truth, z, **measured, relative=True) for z in (pooled, (pooled > 0.5).astype(int))
        ]
        shown = [f"{own:.3f}" for own in (*kept, np.mean(aucs), brier_score_loss(truth, pooled))]
        yield [name, str(cv), f"{share:g}", *shown]


def limits(n_samples: int) -> Iterator[list[str]]:
    """Yield how often the upper 95 % limit of the largest cut holds, and how wide it is."""

    def draw(rng: np.random.Generator, n: int) -> tuple[np.ndarray, dict[str, object]]:
        x = rng.uniform(18, 80, n)
        s = rng.normal(size=n) * (1 + 0.25 * np.sin(x / 8)) + 0.15 * (x - 49) / 18
        return s, {"sensitive_features": x, "kernel": "spline", "norm": "sd", "on": "distribution"}

    s, measured = draw(np.random.default_rng(0), 10**6)
    truth = gedi(s, **measured)
    for n in (1000, 3000):
        rng = np.random.default_rng(n)
        samples = [draw(rng, n) for _ in range(n_samples)]
        found = [gedi_inference(s, **measured, n_resamples=2) for s, measured in samples]
        upper = np.array([one.upper for one in found])
        value = np.mean([gedi(s, **measured) for s, measured in samples])
        points = [f"{100 * own:.2f}" for own in (truth, value, np.mean(upper - truth))]
        yield [f"{n}", f"{n_samples}", *points[:2], f"{np.mean(upper >= truth):.3f}", points[2]]


if __name__ == "__main__":
    main()
