"""Chunks, in any order and from any machine, give the indicator of all rows."""

import json
import pickle
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.exceptions import NotFittedError, UndefinedMetricWarning

from gedi_sklearn import (
    CoarseConstraint,
    DependenceConstraint,
    DidiConstraint,
    FineConstraint,
    FourierKernel,
    PolynomialKernel,
    SplineKernel,
    project_targets,
)
from gedi_sklearn.exceptions import (
    AttributeRangeWarning,
    FewRowsWarning,
    IllConditionedKernelWarning,
    RankDeficientKernelError,
)
from gedi_sklearn.metrics import GediAccumulator, gedi, gedi_coefficients, gedi_inference

RNG = np.random.default_rng(3)
N = 1200
X = RNG.gamma(3.0, 1.0, N)
Y = 40 + X + np.cos(X) + RNG.normal(size=N)
PREDICTED = 0.5 * Y + 0.1 * X**2
WEIGHT = RNG.uniform(0, 3, N) * (RNG.uniform(size=N) > 0.1)


def accumulate(chunks, *, predicted=PREDICTED, attribute=X, weight=None, **parameters):
    accumulator = GediAccumulator(**parameters)
    for rows in chunks:
        accumulator.update(
            Y[rows],
            None if predicted is None else predicted[rows],
            sensitive_features=attribute[rows],
            sample_weight=None if weight is None else weight[rows],
        )
    return accumulator


@settings(max_examples=25, deadline=None)
@given(
    cuts=st.lists(st.integers(1, N - 1), max_size=12, unique=True),
    degree=st.integers(1, 5),
    standardize=st.booleans(),
    weighted=st.booleans(),
)
def test_any_chunks_give_the_value_of_all_rows(cuts, degree, standardize, weighted):
    """The first chunk alone may be a few rows: the reference is given."""
    kernel = PolynomialKernel(degree, standardize=standardize)
    chunks = np.split(np.arange(N), sorted(cuts))
    weight = WEIGHT if weighted else None
    accumulator = accumulate(chunks, weight=weight, kernel=kernel, reference=X[:50])
    options = {"sensitive_features": X, "kernel": kernel, "sample_weight": weight}
    alpha = gedi_coefficients(PREDICTED, **options)
    np.testing.assert_allclose(accumulator.coefficients(), alpha, rtol=1e-9 * 10**degree)
    for norm in ("l1", "sd", "adjusted_sd"):
        for relative in (False, True):
            value = gedi(Y, PREDICTED, norm=norm, relative=relative, **options)
            assert accumulator.gedi(norm=norm, relative=relative) == pytest.approx(value, rel=1e-9)
    for norm in ("l1", "sd"):
        found = accumulator.inference(norm=norm)
        expected = gedi_inference(PREDICTED, norm=norm, **options)
        assert found.value == pytest.approx(expected.value, rel=1e-9)
        assert found.null_mean == pytest.approx(expected.null_mean, rel=1e-8)
        assert found.pvalue == pytest.approx(expected.pvalue, abs=0.05)


@pytest.mark.parametrize("position", [0, 1])
def test_a_chunk_of_zero_weights_adds_nothing(position):
    chunks = np.split(np.arange(N), 3)
    left = [rows for i, rows in enumerate(chunks) if i != position]
    weight = np.where(np.isin(np.arange(N), chunks[position]), 0.0, WEIGHT)
    found, expected = accumulate(chunks, weight=weight), accumulate(left, weight=weight)
    assert found.to_dict() == expected.to_dict()
    empty = GediAccumulator().update(Y, sensitive_features=X, sample_weight=np.zeros(N))
    assert empty.n_rows_ == 0
    with pytest.raises(ValueError, match="Negative values"):
        empty.update(Y, sensitive_features=X, sample_weight=-np.ones(N))


@pytest.mark.parametrize(
    "kernel", [SplineKernel(), FourierKernel(2), PolynomialKernel(3, standardize=True)]
)
def test_kernels_fixed_by_the_reference(kernel):
    """With all rows as the reference, a kernel is the one that `gedi` fits."""
    accumulator = accumulate(np.split(np.arange(N), 4), kernel=kernel, reference=X)
    value = gedi(PREDICTED, sensitive_features=X, kernel=kernel)
    assert accumulator.gedi() == pytest.approx(value, rel=1e-9)


