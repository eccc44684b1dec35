"""A fitted estimator answers as it was fitted, whatever happens to it afterwards."""

import os
import zlib
from contextlib import suppress

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.base import BaseEstimator, is_classifier
from sklearn.linear_model import LinearRegression, LogisticRegression

import gedi_sklearn
from benchmarks import after_fit
from benchmarks._after_fit_events import EVENTS, Fitted, faults_of
from benchmarks._fuzz_calls import ESTIMATORS, Draw
from benchmarks._fuzz_contract import namespace
from benchmarks._relation_calls import SUBJECTS, draw_trial
from benchmarks._relations import RELATIONS
from gedi_sklearn import CoarseConstraint, DidiConstraint, ProjectedClassifier, ProjectedRegressor

QUICK = {"max_iter": 2, "n_estimators": 5, "max_epochs": 2, "random_state": 0}
# Another value of each parameter; those of a kind of estimator under its name.
OTHERS = {
    "estimator": None,
    "constraint": DidiConstraint(0.0, on="probabilities"),
    "sensitive_columns": "b",
    "drop_sensitive": True,
    "conditional_on": "c",
    "sensitive_at_predict": False,
    "attribute_estimator": LinearRegression(),
    "target_bounds": (0.0, 1e-3),
    "backend": "lightgbm",
    "response_method": "predict_proba",
    "device": "nowhere",
}


def make(name, **params):
    kind = getattr(gedi_sklearn, name)
    learner = LogisticRegression() if name.endswith("Classifier") else LinearRegression()
    known = kind().get_params(deep=False)
    quick = {**QUICK, "estimator": learner, "constraint": CoarseConstraint(0.5), **params}
    return kind(**{key: value for key, value in quick.items() if key in known})


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(300, 3)), columns=list("abc"))
    return X, X.a + X.b + 0.1 * rng.normal(size=300)


def answers(model, X):
    methods = ("predict", "predict_proba", "predict_log_proba", "decision_function")
    return {name: getattr(model, name)(X) for name in methods if hasattr(model, name)}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.torch if "Lagrangian" in name else ())
        for name in ESTIMATORS
    ],
)
def test_parameters_set_after_fit_change_no_answer(name, table):
    X, y = table
    model = make(name, sensitive_columns="a")
    model.fit(X, y > 0 if is_classifier(model) else y)
    expected = answers(model, X)
    score = model.score(X, y > 0 if is_classifier(model) else y)
    for parameter in model.get_params(deep=False):
        model.set_params(**{parameter: OTHERS.get(parameter)})
        for method, values in answers(model, X).items():
            np.testing.assert_array_equal(values, expected[method], err_msg=parameter)
    assert model.score(X, y > 0 if is_classifier(model) else y) == score


def test_the_constraint_of_a_fit_is_a_copy(table):
    X, y = table
    model = make("ProjectedClassifier", sensitive_columns="a").fit(X, y > 0)
    expected = model.predict_proba(X)
    model.set_params(constraint__on="probabilities")
    np.testing.assert_array_equal(model.predict_proba(X), expected)
    assert model.constraint.on == "probabilities"


@pytest.mark.parametrize("routes", [True, False])
def test_the_attribute_is_asked_for_as_it_was_fitted(routes, table):
    X, y = table
    with sklearn.config_context(enable_metadata_routing=routes):
        model = ProjectedRegressor(LinearRegression()).fit(X, y, sensitive_features=X.a)
        expected = model.predict(X, sensitive_features=X.a)
        model.set_params(sensitive_at_predict=False, sensitive_columns="a")
        np.testing.assert_array_equal(model.predict(X, sensitive_features=X.a), expected)
        request = model.get_metadata_routing().consumes("predict", ["sensitive_features"])
        assert request == {"sensitive_features"}


