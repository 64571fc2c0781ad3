"""Which folder a run may use, and what a resumed run may be told."""

import pytest

from rehearsal_torch.cli.resume import SWEEP, agree, cleared, recorded
from rehearsal_torch.cli.verbs.collect import statuses
from rehearsal_torch.files.bounded_yaml import PlainFileError
from rehearsal_torch.run_folder import RunFolder
from rehearsal_torch.user_error import UserError

CONFIG = {
    "seed": 0,
    "out": "a",
    "workers": None,
    "trainer": {"max_epochs": 3, "progress": True},
    "dataset": {},
}


@pytest.fixture
def begun(tmp_path):
    folder = RunFolder(tmp_path / "run")
    folder.write_metrics([])
    folder.write_yaml("config.yaml", CONFIG)
    folder.write_json(
        "run.json",
        {"script": "train", "overrides": ["+experiment=sepsis", "seed=0"], "choices": {"decision": "astar"}},
    )
    return folder


def test_the_same_configuration_goes_on_wherever_it_stands(begun):
    agree(begun, CONFIG)
    agree(begun, CONFIG | {"out": "b", "workers": 4, "trainer": {"max_epochs": 3, "progress": False}})
    agree(RunFolder(begun.path / "new"), CONFIG)


def test_a_job_that_its_sweep_never_started_is_begun(tmp_path):
    statuses(tmp_path, [["seed=0"]])
    never = RunFolder(tmp_path / "0")
    assert [path.name for path in never.path.iterdir()] == ["status.json"]
    agree(never, CONFIG)
    with never.lock():
        agree(never, CONFIG)
        cleared(never)
    assert list(never.path.iterdir()) == []


def test_a_run_that_was_killed_while_it_began_is_begun_anew(tmp_path):
    RunFolder(tmp_path).write_json("run.json", {"script": "train", "overrides": []})
    for name in (".config.yaml.4711.part", ".error.txt.part"):
        (tmp_path / name).write_text("seed: 1")
    agree(RunFolder(tmp_path), CONFIG)
    cleared(RunFolder(tmp_path))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "names",
    [
        ["config.yaml"],
        ["config.yaml", "data.yaml"],
        ["run.json"],
        ["status.json", "error.txt"],
        ["data.yaml", ".run.json.7.part"],
    ],
)
def test_files_of_others_are_theirs_whatever_they_are_called(tmp_path, names):
    for name in names:
        (tmp_path / name).write_text('{"seed": 1}')
    with pytest.raises(
        (UserError, PlainFileError), match=r"holds no run|expected the keys script, overrides"
    ):
        agree(RunFolder(tmp_path), CONFIG)
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == dict.fromkeys(names, '{"seed": 1}')


def test_a_run_that_was_refused_before_it_made_anything_leaves_its_folder_to_the_next(begun):
    (begun.path / "metrics.csv").unlink()
    begun.close("failed", "no such column", [], 0.1)
    agree(begun, CONFIG | {"seed": 1})
    assert begun.begun, "looking changes nothing"
    cleared(begun)
    assert list(begun.path.iterdir()) == []


def test_what_was_recorded_is_what_goes_on(begun):
    assert recorded(str(begun.path), [], "train") == (["+experiment=sepsis", "seed=0"], False)
    assert recorded(str(begun.path), ["seed=0", "decision=astar", "trainer.max_epochs=3"], "train") == (
        ["+experiment=sepsis", "seed=0"],
        False,
    )
    assert recorded(str(begun.path), ["workers=2"], "train")[0] == [
        "+experiment=sepsis",
        "seed=0",
        "workers=2",
    ]


def test_sweeps_go_on_as_sweeps(tmp_path):
    RunFolder(tmp_path).write_json(
        SWEEP, {"script": "decide", "overrides": ["seed=0,1"], "decisive": ["seed=0,1"]}
    )
    assert recorded(str(tmp_path), ["hydra/launcher=joblib"], "decide") == (
        ["seed=0,1", "hydra/launcher=joblib"],
        True,
    )
