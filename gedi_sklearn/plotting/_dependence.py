"""Predictions against the attribute."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np

from .._validation import Interval, StrOptions, check_random_state, validate_params
from ..kernels import Design
from ..metrics import Sample, check_sample, fit_gedi, quantile_bin_edges
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

_GRID_POINTS = 200
_SHOWN_CONSTRAINTS: dict = {
    "norm": [StrOptions({"l1", "sd"})],
    "bins": [Interval(Integral, 2, None, closed="left")],
    "subsample": [Interval(Integral, 1, None, closed="left"), None],
    "random_state": ["random_state"],
    "scatter_kwargs": [dict, None],
    "curve_kwargs": [dict, None],
    "bin_kwargs": [dict, None],
}


@dataclass(kw_only=True, eq=False, repr=False)
class DependenceDisplay(PredictionDisplay):
    """Predictions against one numeric attribute: rows, means of bins, and the fitted curve.

    The curve is mean(y) + F̃α̃, the part of the predictions that GeDI measures. The means of
    quantile bins need no kernel: where they deviate from the curve, there is a dependence that the
    kernel does not capture.

    Parameters
    ----------
    attribute, target : ndarray of shape (n_shown,)
        Rows to show; empty if the target takes at most two values.
    grid, curve : ndarray of shape (n_grid,)
        Attribute values, and the curve there.
    bin_attribute, bin_target : ndarray of shape (n_bins,)
        Means of the bins.
    targets_curve : ndarray of shape (n_grid,), default=None
        The curve of the original targets, for comparison.
    attribute_name : str, default=None
        Label of the horizontal axis.
    name : str, default=None
        Label of the vertical axis.
    gedi : float, default=None
        The indicator, for the legend.
    norm : {"l1", "sd"}, default="l1"
        Which indicator that is.

    Attributes
    ----------
    scatter_ : matplotlib PathCollection or None
        The rows.
    curve_, bins_ : matplotlib Line2D
        The fitted curve, and the means of the bins.
    targets_curve_ : matplotlib Line2D or None
        The curve of the original targets.
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure

    See Also
    --------
    GediCoefficientsDisplay : The coefficients of the curve.

    Examples
    --------
    >>> import numpy as np
    >>> from gedi_sklearn.plotting import DependenceDisplay
    >>> x = np.linspace(-1, 1, 41)
    >>> display = DependenceDisplay.from_predictions(x**2, sensitive_features=x, kernel=2, bins=4)
    >>> bool(np.allclose(display.curve, display.grid**2))
    True
    >>> display.ax_.get_ylabel()
    'targets'
    """

    attribute: np.ndarray
    target: np.ndarray
    grid: np.ndarray
    curve: np.ndarray
    bin_attribute: np.ndarray
    bin_target: np.ndarray
    targets_curve: np.ndarray | None = None
    attribute_name: str | None = None
    name: str | None = None
    gedi: float | None = None
    norm: str = "l1"

    def plot(
        self,
        ax: Any = None,
        *,
        scatter_kwargs: dict[str, Any] | None = None,
        curve_kwargs: dict[str, Any] | None = None,
        bin_kwargs: dict[str, Any] | None = None,
    ) -> DependenceDisplay:
        """Draw rows, curves and means.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw; None makes a new figure.
        scatter_kwargs : dict, default=None
            Keywords of :meth:`matplotlib.axes.Axes.scatter`, for the rows.
        curve_kwargs : dict, default=None
            Keywords of :meth:`matplotlib.axes.Axes.plot`, for the fitted curve.
        bin_kwargs : dict, default=None
            Keywords of :meth:`matplotlib.axes.Axes.plot`, for the means of the bins.

        Returns
        -------
        self : object
        """
        ax = axes_or_new(self, ax)
        self.scatter_ = self.targets_curve_ = None
        if len(self.target):
            style = {"s": 12, "alpha": 0.35, "color": MEASURED_COLOR, "linewidths": 0}
            style = styled(scatter_kwargs, **style)
            self.scatter_ = ax.scatter(self.attribute, self.target, **style)
        if self.targets_curve is not None:
            (self.targets_curve_,) = ax.plot(
                self.grid,
                self.targets_curve,
                color=REFERENCE_COLOR,
                linestyle="--",
                label="fit of the targets",
            )
        word = "GeDI =" if self.norm == "l1" else "explains"
        value = "" if self.gedi is None else f" ({word} {self.gedi:.3g})"
        style = {"color": MEASURED_COLOR, "linewidth": 2, "label": f"fit{value}"}
        (self.curve_,) = ax.plot(self.grid, self.curve, **styled(curve_kwargs, **style))
        style = {"color": "black", "linestyle": "none", "marker": "o", "label": "means of bins"}
        (self.bins_,) = ax.plot(self.bin_attribute, self.bin_target, **styled(bin_kwargs, **style))
        ax.set(
            xlabel=plain_text(self.attribute_name or "protected attribute"),
            ylabel=plain_text(self.name or "targets"),
        )
        ax.legend()
        self.ax_, self.figure_ = ax, ax.figure
        return self

    @classmethod
    @validate_params(
        PREDICTION_CONSTRAINTS | _SHOWN_CONSTRAINTS, prefer_skip_nested_validation=True
    )
    def from_predictions(
        cls,
        y_true: Any,
        y_pred: Any = None,
        *,
        sensitive_features: Any,
        kernel: Any = 1,
        norm: str = "l1",
        bins: int = 10,
        pos_label: Any = None,
        sample_weight: Any = None,
        subsample: int | None = 1000,
        random_state: Any = 0,
        name: str | None = None,
        ax: Any = None,
        scatter_kwargs: dict[str, Any] | None = None,
        curve_kwargs: dict[str, Any] | None = None,
        bin_kwargs: dict[str, Any] | None = None,
    ) -> DependenceDisplay:
        """Measure predictions, and draw them with the curve of the targets.

        Parameters
        ----------
        y_true : array-like of shape (n,)
            Original targets: numbers, booleans, or labels together with `pos_label`.
        y_pred : array-like of shape (n,), default=None
            Predictions; None shows the targets alone.
        sensitive_features : array-like of shape (n,)
            The protected attribute, one numeric column.
        kernel : int, str, transformer or callable, default=1
            The functions of the attribute; see :func:`gedi_sklearn.metrics.gedi`.
        norm : {"l1", "sd"}, default="l1"
            Whether the legend has GeDI, or the deviation that the curve explains.
        bins : int, default=10
            Number of quantile bins; with no more distinct values than that, one bin per value.
        pos_label : object, default=None
            The label that counts as 1; needed for text and categories.
        sample_weight : array-like of shape (n,), default=None
            Weights; rows of weight 0 are left out.
        subsample : int or None, default=1000
            Number of rows shown; None shows all. Curve and means always use all rows.
        random_state : int, RandomState instance or None, default=0
            Seed of the choice of these rows.
        name : str, default=None
            Label of the vertical axis; None: "predictions", or "targets" where there are none.
        ax : matplotlib Axes, default=None
            Where to draw; None makes a new figure.
        scatter_kwargs, curve_kwargs, bin_kwargs : dict, default=None
            Keywords of :meth:`plot`.

        Returns
        -------
        display : DependenceDisplay

        Raises
        ------
        ValueError
            If the attribute is not one numeric column, or the kernel a matrix, which has no
            values between the rows.
        """
        import_pyplot(f"{cls.__name__}.from_predictions")
        sample = check_sample(y_true, y_pred, sensitive_features, sample_weight, pos_label)
        indicator = fit_gedi(sample, kernel, norm).indicator
        design = indicator.design
        _require_one_numeric_attribute(cls.__name__, sample, design)
        values = sample.values[:, 0]
        grid = np.linspace(values.min(), values.max(), _GRID_POINTS)
        shown = _shown_rows(sample.target, subsample, random_state)
        bin_attribute, bin_target = _bin_means(sample, bins)
        display = cls(
            attribute=values[shown],
            target=sample.target[shown],
            grid=grid,
            curve=_curve(design, sample.target, grid),
            bin_attribute=bin_attribute,
            bin_target=bin_target,
            targets_curve=None if y_pred is None else _curve(design, sample.y_true, grid),
            attribute_name=sample.names[0] if sample.names else None,
            name=name or ("targets" if y_pred is None else "predictions"),
            gedi=indicator.measure(sample.target),
            norm=norm,
        )
        return display.plot(
            ax, scatter_kwargs=scatter_kwargs, curve_kwargs=curve_kwargs, bin_kwargs=bin_kwargs
        )

    @staticmethod
    def _name_of(estimator: Any, response_method: str) -> str:
        return f"{type(estimator).__name__}.{response_method}"


def _require_one_numeric_attribute(caller: str, sample: Sample, design: Design) -> None:
    if sample.values.shape[1] != 1 or sample.values.dtype.kind != "f":
        raise ValueError(
            f"{caller} shows one numeric attribute; sensitive_features has "
            f"{sample.values.shape[1]} column(s) of type {sample.values.dtype}. "
            "GediCoefficientsDisplay takes any attribute."
        )
    if design.fitted.kernel is None:
        raise ValueError(
            f"{caller} evaluates the kernel between the rows, which a matrix has no values for; "
            "pass a transformer or a callable as `kernel`."
        )


def _curve(design: Design, z: np.ndarray, grid: np.ndarray) -> np.ndarray:
    """Return mean(z) + F̃α̃ on a grid, from the orthonormal columns, which keep their digits."""
    return design.mean(z) + design.fitted.orthonormal(grid) @ design.coordinates(z)


def _shown_rows(target: np.ndarray, subsample: int | None, random_state: Any) -> np.ndarray:
    """Draw the rows to show; none if the target takes at most two values."""
    if len(np.unique(target)) <= 2:
        return np.arange(0)
    if subsample is None or subsample >= len(target):
        return np.arange(len(target))
    return check_random_state(random_state).choice(len(target), subsample, replace=False)


def _bin_means(sample: Sample, bins: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the weighted means of attribute and target in each bin that holds a row."""
    values = sample.values[:, 0]
    distinct, codes = np.unique(values, return_inverse=True)
    if len(distinct) > bins:
        edges = quantile_bin_edges(values, n_bins=bins, sample_weight=sample.counts)
        codes = np.searchsorted(edges[1:-1], values, side="left")
    total = np.bincount(codes, weights=sample.weight)
    sums = (
        np.bincount(codes, weights=v if sample.weight is None else v * sample.weight)
        for v in (values, sample.target)
    )
    attribute, target = (s[total > 0] / total[total > 0] for s in sums)
    return attribute, target
