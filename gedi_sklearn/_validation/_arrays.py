"""Arrays of numbers or any values, and weights, without missing entries and in the right shape."""

from __future__ import annotations

import datetime
import numbers
from collections.abc import Mapping, Set
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils import column_or_1d
from sklearn.utils.validation import _num_samples

# pandas.NA and pandas.NaT, recognised by name so that pandas is not required.
_MISSING_TYPES = {"NAType", "NaTType"}
# Beyond it squares are infinite; below its inverse they are 0, or have lost digits.
_LARGEST = 1e152
_NUMBERS: tuple[type, ...] = (numbers.Number, np.bool_)
# Dates, times and durations: Python's and numpy's types (pandas' own are subclasses of these, but
# its Period), and how the names of their dtypes begin in pandas, polars and pyarrow.
_DATES = (datetime.date, datetime.time, datetime.timedelta, np.datetime64, np.timedelta64)
_DATE_TYPES = ("date", "time", "duration", "period")


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
        # `numpy.asarray` would reveal the values below the mask.
        _refuse_count(int(np.ma.count_masked(values)), values.size, name)
    if any(hasattr(values, known) for known in ("dtype", "columns", "to_numpy", "__array__")):
        array = np.asarray(values)
    else:
        _require_sized(values, name)
        array = np.asarray(list(values), dtype=object)
    if array.dtype.names:  # whose rows would be taken as levels
        raise ValueError(
            f"{name} is a structured array with the fields {list(array.dtype.names)}. Pass one of "
            "them, or a frame, e.g. pandas.DataFrame.from_records(...)."
        )
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
            raise ValueError(
                f"{name} has rows of unequal length, or holds a {type(first).__name__} as a value, "
                "as a MultiIndex does; pass one value for each row, or a column for each part."
            )
        if not hasattr(values, "dtype"):
            array = _infer_type(array)
    return array


def _infer_type(array: np.ndarray) -> np.ndarray:
    """Give a list of numbers, or of text, the type that numpy has for it; leave a mixture."""
    if not is_text(array) or all(isinstance(value, str) for value in array.flat):
        return np.array(array.tolist())
    return array


def _require_sized(values: Any, name: str) -> None:
    # A dictionary would be read as its keys, and a set has no order.
    unordered = isinstance(values, (str, bytes, Mapping, Set))
    if unordered or not hasattr(values, "__len__"):
        shown = type(values).__name__ if unordered and len(values) > 5 else repr(values)
        raise ValueError(f"{name} must hold one value for each row, in their order; got {shown}.")


def _refuse_missing(array: np.ndarray, name: str) -> None:
    """Raise if entries are NaN, None, NA or NaT, with their number."""
    if array.dtype.kind == "f":
        missing = 0 if _all_finite(array) else int(np.isnan(array).sum())
    elif array.dtype.kind in "mM":
        missing = int(np.isnat(array).sum())
    elif array.dtype.kind == "O":
        kinds = set(map(type, array.flat))  # text, and most else, is never missing
        missing = sum(map(is_missing, array.flat)) if any(map(_holds_missing, kinds)) else 0
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
    # The sum takes one pass and no copy, and is not finite if any value is not.
    with np.errstate(over="ignore", invalid="ignore"):
        return bool(np.isfinite(array.sum()) or np.isfinite(array).all())


def is_missing(value: Any) -> bool:
    """Tell whether a value is NaN, None, NA or NaT."""
    if isinstance(value, (float, np.floating)):
        return bool(np.isnan(value))
    return _holds_missing(type(value))


def _holds_missing(kind: type) -> bool:
    """Tell whether a type has values that are missing."""
    is_float = issubclass(kind, (float, np.floating))
    return is_float or kind is type(None) or kind.__name__ in _MISSING_TYPES


def column_types(values: Any) -> list[str]:
    """Return the names of the dtypes of a frame's columns, of a series, or of an array."""
    dtypes = getattr(values, "dtypes", getattr(values, "dtype", None))
    dtypes = getattr(getattr(values, "schema", None), "types", dtypes)  # a table of pyarrow
    listed = list(dtypes) if hasattr(values, "columns") and np.iterable(dtypes) else [dtypes]
    return [str(dtype).lower() for dtype in listed]


def is_plain(values: Any) -> bool:
    """Tell whether values are an array of numbers, of which nothing has to be asked."""
    return type(values) is np.ndarray and values.dtype.kind in "fiub"


def are_whole(values: np.ndarray) -> bool:
    """Tell whether numbers are whole, as classes are; rounding takes a tenth of the time of `%`."""
    return bool((np.rint(values) == values).all())


def _are_floats(values: Any) -> bool:
    """Tell whether values are rows of float64, which nothing has to be changed of."""
    is_float = is_plain(values) and values.dtype == np.float64
    return is_float and values.ndim in (1, 2) and values.size > 0


