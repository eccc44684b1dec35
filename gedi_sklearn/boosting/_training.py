"""The rounds of a fit: a step of the multipliers, then a tree for every booster."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.special import kl_div

from .._geometry import Block
from ..constraints import FittedConstraint
from ._backends import Backend

# Length of the first step and of the last: long ones soon find multipliers that trees hardly
# follow, which see the attribute through other columns; short ones settle.
_FIRST_STEP, _LAST_STEP = 0.3, 0.03
# Share of e that is taken out a round, beside what the multipliers do: κ times the learning rate.
# Labels are not pulled: they come in steps, and rows near the cut would flip to and fro.
_PULL = 0.15
# With early stopping a round may be kept that exceeds no bound by more than this share of it, else
# that of this share of all rounds, the last ones, which exceeds one least: labels come in steps.
_NEARLY_MET, _LAST = 0.1, 0.1


class Ascent:
    r"""The multipliers of a constraint: of all of its kernels and of every column of the targets.

    A squared loss under a constraint on the coordinates g = Q'Wf of the predictions,

    .. math:: \min_f \max_\lambda \tfrac12 \|f - y\|^2 + \lambda^T g - \sup_{u \in C} \lambda^T u,

    is minimised by a fit on y − Qλ. The multipliers take a proximal step of length η in every
    round,

    .. math:: v = \lambda + \eta g, \qquad \lambda \leftarrow v - \eta\, \Pi_C(v / \eta),

    with Π_C the nearest point of the set. λ and g are in the orthonormal basis of the kernel, where
    the length of a step means the same in every direction and in every unit of the attribute.

    Trees follow the multipliers slowly, and the multipliers what trees have come to: alone they
    swing around the end for hundreds of rounds. Real predictions are therefore pulled as well, by
    what is left of the constraint, e = g − Π_C(v / η): the trees are grown on y − Q(λ + κe), the
    gradient of the augmented Lagrangian, and at the end e is 0. It never is of rows held out where
    a coefficient may be nothing but a slack: what is left there is chance, which no tree should
    follow.

    It holds no rows, so that it can be sent to other machines.

    Parameters
    ----------
    constraint : FittedConstraint
        The constraint on the rows.
    n_steps : int
        How many steps will be taken.
    learning_rate : float
        Of the trees.
    is_held_out : bool, default=False
        Whether the steps are taken at predictions of rows held out.

    Attributes
    ----------
    multipliers : ndarray of shape (Σk, C)
        λ.
    shift : ndarray of shape (Σk, C)
        What the targets are moved by, λ + κe.
    """

    def __init__(
        self,
        constraint: FittedConstraint,
        n_steps: int,
        learning_rate: float,
        *,
        is_held_out: bool = False,
    ) -> None:
        if any(len(part.outputs) > 1 for part in constraint.parts):
            raise ValueError(
                "DidiConstraint bounds the sum over all classes, which boosting does for two "
                f"classes only; y has {constraint.n_classes}. Use MovingTargetsClassifier, or "
                "CoarseConstraint, which bounds every class."
            )
        self._lengths = iter(np.linspace(_FIRST_STEP, _LAST_STEP, n_steps))
        # Every block without its rows, and its place among all multipliers.
        self._blocks: list[tuple[tuple[slice, int], Block]] = []
        end = 0
        for parts in constraint.listed:
            rows = slice(end, end := end + parts[0].kernel.n_columns)
            for part in parts:
                self._blocks.append(((rows, part.outputs[0]), part.block.altered(design=None)))
        self.multipliers = np.zeros((end, constraint.n_classes if constraint.n_classes > 2 else 1))
        self._kappa = np.zeros_like(self.multipliers)
        for place, block in self._blocks:
            is_chance = is_held_out and block.allowed.slack_units().any()
            if not (constraint.n_classes or is_chance):
                self._kappa[place] = _PULL / learning_rate

    def step(self, coordinates: np.ndarray) -> None:
        """Take a step at predictions of given coordinates, shape (Σk, C)."""
        length = next(self._lengths)
        v = self.multipliers + length * coordinates
        for place, block in self._blocks:
            v[place] -= length * block.nearest(v[place] / length)[0]
        self.shift = v + self._kappa * (v - self.multipliers) / length
        self.multipliers = v

    def excess(self, coordinates: np.ndarray) -> float:
        """Return by how much a bound is exceeded, in units of it; 0 where all are met."""
        excess = [
            block.allowed.violation(block.v(coordinates[place])) / block.allowed.unit
            for place, block in self._blocks
        ]
        return max(excess, default=0.0)


class Rows(NamedTuple):
    """What the rounds need of the training rows, of all or of those on this machine.

    Attributes
    ----------
    y : ndarray of shape (n, C)
        Real targets, the 0/1 column of the second of two classes, or a column for each class.
    weight : ndarray of shape (n,)
        Weights of the rows.
    kernel : ndarray of shape (n, Σk)
        Q of every constraint, side by side.
    is_class : bool
        Whether the targets are classes.
    bounded : callable
        Returns what a constraint bounds of scores (n, C), in the same shape.
    total : callable
        Adds up a sum over these rows with those of other machines.
    """

    y: np.ndarray
    weight: np.ndarray
    kernel: np.ndarray
    is_class: bool
    bounded: Callable[[np.ndarray], np.ndarray]
    total: Callable[[np.ndarray], np.ndarray] = np.asarray

    def mean(self, values: np.ndarray) -> np.ndarray:
        """Return the weighted mean over the rows of all machines, shape (C,)."""
        weight, added = self.weight, self.weight @ values
        sums = self.total(np.r_[weight.sum(), added])
        return sums[1:] / sums[0]

    def coordinates(self, scores: np.ndarray) -> np.ndarray:
        """Return Q'Wz of what the constraint bounds, shape (Σk, C)."""
        z = self.bounded(scores)
        own = self.kernel.T @ (self.weight[:, None] * z)
        sums = self.total(np.r_[self.weight.sum(), own.ravel()])
        return (sums[1:] / sums[0]).reshape(own.shape)


