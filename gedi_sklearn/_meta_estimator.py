"""Wrapping an estimator: its tags, its metadata, the covariates.

Metadata goes through one function, which gives the same result with scikit-learn's metadata routing
on and off. The tags are those of the inner estimator.
"""

from __future__ import annotations

import inspect
from numbers import Integral
from typing import Any

import numpy as np
from sklearn import get_config
from sklearn.base import MetaEstimatorMixin, is_classifier, is_regressor
from sklearn.pipeline import Pipeline
from sklearn.utils import get_tags
from sklearn.utils.metadata_routing import (
    MetadataRequest,
    MetadataRouter,
    MethodMapping,
    get_routing_for_object,
    process_routing,
)

from ._constrained_estimator import ConstrainedEstimator
from ._folds import asks_for_groups
from ._validation import change_tables, select_columns

COVARIATE_CONSTRAINTS: dict[str, list[Any]] = {
    "conditional_on": [Integral, str, list, tuple, callable, None],
}

# Keywords that both this library's `fit` and, where it has them, that of a learner use.
_SHARED = ("X_val", "y_val", "groups")
# Offsets of LightGBM, XGBoost, CatBoost and of generalised linear models.
_OFFSETS = (
    "base_margin",
    "base_margin_eval_set",
    "baseline",
    "eval_init_score",
    "exposure",
    "init_score",
    "offset",
)

# Parameters whose False lets scikit-learn's estimators overwrite the X of a fit.
_COPIES = ("copy", "copy_X", "copy_x")


