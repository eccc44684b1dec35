"""What the two estimators share: parameters, data, the bound, the fitted attributes."""

from __future__ import annotations

import copy
from numbers import Integral, Real
from types import ModuleType
from typing import Any, ClassVar

import numpy as np
from scipy.special import expit
from sklearn.utils import check_array

from .._as_fitted import answers_as_fitted
from .._constrained_estimator import COLUMN_CONSTRAINTS, ConstrainedEstimator, fit_method
from .._validation import Interval, check_random_state
from .._verdict import make_verdict
from ..constraints import FittedConstraint


class BaseLagrangianDual(ConstrainedEstimator):
    """Base class of the regressor and the classifier, which add targets, loss and output."""

    __metadata_request__fit = {"sample_weight": True}  # noqa: RUF012

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "hidden_layer_sizes": ["array-like", Interval(Integral, 1, None, closed="left")],
        "constraint": "no_validation",  # checked by `check_constraint`, with words that help
        "learning_rate": [Interval(Real, 0, None, closed="neither")],
        "multiplier_learning_rate": [Interval(Real, 0, None, closed="left")],
        "max_epochs": [Interval(Integral, 1, None, closed="left")],
        "batch_size": [Interval(Integral, 1, None, closed="left"), None],
        "callbacks": [list, tuple, None],
        "device": [str],
        **COLUMN_CONSTRAINTS,
        "random_state": ["random_state"],
        "verbose": ["verbose"],
    }
    # The loss by its name in `_network`.
    _loss: Any

    def __init__(
        self,
        hidden_layer_sizes: Any = (100,),
        constraint: Any = None,
        *,
        learning_rate: float = 1e-3,
        multiplier_learning_rate: float = 3e-3,
        max_epochs: int = 500,
        batch_size: int | None = None,
        callbacks: Any = None,
        device: str = "cpu",
        sensitive_columns: Any = None,
        drop_sensitive: bool = False,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.hidden_layer_sizes = hidden_layer_sizes
        self.constraint = constraint
        self.learning_rate = learning_rate
        self.multiplier_learning_rate = multiplier_learning_rate
        self.max_epochs = max_epochs
        self.batch_size = batch_size
        self.callbacks = callbacks
        self.device = device
        self.sensitive_columns = sensitive_columns
        self.drop_sensitive = drop_sensitive
        self.random_state = random_state
        self.verbose = verbose

    @fit_method
    def fit(
        self, X: Any, y: Any, *, sensitive_features: Any = None, sample_weight: Any = None
    ) -> BaseLagrangianDual:
        """Train the network under the constraint.

        Parameters
        ----------
        X : array-like of shape (n, p)
            Features: numbers of similar scale, as for any network.
        y : array-like of shape (n,)
            Targets; a classifier takes two classes of any label type.
        sensitive_features : array-like of shape (n,) or (n, m), default=None
            The protected attribute(s), matched to rows by position. None if `sensitive_columns`
            names them in X.
        sample_weight : array-like of shape (n,), default=None
            Weights of the rows in the loss and in the moments of the kernel. A row of weight 0
            is ignored.

        Returns
        -------
        self : object

        Raises
        ------
        ImportError
            If torch or skorch is missing.
        ValueError
            If data, weights or parameters are invalid, or if training diverges.
        """
        network = _import_network(type(self).__name__)
        network.check_device(self.device)
        y, weight, attribute = self._check_training_data(X, y, sensitive_features, sample_weight)
        features = self._features(self._inner_X(X))
        counted = slice(None) if weight is None else weight > 0
        y, features = y[counted], features[counted]
        weight = None if weight is None else weight[counted]
        constraint = self._fit_constraint(attribute[counted], y, weight)

        normalized = np.full(len(y), 1 / len(y)) if weight is None else weight / weight.sum()
        is_classification = self._loss == "log_loss"
        rows = network.Rows(
            features,
            y,
            normalized,
            constraint,
            device=self.device,
            is_classification=is_classification,
        )
        self.net_ = network.train(
            rows,
            {"n_features": features.shape[1], "hidden_layer_sizes": self._layer_sizes()},
            loss=self._loss,
            seed=self._seed(),
            multiplier_learning_rate=self.multiplier_learning_rate,
            callbacks=copy.deepcopy(list(self.callbacks or [])),
            lr=self.learning_rate,
            max_epochs=self.max_epochs,
            batch_size=self.batch_size or -1,
            device=self.device,
            verbose=self.verbose,
        )
        self._set_fitted(constraint)
        outputs = self._forward(features)
        predictions = expit(outputs) if is_classification else outputs
        scores = predictions if is_classification else None
        verdict = make_verdict(constraint, y, predictions, training=predictions, scores=scores)
        if self.multiplier_learning_rate > 0:  # else the constraint was left out
            constraint.warn_excess(
                predictions,
                "Raise `max_epochs` or `multiplier_learning_rate`",
                "The penalty has not grown enough.",
            )
        self._take_verdict(verdict, warns=self.multiplier_learning_rate > 0)
        return self

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.non_deterministic = self.random_state is None
        return tags

    def _set_fitted(self, constraint: FittedConstraint) -> None:
        """Set the fitted attributes; no rows of the kernel are kept."""
        self._take_constraint(constraint)
        self.multipliers_ = self.net_.criterion_.multipliers.cpu().numpy().copy()
        epochs = self.net_.history
        self.history_ = {
            name: np.array(epochs[:, name])
            for name in ("epoch", "loss", "violation", *self._measured, "multipliers", "dur")
        }
        self.history_["seconds"] = self.history_.pop("dur")
        self.n_iter_ = len(epochs)

    # The indicators in `history_`.
    _measured: ClassVar[tuple[str, ...]] = ("predictions_gedi",)

    @answers_as_fitted
    def _outputs(self, X: Any) -> np.ndarray:
        """Return the network's outputs on rows, shape (n,)."""
        return self._forward(self._features(self._new_inner_X(X)))

    def _forward(self, features: np.ndarray) -> np.ndarray:
        return self.net_.forward(features).numpy().astype(np.float64)

    def _features(self, inner: Any) -> np.ndarray:
        """Return the columns of X that the network takes, as float32."""
        # A copy, as torch warns about read-only arrays.
        return check_array(inner, dtype=np.float32, copy=True, estimator=self, input_name="X")

    def _layer_sizes(self) -> tuple[int, ...]:
        """Return the sizes of the hidden layers."""
        sizes = np.atleast_1d(np.array(self.hidden_layer_sizes, dtype=object)).tolist()
        if not all(_is_count(size) for size in sizes):
            raise ValueError(
                "hidden_layer_sizes must hold integers of at least 1, got "
                f"{self.hidden_layer_sizes!r}."
            )
        return tuple(map(int, sizes))

    def _seed(self) -> int:
        """Return a seed for torch; without `random_state`, a new one every time."""
        if self.random_state is None:
            return int(np.random.SeedSequence().generate_state(1)[0])
        return int(check_random_state(self.random_state).randint(np.iinfo(np.int32).max))


def _is_count(size: Any) -> bool:
    """Tell whether a value is an integer of at least 1."""
    return isinstance(size, (int, np.integer)) and size is not True and int(size) >= 1


def _import_network(caller: str) -> ModuleType:
    """Return the module that needs torch."""
    try:
        from . import _network
    except ModuleNotFoundError as error:
        raise ImportError(
            f"{caller} needs torch and skorch ({error.name} is missing): "
            "pip install '.[torch]' in a clone."
        ) from error
    return _network
