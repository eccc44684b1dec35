"""How often confidence limits hold, and how wide they are: ``python -m benchmarks.coverage``.

Every cell is a population of :mod:`benchmarks._coverage_cells`, drawn again and again. The rates of
two groups are enumerated instead. ``--docs`` writes the tables of ``docs/inference_coverage.md``.
"""

import argparse
import sys
import warnings
from collections.abc import Iterator, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from scipy.special import betaincinv, stdtrit
from scipy.stats import binom

from benchmarks._constraints import named_constraint
from benchmarks._coverage_cells import (
    CLUSTERS,
    FEW,
    GROUPS,
    POWERS,
    SUMS,
    WELL,
    Cell,
    Rows,
    cells,
    size_of,
)
from benchmarks._storage import append_row, create, read_rows
from benchmarks._tables import insert_between, markdown
from benchmarks._units import PACKAGES, versions
from gedi_sklearn import DidiConstraint
from gedi_sklearn.kernels import fit_codes, fit_kernel
from gedi_sklearn.metrics import (
    Errors,
    GediAccumulator,
    KernelIndicator,
    farthest,
    gedi,
    gedi_inference,
    upper_limits,
)
from gedi_sklearn.projection import Projection

PAGE = Path(__file__).parents[1] / "docs" / "inference_coverage.md"
RESULTS = Path(__file__).parent / "results"
BEGIN, END = "<!-- {}: begin (written by benchmarks.coverage) -->", "<!-- {}: end -->"
FAMILIES = (FEW, CLUSTERS, GROUPS, WELL, SUMS, POWERS)
EXACT = "rates of two groups, enumerated"
N_NEW = 500
KEY = ("family", "name", "n")
MEASURES = ("upper90", "upper95", "interval95", "infinite", "width", "excess")
COLUMNS = (*KEY, "samples", *MEASURES, *PACKAGES, "python")
# Group sizes, and rates in both groups.
_FEW_ROWS, _OTHER_ROWS = (2, 5, 10, 15, 30, 60, 200), (60, 2000)
_RATES = (0.005, 0.02, 0.05, 0.1, 0.3, 0.5, 0.8, 0.95, 0.99)
_OTHER_RATES = (0.005, 0.05, 0.3, 0.9)
_CONFIDENCES = (0.9, 0.95, 0.99)


def main(argv: Sequence[str] | None = None) -> None:
    options = parse(argv)
    path = options.output / "coverage.csv"
    if not options.report:
        run(path, options)
    lines = read_rows(path, COLUMNS)
    text = {name: table(name, lines) for name in (EXACT, *FAMILIES)}
    print("\n\n".join(f"{name}\n\n{own}" for name, own in text.items()))
    if options.docs:
        page = PAGE.read_text(encoding="utf-8")
        for name, own in text.items():
            where = BEGIN.format(name), END.format(name)
            page = insert_between(page, *where, own, page=f"docs/{PAGE.name}")
        PAGE.write_text(page, encoding="utf-8")


def parse(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.coverage",
        description="How often confidence limits hold. A run that was interrupted is taken up "
        "where it ended: a cell that is in the table is not run again.",
    )
    families = (EXACT, *FAMILIES)
    parser.add_argument("--family", nargs="+", choices=families, default=families)
    parser.add_argument("--cell", nargs="+", help="only cells whose names begin so")
    parser.add_argument("--samples", type=int, help="of every cell; default: 2,000, or 500 of many")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--output", type=Path, default=RESULTS)
    parser.add_argument("--report", action="store_true", help="run nothing, print what is there")
    parser.add_argument("--docs", action="store_true", help="also write the tables of the page")
    return parser.parse_args(argv)


def run(path: Path, options: argparse.Namespace) -> None:
    """Run the cells that the table lacks."""
    create(path, COLUMNS)
    done = {tuple(line[name] for name in KEY) for line in read_rows(path, COLUMNS)}
    if EXACT in options.family:
        for line in enumerated(done, options):
            append_row(path, COLUMNS, line | versions())
    for cell in cells():
        if cell.family not in options.family or cell.key in done:
            continue
        if options.cell and not cell.name.startswith(tuple(options.cell)):
            continue
        found = simulate(cell, options.samples or cell.n_samples, options.jobs)
        line = dict(zip(KEY, cell.key, strict=True)) | found
        append_row(path, COLUMNS, line | versions())
        print(*cell.key, *found.values(), file=sys.stderr, flush=True)


