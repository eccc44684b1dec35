"""Targets and predictions as numbers, and back: real values, or classes as 0…K − 1."""

from __future__ import annotations

import copy
from numbers import Real
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils.multiclass import check_classification_targets

from ._arrays import (
    check_column,
    check_labels,
    check_numbers,
    check_same_length,
    check_sample_weight,
    check_values,
    is_text,
)

# Rows that are looked at before all others.
_FEW = 1000


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
            If it is not defined, or could mean either of two classes.
        """
        if callable(subset):
            rows = np.asarray(subset(self.labels))
            if rows.dtype != bool or rows.shape != self.labels.shape:
                raise ValueError(
                    "subset must return a boolean array with one entry for each target, got "
                    f"{rows.dtype} of shape {rows.shape} for {len(self.labels)} targets."
                )
            return rows
        label = subset
        if isinstance(subset, str) and subset == "positive":
            is_name = is_text(self.labels) and bool(np.any(self.labels == "positive"))
            label = "positive" if is_name and self.positive is None else self.positive
            if is_name and label != "positive":
                meant = repr(str(label))
                raise ValueError(
                    f"subset='positive' means the class {meant}, and another class has this name. "
                    f"Pass a callable: subset=lambda y: y == {meant}."
                )
        if label is None:
            raise ValueError(
                "subset='positive' needs two classes, of which the second is meant (or pos_label, "
                "in an indicator). Name a class, or pass a callable of y."
            )
        if is_text(self.labels) != isinstance(label, str):
            return np.zeros(len(self.labels), dtype=bool)
        return np.asarray(self.labels == label)


def refuse_real_values(labels: np.ndarray, name: str) -> None:
    """Raise if labels are real numbers, in scikit-learn's words; it casts them to integers."""
    try:
        with np.errstate(invalid="ignore"):
            check_classification_targets(labels)
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from error


