"""The chemostat: equations, the fitted model on simulated files, and the measurements if they are present."""

import math

import numpy as np
import pytest
import torch

from rehearsal_torch.problems.causal.chemostat import Chemostat
from rehearsal_torch.problems.causal.chemostat_dynamics import VARIABLES, chemostat_pairs
from tests.places import DATA
from tests.problems.causal.test_chemostat_dynamics import written

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
