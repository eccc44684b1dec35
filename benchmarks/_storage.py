"""The CSV of results: one line a row and fold, complete after each unit."""

import csv
import os
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


def create(path: Path, columns: Sequence[str]) -> None:
    """Make the file of results and its folder, before the first unit runs.

    Of several processes the first makes the file, whole: nobody reads it without its header.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists():
        part = path.with_name(f"{path.name}.{os.getpid()}.part")
        write_rows(part, columns, [])
        try:
            path.hardlink_to(part)
        except FileExistsError:
            pass  # another process was faster; its header is the same, or append_row refuses it
        finally:
            part.unlink()
    if not os.access(path, os.W_OK):
        raise PermissionError(f"The results cannot be written to {path}: choose another --output.")


def append_row(path: Path, columns: Sequence[str], row: Mapping[str, Any]) -> None:
    """Add one line, by one write at the end: several processes may share the file."""
    create(path, columns)
    read_rows(path, columns)
    with path.open("a", encoding="utf-8", newline="") as file:
        csv.DictWriter(file, columns, lineterminator="\n").writerow(row)


def write_rows(path: Path, columns: Sequence[str], rows: Iterable[Mapping[str, Any]]) -> None:
    """Write rows as CSV."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, columns, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
