r"""Rounding of a relaxed solution of classes.

Two classes: a basic solution of the relaxation is fractional in as many groups as there are active
rows. Rounding these moves v by about the effect of a row, and so do single steps in the groups
whose reduced cost is nearly 0, at nearly no cost. Two such steps hit an allowed set that is wide
against the effect of one row. Where forbidden directions leave a narrow box, or where v must end
close to the boundary for a small gap, up to six steps are searched (`_step_search.py`). What counts
are only the directions in which leaving the relaxed v costs something.

More classes: soft counts are made whole group after group, those of the largest effect first, so
that later ones make up for what the earlier ones were rounded by.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache, partial

import numpy as np

from .._deadline import Deadline
from ._core import Core
from ._groups import Groups
from ._highs import solve_continuous
from ._relaxation import Relaxed
from ._step_search import CHEAP, NEAR, Moves, StepSearch, moved

__all__ = ["rounded_ones", "rounded_soft", "solved_anew"]

# Fewer groups than this are solved by an integer model faster than by a search for many steps.
_SEARCHED_GROUPS = 100
# Groups that may take a step.
_POOL = 300
# Rounding starts from the relaxation, then from ones in which only so large a share of the pool is
# not whole, the groups of small effects: what is left to round is small then too. Sets of more
# moves are looked at where the first ones do not do from any start, and where all that leads
# nowhere, so many tolerances may be lost.
_SHARES, _WIDENING = (1.0, 0.85, 0.7), 30
_ROUNDS = (
    *((share, 1, (CHEAP,)) for share in _SHARES),
    *((share, 1, (NEAR,)) for share in _SHARES),
    (1.0, _WIDENING, (CHEAP, NEAR)),
)
# Groups that are rounded one after another; soft counts this near to a whole number are one.
_IN_TURN, _WHOLE = 4000, 1e-6


def rounded_ones(
    relaxed: Relaxed,
    groups: Groups,
    nearest: np.ndarray,
    tolerance: float,
    deadline: Deadline,
) -> Iterator[np.ndarray]:
    """Yield allowed counts of the second of two classes near the relaxation, from other starts.

    Parameters
    ----------
    relaxed : Relaxed
        The relaxation.
    groups : Groups
        The groups.
    nearest : ndarray of int
        Columns of groups by their detour, the least first.
    tolerance : float
        How much above the relaxation's bound the cost may be.
    deadline : Deadline
        When to end; TimeoutError where it comes first.

    Yields
    ------
    ndarray of shape (g, 1)
        Counts that leave each class a row.
    """
    pool = nearest[:_POOL]
    one = np.ones((1, len(pool)))
    weighted = groups.effects(pool, one) * relaxed.multipliers[:, None]
    by_reach = np.argsort(np.argsort(np.abs(weighted).sum(axis=0), kind="stable"), kind="stable")

    @cache
    def search_from(share: float) -> tuple[np.ndarray, Moves, StepSearch] | None:
        nearby, solved = pool[by_reach < share * len(pool)], relaxed.counts
        if share < 1:
            base = groups.mostly(relaxed.counts)
            anew = solved_anew(groups, relaxed, base, nearby, deadline)
            if anew is None:
                return None
            solved = anew
        start = np.rint(solved)
        moves = _unit_steps(groups, start, nearby, relaxed.detour[:, 0])
        price = groups.cost[moves.group, 0] * moves.change[0]
        contains = groups.image.allowed.contains
        return start, moves, StepSearch(groups.v(start), moves, price, contains)

    none_yet = True
    for share, widening, combinations in _ROUNDS:
        if widening > 1 and not none_yet:
            break
        found = search_from(share)
        if found is None:
            continue
        start, moves, search = found
        searches = [search.by_pairs] if combinations == (CHEAP,) else []  # once from each start
        if tolerance and groups.n >= _SEARCHED_GROUPS:
            lost = widening * tolerance
            box = groups.image.allowed.near_optimal_box(-relaxed.multipliers, lost)
            enough = relaxed.bound + tolerance - groups.objective(start)
            searches.append(partial(search.near_optimum, box, lost, enough, deadline, combinations))
        for chosen in (one() for one in searches):
            if chosen is not None:
                counts = moved(start, moves, chosen)
                if groups.rows_of_classes(counts).min() >= 1:
                    none_yet = False
                    yield counts


def solved_anew(
    groups: Groups, relaxed: Relaxed, base: np.ndarray, columns: np.ndarray, deadline: Deadline
) -> np.ndarray | None:
    """Return the counts of the relaxation over some columns, all else in a base; None if none."""
    core = Core(groups, base, columns)
    model = core.model(relaxed.allowed, np.zeros(len(relaxed.multipliers)))
    solved = solve_continuous(model, deadline)
    return None if solved is None else core.counts(solved[0])


def _unit_steps(
    groups: Groups, counts: np.ndarray, pool: np.ndarray, reduced_cost: np.ndarray
) -> Moves:
    """Return one row more, and one less, in every group of a pool where that is possible."""
    group, step = np.repeat(pool, 2), np.tile([1.0, -1.0], len(pool))
    count = counts[group, 0]
    possible = np.where(step > 0, count < groups.size[group], count > 0)
    group, change = group[possible], step[None, possible]
    return Moves(group, change, groups.effects(group, change), reduced_cost[group])


def rounded_soft(groups: Groups, soft: np.ndarray) -> np.ndarray:
    """Return whole counts near to soft ones, whose v is near as well.

    Parameters
    ----------
    groups : Groups
        The groups.
    soft : ndarray of shape (g, m)
        Counts of every group, not whole.

    Returns
    -------
    ndarray of shape (g, m)
    """
    image, is_single = groups.image, groups.n_columns == 1
    column, most = groups.column, groups.size
    if is_single:  # the first class is what the second one leaves
        soft, column = np.column_stack([most - soft[:, 0], soft[:, 0]]), column + 1
    counts = np.floor(soft + _WHOLE)
    missing = np.rint(most - counts.sum(axis=1)).astype(int)
    # An error counts in the unit of what its set allows.
    weight = np.zeros((image.n_rows, soft.shape[1]))
    reach = np.maximum(image.allowed.reach, 1e-3 * image.allowed.reach.max(initial=0.0))
    weight[image.row, column] = 1 / np.maximum(reach, np.finfo(float).tiny) ** 2
    effect = groups.matrix * groups.scale[:, None]
    is_open = np.flatnonzero(missing)
    is_open = is_open[np.argsort(-(effect[:, is_open] ** 2).sum(axis=0), kind="stable")]
    error = np.zeros_like(weight)
    for group in is_open[:_IN_TURN]:
        own, rest = effect[:, [group]], soft[group] - counts[group]
        error -= own * rest
        for _ in range(missing[group]):
            after = (weight * own * (2 * error + own)).sum(axis=0)
            target = np.where(rest > 1e-3, after, np.inf).argmin()
            counts[group, target] += 1
            error[:, target] += own[:, 0]
    late = is_open[_IN_TURN:]
    counts[late, (soft - counts)[late].argmax(axis=1)] += missing[late]
    return counts[:, 1:] if is_single else counts
