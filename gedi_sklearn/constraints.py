r"""Which coefficients of the projected targets are allowed.

A constraint knows no solver and no data: it turns, once the kernel is fitted and the reference is
known, into an :class:`AllowedSet`

.. math:: \{ s : \|V s\|_1 \le q \} \quad\text{or}\quad \{ s : |V s| \le b \}

in the standardised coefficients s of :mod:`gedi_sklearn.kernels`, where a projection reads off
its linear rows, its membership, its violation and its support function.
"""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator

from ._validation import HasMethods, Interval, StrOptions, check_numbers
from .kernels import FittedKernel, KernelDesign, fit_groups, fit_kernel
from .metrics._reference import is_negligible, reference_disparity

__all__ = ["AllowedSet", "CoarseConstraint", "DidiConstraint", "FineConstraint"]

_KERNEL_CONSTRAINTS = [StrOptions({"polynomial", "fourier"}), HasMethods(["transform"]), callable]
_SHARED_CONSTRAINTS: dict[str, list[Any]] = {
    "kernel": _KERNEL_CONSTRAINTS,
    "degree": [Interval(Integral, 1, None, closed="left")],
    "relative": ["boolean", Interval(Integral, 1, None, closed="left")],
}


@dataclass(frozen=True)
class AllowedSet:
    r"""Allowed coefficients: an L1 ball (`radius`) or a box (`bounds`) of v = V s.

    Attributes
    ----------
    rows : ndarray of shape (r, k)
        V; directions without a bound have no row.
    radius : float or None
        The ball's radius; None for a box.
    bounds : ndarray of shape (r,) or None
        The box's half widths; None for a ball.
    unit : float
        What counts as 1 on the scale of v, for tolerances.
    forbidden : ndarray of shape (r,) or None
        Rows of a box that have nothing but a slack; None for a ball.
    """

    rows: np.ndarray
    radius: float | None
    bounds: np.ndarray | None
    unit: float
    forbidden: np.ndarray | None = None

    def violation(self, v: np.ndarray) -> float:
        """Return by how much v = V s leaves the set, 0 inside."""
        if self.radius is not None:
            return max(0.0, float(np.abs(v).sum()) - self.radius)
        return max(0.0, float(np.max(np.abs(v) - self.bounds, initial=0.0)))

    def contains(self, v: np.ndarray) -> np.ndarray:
        """Tell for every column of v (r, m) whether it is in the set, shape (m,)."""
        if self.radius is not None:
            return np.abs(v).sum(axis=0) <= self.radius
        assert self.bounds is not None  # it has one of the two
        return (np.abs(v) <= self.bounds[:, None]).all(axis=0)

    def support(self, direction: np.ndarray) -> float:
        """Return max over the set of direction·v, the support function."""
        size = np.abs(direction)
        if self.radius is None:
            return float(size @ self.bounds)
        largest = float(size.max(initial=0.0))
        return self.radius * largest if largest else 0.0  # the radius may be infinite


