"""Counterfactual return: the return of an episode under other actions.

Given an observed episode tau and a limit k, choose actions a'_0 ... a'_{T-1} that

    maximise  sum_t R(s'_t, a'_t),    s'_0 = s_0,    s'_{t+1} = F_t(s'_t, a'_t),    sum_t 1[a'_t != a_t] <= k,

in the counterfactual process F of the episode's abducted noise. The last action changes no state, so that it
is open to change only if the reward depends on the action. An action with the same doses as the observed one
is no change; actions that the surrogate or the rules (`objectives.change_rules`) exclude are not selected.

The M members of an ensemble are M processes F^m, each with noise of its own. Their returns are joined by
their mean (the default), or by the smallest, which is the largest return that every member grants:

    mean:   R(a) = (1/M) sum_m R^m(a),        worst:   R(a) = min_m R^m(a).

The worst member's return is no sum over steps: searches carry one sum for each member and join them at the
end (`sums`, `joined`). A change is recommended only if every member predicts a gain, unless `agreement` is
"none" (`claims.sequence_rules`); under the worst member's return, they all do. The rewards of the steps in a
record add up to the return; where the worst member counts, they are its own.

Source: Tsirtsis and Gomez-Rodriguez (2023), Eq. 7-9, Def. 1 and Sec. 5.
"""

import math
from collections.abc import Mapping
from difflib import get_close_matches
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from rehearsal_torch.data.decision import Decision, EpisodeCase
from rehearsal_torch.data.estimate import Estimate
from rehearsal_torch.data.finding import Finding
from rehearsal_torch.data.non_finite import NoFiniteValueError
from rehearsal_torch.data.task_compatibility import Kind
from rehearsal_torch.mechanisms.mechanism import replay
from rehearsal_torch.objectives.change_rules import ChangeRules
from rehearsal_torch.objectives.objective import Objective
from rehearsal_torch.objectives.step_reward import BoundedReward, Doses, LinearReward, Reward
from rehearsal_torch.surrogates.surrogate import EpisodeSurrogate, Surrogate

MEMBERS = ("mean", "worst")
AGREEMENT = ("all", "none")
SHOWN = 6  # Variables of a reward whose courses are recorded.