def test_merging_is_associative_and_commutative():
    parts = [accumulate([rows], kernel=4, reference=X[:200]) for rows in np.split(np.arange(N), 3)]

    def merged(*order):
        first, *rest = [pickle.loads(pickle.dumps(parts[j])) for j in order]
        for other in rest:
            first.merge(other)
        return first

    right = pickle.loads(pickle.dumps(parts[0])).merge(merged(1, 2))
    values = [merged(0, 1, 2).gedi(), merged(2, 0, 1).gedi(), merged(1, 2, 0).gedi(), right.gedi()]
    np.testing.assert_allclose(values, values[0], rtol=1e-10)
    assert right.n_rows_ == N
    assert values[0] == pytest.approx(gedi(PREDICTED, sensitive_features=X, kernel=4), rel=1e-9)
    empty = GediAccumulator(kernel=4, reference=X[:200])
    assert empty.merge(parts[0]).merge(GediAccumulator()).gedi() == parts[0].gedi()


@pytest.mark.parametrize("has_rows", [True, False])
def test_the_rows_of_another_basis_are_refused(has_rows):
    """The one that they were to be added to stays as it was."""
    label, reference = np.where(Y > 43, 1, 0), [0.0, 1.0, 5.0, 9.0]
    given = {"kernel": 2, "reference": reference, "pos_label": 1}
    first = GediAccumulator(**given)
    if has_rows:
        first.update(label[:600], sensitive_features=X[:600])
    before = vars(pickle.loads(pickle.dumps(first)))
    for change, message in (
        ({"kernel": 3}, "another kernel"),
        ({"kernel": PolynomialKernel(2, standardize=True)}, "another kernel"),
        ({"pos_label": 0}, "another pos_label, 0 where this one has 1"),
        ({"pos_label": None}, "another pos_label"),
        ({"reference": X[:600]}, "another reference_"),
        ({"predicted": label}, "another number of targets"),
        ({"attribute": pd.DataFrame({"age": X})}, "another attribute, the columns .'age'."),
    ):
        if not has_rows and set(change) & {"reference", "predicted", "attribute"}:
            continue  # what has no rows takes these from the other
        own = {**given, **change}
        predicted, attribute = own.pop("predicted", None), own.pop("attribute", X)
        if isinstance(attribute, pd.DataFrame):
            own["reference"] = pd.DataFrame({"age": reference})
        other = GediAccumulator(**own).update(label, predicted, sensitive_features=attribute)
        with pytest.raises(ValueError, match=f"since it has {message}"):
            first.merge(other)
        assert repr(vars(first).keys()) == repr(before.keys())
        if has_rows:
            left = pickle.loads(pickle.dumps(first)).to_dict()
            assert left == {**left, "n_rows": 600, "products": before["sums_"].products.tolist()}
    with pytest.raises(TypeError, match="other must be a GediAccumulator"):
        first.merge(3)


def test_functions_of_other_processes_are_compared_by_what_they_return():
    """A function that another process has read is another object."""
    given = {"reference": X[:50]}

    def summed(kernel):
        return GediAccumulator(kernel, **given).update(Y, sensitive_features=X)

    value = gedi(Y, sensitive_features=X, kernel=np.log1p)
    merged = summed(lambda x: np.log1p(x)).merge(summed(lambda x: np.log1p(x)))
    assert merged.gedi() == pytest.approx(value)
    with pytest.raises(ValueError, match="another kernel"):
        summed(np.log1p).merge(summed(np.sqrt))


@pytest.mark.parametrize("kernel", ["polynomial", "spline", PolynomialKernel(2, standardize=True)])
def test_a_round_through_json(kernel):
    accumulator = accumulate([slice(0, 700), slice(700, N)], kernel=kernel)
    state = json.loads(json.dumps(accumulator.to_dict()))
    again = GediAccumulator.from_dict(state)
    assert again.gedi(relative=True) == accumulator.gedi(relative=True)
    assert again.merge(accumulator).n_rows_ == 2 * N
    with pytest.raises(TypeError, match="kernels that have a name"):
        accumulate([slice(0, 700)], kernel=lambda x: x).to_dict()


