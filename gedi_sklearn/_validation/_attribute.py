"""The protected attribute, groups, and columns and rows of X."""

from __future__ import annotations

import numbers
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils import _safe_indexing, check_array
from sklearn.utils.validation import _num_features

from ..exceptions import warn_caller
from ._arrays import (
    check_numbers,
    check_same_length,
    check_values,
    column_types,
    is_plain,
    is_text,
    refuse_date_objects,
    refuse_dates,
)

# Keywords that hold one pair (X, y), or several.
_PAIRS = ("eval_set", "validation_data")
# Integers of at most this range are told apart by counting.
_MOST_COUNTED = 10_000
# How the names of the dtypes of categories begin, in pandas, polars and pyarrow.
_CATEGORIES = ("categor", "enum", "dictionary")


# Words in the names of keywords of a fit that describe other rows than those of X.
_OTHER_ROWS = re.compile(r"(^|_)(val|valid|validation|eval|test)(_|$)")


def column_positions(X: Any, columns: Any, name: str = "sensitive_columns") -> list[int]:
    """Return the positions in ``X`` of the columns that the parameter ``name`` names."""
    keys = [columns] if isinstance(columns, (int, str, np.integer)) else list(columns)
    if not keys or any(
        isinstance(key, bool) or not isinstance(key, (int, str, np.integer)) for key in keys
    ):
        raise ValueError(
            f"{name} must be a column position, a column name, or a non-empty list of these; got "
            f"{columns!r}."
        )
    # The columns of a table of pyarrow are its values.
    is_arrow = hasattr(X, "column_names") and not hasattr(X, "loc")
    names = X.column_names if is_arrow else list(X.columns) if hasattr(X, "columns") else None
    n_features = X.shape[1] if is_plain(X) else _num_features(X)
    positions = []
    for key in keys:
        if isinstance(key, str):
            if names is None:
                raise ValueError(
                    f"{name}={key!r} is a name, but X is a {type(X).__name__} without "
                    "column names. Pass a position or a frame; behind a step of a pipeline, "
                    "pipeline.set_output(transform='pandas') keeps frames."
                )
            if names.count(key) != 1:
                raise ValueError(
                    f"{name}={key!r} names {names.count(key)} columns of X; it must "
                    f"name exactly one of {names}."
                )
            positions.append(names.index(key))
        elif -n_features <= key < n_features:
            positions.append(int(key) % n_features)
        else:
            raise ValueError(f"{name}={key!r} is out of range for X with {n_features} columns.")
    if len(set(positions)) != len(positions):
        raise ValueError(f"{name}={columns!r} names a column of X twice.")
    return positions


def take_rows(X: Any, rows: np.ndarray) -> Any:
    """Return the rows of ``X`` at some positions, in its type."""
    if hasattr(X, "to_struct_array"):  # scikit-learn takes a record batch for a list
        return X.take(rows)
    return X[rows] if is_plain(X) else _safe_indexing(X, rows)


def select_columns(X: Any, columns: Any, name: str = "sensitive_columns") -> Any:
    """Return the columns of ``X`` that a parameter names, two-dimensional, in the type of X."""
    if X is None:
        raise ValueError(f"{name}= needs X, which was not passed.")
    if is_plain(X) and X.ndim == 2 and X.size:
        return X[:, column_positions(X, columns, name)]
    if sp.issparse(X):
        positions = column_positions(X, columns, name)
        return X.tocsc()[:, positions].toarray()
    if not hasattr(X, "columns") and not isinstance(X, np.ma.MaskedArray):
        X = check_array(X, dtype=None, ensure_all_finite=False)
    return _safe_indexing(X, column_positions(X, columns, name), axis=1)


def drop_columns(X: Any, sensitive_columns: Any) -> Any:
    """Return ``X`` without the columns that hold the attribute."""
    if sp.issparse(X):
        X = X if X.format == "csc" else X.tocsr()  # some formats have no columns to take
    elif not hasattr(X, "columns"):
        X = check_array(X, dtype=None, ensure_all_finite=False)
    dropped = set(column_positions(X, sensitive_columns))
    kept = [position for position in range(_num_features(X)) if position not in dropped]
    if not kept:
        raise ValueError(
            "sensitive_columns names all columns of X, so that none is left where it is not used "
            "(drop_sensitive=True, or sensitive_at_predict=False)."
        )
    return _safe_indexing(X, kept, axis=1)


def holds_other_rows(keyword: str) -> bool:
    """Tell whether a keyword of a fit describes other rows than those of X, as `X_val` does."""
    return bool(_OTHER_ROWS.search(keyword.rpartition("__")[2]))