class CounterfactualReturn(Objective):
    """Returns of action sequences of one episode, and their parts; a ValueError for invalid settings.

    Args:
        case: The episode, and which of its actions are fixed.
        reward: R, in the variables' units.
        changes: k, maximum number of actions that differ from the observed ones.
        members: How the returns of an ensemble's members are joined: "mean" or "worst".
        agreement: Which members have to predict a gain, so that a change is recommended: "all" or "none".
        rules: Which changes may be recommended at all; None for any.
    """

    kind: Kind | None = "look_back"

    def __init__(
        self,
        surrogate: EpisodeSurrogate,
        case: EpisodeCase,
        reward: Reward,
        changes: int,
        members: str = "mean",
        agreement: str = "all",
        rules: ChangeRules | None = None,
    ) -> None:
        if changes < 0:
            raise ValueError(f"expected at least 0 changes; got {changes}")
        _check_member_use(members, agreement)
        surrogate = surrogate.chooser(reward.reads)
        self.worst, self.agreement = members == "worst" and surrogate.members > 1, agreement
        self.surrogate, self.case, self.changes = surrogate, case, changes
        self.rules = rules
        if rules is not None:
            rules.check(surrogate.dose_names)
        self._exact, self.reward = reward, reward.tolerant(surrogate.names, surrogate.state_scale())
        self.trajectory = surrogate.trajectory(case.episode)
        if len(case.fixed) not in (0, self.horizon):
            raise ValueError(
                f"expected `fixed` of length {self.horizon}, one for each time step, or empty; got "
                f"{len(case.fixed)}"
            )

    @classmethod
    def check(cls, surrogate: Surrogate, **settings: Any) -> None:
        """A ValueError for an unknown use of members, or variables or doses that the surrogate lacks."""
        _check_member_use(settings.get("members", "mean"), settings.get("agreement", "all"))
        reward, rules = settings.get("reward"), settings.get("rules")
        if isinstance(rules, ChangeRules) and isinstance(surrogate, EpisodeSurrogate):
            rules.check(surrogate.dose_names)
        if not isinstance(reward, Reward) or not isinstance(surrogate, EpisodeSurrogate):
            return
        unknown = [name for name in reward.reads if name not in surrogate.names]
        if unknown:
            similar = sorted({hit for name in unknown for hit in get_close_matches(name, surrogate.names, 1)})
            hint = f" (did you mean {', '.join(similar)}?)" if similar else ""
            raise ValueError(
                f"reward: expected some of the variables that the surrogate models, {list(surrogate.names)}; "
                f"got {unknown}{hint}: choose another reward, such as reward=sofa_organs, or a weighted sum "
                "of variables of the model, reward=linear 'objective.reward.weights={NAME: 1}'"
            )
        missing = [name for name in reward.reads_doses if name not in surrogate.dose_names]
        if missing:
            raise ValueError(
                f"reward.doses: expected some of the doses of the surrogate, {list(surrogate.dose_names)}; "
                f"got {missing}: name its columns as the data set does, or leave these rules out with "
                "reward=sofa_organs"
            )

    @cached_property
    def related(self) -> Mapping[str, Reward]:
        """The rewards reported beside R (`Reward.related`), if the surrogate has the doses of all of them."""
        scale, rewards = self.surrogate.state_scale(), self._exact.related()
        if any(set(reward.reads_doses) - set(self.surrogate.dose_names) for reward in rewards.values()):
            return {}
        return {name: reward.tolerant(self.surrogate.names, scale) for name, reward in rewards.items()}

    @property
    def read(self) -> tuple[str, ...]:
        """The states that the reward reads; all of them if it does not say."""
        return self.reward.reads or (() if self.reward.reads_doses else self.surrogate.names)

    @property
    def horizon(self) -> int:
        """T, the number of states."""
        return self.trajectory.horizon

    @property
    def actions(self) -> int:
        """A, the number of actions."""
        return self.trajectory.actions

    @property
    def observed(self) -> Tensor:
        """The observed actions that may be changed, (H,): H = T - 1, or T if the reward depends on them."""
        return self.trajectory.observed if self.reward.acts else self.trajectory.observed[:-1]

    @cached_property
    def open(self) -> Tensor:
        """The time steps at which a change is allowed, (<= H,) long, ascending."""
        return self.choices.any(-1).nonzero()[:, 0].cpu()

    @cached_property
    def choices(self) -> Tensor:
        """The actions to which each observed action may be changed, (H, A) bool."""
        if self.rules is None or not self.rules.support or self.support is None:
            return self.offered
        return self.offered & (self.support[: len(self.offered)] >= self.rules.support)

    @cached_property
    def support(self) -> Tensor | None:
        """The number of units with each action in a comparable step, (T, A) long; None if unknown."""
        return self.surrogate.support(self.case.episode)

    def supports(self, sequence: Tensor) -> dict[int, int]:
        """The same of each change of a sequence, (H,) long, at the state to which those before it lead."""
        states = self.surrogate.units(self.replay(sequence.unsqueeze(0))[0])
        support = self.surrogate.support(self.case.episode, states)
        steps = (sequence != self.observed).nonzero()[:, 0].tolist()
        return {} if support is None else {step: int(support[step, sequence[step]]) for step in steps}

    def singles(self, sequence: Tensor) -> bool:
        """Whether a sequence, (H,) long, has a single highest dose that the rules exclude."""
        if self.rules is None or not self.surrogate.dose_names:
            return False
        names, observed = self.surrogate.dose_names, self.trajectory.observed
        doses = self.surrogate.doses(torch.arange(self.actions, device=observed.device))
        return self.rules.singles(names, doses, observed, self.whole(sequence))

    @cached_property
    def offered(self) -> Tensor:
        """`choices` without the rule of support."""
        surrogate, allowed = self.surrogate, ~self._same_doses
        if self.rules is not None and surrogate.dose_names:
            observed = self.trajectory.observed
            doses = surrogate.doses(torch.arange(self.actions, device=observed.device))
            allowed &= self.rules.allowed(surrogate.dose_names, doses, observed)[: len(allowed)]
        if surrogate.selectable is not None:
            allowed &= surrogate.selectable.to(allowed.device)
        if len(self.case.fixed):
            allowed &= ~self.case.fixed[: len(allowed), None].to(allowed.device)
        if not self.case.episode.acts_last:
            allowed[self.horizon - 1 :] = False
        return allowed

    @cached_property
    def _same_doses(self) -> Tensor:
        """Whether each action has the same doses as the observed one of the step, (H, A) bool."""
        doses = self.surrogate.doses(torch.arange(self.actions, device=self.observed.device))
        return (doses == doses[self.observed].unsqueeze(1)).all(-1)

    def settled(self, actions: Tensor) -> Tensor:
        """The actions, (..., H) long, with the observed one in place of those that have the same doses."""
        step = torch.arange(len(self.observed), device=self.observed.device)
        return torch.where(self._same_doses[step, actions], self.observed, actions)

    def candidate_actions(self, time: int) -> Tensor:
        """The actions to which the observed one at time t may be changed, ascending; none if it is fixed."""
        return self.choices[time].nonzero()[:, 0]

    @cached_property
    def doses(self) -> Doses:
        """The doses of each action at each step, (T, A, p), of its level or as observed; NaN if not given."""
        surrogate, trajectory = self.surrogate, self.trajectory
        actions = torch.arange(self.actions, device=trajectory.observed.device)
        values = surrogate.doses(actions).to(torch.float64).expand(self.horizon, -1, -1).clone()
        if surrogate.dose_names:
            observed = self.case.episode.columns(surrogate.dose_names).to(values)
            values[torch.arange(self.horizon), trajectory.observed] = observed
        if not self.case.episode.acts_last:
            values[-1] = math.nan
        return Doses(surrogate.dose_names, values)

    def rewards(self, states: Tensor, time: int | None = None) -> Tensor:
        """The members' mean R at states, (..., D) of a step or (..., T, D) -> (..., A or 1)."""
        if self.surrogate.members > 1:
            return self.member_rewards(states, time).mean(-2)
        return self.reward(self.surrogate.units(states), self.surrogate.names, self._doses(time, self.reward))

    def member_rewards(self, states: Tensor, time: int | None = None, reward: Reward | None = None) -> Tensor:
        """R, or another reward, of each member, (..., M, A) or (..., M, 1); see `rewards`."""
        reward = reward or self.reward
        doses = self._doses(time, reward)
        doses = None if doses is None else Doses(doses.names, doses.values.unsqueeze(-3))
        return reward(self.surrogate.member_units(states), self.surrogate.names, doses)

    def sums(self, states: Tensor, time: int | None = None) -> Tensor:
        """The terms over steps of `joined`: `rewards`, or `member_rewards` if the worst counts."""
        return self.member_rewards(states, time) if self.worst else self.rewards(states, time)

    @property
    def lanes(self) -> tuple[int, ...]:
        """(M,) if one sum is carried for each member, () otherwise."""
        return (self.surrogate.members,) if self.worst else ()

    def joined(self, totals: Tensor) -> Tensor:
        """The returns of summed rewards, (..., *lanes) -> (...)."""
        return totals.amin(-1) if self.worst else totals

    def highest_rewards(self, lower: Tensor, upper: Tensor, time: int, actions: Tensor) -> Tensor:
        """Bounds on R over boxes, (..., D), under actions (A',): (..., *lanes, A' or 1), else a TypeError."""
        if not isinstance(self.reward, BoundedReward):
            raise TypeError(f"{type(self.reward).__name__} has no bound over boxes of states")
        ends = [self.surrogate.member_units(end) for end in (lower, upper)]
        doses = Doses(self.doses.names, self.doses.values[time, actions]) if self.reward.acts else None
        bound = self.reward.highest(ends[0], ends[1], self.surrogate.names, doses)
        return bound if self.worst else bound.mean(-2)

    def member_returns(self, actions: Tensor) -> Tensor:
        """The return of an action sequence by each member, (H,) long -> (M,)."""
        return self.by_member(self.replay(actions.unsqueeze(0))[0], actions).sum(-1)

    def guarded_gains(self, actions: Tensor) -> dict[str, Tensor]:
        """Each member's predicted gain of a sequence, (H,) -> (M,), by each reward that may not fall."""
        states, before = self.replay(actions.unsqueeze(0))[0], self.trajectory.states
        observed = self.trajectory.observed
        chosen = self.whole(actions)
        return {
            name: (self.by_member(states, chosen, reward) - self.by_member(before, observed, reward)).sum(-1)
            for name, reward in self.related.items()
            if name in self._exact.guarded()
        }

    def claimed(self, actions: Tensor, reward: Reward | None = None) -> Tensor | None:
        """Gains of sequences, (n, H) long, at each step, by refits of the claimant, (R, n, T), if any."""
        claimant, reward = self.surrogate.claimant, reward or self.reward
        replayed = None if claimant is None else claimant.replayed(self.case.episode, actions)
        if replayed is None:
            return None
        names, doses = self.surrogate.names, self._doses(None, reward)
        states = self.surrogate.member_units(self.trajectory.states)[:, 0]
        before = taken(reward(states, names, doses), self.whole(self.observed))
        after = torch.stack([self.whole(sequence) for sequence in actions]).expand(len(replayed), -1, -1)
        return taken(reward(replayed, names, doses), after) - before

    def whole(self, actions: Tensor) -> Tensor:
        """The actions of all T steps, (T,) long."""
        return torch.cat([actions, self.trajectory.observed[len(actions) :]])

    def by_member(self, states: Tensor, actions: Tensor, reward: Reward | None = None) -> Tensor:
        """Each member's reward of the actions at each step, (T, M D), (H,) -> (M, T)."""
        rewards = self.member_rewards(states, None, reward).transpose(0, 1)
        return taken(rewards, actions.expand(len(rewards), -1))

    def gradient(self) -> Tensor | None:
        """dR/dx in the trajectory's coordinates, (D,), or (M D,) for an ensemble; None if not linear."""
        if self.worst or not isinstance(self.reward, LinearReward):
            return None
        members = self.surrogate.members
        gradient = self.reward.gradient(self.surrogate.names, self.surrogate.state_scale())
        return gradient if members == 1 else gradient.repeat(members) / members

    def _doses(self, time: int | None, reward: Reward) -> Doses | None:
        if not reward.acts:
            return None
        doses = self.doses
        return doses if time is None else Doses(doses.names, doses.values[time])

    @cached_property
    def constant(self) -> float:
        """C, the Lipschitz constant of the reward in the trajectory's coordinates; infinite if unknown."""
        constant = self.reward.lipschitz(self.surrogate.names, self.surrogate.state_scale())
        return constant if self.worst else constant / math.sqrt(self.surrogate.members)

    def rounding(self, share: float, size: float) -> float:
        """The tolerance within which two returns count as equal: `share` of their size, in the reward's unit;
        as rewards may have an offset, at most `share` of a thousand times the effect of the states, plus the
        floating-point error at this size.
        """
        error = 8 * torch.finfo(torch.float64).eps * size
        return min(share * size, 1e3 * share * self.constant * self.horizon + error)

    def __call__(self, actions: Tensor) -> Tensor:
        """The return of action sequences, (..., H) long -> (...)."""
        flat = actions.reshape(-1, len(self.observed))
        return self.returns(self.replay(flat), flat).reshape(actions.shape[:-1])

    def returns(self, states: Tensor, actions: Tensor) -> Tensor:
        """The returns of trajectories under their actions, (..., T, D), (..., H) long -> (...)."""
        rewards = self.sums(states)
        if self.reward.acts:
            index = actions.view(*actions.shape, *(1 for _ in self.lanes), 1)
            rewards = rewards.gather(-1, index.expand(*rewards.shape[:-1], 1))
        return self.joined(rewards.sum((-1, -2 - len(self.lanes))))

    def replay(self, actions: Tensor) -> Tensor:
        """The states under actions, (n, H) long -> (n, T, D), in the trajectory's coordinates."""
        return replay(self.trajectory, actions)

    def outcome(self) -> float:
        """The observed return, from the observed states, not a replay; a NoFiniteValueError if not finite."""
        total = float(self.returns(self.trajectory.states, self.observed))
        if not math.isfinite(total):
            raise NoFiniteValueError(
                f"{self.case.identity}: expected a finite return of the observed episode; got {total}: "
                "look for extreme values in the episode, or train the model again"
            )
        return total

    def sequence(self, decision: Decision) -> Tensor:
        """The action sequence under a decision, (H,) long; a ValueError if its changes are not allowed."""
        sequence, open_steps = self.observed.clone(), self.open.tolist()
        changed_steps = [
            step
            for step, action in decision.actions().items()
            if step in open_steps and action != int(self.observed[step])
        ]
        if len(changed_steps) > self.changes:
            raise ValueError(
                f"{self.case.identity}: expected at most {self.changes} changed actions; got "
                f"{len(changed_steps)}, at {changed_steps}"
            )
        for step, action in decision.actions().items():
            if step not in open_steps or not 0 <= action < self.actions:
                allowed = f"time steps {open_steps} and actions 0 ... {self.actions - 1}"
                raise ValueError(
                    f"{self.case.identity}: action[{step}] = {action} is not allowed: expected {allowed}"
                )
            sequence[step] = action
        return self.settled(sequence)

    def warnings(self) -> tuple[Finding, ...]:
        """Where the episode leaves the range of the observations."""
        return self.surrogate.outside(self.case.episode)

    def starts(self, count: int) -> Tensor:
        """The observed sequence, (1, H)."""
        return self.observed.unsqueeze(0)[:count]


