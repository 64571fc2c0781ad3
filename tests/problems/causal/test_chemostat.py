"""The chemostat: equations, the fitted model on simulated files, and the measurements if they are present."""

import math
import warnings

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel

from rehearsal_torch.problems.causal.chemostat import (
    COLUMNS,
    DAYS,
    PARENTS,
    VARIABLES,
    Chemostat,
    DailyEquations,
    FittedProcesses,
    chemostat_pairs,
    equation_states,
)
from tests.places import DATA

MEASURED = DATA / "p3c2"


@pytest.fixture
def folder(tmp_path):
    return written(tmp_path)


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
    hatching = Chemostat(hatching=0.5)
    assert hatching.optimal_value == pytest.approx(world.optimal_value, abs=1e-12)
    # Where some hatch within the day, the inflow matters.
    pair = torch.tensor([[60.0, 10.0, 90.0], [100.0, 10.0, 90.0]], dtype=torch.float64)
    assert float(hatching.expected(pair).diff().abs()) > 1e-3
    assert float(world.expected(pair).diff().abs()) < 1e-12


def test_nitrogen_solves_its_equation():
    world = Chemostat()
    inputs = {"N_in": torch.tensor(80.0), "N0": torch.tensor(40.0), "P0": torch.tensor(5.0)}
    fine, step = 40.0, 1e-4
    for _ in range(10_000):
        fine += step * (0.55 * (80 - fine) - 3.3 * fine * 5 / (4.3 + fine))
    assert float(world.dynamics.mean("N", inputs)) == pytest.approx(fine, rel=0.01)


@pytest.mark.slow
def test_the_fitted_law(folder):
    world = Chemostat("gp", path=folder, series=("C1", "C2"), rows=80)
    assert world.scm == "gp"
    assert len(world.contexts) == 118
    rows = world.noise_rows(50, np.random.default_rng(0))[
        :, [world.task.nodes.index(name) for name in ("N0", "P0", "D0")]
    ]
    # Roots are drawn together.
    assert all((world.contexts == row).all(1).any() for row in rows)
    assert world.optimal_value == pytest.approx(float(world.expected(world.optimal_action)))
    assert float(world.expected(world.task.box.sobol(64)).max()) <= world.optimal_value + 1e-6
    again = Chemostat("gp", path=folder, series=("C1", "C2"), rows=80)
    assert again.optimal_value == world.optimal_value
    rewards = world.rewards(
        world.simulate(world.optimal_action, world.noise_rows(20_000, np.random.default_rng(1)))
    )
    assert world.optimal_value == pytest.approx(
        float(rewards.mean()), abs=5 * float(rewards.std()) / 20_000**0.5 + 0.01
    )
    assert "smoke test" in world.card()["caution"]


@pytest.mark.slow
@pytest.mark.skipif(
    not MEASURED.is_dir(), reason="REHEARSAL_DATA names no folder with the measurements, p3c2/"
)
def test_the_measurements():
    before, _ = chemostat_pairs(MEASURED, ("C1", "C2", "C3", "C4"))
    assert len(before) == 366 + 190 + 182 + 139 - 4
    columns = {name: before[:, place] for place, name in enumerate(VARIABLES)}
    assert set(columns["N_in"].tolist()) == {80.0}
    torch.testing.assert_close(columns["J"], columns["A"] / 5)
    assert float(columns["D"].mean()) == pytest.approx(0.95, abs=0.02)
    assert float(columns["A"].quantile(0.99)) == pytest.approx(105, abs=3)
    world = Chemostat("gp", path=MEASURED)
    values = world.expected(world.task.box.sobol(64))
    # Nearly flat: actions move the mean by less than a tenth of the noise.
    assert float(values.max() - values.min()) < 0.06
    assert -1.05 < float(values.min()) < float(values.max()) < -0.85
    assert world.dynamics.std("D") > 0.5


def written(tmp_path):
    """Two files in the form of the published ones, in which the dead follow from the adults."""
    stream = np.random.default_rng(0)
    for name, days in (("C1", 70), ("C2", 50)):
        adults = np.exp(stream.standard_normal(days) * 0.5) * 10
        ratio, dead = stream.uniform(0.2, 1.0, days), np.concatenate([[0.0], 0.4 * adults[:-1]])
        rows = [
            stream.uniform(0.1, 2, days),
            stream.uniform(1, 20, days),
            ratio,
            adults * ratio / 5 / 0.285,
            dead,
            stream.uniform(60, 100, days),
        ]
        lines = ["time (days), " + ", ".join(COLUMNS)]
        for day, values in enumerate(zip(*rows, strict=True)):
            cells = [
                "NaN" if day % 9 == 4 and place == 1 else f"{value:.5f}" for place, value in enumerate(values)
            ]
            lines.append(f"{day:.2f}," + ",".join(cells))
        (tmp_path / f"{name}.csv").write_text("\n".join(lines) + "\n")
    return tmp_path


