"""A constraint on several classes: on the 0/1 column of every class, one against the rest."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.base import clone

from ..constraints import AllowedSet, Constraint, DidiConstraint
from ..kernels import FittedKernel, KernelDesign
from ._bound import AllowedProduct, Bound

__all__ = ["ClasswiseBound"]


class ClasswiseBound:
    """One constraint for each class; it answers like a :class:`Bound`, for targets 0…K − 1.

    The indicator of every class has its own reference and threshold. The DIDI is summed over the
    classes, so there is one threshold for all.

    Parameters
    ----------
    constraint, values, weight, covariates
        As for :class:`Bound`.
    y : ndarray of shape (n,)
        Original targets, 0…K − 1.
    n_classes : int
        K.

    Attributes
    ----------
    classes : list of Bound
        One a class.
    threshold, reference : ndarray of shape (K,) or (K, k), or float
        Of every class; of all for the DIDI.
    allowed : AllowedProduct
        The allowed v of all classes, one below the other.
    """

    def __init__(
        self,
        constraint: Constraint,
        values: np.ndarray,
        y: np.ndarray,
        *,
        n_classes: int,
        weight: np.ndarray | None,
        covariates: np.ndarray | None,
    ) -> None:
        self._is_didi = isinstance(constraint, DidiConstraint)
        # Of the DIDI only the group means of a class are needed, not a bound of its own.
        own = DidiConstraint(threshold=1.0, relative=False) if self._is_didi else constraint
        self.classes = [
            Bound(
                own,
                values,
                (y == c).astype(np.float64),
                weight=weight,
                covariates=covariates,
                integral=not self._is_didi,
                target=f"class {c} of y",
            )
            for c in range(n_classes)
        ]
        self._given = constraint
        self._disparity = self.indicator(y)
        if self._is_didi and constraint.relative and self._disparity == 0:
            raise ValueError(
                "relative=True makes threshold a share of the DIDI of y, which is 0. Pass an "
                "absolute threshold: relative=False."
            )

    @property
    def design(self) -> KernelDesign:
        """The kernel on the rows, the same for every class."""
        return self.classes[0].design

    @property
    def kernel(self) -> FittedKernel:
        """The fitted kernel."""
        return self.design.fitted

    @property
    def reference(self) -> Any:
        """What relative thresholds are shares of."""
        if self._is_didi:
            return self._disparity if self._given.relative else 1.0
        return np.array([own.reference for own in self.classes])

    @property
    def threshold(self) -> Any:
        """The absolute thresholds."""
        if self._is_didi:
            return self._given.absolute_threshold(self.reference)
        return np.array([own.threshold for own in self.classes])

    @property
    def constraint(self) -> Any:
        """The constraint with its absolute threshold, a list of one a class but for the DIDI."""
        if self._is_didi:
            return clone(self._given).set_params(threshold=self.threshold, relative=False)
        return [own.constraint for own in self.classes]

    @property
    def allowed(self) -> AllowedProduct:
        """The allowed v of all classes."""
        if not self._is_didi:
            return AllowedProduct(tuple(own.allowed for own in self.classes))
        radius = float(self.threshold)
        rows = np.vstack([own.allowed.rows for own in self.classes])
        unit = radius if 0 < radius < np.inf else self._disparity or 1.0
        return AllowedProduct((AllowedSet(rows, radius, None, unit=unit),))

    def at(self, threshold: Any) -> ClasswiseBound:
        """Return the same with another threshold; relative where it was given as relative."""
        other = copy.copy(self)
        other._given = clone(self._given).set_params(threshold=threshold)
        other._given.validate()
        if not self._is_didi:
            other.classes = [own.at(threshold) for own in self.classes]
        return other

    def coefficients(self, z: np.ndarray) -> np.ndarray:
        """Return α̃ of every class, shape (K·k,)."""
        return np.concatenate([own.coefficients(z == c) for c, own in enumerate(self.classes)])

    def indicator(self, z: np.ndarray) -> float:
        """Return the indicator of the worst class, or the DIDI of all."""
        values = [own.indicator((z == c) * 1.0) for c, own in enumerate(self.classes)]
        return sum(values) if self._is_didi else max(values)

    def indicator_on(
        self, values: np.ndarray, covariates: np.ndarray | None
    ) -> Callable[[np.ndarray], float]:
        """Return the function that measures targets of other rows, in the units of this kernel."""
        terms = [own.indicator_on(values, covariates) for own in self.classes]
        combine = sum if self._is_didi else max
        return lambda z: float(combine(term((z == c) * 1.0) for c, term in enumerate(terms)))

    def violation(self, z: np.ndarray) -> float:
        """Return by how much targets miss the constraint, 0 within rounding."""
        if self._is_didi:
            missed = self.indicator(z) - float(self.threshold)
            return missed if missed > 1e-9 * self.allowed.parts[0].unit else 0.0
        return max(own.violation((z == c) * 1.0) for c, own in enumerate(self.classes))
