from itertools import combinations, product

import pytest
import torch
import yaml

from rehearsal_torch.data.decision import Decision, action_name
from rehearsal_torch.data.finding import Finding
from rehearsal_torch.files.schema import plain_of
from rehearsal_torch.objectives.step_reward import Doses
from rehearsal_torch.objectives.task_reward import episode_reward
from rehearsal_torch.problems.sequences.machine_maintenance import (
    ACTIONS,
    STATES,
    TASK,
    Machines,
    costs,
    move,
    points,
    recorded,
    simulate,
    true_returns,
    true_trajectory,
)
from rehearsal_torch.problems.sequences.user_episodes import EpisodeTable
from rehearsal_torch.spaces.box import Alteration
from tests.toys.pumps import roles_of

NOTHING = Decision(None, 0.0, reason=Finding("no_gain", "none"))


@pytest.fixture(scope="module")
def world():
    return Machines(machines=60, seed=2, horizon=10, changes=2)


def change(levels, number=0):
    """A decision with the levels of some steps."""
    steps = list(levels)
    names = tuple(action_name(step) for step in steps)
    numbers = torch.tensor([number or service * 3 + load for service, load in levels.values()])
    doses = {action_name(step): tuple(map(float, each)) for step, each in levels.items()}
    return Decision(Alteration(names, numbers), 0.0, doses=doses)


def test_the_table_of_the_world_reads_back_to_the_same_observations(tmp_path):
    world = Machines(machines=80, seed=1)
    world.fleet.frame().to_csv(tmp_path / "machines.csv", index=False)
    (tmp_path / "machines.yaml").write_text(yaml.safe_dump(plain_of(TASK), sort_keys=False), encoding="utf-8")
    read = EpisodeTable(tmp_path / "machines.csv", tmp_path / "machines.yaml", seed=1)
    assert read.observations().fingerprint() == world.observations().fingerprint()
    assert read.held_out().fingerprint() == world.held_out().fingerprint()
    assert read.count() == world.count()
    assert [read.case(index).identity for index in range(read.count())] == [
        world.case(index).identity for index in range(world.count())
    ]


def test_nothing_changes_nothing(world):
    case = world.case(0)
    score = world.score(case, NOTHING)
    states = case.episode.columns(("wear", "temperature", "vibration"))
    actions = case.episode.columns(("service", "load")).long()
    observed = -(points(states) + costs(actions)).sum()
    assert score["true_observed"] == score["true_value"] == float(observed)
    assert score["true_improvement"] == 0
    assert score["true_optimum"] >= score["true_observed"]
    answer = world.respond(case, NOTHING)
    assert not answer.altered.any()
    assert torch.equal(answer.values[:, : len(case.episode.names)], case.episode.values[:-1])


def test_a_change_has_its_true_value(world):
    case = world.case(1)
    number = int(case.episode.identity) - 1
    altered = world.fleet.actions[number, :10].clone()
    before = float(true_returns(world.fleet, number, altered.unsqueeze(0)))
    altered[3] = torch.tensor([2, 1])
    after = float(true_returns(world.fleet, number, altered.unsqueeze(0)))
    score = world.score(case, change({3: (2, 1)}))
    assert (score["true_observed"], score["true_value"]) == (before, after)
    assert score["true_improvement"] == pytest.approx((after - before) / abs(before), rel=1e-12)


def test_the_answer_marks_the_changed_actions(world):
    case = world.case(1)
    given = world.fleet.actions[int(case.episode.identity) - 1, 3]
    new = ((int(given[0]) + 1) % 3, int(given[1]))
    answer = world.respond(case, change({3: new}))
    width = len(case.episode.names)
    assert answer.altered[:, case.episode.names.index("service")].nonzero().tolist() == [[3]]
    assert answer.altered[:, width + case.episode.names.index("service")].nonzero().tolist() == [[2]]
    assert int(answer.altered.sum()) == 2
    assert answer.columns(("service",))[3].item() == new[0]


def test_the_optimum_is_that_of_enumeration():
    """Compared with a loop over every sequence of at most two changes."""
    world = Machines(machines=40, seed=3, horizon=6, changes=2)
    case = world.case(0)
    number = int(case.episode.identity) - 1
    given = world.fleet.actions[number, :6]
    best = -float("inf")
    for steps in combinations(range(5), 2):
        for chosen in product(product(range(3), range(2)), repeat=2):
            actions = given.clone()
            for step, each in zip(steps, chosen, strict=True):
                actions[step] = torch.tensor(each)
            best = max(best, float(true_returns(world.fleet, number, actions.unsqueeze(0))))
    assert world.optimum(case) == best


def test_no_changes_leave_the_observed_value_and_too_many_none():
    still = Machines(machines=40, seed=3, horizon=10, changes=0)
    case = still.case(0)
    assert still.optimum(case) == still.score(case, NOTHING)["true_observed"]
    many = Machines(machines=40, seed=3, horizon=10, changes=6)
    assert "true_optimum" not in many.score(many.case(0), NOTHING)
    with pytest.raises(ValueError, match="changes: expected at least 0; got -1"):
        Machines(machines=40, changes=-1)


def test_what_is_no_level_or_no_week_is_refused(world):
    case = world.case(0)
    with pytest.raises(ValueError, match=r"action\[12\] is not one of its 10 weeks"):
        world.score(case, change({12: (0, 0)}))
    with pytest.raises(
        ValueError, match=r"action\[2\] is service 3 and load 0; expected levels 0 to 2 and 0"
    ):
        world.score(case, change({2: (3, 0)}))


def test_action_numbers_stand_for_levels(world):
    case = world.case(0)
    by_number = Decision(Alteration((action_name(2),), torch.tensor([7])), 0.0)
    assert world.score(case, by_number) == world.score(case, change({2: (2, 1)}))


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
    roles = roles_of(TASK)
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


def test_operators_service_worn_machines():
    """Confounding by the state, which the table shows: serviced machines are more worn."""
    frame = simulate(400, seed=0).frame()
    worn = frame.groupby(frame["service"] != "none")["wear"].mean()
    assert worn[True] > worn[False] + 5


def test_a_machine_does_not_depend_on_the_others():
    few, many = simulate(5, seed=3), simulate(20, seed=3)
    assert torch.equal(few.latent, many.latent[:5])
    assert torch.equal(few.actions, many.actions[:5])
    assert torch.equal(few.horizon, many.horizon[:5])
    assert not torch.equal(simulate(5, seed=4).latent, few.latent)
