"""Test functions of optimisation as causal networks, each with a known optimum: Branin, Hartmann, Levy,
Ackley and Rosenbrock.

Branin, two actions and two nodes, x_0 = 15 a_0 - 5 and x_1 = 15 a_1:

    Q = (x_1 - 5.1 x_0^2 / (4 pi^2) + 5 x_0 / pi - 6) / 10 + U_Q,
    Y = -(100 Q^2 + 10 (1 - 1 / (8 pi)) cos x_0 + 10) / 50 + U_Y.

Y depends on a_0 as well. Three places are equally good, and one of them lies near the edge a_0 = 1, which is
.031 worse: less than the noise of a single experiment, so that a search may settle there.

Hartmann, six actions and four nodes that all of them influence:

    X_i = exp(-sum_j A_ij (a_j - P_ij)^2) + U_i,        r = sum_i alpha_i X_i.

Levy, four actions and a chain of four nodes, w_i = 1 + (20 a_i - 11) / 4:

    X_i = X_{i-1} - t_i + U_i,
    t_i = (w_i - 1)^2 (1 + 10 sin^2(pi w_i + 1)), i < 3;  t_3 = (w_3 - 1)^2 (1 + sin^2(2 pi w_3));
    t_0 has the further term sin^2(pi w_0).

Ackley, six actions, two nodes that depend on all of them, and the reward as a function of both, x_i = 4
(a_i - .5):

    X_0 = mean x_i^2 + U_0,    X_1 = mean cos(2 pi x_i) + U_1,
    Y = 20 exp(-.2 sqrt(X_0)) + exp(X_1) - 20 - e + U_2.

A negative X_0 counts as 0 under the root; the released code gives no number there. Y decreases in X_0 and
increases in X_1, and a = .5 has both the smallest mean x^2 and the largest mean cosine: it is the best action
for every noise distribution, exactly.

Rosenbrock, five actions and a chain of four nodes, with a narrow curved ridge, x_i = 4 (a_i - .5):

    X_i = -100 (x_{i+1} - x_i^2)^2 - (1 - x_i)^2 + X_{i-1} + U_i,        i = 0 ... 3,   X_{-1} = 0.

Actions 1, 2, 3 enter two nodes each. The maximum of E[X_3 | a] is sum_i E U_i, at x = 1, a = .75: exact.

The noise is additive, so that E[r | a] is exact. By default it has two well-separated modes.

Source: Surjanovic and Bingham (2013) (Branin, Hartmann, Levy, and their optima; constants as in BoTorch;
their networks are ours); Sussex et al. (2023), released code, and Astudillo and Frazier (2021) (Ackley);
Ren et al. (2025), earlier version, Sec. C.2 (Rosenbrock).
"""

import math
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, ClassVar

import torch
from botorch.test_functions.synthetic import Hartmann as HartmannFunction
from torch import Tensor

from rehearsal_torch.data.causal_task import CausalTask
from rehearsal_torch.data.known_reward import WeightedSum
from rehearsal_torch.graphs.mixed_graph import RehearsalGraph
from rehearsal_torch.problems.causal.noise import (
    RANGES,
    ModalNoise,
    Modes,
    modal_noise,
    noise_scale,
    quantiles,
)
from rehearsal_torch.problems.causal.optimum import best_action
from rehearsal_torch.problems.causal.world import CausalWorld
from rehearsal_torch.problems.world_size import Rounds
from rehearsal_torch.spaces.box import Box

# Two modes, four of their standard deviations apart.
MODES = {
    1: ((0.0,), (1.0,)),
    2: ((-0.1, 0.1), (0.25, 0.25)),
    3: ((-0.2, 0.0, 0.2), (0.25, 0.25, 0.25)),
}


