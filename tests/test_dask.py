"""Dask collections, however they are cut, give what the rows in memory give."""

import os
import threading
import time
import warnings

import numpy as np
import pandas as pd
import pytest

pytestmark = pytest.mark.dask
dask = pytest.importorskip("dask")
distributed = pytest.importorskip("distributed")
dd = pytest.importorskip("dask.dataframe")

import dask.array as da  # noqa: E402
from dask import delayed  # noqa: E402
from sklearn.linear_model import LinearRegression, LogisticRegression  # noqa: E402

from gedi_sklearn import (  # noqa: E402
    CoarseConstraint,
    DependenceConstraint,
    DidiConstraint,
    PolynomialKernel,
    ProjectedClassifier,
    ProjectedRegressor,
    metrics,
    project_targets,
)
from gedi_sklearn import dask as gedi_dask  # noqa: E402

RNG = np.random.default_rng(0)
N = 3000
AGE = RNG.gamma(4.0, 1.0, N)
Y = AGE + np.sin(AGE) + RNG.normal(size=N)
P = 0.3 * Y + 0.05 * AGE**2
WEIGHT = RNG.uniform(0, 2, N)
LABEL = np.where(Y > 4, "yes", "no")
GROUP = np.array(list("abcd"))[np.digitize(AGE, [2, 4, 6])]
CHUNKS = [(3000,), (1000, 2000), (7, 993, 2000), (500,) * 6, (0, 1500, 1500, 0)]


@pytest.fixture(autouse=True)
def one_thread():
    with dask.config.set(scheduler="synchronous"):
        yield


def arrays(chunks, *columns):
    return [da.from_array(column, chunks=(chunks,)) for column in columns]


@pytest.mark.parametrize("chunks", CHUNKS, ids=str)
@pytest.mark.parametrize("degree", [1, 5])
def test_gedi_of_any_chunks_is_that_of_the_rows(chunks, degree):
    y, p, x, w = arrays(chunks, Y, P, AGE, WEIGHT)
    kernel = PolynomialKernel(degree, standardize=True)
    given = {"kernel": kernel, "relative": True}
    found = gedi_dask.gedi(y, p, sensitive_features=x, sample_weight=w, **given)
    expected = metrics.gedi(Y, P, sensitive_features=AGE, sample_weight=WEIGHT, **given)
    assert found == pytest.approx(expected, rel=1e-9)
    found = gedi_dask.gedi_inference(y, sensitive_features=x, kernel=kernel)
    expected = metrics.gedi_inference(Y, sensitive_features=AGE, kernel=kernel)
    assert found.null_mean == pytest.approx(expected.null_mean, rel=1e-9)


@pytest.mark.parametrize("chunks", CHUNKS, ids=str)
def test_didi_of_any_chunks_is_that_of_the_rows(chunks):
    y, p, label, group, w = arrays(chunks, Y, P, LABEL, GROUP, WEIGHT)
    given = {"sensitive_features": group, "sample_weight": w}
    rows = {"sensitive_features": GROUP, "sample_weight": WEIGHT}
    assert gedi_dask.didi(label, **given) == pytest.approx(metrics.didi(LABEL, **rows), rel=1e-9)
    found = gedi_dask.didi(y, p, relative=True, **given)
    assert found == pytest.approx(metrics.didi(Y, P, relative=True, **rows), rel=1e-9)
    found = gedi_dask.didi(y, p, task="regression", **given)
    assert found == pytest.approx(metrics.didi(Y, P, task="regression", **rows), rel=1e-9)


def test_frames_of_several_attributes():
    frame = pd.DataFrame({"age": AGE, "group": GROUP, "y": Y})
    lazy = dd.from_pandas(frame, npartitions=5)
    attributes = ["age", "group"]
    found = gedi_dask.gedi(lazy["y"], sensitive_features=lazy[attributes], kernel=2)
    expected = metrics.gedi(frame["y"], sensitive_features=frame[attributes], kernel=2)
    assert found == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("norm", ["l1", "sd"])
