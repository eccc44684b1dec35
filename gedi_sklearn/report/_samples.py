"""What the parts of a report are measured on."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from hashlib import sha256
from typing import Any

import numpy as np

from .._validation import check_labels, is_text
from ..metrics import Sample, check_sample


def check_samples(y_true: Any, y_pred: Any, given: tuple[Any, Any, Any], task: str) -> list[Sample]:
    """Return the sample; of more than two classes one for each of them, against the rest."""
    if task == "classification" and given[-1] is None:
        labels = check_labels(y_true, "y_true")
        predicted = labels if y_pred is None else check_labels(y_pred, "y_pred")
        classes = np.unique(labels)
        if len(classes) > 2:
            if not np.isin(predicted, classes).all():
                raise ValueError(
                    f"y_pred must hold the classes of y_true, {classes.tolist()}; for the "
                    "probabilities of one of them, pass its label as pos_label."
                )
            targets = (((labels == c) * 1.0, (predicted == c) * 1.0) for c in classes)
            return [check_sample(*own, *given) for own in targets]
    return [check_sample(y_true, y_pred, *given)]


def hash_of(samples: list[Sample]) -> str:
    """Return the SHA-256 of targets, predictions, attributes and weights; text is UTF-8."""
    digest = sha256()
    columns = [own for one in samples for own in (one.y_true, one.target)]
    weight = samples[0].weight
    for column in [*columns, *samples[0].values.T, *([] if weight is None else [weight])]:
        if column.dtype.kind in "fiub":
            digest.update(np.ascontiguousarray(column, dtype="<f8").tobytes())
        else:
            digest.update("\0".join(map(str, column)).encode("utf-8", "replace"))
    return digest.hexdigest()


def attributes_of(samples: list[Sample]) -> Iterator[tuple[str, list[Sample], bool]]:
    """Yield name and samples of each attribute, and of several also of all of them together."""
    m = samples[0].values.shape[1]
    names = samples[0].names or [f"attribute {j}" if m > 1 else "the attribute" for j in range(m)]
    for j, name in enumerate(names):
        own = [replace(one, values=_column(one.values, j), names=[name]) for one in samples]
        yield name, own, False
    if m > 1:
        yield " + ".join(names), samples, True


def _column(values: np.ndarray, j: int) -> np.ndarray:
    """Return one column, as numbers where it holds numbers."""
    column = values[:, [j]]
    return column if is_text(column) else column.astype(np.float64)
