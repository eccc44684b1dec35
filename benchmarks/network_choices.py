"""What the paper leaves open about its networks, and what it changes: epochs and initial weights.

``python -m benchmarks.network_choices`` trains the NN rows of both data sets on the paper's folds
and prints scores and GeDI % as the epochs go by; it needs the extra ``torch``.
"""

import argparse
from collections.abc import Iterator, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks._storage import write_rows
from benchmarks._tables import MEASURES, markdown, summarize
from benchmarks._units import LAYERS, score_and_gedi
from benchmarks.tasks import N_FOLDS, TASKS, Task, TaskData, load_task, split

try:
    import torch

    from benchmarks._network import build_network, train_epoch
except ImportError as error:
    raise ImportError(
        "benchmarks.network_choices needs torch: pip install -e '.[benchmarks,torch]'."
    ) from error

RESULTS = Path(__file__).parent / "results" / "network_choices.csv"
EPOCHS = (10, 20, 30, 50, 100, 200)
WEIGHTS = ("uniform", "Glorot")  # PyTorch's default, Keras's


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.network_choices", description=__doc__.splitlines()[0]
    )
    # A network does not know which attribute is looked at: one task a data set.
    names = tuple(str(task) for task in TASKS if task.protected_kind == "binary")
    parser.add_argument("--task", nargs="+", choices=names, default=names)
    parser.add_argument("--folds", type=int, choices=range(1, N_FOLDS + 1), default=N_FOLDS)
    parser.add_argument(
        "--seed",
        type=int,
        nargs="+",
        default=(0,),
        help="of the initial weights and batches; the folds stay (default: 0, the tables')",
    )
    parser.add_argument("--output", type=Path, default=RESULTS)
    options = parser.parse_args(argv)
    torch.set_num_threads(1)
    lines = []
    for task in TASKS:
        if str(task) in options.task:
            for weights, seed in product(WEIGHTS, options.seed):
                lines += run(task, weights, options.folds, seed)
                print(markdown(list(lines[-1]), [[*line.values()] for line in lines]), flush=True)
    write_rows(options.output, list(lines[0]), lines)
    print(f"Results: {options.output}")


def run(task: Task, weights: str, n_folds: int, seed: int) -> list[dict[str, str]]:
    """Return a line for every number of epochs: means over the folds ± deviations."""
    data = load_task(task)
    folds = [
        [*_train(task, data, train, val, weights, seed)]
        for train, val in split(task, data, n_folds=n_folds)
    ]
    lines = []
    for epochs, at_epoch in zip(EPOCHS, zip(*folds, strict=True), strict=True):
        line = {
            "task": str(task),
            "weights": weights,
            "seed": str(seed),
            "epochs": str(epochs),
        }
        for name in MEASURES:
            line[name] = summarize([fold[name] for fold in at_epoch]).text(3)
        lines.append(line)
    return lines


def _train(
    task: Task, data: TaskData, train: np.ndarray, val: np.ndarray, weights: str, seed: int
) -> Iterator[dict[str, float]]:
    """Train as the paper says, and yield the measures after each of EPOCHS."""
    X = torch.as_tensor(data.X, dtype=torch.float32)
    y = torch.as_tensor(data.y, dtype=torch.float32)
    loss = torch.nn.MSELoss() if task.is_regression else torch.nn.BCELoss()
    X_train, y_train = X[train], y[train]
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        network = build_network(
            X.shape[1], LAYERS[task.is_regression], output="sigmoid", initial_weights=weights
        )
        optimizer = torch.optim.Adam(network.parameters(), fused=True)
        for epoch in range(1, EPOCHS[-1] + 1):
            train_epoch(network, optimizer, loss, X_train, y_train, batch_size=128)
            if epoch in EPOCHS:
                yield _measure(task, data, network, X, {"train": train, "val": val})


def _measure(
    task: Task, data: TaskData, network: Any, X: Any, parts: dict[str, np.ndarray]
) -> dict[str, float]:
    measured = {}
    for part, rows in parts.items():
        with torch.no_grad():
            outputs = network(X[rows]).squeeze(1).numpy().astype(np.float64)
        predictions = outputs if task.is_regression else (outputs > 0.5).astype(int)
        measured |= score_and_gedi(task, data, rows, predictions, part)
    return measured


if __name__ == "__main__":
    main()
