"""Splits of episodes by unit, such as a patient, and counterfactual episodes with other actions.

All episodes of a patient fall into one split, so that test patients are never learnt from. A patient's split
is determined by (seed, patient) alone, through a hash: adding or reordering patients does not change it.
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
# The share of repeated values from which a state is warned of, and its fewest distinct values.
REPEATED, MANY = 0.5, 30
# The fewest measured values of a state, and units with some, if imputed ones are masked.
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
        raise ValueError(f"no {called} fell into split {empty} of {len(set(patients))} {called}s: {remedy}")
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
    """Episodes split by unit; those of the split `cases`, or the first `horizon` steps of those long enough,
    are `chosen` to decide on, maybe none. ValueError if a split is empty.
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
    has many values: carried forward, or not measured anew. The most frequent value, such as 0, at which a
    state may stay, and masked ones do not count.
    """
    shares = {}
    for name in names:
        column = episodes[0].names.index(name)
        before = np.concatenate([episode.rows[:-1, column] for episode in episodes])
        after = np.concatenate([episode.rows[1:, column] for episode in episodes])
        measured = [
            np.ones(unit.horizon - 1, bool) if unit.marks is None else ~np.asarray(unit.marks)[1:, column]
            for unit in episodes
        ]
        values, counts = np.unique(before, return_counts=True)
        moving = (before != values[counts.argmax()]) & np.concatenate(measured)
        share = float((before == after)[moving].mean()) if moving.any() else 0.0
        if share >= REPEATED and len(values) >= MANY:
            shares[name] = share
    return shares


def check_measured(table: Table, names: Sequence[str], where: str) -> None:
    """Refuses (ValueError) transitions to learn from in which some states were hardly ever measured."""
    import torch

    rare, units = list[str](), torch.arange(len(table)) if table.units is None else table.units
    for name, measured in zip(names, (~following(table, names).isnan()).T, strict=True):
        steps, unit_count = int(measured.sum()), len(units[measured.to(units.device)].unique())
        if steps < MEASURED or unit_count < MEASURED_UNITS:
            rare.append(f"{name} in {steps} of {unit_count} units")
    if rare:
        raise ValueError(
            f"{where}: with masked=true, a state is learnt where it was measured after the first step of a "
            f"unit; expected {MEASURED} such steps of {MEASURED_UNITS} units to learn from; got "
            f"{', '.join(rare)}: take these states out, merge rows into longer steps, or learn what was "
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
    """The transitions of an episode with other states and actions, name to (T,); `changed` ones marked."""
    from rehearsal_torch.data.table import Table

    values = episode.values.clone()
    for name, column in {**states, **actions}.items():
        values[:, episode.names.index(name)] = column.to(values)
    table = transitions([Episode(episode.identity, episode.names, values)])
    altered = table.altered.clone()
    for name, column in zip(actions, changed.T, strict=True):
        position = episode.names.index(name)
        altered[:, position], altered[:, len(episode.names) + position] = column[:-1], column[1:]
    return Table(table.names, table.values, altered)


def best_changed(
    value: Callable[[Tensor], Tensor], given: Tensor, options: Sequence[Tensor], changes: int
) -> float:
    """The largest value, (n, T, a) -> (n,), of actions that differ from given ones, (T, a), in at most
    `changes` of the first steps, by enumeration of the options of each, (c, a).
    """
    import torch

    best = float(value(given.unsqueeze(0)))
    pending: list[Tensor] = []
    step_sets = [*combinations(range(len(options)), changes)] if changes else []
    for steps in step_sets:
        rows = torch.cartesian_prod(*[torch.arange(len(options[step])) for step in steps])
        actions = given.repeat(len(rows), 1, 1)
        for step, option in zip(steps, rows.reshape(-1, changes).T, strict=True):
            actions[:, step] = options[step][option].to(given)
        pending.append(actions)
        if sum(map(len, pending)) >= BATCH or steps == step_sets[-1]:
            best = max(best, float(value(torch.cat(pending)).max()))
            pending = []
    return best
