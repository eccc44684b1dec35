"""How often upper limits of GeDI hold, by simulation: ``python -m benchmarks.upper_limits``.

The cells are those of the table of intervals in ``docs/inference_coverage.md``, below which
``--docs`` writes this one.
"""

import argparse
from collections.abc import Sequence
from itertools import product
from pathlib import Path

import numpy as np
from joblib import Parallel, delayed

from benchmarks._constraints import named_constraint
from benchmarks._tables import insert_between, markdown
from gedi_sklearn import PolynomialKernel
from gedi_sklearn.metrics import gedi, gedi_inference
from gedi_sklearn.projection import Projection

PAGE = Path(__file__).parents[1] / "docs" / "inference_coverage.md"
BEGIN = "<!-- limits: begin (written by benchmarks.upper_limits) -->"
END = "<!-- limits: end -->"
COEFFICIENTS = {
    "0": (0.0, 0.0, 0.0, 0.0, 0.0),
    "(.5, 0, ...)": (0.5, 0.0, 0.0, 0.0, 0.0),
    "(.5, -.3, .1, 0, 0)": (0.5, -0.3, 0.1, 0.0, 0.0),
    "dense": (4.0, -3.0, 2.0, 1.0, -0.5),
}
COLUMNS = ("l1", "l1, fitted", "sd", "sd, fitted", "l1, batch")
N_NEW = 500
# Moments of a standard normal attribute, and from them the covariance of its powers.
_MOMENTS = (1, 0, 1, 0, 3, 0, 15, 0, 105, 0, 945)
_POWERS = range(1, 6)
_COVARIANCE = np.array(
    [[_MOMENTS[i + j] - _MOMENTS[i] * _MOMENTS[j] for j in _POWERS] for i in _POWERS], dtype=float
)

Cell = tuple[int, int, str, bool]
CELLS: list[Cell] = list(product((500, 5000), (1, 2, 5), COEFFICIENTS, (False, True)))


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, nargs="+", default=[500, 5000])
    parser.add_argument("--samples", type=int, default=500)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--docs", action="store_true", help="write the table of the page")
    given = parser.parse_args(argv)
    lines, shares = [], []
    for cell in CELLS:
        n, degree, name, hetero = cell
        if n in given.rows:
            shares.append(held(cell, given.samples, given.jobs))
            lines.append([str(n), str(degree), name, "hetero" if hetero else "homo"])
            print(*lines[-1], *shares[-1], flush=True)
    lines.append(["all", "", "", ""])
    shares.append(np.mean(shares, axis=0))
    head = ["n", "degree", "coefficients", "noise", *COLUMNS]
    found = [
        [*line, *(f"{share:.3f}" for share in own)] for line, own in zip(lines, shares, strict=True)
    ]
    table = f"Samples in every cell: {given.samples:,}.\n\n{markdown(head, found)}"
    print(table)
    if given.docs:
        page = PAGE.read_text(encoding="utf-8")
        page = insert_between(page, BEGIN, END, table, page=f"docs/{PAGE.name}")
        PAGE.write_text(page, encoding="utf-8")


def held(cell: Cell, n_samples: int, n_jobs: int = 1) -> np.ndarray:
    """Return the share of samples whose limit holds, of every column."""
    found = Parallel(n_jobs=n_jobs)(delayed(_holds)(cell, seed) for seed in range(n_samples))
    return np.mean(found, axis=0)


def _holds(cell: Cell, seed: int) -> list[bool]:
    n, degree, name, hetero = cell
    alpha = np.array(COEFFICIENTS[name][:degree])
    rng = np.random.default_rng([seed, n, degree, hetero, list(COEFFICIENTS).index(name)])
    x, y = _draw(rng, n, alpha, hetero)
    kernel = PolynomialKernel(degree)
    options = {"sensitive_features": x, "kernel": kernel}
    found = []
    for norm in ("l1", "sd"):
        own = {**options, "norm": norm}
        found.append(_true_value(alpha, norm) <= gedi_inference(y, **own).upper)
        name, relative = ("coarse", degree) if norm == "l1" else ("sd", True)
        bound = named_constraint(name, kernel=kernel, relative=relative)
        with Projection(y, sensitive_features=x, constraint=bound) as projection:
            fitted = projection.solve()
        truth = _true_value(alpha + fitted.correction, norm)
        found.append(truth <= gedi_inference(fitted.targets, **own, fitted=True).upper)
    new_x, new = _draw(rng, N_NEW, alpha, hetero)
    limit = gedi_inference(y, **options, n_new=N_NEW).upper
    return [*found, gedi(new, sensitive_features=new_x, kernel=kernel) <= limit]


def _draw(
    rng: np.random.Generator, n: int, alpha: np.ndarray, hetero: bool
) -> tuple[np.ndarray, np.ndarray]:
    x = rng.normal(size=n)
    noise = rng.normal(size=n) * (0.5 + 0.5 * np.abs(x) if hetero else 1.0)
    return x, x[:, None] ** np.arange(1, len(alpha) + 1) @ alpha + noise


def _true_value(alpha: np.ndarray, norm: str) -> float:
    covariance = _COVARIANCE[: len(alpha), : len(alpha)]
    return float(np.abs(alpha).sum() if norm == "l1" else np.sqrt(alpha @ covariance @ alpha))


if __name__ == "__main__":
    main()
