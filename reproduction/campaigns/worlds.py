"""Systems of experiments whose optimum is known; each seed draws another one, of the first three other noise.

    toy_graph, complete_graph, psa    sets of nodes (`problems.trials.settable_worlds`); noise as of the mean
                of a hundred units, and 30 rows in which nothing is set
    contexts    X = a + c / 2 + .1 U,   Y = h cos 3 (X - p) - (b - q - c)^2 + .1 V,   c uniform in [-1, 1] and
                seen before acting: best at a = p - c / 2, within [0, 1], and b = q + c
    limited     a reactor: heat and flow set a temperature, which with the flow makes yield and impurity,
                    T = s heat - c flow + U,   impurity = sigmoid(r (T - k)) + d (flow - 1/2) + U',
                    yield = exp(-((T - p) / w)^2 / 2) (1 - b (flow - .6)^2) + U'',
                whose impurity nine of ten experiments are to keep below a limit that the largest expected
                yield breaks, and some half of all settings keep
    knobs       a dose on a log scale, a valve, a number of stages and one of four solvents:
                    x = h[solvent] exp(-((log10 dose - p[solvent]) / .7)^2 / 2) + .05 U,
                    y = x + o[solvent] - (valve - v - s (stages - 3))^2 - .03 (stages - n)^2 + .05 V
    whole, gaps    networks by seed without strain (`problems.trials.random_network`); in ``gaps`` 30 % of the
                cells between actions and reward are missing, at random
    front       two rewards, of heat h, time t and feed f:
                    x = c1 h + c2 sqrt(t + .02) (1 - .4 h) + .05 U,
                    yield = sin 2.2 c3 x + x / 2 - c4 (f - o1)^2 + .05 V,
                    waste = c5 x^2 / 2 + .8 (h - o2)^2 + .05 W

Regret is the distance of the recommended setting's expected reward to the optimum, as a share of the range of
expected rewards: in ``contexts`` the mean over nine of them, in ``limited`` below the best setting that is
allowed, in ``front`` one less the share of the hypervolume that the recommended settings reach. Optima are in
closed form, enumerated over a grid, or found by ascent; expected rewards are exact or means over fixed draws.
"""

import itertools
import math
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, cast

import numpy as np
import torch
from botorch.utils.multi_objective.hypervolume import Hypervolume
from botorch.utils.multi_objective.pareto import is_non_dominated
from torch import Tensor

from rehearsal_torch.api.optimiser import CausalOptimiser
from rehearsal_torch.data.trials.trial import Recommended
from rehearsal_torch.problems.trials.mixture_noise import STANDARD, sobol_draws
from rehearsal_torch.problems.trials.random_network import REWARD, DrawnNetwork
from rehearsal_torch.problems.trials.settable_worlds import PSA, CompleteGraph, SettableWorld, ToyGraph
from rehearsal_torch.problems.world_size import Rounds

Values = Mapping[str, Any]
# Seeds of the noise of experiments, and of contexts and gaps.
NOISE, GIVEN = 8, 9


class System:
    """A system of a seed.

    Attributes:
        task: The task of an optimiser.
        initial: Size of its start design; None for the default.
        optimum: The largest E[r] that is allowed; of systems with one best setting.
        reach: The range of E[r].
    """

    task: Any
    initial: int | None = None
    optimum: float
    reach: float

    def __init__(self, seed: int) -> None:
        self.stream, self.others = (np.random.default_rng([seed, part]) for part in (NOISE, GIVEN))

    def begin(self, optimiser: CausalOptimiser) -> None:
        """Tells what was seen before the first experiment."""

    def context(self) -> Values | None:
        """That of the next experiment; None for none."""
        return None

    def run(self, settings: Values) -> dict[str, float | None]:
        """The nodes that an experiment measures."""
        raise NotImplementedError

    def expected(self, settings: Values) -> float:
        """E[r] at settings."""
        raise NotImplementedError

    def allowed(self, settings: Values) -> bool:  # noqa: ARG002
        """Whether settings keep all constraints in truth."""
        return True

    def regret(self, settings: Values) -> float:
        """How far E[r] at settings lies below the optimum, as a share of its range."""
        return (self.optimum - self.expected(settings)) / self.reach

    def scored(self, optimiser: CausalOptimiser) -> dict[str, float]:
        """``regret`` of what is recommended, ``claims`` that it makes, how many of them ``held``, and whether
        it is ``allowed``.
        """
        best = optimiser.recommend()
        held = best.low <= self.expected(best.action) <= best.high
        return {
            "regret": self.regret(best.action),
            "claims": 1,
            "held": held,
            "allowed": self.allowed(best.action),
        }


