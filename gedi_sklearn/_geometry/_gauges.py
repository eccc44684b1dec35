"""The blocks whose gauges are the indicators: what A is for each of them, written down once.

None of them has a bound; constraints give them one.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ._block import Block, GroupBlock
from ._sets import Ball, GroupBall, L1Ball


def coefficient_block(design: Any, outputs: tuple[int, ...] = (0,)) -> Block:
    """Return ‖α̃‖₁ of an output, v = α̃ = T s.

    Parameters
    ----------
    design : BaseDesign
        The kernel on the rows.
    outputs : tuple of int, default=(0,)
        Which columns of the targets.
    """
    kernel = design.fitted
    kernel.check_size(kernel.n_columns)
    allowed = L1Ball(kernel.n_columns, 1.0, np.inf)
    return Block(design, allowed, kernel.basis.to_raw, None, outputs)


def deviation_block(design: Any, outputs: tuple[int, ...] = (0,)) -> Block:
    """Return S of an output, the deviation that the kernel explains: ‖v‖₂; see above."""
    k, root = design.fitted.n_columns, np.sqrt(design.fitted.share)
    design.fitted.check_size(k)
    # In the coordinates of all rows a deviation within some of them is smaller.
    to_v, from_v = np.eye(k) / root, np.eye(k) * root
    return Block(design, Ball(k, 1.0, np.inf), to_v, from_v, outputs, of_coordinates=True)


def group_block(design: Any, outputs: tuple[int, ...] = (0,), factor: float = 1.0) -> Block:
    """Return Σ|d| of all outputs, v = d by how much the groups' means differ from that of all.

    Beside covariates the means are those of the groups' coefficients.

    Parameters
    ----------
    design : Design
        A kernel that tells groups apart, on the rows.
    outputs : tuple of int, default=(0,)
        Which columns of the targets.
    factor : float, default=1.0
        What the sum is multiplied by.
    """
    weights, n_outputs = design.group_weights, len(outputs)
    are_means = design.n_covariates == 0
    allowed = GroupBall(n_outputs * len(weights), 1.0, np.inf, weights, are_means=are_means)
    if design.fitted.has_closed_form:
        return GroupBlock(design, allowed, outputs, factor)
    indicators = design.fitted.basis.evaluate(np.arange(float(len(weights)))[:, None])
    to_v = indicators - weights @ indicators
    # A coefficient is how far a group's mean is from that of the first group.
    per_unit = np.diag(to_v[1:] - to_v[0])[:, None]
    from_v = np.hstack([np.full_like(per_unit, -1.0), np.eye(len(per_unit))]) / per_unit
    return Block(design, allowed, to_v, from_v, outputs, factor)
