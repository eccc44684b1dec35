"""The report: the table of all indicators, and what is said of each attribute."""

import json
import re
import shutil
import subprocess
import sys
from dataclasses import replace
from enum import Enum
from html.parser import HTMLParser
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import UndefinedMetricWarning

from gedi_sklearn import PolynomialKernel, __version__, fairness_report
from gedi_sklearn.exceptions import RankDeficientKernelError
from gedi_sklearn.metrics import didi, gedi, gedi_inference, hgr

COLUMNS = [
    "attribute",
    "indicator",
    "parameter",
    "value",
    "y_true",
    "null_mean",
    "null_q95",
    "low",
    "high",
    "upper",
]


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    x = rng.uniform(20, 60, size=300)
    y = x / 20 + rng.normal(size=300)
    return x, y, 0.5 * y + 0.1 * rng.normal(size=300)


def test_nobody_is_warned_of_a_grid_that_no_one_asked_for(data):
    x = np.random.default_rng(0).normal(size=300)
    with pytest.warns(UserWarning, match="outside the grid"):
        value = hgr(data[1], sensitive_features=x)
    options = {"degrees": [1], "bins": [3], "n_resamples": 20}
    table = fairness_report(data[1], sensitive_features=x, **options).table
    assert (table["parameter"][-1], table["value"][-1]) == ("kde", value)


def test_values_are_those_of_the_indicators(data):
    x, y, p = data
    table = fairness_report(y, p, sensitive_features=x, n_resamples=20).to_frame()
    assert list(table.columns) == COLUMNS
    for row in table.itertuples():
        options = {"sensitive_features": x}
        if row.indicator.startswith("gedi"):
            options["kernel"] = PolynomialKernel(row.parameter, standardize=True)
            options["norm"] = "sd" if row.indicator == "gedi_sd" else "l1"
            expected, reference = gedi(p, **options), gedi(y, **options)
            null = gedi_inference(p, **options)
            assert row.null_mean == pytest.approx(null.null_mean)
            assert row.null_q95 == pytest.approx(null.null_q95, rel=0.1)
            np.testing.assert_allclose([row.low, row.high], gedi_inference(p, **options).interval)
            assert row.upper == pytest.approx(gedi_inference(p, **options).upper)
        elif row.indicator == "binned_didi":
            expected = didi(p, n_bins=row.parameter, **options)
            reference = didi(y, n_bins=row.parameter, **options)
        else:
            expected, reference = hgr(p, **options), hgr(y, **options)
        assert row.value == pytest.approx(expected)
        assert row.y_true == pytest.approx(reference)
    assert (table["null_mean"] < table["null_q95"]).all()
    assert (table["low"] <= table["value"]).all()
    assert (table["value"] <= table["high"]).all()
    assert (table["value"] < table["upper"]).all()
    assert list(table["parameter"]) == [d for d in range(1, 6) for _ in "ab"] + [2, 3, 5, 10, "kde"]


def test_null_of_didi_agrees_with_permutations(data):
    x, _, p = data
    rng = np.random.default_rng(1)
    table = fairness_report(
        p, sensitive_features=x, degrees=[1], bins=[3, 5], n_resamples=10
    ).to_frame()
    for row in table[table["indicator"] == "binned_didi"].itertuples():
        permuted = [
            didi(rng.permutation(p), sensitive_features=x, n_bins=row.parameter) for _ in range(200)
        ]
        assert row.null_mean == pytest.approx(np.mean(permuted), rel=0.15)


def test_independent_predictions_stay_near_the_null():
    rng = np.random.default_rng(2)
    x, y, p = rng.uniform(size=(3, 400))
    table = fairness_report(y, p, sensitive_features=x, n_resamples=50).to_frame()
    linear = table[table["indicator"] != "hgr"]
    assert (linear["low"] == 0).all()
    assert (linear["value"] < 3 * linear["null_mean"]).all()


def test_few_values_are_groups_and_limit_the_degree():
    rng = np.random.default_rng(3)
    x = rng.integers(0, 3, 200)
    y = rng.integers(0, 2, 200)
    table = fairness_report(y, sensitive_features=x, n_resamples=10).to_frame()
    assert list(table["indicator"]) == ["gedi", "gedi_sd", "gedi", "gedi_sd", "didi", "hgr"]
    value = table.loc[table["indicator"] == "didi", "value"].item()
    assert value == pytest.approx(didi(y, sensitive_features=x))


