"""The outcome of a fit, or of a range of thresholds: indicators beside losses or scores."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import is_classifier
from sklearn.utils.validation import check_is_fitted

from ..model_selection import TradeoffCurve, tradeoff_curve
from ._support import (
    MEASURED_COLOR,
    REFERENCE_COLOR,
    THRESHOLD_COLOR,
    axes_or_new,
    import_pyplot,
    plain_text,
    styled,
)

# Fields of `history_` that are drawn, with label and colour: the indicators above, the losses
# below. Fields that an estimator did not record are left out.
_DISPARITIES = {
    "targets_gedi": ("projected targets", REFERENCE_COLOR),
    "predictions_gedi": ("predictions", MEASURED_COLOR),
    "validation_gedi": ("validation", "C1"),
}
_LOSSES = {
    "loss_targets": ("projected targets", REFERENCE_COLOR),
    "loss_predictions": ("predictions", MEASURED_COLOR),
}


@dataclass(kw_only=True, eq=False, repr=False)
class MovingTargetsHistoryDisplay:
    """Indicator and loss of targets and predictions over the iterations of Moving Targets.

    Iteration 0 is the first fit, on the original targets. Both losses are against these.

    Parameters
    ----------
    history : mapping of str to ndarray
        The `history_` of a fitted estimator, or of an error that ended its loop.
    threshold : float, default=None
        The absolute bound on the indicator, drawn as a line; None draws none.
    selected_iteration : int, default=None
        The iteration whose model was kept, drawn as a line; None draws none.

    Attributes
    ----------
    lines_ : dict of str to matplotlib Line2D
        The drawn fields of the history.
    threshold_line_, selected_line_ : matplotlib Line2D or None
        The bound; the kept iteration, in the upper axes.
    axes_ : ndarray of shape (2,)
        The matplotlib Axes: indicators above, losses below.
    figure_ : matplotlib Figure

    Examples
    --------
    >>> import numpy as np
    >>> from gedi_sklearn import MovingTargetsRegressor
    >>> from gedi_sklearn.plotting import MovingTargetsHistoryDisplay
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(100, 2))
    >>> y = X @ [1.0, 2.0] + rng.normal(size=100)
    >>> fair = MovingTargetsRegressor(sensitive_columns=0, max_iter=3).fit(X, y)
    >>> display = MovingTargetsHistoryDisplay.from_estimator(fair)
    >>> sorted(display.lines_)
    ['loss_predictions', 'loss_targets', 'predictions_gedi', 'targets_gedi']
    """

    history: Mapping[str, np.ndarray]
    threshold: float | None = None
    selected_iteration: int | None = None

    def plot(self, ax: Any = None, **line_kwargs: Any) -> MovingTargetsHistoryDisplay:
        """Draw the history.

        Parameters
        ----------
        ax : sequence of two matplotlib Axes, default=None
            Where to draw indicators and losses; None makes a new figure.
        **line_kwargs : dict
            Keywords of :meth:`matplotlib.axes.Axes.plot`, for all fields.

        Returns
        -------
        self : object
        """
        plt = import_pyplot(f"{type(self).__name__}.plot")
        if ax is None:
            _, ax = plt.subplots(2, 1, sharex=True, layout="constrained")
        if np.shape(ax) != (2,):
            raise ValueError(
                "ax must be two matplotlib Axes, for the indicators and for the losses, as "
                f"plt.subplots(2, 1) returns them; got {ax!r}."
            )
        self.axes_ = np.asarray(ax)
        upper, lower = self.axes_
        self.lines_ = {
            **self._lines(upper, _DISPARITIES, line_kwargs),
            **self._lines(lower, _LOSSES, line_kwargs),
        }
        self.threshold_line_ = self.selected_line_ = None
        if self.threshold is not None:
            self.threshold_line_ = upper.axhline(
                self.threshold, color=THRESHOLD_COLOR, linestyle="--", label="threshold"
            )
        if self.selected_iteration is not None:
            self.selected_line_ = upper.axvline(
                self.selected_iteration, color="black", linestyle=":", label="kept iteration"
            )
        upper.set(ylabel="GeDI", ylim=(0, None))
        lower.set(xlabel="iteration", ylabel="loss against y", ylim=(0, None))
        lower.xaxis.set_major_locator(plt.MaxNLocator(integer=True))
        for axes in self.axes_:
            axes.legend()
        self.figure_ = upper.figure
        return self

    def _lines(
        self, axes: Any, fields: dict[str, tuple[str, str]], line_kwargs: dict[str, Any]
    ) -> dict[str, Any]:
        """Draw the fields that the history has."""
        lines = {}
        for field, (label, color) in fields.items():
            if field in self.history:
                style = styled(line_kwargs, marker="o", color=color, label=label)
                (lines[field],) = axes.plot(self.history["iteration"], self.history[field], **style)
        return lines

    @classmethod
    def from_estimator(
        cls, estimator: Any, *, ax: Any = None, **line_kwargs: Any
    ) -> MovingTargetsHistoryDisplay:
        """Draw what a fitted estimator recorded.

        The line of the threshold is left out where the constraint is not one number on the drawn
        indicator: for an array of bounds, several constraints, and an infinite one.

        Parameters
        ----------
        estimator : MovingTargetsRegressor or MovingTargetsClassifier
            Fitted.
        ax : sequence of two matplotlib Axes, default=None
            Where to draw indicators and losses; None makes a new figure.
        **line_kwargs : dict
            Keywords of :meth:`matplotlib.axes.Axes.plot`, for all fields.

        Returns
        -------
        display : MovingTargetsHistoryDisplay
        """
        import_pyplot(f"{cls.__name__}.from_estimator")
        check_is_fitted(estimator)
        history = getattr(estimator, "history_", {})
        if "targets_gedi" not in history:
            raise ValueError(
                f"{cls.__name__} shows the history of Moving Targets, and "
                f"{type(estimator).__name__} has recorded none."
            )
        threshold = estimator.threshold_
        drawn = np.ndim(threshold) == 0 and np.isfinite(threshold)
        kept = estimator.selected_iteration_
        display = cls(
            history=history,
            threshold=float(threshold) if drawn else None,
            # By default the last iteration is kept, which needs no line.
            selected_iteration=None if kept == estimator.n_iter_ else kept,
        )
        return display.plot(ax, **line_kwargs)


@dataclass(kw_only=True, eq=False, repr=False)
class TradeoffDisplay:
    """Score against indicator of pooled predictions, one point per threshold.

    A horizontal bar is the indicator's confidence interval. In the grey area, below its 95 %
    quantile under independence, a value is no evidence of a disparity.

    Parameters
    ----------
    curve : TradeoffCurve
        As :func:`gedi_sklearn.model_selection.tradeoff_curve` returns it.
    name : str, default=None
        Name of the curve in the legend.
    score_name : str, default="score"
        Label of the vertical axis.

    Attributes
    ----------
    line_ : matplotlib Line2D
        The points, in the order of the thresholds.
    bars_ : matplotlib LineCollection
        The intervals.
    chance_ : matplotlib PolyCollection
        The grey area.
    floor_ : matplotlib Annotation or None
        What the grey area is.
    texts_ : list of matplotlib Annotation
        The thresholds beside their points; empty where they are arrays.
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure

    See Also
    --------
    gedi_sklearn.model_selection.tradeoff_curve : The numbers.

    Examples
    --------
    >>> import numpy as np
    >>> from gedi_sklearn import ProjectedRegressor
    >>> from gedi_sklearn.plotting import TradeoffDisplay
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(200, 2))
    >>> y = X[:, 0] + X[:, 1] + rng.normal(size=200)
    >>> model = ProjectedRegressor(sensitive_columns=0)
    >>> display = TradeoffDisplay.from_estimator(model, X, y, thresholds=[1.0, 0.5, 0.0])
    >>> display.ax_.get_ylabel(), display.line_.get_xdata().round(1)
    ('R²', array([1. , 0.5, 0.1]))
    """

    curve: TradeoffCurve
    name: str | None = None
    score_name: str = "score"

    def plot(self, ax: Any = None, **line_kwargs: Any) -> TradeoffDisplay:
        """Draw the curve; several on the same axes can be compared.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw; None makes a new figure.
        **line_kwargs : dict
            Keywords of :meth:`matplotlib.axes.Axes.plot`, for the points. The intervals take
            their colour.

        Returns
        -------
        self : object
        """
        ax = axes_or_new(self, ax)
        curve = self.curve
        style = {"marker": "o", "color": MEASURED_COLOR, "label": plain_text(self.name)}
        (self.line_,) = ax.plot(curve.gedi, curve.score, **styled(line_kwargs, **style))
        color = self.line_.get_color()
        self.bars_ = ax.hlines(curve.score, curve.low, curve.high, color=color, alpha=0.4)
        # Only between points, ordered by score, since the quantile depends on the predictions.
        known = np.flatnonzero(np.isfinite(curve.null_q95))
        known = known[np.argsort(curve.score[known])]
        self.chance_ = ax.fill_betweenx(
            curve.score[known], 0, curve.null_q95[known], color=REFERENCE_COLOR, alpha=0.25, lw=0
        )
        self.texts_ = [
            ax.annotate(f"{threshold:g}", point, xytext=(3, 4), textcoords="offset points")
            for threshold, *point in zip(
                curve.thresholds if curve.thresholds.ndim == 1 else [],
                curve.gedi,
                curve.score,
                strict=False,
            )
            if np.isfinite(point).all()
        ]
        self.floor_ = None
        if len(known):
            # Beside the floor, at the height of its middle.
            middle = known[len(known) // 2]
            self.floor_ = ax.annotate(
                "by chance",
                (curve.null_q95[middle], curve.score[middle]),
                xytext=(3, 0),
                textcoords="offset points",
                rotation=90,
                va="center",
                color="0.4",
                fontsize="small",
            )
        ax.set(
            xlabel=f"{curve.indicator_name}, unseen rows",
            ylabel=plain_text(self.score_name),
            xlim=(0, None),
        )
        if self.name is not None:
            ax.legend()
        self.ax_, self.figure_ = ax, ax.figure
        return self

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any,
        *,
        thresholds: Any = None,
        name: str | None = None,
        score_name: str | None = None,
        ax: Any = None,
        line_kwargs: dict[str, Any] | None = None,
        **curve_kwargs: Any,
    ) -> TradeoffDisplay:
        """Cross-validate for all thresholds, and draw.

        Parameters
        ----------
        estimator : estimator
            One with a threshold; see :func:`gedi_sklearn.model_selection.tradeoff_curve`.
        X : array-like of shape (n, p)
            Rows.
        y : array-like of shape (n,)
            Targets.
        thresholds : sequence of float or of array-like of shape (k,), default=None
            The path; None is that of the curve.
        name : str, default=None
            Name of the curve in the legend.
        score_name : str, default=None
            Label of the vertical axis; None is the score's own name.
        ax : matplotlib Axes, default=None
            Where to draw; None makes a new figure.
        line_kwargs : dict, default=None
            Keywords of :meth:`matplotlib.axes.Axes.plot`, for the points.
        **curve_kwargs : dict
            Further keywords of :func:`gedi_sklearn.model_selection.tradeoff_curve`.

        Returns
        -------
        display : TradeoffDisplay
        """
        import_pyplot(f"{cls.__name__}.from_estimator")
        if score_name is None:
            scoring = curve_kwargs.get("scoring")
            default = "accuracy" if is_classifier(estimator) else "R²"
            score_name = default if scoring is None else str(getattr(scoring, "__name__", scoring))
        curve = tradeoff_curve(estimator, X, y, thresholds=thresholds, **curve_kwargs)
        return cls(curve=curve, name=name, score_name=score_name).plot(ax, **(line_kwargs or {}))
