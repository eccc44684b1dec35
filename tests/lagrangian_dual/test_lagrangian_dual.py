"""The Lagrangian dual: what its networks and multipliers must do."""

import copy
import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone, is_classifier
from sklearn.compose import TransformedTargetRegressor
from sklearn.model_selection import GridSearchCV, cross_validate
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_param_validation, parametrize_with_checks

from gedi_sklearn import (
    CoarseConstraint,
    ConstraintList,
    FineConstraint,
    LagrangianDualClassifier,
    LagrangianDualRegressor,
)
from gedi_sklearn._geometry._sets import Ball, Box, L1Ball
from gedi_sklearn.exceptions import ConstraintNotMetWarning
from gedi_sklearn.metrics import gedi, hgr, make_disparity_scorer
from tests.estimator_checks import instance, make_data, public_estimators
from tests.test_imports import WITHOUT_OPTIONAL, run_python

ESTIMATORS = public_estimators(torch=True)
for_each = pytest.mark.parametrize("cls", ESTIMATORS)
# Weights and repeated rows round differently, and 32 bits show it above the check's 1e-7; the
# test of weights below has a tolerance for it.
EXPECTED_FAILURES = {
    "check_sample_weight_equivalence_on_dense_data": "rounding in 32 bits exceeds the tolerance"
}
# Most networks here are trained for a moment, and their multipliers have hardly grown.
pytestmark = pytest.mark.filterwarnings(
    "ignore:.*the predictions for the training rows do not meet:"
    "gedi_sklearn.exceptions.ConstraintNotMetWarning"
)


def small(cls, **params):
    """Return an estimator that trains in a moment; the attribute is in the first column."""
    defaults = {"sensitive_columns": 0, "max_epochs": 20, "learning_rate": 0.02, "random_state": 0}
    return cls((8,), **{"constraint": CoarseConstraint()} | defaults | params)


def numeric(estimator, X):
    """Return what is constrained: the probabilities of a classifier."""
    return estimator.predict_proba(X)[:, 1] if is_classifier(estimator) else estimator.predict(X)


def test_without_torch_the_error_names_the_extra():
    names = [cls.__name__ for cls in ESTIMATORS]
    code = f"""
import gedi_sklearn
for name in {names}:
    try:
        getattr(gedi_sklearn, name)().fit([[0.0], [1.0]], [0, 1], sensitive_features=[0, 1])
    except ImportError as error:
        print(error)
"""
    lines = run_python(WITHOUT_OPTIONAL + code).stdout.splitlines()
    assert len(lines) == len(names)
    for name, line in zip(names, lines, strict=True):
        assert line.startswith(f"{name} needs torch and skorch")
        assert "pip install '.[torch]' in a clone" in line


@pytest.mark.torch
@for_each
def test_the_default_dtype_of_torch_changes_nothing(cls):
    import torch

    X, y = make_data(small(cls))
    expected = numeric(fitted := small(cls).fit(X, y), X)
    correlation = hgr(X[:, 1], sensitive_features=X[:, 0], method="nn")
    torch.set_default_dtype(torch.float64)
    try:
        assert_array_equal(numeric(small(cls).fit(X, y), X), expected)
        assert_array_equal(numeric(fitted, X), expected)
        assert hgr(X[:, 1], sensitive_features=X[:, 0], method="nn") == correlation
        assert torch.get_default_dtype() == torch.float64
    finally:
        torch.set_default_dtype(torch.float32)