class MetaEstimator(MetaEstimatorMixin, ConstrainedEstimator):
    """Base of the wrappers: tags, metadata, covariates.

    A subclass has the parameters `estimator`, `cv`, `n_jobs`, `conditional_on`,
    `sensitive_columns` and `drop_sensitive`, defines what `estimator=None` means, and sets
    `estimator_` in its `fit`.
    """

    # Requested by default, so that a search routes them to the folds without set_fit_request.
    __metadata_request__fit = {"groups": True}  # noqa: RUF012

    estimator: Any
    cv: Any
    conditional_on: Any
    n_jobs: int | None

    def _default_estimator(self) -> Any:
        """Return the unfitted estimator that `estimator=None` stands for."""
        raise NotImplementedError

    def _inner_estimator(self) -> Any:
        """Return the unfitted inner estimator; the user's own object, never to be fitted."""
        _refuse_class("estimator", self.estimator)
        if self.estimator is not None:
            return self.estimator
        default = self._default_estimator()
        if get_config()["enable_metadata_routing"]:
            # The user cannot configure the default, and it is known to take weights.
            default.set_fit_request(sample_weight=True)
        return default

    def _covariates(self, X: Any) -> Any:
        """Return the covariates of `conditional_on`: columns of X, or what a callable returns."""
        if self.conditional_on is None:
            return None
        if callable(self.conditional_on):
            if (covariates := self.conditional_on(X)) is None:  # it would mean that there are none
                raise ValueError("conditional_on must return covariates of the rows; got None.")
            return covariates
        return select_columns(X, self.conditional_on, "conditional_on")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        inner = self._inner_estimator()
        if hasattr(inner, "__sklearn_tags__"):  # not all libraries inherit from scikit-learn
            inner_tags = get_tags(inner)
            tags.input_tags = inner_tags.input_tags
            if self.sensitive_columns is not None:  # an attribute may not be missing
                tags.input_tags.allow_nan = False
            tags.non_deterministic = inner_tags.non_deterministic
        return tags

    def _fitted_children(self) -> dict[str, Any]:
        """Return the unfitted estimators that `fit` fits, by the parameter that names them."""
        return {"estimator": self._inner_estimator()}

    def _check_training_data(
        self, X: Any, y: Any, sensitive_features: Any, sample_weight: Any
    ) -> tuple[np.ndarray, np.ndarray | None, np.ndarray]:
        _check_kind(self, self._inner_estimator())
        for name, child in self._fitted_children().items():
            _refuse_class(name, child)
            _refuse_overwriting(name, child)
        return super()._check_training_data(X, y, sensitive_features, sample_weight)

    def _own_request(self) -> MetadataRequest:
        """Return a copy of the metadata request of this object's own methods.

        Unless they were set, weights are requested only if every child requests them, so that an
        ensemble that weights its rows where it can (bagging) draws them instead.
        """
        request = super().get_metadata_routing()
        if request.fit.requests["sample_weight"] is None:
            children = map(get_routing_for_object, self._fitted_children().values())
            if all(child.consumes("fit", ["sample_weight"]) for child in children):
                request.fit.add_request(param="sample_weight", alias=True)
        return request

    def get_metadata_routing(self) -> MetadataRouter:
        """Return the routing of metadata to `fit`, the inner estimator and the splitter.

        Returns
        -------
        routing : MetadataRouter
            This estimator's `fit` requests `sensitive_features` and `groups`, and `sample_weight`
            where the inner estimator's does. What the inner estimator's `fit` requests is passed
            on to it, and what the `split` of a splitter in `cv` requests (groups) is passed on to
            the splitter.
        """
        router = MetadataRouter(owner=type(self).__name__).add_self_request(self._own_request())
        for name, child in self._fitted_children().items():
            mapping = MethodMapping().add(caller="fit", callee="fit")
            router.add(**{name: child}, method_mapping=mapping)
        return add_splitter(router, self.cv)

    def _route_fit(
        self, own: dict[str, Any], fit_params: dict[str, Any]
    ) -> dict[str, dict[str, Any]]:
        """Return the keywords of the fit of every child, weights included, and of the "splitter".

        Weights reach every child, or an error explains why they cannot: they are never dropped
        silently. The inner estimator sees the same columns of every X.

        Parameters
        ----------
        own : dict
            The keywords that this estimator's `fit` knows, None where they were not given.
        fit_params : dict
            Further keywords.
        """
        for name in fit_params:
            if name.rpartition("__")[2] in _OFFSETS:
                raise ValueError(
                    f"{name}= is an offset of the fit, which `predict` does not add: corrections "
                    "and targets would be for other predictions. Leave it out, or subtract it from "
                    "y and add it to the predictions yourself."
                )
        given = {name: value for name, value in own.items() if value is not None}
        if get_config()["enable_metadata_routing"]:
            keywords = self._routed(given, fit_params)
        else:
            keywords = self._handed_on(given, fit_params)
        if self._dropped:
            keywords["estimator"] = {
                name: change_tables(name, value, self._checked_inner_X)
                for name, value in keywords["estimator"].items()
            }
        return keywords

    def _handed_on(
        self, given: dict[str, Any], fit_params: dict[str, Any]
    ) -> dict[str, dict[str, Any]]:
        """Return the keywords without routing: further ones belong to the inner estimator."""
        children = self._fitted_children()
        learner = children["estimator"]
        known = set(inspect.signature(learner.fit).parameters)
        if asks_for_groups(getattr(learner, "cv", None)):  # a search, whose fit takes any keyword
            known.add("groups")
        shared = {name: given[name] for name in _SHARED if name in given and name in known}
        extra = {"estimator": {**shared, **fit_params}}
        weight = given.get("sample_weight")
        keywords = {
            name: _with_weight(name, child, weight, extra.get(name, {}))
            for name, child in children.items()
        }
        return {**keywords, "splitter": {}}

    def _routed(
        self, given: dict[str, Any], fit_params: dict[str, Any]
    ) -> dict[str, dict[str, Any]]:
        """Return the keywords that children and the splitter request."""
        children = self._fitted_children()
        routed = process_routing(self, "fit", **given, **fit_params)
        for name, child in children.items():
            if "sample_weight" in given and "sample_weight" not in routed[name].fit:
                request = get_routing_for_object(child)
                renamed = request.consumes("fit", ["sample_weight"])
                if not renamed and False not in _fit_requests(request, "sample_weight"):
                    raise _no_weights(name, child)
        keywords = {name: dict(routed[name].fit) for name in children}
        split = routed.splitter.split if has_splitter(self.cv) else {}
        return {**keywords, "splitter": dict(split)}


