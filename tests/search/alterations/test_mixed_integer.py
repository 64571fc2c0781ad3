from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from rehearsal_torch.objectives.scenario_success import ScenarioCount
from rehearsal_torch.search.alterations.interval_sweep import swept
from rehearsal_torch.search.alterations.mixed_integer import MixedInteger, solve
from rehearsal_torch.surrogates.structural.linear_scm import LinearStructural
from rehearsal_torch.training.fit import fit
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


@pytest.mark.slow
@settings(max_examples=15, deadline=None, derandomize=True)
@given(st.integers(0, 10**6), st.integers(2, 3))
def test_the_program_finds_what_trying_every_set_finds(seed, width):
    stream = np.random.default_rng(seed)
    gains, slack = stream.normal(size=(7, 2, width)), stream.normal(size=(7, 2)) - 0.5
    lower, upper = -np.ones(width), np.ones(width)
    found = solve(gains, slack, lower, upper)
    best = enumerated(gains, slack, lower, upper)
    assert found.count == best
    assert found.bound == pytest.approx(best)
    if best:
        assert int((gains @ found.action <= slack + 1e-6).all(-1).sum()) == best


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


def test_numbers_out_of_range_are_refused():
    with pytest.raises(ValueError, match="expected positive numbers"):
        MixedInteger(scenarios=0)
