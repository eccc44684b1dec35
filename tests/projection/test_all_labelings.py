"""Class targets of a few rows against all of their labelings: bound ≤ optimum ≤ objective."""

import warnings

import numpy as np
import pytest
from hypothesis import assume, event, given, settings
from hypothesis import strategies as st

from gedi_sklearn import (
    CoarseConstraint,
    DidiConstraint,
    FineConstraint,
    PolynomialKernel,
    Solver,
    project_targets,
)
from gedi_sklearn.exceptions import InfeasibleProjectionError
from tests.oracles import class_costs, effects_of, every_labeling, group_effects

pytestmark = [
    pytest.mark.filterwarnings("ignore::gedi_sklearn.exceptions.AttributeScaleWarning"),
    # The notice of the licence that comes with pip, once a process: tests may use that licence.
    pytest.mark.filterwarnings("ignore:Gurobi runs on the size-limited:UserWarning"),
    # A handful of rows often has nothing better than a single row in a class.
    pytest.mark.filterwarnings("ignore:the projection leaves a single row:UserWarning"),
]

# Share of a bound by which no labeling may be near it: there rounding decides.
CLEAR = 1e-6


class Bounded:
    """One constraint on the 0/1 columns of all classes, in plain algebra.

    Parameters
    ----------
    kind : {"coarse", "fine", "didi"}
        What is bounded.
    values : ndarray of shape (n,)
        Attribute or groups.
    weight : ndarray of shape (n,)
        Weights.
    degree : int
        Degree of the standardised polynomial; 1 bounds the raw coefficient.
    q, slack : float
        The bound, and the share of it that forbidden directions keep.
    """

    def __init__(self, kind, values, weight, degree, q, slack):
        self.kind, self.q = kind, q
        self.values = values
        kernel = "polynomial" if degree == 1 else PolynomialKernel(degree, standardize=True)
        mean = np.average(values, weights=weight)
        deviation = np.sqrt(np.average((values - mean) ** 2, weights=weight))
        s = (values - mean) / deviation
        powers = s[:, None] ** np.arange(1, degree + 1)
        if kind == "didi":
            self.effects = group_effects(values, weight)
            self.constraint = DidiConstraint(q, relative=False)
            return
        # A standardised polynomial's coefficients are those of s; the raw one's are those of x.
        unit = deviation if degree == 1 else 1.0
        self.effects = effects_of(powers, weight) / unit
        options = {"threshold": q, "kernel": kernel, "relative": False}
        if kind == "coarse":
            self.constraint = CoarseConstraint(**options)
        else:
            self.limits = np.r_[q, np.full(degree - 1, slack * q)]
            self.constraint = FineConstraint(slack=slack, **options)

    def excess(self, columns):
        """Return by how much 0/1 columns (m, n, K) leave the set, in its bound; shape (m,)."""
        v = np.abs(np.einsum("kn,mnc->mkc", self.effects, columns))
        if self.kind == "didi":
            return v.sum(axis=(1, 2)) / self.q - 1
        if self.kind == "coarse":
            return v.sum(axis=1).max(axis=1) / self.q - 1
        return (v / self.limits[:, None]).max(axis=(1, 2)) - 1


def attainable(bounded_kind, values, weight, degree, columns):
    """Return the indicators of all labelings, from which a bound is chosen between two."""
    plain = Bounded(bounded_kind, values, weight, degree, 1.0, 1.0)
    return np.unique(np.round(plain.excess(columns) + 1, 9))


