import math
from types import SimpleNamespace

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


class Hills:
    """Two hills whose height is told step by step, in boxes of two cases that lie anywhere."""

    lower = torch.tensor([[2.0, -5.0], [-1.0, 100.0]], dtype=torch.float64)
    upper = torch.tensor([[4.0, -1.0], [3.0, 180.0]], dtype=torch.float64)
    tops = torch.tensor([[2.4, -1.5], [1.0, 130.0]], dtype=torch.float64)

    def __init__(self, share=0.5):
        self.seen, self.share = [], share

    def height(self, actions, which):
        away = (actions - self.tops[which]) / (self.upper - self.lower)[which]
        return -away.square().sum(-1) - 0.3 * away[..., 0] * away[..., 1]

    def values_and_shares(self, actions, draws, which):
        self.seen.append(actions.detach().clone())
        value = self.height(actions, which)
        return value, torch.full_like(value, self.share).detach()


@pytest.mark.parametrize("rate", [0.05, 0.3])
def test_its_steps_are_those_of_torchs_adam_with_a_half_cosine(rate):
    hills, steps = Hills(), 25
    starts = torch.stack([hills.lower + share * (hills.upper - hills.lower) for share in (0.5, 0.8)])
    found = AdamInBox(patience=10**6).descend(hills, starts, None, torch.arange(2), rate, steps)
    middle, half = (hills.upper + hills.lower) / 2, (hills.upper - hills.lower) / 2
    free = torch.atanh((starts - middle) / half).requires_grad_(True)
    adam = torch.optim.Adam([free], lr=rate, eps=1e-12)
    decay = torch.optim.lr_scheduler.LambdaLR(adam, lambda step: (1 + math.cos(math.pi * step / steps)) / 2)
    for seen in hills.seen:
        actions = middle + half * torch.tanh(free)
        torch.testing.assert_close(seen, actions.detach(), rtol=1e-9, atol=1e-9)
        adam.zero_grad()
        (-hills.height(actions, torch.arange(2)).sum()).backward()
        adam.step()
        decay.step()
    assert len(hills.seen) == steps
    heights = torch.stack([hills.height(each, torch.arange(2)) for each in hills.seen])
    torch.testing.assert_close(hills.height(found, torch.arange(2)), heights.amax(0), rtol=1e-5, atol=1e-6)


def test_a_case_that_has_stopped_improving_leaves_and_the_others_go_on():
    hills = Hills()
    starts = torch.stack([hills.tops]).clone()
    starts[0, 1] = hills.lower[1] + 1.0
    AdamInBox(patience=3).descend(hills, starts, None, torch.arange(2), 0.05, 40)
    assert [each.shape[1] for each in hills.seen[:5]] == [2] * 4 + [1]
    assert len(hills.seen) == 40
    only = Hills()
    found = AdamInBox().descend(only, starts, None, torch.tensor([1]), 0.05, 5)
    assert {each.shape[1] for each in only.seen} == {1}
    assert torch.equal(found[:, 0], starts[:, 0]), "others stay at their starts"


def test_of_steps_that_improve_the_one_with_the_largest_share_is_kept():
    hills = Hills()
    shares = iter([0.2, 0.9, 0.4, 0.4])

    def told(actions, draws, which):
        value, _ = Hills.values_and_shares(hills, actions, draws, which)
        return value, torch.full_like(value, next(shares)).detach()

    starts = (hills.lower + 0.5 * (hills.upper - hills.lower)).unsqueeze(0)
    made = SimpleNamespace(lower=hills.lower, upper=hills.upper, values_and_shares=told)
    found = AdamInBox().descend(made, starts, None, torch.arange(2), 0.02, 4)
    heights = [float(hills.height(each, torch.arange(2)).sum()) for each in hills.seen]
    assert heights == sorted(heights)
    torch.testing.assert_close(found, hills.seen[1])


def test_a_budget_ends_it_after_a_step():
    hills = Hills()
    starts = (hills.lower + 0.5 * (hills.upper - hills.lower)).unsqueeze(0)
    spent = SimpleNamespace(out=lambda: True)
    AdamInBox().descend(hills, starts, None, torch.arange(2), 0.05, 9, spent)
    assert len(hills.seen) == 1
