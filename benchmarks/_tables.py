"""Formatting: the paper's numbers beside ours, from CSV rows to Markdown."""

import csv
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks._units import PACKAGES, models_of
from benchmarks.tasks import N_FOLDS, TASKS, Task

REFERENCE = Path(__file__).with_name("paper_tables_reference.csv")
MEASURES = ("score_train", "score_val", "gedi_train", "gedi_val")
PAGE_BEGIN = "<!-- paper_tables: begin (written by `python -m benchmarks.paper_tables`) -->"
PAGE_END = "<!-- paper_tables: end -->"

Row = Mapping[str, str]


@dataclass(frozen=True)
class Value:
    """A mean over folds and its standard deviation; a single fold has none."""

    mean: float
    std: float | None

    def text(self, digits: int) -> str:
        mean = f"{self.mean:.{digits}f}"
        return mean if self.std is None else f"{mean} ± {self.std:.{digits}f}"


@dataclass(frozen=True)
class Line:
    """A row of the paper's tables with our folds of it."""

    task: Task
    model: str
    paper: Mapping[str, Value]
    paper_seconds: float
    folds: Sequence[Row]

    def ours(self, measure: str) -> Value:
        return summarize([float(row[measure]) for row in self.folds])

    def seconds(self, column: str) -> float:
        return statistics.fmean(float(row[column]) for row in self.folds)

    @property
    def master_share(self) -> float:
        return self.seconds("seconds_master") / self.seconds("seconds_total")


def summarize(values: Sequence[float]) -> Value:
    """Average over the folds, with the population standard deviation."""
    std = statistics.pstdev(values) if len(values) > 1 else None
    return Value(statistics.fmean(values), std)


def read_reference(path: Path = REFERENCE) -> dict[tuple[str, str, str], Row]:
    """Read the paper's numbers by data set, kind of attribute and model."""
    with path.open(encoding="utf-8", newline="") as file:
        return {
            (row["dataset"], row["protected"], row["model"]): row for row in csv.DictReader(file)
        }


def compare(rows: Sequence[Row]) -> list[Line]:
    """Put our folds beside the paper's rows, in the paper's order; rows not run are left out."""
    reference = read_reference()
    lines = []
    for task in TASKS:
        for model in models_of(task):
            folds = [
                row
                for row in rows
                if (row["dataset"], row["protected"], row["model"])
                == (task.dataset, task.protected, model)
            ]
            if folds:
                paper = reference[task.dataset, task.protected_kind, model]
                values = {
                    name: Value(float(paper[name]), float(paper[f"{name}_std"]))
                    for name in MEASURES
                }
                lines.append(Line(task, model, values, float(paper["time_s"]), folds))
    return lines


def missing_rows(lines: Sequence[Line]) -> list[str]:
    """Name the paper's rows that were not run, or not on every fold."""
    done = {(line.task, line.model): len(line.folds) for line in lines}
    return [
        f"{task} {model} ({done.get((task, model), 0)} of {N_FOLDS} folds)"
        for task in TASKS
        for model in models_of(task)
        if done.get((task, model), 0) < N_FOLDS
    ]


def cells_within(lines: Sequence[Line]) -> tuple[int, int]:
    """Count the means within tolerance of the paper's, and all of them."""
    within = [
        abs(line.ours(name).mean - line.paper[name].mean) <= _tolerance(name, line.paper[name])
        for line in lines
        for name in MEASURES
    ]
    return sum(within), len(within)


def _tolerance(measure: str, paper: Value) -> float:
    """Return two of the paper's deviations, and at least what its digits and seeds leave open."""
    assert paper.std is not None  # the paper's always have one
    return max(2 * paper.std, 0.02 if measure.startswith("score") else 0.05)


