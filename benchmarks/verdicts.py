"""How often verdicts are right, by simulation: ``python -m benchmarks.verdicts``.

``--docs`` writes the table of ``docs/verdicts_benchmark.md``.

Premiums depend on age in shapes that a bound on the slope sees and in shapes that it does not. A
model of splines is fitted on n rows, its cross-fitted predictions are corrected, and the warnings
of the fit are counted: alarms where nothing is wrong, and cases caught where it is. Below 500 rows
the last two are what a verdict would advise, which a fit keeps to itself.

A second table counts the four answers to "met on new rows": predictions whose true indicator is a
known multiple of the bound are judged on n rows, also where 20 rows each are of one person, and
where the predictions are labels of which 5 % are 1.
"""

import argparse
import warnings
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import SplineTransformer

from benchmarks._tables import insert_between, markdown
from gedi_sklearn import CoarseConstraint, DependenceConstraint, ProjectedRegressor
from gedi_sklearn.exceptions import (
    ConstraintNotMetWarning,
    NoisyReferenceWarning,
    UnseenDependenceWarning,
)
from gedi_sklearn.projection import Projection

PAGE = Path(__file__).parents[1] / "docs" / "verdicts_benchmark.md"
BEGIN, END = "<!-- {}: begin (written by benchmarks.verdicts) -->", "<!-- {}: end -->"
KINDS = (ConstraintNotMetWarning, UnseenDependenceWarning, NoisyReferenceWarning)
SLOPE, SPLINE = CoarseConstraint(), DependenceConstraint()
# Shape, parameters of the constraint, whose warning is right; None where nothing is wrong.
CASES: dict[str, tuple[str, Any, type[Warning] | None]] = {
    "linear, slope bounded": ("linear", SLOPE, None),
    "slightly curved, slope bounded": ("mild", SLOPE, None),
    "U-shape, spline bounded": ("U", SPLINE, None),
    "step, spline bounded": ("step", SPLINE, None),
    "U-shape, slope bounded": ("U", SLOPE, UnseenDependenceWarning),
    "step, slope bounded": ("step", SLOPE, UnseenDependenceWarning),
    "age and sex, slopes bounded": ("age and sex", SLOPE, UnseenDependenceWarning),
    "no dependence, slope bounded": ("none", SLOPE, NoisyReferenceWarning),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, nargs="+", default=[100, 500, 2000])
    parser.add_argument("--samples", type=int, default=200)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--tables", nargs="+", choices=TABLES, default=list(TABLES))
    parser.add_argument("--docs", action="store_true", help="write the table of the page")
    given = parser.parse_args()
    for name in given.tables:
        tables = [TABLES[name](n, given.samples, given.jobs) for n in given.rows]
        table = "\n\n".join(tables)
        print(table)
        if given.docs:
            text, ends = PAGE.read_text(encoding="utf-8"), (BEGIN.format(name), END.format(name))
            text = insert_between(text, *ends, table, page=f"docs/{PAGE.name}")
            PAGE.write_text(text, encoding="utf-8")


def table_of(n: int, n_samples: int, n_jobs: int) -> str:
    """Format the share of samples of n rows in which each warning was given."""
    rows = []
    for name in CASES:
        counts, right = simulate(name, n, n_samples, n_jobs)
        shares = [f"{counts[kind] / n_samples:.3f}" for kind in KINDS]
        rows.append([name, "none" if right is None else f"`{right.__name__}`", *shares])
    share = exceeded(n, n_samples, n_jobs) / n_samples
    what = "predictions at 1.5 times the bound"
    rows.append([what, f"`{KINDS[0].__name__}`", f"{share:.3f}", "", ""])
    head = [f"{n} rows, {n_samples} samples", "right", "not met", "unseen", "noisy reference"]
    return markdown(head, rows)


