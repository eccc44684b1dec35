"""What happens to fitted estimators: parameters that are set, fits that fail, interrupts.

``python -m benchmarks.after_fit --calls 3000 --seed 0`` fits estimators with generated data and
parameters, and lets something happen: parameters are set, the object is fitted again, on rows or
with parameters that are refused, or a fit ends in an error or an interrupt at any call of the
library. The answers have to be those of the last fit that succeeded, to the last bit; errors and
interrupts have to come through; and no thread, process, filter of warnings, mode of torch, seed
or variable of the environment may be left changed. What is printed is a table of estimators and
events, and the calls that do not keep to it as code: ``--only NUMBER`` runs one of them again. The
exit status is 1 where there are any.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from ._after_fit_events import EVENTS, Fitted, faults_of
from ._fuzz_calls import ESTIMATORS, Draw, runnable
from ._fuzz_contract import namespace
from ._relation_calls import SUBJECTS, Trial, draw_trial
from ._relations import RELATIONS, Names

SEED = 0


class Outcome(NamedTuple):
    """An event that happened to an estimator, and what was wrong; None where it could not."""

    trial: Trial
    event: str
    faults: list[str] | None

    def __str__(self) -> str:
        said = "".join(f"#   {fault}\n" for fault in self.faults or [])
        return f"{self.trial.subject.name}, {self.event}\n{said}{self.trial}\n"


def run_events(seed: int, numbers: Sequence[int]) -> Iterator[Outcome]:
    """Run the calls of these numbers: estimators and events in turn, with other data each time."""
    known = namespace()
    names = estimators()
    pairs = [(name, event) for event in EVENTS for name in names]
    for number in numbers:
        name, event = pairs[number % len(pairs)]
        trial = draw_trial(seed, number, SUBJECTS[name], RELATIONS["fitted twice"])
        fitted = _fitted(trial, known, seed)
        faults = None if fitted is None else faults_of(EVENTS[event], fitted)
        yield Outcome(trial, event, faults)


def estimators() -> list[str]:
    """Return the estimators whose packages are installed."""
    return [name for name in ESTIMATORS if name in runnable()]


def _fitted(trial: Trial, known: Names, seed: int) -> Fitted | None:
    names = trial.names(known)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            exec(trial.code, names)
        except Exception:
            return None
    kind = "real" if names["y"].dtype.kind == "f" else "classes"
    draw = Draw(np.random.default_rng([seed, trial.number, 1]), "plain", kind)
    return Fitted(names["model"], names, trial.code.splitlines()[-1], draw)


def table(outcomes: Sequence[Outcome]) -> str:
    """Return estimators by events: how many calls went right, and how many wrong."""
    right: Counter[tuple[str, str]] = Counter()
    wrong: Counter[tuple[str, str]] = Counter()
    for trial, event, faults in outcomes:
        if faults is not None:
            (wrong if faults else right)[trial.subject.name, event] += 1
    names = sorted({trial.subject.name for trial, *_ in outcomes})
    lines = ["| estimator | " + " | ".join(EVENTS) + " |", "| --- " * (len(EVENTS) + 1) + "|"]
    for name in names:
        counts = [(right[name, event], wrong[name, event]) for event in EVENTS]
        told = [f"{n} right" + f", {m} wrong" * bool(m) for n, m in counts]
        lines.append(f"| {name} | " + " | ".join(told) + " |")
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the calls and return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.after_fit", description=__doc__)
    parser.add_argument("--calls", type=int, default=3000, help="how many, numbered from 0")
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--only", type=int, help="the number of a single call")
    options = parser.parse_args(arguments)
    numbers = range(options.calls) if options.only is None else [options.only]
    started, outcomes = time.perf_counter(), []
    for one in run_events(options.seed, numbers):
        outcomes.append(one)
        if one.faults or options.only is not None:
            print(f"# seed {options.seed}, call {one.trial.number}: {one}", flush=True)
    n_failed = sum(bool(one.faults) for one in outcomes)
    n_unfitted = sum(one.faults is None for one in outcomes)
    seconds = time.perf_counter() - started
    print(
        f"{table(outcomes)}\n\n{len(outcomes)} calls with seed {options.seed} in {seconds:.0f} s: "
        f"{n_failed} violations; in {n_unfitted} the rows could not be fitted on."
    )
    return int(bool(n_failed))


if __name__ == "__main__":
    sys.exit(main())
