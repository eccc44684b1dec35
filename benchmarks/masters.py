"""What the projection of classes finds in a few seconds, on 300 random instances.

``OMP_NUM_THREADS=1 python -m benchmarks.masters`` projects the instances of
``_master_instances.py``, each within ``--limit`` seconds, and writes ``results/masters.csv``.
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import time
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks._master_instances import GENERATORS, N_SEEDS, TRAITS, Instance
from gedi_sklearn import project_targets
from gedi_sklearn.exceptions import InfeasibleProjectionError, SolverLimitError

HERE = Path(__file__).parent
RESULTS = HERE / "results" / "masters.csv"
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
    "seconds",
    "cpu_seconds",
    "labels",
)


def measure(instance: Instance, limit: float) -> dict[str, Any]:
    """Project an instance and return a line of the CSV.

    ``outcome`` is "targets" where they satisfy the constraint, "closest" where they do not,
    "infeasible" where none do, "refused" where the input is, "limit" where there are none in
    time, and else the name of the error. ``flips`` is the gap in flips of an average row, each of
    which costs ``flip``; ``labels`` is a hash of the targets. The limit counts ``seconds``: where
    ``cpu_seconds`` are far fewer, the machine had other work.
    """
    line: dict[str, Any] = dict.fromkeys(FIELDS, "")
    line |= {
        "generator": instance.generator,
        "seed": instance.seed,
        "n": instance.n,
        "classes": instance.n_classes,
        "flip": f"{instance.flip:.10g}",
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
                time_limit=limit,
                **instance.keywords,
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
            line = measure(GENERATORS[generator](seed), limit)
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


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.masters", description=__doc__)
    parser.add_argument(
        "--seeds",
        type=instances_of,
        nargs="+",
        default=[[(name, seed) for seed in range(N_SEEDS)] for name in GENERATORS],
        metavar="GENERATOR:SEED[-LAST]",
        help=f"which instances (default: 0-{N_SEEDS - 1} of each generator)",
    )
    parser.add_argument("--limit", type=float, default=3.0, help="seconds of one projection")
    parser.add_argument("--output", type=Path, default=RESULTS, help="the CSV")
    options = parser.parse_args(arguments)
    run([one for own in options.seeds for one in own], options.output, options.limit)


if __name__ == "__main__":
    main()
