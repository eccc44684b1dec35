"""What both projected estimators share: one fit, predictions for unseen rows, one projection."""

from __future__ import annotations

from numbers import Real
from typing import Any, ClassVar, NamedTuple

import numpy as np
from sklearn.base import clone, is_classifier
from sklearn.utils.metadata_routing import MetadataRequest

from .._certificate import Certificate, issue_certificate
from .._constrained_estimator import COLUMN_CONSTRAINTS, fit_method
from .._folds import CORRECTION_FOLDS, FoldMaker, make_prediction_source
from .._meta_estimator import COVARIATE_CONSTRAINTS
from .._predictions import answers_as_fitted, asks_for_attribute
from .._validation import (
    N_JOBS,
    HasMethods,
    Interval,
    Outcomes,
    StrOptions,
    _num_samples,
    check_attribute,
)
from ..constraints import bounded_output, joint_columns
from ..exceptions import (
    ConstraintNotMetWarning,
    RankDeficientKernelError,
    UnseenLevelError,
    ZeroReferenceError,
    silent,
    warn_caller,
)
from ..kernels import AttributeEncoder, FittedKernel
from ..projection import PROJECTION_PARAMETERS, Projection, UnseenProjection
from ._attribute_estimator import AttributeBlind
from ._corrections import Correction, CrossCorrection, Fold, attribute_blind_correction
from ._cuts import BoundsCuts


class Learned(NamedTuple):
    """The part of a fit that does not depend on the threshold.

    Attributes
    ----------
    projection : Projection or None
        The constraint on the rows; None for a constant attribute.
    scores : ndarray of shape (n,)
        Predictions for the rows.
    columns : ndarray or GroupColumns of shape (n, k)
        Q(x) of the kernels of all constraints, or its prediction from X.
    labels : ndarray of shape (n,)
        The original targets, as they would be in `targets_`.
    weight, groups : ndarray of shape (n,) or None
        Weights of the rows, and which of them are not independent.
    """

    projection: Projection
    scores: np.ndarray
    columns: Any
    labels: np.ndarray
    weight: np.ndarray | None
    groups: np.ndarray | None


