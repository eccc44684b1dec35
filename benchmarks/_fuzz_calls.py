"""The calls of the fuzz test: for every public callable, how a random call of it is written."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from importlib.util import find_spec

import numpy as np

import gedi_sklearn

from ._fuzz_values import VALUES

# What calls return; users do not build them.
RESULTS = {
    "Certificate",
    "FairnessReport",
    "Findings",
    "FittedKernel",
    "GediInference",
    "ProjectionPath",
    "ProjectionResult",
    "TargetCorrection",
    "TradeoffCurve",
    "Verdict",
}
# Parameters that hold rows, and the variable that they get; the others are written out.
_DATA = {
    "X": "X",
    "y": "y",
    "y_true": "y",
    "y_pred": "p",
    "sensitive_features": "x",
    "sample_weight": "w",
    "conditional_on": "c",
}
# Always drawn: the defaults take long, or draw from numpy's global generator.
_ALWAYS = {
    "time_limit",
    "solver",
    "constraints",
    "random_state",
    "max_iter",
    "max_epochs",
    "n_estimators",
    "n_resamples",
    "cv",
    "thresholds",
}
# Never drawn: what matplotlib takes.
_UNDRAWN = {"ax", "scatter_kwargs", "curve_kwargs", "bin_kwargs", "line_kwargs", "curve"}


@dataclass(frozen=True)
class Call:
    """A call as code: lines that prepare the data, and lines that use the library."""

    number: int
    name: str
    data: str
    code: str

    def __str__(self) -> str:
        return f"{self.data}\n{self.code}"


@dataclass
class Draw:
    """The random choices of one call."""

    rng: np.random.Generator
    mood: str
    kind: str
    lines: dict[str, str] = field(default_factory=dict)
    # How many values may still be of the mood's own level.
    left: int = 1

    def chance(self, probability: float) -> bool:
        return bool(self.rng.random() < probability)

    def pick(self, options: tuple[str, ...] | list[str]) -> str:
        return options[self.rng.integers(len(options))]

    def value(self, name: str) -> str:
        """Return an expression: a plain one, or a few times a call one of the mood's own level."""
        values = VALUES[name]
        own = getattr(values, self.mood)
        if self.mood != "plain" and self.left and own and self.chance(0.25):
            self.left -= 1
            return self.pick(own)
        return self.pick(values.plain)

    @property
    def is_sensible(self) -> bool:
        """Whether arguments should go together, which they do not have to in a few calls."""
        return self.mood == "plain" or self.chance(0.9)

    def argument(self, owner: str, name: str) -> str:
        """Return the expression of a parameter; data become a line and a variable."""
        group = "estimator" if owner in ESTIMATORS else owner
        kinds = (f"{owner}.{name}", f"{group}.{name}", f"{self.kind} {name}", name)
        kind = next((known for known in kinds if known in VALUES), None)
        if name in ("y", "y_true"):
            kind = f"{self.kind} y"
        elif name == "estimator":
            kind = f"{'real' if self.kind == 'real' else 'classes'} estimator"
        if kind is None:
            raise KeyError(f"the parameter {name!r} of {owner} has no values to draw from")
        if name == "pos_label" and self.lines.get("y", "").count("'yes'") and self.is_sensible:
            return "'yes'"
        if name not in _DATA or (owner, name) in _COLUMNS:
            return self.value(kind)
        variable = _DATA[name]
        self.lines.setdefault(variable, self.value(kind))
        return variable

    def arguments(self, owner: str, skip: tuple[str, ...] = (), **given: str) -> str:
        """Return the arguments of a call: those that it needs, and some of the others."""
        parts = dict(given)
        for parameter in parameters(owner):
            name = parameter.name
            needed = parameter.default is parameter.empty or name in _ALWAYS
            needed = needed or (name == "pos_label" and "'yes'" in self.lines.get("y", ""))
            if name in (*skip, *given) or not (needed or self.chance(0.35)):
                continue
            if _is_idle(name, parts) and self.is_sensible:
                continue
            parts[name] = self.argument(owner, name)
        if self.mood == "invalid" and self.left and parts and owner not in ESTIMATORS:
            self.left -= 1
            name = self.pick(sorted(parts))
            parts[f"{name}s"] = parts.pop(name)
        return ", ".join(f"{name}={value}" for name, value in parts.items())

    def construct(self, owner: str, **given: str) -> str:
        return f"{owner.split('.')[-1]}({self.arguments(owner, **given)})"


