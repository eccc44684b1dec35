"""The site: every page has an entry in its tree, and the reference is complete."""

import inspect
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from benchmarks._fuzz_calls import public_callables
from docs.count_surface import parameters, too_many
from docs.count_words import MOST_PAGES, MOST_WORDS, count
from gedi_sklearn import (
    ConstrainedBoostingRegressor,
    DependenceConstraint,
    ProjectedRegressor,
    exceptions,
    gedi,
    project_targets,
)
from gedi_sklearn.model_selection import tradeoff_curve

DOCS = Path(__file__).parents[1] / "docs"
PAGES = {path.stem: path.read_text(encoding="utf-8") for path in DOCS.glob("*.md")}
PUBLIC = {name: value for name, value in public_callables() if callable(value)}


def test_every_page_has_an_entry_in_the_tree():
    trees = [
        tree for text in PAGES.values() for tree in re.findall(r"```{toctree}(.*?)```", text, re.S)
    ]
    listed = {line.strip() for tree in trees for line in tree.splitlines() if line.strip()}
    assert PAGES.keys() - {"index"} <= listed


def test_every_public_name_is_in_the_reference_and_no_other():
    text = (DOCS / "api.rst").read_text(encoding="utf-8")
    listed = re.findall(r"^   (\w+)$", text, re.MULTILINE)
    assert len(set(listed)) == len(listed)
    assert set(listed) == PUBLIC.keys() | set(exceptions.__all__)


TASKS = dict(re.findall(r"^## (.+?)$.*?^```python\n(.*?)^```", PAGES["tasks"], re.S | re.M))


@pytest.mark.parametrize("task", TASKS)
def test_a_task_runs_as_pasted(task, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    exec(compile(TASKS[task], task, "exec"), {})
    assert capsys.readouterr().out.strip()


def test_every_task_is_one_click_from_the_start():
    assert len(TASKS) == 18
    for task in TASKS:
        assert f"(tasks.md#{task.lower().replace(' ', '-')})" in PAGES["index"]


DOCUMENTED = PUBLIC | {name: getattr(exceptions, name) for name in exceptions.__all__}


@pytest.mark.parametrize("name", sorted(DOCUMENTED))
def test_every_public_name_has_an_example_that_runs(name):
    assert re.search(r"\nExamples\n--------\n(.*\n)*>>> ", inspect.getdoc(DOCUMENTED[name]))


def test_every_function_for_dask_has_an_example_that_runs():
    blocks = pytest.importorskip("gedi_sklearn.dask")
    assert all("\n>>> " in inspect.getdoc(getattr(blocks, name)) for name in blocks.__all__)


def test_the_guide_is_short():
    words = count()
    assert len(words) <= MOST_PAGES
    assert sum(words.values()) <= MOST_WORDS
    (tree,) = [set(re.findall(r"^\w+$", PAGES["guide"], re.M))]
    assert tree == words.keys()


def test_calls_take_no_more_parameters_than_they_may():
    numbers = parameters()
    assert {"gedi", "ProjectedRegressor", "Solver"} <= numbers.keys()
    assert too_many(numbers) == []
    assert too_many({**numbers, "project_targets": 13}) == ["project_targets", "all"]


def test_a_u_shape_keeps_the_share_that_the_page_says():
    """`decide.md`: "at most a fifth of the dependence may remain, whatever its shape"."""
    (code,) = re.findall(r"^\| \"at most a fifth.*?\| `(.*?)`", PAGES["decide"], re.M)
    age = np.linspace(18, 82, 400)
    premium = (age - 50) ** 2 + np.random.default_rng(0).normal(size=400)
    constraint = eval(code, {"DependenceConstraint": DependenceConstraint})
    targets = project_targets(premium, sensitive_features=age, constraint=constraint).targets
    share = gedi(premium, targets, sensitive_features=age, norm="sd", kernel=8, relative=True)
    assert share == pytest.approx(0.2, abs=0.02)


@pytest.mark.parametrize("name", [name for name, one in PUBLIC.items() if inspect.isclass(one)])
def test_the_page_of_a_class_stands_alone(name):
    assert "s in :class:" not in inspect.getdoc(PUBLIC[name])


def test_the_start_page_prints_what_it_says(capsys):
    (code,) = re.findall(r"^```python\n(.*?)^```", PAGES["index"], re.S | re.M)
    exec(compile(code, "index", "exec"), {})
    said = re.search(r"remains on the new rows: ([\d.]+),", PAGES["index"]).group(1)
    assert float(capsys.readouterr().out) == pytest.approx(float(said), abs=0.006)


def test_every_error_and_warning_is_explained():
    explained = set(re.findall(r"^\| `(\w+)`", PAGES["errors"], re.MULTILINE))
    assert explained == set(exceptions.__all__)


FAIR = {"sensitive_columns": "age"}
PEOPLE = pd.DataFrame({"age": np.linspace(20.0, 60, 80), "hours": np.linspace(20.0, 40, 80) ** 2})
PAY = PEOPLE["age"] + PEOPLE["hours"]


def fitted(**parameters):
    return ProjectedRegressor(**FAIR, **parameters).fit(PEOPLE, PAY)


def first_guesses():
    """Yield what a newcomer tries for a task, and what the message has to name."""
    scaled = make_pipeline(StandardScaler(), ProjectedRegressor(**FAIR))
    bounds = {"age": DependenceConstraint(), "hours": DependenceConstraint()}
    yield lambda: scaled.fit(PEOPLE, PAY), r"set_output\(transform='pandas'\)"
    yield lambda: fitted().predict(PEOPLE[["hours"]]), "drop_sensitive=True and sensitive_at_pre"
    blind = fitted(sensitive_at_predict=False, attribute_estimator=LinearRegression())
    yield lambda: blind.predict(PEOPLE[["hours"]]), "fit with drop_sensitive=True"
    trees = ConstrainedBoostingRegressor(LinearRegression(), **FAIR)
    yield lambda: trees.fit(PEOPLE, PAY), "Got LinearRegression instead.* pass its name"
    both = ProjectedRegressor(constraint=bounds, sensitive_columns=["age", "hours"])
    yield lambda: both.fit(PEOPLE, PAY), r"ConstraintList\(\[\(name, constraint\), ...\]\)"
    yield lambda: ProjectedRegressor(sensitive_features="age"), "sensitive_columns="
    yield lambda: gedi(PAY, sensitive_features="age"), r"pass X\['age'\]"
    attribute = {"sensitive_features": "age"}
    yield lambda: ProjectedRegressor().fit(PEOPLE, PAY, **attribute), "sensitive_columns='age'"
    yield lambda: tradeoff_curve(fitted(), PEOPLE, PAY, cv=2).plot(), r"TradeoffDisplay\(curve="


@pytest.mark.parametrize("number", range(9))
@pytest.mark.filterwarnings("ignore:.*outside the range:UserWarning")
def test_the_message_of_a_first_guess_names_the_fix(number):
    guess, fix = list(first_guesses())[number]
    with pytest.raises((ValueError, TypeError, AttributeError), match=fix):
        guess()
