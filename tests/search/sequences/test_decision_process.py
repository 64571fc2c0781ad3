"""The process: rewards folded into one product, exact rewards to go, counted evaluations; and the decision to
which a sequence amounts."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from rehearsal_torch.data.decision import Decision, EpisodeCase
from rehearsal_torch.data.finding import Finding
from rehearsal_torch.objectives.counterfactual_return import CounterfactualReturn
from rehearsal_torch.objectives.step_reward import LinearReward
from rehearsal_torch.search.search import Budget
from rehearsal_torch.search.sequences.decision_process import (
    NONE_FOUND,
    PROVEN_BEST,
    CounterfactualProcess,
    Effort,
    branching_factor,
    nearest,
    sequence_decision,
)
from tests.toys.episodes import KnownTruth, TwoDoses, equation_episode, idle_dose_episode, transition_episode
from tests.toys.scored_episodes import scored_episode, weighed_episode


def test_a_logarithm_is_not_folded() -> None:
    objective = transition_episode(0)
    objective.surrogate.rescale.logged[0] = True
    objective = type(objective)(objective.surrogate, objective.case, LinearReward({"x0": -1.0}), 2)
    states = torch.rand(9, 2, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    torch.testing.assert_close(
        CounterfactualProcess(objective, Effort()).rewards(states, 0),
        objective.rewards(states, 0),
        rtol=0,
        atol=1e-12,
    )


@pytest.mark.parametrize("make", [transition_episode, equation_episode])
def test_the_observed_path_is_worth_the_outcome(make) -> None:
    objective, effort = make(0), Effort()
    process = CounterfactualProcess(objective, effort)
    for time in range(5):
        ahead = objective.rewards(objective.trajectory.states[time:])
        expected = ahead.gather(-1, objective.observed[time:, None]).sum() if process.acts else ahead.sum()
        assert float(process.to_go(objective.trajectory.states[time : time + 1], time)) == pytest.approx(
            float(expected), abs=1e-10
        )
    assert effort.network_evaluations == 4 + 3 + 2 + 1


def test_pieces_give_what_the_whole_gives(monkeypatch: pytest.MonkeyPatch) -> None:
    objective = transition_episode(0, levels=4)
    states = torch.randn(50, 2, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    whole = CounterfactualProcess(objective, Effort())
    expected = whole.keep(states, 1), whole.branch(states, 1), whole.to_go(states, 1)
    monkeypatch.setattr("rehearsal_torch.search.sequences.decision_process.ROWS", 7)
    effort = Effort()
    process = CounterfactualProcess(objective, effort)
    for one, other in zip(
        (process.keep(states, 1), process.branch(states, 1), process.to_go(states, 1)), expected, strict=True
    ):
        torch.testing.assert_close(one, other, rtol=0, atol=1e-12)
    assert effort.network_evaluations == 50 + 150 + 150


@pytest.mark.parametrize("factor", [1.0, 2.0, 3.5, 900.0])
@pytest.mark.parametrize("horizon", [1, 3, 8])
def test_the_branching_factor_is_that_of_a_full_tree(factor, horizon):
    nodes = sum(factor**power for power in range(horizon + 1))
    assert branching_factor(nodes, horizon) == pytest.approx(factor, rel=1e-9)


def test_no_more_nodes_than_a_path_has_are_a_factor_of_one() -> None:
    for horizon in (1, 4, 9):
        for nodes in (1, horizon, horizon + 1):
            assert branching_factor(nodes, horizon) == 1.0
        assert branching_factor(horizon + 2, horizon) > 1.01


def free_equal_prices(**drawn: Any) -> CounterfactualReturn:
    objective = equation_episode(0, **drawn)
    objective.reward.price[:] = 0.25
    return objective


LAST = {
    "prices of actions": lambda: equation_episode(3, actions=4),
    "equal prices": free_equal_prices,
    "a last step that is fixed": lambda: equation_episode(3, fixed=(4,)),
    "no change allowed": lambda: equation_episode(3, changes=0),
    "no reward of actions": lambda: equation_episode(3, acts=False),
    "scores of doses": lambda: scored_episode(3, levels=4, dosed=True),
    "the worst of two members": lambda: scored_episode(3, levels=4, members=2, dosed=True, use="worst"),
    "the worst of three members": lambda: scored_episode(4, members=3, dosed=True, use="worst"),
    "the worst, the last step fixed": lambda: scored_episode(
        4, members=2, dosed=True, use="worst", fixed=(4,)
    ),
    "the worst, without doses": lambda: weighed_episode(4),
}


def ended_alone(objective: CounterfactualReturn, state: Tensor, spent: int, total: Tensor) -> tuple:
    """The best return of one path and its last action: the observed one unless another one is better."""
    last = objective.horizon - 1
    rewards = objective.sums(state.unsqueeze(0), last)[0]
    observed = int(objective.trajectory.observed[last])
    may = objective.candidate_actions(last).tolist() if last < len(objective.observed) else []
    sums = rewards.expand(*objective.lanes, objective.actions)
    found = [
        (float(objective.joined(total + sums[..., action])), action)
        for action in [observed, *(may if spent < objective.changes else [])]
    ]
    return max(found, key=lambda each: each[0])


@pytest.mark.parametrize("name", LAST)
def test_the_last_action_is_changed_only_for_a_higher_return_and_within_the_limit(name: str) -> None:
    objective = LAST[name]()
    process, stream = CounterfactualProcess(objective, Effort()), torch.Generator().manual_seed(0)
    near = objective.replay(torch.randint(objective.actions, (12, len(objective.observed)), generator=stream))
    states, spent = near[:, -1], torch.arange(12) % (objective.changes + 1)
    totals = torch.randn(12, *objective.lanes, generator=stream, dtype=torch.float64)
    values, actions = process.ended(states, spent, totals)
    for row in range(12):
        value, action = ended_alone(objective, states[row], int(spent[row]), totals[row])
        assert float(values[row]) == pytest.approx(value, abs=1e-10)
        assert int(actions[row]) == action
    if not objective.lanes:
        alone, same = process.final(states, spent)
        torch.testing.assert_close(totals + alone, values, rtol=0, atol=0)
        assert torch.equal(same, actions)


@pytest.mark.parametrize("name", LAST)
def test_rewards_are_split_into_that_of_the_observed_and_those_of_the_other_actions(name: str) -> None:
    objective = LAST[name]()
    process = CounterfactualProcess(objective, Effort())
    for time in range(len(objective.observed)):
        states = objective.trajectory.states[:4]
        rewards = process.rewards(states, time)
        every = objective.sums(states, time).expand(4, *objective.lanes, objective.actions)
        kept, changed = process.kept(rewards, time), process.changed(rewards, time)
        others = objective.candidate_actions(time).tolist()
        assert changed.shape == (4, len(others), *objective.lanes)
        torch.testing.assert_close(kept, every[..., int(objective.observed[time])], rtol=0, atol=1e-12)
        for place, action in enumerate(others):
            torch.testing.assert_close(changed[:, place], every[..., action], rtol=0, atol=1e-12)


def test_the_last_step_that_may_change_is_known() -> None:
    def last(**drawn: Any) -> int:
        return CounterfactualProcess(equation_episode(0, **drawn), Effort()).last

    assert (last(), last(acts=False), last(fixed=(4,)), last(fixed=(3, 4))) == (4, 3, 3, 2)
    assert (last(fixed=(1, 2, 3, 4)), last(fixed=range(5)), last(changes=0), last(actions=1)) == (
        0,
        -1,
        -1,
        -1,
    )


def test_a_search_begins_at_the_first_state() -> None:
    objective = transition_episode(0)
    made = CounterfactualProcess(objective, Effort())
    assert made.start.shape == (1, 2)
    assert torch.equal(made.start, objective.trajectory.states[:1])
    assert made.rewards(made.start, 0).dtype == torch.float64
    assert Effort() == Effort(expanded=0, generated=0, network_evaluations=0)


class Raised(LinearReward):
    """A weight on one variable, with an offset."""

    offset = 1e6

    def __call__(self, states: Tensor, *rest: Any) -> Tensor:
        return super().__call__(states, *rest) + self.offset


@pytest.mark.parametrize("weight", [-0.02, -1.0, -50.0])
def test_an_affine_reward_with_a_large_offset_keeps_its_differences(weight: float) -> None:
    plain = transition_episode(1)
    states = torch.rand(9, 2, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    for offset in (1e6, 0.0, -1e6):
        reward = Raised({"x0": weight})
        reward.offset = offset
        objective = CounterfactualReturn(plain.surrogate, plain.case, reward, 2)
        told = CounterfactualProcess(objective, Effort()).rewards(states, 0)
        torch.testing.assert_close(told, objective.rewards(states, 0), rtol=0, atol=1e-8)


LOSS = "by the model's own estimate no better than the observed actions"


def added(x: Tensor, a: Tensor) -> Tensor:
    """Action 1 adds 1, action 2 takes 1 away, action 3 is undefined."""
    return x + torch.tensor([0.0, 1.0, -1.0, torch.nan], dtype=torch.float64)[a].unsqueeze(-1)


def whole_numbers(map_: Callable[[Tensor, Tensor], Tensor] = added, changes: int = 3) -> CounterfactualReturn:
    """Four states of 0, whose sum is the return: the first change counts three times, the last one once."""
    model = KnownTruth(1, 4, map_, 1.0)
    episode = model.episode("whole", torch.zeros(4, 1, dtype=torch.float64), torch.zeros(4).long())
    return CounterfactualReturn(model, EpisodeCase(episode), LinearReward({"x0": 1.0}), changes)


def decided(sequence: list[int], gap: float | None = None, effort: Effort | None = None, **rest) -> Decision:
    return sequence_decision(
        whole_numbers(), torch.tensor(sequence), effort or Effort(), Budget(), search="own", gap=gap, **rest
    )


def test_a_gain_is_recommended_with_its_doses_and_its_effort() -> None:
    decision = decided([1, 0, 1], gap=0.5, effort=Effort(9, 20, 33), depth=7)
    assert (decision.status, decision.reason, decision.warnings) == ("may", None, ())
    assert (decision.value, decision.estimate.point, decision.baseline.point) == (4.0, 4.0, 0.0)
    assert decision.actions() == {0: 1, 2: 1}
    assert decision.doses == {"action[0]": (1.0,), "action[2]": (1.0,)}
    assert decision.trace == {
        "search": "own",
        "expanded": 9,
        "generated": 20,
        "network_evaluations": 33,
        "effective_branching_factor": branching_factor(9, 4),
        "gap": 0.5,
        "proven": False,
        "depth": 7,
    }


@pytest.mark.parametrize("sequence", [[2, 0, 0], [1, 2, 2]])
def test_no_gain_is_declined_or_warned_of(sequence: list[int]) -> None:
    """The second one returns what was returned."""
    value = float(whole_numbers()(torch.tensor(sequence)))
    declined = decided(sequence)
    assert (declined.reason.kind, declined.alteration, declined.value) == ("no_gain", None, 0.0)
    assert declined.reason.text == f"{LOSS} ({value:g} against 0)"
    assert declined.estimate.point == declined.baseline.point == 0.0
    assert decided(sequence, reason="told").reason.text == "told"
    made = decided(sequence, declines=False)
    assert (made.status, made.value, made.reason) == ("may", value, None)
    assert made.warnings == (f"{LOSS} ({value:g} against 0)",)
    assert made.estimate.point == value


def test_an_undefined_return_is_refused() -> None:
    for declines in (True, False):
        decision = decided([1, 3, 0], declines=declines, reason="told")
        assert (decision.alteration, decision.estimate) == (None, None)
        assert (
            decision.reason.text == "the best sequence found has the return nan: the model is undefined there"
        )
        assert decision.baseline.point == 0.0
        assert decision.doses == {}


def test_the_reason_says_what_is_known_of_other_sequences() -> None:
    assert decided([0, 0, 0], gap=0.0).reason == Finding("no_gain", PROVEN_BEST)
    assert decided([0, 0, 0], gap=0.0).trace["proven"] is True
    assert decided([0, 0, 0], gap=None).reason == Finding("no_gain", NONE_FOUND)
    assert decided([0, 0, 0], gap=None).trace["proven"] is False
    assert decided([0, 0, 0], by_hand=True).reason is None
    assert decided([1, 0, 0], by_hand=True, reason="told").reason.text == "told"


@pytest.mark.parametrize(
    ("gap", "expected"), [(None, None), (0.0, 0.0), (0.5, 0.0), (1.0, 0.0), (1.5, 2.5), (7.0, 8.0)]
)
def test_the_gap_grows_by_what_is_undone_and_is_none_up_to_what_counts_as_equal(gap, expected) -> None:
    # The last change gains 1, which is undone where returns count as equal up to 2.
    decision = decided([1, 1, 1], gap=gap, equal=1.0)
    assert decision.actions() == {0: 1, 1: 1}
    decision = decided([0, 0, 1], gap=gap, equal=2.0)
    assert decision.trace["gap"] == expected
    assert decision.trace["proven"] == (expected == 0.0)
    assert decision.reason.text == (PROVEN_BEST if expected == 0.0 else NONE_FOUND)


def test_changes_that_gain_nothing_stay_where_no_tolerance_is_given() -> None:
    assert decided([1, 1, 2]).actions() == {0: 1, 1: 1, 2: 2}
    assert decided([1, 2, 1], equal=0.0).actions() == {0: 1, 1: 2, 2: 1}


def test_an_action_of_the_same_doses_is_what_was_done(monkeypatch) -> None:
    objective = whole_numbers()
    monkeypatch.setattr(objective.surrogate, "doses", lambda actions: (actions // 2).unsqueeze(-1).double())
    made = sequence_decision(
        objective, torch.tensor([1, 1, 0]), Effort(), Budget(), search="own", gap=None, declines=False
    )
    assert (made.alteration, made.value, made.reason.text) == (None, 0.0, NONE_FOUND)


def test_a_budget_that_ran_out_is_named_in_the_trace() -> None:
    budget = Budget(1e-9)
    assert budget.out()
    made = sequence_decision(
        whole_numbers(), torch.tensor([1, 0, 0]), Effort(), budget, search="own", gap=0.5
    )
    assert made.trace["stopped"] == "stopped after budget_s=1e-09"
    assert made.seconds > 0


OBSERVED = [1, 5, 2, 4]


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        ([6, 5, 2, 4], [7, 5, 2, 4]),
        ([6, 6, 2, 4], [7, 8, 2, 4]),
        ([1, 5, 0, 4], OBSERVED),
        ([8, 3, 0, 4], [7, 5, 2, 4]),
        (OBSERVED, OBSERVED),
    ],
)
def test_what_gains_nothing_is_undone(found: list[int], expected: list[int]) -> None:
    objective = idle_dose_episode(3)
    sequence, fall = nearest(objective, torch.tensor(found), 1e-9)
    assert sequence.tolist() == expected
    assert fall == pytest.approx(0.0, abs=1e-9)


def test_an_action_that_may_not_be_chosen_is_not_taken() -> None:
    objective = idle_dose_episode()
    objective.__dict__["choices"] = objective.choices.clone()
    objective.choices[0, 7] = False
    assert nearest(objective, torch.tensor([6, 5, 2, 4]), 1e-9)[0].tolist() == [6, 5, 2, 4]


def test_small_falls_do_not_add_up_beyond_the_tolerance() -> None:
    objective = idle_dose_episode(3)
    worth = [float(objective(torch.tensor([*OBSERVED[:step], 6, *OBSERVED[step + 1 :]]))) for step in (1, 2)]
    gains = [value - objective.outcome() for value in worth]
    equal = 1.01 * max(gains)
    sequence, fall = nearest(objective, torch.tensor([1, 8, 8, 4]), equal)
    assert abs(fall) <= equal
    assert int((sequence != objective.observed).sum()) == 1


def test_a_step_back_that_gains_is_not_taken() -> None:
    # Without the first dose the return is lower: undoing this change would be better than the answer.
    objective = idle_dose_episode()
    assert nearest(objective, torch.tensor([1, 2, 2, 4]), 1e-9)[0].tolist() == [1, 2, 2, 4]


def test_a_gap_covers_what_the_answer_gives_away() -> None:
    objective, found = idle_dose_episode(3), torch.tensor([7, 5, 8, 4])
    gain = float(objective(found)) - float(objective(torch.tensor([7, 5, 2, 4])))
    made = sequence_decision(
        objective, found, Effort(), Budget(), search="own", gap=5.0 * gain, equal=1.01 * gain
    )
    assert objective.sequence(made).tolist() == [7, 5, 2, 4]
    assert made.trace["gap"] == pytest.approx(6.0 * gain)
    proven = sequence_decision(objective, found, Effort(), Budget(), search="own", gap=0.0, equal=1.01 * gain)
    assert proven.trace["proven"]
    kept = sequence_decision(objective, found, Effort(), Budget(), search="own", gap=None)
    assert objective.sequence(kept).tolist() == found.tolist()


class Disagreeing(TwoDoses):
    """Two members, of which one sees x0 + x1 and the other one x0 - x1. Where the first dose is 2, x1 rises
    by 9, unless the second dose is 0.
    """

    def __init__(self) -> None:
        super().__init__()
        plain = self.map
        rise = torch.tensor([[0.0] * 9, [0.0] * 7 + [9.0] * 2], dtype=torch.float64).T
        self.map = lambda x, a: plain(x, a) * x.new_tensor([1.0, 0.0]) + rise[a]

    @property
    def members(self) -> int:
        return 2

    def member_units(self, states: Tensor) -> Tensor:
        first, second = states.unsqueeze(-2).unbind(-1)
        seen = first + states.new_tensor([1.0, -1.0]) * second
        return torch.stack([seen, second.expand_as(seen)], -1)


@pytest.mark.parametrize(("agreement", "expected"), [("all", 6), ("none", 7)])
def test_the_agreement_of_members_is_kept(agreement: str, expected: int) -> None:
    model = Disagreeing()
    states = torch.randn(3, 2, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    case = EpisodeCase(model.episode("apart", states, torch.tensor([1, 4, 1])))
    objective = CounterfactualReturn(model, case, LinearReward({"x0": -1.0}), 2, agreement=agreement)
    assert nearest(objective, torch.tensor([6, 4]), 1e-9)[0].tolist() == [expected, 4]


def test_one_model_alone_may_lose_its_gain_within_the_tolerance() -> None:
    """Of 3 a_0 + 2 a_1 + a_2, with amounts -1, 1.5 and 1, the last one is all that is gained."""
    amounts = torch.tensor([0.0, 1.0, -1.0, 1.5], dtype=torch.float64)
    model = KnownTruth(1, 4, lambda x, a: x + amounts[a].unsqueeze(-1), 1.0)
    episode = model.episode("amounts", torch.zeros(4, 1, dtype=torch.float64), torch.zeros(4).long())
    objective = CounterfactualReturn(model, EpisodeCase(episode), LinearReward({"x0": 1.0}), 3)
    sequence, fall = nearest(objective, torch.tensor([2, 3, 1]), 1.0)
    assert (sequence.tolist(), fall) == ([2, 3, 0], 1.0)
    assert nearest(objective, torch.tensor([2, 3, 1]), 0.99)[0].tolist() == [2, 3, 1]
