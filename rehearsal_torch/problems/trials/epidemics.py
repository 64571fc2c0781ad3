"""Two worlds of epidemics: calibrating contact rates to targets, and pooled testing of a population.

Calibration: two groups, three periods. I_{i,t} percent of group i are infectious. With contact rates b_{ij,t}
and a share g that recovers per period,

    I_{i,t} = I_{i,t-1} (1 - g) + (1 - I_{i,t-1} / 100) sum_j b_{ij,t} I_{j,t-1} + U_{i,t},      I_{i,0} = 1,
    t = 1, 2, 3,

and the reward is -mean_{i,t} (I_{i,t} - target_{i,t})^2; Astudillo and Frazier take the sum. Targets are the
noise-free values under the true rates. Noise is in percent and propagates; values are not clipped at 0.

The reward is a polynomial: of degree 8 in the noise of t = 1, 4 in that of t = 2, 2 in that of t = 3. A Gauss
rule with 5 x 5 x 3 x 3 points gives E[r | a] exactly. Its maximum is not at the true rates: the variance is
penalised as well, and lower rates propagate less noise. No a reaches more than -Var U, as every node has
noise of its own. The maximum is searched for from many starts.

Pooled testing: three periods, with a pool size for each. I_t percent of the population are infectious after
period t, R_t recovered, S_t = 100 - I_t - R_t susceptible; I_0 = 1, R_0 = 0. In period t everybody is tested
in pools of 199 a_t + 1 people. Those who test positive are isolated; the others meet:

    F_I = I_{t-1} fnr,    F_S = S_{t-1} (1 - fpr),    F_R = R_{t-1} (1 - fpr),
    new = min(F_I (e^{beta f} - 1), S_{t-1}),   f = F_S / (F_S + F_I + F_R),
    L_t = 100 * .001 tests + .01 * isolated + new,     I_t = new,     R_t = R_{t-1} + I_{t-1},
    beta = (14 / 3) ln 2,

each plus noise, and the reward is -(L_1 + L_2 + L_3), in percent. The graph is that of the equations: I_t and
L_t follow from I_{t-1}, R_{t-1} and a_t, R_t from I_{t-1} and R_{t-1}; I_3 and R_3 have no effects. Before a
period I is clipped to [0, 100] and R to [0, 100 - I]; the released code does not clip, and has negative
susceptibles under poor actions.

A pool of n people holds G = n / 2.4485 households, at least one: then the reward is smooth in a, and the
noise-free maximum is -8.591. Real pools hold whole households (`whole`: G is rounded up, as in the released
code): then the reward has 82 steps in every action, all 82^3 protocols are evaluated, and the noise-free
maximum -8.561 is certified. With noise, E[r | a] is computed by a product of Gauss rules; its maximum is
searched for from the best of the 82^3 noise-free protocols.

The error rates have a closed form. Households of s = 1 ... 7 people (share h_s) are arranged in a matrix of
G x G; each row and each column is one pool. A person counts as positive if both of the household's pools are
positive. With a primary infection rate r of people and a secondary rate q in a household with a primary case,

    prevalence = sum_s s h_s (r + q (1 - r) - q (1 - r)^s) / sum_s s h_s,
    P_s(M = m) = Bin(s, m; r + (1 - r) q) - (1 - r)^s Bin(s, m; q) + (1 - r)^s [m = 0]

is the distribution of the number M of infected members. Each swab of an infected person is valid with
probability .7, so that K | M ~ Bin(M, .7) swabs are valid. A pool with k >= 1 valid swabs is missed with
probability D^k, D = .05^(1 / G^.076), one without is positive with probability .1. With f(x) = E x^K of one
household, a pool that holds K = k of the own household is positive with probability

    p(k) = 1 - D^k f(D)^(G - 1)   (k >= 1),       p(0) = 1 - f(D)^(G - 1) + .1 f(0)^(G - 1),

and given k rows and columns are independent:

    false negatives = E[1 - p(K)^2 | infected person],   false positives = E[p(K)^2 | healthy person],
    tests = 2 / (G sum_s s h_s) per person.

Source: Ren et al. (2025), Sec. 7.4 and 11.5 (calibration), 11.7 (pooled testing); Astudillo and Frazier
(2021), released code (the true rates; it simulates what has a closed form here). The scale of the noise of
pooled testing, the bounds on its states and the closed form are ours.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from math import comb
from typing import Any, Literal

import torch
from torch import Tensor

from rehearsal_torch.data.causal_task import CausalTask
from rehearsal_torch.data.known_reward import TargetError, WeightedSum
from rehearsal_torch.graphs.mixed_graph import RehearsalGraph
from rehearsal_torch.problems.trials.causal_world import CausalWorld, in_parts
from rehearsal_torch.problems.trials.global_maximum import best_action
from rehearsal_torch.problems.trials.mixture_noise import ModalNoise, product_rule
from rehearsal_torch.problems.world_size import Rounds, setting
from rehearsal_torch.spaces.box import Box

# b_{ij,t}: period, group that is infected, group that infects.
RATES = (((0.30, 0.05), (0.10, 0.70)), ((0.60, 0.05), (0.10, 0.80)), ((0.20, 0.05), (0.10, 0.20)))
RECOVERY = 0.5
START = 1.0
GROUPS, PERIODS = (1, 2), (1, 2, 3)
NODES = tuple(f"I{group}{period}" for period in PERIODS for group in GROUPS)
RECOVERS = "g"


def rate(group: int, source: int, period: int) -> str:
    """The name of b_{ij,t}."""
    return f"b{group}{source}{period}"


class Epidemic(CausalWorld):
    """Calibration of an epidemic model.

    Args:
        noise: Level and modes of the noise, in percent.
        actions: 12, the rates, or 13, the recovery as well.
        inputs: Rates as parents of a node: the "block" of its period (released code), or its own "row".
        size: Number of rounds and of experiments in the start design; by default 100 and 26 or 28.
    """

    source = "Ren et al. (2025), Sec. 7.4 and 11.5; Astudillo and Frazier (2021)"

    def __init__(
        self,
        noise: ModalNoise = ModalNoise(0.1),
        actions: int = 12,
        inputs: Literal["block", "row"] = "block",
        size: Rounds = Rounds(),
        seed: int = 0,
    ) -> None:
        if actions not in (12, 13) or inputs not in ("block", "row"):
            expected = "expected 12 or 13 actions and inputs of block or row"
            raise ValueError(f"{expected}; got {actions} and {inputs!r}")
        rates = [rate(group, source, period) for period in PERIODS for group in GROUPS for source in GROUPS]
        box = Box.of(dict.fromkeys(rates + [RECOVERS] * (actions == 13), (0.0, 1.0)))
        parents = {}
        for node in NODES:
            group, period = int(node[1]), int(node[2])
            before = [f"I{source_group}{period - 1}" for source_group in GROUPS] if period > 1 else []
            rows = GROUPS if inputs == "block" else (group,)
            contacts = [rate(row, source, period) for row in rows for source in GROUPS]
            parents[node] = [*before, *contacts, *([RECOVERS] if actions == 13 else [])]
        truth = [value for block in RATES for row in block for value in row] + [RECOVERY] * (actions == 13)
        self.true_action = torch.tensor(truth, dtype=torch.float64)
        task = CausalTask(RehearsalGraph.of(parents), box, TargetError(_noise_free_targets()))
        distribution = setting("noise", noise, ModalNoise).mixture()
        super().__init__(task, dict.fromkeys(NODES, distribution), size, seed)

    def equation(self, node: str, inputs: Mapping[str, Tensor], noise: Tensor) -> Tensor:
        """The next state of one group."""
        group, period = int(node[1]), int(node[2])
        start = torch.tensor(START, dtype=torch.float64)
        before = {source: inputs.get(f"I{source}{period - 1}", start) for source in GROUPS}
        first, second = (inputs[rate(group, source, period)] * before[source] for source in GROUPS)
        stay = 1 - inputs.get(RECOVERS, torch.tensor(RECOVERY, dtype=torch.float64))
        return before[group] * stay + (1 - before[group] / 100) * (first + second) + noise

    def expected(self, actions: Tensor) -> Tensor:
        """E[r | a], exact: a Gauss rule for the noise of t = 1 and 2, and the variance of that of t = 3."""
        points, weights = self._rule
        mean = in_parts(lambda a: self.rewards(self.simulate(a[:, None], points)) @ weights, actions, 1000)
        return mean - self.noise[NODES[-1]].variance / 3

    @cached_property
    def _rule(self) -> tuple[Tensor, Tensor]:
        distribution = self.noise[NODES[0]]
        points, weights = product_rule([distribution] * 4, (5, 5, 3, 3))
        return torch.cat([points, points.new_full((len(points), 2), distribution.mean)], -1), weights

    def best(self) -> tuple[Tensor, float]:
        """The best found from the true rates and the seven best of 1024 Sobol points."""
        starts = self.true_action[None]
        return best_action(self.expected, self.task.box, starts, spread=1024, refined=8, steps=500)

    @property
    def ceiling(self) -> float:
        """An upper bound of E[r | a]: the variance of every node's own noise is always lost."""
        return -self.noise[NODES[0]].variance

    def details(self) -> Mapping[str, Any]:
        """The reward at the true rates, and its upper bound."""
        return {"at the true rates": float(self.expected(self.true_action)), "ceiling": self.ceiling}


