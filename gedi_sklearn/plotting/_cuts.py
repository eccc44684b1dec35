"""How the share of rows above a cut depends on the attribute, cut by cut."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .._validation import validate_params
from ..metrics import CutsIndicator, check_sample, fit_gedi
from ._support import (
    MEASURED_COLOR,
    PREDICTION_CONSTRAINTS,
    REFERENCE_COLOR,
    PredictionDisplay,
    axes_or_new,
    import_pyplot,
    plain_text,
    styled,
)

# Level of the band.
_CHANCE = 0.95


@dataclass(kw_only=True, eq=False, repr=False)
class CutsDisplay(PredictionDisplay):
    r"""How strongly the share of rows above a cut depends on the attribute, at every cut.

    At the left few rows are above the cut, as in triage; at 0.1 it is the top decile. The heights
    are deviations in points: that of the share above the cut, as the attribute explains it. The
    highest is ``gedi(..., on="distribution", norm="sd")``. A curve that leaves the grey band
    anywhere does so by more than chance, with 95 % confidence.

    Parameters
    ----------
    cuts : list of ndarray of shape (m,)
        Scores at which rows are cut, ascending: of the targets, if they are shown, before those of
        the predictions.
    rates, deviations : list of ndarray of shape (m,)
        The share of rows above each cut, between 0 and 1, and the deviation of it that the
        attribute explains, 0.01 being a point.
    names : list of str
        One name per series, for the legend.
    chance : float
        The 95 % quantile of the highest deviation where the predictions do not depend on the
        attribute.

    Attributes
    ----------
    lines_ : list of matplotlib Line2D
        One per series.
    band_ : matplotlib PolyCollection
        What chance explains.
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure

    See Also
    --------
    gedi_sklearn.metrics.gedi : With ``on="distribution"``, the highest.
    DependenceDisplay : The mean of the predictions, against the attribute.

    Notes
    -----
    With Q the orthonormal columns of the kernel and w the weights of the rows, the height at a cut
    t is :math:`\|\sum_i w_i Q_i 1\{s_i > t\}\|_2`.

    Examples
    --------
    >>> import numpy as np
    >>> from gedi_sklearn.plotting import CutsDisplay
    >>> x = np.linspace(-1, 1, 400)
    >>> score = np.resize([-1.0, 1.0], 400) * (2 + x)  # of equal mean for every x
    >>> display = CutsDisplay.from_predictions(score, sensitive_features=x)
    >>> at_tenth = np.searchsorted(-display.rates[0], -0.1)
    >>> round(float(display.deviations[0][at_tenth]), 2), round(display.chance, 2)
    (0.18, 0.1)
    """

    cuts: list[np.ndarray]
    rates: list[np.ndarray]
    deviations: list[np.ndarray]
    names: list[str]
    chance: float

    def plot(self, ax: Any = None, **line_kwargs: Any) -> CutsDisplay:
        """Draw the curves and the band of chance.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw; None makes a new figure.
        **line_kwargs : dict
            Keywords of :meth:`matplotlib.axes.Axes.plot`, for the predictions.

        Returns
        -------
        self : object
        """
        ax = axes_or_new(self, ax)
        self.band_ = ax.fill_between(
            [0, 1], 0, 100 * self.chance, color="0.9", linewidth=0, label="chance"
        )
        styles: list[dict[str, Any]] = [{"color": REFERENCE_COLOR, "linestyle": "--"}]
        styles = [*styles * (len(self.names) - 1), styled(line_kwargs, color=MEASURED_COLOR)]
        self.lines_ = []
        for rate, deviation, name, style in zip(
            self.rates, self.deviations, self.names, styles, strict=True
        ):
            # Labels have a single cut.
            style.setdefault("marker", "o" if len(rate) == 1 else None)
            label = f"{plain_text(name)} (at most {100 * deviation.max(initial=0.0):.3g})"
            self.lines_ += ax.plot(rate, 100 * deviation, **{"label": label, **style})
        ax.set(xlabel="share of rows above the cut", ylabel="explained deviation, in points")
        ax.set(xlim=(0, 1), ylim=(0, None))
        ax.legend()
        self.ax_, self.figure_ = ax, ax.figure
        return self

    @classmethod
    @validate_params(PREDICTION_CONSTRAINTS, prefer_skip_nested_validation=True)
    def from_predictions(
        cls,
        y_true: Any,
        y_pred: Any = None,
        *,
        sensitive_features: Any,
        kernel: Any = "spline",
        pos_label: Any = None,
        sample_weight: Any = None,
        name: str | None = None,
        ax: Any = None,
        **line_kwargs: Any,
    ) -> CutsDisplay:
        """Measure targets and predictions, and draw.

        Parameters
        ----------
        y_true : array-like of shape (n,)
            Original targets: numbers, booleans, or labels together with `pos_label`.
        y_pred : array-like of shape (n,), default=None
            Predictions, or scores of a class; None shows the targets alone.
        sensitive_features : array-like of shape (n,) or (n, m)
            The protected attribute.
        kernel : int, str, transformer, callable or array of shape (n, k), default="spline"
            The functions of the attribute; see :func:`gedi_sklearn.metrics.gedi`.
        pos_label : object, default=None
            The label that counts as 1; needed for text and categories.
        sample_weight : array-like of shape (n,), default=None
            Weights; rows of weight 0 are left out.
        name : str, default=None
            Name of the predictions in the legend; None: "predictions", or "targets" where there
            are none.
        ax : matplotlib Axes, default=None
            Where to draw; None makes a new figure.
        **line_kwargs : dict
            Keywords of :meth:`matplotlib.axes.Axes.plot`, for the predictions.

        Returns
        -------
        display : CutsDisplay
        """
        import_pyplot(f"{cls.__name__}.from_predictions")
        sample = check_sample(y_true, y_pred, sensitive_features, sample_weight, pos_label)
        indicator = CutsIndicator(fit_gedi(sample, kernel, "sd").indicator.design)
        names, series = [name or "targets"], [sample.y_true]
        if y_pred is not None:
            names, series = ["targets", name or "predictions"], [*series, sample.target]
        curves = [indicator.shown_curve(z) for z in series]
        display = cls(
            cuts=[cuts for cuts, _, _ in curves],
            rates=[rates for _, rates, _ in curves],
            deviations=[values for _, _, values in curves],
            names=names,
            chance=float(np.quantile(indicator.null_values(sample.target), _CHANCE)),
        )
        return display.plot(ax, **line_kwargs)
