"""Relations between answers are kept to, and a violation of each one is seen."""

import csv

import numpy as np
import pytest
from sklearn.dummy import DummyRegressor

from benchmarks import relations
from benchmarks._fuzz_contract import namespace
from benchmarks._relation_calls import SUBJECTS, Subject, draw_trial
from benchmarks._relations import RELATIONS

PURE = {"unit": 0, "x_unit": 0, "shift": 0}
PREDICTION = {"unit": 1, "x_unit": 0, "shift": 1}


class Model:
    """A model that is fitted in one of several wrong ways."""

    def __init__(self, fault=""):
        self.fault, self.n_fits = fault, 0

    def fit(self, X, y):
        self.n_fits += 1
        return self

    def predict(self, X):
        if self.fault == "counts":
            return np.full(len(X), float(self.n_fits))
        values = X.to_numpy()[:, 0]
        return values - values.mean() if self.fault == "centres" else values

    def __reduce__(self):
        return (DummyRegressor, ()) if self.fault == "forgets" else super().__reduce__()


def of_model(fault):
    return f"result = respond(fit(Model({fault!r}), X=X, y=y), new_X)"


# A call that keeps to each relation, and one that does not.
SOUND = {
    "y -> a*y + b": "result = [np.array([y.mean()])]",
    "attribute -> a*x + b": "result = [np.corrcoef(x.T, y)[-1]]",
    "weights * c": "result = [np.array([np.average(v, weights=w)])]",
    "rows permuted": "result = [np.sort(row * 1.0)]",
    "columns permuted": "result = [X.to_numpy().sum(axis=1)]",
    "classes renamed": "result = [y]",
    "weight k = k rows": "result = [np.array([len(y) if w is None else w.sum()]) * 1.0]",
    "weight 0 = no row": "result = [np.array([w.sum()]) * 1.0]",
    "fitted twice": of_model(""),
    "pickled": of_model(""),
    "chunks = whole": of_model(""),
    "groups renamed": "result = [np.array([len(np.unique(x))]) * 1.0]",
}
BROKEN = {
    "y -> a*y + b": "result = [np.tanh([y.mean()])]",
    "attribute -> a*x + b": "result = [np.array([x.mean()])]",
    "weights * c": "result = [np.array([w.sum()]) * 1.0]",
    "rows permuted": "result = [row * 1.0]",
    "columns permuted": "result = [X.to_numpy()[:, 0]]",
    "classes renamed": "result = [np.array([len(str(y[0]))]) * 1.0]",
    "weight k = k rows": "result = [np.array([len(y)]) * 1.0]",
    "weight 0 = no row": "result = [np.array([len(y)]) * 1.0]",
    "fitted twice": of_model("counts"),
    "pickled": of_model("forgets"),
    "chunks = whole": of_model("centres"),
    "groups renamed": "result = [np.array([len(x[0])]) * 1.0]",
}


@pytest.fixture(scope="module")
def known():
    return {**namespace(), "Model": Model}


def largest(name, code, known):
    relation = RELATIONS[name]
    kinds = ("real",) if "real" in relation.kinds else ("binary", "classes")
    powers = PREDICTION if name == "y -> a*y + b" else PURE
    subject = Subject("", lambda *_: code, powers, kinds, has_columns=True)
    trials = [draw_trial(0, number, subject, relation) for number in range(6)]
    return max(relations.apart(trial, known, 0)[0] for trial in trials)


@pytest.mark.parametrize("name", RELATIONS)
def test_a_planted_violation_is_seen(name, known):
    assert largest(name, SOUND[name], known) <= RELATIONS[name].tolerance
    assert largest(name, BROKEN[name], known) > 0.01


def test_most_cells_are_tested_and_the_others_have_a_reason():
    cells = relations.cells()
    assert sum(cell.holds for cell in cells) >= 0.7 * len(cells)
    assert all(cell.reason for cell in cells)
    names = [cell.subject.name for cell in cells]
    for relation, reasons in relations.NOT.items():
        assert relation in RELATIONS
        for name in reasons:
            assert any(own.startswith(name) for own in names)


def test_the_committed_table_is_that_of_the_code(tmp_path):
    relations.write_table(tmp_path / "table.csv")
    assert (tmp_path / "table.csv").read_text() == relations.TABLE.read_text()
    with relations.TABLE.open(encoding="utf-8") as file:
        assert len(list(csv.DictReader(file))) == len(RELATIONS) * len(SUBJECTS)


@pytest.mark.parametrize("name", ["gedi, sd", "GediAccumulator", "ProjectedRegressor"])
def test_some_keep_to_all_relations(name, known):
    for number, cell in enumerate(cell for cell in relations.cells() if cell.subject.name == name):
        if cell.holds:
            trial = draw_trial(0, number, cell.subject, cell.relation)
            assert relations.apart(trial, known, 0)[0] <= cell.tolerance, str(trial)


@pytest.mark.slow
def test_more_calls_keep_to_relations():
    outcomes = relations.run_trials(relations.SEED, range(0, 3000, 23))
    assert [str(one) for one in outcomes if one.is_violation] == []


def test_the_command_prints_a_violation_and_ends_in_1(monkeypatch, capsys):
    assert relations.main(["--only", "0"]) == 0
    assert "1 calls with seed 0" in capsys.readouterr().out
    monkeypatch.setattr(relations, "apart", lambda *_: (1.0, ""))
    assert relations.main(["--calls", "1"]) == 1
    shown = capsys.readouterr().out
    assert ": 1 apart" in shown
    assert "1 violations" in shown