def _noise_free_targets() -> dict[str, float]:
    state, targets = [START, START], {}
    for period, rates in zip(PERIODS, RATES, strict=True):
        force = [row[0] * state[0] + row[1] * state[1] for row in rates]
        state = [old * (1 - RECOVERY) + (1 - old / 100) * new for old, new in zip(state, force, strict=True)]
        targets.update({f"I{group}{period}": value for group, value in zip(GROUPS, state, strict=True)})
    return targets


SIZES = (0.2837, 0.3451, 0.1507, 0.1276, 0.0578, 0.0226, 0.0125)
SECONDARY = 0.374
WORKS = 0.7
MISSED, DILUTED, EMPTY = 0.05, 0.076, 0.1
LARGEST = len(SIZES)
AVERAGE = sum(size * share for size, share in enumerate(SIZES, 1)) / sum(SIZES)


@dataclass(frozen=True)
class Errors:
    """False negatives among the infected, false positives among the healthy, and tests per person."""

    negative: Tensor
    positive: Tensor
    tests: Tensor


def side(pool: Tensor, whole: bool = True) -> Tensor:
    """G of a pool of `pool` people, any shape: whole households, or the average number, at least 1."""
    return torch.ceil(pool / AVERAGE) if whole else (pool / AVERAGE).clamp_min(1.0)