@pytest.mark.filterwarnings("ignore::gedi_sklearn.exceptions.UnseenDependenceWarning")
def test_projected_targets(norm):
    y, p, x = arrays((500,) * 6, Y, P, AGE)
    constraint = CoarseConstraint() if norm == "l1" else DependenceConstraint(kernel=1)
    found, correct = gedi_dask.project_targets(y, p, sensitive_features=x, constraint=constraint)
    expected = project_targets(Y, P, sensitive_features=AGE, constraint=constraint)
    np.testing.assert_allclose(found.compute(), expected.targets, rtol=1e-9)
    again = correct(Y[:9], P[:9], sensitive_features=AGE[:9])
    np.testing.assert_allclose(again, expected.targets[:9], rtol=1e-9)


@pytest.mark.filterwarnings("ignore::gedi_sklearn.exceptions.UnseenDependenceWarning")
def test_rows_of_weight_0_keep_their_targets():
    weight = (np.arange(N) % 3 > 0) * 1.0
    group = np.where(weight > 0, GROUP, "only where nothing counts")
    for attribute, kernel in ((AGE, 2), (group, 1)):
        constraint = DependenceConstraint(kernel=kernel)
        rows = arrays((500,) * 6, Y, attribute, weight)
        given = dict(zip(("sensitive_features", "sample_weight"), rows[1:], strict=True))
        found, _ = gedi_dask.project_targets(rows[0], **given, constraint=constraint)
        given = {"sensitive_features": attribute, "sample_weight": weight}
        expected = project_targets(Y, **given, constraint=constraint)
        np.testing.assert_allclose(found.compute(), expected.targets, rtol=1e-9)


@pytest.mark.filterwarnings("ignore::gedi_sklearn.exceptions.UnseenDependenceWarning")
def test_an_estimator_of_a_sample_predicts_all_rows():
    X = np.c_[AGE, RNG.normal(size=N)]
    sample = slice(0, 1000)
    lazy, x = da.from_array(X, chunks=(700, 1)), da.from_array(AGE, chunks=700)
    model = ProjectedRegressor(LinearRegression(), CoarseConstraint(0.3))
    model.fit(X[sample], Y[sample], sensitive_features=AGE[sample])
    found = gedi_dask.predict(model, lazy, sensitive_features=x)
    np.testing.assert_allclose(found.compute(), model.predict(X, sensitive_features=AGE))
    on_all = gedi_dask.gedi(da.from_array(Y, chunks=700), found, sensitive_features=x)
    assert on_all == pytest.approx(metrics.gedi(Y, found.compute(), sensitive_features=AGE))
    frame = pd.DataFrame(X, columns=["age", "z"])
    classifier = ProjectedClassifier(
        LogisticRegression(), CoarseConstraint(0.5), sensitive_columns="age"
    )
    classifier.fit(frame[sample], LABEL[sample])
    lazy = dd.from_pandas(frame, npartitions=3)
    np.testing.assert_array_equal(
        gedi_dask.predict(classifier, lazy).compute(), classifier.predict(frame)
    )
    np.testing.assert_allclose(
        gedi_dask.predict_proba(classifier, lazy).compute(), classifier.predict_proba(frame)
    )


def test_a_rare_level_is_in_the_reference():
    groups = GROUP.copy()
    groups[1001] = "rare"
    y, group = arrays((1000, 2000), Y, groups)
    found = gedi_dask.gedi(y, sensitive_features=group)
    assert found == pytest.approx(metrics.gedi(Y, sensitive_features=groups), rel=1e-9)


def test_what_does_not_fit_is_said():
    y, x = arrays((1000, 2000), Y, AGE)
    with pytest.raises(TypeError, match="y_true must be a Dask array"):
        gedi_dask.gedi(Y, sensitive_features=x)
    with pytest.raises(ValueError, match="sensitive_features has 2999 rows where y_true has 3000"):
        gedi_dask.gedi(y, sensitive_features=x[1:])
    frame = dd.from_pandas(pd.DataFrame({"age": AGE}), npartitions=5)
    with pytest.raises(ValueError, match="unlike partitions"):
        gedi_dask.gedi(y, sensitive_features=frame["age"])
    with pytest.raises(ValueError, match="contains NaN"):
        gedi_dask.gedi(da.where(x > 5, np.nan, y), sensitive_features=x)
    with pytest.raises(ValueError, match="no rows"):
        gedi_dask.gedi(y[:0], sensitive_features=x[:0])