def has_splitter(cv: Any) -> bool:
    """Tell whether `cv` is an object with its own metadata; strings have a `split`, too."""
    return hasattr(cv, "split") and not isinstance(cv, str)


def add_splitter(router: MetadataRouter, cv: Any) -> MetadataRouter:
    """Return a router that passes what the splitter in `cv` requests (groups) from `fit` to it."""
    if has_splitter(cv):
        router.add(splitter=cv, method_mapping=MethodMapping().add(caller="fit", callee="split"))
    return router


def _check_kind(outer: Any, inner: Any) -> None:
    """Refuse a classifier around which there is a regressor, and the reverse."""
    if not hasattr(inner, "__sklearn_tags__"):  # not all libraries inherit from scikit-learn
        return
    kinds = ("Regressor", "Classifier") if is_classifier(outer) else ("Classifier", "Regressor")
    if is_regressor(inner) if is_classifier(outer) else is_classifier(inner):
        own, name = kinds[0].lower(), type(outer).__name__
        raise ValueError(
            f"estimator={type(inner).__name__} is a {own}, and {name} wraps a "
            f"{kinds[1].lower()}. Use {name.replace(kinds[1], kinds[0])}."
        )


def _refuse_class(name: str, child: Any) -> None:
    if isinstance(child, type):
        raise TypeError(f"{name} must be an object, got a class; pass {child.__name__}().")


def _refuse_overwriting(name: str, child: Any) -> None:
    """Refuse a learner that may overwrite rows which are fitted and predicted several times."""
    params = child.get_params() if hasattr(child, "get_params") else {}
    for key, value in params.items():
        if value is False and key.rpartition("__")[2] in _COPIES:
            raise ValueError(
                f"{name}={type(child).__name__} has {key}=False, which lets it overwrite X, and "
                f"later fits and predictions take the same X. Set {key}=True."
            )


def _with_weight(
    name: str, child: Any, sample_weight: Any, fit_params: dict[str, Any]
) -> dict[str, Any]:
    """Return the keywords of a fit while routing is off."""
    if sample_weight is None or _names_a_step_weight(fit_params):
        return fit_params
    _require_weight_support(name, child)
    return {**fit_params, "sample_weight": sample_weight}


def _names_a_step_weight(fit_params: dict[str, Any]) -> bool:
    return any(name.endswith("__sample_weight") for name in fit_params)


def _require_weight_support(name: str, child: Any) -> None:
    """Raise where the `fit` of a child cannot be given `sample_weight=` while routing is off."""
    parameters = inspect.signature(child.fit).parameters
    takes_any = any(p.kind is inspect.Parameter.VAR_KEYWORD for p in parameters.values())
    if isinstance(child, Pipeline):
        last = child.steps[-1][0]
        by_step = (  # further keywords are those of the learner
            "Pass it to the step that takes it as well, "
            f"fit(..., sample_weight=w, {last}__sample_weight=w), or switch"
        )
        raise ValueError(
            f"sample_weight was given, but {name}=Pipeline does not pass it on by itself. "
            f"{by_step if name == 'estimator' else 'Switch'} metadata routing on, "
            "sklearn.set_config(enable_metadata_routing=True), and request it on every step "
            "with step.set_fit_request(sample_weight=True) (or False)."
        )
    if "sample_weight" not in parameters and not takes_any:
        raise _no_weights(name, child)


def _no_weights(name: str, child: Any) -> ValueError:
    kind = type(child).__name__
    return ValueError(
        f"sample_weight was given, but the fit of {name}={kind} takes no `sample_weight`, so the "
        "model would be fitted without it. Leave sample_weight out, or use one that takes weights."
    )


def _fit_requests(request: Any, name: str) -> list[Any]:
    """Return what a metadata request, or each one inside a router, says of `name` in `fit`."""
    if isinstance(request, MetadataRouter):
        return [said for _, pair in request for said in _fit_requests(pair.router, name)]
    return [request.fit.requests.get(name)]


def decides_on_weights(estimator: Any) -> bool:
    """Tell whether an estimator, or a part of it, was told to request weights in `fit` or not."""
    requests = _fit_requests(get_routing_for_object(estimator), "sample_weight")
    return any(said is not None for said in requests)
