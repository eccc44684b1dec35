"""What the projection of classes finds in a few seconds, beside an earlier version of it.

``OMP_NUM_THREADS=1 python -m benchmarks.masters`` projects the 300 random instances of
``_master_instances.py``, each within ``--limit`` seconds of a core, writes
``results/masters.csv`` and prints tables: how many of the instances that are known to have allowed
targets got any, and gaps and losses beside those of ``results/masters_cac7592.csv``, measured by
the same command with the package of commit cac7592. ``--docs`` writes the tables of
``docs/projection_benchmark.md``.

Others help to know which instances have allowed targets: ``--add FILE NAME`` takes what a CSV has
found into ``results/masters_known.csv``, and ``--full`` solves the full model of ``--seeds``.
``--same N`` projects ``--seeds`` N times and tells whether the targets are equal.
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import time
import warnings
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import _master_tables as tables
from benchmarks._full_classes import solve_full
from benchmarks._master_instances import GENERATORS, N_SEEDS, TRAITS, Instance
from benchmarks._storage import read_rows
from benchmarks._tables import insert_between
from gedi_sklearn import Solver, project_targets
from gedi_sklearn.exceptions import InfeasibleProjectionError, SolverLimitError

HERE = Path(__file__).parent
RESULTS = HERE / "results" / "masters.csv"
BEFORE = HERE / "results" / "masters_cac7592.csv"
KNOWN = HERE / "results" / "masters_known.csv"
PAGE = HERE.parent / "docs" / "projection_benchmark.md"
BEGIN = "<!-- masters: begin (written by `python -m benchmarks.masters --docs`) -->"
END = "<!-- masters: end -->"
# Seconds of a projection, and of a full model.
LIMIT, FULL_LIMIT = 3.0, 60.0
# Share of the limit that counts as all of it, and by how much it is made longer at most.
_FULL, _LONGEST = 0.9, 4.0
FIELDS = (
    "generator",
    "seed",
    "n",
    "classes",
    *TRAITS,
    "outcome",
    "satisfied",
    "status",
    "objective",
    "bound",
    "gap",
    "flips",
    "flip",
    "limit",
    "seconds",
    "cpu_seconds",
    "labels",
)


def measure(instance: Instance, limit: float) -> dict[str, Any]:
    """Project an instance and return a line of the CSV.

    ``outcome`` is "targets" where they satisfy the constraint, "closest" where they do not,
    "infeasible" where none do, "refused" where the input is, "limit" where there are none in
    time, and else the name of the error. ``flips`` is the gap in flips of an average row, each of
    which costs ``flip``; ``labels`` is a hash of the targets.
    """
    line: dict[str, Any] = dict.fromkeys(FIELDS, "")
    line |= {
        "generator": instance.generator,
        "seed": instance.seed,
        "n": instance.n,
        "classes": instance.n_classes,
        "flip": f"{instance.flip:.10g}",
        "limit": f"{limit:.3g}",
        **instance.traits,
    }
    wall, cpu = time.perf_counter(), time.process_time()
    try:
        with warnings.catch_warnings():
            # What they say is in the line.
            warnings.simplefilter("ignore")
            result = project_targets(
                instance.y,
                instance.y_pred,
                sensitive_features=instance.sensitive_features,
                **instance.keywords,
                solver=Solver(time_limit=limit),
            )
    except InfeasibleProjectionError:
        line["outcome"] = "infeasible"
    except ValueError:
        line["outcome"] = "refused"
    except SolverLimitError:
        line["outcome"] = "limit"
    except Exception as error:
        # A bug of the library is a result, and no reason to lose those of the others.
        line["outcome"] = f"error {type(error).__name__}"
    else:
        line |= {
            "outcome": "targets" if result.satisfied else "closest",
            "satisfied": bool(result.satisfied),
            "status": result.status,
            "objective": f"{result.objective:.10g}",
            "bound": f"{result.bound:.10g}",
            "gap": f"{result.gap:.6g}",
            "flips": f"{result.gap * instance.n:.6g}",
            "labels": hash_of(result.targets),
        }
    line["seconds"] = f"{time.perf_counter() - wall:.3f}"
    line["cpu_seconds"] = f"{time.process_time() - cpu:.3f}"
    return line


def measure_fairly(instance: Instance, limit: float) -> dict[str, Any]:
    """Measure, and again with a longer limit where the machine's other work took from the first.

    A limit counts seconds of the clock, in which a process may have had a part of a core only.
    """
    line = measure(instance, limit)
    seconds, cpu = float(line["seconds"]), float(line["cpu_seconds"])
    if seconds < _FULL * limit or cpu >= _FULL * limit:
        return line
    return measure(instance, limit * seconds / max(cpu, seconds / _LONGEST))


def hash_of(targets: Any) -> str:
    """Return a short hash of class targets."""
    whole = np.ascontiguousarray(targets, dtype=np.int64)
    return hashlib.sha256(whole.tobytes()).hexdigest()[:12]


def run(asked: Sequence[tuple[str, int]], path: Path, limit: float) -> None:
    """Measure instances and write the CSV, line by line."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, FIELDS, lineterminator="\n")
        writer.writeheader()
        for generator, seed in asked:
            line = measure_fairly(GENERATORS[generator](seed), limit)
            writer.writerow(line)
            file.flush()
            shown = ("kind", "n", "classes", "outcome", "status", "flips", "cpu_seconds")
            print(f"{generator}:{seed}", *(line[name] for name in shown), flush=True)


