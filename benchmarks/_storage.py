"""The CSV of results: one line a row and fold, complete after each unit."""

import csv
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any


def read_rows(path: Path, columns: Sequence[str]) -> list[dict[str, str]]:
    """Read the results so far; a file that is not there holds none."""
    if not path.exists():
        return []
    with path.open(encoding="utf-8", newline="") as file:
        reader = csv.DictReader(file)
        if tuple(reader.fieldnames or ()) != tuple(columns):
            raise ValueError(
                f"{path} has the columns {reader.fieldnames}, expected {list(columns)}. "
                "Another version wrote it: move it away, or choose another --output."
            )
        return list(reader)


def append_row(path: Path, columns: Sequence[str], row: Mapping[str, Any]) -> None:
    """Add one line by replacing the whole file: an interruption leaves the old or the new one."""
    rows = [*read_rows(path, columns), row]
    part = path.with_name(path.name + ".part")
    write_rows(part, columns, rows)
    part.replace(path)


def write_rows(path: Path, columns: Sequence[str], rows: Iterable[Mapping[str, Any]]) -> None:
    """Write rows as CSV."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, columns, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
