"""A constraint on given rows: its kernel there, its absolute threshold, what it says of targets."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from sklearn.base import clone

from ..exceptions import IllConditionedKernelWarning, warn_caller
from ..kernels import ConditionalDesign, FittedKernel, KernelDesign, warn_attribute_scale
from ._base import Constraint
from ._sets import AllowedSet, Product
from ._span import CoordinateSet, JointSpan

__all__ = ["VIOLATION_TOLERANCE", "ColumnConstraint", "FittedConstraint"]

# Share of the constraint's unit that rounding and a solver's tolerance may leave.
VIOLATION_TOLERANCE = 1e-9
# Share of the unit from which rounding is worth a warning.
_ROUNDING_SHOWS = 1e-5


class ColumnConstraint:
    """One constraint on some columns of the targets, with its kernel on the rows.

    Real targets and two classes are one column; of more classes each has its own constraint, but
    for those that bound all of them together.

    Parameters
    ----------
    constraint : Constraint
        As given, with a threshold that may be relative.
    design : KernelDesign
        The kernel on the rows.
    values : ndarray of shape (n, m)
        The attribute there.
    targets : ndarray of shape (n, c)
        Original targets, the columns of this constraint.
    columns : tuple of int
        Which columns of all targets these are.
    is_class : bool
        Whether they stand for classes.
    name : str, default="y"
        What an error calls the targets.

    Attributes
    ----------
    reference : float
        What a relative threshold is a share of; 1.0 for an absolute one.
    threshold : float or ndarray of shape (k,)
        The absolute threshold.
    constraint : Constraint
        The constraint with that threshold.
    allowed : AllowedSet
        The set of v, those of all columns one after another.
    coordinate_set : CoordinateSet
        The same as seen from the orthonormal coordinates of one column.
    """

    allowed: AllowedSet

    def __init__(
        self,
        constraint: Constraint,
        design: KernelDesign,
        values: np.ndarray,
        targets: np.ndarray,
        *,
        columns: tuple[int, ...],
        is_class: bool,
        name: str = "y",
    ) -> None:
        self.design = design
        self.columns = columns
        self.is_class = is_class
        self._disparity = constraint.reference(design, values, targets, is_class=is_class)
        if constraint.relative and self._disparity == 0:
            raise ValueError(
                f"relative=True makes threshold a share of the indicator of {name}, which is 0 "
                "(no dependence on sensitive_features at that degree). Pass an absolute "
                "threshold: relative=False."
            )
        self.reference = self._disparity if constraint.relative else 1.0
        self._deviation = design.deviation(targets[:, 0])
        self._set_threshold(constraint)

    @property
    def kernel(self) -> FittedKernel:
        """The fitted kernel."""
        return self.design.fitted

    def at(self, threshold: Any) -> ColumnConstraint:
        """Return the same with another threshold; relative where it was given as relative."""
        other = copy.copy(self)
        constraint = clone(self._given).set_params(threshold=threshold)
        constraint.validate()
        other._set_threshold(constraint)
        return other

    def scaled(self, share: float) -> ColumnConstraint:
        """Return the same with the set shrunk to a share of its size."""
        other = copy.copy(self)
        other.allowed = self.allowed.scaled(share)
        return other

    def seen_through(self, design: KernelDesign) -> ColumnConstraint:
        """Return the same with other columns in the place of the kernel's orthonormal ones."""
        other = copy.copy(self)
        other.design = design
        return other

    def _set_threshold(self, constraint: Constraint) -> None:
        self._given = constraint
        self.threshold = constraint.absolute_threshold(self.reference)
        self.constraint = clone(constraint).set_params(threshold=self.threshold, relative=False)
        self.allowed, to_v, from_v = self.constraint.allowed(
            self.design,
            unit=self._disparity * self.kernel.scale[0] or self._deviation,
            is_class=self.is_class,
            n_columns=len(self.columns),
        )
        self.coordinate_set = CoordinateSet(
            self.allowed, to_v, from_v, self.kernel.R_, self.kernel.R_inverse
        )
        self.to_v = to_v
        # What rounding leaves in v, for targets of size 1.
        norms = np.linalg.norm(self.coordinate_set.rows, axis=1)
        bounded = self.allowed.bounded[: len(norms)]
        self._rounding = float(np.finfo(float).eps * norms[bounded].sum())

    def v(self, columns: np.ndarray) -> np.ndarray:
        """Return v of targets (n, c), that of every column one after another."""
        return np.concatenate([self.to_v @ self.design.standardized(own) for own in columns.T])

    def coefficients(self, columns: np.ndarray) -> np.ndarray:
        """Return α̃ of every column, one after another."""
        return np.concatenate([self.design.coefficients(own) for own in columns.T])

    def indicator(self, columns: np.ndarray) -> float:
        """Return the bounded indicator of targets."""
        return self.constraint.indicator(self.design, columns, is_class=self.is_class)

    def violation(self, columns: np.ndarray) -> float:
        """Return by how much targets miss the constraint, 0 within rounding."""
        violation = self.allowed.violation(self.v(columns))
        largest = float(np.abs(columns).max())
        tolerance = VIOLATION_TOLERANCE * self.allowed.unit + 10 * self._rounding * largest
        return violation if violation > tolerance else 0.0

    def rounding(self, columns: np.ndarray) -> float:
        """Return what the conversion to raw units may leave in v, in units of the set."""
        if self.design.fitted.conversion_is_harmless:
            return 0.0
        return self._rounding * max(map(self.design.deviation, columns.T)) / self.allowed.unit


