"""What a causal world adds to its equations: rounds, answers, expectations and scores."""

import json
import math

import numpy as np
import pytest
import torch

from rehearsal_torch.data.causal_task import CausalTask
from rehearsal_torch.data.decision import Decision
from rehearsal_torch.data.finding import Finding
from rehearsal_torch.data.table import Table
from rehearsal_torch.problems.trials.causal_world import CausalWorld
from rehearsal_torch.problems.trials.mixture_noise import MixtureNoise
from rehearsal_torch.problems.world_size import Rounds
from rehearsal_torch.spaces.box import Alteration

DOUBLE = torch.float64
LIMITS = {"normals": [[1.0, 1.0]], "offsets": [1.5]}
NORMAL = MixtureNoise((1.0,), (0.0,), (1.0,))


def task(limits=None):
    return CausalTask.of(
        {
            "graph": {"parents": {"X": ["a"], "Y": ["X", "b"]}},
            "actions": {"a": [0.0, 1.0], "b": [0.0, 2.0]},
            "reward": {"weights": {"Y": 2.0, "X": -1.0}},
            "limits": limits,
        }
    )


class Toy(CausalWorld):
    """X = 3 a + u, Y = X + b^2 + u / 2: the reward is 2 Y - X, and E[r | a, b] = 3 a + 2 b^2."""

    def __init__(self, limits=None, noise=None, **more):
        super().__init__(task(limits), {"X": NORMAL, "Y": NORMAL} if noise is None else noise, **more)

    def equation(self, node, inputs, noise):
        return 3 * inputs["a"] + noise if node == "X" else inputs["X"] + inputs["b"] ** 2 + noise / 2

    def best(self):
        return self.task.box.upper, 11.0


def setting(*values, names=("a", "b"), keep=None):
    kept = None if keep is None else Alteration(names, torch.tensor(keep, dtype=DOUBLE))
    return Decision(Alteration(names, torch.tensor(values, dtype=DOUBLE)), 0.0, recommendation=kept)


ACTIONS = torch.tensor([[0.5, 1.0], [1.0, 2.0], [0.0, 0.0]], dtype=DOUBLE)


def test_nodes_follow_from_their_equations_in_order():
    world = Toy()
    noise = torch.tensor([[0.1, 0.2], [0.0, -1.0], [2.0, 0.0]], dtype=DOUBLE)
    x = 3 * ACTIONS[:, 0] + noise[:, 0]
    y = x + ACTIONS[:, 1] ** 2 + noise[:, 1] / 2
    torch.testing.assert_close(world.simulate(ACTIONS, noise), torch.stack([x, y], -1))
    torch.testing.assert_close(world.rewards(torch.stack([x, y], -1)), 2 * y - x)
    assert world.simulate(ACTIONS[:, None], noise).shape == (3, 3, 2), "every action with every noise"
    rows = world.experiments(ACTIONS, noise)
    assert rows.names == ("a", "b", "X", "Y")
    assert rows.altered.tolist() == [[True, True, False, False]] * 3
    assert torch.equal(world.recoverable("X", noise), noise)


def test_expectations_are_means_over_noise_that_is_the_same_for_every_action_and_seed():
    world, other = Toy(draws=4000), Toy(draws=4000, seed=5)
    found = world.expected(ACTIONS)
    torch.testing.assert_close(found, 3 * ACTIONS[:, 0] + 2 * ACTIONS[:, 1] ** 2, atol=0.1, rtol=0)
    # The error does not depend on the action: differences are exact.
    torch.testing.assert_close(found - found[0], torch.tensor([0.0, 7.5, -3.5], dtype=DOUBLE))
    assert torch.equal(other.expected(ACTIONS), found)
    assert torch.equal(world.expected(ACTIONS.reshape(3, 1, 2)), found.reshape(3, 1))
    assert world.bounds.tolist() == [[0.0, 0.0], [1.0, 2.0]]


def test_the_noise_of_an_answer_depends_on_seed_and_round_and_not_on_the_action():
    def answer(seed, round_, *values):
        world = Toy(seed=seed)
        row = world.respond(world.case(round_), setting(*values)).columns(("X", "Y"))[0]
        return row - world.simulate(torch.tensor(values, dtype=DOUBLE), torch.zeros(2, dtype=DOUBLE))

    torch.testing.assert_close(answer(0, 3, 0.5, 1.0), answer(0, 3, 0.1, 0.2))
    for other in (answer(1, 3, 0.5, 1.0), answer(0, 4, 0.5, 1.0)):
        assert not torch.allclose(other, answer(0, 3, 0.5, 1.0))


def test_a_batch_of_actions_is_answered_row_by_row_with_noise_of_its_own():
    world = Toy()
    decision = setting([0.5, 1.0], [0.5, 1.0])
    rows = world.respond(world.case(0), decision)
    assert len(rows) == 2
    assert not torch.equal(rows.values[0], rows.values[1])
    reward = 2 * rows.columns(["Y"]) - rows.columns(["X"])
    assert world.verdict(rows).reward == pytest.approx(float(reward.mean()))


