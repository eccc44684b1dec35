"""The paper's neural network for regression: ReLU layers, Adam with its defaults, batches.

Its output is a sigmoid: the targets are scaled to [0, 1]. scikit-learn's regressor has a linear
output only, with which the paper's scores are out of reach (see docs/benchmarks.md).
"""

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
        random_state: int = 0,
        warm_start: bool = False,
    ) -> None:
        self.hidden_layer_sizes = hidden_layer_sizes
        self.epochs = epochs
        self.batch_size = batch_size
        self.output = output
        self.random_state = random_state
        self.warm_start = warm_start

    def fit(self, X: np.ndarray, y: np.ndarray) -> Any:
        rows = torch.as_tensor(X, dtype=torch.float32)
        target = torch.as_tensor(y, dtype=torch.float32)
        loss = torch.nn.MSELoss()
        # A generator of its own: torch's global one is left as it was.
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(self.random_state)
            if not (self.warm_start and hasattr(self, "module_")):
                self.module_ = self._layers(rows.shape[1])
            optimizer = torch.optim.Adam(self.module_.parameters(), fused=True)
            for _ in range(self.epochs):
                for batch in torch.randperm(len(rows)).split(self.batch_size):
                    optimizer.zero_grad()
                    loss(self.module_(rows[batch]).squeeze(1), target[batch]).backward()
                    optimizer.step()
        return self

    def predict(self, X: np.ndarray) -> np.ndarray:
        with torch.no_grad():
            outputs = self.module_(torch.as_tensor(X, dtype=torch.float32)).squeeze(1)
        return outputs.numpy().astype(np.float64)

    def _layers(self, n_features: int) -> torch.nn.Sequential:
        sizes = (n_features, *self.hidden_layer_sizes)
        hidden = [
            layer
            for size, next_size in pairwise(sizes)
            for layer in (torch.nn.Linear(size, next_size), torch.nn.ReLU())
        ]
        output = {"sigmoid": torch.nn.Sigmoid, "linear": torch.nn.Identity}[self.output]
        return torch.nn.Sequential(*hidden, torch.nn.Linear(sizes[-1], 1), output())
