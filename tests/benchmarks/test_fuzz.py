"""Random calls of everything public keep to the contract of every call."""

import inspect
import re

import numpy as np
import pytest
import sklearn

import gedi_sklearn
from benchmarks import _fuzz_calls, _fuzz_contract, fuzz
from benchmarks._fuzz_calls import BUILDERS, RESULTS, Call, Draw, draw_call
from benchmarks._fuzz_contract import namespace, run_call
from benchmarks._fuzz_values import VALUES


def failures(numbers):
    return [
        f"call {call.number}: {'; '.join(faults)}\n{call}"
        for call, _, faults in fuzz.run_calls(fuzz.SEED, numbers)
        if faults
    ]


def test_everything_public_is_called():
    assert _fuzz_calls.uncovered() == []
    public = dict(_fuzz_calls.public_callables())
    # No name is listed that is not there.
    assert BUILDERS.keys() | RESULTS <= public.keys()
    for name, build in BUILDERS.items():
        for mood in ("plain", "borderline", "invalid"):
            code = build(Draw(np.random.default_rng(0), mood, "real"))
            assert re.search(rf"\b{name}\b", code)
    assert {draw_call(fuzz.SEED, number).name for number in range(300)} <= BUILDERS.keys()


def test_a_new_callable_and_a_new_parameter_are_missed(monkeypatch):
    def measure(y_true, *, sensitive_features, exponent=1):
        return 0.0

    monkeypatch.setattr(gedi_sklearn.metrics, "measure", measure, raising=False)
    monkeypatch.setattr(gedi_sklearn.metrics, "__all__", [*gedi_sklearn.metrics.__all__, "measure"])
    assert _fuzz_calls.uncovered() == ["measure has no builder in BUILDERS"]
    monkeypatch.setitem(BUILDERS, "measure", lambda draw: "")
    assert _fuzz_calls.uncovered() == [
        "the parameter 'exponent' of measure has no values to draw from"
    ]


def test_a_call_is_the_same_each_time():
    first, again = draw_call(5, 11), draw_call(5, 11)
    assert first == again
    assert str(first) != str(draw_call(6, 11))


def test_calls_are_code_and_their_data_can_be_made():
    names = namespace()
    kinds = set()
    for number in range(120):
        call = draw_call(fuzz.SEED, number)
        own = dict(names)
        with np.errstate(all="ignore"):
            exec(call.data, own)
        compile(call.code, "call", "exec")
        kinds |= {type(own.get("x")).__name__, type(own.get("y")).__name__}
    assert {"ndarray", "list", "Series", "DataFrame"} <= kinds
    assert len(VALUES) > 60


CODE = {
    "result = gedi([1.0, 2.0], sensitive_features=[0.0, 1.0])": None,
    "raise_ = 1 / 0": None,  # not the library's
    "print('loud'); result = 1.0": "printed 'loud",
    "import os; os.write(2, b'from C'); result = 1.0": "printed 'from C'",
    "result = np.inf": "infinite value",
    "result = {'a': np.array([1.0, np.nan])}": "NaN without a warning in.a",
    "import warnings; warnings.warn('undefined'); result = np.nan": None,
    "import warnings; warnings.simplefilter('ignore'); result = 1.0": "left warnings.filters",
    "np.seterr(all='ignore'); result = 1.0": "left np.errstate changed",
    "np.random.rand(); result = 1.0": "left numpy's global generator changed",
    "import os; os.environ['FUZZ'] = '1'; result = 1.0": "left os.environ changed",
    "import sklearn; sklearn.set_config(assume_finite=True); result = 1.0": "configuration changed",
    "import time; time.sleep(9); result = 1.0": "took more than 0.5 s",
    "gedi_sklearn_fails(KeyError('x'))": "raised KeyError",
    "gedi_sklearn_fails(ValueError('bad'))": "names no parameter: ValueError: bad",
    "gedi_sklearn_fails(ValueError('bad degree'))": None,
    "gedi_sklearn_warns(); result = 1.0": "let RuntimeWarning through: divide by zero",
}


@pytest.mark.parametrize(("code", "fault"), CODE.items())
def test_each_breach_of_the_contract_is_found(code, fault, monkeypatch):
    monkeypatch.setattr(_fuzz_contract, "LIMIT", 0.5)
    monkeypatch.setattr(_fuzz_contract, "GRACE", 0.0)
    monkeypatch.setenv("FUZZ", "0")
    names = namespace()
    # Functions that are the library's by their module.
    exec(
        "def gedi_sklearn_fails(error):\n    raise error\n"
        "def gedi_sklearn_warns():\n    return np.ones(1) / np.zeros(1)\n",
        own := {"__name__": "gedi_sklearn.made_up", "np": np},
    )
    names |= {name: value for name, value in own.items() if inspect.isfunction(value)}
    with np.errstate(), sklearn.config_context():
        _, faults = run_call(Call(0, "gedi", "", code), names)
    if fault is None:
        assert faults == []
    else:
        assert len(faults) == 1
        assert fault in faults[0]


@pytest.mark.slow
def test_calls_keep_to_the_contract():
    assert failures(range(40)) == []


@pytest.mark.slow
def test_more_calls_keep_to_the_contract():
    assert failures(range(40, 190)) == []


def test_the_command_prints_a_call_that_fails_and_ends_in_1(monkeypatch, capsys):
    assert fuzz.main(["--only", "1"]) == 0
    assert "1 calls of" in capsys.readouterr().out
    monkeypatch.setattr(fuzz, "run_call", lambda call, names: ("value", ["was wrong"]))
    assert fuzz.main(["--calls", "2"]) == 1
    shown = capsys.readouterr().out
    assert "# seed 0, call 1 " in shown
    assert "was wrong" in shown
    assert "2 calls of" in shown
    assert "2 fail" in shown
