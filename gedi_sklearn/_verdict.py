r"""The outcome of a constraint: whether it is met, what it does not see, what its share is of.

Four questions are asked of the predictions of a fit, or of projected targets:

- Is the bounded indicator within the bound, on these rows and on rows that the fit has not seen?
- How much of what the attribute explains is left, by a kernel that follows any smooth shape: the
  deviation S of a quantile spline with five knots, predictions over y.
- How much does every output keep, labels, probabilities, the share above the ninth decile: a bound
  on one says little of the others.
- Is the indicator of y that a relative threshold is a share of more than chance: an F test of y on
  its kernel.

The intervals and limits are those of :mod:`gedi_sklearn.metrics`, from robust covariances.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np
from scipy.special import fdtrc

from ._geometry import deviation_block
from ._validation import are_whole
from .constraints import VIOLATION_TOLERANCE, ColumnConstraint, FittedConstraint, FittedCuts
from .exceptions import (
    ConstraintNotMetWarning,
    EmptyBoundWarning,
    NoisyReferenceWarning,
    RankDeficientKernelError,
    UnseenDependenceWarning,
    warn_caller,
)
from .kernels import Design, SplineKernel, fit_resolved, kernel_of_degree, resolve_kernel
from .metrics import cluster_p_value, lower_limits

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
# With fewer rows there is no verdict.
_LEAST_ROWS = 50
# Rows that answer the second question, and the last where that takes more than a product with the
# constraint's Q; of more, so many are drawn. Mostly the share that is left is known to a hundredth
# then, a tenth of what it may exceed the asked one by.
_MOST_ROWS = 20_000
# Confidence of each of two limits, which make an interval of 90 %.
_LIMIT = 0.95


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
    low : float or None
        Its lower 95 % confidence limit; None where the share itself exceeds the one that was asked
        by no more than a tenth, so that nothing depends on it.
    asked : float
        The share that the constraint asks for.
    """

    name: str
    share: float
    low: float | None
    asked: float

    @property
    def is_missed(self) -> bool:
        """Whether the share exceeds the one that was asked by more than a tenth, and chance."""
        return self.low is not None and self.low > self.asked + _MARGIN

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
        What is left, of the attribute with the most, by 20,000 drawn rows of more; None where the
        attribute does not explain y, is categorical, or nothing is bounded.
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
        if left is not None and left.is_missed:
            assert left.low is not None
            yield UnseenDependenceWarning.from_share(left.name, left.share, left.low, left.asked)
        p = self.reference_p_value
        if p is not None and p > CHANCE:
            yield NoisyReferenceWarning.from_p_value(p)