def spoiled(state):
    """Yield the state without a part, and with one that is cut, not finite or negative."""
    for name, own in state.items():
        yield {key: value for key, value in state.items() if key != name}
        if not isinstance(own, list) or not own:
            continue
        if len(own) > 1:
            yield {**state, name: own[:-1]}
        is_number = isinstance(np.ravel(own)[0], float)
        for wrong in (np.nan, np.inf) if is_number else ():
            array = np.array(own)
            array.flat[0] = wrong
            yield {**state, name: array.tolist()}
    weights = "weights" if "weights" in state else "end_weights"
    for name in (weights, "unweighted"):
        yield {**state, name: (-np.array(state[name])).tolist()}
    for name, wrong in {
        "n_rows": [0, -3, 1.5, True, None, state["n_rows"] + 1],
        "kernel": ["poly", 0, {"name": "spline", "n_knot": 3}, {"n_knots": 3}, None],
        "names": ["age", [3], ["a", "b"]],
        "columns": [["a", "b"]],
        "reference": [[], [[]], [["a"], [1.0]], np.add(1, np.ones((9, 1))).tolist()],
        "origin": [[], [1.0, 2.0, 3.0], 4.0, "x"],
        "products": ["x", [["x"]], np.ones(np.shape(state["products"])).cumsum(1).tolist()],
        "foreign": [3],
    }.items():
        yield from ({**state, name: own} for own in wrong)


@pytest.mark.parametrize("kernel", [1, "spline", "levels"])
def test_a_state_that_is_not_whole_is_refused(kernel):
    attribute = X if kernel != "levels" else np.array(list("abc"))[np.arange(N) % 3]
    given = {} if kernel == "levels" else {"kernel": kernel}
    accumulator = accumulate([slice(0, N)], attribute=attribute, weight=WEIGHT, **given)
    state = json.loads(json.dumps(accumulator.to_dict()))
    assert GediAccumulator.from_dict(state).gedi() == accumulator.gedi()
    n_refused = 0
    for wrong in spoiled(state):
        with pytest.raises(ValueError, match="state"):
            GediAccumulator.from_dict(wrong)
        n_refused += 1
    assert n_refused > 40
    for wrong in (None, [state], {}, json.dumps(state)):
        with pytest.raises(ValueError, match="state"):
            GediAccumulator.from_dict(wrong)


@pytest.mark.parametrize("unit", [1e-9, 1.0, 1e9])
def test_levels_that_determine_the_targets_go_through_json(unit):
    """A few rows of a partition, where sums of squares within the levels are 0 up to rounding."""
    rng = np.random.default_rng(0)
    for _ in range(20):
        y, p = unit * rng.normal(size=4), rng.normal(size=4)
        own = GediAccumulator().update(y, p, sensitive_features=list("abcd"))
        assert GediAccumulator.from_dict(own.to_dict()).gedi() == own.gedi()


def test_numbers_of_numpy_go_through_json():
    kernel = PolynomialKernel(np.int64(2), standardize=np.True_)
    for params in ({"kernel": np.int64(2)}, {"kernel": kernel}):
        accumulator = GediAccumulator(**params, pos_label=np.int64(1)).update(
            np.where(Y > 0, 1, 0), sensitive_features=X
        )
        again = GediAccumulator.from_dict(json.loads(json.dumps(accumulator.to_dict())))
        assert again.gedi() == accumulator.gedi()


def test_categories_and_several_attributes():
    frame = pd.DataFrame({"age": X, "group": np.where(RNG.uniform(size=N) < 0.3, "10", "20")})
    frame["group"] = frame["group"].astype("category")
    for kernel in (PolynomialKernel(2), PolynomialKernel(2, standardize=True), "spline"):
        accumulator = GediAccumulator(kernel, reference=frame)
        for rows in (slice(0, 500), slice(500, N)):
            accumulator.update(Y[rows], sensitive_features=frame[rows])
        value = gedi(Y, sensitive_features=frame, kernel=kernel)
        assert accumulator.gedi() == pytest.approx(value, rel=1e-9)
        again = GediAccumulator.from_dict(json.loads(json.dumps(accumulator.to_dict())))
        assert again.merge(accumulator).gedi() == pytest.approx(value, rel=1e-9)
    with pytest.raises(ValueError, match="match those that were passed"):
        accumulator.update(Y, sensitive_features=frame[["group", "age"]])