def _check_member_use(members: str, agreement: str) -> None:
    if members not in MEMBERS:
        raise ValueError(f"objective.members: expected {' or '.join(MEMBERS)}; got {members!r}")
    if agreement not in AGREEMENT:
        raise ValueError(f"objective.agreement: expected {' or '.join(AGREEMENT)}; got {agreement!r}")


def taken(rewards: Tensor, actions: Tensor) -> Tensor:
    """The rewards of the actions taken, (..., T, A) or (..., T, 1) and (..., H) -> (..., T)."""
    if rewards.shape[-1] > 1:
        rewards = rewards.gather(-1, actions.unsqueeze(-1))
    return rewards[..., 0]


@torch.no_grad()
def return_record(objective: CounterfactualReturn, decision: Decision) -> dict[str, Any]:
    """The effect of a decision step by step, as plain data.

    Returns:
        ``horizon`` T, ``changes`` k, ``actions`` and ``observed_actions``, ``rewards`` and
        ``observed_rewards`` (T numbers each); ``dose_names``, and by step ``observed_doses``, as given,
        ``level_doses``, those of the observed actions' levels, and ``doses``, those of the actions, where a
        dose that keeps its level stays as it was given; the returns ``value`` and ``observed``, and
        ``improvement`` (value - observed) / |observed|. For an ensemble ``member_gains`` (M), and
        ``rewards_lower`` and ``rewards_upper``, the range of the members' rewards at each step; ``related``,
        the returns ``value`` and ``observed`` by each related reward (`Reward.related`). If another
        model claims the gain, all of these are by that model, ``improvement_ends`` is its interval, and
        ``searched`` the return that the search found. ``support``, if known: step of a change to the number
        of units with that dose in a comparable step. ``variables``: the first `SHOWN` variables that the
        reward reads, in their units, ``observed`` and ``predicted`` by the model that searched.
    """
    sequence, observed, outcome = objective.sequence(decision), objective.observed, objective.outcome()
    observed_doses, level_doses = given_doses(objective), objective.surrogate.doses(observed)
    chosen_doses = objective.surrogate.doses(sequence)
    before = objective.trajectory.states
    changed = bool((sequence != observed).any())
    value = float(objective(sequence)) if changed else outcome
    states = objective.replay(sequence.unsqueeze(0))[0] if changed else before
    record = {
        "horizon": objective.horizon,
        "changes": objective.changes,
        "actions": sequence.tolist(),
        "observed_actions": observed.tolist(),
        "rewards": _step_rewards(objective, states, sequence),
        "observed_rewards": _step_rewards(objective, before, observed),
        "dose_names": list(objective.surrogate.dose_names),
        "doses": torch.where(chosen_doses == level_doses, observed_doses, chosen_doses).tolist(),
        "observed_doses": observed_doses.tolist(),
        "level_doses": level_doses.tolist(),
        "value": value,
        "observed": outcome,
        "improvement": (value - outcome) / abs(outcome) if outcome else 0.0,
        "variables": _courses(objective, before, states),
        **_member_ranges(objective, states, sequence),
        **_related_returns(objective, states, sequence),
    }
    if changed and objective.support is not None:
        record["support"] = {str(step): units for step, units in objective.supports(sequence).items()}
    if not changed or decision.gain is None:
        return record
    return record | _claimed_entries(objective, sequence, decision.gain, record)


