"""Sampled refinement on functions whose optimum is known."""

import pytest
import torch

from rehearsal_torch.data.decision import RehearsalCase
from rehearsal_torch.objectives.objective import AlterationObjective, Appraisal, Candidates, chance
from rehearsal_torch.search.alterations.sampled_refinement import SampledRefinement

WIDE = {"a": (-2.0, 2.0), "b": (-1.0, 3.0)}


class Steps(AlterationObjective):
    """A staircase around a point that depends on the case; every action that is looked at must be
    feasible."""

    def __init__(self, cases, names, height=0.0, allowed=None):
        super().__init__(cases, names)
        self.height, self.allowed = height, allowed
        self.middle = torch.tensor([[case.given["x"]] * len(names) for case in cases], dtype=torch.float64)

    def __call__(self, actions):
        assert ((actions >= self.lower) & (actions <= self.upper)).all()
        return self.height - ((actions - self.middle).norm(dim=-1) * 50).floor() / 50

    def acceptable(self, actions):
        if self.allowed is None:
            return super().acceptable(actions)
        return actions[..., 0] < self.allowed

    def starts(self, count):
        return self.lower.expand(count, -1, -1)

    def appraise(self, actions):
        return [Appraisal(chance(0.5), chance(0.1)) for _ in actions]


def cases(*places, box=WIDE):
    return [
        RehearsalCase(str(index), {"x": torch.tensor(each, dtype=torch.float64)}, box)
        for index, each in enumerate(places)
    ]


def test_every_case_has_its_own_optimum():
    some = cases(0.3, -0.7, 1.9)
    found = SampledRefinement().batch_search(Candidates(some, [Steps(some, ("a", "b"))]))
    for case, decision in zip(some, found, strict=True):
        assert (decision.alteration.values - case.given["x"]).abs().max() < 0.06
        assert decision.trace["search"] == "sampled_refinement"
        assert decision.trace["evaluations"] == 180
    (alone,) = SampledRefinement().batch_search(Candidates(some[:1], [Steps(some[:1], ("a", "b"))]))
    assert torch.equal(alone.alteration.values, found[0].alteration.values)


def test_where_nothing_good_is_acceptable_the_best_acceptable_is_searched_for():
    some = cases(0.3, -0.7, 1.9)
    found = SampledRefinement().batch_search(Candidates(some, [Steps(some, ("a", "b"), allowed=-0.5)]))
    for case, decision in zip(some, found, strict=True):
        action = decision.alteration.values
        assert float(action[0]) < -0.5
        nearest = max(float(case.given["x"]) + 0.5, 0.0)
        assert float((action - case.given["x"]).norm()) == pytest.approx(nearest, abs=0.2)
    free = SampledRefinement().batch_search(Candidates(some, [Steps(some, ("a", "b"))]))
    assert torch.equal(found[1].alteration.values, free[1].alteration.values), "accepted at once"
    (alone,) = SampledRefinement().batch_search(
        Candidates(some[:1], [Steps(some[:1], ("a", "b"), allowed=-0.5)])
    )
    assert torch.equal(alone.alteration.values, found[0].alteration.values)


def test_a_set_with_an_acceptable_action_comes_before_better_ones_without():
    some = cases(0.3)
    sets = [Steps(some, ("a",), height=1.0, allowed=-9.0), Steps(some, ("b",), allowed=9.0)]
    (decision,) = SampledRefinement().batch_search(Candidates(some, sets))
    assert decision.trace["altered"] == ["b"]
    (decision,) = SampledRefinement().batch_search(Candidates(some, sets[:1]))
    assert decision.trace["altered"] == ["a"], "the best one of those that may not be recommended"


def test_an_optimum_beyond_the_box_is_met_on_its_bound():
    some = cases(9.0)
    (decision,) = SampledRefinement().batch_search(Candidates(some, [Steps(some, ("a", "b"))]))
    assert decision.alteration.values.tolist() == [2.0, 3.0]


def test_more_rounds_come_nearer():
    some = cases(0.123, -1.01)

    def distance(rounds):
        objective = Steps(some, ("a", "b"))
        objective.__class__ = Smooth
        actions, count = SampledRefinement(starts=4, samples=8, rounds=rounds).refined(objective)
        assert count == 12 + 20 * rounds
        return float((actions[0] - objective.middle).norm())

    assert distance(1) > distance(4) > distance(8)


class Smooth(Steps):
    def __call__(self, actions):
        return -(actions - self.middle).norm(dim=-1)


@pytest.mark.parametrize("name", ["starts", "samples", "rounds", "kept", "perturbations", "batch_size"])
def test_numbers_must_be_positive(name):
    with pytest.raises(ValueError, match="expected positive numbers"):
        SampledRefinement(**{name: 0})


def test_the_smallest_settings_are_allowed():
    smallest = dict.fromkeys(("starts", "samples", "rounds", "kept", "perturbations", "batch_size"), 1)
    some = cases(0.5)
    (decision,) = SampledRefinement(**smallest).batch_search(Candidates(some, [Steps(some, ("a",))]))
    assert decision.trace["evaluations"] == 3


def test_without_time_the_best_of_the_first_candidates_is_the_answer():
    some = cases(0.5, -0.5)
    search = SampledRefinement(starts=4, samples=8, budget_s=1e-9)
    decisions = search.batch_search(Candidates(some, [Steps(some, ("a",))]))
    for decision in decisions:
        assert decision.trace["evaluations"] == 12
        assert "budget_s=1e-09" in decision.trace["stopped"]


def test_where_nothing_is_accepted_the_best_is_the_answer_and_each_case_is_looked_at_by_itself():
    some = cases(0.5, 0.5)
    objective = Steps(some, ("a",), allowed=torch.tensor([0.45, -9.0], dtype=torch.float64))
    one, other = SampledRefinement(kept=20, rounds=1).batch_search(Candidates(some, [objective]))
    assert 0.3 < float(one.alteration.values) < 0.45
    assert abs(float(other.alteration.values) - 0.5) < 0.06


class Recorded(Steps):
    """The same value everywhere but at a point that is kept: what is evaluated is recorded."""

    def __init__(self, cases, names, scale):
        super().__init__(cases, names)
        self.scale, self.asked = torch.full((len(names),), scale, dtype=torch.float64), []

    def __call__(self, actions):
        self.asked.append(actions)
        return -(actions != 0.0).any(-1).to(actions)

    def starts(self, count):
        return torch.zeros(count, len(self.cases), len(self.names), dtype=torch.float64)

    def frame(self):
        return torch.zeros_like(self.scale), self.scale


@pytest.mark.parametrize(("scale", "first"), [(0.5, 0.5), (1e3, 100.0)])
def test_neighbourhoods_shrink_by_half_and_are_no_wider_than_half_the_box(scale, first):
    some = cases(0.0, box={"a": (-100.0, 100.0), "b": (-100.0, 100.0)})
    objective = Recorded(some, ("a", "b"), scale)
    SampledRefinement(starts=1, samples=64, rounds=3, kept=1, perturbations=4000).refined(objective)
    whole, *rounds = objective.asked
    assert whole[1:].amin() < -95
    assert whole[1:].amax() > 95
    assert whole[1:].mean().abs() < 10
    for place, asked in enumerate(rounds):
        spread = first * 0.5**place
        # The shares within a standard deviation, and within half of one, of what is kept.
        for part, share in ((1.0, 0.6827), (0.5, 0.3829)):
            inside = (asked.abs() < part * min(spread, 99.99)).to(asked).mean()
            assert float(inside) == pytest.approx(share, abs=0.02)