def primary_rate(prevalence: Tensor) -> Tensor:
    """r, any shape, by Newton's method from 0, monotone as the prevalence is concave in r."""
    shares = [size * share / (AVERAGE * sum(SIZES)) for size, share in enumerate(SIZES, 1)]
    rate = torch.zeros_like(prevalence)
    for _ in range(12):
        spared = 1 - rate
        healthy = sum(share * spared**size for size, share in enumerate(shares, 1))
        slope = sum(share * size * spared ** (size - 1) for size, share in enumerate(shares, 1))
        prevalence_at = rate + SECONDARY * spared - SECONDARY * healthy
        derivative = 1 - SECONDARY + SECONDARY * slope
        rate = (rate + (prevalence - prevalence_at) / derivative).clamp(0, 1)
    return rate


def infected_members(rate: Tensor) -> Tensor:
    """P(size s, M = m) of a household, (...) -> (..., 7, 8)."""
    free, rows = 1 - rate, []
    infected = rate + free * SECONDARY
    for size, share in enumerate(SIZES, 1):
        row = []
        for count in range(LARGEST + 1):
            if count > size:
                row.append(torch.zeros_like(rate))
                continue
            ways, rest = comb(size, count), size - count
            spared = free**size * (float(count == 0) - ways * SECONDARY**count * (1 - SECONDARY) ** rest)
            row.append(share / sum(SIZES) * (ways * infected**count * (1 - infected) ** rest + spared))
        rows.append(torch.stack(row, -1))
    return torch.stack(rows, -2)


# P(K = k | M = m), (8, 8).
_COUNTS = range(LARGEST + 1)
_WORKING = [[comb(m, k) * WORKS**k * (1 - WORKS) ** max(m - k, 0) for k in _COUNTS] for m in _COUNTS]
GOOD = torch.tensor(_WORKING, dtype=torch.float64)


