"""The rule that takes the best candidate within a bound on its disparity."""

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import Ridge
from sklearn.metrics import make_scorer
from sklearn.model_selection import GridSearchCV

from gedi_sklearn import (
    MovingTargetsClassifier,
    MovingTargetsRegressor,
    ProjectedClassifier,
    ProjectedRegressor,
)
from gedi_sklearn.metrics import gedi, make_disparity_scorer
from gedi_sklearn.model_selection import best_under_constraint, tradeoff_curve

RESULTS = {
    "mean_test_r2": np.array([0.9, 0.7, 0.7, 0.2, np.nan]),
    "mean_test_neg_gedi": np.array([-0.5, -0.2, -0.1, -0.01, -0.001]),
}


@pytest.mark.parametrize(("bound", "index"), [(1.0, 0), (0.3, 2), (0.1, 2), (0.05, 3)])
def test_the_best_within_the_bound_is_taken(bound, index):
    assert best_under_constraint(at_most=bound)(RESULTS) == index


def test_where_none_is_within_it_says_so_and_takes_the_fairest():
    with pytest.warns(UserWarning, match=r"no candidate .* at_most=0.001.* at 0.01"):
        assert best_under_constraint(at_most=0.001)(RESULTS) == 3


def test_errors_name_the_parameter():
    with pytest.raises(ValueError, match=r"score='mean_test_f1' is not a key.*mean_test_r2"):
        best_under_constraint(score="mean_test_f1")(RESULTS)
    with pytest.raises(ValueError, match="all are NaN"):
        best_under_constraint()({key: np.full(2, np.nan) for key in RESULTS})
    positive = {**RESULTS, "mean_test_neg_gedi": -RESULTS["mean_test_neg_gedi"]}
    with pytest.raises(ValueError, match="not negated"):
        best_under_constraint()(positive)


@pytest.mark.parametrize("at_most", [-1, np.nan, None])
def test_a_bound_that_is_none_is_refused_before_the_search(at_most):
    with pytest.raises(ValueError, match="'at_most' parameter of best_under_constraint must be"):
        best_under_constraint(at_most=at_most)


def test_an_infinite_bound_takes_the_best_score():
    assert best_under_constraint(at_most=np.inf)(RESULTS) == 0


@pytest.mark.parametrize("cv", ["train", "oob", 3])
@pytest.mark.parametrize(
    "kind",
    [MovingTargetsRegressor, MovingTargetsClassifier, ProjectedRegressor, ProjectedClassifier],
)
def test_no_processes_at_all_are_refused_before_any_fit(kind, cv):
    with pytest.raises(ValueError, match=f"'n_jobs' parameter of {kind.__name__} must be .*Got 0"):
        kind(cv=cv, n_jobs=0).fit(None, None)
    with pytest.raises(ValueError, match="'n_jobs' parameter of tradeoff_curve must be"):
        tradeoff_curve(kind(), np.eye(4), np.arange(4), thresholds=[0.5], n_jobs=0)


def test_in_a_search_that_is_cloned_pickled_and_parallel():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    t = X[:, 0] + X[:, 1]
    search = GridSearchCV(
        Ridge(),
        {"alpha": [1e-3, 10.0, 50.0, 1e3]},
        scoring={"r2": "r2", "neg_gedi": make_disparity_scorer(sensitive_columns=0)},
        refit=best_under_constraint(at_most=0.7),
        cv=3,
        n_jobs=2,
    )
    fitted = pickle.loads(pickle.dumps(clone(search))).fit(X, t)
    results = fitted.cv_results_
    within = results["mean_test_neg_gedi"] >= -0.7
    assert within[fitted.best_index_]
    assert results["mean_test_r2"][fitted.best_index_] == results["mean_test_r2"][within].max()
    assert not within.all()
    assert "at_most=0.7" in repr(fitted.refit)


def test_a_plain_scorer_that_is_not_negated_is_found():
    X = np.random.default_rng(1).normal(size=(40, 1))
    search = GridSearchCV(
        Ridge(),
        {"alpha": [1.0, 2.0]},
        scoring={"r2": "r2", "neg_gedi": make_scorer(gedi, sensitive_features=X[:20, 0])},
        refit=best_under_constraint(),
        cv=2,
    )
    with pytest.raises(ValueError, match="not negated"):
        search.fit(X, X[:, 0])
