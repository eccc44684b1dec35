"""Seconds of constrained boosting: ``python -m benchmarks.boosting``.

Every fit is timed beside the same package's unconstrained run with as many rounds, one after the
other in one process and on one thread. ``--docs`` writes the seconds into
``docs/boosting_benchmark.md``, with the picture and the rows of boosting of
``benchmarks.unseen_data``.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks._boosting_models import model_of, trees_of
from benchmarks._storage import append_row, create, read_rows
from benchmarks._tables import insert_between, markdown
from benchmarks.tasks import TASKS, Task, load_task, split
from benchmarks.unseen_data import COLUMNS as ROW_COLUMNS
from benchmarks.unseen_data import POOLED, RESULTS
from gedi_sklearn import CoarseConstraint

PAGE = Path(__file__).parents[1] / "docs" / "boosting_benchmark.md"
COLUMNS = ("task", "backend", "view", "cv", "rounds", "plain", "constrained")
ORDER = ("dataset", "protected", "constraint", "model")
REPETITIONS = 2
BEGIN, END = "<!-- {}: begin (written by benchmarks.boosting) -->", "<!-- {}: end -->"
# What the picture compares, with marker and color: a word in the names of rows.
FAMILIES = {
    "Boosting": ("o", "tab:purple"),
    "Projected": ("D", "tab:green"),
    "MT": ("s", "tab:blue"),
}


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.boosting", description="Time constrained boosting."
    )
    names = tuple(map(str, TASKS))
    parser.add_argument("--task", nargs="+", choices=names, default=names)
    parser.add_argument("--output", type=Path, default=RESULTS)
    parser.add_argument("--docs", action="store_true", help="write the page from what is there")
    options = parser.parse_args(argv)
    if options.docs:
        write_page(options.output)
    else:
        tasks = [task for task in TASKS if str(task) in options.task]
        run_seconds(tasks, options.output / "boosting_seconds.csv")


def run_seconds(tasks: Sequence[Task], path: Path) -> None:
    """Time what the CSV lacks."""
    create(path, COLUMNS)
    done = {tuple(line[name] for name in COLUMNS[:4]) for line in read_rows(path, COLUMNS)}
    for task in tasks:
        for backend in ("xgboost", "lightgbm"):
            for view, cv in (("aware", 0), ("blind", 0), ("aware", 5)):
                if (str(task), backend, view, str(cv)) not in done:
                    line = seconds_of(task, backend, view, cv)
                    append_row(path, COLUMNS, line)
                    print(line, flush=True)


def seconds_of(task: Task, backend: str, view: str, cv: int) -> dict[str, Any]:
    """Time a constrained fit and a plain one on the first training rows of a task."""
    data = load_task(task)
    train, _ = next(split(task, data))
    column = data.feature_names.index(task.protected)
    X, y = data.X[train], data.y[train]
    trees = trees_of(task, backend)[0]
    bound = CoarseConstraint(kernel=task.degree)
    how = {"drop_sensitive": view == "blind", "cv": cv or None}
    model = model_of(task, column, backend, constraint=bound, **how, **trees)
    seen = np.delete(X, column, axis=1) if view == "blind" else X
    plain, constrained = [], []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        for _ in range(REPETITIONS):
            start = time.perf_counter()
            plain_booster(task, backend, trees).fit(seen, y)
            middle = time.perf_counter()
            model.fit(X, y)
            plain.append(middle - start)
            constrained.append(time.perf_counter() - middle)
    return {
        "task": str(task),
        "backend": backend,
        "view": view,
        "cv": cv,
        "rounds": model.n_estimators,
        "plain": round(min(plain), 3),
        "constrained": round(min(constrained), 3),
    }


def plain_booster(task: Task, backend: str, trees: Mapping[str, Any]) -> Any:
    """Return the package's own estimator, with the same trees and a loss of its own."""
    own = {name: value for name, value in trees.items() if name != "backend_params"}
    own |= {**trees["backend_params"], "min_child_weight": 20, "n_jobs": 1}
    if backend == "xgboost":
        from xgboost import XGBClassifier, XGBRegressor

        kind = XGBRegressor if task.is_regression else XGBClassifier
        return kind(max_depth=0, grow_policy="lossguide", reg_lambda=0, **own)
    from lightgbm import LGBMClassifier, LGBMRegressor

    kind = LGBMRegressor if task.is_regression else LGBMClassifier
    return kind(min_child_samples=1, force_col_wise=True, verbose=-1, **own)


