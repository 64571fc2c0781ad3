"""Candidate alterations of several variables that are probable enough to succeed.

The z with at least m of n scenarios desired form a set without structure, and to find one point of it is hard (Thm. 6). What is found here:

1. the most probable z of a relaxation in which every row g' z - h of the scenarios is normal with the scenarios' mean and deviation at the
   middle of the box, prod_r Phi((h_r - g_r' z) / s_r): its logarithm is concave, so that ascent finds its largest value; it is where
   the sweeps and the programs begin;
2. mixed-integer programs, one after the other over some hundred scenarios, half of those that the earlier ones satisfied dropped at random, so that
   each answers for others;
3. through each of these that qualifies, lines along the axes and in directions drawn at random: on a line the qualifying points are
   intervals, found exactly, and their ends and middles are candidates too.

Every candidate is validated by scenarios that no program and no sweep has seen. There may be others; nothing found proves nothing.

Source: Qin et al. (2023), Thm. 6 and App. B.2 (the program, dropping for diversity, validation); the relaxation and the lines are ours.
"""

import math

import numpy as np
import torch
from torch import Tensor

from rehearsal_torch.objectives.scenarios import CountObjective, Scenarios
from rehearsal_torch.search.covered_intervals import Cover, meet
from rehearsal_torch.search.interval_sweep import intervals, line_sweeps
from rehearsal_torch.search.mixed_integer import solve


def joint_candidates(
    objective: CountObjective, index: int, tau: float, programs: int = 3, scenarios: int = 100, nodes: int = 200, seconds: float = 10.0, lines: int = 4
) -> Tensor:
    """Alterations that qualify in one situation, (m, k); m may be 0.

    Args:
        objective: The k altered variables.
        index: Which of its situations.
        tau: The share of scenarios that must be desired, in both samples.
        programs: How many programs are solved.
        scenarios: How many scenarios each holds.
        nodes: At most how many nodes of a tree are looked at.
        seconds: At most how long a program runs; its best alteration so far is kept.
        lines: How many directions beside the axes.
    """
    seek, choose = objective.seek.one(index), objective.choose.one(index)
    origin = objective.origin[index]
    lower, upper = objective.lower[index] - origin, objective.upper[index] - origin
    begin = relaxed(seek, lower, upper)
    stream = torch.Generator().manual_seed(0)
    found = [begin, line_sweeps(seek, lower[None], upper[None], begin[None, None], 3)[0][0, 0]]
    found += programmed(seek, lower, upper, found[-1], programs, scenarios, nodes, seconds, stream)
    good = [each for each in found if qualifies(seek, choose, each[None], tau)[0]]
    width = len(lower)
    reach = (upper - lower).cpu()
    directions = torch.cat([torch.eye(width, dtype=torch.float64), torch.randn(lines, width, dtype=torch.float64, generator=stream) * reach]).to(lower)
    points = [point for each in good for direction in directions for point in along(seek, choose, lower, upper, each, direction, tau)]
    whole = torch.stack([*good, *points]) if good else lower.new_empty(0, width)
    return origin + whole[qualifies(seek, choose, whole, tau)]


def qualifies(seek: Scenarios, choose: Scenarios, actions: Tensor, tau: float) -> Tensor:
    """Whether enough scenarios of both samples are desired, (m, k) -> (m,) bool."""
    each = actions.unsqueeze(-2)
    return torch.stack([part.share(each).squeeze(-1) >= tau for part in (seek, choose)]).all(0)


def relaxed(scenarios: Scenarios, lower: Tensor, upper: Tensor, steps: int = 60) -> Tensor:
    """The most probable alteration of the log-concave relaxation, (k,)."""
    gains, room = scenarios.gains.mean(0), scenarios.room[:, 0].mean(0)
    middle, width = (lower + upper) / 2, upper - lower
    spread = (scenarios.room[:, 0] - scenarios.gains @ middle).std(0).clamp_min(1e-300)
    best, value, length = middle, torch.special.log_ndtr((room - gains @ middle) / spread).sum(), 0.5
    for _ in range(steps):
        slack = (room - gains @ best) / spread
        hazard = torch.exp(-slack.square() / 2 - 0.5 * math.log(2 * math.pi) - torch.special.log_ndtr(slack))
        uphill = -(hazard / spread) @ gains * width
        moved = torch.minimum(torch.maximum(best + length * width * uphill / uphill.norm().clamp_min(1e-300), lower), upper)
        other = torch.special.log_ndtr((room - gains @ moved) / spread).sum()
        best, value, length = (moved, other, length * 1.3) if other > value else (best, value, length / 2)
    return best


def programmed(
    scenarios: Scenarios, lower: Tensor, upper: Tensor, begin: Tensor, programs: int, count: int, nodes: int, seconds: float, stream: torch.Generator
) -> list[Tensor]:
    """Answers of programs that each give up some scenarios that an earlier one satisfied; at most `programs`."""
    rest, answers = torch.arange(len(scenarios.gains), device=scenarios.gains.device), []
    box = (lower.cpu().numpy(), upper.cpu().numpy())
    for _ in range(programs):
        part = scenarios.some(rest[:count])
        known = int(part.desired(begin[None]).sum())
        solution = solve(part.gains.cpu().numpy(), part.room[:, 0].cpu().numpy(), *box, known, nodes, seconds, 0.01)
        if solution.action is not None:
            answer = torch.from_numpy(np.asarray(solution.action)).to(begin)
            answers.append(torch.minimum(torch.maximum(answer, lower), upper))
        satisfied = part.desired(answers[-1][None] if answers else begin[None])[:, 0]
        dropped = satisfied & (torch.rand(len(satisfied), generator=stream) < 0.5).to(satisfied.device)
        rest = torch.cat([rest[:count][~dropped], rest[count:]])
    return answers


def along(seek: Scenarios, choose: Scenarios, lower: Tensor, upper: Tensor, point: Tensor, direction: Tensor, tau: float) -> list[Tensor]:
    """On the line through a point: ends and middles of the pieces that qualify, each (k,)."""
    moves = direction != 0
    one, other = ((end - point)[moves] / direction[moves] for end in (lower, upper))
    first, last = torch.minimum(one, other).amax().clamp_max(0.0), torch.maximum(one, other).amin().clamp_min(0.0)
    unions = []
    for part in (seek, choose):
        left, right = intervals(part.gains @ direction, part.room - (part.gains @ point).unsqueeze(-2), first[None], last[None])
        unions.append(Cover.of(left[:, 0], right[:, 0]).at_least(math.ceil(tau * len(left) - 1e-9)).to(point))
    both = meet(*unions)
    steps = torch.cat([both[:, 0], both[:, 1], both.mean(-1)])
    return list(torch.minimum(torch.maximum(point + steps.unsqueeze(-1) * direction, lower), upper))
