"""Projected ascent on functions whose optimum is known."""

import pytest
import torch

from rehearsal_torch.data.decision import RehearsalCase
from rehearsal_torch.objectives.objective import AlterationObjective, Appraisal, Candidates, chance
from rehearsal_torch.search.alterations import projected_ascent
from rehearsal_torch.search.alterations.projected_ascent import ProjectedAscent, SampledRefinement

WIDE = {"a": (-2.0, 2.0), "b": (-1.0, 3.0)}


class Function(AlterationObjective):
    """f(actions, shift), the shift being the situation's; starts are a grid, and every action that is looked
    at must be feasible."""

    def __init__(self, some_cases, names, function, doubt=None, allowed=None):
        super().__init__(some_cases, names)
        self.function, self.doubt, self.allowed = function, doubt, allowed
        self.shift = torch.stack([one_case.given["x"] for one_case in some_cases])

    def __call__(self, actions):
        assert ((actions >= self.lower.to(actions) - 1e-6) & (actions <= self.upper.to(actions) + 1e-6)).all()
        return self.function(actions, self.shift.to(actions))

    def comparison_value(self, actions):
        return self(actions) if self.doubt is None else self(actions) - self.doubt(actions)

    def acceptable(self, actions):
        if self.allowed is None:
            return super().acceptable(actions)
        return self.allowed(actions[..., 0], self.shift.to(actions))

    def starts(self, count):
        part = torch.linspace(0.05, 0.95, count, dtype=torch.float64)[:, None, None]
        turned = part if len(self.names) == 1 else torch.cat([part, part.flip(0)], -1)
        return self.lower + turned * (self.upper - self.lower)

    def appraise(self, actions):
        return [Appraisal(chance(0.5), chance(0.1)) for _ in actions]


class Functions(Candidates):
    """One function for each set of names."""


def cases(*shifts, box=WIDE):
    return [
        RehearsalCase(str(index), {"x": torch.tensor(shift, dtype=torch.float64)}, box)
        for index, shift in enumerate(shifts)
    ]


def candidate_sets(some_cases, **functions):
    return Functions(
        some_cases, [Function(some_cases, tuple(names), function) for names, function in functions.items()]
    )


def bowl(actions, shift):
    """Largest where every action equals the shift; long in one direction."""
    scales = torch.tensor([1.0, 5.0])[: actions.shape[-1]].to(actions)
    return -((actions - shift.unsqueeze(-1)) * scales).square().sum(-1)


def hills(actions, shift):
    """Three hills, the highest at 1.2 + shift."""
    a = actions[..., 0] - shift
    return sum(
        height * (-((a - place) ** 2) / 0.05).exp() for height, place in ((0.6, -1.0), (0.8, 0.2), (1.0, 1.2))
    )


def values(decisions):
    return torch.stack([each.alteration.values for each in decisions])


@pytest.mark.parametrize("single", [True, False])
def test_a_concave_function_is_climbed_to_its_top_inside_or_at_the_edge(single):
    some_cases = cases(0.3, -0.7, 1.9, 5.0, -4.0)
    found = values(
        ProjectedAscent(starts=3, steps=200, single=single).batch_search(candidate_sets(some_cases, ab=bowl))
    )
    shift = torch.tensor([0.3, -0.7, 1.9, 5.0, -4.0], dtype=torch.float64)
    wanted = torch.stack([shift.clamp(-2, 2), shift.clamp(-1, 3)], -1)
    assert torch.allclose(found, wanted, atol=0.01)
    assert ((found >= torch.tensor([-2, -1])) & (found <= torch.tensor([2, 3]))).all(), (
        "not by a rounding error outside"
    )


def test_with_starts_enough_the_highest_hill_is_found():
    some_cases = cases(0.0, 0.3, -0.5)
    found = values(ProjectedAscent(starts=15, steps=100).batch_search(candidate_sets(some_cases, a=hills)))
    assert torch.allclose(found[:, 0], torch.tensor([1.2, 1.5, 0.7], dtype=torch.float64), atol=0.01)