def test_labels_categories_and_weights():
    rng = np.random.default_rng(4)
    group = rng.choice(["a", "b", "c"], size=200)
    y = rng.choice(["no", "yes"], size=200)
    weight = rng.uniform(1, 2, size=200)
    table = fairness_report(
        y, sensitive_features=group, pos_label="yes", sample_weight=weight
    ).to_frame()
    assert list(table["indicator"]) == ["gedi", "gedi_sd", "didi"]
    value = table.loc[table["indicator"] == "didi", "value"].item()
    assert value == pytest.approx(didi(y, sensitive_features=group, sample_weight=weight))


def test_places_of_the_curve_take_weights_as_repeated_rows():
    rng = np.random.default_rng(4)
    x, noise = rng.normal(size=(2, 100))
    y, times = x + noise, np.where(x > 0, 5, 1)
    options = {"degrees": [1], "bins": [2], "n_resamples": 1}
    weighted = fairness_report(y, sensitive_features=x, sample_weight=times, **options)
    x, y = np.repeat(x, times), np.repeat(y, times)
    repeated = fairness_report(y, sensitive_features=x, **options)
    assert weighted.findings[0].at == pytest.approx(repeated.findings[0].at)
    assert weighted.findings[0].mean == pytest.approx(repeated.findings[0].mean)


def test_predictions_that_are_constant_up_to_rounding_depend_on_nothing():
    """As those of a learner that is bounded by 0: what is left is rounding, some of it by x."""
    x = np.random.default_rng(0).uniform(20, 60, 200)
    p = 88.17 - 1e-17 * x + np.spacing(88.17) * (x > 40)
    report = fairness_report(2 * x, p, sensitive_features=x, degrees=[1], n_resamples=1)
    (found,) = report.findings
    assert (found.share, found.p_value, report.table["value"][-1]) == (0.0, 1.0, 0.0)


def test_levels_without_an_order_are_reported_by_their_names():
    sector = [Enum("Sector", ["public", "private"])(1 + (j % 3 == 0)) for j in range(30)]
    (found,) = fairness_report(np.arange(30.0), sensitive_features=sector, n_resamples=1).findings
    assert found.at == ["Sector.private", "Sector.public"]
    assert found.mean == pytest.approx([13.5, 15.0])


def test_attributes_of_one_name_are_numbered():
    """The sentence on HGR is found by the name, and was said of each of them twice."""
    x, y = np.random.default_rng(0).normal(size=(2, 60))
    twice = pd.DataFrame(np.c_[x, y], columns=["x", "x"])
    options = {"threshold": np.array(0.5), "n_resamples": 1, "degrees": [1], "bins": [2]}
    report = fairness_report(x + y, sensitive_features=twice, **options)
    assert [found.attribute for found in report.findings] == ["attribute 0", "attribute 1"]
    assert [found.asked for found in report.findings] == [0.5, 0.5]
    assert str(report).count("HGR") == 2


def test_bins_that_merge_are_reported():
    x = np.r_[np.zeros(150), np.linspace(1, 2, 50)]
    y = np.linspace(0.1, 1, 200)
    with pytest.warns(UserWarning, match=r"5 bins were asked for, 2 are used"):
        table = fairness_report(
            y, sensitive_features=x, degrees=[1], bins=[5], n_resamples=5
        ).to_frame()
    assert table["parameter"].tolist() == [1, 1, 2, "kde"]


def test_without_pandas_there_are_the_other_forms(data, monkeypatch):
    x, y, _ = data
    report = fairness_report(y, sensitive_features=x, degrees=[1], bins=[2], n_resamples=5)
    assert isinstance(report.to_frame(), pd.DataFrame)
    monkeypatch.setitem(sys.modules, "pandas", None)
    assert {len(column) for column in report.table.values()} == {4}
    assert "In the targets, the attribute explains a standard deviation of" in str(report)
    with pytest.raises(ModuleNotFoundError):
        report.to_frame()


def test_a_constant_attribute_is_an_error(data):
    _, y, _ = data
    with pytest.raises(RankDeficientKernelError):
        fairness_report(y, sensitive_features=np.ones(300))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"degrees": [0]}, "degrees must hold integers of at least 1, got 0"),
        ({"degrees": [1, 1.5]}, "degrees must hold integers of at least 1, got 1.0"),
        ({"degrees": ["2"]}, "degrees must hold integers of at least 1, got '2'"),
        ({"bins": [2.5]}, "bins must hold integers of at least 2, got 2.5"),
        ({"bins": [1]}, "bins must hold integers of at least 2, got 1"),
    ],
)
def test_degrees_and_bins_are_never_rounded_or_left_out(data, options, message):
    x, y, p = data
    with pytest.raises(ValueError, match=message):
        fairness_report(y, p, sensitive_features=x, **options)


