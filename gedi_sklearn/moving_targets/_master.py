"""The master's side of Moving Targets: one projection, solved again and again."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from time import perf_counter
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from .._geometry import Span
from .._validation import Outcomes
from .._verdict import Verdict, make_verdict
from ..exceptions import ConstraintNotMetWarning, warn_caller
from ..projection import UnseenProjection

# What the history keeps of a projection.
_FACTS = ("objective", "bound", "gap", "violation", "status", "solver", "n_variables")


class Master:
    """One :class:`Projection` for a whole fit.

    Parameters
    ----------
    y : ndarray of shape (n,)
        Original targets, classes as 0…K − 1.
    sensitive_features : ndarray of shape (n, m)
        The attribute.
    outcomes : Outcomes, default=None
        The original targets as the caller gave them, where predictions are of unseen rows.
    **options
        Keywords of :class:`UnseenProjection`.

    Attributes
    ----------
    projection : Projection
        The projection.
    solver : str
        What solved the last projection; "" before the first.
    """

    def __init__(
        self,
        y: np.ndarray,
        sensitive_features: np.ndarray,
        outcomes: Outcomes | None = None,
        **options: Any,
    ) -> None:
        self.y = y
        self.weight = options.get("sample_weight")
        self.solver = ""
        self._facts: dict[str, Any] = {}
        self._stopped: list[str] = []
        start = perf_counter()
        self.projection = UnseenProjection(
            y,
            outcomes=outcomes,
            sensitive_features=sensitive_features,
            allow_constant=True,
            **options,
        )
        self._seconds = perf_counter() - start
        # Targets and predictions are numbers here, so that nothing is to be checked again.
        self.constraint = self.projection.fitted_constraint_

    @property
    def span(self) -> Span:
        """All that the constraint sees of targets."""
        return self.constraint.span

    def indicator(self, values: np.ndarray) -> float:
        """Return the indicator of targets or hard predictions; NaN for a constant attribute."""
        return self.constraint.indicator(self._counted(values))

    def violation(self, values: np.ndarray) -> float:
        """Return by how much targets or hard predictions miss the constraint."""
        return self.constraint.judge(self._counted(values)).violation

    def verdict(
        self,
        predictions: np.ndarray,
        *,
        scores: np.ndarray | None,
        groups: np.ndarray | None,
        is_unseen: bool,
    ) -> Verdict | None:
        """Return what the constraint has come to for hard predictions and scores of classes."""
        y, own = self._counted(self.y), self._counted(predictions)
        scores, groups = (None if v is None else self._counted(v) for v in (scores, groups))
        judged = {"new_rows" if is_unseen else "training": own}
        return make_verdict(self.constraint, y, own, scores=scores, groups=groups, **judged)

    def allows(self, values: np.ndarray) -> bool:
        """Tell whether targets or hard predictions satisfy the constraint."""
        return self.violation(values) == 0.0

    def solve(self, scores: np.ndarray | None = None, target_weight: float = 1.0) -> np.ndarray:
        """Return the allowed targets nearest to the learner's scores and to y."""
        with self.timed():
            # Limits are said once at the end of the fit, see `warn_early_stops`; lost classes
            # where the learner follows, see `LearnerFit.warn_collapse`.
            result = self.projection.solve_step(scores, target_weight)
        self._facts = {name: getattr(result, name) for name in _FACTS}
        self.solver = result.solver
        if result.status not in ("optimal", "gap"):
            self._stopped.append(result.status)
        return result.targets

    @cached_property
    def deviation(self) -> float:
        """The deviation of y."""
        share, y = self.span.normalized_weight, self._counted(self.y)
        return float(np.sqrt(share @ (y - share @ y) ** 2))

    def _counted(self, values: np.ndarray) -> np.ndarray:
        """Return the values of the rows of positive weight."""
        return values if self.weight is None else values[self.weight > 0]

    def coordinates(self, values: np.ndarray) -> np.ndarray:
        """Return the coordinates of targets or predictions, shape (K,)."""
        return self.span.coordinates(self._counted(values))

    def outcome_violation(self, values: np.ndarray) -> float:
        """Return by how much targets or predictions miss the constraint, in deviations of y."""
        return self.constraint.judge(self._counted(values)).outcome_violation / self.deviation

    def moved(self, move: np.ndarray) -> np.ndarray:
        """Return y moved by coordinates x, for real targets."""
        targets = self.y.astype(np.float64)
        counted = slice(None) if self.weight is None else self.weight > 0
        targets[counted] += self.span.explained(move)
        self._note_dual(targets, "exact")
        return targets

    def relaxed_labels(self, scores: np.ndarray, offset: np.ndarray) -> np.ndarray | None:
        """Return labels that are allowed once an offset is added to their coordinates, if any are.

        Up to the rounding of the relaxation.
        """
        labels = self.projection.relaxed_labels(scores, offset)
        if labels is None:
            return None
        labels = labels.astype(self.y.dtype)
        self._note_dual(labels, "highs")
        return labels

    def _note_dual(self, targets: np.ndarray, solver: str) -> None:
        self.solver = solver
        self._facts = {
            "violation": self.violation(targets),
            "status": "dual",
            "solver": solver,
            "n_variables": self.span.size,
        }

    def take_facts(self) -> dict[str, Any]:
        """Return what is to be recorded of the last targets, once; nothing where none were made."""
        facts, self._facts = self._facts, {}
        return facts

    @contextmanager
    def timed(self) -> Iterator[None]:
        """Count the wall time of a block as the master's."""
        start = perf_counter()
        yield
        self._seconds += perf_counter() - start

    def take_seconds(self) -> float:
        """Return the wall time spent here since the last call."""
        seconds, self._seconds = self._seconds, 0.0
        return seconds

    def warn_early_stops(self) -> None:
        """Warn once for all projections that a limit stopped, and for those that found nothing."""
        n_closest = self._stopped.count("closest")
        stopped = [status for status in self._stopped if status != "closest"]
        if n_closest:
            warn_caller(
                f"{n_closest} projection(s) found no targets that satisfy the constraint; the "
                "learner was fitted on the closest ones, see history_['violation']. Raise "
                "`threshold` or the solver's `time_limit`, or use a smaller kernel or more rows.",
                ConstraintNotMetWarning,
            )
        if stopped:
            warn_caller(
                f"{len(stopped)} projection(s) stopped at a limit before the gap was "
                f"closed ({', '.join(sorted(set(stopped)))}); their targets satisfy the "
                "constraint but may be further from y than necessary, see history_['gap']. Raise "
                "`time_limit` or `gap` of the solver.",
                ConvergenceWarning,
            )
