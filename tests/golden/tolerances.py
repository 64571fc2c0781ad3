"""How near two records of a run must be: to rounding on one machine, within tolerances on different ones."""

import math
from collections.abc import Iterator
from typing import Any

EXACT = 1e-9
# On another machine: of a claim, absolute up to 1 and relative beyond; of a setting, as a share of its box.
CLAIM, SETTING = 0.005, 0.01
# Of losses of trainings, relative, on any machine.
LOSS = 0.05
SETTINGS = ("set", "recommendation", "asked")
# Counted, and so compared on one machine alone.
STRICT_ONLY = ("warnings",)
Path = tuple[str, ...]


def differences(before: dict[str, Any], after: dict[str, Any]) -> list[str]:
    """Where two records of a run differ by more than they may.

    Args:
        before: The record that is kept: "machine", "run", and "cpu_seconds", which is not compared.
        after: The record of now.

    Returns:
        A line for each difference.
    """
    strict = before["machine"] == after["machine"]
    old, new = dict(_leaves(before["run"])), dict(_leaves(after["run"]))
    widths = before["run"].get("widths", {})
    lines = []
    for path in sorted({*old, *new}):
        if not strict and set(path) & {*STRICT_ONLY}:
            continue
        was, now = old.get(path, "nothing"), new.get(path, "nothing")
        allowed = 0.0
        if _number(was) and _number(now):
            allowed = _allowed(path, was, widths, strict)
        if not _near(was, now, allowed):
            lines.append(f"{' > '.join(path)}: {was!r} before, {now!r} now; {allowed:.3g} is allowed")
    return lines


def _allowed(path: Path, was: float, widths: dict[str, float], strict: bool) -> float:
    """By how much a number may differ."""
    scale = max(1.0, abs(was)) if math.isfinite(was) else 1.0
    if "losses" in path:
        return LOSS * abs(was)
    if strict:
        return EXACT * scale
    if "doses" in path:
        return SETTING * abs(was)
    if set(path) & {*SETTINGS}:
        return SETTING * widths.get(path[-1], scale)
    return CLAIM * scale


def _near(was: Any, now: Any, allowed: float) -> bool:
    if _number(was) and _number(now):
        return was == now or (math.isnan(was) and math.isnan(now)) or abs(was - now) <= allowed
    return type(was) is type(now) and bool(was == now)


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _leaves(value: Any, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    """Every number, text and empty container, with the keys and places that lead to it."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    if not inner or not value:
        yield path, value
    for key, each in inner:
        yield from _leaves(each, (*path, f"{key:02d}" if isinstance(key, int) else str(key)))
