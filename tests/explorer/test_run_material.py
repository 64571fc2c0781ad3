"""What a page reads of a run folder, and which folders are none."""

import shutil

import pytest

from rehearsal_torch.cli.errors import UserError
from rehearsal_torch.explorer.run_material import checkpoint_of, existing, recorded, settings
from tests.toys.explored import run_folder


@pytest.fixture
def run(tmp_path):
    return run_folder(tmp_path / "run")


def test_a_run_is_read(run):
    of = recorded(existing(run))
    assert of.run.kind == "rehearse"
    assert settings(of)["trusted"] == [], "nothing in a folder is trusted"
    assert checkpoint_of(run, of.run.config) == run / "checkpoint"


def test_the_checkpoint_that_a_run_was_given_is_found(run, tmp_path):
    shutil.move(run / "checkpoint", tmp_path / "elsewhere")
    assert checkpoint_of(run, {"checkpoint": str(tmp_path / "elsewhere")}) == tmp_path / "elsewhere"
    with pytest.raises(UserError, match="holds no checkpoint; it decided with gone, which is not there"):
        checkpoint_of(run, {"checkpoint": "gone"})


def test_folders_that_cannot_be_used_are_refused(run, tmp_path):
    with pytest.raises(UserError, match="there is no such folder"):
        existing(tmp_path / "gone")
    with pytest.raises(UserError, match="is not a run folder"):
        recorded(tmp_path)
    of = recorded(run)
    with pytest.raises(UserError, match=r"config\.yaml has no dataset and no surrogate"):
        settings(of, ("objective", "dataset", "surrogate"))
    of.run.config["learn"] = True
    with pytest.raises(UserError, match="is an online run"):
        settings(of)
    (run / "sweep.json").write_text("{}")
    with pytest.raises(UserError, match="is the folder of a sweep"):
        existing(run)
