"""Checks of what a caller hands over, and the one door to scikit-learn's private names.

Values are matched to rows by position, as everywhere in scikit-learn: the index of a pandas
object is never looked at. Nothing is dropped, cast from text, or filled in.
"""

from __future__ import annotations

import numbers
from collections.abc import Callable, Mapping, Set
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import _fit_context
from sklearn.metrics._scorer import _BaseScorer
from sklearn.utils import _safe_indexing, check_array, check_random_state, column_or_1d
from sklearn.utils._param_validation import (
    HasMethods,
    Hidden,
    Interval,
    Options,
    RealNotInt,
    StrOptions,
    validate_params,
)
from sklearn.utils._response import _get_response_values
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import (
    _check_feature_names,
    _check_method_params,
    _check_n_features,
    _check_response_method,
    _get_feature_names,
    _num_features,
    _num_samples,
)

from .exceptions import warn_caller

__all__ = [
    "N_JOBS",
    "HasMethods",
    "Hidden",
    "Interval",
    "Options",
    "RealNotInt",
    "StrOptions",
    "_BaseScorer",
    "_check_feature_names",
    "_check_method_params",
    "_check_n_features",
    "_check_response_method",
    "_fit_context",
    "_get_feature_names",
    "_get_response_values",
    "_num_features",
    "_num_samples",
    "_safe_indexing",
    "attribute_columns",
    "check_all_weighted",
    "check_attribute",
    "check_attribute_columns",
    "check_classes",
    "check_classification_targets",
    "check_column",
    "check_group_codes",
    "check_numbers",
    "check_random_state",
    "check_same_length",
    "check_sample_weight",
    "check_sensitive",
    "check_values",
    "is_text",
    "named_in_errors",
    "validate_params",
    "warn_many_groups",
]

# As joblib understands it; 0 has no meaning, which shows before any fit.
N_JOBS: list[Any] = [
    Interval(numbers.Integral, None, -1, closed="right"),
    Interval(numbers.Integral, 1, None, closed="left"),
    None,
]


def named_in_errors(name: str) -> Callable[[Callable], Callable]:
    """Return the decorator that gives a function the name that errors of its parameters say.

    Callers that check no parameters themselves can put their own in its place.
    """

    def rename(function: Callable) -> Callable:
        function.__qualname__ = name
        return function

    return rename


# pandas.NA and pandas.NaT, told by name so that pandas need not be there.
_MISSING_TYPES = {"NAType", "NaTType"}


def _as_array(values: Any, name: str) -> np.ndarray:
    """Return ``values`` as an array that keeps missing entries visible.

    ``numpy.asarray`` on a list would turn a missing name into the text "nan", so anything that
    is not already typed goes through ``object``.
    """
    if values is None:
        raise ValueError(f"{name} is None; pass one value for each row.")
    if sp.issparse(values):
        raise ValueError(f"{name} is a sparse matrix; pass a dense array, e.g. {name}.toarray().")
    if isinstance(values, np.ma.MaskedArray):
        # `numpy.asarray` would bring back what lies below the mask.
        _refuse_count(int(np.ma.count_masked(values)), values.size, name)
    if any(hasattr(values, known) for known in ("dtype", "columns", "to_numpy", "__array__")):
        array = np.asarray(values)
    else:
        _require_sized(values, name)
        array = np.asarray(list(values), dtype=object)
    if array.ndim not in (1, 2):
        raise ValueError(
            f"{name} must have one or two dimensions, got an array of shape {array.shape}."
        )
    if array.shape[0] == 0 or array.size == 0:
        raise ValueError(f"{name} is empty: got an array of shape {array.shape}.")
    if array.dtype.kind == "O":
        _refuse_missing(array, name)
        first = array.flat[0]
        if isinstance(first, (list, tuple, np.ndarray)):
            raise ValueError(f"{name} has rows of unequal length; pass one value for each row.")
        if not hasattr(values, "dtype"):
            array = _infer_type(array)
    return array


def _infer_type(array: np.ndarray) -> np.ndarray:
    """Give a list of numbers, or of text, the type that numpy has for it; leave a mixture."""
    if not is_text(array) or all(isinstance(value, str) for value in array.flat):
        return np.array(array.tolist())
    return array


