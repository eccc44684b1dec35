"""Raw and orthonormal corrections are one function of the attribute, whatever is bounded."""

import warnings
from itertools import product

import numpy as np
import pytest

from gedi_sklearn import (
    CoarseConstraint,
    DependenceConstraint,
    DidiConstraint,
    FineConstraint,
    ProjectedClassifier,
    ProjectedRegressor,
)
from gedi_sklearn.kernels import fit_groups

CONSTRAINTS = {
    "coarse": lambda **own: CoarseConstraint(0.05, kernel=3, **own),
    "fine": lambda **own: FineConstraint(0.05, kernel=2, **own),
    "sd": lambda **own: DependenceConstraint(0.05, **own),
    "didi": lambda **own: DidiConstraint(0.3, **own),
}


CASES = [
    pytest.param(*case, marks=pytest.mark.slow if case == ("didi", 1, None) else ())
    for case in product(CONSTRAINTS, [None, 1], [None, 0])
]


@pytest.mark.parametrize(("name", "subset", "covariate"), CASES)
def test_raw_and_orthonormal_corrections_are_the_same_function(name, subset, covariate):
    rng = np.random.default_rng(0)
    x = rng.integers(0, 6, 150) + 0.0
    X = np.column_stack([rng.normal(size=150) + 0.1 * x, x])
    y = x - 0.1 * x**2 + X[:, 0] + rng.normal(size=150) - 2
    weight = rng.uniform(0.5, 2, 150)
    estimator = ProjectedRegressor
    if subset is not None:  # known of a new row by its predicted class alone
        estimator, y = ProjectedClassifier, (y > 0).astype(int)
    constraint = CONSTRAINTS[name](subset=subset, relative=False)
    model = estimator(constraint=constraint, conditional_on=covariate, cv=3)
    with warnings.catch_warnings(action="ignore"):  # how well it is met is not the question
        model.fit(X, y, sensitive_features=x, sample_weight=weight)
    raw = model.kernel_.transform(x) @ model.correction_
    assert np.ptp(raw) > 0.01
    if covariate is None:
        orthonormal = model.kernel_.orthonormal(x) @ model.orthonormal_correction_
    else:  # a residual, on the rows that have a say
        covariates = X[:, [covariate]]
        orthonormal = model.kernel_.orthonormal(x, covariates) @ model.orthonormal_correction_
        inside = np.ones(150, dtype=bool) if subset is None else y == subset
        system, root = np.column_stack([np.ones(150), covariates]), np.sqrt(weight)[:, None]
        weighted_raw = (root[:, 0] * raw)[inside]
        raw = raw - system @ np.linalg.lstsq((root * system)[inside], weighted_raw, rcond=None)[0]
    assert np.ptp(raw - orthonormal) < 1e-9 * np.ptp(raw)


def test_the_groups_of_a_subset_are_orthonormal_on_all_rows():
    rng = np.random.default_rng(1)
    team = rng.integers(0, 5, 200)[:, None] + 0.0
    rows, weight = rng.random(200) < 0.4, rng.uniform(0.5, 2, 200)
    design = fit_groups(team[rows], weight=weight[rows]).within(rows, weight)
    Q, share, c = design.orthonormal, weight / weight.sum(), rng.normal(size=4)
    np.testing.assert_allclose(Q.T @ (share[:, None] * Q), np.eye(4), atol=1e-13)
    np.testing.assert_array_equal(Q[~rows], 0)
    raw = design.fitted.transform(team) @ design.fitted.raw_correction(c)
    assert np.ptp(raw - design.fitted.orthonormal(team) @ c) < 1e-13 * np.ptp(raw)