def test_a_refit_takes_the_parameters_that_were_set(table):
    X, y = table
    model = make("ProjectedRegressor", sensitive_columns="a").fit(X, y)
    model.set_params(sensitive_columns="b", constraint__threshold=0.1)
    other = ProjectedRegressor(LinearRegression(), CoarseConstraint(0.1), sensitive_columns="b")
    expected = other.fit(X, y).predict(X)
    np.testing.assert_array_equal(model.fit(X, y).predict(X), expected)


def test_covariates_set_after_fit_are_no_attribute_error(table):
    X, y = table
    model = ProjectedClassifier(LogisticRegression(), sensitive_columns="a").fit(X, y > 0)
    before = model.predict(X)
    np.testing.assert_array_equal(model.set_params(conditional_on="c").predict(X), before)


# --- the fuzz of events


class Faulty(BaseEstimator):
    """A model with one of the faults that events are to show."""

    fault = ""

    def __init__(self, tol=5.0):
        self.tol = tol

    def fit(self, X, y, **rows):
        if self.fault == "counts fits":
            self.n_fits_ = getattr(self, "n_fits_", 0) + 1
        if self.fault == "sets a variable":
            os.environ["AFTER_FIT"] = os.environ.get("AFTER_FIT", "") + "1"
        if self.fault == "mixes models":
            self.mean_ = float(np.mean(y))
        with suppress(BaseException if self.fault == "swallows errors" else ()):
            gedi_sklearn.gedi(y, sensitive_features=np.asarray(X)[:, 0])
        self.mean_ = float(np.asarray(y)[0])
        return self

    def predict(self, X):
        known = zlib.crc32(repr(self.tol).encode()) if self.fault == "reads parameters" else 0
        return np.full(len(X), self.mean_ + known + getattr(self, "n_fits_", 0))


def happens(event, fault):
    trial = draw_trial(0, 1, SUBJECTS["ProjectedRegressor"], RELATIONS["fitted twice"])
    names = trial.names(namespace())
    model = type("Faulty", (Faulty,), {"fault": fault})().fit(names["X"], names["y"])
    draw = Draw(np.random.default_rng(0), "plain", "real")
    return faults_of(EVENTS[event], Fitted(model, names, "result = respond(model, new_X)", draw))


@pytest.mark.parametrize(
    ("event", "fault"),
    [
        pytest.param("parameters set", "reads parameters", marks=pytest.mark.slow),
        pytest.param("another fit", "counts fits", marks=pytest.mark.slow),
        pytest.param("another fit", "sets a variable", marks=pytest.mark.slow),
        pytest.param("an error inside", "mixes models", marks=pytest.mark.slow),
        ("an interrupt", "swallows errors"),
    ],
)
def test_a_planted_fault_is_seen(event, fault, monkeypatch):
    monkeypatch.setenv("AFTER_FIT", "")
    assert happens(event, "") == []
    assert happens(event, fault)


def test_each_event_leaves_the_last_model():
    names = after_fit.estimators()
    projected = [j for j, name in enumerate(names) if name.startswith("Projected")]
    numbers = [len(names) * i + j for i in range(len(EVENTS)) for j in projected]
    outcomes = list(after_fit.run_events(after_fit.SEED, numbers))
    assert [str(one) for one in outcomes if one.faults] == []
    assert {one.event for one in outcomes if one.faults is not None} == EVENTS.keys()


@pytest.mark.slow
def test_more_events_leave_the_last_model():
    outcomes = after_fit.run_events(after_fit.SEED, range(0, 3000, 71))
    assert [str(one) for one in outcomes if one.faults] == []


def test_the_command_prints_a_table_and_ends_in_1_where_something_is_wrong(monkeypatch, capsys):
    number = str(after_fit.estimators().index("MovingTargetsRegressor"))
    assert after_fit.main(["--only", number]) == 0
    assert "| MovingTargetsRegressor | 1 right |" in capsys.readouterr().out
    monkeypatch.setattr(after_fit, "faults_of", lambda *_: ["was wrong"])
    assert after_fit.main(["--only", number]) == 1
    assert "0 right, 1 wrong" in capsys.readouterr().out