def make_verdict(
    constraint: FittedConstraint,
    y: np.ndarray,
    predictions: np.ndarray,
    *,
    training: np.ndarray | None = None,
    new_rows: np.ndarray | None = None,
    predicted: np.ndarray | None = None,
    scores: np.ndarray | None = None,
    plain: np.ndarray | None = None,
    groups: np.ndarray | None = None,
) -> Verdict | None:
    """Return the verdict on predictions for the rows of a constraint.

    Parameters
    ----------
    constraint : FittedConstraint
        The constraint on the rows of positive weight.
    y : ndarray of shape (n,)
        Original targets, classes as 0…K − 1.
    predictions : ndarray of shape (n,)
        What the remainder is measured of.
    training, new_rows : ndarray of shape (n,), default=None
        Predictions by a model that has seen the rows, and by models that have not.
    predicted : ndarray of shape (n,), default=None
        What `predict` returns for the rows, where `training` is something else.
    scores : ndarray of shape (n,) or (n, K), default=None
        Scores of the second of two classes, or of every class.
    plain : ndarray of the shape of scores, or of predictions, default=None
        Those of the learner without the constraint.
    groups : ndarray of shape (n,), default=None
        Clusters of the rows; None where rows are taken as independent.

    Returns
    -------
    Verdict or None
        None where nothing is bounded, or of fewer than 50 rows.
    """
    listed = [[part for part in own if part.bounds_anything] for own in constraint.listed]
    parts = [part for own in listed for part in own]
    if not parts or len(y) < _LEAST_ROWS:
        return None
    rows: np.ndarray | slice = slice(None)
    if len(y) > _MOST_ROWS:
        drawn = np.random.default_rng(0).choice(len(y), _MOST_ROWS, replace=False, shuffle=False)
        rows = np.sort(drawn)
    targets, columns = constraint.columns(y), constraint.columns(predictions)
    left: list[Remainder] = []
    p_values = []
    for j, own in enumerate(listed):
        if not own:
            continue
        first = own[0]
        if first.given.relative:
            design, used, k = _reference_design(first, rows, groups)
            numbers = [number for part in own for number in part.outputs]
            own_groups = None if groups is None else groups[used]
            for z in (targets[used, number] for number in numbers):
                p_values.append(_p_value(design, z, design.coordinates(z)[:k], own_groups))
        if not first.given.needs_outcomes:  # which kernels see less of is not known of some rows
            names = _names(constraint, j)
            left += _remainders(own, rows, targets, columns, names, groups)
    return Verdict(
        None if training is None else _ratio(parts, constraint.columns(training), groups),
        None if new_rows is None else _ratio(parts, constraint.columns(new_rows), groups),
        max(left, key=lambda one: (one.is_missed, one.share - one.asked), default=None),
        min(p_values, default=None),
        len(y),
        None if predicted is None else _size(parts, constraint.columns(predicted)),
        constraint.emptiness(predictions),
        tuple(_outputs(constraint, parts, targets, predictions, scores, plain)),
        bounded=_bounded(constraint, predictions),
        attribute=" and ".join(n for j in range(len(listed)) for n in _names(constraint, j)),
    )


def verdict_on_cuts(
    constraint: FittedCuts,
    *,
    training: np.ndarray,
    new_rows: np.ndarray | None,
    groups: np.ndarray | None,
    names: list[str] | None,
) -> Verdict | None:
    """Return the verdict on scores whose share above every cut is bounded; see above."""
    if not constraint.bounds_anything or len(training) < _LEAST_ROWS:
        return None
    parts, columns = constraint.parts, constraint.columns
    unseen = None
    if new_rows is not None:
        unseen = _ratio([constraint.unseen], columns(new_rows), groups)
    return Verdict(
        _ratio(parts, columns(training), groups),
        unseen,
        None,
        constraint.reference_p_value(groups),
        len(training),
        outputs=tuple(_outputs_of_cuts(constraint, training)),
        reference_of="the plain model",
        bounded="share of rows above every cut",
        attribute=" and ".join(names or ["the attribute"]),
    )


def _outputs_of_cuts(constraint: FittedCuts, scores: np.ndarray) -> Iterator[Output]:
    """Yield what the mean score and the share above its ninth decile keep of the plain model's."""
    gauge = deviation_block(constraint.design)
    own, plain = scores[:, None], constraint.scores[:, None]
    tops = (_top_decile(columns, constraint.weight) for columns in (own, plain))
    for name, pair in (("mean score", (own, plain)), ("top decile", tops)):
        kept, size = map(gauge.indicator, pair)
        if size > 0:
            yield Output(name, kept / size, "the plain model")


def _ratio(
    parts: Sequence[ColumnConstraint | FittedCuts], columns: np.ndarray, groups: np.ndarray | None
) -> Ratio | None:
    """Return the largest indicator over its bound; None where every bound is infinite.

    Bounds of 0 speak for themselves where they are exceeded, or where there are no others.
    """
    found: dict[float, list[np.ndarray]] = {0.0: [], 1.0: []}
    for part in parts:
        sizes, low, high, limits = part.intervals(columns, _LIMIT, groups)
        sizes = np.where(sizes <= VIOLATION_TOLERANCE * part.allowed.unit, 0.0, sizes)
        numbers = np.array([sizes, np.maximum(low, 0.0), high])
        for bound, kept in ((0.0, limits == 0), (1.0, np.isfinite(limits) & (limits > 0))):
            found[bound] += list((numbers[:, kept] / np.where(bound, limits[kept], 1.0)).T)
    ratios = []
    for bound, own in found.items():
        if own:
            value, low, high = np.max(own, axis=0).tolist()
            ratios.append(Ratio(value, low, high, bound))
    return max(ratios, key=lambda own: (own.low > own.bound, own.bound), default=None)