def _claimed_entries(
    objective: CounterfactualReturn, sequence: Tensor, gain: Estimate, record: Mapping[str, Any]
) -> dict[str, Any]:
    """The entries by the claimant: the refits' mean rewards, scaled to its gain, and their 95 % ranges."""
    steps = _claimed_gains(objective, sequence)
    assert gain.lower is not None
    assert gain.upper is not None
    total = steps.sum(-1)
    typical = steps[(total - total.median()).abs() <= 3 * (total - total.median()).abs().median()].mean(0)
    # The difference to the claimed gain is spread over the steps in proportion to their sizes.
    typical = typical + (gain.point - typical.sum()) * typical.abs() / typical.abs().sum().clamp_min(1e-300)
    observed, outcome = steps.new_tensor(record["observed_rewards"]), record["observed"]
    lower, upper = torch.quantile(steps, steps.new_tensor([0.025, 0.975]), dim=0)
    related = {}
    for name, returns in record.get("related", {}).items():
        reward_gains = _claimed_gains(objective, sequence, objective.related[name]).sum(-1)
        related[name] = returns | {"value": returns["observed"] + float(reward_gains.median())}
    baseline, greatest = abs(outcome) or math.inf, objective.reward.greatest
    lower, upper = torch.minimum(lower, typical), torch.maximum(upper, typical)
    return {
        "rewards": (observed + typical).clamp(max=greatest).tolist(),
        "rewards_lower": (observed + lower).clamp(max=greatest).tolist(),
        "rewards_upper": (observed + upper).clamp(max=greatest).tolist(),
        "value": outcome + gain.point,
        "searched": record["value"],
        "improvement": gain.point / baseline,
        "improvement_ends": [gain.lower / baseline, gain.upper / baseline],
        **({"related": related} if related else {}),
    }