class Projected(BoundsCuts, AttributeBlind):
    """What both estimators share: one fit, predictions for unseen rows, one projection."""

    # Requested by default, as in `fit`, so that predict(X, sensitive_features=s) of a pipeline and
    # a search need no set_predict_request; `get_metadata_routing` drops it where it is not needed.
    __metadata_request__predict = {"sensitive_features": True}  # noqa: RUF012
    __metadata_request__score = {"sensitive_features": True}  # noqa: RUF012

    # What can be bounded beside predictions.
    _can_bound: ClassVar[tuple[str, ...]] = ("residuals",)
    # Set by a caller that corrects the object later with `_correct_at`, for one or many thresholds:
    # `fit` then keeps what does not depend on them. Otherwise no rows of the data are kept.
    _is_corrected_later = False

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "estimator": [HasMethods(["fit"]), None],
        "constraint": PROJECTION_PARAMETERS["constraint"],
        "cv": [StrOptions({"train", "oob"}), "cv_object"],
        **COLUMN_CONSTRAINTS,
        "sensitive_at_predict": ["boolean"],
        "attribute_estimator": [HasMethods(["fit", "predict"]), None],
        "confidence": [Interval(Real, 0, 1, closed="neither"), None],
        "n_jobs": N_JOBS,
        "random_state": ["random_state"],
        **COVARIATE_CONSTRAINTS,
    }

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
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.estimator = estimator
        self.constraint = constraint
        self.sensitive_columns = sensitive_columns
        self.drop_sensitive = drop_sensitive
        self.conditional_on = conditional_on
        self.sensitive_at_predict = sensitive_at_predict
        self.attribute_estimator = attribute_estimator
        self.cv = cv
        self.confidence = confidence
        self.n_jobs = n_jobs
        self.random_state = random_state

    @property
    def _bounds_cuts(self) -> bool:
        return bounded_output(self.constraint) == "distribution"

    def _fitted_children(self) -> dict[str, Any]:
        children = super()._fitted_children()
        if not self.sensitive_at_predict:
            children["attribute_estimator"] = self._make_attribute_estimator()
        return children

    @fit_method
    def fit(
        self,
        X: Any,
        y: Any,
        *,
        sensitive_features: Any = None,
        sample_weight: Any = None,
        groups: Any = None,
        **fit_params: Any,
    ) -> Projected:
        """Fit the inner estimator once, and compute the correction of its predictions.

        Parameters
        ----------
        X : array-like of shape (n, p)
            Rows, passed on to the inner estimator unchanged.
        y : array-like of shape (n,)
            Targets.
        sensitive_features : array-like of shape (n,) or (n, m), default=None
            The protected attribute(s). None if `sensitive_columns` names them in X.
        sample_weight : array-like of shape (n,), default=None
            Weights of the rows in every fit, in the projection and in the kernel. Rows of weight 0
            have no part in the folds.
        groups : array-like of shape (n,), default=None
            Which rows are not independent of each other, such as those of one person: folds do not
            split them. None takes all rows as independent.
        **fit_params : dict
            Further keywords of the inner estimator's `fit`. `drop_sensitive=True` applies to a
            further X among them (`X_val`, `eval_X`, and those in `eval_set`) as well.

        Returns
        -------
        self : object
        """
        y, weight, attribute = self._check_training_data(X, y, sensitive_features, sample_weight)
        inner = self._inner_X(X)
        own = {
            "sensitive_features": sensitive_features,
            "sample_weight": sample_weight,
            "groups": groups,
        }
        keywords = self._route_fit(own, fit_params)
        self._table = None if self.sensitive_at_predict else self._read_table(X)
        fold_maker = self._fold_maker(y, weight, groups, attribute, keywords["splitter"])
        source = make_prediction_source(
            self.cv, inner, fold_maker, keywords["estimator"], self.n_jobs
        )
        if self.confidence is not None and not source.is_unseen:
            raise ValueError(
                f"confidence={self.confidence} needs predictions of rows that the learner has not "
                f"seen, nor rows of the same group, and cv={self.cv!r} has none. Use an integer or "
                "a splitter, or without groups cv='oob'."
            )
        estimator = source.prepare(clone(self._inner_estimator()))
        self.estimator_ = estimator.fit(inner, self._labels(y), **keywords["estimator"])
        p = self._scores(source(self.estimator_, self._labels(y)), inner)
        if self._bounds_cuts:

            def expect(columns: np.ndarray) -> np.ndarray:
                own = keywords["attribute_estimator"]
                return self._expect_kernel(X, columns, own, source, fold_maker)

            self._fit_cuts(p, fold_maker, expect, is_unseen=source.is_unseen)
            return self
        covariates = self._fit_covariates(X, len(y))
        outcomes = self._outcomes(y) if source.is_unseen else None
        projection = self._make_projection(y, attribute, sample_weight, covariates, outcomes)
        with projection:
            self._take_constraint(projection.fitted_constraint_)
            self._subsets = self._class_subsets(projection)
            columns = projection.row_columns
            if columns.shape[1] and self.sensitive_at_predict and self._has_subset:
                columns = self._weighed(self._new_columns(attribute, X, warns=False), p)
            elif columns.shape[1] and not self.sensitive_at_predict:
                expected = self._expect_kernel(
                    X, np.asarray(columns), keywords["attribute_estimator"], source, fold_maker
                )
                self._recalibration = self._recalibrate(projection, p, expected)
                columns = self._recalibration(p, expected)
            labels = self._own_targets(y)
            learned = Learned(projection, p, columns, labels, weight, fold_maker.groups)
            if self._is_corrected_later:
                self._learned = learned
            else:
                is_unseen = source.is_unseen
                others = self._cross_correction(learned, fold_maker, covariates, is_unseen)
                share = self._certify(learned, others)
                self._correct(learned, share)
                self._judge(learned, others, share, X)
        return self

    def _fit_covariates(self, X: Any, n_rows: int) -> np.ndarray | None:
        """Return the covariates; the levels of categories are kept for new rows."""
        covariates = self._covariates(X)
        if covariates is not None:
            covariates = check_attribute(covariates, n_rows, kind="mixed", name="conditional_on")
            self._covariate_encoder = AttributeEncoder(covariates, parameter="conditional_on")
        return covariates

    def _make_projection(
        self,
        y: np.ndarray,
        attribute: np.ndarray,
        sample_weight: Any,
        covariates: np.ndarray | None = None,
        outcomes: Outcomes | None = None,
    ) -> Projection:
        """Return the projection, which allows everything where the attribute is constant."""
        return UnseenProjection(
            y,
            outcomes=outcomes,
            bounds=self._can_bound,
            names=self._attribute_columns,
            sensitive_features=attribute,
            constraint=self.constraint,
            loss=self._loss,
            target_bounds=self._target_bounds,
            conditional_on=covariates,
            sample_weight=sample_weight,
            solver="highs",
            allow_constant=True,
        )

    def _class_subsets(self, projection: Projection) -> list[np.ndarray | None]:
        """Return for every constraint which classes are in its subset; None for all."""
        raise NotImplementedError

    @property
    def _has_subset(self) -> bool:
        return any(classes is not None for classes in self._subsets)

    @property
    def _is_exact(self) -> bool:
        """Whether the columns of the correction are those of the kernel, not what is expected."""
        return self.sensitive_at_predict and not self._has_subset

    def _weighed(self, columns: Any, p: np.ndarray) -> np.ndarray:
        """Return what is expected of the kernels: Q times the probability of being in a subset."""
        probabilities = np.column_stack([1 - p, p]) if p.ndim == 1 else p
        ends = np.cumsum([kernel.n_columns for kernel in self._kernels])
        pieces = np.split(np.asarray(columns), ends[:-1], axis=1)
        return np.hstack(
            [
                own if classes is None else own * probabilities[:, classes].sum(axis=1)[:, None]
                for own, classes in zip(pieces, self._subsets, strict=True)
            ]
        )

    def _correct(self, learned: Learned, share: float = 1.0) -> None:
        """Find the correction at a share of the threshold of the projection."""
        projection, p, columns, labels, weight, _ = learned
        constraint = projection.fitted_constraint_
        self._take_constraint(constraint)
        correction = Correction(np.empty(0))
        if columns.shape[1]:
            stricter = projection if share == 1.0 else projection.scaled(share)
            correction = self._find_correction(stricter, p, columns)
        coordinates, self._intercept = correction
        self.orthonormal_correction_ = constraint.by_column(coordinates)
        self.correction_ = constraint.by_column(constraint.raw_correction(coordinates))
        corrected = self._apply(p, columns @ self.orthonormal_correction_.T, self._intercept)
        self._warn_missed(projection, corrected)
        self.targets_ = self._as_targets(corrected)
        if weight is not None:
            # As in a projection, a row that does not count keeps its target.
            self.targets_ = np.where(weight > 0, self.targets_, labels)

    def _apply(self, p: np.ndarray, shift: np.ndarray | float, intercept: float) -> np.ndarray:
        """Return corrected scores, from what the correction is of them."""
        return p + shift

    @property
    def _target_bounds(self) -> Any:
        """The range of corrected targets; None for any."""
        return None

    @property
    def _bounds(self) -> tuple[float, float]:
        """The same as numbers."""
        low, high = self._target_bounds or (None, None)
        return -np.inf if low is None else low, np.inf if high is None else high

    def _find_correction(self, projection: Projection, p: np.ndarray, columns: Any) -> Correction:
        """Return the correction of predictions; here that of real targets."""
        if not self.sensitive_at_predict:
            return attribute_blind_correction(projection, p, columns)
        # With weight 0 the targets do not matter: the result is nearest to the predictions.
        result = projection.solve(p, 0.0)
        return Correction(result.orthonormal_correction, result.intercept)

    def _warn_missed(self, projection: Projection, scores: np.ndarray) -> None:
        """Warn where corrected scores miss the constraint.

        Those of real targets do not, but for attribute-blind ones with a link.
        """
        bounds = self._target_bounds
        if self.sensitive_at_predict or (self._loss == "squared_error" and bounds is None):
            return
        violation = projection.violation(self._as_numbers(scores))
        if violation > 0.0:
            warn_caller(
                f"the corrected predictions miss the constraint by {violation:.3g} on the rows of "
                f"the fit: no correction without the attribute (sensitive_at_predict=False) was "
                f"found that meets it{'' if bounds is None else f' between {bounds}'}. Raise "
                "`threshold`, give another `attribute_estimator`, or pass the attribute at "
                "prediction time.",
                ConstraintNotMetWarning,
            )

    def _class_scores(self, p: np.ndarray, shift: Any) -> np.ndarray | None:
        """Return the probabilities that correspond to corrected scores; None of real targets."""
        return None

    def _as_targets(self, scores: np.ndarray) -> np.ndarray:
        """Return what the constraint bounds: here the predictions."""
        return self._decide(scores)

    def _as_numbers(self, scores: np.ndarray) -> np.ndarray:
        """Return these as the projection has them, classes as 0…K − 1."""
        return self._as_targets(scores)

    def _own_targets(self, y: np.ndarray) -> np.ndarray:
        """Return the original targets in the form of those."""
        return self._labels(y)

    def _cross_correction(
        self,
        learned: Learned,
        fold_maker: FoldMaker,
        covariates: np.ndarray | None,
        is_unseen: bool,
    ) -> CrossCorrection:
        """Return corrections by other rows: by none where nobody asks for them."""
        attribute = fold_maker.attribute
        constraint, scores = learned.projection.fitted_constraint_, learned.scores
        beside = None if covariates is None else self._covariate_encoder.transform(covariates)

        def correct(projection: Projection, rows: np.ndarray) -> Correction:
            return self._fold_correction(projection, scores[rows], learned.columns[rows])

        folds: list[Fold] = []
        # A fold may lack groups.
        is_plain = all(own.encoder is None for own in self._kernels)
        is_asked = self._is_exact and covariates is None and is_plain
        if is_unseen and self._kernels and (is_asked or self.confidence is not None):
            for train, test in fold_maker.correction_folds().splits:
                try:
                    with silent():
                        projection = learned.projection.on_rows(train)
                    columns: Any = learned.columns[test]
                    if self._is_exact:
                        other = () if beside is None else (beside[test],)
                        columns = projection.columns_of(attribute[test], *other)
                except (RankDeficientKernelError, UnseenLevelError, ZeroReferenceError):
                    folds = []
                    break
                folds.append(Fold(train, test, projection, columns))
        return CrossCorrection(constraint, scores, correct, self._apply, folds)

    def _fold_correction(self, projection: Projection, p: np.ndarray, columns: Any) -> Correction:
        """Return the correction of some rows, which others will be judged by."""
        if not self.sensitive_at_predict:
            return self._find_correction(projection, p, columns)
        return Correction(*projection.correction(p))

    @property
    def _is_one_event(self) -> bool:
        """Whether scores miss their true indicator by the same error, however corrected."""
        is_added = self._loss == "squared_error" and self._target_bounds is None
        return not is_classifier(self) and self._is_exact and is_added

    def _certify(self, learned: Learned, others: CrossCorrection) -> float:
        """Set the certificate, and return the share of the bound that it corrects to."""
        self.certificate_: Certificate | None = None
        if self.confidence is None:
            return 1.0

        def corrected(share: float) -> np.ndarray | None:
            scores = others.at(share)
            if scores is None:
                return None
            return learned.projection.counted(self._as_numbers(scores))

        self.certificate_, share = issue_certificate(
            learned.projection.fitted_constraint_,
            corrected,
            self.confidence,
            is_one_event=self._is_one_event,
            n_folds=CORRECTION_FOLDS,
            groups=None if learned.groups is None else learned.projection.counted(learned.groups),
        )
        return share

    def _judge(self, learned: Learned, others: CrossCorrection, share: float, X: Any) -> None:
        """Set the verdict on the corrected predictions, and warn of it."""
        shift = learned.columns @ self.orthonormal_correction_.T
        corrected = self._apply(learned.scores, shift, self._intercept)
        predictions = {"training": self._as_numbers(corrected)}
        if not self.sensitive_at_predict and self._kernels:
            predictions["predicted"] = self._as_numbers(self._corrected(X, None))
        scores = others.at(share)
        if scores is not None:
            predictions["new_rows"] = self._as_numbers(scores)
        verdict = learned.projection.verdict(
            predictions["training"],
            scores=self._class_scores(learned.scores, shift),
            plain=learned.scores,
            groups=learned.groups,
            **predictions,
        )
        self._take_verdict(verdict)

    def _correct_at(self, threshold: Any) -> None:
        """Correct at another threshold what `fit` has learned; to the last bit as a refit does."""
        learned = self._learned
        self._correct(learned._replace(projection=learned.projection.at(threshold)))

    def _own_request(self) -> MetadataRequest:
        """Return the metadata request of this object's methods.

        Predictions request the attribute if they need it, under the same name as `fit` unless
        they were given another.
        """
        request = super()._own_request()
        name = request.fit.requests.get("sensitive_features")
        for method in ("predict", "predict_proba", "score"):
            asked = getattr(request, method)
            if asked.requests.get("sensitive_features") is None:
                continue
            if not asks_for_attribute(self):
                asked.add_request(param="sensitive_features", alias=False)
            elif asked.requests["sensitive_features"] is True and isinstance(name, str):
                asked.add_request(param="sensitive_features", alias=name)
        return request

    @property
    def _reads_attribute(self) -> bool:  # type: ignore[override]
        return self.sensitive_at_predict

    def _known(self, X: Any, sensitive_features: Any) -> np.ndarray | None:
        """Return the attribute of new rows, or m(X) in its place."""
        find = self._new_values if self.sensitive_at_predict else self._new_expected
        return find(X, sensitive_features)

    def _shift(self, X: Any, known: np.ndarray | None, p: np.ndarray) -> np.ndarray | float:
        """Return the correction of the scores p of new rows, shape (n,)."""
        if known is None or self.kernel_ is None:
            return 0.0
        if not self.sensitive_at_predict:
            return self._recalibration(p, known) @ self.orthonormal_correction_.T
        columns = self._new_columns(known, X)
        if self._has_subset:
            columns = self._weighed(columns, p)
        return columns @ self.orthonormal_correction_.T

    def _new_expected(self, X: Any, sensitive_features: Any) -> np.ndarray | None:
        """Return m(X) of new rows; None where there is no kernel."""
        if sensitive_features is not None:
            raise ValueError(
                "sensitive_features was given, but the correction of sensitive_at_predict=False "
                "does not use it. Leave it out, or set sensitive_at_predict=True."
            )
        k = sum(kernel.n_columns for kernel in self._kernels)
        if not k:
            return None
        return self._expected_columns(self.attribute_estimator_, self._blind_X(X), k)

    def _new_values(self, X: Any, sensitive_features: Any) -> np.ndarray:
        """Return the attribute of new rows, which their predictions need."""
        if sensitive_features is None and self.sensitive_columns is None:
            raise ValueError(
                f"the predictions of {type(self).__name__} need the attribute of these rows as "
                "sensitive_features=, which is None. Searches and scorers of scikit-learn do not "
                "pass it on: there, name its column of X with sensitive_columns=, or set "
                "sensitive_at_predict=False."
            )
        if sensitive_features is None and self._lacks_dropped(X):
            raise ValueError(
                f"X lacks sensitive_columns={self.sensitive_columns!r}, which the learner does not "
                "use (drop_sensitive=True), but the correction does. Pass X with them, or set "
                "sensitive_at_predict=False for a correction without the attribute."
            )
        return self._check_attribute(X, sensitive_features, _num_samples(X), reset=False)

    @property
    def _kernels(self) -> list[FittedKernel]:
        """The kernel of every constraint; none where the attribute is constant."""
        if isinstance(self.kernel_, list):
            return self.kernel_
        return [] if self.kernel_ is None else [self.kernel_]

    def _new_columns(self, values: np.ndarray, X: Any, *, warns: bool = True) -> Any:
        """Return Q of the kernels of all constraints for new rows, shape (n, Σk)."""
        if isinstance(self.kernel_, list) and values.shape[1] != len(self.kernel_):
            raise ValueError(
                f"sensitive_features has {values.shape[1]} column(s), but the constraints were "
                f"fitted on {len(self.kernel_)}, one for each."
            )
        beside = []
        if (covariates := self._covariates(X)) is not None:
            covariates = check_attribute(
                covariates, len(values), kind="mixed", name="conditional_on"
            )
            beside = [self._covariate_encoder.transform(covariates)]
        return joint_columns(
            self.kernel_,
            values,
            lambda kernel, own: kernel.orthonormal_within_range(own, *beside, warns=warns),
        )

    def _corrected(self, X: Any, sensitive_features: Any) -> np.ndarray:
        """Return corrected scores of new rows, shape (n,)."""
        inner = self._new_inner_X(X)
        known = self._known(X, sensitive_features)
        p = self._scores(self.estimator_, inner)
        if self._bounds_cuts:
            return self._on_scale(self._moved(p, known))
        return self._apply(p, self._shift(X, known, p), self._intercept)

    @answers_as_fitted
    def predict(self, X: Any, *, sensitive_features: Any = None) -> np.ndarray:
        """Predict with the inner estimator, and correct the predictions.

        Parameters
        ----------
        X : array-like of shape (n, p)
            With the columns of the X in `fit`; with `drop_sensitive` and without
            `sensitive_at_predict` a frame may lack the dropped ones.
        sensitive_features : array-like of shape (n,) or (n, m), default=None
            The attribute of these rows; None if `sensitive_columns` names it, or with
            `sensitive_at_predict=False`.

        Returns
        -------
        y_pred : ndarray of shape (n,)

        Warns
        -----
        AttributeRangeWarning
            If attributes lie outside the range of the fit: they are corrected as its nearest value.
        """
        return self._decide(self._corrected(X, sensitive_features))

    def _predict_for_score(self, X: Any, sensitive_features: Any) -> np.ndarray:
        # A caller that routes the attribute to `fit` routes it to `score` as well, but an
        # attribute-blind estimator needs it in `fit` only. Scikit-learn 1.6 reads the request of
        # the class, not of the object.
        return self.predict(
            X, sensitive_features=sensitive_features if self.sensitive_at_predict else None
        )
