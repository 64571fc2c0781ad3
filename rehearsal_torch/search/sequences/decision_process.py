"""The counterfactual decision process in batches, and the decisions made from action sequences.

Given an observed episode and a limit of k changes, a node (x, l, t) is a state x at time t on a path that has
made l changes so far. Keeping the observed action leads to (F_t(x, a_t), l, t + 1); each of the other
actions, if l < k and step t is open, to (F_t(x, a), l + 1, t + 1). Once no change or no open step remains,
the reward J_t(x) of the rest follows from one rollout under the observed actions.

The answer of every search is an action sequence, evaluated by the same objective: its return, the observed
return, and the search effort. Changes that gain nothing are undone before (`nearest`). The effective
branching factor b of a search that expanded N nodes of an episode of T steps solves

    N = 1 + b + b^2 + ... + b^T.

Several sequences may have the largest return, since a change may have no effect. From the sequence found, two
kinds of steps lead back towards the observed actions:

    a whole action    the observed action takes the place of a changed one
    a single dose     one dose of a changed action becomes that of the observed one, where the action with
                      these doses may be chosen

All of them, at most k (p + 1) sequences for k changes of p doses, are evaluated in one batch. Those whose
return equals that of the sequence found, up to the tolerance of the search, are taken: all together if that
holds for them jointly, else the first, with whole actions first, until none is left. Differences do not add
up, since the return is always compared with that of the sequence found. A sequence on which all members of an
ensemble agree (`claims.sequence_rules`) is not exchanged for one on which they do not. Steps back that gain
are not taken, and sequences with fewer changes at other time steps not looked for.

Source: Tsirtsis and Gomez-Rodriguez (2023), Eq. 7-8 and Sec. 5.
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
    """The decision that recommends an action sequence.

    Args:
        actions: The best sequence found, (H,) long; calling the objective gives the reported value.
        gap: Upper bound on how far the optimum lies above the value; 0 if proven optimal, None if unknown.
        equal: The difference of equal returns; changes whose undoing loses no more are undone, if not None.
        declines: Whether a sequence no better than the observed one is declined; else it carries a finding.
        by_hand: Whether a person made the sequence, so that others are unknown.
    """
    observed, sequence = objective.observed, objective.settled(actions.to(objective.observed))
    if equal is not None:
        sequence, loss = nearest(objective, sequence, equal)
        gap = gap if not gap else gap + loss if gap + loss > equal else 0.0
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
    branching = branching_factor(effort.expanded, objective.horizon)
    work = asdict(effort) | {"effective_branching_factor": branching, "gap": gap, "proven": gap == 0.0}
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
        open_steps = [time for time, others in enumerate(self.others) if len(others)]
        self.last = open_steps[-1] if open_steps and self.changes else -1
        self._affine = self._affine_reward()

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
        D), changes made (n,), and the rewards before, (n, *lanes).
        """
        time, joined = self.horizon - 1, self.objective.joined
        rewards = self.rewards(states, time)
        before = totals if self.objective.lanes else torch.zeros_like(totals)
        value = joined(before + self.kept(rewards, time))
        action = self.trajectory.observed[time].expand(len(states))
        if time <= self.last:
            best_changed, best = joined(before.unsqueeze(1) + self.changed(rewards, time)).max(-1)
            better = (spent < self.changes) & (best_changed > value)
            value = torch.where(better, best_changed, value)
            action = torch.where(better, self.others[time][best], action)
        return (value if self.objective.lanes else totals + value), action

    def _rollout(self, states: Tensor, time: int) -> Tensor:
        total = self.kept(self.rewards(states, time), time)
        for step in range(time, self.horizon - 1):
            states = self.keep(states, step)
            total = total + self.kept(self.rewards(states, step + 1), step + 1)
        return total

    def _affine_reward(self) -> tuple[Tensor, Tensor] | None:
        """Coefficients (D, 1) and intercept (1,) of an affine reward; None for other rewards."""
        gradient = self.objective.gradient()
        if gradient is None or not torch.isfinite(gradient).all():
            return None
        states = self.trajectory.states
        zero = self.objective.rewards(torch.zeros_like(states[:1]), 0)
        return gradient.to(states).unsqueeze(-1), zero[0].to(states)


@torch.no_grad()
def nearest(objective: CounterfactualReturn, sequence: Tensor, equal: float) -> tuple[Tensor, float]:
    """Undoes changes of a sequence, (H,) long, that gain at most `equal`; returns it and the loss."""
    if not bool((sequence != objective.observed).any()):
        return sequence, 0.0
    judge, value = _Comparison(objective, sequence, equal), None
    while True:
        options = _steps_back(objective, sequence)
        if not len(options):
            break
        values, equal_mask = judge(options)
        rows = equal_mask.nonzero()[:, 0]
        if not len(rows):
            break
        joint = _joined_steps(sequence, options[rows])
        sequence, value = options[rows[0]], values[rows[0]]
        if len(rows) > 1:
            values, equal_mask = judge(joint.unsqueeze(0))
            sequence, value = (joint, values[0]) if bool(equal_mask) else (sequence, value)
    return sequence, 0.0 if value is None else judge.found - float(value)


class _Comparison:
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
        equal_mask = (values - self.found).abs() <= self.equal
        # The observed sequence needs no agreement.
        unchanged = (sequences == self.objective.observed).all(-1)
        return values, equal_mask & (agreed | unchanged) if self.agreed else equal_mask

    def _evaluated(self, sequences: Tensor) -> tuple[Tensor, Tensor]:
        """Returns (n,), and whether every member predicts a gain, (n,) bool."""
        states = self.objective.replay(sequences)
        values = self.objective.returns(states, sequences)
        if self.before is None:
            return values, torch.ones_like(values, dtype=torch.bool)
        rewards = self.objective.member_rewards(states).transpose(-2, -3)
        actions = sequences.unsqueeze(1).expand(-1, rewards.shape[1], -1)
        return values, (taken(rewards, actions).sum(-1) > self.before).all(-1)


def _steps_back(objective: CounterfactualReturn, sequence: Tensor) -> Tensor:
    """The sequences one step back, (n, H) long: with a whole action undone, then with a single dose."""
    observed = objective.observed
    table = objective.surrogate.doses(torch.arange(objective.actions, device=observed.device))
    changed = (sequence != observed).nonzero()[:, 0].tolist()
    replacements = [(step, int(observed[step])) for step in changed]
    for step in changed:
        observed_doses, chosen_doses = table[observed[step]], table[sequence[step]]
        differing = (observed_doses != chosen_doses).nonzero()[:, 0].tolist()
        for dose in differing if len(differing) > 1 else ():
            doses = chosen_doses.clone()
            doses[dose] = observed_doses[dose]
            matches = ((table == doses).all(-1) & objective.choices[step]).nonzero()[:, 0]
            replacements += [(step, int(matches[0]))] if len(matches) else []
    options = sequence.repeat(len(replacements), 1)
    for row, (step, action) in enumerate(replacements):
        options[row, step] = action
    return options


def _joined_steps(sequence: Tensor, options: Tensor) -> Tensor:
    """All steps back at once, (H,) long and (n, H) -> (H,) long; of several at one time step, the first."""
    joint = sequence.clone()
    for option in options.flip(0):
        step = option != sequence
        joint[step] = option[step]
    return joint
