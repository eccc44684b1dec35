"""Two measurements of the same instances side by side, and what is known of them."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np

from benchmarks._master_instances import KINDS
from benchmarks._storage import write_rows
from benchmarks._tables import markdown

KNOWN_FIELDS = ("generator", "seed", "found_by", "objective")
# Gaps below this, in flips, count as so much in a ratio.
LEAST_GAP = 1e-6
# The gap that `project_targets` asks for, as a share of all costs: one flip, but no less than this.
LEAST_SHARE = 5e-5
N_CLASSES = {"2 classes": (2, 2), "3 to 5 classes": (3, 5), "10 and 20 classes": (10, 20)}

Row = Mapping[str, str]
Key = tuple[str, int]
Pair = tuple[Row, Row]


def key_of(row: Row) -> Key:
    return row["generator"], int(row["seed"])


def is_found(row: Row) -> bool:
    """Tell whether a line has targets that satisfy the constraint."""
    return row["satisfied"] == "True"


def is_near(row: Row) -> bool:
    """Tell whether their gap is the one that was asked for."""
    if not is_found(row):
        return False
    asked = max(1 / int(row["n"]), LEAST_SHARE)
    return float(row["gap"]) <= asked * (1 + 1e-5)


def read_known(path: Path) -> dict[Key, Row]:
    """Read who has found allowed targets of which instance, and the least loss of any."""
    if not path.exists():
        return {}
    with path.open(encoding="utf-8", newline="") as file:
        return {key_of(row): row for row in csv.DictReader(file)}


def write_known(path: Path, known: Mapping[Key, Row]) -> None:
    write_rows(path, KNOWN_FIELDS, [known[key] for key in sorted(known)])


def add_known(known: dict[Key, Row], rows: Iterable[Row], name: str) -> int:
    """Add what lines of a CSV have found, where nobody has or it is nearer; return how many.

    The lines need no more than generator, seed, satisfied and objective.
    """
    n_added = 0
    for row in rows:
        if not is_found(row):
            continue
        key = key_of(row)
        objective = float(row["objective"])
        if key not in known or objective < float(known[key]["objective"]) * (1 - 1e-9):
            values = (key[0], str(key[1]), name, f"{objective:.10g}")
            known[key] = dict(zip(KNOWN_FIELDS, values, strict=True))
            n_added += 1
    return n_added


def groups_of(pairs: Sequence[Pair]) -> Iterator[tuple[str, list[Pair]]]:
    """Yield the pairs of every kind and number of classes, and all of them, with a name."""

    def chosen(test: Callable[[Row], bool]) -> list[Pair]:
        return [pair for pair in pairs if test(pair[0])]

    for kind in KINDS:
        yield kind, chosen(lambda row, kind=kind: row["kind"] == kind)
    for name, (least, most) in N_CLASSES.items():
        yield name, chosen(lambda row, a=least, b=most: a <= int(row["classes"]) <= b)
    yield "all", list(pairs)


def paired(now: Sequence[Row], before: Sequence[Row]) -> list[Pair]:
    """Return the lines of the same instances, those of both measurements."""
    earlier = {key_of(row): row for row in before}
    return [(row, earlier[key_of(row)]) for row in now if key_of(row) in earlier]


def cpu_medians(pairs: Sequence[Pair]) -> list[str]:
    """Return the median CPU seconds before and now."""
    if not pairs:
        return ["", ""]
    seconds = [[float(row["cpu_seconds"]) for row in pair[::-1]] for pair in pairs]
    return [f"{median:.2f}" for median in np.median(seconds, axis=0)]


def found_table(pairs: Sequence[Pair], known: Mapping[Key, Row]) -> str:
    """Return how many instances have targets, of those that are known to have any."""
    head = ["", "instances", "found before", "found now", "known feasible", "share now"]
    head += ["gap met before", "gap met now", "closest now", "CPU s before", "CPU s now"]
    body = []
    for name, own in groups_of(pairs):
        feasible = sum(
            key_of(now) in known or is_found(now) or is_found(before) for now, before in own
        )
        found = sum(is_found(now) for now, _ in own)
        body.append(
            [
                name,
                str(len(own)),
                str(sum(is_found(before) for _, before in own)),
                str(found),
                str(feasible),
                f"{100 * found / feasible:.1f} %" if feasible else "",
                str(sum(is_near(before) for _, before in own)),
                str(sum(is_near(now) for now, _ in own)),
                str(sum(now["outcome"] == "closest" for now, _ in own)),
                *cpu_medians(own),
            ]
        )
    return markdown(head, body)


def gap_ratio(now: Row, before: Row) -> float:
    """Return the gap now as a share of the gap before, neither of them taken as 0."""
    return max(float(now["flips"]), LEAST_GAP) / max(float(before["flips"]), LEAST_GAP)


def flips_more(now: Row, before: Row) -> float:
    """Return how many flips of an average row the targets now cost more than before."""
    return (float(now["objective"]) - float(before["objective"])) / float(now["flip"])


def gap_table(pairs: Sequence[Pair]) -> str:
    """Return gaps and losses now beside those before, where both have targets."""
    head = ["", "both found", "gap ratio, median", "90 %", "flips more, median", "90 %"]
    head += ["CPU s before", "CPU s now"]
    body = []
    both = [pair for pair in pairs if all(map(is_found, pair))]
    for name, own in groups_of(both):
        cells = [""] * (len(head) - 2)
        if own:
            ratios = [gap_ratio(*pair) for pair in own]
            more = [flips_more(*pair) for pair in own]
            cells = [
                *(f"{np.quantile(ratios, q):.3g}" for q in (0.5, 0.9)),
                *(f"{np.quantile(more, q) + 0.0:.2f}" for q in (0.5, 0.9)),
                *cpu_medians(own),
            ]
        body.append([name, str(len(own)), *cells])
    return markdown(head, body)


def outcome_table(pairs: Sequence[Pair], known: Mapping[Key, Row]) -> str:
    """Return how the projections ended; a verdict of "infeasible" may be known to be wrong."""
    now, before = (Counter(row["outcome"] for row in rows) for rows in zip(*pairs, strict=True))
    body = [[name, str(before[name]), str(now[name])] for name in sorted(now | before)]
    wrong = [
        sum(
            pair[one]["outcome"] == "infeasible"
            and (key_of(pair[one]) in known or is_found(pair[1 - one]))
            for pair in pairs
        )
        for one in (1, 0)
    ]
    body.append(["infeasible, though targets are known", *map(str, wrong)])
    return markdown(["outcome", "before", "now"], body)


def page(now: Sequence[Row], before: Sequence[Row], known: Mapping[Key, Row]) -> str:
    """Return all tables as Markdown."""
    pairs = paired(now, before)
    if not pairs:
        return "No result yet."
    return "\n\n".join([found_table(pairs, known), gap_table(pairs), outcome_table(pairs, known)])
