"""A constraint on given rows: its kernel there, its absolute threshold, what it says of targets."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from .._geometry import Block, Span, capacity, pieces
from .._validation import Outcomes, are_whole
from ..exceptions import ConstraintNotMetWarning, IllConditionedKernelWarning, warn_caller
from ..kernels import Design, GroupColumns
from ..metrics import Limits, limits_of_sizes, lower_limits, upper_limits
from ._constraints import Constraint

# Share of the constraint's unit that rounding and a solver's tolerance may leave.
VIOLATION_TOLERANCE = 1e-9
# Share of the unit from which rounding is worth a warning.
_ROUNDING_SHOWS = 1e-5
# Predictions are said to miss the constraint from this share of the bound on, where a bound counts
# as at least a tenth of the constraint's unit, and from this number of rows on.
_EXCESS_SHOWS, _LEAST_BOUND, _LEAST_ROWS = 0.1, 0.1, 50
# Labels of a larger share of the rows are not rare.
_RARE = 0.25


@dataclass(eq=False)
class ColumnConstraint:
    """One constraint on some columns of the targets, with its kernel on the rows.

    Real targets and two classes are one column; of more classes each has its own constraint, but
    for those that bound all of them together.

    Parameters
    ----------
    given : Constraint
        As given, with a threshold that may be relative.
    design : Design
        The kernel on the rows.
    outputs : tuple of int
        Which columns of all targets these are.
    is_class : bool
        Whether they stand for classes.
    reference : float
        What a relative threshold is a share of; 1.0 for an absolute one.
    unit : float
        The size of the original targets' indicator, in outcome units per deviation of the first
        kernel column.

    Attributes
    ----------
    threshold : float or ndarray of shape (k,)
        The absolute threshold.
    constraint : Constraint
        The constraint with that threshold.
    block : Block
        What it bounds of these columns, and what it allows.
    """

    given: Constraint
    design: Design
    outputs: tuple[int, ...]
    is_class: bool
    reference: float
    unit: float

    def __post_init__(self) -> None:
        self.kernel = self.design.fitted
        self.threshold = self.given.absolute_threshold(self.reference)
        self.constraint = self.given.changed(threshold=self.threshold, relative=False)
        self.block = self.constraint.block(
            self.design, unit=self.unit, is_class=self.is_class, outputs=self.outputs
        )
        self.bounds_anything = bool(self.block.allowed.bounded.any())

    @property
    def allowed(self) -> Any:
        """The set of v, those of all columns one after another."""
        return self.block.allowed

    def at(self, threshold: Any) -> ColumnConstraint:
        """Return the same with another threshold; relative where it was given as relative."""
        given = self.given.changed(threshold=threshold)
        given.validate()
        return replace(self, given=given)

    def with_block(self, block: Block) -> ColumnConstraint:
        """Return the same with another block in the place of its own."""
        other = copy.copy(self)
        other.block = block
        return other

    @cached_property
    def gauge(self) -> Block:
        """The block of the indicator on the rows."""
        return self.gauge_on(self.design)

    def gauge_on(self, design: Design) -> Block:
        """Return the block of the indicator on other rows."""
        return self.given.gauge(design, is_class=self.is_class, outputs=self.outputs)

    def judge(self, columns: np.ndarray) -> Judgement:
        """Return what the constraint says of all columns."""
        block, own, unit = self.block, self.block.of(columns), self.allowed.unit
        v, coefficients = block.measure(columns)
        violation = self.allowed.violation(v)
        tolerance = VIOLATION_TOLERANCE * unit + 10 * block.rounding * float(np.abs(own).max())
        hidden = 0.0
        if not block.is_exact:
            hidden = block.rounding * max(map(self.design.deviation, own.T)) / unit
        if violation <= tolerance:
            return Judgement(coefficients, 0.0, 0.0, hidden)
        # What a unit of the targets makes, per deviation of a kernel column.
        per_outcome = float(np.abs(block.v(np.eye(1, block.size)[0])).max())
        return Judgement(coefficients, violation, violation / per_outcome, hidden)

    def v(self, columns: np.ndarray) -> np.ndarray:
        """Return v of all columns, from their coordinates, shape (r,)."""
        block = self.block
        coordinates = map(block.design.coordinates, block.of(columns).T)
        return np.concatenate([block.v(c) for c in coordinates])

    def intervals(
        self, columns: np.ndarray, confidence: float, groups: np.ndarray | None = None
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Return what is bounded of all columns, limits from both sides, and the bounds.

        `confidence` is that of each limit; the upper ones are those of :meth:`upper_limits`.
        """
        return *limits_of_sizes(self.block, columns, confidence, groups), self.allowed.limits

    def is_empty(self, columns: np.ndarray) -> bool:
        """Tell whether labels as rare as these meet every bound however they are arranged."""
        limits = self.allowed.limits
        kept = np.isfinite(limits)
        most = capacity(self.block, columns, enough=limits.max(initial=0.0, where=kept))
        return bool((most[kept] <= limits[kept]).all())

    def upper_limits(
        self, columns: np.ndarray, confidence: float, groups: np.ndarray | None = None
    ) -> Limits:
        """Return upper confidence limits of what is bounded, in the shape of the bounds.

        They hold together, also for predictions that were corrected on these rows; `groups` are
        clusters of these.
        """
        return upper_limits(self.block, columns, confidence, simultaneous=True, groups=groups)

    def excess(self, columns: np.ndarray) -> tuple[float, float, float, float] | None:
        """Return by how much predictions exceed a bound, where that is worth a warning.

        Returns
        -------
        share, size, low, bound : float
            The excess as a share of the bound, what is bounded, its lower 95 % confidence limit,
            and the bound. None where the draw of the rows explains it.
        """
        sizes, limits = self.allowed.sizes(self.block.measure(columns)[0]), self.allowed.limits
        bounded, share = np.isfinite(limits), np.zeros(len(limits))
        least = np.maximum(limits[bounded], _LEAST_BOUND * self.allowed.unit)
        share[bounded] = (sizes - limits)[bounded] / least
        if not (share > _EXCESS_SHOWS).any():
            return None
        low = lower_limits(self.block, columns)
        worst = int(np.where(low > limits, share, -np.inf).argmax())
        if not (low[worst] > limits[worst] and share[worst] > _EXCESS_SHOWS):
            return None
        return float(share[worst]), float(sizes[worst]), float(low[worst]), limits[worst]


