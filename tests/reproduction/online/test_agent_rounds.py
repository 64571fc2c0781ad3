"""A run of an agent: its rows, and that it meets the worlds that the rehearsal methods meet."""

import math

import pytest

from rehearsal_torch.cli.overrides import composed
from rehearsal_torch.evaluation.claim_rows import ONLINE_COLUMNS
from rehearsal_torch.methods.instantiate import problem_of
from rehearsal_torch.user_error import UserError
from reproduction.online.agent_rounds import AGENTS, WORLDS, missing, rl_rows, world_of
from reproduction.plan import study


@pytest.mark.parametrize("joint", [False, True])
@pytest.mark.parametrize("world", WORLDS)
def test_worlds_are_those_of_the_rehearsal_methods(world, joint):
    config, _ = composed(
        [*study("online")["worlds"][world], "seed=3", "dataset.size.contexts=4"], multirun=False
    )
    theirs, ours = problem_of(config), world_of(world, 4, 3, joint)
    assert ours.observations().fingerprint() == theirs.observations().fingerprint()
    assert [ours.case(place).given for place in range(4)] == [theirs.case(place).given for place in range(4)]
    assert ours.system.weights == theirs.system.weights
    assert ours.released == theirs.released if world != "bermuda" else True
    assert (ours.task.candidates == theirs.task.candidates) != joint


@pytest.mark.parametrize("agent", AGENTS)
def test_rows_of_every_agent(agent):
    if missing(agent):
        pytest.skip(f"{' and '.join(missing(agent))} is not installed: pip install 'rehearsal-torch[rl]'")
    rows = list(rl_rows("ride_hailing", agent, 12, 1))
    assert all(tuple(row) == ONLINE_COLUMNS for row in rows)
    assert [row["round"] for row in rows] == list(range(1, 13))
    assert {(row["world"], row["method"], row["tau"], row["repeat"]) for row in rows} == {
        ("ride_hailing", agent, "", 1)
    }
    assert {row["success"] for row in rows} <= {0, 1}
    assert all(0 <= row["p_true"] <= row["oracle"] + 1e-6 for row in rows)
    assert all(math.isnan(row[name]) for row in rows for name in ("information", "lower", "upper"))
    names = {"recommend+discount"} if agent.endswith("_joint") else {"recommend", "discount"}
    assert {row["target"] for row in rows} <= names
    assert all(
        len(row["value"].split("+")) == len(row["target"].split("+"))
        and all(-2 <= float(v) <= 2 for v in row["value"].split("+"))
        for row in rows
    )


def test_what_is_not_installed_is_named(monkeypatch):
    monkeypatch.setattr("reproduction.online.agent_rounds.find_spec", lambda name: None)
    with pytest.raises(UserError, match=r"gymnasium and vowpalwabbit.*\[rl\]"):
        list(rl_rows("bermuda", "cats_joint", 3, 0))
    assert missing("ddpg_library_joint") == ["gymnasium", "stable_baselines3"]
    assert missing("uniform_joint") == ["gymnasium"]
