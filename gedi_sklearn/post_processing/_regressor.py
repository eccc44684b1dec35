"""Real targets: predictions plus a linear function of the kernel's columns."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.linear_model import LinearRegression
from sklearn.metrics import r2_score

from .._as_fitted import answers_as_fitted
from .._predictions import checked_predict
from .._validation import check_column, check_numbers
from ..projection import PROJECTION_PARAMETERS, Projection
from ._base import Projected


class ProjectedRegressor(RegressorMixin, Projected):
    r"""Regression whose predictions are projected: :math:`p(x) + \tilde F(x) \cdot \beta`.

    The learner is fitted once; β is that of the exact projection of its cross-fitted predictions.

    Parameters
    ----------
    estimator : regressor, default=None
        The learner; never changed. None is `LinearRegression()`. Wrap a fitted one in
        :class:`sklearn.frozen.FrozenEstimator` to avoid refitting it.
    constraint : constraint object, ConstraintList or list, default=None
        What is bounded, and by how much: :class:`DependenceConstraint`, which None stands for,
        :class:`CoarseConstraint`, :class:`FineConstraint` or :class:`DidiConstraint`. A list holds
        one constraint for each attribute, all of which are met.
    sensitive_columns : int, str or list of these, default=None
        Column(s) of X that hold the attribute, in `fit` and `predict`.
    drop_sensitive : bool, default=False
        Whether to remove these columns from the X of the learner. With `sensitive_at_predict=False`
        a frame without them predicts as well.
    conditional_on : int, str, list of these or callable, default=None
        Column(s) of X, or what a callable returns of it, that predictions may depend on, as in
        :class:`MovingTargetsRegressor`. With `sensitive_at_predict` new rows need them as well.
    sensitive_at_predict : bool, default=True
        Whether the attribute of new rows is known. False gives an attribute-blind correction
        m(X)·β, with m(X) = E[F̃ | X] from `attribute_estimator`.
    attribute_estimator : regressor, default=None
        Multi-output regressor for m(X), fitted on X without `sensitive_columns`. None is histogram
        gradient boosting with one model per output, which takes text and categories as levels, and
        missing values. What it cannot take is an error before anything is fitted.
    cv : {"train", "oob"}, int or splitter, default=5
        Whose predictions the correction is computed from: those of clones fitted on the other
        folds, out-of-bag ones, or those of the fit itself ("train").
    confidence : float, default=None
        Probability with which new rows are to keep the bound, 0.95 for example: predictions are
        corrected to a stricter threshold, and `certificate_` says what is promised. It needs
        cross-fitted or out-of-bag predictions. None corrects to the threshold itself, which
        new rows exceed about every second time.
    target_bounds : tuple of (float or None, float or None), default=None
        Lowest and highest prediction, None for no end: (0, None) keeps counts and rates valid.
        Corrected predictions are cut there, and the correction is that of the projection between
        these bounds. `y` must lie between them.
    n_jobs : int, default=None
        Number of processes for the folds.

    Attributes
    ----------
    estimator_, attribute_estimator_ : estimator
        The fitted learners; the second only with `sensitive_at_predict=False`.
    kernel_ : FittedKernel or None
        The kernel with the moments of the training rows; None for a constant attribute.
    constraint_, threshold_, reference_
        The constraint with its absolute threshold, that threshold, and the indicator that
        `threshold` is a fraction of (1.0 for an absolute one). Like `kernel_`, lists where
        `constraint` is one.
    correction_, orthonormal_correction_ : ndarray of shape (k,)
        The correction in the kernel's own columns and in its orthonormal ones, which predictions
        use; those of several constraints one after another.
    targets_ : ndarray of shape (n,)
        The corrected predictions for the training rows; they satisfy the constraint.
    certificate_ : Certificate or None
        What is promised for new rows with `confidence`, and what it rests on; ``print`` it. None
        without it, and where no correction is strict enough, with a
        :class:`CertificateNotIssuedWarning`.
    verdict_ : Verdict or None
        Whether the bound is met, what is left that the kernel does not see, and whether the
        reference is more than chance; ``print`` it. None without a bound, or below 50 rows.
    n_features_in_, feature_names_in_
        Number and names of the columns of X, dropped ones included.

    See Also
    --------
    MovingTargetsRegressor : Fits the learner on projected targets instead.
    ProjectedClassifier : The same for two classes.

    Examples
    --------
    >>> import numpy as np
    >>> from gedi_sklearn import DependenceConstraint, ProjectedRegressor, gedi
    >>> rng = np.random.default_rng(0)
    >>> age, skill = rng.uniform(20, 60, 300), rng.normal(size=300)
    >>> X, pay = np.c_[age, skill], age + 10 * skill + rng.normal(size=300)
    >>> model = ProjectedRegressor(None, DependenceConstraint(0.2), sensitive_columns=0).fit(X, pay)
    >>> share = {"norm": "sd", "kernel": "spline", "relative": True}
    >>> round(gedi(pay, model.predict(X), sensitive_features=age, **share), 2)
    0.2
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **Projected._parameter_constraints,
        "target_bounds": PROJECTION_PARAMETERS["target_bounds"],
    }
    _loss = "squared_error"

    def __init__(
        self,
        estimator: Any = None,
        constraint: Any = None,
        *,
        sensitive_columns: Any = None,
        drop_sensitive: bool = False,
        conditional_on: Any = None,
        sensitive_at_predict: bool = True,
        attribute_estimator: Any = None,
        cv: Any = 5,
        confidence: float | None = None,
        target_bounds: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        super().__init__(
            estimator,
            constraint,
            sensitive_columns=sensitive_columns,
            drop_sensitive=drop_sensitive,
            conditional_on=conditional_on,
            sensitive_at_predict=sensitive_at_predict,
            attribute_estimator=attribute_estimator,
            cv=cv,
            confidence=confidence,
            n_jobs=n_jobs,
        )
        self.target_bounds = target_bounds

    @property
    def _target_bounds(self) -> Any:
        return self.target_bounds

    def _class_subsets(self, projection: Projection) -> list[np.ndarray | None]:
        listed = projection.fitted_constraint_.listed
        if self.sensitive_at_predict and any(parts[0].given.subset is not None for parts in listed):
            raise ValueError(
                "subset= of real targets: whether a new row is in the subset is not known, and "
                "only attribute_estimator predicts it, together with the kernel. Set "
                "sensitive_at_predict=False."
            )
        return [None] * len(listed)

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
        return np.clip(scores, *self._bounds)

    @answers_as_fitted
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
