"""Classes: the learner's probabilities plus a function of the attribute, and the largest wins."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.metrics import accuracy_score

from .._constrained_estimator import ClassTargetsMixin
from .._predictions import answers_as_fitted, checked_predict_proba
from .._validation import check_numbers
from ..exceptions import ConstraintNotMetWarning, warn_caller
from ..projection import Projection
from ._base import Projected
from ._corrections import Correction, Recalibration, score_correction
from ._label_search import TIE, LabelRule, Tried, ascend, codes_of

# Rows that the relaxation of a fold may be off: sampling moves its correction by far more.
_OF_A_FOLD = 1.0


class ProjectedClassifier(ClassTargetsMixin, Projected):
    r"""Classification with a threshold on the score that depends on the attribute.

    Fits the estimator and corrects its labels by a function of the attribute. A row is of class 1
    if :math:`p(x) + Q(x) \cdot c > 1/2`, with c from the multipliers of the projection of
    cross-fitted probabilities on the constraint. Of more than two classes a row is of the one with
    the largest :math:`p_j(x) + Q(x) \cdot c_j`.

    Parameters
    ----------
    estimator : classifier, default=None
        The learner, with `predict_proba`; never changed. None is `LogisticRegression()`. Wrap a
        fitted one in :class:`sklearn.frozen.FrozenEstimator` to avoid refitting it.
    constraint : constraint object, ConstraintList or list, default=None
        What is bounded, and by how much: :class:`DependenceConstraint`, which None stands for,
        :class:`CoarseConstraint`, :class:`FineConstraint` or :class:`DidiConstraint`. A list holds
        one constraint for each attribute, all of which are met.
        With ``on="predictions"`` it bounds the labels. With ``on="probabilities"`` probabilities
        are corrected by the exact projection of cross-fitted ones, as real targets between 0 and
        1; labels are then where they exceed 1/2, and not bounded. That needs two classes.
    sensitive_columns : int, str or list of these, default=None
        Column(s) of X that hold the attribute, in `fit` and `predict`.
    drop_sensitive : bool, default=False
        Whether to remove these columns from the X of the learner. With `sensitive_at_predict=False`
        a frame without them predicts as well.
    conditional_on : int, str, list of these or callable, default=None
        Column(s) of X, or what a callable returns of it, that predictions may depend on. With
        `sensitive_at_predict` new rows need them as well.
    sensitive_at_predict : bool, default=True
        Whether the attribute of new rows is known. False predicts it from the other columns.
    attribute_estimator : regressor, default=None
        Multi-output regressor for that, fitted on X without `sensitive_columns`. None is histogram
        gradient boosting with one model per output.
    cv : {"train", "oob"}, int or splitter, default=5
        Whose predictions the correction is computed from: those of clones fitted on the other
        folds, out-of-bag ones, or those of the fit itself ("train"). An integer shuffles the rows,
        stratified; with `groups` in `fit` it makes folds of these.
    confidence : float, default=None
        Probability with which new rows keep the bound, 0.95 for example; `certificate_` says what
        is promised. None corrects to the threshold itself.
    n_jobs : int, default=None
        Number of processes for the folds.
    random_state : int, RandomState or None, default=None
        Seed of the folds that an integer `cv` makes, and of those of `certificate_` and `verdict_`;
        None is 0.

    Attributes
    ----------
    classes_ : ndarray of shape (K,)
        The labels.
    targets_ : ndarray of shape (n,)
        The corrected labels of the training rows, or the probabilities of ``classes_[1]``, from
        cross-fitted probabilities. Pickles and copies leave them out.
    estimator_, attribute_estimator_ : estimator
        The fitted learners; the second only with `sensitive_at_predict=False`.
    kernel_ : FittedKernel or None
        The kernel with the moments of the training rows; None for a constant attribute.
    constraint_, threshold_, reference_
        The constraint with its absolute threshold, that threshold, and the indicator that
        `threshold` is a share of (1.0 for an absolute one); with more than two classes one for
        each class (one for all with DIDI), and lists where `constraint` is one.
    correction_, orthonormal_correction_ : ndarray of shape (k,) or (K, k)
        The correction of the score in the kernel's columns and in its orthonormal ones, which
        predictions use.
    share_ : float
        With ``on="distribution"``, the share by which means given the attribute move: 0 not at
        all, 1 to independence; up to 1.5 without the attribute of new rows, for errors in
        predicting it.
    certificate_ : Certificate or None
        What is promised for new rows with `confidence`; ``print`` it. None without it, and where no
        correction is strict enough, with a :class:`CertificateNotIssuedWarning`.
    verdict_ : Verdict or None
        Whether the bound is met, what the kernel misses, and whether the reference is more than
        chance; ``print`` it. None without a bound, or below 50 rows.
    n_features_in_, feature_names_in_
        Number and names of the columns of X, dropped ones included.

    See Also
    --------
    MovingTargetsClassifier : Fits the learner on projected targets instead.
    ProjectedRegressor : The same for real targets.

    Notes
    -----
    Labels follow from `predict_proba` of the learner: a threshold of its own, as that of
    :class:`sklearn.model_selection.FixedThresholdClassifier`, has no say. A score of exactly 1/2 is
    class 0, in `predict` and in `predict_proba`; of equal scores the first class wins. Rows with
    equal score and attribute get the same label, so with many ties the constraint may not be tight.

    Bounded labels are a threshold :math:`\tau(x) = 1/2 - Q(x) \cdot c` on p. `predict_proba` is
    p / 2τ up to it and 1 − (1 − p) / 2(1 − τ) above: 1/2 at the threshold, p itself where
    τ = 1/2. On unseen rows of three data sets it ranks better, by 0.014 to 0.08 of AUC, than
    σ(logit p − logit τ), and than p + 1/2 − τ, which leaves [0, 1], by 0.1 to 0.22
    (``python -m benchmarks.threshold_scores``). How far this score itself depends on the attribute
    is not bounded; that is what ``on="probabilities"`` is for.

    Of more than two classes `predict_proba` is :math:`(p_j + r_j) / (1 + \sum_i r_i)` with
    :math:`r_j(x) = Q(x) \cdot c_j - \min_i Q(x) \cdot c_i`, the least non-negative additions that
    make the same decisions. Rows of equal attribute keep the learner's order in every class, and
    where nothing is corrected it is p.

    Examples
    --------
    >>> import numpy as np
    >>> from gedi_sklearn import CoarseConstraint, ProjectedClassifier, gedi
    >>> rng = np.random.default_rng(0)
    >>> age, skill = rng.uniform(20, 60, 400), rng.normal(size=400)
    >>> X, hired = np.c_[age, skill], (age + 15 * skill + 5 * rng.normal(size=400) > 40).astype(int)
    >>> model = ProjectedClassifier(None, CoarseConstraint(0.2), sensitive_columns=0).fit(X, hired)
    >>> gedi(hired, model.targets_, sensitive_features=age, relative=True) <= 0.2
    True
    """

    # As `predict` does.
    __metadata_request__predict_proba = {"sensitive_features": True}  # noqa: RUF012

    _can_bound = ("probabilities", "residuals")

    @property
    def _loss(self) -> str:
        return "hamming" if self._bounds_labels else "squared_error"

    @property
    def _target_bounds(self) -> Any:
        return None if self._bounds_labels else (0.0, 1.0)

    def _class_subsets(self, projection: Projection) -> list[np.ndarray | None]:
        outcomes = self._outcomes(np.arange(len(self.classes_)))
        subsets = [parts[0].given.subset for parts in projection.fitted_constraint_.listed]
        if not self._bounds_labels and any(subset is not None for subset in subsets):
            raise ValueError(
                "on='probabilities' bounds those of all rows: with subset= use on='predictions'."
            )
        return [None if subset is None else outcomes.rows(subset) for subset in subsets]

    def _scores(self, estimator: Any, X: Any) -> np.ndarray:
        # Not the type of `estimator`, which may be the responses of several folds.
        inner = type(self._inner_estimator()).__name__
        if not hasattr(estimator, "predict_proba"):
            raise ValueError(
                f"ProjectedClassifier needs probabilities, but its estimator {inner} has no "
                "predict_proba. Wrap it in sklearn.calibration.CalibratedClassifierCV."
            )
        proba = checked_predict_proba(estimator, X, self.classes_)
        proba = check_numbers(proba, f"the probabilities of {inner}")
        return proba[:, 1] if len(self.classes_) == 2 else proba

    def _fit_scale(self, p: np.ndarray, moved: np.ndarray, weight: np.ndarray | None) -> None:
        """Find the cut above which as many rows are as the learner takes for the second class."""
        weight = np.ones(len(p)) if weight is None else weight
        order = np.argsort(moved, kind="stable")
        below = np.cumsum(weight[order]) <= weight[codes_of(p) == 0].sum() * (1 + 1e-12)
        ends = np.r_[0.0, moved[order], 1.0]
        self._cut = float(ends[below.sum() : below.sum() + 2].mean())

    def _on_scale(self, moved: np.ndarray) -> np.ndarray:
        """Return probabilities that are above 1/2 where the moved score is above the cut."""
        score = _bent(np.clip(moved, 0.0, 1.0), self._cut)
        # Rounding is to change no decision.
        least = np.nextafter(0.5, 1.0)
        return np.where(moved > self._cut, np.maximum(score, least), np.minimum(score, 0.5))

    def _decide(self, scores: np.ndarray) -> np.ndarray:
        return self.classes_[codes_of(scores)]

    def _as_targets(self, scores: np.ndarray) -> np.ndarray:
        return self._decide(scores) if self._bounds_labels else np.clip(scores, 0.0, 1.0)

    def _as_numbers(self, scores: np.ndarray) -> np.ndarray:
        targets = self._as_targets(scores)
        return np.searchsorted(self.classes_, targets) if self._bounds_labels else targets

    def _own_targets(self, y: np.ndarray) -> np.ndarray:
        return self._labels(y) if self._bounds_labels else y.astype(np.float64)

    def _recalibrate(
        self, projection: Projection, p: np.ndarray, expected: np.ndarray
    ) -> Recalibration:
        return Recalibration.fit(projection, p, expected)

    def _find_correction(self, projection: Projection, p: np.ndarray, columns: Any) -> Correction:
        if not self._bounds_labels:
            return super()._find_correction(projection, p, columns)
        if projection.violation(codes_of(p)) == 0.0:
            return self._plain_correction(projection, p)
        constraint, rule = projection.fitted_constraint_, _rule(projection, p, columns)

        start, expected = None, None if self._is_exact else columns

        def attempt(fraction: float) -> Tried:
            nonlocal start
            first, found = score_correction(projection, p, expected, fraction, start)
            if self._is_exact:
                start = found  # where m(X) has a mean, multipliers would grow from each to the next
                return rule.judged(first)
            return rule.nearest(ascend(constraint.scaled(fraction), rule.decided, first))

        return Correction(rule.search(attempt))

    def _warn_missed(self, projection: Projection, scores: np.ndarray) -> None:
        if not self._bounds_labels:
            super()._warn_missed(projection, scores)
            return
        violation = projection.violation(codes_of(scores))
        if violation > 0.0:
            warn_caller(
                f"the corrected labels miss the constraint by {violation:.3g} on the rows of "
                "the fit: scores are tied, or (sensitive_at_predict=False) the other columns of X "
                "predict the attribute too poorly. Use a learner with fewer ties, or another "
                "`attribute_estimator`.",
                ConstraintNotMetWarning,
            )

    def _plain_correction(self, projection: Projection, p: np.ndarray) -> Correction:
        if projection.violation(codes_of(p)) == 0.0:
            size = projection.row_columns.shape[1] * (1 if p.ndim == 1 else p.shape[1])
            return Correction(np.zeros(size))
        return Correction(score_correction(projection, p, None, 1.0, tolerance=_OF_A_FOLD)[0])

    def _fold_correction(self, projection: Projection, p: np.ndarray, columns: Any) -> Correction:
        if not self._bounds_labels:
            return super()._fold_correction(projection, p, columns)
        if self._is_exact or projection.violation(codes_of(p)) == 0.0:
            return self._plain_correction(projection, p)
        # Where the ascent comes to rest. How well that does on these rows says little of others.
        constraint, decided = projection.fitted_constraint_, _rule(projection, p, columns).decided
        start = score_correction(projection, p, columns, 1.0, tolerance=_OF_A_FOLD)[0]
        return Correction(next(ascend(constraint, decided, start)))

    @answers_as_fitted
    def predict_proba(self, X: Any, *, sensitive_features: Any = None) -> np.ndarray:
        """Return corrected probabilities; `predict` returns the more probable class.

        Where the constraint bounds labels, they are scores on either side of its threshold; see
        the notes of the class.

        Parameters
        ----------
        X : array-like of shape (n, p)
            With the columns of the X in `fit`.
        sensitive_features : array-like of shape (n,) or (n, m), default=None
            As in `predict`.

        Returns
        -------
        proba : ndarray of shape (n, K)
            Columns in the order of `classes_`.
        """
        if self._bounds_cuts:
            score = self._corrected(X, sensitive_features)
            return np.column_stack([1 - score, score])
        inner = self._new_inner_X(X)
        known = self._known(X, sensitive_features)
        p = self._scores(self.estimator_, inner)
        proba = self._class_scores(p, self._shift(X, known, p))
        return proba if proba.ndim == 2 else np.column_stack([1 - proba, proba])

    def _class_scores(self, p: np.ndarray, shift: Any) -> np.ndarray:
        if p.ndim == 2:
            return _raised(p, shift)
        score = _bent(p, 0.5 - shift) if self._bounds_labels else np.clip(p + shift, 0.0, 1.0)
        # Rounding is to change no decision.
        second = codes_of(p + shift) == 1
        return np.where(second, np.maximum(score, np.nextafter(0.5, 1.0)), np.minimum(score, 0.5))

    @answers_as_fitted
    def score(
        self, X: Any, y: Any, sample_weight: Any = None, *, sensitive_features: Any = None
    ) -> float:
        """Return the accuracy of `predict`.

        Parameters
        ----------
        X : array-like of shape (n, p)
            With the columns of the X in `fit`.
        y : array-like of shape (n,)
            True labels.
        sample_weight : array-like of shape (n,), default=None
            Weights of the rows.
        sensitive_features : array-like of shape (n,) or (n, m), default=None
            As in `predict`; not used with `sensitive_at_predict=False`.

        Returns
        -------
        score : float
        """
        y_pred = self._predict_for_score(X, sensitive_features)
        return float(accuracy_score(y, y_pred, sample_weight=sample_weight))


def _bent(p: np.ndarray, tau: np.ndarray | float) -> np.ndarray:
    """Return probabilities as scores that are 1/2 at a threshold, linear on either side of it."""
    # Beyond [0, 1] a threshold has one side only.
    below = p / (2 * np.maximum(tau, TIE))
    above = 1 - (1 - p) / (2 * np.maximum(1 - tau, TIE))
    return np.where(p <= tau, below, above)


def _raised(p: np.ndarray, shift: np.ndarray | float) -> np.ndarray:
    """Return probabilities of several classes that make the decisions of p + shift."""
    added = np.broadcast_to(shift, p.shape)
    added = added - added.min(axis=1, keepdims=True)
    proba = (p + added) / (1 + added.sum(axis=1, keepdims=True))
    # Rounding is to change no decision.
    decided = np.take_along_axis(proba, codes_of(p + shift)[:, None], axis=1)
    return np.minimum(proba, decided)


def _rule(projection: Projection, p: np.ndarray, columns: Any) -> LabelRule:
    """Return the rule on the rows of positive weight."""
    counted = projection.counted
    return LabelRule(projection.fitted_constraint_, counted(p), counted(columns))
