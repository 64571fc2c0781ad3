"""Data cards: what a data set holds, for people.

Printed at the start of a run and saved with it: how many patients, transitions and steps, what was dropped and why,
which doses the levels stand for, in which range each feature lies, and what the data must not be used for.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import torch

from rehearsal_torch.data.episode import transitions
from rehearsal_torch.data.levels import DoseLevels
from rehearsal_torch.datasets.stays import COLUMNS, RANGES, Stays


def data_card(
    stays: Stays, splits: Mapping[str, Sequence[int]], *, source: str, caution: str, levels: DoseLevels | None = None, missing: Mapping[str, int] | None = None
) -> dict[str, Any]:
    """The card as plain data.

    Args:
        stays: The episodes.
        splits: Split to positions of its episodes.
        source: Where they come from.
        caution: What they must not be used for.
        levels: Learnt dose levels, or None.
        missing: Column to number of values that were filled in upstream, where the table tells; None where it does not.
    """
    rows = torch.cat([episode.values for episode in stays.episodes])
    lengths = sorted(episode.horizon for episode in stays.episodes)
    shown = {}
    for name, column in zip(COLUMNS, rows.T, strict=True):
        ordered = column.sort().values
        shown[name] = {"least": float(ordered[0]), "median": float(ordered[len(ordered) // 2]), "largest": float(ordered[-1]), "unit": RANGES[name][2]}
    return {
        "source": source,
        "caution": caution,
        "patients": len(set(stays.patients)),
        "episodes": len(stays.episodes),
        "transitions": sum(lengths) - len(lengths),
        "horizons": {
            "least": lengths[0],
            "median": lengths[len(lengths) // 2],
            "largest": lengths[-1],
            "episodes by steps": dict(sorted(Counter(lengths).items())),
        },
        "missing values": "none in the table" if missing is None else {f"{name} filled in upstream": count for name, count in missing.items()},
        "dropped": dict(stays.drops),
        "splits": {name: {"patients": len({stays.patients[place] for place in places}), "episodes": len(places)} for name, places in splits.items()},
        **{f"caution: levels of {name}": note for name, note in (levels.notes if levels is not None else {}).items()},
        "dose levels": {} if levels is None else {name: list(dict.fromkeys(row.tolist())) for name, row in zip(levels.names, levels.medians, strict=True)},
        "features": shown,
        "fingerprint": transitions(stays.episodes).fingerprint(),
    }