class Networked(System):
    """A system that is a world of this package."""

    def __init__(self, world: SettableWorld | DrawnNetwork, lowest: float, seed: int) -> None:
        super().__init__(seed)
        self.world, self.task = world, world.task
        self.optimum, self.reach = world.optimal_value, world.optimal_value - lowest

    def _setting(self, settings: Values) -> Tensor:
        row = [settings.get(name, math.nan) for name in self.world.task.actions]
        return torch.tensor(row, dtype=torch.float64)

    def run(self, settings: Values) -> dict[str, float | None]:
        """An experiment."""
        noise = self.world.noise_rows(1, self.stream)
        nodes = self.world.simulate(self._setting(settings)[None], noise)[0]
        return dict(zip(self.world.task.nodes, nodes.tolist(), strict=True))

    def expected(self, settings: Values) -> float:
        """E[r] at settings."""
        return float(self.world.expected(self._setting(settings)))


class Sets(Networked):
    """A system in which a chosen set of nodes is set."""

    SCALE, ROWS = 0.1, 30

    def __init__(self, make: Callable[..., SettableWorld], seed: int) -> None:
        world = make(scale=self.SCALE, size=Rounds(initial=self.ROWS), seed=seed)
        values = []
        for levels in world.task.sets({}):
            spread = world.task.box.sobol(512, seed=0)
            spread[:, [world.task.actions.index(name) for name in levels]] = torch.nan
            values.append(world.expected(spread))
        super().__init__(world, float(torch.cat(values).min()), seed)

    def begin(self, optimiser: CausalOptimiser) -> None:
        """Tells the rows in which nothing is set."""
        optimiser.read(self.world.observations().to_frame())


class Network(Networked):
    """A network by seed, without strain; a share of the cells of its intermediate nodes is missing."""

    def __init__(self, seed: int, gaps: float = 0.0) -> None:
        world = DrawnNetwork((), seed=seed)
        super().__init__(world, world.optimal_value - world.reach, seed)
        self.initial, self.gaps = world.initial, gaps

    def run(self, settings: Values) -> dict[str, float | None]:
        """An experiment."""
        nodes = super().run(settings)
        missing = self.others.random(len(nodes)) < self.gaps
        cells = zip(nodes.items(), missing, strict=True)
        return {name: None if gone and name != REWARD else value for (name, value), gone in cells}


class Contexts(System):
    """A system whose best setting depends on a context, in closed form."""

    CONTEXTS = torch.linspace(-1, 1, 9).tolist()

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        draw = np.random.default_rng(seed)
        self.peak, self.centre, self.height = draw.uniform((0.5, 0.8, 0.8), (0.9, 1.2, 1.2))
        self.task = {
            "graph": {"parents": {"X": ["a", "c"], "Y": ["X", "b", "c"]}},
            "actions": {"a": [0, 1], "b": [0, 2.2]},
            "reward": "Y",
            "context": ["c"],
        }
        self.best = dict[float, float]()
        for c in self.CONTEXTS:
            best = {"a": min(max(self.peak - c / 2, 0), 1), "b": self.centre + c, "c": c}
            self.best[c] = self.expected(best)
        grid = itertools.product(np.linspace(0, 1, 11), (0, 2.2), self.CONTEXTS)
        worst = min(self.expected({"a": a, "b": b, "c": c}) for a, b, c in grid)
        self.reach = max(self.best.values()) - worst

    def context(self) -> Values:
        """Drawn."""
        return {"c": self.others.uniform(-1, 1)}

    def run(self, settings: Values) -> dict[str, float | None]:
        """An experiment."""
        a, b, c = (settings[name] for name in "abc")
        x = a + c / 2 + 0.1 * self.stream.normal()
        mean = self.height * math.cos(3 * (x - self.peak)) - (b - self.centre - c) ** 2
        return {"c": c, "X": x, "Y": mean + 0.1 * self.stream.normal()}

    def expected(self, settings: Values) -> float:
        """E[r] at settings."""
        a, b, c = (settings[name] for name in "abc")
        mean = self.height * math.exp(-0.045) * math.cos(3 * (a + c / 2 - self.peak))
        return mean - (b - self.centre - c) ** 2

    def scored(self, optimiser: CausalOptimiser) -> dict[str, float]:
        """As of any system."""
        found = optimiser.recommend(context=[{"c": c} for c in self.CONTEXTS])
        true = [self.expected({**each.action, "c": c}) for each, c in zip(found, self.CONTEXTS, strict=True)]
        regrets = [(self.best[c] - value) / self.reach for c, value in zip(self.CONTEXTS, true, strict=True)]
        held = [each.low <= value <= each.high for each, value in zip(found, true, strict=True)]
        return {"regret": float(np.mean(regrets)), "claims": len(true), "held": int(sum(held))}


