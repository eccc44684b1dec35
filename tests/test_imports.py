"""The one-way import table of the package, and what `import gedi_sklearn` may load."""

import ast
import importlib
import importlib.util
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import gedi_sklearn

PACKAGE = Path(gedi_sklearn.__file__).parent
ROOT = Path(__file__).parents[1]

# A file imports only from its own line and the lines above it. The order is one of dependence,
# so `_validation`, which holds scikit-learn's private names, stands before its first user, and
# `_constrained_estimator`, which the estimators share, before the estimators.
LAYERS = (
    "exceptions",
    "_validation",
    "_predictions",
    "datasets",
    "kernels",
    "_geometry",
    "metrics",
    "constraints",
    "_verdict",
    "_certificate",
    "projection",
    "_folds",
    "_constrained_estimator",
    "_meta_estimator",
    "moving_targets",
    "post_processing",
    "lagrangian_dual",
    "boosting",
    "model_selection",
    "plotting",
    "report",
    "dask",
)

# Private modules of the package that tests may import, each with its reason.
OPEN_TO_TESTS = {
    "gedi_sklearn._certificate": "the levels that are tested, of made-up corrections",
    "gedi_sklearn._folds": "the folds of an integer, of rows of every kind",
    "gedi_sklearn._geometry._block": "operators of its own, without a kernel",
    "gedi_sklearn._geometry._groups": "the nearest deviations of groups, against their conditions",
    "gedi_sklearn._geometry._sets": "the geometry of every set, against its definition",
    "gedi_sklearn._geometry._span": "the nearest point of several sets, against its conditions",
    "gedi_sklearn._validation.check_numbers": "whether a column is copied",
    "gedi_sklearn._verdict": "verdicts on made-up predictions",
    "gedi_sklearn.kernels._fit": "factors from moments, against those of QR",
    "gedi_sklearn.lagrangian_dual._network": "derivatives and Adam's steps, against torch's own",
    "gedi_sklearn.metrics._errors": "robust errors, for the rule that limits had before",
    "gedi_sklearn.metrics._limits": "the rule of limits, without an indicator",
    "gedi_sklearn.projection._exchange": "what is kept count of, against its definition",
    "gedi_sklearn.projection._gurobi": "where a fake solver is put in, with any answer",
    "gedi_sklearn.projection._solver": "the same, with models and answers",
    "gedi_sklearn.projection._highs_call": "where statuses and solutions are made up",
    "gedi_sklearn.projection._projection": "where a fake solver is put in",
    "gedi_sklearn.projection._relaxation": "programs of many columns, against a plain solve",
    "gedi_sklearn.projection._result": "which counts are kept",
    "gedi_sklearn.projection._rounding": "that counts are whole",
    "gedi_sklearn.projection._search": "where cores are made small and searches are left out",
}

OPTIONAL = (
    "gurobipy",
    "torch",
    "skorch",
    "maxcorr",
    "matplotlib",
    "polars",
    "pandas",
    "xgboost",
    "lightgbm",
    "dask",
    "distributed",
)

# Makes the optional packages missing. Not by None in sys.modules: with torch that breaks
# scipy.stats, and so scikit-learn, which look there for the class of a tensor.
WITHOUT_OPTIONAL = f"""
import sys

class Missing:
    def find_spec(name, path=None, target=None):
        if name.partition(".")[0] in {OPTIONAL}:
            raise ModuleNotFoundError(name)

sys.meta_path.insert(0, Missing)
"""


def imported_names(source: str, module: str, *, is_package: bool = False) -> Iterator[str]:
    """Yield the full dotted name of everything that a module's source imports, at any depth."""
    package = module if is_package else module.rpartition(".")[0]
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            relative = "." * node.level + (node.module or "")
            base = importlib.util.resolve_name(relative, package)
            yield from (f"{base}.{alias.name}" for alias in node.names)


def is_private(name: str) -> bool:
    return any(part.startswith("_") and not part.startswith("__") for part in name.split("."))


