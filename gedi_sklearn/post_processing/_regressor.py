"""Real targets: predictions plus a linear function of the kernel's columns."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.linear_model import LinearRegression
from sklearn.metrics import r2_score

from .._predictions import checked_predict
from .._validation import check_column, check_numbers
from ..projection import Projection
from ._base import Projected


class ProjectedRegressor(RegressorMixin, Projected):
    r"""Regression whose predictions are projected: :math:`p(x) + \tilde F(x) \cdot \beta`.

    One fit of the learner; β is that of the exact projection of its cross-fitted predictions.

    Parameters
    ----------
    estimator : regressor, default=None
        The learner; never changed. None is `LinearRegression()`. A fitted one stays as it is
        inside :class:`sklearn.frozen.FrozenEstimator`.
    constraint : {"coarse", "fine"} or constraint object, default="coarse"
        What is bounded, as in :class:`MovingTargetsRegressor`.
    kernel, degree, threshold, relative, slack
        As in :class:`MovingTargetsRegressor`.
    cv : {"train", "oob"}, int or splitter, default=5
        Which predictions the correction is found on: those of clones on the other folds, out of
        bag, or of the fit itself.
    sensitive_columns : int, str or list of these, default=None
        Column(s) of X that hold the attribute, in `fit` and `predict`.
    drop_sensitive : bool, default=False
        Whether the learner sees X without these columns.
    sensitive_at_predict : bool, default=True
        Whether the attribute of a new row is known. False corrects by m(X)·β, with
        m(X) = E[F̃ | X] from `attribute_estimator`.
    attribute_estimator : regressor, default=None
        Learns m(X), several outputs at once, from X without `sensitive_columns`. None is histogram
        gradient boosting, one model an output.
    n_jobs : int, default=None
        Processes for the folds.

    Attributes
    ----------
    estimator_, attribute_estimator_ : estimator
        The fitted learners; the second with `sensitive_at_predict=False` only.
    kernel_ : FittedKernel or None
        The kernel with the training rows' moments; None for a constant attribute.
    constraint_, threshold_, reference_
        The constraint with its absolute threshold, that threshold, and what it is a share of.
    correction_ : ndarray of shape (k,)
        β.
    targets_ : ndarray of shape (n,)
        The corrected predictions for the training rows; they satisfy the constraint.
    n_features_in_, feature_names_in_
        Of X, dropped columns included.

    See Also
    --------
    MovingTargetsRegressor : Fits the learner on projected targets instead.
    ProjectedClassifier : The same for two classes.

    Examples
    --------
    >>> import numpy as np
    >>> from gedi_sklearn import ProjectedRegressor
    >>> from gedi_sklearn.metrics import gedi
    >>> rng = np.random.default_rng(0)
    >>> age, skill = rng.uniform(20, 60, 300), rng.normal(size=300)
    >>> X, pay = np.c_[age, skill], age + 10 * skill + rng.normal(size=300)
    >>> model = ProjectedRegressor(sensitive_columns=0, threshold=0.2).fit(X, pay)
    >>> round(gedi(pay, model.predict(X), sensitive_features=age, relative=True), 2)
    0.2
    """

    _loss = "squared_error"

    def _default_estimator(self) -> Any:
        return LinearRegression()

    def _check_targets(self, y: Any, sample_weight: Any) -> np.ndarray:
        return check_numbers(check_column(y, "y"), "y", n_columns=1)

    def _labels(self, y: np.ndarray) -> np.ndarray:
        return y

    def _scores(self, estimator: Any, X: Any) -> np.ndarray:
        name = f"the predictions of {type(self._inner_estimator()).__name__}"
        return check_numbers(checked_predict(estimator, X), name, n_columns=1)

    def _decide(self, scores: np.ndarray) -> np.ndarray:
        return scores

    def _find_correction(
        self, projection: Projection, p: np.ndarray, columns: np.ndarray
    ) -> np.ndarray:
        if not self.sensitive_at_predict:
            return projection.blind_correction(p, columns)
        # Weight 0: nearest to the predictions, wherever the targets are.
        return projection.solve(p, 0.0).correction

    def score(
        self, X: Any, y: Any, sample_weight: Any = None, *, sensitive_features: Any = None
    ) -> float:
        """Return R² of `predict`.

        Parameters
        ----------
        X : array-like of shape (n, p)
            With the columns of the X in `fit`.
        y : array-like of shape (n,)
            True targets.
        sample_weight : array-like of shape (n,), default=None
            Weights of the rows.
        sensitive_features : array-like of shape (n,) or (n, m), default=None
            As in `predict`; not used with `sensitive_at_predict=False`.

        Returns
        -------
        score : float
        """
        y_pred = self._predict_for_score(X, sensitive_features)
        return float(r2_score(y, y_pred, sample_weight=sample_weight))
