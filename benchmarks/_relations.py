"""Relations between answers: how data are changed, and what that makes of an answer.

A relation changes some names of a namespace in which the code of a call runs. What the change
makes of an answer is in the namespace as well: the units of targets and attribute, the shift of
the targets, the new labels. So one function, :func:`expected`, serves all relations.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

Names = dict[str, Any]
Answer = list[np.ndarray]

# What holds a row a position; keywords of rows have longer names.
_ROWS = ("X", "x", "y", "p", "w", "c", "row", "sensitive_features", "sample_weight")
# Size below which an answer counts as one of this size, in units of the data.
_LEAST = 1e-3
_METHODS = ("predict", "predict_proba", "decision_function")


@dataclass(frozen=True)
class Relation:
    """A change of the data that changes answers in a known way.

    Attributes
    ----------
    name : str
        What is changed.
    change : callable
        From the names before and a generator to the names that differ.
    tolerance : float
        Largest difference from what is expected, as a share of the size of the answer.
    reason : str
        Why the tolerance is not 0, or why it is.
    weights : str
        Which weights the rows need: "any" may be none.
    kinds, attributes : tuple of str
        The targets and the attributes that it is about.
    regroups : bool
        Whether rows change places or number, so that folds and batches are other ones.
    """

    name: str
    change: Callable[[Names, np.random.Generator], Names]
    tolerance: float
    reason: str
    weights: str = "any"
    kinds: tuple[str, ...] = ("real", "binary", "classes")
    attributes: tuple[str, ...] = ("number", "columns", "text")
    regroups: bool = False


# --- what a call does unless a relation changes it


def fit(model: Any, **rows: Any) -> Any:
    """Fit a model; keywords that are None are not passed."""
    return model.fit(**_given(rows))


def respond(model: Any, X: Any, **rows: Any) -> Answer:
    """Return all responses of a model to new rows."""
    known = [method for method in _METHODS if hasattr(model, method)]
    return [np.asarray(getattr(model, method)(X, **_given(rows))) for method in known]


def accumulate(accumulator: Any, y: Any, **rows: Any) -> Any:
    """Add all rows at once."""
    return accumulator.update(y, **_given(rows))


def measure(function: Callable, *rows: Any, **options: Any) -> Any:
    """Return the value of a function."""
    return function(*rows, **options)


PLAIN: Mapping[str, Any] = {
    "fit": fit,
    "respond": respond,
    "accumulate": accumulate,
    "measure": measure,
    "unit": 1.0,
    "shift": 0.0,
    "x_unit": 1.0,
    "labels": {},
}


def expected(answer: Answer, powers: Mapping[str, int], after: Names) -> Answer:
    """Return what an answer becomes: in other units, shifted, with other labels.

    `powers` has those of both units in the answer, and of the shift.
    """
    factor = after["unit"] ** powers["unit"] * after["x_unit"] ** powers["x_unit"]
    shift, labels = after["shift"] * powers["shift"], after["labels"]
    return [
        _renamed(values, labels) if not _is_number(values) else factor * values + shift
        for values in answer
    ]


def difference(answer: Answer, other: Answer, powers: Mapping[str, int], after: Names) -> float:
    """Return how far two answers are apart, as a share of their size; labels, how many differ."""
    if [values.shape for values in answer] != [values.shape for values in other]:
        return np.inf
    size = _LEAST * after["unit"] ** powers["unit"] * after["x_unit"] ** powers["x_unit"]
    pairs = zip(answer, other, strict=True)
    return max((_apart(one, two, size) for one, two in pairs), default=0.0)


def _apart(one: np.ndarray, two: np.ndarray, size: float) -> float:
    if not one.size:
        return 0.0
    if not (_is_number(one) and _is_number(two)):
        return float(np.mean(one != two))
    if (np.isfinite(one) != np.isfinite(two)).any():
        return np.inf
    known = np.isfinite(one)
    if not known.any():
        return 0.0
    return float(np.abs(one - two)[known].max() / max(np.abs(one[known]).max(), size))


# --- the changes


def _targets(names: Names, rng: np.random.Generator) -> Names:
    a, b = 10 ** rng.uniform(-3, 3), rng.normal()
    changed = {name: a * (names[name] + b) for name in ("y", "p")}
    return {**changed, "unit": a, "shift": a * b}


def _attribute(names: Names, rng: np.random.Generator) -> Names:
    a, b = 10 ** rng.uniform(-3, 3), 10 * rng.normal()
    return {"x": a * (names["x"] + b), "new_x": a * (names["new_x"] + b), "x_unit": a}


def _weights(names: Names, rng: np.random.Generator) -> Names:
    # A power of 2 rounds nothing: of labels that are as near, a search returns the same.
    return {"w": 2.0 ** rng.integers(-20, 21) * names["w"]}


def _rows(names: Names, rng: np.random.Generator) -> Names:
    return _taken(names, rng.permutation(len(names["y"])))


def _columns(names: Names, rng: np.random.Generator) -> Names:
    order = rng.permutation(names["X"].shape[1])
    changed = {name: names[name].iloc[:, order] for name in ("X", "new_X")}
    if names["x"].ndim == 2:
        changed |= {name: names[name][:, ::-1] for name in ("x", "new_x")}
    return changed


def _classes(names: Names, rng: np.random.Generator) -> Names:
    # In the order of the old ones: the order of classes decides on ties, and on which one counts.
    old = np.unique(names["y"])
    drawn = np.sort(rng.choice(10_000, len(old), replace=False))
    kind = rng.integers(3)
    new = [drawn - 5000, np.array([f"{label:05d}" for label in drawn]), drawn * 1.0][kind]
    labels = dict(zip(old.tolist(), new.tolist(), strict=True))
    renamed = {name: _renamed(names[name], labels) for name in ("y", "p")}
    return {**renamed, "pos": labels[names["pos"].item()], "labels": labels}


def _repeated(names: Names, rng: np.random.Generator) -> Names:
    return {**_taken(names, np.repeat(np.arange(len(names["y"])), names["w"])), "w": None}


def _absent(names: Names, rng: np.random.Generator) -> Names:
    return _taken(names, np.flatnonzero(names["w"]))


def _again(names: Names, rng: np.random.Generator) -> Names:
    return {
        "fit": lambda model, **rows: fit(fit(model, **rows), **rows),
        "measure": lambda *rows, **options: [measure(*rows, **options) for _ in "ab"][1],
    }


def _pickled(names: Names, rng: np.random.Generator) -> Names:
    def copied(value: Any) -> Any:
        return pickle.loads(pickle.dumps(value))

    return {
        "fit": lambda model, **rows: copied(fit(copied(model), **rows)),
        "accumulate": lambda model, *rows, **more: copied(accumulate(model, *rows, **more)),
        "measure": lambda function, *rows, **options: measure(copied(function), *rows, **options),
    }


def _chunks(names: Names, rng: np.random.Generator) -> Names:
    def parts(n: int) -> list[np.ndarray]:
        return np.split(np.arange(n), np.sort(rng.choice(np.arange(1, n), 3, replace=False)))

    def respond_in_chunks(model: Any, X: Any, **rows: Any) -> Answer:
        answers = [respond(model, **_taken({"X": X, **rows}, own)) for own in parts(len(X))]
        return [np.concatenate(pieces) for pieces in zip(*answers, strict=True)]

    def accumulate_in_chunks(accumulator: Any, y: Any, **rows: Any) -> Any:
        for own in parts(len(y)):
            accumulate(accumulator, **_taken({"y": y, **rows}, own))
        return accumulator

    return {"respond": respond_in_chunks, "accumulate": accumulate_in_chunks}


def _groups(names: Names, rng: np.random.Generator) -> Names:
    old = np.unique(names["x"])
    new = [f"level {label}" for label in rng.permutation(len(old))]
    levels = dict(zip(old.tolist(), new, strict=True))
    return {name: _renamed(names[name], levels) for name in ("x", "new_x")}


_ROUNDING = "sums in another order, or of other magnitudes, are rounded otherwise"
_BITS = "nothing is computed that was not computed before"

RELATIONS = {
    relation.name: relation
    for relation in (
        Relation("y -> a*y + b", _targets, 1e-7, _ROUNDING, kinds=("real",)),
        Relation(
            "attribute -> a*x + b", _attribute, 1e-7, _ROUNDING, attributes=("number", "columns")
        ),
        Relation("weights * c", _weights, 1e-8, _ROUNDING, weights="some"),
        Relation("rows permuted", _rows, 1e-8, _ROUNDING, regroups=True),
        Relation("columns permuted", _columns, 1e-8, _ROUNDING),
        Relation("classes renamed", _classes, 0.0, _BITS, kinds=("binary", "classes")),
        Relation("weight k = k rows", _repeated, 1e-8, _ROUNDING, "integer", regroups=True),
        Relation("weight 0 = no row", _absent, 1e-8, _ROUNDING, "zeros", regroups=True),
        Relation("fitted twice", _again, 0.0, _BITS),
        Relation("pickled", _pickled, 0.0, _BITS),
        Relation("chunks = whole", _chunks, 1e-8, _ROUNDING),
        Relation("groups renamed", _groups, 1e-8, _ROUNDING, attributes=("text",)),
    )
}


# --- helpers


def _given(rows: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in rows.items() if value is not None}


def _taken(names: Mapping[str, Any], index: np.ndarray) -> Names:
    """Return some rows of all that holds rows."""
    held = {name: names[name] for name in _ROWS if names.get(name) is not None}
    return {k: v.iloc[index] if hasattr(v, "iloc") else v[index] for k, v in held.items()}


def _is_number(values: np.ndarray) -> bool:
    return values.dtype.kind == "f"


def _renamed(values: np.ndarray, names: Mapping[Any, Any]) -> np.ndarray:
    if not names:
        return values
    return np.array([names[value] for value in values.tolist()])
