"""Transition ridge regressions on two halves of the units: one selects actions, the other estimates gains.

The two (`mechanisms.bent_transition`) are fitted to every second unit each. A hash of an episode's name picks
the one that is searched; the gain of the selected actions is claimed by the other, with its refits to
resampled units (`claims.sequence_rules`). Ranges, levels and affected states are those of all units.

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
    """Two closed-form transitions, of every second unit each."""

    def __init__(
        self, states: int, others: int, doses: DoseLevels, seed: int, told: Sequence[int] = ()
    ) -> None:
        super().__init__()
        self.seed, self.told = seed, tuple(told)
        self.forms = Modules[BentTransition](BentTransition(states, others, doses) for _ in range(HALVES))

    @property
    def fitted(self) -> bool:
        """Whether both are fitted."""
        return all(form.fitted for form in self.forms)

    def solve(self, *examples: Tensor) -> None:
        """Fits both to `Steps`; the affected states are tested on all units. ValueError for a single unit."""
        steps = Steps(*examples)
        units = int(steps.begins.sum())
        require(units >= HALVES, "transitions of at least 2 units, half of whom choose", units=units)
        unmoved, unit = self.forms[0].p_values(steps), torch.arange(units, device=steps.begins.device)
        for half, form in enumerate(self.forms):
            form.fit(steps.units(unit % HALVES == half), unmoved, self.seed + half, self.told)


class TransitionRidge(SingleTransition):
    """Next state from state, static and contextual features, and levels of doses, in closed form.

    Args:
        seed: Seed of the halves and the resamples.
        order: States in the order in which they arise within a step, if known; others by the rows.
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
        self.halves = self._unfitted_halves(seed, order)

    @classmethod
    def beside(cls, model: SingleTransition, seed: int, order: Sequence[str] = ()) -> Self:
        """A ridge that shares columns, ranges and levels with another model; fitting it is optional."""
        doses = model.levels.names, model.levels.count
        ridge = cls(model.varying, model.static, model.contextual, *doses, seed=seed)
        ridge.rescale, ridge.levels = model.rescale, model.levels
        ridge.halves = ridge._unfitted_halves(seed, order)
        ridge.halves.needed = False
        ridge.past = ComparableSteps(len(ridge.rescale.names), ridge.levels)
        return ridge

    def _unfitted_halves(self, seed: int, order: Sequence[str]) -> Halves:
        subset = set(order) <= set(self.varying)
        require(subset, f"an order of some of the states {list(self.varying)}", order=list(order))
        require(len({*order}) == len(order), "each state once", order=list(order))
        states, others = len(self.varying), len(self.static) + len(self.contextual)
        return Halves(states, others, self.levels, seed, [self.varying.index(name) for name in order])

    def parts(self, table: Table) -> Fits:
        """The ranges, the dose levels, the comparable steps, and both halves."""
        yield self.rescale, (self.extremes(table),)
        yield self.levels, (table.columns(self.levels.names),)
        yield self.known_part(table)
        yield self.halves, tuple(vars(self.steps(table)).values())

    def steps(self, table: Table) -> Steps:
        """The transitions in scaled coordinates; rows of unknown units stand alone."""
        names, width = self.rescale.names, len(self.varying)
        now, targets = (
            self.rescale.scale(columns.to(self.device, torch.float64))
            for columns in (table.columns(names), following(table, self.varying, names[width:]))
        )
        actions = self.levels.digitise(table.columns(self.levels.names).to(now))
        begins = begins_of(table).to(now.device)
        return Steps(now[:, :width], now[:, width:], actions, targets[:, :width], begins)

    def choosing(self, episode: Episode) -> int:
        """The half that selects actions for an episode; the other one claims."""
        return int(HALVES * split_position(self.halves.seed, f"half of {episode.identity}"))

    def trajectory(self, episode: Episode) -> BentTrajectory:
        """The steps of the episode by the half that selects."""
        return self._trajectory(episode, self.choosing(episode))

    @property
    def claimant(self) -> Self:
        """Itself."""
        return self

    @property
    def unmoved(self) -> tuple[str, ...]:
        """The states that keep their observed course."""
        held = self.halves.forms[0].held.tolist()
        return tuple(name for name, is_held in zip(self.varying, held, strict=True) if is_held)

    @torch.no_grad()
    def replayed(self, episode: Episode, actions: Tensor) -> Tensor:
        """(n, H) long -> (R, n, T, D), by the refits of the half that claims."""
        trajectory = self._trajectory(episode, 1 - self.choosing(episode), refits=True)
        return self.units(trajectory.replays(actions))

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
        """Residuals without the unit's level, (n, D), the mean of both halves."""
        steps, width = self.steps(table), len(self.varying)
        residuals = torch.stack([form.left(steps) * form.spread[:width] for form in self.halves.forms])
        return residuals.mean(0).to(table.values.device)

    def noise(self, table: Table) -> tuple[Tensor, Tensor]:
        """Scaled features and dose levels (n, p), and residuals (n, 1, D)."""
        return self.examples(table)[0].to(table.values.device), self.residuals(table).unsqueeze(1)

    @property
    def least_noise(self) -> Tensor:
        """Residual variance of each state without effects of other states of the same step, (D,)."""
        width = len(self.varying)
        variances = [form.reduced * form.spread[:width].square() for form in self.halves.forms]
        return torch.stack(variances).mean(0)
