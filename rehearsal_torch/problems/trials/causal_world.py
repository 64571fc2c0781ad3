"""Causal worlds: simulated systems with known equations, whose best action is known.

    x_i = f_i(z_i, a_i, u_i),   u_i ~ p(U_i),   reward = r(x),        a* = argmax E[r | a].

Each round tries one action; the noise in round t is the same for every method with the same seed. Methods are
scored by the *expected* reward of the action that was tried, E[r | a_t], and of the action that the method
would recommend at that time; neither is observed by the method.

Source: Ren et al. (2025), Sec. 3 and 11.1; the start design of 2 (k + 1) uniform actions: Sussex et al.
(2023).
"""

from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from rehearsal_torch.data.causal_task import MIN_ROWS, CausalTask
from rehearsal_torch.data.decision import Decision, DecisionContext, RehearsalCase
from rehearsal_torch.data.known_reward import WeightedSum
from rehearsal_torch.data.table import Table
from rehearsal_torch.graphs.mixed_graph import RehearsalGraph
from rehearsal_torch.problems.problem import SIMULATED, CausalProblem, Verdict, World, ranges_of
from rehearsal_torch.problems.trials.mixture_noise import RANGES, MixtureNoise, ModalNoise, Modes
from rehearsal_torch.problems.world_size import Rounds, setting
from rehearsal_torch.seeding import COMMON_NOISE, numpy_generator
from rehearsal_torch.spaces.box import Alteration, Box

CELLS = 1_000_000  # Rows that are simulated at once.


def in_parts(value: Callable[[Tensor], Tensor], actions: Tensor, size: int) -> Tensor:
    """A function of actions, (n, k) -> (n,), at most `size` rows at a time: (..., k) -> (...)."""
    flat = actions.double().reshape(-1, actions.shape[-1])
    return torch.cat([value(part) for part in flat.split(size)]).reshape(actions.shape[:-1])


def experiment_rows(task: CausalTask, settings: Tensor, nodes: Mapping[str, Tensor]) -> Table:
    """The table of experiments with settings (n, k) and node values (n,), actions marked as set."""
    known = dict(zip(task.settings, settings.unbind(-1), strict=True))
    values = torch.stack([{**known, **nodes}[name] for name in task.columns], -1)
    altered = torch.zeros_like(values, dtype=torch.bool)
    for name in task.actions:
        altered[:, task.columns.index(name)] = ~known[name].isnan()
    return Table(task.columns, values, altered)