def _is_idle(name: str, parts: dict[str, str]) -> bool:
    """Tell whether a parameter is refused beside those that are there."""
    return name == "drop_sensitive" and "sensitive_columns" not in parts


def draw_call(seed: int, number: int) -> Call:
    """Return call `number` of a seed, the same each time."""
    rng = np.random.default_rng([seed, number])
    names = sorted(runnable())
    weights = np.array([_WEIGHT.get(name, 1.0) for name in names])
    name = str(rng.choice(names, p=weights / weights.sum()))
    mood = str(rng.choice(["plain", "borderline", "invalid"], p=[0.25, 0.5, 0.25]))
    draw = Draw(
        rng,
        mood,
        kind=str(rng.choice(["real", "binary", "classes"], p=[0.5, 0.3, 0.2])),
        left=int(rng.integers(1, 4)) if mood == "borderline" else 1,
    )
    code = BUILDERS[name](draw)
    latent = {"r": f"np.random.default_rng({number})", "n": draw.value("rows")}
    # Rounded so that some values are equal; targets depend on it.
    latent["v"] = "np.round(r.normal(size=n), 3)"
    ordered = sorted(draw.lines.items(), key=lambda line: line[0] != "y")  # p may be y
    lines = [f"{variable} = {value}" for variable, value in [*latent.items(), *ordered]]
    return Call(number, name, "\n".join(lines), code)


# --- the builders, each for a kind of callable


def _function(name: str, draw: Draw) -> str:
    return f"result = {name}({draw.arguments(name)})"


def _path(name: str, draw: Draw) -> str:
    own = draw.arguments(name)
    skip = tuple(parameter.name for parameter in parameters(name))
    return f"result = {name}({own}, {draw.arguments('project_targets', skip=skip)})"


def _constraint(name: str, draw: Draw) -> str:
    own = draw.construct(name)
    others = draw.arguments("project_targets", constraint=own)
    return f"result = project_targets({others})"


def _kernel(name: str, draw: Draw) -> str:
    x = draw.argument("gedi", "sensitive_features")
    if draw.is_sensible:
        x = f"np.reshape(np.asarray({x}), (n, -1))"
    w = f", sample_weight={draw.argument('gedi', 'sample_weight')}" if draw.chance(0.3) else ""
    lines = [
        f"kernel = {draw.construct(name)}",
        f"result = kernel.fit({x}{w}).transform({x})",
        "result = result, kernel, list(kernel.get_feature_names_out())",
    ]
    return "\n".join(lines)


def _accumulator(name: str, draw: Draw) -> str:
    rows = [draw.argument("gedi", known) for known in ("y_true", "sensitive_features")]
    given = f"{rows[0]}, sensitive_features={rows[1]}"
    if draw.chance(0.3):
        given += f", sample_weight={draw.argument('gedi', 'sample_weight')}"
    options = ", ".join(f"{known}={draw.value(known)}" for known in ("norm", "relative"))
    lines = [
        f"accumulator = {draw.construct(name)}",
        f"accumulator.update({given})",
        f"other = {draw.pick(['accumulator', 'GediAccumulator()'])}",
        f"accumulator.merge(other).update({given})",
        f"found = accumulator.inference({options})",
        "result = accumulator, accumulator.gedi(), accumulator.coefficients(), found.upper",
    ]
    return "\n".join(lines)


def _inference(name: str, draw: Draw) -> str:
    found = f"found = {name}({draw.arguments(name)})"
    names = ("value", "null_mean", "null_q95", "pvalue", "interval", "upper")
    asked = [own for own in names if draw.chance(0.5)]
    return "\n".join([found, f"result = {', '.join(f'found.{own}' for own in ['value', *asked])}"])


def _scorer(name: str, draw: Draw) -> str:
    draw.kind = draw.kind if draw.kind == "real" else draw.pick(["binary", "classes"])
    options = draw.arguments(
        name, skip=("sensitive_columns",), sensitive_columns=_column(draw, name)
    )
    data = f"{draw.argument(name, 'X')}, {draw.argument(name, 'y')}"
    metric = options.partition("metric='")[2].partition("'")[0]
    if metric in _METRICS:
        options += f", {draw.arguments(_METRICS[metric], skip=_NOT_OF_SCORERS)}".rstrip(", ")
    lines = [
        f"scorer = {name}({options})",
        f"model = {draw.value('real estimator' if draw.kind == 'real' else 'classes estimator')}",
        f"result = repr(scorer), scorer(model.fit({data}), {data})",
    ]
    return "\n".join(lines)


