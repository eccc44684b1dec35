"""The Lagrangian dual for two classes."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from scipy.special import expit
from sklearn.base import ClassifierMixin

from .._validation import check_classes
from ._base import BaseLagrangianDual


class LagrangianDualClassifier(ClassifierMixin, BaseLagrangianDual):
    r"""Neural network classification with a penalty on the generalized disparate impact.

    Two classes of any label type; `classes_[1]` counts as 1. The penalty is on its probabilities,
    since hard labels have no gradient; the indicator of the labels is monitored in `history_`,
    and can be several times that of the probabilities.

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
        Share of the bound that a forbidden direction may keep; "fine" only.
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
        indicator, and `labels_gedi`, that of their labels; `multipliers` after the
        epoch; `seconds`.
    n_iter_ : int
        Number of epochs.
    classes_ : ndarray of shape (2,)
        The labels.
    n_features_in_ : int
        Number of columns of X, dropped ones included.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the columns of X, where they are all text.

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

    _loss: ClassVar[str] = "log_loss"
    _measured: ClassVar[tuple[str, ...]] = ("predictions_gedi", "labels_gedi")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        # Where the attribute tells the classes apart, the constraint forbids to say which is which.
        tags.classifier_tags.poor_score = True
        return tags

    def _check_targets(self, y: Any, sample_weight: Any) -> np.ndarray:
        self.classes_, codes = check_classes(y, sample_weight)
        if len(self.classes_) > 2:
            raise ValueError(
                f"Only binary classification is supported: y has {len(self.classes_)} classes. "
                "MovingTargetsClassifier takes more than two."
            )
        return codes.astype(np.float64)

    def predict(self, X: Any) -> np.ndarray:
        """Predict classes; the attribute is not asked for.

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
