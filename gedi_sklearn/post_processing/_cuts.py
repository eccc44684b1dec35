"""The part of the projected estimators that bounds the share of rows above every cut."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .._certificate import Certificate, issue_certificate
from .._folds import FoldMaker
from .._verdict import Verdict, verdict_on_cuts
from ..constraints import Constraint, FittedCuts, check_constraint
from ..exceptions import ConstraintNotMetWarning, RankDeficientKernelError, warn_caller
from ._distribution import (
    DistributionCorrection,
    DistributionMap,
    ExpectedColumns,
    KernelColumns,
    Step,
)

_NO_LIST = (
    "on='distribution' bounds the influence of one attribute on real predictions, or on the "
    "probability of the second of two classes. It goes with no list of constraints, conditional_on "
    "or further classes."
)


class BoundsCuts:
    """Maps scores so that the share above every cut is within a bound."""

    constraint: Any
    confidence: float | None
    conditional_on: Any
    sensitive_at_predict: bool
    _loss: Any
    kernel_: Any
    _attribute_columns: list[str] | None
    _take_constraint: Any
    _map: DistributionMap | None
    _step: Step
    _expected_as_columns: Callable[[np.ndarray], np.ndarray] | None

    def _check_cuts(self, p: np.ndarray) -> Constraint:
        """Return the constraint, and refuse what does not go with it."""
        given = check_constraint(self.constraint, type(self).__name__)
        if isinstance(given, list) or self.conditional_on is not None or p.ndim == 2:
            raise ValueError(_NO_LIST)
        if self._loss == "kl":
            raise ValueError(
                "loss='kl' multiplies predictions by a function of the attribute, and "
                "on='distribution' moves their ranks. Use one of them."
            )
        given.validate()
        return given

    def _fit_cuts(
        self,
        p: np.ndarray,
        fold_maker: FoldMaker,
        expect: Callable[[np.ndarray], np.ndarray],
        *,
        is_unseen: bool,
    ) -> None:
        """Find the map of the scores of a fit, and how far to go along it.

        Parameters
        ----------
        p : ndarray of shape (n,)
            Scores of the rows.
        fold_maker : FoldMaker
            Has their attribute and weights.
        expect : callable
            Fits m(X) to columns of the kernel on the rows, and returns it for rows unseen.
        is_unseen : bool
            Whether their models have not seen them.
        """
        given, weight = self._check_cuts(p), fold_maker.weight
        self._map = self._expected_as_columns = self.kernel_ = None
        self.certificate_: Certificate | None = None
        self.verdict_: Verdict | None = None
        self.constraint_, self.threshold_, self.reference_ = given, float(given.threshold), 1.0
        self.correction_ = self.orthonormal_correction_ = np.empty(0)
        self._step = Step()
        counted = slice(None) if weight is None else weight > 0
        attribute = fold_maker.attribute[counted]
        own, known = None if weight is None else weight[counted], fold_maker.attribute
        try:
            fitted = FittedCuts(given, attribute, own, p[counted])
        except RankDeficientKernelError as error:
            if not error.is_constant:
                raise
            warn_caller(
                "sensitive_features is constant, so there is nothing to constrain: the predictions "
                "are those of the plain learner."
            )
        else:
            self._take_constraint(fitted)
            source: KernelColumns | ExpectedColumns = KernelColumns(fitted, attribute)
            if not self.sensitive_at_predict:
                columns = np.zeros((len(p), self.kernel_.n_columns))
                columns[counted] = self.kernel_.orthonormal_within_range(attribute, warns=False)
                known = expect(columns)
                source = ExpectedColumns(fitted, known[counted])
            self._take_map(fitted, source, fold_maker, is_unseen)
        moved = p.copy()  # other rows may have levels that no row has which counts
        moved[counted] = self._moved(p[counted], known[counted], warns=False)
        self._fit_scale(p[counted], moved[counted], own)
        self.share_, self.targets_ = self._step.share, self._on_scale(moved)

    def _take_map(
        self,
        fitted: FittedCuts,
        source: KernelColumns | ExpectedColumns,
        fold_maker: FoldMaker,
        is_unseen: bool,
    ) -> None:
        """Take the map, its share, and what is known of it."""
        splits, weight = [], fold_maker.weight
        # Without the attribute no kernel is fitted on a fold, which may lack levels.
        if is_unseen and (self.kernel_.encoder is None or not self.sensitive_at_predict):
            folds = fold_maker.correction_folds()
            splits = folds.splits if weight is None else folds.among(weight > 0)
        groups = fold_maker.groups
        if groups is not None and weight is not None:
            groups = groups[weight > 0]
        try:
            correction = DistributionCorrection(fitted, source, splits)
        except RankDeficientKernelError:  # of a fold, which may lack a rare value
            splits = []
            correction = DistributionCorrection(fitted, source, splits)
        self._map, bound = correction.map, fitted.threshold
        self._expected_as_columns = None if self.sensitive_at_predict else correction.columns_of

        def corrected(share: float) -> np.ndarray:
            return correction.by_others.at(correction.step(share * bound))

        stricter = 1.0
        if self.confidence is not None:
            self.certificate_, stricter = issue_certificate(
                fitted,
                corrected,
                self.confidence,
                is_one_event=False,
                n_folds=len(splits),
                groups=groups,
            )
        self._step = correction.step(stricter * bound)
        scores = correction.by_others.at(self._step)
        self.verdict_ = verdict_on_cuts(
            fitted,
            training=correction.by_all.at(self._step),
            new_rows=scores if correction.is_unseen else None,
            groups=groups,
            names=self._attribute_columns,
        )
        value = fitted.judged(scores)
        low = fitted.lower_limit(scores, 0.95, groups) if value > bound else 0.0
        if low > bound:  # less is chance
            warn_caller(
                f"the rate above the worst cut depends on the attribute by {value:.3g} "
                f"(at least {low:.3g}), where at most {bound:.3g} was asked: scores are tied, the "
                "kernel misses their dependence, or (sensitive_at_predict=False) the other columns "
                "of X predict the attribute too poorly. Use a learner with fewer ties, a kernel of "
                "more columns, or another `attribute_estimator`.",
                ConstraintNotMetWarning,
            )

    def _moved(self, p: np.ndarray, known: np.ndarray | None, *, warns: bool = True) -> np.ndarray:
        """Return scores of rows, of which the attribute or m(X) is known, moved along the map."""
        if self._map is None or known is None:
            return p
        if self._expected_as_columns is None:
            columns = self.kernel_.orthonormal_within_range(known, warns=warns)
        else:
            columns = self._expected_as_columns(known)
        return self._map.path(p, columns).at(self._step)

    def _fit_scale(self, p: np.ndarray, moved: np.ndarray, weight: np.ndarray | None) -> None:
        """Find what makes predictions of moved scores; nothing for real targets."""

    def _on_scale(self, moved: np.ndarray) -> np.ndarray:
        """Return moved scores as the learner's are, here as predictions."""
        raise NotImplementedError
