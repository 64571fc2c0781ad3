"""The example of docs/own_classes.md: a package outside the project, with its own conf."""

import json
import shutil
import subprocess
import sys

import pytest

from tests.places import ROOT
from tests.scripts.typing_in import lines, typed

GIVEN = ["--config-dir", "my_conf", "+experiment=heated_room", "workers=1"]
LOADED = """
import rehearsal_torch as rt
from rehearsal_torch.checkpoint import CheckpointError
try:
    rt.load("room")
except CheckpointError as error:
    print("refused:", error)
model = rt.load("room", trusted=["my_lab"])
print(type(model.surrogate).__module__, type(model.surrogate).__name__, model.surrogate.faults())
print(type(model.method.search).__module__, type(rt.load("room/checkpoint", trusted=["my_lab"])).__name__)
"""


@pytest.fixture(scope="module")
def lab(tmp_path_factory):
    """The example's files, and a run."""
    folder = tmp_path_factory.mktemp("lab")
    shutil.copytree(ROOT / "examples/heated_room", folder, dirs_exist_ok=True)
    answer = typed(folder, "decide", *GIVEN, "out=room", PYTHONPATH=f"{folder}:{ROOT}")
    assert answer.code == 0, answer.err
    return folder


def test_classes_of_ones_own_decide_near_the_oracle(lab):
    found = lines(lab / "room")
    assert len(found) == 5
    assert {one["trace"]["search"] for one in found} == {"grid"}
    for one in found:
        assert one["score"]["oracle"] - one["score"]["probability"] < 0.05
        assert one["score"]["oracle"] >= one["score"]["no_action"]
    assert json.loads((lab / "room/run.json").read_text())["kind"] == "rehearse"


def test_its_checkpoint_loads_where_its_module_is_trusted(lab):
    made = subprocess.run(
        [sys.executable, "-c", LOADED],
        cwd=lab,
        env={"PYTHONPATH": f"{lab}:{ROOT}", "PATH": ""},
        capture_output=True,
        text=True,
        check=True,
    )
    refused, loaded, asked = made.stdout.strip().splitlines()
    assert "my_lab.TwoLines" in refused
    assert "trusted=['my_lab']" in refused
    assert loaded == "my_lab TwoLines []"
    assert asked == "my_lab TwoLines"
