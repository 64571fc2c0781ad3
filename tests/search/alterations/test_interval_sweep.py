import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from rehearsal_torch.objectives.scenario_success import ScenarioCount, Scenarios
from rehearsal_torch.search.alterations.interval_sweep import (
    IntervalSweep,
    line_sweeps,
    most_covered,
)
from rehearsal_torch.surrogates.structural.linear_scm import LinearStructural
from rehearsal_torch.training.fit import fit
from tests.toys.linear_truth import chain, managing


def tiny(seed, count, faces, width, cases=3):
    """Scenarios whose rows are small whole numbers, so that ends coincide often, and a box."""
    stream = torch.Generator().manual_seed(seed)
    gains = torch.randint(-2, 3, (count, faces, width), generator=stream).double()
    slack = torch.randint(-3, 4, (count, cases, faces), generator=stream).double()
    return (
        Scenarios(gains, slack),
        torch.full((cases, width), -2.0, dtype=torch.float64),
        torch.full((cases, width), 2.0, dtype=torch.float64),
    )


@settings(max_examples=60, deadline=None, derandomize=True)
@given(st.integers(0, 10**6), st.integers(1, 12), st.integers(1, 3))
def test_a_sweep_finds_what_trying_everything_finds(seed, count, faces):
    scenarios, lower, upper = tiny(seed, count, faces, 1)
    found, counts = line_sweeps(scenarios, lower, upper, torch.zeros(1, 3, 1, dtype=torch.float64), 1)
    # With whole coefficients up to 2, the count changes at halves only: every quarter of the box is tried.
    grid = torch.linspace(-2, 2, 17, dtype=torch.float64).reshape(-1, 1, 1).expand(-1, 3, 1)
    assert torch.equal(counts[0], scenarios.desired(grid).sum(-2).amax(0))
    assert torch.equal(scenarios.desired(found).sum(-2), counts)
    assert (found.abs() <= 2).all()


def test_the_middle_of_the_piece_is_taken():
    left, right = (
        torch.tensor(values, dtype=torch.float64).unsqueeze(-1)
        for values in ([0.0, 1.0, 1.5, 4.0], [2.0, 3.0, 2.5, 5.0])
    )
    point, count = most_covered(
        left, right, torch.zeros(1, dtype=torch.float64), torch.full((1,), 9.0, dtype=torch.float64)
    )
    assert (point.item(), count.item()) == (1.75, 3)


def test_without_any_interval_the_middle_of_the_box_is_given():
    one, other = torch.full((3, 1), 5.0, dtype=torch.float64), torch.full((3, 1), 4.0, dtype=torch.float64)
    point, count = most_covered(
        one, other, torch.zeros(1, dtype=torch.float64), torch.full((1,), 9.0, dtype=torch.float64)
    )
    assert (point.item(), count.item()) == (4.5, 0)


@pytest.mark.slow
@settings(max_examples=25, deadline=None, derandomize=True)
@given(st.integers(0, 10**6))
def test_lines_never_lose_and_stay_in_the_box(seed):
    scenarios, lower, upper = tiny(seed, 15, 2, 3)
    starts = torch.randn(4, 3, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(seed)).clamp(
        -2, 2
    )
    found, counts = line_sweeps(scenarios, lower, upper, starts, 4)
    assert (counts >= scenarios.desired(starts).sum(-2)).all()
    assert (found.abs() <= 2).all()


@pytest.mark.slow
def test_decisions_reach_the_optimum_of_linear_worlds():
    world = managing()
    made, cases = fit(LinearStructural(world.task, 3000), world.table(1000)), world.cases(6)
    decisions = IntervalSweep().batch_search(
        ScenarioCount.for_cases(
            made, cases, search_scenarios=2000, validation_scenarios=800, test_scenarios=200
        )
    )
    reached = [
        world.success(s, dict(zip(d.alteration.names, d.alteration.values.tolist(), strict=True)))
        for s, d in zip(cases, decisions, strict=True)
    ]
    assert sum(reached) / 6 > 0.96  # the optimum is .973
    single = chain()
    objective = ScenarioCount.for_cases(
        fit(LinearStructural(single.task, 600), single.table(1000)),
        single.cases(5),
        search_scenarios=400,
        validation_scenarios=150,
        test_scenarios=50,
    )
    assert {len(each.alteration.names) for each in IntervalSweep().batch_search(objective)} <= {1, 2}


def test_the_answer_does_not_depend_on_the_company():
    world = managing()
    made, cases = fit(LinearStructural(world.task, 600), world.table(300)), world.cases(4)
    joined = IntervalSweep(starts=3).batch_search(
        ScenarioCount.for_cases(
            made, cases, search_scenarios=400, validation_scenarios=150, test_scenarios=50
        )
    )
    alone = IntervalSweep(starts=3).batch_search(
        ScenarioCount.for_cases(
            made, cases[2:3], search_scenarios=400, validation_scenarios=150, test_scenarios=50
        )
    )
    assert torch.allclose(joined[2].alteration.values, alone[0].alteration.values, atol=1e-9)


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_where_no_scenario_can_be_desired_the_least_violation_is_taken(sign):
    gains = torch.full((5, 1, 1), sign, dtype=torch.float64)
    scenarios = Scenarios(gains, torch.full((5, 2, 1), -10.0, dtype=torch.float64))
    lower, upper = (torch.full((2, 1), end, dtype=torch.float64) for end in (-2.0, 3.0))
    found, counts = line_sweeps(scenarios, lower, upper, torch.zeros(1, 2, 1, dtype=torch.float64), 1)
    assert counts.tolist() == [[0, 0]]
    assert found.flatten().tolist() == [-2.0 if sign > 0 else 3.0] * 2