class BenchmarkFunction(CausalWorld):
    """A test function with additive noise at its nodes.

    Args:
        noise: Level and modes of the noise of every node; means that are not given are those of the class.
        scale: lambda, which multiplies the noise.
        size: Number of rounds and of experiments in the start design; by default 100 and twice the number of
            actions, plus two.

    Raises:
        ValueError: for a negative scale.
    """

    # Node to its parents; a unit box of the actions; weights of the reward.
    parents: ClassVar[Mapping[str, Sequence[str]]]
    width: ClassVar[int]
    weights: ClassVar[Mapping[str, float]]
    source: ClassVar[str]
    modes: ClassVar[Modes] = MODES

    def __init__(
        self,
        noise: ModalNoise = ModalNoise(0.1),
        scale: float = 1.0,
        size: Rounds = Rounds(),
        seed: int = 0,
    ) -> None:
        self.scale = noise_scale(scale)
        box = Box.of({f"a{place}": (0.0, 1.0) for place in range(self.width)})
        task = CausalTask(RehearsalGraph.of(self.parents), box, WeightedSum(dict(self.weights)))
        super().__init__(task, dict.fromkeys(self.parents, modal_noise(noise, self.modes)), size, seed)

    def mean_noise(self, node: str) -> float:
        """lambda E[U] of a node."""
        return self.scale * self.noise[node].mean

    def card(self) -> Mapping[str, Any]:
        """The card of `CausalWorld`, and the source."""
        return {**super().card(), "source": self.source}


class Branin(BenchmarkFunction):
    """Branin's function as a network of two nodes."""

    parents: ClassVar[Mapping[str, Sequence[str]]] = {"Q": ("a0", "a1"), "Y": ("a0", "Q")}
    width: ClassVar[int] = 2
    weights: ClassVar[Mapping[str, float]] = {"Y": 1.0}
    source: ClassVar[str] = "Surjanovic and Bingham (2013), Branin"

    def equation(self, node: str, inputs: Mapping[str, Tensor], noise: Tensor) -> Tensor:
        """The parabola in both actions, or the negative function of its value."""
        if node == "Q":
            return self._parabola(inputs["a0"], inputs["a1"]) + self.scale * noise
        return self._value(inputs["a0"], inputs["Q"].square()) + self.scale * noise

    def expected(self, actions: Tensor) -> Tensor:
        """E[Y | a], exact: the square of Q has the mean (q + E U)^2 + Var U."""
        middle = self._parabola(*actions.double().unbind(-1)) + self.mean_noise("Q")
        squares = middle.square() + self.scale**2 * self.noise["Q"].variance
        return self._value(actions[..., 0].double(), squares) + self.mean_noise("Y")

    @staticmethod
    def _parabola(first: Tensor, second: Tensor) -> Tensor:
        x = 15 * first - 5
        return (15 * second - 5.1 / (4 * math.pi**2) * x.square() + 5 / math.pi * x - 6) / 10

    @staticmethod
    def _value(first: Tensor, squares: Tensor) -> Tensor:
        return -(100 * squares + 10 * (1 - 1 / (8 * math.pi)) * torch.cos(15 * first - 5) + 10) / 50

    @cached_property
    def _best(self) -> tuple[Tensor, float]:
        # Where the three minima of Branin's function are if the noise of Q has the mean zero.
        known = torch.tensor([[-math.pi, 12.275], [math.pi, 2.275], [9.42478, 2.475]], dtype=torch.float64)
        return best_action(self.expected, self.task.box, (known + torch.tensor([5.0, 0.0])) / 15)

    @property
    def optimal_value(self) -> float:
        """The best value that an ascent from the known optima and from 2,048 points finds; for noise with
        mean zero -(.397887 + 100 lambda^2 Var U) / 50.
        """
        return self._best[1]

    @property
    def optimal_action(self) -> Tensor:
        """One of the best actions."""
        return self._best[0]


