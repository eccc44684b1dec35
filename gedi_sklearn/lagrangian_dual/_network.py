"""What needs torch: the network, its Lagrangian, and the training loop of skorch.

skorch trains a module on a criterion. Here the criterion is the Lagrangian, which has the
multipliers as buffers, and a callback takes a step of gradient ascent after each step of the
network. So checkpoints contain the multipliers, and all other callbacks work as usual.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from skorch import NeuralNet
from skorch.callbacks import Callback
from skorch.utils import to_numpy

from ..constraints import AllowedSet, FittedConstraint

# Batch size of predictions.
_PREDICTION_ROWS = 50_000

Loss = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]
Link = Callable[[torch.Tensor], torch.Tensor]


def _identity(outputs: torch.Tensor) -> torch.Tensor:
    return outputs


def _squared_error(outputs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    return torch.square(outputs - targets)


def _log_loss(outputs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    return torch.nn.functional.binary_cross_entropy_with_logits(outputs, targets, reduction="none")


# The loss per row, and the link from the output of the module to the constrained prediction.
LOSSES: dict[str, tuple[Loss, Link]] = {
    "squared_error": (_squared_error, _identity),
    "log_loss": (_log_loss, torch.sigmoid),
}


def _linear(n_in: int, n_out: int) -> torch.nn.Linear:
    """Return a layer in single precision, as the rows are, whatever torch's default dtype is."""
    return torch.nn.Linear(n_in, n_out, dtype=torch.float32)


class Network(torch.nn.Module):
    """Fully connected ReLU layers with one output per row."""

    def __init__(self, n_features: int, hidden_layer_sizes: tuple[int, ...]) -> None:
        super().__init__()
        sizes = (n_features, *hidden_layer_sizes)
        hidden = [
            layer
            for size, next_size in pairwise(sizes)
            for layer in (_linear(size, next_size), torch.nn.ReLU())
        ]
        self.layers = torch.nn.Sequential(*hidden, _linear(sizes[-1], 1))

    def forward(self, X: torch.Tensor) -> torch.Tensor:
        """Return the outputs of rows, shape (n,)."""
        return self.layers(X).squeeze(1)


class Rows(torch.utils.data.Dataset):
    """The training rows on the device, with the linear map to the bounded coefficients.

    A constraint bounds v = V R⁻¹ QᵀW ŷ, which is linear in the predictions: V R⁻¹ Qᵀ is computed
    once, and no step solves a least-squares problem.
    """

    def __init__(
        self,
        X: np.ndarray,
        y: np.ndarray,
        weight: np.ndarray,
        constraint: FittedConstraint,
        *,
        device: str,
        is_classification: bool,
    ) -> None:
        self.X = torch.tensor(X, device=device)
        self.constraint = constraint
        self.is_classification = is_classification
        self.batch = {
            "rows": torch.arange(len(y), device=device),
            "targets": torch.tensor(y, dtype=torch.float32, device=device),
            "weight": torch.tensor(weight, dtype=torch.float64, device=device),
        }
        self.allowed: AllowedSet | None = None
        for part in constraint.parts:  # one, or none for a constant attribute
            bounded = part.allowed.bounded
            self.allowed = part.allowed.take(bounded)
            to_v = part.coordinate_set.rows[bounded]
            seen = part.design.orthonormal @ to_v.T
            self.batch["bounded"] = torch.tensor(seen, device=device)

    def __len__(self) -> int:
        return len(self.X)

    def __getitem__(self, rows: Any) -> tuple[torch.Tensor, dict[str, torch.Tensor]]:
        return self.X[rows], {name: values[rows] for name, values in self.batch.items()}

    def measure(self, predictions: np.ndarray) -> dict[str, float]:
        """Return violation and indicator of the predictions, and the indicator of labels."""
        measured = {"predictions": predictions}
        if self.is_classification:
            measured["labels"] = (predictions > 0.5).astype(np.float64)
        found = {f"{name}_gedi": self.constraint.indicator(z) for name, z in measured.items()}
        return found | {"violation": self.constraint.judge(predictions).violation}


class Batches:
    """Slices of a data set, which are far faster than torch's loader, which fetches single rows."""

    def __init__(self, dataset: Any, batch_size: int, shuffle: bool = False) -> None:
        self.dataset = dataset
        self.batch_size = batch_size
        self.shuffle = shuffle

    def __iter__(self) -> Iterator[Any]:
        n = len(self.dataset)
        if not self.shuffle or self.batch_size >= n:
            for start in range(0, n, self.batch_size):
                yield self.dataset[start : start + self.batch_size]
        else:
            for rows in torch.randperm(n).split(self.batch_size):
                yield self.dataset[rows]


