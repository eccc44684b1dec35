"""The master's side of Moving Targets: one projection, solved again and again."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cached_property
from time import perf_counter
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from ..exceptions import RankDeficientKernelError, warn_caller
from ..projection import Projection
from ..projection._several import JointSpan

# What the history keeps of a projection.
_FACTS = ("objective", "bound", "gap", "violation", "status", "solver", "n_variables")


class Master:
    """One :class:`Projection` for a whole fit, closed at its end.

    A constant attribute cannot be influenced by anything, so there is no projection: every
    target is allowed, and the wrapped model is the plain learner.

    Parameters
    ----------
    y : ndarray of shape (n,)
        Original targets, classes as 0…K − 1.
    sensitive_features : ndarray of shape (n, m)
        The attribute.
    **options
        Keywords of :class:`Projection`.

    Attributes
    ----------
    kernel, constraint, threshold, reference
        What the projection resolved; without one None, None, inf and NaN.
    solver : str
        What solved the last projection; "" before the first.
    """

    def __init__(self, y: np.ndarray, sensitive_features: np.ndarray, **options: Any) -> None:
        self.y = y
        self.solver = ""
        self._facts: dict[str, Any] = {}
        self._stopped: list[str] = []
        start = perf_counter()
        try:
            self._projection = Projection(y, sensitive_features=sensitive_features, **options)
        except RankDeficientKernelError as error:
            if error.rank > 0:
                raise
            self._projection = None
            given = "" if options.get("conditional_on") is None else ", given conditional_on"
            warn_caller(
                f"sensitive_features is constant{given}, so there is nothing to constrain: the "
                "inner estimator is fitted once, on the original targets."
            )
        self._seconds = perf_counter() - start

    @property
    def kernel(self) -> Any:
        """The fitted kernel."""
        return None if self._projection is None else self._projection.kernel_

    @property
    def constraint(self) -> Any:
        """The constraint with its absolute threshold."""
        return None if self._projection is None else self._projection.constraint_

    @property
    def threshold(self) -> Any:
        """The absolute threshold."""
        return np.inf if self._projection is None else self._projection.threshold_

    @property
    def reference(self) -> float:
        """The indicator that a relative threshold is a share of."""
        return np.nan if self._projection is None else self._projection.reference_

    def __enter__(self) -> Master:
        if self._projection is not None:
            self._projection.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        if self._projection is not None:
            self._projection.__exit__(*error)

    def allows(self, targets: np.ndarray) -> bool:
        """Tell whether targets or hard predictions satisfy the constraint."""
        return self._projection is None or self._projection.satisfied(targets)

    def gedi(self, targets: np.ndarray) -> float:
        """Return the indicator of targets or hard predictions; NaN for a constant attribute."""
        return np.nan if self._projection is None else self._projection.gedi(targets)

    def gedi_on(self, attribute: np.ndarray, covariates: Any) -> Callable[[np.ndarray], float]:
        """Return the function that measures targets of other rows."""
        if self._projection is None:
            return lambda targets: np.nan
        return self._projection.gedi_on(attribute, covariates)

    def violation(self, targets: np.ndarray) -> float:
        """Return by how much targets or hard predictions miss the constraint."""
        return 0.0 if self._projection is None else self._projection.violation(targets)

    def solve(self, scores: np.ndarray | None = None, target_weight: float = 1.0) -> np.ndarray:
        """Return the allowed targets nearest to the learner's scores and to y."""
        assert self._projection is not None  # a constant attribute allows everything
        with self.timed(), warnings.catch_warnings():
            # Said once at the end of the fit, see `warn_early_stops`.
            warnings.simplefilter("ignore", ConvergenceWarning)
            # Of interest where the learner follows, which `warn_collapse` looks at.
            warnings.filterwarnings("ignore", "the projection leaves a single row", UserWarning)
            result = self._projection.solve(scores, target_weight)
        self._facts = {name: getattr(result, name) for name in _FACTS}
        self.solver = result.solver
        if result.status not in ("optimal", "gap"):
            self._stopped.append(result.status)
        return result.targets

    @cached_property
    def span(self) -> JointSpan:
        """All that the constraint sees of targets."""
        assert self._projection is not None  # a constant attribute allows everything
        return self._projection.joint_span()

    @cached_property
    def deviation(self) -> float:
        """The deviation of y."""
        y = self.counted(self.y)
        return float(np.sqrt(self.span.share @ (y - self.span.share @ y) ** 2))

    def counted(self, values: np.ndarray) -> np.ndarray:
        """Return the values of the rows of positive weight."""
        assert self._projection is not None  # a constant attribute allows everything
        return self._projection.counted(values)

    def coordinates(self, values: np.ndarray) -> np.ndarray:
        """Return the coordinates of targets or predictions, shape (K,)."""
        return self.span.coordinates(self.counted(values))

    def moved(self, change: np.ndarray) -> np.ndarray:
        """Return y plus a change of the rows that count, for real targets."""
        assert self._projection is not None  # a constant attribute allows everything
        targets = self._projection.moved_targets(change)
        self._note_dual(targets, "exact")
        return targets

    def relaxed_labels(self, scores: np.ndarray, offset: np.ndarray) -> np.ndarray | None:
        """Return the labels that are allowed once an offset is added to their v, if there are any.

        Up to the rounding of the relaxation.
        """
        assert self._projection is not None  # a constant attribute allows everything
        labels = self._projection.relaxed_labels(scores, offset)
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
            "n_variables": self.span.q.shape[1],
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
        """Warn once for all projections that a limit stopped."""
        if self._stopped:
            warn_caller(
                f"{len(self._stopped)} projection(s) stopped at a limit before the gap was "
                f"closed ({', '.join(sorted(set(self._stopped)))}); their targets satisfy the "
                "constraint but may be further from y than necessary, see history_['gap']. Raise "
                "`time_limit` (or the limit in `solver_params`) or `gap`.",
                ConvergenceWarning,
            )
