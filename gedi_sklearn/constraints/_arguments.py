"""From the parameters beside `constraint` to constraint objects, and to a constraint on rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import clone

from .._validation import Outcomes, StrOptions
from ..exceptions import RankDeficientKernelError, warn_caller
from ..kernels import Design, FittedKernel, is_categorical, warn_attribute_scale
from ._base import Constraint
from ._didi import DidiConstraint
from ._fitted import ColumnConstraint, FittedConstraint
from ._kernel import CoarseConstraint, FineConstraint

NAMED_CONSTRAINTS = {kind.name: kind for kind in (CoarseConstraint, FineConstraint, DidiConstraint)}
# Parameters that a constraint object carries itself, with their defaults here.
CARRIED = {
    "kernel": "polynomial",
    "degree": 1,
    "norm": "l1",
    "threshold": 0.2,
    "relative": True,
    "slack": 1e-3,
}

# The declared ranges of the parameters, for all functions and estimators that take them.
CONSTRAINT_PARAMETERS: dict[str, list[Any]] = {
    "constraint": [StrOptions(set(NAMED_CONSTRAINTS)), Constraint, list, tuple],
    **{
        name: allowed
        for kind in (CoarseConstraint, FineConstraint)
        for name, allowed in kind._parameter_constraints.items()
        if name in CARRIED
    },
}


def fit_constraint(
    constraint: Any,
    values: np.ndarray,
    y: np.ndarray,
    *,
    weight: np.ndarray | None = None,
    covariates: np.ndarray | None = None,
    n_classes: int = 0,
    outcomes: Outcomes | None = None,
    takes_residuals: bool = False,
    allow_constant: bool = False,
    names: list[str] | None = None,
    **carried: Any,
) -> FittedConstraint:
    """Return the constraint that parameters mean on given rows.

    Parameters
    ----------
    constraint : str, Constraint or list of them
        The `constraint` parameter.
    values : ndarray of shape (n, m)
        The attribute on rows of positive weight.
    y : ndarray of shape (n,)
        Original targets, classes as 0…K − 1.
    weight : ndarray of shape (n,), default=None
        Their weights.
    covariates : ndarray of shape (n, p), default=None
        What the targets may depend on.
    n_classes : int, default=0
        K; 0 for real targets.
    outcomes : Outcomes, default=None
        The original targets, where predictions are of rows that their model has not seen; a
        constraint on some rows needs that.
    takes_residuals : bool, default=False
        Whether residuals can be bounded.
    allow_constant : bool, default=False
        Whether a constant attribute gives the constraint that allows everything, with a warning;
        else it is an error.
    names : list of str, default=None
        Names of the columns of the attribute.
    **carried
        The parameters beside `constraint`.

    Raises
    ------
    ValueError
        If the parameters do not go together, a relative threshold meets a reference of 0, or one
        attribute of several that have constraints of their own is constant.
    RankDeficientKernelError
        If a kernel's columns are dependent on these rows (rank 0: a constant attribute).
    """
    is_list = isinstance(constraint, (list, tuple))
    attributes = split_attributes(values, is_list)
    built = _build(constraint, len(attributes), carried)
    _check_notions(built, outcomes, takes_residuals)
    everything = np.broadcast_to(1.0, len(y)) if weight is None else weight
    fitted = FittedConstraint([], everything, n_classes, is_list, names=names)
    columns = fitted.columns(y)
    listed: list[list[ColumnConstraint]] = []
    try:
        for own, attribute in zip(built, attributes, strict=True):
            design = own.design(attribute, weight, covariates, outcomes)
            listed.append(_fit_columns(own, design, attribute, columns, n_classes > 0))
    except RankDeficientKernelError as error:
        if error.rank > 0 or not allow_constant:
            raise
        subset = built[len(listed)].subset
        beside = "" if subset is None else f" among the rows of subset={subset!r}"
        beside += "" if covariates is None else ", given conditional_on"
        if len(built) > 1:
            name = len(listed) if names is None else repr(names[len(listed)])
            raise ValueError(
                f"column {name} of sensitive_features is constant{beside}, so its "
                "constraint in the list bounds nothing. Leave out the column and its constraint."
            ) from error
        warn_caller(
            f"sensitive_features is constant{beside}, so there is nothing to constrain: the model "
            "is the plain learner, fitted once on the original targets."
        )
        return replace(fitted, given_as_list=False)
    if not is_list:
        listed[0][0].kernel.attribute_columns = names
    origin = y if built[0].on == "residuals" else None
    return replace(fitted, listed=listed, origin=origin)


def _check_notions(
    built: list[Constraint], outcomes: Outcomes | None, takes_residuals: bool
) -> None:
    """Refuse constraints on some rows, or on residuals, where they would mislead."""
    special = [own for own in built if own.needs_outcomes]
    if special and outcomes is None:
        given = f"on={special[0].on!r}" if special[0].subset is None else "subset="
        raise ValueError(
            f"{given} needs predictions of rows that their model has not seen: in-sample ones are "
            "near to y, so that nothing is left to constrain. Use ProjectedRegressor or "
            "ProjectedClassifier with cross-fitted predictions (cv=5), or for subset= Moving "
            "Targets with cv=5 or cv='oob', or boosting with cv=5."
        )
    if len({own.on for own in built}) > 1:
        raise ValueError("on must be the same for all constraints of a list.")
    if built[0].on == "residuals" and not takes_residuals:
        raise ValueError(
            "on='residuals' is for ProjectedRegressor and ProjectedClassifier: a learner that is "
            "fitted on moved targets has other residuals than were moved."
        )


def _fit_columns(
    constraint: Constraint,
    design: Design,
    values: np.ndarray,
    columns: np.ndarray,
    is_class: bool,
) -> list[ColumnConstraint]:
    """Return one constraint on the rows, or one per class, on a kernel that they share."""
    numbers = tuple(range(columns.shape[1]))
    several = len(numbers) > 1 and not constraint.joins_classes
    fitted = []
    for own in [(number,) for number in numbers] if several else [numbers]:
        targets = columns[:, own]
        disparity = 0.0
        if not constraint.needs_outcomes:  # else y is constant where it is measured
            disparity = constraint.reference(design, values, targets, is_class=is_class)
        if constraint.relative and disparity == 0:
            raise ValueError(
                "relative=True makes threshold a share of the indicator of "
                f"{f'class {own[0]} of y' if several else 'y'}, which is 0 (no dependence on "
                "sensitive_features at that degree). Pass an absolute threshold: relative=False."
            )
        reference = disparity if constraint.relative else 1.0
        unit = disparity * constraint.outcome_scale(design.fitted)
        unit = unit or design.deviation(targets[:, 0]) or float(targets[:, 0].std())
        fitted.append(ColumnConstraint(constraint, design, own, is_class, reference, unit))
    if not fitted[0].block.of_coordinates:
        warn_attribute_scale(design, is_joint_bound=not constraint.bounds_each)
    _warn_percent(fitted, columns)
    return fitted


def _warn_percent(fitted: list[ColumnConstraint], columns: np.ndarray) -> None:
    """Warn where a share above 1 allows the original targets: it may be meant in percent."""
    given = fitted[0].given
    entries = np.ravel(given.absolute_threshold(1.0))
    largest = float(entries[np.isfinite(entries)].max(initial=0.0))
    if not given.relative or largest <= 1:
        return
    if all(part.judge(columns).violation == 0.0 for part in fitted):
        warn_caller(
            f"threshold={largest:g} is {100 * largest:,.0f} % of the indicator of y, which y "
            f"itself meets. For {largest:g} % write {largest / 100:g}, for no constraint inf."
        )


def split_attributes(values: np.ndarray, is_list: bool) -> list[np.ndarray]:
    """Return the attribute(s) of each constraint, every one of shape (n, m)."""
    if not is_list:
        return [values]
    columns = [values[:, [j]] for j in range(values.shape[1])]
    # A numeric attribute that stood beside a categorical one becomes numbers again.
    return [own if is_categorical(own[:, 0]) else own.astype(np.float64) for own in columns]


def joint_columns(
    kernel: FittedKernel | list[FittedKernel] | None,
    values: np.ndarray,
    evaluate: Callable[[FittedKernel, np.ndarray], Any],
) -> Any:
    """Return Q of the kernels of all constraints on rows, side by side.

    Parameters
    ----------
    kernel : FittedKernel, list of FittedKernel or None
        That of the only constraint, or one for each of a list; None where there is none.
    values : ndarray of shape (n, m)
        The attributes; of a list a column for each.
    evaluate : callable
        From a kernel and its attribute to Q; of groups, where it is the only kernel, its products.

    Returns
    -------
    ndarray of shape (n, Σk)
    """
    if kernel is None:
        return np.empty((len(values), 0))
    kernels = kernel if isinstance(kernel, list) else [kernel]
    pairs = zip(kernels, split_attributes(values, isinstance(kernel, list)), strict=True)
    columns = [evaluate(each, attribute) for each, attribute in pairs]
    return columns[0] if len(columns) == 1 else np.hstack(columns)


def constraint_in_words(constraint: Any, **carried: Any) -> str:
    """Return e.g. "‖α̃‖₁ ≤ 0.2 × GeDI-V1 of y, polynomial kernel of degree 5".

    Parameters
    ----------
    constraint : str, Constraint or list of them
        The `constraint` parameter, as it is: nothing is checked.
    **carried
        The parameters beside it.
    """
    if isinstance(constraint, (list, tuple)):
        return "; ".join(constraint_in_words(own, **carried) for own in constraint)
    if isinstance(constraint, str):
        constraint = _named(constraint, carried)
    return constraint.in_words()


def _named(name: str, carried: dict[str, Any]) -> Constraint:
    """Return a constraint given by name, with those of the parameters that it takes."""
    kind = NAMED_CONSTRAINTS[name]
    taken = carried.keys() & kind._get_param_names()
    return kind(**{parameter: carried[parameter] for parameter in taken})


def _build(constraint: Any, n_attributes: int, carried: dict[str, Any]) -> list[Constraint]:
    """Return the constraint objects of the `constraint` parameter and those beside it.

    Names share the parameters beside them, of which "didi" has a threshold that may be relative;
    objects carry their own.

    Raises
    ------
    ValueError
        If a constraint is given together with a parameter that it carries itself or has no use
        for, a parameter is out of its range, or the constraints of a list are not as many as the
        attributes.
    """
    is_list = isinstance(constraint, (list, tuple))
    given = constraint if is_list else [constraint]
    if is_list and len(given) != n_attributes:
        raise ValueError(
            f"constraint is a list of {len(given)}, but sensitive_features has "
            f"{n_attributes} column(s): pass one constraint for each, or a single one for all."
        )
    built = [_build_one(own, carried) for own in given]
    # What one constraint of a list has no use for, another one may.
    idle = set.intersection(set(CARRIED), *map(_idle, given))
    _refuse_carried(constraint, carried, idle)
    if "fine" in given:
        _refuse_carried("fine", carried, ["norm"])
    for own in built:
        own.validate()
    return built


def _idle(constraint: Any) -> set[str]:
    """Return the names of the carried parameters that a constraint does not take."""
    if not isinstance(constraint, str):
        return set(CARRIED)
    # The disparity of groups has no kernel; the slack is idle beside "coarse" as well.
    return CARRIED.keys() - set(NAMED_CONSTRAINTS[constraint]._get_param_names()) - {"slack"}


def _build_one(constraint: Any, carried: dict[str, Any]) -> Constraint:
    if isinstance(constraint, str) and constraint in NAMED_CONSTRAINTS:
        return _named(constraint, carried)
    if isinstance(constraint, Constraint):
        return clone(constraint)
    raise ValueError(
        f"constraint holds {constraint!r}; a list takes {sorted(NAMED_CONSTRAINTS)} or "
        "constraint objects."
    )


def _refuse_carried(constraint: Any, carried: dict[str, Any], names: Iterable[str]) -> None:
    for name in sorted(names):
        value, default = carried[name], CARRIED[name]
        if not (isinstance(value, type(default)) and value == default):
            raise ValueError(
                f"{name}={value!r} was given beside constraint={constraint!r}, which carries its "
                f"own or has no use for it. Set {name} on the constraint object only."
            )