def _solver(name: str, draw: Draw) -> str:
    own = draw.construct(name)
    return f"result = project_targets({draw.arguments('project_targets', solver=own)})"


def _estimator(name: str, draw: Draw) -> str:
    is_real = name.endswith("Regressor")
    two_only = name.startswith("Lagrangian") and draw.is_sensible
    draw.kind = "real" if is_real else draw.pick(["binary", "binary" if two_only else "classes"])
    by_column = draw.chance(0.5)
    given = {"sensitive_columns": _column(draw, name)} if by_column else {}
    skip = ("sensitive_columns",) if draw.is_sensible else ()
    lines = [f"model = {name}({draw.arguments(name, skip=skip, **given)})"]
    x = None if by_column else draw.argument("gedi", "sensitive_features")
    attribute = f", sensitive_features={x}" if x else ""
    X, y = draw.argument(name, "X"), draw.argument(name, "y")
    weight = f", sample_weight={draw.argument('gedi', 'sample_weight')}" if draw.chance(0.3) else ""
    lines.append(f"model.fit({X}, {y}{attribute}{weight})")
    at_predict = attribute if name.startswith("Projected") and x else ""
    if at_predict:
        lines.append(
            f"needed = {{'sensitive_features': {x}}} if model.sensitive_at_predict else {{}}"
        )
        at_predict = ", **needed"
    lines.append(f"result = model, model.predict({X}{at_predict})")
    if not is_real:
        lines.append("if hasattr(model, 'predict_proba'):")
        lines.append(f"    result = *result, model.predict_proba({X}{at_predict})")
    if draw.chance(0.3):
        inside = [f"    {line}" for line in lines]
        lines = ["with config_context(enable_metadata_routing=True):", *inside]
    return "\n".join(lines)


def _column(draw: Draw, owner: str) -> str:
    X = draw.argument(owner, "X")
    if draw.is_sensible:
        return "'a'" if "DataFrame" in draw.lines[X] else "0"
    return draw.value("sensitive_columns")


def _rule(name: str, draw: Draw) -> str:
    X, y = draw.argument(name, "X"), draw.argument("gedi", "y_true") if draw.kind == "real" else "v"
    lines = [
        f"rule = {draw.construct(name)}",
        "scoring = {'r2': 'r2', 'neg_gedi': make_disparity_scorer(sensitive_columns=0)}",
        "search = GridSearchCV(Ridge(), {'alpha': [0.1, 9.0]}, scoring=scoring, refit=rule, cv=2)",
        f"result = search.fit({X}, {y}).best_index_",
    ]
    return "\n".join(lines)


def _curve(name: str, draw: Draw) -> str:
    return f"result = {name}({_of_curve(name, draw)})"


def _of_curve(name: str, draw: Draw) -> str:
    family = draw.pick(["MovingTargets", "DualTargets", "Projected"])
    owner = f"{family}{'Regressor' if draw.kind == 'real' else 'Classifier'}"
    options = {"max_iter": "2"} if family != "Projected" else {}
    by_column = draw.chance(0.5)
    if by_column:
        options["sensitive_columns"] = _column(draw, name)
    own = draw.arguments(owner, skip=("sensitive_columns",), **options)
    given = {"estimator": f"{owner}({own})"}
    if not by_column:
        given["sensitive_features"] = draw.argument(name, "sensitive_features")
    return draw.arguments(name, skip=("sensitive_features",), **given)


def _display(name: str, draw: Draw) -> str:
    """Return a display of predictions, or of an estimator."""
    if draw.chance(0.6):
        return f"result = plotting.{name}.from_predictions({draw.arguments(name)})"
    draw.kind = draw.kind if draw.kind == "real" else "binary"
    family = "real estimator" if draw.kind == "real" else "classes estimator"
    data = f"{draw.argument(name, 'X')}, {draw.argument(name, 'y')}"
    skip = ("y_true", "y_pred", "sensitive_features")
    options = draw.arguments(name, skip=skip, sensitive_columns=_column(draw, name))
    fitted = f"{draw.value(family)}.fit({data})"
    return f"result = plotting.{name}.from_estimator({fitted}, {data}, {options})"


def _history(name: str, draw: Draw) -> str:
    code = _estimator("MovingTargetsRegressor", draw).split("\n")
    indent = "    " if code[0].startswith("with") else ""
    return "\n".join([*code, f"{indent}result = plotting.{name}.from_estimator(model)"])


def _tradeoff(name: str, draw: Draw) -> str:
    own = draw.arguments(name, skip=("X", "y", "estimator", "thresholds"))
    curve = _of_curve("tradeoff_curve", draw)
    return f"result = plotting.{name}.from_estimator({', '.join(filter(None, [curve, own]))})"


