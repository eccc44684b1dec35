"""The displays: the numbers that they draw, and what they draw them with."""

import sys
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn import config_context
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

from gedi_sklearn import (
    CoarseConstraint,
    DependenceConstraint,
    FineConstraint,
    MovingTargetsClassifier,
    MovingTargetsRegressor,
    PolynomialKernel,
    ProjectedClassifier,
    ProjectedRegressor,
)
from gedi_sklearn.exceptions import RankDeficientKernelError
from gedi_sklearn.metrics import gedi, gedi_coefficients, quantile_bin_edges
from gedi_sklearn.model_selection import tradeoff_curve
from gedi_sklearn.plotting import (
    CutsDisplay,
    DependenceDisplay,
    GediCoefficientsDisplay,
    MovingTargetsHistoryDisplay,
    TradeoffDisplay,
)

plt = pytest.importorskip("matplotlib.pyplot", reason="the displays need the extra `plot`")

KERNEL = PolynomialKernel(3, standardize=True)
OF_PREDICTIONS = (DependenceDisplay, GediCoefficientsDisplay)


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    plt.close("all")


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"age": rng.uniform(20, 70, 400), "hours": rng.normal(40, 5, 400)})
    y = X["age"] / 10 + (X["age"] - 45) ** 2 / 200 + X["hours"] / 5 + rng.normal(size=400)
    return X, y


# --- cuts


@pytest.mark.parametrize("weighted", [False, True])
def test_the_curve_over_cuts_is_the_indicator_of_each(data, weighted):
    X, y = data
    predictions = LinearRegression().fit(X, y).predict(X)
    weight = np.arange(len(y)) % 3 * 1.0 if weighted else None
    measured = {"sensitive_features": X["age"], "sample_weight": weight, "kernel": 3}
    display = CutsDisplay.from_predictions(y, predictions, **measured, name="line")
    assert display.names == ["targets", "line"]
    cuts, rates, heights = (own[1] for own in (display.cuts, display.rates, display.deviations))
    for t, rate, height in list(zip(cuts, rates, heights, strict=True))[::40]:
        above = (predictions > t) * 1.0
        assert rate == pytest.approx(np.average(above, weights=weight))
        assert height == pytest.approx(gedi(above, **measured, norm="sd"), abs=1e-12)
    worst = gedi(predictions, **measured, norm="sd", on="distribution")
    assert heights.max() == pytest.approx(worst)
    assert_allclose(display.lines_[1].get_xydata(), np.c_[rates, 100 * heights])
    assert f"line (at most {100 * worst:.3g})" in display.lines_[1].get_label()
    alone = CutsDisplay.from_predictions(predictions, **measured)
    assert alone.chance == pytest.approx(display.chance)
    assert 0.05 < alone.chance < 0.2


def test_labels_have_a_single_cut_and_probabilities_all(data):
    X, y = data
    model = LogisticRegression().fit(X, y > y.mean())
    measured = {"sensitive_columns": "age"}
    labels = CutsDisplay.from_estimator(model, X, y > y.mean(), **measured)
    assert [len(own) for own in labels.rates] == [1, 1]
    assert labels.lines_[1].get_marker() == "o"
    scores = CutsDisplay.from_estimator(
        model, X, y > y.mean(), **measured, response_method="predict_proba", color="red"
    )
    assert len(scores.rates[1]) > 100
    assert scores.lines_[1].get_color() == "red"
    constant = CutsDisplay.from_predictions(np.ones(len(y)), sensitive_features=X["age"])
    assert len(constant.rates[0]) == 0


# --- coefficients


