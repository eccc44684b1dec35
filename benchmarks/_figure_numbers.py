"""The numbers behind the paper's figures, as tables; nothing here draws.

Every function returns tables by name: "" holds what a figure says, "points" what it shows.
"""

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy.interpolate import PchipInterpolator
from scipy.stats import spearmanr

from benchmarks._constraints import named_constraint
from benchmarks._storage import read_rows
from benchmarks._units import COLUMNS, constraint_of
from benchmarks.tasks import TASKS, Task, load_task, split
from gedi_sklearn import CoarseConstraint, PolynomialKernel, project_targets
from gedi_sklearn.datasets import make_running_example
from gedi_sklearn.metrics import didi, gedi, gedi_inference, hgr

Row = dict[str, Any]
Tables = dict[str, list[Row]]

BINS = (2, 3, 5, 10)
ORDERS = (1, 2, 3, 4, 5)
PARTS = ("train", "val")
_THRESHOLD = 0.2  # of GeDI-V1 of the original targets, as in the paper
_RUNNING_EXAMPLE_ROWS = 200
_PERMUTATIONS = 5


@dataclass(frozen=True)
class Settings:
    """What a run may choose."""

    results: Path  # the CSV of the paper's tables
    seed: int = 0
    solver: str = "highs"
    tasks: Sequence[Task] = TASKS


# --- Figure 1: three limits of HGR


def hgr_limits(settings: Settings) -> Tables:
    """Measure a sample of independent values, one of growing spread, and one in two scales."""
    samples = _overfitting(settings.seed) | _divergence(settings.seed) | _scales(settings.seed)
    values: list[Row] = []
    points: list[Row] = []
    for (panel, series), (x, y) in samples.items():
        attribute = {"sensitive_features": x}
        named = {"panel": panel, "series": series}
        measured = {
            "HGR, unrestricted f": _unrestricted_hgr(x, y),
            "HGR, polynomials of degree 5": hgr(y, method="kernel", degree=5, **attribute),
            "HGR, kde": hgr(y, **attribute),
            "GeDI-V1": gedi(y, **attribute),
            "GeDI-V1 by chance": gedi_inference(y, **attribute).null_mean,
        }
        values += [
            named | {"n": len(x), "indicator": indicator, "value": value}
            for indicator, value in measured.items()
        ]
        points += [named | {"x": u, "y": v} for u, v in zip(x, y, strict=True)]
    return {"": values, "points": points}


def _overfitting(seed: int) -> dict[tuple[str, str], tuple[np.ndarray, np.ndarray]]:
    rng = np.random.default_rng(seed)
    x, y = rng.uniform(-1, 1, 30), rng.uniform(-1, 1, 30)
    return {("a", "independent"): (x, y)}


def _divergence(seed: int) -> dict[tuple[str, str], tuple[np.ndarray, np.ndarray]]:
    rng = np.random.default_rng(seed)
    x = rng.uniform(0, 1, 200)
    return {("b", "diverging"): (x, x * rng.uniform(-1, 1, 200))}


def _scales(seed: int) -> dict[tuple[str, str], tuple[np.ndarray, np.ndarray]]:
    rng = np.random.default_rng(seed)
    x = rng.uniform(0, 1, 100)
    y = x + rng.uniform(-0.2, 0.2, 100)
    return {("c", "y"): (x, y), ("c", "0.2 y + 0.4"): (x, 0.2 * y + 0.4)}


def _unrestricted_hgr(x: np.ndarray, y: np.ndarray) -> float:
    """Correlate y with a function of x that meets every point: 1 where all x differ."""
    order = np.argsort(x)
    function = PchipInterpolator(x[order], y[order])
    return float(np.corrcoef(function(x), y)[0, 1])


# --- Figure 2: the running example


def running_example(settings: Settings) -> Tables:
    """Project the running example to a GeDI of 0 with kernels of order 1 to 3."""
    X, y = make_running_example(_RUNNING_EXAMPLE_ROWS, random_state=settings.seed)
    x = X[:, 0]
    # The relation without the noise goes through the same projection, to show what is left of it.
    signal = 4 * np.sin(x) + x**2
    values: list[Row] = []
    points: list[Row] = []
    for order in range(4):
        targets, left = y, signal
        if order:
            kernel = PolynomialKernel(order, standardize=True)
            options = {"constraint": CoarseConstraint(0.0, kernel=kernel, relative=False)}
            targets = project_targets(y, sensitive_features=x, **options).targets
            left = project_targets(signal, sensitive_features=x, **options).targets
        values.append(
            {
                "order": order,
                **{f"gedi_v{k}": gedi(targets, sensitive_features=x, kernel=k) for k in (1, 2, 3)},
                "moved": np.mean((targets - y) ** 2),
                "signal_left": left.var() / signal.var(),
            }
        )
        points += [
            {"order": order, "x": u, "target": v, "signal": w}
            for u, v, w in zip(x, targets, left, strict=True)
        ]
    return {"": values, "points": points}


# --- Figure 3: pre-processing in the eyes of the binned DIDI