def decide(scores: np.ndarray) -> np.ndarray:
    """Return the 0/1 columns of the classes that scores decide on."""
    if scores.shape[1] == 1:
        return (scores > 0.5).astype(np.float64)
    return (scores.argmax(axis=1)[:, None] == np.arange(scores.shape[1])).astype(np.float64)


def as_probabilities(scores: np.ndarray) -> np.ndarray:
    """Return scores of the second of two classes as its probabilities."""
    return np.clip(scores, 0.0, 1.0)


class Unit(NamedTuple):
    """What turns the trees' own scores, of targets of deviation 1, into scores.

    Their limits, such as the least gain of a split, then mean the same in every unit of y.

    Attributes
    ----------
    intercept : ndarray of shape (C,)
        The mean of the targets.
    scale : float
        Their deviation; 1 for the 0/1 columns of classes.
    """

    intercept: np.ndarray
    scale: float

    @classmethod
    def of(cls, rows: Rows) -> Unit:
        """Return the unit of the rows of one machine, on which all are."""
        intercept = rows.mean(rows.y)
        centred = rows.y - intercept
        largest = np.abs(centred).max()
        if rows.is_class or largest == 0:
            return cls(intercept, 1.0)
        # Squares of large targets would overflow, those of small ones be 0.
        deviation = np.sqrt(rows.mean(np.square(centred / largest))[0])
        return cls(intercept, float(largest * deviation))

    def scores(self, own: np.ndarray) -> np.ndarray:
        """Return the trees' own scores (n, C) as scores."""
        return own * self.scale + self.intercept

    def gradients(
        self, scores: np.ndarray, y: np.ndarray, shift: np.ndarray, weight: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the derivatives that trees are grown on, by their own scores, and the second ones.

        Parameters
        ----------
        scores, y : ndarray of shape (n, C)
            Scores and targets.
        shift : ndarray of shape (n, C)
            The derivative of the constraint by the scores, in units of y.
        weight : ndarray of shape (n,)
            Weights of the rows.
        """
        return (scores + shift - y) * (weight / self.scale)[:, None], weight

    def offset(self, shift: np.ndarray, coordinates: np.ndarray) -> np.ndarray | float:
        """Return what is added to Qs for scores of these coordinates, to keep their mean."""
        return 0.0  # that of Q is 0

    @staticmethod
    def losses(scores: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Return the loss of every score."""
        return np.square(scores - y)


class LogUnit(Unit):
    """The same with a log link: scores are the exponential of what the trees add to an intercept.

    The loss is that of Poisson, the Kullback-Leibler divergence of the targets from the scores. Its
    derivative by the logarithm of a score f, with that of the constraint on the scores themselves,
    is f(1 + (Qλ + ν) / ȳ) − y, with ν such that the mean of the scores is that of y.

    Attributes
    ----------
    intercept : ndarray of shape (C,)
        The logarithm of the mean of the targets.
    scale : float
        1; logarithms have no unit.
    """

    @classmethod
    def of(cls, rows: Rows) -> LogUnit:
        """Return the unit of the rows."""
        return cls(np.log(rows.mean(rows.y)), 1.0)

    def scores(self, own: np.ndarray) -> np.ndarray:
        """Return the trees' own scores (n, C) as scores."""
        return np.exp(own + self.intercept)

    def gradients(
        self, scores: np.ndarray, y: np.ndarray, shift: np.ndarray, weight: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the derivatives that trees are grown on, and a bound on the second ones."""
        mean = np.exp(self.intercept)
        factor, own = 1 + shift / mean, scores * (weight[:, None] / mean)
        # Multipliers that overshoot would bend the loss down.
        return own * factor - y * (weight[:, None] / mean), (own * np.maximum(factor, 1.0))[:, 0]

    def offset(self, shift: np.ndarray, coordinates: np.ndarray) -> np.ndarray | float:
        """Return what is added to Qs for scores of these coordinates, to keep their mean."""
        return -(shift * coordinates).sum(axis=0) / np.exp(self.intercept)

    @staticmethod
    def losses(scores: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Return the loss of every score."""
        return kl_div(y, scores)


# The units of trees by the loss that `evaluated` has.
UNITS: dict[str, type[Unit]] = {"squared_error": Unit, "kl": LogUnit}


class Member(NamedTuple):
    """A booster, the rows it is grown on, and those that it alone has not seen.

    Attributes
    ----------
    backend : Backend
        Its first further rows are those held out, if any; the others are for evaluation.
    rows : ndarray of int or slice
        Positions of its rows.
    held : ndarray of int or None
        Positions of the rows that are held out from it.
    """

    backend: Backend
    rows: Any
    held: Any = None


class Trained(NamedTuple):
    """What has become of the rounds.

    Attributes
    ----------
    scores : ndarray of shape (n, C)
        Scores of the training rows after the last round that is kept, held out where there are
        folds.
    multipliers : ndarray of shape (Σk, C)
        Those of that round.
    n_rounds : int
        How many are kept.
    trees : list of int
        The rounds of every booster that have grown trees until then.
    excess : float
        By how much they exceed a bound, as a share of it.
    history : dict of str to list
        After every round: `loss`, its mean; `coordinates` of what the constraint
        bounds; `multipliers`.
    evaluated : list of dict of str to list
        For every further X, after every round: the loss, and of classes `error`.
    """

    scores: np.ndarray
    multipliers: np.ndarray
    n_rounds: int
    trees: list[int]
    excess: float
    history: dict[str, list[Any]]
    evaluated: list[dict[str, list[float]]]


def train(
    members: Sequence[Member],
    rows: Rows,
    ascent: Ascent,
    *,
    n_rounds: int,
    unit: Unit,
    evaluations: Sequence[np.ndarray] = (),
    patience: int | None = None,
    verbose: int = 0,
) -> Trained:
    """Return what has become of the rounds.

    Parameters
    ----------
    members : sequence of Member
        The boosters: one on all rows, or one for each fold.
    rows : Rows
        The training rows.
    ascent : Ascent
        The multipliers, all 0.
    n_rounds : int
        The most rounds.
    unit : Unit
        Turns the trees' own scores into scores.
    evaluations : sequence of ndarray of shape (m, C), default=()
        Targets of every further X of the boosters.
    patience : int, default=None
        Rounds without a smaller loss, among those that nearly meet the constraint, after which the
        training ends; the best round is kept. The loss is that of the last further X, or without
        one of the training rows. None grows all rounds.
    verbose : int, default=0
        Above 0, every so many rounds print a line.
    """
    history: dict[str, list[Any]] = {"loss": [], "coordinates": [], "multipliers": []}
    evaluated: list[dict[str, list[float]]] = [{} for _ in evaluations]
    scores, least = unit.scores(np.zeros_like(rows.y)), np.inf
    inside = [scores[own.rows] for own in members]
    coordinates = rows.coordinates(scores)
    kept = Trained(scores, ascent.multipliers, 0, [], 0.0, history, evaluated)
    for number in range(1, n_rounds + 1):
        ascent.step(coordinates)
        shift = rows.kernel @ ascent.shift + unit.offset(ascent.shift, coordinates)
        for own, f in zip(members, inside, strict=True):
            values = (values[own.rows] for values in (rows.y, shift, rows.weight))
            own.backend.boost(*unit.gradients(f, *values))
        inside = [unit.scores(own.backend.scores()) for own in members]
        scores = inside[0]
        if members[0].held is not None:
            scores = np.empty_like(rows.y)
            for own in members:  # the score of every row by the booster that has not seen it
                scores[own.held] = unit.scores(own.backend.scores(0))
        coordinates = rows.coordinates(scores)
        loss = float(np.mean(rows.mean(unit.losses(scores, rows.y))))
        for name, value in zip(history, (loss, coordinates, ascent.multipliers), strict=True):
            history[name].append(value)
        for position, (errors, y) in enumerate(zip(evaluated, evaluations, strict=True)):
            found = _further(members, position, unit)
            _add(errors, "loss", unit.losses(found, y))
            if rows.is_class:
                _add(errors, "error", (decide(found) != y).any(axis=1))
        if verbose and number % verbose == 0:
            print(f"[{number}] loss {loss:.6g}, excess {ascent.excess(coordinates):.3g}")
        excess = ascent.excess(coordinates)
        if patience is None:
            is_candidate, rank = number > (1 - _LAST) * n_rounds, excess
        else:
            is_candidate = excess <= _NEARLY_MET
            rank = evaluated[-1]["loss"][-1] if evaluated else loss
        if np.isinf(least) or (is_candidate and rank <= least):
            least = rank if is_candidate else np.inf
            trees = [own.backend.n_rounds for own in members]
            kept = Trained(scores, ascent.multipliers, number, trees, excess, history, evaluated)
        elif patience is not None and number - kept.n_rounds >= patience:
            break
    return kept


def _further(members: Sequence[Member], position: int, unit: Unit) -> np.ndarray:
    """Return the mean scores of a further X."""
    others = [own.backend.scores((own.held is not None) + position) for own in members]
    return np.mean([unit.scores(own) for own in others], axis=0)


def _add(errors: dict[str, list[float]], name: str, values: np.ndarray) -> None:
    errors.setdefault(name, []).append(float(np.mean(values)))
