"""The part of the projected estimators that bounds the share of rows above every cut."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._certificate import Certificate, issue_certificate
from .._folds import CORRECTION_FOLDS, FoldMaker
from .._verdict import Verdict, verdict_on_cuts
from ..constraints import Constraint, FittedCuts, bounded_output, check_constraint
from ..exceptions import ConstraintNotMetWarning, RankDeficientKernelError, warn_caller
from ._distribution import DistributionCorrection, DistributionMap, mixed

_NO_LIST = (
    "on='distribution' bounds the influence of one attribute on real predictions, or on the "
    "probability of the second of two classes. It goes with no list of constraints, conditional_on "
    "or further classes."
)
_NOT_BLIND = (
    "on='distribution' ranks the score of a new row among those of its own attribute, which "
    "sensitive_at_predict=False does not know. Set sensitive_at_predict=True, or use "
    "on='predictions'."
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
    _map: DistributionMap | None

    @property
    def _bounds_cuts(self) -> bool:
        return bounded_output(self.constraint) == "distribution"

    def _check_cuts(self, p: np.ndarray) -> Constraint:
        """Return the constraint, and refuse what does not go with it."""
        given = check_constraint(self.constraint, type(self).__name__)
        if isinstance(given, list) or self.conditional_on is not None or p.ndim == 2:
            raise ValueError(_NO_LIST)
        if not self.sensitive_at_predict:
            raise ValueError(_NOT_BLIND)
        if self._loss == "kl":
            raise ValueError(
                "loss='kl' multiplies predictions by a function of the attribute, and "
                "on='distribution' moves their ranks. Use one of them."
            )
        given.validate()
        return given

    def _fit_cuts(self, p: np.ndarray, fold_maker: FoldMaker, *, is_unseen: bool) -> None:
        """Find the map of the scores of a fit, and how far to go along it.

        Parameters
        ----------
        p : ndarray of shape (n,)
            Scores of the rows.
        fold_maker : FoldMaker
            Has their attribute and weights.
        is_unseen : bool
            Whether their models have not seen them.
        """
        given, weight = self._check_cuts(p), fold_maker.weight
        self._map, self.kernel_ = None, None
        self.certificate_: Certificate | None = None
        self.verdict_: Verdict | None = None
        self.constraint_, self.threshold_, self.reference_ = given, float(given.threshold), 1.0
        self.correction_ = self.orthonormal_correction_ = np.empty(0)
        self.share_ = 0.0
        counted = slice(None) if weight is None else weight > 0
        attribute = fold_maker.attribute[counted]
        own = None if weight is None else weight[counted]
        try:
            fitted = FittedCuts(given, attribute, own, p[counted])
        except RankDeficientKernelError as error:
            if error.rank > 0:
                raise
            warn_caller(
                "sensitive_features is constant, so there is nothing to constrain: the predictions "
                "are those of the plain learner."
            )
        else:
            self._take_map(fitted, attribute, fold_maker, is_unseen)
        moved = p.copy() if self._map is None else self._moved(p, fold_maker.attribute, warns=False)
        self._fit_scale(p[counted], moved[counted], own)
        self.targets_ = self._on_scale(moved)

    def _take_map(
        self, fitted: FittedCuts, attribute: np.ndarray, fold_maker: FoldMaker, is_unseen: bool
    ) -> None:
        """Take the map, its share, and what is known of it."""
        self.kernel_ = fitted.design.fitted
        self.constraint_, self.threshold_ = fitted.constraint, fitted.threshold
        self.reference_ = fitted.reference
        splits, weight = [], fold_maker.weight
        if is_unseen and self.kernel_.encoder is None:  # else a fold may lack levels
            folds = fold_maker.correction_folds()
            splits = folds.splits if weight is None else folds.among(weight > 0)
        groups = fold_maker.groups
        if groups is not None and weight is not None:
            groups = groups[weight > 0]
        correction = DistributionCorrection(fitted, attribute, splits)
        self._map, bound = correction.map, fitted.threshold

        def corrected(share: float) -> np.ndarray:
            return correction.at(correction.share(share * bound))

        stricter = 1.0
        if self.confidence is not None:
            self.certificate_, stricter = issue_certificate(
                fitted,
                corrected,
                self.confidence,
                is_one_event=False,
                n_folds=CORRECTION_FOLDS,
                groups=groups,
            )
        self.share_ = correction.share(stricter * bound)
        scores = correction.at(self.share_)
        self.verdict_ = verdict_on_cuts(
            fitted,
            training=mixed(self.share_, fitted.scores, correction.moved),
            new_rows=scores if correction.is_unseen else None,
            groups=groups,
            names=self._attribute_columns,
        )
        value = fitted.indicator.measure(scores)
        low = fitted.sizes(scores[:, None], groups)[1][0] if value > bound else 0.0
        if low > bound:  # less is chance
            warn_caller(
                f"the rate above the worst cut depends on the attribute by {value:.3g} "
                f"(at least {low:.3g}), where at most {bound:.3g} was asked: scores are tied, or "
                "the kernel misses their dependence. Use a learner with fewer ties, or a kernel "
                "of more columns.",
                ConstraintNotMetWarning,
            )

    def _moved(self, p: np.ndarray, values: np.ndarray, *, warns: bool = True) -> np.ndarray:
        """Return scores of rows, moved by the share that the bound asks for."""
        if self._map is None:
            return p
        columns = self.kernel_.orthonormal_within_range(values, warns=warns)
        return mixed(self.share_, p, self._map.moved(p, columns))

    def _fit_scale(self, p: np.ndarray, moved: np.ndarray, weight: np.ndarray | None) -> None:
        """Find what makes predictions of moved scores; nothing for real targets."""

    def _on_scale(self, moved: np.ndarray) -> np.ndarray:
        """Return moved scores as the learner's are, here as predictions."""
        raise NotImplementedError