def preprocessing(settings: Settings) -> Tables:
    """Project the targets of all tasks at 20 % and measure their DIDI in bins."""
    values = [
        row
        for task in settings.tasks
        for constraint in ("coarse", "fine")
        for order in (ORDERS if task.protected_kind == "continuous" else ORDERS[:1])
        for row in _preprocessed(task, constraint, order, settings)
    ]
    return {"": values}


def _preprocessed(task: Task, constraint: str, order: int, settings: Settings) -> list[Row]:
    data = load_task(task)
    attribute = {"sensitive_features": data.sensitive}
    result = project_targets(
        data.y,
        solver=settings.solver,
        random_state=settings.seed,
        **attribute,
        constraint=named_constraint(constraint, _THRESHOLD, kernel=order),
    )
    disparity = {
        "relative": True,
        "task": "regression" if task.is_regression else "classification",
        **attribute,
    }
    if task.protected_kind == "binary":
        # No quantiles of two values: the groups themselves.
        by_bins = {"groups": didi(data.y, result.targets, **disparity)}
    else:
        by_bins = {
            str(bins): didi(data.y, result.targets, n_bins=bins, **disparity) for bins in BINS
        }
    named = {
        "task": str(task),
        "constraint": constraint,
        "order": order,
        **{
            f"gedi_{name}_percent": 100
            * gedi(data.y, result.targets, kernel=degree, relative=True, **attribute)
            for name, degree in (("vk", order), ("v1", 1))
        },
        "loss": np.mean((result.targets - data.y) ** 2),
        "status": result.status,
    }
    return [named | {"bins": bins, "didi_percent": 100 * v} for bins, v in by_bins.items()]


def steps_down(rows: Sequence[Mapping[str, Any]]) -> list[Row]:
    """Count the steps to the next order at which the DIDI of a number of bins gets smaller."""
    value = {
        (row["task"], row["constraint"], row["bins"], int(row["order"])): float(row["didi_percent"])
        for row in rows
    }
    steps: dict[tuple[str, str], list[bool]] = {}
    for (task, constraint, bins, order), before in value.items():
        after = value.get((task, constraint, bins, order + 1))
        if after is not None:
            steps.setdefault((task, constraint), []).append(after < before)
    return [
        {"task": task, "constraint": constraint, "smaller": sum(down), "steps": len(down)}
        for (task, constraint), down in steps.items()
    ]


# --- Figure 4: GeDI against HGR


def gedi_against_hgr(settings: Settings) -> Tables:
    """Read both indicators of the paper's performance tests, without the extra rows."""
    rows = read_rows(settings.results, COLUMNS)
    points = [
        {
            "task": f"{row['dataset']}/{row['protected']}",
            "model": row["model"],
            "fold": int(row["fold"]),
            "constrained": constraint_of(row["model"]) is not None,
            "part": part,
            "gedi_percent": 100 * float(row[f"gedi_{part}"]),
            "hgr_percent": 100 * float(row[f"hgr_{part}"]),
        }
        for row in rows
        for part in PARTS
    ]
    tasks = ["all", *(str(task) for task in TASKS)]
    values = [
        {"task": task, "part": part, **_correlations(points, task, part)}
        for part in PARTS
        for task in tasks
    ]
    independent = [row for task in settings.tasks for row in _independent(task, settings.seed)]
    return {"": values, "points": points, "independent": independent}


def _independent(task: Task, seed: int) -> Iterator[Row]:
    """Yield the HGR of permuted targets, of the first fold: what is left of it by construction."""
    data = load_task(task)
    rng = np.random.default_rng(seed)
    for part, rows in zip(PARTS, next(split(task, data)), strict=True):
        y, attribute = data.y[rows], {"sensitive_features": data.sensitive[rows]}
        permuted = [_hgr_relative(y, rng.permutation(y), attribute) for _ in range(_PERMUTATIONS)]
        yield {"task": str(task), "part": part, "hgr_percent": 100 * float(np.mean(permuted))}


def _hgr_relative(y: np.ndarray, targets: np.ndarray, attribute: dict[str, np.ndarray]) -> float:
    with warnings.catch_warnings():
        # The grid of ±2.5 deviations misses the rare group of Communities/race.
        warnings.filterwarnings("ignore", ".*of the rows lie outside", UserWarning)
        return hgr(y, targets, relative=True, **attribute)


def _correlations(points: Sequence[Row], task: str, part: str) -> Row:
    of_task = [p for p in points if p["part"] == part and task in ("all", p["task"])]
    both = np.array([[p["gedi_percent"], p["hgr_percent"]] for p in of_task]).reshape(-1, 2)
    if len(both) < 3:
        return {"n": len(both), "pearson": float("nan"), "spearman": float("nan")}
    return {
        "n": len(both),
        "pearson": float(np.corrcoef(both.T)[0, 1]),
        "spearman": float(spearmanr(both).statistic),
    }


NUMBERS: dict[int, Callable[[Settings], Tables]] = {
    1: hgr_limits,
    2: running_example,
    3: preprocessing,
    4: gedi_against_hgr,
}
