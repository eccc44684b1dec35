"""Declared types and checks of parameters."""

from __future__ import annotations

import numbers
from collections.abc import Callable
from difflib import get_close_matches
from functools import wraps
from inspect import Parameter, Signature, signature
from numbers import Real
from typing import Any

from sklearn.utils._param_validation import (
    Interval,
    InvalidParameterError,
    StrOptions,
    validate_parameter_constraints,
)
from sklearn.utils._param_validation import validate_params as _validate_params

# Parameters of the objects that are given as `constraint` and `solver`, and what to write.
_OF_OBJECTS = {
    "threshold": "constraint=DependenceConstraint({value!r})",
    "kernel": "constraint=DependenceConstraint(kernel={value!r})",
    "degree": "constraint=CoarseConstraint(kernel={value!r})",
    "norm": "constraint=DependenceConstraint() for 'sd', CoarseConstraint() for 'l1'",
    "relative": "constraint=DependenceConstraint(relative={value!r})",
    "subset": "constraint=DependenceConstraint(subset={value!r}, relative=False)",
    "on": "constraint=DependenceConstraint(on={value!r})",
    "constrain": "constraint=DependenceConstraint(on='probabilities')",
    "slack": "constraint=FineConstraint(slack={value!r})",
    "gap": "solver=Solver(gap={value!r})",
    "time_limit": "solver=Solver(time_limit={value!r})",
    "solver_params": "solver=Solver(params={value!r})",
    "sensitive_features": (
        "sensitive_columns=... for columns of X, or pass the values to fit, "
        "fit(X, y, sensitive_features=...)"
    ),
}


# As joblib understands it; 0, which has no meaning, is refused before any fit.
N_JOBS: list[Any] = [
    Interval(numbers.Integral, None, -1, closed="right"),
    Interval(numbers.Integral, 1, None, closed="left"),
    None,
]


def refuse_misplaced(owner: str, given: dict[str, Any]) -> None:
    """Refuse keywords that belong to a constraint or a solver, with the object to write.

    Raises
    ------
    TypeError
    """
    for name, value in given.items():
        if name in _OF_OBJECTS:
            written = _OF_OBJECTS[name].format(value=value)
            raise TypeError(f"{owner} takes no {name!r}. Write {written}.")


def named_in_errors(name: str) -> Callable[[Callable], Callable]:
    """Return the decorator that gives a function its name in errors about its parameters.

    Callers that check no parameters themselves can set their own name.
    """

    def rename(function: Callable) -> Callable:
        function.__qualname__ = name
        return function

    return rename


def check_nested(owner: Any, params: dict[str, Any], objects: dict[str, str]) -> None:
    """Refuse parameters of a parameter that has none, such as those of a name or of None.

    Parameters
    ----------
    owner : estimator
        The object whose `set_params` is called.
    params : dict
        What it is called with.
    objects : dict of str
        By parameter, an object that has parameters.

    Raises
    ------
    ValueError
        If, for example, ``constraint__threshold`` is set where `constraint` is None.
    """
    for name, example in objects.items():
        nested = [key for key in params if key.startswith(f"{name}__")]
        given = params.get(name, getattr(owner, name, None))
        if nested and not hasattr(given, "set_params"):
            raise ValueError(
                f"{nested[0]} cannot be set: {name}={given!r} has no parameters. Pass "
                f"{name}={example} to {type(owner).__name__} to set and search its parameters."
            )


def remember_signature(kind: type) -> None:
    """Keep the signature of a class's own constructor, which `get_params` else inspects each time.

    A `clone` takes three of these, and a small fit several clones.
    """
    constructor = vars(kind).get("__init__")
    if constructor is not None:
        constructor.__signature__ = signature(constructor)


def check_changed(owner: Any) -> None:
    """Check the parameters of an object, but for the defaults of a class of this package."""
    kind = type(owner)
    # Those are valid. A subclass of the caller's may have others.
    is_ours = kind.__module__.startswith(f"{__name__.partition('.')[0]}.")
    declared = signature(kind.__init__).parameters if is_ours else {}
    given = {
        name: own
        for name, own in owner.get_params(deep=False).items()
        if name not in declared or own is not declared[name].default
    }
    validate_parameter_constraints(owner._parameter_constraints, given, kind.__name__)


