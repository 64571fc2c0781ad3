import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as some

from rehearsal_torch.objectives.episode_reward import EpisodeReward, episode_reward
from rehearsal_torch.objectives.reward import Doses, LinearReward
from rehearsal_torch.objectives.step_score import StepScore

NAMES = ("wear", "heat")
SCORE = {"bearing": {"wear": {"> 50": 1, "> 70": 3}}}
COSTS = {"service": [0.0, 2.0, 6.0], "oil": 0.5}
# Three actions: none; minor service and 4 units of oil; major service.
ACTIONS = Doses(("service", "oil"), torch.tensor([[0.0, 0.0], [1.0, 4.0], [2.0, 0.0]], dtype=torch.float64))
whole = episode_reward({"heat": -0.1}, SCORE, COSTS)


def states(*rows):
    return torch.tensor(rows, dtype=torch.float64)


def test_weights_score_and_costs_add_up():
    found = whole(states([60.0, 40.0], [80.0, 10.0]), NAMES, ACTIONS)
    # -.1 heat - points - costs (0, 4, 6).
    assert found.tolist() == [[-5.0, -9.0, -11.0], [-4.0, -8.0, -10.0]]


def test_costs_are_those_of_levels_and_of_units():
    assert whole.cost(ACTIONS).tolist() == [0.0, 4.0, 6.0]
    assert EpisodeReward((), {"oil": 2})(states([0.0, 0.0]), NAMES, ACTIONS).tolist() == [[0.0, -8.0, 0.0]]


def test_the_actions_may_differ_from_step_to_step_and_states_have_members():
    each = torch.stack([ACTIONS.values, ACTIONS.values.flip(0)])  # (T, A, p)
    found = whole(states([60.0, 40.0], [60.0, 40.0]), NAMES, Doses(ACTIONS.names, each))
    assert found.tolist() == [[-5.0, -9.0, -11.0], [-11.0, -9.0, -5.0]]
    members = states([60.0, 40.0], [60.0, 40.0]).unsqueeze(1).expand(2, 4, 2)  # (T, M, D)
    spread = whole(members, NAMES, Doses(ACTIONS.names, each.unsqueeze(-3)))
    assert torch.equal(spread, found.unsqueeze(1).expand(2, 4, 3))


def test_a_part_alone_is_what_it_is():
    assert isinstance(episode_reward({"wear": -1}), LinearReward)
    score = episode_reward(None, SCORE, name="risk")
    assert isinstance(score, StepScore)
    assert score.name == "risk"
    assert isinstance(episode_reward(costs={"oil": 1}), EpisodeReward)


def test_it_says_what_it_reads():
    assert (whole.reads, whole.reads_doses, whole.acts) == (("heat", "wear"), ("service", "oil"), True)
    dosed = episode_reward({"heat": 1.0}, {"shock": {"oil": {"> 3": 1}}}, doses=["oil"])
    assert (dosed.reads, dosed.reads_doses, dosed.acts) == (("heat",), ("oil",), True)
    still = episode_reward({"heat": 1.0}, SCORE)
    assert not still.acts
    assert still(states([60.0, 40.0]), NAMES).tolist() == [[39.0]]
    assert still(states([60.0, 40.0]), NAMES, ACTIONS).tolist() == [[39.0]]
    with pytest.raises(ValueError, match=r"reads the actions \['service', 'oil'\]: pass those of each step"):
        whole(states([60.0, 40.0]), NAMES)


def test_what_costs_make_of_a_gain_is_reported():
    related = whole.related()
    assert list(related) == ["without costs", "with costs"]
    state = states([60.0, 40.0])
    assert related["without costs"](state, NAMES).tolist() == [[-5.0]]
    assert torch.equal(related["with costs"](state, NAMES, ACTIONS), whole(state, NAMES, ACTIONS))
    assert EpisodeReward((), {"oil": 1}).related() == {}


def test_a_score_that_reads_doses_is_guarded_beside_costs_and_weights_too():
    shock = {"shock": {"wear": {"> 50": 1}, "oil": {"> 3": 4}}}
    alone = episode_reward(components=shock, doses=["oil"])
    state = states([60.0, 40.0])
    for weights, costs in (({"heat": -0.1}, None), (None, COSTS), ({"heat": -0.1}, COSTS)):
        found = episode_reward(weights, shock, costs, ["oil"])
        assert list(found.guarded()) == ["without doses", "with doses"]
        for name, each in found.guarded().items():
            assert torch.equal(each(state, NAMES, ACTIONS), alone.guarded()[name](state, NAMES, ACTIONS))
            assert name in found.related()
    assert whole.guarded() == {}


def test_the_lipschitz_constant_is_that_of_the_states():
    scale = torch.tensor([100.0, 20.0], dtype=torch.float64)
    assert whole.lipschitz(NAMES, scale) == math.inf
    smooth = episode_reward({"heat": -0.1, "wear": 0.03}, None, COSTS)
    assert smooth.lipschitz(NAMES, scale) == pytest.approx(math.hypot(3.0, 2.0), rel=1e-12)


@settings(max_examples=25, deadline=None)
@given(some.lists(some.floats(0, 100), min_size=4, max_size=4), some.floats(0, 1), some.floats(0, 1))
def test_the_bound_holds_over_boxes(ends, first, second):
    pairs = torch.tensor(ends, dtype=torch.float64).reshape(2, 2)
    lower, upper = pairs.amin(0), pairs.amax(0)
    inside = lower + (upper - lower) * torch.tensor([first, second], dtype=torch.float64)
    bound = whole.highest(lower, upper, NAMES, ACTIONS)
    assert bool((bound >= whole(inside, NAMES, ACTIONS) - 1e-9).all())
    assert torch.equal(whole.highest(inside, inside, NAMES, ACTIONS), whole(inside, NAMES, ACTIONS))


@pytest.mark.parametrize(
    ("costs", "message"),
    [
        ({"oil": "much"}, r"reward\.costs\.oil: expected a finite number, or one for each level; got 'much'"),
        ({"oil": [0, math.inf]}, r"reward\.costs\.oil: expected a finite number"),
        ({"oil": []}, r"reward\.costs\.oil: expected a finite number"),
        ({"oil": True}, r"reward\.costs\.oil: expected a finite number"),
        ([1, 2], r"reward\.costs: expected \{action: cost\}; got \[1, 2\]"),
        (None, "expected weights, components or costs; got none: name them in the task"),
    ],
)
def test_what_cannot_be_a_reward_is_refused(costs, message):
    with pytest.raises(ValueError, match=message):
        episode_reward(costs=costs)