class Constraint(BaseEstimator):
    """What all constraints share: parameters, the kernel on given rows, the absolute threshold."""

    _parameter_constraints: ClassVar[dict[str, list[Any]]]
    kernel: Any
    degree: int
    threshold: Any
    relative: bool | int
    # What an error calls it.
    name: ClassVar[str]

    def validate(self) -> None:
        """Check the parameters' types and ranges.

        Raises
        ------
        ValueError
            With the parameter's name, what it must be and what it is.
        """
        if self.name != FineConstraint.name and isinstance(self.threshold, (list, np.ndarray)):
            raise ValueError(
                f"constraint={self.name!r} bounds a sum, so threshold must be one number, got "
                f"{self.threshold!r}. An array, one bound for each coefficient, needs "
                "constraint='fine'."
            )
        if hasattr(getattr(self, "kernel", None), "__array__"):
            raise ValueError(
                f"kernel is a {type(self.kernel).__name__}: precomputed columns serve indicators "
                "only, a constraint needs a transformer or a callable of the attribute."
            )
        self._validate_params()
        threshold = self.absolute_threshold(1.0)
        entries = np.atleast_1d(threshold)
        if np.isnan(entries).any() or (entries < 0).any():
            raise ValueError(f"threshold must be at least 0, got {self.threshold!r}.")

    def absolute_threshold(self, reference: float) -> Any:
        """Return `threshold` times `reference`: a float, or an array of shape (k,)."""
        if isinstance(self.threshold, Real):
            return float(self.threshold) * reference
        return check_numbers_or_inf(self.threshold) * reference

    def fit_design(self, values: np.ndarray, weight: np.ndarray | None) -> KernelDesign:
        """Return the kernel on rows of positive weight.

        Raises
        ------
        RankDeficientKernelError
            If the kernel's columns are dependent on these rows (rank 0: a constant attribute).
        """
        return fit_kernel(self.kernel, values, degree=self.degree, weight=weight)

    def design_on(self, kernel: FittedKernel, values: np.ndarray) -> KernelDesign:
        """Return a fitted kernel's own columns on other rows, centred there."""
        return fit_kernel(kernel.transform(values), values)

    def indicator(self, design: KernelDesign, z: np.ndarray, *, integral: bool) -> float:
        """Return the indicator of targets: ‖α̃(z)‖₁."""
        return float(np.abs(design.coefficients(z)).sum())

    def reference(
        self, design: KernelDesign, values: np.ndarray, y: np.ndarray, *, integral: bool
    ) -> float:
        """Return the indicator of the original targets that `relative` asks for; 0 within rounding.

        An absolute threshold of 0 leaves its slack on that scale too.
        """
        return reference_disparity(
            y,
            values,
            kernel=self.kernel,
            degree=self.degree,
            relative=self.relative or True,
            weight=design.weight,
            covariates=getattr(design, "covariates", None),
        )

    def allowed_set(self, kernel: FittedKernel, *, unit: float, integral: bool) -> AllowedSet:
        """Return the set for a fitted kernel; `threshold` is absolute by now."""
        raise NotImplementedError


def check_numbers_or_inf(threshold: Any) -> np.ndarray:
    """Return an array threshold as float64; unlike data it may hold inf."""
    array = np.asarray(threshold)
    if array.dtype.kind not in "fiu":
        return check_numbers(threshold, "threshold", n_columns=1)
    array = array.astype(np.float64)
    finite = check_numbers(np.where(np.isinf(array), 0.0, array), "threshold", n_columns=1)
    return np.where(np.isinf(array.reshape(-1)), array.reshape(-1), finite)


class CoarseConstraint(Constraint):
    r"""Bound on the indicator itself: :math:`\|\tilde\alpha(z)\|_1 \le q`.

    Parameters
    ----------
    kernel : {"polynomial", "fourier"}, transformer or callable, default="polynomial"
        The functions of the attribute whose influence is bounded.
    degree : int, default=1
        Degree (order) of a kernel given by name.
    threshold : float, default=0.2
        The bound q, at least 0; inf allows everything.
    relative : bool or int, default=True
        Whether q is a share of the indicator of the original targets; an integer d takes that
        indicator at degree d, True at degree 1.

    See Also
    --------
    FineConstraint : Bounds the coefficients one by one.
    DidiConstraint : Bounds the disparity of groups.

    Notes
    -----
    Source: Giuliani, Misino and Lombardi (2023), section 4, equations 19 and 20.

    Examples
    --------
    >>> import numpy as np
    >>> from gedi_sklearn import CoarseConstraint, project_targets
    >>> x = np.linspace(-1, 1, 9)
    >>> constraint = CoarseConstraint(degree=2, threshold=0.5, relative=False)
    >>> result = project_targets(2 * x - x**2, sensitive_features=x, constraint=constraint)
    >>> round(float(np.abs(result.coefficients).sum()), 6)
    0.5
    """

    name: ClassVar[str] = "coarse"
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **_SHARED_CONSTRAINTS,
        "threshold": [Interval(Real, 0, np.inf, closed="both")],
    }

    def __init__(
        self,
        *,
        kernel: Any = "polynomial",
        degree: int = 1,
        threshold: float = 0.2,
        relative: bool | int = True,
    ) -> None:
        self.kernel = kernel
        self.degree = degree
        self.threshold = threshold
        self.relative = relative

    def allowed_set(self, kernel: FittedKernel, *, unit: float, integral: bool) -> AllowedSet:
        """Return the L1 ball in raw coefficients.

        Parameters
        ----------
        kernel : FittedKernel
            The fitted kernel.
        unit : float
            The reference indicator, in outcome units for each deviation of the attribute.
        integral : bool
            Whether the targets are 0 or 1; makes no difference here.

        Returns
        -------
        AllowedSet
        """
        radius = float(self.threshold)
        rows = kernel.basis.to_raw if np.isfinite(radius) else np.empty((0, kernel.n_columns))
        positive = 0 < radius < np.inf
        return AllowedSet(rows, radius, None, unit=radius if positive else unit / kernel.scale[0])