def test_bars_are_the_coefficients_of_targets_and_predictions(data):
    X, y = data
    predictions = LinearRegression().fit(X, y).predict(X)
    measured = {"sensitive_features": X["age"], "kernel": KERNEL}
    display = GediCoefficientsDisplay.from_predictions(y, predictions, **measured)
    for z, row, bars in zip((y, predictions), display.coefficients, display.bars_, strict=True):
        coefficients, terms = gedi_coefficients(z, return_names=True, **measured)
        assert_array_equal(row, coefficients)
        assert terms == ["age", "age^2", "age^3"]
        assert display.terms == ["age (std)", "age (std)^2", "age (std)^3"]
        assert_array_equal([bar.get_height() for bar in bars], coefficients)
        assert f"(GeDI = {gedi(z, **measured):.3g})" in bars.get_label()
    assert [label.get_text() for label in display.ax_.get_xticklabels()] == display.terms
    assert display.figure_ is display.ax_.figure


@pytest.mark.parametrize("kernel", ["spline", KERNEL, "polynomial"], ids=str)
def test_bars_of_the_deviation_explained_are_what_every_term_adds(data, kernel):
    X, y = data
    predictions = y / 2
    measured = {"sensitive_features": X["age"], "kernel": kernel, "norm": "sd"}
    display = GediCoefficientsDisplay.from_predictions(y, predictions, **measured)
    for z, row, bars in zip((y, predictions), display.coefficients, display.bars_, strict=True):
        size = gedi(z, **measured)
        assert np.sqrt(np.sum(row**2)) == pytest.approx(size)
        assert_array_equal([bar.get_height() for bar in bars], row)
        assert f"(explains {size:.3g})" in bars.get_label()
    assert display.ax_.get_ylabel() == "explained deviation"
    if kernel is KERNEL:
        # The first term alone, with its sign: what a kernel of lower degree explains.
        rising = GediCoefficientsDisplay.from_predictions(-y, **measured).coefficients[0]
        assert_allclose(rising, -display.coefficients[0])
        for degree in (1, 2, 3):
            lower = {**measured, "kernel": degree}
            explained = np.linalg.norm(display.coefficients[0, :degree])
            assert explained == pytest.approx(gedi(y, **lower))
        slope = gedi_coefficients(y, sensitive_features=X["age"])[0]
        assert display.coefficients[0, 0] == pytest.approx(slope * X["age"].std(ddof=0))
    with pytest.raises(ValueError, match="'norm' parameter"):
        GediCoefficientsDisplay.from_predictions(y, **{**measured, "norm": "l2"})


def test_targets_alone_are_one_series(data):
    X, y = data
    display = GediCoefficientsDisplay.from_predictions(y, sensitive_features=X["age"])
    assert display.names == ["targets"]
    assert display.coefficients.shape == (1, 1)


def test_categories_and_long_terms_have_bars(data):
    X, y = data
    attribute = pd.DataFrame({"age": X["age"], "city": np.where(X["hours"] > 40, "Rome", "Bonn")})
    display = GediCoefficientsDisplay.from_predictions(
        y, sensitive_features=attribute, kernel=PolynomialKernel(3, standardize=True)
    )
    assert {"city=Rome", "age city=Rome"} <= set(display.terms)
    assert {label.get_rotation() for label in display.ax_.get_xticklabels()} == {45.0}


# --- dependence


def test_curve_is_mean_plus_kernel_times_coefficients(data):
    X, y = data
    x = X["age"].to_numpy()
    display = DependenceDisplay.from_predictions(
        2 * y, y, sensitive_features=X["age"], kernel=KERNEL
    )
    alpha = gedi_coefficients(y, sensitive_features=x, kernel=KERNEL)
    columns = np.vander((x - x.mean()) / x.std(), 4, increasing=True)[:, 1:]
    at_grid = np.vander((display.grid - x.mean()) / x.std(), 4, increasing=True)[:, 1:]
    expected = y.mean() + (at_grid - columns.mean(axis=0)) @ alpha
    assert_allclose(display.curve, expected)
    assert_allclose(display.targets_curve, 2 * expected)
    assert_array_equal(display.curve_.get_ydata(), display.curve)
    assert_array_equal(display.targets_curve_.get_ydata(), display.targets_curve)
    assert display.gedi == gedi(y, sensitive_features=x, kernel=KERNEL)
    assert (display.ax_.get_xlabel(), display.ax_.get_ylabel()) == ("age", "predictions")


