"""Files with several rows a person: certificates with groups hold, and are issued; C3-22."""

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression

from gedi_sklearn import ConstrainedBoostingRegressor, DependenceConstraint, ProjectedRegressor
from gedi_sklearn.metrics import gedi

SD = {"norm": "sd", "kernel": "spline"}
# Of few persons the reference may be chance, and no certificate is issued.
few = pytest.mark.filterwarnings(
    "ignore::gedi_sklearn.exceptions.CertificateNotIssuedWarning",
    "ignore::gedi_sklearn.exceptions.NoisyReferenceWarning",
)


def persons(n, n_rows, seed):
    """Return rows of persons, who keep their attribute, their skill and an unknown level."""
    rng = np.random.default_rng(seed)
    own = rng.uniform(20, 60, n), rng.normal(size=n), rng.normal(size=n)
    age, x, u = (np.repeat(values, n_rows) for values in own)
    y = 0.06 * age + x + u + 0.3 * rng.normal(size=n * n_rows)
    return np.c_[age, x], y, np.repeat(np.arange(n), n_rows)


def left(model):
    """Return the share that predictions keep of the dependence, of 50,000 new persons."""
    X, y, _ = persons(50_000, 1, 10_000)
    return gedi(y, model.predict(X), sensitive_features=X[:, 0], relative=True, **SD)


def certified(threshold):
    bound = DependenceConstraint(threshold)
    return ProjectedRegressor(LinearRegression(), bound, sensitive_columns=0, confidence=0.95)


@few
def test_rows_of_the_same_persons_are_not_independent_ones():
    # 60 persons with 30 rows each: limits from 1,800 "independent" rows held in .62 of samples.
    held = 0
    for seed in range(20):
        X, y, groups = persons(60, 30, seed)
        model = certified(0.5).fit(X, y, groups=groups)
        held += model.certificate_ is None or left(model) <= 0.5
    assert held >= 17


@few
def test_certificates_with_groups_are_issued_where_there_are_enough_persons():
    issued = held = 0
    for seed in range(6):
        X, y, groups = persons(300, 10, seed)
        model = certified(0.8).fit(X, y, groups=groups)
        if model.certificate_ is not None:
            issued += 1
            held += left(model) <= 0.8
    assert issued >= 3
    assert held >= 0.9 * issued


def test_a_certificate_says_what_it_assumes():
    X, y, groups = persons(3000, 1, 0)
    assert "rows are independent" in str(certified(0.5).fit(X, y).certificate_)
    X, y, groups = persons(600, 2, 0)
    certificate = certified(0.9).fit(X, y, groups=groups).certificate_
    assert "the 600 groups of rows are independent" in str(certificate)


def test_groups_widen_the_interval_of_a_verdict():
    X, y, groups = persons(100, 20, 0)
    model = ProjectedRegressor(LinearRegression(), sensitive_columns=0)
    alone, grouped = (model.fit(X, y, groups=own).verdict_ for own in (None, groups))
    assert grouped.new_rows.high > 1.5 * alone.new_rows.high


@few
def test_boosting_takes_groups_in_its_certificate():
    X, y, groups = persons(20, 30, 0)
    model = ConstrainedBoostingRegressor(
        constraint=DependenceConstraint(0.5), n_estimators=5, sensitive_columns=0, confidence=0.95
    )
    assert model.fit(X, y, groups=groups).certificate_ is None
