"""Whether a constraint holds on unseen data: ``python -m benchmarks.unseen_data --help``.

The paper's four tasks and folds; a model's five validation folds together are one prediction for
every row, by a model that has not seen it.
"""

import argparse
import statistics
import sys
import time
import warnings
from collections.abc import Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import accuracy_score, r2_score

from benchmarks._learners import LEARNERS
from benchmarks._storage import append_row, create, read_rows
from benchmarks._tables import insert_between, markdown
from benchmarks._units import PACKAGES, versions
from benchmarks._unseen_rows import Row, paper_rows, rows_of
from benchmarks.tasks import N_FOLDS, TASKS, Task, TaskData, load_task, split
from gedi_sklearn.metrics import gedi, gedi_inference

HERE = Path(__file__).parent
RESULTS = HERE / "results"
PAGE = HERE.parent / "docs" / "unseen_data.md"
BEGIN, END = "<!-- {}: begin (written by benchmarks.unseen_data) -->", "<!-- {}: end -->"
POOLED = "pooled"
KEY = ("dataset", "protected", "model", "constraint")
MEASURES = (
    "score_train",
    "score_val",
    "gedi_train",
    "gedi_val",
    "null_val",
    "n_fits",
    "seconds",
)
RIVALS = ("fairlearn", "scikit-lego")
COLUMNS = (*KEY, "group", "fold", *MEASURES, *PACKAGES, *RIVALS, "python")


def main(argv: Sequence[str] | None = None) -> None:
    options = parse(argv)
    options.output.mkdir(parents=True, exist_ok=True)
    path = options.output / "unseen_data.csv"
    tasks = [task for task in TASKS if str(task) in options.task]
    if not options.report:
        asked = [
            (task, row)
            for task in tasks
            for row in rows_of(task)
            if options.model is None or row.name in options.model
        ]
        if not asked:
            names = sorted({row.name for task in tasks for row in rows_of(task)})
            raise SystemExit(f"--model: no such row; there are {', '.join(names)}.")
        run(asked, path, n_folds=options.folds, n_jobs=options.n_jobs)
    lines = read_rows(path, COLUMNS)
    for task in tasks:
        print(f"## {task}\n\n{tables(task, lines)}\n")
    if options.docs:
        from benchmarks._unseen_drawing import draw

        draw(lines, options.output)
        page = PAGE.read_text(encoding="utf-8")
        written = {str(task): tables(task, lines) for task in TASKS} | {"costs": costs(lines)}
        for name, table in written.items():
            begin, end = BEGIN.format(name), END.format(name)
            page = insert_between(page, begin, end, table, page=f"docs/{PAGE.name}")
        PAGE.write_text(page, encoding="utf-8")
    print(f"Results: {path}")


def parse(argv: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.unseen_data",
        description="Compare models and rivals by the score and the indicator of predictions for "
        "rows that they have not seen. A run that was interrupted is taken up where it ended.",
    )
    names = tuple(map(str, TASKS))
    parser.add_argument("--task", nargs="+", choices=names, default=names)
    parser.add_argument("--model", nargs="+", metavar="ROW", help="rows by name (default: all)")
    parser.add_argument("--folds", type=int, choices=range(1, N_FOLDS + 1), default=N_FOLDS)
    parser.add_argument("--n-jobs", type=int, default=1, help="processes (default: 1)")
    parser.add_argument(
        "--output", type=Path, default=RESULTS, help="folder (default: benchmarks/results)"
    )
    parser.add_argument("--report", action="store_true", help="run nothing, print what is there")
    parser.add_argument(
        "--docs",
        action="store_true",
        help=f"also draw the pictures and write the tables of docs/{PAGE.name}",
    )
    return parser.parse_args(argv)


def run(asked: Sequence[tuple[Task, Row]], path: Path, *, n_folds: int, n_jobs: int) -> None:
    """Run what the CSV lacks; the lines of a row are added together once all folds are done."""
    done = {tuple(line[name] for name in KEY) for line in read_rows(path, COLUMNS)}
    missing = [
        (task, row) for task, row in asked if tuple(identity(task, row).values()) not in done
    ]
    print(f"{len(asked) - len(missing)} of {len(asked)} rows are in {path}.", file=sys.stderr)
    create(path, COLUMNS)
    results = Parallel(n_jobs=n_jobs, return_as="generator_unordered")(
        delayed(run_row)(task, row, n_folds) for task, row in missing
    )
    for number, lines in enumerate(results, start=1):
        for line in lines:
            append_row(path, COLUMNS, line)
        name = " ".join(key_of(lines[-1]))
        print(
            f"{number}/{len(missing)}: {name}: score {lines[-1]['score_val']:.3f}, "
            f"pooled GeDI {lines[-1]['gedi_val']:.3f}",
            file=sys.stderr,
            flush=True,
        )


def key_of(line: Mapping[str, str]) -> tuple[str, ...]:
    """Return what tells whether a row is done."""
    return tuple(line[name] for name in KEY)


def identity(task: Task, row: Row) -> dict[str, str]:
    """Return the columns that name a row of a task."""
    return {
        "dataset": task.dataset,
        "protected": task.protected,
        "model": row.name,
        "constraint": row.constraint,
    }


