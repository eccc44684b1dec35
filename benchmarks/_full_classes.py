"""The projection of classes as one integer model of all rows, for HiGHS through scipy.

Only the constraint on the rows is the library's, and the judgement of what was found: nothing of
how it searches. Slow; meant to tell whether there are any allowed targets.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.optimize import Bounds, LinearConstraint, milp

from benchmarks._master_instances import Instance
from gedi_sklearn.projection import Projection

# The sets are smaller by this share, so that what the solver leaves is inside of them.
_MARGIN = 1e-6
_TOLERANCE = 1e-9
# Corners of the polygons that stand for discs.
_CORNERS = 64
_STATUS = {0: "optimal", 1: "limit", 2: "infeasible"}


class Answer(NamedTuple):
    """What the full model came to.

    Attributes
    ----------
    status : str
        "optimal" (within one flip), "limit", "infeasible", or the solver's message.
    targets : ndarray of shape (n,) or None
        Allowed targets 0…K − 1.
    objective : float
        Their loss; NaN where there are none.
    """

    status: str
    targets: np.ndarray | None
    objective: float


class _Bounded(NamedTuple):
    """Effects (r, n) of a 1 in a row of a column of targets, in the set v = U w, S w ≤ s, |w| ≤ 1.

    The v of several columns stand one below the other: `effects` are those of each.
    """

    effects: np.ndarray
    columns: tuple[int, ...]
    into: np.ndarray  # U
    sums: np.ndarray  # S
    most: np.ndarray  # s


def solve_full(instance: Instance, limit: float) -> Answer:
    """Solve the full model of an instance.

    With x_{gc} the number of rows of group g (of equal effects and costs) in class c::

        min Σ C_gc x_gc   s.t.   Σ_c x_gc = size_g,   1 ≤ Σ_g x_gc,   E x_c − U w = 0,   S w ≤ s

    Parameters
    ----------
    instance : Instance
        The instance.
    limit : float
        Seconds of the solver.
    """
    with warnings.catch_warnings():
        # Of the attribute's unit, and of options that scipy passes on but does not list.
        warnings.simplefilter("ignore")
        with Projection(
            instance.y, sensitive_features=instance.sensitive_features, **instance.keywords
        ) as projection:
            return _solve(instance, projection, limit)


def _solve(instance: Instance, projection: Projection, limit: float) -> Answer:
    sets, costs = list(_bounded(projection, instance.n_classes)), instance.costs
    keys = np.column_stack([costs, *(own.effects.T for own in sets)])
    _, first, group, size = np.unique(
        keys, axis=0, return_index=True, return_inverse=True, return_counts=True
    )
    constraints, n_others = _rows(sets, first, size, instance.n_classes)
    most = np.repeat(size, instance.n_classes)
    others = np.ones(n_others)
    result = milp(
        np.r_[costs[first].ravel(), 0 * others],
        integrality=np.r_[np.ones(len(most)), 0 * others],
        bounds=Bounds(np.r_[np.zeros(len(most)), -others], np.r_[most, others]),
        constraints=constraints,
        options={
            "time_limit": limit,
            "mip_rel_gap": 0.0,
            "mip_abs_gap": instance.flip,
            "mip_feasibility_tolerance": _TOLERANCE,
            "primal_feasibility_tolerance": _TOLERANCE,
        },
    )
    status = _STATUS.get(result.status, str(result.message))
    if result.x is None:
        return Answer(status, None, np.nan)
    counts = np.rint(result.x[: len(most)]).astype(int)
    labels = np.tile(np.arange(instance.n_classes), len(size))
    targets = np.empty(instance.n, dtype=int)
    targets[np.argsort(group, kind="stable")] = np.repeat(labels, counts)
    if not projection.satisfied(targets):
        return Answer(f"{status}, but not allowed", None, np.nan)
    return Answer(status, targets, float(costs[np.arange(instance.n), targets].sum()))


def _bounded(projection: Projection, n_classes: int) -> Iterator[_Bounded]:
    """Yield what the constraints of a projection bound. All weights are equal."""
    for parts in projection.fitted_constraint_.listed:
        basis = parts[0].design.orthonormal
        effects = parts[0].block.operator @ basis.T / len(basis)
        for part in parts:
            allowed = part.allowed
            bounded = allowed.bounded[: len(effects)]
            if bounded.any():
                # Of two classes the second one is what is bounded.
                columns = tuple(c + (n_classes == 2) for c in part.outputs)
                n_v = int(bounded.sum()) * len(columns)
                limits = allowed.limits[np.isfinite(allowed.limits)] * (1 - _MARGIN)
                yield _Bounded(effects[bounded], columns, *_set(allowed.norm, limits, n_v))


def _set(norm: str, limits: np.ndarray, n_v: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return U, S and s of a set of v; of a ball, of a polyhedron inside."""
    if norm == "each":
        return np.diag(limits), np.empty((0, n_v)), np.empty(0)
    (radius,) = limits
    if norm == "l1":
        # v = q(w⁺ − w⁻) with w ≥ 0 and Σ(w⁺ + w⁻) ≤ 1
        unit = radius * np.eye(n_v)
        sums = np.vstack([-np.eye(2 * n_v), np.ones((1, 2 * n_v))])
        return np.hstack([unit, -unit]), sums, np.r_[np.zeros(2 * n_v), 1.0]
    # Two coordinates at a time are in a disc, whose radius stands for both from there on.
    angles = 2 * np.pi * np.arange(_CORNERS) / _CORNERS
    n_w = n_v + max(n_v - 2, 0)
    left, discs, most, radii = list(range(n_v)), [np.empty((0, n_w))], [], list(range(n_v, n_w))
    while len(left) > 1:
        disc = np.zeros((_CORNERS, n_w))
        disc[:, left.pop(0)], disc[:, left.pop(0)] = np.cos(angles), np.sin(angles)
        inner = np.cos(np.pi / _CORNERS)  # the polygon has its corners on the circle
        if left:
            own = radii.pop(0)
            disc[:, own] = -inner
            left.append(own)
        most.append(np.full(_CORNERS, 0.0 if left else inner))
        discs.append(disc)
    into = np.hstack([radius * np.eye(n_v), np.zeros((n_v, n_w - n_v))])
    return into, np.vstack(discs), np.concatenate([np.empty(0), *most])


