"""Test functions of optimisation as causal networks: Branin, Hartmann and Levy, each with a known optimum.

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

The noise is additive, so that E[r | a] is exact. By default it has two well-separated modes.

Source: Surjanovic and Bingham (2013) (the functions and their optima; constants as in BoTorch); the networks
are ours.
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
from rehearsal_torch.problems.causal.noise import ModalNoise, modal_noise, noise_scale
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
        noise: Level and modes of the noise of every node; two modes are at -.1 and .1 unless means are given.
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
    where: ClassVar[str]

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
        super().__init__(task, dict.fromkeys(self.parents, modal_noise(noise, MODES)), size, seed)

    def mean_noise(self, node: str) -> float:
        """lambda E[U] of a node."""
        return self.scale * self.noise[node].mean

    def card(self) -> Mapping[str, Any]:
        """The card of `CausalWorld`, and the source."""
        return {**super().card(), "source": f"Surjanovic and Bingham (2013), {self.where}"}


class Branin(BenchmarkFunction):
    """Branin's function as a network of two nodes."""

    parents: ClassVar[Mapping[str, Sequence[str]]] = {"Q": ("a0", "a1"), "Y": ("a0", "Q")}
    width: ClassVar[int] = 2
    weights: ClassVar[Mapping[str, float]] = {"Y": 1.0}
    where: ClassVar[str] = "Branin"

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
    where: ClassVar[str] = "Hartmann 6-D"

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
    where: ClassVar[str] = "Levy"

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
