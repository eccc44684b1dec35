"""One picture a task: score against the indicator of unseen rows, a curve for each method."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks._unseen_rows import paper_rows, rows_of
from benchmarks.tasks import TASKS, Task

STYLES = {
    "plain": ("o", "tab:gray"),
    "moving targets": ("s", "tab:blue"),
    "projected": ("D", "tab:green"),
    "boosting": ("^", "tab:purple"),
    "rival": ("X", "tab:red"),
    "paper": ("*", "tab:orange"),
}
# The learner whose methods are drawn as curves.
BEST_LEARNER = {"crimes": "HistGB-small", "adult": "HistGB"}
LABELS = {
    "plain": "unconstrained",
    "moving targets": "Moving Targets",
    "projected": "Projected",
    "boosting": "constrained boosting",
    "rival": "rivals",
    "paper": "the paper, mean of single folds",
}


def draw(lines: Sequence[Mapping[str, str]], output: Path) -> None:
    """Write unseen_data_DATASET_ATTRIBUTE.png and .svg for every task that has rows."""
    import matplotlib
    from matplotlib.figure import Figure

    with matplotlib.rc_context({"svg.hashsalt": "gedi_sklearn", "font.size": 9}):
        for task in TASKS:
            pooled = [
                line
                for line in lines
                if line["protected"] == task.protected and line["fold"] == "pooled"
            ]
            if not pooled:
                continue
            panels = [
                kind
                for kind in ("coarse", "fine")
                if any(line["constraint"] == kind for line in pooled)
            ]
            blind = {(row.name, row.constraint) for row in rows_of(task) if row.blind}
            known = [line for line in pooled if (line["model"], line["constraint"]) not in blind]
            unknown = [line for line in pooled if (line["model"], line["constraint"]) in blind]
            drawn = [(f"{task}, {kind}", kind, known, _papers(task, kind)) for kind in panels]
            drawn += [(f"{task}, coarse, attribute-blind", "coarse", unknown, [])][: len(unknown)]
            figure = Figure(figsize=(9.5, 5.5 * len(drawn)), layout="constrained")
            for axes, own in zip(
                figure.subplots(len(drawn), 1, squeeze=False)[:, 0], drawn, strict=True
            ):
                _panel(axes, task, *own)
            for suffix, metadata in (("png", {}), ("svg", {"Date": None})):
                name = f"unseen_data_{task.dataset}_{task.protected}.{suffix}"
                figure.savefig(output / name, dpi=110, metadata=metadata)


def _papers(task: Task, constraint: str) -> list[dict[str, str]]:
    """Return the paper's constrained rows, which have no pooled indicator, as lines."""
    fits = [
        (model, row)
        for model, row in paper_rows(task)
        if task.protected_kind == "binary" or model.endswith(constraint.capitalize())
    ]
    return [
        {
            "model": f"paper: {model}",
            "group": "paper",
            "gedi_val": row["gedi_val"],
            "score_val": row["score_val"],
        }
        for model, row in fits
    ]


def _panel(
    axes: Any,
    task: Task,
    title: str,
    constraint: str,
    pooled: Sequence[Mapping[str, str]],
    papers: Sequence[Mapping[str, str]],
) -> None:
    """Draw a curve a method, each named beside the picture, and the other learners as dots."""
    shown = [line for line in pooled if line["constraint"] in ("", constraint)]
    curves: dict[tuple[str, str], list[Mapping[str, str]]] = {}
    for line in [*shown, *papers]:
        is_best = _learner(line) in ("Boosting", BEST_LEARNER[task.dataset])
        if line["group"] in ("rival", "paper") or is_best:
            curves.setdefault((line["group"], _method(line)), []).append(line)
    others = [line for line in shown if not any(line in curve for curve in curves.values())]
    axes.scatter(*_points(others), s=14, color="0.75", label="other learners", zorder=2)
    labelled = []
    for (group, method), lines in curves.items():
        marker, color = STYLES[group]
        indicator, score = _points(sorted(lines, key=lambda line: float(line["gedi_val"])))
        label = LABELS[group] if group not in [own for own, *_ in labelled] else None
        axes.plot(indicator, score, marker=marker, color=color, label=label, zorder=3)
        labelled.append((group, method, indicator[-1], score[-1], color))
    chance = [float(line["null_val"]) for line in shown]
    axes.axvspan(min(chance), max(chance), color="0.9", label="independent predictions")
    axes.axvline(0.2, color="0.5", linestyle=":", label="threshold of most rows")
    axes.set_xscale("log")
    axes.set_xlabel(f"{task.indicator_name} of the pooled validation folds")
    axes.set_ylabel(f"{task.score_name}, mean of the validation folds")
    axes.set_title(title)
    axes.legend(loc="best", fontsize=7)
    _name_beside(axes, labelled)


def _name_beside(axes: Any, labelled: Sequence[tuple[str, str, float, float, str]]) -> None:
    """Write the names in a column on the right, by height, with lines to their points."""
    low, high = axes.get_ylim()
    step = (high - low) / max(len(labelled), 1)
    by_height = sorted(labelled, key=lambda one: one[3], reverse=True)
    for place, (_, method, x, y, color) in enumerate(by_height):
        axes.annotate(
            method,
            (x, y),
            xytext=(1.03, (high - (place + 0.5) * step - low) / (high - low)),
            textcoords="axes fraction",
            va="center",
            fontsize=8,
            color=color,
            arrowprops={
                "arrowstyle": "-",
                "color": color,
                "lw": 0.5,
                "alpha": 0.6,
                "relpos": (0, 0.5),
            },
            annotation_clip=False,
        )


def _points(lines: Sequence[Mapping[str, str]]) -> tuple[list[float], list[float]]:
    return [float(line["gedi_val"]) for line in lines], [float(line["score_val"]) for line in lines]


def _learner(line: Mapping[str, str]) -> str:
    return line["model"].split(" ", 1)[0]


def _method(line: Mapping[str, str]) -> str:
    """Return what a curve has in common: the row's name without its learner and its bound."""
    words = line["model"].split(" ")
    if line["group"] in ("projected", "moving targets"):
        words = words[1:]
    return " ".join(word for word in words if not re.fullmatch(r"[0-9.]+", word))
