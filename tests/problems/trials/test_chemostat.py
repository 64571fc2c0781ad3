"""The chemostat: its equations, its contexts and its optimum."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from rehearsal_torch.problems.trials.chemostat import DAYS, PARENTS, Chemostat, equation_states, next_day


def test_eggs_are_pruned():
    world = Chemostat()
    assert set(world.task.nodes) == {"N0", "P0", "D0", "N", "P", "J", "A", "D"}
    assert {"E", "E0"} <= set(world.task.graph.names)
    assert world.task.box.bounds() == {"N_in": (60.0, 100.0), "J0": (0.0, 36.0), "A0": (0.0, 180.0)}


def test_the_equations_have_a_trivial_optimum():
    world = Chemostat()
    noise = torch.zeros(8, dtype=torch.float64)
    nodes = dict(zip(world.task.nodes, world.simulate(world.task.box.upper, noise).tolist(), strict=True))
    # No dead before, no births: 216 animals die at rate .15 and leave at .55.
    assert nodes["D"] == pytest.approx(216 * (math.exp(-0.55) - math.exp(-0.7)), rel=1e-9)
    assert nodes["D"] == pytest.approx(17.5, abs=0.2)
    assert world.optimal_action[1:].tolist() == [0, 0]
    dead = world.contexts[:, 2].mean()
    assert world.optimal_value == pytest.approx(-float(dead) * math.exp(-0.55), abs=0.01)
    # Nothing hatches within the day, so that the inflow does not matter.
    pair = torch.tensor([[60.0, 10.0, 90.0], [100.0, 10.0, 90.0]], dtype=torch.float64)
    assert float(world.expected(pair).diff().abs()) < 1e-12
    assert "smoke test" in world.card()["caution"]


def test_nitrogen_solves_its_equation():
    inputs = {"N_in": torch.tensor(80.0), "N0": torch.tensor(40.0), "P0": torch.tensor(5.0)}
    fine, step = 40.0, 1e-4
    for _ in range(10_000):
        fine += step * (0.55 * (80 - fine) - 3.3 * fine * 5 / (4.3 + fine))
    assert float(next_day("N", inputs)) == pytest.approx(fine, rel=0.01)


def solved(rates, value, steps=2_000):
    """One variable over a day, by small Euler steps."""
    for _ in range(steps):
        value += rates(value) / steps
    return value


amounts = st.floats(0.5, 80)


@settings(max_examples=8, deadline=None, derandomize=True)
@given(inflow=st.floats(60, 100), nitrogen=amounts, prey=st.floats(0, 20), young=amounts, adult=amounts)
def test_each_variable_solves_its_own_equation_over_the_day(inflow, nitrogen, prey, young, adult):
    left = math.exp(-0.7)
    before = {"N_in": inflow, "N0": nitrogen, "P0": prey, "J0": young, "A0": adult, "D0": 3.0}
    now = {"N": nitrogen, "P": prey, "J": young * left, "A": adult * left}
    known = {name: torch.tensor(each, dtype=torch.float64) for name, each in (before | now).items()}

    def found(node):
        return float(next_day(node, {name: known[name] for name in PARENTS[node]}))

    # Twenty-four implicit steps keep nitrogen positive; they are off by two of at most a hundred units.
    exact = solved(lambda n: 0.55 * (inflow - n) - 3.3 * n * prey / (4.3 + n), nitrogen)
    assert found("N") == pytest.approx(exact, abs=2.5)
    assert 0 < found("N") <= max(inflow, nitrogen)
    assert found("P") == pytest.approx(
        solved(lambda p: 3.3 * nitrogen * p / (4.3 + nitrogen) - 0.55 * p, prey), rel=5e-3, abs=1e-9
    )
    # Nothing hatches within the day, so that animals only die and leave, and the dead are exact.
    assert found("J") == pytest.approx(young * left)
    assert found("A") == pytest.approx(adult * left)
    dead, living = 3.0, young + adult
    for _ in range(2_000):
        dead, living = dead + (0.15 * living - 0.55 * dead) / 2_000, living * (1 - 0.7 / 2_000)
    assert found("D") == pytest.approx(dead, rel=1e-3)


def test_nitrogen_stays_positive_and_is_washed_towards_the_inflow():
    def after(inflow, nitrogen, prey):
        parts = {"N_in": inflow, "N0": nitrogen, "P0": prey}
        return float(next_day("N", {name: torch.tensor(each).double() for name, each in parts.items()}))

    assert after(80.0, 80.0, 0.0) == pytest.approx(80.0)
    assert after(80.0, 20.0, 0.0) == pytest.approx(80 - 60 * math.exp(-0.55), rel=0.01)
    assert 0 < after(60.0, 0.01, 500.0) < 1


def test_days_begin_as_given_and_predator_and_prey_circle():
    states = equation_states()
    assert states.shape == (DAYS, 3)
    assert states[0].tolist() == [41.3, 2.716, 0.0]
    assert bool((states >= 0).all())
    assert bool(states.isfinite().all())
    # Nitrogen enters at 80 and is only taken up.
    assert float(states[:, 0].max()) < 80
    turns = (states[DAYS // 2 :, 1].diff().sign().diff() != 0).sum()
    assert int(turns) > 6, "it does not settle"