def change_tables(keyword: str, value: Any, change: Callable[[Any], Any]) -> Any:
    """Return the value of a keyword of a fit with every further X in it changed.

    These are tables (`X_val`, `eval_X`, or a tuple of them) and pairs of a table and targets
    (`eval_set`), known by their names, with or without that of a step of a pipeline.

    Raises
    ------
    ValueError
        If the value is of another form, so that its tables are not known.
    """
    name = keyword.rpartition("__")[2]
    if value is None:
        return None
    if "X" in name.split("_"):
        return tuple(map(change, value)) if isinstance(value, tuple) else change(value)
    if name not in _PAIRS:
        return value
    if not isinstance(value, (tuple, list)):
        raise ValueError(
            f"drop_sensitive=True removes the protected column(s) from {keyword}, which must be "
            f"(X, y) or a list of such pairs; got {type(value).__name__}."
        )
    if all(isinstance(pair, (tuple, list)) for pair in value):
        return [(change(pair[0]), *pair[1:]) for pair in value]
    return (change(value[0]), *value[1:])


def check_sensitive(
    sensitive_features: Any = None,
    *,
    X: Any = None,
    sensitive_columns: Any = None,
    n_samples: int | None = None,
    kind: str = "numbers",
) -> np.ndarray:
    """Return the attribute from exactly one of `sensitive_features` and `sensitive_columns`.

    Parameters
    ----------
    sensitive_features : array-like of shape (n,) or (n, m), default=None
        The values themselves.
    X : array-like of shape (n, p), default=None
        Where `sensitive_columns` are looked up.
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
        If both or neither are given, a column does not exist, a value is missing or infinite, the
        values are not numbers, or the length differs.
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
    values: Any,
    n_samples: int | None,
    *,
    kind: str,
    name: str = "sensitive_features",
    ensure_all_finite: bool = True,
) -> np.ndarray:
    """Return an attribute as (n, m): float64, or objects where a column is categorical.

    `kind` is what it may hold: "numbers", "mixed" (numbers and categories) or "groups" (values
    of any type, as they are). Categories are text, whatever they were: the numbers 1 and 2 as
    pandas categories are levels. An array of numbers is left unchecked by
    ``ensure_all_finite=False``; see :func:`check_numbers`.
    """
    if isinstance(values, str):
        raise ValueError(
            f"{name} must be values, got the name {values!r}. Pass the column, X[{values!r}], or "
            f"where there is such a parameter sensitive_columns={values!r}."
        )
    if kind == "mixed":
        refuse_dates(values, name)
    if kind == "numbers" or (kind == "mixed" and is_plain(values)):
        array = check_numbers(values, name, sets_scale=True, ensure_all_finite=ensure_all_finite)
    else:
        array = check_values(values, name)
    if n_samples is not None:
        check_same_length(n_samples, **{name.split()[0]: array})
    if kind != "mixed" or is_plain(values):
        return array
    categorical = [dtype.startswith(_CATEGORIES) for dtype in column_types(values)]
    if not any(categorical):
        refuse_date_objects(array, name)
        if not is_text(array):
            return check_numbers(array, name, sets_scale=True)
    given, array = array, array.astype(object)
    for position in np.flatnonzero(categorical):
        levels = {value: Level(value) for value in set(given[:, position])}
        array[:, position] = [levels[value] for value in given[:, position]]
    for column in array.T:
        refuse_date_objects(column, name)
        if not is_text(column):
            check_numbers(column, name, sets_scale=True)
    if name == "conditional_on":
        # An attribute may be groups, which only the constraint tells; covariates are none.
        check_levels(array, name)
    return array


class Level(str):
    """A level that the caller declared as one, so that it may look like a number."""

    __slots__ = ()


def check_levels(values: np.ndarray, name: str) -> None:
    """Refuse mixed columns, and warn of text that holds numbers.

    Parameters
    ----------
    values : ndarray of shape (n, m)
        Numbers and categories, as :func:`check_attribute` returns them.
    name : str
        The caller's argument.
    """
    refuse_mixed_levels(values, name)
    for column in values.T if values.dtype.kind in "OUS" else ():
        if (
            is_text(column)
            and not isinstance(column[0], Level)
            and all(map(_is_numeric, set(map(str, column))))
        ):
            warn_caller(
                f"{name} is text, such as {column[0]!r}, but every value is a number: each is "
                "taken as a separate level. Convert it to float to use numbers, or to a pandas "
                "category to keep levels."
            )


def refuse_mixed_levels(values: np.ndarray, name: str) -> None:
    """Refuse columns that mix numbers with other values; see :func:`check_levels`."""
    for column in values.T if values.dtype.kind in "OUS" else ():
        if any(isinstance(value, (numbers.Number, np.bool_)) for value in column):
            check_numbers(column, name)


def _is_numeric(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def attribute_columns(values: Any) -> list[str] | None:
    """Return the names of the columns of a data frame; None for other values and other names.

    A series has no columns: it is one attribute, whatever it is called.
    """
    columns = list(getattr(values, "columns", ()))
    return columns if columns and all(isinstance(name, str) for name in columns) else None


def check_attribute_columns(fitted: list[str] | None, values: Any) -> None:
    """Refuse attributes with other names than in `fit`, as scikit-learn does for features.

    Columns are matched by position, so that in another order they would be mistaken.

    Parameters
    ----------
    fitted : list of str or None
        What :func:`attribute_columns` returned for the attributes in `fit`.
    values : array-like of shape (n,) or (n, m)
        The attributes of other rows.

    Raises
    ------
    ValueError
        If both have names that are not the same in the same order.

    Warns
    -----
    UserWarning
        If only one of them has names, for several columns.
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
    """Return the group of each row as integers 0…g−1, and the values of the g groups.

    Rows of a two-dimensional attribute form one group where all their columns agree.
    """
    comparable = _comparable(values)
    if comparable.shape[1] == 1 and (counted := _count_integers(comparable[:, 0])) is not None:
        codes, levels = counted
        return codes, levels.astype(values.dtype)[:, None]
    first, codes = np.zeros(1, dtype=np.int64), np.zeros(len(values), dtype=np.int64)
    for column in comparable.T:
        levels, index, inverse = np.unique(column, return_index=True, return_inverse=True)
        if len(first) == 1:
            first, codes = index, inverse
        elif len(levels) > 1:
            both = codes * len(levels) + inverse
            _, first, codes = np.unique(both, return_index=True, return_inverse=True)
    return codes, values[first]