_FUNCTIONS = (
    "didi",
    "fairness_report",
    "gedi",
    "gedi_coefficients",
    "hgr",
    "load_adult",
    "load_communities",
    "make_running_example",
    "project_targets",
    "quantile_bin_edges",
)
ESTIMATORS = (
    "ConstrainedBoostingClassifier",
    "ConstrainedBoostingRegressor",
    "DualTargetsClassifier",
    "DualTargetsRegressor",
    "LagrangianDualClassifier",
    "LagrangianDualRegressor",
    "MovingTargetsClassifier",
    "MovingTargetsRegressor",
    "ProjectedClassifier",
    "ProjectedRegressor",
)
# The function whose parameters a metric of a scorer has, and what a scorer does not take of them.
_METRICS = {"gedi": "gedi", "gedi_upper": "gedi_inference", "didi": "didi", "hgr": "hgr"}
_NOT_OF_SCORERS = (
    *("y_true", "y_pred", "sensitive_features", "sample_weight", "conditional_on"),
    *("method", "n_resamples", "random_state"),
)
_COLUMNS = {(name, "conditional_on") for name in ESTIMATORS}
BUILDERS: dict[str, Callable[[Draw], str]] = {
    name: partial(builder, name)
    for builder, names in (
        (_function, _FUNCTIONS),
        (_path, ("projection_path",)),
        (
            _constraint,
            (
                "CoarseConstraint",
                "ConstraintList",
                "DependenceConstraint",
                "DidiConstraint",
                "FineConstraint",
            ),
        ),
        (_solver, ("Solver",)),
        (_kernel, ("FourierKernel", "PolynomialKernel", "SplineKernel")),
        (_accumulator, ("GediAccumulator",)),
        (_scorer, ("make_disparity_scorer",)),
        (_inference, ("gedi_inference",)),
        (_estimator, ESTIMATORS),
        (_rule, ("best_under_constraint",)),
        (_curve, ("tradeoff_curve",)),
        (_display, ("CutsDisplay", "DependenceDisplay", "GediCoefficientsDisplay")),
        (_history, ("MovingTargetsHistoryDisplay",)),
        (_tradeoff, ("TradeoffDisplay",)),
    )
    for name in names
}
# The estimators have the most parameters; the loaders few and take long.
_WEIGHT = {
    "load_adult": 0.05,
    "load_communities": 0.1,
    "LagrangianDualClassifier": 0.5,
    "LagrangianDualRegressor": 0.5,
    "MovingTargetsClassifier": 3,
    "MovingTargetsRegressor": 3,
    "ProjectedClassifier": 3,
    "ProjectedRegressor": 3,
    "gedi": 3,
    "project_targets": 4,
}
_NEEDS = {"LagrangianDual": "torch", "Display": "matplotlib"}


def runnable() -> list[str]:
    """Return the callables that need no package that is missing."""
    missing = [part for part, package in _NEEDS.items() if find_spec(package) is None]
    return [name for name in BUILDERS if not any(part in name for part in missing)]


def public_callables() -> Iterator[tuple[str, object]]:
    """Yield name and object of everything that users call."""
    for name in gedi_sklearn.__all__:
        value = getattr(gedi_sklearn, name)
        if inspect.ismodule(value):
            yield from ((own, getattr(value, own)) for own in value.__all__)
        else:
            yield name, value


def uncovered() -> list[str]:
    """Name each public callable, and each parameter of one, that no call is drawn of."""
    known = BUILDERS.keys() | RESULTS
    faults = [
        f"{name} has no builder in BUILDERS"
        for name, value in public_callables()
        if callable(value) and name not in known
    ]
    for owner in BUILDERS:
        draw = Draw(np.random.default_rng(0), "plain", "real")
        for parameter in parameters(owner):
            try:
                draw.argument(owner, parameter.name)
            except KeyError as error:
                faults.append(error.args[0])
    return faults


def parameters(owner: str) -> list[inspect.Parameter]:
    """Return the parameters of a callable that are drawn; of a display, those of its making."""
    value = dict(public_callables())[owner]
    if hasattr(value, "from_predictions"):
        value = value.from_predictions
    elif hasattr(value, "from_estimator"):
        value = value.from_estimator
    return [
        parameter
        for parameter in inspect.signature(value).parameters.values()
        if parameter.kind is not parameter.VAR_KEYWORD and parameter.name not in _UNDRAWN
    ]