def test_rows_are_prepared(folder):
    before, after = chemostat_pairs(folder, ("C1", "C2"))
    assert before.shape == (69 + 49, len(VARIABLES))
    torch.testing.assert_close(before[1:69], after[:68])
    assert (before >= 0).all()
    adults, young = before[:, VARIABLES.index("A")], before[:, VARIABLES.index("J")]
    torch.testing.assert_close(young, adults / 5)
    # Gaps are filled from both sides: days 4, 13, 22, ... of the rotifers.
    filled = before[4:69:9, VARIABLES.index("P")]
    assert (filled > 0).double().mean() > 0.7
    assert filled.unique().numel() > 4


def test_pairs_do_not_reach_from_one_experiment_into_the_next(folder):
    both, _ = chemostat_pairs(folder, ("C1", "C2"))
    (first, after), (second, _) = (chemostat_pairs(folder, (name,)) for name in ("C1", "C2"))
    assert torch.equal(both, torch.cat([first, second]))
    assert not torch.equal(after[-1], second[0])


def solved(rates, value, steps=2_000):
    """One variable over a day, by small Euler steps."""
    for _ in range(steps):
        value += rates(value) / steps
    return value


amounts = st.floats(0.5, 80)


@settings(max_examples=8, deadline=None, derandomize=True)
@given(inflow=st.floats(60, 100), nitrogen=amounts, prey=st.floats(0, 20), young=amounts, adult=amounts)
def test_each_variable_solves_its_own_equation_over_the_day(inflow, nitrogen, prey, young, adult):
    dynamics, left = DailyEquations(), math.exp(-0.7)
    before = {"N_in": inflow, "N0": nitrogen, "P0": prey, "J0": young, "A0": adult, "D0": 3.0}
    now = {"N": nitrogen, "P": prey, "J": young * left, "A": adult * left}
    known = {name: torch.tensor(each, dtype=torch.float64) for name, each in (before | now).items()}

    def found(node):
        return float(dynamics.mean(node, {name: known[name] for name in PARENTS[node]}))

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
    assert {dynamics.std(node) for node in PARENTS} == {1.0}


@pytest.mark.parametrize("hatching", [0.0, 0.4])
def test_what_hatches_within_the_day_is_adult_at_once(hatching):
    dynamics, prey, adult = DailyEquations(hatching), 10.0, 6.0
    grown = 2.25 * prey**1.25 / (15**1.25 + prey**1.25) * adult * math.exp(-0.55 * hatching)
    steps, living = 4_000, adult
    for step in range(steps):
        born = 5 * grown if step >= hatching * steps else 0.0
        living += (born - 0.7 * living) / steps
    parts = {"P": torch.tensor(prey).double(), "A0": torch.tensor(adult).double()}
    assert float(dynamics.mean("A", parts)) == pytest.approx(living, rel=1e-3)


def test_nitrogen_stays_positive_and_is_washed_towards_the_inflow():
    def after(inflow, nitrogen, prey):
        parts = {"N_in": inflow, "N0": nitrogen, "P0": prey}
        return float(
            DailyEquations().mean("N", {name: torch.tensor(each).double() for name, each in parts.items()})
        )

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


def test_fitted_means_are_those_of_scikit_learn_on_standardised_rows(folder):
    before, after = chemostat_pairs(folder, ("C1", "C2"))
    dynamics = FittedProcesses(before, after, rows=40)
    place = np.linspace(0, len(before) - 1, 40).round().astype(int)
    known = {f"{name}0": before[place, column].numpy() for column, name in enumerate(VARIABLES)}
    known |= {name: after[place, column].numpy() for column, name in enumerate(VARIABLES)}
    known["N_in"] = after[place, VARIABLES.index("N_in")].numpy()
    for node in ("J", "D"):
        inputs, values = np.stack([known[name] for name in PARENTS[node]], -1), known[node]
        centre, spread = inputs.mean(0), inputs.std(0, ddof=1)
        level, unit = values.mean(), values.std(ddof=1)
        kernel = ConstantKernel() * RBF([1.0] * inputs.shape[1], (0.05, 1e3)) + WhiteKernel(0.5, (1e-4, 10))
        peer = GaussianProcessRegressor(kernel, random_state=0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            peer.fit((inputs - centre) / spread, (values - level) / unit)
        wanted = level + unit * peer.predict((inputs - centre) / spread)
        found = dynamics.mean(node, {name: torch.from_numpy(known[name]) for name in PARENTS[node]})
        np.testing.assert_allclose(found.numpy(), wanted, rtol=1e-4, atol=1e-4 * unit)
        assert dynamics.std(node) == pytest.approx(peer.kernel_.k2.noise_level**0.5 * unit, rel=1e-4)


def test_an_input_that_never_varies_is_left_out(folder):
    before, after = chemostat_pairs(folder, ("C1",))
    before[:, VARIABLES.index("N_in")] = after[:, VARIABLES.index("N_in")] = 80.0
    dynamics = FittedProcesses(before, after, rows=30)
    parts = {name: torch.full((2,), 5.0, dtype=torch.float64) for name in PARENTS["N"]}
    low, high = dynamics.mean(
        "N", parts | {"N_in": torch.tensor([60.0, 100.0], dtype=torch.float64)}
    ).tolist()
    assert low == pytest.approx(high, rel=1e-12)