def _rows(
    sets: list[_Bounded], first: np.ndarray, size: np.ndarray, n_classes: int
) -> tuple[LinearConstraint, int]:
    """Return the rows of the model, and how many variables it has besides the counts."""
    n_groups, of_class = len(size), np.eye(n_classes)
    of_groups = sp.kron(sp.eye_array(n_groups), np.ones((1, n_classes)))
    of_classes = sp.kron(np.ones((1, n_groups)), of_class)
    blocks, lower = [[of_groups, None], [of_classes, None]], [size, np.ones(n_classes)]
    upper = [size, np.full(n_classes, np.inf)]
    if sets:
        effects = sp.vstack(
            [
                sp.kron(one.effects[:, first], of_class[c : c + 1])
                for one in sets
                for c in one.columns
            ]
        )
        into = sp.block_diag([one.into for one in sets])
        sums = sp.block_diag([one.sums for one in sets])
        # Rows whose variables w have a largest factor of 1.
        scale = sp.diags_array(1 / abs(into).max(axis=1).toarray().ravel())
        blocks += [[scale @ effects, -scale @ into], [None, sums]]
        n_v, n_sums = into.shape[0], sums.shape[0]
        lower += [np.zeros(n_v), np.full(n_sums, -np.inf)]
        upper += [np.zeros(n_v), *(one.most for one in sets)]
    n_others = sum(one.into.shape[1] for one in sets)
    matrix = sp.csr_array(sp.block_array(blocks))
    return LinearConstraint(matrix, np.concatenate(lower), np.concatenate(upper)), n_others
