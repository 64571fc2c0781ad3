import math
from itertools import combinations
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from scipy.optimize import linprog, minimize
from scipy.stats import norm

from rehearsal_torch.objectives.scenario_success import ScenarioCount, Scenarios
from rehearsal_torch.search.alterations import mixed_integer
from rehearsal_torch.search.alterations.interval_sweep import Cover, swept
from rehearsal_torch.search.alterations.mixed_integer import (
    AlterationBudget,
    MixedInteger,
    Solution,
    along,
    joint_candidates,
    programmed,
    relaxed,
    solve,
)
from rehearsal_torch.search.search import UNLIMITED
from rehearsal_torch.surrogates.structural.linear_scm import LinearStructural
from rehearsal_torch.training.surrogate_fit import fit
from tests.toys.counted import Counted, bands, cases, choose_by_validation
from tests.toys.linear_truth import chain, managing


def enumerated(gains, slack, lower, upper):
    """The largest set of scenarios that one point satisfies, by trying every set."""
    for size in range(len(gains), 0, -1):
        for some in combinations(range(len(gains)), size):
            rows = np.concatenate([gains[i] for i in some])
            bounds = list(zip(lower, upper, strict=True))
            if (
                linprog(
                    np.zeros(len(lower)),
                    A_ub=rows,
                    b_ub=np.concatenate([slack[i] for i in some]),
                    bounds=bounds,
                    method="highs",
                ).status
                == 0
            ):
                return size
    return 0


@pytest.mark.parametrize("size", [(1.0, 1.0), (1e7, 1e-7), (3.0, 1e9)], ids=str)
def test_boxes_that_lie_anywhere_in_any_unit_have_the_same_answer(size):
    stream, unit = np.random.default_rng(3), np.array(size)
    gains, slack = stream.normal(size=(6, 2, 2)), stream.normal(size=(6, 2))
    # Rows pass through the box, which does not lie around zero.
    lower, upper = np.array([2.0, -5.0]), np.array([3.5, -3.0])
    slack = slack + (gains * (lower + upper) / 2).sum(-1)
    found = solve(gains / unit, slack, lower * unit, upper * unit)
    best = enumerated(gains, slack, lower, upper)
    assert 0 < best < 6
    assert (found.count, found.bound) == (best, pytest.approx(best))
    action = found.action / unit
    assert ((action >= lower - 1e-9) & (action <= upper + 1e-9)).all()
    assert int((gains @ action <= slack + 1e-6).all(-1).sum()) == best


def test_a_tree_that_is_cut_off_says_how_far_it_got():
    stream = np.random.default_rng(0)
    gains, slack = stream.normal(size=(60, 2, 3)), stream.normal(size=(60, 2)) - 0.8
    cut, whole = (solve(gains, slack, -np.ones(3), np.ones(3), nodes=nodes) for nodes in (1, 100000))
    assert whole.bound == pytest.approx(whole.count)
    assert cut.bound >= whole.count >= cut.count


def test_it_is_never_worse_than_the_sweeps_alone():
    world = managing()
    made, some_cases = fit(LinearStructural(world.task, 800), world.table(300)), world.cases(3)
    objective = ScenarioCount.for_cases(
        made, some_cases, search_scenarios=600, validation_scenarios=150, test_scenarios=50
    )
    (one,) = objective.sets
    alone = one.search_scenarios.desired(swept(one, 1, 1, 50)).sum(0)
    programmed, facts = MixedInteger(scenarios=60, starts=1, rounds=1, screening_draws=50).best(one)
    assert (one.search_scenarios.desired(programmed).sum(0) >= alone).all()
    assert all(0 <= fact["program_gap"] <= 1 for fact in facts)


def test_one_variable_needs_no_program():
    world = chain()
    objective = ScenarioCount.for_cases(
        fit(LinearStructural(world.task, 300), world.table(300)),
        world.cases(2),
        search_scenarios=200,
        validation_scenarios=50,
        test_scenarios=50,
    )
    one, facts = MixedInteger().best(objective.sets[0])
    assert one.shape == (2, 1)
    assert facts == [{}, {}]
    decisions = MixedInteger(scenarios=15, nodes=20).batch_search(objective)
    assert {len(each.alteration.names) for each in decisions} <= {1, 2}


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_programs_of_one_variable_count_as_sweeps_do(sign):
    stream = np.random.default_rng(1)
    for _ in range(8):
        ends = np.sort(stream.uniform(1.0, 6.0, (7, 2)))
        # One scenario always holds; rows differ in their units.
        ends[0] = [0.0, 9.0]
        ends, unit = np.sort(sign * ends), 10 ** stream.uniform(-3.0, 3.0, (7, 2))
        gains, slack = np.array([1.0, -1.0]) * unit, np.stack([ends[:, 1], -ends[:, 0]], -1) * unit
        lower, upper = np.sort(sign * np.array([2.0, 5.0]))
        left, right = (
            torch.from_numpy(ends.clip(lower, None)[:, 0]),
            torch.from_numpy(ends[:, 1]).clamp_max(upper),
        )
        _, most = Cover.of(left, right).deepest()
        for known in (0, most):
            found = solve(gains[..., None], slack, lower[None], upper[None], known=known)
            assert (found.count, found.bound) == (most, pytest.approx(most))
            (action,) = found.action
            assert lower <= action <= upper
            assert int(((ends[:, 0] <= action + 1e-7) & (action - 1e-7 <= ends[:, 1])).sum()) == most


