import torch

from rehearsal_torch.objectives.episode_reward import episode_reward
from rehearsal_torch.objectives.reward import Doses
from rehearsal_torch.problems.episodes.machine_dynamics import (
    ACTIONS,
    LONGEST,
    STATES,
    TASK,
    costs,
    move,
    points,
    recorded,
    simulate,
    true_returns,
    true_trajectory,
)
from rehearsal_torch.problems.episodes.task import episode_task


def test_a_week_is_as_it_is_written():
    """An age of 10, model B: wear of a week 3 + .24 + .8 = 4.04, times 1.04 at a vibration of 3."""
    static = torch.tensor([10.0, 1.0], dtype=torch.float64)
    latent = torch.tensor([40.0, 60.0, 3.0], dtype=torch.float64)
    noise = torch.tensor([1.0, -1.0, 2.0], dtype=torch.float64)
    still = move(latent, static, torch.tensor([0, 0]), torch.zeros(3, dtype=torch.float64))
    torch.testing.assert_close(
        still, torch.tensor([40 + 4.04 * 1.04, 44 + 4.8 + 8, 1.8 + 0.4 * 3.0], dtype=torch.float64)
    )
    both = move(latent, static, torch.tensor([2, 1]), noise)
    expected = [8 + 4.04 * 0.4 * 1.04 + 0.8, 44 + 4.8 - 7 + 8 - 1.5, 1.8 + 1.2 - 0.3 + 2 * (0.15 + 0.08)]
    torch.testing.assert_close(both, torch.tensor(expected, dtype=torch.float64))


def test_points_and_costs_are_the_reward_of_the_task():
    """The world's own sums agree with the reward that a run builds from the task."""
    roles = episode_task(TASK)
    settings = {key: value for key, value in roles.reward_settings().items() if key != "_target_"}
    reward = episode_reward(**settings)
    draws = torch.rand(500, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    states = draws * torch.tensor([100.0, 40.0, 6.0]) + torch.tensor([0.0, 40.0, 1.0])
    states[0] = torch.tensor([50.0, 58.0, 3.5])  # at the limits, not above
    chosen = torch.cartesian_prod(torch.arange(3), torch.arange(2))
    given = reward(states, STATES, Doses(ACTIONS, chosen.double()))
    torch.testing.assert_close(given, -(points(states).unsqueeze(-1) + costs(chosen)))
    assert points(states)[0] == 0
    assert costs(chosen).tolist() == [0, 1, 1, 2, 4, 5]


def test_a_machine_does_not_depend_on_the_others():
    few, many = simulate(5, seed=3), simulate(20, seed=3)
    assert torch.equal(few.latent, many.latent[:5])
    assert torch.equal(few.actions, many.actions[:5])
    assert torch.equal(few.horizon, many.horizon[:5])
    assert not torch.equal(simulate(5, seed=4).latent, few.latent)


def test_the_recorded_actions_reproduce_the_recorded_states():
    fleet = simulate(20, seed=1)
    for machine in range(20):
        again = true_trajectory(fleet, machine, fleet.actions[machine].unsqueeze(0))[0]
        assert torch.equal(again, fleet.latent[machine])
        total = -(points(recorded(again)) + costs(fleet.actions[machine])).sum()
        assert true_returns(fleet, machine, fleet.actions[machine].unsqueeze(0)).tolist() == [total]


def test_a_change_acts_from_the_next_week_on():
    fleet = simulate(4, seed=2)
    changed = fleet.actions[0].clone()
    changed[5, 0] = (changed[5, 0] + 1) % 3
    states = true_trajectory(fleet, 0, torch.stack([fleet.actions[0], changed]))
    assert torch.equal(states[0, :6], states[1, :6])
    assert bool((states[0, 6:] != states[1, 6:]).any(-1).all())


def test_the_table_has_a_row_for_each_week():
    fleet = simulate(30, seed=0, min_length=12)
    frame = fleet.frame()
    assert len(frame) == int(fleet.horizon.sum())
    assert fleet.horizon.min() >= 12
    assert fleet.horizon.max() <= LONGEST
    assert set(frame["service"]) == {"none", "minor", "major"}
    assert (frame["wear"] >= 0).all()
    # Three decimals, exactly as they are read again from text.
    assert (frame["wear"] == frame["wear"].round(3)).all()


def test_operators_service_worn_machines():
    """Confounding by the state, which the table shows: serviced machines are more worn."""
    frame = simulate(400, seed=0).frame()
    worn = frame.groupby(frame["service"] != "none")["wear"].mean()
    assert worn[True] > worn[False] + 5
