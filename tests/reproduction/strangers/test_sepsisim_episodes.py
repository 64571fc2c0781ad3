"""Episodes of sepsisim: the replay is what its environment says after the same and after other actions."""

from itertools import combinations, product

import numpy as np
import pytest
import torch

from rehearsal_torch.data.decision import Decision, action_name
from rehearsal_torch.data.finding import Finding
from rehearsal_torch.seeding import numpy_generator
from rehearsal_torch.spaces.box import Alteration

pytest.importorskip("sepsisim", reason="sepsisim is an option: pip install 'rehearsal-torch[strangers]'")

from sepsisim.envs.sepsis_management import SepsisManagementEnv

from reproduction.strangers.sepsisim_episodes import CHANGES, FLUIDS, HOURS, SAID, STATES, SepsisimEpisodes

SEED = 3


@pytest.fixture(scope="module")
def world():
    return SepsisimEpisodes(60, SEED)


def test_the_recorded_actions_reproduce_the_log(world):
    for unit in range(60):
        again = world.true_states(unit, world.given[unit][None])[0]
        assert torch.allclose(again, world.log[unit, :, : len(STATES)], rtol=0, atol=1e-9)


def test_other_actions_bring_what_the_environment_says(world):
    """Each environment is begun again by its seed, and treated otherwise."""
    for unit in range(8):
        draw = numpy_generator(SEED, unit)
        own, severity = int(draw.integers(2**31)), str(draw.choice(["easy", "medium", "hard"]))
        begins = int(draw.integers(3))
        actions = torch.stack((torch.randint(5, (HOURS,)), torch.randint(3, (HOURS,))), -1).double()
        actions[:, 0] = torch.tensor(FLUIDS, dtype=torch.float64)[actions[:, 0].long()]
        environment = SepsisManagementEnv(severity)
        said = [environment.reset(seed=own)[1]]
        for hour, (fluid, level) in enumerate(actions[:-1].tolist()):
            action = np.array([fluid, CHANGES[int(level)], float(hour >= begins)])
            said.append(environment.step(action)[-1])
        found = torch.tensor([[each[name] for name in SAID[:7]] for each in said], dtype=torch.float64)
        assert torch.allclose(world.true_states(unit, actions[None])[0], found, rtol=0, atol=1e-9)
        assert float(world.true_returns(unit, actions[None])) == pytest.approx(-float(found[:, 1].sum()))


def test_a_decision_is_scored_by_the_replay(world):
    case = world.case(0)
    unit, given = int(case.identity), world.given[int(case.identity)]
    nothing = world.score(case, Decision(None, 0.0, reason=Finding("no_gain", "none")))
    assert nothing["true_observed"] == pytest.approx(-float(case.episode.columns(["lactate"]).sum()))
    assert nothing["true_gain"] == 0
    doses = {action_name(2): (1000.0, 2.0)}
    decision = Decision(Alteration(tuple(doses), torch.tensor([0])), 0.0, doses=doses)
    other = given.clone()
    other[2] = torch.tensor([1000.0, 2.0])
    assert world.score(case, decision)["true_value"] == pytest.approx(
        float(world.true_returns(unit, other[None]))
    )


def test_the_optimum_is_the_best_of_all_pairs(world):
    case = world.case(1)
    unit = int(case.identity)
    grid = torch.tensor(list(product(FLUIDS, range(3))), dtype=torch.float64)
    best = []
    for first, second in combinations(range(HOURS - 1), 2):
        tried = world.given[unit].repeat(len(grid), len(grid), 1, 1)
        tried[:, :, first], tried[:, :, second] = grid[:, None], grid[None]
        best.append(world.true_returns(unit, tried.flatten(0, 1)).max())
    assert world.optimum(case) == pytest.approx(float(max(best)), rel=1e-12)


def test_a_third_of_the_hours_is_random_and_low_pressures_are_treated(world):
    frame = world.frame()
    assert len(frame) == 60 * HOURS
    assert set(frame["fluid"]) == set(FLUIDS)
    low = frame["pressure"] < 65
    assert (frame["vasopressor"][low] == "raise").mean() > 0.65
    assert frame["fluid"][low].mean() > frame["fluid"][~low].mean() + 150
