"""What a release says of itself agrees, and its build asks for what a person has to set."""

import importlib.util
import re
import sys
import tomllib
from pathlib import Path
from types import ModuleType

import pytest

from gedi_sklearn import __version__

ROOT = Path(__file__).parents[1]
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PROJECT, BUILD = PYPROJECT["project"], PYPROJECT["build-system"]


def text_of(name):
    return (ROOT / name).read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("name", "pattern"),
    [
        ("CHANGELOG.md", r"^## \[(\d.*?)\]"),
        ("CITATION.cff", r"^version: (\S+)$"),
        ("conda/meta.yaml", r'set version = "(.*?)"'),
        ("README.md", r"^Version (\d+\.\d+\.\d+)"),
        ("docs/stability.md", r"^The version is (\d+\.\d+\.\d+)\."),
        ("docs/stability.md", r"version = \{(.*?)\}"),
    ],
)
def test_every_file_has_the_same_version(name, pattern):
    assert re.findall(pattern, text_of(name), re.MULTILINE) == [__version__]


def test_the_recipe_needs_what_the_package_needs():
    jinja2, yaml = pytest.importorskip("jinja2"), pytest.importorskip("yaml")
    recipe = yaml.safe_load(jinja2.Template(text_of("conda/meta.yaml")).render(PYTHON="python"))
    # What conda calls otherwise. A requirement there cannot name its channel.
    names = {"gurobipy": "gurobi"}
    python = f"python {PROJECT['requires-python']}"
    for part, given in {"run": PROJECT["dependencies"], "host": BUILD["requires"]}.items():
        split = (re.fullmatch(r"([\w-]+)(.*)", one).groups() for one in given)
        needed = {f"{names.get(name, name)} {least}" for name, least in split}
        assert set(recipe["requirements"][part]) - {"pip"} == needed | {python}
    assert recipe["source"] == {"path": ".."}


@pytest.fixture
def urls(monkeypatch, tmp_path):
    """Return a function from the address in pyproject.toml to the URLs of the package."""
    interface = ModuleType("interface")
    interface.MetadataHookInterface = object
    monkeypatch.setitem(sys.modules, "hatchling.metadata.plugin.interface", interface)
    spec = importlib.util.spec_from_file_location("hatch_build", ROOT / "hatch_build.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    hook = module.ProjectURLs()
    hook.root = tmp_path

    def update(address):
        path = tmp_path / "pyproject.toml"
        path.write_text(f'[tool.gedi-sklearn]\nrepository = "{address}"\n', encoding="utf-8")
        metadata = {}
        hook.update(metadata)
        return metadata

    return update


def test_a_release_needs_the_address_of_the_repository(urls, monkeypatch):
    assert urls("") == {}
    monkeypatch.setenv("GEDI_SKLEARN_RELEASE", "1")
    with pytest.raises(ValueError, match=r"tool\.gedi-sklearn\.repository .* is empty"):
        urls("")
    assert urls("https://example.org/x")["urls"]["Source"] == "https://example.org/x"
