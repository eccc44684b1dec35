"""Checks of this library's own, for every public estimator that is fitted under a constraint.

A new estimator is found by its export and checked without a change here.
"""

import copy
import inspect
import pickle
from unittest import mock

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import BaseEstimator, clone, is_classifier
from sklearn.model_selection import cross_validate

import gedi_sklearn
from gedi_sklearn import (
    CoarseConstraint,
    DualTargetsClassifier,
    DualTargetsRegressor,
    FineConstraint,
    Solver,
)
from gedi_sklearn.metrics import gedi


def public_estimators(*, torch=False):
    """Return every exported class that can be fitted: those that need torch, or the others."""
    exported = (getattr(gedi_sklearn, name) for name in sorted(gedi_sklearn.__all__))
    return [
        cls
        for cls in exported
        if inspect.isclass(cls)
        and issubclass(cls, BaseEstimator)
        and hasattr(cls, "fit")
        and cls.__module__.startswith("gedi_sklearn.lagrangian_dual") == torch
    ]


def instance(cls, **params):
    """Return an unfitted estimator; one that needs an attribute finds it in the first column."""
    known = cls().get_params()
    # Three iterations loop as ten do.
    for_checks = {"sensitive_columns": 0, "max_iter": 3, "max_epochs": 3}
    # Of three classes and 30 rows the default constraint searches for a minute.
    for_checks["constraint"] = CoarseConstraint()
    if issubclass(cls, (DualTargetsClassifier, DualTargetsRegressor)):
        # The linear learner of real targets can be as exact as is asked for.
        for_checks |= {"max_iter": 8, "tol": None if is_classifier(cls()) else 1e-10}
    return cls(**{name: value for name, value in for_checks.items() if name in known} | params)


def with_known(estimator, **params):
    """Return a clone with those of the parameters set that it has."""
    known = estimator.get_params(deep=False)
    return clone(estimator).set_params(**{k: v for k, v in params.items() if k in known})


def constrained_estimators():
    """Return the public estimators that are fitted under a constraint."""
    return [cls for cls in public_estimators() if "constraint" in cls().get_params()]


def variants(classes):
    """Return an instance of every class, and one of each of its other backends."""
    others = [
        instance(cls, backend="lightgbm") for cls in classes if "backend" in cls().get_params()
    ]
    return [*map(instance, classes), *others]


def make_data(estimator, n=60, seed=0):
    """Return X with a continuous attribute in its first column, and y that depends on it."""
    rng = np.random.default_rng(seed)
    attribute = np.linspace(-1.5, 1.5, n)
    X = np.c_[attribute, rng.normal(size=(n, 2))]
    y = attribute + X[:, 1] + 0.5 * rng.normal(size=n)
    return X, np.where(y > 0, "yes", "no") if is_classifier(estimator) else y


def numeric(estimator, targets):
    """Return targets as numbers, the second class as 1."""
    return (targets == estimator.classes_[1]) * 1.0 if is_classifier(estimator) else targets


def has_targets(estimator):
    """Whether a fit has targets that satisfy the constraint, rather than predictions alone."""
    return not hasattr(estimator, "backend")


def assert_same_fit(first, second, X):
    if hasattr(first, "targets_") and hasattr(second, "targets_"):  # copies have none
        assert_array_equal(first.targets_, second.targets_)
    assert_array_equal(first.predict(X), second.predict(X))


def attribute_of(estimator, values):
    """Return the keywords with which an estimator that was given values predicts."""
    needed = getattr(estimator, "sensitive_at_predict", False)
    return {"sensitive_features": values} if needed else {}


def is_dual(estimator):
    return isinstance(estimator, (DualTargetsClassifier, DualTargetsRegressor))