class CausalWorld(World, CausalProblem):
    """A system with known equations; ValueError for nodes without noise, too few first experiments or draws.

    Args:
        task: Its `nodes` are simulated.
        seed: Of the start design and of the noise in the rounds.
        draws: Noise draws that `expected` averages over where it has no closed form.
    """

    source: str = ""

    def __init__(
        self,
        task: CausalTask,
        noise: Mapping[str, MixtureNoise],
        size: Rounds = Rounds(),
        seed: int = 0,
        draws: int = 100_000,
    ) -> None:
        initial = setting("size", size, Rounds).start(len(task.actions))
        if initial < MIN_ROWS or draws < 1:
            expected = f"expected at least {MIN_ROWS} initial experiments and 1 draw"
            raise ValueError(f"{expected}; got {initial} and {draws}")
        if missing := [node for node in task.nodes if node not in noise]:
            raise ValueError(f"no noise distribution for {missing}: give each node one")
        self.task, self.noise, self.size = task, dict(noise), size
        self.initial, self.seed, self.draws = initial, seed, draws

    @abstractmethod
    def equation(self, node: str, inputs: Mapping[str, Tensor], noise: Tensor) -> Tensor:
        """f_i of inputs, name to (...), and noise (...) -> (...), in torch operations."""

    @abstractmethod
    def best(self) -> tuple[Tensor, float]:
        """An action (k,) that reaches max_a E[r | a], and this value, exact or the best that is known."""

    @cached_property
    def _best(self) -> tuple[Tensor, float]:
        return self.best()

    @property
    def optimal_value(self) -> float:
        """The largest expected reward."""
        return self._best[1]

    @property
    def optimal_action(self) -> Tensor:
        """An action (k,) that reaches it."""
        return self._best[0]

    def details(self) -> Mapping[str, Any]:
        """Entries of the card that only this world has; none by default."""
        return {}

    def recoverable(self, node: str, noise: Tensor) -> Tensor:  # noqa: ARG002
        """f_c(u), the part of a node's noise that data identify (Ren et al., 2025, Thm. 4.1); here u."""
        return noise

    def mean_of(self, node: str, inputs: Mapping[str, Tensor]) -> Tensor | None:
        """E[x_i | w], the mean of a node over its noise at its inputs, name to (...) -> (...), by quadrature
        with 64 points for each mode; None where the node does not follow from these inputs.
        """
        points, weights = (torch.from_numpy(column) for column in self.noise[node].nodes())
        values = self.equation(node, {name: column.unsqueeze(-1) for name, column in inputs.items()}, points)
        return (values * weights).sum(-1)

    def simulate(self, actions: Tensor, noise: Tensor) -> Tensor:
        """Node values of actions (..., k) and noise (..., N), (..., N); overridden for measurement errors."""
        values = dict(zip(self.task.actions, actions.unbind(-1), strict=True))
        for node, shock in zip(self.task.nodes, noise.unbind(-1), strict=True):
            values[node] = self.equation(node, {name: values[name] for name in self.task.inputs(node)}, shock)
        return torch.stack(torch.broadcast_tensors(*(values[node] for node in self.task.nodes)), -1)

    def noise_rows(self, count: int, stream: np.random.Generator) -> Tensor:
        """Independent noise, (count, N). Override it where roots are resampled jointly from data."""
        columns = [self.noise[node].draw(count, stream) for node in self.task.nodes]
        return torch.from_numpy(np.stack(columns, -1))

    def rewards(self, nodes: Tensor) -> Tensor:
        """The reward of node values, (..., N) -> (...)."""
        return self.task.reward(nodes[..., [self.task.nodes.index(name) for name in self.task.reward.names]])

    def expected(self, actions: Tensor) -> Tensor:
        """E[r | a], (..., k) -> (...), by common random numbers; overridden where it has a closed form."""
        return self.averaged(actions, self._common)

    @cached_property
    def _common(self) -> Tensor:
        return self.noise_rows(self.draws, numpy_generator(COMMON_NOISE))

    def averaged(self, actions: Tensor, noise: Tensor) -> Tensor:
        """The mean reward of actions over rows of noise, (..., k), (M, N) -> (...)."""

        def mean(part: Tensor) -> Tensor:
            return self.rewards(self.simulate(part[:, None], noise)).mean(-1)

        return in_parts(mean, actions, max(1, CELLS // len(noise)))

    @property
    def bounds(self) -> Tensor:
        """(2, k), lower and upper bounds of the actions, as in BoTorch's test functions."""
        return torch.stack([self.task.box.lower, self.task.box.upper])

    def experiments(self, actions: Tensor, noise: Tensor) -> Table:
        """One row for each action (n, k) and noise (n, N): actions, marked as set, then nodes."""
        nodes = dict(zip(self.task.nodes, self.simulate(actions, noise).unbind(-1), strict=True))
        return experiment_rows(self.task, actions, nodes)

    def random_actions(self, count: int, stream: np.random.Generator) -> Tensor:
        """Actions drawn uniformly within bounds and constraints, (count, k)."""
        accepted: list[Tensor] = []
        while sum(map(len, accepted)) < count:
            unit = torch.from_numpy(stream.uniform(size=(count, len(self.task.actions))))
            draws = self.task.box.lower + unit * self.task.box.width
            draws = self.task.box.project(draws) if self.task.box.levels else draws
            accepted.append(draws if self.task.limits is None else draws[self.task.limits.contains(draws)])
        return torch.cat(accepted)[:count]

    def explained(self, held_out: bool = False) -> tuple[Table, Tensor]:
        """Experiments with random actions, and their noise (n, N): the start design, or held-out ones."""
        count = max(50, self.initial // 4) if held_out else self.initial
        stream = self.stream(int(held_out))
        actions = self.random_actions(count, stream)
        noise = self.noise_rows(count, stream)
        return self.experiments(actions, noise), noise

    def observations(self) -> Table:
        """The start design."""
        return self.explained()[0]

    def held_out(self) -> Table:
        """Further experiments with random actions."""
        return self.explained(held_out=True)[0]

    def count(self) -> int:
        """The number of rounds."""
        return self.size.rounds

    def case(self, index: int) -> RehearsalCase:
        """The question which action to try in a round; there is no context."""
        if not 0 <= index < self.size.rounds:
            raise IndexError(f"expected a round in 0 ... {self.size.rounds - 1}; got {index}")
        return self.task.case(str(index))

    def respond(self, case: DecisionContext, decision: Decision) -> Table:
        """What follows a decision, a row for each action; ValueError if it sets none that may be."""
        actions = self._actions(decision)
        return self.experiments(actions, self.noise_rows(len(actions), self.stream(2, int(case.identity))))

    def verdict(self, answer: Table) -> Verdict:
        """The mean reward of the rows."""
        return Verdict(reward=float(self.task.reward_of(answer).mean()))

    def optimum(self, case: DecisionContext) -> float:  # noqa: ARG002
        """The largest expected reward."""
        return self.optimal_value

    def score(self, case: DecisionContext, decision: Decision) -> Mapping[str, float]:  # noqa: ARG002
        """Expected rewards: of the action tried, recommended, optimal, best at the start, and the regret."""
        mean = float(self.expected(self._actions(decision)).mean())
        recommendation = decision.recommendation
        value = mean if recommendation is None else float(self.expected(self._values(recommendation)).mean())
        return {
            "expected": mean,
            "recommended": value,
            "optimum": self.optimal_value,
            "regret": self.optimal_value - value,
            "start": self._start,
        }

    @cached_property
    def _start(self) -> float:
        return float(self.expected(self.task.settings_of(self.observations())).max())

    def _actions(self, decision: Decision) -> Tensor:
        if decision.alteration is None:
            expected = f"expected a decision that sets {list(self.task.actions)}"
            raise ValueError(f"{expected}; got none ({decision.reason})")
        actions = self._values(decision.alteration)
        for action in actions:
            self.task.check_action(action)
        return actions

    def _values(self, alteration: Alteration) -> Tensor:
        """The actions of an alteration in the task's order, (q, k)."""
        if not set(self.task.required) <= set(alteration.names) <= set(self.task.actions):
            raise ValueError(f"expected a decision that sets {list(self.task.actions)}; got {alteration}")
        columns = dict(zip(alteration.names, alteration.values.double().unbind(-1), strict=True))
        unset = alteration.values.new_full(alteration.values.shape[:-1], torch.nan).double()
        values = torch.stack([columns.get(name, unset) for name in self.task.actions], -1)
        return values.reshape(-1, len(self.task.actions))

    def card(self) -> Mapping[str, Any]:
        """Sizes, roles, noise, ranges, optimum, fingerprint of the start design, and `details`."""
        table = self.observations()
        mixtures = ((node, asdict(noise).items()) for node, noise in self.noise.items())
        distributions = {node: {name: list(numbers) for name, numbers in parts} for node, parts in mixtures}
        return {
            "world": type(self).__name__,
            "caution": SIMULATED,
            "rows": len(table),
            "rounds": self.size.rounds,
            **self.task.to_plain(),
            "noise": distributions,
            "ranges": ranges_of(table.records()),
            "optimum": self.optimal_value,
            "fingerprint": table.fingerprint(),
            **self.details(),
            **({"source": self.source} if self.source else {}),
        }


@dataclass(frozen=True)
class Node:
    """The equation of a node without its noise, f of the values of its parents, (...) each -> (...)."""

    parents: tuple[str, ...]
    of: Callable[..., Tensor]


@dataclass(frozen=True)
class NetworkTable:
    """An additive-noise world as plain data.

    Attributes:
        equations: Node to its equation, causes first.
        width: k; the actions a0, a1, ... lie in [0, 1].
        reward: Node to its weight in the reward.
        modes: Number of modes to means and factors of the noise.
        own_modes: Nodes with modes of their own to these.
    """

    equations: Mapping[str, Node]
    width: int
    reward: Mapping[str, float]
    source: str
    modes: Modes = field(default_factory=lambda: RANGES)
    own_modes: Mapping[str, Modes] = field(default_factory=dict)


class AdditiveWorld(CausalWorld):
    """A table of equations with additive noise: x_i = f_i(z_i, a_i) + lambda U_i.

    Args:
        noise: Level and modes of the noise of every node; means and factors default to those of the world.
        scale: lambda, which multiplies the noise.
        size: Number of rounds and of experiments in the start design; by default 100 and 2 (k + 1).
    """

    table: ClassVar[NetworkTable]

    def __init__(
        self, noise: ModalNoise = ModalNoise(0.1), scale: float = 1.0, size: Rounds = Rounds(), seed: int = 0
    ) -> None:
        if not scale >= 0:
            expected = "expected a number of at least 0, which multiplies the noise"
            raise ValueError(f"scale: {expected}; got {scale}")
        table, self.scale, modal = self.table, float(scale), setting("noise", noise, ModalNoise)
        self.source = table.source
        box = Box.of({f"a{index}": (0.0, 1.0) for index in range(table.width)})
        parents = {node: equation.parents for node, equation in table.equations.items()}
        task = CausalTask(RehearsalGraph.of(parents), box, WeightedSum(dict(table.reward)))
        distributions = {node: modal.mixture(table.own_modes.get(node, table.modes)) for node in parents}
        super().__init__(task, distributions, size, seed)

    def equation(self, node: str, inputs: Mapping[str, Tensor], noise: Tensor) -> Tensor:
        """f of the table, and the noise."""
        equation = self.table.equations[node]
        return equation.of(*(inputs[name] for name in equation.parents)) + self.scale * noise

    def mean_noise(self, node: str) -> float:
        """lambda E[U] of a node."""
        return self.scale * self.noise[node].mean

    def expected(self, actions: Tensor) -> Tensor:
        """E[r | a] at mean noise: exact where no node bends what a noisy one passes on; else overridden."""
        means = [self.noise[node].mean for node in self.task.nodes]
        return self.rewards(self.simulate(actions.double(), torch.tensor(means, dtype=torch.float64)))