def test_what_does_not_fit_is_said():
    accumulator = GediAccumulator(kernel=2)
    with pytest.raises(NotFittedError, match="no rows yet"):
        accumulator.gedi()
    with pytest.raises(RankDeficientKernelError):
        accumulator.update(Y[:3], sensitive_features=np.zeros(3))
    accumulator.partial_fit(Y, PREDICTED, sensitive_features=X)
    with pytest.raises(ValueError, match="y_pred must be given with every chunk"):
        accumulator.update(Y, sensitive_features=X)
    with pytest.raises(ValueError, match="sensitive_features holds text"):
        GediAccumulator(reference=[0.0, 1.0]).update([1.0, 2.0], sensitive_features=["a", "b"])
    with pytest.raises(ValueError, match="2 column"):
        accumulator.update(Y, PREDICTED, sensitive_features=np.c_[X, X])
    with pytest.raises(ValueError, match="contains NaN"):
        accumulator.update(np.where(X > 1, np.nan, Y), PREDICTED, sensitive_features=X)
    with pytest.raises(ValueError, match="above the degree"):
        accumulator.gedi(relative=3)
    with pytest.raises(ValueError, match="was given together with norm"):
        accumulator.gedi(norm="sd", relative=2)
    with pytest.raises(ValueError, match="confidence"):
        accumulator.inference(confidence=95)
    assert accumulator.n_rows_ == N  # nothing of the refused chunks was added
    assert not hasattr(clone(accumulator), "sums_")


@pytest.mark.parametrize("extreme", [np.nan, np.inf, -1e200])
@pytest.mark.parametrize("kernel", [PolynomialKernel(3), SplineKernel()])
def test_extreme_values_of_any_chunk_are_refused(kernel, extreme):
    """Of powers the sums tell, of other kernels a pass over the rows."""
    accumulator = GediAccumulator(kernel).update(Y, PREDICTED, sensitive_features=X)
    value, one = accumulator.gedi(), np.where(np.arange(N) == 77, extreme, X)
    for name, chunk in (
        ("y_true", (one, PREDICTED, X)),
        ("y_pred", (Y, one, X)),
        ("sensitive_features", (Y, PREDICTED, one)),
    ):
        with pytest.raises(ValueError, match=rf"{name}.*(contains NaN|infinity|beyond ±1e\+152)"):
            accumulator.update(*chunk[:2], sensitive_features=chunk[2])
    assert accumulator.n_rows_ == N
    assert accumulator.gedi() == value


def test_powers_beyond_floats_are_refused():
    accumulator = GediAccumulator(kernel=3).update(Y, sensitive_features=X)
    with pytest.raises(ValueError, match=r"powers of sensitive_features.* leave the range"):
        accumulator.update(Y, sensitive_features=X * 1e80)
    assert accumulator.n_rows_ == N


@pytest.mark.parametrize("kernel", [PolynomialKernel(3), FourierKernel(1)])
@pytest.mark.parametrize("n_rows", [20, 50, 70_000, 1_100_000])
def test_parts_of_any_length_have_their_own_sums(n_rows, kernel):
    """Rows, several parts of them or pieces of one are taken at once."""
    rng = np.random.default_rng(0)
    x, y, z, weight = rng.uniform(0, 2, (4, n_rows))
    options = {"sensitive_features": x, "sample_weight": weight}
    accumulator = GediAccumulator(kernel).update(y, z, **options)
    parts = np.array(accumulator.to_dict()["products"])
    sums = [rows.sum() for rows in np.array_split(weight, len(parts))]
    np.testing.assert_allclose(parts[:, 0, 0], sums, rtol=1e-12)
    alpha = gedi_coefficients(z, kernel=kernel, **options)
    np.testing.assert_allclose(accumulator.coefficients(), alpha, rtol=1e-7)


def test_undefined_values_are_nan():
    constant = GediAccumulator(kernel=2, reference=X).update(Y, sensitive_features=np.ones(N))
    with pytest.warns(UndefinedMetricWarning, match="constant"):
        assert np.isnan(constant.gedi())
    with pytest.warns(UndefinedMetricWarning, match="constant"):
        assert np.isnan(constant.coefficients()).all()
    few = GediAccumulator(kernel=2, reference=X).update(Y[:3], sensitive_features=X[:3])
    with pytest.warns(UndefinedMetricWarning, match="needs more rows"):
        assert np.isnan(few.gedi(norm="adjusted_sd"))


def test_a_reference_unlike_the_rows_is_warned_of():
    narrow = 1.0 + 1e-3 * RNG.normal(size=100)
    accumulator = accumulate([slice(0, N)], kernel=8, reference=narrow)
    with pytest.warns(IllConditionedKernelWarning, match="unlike the reference"):
        accumulator.gedi()