def _require_sized(values: Any, name: str) -> None:
    # Of a dictionary the keys would be taken, and a set has an order of its own.
    unordered = isinstance(values, (str, bytes, Mapping, Set))
    if unordered or not hasattr(values, "__len__"):
        shown = type(values).__name__ if unordered and len(values) > 5 else repr(values)
        raise ValueError(f"{name} must hold one value for each row, in their order; got {shown}.")


def _refuse_missing(array: np.ndarray, name: str) -> None:
    """Raise where an entry is NaN, None, NA or NaT, and say how many are."""
    if array.dtype.kind == "f":
        missing = 0 if _all_finite(array) else int(np.isnan(array).sum())
    elif array.dtype.kind in "mM":
        missing = int(np.isnat(array).sum())
    elif array.dtype.kind == "O":
        missing = sum(_is_missing(value) for value in array.flat)
    else:
        missing = 0
    _refuse_count(missing, array.size, name)


def _refuse_count(missing: int, size: int, name: str) -> None:
    if missing:
        raise ValueError(
            f"{name} contains NaN: {missing} of {size} values are missing (NaN, None or "
            "NA). Drop or impute those rows first; a missing value is neither a number nor a "
            "group."
        )


def _all_finite(array: np.ndarray) -> bool:
    # The sum is one pass without a copy, and not finite where any value is not.
    with np.errstate(over="ignore", invalid="ignore"):
        return bool(np.isfinite(array.sum()) or np.isfinite(array).all())


def _is_missing(value: Any) -> bool:
    if value is None or type(value).__name__ in _MISSING_TYPES:
        return True
    return isinstance(value, (float, np.floating)) and bool(np.isnan(value))


def _refuse_objects(array: np.ndarray, name: str) -> None:
    """Raise where an entry is neither a number nor text, as scikit-learn does."""
    known = (numbers.Number, np.bool_, str, bytes)
    for value in array.flat:
        if not isinstance(value, known):
            raise TypeError(
                f"{name} must hold numbers: each argument must be a string or a number, got a "
                f"{type(value).__name__}."
            )


def is_text(array: np.ndarray) -> bool:
    """Tell whether an array holds labels that are not numbers."""
    if array.dtype.kind == "O":
        return not all(isinstance(value, (numbers.Number, np.bool_)) for value in array.flat)
    return array.dtype.kind in "USTV"


def check_labels(values: Any, name: str) -> np.ndarray:
    """Return a one-dimensional array of any type without missing values.

    Parameters
    ----------
    values : array-like of shape (n,)
        Numbers, text, booleans, categories.
    name : str
        The caller's argument, for the error.

    Returns
    -------
    ndarray of shape (n,)
    """
    array = _as_array(values, name)
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim != 1:
        raise ValueError(f"{name} must be one-dimensional, got an array of shape {array.shape}.")
    _refuse_missing(array, name)
    if array.dtype.kind == "O" and len({isinstance(label, str) for label in array}) > 1:
        raise ValueError(f"{name} mixes text with other labels; use labels of one type.")
    return array


def check_column(y: Any, name: str) -> np.ndarray:
    """Return targets of any type, shape (n,); a column vector with scikit-learn's warning.

    Unlike `column_or_1d` alone it keeps missing entries visible.
    """
    return column_or_1d(_as_array(y, name), warn=True)