def check_groups(groups: Any, n_samples: int | None = None) -> np.ndarray | None:
    """Return the group of each row, in values that can be sorted; None if there are none.

    They stay as given where they are one column, since warnings name a group.

    Raises
    ------
    ValueError
        If a value is missing, or the length differs.
    """
    if groups is None:
        return None
    values = check_attribute(groups, n_samples, kind="groups", name="groups")
    return _comparable(values)[:, 0] if values.shape[1] == 1 else check_group_codes(values)[0]


def _count_integers(column: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
    """Return the codes and the levels of integers of a small range; None for other values.

    Counting takes a few passes over the rows, sorting as many as a logarithm.
    """
    if column.dtype.kind not in "iuf":
        return None
    low, high = column.min(), column.max()
    if not float(high) - float(low) <= _MOST_COUNTED:
        return None
    if column.dtype.kind == "f":
        shifted = column - low
        codes = shifted.astype(np.int64)
        if not (codes == shifted).all():
            return None
    else:  # in 64 bits, where the difference cannot overflow
        codes = column.astype(np.int64, copy=False)
        if low != 0:
            codes = codes - low.astype(np.int64)
    present = np.bincount(codes) > 0
    if not present.all():
        codes = (np.cumsum(present) - 1)[codes]
    return codes, np.flatnonzero(present).astype(column.dtype) + low


def warn_many_groups(n_groups: int, n_rows: int) -> None:
    """Warn if most groups are single rows, by scikit-learn's rule for the classes of a target.

    The mean of a single row is its own target, so that almost any targets give the same value.
    """
    if n_rows > 20 and n_groups > round(0.5 * n_rows):
        warn_caller(
            f"sensitive_features has {n_groups} different values for {n_rows} rows, more than "
            "half as many, and each is a separate group: the value means little. Pass a "
            "continuous attribute as numbers to `gedi`, or in bins (`didi(n_bins=...)`); merge "
            "rare categories."
        )


def _comparable(values: np.ndarray) -> np.ndarray:
    """Return labels that can be sorted; those of mixed types are compared by type and text."""
    if values.dtype.kind != "O":
        return values
    kinds = set(map(type, values.flat))
    if all(issubclass(kind, str) for kind in kinds):
        return values.astype(str)
    if all(issubclass(kind, (numbers.Real, np.bool_)) for kind in kinds):
        return values.astype(np.float64)
    labels = [f"{type(value).__name__}:{value}" for value in values.flat]
    return np.asarray(labels).reshape(values.shape)