@pytest.mark.torch
@pytest.mark.filterwarnings("ignore:y has mean .* and standard deviation:UserWarning")
@parametrize_with_checks(
    [instance(cls) for cls in ESTIMATORS], expected_failed_checks=lambda _: EXPECTED_FAILURES
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.mark.torch
@for_each
def test_parameters_are_validated(cls):
    check_param_validation(cls.__name__, instance(cls))


@pytest.mark.torch
@for_each
@pytest.mark.parametrize("degree", [1, 3])
def test_training_minimises_loss_plus_multipliers_times_violations(cls, degree):
    X, y = make_data(cls())
    weight = np.tile([1.0, 2.0, 0.5], len(y) // 3)
    bound = CoarseConstraint(kernel=degree)
    model = small(cls, constraint=bound, multiplier_learning_rate=0.1)
    model.fit(X, y, sample_weight=weight)
    history = model.history_
    # The violation of the coarse constraint is what the indicator, found apart, has above it.
    excess = np.maximum(0, history["predictions_gedi"] - model.threshold_)
    assert_allclose(history["violation"], excess, atol=1e-7)
    assert (excess > 0).any()
    before = np.vstack([[[0.0]], history["multipliers"][:-1]])[:, 0]
    lagrangian = model.net_.history[:, "train_loss"]
    assert_allclose(lagrangian, history["loss"] + before * excess, rtol=1e-5)


@pytest.mark.torch
@for_each
@pytest.mark.parametrize("constraint", [CoarseConstraint, FineConstraint])
def test_multipliers_ascend_where_there_is_a_violation(cls, constraint):
    X, y = make_data(cls())
    options = {"constraint": constraint(0.1, kernel=3)}
    multipliers = small(cls, max_epochs=60, **options).fit(X, y).history_["multipliers"]
    assert multipliers.shape == (60, 1 if constraint is CoarseConstraint else 3)
    assert (np.diff(multipliers, axis=0) >= 0).all()
    assert (multipliers[-1] > 0).all()


@pytest.mark.torch
@for_each
@pytest.mark.parametrize("constraint", [CoarseConstraint, FineConstraint])
def test_the_constraint_is_approached(cls, constraint):
    X, y = make_data(cls(), n=300)
    options = {"constraint": constraint(kernel=2), "max_epochs": 500}
    fair = small(cls, multiplier_learning_rate=0.03, **options).fit(X, y)
    plain = small(cls, multiplier_learning_rate=0, **options).fit(X, y)
    levels = [
        gedi(numeric(model, X), sensitive_features=X[:, 0], kernel=2) for model in (fair, plain)
    ]
    assert levels[0] < 0.35 * fair.reference_
    assert levels[1] > 2 * levels[0]
    assert plain.history_["loss"][-1] < fair.history_["loss"][-1]


@pytest.mark.torch
@for_each
def test_a_penalty_that_has_not_grown_is_said_not_to_meet_the_constraint(cls):
    X, y = make_data(cls(), n=300)
    with pytest.warns(ConstraintNotMetWarning, match=r"Raise `max_epochs` or") as record:
        model = small(cls, max_epochs=60).fit(X, y)
    assert len(record) == 1
    reached = gedi(numeric(model, X), sensitive_features=X[:, 0]) / model.threshold_
    assert f"at {reached:.3g} times the bound" in str(record[0].message)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        small(cls, max_epochs=60, multiplier_learning_rate=0).fit(X, y)  # meant to be left out
        warnings.filterwarnings("ignore", "threshold=2 is 200 % of the indicator of y")
        small(cls, max_epochs=60, constraint=CoarseConstraint(2.0)).fit(X, y)


@pytest.mark.torch
@pytest.mark.parametrize(("mean", "deviation"), [(40, 5), (0, 0.01), (0, 100), (4, 1)])
def test_targets_out_of_reach_are_named_and_how_to_scale_them(mean, deviation):
    X, y = make_data(small(LagrangianDualRegressor))
    y = (y - y.mean()) / y.std()
    model = small(LagrangianDualRegressor, max_epochs=2)
    with pytest.warns(UserWarning, match=r"y has mean .*Standardise y: TransformedTargetRegressor"):
        model.fit(X, mean + deviation * y)
    model.fit(X, 2 + y).fit(X, 0.12 * y + 0.12)  # the paper's targets are in [0, 1]
    scaled = TransformedTargetRegressor(model, transformer=StandardScaler())
    expected = mean + deviation * model.fit(X, y).predict(X)
    found = scaled.fit(X, mean + deviation * y).predict(X)
    assert_allclose(found, expected, atol=1e-3 * deviation)


@pytest.mark.torch
def test_targets_that_do_not_count_are_not_out_of_reach():
    X, y = make_data(small(LagrangianDualRegressor))
    y = (y - y.mean()) / y.std()
    far, weight = np.r_[y, 1e6 * y], np.repeat([1.0, 0.0], len(y))
    model = small(LagrangianDualRegressor, max_epochs=2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.fit(np.r_[X, X], far, sample_weight=weight)
    with pytest.warns(UserWarning, match=r"y has mean .* and standard deviation"):
        model.fit(np.r_[X, X], far[::-1], sample_weight=weight)


@pytest.mark.torch
@for_each
def test_a_list_of_constraints_is_refused(cls):
    """The set of the last one was taken for the coefficients of all, without a word."""
    X, y = make_data(cls())
    pair = [CoarseConstraint(0.3), CoarseConstraint(0.5)]
    for several in (pair, ConstraintList(list(zip("ab", pair, strict=True)))):
        with pytest.raises(ValueError, match="constraint must be a single one"):
            small(cls, constraint=several, sensitive_columns=[0, 1]).fit(X, y)


@pytest.mark.torch
@for_each
def test_a_bound_that_never_binds_changes_nothing(cls):
    X, y = make_data(cls())
    free = small(cls, constraint=CoarseConstraint(np.inf)).fit(X, y)
    plain = small(cls, multiplier_learning_rate=0).fit(X, y)
    assert_array_equal(numeric(free, X), numeric(plain, X))
    assert (free.multipliers_ == 0).all()


@pytest.mark.torch
@for_each
def test_a_constant_attribute_leaves_the_plain_network(cls):
    X, y = make_data(cls())
    plain = small(cls, multiplier_learning_rate=0).fit(X, y)
    with pytest.warns(UserWarning, match="sensitive_features is constant"):
        free = small(cls, sensitive_columns=None).fit(X, y, sensitive_features=np.ones(len(y)))
    assert_array_equal(numeric(free, X), numeric(plain, X))
    assert free.kernel_ is None


@pytest.mark.torch
@for_each
def test_labels_are_monitored_beside_probabilities(cls):
    X, y = make_data(cls())
    model = small(cls).fit(X, y)
    assert ("labels_gedi" in model.history_) == is_classifier(model)
    bounded = "probabilities" if is_classifier(model) else "predictions"
    assert str(model.verdict_).startswith(f"bounded:       {bounded}, by")
    assert {len(values) for values in model.history_.values()} == {model.n_iter_} == {20}


@pytest.mark.torch
@for_each
def test_the_seed_decides_and_no_global_generator_moves(cls):
    import torch

    X, y = make_data(cls())
    before = torch.get_rng_state(), np.random.get_state()[1]  # noqa: NPY002 - what is checked
    fits = [small(cls, batch_size=16, random_state=seed).fit(X, y) for seed in (0, 0, 1, None)]
    assert_array_equal(torch.get_rng_state(), before[0])
    assert_array_equal(np.random.get_state()[1], before[1])  # noqa: NPY002
    outputs = [numeric(model, X) for model in fits]
    assert_array_equal(outputs[0], outputs[1])
    assert len({values.tobytes() for values in outputs}) == 3


@pytest.mark.torch
@for_each
def test_one_batch_of_all_rows_is_the_default(cls):
    X, y = make_data(cls())
    whole, one = (small(cls, batch_size=size).fit(X, y) for size in (None, len(y)))
    assert_array_equal(numeric(whole, X), numeric(one, X))
    batches = small(cls, batch_size=20, max_epochs=200, multiplier_learning_rate=0.01).fit(X, y)
    level = batches.history_["predictions_gedi"]
    assert level[-1] < 0.6 * level.max()


@pytest.mark.torch
@for_each
def test_a_weight_is_a_number_of_rows(cls):
    X, y = make_data(cls())
    weight = np.tile([0, 1, 2], len(y) // 3)
    weighted = small(cls).fit(X, y, sample_weight=weight)
    repeated = small(cls).fit(np.repeat(X, weight, axis=0), np.repeat(y, weight))
    assert_allclose(weighted.threshold_, repeated.threshold_)
    assert_allclose(numeric(weighted, X), numeric(repeated, X), atol=1e-4)


@pytest.mark.torch
@for_each
def test_both_doors_and_dropped_columns(cls):
    X, y = make_data(cls())
    by_column = small(cls).fit(X, y)
    by_value = small(cls, sensitive_columns=None).fit(X, y, sensitive_features=X[:, 0])
    assert_array_equal(numeric(by_column, X), numeric(by_value, X))
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    named = small(cls, sensitive_columns="a", drop_sensitive=True).fit(frame, y)
    assert (named.n_features_in_, *named.feature_names_in_) == (3, "a", "b", "c")
    without = small(cls, sensitive_columns=None).fit(X[:, 1:], y, sensitive_features=X[:, 0])
    assert_array_equal(numeric(named, frame), numeric(without, X[:, 1:]))


@pytest.mark.torch
@for_each
@pytest.mark.filterwarnings("ignore::gedi_sklearn.exceptions.UnseenDependenceWarning")
def test_copies_predict_the_same_and_hold_no_row(cls):
    X, y = make_data(cls())
    model = small(cls).fit(X, y)
    stored = pickle.dumps(model)
    for copied in (pickle.loads(stored), copy.deepcopy(model)):
        assert_array_equal(numeric(copied, X), numeric(model, X))
    many = small(cls).fit(np.tile(X, (50, 1)), np.tile(y, 50))
    assert len(pickle.dumps(many)) < len(stored) + 2000
    assert not hasattr(clone(model), "net_")


@pytest.mark.torch
def test_searches_and_scorers():
    X, y = make_data(LagrangianDualRegressor(), n=150)
    order = np.random.default_rng(0).permutation(len(y))  # the attribute is sorted
    X, y = X[order], y[order]
    search = GridSearchCV(
        small(LagrangianDualRegressor, max_epochs=300, multiplier_learning_rate=0.05),
        {"constraint__threshold": [0.05, np.inf]},
        scoring=make_disparity_scorer(sensitive_columns=0),
        cv=2,
    )
    assert search.fit(X, y).best_params_["constraint__threshold"] == 0.05
    assert len(cross_validate(small(LagrangianDualRegressor), X, y, cv=3)["test_score"]) == 3


@pytest.mark.torch
def test_callbacks_of_skorch(tmp_path):
    from skorch.callbacks import Checkpoint, EarlyStopping

    X, y = make_data(LagrangianDualRegressor())

    def is_fairest(net):
        return net.history[-1, "violation"] == min(net.history[:, "violation"])

    given = [
        Checkpoint(monitor=is_fairest, dirname=str(tmp_path)),
        EarlyStopping(monitor="loss", patience=2, threshold=0.5, sink=str),
    ]
    before = copy.deepcopy(vars(given[1]))
    model = small(LagrangianDualRegressor, callbacks=given).fit(X, y)
    assert model.n_iter_ < 20
    assert {"params.pt", "criterion.pt"} <= {file.name for file in tmp_path.iterdir()}
    assert vars(given[1]) == before


@pytest.mark.torch
def test_callbacks_hear_of_every_batch():
    from skorch.callbacks import Callback

    heard = []

    class Shared(Callback):
        def __deepcopy__(self, memo):
            return self

    class Early(Shared):
        def on_batch_begin(self, net, batch, training, **kwargs):
            heard.append(("begin", len(batch[0]), training))

        def on_grad_computed(self, net, named_parameters, **kwargs):
            heard.append(("grad", all(p.grad is not None for _, p in named_parameters)))

    class Late(Shared):
        def on_batch_end(self, net, loss, y_pred, **kwargs):
            heard.append(("end", float(loss) == net.history[-1, "batches", -1, "train_loss"]))

    X, y = make_data(LagrangianDualRegressor())
    given = {"callbacks": [Early(), ("late", Late())], "batch_size": len(y) // 2}
    small(LagrangianDualRegressor, max_epochs=2, **given).fit(X, y)
    assert heard == 4 * [("begin", len(y) // 2, True), ("grad", True), ("end", True)]


@pytest.mark.torch
@pytest.mark.parametrize("loss", ["squared_error", "log_loss"])
@pytest.mark.parametrize("constraint", ["coarse", "sd", "fine"])
@pytest.mark.parametrize("kind", ["numpy", "torch"])
def test_the_lagrangian_says_its_own_derivative(loss, constraint, kind):
    import torch

    from gedi_sklearn.lagrangian_dual._network import Batch, Lagrangian

    rng = np.random.default_rng(0)
    terms, weight = rng.normal(size=(30, 3)), rng.uniform(0.1, 1.0, size=30)
    allowed = {
        "coarse": L1Ball(3, 1.0, 0.01),
        "sd": Ball(3, 1.0, 0.01),
        "fine": Box(3, 1.0, np.array([0.01, 100.0, 0.0]), np.zeros(3, dtype=bool)),
    }[constraint]
    lagrangian = Lagrangian(loss, allowed)
    lagrangian.multipliers += torch.arange(1.0, len(allowed.limits) + 1)
    targets = rng.integers(0, 2, size=30).astype(float)
    own = np.vstack([targets, weight, weight * terms.T])
    own, targets = own if kind == "numpy" else torch.tensor(own), torch.tensor(targets)
    batch = Batch(torch.arange(30), own)
    outputs = torch.tensor(rng.normal(size=30) + terms @ [3.0, -2.0, 1.0])
    value, slope = lagrangian(outputs, batch)
    # The value is its definition, in torch's own terms, and the slope is that of the value.
    outputs.requires_grad_()
    share = torch.tensor(weight / weight.sum())
    if loss == "log_loss":
        predictions = torch.sigmoid(outputs)
        mean = torch.nn.functional.binary_cross_entropy_with_logits(
            outputs, targets, weight=share, reduction="sum"
        )
    else:
        predictions, mean = outputs, share @ (outputs - targets) ** 2
    v = (share * (predictions - share @ predictions)) @ torch.tensor(terms)
    sizes = {"coarse": v.abs().sum()[None], "sd": v.norm()[None], "fine": v.abs()}[constraint]
    violations = (sizes - torch.tensor(allowed.limits)).clamp(min=0)
    expected = mean + lagrangian.multipliers @ violations
    expected.backward()
    assert_allclose(lagrangian.violations, violations.detach(), rtol=1e-12, atol=1e-15)
    assert_allclose(value, expected.detach(), rtol=1e-12)
    assert_allclose(slope, outputs.grad, rtol=1e-10, atol=1e-14)
    assert any(lagrangian.violations)


@pytest.mark.torch
def test_multipliers_take_the_steps_of_adam():
    from types import SimpleNamespace

    import torch

    from gedi_sklearn.lagrangian_dual._network import Ascent

    violations = np.maximum(np.random.default_rng(0).normal(size=(50, 3)), 0.0)
    own, others = torch.zeros((2, 3), dtype=torch.float64)
    adam = torch.optim.Adam([others], lr=0.01, maximize=True)
    net = SimpleNamespace(criterion_=SimpleNamespace(multipliers=own))
    ascent = Ascent(0.01)
    ascent.on_train_begin(net)
    for gradient in violations:
        net.criterion_.violations, others.grad = gradient.tolist(), torch.tensor(gradient)
        ascent.on_batch_end(net, training=True)
        ascent.on_batch_end(net, training=False)
        adam.step()
        assert_allclose(own, others, rtol=1e-10)


@pytest.mark.torch
@for_each
def test_parameters_of_the_constraint_are_refused_beside_it(cls):
    with pytest.raises(TypeError, match=f"{cls.__name__} takes no 'degree'. Write constraint="):
        small(cls, constraint=CoarseConstraint(0.3, kernel=3), degree=2)


@pytest.mark.torch
def test_faults_are_named():
    X, y = make_data(LagrangianDualRegressor())
    for sizes in ((-1,), (0, 3), 0, (2.5,), [None]):
        with pytest.raises(ValueError, match="hidden_layer_sizes"):
            LagrangianDualRegressor(
                sizes, CoarseConstraint(), sensitive_columns=0, max_epochs=1
            ).fit(X, y)
    for cls, targets in ((LagrangianDualRegressor, y), (LagrangianDualClassifier, y > 0)):
        with pytest.raises(ValueError, match="training diverged: the loss of epoch"):
            small(cls, learning_rate=1e30).fit(X, targets)
    with pytest.raises(TypeError, match="callbacks must hold callbacks of skorch, got 3"):
        small(LagrangianDualRegressor, callbacks=[3]).fit(X, y)
    with pytest.raises(ValueError, match="Only binary classification is supported"):
        small(LagrangianDualClassifier).fit(X, np.arange(len(y)) % 3)
    with pytest.raises(ValueError, match="needs exactly one of sensitive_features"):
        small(LagrangianDualRegressor).fit(X, y, sensitive_features=X[:, 0])


@pytest.mark.torch
@for_each
def test_an_accelerator_trains_the_same_model(cls):
    import torch

    if not torch.cuda.is_available():
        pytest.skip("needs a CUDA device")
    X, y = make_data(cls())
    state = torch.cuda.get_rng_state()
    model = small(cls, device="cuda").fit(X, y)
    assert_array_equal(torch.cuda.get_rng_state(), state)
    assert_allclose(model.threshold_, small(cls).fit(X, y).threshold_)
    assert np.isfinite(numeric(pickle.loads(pickle.dumps(model)), X)).all()
