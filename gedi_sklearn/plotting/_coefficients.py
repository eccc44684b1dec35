"""The coefficients of predictions on the attribute, term by term."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .._validation import StrOptions, validate_params
from ..kernels import FittedKernel
from ..metrics import check_sample, fit_gedi
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

# Labels with more letters than this in total are rotated.
_HORIZONTAL_LETTERS = 40
# What the bars are, by norm: the indicator in the legend, and the two axes.
_WORDS = {
    "l1": ("GeDI =", "term of the kernel", "coefficient α̃"),
    "sd": ("explains", "term of the kernel, beyond those before it", "explained deviation"),
}


@dataclass(kw_only=True, eq=False, repr=False)
class GediCoefficientsDisplay(PredictionDisplay):
    """Coefficients α̃ of targets and predictions, one bar per term of the kernel.

    The heights of one colour add up, without their signs, to its GeDI. With ``norm="sd"`` they are
    the orthonormal coordinates c in their place, in units of y: each is the deviation that a term
    explains beyond those before it, with the sign of its coefficient there, and the root of the
    sum of their squares is the deviation that all of them explain.

    Parameters
    ----------
    coefficients : ndarray of shape (n_series, k)
        One row per series: the targets, in grey, before the predictions. α̃, or c.
    terms : list of str
        The k functions of the attribute.
    names : list of str
        One name per series, for the legend.
    norm : {"l1", "sd"}, default="l1"
        Which of them the coefficients are.

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
    ...     2 * x - x**2, 0.5 * x, sensitive_features=x, kernel=2
    ... )
    >>> display.coefficients.round(9) + 0.0
    array([[ 2. , -1. ],
           [ 0.5,  0. ]])
    """

    coefficients: np.ndarray
    terms: list[str]
    names: list[str]
    norm: str = "l1"

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
        ax = axes_or_new(self, ax)
        coefficients = np.atleast_2d(self.coefficients)
        n_series, n_terms = coefficients.shape
        positions, width = np.arange(n_terms), 0.8 / n_series
        # The last series is measured, the others are shown for comparison.
        word, term, height = _WORDS[self.norm]
        sizes = np.linalg.norm(coefficients, 1 if self.norm == "l1" else 2, axis=1)
        colors = [REFERENCE_COLOR] * (n_series - 1) + [MEASURED_COLOR]
        self.bars_ = [
            ax.bar(
                positions + (i - (n_series - 1) / 2) * width,
                row,
                **styled(
                    bar_kwargs,
                    width=width,
                    color=colors[i],
                    label=f"{plain_text(name)} ({word} {sizes[i]:.3g})",
                ),
            )
            for i, (row, name) in enumerate(zip(coefficients, self.names, strict=True))
        ]
        ax.axhline(0, color="black", linewidth=0.8)
        rotate = sum(map(len, self.terms)) > _HORIZONTAL_LETTERS
        style = {"rotation": 45, "ha": "right"} if rotate else {}
        ax.set_xticks(positions, [plain_text(term) for term in self.terms], **style)
        ax.set(xlabel=term, ylabel=height)
        ax.legend()
        self.ax_, self.figure_ = ax, ax.figure
        return self

    @classmethod
    @validate_params(
        PREDICTION_CONSTRAINTS | {"norm": [StrOptions({"l1", "sd"})]},
        prefer_skip_nested_validation=True,
    )
    def from_predictions(
        cls,
        y_true: Any,
        y_pred: Any = None,
        *,
        sensitive_features: Any,
        kernel: Any = 1,
        norm: str = "l1",
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
        kernel : int, str, transformer, callable or array of shape (n, k), default=1
            The functions of the attribute; see :func:`gedi_sklearn.metrics.gedi`.
        norm : {"l1", "sd"}, default="l1"
            Whether the bars are coefficients, which sum to GeDI, or the deviation that each term
            explains; see :func:`gedi_sklearn.metrics.gedi`.
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
        sample = check_sample(y_true, y_pred, sensitive_features, sample_weight, pos_label)
        design = fit_gedi(sample, kernel).indicator.design
        names, series = ["targets"], [sample.y_true]
        if y_pred is not None:
            names.append(name or "predictions")
            series.append(sample.target)
        of_series = design.checked_coefficients if norm == "l1" else design.coordinates
        display = cls(
            coefficients=np.array([of_series(z) for z in series]),
            terms=_terms(design.fitted),
            names=names,
            norm=norm,
        )
        return display.plot(ax, **bar_kwargs)


def _terms(fitted: FittedKernel) -> list[str]:
    """Return the names of the columns; of powers of a standardised attribute they say so."""
    names = list(fitted.names)
    if not getattr(fitted.kernel, "standardize", False) or fitted.encoder is not None:
        return names
    # One attribute has its powers in this order; of several, products are left as they are.
    if all(name == f"{names[0]}^{power}" for power, name in enumerate(names[1:], start=2)):
        return [f"{names[0]} (std)" + ("" if p == 1 else f"^{p}") for p in range(1, len(names) + 1)]
    return [f"{name} (std)" for name in names]
