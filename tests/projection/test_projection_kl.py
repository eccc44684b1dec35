"""Projection in the Kullback-Leibler divergence: targets are multiplied by exp(ν + Qλ)."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.optimize import minimize
from scipy.special import kl_div

from gedi_sklearn import (
    CoarseConstraint,
    DependenceConstraint,
    DidiConstraint,
    FineConstraint,
    PolynomialKernel,
    Solver,
    project_targets,
)
from gedi_sklearn.exceptions import InfeasibleProjectionError
from gedi_sklearn.metrics import gedi
from gedi_sklearn.projection import Projection

CUBIC = PolynomialKernel(3, standardize=True)
SETS = {
    "l1": lambda share: CoarseConstraint(share, kernel=CUBIC),
    "box": lambda share: FineConstraint(share, kernel=CUBIC),
    "sd": lambda share: DependenceConstraint(share, kernel=CUBIC),
    "groups": DidiConstraint,
    "several": lambda share: [DependenceConstraint(share, kernel=2), CoarseConstraint(share)],
    "beside covariates": lambda share: DependenceConstraint(share, kernel=2),
}
every_set = pytest.mark.parametrize("name", SETS)


def problem(name, seed, n=24, share=None):
    """Return targets and the keywords of a projection of them."""
    rng = np.random.default_rng(seed)
    x, other = rng.normal(size=(2, n))
    attribute = np.array(["a", "b", "c"])[np.arange(n) % 3] if name == "groups" else x
    shift = 0.5 * (attribute == "a") if name == "groups" else 0.5 * x
    t = np.exp(shift + 0.4 * rng.normal(size=n))
    share = rng.choice([0.5, 0.2, 0.0]) if share is None else share
    keywords = {
        "sensitive_features": np.c_[x, other] if name == "several" else attribute,
        "constraint": SETS[name](share),
        "sample_weight": rng.uniform(0.5, 2, n),
        "loss": "kl",
    }
    if name == "beside covariates":
        keywords["conditional_on"] = other
    return t, keywords


def solved(t, keywords, y_pred=None, target_weight=1.0):
    with Projection(t, **keywords) as projection:
        return projection.solve(y_pred, target_weight), projection.fitted_constraint_


def nearest_by_general_solver(t, constraint, start):
    """Return the nearest targets by SLSQP: one variable a row, every norm as what it is."""
    share = constraint.weight / constraint.weight.sum()
    conditions = [{"type": "eq", "fun": lambda z: share @ (z - t), "jac": lambda _: share}]
    for part in constraint.parts:
        block, limits = part.block, part.allowed.limits
        effects = block.operator @ (block.design.orthonormal * share[:, None]).T
        norm = part.allowed.norm
        if limits.max() == 0 and norm != "each":
            # The smooth form of a ball of radius 0 has no derivative; independent rows suffice.
            basis = np.linalg.svd(effects, full_matrices=False)
            rows = basis[2][basis[1] > 1e-9 * basis[1][0]]
            conditions.append({"type": "eq", "fun": rows.__matmul__, "jac": lambda _, a=rows: a})
        elif norm == "sd":
            conditions.append(
                {
                    "type": "ineq",
                    "fun": lambda z, a=effects, q=limits[0]: q**2 - (a @ z) @ (a @ z),
                    "jac": lambda z, a=effects: -2 * (a @ z) @ a,
                }
            )
        else:
            signs = np.array(list(product((-1, 1), repeat=len(effects))))
            if norm == "each":
                used = np.isfinite(limits)
                signs = np.vstack([np.eye(len(effects))[used], -np.eye(len(effects))[used]])
                limits = np.r_[limits[used], limits[used]]
            conditions.append(
                {
                    "type": "ineq",
                    "fun": lambda z, a=signs @ effects, q=limits: q - a @ z,
                    "jac": lambda _, a=signs @ effects: -a,
                }
            )
    found = minimize(
        lambda z: share @ kl_div(z, t),
        start,
        jac=lambda z: share * np.log(z / t),
        constraints=conditions,
        bounds=[(1e-9, None)] * len(t),
        method="SLSQP",
        options={"ftol": 1e-16, "maxiter": 500},
    )
    return found.x, float(found.fun)


@pytest.mark.slow
@every_set
def test_a_general_solver_finds_the_same_targets(name):
    for seed in range(100):
        t, keywords = problem(name, seed)
        result, constraint = solved(t, keywords)
        start = np.full(len(t), np.average(t, weights=constraint.weight))
        z, loss = nearest_by_general_solver(t, constraint, start)
        assert result.satisfied
        assert result.objective / constraint.weight.sum() <= loss + 1e-9
        assert_allclose(result.targets, z, rtol=0, atol=1e-6 * t.mean(), err_msg=str(seed))


@every_set
@given(seed=st.integers(0, 10**6), unit=st.sampled_from([1.0, 1e-6, 1e6]))
@settings(max_examples=15, deadline=None)
def test_targets_satisfy_the_conditions_of_optimality(name, seed, unit):
    t, keywords = problem(name, seed, n=60)
    t *= unit
    result, constraint = solved(t, keywords)
    w = keywords["sample_weight"]
    # Feasible, and of the mean of t.
    assert result.satisfied
    assert_allclose(np.average(result.targets, weights=w), np.average(t, weights=w), rtol=1e-13)
    # Stationary: a relativity in the attribute, of the multipliers of the constraint.
    move = constraint.orthonormal @ result.orthonormal_correction
    assert_allclose(result.targets, t * np.exp(result.intercept + move), rtol=1e-12)
    raw = constraint.raw_multipliers(w.sum() * result.orthonormal_correction)
    assert_allclose(result.multipliers, raw)
    # Complementary: the multipliers point out of the sets at the targets.
    assert abs(result.gap) <= 1e-10
    assert_allclose(result.objective, w @ kl_div(result.targets, t), rtol=1e-8, atol=1e-20 * unit)


@pytest.mark.parametrize("unit", [1e-9, 1e8])
def test_several_bounds_multiply_by_the_same_relativities_in_every_unit(unit):
    for seed in range(5):
        t, keywords = problem("several", seed, n=60, share=0.3)
        (base, _), (scaled, _) = solved(t, keywords), solved(t * unit, keywords)
        assert_allclose(scaled.targets, unit * base.targets, rtol=1e-9, err_msg=str(seed))


def test_what_is_allowed_is_not_moved():
    t, keywords = problem("sd", 0, share=1.0)
    result, _ = solved(t, keywords)
    assert_allclose(result.targets, t, rtol=1e-15)
    assert result.objective == result.gap == 0.0


def test_the_poisson_deviance_has_another_optimum():
    t, keywords = problem("sd", 1, n=40, share=0.2)
    result, constraint = solved(t, keywords)
    share = constraint.weight / constraint.weight.sum()

    def gradient(z):  # of the deviance 2(t log(t/z) − t + z), whose optimum is t / (ν + Qλ)
        return share * (1 - t / z)

    columns = np.c_[np.ones(len(t)), constraint.orthonormal] * share[:, None]
    wanted = gradient(result.targets)
    explained = columns @ np.linalg.lstsq(columns, wanted, rcond=None)[0]
    assert np.abs(wanted - explained).max() > 0.01 * np.abs(wanted).max()


def test_predictions_and_targets_are_joined_by_their_weights_and_zeros_become_positive():
    rng = np.random.default_rng(0)
    x = rng.uniform(20, 80, 500)
    p = np.exp(-2 + 0.02 * x)
    y = rng.poisson(p).astype(float)
    assert (y == 0).mean() > 0.5
    keywords = {"sensitive_features": x, "constraint": DependenceConstraint(0.2), "loss": "kl"}
    joint = project_targets(y, p, target_weight=0.5, **keywords)
    assert (joint.targets > 0).all()
    assert_allclose(joint.targets.sum(), ((p + 0.5 * y) / 1.5).sum(), rtol=1e-12)
    left = gedi(y, joint.targets, sensitive_features=x, norm="sd", kernel="spline")
    assert left <= joint.threshold * (1 + 1e-9)


def test_a_support_that_cannot_meet_the_bound_is_an_error():
    group = np.repeat(["a", "b"], 20)
    y = np.where(group == "a", 1.0, 0.0)
    with pytest.raises(InfeasibleProjectionError, match=r"20 of 40 rows.*y_pred"):
        project_targets(y, sensitive_features=group, constraint=DidiConstraint(0.2), loss="kl")
    allowed = project_targets(
        y, np.full(40, 0.5), sensitive_features=group, constraint=DidiConstraint(0.2), loss="kl"
    )
    assert allowed.satisfied


@pytest.mark.parametrize("attribute", ["age", "sex"])
def test_few_positive_counts_keep_their_zeros(attribute):
    rng = np.random.default_rng(3)
    x = rng.uniform(-1, 1, 2000)
    y = rng.poisson(0.08 * np.exp(x)).astype(float)
    assert (y == 0).mean() > 0.9
    values = x if attribute == "age" else np.where(x > 0, "f", "m")
    result = project_targets(
        y, sensitive_features=values, constraint=DependenceConstraint(0.1), loss="kl"
    )
    assert result.satisfied
    assert ((result.targets > 0) == (y > 0)).all()
    assert_allclose(result.targets.sum(), y.sum(), rtol=1e-12)


@pytest.mark.parametrize(
    ("y", "y_pred", "message"),
    [
        ([0.0, 0.0, 0.0, 0.0], None, "y, which holds only zeros"),
        ([1.0, -2.0, 3.0, 1.0], None, r"y has 1 negative value\(s\), the least -2"),
        ([1.0, 0.0, 3.0, 1.0], [1.0, 0.0, -1.0, 2.0], r"2 value\(s\) of y_pred are at most 0"),
    ],
)
def test_what_cannot_be_multiplied_is_an_error(y, y_pred, message):
    with pytest.raises(ValueError, match=message):
        project_targets(
            y, y_pred, sensitive_features=[1, 2, 3, 4], constraint=CoarseConstraint(), loss="kl"
        )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"target_bounds": (0, 9)}, "target_bounds.*loss='kl'"),
        ({"solver": Solver("gurobi")}, "solver='gurobi' has no model of loss='kl'"),
    ],
)
@pytest.mark.filterwarnings("ignore:Gurobi runs on the size-limited:UserWarning")
def test_what_the_loss_does_not_go_with_is_refused(options, message):
    t, keywords = problem("sd", 0)
    with pytest.raises(ValueError, match=message):
        project_targets(t, **keywords, **options)