def _claimed_gains(objective: CounterfactualReturn, sequence: Tensor, reward: Reward | None = None) -> Tensor:
    """The claimed gain of a sequence, (H,) long, at each step, by each refit with a finite answer."""
    steps = objective.claimed(sequence.unsqueeze(0), reward)
    assert steps is not None
    return steps[:, 0][steps[:, 0].isfinite().all(-1)]


def trajectory_record(objective: Any, decision: Decision) -> dict[str, Any]:
    """The same, or nothing for a decision that has no steps."""
    return return_record(objective, decision) if isinstance(objective, CounterfactualReturn) else {}


def given_doses(objective: CounterfactualReturn) -> Tensor:
    """The doses given with each action that may be changed, (H, p); those of its level if unknown."""
    names, episode = objective.surrogate.dose_names, objective.case.episode
    levels = objective.surrogate.doses(objective.observed)
    if not names or not all(name in episode.names for name in names):
        return levels
    return episode.columns(names)[: len(levels)].to(levels)


def _step_rewards(objective: CounterfactualReturn, states: Tensor, actions: Tensor) -> list[float]:
    if objective.worst:
        by_member = objective.by_member(states, actions)
        rewards = by_member[int(by_member.sum(-1).argmin())]
    else:
        rewards = taken(objective.rewards(states), actions)
    numbers: list[float] = rewards.tolist()
    return numbers


