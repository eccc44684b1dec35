"""Bars of the coefficients, whose absolute values sum to the indicator."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._validation import validate_params
from ._support import (
    ESTIMATOR_CONSTRAINTS,
    MEASURED_COLOR,
    PREDICTION_CONSTRAINTS,
    REFERENCE_COLOR,
    estimator_sample,
    import_pyplot,
    measure,
)

# Labels with more letters than this in total are rotated.
_LEVEL_LETTERS = 40


class GediCoefficientsDisplay:
    """Coefficients α̃ of targets and predictions, one bar per term of the kernel.

    The absolute heights of one colour sum to its GeDI.

    Parameters
    ----------
    coefficients : ndarray of shape (n_series, k)
        One row per series: the targets, in grey, before the predictions.
    terms : list of str
        The k functions of the attribute.
    names : list of str
        One name per series, for the legend.

    Attributes
    ----------
    bars_ : list of matplotlib BarContainer
        One per series.
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure

    See Also
    --------
    gedi_sklearn.metrics.gedi_coefficients : The numbers.

    Examples
    --------
    >>> import numpy as np
    >>> from gedi_sklearn.plotting import GediCoefficientsDisplay
    >>> x = np.linspace(-1, 1, 41)
    >>> display = GediCoefficientsDisplay.from_predictions(
    ...     2 * x - x**2, 0.5 * x, sensitive_features=x, degree=2
    ... )
    >>> display.coefficients.round(9) + 0.0
    array([[ 2. , -1. ],
           [ 0.5,  0. ]])
    """

    def __init__(self, *, coefficients: np.ndarray, terms: list[str], names: list[str]) -> None:
        self.coefficients = coefficients
        self.terms = terms
        self.names = names

    def plot(self, ax: Any = None, **bar_kwargs: Any) -> GediCoefficientsDisplay:
        """Draw the bars.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw; None makes a new figure.
        **bar_kwargs : dict
            Keywords of :meth:`matplotlib.axes.Axes.bar`, for all series.

        Returns
        -------
        self : object
        """
        plt = import_pyplot(f"{type(self).__name__}.plot")
        if ax is None:
            _, ax = plt.subplots()
        coefficients = np.atleast_2d(self.coefficients)
        n_series, n_terms = coefficients.shape
        positions, width = np.arange(n_terms), 0.8 / n_series
        # The last series is measured; those before it are for comparison.
        colors = [REFERENCE_COLOR] * (n_series - 1) + [MEASURED_COLOR]
        self.bars_ = [
            ax.bar(
                positions + (i - (n_series - 1) / 2) * width,
                row,
                **{
                    "width": width,
                    "color": colors[i],
                    "label": f"{name} (GeDI = {np.abs(row).sum():.3g})",
                    **bar_kwargs,
                },
            )
            for i, (row, name) in enumerate(zip(coefficients, self.names, strict=True))
        ]
        ax.axhline(0, color="black", linewidth=0.8)
        aslant = (
            {"rotation": 45, "ha": "right"} if sum(map(len, self.terms)) > _LEVEL_LETTERS else {}
        )
        ax.set_xticks(positions, self.terms, **aslant)
        ax.set(xlabel="term of the kernel", ylabel="coefficient α̃")
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
        kernel: Any = "polynomial",
        degree: int = 1,
        pos_label: Any = None,
        sample_weight: Any = None,
        name: str | None = None,
        ax: Any = None,
        **bar_kwargs: Any,
    ) -> GediCoefficientsDisplay:
        """Measure targets and predictions, and draw.

        Parameters
        ----------
        y_true : array-like of shape (n,)
            Original targets: numbers, booleans, or labels together with `pos_label`.
        y_pred : array-like of shape (n,), default=None
            Predictions; None shows the targets alone.
        sensitive_features : array-like of shape (n,) or (n, m)
            The protected attribute.
        kernel : {"polynomial", "fourier"}, transformer, callable or array of shape (n, k), \
                default="polynomial"
            The functions of the attribute; see :func:`gedi_sklearn.metrics.gedi`.
        degree : int, default=1
            Degree (order) of a kernel given by name.
        pos_label : object, default=None
            The label that counts as 1; needed for text and categories.
        sample_weight : array-like of shape (n,), default=None
            Weights; rows of weight 0 are left out.
        name : str, default=None
            Name of the predictions in the legend; None: "predictions".
        ax : matplotlib Axes, default=None
            Where to draw; None makes a new figure.
        **bar_kwargs : dict
            Keywords of :meth:`matplotlib.axes.Axes.bar`.

        Returns
        -------
        display : GediCoefficientsDisplay
        """
        import_pyplot(f"{cls.__name__}.from_predictions")
        sample, design = measure(
            y_true,
            y_pred,
            sensitive_features=sensitive_features,
            kernel=kernel,
            degree=degree,
            pos_label=pos_label,
            sample_weight=sample_weight,
        )
        series = {"targets": sample.y_true}
        if y_pred is not None:
            series[name or "predictions"] = sample.target
        coefficients = np.array([design.checked_coefficients(z) for z in series.values()])
        display = cls(coefficients=coefficients, terms=design.fitted.names, names=list(series))
        return display.plot(ax, **bar_kwargs)

    @classmethod
    @validate_params(
        {**PREDICTION_CONSTRAINTS, **ESTIMATOR_CONSTRAINTS}, prefer_skip_nested_validation=True
    )
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any,
        *,
        sensitive_features: Any = None,
        sensitive_columns: Any = None,
        response_method: str = "predict",
        kernel: Any = "polynomial",
        degree: int = 1,
        pos_label: Any = None,
        sample_weight: Any = None,
        name: str | None = None,
        ax: Any = None,
        **bar_kwargs: Any,
    ) -> GediCoefficientsDisplay:
        """Predict, measure targets and predictions, and draw.

        Parameters
        ----------
        estimator : estimator
            A fitted regressor or classifier. The attribute is passed to `predict` if the
            estimator, or the last step of a pipeline, needs it.
        X : array-like of shape (n, p)
            Features.
        y : array-like of shape (n,)
            Original targets.
        sensitive_features : array-like of shape (n,) or (n, m), default=None
            The protected attribute; None if `sensitive_columns` names it.
        sensitive_columns : int, str or list of these, default=None
            Column(s) of X that hold the attribute.
        response_method : {"predict", "predict_proba", "decision_function"}, default="predict"
            What is measured; see :func:`gedi_sklearn.metrics.make_gedi_scorer`.
        kernel : {"polynomial", "fourier"}, transformer, callable or array of shape (n, k), \
                default="polynomial"
            The functions of the attribute; see :func:`gedi_sklearn.metrics.gedi`.
        degree : int, default=1
            Degree (order) of a kernel given by name.
        pos_label : object, default=None
            The label that counts as 1; of text labels by default ``classes_[1]``.
        sample_weight : array-like of shape (n,), default=None
            Weights; rows of weight 0 are left out.
        name : str, default=None
            Name of the predictions in the legend; None: the estimator's class.
        ax : matplotlib Axes, default=None
            Where to draw; None makes a new figure.
        **bar_kwargs : dict
            Keywords of :meth:`matplotlib.axes.Axes.bar`.

        Returns
        -------
        display : GediCoefficientsDisplay
        """
        import_pyplot(f"{cls.__name__}.from_estimator")
        return cls.from_predictions(
            **estimator_sample(
                estimator,
                X,
                y,
                sensitive_features=sensitive_features,
                sensitive_columns=sensitive_columns,
                response_method=response_method,
                pos_label=pos_label,
            ),
            kernel=kernel,
            degree=degree,
            sample_weight=sample_weight,
            name=name or type(estimator).__name__,
            ax=ax,
            **bar_kwargs,
        )