def test_curve_of_raw_birth_years_keeps_its_digits():
    year = np.arange(1930.0, 2006.0)
    with pytest.warns(UserWarning, match="sensitive_features"):
        display = DependenceDisplay.from_predictions(0.1 * year, sensitive_features=year, kernel=5)
    assert_allclose(display.curve, 0.1 * display.grid, rtol=1e-12)


def test_means_are_those_of_the_quantile_bins(data):
    X, y = data
    display = DependenceDisplay.from_predictions(y, sensitive_features=X["age"], bins=4)
    edges = quantile_bin_edges(X["age"], n_bins=4)
    groups = pd.cut(X["age"], edges, include_lowest=True)
    assert_allclose(display.bin_target, y.groupby(groups, observed=True).mean())
    assert_allclose(display.bin_attribute, X["age"].groupby(groups, observed=True).mean())
    assert_array_equal(display.bins_.get_ydata(), display.bin_target)


def test_an_attribute_of_few_values_has_a_bin_for_each():
    x = np.array([0.0, 0.0, 0.0, 1.0, 5.0])
    display = DependenceDisplay.from_predictions([1.0, 2.0, 3.0, 4.0, 6.0], sensitive_features=x)
    assert_array_equal(display.bin_attribute, [0, 1, 5])
    assert_array_equal(display.bin_target, [2, 4, 6])


def test_weights_count_as_repeated_rows(data):
    X, y = data
    weight = np.random.default_rng(1).integers(0, 3, len(y))
    options = {"kernel": KERNEL, "bins": 5}
    # Among few distinct values both have the same bins.
    age = X["age"].round(-1)
    weighted = DependenceDisplay.from_predictions(
        y, sensitive_features=age, sample_weight=weight, **options
    )
    repeated = DependenceDisplay.from_predictions(
        y.repeat(weight), sensitive_features=age.repeat(weight), **options
    )
    for name in ("grid", "curve", "bin_attribute", "bin_target"):
        assert_allclose(getattr(weighted, name), getattr(repeated, name), rtol=1e-9)


@pytest.mark.parametrize(("subsample", "shown"), [(50, 50), (None, 400), (1000, 400)])
def test_rows_are_subsampled(data, subsample, shown):
    X, y = data
    display = DependenceDisplay.from_predictions(
        y, sensitive_features=X["age"], subsample=subsample
    )
    assert len(display.scatter_.get_offsets()) == shown
    assert {*display.target} <= {*y}


def test_labels_are_shown_as_shares_alone(data):
    X, y = data
    display = DependenceDisplay.from_predictions(
        np.where(y > y.mean(), "yes", "no"), sensitive_features=X["age"], pos_label="yes"
    )
    assert display.scatter_ is None
    assert 0 <= display.bin_target.min() <= display.bin_target.max() <= 1


def test_styles_reach_the_artists(data):
    X, y = data
    display = DependenceDisplay.from_predictions(
        y,
        sensitive_features=X["age"],
        scatter_kwargs={"alpha": 0.9},
        curve_kwargs={"color": "green", "label": "own"},
        bin_kwargs={"marker": "x"},
    )
    assert display.scatter_.get_alpha() == 0.9
    assert (display.curve_.get_color(), display.curve_.get_label()) == ("green", "own")
    assert display.bins_.get_marker() == "x"