def sample(shape: str, n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return X, age and sex first, and a premium that depends on age in a shape."""
    rng = np.random.default_rng(seed)
    age, sex = rng.uniform(18, 85, n), (rng.random(n) < 0.5) * 1.0
    z, others = (age - age.mean()) / age.std(), rng.normal(size=(n, 2))
    part = {
        "linear": 0.5 * z,
        "mild": 0.5 * z + 0.1 * (z**2 - 1),
        "U": 0.7 * (z**2 - 1) + 0.2 * z,
        "step": 0.8 * ((z > 1) | (z < -0.8)) + 0.2 * z,
        "age and sex": 0.7 * (z**2 - 1) + 0.4 * z + 0.4 * sex,
        "none": 0 * z,
    }[shape]
    return np.c_[age, sex, others], part + others @ [0.6, 0.4] + 0.7 * rng.normal(size=n)


def learner() -> Any:
    """Return a model that follows every shape, and is fitted in milliseconds."""
    return make_pipeline(SplineTransformer(8, degree=3), LinearRegression())


def simulate(
    name: str, n: int, n_samples: int, n_jobs: int = 1
) -> tuple[Counter[type[Warning]], type[Warning] | None]:
    """Return in how many samples each warning was given, and the one that is right."""
    shape, constraint, right = CASES[name]
    columns = [0, 1] if shape == "age and sex" else [0]
    if len(columns) > 1:
        constraint = [constraint, constraint]
    found = Parallel(n_jobs=n_jobs)(
        delayed(_given)(shape, n, seed, columns, constraint) for seed in range(n_samples)
    )
    return sum(found, Counter()), right


def _given(shape: str, n: int, seed: int, columns: list[int], constraint: Any) -> Counter:
    X, y = sample(shape, n, seed)
    model = ProjectedRegressor(learner(), constraint, sensitive_columns=columns)
    with warnings.catch_warnings(record=True) as record:
        warnings.simplefilter("always")
        model.fit(X, y)
    given = {one.category for one in record} | {type(one) for one in model.verdict_.advice()}
    return Counter(given & set(KINDS))


def exceeded(n: int, n_samples: int, n_jobs: int = 1) -> int:
    """Return in how many samples predictions at 1.5 times the bound are said to be beyond it."""
    return sum(Parallel(n_jobs=n_jobs)(delayed(_is_caught)(n, seed) for seed in range(n_samples)))


def _is_caught(n: int, seed: int) -> bool:
    X, y = sample("U", n, seed)
    bound = DependenceConstraint(0.3)
    with Projection(y, sensitive_features=X[:, 0], constraint=bound) as projection:
        beyond = projection.solve(learner().fit(X, y).predict(X), 0.0).targets
        verdict = projection.at(0.2).verdict(beyond, new_rows=beyond)
    with warnings.catch_warnings(record=True) as record:
        warnings.simplefilter("always")
        verdict.warn()
    return any(one.category is ConstraintNotMetWarning for one in record)


# What is judged: real predictions, those of persons with 20 rows each (with and without `groups`),
# labels, and rare labels.
JUDGED = ("real", "persons, groups=", "persons", "labels", "5 % labels")
TRUE_RATIOS = (0.5, 0.9, 1.2, 2.0)
ANSWERS = ("yes", "about", "cannot be told", "no")
_ROWS_A_PERSON, _SLOPE, _LABELLED = 20, 0.1, {"labels": 0.3, "5 % labels": 0.05}


def answers_of(n: int, n_samples: int, n_jobs: int = 1) -> str:
    """Format the share of samples of n rows in which each answer was given."""
    rows = []
    for what in JUDGED:
        for ratio in TRUE_RATIOS:
            counts = answers(what, ratio, n, n_samples, n_jobs)
            shares = [f"{counts[answer] / n_samples:.3f}" for answer in ANSWERS]
            rows.append([what, f"{ratio:g}", *shares])
    return markdown([f"{n} rows, {n_samples} samples", "true ratio", *ANSWERS], rows)


def answers(what: str, ratio: float, n: int, n_samples: int, n_jobs: int = 1) -> Counter[str]:
    """Return how often each answer was given."""
    seeds = range(n_samples)
    return Counter(
        Parallel(n_jobs=n_jobs)(delayed(_answer)(what, ratio, n, seed) for seed in seeds)
    )


def _answer(what: str, ratio: float, n: int, seed: int) -> str:
    """Judge predictions of slope ratio × bound on a standardised attribute."""
    rng = np.random.default_rng(seed)
    persons = np.arange(n) // (_ROWS_A_PERSON if what.startswith("persons") else 1)
    x = rng.uniform(-np.sqrt(3), np.sqrt(3), persons[-1] + 1)[persons]
    bound = _SLOPE
    if what in _LABELLED:
        share = _LABELLED[what]
        bound = 0.2 * share
        z = rng.random(n) < share + ratio * bound * x
    else:
        level = rng.normal(size=persons[-1] + 1)[persons]
        z = ratio * bound * x + (level if what.startswith("persons") else rng.normal(size=n))
    constraint = CoarseConstraint(bound, relative=False)
    groups = persons if what.endswith("groups=") else None
    with Projection(z, sensitive_features=x, constraint=constraint) as projection:
        verdict = projection.verdict(z, new_rows=z, groups=groups)
    return verdict.new_rows.answer.partition(":")[0]


TABLES = {"verdicts": table_of, "answers": answers_of}

if __name__ == "__main__":
    main()