def check_classes(y: Any, sample_weight: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return the classes of labels, shape (K,), and the class of each row as an integer, (n,).

    Raises
    ------
    ValueError
        If the values are not labels, or the rows of positive weight have a single class.
    """
    labels = check_labels(check_column(y, "y"), "y")
    if labels.dtype.kind == "f":
        check_numbers(labels, "y")  # infinity is not a label
    refuse_real_values(labels, "y")
    classes, codes = np.unique(labels, return_inverse=True)
    weight = check_sample_weight(sample_weight, len(codes))
    present = np.unique(codes if weight is None else codes[weight > 0])
    if len(present) < 2:
        where = "y" if weight is None else "the rows of positive sample_weight"
        raise ValueError(
            f"Classifier can't train when only one class is present: {where} has only "
            f"{classes[present].tolist()}."
        )
    check_all_weighted(classes, codes[weight > 0] if weight is not None else codes)
    return classes, codes


def check_all_weighted(classes: np.ndarray, codes: np.ndarray) -> None:
    """Raise if a class 0…K − 1 is not among the codes of the rows that count."""
    absent = np.setdiff1d(np.arange(len(classes)), codes)
    if absent.size:
        raise ValueError(
            f"class(es) {classes[absent].tolist()} of y occur only in rows of zero sample_weight, "
            "which do not count. Leave these rows out."
        )


REAL_LOSSES = frozenset({"squared_error", "absolute_error", "kl"})
CLASS_LOSSES = frozenset({"hamming", "log_loss"})


class Targets:
    """Original targets and what their values mean.

    Parameters
    ----------
    y : array-like of shape (n,)
        Real numbers, or classes of any label.
    loss : {"auto", "squared_error", "absolute_error", "kl", "hamming", "log_loss"}
        "auto" is "hamming" for two classes and for text, else "squared_error".

    Attributes
    ----------
    loss : str
        The loss, resolved.
    classes : ndarray of shape (K,) or None
        The labels that 0…K − 1 stand for; None for real targets.
    y : ndarray of shape (n,)
        The targets as numbers.
    """

    def __init__(self, y: Any, loss: str) -> None:
        if loss == "auto":
            labels = check_labels(y, "y")
            # Numbers are checked before scikit-learn looks at them: it casts infinite ones.
            labels = labels if is_text(labels) else check_numbers(labels, "y", n_columns=1)
            is_class = target_kind(labels) in ("labels", "binary")
            loss = "hamming" if is_class else "squared_error"
        self.loss = loss
        self.classes: np.ndarray | None = None
        if loss not in CLASS_LOSSES:
            self.y = check_numbers(y, "y", n_columns=1, sets_scale=True)
            if loss == "kl":
                check_multiplied(self.y, "y")
            return
        labels = check_labels(y, "y")
        self.classes = np.unique(labels)
        if len(self.classes) > 2:
            refuse_real_values(labels, "y")  # two may be classes
        if len(self.classes) < 2:
            raise ValueError(
                f"loss={loss!r} needs y with at least two classes, got {self.classes.tolist()}."
            )
        self.y = np.searchsorted(self.classes, labels).astype(float)

    @property
    def n_classes(self) -> int:
        """Number of classes K; 0 for real targets."""
        return 0 if self.classes is None else len(self.classes)

    def of_rows(self, rows: np.ndarray) -> Targets:
        """Return the targets of some rows, of the same classes."""
        other = copy.copy(self)
        other.y = self.y[rows]
        return other

    def encode(self, z: Any, name: str = "z") -> np.ndarray:
        """Return further targets as numbers, shape (n,)."""
        if self.classes is None:
            values = check_numbers(z, name, n_columns=1)
        else:
            labels = check_labels(z, name)
            known = np.isin(labels, self.classes)
            if not known.all():
                raise ValueError(
                    f"{name} must hold the classes of y ({self.classes.tolist()}), got "
                    f"{labels[~known][0]!r}."
                )
            values = np.searchsorted(self.classes, labels).astype(float)
        check_same_length(len(self.y), **{name: values})
        return values

    def encode_predictions(self, y_pred: Any) -> np.ndarray:
        """Return predictions as numbers.

        Real values; probabilities of the second of two classes; a column of each class, shape
        (n, K), of probabilities or of 0 and 1, of which two classes need the second alone.
        """
        if self.classes is None:
            p = self.encode(y_pred, "y_pred")
            if self.loss == "kl":
                check_positive(p, "y_pred")
            return p
        given = check_values(y_pred, "y_pred")
        if given.shape[1] > 1:
            p = self._encode_columns(given)
            return p if self.n_classes > 2 else p[:, 1]
        labels = check_labels(given, "y_pred")
        if self.n_classes > 2 or self._are_labels(labels):
            if self.loss == "log_loss":
                raise ValueError(
                    "loss='log_loss' needs probabilities as y_pred, got class labels. Pass "
                    "predict_proba(X), or use loss='hamming'."
                )
            codes = self.encode(labels, "y_pred")
            return codes if self.n_classes == 2 else np.eye(self.n_classes)[codes.astype(int)]
        p = check_numbers(labels, "y_pred", n_columns=1)
        if (p < 0).any() or (p > 1).any():
            raise ValueError(
                f"y_pred must hold the two classes of y ({self.classes.tolist()}) or scores in "
                f"[0, 1]; got values from {p.min():.3g} to {p.max():.3g}."
            )
        check_same_length(len(self.y), y_pred=p)
        return p

    def _encode_columns(self, y_pred: np.ndarray) -> np.ndarray:
        """Return probabilities, or 0 and 1, with a column for each class."""
        p = check_numbers(y_pred, "y_pred")
        check_same_length(len(self.y), y_pred=p)
        if p.shape[1] != self.n_classes or (p < 0).any() or (p > 1).any():
            raise ValueError(
                f"y_pred must hold labels, or probabilities of the {self.n_classes} classes of y "
                f"in [0, 1]; got an array of shape {p.shape} from {p.min():.3g} to {p.max():.3g}."
            )
        return p

    def _are_labels(self, y_pred: np.ndarray) -> bool:
        """Tell labels from scores: floats are scores, unless the labels are other floats."""
        assert self.classes is not None  # asked for two classes only
        if not np.isin(y_pred, self.classes).all():
            return False
        if y_pred.dtype.kind != "f":
            return True
        return self.classes.dtype.kind == "f" and self.classes.tolist() != [0.0, 1.0]

    def decode(self, z: np.ndarray) -> np.ndarray:
        """Return numbers as targets of the type of y."""
        return z if self.classes is None else self.classes[z.astype(int)]


def check_multiplied(y: np.ndarray, name: str) -> None:
    """Refuse targets that loss='kl' means nothing for: negative ones, and nothing but zeros."""
    if (y < 0).any():
        raise ValueError(
            f"loss='kl' multiplies targets, which cannot be negative: {name} has "
            f"{int((y < 0).sum())} negative value(s), the least {y.min():.6g}. Use "
            "loss='squared_error'."
        )
    if not y.any():
        raise ValueError(
            f"loss='kl' keeps the mean of {name}, which holds only zeros. There is nothing to "
            "multiply."
        )


def check_positive(p: np.ndarray, name: str) -> None:
    """Refuse predictions that loss='kl' means nothing for."""
    if not (p > 0).all():
        raise ValueError(
            f"loss='kl' multiplies predictions, which have to be positive: {int((p <= 0).sum())} "
            f"value(s) of {name} are at most 0, the least {p.min():.6g}. Use a learner with a log "
            "link, such as PoissonRegressor, or loss='squared_error'."
        )


def check_bounds(target_bounds: Any, targets: Targets) -> tuple[float, float] | None:
    """Return bounds on real targets as two floats, or None where there are none.

    Raises
    ------
    ValueError
        If they are no pair of (number or None), are not ordered, meet classes or loss='kl', or a
        target lies outside of them.
    """
    if target_bounds is None:
        return None
    if targets.classes is not None:
        raise ValueError(
            f"target_bounds={target_bounds!r} bounds real targets; loss={targets.loss!r} has "
            "classes. Leave it at None."
        )
    if targets.loss == "kl":
        raise ValueError(
            f"target_bounds={target_bounds!r} with loss='kl': targets are positive without them, "
            "and a cut would change their mean. Leave it at None, or use loss='squared_error'."
        )
    is_pair = len(target_bounds) == 2 and all(
        end is None or (isinstance(end, Real) and not np.isnan(float(end))) for end in target_bounds
    )
    if not is_pair:
        raise ValueError(
            "target_bounds must be a pair (lowest, highest) of numbers or None, got "
            f"{target_bounds!r}."
        )
    low = -np.inf if target_bounds[0] is None else float(target_bounds[0])
    high = np.inf if target_bounds[1] is None else float(target_bounds[1])
    if low >= high:
        raise ValueError(f"target_bounds must increase, got {target_bounds!r}.")
    if (targets.y < low).any() or (targets.y > high).any():
        raise ValueError(
            f"y lies outside of target_bounds={target_bounds!r}: it goes from "
            f"{targets.y.min():.6g} to {targets.y.max():.6g}."
        )
    return None if np.isinf(low) and np.isinf(high) else (low, high)


def target_kind(target: np.ndarray) -> str:
    """Return "labels" for text, else "binary", "multiclass" or "continuous".

    As scikit-learn's `type_of_target`, which warns of many classes: here the caller is asked.
    """
    if is_text(target):
        return "labels"
    if target.dtype.kind == "f":
        # A few rows are enough to tell most real targets.
        for own in (target[:_FEW], target):
            if (own != np.floor(own)).any():
                return "continuous"
    is_binary = ((target == target.min()) | (target == target.max())).all()
    return "binary" if is_binary else "multiclass"