def pooled_errors(prevalence: Tensor, groups: Tensor) -> Errors:
    """Rates in the broadcast shape of G and the share of people infected, in (0, 1)."""
    members = infected_members(primary_rate(prevalence))
    count = torch.arange(LARGEST + 1, dtype=prevalence.dtype)
    sizes = torch.arange(1, LARGEST + 1, dtype=prevalence.dtype)[:, None]
    household = members.sum(-2) @ GOOD
    infected, healthy = ((members * w).sum(-2) @ GOOD for w in (count.expand(LARGEST, -1), sizes - count))
    missed = MISSED ** (1 / groups**DILUTED)
    missed_by_others = (household * missed[..., None] ** count).sum(-1) ** (groups - 1)
    alone = household[..., 0] ** (groups - 1)
    positive = 1 - missed[..., None] ** count * missed_by_others[..., None]
    positive = torch.cat([(1 - missed_by_others + EMPTY * alone)[..., None], positive[..., 1:]], -1)
    shares = [weight / weight.sum(-1, keepdim=True) for weight in (infected, healthy)]
    tests = (2 / (groups * AVERAGE)).expand(positive.shape[:-1])
    return Errors(1 - (shares[0] * positive**2).sum(-1), (shares[1] * positive**2).sum(-1), tests)


ACTIONS, LOSSES = ("a1", "a2", "a3"), ("L1", "L2", "L3")
BETA = 14 / 3 * math.log(2)
LARGEST_POOL = 200.0
TEST, ISOLATION = 0.001, 0.01
BEFORE = {"I0": 1.0, "R0": 0.0}
SIDES = int(side(torch.tensor(LARGEST_POOL, dtype=torch.float64)))
STARTS = 100


def period(infectious: Tensor, recovered: Tensor, groups: Tensor) -> tuple[Tensor, Tensor]:
    """Newly infected and loss of one period, in percent; I and R before it (...), G (...), broadcast."""
    ill = infectious.clamp(0, 100)
    past = torch.minimum(recovered.clamp_min(0), 100 - ill)
    free = 100 - ill - past
    # With nobody infectious the false negative rate is undefined.
    errors = pooled_errors((ill / 100).clamp_min(1e-9), groups)
    healthy = 1 - errors.positive
    out_ill, out_free, out_past = ill * errors.negative, free * healthy, past * healthy
    open_share = out_free / (out_free + out_ill + out_past).clamp_min(1e-12)
    new = torch.minimum(out_ill * torch.expm1(BETA * open_share), free)
    isolated = ill * (1 - errors.negative) + (free + past) * errors.positive
    return new, 100 * TEST * errors.tests + ISOLATION * isolated + new


