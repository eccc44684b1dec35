"""Real targets: predictions plus a function of the attribute, or times one."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from sklearn.metrics import r2_score
from sklearn.utils.validation import check_is_fitted

from .._constrained_estimator import RealTargetsMixin
from .._predictions import answers_as_fitted, checked_predict
from .._validation import (
    StrOptions,
    check_attribute_columns,
    check_numbers,
    check_positive,
    check_sensitive,
)
from ..projection import PROJECTION_PARAMETERS, Projection
from ._base import Projected


class ProjectedRegressor(RealTargetsMixin, Projected):
    r"""Regression whose predictions are projected: :math:`p(x) + \tilde F(x) \cdot \beta`.

    Fits the estimator and corrects its predictions by a function of the attribute; β is that of
    the exact projection of its cross-fitted predictions. With ``loss="kl"``, for counts, rates and
    costs, predictions are multiplied instead, by :math:`\exp(\nu + \tilde F(x) \cdot \beta)`: they
    stay positive, and keep their mean.

    Parameters
    ----------
    estimator : regressor, default=None
        The learner; never changed. None is `LinearRegression()`, with ``loss="kl"``
        `PoissonRegressor()`. Wrap a fitted one in
        :class:`sklearn.frozen.FrozenEstimator` to avoid refitting it.
    constraint : constraint object, ConstraintList or list, default=None
        What is bounded, and by how much: :class:`DependenceConstraint`, which None stands for,
        :class:`CoarseConstraint`, :class:`FineConstraint` or :class:`DidiConstraint`. A list holds
        one constraint for each attribute, all of which are met.
    loss : {"squared_error", "kl"}, default="squared_error"
        In which corrected predictions are nearest to those of the learner: "squared_error" adds,
        "kl" multiplies, as in :func:`project_targets`. It needs y ≥ 0 and positive predictions.
    sensitive_columns : int, str or list of these, default=None
        Column(s) of X that hold the attribute, in `fit` and `predict`.
    drop_sensitive : bool, default=False
        Whether to remove these columns from the X of the learner. With `sensitive_at_predict=False`
        a frame without them predicts as well.
    conditional_on : int, str, list of these or callable, default=None
        Column(s) of X, or what a callable returns of it, that predictions may depend on.
        With `sensitive_at_predict` new rows need them as well.
    sensitive_at_predict : bool, default=True
        Whether the attribute of new rows is known. False gives an attribute-blind correction
        m(X)·β, with m(X) = E[F̃ | X] from `attribute_estimator`.
    attribute_estimator : regressor, default=None
        Multi-output regressor for m(X), fitted on X without `sensitive_columns`. None is histogram
        gradient boosting with one model per output, which takes text and categories as levels, and
        missing values. What it cannot take is an error before anything is fitted.
    cv : {"train", "oob"}, int or splitter, default=5
        Whose predictions the correction is computed from: those of clones fitted on the other
        folds, out-of-bag ones, or those of the fit itself ("train"). Unlike in scikit-learn, an
        integer shuffles the rows (stratified for classes), since files come sorted; with `groups`
        in `fit` it makes folds of these. A splitter is taken as it is.
    confidence : float, default=None
        Probability with which new rows are to keep the bound, 0.95 for example: predictions are
        corrected to a stricter threshold, and `certificate_` says what is promised. It needs
        cross-fitted or out-of-bag predictions. None corrects to the threshold itself, which
        new rows exceed about every second time.
    target_bounds : tuple of (float or None, float or None), default=None
        Lowest and highest prediction, None for no end: (0, None) keeps counts and rates valid.
        Corrected predictions are cut there, and the correction is that of the projection between
        these bounds. `y` must lie between them. Not with ``loss="kl"``.
    n_jobs : int, default=None
        Number of processes for the folds.
    random_state : int, RandomState or None, default=None
        Seed of the folds that an integer `cv` makes, and of those of `certificate_` and `verdict_`.
        None is 0, so that, unlike in scikit-learn, a fit can be repeated. The learner has seeds of
        its own.

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
        The corrected predictions for the training rows; they satisfy the constraint. Pickles and
        copies leave them out, so that no training data are in a saved model.
    share_ : float
        With ``on="distribution"``, the share a by which means given the attribute move to those of
        scores whose distribution does not depend on it; 0 is the learner, 1 all of it, and above 1
        (up to 1.5, without the attribute of new rows) makes up for errors in predicting it.
    certificate_ : Certificate or None
        What is promised for new rows with `confidence`, and what it rests on; ``print`` it. None
        without it, and where no correction is strict enough, with a
        :class:`CertificateNotIssuedWarning`.
    verdict_ : Verdict or None
        Whether the bound is met, what the kernel misses, and whether the
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
        "loss": [StrOptions({"squared_error", "kl"})],
        "target_bounds": PROJECTION_PARAMETERS["target_bounds"],
    }

    def __init__(
        self,
        estimator: Any = None,
        constraint: Any = None,
        *,
        loss: str = "squared_error",
        sensitive_columns: Any = None,
        drop_sensitive: bool = False,
        conditional_on: Any = None,
        sensitive_at_predict: bool = True,
        attribute_estimator: Any = None,
        cv: Any = 5,
        confidence: float | None = None,
        target_bounds: Any = None,
        n_jobs: int | None = None,
        random_state: Any = None,
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
            random_state=random_state,
        )
        self.loss = loss
        self.target_bounds = target_bounds

    @property
    def _loss(self) -> str:
        return self.loss

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

    def _scores(self, estimator: Any, X: Any) -> np.ndarray:
        name = f"the predictions of {type(self._inner_estimator()).__name__}"
        p = check_numbers(checked_predict(estimator, X), name, n_columns=1)
        if self.loss == "kl":
            check_positive(p, name)
        return p

    def _apply(self, p: np.ndarray, shift: np.ndarray | float, intercept: float) -> np.ndarray:
        return p * np.exp(intercept + shift) if self.loss == "kl" else p + shift

    def relativities(self, sensitive_features: Any) -> np.ndarray:
        """Return what ``loss="kl"`` multiplies predictions by, for values of the attribute.

        The rows of a rating table, ``np.c_[age, model.relativities(age)]``, and a plot of it,
        ``plt.step(age, model.relativities(age))``.

        Parameters
        ----------
        sensitive_features : array-like of shape (n,) or (n, m)
            Values of the attribute(s).

        Returns
        -------
        ndarray of shape (n,)
            exp(ν + Q(x)c), without a unit.

        Raises
        ------
        ValueError
            If the correction is added (``loss="squared_error"``), or depends on more than the
            attribute: with `conditional_on` or `sensitive_at_predict=False`.

        Warns
        -----
        AttributeRangeWarning
            If values lie outside the range of the fit: they count as its nearest value.

        Examples
        --------
        >>> import numpy as np
        >>> from gedi_sklearn import ProjectedRegressor
        >>> rng = np.random.default_rng(0)
        >>> age = rng.uniform(20, 60, 1000)
        >>> claims = rng.poisson(np.exp(2 - age / 30))
        >>> model = ProjectedRegressor(loss="kl", sensitive_columns=0).fit(age[:, None], claims)
        >>> model.relativities([25, 40, 55]).round(1)
        array([0.7, 1.1, 1.6])
        """
        check_is_fitted(self)
        needed = {"loss": "kl", "conditional_on": None, "sensitive_at_predict": True}
        for name, value in needed.items():
            if (given := getattr(self, name)) != value:
                raise ValueError(
                    f"relativities need {name}={value!r}, where the attribute alone multiplies "
                    f"predictions; got {given!r}. Compare predict(X) with estimator_.predict(X)."
                )
        check_attribute_columns(self._attribute_columns, sensitive_features)
        values = check_sensitive(sensitive_features, kind="mixed")
        if self.kernel_ is None:
            return np.ones(len(values))
        shift = self._new_columns(values, None) @ self.orthonormal_correction_
        return np.exp(self._intercept + shift)

    def _on_scale(self, moved: np.ndarray) -> np.ndarray:
        return self._decide(moved)

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
