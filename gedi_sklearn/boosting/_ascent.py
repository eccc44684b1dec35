r"""Multipliers that ascend while the predictions are fitted.

A squared loss under a constraint on the coordinates g = Q'Wf of the predictions,

.. math:: \min_f \max_\lambda \tfrac12 \|f - y\|^2 + \lambda^T g - \sup_{u \in C} \lambda^T u,

is minimised by a fit on y − Qλ. The multipliers take a proximal step of length η in every round,

.. math:: v = \lambda + \eta g, \qquad \lambda \leftarrow v - \eta\, \Pi_C(v / \eta),

with Π_C the nearest point of the set. λ and g are in the orthonormal basis of the kernel, where
the length of a step means the same in every direction and in every unit of the attribute.

Trees follow the multipliers slowly, and the multipliers what trees have come to: alone they swing
around the end for hundreds of rounds. Real predictions are therefore pulled as well, by what is
left of the constraint, e = g − Π_C(v / η): the trees are grown on y − Q(λ + κe), the gradient of
the augmented Lagrangian, and at the end e is 0. It never is of rows held out where a coefficient
may be nothing but a slack: what is left there is chance, which no tree should follow.
"""

from __future__ import annotations

import numpy as np

from .._geometry import Block
from ..constraints import FittedConstraint

__all__ = ["Ascent"]

# Length of the first step and of the last: long ones soon find multipliers that trees hardly
# follow, which see the attribute through other columns; short ones settle.
_FIRST, _LAST = 0.3, 0.03
# Share of e that is taken out a round, beside what the multipliers do: κ times the learning rate.
# Labels are not pulled: they come in steps, and rows near the cut would flip to and fro.
_PULL = 0.15


class Ascent:
    """The multipliers of a constraint: of all of its kernels and of every column of the targets.

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
        self._lengths = iter(np.linspace(_FIRST, _LAST, n_steps))
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