def test_a_variable_that_is_held_takes_part():
    gains, slack = np.array([[[1.0, 1.0]], [[-1.0, 2.0]]]), np.array([[7.5], [5.5]])
    found = solve(gains, slack, np.array([0.0, 4.0]), np.array([9.0, 4.0]))
    assert (found.count, found.action[1]) == (2, 4.0)
    assert 2.5 - 1e-6 <= found.action[0] <= 3.5 + 1e-6


def test_the_solution_of_a_program_is_swept_as_well(monkeypatch):
    # Two scenarios hold in a small square on its tip around (9, 4), which the box cuts.
    turned = torch.tensor([[1.0, 1.0], [-1.0, -1.0], [1.0, -1.0], [-1.0, 1.0]], dtype=torch.float64)
    slack = torch.tensor([[1.0] * 4, [13.01, -12.99, 5.01, -4.99], [13.01, -12.99, 5.01, -4.99]])
    seen = Scenarios(turned.expand(3, 4, 2), slack.double().unsqueeze(1))
    one = Counted(cases(("a", "b"), (-9.0, 9.0)), ("a", "b"), seen, seen)
    monkeypatch.setattr(mixed_integer, "swept", lambda *_: torch.zeros(1, 2, dtype=torch.float64))
    monkeypatch.setattr(mixed_integer, "solve", lambda *_: Solution(np.array([30.0, 4.0]), 5, 3.0))
    found, facts = MixedInteger(rounds=1).best(one)
    assert int(seen.desired(found).sum()) == 2
    assert facts == [{"program_gap": 0.0}]


@pytest.mark.parametrize("dual", [None, -math.inf])
def test_a_tree_that_is_cut_off_before_it_has_an_answer_gives_the_bound_of_counting(monkeypatch, dual):
    nothing = SimpleNamespace(x=None, mip_dual_bound=dual)
    monkeypatch.setattr(mixed_integer, "milp", lambda *_, **__: nothing)
    slack = np.array([[0.0], [0.5], [9.0], [-2.5]])
    assert solve(np.ones((4, 1, 2)), slack, -np.ones(2), np.ones(2)) == Solution(None, 0, 3.0)


def test_sets_are_compared_by_the_validation():
    choose_by_validation(MixedInteger, "mixed_integer")


BOX = -torch.ones(2, dtype=torch.float64), torch.ones(2, dtype=torch.float64)


def drawn(seed, count=300, faces=3):
    """Scenarios of two variables whose rows go through the box."""
    stream = torch.Generator().manual_seed(seed)
    gains = torch.randn(1, faces, 2, dtype=torch.float64, generator=stream) + 0.2 * torch.randn(
        count, faces, 2, dtype=torch.float64, generator=stream
    )
    return Scenarios(gains, 0.3 + 0.4 * torch.randn(count, 1, faces, dtype=torch.float64, generator=stream))


@pytest.mark.parametrize("seed", range(5))
def test_the_relaxation_is_climbed_to_its_top(seed):
    scenarios = drawn(seed)
    gains, slack = scenarios.gains.mean(0).numpy(), scenarios.slack[:, 0].mean(0).numpy()
    spread = scenarios.slack[:, 0].std(0).numpy()

    def loss(z):
        return -norm.logcdf((slack - gains @ z) / spread).sum()

    best = min(
        minimize(loss, start, bounds=[(-1, 1)] * 2, method="L-BFGS-B").fun
        for start in ([0.0, 0.0], [0.5, -0.5], [-0.5, 0.5])
    )
    found = relaxed(scenarios, *BOX)
    assert loss(found.numpy()) == pytest.approx(best, abs=1e-5)
    away = torch.tensor([5.0, -30.0], dtype=torch.float64)
    moved = Scenarios(scenarios.gains, scenarios.slack + (scenarios.gains @ away).unsqueeze(1))
    assert torch.allclose(relaxed(moved, *(end + away for end in BOX)) - away, found, rtol=0, atol=1e-3)