def test_degrees_come_in_any_order(data):
    x, y, _ = data
    table = fairness_report(
        y, sensitive_features=np.round(x / 20), degrees=[5, 2, 1], bins=[2]
    ).to_frame()
    assert list(table["parameter"][table["indicator"] == "gedi"]) == [2, 1]


# --- what is said of each attribute

NAMES = ["<b>age</b> & more", "sex"]


@pytest.fixture
def people():
    rng = np.random.default_rng(5)
    age = rng.uniform(20, 60, 400)
    sex = rng.choice(["f", "m"], 400)
    y = 0.1 * (age - 40) ** 2 / 10 + (sex == "m") + rng.normal(size=400)
    p = 0.5 * y + 0.1 * rng.normal(size=400)
    return pd.DataFrame({NAMES[0]: age, NAMES[1]: sex}), y, p


def test_several_attributes_have_rows_for_each_and_joint_ones(people):
    X, y, p = people
    options = {"degrees": [1, 2], "bins": [3], "n_resamples": 5}
    table = fairness_report(y, p, sensitive_features=X, **options).to_frame()
    joint = " + ".join(NAMES)
    rows = table.groupby("attribute", sort=False)["indicator"].apply(list)
    assert rows.to_dict() == {
        NAMES[0]: ["gedi", "gedi_sd", "gedi", "gedi_sd", "binned_didi", "hgr"],
        NAMES[1]: ["gedi", "gedi_sd", "didi"],
        joint: ["gedi", "gedi_sd", "gedi", "gedi_sd"],
    }
    for name in NAMES:
        alone = fairness_report(y, p, sensitive_features=X[name], **options).to_frame()
        own = table[table["attribute"] == name].reset_index(drop=True)
        # The same indicator has the same value under independence, wherever it stands.
        pd.testing.assert_frame_equal(own, alone, check_dtype=False)
    both = table[(table["attribute"] == joint) & (table["indicator"] == "gedi_sd")]
    expected = gedi(
        p, sensitive_features=X, kernel=PolynomialKernel(2, standardize=True), norm="sd"
    )
    assert both["value"].iloc[-1] == pytest.approx(expected)


@pytest.mark.parametrize("norm", ["sd", "l1"])
def test_findings_are_those_of_the_indicators(people, norm):
    X, y, p = people
    x = X[NAMES[0]]
    measured = {"sensitive_features": x, "norm": norm, "kernel": 3}
    if norm == "l1":
        measured["kernel"] = PolynomialKernel(3, standardize=True)
    (found,) = fairness_report(y, p, **measured, n_resamples=5).findings
    assert found.value == pytest.approx(gedi(p, **measured))
    assert found.left == pytest.approx(gedi(y, p, **measured, relative=True))
    interval = gedi_inference(y, p, **measured, relative=True).interval
    np.testing.assert_allclose([found.low, found.high], interval)
    assert found.upper == pytest.approx(gedi_inference(y, p, **measured, relative=True).upper)
    assert found.slope == pytest.approx(np.cov(x, p)[0, 1] / np.var(x, ddof=1))
    test = gedi_inference(p, **measured, n_resamples=999, method="permutation")
    assert found.p_value == pytest.approx(test.pvalue, abs=0.02)
    if norm == "sd":
        assert found.share == pytest.approx(found.value / np.std(p))
    else:
        assert found.share is None


def test_the_curve_is_the_mean_of_the_predictions(people):
    X, y, p = people
    w = np.random.default_rng(6).integers(0, 3, 400)
    report = fairness_report(y, p, sensitive_features=X, sample_weight=w, n_resamples=5)
    age, sex = report.findings
    assert sex.at == ["f", "m"]
    rows = np.repeat(np.arange(400), w)
    for level, mean, mean_true in zip(sex.at, sex.mean, sex.mean_true, strict=True):
        own = rows[X[NAMES[1]].to_numpy()[rows] == level]
        assert (mean, mean_true) == pytest.approx((p[own].mean(), y[own].mean()))
    assert len(age.at) == 10
    assert X[NAMES[0]].min() < min(age.at) < max(age.at) < X[NAMES[0]].max()