def test_short_names_of_styles_replace_what_they_stand_for(data):
    X, y = data
    style = {"c": "green"}
    kwargs = dict.fromkeys(["scatter_kwargs", "curve_kwargs", "bin_kwargs"], style)
    shown = DependenceDisplay.from_predictions(y, sensitive_features=X["age"], **kwargs)
    assert shown.curve_.get_color() == shown.bins_.get_color() == "green"
    bars = GediCoefficientsDisplay.from_predictions(y, sensitive_features=X["age"], **style)
    cuts = CutsDisplay.from_predictions(y, sensitive_features=X["age"], lw=3, **style)
    curve = tradeoff_curve(ProjectedRegressor(sensitive_columns=0), X, y, thresholds=[1.0], cv=2)
    line = TradeoffDisplay(curve=curve).plot(**style).line_
    assert_allclose(shown.scatter_.get_facecolor()[0, :3], [0, 128 / 255, 0])
    assert_allclose(bars.bars_[0][0].get_facecolor()[:3], [0, 128 / 255, 0])
    assert (cuts.lines_[0].get_color(), cuts.lines_[0].get_linewidth()) == ("green", 3)
    assert line.get_color() == "green"


@pytest.mark.parametrize("cls", OF_PREDICTIONS)
def test_an_estimator_without_probabilities_is_named(data, cls):
    X, y = data
    model = LinearRegression().fit(X, y)
    with pytest.raises(AttributeError, match="LinearRegression has none"):
        cls.from_estimator(model, X, y, sensitive_columns="age", response_method="predict_proba")


@pytest.mark.parametrize(
    ("attribute", "kernel", "message"),
    [
        (lambda X: X, "polynomial", "shows one numeric attribute; .* has 2"),
        (lambda X: X["age"].gt(40).map(str), "polynomial", "shows one numeric attribute"),
        (lambda X: X["age"], [[1.0], [2.0]] * 200, "which a matrix has no values for"),
    ],
)
def test_what_has_no_curve_is_refused(data, attribute, kernel, message):
    X, y = data
    with pytest.raises(ValueError, match=message):
        DependenceDisplay.from_predictions(y, sensitive_features=attribute(X), kernel=kernel)


# --- from estimators


@pytest.mark.parametrize("cls", OF_PREDICTIONS)
@pytest.mark.parametrize("door", ["values", "column"])
def test_estimators_are_shown_by_their_predictions(data, cls, door):
    X, y = data
    model = LinearRegression().fit(X, y)
    attribute = (
        {"sensitive_features": X["age"]} if door == "values" else {"sensitive_columns": "age"}
    )
    _, ax = plt.subplots()
    display = cls.from_estimator(model, X, y, kernel=KERNEL, ax=ax, **attribute)
    expected = cls.from_predictions(y, model.predict(X), sensitive_features=X["age"], kernel=KERNEL)
    name = "coefficients" if cls is GediCoefficientsDisplay else "curve"
    assert_array_equal(getattr(display, name), getattr(expected, name))
    assert display.ax_ is ax
    texts = [*display.ax_.get_legend().get_texts(), display.ax_.yaxis.get_label()]
    assert any("LinearRegression" in text.get_text() for text in texts)
    assert display.plot().ax_ is not ax


@pytest.mark.parametrize("method", ["predict", "predict_proba", "decision_function"])
@pytest.mark.parametrize("labels", [("no", "yes"), (0, 1), (-1, 1)])
def test_responses_of_a_classifier_belong_to_the_second_class(data, method, labels):
    X, y = data
    y = np.where(y > y.mean(), labels[1], labels[0])
    model = LogisticRegression(C=1e-3, max_iter=1000).fit(X, y)
    display = GediCoefficientsDisplay.from_estimator(
        model, X, y, sensitive_columns="age", response_method=method
    )
    response = getattr(model, method)(X)
    response = {"predict": response == labels[1], "predict_proba": response.T[-1]}.get(
        method, response
    )
    attribute = {"sensitive_features": X["age"]}
    assert_allclose(display.coefficients[0], gedi_coefficients(y == labels[1], **attribute))
    assert_allclose(display.coefficients[1], gedi_coefficients(response, **attribute))


