"""Objectives of written networks: candidates, starts, and the posterior mean."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from rehearsal_torch.data.decision import RehearsalCase
from rehearsal_torch.objectives.expected_reward import CLAIMED_DRAWS, CLAIMED_MEMBERS, PosteriorMean
from rehearsal_torch.seeding import round_seed
from rehearsal_torch.spaces.candidate_region import MixedRegion
from rehearsal_torch.surrogates.network.botorch_model import NetworkModel
from tests.toys.causal_toys import WrittenLaw, WrittenModel, hills, linear_chain, one_case, plain
from tests.toys.fitted_pair import PAIR, fitted_pair

DOUBLE = torch.float64
POINTS = torch.tensor([[0.1, 0.2], [0.7, 1.9], [1.0, 0.0]], dtype=DOUBLE)
LIMITS = {"normals": [[1.0, 0.1]], "offsets": [1.0]}


def test_what_is_searched_and_what_is_claimed_are_two_models_of_the_round():
    # Published results hang on these derivations.
    objective = PosteriorMean(fitted_pair(), one_case(PAIR, "7"), members=4, draws=8, seed=3)
    seed = round_seed(3, "7")
    points = POINTS - torch.tensor([0.0, 1.0])
    few = NetworkModel(fitted_pair(), members=4, draws=8, seed=seed).tabulated()
    sizes = {"members": CLAIMED_MEMBERS, "draws": CLAIMED_DRAWS}
    many = NetworkModel(fitted_pair(), **sizes, seed=seed + 10).posterior(points.unsqueeze(-2)).values
    assert torch.equal(objective.plausible(points), many[..., 0, 0].T)
    torch.testing.assert_close(objective.expected(points), many.mean(0)[:, 0, 0])
    means = few.posterior(points.unsqueeze(-2)).mean[:, 0, 0]
    tried = few.posterior(objective.visited.unsqueeze(-2)).mean
    torch.testing.assert_close(objective(points), (means - tried.max()) / tried.std())
    torch.testing.assert_close(objective.tried[1].mean(0), tried[:, 0, 0])


@pytest.mark.parametrize("given_", [{"draws": 0}, {"members": 3}, {"members": 0}])
def test_without_a_draw_or_a_pair_nothing_is_worth_anything(given_):
    model = linear_chain()
    with pytest.raises(ValueError, match=r"expected (at least 1 draw|an even number of members); got"):
        PosteriorMean(model, one_case(model.task), **given_)


@pytest.mark.parametrize(
    ("rewards", "scale"),
    [
        ([1.0, 3.0], (3.0, math.sqrt(2))),
        ([1.0, math.nan, 3.0, math.inf], (3.0, math.sqrt(2))),
        ([-2.0], (-2.0, 2.0)),
        ([1e-15, 3e-15], (3e-15, math.sqrt(2) * 1e-15)),
        ([0.0, 0.0], (0.0, 1e-300)),
        ([7.0, 7.0, 7.0], (7.0, 7e-14)),
    ],
)
def test_values_are_in_standard_deviations_of_the_finite_means_at_visited_actions(rewards, scale):
    task = plain({"Y": ["a"]}, {"a": [0, 1]}, "Y")
    known = torch.tensor(rewards, dtype=DOUBLE)
    law = WrittenLaw(lambda w: known[(w[..., 0] * 10).round().long()], lambda w: 0 * w[..., 0], 0.0)
    visited = [[place / 10] for place in range(len(rewards))]
    objective = PosteriorMean(WrittenModel(task, {"Y": law}, visited), one_case(task))
    assert objective.scale == pytest.approx(scale)
    assert PosteriorMean(WrittenModel(task, {"Y": law}), one_case(task)).scale == (0.0, 1.0)


def test_a_round_sets_every_action():
    model = linear_chain()
    with pytest.raises(
        ValueError, match=r"^3: \['b'\] may not be set; feasible are \['a'\]: a round sets every action"
    ):
        PosteriorMean(model, RehearsalCase("3", {}, {"a": (0.0, 1.0)}))


def test_candidates_lie_within_the_bounds_of_the_round_whatever_the_order_of_its_names():
    narrow = RehearsalCase("0", {}, {"b": (0.5, 0.75), "c": (0.0, 9.0), "a": (0.25, 1.0)})
    region = PosteriorMean(linear_chain(), narrow).region()
    assert region.lower.tolist() == [0.25, 0.5]
    assert region.width.tolist() == [0.75, 0.25]


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
    assert not isinstance(PosteriorMean(linear_chain(), one_case(linear_chain().task)).region(), MixedRegion)


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


def test_no_pending_actions_are_none():
    model = linear_chain()
    assert not PosteriorMean.takes_pending
    assert PosteriorMean(model, one_case(model.task)).pending is None
    assert PosteriorMean(model, one_case(model.task), pending=POINTS[:0]).pending is None
    some = PosteriorMean(model, one_case(model.task), pending=POINTS[:1].float()).pending
    assert torch.equal(some, POINTS[:1].float().double())
