"""From attributes to the standardised columns of a kernel, and the way back to its own units."""

from __future__ import annotations

from copy import copy
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp

from .._validation import check_levels, check_numbers, is_text, warn_many_groups
from ..exceptions import UnseenLevelError
from ._moments import expansion, fill_monomials, fill_powers, monomial_factors, weighted_moments


class AttributeEncoder:
    """Turn attributes, some of them categorical, into columns of numbers.

    A categorical attribute of g levels becomes g − 1 indicators; its first level in sorted order
    is the reference, from which the others' coefficients are counted. Numbers stay as they are.

    Parameters
    ----------
    values : ndarray of shape (n, m)
        The attributes; a column counts as categorical where it holds text.
    names : list of str, default=None
        Their names.
    parameter : str, default="sensitive_features"
        Where they were given, for errors.

    Attributes
    ----------
    levels : list of (list of str or None)
        Levels of every attribute but the reference; None for a numeric one.
    names : list of str
        One name per encoded column, e.g. "age", "race=Black".
    attribute : ndarray of int
        The attribute that each encoded column comes from.
    is_indicator : ndarray of bool
        Whether an encoded column is the indicator of a level.
    """

    def __init__(
        self,
        values: np.ndarray,
        names: list[str] | None = None,
        parameter: str = "sensitive_features",
    ) -> None:
        self.parameter = parameter
        given = [f"x{j}" for j in range(values.shape[1])] if names is None else names
        self.levels: list[list[str] | None] = []
        self.references: list[str | None] = []
        self.names: list[str] = []
        attribute: list[int] = []
        indicator: list[bool] = []
        for j, (name, column) in enumerate(zip(given, values.T, strict=True)):
            is_level = is_text(column)
            levels = sorted(set(map(str, column))) if is_level else []
            self.levels.append(levels[1:] if is_level else None)
            self.references.append(levels[0] if is_level else None)
            added = [f"{name}={level}" for level in levels[1:]] if is_level else [name]
            self.names += added
            attribute += [j] * len(added)
            indicator += [is_level] * len(added)
        self.attribute = np.asarray(attribute, dtype=int)
        self.is_indicator = np.asarray(indicator, dtype=bool)

    def transform(self, values: np.ndarray) -> np.ndarray:
        """Return the encoded columns, shape (n, m'); a level that was not seen is an error."""
        columns = []
        for column, levels, reference in zip(values.T, self.levels, self.references, strict=True):
            if levels is None:
                columns.append(check_numbers(column, self.parameter, n_columns=1))
                continue
            numbers = self._numbers(column, np.asarray([reference, *levels]))
            columns.append(LevelIndicators(1 + len(levels))(numbers))
        return np.column_stack(columns) if columns else np.zeros((len(values), 0))

    def _numbers(self, column: np.ndarray, known: np.ndarray) -> np.ndarray:
        """Return the number of each row's level among known ones, which are sorted."""
        labels = np.asarray([str(label) for label in column])
        numbers = np.searchsorted(known, labels).clip(max=len(known) - 1)
        unknown = sorted(set(labels[known[numbers] != labels].tolist()))
        if unknown:
            held = f"{self.parameter} holds levels"
            raise UnseenLevelError.from_levels(held, unknown, known.tolist())
        return numbers

    def describe(self, point: np.ndarray) -> str:
        """Return encoded attributes in words."""
        words, given = [], iter(point.tolist())
        for levels, reference in zip(self.levels, self.references, strict=True):
            if levels is None:
                words.append(f"{next(given):.5g}")
            else:
                is_level = [next(given) == 1 for _ in levels]
                words.append(levels[is_level.index(True)] if any(is_level) else str(reference))
        return f"{self.parameter} = {' & '.join(words)}"


class LevelEncoder(AttributeEncoder):
    """The same of one categorical attribute, whose levels are numbered: no row is as long as they.

    Attributes
    ----------
    known : ndarray of str, shape (g,)
        The levels, the reference first.
    """

    @cached_property
    def known(self) -> np.ndarray:
        return np.asarray([*self.references, *(self.levels[0] or ())])

    def of_levels(self, present: np.ndarray) -> LevelEncoder:
        """Return the encoder of some of the levels, given by their numbers."""
        name = self.names[0][: -len(self.known[1]) - 1]
        return LevelEncoder(self.known[present, None], [name], self.parameter)

    def transform(self, values: np.ndarray) -> np.ndarray:
        """Return the number of each row's level, shape (n, 1); one not seen is an error."""
        return self._numbers(values[:, 0], self.known)[:, None].astype(np.float64)

    def describe(self, point: np.ndarray) -> str:
        return f"{self.parameter} = {self.known[int(point[0])]}"


