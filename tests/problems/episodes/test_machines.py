from itertools import combinations, product

import pytest
import torch
import yaml

from rehearsal_torch.data.decision import Decision, action_name
from rehearsal_torch.data.finding import Finding
from rehearsal_torch.files.schema import plain_of
from rehearsal_torch.problems.episodes.machine_dynamics import TASK, costs, points, true_returns
from rehearsal_torch.problems.episodes.machines import Machines
from rehearsal_torch.problems.episodes.own_episodes import EpisodeTable
from rehearsal_torch.spaces.box import Alteration

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


def test_the_card_says_that_it_is_a_simulation(world):
    card = world.card()
    assert card["source"] == "simulated machines, seed 2"
    assert card["caution"].startswith("A simulated world")
    assert card["machines"] == 60
