"""What the README says to paste works as written."""

import importlib
import re
import shlex
from pathlib import Path

import pytest

from benchmarks import paper_tables

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def blocks(language):
    return re.findall(rf"^```{language}\n(.*?)^```", README, flags=re.DOTALL | re.MULTILINE)


def test_example_runs_and_prints_what_is_said(capsys):
    (example,), (printed,) = blocks("python"), blocks("text")
    exec(compile(example, "README.md", "exec"), {})
    assert capsys.readouterr().out == printed


def test_it_is_short():
    assert len(README.splitlines()) <= 120


def test_the_two_commands_are_one_line_each_and_do_all_the_set_up():
    commands = blocks("sh")
    assert len(commands) == 2
    for command, last in zip(commands, ("benchmarks.paper_tables", "pytest"), strict=True):
        (line,) = command.strip().splitlines()
        create, install, run = line.split(" && ")
        assert create == "python3 -m venv .venv"
        assert install.startswith(".venv/bin/python -m pip install -q -e ")
        assert run.startswith(f".venv/bin/python -m {last}")
    assert ".venv/" in (ROOT / ".gitignore").read_text(encoding="utf-8").splitlines()


def test_the_first_command_is_a_quick_run():
    *_, run = blocks("sh")[0].strip().split(" && ")
    program, *arguments = shlex.split(run)[2:]
    assert program == "benchmarks.paper_tables"
    options = paper_tables.parse(arguments)
    assert (options.quick, options.n_jobs) == (True, 2)


DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_links_to_files_lead_somewhere(document):
    text = document.read_text(encoding="utf-8")
    # The gallery's pages are made from its scripts.
    text = re.sub(r"\bauto_gallery/(\w+)\.rst", r"gallery/\1.py", text)
    targets = re.findall(r"\]\((?!https?://|#)([^)#]+)", text)
    assert [target for target in targets if not (document.parent / target).exists()] == []


def resolve(dotted):
    """Import what a dotted name stands for: a module, or something in one."""
    names = dotted.split(".")
    for cut in range(len(names), 0, -1):
        try:
            found = importlib.import_module(".".join(names[:cut]))
        except ModuleNotFoundError:
            continue
        for name in names[cut:]:
            found = getattr(found, name)
        return found
    raise ModuleNotFoundError(dotted)


def test_map_of_the_paper_names_what_exists():
    text = (ROOT / "docs" / "paper.md").read_text(encoding="utf-8")
    names = re.findall(r"`((?:gedi_sklearn|benchmarks)\.[\w.]+)`", text)
    tests = re.findall(r"`(tests/\w+\.py)::(\w+)`", text)
    assert len(names) > 15
    assert all(resolve(name) is not None for name in names)
    missing = [
        f"{path}::{name}"
        for path, name in tests
        if not re.search(rf"^def {name}\(", (ROOT / path).read_text(encoding="utf-8"), re.MULTILINE)
    ]
    assert missing == []
