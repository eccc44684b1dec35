"""The paper's figures, drawn from their tables; nothing here measures."""

from collections.abc import Callable, Sequence
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import NullFormatter, PercentFormatter
from scipy.interpolate import PchipInterpolator

from benchmarks._figure_numbers import BINS, ORDERS, PARTS, Row, Tables
from benchmarks.tasks import TASKS

POINTS, LINE, SECOND = "0.45", "tab:blue", "tab:orange"
ORDER_COLORS = {
    order: mpl.colormaps["viridis"](0.95 - 0.9 * i / (len(ORDERS) - 1))
    for i, order in enumerate(ORDERS)
}
TASK_COLORS = dict(
    zip(map(str, TASKS), ("tab:blue", "tab:cyan", "tab:red", "tab:orange"), strict=True)
)
# The same bytes for the same numbers: no date, no version, no random ids.
STYLE = {"svg.hashsalt": "gedi_sklearn", "font.size": 10, "axes.titlesize": 11}
METADATA = {"png": {"Software": None}, "svg": {"Date": None, "Creator": None}}


def _select(rows: Sequence[Row], **values: Any) -> list[Row]:
    return [row for row in rows if all(row[name] == value for name, value in values.items())]


def _column(rows: Sequence[Row], name: str) -> np.ndarray:
    return np.array([row[name] for row in rows])


# --- Figure 1


def draw_hgr_limits(tables: Tables) -> Figure:
    figure = Figure(figsize=(12, 4.4), layout="constrained")
    overfit, diverging, scaled = figure.subplots(1, 3)

    x, y = _points(tables, "a", "independent")
    order = np.argsort(x)
    fine = np.linspace(x.min(), x.max(), 1000)
    overfit.plot(fine, PchipInterpolator(x[order], y[order])(fine), color=LINE, label="f(x)")
    overfit.plot(x, y, "o", color=POINTS, markersize=5)
    overfit.set_title("(a) HGR overfits finite samples")

    x, y = _points(tables, "b", "diverging")
    diverging.plot(x, y, "o", color=POINTS, markersize=3, alpha=0.6)
    _line_of_best_fit(diverging, x, y, LINE, "linear fit")
    diverging.set_title("(b) HGR sees diverging variance")

    for series, color in (("y", LINE), ("0.2 y + 0.4", SECOND)):
        x, y = _points(tables, "c", series)
        scaled.plot(x, y, "o", color=color, markersize=3, alpha=0.6)
        _line_of_best_fit(scaled, x, y, color, series)
    scaled.set_title("(c) HGR does not see scale")

    for panel, axes in zip("abc", (overfit, diverging, scaled), strict=True):
        axes.set(xlabel="protected attribute x", ylabel="target y")
        # Room for the legend, which holds the values, above the points.
        low, high = axes.get_ylim()
        axes.set_ylim(low, high + 0.55 * (high - low))
        handles, labels = axes.get_legend_handles_labels()
        handles += [Line2D([], [], linestyle="none")]
        labels += [_values_text(tables[""], panel)]
        axes.legend(handles, labels, loc="upper left", fontsize=9)
    return figure


def _points(tables: Tables, panel: str, series: str) -> tuple[np.ndarray, np.ndarray]:
    rows = _select(tables["points"], panel=panel, series=series)
    return _column(rows, "x"), _column(rows, "y")


def _line_of_best_fit(axes: Any, x: np.ndarray, y: np.ndarray, color: str, label: str) -> None:
    slope, intercept = np.polyfit(x, y, 1)
    ends = np.array([x.min(), x.max()])
    axes.plot(ends, intercept + slope * ends, color=color, linewidth=2.5, label=label)


def _values_text(rows: Sequence[Row], panel: str) -> str:
    """Return a line an indicator; two series stand side by side."""
    shown = {
        "a": ("HGR, unrestricted f", "HGR, polynomials of degree 5", "HGR, kde", "GeDI-V1"),
        "b": ("HGR, polynomials of degree 5", "HGR, kde", "GeDI-V1"),
        "c": ("HGR, polynomials of degree 5", "HGR, kde", "GeDI-V1"),
    }[panel]
    lines = []
    for indicator in shown:
        values = _select(rows, panel=panel, indicator=indicator)
        lines.append(f"{indicator}: " + ", ".join(f"{row['value']:.2f}" for row in values))
    return "\n".join(lines)


# --- Figure 2


def draw_running_example(tables: Tables) -> Figure:
    figure = Figure(figsize=(12, 3.6), layout="constrained")
    panels = figure.subplots(1, 4, sharex=True, sharey=True)
    for order, (axes, letter) in enumerate(zip(panels, "abcd", strict=True)):
        rows = sorted(_select(tables["points"], order=order), key=lambda row: row["x"])
        x = _column(rows, "x")
        axes.plot(x, _column(rows, "target"), "o", color=POINTS, markersize=3, alpha=0.6)
        axes.plot(x, _column(rows, "signal"), color=LINE, linewidth=2.5)
        (values,) = _select(tables[""], order=order)
        title = f"GeDI(V$^{order}$) = 0" if order else "original targets"
        axes.set_title(f"({letter}) {title}\n{values['signal_left']:.1%} of the relation left")
        axes.set_xlabel("protected attribute x")
    panels[0].set_ylabel("target y")
    return figure


