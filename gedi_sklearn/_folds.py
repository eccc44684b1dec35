"""The folds that the parameter `cv` stands for, and a description of what is wrong with them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
from sklearn.model_selection import check_cv
from sklearn.utils.metadata_routing import get_routing_for_object

__all__ = ["GROUPS_HINT", "Folds", "make_folds"]

GROUPS_HINT = (
    "Pass the splits themselves, cv=list(splitter.split(X, y, groups)), or pass the groups to "
    "fit(X, y, groups=groups) with sklearn.set_config(enable_metadata_routing=True)."
)


class Folds(NamedTuple):
    """Splits of the rows, and the number of test parts that each row is in.

    Attributes
    ----------
    splits : list of (ndarray, ndarray)
        Positions of the training and of the test rows.
    n_tests : ndarray of shape (n,)
        Number of test parts per row.
    origin : str
        Where the splits come from, for messages: "the 5 splits of TimeSeriesSplit".
    """

    splits: list[tuple[np.ndarray, np.ndarray]]
    n_tests: np.ndarray
    origin: str

    def among(self, counted: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
        """Return the splits of the rows of a mask, as positions among these.

        Raises
        ------
        ValueError
            If a part of a split has none of them.
        """
        position = np.cumsum(counted) - 1
        splits = [tuple(position[part[counted[part]]] for part in split) for split in self.splits]
        _require_rows(splits, self.origin, " of positive weight")
        return splits

    def uneven_rows(self) -> str:
        """Return, in words, how many rows are in no test part or in several."""
        n_none, n_several = int((self.n_tests == 0).sum()), int((self.n_tests > 1).sum())
        found = {"in no test part": n_none, "in several": n_several}
        parts = [f"{number} {where}" for where, number in found.items() if number]
        return f"of {len(self.n_tests)} rows, {' and '.join(parts)}"


def make_folds(
    cv: Any,
    X: Any,
    y: np.ndarray,
    *,
    is_classifier: bool,
    split_params: dict[str, Any],
    groups_hint: str,
) -> Folds:
    """Return the folds that `cv` makes of the rows.

    Parameters
    ----------
    cv : int, splitter or iterable of splits
        What :func:`sklearn.model_selection.check_cv` takes.
    X : array-like of shape (n, p)
        The rows.
    y : ndarray of shape (n,)
        Targets, used for stratification.
    is_classifier : bool
        Whether an integer means stratified folds.
    split_params : dict
        Keywords of the splitter's `split`.
    groups_hint : str
        How the user passes the groups that a splitter needs.

    Returns
    -------
    Folds

    Raises
    ------
    ValueError
        If `cv` holds no splits, or anything but positions of rows, or if it needs groups and
        gets none.
    """
    is_given = isinstance(cv, Iterable) and not hasattr(cv, "split")
    splitter = check_cv(cv, y, classifier=is_classifier)
    # An error only where splitting fails without them: a splitter may find its groups itself.
    lacks_groups = split_params.get("groups") is None and _asks_for_groups(splitter)
    no_groups = ValueError(
        f"cv: {type(splitter).__name__} splits by groups, but got none. {groups_hint}"
    )
    try:
        splits = list(splitter.split(X, y, **split_params))
    except (TypeError, ValueError) as error:
        if is_given:
            raise ValueError(
                f"cv must be an integer, a splitter, or pairs (train, test) of positions of rows; "
                f"got a {type(cv).__name__} of something else ({error})."
            ) from error
        if lacks_groups:
            raise no_groups from error
        raise ValueError(f"cv: {error}") from error
    whose = "given" if is_given else f"of {type(splitter).__name__}"
    origin = f"the {len(splits)} split(s) {whose}"
    n_tests = _count_tests(splits, len(y), origin)
    splits = [tuple(np.asarray(part, dtype=np.intp) for part in split) for split in splits]
    _require_rows(splits, origin)
    if lacks_groups and not n_tests.all():  # scikit-learn 1.6 takes None as a single group
        raise no_groups
    return Folds(splits, n_tests, origin)


def _require_rows(splits: list[Any], origin: str, kind: str = "") -> None:
    """Raise if a part of a split is empty."""
    for number, split in enumerate(splits):
        for name, part in zip(("training", "test"), split, strict=True):
            if not len(part):
                raise ValueError(f"cv: of {origin}, split {number} has no {name} rows{kind}.")


def _asks_for_groups(splitter: Any) -> bool:
    try:
        return bool(get_routing_for_object(splitter).split.requests.get("groups"))
    except ValueError:  # a subclass whose split(*args) hides its parameters from scikit-learn
        return False


def _count_tests(splits: list[Any], n_rows: int, origin: str) -> np.ndarray:
    """Return the number of test parts per row, after checking that parts are row positions."""
    if not splits:
        raise ValueError("cv holds no splits. Use an integer, or a splitter.")
    for part in (part for split in splits for part in split):
        positions = np.asarray(part)
        if len(positions) and positions.dtype.kind not in "iu":
            raise ValueError(
                f"cv: {origin} must hold positions of rows, integers; got {positions.dtype}. Turn "
                "a mask into positions with np.flatnonzero(mask)."
            )
        if len(positions) and not 0 <= positions.min() <= positions.max() < n_rows:
            raise ValueError(
                f"cv: {origin} must hold positions from 0 to {n_rows - 1}, one for each row; got "
                f"{positions.min()} to {positions.max()}."
            )
    tested = [np.asarray(test, dtype=np.intp) for _, test in splits]
    return np.bincount(np.concatenate(tested), minlength=n_rows)