def simulate(cell: Cell, n_samples: int, n_jobs: int = 1) -> dict[str, Any]:
    """Return how often the limits of a cell hold, and how wide they are."""
    _ = cell.true_value  # once, before the samples
    parts = np.array_split(np.arange(n_samples), max(n_jobs, 1))
    found = Parallel(n_jobs=n_jobs)(delayed(_of_samples)(cell, part) for part in parts)
    own = np.concatenate([one for one in found if len(one)])
    truth, upper90, upper95, low, high, plain, exact, value = own.T
    slack = truth * (1 - 1e-9)  # a sum of coefficients may miss its limit by rounding
    finite = np.isfinite(upper95)
    numbers = {
        "upper90": np.mean(upper90 >= slack),
        "upper95": np.mean(upper95 >= slack),
        "interval95": np.mean((low <= truth * (1 + 1e-9)) & (high >= slack))
        if not np.isnan(low).all()
        else np.nan,
        "infinite": np.mean(~finite),
        "width": np.divide(*(np.sum((one - value)[finite]) for one in (upper95, plain)))
        if finite.any()
        else np.nan,
        "excess": np.median(upper95 - value) / np.median(exact - value),
    }
    shown = {name: "" if np.isnan(number) else f"{number:.4f}" for name, number in numbers.items()}
    return {"samples": len(own)} | shown


def _of_samples(cell: Cell, seeds: np.ndarray) -> np.ndarray:
    """Return what is known of some samples, one row each."""
    kind = {"didi": _didi, "fitted": _fitted, "batch": _batch, "sums": _sums}.get(cell.what, _gedi)
    found = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # few rows are what is tried here
        for seed in seeds:
            rng = np.random.default_rng([int(seed), cell.n, sum(map(ord, cell.name))])
            rows = cell.draw(rng, cell.n)
            if len(np.unique(rows.x)) > 1:
                found.append(kind(cell, rows, rng))
    return np.array(found)


def _gedi(cell: Cell, rows: Rows, rng: np.random.Generator) -> list[float]:
    kernel, norm = cell.options.get("kernel", 1), cell.options.get("norm", "l1")
    found = gedi_inference(rows.y, sensitive_features=rows.x, kernel=kernel, norm=norm)
    indicator = found._indicator
    upper90, upper95 = (
        float(indicator.upper_limit(rows.y, level, groups=rows.groups).values[0])
        for level in (0.9, 0.95)
    )
    low, high, _ = indicator.interval(rows.y, 0.95, rows.groups)
    plain, value = _plain(indicator, rows, norm), indicator.measure(rows.y)
    exact = _clopper_pearson(rows) if _are_rates(rows) and norm == "l1" else np.nan
    return [cell.true_value, upper90, upper95, low, high, plain, exact, value]


def _plain(indicator: KernelIndicator, rows: Rows, norm: str) -> float:
    """Return the limit by HC3 and the t distribution of all degrees of freedom, as it was."""
    is_drawn = indicator.block.allowed.is_of_coordinates
    errors = Errors(indicator.design, rows.y[:, None], is_basis_drawn=is_drawn)
    matrix = indicator.matrix
    covariance = matrix @ errors.covariance @ matrix.T
    t = float(stdtrit(errors.n_free, 0.95))
    return errors.unit * float(farthest(matrix @ errors.coordinates[0], covariance, norm, t)[0])


def _didi(cell: Cell, rows: Rows, rng: np.random.Generator) -> list[float]:
    n_classes = 0 if rows.y.dtype.kind == "f" else len(np.unique(rows.y))
    columns = rows.y[:, None].astype(float)
    if n_classes > 2:
        columns = (rows.y[:, None] == np.arange(n_classes)) * 1.0
    design, outputs = fit_codes(rows.x), tuple(range(columns.shape[1]))
    block = DidiConstraint().gauge(design, is_class=n_classes > 0, outputs=outputs)
    upper = [
        block.factor * float(upper_limits(block, columns, level, simultaneous=False).values[0])
        for level in (0.9, 0.95)
    ]
    return [cell.true_value, *upper, *[np.nan] * 4, block.indicator(columns)]


def _fitted(cell: Cell, rows: Rows, rng: np.random.Generator) -> list[float]:
    """Return limits of targets that were projected on these rows."""
    kernel, norm = cell.options["kernel"], cell.options["norm"]
    name, relative = ("coarse", kernel) if norm == "l1" else ("sd", True)
    bound = named_constraint(name, kernel=kernel, relative=relative)
    with Projection(rows.y, sensitive_features=rows.x, constraint=bound) as projection:
        solved = projection.solve()
    truth = size_of(tuple(np.array(cell.alpha) + solved.correction), norm)
    own = {"sensitive_features": rows.x, "fitted": True, **cell.options}
    upper = [gedi_inference(solved.targets, **own, confidence=c).upper for c in (0.9, 0.95)]
    return [
        truth,
        *upper,
        *[np.nan] * 4,
        gedi(solved.targets, sensitive_features=rows.x, **cell.options),
    ]


def _batch(cell: Cell, rows: Rows, rng: np.random.Generator) -> list[float]:
    """Return limits of the indicator of a batch of new rows."""
    new = cell.draw(rng, N_NEW)
    own = {"sensitive_features": rows.x, "n_new": N_NEW, **cell.options}
    upper = [gedi_inference(rows.y, **own, confidence=c).upper for c in (0.9, 0.95)]
    values = [gedi(own.y, sensitive_features=own.x, **cell.options) for own in (new, rows)]
    return [values[0], *upper, *[np.nan] * 4, values[1]]


