"""Score against indicator: the price of fairness on unseen rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import is_classifier

from ..model_selection import TradeoffCurve, tradeoff_curve
from ._support import MEASURED_COLOR, REFERENCE_COLOR, axes_or_new, import_pyplot, plain_text


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
        style = {
            "marker": "o",
            "color": MEASURED_COLOR,
            "label": plain_text(self.name),
            **line_kwargs,
        }
        (self.line_,) = ax.plot(curve.gedi, curve.score, **style)
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