def test_giving_up_starts_keeps_the_best_of_each_situation(monkeypatch):
    some_cases = cases(-0.3, 0.0, 0.3)
    (objective,) = candidate_sets(some_cases, a=hills).sets
    few, _ = ProjectedAscent(starts=15, steps=40, single=False).ascend(objective)
    monkeypatch.setattr(projected_ascent, "MIN_STARTS", 15)
    every, _ = ProjectedAscent(starts=15, steps=40, single=False).ascend(objective)
    assert len(every) == 15
    assert 5 <= len(few) <= 7
    torch.testing.assert_close(objective(few).amax(0), objective(every).amax(0), atol=1e-6, rtol=0)


def test_fixed_steps_are_the_papers():
    some_cases = cases(0.4)
    (objective,) = candidate_sets(some_cases, a=bowl).sets
    ends, steps = ProjectedAscent(starts=2, steps=3, rate=0.1, single=False).ascend(objective)
    by_hand = objective.starts(2)
    scale = objective.frame()[1]
    for _ in range(3):
        by_hand = (by_hand + 0.1 * scale.square() * (-2 * (by_hand - 0.4))).clamp(-2, 2)
    assert steps == 3
    assert torch.allclose(ends, by_hand)
    decision = ProjectedAscent(starts=2, steps=200, rate=0.1)(candidate_sets(some_cases, a=bowl))
    assert float(decision.alteration.values) == pytest.approx(0.4, abs=1e-3)


def test_what_the_ascent_finds_is_judged_with_the_objectives_caution():
    some_cases = cases(0.0)
    doubtful = Function(some_cases, ("a",), hills, doubt=lambda actions: 10 * (actions[..., 0] > 0.7))
    decision = ProjectedAscent(starts=15)(Functions(some_cases, [doubtful]))
    assert float(decision.alteration.values) == pytest.approx(0.2, abs=0.01), (
        "the highest hill is too doubtful"
    )


def test_a_flat_function_and_a_box_of_one_point_are_no_trouble():
    flat = ProjectedAscent(starts=3)(candidate_sets(cases(0.0), a=lambda actions, shift: 0 * actions[..., 0]))
    assert flat.value == 0
    shut = ProjectedAscent(starts=3)(
        candidate_sets(cases(0.0, box={"a": (0.5, 0.5), "b": (-1.0, 3.0)}), ab=bowl)
    )
    assert shut.alteration.values.tolist() == pytest.approx([0.5, 0.0], abs=0.01)


@pytest.mark.parametrize("rate", [None, 0.1])
def test_without_time_the_best_start_is_the_answer(rate):
    some_cases = cases(0.0, 0.3)
    objective = candidate_sets(some_cases, a=hills)
    decisions = ProjectedAscent(starts=7, rate=rate, single=False, budget_s=1e-9).batch_search(objective)
    starts = objective.sets[0].starts(7)
    best = objective.sets[0](starts).max(0)
    torch.testing.assert_close(values(decisions)[:, 0], starts[best.indices, [0, 1], 0])
    assert [each.value for each in decisions] == pytest.approx(best.values.tolist())
    assert [each.trace["steps"] for each in decisions] == [0, 0]
    assert all("budget_s=1e-09" in each.trace["stopped"] for each in decisions)


def test_where_no_end_is_accepted_the_best_accepted_start_is_the_answer():
    some_cases = cases(0.0, 0.0, 0.0)
    bounds = torch.tensor([-1.5, 9.0, -9.0], dtype=torch.float64)
    search = ProjectedAscent(starts=20, single=False)

    def below(actions, _):
        return actions < bounds.to(actions)

    objective = Function(some_cases, ("a",), bowl, allowed=below)
    low, top, none = search.batch_search(Functions(some_cases, [objective]))
    starts = objective.starts(20)[:, 0, 0]
    assert float(low.alteration.values) == pytest.approx(float(starts[starts < -1.5].max()))
    # The others climb to the top: it is accepted, or nothing is.
    for other in (top, none):
        assert float(other.alteration.values) == pytest.approx(0.0, abs=1e-3)


