"""Which part of an estimator has the constraint, and the indicator that it bounds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from inspect import signature
from typing import Any

import numpy as np
from sklearn import get_config
from sklearn.base import clone
from sklearn.exceptions import UndefinedMetricWarning
from sklearn.pipeline import Pipeline

from .._constrained_estimator import ConstrainedEstimator
from .._predictions import asks_for_attribute
from .._validation import check_attribute, check_group_codes, select_columns
from ..constraints import (
    Constraint,
    ConstraintList,
    DependenceConstraint,
    DidiConstraint,
    split_attributes,
)
from ..exceptions import RankDeficientKernelError, warn_caller
from ..metrics import (
    GediInference,
    LinearIndicator,
    check_sample,
    didi,
    fit_gedi,
    gedi,
    group_indicator,
)

_NULL_DRAWS = 10_000


@dataclass(frozen=True)
class ConstrainedPart:
    """The part of an estimator that has the constraint whose threshold is varied.

    It may be the estimator itself, or be inside pipelines, searches and other wrappers. Then
    pipelines prefix the keywords of its `fit`, its X may differ from the X of the whole estimator,
    and it can be corrected for another threshold only if no wrapper clones it.

    Attributes
    ----------
    name : str
        The threshold's name among the parameters of the whole estimator.
    path : str
        The name of the part there; "" if it is the whole estimator.
    part : estimator
        The part, unfitted: the user's own object, which is never changed.
    wrappers : tuple of estimators
        The estimators around it, from the outside in.
    constraint : Constraint
        The constraint.
    position : int or None
        Which one of a list of constraints it is, and so of the attributes; None where it is the
        only one.
    """

    name: str
    path: str
    part: Any
    wrappers: tuple[Any, ...]
    constraint: Constraint
    position: int | None

    @property
    def sees_X(self) -> bool:
        """Whether the part is fitted on the columns of the X of the whole estimator."""
        return not any(isinstance(wrapper, Pipeline) for wrapper in self.wrappers)

    @property
    def is_reusable(self) -> bool:
        """Whether one fit serves all thresholds: the part can do that, and no wrapper clones it."""
        if not hasattr(self.part, "_correct_at") or self.position is not None:
            return False
        if self.part.confidence is not None:  # a certificate looks at the data anew
            return False
        return all(isinstance(wrapper, Pipeline) for wrapper in self.wrappers)

    def of(self, estimator: Any) -> Any:
        """Return the corresponding part of a clone of the whole estimator."""
        return estimator.get_params()[self.path] if self.path else estimator

    @property
    def fit_takes_attribute(self) -> bool:
        """Whether `fit` needs `sensitive_features`, as the part has no `sensitive_columns`."""
        named = getattr(self.part, "sensitive_columns", None) is not None
        return not named and "sensitive_features" in signature(self.part.fit).parameters

    @property
    def fit_takes_groups(self) -> bool:
        """Whether `fit` makes folds of groups, and gets them: without routing not in a search."""
        if "groups" not in signature(self.part.fit).parameters:
            return False
        is_routed = get_config()["enable_metadata_routing"]
        return is_routed or all(isinstance(wrapper, Pipeline) for wrapper in self.wrappers)

    @property
    def predict_takes_attribute(self) -> bool:
        """Whether `predict` needs `sensitive_features`.

        Raises
        ------
        ValueError
            If the `predict` of a wrapper does not pass it on.
        """
        if not asks_for_attribute(self.part):
            return False
        for wrapper in self.wrappers:
            if not isinstance(wrapper, Pipeline):
                raise ValueError(
                    f"{type(wrapper).__name__}.predict does not pass the attribute on to "
                    f"{type(self.part).__name__}. Name its column there with sensitive_columns=, "
                    "or set sensitive_at_predict=False."
                )
        return True

    def keyword(self, name: str) -> str:
        """Return the name of a keyword of the part's `fit` in the `fit` of the whole estimator."""
        if get_config()["enable_metadata_routing"]:
            return name
        steps = zip(self.wrappers, self.path.split("__"), strict=False)
        prefixes = [step for wrapper, step in steps if isinstance(wrapper, Pipeline)]
        return "__".join([*prefixes, name])


def with_constraints(estimator: Any) -> Any:
    """Return a clone of an estimator in which no part leaves its constraint to the default."""
    estimator = clone(estimator)
    parts = {"": estimator, **estimator.get_params()}
    unset = [
        f"{path}__constraint".removeprefix("__")
        for path, part in parts.items()
        if isinstance(part, ConstrainedEstimator) and part.constraint is None
    ]
    return estimator.set_params(**{name: DependenceConstraint() for name in unset})


