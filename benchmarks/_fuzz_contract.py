"""What every call of the library keeps to, whatever it is given."""

from __future__ import annotations

import dataclasses
import inspect
import multiprocessing
import os
import random
import re
import signal
import sys
import tempfile
import threading
import time
import traceback
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from types import FrameType
from typing import Any

import numpy as np
import sklearn
from sklearn.exceptions import FitFailedWarning

from gedi_sklearn.exceptions import SolverError

from ._fuzz_calls import BUILDERS, Call, public_callables
from ._fuzz_values import PREAMBLE

LIMIT = 20.0  # seconds of a call
GRACE = 1.0  # after which it is stopped
_DOCUMENTED = (UserWarning, FitFailedWarning)
_ERRORS = (ValueError, TypeError, SolverError)
# May be infinite: an infinite threshold is one, and its bounds follow; limits where one row alone
# determines a coefficient.
# NaN where the docs say so: in classes, and for what there is in some iterations only.
_MAY_BE_NAN = re.compile(r"^\.history_?\.|(multipliers|correction)$")
_MAY_BE_INFINITE = re.compile(
    r"threshold|radius|bound|multipliers|edges|\bfar\b|upper$|high$|interval$|certificate"
)
# Parts of scikit-learn that are no learners: what they do was asked for by the library.
_TOOLS = tuple(f"sklearn.{part}" for part in ("utils", "externals", "base", "metrics"))


class _TooLong(BaseException):
    """Raised in a call that takes longer than the limit."""


def namespace() -> dict[str, Any]:
    """Return what the code of calls may name; the global state is changed by no import later."""
    names: dict[str, Any] = {}
    exec(PREAMBLE, names)
    # What torch loads at a first fit sets a filter and a variable of the environment.
    for optional in ("matplotlib.pyplot", "gurobipy", "torch._dynamo", "skorch", "maxcorr"):
        with suppress(ImportError):
            import_module(optional)
    return names


def run_call(call: Call, names: dict[str, Any]) -> tuple[str, list[str]]:
    """Run a call; return how it ended, and what it did that it must not do, in words."""
    own = dict(names)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        exec(call.data, own)
    before = global_state()
    faults: list[str] = []
    ended = "error"
    with warnings.catch_warnings(), _output() as written:
        warnings.simplefilter("always")
        filters = list(warnings.filters)
        raised: list[tuple[Warning, str]] = []
        warnings.showwarning = lambda message, *_: raised.append((message, _owner()))
        try:
            with _time_limit(faults):
                exec(call.code, own)
        except _TooLong:
            pass
        except Exception as error:
            faults += _faults_of_error(error)
        else:
            has_warned = any(isinstance(warning, _DOCUMENTED) for warning, _ in raised)
            unwarned = list(_not_finite(own["result"], "", has_warned=False))
            ended = "NaN" if unwarned else "value"
            faults += [f"returned {fault}" for fault in _not_finite(own["result"], "", has_warned)]
        if list(warnings.filters) != filters:
            faults.append("left warnings.filters changed")
    faults += [
        f"let {type(warning).__name__} through: {warning}"
        for warning, owner in raised
        if not isinstance(warning, _DOCUMENTED) and owner == "gedi_sklearn"
    ]
    if written:
        faults.append(f"printed {written[0]!r}")
    after = global_state()
    faults += [f"left {what} changed" for what in before if before[what] != after[what]]
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")
    return ended, faults


def global_state() -> dict[str, Any]:
    """Return what belongs to the process, and no call may leave changed."""
    name, keys, *rest = np.random.get_state()  # noqa: NPY002 - nothing may draw from it
    return {
        "np.errstate": np.geterr(),
        "scikit-learn's configuration": sklearn.get_config(),
        "numpy's global generator": (name, keys.tobytes(), *rest),
        "Python's global generator": random.getstate(),
        "os.environ": dict(os.environ),
        "the working directory": os.getcwd(),
        "warnings.filters": list(warnings.filters),
        "threads": [thread.name for thread in threading.enumerate()],
        "processes": [process.pid for process in multiprocessing.active_children()],
        "the handler of interrupts": signal.getsignal(signal.SIGINT),
        **_state_of_torch(),
    }


def _state_of_torch() -> dict[str, Any]:
    if "torch" not in sys.modules:
        return {}
    torch = sys.modules["torch"]
    modes = (torch.is_grad_enabled(), torch.is_inference_mode_enabled(), torch.get_default_dtype())
    return {
        "torch's modes": (*modes, torch.are_deterministic_algorithms_enabled()),
        "torch's threads": torch.get_num_threads(),
        "torch's global generator": torch.get_rng_state().numpy().tobytes(),
    }