def check_constraint_holds_on_targets(estimator):
    if is_classifier(estimator) and (not hasattr(estimator, "max_iter") or is_dual(estimator)):
        return  # thresholds on scores decide few rows too coarsely
    if not has_targets(estimator):
        return
    X, y = make_data(estimator)
    for constraint in (
        CoarseConstraint(0.3),
        CoarseConstraint(0.3, kernel=3),
        FineConstraint(0.3, kernel=2, slack=0.05),
        CoarseConstraint(0.05, relative=False),
    ):
        fitted = clone(estimator).set_params(constraint=constraint).fit(X, y)
        # There the targets are what makes the predictions satisfy the constraint.
        targets = fitted.predict(X) if is_dual(fitted) else numeric(fitted, fitted.targets_)
        degree = constraint.kernel
        if isinstance(constraint, FineConstraint):
            coefficients = gedi_sklearn.metrics.gedi_coefficients(
                targets, sensitive_features=X[:, 0], kernel=degree
            )
            # Whole labels cannot cancel exactly: they keep `slack`, in the standardised basis.
            slack = 0.2 if is_classifier(fitted) else 1e-9
            assert_allclose(coefficients[1:], 0, atol=slack * fitted.threshold_)
        else:
            indicator = gedi(targets, sensitive_features=X[:, 0], kernel=degree)
            assert indicator <= fitted.threshold_ * (1 + 1e-9)


def check_unconstrained_is_the_plain_learner(estimator):
    if not hasattr(estimator, "estimator"):
        return  # it is a learner itself
    X, y = make_data(estimator)
    fitted = clone(estimator).set_params(constraint=CoarseConstraint(np.inf)).fit(X, y)
    plain = clone(fitted.estimator_).fit(X, y)
    if hasattr(fitted, "history_"):
        assert fitted.n_iter_ == 0
        assert_array_equal(fitted.targets_, y)
    assert_array_equal(fitted.predict(X), plain.predict(X))
    for method in ("predict_proba", "decision_function"):
        if hasattr(fitted, method):
            assert_array_equal(getattr(fitted, method)(X), getattr(plain, method)(X))


def check_smaller_threshold_never_smaller_objective(estimator):
    if not hasattr(estimator, "max_iter") or is_dual(estimator):
        return  # no objective of its own; the projection's is tested there
    # The first projection sees the same predictions whatever the threshold is.
    X, y = make_data(estimator)
    objectives, slack = [], 0.0
    for threshold in (0.61, 0.33, 0.17, 0.09):
        history = (
            clone(estimator)
            .set_params(constraint=CoarseConstraint(threshold), solver=Solver(gap=1e-9))
            .fit(X, y)
            .history_
        )
        objectives.append(history["objective"][1])
        slack = max(slack, history["objective"][1] - history["bound"][1])
    assert (np.diff(objectives) >= -slack - 1e-9 * max(objectives)).all()


def check_solvers_agree(estimator):
    if not hasattr(estimator, "solver") or is_dual(estimator):
        return
    X, y = make_data(estimator)
    runs = {
        solver: clone(estimator).set_params(solver=solver).fit(X, y).history_
        for solver in ("gurobi", "highs")
    }
    objectives = [history["objective"][1] for history in runs.values()]
    gaps = sum(history["objective"][1] - history["bound"][1] for history in runs.values())
    assert_allclose(*objectives, atol=gaps + 1e-9, rtol=1e-8)


def check_frames_are_arrays(estimator):
    X, y = make_data(estimator)
    # Rows are matched by position: neither an odd index nor a repeated label matters.
    index = np.r_[np.arange(len(X))[::-1][:-2], 7, 7]
    frame = pd.DataFrame(X, index=index, columns=["a", "b", "c"])
    expected = clone(estimator).fit(X, y)
    by_position = clone(estimator).fit(frame, pd.Series(y, index=index[::-1]))
    by_name = clone(estimator).set_params(sensitive_columns="a").fit(frame, y)
    by_value = clone(estimator).set_params(sensitive_columns=None)
    by_value.fit(frame, y, sensitive_features=frame["a"])
    keywords = attribute_of(estimator, frame["a"])
    for fitted, how in ((by_position, {}), (by_name, {}), (by_value, keywords)):
        assert_array_equal(fitted.feature_names_in_, ["a", "b", "c"])
        # A frame lies in memory by columns, so sums may be taken in another order.
        pairs = [(fitted.predict(frame, **how), expected.predict(X))]
        if has_targets(estimator):
            pairs.append((fitted.targets_, expected.targets_))
        for got, wanted in pairs:
            assert_allclose(numeric(fitted, got), numeric(fitted, wanted), atol=1e-9)


