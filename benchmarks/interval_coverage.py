"""How often intervals of GeDI hold the true value: ``python -m benchmarks.interval_coverage``.

Prints the first table of ``docs/inference_coverage.md``, which ``--docs`` writes. About ten minutes
on one core.
"""

import argparse
from collections.abc import Sequence

import numpy as np
from joblib import Parallel, delayed

from benchmarks._tables import insert_between, markdown
from benchmarks.upper_limits import CELLS, COEFFICIENTS, PAGE, Cell
from gedi_sklearn.metrics import gedi_inference

BEGIN = "<!-- intervals: begin (written by benchmarks.interval_coverage) -->"
END = "<!-- intervals: end -->"
SAMPLES = 1000


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--docs", action="store_true", help="write the table of the page")
    given = parser.parse_args(argv)
    shares = Parallel(n_jobs=given.jobs)(delayed(coverage)(cell) for cell in CELLS)
    body = [
        [
            str(n),
            str(degree),
            name,
            "hetero" if hetero else "homo",
            f"{own['asymptotic']:.3f}",
            f"{own['simulation']:.3f}" if "simulation" in own else "",
        ]
        for (n, degree, name, hetero), own in zip(CELLS, shares, strict=True)
    ]
    table = markdown(["n", "degree", "coefficients", "noise", "asymptotic", "simulation"], body)
    print(table)
    if given.docs:
        page = PAGE.read_text(encoding="utf-8")
        page = insert_between(page, BEGIN, END, table, page=f"docs/{PAGE.name}")
        PAGE.write_text(page, encoding="utf-8")


def coverage(cell: Cell) -> dict[str, float]:
    """Return the share of samples whose interval holds the true value, of every method."""
    n, degree, name, hetero = cell
    methods = ["asymptotic"] + ["simulation"] * (name == "dense")
    alpha = np.asarray(COEFFICIENTS[name][:degree])
    truth = np.abs(alpha).sum()
    hits = dict.fromkeys(methods, 0)
    rng = np.random.default_rng([n, degree, hetero, len(hits), int(100 * truth)])
    for run in range(SAMPLES):
        x = rng.normal(size=n)
        noise = rng.normal(size=n) * (0.5 + 0.5 * np.abs(x) if hetero else 1.0)
        y = x[:, None] ** np.arange(1, degree + 1) @ alpha + noise
        for method in methods:
            low, high = gedi_inference(
                y, sensitive_features=x, kernel=degree, method=method, random_state=run
            ).interval
            # In floats a sum of coefficients may miss its own bound by rounding.
            hits[method] += low <= truth * (1 + 1e-12) and truth <= high
    return {method: count / SAMPLES for method, count in hits.items()}


if __name__ == "__main__":
    main()