def package_faults(source: str, module: str, *, is_package: bool = False) -> list[str]:
    """Name every import of a module of the package that the layout forbids."""
    layer = module.split(".")[1]
    if layer not in LAYERS:
        return [f"{module} has no line in the import table"]
    allowed = ("__version__", *LAYERS[: LAYERS.index(layer) + 1])
    faults = []
    for name in imported_names(source, module, is_package=is_package):
        top, _, rest = name.partition(".")
        if top == "gedi_sklearn" and rest.partition(".")[0] not in allowed:
            faults.append(f"{module} imports {name}, which is not above {layer}")
        if top == "sklearn" and is_private(name) and layer != "_validation":
            faults.append(f"{module} imports {name}: private names come from _validation")
        if top == "gurobipy" and layer != "projection":
            faults.append(f"{module} imports {name}: only projection knows a solver")
    return faults


def crossing_faults(source: str, module: str) -> list[str]:
    """Name every private module, or private name, that comes from another package's inside."""
    own = module.split(".")[1]
    faults = []
    for name in imported_names(source, module):
        parts = name.split(".")
        crosses = parts[0] == "gedi_sklearn" and parts[1:] and parts[1] != own
        # Top-level private modules, `_validation` among them, are the package's own.
        if (
            crosses
            and parts[1] != "_validation"
            and any(part.startswith("_") for part in parts[2:])
        ):
            faults.append(f"{module} imports {name}, which is private to {parts[1]}")
    return faults


def client_faults(source: str, module: str) -> list[str]:
    """Name every private module of the package that a test or a benchmark imports."""
    return [
        f"{module} imports {name}, which is private"
        for name in imported_names(source, module)
        if name.startswith("gedi_sklearn.")
        and is_private(name)
        and not any(f"{name}.".startswith(f"{opened}.") for opened in OPEN_TO_TESTS)
    ]


def package_modules() -> Iterator[tuple[str, Path]]:
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
        yield ".".join(part for part in parts if part != "__init__"), path


def run_python(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=False
    )


def test_package_follows_the_import_table():
    faults = [
        fault
        for module, path in package_modules()
        if module != "gedi_sklearn"  # the top level exports from everywhere
        for fault in package_faults(
            path.read_text(encoding="utf-8"), module, is_package=path.name == "__init__.py"
        )
    ]
    assert faults == []


def test_packages_import_each_other_through_their_init_only():
    faults = [
        fault
        for module, path in package_modules()
        if path.name != "__init__.py"
        for fault in crossing_faults(path.read_text(encoding="utf-8"), module)
    ]
    assert faults == []


@pytest.mark.parametrize(
    "source", ["from ..kernels._design import KernelDesign", "from ..kernels import _design"]
)
def test_a_private_import_across_packages_is_found(source):
    assert crossing_faults(source, "gedi_sklearn.metrics._gedi")
    assert not crossing_faults(source, "gedi_sklearn.kernels._fit")


@pytest.mark.parametrize("folder", ["tests", "benchmarks"])
def test_clients_import_the_public_api_only(folder):
    faults = [
        fault
        for path in sorted((ROOT / folder).rglob("*.py"))
        for fault in client_faults(path.read_text(encoding="utf-8"), f"{folder}.{path.stem}")
    ]
    assert faults == []


@pytest.mark.parametrize(
    "source",
    [
        "from gedi_sklearn.projection import Projection",
        "from gedi_sklearn import projection",
        "from .projection import Projection",
        "from . import projection",
        "import gedi_sklearn.projection",
        "import gedi_sklearn",
        "from gedi_sklearn import project_targets",
        "def late():\n    from gedi_sklearn.projection import Projection",
        "from sklearn.utils._param_validation import Interval",
        "from sklearn.base import _fit_context",
        "import sklearn.utils._tags",
        "import gurobipy as gp",
    ],
)
def test_a_forbidden_import_is_found(source):
    assert len(package_faults(source, "gedi_sklearn.kernels")) == 1


