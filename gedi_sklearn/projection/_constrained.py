"""Targets under constraints, on the rows that count: what the constraints say of any targets."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from .._validation import (
    attribute_columns,
    check_all_weighted,
    check_attribute,
    check_attribute_columns,
    check_sample_weight,
    check_sensitive,
)
from ..constraints import Constraint
from ..kernels import AttributeEncoder, is_categorical
from ._bound import Bound
from ._build import build_constraint, build_constraints
from ._classwise import ClasswiseBound
from ._several import JointSpan
from ._targets import CLASS_LOSSES, Targets

__all__ = ["ConstrainedTargets"]


class ConstrainedTargets:
    """The original targets, and constraints bound to their rows of positive weight.

    Knows the kernels and the sets, and no solver.

    Parameters
    ----------
    targets : Targets
        The original targets.
    constraint, sensitive_features, conditional_on, sample_weight
        As for :class:`Projection`.
    **carried
        Parameters that a constraint object carries itself.
    """

    def __init__(
        self,
        targets: Targets,
        *,
        constraint: Any,
        sensitive_features: Any,
        conditional_on: Any,
        sample_weight: Any,
        **carried: Any,
    ) -> None:
        self._targets = targets
        self.loss = targets.loss
        n = len(targets.y)
        values = check_sensitive(sensitive_features, n_samples=n, kind="mixed")
        covariates = _check_covariates(conditional_on, n)
        weight = check_sample_weight(sample_weight, n)
        self._rows = slice(None) if weight is None else weight > 0
        self._weight = np.broadcast_to(1.0, n) if weight is None else weight[self._rows]
        if targets.classes is not None:
            check_all_weighted(targets.classes, targets.y[self._rows])
        self._is_list = isinstance(constraint, (list, tuple))
        attributes = self._split(values)
        built = (
            build_constraints(constraint, len(attributes), **carried)
            if self._is_list
            else [build_constraint(constraint, **carried)]
        )
        rows: dict[str, Any] = {
            "weight": None if weight is None else self._weight,
            "covariates": None if covariates is None else covariates[self._rows],
        }
        self._constraints = [
            self._bound(own, attribute[self._rows], **rows)
            for own, attribute in zip(built, attributes, strict=True)
        ]
        self._columns = attribute_columns(sensitive_features)
        if not self._is_list:
            self.kernel_.attribute_columns = self._columns

    @property
    def is_classification(self) -> bool:
        """Whether the targets are classes."""
        return self.loss in CLASS_LOSSES

    def _bound(self, constraint: Constraint, values: np.ndarray, **rows: Any) -> Any:
        """Return a constraint on the rows: one, or for more than two classes one for each."""
        y, n_classes = self._targets.y[self._rows], self._targets.n_classes
        if n_classes <= 2:
            return Bound(constraint, values, y, integral=self.is_classification, **rows)
        if self._is_list:
            raise ValueError(
                f"a list of constraints needs real targets or two classes; y has {n_classes}. "
                "Pass a single constraint; on several attributes it bounds their joint kernel."
            )
        return ClasswiseBound(constraint, values, y, n_classes=n_classes, **rows)

    def _split(self, values: np.ndarray) -> list[np.ndarray]:
        """Return the attribute(s) of each constraint, every one of shape (n, m)."""
        if not self._is_list:
            return [values]
        return [_numbers_where_possible(values[:, [j]]) for j in range(values.shape[1])]

    def _one_or_list(self, values: Iterable[Any]) -> Any:
        """Return the value of the only constraint, or the list of all where a list was given."""
        listed = list(values)
        return listed if self._is_list else listed[0]

    @property
    def kernel_(self) -> Any:
        """The kernel, without any row."""
        return self._one_or_list(own.kernel for own in self._constraints)

    @property
    def constraint_(self) -> Any:
        """The constraint with its absolute threshold."""
        return self._one_or_list(own.constraint for own in self._constraints)

    @property
    def threshold_(self) -> Any:
        """The absolute threshold."""
        return self._one_or_list(own.threshold for own in self._constraints)

    @property
    def reference_(self) -> Any:
        """The indicator of `y` that a relative threshold is a share of."""
        return self._one_or_list(own.reference for own in self._constraints)

    def coefficients(self, z: Any) -> np.ndarray:
        """Return α̃ of targets, shape (k,): of all constraints or classes, one after another.

        Parameters
        ----------
        z : array-like of shape (n,)
            Real targets, or labels.

        Returns
        -------
        ndarray of shape (k,)
        """
        return self._coefficients(self._targets.encode(z)[self._rows])

    def _coefficients(self, z: np.ndarray) -> np.ndarray:
        return np.concatenate([own.coefficients(z) for own in self._constraints])

    def gedi(self, z: Any) -> float:
        """Return the bounded indicator: ‖α̃(z)‖₁, or the DIDI.

        Of several constraints it is the sum; of more than two classes, each against the rest,
        the largest.

        Parameters
        ----------
        z : array-like of shape (n,)
            Real targets, or labels.

        Returns
        -------
        float
        """
        encoded = self._targets.encode(z)[self._rows]
        return float(sum(own.indicator(encoded) for own in self._constraints))

    def gedi_on(
        self, sensitive_features: Any, conditional_on: Any = None
    ) -> Callable[[Any], float]:
        """Return the function that measures targets of other rows as :meth:`gedi` does these.

        Parameters
        ----------
        sensitive_features : array-like of shape (n',) or (n', m)
            The attribute(s) of those rows.
        conditional_on : array-like of shape (n',) or (n', p), default=None
            Their covariates, where the projection has any.

        Returns
        -------
        callable
            From numbers (n',), classes as 0 and 1, to the indicator.
        """
        check_attribute_columns(self._columns, sensitive_features)
        values = check_sensitive(sensitive_features, kind="mixed")
        covariates = _check_covariates(conditional_on, len(values))
        terms = [
            own.indicator_on(attribute, covariates)
            for own, attribute in zip(self._constraints, self._split(values), strict=True)
        ]
        return lambda z: float(sum(term(z) for term in terms))

    def violation(self, z: Any) -> float:
        """Return by how much targets miss the constraint (the worst one), 0 within rounding.

        Parameters
        ----------
        z : array-like of shape (n,)
            Real targets, or labels.

        Returns
        -------
        float
        """
        return self._violation(self._targets.encode(z)[self._rows])

    def satisfied(self, z: Any) -> bool:
        """Tell whether targets satisfy the constraint within rounding.

        Parameters
        ----------
        z : array-like of shape (n,)
            Real targets, or labels.

        Returns
        -------
        bool
        """
        return self.violation(z) == 0.0

    def _violation(self, z: np.ndarray) -> float:
        return max(own.violation(z) for own in self._constraints)

    def joint_span(self) -> JointSpan:
        """Return all that the constraints see of targets, on the rows that count."""
        return JointSpan(self._constraints, self._weight)

    def counted(self, values: np.ndarray) -> np.ndarray:
        """Return the values of the rows of positive weight."""
        return values[self._rows]


def _check_covariates(conditional_on: Any, n_samples: int) -> np.ndarray | None:
    """Return covariates as numbers (n, p): a category is the indicators of its levels."""
    if conditional_on is None:
        return None
    values = check_attribute(conditional_on, n_samples, kind="mixed", name="conditional_on")
    return AttributeEncoder(values).transform(values) if values.dtype.kind == "O" else values


def _numbers_where_possible(values: np.ndarray) -> np.ndarray:
    """Return a numeric attribute that stood beside a categorical one as numbers again."""
    return values if any(map(is_categorical, values.T)) else values.astype(np.float64)
