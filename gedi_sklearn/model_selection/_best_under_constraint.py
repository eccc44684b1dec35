"""The rule that selects the best candidate of a search under a bound on its disparity."""

from __future__ import annotations

from numbers import Real
from typing import Any

import numpy as np

from .._validation import Interval, named_in_errors, validate_params
from ..exceptions import warn_caller


class best_under_constraint:
    """Rule for `refit` of a search: the best candidate whose disparity is within a bound.

    Parameters
    ----------
    score : str, default="r2"
        What to maximise: the name of a scorer of the search, or its key in ``cv_results_``.
    disparity : str, default=None
        A negated disparity, as this package's scorers give it, by name or key. None takes the only
        other scorer, or the only one that is named after an indicator.
    at_most : float, default=0.05
        Bound on the disparity, at least 0.

    Raises
    ------
    ValueError
        If a parameter is out of range. When the search calls the rule: if a key is missing, or
        the disparities are not negated.

    Warns
    -----
    UserWarning
        If no candidate is within the bound: the fairest one is selected.

    See Also
    --------
    gedi_sklearn.metrics.make_disparity_scorer : Scorers of disparities.

    Notes
    -----
    It is an object rather than a function so that a search with it can be cloned and pickled.
    Candidates whose score or disparity is NaN are never selected; ties go to the fairer one.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import Ridge
    >>> from sklearn.model_selection import GridSearchCV
    >>> from gedi_sklearn.metrics import make_disparity_scorer
    >>> from gedi_sklearn.model_selection import best_under_constraint
    >>> X = np.linspace(-1, 1, 40)[:, None]
    >>> search = GridSearchCV(
    ...     Ridge(),
    ...     {"alpha": [0.1, 10.0, 1000.0]},
    ...     scoring={"r2": "r2", "neg_gedi": make_disparity_scorer(sensitive_columns=0)},
    ...     refit=best_under_constraint(at_most=0.8),
    ...     cv=4,
    ... )
    >>> search.fit(X, X[:, 0]).best_params_
    {'alpha': 10.0}
    """

    @validate_params(
        {
            "score": [str],
            "disparity": [str, None],
            "at_most": [Interval(Real, 0, np.inf, closed="both")],
        },
        prefer_skip_nested_validation=True,
    )
    @named_in_errors("best_under_constraint")
    def __init__(
        self, score: str = "r2", disparity: str | None = None, at_most: float = 0.05
    ) -> None:
        self.score = score
        self.disparity = disparity
        self.at_most = at_most

    def __repr__(self) -> str:
        return (
            f"best_under_constraint(score={self.score!r}, disparity={self.disparity!r}, "
            f"at_most={self.at_most!r})"
        )

    def __call__(self, cv_results: dict[str, Any]) -> int:
        """Return the index of the candidate to refit.

        Parameters
        ----------
        cv_results : dict of str to ndarray
            As the search stores it.

        Returns
        -------
        int
        """
        score_key, key = self._keys(cv_results)
        score = np.asarray(cv_results[score_key], dtype=np.float64)
        disparity = -np.asarray(cv_results[key], dtype=np.float64)
        if np.nanmax(disparity, initial=0.0) <= 0 and np.nanmin(disparity, initial=0.0) < 0:
            raise ValueError(
                f"disparity={key!r} is positive, so it is not negated. Score with the "
                "package's scorers, or with make_scorer(..., greater_is_better=False)."
            )
        known = np.isfinite(score) & np.isfinite(disparity)
        if not known.any():
            raise ValueError(
                f"no candidate has both score={score_key!r} and disparity={key!r}: all are NaN."
            )
        within = known & (disparity <= self.at_most)
        if within.any():
            order = np.lexsort((disparity, -score))
            return int(next(i for i in order if within[i]))
        fairest = int(np.argmin(np.where(known, disparity, np.inf)))
        warn_caller(
            f"no candidate has {key!r} within at_most={self.at_most}: the fairest one, "
            f"at {disparity[fairest]:.4g}, is selected. Widen the search, or raise `at_most`."
        )
        return fairest

    def _keys(self, cv_results: dict[str, Any]) -> tuple[str, str]:
        """Return the keys of the score and of the disparity."""
        start = "mean_test_"
        known = sorted(key.removeprefix(start) for key in cv_results if key.startswith(start))
        score = self.score.removeprefix(start)
        others = [name for name in known if name != score]
        named = [name for name in others if any(own in name for own in ("gedi", "didi", "hgr"))]
        given = self.disparity
        if given is None:
            given = next((found[0] for found in (others, named) if len(found) == 1), "None")
        for parameter, name in (("score", score), ("disparity", given.removeprefix(start))):
            if name not in known:
                own = getattr(self, parameter)
                wrong = "is not a key of cv_results_" if own else "finds none, or more than one"
                keys = [start + name for name in known]
                raise ValueError(f"{parameter}={own!r} {wrong}; there are {keys}.")
        return start + score, start + given.removeprefix(start)
