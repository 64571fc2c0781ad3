import math
from types import SimpleNamespace

import pytest
import torch

from rehearsal_torch.objectives.centre_distance import VALIDATION, CentreDistance
from rehearsal_torch.objectives.objective import AlterationObjective, Appraisal, Candidates, chance
from rehearsal_torch.search.alterations.adam_in_box import AdamInBox
from rehearsal_torch.search.search import Budget
from rehearsal_torch.surrogates.structural.flow_scm import FlowStructural
from rehearsal_torch.training.surrogate_fit import fit
from tests.toys.counted import cases
from tests.toys.linear_truth import chain, managing


@pytest.mark.slow
def test_the_mean_is_brought_to_the_centre():
    world = managing()
    made, some_cases = fit(FlowStructural(world.task), world.table(1000)), world.cases(5)
    objective = CentreDistance.for_cases(made, some_cases)
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


def test_a_start_is_left_after_its_patience_of_steps_that_hardly_improve():
    for values in ([0.0] * 9, [1e6, 1e6 + 0.5, 1e6 + 0.9, 1e6, 1e6 + 0.5]):
        told, seen = iter(values), []

        def flat(actions, draws, which, told=told, seen=seen):
            seen.append(draws)
            value = torch.full(actions.shape[:-1], next(told), dtype=torch.float64)
            return value, torch.zeros_like(value)

        made = SimpleNamespace(lower=Hills.lower, upper=Hills.upper, values_and_shares=flat)
        AdamInBox(patience=3).descend(made, Hills.tops.unsqueeze(0), 7, torch.arange(2), 0.1, 9)
        assert seen == [7] * 4


def test_a_coordinate_that_is_held_stays():
    one = Told(cases(("a", "b"), {"a": (1.0, 1.0), "b": (1.5, 2.0)}), ("a", "b"), None)
    found = AdamInBox().descend(one, one.starts(5)[1:2], None, torch.arange(1), 0.3, 9)
    assert one.calls[0][2].flatten().tolist() == pytest.approx([1.0, 1.625]), "from its start, in a small box"
    assert found[0, 0, 0] == 1.0
    assert found[0, 0, 1] > 1.9


@pytest.mark.parametrize(("steps", "asked"), [(1, False), (2, True)])
def test_a_budget_is_asked_only_while_steps_are_left(steps, asked):
    hills, spent = Hills(), Budget(1e-9)
    AdamInBox().descend(hills, torch.stack([hills.lower]), None, torch.arange(2), 0.1, steps, spent)
    assert (len(hills.seen), spent.ran_out) == (1, asked)


class Told(AlterationObjective):
    """A parabola in [-1, 3], and shares of desired draws that are told."""

    def __init__(self, cases, names, share):
        super().__init__(cases, names)
        self.told, self.calls = share, []

    def __call__(self, actions):
        return -(actions - 2).square().sum(-1)

    def starts(self, count):
        shares = torch.linspace(0, 1, count, dtype=torch.float64)[:, None, None]
        return self.lower + shares * (self.upper - self.lower)

    def values_and_shares(self, actions, draws, which=None):
        self.calls.append((draws, which, actions.detach().clone()))
        return self(actions), torch.full(actions.shape[:-1], 0.5, dtype=torch.float64)

    def share(self, actions, sample):
        assert sample == VALIDATION
        return self.told(actions)

    def appraise(self, actions):
        return [Appraisal(chance(0.5), chance(0.1)) for _ in actions]


def told(one, other, **settings):
    """Two sets of one variable in three cases, searched."""
    three = cases(("a", "b"), *[(-1.0, 3.0)] * 3)
    sets = [Told(three, ("a",), one), Told(three, ("b",), other)]
    settings = {"steps": 5, "starts": 2, "screened": 7, "screening_draws": 11, "rate": 0.02} | settings
    return sets, AdamInBox(**settings).batch_search(Candidates(three, sets))


def constant(*shares):
    return lambda actions: torch.tensor(shares, dtype=torch.float64).expand(actions.shape[:-1])


def test_the_best_of_screened_points_are_climbed_from_and_then_finer_with_all_draws():
    (one, other), found = told(constant(0.75, 0.5, 0.9), constant(0.5, 0.75, 0.6), near=0.25)
    assert [each[0] for each in one.calls] == [11] * 6 + [None] * 2
    assert torch.equal(one.calls[0][2], one.starts(7))
    # Of -1, -1/3, ..., 7/3, 3 the two closest to the top of 2.
    assert sorted(one.calls[1][2][:, 0, 0].tolist()) == pytest.approx([5 / 3, 7 / 3])
    # A share that is less by exactly `near` is still refined, one by .3 is not.
    assert [each[1].tolist() for each in one.calls[6:]] == [[0, 1, 2]] * 2
    assert [each[1].tolist() for each in other.calls[6:]] == [[0, 1]] * 2
    first, second = (torch.atanh(each[2][0] / 2 - 0.5) for each in one.calls[6:])
    torch.testing.assert_close((second - first).abs(), torch.full_like(first, 0.005))
    rough = torch.stack([each[2][0] for each in one.calls[1:6]])
    torch.testing.assert_close(one.calls[6][2][0], rough.gather(0, one(rough).argmax(0)[None, :, None])[0])
    # Of equal shares the finer point is taken.
    assert [each.trace["altered"] for each in found] == [["a"], ["b"], ["a"]]
    assert float(found[0].alteration.values) == float(one.calls[-1][2][0, 0, 0])
    assert [each.value for each in found] == [0.75, 0.75, 0.9]


def test_a_spent_budget_leaves_the_first_set_with_one_step():
    (one, other), found = told(constant(0.5, 0.5, 0.5), constant(0.9, 0.9, 0.9), budget_s=1e-9)
    assert ([each[0] for each in one.calls], other.calls) == ([11, 11], [])
    assert found[0].trace["altered"] == ["a"]
    assert "stopped after" in found[0].trace["stopped"]
