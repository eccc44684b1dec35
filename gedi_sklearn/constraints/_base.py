"""What every constraint is: parameters that become a set of allowed coefficients."""

from __future__ import annotations

import copy
from numbers import Real
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, clone

from .._geometry import Block, coefficient_block
from .._validation import (
    NOTION_PARAMETERS,
    Outcomes,
    StrOptions,
    check_nested,
    check_notion,
    check_numbers_or_inf,
    remember_signature,
)
from ..kernels import (
    BaseDesign,
    Design,
    FittedKernel,
    fit_kernel,
    is_degree,
    warn_many_levels,
)
from ..metrics import KernelIndicator, reference_disparity

# What a constraint bounds: what `predict` returns, probabilities, predictions minus y, or the
# share of rows above every cut.
OUTPUTS = ("predictions", "probabilities", "residuals", "distribution")


class Constraint(BaseEstimator):
    """What all constraints share: parameters, the kernel on given rows, the absolute threshold."""

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **NOTION_PARAMETERS,
        "on": [StrOptions(set(OUTPUTS))],
    }
    kernel: Any
    threshold: Any
    relative: bool | int
    subset: Any
    on: str
    # What an error calls it.
    name: ClassVar[str]
    # The norm of its indicator, as in `gedi`.
    norm: ClassVar[str] = "l1"
    # Whether each coefficient has a bound of its own, rather than their sum.
    bounds_each: ClassVar[bool] = False
    # Whether it can be a bound on the share of rows above every cut.
    bounds_cuts: ClassVar[bool] = False
    # Whether one threshold bounds the columns of all classes together.
    joins_classes: ClassVar[bool] = False

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        remember_signature(cls)

    def set_params(self, **params: Any) -> Constraint:
        """Set parameters, those of the kernel as ``kernel__…``.

        Returns
        -------
        self : object
        """
        check_nested(self, params, {"kernel": "SplineKernel()"})
        return super().set_params(**params)

    def __sklearn_clone__(self) -> Self:
        # Each is copied several times in a fit, and scikit-learn reads all signatures to do so.
        return self.changed(**{name: clone(own, safe=False) for name, own in vars(self).items()})

    def changed(self, **params: Any) -> Self:
        """Return the same with other parameters; the others are shared."""
        other = copy.copy(self)
        vars(other).update(params)
        return other

    def validate(self) -> None:
        """Check the parameters' types and ranges.

        Raises
        ------
        ValueError
            With the parameter's name, what it must be and what it is.
        """
        if not self.bounds_each and isinstance(self.threshold, (list, np.ndarray)):
            raise ValueError(
                f"threshold of {type(self).__name__} must be one number, got {self.threshold!r}. "
                "For one bound for each coefficient, use FineConstraint."
            )
        if hasattr(self.kernel, "__array__") and not is_degree(self.kernel):
            raise ValueError(
                f"kernel is a {type(self.kernel).__name__}: precomputed columns serve indicators "
                "only, a constraint needs a transformer or a callable of the attribute."
            )
        self._validate_params()
        check_notion(self.subset, self.on, self.relative)
        if self.on == "distribution" and not (self.bounds_cuts and self.subset is None):
            raise ValueError(
                f"on='distribution' is for DependenceConstraint without subset=; got {self!r}."
            )
        try:
            entries = np.atleast_1d(self.absolute_threshold(1.0))
        except OverflowError as error:  # Python's integers have no end
            raise ValueError(f"threshold is a number that is no float: {error}.") from error
        if np.isnan(entries).any() or (entries < 0).any():
            raise ValueError(f"threshold must be at least 0, got {self.threshold!r}.")

    def absolute_threshold(self, reference: float) -> Any:
        """Return `threshold` times `reference`: a float, or an array of shape (k,)."""
        if isinstance(self.threshold, Real):
            return float(self.threshold) * reference
        return check_numbers_or_inf(self.threshold) * reference

    def design(
        self,
        values: np.ndarray,
        weight: np.ndarray | None,
        covariates: np.ndarray | None,
        outcomes: Outcomes | None,
        kernel: FittedKernel | None = None,
    ) -> Design:
        """Return the kernel on rows, or on those of the subset, beside covariates.

        Parameters
        ----------
        values, weight, covariates
            Attribute, weights and covariates of rows of positive weight; the last two may be None.
        outcomes : Outcomes or None
            Their original targets.
        kernel : FittedKernel, default=None
            One that other rows were fitted on, whose own columns are taken.

        Raises
        ------
        RankDeficientKernelError
            If the kernel's columns are dependent on these rows (rank 0: a constant attribute).
        """
        if self.subset is None or outcomes is None:
            return self._fit(values, weight, kernel).beside(covariates)
        rows = outcomes.rows(self.subset)
        if not rows.any():
            raise ValueError(f"subset={self.subset!r} holds no row of positive weight.")
        own = [None if given is None else given[rows] for given in (weight, covariates)]
        return self._fit(values[rows], own[0], kernel).beside(own[1]).within(rows, weight)

    def _fit(self, values: np.ndarray, weight: Any, kernel: FittedKernel | None) -> Design:
        """Return the kernel on all of the rows."""
        if kernel is not None:
            return fit_kernel(kernel.transform(values), values, weight=weight)
        warn_many_levels(values)
        return fit_kernel(self.kernel, values, weight=weight)

    def outcome_scale(self, kernel: FittedKernel) -> float:
        """Return an indicator of 1 in units of the targets, per deviation of the first column."""
        return float(kernel.scale[0])

    def gauge(
        self, design: BaseDesign, *, is_class: bool, outputs: tuple[int, ...] = (0,)
    ) -> Block:
        """Return the block of the indicator, ‖α̃‖₁, without a bound.

        Parameters
        ----------
        design : BaseDesign
            The kernel on the rows.
        is_class : bool
            Whether the targets are classes: one column is that of the second of two.
        outputs : tuple of int, default=(0,)
            Which columns of the targets it is of.
        """
        return coefficient_block(design, outputs)

    def reference(
        self, design: Design, values: np.ndarray, columns: np.ndarray, *, is_class: bool
    ) -> float:
        """Return the indicator of the original targets that `relative` asks for; 0 within rounding.

        An absolute threshold of 0 leaves its slack on that scale too.
        """
        y, indicator = columns[:, 0], KernelIndicator(design, self.norm)
        if self.norm != "l1":
            return indicator.reference(y)
        known = indicator.reference_of_degree(y, int(self.relative or True))
        if known is not None:
            return known
        return reference_disparity(
            y,
            values,
            kernel=self.kernel,
            relative=self.relative or True,
            weight=design.weight,
            norm=self.norm,
            covariates=None if design.covariates is None else design.covariates.values,
        )

    def block(
        self, design: BaseDesign, *, unit: float, is_class: bool, outputs: tuple[int, ...] = (0,)
    ) -> Block:
        """Return what is bounded on a design, and its set: here the indicator, by the threshold.

        Parameters
        ----------
        design, is_class, outputs
            As in :meth:`gauge`.
        unit : float
            The reference, in outcome units per deviation of the first kernel column.
        """
        gauge = self.gauge(design, is_class=is_class, outputs=outputs)
        radius = float(self.threshold) / gauge.factor
        unit = radius if 0 < radius < np.inf else unit / self.outcome_scale(design.fitted)
        return gauge.bounded_by(radius, unit)

    @property
    def needs_outcomes(self) -> bool:
        """Whether it looks at some of the rows, or at residuals."""
        return self.subset is not None or self.on == "residuals"

    def notion_in_words(self) -> str:
        """Return of which rows, and of what, the indicator is; "" for the predictions of all."""
        of = "" if self.on == "predictions" else f" of {self.on}"
        return of if self.subset is None else f"{of} in subset {self.subset!r}"

    def in_words(self) -> str:
        """Return the constraint as people write it, e.g. "DIDI ≤ 0.2 × DIDI of y"."""
        raise NotImplementedError
