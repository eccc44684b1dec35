"""What needs torch: the network, its Lagrangian, and the training loop of skorch.

skorch trains a module on a criterion. Here the criterion is the Lagrangian, which has the
multipliers as buffers, and a callback takes a step of gradient ascent after each step of the
network. So checkpoints contain the multipliers, and all other callbacks work as usual.

A batch of a small network takes less than a millisecond, and each operation of torch is a share of
that. So the Lagrangian says its derivative itself, in numpy where it can, and only callbacks that
listen are called.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from math import sqrt
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np
import torch
from scipy.special import expit
from sklearn.base import ClassifierMixin, RegressorMixin
from skorch import NeuralNet
from skorch.callbacks import Callback, EarlyStopping
from skorch.dataset import Dataset
from skorch.utils import TeeGenerator

from .._geometry import AllowedSet
from ..constraints import FittedConstraint

# Batch size of predictions.
_PREDICTION_ROWS = 50_000
# Adam's own defaults, for a few numbers on which a step of torch's costs as much as a network's.
_DECAYS, _EPSILON = (0.9, 0.999), 1e-8
# Rows that are fetched at a time, so that a batch is a slice of them.
_FETCHED_ROWS = 4_096
# Methods of callbacks that are told a batch.
_OF_BATCHES = ("on_batch_begin", "on_batch_end", "on_grad_computed")


# From a derivative in the predictions to that in the outputs.
_Chain = Callable[[Any], Any]


def _squared_error(columns: Any, targets: Any, xp: ModuleType) -> tuple[Any, _Chain]:
    error = columns[1] - targets
    xp.multiply(error, error, out=columns[2])
    return 2 * error, lambda slope: slope


@np.errstate(invalid="ignore")  # of outputs that are not finite, which the epoch's loss tells
def _log_loss(columns: Any, targets: Any, xp: ModuleType) -> tuple[Any, _Chain]:
    outputs = columns[1]
    log_total = xp.logaddexp(xp.zeros_like(outputs), outputs)  # log(1 + eᵒ)
    xp.subtract(log_total, targets * outputs, out=columns[2])
    probability = xp.exp(outputs - log_total, out=columns[1])
    return probability - targets, lambda slope: slope * (probability * (1 - probability))


# Each turns the outputs in the second of three columns, shape (3, m), to what is constrained of
# them, and fills the third one with their loss. It returns the derivative of that in the outputs,
# and the chain rule. Arrays are all of numpy or all of torch.
LOSSES = {"squared_error": _squared_error, "log_loss": _log_loss}


def _columns(outputs: torch.Tensor, terms: Any) -> tuple[Any, ModuleType]:
    """Return three columns of doubles, 1 and the outputs and 1, of the kind of the terms."""
    if isinstance(terms, np.ndarray):
        columns, own = np.ones((3, len(outputs))), outputs.numpy()
        columns[1] = own
        return columns, np
    columns = terms.new_ones((3, len(outputs)))
    columns[1] = outputs
    return columns, torch


def _to_numpy(array: Any) -> np.ndarray:
    """Return an array of numpy or torch as numpy, without skorch's look at other kinds."""
    return array if isinstance(array, np.ndarray) else array.cpu().numpy()


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
        for layer in self.layers:
            X = layer(X)
        return X.squeeze(1)


class Batch(NamedTuple):
    """What the loss needs of m rows beside the outputs: their numbers and their terms.

    Attributes
    ----------
    rows : tensor of shape (m,)
        The numbers.
    terms : array of shape (2 + r, m)
        Targets, weights, and what the r coefficients are a product of: of numpy on a CPU.
    """

    rows: Any
    terms: Any


class Rows(Dataset):
    """The training rows on the device, with the linear map to the bounded coefficients.

    A constraint bounds v = A QᵀW ŷ, which is linear in the predictions: A QᵀW is computed once,
    and no step solves a least-squares problem.
    """

    @torch.inference_mode(False)  # a tensor made in that mode cannot be trained on
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
        self.y = y
        self.numbers = torch.arange(len(X), device="cpu")
        self.constraint = constraint
        self.is_classification = is_classification
        self.allowed: AllowedSet | None = None
        terms = [y, weight]
        for part in constraint.parts:  # one, or none for a constant attribute
            self.allowed = part.block.bounded
            terms += list(part.block.effects(np.arange(len(y)), weight))
            part.design.with_matrix()  # each epoch is measured
        self.terms: Any = np.array(terms)
        if not self.X.is_cpu:
            self.terms = torch.tensor(self.terms, device=device)

    def __len__(self) -> int:
        return len(self.X)

    def __getitem__(self, rows: Any) -> tuple[torch.Tensor, Batch]:
        numbers = self.numbers[rows]
        own = rows if isinstance(rows, slice) else _to_numpy(rows)
        return self.X[rows], Batch(numbers, self.terms[:, own])

    def measure(self, predictions: np.ndarray) -> dict[str, float]:
        """Return violation and indicator of the predictions, and the indicator of labels."""
        measured = {"predictions": predictions}
        if self.is_classification:
            measured["labels"] = (predictions > 0.5).astype(np.float64)
        found = {f"{name}_gedi": self.constraint.indicator(z) for name, z in measured.items()}
        return found | {"violation": self.constraint.judge(predictions).violation}


