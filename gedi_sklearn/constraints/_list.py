"""Several constraints at once, one for each attribute, with names."""

from __future__ import annotations

from typing import Any

from .._validation import _BaseComposition, remember_signature


class ConstraintList(_BaseComposition):
    """One constraint for each attribute, all to be satisfied at once.

    A plain list of constraints is accepted in its place. With names their parameters can be set and
    searched, as ``constraint__age__threshold``.

    Parameters
    ----------
    constraints : list of (str, constraint) pairs
        For each column of the attribute, in their order, a name and a constraint. Where the
        columns have names, they are best used here as well.

    See Also
    --------
    DependenceConstraint : One constraint; of several columns together, where there is no list.

    Examples
    --------
    >>> from gedi_sklearn import ConstraintList, DependenceConstraint, DidiConstraint
    >>> both = ConstraintList([("age", DependenceConstraint()), ("team", DidiConstraint())])
    >>> both.set_params(age__threshold=0.1).constraints[0][1].threshold
    0.1
    """

    def __init__(self, constraints: list[tuple[str, Any]]) -> None:
        self.constraints = constraints

    def validate(self) -> None:
        """Raise if there are no pairs, or if names are not unique."""
        pairs = self.constraints
        is_pairs = isinstance(pairs, (list, tuple)) and all(
            isinstance(pair, (list, tuple)) and len(pair) == 2 and isinstance(pair[0], str)
            for pair in pairs
        )
        if not (is_pairs and pairs):
            raise ValueError(
                "ConstraintList takes a list of (name, constraint) pairs, as "
                f'[("age", DependenceConstraint(0.2))], got {pairs!r}.'
            )
        self._validate_names([name for name, _ in pairs])

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters, those of each constraint as ``name__parameter``.

        Parameters
        ----------
        deep : bool, default=True
            Whether to return those of the constraints, too.

        Returns
        -------
        dict
        """
        return self._get_params("constraints", deep=deep)

    def set_params(self, **params: Any) -> ConstraintList:
        """Set parameters; a name alone replaces its constraint.

        Returns
        -------
        self : object
        """
        self._set_params("constraints", **params)
        return self


remember_signature(ConstraintList)
