"""From the parameter `constraint` to a constraint on rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from difflib import get_close_matches
from numbers import Real
from typing import Any

import numpy as np
from sklearn.base import clone

from .._validation import Outcomes
from ..exceptions import RankDeficientKernelError, ZeroReferenceError, warn_caller
from ..kernels import Design, FittedKernel, is_categorical, warn_attribute_scale
from ._constraints import Constraint, ConstraintList, DependenceConstraint
from ._fitted import ColumnConstraint, FittedConstraint

# What to write in the place of a name that comes to mind.
_BY_NAME = {
    "coarse": "CoarseConstraint",
    "l1": "CoarseConstraint",
    "fine": "FineConstraint",
    "didi": "DidiConstraint",
    "groups": "DidiConstraint",
}
# Who bounds what others cannot.
_WHERE = {
    "probabilities": "ProjectedClassifier, ConstrainedBoostingClassifier and "
    "LagrangianDualClassifier bound the probability of the second of two classes. Use one of "
    "these, or on='predictions'.",
    "residuals": "only ProjectedRegressor and ProjectedClassifier bound residuals, which change "
    "when a learner is fitted on corrected targets. Use one of these, or on='predictions'.",
    "distribution": "only ProjectedRegressor, and ProjectedClassifier of two classes, bound the "
    "share of rows above every cut, with a single DependenceConstraint. Use one of these, or "
    "on='predictions'.",
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
    bounds: tuple[str, ...] = ("predictions",),
    allow_constant: bool = False,
    names: list[str] | None = None,
) -> FittedConstraint:
    """Return a constraint on given rows.

    Parameters
    ----------
    constraint : Constraint, ConstraintList, list of Constraint or None
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
    bounds : tuple of str, default=("predictions",)
        What the caller can bound: what `on` of the constraint may be.
    allow_constant : bool, default=False
        Whether a constant attribute gives the constraint that allows everything, with a warning;
        else it is an error.
    names : list of str, default=None
        Names of the columns of the attribute.

    Raises
    ------
    ValueError
        If the constraint is none, or parameters do not go together, a relative threshold meets a
        reference of 0, or one attribute of several that have constraints of their own is constant.
    RankDeficientKernelError
        If a kernel's columns are dependent on these rows (`is_constant` where an attribute is).
    """
    given = check_constraint(constraint)
    is_list = isinstance(given, list)
    attributes = split_attributes(values, is_list)
    built = given if isinstance(given, list) else [given]
    _check_attributes(constraint, built, attributes, names)
    for own in built:
        own.validate()
    _check_notions(built, outcomes, bounds)
    everything = np.broadcast_to(1.0, len(y)) if weight is None else weight
    fitted = FittedConstraint([], everything, n_classes, is_list, names=names)
    columns = fitted.columns(y)
    # For a search of classes a pass over the rows is nothing.
    target = None if n_classes else y
    listed: list[list[ColumnConstraint]] = []
    try:
        for own, attribute in zip(built, attributes, strict=True):
            design = own.design(attribute, weight, covariates, outcomes, target=target)
            listed.append(_fit_columns(own, design, attribute, columns, n_classes > 0))
    except RankDeficientKernelError as error:
        if not error.is_constant or not allow_constant:
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


def refit_constraint(
    fitted: FittedConstraint,
    values: np.ndarray,
    y: np.ndarray,
    *,
    weight: np.ndarray | None,
    covariates: np.ndarray | None,
    outcomes: Outcomes | None,
) -> FittedConstraint:
    """Return the same constraints, which need no check, on other rows; see :func:`fit_constraint`.

    Relative thresholds are shares of the indicators of these rows' targets.
    """
    everything = np.broadcast_to(1.0, len(y)) if weight is None else weight
    origin = None if fitted.origin is None else y
    other = replace(fitted, listed=[], weight=everything, origin=None)
    columns, listed = other.columns(y), []
    attributes = split_attributes(values, fitted.given_as_list)
    for parts, attribute in zip(fitted.listed, attributes, strict=True):
        given = parts[0].given
        design = given.design(attribute, weight, covariates, outcomes)
        listed.append(_fit_columns(given, design, attribute, columns, fitted.n_classes > 0))
    return replace(other, listed=listed, origin=origin)


def check_constraint(constraint: Any, owner: str = "") -> Constraint | list[Constraint]:
    """Return a copy of the constraint, or of those of a list; the default in the place of None.

    Parameters
    ----------
    constraint : object
        The `constraint` parameter.
    owner : str, default=""
        Whose it is, for errors.

    Raises
    ------
    ValueError
        If it is none; the message has the object to write.
    """
    if constraint is None:
        return DependenceConstraint()
    if isinstance(constraint, ConstraintList):
        constraint.validate()
        constraint = [own for _, own in constraint.constraints]
    if isinstance(constraint, (list, tuple)) and constraint:
        return [_checked(own, owner) for own in constraint]
    return _checked(constraint, owner)


def bounded_output(constraint: Any) -> str:
    """Return the `on` of a constraint, which all of a list share; nothing is checked or copied."""
    if isinstance(constraint, ConstraintList):
        constraint = [own for _, own in constraint.constraints]
    if isinstance(constraint, (list, tuple)) and constraint:
        constraint = constraint[0]
    return constraint.on if isinstance(constraint, Constraint) else "predictions"


def _checked(constraint: Any, owner: str) -> Constraint:
    """Return a copy of one constraint."""
    if isinstance(constraint, Constraint):
        return clone(constraint)
    whose = f" of {owner}" if owner else ""
    raise ValueError(
        f"constraint{whose} must be a constraint object, got {constraint!r}. Write "
        f"constraint={_object_to_write(constraint)}."
    )


def _object_to_write(given: Any) -> str:
    """Return the constraint that is meant by what was given in its place."""
    if isinstance(given, type):
        return f"{given.__name__}()" if issubclass(given, Constraint) else "DependenceConstraint()"
    if isinstance(given, str):
        near = get_close_matches(given.lower(), _BY_NAME, n=1, cutoff=0.75)
        return f"{_BY_NAME[near[0]] if near else 'DependenceConstraint'}(0.2)"
    if isinstance(given, Real) and given is not True and given is not False:
        return f"DependenceConstraint({given!r})"
    if isinstance(given, (list, tuple)):
        return "ConstraintList([(name, DependenceConstraint()), ...])"
    if isinstance(given, dict):
        if all(isinstance(own, Constraint) for own in given.values()):
            return "ConstraintList([(name, constraint), ...]), in the order of sensitive_columns"
        return f"DependenceConstraint({', '.join(f'{key}={own!r}' for key, own in given.items())})"
    if hasattr(given, "transform"):
        return f"DependenceConstraint(kernel={given!r})"
    return "DependenceConstraint()"


def _check_attributes(
    constraint: Any, built: list[Constraint], attributes: list[np.ndarray], names: list[str] | None
) -> None:
    """Refuse a list of constraints that does not match the columns of the attribute."""
    if len(built) != len(attributes):
        raise ValueError(
            f"constraint is a list of {len(built)}, but sensitive_features has "
            f"{len(attributes)} column(s): pass one constraint for each, or a single one for all."
        )
    given = [name for name, _ in getattr(constraint, "constraints", [])]
    if names is not None and given != names and sorted(given) == sorted(names):
        raise ValueError(
            f"constraint is for {given}, but the columns of the attribute are {names}: give both "
            "in the same order."
        )


def _check_notions(
    built: list[Constraint], outcomes: Outcomes | None, bounds: tuple[str, ...]
) -> None:
    """Refuse constraints on some rows, or on outputs, that the caller cannot bound."""
    on = {own.on for own in built}
    if len(on) > 1:
        raise ValueError("on must be the same for all constraints of a list.")
    special = [own for own in built if own.needs_outcomes]
    if special and outcomes is None:
        given = f"on={special[0].on!r}" if special[0].subset is None else "subset="
        raise ValueError(
            f"{given} needs out-of-fold predictions: in-sample ones are close to y, so that "
            "nothing remains to constrain. Use ProjectedRegressor or ProjectedClassifier with "
            "cross-fitted predictions (cv=5), or for subset= Moving Targets with cv=5 or cv='oob', "
            "or boosting with cv=5."
        )
    if not on <= set(bounds):
        raise ValueError(f"on={built[0].on!r} cannot be bounded here: {_WHERE[built[0].on]}")


def _fit_columns(
    constraint: Constraint, design: Design, values: np.ndarray, columns: np.ndarray, is_class: bool
) -> list[ColumnConstraint]:
    """Return one constraint on the rows, or one per class, on a kernel that they share."""
    numbers = tuple(range(columns.shape[1]))
    several = len(numbers) > 1 and not constraint.joins_classes
    fitted = []
    for own in [(number,) for number in numbers] if several else [numbers]:
        targets = columns[:, own[0] : own[-1] + 1]
        disparity = 0.0
        if not constraint.needs_outcomes:  # else y is constant where it is measured
            disparity = constraint.reference(design, values, targets, is_class=is_class)
        if constraint.relative and disparity == 0:
            raise ZeroReferenceError(
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
            f"threshold={largest:g} is {100 * largest:,.0f} % of the indicator of y, a bound that "
            f"y itself meets. For {largest:g} % write {largest / 100:g}, for no constraint inf."
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


def constraint_in_words(constraint: Any) -> str:
    """Return e.g. "S(z) ≤ 0.2 × S(y), spline kernel"; of what is no constraint its `repr`."""
    if constraint is None:
        return DependenceConstraint().in_words()
    if isinstance(constraint, ConstraintList):
        return "; ".join(f"{name}: {own.in_words()}" for name, own in constraint.constraints)
    if isinstance(constraint, (list, tuple)):
        return "; ".join(map(constraint_in_words, constraint))
    return constraint.in_words() if isinstance(constraint, Constraint) else repr(constraint)