class Judgement(NamedTuple):
    """What a constraint says of targets, or what several say: of each number the largest.

    Attributes
    ----------
    coefficients : ndarray of shape (k,)
        α̃ of every column (and every constraint), one after another.
    violation : float
        By how much the constraint is missed, 0 within rounding.
    outcome_violation : float
        The same in units of the targets, per deviation of a kernel column.
    rounding : float
        What the conversion to raw units may hide, in the set's own unit.
    """

    coefficients: np.ndarray
    violation: float
    outcome_violation: float
    rounding: float

    def warn_rounding(self) -> None:
        """Warn where targets miss the constraint, or may do so by what rounding hides."""
        if self.violation > 0:
            warn_caller(IllConditionedKernelWarning.from_violation(self.violation))
        elif self.rounding > _ROUNDING_SHOWS:
            warn_caller(IllConditionedKernelWarning.from_error(self.rounding))


@dataclass(eq=False)
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
    origin : ndarray of shape (n,), default=None
        Targets that are subtracted before anything is bounded; None for nothing.
    names : list of str, default=None
        Names of the columns of the attribute; None where they have none.

    Without any constraint, which is what a constant attribute leaves, every target is allowed.
    """

    listed: Sequence[Sequence[ColumnConstraint]]
    weight: np.ndarray
    n_classes: int
    given_as_list: bool
    origin: np.ndarray | None = None
    names: list[str] | None = None

    def __post_init__(self) -> None:
        self.parts = [part for parts in self.listed for part in parts]
        self.kernel = self._each("kernel", lambda shared: shared[0], None)
        self.constraint = self._each("constraint", list, None)
        self.threshold = self._each("threshold", np.array, np.inf)
        self.reference = self._each("reference", np.array, np.nan)

    def _each(self, name: str, join: Callable[[list[Any]], Any], default: Any) -> Any:
        """Return what the parts of the only constraint have, joined, or a list for all of them."""
        values = [[getattr(part, name) for part in parts] for parts in self.listed]
        joined = [own[0] if len(own) == 1 else join(own) for own in values]
        if self.given_as_list:
            return joined
        return joined[0] if joined else default

    @cached_property
    def span(self) -> Span:
        """All that the constraints see of real targets, or of two classes."""
        return Span([part.block for part in self.parts if part.bounds_anything], self.weight)

    @property
    def in_span(self) -> np.ndarray:
        """Which kernel columns of all parts are in the span: those of parts that bound anything."""
        bounded = [np.full(p.kernel.n_columns, p.bounds_anything) for p in self.parts]
        return np.concatenate([np.empty(0, dtype=bool), *bounded])

    def of_all(self, multipliers: np.ndarray) -> np.ndarray:
        """Return multipliers of the span as those of all parts: 0 where nothing is bounded."""
        bounded = self.in_span
        full = np.zeros(len(bounded))
        full[bounded] = multipliers
        return full

    @property
    def orthonormal(self) -> np.ndarray:
        """Q of the kernel of every constraint, side by side, shape (n, Σk)."""
        bases = [parts[0].design.orthonormal for parts in self.listed]
        return np.hstack([np.empty((len(self.weight), 0)), *bases])

    @property
    def group_columns(self) -> GroupColumns | None:
        """The same as its products, where the only constraint is that on groups."""
        if len(self.listed) != 1:
            return None
        return self.listed[0][0].design.group_columns

    def by_column(self, stacked: np.ndarray) -> np.ndarray:
        """Return numbers of all parts, (k,) per column, as those that belong to `orthonormal`.

        Returns
        -------
        ndarray of shape (Σk,) or (K, Σk)
            One row for each of more than two classes.
        """
        n_columns = self.n_classes if self.n_classes > 2 else 1
        sizes = [parts[0].kernel.n_columns for parts in self.listed]
        own = zip(pieces(stacked, [n_columns * k for k in sizes]), sizes, strict=True)
        rows = [np.empty((n_columns, 0)), *(piece.reshape(n_columns, k) for piece, k in own)]
        found = np.hstack(rows)
        return found if n_columns > 1 else found[0]

    def at(self, threshold: Any) -> FittedConstraint:
        """Return the same with another threshold; relative where it was given as relative."""
        return replace(self, listed=[[p.at(threshold) for p in parts] for parts in self.listed])

    def scaled(self, share: float | np.ndarray) -> FittedConstraint:
        """Return the same with sets shrunk to a share of their size, one or one of each part."""
        shares = iter(np.broadcast_to(share, len(self.parts)).tolist())

        def shrunk(part: ColumnConstraint) -> ColumnConstraint:
            return part.with_block(part.block.altered(allowed=part.allowed.scaled(next(shares))))

        other = copy.copy(self)  # thresholds and references stay what they were
        vars(other).pop("span", None)
        other.listed = [[shrunk(part) for part in parts] for parts in self.listed]
        other.parts = [part for parts in other.listed for part in parts]
        return other

    def columns(self, z: np.ndarray) -> np.ndarray:
        """Return what is bounded of targets: one column, or of more than two classes one each."""
        columns = self._as_columns(z)
        return columns if self.origin is None else columns - self._as_columns(self.origin)

    def _as_columns(self, z: np.ndarray) -> np.ndarray:
        if self.n_classes <= 2:
            return z[:, None]
        return (z[:, None] == np.arange(self.n_classes)).astype(np.float64)

    def from_origin(self, z: np.ndarray) -> np.ndarray:
        """Return what is bounded of real targets."""
        return z if self.origin is None else z - self.origin

    def coordinates(self, z: np.ndarray) -> np.ndarray:
        """Return its coordinates in the joint span, shape (K,)."""
        return self.span.coordinates(self.from_origin(z))

    def judge(self, z: np.ndarray) -> Judgement:
        """Return what the constraints say of targets."""
        columns, nothing = self.columns(z), Judgement(np.empty(0), 0.0, 0.0, 0.0)
        judged = [nothing, *(part.judge(columns) for part in self.parts)]
        coefficients, *numbers = zip(*judged, strict=True)
        return Judgement(np.concatenate(coefficients), *map(max, numbers))

    def emptiness(self, z: np.ndarray) -> str:
        """Return, in words, that no labels as rare as z could exceed a bound; "" where some could.

        Also where z holds no labels, and for bounds so wide that no labels at all exceed them.
        """
        bounding = [part for part in self.parts if part.bounds_anything]
        if not self.n_classes or self.origin is not None or not bounding or not are_whole(z):
            return ""
        counts = np.bincount(z.astype(int), minlength=self.n_classes)
        if len(z) - counts.max() > _RARE * len(z):
            return ""
        columns = self.columns(z)
        if not all(part.is_empty(columns) for part in bounding):
            return ""
        halves = np.broadcast_to(np.arange(len(z))[:, None] % 2.0, columns.shape)
        if all(part.is_empty(halves) for part in bounding):
            return ""
        if len(counts) == 2:
            return f"{counts.min()} of {len(z)} rows are labelled {counts.argmin()}"
        usual = int(counts.argmax())
        return f"{len(z) - counts[usual]} of {len(z)} rows are not labelled {usual}"

    def warn_excess(self, z: np.ndarray, what_to_do: str, reason: str) -> None:
        """Warn where predictions for the rows are beyond a bound by a tenth and by chance.

        The bound is that of the constraint that they exceed most. With few rows nothing is said.
        """
        if len(self.weight) < _LEAST_ROWS:
            return
        columns = self.columns(z)
        found = [own for part in self.parts if (own := part.excess(columns)) is not None]
        if found:
            _, size, low, bound = max(found)
            warn_caller(
                ConstraintNotMetWarning.from_size(
                    size=size, low=low, bound=bound, what_to_do=what_to_do, reason=reason
                )
            )

    def indicator(self, z: np.ndarray, gauges: Sequence[list[Block]] | None = None) -> float:
        """Return the bounded indicator: the sum over constraints, of the worst class each.

        Parameters
        ----------
        z : ndarray of shape (n,)
            Targets.
        gauges : sequence of list of Block, default=None
            What :meth:`gauges_on` returned for the rows of z; None on the rows of this object.
        """
        columns = self.columns(z)
        own = gauges or [[part.gauge for part in parts] for parts in self.listed]
        return _joined([[block.indicator(columns) for block in blocks] for blocks in own])

    def indicator_at(self, coordinates: np.ndarray) -> float:
        """Return the same from coordinates of all columns, shape (Σk, C), without their rows."""
        own = pieces(coordinates, [parts[0].kernel.n_columns for parts in self.listed])
        pairs = zip(self.listed, own, strict=True)
        return _joined([[part.gauge.indicator_at(c) for part in parts] for parts, c in pairs])

    def gauges_on(
        self,
        attributes: Sequence[np.ndarray],
        covariates: np.ndarray | None,
        outcomes: Outcomes | None,
    ) -> list[list[Block]]:
        """Return blocks on other rows, for :meth:`indicator` in the units of these kernels.

        Parameters
        ----------
        attributes : sequence of ndarray of shape (n', m)
            The attribute(s) of every constraint on those rows.
        covariates : ndarray of shape (n', p) or None
            Their covariates.
        outcomes : Outcomes or None
            Their original targets; needed by constraints on some rows.
        """
        gauges = []
        for parts, values in zip(self.listed, attributes, strict=bool(self.listed)):
            given, kernel = parts[0].given, parts[0].kernel
            design = given.design(values, None, covariates, outcomes, kernel)
            gauges.append([part.gauge_on(design) for part in parts])
        return gauges

    def raw_multipliers(self, multipliers: np.ndarray) -> np.ndarray:
        """Return multipliers of orthonormal coordinates as those of α̃; both (k,) per column."""
        return self._by_kernel(multipliers, lambda own, mu: own.raw_multipliers(mu))

    def raw_correction(self, correction: np.ndarray) -> np.ndarray:
        """Return β with F̃β = Qc from c; both (k,) per column."""
        return self._by_kernel(correction, lambda own, c: own.raw_correction(c))

    def _by_kernel(self, stacked: np.ndarray, change: Callable[..., np.ndarray]) -> np.ndarray:
        kernels = [part.kernel for part in self.parts for _ in part.outputs]
        lengths = [kernel.n_columns for kernel in kernels]
        own = zip(kernels, pieces(stacked, lengths), strict=True)
        return np.concatenate([np.empty(0), *(change(kernel, piece) for kernel, piece in own)])

    def describe(self) -> dict[str, Any]:
        """Return what an error says about the problem."""
        parts = self.parts
        return {
            "constraint": " and the ".join(dict.fromkeys(own.constraint.name for own in parts)),
            "n_rows": len(self.weight),
            "n_columns": sum(own[0].kernel.n_columns for own in self.listed),
            "threshold": self.threshold,
            "slack": max((getattr(own.constraint, "slack", 0.0) for own in parts), default=0.0),
        }


def _joined(indicators: list[list[float]]) -> float:
    """Return the sum over constraints of the worst of each; NaN where there is none."""
    return float(sum(map(max, indicators))) if indicators else float("nan")
