"""Rebuild the paper's tables 4 and 5: ``python -m benchmarks.paper_tables --help``."""

import argparse
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from joblib import Parallel, delayed

from benchmarks import _tables
from benchmarks._storage import append_row, create, read_rows
from benchmarks._units import COLUMNS, KEY, MODELS, SOLVERS, Settings, Unit, run_unit, units
from benchmarks.tasks import N_FOLDS, TASKS

HERE = Path(__file__).parent
RESULTS = HERE / "results"
PAGE = HERE.parent / "docs" / "paper_tables.md"
DATASETS = tuple(dict.fromkeys(task.dataset for task in TASKS))
PROTECTED = tuple(task.protected for task in TASKS)
# How many of the 144 means in the paper's 36 rows must agree.
ENOUGH_CELLS = 120
QUICK_MODELS = tuple(model for model in MODELS if model.startswith("GB"))
GUROBI_NOTICE = (
    "Without a licence of your own Gurobi runs on the one that comes with pip: size-limited, for "
    "non-production use only. --solver highs needs none."
)


def main(argv: Sequence[str] | None = None) -> None:
    options = parse(argv)
    settings = Settings(options.max_iter, options.solver, options.seed)
    asked = list(
        units(
            datasets=options.dataset,
            protected=options.protected,
            models=options.model,
            n_folds=options.folds,
        )
    )
    csv_path = options.output / "paper_tables.csv"
    if not options.report:
        if settings.solver == "gurobi":
            print(GUROBI_NOTICE, file=sys.stderr)
        options.output.mkdir(parents=True, exist_ok=True)
        run(asked, settings, csv_path, n_jobs=options.n_jobs)
    elif not csv_path.exists():
        raise SystemExit(f"--report: there is no {csv_path} to format; run without it first.")

    rows = select(read_rows(csv_path, COLUMNS), asked, settings)
    report = _tables.report(rows, settings=describe(settings))
    page = "paper_tables.md"
    (options.output / page).write_text(report, encoding="utf-8")
    if options.docs:
        text = _tables.insert_in_page(PAGE.read_text(encoding="utf-8"), _tables.page_table(rows))
        PAGE.write_text(text, encoding="utf-8")
    print(report)
    print(f"Results: {csv_path} and {page} beside it.")
    if options.report:
        sum_up(rows)


def sum_up(rows: Sequence[dict[str, str]]) -> None:
    """Print how many means agree with the paper's; exit with 1 where too few of all rows do."""
    lines = _tables.compare(rows)
    missing = _tables.missing_rows(lines)
    if missing:
        print(f"Not run, or not on every fold: {'; '.join(missing)}.")
    within, total = _tables.cells_within(lines)
    print(
        f"{within} of {total} cells (score and GeDI %, train and validation) lie within "
        "max(2 sd, 0.02 for scores, 0.05 for GeDI %) of the paper's."
    )
    if not missing and within < ENOUGH_CELLS:
        raise SystemExit(1)