@pytest.mark.parametrize("constraint", [0.3, CoarseConstraint, [CoarseConstraint()]])
def test_what_is_no_constraint_is_named_before_a_row_is_read(constraint):
    never = da.from_delayed(delayed(pytest.fail)("a row was read"), (3000,), float)
    with pytest.raises(TypeError, match="constraint must be a constraint object"):
        gedi_dask.project_targets(never, sensitive_features=never, constraint=constraint)
    with pytest.raises(ValueError, match="constraint bounds the influence of 'groups'"):
        gedi_dask.project_targets(never, sensitive_features=never, constraint=DidiConstraint())


@pytest.fixture(scope="module")
def cluster():
    """Two workers, each a process that is restarted where it dies."""
    options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": None}
    with distributed.LocalCluster(**options) as cluster, distributed.Client(cluster) as client:
        yield client


def slow(block):
    time.sleep(0.3)
    return block


def test_a_cluster_gives_the_value_of_the_rows(cluster):
    with dask.config.set(scheduler=cluster):
        y, x = arrays((300,) * 10, Y, AGE)
        found = gedi_dask.gedi(y, sensitive_features=x, kernel=3)
    assert found == pytest.approx(metrics.gedi(Y, sensitive_features=AGE, kernel=3), rel=1e-9)


def test_a_worker_that_dies_changes_nothing(cluster):
    """Its blocks are computed again, or the error says that a worker was lost."""
    victim = next(iter(cluster.run(os.getpid).values()))
    killer = threading.Timer(1.0, os.kill, (victim, 9))
    with dask.config.set(scheduler=cluster):
        y, x = arrays((300,) * 10, Y, AGE)
        killer.start()
        found = gedi_dask.gedi(y.map_blocks(slow, dtype=float), sensitive_features=x, kernel=3)
    killer.join()
    assert victim not in cluster.run(os.getpid).values()
    assert found == pytest.approx(metrics.gedi(Y, sensitive_features=AGE, kernel=3), rel=1e-9)


def both(call, *columns, n_blocks=4, **options):
    """Return what an indicator of rows, and of the same rows in blocks, comes to."""

    def outcome(function, *own):
        y, x, *weight = own
        given = {"sensitive_features": x, **dict(zip(["sample_weight"], weight, strict=False))}
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                return function(y, **given, **options), [str(one.message) for one in caught]
            except (ValueError, TypeError) as error:
                return type(error), str(error)

    chunks = tuple(map(len, np.array_split(np.arange(len(columns[0])), n_blocks)))
    blocks = outcome(getattr(gedi_dask, call), *arrays(chunks, *columns))
    return outcome(getattr(metrics, call), *columns), blocks


