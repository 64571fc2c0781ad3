"""What a first draft of episodes says of steps and of what is missing, so that units are left.

Steps are those that the reader of episodes finds (`problems.episodes.steps`): the most frequent distance
between two rows of a unit. Where some distance is no multiple of it, rows are merged into steps of this
length. Of each unit the draft counts the steps in a row that lack a row or a value:

    nothing lacks                          nothing is written: what lacks is a fault
    half of the units lack nothing         missing: drop
    fewer do, and carrying keeps more      missing: {carry: m}, m the median of the units that lack something
"""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import pandas as pd

from rehearsal_torch.problems.episodes.steps import SLACK, usual_distance
from rehearsal_torch.problems.episodes.unit_rows import times_of


def step_lines(
    frame: pd.DataFrame, unit: str, time: str, moving: Sequence[str], static: Sequence[str]
) -> list[str]:
    """The lines of a problem file on steps and missing values; none where nothing has to be said.

    Args:
        frame: The rows.
        unit: The column of units.
        time: The column of time, without empty cells.
        moving: The columns of states, contexts and actions.
        static: Columns with at most one value in each unit.
    """
    whose, when = pd.factorize(frame[unit])[0], times_of(frame[time])
    order = np.lexsort((when, whose))
    rows, whose, when = frame.iloc[order], whose[order], when[order]
    begins = np.r_[True, whose[1:] != whose[:-1]]
    if begins.all():
        return []
    apart = np.diff(when, prepend=when[0])
    length = usual_distance(apart[~begins])
    share = np.where(begins, 0.0, apart / length)
    uneven = bool(
        ((np.abs(share - share.round()) > SLACK * np.maximum(1.0, share)) | (~begins & (share < 0.5))).any()
    )
    first = when[np.maximum.accumulate(np.where(begins, np.arange(len(when)), 0))]
    steps = np.floor((when - first) / length + (SLACK if uneven else 0.5))
    known = rows[[*moving, *static]].notna().groupby([whose, steps]).any()
    lacks = _lacks(known, moving, static)
    lines = []
    if uneven:
        lines += [
            "",
            "# Rows of a unit lie at uneven distances: those within a step of this length are merged.",
        ]
        lines += [f"step: {length:.12g}"]
    return [*lines, *_policy(frame, lacks, [*moving, *static])]


def _policy(frame: pd.DataFrame, lacks: np.ndarray, names: Sequence[str]) -> list[str]:
    """What happens to empty cells and missing steps, if there are some."""
    some = [f"{name}: {int(frame[name].isna().sum())}" for name in names if frame[name].isna().any()]
    whole, carried = int((lacks == 0).sum()), np.isfinite(lacks) & (lacks > 0)
    if whole == len(lacks):
        return []
    rule, kept = "drop", whole
    if whole < len(lacks) / 2 and carried.any():
        most = max(1, int(np.median(lacks[carried])))
        rule, kept = f"{{carry: {most}}}", int((lacks <= most).sum())
    told = f"Empty cells, by column: {', '.join(some)}" if some else "Some units lack steps"
    return [
        "",
        f"# {told}. They are faults (refuse), take their unit out (drop),",
        "# or take the last value for at most so many steps ({carry: 2}). As it is written, "
        f"{kept} of {len(lacks)} units are left.",
        f"missing: {rule}",
    ]


def _lacks(known: pd.DataFrame, moving: Sequence[str], static: Sequence[str]) -> np.ndarray:
    """For each unit the most steps in a row that lack a row or a value, infinite where the first one does."""
    numbers = known.index.get_level_values(1).to_numpy()
    begins = np.diff(known.index.get_level_values(0).to_numpy(), prepend=-1) > 0
    lacking = ~known.all(axis=1).to_numpy() | (~begins & (np.diff(numbers, prepend=0) > 1))
    found = np.zeros(int(begins.sum()))
    places = np.cumsum(begins) - 1
    for place in np.unique(places[lacking]):
        rows = known[places == place]
        steps = rows.index.get_level_values(1).to_numpy(np.float64)
        lack = float(max((after - before - 1 for before, after in pairwise(steps)), default=0.0))
        for name in moving:
            there = steps[rows[name].to_numpy()]
            if len(there) == 0 or there[0] > 0:
                lack = np.inf
            else:
                ends = [*there.tolist(), steps[-1] + 1]
                lack = max(lack, *(after - before - 1 for before, after in pairwise(ends)))
        for name in static:
            cells = rows[name].to_numpy()
            lack = np.inf if not cells.any() else max(lack, float(not cells.all()))
        found[place] = lack
    return found
