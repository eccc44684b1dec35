"""The paper's neural network for regression: ReLU layers, Adam with its defaults, batches.

Its output is a sigmoid: the targets are scaled to [0, 1]. scikit-learn's regressor has a linear
output only, with which the paper's scores are out of reach. The initial weights are Glorot's, as
in the library that the paper used (see docs/benchmarks.md for both).
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin

try:
    import torch
except ImportError as error:
    raise ImportError(
        "The NN rows of Communities need torch: pip install -e '.[benchmarks,torch]', or leave "
        "them out with --model."
    ) from error


class NetworkRegressor(RegressorMixin, BaseEstimator):
    """A network for targets in [0, 1], trained on batches for a fixed number of epochs."""

    def __init__(
        self,
        hidden_layer_sizes: tuple[int, ...] = (256, 256),
        *,
        epochs: int = 200,
        batch_size: int = 128,
        output: str = "sigmoid",
        initial_weights: str = "Glorot",
        random_state: int = 0,
    ) -> None:
        self.hidden_layer_sizes = hidden_layer_sizes
        self.epochs = epochs
        self.batch_size = batch_size
        self.output = output
        self.initial_weights = initial_weights
        self.random_state = random_state

    def fit(self, X: np.ndarray, y: np.ndarray) -> Any:
        rows = torch.as_tensor(X, dtype=torch.float32)
        target = torch.as_tensor(y, dtype=torch.float32)
        # A generator of its own: torch's global one is left as it was.
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(self.random_state)
            self.module_ = build_network(
                rows.shape[1],
                self.hidden_layer_sizes,
                output=self.output,
                initial_weights=self.initial_weights,
            )
            optimizer = torch.optim.Adam(self.module_.parameters(), fused=True)
            for _ in range(self.epochs):
                train_epoch(
                    self.module_, optimizer, torch.nn.MSELoss(), rows, target, self.batch_size
                )
        return self

    def predict(self, X: np.ndarray) -> np.ndarray:
        with torch.no_grad():
            outputs = self.module_(torch.as_tensor(X, dtype=torch.float32)).squeeze(1)
        return outputs.numpy().astype(np.float64)


def build_network(
    n_features: int, hidden: Sequence[int], *, output: str, initial_weights: str
) -> torch.nn.Sequential:
    """Return ReLU layers and one output unit; "uniform" weights are PyTorch's own."""
    layers: list[torch.nn.Module] = []
    for size, next_size in pairwise((n_features, *hidden, 1)):
        linear = torch.nn.Linear(size, next_size)
        if initial_weights == "Glorot":
            torch.nn.init.xavier_uniform_(linear.weight)
            torch.nn.init.zeros_(linear.bias)
        layers += [linear, torch.nn.ReLU()]
    last = {"sigmoid": torch.nn.Sigmoid, "linear": torch.nn.Identity}[output]
    return torch.nn.Sequential(*layers[:-1], last())


def train_epoch(
    network: torch.nn.Module,
    optimizer: torch.optim.Optimizer,
    loss: torch.nn.Module,
    rows: torch.Tensor,
    target: torch.Tensor,
    batch_size: int,
) -> None:
    """Step once for every batch of the rows, in a new order."""
    for batch in torch.randperm(len(rows)).split(batch_size):
        optimizer.zero_grad()
        loss(network(rows[batch]).squeeze(1), target[batch]).backward()
        optimizer.step()
