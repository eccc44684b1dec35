"""An attribute in which most rows are a group of their own: the value says little, and so we."""

import time
import tracemalloc
import warnings

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression

from gedi_sklearn import (
    DidiConstraint,
    MovingTargetsRegressor,
    ProjectedRegressor,
    project_targets,
)
from gedi_sklearn.constraints._span import JointSpan
from gedi_sklearn.kernels import GroupDesign, fit_codes, fit_kernel
from gedi_sklearn.metrics import (
    binned_didi,
    didi,
    gedi,
    gedi_coefficients,
    gedi_null,
    make_didi_scorer,
)
from gedi_sklearn.report import fairness_report

# Bounds of every kind on purpose, whatever they leave.
pytestmark = pytest.mark.filterwarnings("ignore::gedi_sklearn.exceptions.UnseenDependenceWarning")

pd = pytest.importorskip("pandas")

N = 40
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N, 2))
AGE = X[:, 0]
Y = AGE + X[:, 1]
NAMES = np.array([f"person {i}" for i in range(N)])
# Half as many levels as rows, and one more.
HALF = np.array([f"level {i}" for i in np.arange(N) % (N // 2)])
MORE = np.array([f"level {i}" for i in np.arange(N) % (N // 2 + 1)])


@pytest.mark.parametrize(
    "call",
    [
        lambda groups: gedi(Y, sensitive_features=groups),
        lambda groups: gedi(Y, Y**2, sensitive_features=pd.Series(groups), relative=True),
        lambda groups: gedi_coefficients(Y, sensitive_features=groups),
        lambda groups: gedi_null(Y, sensitive_features=groups),
        lambda groups: didi(Y, sensitive_features=groups),
        lambda groups: didi(Y > 0, sensitive_features=groups, relative=True),
        lambda groups: fairness_report(Y, sensitive_features=groups),
        lambda groups: project_targets(Y, sensitive_features=groups),
        lambda groups: project_targets(Y, sensitive_features=groups, constraint=DidiConstraint()),
        lambda groups: ProjectedRegressor(cv=2).fit(X, Y, sensitive_features=groups),
        lambda groups: MovingTargetsRegressor(max_iter=1).fit(X, Y, sensitive_features=groups),
    ],
)
def test_levels_that_are_single_rows_are_said_once(call):
    for groups, count in ((NAMES, 40), (MORE, 21)):
        message = f"sensitive_features has {count} different values for 40 rows"
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            call(groups)
        # The report also says that no interval is left.
        texts = [str(warning.message) for warning in caught]
        (text,) = (text for text in texts if not text.startswith("40 rows leave no degree"))
        assert text.startswith(message)
        assert "binned_didi" in text
    call(HALF)


def test_didi_of_a_continuous_attribute_points_at_the_bins():
    with pytest.warns(UserWarning, match=r"40 different values for 40 rows.*`binned_didi`"):
        didi(Y, sensitive_features=AGE)
    with pytest.warns(UserWarning, match=r"40 different values for 40 rows.*`binned_didi`"):
        make_didi_scorer(sensitive_columns=0)(LinearRegression().fit(X, Y), X, Y)
    with pytest.warns(UserWarning, match=r"40 different values for 40 rows.*`binned_didi`"):
        project_targets(Y, sensitive_features=AGE, constraint="didi")


def test_where_it_would_be_noise_nothing_is_said():
    # By scikit-learn's rule for classes: up to 20 rows anything may be a coincidence.
    didi(Y[:20], sensitive_features=AGE[:20])
    gedi(Y[:20], sensitive_features=NAMES[:20])
    # Numbers are no groups of GeDI, of bins, nor of the report.
    gedi(Y, sensitive_features=AGE)
    binned_didi(Y, sensitive_features=AGE)
    fairness_report(Y, sensitive_features=AGE / 2)
    # Rows that do not count are no rows.
    weight = (np.arange(N) < 20) * 1.0
    didi(Y, sensitive_features=AGE, sample_weight=weight)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("threshold", [0.0, 0.3, 0.9])
def test_groups_in_closed_form_are_the_factorised_indicators(weighted, threshold):
    rng = np.random.default_rng(3)
    codes = np.r_[np.arange(12), rng.integers(0, 12, size=300)]
    y = rng.normal(size=len(codes)) + np.sin(codes)
    weight = rng.uniform(0.1, 2.0, size=len(codes)) if weighted else np.ones(len(codes))
    share = weight / weight.sum()
    numbers = np.arange(12.0)[:, None]
    indicators = fit_kernel(
        lambda v: (v[:, None] == np.arange(1, 12)).astype(float),
        numbers,
        weight=np.bincount(codes, weights=share),
    )
    factorised, closed = GroupDesign(indicators, codes, share), fit_codes(codes, weight=share)
    for one, other in [
        (closed.fitted.R_, factorised.fitted.R_),
        (closed.orthonormal, factorised.orthonormal),
        (closed.explained(np.arange(11.0)), factorised.explained(np.arange(11.0))),
        (closed.raw_multipliers(np.arange(11.0)), factorised.raw_multipliers(np.arange(11.0))),
        (closed.raw_correction(np.arange(11.0)), factorised.raw_correction(np.arange(11.0))),
        *zip(closed.solve(y), factorised.solve(y), strict=True),
    ]:
        np.testing.assert_allclose(one, other, rtol=1e-11, atol=1e-12)
    # The same projection, by matrices and by sums over the groups.
    reference = DidiConstraint().indicator(factorised, y[:, None], is_class=False)
    constraint = DidiConstraint(threshold=threshold * reference, relative=False)

    class Part:
        design = factorised
        coordinate_set = constraint.allowed(factorised, unit=1.0, is_class=False)

    span = JointSpan([Part()], weight)
    multipliers = span.multipliers(span.coordinates(y))
    found = project_targets(
        y,
        sensitive_features=np.array([f"level {code:02d}" for code in codes]),
        constraint="didi",
        threshold=threshold,
        sample_weight=weight if weighted else None,
    )
    np.testing.assert_allclose(found.targets, span.moved(y, multipliers), rtol=0, atol=1e-12)
    np.testing.assert_allclose(found.orthonormal_correction, multipliers.mu, rtol=0, atol=1e-12)
    assert found.satisfied
    assert found.gap <= 1e-12


def test_ten_thousand_levels_need_no_square_matrix():
    rng = np.random.default_rng(0)
    level = np.arange(100_000) % 10_000
    y = rng.normal(size=len(level)) + np.sin(level)
    tracemalloc.start()
    started = time.process_time()
    found = project_targets(y, sensitive_features=level, constraint="didi", threshold=0.2)
    seconds, peak = time.process_time() - started, tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert didi(found.targets, sensitive_features=level) == pytest.approx(found.threshold)
    assert found.satisfied
    assert found.gap <= 1e-9
    # A square matrix of the levels is 800 MB.
    assert peak < 2e8
    assert seconds < 8  # a fraction of a second where nothing traces the memory
