"""The estimators: a network, fitted under the Lagrangian of a constraint."""

from __future__ import annotations

import copy
from numbers import Integral, Real
from types import ModuleType
from typing import Any, ClassVar

import numpy as np
from scipy.special import expit
from sklearn.utils import check_array

from .._constrained_estimator import (
    COLUMN_CONSTRAINTS,
    ClassTargetsMixin,
    ConstrainedEstimator,
    RealTargetsMixin,
    fit_method,
)
from .._predictions import answers_as_fitted
from .._validation import Interval, check_random_state
from .._verdict import make_verdict
from ..constraints import FittedConstraint, check_constraint
from ..exceptions import warn_caller

# Deviations of y, and its mean in units of them, that a network reaches in some hundred steps.
_SMALL, _LARGE, _FAR = 0.05, 3.0, 3.0


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
        name = type(self).__name__
        network = _import_network(name)
        network.check_device(self.device)
        if isinstance(check_constraint(self.constraint, name), list):
            raise ValueError(
                f"constraint must be a single one in {name}, got a list. MovingTargets…, "
                "DualTargets…, Projected… and ConstrainedBoosting… take lists."
            )
        y, weight, attribute = self._check_training_data(X, y, sensitive_features, sample_weight)
        features = self._features(self._inner_X(X))
        counted = slice(None) if weight is None else weight > 0
        y, features = y[counted], features[counted]
        self._warn_of_scale(y)
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

    def _warn_of_scale(self, y: np.ndarray) -> None:
        """Warn where targets are far from those that a network reaches; classes never are."""

    def _features(self, inner: Any) -> np.ndarray:
        """Return the columns of X that the network takes, as float32."""
        # A copy, as torch warns about read-only arrays.
        return check_array(inner, dtype=np.float32, copy=True, estimator=self, input_name="X")

    def _layer_sizes(self) -> tuple[int, ...]:
        """Return the sizes of the hidden layers."""
        sizes = np.atleast_1d(np.array(self.hidden_layer_sizes, dtype=object)).tolist()
        kinds = (int, np.integer)
        if not all(isinstance(own, kinds) and own is not True and own >= 1 for own in sizes):
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