def check_inputs_unchanged(estimator):
    X, y = make_data(estimator)
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    arguments = {"y": y, "sample_weight": np.linspace(1, 2, len(y)), "sensitive_features": X[:, 0]}
    estimator = clone(estimator).set_params(sensitive_columns=None)
    params = copy.deepcopy(estimator.get_params())
    for data in (X, frame):
        given = copy.deepcopy([data, *arguments.values()])
        for array in (X, *arguments.values()):
            array.setflags(write=False)
        estimator.fit(data, **arguments).predict(data, **attribute_of(estimator, X[:, 0]))
        pd.testing.assert_frame_equal(pd.DataFrame(given[0]), pd.DataFrame(data))
        for before, after in zip(given[1:], arguments.values(), strict=True):
            assert_array_equal(before, after)
    assert str(params) == str(estimator.get_params())


def check_copies_predict_the_same(estimator):
    X, y = make_data(estimator)
    for solver in ("gurobi", "highs"):
        fitted = with_known(estimator, solver=solver).fit(X, y)
        for copied in (pickle.loads(pickle.dumps(fitted)), copy.deepcopy(fitted)):
            assert_same_fit(copied, fitted, X)
        assert not hasattr(clone(fitted), "estimator_")
        assert_nothing_large_or_native(fitted, len(y))


def assert_nothing_large_or_native(estimator, n_rows):
    """Follow everything an estimator holds: no solver's object, no matrix with a row a sample."""
    seen, queue = set(), [estimator]
    while queue:
        value = queue.pop()
        if id(value) in seen:
            continue
        seen.add(id(value))
        module = type(value).__module__.partition(".")[0]
        assert module not in ("gurobipy", "highspy"), value
        assert type(value).__name__ not in ("Projection", "Design"), value
        if isinstance(value, np.ndarray):
            assert value.ndim < 2 or n_rows not in value.shape, value.shape
        elif isinstance(value, dict):
            queue.extend(value.values())
        elif isinstance(value, (list, tuple, set)):
            queue.extend(value)
        elif module in ("gedi_sklearn", "sklearn"):
            queue.extend(vars(value).values() if hasattr(value, "__dict__") else [])


def check_global_generator_untouched(estimator):
    X, y = make_data(estimator)
    before = np.random.get_state()  # noqa: NPY002 - the global generator is what is checked
    with_known(estimator, random_state=0).fit(X, y).predict(X)
    with_known(estimator, random_state=None).fit(X, y).predict(X)
    for old, new in zip(before, np.random.get_state(), strict=True):  # noqa: NPY002
        assert_array_equal(old, new)


def check_fit_is_repeatable(estimator):
    X, y = make_data(estimator)
    for seed in (None, 0):
        fits = [with_known(estimator, random_state=seed).fit(X, y) for _ in range(2)]
        assert_same_fit(*fits, X)


def check_workers_agree(estimator):
    X, y = make_data(estimator, n=120)  # enough for trees to split two thirds
    scores = [
        cross_validate(with_known(estimator, random_state=0), X, y, cv=3, n_jobs=n_jobs)
        for n_jobs in (1, 2)
    ]
    assert_array_equal(scores[0]["test_score"], scores[1]["test_score"])


