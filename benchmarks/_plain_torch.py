"""The network of the Lagrangian dual on Adult, beside the same one in a plain loop of torch."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import torch
from skorch.callbacks import Callback

from benchmarks._network import build_network, train_epoch
from benchmarks.tasks import TASKS, load_task
from gedi_sklearn import CoarseConstraint, LagrangianDualClassifier, LagrangianDualRegressor

N_HIDDEN = 100


class Beside(Callback):
    """Runs a plain epoch after each of the network's own, and keeps the CPU seconds of both."""

    def __init__(self, plain: Callable[[], None]) -> None:
        self.plain = plain
        self.pairs: list[tuple[float, float]] = []

    def on_train_begin(self, net: Any, **kwargs: Any) -> None:
        """Start the clock."""
        self.start = time.process_time()

    def on_epoch_end(self, net: Any, **kwargs: Any) -> None:
        """Stop it, run the plain epoch, and start it again."""
        end = time.process_time()
        self.plain()
        after = time.process_time()
        self.pairs.append((end - self.start, after - end))
        self.start = time.process_time()

    def __deepcopy__(self, memo: Any) -> Beside:
        return self  # `fit` copies callbacks, and the caller reads the pairs


def paired_epochs(
    is_classification: bool, batch_size: int, n_epochs: int, *, is_fused: bool
) -> Iterator[tuple[float, float]]:
    """Yield the CPU seconds of epochs of both, without the first pair.

    The Lagrangian dual has Adam in its fused form; the plain loop has that, or Adam as it comes.
    """
    task = next(task for task in TASKS if str(task) == "adult/age")
    data = load_task(task)
    X, y = data.X.astype("float32"), data.y
    network = build_network(X.shape[1], (N_HIDDEN,), output="linear", initial_weights="uniform")
    loss = torch.nn.BCEWithLogitsLoss() if is_classification else torch.nn.MSELoss()
    tensors = torch.tensor(X), torch.tensor(y, dtype=torch.float32)
    optimizer = torch.optim.Adam(network.parameters(), fused=is_fused or None)
    beside = Beside(partial(train_epoch, network, optimizer, loss, *tensors, batch_size))
    estimator = LagrangianDualClassifier if is_classification else LagrangianDualRegressor
    model = estimator(
        (N_HIDDEN,),
        CoarseConstraint(),
        batch_size=batch_size,
        max_epochs=n_epochs + 1,
        callbacks=[beside],
        random_state=0,
    )
    model.fit(X, y, sensitive_features=data.sensitive)
    yield from beside.pairs[1:]
