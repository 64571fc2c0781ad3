"""Worlds of episodes as environments: the true returns, step by step."""

import warnings

import numpy as np
import pytest
import torch

gymnasium = pytest.importorskip(
    "gymnasium", reason="Gymnasium is an option: pip install 'rehearsal-torch[rl]'"
)

import rehearsal_torch.adapters.gymnasium  # noqa: E402, F401  registers the environments
from rehearsal_torch.adapters.gymnasium import machines, sepsis  # noqa: E402
from rehearsal_torch.problems.sequences import machine_maintenance as machine_dynamics  # noqa: E402
from rehearsal_torch.problems.sequences import sepsis_cohort as simulator  # noqa: E402


@pytest.mark.parametrize("name", ["Sepsis", "Machines"])
def test_gymnasiums_own_checks_pass(name):
    from gymnasium.utils.env_checker import check_env

    settings = {"patients": 20} if name == "Sepsis" else {"machines": 20}
    made = gymnasium.make(f"rehearsal_torch/{name}-v0", **settings)
    with warnings.catch_warnings():
        # It advises against states without bounds; these have none.
        warnings.filterwarnings("ignore", message=".*observation space.*")
        check_env(made.unwrapped, skip_render_check=True)


def played(made, levels, unit):
    """Observations and rewards of one unit under levels."""
    seen, _ = made.reset(options={"unit": unit})
    states, rewards, over = [seen], [], False
    while not over:
        seen, reward, over, _, _ = made.step(levels[len(rewards)].numpy())
        states.append(seen)
        rewards.append(reward)
    return np.array(states), rewards


def test_machines_under_the_recorded_actions_take_the_recorded_course():
    fleet, made = machine_dynamics.simulate(20, 3), machines(20, seed=3)
    for unit in (0, 7):
        horizon = int(fleet.horizon[unit])
        states, rewards = played(made, fleet.actions[unit], unit)
        assert len(rewards) == horizon
        recorded = machine_dynamics.recorded(fleet.latent[unit, :horizon])
        assert states[:horizon, 2:] == pytest.approx(recorded.numpy(), abs=1e-9)
        true = machine_dynamics.true_returns(fleet, unit, fleet.actions[unit : unit + 1, :horizon])
        assert sum(rewards) == pytest.approx(float(true))


@pytest.mark.parametrize("reward", ["score", "organs"])
def test_rewards_of_patients_add_up_to_the_true_return(reward):
    cohort, made = simulator.simulate(12, 5), sepsis(12, seed=5, reward=reward)
    horizon = int(cohort.horizon[4])
    levels = torch.randint(5, (horizon, 2), generator=torch.Generator().manual_seed(1))
    doses = torch.stack((simulator.VASOPRESSOR[levels[:, 0]], simulator.FLUID[levels[:, 1]]), -1).unsqueeze(0)
    states, rewards = played(made, levels, 4)
    truth = simulator.emit(simulator.true_trajectory(cohort, 4, doses))[0]
    assert states[:horizon, 4:] == pytest.approx(truth.numpy())
    scored = doses[0, :, 0] if reward == "score" else torch.zeros(horizon, dtype=torch.float64)
    assert [-each for each in rewards] == simulator.sofa(truth, scored).tolist()
    assert states[0, :3].tolist() == cohort.static[4].tolist()


def test_units_follow_each_other_and_a_seed_takes_others():
    made = sepsis(3, seed=0)
    first = [made.reset() for _ in range(4)]
    assert [info["unit"] for _, info in first] == [0, 1, 2, 0]
    assert first[0][0].tolist() == first[3][0].tolist()
    other = made.reset(seed=9)
    assert other[1]["unit"] == 0
    assert other[0].tolist() != first[0][0].tolist()
    assert made.reset(seed=9)[0].tolist() == other[0].tolist()
    assert set(other[1]["recorded"]) == {"max_dose_vaso", "input_4hourly"}


def test_what_cannot_be_done_is_refused():
    made = machines(3)
    with pytest.raises(RuntimeError, match="the episode is over"):
        made.step(np.array([0, 0]))
    made.reset()
    with pytest.raises(ValueError, match=r"levels of service 0 to 2, load 0 to 1; got \[0, 2\]"):
        made.step(np.array([0, 2]))
