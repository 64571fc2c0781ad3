"""Test functions of optimisation as causal networks, each with a known optimum: Ackley, Rosenbrock, Dropwave
and Alpine2.

Ackley: six actions, two nodes of all of them, and the reward of both nodes, with x_i = 4 (a_i - .5),

    X_0 = mean x_i^2 + U_0,    X_1 = mean cos(2 pi x_i) + U_1,
    Y = 20 exp(-.2 sqrt(X_0)) + exp(X_1) - 20 - e + U_2.

A negative X_0 counts as 0 under the root; the released code gives no number there. Y decreases in X_0 and
increases in X_1, and a = .5 has both the smallest mean x^2 and the largest mean cosine: it is the best action
for every noise distribution, exactly.

Rosenbrock, five actions and a chain of four nodes, with a narrow curved ridge, x_i = 4 (a_i - .5):

    X_i = -100 (x_{i+1} - x_i^2)^2 - (1 - x_i)^2 + X_{i-1} + U_i,        i = 0 ... 3,   X_{-1} = 0.

Actions 1, 2, 3 enter two nodes each. The maximum of E[X_3 | a] is sum_i E U_i, at x = 1, a = .75: exact. Of
these two the noise is additive, so that E[r | a] is exact. By default it has two well-separated modes.

Dropwave: two actions and two nodes; the reward Y forms rings around a centre.

    r = |(10.24 a_0 - 5.12, 10.24 a_1 - 5.12)|,    X = r + lambda U_X,
    Y = (1 + cos 12 X) / (2 + X^2 / 2) + lambda U_Y.

E[Y | a] depends on r alone: an integral over U_X. With the paper's two modes and lambda = 1,
sigma = .1, the best action is not the centre but a ring around it, at r = .156, where one of the two noise
modes moves X towards the centre. In the released code of Sussex et al. (2023) Y follows from r instead of the
noisy X (`propagate_noise: false`): X is then r measured with an error, and the maximum is 1 + lambda E[U_Y],
at the centre. The maximum is certified on a grid of r with step h: the wave's second derivative is at most 80
in absolute value, and so is that of its mean; hence no r is better than the best grid point by more than
80 (h / 2)^2 / 2 = 1e-5.

Alpine2: six actions and a chain of six nodes, whose values multiply. With s(x) = sqrt(x) sin x, x_i = 10 a_i,

    anm      X_0 = -s(x_0) + lambda U_0               X_i = s(x_i) X_{i-1} + lambda U_i
    non_dgm  X_0 = -s(x_0 + lambda U_0)               X_i = s(x_i + lambda U_i) X_{i-1}
    dgm      X_0 = -s(x_0) + (cos x_0 + 1.2) lambda U_0^4
             X_i = s(x_i) X_{i-1} + .1 (cos x_i + X_{i-1}^2 + 1.2) lambda U_i^4,        i = 1 ... 5,

and the reward is X_5. A negative argument of s counts as 0; the paper does not say. `dgm_bounded` has X^2 /
(1 + X^2 / 100) in place of X^2: repeated squaring has moments that explode with lambda and sigma, so that no
number of draws estimates the mean.

For the first two mechanisms E[X_5 | a] is exact, and multilinear in the means E s(x_i + ...): the best action
is one of 2^6 corners, each a_i either at the largest or at the smallest mean. For the other two it is
*defined* as the mean over 65,536 Sobol draws of the first five noises; X_5 is linear in U_5^4, whose mean
stands for it. For `dgm` a recursion of moments gives the exact mean as well: the two agree to .1 % at lambda
= .3, sigma = .2; but at lambda = .3, sigma = .4 the exact mean is 10^38 at actions whose reward has a median
of 4, dominated by draws too rare ever to be observed.

Source: Sussex et al. (2023), released code, and Astudillo and Frazier (2021) (Ackley); Ren et al. (2025),
earlier version, Sec. C.2 (Rosenbrock), Sec. 7.2, 11.2 and 11.10 (Table 2), Eq. 6 (Dropwave; three modes are
ours), Eq. 7, Eq. 8, Sec. 11.3, 11.4 and 11.10 (Table 3) (Alpine2; the bounded variant is ours).
"""

