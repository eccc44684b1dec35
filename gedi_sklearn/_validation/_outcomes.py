"""Some of the rows, named by their outcome; and residuals in the place of predictions."""

from __future__ import annotations

from numbers import Real
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils._param_validation import StrOptions

from ._arrays import is_text

# The declared types of `subset` and `on`, for indicators and scorers; constraints know one more.
NOTION_PARAMETERS: dict[str, list[Any]] = {
    "subset": [str, Real, "boolean", callable, None],
    "on": [StrOptions({"predictions", "residuals"})],
}


class Outcomes(NamedTuple):
    """Original targets, for what looks at some of the rows.

    Attributes
    ----------
    labels : ndarray of shape (n,)
        The original targets, as the caller gave them.
    positive : object
        The label that "positive" means; None where no label is.
    """

    labels: np.ndarray
    positive: Any

    @classmethod
    def of_classes(cls, codes: np.ndarray, classes: np.ndarray) -> Outcomes:
        """Return those of classes 0…K − 1, of which the second of two is the positive one."""
        return cls(classes[codes], classes[1] if len(classes) == 2 else None)

    def rows(self, subset: Any) -> np.ndarray:
        """Return which rows a subset holds, shape (n,).

        Raises
        ------
        ValueError
            If it is not defined, or holds no row.
        """
        if callable(subset):
            rows = np.asarray(subset(self.labels))
            if rows.dtype != bool or rows.shape != self.labels.shape:
                raise ValueError(
                    "subset must return a boolean array with one entry for each target, got "
                    f"{rows.dtype} of shape {rows.shape} for {len(self.labels)} targets."
                )
            return rows
        label = self.positive if isinstance(subset, str) and subset == "positive" else subset
        if label is None:
            raise ValueError(
                "subset='positive' needs two classes, of which the second is meant (or pos_label, "
                "in an indicator). Name a class, or pass a callable of y."
            )
        if is_text(self.labels) != isinstance(label, str):
            return np.zeros(len(self.labels), dtype=bool)
        return np.asarray(self.labels == label)


def check_notion(subset: Any, on: str, relative: Any) -> None:
    """Refuse a relative value where the target itself does not depend on the attribute."""
    if (subset is not None or on == "residuals") and relative is not False:
        given = f"subset={subset!r}" if subset is not None else f"on={on!r}"
        raise ValueError(
            f"relative={relative!r} with {given}: the target is constant there (its residual is "
            "0), so a share of it is undefined. Pass relative=False, and a threshold in units of y."
        )