class LevelIndicators:
    """From levels numbered from 0 to the indicators of those but the first, shape (n, g − 1).

    A class, since skops loads a `partial` only where it is told to trust it.
    """

    def __init__(self, n_levels: int) -> None:
        self.n_levels = n_levels

    def __call__(self, numbers: np.ndarray) -> np.ndarray:
        return (numbers[:, None] == np.arange(1, self.n_levels)).astype(np.float64)


class GroupEncoder:
    """Number the groups of rows that agree in all attributes, in sorted order of their labels.

    Parameters
    ----------
    values : ndarray of shape (n, m)
        The attributes, of any type.

    Attributes
    ----------
    groups : list of str
        One label per group: the attributes' values, joined by " & ".
    """

    def __init__(self, values: np.ndarray) -> None:
        # Also by value, since two groups may have the same joined label.
        self._keys = sorted(set(_group_keys(values)), key=lambda key: (_label(key), key))
        self.groups: list[str] = [_label(key) for key in self._keys]

    def transform(self, values: np.ndarray) -> np.ndarray:
        """Return the number of each row's group, shape (n, 1); an unknown group is an error."""
        keys = _group_keys(values)
        unknown = sorted(_label(key) for key in set(keys) - set(self._keys))
        if unknown:
            raise UnseenLevelError.from_levels(
                "sensitive_features holds groups", unknown, self.groups
            )
        number = {key: float(position) for position, key in enumerate(self._keys)}
        return np.fromiter(map(number.__getitem__, keys), np.float64, len(keys))[:, None]

    def describe(self, point: np.ndarray) -> str:
        """Return an encoded group in words."""
        return f"sensitive_features = {self.groups[int(point[0])]}"


def _group_keys(values: np.ndarray) -> list[tuple[str, ...]]:
    """Return one key per row; equal numbers of any type have equal keys, and −0 is 0."""
    columns = []
    for column in values.T:
        if is_text(column):
            columns.append([str(value) for value in column.tolist()])
        else:
            known, position = np.unique(column.astype(np.float64) + 0.0, return_inverse=True)
            columns.append(np.array([repr(value) for value in known.tolist()])[position].tolist())
    return list(zip(*columns, strict=True))


def _label(key: tuple[str, ...]) -> str:
    return " & ".join(key)


def warn_many_levels(values: np.ndarray) -> None:
    """Check categorical attributes, and warn if most of their levels hold a single row."""
    check_levels(values, "sensitive_features (rows of positive weight)")
    columns = [column for column in values.T if is_text(column)]
    if columns:
        n_levels = 1 + sum(len(set(map(str, column))) - 1 for column in columns)
        warn_many_groups(n_levels, len(values))


