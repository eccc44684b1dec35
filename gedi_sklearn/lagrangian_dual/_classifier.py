"""The Lagrangian dual for two classes."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from scipy.special import expit

from .._target_kinds import ClassTargetsMixin
from ._base import BaseLagrangianDual


class LagrangianDualClassifier(ClassTargetsMixin, BaseLagrangianDual):
    r"""Neural network classification with a penalty on the generalized disparate impact.

    Two classes of any label type; `classes_[1]` counts as 1. The penalty applies to the
    probabilities, since labels have no gradient. The indicator of the labels is recorded in
    `history_`, and can be several times that of the probabilities.

    Parameters
    ----------
    hidden_layer_sizes : int or sequence of int, default=(100,)
        Units of the hidden layers, each followed by a ReLU.
    constraint : constraint object, ConstraintList or list, default=None
        What is bounded, and by how much: :class:`DependenceConstraint`, which None stands for,
        :class:`CoarseConstraint` (one multiplier each), :class:`FineConstraint` (one for each
        coefficient) or :class:`DidiConstraint`. A list holds one constraint for each attribute.
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
    .. code-block:: python

        model = LagrangianDualClassifier((32, 32), sensitive_columns=0, random_state=0).fit(X, y)
        model.history_["labels_gedi"][-1]
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