def _size(parts: list[ColumnConstraint], columns: np.ndarray) -> float | None:
    """Return the largest indicator over its bound, of the bounds that are not 0."""
    found = []
    for part in parts:
        sizes, limits = part.allowed.sizes(part.block.measure(columns)[0]), part.allowed.limits
        kept = np.isfinite(limits) & (limits > 0)
        found += (sizes[kept] / limits[kept]).tolist()
    return max(found, default=None)


def _bounded(constraint: FittedConstraint, predictions: np.ndarray) -> str:
    """Return which output is judged."""
    name = constraint.parts[0].given.on  # that of all
    if name == "predictions" and constraint.n_classes:
        name = "labels" if are_whole(predictions) else "probabilities"
    subsets = [part.given.subset for part in constraint.parts]
    each = [name if own is None else f"{name} in subset {own!r}" for own in subsets]
    return " and ".join(dict.fromkeys(each))


def _outputs(
    constraint: FittedConstraint,
    parts: list[ColumnConstraint],
    targets: np.ndarray,
    predictions: np.ndarray,
    scores: np.ndarray | None,
    plain: np.ndarray | None,
) -> Iterator[Output]:
    """Yield what every output keeps; the targets are columns."""
    if parts[0].given.needs_outcomes:
        return
    is_class = bool(constraint.n_classes) or scores is not None
    labels = predictions
    if is_class and not are_whole(predictions):
        labels = (predictions > 0.5).astype(int)
    name = "labels" if is_class else "predictions"
    yield from _kept(name, parts, constraint.columns(labels), targets, "y")
    if scores is not None:
        name = "probabilities" if scores.min() >= 0 and scores.max() <= 1 else "decisions"
        yield from _kept(name, parts, _as_columns(scores), targets, "y")
    elif is_class:
        return  # labels have no deciles
    score = predictions if scores is None else scores
    top = _top_decile(_as_columns(score), constraint.weight)
    if plain is not None:
        of = _top_decile(_as_columns(plain), constraint.weight)
        yield from _kept("top decile", parts, top, of, "the plain model")
    elif scores is None:
        yield from _kept("top decile", parts, top, _top_decile(targets, constraint.weight), "y")
    else:
        deviations = [deviation_block(part.design, part.outputs).indicator(top) for part in parts]
        yield Output("top decile", max(deviations), "")


def _kept(
    name: str, parts: Sequence[Any], columns: np.ndarray, reference: np.ndarray, of: str
) -> Iterator[Output]:
    """Yield an indicator over another, of the constraint with the most, where there is one."""
    pairs = [(part.gauge.indicator(columns), part.gauge.indicator(reference)) for part in parts]
    shares = [own / size for own, size in pairs if size > 0]
    if shares:
        yield Output(name, max(shares), of)


def _as_columns(values: np.ndarray) -> np.ndarray:
    return values[:, None] if values.ndim == 1 else values


