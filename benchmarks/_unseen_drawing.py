"""One picture a task: score against the indicator of unseen rows, everyone on it."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks._unseen_rows import paper_rows, rows_of
from benchmarks.tasks import TASKS, Task

STYLES = {
    "plain": ("o", "tab:gray"),
    "moving targets": ("s", "tab:blue"),
    "projected": ("D", "tab:green"),
    "rival": ("X", "tab:red"),
    "paper": ("*", "tab:orange"),
}
LABELS = {
    "plain": "unconstrained",
    "moving targets": "Moving Targets",
    "projected": "Projected",
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
    shown = [line for line in pooled if line["constraint"] in ("", constraint)]
    shown += papers
    # Numbered from the left, so that the names can stand beside the picture.
    shown.sort(key=lambda line: float(line["gedi_val"]))
    for group, (marker, color) in STYLES.items():
        of_group = [line for line in shown if line["group"] == group]
        axes.scatter(
            [float(line["gedi_val"]) for line in of_group],
            [float(line["score_val"]) for line in of_group],
            marker=marker,
            color=color,
            label=LABELS[group],
            zorder=3,
        )
    names = []
    for number, line in enumerate(shown, start=1):
        place = (float(line["gedi_val"]), float(line["score_val"]))
        offset = (4, 4) if number % 2 else (4, -11)
        axes.annotate(str(number), place, xytext=offset, textcoords="offset points", fontsize=7)
        names.append(f"{number:>2} {line['model']}")
    chance = [float(line["null_val"]) for line in shown if "null_val" in line]
    axes.axvspan(min(chance), max(chance), color="0.9", label="independent predictions")
    axes.axvline(0.2, color="0.5", linestyle=":", label="threshold of most rows")
    axes.set_xscale("log")
    axes.set_xlabel(f"{task.indicator_name} of the pooled validation folds")
    axes.set_ylabel(f"{task.score_name}, mean of the validation folds")
    axes.set_title(title)
    axes.legend(loc="best", fontsize=7)
    axes.text(
        1.01,
        1.0,
        "\n".join(names),
        transform=axes.transAxes,
        va="top",
        fontsize=7,
        family="monospace",
    )
