"""Boosting on a Dask cluster: the model of one machine, or an error."""

import os
import signal
import threading
import time

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import is_classifier

from gedi_sklearn import (
    CoarseConstraint,
    ConstrainedBoostingClassifier,
    ConstrainedBoostingRegressor,
    DidiConstraint,
)
from tests.boosting.test_boosting import ESTIMATORS, make, quick

dask = pytest.importorskip("dask")
distributed = pytest.importorskip("distributed")
da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")
xgboost = pytest.importorskip("xgboost")
xgboost_dask = pytest.importorskip("xgboost.dask")

# Two workers, each a process; no port is asked for that another cluster may have.
WORKERS = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": ":0"}

pytestmark = [
    pytest.mark.dask,
    pytest.mark.filterwarnings("ignore::gedi_sklearn.exceptions.UnseenDependenceWarning"),
]


@pytest.fixture(scope="module")
def client():
    with distributed.LocalCluster(**WORKERS) as cluster, distributed.Client(cluster) as connected:
        yield connected


def rounded(cls, **options):
    """Return rows whose columns have few values, which every histogram holds one by one."""
    X, y = make(cls, n=1200, **options)
    return np.round(X, 1), y


@pytest.mark.parametrize("cls", ESTIMATORS)
@pytest.mark.parametrize("kind", ["array", "frame"])
def test_a_cluster_grows_the_model_of_one_machine(client, cls, kind):
    X, y = rounded(cls)
    weight = np.tile([1.0, 2.0, 0.0, 0.5], 300)
    column = 0 if kind == "array" else "a"
    model = quick(
        cls, sensitive_columns=column, drop_sensitive=True, constraint=CoarseConstraint(kernel=2)
    )
    frame = pd.DataFrame(X, columns=list("abcd"))
    local = X if kind == "array" else frame
    alone = model.fit(local, y, sample_weight=weight)
    expected, multipliers, history = alone.predict(local), alone.multipliers_, alone.history_
    if kind == "array":
        there = da.from_array(X, chunks=(250, 2))
        own = {"sample_weight": da.from_array(weight, chunks=250)}
    else:
        there, own = dd.from_pandas(frame, npartitions=5), {"sample_weight": weight}
    model.fit(there, da.from_array(y, chunks=400), **own)
    assert_allclose(model.multipliers_, multipliers, rtol=1e-4, atol=1e-6)
    assert_allclose(model.history_["loss"], history["loss"], rtol=1e-4)
    predicted = model.predict(there).compute()
    assert_array_equal(predicted, model.predict(local))
    if is_classifier(model):
        assert np.mean(predicted != expected) < 0.005
        proba = model.predict_proba(there).compute()
        assert_array_equal(proba, model.predict_proba(local))
    else:
        assert_allclose(predicted, expected, atol=1e-3)


def test_a_cluster_grows_positive_rates(client):
    X, y = rounded(ConstrainedBoostingRegressor)
    model = quick(
        ConstrainedBoostingRegressor,
        sensitive_columns=0,
        constraint=CoarseConstraint(kernel=2),
        loss="kl",
    )
    expected = model.fit(X, np.exp(y)).predict(X)
    found = model.fit(da.from_array(X, chunks=(250, 2)), np.exp(y)).predict(X)
    assert_allclose(found, expected, rtol=1e-3)


def test_the_attribute_may_come_beside_the_features(client):
    X, y = rounded(ConstrainedBoostingRegressor)
    team = np.where(X[:, 0] > 0.3, "a", "b")
    model = quick(ConstrainedBoostingRegressor, sensitive_columns=None, constraint=DidiConstraint())
    expected = model.fit(X, y, sensitive_features=team).predict(X)
    there = da.from_array(X, chunks=(300, 4))
    model.fit(there, da.from_array(y, chunks=300), sensitive_features=team)
    assert_allclose(model.predict(X), expected, atol=1e-3)


def test_other_columns_differ_as_those_of_plain_xgboost_do(client):
    """Workers meet quantiles of many values by sketches, so that trees split elsewhere."""
    X, y = make(ConstrainedBoostingRegressor, n=3000)
    there, targets = da.from_array(X, chunks=(750, 4)), da.from_array(y, chunks=750)
    model = quick(ConstrainedBoostingRegressor, sensitive_columns=0)
    own = model.fit(X, y).predict(X) - model.fit(there, targets).predict(X)
    params = {"max_leaves": 31, "max_depth": 0, "grow_policy": "lossguide", "eta": 0.2}
    params |= {"min_child_weight": 20, "lambda": 0, "nthread": 1}
    booster = xgboost.train(params, xgboost.DMatrix(X, y), 80)
    matrix = xgboost_dask.DaskDMatrix(client, there, targets)
    other = xgboost_dask.train(client, params, matrix, num_boost_round=80)["booster"]
    rows = xgboost.DMatrix(X)
    plain = booster.predict(rows) - other.predict(rows)
    assert 0 < np.std(own) < 1.5 * np.std(plain) + 0.01


@pytest.mark.parametrize(
    ("params", "keywords", "message"),
    [
        ({"backend": "lightgbm"}, {}, "backend='lightgbm'"),
        ({"cv": 3}, {}, r"got backend='xgboost' and \['cv'\]"),
        ({}, {"y": np.zeros(7)}, "X has 400 rows, but y has 7"),
        ({"sensitive_columns": None}, {}, "exactly one of"),
        ({"backend_params": {"max_leaves": -1}}, {}, "backend_params={'max_leaves': -1}"),
        ({"backend_params": {"booster": "dart"}}, {}, "backend_params sets booster='dart'"),
    ],
)
def test_errors_name_the_parameter(client, params, keywords, message):
    there = da.from_array(np.random.default_rng(0).normal(size=(400, 3)), chunks=(100, 3))
    model = ConstrainedBoostingRegressor(**{"sensitive_columns": 0} | params)
    with pytest.raises(ValueError, match=message):
        model.fit(there, keywords.get("y", np.arange(400.0)))


def test_a_worker_that_is_killed_leaves_no_model():
    X, y = make(ConstrainedBoostingClassifier, n=4000)
    model = quick(ConstrainedBoostingClassifier, n_estimators=100_000)
    with (
        distributed.LocalCluster(**WORKERS) as cluster,
        distributed.Client(cluster) as client,
    ):
        victim = next(iter(client.run(os.getpid).values()))
        there = da.from_array(X, chunks=(1000, 4))

        def kill_once_both_work():
            while sum("_grow" in str(keys) for keys in client.processing().values()) < 2:
                time.sleep(0.1)
            time.sleep(1.0)
            os.kill(victim, signal.SIGKILL)

        killer = threading.Thread(target=kill_once_both_work)
        killer.start()
        with pytest.raises((RuntimeError, xgboost.core.XGBoostError)):
            model.fit(there, da.from_array(y, chunks=1000))
        killer.join()
    assert not hasattr(model, "booster_")
