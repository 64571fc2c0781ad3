import pytest
import torch

from rehearsal_torch.objectives.centre_distance import CentreDistance
from rehearsal_torch.search.alterations.adam_in_box import AdamInBox
from rehearsal_torch.surrogates.structural.flow_scm import FlowStructural
from rehearsal_torch.training.fit import fit
from tests.toys.linear_truth import chain, managing


@pytest.mark.slow
def test_the_mean_is_brought_to_the_centre():
    world = managing()
    made, some_cases = fit(FlowStructural(world.task), world.table(1000)), world.cases(5)
    objective = CentreDistance.for_cases(made, some_cases, loss="mse")
    decisions = AdamInBox().batch_search(objective)
    for one_case, decision in zip(some_cases, decisions, strict=True):
        altered = dict(zip(decision.alteration.names, decision.alteration.values.tolist(), strict=True))
        given = {name: float(value) for name, value in one_case.given.items()}
        rows = world.draw(20000, 3, given, altered)
        # The box stops self_pricing short of the very centre (1.2, 1.5).
        assert rows[:, -2:].mean(0) == pytest.approx([1.2, 1.5], abs=0.2)
        assert decision.estimate.point == pytest.approx(world.success(one_case, altered), abs=0.05)


@pytest.mark.slow
def test_no_grid_point_has_a_smaller_loss():
    world = chain()
    made, some_cases = fit(FlowStructural(world.task), world.table(500)), world.cases(4)
    one = CentreDistance.for_cases(made, some_cases).sets[0]
    search = AdamInBox()
    found = search.descend(one, search.coarse(one).unsqueeze(0), None, torch.arange(4), 0.025, 50)[0]
    with torch.no_grad():
        grid = torch.linspace(-1, 1, 401, dtype=torch.float64).reshape(-1, 1, 1).expand(-1, 4, 1)
        # Of the steps that improved the loss the one with most draws in the region is kept, hence the
        # tolerance.
        assert (one(found) >= one(grid).amax(0) - 5e-3).all()


@pytest.mark.slow
def test_actions_stay_in_the_box_where_the_centre_is_out_of_reach():
    world = chain(lower=30.0, upper=31.0)
    made = fit(FlowStructural(world.task), world.table(300))
    for decision in AdamInBox().batch_search(CentreDistance.for_cases(made, world.cases(3))):
        setting = (
            decision.alteration.values
            if decision.alteration is not None
            else torch.tensor(list(decision.trace["would_set"].values()))
        )
        assert (setting.abs() <= 1).all()
        assert setting.abs().max() > 0.95


def test_the_answer_does_not_depend_on_the_company():
    world = managing()
    made, some_cases = fit(FlowStructural(world.task), world.table(300)), world.cases(4)
    joined, alone = (
        AdamInBox(steps=40).batch_search(CentreDistance.for_cases(made, some, precision=64))
        for some in (some_cases, some_cases[2:3])
    )
    assert torch.allclose(joined[2].alteration.values, alone[0].alteration.values, atol=1e-6)


def test_numbers_out_of_range_are_refused():
    with pytest.raises(ValueError, match="screened >= starts"):
        AdamInBox(starts=5, screened=2)
