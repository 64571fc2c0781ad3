"""Draws of the outcomes: their share in the region is the claim, and their moments are those of the model."""

from itertools import permutations

import pytest
import torch
from torch.testing import assert_close

import rehearsal_torch as rt
from rehearsal_torch.objectives.outcome.outcome_success import OutcomeSuccess
from rehearsal_torch.problems.rehearsal.yes_no import YesNo
from rehearsal_torch.problems.world_size import SampleSize
from rehearsal_torch.spaces.polytope import Polytope
from rehearsal_torch.surrogates.outcome.outcome_regression import OutcomeRegression
from rehearsal_torch.surrogates.outcome_draws import OutcomeDraws, of_response
from rehearsal_torch.surrogates.structural.linear_model import AffineResponse
from rehearsal_torch.training.fit import fit
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
    objective = OutcomeSuccess.for_sets(model, [case])[1]
    action = numbers(0.4, -0.2)
    (claim,) = objective.appraise(action.unsqueeze(0))
    after = model.outcome_draws(("a", "c"), numbers(0.3), action)
    before = model.outcome_draws((), numbers(0.3), numbers())
    assert after.values.shape == before.values.shape == (64 * 128, 1)
    assert after.share(world.region) == pytest.approx(claim.estimate.point, abs=1e-6)
    assert before.share(world.region) == pytest.approx(claim.baseline.point, abs=1e-6)


@pytest.mark.slow
def test_the_stack_passes_on_the_weight_of_the_outcome_regression():
    world = chain()
    model = rt.learn(world.table(200).to_frame(), world.task.to_plain() | {"candidates": [["m"]]}, **{
        "surrogate.indicator.estimator.members": 1,
        "surrogate.indicator.estimator.features": 40,
        "surrogate.indicator.estimator.direction_rows": 60,
        "surrogate.indicator.estimator.width_rows": 60,
    })  # fmt: skip
    (decision,) = model.decide({"x": 0.1})
    action = torch.tensor(list((decision.to_dict()["alteration"] or decision.trace["would_set"]).values()))
    found = model.surrogate.outcome_draws(("m",), numbers(0.1), action.double())
    assert 0 < found.weight < 1
    assert found.weight == pytest.approx(1 - model.surrogate.weight)
    assert found.share(world.task.region) == pytest.approx(decision.trace["estimates"]["outcome"], abs=1e-6)


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
        assert found.weight == 1.0


def test_bounds_are_those_of_the_faces_that_bound_one_coordinate():
    region = Polytope(("y", "z"), numbers(2, 0, -4, 0, 0, -1, 1, 1).reshape(4, 2), numbers(6, 4, 1, 9))
    found = OutcomeDraws(numbers(0, 0).reshape(1, 2), torch.eye(2, dtype=torch.float64)).bounds(region)
    assert found == [pytest.approx((-1.0, 3.0)), pytest.approx((-1.0, torch.inf))]
    turned = OutcomeDraws(numbers(0).reshape(1, 1), numbers(-1, 0).reshape(1, 2)).bounds(region)
    assert turned == [pytest.approx((-3.0, 1.0))]


def test_the_share_is_counted_in_all_faces_at_once():
    region = Polytope(("y", "z"), numbers(1, 0, 0, 1, 1, 1).reshape(3, 2), numbers(1, 1, 1))
    values = numbers(0.9, 0.9, 0.5, 0.4, -1, 0.5, 2, -3).reshape(4, 2)
    assert OutcomeDraws(values, torch.eye(2, dtype=torch.float64)).share(region) == 0.5
