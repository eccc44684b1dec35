"""The Lagrangian dual for real targets."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._target_kinds import RealTargetsMixin
from ..exceptions import warn_caller
from ._base import BaseLagrangianDual

# Deviations of y, and its mean in units of them, that a network reaches in some hundred steps.
_SMALL, _LARGE, _FAR = 0.05, 3.0, 3.0


class LagrangianDualRegressor(RealTargetsMixin, BaseLagrangianDual):
    r"""Neural network regression with a penalty on the generalized disparate impact.

    Parameters
    ----------
    hidden_layer_sizes : int or sequence of int, default=(100,)
        Units of the hidden layers, each followed by a ReLU.
    constraint : constraint object, ConstraintList or list, default=None
        What is bounded, and by how much: :class:`DependenceConstraint`, which None stands for,
        :class:`CoarseConstraint` (one multiplier each), :class:`FineConstraint` (one for each
        coefficient) or :class:`DidiConstraint`. A list holds one constraint for each attribute.
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
    .. code-block:: python

        model = LagrangianDualRegressor((64, 64), sensitive_columns=0, random_state=0).fit(X, y)
        model.history_["predictions_gedi"][-1]
    """

    _loss = "squared_error"

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        # Where the targets are a function of the attribute, no good prediction is allowed.
        tags.regressor_tags.poor_score = True
        return tags

    def _check_targets(self, y: Any, sample_weight: Any) -> np.ndarray:
        y = super()._check_targets(y, sample_weight)
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
        return y

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
