"""The populations of :mod:`benchmarks.coverage`: what is drawn, and what is true of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from itertools import product
from math import gamma
from typing import Any, NamedTuple

import numpy as np

from gedi_sklearn import PolynomialKernel
from gedi_sklearn.metrics import gedi

FEW, CLUSTERS, GROUPS = "few events, small groups, skewed values", "clusters", "groups"
WELL, POWERS = "well filled", "powers of a normal attribute"
SUMS = "sums of an accumulator"
COEFFICIENTS = {
    "0": (0.0, 0.0, 0.0, 0.0, 0.0),
    "(.5, 0, ...)": (0.5, 0.0, 0.0, 0.0, 0.0),
    "(.5, -.3, .1, 0, 0)": (0.5, -0.3, 0.1, 0.0, 0.0),
    "dense": (4.0, -3.0, 2.0, 1.0, -0.5),
}


class Rows(NamedTuple):
    """An attribute, targets, and clusters of rows if there are any."""

    x: np.ndarray
    y: np.ndarray
    groups: np.ndarray | None = None


@dataclass
class Cell:
    """A population and what is measured of it.

    Attributes
    ----------
    family, name : str
        Where it belongs, and what it is called.
    draw : callable
        Takes a generator and a number of rows.
    n : int
        Number of rows, or of clusters.
    options : dict
        Keywords of `gedi_inference`.
    truth : float or None
        The true value; None where a million rows tell.
    what : {"gedi", "fitted", "batch", "didi", "sums"}
        Which limit.
    alpha : tuple of float
        Coefficients of the powers of a normal attribute, where that is what is drawn.
    """

    family: str
    name: str
    draw: Callable[[np.random.Generator, int], Rows]
    n: int
    options: dict[str, Any] = field(default_factory=dict)
    truth: float | None = None
    what: str = "gedi"
    alpha: tuple[float, ...] = ()

    @property
    def n_samples(self) -> int:
        """Samples of the cell: fewer where there are several coefficients."""
        return 500 if self.what != "gedi" or "kernel" in self.options else 2000

    @property
    def key(self) -> tuple[str, str, str]:
        """What a row of the results is known by."""
        return self.family, self.name, str(self.n)

    @cached_property
    def true_value(self) -> float:
        """What is true of the population."""
        if self.truth is not None:
            return self.truth
        rows = self.draw(np.random.default_rng(99), 20_000 if self.family == CLUSTERS else 10**6)
        return float(gedi(rows.y, sensitive_features=rows.x, **self.options))


def cells() -> Iterator[Cell]:
    """Yield all cells, the most telling families first."""
    yield from _rare()
    yield from _clusters()
    yield from _groups()
    yield from _well()
    yield from _sums()
    yield from _powers()


def _two(share: float, p0: float, p1: float) -> Callable[[np.random.Generator, int], Rows]:
    def draw(rng: np.random.Generator, n: int) -> Rows:
        group = (rng.random(n) < share) * 1.0
        return Rows(group, (rng.random(n) < np.where(group == 1, p1, p0)) * 1.0)

    return draw


def _numbers(
    attribute: Callable[[np.random.Generator, int], np.ndarray],
    target: Callable[[np.random.Generator, np.ndarray], np.ndarray],
) -> Callable[[np.random.Generator, int], Rows]:
    def draw(rng: np.random.Generator, n: int) -> Rows:
        x = attribute(rng, n)
        return Rows(x, target(rng, x))

    return draw


def _normal(rng: np.random.Generator, n: int) -> np.ndarray:
    return rng.normal(size=n)


def _uniform(rng: np.random.Generator, n: int) -> np.ndarray:
    return rng.uniform(-1, 1, n)


def _group_of(share: float) -> Callable[[np.random.Generator, int], np.ndarray]:
    return lambda rng, n: (rng.random(n) < share) * 1.0


def _bernoulli(rng: np.random.Generator, p: np.ndarray) -> np.ndarray:
    return (rng.random(len(p)) < p) * 1.0


def _logit(rng: np.random.Generator, x: np.ndarray) -> np.ndarray:
    return _bernoulli(rng, 1 / (1 + np.exp(1 - 1.5 * x + x**3)))


def _quintic(rng: np.random.Generator, x: np.ndarray) -> np.ndarray:
    return 0.5 * x - 0.5 * x**3 + rng.normal(size=len(x))


def _skewed(rng: np.random.Generator, x: np.ndarray) -> np.ndarray:
    return 2 * x + (1 + 4 * x) * rng.exponential(size=len(x)) ** 1.5


def _of_levels(shares: list[float], rates: list[float]) -> Callable[..., Rows]:
    def draw(rng: np.random.Generator, n: int) -> Rows:
        level = rng.choice(len(shares), p=shares, size=n)
        names = np.array([f"level {j}" for j in range(len(shares))])
        return Rows(names[level], _bernoulli(rng, np.array(rates)[level]))

    return draw


def _fixed_group(m: int, spread: float) -> Callable[[np.random.Generator, int], Rows]:
    def draw(rng: np.random.Generator, n: int) -> Rows:
        group = (np.arange(n) < m) * 1.0
        return Rows(group, group + np.where(group == 1, spread, 1.0) * rng.normal(size=n))

    return draw


def _fixed_levels(m: int, n: int) -> tuple[np.ndarray, np.ndarray]:
    level = np.r_[np.zeros(m, int), 1 + np.arange(n - m) % 2]
    return np.array(list("abc"))[level], np.array([1.0, 0.0, 0.3])[level]


def _of_fixed_levels(
    levels: np.ndarray, means: np.ndarray, rng: np.random.Generator, n: int
) -> Rows:
    return Rows(levels, means + rng.normal(size=n))


def _outliers(rng: np.random.Generator, n: int) -> np.ndarray:
    return rng.normal(size=n) * np.where(rng.random(n) < 0.02, 8, 1)


def _cubic() -> PolynomialKernel:
    return PolynomialKernel(3, standardize=True)


def _rare() -> Iterator[Cell]:
    """Yield populations of few events, small groups, skewed values and far rows."""
    family = FEW
    for share, p0, p1, n in (
        (0.03, 0.02, 0.08, 500),
        (0.03, 0.005, 0.03, 2000),
        (0.1, 0.01, 0.04, 500),
        (0.5, 0.02, 0.04, 1000),
        (0.1, 0.01, 0.03, 5000),
    ):
        name = f"group of {share:.0%}, rates {p0:g} and {p1:g}"
        yield Cell(family, name, _two(share, p0, p1), n, truth=p1 - p0)
    skewed = 2 + 4 * gamma(2.5)
    for share, n in ((0.03, 300), (0.03, 1000), (0.1, 1000)):
        draw = _numbers(_group_of(share), _skewed)
        name = f"group of {share:.0%}, exponential to the 1.5"
        yield Cell(family, name, draw, n, truth=skewed)
    share = np.sqrt(0.03 * 0.97)
    by_deviation = {"norm": "sd"}
    name = "group of 3%, rates 0.02 and 0.08, sd"
    yield Cell(family, name, _two(0.03, 0.02, 0.08), 500, by_deviation, truth=0.06 * share)
    yield Cell(family, "group of one row", _fixed_group(1, 1.0), 150, truth=1.0)
    alone, truth = "group of one row, sd", np.sqrt(149) / 150
    yield Cell(family, alone, _fixed_group(1, 1.0), 150, by_deviation, truth=truth)
    yield Cell(family, "group of 5 rows, deviation 3", _fixed_group(5, 3.0), 300, truth=1.0)
    for m, name in ((1, "three levels, one of one row"), (2, "three levels, one of two rows")):
        levels, means = _fixed_levels(m, 150)
        truth = float(gedi(means, sensitive_features=levels, kernel=1))
        draw = partial(_of_fixed_levels, levels, means)
        yield Cell(family, name, draw, 150, {"kernel": 1}, truth=truth)
    e = np.e
    singles: tuple[tuple[str, Any, Any, int, float], ...] = (
        (
            "lognormal attribute, curved",
            lambda r, n: np.exp(r.normal(size=n)),
            lambda r, x: np.log(x) + r.normal(size=len(x)),
            500,
            np.sqrt(e) / ((e - 1) * e),
        ),
        ("noise 3|x|", _uniform, lambda r, x: x + 3 * np.abs(x) * r.normal(size=len(x)), 300, 1.0),
        ("noise t(2.5)", _normal, lambda r, x: x + r.standard_t(2.5, len(x)), 300, 1.0),
        (
            "attribute t(3)",
            lambda r, n: r.standard_t(3, n),
            lambda r, x: x + r.normal(size=len(x)),
            300,
            1.0,
        ),
        (
            "noise lognormal",
            _normal,
            lambda r, x: 0.4 * x + np.exp(r.normal(size=len(x))),
            300,
            0.4,
        ),
        (
            "2% of rows 8 times as far, unequal variance",
            _outliers,
            lambda r, x: 0.5 * x + r.normal(size=len(x)) * (1 + 0.5 * np.abs(x)),
            500,
            0.5,
        ),
        (
            "scores near 0, group of 5%",
            _group_of(0.05),
            lambda r, x: r.beta(0.2, np.where(x == 1, 1.8, 3.8)),
            400,
            0.05,
        ),
        (
            "counts, group of 5%",
            _group_of(0.05),
            lambda r, x: r.poisson(np.where(x == 1, 0.3, 0.1)) * 1.0,
            600,
            0.2,
        ),
    )
    for name, attribute, target, n, truth in singles:
        yield Cell(family, name, _numbers(attribute, target), n, truth=truth)
    four = _of_levels([0.6, 0.25, 0.12, 0.03], [0.1, 0.2, 0.15, 0.4])
    rare = _numbers(_normal, lambda r, x: _bernoulli(r, 0.05 + 0.04 * np.tanh(x)))
    yield Cell(family, "slope of 5% events", rare, 500, {})
    yield Cell(family, "four levels, the rarest 3%", four, 300, {"kernel": 1})
    yield Cell(family, "four levels, sd", four, 300, {"kernel": 1, "norm": "sd"})
    logit = _numbers(_uniform, _logit)
    for norm in ("l1", "sd"):
        yield Cell(
            family, f"logit, degree 3, {norm}", logit, 300, {"kernel": _cubic(), "norm": norm}
        )
    options = {"kernel": PolynomialKernel(5, standardize=True)}
    yield Cell(family, "degree 5", _numbers(_uniform, _quintic), 2000, options)
    spline = {"kernel": "spline", "norm": "sd"}
    yield Cell(family, "spline of 5% events, sd", rare, 500, spline)
    noise = _numbers(_normal, lambda r, x: 0.4 * x + np.exp(r.normal(size=len(x))))
    cubic = {"kernel": _cubic(), "norm": "sd"}
    yield Cell(family, "noise lognormal, degree 3, sd", noise, 300, cubic)


def _clusters() -> Iterator[Cell]:
    """Yield persons with several rows, half of whose variance they share."""

    def persons(
        least: int, most: int, *, is_binary: bool = False, by_row: bool = False
    ) -> Callable[[np.random.Generator, int], Rows]:
        def draw(rng: np.random.Generator, n: int) -> Rows:
            groups = np.repeat(np.arange(n), rng.integers(least, most + 1, n))
            x = rng.uniform(-1.7, 1.7, len(groups) if by_row else n)
            x = x if by_row else x[groups]
            noise = rng.normal(size=n)[groups] + rng.normal(size=len(groups))
            y = 0.5 * x + np.sqrt(0.5) * noise
            return Rows(x, (y > 0.8) * 1.0 if is_binary else y, groups)

        return draw

    for n, least, most in ((60, 30, 30), (30, 50, 50), (60, 1, 59), (20, 20, 20), (10, 30, 30)):
        rows = f"{least}" if least == most else f"{least} to {most}"
        name = f"{n} persons of {rows} rows"
        yield Cell(CLUSTERS, name, persons(least, most), n, truth=0.5)
    yield Cell(CLUSTERS, "60 persons, x by row", persons(30, 30, by_row=True), 60, truth=0.5)
    yield Cell(CLUSTERS, "60 persons, labels", persons(30, 30, is_binary=True), 60)
    plain = persons(30, 30)
    yield Cell(CLUSTERS, "60 persons, degree 3", plain, 60, {"kernel": _cubic()})
    options = {"kernel": "spline", "norm": "sd"}
    yield Cell(CLUSTERS, "60 persons, spline, sd", plain, 60, options)


def _groups() -> Iterator[Cell]:
    """Yield sums over groups and classes."""

    def of_groups(shares: np.ndarray, n_classes: int) -> Callable[..., Rows]:
        def draw(rng: np.random.Generator, n: int) -> Rows:
            group = rng.choice(len(shares), p=shares, size=n)
            own = 0.1 + 0.4 * np.arange(len(shares)) / len(shares)
            is_last = rng.random(n) < own[group]
            if n_classes == 0:
                return Rows(group, own[group] + rng.normal(size=n))
            others = rng.integers(0, n_classes - 1, n)
            return Rows(group, np.where(is_last, n_classes - 1, others))

        return draw

    tenths = np.arange(11, 61)
    for shares, n in (
        (np.array([0.6, 0.3, 0.1]), 300),
        (np.array([0.6, 0.3, 0.1]), 2000),
        (tenths / tenths.sum(), 5000),
    ):
        means = 0.1 + 0.4 * np.arange(len(shares)) / len(shares)
        truth = float(np.abs(means - shares @ means).sum())
        # What a class has more the others have less.
        for n_classes, what, factor in (
            (0, "real targets", 1),
            (2, "two classes", 2),
            (3, "three classes", 2),
        ):
            draw, name = of_groups(shares, n_classes), f"DIDI of {len(shares)} groups, {what}"
            yield Cell(GROUPS, name, draw, n, truth=factor * truth, what="didi")


def _well() -> Iterator[Cell]:
    """Yield samples in which the plain rule holds, for the width."""
    slope: dict[str, tuple[Any, Any, float | None]] = {
        "uniform attribute": (
            lambda r, n: r.uniform(-1.7, 1.7, n),
            lambda r, x: 0.5 * x + r.normal(size=len(x)),
            0.5,
        ),
        "normal attribute": (_normal, lambda r, x: 0.5 * x + r.normal(size=len(x)), 0.5),
        "labels": (_normal, lambda r, x: _bernoulli(r, 1 / (1 + np.exp(-0.8 * x))), None),
    }
    for n in (300, 2000, 20_000):
        for name, (attribute, target, truth) in slope.items():
            yield Cell(WELL, name, _numbers(attribute, target), n, truth=truth)
        halves = _two(0.5, 0.3, 0.5)
        yield Cell(WELL, "two halves, rates .3 and .5", halves, n, truth=0.2)
        logit = _numbers(_uniform, _logit)
        for norm in ("l1", "sd"):
            options = {"kernel": _cubic(), "norm": norm}
            yield Cell(WELL, f"logit, degree 3, {norm}", logit, n, options)
        spline = {"kernel": "spline", "norm": "sd"}
        attribute, target, _ = slope["normal attribute"]
        yield Cell(WELL, "spline, sd", _numbers(attribute, target), n, spline)
        fifth = {"kernel": PolynomialKernel(5, standardize=True)}
        yield Cell(WELL, "degree 5", _numbers(_uniform, _quintic), n, fifth)


def _sums() -> Iterator[Cell]:
    """Yield rates of two levels of text, the smaller of which has few events or many."""
    for share, p0, p1 in ((0.1, 0.01, 0.04), (0.5, 0.02, 0.04), (0.03, 0.3, 0.5)):
        for events in (6, 12, 30, 60, 120):
            name = f"level of {share:.0%}, rates {p0:g} and {p1:g}, {events} events"
            n, draw = round(events / p1 / share), _two(share, p0, p1)
            yield Cell(SUMS, name, draw, n, truth=p1 - p0, what="sums")


def _powers() -> Iterator[Cell]:
    """Yield powers of a normal attribute, with noise of equal and unequal variance."""
    kinds = (("l1", "gedi"), ("sd", "gedi"), ("l1", "fitted"), ("sd", "fitted"), ("l1", "batch"))
    for n, degree, shown, noise in product((500, 5000), (1, 2, 5), COEFFICIENTS, ("equal", "|x|")):
        alpha = COEFFICIENTS[shown][:degree]
        target = partial(_power, np.array(alpha), noise == "|x|")
        for norm, what in kinds:
            name = f"degree {degree}, {shown}, noise {noise}, {norm}" + f", {what}" * (
                what != "gedi"
            )
            options, truth = {"kernel": degree, "norm": norm}, size_of(alpha, norm)
            draw = _numbers(_normal, target)
            yield Cell(POWERS, name, draw, n, options, truth, what, alpha)


def _power(
    alpha: np.ndarray, is_hetero: bool, rng: np.random.Generator, x: np.ndarray
) -> np.ndarray:
    size = 0.5 + 0.5 * np.abs(x) if is_hetero else 1.0
    powers = x[:, None] ** np.arange(1, len(alpha) + 1)
    return powers @ alpha + size * rng.normal(size=len(x))


def size_of(alpha: Sequence[float], norm: str) -> float:
    """Return the true indicator of coefficients of the powers of a standard normal attribute."""
    if norm == "l1":
        return float(np.abs(alpha).sum())
    moments, powers = (1, 0, 1, 0, 3, 0, 15, 0, 105, 0, 945), range(1, len(alpha) + 1)
    covariance = [[moments[i + j] - moments[i] * moments[j] for j in powers] for i in powers]
    return float(np.sqrt(np.array(alpha) @ np.array(covariance) @ np.array(alpha)))
