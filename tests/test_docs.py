"""The site: every page has an entry in its tree, and the reference is complete."""

import inspect
import re
from pathlib import Path

import numpy as np
import pytest

from benchmarks._fuzz_calls import public_callables
from docs.count_words import MOST_PAGES, MOST_WORDS, count
from gedi_sklearn import DependenceConstraint, exceptions, gedi, project_targets

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


@pytest.mark.parametrize("name", sorted(PUBLIC))
def test_every_public_name_has_an_example(name):
    assert "\nExamples\n--------\n" in inspect.getdoc(PUBLIC[name])


def test_the_guide_is_short():
    words = count()
    assert len(words) <= MOST_PAGES
    assert sum(words.values()) <= MOST_WORDS
    (tree,) = [set(re.findall(r"^\w+$", PAGES["guide"], re.M))]
    assert tree == words.keys()


def test_a_u_shape_keeps_the_share_that_the_page_says():
    """`decide.md`: "at most a fifth of the dependence may remain, whatever its shape"."""
    (code,) = re.findall(r"^\| \"at most a fifth.*?\| `(.*?)`", PAGES["decide"], re.M)
    age = np.linspace(18, 82, 400)
    premium = (age - 50) ** 2 + np.random.default_rng(0).normal(size=400)
    constraint = eval(code, {"DependenceConstraint": DependenceConstraint})
    targets = project_targets(premium, sensitive_features=age, constraint=constraint).targets
    share = gedi(premium, targets, sensitive_features=age, norm="sd", kernel=8, relative=True)
    assert share == pytest.approx(0.2, abs=0.02)


def test_the_start_page_prints_what_it_says(capsys):
    (code,) = re.findall(r"^```python\n(.*?)^```", PAGES["index"], re.S | re.M)
    exec(compile(code, "index", "exec"), {})
    said = re.search(r"remains on the new rows: ([\d.]+),", PAGES["index"]).group(1)
    assert float(capsys.readouterr().out) == pytest.approx(float(said), abs=0.006)


def test_every_error_and_warning_is_explained():
    explained = set(re.findall(r"^\| `(\w+)`", PAGES["errors"], re.MULTILINE))
    assert explained == set(exceptions.__all__)
