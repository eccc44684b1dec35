"""Groups, categories, covariates and several constraints at once."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import LinearConstraint, minimize
from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import LinearRegression

from gedi_sklearn import (
    CoarseConstraint,
    DependenceConstraint,
    DidiConstraint,
    FineConstraint,
    MovingTargetsClassifier,
    MovingTargetsRegressor,
    PolynomialKernel,
    Solver,
    project_targets,
    projection_path,
)
from gedi_sklearn._geometry._groups import shrink_deviations
from gedi_sklearn.metrics import didi, gedi
from gedi_sklearn.projection import Projection

pd = pytest.importorskip("pandas")

QUADRATIC = PolynomialKernel(2, standardize=True)


@pytest.fixture(scope="module")
def data():
    """Age and team both matter; they overlap, as attributes do."""
    rng = np.random.default_rng(0)
    age = rng.uniform(20, 60, 80)
    team = np.where(age + rng.normal(size=80) * 10 > 40, "old", rng.choice(["a", "b", "c"], 80))
    y = 0.08 * age + (team == "a") + 0.5 * (team == "b") + rng.normal(size=80)
    frame = pd.DataFrame({"age": age, "team": team, "skill": rng.normal(size=80)})
    weight = rng.integers(0, 3, 80) + rng.uniform(0, 1, 80) * (rng.uniform(size=80) > 0.2)
    return frame, y, weight


def labels(y):
    return (y > np.median(y)).astype(int)


# --- the DIDI of groups


@pytest.mark.filterwarnings("ignore:threshold=2 is 200 %")
@pytest.mark.parametrize("threshold", [0.0, 0.1, 0.5, 2.0])
@pytest.mark.parametrize("weighted", [False, True])
def test_what_is_bounded_is_the_didi(data, threshold, weighted):
    frame, y, weight = data
    w = weight if weighted else None
    for target, task in ((y, "regression"), (labels(y), "classification")):
        options = {"sensitive_features": frame["team"], "task": task, "sample_weight": w}
        if task == "classification" and threshold == 0.0:
            continue  # whole rows hardly ever cancel
        result = project_targets(
            target,
            sensitive_features=frame["team"],
            sample_weight=w,
            constraint=DidiConstraint(threshold),
        )
        before, after = didi(target, **options), didi(target, result.targets, **options)
        assert result.satisfied
        assert result.threshold == pytest.approx(threshold * before)
        assert after <= result.threshold + 1e-9
        if task == "regression":
            assert after == pytest.approx(min(before, threshold * before), abs=1e-12)
        if threshold > 1:
            assert_array_equal(result.targets, target)


@given(
    st.integers(2, 7).flatmap(
        lambda g: st.tuples(
            st.lists(st.floats(-3, 3), min_size=g, max_size=g),
            st.lists(st.floats(0.05, 3), min_size=g, max_size=g),
        )
    ),
    st.one_of(st.floats(0.01, 1.5), st.sampled_from([1e-5, 1e-8, 1e-12, 1e-150, 1 - 2**-53, 1.0])),
    st.sampled_from([0.0, 0.5]),
)
@settings(deadline=None, max_examples=100)
def test_shrunk_deviations_are_the_nearest(groups, share_of_size, mean):
    t, share = map(np.asarray, groups)
    share = share / share.sum()
    t = t - share @ t
    size = np.abs(t).sum()
    if size < 1e-3:
        return
    radius = share_of_size * size
    t = t + mean  # which the nearest deviations leave out
    d = shrink_deviations(t, share, radius)
    assert np.abs(d).sum() == pytest.approx(min(radius, size), rel=1e-9)
    assert share @ d == pytest.approx(0, abs=1e-12 * size)
    # The vertices of the set are pairs of groups, one up and one down: the gradient at the
    # nearest point makes no vertex nearer than itself (variational inequality).
    gradient = 2 * share * (d - t)
    for i in range(len(t)):
        for j in range(len(t)):
            if i != j:
                vertex = np.zeros(len(t))
                vertex[i] = radius * share[j] / (share[i] + share[j])
                vertex[j] = -radius * share[i] / (share[i] + share[j])
                assert gradient @ (vertex - d) >= -1e-9 * size**2


def test_a_binary_attribute_has_didi_and_gedi_alike(data):
    frame, y, _ = data
    old = (frame["team"] == "old").astype(float)
    first = project_targets(y, sensitive_features=old, constraint=DidiConstraint())
    second = project_targets(y, sensitive_features=old, constraint=CoarseConstraint())
    assert_allclose(first.targets, second.targets, atol=1e-12)


def test_groups_are_rows_that_agree_in_all_attributes(data):
    frame, y, _ = data
    both = frame[["team"]].assign(young=frame["age"] < 30)
    joined = both["team"] + both["young"].astype(str)
    assert_allclose(
        project_targets(y, sensitive_features=both, constraint=DidiConstraint()).targets,
        project_targets(y, sensitive_features=joined, constraint=DidiConstraint()).targets,
        atol=1e-12,
    )


def test_groups_are_told_apart_by_value_and_not_by_label(data):
    _, y, _ = data
    rows = np.arange(len(y)) % 2
    # Both rows would be joined to "a & b & c".
    pair = np.where(rows[:, None], ["a & b", "c"], ["a", "b & c"])
    first = project_targets(y, sensitive_features=pair, constraint=DidiConstraint())
    second = project_targets(y, sensitive_features=rows, constraint=DidiConstraint())
    assert_allclose(first.targets, second.targets, atol=1e-12)
    negative_zero = np.where(np.arange(len(y)) % 4 == 0, -0.0, rows * 1.0)
    third = project_targets(y, sensitive_features=negative_zero, constraint=DidiConstraint())
    assert_allclose(third.targets, second.targets, atol=1e-12)


def test_multipliers_and_correction_of_the_didi(data):
    frame, y, _ = data
    with Projection(y, sensitive_features=frame["team"], constraint=DidiConstraint()) as projection:
        result = projection.solve()
    moved = projection.kernel_.transform(frame[["team"]]) @ result.correction
    assert_allclose(result.targets, y + moved, atol=1e-12)


# --- categories and covariates


@pytest.mark.filterwarnings("ignore::gedi_sklearn.exceptions.AttributeScaleWarning")
def test_a_mixed_attribute_has_one_joint_kernel(data):
    frame, y, weight = data
    mixed = frame[["age", "team"]]
    for target in (y, labels(y)):
        result = project_targets(
            target, sensitive_features=mixed, sample_weight=weight, constraint=CoarseConstraint()
        )
        value = gedi(result.targets, sensitive_features=mixed, sample_weight=weight)
        assert result.satisfied
        assert value <= result.threshold * (1 + 1e-9)


@pytest.mark.parametrize("constraint", [CoarseConstraint, FineConstraint])
def test_the_constraint_is_conditional_on_covariates(data, constraint):
    frame, y, weight = data
    options = {"sensitive_features": frame["age"], "conditional_on": frame[["skill", "team"]]}
    for target in (y, labels(y)):
        result = project_targets(
            target, sample_weight=weight, **options, constraint=constraint(kernel=QUADRATIC)
        )
        value = gedi(result.targets, kernel=QUADRATIC, sample_weight=weight, **options)
        before = gedi(
            target, kernel=PolynomialKernel(1, standardize=True), sample_weight=weight, **options
        )
        assert result.satisfied
        assert result.threshold == pytest.approx(0.2 * before)
        slack = 1e-3 * result.threshold if target is not y and constraint is FineConstraint else 0.0
        assert value <= result.threshold + 2 * slack + 1e-9


def test_conditional_targets_are_the_nearest(data):
    frame, y, _ = data
    age, skill = frame["age"].to_numpy(), frame["skill"].to_numpy()
    result = project_targets(
        y, sensitive_features=age, conditional_on=skill, constraint=CoarseConstraint()
    )
    # The coefficient of age beside skill is linear in the targets: a half-space projection.
    system = np.column_stack([np.ones(80), skill, age])
    row = np.linalg.pinv(system)[2]
    excess = row @ y - np.sign(row @ y) * result.threshold
    assert_allclose(result.targets, y - row * excess / (row @ row), atol=1e-10)


# --- several constraints


@pytest.mark.parametrize("weighted", [False, True])
def test_several_constraints_hold_at_once(data, weighted):
    frame, y, weight = data
    w = weight if weighted else None
    constraints = [CoarseConstraint(kernel=QUADRATIC), DidiConstraint(0.3)]
    for target, task in ((y, "regression"), (labels(y), "classification")):
        result = project_targets(
            target,
            sensitive_features=frame[["age", "team"]],
            constraint=constraints,
            sample_weight=w,
        )
        assert result.satisfied
        assert len(result.threshold) == 2
        age = gedi(
            result.targets, sensitive_features=frame["age"], kernel=QUADRATIC, sample_weight=w
        )
        team = didi(
            target, result.targets, sensitive_features=frame["team"], task=task, sample_weight=w
        )
        assert age <= result.threshold[0] + 1e-9
        assert team <= result.threshold[1] + 1e-9


def test_one_constraint_in_a_list_is_the_constraint(data):
    frame, y, weight = data
    for constraint in (CoarseConstraint(kernel=QUADRATIC), FineConstraint(kernel=QUADRATIC)):
        for target in (y, labels(y)):
            options = {"sensitive_features": frame["age"], "sample_weight": weight}
            alone = project_targets(target, constraint=constraint, **options)
            listed = project_targets(target, constraint=[constraint], **options)
            assert_allclose(listed.targets, alone.targets, atol=1e-9)
            assert_allclose(listed.multipliers, alone.multipliers, rtol=1e-6, atol=1e-9)
            assert listed.objective == pytest.approx(alone.objective, rel=1e-9)


def test_several_targets_are_the_nearest(data):
    frame, y, _ = data
    age, skill = frame["age"].to_numpy(), frame["skill"].to_numpy()
    result = project_targets(
        y, sensitive_features=frame[["age", "skill"]], constraint=[CoarseConstraint()] * 2
    )
    rows = np.vstack([(c - c.mean()) / ((c - c.mean()) ** 2).sum() for c in (age, skill)])
    limits = np.asarray(result.threshold)
    oracle = minimize(
        lambda z: ((z - y) ** 2).sum(),
        y,
        jac=lambda z: 2 * (z - y),
        constraints=[LinearConstraint(rows, -limits, limits)],
        method="SLSQP",
        options={"ftol": 1e-14, "maxiter": 500},
    )
    assert result.objective == pytest.approx(oracle.fun, rel=1e-6)
    assert_allclose(result.targets, oracle.x, atol=1e-4)


def test_a_smaller_threshold_never_costs_less(data):
    frame, y, _ = data
    for target in (y, labels(y)):
        costs = [
            project_targets(
                target,
                sensitive_features=frame[["age", "team"]],
                constraint=[CoarseConstraint(q), DidiConstraint(q)],
                solver=Solver(gap=5e-5),
            ).objective
            for q in (0.2, 0.5, 1.0)
        ]
        assert (np.diff(costs) <= 1e-9).all()
        assert costs[-1] == pytest.approx(0.0, abs=1e-12)


# --- in the estimators


# A line in the score of a team follows its groups only in part.
@pytest.mark.filterwarnings("ignore:.*the predictions for the training rows do not meet")
def test_estimators_take_groups_lists_and_covariates(data):
    frame, y, _ = data
    X = frame.assign(team=frame["team"].map({"a": 0.0, "b": 1.0, "c": 2.0, "old": 3.0}))
    forms = (
        {"sensitive_columns": "team", "constraint": DidiConstraint()},
        {
            "constraint": [CoarseConstraint(kernel=QUADRATIC), DidiConstraint()],
            "sensitive_columns": ["age", "team"],
        },
        {"conditional_on": "skill", "sensitive_columns": "age", "constraint": CoarseConstraint()},
        {
            "conditional_on": lambda X: X["skill"] ** 2,
            "sensitive_columns": "age",
            "constraint": CoarseConstraint(),
        },
    )
    for form in forms:
        for model, target in (
            (
                MovingTargetsRegressor(
                    RandomForestRegressor(10, random_state=0), CoarseConstraint()
                ),
                y,
            ),
            (MovingTargetsClassifier(), np.where(labels(y), "high", "low")),
        ):
            held_out = {"X_val": X[:40], "y_val": target[:40]}
            model.set_params(max_iter=2, **form).fit(X, target, **held_out)
            assert model.n_iter_ == 2
            assert (model.history_["violation"][1:] == 0).all()
            assert np.isfinite(model.history_["validation_gedi"]).all()
            assert "‖" in repr_text(model) or "DIDI" in repr_text(model)


def repr_text(model):
    return model._repr_mimebundle_()["text/plain"]


def test_text_attributes_reach_the_master(data):
    frame, y, _ = data
    model = MovingTargetsRegressor(LinearRegression(), DidiConstraint(), max_iter=2)
    model.fit(frame[["skill"]], y, sensitive_features=frame["team"])
    targets = didi(model.targets_, sensitive_features=frame["team"], task="regression")
    assert targets <= model.threshold_ + 1e-9
    assert model.kernel_.names == ["b", "c", "old"]
    with pytest.raises(ValueError, match="groups not seen before"):
        model.kernel_.transform([["new"]])


# --- errors


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"constraint": [CoarseConstraint()]}, "list of 1, but sensitive_features has 2"),
        ({"constraint": [CoarseConstraint(), "gini"]}, "must be a constraint object, got 'gini'"),
        ({"constraint": DependenceConstraint(relative=2)}, "relative"),
        ({"constraint": DidiConstraint(relative=2)}, "relative"),
        ({"conditional_on": [1.0, 2.0]}, "conditional_on has 2 rows"),
    ],
)
def test_errors_name_the_parameter(data, options, message):
    frame, y, _ = data
    # Tens, which can be groups.
    attributes = frame[["age", "skill"]].round(
        -1 if isinstance(options.get("constraint"), DidiConstraint) else 9
    )
    with pytest.raises(ValueError, match=message):
        project_targets(y, sensitive_features=attributes, **options)


def test_a_list_has_no_path(data):
    frame, y, _ = data
    attributes = frame[["age", "skill"]]
    with pytest.raises(ValueError, match="constraint must be"):
        projection_path(y, sensitive_features=attributes, constraint=[CoarseConstraint()] * 2)
    listed = Projection(y, sensitive_features=attributes, constraint=[CoarseConstraint()] * 2)
    with listed, pytest.raises(ValueError, match="no single threshold"):
        listed.at(0.1)
