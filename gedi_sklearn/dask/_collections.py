"""Rows of several Dask collections, block by block."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import dask.array as da


def row_blocks_of(**collections: Any) -> list[dict[str, Any]]:
    """Return blocks of the same rows of several collections, each as a delayed object.

    Parameters
    ----------
    **collections : Dask array, series or frame, or None
        By the names of the arguments; None stays None.

    Returns
    -------
    list of dict
        For every block the delayed rows of each collection.

    Raises
    ------
    TypeError
        If one is no Dask collection.
    ValueError
        If collections have unlike numbers of rows or partitions.
    """
    given = {name: value for name, value in collections.items() if value is not None}
    for name, value in given.items():
        if not hasattr(value, "to_delayed"):
            raise TypeError(
                f"{name} must be a Dask array, series or frame, got {type(value).__name__}. Rows "
                "in memory are measured by gedi_sklearn.metrics."
            )
    blocks = {name: _delayed(value, _row_chunks(given)) for name, value in given.items()}
    sizes = {name: len(own) for name, own in blocks.items()}
    if len(set(sizes.values())) > 1:
        raise ValueError(
            f"the collections have unlike partitions: {sizes}. Repartition them alike."
        )
    n_blocks = next(iter(sizes.values()))
    return [
        {name: blocks[name][j] if name in blocks else None for name in collections}
        for j in range(n_blocks)
    ]


def _row_chunks(given: dict[str, Any]) -> tuple[int, ...] | None:
    """Return the numbers of rows that all arrays are cut into; None where they are not known."""
    arrays = {name: value for name, value in given.items() if isinstance(value, da.Array)}
    for name, value in arrays.items():
        first, expected = next(iter(arrays.items()))
        known = not any(map(_is_unknown, (value.shape[0], expected.shape[0])))
        if known and value.shape[0] != expected.shape[0]:
            raise ValueError(
                f"{name} has {value.shape[0]} rows where {first} has {expected.shape[0]}."
            )
    if len(arrays) < len(given) or any(_is_unknown(v.shape[0]) for v in arrays.values()):
        return None  # partitions of frames stay as they are
    return next(iter(arrays.values())).chunks[0]


def _is_unknown(size: Any) -> bool:
    return size != size


def _delayed(collection: Any, row_chunks: tuple[int, ...] | None) -> list[Any]:
    if isinstance(collection, da.Array):
        if row_chunks is not None:
            collection = collection.rechunk({0: row_chunks})
        if collection.ndim == 2:
            collection = collection.rechunk({1: -1})
        return list(collection.to_delayed().ravel())
    return list(collection.to_delayed())


def tree(items: list[Any], width: int) -> Iterator[list[Any]]:
    """Yield runs of at most `width` items."""
    for start in range(0, len(items), width):
        yield items[start : start + width]