def refuse_dates(values: Any, name: str) -> None:
    """Raise if a column has a type of dates, times or durations; before numpy casts them."""
    for dtype in () if is_plain(values) else column_types(values):
        if dtype.startswith(_DATE_TYPES):
            raise _no_number(name, f"{dtype} values")


def refuse_date_objects(array: np.ndarray, name: str) -> None:
    """Raise if an array of objects holds a date, time or duration."""
    kinds = set(map(type, array.flat)) if array.dtype.kind == "O" else set()
    dates = {kind for kind in kinds if issubclass(kind, _DATES) or kind.__name__ == "Period"}
    if dates:
        value = next(value for value in array.flat if type(value) in dates)
        raise _no_number(name, f"{value!r}")


def _no_number(name: str, got: str) -> ValueError:
    return ValueError(
        f"{name} must hold numbers, got {got}. Turn dates into years, or days since an origin, and "
        "labels into codes; drop or impute rows that have none. Text is never parsed."
    )


def first_stray(array: np.ndarray, known: tuple[type, ...] = _NUMBERS) -> str:
    """Return the first entry that is of no known type, in words with its row; "" if all are."""
    if array.dtype.kind in "fiub":
        return ""
    for position, value in enumerate(array.flat):
        if not isinstance(value, known):
            return f"{value!r} in row {position * len(array) // array.size}"
    return ""


def is_text(array: np.ndarray) -> bool:
    """Tell whether an array holds labels that are not numbers."""
    return array.dtype.kind in "USTV" or (array.dtype.kind == "O" and first_stray(array) != "")


def as_plain(value: Any) -> Any:
    """Return a number of numpy as one of Python, anything else as it is."""
    return value.item() if isinstance(value, np.generic) else value


def check_column(y: Any, name: str) -> np.ndarray:
    """Return targets of any type, shape (n,); a column vector with scikit-learn's warning.

    Unlike `column_or_1d` alone it keeps missing entries visible.
    """
    if is_plain(y) and y.ndim == 1:
        return y
    return column_or_1d(_as_array(y, name), warn=True)


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
    if array.dtype.kind == "O" and first_stray(array, (*_NUMBERS, str)):
        try:
            np.unique(array)
        except TypeError as error:
            raise TypeError(f"{name} holds labels that cannot be sorted: {error}.") from error
    return array


def check_values(values: Any, name: str) -> np.ndarray:
    """Return values of any type as an array (n, m) without missing entries."""
    array = _as_array(values, name)
    _refuse_missing(array, name)
    return array.reshape(array.shape[0], -1)


def check_numbers(
    values: Any,
    name: str,
    *,
    n_columns: int | None = None,
    sets_scale: bool = False,
    ensure_all_finite: bool = True,
) -> np.ndarray:
    """Return finite float64 values; booleans and integers count as they are.

    Parameters
    ----------
    values : array-like of shape (n,) or (n, m)
        The caller's values.
    name : str
        The caller's argument, for the error.
    n_columns : int, default=None
        1 asks for a result of shape (n,); None for one of shape (n, m).
    sets_scale : bool, default=False
        Whether deviations of these values are computed, so that they must not be too small either.
    ensure_all_finite : bool, default=True
        False leaves it to the caller to find values that are missing, infinite or too large.

    Returns
    -------
    ndarray of shape (n,) or (n, m), float64
        A copy only if the type had to change, or of a column of a table; the library never writes
        to it.
    """
    array = values if _are_floats(values) else _as_floats(values, name)
    if array.size == len(array):
        # A column of a table is read many times, and each would read the whole table.
        array = np.ascontiguousarray(array)
    if ensure_all_finite and not _are_moderate(array, sets_scale):
        _refuse_extremes(array, name, sets_scale)
    if n_columns == 1:
        if array.ndim == 2 and array.shape[1] != 1:
            raise ValueError(
                f"{name} must be one-dimensional, got an array of shape {array.shape}."
            )
        return array.reshape(-1)
    return array.reshape(array.shape[0], -1)


def _as_floats(values: Any, name: str) -> np.ndarray:
    """Return numbers of any type as float64."""
    refuse_dates(values, name)
    array = _as_array(values, name)
    refuse_date_objects(array, name)
    if array.dtype.kind == "c":
        raise ValueError(f"{name}: Complex data not supported; got {array.dtype}.")
    if stray := first_stray(array, (*_NUMBERS, str, bytes)):
        raise TypeError(  # in scikit-learn's words
            f"{name} must hold numbers: each argument must be a string or a number, got {stray}."
        )
    if stray := first_stray(array):
        raise _no_number(name, stray)
    if array.dtype.kind == "f" and array.dtype.itemsize == 8:
        return array
    try:
        floats = array.astype(np.float64)
    except (OverflowError, TypeError) as error:  # Python's integers have no end
        raise ValueError(f"{name} holds a number that no float can hold: {error}.") from error
    if array.dtype.kind in "iuO":
        _refuse_lost_integers(array, floats, name)
    return floats


