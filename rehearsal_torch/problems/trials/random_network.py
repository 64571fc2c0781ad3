"""Networks by seed: every seed draws another network of experiments, some with traits that strain trials.

A network has 3 to 8 nodes, the last of which is the reward, and 2 to 5 actions in [0, 1] or in ranges with
units. Every node leads to the reward and has one to three inputs, nodes and actions together; an action
enters one or two nodes. Each node is

    x = m + c (s(z) + l U),      s(z) = sum_j w_j T_j(z),      l in [.02, .2],

with the inputs z standardised over a pilot sample of random actions, and with s, standardised likewise, as a
sum of one term for each input and, in half of the nodes with several, the product of two. The terms of an
input z, squashed to 3 tanh(z / 3) so that chains of nodes have moments, are

    sine            sin(r z + pi p)
    saturation      tanh(r (z - p))
    quadratic       1 - (z - p)^2 / 2
    hill            t^4 / (1 + t^4), t = (z + 3.2) / (p + 3.2)
    exponential     exp(r z / 2) or exp(-r z / 2)

and U is standard normal. Each trait has a chance of 15 %, whatever the others are:

    misspecified    a mechanism with a jump, with a kink, or with a noise whose size depends on an input
    noise           every U is skewed, heavy-tailed or has two modes, with mean 0 and variance 1
    levels          one or two actions have 2 to 5 levels
    far             the start design lies in a corner: of each continuous action it covers the 30 % that are
                    farther from the optimum
    wrong_arrow     the graph of the task lacks an arrow, or has one reversed or at another node; still every
                    node leads to the reward and has an input

A seed with and without a trait is the same network otherwise. E[r | a] is a mean over 2^12 Sobol draws of the
noises, the same for all actions of a world. The optimum is searched for without gradients, since jumps have
none: of 4,096 Sobol points the best 16 are varied at random, in steps that shrink from a quarter of the box
to 1e-5 of it, and the best three again under all draws of noise.

Networks with seeds below 1000 are for building methods, those from 1000 on for reporting.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal, get_args

import numpy as np
import torch
from torch import Tensor

from rehearsal_torch.data.causal_task import CausalTask
from rehearsal_torch.data.known_reward import WeightedSum
from rehearsal_torch.data.table import Table
from rehearsal_torch.graphs.mixed_graph import RehearsalGraph
from rehearsal_torch.problems.trials.causal_world import CausalWorld
from rehearsal_torch.problems.trials.mixture_noise import STANDARD, MixtureNoise, sobol_draws
from rehearsal_torch.problems.world_size import Rounds, setting
from rehearsal_torch.seeding import generator, numpy_generator
from rehearsal_torch.spaces.box import Box

NetworkTrait = Literal["misspecified", "noise", "levels", "far", "wrong_arrow"]
NETWORK_TRAITS: tuple[NetworkTrait, ...] = get_args(NetworkTrait)
Fault = Literal["jump", "kink", "noise"]
CHANCE = 0.15
REWARD = "Y"
FEWEST = 8  # Experiments of a start design.
RANGES = ((20.0, 80.0), (4.0, 9.0), (0.0, 250.0), (-10.0, 40.0), (0.001, 0.02))
PILOT, POWER, COARSE = 4000, 12, 8  # Rows, and powers of two of the draws of E[r | a] and of its search.
CORNER = 0.3
# Purposes of the generators of a network.
_NETWORK, _TRAITS, _PILOT, _FAULT, _NOISE, _LEVELS, _ARROW = range(61, 68)

Parents = Mapping[str, tuple[str, ...]]
Arrow = tuple[str, str]
SHAPES: Mapping[str, Callable[[Tensor, float, float], Tensor]] = {
    "sine": lambda z, rate, place: torch.sin(rate * z + math.pi * place),
    "saturation": lambda z, rate, place: torch.tanh(rate * (z - place)),
    "quadratic": lambda z, rate, place: 1 - (z - place).square() / 2,  # noqa: ARG005
    "hill": lambda z, rate, place: 1 - 1 / (1 + ((z + 3.2) / (place + 3.2)) ** 4),  # noqa: ARG005
    "exponential": lambda z, rate, place: torch.exp(math.copysign(rate, place) * z / 2),
}
NOISES = {
    "skewed": ((0.8, 0.2), (-0.4, 1.6), (0.4, 0.8)),
    "heavy tails": ((0.9, 0.1), (0.0, 0.0), (0.5, 2.5)),
    "two modes": ((0.5, 0.5), (-1.0, 1.0), (0.3, 0.3)),
}


@dataclass(frozen=True)
class Term:
    """A term of a mechanism: its weight by its factors, each a shape of an input with rate r and place p."""

    weight: float
    factors: tuple[tuple[str, str, float, float], ...]

    def __call__(self, inputs: Mapping[str, Tensor]) -> Tensor:
        """The term at standardised inputs, name to (...) -> (...)."""
        value = torch.tensor(self.weight, dtype=torch.float64)
        for name, shape, rate, point in self.factors:
            value = value * SHAPES[shape](3 * torch.tanh(inputs[name] / 3), rate, point)
        return value


@dataclass(frozen=True)
class Strain:
    """A fault of a mechanism: kind, input, place, and size: of a jump, a change of slope or of log noise."""

    kind: Fault
    name: str
    place: float
    size: float


@dataclass(frozen=True)
class DrawnMechanism:
    """A node as a function of its standardised inputs.

    Attributes:
        terms: The terms of s.
        level: l, the noise in standard deviations of s.
        centre: m, the location of the node.
        scale: c, its unit.
        moments: Mean and standard deviation of s over the pilot sample, before it is standardised.
    """

    terms: tuple[Term, ...]
    level: float
    centre: float
    scale: float
    moments: tuple[float, float] = (0.0, 1.0)
    strain: Strain | None = None

    def signal(self, inputs: Mapping[str, Tensor]) -> Tensor:
        """s of standardised inputs, name to (...) -> (...)."""
        total = torch.stack(torch.broadcast_tensors(*(term(inputs) for term in self.terms))).sum(0)
        if self.strain is not None and self.strain.kind != "noise":
            beyond = inputs[self.strain.name] - self.strain.place
            bent = (beyond > 0).to(total) if self.strain.kind == "jump" else beyond.clamp_min(0)
            total = total + self.strain.size * bent
        return (total - self.moments[0]) / self.moments[1]

    def __call__(self, inputs: Mapping[str, Tensor], noise: Tensor) -> Tensor:
        """The node of standardised inputs, name to (...), and noise (...) -> (...)."""
        level: float | Tensor = self.level
        if self.strain is not None and self.strain.kind == "noise":
            level = level * torch.exp(self.strain.size * inputs[self.strain.name].clamp(-2, 2))
        return self.centre + self.scale * (self.signal(inputs) + level * noise)


def traits_of(seed: int) -> tuple[NetworkTrait, ...]:
    """The traits that a seed has."""
    drawn = numpy_generator(seed, _TRAITS).random(len(NETWORK_TRAITS)) < CHANCE
    return tuple(trait for trait, present in zip(NETWORK_TRAITS, drawn, strict=True) if present)


class DrawnNetwork(CausalWorld):
    """The network of a seed; ValueError if there is no such trait.

    Args:
        traits: Its traits in place of those that the seed has; None for these.
        size: Number of rounds and of experiments in the start design; by default 100 and max(2 k + 2, 8).
        seed: Which network, its start design, and the noise in the rounds.

    Attributes:
        parents: Node to its true inputs, causes first; the graph of the task has others with `wrong_arrow`.
        mechanisms: Node to its mechanism.
    """

    source = "drawn by seed"

    def __init__(
        self, traits: Sequence[NetworkTrait] | None = None, size: Rounds = Rounds(), seed: int = 0
    ) -> None:
        if unknown := [trait for trait in traits or () if trait not in NETWORK_TRAITS]:
            raise ValueError(f"traits: expected some of {', '.join(NETWORK_TRAITS)}; got {unknown}")
        self.traits = traits_of(seed) if traits is None else tuple(traits)
        draw = numpy_generator(seed, _NETWORK)
        self.parents, bounds = _structure(draw)
        self.mechanisms = {node: _draw_mechanism(inputs, draw) for node, inputs in self.parents.items()}
        if "levels" in self.traits:
            bounds |= _levels(bounds, numpy_generator(seed, _LEVELS))
        box, parents = Box.of(bounds), self.parents
        if "wrong_arrow" in self.traits:
            parents = _wrong_arrow(self.parents, numpy_generator(seed, _ARROW))
        task = CausalTask(RehearsalGraph.of(parents), box, WeightedSum({REWARD: 1.0}))
        noise = dict.fromkeys(task.nodes, STANDARD)
        if "noise" in self.traits:
            kinds = numpy_generator(seed, _NOISE).choice(list(NOISES), len(self.parents))
            noise = {node: _unit(NOISES[str(kind)]) for node, kind in zip(self.parents, kinds, strict=True)}
        size = setting("size", size, Rounds)
        if size.initial is None:
            size = replace(size, initial=max(FEWEST, size.start(len(bounds))))
        super().__init__(task, noise, size, seed)
        if "misspecified" in self.traits:
            node, strain = _strain(self.parents, numpy_generator(seed, _FAULT))
            self.mechanisms[node] = replace(self.mechanisms[node], strain=strain)
        self._standardise(numpy_generator(seed, _PILOT))

    def _standardise(self, stream: np.random.Generator) -> None:
        """Gives every mechanism the moments of its signal over the pilot sample, causes first."""
        box = self.task.box
        unit = torch.from_numpy(stream.uniform(size=(PILOT, len(box.names))))
        noise = torch.from_numpy(stream.standard_normal((len(self.mechanisms), PILOT)))
        values = dict(zip(box.names, (box.lower + unit * box.width).unbind(-1), strict=True))
        for (node, mechanism), node_noise in zip([*self.mechanisms.items()], noise, strict=True):
            inputs = self._standard({name: values[name] for name in self.parents[node]})
            signal = mechanism.signal(inputs)
            moments = float(signal.mean()), max(float(signal.std()), 1e-9)
            self.mechanisms[node] = replace(mechanism, moments=moments)
            values[node] = self.mechanisms[node](inputs, node_noise)

    def _standard(self, inputs: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Inputs less their locations over their units; those of actions are of a uniform distribution."""
        standardised = {}
        for name, values in inputs.items():
            if name in self.mechanisms:
                standardised[name] = (values - self.mechanisms[name].centre) / self.mechanisms[name].scale
            else:
                low, high = self.task.box.bounds()[name]
                standardised[name] = ((values - low) / (high - low) - 0.5) * math.sqrt(12)
        return standardised

    def equation(self, node: str, inputs: Mapping[str, Tensor], noise: Tensor) -> Tensor:
        """The mechanism of a node, of its true inputs."""
        return self.mechanisms[node](self._standard(inputs), noise)

    def mean_of(self, node: str, inputs: Mapping[str, Tensor]) -> Tensor | None:
        """None also where the inputs lack a true one."""
        return super().mean_of(node, inputs) if set(self.parents[node]) <= set(inputs) else None

    def simulate(self, actions: Tensor, noise: Tensor) -> Tensor:
        """Node values by the true graph, in the order of the task's."""
        values = dict(zip(self.task.actions, actions.unbind(-1), strict=True))
        for node, inputs in self.parents.items():
            node_noise = noise[..., self.task.nodes.index(node)]
            values[node] = self.equation(node, {name: values[name] for name in inputs}, node_noise)
        return torch.stack(torch.broadcast_tensors(*(values[node] for node in self.task.nodes)), -1)

    def explained(self, held_out: bool = False) -> tuple[Table, Tensor]:
        """As in other worlds; with `far` the start design lies in the corner."""
        table, noise = super().explained(held_out)
        if held_out or "far" not in self.traits:
            return table, noise
        box, actions = self.task.box, table.columns(self.task.actions)
        corner = torch.where(self.optimal_action < box.centre, box.upper, box.lower)
        for index, name in enumerate(box.names):
            if name not in box.levels:
                # Mirrored, a corner at the upper end is one at the lower end.
                depth = CORNER * (actions[:, index] - box.lower[index])
                actions[:, index] = corner[index] + depth * (1 if corner[index] == box.lower[index] else -1)
        return self.experiments(actions, noise), noise

    def expected(self, actions: Tensor) -> Tensor:
        """E[r | a], (..., k) -> (...), by Sobol draws."""
        return self.averaged(actions, self._common_draws)

    @cached_property
    def _common_draws(self) -> Tensor:
        return sobol_draws([self.noise[node] for node in self.task.nodes], POWER)

    @cached_property
    def _screened(self) -> tuple[Tensor, Tensor]:
        """4,096 actions and their E[r | a] by few draws."""
        actions = self.task.box.sobol(4096, seed=1)
        return actions, self.averaged(actions, self._common_draws[: 2**COARSE])

    @property
    def reach(self) -> float:
        """The range of E[r | a] over 4,096 actions, in the reward's unit."""
        values = self._screened[1]
        return float(values.max() - values.min())

    def best(self) -> tuple[Tensor, float]:
        """The best found by a search."""
        actions, values = self._screened
        coarse = self._common_draws[: 2**COARSE]
        draws = generator(self.seed)
        tops = actions[values.topk(16).indices]
        tops, values = self._climb(tops, lambda batch: self.averaged(batch, coarse), 0.25, draws)
        tops, values = self._climb(tops[values.topk(3).indices], self.expected, 0.03, draws)
        best = int(values.argmax())
        return tops[best], float(values[best])

    def _climb(
        self, tops: Tensor, value: Callable[[Tensor], Tensor], step: float, draws: torch.Generator
    ) -> tuple[Tensor, Tensor]:
        """Actions (m, k) after random variations that are better, and their values (m,)."""
        box, values = self.task.box, value(tops)
        while step > 1e-5:
            moves = torch.randn(len(tops), 24, tops.shape[-1], generator=draws, dtype=torch.float64)
            moves = moves * (torch.rand(moves.shape, generator=draws, dtype=torch.float64) < 0.6)
            candidates = box.project(tops.unsqueeze(1) + step * box.width * moves)
            trial_values, choice = value(candidates).max(-1)
            better = trial_values > values
            tops = torch.where(better.unsqueeze(-1), candidates[torch.arange(len(tops)), choice], tops)
            values = torch.where(better, trial_values, values)
            step *= 0.75
        return tops, values

    def details(self) -> Mapping[str, Any]:
        """Its traits, its true inputs, and its fault."""
        strains = {node: law.strain.kind for node, law in self.mechanisms.items() if law.strain is not None}
        parents = {node: list(inputs) for node, inputs in self.parents.items()}
        return {"traits": list(self.traits), "true inputs": parents, "faults": strains}