class Reactor(System):
    """A reactor; means are over 1,024 Sobol draws, the optimum is that of a grid of 81 x 81 settings."""

    initial, SHARE, SIDE = 8, 0.9, 81

    def __init__(self, seed: int) -> None:
        draw = np.random.default_rng([seed, 7])
        self.slope, self.cool = draw.uniform(1.5, 2.5), draw.uniform(0.3, 0.8)
        self.peak, self.width = draw.uniform(1.0, 1.5), draw.uniform(0.6, 1.0)
        self.bend = draw.uniform(0.3, 0.8)
        self.knee, self.steep = draw.uniform(0.7, 1.3), draw.uniform(1.5, 4.0)
        self.drift, self.noise = draw.uniform(-0.2, 0.2), draw.uniform(0.03, 0.12, 3)
        super().__init__(seed)
        ends = torch.linspace(0, 1, self.SIDE, dtype=torch.float64)
        self.draws, grid = sobol_draws([STANDARD] * 3, 10), torch.cartesian_prod(ends, ends)
        _, impurity, reward = self.nodes(grid.unsqueeze(1), self.draws).unbind(-1)
        means, bounds = reward.mean(-1), impurity.quantile(self.SHARE, -1)
        between = 0.6 * bounds[means.argmax()] + 0.4 * bounds.min()
        self.limit = round(float(torch.minimum(bounds.quantile(0.5), between)), 3)
        feasible = (impurity <= self.limit).double().mean(-1) >= self.SHARE
        self.optimum, self.reach = float(means[feasible].max()), float(means.max() - means.min())
        self.task = {
            "graph": ["heat -> temperature", "{temperature flow} -> {impurity yield}", "flow -> temperature"],
            "actions": {"heat": [0, 1], "flow": [0, 1]},
            "reward": "yield",
            "constraints": f"impurity <= {self.limit} with {100 * self.SHARE:g} %",
        }

    def nodes(self, actions: Tensor, noise: Tensor) -> Tensor:
        """Temperature, impurity and yield of actions (..., 2) under standard noise (..., 3)."""
        heat, flow = actions.unbind(-1)
        own = torch.from_numpy(self.noise) * noise
        temperature = self.slope * heat - self.cool * flow + own[..., 0]
        impurity = torch.sigmoid(self.steep * (temperature - self.knee)) + self.drift * (flow - 0.5)
        near = torch.exp(-(((temperature - self.peak) / self.width) ** 2) / 2)
        reward = near * (1 - self.bend * (flow - 0.6) ** 2)
        return torch.stack([temperature, impurity + own[..., 1], reward + own[..., 2]], -1)

    def run(self, settings: Values) -> dict[str, float | None]:
        """An experiment."""
        noise = torch.from_numpy(self.stream.standard_normal(3))
        values = self.nodes(self._setting(settings), noise)
        return dict(zip(("temperature", "impurity", "yield"), values.tolist(), strict=True))

    def expected(self, settings: Values) -> float:
        """E[r] at settings."""
        return float(self.nodes(self._setting(settings), self.draws)[..., 2].mean())

    def allowed(self, settings: Values) -> bool:
        """Whether experiments keep the limit with the share that is asked for."""
        impurity = self.nodes(self._setting(settings), self.draws)[..., 1]
        return bool((impurity <= self.limit).double().mean() >= self.SHARE)

    def _setting(self, settings: Values) -> Tensor:
        return torch.tensor([settings["heat"], settings["flow"]], dtype=torch.float64)


