"""Count what a user and a developer have to know: ``python -m docs.count_surface``.

Parameters are those of the functions and constructors that `api.rst` lists, but for what only
results, errors, displays and Dask's versions of other functions have. The package is counted in
files, classes and lines of code, without blank lines, comments and docstrings. The exit status is 1
where a main estimator or function takes more parameters than it may.
"""

import ast
import inspect
import io
import re
import sys
import tokenize
from importlib import import_module
from pathlib import Path
from typing import Any

import gedi_sklearn

DOCS = Path(__file__).parent
PACKAGE = Path(gedi_sklearn.__file__).parent
# Made by the library, and only read by users.
RESULTS = re.compile(
    "Verdict|Certificate|GediInference|TargetCorrection|FairnessReport|Findings|TradeoffCurve"
    r"|FittedKernel|ProjectionResult|ProjectionPath|.*Display|dask\..*"
)
# The most parameters of what most users call.
MOST = {"MovingTargets": 17, "Projected": 13, "ConstrainedBoosting": 14, "project_targets": 12}


def documented() -> dict[str, Any]:
    """Return the functions and classes of `api.rst` that users call, by name."""
    listed, module = {}, gedi_sklearn
    for line in (DOCS / "api.rst").read_text(encoding="utf-8").splitlines():
        if line.startswith(".. currentmodule::"):
            module = import_module(line.split()[-1])
        elif re.fullmatch(r"   [\w.]+", line) and not RESULTS.fullmatch(line.strip()):
            listed[line.strip()] = getattr(module, line.strip())
    return {
        name: own
        for name, own in listed.items()
        if callable(own) and not (isinstance(own, type) and issubclass(own, BaseException))
    }


def code_lines(source: str) -> int:
    """Return the number of lines with code."""
    lines: set[int] = set()
    silent = (tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT)
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type not in (*silent, tokenize.ENDMARKER):
            lines.update(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(ast.parse(source)):
        kinds = (ast.Module, ast.ClassDef, ast.FunctionDef)
        if isinstance(node, kinds) and ast.get_docstring(node) is not None:
            lines.difference_update(range(node.body[0].lineno, (node.body[0].end_lineno or 0) + 1))
    return len(lines)


if __name__ == "__main__":
    numbers = {name: len(inspect.signature(own).parameters) for name, own in documented().items()}
    for name, number in sorted(numbers.items(), key=lambda own: -own[1]):
        print(f"{number:6,}  {name}")
    sources = [path.read_text(encoding="utf-8") for path in PACKAGE.rglob("*.py")]
    classes = sum(isinstance(n, ast.ClassDef) for s in sources for n in ast.walk(ast.parse(s)))
    print(f"{sum(numbers.values()):6,}  parameters of {len(numbers)} functions and constructors")
    print(f"{len(sources):6,}  files with {classes} classes")
    print(f"{sum(map(code_lines, sources)):6,}  lines of code")
    sys.exit(any(n > most for own, most in MOST.items() for k, n in numbers.items() if own in k))
