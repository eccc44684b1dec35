"""What a constraint has come to, in words: the answers, the table, the warnings."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from html import escape

import numpy as np

from .exceptions import (
    ConstraintNotMetWarning,
    EmptyBoundWarning,
    NoisyReferenceWarning,
    UnseenDependenceWarning,
    warn_caller,
)

__all__ = ["CHANCE", "N_KNOTS", "InWords", "Output", "Ratio", "Remainder", "Verdict"]

# With fewer rows there is no advice: in a small sample a reference that is more than chance mostly
# does not look it.
_LEAST_FOR_ADVICE = 500
# Level of the F tests, and by how much the share that is left may exceed the one that was asked.
CHANCE, _MARGIN = 0.01, 0.10
# Knots of the spline that looks at the whole shape.
N_KNOTS = 5
# Up to this multiple of the bound an upper limit is worth saying.
_ABOUT = 1.5
# Smaller p-values are rounding errors.
_LEAST_P = 1e-15


@dataclass(frozen=True)
class Ratio:
    """A bounded indicator over its bound, of the constraint that comes nearest to it.

    Attributes
    ----------
    value : float
        1 is the bound. In units of y where the bound is 0.
    low, high : float
        A 90 % interval of what it is on all rows like these, from two 95 % limits.
    bound : float
        1.0, or 0.0 where the bound is 0.
    """

    value: float
    low: float
    high: float
    bound: float = 1.0

    @property
    def answer(self) -> str:
        """Whether rows like these keep the bound: "no", "yes", "about: …", "cannot be told"."""
        if self.low > self.bound:
            return "no"
        if self.high <= self.bound:
            return "yes"
        if self.high <= _ABOUT * self.bound:
            return f"about: at most {np.ceil(100 * self.high) / 100:.3g} of the bound"
        return "cannot be told"

    @property
    def is_kept(self) -> bool:
        """Whether these rows themselves keep the bound."""
        return self.value <= self.bound * (1 + 1e-9)

    def in_words(self, *, of_these: bool = False) -> str:
        """Return the answer, for rows like these or for these rows themselves, with its numbers."""
        answer = "yes" if of_these and self.is_kept else self.answer
        unit = "" if "bound" in answer else " of the bound" if self.bound else " (the bound is 0)"
        interval = f"90 % interval {self.low:.3g} to {self.high:.3g}"
        return f"{answer}, at {self.value:.3g}{unit} ({interval})"

    def __str__(self) -> str:
        return self.in_words()


@dataclass(frozen=True)
class Remainder:
    """What is left of the deviation of y that an attribute explains, by a spline.

    Attributes
    ----------
    name : str
        The attribute.
    share : float
        S of the predictions over S of y.
    low : float
        Its lower 95 % confidence limit.
    asked : float
        The share that the constraint asks for.
    """

    name: str
    share: float
    low: float
    asked: float

    def __str__(self) -> str:
        return (
            f"{self.share:.0%} of the deviation of y that {self.name} explains (asked: "
            f"{self.asked:.0%})"
        )


@dataclass(frozen=True)
class Output:
    """How much of the dependence on the attribute one output of a model keeps.

    Attributes
    ----------
    name : str
        "labels", "predictions", "probabilities", "decisions", "mean score", or "top decile": the
        share of rows above the ninth decile of the score.
    value : float
        Its indicator over that of `of`, of the constraint or class with the most.
    of : str
        "y", or "the plain model"; "" where neither has such an output: `value` is then the
        deviation of the share of rows that the attribute explains.
    """

    name: str
    value: float
    of: str

    def __str__(self) -> str:
        if not self.of:
            return f"{self.name} {100 * self.value:.2g} points"
        return f"{self.name} {self.value:.0%} of {self.of}'s"


class InWords(ABC):
    """What ``str()`` and a notebook show as a table of two columns."""

    @abstractmethod
    def _lines(self) -> Iterator[tuple[str, str]]:
        """Yield what each line is about, and what was found."""

    def __str__(self) -> str:
        lines = list(self._lines())
        width = max(len(what) for what, _ in lines) + 1
        return "\n".join(f"{what + ':':<{width}} {found}" for what, found in lines)

    def _repr_html_(self) -> str:
        rows = (
            f"<tr><th>{escape(what)}</th><td>{escape(found)}</td></tr>"
            for what, found in self._lines()
        )
        return f"<table>{''.join(rows)}</table>"


@dataclass(frozen=True)
class Verdict(InWords):
    """Whether a constraint is met, on training and new rows; ``str()`` is a small table.

    Attributes
    ----------
    training : Ratio or None
        Whether predictions for the rows of the fit meet the constraint; None where not measured.
    new_rows : Ratio or None
        The same for predictions of rows that their model and correction have not seen.
    remainder : Remainder or None
        What is left, of the attribute with the most; None where the attribute does not explain y,
        is categorical, or nothing is bounded.
    reference_p_value : float or None
        F test of y on the kernel that a relative threshold refers to; None without one. The
        smallest of several constraints or classes.
    n_rows : int
        Rows of positive weight that it rests on.
    predicted : float or None
        What `predict` returns for the training rows, over the bound, where another model is judged:
        without the attribute predictions are corrected by a learner that was fitted to these rows.
    empty : str
        That so few rows have a label that no arrangement of them could exceed the bound; "" where
        some could.
    outputs : tuple of Output
        What every output keeps, bounded or not; none where the constraint is on some of the rows,
        or on residuals.
    reference_of : str
        What a relative threshold is a share of.
    bounded, attribute : str
        Which output is judged, such as "labels", and by which attribute.

    Examples
    --------
    >>> import numpy as np
    >>> from gedi_sklearn import CoarseConstraint, ProjectedRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(1000, 2))
    >>> y = X[:, 0] + X[:, 1] + rng.normal(size=1000)
    >>> model = ProjectedRegressor(None, CoarseConstraint(0.5), sensitive_columns=0).fit(X, y)
    >>> model.verdict_.new_rows.answer
    'about: at most 1.12 of the bound'
    """

    training: Ratio | None
    new_rows: Ratio | None
    remainder: Remainder | None
    reference_p_value: float | None
    n_rows: int
    predicted: float | None = None
    empty: str = ""
    outputs: tuple[Output, ...] = ()
    reference_of: str = "y"
    bounded: str = "predictions"
    attribute: str = "the attribute"

    @property
    def score(self) -> float | None:
        """The share that the score of classes keeps: probabilities, else decisions."""
        scores = ("probabilities", "decisions")
        return next((own.value for own in self.outputs if own.name in scores), None)

    def _lines(self) -> Iterator[tuple[str, str]]:
        nothing = f"says nothing: {self.empty}" if self.empty else "not measured"
        training = new_rows = nothing
        if self.training is not None and not self.empty:
            training = self.training.in_words(of_these=self.predicted is None)
        if self.new_rows is not None and not self.empty:
            new_rows = str(self.new_rows)
        yield "bounded", f"{self.bounded}, by {self.attribute}"
        yield "training rows", training
        if self.predicted is not None:
            yield "predict", f"at {self.predicted:.3g} of the bound on the training rows"
        yield "new rows", new_rows
        shape = f", by a spline of {N_KNOTS} knots"
        yield "whole shape", f"{self.remainder}{shape}" if self.remainder else "not measured"
        if self.outputs:
            yield "dependence", "; ".join(map(str, self.outputs))
        p = self.reference_p_value
        if p is None:
            yield "reference", "none: the threshold is absolute"
        else:
            found = "cannot be told from chance" if p > CHANCE else "more than chance"
            value = f"= {p:.2g}" if p > _LEAST_P else f"< {_LEAST_P:g}"
            yield "reference", f"that of {self.reference_of}: {found} (p {value})"

    def warn(self) -> None:
        """Warn of new rows beyond the bound, of what the kernel misses, and of chance.

        Of the last two from 500 rows on.
        """
        if self.empty:
            warn_caller(EmptyBoundWarning.from_labels(self.empty, self.score))
        new = self.new_rows
        if new is not None and new.answer == "no":
            warn_caller(ConstraintNotMetWarning.from_new_rows(new.value, new.low, new.bound))
        if self.n_rows >= _LEAST_FOR_ADVICE:
            for one in self.advice():
                warn_caller(one)

    def advice(self) -> Iterator[Warning]:
        """Yield warnings of what the kernel misses, and of chance, however few the rows."""
        left = self.remainder
        if left is not None and left.low > left.asked + _MARGIN:
            yield UnseenDependenceWarning.from_share(left.name, left.share, left.low, left.asked)
        p = self.reference_p_value
        if p is not None and p > CHANCE:
            yield NoisyReferenceWarning.from_p_value(p)
