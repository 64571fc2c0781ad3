"""Draws of the outcomes: their share in the region is the claim, and their moments are those of the model."""

from copy import deepcopy
from itertools import permutations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.testing import assert_close

import rehearsal_torch as rt
from rehearsal_torch.objectives.gain import SupportedGain
from rehearsal_torch.problems.cases.nonlinear_examples import YesNo
from rehearsal_torch.problems.world_size import SampleSize
from rehearsal_torch.spaces.polytope import Polytope
from rehearsal_torch.surrogates.outcome.outcome_regression import OutcomeRegression
from rehearsal_torch.surrogates.outcome_draws import FaceCoordinates, KeptDraws, OutcomeDraws, of_response
from rehearsal_torch.surrogates.structural.linear_model import AffineResponse
from rehearsal_torch.training.surrogate_fit import fit
from tests.surrogates.outcome.test_outcome_regression import SMALL
from tests.toys.linear_truth import chain
from tests.toys.rehearsal_toys import confounded, confounded_table


def numbers(*values):
    return torch.tensor(values, dtype=torch.float64)


def test_the_share_in_the_region_is_the_claim_of_the_outcome_regression():
    task = confounded(candidates=[["a"], ["a", "c"]])
    model = fit(OutcomeRegression(task, **SMALL), confounded_table(120))
    world = rt.RehearsalTask.of(task) if not isinstance(task, rt.RehearsalTask) else task
    (name,) = world.context
    case = rt.RehearsalCase("1", {name: numbers(0.3)[0]}, world.box.bounds())
    alone, objective = SupportedGain.for_sets(model, [case])
    action = numbers(0.4, -0.2)
    (claim,) = objective.appraise(action.unsqueeze(0))
    after = model.outcome_draws(("a", "c"), numbers(0.3), action)
    before = model.outcome_draws((), numbers(0.3), numbers())
    # 4 blocks of 32 points with 3 functions each, at points of their own.
    assert after.values.shape == before.values.shape == (4 * 32 * 3, 1)
    assert after.share(world.region) == pytest.approx(claim.estimate.point, abs=0.06)
    # No action is that of the first candidate set, whose regressions are its own.
    (usual,) = alone.appraise(numbers(0.4).unsqueeze(0))
    assert before.share(world.region) == pytest.approx(usual.baseline.point, abs=0.06)


def test_where_success_itself_is_modelled_there_are_no_outcomes():
    world = YesNo(size=SampleSize(rows=80))
    model = fit(OutcomeRegression(world.task, **SMALL), world.observations())
    assert model.outcome_kind.of_success
    case = world.case(0)
    given = torch.stack([case.given[name] for name in world.task.context])
    names = world.task.candidates[0]
    assert model.outcome_draws(names, given, torch.zeros(len(names), dtype=torch.float64)) is None


@pytest.mark.parametrize("units", [(1.0, 1.0, 1.0), *permutations((1e-6, 1e6, 1.0))])
def test_draws_of_a_response_have_its_moments_in_any_units(units):
    covariance = numbers(2.0, 0.6, 0.2, 0.6, 0.5, 0.1, 0.2, 0.1, 1.0).reshape(3, 3)
    unit, wide = numbers(*units), (64, 3)
    response = AffineResponse(
        (unit * numbers(1.0, -1.0, 0.0)).reshape(1, 3, 1).expand(*wide, 1),
        (unit * numbers(0.5, 2.0, 1.0)).reshape(1, 3, 1).expand(*wide, 1),
        (unit * numbers(3.0, 0.0, 1.0)).expand(wide),
        torch.eye(3, dtype=torch.float64).expand(*wide, 3),
        (covariance * unit * unit.unsqueeze(-1)).expand(*wide, 3),
    )
    found = of_response(response, numbers(2.0), numbers(4.0))
    assert found.values.shape == (64 * 128, 3)
    assert_close((found.values / unit).mean(0), numbers(7.0, 6.0, 5.0), atol=0.05, rtol=0)
    assert_close((found.values / unit).mT.cov(), covariance, atol=0.08, rtol=0)


def test_linear_models_have_draws_by_their_posterior():
    world = chain()
    model = rt.learn(world.table(400).to_frame(), world.task.to_plain(), method="care")
    claim = model.what_if({"x": 0.1}, {"m": 0.5})
    for names, action, expected in ((("m",), numbers(0.5), claim.estimate), ((), numbers(), claim.baseline)):
        found = model.surrogate.outcome_draws(names, numbers(0.1), action)
        assert found.share(world.task.region) == pytest.approx(expected.point, abs=0.02)


