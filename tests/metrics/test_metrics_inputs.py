"""Containers, types, missing values, labels: what the indicators accept and how they refuse."""

from decimal import Decimal
from functools import partial

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from gedi_sklearn import FourierKernel, PolynomialKernel, project_targets
from gedi_sklearn.metrics import didi, gedi, gedi_coefficients

AGE = [20, 31, 45, 52, 60, 38]
didi_of_bins = partial(didi, n_bins=3)
TARGET = [0, 1, 1, 0, 1, 1]
INDICATORS = [gedi, gedi_coefficients, didi, didi_of_bins]
CONTAINERS = {
    "list": list,
    "tuple": tuple,
    "float32": lambda v: np.asarray(v, dtype=np.float32),
    "int8": lambda v: np.asarray(v, dtype=np.int8),
    "uint8": lambda v: np.asarray(v, dtype=np.uint8),
    "object": lambda v: np.asarray(v, dtype=object),
    "column": lambda v: np.asarray(v)[:, None],
    "series": lambda v: pd.Series(v, index=np.arange(len(v))[::-1] * 3 + 100),
    "duplicate index": lambda v: pd.Series(v, index=[7] * len(v)),
    "nullable": lambda v: pd.Series(v, dtype="Int64"),
    "frame": lambda v: pd.DataFrame({"value": v}),
    "polars": pl.Series,
    "polars frame": lambda v: pl.DataFrame({"value": v}),
}


@pytest.mark.parametrize("indicator", INDICATORS)
@pytest.mark.parametrize("container", CONTAINERS)
def test_every_container_gives_the_same(indicator, container):
    convert = CONTAINERS[container]
    expected = indicator(TARGET, sensitive_features=AGE)
    value = indicator(convert(TARGET), sensitive_features=convert(AGE), sample_weight=None)
    np.testing.assert_array_equal(value, expected)


def test_rows_of_a_record_batch_are_rows_of_a_subset():
    """Scikit-learn takes a batch for a list of rows, each of which was then a level."""
    batch = pa.record_batch({"age": AGE, "born": [5, 3, 8, 1, 9, 2]})
    columns = np.c_[batch["age"], batch["born"]]
    expected = gedi(TARGET, AGE, sensitive_features=columns, subset=1)
    assert gedi(TARGET, AGE, sensitive_features=batch, subset=1) == expected


def test_decimals_are_numbers_of_any_task():
    prices = [1.5, 2.25, 0.75, 3.5, 2.0, 1.25]
    decimals = [Decimal(str(price)) for price in prices]
    expected = didi(prices, sensitive_features=TARGET)
    assert didi(decimals, prices, sensitive_features=TARGET) == expected
    assert didi(prices, np.array(decimals), sensitive_features=TARGET) == expected


def test_small_integers_do_not_overflow():
    x = np.array([100, 120, 90, 127], dtype=np.int8)
    y = np.array([0, 100, 127, -128], dtype=np.int8)
    kernel = PolynomialKernel(2, standardize=True)
    assert gedi(y, sensitive_features=x, kernel=kernel) == pytest.approx(
        gedi(y.astype(float), sensitive_features=x.astype(float), kernel=kernel)
    )
    assert didi(y, sensitive_features=x, task="regression") == pytest.approx(
        didi(y.astype(float), sensitive_features=x.astype(float), task="regression")
    )


def test_integers_that_floats_cannot_tell_apart_are_refused():
    with pytest.raises(ValueError, match=r"sensitive_features holds integers above 2\*\*53"):
        gedi(TARGET, sensitive_features=2**60 + np.array(AGE))
    nanoseconds = 10**18 + np.array(AGE) * 10**9
    assert gedi(TARGET, sensitive_features=nanoseconds) * 1e9 == pytest.approx(
        gedi(TARGET, sensitive_features=AGE)
    )


def test_booleans_are_numbers():
    y = np.array(TARGET, dtype=bool)
    assert gedi(y, sensitive_features=AGE) == gedi(TARGET, sensitive_features=AGE)
    assert gedi(TARGET, sensitive_features=y, sample_weight=[1, 1, 1, 1, 2, 1]) > 0
    assert didi(y, sensitive_features=y) == pytest.approx(2.0)


