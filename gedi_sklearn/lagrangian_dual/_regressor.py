"""The Lagrangian dual for real targets."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from sklearn.base import RegressorMixin

from .._validation import check_column, check_numbers
from ._base import BaseLagrangianDual


class LagrangianDualRegressor(RegressorMixin, BaseLagrangianDual):
    r"""Neural network regression with a penalty on the generalized disparate impact.

    Parameters
    ----------
    hidden_layer_sizes : int or sequence of int, default=(100,)
        Units of the hidden layers, each followed by a ReLU.
    constraint : {"coarse", "fine", "didi"} or constraint object, default="coarse"
        "coarse" bounds the indicator ‖α̃‖₁, with one multiplier; "fine" bounds its coefficients
        one by one, with a scalar `threshold` the first and none of the others, each with its
        own multiplier; "didi" bounds the disparity of groups. An object carries its own kernel,
        degree, threshold, relative and slack; these parameters then stay at their defaults.
    kernel : {"polynomial", "fourier"}, transformer or callable, default="polynomial"
        The functions of the attribute whose influence is bounded.
    degree : int, default=1
        Degree (order) of a kernel given by name.
    threshold : float or array-like of shape (k,), default=0.2
        The bound, at least 0; inf allows everything. An array ("fine") gives each coefficient
        its own: 0 forbids, inf frees.
    relative : bool or int, default=True
        Whether `threshold` is a share of the indicator of the targets given to :meth:`fit`; an
        integer d takes that indicator at degree d, True at degree 1.
    slack : float, default=1e-3
        Share of the bound that a forbidden direction may keep; of no use here.
    learning_rate : float, default=1e-3
        Step of Adam for the network's weights.
    multiplier_learning_rate : float, default=3e-3
        Step of Adam for the multipliers. A multiplier gains about this much in every step, as
        long as its violation lasts. 0 trains without the constraint.
    max_epochs : int, default=500
        Number of passes over the rows.
    batch_size : int, default=None
        Rows of a step; None takes them all, so that the constraint is seen exactly. A batch
        estimates the coefficients.
    callbacks : list, default=None
        Further callbacks of skorch, such as checkpoints; they can monitor what `history_` holds.
    device : str, default="cpu"
        Where torch trains, e.g. "cuda".
    sensitive_columns : int, str or list of these, default=None
        Column(s) of X that hold the protected attribute, by position or name. None where `fit`
        gets `sensitive_features`; exactly one of the two doors must be used.
    drop_sensitive : bool, default=False
        Whether the network is to work without `sensitive_columns`.
    random_state : int, RandomState or None, default=None
        Seed of the initial weights and the order of batches; None draws a new one. Neither
        torch's nor numpy's global generator is advanced.
    verbose : int, default=0
        Above 0 every epoch prints a line.

    Attributes
    ----------
    net_ : skorch.NeuralNet
        The trained network, `net_.module_`, with its criterion and its history.
    multipliers_ : ndarray of shape (1,) or (k,)
        The last multipliers; empty where nothing is bounded.
    kernel_ : FittedKernel or None
        The kernel with the training rows' moments; None for a constant attribute.
    constraint_ : constraint object or None
        The constraint with its absolute threshold.
    threshold_ : float or ndarray of shape (k,)
        The absolute threshold.
    reference_ : float
        The indicator that `threshold` is a share of; 1.0 where it is absolute.
    history_ : dict of ndarrays of shape (n_iter_, ...)
        One entry an epoch, of the predictions that its steps saw: `epoch`; `loss`, without the
        penalty; `violation`, by how much they miss the constraint; `predictions_gedi`, their
        indicator; `multipliers` after the epoch; `seconds`.
    n_iter_ : int
        Number of epochs.
    n_features_in_ : int
        Number of columns of X, dropped ones included.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the columns of X, where they are all text.

    See Also
    --------
    LagrangianDualClassifier : The same for two classes.
    MovingTargetsRegressor : Any learner, and targets that satisfy the constraint.

    Notes
    -----
    In turns, one step each, the network's weights θ descend and the multipliers λ ascend on

    .. math:: \frac1n \sum_i (f_\theta(x_i) - y_i)^2 + \lambda^\top v(\theta),\qquad
              v = \max(0, \|\tilde\alpha\|_1 - q)
              \ \text{or}\ v_j = \max(0, |\tilde\alpha_j| - q_j).

    The coefficients are a linear map of the predictions, found once. Source: Giuliani, Misino and
    Lombardi (2023), section 5 and appendix, "Semantic-based Regularization", after Fioretto et al.
    (2021). The appendix writes an argmin for the multipliers; they are maximised, as its text says.

    Examples
    --------
    .. code-block:: python

        model = LagrangianDualRegressor((64, 64), sensitive_columns=0, random_state=0).fit(X, y)
        model.history_["predictions_gedi"][-1]
    """

    _loss: ClassVar[str] = "squared_error"

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        # Where the targets are a function of the attribute, the constraint forbids to predict them.
        tags.regressor_tags.poor_score = True
        return tags

    def _check_targets(self, y: Any, sample_weight: Any) -> np.ndarray:
        return check_numbers(check_column(y, "y"), "y", n_columns=1)

    def predict(self, X: Any) -> np.ndarray:
        """Predict targets; the attribute is not asked for.

        Parameters
        ----------
        X : array-like of shape (n, p)
            With the columns of the X in `fit`.

        Returns
        -------
        y_pred : ndarray of shape (n,)
        """
        return self._outputs(X)
