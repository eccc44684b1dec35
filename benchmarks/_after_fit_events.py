"""What may happen to a fitted estimator, and what has to be true of it afterwards."""

from __future__ import annotations

import inspect
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from types import FrameType
from typing import Any

import numpy as np
from sklearn.base import clone

from ._fuzz_calls import Draw
from ._fuzz_contract import global_state
from ._fuzz_values import VALUES
from ._relations import Answer, Names, difference, fit

_EXACT = {"unit": 0, "x_unit": 0, "shift": 0}
_MOODS = ("plain", "borderline", "invalid")
# Rows that no `fit` takes, by the name that is replaced.
_BAD_ROWS: dict[str, tuple[Callable[[Any], Any], ...]] = {
    "X": (lambda X: X[1:], lambda X: None, lambda X: X.assign(b=np.nan, c=np.inf)),
    "y": (lambda y: y[1:], lambda y: None, lambda y: np.where(np.arange(len(y)) == 3, np.nan, 1.0)),
    "sensitive_features": (lambda x: None, lambda x: x[1:], lambda x: [None] * len(x)),
    "sample_weight": (lambda w: -np.ones(3), lambda w: "a"),
}
# Parameters whose invalid values no `fit` takes.
_CHECKED = ("constraint", "sensitive_columns", "drop_sensitive", "max_iter", "n_estimators")


class Unfit(Exception):
    """The other rows cannot be fitted on, with these parameters: nothing can happen."""


@dataclass
class Fitted:
    """A fitted estimator, the namespace of its call, and the rows of another fit."""

    model: Any
    names: Names
    code: str
    draw: Draw

    def __post_init__(self) -> None:
        self.expected = self.answer()
        named = {"sensitive_features": "x", "sample_weight": "w"}
        rows = {name: self.names[named.get(name, name)] for name in ("X", "y", *named)}
        self.others = {**rows, "X": 2.0 * rows["X"][::-1] + 1, "y": rows["y"][::-1]}

    def answer(self, model: Any = None) -> Answer:
        """Return what a model answers to new rows; this one, or another."""
        names = {**self.names, "model": self.model if model is None else model}
        exec(self.code, names)
        return names["result"]

    def fresh(self) -> Any:
        """Return a new model that is fitted on the other rows."""
        try:
            return fit(clone(self.model), **self.others)
        except Exception as error:
            raise Unfit from error


Event = Callable[[Fitted], Iterator[str]]


def set_parameters(fitted: Fitted) -> Iterator[str]:
    """Set some parameters to values of any kind."""
    draw, model = fitted.draw, fitted.model
    for _ in range(draw.rng.integers(1, 5)):
        draw.mood, draw.left = draw.pick(_MOODS), 9
        name = draw.pick(sorted(model.get_params(deep=False)))
        value = eval(draw.argument(type(model).__name__, name), {**fitted.names})
        model.set_params(**{name: value})
    with suppress(ValueError, AttributeError):
        model.set_params(constraint__threshold=draw.rng.random())
    yield from _changed(fitted, fitted.expected)


def refit(fitted: Fitted) -> Iterator[str]:
    """Fit the same object on other rows."""
    expected = fitted.answer(fitted.fresh())
    fit(fitted.model, **fitted.others)
    yield from _changed(fitted, expected, "a new model's")


def refit_on_bad_rows(fitted: Fitted) -> Iterator[str]:
    """Fit on rows that are refused."""
    draw = fitted.draw
    name = draw.pick(sorted(_BAD_ROWS))
    bad = _BAD_ROWS[name][draw.rng.integers(len(_BAD_ROWS[name]))]
    yield from _fails(fitted, {**fitted.others, name: bad(fitted.others[name])})


def refit_with_bad_parameters(fitted: Fitted) -> Iterator[str]:
    """Fit with a parameter that is refused."""
    draw, model = fitted.draw, fitted.model
    name = draw.pick([name for name in _CHECKED if hasattr(model, name)])
    value = draw.pick([own for own in VALUES[name].invalid if own not in ("None", "[3]")])
    model.set_params(**{name: eval(value, {**fitted.names})})
    yield from _fails(fitted, fitted.others, allows_success=True)


def end_early(error: type[BaseException]) -> Event:
    """Return the event of a fit that ends in an error, anywhere in the library."""

    def event(fitted: Fitted) -> Iterator[str]:
        with ended_at(None, error) as n_calls:
            fitted.fresh()
        try:
            with ended_at(int(fitted.draw.rng.integers(n_calls[0])), error):
                fit(fitted.model, **fitted.others)
        except error:
            yield from _changed(fitted, fitted.expected)
        except BaseException as other:
            yield f"{error.__name__} became {other!r}"
        else:
            yield f"{error.__name__} did not come through"

    return event


EVENTS: dict[str, Event] = {
    "parameters set": set_parameters,
    "another fit": refit,
    "bad rows": refit_on_bad_rows,
    "bad parameters": refit_with_bad_parameters,
    "an error inside": end_early(MemoryError),
    "an interrupt": end_early(KeyboardInterrupt),
}


def faults_of(event: Event, fitted: Fitted) -> list[str] | None:
    """Let an event happen; return what is wrong afterwards, None where it cannot happen."""
    before = global_state()
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        filters = list(warnings.filters)
        try:
            faults = list(event(fitted))
        except Unfit:
            return None
        if list(warnings.filters) != filters:
            faults.append("left warnings.filters changed")
    after = global_state()
    return faults + [f"left {what} changed" for what in before if before[what] != after[what]]


@contextmanager
def ended_at(number: int | None, error: type[BaseException]) -> Iterator[list[int]]:
    """Raise an error in a call of a function of the library, counted from 0; yield their count."""
    count = [0]

    def profile(frame: FrameType, what: str, _: Any) -> None:
        # What a generator raises when it is closed goes nowhere.
        is_generator = frame.f_code.co_flags & inspect.CO_GENERATOR
        name = frame.f_globals.get("__name__", "")
        if what != "call" or is_generator or not name.startswith("gedi_sklearn"):
            return
        count[0] += 1
        if count[0] - 1 == number:
            raise error

    previous = sys.getprofile()
    sys.setprofile(profile)
    try:
        yield count
    finally:
        sys.setprofile(previous)


def _fails(fitted: Fitted, rows: Names, *, allows_success: bool = False) -> Iterator[str]:
    try:
        fit(fitted.model, **rows)
    except Exception:
        yield from _changed(fitted, fitted.expected)
    else:
        if not allows_success:
            yield "took rows that are none"


def _changed(fitted: Fitted, expected: Answer, whose: str = "the old model's") -> Iterator[str]:
    """Yield a fault where the answers are others than expected."""
    try:
        answer = fitted.answer()
    except Exception as error:
        yield f"{type(error).__name__} where {whose} answer was expected: {error}"
        return
    apart = difference(expected, answer, _EXACT, {"unit": 1.0, "x_unit": 1.0})
    if apart:
        yield f"the answers are not {whose}, but {apart:.3g} apart"