@pytest.mark.parametrize("cls", OF_PREDICTIONS)
@pytest.mark.parametrize("door", ["sensitive_features", "sensitive_columns"])
def test_an_estimator_that_asks_for_the_attribute_is_given_it(data, cls, door):
    X, y = data
    given = {door: X["age"] if door == "sensitive_features" else "age"}
    regressor = ProjectedRegressor().fit(X, y, sensitive_features=X["age"])
    display = cls.from_estimator(regressor, X, y, **given)
    expected = cls.from_predictions(
        y, regressor.predict(X, sensitive_features=X["age"]), sensitive_features=X["age"]
    )
    for name in ("coefficients", "curve"):
        if hasattr(expected, name):
            assert_allclose(getattr(display, name), getattr(expected, name))
    labels = np.where(y > y.median(), "yes", "no")
    classifier = ProjectedClassifier().fit(X, labels, sensitive_features=X["age"])
    cls.from_estimator(classifier, X, labels, response_method="predict_proba", **given)


@pytest.mark.parametrize("cls", OF_PREDICTIONS)
@pytest.mark.parametrize("routing", [False, True])
def test_a_pipeline_hands_the_attribute_on_to_its_last_step(data, cls, routing):
    X, y = data
    with config_context(enable_metadata_routing=routing):
        pipe = make_pipeline(
            StandardScaler(), Pipeline([("sc", StandardScaler()), ("fair", ProjectedClassifier())])
        )
        name = "sensitive_features" if routing else "pipeline__fair__sensitive_features"
        pipe.fit(X, y > y.median(), **{name: X["age"]})
        proba = pipe.predict_proba(X, sensitive_features=X["age"])[:, 1]
        expected = cls.from_predictions(y > y.median(), proba, sensitive_features=X["age"])
        for given in ({"sensitive_features": X["age"]}, {"sensitive_columns": "age"}):
            display = cls.from_estimator(
                pipe, X, y > y.median(), response_method="predict_proba", **given
            )
            for drawn in ("coefficients", "curve"):
                if hasattr(expected, drawn):
                    assert_allclose(getattr(display, drawn), getattr(expected, drawn))
        # One that finds its attribute in X is not given it.
        pipe = make_pipeline(
            StandardScaler(), ProjectedRegressor(constraint=CoarseConstraint(), sensitive_columns=0)
        ).fit(X, y)
        cls.from_estimator(pipe, X, y, sensitive_columns="age")


def test_one_of_three_classes_is_shown_against_the_rest(data):
    X, y = data
    labels = pd.qcut(y, 3, labels=False)
    model = LogisticRegression(max_iter=1000).fit(X, labels)
    for method in ("predict", "predict_proba"):
        given = {"sensitive_columns": "age", "response_method": method}
        with pytest.raises(ValueError, match=r"3 classes .*pass the one .* pos_label="):
            DependenceDisplay.from_estimator(model, X, labels, **given)
        display = DependenceDisplay.from_estimator(model, X, labels, **given, pos_label=2)
        shown = model.predict(X) == 2 if method == "predict" else model.predict_proba(X)[:, 2]
        assert display.gedi == gedi(shown, sensitive_features=X["age"])


@pytest.mark.parametrize("cls", OF_PREDICTIONS)
def test_wrong_arguments_are_named(data, cls):
    X, y = data
    model = LinearRegression().fit(X, y)
    with pytest.raises(ValueError, match=r"needs exactly one of .* got neither"):
        cls.from_estimator(model, X, y)
    with pytest.raises(ValueError, match=r"needs exactly one of .* got both"):
        cls.from_estimator(model, X, y, sensitive_features=y, sensitive_columns="age")
    with pytest.raises(ValueError, match="'response_method' parameter"):
        cls.from_estimator(model, X, y, sensitive_columns=0, response_method="score")
    with pytest.raises(ValueError, match="'kernel' parameter"):
        cls.from_predictions(y, sensitive_features=X["age"], kernel=0)
    with pytest.raises(RankDeficientKernelError):
        cls.from_predictions(y, sensitive_features=np.zeros(len(y)))


