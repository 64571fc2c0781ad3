"""Other actions in observed episodes, by models from checkpoints: sepsis, machines, a table of one's own."""

from pathlib import Path

import pytest

import rehearsal_torch as rt
from rehearsal_torch.console_command import main
from rehearsal_torch.problems.sequences.sepsis_cohort import SepsisSimulated
from tests.golden.recorded import losses, of_folder, of_line
from tests.places import PUBLISHED_SEPSIS, ROOT
from tests.toys import pumps

pytestmark = pytest.mark.slow
SEPSIS, KEPT = ROOT / "checkpoints" / "sepsis", Path(__file__).parent / "checkpoints"
LONE = ("workers=1", "quiet=true", "out=run")


def of_looks(*found):
    """What is recorded of decisions on episodes; actions are numbers of levels, and so compared exactly."""
    return {"decisions": [of_line(each.to_dict()) for each in found]}


@pytest.fixture(scope="module")
def patients():
    return [SepsisSimulated(patients=60).case(index) for index in range(3)]


def test_sepsis(golden):
    """The default of the command, with the cohort of the checkpoint and the true counterfactuals."""
    assert main(["decide", "+experiment=sepsis", f"checkpoint={SEPSIS}", "limit=6", *LONE]) == 0
    golden(of_folder(Path("run")))


@pytest.mark.parametrize("reward", ["sofa_organs", "sofa_score"])
def test_look_back(golden, patients, reward):
    golden(of_looks(*(rt.look_back(SEPSIS, each, reward=reward) for each in patients)))


def test_weighted_reward(golden, patients):
    weights = {"MeanBP": 0.1, "GCS": 1}
    golden(of_looks(*(rt.look_back(SEPSIS, each, 2, reward=weights) for each in patients)))


def test_worst_member(golden, patients):
    cautious = {"objective.members": "worst"}
    golden(of_looks(*(rt.look_back(SEPSIS, each, 2, "greedy", **cautious) for each in patients)))


SEARCHES = {
    "astar": ("decision=astar", "dataset.horizon=10", "search.anchors.samples=50", "objective.changes=2"),
    "branch_and_bound": ("decision=branch_and_bound",),
    "exhaustive": ("decision=exhaustive", "objective.changes=1"),
    "greedy": ("decision=greedy",),
    "random": ("decision=random",),
    "top_k": ("decision=top_k",),
}


@pytest.mark.parametrize("name", SEARCHES)
def test_search(golden, name):
    """The published model, whose reward is linear."""
    typed = ("reward=linear", "dataset.patients=80", "limit=3", f"checkpoint={PUBLISHED_SEPSIS}")
    assert main(["decide", "+experiment=sepsis", *typed, *SEARCHES[name], *LONE]) == 0
    golden(of_folder(Path("run")))


def test_sequence_file(golden):
    """The problem file that is prepared, and a small model that was fitted to it."""
    assert main(["prepare", "machines", "out=.", "machines=120", "seed=1"]) == 0
    assert main(["decide", "problem.yaml", f"checkpoint={KEPT / 'machines'}", "limit=6", *LONE]) == 0
    golden(of_folder(Path("run")))


def test_machines(golden):
    """The world behind that file, which knows the truth."""
    typed = ("dataset=machines", "dataset.machines=120", "seed=1", "limit=3")
    assert (
        main(["decide", *typed, "reward=weights_score_costs", f"checkpoint={KEPT / 'machines'}", *LONE]) == 0
    )
    golden(of_folder(Path("run")))


def test_own_episodes(golden):
    """Levels, amounts, costs and a score; a model that was saved from Python, and units that come later."""
    model = rt.load(KEPT / "pumps")
    units = model.read(pumps.table(units=5, seed=7))
    golden(of_looks(*(model.look_back(each, changes=2) for each in units)))


def test_trained_sequence_file(golden):
    """Two epochs, of which the losses are compared."""
    assert main(["prepare", "machines", "out=.", "machines=120", "seed=1"]) == 0
    typed = (
        "decision=branch_and_bound",
        "surrogate.member.mechanism.hidden=16",
        "trainer.max_epochs=2",
        "trainer.progress=false",
        "limit=1",
    )
    assert main(["decide", "problem.yaml", *typed, *LONE]) == 0
    golden({"losses": losses(Path("run"))})