class Lagrangian(torch.nn.Module):
    """Mean loss plus multipliers times violations, L(y, ŷ) + λᵀ max(0, violation).

    On a batch the bounded coefficients are estimated from the centred predictions and normalised
    weights of the batch.
    """

    multipliers: torch.Tensor

    def __init__(self, loss: str, allowed: AllowedSet | None) -> None:
        super().__init__()
        self.loss, self.link = LOSSES[loss]
        self.allowed = allowed
        limits = np.empty(0) if allowed is None else allowed.limits
        self.register_buffer("limits", torch.tensor(limits))
        size = len(limits)
        self.register_buffer("multipliers", torch.zeros(size, dtype=torch.float64))
        self.violations = torch.zeros_like(self.multipliers)

    def forward(self, outputs: torch.Tensor, batch: dict[str, torch.Tensor]) -> torch.Tensor:
        """Return the Lagrangian of a batch and keep its violations for the ascent."""
        weight = batch["weight"] / batch["weight"].sum()
        mean_loss = weight @ self.loss(outputs, batch["targets"]).double()
        if self.allowed is None:
            return mean_loss
        predictions = self.link(outputs).double()
        weighted = weight * (predictions - weight @ predictions)
        sizes: Any = self.allowed.sizes(weighted @ batch["bounded"])
        violations = (sizes - self.limits).clamp(min=0)
        self.violations = violations.detach()
        return mean_loss + self.multipliers @ violations


class Ascent(Callback):
    """A step of the multipliers after each step of the network: their gradient is the violation.

    With Adam, as for the network, a step is about `learning_rate` in any unit of the violation.
    Violations are never negative, so no multiplier ever decreases.
    """

    def __init__(self, learning_rate: float) -> None:
        self.learning_rate = learning_rate

    def on_train_begin(self, net: NeuralNet, **kwargs: Any) -> None:
        """Start from the multipliers of the criterion: 0, or those of a checkpoint."""
        self.optimizer = torch.optim.Adam(
            [net.criterion_.multipliers], lr=self.learning_rate, maximize=True
        )

    def on_batch_end(self, net: NeuralNet, training: bool, **kwargs: Any) -> None:
        """Ascend after a training batch."""
        if training:
            net.criterion_.multipliers.grad = net.criterion_.violations
            self.optimizer.step()


class Monitor(Callback):
    """Records the fields of `history_`, for the predictions made in the steps of an epoch."""

    def on_train_begin(self, net: NeuralNet, X: Rows, **kwargs: Any) -> None:
        """Allocate one output per row."""
        self.outputs = torch.zeros_like(X.batch["targets"])

    def on_batch_end(
        self,
        net: NeuralNet,
        batch: Any,
        y_pred: torch.Tensor,
        training: bool = False,
        **kwargs: Any,
    ) -> None:
        """Store the outputs of a batch."""
        if training:
            self.outputs[batch[1]["rows"]] = y_pred.detach()

    def on_epoch_end(self, net: NeuralNet, dataset_train: Rows, **kwargs: Any) -> None:
        """Record the epoch."""
        data, criterion = dataset_train, net.criterion_
        losses = criterion.loss(self.outputs, data.batch["targets"])
        loss = float(data.batch["weight"] @ losses.double())
        if not np.isfinite(loss):
            raise ValueError(
                f"training diverged: the loss of epoch {len(net.history)} is {loss}. Lower "
                "`learning_rate` or `multiplier_learning_rate`, or standardise X and y."
            )
        net.history.record("loss", loss)
        net.history.record("multipliers", to_numpy(criterion.multipliers).copy())
        predictions = to_numpy(criterion.link(self.outputs)).astype(np.float64)
        for name, value in data.measure(predictions).items():
            net.history.record(name, value)

    def on_train_end(self, net: NeuralNet, **kwargs: Any) -> None:
        """Delete the outputs: a fitted estimator holds no rows."""
        del self.outputs


def train(
    rows: Rows,
    network: dict[str, Any],
    *,
    loss: str,
    seed: int,
    multiplier_learning_rate: float,
    callbacks: list[Any],
    **options: Any,
) -> NeuralNet:
    """Return a network trained on the Lagrangian of its rows.

    Parameters
    ----------
    rows : Rows
        The training rows.
    network : dict
        Keywords of :class:`Network`.
    loss : {"squared_error", "log_loss"}
        The loss.
    seed : int
        Seed of the initial weights and the order of batches.
    multiplier_learning_rate : float
        Step size of the multipliers.
    callbacks : list
        Further skorch callbacks.
    **options
        Keywords of :class:`skorch.NeuralNet`.

    Returns
    -------
    NeuralNet
    """
    for own in callbacks:
        if not hasattr(own[-1] if isinstance(own, tuple) else own, "on_epoch_end"):
            raise TypeError(f"callbacks must hold callbacks of skorch, got {own!r}.")
    net = NeuralNet(
        Network,
        Lagrangian,
        optimizer=torch.optim.Adam,
        optimizer__fused=True,
        iterator_train=Batches,
        iterator_train__shuffle=True,
        iterator_valid=Batches,
        iterator_valid__batch_size=_PREDICTION_ROWS,
        train_split=None,
        callbacks=[Ascent(multiplier_learning_rate), Monitor(), *callbacks],
        criterion__loss=loss,
        criterion__allowed=rows.allowed,
        **{f"module__{name}": value for name, value in network.items()},
        **options,
    )
    with _seeded(seed, options["device"]):
        return net.fit(rows)


@contextmanager
def _seeded(seed: int, device: str) -> Iterator[None]:
    """Seed torch inside the context; its global generators are restored afterwards."""
    place = torch.device(device)
    with torch.random.fork_rng([place] if place.type == "cuda" else []):
        torch.manual_seed(seed)
        yield