class LagrangianDualRegressor(RealTargetsMixin, BaseLagrangianDual):
    r"""Neural network regression with a penalty on the generalized disparate impact.

    Parameters
    ----------
    hidden_layer_sizes : int or sequence of int, default=(100,)
        Units of the hidden layers, each followed by a ReLU.
    constraint : constraint object, default=None
        What is bounded, and by how much: :class:`DependenceConstraint`, which None stands for,
        :class:`CoarseConstraint` (one multiplier each), :class:`FineConstraint` (one for each
        coefficient) or :class:`DidiConstraint`.
    learning_rate : float, default=1e-3
        Step size of Adam for the weights of the network.
    multiplier_learning_rate : float, default=3e-3
        Step size of Adam for the multipliers. A multiplier grows by about this much in every step
        in which its constraint is violated. 0 trains without the constraint.
    max_epochs : int, default=500
        Number of passes over the rows.
    batch_size : int, default=None
        Number of rows per step. None takes them all, which evaluates the constraint exactly; a
        batch only estimates the coefficients.
    callbacks : list, default=None
        Further skorch callbacks, such as checkpoints; they can monitor the fields of `history_`.
    device : str, default="cpu"
        The device that torch trains on, such as "cuda".
    sensitive_columns : int, str or list of these, default=None
        Column(s) of X that hold the protected attribute, by position or name. Exactly one of
        `sensitive_features` and `sensitive_columns` must be given.
    drop_sensitive : bool, default=False
        Whether to remove `sensitive_columns` from the X of the network. A frame without them
        predicts as well.
    random_state : int, RandomState or None, default=None
        Seed of the initial weights and the order of batches; None draws a new one. The global
        generators of torch and numpy are not advanced.
    verbose : int, default=0
        Above 0, every epoch prints a line.

    Attributes
    ----------
    net_ : skorch.NeuralNet
        The trained network, `net_.module_`, with its criterion and history.
    multipliers_ : ndarray of shape (1,) or (k,)
        The last multipliers; empty if nothing is bounded.
    kernel_ : FittedKernel or None
        The kernel with the moments of the training rows; None for a constant attribute.
    constraint_ : constraint object or None
        The constraint with its absolute threshold.
    threshold_ : float or ndarray of shape (k,)
        The absolute threshold.
    reference_ : float
        The indicator that `threshold` is a fraction of; 1.0 for an absolute threshold.
    history_ : dict of ndarrays of shape (n_epochs, ...)
        One entry per epoch, for the predictions made in its steps: `epoch`; `loss`, without the
        penalty; `violation` of the constraint by the predictions; `predictions_gedi`, their
        indicator; `multipliers` after the epoch; `seconds`.
    n_iter_ : int
        Number of epochs.
    verdict_ : Verdict or None
        Whether the bound is met, what the kernel misses, and whether the
        reference is more than chance; ``print`` it. None without a bound, or below 50 rows.
    n_features_in_ : int
        Number of columns of X, dropped ones included.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the columns of X, if they are all strings.

    See Also
    --------
    LagrangianDualClassifier : The same for two classes.
    MovingTargetsRegressor : Any learner, and targets that satisfy the constraint.

    Notes
    -----
    The weights θ of the network descend and the multipliers λ ascend, in alternating steps, on

    .. math:: \frac1n \sum_i (f_\theta(x_i) - y_i)^2 + \lambda^\top v(\theta),\qquad
              v = \max(0, \|\tilde\alpha\|_1 - q)
              \ \text{or}\ v_j = \max(0, |\tilde\alpha_j| - q_j).

    The coefficients are a linear map of the predictions, which is computed once. Source: Giuliani,
    Misino and Lombardi (2023), section 5 and appendix, "Semantic-based Regularization", after
    Fioretto et al. (2021). The appendix writes an argmin for the multipliers; they are maximised,
    as its text says.

    Examples
    --------
    >>> import numpy as np
    >>> from gedi_sklearn import CoarseConstraint, LagrangianDualRegressor, gedi
    >>> X = np.random.default_rng(0).normal(size=(300, 2))
    >>> y = X[:, 0] + X[:, 1]
    >>> model = LagrangianDualRegressor(
    ...     (8,), CoarseConstraint(0.5), learning_rate=0.02, multiplier_learning_rate=1.0,
    ...     max_epochs=100, sensitive_columns=0, random_state=0,
    ... ).fit(X, y)
    >>> gedi(y, model.predict(X), sensitive_features=X[:, 0], relative=True) < 0.6
    True
    """

    _loss = "squared_error"

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        # Where the targets are a function of the attribute, no good prediction is allowed.
        tags.regressor_tags.poor_score = True
        return tags

    def _warn_of_scale(self, y: np.ndarray) -> None:
        mean, deviation = float(y.mean()), float(y.std())
        is_near = abs(mean) <= _FAR * deviation and _SMALL <= deviation <= _LARGE
        if not is_near and y.any():
            warn_caller(
                f"y has mean {mean:.3g} and standard deviation {deviation:.3g}. The network begins "
                f"near 0 and moves by about learning_rate={self.learning_rate:g} a step, so that "
                "it may end far from y. Standardise y: TransformedTargetRegressor(regressor, "
                "transformer=StandardScaler()) of scikit-learn does so around this estimator and "
                "scales predictions back; name the attribute with sensitive_columns= there."
            )

    def predict(self, X: Any) -> np.ndarray:
        """Predict targets; the attribute is not needed.

        Parameters
        ----------
        X : array-like of shape (n, p)
            With the columns of the X in `fit`.

        Returns
        -------
        y_pred : ndarray of shape (n,)
        """
        return self._outputs(X)


