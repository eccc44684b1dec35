"""The steps of the loop, their record, and what the last one came to on its own rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from scipy.special import kl_div
from sklearn.metrics import r2_score

from ..constraints import FittedConstraint
from ..exceptions import warn_caller
from ._learner import Learner, LearnerFit
from ._master import Master

# The log loss of a certain prediction is bounded as in the projection.
_CLIP = 1e-3
# Predictions that differ by less than this fraction of the range of y count as one value.
_ONE_VALUE = 1e-9
# A learner does not follow its targets where its predictions move by less than this share of what
# these move.
_FOLLOWS = 0.05
# The projection is what removes a class, or the variance of y, where it leaves less than this.
_MOST = 0.5


def mean_of(values: np.ndarray, weight: np.ndarray | None) -> float:
    """Return a weighted mean, which `np.average` takes several times as long for."""
    return float(values.mean() if weight is None else weight @ values / weight.sum())


class Candidate(NamedTuple):
    """A fit that may become the fitted estimator.

    Attributes
    ----------
    iteration : int
        0 for the first fit.
    targets : ndarray of shape (n,)
        What it was fitted on.
    fit : LearnerFit
        The fit.
    violation : float
        Violation of the constraint by its predictions; 0 where they satisfy it.
    loss : float
        Loss of its predictions.
    """

    iteration: int
    targets: np.ndarray
    fit: LearnerFit
    violation: float
    loss: float


def better_of(best: Candidate, latest: Candidate) -> Candidate:
    """Return the candidate of smaller violation, or at equal violation of smaller loss.

    Any iteration is preferred to the first fit, whose targets need not satisfy the constraint.
    """
    is_better = (latest.violation, latest.loss) < (best.violation, best.loss)
    return latest if best.iteration == 0 or is_better else best


class StopRule:
    """Stops once the targets have changed by no more than `tol` for some iterations in a row.

    The change is ‖z_i − z_{i−1}‖ / ‖y − mean(y)‖, weighted. For classes ‖·‖² counts the labels that
    changed, and the scale is half the Gini impurity of y, which for 0 and 1 is its variance.

    Parameters
    ----------
    y : ndarray of shape (n,)
        Original targets; integers are classes.
    weight : ndarray of shape (n,) or None
        Sample weights.
    tol : float or None
        Largest change that counts as no change. None is 0, or never stops if `n_iter_no_change`
        is None as well.
    n_iter_no_change : int or None
        Number of iterations in a row; None is 1.
    """

    def __init__(
        self,
        y: np.ndarray,
        weight: np.ndarray | None,
        tol: float | None,
        n_iter_no_change: int | None,
    ) -> None:
        self.weight = weight
        self.is_classes = y.dtype.kind in "iu"
        self.scale = self._spread(y)
        self.active = tol is not None or n_iter_no_change is not None
        self.tol = tol or 0.0
        self.patience = n_iter_no_change or 1
        self.unchanged = 0
        self.last = y

    def reached(self, targets: np.ndarray) -> bool:
        """Record the targets of an iteration, and tell whether it is the last."""
        difference = targets - self.last
        change = self._norm(difference != 0 if self.is_classes else difference)
        self.last = targets
        self.unchanged = self.unchanged + 1 if change <= self.tol * self.scale else 0
        return self.active and self.unchanged >= self.patience

    def _spread(self, y: np.ndarray) -> float:
        if not self.is_classes:
            return self._norm(y - mean_of(y, self.weight))
        counts = np.bincount(y, weights=self.weight)
        frequencies = counts / counts.sum()
        return float(np.sqrt((1 - frequencies @ frequencies) / 2))

    def _norm(self, difference: np.ndarray) -> float:
        return mean_of(np.square(difference, dtype=np.float64), self.weight) ** 0.5


class Step(NamedTuple):
    """The next targets.

    Attributes
    ----------
    targets : ndarray of shape (n,)
        The targets of the learner's next fit.
    target_weight : float
        Weight of the original targets in the projection that computed them; NaN without one.
    """

    targets: np.ndarray
    target_weight: float


@dataclass
class ProjectionSteps:
    """Moving Targets: the projection of the last predictions.

    Parameters
    ----------
    master : Master
        Computes the projections.
    target_weight : callable
        Returns the weight of the original targets in a step; steps are counted from 1.
    max_iter : int
        Maximum number of steps.
    stop : StopRule
        Ends the steps earlier.
    n_steps : int
        Number of steps so far.
    keeps_best : bool
        Whether the best fit is kept, not the last.
    has_failed : bool
        Whether a search has not found what it looked for.
    """

    master: Master
    target_weight: Callable[[int], float]
    max_iter: int
    stop: StopRule
    n_steps: int = 0
    keeps_best: bool = False
    has_failed: bool = False
    _last: np.ndarray | None = None

    def next(self, fit: LearnerFit) -> Step | None:
        """Return the projection of the predictions of a fit; None at the end of the loop."""
        if self._last is None:
            is_over = self.master.allows(self.master.y) and self.master.allows(fit.predictions)
        else:
            is_over = self.stop.reached(self._last)
        if is_over or self.n_steps == self.max_iter:
            return None
        self.n_steps += 1
        weight = self.target_weight(self.n_steps)
        self._last = self.master.solve(fit.scores, weight)
        return Step(self._last, weight)

    def warn(self, selected: Candidate) -> None:
        """Give the warnings that are due at the end: none, the master warns of its solver."""


# The fields of an entry, in the order of `history_`, with their values if there was no projection.
_BLANK: dict[str, Any] = {
    "iteration": 0,
    "target_weight": np.nan,
    "objective": np.nan,
    "bound": np.nan,
    "gap": np.nan,
    "violation": np.nan,
    "status": "",
    "solver": "",
    "n_variables": np.nan,
    "targets_gedi": np.nan,
    "predictions_gedi": np.nan,
    "loss_predictions": np.nan,
    "loss_targets": np.nan,
    "n_changed": 0,
    "fit_seconds": 0.0,
    "projection_seconds": 0.0,
}


@dataclass(frozen=True)
class ValidationData:
    """Scores every fit on held-out rows; its indicator has the units of the training rows.

    Parameters
    ----------
    learner : Learner
        Encodes predictions.
    X : array-like of shape (n, p)
        As the inner estimator takes it.
    y : ndarray of shape (n,)
        Targets, classes as 0…K − 1.
    gedi : callable
        Returns the indicator of predictions, in the units of the kernel of the training rows.
    """

    learner: Learner
    X: Any
    y: np.ndarray
    gedi: Callable[[np.ndarray], float]

    def measure(self, estimator: Any) -> dict[str, float]:
        """Return the score (R², accuracy) and the indicator of a fitted estimator."""
        predictions = self.learner.predictions(estimator, self.X)
        if self.learner.is_classifier:
            score = float(np.mean(predictions == self.y))
        else:
            score = float(r2_score(self.y, predictions))
        gedi = self.gedi(predictions.astype(np.float64))
        return {"validation_score": score, "validation_gedi": gedi}


@dataclass
class History:
    """Entries of one fit; as a context manager it attaches them to an error that ends the loop.

    Parameters
    ----------
    master : Master
        Measures targets and predictions.
    y : ndarray of shape (n,)
        Original targets, classes as 0…K − 1.
    weight : ndarray of shape (n,) or None
        Sample weights.
    loss : str
        The loss in which targets and predictions are compared with `y`.
    validation : ValidationData or None
        Adds its fields to every entry.
    verbose : bool
        Whether every entry is printed as a line.
    entries : list of dict
        One per fit.
    """

    master: Master
    y: np.ndarray
    weight: np.ndarray | None
    loss: str
    validation: ValidationData | None
    verbose: bool
    entries: list[dict[str, Any]] = field(default_factory=list)

    def __enter__(self) -> History:
        return self

    def __exit__(self, kind: Any, error: Any, traceback: Any) -> None:
        if error is not None:
            error.history = self.as_arrays()

    def record(self, step: Step, fit: LearnerFit) -> Candidate:
        """Append, and print if verbose, one entry: how the targets were computed, and their fit."""
        iteration, targets = len(self.entries), step.targets
        judged = fit.scores if self.loss == "log_loss" else fit.predictions
        measured = {} if self.validation is None else self.validation.measure(fit.estimator)
        self.entries.append(
            {
                **_BLANK,
                **self.master.take_facts(),
                "iteration": iteration,
                "target_weight": step.target_weight,
                "targets_gedi": self.master.indicator(targets),
                "predictions_gedi": self.master.indicator(fit.predictions),
                "loss_predictions": _mean_loss(self.loss, self.y, judged, self.weight),
                "loss_targets": _mean_loss(self.loss, self.y, targets, self.weight),
                "n_changed": int((targets != self.y).sum()),
                "fit_seconds": fit.seconds,
                "projection_seconds": self.master.take_seconds(),
                **measured,
            }
        )
        if self.verbose:
            print(_line(self.entries[-1]))
        violation = self.master.violation(fit.predictions)
        return Candidate(iteration, targets, fit, violation, self.entries[-1]["loss_predictions"])

    def as_arrays(self) -> dict[str, np.ndarray]:
        """Return the entries as equally long arrays, one per field."""
        fields = self.entries[0] if self.entries else _BLANK
        return {name: np.array([entry[name] for entry in self.entries]) for name in fields}


def _mean_loss(loss: str, y: np.ndarray, values: np.ndarray, weight: np.ndarray | None) -> float:
    """Return the weighted mean loss of targets, labels or scores against y."""
    # For a matrix of probabilities: one minus the probability of the row's own class.
    distance = np.abs(values - y) if values.ndim == 1 else 1 - values[np.arange(len(y)), y]
    if loss == "squared_error":
        losses = distance**2
    elif loss == "kl":  # half the Poisson deviance, which is finite where y is 0
        losses = kl_div(y, values)
    elif loss == "log_loss":
        losses = -np.log(np.clip(1 - distance, _CLIP, 1 - _CLIP))
    elif loss == "hamming":
        losses = np.minimum(distance, 1.0)
    else:
        losses = distance
    return mean_of(losses, weight)


def _line(entry: dict[str, Any]) -> str:
    """Return an entry as one line with columns of fixed width."""
    columns = [
        f"[Moving Targets] {entry['iteration']:>3}",
        f"{entry['status'] or 'first fit':<11}",
        f"GeDI of targets {entry['targets_gedi']:<9.4g}",
        f"of predictions {entry['predictions_gedi']:<9.4g}",
        f"loss {entry['loss_predictions']:<9.4g}",
        f"changed {entry['n_changed']:>7}",
    ]
    if "validation_score" in entry:
        columns += [
            f"validation score {entry['validation_score']:<9.4g}",
            f"GeDI {entry['validation_gedi']:<9.4g}",
        ]
    seconds = f"{entry['fit_seconds']:.2f} s + {entry['projection_seconds']:.2f} s"
    return "  ".join([*columns, seconds])


@dataclass
class Outcome:
    """The kept fit beside the first one, on the training rows.

    Parameters
    ----------
    learner : Learner
        What was fitted.
    y : ndarray of shape (n,)
        Original targets, classes as 0…K − 1.
    weight : ndarray of shape (n,) or None
        Sample weights.
    first_predictions : ndarray of shape (n,)
        Of the first fit, on y.
    selected : Candidate
        The kept fit.
    target_weight : float
        Weight of y in the projection that computed its targets; NaN without one.
    """

    learner: Learner
    y: np.ndarray
    weight: np.ndarray | None
    first_predictions: np.ndarray
    selected: Candidate
    target_weight: float

    def __post_init__(self) -> None:
        self.targets, self.predictions = self.selected.targets, self.selected.fit.predictions
        self.name = type(self.selected.fit.estimator).__name__

    def warn_collapse(self) -> None:
        """Warn if the predictions are constant or lack a class although the targets y do not."""
        counted = slice(None) if self.weight is None else self.weight > 0
        y, predictions = self.y[counted], self.predictions[counted]
        spread = np.ptp(y)
        found = cause = ""
        if np.ptp(predictions) <= _ONE_VALUE * spread and spread > 0:
            found = "predicts one value for every training row: the model has collapsed"
        if self.learner.is_classifier:
            lost = np.setdiff1d(y, predictions)
            labels = self.learner.decode(lost).tolist()
            if lost.size:
                found = (
                    found or f"predicts class(es) {labels} for no training row, though y holds them"
                )
                cause = self._cause(lambda values: np.isin(values, lost), f"rows of {labels}")
        elif found:
            cause = self._cause(self._squared_deviation, "variance")
        if found:
            warn_caller(f"the fitted {self.name} {found}. {cause}")

    def _squared_deviation(self, values: np.ndarray) -> np.ndarray:
        return np.square(values - np.average(values, weights=self.weight))

    def _cause(self, measure: Callable[[np.ndarray], np.ndarray], what: str) -> str:
        """Return where the means over rows of `measure` were lost, with numbers, and what to do."""
        compared = (self.y, self.targets, self.first_predictions)
        in_y, *rest = (np.average(measure(values), weights=self.weight) for values in compared)
        in_targets, in_first = (float(own / in_y) for own in rest)
        found = (
            f"Of the {what} in y, the predictions of the first fit have {in_first:.1%} and the "
            f"last targets {in_targets:.1%}. "
        )
        if in_first <= _ONE_VALUE:
            return found + (
                "The learner loses them without any projection: give the inner estimator features "
                "other than the attribute, or less regularisation."
            )
        if in_targets < _MOST:
            return found + (
                "The projection removes them, where y had a weight of "
                f"{self.target_weight:.2g} against 1 for the predictions: raise `target_weight` or "
                "`threshold`."
            )
        return found + (
            "The learner does not follow its targets: use select='best' or another inner estimator."
        )

    def warn_unmet(self, constraint: FittedConstraint) -> None:
        """Warn if the predictions are beyond the constraint."""
        kind = "Classifier" if self.learner.is_classifier else "Regressor"
        if self._stands_still():
            others = "Use an inner estimator that fit changes"
            reason = (
                f"{self.name} does not follow its targets: they satisfy the constraint, but its "
                "predictions hardly differ from those of its first fit."
            )
        else:
            others = f"Use select='best', DualTargets{kind}"
            reason = f"The targets satisfy it, and {self.name} follows them only in part."
        counted = slice(None) if self.weight is None else self.weight > 0
        constraint.warn_excess(
            self.predictions[counted].astype(np.float64),
            f"{others}, or Projected{kind}, which corrects the predictions themselves",
            reason,
        )

    def _stands_still(self) -> bool:
        """Tell whether the predictions hardly moved from the first fit on, though targets did."""

        def change(last: np.ndarray, first: np.ndarray) -> float:
            apart = last != first if self.learner.is_classifier else last - first
            return float(np.linalg.norm(apart))

        asked = change(self.targets, self.y)
        return asked > 0 and change(self.predictions, self.first_predictions) <= _FOLLOWS * asked
