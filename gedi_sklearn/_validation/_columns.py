"""Columns of X, by position or by name."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils import _safe_indexing, check_array
from sklearn.utils.validation import _num_features

from ._arrays import is_plain

# Words in the names of keywords of a fit that describe other rows than those of X.
_OTHER_ROWS = re.compile(r"(^|_)(val|valid|validation|eval|test)(_|$)")
# Keywords that hold one pair (X, y), or several.
_PAIRS = ("eval_set", "validation_data")


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
    names = list(X.columns) if hasattr(X, "columns") else None
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
    if not hasattr(X, "columns") and not sp.issparse(X):
        X = check_array(X, dtype=None, ensure_all_finite=False)
    dropped = set(column_positions(X, sensitive_columns))
    kept = [position for position in range(_num_features(X)) if position not in dropped]
    if not kept:
        raise ValueError(
            "drop_sensitive=True would leave no column of X: sensitive_columns names them all."
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