class Basis:
    """The standardised columns of a kernel and the change of basis to its own columns.

    Attributes
    ----------
    to_raw : ndarray of shape (k, k)
        T, upper triangular.
    """

    to_raw: np.ndarray
    # Whether the columns are the powers of one attribute, and whether they are standardised by some
    # rows, with `standardize_on` and `move`.
    are_powers = can_move = False

    @classmethod
    def fitted(
        cls, kernel: Any, values: np.ndarray, weight: np.ndarray | None
    ) -> tuple[Basis, np.ndarray | None]:
        """Return the columns of a kernel, standardised by given rows, and there, if known."""
        raise NotImplementedError

    @property
    def from_raw(self) -> np.ndarray:
        """The inverse of T; indicators do not ask for it."""
        raise NotImplementedError

    @property
    def condition(self) -> float:
        """Condition of T."""
        return 1.0 if len(self.to_raw) == 1 else float(np.linalg.cond(self.to_raw))

    def evaluate(self, values: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
        """Return the standardised columns, not centred, for attribute values (n, m).

        `out` of shape (k, n) takes them, if it is given.
        """
        raise NotImplementedError

    def combined(
        self, values: np.ndarray, matrix: np.ndarray, offset: np.ndarray, out: Any = None
    ) -> np.ndarray:
        """Return the standardised columns times a matrix (k, r), plus an offset (r,).

        `out` of shape (r, n) takes them, if it is given.
        """
        columns = np.matmul(matrix.T, self.evaluate(values).T, out=out)
        columns += offset[:, None]
        return columns.T

    def standardize_on(self, values: np.ndarray, weight: np.ndarray | None) -> None:
        """Standardise by given rows."""
        raise NotImplementedError

    def move(self, mean: np.ndarray, scale: np.ndarray) -> np.ndarray:
        """Standardise by another mean and deviation, each of what is standardised at present.

        Returns
        -------
        ndarray of shape (1 + k, 1 + k)
            What the present columns, with a leading 1, are multiplied by to give the new ones.
        """
        raise NotImplementedError

    def restandardized(self, center: np.ndarray, R: np.ndarray) -> Basis:
        """Return the same columns, of which those that users see are standardised on other rows.

        Parameters
        ----------
        center : ndarray of shape (k,)
            Mean of the standardised columns on those rows.
        R : ndarray of shape (k, k)
            Their QR factor there.

        Returns
        -------
        Basis
        """
        return self

    def attribute_units(self) -> tuple[int, np.ndarray, np.ndarray]:
        """Return the degree of powers of raw attributes, and mean and deviation of each.

        No degree, where coefficients do not depend on the attributes' units.
        """
        return 0, np.empty(0), np.empty(0)

    def n_columns_of(self, degree: int) -> int | None:
        """Return how many of the first columns are those of a lower degree, or of the same one."""
        return None

    def of_columns(self, columns: np.ndarray) -> Basis:
        """Return the change of basis of some columns, for coefficients alone."""
        basis = Basis()
        basis.to_raw = self.to_raw[np.ix_(columns, columns)]
        return basis


class PolynomialBasis(Basis):
    """Monomials of the standardised attribute, whatever the kernel's own unit.

    Attributes
    ----------
    mean, scale : ndarray of shape (m,)
        Subtracted from and divided out of the attributes.
    """

    def __init__(self, kernel: Any, values: np.ndarray, weight: np.ndarray | None) -> None:
        self.powers, self.degree = kernel.powers_, kernel.degree
        encoder = getattr(kernel, "encoder", None)
        self.is_indicator = False if encoder is None else encoder.is_indicator
        self.are_powers, self.can_move = kernel.n_features_in_ == 1, not kernel.standardize
        if not self.can_move:
            self.mean, self.scale = kernel.mean_, kernel.scale_
            self.to_raw = self.from_raw = np.eye(len(self.powers))
        else:
            self.standardize_on(values, weight)

    @classmethod
    def fitted(
        cls, kernel: Any, values: np.ndarray, weight: np.ndarray | None
    ) -> tuple[Basis, np.ndarray | None]:
        return cls(kernel, values, weight), None

    def standardize_on(self, values: np.ndarray, weight: np.ndarray | None) -> None:
        self._standardize(*weighted_moments(values, weight))

    def _standardize(self, mean: np.ndarray, scale: np.ndarray) -> None:
        self.mean, self.scale = mean, scale
        self.to_raw = expansion(self.powers, -mean / scale, 1 / scale)

    def move(self, mean: np.ndarray, scale: np.ndarray) -> np.ndarray:
        turn = np.eye(1 + len(self.powers))
        turn[0, 1:] = np.prod((-mean / scale) ** self.powers, axis=1)
        turn[1:, 1:] = expansion(self.powers, -mean / scale, 1 / scale)
        self._standardize(self.mean + mean * self.scale, self.scale * scale)
        return turn

    @cached_property
    def from_raw(self) -> np.ndarray:
        """The inverse of T."""
        return expansion(self.powers, self.mean, self.scale)

    def restandardized(self, center: np.ndarray, R: np.ndarray) -> PolynomialBasis:
        if self.can_move:
            return self
        m = len(self.mean)
        shift = np.where(self.is_indicator, 0.0, center[:m])
        scale = np.where(self.is_indicator, 1.0, np.linalg.norm(R[:, :m], axis=0))
        other = copy(self)
        other.to_raw = expansion(self.powers, shift, scale)
        other.from_raw = expansion(self.powers, -shift / scale, 1 / scale)
        return other

    def attribute_units(self) -> tuple[int, np.ndarray, np.ndarray]:
        numeric = ~np.broadcast_to(self.is_indicator, self.mean.shape)
        # Levels have the deviation of a group of half the rows, and no mean that matters.
        mean = np.where(numeric, self.mean, 0.0)
        return (self.degree if self.can_move else 0), mean, np.where(numeric, self.scale, 0.5)

    def n_columns_of(self, degree: int) -> int | None:
        is_lower = self.powers.sum(axis=1) <= degree
        return int(is_lower.sum()) if degree <= self.degree else None

    def evaluate(self, values: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
        columns = np.empty((len(self.powers), len(values)), values.dtype) if out is None else out
        standardized = columns[: values.shape[1]]
        np.subtract(values.T, self.mean[:, None], out=standardized)
        if values.dtype == np.float64:
            standardized *= 1 / self.scale[:, None]  # several times as fast as a division
        else:
            standardized /= self.scale[:, None]
        if values.shape[1] == 1:
            return fill_powers(columns)
        return fill_monomials(columns, monomial_factors(self.powers))


class ColumnBasis(Basis):
    """The kernel's own columns, each standardised: for kernels of unknown structure.

    Attributes
    ----------
    mean, scale : ndarray of shape (k,)
        Subtracted from and divided out of the columns.
    """

    can_move = True

    def __init__(self, kernel: Any, mean: np.ndarray, scale: np.ndarray) -> None:
        self.kernel = kernel
        self._standardize(mean, scale)

    @classmethod
    def fitted(
        cls, kernel: Any, values: np.ndarray, weight: np.ndarray | None
    ) -> tuple[Basis, np.ndarray | None]:
        columns = evaluate_columns(kernel, values)
        basis = cls(kernel, *weighted_moments(columns, weight))
        return basis, (columns - basis.mean) / basis.scale

    def standardize_on(self, values: np.ndarray, weight: np.ndarray | None) -> None:
        self._standardize(*weighted_moments(evaluate_columns(self.kernel, values), weight))

    def _standardize(self, mean: np.ndarray, scale: np.ndarray) -> None:
        self.mean, self.scale = mean, scale
        for name in ("to_raw", "from_raw"):
            vars(self).pop(name, None)

    @cached_property
    def to_raw(self) -> np.ndarray:  # type: ignore[override]
        """T, diagonal."""
        return np.diag(1 / self.scale)

    @cached_property
    def from_raw(self) -> np.ndarray:
        """The inverse of T."""
        return np.diag(self.scale)

    @property
    def condition(self) -> float:
        return float(self.scale.max() / self.scale.min())

    def move(self, mean: np.ndarray, scale: np.ndarray) -> np.ndarray:
        turn = np.diag(np.r_[1.0, 1 / scale])
        turn[0, 1:] = -mean / scale
        self._standardize(self.mean + mean * self.scale, self.scale * scale)
        return turn

    def evaluate(self, values: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
        columns = np.subtract(evaluate_columns(self.kernel, values).T, self.mean[:, None], out=out)
        columns /= self.scale[:, None]
        return columns.T


class SplineBasis(ColumnBasis):
    """The same of splines, which linear combinations of them cost no more than."""

    def evaluate(self, values: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
        return self.combined(values, np.eye(len(self.mean)), np.zeros(len(self.mean)), out)

    def combined(
        self, values: np.ndarray, matrix: np.ndarray, offset: np.ndarray, out: Any = None
    ) -> np.ndarray:
        own = matrix / self.scale[:, None]
        return self.kernel.combined(values, own, offset - self.mean @ own, out)


def evaluate_columns(kernel: Any, values: np.ndarray) -> np.ndarray:
    """Return the columns of a transformer, a callable, or (None) a matrix given as the values."""
    columns: Any
    if kernel is None:
        columns = values
    elif hasattr(kernel, "transform_checked"):  # of this library: finite where the values are
        return np.asarray(kernel.transform_checked(values))
    elif hasattr(kernel, "transform"):
        columns = kernel.transform(values)
    else:
        try:
            columns = kernel(values[:, 0] if values.shape[1] == 1 else values)
        except TypeError as error:  # such as numpy's of text
            raise TypeError(f"kernel={kernel!r} on sensitive_features: {error}") from error
    columns = columns.toarray() if sp.issparse(columns) else columns
    columns = check_numbers(columns, "the output of kernel")
    if columns.shape[0] != values.shape[0]:
        raise ValueError(
            f"kernel returned {columns.shape[0]} rows for {values.shape[0]} rows of "
            "sensitive_features."
        )
    return columns
