"""Episodes that are split by unit, such as patients, and what follows if something else is done in them.

All episodes of a patient fall into one split, so that test patients are never learnt from. A patient's split
is determined by (seed, patient) alone, through a hash: adding or reordering patients does not change any
other patient's split.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from rehearsal_torch.data.episode import Episode, following, transitions
from rehearsal_torch.problems.problem import EpisodeProblem
from rehearsal_torch.seeding import split_position

if TYPE_CHECKING:
    from torch import Tensor

    from rehearsal_torch.data.decision import DecisionContext
    from rehearsal_torch.data.table import Table

BATCH = 50_000  # Sequences that are evaluated at once.
# The share of repeated values from which a state is warned of, and how many different ones it has at least.
REPEATED, MANY = 0.5, 30
# The fewest measured values of a state, and units with some, if those that were filled in are masked.
MEASURED, MEASURED_UNITS = 100, 10
SHARES: Mapping[str, float] = {"train": 0.7, "validation": 0.1, "test": 0.2}


def split(
    patients: Sequence[str], fractions: Mapping[str, float], seed: int, called: str = "patient"
) -> dict[str, list[int]]:
    """Split to the positions of its episodes, ascending; ValueError if a split is empty."""
    if min(fractions.values()) < 0 or abs(sum(fractions.values()) - 1) > 1e-9:
        raise ValueError(f"expected shares of at least 0 that sum to 1; got {dict(fractions)}")
    positions: dict[str, list[int]] = {name: [] for name in fractions}
    for position, patient in enumerate(patients):
        positions[split_of(patient, fractions, seed)].append(position)
    if empty := [name for name in fractions if not positions[name]]:
        remedy = f"use more {called}s, larger shares or another seed"
        few = f"no {called} fell into split {empty} of {len(set(patients))} {called}s"
        raise ValueError(f"{few}: {remedy}")
    return positions


def split_of(patient: str, fractions: Mapping[str, float], seed: int) -> str:
    """The split of one patient."""
    draw, total = split_position(seed, patient), 0.0
    for name, share in fractions.items():
        total += share
        if draw < total:
            return name
    return name


class SplitEpisodes(EpisodeProblem):
    """Episodes that are split by unit; those of the split `cases` are `chosen` to decide on, with a `horizon`
    the first so many steps of those that are long enough. There may be none; ValueError if a split is empty.
    """

    def __init__(
        self,
        episodes: Sequence[Episode],
        units: Sequence[str],
        seed: int,
        cases: str,
        horizon: int | None,
        called: str = "patient",
    ) -> None:
        self.all = episodes
        self.splits = split(units, SHARES, seed, called)
        chosen = self.episodes(cases)
        if horizon is not None:
            chosen = [episode.first(horizon) for episode in chosen if episode.horizon >= horizon]
        self.chosen = chosen

    def episodes(self, split: str = "train") -> list[Episode]:
        """The episodes of a split."""
        return [self.all[position] for position in self.splits[split]]

    def count(self) -> int:
        """The number of episodes to decide on."""
        return len(self.chosen)


def repeated_shares(episodes: Sequence[Episode], names: Sequence[str]) -> dict[str, float]:
    """State to the share of transitions that repeat its value to the last bit, if it is large and the state
    has many values: they were carried forward, or not measured anew. The most frequent value, such as 0, is
    left out, at which a state may stay, and so is what no model learns.
    """
    found = {}
    for name in names:
        place = episodes[0].names.index(name)
        before = np.concatenate([each.rows[:-1, place] for each in episodes])
        after = np.concatenate([each.rows[1:, place] for each in episodes])
        told = [
            np.ones(each.horizon - 1, bool) if each.marks is None else ~np.asarray(each.marks)[1:, place]
            for each in episodes
        ]
        values, counts = np.unique(before, return_counts=True)
        moving = (before != values[counts.argmax()]) & np.concatenate(told)
        share = float((before == after)[moving].mean()) if moving.any() else 0.0
        if share >= REPEATED and len(values) >= MANY:
            found[name] = share
    return found


def check_measured(table: Table, names: Sequence[str], where: str) -> None:
    """Refuses (ValueError) transitions to learn from in which some states were hardly ever measured."""
    import torch

    few, units = list[str](), torch.arange(len(table)) if table.units is None else table.units
    for name, known in zip(names, (~following(table, names).isnan()).T, strict=True):
        steps, some = int(known.sum()), len(units[known.to(units.device)].unique())
        if steps < MEASURED or some < MEASURED_UNITS:
            few.append(f"{name} in {steps} of {some} units")
    if few:
        raise ValueError(
            f"{where}: with masked=true, a state is learnt where it was measured after the first step of a "
            f"unit; expected {MEASURED} such steps of {MEASURED_UNITS} units to learn from; got "
            f"{', '.join(few)}: take these states out, merge rows into longer steps, or learn what was "
            "filled in too, masked=false"
        )


def check_split(name: str) -> str:
    """The name of a split; ValueError if there is none."""
    if name not in SHARES:
        raise ValueError(f"expected split train, validation or test; got {name!r}")
    return name


def episode_of(case: DecisionContext) -> Episode:
    """The episode of a case; TypeError if it is of another kind."""
    from rehearsal_torch.data.decision import EpisodeCase

    if not isinstance(case, EpisodeCase):
        raise TypeError(f"expected an EpisodeCase; got a {type(case).__name__}")
    return case.episode


def what_followed(
    episode: Episode, states: Mapping[str, Tensor], actions: Mapping[str, Tensor], changed: Tensor
) -> Table:
    """The transitions of an episode in which other actions were done and other states followed, column to
    (T,); `changed` (T, number of actions) marks the actions that are not the recorded ones.
    """
    from rehearsal_torch.data.table import Table

    values = episode.values.clone()
    for name, column in {**states, **actions}.items():
        values[:, episode.names.index(name)] = column.to(values)
    table = transitions([Episode(episode.identity, episode.names, values)])
    marks = table.altered.clone()
    for name, column in zip(actions, changed.T, strict=True):
        position = episode.names.index(name)
        marks[:, position], marks[:, len(episode.names) + position] = column[:-1], column[1:]
    return Table(table.names, table.values, marks)


def best_changed(
    value: Callable[[Tensor], Tensor], given: Tensor, options: Sequence[Tensor], changes: int
) -> float:
    """The largest value, (n, T, a) -> (n,), of a sequence of actions that differs from the given one, (T, a),
    in at most `changes` of the first steps, by enumeration of what can be done in each, (c, a).
    """
    import torch

    best = float(value(given.unsqueeze(0)))
    waiting: list[Tensor] = []
    every = [*combinations(range(len(options)), changes)] if changes else []
    for steps in every:
        rows = torch.cartesian_prod(*[torch.arange(len(options[step])) for step in steps])
        actions = given.repeat(len(rows), 1, 1)
        for step, chosen in zip(steps, rows.reshape(-1, changes).T, strict=True):
            actions[:, step] = options[step][chosen].to(given)
        waiting.append(actions)
        if sum(map(len, waiting)) >= BATCH or steps == every[-1]:
            best = max(best, float(value(torch.cat(waiting)).max()))
            waiting = []
    return best