def test_programs_that_drop_what_others_satisfied_give_different_answers():
    # Two groups that no point satisfies together: the second program answers for what the first left.
    left = Scenarios(
        torch.tensor([[[1.0, 0.0]]], dtype=torch.float64).expand(60, 1, 2),
        torch.full((60, 1, 1), -0.5, dtype=torch.float64),
    )
    right = Scenarios(-left.gains[:50], left.slack[:50])
    whole = Scenarios(torch.cat([left.gains, right.gains]), torch.cat([left.slack, right.slack]))
    begin = torch.zeros(2, dtype=torch.float64)
    answers = programmed(whole, *BOX, begin, 4, 110, 50, UNLIMITED, torch.Generator().manual_seed(0))
    assert {float(each[0].sign()) for each in answers} == {-1.0, 1.0}


@pytest.fixture(scope="module")
def objective():
    world = managing()
    made = fit(LinearStructural(world.task, 2000), world.table(300))
    return ScenarioCount.for_cases(
        made, world.cases(2), search_scenarios=900, validation_scenarios=900, test_scenarios=100
    ).sets[0]


@pytest.mark.parametrize("tau", [0.5, 0.8])
def test_every_candidate_qualifies_by_both_samples_and_they_reach_to_the_border(objective, tau):
    points = joint_candidates(objective, 1, tau, programs=2, scenarios=30, nodes=50)
    assert len(points) >= 20
    actions = points.unsqueeze(1).expand(-1, 2, -1)
    shares = torch.stack([objective(actions)[:, 1], objective.compared_probability(actions)[:, 1]])
    assert (shares >= tau).all()
    assert shares.amin(0).min() <= tau + 0.01
    assert ((points >= objective.lower[1]) & (points <= objective.upper[1])).all()


def test_nothing_that_falls_short_is_given(objective):
    assert joint_candidates(objective, 0, 0.9999, programs=1, scenarios=20, nodes=10).shape == (0, 2)


ACROSS = {"direction": (1.0, 2.0)}


def test_ends_and_middles_of_a_line_are_those_that_hold_in_both_samples():
    search = bands([(0, 4), (1, 5), (2, 6), (3, 7)], **ACROSS)
    validation = bands([(-5, 3)] * 3 + [(4, 8)] * 3, **ACROSS)
    point, direction = torch.tensor([[0.5, 1.0], [2.0, 0.0]], dtype=torch.float64)
    box = torch.tensor([[-0.25, 0.0], [9.0, 2.0]], dtype=torch.float64)
    # Half of them: a + 2 b in [1, 3] or [4, 6], of which the box cuts away a < -.25.
    found = along((search, validation), *box, point, direction, 0.5)
    assert torch.stack(found).tolist() == [[value, 1.0] for value in (-0.25, 2, 1, 4, 0.375, 3)]
    # Three quarters hold in [2, 5] and nowhere in the validation.
    assert along((search, validation), *box, point, direction, 0.75) == []


def pair_joint_candidates(*shifts, unit=1.0):
    """Boxes of which the second variable is in a unit of its own."""
    boxes = [{"a": (shift - 10, shift + 10), "b": (shift - 10 * unit, shift + 10 * unit)} for shift in shifts]
    parts = [bands(each, *shifts, direction=(1.0, 2 / unit)) for each in ([(0, 4), (2, 6)], [(1, 5), (3, 9)])]
    return Counted(cases(("a", "b"), *boxes), ("a", "b"), *parts)


def test_candidates_have_the_same_places_in_any_unit_and_far_away():
    plain = joint_candidates(pair_joint_candidates(0.0), 0, 0.5, programs=0)
    small = joint_candidates(pair_joint_candidates(0.0, unit=1 / 64), 0, 0.5, programs=0)
    assert torch.allclose(small * torch.tensor([1.0, 64.0]), plain, rtol=1e-9, atol=1e-9)
    far = joint_candidates(pair_joint_candidates(0.0, 1e5), 1, 0.5, programs=0)
    assert torch.allclose(far - 1e5, plain, rtol=0, atol=1e-6)
    # The top of the relaxation and the swept point; for each two axes and four lines, each with an interval.
    assert len(plain) == 2 + 2 * 6 * 3
    assert len(joint_candidates(pair_joint_candidates(0.0), 0, 0.5, programs=0, lines=0)) == 2 + 2 * 2 * 3


def test_a_spent_budget_leaves_one_line():
    spent = SimpleNamespace(out=lambda: True, left=lambda: 0.0)
    assert len(joint_candidates(pair_joint_candidates(0.0), 0, 0.5, budget=spent)) == 2 + 3


@pytest.mark.parametrize("origin", [0.0, 1e9, -1e9])
def test_what_costs_the_limit_is_affordable_wherever_nothing_is_spent(origin):
    budget = AlterationBudget.of({"limit": 0.3, "costs": {"a": 2.0}, "reference": {"a": origin}})
    ends = torch.tensor([[origin - 0.15], [origin + 0.15], [origin]], dtype=torch.float64)
    assert budget.affordable(("a",), ends).tolist() == [True] * 3
    assert budget.affordable(("a",), ends[:2] + torch.tensor([[-0.01], [0.01]])).tolist() == [False] * 2
    assert budget.reach("a") == (origin - 0.15, origin + 0.15)
