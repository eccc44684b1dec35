"""The calls that relations are tried on: how one is drawn for every estimator and indicator."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from ._fuzz_calls import ESTIMATORS, Draw
from ._relations import PLAIN, Names, Relation

_PURE = {"unit": 0, "x_unit": 0, "shift": 0}
_PREDICTION = {"unit": 1, "x_unit": 0, "shift": 1}
_SLOPE = {"unit": 1, "x_unit": -1, "shift": 0}
_SIZE = {"unit": 1, "x_unit": 0, "shift": 0}


@dataclass(frozen=True)
class Subject:
    """An estimator or an indicator.

    Attributes
    ----------
    name : str
        What the table calls it.
    code : callable
        From a draw and a relation to the code of a call.
    powers : dict
        Powers of the units of targets and attribute in an answer, and of the targets' shift.
    kinds, attributes : tuple of str
        The targets and attributes that it takes.
    precision : float
        Least tolerance: of single precision, of iterations.
    has_columns : bool
        Whether it sees a table X beside the attribute.
    """

    name: str
    code: Callable[[Draw, Relation], str]
    powers: dict[str, int]
    kinds: tuple[str, ...] = ("real", "binary")
    attributes: tuple[str, ...] = ("number", "columns", "text")
    precision: float = 0.0
    has_columns: bool = False


@dataclass(frozen=True)
class Trial:
    """A call before and after a change: data, code, and the relation of both answers."""

    number: int
    subject: Subject
    relation: Relation
    data: str
    code: str

    def __str__(self) -> str:
        return f"{self.data}\n{self.code}"

    def names(self, known: Names) -> Names:
        """Return the namespace before the change."""
        names = {**known, **PLAIN}
        exec(self.data, names)
        return names


_ATTRIBUTES = {
    "number": ("v", "10 * v + 40", "np.round(v, 1)"),
    "columns": ("np.c_[v, r.normal(size=n)]", "np.c_[10 * v, r.random(n)]"),
    "text": (
        "np.where(v + r.normal(size=n) > 0, 'a', 'b')",
        "np.array(list('cab'))[np.digitize(v + r.normal(size=n), [-0.6, 0.5])]",
    ),
}
_WEIGHTS = {
    "any": ("None", "r.random(n) + 0.1"),
    "some": ("r.random(n) + 0.1", "r.integers(1, 4, n)"),
    "integer": ("r.integers(1, 4, n)",),
    "zeros": ("r.integers(0, 3, n)", "(r.random(n) > 0.2) * r.random(n)"),
}


def forms(subject: Subject, relation: Relation) -> tuple[str, ...]:
    """Return the kinds of attributes that both are about."""
    known = tuple(form for form in subject.attributes if form in relation.attributes)
    if relation.name == "columns permuted" and not subject.has_columns:
        return tuple(form for form in known if form == "columns")
    return known


def draw_trial(seed: int, number: int, subject: Subject, relation: Relation) -> Trial:
    """Return trial `number` of a seed, the same each time."""
    rng = np.random.default_rng([seed, number])
    kinds = [kind for kind in subject.kinds if kind in relation.kinds]
    draw = Draw(rng, "plain", kind=str(rng.choice(kinds)))
    draw.lines["form"] = str(rng.choice(forms(subject, relation)))
    draw.lines["w"] = draw.pick(_WEIGHTS[relation.weights])
    x = draw.pick(_ATTRIBUTES[draw.lines["form"]])
    code = subject.code(draw, relation)
    p = "0.5 * v + r.normal(size=n)" if draw.kind == "real" else "np.flip(y)"
    data = f"""\
