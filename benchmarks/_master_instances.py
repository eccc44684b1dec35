"""Random projections of classes that a master is judged by: what it is given, from a seed.

Two generators. :func:`cycled` takes kind, number of classes and number of rows in turn, so that
each has its share of any range of seeds; :func:`drawn` draws all of them, with larger samples and
covariates among them. In both a latent score depends on an attribute, the targets are drawn from
it, and the predictions are what a model that knows the score would say.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks._constraints import named_constraint, named_kernel
from gedi_sklearn import DidiConstraint

KINDS = ("l1", "fine", "sd", "didi", "several")
# Seeds of a generator by default.
N_SEEDS = 150
# Share of instances with a second attribute, and of the others that have covariates.
_SECOND_ATTRIBUTE, _COVARIATES = 0.12, 0.1
_RARE = 0.2

# What the cycled ones take in turn, and what they draw.
_CYCLED_CLASSES = (2, 3, 2, 5, 2, 10, 3, 20)
_CYCLED_ROWS = (200, 2000, 50, 200, 2000, 500, 24_000, 2000, 200, 2000, 1000)
_CYCLED_KINDS = ("l1", "fine", "sd", "didi", "l1")
_CYCLED_ATTRIBUTES = ("uniform", "8 values", "year", "lognormal", "skewed", "poisson")
_CYCLED_KERNELS = (
    ("polynomial", 1),
    ("polynomial", 3),
    ("polynomial", 5),
    ("spline", 1),
    ("fourier", 2),
)
_CYCLED_PREDICTIONS = {"none": 0.35, "probabilities": 0.5, "labels": 0.15}
_CYCLED_THRESHOLDS = (0.02, 0.05, 0.1, 0.2, 0.5)
_GROUPS = (5, 20, 100, 1000)
# Seeds of the cycled ones start here.
_FIRST_SEED = 7000

# What the others draw.
_DRAWN_ROWS = {
    50: 0.12,
    100: 0.12,
    200: 0.14,
    500: 0.14,
    1000: 0.14,
    2000: 0.12,
    5000: 0.12,
    20_000: 0.07,
    100_000: 0.03,
}
_DRAWN_CLASSES = (2, 2, 2, 3, 5, 10)
_DRAWN_ATTRIBUTES = ("uniform", "few values", "lognormal", "year", "skewed", "poisson")
_DRAWN_KERNELS = ("polynomial", "polynomial", "fourier", "spline")
_DRAWN_DEGREES = (1, 2, 3, 5)
_DRAWN_KINDS = ("l1", "l1", "fine")
_DRAWN_PREDICTIONS = {"none": 0.3, "probabilities": 0.4, "constant": 0.15, "labels": 0.15}
_DRAWN_THRESHOLDS = (0.05, 0.2, 0.2, 0.5)
_FEW_VALUES = (3, 8, 40)


@dataclass(frozen=True)
class Instance:
    """What a projection is given, and what it is like.

    Attributes
    ----------
    generator : {"cycled", "drawn"}
        Where it comes from.
    seed : int
        Its seed there.
    n_classes : int
        Number of classes.
    y : ndarray of int, shape (n,)
        Targets 0…K − 1.
    y_pred : ndarray of shape (n,) or (n, K), or None
        Predictions: labels, or probabilities of the second of two classes or of all.
    sensitive_features : ndarray of shape (n,) or (n, 2)
        The attribute, or two of them.
    keywords : dict
        What else ``project_targets`` is given.
    traits : dict
        What it is like: a value for each of :data:`TRAITS`.
    """

    generator: str
    seed: int
    n_classes: int
    y: np.ndarray
    y_pred: np.ndarray | None
    sensitive_features: np.ndarray
    keywords: dict[str, Any]
    traits: dict[str, Any]

    @property
    def n(self) -> int:
        return len(self.y)

    @property
    def costs(self) -> np.ndarray:
        """Loss of every row in every class, shape (n, K): Hamming distances, to y and y_pred."""
        return sum(1 - p for p in self._distributions())

    @property
    def flip(self) -> float:
        """By how much the loss of an average row differs between its classes."""
        return float(np.ptp(self.costs, axis=1).mean())

    def _distributions(self) -> Iterator[np.ndarray]:
        of_class, y_pred = np.eye(self.n_classes), self.y_pred
        yield of_class[self.y]
        if y_pred is None:
            return
        if np.issubdtype(y_pred.dtype, np.integer):
            yield of_class[y_pred]
        else:
            yield y_pred if y_pred.ndim == 2 else np.column_stack([1 - y_pred, y_pred])


TRAITS = (
    "kind",
    "attribute",
    "kernel",
    "degree",
    "rare",
    "predictions",
    "threshold",
    "covariates",
)


def cycled(seed: int) -> Instance:
    """Return an instance whose kind, number of classes and number of rows go round.

    Parameters
    ----------
    seed : int
        From 0.
    """
    rng = np.random.default_rng(_FIRST_SEED + seed)
    n_classes = _in_turn(_CYCLED_CLASSES, seed)
    # Many classes in few rows would have hardly any row each.
    n = max(_in_turn(_CYCLED_ROWS, seed), {10: 500, 20: 2000}.get(n_classes, 0))
    kind = _in_turn(_CYCLED_KINDS, seed)

    attribute = str(rng.choice(_CYCLED_ATTRIBUTES))
    x = _attribute(attribute, rng, n, deviation=0.6, rate=3)
    kernel, degree = _CYCLED_KERNELS[int(rng.integers(len(_CYCLED_KERNELS)))]
    if kernel == "fourier" and attribute in ("8 values", "poisson"):
        kernel, degree = "polynomial", 3
    is_rare = bool(rng.uniform() < _RARE)
    predictions = _weighted(_CYCLED_PREDICTIONS, rng)
    threshold = float(rng.choice(_CYCLED_THRESHOLDS))

    standardized, score = _score(x, rng)
    y, probabilities = _targets(score, n_classes, rng, rarest=0.985 if is_rare else None)
    if n_classes == 2 and y.sum() < 2:
        y[:2] = 1
    y_pred = _predictions(predictions, probabilities)
    if predictions == "labels" and len(np.unique(y_pred)) < n_classes:
        predictions, y_pred = "none", None

    sensitive: np.ndarray = x
    keywords: dict[str, Any] = {"loss": "hamming"}
    if kind == "didi":
        n_groups = min(_GROUPS[int(rng.integers(len(_GROUPS)))], n // 4)
        rank = np.argsort(np.argsort(score + 2 * rng.normal(size=n)))
        sensitive = np.floor(rank / n * n_groups).astype(int).astype(str)
        attribute, kernel, degree = f"{n_groups} groups", "", 0
        keywords["constraint"] = DidiConstraint(threshold)
    else:
        has_second = bool(rng.uniform() < _SECOND_ATTRIBUTE) and kind != "fine"
        if kind == "fine":
            kernel = "polynomial"
        name = {"fine": "fine", "sd": "sd"}.get(kind, "coarse")
        own = named_constraint(name, threshold, kernel=named_kernel(kernel, degree))
        if has_second:
            sensitive = np.column_stack([x, rng.normal(size=n) + 0.5 * standardized])
            keywords["constraint"] = [own, named_constraint(name, threshold)]
            kind = "several"
        else:
            keywords["constraint"] = own
    traits = (kind, attribute, kernel, degree, is_rare, predictions, threshold, False)
    return Instance(
        generator="cycled",
        seed=seed,
        n_classes=n_classes,
        y=y,
        y_pred=y_pred,
        sensitive_features=sensitive,
        keywords=keywords,
        traits=dict(zip(TRAITS, traits, strict=True)),
    )


def drawn(seed: int) -> Instance:
    """Return an instance of which everything is drawn.

    Parameters
    ----------
    seed : int
        From 0.
    """
    rng = np.random.default_rng(seed)
    n = _weighted(_DRAWN_ROWS, rng)
    n_classes = int(rng.choice(_DRAWN_CLASSES))

    attribute = str(rng.choice(_DRAWN_ATTRIBUTES))
    x = _attribute(attribute, rng, n, deviation=1, rate=2)
    kernel, degree = str(rng.choice(_DRAWN_KERNELS)), int(rng.choice(_DRAWN_DEGREES))
    kind = str(rng.choice(_DRAWN_KINDS))
    is_rare = bool(rng.uniform() < _RARE)
    predictions = _weighted(_DRAWN_PREDICTIONS, rng)
    threshold = float(rng.choice(_DRAWN_THRESHOLDS))

    standardized, score = _score(x, rng)
    y, probabilities = _targets(score, n_classes, rng, rarest=0.99 if is_rare else None)
    y_pred = _predictions(predictions, probabilities)

    name = "fine" if kind == "fine" else "coarse"
    degree = 1 if kernel == "spline" else degree
    own = named_constraint(name, threshold, kernel=named_kernel(kernel, degree))
    sensitive: np.ndarray = x
    keywords: dict[str, Any] = {"loss": "hamming"}
    covariates = None
    if rng.uniform() < _SECOND_ATTRIBUTE:
        sensitive = np.column_stack([x, rng.normal(size=n) + 0.5 * standardized])
        keywords["constraint"] = [own, own]
        kind = "several"
    else:
        keywords["constraint"] = own
        if rng.uniform() < _COVARIATES:
            covariates = rng.normal(size=(n, 1)) + 0.5 * standardized[:, None]
            keywords["conditional_on"] = covariates
    traits = (
        kind,
        attribute,
        kernel,
        degree,
        is_rare,
        predictions,
        threshold,
        covariates is not None,
    )
    return Instance(
        generator="drawn",
        seed=seed,
        n_classes=n_classes,
        y=y,
        y_pred=y_pred,
        sensitive_features=sensitive,
        keywords=keywords,
        traits=dict(zip(TRAITS, traits, strict=True)),
    )


GENERATORS = {"cycled": cycled, "drawn": drawn}


def _in_turn(values: tuple[Any, ...], seed: int) -> Any:
    return values[seed % len(values)]


def _weighted(shares: dict[Any, float], rng: np.random.Generator) -> Any:
    """Draw a key of a dict by its share."""
    values = list(shares)
    return values[int(rng.choice(len(values), p=list(shares.values())))]


def _attribute(
    name: str, rng: np.random.Generator, n: int, *, deviation: float, rate: float
) -> np.ndarray:
    """Draw an attribute by its name; `deviation` is that of logarithms, `rate` that of counts."""
    if name == "uniform":
        return rng.uniform(18, 80, n)
    if name == "8 values":
        return rng.integers(0, 8, n).astype(float)
    if name == "few values":
        return rng.integers(0, rng.choice(_FEW_VALUES), n).astype(float)
    if name == "year":
        return rng.integers(1930, 2005, n).astype(float)
    if name == "lognormal":
        return rng.lognormal(0, deviation, n)
    if name == "skewed":
        return rng.beta(0.5, 3, n)
    return rng.poisson(rate, n).astype(float)


def _score(x: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Return the standardised attribute, and a score that depends on it, weakly or strongly."""
    standardized = (x - x.mean()) / x.std()
    return standardized, rng.choice([0.3, 1.0]) * standardized + 0.3 * rng.normal(size=len(x))


