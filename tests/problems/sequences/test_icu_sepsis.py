"""Episodes of ICU-Sepsis: the noise explains what happened, and the best changes are those of enumeration."""

from importlib.util import find_spec
from itertools import combinations, product

import numpy as np
import pytest
import torch

from rehearsal_torch.data.decision import Decision, action_name
from rehearsal_torch.data.finding import Finding
from rehearsal_torch.data.tables.reader import TableError
from rehearsal_torch.problems.sequences.icu_sepsis import DRUGS, IcuSepsis, dynamics
from rehearsal_torch.spaces.box import Alteration
from tests.toys.icu_states import LIVE, written

NOTHING = Decision(None, 0.0, reason=Finding("no_gain", "none"))


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    return IcuSepsis(written(tmp_path_factory.mktemp("icu")), count=150, seed=1, changes=2)


def test_states_are_numbered_by_their_points_and_both_ends_are_kept(world):
    assert len(world.points) == LIVE + 2
    assert world.points.tolist() == sorted(world.points.tolist())
    assert (world.points[0], world.points[-1]) == (0, 24)
    for end in (0, LIVE + 1):
        assert (np.isfinite(world.logits[end]).sum(-1) == 1).all()
        assert (world.logits[end, :, end] == 0).all()
    for episode in world.all:
        states = episode.columns(["state"])[:, 0]
        ended = (states == 0) | (states == LIVE + 1)
        assert 4 <= episode.horizon <= 12
        assert not ended[:-1].any()
        assert bool(ended[-1]) or episode.horizon == 12


def test_the_noise_explains_what_happened(world):
    for index in range(world.count()):
        case = world.case(index)
        done = world.levels.digitise(case.episode.columns(DRUGS))
        assert torch.equal(world.followed(case.episode, done).double(), case.episode.columns(["state"])[:, 0])
        score = world.score(case, NOTHING)
        assert score["true_value"] == score["true_observed"] == -float(case.episode.columns(["SOFA"]).sum())
        assert score["true_gain"] == 0


def test_next_states_have_their_probabilities(tmp_path):
    world = IcuSepsis(written(tmp_path), count=1500)
    rows = world.observations()
    state, after = rows.columns(("state", "state'")).long().T
    action = world.levels.digitise(rows.columns(DRUGS))
    expected = torch.from_numpy(np.exp(world.logits))[state, action]
    share = torch.nn.functional.one_hot(after, LIVE + 2).double() - expected
    assert float(share.mean(0).abs().max()) < 0.02


def test_the_optimum_is_that_of_enumeration(world):
    case = next(each for each in map(world.case, range(world.count())) if each.episode.horizon <= 6)
    done = world.levels.digitise(case.episode.columns(DRUGS))
    best = -np.inf
    for steps in combinations(range(case.episode.horizon - 1), 2):
        for chosen in product(range(25), repeat=2):
            actions = done.clone()
            actions[list(steps)] = torch.tensor(chosen)
            best = max(best, -float(world.points[world.followed(case.episode, actions)].sum()))
    assert world.score(case, NOTHING)["true_optimum"] == pytest.approx(best)
    one = Decision(Alteration((action_name(1),), torch.tensor([(int(done[1]) + 1) % 25])), 0.0)
    assert world.score(case, one)["true_value"] <= best


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        ({"d_0": None}, "expected the arrays tx_mat, d_0"),
        ({"d_0": np.zeros(4)}, "of S states and 25 actions"),
        ({"d_0": np.zeros(LIVE + 3)}, "probabilities that add up to 1"),
        ({"sofa_scores": np.array([None] * (LIVE + 3))}, "got another file"),
    ],
)
def test_another_file_is_refused(tmp_path, fault, words):
    with pytest.raises(TableError, match=words):
        dynamics(written(tmp_path, **fault))
    (tmp_path / "text.npz").write_text("no archive")
    with pytest.raises(TableError, match="got another file"):
        dynamics(str(tmp_path / "text.npz"))
    with pytest.raises(TableError, match=r"there is no absent\.npz"):
        dynamics("absent.npz")


@pytest.mark.slow
@pytest.mark.skipif(find_spec("icu_sepsis") is None, reason="icu-sepsis is an option: make strangers")
def test_the_package_has_the_published_numbers():
    world = IcuSepsis(count=300)
    assert (len(world.points), world.levels.actions, world.card()["source"]) == (
        715,
        25,
        "ICU-Sepsis, seed 0",
    )
    assert float(torch.cat([each.columns(["SOFA"]) for each in world.all]).mean()) == pytest.approx(
        7, abs=1.5
    )
