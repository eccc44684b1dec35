"""The rows of the comparison on unseen data: learners, this library's models and its rivals."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline

from benchmarks._boosting_models import tuned_model
from benchmarks._constraints import named_constraint
from benchmarks._learners import LEARNERS
from benchmarks._tables import read_reference
from benchmarks._units import models_of
from benchmarks.tasks import Task
from gedi_sklearn import (
    DualTargetsClassifier,
    DualTargetsRegressor,
    MovingTargetsClassifier,
    MovingTargetsRegressor,
    ProjectedClassifier,
    ProjectedRegressor,
)
from gedi_sklearn.kernels import PolynomialKernel

# The learner that the rivals wrap.
RIVALS_LEARNER = "HistGB-small"
# Shares of the variance that the attribute may explain: the bound of Scutari's ridge is not GeDI.
RIDGE_BOUNDS = (0.02, 0.1)
N_BINS = 5
# A grid; .4 was added after the validation folds had been seen.
BLIND_THRESHOLDS = (0.2, 0.3, 0.4)
BOOSTING_THRESHOLDS = {"aware": (0.1, 0.2), "blind": (0.2, 0.3)}
# By attribute, of rows without it: the limit of new rows, and the folds.
BOOSTING_LIMITS = {"age": (0.35, 10), "pctBlack": (0.29, 5)}


@dataclass(frozen=True)
class Row:
    """A model of the comparison.

    `build` takes the task and the attribute's column of X. A model that takes the attribute in
    `fit` is `by_value`; one that `drops` gets X without it. `blind` rows have the attribute in no
    learner and need it of no new row.
    """

    name: str
    group: str  # plain, moving targets, projected, boosting or rival
    constraint: str  # coarse, fine or ""
    build: Callable[[Task, int], Any]
    by_value: bool = False
    drops: bool = False
    blind: bool = False


def rows_of(task: Task) -> Iterator[Row]:
    """Yield the rows of a task; with a binary attribute fine and coarse coincide."""
    learners = [name for name in LEARNERS if task.is_regression or name != "HistGB-small"]
    for name in learners:
        yield Row(name, "plain", "", _plain(name))
    for constraint in ("coarse",) if task.protected_kind == "binary" else ("coarse", "fine"):
        yield from _projected(task, constraint)
        yield from _moving_targets(task, constraint)
        yield from _boosting(task, constraint)
    yield from _rivals(task)
    # "attribute dropped" is that of the other learner.
    for name in ("RF", "linear") if task.is_regression else ("HistGB", "RF", "linear"):
        yield Row(f"{name} dropped", "plain", "", _plain(name), drops=True, blind=True)


def _best(task: Task) -> str:
    """Return the learner that suits a task best."""
    return "HistGB-small" if task.is_regression else "HistGB"


def _learner(name: str, task: Task) -> Any:
    return LEARNERS[name][task.is_regression]()


def paper_rows(task: Task) -> Iterator[tuple[str, Mapping[str, str]]]:
    """Yield the paper's constrained rows of a task."""
    reference = read_reference()
    for model in models_of(task):
        if "+" in model:
            yield model, reference[task.dataset, task.protected_kind, model]


def _is_long(task: Task) -> bool:
    """Tell where fits of regression trees for each of five coefficients take hours."""
    return task.is_regression and task.protected_kind == "continuous"


def _plain(name: str) -> Callable[[Task, int], Any]:
    return lambda task, column: _learner(name, task)


def _projected(task: Task, constraint: str) -> Iterator[Row]:
    """Fit the learner once, and correct its predictions."""

    def row(
        learner: str,
        threshold: float = 0.2,
        *,
        blind: bool = False,
        confidence: float | None = None,
    ) -> Row:
        def build(task: Task, column: int) -> Any:
            kind = ProjectedRegressor if task.is_regression else ProjectedClassifier
            return kind(
                _learner(learner, task),
                named_constraint(constraint, threshold, kernel=task.degree),
                cv="oob" if learner == "RF" else 5,
                sensitive_columns=column,
                drop_sensitive=blind,
                sensitive_at_predict=not blind,
                attribute_estimator=Ridge(10.0) if learner == "linear" else None,
                confidence=confidence,
            )

        name = f"{learner} Projected {'blind' if blind else 'aware'} {threshold:g}"
        name += "" if confidence is None else " certified"
        return Row(name, "projected", constraint, build, blind=blind)

    best = _best(task)
    yield row(best, 0.1)
    yield row(best)
    yield row(best, 0.25)
    yield row("RF")
    if constraint == "fine":
        yield row("RF", 0.225)
    yield row("linear")
    if task.is_regression:
        yield row("HistGB")
    if constraint == "coarse":
        for learner in ("extra trees", "stack"):
            yield row(learner)
            if _is_long(task):
                yield row(learner, 0.25)
        yield row(best, confidence=0.95)
        yield row("linear", blind=True)
        yield row(best, 0.4, blind=True, confidence=0.95)
        for threshold in BLIND_THRESHOLDS:
            yield row(best, threshold, blind=True)


