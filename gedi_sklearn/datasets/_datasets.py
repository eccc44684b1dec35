"""The two data sets of the paper, and its running example."""

import csv
import gzip
from importlib import resources
from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.utils import Bunch, check_random_state

from .._validation import Interval, validate_params

_FLAGS = {"return_X_y": ["boolean"], "as_frame": ["boolean"]}


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
    and degree 3 most of what remains of the sine (Figure 2 of [1]_).

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


_HERE = resources.files("gedi_sklearn.datasets")


@validate_params(_FLAGS, prefer_skip_nested_validation=True)
def load_adult(*, return_X_y: bool = False, as_frame: bool = False) -> Bunch | tuple[Any, Any]:
    """Load the Adult data set (binary classification), as used in the paper.

    Does a person earn more than 50,000 dollars a year? The rows are the complete rows of the
    training split. The paper's protected attributes are ``sex`` and ``age``.

    =================   ====================================
    Classes                                                2
    Samples per class         22654 (<=50K), 7508 (>50K)
    Samples total                                      30162
    Dimensionality                                        12
    Features                6 integers, 6 categories
    =================   ====================================

    Parameters
    ----------
    return_X_y : bool, default=False
        If True, return ``(data, target)`` instead of a Bunch.
    as_frame : bool, default=False
        If True, ``data`` is a pandas DataFrame and ``target`` a pandas Series. Needs pandas.

    Returns
    -------
    data : :class:`~sklearn.utils.Bunch`
        Dictionary-like object, with the following attributes.

        data : {ndarray, DataFrame} of shape (30162, 12)
            The features. As an array it has dtype object, since it holds both ints and strings:
            select the columns by their place in ``feature_names`` and convert them. As a
            DataFrame the numeric columns are int64 and the others have a category dtype, with
            the categories in lexical order.
        target : {ndarray, Series} of shape (30162,)
            ``income`` as int64: 0 for ``<=50K``, 1 for ``>50K``.
        frame : DataFrame of shape (30162, 13) or None
            ``data`` and ``target`` together; None unless ``as_frame=True``.
        feature_names : list of str
            The names of the columns of ``data``.
        target_names : ndarray of shape (2,)
            The names of the classes 0 and 1.
        DESCR : str
            The full description: source, licence, variables.
        filename : str
            The name of the data file.
        data_module : str
            Where to find the file: ``importlib.resources.files(data_module) / filename``.

    (data, target) : tuple if ``return_X_y`` is True
        The attributes ``data`` and ``target`` above.

    Raises
    ------
    ImportError
        If ``as_frame=True`` and pandas is not installed.

    See Also
    --------
    load_communities : A regression data set with a continuous protected attribute.

    Examples
    --------
    >>> from gedi_sklearn.datasets import load_adult
    >>> adult = load_adult()
    >>> adult.data[0, :3].tolist()
    [39, 77516, 13]
    >>> age = adult.data[:, adult.feature_names.index("age")].astype(float)
    >>> is_male = adult.data[:, adult.feature_names.index("sex")] == "Male"
    >>> adult.target_names[adult.target[:1]].tolist()
    ['<=50K']
    """
    return _load(
        "adult",
        target="income",
        target_names=np.array(["<=50K", ">50K"]),
        dtype=np.int64,
        categorical=("workclass", "marital-status", "occupation", "relationship", "sex", "race"),
        return_X_y=return_X_y,
        as_frame=as_frame,
    )


@validate_params(_FLAGS, prefer_skip_nested_validation=True)
def load_communities(
    *, return_X_y: bool = False, as_frame: bool = False
) -> Bunch | tuple[Any, Any]:
    """Load the Communities and Crime data set (regression), as used in the paper.

    Predict the violent crimes per 100,000 inhabitants of 1,993 communities of the United
    States. The paper's protected attributes are ``race`` (1 where the black share leads) and
    ``pctBlack`` (a percentage).

    =================   ==================
    Samples total                     1993
    Dimensionality                     103
    Features                          real
    Targets                real, 0 to 4877
    =================   ==================

    Parameters
    ----------
    return_X_y : bool, default=False
        If True, return ``(data, target)`` instead of a Bunch.
    as_frame : bool, default=False
        If True, ``data`` is a pandas DataFrame and ``target`` a pandas Series. Needs pandas.

    Returns
    -------
    data : :class:`~sklearn.utils.Bunch`
        Dictionary-like object, with the following attributes.

        data : {ndarray, DataFrame} of shape (1993, 103)
            The features, all float64, in their original units.
        target : {ndarray, Series} of shape (1993,)
            ``violentPerPop`` as float64.
        frame : DataFrame of shape (1993, 104) or None
            ``data`` and ``target`` together; None unless ``as_frame=True``.
        feature_names : list of str
            The names of the columns of ``data``.
        target_names : list of str
            The name of the target.
        DESCR : str
            The full description: source, licence, variables.
        filename : str
            The name of the data file.
        data_module : str
            Where to find the file: ``importlib.resources.files(data_module) / filename``.

    (data, target) : tuple if ``return_X_y`` is True
        The attributes ``data`` and ``target`` above.

    Raises
    ------
    ImportError
        If ``as_frame=True`` and pandas is not installed.

    See Also
    --------
    load_adult : A classification data set with a binary and a numeric protected attribute.

    Examples
    --------
    >>> from gedi_sklearn.datasets import load_communities
    >>> communities = load_communities()
    >>> communities.data.shape
    (1993, 103)
    >>> race = communities.data[:, communities.feature_names.index("race")]
    >>> int(race.sum())
    62
    """
    return _load(
        "communities",
        target="violentPerPop",
        target_names=["violentPerPop"],
        dtype=np.float64,
        return_X_y=return_X_y,
        as_frame=as_frame,
    )


def _load(
    name: str,
    *,
    target: str,
    target_names: Any,
    dtype: type,
    categorical: tuple[str, ...] = (),
    return_X_y: bool,
    as_frame: bool,
) -> Bunch | tuple[Any, Any]:
    """Read one file and hand it out in the form asked for."""
    pandas = _import_pandas(f"load_{name}") if as_frame else None
    filename = f"{name}.csv.gz"
    columns: dict[str, np.ndarray] = {
        column: np.array(values, dtype=object if column in categorical else dtype)
        for column, values in _read_columns(filename).items()
    }
    feature_names = [column for column in columns if column != target]

    if pandas is not None:
        frame = pandas.DataFrame(columns).astype(dict.fromkeys(categorical, "category"))
        X, y = frame[feature_names], frame[target]
    else:
        frame = None
        X, y = np.column_stack([columns[column] for column in feature_names]), columns[target]

    if return_X_y:
        return X, y
    return Bunch(
        data=X,
        target=y,
        frame=frame,
        feature_names=feature_names,
        target_names=target_names,
        DESCR=(_HERE / "descr" / f"{name}.rst").read_text(encoding="utf-8"),
        filename=filename,
        data_module="gedi_sklearn.datasets.data",
    )


def _read_columns(filename: str) -> dict[str, tuple[str, ...]]:
    """Read a compressed CSV file without pandas, which is optional."""
    with (
        (_HERE / "data" / filename).open("rb") as binary,
        gzip.open(binary, "rt", encoding="utf-8", newline="") as text,
    ):
        header, *rows = csv.reader(text)
    return dict(zip(header, zip(*rows, strict=True), strict=True))


def _import_pandas(caller: str) -> Any:
    try:
        import pandas
    except ImportError as error:
        raise ImportError(
            f"{caller}(as_frame=True) needs pandas. Install it with `pip install pandas`, "
            "or leave as_frame=False for numpy arrays."
        ) from error
    return pandas
