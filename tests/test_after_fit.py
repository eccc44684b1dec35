"""A fitted estimator answers as it was fitted, whatever its parameters are set to afterwards."""

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.base import is_classifier
from sklearn.linear_model import LinearRegression, LogisticRegression

import gedi_sklearn
from benchmarks._fuzz_calls import ESTIMATORS
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
