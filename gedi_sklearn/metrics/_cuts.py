r"""The indicator over every cut: how much the share of rows above a score depends on an attribute.

Decisions are made at a cut t: above it a claim is checked, a loan given. With Q the orthonormal
columns of the kernel and w the weights, the deviation that the attribute explains of 1{s > t} is

.. math:: S(t) = \Big\| \sum_i w_i\, Q_i\, 1\{s_i > t\} \Big\|_2 .

In the order of the scores these are cumulative sums, so that all cuts cost one sort and one pass.
The indicator is the largest, as the statistic of Kolmogorov and Smirnov is of two groups, of which
it is a multiple.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .._geometry import deviation_block
from ..kernels import Design, row_blocks
from ._errors import null_covariance
from ._limits import Limits, upper_limits
from ._linear import KernelIndicator

# Cuts of which the largest limit is taken, beside the one of the largest value.
_LIMITED = 19
# Cuts of a curve that is shown, beside the one of the largest value.
_SHOWN = 201
# Rows and permutations that tell a quantile of the value under independence.
_PERMUTED, _DRAWS = 2000, 200
# A value below, and a difference of scores as a share of the largest, are rounding.
_ROUNDING = 1e-12


class CutsIndicator(KernelIndicator):
    """The largest explained deviation of 1{s > t}, and its inference.

    Parameters
    ----------
    design : Design
        The kernel on the rows.
    norm : {"sd", "adjusted_sd"}, default="sd"
        The latter subtracts at every cut what chance contributes. The largest of many cuts still
        exceeds that of the population, but by less.
    """

    def __init__(self, design: Design, norm: str = "sd") -> None:
        super().__init__(design, norm)

    def curve(self, z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return S(t) at every distinct score but the largest.

        Parameters
        ----------
        z : ndarray of shape (n,)
            The scores.

        Returns
        -------
        cuts, values : ndarray of shape (m,)
            The scores t, in ascending order, and S(t).
        """
        order, last = _cuts_of(z)
        return z[order[last]], self._along(order, last)

    def shown_curve(self, z: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return some cuts, in ascending order, the share of rows above each, and S there."""
        order, last = _cuts_of(z)
        cuts, values = z[order[last]], self._along(order, last)
        if not len(cuts):
            return cuts, values, values
        shares = np.broadcast_to(self.design.shares(slice(None)), len(z))[order]
        above = np.clip(1 - np.cumsum(shares)[last], 0.0, 1.0)
        # Evenly spaced shares, the tenth among them; up to rounding of the sum.
        steps = np.linspace(-1, 0, _SHOWN) - 1e-9
        some = np.searchsorted(-above, steps).clip(0, len(cuts) - 1)
        kept = np.unique(np.append(some, values.argmax()))
        return cuts[kept], above[kept], values[kept]

    def _along(self, order: np.ndarray, last: np.ndarray) -> np.ndarray:
        """Return S after the rows at given places of an order."""
        design, total = self.design, np.zeros(self.design.fitted.n_columns)
        shares = np.broadcast_to(design.shares(slice(None)), design.n_rows)
        values = np.empty(len(last))
        for block in row_blocks(len(order)):
            rows = order[block]
            sums = np.cumsum(design.orthonormal_of(rows) * shares[rows, None], axis=0) + total
            own = slice(*np.searchsorted(last, [block.start, block.start + len(rows)]))
            values[own] = np.linalg.norm(sums[last[own] - block.start], axis=1)
            total = sums[-1]
        if self.norm == "sd":
            return values
        below = np.cumsum(shares[order])[last]
        return self._adjusted(values, below * (1 - below))

    def measure(self, z: np.ndarray) -> float:
        return float(self.curve(z)[1].max(initial=0.0))

    def reference(self, y: np.ndarray) -> float:
        value = self.measure(y)
        return value if value > _ROUNDING else 0.0

    def reference_of_degree(self, y: np.ndarray, degree: int) -> float:
        """Return that of the original targets: it has no degree."""
        return self.reference(y)

    def as_permuted(self, z: np.ndarray) -> float:
        return self.measure(z)

    def permuted(
        self, z: np.ndarray, n_resamples: int, rng: np.random.Generator, groups: Any = None
    ) -> np.ndarray:
        """Return the indicator of permutations of the scores."""
        last = ends_of_ties(np.sort(z))[:-1]
        self.design.with_matrix()
        draws = (self._along(rng.permutation(len(z)), last) for _ in range(n_resamples))
        return np.array([values.max(initial=0.0) for values in draws])

    def null_values(self, z: np.ndarray, groups: np.ndarray | None = None) -> np.ndarray:
        """Return draws of the indicator of scores that do not depend on the attribute.

        It is in proportion to n^(-1/2), so that a part of the rows tells it. Clusters widen it as
        they widen the deviation of the coordinates at the largest cut.
        """
        rng = np.random.default_rng(0)
        n = len(z)
        rows = np.sort(rng.choice(n, min(n, _PERMUTED), replace=False))
        columns = self.design.orthonormal_of(rows)
        columns -= columns.mean(axis=0)
        last = ends_of_ties(np.sort(z[rows]))[:-1]
        if not len(last):
            return np.zeros(_DRAWS)
        draws = [
            np.linalg.norm(np.cumsum(rng.permutation(columns), axis=0)[last], axis=1).max()
            for _ in range(_DRAWS)
        ]
        values = np.array(draws) / np.sqrt(len(rows) * n)
        if groups is None:
            return values
        at = self.curve(z)
        above = (z > at[0][at[1].argmax()]).astype(np.float64)
        alone, together = (
            np.trace(null_covariance(self.design, above, own)) for own in (None, groups)
        )
        return values * np.sqrt(max(together / alone, 1.0))

    def upper_limit(self, z: np.ndarray, confidence: float, **options: Any) -> Limits:
        """Return the largest upper limit of a cut: one of them is that of the true largest."""
        cuts, values = self.curve(z)
        if not len(cuts):
            return Limits(np.zeros(1))
        spread = np.linspace(0, len(cuts) - 1, min(_LIMITED, len(cuts))).astype(int)
        chosen = cuts[np.unique(np.append(spread, values.argmax()))]
        block = deviation_block(self.design)
        above = ((z > t).astype(np.float64)[:, None] for t in chosen)
        limits = [upper_limits(block, columns, confidence, **options) for columns in above]
        return max(limits, key=lambda limit: float(limit.values[0]))


def _cuts_of(z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the order of scores, and the place in it of the last row of each but the largest."""
    order = np.argsort(z, kind="stable")
    return order, ends_of_ties(z[order])[:-1]


def ends_of_ties(ordered: np.ndarray) -> np.ndarray:
    """Return the position of the last of every run of scores that are equal up to rounding."""
    return np.append(np.flatnonzero(np.diff(ordered) > tie_width(ordered)), len(ordered) - 1)


def tie_width(ordered: np.ndarray) -> float:
    """Return up to which difference scores are equal but for rounding."""
    return float(_ROUNDING * np.abs(ordered[[0, -1]]).max())


def check_cuts(norm: str, conditional_on: object, groups: object) -> None:
    """Refuse what has no meaning for the distribution of predictions.

    Raises
    ------
    ValueError
    """
    if norm != "sd":
        raise ValueError(
            f"on='distribution' measures the explained deviation of the share above each cut; got "
            f"norm={norm!r}. Pass norm='sd'."
        )
    for name, given in {"conditional_on": conditional_on, "groups": groups}.items():
        if given is not None:
            raise ValueError(f"on='distribution' does not go with {name}. Leave one out.")