def _structure(draw: np.random.Generator) -> tuple[Parents, dict[str, Any]]:
    """The inputs of each node, causes first, and the bounds of the actions."""
    count, width = int(draw.integers(3, 9)), int(draw.integers(2, 6))
    nodes = [*(f"X{index}" for index in range(1, count)), REWARD]
    actions = [f"a{index}" for index in range(1, width + 1)]
    while True:
        parents: dict[str, list[str]] = {node: [] for node in nodes}
        for index, node in enumerate(nodes[:-1]):
            later = nodes[index + 1 :]
            children = {int(draw.integers(min(3, len(later))))}
            if draw.random() < 0.3:
                children.add(int(draw.integers(len(later))))
            for child in children:
                parents[later[child]].append(node)
        for action in actions:
            for index in draw.choice(count, 2 if draw.random() < 0.4 else 1, replace=False):
                parents[nodes[index]].append(action)
        if all(1 <= len(inputs) <= 3 for inputs in parents.values()):
            break
    bounds: dict[str, Any] = {
        action: RANGES[int(draw.integers(len(RANGES)))] if draw.random() < 0.5 else (0.0, 1.0)
        for action in actions
    }
    return {node: tuple(inputs) for node, inputs in parents.items()}, bounds


def _draw_mechanism(inputs: Sequence[str], draw: np.random.Generator) -> DrawnMechanism:
    def factor(name: str) -> tuple[str, str, float, float]:
        return name, str(draw.choice(list(SHAPES))), float(draw.uniform(0.8, 2)), float(draw.uniform(-1, 1))

    def weight() -> float:
        return float(draw.uniform(0.5, 1) * draw.choice([-1, 1]))

    terms = [Term(weight(), (factor(name),)) for name in inputs]
    if len(inputs) > 1 and draw.random() < 0.5:
        pair = draw.choice(len(inputs), 2, replace=False)
        terms.append(Term(weight(), tuple(factor(inputs[index]) for index in pair)))
    level = float(math.exp(draw.uniform(math.log(0.02), math.log(0.2))))
    return DrawnMechanism(tuple(terms), level, float(10 * draw.normal()), float(10 ** draw.uniform(-1, 2)))