@pytest.mark.parametrize("name", ["cost in $", "$x$ and $y_", "_hidden", "targets"])
def test_names_are_shown_as_they_are(data, name):
    X, y = data
    X = X.rename(columns={"age": name})
    measured = {"sensitive_features": X[name], "name": name}
    bars = GediCoefficientsDisplay.from_predictions(y, y / 2, **measured)
    bars.figure_.canvas.draw()
    labels = [text.get_text().strip().replace(r"\$", "$") for text in bars.ax_.legend_.get_texts()]
    assert [label.partition(" (GeDI")[0] for label in labels] == ["targets", name]
    curve = DependenceDisplay.from_predictions(y, y / 2, **measured)
    curve.figure_.canvas.draw()
    assert curve.ax_.get_ylabel().strip().replace(r"\$", "$") == name
    tradeoff = tradeoff_curve(
        ProjectedRegressor(LinearRegression(), CoarseConstraint(), sensitive_columns=[0]),
        X,
        y,
        thresholds=[0.5],
    )
    drawn = TradeoffDisplay(curve=tradeoff, name=name, score_name=name).plot()
    drawn.figure_.canvas.draw()
    assert len(drawn.ax_.legend_.get_texts()) == 1


# --- histories


def test_history_is_drawn_with_its_threshold(data):
    X, y = data
    fair = MovingTargetsRegressor(
        constraint=CoarseConstraint(), sensitive_columns="age", max_iter=3
    ).fit(X, y)
    display = MovingTargetsHistoryDisplay.from_estimator(fair, linewidth=3)
    assert set(display.lines_) == {
        "targets_gedi",
        "predictions_gedi",
        "loss_targets",
        "loss_predictions",
    }
    for field, line in display.lines_.items():
        assert_array_equal(line.get_xdata(), [0, 1, 2, 3])
        assert_array_equal(line.get_ydata(), fair.history_[field])
        assert line.get_linewidth() == 3
    assert set(display.threshold_line_.get_ydata()) == {fair.threshold_}
    assert display.selected_line_ is None
    assert [ax.figure for ax in display.axes_] == [display.figure_] * 2


def test_history_shows_validation_data_and_the_kept_iteration(data):
    X, y = data
    y = y > y.mean()
    fair = MovingTargetsClassifier(
        LogisticRegression(C=1e-3),
        CoarseConstraint(),
        sensitive_columns="age",
        max_iter=3,
        select="best",
    ).fit(X, y, X_val=X, y_val=y)
    _, axes = plt.subplots(1, 2)
    display = MovingTargetsHistoryDisplay.from_estimator(fair, ax=axes)
    assert "validation_gedi" in display.lines_
    assert (display.selected_line_ is None) == (fair.selected_iteration_ == fair.n_iter_)
    assert_array_equal(display.axes_, axes)
    kept = MovingTargetsHistoryDisplay(history=fair.history_, selected_iteration=1).plot()
    assert set(kept.selected_line_.get_xdata()) == {1}


def test_thresholds_of_each_column_draw_no_line(data):
    X, y = data
    constraint = FineConstraint([0.2, np.inf, 0.0], kernel=KERNEL)
    fair = MovingTargetsRegressor(constraint=constraint, sensitive_columns="age", max_iter=2)
    display = MovingTargetsHistoryDisplay.from_estimator(fair.fit(X, y))
    assert display.threshold_line_ is None


def test_history_needs_moving_targets_and_two_axes(data):
    X, y = data
    with pytest.raises(ValueError, match="LinearRegression has recorded none"):
        MovingTargetsHistoryDisplay.from_estimator(LinearRegression().fit(X, y))
    fair = MovingTargetsRegressor(
        constraint=CoarseConstraint(), sensitive_columns="age", max_iter=1
    ).fit(X, y)
    with pytest.raises(ValueError, match="ax must be two matplotlib Axes"):
        MovingTargetsHistoryDisplay.from_estimator(fair, ax=plt.gca())


# --- trade-offs