@contextmanager
def _output() -> Iterator[list[str]]:
    """Catch what is written to stdout and stderr, by libraries in C too."""
    caught: list[str] = []
    with tempfile.TemporaryFile() as file:
        sys.stdout.flush(), sys.stderr.flush()
        saved = os.dup(1), os.dup(2)
        os.dup2(file.fileno(), 1), os.dup2(file.fileno(), 2)
        streams, sys.stdout, sys.stderr = (sys.stdout, sys.stderr), *_direct()
        try:
            yield caught
        finally:
            sys.stdout.close(), sys.stderr.close()
            sys.stdout, sys.stderr = streams
            os.dup2(saved[0], 1), os.dup2(saved[1], 2)
            os.close(saved[0]), os.close(saved[1])
            file.seek(0)
            if text := file.read().decode(errors="replace"):
                caught.append(text[:300])


def _direct() -> tuple[Any, Any]:
    """Return streams on the descriptors, where the given ones may be a test's own."""
    return tuple(open(number, "w", closefd=False) for number in (1, 2))


@contextmanager
def _time_limit(faults: list[str]) -> Iterator[None]:
    def stop(*_: object) -> None:
        raise _TooLong

    previous = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, LIMIT + GRACE)
    started = time.perf_counter()
    try:
        yield
    finally:
        if time.perf_counter() - started > LIMIT:
            faults.append(f"took more than {LIMIT:g} s")
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)


def _package(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__", ""))


def _owner() -> str:
    """Return whose code warned: the library's, or that of a learner that it called."""
    frame: FrameType | None = sys._getframe(2)
    while frame is not None:
        name = _package(frame)
        if name.startswith("sklearn.") and not name.startswith(_TOOLS):
            return "sklearn"
        if name.startswith("gedi_sklearn"):
            return "gedi_sklearn"
        frame = frame.f_back
    return ""


def _faults_of_error(error: Exception) -> Iterator[str]:
    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
    inside = [i for i, frame in enumerate(frames) if _package(frame).startswith("gedi_sklearn")]
    if not inside or not _package(frames[-1]):
        return  # scikit-learn's own, about a learner or a search; or that of the call's callable
    said = f"{type(error).__name__}: {error} (in {_package(frames[inside[-1]])})"
    if any(map(_is_anothers, frames[inside[-1] + 1 :])):
        return
    if not isinstance(error, _ERRORS):
        yield f"raised {said}"
    elif not any(re.search(rf"(?<!\w){name}(?!\w)", str(error)) for name in _parameter_names()):
        yield f"raised an error that names no parameter: {said}"


def _is_anothers(frame: FrameType) -> bool:
    """Tell whether another library speaks in its own words.

    Scikit-learn: a learner, or a check of X or of a learner's methods.
    """
    name = _package(frame)
    if name.startswith("matplotlib"):
        return True  # which is handed keywords that it knows
    is_learner = name.startswith("sklearn.") and not name.startswith(_TOOLS)
    return is_learner or frame.f_code.co_name in ("check_array", "_check_response_method")


def _parameter_names() -> set[str]:
    """Return the names of all parameters, and of the rows that methods take."""
    known = {"X", "y", "sensitive_features", "sample_weight"}
    for name, value in public_callables():
        if name in BUILDERS:
            known |= set(inspect.signature(value).parameters)  # type: ignore[arg-type]
            for method in ("from_predictions", "from_estimator"):
                known |= set(inspect.signature(getattr(value, method, len)).parameters)
    return known - {"self", "obj"}


def _not_finite(value: Any, path: str, has_warned: bool) -> Iterator[str]:
    """Yield what in a result is neither finite nor NaN with a warning."""
    if isinstance(value, (float, np.floating, np.ndarray)):
        array = np.asarray(value)
        if array.dtype.kind not in "fc":
            return
        if np.isinf(array).any() and not _MAY_BE_INFINITE.search(path):
            yield f"an infinite{path or ' value'}"
        if np.isnan(array).any() and not has_warned and not _MAY_BE_NAN.search(path):
            yield f"NaN without a warning{path and ' in'}{path}"
    elif isinstance(value, dict):
        for name, own in value.items():
            yield from _not_finite(own, f"{path}.{name}", has_warned)
    elif hasattr(value, "_asdict"):
        yield from _not_finite(value._asdict(), path, has_warned)
    elif isinstance(value, (tuple, list)):
        for own in value:
            yield from _not_finite(own, path, has_warned)
    elif hasattr(value, "to_dict") and hasattr(value, "columns"):
        own = {name: np.asarray(value[name]) for name in value.columns}
        yield from _not_finite(own, path, has_warned)
    elif dataclasses.is_dataclass(value):
        fields = [own.name for own in dataclasses.fields(value)]
        own = {name: getattr(value, name) for name in fields}
        yield from _not_finite(own, path, has_warned)
    elif hasattr(value, "get_params"):
        own = {k: v for k, v in vars(value).items() if k.endswith("_") and not k.startswith("_")}
        own = {k: v for k, v in own.items() if not hasattr(v, "get_params")}
        yield from _not_finite(own, path, has_warned)
