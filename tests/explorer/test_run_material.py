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