def check_classes(y: Any, sample_weight: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return the classes of labels, shape (K,), and every row's as an integer, shape (n,).

    Raises
    ------
    ValueError
        If the labels are none, or the rows of positive weight have a single class.
    """
    labels = check_labels(check_column(y, "y"), "y")
    if labels.dtype.kind == "f":
        check_numbers(labels, "y")  # infinity is no label
    check_classification_targets(labels)
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
    """Raise where a class, of codes 0…K − 1, is not among those of the rows that count."""
    absent = np.setdiff1d(np.arange(len(classes)), codes)
    if absent.size:
        raise ValueError(
            f"class(es) {classes[absent].tolist()} of y are found in rows of zero sample_weight "
            "only, which do not count. Leave these rows out."
        )


def check_values(values: Any, name: str) -> np.ndarray:
    """Return values of any type as an array (n, m) without missing entries."""
    array = _as_array(values, name)
    _refuse_missing(array, name)
    return array.reshape(array.shape[0], -1)


def check_numbers(values: Any, name: str, *, n_columns: int | None = None) -> np.ndarray:
    """Return finite float64 values; booleans and integers count as they are.

    Parameters
    ----------
    values : array-like of shape (n,) or (n, m)
        The caller's values.
    name : str
        The caller's argument, for the error.
    n_columns : int, default=None
        1 asks for a result of shape (n,); None for one of shape (n, m).

    Returns
    -------
    ndarray of shape (n,) or (n, m), float64
        A copy only where the type had to change; never written to by this library.
    """
    array = _as_array(values, name)
    if array.dtype.kind == "c":
        raise ValueError(f"{name}: Complex data not supported; got {array.dtype}.")
    if array.dtype.kind == "O":
        _refuse_objects(array, name)
    if array.dtype.kind in "mM" or is_text(array):
        raise ValueError(
            f"{name} must hold numbers, got {array.dtype} values such as {array.flat[0]!r}. "
            "Encode labels as numbers first; text is never parsed."
        )
    if array.dtype.kind != "f" or array.dtype.itemsize != 8:
        given, array = array, array.astype(np.float64)
        if given.dtype.kind in "iu":
            _refuse_lost_integers(given, array, name)
    _refuse_missing(array, name)
    if not _all_finite(array):
        raise ValueError(f"{name} contains infinity; every value must be finite.")
    if n_columns == 1:
        if array.ndim == 2 and array.shape[1] != 1:
            raise ValueError(
                f"{name} must be one-dimensional, got an array of shape {array.shape}."
            )
        return array.reshape(-1)
    return array.reshape(array.shape[0], -1)


def _refuse_lost_integers(given: np.ndarray, array: np.ndarray, name: str) -> None:
    """Raise where integers that differ have become one float: they would seem constant."""
    exact = 2.0**53
    if np.abs(array).max() > exact and len(np.unique(given)) > len(np.unique(array)):
        raise ValueError(
            f"{name} holds integers above 2**53 that differ by less than floats can tell, such as "
            f"{given.flat[0]}. Subtract an origin first."
        )


def check_same_length(n_samples: int, **arrays: np.ndarray | None) -> None:
    """Raise where an array has another number of rows than ``n_samples``."""
    for name, array in arrays.items():
        if array is not None and array.shape[0] != n_samples:
            raise ValueError(
                f"Found input variables with inconsistent numbers of samples: {name} has "
                f"{array.shape[0]} rows where {n_samples} were expected."
            )


def check_sample_weight(sample_weight: Any, n_samples: int) -> np.ndarray | None:
    """Return non-negative weights of shape (n,), or None where none were given.

    Raises
    ------
    ValueError
        If a weight is negative or missing, if the length differs, or if all weights are 0.
    """
    if sample_weight is None:
        return None
    if isinstance(sample_weight, numbers.Real):
        sample_weight = np.full(n_samples, float(sample_weight))
    array = _as_array(sample_weight, "sample_weight")
    if array.ndim != 1:
        raise ValueError(f"sample_weight: Sample weights must be 1D, got shape {array.shape}.")
    weight = check_numbers(array, "sample_weight", n_columns=1)
    check_same_length(n_samples, sample_weight=weight)
    if (weight < 0).any():
        raise ValueError(
            f"Negative values in data passed to `sample_weight`: {int((weight < 0).sum())} of "
            f"{n_samples}; weights must be at least 0."
        )
    if not (weight > 0).any():
        raise ValueError("sample_weight is zero in every row; at least one row must count.")
    return weight


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


def check_sensitive(
    sensitive_features: Any = None,
    *,
    X: Any = None,
    sensitive_columns: Any = None,
    n_samples: int | None = None,
    kind: str = "numbers",
) -> np.ndarray:
    """Return the protected attribute as an array, from either of its two doors.

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
        If both doors or none are used, a column does not exist, a value is missing or infinite,
        the values are no numbers, or the length differs.
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
    n_features = _num_features(X)
    positions = []
    for key in keys:
        if isinstance(key, str):
            if names is None:
                raise ValueError(
                    f"{name}={key!r} is a name, but X is a {type(X).__name__} without "
                    "column names; pass a position, or a frame."
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


def select_columns(X: Any, columns: Any, name: str = "sensitive_columns") -> Any:
    """Return the columns of ``X`` that a parameter names, two-dimensional, in the type of X."""
    if X is None:
        raise ValueError(f"{name}= needs X, which was not passed.")
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
