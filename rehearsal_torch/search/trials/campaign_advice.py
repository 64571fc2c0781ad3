"""When to stop a campaign, when to widen its bounds, and how well its model foretells experiments.

**What a better setting could gain.** In plausible networks f_e of a fitted model the simple regret of the
recommended action a* is

    g_e = max over a of f_e(a) - f_e(a*),

what somebody who knew network e would gain by another action. Experiments are worth their while as long as
it may be large: a campaign may stop once

    P(g <= tolerance) >= 0.95,

the probability over the networks, whose deviations from their mean count `BEYOND` times, as in the interval
of a recommendation. The networks are other draws than those by which a* was found, in tables, since there are
many points. No bound is known where the experiments contradict the model.

The maximum is over many points of the region, the visited actions and neighbours of the recommended one; the
best points of each network are varied at random twice, in smaller and smaller steps. It is from below, as
that of any search. On 20 networks by seed from 1000 on, with at most four nodes and three actions, it stopped
nine within 15 experiments after the start design, all at a regret below the quantile, which at other times
is held less often than it claims: in 100 of all 110 rounds.

**Bounds.** Where the recommended setting, or most of the last proposals, lie on a bound of an action, the
optimum within the bounds is at their edge, and a better setting may lie outside of them.

**Leave-one-out.** Every experiment is predicted from its setting by the model of all others, with unchanged
hyper-parameters: plausible networks and noise give the mean and a 95 % interval of its reward.

Source: Makarova et al. (2022), "Automatic termination for hyperparameter optimization" (regret bounds);
Wilson (2024), "Stopping Bayesian optimization with probabilistic regret bounds", Eq. 2.
"""

import math
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from rehearsal_torch.data.table import Table
from rehearsal_torch.data.trials.trial_log import TrialLog
from rehearsal_torch.objectives import feasibility
from rehearsal_torch.objectives.expected_reward import CausalObjective
from rehearsal_torch.objectives.feasibility import Constrained
from rehearsal_torch.search.trials.acquisition import BEYOND, Recommendation
from rehearsal_torch.seeding import generator
from rehearsal_torch.spaces.candidate_region import CandidateRegion
from rehearsal_torch.surrogates.network.botorch_model import NetworkModel
from rehearsal_torch.surrogates.network.causal_surrogate import CausalModel

SURE = 0.95  # The probability with which the regret is at most the quantile
SHARE = 0.02  # Of the range of rewards so far, the gain that is not worth an experiment
MEMBERS, DRAWS = 64, 16
POINTS, STEPS, VARIED = 256, (0.1, 0.02), 2
LAST, FEWEST = 10, 4  # The last proposals that count, and the fewest
EDGE = 1e-3  # The share of a range that is its edge
Side = Literal["lower", "upper"]
Verdict = Literal["little_left", "more_to_gain", "contradicted", "no_model"]


@dataclass(frozen=True)
class Stopping:
    """Whether to stop a campaign, and why.

    Attributes:
        reason: ``little_left`` to gain, in all likelihood; ``more_to_gain``, possibly; the experiments have
            ``contradicted`` the model, or there is ``no_model`` yet.
        tolerance: The gain that is not worth further experiments, in the reward's unit.
        gain: The mean of what a better setting could gain over the recommended one; NaN without a model.
        high: Its 95 % quantile.
        lacking: What a model needs and there is not yet.
    """

    reason: Verdict
    tolerance: float = float("nan")
    gain: float = float("nan")
    high: float = float("nan")
    lacking: str = ""

    @property
    def stop(self) -> bool:
        """Whether to stop."""
        return self.reason == "little_left"

    def __str__(self) -> str:
        """One sentence."""
        left = f"{self.gain:.3g} on average, with a probability of 95 % no more than {self.high:.3g}"
        return {
            "little_left": f"Stop: a better setting than the recommended one would gain {left}, and "
            f"{self.tolerance:.3g} is not worth further experiments",
            "more_to_gain": f"Go on: a better setting than the recommended one would gain {left}, and more "
            f"than {self.tolerance:.3g} is worth further experiments",
            "contradicted": "Go on, or look at the graph: the experiments contradict the model, so that what "
            "is left to gain is not known",
            "no_model": f"Go on: there is no model yet: {self.lacking}",
        }[self.reason]


def stopping(
    objective: CausalObjective, recommended: Recommendation, tolerance: float, seed: int
) -> Stopping:
    """Whether to stop with a recommendation, under the objective that found it."""
    gains = gains_left(objective, recommended, seed)
    high = float(gains.quantile(SURE))
    reason: Verdict = "little_left" if high <= tolerance else "more_to_gain"
    if objective.surrogate.contradicted():
        reason = "contradicted"
    return Stopping(reason, tolerance, float(gains.mean()), high)