def report(rows: Sequence[Row], *, settings: str) -> str:
    """Format the full comparison: every measure, then times, gaps and statuses."""
    lines = compare(rows)
    parts = [
        "# The paper's tables, rebuilt",
        "Written by `python -m benchmarks.paper_tables` from `paper_tables.csv`; "
        f"{settings}. {_environment(rows)}",
        "A value is the mean over the folds ± their standard deviation. `GeDI-Vk %` is the "
        "indicator of the predictions over `gedi(y, kernel=1)` of the same split.",
    ]
    for task in TASKS:
        of_task = [line for line in lines if line.task == task]
        if of_task:
            parts += [f"## {task}", *_comparison(task, of_task)]
    if lines:
        parts += ["## Time and solver", *_effort(lines)]
    else:
        parts.append("No result yet.")
    return "\n\n".join(parts) + "\n"


def page_table(rows: Sequence[Row]) -> str:
    """Format the means alone, one compact table a task."""
    lines = compare(rows)
    if not lines:
        return "No result yet."
    parts = []
    for task in TASKS:
        of_task = [line for line in lines if line.task == task]
        if of_task:
            header = [f"**{task}**", *_measure_names(task), "folds"]
            body = [
                [
                    line.model,
                    *(
                        f"{line.paper[name].mean:.2f} → {line.ours(name).mean:.3f}"
                        for name in MEASURES
                    ),
                    str(len(line.folds)),
                ]
                for line in of_task
            ]
            parts.append(markdown(header, body))
    return "\n\n".join(parts)


def insert_in_page(text: str, table: str) -> str:
    """Replace what stands between the markers of docs/paper_tables.md."""
    return insert_between(text, PAGE_BEGIN, PAGE_END, table, page="docs/paper_tables.md")


def insert_between(text: str, begin: str, end: str, table: str, *, page: str) -> str:
    """Replace what stands between two marker lines of a page."""
    before, found, rest = text.partition(begin)
    _, closed, after = rest.partition(end)
    if not (found and closed):
        raise ValueError(f"{page} lacks the lines {begin!r} and {end!r}")
    return f"{before}{begin}\n\n{table}\n\n{end}{after}"


def _comparison(task: Task, lines: Sequence[Line]) -> Iterator[str]:
    body = []
    for line in lines:
        for name, title in zip(MEASURES, _measure_names(task), strict=True):
            paper, ours = line.paper[name], line.ours(name)
            body.append(
                [
                    line.model if name == MEASURES[0] else "",
                    title,
                    paper.text(2),
                    ours.text(3),
                    f"{round(ours.mean - paper.mean, 3) + 0.0:+.3f}",  # + 0.0: no "-0.000"
                ]
            )
    yield markdown(["model", "measure", "paper", "ours", "difference"], body)


def _effort(lines: Sequence[Line]) -> Iterator[str]:
    yield (
        "Seconds a fold. The paper's machine, versions and solver model are others: its column "
        "is for orientation. Master: the share of the time of `fit` that the projections take."
    )
    body = []
    for line in lines:
        gaps = [float(row["worst_gap"]) for row in line.folds]
        statuses = {status for row in line.folds for status in row["status"].split()}
        constrained = line.folds[0]["n_iter"] != "0"
        body.append(
            [
                str(line.task),
                line.model,
                str(len(line.folds)),
                f"{line.paper_seconds:.1f}",
                f"{line.seconds('seconds_total'):.1f}",
                f"{100 * line.master_share:.2f} %" if constrained else "",
                f"{max(gaps):.0e}" if constrained else "",
                " ".join(sorted(statuses)),
            ]
        )
    header = ["task", "model", "folds", "paper s", "ours s", "master", "worst gap", "status"]
    yield markdown(header, body)


def _environment(rows: Sequence[Row]) -> str:
    """Name every version that took part; more than one shows that a table is of mixed origin."""
    names = (*PACKAGES, "python")
    versions = (f"{name} {', '.join(sorted({row[name] for row in rows}))}" for name in names)
    return f"Versions: {'; '.join(versions)}." if rows else ""


def _measure_names(task: Task) -> tuple[str, ...]:
    return tuple(
        f"{title} {part}"
        for title in (task.score_name, task.indicator_name)
        for part in ("train", "val")
    )


def markdown(header: Sequence[str], body: Sequence[Sequence[str]]) -> str:
    rows = [header, ["---"] * len(header), *body]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)