class FittedConstraint:
    """Constraints on given rows: one, several at once, or one per class.

    Parameters
    ----------
    listed : sequence of sequence of ColumnConstraint
        For every constraint as given, its parts: one, or one per class.
    weight : ndarray of shape (n,)
        Weights of the rows, all positive.
    n_classes : int
        Number of classes; 0 for real targets.
    given_as_list : bool
        Whether constraints were given as a list: then so are the kernel, the thresholds and the
        references.

    Without any constraint, which is what a constant attribute leaves, every target is allowed.
    """

    def __init__(
        self,
        listed: Sequence[Sequence[ColumnConstraint]],
        *,
        weight: np.ndarray,
        n_classes: int,
        given_as_list: bool,
    ) -> None:
        self.listed = listed
        self.weight = weight
        self.n_classes = n_classes
        self._given_as_list = given_as_list

    @property
    def parts(self) -> list[ColumnConstraint]:
        """The parts of all constraints."""
        return [part for parts in self.listed for part in parts]

    def _each(self, value: Callable[[Sequence[ColumnConstraint]], Any], default: Any) -> Any:
        """Return a value of the only constraint, or a list of those of all."""
        values = [value(parts) for parts in self.listed]
        if self._given_as_list:
            return values
        return values[0] if values else default

    @property
    def kernel(self) -> Any:
        """The fitted kernel, or one per constraint; None for a constant attribute."""
        return self._each(lambda parts: parts[0].kernel, None)

    @property
    def constraint(self) -> Any:
        """The constraint with its absolute threshold, a list of one per class."""
        return self._each(lambda parts: _one_or_all([own.constraint for own in parts]), None)

    @property
    def threshold(self) -> Any:
        """The absolute threshold, of every class where there is one per class."""
        return self._each(lambda parts: _one_or_array([own.threshold for own in parts]), np.inf)

    @property
    def reference(self) -> Any:
        """What relative thresholds are shares of."""
        return self._each(lambda parts: _one_or_array([own.reference for own in parts]), np.nan)

    @cached_property
    def allowed(self) -> Product:
        """The sets of all parts."""
        return Product([part.allowed for part in self.parts])

    @cached_property
    def span(self) -> JointSpan:
        """All that the constraints see of real targets, or of two classes."""
        return JointSpan(self.parts, self.weight)

    def replaced(self, change: Callable[[ColumnConstraint], ColumnConstraint]) -> FittedConstraint:
        """Return the same with every part changed."""
        return FittedConstraint(
            [[change(part) for part in parts] for parts in self.listed],
            weight=self.weight,
            n_classes=self.n_classes,
            given_as_list=self._given_as_list,
        )

    def at(self, threshold: Any) -> FittedConstraint:
        """Return the same with another threshold; relative where it was given as relative."""
        return self.replaced(lambda part: part.at(threshold))

    def columns(self, z: np.ndarray) -> np.ndarray:
        """Return targets as columns: real ones or two classes as one, else one per class."""
        if self.n_classes <= 2:
            return z[:, None]
        return (z[:, None] == np.arange(self.n_classes)).astype(np.float64)

    def _own(self, z: np.ndarray) -> list[tuple[ColumnConstraint, np.ndarray]]:
        columns = self.columns(z)
        return [(part, columns[:, part.columns]) for part in self.parts]

    def coefficients(self, z: np.ndarray) -> np.ndarray:
        """Return α̃ of targets: of all constraints and classes, one after another."""
        return np.concatenate([np.empty(0), *(part.coefficients(z) for part, z in self._own(z))])

    def indicator(self, z: np.ndarray) -> float:
        """Return the bounded indicator: the sum over constraints, of the worst class each."""
        columns = self.columns(z)
        values = self._each_worst(lambda part: part.indicator(columns[:, part.columns]))
        return float(sum(values)) if self.listed else float("nan")

    def _each_worst(self, value: Callable[[ColumnConstraint], float]) -> list[float]:
        return [max(map(value, parts)) for parts in self.listed]

    def indicator_on(
        self, attributes: Sequence[np.ndarray], covariates: np.ndarray | None
    ) -> Callable[[np.ndarray], float]:
        """Return the function that measures targets of other rows, in the units of these kernels.

        Parameters
        ----------
        attributes : sequence of ndarray of shape (n', m)
            The attribute(s) of every constraint on those rows.
        covariates : ndarray of shape (n', p) or None
            Their covariates.
        """
        designs = []
        for parts, values in zip(self.listed, attributes, strict=bool(self.listed)):
            design = parts[0].constraint.design_on(parts[0].kernel, values)
            designs.append(design if covariates is None else ConditionalDesign(design, covariates))

        def measure(z: np.ndarray) -> float:
            columns = self.columns(z)
            values = [
                max(
                    part.constraint.indicator(
                        design, columns[:, part.columns], is_class=part.is_class
                    )
                    for part in parts
                )
                for parts, design in zip(self.listed, designs, strict=True)
            ]
            return float(sum(values)) if values else float("nan")

        return measure

    def violation(self, z: np.ndarray) -> float:
        """Return by how much targets miss the constraint (the worst one), 0 within rounding."""
        return max((part.violation(own) for part, own in self._own(z)), default=0.0)

    def relative_violation(self, z: np.ndarray) -> float:
        """Return :meth:`violation` in units of the constraint missed most, mostly its threshold."""
        missed = [part.violation(own) / part.allowed.unit for part, own in self._own(z)]
        return max(missed, default=0.0)

    def outcome_violation(self, z: np.ndarray) -> float:
        """Return :meth:`violation` in units of the targets, per deviation of a kernel column."""
        missed = [
            part.violation(own) / float(np.abs(part.to_v[:, 0]).max()) for part, own in self._own(z)
        ]
        return max(missed, default=0.0)

    def warn_rounding(self, z: np.ndarray) -> None:
        """Warn where targets miss the constraint, or may do so by what rounding hides."""
        violation = self.violation(z)
        if violation > 0:
            warn_caller(IllConditionedKernelWarning.from_violation(violation))
            return
        hidden = max((part.rounding(own) for part, own in self._own(z)), default=0.0)
        if hidden > _ROUNDING_SHOWS:
            warn_caller(IllConditionedKernelWarning.from_error(hidden))

    def raw_multipliers(self, multipliers: np.ndarray) -> np.ndarray:
        """Return multipliers of orthonormal coordinates as those of α̃; both (k,) per column."""
        return self._by_kernel(multipliers, lambda k, mu: k.basis.from_raw.T @ (k.R_.T @ mu))

    def raw_correction(self, correction: np.ndarray) -> np.ndarray:
        """Return β with F̃β = Qc from c; both (k,) per column."""
        return self._by_kernel(correction, lambda k, c: k.to_raw(k.R_inverse @ c))

    def _by_kernel(
        self, stacked: np.ndarray, change: Callable[[FittedKernel, np.ndarray], np.ndarray]
    ) -> np.ndarray:
        kernels = [part.kernel for part in self.parts for _ in part.columns]
        ends = np.cumsum([0, *(kernel.n_columns for kernel in kernels)])
        own = [
            change(kernel, stacked[start:end])
            for kernel, start, end in zip(kernels, ends[:-1], ends[1:], strict=True)
        ]
        return np.concatenate([np.empty(0), *own])

    def describe(self) -> dict[str, Any]:
        """Return what an error says about the problem."""
        parts = self.parts
        return {
            "constraint": " and the ".join(dict.fromkeys(own.constraint.name for own in parts)),
            "n_rows": len(self.weight),
            "n_columns": sum(own[0].kernel.n_columns for own in self.listed),
            "threshold": self.threshold,
            "slack": max(getattr(own.constraint, "slack", 0.0) for own in parts),
        }


def _one_or_all(values: list[Any]) -> Any:
    return values[0] if len(values) == 1 else values


def _one_or_array(values: list[Any]) -> Any:
    return values[0] if len(values) == 1 else np.array(values)


def with_covariates(design: KernelDesign, covariates: np.ndarray | None) -> KernelDesign:
    """Return a kernel beside covariates, and warn of an attribute in a hostile unit."""
    if covariates is not None:
        design = ConditionalDesign(design, covariates)
    warn_attribute_scale(design)
    return design
