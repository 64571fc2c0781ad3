from functools import partial
from types import SimpleNamespace

import pytest
import torch

from rehearsal_torch.mechanisms.conditional_flow import ConditionalFlow
from rehearsal_torch.objectives.centre_distance import (
    TEST,
    TRAINING,
    VALIDATION,
    CentreDistance,
    centre_and_radius,
)
from rehearsal_torch.seeding import sobol
from rehearsal_torch.spaces.polytope import Polytope
from rehearsal_torch.surrogates.structural.flow_scm import FlowStructural
from rehearsal_torch.training.gradient_descent import Descent
from rehearsal_torch.training.surrogate_fit import fit
from tests.toys.linear_truth import chain, managing


@pytest.mark.slow
def test_its_slope_is_that_of_finite_differences():
    world = managing()
    flow = partial(ConditionalFlow, hidden=(8,), bins=4)
    made = fit(
        FlowStructural(world.task, flow), world.table(150), Descent(5, 64, 5e-3, progress=False)
    ).double()
    (one,) = CentreDistance.for_cases(made, world.cases(3), draws=40, evaluation_draws=10, precision=64).sets
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
        sets[0].values_and_shares(actions), sets[0].values_and_shares(actions[some], which=some), strict=True
    ):
        torch.testing.assert_close(part, whole[some])
    assert sets[0].values_and_shares(actions)[1].tolist() != pytest.approx(
        [fact.estimate.point for fact in said], abs=1e-6
    )


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


WORLD = chain()
AT = torch.tensor([[0.4], [-0.2], [0.9]], dtype=torch.float64)


@pytest.fixture(scope="module")
def surrogate():
    return fit(FlowStructural(WORLD.task), WORLD.table(60))


def made(surrogate, **settings):
    return CentreDistance.for_sets(
        surrogate, WORLD.cases(3), **{"draws": 30, "evaluation_draws": 40, **settings}
    )


def outcomes(surrogate, count, purpose, names, actions, kind):
    """Standardised outcomes of the surrogate's own noise, (3, count, 1)."""
    noise, task = surrogate.noise(count, purpose).to(kind), surrogate.task
    given = task.given(WORLD.cases(3)).to(surrogate.scaler.scale)
    push = surrogate.pushforward(noise, names, given, task.outcomes)
    return push(surrogate.scaler.standardised(names, actions).to(kind))


@pytest.mark.parametrize(("precision", "kind"), [(32, torch.float32), (64, torch.float64)])
def test_each_purpose_has_draws_of_its_own(surrogate, precision, kind) -> None:
    one, *_ = made(surrogate, precision=precision)
    region = surrogate.task.region.standardised(*surrogate.scaler.moments(surrogate.task.outcomes))
    for purpose, count in ((TRAINING, 30), (VALIDATION, 40), (TEST, 40)):
        drawn = outcomes(surrogate, count, purpose, ("a",), AT, kind)
        assert drawn.dtype == kind
        expected = region.contains(drawn).double().mean(-1)
        assert one.share(AT, purpose).tolist() == pytest.approx(expected.tolist())
        if purpose == TRAINING:
            value, share = one.values_and_shares(AT)
            assert share.tolist() == pytest.approx(expected.tolist())
            away = (drawn - one.aim.centre.to(drawn)).abs().sum(-1)
            assert value.tolist() == pytest.approx((-away.mean(-1)).tolist(), rel=1e-6)
            few, share = one.values_and_shares(AT, draws=7)
            assert few.tolist() == pytest.approx((-away[:, :7].mean(-1)).tolist(), rel=1e-6)
            assert share.tolist() == pytest.approx(region.contains(drawn[:, :7]).double().mean(-1).tolist())
    assert torch.equal(one.level_value(AT), one.share(AT, VALIDATION))
    assert not torch.equal(one.share(AT, VALIDATION), one.share(AT, TEST))
    before = outcomes(surrogate, 40, TEST, (), AT[:, :0], kind)
    assert one.before.tolist() == pytest.approx(region.contains(before).double().mean(-1).tolist())


def test_what_it_says_is_over_the_test_draws(surrogate) -> None:
    one, *_ = made(surrogate)
    found = one.appraise(AT)
    assert [each.estimate.point for each in found] == one.share(AT, TEST).tolist()
    assert [each.baseline.point for each in found] == pytest.approx(one.before.tolist())
    assert {each.draws for each in found} == {40}
    # Wilson's interval of 1 / (1 / 40 + leverage) draws.
    square = 1.959964**2 * (1 / 40 + surrogate.overlap.leverage(("a",), surrogate.task.given(one.cases), AT))
    shares = one.share(AT, TEST)
    half = (square * (shares * (1 - shares) + square / 4)).sqrt()
    for each, ends in zip(
        found,
        zip(*((shares + square / 2 + sign * half) / (1 + square) for sign in (-1, 1)), strict=True),
        strict=True,
    ):
        assert (each.estimate.lower, each.estimate.upper) == pytest.approx(tuple(map(float, ends)), abs=1e-9)
    one.before = one.share(AT, TEST)
    assert [each.declined for each in one.appraise(AT)] == [None] * 3
    one.before = one.share(AT, TEST) + 0.01
    assert all(each.declined.text.startswith("no alteration helps") for each in one.appraise(AT))
    assert (one.takes, one.level) == ((FlowStructural,), 0.95)


def test_without_known_rows_there_is_no_interval(surrogate) -> None:
    one, *_ = made(surrogate)
    one.surrogate = SimpleNamespace(
        overlap=SimpleNamespace(known=False), task=surrogate.task, scaler=surrogate.scaler
    )
    assert [(each.estimate.lower, each.estimate.upper) for each in one.appraise(AT)] == [(None, None)] * 3


def test_starts_are_the_middle_and_sobol_points(surrogate) -> None:
    one = made(surrogate)[2]
    lower = torch.tensor([[1.0, 2.0]] * 3, dtype=torch.float64)
    narrow = one.within(lower, lower + torch.tensor([1.0, 4.0]), {})
    unit = sobol(2).draw(4, dtype=torch.float64)
    unit[0] = 0.5
    expected = lower + unit.unsqueeze(1) * torch.tensor([1.0, 4.0])
    assert torch.allclose(narrow.starts(4), expected)


def ends(*values):
    return torch.tensor(values, dtype=torch.float64)


def test_a_triangle_has_its_incentre():
    # Right triangle of sides 3, 4, 5: radius 1, centre (1, 1).
    region = Polytope(("a", "b"), torch.tensor([[-1.0, 0], [0, -1], [4, 3]]), torch.tensor([0.0, 0, 12]))
    centre, radius = centre_and_radius(region, ends(-9, -9), ends(9, 9))
    assert radius == pytest.approx(1.0)
    assert centre.tolist() == pytest.approx([1.0, 1.0], abs=1e-6)


def test_an_open_region_is_cut_at_what_was_observed():
    centre, radius = centre_and_radius(
        Polytope.of({"a": (None, 5.7), "b": (None, 100.0)}), ends(3.7, 60), ends(12, 300)
    )
    assert radius == pytest.approx(1.0)
    assert centre.tolist() == pytest.approx([4.7, 80.0], abs=1e-5)


def test_a_region_below_everything_observed_widens_the_cut_downwards():
    centre, radius = centre_and_radius(Polytope.of({"a": (None, -1.0), "b": (0, 8)}), ends(0, 0), ends(1, 1))
    # Observed 0 ... 1, wanted below -1: -1 - 2 = 0 - 3 times the range.
    assert (radius, centre.tolist()) == (pytest.approx(1.0), pytest.approx([-2.0, 4.0], abs=1e-6))