def validate_params(constraints: dict, *, prefer_skip_nested_validation: bool) -> Callable:
    """Return scikit-learn's decorator, with errors that say which function was called how.

    Parameters
    ----------
    constraints : dict
        Declared ranges by parameter.
    prefer_skip_nested_validation : bool
        As in scikit-learn.
    """

    def decorate(function: Callable) -> Callable:
        declared = signature(function)
        # Else scikit-learn inspects the function again in each call.
        function.__signature__ = declared  # type: ignore[attr-defined]
        checked = _validate_params(
            constraints, prefer_skip_nested_validation=prefer_skip_nested_validation
        )(function)

        @wraps(function)
        def called(*args: Any, **kwargs: Any) -> Any:
            attribute = kwargs.get("sensitive_features")
            if isinstance(attribute, str):
                raise InvalidParameterError(
                    f"The 'sensitive_features' parameter of {function.__qualname__} must be an "
                    f"array-like, the values. Got the name {attribute!r}: pass X[{attribute!r}]."
                )
            try:
                return checked(*args, **kwargs)
            except TypeError:
                _refuse_unbound(function, declared, args, kwargs)
                raise

        return called

    return decorate


def declared_ranges(function: Any) -> dict[str, Any]:
    """Return the declared ranges of all parameters of a function that checks its own."""
    ranges = function._skl_parameter_constraints
    return {name: ranges.get(name, "no_validation") for name in signature(function).parameters}


def check_keywords(constraints: dict, given: dict[str, Any], owner: str) -> None:
    """Check keywords that one function takes for another one, by name and by declared range.

    Parameters
    ----------
    constraints : dict
        Declared ranges of all that there are.
    given : dict
        The caller's.
    owner : str
        Name of the function that takes them, for errors.
    """
    reason = _unknown(list(constraints), given)
    if reason:
        raise TypeError(f"{owner}(): {reason}.")
    validate_parameter_constraints(constraints, given, caller_name=owner)


def _refuse_unbound(function: Callable, declared: Signature, args: tuple, kwargs: dict) -> None:
    """Raise if arguments do not fit the signature, with words that help."""
    try:
        declared.bind(*args, **kwargs)
    except TypeError as error:
        if "constraint" in declared.parameters:
            unknown = {key: own for key, own in kwargs.items() if key not in declared.parameters}
            refuse_misplaced(f"{function.__qualname__}()", unknown)
        reason = _explain(declared.parameters.values(), kwargs) or str(error)
        raise TypeError(f"{function.__qualname__}(): {reason}.") from None


def _explain(parameters: Any, given: dict[str, Any]) -> str:
    """Return what is wrong with the names of arguments: one is unknown, or one is missing."""
    unknown = _unknown([own.name for own in parameters], given)
    if unknown:
        return unknown
    by_name = [own.name for own in parameters if own.kind is Parameter.KEYWORD_ONLY]
    needed = [own.name for own in parameters if own.default is Parameter.empty]
    missing = [name for name in by_name if name in needed and name not in given]
    return f"pass {missing[0]} by name, {missing[0]}=values" if missing else ""


def _unknown(known: list[str], given: dict[str, Any]) -> str:
    """Return what is wrong with the first name that is not known."""
    for name in given:
        if name not in known:
            near = get_close_matches(name, known, n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(known)}"
            return f"unexpected keyword argument {name!r}; {hint}"
    return ""


# The declared types of `subset` and `on`, for indicators and scorers; constraints know one more.
NOTION_PARAMETERS: dict[str, list[Any]] = {
    "subset": [str, Real, "boolean", callable, None],
    "on": [StrOptions({"predictions", "residuals"})],
}


def check_notion(subset: Any, on: str, relative: Any) -> None:
    """Refuse a relative value where the target itself does not depend on the attribute."""
    if (subset is not None or on == "residuals") and relative is not False:
        given = f"subset={subset!r}" if subset is not None else f"on={on!r}"
        raise ValueError(
            f"relative={relative!r} with {given}: the target is constant there (its residual is "
            "0), so a share of it is undefined. Pass relative=False, and a threshold in units of y."
        )
