r"""Classes without the attribute: multipliers that ascend on what the cut labels really do.

The rule is to bound :math:`c(z) = E[Q z]` of its labels z, but knows m(X) alone. A relaxation that
puts m in the place of Q takes E[m z] for that, and errors of m(X) are in proportion to z: it ends
well beside its bound. Here the labels are cut, and c(z) is measured with the attribute of the rows:
the dual ascent :math:`\lambda \leftarrow v - \eta\,\Pi(v / \eta)`, v = λ + η c(z), with Π the
nearest allowed point, rests where c(z) is allowed and λ points out of its set there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from .._geometry import pieces
from ..constraints import FittedConstraint

# Steps of length STEP / √t. The multipliers are within 1 or so, since they shift probabilities.
_STEPS, _STEP = 1000, 1.0
# The last steps, which swing around the end.
_TAIL = 200


def ascend(
    constraint: FittedConstraint, decide: Callable[[np.ndarray], np.ndarray], start: np.ndarray
) -> Iterator[np.ndarray]:
    """Yield the corrections near to which the ascent comes to rest, their mean first.

    Parameters
    ----------
    constraint : FittedConstraint
        On the rows, with their attribute.
    decide : callable
        From a correction to the classes (n,) of the rows.
    start : ndarray
        The first correction: c of every constraint and class, one after another.
    """
    if any(len(part.outputs) > 1 for part in constraint.parts):
        # One set of the columns of all classes, whose nearest point is in none of their bases.
        yield start
        return
    share = constraint.weight / constraint.weight.sum()
    weighted = [parts[0].design.orthonormal * share[:, None] for parts in constraint.listed]
    c, tail = start, []
    for step in range(1, _STEPS + 1):
        columns = constraint.columns(decide(c))
        seen = np.concatenate([(columns.T @ own).ravel() for own in weighted])
        length = _STEP / np.sqrt(step)
        # The correction is −λ.
        point = seen - c / length
        c = length * (_nearest(constraint, point) - point)
        if step > _STEPS - _TAIL:
            tail.append(c)
    yield np.mean(tail, axis=0)
    yield from tail


def _nearest(constraint: FittedConstraint, point: np.ndarray) -> np.ndarray:
    """Return the allowed coordinates nearest to given ones, those of all parts."""
    blocks = [part.block for part in constraint.parts]
    own = zip(blocks, pieces(point, [block.size for block in blocks]), strict=True)
    return np.concatenate([block.nearest(c)[0] for block, c in own])
