"""An attribute in which most rows are a group of their own: the value says little, and so we."""

import time
import tracemalloc
import warnings

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression

from gedi_sklearn import (
    CoarseConstraint,
    DidiConstraint,
    DualTargetsRegressor,
    MovingTargetsRegressor,
    ProjectedClassifier,
    ProjectedRegressor,
    project_targets,
)
from gedi_sklearn._geometry._block import Block
from gedi_sklearn._geometry._span import Span
from gedi_sklearn.exceptions import TooManyGroupsError
from gedi_sklearn.kernels import GroupColumns, fit_codes, fit_kernel
from gedi_sklearn.metrics import (
    didi,
    gedi,
    gedi_coefficients,
    gedi_inference,
    lower_limits,
    make_disparity_scorer,
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
        lambda groups: gedi_inference(Y, sensitive_features=groups),
        lambda groups: didi(Y, sensitive_features=groups),
        lambda groups: didi(Y > 0, sensitive_features=groups, relative=True),
        lambda groups: fairness_report(Y, sensitive_features=groups),
        lambda groups: project_targets(Y, sensitive_features=groups, constraint=CoarseConstraint()),
        lambda groups: project_targets(Y, sensitive_features=groups, constraint=DidiConstraint()),
        lambda groups: ProjectedRegressor(constraint=CoarseConstraint(), cv=2).fit(
            X, Y, sensitive_features=groups
        ),
        lambda groups: MovingTargetsRegressor(constraint=CoarseConstraint(), max_iter=1).fit(
            X, Y, sensitive_features=groups
        ),
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
        assert "n_bins" in text
    call(HALF)


def test_didi_of_a_continuous_attribute_points_at_the_bins():
    with pytest.warns(UserWarning, match=r"40 different values for 40 rows.*`didi\(n_bins=...\)`"):
        didi(Y, sensitive_features=AGE)
    with pytest.warns(UserWarning, match=r"40 different values for 40 rows.*`didi\(n_bins=...\)`"):
        make_disparity_scorer("didi", sensitive_columns=0)(LinearRegression().fit(X, Y), X, Y)
    with pytest.warns(UserWarning, match=r"40 different values for 40 rows.*`didi\(n_bins=...\)`"):
        project_targets(Y, sensitive_features=AGE, constraint=DidiConstraint())


def test_where_it_would_be_noise_nothing_is_said():
    # By scikit-learn's rule for classes: up to 20 rows anything may be a coincidence.
    didi(Y[:20], sensitive_features=AGE[:20])
    gedi(Y[:20], sensitive_features=NAMES[:20])
    # Numbers are no groups of GeDI, of bins, nor of the report.
    gedi(Y, sensitive_features=AGE)
    didi(Y, sensitive_features=AGE, n_bins=3)
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
    factorised, closed = indicators.on_groups(codes, share), fit_codes(codes, weight=share)
    coordinates = np.arange(11.0)
    for one, other in [
        (closed.fitted.R_, factorised.fitted.R_),
        (closed.orthonormal, factorised.orthonormal),
        (closed.explained(coordinates), factorised.explained(coordinates)),
        (
            closed.fitted.raw_multipliers(np.arange(11.0)),
            factorised.fitted.raw_multipliers(np.arange(11.0)),
        ),
        (
            closed.fitted.raw_correction(np.arange(11.0)),
            factorised.fitted.raw_correction(np.arange(11.0)),
        ),
        *zip(closed.solve(y), factorised.solve(y), strict=True),
    ]:
        np.testing.assert_allclose(one, other, rtol=1e-11, atol=1e-12)
    # The same projection, by matrices and by sums over the groups.
    reference = DidiConstraint().gauge(factorised, is_class=False).indicator(y[:, None])
    constraint = DidiConstraint(threshold * reference, relative=False)
    span = Span([constraint.block(factorised, unit=1.0, is_class=False)], weight)
    multipliers = span.multipliers(span.coordinates(y))
    found = project_targets(
        y,
        sensitive_features=np.array([f"level {code:02d}" for code in codes]),
        sample_weight=weight if weighted else None,
        constraint=DidiConstraint(threshold),
    )
    np.testing.assert_allclose(found.targets, span.moved(y, multipliers), rtol=0, atol=1e-12)
    np.testing.assert_allclose(found.orthonormal_correction, multipliers.mu, rtol=0, atol=1e-12)
    assert found.satisfied
    assert found.gap <= 1e-12


@pytest.mark.parametrize("weighted", [False, True])
def test_products_with_the_indicators_of_rows_need_no_matrix(weighted):
    rng = np.random.default_rng(5)
    codes = np.r_[np.arange(9), rng.integers(0, 9, size=60)]
    weight = rng.uniform(0.1, 2.0, size=len(codes)) if weighted else None
    design = fit_codes(codes, weight=weight)
    dense, c = design.orthonormal, rng.normal(size=(8, 3))
    share = np.full(len(codes), 1 / len(codes)) if weight is None else weight / weight.sum()
    np.testing.assert_allclose(dense.T @ (share[:, None] * dense), np.eye(8), atol=1e-13)
    columns = GroupColumns(design.fitted, codes)
    np.testing.assert_allclose(columns, dense, rtol=0, atol=1e-12)
    np.testing.assert_allclose(columns @ c, dense @ c, rtol=0, atol=1e-12)
    np.testing.assert_allclose(columns[5:9] @ c[:, 0], dense[5:9] @ c[:, 0], atol=1e-12)
    absent = GroupColumns(design.fitted, np.r_[-1, codes])
    np.testing.assert_array_equal(np.asarray(absent)[0], 0.0)
    assert (absent @ c[:, 0])[0] == 0.0
    leverage = share * (1 + np.square(dense).sum(axis=1))
    np.testing.assert_allclose(design.leverage(), leverage, rtol=1e-12)


@pytest.mark.parametrize("n_columns", [1, 3])
def test_limits_of_deviations_are_those_of_their_covariance(n_columns):
    rng = np.random.default_rng(6)
    codes = np.r_[np.arange(7), rng.integers(0, 7, size=400)]
    design = fit_codes(codes)
    columns = np.sin(codes)[:, None] + rng.normal(size=(len(codes), n_columns))
    block = DidiConstraint().gauge(design, is_class=False, outputs=tuple(range(n_columns)))
    dense = Block(design, block.allowed, block.operator @ design.fitted.R_, None, block.outputs)
    by_group, by_matrix = lower_limits(block, columns), lower_limits(dense, columns)
    value = block.indicator(columns)
    np.testing.assert_allclose(value - by_group, value - by_matrix, rtol=0.05)


@pytest.mark.parametrize("weighted", [False, True])
def test_corrections_of_groups_are_products_with_the_matrix(weighted):
    rng = np.random.default_rng(7)
    levels = np.array([f"level {code:02d}" for code in np.arange(300) % 15])
    features = rng.normal(size=(300, 2))
    y = features[:, 0] + np.sin(np.arange(300) % 15)
    weight = (np.arange(300) % 4).astype(float) if weighted else None
    model = ProjectedRegressor(constraint=DidiConstraint(0.05))
    model.fit(features, y, sensitive_features=levels, sample_weight=weight)
    new = np.arange(40)
    columns = model.kernel_.orthonormal(levels[new])
    plain = model.estimator_.predict(features[new])
    found = model.predict(features[new], sensitive_features=levels[new])
    expected = plain + columns @ model.orthonormal_correction_
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12)
    # In raw units: the correction of a level beside that of the first one.
    gaps = found - plain - (found - plain)[0]
    np.testing.assert_allclose(gaps[1:15], model.correction_, rtol=0, atol=1e-12)
    assert didi(model.targets_, sensitive_features=levels, sample_weight=weight) == pytest.approx(
        model.threshold_
    )


