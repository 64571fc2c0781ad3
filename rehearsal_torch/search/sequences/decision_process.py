"""The counterfactual decision process in batches, and the decisions made from action sequences.

Given an observed episode and a limit of k changes, a node (x, l, t) is a state x at time t on a path that has
made l changes so far. Keeping the observed action leads to (F_t(x, a_t), l, t + 1); each of the other
actions, if l < k and step t is open, leads to (F_t(x, a), l + 1, t + 1). Once no change or no open step
remains, the rest of the path is fixed, and its reward J_t(x) follows from one rollout under the observed
actions.

Whatever the search, its answer is an action sequence, evaluated by the same objective in the same way: its
return, the observed return, and the search effort. Changes that gain nothing are undone before (`nearest`).
The effective branching factor b of a search that expanded N nodes of an episode of T steps solves

    N = 1 + b + b^2 + ... + b^T.

A search finds some sequence with the largest return; others may have the same one, since a change may have no
effect. Starting from the sequence found, two kinds of steps lead back towards the observed actions:

    a whole action    the observed action takes the place of a changed one
    a single dose     one dose of a changed action becomes that of the observed one, where the action with
                      these doses may be chosen

All of them, at most k (p + 1) sequences for k changes of p doses, are evaluated in one batch. Those whose
return equals that of the sequence found, up to the tolerance of the search, are taken: all together if that
holds for them jointly, else the first, with whole actions first. This is repeated until none is left.
Differences do not add up, since the return is always compared with that of the sequence found. A sequence on
which all members of an ensemble agree (`claims.sequence_rules`) is not exchanged for one on which they do
not.

Where a step back gains, as it may after a search that has proven nothing, it is not taken: the answer stays
that of the search. Another sequence with the same return and fewer changes, at other time steps, is not
looked for.

Source: Tsirtsis and Gomez-Rodriguez (2023), Eq. 7-8 and Sec. 5; the exact reward-to-go is ours.
"""

import math
from dataclasses import asdict, dataclass

import torch
from torch import Tensor

from rehearsal_torch.data.decision import Decision, Estimate, action_name
from rehearsal_torch.data.finding import Finding, FindingKind
from rehearsal_torch.objectives.counterfactual_return import CounterfactualReturn, taken
from rehearsal_torch.search.search import Budget
from rehearsal_torch.spaces.box import Alteration

NONE_OPEN = "no change is allowed"
PROVEN_BEST = "no allowed change is better than the observed actions"
NONE_FOUND = "found no allowed change that is better than the observed actions"


@dataclass
class Effort:
    """Counters of the search effort."""

    expanded: int = 0  # Nodes expanded
    generated: int = 0  # Nodes generated
    network_evaluations: int = 0  # Single steps F_t(x, a) computed


def limit_reached(nodes: int | None, effort: Effort, budget: Budget) -> str:
    """Which limit ends a search, in a sentence; empty while none does."""
    if nodes is not None and effort.expanded >= nodes:
        return f"stopped after node_limit={nodes} expanded nodes"
    return budget.reason() if budget.out() else ""


def sequence_decision(
    objective: CounterfactualReturn,
    actions: Tensor,
    effort: Effort,
    budget: Budget,
    *,
    search: str,
    gap: float | None,
    equal: float | None = None,
    reason: str = "",
    declines: bool = True,
    by_hand: bool = False,
    **trace: object,
) -> Decision:
    """The decision to which an action sequence amounts.

    Args:
        actions: The best sequence found, (H,) long; calling the objective gives the reported value.
        gap: Upper bound on how far the optimum lies above the value, in the reward's unit; 0 if proven
            optimal; None if no bound is known.
        equal: The difference up to which the search counts two returns as equal, in the reward's unit:
            changes whose undoing makes no larger one are undone. None keeps the sequence as it is.
        declines: Whether to return no action, instead of a finding, if the sequence is no better than the
            observed one by the model's own estimate.
        by_hand: Whether somebody put the sequence together, so that nothing is known of other ones.
    """
    observed, sequence = objective.observed, objective.settled(actions.to(objective.observed))
    if equal is not None:
        sequence, fall = nearest(objective, sequence, equal)
        gap = gap if not gap else gap + fall if gap + fall > equal else 0.0
    changed = (sequence != observed).nonzero()[:, 0].tolist()
    outcome = objective.outcome()
    value, findings = float(objective(sequence)) if changed else outcome, objective.warnings()
    finite = math.isfinite(value)
    if changed and not finite:
        reason = f"the best sequence found has the return {value}: the model is undefined there"
        changed = []
    elif changed and not value > outcome:
        message = (
            f"by the model's own estimate no better than the observed actions ({value:.6g} against "
            f"{outcome:.6g})"
        )
        if declines:
            changed, value, reason = [], outcome, reason or message
        else:
            findings = (*findings, Finding("no_gain", message))
    if not reason and not changed and not by_hand:
        reason = PROVEN_BEST if gap == 0.0 else NONE_FOUND
        reason = reason if len(objective.open) and objective.changes else NONE_OPEN
    kind: FindingKind = "note" if changed else "no_gain" if finite else "invalid"
    work = asdict(effort) | {
        "effective_branching_factor": branching_factor(effort.expanded, objective.horizon),
        "gap": gap,
        "proven": gap == 0.0,
    }
    names = tuple(action_name(time) for time in changed)
    doses = objective.surrogate.doses(sequence[changed]).tolist() if changed else []
    return Decision(
        Alteration(names, sequence[changed].cpu()) if changed else None,
        value,
        estimate=_return(value),
        baseline=_return(outcome),
        doses=dict(zip(names, map(tuple, doses), strict=True)),
        findings=findings,
        reason=Finding(kind, reason) if reason else None,
        trace={"search": search, **work, **trace, **budget.facts(gap)},
        seconds=budget.spent(),
    )