def test_actions_may_be_named_in_any_order():
    world = Toy()
    turned = setting(1.0, 0.5, names=("b", "a"))
    one, other = (world.respond(world.case(0), each) for each in (turned, setting(0.5, 1.0)))
    assert torch.equal(one.values, other.values)
    assert world.score(world.case(0), turned) == world.score(world.case(0), setting(0.5, 1.0))


@pytest.mark.parametrize(
    ("decision", "said"),
    [
        (
            Decision(None, 0.0, reason=Finding("invalid", "too little is known")),
            r"expected a decision that sets \['a', 'b'\]; got none \(too little is known\)",
        ),
        (setting(0.5, names=("a",)), r"expected a decision that sets \['a', 'b'\]; got"),
        (setting(0.5, 7.0), r"b may be set within \[0, 2\]; got 7"),
    ],
)
def test_what_cannot_be_run_is_refused(decision, said):
    world = Toy(LIMITS)
    for asked in (world.respond, world.score):
        with pytest.raises(ValueError, match=said):
            asked(world.case(0), decision)


def test_a_score_tells_what_was_tried_from_what_is_recommended():
    world = Toy(draws=2000)
    off = float(world.expected(torch.zeros(1, 2, dtype=DOUBLE)))
    start = float(world.expected(world.observations().columns(("a", "b"))).max())
    plain = world.score(world.case(0), setting(0.5, 1.0))
    assert plain["expected"] == plain["recommended"] == pytest.approx(3.5 + off)
    assert plain["regret"] == pytest.approx(11 - 3.5 - off)
    assert plain["optimum"] == world.optimum(world.case(0)) == 11.0
    assert plain["start"] == pytest.approx(start)
    kept = world.score(world.case(0), setting(0.5, 1.0, keep=(1.0, 2.0)))
    assert kept["expected"] == pytest.approx(3.5 + off)
    assert kept["recommended"] == pytest.approx(11 + off)
    assert kept["regret"] == pytest.approx(-off)


def test_the_start_design_and_the_held_out_rows_come_with_their_noise():
    world = Toy(size=Rounds(initial=7))
    table, noise = world.explained()
    assert len(table) == len(noise) == 7
    assert torch.equal(world.observations().values, table.values)
    torch.testing.assert_close(world.simulate(table.columns(("a", "b")), noise), table.columns(("X", "Y")))
    held, other = world.explained(held_out=True)
    assert len(held) == len(other) == 50
    assert torch.equal(world.held_out().values, held.values)
    assert not torch.equal(held.values[:7], table.values)
    assert not torch.equal(Toy(size=Rounds(initial=7), seed=1).observations().values, table.values)
    assert Toy().initial == 6, "two for each action, and two more"


def test_random_actions_keep_to_the_limits_and_fill_them():
    world = Toy(LIMITS)
    actions = world.random_actions(400, np.random.default_rng(0))
    assert actions.shape == (400, 2)
    assert bool((actions.sum(-1) <= 1.5).all())
    assert float(actions[:, 0].max()) > 0.95
    assert float(actions[:, 1].max()) > 1.4
    # Uniform over the quadrilateral (0, 0), (1, 0), (1, 1/2), (0, 3/2), whose area is 1.
    assert float((actions[:, 1] > 0.5).double().mean()) == pytest.approx(0.5, abs=0.08)


def test_rounds_are_numbered_and_see_nothing_beforehand():
    world = Toy(size=Rounds(3))
    assert world.count() == 3
    one_case = world.case(2)
    assert (one_case.identity, one_case.given) == ("2", {})
    assert one_case.feasible == {"a": (0.0, 1.0), "b": (0.0, 2.0)}
    for index in (-1, 3):
        with pytest.raises(IndexError, match=rf"expected a round in 0 ... 2; got {index}"):
            world.case(index)


@pytest.mark.parametrize(
    ("settings_", "said"),
    [
        ({"draws": 0}, "expected at least 5 initial experiments and 1 draw; got 6 and 0"),
        ({"noise": {"X": NORMAL}}, r"no noise distribution for \['Y'\]: give each node one"),
    ],
)
def test_a_world_that_is_not_whole_is_refused(settings_, said):
    with pytest.raises(ValueError, match=said):
        Toy(**settings_)


def test_the_card_is_plain_data():
    world = Toy(size=Rounds(3))
    card = world.card()
    assert json.loads(json.dumps(card)) == card
    assert (card["world"], card["rows"], card["rounds"], card["optimum"]) == ("Toy", 6, 3, 11.0)
    assert card["fingerprint"] == world.observations().fingerprint()
    assert card["ranges"]["a"] == [
        float(world.observations().columns(["a"]).min()),
        float(world.observations().columns(["a"]).max()),
    ]
    assert card["noise"]["Y"] == {"weights": [1.0], "means": [0.0], "stds": [1.0]}
    assert isinstance(world.observations(), Table)
    assert math.isfinite(card["ranges"]["Y"][1])