def parse(argv: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.paper_tables",
        description="Run the paper's protocol for Random Forest, Gradient Boosting and neural "
        "networks, plain and constrained, and put the paper's numbers beside ours. A run that was "
        "interrupted, or asked for less, is taken up where it ended.",
    )
    parser.add_argument("--dataset", nargs="+", choices=DATASETS, default=DATASETS)
    parser.add_argument("--protected", nargs="+", choices=PROTECTED, default=PROTECTED)
    parser.add_argument("--model", nargs="+", choices=MODELS, help="default: all; --quick: GB's")
    parser.add_argument(
        "--folds",
        type=int,
        choices=range(1, N_FOLDS + 1),
        help=f"how many of the {N_FOLDS} folds (default: all; --quick: 1)",
    )
    parser.add_argument(
        "--max-iter",
        type=positive_int,
        help="iterations of Moving Targets (default: 10, the paper's; --quick: 3)",
    )
    parser.add_argument(
        "--solver",
        choices=SOLVERS,
        default="gurobi",
        help="of the master step (default: gurobi, the paper's)",
    )
    parser.add_argument("--n-jobs", type=int, default=1, help="processes (default: 1)")
    parser.add_argument(
        "--seed", type=int, default=0, help="of the folds and learners (default: 0, the paper's)"
    )
    parser.add_argument(
        "--output",
        type=Path,
        help=f"folder of the results (default: {RESULTS.relative_to(HERE.parent)}; "
        "--quick: its subfolder quick)",
    )
    parser.add_argument(
        "--quick", action="store_true", help="one fold, GB with and without MT, three iterations"
    )
    parser.add_argument(
        "--report",
        action="store_true",
        help="run nothing, format what is there and count the cells that agree with the paper; "
        f"exit with 1 where all rows are there and fewer than {ENOUGH_CELLS} do",
    )
    parser.add_argument(
        "--docs", action="store_true", help=f"also write the table of docs/{PAGE.name}"
    )
    options = parser.parse_args(argv)

    quick = options.quick
    options.model = options.model or (QUICK_MODELS if quick else MODELS)
    options.folds = options.folds or (1 if quick else N_FOLDS)
    options.max_iter = options.max_iter or (3 if quick else 10)
    # Apart from the committed results, which a look at the project should leave alone.
    options.output = options.output or (RESULTS / "quick" if quick else RESULTS)
    if not any(units(datasets=options.dataset, protected=options.protected, models=options.model)):
        tasks = ", ".join(f"{task} ({task.protected_kind})" for task in TASKS)
        parser.error(
            "the paper has no row for this combination of --dataset, --protected and --model; "
            f"the tasks are {tasks}, and a binary attribute has RF+MT and GB+MT alone."
        )
    return options


def positive_int(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"must be at least 1, got {value}")
    return value


def run(asked: Iterable[Unit], settings: Settings, csv_path: Path, *, n_jobs: int) -> None:
    """Run what the CSV lacks and add each unit to it as soon as it is done."""
    done = {tuple(row[name] for name in KEY) for row in read_rows(csv_path, COLUMNS)}
    asked = list(asked)
    missing = [unit for unit in asked if unit.key(settings) not in done]
    if len(missing) < len(asked):
        skipped = len(asked) - len(missing)
        print(f"{skipped} of {len(asked)} units are in {csv_path} already.", file=sys.stderr)
    create(csv_path, COLUMNS)
    results = Parallel(n_jobs=n_jobs, return_as="generator_unordered")(
        delayed(run_unit)(unit, settings) for unit in missing
    )
    for row in progress(results, total=len(missing)):
        append_row(csv_path, COLUMNS, row)


def progress(results: Iterable[dict[str, Any]], *, total: int) -> Iterator[dict[str, Any]]:
    """Show a bar, or a line a unit where tqdm is missing."""
    try:
        from tqdm import tqdm
    except ImportError:
        print(
            "No progress bar: tqdm is not installed (pip install -e '.[benchmarks]').",
            file=sys.stderr,
        )
        for number, row in enumerate(results, start=1):
            name = f"{row['dataset']}/{row['protected']} {row['model']} fold {row['fold']}"
            print(f"{number}/{total}: {name}", file=sys.stderr)
            yield row
    else:
        yield from tqdm(results, total=total, unit="unit", disable=total == 0)


def select(
    rows: Iterable[dict[str, str]], asked: Iterable[Unit], settings: Settings
) -> list[dict[str, str]]:
    """Keep the rows of the units asked for, made with these settings."""
    keys = {unit.key(settings) for unit in asked}
    return [row for row in rows if tuple(row[name] for name in KEY) in keys]


def describe(settings: Settings) -> str:
    return (
        f"{settings.max_iter} iterations of Moving Targets, "
        f"solver {settings.solver}, seed {settings.seed}"
    )


if __name__ == "__main__":
    main()
