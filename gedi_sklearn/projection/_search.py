r"""The search for whole counts of least cost: one list of searches, from cheap to costly.

Labels of least cost come first. The relaxation then gives multipliers λ, a lower bound, and for
every cell an absolute reduced cost: by how much its cheapest class at C − E'λ beats another one.
Where its rounding does not do, constant labels are the least that there is, whatever the time.
Integer models of the moves of least reduced cost and exchanges of rows find counts near to the
relaxation; where nothing is allowed yet, so do relaxations of smaller sets. Every search is limited
by work that is counted, so that equal calls give equal counts; the deadline is a ceiling.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property
from itertools import islice, product

import numpy as np

from ..constraints import VIOLATION_TOLERANCE, Product
from ..exceptions import SolverError
from ._cells import Cells, mix_ranges, smallest
from ._class_rounding import rounded_classes
from ._exchange import Exchange
from ._relaxation import Core, Relaxed, relax, unsolved
from ._result import Effort, Found, Incumbent
from ._rounding import rounded_ones, rounded_soft
from ._solver import LIMITS, Deadline, SolverSession

__all__ = ["MOST_COLUMNS", "Search"]

# Columns that one integer model holds at once, else those of a model of the nearest moves. The
# licence that comes with gurobipy allows 2,000 variables.
_FEW, MOST_COLUMNS = 600, 1500
# Rows of v of a model of everything, and of many moves: with more it comes to no end.
_MOST_ROWS, _FEW_ROWS = 300, 15
# Nodes of an integer model times its columns, so many times more where the optimum is asked for.
_NODES, _MORE_NODES = 150_000, 20
# The same times the rows of balls; with fewer nodes than these a tree hardly leaves its root, which
# alone takes seconds.
_NODES_OF_BALL, _FEWEST_NODES = 3_000_000, 60
# Sets that are no polyhedra are cut off so often; once some counts are allowed, a part of that and
# of the nodes is enough.
_MOST_CUTS, _PART = 12, 4
# Coordinates of a ball up to which its linear rows touch it in many directions. With more rows of v
# these are so many that a tree proves hardly more than the relaxation, and takes a hundred times as
# long.
_TIGHTENED = 6
# Columns of least detour among which a core is chosen; a count further than this from an integer is
# not one.
_NEAREST, _INTEGRALITY = 50_000, 1e-3
# Shares of the sets in which the relaxation is solved and rounded where nothing else is found, and
# the precision that is enough there, relative to the range of costs.
_SHARES, _PRECISE = (0.85, 0.3), 1e-4
# Share of the time that the relaxation may take, where that is short.
_RELAXED = 0.6
# Rounding class after class: how many cells it takes, with few and with many rows of v, its share
# of the time, and how often it is tried.
_ROUNDED_GROUPS, _MANY_ROUNDED, _ROUNDED, _ROUNDED_TRIES = 150, 1000, 0.3, 8
# Classes of which all labels, but for a few rows, are tried.
_CONSTANTS = 3
# Numbers that all exchanges may compute, for each cell and at most; how many in a row, from
# counts that are not allowed and from those that are, may find nothing nearer.
_EFFORT_OF_CELL, _EFFORT, _IN_VAIN = 2e6, 2e9, (30, 1)
# Numbers that exchanges may compute at least once the gap is met, some hundredths of a second; and
# the share of it that is near enough without.
_POLISH, _NEAR = 3e6, 0.25


class Search:
    """The search for one problem over cells.

    Parameters
    ----------
    cells : Cells
        The cells.
    tolerance : float
        Largest difference of cost and bound that is asked for.
    session : SolverSession
        Solves the integer models.
    deadline : Deadline
        A ceiling in wall time.
    """

    def __init__(
        self, cells: Cells, tolerance: float, session: SolverSession, deadline: Deadline
    ) -> None:
        self.cells, self.tolerance = cells, tolerance
        self.session, self.deadline = session, deadline
        self.nowhere = np.zeros(len(cells.image.row))
        self.best = Incumbent(cells, tolerance)
        self.effort = self.most_effort = min(_EFFORT, _EFFORT_OF_CELL * cells.n)
        self.n_exchanges, self.constant = 0, np.inf
        self.is_infeasible = self.is_solved = False
        self.status = "work_limit"

    def run(self) -> Found | None:
        """Return the best counts; None where it is proven that none are allowed."""
        searches: tuple[Callable[[], None], ...] = (
            self._take_least_cost,
            self._relax,
            self._round,
            self._take_constants,
            self._solve_whole,
            self._round_classes,
            self._exchange,
            self._shrink_sets,
            self._solve_core,
            self._exchange_again,
        )
        for search in searches:
            if self.best.is_near_enough or self.is_infeasible or self.is_solved:
                break
            try:
                search()
            except TimeoutError:  # what there is when the time is over has to do
                self.status = "time_limit"
        if self.is_infeasible and self.best.counts is None:
            return None
        self._polish()
        if not self.deadline.left:
            self.status = "time_limit"
        return self.best.found(self.status)

    @property
    def has_found(self) -> bool:
        """Whether a search has found allowed counts that cost less than constants do."""
        return self.best.objective < self.constant

    def _take_least_cost(self) -> None:
        """Take the counts of least cost, where they are allowed as they are."""
        cells = self.cells
        counts = cells.placed(cells.choose(self.nowhere)[0])
        # Of a million rows every array counts, also the closest one that is kept.
        if cells.image.allowed.violation(cells.v(counts)) <= VIOLATION_TOLERANCE:
            self.best.offer(counts)

    def _take_constants(self) -> None:
        """Take labels of one class, but for a row of each other one."""
        is_searched = self.best.counts is not None
        for counts in _constants(self.cells):
            self.best.offer(counts)
        self.constant = np.inf if is_searched else self.best.objective

    @cached_property
    def relaxed(self) -> Relaxed:
        """The relaxation."""
        cells, allowed = self.cells, self.cells.image.allowed
        try:
            deadline = Deadline(_RELAXED * self.deadline.left)
            relaxed = relax(cells, allowed, self.tolerance, self.nowhere, deadline)
        except TimeoutError:
            self.status = "time_limit"
            return unsolved(cells, allowed)
        if relaxed is None:
            raise SolverError.from_status("highs", "infeasible, though equal shares are not")
        return relaxed

    def _relax(self) -> None:
        """Take the bound of the relaxation."""
        self.best.multipliers = self.relaxed.multipliers
        self.best.prove(self.relaxed.bound)

    @cached_property
    def start(self) -> np.ndarray:
        """Whole counts near to the relaxation."""
        soft = self.relaxed.counts
        return np.rint(soft) if self.cells.n_columns == 1 else rounded_soft(self.cells, soft)

    def _round(self) -> None:
        """Take whole counts near to the relaxation."""
        if self.cells.n_columns == 1:
            relaxed, nearest = self.relaxed, self.nearest
            found = rounded_ones(relaxed, self.cells, nearest, self.tolerance, self.deadline)
            for counts in found:
                if self.best.offer(counts) and self.best.is_near_enough:
                    return
        self.best.offer(self.start)

    @property
    def _is_small(self) -> bool:
        """Whether one integer model holds everything."""
        return len(self.nowhere) <= _MOST_ROWS and len(self.nearest) <= _FEW

    def _solve_whole(self) -> None:
        """Solve the integer model of all columns, where these are few."""
        if self.cells.image.allowed.is_polyhedron and self._is_small:
            self._solve_model(_FEW)

    def _round_classes(self) -> None:
        """Round more than two classes, one after another."""
        cells, by_class = self.cells, self.cells.image.by_class()
        if cells.n_columns == 1 or by_class is None or not self.tolerance:
            return
        many = _ROUNDED_GROUPS if len(self.nowhere) <= _FEW_ROWS else _MANY_ROUNDED
        if cells.n < many:
            return
        soon = Deadline(_ROUNDED * self.deadline.left)
        found = rounded_classes(self.relaxed, cells, by_class, self.nearest, self.tolerance, soon)
        for counts in islice(found, _ROUNDED_TRIES):
            if counts is not None and self.best.offer(counts) and self.best.is_near_enough:
                break

    def _exchange(self) -> None:
        """Exchange rows, from the rounded relaxation."""
        self._run_exchange(self.start, 0.4)

    def _shrink_sets(self) -> None:
        """Exchange rows from relaxations of smaller sets, which have room to be rounded."""
        cells, best = self.cells, self.best
        if self.has_found:
            return
        multipliers, precise = self.relaxed.multipliers, _PRECISE * cells.range_of_costs()
        for share in _SHARES:
            sets = Product([part.scaled(share) for part in cells.image.allowed.parts])
            smaller = relax(
                cells, sets, max(self.tolerance, precise), self.nowhere, self.deadline, multipliers
            )
            assert smaller is not None  # equal shares are in every set
            multipliers, start = smaller.multipliers, rounded_soft(cells, smaller.counts)
            is_allowed = best.offer(start)
            self._run_exchange(start, 0.15, multipliers)
            if is_allowed or self.has_found:
                break

    def _solve_core(self) -> None:
        """Solve the integer model of the nearest moves, or one of everything that takes long."""
        is_done = self._is_small and self.cells.image.allowed.is_polyhedron
        if not is_done and (self._is_small or len(self.nowhere) <= _FEW_ROWS):
            self._solve_model(MOST_COLUMNS)

    def _exchange_again(self) -> None:
        """Exchange rows from the best counts, in other orders."""
        in_vain = 0
        while in_vain < _IN_VAIN[self.best.counts is not None]:
            start, before = self.best.counts, self.best.objective
            start = self.start if start is None else start
            if self.effort <= 0 or not self._run_exchange(start, 1.0):
                break
            in_vain = 0 if self.best.objective < before else in_vain + 1

    def _run_exchange(
        self, start: np.ndarray, share: float, multipliers: np.ndarray | None = None
    ) -> bool:
        """Exchange rows with a share of the effort left; tell whether there was need and time."""
        if self.best.is_near_enough or not self.deadline.left:
            return False
        own = self.relaxed.multipliers if multipliers is None else multipliers
        effort = Effort(share * self.effort, Deadline(share * self.deadline.left))
        self.effort -= effort.left
        exchange = Exchange(self.cells, own, self.best, effort, self.n_exchanges)
        exchange.run(start, self.tolerance)
        self.effort += effort.left
        self.n_exchanges += 1
        return True

    def _polish(self) -> None:
        """Exchange rows of more than two classes a little longer than the gap needs.

        What is near enough first is further from the best there than rounding leaves two classes.
        """
        cells, start = self.cells, self.best.counts
        if start is None or not _NEAR * self.tolerance < self.best.gap <= self.tolerance:
            return
        if cells.n_columns > 1 and cells.cost.size <= _POLISH:
            effort = Effort(max(_POLISH, self.most_effort - self.effort), self.deadline)
            Exchange(cells, self.relaxed.multipliers, self.best, effort).run(start)

    @cached_property
    def nearest(self) -> np.ndarray:
        """The columns of cells that a core takes first, in that order."""
        cells, relaxed = self.cells, self.relaxed
        detour = relaxed.detour.ravel()
        # The few columns that the relaxation of two classes splits come first, whatever rounding
        # makes of their detour.
        used = np.abs(relaxed.counts - cells.placed(relaxed.base)).ravel() > _INTEGRALITY
        used &= cells.n_columns == 1
        by_cost = smallest(detour, _NEAREST)
        by_cost = by_cost[np.isfinite(detour[by_cost]) & ~used[by_cost]]
        split = np.flatnonzero(used & np.isfinite(detour))
        split = split[np.argsort(detour[split], kind="stable")]
        cell, column = np.divmod(by_cost, cells.n_columns)
        # The nearest moves can all lead to a few of many classes, or be much the same in one.
        classes = [column, relaxed.base[cell]] if cells.n_columns > 1 else []
        return np.r_[split, by_cost[mix_ranges(cells.matrix[:, cell], *classes)]]

    def _solve_model(self, size: int) -> None:
        """Solve the integer model of the nearest moves, and take its counts.

        Sets that are no polyhedra are cut off where a solution leaves them, which proves a bound. A
        better solution is among these moves, or makes another one.
        """
        cells, relaxed, best = self.cells, self.relaxed, self.best
        columns = self.nearest[:size]
        outside = float(np.delete(relaxed.detour.ravel(), columns).min(initial=np.inf))
        elsewhere, is_whole = relaxed.bound + outside, np.isinf(outside)
        core = Core(cells, relaxed.base, columns)
        # Where the relaxation is near their boundary, twice as far is outside.
        allowed = _tightened(cells.image.allowed.touched(2 * cells.v(relaxed.counts)))
        patience = 1 if self.tolerance else _MORE_NODES
        nodes, n_trees = _NODES * patience // max(len(core.cell), 1), 1
        if not allowed.is_polyhedron:
            # A node takes as long as there are rows times columns.
            numbers = len(allowed.linear_rows().most) * len(core.cell)
            nodes = min(nodes // 3, _NODES_OF_BALL * patience // max(numbers, 1))
            n_trees = _MOST_CUTS
            if nodes < _FEWEST_NODES:
                return
            if self.tolerance and self.has_found:
                if len(self.nowhere) > _TIGHTENED:
                    return
                nodes, n_trees = nodes // _PART, n_trees // _PART
        deadline = Deadline((0.7 if is_whole else 0.5) * self.deadline.left)
        for _ in range(n_trees):
            if best.is_near_enough:
                break
            start = None if best.counts is None else core.moved(best.counts)
            outcome = self.session.solve_linear(
                core.model(allowed, self.nowhere, keep_classes=True),
                gap=self.tolerance,
                start=start,
                deadline=deadline,
                most_nodes=nodes,
            )
            best.n_variables = max(best.n_variables, len(core.cell))
            best.prove(min(outcome.bound + cells.objective(core.start), elsewhere))
            # A limit of the user's own, or a share of the time: with more of it the gap may close.
            if outcome.status == "time_limit" or (outcome.status in LIMITS and self.session.params):
                self.status = outcome.status
            if outcome.x is None:
                self.is_infeasible = outcome.status == "infeasible" and is_whole
                break
            counts = core.counts(_as_integers(outcome.x[: len(core.cell)], self.session.name))
            fault = cells.fault(counts)
            if fault is not None:
                raise SolverError.from_status(self.session.name, fault)
            is_allowed = best.offer(counts)
            if is_allowed and is_whole and outcome.status not in LIMITS:
                self.is_solved, self.status = True, "gap"
            if is_allowed or outcome.status in LIMITS or allowed.is_polyhedron:
                break
            allowed = allowed.touched(cells.v(counts))


def _tightened(sets: Product) -> Product:
    """Return the sets, small balls with rows that touch them in many directions from the start.

    These are the diagonals of two coordinates, and of all. A search tree costs more than its rows,
    and without these one tree after another does no more than to find the next row.
    """
    parts = []
    for part in sets.parts:
        size = part.size if part.size <= _TIGHTENED and not part.is_polyhedron else 0
        directions = np.array(list(product((-1.0, 0.0, 1.0), repeat=size)))
        for direction in directions:
            if np.count_nonzero(direction) in {2, size} - {0, 1}:
                part = part.touched(direction)
        parts.append(part)
    return Product(parts)


def _constants(cells: Cells) -> Iterator[np.ndarray]:
    """Yield counts of one of the least costly classes, but for a row of each other one.

    These rows are of cells of least effect, against what the sets allow, or of any.
    """
    cost = cells.all_costs(cells.cost)
    others = cost.shape[1] - 1
    reach = np.zeros(len(cells.scale))
    np.add.at(reach, cells.image.row, 1 / np.maximum(cells.image.allowed.reach, 1e-300))
    effect = np.abs(cells.matrix.T) @ (cells.scale * reach)
    for size in (effect, 0 * effect):
        least = smallest(size, others)
        for c in np.argsort(cells.size @ cost, kind="stable")[:_CONSTANTS]:
            own = least if size.any() else smallest((cost - cost[:, [c]]).min(axis=1), others)
            counts = np.zeros(cost.shape)
            counts[:, c] = cells.size
            for b in np.delete(np.arange(others + 1), c):
                free = own[counts[own, c] > 0]
                taken = free[(cost[free, b] - cost[free, c]).argmin()]
                counts[taken, [c, b]] += -1, 1
            yield counts[:, -cells.n_columns :]


def _as_integers(x: np.ndarray, solver: str) -> np.ndarray:
    """Round a solver's counts, and refuse what is not near an integer."""
    counts = np.rint(x)
    worst = float(np.abs(x - counts).max(initial=0.0))
    if worst > _INTEGRALITY:
        raise SolverError.from_not_integral(solver, worst)
    return counts