def find_constrained_part(estimator: Any, param_name: str | None) -> ConstrainedPart:
    """Find the part of an estimator whose threshold is varied.

    Parameters
    ----------
    estimator : estimator
        The whole estimator, from :func:`with_constraints`.
    param_name : str or None
        The threshold's name among its parameters; None finds it.

    Returns
    -------
    ConstrainedPart

    Raises
    ------
    ValueError
        If there is no such parameter, if there are several, or if a search sets it.
    """
    params = estimator.get_params()
    objects = {"": estimator} | {
        name: value for name, value in params.items() if hasattr(value, "get_params")
    }
    if param_name is None:
        param_name = _only_threshold(estimator, objects)
    elif param_name not in params:
        known = sorted(name for name in params if name.split("__")[-1] == "threshold")
        raise ValueError(
            f"param_name={param_name!r} is no parameter of {type(estimator).__name__}; its "
            f"thresholds are {known}."
        )
    owners = [
        name
        for name in objects
        if param_name.startswith(f"{name}__" if name else "")
        and not isinstance(objects[name], (Constraint, ConstraintList))
    ]
    *around, path = sorted(owners, key=len)
    for outer in around:
        _refuse_searched(objects[outer], param_name[len(outer) :].removeprefix("__"))
    constraint = objects.get(param_name.rpartition("__")[0])
    if not (isinstance(constraint, Constraint) and param_name.endswith("__threshold")):
        raise ValueError(f"param_name={param_name!r} is not the threshold of a constraint.")
    part = objects[path]
    listed = getattr(part.constraint, "constraints", None)
    position = None
    if listed is not None:
        position = next(i for i, (_, own) in enumerate(listed) if own is constraint)
    wrappers = tuple(objects[name] for name in around)
    return ConstrainedPart(param_name, path, part, wrappers, constraint, position)


def _only_threshold(estimator: Any, objects: dict[str, Any]) -> str:
    """Return the name of the threshold of the only constraint."""
    names = [
        f"{path}__threshold" for path, value in objects.items() if isinstance(value, Constraint)
    ]
    if len(names) == 1:
        return names[0]
    found = f"several: {sorted(names)}" if names else "none"
    raise ValueError(
        f"{type(estimator).__name__} must hold one constraint whose threshold is varied; it has "
        f"{found}. Name the threshold, param_name='constraint__threshold'; of several constraints "
        "give a ConstraintList."
    )


def _refuse_searched(search: Any, inner_name: str) -> None:
    """Raise if a search overrides whatever threshold is set."""
    grids = getattr(search, "param_grid", getattr(search, "param_distributions", None))
    if grids is None:
        return
    inner_name = inner_name.removeprefix("estimator__")
    if any(inner_name in grid for grid in ([grids] if isinstance(grids, Mapping) else grids)):
        raise ValueError(
            f"{type(search).__name__} searches {inner_name!r} itself, so the curve cannot set it. "
            "Remove it from the search, or pass the estimator inside the search."
        )


