"""Relations between answers: a change of the data changes an answer in a known way, or not at all.

``python -m benchmarks.relations --calls 3000 --seed 0`` fits and measures generated data before and
after a change: targets in other units, rows or columns in another order, an integer weight in the
place of equal rows, and so on. Estimators and indicators are drawn with generated parameters. A
line for each relation tells how many calls were made and how far the answers were from what is
expected, as a share of the tolerance. A call beyond it is printed as code, with its number:
``--only NUMBER`` runs that one again. The exit status is 1 where there is one.

Not every relation holds for everything. ``--table`` writes ``results/relations.csv``: for each
relation and each estimator or indicator the tolerance, or the reason why it does not hold.
"""

from __future__ import annotations

import argparse
import csv
import sys
import time
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ._fuzz_calls import ESTIMATORS, runnable
from ._fuzz_contract import namespace
from ._relation_calls import SUBJECTS, Subject, Trial, draw_trial, forms
from ._relations import RELATIONS, Answer, Names, Relation, difference, expected

TABLE = Path(__file__).with_name("results") / "relations.csv"
SEED = 0
_KEEP_NOTHING = ("gedi,", "gedi_coefficients", "didi", "hgr", "project_targets")
_SEARCH = "labels are the first of those that are as near, in the order of the rows"
_ONE_TARGET = "a row has one target, equal rows may have several"
_COUNTS = "weights count rows here: an integer is that many"
_DRAWS = "draws belong to the columns of a basis, which begins with another level"
_SAMPLING = "weights are of the sample: a row of weight 2 is one observation"
# What does not hold by definition: the beginning of a subject's name, and the reason.
NOT: dict[str, dict[str, str]] = {
    "y -> a*y + b": {
        "LagrangianDual": "a network begins near 0 and moves by its learning rate a step",
    },
    "attribute -> a*x + b": {
        "gedi, l1, powers": "a shift of the attribute mixes the coefficients of its powers",
        "make_disparity_scorer": "the attribute is a column of X, which the learner sees",
    },
    "weights * c": {
        "gedi, adjusted sd": _COUNTS,
        "didi of bins": _COUNTS,
        "hgr, density": _COUNTS,
        "hgr, chi2": _COUNTS,
    },
    "rows permuted": {"MovingTargetsClassifier": _SEARCH},
    "columns permuted": {
        "LagrangianDual": "first weights are drawn for the columns as they come",
        "gedi_inference, limits": "what a sample may lack is added up column by column of a basis",
    },
    "weight k = k rows": {
        "ConstrainedBoosting": "a leaf weighs as much as 20 rows do on average",
        "DualTargetsClassifier": _ONE_TARGET,
        "ProjectedClassifier": _ONE_TARGET,
        "MovingTargetsClassifier": _ONE_TARGET,
        "project_targets, classes": _ONE_TARGET,
        "gedi_inference": _SAMPLING,
    },
    "pickled": dict.fromkeys(_KEEP_NOTHING, "a function keeps nothing"),
    "chunks = whole": dict.fromkeys(
        (*_KEEP_NOTHING, "gedi_inference", "make_disparity_scorer"),
        "it takes all rows at once; GediAccumulator takes chunks",
    ),
    "groups renamed": {
        "gedi, l1": "coefficients are differences from the first level",
        "gedi_coefficients": "coefficients are differences from the first level",
        "make_disparity_scorer": "the attribute is a column of numbers",
        "MovingTargetsClassifier": "labels are the first of those that are as near, by group",
        "gedi_inference": _DRAWS,
    },
}


class Cell(NamedTuple):
    """What is known of a relation and a subject: a tolerance, or why it does not hold."""

    relation: Relation
    subject: Subject
    tolerance: float
    reason: str
    holds: bool


def cells() -> list[Cell]:
    """Return all cells of the table."""
    return [_cell(one, other) for one in RELATIONS.values() for other in SUBJECTS.values()]


def _cell(relation: Relation, subject: Subject) -> Cell:
    known = NOT.get(relation.name, {}).items()
    reason = next((why for name, why in known if subject.name.startswith(name)), "")
    if not set(subject.kinds) & set(relation.kinds):
        reason = f"it takes no {'real targets' if relation.kinds == ('real',) else 'classes'}"
    elif not forms(subject, relation) and not reason:
        wanted = "text" if relation.attributes == ("text",) else "several columns"
        wanted = "numbers" if relation.name.startswith("attribute") else wanted
        reason = f"its attribute is no {wanted}"
    # Exact relations are exact whatever the precision of what is computed.
    tolerance = relation.tolerance and max(relation.tolerance, subject.precision)
    if reason:
        return Cell(relation, subject, np.nan, reason, holds=False)
    return Cell(relation, subject, tolerance, relation.reason, holds=True)


