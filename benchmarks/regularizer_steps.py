"""What the step sizes decide in the SBR rows: how far the penalty has been met after 500 epochs.

``python -m benchmarks.regularizer_steps`` trains them on the first folds with several steps of the
network and of the multipliers; it needs the extra ``torch``. Scores and GeDI % are points on one
trade-off, which the steps move along.
"""

import argparse
import warnings
from collections.abc import Sequence
from pathlib import Path

from benchmarks._storage import write_rows
from benchmarks._tables import MEASURES, Value, markdown, read_reference, summarize
from benchmarks._units import make_regularizer, models_of, score_and_gedi
from benchmarks.tasks import N_FOLDS, TASKS, Task, load_task, split
from gedi_sklearn.exceptions import ConstraintNotMetWarning

RESULTS = Path(__file__).parent / "results" / "regularizer_steps.csv"
# The network's last step, where 1e-3 is constant, and the multipliers' step.
STEPS = ((1e-3, 3e-3), (1e-3, 1e-2), (3e-4, 1e-2), (0.0, 5e-3), (5e-4, 3e-3))


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.regularizer_steps", description=__doc__.splitlines()[0]
    )
    names = tuple(str(task) for task in TASKS)
    parser.add_argument("--task", nargs="+", choices=names, default=names)
    parser.add_argument("--folds", type=int, choices=range(1, N_FOLDS + 1), default=2)
    parser.add_argument("--output", type=Path, default=RESULTS)
    options = parser.parse_args(argv)
    lines = []
    for task in TASKS:
        if str(task) in options.task:
            for model in models_of(task):
                if "+SBR" in model:
                    lines += [
                        *(run(task, model, *steps, options.folds) for steps in STEPS),
                        _paper(task, model),
                    ]
                    print(markdown(list(lines[-1]), [[*line.values()] for line in lines]))
    write_rows(options.output, list(lines[0]), lines)
    print(f"Results: {options.output}")


def run(
    task: Task, model: str, last_step: float, multiplier_step: float, n_folds: int
) -> dict[str, str]:
    """Return a line for one pair of steps: means over the folds ± deviations."""
    data, folds = load_task(task), []
    for train, val in split(task, data, n_folds=n_folds):
        network = make_regularizer(
            task, model, seed=0, last_step=last_step, multiplier_learning_rate=multiplier_step
        )
        with warnings.catch_warnings():
            # How far predictions are from the bound is what the table shows.
            warnings.simplefilter("ignore", ConstraintNotMetWarning)
            network.fit(data.X[train], data.y[train], sensitive_features=data.sensitive[train])
        measured = {}
        for part, rows in {"train": train, "val": val}.items():
            predictions = network.predict(data.X[rows])
            measured |= score_and_gedi(task, data, rows, predictions, part)
        folds.append(measured)
    values = {name: summarize([fold[name] for fold in folds]).text(3) for name in MEASURES}
    return _identity(task, model, f"{last_step:g}", f"{multiplier_step:g}", n_folds) | values


def _paper(task: Task, model: str) -> dict[str, str]:
    row = read_reference()[task.dataset, task.protected_kind, model]
    values = {name: Value(float(row[name]), float(row[f"{name}_std"])).text(2) for name in MEASURES}
    return _identity(task, model, "paper", "paper", N_FOLDS) | values


def _identity(
    task: Task, model: str, last_step: str, multiplier_step: str, n_folds: int
) -> dict[str, str]:
    return {
        "task": str(task),
        "model": model,
        "last_step": last_step,
        "multiplier_step": multiplier_step,
        "folds": str(n_folds),
    }


if __name__ == "__main__":
    main()