@pytest.mark.parametrize("kernel", ["fourier", "spline", 3])
@pytest.mark.parametrize("is_block", [True, False])
def test_rows_of_weight_0_do_not_set_the_reference(kernel, is_block):
    weight = (np.arange(N) >= N // 2) * 1.0 if is_block else np.arange(N) % 2 * 1.0
    far = np.where(weight == 0, 1e6, AGE)
    (right, _), (found, _) = both("gedi", Y, far, weight, kernel=kernel)
    alone = metrics.gedi(Y[weight > 0], sensitive_features=AGE[weight > 0], kernel=kernel)
    assert right == pytest.approx(alone, rel=1e-9)
    # The knots of a spline are those of a part of the rows.
    assert found == pytest.approx(right, rel=0.2 if kernel == "spline" else 1e-9)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("call", ["gedi", "didi"])
def test_a_constant_attribute_is_undefined(call, weighted):
    x = np.where(np.arange(N) < N // 2, 3.0, 4.0 if weighted else 3.0)
    weight = [(np.arange(N) < N // 2) * 1.0] if weighted else []
    right, found = both(call, Y, x, *weight)
    assert np.isnan([right[0], found[0]]).all()
    assert right[1] == found[1]
    assert "constant" in found[1][0]


@pytest.mark.parametrize("call", ["gedi", "didi"])
def test_weights_that_are_all_0_are_refused(call):
    for right in both(call, Y, GROUP, np.zeros(N)):
        assert right[0] is ValueError
        assert "sample_weight is zero in every row" in right[1]


@pytest.mark.parametrize("call", ["gedi", "didi"])
@pytest.mark.parametrize("row", [0, N // 2, N - 1])
@pytest.mark.parametrize("is_block", [True, False])
def test_missing_targets_in_rows_of_weight_0_are_refused(call, row, is_block):
    weight, y = np.ones(N), Y.copy()
    y[row] = np.nan
    weight[row] = 0.0
    if is_block:
        weight[row // (N // 4) * (N // 4) :][: N // 4] = 0.0
    for right in both(call, y, AGE if call == "gedi" else GROUP, weight):
        assert right[0] is ValueError
        assert "y_true contains NaN" in right[1]


def by_partition(*parts):
    return dd.from_delayed([dask.delayed(part) for part in parts], verify_meta=False)


@pytest.mark.parametrize("columns", ["g", ["g"], ["g", "x"]])
@pytest.mark.parametrize("levels", [[3, 4, 5, 10], ["3", "4", "5", "10"]])
def test_categories_that_differ_between_partitions_are_levels(columns, levels):
    rng = np.random.default_rng(0)
    parts = [
        pd.DataFrame(
            {
                "g": pd.Categorical([levels[i]] * 60 + [levels[3]] * 40),
                "x": rng.normal(size=100),
                "y": rng.normal(size=100) + i,
            }
        )
        for i in range(3)
    ]
    whole = pd.concat(parts, ignore_index=True)
    whole["g"] = pd.Categorical(np.asarray(whole["g"], dtype=object))
    frame = by_partition(*parts)
    for kernel in (1, "spline"):
        found = gedi_dask.gedi(frame["y"], sensitive_features=frame[columns], kernel=kernel)
        right = metrics.gedi(whole["y"], sensitive_features=whole[columns], kernel=kernel)
        tolerance = 0.2 if kernel == "spline" and len(columns) == 2 else 1e-9
        assert found == pytest.approx(right, rel=tolerance)
    assert gedi_dask.didi(frame["y"], sensitive_features=frame["g"]) == pytest.approx(
        metrics.didi(whole["y"], sensitive_features=whole["g"])
    )


def test_numbers_and_text_in_partitions_of_one_column():
    """As in memory: refused, but for the groups of DIDI, which may be of any types."""
    numbers, text = np.arange(8.0) % 3, np.array(list("abab") * 2)
    parts = [pd.DataFrame({"g": own, "y": np.arange(8.0) + 0.5}) for own in (numbers, text)]
    frame, whole = by_partition(*parts), pd.concat(parts, ignore_index=True)
    for call, y, g in (
        (metrics.gedi, whole["y"], whole["g"]),
        (gedi_dask.gedi, frame["y"], frame["g"]),
    ):
        with pytest.raises(ValueError, match=r"sensitive_features.* numbers"):
            call(y, sensitive_features=g)
    found = gedi_dask.didi(frame["y"], sensitive_features=frame["g"])
    assert found == pytest.approx(metrics.didi(whole["y"], sensitive_features=whole["g"]))
    with pytest.raises(ValueError, match="mixes text"):
        metrics.didi(whole["g"], sensitive_features=whole["y"])
    with pytest.raises(ValueError, match="y_true holds numbers in one partition, and text"):
        gedi_dask.didi(frame["g"], sensitive_features=frame["y"], task="classification")


def test_text_of_numbers_is_warned_of_once_as_in_memory():
    code = np.array(["1", "2", "3"])[np.arange(N) % 3]
    (right, expected), (found, warned) = both("gedi", Y, code)
    assert found == pytest.approx(right, rel=1e-9)
    for texts in (expected, warned):
        (text,) = texts
        assert "is text, such as '1', but every value is a number" in text