import math
from collections.abc import Mapping
from functools import cached_property
from itertools import product
from typing import Any, Literal, get_args

import torch
from scipy.optimize import minimize_scalar
from torch import Tensor

from rehearsal_torch.data.causal_task import CausalTask
from rehearsal_torch.data.known_reward import WeightedSum
from rehearsal_torch.graphs.mixed_graph import RehearsalGraph
from rehearsal_torch.problems.trials.causal_world import (
    AdditiveWorld,
    CausalWorld,
    NetworkTable,
    Node,
    in_parts,
)
from rehearsal_torch.problems.trials.global_maximum import best_action
from rehearsal_torch.problems.trials.mixture_noise import RANGES, ModalNoise, quantiles, sobol_draws
from rehearsal_torch.problems.world_size import Rounds, setting
from rehearsal_torch.spaces.box import Box

SIX = tuple(f"a{place}" for place in range(6))

LEVELS = 4096


def bowl(*actions: Tensor) -> Tensor:
    """f of X_0 in Ackley's network: mean x^2 of six actions, any shape."""
    return ((4 * (torch.stack(actions, -1) - 0.5)) ** 2).mean(-1)


def ripples(*actions: Tensor) -> Tensor:
    """f of X_1 in Ackley's network: mean cos(2 pi x) of six actions, any shape."""
    return torch.cos(8 * math.pi * (torch.stack(actions, -1) - 0.5)).mean(-1)


def height(squares: Tensor) -> Tensor:
    """20 exp(-.2 sqrt(x)), any shape; 20 where x < 0."""
    inside = squares.clamp_min(0)
    return 20 * torch.exp(-0.2 * inside.clamp_min(torch.finfo(inside.dtype).tiny).sqrt())


class Ackley(AdditiveWorld):
    """Ackley's function; the optimum is E[Y | a = .5], the unique maximum; 0 without noise."""

    table = NetworkTable(
        equations={
            "X0": Node(SIX, bowl),
            "X1": Node(SIX, ripples),
            "Y": Node(("X0", "X1"), lambda squares, wave: height(squares) + torch.exp(wave) - 20 - math.e),
        },
        width=6,
        reward={"Y": 1.0},
        source="Sussex et al. (2023), released code",
    )

    def expected(self, actions: Tensor) -> Tensor:
        """The mean of the root over 4096 equally likely U_0; that of the exponential in closed form."""
        distribution = self.noise["X1"]
        rise = sum(
            w * math.exp(self.scale * m + (self.scale * d) ** 2 / 2)
            for w, m, d in zip(distribution.weights, distribution.means, distribution.stds, strict=True)
        )

        def mean(part: Tensor) -> Tensor:
            root = height(bowl(*part.unbind(-1)).unsqueeze(-1) + self.scale * self._quantile_grid).mean(-1)
            return root + rise * torch.exp(ripples(*part.unbind(-1))) - 20 - math.e + self.mean_noise("Y")

        return in_parts(mean, actions, 1000)

    @cached_property
    def _quantile_grid(self) -> Tensor:
        return quantiles(self.noise["X0"], (torch.arange(LEVELS, dtype=torch.float64) + 0.5) / LEVELS)

    def best(self) -> tuple[Tensor, float]:
        """Known in closed form."""
        action = torch.full((6,), 0.5, dtype=torch.float64)
        return action, float(self.expected(action))


def valley(first: Tensor, second: Tensor) -> Tensor:
    """-100 (x' - x^2)^2 - (1 - x)^2 of actions a, a', any shape."""
    x, x_next = 4 * (first - 0.5), 4 * (second - 0.5)
    return -100 * (x_next - x**2) ** 2 - (1 - x) ** 2


def on_the_ridge(first: Tensor, second: Tensor, before: Tensor) -> Tensor:
    """f of a node of Rosenbrock's chain, of two actions and the node before, any shape."""
    return valley(first, second) + before