def _moving_targets(task: Task, constraint: str) -> Iterator[Row]:
    """Fit the learner again and again: in the paper's form, and on what is not memorised."""

    def row(learner: str, name: str, *, blind: bool = False, **options: Any) -> Row:
        is_dual = name.startswith("dual")

        def build(task: Task, column: int) -> Any:
            kind = MovingTargetsRegressor if task.is_regression else MovingTargetsClassifier
            own = {"cv": "train", "target_weight": "harmonic", **options}
            if is_dual:
                kind = DualTargetsRegressor if task.is_regression else DualTargetsClassifier
                own = {"cv": "train", **options}
            if blind:
                own |= {"sensitive_columns": column, "drop_sensitive": True}
            bound = named_constraint(constraint, 0.2, kernel=task.degree)
            return kind(_learner(learner, task), bound, **own)

        name = f"{learner} MT {name}{' blind' if blind else ''}"
        return Row(name, "moving targets", constraint, build, by_value=not blind, blind=blind)

    for blind in (False, True) if constraint == "coarse" else (False,):
        if task.is_regression:
            yield row("linear", "dual", blind=blind)
            yield row("HistGB-small", "dual cv", blind=blind, cv=5)
            yield row("HistGB-small", "as in the paper", blind=blind)
            if not _is_long(task):  # eleven times six fits
                yield row("HistGB-small", "cv", blind=blind, cv=5)
        else:
            yield row("HistGB", "as in the paper", blind=blind, response_method="predict")
            yield row("HistGB", "probabilities", blind=blind)
            yield row("HistGB", "dual", blind=blind)
        if constraint == "coarse":
            yield row("RF", "dual oob", blind=blind, cv="oob")
            if not _is_long(task):
                yield row("RF", "oob", blind=blind, cv="oob")
                labels = {} if task.is_regression else {"response_method": "predict"}
                yield row("RF", "as in the paper", blind=blind, **labels)


def _boosting(task: Task, constraint: str) -> Iterator[Row]:
    """Grow trees under the constraint, in one run or in several at once."""

    def row(
        view: str,
        threshold: float,
        cv: int | None = None,
        *,
        is_within: bool = False,
        confidence: float | None = None,
    ) -> Row:
        def build(task: Task, column: int) -> Any:
            return tuned_model(
                task,
                column,
                constraint=named_constraint(constraint, threshold, kernel=task.degree),
                cv=cv,
                drop_sensitive=view == "blind",
                is_within=is_within,
                confidence=confidence,
            )

        name = f"Boosting {view} {'within ' if is_within else ''}{threshold:g}"
        name += "" if cv is None else f" cv={cv}"
        name += "" if confidence is None else " certified"
        return Row(name, "boosting", constraint, build, blind=view == "blind")

    # Many rows and one coefficient need no folds.
    has_folds = task.is_regression or task.protected_kind == "continuous"
    for view in ("aware", "blind") if constraint == "coarse" else ("aware",):
        thresholds = BOOSTING_THRESHOLDS[view]
        for threshold in thresholds:
            yield row(view, threshold)
            if (view == "blind" or threshold == max(thresholds)) and has_folds:
                yield row(view, threshold, 5)
    if constraint == "coarse":
        if task.protected in BOOSTING_LIMITS:
            yield row("blind", *BOOSTING_LIMITS[task.protected], is_within=True)
        yield row("aware", 0.2, confidence=0.95)
        yield row("blind", 0.4, confidence=0.95)
    elif _is_long(task):
        yield row("aware", 0.15)


def _rivals(task: Task) -> Iterator[Row]:
    """Go other ways to the same end, each with its package's defaults."""

    def learner(task: Task, column: int) -> Any:
        return _learner(RIVALS_LEARNER, task)

    def correlation_remover(task: Task, column: int) -> Any:
        from fairlearn.preprocessing import CorrelationRemover

        return make_pipeline(CorrelationRemover(sensitive_feature_ids=[column]), learner(task, 0))

    def information_filter(task: Task, column: int) -> Any:
        from sklego.preprocessing import InformationFilter

        return make_pipeline(InformationFilter(column), learner(task, 0))

    yield Row("attribute dropped", "rival", "", learner, drops=True, blind=True)
    yield Row("fairlearn CorrelationRemover", "rival", "", correlation_remover)
    yield Row("scikit-lego InformationFilter", "rival", "", information_filter)
    if task.is_regression:
        for bound in RIDGE_BOUNDS:
            yield Row(
                f"fair ridge (Scutari 2022) {bound:g}",
                "rival",
                "",
                lambda task, column, bound=bound: FairRidge(column, task.degree, bound),
            )
    else:
        for name, blind in (("", False), (" blind", True)):
            yield Row(
                f"fairlearn ExponentiatedGradient{name}",
                "rival",
                "",
                lambda task, column, blind=blind: DemographicParity(
                    learner(task, 0), column, blind
                ),
                blind=blind,
            )


