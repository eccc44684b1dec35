r"""What every row, or every cluster of rows, adds to the error of coordinates.

With err_i the HC3 residual of row i times its weight, Q_i·b err_i is what row i adds to the error
of c·b, :math:`w_i Q_i \cdot b\, e_i / (1 - h_i)`: MacKinnon and White (1985). A cluster g adds the
sum that the fit without it would miss, CR3 (Bell and McCaffrey 2002),
:math:`X_g'W_g (I - H_{gg})^{-1} e_g = (I - X_g'W_gX_g)^{-1} X_g'W_g e_g`, of which the part of Q
counts; X, the constant, the covariates and Q, is orthonormal under the weights.

A norm of c is compared across draws of the rows, whose orthonormal basis is another one each time:
c = G^(−1/2) E[f z], with G the kernel's covariance, moves by q(z − q'c) + ½(qq' − I)c.

References
----------
J. G. MacKinnon, H. White (1985): Some heteroskedasticity-consistent covariance matrix estimators
with improved finite sample properties. Journal of Econometrics 29.

R. M. Bell, D. F. McCaffrey (2002): Bias reduction in standard errors for linear regression with
multi-stage samples. Survey Methodology 28.

J. E. Pustejovsky, E. Tipton (2018): Small-sample methods for cluster-robust variance estimation and
hypothesis testing in fixed effects models. Journal of Business & Economic Statistics 36.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from ..kernels import Design, row_blocks
from ._ellipsoids import MAX_PATTERNS, GroupCovariance

# Numbers of a block of rows in all directions: what stays in the cache.
_BLOCK = 50_000
# Numbers of the products of columns that are summed up within clusters at a time.
_PRODUCTS = 4_000_000
# A row, or a cluster, with a leverage this near to 1 determines a coefficient alone.
_ALONE = 1e-8
# Errors below this share of the targets' size are roundings.
_ROUNDING = 1e-9


class Moments(NamedTuple):
    """Sums of powers of what rows add to an error, in every direction, each of shape (d,).

    Attributes
    ----------
    second, third, fourth : ndarray
        Σ η², Σ η³, Σ η⁴; infinite where a row or a cluster is alone.
    largest : ndarray
        max |η|.
    pooled : ndarray
        What a typical row adds: (Σ|a|³/Σa²)(Σ w|e|³/Σ we²) with a the weight of an error.
    """

    second: np.ndarray
    third: np.ndarray
    fourth: np.ndarray
    largest: np.ndarray
    pooled: np.ndarray


# The sums, and the largest, of a block.
_Sums = tuple[np.ndarray, ...]


class Errors:
    """The errors of the coordinates of some outputs; all numbers are in units of ``unit``.

    Parameters
    ----------
    design : Design
        The kernel on the rows.
    columns : ndarray of shape (n, m)
        The outputs.
    is_basis_drawn : bool, default=False
        Whether a norm of the coordinates is asked for, which is another one with other rows.
    groups : array-like of shape (n,), default=None
        Clusters of rows; None where rows are independent.

    Attributes
    ----------
    coordinates : ndarray of shape (m, k)
        c of every output.
    n_units : int
        Number of rows that the kernel sees, or of their clusters.
    n_free : int
        Degrees of freedom.
    are_independent : bool
        Whether rows are no clusters.
    """

    def __init__(
        self,
        design: Design,
        columns: np.ndarray,
        *,
        is_basis_drawn: bool = False,
        groups: np.ndarray | None = None,
    ) -> None:
        self.design: Any = design
        self._half, self._given = 0.5 if is_basis_drawn else 0.0, columns
        seen: Any = slice(None) if design.inside is None else np.flatnonzero(design.inside)
        self.weight = np.broadcast_to(design.shares(slice(None)), design.n_rows)[seen]
        # Labels that are all equal say nothing of how large an error may be: it may be 1.
        self._are_labels = bool(((columns == 0) | (np.abs(columns) == 1)).all())
        columns = columns - columns.mean(axis=0)
        self.unit = float(np.abs(columns).max()) or 1.0
        columns = columns / self.unit
        design.with_matrix()
        self.coordinates = np.array([design.coordinates(z) for z in columns.T])
        self._explained = np.column_stack([design.explained(c) for c in self.coordinates])[seen]
        rest = np.column_stack([design.residual(z) for z in columns.T])
        means = np.array([design.mean(z) for z in rest.T])
        self._residual = rest[seen] - means - self._explained
        self._seen = seen
        self._index: Any = None if design.index is None else design.index[seen]
        self.are_independent = groups is None
        if groups is None:
            self.n_units = len(self.weight)
            self.n_free = self.n_units - design.n_covariates - design.fitted.n_columns - 1
        else:
            self._names, self._codes = np.unique(np.asarray(groups)[seen], return_inverse=True)
            self.n_units = len(self._names)
            self.n_free = self.n_units - 1

    @cached_property
    def _row_errors(self) -> np.ndarray:
        """w(e/(1 − h) + ½q'c), with e = z − q'c: what the rows without one lack of it, (n, m)."""
        beyond = 1 - np.minimum(self.leverage, 1 - 1e-9)
        errors = self._residual / beyond[:, None] + self._half * self._explained
        return self.weight[:, None] * errors

    @cached_property
    def leverage(self) -> np.ndarray:
        return self.design.leverage()[self._seen]

    @cached_property
    def columns(self) -> np.ndarray:
        """Q of the rows that the kernel sees."""
        return self.design.orthonormal[self._seen]

    def sizes(self, c: np.ndarray) -> np.ndarray:
        """Return |Q| |c| of the rows that the kernel sees."""
        if self.design.fitted.has_closed_form and self._index is not None:
            return self.design.fitted.size_of_groups(c)[self._index]
        return np.abs(self.columns) @ np.abs(c)

    @cached_property
    def typical(self) -> float:
        """The size of an error: Σ w|e|³/Σ we² of rows, the same of the mean errors of clusters."""
        weight, mean = self.weight, self._residual
        if not self.are_independent:
            weight = np.bincount(self._codes, weight)
            mean = self._totals(self.weight[:, None] * mean) / weight[:, None]
        square = np.square(mean).sum(axis=1)
        second = float(weight @ square)
        size = float(weight @ square**1.5) / second if second else 0.0
        if self._are_labels and size <= _ROUNDING:
            # A row that is in another class than all those like it.
            return (1.0 if mean.shape[1] == 1 else np.sqrt(2.0)) / self.unit
        return size

    def _totals(self, of_rows: np.ndarray) -> np.ndarray:
        """Return sums of the rows of a matrix within clusters."""
        return np.stack([np.bincount(self._codes, own, self.n_units) for own in of_rows.T], axis=-1)

    @cached_property
    def scores(self) -> np.ndarray:
        """What each row or cluster adds to the errors of all coordinates, (units, m·k)."""
        if not self.are_independent:
            return self._cluster_scores[0]
        own = [self.columns * error[:, None] for error in self._row_errors.T]
        pairs = zip(own, self.coordinates, strict=True)
        return np.hstack([one - self._mean[:, None] * c for one, c in pairs])

    @property
    def _mean(self) -> np.ndarray:
        """What is subtracted of each row, in units of c: their mean."""
        return self._half / self.design.fitted.share * self.weight

    @cached_property
    def pulls(self) -> np.ndarray:
        """By what an error of 1 is multiplied in each row or cluster, (units, k)."""
        pulls = self.columns * self.weight[:, None]
        return pulls if self.are_independent else self._totals(pulls)

    @cached_property
    def largest_pull(self) -> tuple[float, np.ndarray]:
        """The largest norm of what multiplies an error in a row or cluster, and its direction."""
        if self.are_independent:
            square = self.weight * (self.leverage - self.weight / self.design.fitted.share)
            row = int(square.argmax())
            own = self.weight[row] * self.design.orthonormal_of(self._place(np.array([row])))[0]
        else:
            own = self.pulls[int(np.square(self.pulls).sum(axis=1).argmax())]
        size = float(np.linalg.norm(own))
        return size, own / (size or 1.0)

    @cached_property
    def largest_leverage(self) -> float:
        """The largest g_i'V⁻¹g_i over rows or clusters: none adds more to a variance."""
        if self.are_independent and len(self.coordinates) == 1:
            square = self._largest_at_points(self._row_errors[:, 0]) ** 2
            return float((leverages(np.asarray(self.design.q), self.covariance) * square).max())
        return float(leverages(self.scores, self.covariance).max())

    @cached_property
    def _cluster_scores(self) -> tuple[np.ndarray, np.ndarray]:
        """CR3 sums (clusters, m·k), and the directions that single clusters determine, (a, k)."""
        k, m = self.design.fitted.n_columns, len(self.coordinates)
        x = self.design.fit_columns[self._seen]
        weighted = x * self.weight[:, None]
        pulled = weighted[:, None, :] * self._residual[:, :, None]
        sums, alone = np.empty((self.n_units, m, k)), [np.empty((0, k))]
        for clusters, rows, starts in self._cluster_blocks(x.shape[1]):
            gram = np.add.reduceat(x[rows][:, :, None] * weighted[rows][:, None, :], starts)
            missing = np.add.reduceat(pulled[rows], starts)
            values, vectors = np.linalg.eigh(np.eye(x.shape[1]) - gram)
            solved = missing @ vectors / np.maximum(values, 1e-9)[:, None, :]
            sums[clusters] = (solved @ np.swapaxes(vectors, 1, 2))[:, :, -k:]
            alone.append(np.swapaxes(vectors, 1, 2)[values < _ALONE][:, -k:])
        if self._half:
            for j, c in enumerate(self.coordinates):
                turned = self.columns * self._explained[:, j : j + 1]
                turned = turned - c / self.design.fitted.share
                sums[:, j] += self._half * self._totals(self.weight[:, None] * turned)
        return sums.reshape(self.n_units, -1), np.vstack(alone)

    def _cluster_blocks(self, width: int) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
        """Yield clusters, their rows in order, and where each begins among these."""
        order = np.argsort(self._codes, kind="stable")
        ends = np.cumsum(np.bincount(self._codes))
        n_blocks = min(self.n_units, 1 + len(order) * width**2 // _PRODUCTS)
        for clusters in np.array_split(np.arange(self.n_units), n_blocks):
            first = ends[clusters[0] - 1] if clusters[0] else 0
            starts = np.r_[first, ends[clusters[:-1]]] - first
            yield clusters, order[first : ends[clusters[-1]]], starts

    @cached_property
    def _alone(self) -> np.ndarray:
        """Directions that a single row or cluster determines, shape (a, k)."""
        if not self.are_independent:
            return self._cluster_scores[1]
        rows = np.flatnonzero(self._are_alone)
        if not len(rows):
            return np.empty((0, self.design.fitted.n_columns))
        return self.design.orthonormal_of(self._place(rows)) * np.sqrt(self.weight[rows])[:, None]

    @cached_property
    def _are_alone(self) -> np.ndarray:
        """Which rows determine a coefficient alone, and not a covariate."""
        are_alone = self.leverage > 1 - _ALONE
        if are_alone.any():
            squares = self.design.on_rows(self.design.fitted.squares(self.design.q))[self._seen]
            are_alone &= squares * self.weight > _ALONE
        return are_alone

    @property
    def any_alone(self) -> bool:
        """Whether some coefficient is determined by a single row or cluster."""
        if not self.are_independent:
            return bool((np.abs(self._alone) > 1e-3).any())
        return bool(self._are_alone.any())

    def _place(self, rows: np.ndarray) -> np.ndarray:
        """Return rows that the kernel sees by their numbers among all."""
        return rows if self.design.inside is None else self._seen[rows]

    def determined_alone(self, directions: np.ndarray) -> np.ndarray:
        """Tell of directions (d, m·k), or of one output, whether a single unit determines one."""
        if not len(self._alone):
            return np.zeros(len(directions), dtype=bool)
        own = directions.reshape(len(directions), -1, self._alone.shape[1])
        size = np.abs(own @ self._alone.T).max(axis=(1, 2))
        return size > 1e-6 * np.linalg.norm(directions, axis=1)

    @cached_property
    def covariance(self) -> np.ndarray:
        """Of all coordinates, (m·k, m·k)."""
        if not self.are_independent:
            return self.scores.T @ self.scores
        errors = self._row_errors.T
        gram = np.block([[self._gram(one * other) for other in errors] for one in errors])
        if not self._half:
            return gram
        means = [self._at_points(self._mean * one) @ np.asarray(self.design.q) for one in errors]
        crossed = np.outer(np.concatenate(means), self.coordinates)
        center = float(self._mean @ self._mean) * np.outer(self.coordinates, self.coordinates)
        return gram - crossed - crossed.T + center

    def _at_points(self, of_rows: np.ndarray) -> np.ndarray:
        """Return numbers of the rows that the kernel sees, summed up at their points."""
        if self._index is None:
            return of_rows
        return np.bincount(self._index, of_rows, minlength=len(self.design.points))

    def _largest_at_points(self, of_rows: np.ndarray) -> np.ndarray:
        """Return the largest absolute number at every point."""
        sizes = np.abs(of_rows)
        if self._index is None:
            return sizes
        largest = np.zeros(len(self.design.points))
        np.maximum.at(largest, self._index, sizes)
        return largest

    def _gram(self, of_rows: np.ndarray) -> np.ndarray:
        """Return Q' diag(of_rows) Q."""
        return _product(np.asarray(self.design.q), self._at_points(of_rows))

    @property
    def n_summed(self) -> int:
        """Over how many rows, points or clusters moments are sums."""
        is_by_point = self.are_independent and len(self.coordinates) == 1
        return len(self.design.points) if is_by_point else self.n_units

    @property
    def covariance_at_points(self) -> np.ndarray:
        """Of the sums of errors of all outputs at every point, (points, m, m)."""
        errors, m = self._row_errors.T, len(self.coordinates)
        sums = [self._at_points(one * other) for one in errors for other in errors]
        return np.stack(sums, axis=-1).reshape(-1, m, m)

    def moments(self, directions: np.ndarray, output: int | None = None) -> Moments:
        """Return the moments in some directions.

        Parameters
        ----------
        directions : ndarray of shape (d, m·k), or (d, k) of one output
            Vectors b of c·b.
        output : int, default=None
            Which output; None for all of them together.
        """
        m = len(self.coordinates)
        if output is None and m == 1:
            output = 0
        if output is not None and self.are_independent and not self._half:
            sums = self._point_sums(directions, output)
        else:
            own = [np.zeros_like(directions)] * m
            if output is None:
                own = np.split(directions, m, axis=1)
            else:
                own[output] = directions
            sums = self._row_sums(own) if self.are_independent else self._cluster_sums(own)
        *added, largest = zip(*sums, strict=True)
        second, third, fourth, pull2, pull3 = (np.sum(own, axis=0) for own in added)
        pooled = _ratio(pull3, pull2) * self.typical
        return Moments(second, third, fourth, np.max(largest, axis=0), pooled)

    def _point_sums(self, directions: np.ndarray, output: int) -> Iterator[_Sums]:
        """Yield sums over blocks of points, from powers of errors that are summed up there."""
        error = self._row_errors[:, output]
        square, largest = error * error, self._largest_at_points(error)
        powers = [square, square * error, square * square, self.weight**2, self.weight**3]
        second, third, fourth, weight2, weight3 = map(self._at_points, powers)
        q = np.asarray(self.design.q)
        for rows in _blocks(len(q), len(directions)):
            pull = directions @ q[rows].T
            size, square = np.abs(pull), pull * pull
            yield (
                square @ second[rows],
                (square * pull) @ third[rows],
                (square * square) @ fourth[rows],
                square @ weight2[rows],
                (square * size) @ weight3[rows],
                (largest[rows] * size).max(axis=1),
            )

    def _row_sums(self, directions: list[np.ndarray]) -> Iterator[_Sums]:
        """Yield sums over blocks of rows, in directions (d, k) of every output together."""
        q = self.design.q
        tables = None if self._index is None else [(q @ own.T).T for own in directions]
        for rows in _blocks(len(self.weight), len(directions[0])):
            eta, pull2 = np.zeros((2, len(directions[0]), len(self.weight[rows])))
            for j, own in enumerate(directions):
                at = own @ q[rows].T if tables is None else tables[j][:, self._index[rows]]
                center = np.outer(own @ self.coordinates[j], self._mean[rows])
                eta += at * self._row_errors[rows, j] - center
                pull2 += np.square(at * self.weight[rows])
            yield _powers_of(eta, pull2)

    def group_moments(self, origin: np.ndarray, output: int) -> Moments:
        """Return the moments of groups' means less a mean of them, in closed form.

        With o the weights of that mean, a row of group p adds (1 − o_p)/w_p times its error to that
        of its group, and takes it o_p/w_p times from that of every other one.
        """
        kernel, error, weight = self.design.fitted, self._row_errors[:, output], self.weight
        taken = origin / (kernel.share * kernel.weights)
        added = (1 - origin) / (kernel.share * kernel.weights)

        def of_all(power: np.ndarray, exponent: int, sign: float = 1.0) -> np.ndarray:
            sums = self._at_points(power)
            others = taken**exponent * sums
            return sums * added**exponent + sign * (others.sum() - others)

        sizes = self._largest_at_points(error)
        first, second = np.sort(taken * sizes)[[-1, -2]]
        others = np.where(taken * sizes == first, second, first)
        pull2, pull3 = of_all(weight**2, 2), of_all(weight**3, 3)
        return Moments(
            of_all(error**2, 2),
            of_all(error**3, 3, -1.0),
            of_all(error**4, 4),
            np.maximum(sizes * added, others),
            _ratio(pull3, pull2) * self.typical,
        )

    @property
    def has_many_groups(self) -> bool:
        """Whether one output is of so many groups that its covariance is no matrix."""
        kernel, is_single = self.design.fitted, len(self.coordinates) == 1
        is_long = kernel.has_closed_form and kernel.n_columns > MAX_PATTERNS
        return is_long and is_single and self.are_independent

    @property
    def rank_of_groups(self) -> int:
        """Rank of the covariance of the deviations of groups in all outputs."""
        own = self.covariance_at_points
        total = np.linalg.eigvalsh(own.sum(axis=0))
        ranks = (np.linalg.eigvalsh(own) > 1e-12 * total[-1]).sum()
        return int(min(ranks, (len(own) - 1) * (total > 1e-12 * total[-1]).sum()))

    def _cluster_sums(self, directions: list[np.ndarray]) -> Iterator[_Sums]:
        """Yield the same over blocks of clusters."""
        joined = np.hstack(directions)
        for rows in _blocks(self.n_units, len(joined)):
            pulls = (own @ self.pulls[rows].T for own in directions)
            yield _powers_of(joined @ self.scores[rows].T, sum(map(np.square, pulls)))

    def ellipsoid_of_groups(self) -> tuple[np.ndarray, float]:
        """Return variances of the groups' sums that make the covariance below, and its freedom.

        The part of the coordinates that they determine is all but one: λ_p is that of a projection.
        """
        p, square, weight2 = self.design.fitted.weights, self._row_errors[:, 0] ** 2, self.weight**2
        powers = (square, square**2, weight2, weight2**2)
        second, fourth, pull2, pull4 = map(self._at_points, powers)
        typical = self.typical**2 * _leverages_of_groups(p, pull2) * pull4
        variances = second + 0.5 * (_leverages_of_groups(p, second) * fourth + typical)
        total = float(np.square(_leverages_of_groups(p, variances)) @ fourth)
        return variances, self._freedom(len(p) - 1, total)

    def covariance_of_groups(self, weight: Any = 1.0, beside: Any = 0.0) -> GroupCovariance:
        """Return the covariance of one output's coordinates, of rows of weights, and variances."""
        error, mean = self._row_errors[:, 0], self._mean
        return GroupCovariance(
            self.design.fitted,
            self.coordinates[0],
            self._at_points(weight * error**2) + beside,
            self._at_points(weight * error * mean),
            float((weight * mean**2).sum()),
        )

    def ellipsoid_of_deviations(self) -> tuple[GroupCovariance, float]:
        """Return what :meth:`ellipsoid` does, of many groups."""
        k, weight2 = self.design.fitted.n_columns, self.weight**2
        rows = self._index, self._row_errors[:, 0], self._mean
        leverage = self.covariance_of_groups().leverages(*rows)
        p, pull2, pull4 = self.design.fitted.weights, *map(self._at_points, (weight2, weight2**2))
        typical = self.typical**2 * _leverages_of_groups(p, pull2) * pull4
        found = self.covariance_of_groups(1 + 0.5 * leverage, 0.5 * typical)
        return found, self._freedom(k, float(np.square(found.leverages(*rows)).sum()))

    def _freedom(self, k: int, total: float) -> float:
        n_free = k * (k + 1) / total if total else np.inf
        return max(min(n_free, self.n_free + k - 1.0), k + 1.0)

    def ellipsoid(self, n_columns: int | None = None) -> tuple[np.ndarray, float]:
        r"""Return a covariance of the (first) coordinates of one output, its degrees of freedom.

        Half a row that the sample may lack is added in every direction, and half a typical one.
        The degrees of freedom are those of Hotelling's T² as Zhang, Pustejovsky and Tipton have
        them (HTZ), with what they sum over plugged in: ν = k(k + 1)/Σ λ_i², λ_i = g_i'V⁻¹g_i.
        """
        k = n_columns or self.design.fitted.n_columns
        if self.are_independent and not self._half:
            # λ of the rows at a point differ by the squares of their errors alone.
            g = a = np.asarray(self.design.q)
            square, weight2 = self._row_errors[:, 0] ** 2, self.weight**2
            powers = (square, square**2, weight2, weight2**2)
            second, fourth, pull2, pull4 = map(self._at_points, powers)
        else:
            g, a = self.scores[:, :k], self.pulls[:, :k]
            second = fourth = pull2 = pull4 = np.ones(self.n_units)
        V, pull = _product(g, second), _product(a, pull2)
        typical = self.typical**2 * _product(a, leverages(a, pull) * pull4)
        V = V + 0.5 * (_product(g, leverages(g, V) * fourth) + typical)
        return V, self._freedom(k, float(np.square(leverages(g, V)) @ fourth))

    def describe_heaviest(self, direction: np.ndarray) -> str:
        """Return which level, or cluster, adds the most in a direction, in words; "" if none."""
        outputs = np.split(direction, len(self.coordinates))
        if not self.are_independent:
            worst = int(np.abs(self.scores @ direction).argmax())
            return f"of {self.n_units} groups {self._names[worst]} adds the most"
        pulls = np.column_stack([self.design.explained(own) for own in outputs])[self._seen]
        # The error of a row that is alone is not known.
        is_alone = self._are_alone
        eta = np.abs((pulls * self._row_errors).sum(axis=1))
        sizes = np.linalg.norm(pulls, axis=1)
        typical = self.typical * self.weight * sizes
        row = int(np.where(is_alone & (sizes > 0), np.inf, np.maximum(eta, typical)).argmax())
        name, same = self.design.place(int(self._place(np.array(row))))
        n_rows = int(same.sum())
        if n_rows == 1 and not is_alone[row]:
            return ""  # a number, and no level
        words = f"{name} has {n_rows} row{'s' * (n_rows > 1)}"
        heaviest = int(np.argmax([np.abs(own).max() for own in outputs]))
        labels = self._given[same, heaviest]
        if self._are_labels and (labels >= 0).all():
            words += f", {int(labels.sum())} of them labelled 1"
        return words


def lonely_place(design: Design, groups: np.ndarray | None) -> str:
    """Return a level of one row, or a cluster, that determines a coefficient alone, in words.

    With it no limit is finite; "" where there is none.
    """
    errors = Errors(design, np.full((design.n_rows, 1), 0.5), groups=groups)
    return errors.describe_heaviest(np.ones(design.fitted.n_columns)) if errors.any_alone else ""


def null_covariance(design: Any, z: np.ndarray, groups: np.ndarray | None) -> np.ndarray:
    """Return the covariance of c of targets that do not depend on the attribute, shape (k, k).

    Of rows it is that of their permutations, of clusters that of their sums.
    """
    if groups is None:
        return design.null_covariance(z)
    rest = design.residual(z)
    weighted = design.shares(slice(None)) * (rest - design.mean(rest))
    codes = np.unique(groups, return_inverse=True)[1]
    sums = np.stack([np.bincount(codes, own) for own in (design.orthonormal.T * weighted)])
    return len(sums.T) / (len(sums.T) - 1) * sums @ sums.T


def _leverages_of_groups(p: np.ndarray, variances: np.ndarray) -> np.ndarray:
    """Return Q_j'V⁻¹Q_j of groups of weights p whose sums have variances."""
    inverse = _ratio(np.ones_like(p), variances)
    share = p**2 * inverse / (p**2 @ inverse) if (variances > 0).all() else 0.0
    return inverse * (1 - share)


def _ratio(numbers: np.ndarray, to: np.ndarray) -> np.ndarray:
    """Return a quotient, 0 where nothing is pulled."""
    return np.divide(numbers, to, out=np.zeros_like(to), where=to > 0)


def _product(g: np.ndarray, weight: np.ndarray) -> np.ndarray:
    blocks = ((g[rows] * weight[rows, None]).T @ g[rows] for rows in row_blocks(len(g)))
    return sum(blocks, np.zeros((g.shape[1], g.shape[1])))


def leverages(g: np.ndarray, covariance: np.ndarray) -> np.ndarray:
    """Return g_i'V⁻¹g_i of the rows of a matrix, in the directions that V has."""
    values, vectors = np.linalg.eigh(covariance)
    kept = values > 1e-12 * values[-1]
    along = g @ (vectors[:, kept] / np.sqrt(values[kept]))
    return np.asarray(np.einsum("ij,ij->i", along, along))


def _powers_of(eta: np.ndarray, pull2: np.ndarray) -> _Sums:
    """Return sums of the powers of what rows add (d, r), and of the squares of their pulls."""
    square = eta * eta
    pairs = ((eta, eta), (square, eta), (square, square), (pull2, np.sqrt(pull2)))
    second, third, fourth, pull3 = (np.einsum("ij,ij->i", *pair) for pair in pairs)
    return second, third, fourth, pull2.sum(axis=1), pull3, np.abs(eta).max(axis=1)


def _blocks(n_rows: int, n_directions: int) -> Iterator[slice]:
    step = max(1, _BLOCK // max(n_directions, 1))
    return (slice(start, start + step) for start in range(0, n_rows, step))