class Rosenbrock(AdditiveWorld):
    """Rosenbrock's function; the optimum is lambda sum_i E U_i at a = .75, the unique maximum, exactly."""

    table = NetworkTable(
        equations={
            "X0": Node(("a0", "a1"), valley),
            "X1": Node(("a1", "a2", "X0"), on_the_ridge),
            "X2": Node(("a2", "a3", "X1"), on_the_ridge),
            "X3": Node(("a3", "a4", "X2"), on_the_ridge),
        },
        width=5,
        reward={"X3": 1.0},
        source="Ren et al. (2025), earlier version, Sec. C.2",
    )

    def best(self) -> tuple[Tensor, float]:
        """Known in closed form."""
        return torch.full((5,), 0.75, dtype=torch.float64), sum(map(self.mean_noise, self.task.nodes))


RADIUS_MODES = RANGES | {2: ((-0.2, 0.4), (1.4, 1.0))}
HEIGHT_MODES = RANGES | {2: ((-0.1, 0.05), (0.32, 0.32)), 3: ((-0.1, 0.0, 0.1), (0.32, 0.32, 0.32))}
ORDER = 256
GRID = 1e-3
CURVATURE = 80.0


def wave(radius: Tensor) -> Tensor:
    """(1 + cos 12 x) / (2 + x^2 / 2), any shape."""
    return (1 + torch.cos(12 * radius)) / (2 + 0.5 * radius**2)


def radius(first: Tensor, second: Tensor) -> Tensor:
    """r of two actions, any shape."""
    centred = 10.24 * torch.stack([first, second], -1) - 5.12
    return (centred**2).sum(-1).clamp_min(1e-30).sqrt()


class Dropwave(AdditiveWorld):
    """The Dropwave world.

    Args:
        propagate_noise: Whether Y follows from the noisy X (the paper) or the radius (released code of MCBO).
    """

    table = NetworkTable(
        equations={"X": Node(("a0", "a1"), radius), "Y": Node(("X",), wave)},
        width=2,
        reward={"Y": 1.0},
        source="Ren et al. (2025), Sec. 7.2 and 11.2",
        own_modes={"X": RADIUS_MODES, "Y": HEIGHT_MODES},
    )

    def __init__(
        self,
        noise: ModalNoise = ModalNoise(0.1),
        scale: float = 1.0,
        propagate_noise: bool = True,
        size: Rounds = Rounds(),
        seed: int = 0,
    ) -> None:
        self.propagate_noise = propagate_noise
        super().__init__(noise, scale, size, seed)

    def simulate(self, actions: Tensor, noise: Tensor) -> Tensor:
        """Node values; if `propagate_noise` is false, the measurement error of X does not propagate to Y."""
        if self.propagate_noise:
            return super().simulate(actions, noise)
        free = radius(*actions.unbind(-1))
        return torch.stack(torch.broadcast_tensors(free, wave(free)), -1) + self.scale * noise

    def mean_of(self, node: str, inputs: Mapping[str, Tensor]) -> Tensor | None:
        """As in any world; None for Y if it follows from the radius and not from the measured X."""
        return super().mean_of(node, inputs) if node == "X" or self.propagate_noise else None

    def expected(self, actions: Tensor) -> Tensor:
        """E[Y | a], by quadrature over U_X."""
        return self._at(radius(*actions.double().unbind(-1)))

    def _at(self, free: Tensor) -> Tensor:
        shift = self.mean_noise("Y")
        if not self.propagate_noise:
            return wave(free) + shift
        points, weights = self._rule
        return wave(free[..., None] + self.scale * points) @ weights + shift

    @cached_property
    def _rule(self) -> tuple[Tensor, Tensor]:
        points, weights = self.noise["X"].nodes(ORDER)
        return torch.from_numpy(points), torch.from_numpy(weights)

    @cached_property
    def best_radius(self) -> float:
        """r of the best actions: the best point of a grid, refined by a bounded scalar search."""
        ends = 5.12 * 2**0.5
        grid = torch.arange(0, ends, GRID, dtype=torch.float64)
        best = float(grid[torch.cat([self._at(part) for part in grid.split(1000)]).argmax()])
        span = (max(0.0, best - GRID), min(ends, best + GRID))

        def value(free: float) -> float:
            return float(self._at(torch.tensor(free, dtype=torch.float64)))

        refined = minimize_scalar(lambda r: -value(r), bounds=span, method="bounded", options={"xatol": 1e-9})
        return max(best, float(refined.x), key=value)

    def best(self) -> tuple[Tensor, float]:
        """A point of the best ring, along the first action; its value is too small by at most `gap`."""
        shift = self.best_radius / 10.24
        # A ring wider than half the square is met on the diagonal.
        point = (0.5 + shift, 0.5) if shift <= 0.5 else (0.5 + shift / 2**0.5,) * 2
        action = torch.tensor(point, dtype=torch.float64)
        return action, float(self.expected(action))

    @property
    def gap(self) -> float:
        """An upper bound on how much better an action can be than the best one on the grid."""
        return CURVATURE * (GRID / 2) ** 2 / 2

    def details(self) -> Mapping[str, Any]:
        """The radius of the best ring, the value at the centre, and the bound on the optimality gap."""
        radius, centre = round(self.best_radius, 6), torch.full((2,), 0.5, dtype=torch.float64)
        facts = {"best_radius": radius, "at the centre": float(self.expected(centre))}
        return facts | {"optimum is certified to": self.gap}


