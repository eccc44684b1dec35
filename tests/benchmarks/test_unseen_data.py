"""The comparison on unseen data: its rows, its rivals, what it saves."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.base import clone
from sklearn.linear_model import Ridge
from sklearn.metrics import r2_score

from benchmarks import unseen_data
from benchmarks._storage import read_rows
from benchmarks._unseen_rows import FairRidge, rows_of
from benchmarks.tasks import TASKS, load_task, split
from gedi_sklearn.metrics import gedi

RACE, PCT_BLACK, SEX, AGE = TASKS


# Bounds of every kind on purpose, whatever they leave.
pytestmark = pytest.mark.filterwarnings("ignore::gedi_sklearn.exceptions.UnseenDependenceWarning")


def row_named(task, name, constraint="coarse"):
    (row,) = (r for r in rows_of(task) if (r.name, r.constraint) == (name, constraint))
    return row


@pytest.mark.parametrize("task", TASKS, ids=str)
def test_rows_are_models_with_names_of_their_own(task):
    for package in ("fairlearn", "sklego", "xgboost"):
        pytest.importorskip(package)
    rows = list(rows_of(task))
    keys = {unseen_data.key_of(unseen_data.identity(task, row)) for row in rows}
    assert len(keys) == len(rows)
    groups = {"plain", "projected", "moving targets", "boosting", "rival"}
    assert {row.group for row in rows} == groups
    for row in rows:
        clone(row.build(task, 0))


def test_a_pooled_line_is_the_indicator_of_all_validation_folds():
    row = row_named(PCT_BLACK, "linear Projected aware 0.2")
    *folds, pooled = unseen_data.run_row(PCT_BLACK, row, 5)
    data = load_task(PCT_BLACK)
    column = data.feature_names.index("pctBlack")
    predictions, scores = np.empty(len(data.y)), []
    for train, val in split(PCT_BLACK, data):
        model = row.build(PCT_BLACK, column).fit(data.X[train], data.y[train])
        predictions[val] = model.predict(data.X[val])
        scores.append(r2_score(data.y[val], predictions[val]))
    expected = gedi(data.y, predictions, sensitive_features=data.sensitive, kernel=5, relative=True)
    assert pooled["gedi_val"] == pytest.approx(expected)
    assert pooled["score_val"] == pytest.approx(np.mean(scores))
    assert_allclose([line["score_val"] for line in folds], scores)
    assert {line["n_fits"] for line in folds} == {6}


def test_a_run_saves_its_rows_and_does_not_repeat_them(tmp_path, capsys):
    options = ["--task", "crimes/race", "--model", "linear", "linear MT dual"]
    options += ["--folds", "1", "--output", str(tmp_path)]
    unseen_data.main(options)
    first = (tmp_path / "unseen_data.csv").read_bytes()
    unseen_data.main(options)
    assert (tmp_path / "unseen_data.csv").read_bytes() == first
    lines = read_rows(tmp_path / "unseen_data.csv", unseen_data.COLUMNS)
    assert [line["fold"] for line in lines] == ["0", "pooled"] * 2
    assert "2 of 2 rows are in" in capsys.readouterr().err
    with pytest.raises(SystemExit, match="no such row; there are"):
        unseen_data.main(["--model", "nothing", "--output", str(tmp_path)])


def test_the_page_has_the_costs_of_the_results_which_hardly_depend_on_the_learner():
    lines = read_rows(unseen_data.RESULTS / "unseen_data.csv", unseen_data.COLUMNS)
    table = unseen_data.costs(lines)
    assert table in unseen_data.PAGE.read_text(encoding="utf-8")
    by_learner = [row.split(" | ")[1:] for row in table.splitlines()[2:]]
    for column in zip(*by_learner, strict=True):
        costs = [float(cell.strip(" |").split(" − ")[1]) for cell in column if " − " in cell]
        assert len(costs) >= 4
        assert np.ptp(costs) <= 0.02


@pytest.mark.parametrize("bound", [0.0, 0.02, 0.3, 1.0])
def test_the_attribute_explains_no_more_than_the_bound_of_the_fair_ridge(bound):
    rng = np.random.default_rng(0)
    x = rng.normal(size=300)
    X = np.c_[x, x + rng.normal(size=300), rng.normal(size=300)]
    y = X @ [1.0, 1.0, 1.0] + rng.normal(size=300)
    predictions = FairRidge(0, degree=2, bound=bound).fit(X, y).predict(X)
    S = np.c_[np.ones(300), x, x**2]
    explained = S @ np.linalg.lstsq(S, predictions, rcond=None)[0]
    share = np.var(explained) / np.var(predictions)
    assert share <= bound + 1e-9
    assert share >= 0.9 * min(bound, 0.5)  # and no less than it may
    if bound == 1.0:
        assert r2_score(y, predictions) >= r2_score(y, Ridge(10.0).fit(X, y).predict(X)) - 0.01