def test_bounds_are_those_of_the_faces_that_bound_one_coordinate():
    region = Polytope(("y", "z"), numbers(2, 0, -4, 0, 0, -1, 1, 1).reshape(4, 2), numbers(6, 4, 1, 9))
    found = OutcomeDraws(numbers(0, 0).reshape(1, 2), torch.eye(2, dtype=torch.float64)).bounds(region)
    assert found == [pytest.approx((-1.0, 3.0)), pytest.approx((-1.0, torch.inf))]
    turned = OutcomeDraws(numbers(0).reshape(1, 1), numbers(-1, 0).reshape(1, 2)).bounds(region)
    assert turned == [pytest.approx((-3.0, 1.0))]


def counting(kept):
    made = []

    def ask(key, source, cells=1):
        def make():
            made.append(key)
            return [key]

        return kept.get(key, source, cells, make)

    return ask, made


def test_draws_are_made_once_until_their_source_changes():
    ask, made = counting(KeptDraws(10))
    source = [torch.zeros(2), torch.zeros(3)]
    first = ask("a", source)
    assert ask("a", source) is first
    source[1] += 1
    assert ask("a", source) is not first
    source[0] = source[0].clone()
    ask("a", source)
    ask("a", source[:1])
    assert made == ["a"] * 4


def test_the_least_used_make_room_and_what_does_not_fit_is_not_kept():
    kept = KeptDraws(10)
    ask, made = counting(kept)
    for key in ("a", "b", "a", "c"):
        ask(key, [], 4)
    ask("a", [], 4)
    assert made == ["a", "b", "c"]
    ask("b", [], 4)
    assert made == ["a", "b", "c", "b"]
    ask("large", [], 11)
    ask("large", [], 11)
    assert made[4:] == ["large", "large"]
    assert len(kept) == 2
    assert ask("b", [], 4) == ["b"]
    assert len(made) == 6


def test_copies_start_without_any():
    kept = KeptDraws(10)
    ask, _ = counting(kept)
    ask("a", [])
    copied = deepcopy(kept)
    assert (len(kept), len(copied), copied.most) == (1, 0, 10)


def test_what_is_made_in_inference_mode_is_not_kept():
    ask, made = counting(KeptDraws(10))
    with torch.inference_mode():
        ask("a", [])
    kept = ask("a", [])
    with torch.inference_mode():
        assert ask("a", []) is not kept
    assert ask("a", []) is kept
    assert made == ["a"] * 3


NUMBERS = st.floats(-5, 5, allow_nan=False)


def polygon(count):
    turns = torch.arange(count, dtype=torch.float64) * 2 * torch.pi / count
    return Polytope(
        ("y", "z"), torch.stack((turns.cos(), turns.sin()), -1), torch.ones(count, dtype=torch.float64)
    )


REGIONS = [
    Polytope.of({"y": (0, 1)}),
    Polytope.of({"y": (0, 1), "z": (None, 3)}),
    Polytope.of({"y": (None, None), "z": (-2, 3)}),
    Polytope(("y", "z"), torch.tensor([[3.0, -4.0]]).double(), torch.tensor([2.0]).double()),
    Polytope(
        ("y", "z"), torch.tensor([[1.0, -1.0], [-2.0, 2.0]]).double(), torch.tensor([2.0, 1.0]).double()
    ),
    polygon(7),
]
WIDTHS = [1, 2, 1, 1, 1, 2]


@pytest.mark.parametrize(("region", "width"), [*zip(REGIONS, WIDTHS, strict=True)])
def test_there_are_no_more_coordinates_than_directions_or_outcomes(region, width):
    made = FaceCoordinates.of(region)
    assert made.count == width
    assert made.basis.shape == (width, len(region.names))


@given(st.sampled_from(REGIONS), st.lists(st.tuples(NUMBERS, NUMBERS), min_size=1, max_size=20))
def test_the_region_is_the_same(region, points):
    outcomes = torch.tensor(points, dtype=torch.float64)[:, : len(region.names)]
    made = FaceCoordinates.of(region)
    clear = (region.slack(outcomes).abs() > 1e-9).all(-1)
    assert torch.equal(made.desired(made.of_outcomes(outcomes))[clear], region.contains(outcomes)[clear])


@pytest.mark.parametrize("unit", [1.0, 1e-9, 0.25])
def test_bounds_on_a_lattice_lie_between_its_values(unit):
    """Half of the chance of a whole number on the edge of the region was once lost."""
    for bounds, expected in (
        ((None, 2.0), (2.5,)),
        ((None, 2.4), (2.5,)),
        ((1.6, None), (-1.5,)),
        ((2.0, 2.0), (2.5, -1.5)),
    ):
        region = Polytope.of({"y": [None if end is None else unit * end for end in bounds]})
        faces = FaceCoordinates.of(region)
        moved = faces.between(numbers([unit, -3 * unit * float(faces.basis)]))
        assert (moved.offsets / unit).tolist() == pytest.approx(list(expected))
        assert faces.between(torch.zeros(1, 2, dtype=torch.float64)).offsets.equal(faces.offsets)