def check_zero_weight_is_absent(estimator):
    X, y = make_data(estimator)
    weight = np.tile([1.0, 2.0, 0.0], len(y) // 3)
    kept = weight > 0
    weighted = clone(estimator).fit(X, y, sample_weight=weight)
    shorter = clone(estimator).fit(X[kept], y[kept], sample_weight=weight[kept])
    # A solver of the inner estimator may stop elsewhere in its tolerance; targets of two classes
    # do not follow it there.
    assert_allclose(weighted.threshold_, shorter.threshold_, rtol=1e-12)
    if not has_targets(estimator):
        assert_array_equal(weighted.predict(X), shorter.predict(X))
        return
    if is_classifier(estimator):
        assert_array_equal(weighted.targets_[kept], shorter.targets_)
    else:
        assert_allclose(weighted.targets_[kept], shorter.targets_, atol=1e-9)
        assert_allclose(weighted.predict(X), shorter.predict(X), atol=1e-9)
    assert_array_equal(weighted.targets_[~kept], y[~kept])


def check_weight_scale_does_not_matter(estimator):
    X, y = make_data(estimator)
    weight = np.tile([1.0, 2.0, 3.0], len(y) // 3)
    # LogisticRegression's penalty does know the scale; its weights stay out of this.
    values = [
        with_known(estimator, max_iter=1).fit(X, y, sample_weight=w).threshold_
        for w in (weight, 10 * weight)
    ]
    assert_allclose(*values, rtol=1e-12)


def check_missing_targets_are_refused(estimator):
    X, y = make_data(estimator, n=20)
    # A list of text would turn nan into the class "nan", and an array would lose the mask.
    for missing in ([np.nan, *y[1:]], [None, *y[1:]], np.ma.masked_array(y, np.arange(20) < 1)):
        with pytest.raises(ValueError, match="y contains NaN: 1 of 20"):
            clone(estimator).fit(X, missing)


def check_rows_that_are_not_those_of_y_are_named(estimator):
    X, y = make_data(estimator, n=20)
    for rows in (X[:-1], "abc", 3.0, np.array(1.0), iter(X), set(range(20)), object()):
        with pytest.raises((ValueError, TypeError), match=r"\bX\b"):
            clone(estimator).fit(rows, y)


def check_a_refit_that_ends_early_leaves_the_model(estimator):
    X, y = make_data(estimator, n=120)
    model = clone(estimator).fit(X, y)
    before, predictions = dict(vars(model)), model.predict(X)
    other = np.where(y == y[0], "a", "b") if is_classifier(estimator) else 3 - y
    for error in (KeyboardInterrupt, ValueError):
        # The verdict is the last that every fit comes to.
        with (
            mock.patch("gedi_sklearn._verdict.Verdict.warn", side_effect=error),
            pytest.raises(error),
        ):
            model.fit(X[:, ::-1], other)
        assert vars(model) == before
        assert_array_equal(model.predict(X), predictions)


def check_a_refit_has_nothing_of_the_old_model(estimator):
    X, y = make_data(estimator)
    model = clone(estimator).fit(pd.DataFrame(X, columns=list("abc")), y)
    model.stale_ = 1
    model.fit(X, y)
    assert vars(model).keys() == vars(clone(estimator).fit(X, y)).keys()


def check_parameters_set_after_the_fit_change_no_prediction(estimator):
    X, y = make_data(estimator)
    model = clone(estimator).fit(X, y)
    before = model.predict(X)
    others = {
        "sensitive_columns": 1,
        "drop_sensitive": True,
        "conditional_on": 2,
        "sensitive_at_predict": False,
        "attribute_estimator": None,
        "target_bounds": (0.0, 0.1),
        "constraint": CoarseConstraint(0.9, on="probabilities"),
        "constraint__kernel": 3,
        "backend": {"xgboost": "lightgbm"}.get(getattr(model, "backend", ""), "xgboost"),
        "estimator": None,
        "cv": 2,
    }
    for name, value in others.items():
        if name in model.get_params():
            assert_array_equal(copy.deepcopy(model).set_params(**{name: value}).predict(X), before)


HOUSE_CHECKS = [
    value
    for name, value in list(globals().items())
    if name.startswith("check_") and inspect.isfunction(value)
]
