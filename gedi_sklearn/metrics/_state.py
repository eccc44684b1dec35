"""The state of an accumulator as JSON has it, checked part by part before anything is summed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np

from .._validation import Level, check_attribute
from ..kernels import Sums, kernel_from_dict

_PARAMETERS = ("kernel", "pos_label", "reference", "names", "columns", "n_rows", "origin")


class AccumulatorState:
    """What :meth:`GediAccumulator.to_dict` has written.

    Parameters
    ----------
    state : dict
        The state.

    Attributes
    ----------
    kernel, reference, names, columns, origin
        Its parts, checked.

    Raises
    ------
    ValueError
        If a part is missing, or cannot be what was written.
    """

    def __init__(self, state: Any) -> None:
        if not isinstance(state, Mapping):
            raise ValueError(f"state must be what to_dict returned, got a {type(state).__name__}.")
        self._state = state
        self._refuse_missing(_PARAMETERS)
        with self.named("kernel"):
            self.kernel = kernel_from_dict(state["kernel"])
        with self.named("reference"):
            self.reference = _reference(state["reference"])
        m = self.reference.shape[1]
        self.names, self.columns = self._texts("names", m), self._texts("columns", m)
        self.origin = self._numbers("origin", None)
        if self.origin.shape not in ((1,), (2,)):
            raise _wrong("origin", f"one number, or two, got shape {self.origin.shape}")

    def fill(self, sums: Sums) -> None:
        """Put what was summed up into sums of no row; refuse what no rows have.

        Parameters
        ----------
        sums : Sums
            With the basis that :attr:`reference` gives.
        """
        self._refuse_missing(tuple(sums.state()))
        if unknown := sorted(set(self._state) - set(_PARAMETERS) - set(sums.state())):
            raise ValueError(f"state has parts that to_dict does not write: {unknown}.")
        for name, own in sums.state().items():
            read = self._numbers(name, own.shape)
            if name in sums.fixed and not np.allclose(read, own, rtol=1e-9, atol=1e-12):
                raise _wrong(
                    "reference", "the values that the sums were taken with; it has changed"
                )
            if name not in sums.fixed:
                setattr(sums, name, read)
        sums.n_rows = self._integer("n_rows")
        if fault := sums.fault():
            raise ValueError(f"state cannot come from any rows: it has {fault}.")

    @contextmanager
    def named(self, part: str) -> Iterator[None]:
        """Name the part of the state in errors about what it holds."""
        try:
            yield
        except (ValueError, TypeError, KeyError, AttributeError, IndexError) as error:
            raise _wrong(part, f"what to_dict wrote: {error}") from error

    def _refuse_missing(self, names: tuple[str, ...]) -> None:
        if missing := [name for name in names if name not in self._state]:
            raise ValueError(f"state has no {', '.join(missing)}: it is not what to_dict returned.")

    def _integer(self, name: str) -> int:
        value = self._state[name]
        if type(value) is not int or value < 1:
            raise _wrong(name, f"an integer of at least 1, got {value!r}")
        return int(value)

    def _texts(self, name: str, size: int) -> list[str] | None:
        value = self._state[name]
        if value is None:
            return None
        if not isinstance(value, list) or not all(isinstance(own, str) for own in value):
            raise _wrong(name, f"a list of text, or None, got {value!r}")
        if len(value) != size:
            raise _wrong(name, f"{size} name(s), one for each attribute, got {len(value)}")
        return value

    def _numbers(self, name: str, shape: tuple[int, ...] | None) -> np.ndarray:
        """Return a part as finite numbers of a shape; None takes any."""
        try:
            read = np.array(self._state[name], dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise _wrong(name, f"numbers in lists of equal length: {error}") from error
        if shape is not None and read.shape != shape:
            raise _wrong(name, f"numbers of shape {shape}, got {read.shape}")
        if not np.isfinite(read).all():
            raise _wrong(name, "finite numbers, got NaN or infinity")
        return read


def _reference(given: Any) -> np.ndarray:
    """Return the reference; text is a level by declaration, whether or not it is like a number."""
    reference = np.asarray(given, dtype=object)
    if reference.ndim != 2 or not reference.size:
        raise ValueError(f"rows of equal length are needed, got shape {reference.shape}")
    for column in reference.T:
        column[:] = [Level(v) if isinstance(v, str) else v for v in column]
    return check_attribute(reference, None, kind="mixed", name="reference")


def _wrong(name: str, expected: str) -> ValueError:
    return ValueError(f"state[{name!r}] must hold {expected}.")
