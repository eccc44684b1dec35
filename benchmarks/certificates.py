"""How often certificates hold on new rows: ``python -m benchmarks.certificates --help``.

In every sample the learner is fitted anew, with ``confidence=0.95`` and without it, and both are
measured on the whole population, where the promise is either kept or not.
"""

import argparse
import sys
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from joblib import Parallel, delayed
from scipy.stats import binom
from sklearn.base import clone
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures

from benchmarks._constraints import named_constraint
from benchmarks._storage import append_row, create, read_rows
from benchmarks._tables import insert_between, markdown
from benchmarks._units import PACKAGES, versions
from benchmarks.tasks import TASKS, load_task
from gedi_sklearn import ProjectedClassifier, ProjectedRegressor
from gedi_sklearn.metrics import gedi

HERE = Path(__file__).parent
RESULTS = HERE / "results"
PAGE = HERE.parent / "docs" / "certificates_benchmark.md"
BEGIN, END = "<!-- {}: begin (written by benchmarks.certificates) -->", "<!-- {}: end -->"
CONFIDENCE, THRESHOLD = 0.95, 0.2
POPULATION = 100_000
KINDS, SMALL, DEGREES = ("real targets", "classes"), (500, 2000), (1, 3, 5)
PERSONS, ROWS_EACH, N_PERSONS = "persons of 30 rows", 30, (60, 200)
# The attribute is that of the paper's task.
ADULT, ADULT_ROWS = {"Adult, age": TASKS[3], "Adult, sex": TASKS[2]}, 24_000
KEY = ("population", "n", "degree", "norm", "attribute")
MEASURES = ("issued", "held", "held_plain", "ratio", "ratio_plain", "score", "score_plain")
COLUMNS = (*KEY, "samples", *MEASURES, *PACKAGES, "python")


@dataclass(frozen=True)
class Cell:
    """A population, a number of rows drawn from it, and a constraint."""

    population: str
    n: int
    degree: int
    norm: str
    attribute: str  # "known" or "blind"

    @property
    def key(self) -> tuple[str, ...]:
        return tuple(str(getattr(self, name)) for name in KEY)


