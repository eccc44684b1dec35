"""The scorer of a curve, checked for weights before any fit."""

from __future__ import annotations

from inspect import Parameter, signature
from typing import Any

from sklearn.base import is_classifier
from sklearn.metrics import check_scoring


def check_scorer(estimator: Any, scoring: Any, *, is_weighted: bool) -> Any:
    """Return the scorer that `scoring` stands for.

    Parameters
    ----------
    estimator : estimator
        The estimator to be scored; unfitted.
    scoring : str, callable or None
        None is accuracy or R².
    is_weighted : bool
        Whether it will be called with `sample_weight`.

    Returns
    -------
    scorer : callable

    Raises
    ------
    ValueError
        If it does not take the weights that it will get.
    """
    if scoring is None:
        scoring = "accuracy" if is_classifier(estimator) else "r2"
    scorer = check_scoring(estimator, scoring=scoring)
    if is_weighted and not _takes_weight(scorer):
        shown = repr(scoring) if isinstance(scoring, str) else _name(scoring)
        raise ValueError(
            f"sample_weight was given, but scoring={shown} takes no `sample_weight`, so the scores "
            "would be unweighted. Leave sample_weight out, or use a scorer that takes weights: "
            "scoring(estimator, X, y, sample_weight=None), or make_scorer of such a function."
        )
    return scorer


def _takes_weight(scorer: Any) -> bool:
    """Tell whether a scorer takes `sample_weight`; True where that cannot be determined."""
    # A scikit-learn scorer passes its keywords on to the function it was made from.
    called = getattr(scorer, "_score_func", scorer)
    try:
        parameters = signature(called).parameters
    except ValueError:  # compiled, without a signature
        return True
    takes_any = any(p.kind is Parameter.VAR_KEYWORD for p in parameters.values())
    return takes_any or "sample_weight" in parameters


def _name(scoring: Any) -> str:
    return getattr(scoring, "__name__", None) or repr(scoring)