class FairRidge(RegressorMixin, BaseEstimator):
    """Ridge regression in which the attribute explains at most a share of the variance.

    Scutari, Panero and Proissl (2022): the other columns are replaced by their residuals U from
    the attribute's columns S, so that the two parts of Sα + Uβ are uncorrelated; α has a ridge
    penalty just strong enough for var(Sα) ≤ bound · var(Sα + Uβ).
    """

    def __init__(self, column: int, degree: int, bound: float, penalty: float = 10.0) -> None:
        self.column = column
        self.degree = degree
        self.bound = bound
        self.penalty = penalty

    def fit(self, X: np.ndarray, y: np.ndarray) -> Any:
        self.kernel_ = PolynomialKernel(self.degree, standardize=True).fit(X[:, [self.column]])
        S = self._attribute(X)
        self.center_ = S.mean(axis=0)
        S = S - self.center_
        others = self._others(X)
        self.means_, self.offset_ = others.mean(axis=0), y.mean()
        self.removed_ = np.linalg.lstsq(S, others - self.means_, rcond=None)[0]
        U = others - self.means_ - S @ self.removed_
        gram, target = U.T @ U, U.T @ (y - self.offset_)
        self.beta_ = np.linalg.solve(gram + self.penalty * np.eye(len(gram)), target)
        self.alpha_ = self._shrink(S, y - self.offset_, np.var(U @ self.beta_))
        return self

    def _shrink(self, S: np.ndarray, y: np.ndarray, rest: float) -> np.ndarray:
        """Return the α of the weakest penalty that keeps to the bound, by bisection of its log."""
        left, values, right = np.linalg.svd(S, full_matrices=False)

        def alpha(log_penalty: float) -> np.ndarray:
            return right.T @ (values / (values**2 + np.exp(log_penalty)) * (left.T @ y))

        def share(log_penalty: float) -> float:
            explained = np.var(S @ alpha(log_penalty))
            return explained / (explained + rest)

        low, high = -30.0, 50.0
        for _ in range(100):
            middle = (low + high) / 2
            low, high = (low, middle) if share(middle) <= self.bound else (middle, high)
        return alpha(high)

    def predict(self, X: np.ndarray) -> np.ndarray:
        S = self._attribute(X) - self.center_
        U = self._others(X) - self.means_ - S @ self.removed_
        return self.offset_ + S @ self.alpha_ + U @ self.beta_

    def _attribute(self, X: np.ndarray) -> np.ndarray:
        return self.kernel_.transform(X[:, [self.column]])

    def _others(self, X: np.ndarray) -> np.ndarray:
        return np.delete(X, self.column, axis=1)


class DemographicParity(BaseEstimator):
    """fairlearn's reduction to reweighted fits; a continuous attribute is cut into bins.

    Its groups are the quantile bins of the training rows; its predictions are drawn, with a
    fixed seed. A `blind` one takes the attribute's column out of the X of its learner.
    """

    _estimator_type = "classifier"

    def __init__(self, estimator: Any, column: int, blind: bool = False) -> None:
        self.estimator = estimator
        self.column = column
        self.blind = blind

    def fit(self, X: np.ndarray, y: np.ndarray) -> Any:
        from fairlearn.reductions import DemographicParity as Parity
        from fairlearn.reductions import ExponentiatedGradient

        attribute = X[:, self.column]
        edges = np.unique(np.quantile(attribute, np.linspace(0, 1, N_BINS + 1)[1:-1]))
        groups = attribute if len(np.unique(attribute)) == 2 else np.digitize(attribute, edges)
        self.model_ = ExponentiatedGradient(self.estimator, Parity())
        self.model_.fit(self._seen(X), y, sensitive_features=groups)
        self.n_fits_ = int(self.model_.n_oracle_calls_)
        return self

    def predict(self, X: np.ndarray) -> np.ndarray:
        return np.asarray(self.model_.predict(self._seen(X), random_state=0))

    def _seen(self, X: np.ndarray) -> np.ndarray:
        return np.delete(X, self.column, axis=1) if self.blind else X

    def score(self, X: np.ndarray, y: np.ndarray) -> float:
        return float(np.mean(self.predict(X) == y))