class FineConstraint(Constraint):
    r"""Bounds on single coefficients: :math:`|\tilde\alpha_j(z)| \le q_j`.

    Parameters
    ----------
    kernel : {"polynomial", "fourier"}, transformer or callable, default="polynomial"
        The functions of the attribute whose influence is bounded.
    degree : int, default=1
        Degree (order) of a kernel given by name.
    threshold : float or array-like of shape (k,), default=0.2
        A number bounds the first coefficient and forbids all others (a polynomial kernel of one
        attribute). An array gives each coefficient its own bound: 0 forbids, inf frees.
    relative : bool or int, default=True
        Whether every finite entry is a share of the indicator of the original targets; an
        integer d takes that indicator at degree d, True at degree 1.
    slack : float, default=1e-3
        Binary targets only: a forbidden direction may keep this share of the bound, since whole
        rows cannot cancel exactly. Real targets meet the bounds exactly.

    See Also
    --------
    CoarseConstraint : Bounds their sum.

    Notes
    -----
    For binary targets forbidden directions are bounded in the standardised basis, so that unit
    and origin of the attribute change nothing. The paper's equation 23 is not equivalent to its
    equation 22 (see the documentation's errata); this is equation 22. Source: Giuliani, Misino
    and Lombardi (2023), section 4 and appendix, "Optimized Fine-grained Formulation".

    Examples
    --------
    >>> import numpy as np
    >>> from gedi_sklearn import FineConstraint, project_targets
    >>> x = np.linspace(-1, 1, 9)
    >>> constraint = FineConstraint(degree=2, threshold=0.5, relative=False)
    >>> result = project_targets(2 * x - x**2, sensitive_features=x, constraint=constraint)
    >>> np.abs(result.coefficients).round(6)
    array([0.5, 0. ])
    """

    name: ClassVar[str] = "fine"
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **_SHARED_CONSTRAINTS,
        "threshold": [Interval(Real, 0, np.inf, closed="both"), "array-like"],
        "slack": [Interval(Real, 0, 1, closed="both")],
    }

    def __init__(
        self,
        *,
        kernel: Any = "polynomial",
        degree: int = 1,
        threshold: Any = 0.2,
        relative: bool | int = True,
        slack: float = 1e-3,
    ) -> None:
        self.kernel = kernel
        self.degree = degree
        self.threshold = threshold
        self.relative = relative
        self.slack = slack

    def bounds(self, kernel: FittedKernel) -> np.ndarray:
        """Return the bound of every raw coefficient, shape (k,).

        Raises
        ------
        ValueError
            If a scalar threshold meets a kernel that has no first power, or an array has
            another length than the kernel has columns.
        """
        if isinstance(self.threshold, Real):
            if not kernel.is_single_polynomial and kernel.n_columns > 1:
                raise ValueError(
                    "a scalar `threshold` of a fine constraint allows the first power of one "
                    f"attribute and needs a polynomial kernel; got {kernel!r}. Pass an array "
                    f"with one bound for each of its columns {kernel.names}."
                )
            return np.r_[float(self.threshold), np.zeros(kernel.n_columns - 1)]
        bounds = check_numbers_or_inf(self.threshold)
        if bounds.shape != (kernel.n_columns,):
            raise ValueError(
                f"threshold has {bounds.size} entries, but the kernel has {kernel.n_columns} "
                f"columns {kernel.names}; pass one bound for each."
            )
        return bounds

    def allowed_set(self, kernel: FittedKernel, *, unit: float, integral: bool) -> AllowedSet:
        """Return the box, in outcome units for each deviation of a kernel column.

        With d the last coefficient that is not forbidden, the trailing forbidden ones are
        bounded in the standardised basis, where "degrees d + 1 … k vanish" is the same set as in
        the raw one, and the leading ones are those of the polynomial of degree d.

        Parameters
        ----------
        kernel : FittedKernel
            The fitted kernel.
        unit : float
            The reference indicator, in outcome units for each deviation of the attribute.
        integral : bool
            Whether forbidden directions get the slack.

        Returns
        -------
        AllowedSet
        """
        bounds, scale = self.bounds(kernel), kernel.scale
        free = np.flatnonzero(bounds > 0)
        leading = free[-1] + 1 if free.size else 0
        rows = np.eye(kernel.n_columns)
        rows[:leading, :leading] = kernel.basis.to_raw[:leading, :leading] * scale[:leading, None]
        half_widths = bounds * scale
        finite = half_widths[np.isfinite(half_widths)]
        unit = float(finite.max()) if finite.any() else unit
        if integral:
            half_widths[bounds == 0] = self.slack * unit
        bounded = np.isfinite(half_widths)
        return AllowedSet(
            rows[bounded],
            None,
            half_widths[bounded],
            unit=unit,
            forbidden=(bounds == 0)[bounded],
        )


