"""Synthetic data."""

from numbers import Integral, Real

import numpy as np
from sklearn.utils import check_random_state

from .._validation import Interval, validate_params


@validate_params(
    {
        "n_samples": [Interval(Integral, 1, None, closed="left")],
        "noise": [Interval(Real, 0, None, closed="left")],
        "random_state": ["random_state"],
    },
    prefer_skip_nested_validation=True,
)
def make_running_example(
    n_samples: int = 100,
    *,
    noise: float = 1.0,
    random_state: int | np.random.RandomState | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Generate the paper's running example, a target that depends on x in several orders.

    The attribute is uniform on (-pi, pi) and the target is ::

        y = 4 * sin(x) + x ** 2 + noise * N(0, 1)

    so that a kernel of degree 1 sees the slope of the sine only, degree 2 adds the square,
    and degree 3 most of what is left of the sine (Figure 2 of [1]_).

    Parameters
    ----------
    n_samples : int, default=100
        The number of samples.
    noise : float, default=1.0
        The standard deviation of the Gaussian noise; 1.0 is the paper's.
    random_state : int, RandomState instance or None, default=None
        Determines the sample. Pass an int for the same sample at every call.

    Returns
    -------
    X : ndarray of shape (n_samples, 1)
        The protected attribute x as a matrix of one column.
    y : ndarray of shape (n_samples,)
        The target.

    See Also
    --------
    load_adult : Real data with a binary target.
    load_communities : Real data with a numeric target.

    References
    ----------
    .. [1] L. Giuliani, E. Misino, M. Lombardi, "Generalized Disparate Impact for Configurable
           Fairness Solutions in ML", ICML 2023.

    Examples
    --------
    >>> import numpy as np
    >>> from gedi_sklearn.datasets import make_running_example
    >>> X, y = make_running_example(n_samples=50, noise=0, random_state=0)
    >>> X.shape, y.shape
    ((50, 1), (50,))
    >>> x = X[:, 0]
    >>> bool(np.allclose(y, 4 * np.sin(x) + x**2))
    True
    """
    rng = check_random_state(random_state)
    x = rng.uniform(-np.pi, np.pi, size=n_samples)
    y = 4 * np.sin(x) + x**2 + noise * rng.standard_normal(n_samples)
    return x.reshape(-1, 1), y