class Knobs(System):
    """A dose on a log scale, a valve, a number of stages and a solvent, with an enumerated optimum."""

    SOLVENTS = ("water", "ethanol", "toluene", "hexane")

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        draw = np.random.default_rng(seed)
        self.peak = dict(zip(self.SOLVENTS, draw.uniform(-2.5, 0.5, 4), strict=True))
        self.height = dict(zip(self.SOLVENTS, draw.permutation([1.0, 0.8, 0.6, 0.3]), strict=True))
        self.offset = dict(zip(self.SOLVENTS, draw.normal(0, 0.15, 4), strict=True))
        self.valve, self.slope = draw.uniform(0.2, 0.6), draw.uniform(-0.1, 0.1)
        self.stages = int(draw.integers(1, 6))
        self.task = {
            "graph": "{dose solvent} -> x; {x valve stages solvent} -> y",
            "actions": {
                "dose": {"range": [0.001, 10], "scale": "log"},
                "valve": [0, 1],
                "stages": {"range": [1, 5], "kind": "integer"},
                "solvent": {"kind": "categorical", "levels": list(self.SOLVENTS)},
            },
            "reward": "y",
        }
        dose, valve = np.geomspace(0.001, 10, 201)[:, None], np.linspace(0, 1, 101)
        grids = [
            sum(self._parts(dose, valve, stages, solvent))
            for stages in range(1, 6)
            for solvent in self.SOLVENTS
        ]
        self.optimum = float(np.max(grids))
        self.reach = self.optimum - float(np.min(grids))

    def _parts(self, dose: Any, valve: Any, stages: Any, solvent: str) -> tuple[Any, Any]:
        """The mean of x, and what y has besides."""
        x = self.height[solvent] * np.exp(-(((np.log10(dose) - self.peak[solvent]) / 0.7) ** 2) / 2)
        best = self.valve + self.slope * (stages - 3)
        return x, self.offset[solvent] - (valve - best) ** 2 - 0.03 * (stages - self.stages) ** 2

    def run(self, settings: Values) -> dict[str, float | None]:
        """An experiment."""
        x, rest = self._parts(**settings)
        x = x + 0.05 * self.stream.normal()
        return {"x": float(x), "y": float(x + rest + 0.05 * self.stream.normal())}

    def expected(self, settings: Values) -> float:
        """E[r] at settings."""
        return float(sum(self._parts(**settings)))


class Front(System):
    """Two rewards; the front is that of a grid of 31 x 31 x 31 settings, means over 64 draws."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        draw = np.random.default_rng(seed)
        self.c, self.o = draw.uniform(0.6, 1.4, 5), draw.uniform(0.3, 0.7, 2)
        self.task = {
            "graph": "{heat time} -> conversion; {conversion feed} -> yield; {conversion heat} -> waste",
            "actions": {"heat": [0, 1], "time": [0, 1], "feed": [0, 1]},
            "reward": ["yield", "-waste"],
        }
        self.draws = sobol_draws([STANDARD] * 3, 6)
        ends = torch.linspace(0, 1, 31, dtype=torch.float64)
        means = self._means(torch.cartesian_prod(ends, ends, ends))
        front = means[is_non_dominated(means)]
        self.reference = front.amin(0) - 0.1 * (front.amax(0) - front.amin(0))
        self.volume = Hypervolume(self.reference).compute(front)

    def _nodes(self, actions: Tensor, noise: Tensor) -> Tensor:
        """Conversion, yield and waste of actions (..., 3) under standard noise (..., 3)."""
        (heat, time, feed), (u, v, w), c = actions.unbind(-1), (0.05 * noise).unbind(-1), self.c
        conversion = c[0] * heat + c[1] * (time + 0.02).sqrt() * (1 - 0.4 * heat) + u
        gain = (2.2 * c[2] * conversion).sin() + conversion / 2 - c[3] * (feed - self.o[0]) ** 2 + v
        waste = c[4] * conversion**2 / 2 + 0.8 * (heat - self.o[1]) ** 2 + w
        return torch.stack([conversion, gain, waste], -1)

    def _means(self, actions: Tensor) -> Tensor:
        """Expected rewards, (..., 2), of actions (..., 3)."""
        _, gain, waste = self._nodes(actions.unsqueeze(-2), self.draws).mean(-2).unbind(-1)
        return torch.stack([gain, -waste], -1)

    def run(self, settings: Values) -> dict[str, float | None]:
        """An experiment."""
        noise = torch.from_numpy(self.stream.standard_normal(3))
        nodes = self._nodes(torch.tensor(list(settings.values()), dtype=torch.float64), noise)
        return dict(zip(("conversion", "yield", "waste"), nodes.tolist(), strict=True))

    def scored(self, optimiser: CausalOptimiser) -> dict[str, float]:
        """As of any system."""
        found = cast("list[Recommended]", optimiser.recommend())
        rows = [list(each.action.values()) for each in found]
        means = self._means(torch.tensor(rows, dtype=torch.float64))
        share = Hypervolume(self.reference).compute(means[is_non_dominated(means)]) / self.volume
        ends = torch.tensor([[*each.rewards.values()] for each in found], dtype=torch.float64)
        held = (ends[..., 1] <= means) & (means <= ends[..., 2])
        return {"regret": 1 - share, "claims": held.numel(), "held": int(held.sum())}


SYSTEMS: Mapping[str, Callable[[int], System]] = {
    "toy_graph": partial(Sets, ToyGraph),
    "complete_graph": partial(Sets, CompleteGraph),
    "psa": partial(Sets, PSA),
    "contexts": Contexts,
    "limited": Reactor,
    "knobs": Knobs,
    "whole": Network,
    "gaps": partial(Network, gaps=0.3),
    "front": Front,
}
