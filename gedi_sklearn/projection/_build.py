"""From the `constraint` parameter and those beside it to constraint objects."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from sklearn.base import clone

from ..constraints import CoarseConstraint, Constraint, DidiConstraint, FineConstraint

__all__ = ["NAMED_CONSTRAINTS", "build_constraint", "build_constraints"]

NAMED_CONSTRAINTS = {kind.name: kind for kind in (CoarseConstraint, FineConstraint, DidiConstraint)}
# Parameters that a constraint object carries itself, with their defaults here.
_CARRIED = {"kernel": "polynomial", "degree": 1, "threshold": 0.2, "relative": True, "slack": 1e-3}


def build_constraint(constraint: Any, **carried: Any) -> Constraint:
    """Return a constraint object from the `constraint` parameter and those beside it.

    Raises
    ------
    ValueError
        If a constraint is given together with a parameter that it carries itself or has no use
        for, or a parameter is out of its range.
    """
    if isinstance(constraint, str):
        kind = NAMED_CONSTRAINTS[constraint]
        names = kind._get_param_names()
        if constraint == "didi":
            # The disparity of groups has no kernel; the slack is as idle as beside "coarse".
            _refuse_carried(constraint, carried, _CARRIED.keys() - names - {"slack"})
        built = kind(**{name: carried[name] for name in names})
    else:
        _refuse_carried(constraint, carried, _CARRIED.keys())
        built = clone(constraint)
    built.validate()
    return built


def _refuse_carried(constraint: Any, carried: dict[str, Any], names: Iterable[str]) -> None:
    for name in sorted(names):
        value, default = carried[name], _CARRIED[name]
        if not (isinstance(value, type(default)) and value == default):
            raise ValueError(
                f"{name}={value!r} was given beside constraint={constraint!r}, which carries its "
                f"own or has no use for it. Set {name} on the constraint object only."
            )


def build_constraints(constraint: Any, n_attributes: int, **carried: Any) -> list[Constraint]:
    """Return the constraints that a list of them means, one for each attribute.

    Raises
    ------
    ValueError
        If their number is not that of the attributes, or a parameter is given beside the list.
    """
    if len(constraint) != n_attributes:
        raise ValueError(
            f"constraint is a list of {len(constraint)}, but sensitive_features has "
            f"{n_attributes} column(s): pass one constraint for each, or a single one for all."
        )
    _refuse_carried("[...]", carried, _CARRIED.keys())
    built = []
    for own in constraint:
        if isinstance(own, str) and own in NAMED_CONSTRAINTS:
            own = NAMED_CONSTRAINTS[own]()
        if not isinstance(own, Constraint):
            raise ValueError(
                f"constraint holds {own!r}; a list takes {sorted(NAMED_CONSTRAINTS)} or constraint "
                "objects."
            )
        built.append(build_constraint(own, **carried))
    return built
