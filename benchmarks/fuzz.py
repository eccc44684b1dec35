"""Random calls of everything public, and what every call has to keep to.

``python -m benchmarks.fuzz --calls 3000 --seed 0`` draws calls of all public functions and
estimators, with valid, borderline and invalid arguments. Each has to end within 20 seconds, in
finite values, in NaN with a warning, or in a ValueError, TypeError or SolverError that names a
parameter. It prints nothing, lets no RuntimeWarning of numpy through, and leaves the filters of
warnings, numpy's error state and global generator, scikit-learn's configuration and the
environment as they were. A call that does not is printed as code that runs, with its number:
``--only NUMBER`` runs that call again. The exit status is 1 where there are such calls, or where
something public has no call.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from ._fuzz_calls import Call, draw_call, runnable, uncovered
from ._fuzz_contract import namespace, run_call
from ._fuzz_values import PREAMBLE

SEED = 0


def run_calls(seed: int, numbers: Iterable[int]) -> Iterator[tuple[Call, str, list[str]]]:
    """Run the calls of these numbers; yield each with how it ended, and its faults."""
    names = namespace()
    for number in numbers:
        call = draw_call(seed, number)
        yield call, *run_call(call, names)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the calls and return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.fuzz", description=__doc__)
    parser.add_argument("--calls", type=int, default=3000, help="how many, numbered from 0")
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--only", type=int, help="the number of a single call")
    options = parser.parse_args(arguments)
    numbers = range(options.calls) if options.only is None else [options.only]
    missing = uncovered()
    print(*missing, sep="\n", end="")
    started = time.perf_counter()
    ends: Counter[str] = Counter()
    n_failed = 0
    for call, ended, faults in run_calls(options.seed, numbers):
        ends[ended] += 1
        if not faults:
            continue
        n_failed += 1
        print(f"\n# seed {options.seed}, call {call.number} ({call.name})")
        print("".join(f"#   {fault}\n" for fault in faults) + str(call))
        if options.only is not None:
            print(f"\n# preceded by{PREAMBLE}")
        sys.stdout.flush()
    print(
        f"\n{len(numbers)} calls of {len(runnable())} callables with seed {options.seed} in "
        f"{time.perf_counter() - started:.0f} s: {ends['value']} end in values, {ends['NaN']} in "
        f"NaN, {ends['error']} in errors; {n_failed} fail, and {len(missing)} public names or "
        "parameters have no call."
    )
    return int(bool(n_failed or missing))


if __name__ == "__main__":
    sys.exit(main())