@pytest.mark.parametrize("kernel", ["spline", "fourier"])
def test_chunks_beyond_the_knots_are_named(kernel):
    order = np.argsort(X)
    chunks = np.split(order, 4)
    accumulator = GediAccumulator(kernel).update(Y[chunks[0]], sensitive_features=X[chunks[0]])
    with pytest.warns(AttributeRangeWarning, match="a chunk lie outside the range of the ref.* Pa"):
        accumulator.update(Y[chunks[1]], sensitive_features=X[chunks[1]])
    whole = GediAccumulator(kernel, reference=X)
    for rows in chunks:
        whole.update(Y[rows], sensitive_features=X[rows])
    right = gedi(Y, sensitive_features=X, kernel=kernel, norm="sd")
    assert whole.gedi(norm="sd") == pytest.approx(right, rel=1e-9)


def test_a_single_row_beyond_the_knots_is_no_sorted_file():
    accumulator = GediAccumulator("spline", reference=X)
    for x in (X.min() - 0.1, X.max() + 0.1):  # a warning would be an error
        accumulator.update([0.0], sensitive_features=[x])
    with pytest.warns(AttributeRangeWarning):
        accumulator.update([0.0, 1.0], sensitive_features=[X.max() + 1, X.max() + 2])


@pytest.mark.parametrize("values", [np.ones(3), ["a", "a", "a"]])
def test_a_first_chunk_of_one_value_asks_for_a_reference(values):
    with pytest.raises(RankDeficientKernelError, match="first chunk: pass reference="):
        GediAccumulator().update(Y[:3], sensitive_features=values)


@pytest.mark.parametrize("degree", [1, 2])
@pytest.mark.parametrize("far", [1e3, 1e5, 1e7, 1e8, 1e12])
def test_a_reference_far_from_the_rows_is_right_or_named(far, degree):
    kernel = PolynomialKernel(degree, standardize=True) if degree > 1 else degree
    accumulator = GediAccumulator(kernel, reference=[0.0, 1.0, 4.0, 9.0])
    accumulator.update(Y, sensitive_features=X + far)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            value = accumulator.gedi(norm="sd")
            said = [str(one.message) for one in caught]
        except ValueError as error:
            value, said = np.nan, [str(error)]
    assert all("Pass reference=" in text for text in said)
    assert bool(said) == (far**degree > 1e3)
    right = gedi(Y, sensitive_features=X + far, kernel=kernel, norm="sd")
    assert said or value == pytest.approx(right, rel=1e-9)


def test_text_of_many_levels_is_summed_up_by_level():
    """No matrix of levels is made, and everything is that of the rows."""
    rng = np.random.default_rng(0)
    level = np.array([f"level {j}" for j in range(500)])[rng.integers(0, 500, 5000)]
    y, p, weight = rng.normal(size=5000), rng.normal(size=5000), rng.integers(0, 3, 5000)
    given = {"reference": np.unique(level)}
    merged = GediAccumulator(**given)
    for rows in np.array_split(np.arange(5000), 7):
        part = GediAccumulator(**given)
        part.update(y[rows], p[rows], sensitive_features=level[rows], sample_weight=weight[rows])
        merged.merge(GediAccumulator.from_dict(json.loads(json.dumps(part.to_dict()))))
    assert sum(own.size for own in merged.sums_.state().values()) < 32 * 500 * 4
    rows = {"sensitive_features": level, "sample_weight": weight}
    for norm, relative in (("l1", False), ("l1", True), ("sd", True), ("adjusted_sd", False)):
        value = gedi(y, p, norm=norm, relative=relative, **rows)
        assert merged.gedi(norm=norm, relative=relative) == pytest.approx(value, rel=1e-11)
    np.testing.assert_allclose(merged.coefficients(), gedi_coefficients(p, **rows), rtol=1e-9)
    for norm in ("l1", "sd"):
        found, expected = merged.inference(norm=norm), gedi_inference(p, norm=norm, **rows)
        assert found.null_mean == pytest.approx(expected.null_mean, rel=1e-9)
        assert found.null_q95 == pytest.approx(expected.null_q95, rel=1e-9)
        assert found.pvalue == expected.pvalue
    correct = merged.correct_targets(CoarseConstraint(0.2), target_weight=0)
    with pytest.raises(ValueError, match=r"levels not seen before"):
        correct(y, p, sensitive_features=level)  # some have rows of weight 0 only
    z, counted = np.zeros(5000), weight > 0
    z[counted] = correct(y[counted], p[counted], sensitive_features=level[counted])
    assert gedi(y, z, relative=True, **rows) == pytest.approx(0.2, rel=1e-9)
    with pytest.raises(ValueError, match=r"levels not seen before: \['new'\]"):
        merged.update(y[:2], p[:2], sensitive_features=["new", "level 1"])