Mechanism = Literal["anm", "non_dgm", "dgm", "dgm_bounded"]
CHAIN = tuple(f"X{place}" for place in range(6))
BOUND = 100.0
# Where s has its largest and smallest value, and a local maximum and minimum.
EXTREMES = (0.4815842, 0.7917053, 0.2028757, 1.0)
POWER, SEARCHED = 16, 11


def hill(argument: Tensor) -> Tensor:
    """sqrt(x) sin x, any shape; 0 where x < 0."""
    inside = argument.clamp_min(0)
    # The square root has no finite gradient at 0, where the sine is 0 as well.
    return inside.clamp_min(torch.finfo(inside.dtype).tiny).sqrt() * torch.sin(inside)


class Alpine2(CausalWorld):
    """The Alpine2 world.

    Args:
        mechanism: "anm", "non_dgm", "dgm" or "dgm_bounded".
        noise: Level and modes of the noise. Table 3 of the paper: mechanism "anm", sigma 1, scale 1, 1 mode.
        scale: lambda, which multiplies the noise; None for .3 where it enters to the fourth power, else 1.
        size: Number of rounds and of experiments in the start design; by default 100 and 14.
    """

    source = "Ren et al. (2025), Sec. 11.3 and 11.4"

    def __init__(
        self,
        mechanism: Mechanism = "dgm",
        noise: ModalNoise = ModalNoise(0.2),
        scale: float | None = None,
        size: Rounds = Rounds(),
        seed: int = 0,
    ) -> None:
        if scale is None:
            scale = 0.3 if mechanism in ("dgm", "dgm_bounded") else 1.0
        if mechanism not in get_args(Mechanism) or not scale >= 0:
            expected = f"expected a mechanism of {get_args(Mechanism)} and a scale of at least 0"
            raise ValueError(f"{expected}; got {mechanism!r} and {scale}")
        self.mechanism, self.scale = mechanism, float(scale)
        parents = {node: (*CHAIN[max(link - 1, 0) : link], SIX[link]) for link, node in enumerate(CHAIN)}
        box = Box.of(dict.fromkeys(SIX, (0.0, 1.0)))
        task = CausalTask(RehearsalGraph.of(parents), box, WeightedSum({CHAIN[-1]: 1.0}))
        self.distribution = setting("noise", noise, ModalNoise).mixture()
        super().__init__(task, dict.fromkeys(CHAIN, self.distribution), size, seed)

    def equation(self, node: str, inputs: Mapping[str, Tensor], noise: Tensor) -> Tensor:
        """One link of the chain."""
        link = CHAIN.index(node)
        before = inputs[CHAIN[link - 1]] if link else torch.full_like(noise, -1.0)
        argument = 10 * inputs[SIX[link]]
        if self.mechanism == "anm":
            return hill(argument) * before + self.scale * noise
        if self.mechanism == "non_dgm":
            return hill(argument + self.scale * noise) * before
        level = torch.cos(argument) + 1.2
        if link:
            level = 0.1 * (level + self._square(before))
        return hill(argument) * before + level * self.scale * noise**4

    def recoverable(self, node: str, noise: Tensor) -> Tensor:  # noqa: ARG002
        """u^4 for "dgm" and "dgm_bounded"; u for the others, though "non_dgm" has no such part."""
        return noise**4 if self.mechanism in ("dgm", "dgm_bounded") else noise

    def _square(self, values: Tensor) -> Tensor:
        return values**2 if self.mechanism == "dgm" else values**2 / (1 + values**2 / BOUND)

    def expected(self, actions: Tensor) -> Tensor:
        """E[X_5 | a]: exact for "anm" and "non_dgm"; the mean over 65,536 Sobol draws for the others."""
        actions = actions.double()
        if self.mechanism not in ("anm", "non_dgm"):
            return self.averaged(actions, self._common_draws)
        factors, mean = self._mean_hill(actions), -torch.ones(actions.shape[:-1], dtype=torch.float64)
        shift = self.scale * self.distribution.mean if self.mechanism == "anm" else 0.0
        for factor in factors.unbind(-1):
            mean = factor * mean + shift
        return mean

    def _mean_hill(self, actions: Tensor) -> Tensor:
        if self.mechanism == "anm":
            return hill(10 * actions)
        points, weights = (torch.from_numpy(array) for array in self.distribution.nodes(128))
        return hill(10 * actions[..., None] + self.scale * points) @ weights

    def _draws(self, power: int) -> Tensor:
        """2^power Sobol draws of U_0 ... U_4, and a U_5 whose fourth power is its mean, (2^power, 6)."""
        points, weights = self.distribution.nodes(80)
        draws = sobol_draws([self.distribution] * 5, power)
        last = torch.full((len(draws), 1), float(weights @ points**4) ** 0.25, dtype=torch.float64)
        return torch.cat([draws, last], -1)

    @cached_property
    def _common_draws(self) -> Tensor:
        return self._draws(POWER)

    def best(self) -> tuple[Tensor, float]:
        """Exact for "anm" and "non_dgm"; else found from 4096 corners and 256 Sobol points, by ascent."""
        if self.mechanism in ("anm", "non_dgm"):
            return self._best_corner()
        corners = torch.tensor(list(product(EXTREMES, repeat=6)), dtype=torch.float64)
        draws = self._draws(SEARCHED)
        with torch.no_grad():
            first = corners[self.averaged(corners, draws[:256]).topk(256).indices]
        action, _ = best_action(
            lambda batch: self.averaged(batch, draws), self.task.box, first, spread=256, refined=6, steps=50
        )
        return best_action(self.expected, self.task.box, action[None], spread=1, refined=1, steps=30)

    def _best_corner(self) -> tuple[Tensor, float]:
        axis = torch.linspace(0, 1, 20_001, dtype=torch.float64)
        values = torch.cat([self._mean_hill(part[:, None])[:, 0] for part in axis.split(2000)])
        corners = torch.stack([axis[values.argmax()], axis[values.argmin()]])
        candidates = corners[torch.tensor(list(product((0, 1), repeat=6)))]
        return best_action(self.expected, self.task.box, candidates, spread=1, refined=2)

    def median(self, actions: Tensor) -> Tensor:
        """The median of X_5 under actions, (..., 6) -> (...): typical where rare draws dominate the mean."""
        draws = sobol_draws([self.distribution] * 6, POWER)
        return self.simulate(actions.double()[..., None, :], draws)[..., -1].median(-1).values

    def details(self) -> Mapping[str, Any]:
        """The mechanism, the best action, and the median reward under it."""
        return {
            "mechanism": self.mechanism,
            "best_action": [round(value, 5) for value in self.optimal_action.tolist()],
            "median at the optimum": float(self.median(self.optimal_action)),
        }