def test_the_curve_over_cuts_is_the_indicator_of_each(people):
    X, y, p = people
    report = fairness_report(y, p, sensitive_features=X, n_resamples=5)
    for name, found in zip(NAMES, report.findings, strict=True):
        how = {"sensitive_features": X[name], "norm": "sd"}
        if name == NAMES[0]:
            how["kernel"] = "spline"
        top = gedi((p > np.sort(p)[-41]) * 1.0, **how)
        assert found.cuts.at(0.1) == pytest.approx(100 * top)
        worst = 100 * gedi(p, **how, on="distribution")
        assert max(found.cuts.values) == pytest.approx(worst)
        assert f"{worst:.3g} points at the worst cut (targets: " in str(report)
        assert 0 < found.cuts.null_q95 < 0.2
    labels = fairness_report((y > 0) * 1, (p > 0) * 1, sensitive_features=X, n_resamples=5)
    assert all(found.cuts is None for found in labels.findings)
    assert "worst cut" not in str(labels)


@pytest.mark.parametrize(
    ("left", "low", "upper", "verdict"),
    [
        (0.1, 0.05, 0.2, "met, including at the upper confidence limit"),
        (0.2, 0.1, 0.3, "met on these rows, but not at the upper confidence limit"),
        (0.3, 0.2, 0.4, "exceeded on these rows, but the excess is within sampling error"),
        (0.4, 0.3, 0.5, "not met"),
        (np.nan, np.nan, np.nan, "none: the targets do not depend"),
    ],
)
def test_verdicts(people, left, low, upper, verdict):
    X, y, _ = people
    (found,) = fairness_report(
        y, sensitive_features=X[NAMES[0]], threshold=0.2, n_resamples=5
    ).findings
    assert replace(found, left=left, low=low, upper=upper).verdict.startswith(verdict)
    assert replace(found, asked=None).verdict is None


def test_targets_that_do_not_depend_on_the_attribute():
    x, y = np.tile([-1.0, 1.0], 50), np.repeat([0.0, 1.0], 50)
    with pytest.warns(UndefinedMetricWarning, match="y_true does not depend on the attribute"):
        report = fairness_report(y, x, sensitive_features=x, threshold=0.2, n_resamples=5)
    assert "that remains" not in str(report)
    assert "Verdict: none: the targets do not depend on the attribute" in str(report)
    assert report.to_dict()["findings"][0]["left"] is None


def test_text_has_units_and_says_what_was_asked(people):
    X, y, p = people
    report = fairness_report(
        y,
        p,
        sensitive_features=X,
        threshold=[0.6, None],
        attribute_unit=["year", None],
        target_unit="points",
        about={"Data": "five folds", "Date": "1 May"},
        n_resamples=5,
    )
    text = str(report)
    for part in ("Data: five folds.", "Date: 1 May.", "scikit-learn ", "Rows: 400."):
        assert part in text
    assert f"Per additional year of {NAMES[0]}, the predictions are " in text
    assert re.search(r"lowest for f \(.* points\) and highest for m", text)
    assert text.count("Bound: at most 60% of the dependence may remain. Verdict: met") == 1
    # Targets alone are not called predictions.
    alone = str(fairness_report(y, sensitive_features=X, n_resamples=5))
    assert "predictions" not in alone
    assert json.loads(json.dumps(report.to_dict(), allow_nan=False)) == report.to_dict()
    assert json.loads(report.to_json()) == report.to_dict()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"threshold": [0.1]},
            "threshold must be one value, or one for each of the 2 attributes",
        ),
        (
            {"threshold": [0.1, -1]},
            "threshold must hold shares of at least 0, or None; got -1",
        ),
        ({"attribute_unit": ["year", 1]}, "attribute_unit must hold text, or None; got 1"),
        (
            {"about": {"Date": 2026}},
            "about must have a line of text for each name and value; got 'Date': 2026",
        ),
        ({"about": {"A\nB": "C"}}, "about must have a line of text"),
        ({"norm": "l2"}, "The 'norm' parameter"),
    ],
)
def test_errors_of_what_is_said(people, options, message):
    X, y, p = people
    with pytest.raises(ValueError, match=message):
        fairness_report(y, p, sensitive_features=X, n_resamples=5, **options)