@pytest.mark.parametrize("n_levels", [2, 5])
def test_limits_of_levels_are_those_of_their_indicators(n_levels):
    """Of a matrix of indicators, as a callable that a numeric attribute has."""
    code = np.arange(N) * 7 % n_levels
    codes = code.astype(float)
    level = np.array(list("abcde"))[code]
    indicators = accumulate(
        np.split(np.arange(N), 3),
        attribute=codes,
        weight=WEIGHT,
        kernel=lambda x: x.reshape(-1, 1) == np.arange(1, n_levels),
    )
    levels = accumulate(np.split(np.arange(N), 3), attribute=level, weight=WEIGHT)
    for norm in ("l1", "sd"):
        one, other = levels.inference(norm=norm), indicators.inference(norm=norm)
        assert one.value == pytest.approx(other.value, rel=1e-9)
        assert one.null_mean == pytest.approx(other.null_mean, rel=1e-9)
        assert one.upper == pytest.approx(other.upper, rel=0.02 if norm == "sd" else 1e-9)


@pytest.mark.parametrize("first", ["text", "numbers"])
def test_text_and_numbers_in_chunks_of_one_attribute_are_refused(first):
    chunks = {"text": np.array(["1.0", "2.0"] * 50), "numbers": np.array([1.0, 2.0] * 50)}
    accumulator = GediAccumulator(reference=pd.Series(chunks[first], dtype="category"))
    if first == "numbers":
        accumulator = GediAccumulator()
    accumulator.update(Y[:100], sensitive_features=pd.Series(chunks.pop(first)))
    with pytest.raises(ValueError, match="where the reference holds"):
        accumulator.update(Y[:100], sensitive_features=next(iter(chunks.values())))
    with pytest.raises(ValueError, match="must hold numbers"):
        GediAccumulator().update(Y[:4], sensitive_features=np.array(["a", 1, "b", 2], dtype=object))


@pytest.mark.parametrize("chunk", [0, 1])
@pytest.mark.parametrize("name", ["y_true", "y_pred", "sensitive_features"])
def test_values_that_are_missing_in_rows_of_weight_0_are_refused_in_every_chunk(name, chunk):
    columns = {"y_true": Y.copy(), "y_pred": PREDICTED.copy(), "sensitive_features": X.copy()}
    weight = np.ones(N)
    weight[chunk * 600 + 7] = 0.0
    columns[name][weight == 0] = np.nan
    with pytest.raises(ValueError, match=f"{name}.*NaN"):
        gedi(**columns, sample_weight=weight)
    accumulator = GediAccumulator()
    for j, rows in enumerate((slice(0, 600), slice(600, N))):
        own = {key: column[rows] for key, column in columns.items()}
        if j == chunk:
            with pytest.raises(ValueError, match=f"{name}.*NaN"):
                accumulator.update(**own, sample_weight=weight[rows])
            break
        accumulator.update(**own, sample_weight=weight[rows])
    assert accumulator.n_rows_ == 600 * chunk


def test_threads_have_accumulators_of_their_own():
    assert "not thread-safe" in GediAccumulator.__doc__
    chunks = np.split(np.arange(N), 4)
    with ThreadPoolExecutor(4) as threads:
        parts = threads.map(lambda rows: accumulate([rows], reference=X[:50]), chunks)
        first, *others = parts
    for other in others:
        first.merge(other)
    assert first.gedi() == pytest.approx(gedi(PREDICTED, sensitive_features=X), rel=1e-9)


def test_labels_are_counted_by_pos_label():
    label = np.where(Y > 43, "yes", "no")
    accumulator = GediAccumulator(pos_label="yes")
    accumulator.update(label[:600], sensitive_features=X[:600])
    accumulator.update(label[600:], sensitive_features=X[600:])
    value = gedi(label, sensitive_features=X, pos_label="yes")
    assert accumulator.gedi() == pytest.approx(value, rel=1e-9)