def _top_decile(columns: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Return, of every column, 1 for the rows above the cut that at most a tenth exceed."""
    share = 0.9 * (1 - 1e-12)
    if weight.strides[0]:
        order = np.argsort(columns, axis=0, kind="stable")
        below = (np.cumsum(weight[order], axis=0) < share * weight.sum()).sum(axis=0)
        cuts = np.take_along_axis(columns, order[below, range(len(below))][None], axis=0)
    else:  # equal weights need no sort
        last = int(np.ceil(share * len(columns))) - 1
        cuts = np.partition(columns, last, axis=0)[last].copy()  # of which the rest is let go
    return (columns > cuts).astype(np.float64)


def _design_of(
    kernel: Any, x: np.ndarray, part: ColumnConstraint, rows: np.ndarray | slice
) -> Design:
    """Return a kernel of the attribute on some rows, beside the covariates of a constraint."""
    design = fit_resolved(kernel, x, _weight(part, rows), most_held=_MOST_ROWS)
    covariates = part.design.covariates
    return design if covariates is None else design.beside(covariates.values[rows])


def _weight(part: ColumnConstraint, rows: np.ndarray | slice) -> np.ndarray | None:
    """Return the weights of some rows."""
    return None if part.design.weight is None else part.design.weight[rows]


def _reference_design(
    part: ColumnConstraint, rows: np.ndarray | slice, groups: np.ndarray | None
) -> tuple[Design, np.ndarray | slice, int]:
    """Return a design whose first k columns a relative threshold refers to, its rows, and k."""
    given, own = part.given, part.design
    if part.kernel.encoder is not None or given.kernel is None:
        return own, slice(None), part.kernel.n_columns
    has_all = (groups is None or isinstance(rows, slice)) and not given.needs_outcomes
    k, degree = part.kernel.n_columns, int(given.relative)
    if given.norm == "l1":
        # Orthonormal powers span those of each lower degree.
        has_all &= part.kernel.is_single_polynomial and degree <= k
        k = degree
    if has_all:
        return own, slice(None), k
    kernel = resolve_kernel(given.kernel)
    if given.norm == "l1":
        kernel = kernel_of_degree(kernel, degree)
    design = _design_of(kernel, own.points[rows], part, rows)
    return design, rows, design.fitted.n_columns


def _p_value(design: Design, z: np.ndarray, c: np.ndarray, groups: np.ndarray | None) -> float:
    """Return the p-value of the F test that the first coordinates c of a target are 0."""
    n, k, explained = design.n_rows, len(c), float(c @ c)
    if groups is not None:
        return cluster_p_value(design, z, k, groups)
    rest = design.deviation(design.residual(z)) ** 2 - explained
    free = n - k - 1 - design.n_covariates
    if free <= 0 or rest <= 0:
        return 0.0 if explained > 0 else 1.0
    return float(fdtrc(k, free, explained / k / (rest / free)))


def _remainders(
    parts: list[ColumnConstraint],
    rows: np.ndarray | slice,
    targets: np.ndarray,
    predictions: np.ndarray,
    names: list[str],
    groups: np.ndarray | None,
) -> Iterator[Remainder]:
    """Yield what is left of each numeric attribute that y depends on, in each class.

    The classes have the kernel in common.
    """
    first = parts[0]
    asked = [(part, share) for part in parts if (share := _asked_share(part, targets)) < 1]
    if not asked or first.kernel.encoder is not None:
        return
    groups = None if groups is None else groups[rows]
    for j, x in enumerate(first.design.points[rows].T):
        try:
            design = _design_of(SplineKernel(N_KNOTS), x[:, None], first, rows)
        except RankDeficientKernelError:
            continue
        for part, share in asked:
            y, z = (own[rows, part.outputs[0]] for own in (targets, predictions))
            c = design.with_matrix().coordinates(y)
            size = float(np.linalg.norm(c))
            if _p_value(design, y, c, groups) > CHANCE:
                continue
            found = float(np.linalg.norm(design.coordinates(z))) / size
            low = None
            if found > share + _MARGIN:
                limits = lower_limits(deviation_block(design), z[:, None], groups=groups)
                low = float(limits[0]) / size
            yield Remainder(names[j], found, low, share)


def _names(constraint: FittedConstraint, position: int) -> list[str]:
    """Return what the attributes of a constraint are called, given its position in a list."""
    names, n_attributes = constraint.names, constraint.listed[position][0].kernel.n_attributes
    if names is None and n_attributes == 1 and not constraint.given_as_list:
        return ["the attribute"]
    numbers = [position] if constraint.given_as_list else range(n_attributes)
    return [f"attribute {j}" if names is None else names[j] for j in numbers]


def _asked_share(part: ColumnConstraint, targets: np.ndarray) -> float:
    """Return the share of the dependence of y that a constraint leaves; NaN where it has none."""
    if np.ndim(part.threshold) or part.given.kernel is None:
        return float("nan")
    if part.given.relative:
        return float(part.given.threshold)
    value = part.gauge.indicator(targets)
    return float(part.threshold / value) if value else float("nan")