def _levels(bounds: Mapping[str, Any], draw: np.random.Generator) -> dict[str, Any]:
    """Levels of one or two actions, at equal distances between their bounds."""
    chosen = draw.choice(list(bounds), int(draw.integers(1, 3)), replace=False)
    return {
        name: {"values": np.linspace(bounds[name][0], bounds[name][1], int(draw.integers(2, 6))).tolist()}
        for name in map(str, chosen)
    }


def _unit(mixture: tuple[tuple[float, ...], ...]) -> MixtureNoise:
    """A mixture of weights, means and standard deviations, with mean 0 and variance 1."""
    weights, means, stds = mixture
    raw = MixtureNoise(weights, means, stds)
    size = raw.variance**0.5
    centred = tuple((mean - raw.mean) / size for mean in means)
    return MixtureNoise(weights, centred, tuple(std / size for std in stds))


def _strain(parents: Parents, draw: np.random.Generator) -> tuple[str, Strain]:
    """A node and its fault."""
    node = str(draw.choice(list(parents)))
    kind: Fault = get_args(Fault)[int(draw.integers(3))]
    size = {"jump": 1.5, "kink": 2.0, "noise": 0.8}[kind] * float(draw.choice([-1, 1]))
    return node, Strain(kind, str(draw.choice(parents[node])), float(draw.uniform(-0.7, 0.7)), size)


