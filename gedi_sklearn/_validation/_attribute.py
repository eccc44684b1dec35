"""The protected attribute: its values, the names of its columns, the groups that it makes."""

from __future__ import annotations

import numbers
from typing import Any

import numpy as np

from ..exceptions import warn_caller
from ._arrays import check_numbers, check_same_length, check_values, is_text
from ._columns import select_columns

__all__ = [
    "attribute_columns",
    "check_attribute",
    "check_attribute_columns",
    "check_group_codes",
    "check_sensitive",
    "warn_many_groups",
]


def check_sensitive(
    sensitive_features: Any = None,
    *,
    X: Any = None,
    sensitive_columns: Any = None,
    n_samples: int | None = None,
    kind: str = "numbers",
) -> np.ndarray:
    """Return the protected attribute from `sensitive_features` or `sensitive_columns`.

    Parameters
    ----------
    sensitive_features : array-like of shape (n,) or (n, m), default=None
        The values themselves.
    X : array-like of shape (n, p), default=None
        Rows with the columns that `sensitive_columns` names.
    sensitive_columns : int, str or list of these, default=None
        Position(s) or name(s) of columns of `X`.
    n_samples : int, default=None
        Number of rows that the attribute must have.
    kind : {"numbers", "mixed", "groups"}, default="numbers"
        What it may hold; see :func:`check_attribute`.

    Returns
    -------
    ndarray of shape (n, m)
        float64 for numbers, objects where a column of "mixed" is categorical.

    Raises
    ------
    ValueError
        Unless exactly one of `sensitive_features` and `sensitive_columns` is given, or if a column
        does not exist, a value is missing, infinite or not a number, or the length differs.
    """
    if (sensitive_features is None) == (sensitive_columns is None):
        got = "neither" if sensitive_features is None else "both"
        raise ValueError(
            f"the protected attribute needs exactly one of sensitive_features= (its values) and "
            f"sensitive_columns= (column(s) of X), got {got}."
        )
    name = "sensitive_features"
    if sensitive_columns is not None:
        sensitive_features = select_columns(X, sensitive_columns)
        name = f"sensitive_features (column {sensitive_columns!r} of X)"
    return check_attribute(sensitive_features, n_samples, kind=kind, name=name)


def check_attribute(
    values: Any, n_samples: int | None, *, kind: str, name: str = "sensitive_features"
) -> np.ndarray:
    """Return an attribute as (n, m): float64, or objects where a column is categorical.

    `kind` says what it may hold: "numbers", "mixed" (numbers and categories) or "groups" (values
    of any type, as they are). Categories are text, whatever they were: the numbers 1 and 2 as
    pandas categories are levels.
    """
    array = check_numbers(values, name) if kind == "numbers" else check_values(values, name)
    if n_samples is not None:
        check_same_length(n_samples, **{name.split()[0]: array})
    if kind != "mixed":
        return array
    dtypes = getattr(values, "dtypes", getattr(values, "dtype", None))
    columns = list(dtypes) if getattr(values, "ndim", 1) == 2 and np.iterable(dtypes) else [dtypes]
    categorical = [str(dtype) == "category" for dtype in columns]
    if not (any(categorical) or is_text(array)):
        return check_numbers(array, name)
    array = array.astype(object)
    for position in np.flatnonzero(categorical):
        array[:, position] = [str(value) for value in array[:, position]]
    for column in array.T:
        if not is_text(column):
            check_numbers(column, name)
    return array


def attribute_columns(values: Any) -> list[str] | None:
    """Return the names of the columns of a frame; None for what has no columns, or none by name.

    A series has no columns: it is one attribute, whatever it is called.
    """
    columns = list(getattr(values, "columns", ()))
    return columns if columns and all(isinstance(name, str) for name in columns) else None


def check_attribute_columns(fitted: list[str] | None, values: Any) -> None:
    """Refuse attributes that carry other names than in `fit`, as scikit-learn does of features.

    Columns are matched by position, so that two in another order would be taken for each other.

    Parameters
    ----------
    fitted : list of str or None
        What :func:`attribute_columns` said of the attributes in `fit`.
    values : array-like of shape (n,) or (n, m)
        The attributes of other rows.

    Raises
    ------
    ValueError
        If both have names, and these are not the same in the same order.

    Warns
    -----
    UserWarning
        If only one of them has names, of several columns.
    """
    given = attribute_columns(values)
    if given is None or fitted is None:
        if max(len(given or ()), len(fitted or ())) > 1:
            now, then = ("no ", "with") if given is None else ("", "without")
            warn_caller(
                f"sensitive_features has {now}column names, but was fitted {then} them: its "
                "columns are matched by position. Pass frames, or arrays, both times."
            )
        return
    if given == fitted:
        return
    unseen = [name for name in given if name not in fitted]
    missing = [name for name in fitted if name not in given]
    differences = [f"unseen at fit time: {unseen}"] if unseen else []
    differences += [f"seen at fit time, yet now missing: {missing}"] if missing else []
    raise ValueError(
        "the column names of sensitive_features should match those that were passed during fit: "
        f"{'; '.join(differences) or 'the order differs'}. Got {given}, fitted on {fitted}."
    )


def check_group_codes(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the group of every row as integers 0…g−1, and the g groups' values.

    Rows of a two-dimensional attribute form one group where all their columns agree.
    """
    codes = np.zeros(len(values), dtype=np.int64)
    first = np.zeros(1, dtype=np.int64)
    for column in _comparable(values).T:
        levels, inverse = np.unique(column, return_inverse=True)
        _, first, codes = np.unique(
            codes * len(levels) + inverse, return_index=True, return_inverse=True
        )
    return codes, values[first]


def warn_many_groups(n_groups: int, n_rows: int) -> None:
    """Warn where most groups are single rows, by scikit-learn's rule for the classes of a target.

    The mean of a row alone is its own target, so that any targets at all give about one value.
    """
    if n_rows > 20 and n_groups > round(0.5 * n_rows):
        warn_caller(
            f"sensitive_features has {n_groups} different values for {n_rows} rows, more than "
            "half as many, and each is a group of its own: the value says little. Pass a "
            "continuous attribute as numbers to `gedi`, or in bins (`binned_didi`); of "
            "categories, join the rare ones."
        )


def _comparable(values: np.ndarray) -> np.ndarray:
    """Return labels that sort: mixed types are told apart by type and text."""
    if values.dtype.kind != "O":
        return values
    if all(isinstance(value, str) for value in values.flat):
        return values.astype(str)
    if all(isinstance(value, (numbers.Real, np.bool_)) for value in values.flat):
        return values.astype(np.float64)
    labels = [f"{type(value).__name__}:{value}" for value in values.flat]
    return np.asarray(labels).reshape(values.shape)