def _sums(cell: Cell, rows: Rows, rng: np.random.Generator) -> list[float]:
    """Return limits of an accumulator, beside the exact one of the rows."""
    accumulator = GediAccumulator()
    accumulator.update(rows.y, sensitive_features=np.where(rows.x == 1, "b", "a"))
    upper = [accumulator.inference(confidence=c).upper for c in (0.9, 0.95)]
    return [cell.true_value, *upper, *[np.nan] * 3, _clopper_pearson(rows), accumulator.gedi()]


def _are_rates(rows: Rows) -> bool:
    are_binary = all(np.isin(values, (0, 1)).all() for values in (rows.x, rows.y))
    return rows.groups is None and are_binary


def _clopper_pearson(rows: Rows) -> float:
    """Return the exact limit of the difference of two rates, each with half of the error."""
    n = np.array([(rows.x == g).sum() for g in (0, 1)])
    k = np.array([rows.y[rows.x == g].sum() for g in (0, 1)])
    high = np.where(k < n, betaincinv(k + 1, np.maximum(n - k, 0.5), 0.975), 1.0)
    low = np.where(k > 0, betaincinv(np.maximum(k, 0.5), n - k + 1, 0.025), 0.0)
    return float(max(high[1] - low[0], high[0] - low[1]))


def enumerated(done: set[tuple[str, ...]], options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Yield the lowest exact coverage over all pairs of rates, of every pair of group sizes."""
    pairs = [
        pair for pair in product(_FEW_ROWS, _OTHER_ROWS) if (EXACT, str(pair), "504") not in done
    ]
    for pair in pairs:
        held = _enumerate(*pair)
        line = dict(zip(KEY, (EXACT, str(pair), "504"), strict=True))
        shown = {f"upper{round(100 * c)}": f"{own:.4f}" for c, own in held.items()}
        # The third confidence stands in the column of intervals, which have none here.
        shown["interval95"] = shown.pop("upper99")
        print(pair, shown, file=sys.stderr, flush=True)
        yield line | {"samples": len(_RATES) * len(_OTHER_RATES)} | shown


def _enumerate(few: int, other: int) -> dict[float, float]:
    """Return the lowest coverage of every confidence."""
    group = np.repeat([0.0, 1.0], [other, few])
    design = fit_kernel("polynomial", group[:, None])
    block = KernelIndicator(design).block
    numbers = np.arange(other + 1)
    weights = {p: binom.pmf(numbers, other, p) for p in _OTHER_RATES}
    likely = np.flatnonzero(np.max(list(weights.values()), axis=0) > 1e-7)
    if len(likely) > 250:
        likely = likely[np.unique(np.linspace(0, len(likely) - 1, 250).astype(int))]
    limits = np.empty((len(_CONFIDENCES), few + 1, len(likely)))
    for i, (j, k) in product(range(few + 1), enumerate(likely)):
        y = np.zeros(other + few)
        y[:k] = 1
        y[other : other + i] = 1
        for c, confidence in enumerate(_CONFIDENCES):
            found = upper_limits(block, y[:, None], confidence, simultaneous=False)
            limits[c, i, j] = found.values[0]
    lowest = dict.fromkeys(_CONFIDENCES, 1.0)
    for p, p0 in product(_RATES, _OTHER_RATES):
        own = weights[p0][likely] / weights[p0][likely].sum()
        chance = binom.pmf(np.arange(few + 1), few, p)[:, None] * own
        for c, confidence in enumerate(_CONFIDENCES):
            held = float((chance * (limits[c] >= abs(p - p0) - 1e-12)).sum())
            lowest[confidence] = min(lowest[confidence], held)
    return lowest


def table(family: str, lines: Sequence[dict[str, str]]) -> str:
    """Return the cells of a family as Markdown, and how many are below nominal."""
    own = [line for line in lines if line["family"] == family]
    if family == EXACT:
        head = ["rows of the two groups", "lowest at .90", "at .95", "at .99"]
        body = [
            [line["name"], line["upper90"], line["upper95"], line["interval95"]] for line in own
        ]
        return markdown(head, body)
    head = ["population", "n", "samples", "upper .90", "upper .95", "interval .95", "infinite"]
    head += ["width", "excess"]
    names = ("name", "n", "samples", *MEASURES)
    # A bar would end a cell of the table.
    body = [[line[name].replace("|", r"\|") for name in names] for line in own]
    return f"{markdown(head, body)}\n\n{summary(own)}"


def summary(lines: Sequence[dict[str, str]]) -> str:
    """Return the cells whose limits hold too rarely: by more than 1 %, beyond binomial error."""
    below = [line["name"] for line in lines if is_below(line)]
    return f"Cells below nominal by more than .01, beyond chance: {'; '.join(below) or 'none'}."


def is_below(line: dict[str, str]) -> bool:
    """Tell whether a limit of 90 or 95 % holds in fewer samples than chance explains."""
    n = int(line["samples"])
    pairs = ((0.9, line["upper90"]), (0.95, line["upper95"]))
    return any(
        binom.cdf(round(n * float(held)), n, level - 0.01) < 0.001 for level, held in pairs if held
    )


if __name__ == "__main__":
    main()