class Tags(HTMLParser):
    def __init__(self):
        super().__init__()
        self.opened, self.texts = [], []

    def handle_starttag(self, tag, attrs):
        self.opened.append((tag, dict(attrs)))

    def handle_data(self, data):
        self.texts.append(data)


@pytest.fixture
def page(people, tmp_path):
    X, y, p = people
    report = fairness_report(y, p, sensitive_features=X, threshold=0.2, n_resamples=5)
    path = tmp_path / "report.html"
    assert report.to_html(path) is None
    assert report.to_html() == path.read_text(encoding="utf-8")
    return path


def test_page_escapes_names_and_asks_for_nothing(page):
    parser = Tags()
    parser.feed(page.read_text(encoding="utf-8"))
    assert "b" not in {tag for tag, _ in parser.opened}
    assert NAMES[0] in parser.texts
    assert [tag for tag, _ in parser.opened].count("svg") == 6
    assert not {"src", "href"} & {name for _, attrs in parser.opened for name in attrs}
    assert "url(" not in page.read_text(encoding="utf-8")


CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("chrome")


@pytest.mark.browser
@pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium")
@pytest.mark.parametrize("width", [1280, 390])
def test_page_is_no_wider_than_the_window_and_asks_for_nothing(page, width, tmp_path):
    # The page in a frame of the width: windows of a browser without a screen have a least width.
    frame = tmp_path / "frame.html"
    frame.write_text(
        f'<iframe src="{page.name}" width="{width}" height="800" style="border: 0"></iframe>'
        "<script>onload = () => {"
        "const page = document.querySelector('iframe').contentDocument.documentElement;"
        "const asked = frames[0].performance.getEntriesByType('resource');"
        "document.title = [page.scrollWidth, asked.length].join(' ') }</script>"
    )
    command = [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--dump-dom"]
    command += [f"--user-data-dir={tmp_path / 'profile'}", "--allow-file-access-from-files"]
    found = subprocess.run(
        [*command, frame.as_uri()], capture_output=True, text=True, timeout=60, check=True
    )
    scroll, asked = map(int, re.search(r"<title>(\d+) (\d+)</title>", found.stdout).groups())
    assert scroll <= width
    assert asked == 0


@pytest.mark.parametrize("asked", [301, 10**9, 10**18])
def test_more_bins_than_rows_are_refused(data, asked):
    x, y, p = data
    with pytest.raises(ValueError, match=f"bins asks for {asked} bins of 300 rows"):
        fairness_report(y, p, sensitive_features=x, bins=[asked], degrees=[1], n_resamples=9)
    # Where an attribute is measured by groups there are no bins.
    options = {"bins": [asked], "degrees": [1, 10**9], "n_resamples": 9}
    table = fairness_report(y, sensitive_features=np.round(x / 20), **options).table
    assert table["indicator"] == ["gedi", "gedi_sd", "didi", "hgr"]
    with pytest.raises(RankDeficientKernelError, match="300 distinct value"):
        gedi(y, sensitive_features=x, kernel=10**9)


def test_curves_of_any_names_are_well_formed():
    """Control characters and halves of surrogate pairs are no characters of XML or UTF-8."""
    strange = "a\x00b\x0b\x1b<&\"'\ufffe é\U0001f600"
    group = pd.Series(np.array([strange, "b"])[np.arange(40) % 2], name=strange, dtype=object)
    number = pd.Series(np.arange(40.0), name="x\x01")
    attributes = pd.DataFrame({strange: group, "x\x01": number})
    y = np.random.default_rng(0).normal(size=40)
    options = {"degrees": [1], "n_resamples": 9, "about": {"Data": "half a pair: \ud800"}}
    page = fairness_report(y, sensitive_features=attributes, **options).to_html()
    page.encode("utf-8")
    curves = re.findall("<svg.*?</svg>", page, flags=re.DOTALL)
    assert len(curves) == 4
    for curve, axis in zip(curves, ["mean", "points explained"] * 2, strict=True):
        texts = [own.text or "" for own in ElementTree.fromstring(curve)]
        assert any(text.startswith(axis) for text in texts)
        assert "\x00" not in "".join(texts)
    assert "a\ufffdb\ufffd\ufffd&lt;&amp;" in page
    assert "é\U0001f600" in page


def test_what_is_not_defined_is_no_number():
    """Three rows leave no degree of freedom beside two coefficients."""
    x, y = np.array([0.0, 1.0, 3.0]), np.array([1.0, 2.0, 5.0])
    with pytest.warns(UndefinedMetricWarning):
        report = fairness_report(y, y[::-1], sensitive_features=x, degrees=[1, 2], n_resamples=9)
    page = report.to_html()
    assert np.isnan(report.table["upper"][2])
    assert "<td>–</td>" in page
    assert "–: not defined on these rows." in page
    assert "nan" not in re.sub("<style>.*?</style>", "", page)
    assert "nan" not in str(report)


def test_a_slope_of_the_targets_has_its_own_sign_and_a_least_p_value_is_said():
    age = np.arange(200.0)
    page = str(fairness_report(-age, 0.5 * age, sensitive_features=age, n_resamples=5))
    assert "the predictions are 0.5 higher on average (1 lower in the targets)" in page
    assert "(p ≤ 0.001)" in page


def test_predictions_with_the_means_of_the_targets_are_no_targets():
    sex, pay = ["f", "m"] * 20, np.tile([1.0, 3.0, 3.0, 7.0], 10)
    means = np.where(np.array(sex) == "f", 2.0, 5.0)
    given = {"sensitive_features": sex, "threshold": 0.5, "n_resamples": 5}
    said = str(fairness_report(pay, means, **given))
    assert "In the predictions, the attribute explains" in said
    assert "100% of the total (1.5, 69% in the targets)" in said
    assert "Share of the targets' dependence that remains: 100%" in said
    # Targets without predictions are called so, in the pictures as well.
    assert "predictions" not in fairness_report(pay, **given).to_html().split("<table")[0]


def test_numbers_have_no_exponent():
    x = np.array([0.0, 1.0] * 10)
    page = str(fairness_report(999.7 * x, sensitive_features=x, n_resamples=5))
    assert "1,000 higher on average" in page


def test_what_an_auditor_takes_away(people, tmp_path):
    X, y, p = people
    options = {"sensitive_features": X, "degrees": [1], "bins": [2], "n_resamples": 5}
    options["about"] = {"Model": "ridge"}
    report, again = (fairness_report(y, p, **options, random_state=3) for _ in range(2))
    other = fairness_report(y, p + 1e-12, **options, random_state=np.random.RandomState(3))
    assert report.to_json() == again.to_json()
    assert report.data_hash != other.data_hash
    assert (report.random_state, other.random_state) == (3, None)
    for part in ("Model: ridge.", "Seed 3.", report.data_hash):
        assert part in str(report)
        assert part in report.to_html()
    for write in (report.to_json, report.to_csv):
        assert write(tmp_path / "file") is None
        assert (tmp_path / "file").read_text(encoding="utf-8") == write()
        assert report.data_hash in write()
    frame = pd.read_csv(tmp_path / "file", comment="#")
    expected = report.to_frame().astype({"parameter": str})
    pd.testing.assert_frame_equal(frame, expected, check_dtype=False)
    assert json.loads(report.to_json())["format_version"] == 1
    assert report.versions["gedi-sklearn"] == __version__
    assert "srcdoc" in report._repr_html_()


def test_p_values_of_several_attributes_are_holms(people):
    X, y, p = people
    noise = np.random.default_rng(7).normal(size=len(y))
    X = X.assign(noise=noise, weak=noise + 0.15 * p)
    findings = fairness_report(y, p, sensitive_features=X, n_resamples=5).findings
    first, *others = ordered = sorted(findings, key=lambda one: one.p_value)
    assert first.adjusted_p_value == pytest.approx(4 * first.p_value)
    assert others[-1].adjusted_p_value == max(
        [others[-1].p_value, *(one.adjusted_p_value for one in ordered[:-1])]
    )
    (alone,) = fairness_report(y, p, sensitive_features=X["weak"], n_resamples=5).findings
    assert alone.adjusted_p_value == alone.p_value


@pytest.mark.parametrize(
    ("share", "text"), [(0.2, "20%"), (0.2001, "20.01%"), (0.204, "20.4%"), (np.inf, "any share")]
)
def test_a_share_has_the_digits_that_tell_it_from_its_bound(people, share, text):
    X, y, p = people
    age = X[NAMES[0]]
    report = fairness_report(y, p, sensitive_features=age, threshold=0.2, n_resamples=5)
    findings = (replace(report.findings[0], left=share),)
    assert f"that remains: {text} (" in str(replace(report, findings=findings))
