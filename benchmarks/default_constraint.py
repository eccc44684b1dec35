"""What the default constraint costs, and asks for: ``python -m benchmarks.default_constraint``.

Samples in which the attribute has no effect: the score that each constraint leaves. Samples in
which it has one: how often a certificate of 95 % is issued.
"""

import argparse
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from sklearn.linear_model import LinearRegression, LogisticRegression

from benchmarks._tables import insert_between, markdown
from gedi_sklearn import (
    CoarseConstraint,
    DependenceConstraint,
    ProjectedClassifier,
    ProjectedRegressor,
)
from gedi_sklearn.exceptions import NoisyReferenceWarning

PAGE = Path(__file__).parents[1] / "docs" / "default_benchmark.md"
BEGIN, END = "<!-- {}: begin (written by benchmarks.default_constraint) -->", "<!-- {}: end -->"
# Rows of samples without an effect, and of those with one; the deviations that it explains there.
NO_EFFECT, WITH_EFFECT, EFFECTS = (50, 200, 1000), (100, 200, 500, 1000, 2000, 5000), (0.2, 0.5)
N_NEW = 20_000
CONSTRAINTS = {"slope": CoarseConstraint(0.2), "default": DependenceConstraint(0.2)}


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.default_constraint",
        description="Scores under the default constraint where the attribute has no effect, and "
        "the rows that its certificate takes.",
    )
    parser.add_argument("--samples", type=int, default=100, help="of every line (default: 100)")
    parser.add_argument("--docs", action="store_true", help=f"write the tables into {PAGE.name}")
    options = parser.parse_args(argv)
    kinds = ["plain R²", *(f"{name} R²" for name in CONSTRAINTS)]
    tables = {
        "no effect": (
            ["rows", "samples", *kinds, *(f"{name} warns" for name in CONSTRAINTS)],
            without_effect(options.samples),
        ),
        "certificates": (
            ["targets", "explained", *(f"{n} rows" for n in WITH_EFFECT)],
            certificates(options.samples),
        ),
    }
    for name, (header, body) in tables.items():
        text = markdown(header, list(body))
        print(text)
        if options.docs:
            where = BEGIN.format(name), END.format(name)
            PAGE.write_text(insert_between(PAGE.read_text(), *where, text, page=PAGE.name))


def draw(rng: np.random.Generator, n: int, effect: float) -> tuple[np.ndarray, ...]:
    """Return features, the attribute, and targets of which it explains a deviation of `effect`.

    Features explain five sixths of what the attribute does not; it has a slope and a curve.
    """
    X, age, noise = rng.normal(size=(n, 5)), rng.uniform(-1.7, 1.7, n), rng.normal(size=n)
    y = (X.sum(axis=1) + noise) / np.sqrt(6)
    shape = age + np.sin(2 * age)
    return np.c_[X, age], age, np.sqrt(1 - effect**2) * y + effect * shape / shape.std()


def without_effect(n_samples: int) -> Iterator[list[str]]:
    """Yield the mean score by the number of rows, and how often the reference is called noise."""
    new_X, new_age, new_y = draw(np.random.default_rng(99), N_NEW, 0.0)
    for n in NO_EFFECT:
        scores, warned = np.zeros((n_samples, 1 + len(CONSTRAINTS))), np.zeros(len(CONSTRAINTS))
        for seed in range(n_samples):
            X, age, y = draw(np.random.default_rng([seed, n]), n, 0.0)
            scores[seed, 0] = LinearRegression().fit(X, y).score(new_X, new_y)
            for j, constraint in enumerate(CONSTRAINTS.values()):
                model = ProjectedRegressor(LinearRegression(), constraint)
                with warnings.catch_warnings(record=True) as told:
                    warnings.simplefilter("always")
                    model.fit(X, y, sensitive_features=age)
                    scores[seed, 1 + j] = model.score(new_X, new_y, sensitive_features=new_age)
                warned[j] += any(isinstance(one.message, NoisyReferenceWarning) for one in told)
        shown = [f"{mean:.3f}" for mean in scores.mean(axis=0)]
        yield [f"{n:,}", str(n_samples), *shown, *(f"{own / n_samples:.2f}" for own in warned)]


def certificates(n_samples: int) -> Iterator[list[str]]:
    """Yield the share of samples in which the default gets a certificate, by their rows."""
    for is_real in (True, False):
        for effect in EFFECTS:
            issued = []
            for n in WITH_EFFECT:
                found = 0
                for seed in range(n_samples):
                    X, age, y = draw(np.random.default_rng([seed, n]), n, effect)
                    if is_real:
                        model = ProjectedRegressor(LinearRegression(), confidence=0.95)
                    else:
                        model, y = ProjectedClassifier(LogisticRegression(), confidence=0.95), y > 0
                    with warnings.catch_warnings():
                        warnings.simplefilter("ignore")  # what they say is counted here
                        model.fit(X, y, sensitive_features=age)
                    found += model.certificate_ is not None
                issued.append(f"{found / n_samples:.2f}")
            yield ["real" if is_real else "two classes", f"{effect:g}", *issued]


if __name__ == "__main__":
    main()