@dataclass(frozen=True)
class Measure:
    """GeDI or DIDI, on any of the rows.

    Attributes
    ----------
    y : ndarray of shape (n,)
        Original targets, which `relative` divides by.
    values : ndarray of shape (n, m)
        The attribute.
    weight : ndarray of shape (n,) or None
        Weights of the rows.
    pos_label : object
        The class that is measured; None for numbers.
    relative : bool or int
        Degree of the reference.
    options : dict
        Further keywords of the indicator, of which `task` is that of DIDI.
    covariates : ndarray of shape (n, p) or None
        What GeDI is conditional on.
    groups : ndarray of shape (n,) or None
        Which rows depend on each other.
    """

    y: np.ndarray
    values: np.ndarray
    weight: np.ndarray | None
    pos_label: Any
    relative: bool | int
    options: dict[str, Any]
    covariates: np.ndarray | None = None
    groups: np.ndarray | None = None

    @property
    def is_didi(self) -> bool:
        """Whether groups are measured."""
        return "task" in self.options

    @property
    def name(self) -> str:
        """What it is called, and what it is a share of."""
        word = "GeDI" if self.options.get("norm") == "l1" else "explained deviation"
        word = "DIDI" if self.is_didi else word
        return f"{word}, share of that of the targets" if self.relative else word

    def __call__(self, rows: np.ndarray, predictions: np.ndarray) -> float:
        """Return the indicator; NaN, with a warning, if there are too few rows to define it."""
        try:
            return self.value(rows, predictions)
        except RankDeficientKernelError as error:
            message = f"{error} The indicator of these {len(rows)} rows is NaN."
            warn_caller(message, UndefinedMetricWarning)
            return float("nan")

    def value(self, rows: np.ndarray, predictions: np.ndarray) -> float:
        """Return the indicator; raise if the kernel or a label does not suit the rows."""
        keywords = {
            "sensitive_features": self.values[rows],
            "sample_weight": _at(self.weight, rows),
            "pos_label": self.pos_label,
            "relative": self.relative,
            **self.options,
        }
        if self.is_didi:
            return didi(self.y[rows], predictions, **keywords)
        covariates = _at(self.covariates, rows)
        return gedi(self.y[rows], predictions, **keywords, conditional_on=covariates)

    def infer(self, rows: np.ndarray, predictions: np.ndarray, confidence: float) -> GediInference:
        """Return the inference on the indicator."""
        given = (self.values[rows], _at(self.weight, rows), self.pos_label)
        attribute = "groups" if self.is_didi else "mixed"
        sample = check_sample(self.y[rows], predictions, *given, attribute=attribute)
        indicator: LinearIndicator
        if self.is_didi:  # in the form of the task, which doubles it for two classes
            factor = 2.0 if self.options["task"] == "classification" else 1.0
            indicator = group_indicator(check_group_codes(sample.values)[0], sample.weight, factor)
            unit = indicator.reference(sample.y_true) if self.relative else 1.0
        else:
            fitted = fit_gedi(sample, **self.options, conditional_on=_at(self.covariates, rows))
            indicator, unit = fitted.indicator, fitted.unit(self.relative)
        groups = _at(self.groups, rows)
        return GediInference(
            indicator,
            sample.target,
            unit,
            confidence=confidence,
            groups=None if groups is None else sample.select(groups, "groups"),
            n_resamples=_NULL_DRAWS,
        )


def _at(values: np.ndarray | None, rows: np.ndarray) -> np.ndarray | None:
    return None if values is None else values[rows]


def make_measure(
    part: ConstrainedPart,
    X: Any,
    y: np.ndarray,
    values: np.ndarray,
    weight: np.ndarray | None,
    classes: np.ndarray | None,
    pos_label: Any,
    groups: np.ndarray | None,
) -> Measure:
    """Return the indicator that a constraint bounds.

    Parameters
    ----------
    part : ConstrainedPart
        The part of the estimator that has the constraint.
    X : array-like of shape (n, p)
        Where its `conditional_on` is looked up.
    y, values, weight : ndarray
        As in :class:`Measure`.
    classes : ndarray or None
        The classes of `y`; None for numbers.
    pos_label : object
        The class that is measured; None takes the second of two.
    groups : ndarray or None
        As in :class:`Measure`.

    Returns
    -------
    Measure

    Raises
    ------
    ValueError
        If it is ambiguous which class is meant, or some of the rows, or residuals, are bounded.
    """
    constraint = part.constraint
    if classes is not None and pos_label is None:
        if len(classes) > 2:
            raise ValueError(
                f"y has {len(classes)} classes {classes.tolist()}; pass the one that is to be "
                "measured against the rest, pos_label=."
            )
        pos_label = classes[1]
    if constraint.needs_outcomes or constraint.on == "distribution":
        raise ValueError(
            f"{constraint!r} bounds some of the rows, residuals or cuts, and the curve measures "
            "predictions of all rows. Compare thresholds with cross_validate and "
            "make_disparity_scorer(constraint)."
        )
    if part.position is not None:
        values = split_attributes(values, is_list=True)[part.position]
    if constraint.on == "probabilities":
        y, pos_label = (y == pos_label).astype(np.float64), None
    measured = (y, values, weight, pos_label, constraint.relative)
    if isinstance(constraint, DidiConstraint):
        task = "regression" if classes is None else "classification"
        return Measure(*measured, {"task": task}, groups=groups)
    options = {"kernel": constraint.kernel, "norm": constraint.norm}
    return Measure(*measured, options, _covariates(part, X, len(y)), groups)


def _covariates(part: ConstrainedPart, X: Any, n_samples: int) -> np.ndarray | None:
    """Return the covariates that the estimator's `conditional_on` names."""
    named = getattr(part.part, "conditional_on", None)
    if named is None:
        return None
    if not part.sees_X:
        raise ValueError(
            f"conditional_on={named!r} names columns of the X inside a pipeline, which the curve "
            "does not see. Pass the estimator without its pipeline."
        )
    values = named(X) if callable(named) else select_columns(X, named, "conditional_on")
    return check_attribute(values, n_samples, kind="mixed", name="conditional_on")