@st.composite
def problems(draw, kinds, n_classes):
    """Draw rows with every class among them, and constraints whose bounds no labeling attains."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n = draw(st.integers(max(5, n_classes + 2), 8 if n_classes == 2 else 7))
    y = rng.permutation(np.r_[np.arange(n_classes), rng.integers(0, n_classes, n - n_classes)])
    columns = np.eye(n_classes)[every_labeling(n, n_classes)]
    weight = rng.choice([0.5, 1.0, 2.0, 3.3], n) if draw(st.booleans()) else None
    w = np.ones(n) if weight is None else weight
    p = None
    if draw(st.booleans()):
        p = rng.dirichlet(np.ones(n_classes), n)
        if draw(st.booleans()):
            p = np.round(p, 1)
            p[:, 0] += 1 - p.sum(axis=1)
            p = np.clip(p, 0, 1)
    features, bounded = [], []
    for kind in kinds:
        degree = 1 if kind == "didi" else draw(st.sampled_from([1, 2]))
        if kind == "didi":
            values = rng.permutation(np.arange(n) % 3).astype(float)
        elif draw(st.booleans()):
            values = rng.permutation(np.arange(n) % 4).astype(float)
        else:
            values = rng.normal(size=n)
        levels = attainable(kind, values, w, degree, columns)
        # Between two attainable values, or below them all.
        i = draw(st.integers(0, max(1, len(levels) // 2)))
        q = (np.r_[0, levels][i] + np.r_[0, levels][i + 1]) / 2
        assume(q > 1e-3)
        features.append(values)
        bounded.append(Bounded(kind, values, w, degree, q, draw(st.sampled_from([0.3, 1.0]))))
    return {
        "y": y,
        "p": p,
        "weight": weight,
        "columns": columns,
        "features": np.column_stack(features) if len(features) > 1 else features[0],
        "bounded": bounded,
        "loss": draw(st.sampled_from(["hamming", "log_loss"])),
        "target_weight": draw(st.sampled_from([0.3, 1.0])),
    }


def check(problem, *, solver, gap):
    """Compare a projection with the best of all labelings."""
    y, p, columns = problem["y"], problem["p"], problem["columns"]
    n_classes = columns.shape[2]
    w = np.ones(len(y)) if problem["weight"] is None else problem["weight"]
    cost = w[:, None] * class_costs(y, p, problem["target_weight"], problem["loss"], n_classes)
    losses = np.einsum("nc,mnc->m", cost, columns)
    total = np.ptp(cost, axis=1).sum()
    excess = np.max([own.excess(columns) for own in problem["bounded"]], axis=0)
    assume(np.abs(excess).min() > CLEAR)
    allowed = excess <= 0
    constraints = [own.constraint for own in problem["bounded"]]
    options = {
        "sensitive_features": problem["features"],
        "constraint": constraints if len(constraints) > 1 else constraints[0],
        "loss": problem["loss"],
        "target_weight": problem["target_weight"],
        "sample_weight": problem["weight"],
        "solver": Solver(solver, gap=gap),
    }
    predictions = p[:, 1] if p is not None and n_classes == 2 else p
    if not allowed.any():
        event("infeasible")
        with pytest.raises(InfeasibleProjectionError):
            project_targets(y, predictions, **options)
        return
    optimum = losses[allowed].min()
    event("binding" if optimum > losses.min() + 1e-9 else "free")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", "the projection leaves a single row", UserWarning)
        warnings.filterwarnings("ignore", "Gurobi runs on the size-limited", UserWarning)
        result = project_targets(y, predictions, **options)
    tolerance = 1e-7 * total
    assert result.bound <= optimum + tolerance
    assert optimum <= result.objective + tolerance
    assert result.objective <= optimum + gap * total + tolerance
    assert result.objective - result.bound <= gap * total + tolerance
    assert result.gap <= gap + 1e-9
    assert result.satisfied
    # The targets are one of the labelings, with the loss and the excess that it has.
    own = np.eye(n_classes)[result.targets][None]
    assert (cost * own[0]).sum() == pytest.approx(result.objective, abs=tolerance)
    assert max(bounded.excess(own)[0] for bounded in problem["bounded"]) <= CLEAR
    assert own[0].any(axis=0).all()


every_solver = pytest.mark.parametrize("solver", ["highs", "gurobi"])


@every_solver
@pytest.mark.parametrize("kind", ["coarse", "fine", "didi"])
@pytest.mark.parametrize("n_classes", [2, 3])
@settings(max_examples=25, deadline=None, derandomize=True)
@given(data=st.data())
def test_one_constraint(solver, kind, n_classes, data):
    problem = data.draw(problems([kind], n_classes))
    check(problem, solver=solver, gap=data.draw(st.sampled_from([0.0, 1e-2])))


@every_solver
@pytest.mark.parametrize("kinds", [("coarse", "coarse"), ("coarse", "fine"), ("fine", "didi")])
@settings(max_examples=25, deadline=None, derandomize=True)
@given(data=st.data())
def test_several_constraints_on_two_classes(solver, kinds, data):
    problem = data.draw(problems(kinds, 2))
    check(problem, solver=solver, gap=data.draw(st.sampled_from([0.0, 1e-2])))