def test_a_fixed_step_to_an_undefined_value_is_not_made():
    def cut(actions, shift):
        """Rises with both actions; undefined where a is above the shift."""
        total = actions.sum(-1)
        return torch.where(actions[..., 0] > shift, torch.nan, total)

    some_cases = cases(-1.5, 1.95)
    (objective,) = candidate_sets(some_cases, ab=cut).sets
    search = ProjectedAscent(starts=2, steps=50, rate=0.05, single=False)
    starts, (ends, steps) = objective.starts(2), search.ascend(objective)
    assert steps == 50
    assert objective(ends)[0].isfinite().all()
    # The first start of each case rises by 0.2 until its step would be undefined; the second of one is so.
    for end, shift in zip(ends[0, :, 0].tolist(), (-1.5, 1.95), strict=True):
        assert shift - 0.2 < end <= shift
    torch.testing.assert_close(ends[1, 0], starts[1, 0])


class Steps(AlterationObjective):
    """A staircase around a point that depends on the case; every action that is looked at must be
    feasible."""

    def __init__(self, cases_sampled_refinement, names, height=0.0, allowed=None):
        super().__init__(cases_sampled_refinement, names)
        self.height, self.allowed = height, allowed
        self.middle = torch.tensor(
            [[case.given["x"]] * len(names) for case in cases_sampled_refinement], dtype=torch.float64
        )

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


def cases_sampled_refinement(*places, box=WIDE):
    return [
        RehearsalCase(str(index), {"x": torch.tensor(each, dtype=torch.float64)}, box)
        for index, each in enumerate(places)
    ]


def test_every_case_has_its_own_optimum():
    some = cases_sampled_refinement(0.3, -0.7, 1.9)
    found = SampledRefinement().batch_search(Candidates(some, [Steps(some, ("a", "b"))]))
    for case, decision in zip(some, found, strict=True):
        assert (decision.alteration.values - case.given["x"]).abs().max() < 0.06
        assert decision.trace["search"] == "sampled_refinement"
        assert decision.trace["evaluations"] == 180
    (alone,) = SampledRefinement().batch_search(Candidates(some[:1], [Steps(some[:1], ("a", "b"))]))
    assert torch.equal(alone.alteration.values, found[0].alteration.values)


def test_where_nothing_good_is_acceptable_the_best_acceptable_is_searched_for():
    some = cases_sampled_refinement(0.3, -0.7, 1.9)
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
    some = cases_sampled_refinement(0.3)
    sets = [Steps(some, ("a",), height=1.0, allowed=-9.0), Steps(some, ("b",), allowed=9.0)]
    (decision,) = SampledRefinement().batch_search(Candidates(some, sets))
    assert decision.trace["altered"] == ["b"]
    (decision,) = SampledRefinement().batch_search(Candidates(some, sets[:1]))
    assert decision.trace["altered"] == ["a"], "the best one of those that may not be recommended"


def test_more_rounds_come_nearer():
    some = cases_sampled_refinement(0.123, -1.01)

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


def test_without_time_the_best_of_the_first_candidates_is_the_answer():
    some = cases_sampled_refinement(0.5, -0.5)
    search = SampledRefinement(starts=4, samples=8, budget_s=1e-9)
    decisions = search.batch_search(Candidates(some, [Steps(some, ("a",))]))
    for decision in decisions:
        assert decision.trace["evaluations"] == 12
        assert "budget_s=1e-09" in decision.trace["stopped"]


def test_where_nothing_is_accepted_the_best_is_the_answer_and_each_case_is_looked_at_by_itself():
    some = cases_sampled_refinement(0.5, 0.5)
    objective = Steps(some, ("a",), allowed=torch.tensor([0.45, -9.0], dtype=torch.float64))
    one, other = SampledRefinement(kept=20, rounds=1).batch_search(Candidates(some, [objective]))
    assert 0.3 < float(one.alteration.values) < 0.45
    assert abs(float(other.alteration.values) - 0.5) < 0.06