# --- Figure 3


def draw_preprocessing(tables: Tables) -> Figure:
    rows = tables[""]
    tasks = list(dict.fromkeys(_column(rows, "task")))
    kinds = {str(task): task.protected_kind for task in TASKS}
    widths = [1 if kinds[task] == "binary" else 3.2 for task in tasks]
    figure = Figure(figsize=(12, 6.6), layout="constrained")
    grid = figure.subplots(
        2, len(tasks), width_ratios=widths, sharex="col", sharey=True, squeeze=False
    )
    for constraint, line in zip(("coarse", "fine"), grid, strict=True):
        for task, axes in zip(tasks, line, strict=True):
            _grouped_bars(axes, _select(rows, task=task, constraint=constraint))
            # What the constraint allows of GeDI, and the original targets.
            axes.axhline(20, color="black", linestyle="--", linewidth=1)
            axes.axhline(100, color="black", linestyle=":", linewidth=1)
            if constraint == "coarse":
                axes.set_title(task)
            else:
                axes.set_xlabel("" if kinds[task] == "binary" else "bins of the DIDI")
        letter = "a" if constraint == "coarse" else "b"
        line[0].set_ylabel(f"({letter}) {constraint}\nDIDI, % of the original")
        line[0].yaxis.set_major_formatter(PercentFormatter(decimals=0))
    handles = [
        *(Patch(color=ORDER_COLORS[order], label=f"order {order}") for order in ORDERS),
        Line2D([], [], color="black", linestyle="--", label="threshold of GeDI"),
        Line2D([], [], color="black", linestyle=":", label="original targets"),
    ]
    figure.legend(handles=handles, loc="outside upper center", ncols=len(handles), frameon=False)
    return figure


def _grouped_bars(axes: Any, rows: Sequence[Row]) -> None:
    bins = [str(b) for b in BINS if _select(rows, bins=str(b))] or ["groups"]
    orders = sorted(set(_column(rows, "order")))
    width = 0.8 / len(orders)
    for i, order in enumerate(orders):
        heights = [_select(rows, bins=b, order=order)[0]["didi_percent"] for b in bins]
        positions = np.arange(len(bins)) + (i - (len(orders) - 1) / 2) * width
        axes.bar(positions, heights, width, color=ORDER_COLORS[order])
    # A single bar as wide as those of the other tasks.
    axes.set_xlim(-0.6, len(bins) - 0.4)
    axes.set_xticks(np.arange(len(bins)), ["2 groups" if b == "groups" else b for b in bins])


# --- Figure 4


def draw_gedi_against_hgr(tables: Tables) -> Figure:
    figure = Figure(figsize=(12, 5.4), layout="constrained")
    panels = figure.subplots(1, len(PARTS), sharex=True, sharey=True)
    for part, axes in zip(PARTS, panels, strict=True):
        for (task, color), constrained in (
            (item, kind) for item in TASK_COLORS.items() for kind in (False, True)
        ):
            rows = _select(tables["points"], task=task, part=part, constrained=constrained)
            axes.plot(
                _column(rows, "gedi_percent"),
                _column(rows, "hgr_percent"),
                linestyle="none",
                marker="o" if constrained else "^",
                color=color,
                markerfacecolor=color if constrained else "none",
                alpha=0.75,
            )
        (overall,) = _select(tables[""], task="all", part=part)
        title = {"train": "training rows", "val": "validation rows"}[part]
        axes.set_title(
            f"{title}: {overall['n']} tests, Pearson {overall['pearson']:.2f}, "
            f"Spearman {overall['spearman']:.2f}"
        )
        axes.set(xscale="log", yscale="log", xlabel="GeDI, % of the original targets'")
        ticks = (10, 20, 50, 100, 200, 400)
        for axis, shown in ((axes.xaxis, ticks), (axes.yaxis, ticks[:-2])):
            axis.set_ticks(shown)
            axis.set_major_formatter(PercentFormatter(decimals=0))
            axis.set_minor_formatter(NullFormatter())
        axes.axline((10, 10), (100, 100), color="black", linestyle=":", linewidth=1)
        limits = axes.get_ylim()
        for row in _select(tables["independent"], part=part):
            color = TASK_COLORS[row["task"]]
            axes.axhline(row["hgr_percent"], xmax=0.05, color=color, linewidth=4)
        axes.set_ylim(limits)
    panels[0].set_ylabel("HGR (kde), % of the original targets'")
    handles = [
        *(Line2D([], [], color=c, marker="s", ls="none", label=t) for t, c in TASK_COLORS.items()),
        Line2D([], [], color="black", marker="o", ls="none", label="constrained"),
        Line2D([], [], color="black", marker="^", mfc="none", ls="none", label="unconstrained"),
        Line2D([], [], color="black", ls=":", label="equal"),
        Line2D([], [], color="black", lw=4, label="HGR of permuted targets"),
    ]
    figure.legend(
        handles=handles,
        loc="outside upper center",
        ncols=len(handles),
        frameon=False,
        columnspacing=1.0,
        handletextpad=0.5,
    )
    return figure


DRAWINGS: dict[int, Callable[[Tables], Figure]] = {
    1: draw_hgr_limits,
    2: draw_running_example,
    3: draw_preprocessing,
    4: draw_gedi_against_hgr,
}
