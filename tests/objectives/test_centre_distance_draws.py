"""Which draws a distance to the centre, and the shares beside it, are taken over."""

import inspect
import math
from types import SimpleNamespace

import pytest
import torch

from rehearsal_torch.objectives.centre_distance import TEST, TRAINING, VALIDATION, Aim, CentreDistance
from rehearsal_torch.seeding import sobol
from rehearsal_torch.spaces.polytope import Polytope
from rehearsal_torch.surrogates.structural.flow_scm import FlowStructural
from rehearsal_torch.training.fit import fit
from tests.toys.linear_truth import chain

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
    assert [each.declined for each in one.appraise(AT)] == [""] * 3
    one.before = one.share(AT, TEST) + 0.01
    assert all(each.declined.startswith("no alteration helps") for each in one.appraise(AT))
    assert (one.takes, one.level) == ((FlowStructural,), 0.95)


def test_without_known_rows_there_is_no_interval(surrogate) -> None:
    one, *_ = made(surrogate)
    one.surrogate = SimpleNamespace(
        overlap=SimpleNamespace(known=False), task=surrogate.task, scaler=surrogate.scaler
    )
    assert [(each.estimate.lower, each.estimate.upper) for each in one.appraise(AT)] == [(None, None)] * 3


def test_a_share_of_undefined_draws_alone_is_undefined(surrogate) -> None:
    one, *_ = made(surrogate)
    drawn = torch.tensor([[[math.nan], [math.nan]], [[math.nan], [99.0]], [[math.nan], [0.0]]])
    one.aim = Aim(Polytope.of({"y": (-1.0, 1.0)}), one.aim.centre, 1.0, "mae")
    one._outcomes = lambda pushforward, actions: drawn
    found = one.share(AT, TEST)
    assert found.isnan().tolist() == [True, False, False]
    assert found[1:].tolist() == [0.0, 0.5]


def test_starts_are_the_middle_and_sobol_points(surrogate) -> None:
    one = made(surrogate)[2]
    lower = torch.tensor([[1.0, 2.0]] * 3, dtype=torch.float64)
    narrow = one.within(lower, lower + torch.tensor([1.0, 4.0]), {})
    unit = sobol(2).draw(4, dtype=torch.float64)
    unit[0] = 0.5
    expected = lower + unit.unsqueeze(1) * torch.tensor([1.0, 4.0])
    assert torch.allclose(narrow.starts(4), expected)


def test_a_distance_has_a_finite_slope_at_the_centre() -> None:
    for loss in ("huber", "insensitive"):
        aim = Aim(Polytope.of({"y": (-1.0, 1.0)}), torch.zeros(1), 1.0, loss)
        at = torch.zeros(1, 1, requires_grad=True)
        (slope,) = torch.autograd.grad(aim.distance(at).sum(), at)
        assert slope.tolist() == [[0.0]]


@pytest.mark.parametrize(
    "wrong", [{"loss": "median"}, {"draws": 0}, {"evaluation_draws": 0}, {"precision": 16}]
)
def test_settings_out_of_range_are_refused_and_the_least_are_not(surrogate, wrong) -> None:
    with pytest.raises(ValueError, match=r"expected a loss among .* draws and evaluation_draws >= 1"):
        made(surrogate, **wrong)
    assert len(made(surrogate, draws=1, evaluation_draws=1)) == 3
    defaults = inspect.signature(CentreDistance.for_sets).parameters
    assert {name: defaults[name].default for name in ("loss", "draws", "evaluation_draws", "precision")} == {
        "loss": "mae",
        "draws": 1000,
        "evaluation_draws": 4000,
        "precision": 32,
    }