class DidiConstraint(Constraint):
    r"""Bound on the disparity of groups: :math:`\mathrm{DIDI}(z) \le q`.

    The DIDI is :math:`\sum_v |d_v|`, with :math:`d_v` the mean target of group v minus the mean of
    all; for two classes it is summed over both, which doubles it. Rows that agree in all
    attributes, of any type, are a group. The d_v are tied by :math:`\sum_v n_v d_v = 0`.

    Parameters
    ----------
    threshold : float, default=0.2
        The bound q, at least 0; inf allows everything.
    relative : bool, default=True
        Whether q is a share of the DIDI of the original targets.

    See Also
    --------
    CoarseConstraint : Bounds the influence of numeric attributes.
    gedi_sklearn.metrics.didi : What is bounded.

    Notes
    -----
    Source: Giuliani, Misino and Lombardi (2023), section 3; the DIDI is that of Aghaei, Azizi and
    Vayanos (2019).

    Examples
    --------
    >>> import numpy as np
    >>> from gedi_sklearn import DidiConstraint, project_targets
    >>> team = np.array(["a", "a", "b", "b", "c", "c"])
    >>> pay = np.array([1.0, 2.0, 3.0, 4.0, 2.0, 3.0])
    >>> constraint = DidiConstraint(threshold=0.5)
    >>> project_targets(pay, sensitive_features=team, constraint=constraint).targets
    array([1.5, 2.5, 2.5, 3.5, 2. , 3. ])
    """

    name: ClassVar[str] = "didi"
    kernel = None
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "threshold": [Interval(Real, 0, np.inf, closed="both")],
        "relative": ["boolean"],
    }

    def __init__(self, *, threshold: float = 0.2, relative: bool = True) -> None:
        self.threshold = threshold
        self.relative = relative

    def fit_design(self, values: np.ndarray, weight: np.ndarray | None) -> KernelDesign:
        """Return the indicators of the groups on rows of positive weight."""
        return fit_groups(values, weight=weight)

    def design_on(self, kernel: FittedKernel, values: np.ndarray) -> KernelDesign:
        """Return the indicators of the groups that other rows hold."""
        return fit_groups(values)

    def indicator(self, design: KernelDesign, z: np.ndarray, *, integral: bool) -> float:
        """Return the DIDI of targets, in its classification form where they are two classes."""
        deviations = group_rows(design.fitted) @ design.standardized(z)
        return (2.0 if integral else 1.0) * float(np.abs(deviations).sum())

    def reference(
        self, design: KernelDesign, values: np.ndarray, y: np.ndarray, *, integral: bool
    ) -> float:
        """Return the DIDI of the original targets, 0 within rounding."""
        if is_negligible(design, design.standardized(y), y):
            return 0.0
        return self.indicator(design, y, integral=integral)

    def allowed_set(self, kernel: FittedKernel, *, unit: float, integral: bool) -> AllowedSet:
        """Return the L1 ball in the deviations of the groups.

        Parameters
        ----------
        kernel : FittedKernel
            The indicators of the groups.
        unit : float
            The reference, in outcome units for each deviation of the first indicator.
        integral : bool
            Whether the targets are two classes, both of which count.

        Returns
        -------
        AllowedSet
        """
        radius = float(self.threshold) / (2.0 if integral else 1.0)
        rows = group_rows(kernel) if np.isfinite(radius) else np.empty((0, kernel.n_columns))
        positive = 0 < radius < np.inf
        return AllowedSet(rows, radius, None, unit=radius if positive else unit / kernel.scale[0])


def group_rows(kernel: FittedKernel) -> np.ndarray:
    """Return V with d = V s for the deviations of all groups, shape (g, k)."""
    return kernel.basis.evaluate(np.arange(kernel.n_columns + 1.0)[:, None]) - kernel.center_