def test_a_trade_off_is_drawn_with_its_intervals_and_chance(data):
    X, y = data
    path = [1.0, 0.3, 0.6]
    model = ProjectedRegressor(constraint=CoarseConstraint(), sensitive_columns="age")
    _, ax = plt.subplots()
    display = TradeoffDisplay.from_estimator(
        model, X, y, thresholds=path, cv=3, name="own", ax=ax, line_kwargs={"color": "green"}
    )
    curve = tradeoff_curve(model, X, y, thresholds=path, cv=3)
    assert_array_equal(display.line_.get_xdata(), curve.gedi)
    assert_array_equal(display.line_.get_ydata(), curve.score)
    ends = np.array(display.bars_.get_segments())
    assert_array_equal(ends[:, :, 0], np.c_[curve.low, curve.high])
    assert_array_equal(ends[:, :, 1], np.c_[curve.score, curve.score])
    assert [text.get_text() for text in display.texts_] == ["1", "0.3", "0.6"]
    assert display.chance_.get_paths()[0].get_extents().xmax == curve.null_q95.max()
    assert (display.ax_, display.line_.get_color()) == (ax, "green")
    assert (ax.get_ylabel(), ax.get_legend_handles_labels()[1]) == ("R²", ["own"])
    assert ax.get_xlabel() == "GeDI, share of that of the targets, unseen rows"
    assert display.floor_.get_text() == "by chance"


def test_a_dependence_can_be_named_in_units_of_the_predictions(data):
    X, y = data
    measured = {"sensitive_features": X["age"], "kernel": "spline", "norm": "sd"}
    display = DependenceDisplay.from_predictions(y, **measured)
    assert display.curve_.get_label() == f"fit (explains {gedi(y, **measured):.3g})"
    curve = tradeoff_curve(
        ProjectedRegressor(
            constraint=DependenceConstraint(kernel=1, relative=False), sensitive_columns="age"
        ),
        X,
        y,
        thresholds=[1.0],
        cv=3,
    )
    assert curve.indicator_name == "explained deviation"


def test_trade_offs_of_failed_fits_and_arrays_of_bounds_are_drawn(data):
    X, y = data
    curve = tradeoff_curve(
        ProjectedRegressor(constraint=FineConstraint(kernel=KERNEL), sensitive_columns="age"),
        X,
        y,
        thresholds=[[0.2, np.inf, np.inf], [0.2, 0.0, 0.0]],
        cv=2,
    )
    display = TradeoffDisplay(curve=curve).plot(marker="x")
    assert display.texts_ == []
    missing = {name: np.array([0.5, np.nan]) for name in ("gedi", "score", "low", "high")}
    missing["null_q95"] = np.array([0.1, np.nan])
    failed = replace(curve, thresholds=np.array([1.0, 0.0]), **missing)
    assert len(TradeoffDisplay(curve=failed).plot().texts_) == 1


@pytest.mark.parametrize(
    ("scoring", "label"), [(None, "accuracy"), ("roc_auc", "roc_auc"), (lambda *_: 1.0, "<lambda>")]
)
def test_the_score_of_a_trade_off_is_named(data, scoring, label):
    X, y = data
    model = ProjectedClassifier(constraint=CoarseConstraint(), sensitive_columns="age")
    display = TradeoffDisplay.from_estimator(
        model, X, y > y.mean(), thresholds=[np.inf], cv=2, scoring=scoring
    )
    assert display.ax_.get_ylabel() == label


# --- without matplotlib


@pytest.mark.parametrize(
    "draw",
    [
        lambda: GediCoefficientsDisplay.from_predictions([1, 2], sensitive_features=[1, 2]),
        lambda: DependenceDisplay.from_predictions([1, 2], sensitive_features=[1, 2]),
        lambda: MovingTargetsHistoryDisplay.from_estimator(LinearRegression()),
        lambda: MovingTargetsHistoryDisplay(history={}).plot(),
        lambda: TradeoffDisplay.from_estimator(None, [], [], thresholds=[]),
        lambda: TradeoffDisplay(curve=None).plot(),
    ],
)
def test_the_error_without_matplotlib_names_the_extra(monkeypatch, draw):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match=r"Display\.\w+ needs .*'\.\[plot\]' in a clone"):
        draw()