def _targets(
    score: np.ndarray, n_classes: int, rng: np.random.Generator, *, rarest: float | None
) -> tuple[np.ndarray, np.ndarray]:
    """Draw targets from a score.

    Parameters
    ----------
    score : ndarray of shape (n,)
        The score.
    n_classes : int
        Number of classes.
    rng : Generator
        Draws them.
    rarest : float or None
        Share of the first of two classes where the second one is rare. Of more classes the later
        ones are rare where it is given.

    Returns
    -------
    y : ndarray of int, shape (n,)
        The targets; of more than two classes there is a row of each.
    probabilities : ndarray of shape (n,) or (n, K)
        Those of the second of two classes, or of all.
    """
    n = len(score)
    if n_classes == 2:
        noisy = score + rng.logistic(size=n)
        border = np.quantile(noisy, rng.uniform(0.3, 0.8) if rarest is None else rarest)
        y = (score + rng.logistic(size=n) > border).astype(int)
        return y, 1 / (1 + np.exp(-(score - border)))
    logits = score[:, None] * np.linspace(-1, 1, n_classes)
    if rarest is not None:
        logits = logits + np.linspace(0, -3, n_classes)
    p = np.exp(logits)
    p /= p.sum(axis=1, keepdims=True)
    y = (p.cumsum(axis=1) < rng.uniform(size=(n, 1))).sum(axis=1).clip(0, n_classes - 1)
    if len(np.unique(y)) < n_classes:
        y[:n_classes] = np.arange(n_classes)
    return y, p


def _predictions(name: str, probabilities: np.ndarray) -> np.ndarray | None:
    """Return what a model that knows the probabilities predicts."""
    if name == "none":
        return None
    if name == "probabilities":
        return probabilities
    if name == "constant":
        mean = probabilities.mean(axis=0)
        return np.broadcast_to(mean, probabilities.shape).copy()
    if probabilities.ndim == 2:
        return probabilities.argmax(axis=1)
    return (probabilities > 0.5).astype(int)