class Rows(NamedTuple):
    """Features, the attribute first, targets, and how many rows each person has in a block."""

    X: np.ndarray
    y: np.ndarray
    rows_each: int = 1

    def draw(self, rng: np.random.Generator, n: int) -> tuple[np.ndarray, dict[str, np.ndarray]]:
        """Return rows of persons drawn with replacement, and the keywords of a fit on them."""
        size = self.rows_each
        persons = rng.integers(len(self.y) // size, size=n // size)
        rows = (persons[:, None] * size + np.arange(size)).ravel()
        return rows, {} if size == 1 else {"groups": np.repeat(np.arange(len(persons)), size)}


CELLS = [
    *(
        Cell(kind, n, degree, norm, attribute)
        for attribute in ("known", "blind")
        for norm in ("l1", "sd")
        for kind in KINDS
        for n in SMALL
        for degree in DEGREES
    ),
    *(
        Cell(PERSONS, n * ROWS_EACH, degree, norm, "known")
        for norm in ("l1", "sd")
        for n in N_PERSONS
        for degree in (1, 3)
    ),
    *(
        Cell("Adult, age", ADULT_ROWS, degree, norm, "known")
        for norm in ("l1", "sd")
        for degree in DEGREES
    ),
    # Of two values every norm and degree is the same bound.
    *(Cell("Adult, sex", n, 1, "l1", "known") for n in (SMALL[1], ADULT_ROWS)),
]


def main(argv: Sequence[str] | None = None) -> None:
    options = parse(argv)
    path = options.output / "certificates.csv"
    asked = [
        cell
        for cell in CELLS
        if cell.population in options.population
        and cell.n in options.rows
        and cell.degree in options.degree
        and cell.norm in options.norm
        and cell.attribute in options.attribute
    ]
    if not options.report:
        run(asked, path, options)
    text = table(read_rows(path, COLUMNS))
    print(text)
    if options.docs:
        page = PAGE.read_text(encoding="utf-8")
        begin, end = BEGIN.format("cells"), END.format("cells")
        page = insert_between(page, begin, end, text, page=f"docs/{PAGE.name}")
        PAGE.write_text(page, encoding="utf-8")


def parse(argv: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.certificates",
        description="How often certificates hold on new rows. A run that was interrupted is taken "
        "up where it ended: a cell that is in the table is not run again.",
    )
    populations = (*KINDS, PERSONS, *ADULT)
    parser.add_argument("--population", nargs="+", choices=populations, default=populations)
    rows = (*SMALL, *(n * ROWS_EACH for n in N_PERSONS), ADULT_ROWS)
    parser.add_argument("--rows", nargs="+", type=int, choices=rows, default=rows)
    parser.add_argument("--degree", nargs="+", type=int, choices=DEGREES, default=DEGREES)
    parser.add_argument("--norm", nargs="+", choices=("l1", "sd"), default=("l1", "sd"))
    attributes = ("known", "blind")
    parser.add_argument("--attribute", nargs="+", choices=attributes, default=attributes)
    parser.add_argument("--samples", type=int, default=200, help="samples of every cell")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument(
        "--output", type=Path, default=RESULTS, help="folder (default: benchmarks/results)"
    )
    parser.add_argument("--report", action="store_true", help="run nothing, print what is there")
    parser.add_argument(
        "--docs", action="store_true", help=f"also write the table of docs/{PAGE.name}"
    )
    return parser.parse_args(argv)


def run(asked: Sequence[Cell], path: Path, options: argparse.Namespace) -> None:
    """Run the cells that the table lacks."""
    create(path, COLUMNS)
    done = {tuple(line[name] for name in KEY) for line in read_rows(path, COLUMNS)}
    missing = [cell for cell in asked if cell.key not in done]
    print(f"{len(asked) - len(missing)} of {len(asked)} cells are in {path}.", file=sys.stderr)
    for cell in missing:
        found = simulate(cell, options.samples, options.jobs)
        line = dict(zip(KEY, cell.key, strict=True)) | {"samples": options.samples} | found
        append_row(path, COLUMNS, line | versions())
        print(*cell.key, *(line[name] for name in MEASURES), file=sys.stderr, flush=True)


def simulate(cell: Cell, n_samples: int, n_jobs: int = 1) -> dict[str, Any]:
    """Return the means over samples, of certified models over those that have a certificate."""
    found = Parallel(n_jobs=n_jobs)(delayed(measure)(cell, seed) for seed in range(n_samples))
    plain, certified = zip(*found, strict=True)
    issued = [(mine, other) for mine, other in zip(certified, plain, strict=True) if mine]
    mean = {
        "issued": len(issued) / n_samples,
        "held_plain": np.mean([one.ratio <= 1 for one in plain]),
        "ratio_plain": np.mean([one.ratio for one in plain]),
    }
    if issued:
        mean["held"] = np.mean([one.ratio <= 1 for one, _ in issued])
        mean["ratio"] = np.mean([one.ratio for one, _ in issued])
        mean["score"] = np.mean([one.score for one, _ in issued])
        # Of the same samples.
        mean["score_plain"] = np.mean([other.score for _, other in issued])
    return {name: f"{mean[name]:.4f}" if name in mean else "" for name in MEASURES}


class Measured(NamedTuple):
    """The indicator of a model on the population over the bound, and its score there."""

    ratio: float
    score: float


def measure(cell: Cell, seed: int) -> tuple[Measured, Measured | None]:
    """Return what a sample gives without a certificate, and with one where one is issued."""
    population, rng = load(cell.population), np.random.default_rng([seed, cell.n])
    # With replacement: the rows, or the persons, are independent draws.
    drawn, keywords = population.draw(rng, cell.n)
    found: list[Measured | None] = []
    for confidence in (None, CONFIDENCE):
        model = build(cell).set_params(confidence=confidence)
        with warnings.catch_warnings():
            # What they say is counted here.
            warnings.simplefilter("ignore")
            model.fit(population.X[drawn], population.y[drawn], **keywords)
        if confidence is None or model.certificate_ is not None:
            found.append(_measured(cell, model, population))
        else:
            found.append(None)
    plain, certified = found
    assert plain is not None
    return plain, certified


def _measured(cell: Cell, model: Any, population: Rows) -> Measured:
    x, y = population.X[:, 0], population.y
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        predictions = model.predict(population.X)
        value = gedi(predictions, sensitive_features=x, kernel=cell.degree, norm=cell.norm)
    is_real = cell.population in (KINDS[0], PERSONS)
    error = np.mean((y - predictions) ** 2) / y.var() if is_real else np.mean(y != predictions)
    return Measured(value / model.threshold_, float(1 - error))


def build(cell: Cell) -> Any:
    """Return the unfitted model of a cell."""
    name = "sd" if cell.norm == "sd" else "coarse"
    options: dict[str, Any] = {
        "sensitive_columns": 0,
        "constraint": named_constraint(name, THRESHOLD, kernel=cell.degree),
    }
    if cell.attribute == "blind":
        options["drop_sensitive"], options["sensitive_at_predict"] = True, False
        options["attribute_estimator"] = _on_squares(LinearRegression())
    if cell.population in (KINDS[0], PERSONS):
        return ProjectedRegressor(_on_squares(Ridge()), **options)
    learner = LogisticRegression(tol=1e-3, max_iter=500)
    if cell.population == KINDS[1]:
        learner = _on_squares(learner)
    return ProjectedClassifier(learner, **options)


def _on_squares(learner: Any) -> Any:
    return make_pipeline(PolynomialFeatures(2, include_bias=False), clone(learner))


@lru_cache(maxsize=1)
def load(population: str) -> Rows:
    """Return all rows of a population.

    The simulated targets depend on an attribute, through another column, and on a third. Persons
    have one value of the attribute, and half of the variance of everything else in common.
    """
    if population in ADULT:
        task = ADULT[population]
        data = load_task(task)
        others = np.delete(data.X, data.feature_names.index(task.protected), axis=1)
        return Rows(np.column_stack([data.sensitive, others]), data.y)
    rng = np.random.default_rng(0)
    rows_each = ROWS_EACH if population == PERSONS else 1
    x = np.repeat(rng.uniform(-1.7, 1.7, POPULATION // rows_each), rows_each)
    n = len(x)
    proxy, other, noise = rng.normal(size=(3, n))
    if rows_each > 1:
        shared = np.repeat(rng.normal(size=(3, n // rows_each)), rows_each, axis=1)
        proxy, other, noise = (np.array([proxy, other, noise]) + shared) / np.sqrt(2)
    proxy += x
    y = (
        0.4 * x
        + 0.15 * x**2
        + 0.5 * proxy
        + np.sin(2 * other)
        + 0.5 * noise * (1 + 0.3 * np.abs(x))
    )
    target = (y > 0) * 1 if population == KINDS[1] else y
    return Rows(np.column_stack([x, proxy, other]), target, rows_each)


def table(lines: Sequence[dict[str, str]]) -> str:
    """Return the cells as Markdown, in their order, and what they have come to as a sentence."""
    by_key = {tuple(line[name] for name in KEY): line for line in lines}
    found = [by_key[cell.key] for cell in CELLS if cell.key in by_key]
    head = ["population", "n", "degree", "norm", "attribute", "samples", "issued", "held"]
    head += ["held without", "of the bound", "score", "score without"]
    names = (*KEY, "samples", "issued", "held", "held_plain", "ratio", "score", "score_plain")
    rows = [[_rounded(line[name]) for name in names] for line in found]
    return f"{markdown(head, rows)}\n\n{summary(found)}"


def _rounded(value: str) -> str:
    return f"{float(value):.3f}" if "." in value else value


def summary(lines: Sequence[dict[str, str]]) -> str:
    """Return the pooled share of certificates that hold, and the cells that are below."""
    issued = [round(int(line["samples"]) * float(line["issued"])) for line in lines]
    held = [
        round(count * float(line["held"] or 0)) for count, line in zip(issued, lines, strict=True)
    ]
    below = sum(is_below(*pair) for pair in zip(held, issued, strict=True))
    share = sum(held) / max(sum(issued), 1)
    return (
        f"Of {sum(issued):,} certificates {share:.3f} hold; cells significantly below "
        f"{CONFIDENCE} (binomial, α = .001): {below}."
    )


def is_below(held: int, issued: int) -> bool:
    """Tell whether fewer certificates hold than chance explains."""
    return bool(binom.cdf(held, issued, CONFIDENCE) < 0.001)


if __name__ == "__main__":
    main()
