"""Bootstrap ensembles of transition models: each member is fitted to resampled units of one half of them.

Two trainings of one class recommend differently. Half of the members are fitted to every second unit, the
others to the rest. For an episode, the members of one half are searched by their mean, and a recommendation
is made only if all of them predict a gain (`claims.sequence_rules`), which the closed form of the other half
estimates (`surrogates.transition_ridge`). If the members' abducted noise can be predicted and the closed
form's cannot, the closed form is searched instead.

Each member draws as many units as its half has, with replacement, by its own seed. Ranges and dose levels are
those of the whole table, so that all members share coordinates and actions; the abducted noise is each
member's own. A search sees the stacked states of the members (`mechanisms.mechanism`).

Source: Efron (1979) (bootstrap); Lakshminarayanan, Pritzel and Blundell (2017) (ensembles).
"""

from collections.abc import Callable, Mapping, Sequence
from itertools import islice

import torch
from torch import Tensor

from rehearsal_torch.data.episode import Episode
from rehearsal_torch.data.size_limits import bounded, require
from rehearsal_torch.data.table import Table
from rehearsal_torch.mechanisms.mechanism import Trajectory, stacked
from rehearsal_torch.seeding import paired_generator
from rehearsal_torch.surrogates.dose_support import ComparableSteps
from rehearsal_torch.surrogates.surrogate import Fits, Modules, SeparateMembers
from rehearsal_torch.surrogates.transition import CheckedTransition, NoiseCheck, TransitionModel, begins_of
from rehearsal_torch.surrogates.transition_ridge import HALVES, TransitionRidge

MAX_MEMBERS = 64


class TransitionEnsemble(CheckedTransition, SeparateMembers):
    """Transition models of resampled units, M for each half, and a closed form. ValueError for an odd count.

    Args:
        member: Factory of one member.
        count: 2 M, from 2 to 64.
        seed: Seed of the resamples.
        order: That of the closed form.
    """

    def __init__(
        self, member: Callable[[], TransitionModel], count: int = 4, seed: int = 0, order: Sequence[str] = ()
    ) -> None:
        super().__init__()
        bounded("count", count, MAX_MEMBERS, 2)
        require(count % HALVES == 0, "an even number, half of them for each half of the units", count=count)
        self.seed = seed
        models = [member() for _ in range(count)]
        for model in models[1:]:
            model.rescale, model.levels = models[0].rescale, models[0].levels
        self.models = Modules[TransitionModel](models)
        self.noise_check = NoiseCheck(len(models[0].names))
        self.closed = TransitionRidge.beside(models[0], seed, order)

    @property
    def known(self) -> ComparableSteps:
        """The closed form's steps."""
        return self.closed.known

    @property
    def each(self) -> tuple[TransitionModel, ...]:
        """The members."""
        return tuple(self.models)

    def separate(self) -> tuple[TransitionModel, ...]:
        """The members."""
        return self.each

    def common_parts(self, table: Table) -> Fits:
        """The common ranges and dose levels."""
        yield from islice(self.first.parts(table), 2)

    def member_parts(self, place: int, table: Table) -> Fits:
        """A member's mechanism on its own resample."""
        unit = begins_of(table).cumsum(0) - 1
        units = int(unit[-1]) + 1
        half = torch.arange(min(place % HALVES, units - 1), units, HALVES)  # a single one is held out for all
        resample = half[torch.randint(len(half), (len(half),), generator=paired_generator(self.seed, place))]
        counts = torch.bincount(resample, minlength=units).to(unit.device)[unit]
        rows = torch.arange(len(table), device=unit.device).repeat_interleave(counts)
        yield from self.each[place].mechanism_parts(table.rows(rows))

    def closing_parts(self, table: Table) -> Fits:
        """The comparable steps and the closed form."""
        yield self.closed.known_part(table)
        yield self.closed.halves, tuple(vars(self.closed.steps(table)).values())

    @property
    def members(self) -> int:
        """M."""
        return len(self.models) // HALVES

    def check_noise(self, rows: Table | None, held_out: Table | None) -> None:
        """Checks the members and the closed form."""
        super().check_noise(rows, held_out)
        self.closed.check_noise(rows, held_out)

    @property
    def claimant(self) -> TransitionRidge | None:
        """The closed form; None before it is fitted."""
        return self.closed if self.closed.halves.fitted else None

    def chooser(self, states: Sequence[str]) -> CheckedTransition:
        """The members, unless their noise can be predicted and that of the closed form cannot."""
        better = self.errs(states) and self.claimant is not None and not self.closed.errs(states)
        return self.closed if better else self

    def trajectory(self, episode: Episode) -> Trajectory:
        """The trajectories of the selecting half's members side by side, with states (T, M D)."""
        half = self.closed.choosing(episode)
        return stacked([model.trajectory(episode) for model in self.each[half::HALVES]])

    def units(self, states: Tensor) -> Tensor:
        """The mean over the members, (..., M D) -> (..., D), in clinical units."""
        return self.member_units(states).mean(-2)

    def member_units(self, states: Tensor) -> Tensor:
        """Each member's states, (..., M D) -> (..., M, D), in clinical units."""
        return self.first.units(states.unflatten(-1, (self.members, -1)))

    def noise(self, table: Table) -> tuple[Tensor, Tensor]:
        """Scaled parents and each member's noise, (n, p) and (n, M, D), float64."""
        noises = [model.noise(table) for model in self.each]
        return noises[0][0], torch.cat([noise for _, noise in noises], 1)

    def lipschitz(self, table: Table) -> Mapping[str, float]:
        """The members' maximum of each number."""
        figures = [model.lipschitz(table) for model in self.each]
        return {name: max(figure[name] for figure in figures) for name in figures[0]}

    def log_likelihood(self, table: Table) -> Tensor:
        """Mean over the members of each transition's log-likelihood, scaled coordinates, (n,)."""
        return torch.stack([model.log_likelihood(table) for model in self.each]).mean(0)
