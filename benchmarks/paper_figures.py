"""Rebuild the paper's figures and their numbers: ``python -m benchmarks.paper_figures --help``."""

import argparse
import csv
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from benchmarks._figure_numbers import NUMBERS, Row, Settings, Tables, steps_down
from benchmarks._storage import write_rows
from benchmarks._tables import insert_between, markdown
from benchmarks._units import SOLVERS

HERE = Path(__file__).parent
RESULTS = HERE / "results"
OUTPUT = RESULTS / "figures"
PAGE = HERE.parent / "docs" / "paper_figures.md"
# What is smaller is rounding noise, which every machine has its own of.
_ROUNDING = 1e-12


def main(argv: Sequence[str] | None = None) -> None:
    options = parse(argv)
    if not can_draw():
        raise SystemExit(
            "benchmarks.paper_figures draws with matplotlib: pip install -e '.[plot]'."
        )
    settings = Settings(options.results, seed=options.seed, solver=options.solver)
    options.output.mkdir(parents=True, exist_ok=True)
    for number in options.figure:
        tables = NUMBERS[number](settings)
        written = [*write_tables(number, tables, options.output)]
        written += draw(number, tables, options.output)
        print(f"Figure {number}: {', '.join(path.name for path in written)}")
    if options.docs:
        PAGE.write_text(fill_page(PAGE.read_text(encoding="utf-8"), options.output), "utf-8")
    print(f"Results: {options.output}")


def parse(argv: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.paper_figures",
        description="Rebuild the paper's figures: PNG, SVG, and the numbers behind each as CSV.",
    )
    parser.add_argument(
        "--figure", nargs="+", type=int, choices=sorted(NUMBERS), default=sorted(NUMBERS)
    )
    parser.add_argument("--output", type=Path, default=OUTPUT, help="folder (default: %(default)s)")
    parser.add_argument(
        "--results",
        type=Path,
        default=RESULTS / "paper_tables.csv",
        help="what Figure 4 shows, from benchmarks.paper_tables (default: %(default)s)",
    )
    parser.add_argument("--seed", type=int, default=0, help="of the samples (default: 0)")
    parser.add_argument(
        "--solver", choices=SOLVERS, default="highs", help="of Figure 3's projections on Adult"
    )
    parser.add_argument(
        "--docs", action="store_true", help=f"also write the tables of docs/{PAGE.name}"
    )
    return parser.parse_args(argv)


def can_draw() -> bool:
    return find_spec("matplotlib") is not None


def file_name(number: int, table: str) -> str:
    return f"figure_{number}{'_' if table else ''}{table}.csv"


def write_tables(number: int, tables: Tables, output: Path) -> list[Path]:
    """Write a CSV a table, with the digits that another machine gives too."""
    written = []
    for name, rows in tables.items():
        path = output / file_name(number, name)
        texts = ({key: _as_text(value) for key, value in row.items()} for row in rows)
        write_rows(path, list(rows[0]), texts)
        written.append(path)
    return written


def _as_text(value: Any) -> str:
    if not isinstance(value, float):
        return str(value)
    return "0" if abs(value) < _ROUNDING else f"{value:.6g}"


def draw(number: int, tables: Tables, output: Path) -> list[Path]:
    """Write the picture in both formats."""
    import matplotlib as mpl

    from benchmarks._figure_drawings import DRAWINGS, METADATA, STYLE

    written = []
    with mpl.rc_context(STYLE):
        figure = DRAWINGS[number](tables)
        for suffix, metadata in METADATA.items():
            path = output / f"figure_{number}.{suffix}"
            figure.savefig(path, metadata=metadata, dpi=110)
            written.append(path)
    return written


# --- the page


def read_table(number: int, output: Path, table: str = "") -> list[Row]:
    with (output / file_name(number, table)).open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def fill_page(page: str, output: Path) -> str:
    """Replace the tables between the page's markers by those of the CSV files."""
    for name, table in page_tables(output).items():
        begin, end = f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
        page = insert_between(page, begin, end, table, page=f"docs/{PAGE.name}")
    return page


def page_tables(output: Path) -> dict[str, str]:
    """Format what the figures say, as Markdown."""
    limits, example, bars, correlations = (read_table(number, output) for number in NUMBERS)
    independent = read_table(4, output, "independent")
    series = list(dict.fromkeys((row["panel"], row["series"]) for row in limits))
    bins = list(dict.fromkeys(row["bins"] for row in bars))
    key = ["task", "constraint", "order"]
    return {
        "figure 1": markdown(
            ["indicator", *(f"({panel}) {name}" for panel, name in series)],
            _pivot(limits, ["indicator"], ["panel", "series"], "value", ".2f"),
        ),
        "figure 2": markdown(
            ["projected to 0", "GeDI-V1", "GeDI-V2", "GeDI-V3", "mean square moved", "left"],
            [
                [
                    f"V{row['order']}" if row["order"] != "0" else "nothing",
                    *(f"{float(row[f'gedi_v{k}']):.3f}" for k in (1, 2, 3)),
                    f"{float(row['moved']):.2f}",
                    f"{float(row['signal_left']):.1%}",
                ]
                for row in example
            ],
        ),
        "figure 3": markdown(
            [*key, "GeDI-V1", *("DIDI" if b == "groups" else f"DIDI-{b}" for b in bins)],
            _pivot(
                [row | {"v1": f"{float(row['gedi_v1_percent']):.0f}"} for row in bars],
                [*key, "v1"],
                ["bins"],
                "didi_percent",
                ".0f",
            ),
        ),
        "figure 3 steps": markdown(
            ["task", "constraint", "steps to the next order", "DIDI smaller"],
            [
                [row["task"], row["constraint"], str(row["steps"]), str(row["smaller"])]
                for row in steps_down(bars)
            ],
        ),
        "figure 4": markdown(
            ["task", "rows", "tests", "Pearson", "Spearman"],
            [
                [
                    row["task"],
                    row["part"],
                    row["n"],
                    f"{float(row['pearson']):.2f}",
                    f"{float(row['spearman']):.2f}",
                ]
                for row in correlations
            ],
        ),
        "figure 4 independent": markdown(
            ["task", *dict.fromkeys(row["part"] for row in independent)],
            _pivot(independent, ["task"], ["part"], "hgr_percent", ".0f"),
        ),
    }


def _pivot(
    rows: Sequence[Row], index: Sequence[str], columns: Sequence[str], value: str, digits: str
) -> list[list[str]]:
    """Return a line for each value of `index` with a cell for each value of `columns`."""
    names = list(dict.fromkeys(tuple(row[c] for c in columns) for row in rows))
    cells: dict[tuple, dict[tuple, str]] = {}
    for row in rows:
        line = cells.setdefault(tuple(row[i] for i in index), {})
        line[tuple(row[c] for c in columns)] = f"{float(row[value]):{digits}}"
    return [[*key, *(line.get(name, "") for name in names)] for key, line in cells.items()]


if __name__ == "__main__":
    main()
