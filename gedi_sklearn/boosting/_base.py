"""What the two estimators share: parameters, data, the rounds, the fitted attributes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from joblib import effective_n_jobs
from sklearn import get_config
from sklearn.base import is_classifier
from sklearn.utils.metadata_routing import MetadataRouter, process_routing

from .._certificate import Certificate, issue_certificate
from .._constrained_estimator import COLUMN_CONSTRAINTS, ConstrainedEstimator, fit_method
from .._meta_estimator import add_splitter, has_splitter
from .._validation import (
    N_JOBS,
    Interval,
    Outcomes,
    StrOptions,
    _check_method_params,
    _safe_indexing,
    check_groups,
    check_random_state,
    check_same_length,
)
from .._verdict import make_verdict
from ..constraints import FittedConstraint
from ..exceptions import (
    ConstraintNotMetWarning,
    RankDeficientKernelError,
    ZeroReferenceError,
    warn_caller,
)
from ._backends import BACKENDS, LEAF_WEIGHT, Backend, Settings, check_features, find_backend
from ._distributed import fit_on_cluster, is_dask
from ._parameters import refusals_named, refuse_backend_object
from ._training import UNITS, Ascent, Member, Rows, Trained, train

# By which share of a bound rows held out may exceed it without a warning, and from how many rows
# on: labels of few come in steps.
_FOLLOWS, _LEAST_ROWS = 0.1, 500
# Folds whose rows are predicted by others, for a certificate.
_FOLDS = 3


class BaseConstrainedBoosting(ConstrainedEstimator):
    """Base class of the regressor and the classifier, which add targets and output."""

    __metadata_request__fit = {"sample_weight": True, "groups": True}  # noqa: RUF012

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "backend": [StrOptions(set(BACKENDS))],
        "n_estimators": [Interval(Integral, 1, None, closed="left")],
        "learning_rate": [Interval(Real, 0, 1, closed="right")],
        "backend_params": [dict, None],
        "constraint": "no_validation",  # checked by `check_constraint`, with words that help
        "cv": ["cv_object"],
        "confidence": [Interval(Real, 0, 1, closed="neither"), None],
        "early_stopping_rounds": [Interval(Integral, 1, None, closed="left"), None],
        **COLUMN_CONSTRAINTS,
        "random_state": ["random_state"],
        "verbose": ["verbose"],
        "n_jobs": N_JOBS,
    }

    def __init__(
        self,
        backend: str = "xgboost",
        constraint: Any = None,
        *,
        n_estimators: int = 150,
        learning_rate: float = 0.1,
        backend_params: dict[str, Any] | None = None,
        cv: Any = None,
        confidence: float | None = None,
        early_stopping_rounds: int | None = None,
        sensitive_columns: Any = None,
        drop_sensitive: bool = False,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.backend = backend
        self.constraint = constraint
        self.n_estimators = n_estimators
        self.learning_rate = learning_rate
        self.backend_params = backend_params
        self.cv = cv
        self.confidence = confidence
        self.early_stopping_rounds = early_stopping_rounds
        self.sensitive_columns = sensitive_columns
        self.drop_sensitive = drop_sensitive
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def _validate_params(self) -> None:
        refuse_backend_object(type(self).__name__, self.backend, sorted(BACKENDS))
        super()._validate_params()

    @property
    def _bounded(self) -> Callable[[np.ndarray], np.ndarray]:
        """Return what is bounded of scores (n, C): here themselves."""
        return np.asarray

    @fit_method
    def fit(
        self,
        X: Any,
        y: Any,
        *,
        sensitive_features: Any = None,
        sample_weight: Any = None,
        groups: Any = None,
        eval_set: Any = None,
        **split_params: Any,
    ) -> BaseConstrainedBoosting:
        """Grow the trees under the constraint.

        Parameters
        ----------
        X : array-like of shape (n, p)
            Features; missing values and the categorical columns of a frame as the backend takes
            them. With XGBoost also an array or a frame of Dask, without `cv` and `eval_set`: trees
            grow on the workers of the current client, each on the rows that it holds, while
            attribute, targets and weights come to the client.
        y : array-like of shape (n,)
            Targets.
        sensitive_features : array-like of shape (n,) or (n, m), default=None
            The protected attribute(s), matched to rows by position. None if `sensitive_columns`
            names them in X.
        sample_weight : array-like of shape (n,), default=None
            Weights of the rows, in the trees and in the kernel. A row of weight 0 is ignored.
        groups : array-like of shape (n,), default=None
            Which rows are not independent of each other, such as those of one person: folds do not
            split them. None takes all rows as independent.
        eval_set : list of (X, y), default=None
            Further rows whose loss `evals_result_` has for every round; the last pair decides on
            early stopping.
        **split_params : dict
            What the splitter in `cv` requests, with metadata routing: ``groups``.

        Returns
        -------
        self : object

        Raises
        ------
        ImportError
            If the package of the backend is missing.
        ValueError
            If data, weights or parameters are invalid.
        RuntimeError or xgboost.core.XGBoostError
            If a worker of Dask is lost.
        """
        backend = find_backend(self.backend, type(self).__name__)
        if self.early_stopping_rounds is not None and self.cv is None and not eval_set:
            raise ValueError(
                f"early_stopping_rounds={self.early_stopping_rounds} needs rows that the trees do "
                "not see: pass eval_set=[(X_val, y_val)] to fit, or set cv."
            )
        split_params = self._route_split(split_params)
        if is_dask(X):
            refused = {"groups": groups, "eval_set": eval_set}
            return fit_on_cluster(self, X, y, sensitive_features, sample_weight, **refused)
        y, weight, attribute = self._check_training_data(X, y, sensitive_features, sample_weight)
        features = check_features(self._inner_X(X))
        further = self._check_eval_set(eval_set)
        groups = check_groups(groups, len(y))
        folds = self._folds(features, y, weight, groups, attribute, split_params)
        if weight is not None and not weight.all():
            counted = np.flatnonzero(weight > 0)
            y, weight, attribute = y[counted], weight[counted], attribute[counted]
            groups = None if groups is None else groups[counted]
            features = _safe_indexing(features, counted)
            split_params = _check_method_params(X, split_params, indices=counted)
        constraint = self._fit_constraint(attribute, y, weight, self._unseen(y))
        data = features, y, weight, attribute, groups
        share = self._certify(backend, constraint, data, split_params)
        trained, members, rows = self._grow(
            backend, constraint.scaled(share), (features, y, weight), folds, further
        )
        self._set_fitted(constraint, trained, [own.backend.finish() for own in members])
        self._warn_no_split(backend, trained, rows)
        self._calibrate(trained.scores, rows)
        self._judge(constraint, trained, y, groups)
        return self

    def _grow(
        self,
        backend: type[Backend],
        constraint: FittedConstraint,
        data: tuple[Any, np.ndarray, np.ndarray | None],
        folds: Sequence[tuple[Any, Any]],
        further: Sequence[tuple[Any, np.ndarray]] = (),
    ) -> tuple[Trained, list[Member], Rows]:
        """Run the rounds on features, targets and weights."""
        features, y, weight = data
        rows = self._rows(constraint, y, weight)
        with refusals_named(self.backend, self.backend_params):
            members = self._members(backend, features, folds, rows.y.shape[1], further)
            is_held_out = members[0].held is not None
            trained = train(
                members,
                rows,
                Ascent(constraint, self.n_estimators, self.learning_rate, is_held_out=is_held_out),
                evaluations=[constraint.columns(own).astype(np.float64) for _, own in further],
                **self._round_params(rows),
            )
        return trained, members, rows

    def _certify(
        self,
        backend: type[Backend],
        constraint: FittedConstraint,
        data: tuple[Any, np.ndarray, np.ndarray | None, np.ndarray, np.ndarray | None],
        split_params: dict[str, Any],
    ) -> float:
        """Set the certificate, and return the share of the bound that the trees grow under."""
        self.certificate_: Certificate | None = None
        if self.confidence is None:
            return 1.0
        if isinstance(self.cv, Iterable):
            raise ValueError(
                f"confidence={self.confidence} grows boosters on parts of the rows, so cv must be "
                "None, an integer or a splitter, got splits."
            )
        X, y, weight, attribute, groups = data
        fold_maker = self._fold_maker(y, None, groups, attribute, {})
        is_split = fold_maker.n_independent > _FOLDS
        splits = fold_maker(_FOLDS, X).splits if is_split else []

        def held_out(share: float) -> np.ndarray | None:
            if not splits:
                return None
            scores = np.empty((len(y), constraint.columns(y[:1]).shape[1]))
            for rows, test in splits:
                own = _safe_indexing(X, rows), y[rows], None if weight is None else weight[rows]
                parts = None if groups is None else groups[rows]
                try:
                    part = self._fit_constraint(attribute[rows], *own[1:], self._unseen(own[1]))
                except (RankDeficientKernelError, ZeroReferenceError):
                    return None
                params = _check_method_params(X, split_params, indices=rows)
                folds = self._folds(*own, parts, attribute[rows], params)
                trained, members, _ = self._grow(backend, part.scaled(share), own, folds)
                boosters = [one.backend.finish() for one in members]
                found = self._mean_scores(boosters, trained.trees, _safe_indexing(X, test))
                scores[test] = found
            return self._as_numbers(scores)

        self.certificate_, share = issue_certificate(
            constraint, held_out, self.confidence, is_one_event=False, n_folds=_FOLDS, groups=groups
        )
        return share

    def _rows(self, constraint: FittedConstraint, y: np.ndarray, weight: np.ndarray | None) -> Rows:
        """Return what the rounds need of the rows."""
        columns = constraint.columns(y).astype(np.float64)
        # Limits of the trees, such as the least weight of a leaf, are for weights of mean 1.
        own = np.ones(len(y)) if weight is None else weight / weight.max()
        is_class = is_classifier(self)
        return Rows(columns, own / own.mean(), constraint.orthonormal, is_class, self._bounded)

    def _round_params(self, rows: Rows) -> dict[str, Any]:
        """Return the keywords of the rounds, and set the unit of the trees."""
        self._unit = unit = UNITS[self._loss].of(rows)
        self.intercept_, self.scale_ = unit
        return {
            "n_rounds": self.n_estimators,
            "unit": unit,
            "patience": self.early_stopping_rounds,
            "verbose": self.verbose,
        }

    def _settings(self, n_outputs: int) -> Settings:
        """Return what every booster is told beside its rows."""
        params, n_jobs = self.backend_params or {}, effective_n_jobs(self.n_jobs)
        return Settings(params, n_outputs, self.learning_rate, self._seed(), n_jobs)

    @property
    def _loss(self) -> str:
        """The loss of the trees."""
        return "squared_error"

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        # An attribute may not be missing.
        tags.input_tags.allow_nan = self.sensitive_columns is None
        return tags

    def _check_eval_set(self, eval_set: Any) -> list[tuple[Any, np.ndarray]]:
        """Return the features and the targets of further rows, classes as 0…K − 1."""
        found = []
        for pair in [] if eval_set is None else eval_set:
            if not isinstance(pair, (tuple, list)) or len(pair) != 2:
                raise ValueError(
                    "eval_set must be a list of pairs, [(X_val, y_val)]; it holds a "
                    f"{type(pair).__name__}."
                )
            X, y = pair
            targets = self._check_more_targets(y, "the y of eval_set")
            check_same_length(len(targets), **{"the X of eval_set": X})
            found.append((check_features(self._checked_inner_X(X)), targets))
        return found

    def _unseen(self, y: np.ndarray) -> Outcomes | None:
        """Return the original targets where boosters have not seen the rows that they predict."""
        return None if self.cv is None else self._outcomes(y)

    def _members(
        self,
        backend: type[Backend],
        X: Any,
        folds: Sequence[tuple[Any, Any]],
        n_outputs: int,
        further: Sequence[tuple[Any, np.ndarray]],
    ) -> list[Member]:
        """Return the boosters: one on all rows, or one for each fold."""
        settings = self._settings(n_outputs)

        def member(rows: Any, held: Any) -> Member:
            others = [own for own, _ in further]
            if held is not None:
                others.insert(0, _safe_indexing(X, held))
            own = X if held is None else _safe_indexing(X, rows)
            return Member(backend(own, settings, others), rows, held)

        return [member(train, held) for train, held in folds]

    def get_metadata_routing(self) -> MetadataRouter:
        """Return the routing of metadata to `fit` and to the splitter in `cv`.

        Returns
        -------
        routing : MetadataRouter
        """
        router = MetadataRouter(owner=type(self).__name__)
        return add_splitter(router.add_self_request(super().get_metadata_routing()), self.cv)

    def _route_split(self, given: dict[str, Any]) -> dict[str, Any]:
        """Return the keywords of the splitter among those of `fit` that are not its own."""
        if not given:
            return {}
        if not (get_config()["enable_metadata_routing"] and has_splitter(self.cv)):
            raise TypeError(
                f"fit() got {sorted(given)}, which only a splitter in cv takes, and only with "
                "sklearn.set_config(enable_metadata_routing=True)."
            )
        return dict(process_routing(self, "fit", **given).splitter.split)

    def _folds(
        self,
        X: Any,
        y: np.ndarray,
        weight: np.ndarray | None,
        groups: np.ndarray | None,
        attribute: np.ndarray,
        split_params: dict[str, Any],
    ) -> Sequence[tuple[Any, np.ndarray | None]]:
        """Return the rows of every booster and those that it alone has not seen, if any.

        They are positions among the rows of positive weight.
        """
        if self.cv is None:
            return [(slice(None), None)]
        folds = self._fold_maker(y, weight, groups, attribute, split_params)(self.cv, X)
        if (folds.n_tests != 1).any():
            raise ValueError(
                f"cv: {folds.origin} must hold out every row once; {folds.uneven_rows()}."
            )
        return folds.splits if weight is None else folds.among(weight > 0)

    def _seed(self) -> int:
        """Return the seed of the backend and of the folds; 0 without `random_state`."""
        if self.random_state is None:
            return 0
        return int(check_random_state(self.random_state).randint(np.iinfo(np.int32).max))

    def _set_fitted(
        self, constraint: FittedConstraint, trained: Trained, boosters: list[Any]
    ) -> None:
        """Set the fitted attributes; no rows are kept."""
        self._take_constraint(constraint)
        self.n_iter_, self._trees = trained.n_rounds, trained.trees
        self.booster_: Any = boosters if self.cv is not None else boosters[0]
        self.multipliers_ = _by_column(trained.multipliers)
        history = trained.history
        self.history_ = {
            "loss": np.array(history["loss"]),
            "indicator": np.array([constraint.indicator_at(c) for c in history["coordinates"]]),
            "multipliers": np.array([_by_column(own) for own in history["multipliers"]]),
        }
        names = (f"validation_{number}" for number in range(len(trained.evaluated)))
        # The loss under its name.
        found = [
            {self._loss if name == "loss" else name: values for name, values in own.items()}
            for own in trained.evaluated
        ]
        self.evals_result_ = dict(zip(names, found, strict=True))

    def _judge(
        self,
        constraint: FittedConstraint,
        trained: Trained,
        y: np.ndarray,
        groups: np.ndarray | None = None,
    ) -> None:
        """Set the verdict, and warn where the constraint is not met."""
        z = self._as_numbers(trained.scores)
        seen = {"training": z} if self.cv is None else {"new_rows": z}
        scores = self._class_scores(trained.scores)
        verdict = make_verdict(constraint, y, z, scores=scores, groups=groups, **seen)
        if self.cv is None:
            constraint.warn_excess(
                z, "Raise `n_estimators` or `learning_rate`", "The multipliers have not converged."
            )
        elif trained.excess > _FOLLOWS and len(y) >= _LEAST_ROWS:
            warn_caller(
                f"predictions of held-out rows exceed the bound by {trained.excess:.0%}: they do "
                "not follow the multipliers, which keep growing and cost accuracy. The "
                "constraint depends on few rows, as it does at a high degree: lower the degree, "
                "use more rows, or cv=None.",
                ConstraintNotMetWarning,
            )
        self._take_verdict(verdict)

    def _warn_no_split(self, backend: type[Backend], trained: Trained, rows: Rows) -> None:
        """Warn where no tree has a split, with the cause."""
        if np.ptp(trained.scores, axis=0).any() or not np.ptp(rows.y, axis=0).any():
            return
        name = backend.leaf_weight
        least = backend.table.check(self.backend_params or {}).get(name, LEAF_WEIGHT)
        warn_caller(
            f"all predictions are the same: no tree could split the {len(rows.y)} rows. With a "
            f"mean weight of 1, a leaf needs a weight of at least {least:g}, and a split the gain "
            f"that backend_params set. Use more rows, or a smaller {name!r} in backend_params."
        )

    def _scores(self, X: Any) -> np.ndarray:
        """Return the scores of new rows, shape (n, C)."""
        features = check_features(self._new_inner_X(X))
        boosters = self.booster_ if isinstance(self.booster_, list) else [self.booster_]
        return self._mean_scores(boosters, self._trees, features)

    def _mean_scores(self, boosters: list[Any], trees: list[int], features: Any) -> np.ndarray:
        """Return the scores of rows by the first trees of some boosters."""
        n_jobs, predict = effective_n_jobs(self.n_jobs), BACKENDS[self.backend].predict
        pairs = zip(boosters, trees, strict=True)
        found = [predict(booster, features, n, n_jobs) for booster, n in pairs]
        return np.mean([self._unit.scores(own) for own in found], axis=0)

    def _as_numbers(self, scores: np.ndarray) -> np.ndarray:
        """Return what the constraint bounds as one column, classes as 0…K − 1."""
        z = self._bounded(scores)
        return z[:, 0] if z.shape[1] == 1 else z.argmax(axis=1)


def _by_column(stacked: np.ndarray) -> np.ndarray:
    """Return numbers (Σk, C) as a row for each of several columns, or as those of the only one."""
    return stacked[:, 0] if stacked.shape[1] == 1 else stacked.T
