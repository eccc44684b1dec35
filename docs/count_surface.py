"""Count what a user and a developer have to know: ``python -m docs.count_surface``.

Parameters are those of the functions and constructors that `api.rst` lists, but for what only
results, errors, displays and Dask's versions of other functions have. The package is counted in
files, classes and lines of code, without blank lines, comments and docstrings. The exit status is 1
where a main estimator or function, or all together, take more parameters than they may.
"""

import ast
import inspect
import io
import re
import sys
import tokenize
from importlib import import_module
from pathlib import Path

import gedi_sklearn

DOCS = Path(__file__).parent
PACKAGE = Path(gedi_sklearn.__file__).parent
# Made by the library, and only read by users; of Dask what has the parameters of others.
RESULTS = re.compile(
    "Verdict|Certificate|GediInference|TargetCorrection|FairnessReport|Findings|TradeoffCurve"
    r"|FittedKernel|ProjectionResult|ProjectionPath|.*(Display|Error|Warning)|dask\..*"
)
# The most parameters of what most users call.
MOST = {"MovingTargets": 17, "Projected": 13, "ConstrainedBoosting": 14, "project_targets": 12}
MOST_IN_ALL = 290


def parameters() -> dict[str, int]:
    """Return the number of parameters of the functions and classes of `api.rst` that users call."""
    listed, module = {}, gedi_sklearn
    for line in (DOCS / "api.rst").read_text(encoding="utf-8").splitlines():
        if line.startswith(".. currentmodule::"):
            module = import_module(line.split()[-1])
        elif re.fullmatch(r"   [\w.]+", line) and not RESULTS.fullmatch(name := line.strip()):
            listed[name] = getattr(module, name)
    return {name: len(inspect.signature(own).parameters) for name, own in listed.items()}


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


def too_many(numbers: dict[str, int]) -> list[str]:
    """Return what takes more parameters than it may, or all of it together."""
    found = [k for k, n in numbers.items() for own, most in MOST.items() if own in k and n > most]
    return [*found, "all"] if sum(numbers.values()) > MOST_IN_ALL else found


if __name__ == "__main__":
    numbers = parameters()
    for name, number in sorted(numbers.items(), key=lambda own: -own[1]):
        print(f"{number:6,}  {name}")
    sources = [path.read_text(encoding="utf-8") for path in PACKAGE.rglob("*.py")]
    classes = sum(isinstance(n, ast.ClassDef) for s in sources for n in ast.walk(ast.parse(s)))
    print(f"{sum(numbers.values()):6,}  parameters of {len(numbers)} functions and constructors")
    print(f"{len(sources):6,}  files with {classes} classes")
    print(f"{sum(map(code_lines, sources)):6,}  lines of code")
    sys.exit(bool(too_many(numbers)))