class LagrangianDualClassifier(ClassTargetsMixin, BaseLagrangianDual):
    r"""Neural network classification with a penalty on the generalized disparate impact.

    Two classes of any label type; `classes_[1]` counts as 1. The penalty applies to the
    probabilities, since labels have no gradient. The indicator of the labels is recorded in
    `history_`, and can be several times that of the probabilities.

    Parameters
    ----------
    hidden_layer_sizes : int or sequence of int, default=(100,)
        Units of the hidden layers, each followed by a ReLU.
    constraint : constraint object, default=None
        What is bounded, and by how much: :class:`DependenceConstraint`, which None stands for,
        :class:`CoarseConstraint` (one multiplier each), :class:`FineConstraint` (one for each
        coefficient) or :class:`DidiConstraint`.
        It bounds the probability of the second class, with ``on="probabilities"`` as with
        ``on="predictions"``.
    learning_rate : float, default=1e-3
        Step size of Adam for the weights of the network.
    multiplier_learning_rate : float, default=3e-3
        Step size of Adam for the multipliers. A multiplier grows by about this much in every step
        in which its constraint is violated. 0 trains without the constraint.
    max_epochs : int, default=500
        Number of passes over the rows.
    batch_size : int, default=None
        Number of rows per step. None takes them all, which evaluates the constraint exactly; a
        batch only estimates the coefficients.
    callbacks : list, default=None
        Further skorch callbacks, such as checkpoints; they can monitor the fields of `history_`.
    device : str, default="cpu"
        The device that torch trains on, such as "cuda".
    sensitive_columns : int, str or list of these, default=None
        Column(s) of X that hold the protected attribute, by position or name. Exactly one of
        `sensitive_features` and `sensitive_columns` must be given.
    drop_sensitive : bool, default=False
        Whether to remove `sensitive_columns` from the X of the network. A frame without them
        predicts as well.
    random_state : int, RandomState or None, default=None
        Seed of the initial weights and the order of batches; None draws a new one. The global
        generators of torch and numpy are not advanced.
    verbose : int, default=0
        Above 0, every epoch prints a line.

    Attributes
    ----------
    net_ : skorch.NeuralNet
        The trained network, `net_.module_`, with its criterion and history.
    multipliers_ : ndarray of shape (1,) or (k,)
        The last multipliers; empty if nothing is bounded.
    kernel_ : FittedKernel or None
        The kernel with the moments of the training rows; None for a constant attribute.
    constraint_ : constraint object or None
        The constraint with its absolute threshold.
    threshold_ : float or ndarray of shape (k,)
        The absolute threshold.
    reference_ : float
        The indicator that `threshold` is a fraction of; 1.0 for an absolute threshold.
    history_ : dict of ndarrays of shape (n_epochs, ...)
        One entry per epoch, for the predictions made in its steps: `epoch`; `loss`, without the
        penalty; `violation` of the constraint by the predictions; `predictions_gedi`, their
        indicator, and `labels_gedi`, that of their labels; `multipliers` after the
        epoch; `seconds`.
    n_iter_ : int
        Number of epochs.
    classes_ : ndarray of shape (2,)
        The labels.
    verdict_ : Verdict or None
        Which output is bounded (the probabilities) and whether the bound is met, what labels and
        the top decile keep, what the kernel misses, and whether the reference is more than
        chance; ``print`` it. None without a bound, or below 50 rows.
    n_features_in_ : int
        Number of columns of X, dropped ones included.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the columns of X, if they are all strings.

    See Also
    --------
    LagrangianDualRegressor : The same for real targets, with the formulas.
    MovingTargetsClassifier : Any learner, and labels that satisfy the constraint.

    Notes
    -----
    The loss is the mean log loss. Source: Giuliani, Misino and Lombardi (2023), section 5 and
    appendix, "Semantic-based Regularization", after Fioretto et al. (2021).

    Examples
    --------
    >>> import numpy as np
    >>> from gedi_sklearn import CoarseConstraint, LagrangianDualClassifier, gedi
    >>> X = np.random.default_rng(0).normal(size=(300, 2))
    >>> y = (X[:, 0] + X[:, 1] > 0).astype(int)
    >>> model = LagrangianDualClassifier(
    ...     (8,), CoarseConstraint(0.5), learning_rate=0.02, multiplier_learning_rate=1.0,
    ...     max_epochs=100, sensitive_columns=0, random_state=0,
    ... ).fit(X, y)
    >>> gedi(y, model.predict(X), sensitive_features=X[:, 0], relative=True) < 0.6
    True
    """

    _loss = "log_loss"
    _can_bound: ClassVar[tuple[str, ...]] = ("predictions", "probabilities")
    _binary_only = "MovingTargetsClassifier takes more than two classes."
    _measured: ClassVar[tuple[str, ...]] = ("predictions_gedi", "labels_gedi")

    def _check_targets(self, y: Any, sample_weight: Any) -> np.ndarray:
        return super()._check_targets(y, sample_weight).astype(np.float64)

    def predict(self, X: Any) -> np.ndarray:
        """Predict classes; the attribute is not needed.

        Parameters
        ----------
        X : array-like of shape (n, p)
            With the columns of the X in `fit`.

        Returns
        -------
        y_pred : ndarray of shape (n,)
        """
        scores = self.decision_function(X)
        return self.classes_[(scores > 0).astype(int)]

    def predict_proba(self, X: Any) -> np.ndarray:
        """Predict the probability of each class.

        Parameters
        ----------
        X : array-like of shape (n, p)
            With the columns of the X in `fit`.

        Returns
        -------
        proba : ndarray of shape (n, 2)
            Columns in the order of `classes_`.
        """
        positive = expit(self.decision_function(X))
        return np.column_stack([1 - positive, positive])

    def decision_function(self, X: Any) -> np.ndarray:
        """Return the logit of the probability of `classes_[1]`.

        Parameters
        ----------
        X : array-like of shape (n, p)
            With the columns of the X in `fit`.

        Returns
        -------
        scores : ndarray of shape (n,)
        """
        return self._outputs(X)