class Hartmann(BenchmarkFunction):
    """Hartmann's function of six variables as four nodes that all actions influence."""

    parents: ClassVar[Mapping[str, Sequence[str]]] = {
        f"X{node}": tuple(f"a{place}" for place in range(6)) for node in range(4)
    }
    width: ClassVar[int] = 6
    weights: ClassVar[Mapping[str, float]] = {"X0": 1.0, "X1": 1.2, "X2": 3.0, "X3": 3.2}
    source: ClassVar[str] = "Surjanovic and Bingham (2013), Hartmann 6-D"

    def equation(self, node: str, inputs: Mapping[str, Tensor], noise: Tensor) -> Tensor:
        """One of the four bumps."""
        actions = torch.stack([inputs[name].double() for name in self.parents[node]], -1)
        return self._bumps(actions)[..., int(node[1:])] + self.scale * noise

    def expected(self, actions: Tensor) -> Tensor:
        """E[r | a], exact."""
        weights = torch.tensor(list(self.weights.values()), dtype=torch.float64)
        means = torch.tensor([self.mean_noise(node) for node in self.parents], dtype=torch.float64)
        return (self._bumps(actions.double()) + means) @ weights

    @cached_property
    def _function(self) -> HartmannFunction:
        return HartmannFunction(6, dtype=torch.float64)

    def _bumps(self, actions: Tensor) -> Tensor:
        function = self._function
        assert isinstance(function.P, Tensor)
        assert isinstance(function.A, Tensor)
        apart = (actions.unsqueeze(-2) - 1e-4 * function.P).square()
        return (-(function.A * apart).sum(-1)).exp()

    @cached_property
    def _best(self) -> tuple[Tensor, float]:
        known = self._function.optimizers.to(torch.float64)
        return best_action(self.expected, self.task.box, known)

    @property
    def optimal_value(self) -> float:
        """3.32237, and the mean of the noise: an ascent from the known optimum and from 2,048 points."""
        return self._best[1]

    @property
    def optimal_action(self) -> Tensor:
        """The maximiser."""
        return self._best[0]


class Levy(BenchmarkFunction):
    """Levy's function of four variables as a chain."""

    parents: ClassVar[Mapping[str, Sequence[str]]] = {
        "X0": ("a0",), "X1": ("a1", "X0"), "X2": ("a2", "X1"), "X3": ("a3", "X2"),
    }  # fmt: skip
    width: ClassVar[int] = 4
    weights: ClassVar[Mapping[str, float]] = {"X3": 1.0}
    source: ClassVar[str] = "Surjanovic and Bingham (2013), Levy"

    def equation(self, node: str, inputs: Mapping[str, Tensor], noise: Tensor) -> Tensor:
        """One term, taken from the node before."""
        place = int(node[1:])
        before = inputs[f"X{place - 1}"] if place else 0.0
        return before - self._term(place, inputs[f"a{place}"]) + self.scale * noise

    def expected(self, actions: Tensor) -> Tensor:
        """E[X_3 | a], exact."""
        terms = [self._term(place, each) for place, each in enumerate(actions.double().unbind(-1))]
        return self.optimal_value - torch.stack(terms).sum(0)

    @staticmethod
    def _term(place: int, action: Tensor) -> Tensor:
        w = 1 + (20 * action - 11) / 4
        if place == 3:
            return (w - 1).square() * (1 + torch.sin(2 * math.pi * w).square())
        term = (w - 1).square() * (1 + 10 * torch.sin(math.pi * w + 1).square())
        return term if place else term + torch.sin(math.pi * w).square()

    @property
    def optimal_value(self) -> float:
        """lambda sum_i E U_i, exact: no term is negative."""
        return sum(self.mean_noise(node) for node in self.parents)

    @property
    def optimal_action(self) -> Tensor:
        """a = .55 (x = 1), where all terms are zero."""
        return torch.full((4,), 0.55, dtype=torch.float64)


LEVELS = 4096


def bowl(actions: Tensor) -> Tensor:
    """mean x^2, (..., 6) -> (...)."""
    return ((4 * (actions - 0.5)) ** 2).mean(-1)


def ripples(actions: Tensor) -> Tensor:
    """Mean cos(2 pi x), (..., 6) -> (...)."""
    return torch.cos(8 * math.pi * (actions - 0.5)).mean(-1)


def height(squares: Tensor) -> Tensor:
    """20 exp(-.2 sqrt(x)), any shape; 20 where x < 0."""
    inside = squares.clamp_min(0)
    return 20 * torch.exp(-0.2 * inside.clamp_min(torch.finfo(inside.dtype).tiny).sqrt())


