"""The record of a fit: one entry per fit of the learner, on its rows and on validation rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.special import kl_div
from sklearn.metrics import r2_score

from ._learner import Learner, LearnerFit
from ._master import Master
from ._steps import Candidate, Step, mean_of

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
# The log loss of a certain prediction is bounded as in the projection.
_CLIP = 1e-3


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
