"""What the library costs beside the plain computation that it stands on.

``OMP_NUM_THREADS=1 python -m benchmarks.overheads`` runs each of its functions and its yardstick in
turn, in one process, and writes ``results/overheads.csv`` and the table of
``docs/overheads.md``. Times are CPU seconds; the ratio is that of the fastest runs, and
the ratio of the medians stands beside it.
"""

from __future__ import annotations

import argparse
import csv
import statistics
import time
import warnings
from collections.abc import Iterator
from importlib.util import find_spec
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import r2_score

from benchmarks._daily_work import (
    SIZES,
    Case,
    fits,
    growth,
    imports,
    in_turn,
    learners,
    many,
    seconds,
    splines,
    verdicts,
)
from benchmarks._tables import insert_between, markdown
from gedi_sklearn import CoarseConstraint, MovingTargetsClassifier, fairness_report
from gedi_sklearn.metrics import didi, gedi

HERE = Path(__file__).parent
RESULTS = HERE / "results" / "overheads.csv"
PAGE = HERE.parent / "docs" / "overheads.md"
BEGIN, END = "<!-- overheads -->", "<!-- end of overheads -->"
GROWTH_BEGIN, GROWTH_END = "<!-- growth -->", "<!-- end of growth -->"
FIELDS = ("what", "yardstick", "seconds", "yardstick_seconds", "ratio", "ratio_of_medians")
DEGREE = 5
LOSSES, BATCH_SIZES = ("squared error", "log loss"), (128, 512)