def test_rows_are_matched_by_position_not_by_index():
    rng = np.random.default_rng(0)
    a, y, p = rng.normal(size=(3, 40))
    index = rng.permutation(1000)[:40]
    frame = {
        name: pd.Series(values, index=order)
        for name, values, order in [("a", a, index), ("y", y, index[::-1]), ("p", p, [7] * 40)]
    }
    for indicator in (gedi, didi_of_bins):
        assert indicator(frame["y"], frame["p"], sensitive_features=frame["a"]) == indicator(
            y, p, sensitive_features=a
        )


@pytest.mark.parametrize(
    "age",
    [
        [25, 31, None, 44],
        [25, 31, float("nan"), 44],
        np.array([25, 31, np.nan, 44]),
        np.array([25, 31, None, 44], dtype=object),
        pd.Series([25, 31, None, 44]),
        pd.Series([25, 31, None, 44], dtype="Int64"),
        pl.Series([25, 31, None, 44]),
        np.ma.masked_equal([25, 31, -1, 44], -1),
    ],
    ids=lambda value: type(value).__module__.split(".")[0],
)
@pytest.mark.parametrize("indicator", INDICATORS)
def test_missing_number_is_refused(indicator, age):
    with pytest.raises(ValueError, match=r"sensitive_features contains NaN: 1 of 4"):
        indicator([0, 1, 0, 1], sensitive_features=age)


@pytest.mark.parametrize(
    "group",
    [
        ["a", "b", np.nan, "a"],
        ["a", "b", None, "a"],
        np.array(["a", "b", None, "a"], dtype=object),
        pd.Series(["a", "b", None, "a"]),
        pd.Series(["a", "b", None, "a"], dtype="category"),
        pd.Series(["a", "b", None, "a"], dtype="string"),
        pl.Series(["a", "b", None, "a"]),
    ],
    ids=lambda value: type(value).__module__.split(".")[0],
)
def test_missing_group_is_refused_and_no_group(group):
    with pytest.raises(ValueError, match=r"sensitive_features contains NaN: 1 of 4"):
        didi([0, 1, 0, 1], sensitive_features=group)


@pytest.mark.parametrize("values", [dict.fromkeys([1, 2, 3, 4]), {1, 2, 3, 4}, {"age": [1, 2]}])
def test_what_has_no_order_of_rows_is_refused(values):
    with pytest.raises(ValueError, match="sensitive_features must hold one value for each row"):
        gedi([0, 1, 0, 1], sensitive_features=values)
    with pytest.raises(ValueError, match="y_true must hold one value for each row"):
        didi(values, sensitive_features=[1, 2, 1, 2])


def test_tuples_as_values_are_said_to_be_parts():
    index = pd.MultiIndex.from_arrays([AGE, TARGET])
    with pytest.raises(ValueError, match="holds a tuple as a value"):
        gedi(TARGET, sensitive_features=index)
    assert gedi(TARGET, sensitive_features=index.to_frame()) > 0


def test_a_structured_array_is_no_column_of_levels():
    records = pd.DataFrame({"age": [20, 30, 40, 50]}).to_records()
    fields = r"structured array with the fields \['index', 'age'\]"
    for measure in (gedi, didi):
        with pytest.raises(ValueError, match=fields):
            measure([0, 1, 0, 1], sensitive_features=records)


@pytest.mark.parametrize("indicator", [gedi, didi, didi_of_bins])
@pytest.mark.parametrize("bad", [np.nan, None])
def test_missing_targets_are_refused(indicator, bad):
    with pytest.raises(ValueError, match="y_true contains NaN"):
        indicator([0.0, bad, 1.0, 0.5], sensitive_features=[1, 2, 3, 4])
    with pytest.raises(ValueError, match="y_pred contains NaN"):
        indicator([0.0, 2.5, 1.0, 0.5], [0.5, bad, 1.5, 0.5], sensitive_features=[1, 2, 3, 4])


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        ({"y_pred": [1.0, 2.0]}, "y_pred"),
        ({"sensitive_features": [1.0, 2.0]}, "sensitive_features"),
        ({"sample_weight": [1.0, 2.0]}, "sample_weight"),
        ({"sample_weight": [1.0, -2.0, 1.0]}, "sample_weight"),
        ({"sample_weight": [0.0, 0.0, 0.0]}, "sample_weight"),
        ({"y_true": [0.5, np.inf, 2.0]}, "y_true"),
        ({"sensitive_features": None}, "sensitive_features"),
        ({"relative": "yes"}, "relative"),
        ({"pos_label": "z", "y_true": ["a", "b", "a"]}, "pos_label"),
    ],
)
@pytest.mark.parametrize("indicator", [gedi, didi, didi_of_bins])
def test_errors_name_the_argument(indicator, arguments, name):
    valid = {"y_true": [0.5, 1.5, 2.0], "sensitive_features": [1, 2, 3]}
    with pytest.raises(ValueError, match=name):
        indicator(**{**valid, **arguments})


