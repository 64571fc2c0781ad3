"""Objectives of written networks: draws, candidates, starts, and the posterior mean."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from rehearsal_torch.data.decision import RehearsalCase
from rehearsal_torch.objectives import expected_reward
from rehearsal_torch.objectives.expected_reward import PosteriorMean, RewardFrame, standard_draws
from rehearsal_torch.objectives.upper_bounds import ConfidenceBound
from rehearsal_torch.seeding import round_seed
from rehearsal_torch.spaces.candidate_region import MixedRegion
from tests.objectives.test_network_acquisition import bent_chain, by_hand
from tests.toys.causal_toys import WrittenLaw, WrittenModel, hills, linear_chain, one_case, plain

DOUBLE = torch.float64
POINTS = torch.tensor([[0.1, 0.2], [0.7, 1.9], [1.0, 0.0]], dtype=DOUBLE)
LIMITS = {"normals": [[1.0, 0.1]], "offsets": [1.0]}


def test_the_posterior_mean_looks_at_the_first_draws():
    model = bent_chain()
    objective = PosteriorMean(model, one_case(model.task), draws=8, evaluation_draws=16)
    every, few = objective(POINTS), objective.rough(POINTS)
    assert every.tolist() == pytest.approx([by_hand(each, objective.noise) for each in POINTS])
    assert few.tolist() == pytest.approx([by_hand(each, objective.noise[:2]) for each in POINTS])
    other = objective.expected(POINTS, objective.other)
    assert other.tolist() == pytest.approx([by_hand(each, objective.other) for each in POINTS])
    assert (len(objective.noise), len(objective.other)) == (8, 16)


def test_many_candidates_are_screened_in_pieces(monkeypatch):
    model = linear_chain()
    objective = ConfidenceBound(model, one_case(model.task))
    points = objective.region().units(objective.region().spread(50, 0))
    whole = objective.rough(points)
    sizes, rough = [], objective.rough
    monkeypatch.setattr(objective, "rough", lambda part: sizes.append(len(part)) or rough(part))
    # Sixteen of 64 draws screen: candidates times draws are no more than CHUNK, or one candidate.
    for chunk, size in ((64, 4), (1, 1)):
        monkeypatch.setattr(expected_reward, "CHUNK", chunk)
        torch.testing.assert_close(objective.screened(points), whole, rtol=0, atol=1e-12)
        assert max(sizes) == size
        sizes.clear()


@pytest.mark.parametrize("settings_", [{"draws": 0}, {"evaluation_draws": 0}])
def test_without_a_draw_nothing_is_worth_anything(settings_):
    model = linear_chain()
    with pytest.raises(ValueError, match="expected at least 1 draw; got draws="):
        PosteriorMean(model, one_case(model.task), **settings_)


def test_a_round_sets_every_action():
    model = linear_chain()
    with pytest.raises(
        ValueError,
        match=r"^3: \['b'\] may not be set; feasible are \['a'\]: a round sets every action",
    ):
        PosteriorMean(model, RehearsalCase("3", {}, {"a": (0.0, 1.0)}))


def test_candidates_lie_within_the_bounds_of_the_round_whatever_the_order_of_its_names():
    model = linear_chain()
    narrow = RehearsalCase("0", {}, {"b": (0.5, 0.75), "c": (0.0, 9.0), "a": (0.25, 1.0)})
    plain_ = PosteriorMean(model, narrow)
    assert plain_.bounds.tolist() == [[0.25, 0.5], [1.0, 0.75]]
    wider = ConfidenceBound(model, narrow, propagate="optimistic")
    assert wider.bounds.tolist() == [[0.25, 0.5, -1.0], [1.0, 0.75, 1.0]]
    assert wider.region().lower.tolist() == [0.25, 0.5, -1.0]
    assert wider.region(further=False).lower.tolist() == [0.25, 0.5]


@settings(max_examples=25, deadline=None, derandomize=True)
@given(a=st.floats(-1.5, 3.5), b=st.floats(-1, 11))
def test_an_action_is_allowed_where_the_task_says_so(a, b):
    model = hills(LIMITS)
    objective = PosteriorMean(model, one_case(model.task))
    action = torch.tensor([a, b], dtype=DOUBLE)
    inside = -1 <= a <= 3 and 0 <= b <= 10 and a + 0.1 * b <= 1
    near = min(abs(a + 1), abs(a - 3), abs(b), abs(b - 10), abs(a + 0.1 * b - 1)) < 1e-4
    assert near or bool(objective.allowed(action.unsqueeze(0))) == inside


def test_rounding_is_no_offence():
    model = hills(LIMITS)
    objective = PosteriorMean(model, one_case(model.task))
    edge = torch.tensor([[-1.0 - 1e-9, 0.0], [0.0, 10.0 + 1e-8], [0.5, 5.0 + 1e-8]], dtype=DOUBLE)
    assert objective.allowed(edge).all()
    # A millionth of the width, 4 and 10, and of one more than the size of the offset.
    near = torch.tensor([[-1 - 3e-6, 0.0], [0.0, 10 + 9e-6], [0.5, 5 + 1.5e-5]], dtype=DOUBLE)
    far = torch.tensor([[-1 - 5e-6, 0.0], [0.0, 10 + 1.1e-5], [0.5, 5 + 3e-5]], dtype=DOUBLE)
    assert objective.allowed(near).tolist() == [True] * 3
    assert objective.allowed(far).tolist() == [False] * 3


def test_starts_are_the_visited_actions_by_their_posterior_mean_as_far_as_they_are_allowed():
    visited = [(0.0, 2.0), (2.5, 8.5), (-0.5, 4.0), (1.5, 4.0), (-0.5, 8.5), (0.2, 2.0)]
    model = hills(LIMITS, visited)
    objective = PosteriorMean(model, one_case(model.task))
    allowed = [each for each in visited if each[0] + 0.1 * each[1] <= 1]
    best_first = sorted(
        allowed, key=lambda each: -float(objective.expected(torch.tensor([each], dtype=DOUBLE)))
    )
    assert objective.starts(9).tolist() == [list(each) for each in best_first]
    assert objective.starts(2).tolist() == [list(each) for each in best_first[:2]]
    assert len(allowed) == 4


def test_starts_have_no_pushes_and_there_may_be_none():
    model = linear_chain()
    objective = ConfidenceBound(model, one_case(model.task), propagate="optimistic")
    starts = objective.starts(5)
    assert starts.shape == (2, 3)
    assert starts[:, 2].tolist() == [0.0, 0.0]
    fresh = ConfidenceBound(linear_chain(visited=()), one_case(model.task), propagate="optimistic")
    assert fresh.starts(5).shape == (0, 3)
    assert fresh.reward_frame == RewardFrame()


def test_rewards_are_compared_in_the_unit_of_what_was_visited():
    task = plain({"Y": ["a"]}, {"a": [0, 1]}, "Y")
    law = WrittenLaw(lambda w: 1e7 + 2e7 * w[..., 0], lambda w: 0 * w[..., 0])
    objective = PosteriorMean(WrittenModel(task, {"Y": law}, ((0.1,), (0.9,), (0.5,))), one_case(task))
    with torch.no_grad():
        wanted = RewardFrame.of(objective.expected(objective.visited, objective.noise[:16]))
    assert objective.reward_frame == objective.frame == wanted
    assert wanted.unit == pytest.approx(1.6e7)


LEVELLED = {"a": {"values": [-1, 0, 0.4, 3]}, "b": [0, 10]}


def levelled(visited, **case):
    """One node over an action with levels and one without."""
    task = plain({"Y": ["a", "b"]}, LEVELLED, "Y")
    law = WrittenLaw(lambda w: w[..., 0] - w[..., 1], lambda w: 0 * w[..., 0])
    given = {"feasible": task.box.bounds(), **case}
    return PosteriorMean(WrittenModel(task, {"Y": law}, visited), RehearsalCase("0", {}, **given))


def test_candidates_are_at_the_levels_of_the_task():
    region = levelled([]).region()
    assert region.levels == {0: (-1.0, 0.0, 0.4, 3.0)}
    assert set(region.units(region.spread(16, 0))[:, 0].tolist()) == {-1.0, 0.0, 0.4, 3.0}
    assert not isinstance(bent_chain_region(), MixedRegion)


def bent_chain_region():
    model = bent_chain()
    return PosteriorMean(model, one_case(model.task)).region()


def test_further_coordinates_have_no_levels():
    model = linear_chain()
    held = RehearsalCase("0", {}, model.task.box.bounds(), levels={"b": (0.7,)})
    region = ConfidenceBound(model, held, propagate="optimistic").region()
    assert region.levels == {1: (0.7,)}
    assert region.free == [0, 2]


def test_a_narrower_round_leaves_the_levels_within_it():
    assert levelled([], feasible={"a": (-0.5, 2.0), "b": (0.0, 1.0)}).levels == {"a": (0.0, 0.4)}
    assert levelled([], feasible={"a": (0.0, 0.4), "b": (0.0, 1.0)}).levels == {"a": (0.0, 0.4)}
    with pytest.raises(
        ValueError, match=r"0: none of the levels of \['a'\] lies within the bounds of the round"
    ):
        levelled([], feasible={"a": (1.0, 2.0), "b": (0.0, 1.0)})


def test_visited_actions_at_none_of_the_levels_are_no_starts():
    # Digits that were lost in a table are no other level.
    visited = [[0.4, 1.0], [0.5, 0.0], [3.0, 2.0], [0.4 + 1e-9, 0.5]]
    assert levelled(visited).starts(4).tolist() == [[3.0, 2.0], [0.4, 0.5], [0.4, 1.0]]
    assert levelled(visited).allowed(torch.tensor(visited, dtype=DOUBLE)).tolist() == [
        True,
        False,
        True,
        True,
    ]


def test_an_action_that_is_held_is_so_at_every_start_but_others_stay_incumbents():
    visited = [[0.4, 1.0], [3.0, 2.0], [0.4, 0.5]]
    held = levelled(visited, levels={"a": (3.0,)})
    assert held.starts(4).tolist() == [[3.0, 2.0]]
    assert held.allowed(torch.tensor(visited, dtype=DOUBLE)).tolist() == [True, True, True]


def test_the_draws_of_a_round_follow_from_its_seed():
    # Published results hang on these derivations.
    model = linear_chain()
    objective = PosteriorMean(model, one_case(model.task, "7"), seed=3)
    seed = round_seed(3, "7")
    assert torch.equal(objective.noise, model.draws(64, seed))
    assert torch.equal(objective.other, model.draws(256, seed + 1))
    assert torch.equal(objective.networks, standard_draws(32, 2, seed + 4))


@pytest.mark.parametrize(("evaluation_draws", "few"), [(48, 3), (8, 1)])
def test_plausible_rewards_are_under_few_draws_corrected_by_the_mean_under_all(evaluation_draws, few):
    model = bent_chain()
    objective = PosteriorMean(model, one_case(model.task), evaluation_draws=evaluation_draws)
    found = objective.plausible(POINTS)
    assert found.shape == (3, 32)
    for row, point in zip(found[:2], POINTS, strict=False):
        correction = by_hand(point, objective.other) - by_hand(point, objective.other[:few])
        wanted = [
            by_hand(point, objective.other[:few], each) + correction for each in objective.networks.tolist()
        ]
        assert row.tolist() == pytest.approx(wanted)


def test_one_draw_screens_where_there_are_fewer_than_four():
    model = bent_chain()
    objective = PosteriorMean(model, one_case(model.task), draws=3, evaluation_draws=1)
    wanted = [by_hand(each, objective.noise[:1]) for each in POINTS]
    assert objective.rough(POINTS).tolist() == pytest.approx(wanted)


def test_no_pending_actions_are_none():
    model = linear_chain()
    assert not PosteriorMean.takes_pending
    assert PosteriorMean(model, one_case(model.task)).pending is None
    assert PosteriorMean(model, one_case(model.task), pending=POINTS[:0]).pending is None
    some = PosteriorMean(model, one_case(model.task), pending=POINTS[:1].float()).pending
    assert torch.equal(some, POINTS[:1].float().double())


def test_the_network_of_posterior_means_has_one_draw_of_zeros():
    objective = PosteriorMean(linear_chain(), one_case(linear_chain().task), draws=8)
    assert objective.drawn(screening=False).epistemic.tolist() == [[0.0, 0.0]]
    assert torch.equal(
        objective.drawn(screening=True, epistemic=objective.networks).epistemic, objective.networks
    )
    assert torch.equal(objective.drawn(screening=True).noise, objective.noise[:2])


def of(*rewards):
    return RewardFrame.of(torch.tensor(rewards, dtype=torch.float64))


@pytest.mark.parametrize("rewards", [(0.0, 1.0), (), (math.nan,), (0.5, 0.5)])
def test_rewards_without_a_range_or_with_one_of_one_are_seen_as_they_are(rewards):
    assert of(*rewards) == RewardFrame(0.0, 1.0)


@pytest.mark.parametrize("unit", [2.0**-40, 1.0, 2.0**70])
def test_the_unit_is_the_range_and_the_same_steps_are_taken_in_every_unit(unit):
    rewards = torch.tensor([-0.3, 1.7, 0.9], dtype=torch.float64)
    frame = RewardFrame.of(rewards * unit)
    assert frame == RewardFrame(0.0, 2.0 * unit)
    assert torch.equal(frame.standardised(rewards * unit), RewardFrame.of(rewards).standardised(rewards))


def test_far_from_zero_the_median_becomes_zero():
    assert of(1e7, 1e7 + 1, 1e7 + 2) == RewardFrame(1e7 + 1, 2.0)
    assert of(5000.0, 5000.0) == RewardFrame(5000.0, 1.0)
    assert of(500.0, 500.0) == RewardFrame()
    assert of(-1001.0, -1001.0) == RewardFrame(-1001.0, 1.0)
    assert of(1000.0, 1000.0) == RewardFrame(), "a thousand is not beyond a thousand"
    assert of(999.5, 1000.0, 1000.5) == RewardFrame(), "nor is it of ranges"
    assert of(-2.003, -2.002, -2.001).centre == -2.002


def test_what_is_not_finite_is_left_out():
    assert of(1e7, math.inf, 1e7 + 2, math.nan, 1e7 + 1) == RewardFrame(1e7 + 1, 2.0)


def test_a_range_beyond_all_numbers_is_no_unit():
    assert of(-1.7e308, 0.0, 1.7e308) == RewardFrame()


def test_units_is_the_inverse_of_seen():
    frame = RewardFrame(10.0, 100.0)
    assert frame.standardised(torch.tensor([10.0, 210.0])).tolist() == [0.0, 2.0]
    assert frame.units(2.0) == 210.0