class Batches:
    """Slices of a data set, which are far faster than torch's loader, which fetches single rows.

    Rows in a random order are fetched for many batches at a time.
    """

    def __init__(self, dataset: Any, batch_size: int, shuffle: bool = False) -> None:
        self.dataset = dataset
        self.batch_size = batch_size
        self.shuffle = shuffle

    def __iter__(self) -> Iterator[Any]:
        n, size = len(self.dataset), self.batch_size
        if not self.shuffle or size >= n:
            for start in range(0, n, size):
                yield self.dataset[start : start + size]
            return
        fetched = size * max(1, _FETCHED_ROWS // size)
        for numbers in torch.randperm(n, device="cpu").split(fetched):
            X, (_, terms) = self.dataset[numbers]
            for start in range(0, len(numbers), size):
                rows = slice(start, start + size)
                yield X[rows], Batch(numbers[rows], terms[:, rows])


class Lagrangian(torch.nn.Module):
    """Mean loss plus multipliers times violations, L(y, ŷ) + λᵀ max(0, violation).

    On a batch the bounded coefficients are estimated from the centred predictions and normalised
    weights of the batch.
    """

    multipliers: torch.Tensor

    def __init__(self, loss: str, allowed: AllowedSet | None) -> None:
        super().__init__()
        self.loss = LOSSES[loss]
        self.allowed = allowed
        self.limits = [] if allowed is None else allowed.limits.tolist()
        self.violations = [0.0] * len(self.limits)
        self.register_buffer("multipliers", torch.zeros(len(self.limits), dtype=torch.float64))

    def forward(self, outputs: torch.Tensor, batch: Batch) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the Lagrangian of a batch, and its derivative in the outputs.

        The violations are kept for the ascent.
        """
        terms, weighted = batch.terms, batch.terms[1:]
        columns, xp = _columns(outputs, terms)
        slope, chain = self.loss(columns, terms[0], xp)
        slope *= terms[1]
        sums = (weighted @ columns.T).tolist()
        total, moments = [row[0] for row in sums], [row[1] for row in sums]
        value = sums[0][2] / total[0]
        if self.allowed is not None:
            penalty, pull = self._penalty(moments, total)
            if penalty:
                value += penalty
                along = np.array(pull) if xp is np else weighted.new_tensor(pull)
                slope += chain(along @ weighted)
        slope /= total[0]
        loss = torch.from_numpy(np.array(value))  # `tensor` takes several times as long, as `to`
        if xp is np:
            return loss, torch.from_numpy(slope.astype(outputs.numpy().dtype))
        return loss, slope.to(outputs.dtype)

    def _penalty(self, moments: list[float], total: list[float]) -> tuple[float, list[float]]:
        """Return multipliers times violations, and the derivative in the moments, times Σw, if any.

        They are few numbers, for which floats of Python take a fraction of numpy's time.

        Parameters
        ----------
        moments, total : list of float of length 1 + r
            Weighted sums of the predictions, and of ones: their own, and those of the products.
        """
        assert self.allowed is not None
        # v is linear in the predictions; their mean takes its part of what the products sum to.
        mean = moments[0] / total[0]
        centred = [m - mean * t for m, t in zip(moments, total, strict=True)]
        v = np.array(centred[1:]) / total[0]
        sizes, multipliers = self.allowed.sizes(v).tolist(), self.multipliers.tolist()
        self.violations = [max(0.0, a - b) for a, b in zip(sizes, self.limits, strict=True)]
        pull = [m * (a > 0) for m, a in zip(multipliers, self.violations, strict=True)]
        penalty = sum(m * a for m, a in zip(pull, self.violations, strict=True))
        if not penalty:
            return 0.0, []
        along = self.allowed.slope(v, np.array(pull)).tolist()
        of_mean = -sum(a * t for a, t in zip(along, total[1:], strict=True)) / total[0]
        return penalty, [of_mean, *along]


class Ascent(Callback):
    """A step of the multipliers after each step of the network: their gradient is the violation.

    With Adam, as for the network, a step is about `learning_rate` in any unit of the violation.
    Violations are never negative, so no multiplier ever decreases.
    """

    def __init__(self, learning_rate: float) -> None:
        self.learning_rate = learning_rate

    def on_train_begin(self, net: NeuralNet, **kwargs: Any) -> None:
        """Start from the multipliers of the criterion: 0, or those of a checkpoint."""
        self.n_steps, self.moments = 0, [(0.0, 0.0)] * len(net.criterion_.multipliers)

    def on_batch_end(self, net: NeuralNet, training: bool, **kwargs: Any) -> None:
        """Ascend after a training batch."""
        if not training:
            return
        gradient, multipliers = net.criterion_.violations, net.criterion_.multipliers
        self.n_steps += 1
        decay, fade = _DECAYS
        pace = self.learning_rate / (1 - decay**self.n_steps)
        root = 1 - fade**self.n_steps
        # Of Python's floats, as in the criterion.
        self.moments = [
            (decay * first + (1 - decay) * g, fade * second + (1 - fade) * g * g)
            for (first, second), g in zip(self.moments, gradient, strict=True)
        ]
        steps = [pace * first / (sqrt(second / root) + _EPSILON) for first, second in self.moments]
        if multipliers.is_cpu:
            numbers = multipliers.numpy()  # the same memory, without the time of an operation
            numbers += steps
        else:
            multipliers += multipliers.new_tensor(steps)


class Monitor(Callback):
    """Records the fields of `history_`, for the predictions made in the steps of an epoch."""

    def on_train_begin(self, net: NeuralNet, X: Rows, **kwargs: Any) -> None:
        """Allocate one output per row."""
        self.outputs = torch.zeros(len(X), dtype=torch.float64, device=X.X.device)
        self.kept: list[tuple[Any, torch.Tensor]] = []

    def on_batch_end(
        self,
        net: NeuralNet,
        batch: Any,
        y_pred: torch.Tensor,
        training: bool = False,
        **kwargs: Any,
    ) -> None:
        """Keep the outputs of a batch."""
        if training:
            self.kept.append((batch[1].rows, y_pred))

    def on_epoch_end(self, net: NeuralNet, dataset_train: Rows, **kwargs: Any) -> None:
        """Record the epoch."""
        data, criterion = dataset_train, net.criterion_
        rows, outputs = (torch.cat(own) for own in zip(*self.kept, strict=True))
        self.outputs[rows] = outputs.double()
        self.kept.clear()
        columns, xp = _columns(self.outputs, data.terms)
        criterion.loss(columns, data.terms[0], xp)
        loss = float(data.terms[1] @ columns[2])
        if not np.isfinite(loss):
            raise ValueError(
                f"training diverged: the loss of epoch {len(net.history)} is {loss}. Lower "
                "`learning_rate` or `multiplier_learning_rate`, or standardise X and y."
            )
        net.history.record("loss", loss)
        net.history.record("multipliers", criterion.multipliers.tolist())  # a checkpoint is JSON
        for name, value in data.measure(_to_numpy(columns[1])).items():
            net.history.record(name, float(value))

    def on_train_end(self, net: NeuralNet, **kwargs: Any) -> None:
        """Delete the outputs: a fitted estimator holds no rows."""
        del self.outputs, self.kept


class _Interrupted(BaseException):
    """An interrupt of the training, which skorch would take for its end."""


class _Stopped(Exception):
    """The end of the training that `EarlyStopping` asks for, by an interrupt of its own."""


def _stopping(method: Callable[..., None]) -> Callable[..., None]:
    """Return a method of `EarlyStopping` whose interrupt is told from that of a user."""

    def told(net: NeuralNet, **kwargs: Any) -> None:
        try:
            method(net, **kwargs)
        except KeyboardInterrupt as error:
            raise _Stopped from error

    return told


def _for_callback(method: Callable[..., None]) -> Callable[..., None]:
    """Return a method of a callback of skorch's, which takes batches for pairs of X and y."""

    def told(net: NeuralNet, *, batch: Any, **kwargs: Any) -> None:
        method(net, batch=(batch[0], _to_numpy(batch[1].terms[0])), **kwargs)

    return told


class Net(NeuralNet):
    """A network trained on the Lagrangian, with less around each batch than skorch has."""

    def fit_loop(self, *args: Any, **kwargs: Any) -> NeuralNet:
        """Take all epochs; see skorch."""
        try:
            return super().fit_loop(*args, **kwargs)
        except _Stopped:
            return self
        except KeyboardInterrupt as error:
            raise _Interrupted from error

    def forward(self, *args: Any, **kwargs: Any) -> torch.Tensor:
        """Return the outputs of rows, shape (n,), whatever mode torch is in; see skorch."""
        with _plain_mode(self.device):
            return super().forward(*args, **kwargs)

    def initialize_callbacks(self) -> Net:
        """Set up the callbacks; see skorch."""
        self._listeners: dict[str, list[Callable[..., None]]] = {}
        return super().initialize_callbacks()

    def notify(self, method_name: str, **kwargs: Any) -> None:
        """Call a method of those callbacks that have one of their own."""
        getattr(self, method_name)(self, **kwargs)
        for method in self._listeners_of(method_name):
            method(self, **kwargs)

    def _listeners_of(self, method_name: str) -> list[Callable[..., None]]:
        if method_name not in self._listeners:
            silent, takes_batch = getattr(Callback, method_name), method_name in _OF_BATCHES
            self._listeners[method_name] = [
                _stopping(method)
                if isinstance(callback, EarlyStopping)
                else _for_callback(method)
                if takes_batch and not isinstance(callback, (Ascent, Monitor))
                else method
                for _, callback in self.callbacks_
                if getattr(method := getattr(callback, method_name), "__func__", method)
                is not silent
            ]
        return self._listeners[method_name]

    def run_single_epoch(
        self,
        iterator: Any,
        training: bool,
        prefix: str,
        step_fn: Callable[..., dict[str, Any]],
        **fit_params: Any,
    ) -> None:
        """Take the steps of an epoch; see skorch."""
        if iterator is None:
            return
        records = self.history[-1, "batches"]
        n_before = len(records)
        loss_name, size_name = f"{prefix}_loss", f"{prefix}_batch_size"
        for batch in iterator:
            self.notify("on_batch_begin", batch=batch, training=training)
            step = step_fn(batch, **fit_params)
            # In the history itself: its `record_batch` looks both of its last entries up.
            record = records[-1]
            record[loss_name], record[size_name] = step["loss"].item(), len(batch[0])
            self.notify("on_batch_end", batch=batch, training=training, **step)
        self.history.record(f"{prefix}_batch_count", len(records) - n_before)

    def train_step(self, batch: Any, **fit_params: Any) -> dict[str, torch.Tensor]:
        """Take a step of the network; see skorch."""
        # What `zero_grad` does, but for its profile, which costs ten times as much.
        for group in self.optimizer_.param_groups:
            for parameter in group["params"]:
                parameter.grad = None
        outputs = self.module_(batch[0])
        predictions = outputs.detach()
        loss, slope = self.criterion_(predictions, batch[1])
        torch.autograd.backward(outputs, slope)
        if self._listeners_of("on_grad_computed"):
            parameters = TeeGenerator(self.get_all_learnable_params())
            self.notify("on_grad_computed", named_parameters=parameters, batch=batch, training=True)
        self.optimizer_.step()
        return {"loss": loss, "y_pred": predictions}


class RealNet(RegressorMixin, Net):
    """A network of real targets, as scorers in callbacks know one."""


class ClassNet(ClassifierMixin, Net):
    """A network of two classes, 0 and 1, as scorers in callbacks know one."""

    classes_ = np.arange(2)

    def predict_proba(self, X: Any) -> np.ndarray:
        """Return the probabilities of both classes, shape (n, 2)."""
        positive = expit(super().predict_proba(X))
        return np.column_stack([1 - positive, positive])

    def predict(self, X: Any) -> np.ndarray:
        """Return the more probable class, shape (n,)."""
        return self.predict_proba(X).argmax(axis=1)


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
        last = own[-1] if isinstance(own, tuple) and own else own
        if not hasattr(last, "on_epoch_end"):
            raise TypeError(f"callbacks must hold callbacks of skorch, got {own!r}.")
    net = (ClassNet if rows.is_classification else RealNet)(
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
        # It makes its table whether or not it is printed.
        **({} if options["verbose"] else {"callbacks__print_log": None}),
        criterion__loss=loss,
        criterion__allowed=rows.allowed,
        **{f"module__{name}": value for name, value in network.items()},
        **options,
    )
    with _seeded(seed, options["device"]), _plain_mode(options["device"]):
        try:
            return net.fit(rows)
        except _Interrupted as error:
            raise KeyboardInterrupt from error


def check_device(device: str) -> None:
    """Raise if there is no such device, or none that holds doubles, as multipliers are.

    Raises
    ------
    ValueError
    """
    try:
        float(torch.zeros(1, dtype=torch.float64, device=device))
    except Exception as error:  # of several types, and of none in common
        reason = str(error).partition("\n")[0]
        raise ValueError(
            f"device={device!r} cannot be used: {reason} Pass the name of a device of torch that "
            "is there, such as 'cpu'."
        ) from error


@contextmanager
def _plain_mode(device: Any) -> Iterator[None]:
    """Undo, inside the context, the modes of torch that the caller may be in."""
    place = torch.device(device)
    plain = torch.autocast(place.type, enabled=False)
    with torch.inference_mode(False), torch.enable_grad(), plain:
        yield


@contextmanager
def _seeded(seed: int, device: str) -> Iterator[None]:
    """Seed torch inside the context; its global generators are restored afterwards."""
    place = torch.device(device)
    with torch.random.fork_rng([place] if place.type == "cuda" else []):
        torch.manual_seed(seed)
        yield