@pytest.mark.filterwarnings("ignore::gedi_sklearn.exceptions.UnseenDependenceWarning")
@pytest.mark.parametrize("norm", ["l1", "sd"])
@pytest.mark.parametrize("relative", [True, False])
@pytest.mark.parametrize("predicted", [True, False])
def test_chunks_are_projected_as_all_rows_are(norm, relative, predicted):
    predictions = PREDICTED if predicted else None
    kernel = PolynomialKernel(3, standardize=True)
    chunks = np.split(np.arange(N), 4)
    accumulator = accumulate(chunks, predicted=predictions, kernel=kernel, weight=WEIGHT)
    given = {"threshold": 0.1, "relative": relative}
    kind = CoarseConstraint if norm == "l1" else DependenceConstraint
    constraint = kind(kernel=kernel, **given)
    correct = accumulator.correct_targets(constraint, target_weight=0.5)
    z = np.concatenate(
        [
            correct(Y[i], None if predictions is None else predictions[i], sensitive_features=X[i])
            for i in chunks
        ]
    )
    expected = project_targets(
        Y,
        predictions,
        sensitive_features=X,
        sample_weight=WEIGHT,
        constraint=constraint,
        target_weight=0.5,
    ).targets
    kept = WEIGHT > 0
    np.testing.assert_allclose(z[kept], expected[kept], rtol=1e-9)


def test_chunks_unlike_those_that_were_accumulated_are_not_projected():
    frame = pd.DataFrame({"age": X, "income": PREDICTED})
    constraint, given = CoarseConstraint(), {"sensitive_features": frame}
    plain = GediAccumulator().update(Y, **given).correct_targets(constraint)
    beside = GediAccumulator().update(Y, PREDICTED, **given).correct_targets(constraint)
    with pytest.raises(ValueError, match="the order differs"):
        plain(Y, sensitive_features=frame[["income", "age"]])
    with pytest.raises(ValueError, match=r"y_pred must be given if .* it had none"):
        plain(Y, PREDICTED, sensitive_features=frame)
    with pytest.raises(ValueError, match=r"y_pred must be given if .* it had some"):
        beside(Y, sensitive_features=frame)


@pytest.mark.filterwarnings("ignore::gedi_sklearn.exceptions.UnseenDependenceWarning")
@pytest.mark.parametrize("threshold", [0.1, [0.2, 0.0, np.inf]])
def test_chunks_are_projected_on_bounds_of_single_coefficients(threshold):
    kernel = PolynomialKernel(3, standardize=True)
    constraint = FineConstraint(kernel=kernel, threshold=threshold)
    correct = accumulate([np.arange(N)], kernel=kernel).correct_targets(constraint)
    given = {"sensitive_features": X}
    expected = project_targets(Y, PREDICTED, **given, constraint=constraint).targets
    np.testing.assert_allclose(correct(Y, PREDICTED, **given), expected, rtol=1e-9)


@pytest.mark.parametrize(
    ("constraint", "message"),
    [
        (CoarseConstraint, "must be a constraint object"),
        (0.2, "must be a constraint object"),
        (CoarseConstraint(kernel=2), "PolynomialKernel.* and the sums are those of Poly"),
        (CoarseConstraint(kernel="spline"), "the sums are those of PolynomialKernel"),
        (DidiConstraint(), "'groups', and the sums are those of PolynomialKernel"),
        (CoarseConstraint(relative=False, subset=1), "more than the predictions of all rows"),
        (CoarseConstraint(relative=False, on="residuals"), "more than the predictions"),
        (CoarseConstraint(on="probabilities"), "more than the predictions"),
        (CoarseConstraint(threshold=-1), "threshold"),
    ],
)
def test_what_does_not_bound_the_sums_is_refused(constraint, message):
    accumulator = GediAccumulator().update(Y, sensitive_features=X)
    with pytest.raises((TypeError, ValueError), match=message):
        accumulator.correct_targets(constraint)


def test_an_interval_needs_the_rows():
    found = GediAccumulator().update(Y, sensitive_features=X).inference()
    with pytest.warns(UndefinedMetricWarning, match="needs the rows"):
        assert np.isnan(found.interval).all()
    assert found.value < found.upper


def test_a_share_of_nothing_is_refused():
    accumulator = GediAccumulator().update(np.ones(N), sensitive_features=X)
    with pytest.raises(ValueError, match="a share of it is undefined"):
        accumulator.correct_targets(CoarseConstraint())


@pytest.mark.parametrize("norm", ["l1", "sd"])
def test_the_upper_bound_is_near_that_of_the_rows(norm):
    rng = np.random.default_rng(7)
    x, noise = rng.normal(size=(2, 20_000))
    y = x + noise * (1 + 0.5 * np.abs(x))
    accumulator = GediAccumulator(kernel=3)
    for rows in np.array_split(np.arange(20_000), 9):
        accumulator.update(y[rows], sensitive_features=x[rows])
    value = accumulator.gedi(norm=norm)
    found = accumulator.inference(norm=norm).upper - value
    given = {"sensitive_features": x, "kernel": PolynomialKernel(3), "norm": norm}
    expected = gedi_inference(y, **given).upper - value
    assert found == pytest.approx(expected, rel=0.35)  # 31 degrees of freedom
    assert accumulator.inference(norm=norm, fitted=True).upper > value + found
    share = accumulator.inference(norm=norm, relative=True).upper
    unit = accumulator.reference_value(norm, True)
    assert share == pytest.approx((value + found) / unit)