class Ackley(BenchmarkFunction):
    """Ackley's function of two nodes that all six actions influence."""

    parents: ClassVar[Mapping[str, Sequence[str]]] = {
        **{node: tuple(f"a{place}" for place in range(6)) for node in ("X0", "X1")},
        "Y": ("X0", "X1"),
    }
    width: ClassVar[int] = 6
    weights: ClassVar[Mapping[str, float]] = {"Y": 1.0}
    source: ClassVar[str] = "Sussex et al. (2023), released code"
    modes: ClassVar[Modes] = RANGES

    def equation(self, node: str, inputs: Mapping[str, Tensor], noise: Tensor) -> Tensor:
        """Mean square, mean cosine, or the reward that combines them."""
        if node == "Y":
            return height(inputs["X0"]) + torch.exp(inputs["X1"]) - 20 - math.e + self.scale * noise
        actions = torch.stack([inputs[name] for name in self.parents[node]], -1)
        return (bowl(actions) if node == "X0" else ripples(actions)) + self.scale * noise

    def expected(self, actions: Tensor) -> Tensor:
        """E[Y | a]: the mean of the root term over 4096 equally likely values of U_0, that of the exponential
        in closed form.
        """
        actions = actions.double()
        distribution = self.noise["X1"]
        rise = sum(
            w * math.exp(self.scale * m + (self.scale * d) ** 2 / 2)
            for w, m, d in zip(distribution.weights, distribution.means, distribution.stds, strict=True)
        )
        flat = bowl(actions).reshape(-1, 1)
        mean = torch.cat(
            [height(part + self.scale * self._likely).mean(-1) for part in flat.split(1000)]
        ).reshape(actions.shape[:-1])
        return mean + rise * torch.exp(ripples(actions)) - 20 - math.e + self.scale * self.noise["Y"].mean

    @cached_property
    def _likely(self) -> Tensor:
        return quantiles(self.noise["X0"], (torch.arange(LEVELS, dtype=torch.float64) + 0.5) / LEVELS)

    @property
    def optimal_value(self) -> float:
        """E[Y | a = .5]; 0 without noise."""
        return float(self.expected(self.optimal_action))

    @property
    def optimal_action(self) -> Tensor:
        """a = .5, the unique maximiser."""
        return torch.full((self.width,), 0.5, dtype=torch.float64)


def valley(first: Tensor, second: Tensor) -> Tensor:
    """-100 (x' - x^2)^2 - (1 - x)^2 of actions a, a', any shape."""
    here, there = 4 * (first - 0.5), 4 * (second - 0.5)
    return -100 * (there - here**2) ** 2 - (1 - here) ** 2


class Rosenbrock(BenchmarkFunction):
    """Rosenbrock's function as a chain of four nodes."""

    parents: ClassVar[Mapping[str, Sequence[str]]] = {
        f"X{node}": (f"a{node}", f"a{node + 1}") + ((f"X{node - 1}",) if node else ()) for node in range(4)
    }
    width: ClassVar[int] = 5
    weights: ClassVar[Mapping[str, float]] = {"X3": 1.0}
    source: ClassVar[str] = "Ren et al. (2025), earlier version, Sec. C.2"
    modes: ClassVar[Modes] = RANGES

    def equation(self, node: str, inputs: Mapping[str, Tensor], noise: Tensor) -> Tensor:
        """One Rosenbrock term, added to the node before."""
        place = int(node[1:])
        here = valley(inputs[f"a{place}"], inputs[f"a{place + 1}"]) + self.scale * noise
        return here + inputs[f"X{place - 1}"] if place else here

    def expected(self, actions: Tensor) -> Tensor:
        """E[X_3 | a], exact."""
        return valley(actions[..., :-1].double(), actions[..., 1:].double()).sum(-1) + self.optimal_value

    @property
    def optimal_value(self) -> float:
        """lambda sum_i E U_i, exact."""
        return self.scale * sum(self.noise[node].mean for node in self.parents)

    @property
    def optimal_action(self) -> Tensor:
        """a = .75, the unique maximiser."""
        return torch.full((self.width,), 0.75, dtype=torch.float64)
