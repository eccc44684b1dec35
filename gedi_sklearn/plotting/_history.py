"""What a Moving Targets fit did, iteration by iteration."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ._support import MEASURED_COLOR, REFERENCE_COLOR, THRESHOLD_COLOR, import_pyplot

# The fields of `history_` that are drawn, with label and colour: indicators above, losses below.
# Fields that an estimator did not record are left out.
_DISPARITIES = {
    "targets_gedi": ("projected targets", REFERENCE_COLOR),
    "predictions_gedi": ("predictions", MEASURED_COLOR),
    "validation_gedi": ("validation", "C1"),
}
_LOSSES = {
    "loss_targets": ("projected targets", REFERENCE_COLOR),
    "loss_predictions": ("predictions", MEASURED_COLOR),
}


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
        The iteration of the model that was kept, drawn as a line; None draws none.

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

    def __init__(
        self,
        *,
        history: Mapping[str, np.ndarray],
        threshold: float | None = None,
        selected_iteration: int | None = None,
    ) -> None:
        self.history = history
        self.threshold = threshold
        self.selected_iteration = selected_iteration

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
        """Draw the fields that are in the history."""
        lines = {}
        for field, (label, color) in fields.items():
            if field in self.history:
                style = {"marker": "o", "color": color, "label": label, **line_kwargs}
                (lines[field],) = axes.plot(self.history["iteration"], self.history[field], **style)
        return lines

    @classmethod
    def from_estimator(
        cls, estimator: Any, *, ax: Any = None, **line_kwargs: Any
    ) -> MovingTargetsHistoryDisplay:
        """Draw the history of a fitted estimator.

        The line of the threshold is left out if the constraint is not one number for the drawn
        indicator: for an array of bounds, several constraints, or an infinite threshold.

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
                f"{cls.__name__} shows the history of Moving Targets, but "
                f"{type(estimator).__name__} has none."
            )
        threshold = estimator.threshold_
        drawn = np.ndim(threshold) == 0 and np.isfinite(threshold)
        kept = estimator.selected_iteration_
        display = cls(
            history=history,
            threshold=float(threshold) if drawn else None,
            # The last iteration is the default, and is not marked.
            selected_iteration=None if kept == estimator.n_iter_ else kept,
        )
        return display.plot(ax, **line_kwargs)
