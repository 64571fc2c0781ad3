"""Disks without space, read-only folders, and folders in use: one paragraph that names the place, nothing
lost, and the same results as ever once the fault is gone."""

import shutil

import pytest

from rehearsal_torch.api.optimiser import CausalOptimiser
from rehearsal_torch.console_command import run
from rehearsal_torch.data.trials.trial_store import TrialFileError, TrialStore
from rehearsal_torch.files.lock import locked
from tests.scripts import typing_in
from tests.scripts.refusals import little_space
from tests.scripts.typing_in import TOY, called

pytestmark = pytest.mark.bench

typing_in.RUN.setdefault("report", lambda typed: run("report", typed))
CBO = ("+experiment=cbo", "limit=4", "search.screened=64", "search.starts=6", "search.steps=15")
TRIALS = {
    "graph": {"parents": {"X": ["a"], "Y": ["X", "b"]}},
    "actions": {"a": [0, 1], "b": [0, 2]},
    "reward": "Y",
}


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder with a finished training, `trained`, decisions of it, `decided`, and trials, `tried`."""
    folder = tmp_path_factory.mktemp("place")
    for typed in (
        ("train", *TOY, "out=trained"),
        ("decide", *TOY, "checkpoint=trained", "out=decided"),
        ("decide", *CBO, "out=tried"),
    ):
        answer = called(folder, *typed)
        assert answer.code == 0, answer.err
    return folder


def content(folder):
    return {
        path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()
    }


def told(answer, *words):
    """That a command was refused with one paragraph that holds some words."""
    assert answer.code == 2, answer.err
    said = [line for line in answer.err.strip().splitlines() if "Traceback" in line or ": " in line]
    assert "Traceback" not in answer.err
    assert all(word in said[-1] for word in words), answer.err


# The sizes stop at the record, the trainer's state or the checkpoint, the decisions, and the figures.
@pytest.mark.parametrize(
    ("verb", "typed", "whole", "size"),
    [
        *(("train", TOY, "trained", size) for size in (600, 1700, 5000, 40_000)),
        ("decide", (*TOY, "checkpoint=trained"), "decided", 10_000),
        ("decide", CBO, "tried", 3000),
    ],
)
def test_a_command_that_finds_no_space_says_where_and_goes_on_when_there_is_some(
    place, tmp_path, verb, typed, whole, size
):
    shutil.copytree(place / "trained", tmp_path / "trained")
    out = tmp_path / "run"
    with little_space(size):
        told(called(tmp_path, verb, *typed, "out=run"), "File too large", "Free some space", "run")
    assert not [path.name for path in out.rglob(".*") if path.name != ".hydra"]
    before = (out / "decisions.jsonl").read_bytes() if (out / "decisions.jsonl").exists() else b""
    complete = before[: before.rfind(b"\n") + 1]
    reference = (place / whole / "decisions.jsonl").read_bytes()
    assert reference.startswith(complete)
    answer = called(tmp_path, verb, *typed, "out=run")
    assert answer.code == 0, answer.err
    assert (out / "decisions.jsonl").read_bytes() == reference
    assert set(content(out)) == set(content(place / whole))
    weights = "checkpoint/weights.safetensors"
    assert content(out).get(weights) == content(place / whole).get(weights)


def test_a_trial_that_finds_no_space_is_not_recorded_and_can_be_told_again(tmp_path):
    file = tmp_path / "trials.json"
    made = CausalOptimiser(TRIALS, file=file)
    (action,) = made.ask()
    before = file.read_bytes()
    with little_space(len(before)), pytest.raises(TrialFileError, match="nothing was recorded: free some"):
        made.tell(action, {"X": 0.25, "Y": 1.0})
    assert content(tmp_path) == {"trials.json": before}
    assert [trial.state for trial in made.trials] == ["pending"]
    made.tell(action, {"X": 0.25, "Y": 1.0})
    assert [trial.state for trial in CausalOptimiser.load(file).trials] == ["completed"]


def test_a_folder_in_use_is_left_to_its_process(place, tmp_path, monkeypatch):
    for name in ("trained", "decided", "tried"):
        shutil.copytree(place / name, tmp_path / name)
    before = content(tmp_path)
    for verb, *typed in (
        ("train", *TOY[:2], "resume=trained"),
        ("decide", *TOY[:2], "resume=decided"),
        ("decide", "resume=tried"),
        ("report", "decided"),
    ):
        folder = tmp_path / typed[-1].removeprefix("resume=")
        with locked(folder):
            told(called(tmp_path, verb, *typed), f"{folder.name} is in use by process")
    assert content(tmp_path) == before
    file = tmp_path / "trials.json"
    made = CausalOptimiser(TRIALS, file=file)
    other = CausalOptimiser.load(file)
    (one,), (two,) = made.ask(), other.ask()
    assert (one.trial, two.trial, one != two) == (1, 2, True)
    monkeypatch.setattr("rehearsal_torch.data.trials.trial_store.PATIENCE", 0.1)
    with locked(file), pytest.raises(ValueError, match=r"trials\.json is in use by process"):
        made.tell(one, {"X": 0.25, "Y": 1.0})
    made.tell(one, {"X": 0.25, "Y": 1.0})
    assert [trial.state for trial in TrialStore(None, file=file).log.trials] == ["completed", "pending"]