def _courses(objective: CounterfactualReturn, before: Tensor, after: Tensor) -> dict[str, Any]:
    """The courses of the reward's variables; of an ensemble, the means of its members."""
    surrogate = objective.surrogate
    names = [name for name in objective.reward.reads if name in surrogate.names][:SHOWN]
    courses = {"observed": surrogate.units(before), "predicted": surrogate.units(after)}
    return {
        name: {
            key: [float(f"{value:.6g}") for value in states[..., surrogate.names.index(name)].tolist()]
            for key, states in courses.items()
        }
        for name in names
    }


def _member_ranges(objective: CounterfactualReturn, states: Tensor, actions: Tensor) -> dict[str, Any]:
    """The members' gains, and the range of their rewards at each step; empty for a single model."""
    if objective.surrogate.members == 1:
        return {}
    by_member = objective.by_member(states, actions)
    return {
        "member_gains": (by_member.sum(-1) - objective.member_returns(objective.observed)).tolist(),
        "rewards_lower": by_member.amin(0).tolist(),
        "rewards_upper": by_member.amax(0).tolist(),
    }


def _related_returns(objective: CounterfactualReturn, states: Tensor, actions: Tensor) -> dict[str, Any]:
    """The returns by the related rewards; empty if there are none, or the surrogate lacks their doses."""
    before, observed = objective.trajectory.states, objective.trajectory.observed
    chosen = objective.whole(actions)
    returns_by_reward = {}
    for name, reward in objective.related.items():
        ends = {"value": (states, chosen), "observed": (before, observed)}
        returns = {end: objective.by_member(*path, reward).sum(-1) for end, path in ends.items()}
        join = torch.amin if objective.worst else torch.mean
        returns_by_reward[name] = {end: float(join(totals)) for end, totals in returns.items()}
    return {"related": returns_by_reward} if returns_by_reward else {}
