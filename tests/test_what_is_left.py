"""What a bound leaves: its models, its measures, what it saves."""

from dataclasses import replace

import numpy as np
import pytest
from joblib import Memory
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.linear_model import LinearRegression

from benchmarks import what_is_left
from benchmarks._storage import read_rows
from benchmarks.what_is_left import CASES, FittedOnce, Unit, build, premium, units

PREMIUM, *_, AGE_AND_SEX = CASES


def test_units_are_models_with_names_of_their_own(tmp_path):
    every = list(units())
    assert len({unit.key for unit in every}) == len(every)
    data = replace(premium(20), X=np.c_[np.arange(20.0), np.arange(20) % 2])
    for unit in every:
        clone(build(unit, data, range(len(unit.case.attributes)), Memory(tmp_path)))


def test_a_list_has_a_constraint_for_each_attribute_and_degree_1_for_the_binary_one():
    data = replace(premium(20), X=np.c_[np.arange(20.0), np.arange(20) % 2])
    unit = Unit(AGE_AND_SEX, what_is_left.MOVING_TARGETS, "sd, degree 5")
    constraints = build(unit, data, [0, 1], None).constraint
    assert [constraint.kernel.degree for constraint in constraints] == [5, 1]
    assert {constraint.norm for constraint in constraints} == {"sd"}


def test_a_share_is_that_of_the_deviation_explained_of_the_targets():
    x = np.linspace(-1, 1, 201)
    y = 100 * x**2 + x
    for name in ("left_polynomial", "left_spline"):
        options = what_is_left.MEASURES[name](x)
        halved = what_is_left.gedi(y, y / 2, sensitive_features=x, **options)
        assert halved == pytest.approx(0.5)


def test_the_slope_of_the_premium_is_small_and_its_curve_is_not():
    data = premium()
    centred = data.sensitive - data.sensitive.mean()
    slope, curve = (np.corrcoef(column, data.y)[0, 1] ** 2 for column in (centred, centred**2))
    assert slope < 0.02
    assert curve > 0.6


class Counted(LinearRegression):
    fits = 0

    def fit(self, X, y):
        Counted.fits += 1
        return super().fit(X, y)


def test_a_learner_is_fitted_once_on_the_same_rows(tmp_path):
    data, memory = premium(50), Memory(tmp_path, verbose=0)
    first, second = (FittedOnce(Counted(), memory).fit(data.X, data.y) for _ in range(2))
    assert Counted.fits == 1
    assert_array_equal(first.predict(data.X), second.predict(data.X))
    other = FittedOnce(Counted(), memory).fit(data.X, 2 * data.y)
    assert Counted.fits == 2
    assert_allclose(other.predict(data.X), 2 * first.predict(data.X))


def test_a_run_saves_its_units_and_does_not_repeat_them(tmp_path, capsys, monkeypatch):
    monkeypatch.setitem(what_is_left.LEARNERS, "HistGB-small", (None, LinearRegression))
    options = ["--case", "premium/age", "--setting", "coarse, degree 1", "sd, spline"]
    options += ["--output", str(tmp_path)]
    what_is_left.main(options)
    first = (tmp_path / "what_is_left.csv").read_bytes()
    what_is_left.main(options)
    assert (tmp_path / "what_is_left.csv").read_bytes() == first
    assert "4 of 4 units are in" in capsys.readouterr().err
    lines = read_rows(tmp_path / "what_is_left.csv", what_is_left.COLUMNS)
    assert [line["model"] for line in lines] == list(what_is_left.MODELS[:2]) * 2
    assert all(line["n_folds"] == "5" for line in lines)


def test_the_page_holds_the_tables_of_the_saved_results():
    lines = read_rows(what_is_left.RESULTS / "what_is_left.csv", what_is_left.COLUMNS)
    page = what_is_left.PAGE.read_text(encoding="utf-8")
    assert what_is_left.table(lines) in page
    assert what_is_left.defaults_table(lines) in page
