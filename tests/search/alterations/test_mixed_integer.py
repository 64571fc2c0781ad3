import math
from itertools import combinations
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from scipy.optimize import linprog

from rehearsal_torch.objectives.scenario_success import ScenarioCount, Scenarios
from rehearsal_torch.search.alterations import mixed_integer
from rehearsal_torch.search.alterations.interval_sweep import Cover, swept
from rehearsal_torch.search.alterations.mixed_integer import MixedInteger, Solution, solve
from rehearsal_torch.search.budget import Budget
from rehearsal_torch.surrogates.structural.linear_scm import LinearStructural
from rehearsal_torch.training.fit import fit
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


def test_rows_that_always_or_never_hold_are_counted_without_a_program():
    gains, slack = np.ones((3, 1, 2)), np.array([[5.0], [-5.0], [9.0]])
    found = solve(gains, slack, -np.ones(2), np.ones(2))
    assert (found.count, found.bound) == (2, 2.0)


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


NUMBERS = ("scenarios", "nodes", "starts", "rounds", "screening_draws", "batch_size")


def test_settings_have_their_ranges():
    MixedInteger(**dict.fromkeys(NUMBERS, 1), gap=0.0)
    for name, value in [*dict.fromkeys(NUMBERS, 0).items(), ("gap", -0.1)]:
        with pytest.raises(ValueError, match=f"expected positive numbers; got .*{name}={value}"):
            MixedInteger(**{name: value})


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


def test_rows_that_hold_just_in_a_corner_or_just_everywhere():
    box = np.array([2.0, -3.0]), np.array([5.0, -1.0])
    corner = solve(np.ones((1, 1, 2)), np.array([[-1.0]]), *box)
    assert corner.count == 1
    assert corner.action == pytest.approx([2.0, -3.0])
    everywhere = solve(np.ones((1, 1, 2)), np.array([[4.0]]), *box)
    assert (everywhere.count, everywhere.action.tolist()) == (1, [3.5, -2.0])
    # Two rows, of which one never holds.
    never = solve(np.ones((1, 2, 2)), np.array([[9.0, -1.5]]), *box)
    assert (never.count, never.bound) == (0, 0.0)


def test_a_variable_that_is_held_takes_part():
    gains, slack = np.array([[[1.0, 1.0]], [[-1.0, 2.0]]]), np.array([[7.5], [5.5]])
    found = solve(gains, slack, np.array([0.0, 4.0]), np.array([9.0, 4.0]))
    assert (found.count, found.action[1]) == (2, 4.0)
    assert 2.5 - 1e-6 <= found.action[0] <= 3.5 + 1e-6


def pair(*boxes, intervals=((0, 4), (1, 5), (2, 6), (8, 9))):
    names, middle = ("a", "b"), [(low + high) / 2 for low, high in boxes]
    seen = bands(intervals, *middle, direction=(1.0, 1.0))
    return Counted(cases(names, *boxes), names, seen, seen)


def test_each_case_has_its_program_and_the_gap_that_it_leaves(monkeypatch):
    one, asked = pair((-10.0, 10.0), (1e5 - 10, 1e5 + 10)), []

    def told(*given):
        asked.append(given)
        return Solution(np.array([40.0, -10.0]) if len(asked) > 1 else None, len(asked), 10.0)

    monkeypatch.setattr(mixed_integer, "solve", told)
    found, facts = MixedInteger(scenarios=3, nodes=7, gap=0.2, starts=1, rounds=1).best(one)
    for index, (gains, slack, lower, upper, known, nodes, seconds, gap) in enumerate(asked):
        some = one.search_scenarios.first(3)
        assert np.array_equal(gains, some.gains)
        assert np.array_equal(slack, some.slack[:, index])
        assert (lower.tolist(), upper.tolist()) == (
            ([-10.0] * 2, [10.0] * 2) if not index else ([0.0] * 2, [20.0] * 2)
        )
        assert (known, nodes, seconds, gap) == (3, 7, math.inf, 0.2)
    # Three are known to be reached, of at most ten.
    assert facts == [{"program_gap": 0.7}] * 2
    assert (one.search_scenarios.desired(found - one.origin).sum(0) == 3).all()
    spent, without = Budget(1e-9), []
    _, without = MixedInteger(starts=1, rounds=1).best(one, spent)
    assert (without, len(asked)) == ([{}, {}], 2)


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
