"""The data that ship with the package and the loaders that hand them out."""

import hashlib
import subprocess
import sys
from importlib import resources

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from gedi_sklearn.datasets import load_adult, load_communities, make_running_example

LOADERS = [load_adult, load_communities]

SHA256 = {
    "adult": "a1383574caa35d7a7935a1146629853d8864e0acfdd66a20ee971683088e7a38",
    "communities": "8eda358be26f271bd5b19c9e44d7ba7c771b5a8a931e43aac3b3f359e80db45d",
}

ADULT_INTEGERS = [
    "age",
    "fnlwgt",
    "education-num",
    "capital-gain",
    "capital-loss",
    "hours-per-week",
]
ADULT_CATEGORIES = ["workclass", "marital-status", "occupation", "relationship", "sex", "race"]


@pytest.fixture(params=LOADERS, ids=lambda loader: loader.__name__)
def loader(request):
    return request.param


def read_with_pandas(bunch):
    """Read the file by another road than the loaders."""
    with (resources.files(bunch.data_module) / bunch.filename).open("rb") as file:
        return pd.read_csv(file, compression="gzip")


@pytest.mark.parametrize("name", SHA256)
def test_shipped_files_are_unchanged(name):
    data = (resources.files("gedi_sklearn.datasets") / "data" / f"{name}.csv.gz").read_bytes()
    assert hashlib.sha256(data).hexdigest() == SHA256[name]


def test_adult_as_arrays():
    adult = load_adult()
    assert adult.data.shape == (30162, 12)
    assert adult.data.dtype == object
    assert [type(value) for value in adult.data[0]] == [int] * 6 + [str] * 6
    assert adult.target.dtype == np.int64
    assert_array_equal(np.bincount(adult.target), [22654, 7508])
    assert adult.target_names[adult.target[7]] == ">50K"
    assert adult.feature_names == ADULT_INTEGERS + ADULT_CATEGORIES
    assert adult.frame is None


def test_adult_as_frame():
    adult = load_adult(as_frame=True)
    assert adult.frame.shape == (30162, 13)
    assert (adult.data[ADULT_INTEGERS].dtypes == np.int64).all()
    assert (adult.data[ADULT_CATEGORIES].dtypes == "category").all()
    assert adult.data["sex"].cat.categories.tolist() == ["Female", "Male"]
    assert adult.target.name == "income"
    assert adult.target.dtype == np.int64


def test_communities_as_arrays():
    communities = load_communities()
    assert communities.data.shape == (1993, 103)
    assert communities.data.dtype == communities.target.dtype == np.float64
    assert communities.target_names == ["violentPerPop"]
    assert communities.frame is None


def test_communities_as_frame():
    communities = load_communities(as_frame=True)
    assert communities.frame.shape == (1993, 104)
    assert (communities.frame.dtypes == np.float64).all()
    assert communities.target.name == "violentPerPop"


def test_communities_race_says_where_the_black_share_leads():
    X = load_communities(as_frame=True).data
    leads = X["pctBlack"] > X[["pctWhite", "pctAsian", "pctHisp"]].max(axis=1)
    assert_array_equal(X["race"], leads)


def test_values_are_those_of_the_file(loader):
    bunch = loader(as_frame=True)
    table = read_with_pandas(bunch)
    assert bunch.frame.columns.tolist() == table.columns.tolist()
    for name in table:
        assert_array_equal(bunch.frame[name].to_numpy(), table[name].to_numpy())


def test_frames_and_arrays_agree(loader):
    arrays, frames = loader(), loader(as_frame=True)
    assert arrays.keys() == frames.keys()
    assert frames.data.columns.tolist() == arrays.feature_names == frames.feature_names
    assert (frames.data.to_numpy(dtype=arrays.data.dtype) == arrays.data).all()
    assert_array_equal(frames.target.to_numpy(), arrays.target)
    pd.testing.assert_frame_equal(pd.concat([frames.data, frames.target], axis=1), frames.frame)


