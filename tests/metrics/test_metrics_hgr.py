"""HGR: the authors' values, the closed form on kernels, warnings, size of what it holds."""

import json
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.exceptions import UndefinedMetricWarning

from gedi_sklearn.datasets import load_adult, load_communities
from gedi_sklearn.metrics import hgr
from tests.test_imports import WITHOUT_OPTIONAL, run_python

REFERENCE = json.loads(
    (Path(__file__).parents[1] / "data" / "indicator_values.json").read_text(encoding="utf-8")
)


def standardized(column):
    return (column - column.mean()) / column.std(ddof=0)


@pytest.mark.parametrize("task", REFERENCE)
@pytest.mark.filterwarnings("ignore:.*outside the grid")  # tested below
def test_kde_values_of_the_paper_data(task):
    if task.startswith("adult"):
        frame = load_adult(as_frame=True).frame
        y = frame["income"]
        x = standardized(frame["age"]) if task.endswith("age") else frame["sex"] == "Male"
    else:
        frame = load_communities(as_frame=True).frame
        y, x = frame["violentPerPop"], frame[task.removeprefix("crimes/")]
    n = REFERENCE[task]["hgr_n"]
    for method, name in [("kde", "hgr_kde"), ("chi2", "chi2_kde")]:
        value = hgr(y[:n], sensitive_features=x[:n], method=method)
        assert value == pytest.approx(REFERENCE[task][name], abs=1e-6)


def plain_kde(x, y):
    """The density row by row, grid point by grid point: n × bins² numbers."""
    x, y = ((v - v.mean()) / v.std(ddof=1) for v in (x, y))
    h = len(x) ** (-1 / 6)
    grid = np.linspace(-2.5, 2.5, int(min(50, 5 / h)))
    distance = (x[:, None, None] - grid[:, None]) ** 2 + (y[:, None, None] - grid) ** 2
    density = np.exp(-distance / (2 * h**2)).mean(axis=0) / (h * np.sqrt(2 * np.pi)) + 1e-10
    density /= density.sum()
    margins = np.outer(density.sum(axis=1), density.sum(axis=0))
    return np.linalg.svd(density / np.sqrt(margins), compute_uv=False)[1]


def test_kde_separates():
    rng = np.random.default_rng(0)
    x = np.clip(rng.normal(size=300), -2, 2)
    y = np.abs(x) + rng.uniform(size=300)
    assert hgr(y, sensitive_features=x) == pytest.approx(plain_kde(x, y), rel=1e-10)


def test_kde_holds_few_numbers():
    x = np.random.default_rng(0).uniform(size=50_000)
    tracemalloc.start()
    hgr(x**2, sensitive_features=x)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    bins = int(5 * 50_000 ** (1 / 6))
    assert peak < 3 * 8 * x.size * bins


def test_kernel_finds_the_polynomial():
    x = np.random.default_rng(1).uniform(-1, 1, size=400)
    # f is a square, g a cube root that degree 3 reaches from the other side.
    assert hgr(x**2, sensitive_features=x, method="kernel", degree=2) == pytest.approx(1)
    assert hgr(x, sensitive_features=x**3, method="kernel", degree=3) == pytest.approx(1)
    assert hgr(x**2, sensitive_features=x, method="kernel", degree=1) < 0.2


def test_kernel_is_pearson_at_degree_one_and_of_binary_variables():
    rng = np.random.default_rng(2)
    x, y = rng.normal(size=(2, 200))
    pearson = abs(np.corrcoef(x, y)[0, 1])
    assert hgr(y, sensitive_features=x, method="kernel", degree=1) == pytest.approx(pearson)
    a, b = x > 0.3, y + x > 0
    pearson = abs(np.corrcoef(a, b)[0, 1])
    assert hgr(b, sensitive_features=a, method="kernel", degree=5) == pytest.approx(pearson)


def test_kernel_of_several_attributes():
    a, b = np.random.default_rng(3).normal(size=(2, 300))
    both = np.c_[a, b]
    assert hgr(a * b, sensitive_features=both, method="kernel", degree=2) == pytest.approx(1)
    with pytest.raises(ValueError, match="method='kernel'"):
        hgr(a * b, sensitive_features=both)


def test_rows_outside_the_grid_are_reported_with_their_share():
    x = np.r_[np.zeros(485), np.ones(15)]
    with pytest.warns(UserWarning, match=r"3.0% of the rows lie outside the grid"):
        hgr(x, sensitive_features=x)


def test_constants():
    x, y = [0.0, 1.0, 2.0, 1.0], [1.0, 0.0, 1.0, 1.0]
    for method in ("kde", "chi2", "kernel"):
        with pytest.warns(UndefinedMetricWarning, match="constant"):
            assert np.isnan(hgr(y, sensitive_features=[3, 3, 3, 3], method=method))
        assert hgr([5, 5, 5, 5], sensitive_features=x, method=method) == 0
        rounded = np.nextafter(5, [0, 9, 9, 0])  # as predictions whose dependence was removed
        assert hgr(rounded, sensitive_features=x, method=method) == 0
        with pytest.warns(UndefinedMetricWarning, match="relative"):
            assert np.isnan(hgr([5] * 4, y, sensitive_features=x, method=method, relative=True))


def test_relative_and_labels():
    rng = np.random.default_rng(4)
    x = rng.uniform(size=100)
    y, p = x + rng.uniform(size=(2, 100))
    value = hgr(y, p, sensitive_features=x, relative=True)
    assert value == pytest.approx(hgr(p, sensitive_features=x) / hgr(y, sensitive_features=x))
    text = np.where(y > 1, "yes", "no")
    assert hgr(text, sensitive_features=x, pos_label="yes") == hgr(y > 1, sensitive_features=x)


def test_without_torch_the_neural_estimate_names_the_extra():
    result = run_python(
        f"{WITHOUT_OPTIONAL}\nfrom gedi_sklearn.metrics import hgr\n"
        "hgr([0.0, 1.0, 3.0], sensitive_features=[0, 1, 2], method='nn')"
    )
    assert "ImportError: hgr(method='nn') needs torch and maxcorr" in result.stderr
    assert "pip install '.[torch]' in a clone" in result.stderr


@pytest.mark.torch
def test_the_neural_estimate_finds_a_dependence_and_has_a_seed_of_its_own():
    import torch

    rng = np.random.default_rng(0)
    x, noise = rng.uniform(-1, 1, size=(2, 300))
    state = torch.get_rng_state()
    dependent, again = (hgr(x**2, sensitive_features=x, method="nn") for _ in range(2))
    independent = hgr(noise, sensitive_features=x, method="nn", random_state=1)
    assert dependent == again
    assert 0 <= independent < 0.5 < 0.8 < dependent <= 1
    assert_array_equal(torch.get_rng_state(), state)
    two = hgr(x**2, noise, sensitive_features=np.c_[x, noise], method="nn", relative=True)
    assert two > 0.5