@pytest.mark.parametrize(
    ("source", "module"),
    [
        ("from gedi_sklearn._validation import Interval", "gedi_sklearn.kernels"),
        ("from .exceptions import SolverError", "gedi_sklearn.kernels"),
        ("from ..kernels import PolynomialKernel", "gedi_sklearn.metrics.indicators"),
        ("from ._gurobi import solve", "gedi_sklearn.projection._classes"),
        ("import gurobipy as gp", "gedi_sklearn.projection._gurobi"),
        ("from sklearn.utils._param_validation import Interval", "gedi_sklearn._validation"),
        ("from sklearn import __version__", "gedi_sklearn.kernels"),
    ],
)
def test_an_allowed_import_passes(source, module):
    assert package_faults(source, module) == []


def test_a_module_without_a_line_is_found():
    assert package_faults("", "gedi_sklearn.utils") == [
        "gedi_sklearn.utils has no line in the import table"
    ]


def test_optional_packages_can_be_made_missing():
    result = run_python(f"{WITHOUT_OPTIONAL}\nimport pandas")
    assert "ModuleNotFoundError: pandas" in result.stderr


def test_a_private_import_of_a_client_is_found():
    assert client_faults("from gedi_sklearn.projection._cells import solve", "tests.made_up")
    assert client_faults("from gedi_sklearn.kernels import _qr", "tests.made_up")
    assert not client_faults("from gedi_sklearn import kernels, __version__", "tests.made_up")
    assert not client_faults("from gedi_sklearn.projection._search import solve", "tests.made_up")


def test_import_loads_no_optional_package():
    loaded = f"print(*sorted({set(OPTIONAL)} & set(sys.modules)))"
    package = run_python(f"import sys, gedi_sklearn; {loaded}")
    sklearn = run_python(f"import sys, sklearn; {loaded}")
    assert package.stderr == ""
    # scikit-learn is free to load pandas; the package adds nothing to what it loads.
    assert set(package.stdout.split()) <= set(sklearn.stdout.split()) & {"pandas"}


def test_import_works_without_any_optional_package_and_is_silent():
    result = run_python(f"{WITHOUT_OPTIONAL}\nimport gedi_sklearn")
    assert (result.returncode, result.stdout, result.stderr) == (0, "", "")


def test_every_exported_name_exists():
    assert len(set(gedi_sklearn.__all__)) == len(gedi_sklearn.__all__)
    assert all(hasattr(gedi_sklearn, name) for name in gedi_sklearn.__all__)


def test_every_exported_name_has_a_home_that_analysers_know():
    tree = ast.parse((PACKAGE / "__init__.py").read_text(encoding="utf-8"))
    declared = {
        alias.name: node.module
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.level
        for alias in node.names
    }
    assert {*declared, "__version__"} == set(gedi_sklearn.__all__) <= set(dir(gedi_sklearn))
    for name, home in declared.items():
        module = f"gedi_sklearn.{home or name}"
        own = importlib.import_module(module)
        assert getattr(gedi_sklearn, name) is (getattr(own, name) if home else own)
    with pytest.raises(AttributeError, match=r"'gedi_sklearn' has no attribute 'gedy'"):
        _ = gedi_sklearn.gedy


@pytest.mark.parametrize(
    ("statement", "unused"),
    [
        ("import gedi_sklearn", {"gedi_sklearn.metrics"}),
        (
            "from gedi_sklearn.metrics import gedi, hgr, GediAccumulator",
            {"sklearn.metrics", "sklearn.pipeline", "gedi_sklearn.projection"},
        ),
        (
            "from gedi_sklearn import ProjectedRegressor, ProjectedClassifier, project_targets",
            {"gedi_sklearn.boosting", "gedi_sklearn.report"},
        ),
    ],
)
def test_an_import_loads_what_it_uses(statement, unused):
    unused = {*unused, *OPTIONAL, "highspy", "sklearn.ensemble"} - {"pandas"}
    result = run_python(f"import sys\n{statement}\nprint(*({unused} & set(sys.modules)))")
    assert (result.stdout.strip(), result.stderr) == ("", "")