@pytest.mark.parametrize(
    ("option", "value"),
    [("kernel", "poly"), ("kernel", 0), ("kernel", 1.5), ("norm", "l2"), ("kernel", 3)],
)
def test_options_are_checked(option, value):
    with pytest.raises(ValueError, match=option):
        gedi([0.5, 1.5], sensitive_features=[1, 2], **{option: value})


@pytest.mark.parametrize("indicator", [gedi, didi_of_bins])
def test_infinity_is_refused(indicator):
    with pytest.raises(ValueError, match="sensitive_features contains infinity"):
        indicator([0.5, 1.5, 2.0], sensitive_features=[1, 2, np.inf])


def test_text_attribute_names_the_argument():
    with pytest.raises(ValueError, match="sensitive_features must hold numbers"):
        didi([0.5, 1.5], sensitive_features=["1", "2"], n_bins=3)


def test_precomputed_kernel_follows_the_rows():
    x, y = np.array([1.0, 2, 4, 7]), np.array([1.0, 3, 2, 5])
    w = np.array([1.0, 0, 2, 1])
    value = gedi(y, sensitive_features=x, kernel=np.c_[x, x**2], sample_weight=w)
    expected = gedi(y, sensitive_features=x, kernel=lambda v: np.c_[v, v**2], sample_weight=w)
    assert value == pytest.approx(expected)
    with pytest.raises(ValueError, match="kernel has 3 rows"):
        gedi(y, sensitive_features=x, kernel=np.ones((3, 1)))


@pytest.mark.parametrize("labels", [TARGET, [3 + 4 * v for v in TARGET], ["ny"[v] for v in TARGET]])
def test_labels_become_numbers_by_pos_label(labels):
    positive = labels[1]
    expected = gedi(TARGET, sensitive_features=AGE)
    for y in (labels, np.asarray(labels), pd.Series(labels, dtype="category")):
        assert gedi(y, sensitive_features=AGE, pos_label=positive) == pytest.approx(expected)
        score = [0.1, 0.9, 0.5, 0.2, 0.7, 0.3]
        assert gedi(y, score, sensitive_features=AGE, pos_label=positive) == pytest.approx(
            gedi(score, sensitive_features=AGE)
        )
    assert gedi(labels, sensitive_features=AGE, pos_label=labels[0]) == pytest.approx(expected)


@pytest.mark.parametrize("y", [["n", "y", "y", "n", "y", "y"], pd.Series(TARGET, dtype="category")])
def test_labels_without_pos_label_are_refused(y):
    with pytest.raises(ValueError, match="pass `pos_label`"):
        gedi(y, sensitive_features=AGE)


def test_float_labels_are_told_from_scores():
    y = [3.0, 7.0, 7.0, 3.0, 7.0, 7.0]
    assert gedi(y, y[::-1], sensitive_features=AGE, pos_label=7) == pytest.approx(
        gedi(TARGET[::-1], sensitive_features=AGE)
    )
    # Beside the labels 0 and 1 a hard probability of class 0 is a score, not a label.
    hard = [1.0, 0.0, 0.0, 1.0, 0.0, 1.0]
    assert gedi(TARGET, hard, sensitive_features=AGE, pos_label=0) == pytest.approx(
        gedi(hard, sensitive_features=AGE)
    )
    with pytest.raises(ValueError, match=r"scores in \[0, 1\]"):
        gedi(["n", "y"] * 3, [0.5, 2, 1, 0, 0, 0], sensitive_features=AGE, pos_label="y")


