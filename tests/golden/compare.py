"""Compares two golden folders: the same runs, with the same numbers."""

import json
import math
from pathlib import Path
from typing import Any

from tests.golden.kept import is_number, leaves, undefined
from tests.golden.names import Names
from tests.golden.record import SUMMARY

ABSENT = object()


def compare(old: Path, new: Path, names: Names | None = None, tolerance: float = 0.0) -> int:
    """Prints what became of each run, and a summary.

    Args:
        old: The folder of the old code.
        new: The folder of the new code.
        names: What was renamed in between.
        tolerance: The relative difference up to which two numbers are equal; 0 compares bit by bit.

    Returns:
        The exit code: 0 if both folders hold the same runs with the same numbers, and at least one.
    """
    names = names or Names()
    before = {name: names.recorded(content) for name, content in records(old).items()}
    after = records(new)
    counts, numbers = dict.fromkeys(("equal", "differs", "missing", "new"), 0), 0
    for name in sorted({*before, *after}):
        if name not in after or name not in before:
            state = "missing" if name not in after else "new"
            told = f"{name}: {state}"
        else:
            found, count = differences(before[name], after[name], tolerance)
            numbers += count
            state = "differs" if found else "equal"
            told = f"{name}: {state}"
            if found:
                told += f" at {len(found)} places, first {_shown(*found[0])}"
        counts[state] += 1
        print(told)
    print(", ".join(f"{count} {state}" for state, count in counts.items()) + f"; {numbers} numbers compared")
    return 0 if counts["equal"] == sum(counts.values()) > 0 else 1


def records(folder: Path) -> dict[str, Any]:
    """Name to record, of all runs in a folder.

    Raises:
        ValueError: if there is no such folder.
    """
    if not folder.is_dir():
        raise ValueError(f"{folder}: there is no such folder; type python -m tests.golden record {folder}")
    found = [path for path in sorted(folder.glob("*.json")) if path.name != SUMMARY]
    return {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in found}


def differences(old: Any, new: Any, tolerance: float = 0.0) -> tuple[list[tuple[str, Any, Any]], int]:
    """Where two records differ, as (where, old, new), and how many numbers were compared."""
    before, after = dict(leaves(old)), dict(leaves(new))
    found, numbers = [], 0
    for path in sorted(
        {*before, *after},
        key=lambda path: [(part.isdecimal(), int(part) if part.isdecimal() else 0, part) for part in path],
    ):
        one, other = before.get(path, ABSENT), after.get(path, ABSENT)
        numbers += is_number(one) and is_number(other)
        if not same(one, other, tolerance):
            found.append((" > ".join(path), one, other))
    return found, numbers


def same(one: Any, other: Any, tolerance: float) -> bool:
    """Whether two leaves are equal: numbers by value and sign, undefined ones among themselves."""
    if not (is_number(one) and is_number(other)):
        return type(one) is type(other) and bool(one == other)
    if undefined(one) or undefined(other):
        return undefined(one) and undefined(other)
    if one == other:
        return math.copysign(1, one) == math.copysign(1, other)
    return tolerance > 0 and math.isclose(one, other, rel_tol=tolerance)


def _shown(path: str, one: Any, other: Any) -> str:
    before, after = ("nothing" if value is ABSENT else repr(value) for value in (one, other))
    return f"{path}: {before} before, {after} now"