def draw(n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return an attribute, targets that depend on it, and predictions."""
    rng = np.random.default_rng(0)
    x, noise, error = rng.normal(size=(3, n))
    y = x + 0.3 * x**2 + noise
    return x, y, y + error


def indicators(repeats: int) -> Iterator[Case]:
    """Yield indicators of a few rows, and of many."""
    x, y, p = draw(200)
    for relative in (False, True):
        yield Case(
            f"`gedi`, degree {DEGREE}{', relative' if relative else ''}, 200 rows",
            "`r2_score`",
            in_turn(
                many(
                    lambda r=relative: gedi(y, p, sensitive_features=x, kernel=DEGREE, relative=r),
                    50,
                ),
                many(lambda: r2_score(y, p), 50),
                repeats,
            ),
        )
    x, y, _ = draw(10_000_000)
    yield Case(
        f"`gedi`, degree {DEGREE}, 10,000,000 rows",
        "a sum of x and one of y",
        in_turn(
            lambda: gedi(y, sensitive_features=x, kernel=DEGREE),
            lambda: (x.sum(), y.sum()),
            min(repeats, 5),
        ),
    )
    groups, y = np.random.default_rng(0).integers(50, size=1_000_000), y[:1_000_000]
    yield Case(
        "`didi`, 50 groups, 1,000,000 rows",
        "`np.bincount`",
        in_turn(
            lambda: didi(y, sensitive_features=groups),
            lambda: np.bincount(groups, weights=y),
            repeats,
        ),
    )


def report(repeats: int) -> Iterator[Case]:
    """Yield a report, in seconds."""
    x, y, p = draw(200_000)
    x = np.clip(x, -2.2, 2.2)
    yield Case(
        "`fairness_report`, 200,000 rows",
        "a second",
        (
            (seconds(lambda: fairness_report(y, p, sensitive_features=x)), 1.0)
            for _ in range(min(repeats, 5))
        ),
    )


class TimedLogisticRegression(LogisticRegression):
    """A learner that adds up the CPU seconds of its fits."""

    spent = 0.0

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> TimedLogisticRegression:
        """Fit, with the clock running."""
        start = time.process_time()
        super().fit(X, y, sample_weight)
        type(self).spent += time.process_time() - start
        return self


def moving_targets(repeats: int) -> Iterator[Case]:
    """Yield Moving Targets over a learner that takes milliseconds."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2_000, 6))
    y = (X @ rng.normal(size=6) + rng.logistic(size=2_000) > 0).astype(int)
    model = MovingTargetsClassifier(
        TimedLogisticRegression(), CoarseConstraint(), sensitive_columns=0
    )

    def pair() -> tuple[float, float]:
        TimedLogisticRegression.spent = 0.0
        return seconds(lambda: model.fit(X, y)), TimedLogisticRegression.spent

    yield Case(
        "`MovingTargetsClassifier`, 2,000 rows",
        "its learner's fits",
        (pair() for _ in range(min(repeats, 5))),
    )


def epochs(repeats: int) -> Iterator[Case]:
    """Yield epochs of a Lagrangian dual in mini-batches on Adult, beside a plain loop of torch."""
    from benchmarks._plain_torch import paired_epochs  # needs torch

    adams = {"plain torch": False, "plain torch, Adam fused": True}
    for loss, batch_size, (plain, is_fused) in product(LOSSES, BATCH_SIZES, adams.items()):
        yield Case(
            f"an epoch of the Lagrangian dual, {loss}, batches of {batch_size} rows",
            plain,
            paired_epochs(loss == "log loss", batch_size, repeats, is_fused=is_fused),
        )


def measure(case: Case) -> dict[str, Any]:
    """Return a line of the CSV."""
    own, plain = zip(*case.pairs, strict=True)
    line = {
        "what": case.what,
        "yardstick": case.yardstick,
        "seconds": min(own),
        "yardstick_seconds": min(plain),
        "ratio": min(own) / min(plain),
        "ratio_of_medians": statistics.median(own) / statistics.median(plain),
    }
    print(
        f"{case.what:68} {case.yardstick:24} {line['ratio']:6.2f} {line['ratio_of_medians']:6.2f}",
        flush=True,
    )
    return line


def run(repeats: int, only: str = "") -> list[dict[str, Any]]:
    groups = [
        indicators,
        report,
        moving_targets,
        splines,
        fits,
        verdicts,
        imports,
        growth,
        learners,
    ]
    if find_spec("skorch") is not None:
        groups.append(epochs)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return [
            measure(case) for group in groups if only in group.__name__ for case in group(repeats)
        ]


def is_growth(row: dict[str, Any]) -> bool:
    """Tell whether a line is of the same at ten times the rows."""
    return str(row["yardstick"]).endswith(" rows")


def growth_table(rows: list[dict[str, Any]]) -> str:
    """Return the seconds of each by the number of rows, and the exponent of the last step."""
    found: dict[str, list[dict[str, Any]]] = {}
    for row in filter(is_growth, rows):
        found.setdefault(row["what"].rpartition(", ")[0], []).append(row)
    sizes = [f"{n:,} rows" for n in SIZES]
    body = []
    for name, lines in found.items():
        times = [float(lines[0]["yardstick_seconds"]), *(float(row["seconds"]) for row in lines)]
        exponent = np.log10(times[-1] / times[-2])
        body.append([name, *(f"{own:.3g}" for own in times), f"{exponent:.2f}"])
    return markdown(["CPU seconds", *sizes, "exponent"], body)


def table(rows: list[dict[str, Any]]) -> str:
    """Return the ratios to what each is compared with."""
    body = [
        [
            row["what"],
            row["yardstick"],
            f"{float(row['seconds']):.3g}",
            f"{float(row['ratio']):.2f}",
            f"{float(row['ratio_of_medians']):.2f}",
        ]
        for row in rows
        if not is_growth(row)
    ]
    return markdown(
        ["what", "in units of", "CPU seconds (kB of a pickle)", "fastest runs", "medians"], body
    )


def with_others(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the rows of the CSV, with new ones in the place of those that were measured again."""
    with RESULTS.open(newline="", encoding="utf-8") as file:
        known = {(row["what"], row["yardstick"]): row for row in csv.DictReader(file)}
    return list({**known, **{(row["what"], row["yardstick"]): row for row in rows}}.values())


def write(rows: list[dict[str, Any]]) -> None:
    with RESULTS.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, FIELDS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    text = PAGE.read_text(encoding="utf-8")
    text = insert_between(text, BEGIN, END, table(rows), page="docs/overheads.md")
    grown = growth_table(rows)
    text = insert_between(text, GROWTH_BEGIN, GROWTH_END, grown, page="docs/overheads.md")
    PAGE.write_text(text, encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=25)
    parser.add_argument("--only", default="", help="part of the name of a group; other rows stay")
    parser.add_argument("--no-write", action="store_true", help="print only")
    options = parser.parse_args()
    rows = run(options.repeats, options.only)
    if not options.no_write:
        write(with_others(rows) if options.only else rows)


if __name__ == "__main__":
    main()