def _wrong_arrow(parents: Parents, draw: np.random.Generator) -> Parents:
    """The inputs of each node with one arrow lacking, reversed, or at another node."""
    arrows = [(cause, node) for node, inputs in parents.items() for cause in inputs]
    lacking = [(arrow, None) for arrow in arrows]
    reverse = [((cause, node), (node, cause)) for cause, node in arrows if cause in parents]
    moved = [
        ((cause, node), (cause, target))
        for cause, node in arrows
        for target in parents
        if target not in (cause, node) and cause not in parents[target]
    ]
    kinds: list[list[tuple[Arrow, Arrow | None]]] = [[*lacking], [*reverse], [*moved]]
    order = [(kind, index) for kind in draw.permutation(3) for index in draw.permutation(len(kinds[kind]))]
    for kind, index in order:
        arrow, added = kinds[kind][index]
        changed = {node: [c for c in causes if (c, node) != arrow] for node, causes in parents.items()}
        if added is not None:
            changed[added[1]].append(added[0])
        intact = {cause for inputs in changed.values() for cause in inputs} >= {cause for cause, _ in arrows}
        if intact and all(changed.values()) and _reaches_reward(changed):
            return {name: tuple(inputs) for name, inputs in changed.items()}
    raise AssertionError("an arrow of an action can always be moved")


def _reaches_reward(parents: Mapping[str, Sequence[str]]) -> bool:
    """Whether a graph has no cycle and every variable leads to the reward."""
    try:
        graph = RehearsalGraph.of(parents)
    except ValueError:
        return False
    return set(graph.ancestors([REWARD])) == set(graph.names)