@pytest.mark.parametrize("as_frame", [False, True])
def test_return_X_y(loader, as_frame):
    bunch = loader(as_frame=as_frame)
    X, y = loader(return_X_y=True, as_frame=as_frame)
    assert type(X) is type(bunch.data)
    assert type(y) is type(bunch.target)
    assert_array_equal(np.asarray(X), np.asarray(bunch.data))
    assert_array_equal(np.asarray(y), np.asarray(bunch.target))


def test_two_calls_share_no_memory(loader):
    X, y = loader(return_X_y=True)
    X[:], y[:] = 0, 0
    again, target = loader(return_X_y=True)
    assert again.any()
    assert target.any()


def test_description_names_source_licence_and_every_variable(loader):
    bunch = loader()
    name = loader.__name__.removeprefix("load_")
    n_samples = f"{len(bunch.target):,}"
    for fact in ("https://doi.org/10.24432/", "CC BY 4.0", SHA256[name], n_samples):
        assert fact in bunch.DESCR
    assert [v for v in read_with_pandas(bunch).columns if f"``{v}``" not in bunch.DESCR] == []


@pytest.mark.parametrize("parameter", ["return_X_y", "as_frame"])
def test_loaders_check_their_flags(loader, parameter):
    with pytest.raises(ValueError, match=f"'{parameter}' parameter of load_.* must be"):
        loader(**{parameter: "yes"})


def test_loaders_take_keywords_only(loader):
    with pytest.raises(TypeError, match="positional argument"):
        loader(True)


def test_arrays_need_no_pandas_and_frames_say_so():
    code = """
import sys
sys.modules["pandas"] = None
from gedi_sklearn.datasets import load_adult, load_communities
for loader in (load_adult, load_communities):
    X, y = loader(return_X_y=True)
    print(*X.shape, *y.shape)
    try:
        loader(as_frame=True)
    except ImportError as error:
        print(error)
"""
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    hint = (
        "needs pandas. Install it with `pip install pandas`, "
        "or leave as_frame=False for numpy arrays."
    )
    assert result.stdout.splitlines() == [
        "30162 12 30162",
        f"load_adult(as_frame=True) {hint}",
        "1993 103 1993",
        f"load_communities(as_frame=True) {hint}",
    ]


def test_running_example_without_noise_is_its_formula():
    X, y = make_running_example(n_samples=200, noise=0, random_state=0)
    x = X[:, 0]
    assert X.shape == (200, 1)
    assert y.shape == (200,)
    assert np.abs(x).max() < np.pi
    assert_allclose(y, 4 * np.sin(x) + x**2, rtol=1e-15)


def test_running_example_has_the_noise_and_the_range_asked_for():
    X, y = make_running_example(n_samples=20_000, noise=2.0, random_state=0)
    x = X[:, 0]
    residuals = y - 4 * np.sin(x) - x**2
    assert_allclose([residuals.mean(), residuals.std()], [0, 2], atol=0.05)
    assert_allclose([x.min(), x.max()], [-np.pi, np.pi], atol=0.01)


def test_running_example_noise_leaves_x_alone():
    quiet, _ = make_running_example(random_state=3, noise=0)
    loud, _ = make_running_example(random_state=3, noise=5)
    assert_array_equal(quiet, loud)


def test_running_example_is_reproducible():
    first, second = (make_running_example(random_state=1) for _ in range(2))
    from_generator = make_running_example(random_state=np.random.RandomState(1))
    other = make_running_example(random_state=2)
    for a, b, c, d in zip(first, second, from_generator, other, strict=True):
        assert_array_equal(a, b)
        assert_array_equal(a, c)
        assert (a != d).any()


@pytest.mark.parametrize(
    ("parameters", "name"),
    [
        ({"n_samples": 0}, "n_samples"),
        ({"n_samples": 2.5}, "n_samples"),
        ({"noise": -1}, "noise"),
        ({"noise": "loud"}, "noise"),
        ({"random_state": "seed"}, "random_state"),
    ],
)
def test_running_example_names_the_wrong_parameter(parameters, name):
    with pytest.raises(ValueError, match=f"'{name}' parameter of make_running_example must be"):
        make_running_example(**parameters)
