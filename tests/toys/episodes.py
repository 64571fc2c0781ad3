"""Small random episodes to search in: learnt-like transition models, and known equations."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial

import torch
from torch import Tensor

from rehearsal_torch.data.decision import EpisodeCase
from rehearsal_torch.data.episode import Episode, transitions
from rehearsal_torch.data.table import Table
from rehearsal_torch.data.trainable_part import Solved, Trained
from rehearsal_torch.mechanisms.location_scale import LocationScale
from rehearsal_torch.mechanisms.mechanism import EquationTrajectory, Trajectory
from rehearsal_torch.mechanisms.sparse_effects import SparseEffects
from rehearsal_torch.objectives.counterfactual_return import CounterfactualReturn
from rehearsal_torch.objectives.step_reward import Doses, LinearReward, Reward
from rehearsal_torch.surrogates.surrogate import EpisodeSurrogate
from rehearsal_torch.surrogates.transition import TransitionModel


def transition_model(
    seed: int,
    width: int = 2,
    levels: int = 3,
    drugs: int = 1,
    hidden: int = 8,
    spread: float = 3.0,
    effects: str = "dense",
) -> TransitionModel:
    """A transition model with random weights; `spread` multiplies the actions' weights, so that actions
    matter."""
    varying, doses = [f"x{index}" for index in range(width)], [f"drug{index}" for index in range(drugs)]
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        model = TransitionModel(
            varying, ["age"], ["vent"], doses, partial(LocationScale, hidden=hidden), levels, (), effects
        )
        table = transitions([_episode(model, 60, torch.Generator().manual_seed(seed), "ranges")])
        parts = model.parts(table)
        for part, examples in (next(parts), next(parts)):
            assert isinstance(part, Solved)
            part.solve(*examples)
        networks = model.mechanism.networks
        with torch.no_grad():
            networks.inner.mul_(2.0)
            networks.outer.mul_(3.0)
            networks.action.mul_(spread)
            networks.bias.mul_(2.0)
        networks.finish()
        if isinstance(model.mechanism, SparseEffects):
            table = torch.randn(width, 3 * drugs, 1 + width, dtype=torch.float64)
            model.mechanism.effects.coefficients = 0.1 * spread * table * (torch.rand(table.shape) < 0.3)
    return model.eval()


def transition_episode(
    seed: int,
    horizon: int = 5,
    changes: int = 2,
    width: int = 2,
    levels: int = 3,
    drugs: int = 1,
    hidden: int = 8,
    spread: float = 3.0,
    fixed: Sequence[int] = (),
    effects: str = "dense",
) -> CounterfactualReturn:
    """A random episode of a random transition model; A = levels ** drugs, D = width, `fixed` names the time
    steps that may not change."""
    model = transition_model(seed, width, levels, drugs, hidden, spread, effects)
    episode = _episode(model, horizon, torch.Generator().manual_seed(seed + 1), f"episode-{seed}")
    return CounterfactualReturn(
        model, EpisodeCase(episode, _mask(horizon, fixed)), LinearReward({"x0": -1.0}), changes
    )


def equation_episode(
    seed: int,
    horizon: int = 5,
    changes: int = 2,
    width: int = 2,
    actions: int = 3,
    fixed: Sequence[int] = (),
    acts: bool = True,
) -> CounterfactualReturn:
    """A random episode under x' = sin(M_a x) + b_a + u, with a reward that depends on the action where
    `acts`."""
    generator = torch.Generator().manual_seed(seed)
    maps = torch.randn(actions, width, width, generator=generator, dtype=torch.float64) / width**0.5
    shifts = torch.randn(actions, width, generator=generator, dtype=torch.float64)
    constant = float(torch.linalg.matrix_norm(maps, 2).max())
    model = KnownTruth(
        width, actions, lambda x, a: torch.sin((maps[a] @ x.unsqueeze(-1))[..., 0]) + shifts[a], constant
    )
    states = torch.randn(horizon, width, generator=generator, dtype=torch.float64)
    taken = torch.randint(actions, (horizon,), generator=generator)
    reward = (
        PricedReward(torch.rand(actions, generator=generator, dtype=torch.float64))
        if acts
        else LinearReward({"x0": -1.0})
    )
    return CounterfactualReturn(
        model,
        EpisodeCase(model.episode(f"equation-{seed}", states, taken), _mask(horizon, fixed)),
        reward,
        changes,
    )


def partition_episode(numbers: Sequence[int]) -> CounterfactualReturn:
    """The episode whose best return is 0 if and only if the numbers split into two halves of equal sum.

    Action 0 (null) adds the next number to the first coordinate, action 1 (diff) leaves it out; all are added
    in what was observed, and every action may change.

    Source: Tsirtsis and Gomez-Rodriguez (2023), Thm. 4 and App. D.1, Eq. 12-13.
    """
    half = sum(numbers) / 2
    keep = torch.tensor([[[1.0, 0.0], [0.0, 0.0]], [[1.0, -1.0], [0.0, 0.0]]], dtype=torch.float64)
    model = KnownTruth(2, 2, lambda x, a: (keep[a] @ x.unsqueeze(-1))[..., 0], 2**0.5)
    sums = torch.tensor([0, *numbers], dtype=torch.float64).cumsum(0)
    states = torch.stack([sums, torch.tensor([*numbers, 0], dtype=torch.float64)], -1)
    episode = model.episode("partition", states, torch.zeros(len(states), dtype=torch.long))
    return CounterfactualReturn(model, EpisodeCase(episode), PartitionReward(half), len(states))


def value(objective: CounterfactualReturn, states: Tensor, time: int, spent: int) -> Tensor:
    """V(x, l, t) of states (n, D) by plain recursion, with nothing of the searches in it: (n,)."""
    rewards = objective.rewards(states).expand(-1, objective.actions)
    last = time == objective.horizon - 1
    able = time < len(objective.observed) and spent < objective.changes
    best = torch.full_like(rewards[:, 0], -torch.inf)
    for action in range(objective.actions):
        changed = action != int(objective.trajectory.observed[time])
        if changed and not (able and action in objective.candidate_actions(time).tolist()):
            continue
        ahead = (
            0
            if last
            else value(
                objective,
                objective.trajectory.step(states, time, torch.tensor(action)),
                time + 1,
                spent + changed,
            )
        )
        best = torch.maximum(best, rewards[:, action] + ahead)
    return best


class KnownTruth(EpisodeSurrogate):
    """A known map F(x, a) plus additive noise, in its own coordinates x0, x1, ...; the test double of a
    learnt model."""

    def __init__(
        self, width: int, actions: int, map_: Callable[[Tensor, Tensor], Tensor], constant: float | None
    ) -> None:
        super().__init__()
        self.width, self.actions, self.map, self.constant = width, actions, map_, constant

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(f"x{index}" for index in range(self.width))

    def episode(self, identity: str, states: Tensor, taken: Tensor) -> Episode:
        """States (T, D) and actions (T,) as an episode."""
        return Episode(
            identity, (*self.names, "action"), torch.cat([states, taken.unsqueeze(-1).to(states)], -1)
        )

    def parts(self, table: Table) -> Iterator[tuple[Solved | Trained, tuple[Tensor, ...]]]:
        return iter(())

    def trajectory(self, episode: Episode) -> Trajectory:
        states, observed = episode.columns(self.names), episode.columns(["action"])[:, 0].long()
        noise = states[1:] - self.map(states[:-1], observed[:-1])
        constants = (
            None if self.constant is None else torch.full((len(noise),), self.constant, dtype=torch.float64)
        )
        return EquationTrajectory(
            states,
            observed,
            self.actions,
            lambda x, time, actions: self.map(x, actions) + noise[time],
            constants,
        )

    def units(self, states: Tensor) -> Tensor:
        return states

    def state_scale(self) -> Tensor:
        return torch.ones(self.width, dtype=torch.float64)

    def doses(self, actions: Tensor) -> Tensor:
        return actions.unsqueeze(-1).to(torch.float64)


class TwoDoses(KnownTruth):
    """Actions of two doses with three levels each, of which the second one has no effect; linear."""

    def __init__(self) -> None:
        pull = torch.tensor([0.0, 1.0, 3.0], dtype=torch.float64)
        super().__init__(2, 9, lambda x, a: 0.5 * x - pull[a // 3].unsqueeze(-1), 0.5)

    def doses(self, actions: Tensor) -> Tensor:
        return torch.stack([actions // 3, actions % 3], -1).to(torch.float64)


def idle_dose_episode(changes: int = 2) -> CounterfactualReturn:
    """An episode of `TwoDoses` with the first dose at 0 or 1 and the second one at 1 or 2 throughout."""
    model = TwoDoses()
    states = torch.randn(5, 2, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    episode = model.episode("idle dose", states, torch.tensor([1, 5, 2, 4, 1]))
    return CounterfactualReturn(model, EpisodeCase(episode), LinearReward({"x0": -1.0}), changes)


class PricedReward(Reward):
    """R(s, a) = cos(s_0) - price of a: neither linear in the state nor free of the action."""

    def __init__(self, price: Tensor) -> None:
        self.price = price

    @property
    def acts(self) -> bool:
        return True

    def __call__(self, states: Tensor, names: Sequence[str], doses: Doses | None = None) -> Tensor:
        return torch.cos(states[..., :1]) - self.price.to(states)

    def lipschitz(self, names: Sequence[str], state_scale: Tensor) -> float:
        return float(state_scale[0])


class PartitionReward(Reward):
    """-max(0, s_1 - m - m s_2) - max(0, m - s_1 - m s_2), with m half the sum of the numbers.

    Each term has the constant sqrt(1 + m^2). (App. D.1.1 has sqrt(1 + m), where a square is lost.)
    """

    def __init__(self, middle: float) -> None:
        self.middle = middle

    @property
    def acts(self) -> bool:
        return False

    def __call__(self, states: Tensor, names: Sequence[str], doses: Doses | None = None) -> Tensor:
        first, second = states[..., :1], self.middle * states[..., 1:]
        return -(first - self.middle - second).clamp_min(0) - (self.middle - first - second).clamp_min(0)

    def lipschitz(self, names: Sequence[str], state_scale: Tensor) -> float:
        return 2 * (1 + self.middle**2) ** 0.5


def _episode(model: TransitionModel, horizon: int, generator: torch.Generator, identity: str) -> Episode:
    columns = (*model.varying, *model.static, *model.contextual, *model.levels.names)
    values = torch.rand(horizon, len(columns), generator=generator, dtype=torch.float64)
    doses = values[:, -len(model.levels.names) :]
    values[:, -len(model.levels.names) :] = torch.where(doses < 0.3, 0.0, doses)
    values[:, len(model.varying)] = values[0, len(model.varying)]
    return Episode(identity, columns, values)


def _mask(horizon: int, fixed: Sequence[int]) -> Tensor:
    mask = torch.zeros(horizon if fixed else 0, dtype=torch.bool)
    mask[list(fixed)] = True
    return mask


def coded_episode(seed: int, horizon: int = 5, changes: int = 2) -> CounterfactualReturn:
    """A random episode of a drug given in two different doses where there are four levels: one level has no
    row."""
    drawn = transition_episode(seed, horizon, changes, levels=4)
    model = drawn.surrogate
    assert isinstance(model, TransitionModel)
    model.levels.fix([[0.0, 0.4, 0.8]])
    return CounterfactualReturn(model, drawn.case, drawn.reward, changes)


def doubled_episode(seed: int, acts: bool = True) -> CounterfactualReturn:
    """A random episode in which actions 1 and 2 of 0, 1, 2, 3 give the same."""
    drawn = equation_episode(seed, actions=4, acts=acts)
    drawn.surrogate.doses = lambda actions: torch.tensor([0.0, 1.0, 1.0, 2.0], dtype=torch.float64)[
        actions
    ].unsqueeze(-1)  # type: ignore[method-assign]
    return CounterfactualReturn(drawn.surrogate, drawn.case, drawn.reward, drawn.changes)