@torch.no_grad()
def gains_left(objective: CausalObjective, recommended: Recommendation, seed: int) -> Tensor:
    """What the best action of each plausible network, of those that keep the constraints in it, gains over
    the recommended one, (E,), at least 0.
    """
    draw, constraints = generator(seed), objective.task.constraints
    draws = max(DRAWS, feasibility.DRAWS) if constraints else DRAWS
    model = NetworkModel(objective.surrogate, members=MEMBERS, draws=draws, seed=objective.seed + 20)
    model = model.tabulated()
    limited = Constrained(model, constraints, objective.visited) if constraints else None
    visited = objective.visited[objective.allowed(objective.visited)]
    visited = torch.cat([recommended.action.unsqueeze(0), visited])

    def rewards(actions: Tensor) -> tuple[Tensor, Tensor]:
        """The rewards (P, E), and those of actions that keep the constraints."""
        samples = (limited or model).posterior(actions.unsqueeze(-2)).values[..., 0, :]
        values = samples[..., 0].movedim(0, -1)
        mean = values.mean(-1, keepdim=True)
        values = mean + BEYOND * (values - mean)
        return values, values.masked_fill((samples[..., 1:] > 0).any(-1).movedim(0, -1), -torch.inf)

    def highest(region: CandidateRegion) -> Tensor:
        """The best reward in each network, (E,)."""
        points, settings = region.unit(visited), region.finite()
        points = torch.cat([points, region.spread(POINTS, seed) if settings is None else settings])
        best = rewards(region.units(points))[1].max(0)
        tops, largest = points[best.indices], best.values
        for step in STEPS if settings is None else ():
            centres = torch.cat([tops, points[:1].expand_as(tops)]).repeat(VARIED, 1)
            moves = step * torch.randn(centres.shape, generator=draw, dtype=centres.dtype)
            varied = region.into((centres + moves).clamp(0, 1))
            better = rewards(region.units(varied))[1].max(0)
            tops = torch.where((better.values > largest).unsqueeze(-1), varied[better.indices], tops)
            largest = torch.maximum(largest, better.values)
        return largest

    best = torch.stack([highest(each.region()) for each in objective.by_set()]).amax(0)
    return (best - rewards(visited[:1])[0][0]).clamp_min(0)


@dataclass(frozen=True)
class AtBound:
    """A bound of an action that may be too tight.

    Attributes:
        value: The bound, in the action's unit.
        recommended: Whether the last recommendation lies on it.
        proposals: How many of the last proposals lie on it.
        of: The number of these.
    """

    action: str
    side: Side
    value: float
    recommended: bool
    proposals: int
    of: int

    def __str__(self) -> str:
        """One sentence."""
        proposals = f"{self.proposals} of the last {self.of} proposals" if self.proposals else ""
        what = " and ".join(filter(None, ["the recommended setting" if self.recommended else "", proposals]))
        place = f"{self.action} at its {self.side} bound, {self.value:.4g}"
        return f"A better setting may lie outside: {what} had {place}. Widen it if that is possible"


def at_bounds(log: TrialLog, initial: int) -> tuple[AtBound, ...]:
    """The bounds on which the last recommendation of a log lies, or most proposals after the start design of
    `initial` experiments do; an action with two levels has none. Settings at what an action was before it
    could be chosen (`before`) do not count: earlier trials have it without a choice.
    """
    box, names = log.task.box, log.task.actions
    asked = [trial.asked for trial in log.trials if trial.asked is not None and trial.id > initial]
    advice = list[AtBound]()
    for index, name in enumerate(names):
        if len(box.levels.get(name, range(3))) < 3 or name in log.task.coded:
            continue
        kept, proposed = (
            [value for each in group if (value := each.get(name, math.nan)) != log.task.before.get(name)]
            for group in ([past.action for past in log.recommended[-1:]], asked)
        )
        proposed, edge = proposed[-LAST:], EDGE * log.task.spans[index]
        ends: dict[Side, float] = {"lower": box.lower_ends[index], "upper": box.upper_ends[index]}
        for side, bound in ends.items():
            end = log.task.coordinate(name, bound)
            recommended, proposals = (
                sum(abs(log.task.coordinate(name, value) - end) <= edge for value in values)
                for values in (kept, proposed)
            )
            if recommended or (len(proposed) >= FEWEST and 2 * proposals > len(proposed)):
                advice.append(AtBound(name, side, bound, bool(recommended), proposals, len(proposed)))
    return tuple(advice)


@dataclass(frozen=True)
class LeftOut:
    """The reward of a trial, measured and predicted by the others, with a 95 % interval of experiments."""

    trial: int
    measured: float
    predicted: float
    low: float
    high: float


@torch.no_grad()
def left_out(model: CausalModel, log: TrialLog, seed: int) -> tuple[LeftOut, ...]:
    """Predictions of all completed trials, each by the others; the model is conditioned in place. A
    ValueError if the others are too few.
    """
    table, predictions = log.learnt, list[LeftOut]()
    rewards, actions = log.task.reward_of(log.table).tolist(), log.task.settings_of(log.table)
    noise = model.draws(2 * DRAWS, seed)
    for row, trial in enumerate(log.in_states("completed")):
        others = [index for index in range(len(table)) if index != row]
        model.condition(Table(table.names, table.values[others], table.altered[others]))
        networks = model.plausible(MEMBERS, seed + 1)
        values = networks.reward(networks.propagate(actions[row : row + 1].to(noise), noise)).flatten()
        low, high = (float(values.quantile(level)) for level in ((1 - SURE) / 2, (1 + SURE) / 2))
        predictions.append(LeftOut(trial.id, rewards[row], float(values.mean()), low, high))
    return tuple(predictions)