def _return(value: float) -> Estimate | None:
    return Estimate(value, "return of the episode") if math.isfinite(value) else None


def branching_factor(nodes: int, horizon: int) -> float:
    """The b >= 1 with nodes = 1 + b + ... + b^horizon; by bisection to 1e-12."""
    if nodes <= horizon + 1:
        return 1.0
    powers = torch.arange(horizon + 1, dtype=torch.float64)
    low, high = 1.0, float(nodes)
    while high - low > 1e-12 * high:
        middle = (low + high) / 2
        low, high = (middle, high) if float((middle**powers).sum()) < nodes else (low, middle)
    return (low + high) / 2


ROWS = 1024  # rows per network evaluation: few enough that the hidden layer stays in the processor's cache


class CounterfactualProcess:
    """Steps and rewards in the search tree of one episode; every network evaluation is counted."""

    def __init__(self, objective: CounterfactualReturn, effort: Effort) -> None:
        self.objective, self.effort, self.trajectory = objective, effort, objective.trajectory
        self.horizon, self.changes, self.acts = objective.horizon, objective.changes, objective.reward.acts
        self.others = [objective.candidate_actions(time) for time in range(len(objective.observed))]
        free = [time for time, other in enumerate(self.others) if len(other)]
        self.last = free[-1] if free and self.changes else -1
        self._affine = self._linear()

    @property
    def start(self) -> Tensor:
        """s_0, (1, D)."""
        return self.trajectory.states[:1]

    def rewards(self, states: Tensor, time: int) -> Tensor:
        """R at time t, (n, D) -> (n, *lanes, A or 1), with the lanes of `CounterfactualReturn.sums`."""
        if self._affine is None:
            return self.objective.sums(states, time)
        return torch.addmm(self._affine[1], states, self._affine[0])

    def kept(self, rewards: Tensor, time: int) -> Tensor:
        """The reward at time t under the observed action, (n, *lanes, A or 1) -> (n, *lanes)."""
        return rewards[..., self.objective.observed[time]] if self.acts else rewards[..., 0]

    def changed(self, rewards: Tensor, time: int) -> Tensor:
        """The rewards at time t under the other actions, (n, *lanes, A or 1) -> (n, A', *lanes)."""
        if self.acts:
            return rewards[..., self.others[time]].movedim(-1, 1)
        return rewards.expand(*rewards.shape[:-1], len(self.others[time])).movedim(-1, 1)

    def keep(self, states: Tensor, time: int) -> Tensor:
        """F_t under the observed action, (n, D) -> (n, D)."""
        self.effort.network_evaluations += len(states)
        action = self.trajectory.observed[time]
        if len(states) <= ROWS:
            return self.trajectory.step(states, time, action)
        return torch.cat([self.trajectory.step(part, time, action) for part in states.split(ROWS)])

    def branch(self, states: Tensor, time: int) -> Tensor:
        """F_t under the other actions, (n, D) -> (n, A', D)."""
        others = self.others[time]
        self.effort.network_evaluations += len(states) * len(others)
        rows = max(1, ROWS // max(1, len(others)))
        if len(states) <= rows:
            return self.trajectory.branch(states, time, others)
        return torch.cat([self.trajectory.branch(part, time, others) for part in states.split(rows)])

    def to_go(self, states: Tensor, time: int) -> Tensor:
        """J_t, the reward from time t on under the observed actions, (n, D) -> (n, *lanes)."""
        return torch.cat([self._rollout(part, time) for part in states.split(ROWS)])

    def final(self, states: Tensor, spent: Tensor) -> tuple[Tensor, Tensor]:
        """The best last reward, which moves no state, and its action, (n,) each, without lanes."""
        return self.ended(states, spent, states.new_zeros(len(states)))

    def ended(self, states: Tensor, spent: Tensor, totals: Tensor) -> tuple[Tensor, Tensor]:
        """The returns of complete paths with the best last action, and that action, from states at T - 1 (n,
        D), changes made (n,), and the rewards before, (n, *lanes), which count in the comparison only with
        lanes.
        """
        time, joined = self.horizon - 1, self.objective.joined
        rewards = self.rewards(states, time)
        before = totals if self.objective.lanes else torch.zeros_like(totals)
        value = joined(before + self.kept(rewards, time))
        action = self.trajectory.observed[time].expand(len(states))
        if time <= self.last:
            other, best = joined(before.unsqueeze(1) + self.changed(rewards, time)).max(-1)
            better = (spent < self.changes) & (other > value)
            value = torch.where(better, other, value)
            action = torch.where(better, self.others[time][best], action)
        return (value if self.objective.lanes else totals + value), action

    def _rollout(self, states: Tensor, time: int) -> Tensor:
        total = self.kept(self.rewards(states, time), time)
        for step in range(time, self.horizon - 1):
            states = self.keep(states, step)
            total = total + self.kept(self.rewards(states, step + 1), step + 1)
        return total

    def _linear(self) -> tuple[Tensor, Tensor] | None:
        """Coefficients (D, 1) and intercept (1,) of an affine reward; None for other rewards."""
        gradient = self.objective.gradient()
        if gradient is None or not torch.isfinite(gradient).all():
            return None
        states = self.trajectory.states
        zero = self.objective.rewards(torch.zeros_like(states[:1]), 0)
        return gradient.to(states).unsqueeze(-1), zero[0].to(states)


@torch.no_grad()
def nearest(objective: CounterfactualReturn, sequence: Tensor, equal: float) -> tuple[Tensor, float]:
    """Undoes the changes of a sequence, (H,) long, that gain nothing: up to a difference of `equal`, two
    returns count as equal. Returns the sequence, and the return of the one found minus its own, in the
    reward's unit.
    """
    if not bool((sequence != objective.observed).any()):
        return sequence, 0.0
    judge, value = _Judge(objective, sequence, equal), None
    while True:
        options = _options(objective, sequence)
        if not len(options):
            break
        values, held = judge(options)
        places = held.nonzero()[:, 0]
        if not len(places):
            break
        joint = _joint(sequence, options[places])
        sequence, value = options[places[0]], values[places[0]]
        if len(places) > 1:
            values, held = judge(joint.unsqueeze(0))
            sequence, value = (joint, values[0]) if bool(held) else (sequence, value)
    return sequence, 0.0 if value is None else judge.found - float(value)


class _Judge:
    """Whether sequences are equally good as the one found."""

    def __init__(self, objective: CounterfactualReturn, sequence: Tensor, equal: float) -> None:
        self.objective, self.equal = objective, equal
        self.several = objective.surrogate.members > 1 and objective.agreement == "all"
        self.before = objective.member_returns(objective.observed) if self.several else None
        values, agreed = self._evaluated(sequence.unsqueeze(0))
        self.found, self.agreed = float(values), bool(agreed)

    def __call__(self, sequences: Tensor) -> tuple[Tensor, Tensor]:
        """Returns (n,) and whether each is equally good, (n,) bool, of sequences (n, H)."""
        values, agreed = self._evaluated(sequences)
        if not math.isfinite(self.found):
            return values, torch.zeros_like(agreed)
        held = (values - self.found).abs() <= self.equal
        # Doing as was done needs nobody's agreement.
        same = (sequences == self.objective.observed).all(-1)
        return values, held & (agreed | same) if self.agreed else held

    def _evaluated(self, sequences: Tensor) -> tuple[Tensor, Tensor]:
        """Returns (n,), and whether every member predicts a gain, (n,) bool."""
        states = self.objective.replay(sequences)
        values = self.objective.returns(states, sequences)
        if self.before is None:
            return values, torch.ones_like(values, dtype=torch.bool)
        rewards = self.objective.member_rewards(states).transpose(-2, -3)
        actions = sequences.unsqueeze(1).expand(-1, rewards.shape[1], -1)
        return values, (taken(rewards, actions).sum(-1) > self.before).all(-1)


def _options(objective: CounterfactualReturn, sequence: Tensor) -> Tensor:
    """The sequences one step back, (n, H) long: with a whole action undone, then with a single dose."""
    observed = objective.observed
    table = objective.surrogate.doses(torch.arange(objective.actions, device=observed.device))
    changed = (sequence != observed).nonzero()[:, 0].tolist()
    replaced = [(step, int(observed[step])) for step in changed]
    for step in changed:
        own, other = table[observed[step]], table[sequence[step]]
        differs = (own != other).nonzero()[:, 0].tolist()
        for dose in differs if len(differs) > 1 else ():
            wanted = other.clone()
            wanted[dose] = own[dose]
            fits = ((table == wanted).all(-1) & objective.choices[step]).nonzero()[:, 0]
            replaced += [(step, int(fits[0]))] if len(fits) else []
    options = sequence.repeat(len(replaced), 1)
    for row, (step, action) in enumerate(replaced):
        options[row, step] = action
    return options


def _joint(sequence: Tensor, options: Tensor) -> Tensor:
    """All steps back at once, (H,) long and (n, H) -> (H,) long; of several at one time step, the first."""
    joint = sequence.clone()
    for option in options.flip(0):
        step = option != sequence
        joint[step] = option[step]
    return joint