@pytest.mark.parametrize("weighted", [False, True])
def test_the_upper_bound_allows_for_rows_that_a_sample_lacks(weighted):
    """Where these decide, it is that of the rows to many digits, whatever came first."""
    rng = np.random.default_rng(1)
    x, noise = np.exp(rng.normal(size=5000)), rng.normal(size=5000)
    y, weight = x + noise, rng.integers(1, 4, size=5000) if weighted else None

    def accumulated(chunks):
        accumulator = GediAccumulator(kernel=3, reference=x)
        for rows in chunks:
            own = None if weight is None else weight[rows]
            accumulator.update(y[rows], sensitive_features=x[rows], sample_weight=own)
        return accumulator

    chunks = np.array_split(rng.permutation(5000), 12)
    given = {"sensitive_features": x, "kernel": 3, "norm": "sd", "sample_weight": weight}
    expected = gedi_inference(y, **given).upper
    assert expected > 1.5 * gedi(y, **given)
    whole = accumulated(chunks)
    merged = accumulated(chunks[5:]).merge(accumulated(chunks[:5]))
    restored = GediAccumulator.from_dict(json.loads(json.dumps(merged.to_dict())))
    for accumulator in (whole, merged, restored):
        assert accumulator.inference(norm="sd").upper == pytest.approx(expected, rel=1e-9)


def test_few_rows_have_no_upper_bound():
    few = GediAccumulator(kernel=2, reference=X).update(Y[:3], sensitive_features=X[:3])
    with pytest.warns(UndefinedMetricWarning, match="too few"):
        assert np.isnan(few.inference().upper)


@pytest.mark.slow
def test_the_upper_bound_holds_in_19_samples_of_20():
    """Of 400 samples about 380, at least 362 at the 0.1 % level."""
    rng = np.random.default_rng(11)
    held = 0
    for _ in range(400):
        x, noise = rng.normal(size=(2, 3000))
        accumulator = GediAccumulator(kernel=3, reference=np.linspace(-3, 3, 50))
        accumulator.update(0.2 * x + noise, sensitive_features=x)
        held += accumulator.inference().upper >= 0.2
    assert held >= 362


def events(*counts):
    """Labels of groups, each (rows, events), one after another."""
    return np.concatenate([np.arange(n) < m for n, m in counts]) * 1.0


TEXT = np.repeat(["a", "b"], [900, 300])


@pytest.mark.parametrize(
    ("attribute", "y", "message"),
    [
        (TEXT, events((900, 450), (300, 99)), "= b has 300 rows, 99 of them with the rarer"),
        (TEXT, events((900, 450), (300, 201)), "= b has 300 rows, 99 of them with the rarer"),
        (TEXT, events((900, 450), (300, 100)), None),
        (np.where(np.arange(N) % 120, "a", "b"), Y, "= b has 10 rows"),
        (TEXT, Y, None),
        (X, events(*[(48, 1)] * 25), "25 of 1200 rows have the rarer label"),
        (X, events(*[(12, 1)] * 100), None),
        (X, Y, None),
    ],
)
def test_a_limit_of_few_events_says_so(attribute, y, message):
    accumulator = GediAccumulator().update(y, sensitive_features=attribute)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert np.isfinite(accumulator.inference().upper)
    said = [str(one.message) for one in caught if one.category is FewRowsWarning]
    assert len(said) == (message is not None)
    assert message is None or message in said[0]


@pytest.mark.parametrize("size", [20, 700, 7_001, 90_000])
def test_chunks_of_every_size_are_dealt_to_all_parts_alike(size):
    x, y = np.random.default_rng(0).normal(size=(2, size))
    accumulator = GediAccumulator(2)
    for _ in range(-(-400_000 // size) if size > 100 else 500):
        accumulator.update(y, sensitive_features=x)
    weights = accumulator.sums_.part_weights
    assert len(weights) == 32
    assert weights.sum() == accumulator.n_rows_
    assert weights.max() <= 1.2 * weights.min()