def many_levels():
    rng = np.random.default_rng(0)
    level = np.arange(100_000) % 10_000
    features = rng.normal(size=(len(level), 2)) + np.sin(level)[:, None]
    return features, features[:, 0] + rng.normal(size=len(level)), level


@pytest.mark.parametrize(
    "make",
    [
        lambda: ProjectedRegressor(constraint=DidiConstraint()),
        lambda: MovingTargetsRegressor(constraint=DidiConstraint(), max_iter=2),
        lambda: MovingTargetsRegressor(constraint=DidiConstraint(), max_iter=1, cv=3),
    ],
)
@pytest.mark.filterwarnings("ignore::gedi_sklearn.exceptions.ConstraintNotMetWarning")
def test_estimators_take_ten_thousand_levels(make):
    features, y, level = many_levels()
    tracemalloc.start()
    model = make().fit(features, y, sensitive_features=level)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 3e8  # 8 GB are the indicators of all rows
    assert (model.verdict_.training or model.verdict_.new_rows).value > 0
    if isinstance(model, ProjectedRegressor):
        assert didi(model.targets_, sensitive_features=level) == pytest.approx(model.threshold_)
        assert len(model.predict(features[:9], sensitive_features=level[:9])) == 9


@pytest.mark.parametrize(
    "call",
    [
        lambda X, y, level: project_targets(
            y,
            sensitive_features=level,
            target_bounds=(y.min(), y.max()),
            constraint=DidiConstraint(),
        ),
        lambda X, y, level: project_targets(
            y > 0, sensitive_features=level, constraint=DidiConstraint()
        ),
        lambda X, y, level: ProjectedClassifier(constraint=DidiConstraint()).fit(
            X, y > 0, sensitive_features=level
        ),
        lambda X, y, level: ProjectedRegressor(constraint=DidiConstraint(), confidence=0.9).fit(
            X, y, sensitive_features=level
        ),
        lambda X, y, level: ProjectedRegressor(
            constraint=DidiConstraint(), sensitive_at_predict=False
        ).fit(X, y, sensitive_features=level),
        lambda X, y, level: DualTargetsRegressor(constraint=DidiConstraint()).fit(
            X, y, sensitive_features=level
        ),
    ],
)
def test_what_so_many_levels_cannot_have_is_said(call):
    with pytest.raises(TooManyGroupsError, match=r"10000 groups needs a matrix of .* Pool rare"):
        call(*many_levels())


def test_ten_thousand_levels_need_no_square_matrix():
    rng = np.random.default_rng(0)
    level = np.arange(100_000) % 10_000
    y = rng.normal(size=len(level)) + np.sin(level)
    tracemalloc.start()
    started = time.process_time()
    found = project_targets(y, sensitive_features=level, constraint=DidiConstraint(0.2))
    seconds, peak = time.process_time() - started, tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert didi(found.targets, sensitive_features=level) == pytest.approx(found.threshold)
    assert found.satisfied
    assert found.gap <= 1e-9
    # A square matrix of the levels is 800 MB.
    assert peak < 2e8
    assert seconds < 8  # a fraction of a second where nothing traces the memory