def draw(seed: int, number: int) -> tuple[Cell, Trial]:
    """Return call `number`: the tested cells in turn, each time with other data."""
    names = {*SUBJECTS} - {*ESTIMATORS} | {*runnable()}
    tested = [cell for cell in cells() if cell.holds and cell.subject.name in names]
    cell = tested[number % len(tested)]
    return cell, draw_trial(seed, number, cell.subject, cell.relation)


def apart(trial: Trial, known: Names, seed: int) -> tuple[float, str]:
    """Return how far the answer after the change is from what is expected, and any errors."""
    before = trial.names(known)
    change = trial.relation.change(before, np.random.default_rng([seed, trial.number, 1]))
    after = {**before, **change}
    one, two = _answer(trial.code, before), _answer(trial.code, after)
    errors = [f"{type(own).__name__}: {own}" for own in (one, two) if isinstance(own, Exception)]
    if isinstance(one, Exception) or isinstance(two, Exception):
        return (0.0 if type(one) is type(two) else np.inf), "; ".join(errors)
    powers = trial.subject.powers
    return difference(expected(one, powers, after), two, powers, after), ""


def _answer(code: str, names: Names) -> Answer | Exception:
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            exec(code, names)
        except Exception as error:
            return error
    return [np.atleast_1d(values) for values in names["result"]]


class Outcome(NamedTuple):
    """How a call ended."""

    cell: Cell
    trial: Trial
    apart: float
    errors: str

    @property
    def is_violation(self) -> bool:
        return not self.apart <= self.cell.tolerance

    def __str__(self) -> str:
        relation, subject, tolerance = self.cell[:3]
        said = f"{relation.name}, {subject.name}: {self.apart:.3g} apart, {tolerance:g} allowed"
        return f"{said}\n# {self.errors}\n{self.trial}\n"


def run_trials(seed: int, numbers: Sequence[int]) -> Iterator[Outcome]:
    """Run the calls of these numbers."""
    known = namespace()
    for number in numbers:
        cell, trial = draw(seed, number)
        yield Outcome(cell, trial, *apart(trial, known, seed))


def write_table(path: Path = TABLE) -> None:
    """Write the table of relations, estimators and indicators."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["relation", "of", "holds", "tolerance", "reason"])
        for relation, subject, tolerance, reason, holds in cells():
            within = f"{tolerance:g}" if holds else ""
            writer.writerow([relation.name, subject.name, holds, within, reason])


def _line(relation: str, outcomes: Sequence[Outcome]) -> str:
    """Return what is printed of a relation."""
    shares = [one.apart / one.cell.tolerance for one in outcomes if one.cell.tolerance]
    n_errors = sum(bool(one.errors) for one in outcomes)
    n_failed = sum(one.is_violation for one in outcomes)
    worst = f"{max(shares):.2g} of the tolerance" if shares else "to the last bit"
    subjects = len({one.cell.subject.name for one in outcomes})
    return (
        f"{relation:22}{len(outcomes):6} calls of {subjects:2}, {n_errors:4} end in an error "
        f"twice, at most {worst}: {n_failed} violations"
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the calls and return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.relations", description=__doc__)
    parser.add_argument("--calls", type=int, default=3000, help="how many, numbered from 0")
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--only", type=int, help="the number of a single call")
    parser.add_argument("--table", action="store_true", help="write the table, and run nothing")
    options = parser.parse_args(arguments)
    if options.table:
        write_table()
        return 0
    numbers = range(options.calls) if options.only is None else [options.only]
    started, outcomes = time.perf_counter(), []
    for one in run_trials(options.seed, numbers):
        outcomes.append(one)
        if one.is_violation or options.only is not None:
            print(f"\n# seed {options.seed}, call {one.trial.number}: {one}", flush=True)
    for relation in RELATIONS:
        if own := [one for one in outcomes if one.cell.relation.name == relation]:
            print(_line(relation, own))
    n_failed, every = sum(one.is_violation for one in outcomes), cells()
    n_tested, seconds = sum(cell.holds for cell in every), time.perf_counter() - started
    print(
        f"\n{len(outcomes)} calls with seed {options.seed} in {seconds:.0f} s: {n_failed} "
        f"violations. {n_tested} of {len(every)} cells are tested."
    )
    return int(bool(n_failed))


if __name__ == "__main__":
    sys.exit(main())
