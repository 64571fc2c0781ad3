"""Ensembles of transition models, each fitted to a bootstrap resample of the transitions.

A search finds the actions at which the errors of a single learnt model are largest, and two trainings of one
class recommend differently. An ensemble predicts the mean over its members, and a recommendation is made only
where every member predicts a gain (`claims.sequences`).

Each member draws n of the n transitions with replacement, by a seed of its own: of the training rows, and of
those held out for early stopping. They are drawn one by one rather than patient by patient, so that members
differ less than models of other patients would. Ranges and dose levels are those of the whole table: all
members use the same coordinates and actions. The abducted noise is each member's own. A search sees the
stacked states of all members (`mechanisms.mechanism`).

Source: Efron (1979) (bootstrap); Lakshminarayanan, Pritzel and Blundell (2017) (ensembles).
"""

from collections.abc import Callable, Mapping
from itertools import islice

import torch
from torch import Tensor

from rehearsal_torch.data.episode import Episode
from rehearsal_torch.data.sizes import bounded
from rehearsal_torch.data.table import Table
from rehearsal_torch.mechanisms.mechanism import Trajectory, stacked
from rehearsal_torch.seeding import paired_generator
from rehearsal_torch.surrogates.surrogate import Fits, Modules, SeparateMembers
from rehearsal_torch.surrogates.transition import CheckedTransition, NoiseCheck, TransitionModel

MAX_MEMBERS = 64


class TransitionEnsemble(CheckedTransition, SeparateMembers):
    """M transition models of bootstrap resamples. ValueError if there are fewer than 2 or more than 64
    members.

    Args:
        member: Factory of one member, a `TransitionModel`.
        count: M.
        seed: Seed of the resamples.
    """

    def __init__(self, member: Callable[[], TransitionModel], count: int = 4, seed: int = 0) -> None:
        super().__init__()
        bounded("count", count, MAX_MEMBERS, 2)
        self.seed = seed
        models = [member() for _ in range(count)]
        for model in models[1:]:
            model.rescale, model.levels = models[0].rescale, models[0].levels
        self.models = Modules[TransitionModel](models)
        self.noise_check = NoiseCheck(len(models[0].names))

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
        rows = len(table)
        drawn = torch.randint(rows, (rows,), generator=paired_generator(self.seed, place))
        resample = table.rows(drawn)
        yield from self.each[place].mechanism_parts(resample)

    def trajectory(self, episode: Episode) -> Trajectory:
        """The members' trajectories side by side, with states (T, M D)."""
        return stacked([model.trajectory(episode) for model in self.each])

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
        """The largest number of the members under each name."""
        figures = [model.lipschitz(table) for model in self.each]
        return {name: max(figure[name] for figure in figures) for name in figures[0]}

    def log_likelihood(self, table: Table) -> Tensor:
        """Mean over the members of each transition's log-likelihood, scaled coordinates, (n,)."""
        return torch.stack([model.log_likelihood(table) for model in self.each]).mean(0)
