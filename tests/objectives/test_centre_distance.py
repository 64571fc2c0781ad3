from functools import partial

import pytest
import torch

from rehearsal_torch.mechanisms.conditional_flow import ConditionalFlow
from rehearsal_torch.objectives.centre_distance import TEST, Aim, CentreDistance
from rehearsal_torch.spaces.polytope import Polytope
from rehearsal_torch.surrogates.structural.flow_scm import FlowStructural
from rehearsal_torch.training.descent import Descent
from rehearsal_torch.training.fit import fit
from tests.toys.linear_truth import chain, managing


@pytest.mark.parametrize(
    ("loss", "inside", "outside"),
    [
        ("mae", 0.5 + 0.25, 3.0 + 4.0),
        ("mse", 0.3125, 25.0),
        ("insensitive", 0.0, 3.0),
        ("huber", 0.3125, 2.0 * (10.0 - 2.0)),
    ],
)
def test_distances_are_those_of_their_formulas(loss, inside, outside):
    aim = Aim(
        Polytope.of({"a": (-1, 3), "b": (-1, 3)}), torch.tensor([1.0, 1.0], dtype=torch.float64), 2.0, loss
    )
    points = torch.tensor([[1.5, 0.75], [4.0, 5.0]], dtype=torch.float64)
    assert aim.distance(points).tolist() == pytest.approx([inside, outside])


@pytest.mark.slow
@pytest.mark.parametrize("loss", ["mae", "mse", "huber", "insensitive"])
def test_its_slope_is_that_of_finite_differences(loss):
    world = managing()
    flow = partial(ConditionalFlow, hidden=(8,), bins=4)
    made = fit(
        FlowStructural(world.task, flow), world.table(150), Descent(5, 64, 5e-3, progress=False)
    ).double()
    (one,) = CentreDistance.for_cases(
        made, world.cases(3), loss=loss, draws=40, evaluation_draws=10, precision=64
    ).sets
    at = torch.tensor([[[1.0, 2.0], [0.5, -1.0], [3.0, 4.0]]], dtype=torch.float64)
    value, slope = one.value_and_gradient(at)
    step = 1e-6 * torch.eye(2, dtype=torch.float64)
    differences = torch.stack([(one(at + each) - one(at - each)) / 2e-6 for each in step], -1)
    assert value.shape == (1, 3)
    assert torch.allclose(slope, differences, rtol=1e-4, atol=1e-6)


def test_what_it_says_is_what_happens_and_was_not_chosen_by():
    world = chain()
    made = fit(FlowStructural(world.task), world.table(2000))
    some_cases = world.cases(4)
    sets = CentreDistance.for_cases(made, some_cases).sets
    actions = torch.full((4, 1), 0.7, dtype=torch.float64)
    said = sets[0].appraise(actions)
    for one_case, fact in zip(some_cases, said, strict=True):
        assert fact.estimate.point == pytest.approx(world.success(one_case, {"a": 0.7}), abs=0.05)
        assert fact.baseline.point == pytest.approx(world.success(one_case, {}), abs=0.05)
    assert [fact.estimate.point for fact in said] == pytest.approx(sets[0].share(actions, TEST).tolist())
    assert torch.equal(sets[0](actions), sets[0].values_and_shares(actions)[0])
    some = torch.tensor([2, 0])
    for whole, part in zip(
        sets[0].values_and_shares(actions),
        sets[0].values_and_shares(actions[some], which=some),
        strict=True,
    ):
        torch.testing.assert_close(part, whole[some])
    assert sets[0].values_and_shares(actions)[1].tolist() != pytest.approx(
        [fact.estimate.point for fact in said], abs=1e-6
    )


def test_starts_lie_in_the_box_and_begin_in_its_middle():
    world = chain()
    made = fit(FlowStructural(world.task), world.table(100))
    starts = CentreDistance.for_cases(made, world.cases(2), draws=5, evaluation_draws=5).sets[2].starts(9)
    assert starts.shape == (9, 2, 2)
    assert starts[0].abs().max() == 0
    assert starts.abs().max() <= 1


def test_numbers_out_of_range_are_refused():
    world = chain()
    made = fit(FlowStructural(world.task), world.table(100))
    with pytest.raises(ValueError, match="expected a loss among"):
        CentreDistance.for_cases(made, world.cases(1), loss="median")


def test_its_interval_is_wilsons_and_grows_away_from_the_rows():
    world = chain()
    made = fit(FlowStructural(world.task), world.table(400))
    one = CentreDistance.for_cases(made, world.cases(4)).sets[0]
    near, far = (torch.full((4, 1), value, dtype=torch.float64) for value in (0.3, 1.0))
    for at in (near, far):
        half = one.at_level(0.5).appraise(at)
        for narrow, wide in zip(half, one.appraise(at), strict=True):
            assert wide.estimate.point == narrow.estimate.point
            assert 0 <= wide.estimate.lower < narrow.estimate.lower < narrow.estimate.point
            assert narrow.estimate.point < narrow.estimate.upper < wide.estimate.upper <= 1
            assert (narrow.estimate.level, wide.estimate.level) == (0.5, 0.95)
    contexts = made.task.given(one.cases)
    leverage = [float(made.overlap.leverage(one.names, contexts, at).mean()) for at in (near, far)]
    assert 1 / 400 < leverage[0] < leverage[1]
    (first, *_) = one.appraise(near)
    share, square = (
        first.estimate.point,
        1.959964**2 * (float(made.overlap.leverage(one.names, contexts, near)[0]) + 1 / 4000),
    )
    ends = [
        (share + square / 2 + sign * (square * (share * (1 - share) + square / 4)) ** 0.5) / (1 + square)
        for sign in (-1, 1)
    ]
    assert [first.estimate.lower, first.estimate.upper] == pytest.approx(ends, abs=1e-9)
