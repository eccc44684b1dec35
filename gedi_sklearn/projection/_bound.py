"""A constraint on given rows: its kernel there, its absolute threshold, what it says of targets."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import clone

from ..constraints import AllowedSet, Constraint
from ..kernels import ConditionalDesign, FittedKernel, warn_attribute_scale

__all__ = ["VIOLATION_TOLERANCE", "AllowedProduct", "Bound", "describe", "raw_multipliers"]

# Share of the constraint's unit that rounding and a solver's tolerance may leave.
VIOLATION_TOLERANCE = 1e-9


class Bound:
    """One constraint with its kernel on the rows.

    Parameters
    ----------
    constraint : Constraint
        As given, with a threshold that may be relative.
    values : ndarray of shape (n, m)
        The attribute on rows of positive weight.
    y : ndarray of shape (n,)
        Original targets.
    weight : ndarray of shape (n,) or None
        Their weights.
    covariates : ndarray of shape (n, p) or None
        What the targets may depend on.
    integral : bool
        Whether targets are 0 or 1.
    target : str, default="y"
        What an error calls the targets.

    Attributes
    ----------
    design : KernelDesign
        The kernel on the rows.
    reference : float
        What a relative threshold is a share of; 1.0 for an absolute one.
    threshold : float or ndarray of shape (k,)
        The absolute threshold.
    constraint : Constraint
        The constraint with that threshold.
    allowed : AllowedSet
        Its set.

    Raises
    ------
    ValueError
        If a relative threshold meets a reference of 0.
    """

    def __init__(
        self,
        constraint: Constraint,
        values: np.ndarray,
        y: np.ndarray,
        *,
        weight: np.ndarray | None,
        covariates: np.ndarray | None,
        integral: bool,
        target: str = "y",
    ) -> None:
        self.integral = integral
        self.design = constraint.fit_design(values, weight)
        if covariates is not None:
            self.design = ConditionalDesign(self.design, covariates)
        warn_attribute_scale(self.design)
        self._disparity = constraint.reference(self.design, values, y, integral=integral)
        if constraint.relative and self._disparity == 0:
            raise ValueError(
                f"relative=True makes threshold a share of the indicator of {target}, which is 0 "
                "(no dependence on sensitive_features at that degree). Pass an absolute "
                "threshold: relative=False."
            )
        self.reference = self._disparity if constraint.relative else 1.0
        self._deviation = self.design.deviation(y)
        self._set(constraint)

    @property
    def kernel(self) -> FittedKernel:
        """The fitted kernel."""
        return self.design.fitted

    def at(self, threshold: Any) -> Bound:
        """Return the same with another threshold; relative where it was given as relative."""
        other = copy.copy(self)
        constraint = clone(self._given).set_params(threshold=threshold)
        constraint.validate()
        other._set(constraint)
        return other

    def with_share(self, share: float) -> Bound:
        """Return the same with a share of its threshold."""
        other = copy.copy(self)
        absolute = clone(self.constraint).set_params(threshold=np.multiply(self.threshold, share))
        if share != 1.0:
            other._given, other.reference = absolute, 1.0
            other._set(absolute)
        return other

    def _set(self, constraint: Constraint) -> None:
        self._given = constraint
        self.threshold = constraint.absolute_threshold(self.reference)
        self.constraint = clone(constraint).set_params(threshold=self.threshold, relative=False)
        self.allowed: AllowedSet = self.constraint.allowed_set(
            self.kernel,
            unit=self._disparity * self.kernel.scale[0] or self._deviation,
            integral=self.integral,
        )
        # What rounding leaves in v, for targets of size 1.
        rows = self.allowed.rows @ self.kernel.R_inverse
        self._rounding = 10 * float(np.finfo(float).eps * np.linalg.norm(rows, axis=1).sum())

    def coefficients(self, z: np.ndarray) -> np.ndarray:
        """Return α̃ of targets, shape (k,)."""
        return self.design.coefficients(z)

    def indicator(self, z: np.ndarray) -> float:
        """Return the bounded indicator of targets."""
        return self.constraint.indicator(self.design, z, integral=self.integral)

    def indicator_on(
        self, values: np.ndarray, covariates: np.ndarray | None
    ) -> Callable[[np.ndarray], float]:
        """Return the function that measures targets of other rows, in the units of this kernel."""
        design = self.constraint.design_on(self.kernel, values)
        if covariates is not None:
            design = ConditionalDesign(design, covariates)
        return partial(self.constraint.indicator, design, integral=self.integral)

    def violation(self, z: np.ndarray) -> float:
        """Return by how much targets miss the constraint, 0 within rounding."""
        violation = self.allowed.violation(self.allowed.rows @ self.design.standardized(z))
        tolerance = VIOLATION_TOLERANCE * self.allowed.unit + self._rounding * float(
            np.abs(z).max()
        )
        return violation if violation > tolerance else 0.0

    def raw_multipliers(self, multipliers: np.ndarray) -> np.ndarray:
        """Return multipliers of v = V s as those of the coefficients α̃ = T s, shape (k,)."""
        return self.kernel.basis.from_raw.T @ self.allowed.rows.T @ multipliers


@dataclass(frozen=True)
class AllowedProduct:
    """Several allowed sets at once: v, shape (r,), holds the v of each below one another."""

    parts: tuple[AllowedSet, ...]

    def split(self, v: np.ndarray) -> Iterator[tuple[AllowedSet, np.ndarray]]:
        """Yield every set with its rows of v, of shape (r,) or (r, m)."""
        start = 0
        for part in self.parts:
            yield part, v[start : start + len(part.rows)]
            start += len(part.rows)

    def violation(self, v: np.ndarray) -> float:
        """Return by how much v leaves the sets, in the worst one's unit; 0 inside."""
        return max(part.violation(own) / part.unit for part, own in self.split(v))

    def contains(self, v: np.ndarray) -> np.ndarray:
        """Tell for every column of v (r, m) whether it is in all sets, shape (m,)."""
        return np.logical_and.reduce([part.contains(own) for part, own in self.split(v)])

    def slack_units(self) -> np.ndarray:
        """Return what a slack of 1 allows a forbidden row, 0 for the other rows; shape (r,)."""
        return np.concatenate(
            [
                np.zeros(len(part.rows)) if part.forbidden is None else part.forbidden * part.unit
                for part in self.parts
            ]
        )


def raw_multipliers(bounds: Sequence[Bound], multipliers: np.ndarray) -> np.ndarray:
    """Return multipliers of the v of several constraints as those of their coefficients."""
    ends = np.cumsum([len(bound.allowed.rows) for bound in bounds])
    parts = np.split(multipliers, ends[:-1])
    return np.concatenate(
        [bound.raw_multipliers(part) for bound, part in zip(bounds, parts, strict=True)]
    )


def describe(bounds: Sequence[Any]) -> dict[str, Any]:
    """Return what an error says about the problem."""
    listed = [own for bound in bounds for own in getattr(bound, "classes", [bound])]
    thresholds = [bound.threshold for bound in bounds]
    return {
        "constraint": " and the ".join(dict.fromkeys(own.constraint.name for own in listed)),
        "n_rows": bounds[0].design.n_rows,
        "n_columns": sum(bound.kernel.n_columns for bound in bounds),
        "threshold": thresholds[0] if len(bounds) == 1 else thresholds,
        "slack": max(getattr(own.constraint, "slack", 0.0) for own in listed),
    }