def instances_of(text: str) -> list[tuple[str, int]]:
    """Read ``GENERATOR:SEED`` or ``GENERATOR:FIRST-LAST``."""
    name, _, seeds = text.partition(":")
    first, _, last = seeds.partition("-")
    if name not in GENERATORS or not (first.isdigit() and (not last or last.isdigit())):
        raise argparse.ArgumentTypeError(
            f"{text!r} is not GENERATOR:SEED or GENERATOR:FIRST-LAST with a generator of "
            f"{', '.join(GENERATORS)}"
        )
    return [(name, seed) for seed in range(int(first), int(last or first) + 1)]


def repeat(asked: Sequence[tuple[str, int]], times: int, limit: float) -> bool:
    """Measure instances several times; tell whether each ended in the same targets every time."""
    n_same = 0
    for generator, seed in asked:
        lines = [measure(GENERATORS[generator](seed), limit) for _ in range(times)]
        ends = Counter((line["outcome"], line["labels"]) for line in lines)
        n_same += len(ends) == 1
        shown = ", ".join(f"{n} x {' '.join(end)}".rstrip() for end, n in ends.most_common())
        print(
            f"{generator}:{seed} {'equal' if len(ends) == 1 else 'DIFFERENT'}: {shown}", flush=True
        )
    print(f"{n_same} of {len(asked)} instances ended in the same targets {times} times.")
    return n_same == len(asked)


def full(asked: Sequence[tuple[str, int]], known_file: Path, limit: float) -> None:
    """Solve the full model of instances, and add what it finds to what is known."""
    for generator, seed in asked:
        instance = GENERATORS[generator](seed)
        try:
            answer = solve_full(instance, limit)
        except ValueError as error:
            print(f"{generator}:{seed} refused: {error}", flush=True)
            continue
        print(f"{generator}:{seed} {answer.status} {answer.objective:.10g}", flush=True)
        line = {"generator": generator, "seed": str(seed), "objective": str(answer.objective)}
        line["satisfied"] = str(answer.targets is not None)
        known = tables.read_known(known_file)
        if tables.add_known(known, [line], f"full model, {limit:g} s"):
            tables.write_known(known_file, known)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.masters",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--seeds",
        type=instances_of,
        nargs="+",
        default=[[(name, seed) for seed in range(N_SEEDS)] for name in GENERATORS],
        metavar="GENERATOR:SEED[-LAST]",
        help=f"which instances (default: 0-{N_SEEDS - 1} of each generator)",
    )
    parser.add_argument(
        "--limit", type=float, help=f"seconds of one solve (default: {LIMIT:g}, {FULL_LIMIT:g})"
    )
    parser.add_argument("--output", type=Path, default=RESULTS, help="the CSV")
    parser.add_argument("--before", type=Path, default=BEFORE, help="that of the earlier version")
    parser.add_argument("--known", type=Path, default=KNOWN, help="what is known to be feasible")
    mode = parser.add_mutually_exclusive_group()
    mode.add_argument("--report", action="store_true", help="run nothing, print what is there")
    mode.add_argument("--same", type=int, metavar="N", help="project N times, and compare")
    mode.add_argument("--full", action="store_true", help="solve the full model of --seeds")
    mode.add_argument("--add", nargs=2, metavar=("FILE", "NAME"), help="add to what is known")
    parser.add_argument("--docs", action="store_true", help=f"also write docs/{PAGE.name}")
    options = parser.parse_args(arguments)
    asked = [one for own in options.seeds for one in own]
    if options.add:
        known = tables.read_known(options.known)
        with Path(options.add[0]).open(encoding="utf-8", newline="") as file:
            n_added = tables.add_known(known, csv.DictReader(file), options.add[1])
        tables.write_known(options.known, known)
        print(f"{n_added} added or nearer, {len(known)} known in {options.known}.")
        return
    if options.full:
        full(asked, options.known, options.limit or FULL_LIMIT)
        return
    if options.same:
        if not repeat(asked, options.same, options.limit or LIMIT):
            raise SystemExit(1)
        return
    if not options.report:
        run(asked, options.output, options.limit or LIMIT)
    text = tables.page(
        read_rows(options.output, FIELDS),
        read_rows(options.before, FIELDS),
        tables.read_known(options.known),
    )
    print(text)
    if options.docs:
        page = PAGE.read_text(encoding="utf-8")
        page = insert_between(page, BEGIN, END, text, page=f"docs/{PAGE.name}")
        PAGE.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()
