"""Causal worlds as environments: campaigns of experiments."""

import warnings
from importlib import import_module

import numpy as np
import pytest
import torch

gymnasium = pytest.importorskip(
    "gymnasium", reason="Gymnasium is an option: pip install 'rehearsal-torch[rl]'"
)

from rehearsal_torch.adapters.gymnasium import (  # noqa: E402
    TRIALS,
    TrialEnvironment,
    trials,
)
from rehearsal_torch.data.decision import Decision  # noqa: E402
from rehearsal_torch.problems.trials.benchmark_functions import Dropwave  # noqa: E402
from rehearsal_torch.problems.world_size import Rounds  # noqa: E402
from rehearsal_torch.spaces.box import Alteration  # noqa: E402


@pytest.mark.parametrize("name", TRIALS)
def test_every_world_is_where_it_is_said_to_be(name):
    assert hasattr(import_module(f"rehearsal_torch.problems.trials.{TRIALS[name]}"), name)


@pytest.mark.parametrize("name", ["Dropwave", "Epidemic"])
def test_gymnasiums_own_checks_pass(name):
    from gymnasium.utils.env_checker import check_env

    made = gymnasium.make(f"rehearsal_torch/{name}-v0", rounds=4)
    with warnings.catch_warnings():
        # It advises against states without bounds; normal noise has none.
        warnings.filterwarnings("ignore", message=".*observation space.*")
        check_env(made.unwrapped, skip_render_check=True)


def test_a_campaign_is_that_of_the_world():
    world = Dropwave(size=Rounds(3), seed=4)
    made = trials("Dropwave", rounds=3, seed=4, scored=True)
    seen, info = made.reset()
    start = world.observations()
    best = int(world.task.reward_of(start).argmax())
    assert seen.tolist() == start.columns(world.task.nodes)[best].tolist()
    assert info["settings"] == dict(
        zip(world.task.actions, start.columns(world.task.actions)[best].tolist(), strict=True)
    )
    for index, point in enumerate(([0.0, 0.5], [1.0, -1.0], [3.0, -0.25])):
        seen, reward, over, cut, info = made.step(np.array(point, dtype=np.float32))
        lower, upper = world.bounds
        settings = lower + (torch.tensor(point, dtype=torch.float64).clamp(-1, 1) + 1) / 2 * (upper - lower)
        row = world.respond(world.case(index), Decision(Alteration(world.task.actions, settings), 0.0))
        assert seen.tolist() == row.columns(world.task.nodes)[0].tolist()
        assert reward == world.verdict(row).reward
        assert list(info["settings"].values()) == settings.tolist()
        assert info["expected"] == pytest.approx(float(world.expected(settings)))
        assert info["regret"] == pytest.approx(world.optimal_value - info["expected"])
        assert (over, cut) == (index == 2, False)
    with pytest.raises(RuntimeError, match="a campaign has 3 rounds"):
        made.step(np.zeros(2))


def test_a_seed_takes_another_world_and_none_repeats_the_campaign():
    made = trials("Dropwave", rounds=2)

    def played(seed):
        first = made.reset(seed=seed)[0].tolist()
        return first, made.step(np.zeros(2))[1]

    one = played(3)
    assert one == played(None) == played(3)
    assert one != played(4)


def test_wrong_points_and_names_are_refused():
    made = trials("Dropwave", rounds=2)
    made.reset()
    for point in ([0.1], [0.1, float("nan")]):
        with pytest.raises(ValueError, match="expected 2 finite numbers"):
            made.step(np.array(point))
    with pytest.raises(RuntimeError, match=r"call reset\(\)"):
        TrialEnvironment(lambda seed: Dropwave(size=Rounds(1), seed=seed)).step(np.zeros(2))
