"""Rehearsal worlds as Gymnasium environments. Skipped where Gymnasium is not installed."""

import warnings

import numpy as np
import pytest
import torch

from rehearsal_torch.adapters.gymnasium import AlterationCode
from rehearsal_torch.problems.cases.changing_world import TwoStores
from rehearsal_torch.problems.cases.linear_examples import RideHailing
from rehearsal_torch.problems.cases.nonlinear_examples import Visits
from rehearsal_torch.problems.world_size import SampleSize
from rehearsal_torch.spaces.box import Alteration
from tests.toys.linear_truth import chain

gymnasium = pytest.importorskip(
    "gymnasium", reason="Gymnasium is an option: pip install 'rehearsal-torch[rl]'"
)

from rehearsal_torch.adapters.gymnasium import RehearsalEnvironment  # noqa: E402


@pytest.mark.parametrize("name", ["RideHailing", "Bermuda"])
def test_gymnasiums_own_checks_pass(name):
    from gymnasium.utils.env_checker import check_env

    made = gymnasium.make(f"rehearsal_torch/{name}-v0", rounds=5)
    with warnings.catch_warnings():
        # It advises against contexts without bounds; normal variables have none.
        warnings.filterwarnings("ignore", message=".*observation space.*")
        check_env(made.unwrapped, skip_render_check=True)


def test_an_episode_is_a_round_of_the_world():
    world = RideHailing(size=SampleSize(rows=10, contexts=3))
    made = RehearsalEnvironment(world)
    for index in (0, 1, 2, 0):
        seen, info = made.reset()
        assert info == {"round": index}
        one_case = world.case(index)
        assert seen.tolist() == pytest.approx([float(one_case.given[name]) for name in ("weather", "users")])
        value, best = world.optimal(world.given([one_case]), ("recommend",))
        action = made.code.encode(Alteration(("recommend",), value[0])).numpy().astype(np.float32)
        _, reward, over, cut, info = made.step(action)
        assert (over, cut) == (True, False)
        assert reward in (0.0, 1.0)
        assert info["altered"] == ["recommend"]
        assert info["probability"] == pytest.approx(float(best), abs=1e-4)
        assert info["oracle"] == pytest.approx(world.optimum(one_case))
    with pytest.raises(RuntimeError, match="reset"):
        made.step(made.action_space.sample())
    assert made.reset(seed=5)[1] == {"round": 0}
    assert made.reset(options={"round": 2})[1] == {"round": 2}


@pytest.mark.parametrize(
    "world",
    [
        RideHailing(size=SampleSize(rows=10, contexts=6)),
        TwoStores(size=SampleSize(rows=10, contexts=6), change=3),
    ],
    ids=["constant", "changing"],
)
def test_the_seed_of_a_reset_decides_the_stream(world):
    def played(made, rounds, seed=None):
        found = []
        for index in range(rounds):
            seen, info = made.reset(seed=seed if index == 0 else None)
            row, reward, *_, scores = made.step(np.zeros(made.code.size, dtype=np.float32))
            found.append((info["round"], seen.tolist(), row.tolist(), reward, scores["probability"]))
        return found

    one, other = RehearsalEnvironment(world), RehearsalEnvironment(world)
    first = played(one, 4, seed=7)
    assert first == played(other, 4, seed=7) == played(one, 4, seed=7)
    assert [each[0] for each in first] == [0, 1, 2, 3]
    strange = played(other, 4, seed=8)
    assert all(mine[1] != others[1] for mine, others in zip(first, strange, strict=True))
    # Without a seed the stream goes on, and a world's own seed is the world itself.
    assert [each[0] for each in played(one, 3)] == [4, 5, 0]
    assert played(one, 4, seed=world.seed) == played(RehearsalEnvironment(world), 4)
    assert one.world is world


TASK = chain(reach=2.0).task


def test_the_largest_of_the_first_numbers_chooses_the_set():
    code = AlterationCode(TASK)
    assert (code.choices, code.names, code.size) == (3, ("a", "m"), 5)
    made = code.decode([0.1, 0.9, -0.3, 0.5, -1.0])
    assert made.names == ("m",)
    assert made.values.tolist() == [-2.0]
    assert code.decode(torch.tensor([0.0, 0.0, 0.2, 0.5, 7.0])).values.tolist() == [1.0, 2.0]


def test_encoding_is_the_way_back():
    code = AlterationCode(TASK)
    for names, values in ((("a",), [0.3]), (("a", "m"), [-2.0, 1.1])):
        alteration = Alteration(names, torch.tensor(values, dtype=torch.float64))
        again = code.decode(code.encode(alteration))
        assert again.names == names
        assert again.values.tolist() == pytest.approx(values)
    with pytest.raises(ValueError, match="one of"):
        code.encode(Alteration(("m", "a"), torch.zeros(2)))


def test_a_point_between_levels_is_the_nearest():
    code = AlterationCode(Visits().task)
    points = [[-0.2, 0.1], [0.2, 0.1]]
    assert [code.decode(point).values.tolist() for point in points] == [[0.0, 2.2], [1.0, 2.2]]
    one = code.decode([1.0, -0.5])
    assert torch.equal(code.decode(code.encode(one)).values, one.values)


def test_a_single_set_needs_no_choice():
    task = type(TASK)(TASK.graph, TASK.context, TASK.box, TASK.region, (("m",),))
    code = AlterationCode(task)
    assert (code.choices, code.size) == (0, 1)
    assert code.decode([0.25]).values.tolist() == [0.5]


@pytest.mark.parametrize("point", [[0.0] * 4, [0.0, 0.0, 0.0, float("nan"), 0.0]])
def test_points_that_are_none_are_refused(point):
    with pytest.raises(ValueError, match="expected 5 finite numbers"):
        AlterationCode(TASK).decode(point)