r, n = np.random.default_rng({number}), {draw.pick(["60", "90", "120"])}
v = np.round(r.normal(size=n), 3)
y = np.asarray({draw.value(f"{draw.kind} y")})
x, w, c = {x}, {draw.lines["w"]}, r.normal(size=n)
p, row, pos = {p}, np.arange(n), np.unique(y)[-1]
X = pd.DataFrame({{"b": v + r.normal(size=n), "c": r.normal(size=n), "d": r.normal(size=n)}})
new_X, new_x, kept = X[:40], x[:40], row[np.ones(n, bool) if w is None else w > 0][:40]"""
    return Trial(number, subject, relation, data, code)


# --- estimators

_LEARNERS = {
    True: ("LinearRegression()", "Ridge(0.1)", "make_pipeline(StandardScaler(), Ridge())"),
    False: ("GaussianNB()", "LogisticRegression(tol=1e-12, solver='newton-cholesky')"),
}
_FOR_ANY = ("None", "DependenceConstraint(0.5)", "DependenceConstraint(0.2 * unit, relative=False)")
# Of several classes those that are met soon.
_FOR_CLASSES = ("DependenceConstraint(0.5, kernel=1)", "DependenceConstraint(0.6, kernel=1)")
_FOR = {
    "number": (
        "CoarseConstraint(0.3)",
        "FineConstraint(0.4)",
        "DependenceConstraint(0.4, kernel=2)",
    ),
    "columns": ("CoarseConstraint(0.3)",),
    "text": ("DidiConstraint(0.3)", "DidiConstraint(0.2 * unit, relative=False)"),
}
_RAW = "CoarseConstraint(0.1 * unit / x_unit, relative=False)"
# What makes folds and batches of the rows, which other places or numbers of rows change.
_ONE_GROUP = {
    "Projected": {"cv": "'train'", "confidence": "None"},
    "MovingTargets": {"cv": "'train'"},
    "DualTargets": {"cv": "'train'"},
    "ConstrainedBoosting": {"cv": "None", "confidence": "None"},
    "LagrangianDual": {"batch_size": "None"},
}


def _constraint(draw: Draw, family: str, relation: Relation) -> str:
    form = draw.lines["form"]
    if draw.kind == "classes":
        return draw.pick(_FOR_CLASSES if form != "text" else ("DidiConstraint(0.5)",))
    # A network's multipliers grow by steps in the units of what is bounded.
    if family == "LagrangianDual" and relation.name == "attribute -> a*x + b":
        return draw.pick(_FOR_ANY)
    has_raw = form == "number" and family != "LagrangianDual"
    return draw.pick([*_FOR_ANY, *_FOR[form], *([_RAW] if has_raw else [])])


def _estimator(name: str, draw: Draw, relation: Relation) -> str:
    family = next(known for known in _ONE_GROUP if name.startswith(known))
    given = {"constraint": _constraint(draw, family, relation)}
    if family in ("Projected", "MovingTargets", "DualTargets"):
        given["estimator"] = _learner(draw, relation)
        given["conditional_on"] = draw.pick(["None", "None", "'c'"])
    if family == "MovingTargets":
        # Other losses have several nearest targets; a limit of time ends a search anywhere.
        given |= {"loss": "'auto'", "solver": "Solver(gap=0.02)"}
    if name in ("ProjectedRegressor", "MovingTargetsRegressor"):
        bounds = ["None", "None", "(-9 * unit + shift, 99 * unit + shift)"]
        given["target_bounds"] = draw.pick(bounds)
    if relation.regroups:
        given |= _ONE_GROUP[family]
    at_predict, skip = "", ("sensitive_columns", "drop_sensitive", "sensitive_at_predict")
    if family == "Projected":
        given["attribute_estimator"] = "LinearRegression()"
        # What predicts the attribute is cross-fitted, whatever `cv` is; and that of classes ends a
        # search in steps of whole labels, which rounding turns over.
        moves = ("columns permuted", "attribute -> a*x + b", "groups renamed")
        is_rounded = draw.kind != "real" and relation.name in moves
        if not (relation.regroups or is_rounded) and draw.chance(0.3):
            given["sensitive_at_predict"] = "False"
        else:
            at_predict = ", sensitive_features=new_x"
    return (
        f"model = {name}({draw.arguments(name, skip=skip, **given)})\n"
        "model = fit(model, X=X, y=y, sensitive_features=x, sample_weight=w)\n"
        f"result = respond(model, new_X{at_predict})"
    )


def _learner(draw: Draw, relation: Relation) -> str:
    learners = _LEARNERS[draw.kind == "real"]
    # A pipeline hands no weights on; a penalty is of the sum of the weights.
    is_weighted, is_scaled = draw.lines["w"] != "None", relation.name == "weights * c"
    return draw.pick(learners[: 1 if is_scaled else 2 if is_weighted else 3])


_PRECISION = {"ProjectedClassifier": 1e-4, "LagrangianDual": 1e-3, "ConstrainedBoosting": 1e-4}


def _subject(name: str) -> Subject:
    kinds: tuple[str, ...] = ("binary", "classes")
    if name.endswith("Regressor"):
        kinds = ("real",)
    elif name.startswith(("Lagrangian", "Dual")):
        kinds = ("binary",)
    return Subject(
        name,
        partial(_estimator, name),
        _PREDICTION if name.endswith("Regressor") else _PURE,
        kinds,
        # Targets of classes are the first of those that are as near: columns may change places.
        ("number", "text") if name == "MovingTargetsClassifier" else ("number", "columns", "text"),
        precision=next((v for k, v in _PRECISION.items() if name.startswith(k)), 0.0),
        has_columns=True,
    )


# --- functions


def _code(code: str, draw: Draw, relation: Relation) -> str:
    """Return the code of a function, with what it takes beside its own options."""
    kernel = "1" if draw.lines["form"] == "text" else draw.pick(["1", "2", "'spline'"])
    constraint = _constraint(draw, "", relation)
    label = ", pos_label=pos" if draw.kind == "binary" else ""
    beside = draw.pick(["", "", ", conditional_on=c"])
    for name, value in {
        "ROWS": "sensitive_features=x, sample_weight=w",
        "TASK": "regression" if draw.kind == "real" else "classification",
        "KERNEL": kernel,
        "CONSTRAINT": constraint,
        "LABEL": label,
        "BESIDE": beside,
    }.items():
        code = code.replace(name, value)
    return code


_GEDI = "result = [measure(gedi, y, p, ROWS, kernel={}, norm={!r}LABELBESIDE)]"
_INFER = (
    "found = measure(gedi_inference, y, p, ROWS, kernel=1, norm='sd', random_state=0LABELBESIDE)\n"
)
_PROJECT = "found = measure(project_targets, y, ROWS, constraint=CONSTRAINTBESIDE)\n"
_TARGETS = "result = [found.targets[[np.flatnonzero(row == one)[0] for one in kept]]]"
# Several targets may be as near: what is compared is how near they are, to the gap of a search,
# which is 1/n of the loss.
_SHARE = "result = [np.array([np.average(found.targets != y, weights=w)])]"
_GAP = 2e-2
_HGR = "result = [measure(hgr, y, p, ROWS, method={!r}, random_state=0LABEL)]"
_DIDI = "result = [measure(didi, y, p, ROWS, task='TASK'{})]"
_ONE, _NUMBERS = ("number",), ("number", "columns")
_TWO = ("real", "binary")
_FUNCTIONS = {
    "gedi, l1, one power": (_GEDI.format("1", "l1"), _SLOPE),
    "gedi, l1, powers": (_GEDI.format("2", "l1"), _SIZE, _TWO, _NUMBERS),
    "gedi, l1, relative": (
        "result = [measure(gedi, y, p, ROWS, relative=TrueLABEL)]",
        _PURE,
    ),
    "gedi, sd": (_GEDI.format("KERNEL", "sd"), _SIZE),
    "gedi, adjusted sd": (_GEDI.format("KERNEL", "adjusted_sd"), _SIZE),
    "gedi_coefficients": (
        "result = [np.sort(measure(gedi_coefficients, y, ROWSLABEL))]",
        _SLOPE,
    ),
    "didi": (_DIDI.format(""), _SIZE, ("real", "binary", "classes"), ("text",)),
    "didi of bins": (_DIDI.format(", n_bins=3"), _SIZE, _TWO, _ONE),
    "hgr, kernel": (_HGR.format("kernel"), _PURE, _TWO, _NUMBERS),
    "hgr, density": (_HGR.format("kde"), _PURE, ("real",), _ONE),
    "hgr, chi2": (_HGR.format("chi2"), _PURE, ("binary",), _ONE),
    "gedi_inference, limits": (
        _INFER + "result = [np.array([found.value, found.null_q95, *found.interval, found.upper])]",
        _SIZE,
    ),
    "gedi_inference, p-value": (_INFER + "result = [found.pvalue]", _PURE),
    "GediAccumulator": (
        "sums = accumulate(GediAccumulator(KERNEL, reference=new_xLABEL), y, ROWS)\n"
        "result = [sums.gedi(norm='sd')]",
        _SIZE,
    ),
    "make_disparity_scorer": (
        "scorer = make_disparity_scorer('gedi', sensitive_columns='b', kernel=2, norm='sd')\n"
        "model = LinearRegression().fit(X, y, sample_weight=w)\n"
        "result = [measure(scorer, model, X, y, sample_weight=w)]",
        _SIZE,
        ("real",),
        ("number",),
        0.0,
        True,
    ),
    "project_targets, real": (_PROJECT + _TARGETS, _PREDICTION, ("real",)),
    "project_targets, classes": (
        _PROJECT + _SHARE,
        _PURE,
        ("binary", "classes"),
        ("number", "columns", "text"),
        _GAP,
    ),
}

SUBJECTS = {name: _subject(name) for name in ESTIMATORS} | {
    name: Subject(name, partial(_code, code), *more) for name, (code, *more) in _FUNCTIONS.items()
}