class PooledTesting(CausalWorld):
    """The pooled testing world.

    Args:
        noise: Level and modes of the noise.
        whole: Whether a pool holds whole households.
        noise_scale: One unit of noise in percent of the population (and of the loss); 0 for no noise.
        size: Number of rounds and of experiments in the start design; by default 140 and 8.
    """

    source = "Ren et al. (2025), Sec. 11.7; Astudillo and Frazier (2021)"

    def __init__(
        self,
        noise: ModalNoise = ModalNoise(0.2),
        whole: bool = False,
        noise_scale: float = 0.1,
        size: Rounds = Rounds(140),
        seed: int = 0,
    ) -> None:
        if not noise_scale >= 0:
            expected = "expected percent of the population, at least 0"
            raise ValueError(f"noise_scale: {expected}; got {noise_scale}")
        self.noise_scale, self.whole = float(noise_scale), whole
        # Without noise R_1 is a constant and not a node.
        first = () if noise_scale == 0 else ("R1",)
        before = {1: (), 2: ("I1", *first), 3: ("I2", "R2")}
        parents: dict[str, tuple[str, ...]] = dict.fromkeys(first, ())
        for time, action in enumerate(ACTIONS, 1):
            parents.update({f"I{time}": (*before[time], action), f"L{time}": (*before[time], action)})
            parents.update({f"R{time}": before[time]} if time > 1 else {})
        box, reward = Box.of(dict.fromkeys(ACTIONS, (0.0, 1.0))), WeightedSum(dict.fromkeys(LOSSES, -1.0))
        task = CausalTask(RehearsalGraph.of(parents), box, reward)
        self.distribution = setting("noise", noise, ModalNoise).mixture()
        super().__init__(task, dict.fromkeys(task.nodes, self.distribution), size, seed)

    def equation(self, node: str, inputs: Mapping[str, Tensor], noise: Tensor) -> Tensor:
        """Infectious, recovered or loss after a period."""
        kind, time = node[0], int(node[1])
        infectious, recovered = (
            inputs.get(f"{name}{time - 1}", torch.tensor(BEFORE.get(f"{name}0", 0.0), dtype=torch.float64))
            for name in "IR"
        )
        if time == 2 and "R1" not in inputs:
            recovered = torch.tensor(BEFORE["I0"] + BEFORE["R0"], dtype=torch.float64)
        if kind == "R":
            return recovered + infectious + self.noise_scale * noise
        new, loss = period(infectious, recovered, self.groups(inputs[ACTIONS[time - 1]]))
        return (new if kind == "I" else loss) + self.noise_scale * noise

    def groups(self, actions: Tensor) -> Tensor:
        """G, the number of households in a pool, any shape."""
        return side((LARGEST_POOL - 1) * actions.double() + 1, self.whole)

    def expected(self, actions: Tensor) -> Tensor:
        """E[r | a]: Gauss rules for the noise of I_1, R_1, I_2, R_2; the mean of that of the losses."""
        (first, past, second, later), weights = self._rule
        start = torch.tensor([[BEFORE["I0"]], [BEFORE["R0"]]], dtype=torch.float64)

        def mean(part: Tensor) -> Tensor:
            first_groups, second_groups, third_groups = self.groups(part)[:, :, None].unbind(1)
            new, loss = period(start[0], start[1], first_groups)
            ill, removed = new + first, BEFORE["I0"] + BEFORE["R0"] + past
            new, second_loss = period(ill, removed, second_groups)
            _, third_loss = period(new + second, removed + ill + later, third_groups)
            losses = loss + second_loss + third_loss
            return -(losses @ weights if self.noise_scale else losses[:, 0])

        return in_parts(mean, actions, 200) - 3 * self.noise_scale * self.distribution.mean

    @cached_property
    def _rule(self) -> tuple[tuple[Tensor, ...], Tensor]:
        if not self.noise_scale:
            return (torch.zeros(1, dtype=torch.float64),) * 4, torch.ones(1, dtype=torch.float64)
        points, weights = product_rule([self.distribution] * 4, (4, 3, 4, 3))
        return (self.noise_scale * points).unbind(-1), weights

    def sides(self) -> Tensor:
        """The 82 numbers of households per pool that are evaluated in every period."""
        groups = torch.arange(1, SIDES + 1, dtype=torch.float64)
        return groups if self.whole else groups.clamp_max(LARGEST_POOL / AVERAGE)

    def protocols(self) -> Tensor:
        """The noise-free reward of every protocol (G_1, G_2, G_3), (82, 82, 82)."""
        groups = self.sides()
        ill, removed = (torch.tensor(BEFORE[name], dtype=torch.float64) for name in ("I0", "R0"))
        first, loss = period(ill, removed, groups)
        second, second_loss = period(first[:, None], ill + removed, groups)
        flat, past = second.reshape(-1, 1), (ill + removed + first)[:, None].expand(-1, SIDES).reshape(-1, 1)
        parts = zip(flat.split(500), past.split(500), strict=True)
        third = torch.cat([period(infectious, recovered, groups)[1] for infectious, recovered in parts])
        return -(loss[:, None, None] + second_loss[:, :, None] + third.reshape(SIDES, SIDES, SIDES))

    def best(self) -> tuple[Tensor, float]:
        """Certified for whole households without noise, else found by a search."""
        rewards = self.protocols()
        top = rewards.flatten().topk(STARTS).indices
        groups = self.sides()[torch.stack(torch.unravel_index(top, rewards.shape), -1)]
        # The middle of the pool sizes that hold this number of whole households.
        pools = ((groups - 0.5 * self.whole) * AVERAGE).clamp(1, LARGEST_POOL)
        actions = (pools - 1) / (LARGEST_POOL - 1)
        if self.whole:
            return self._best_of_steps(actions)
        return best_action(self.expected, self.task.box, actions, spread=1, refined=2, steps=60)

    def _best_of_steps(self, actions: Tensor) -> tuple[Tensor, float]:
        """The best of actions (n, 3), refined by coordinate search over all 82 steps: (3,)."""
        values = self.expected(actions)
        best, value = actions[values.argmax()], float(values.max())
        steps = (((self.sides() - 0.5) * AVERAGE).clamp(1, LARGEST_POOL) - 1) / (LARGEST_POOL - 1)
        while True:
            neighbours = best.repeat(3 * SIDES, 1)
            for time in range(3):
                neighbours[time * SIDES : (time + 1) * SIDES, time] = steps
            values = self.expected(neighbours)
            if float(values.max()) <= value + 1e-12:
                return best, value
            best, value = neighbours[values.argmax()], float(values.max())

    def details(self) -> Mapping[str, Any]:
        """The numbers of households in the best pools, and beta."""
        return {"best_groups": self.groups(self.optimal_action).tolist(), "beta": BETA}
