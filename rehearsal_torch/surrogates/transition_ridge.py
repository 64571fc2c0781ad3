"""Transitions in closed form, fitted to halves of the units: one half chooses, the other one claims.

Two forms (`mechanisms.bent_transition`) are fitted, to every second unit. For an episode, one of them is
searched, by a hash of the episode's name, and what was chosen is claimed by the other, with its refits to
resampled units (`claims.sequence_gains`). Ranges, levels, and which states are moved, are those of all units.

Source: Athey and Imbens (2016) (honest estimates by halves).
"""

from collections.abc import Sequence
from typing import Self

import torch
from torch import Tensor

from rehearsal_torch.data.dose_levels import DoseLevels
from rehearsal_torch.data.episode import Episode, following
from rehearsal_torch.data.size_limits import require
from rehearsal_torch.data.table import Table
from rehearsal_torch.data.trainable_part import Solved
from rehearsal_torch.mechanisms.bent_transition import BentTrajectory, BentTransition, Steps
from rehearsal_torch.seeding import split_position
from rehearsal_torch.surrogates.dose_support import ComparableSteps
from rehearsal_torch.surrogates.surrogate import Fits, Modules
from rehearsal_torch.surrogates.transition import SingleTransition, begins_of

HALVES = 2


class Halves(Solved):
    """Two closed forms, of every second unit each."""

    def __init__(
        self, states: int, others: int, doses: DoseLevels, seed: int, told: Sequence[int] = ()
    ) -> None:
        super().__init__()
        self.seed, self.told = seed, tuple(told)
        self.forms = Modules[BentTransition](BentTransition(states, others, doses) for _ in range(HALVES))

    @property
    def fitted(self) -> bool:
        """Whether both are."""
        return all(form.fitted for form in self.forms)

    def solve(self, *examples: Tensor) -> None:
        """Fits both to `Steps`; what is moved is tested by all units. ValueError if there is one."""
        steps = Steps(*examples)
        units = int(steps.begins.sum())
        require(units >= HALVES, "transitions of at least 2 units, half of whom choose", units=units)
        unmoved, place = self.forms[0].p_values(steps), torch.arange(units, device=steps.begins.device)
        for half, form in enumerate(self.forms):
            form.fit(steps.units(place % HALVES == half), unmoved, self.seed + half, self.told)


class TransitionRidge(SingleTransition):
    """Next state from state, static and contextual features, and levels of doses, in closed form. Columns as
    of `SingleTransition`; the seed is that of the halves and of the resamples; `order` names states that come
    about in this order within a step, if it is known; the rest is found from the rows.
    """

    has_constants = False

    def __init__(
        self,
        varying: Sequence[str],
        static: Sequence[str],
        contextual: Sequence[str],
        doses: Sequence[str],
        levels: int = 5,
        logarithms: Sequence[str] = (),
        seed: int = 0,
        order: Sequence[str] = (),
    ) -> None:
        super().__init__(varying, static, contextual, doses, levels, logarithms)
        others = len(self.static) + len(self.contextual)
        self.halves = Halves(len(self.varying), others, self.levels, seed, self._places(order))

    @classmethod
    def beside(cls, model: SingleTransition, seed: int, order: Sequence[str] = ()) -> Self:
        """One with the columns, ranges and levels of another model; it need not be fitted."""
        doses = model.levels.names, model.levels.count
        found = cls(model.varying, model.static, model.contextual, *doses, seed=seed)
        found.rescale, found.levels = model.rescale, model.levels
        others = len(found.static) + len(found.contextual)
        found.halves = Halves(len(found.varying), others, found.levels, seed, found._places(order))
        found.halves.needed = False
        found.past = ComparableSteps(len(found.rescale.names), found.levels)
        return found

    def _places(self, order: Sequence[str]) -> list[int]:
        unknown = [name for name in order if name not in self.varying]
        require(not unknown, f"an order of some of the states {list(self.varying)}", order=list(order))
        require(len({*order}) == len(order), "each state once", order=list(order))
        return [self.varying.index(name) for name in order]

    def parts(self, table: Table) -> Fits:
        """The ranges, the dose levels, what is compared with, and both forms."""
        yield self.rescale, (self.extremes(table),)
        yield self.levels, (table.columns(self.levels.names),)
        yield self.known_part(table)
        yield self.halves, tuple(vars(self.steps(table)).values())

    def steps(self, table: Table) -> Steps:
        """The transitions in scaled coordinates; rows of unknown units stand alone."""
        names, width = self.rescale.names, len(self.varying)
        now, after = (
            self.rescale.scale(each.to(self.device, torch.float64))
            for each in (table.columns(names), following(table, self.varying, names[width:]))
        )
        actions = self.levels.digitise(table.columns(self.levels.names).to(now))
        begins = begins_of(table).to(now.device)
        return Steps(now[:, :width], now[:, width:], actions, after[:, :width], begins)

    def choosing(self, episode: Episode) -> int:
        """Which half chooses for an episode; the other one claims."""
        return int(HALVES * split_position(self.halves.seed, f"half of {episode.identity}"))

    def trajectory(self, episode: Episode) -> BentTrajectory:
        """The steps of the episode by the half that chooses."""
        return self._trajectory(episode, self.choosing(episode))

    @property
    def claimant(self) -> Self:
        """Itself."""
        return self

    @property
    def unmoved(self) -> tuple[str, ...]:
        """Those that keep their observed course."""
        held = self.halves.forms[0].held.tolist()
        return tuple(name for name, kept in zip(self.varying, held, strict=True) if kept)

    @torch.no_grad()
    def replayed(self, episode: Episode, actions: Tensor) -> Tensor:
        """(n, H) long -> (R, n, T, D), by the refits of the half that claims."""
        judge = self._trajectory(episode, 1 - self.choosing(episode), refits=True)
        return self.units(judge.replays(actions))

    @torch.no_grad()
    def _trajectory(self, episode: Episode, half: int, refits: bool = False) -> BentTrajectory:
        self.require_fitted()
        width = len(self.varying)
        rows = self.rescale.scale(episode.columns(self.rescale.names).to(self.rescale.lower))
        observed = self.levels.digitise(episode.columns(self.levels.names).to(rows))
        return self.halves.forms[half].trajectory(rows[:, :width], rows[:, width:], observed, refits)

    def examples(self, table: Table) -> tuple[Tensor, Tensor]:
        """(n, p) and (n, D), float64."""
        steps = self.steps(table)
        encoded = self.levels.encoded(steps.actions).to(steps.states)
        return torch.cat([steps.states, steps.others, encoded], 1), steps.following

    @torch.no_grad()
    def residuals(self, table: Table) -> Tensor:
        """What is left of each step without the unit's level, (n, D), the mean of both halves."""
        steps, width = self.steps(table), len(self.varying)
        left = torch.stack([form.left(steps) * form.spread[:width] for form in self.halves.forms])
        return left.mean(0).to(table.values.device)

    def noise(self, table: Table) -> tuple[Tensor, Tensor]:
        """Scaled features and dose levels, and what is left, (n, p) and (n, 1, D)."""
        return self.examples(table)[0].to(table.values.device), self.residuals(table).unsqueeze(1)

    @property
    def least_noise(self) -> Tensor:
        """What is left of each state before other states of the same step are known, as a variance, (D,):
        where these leave next to nothing, some of that can always be predicted.
        """
        width = len(self.varying)
        left = [form.reduced * form.spread[:width].square() for form in self.halves.forms]
        return torch.stack(left).mean(0)