def run_row(task: Task, row: Row, n_folds: int) -> list[dict[str, Any]]:
    """Return a line for every fold, and one for the predictions of all validation folds."""
    data = load_task(task)
    column = data.feature_names.index(task.protected)
    lines, parts = [], []
    for fold, (train, val) in enumerate(split(task, data, n_folds=n_folds)):
        X = np.delete(data.X, column, axis=1) if row.drops else data.X
        model = row.build(task, column)
        attribute = {"sensitive_features": data.sensitive[train]} if row.by_value else {}
        with warnings.catch_warnings():
            # What a user would be told of a single fit is what the columns show here.
            for kind in (UserWarning, FutureWarning, ConvergenceWarning):
                warnings.simplefilter("ignore", kind)
            start = time.perf_counter()
            model.fit(X[train], data.y[train], **attribute)
            seconds = time.perf_counter() - start
            predicted = {"train": model.predict(X[train]), "val": model.predict(X[val])}
        parts.append((val, predicted["val"]))
        lines.append(
            {
                "fold": fold,
                **_measure(task, data, train, predicted["train"], "train"),
                **_measure(task, data, val, predicted["val"], "val"),
                "n_fits": count_fits(model),
                "seconds": round(seconds, 2),
            }
        )
    rows, predictions = (np.concatenate(part) for part in zip(*parts, strict=True))
    # The score is the mean over the folds: only the indicator of many rows is another quantity.
    means = {name: statistics.fmean(line[name] for line in lines) for name in MEASURES}
    pooled = _measure(task, data, rows, predictions, "val") | {"score_val": means["score_val"]}
    lines.append(means | pooled | {"fold": POOLED})
    recorded = versions() | {name: _version(name) for name in RIVALS}
    return [identity(task, row) | {"group": row.group} | line | recorded for line in lines]


def _version(package: str) -> str:
    """Return the version of a rival's package; "" where it is not installed."""
    try:
        return version(package)
    except PackageNotFoundError:
        return ""


def _measure(
    task: Task, data: TaskData, rows: np.ndarray, predictions: np.ndarray, part: str
) -> dict[str, float]:
    """Score the predictions of some rows; the indicator's value by chance is that of new rows."""
    y = data.y[rows]
    options: dict[str, Any] = {
        "sensitive_features": data.sensitive[rows],
        "kernel": task.degree,
        "relative": 1,
    }
    score = r2_score if task.is_regression else accuracy_score
    measured = {
        f"score_{part}": float(score(y, predictions)),
        f"gedi_{part}": gedi(y, predictions, **options),
    }
    if part == "val":
        measured["null_val"] = gedi_inference(y, predictions, **options).null_mean
    return measured


def count_fits(model: Any) -> int:
    """Return how often a fit of the model has fitted its learner."""
    inner = getattr(model, "n_fits_", None)
    if inner is not None:
        return inner
    rounds = 1 + getattr(model, "n_iter_", 0) if hasattr(model, "history_") else 1
    cv = getattr(model, "cv", "train")
    return rounds * (1 + cv if isinstance(cv, int) else 1)


def tables(task: Task, lines: Sequence[Mapping[str, str]]) -> str:
    """Format the rows of a task that know the attribute of new rows, and those that do not."""
    known, blind = (_table(task, lines, blind=blind) for blind in (False, True))
    return f"The attribute of new rows is known:\n\n{known}\n\nAttribute-blind:\n\n{blind}"


def costs(lines: Sequence[Mapping[str, str]]) -> str:
    """Format the score of each learner alone, and what a bound of 20 % by `Projected` costs it."""
    scores = {key_of(line): float(line["score_val"]) for line in lines if line["fold"] == POOLED}
    body = []
    for learner in LEARNERS:
        cells = []
        for task in TASKS:
            of_task = (task.dataset, task.protected)
            plain = scores.get((*of_task, learner, ""), np.nan)
            bounded = scores.get((*of_task, f"{learner} Projected aware 0.2", "coarse"), np.nan)
            cost = plain - bounded
            cells.append("" if np.isnan(cost) else f"{plain:.3f} − {cost:.3f}")
        if any(cells):
            body.append([learner, *cells])
    return markdown(["learner", *(f"{task}, {task.score_name}" for task in TASKS)], body)


def _table(task: Task, lines: Sequence[Mapping[str, str]], *, blind: bool) -> str:
    """Format rows: means over the folds, and the pooled indicator."""
    of_task = [line for line in lines if line["protected"] == task.protected]
    body = []
    for row in (row for row in rows_of(task) if row.blind == blind):
        key = key_of(identity(task, row))
        own = [line for line in of_task if key_of(line) == key]
        folds = [line for line in own if line["fold"] != POOLED]
        if not folds:
            continue
        (pooled,) = (line for line in own if line["fold"] == POOLED)
        values = [float(line["gedi_val"]) for line in folds]
        body.append(
            [
                f"{row.name} {row.constraint}".strip(),
                f"{float(pooled['score_train']):.3f}",
                f"{float(pooled['score_val']):.3f}",
                f"{statistics.fmean(values):.2f} ± {statistics.pstdev(values):.2f}",
                f"{float(pooled['gedi_val']):.3f}",
                f"{float(pooled['null_val']):.3f}",
                f"{float(pooled['n_fits']):.0f}",
                f"{float(pooled['seconds']):.1f}",
            ]
        )
    body += [
        [
            f"*paper* {model}",
            f"{paper['score_train']}",
            f"{paper['score_val']}",
            f"{paper['gedi_val']} ± {paper['gedi_val_std']}",
            *[""] * 4,
        ]
        for model, paper in (() if blind else paper_rows(task))
    ]
    header = [
        "row",
        f"{task.score_name} train",
        task.score_name,
        f"{task.indicator_name} a fold",
        "pooled",
        "by chance",
        "fits",
        "seconds",
    ]
    return markdown(header, body)


if __name__ == "__main__":
    main()
