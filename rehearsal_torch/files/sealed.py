"""Plain data with the SHA-256 of what they hold, so that a change by hand, or damage, is noticed.

    card["reading"] = sealed({"task": {...}, "step": 1.0})        with sha256: ...
    reading = opened(card["reading"], "card.yaml: reading")       without it; refused if something has changed

The order of names counts, as that of actions decides what their numbers mean. Whoever changes the sum as well
is not stopped: what is read is checked as any other data.
"""

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from rehearsal_torch.files.plain import PlainFileError

SUM = "sha256"


def sealed(plain: Mapping[str, Any]) -> dict[str, Any]:
    """The data with their sum."""
    return {**plain, SUM: _sum(plain)}


def opened(plain: object, where: str) -> dict[str, Any]:
    """The data without their sum.

    Raises:
        PlainFileError: if they are none, or have changed since.
    """
    if not isinstance(plain, Mapping) or SUM not in plain:
        raise PlainFileError(f"{where}: expected names and values with their {SUM}")
    found = {str(name): value for name, value in plain.items() if name != SUM}
    if plain[SUM] != _sum(found):
        raise PlainFileError(f"{where}: it has changed since it was written, by its {SUM}")
    return found


def _sum(plain: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(plain, ensure_ascii=True, default=str).encode()).hexdigest()