@pytest.mark.parametrize("dtype", [int, bool])
def test_codes_beside_text_are_no_labels(dtype):
    names, codes = np.array(["n", "y"] * 3), np.array([0, 1] * 3).astype(dtype)
    for measure in (gedi, didi):
        with pytest.raises(ValueError, match="y_true holds text and y_pred numbers"):
            measure(names, codes, sensitive_features=AGE, pos_label="y")
        with pytest.raises(ValueError, match="y_true holds numbers and y_pred text"):
            measure(codes, names, sensitive_features=AGE, pos_label=1)


def test_a_fold_without_the_positive_class_is_measured():
    assert gedi(["n"] * 6, sensitive_features=AGE, pos_label="y") == 0.0


def test_task_follows_the_type_of_target_not_the_dtype():
    as_float = [float(v) for v in TARGET]
    assert didi(as_float, sensitive_features=AGE) == didi(TARGET, sensitive_features=AGE)
    assert didi(TARGET, sensitive_features=AGE) == pytest.approx(
        2 * didi(TARGET, sensitive_features=AGE, task="regression")
    )


@pytest.mark.parametrize(
    ("y", "p"), [([1, 2, 3, 4, 5, 6], None), (TARGET, [0.1, 0.7, 0.5, 0.2, 0.6, 0.1])]
)
@pytest.mark.parametrize("indicator", [didi, didi_of_bins])
def test_an_ambiguous_task_is_asked_for(indicator, y, p):
    with pytest.raises(ValueError, match="Pass task="):
        indicator(y, p, sensitive_features=AGE)
    assert indicator(y, p, sensitive_features=AGE, task="regression") > 0


@pytest.mark.parametrize(
    ("y", "p", "match"),
    [
        (["a", "b", "c"], [0.1, 0.5, 0.2], "3 classes"),
        ([0, 1, 1], [0.1, 0.5, 1.2], "scores"),
        (["a", "b", "b"], [0, 1, 1], "one kind"),
        (["a", 1, "b"], None, "mixes text"),
    ],
)
def test_classification_refuses_what_is_no_label_or_score(y, p, match):
    with pytest.raises(ValueError, match=match):
        didi(y, p, sensitive_features=[1, 2, 3], task="classification")


def test_inputs_are_read_only_and_unchanged():
    rng = np.random.default_rng(0)
    y, p, a = rng.normal(size=(3, 30))
    a = np.repeat(a[:10], 3)  # values that DIDI can take as groups
    w = rng.integers(0, 3, 30).astype(float)
    arrays = [v.copy() for v in (y, p, a, w)]
    for values in arrays:
        values.setflags(write=False)
    options = {"sensitive_features": arrays[2], "sample_weight": arrays[3]}
    for kernel in (PolynomialKernel(2), FourierKernel(1), np.exp, arrays[2][:, None]):
        assert gedi(*arrays[:2], **options, kernel=kernel, relative=True) > 0
    assert didi(*arrays[:2], **options, relative=True, n_bins=3) > 0
    assert didi(*arrays[:2], **options) > 0
    frame = pd.DataFrame({"y": y, "p": p, "a": a, "w": w})
    before = frame.copy(deep=True)
    gedi(frame["y"], frame["p"], sensitive_features=frame["a"], sample_weight=frame["w"])
    didi(frame["y"], frame["p"], sensitive_features=frame["a"], sample_weight=frame["w"], n_bins=3)
    pd.testing.assert_frame_equal(frame, before)


def test_kernel_objects_stay_unfitted():
    kernel = PolynomialKernel(2, standardize=True)
    gedi([0.5, 1, 3], sensitive_features=[1, 2, 4], kernel=kernel)
    assert not hasattr(kernel, "powers_")


@pytest.mark.parametrize("label", [{}, object(), None], ids=["dict", "object", "None"])
def test_labels_without_an_order_are_refused(label):
    x = np.arange(4.0)
    for use in (didi, partial(gedi, pos_label=1), project_targets):
        with pytest.raises((ValueError, TypeError), match=r"^y(_true)?\b"):
            use([label] * 4, sensitive_features=x)


def test_a_column_of_a_table_is_copied_and_a_column_alone_is_not():
    seen = []
    table = np.arange(12.0).reshape(4, 3) ** 2
    for x in (table[:, 1], table[:, 1].copy()):
        gedi(x, sensitive_features=x, kernel=lambda x: seen.append(x) or x[:, None])
        assert seen[-1].flags.c_contiguous
        assert seen[-1].tolist() == x.tolist()
    assert np.shares_memory(seen[-1], x)
