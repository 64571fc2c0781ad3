import shutil
import subprocess
import sys

import pytest

import rehearsal_torch as rt
from rehearsal_torch.surrogates.derived_state import derived_names
from tests.places import ROOT

pytestmark = pytest.mark.slow


@pytest.mark.bench
def test_the_checkpoint_of_the_example_is_small(tmp_path):
    shutil.copytree(ROOT / "examples" / "patients", tmp_path / "patients")
    command = ["decide", "problem.yaml", "+experiment=own_problem", f"out={tmp_path / 'run'}"]
    subprocess.run(
        [sys.executable, "-m", "rehearsal_torch", *command],
        cwd=tmp_path / "patients",
        check=True,
        capture_output=True,
    )
    weights = tmp_path / "run" / "checkpoint" / "weights.safetensors"
    assert weights.stat().st_size < 1_000_000
    surrogate = rt.load(tmp_path / "run").surrogate
    state = surrogate.state_dict()
    left_out = sum(state[name].nbytes for name in derived_names(surrogate))
    assert 95_000_000 < left_out < 97_000_000