def _are_moderate(array: np.ndarray, sets_scale: bool) -> bool:
    """Tell, from one pass for sums of squares, that no value can be extreme."""
    with np.errstate(over="ignore", invalid="ignore"):
        if array.size == len(array):
            column = array.reshape(-1)
            squares = [float(column @ column)]
        else:
            squares = np.einsum("ij,ij->j", array, array).tolist()
    smallest = len(array) / _LARGEST**2 if sets_scale else 0.0
    return all(smallest <= square <= _LARGEST**2 for square in squares)


def _refuse_extremes(array: np.ndarray, name: str, sets_scale: bool) -> None:
    """Raise if values are not finite, or their squares leave the range of floats."""
    low, high = array.min(axis=0), array.max(axis=0)
    if not (np.isfinite(low).all() and np.isfinite(high).all()):
        _refuse_missing(array, name)
        raise ValueError(f"{name} contains infinity; every value must be finite.")
    largest = np.maximum(high, -low)
    if np.max(largest) > _LARGEST:
        raise ValueError(
            f"{name} holds values beyond ±{_LARGEST:g}, whose squares are too large for floats; "
            "use another unit."
        )
    if sets_scale and np.any((largest > 0) & (largest < 1 / _LARGEST)):
        raise ValueError(
            f"{name} holds values of at most ±{1 / _LARGEST:g} and not only 0, whose squares are "
            "too small for floats; use another unit."
        )


def _refuse_lost_integers(given: np.ndarray, array: np.ndarray, name: str) -> None:
    """Raise if different integers have become the same float: they would seem constant."""
    exact = 2.0**53
    if np.abs(array).max() > exact and len(np.unique(given)) > len(np.unique(array)):
        raise ValueError(
            f"{name} holds integers above 2**53 that are equal as floats, such as "
            f"{given.flat[0]}. Subtract an origin first."
        )


def check_same_length(n_samples: int, **arrays: Any) -> None:
    """Raise if the number of rows of an array, or of another X, is not ``n_samples``."""
    for name, array in arrays.items():
        if array is None or (is_plain(array) and array.ndim and len(array) == n_samples):
            continue
        # A sparse matrix by keys is a dictionary, too.
        if isinstance(array, (Mapping, Set)) and not sp.issparse(array):
            raise TypeError(f"{name} must hold rows in their order, got a {type(array).__name__}.")
        try:
            given = _num_samples(array)
        except TypeError as error:
            raise TypeError(f"{name} has no rows: {error}") from error
        if given != n_samples:
            raise ValueError(
                f"Found input variables with inconsistent numbers of samples: {name} has "
                f"{given} rows where {n_samples} were expected."
            )


def check_sample_weight(
    sample_weight: Any, n_samples: int, *, allow_zeros: bool = False
) -> np.ndarray | None:
    """Return non-negative weights of shape (n,), or None if there are none.

    Raises
    ------
    ValueError
        If a weight is negative or missing, if the length differs, or, but for `allow_zeros`, if
        all weights are 0.
    """
    if sample_weight is None:
        return None
    if isinstance(sample_weight, numbers.Real):
        sample_weight = np.full(n_samples, float(sample_weight))
    array = _as_array(sample_weight, "sample_weight")
    if array.ndim != 1:
        raise ValueError(f"sample_weight: Sample weights must be 1D, got shape {array.shape}.")
    weight = check_numbers(array, "sample_weight", n_columns=1, sets_scale=True)
    check_same_length(n_samples, sample_weight=weight)
    if (weight < 0).any():
        raise ValueError(
            f"Negative values in data passed to `sample_weight`: {int((weight < 0).sum())} of "
            f"{n_samples}; weights must be at least 0."
        )
    if not (allow_zeros or (weight > 0).any()):
        raise ValueError("sample_weight is zero in every row; at least one row must count.")
    return weight


def check_numbers_or_inf(values: Any, name: str = "threshold") -> np.ndarray:
    """Return a threshold or edges, shape (k,), as float64; unlike data they may hold inf."""
    array = np.asarray(values)
    if array.dtype.kind not in "fiu" or isinstance(values, np.ma.MaskedArray):
        return check_numbers(values, name, n_columns=1)
    array = array.astype(np.float64)
    finite = check_numbers(np.where(np.isinf(array), 0.0, array), name, n_columns=1)
    return np.where(np.isinf(array.reshape(-1)), array.reshape(-1), finite)