def write_page(results: Path) -> None:
    """Draw the picture and write both tables of the page."""
    rows = read_rows(results / "unseen_data.csv", ROW_COLUMNS)
    lines = [own for own in rows if own["fold"] == POOLED and own["constraint"]]
    draw(lines, results / "boosting.png")
    page = PAGE.read_text(encoding="utf-8")
    seconds = seconds_table(read_rows(results / "boosting_seconds.csv", COLUMNS))
    for name, text in (("seconds", seconds), ("rows", rows_table(lines))):
        begin, end = BEGIN.format(name), END.format(name)
        page = insert_between(page, begin, end, text, page=f"docs/{PAGE.name}")
    PAGE.write_text(page, encoding="utf-8")


def seconds_table(seconds: Sequence[Mapping[str, str]]) -> str:
    """Format the seconds, with the ratio to the plain run."""
    body = [
        [
            line["task"],
            line["backend"],
            line["view"] + (f", cv={line['cv']}" if line["cv"] != "0" else ""),
            line["rounds"],
            f"{float(line['plain']):.2f}",
            f"{float(line['constrained']):.2f}",
            f"{float(line['constrained']) / float(line['plain']):.2f}",
        ]
        for line in seconds
    ]
    header = ["task", "backend", "fit", "rounds", "plain, seconds", "constrained", "ratio"]
    return markdown(header, body)


def rows_table(lines: Sequence[Mapping[str, str]]) -> str:
    """Format the rows of boosting, of pooled lines."""
    body = [
        [
            f"{line['dataset']}/{line['protected']}",
            line["constraint"],
            line["model"],
            f"{float(line['score_val']):.3f}",
            f"{float(line['gedi_val']):.3f}",
            f"{float(line['null_val']):.3f}",
            f"{float(line['seconds']):.1f}",
        ]
        for line in sorted(lines, key=lambda line: [line[name] for name in ORDER])
        if line["model"].startswith("Boosting")
    ]
    header = ["task", "constraint", "row", "score", "pooled GeDI %", "by chance", "seconds"]
    return markdown(header, body)


def draw(lines: Sequence[Mapping[str, str]], path: Path) -> None:
    """Draw score against pooled indicator, a panel for every task and constraint."""
    import matplotlib
    from matplotlib.figure import Figure

    keys = ("dataset", "protected", "constraint")
    panels = list(dict.fromkeys(tuple(own[key] for key in keys) for own in lines))
    with matplotlib.rc_context({"svg.hashsalt": "gedi_sklearn", "font.size": 9}):
        figure = Figure(figsize=(10, 3.2 * ((len(panels) + 1) // 2)), layout="constrained")
        axes = figure.subplots((len(panels) + 1) // 2, 2, squeeze=False).ravel()
        for own, panel in zip(axes, panels, strict=False):
            _panel(own, panel, lines)
        for empty in axes[len(panels) :]:
            empty.set_axis_off()
        axes[0].legend(fontsize=7)
        figure.savefig(path, dpi=110)


def _panel(axes: Any, panel: tuple[str, ...], lines: Sequence[Mapping[str, str]]) -> None:
    for family, (marker, color) in FAMILIES.items():
        for view, is_filled in (("blind", False), ("", True)):
            shown = [
                (float(line["gedi_val"]), float(line["score_val"]))
                for line in lines
                if (line["dataset"], line["protected"], line["constraint"]) == panel
                and family in line["model"].split()
                and ("blind" in line["model"].split()) == (not is_filled)
            ]
            if not shown:
                continue
            axes.scatter(
                *zip(*shown, strict=True),
                marker=marker,
                edgecolors=color,
                facecolors=color if is_filled else "none",
                label=f"{family} {view}".strip(),
            )
    limits = axes.get_xlim()
    axes.set_xscale("log")
    axes.minorticks_off()
    ticks = [tick for tick in (0.05, 0.1, 0.2, 0.3, 0.5, 1.0) if limits[0] < tick < limits[1]]
    axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    axes.set_title(f"{panel[0]}, {panel[1]}, {panel[2]}")
    axes.set_xlabel("pooled GeDI % of unseen rows")
    axes.set_ylabel("score")


if __name__ == "__main__":
    main()
