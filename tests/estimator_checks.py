"""Checks of this library's own, for every public estimator."""

import inspect

from sklearn.base import BaseEstimator

import gedi_sklearn


def public_estimators():
    """Return every exported class that can be fitted; a new one is tested without a change here."""
    exported = (getattr(gedi_sklearn, name) for name in sorted(gedi_sklearn.__all__))
    return [
        cls
        for cls in exported
        if inspect.isclass(cls) and issubclass(cls, BaseEstimator) and hasattr(cls, "fit")
    ]


def instance(cls, **params):
    """Return an unfitted estimator; one that needs an attribute finds it in the first column."""
    known = cls().get_params()
    for_checks = {"sensitive_columns": 0, "max_iter": 3}  # three iterations loop as ten do
    return cls(**{name: value for name, value in for_checks.items() if name in known} | params)
