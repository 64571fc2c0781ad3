"""Sweeps on SLURM itself: a cluster of one node, as .github/slurm.sh starts it (make test-slurm).

Jobs of the toy ward decide for 20 patients; `dataset.pause` is how long each of them takes.
"""

import json
import subprocess

import pytest

from tests.scripts.run_bytes import content
from tests.scripts.typing_in import TOY, typed

SIZE = ("hydra.launcher.cpus_per_task=1", "hydra.launcher.mem_gb=1", "hydra.launcher.timeout_min=10")
LAUNCHER = ("hydra/launcher=submitit_slurm", *SIZE)


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder with a finished training, `trained`, and its decisions by one process, `whole`."""
    folder = tmp_path_factory.mktemp("place")
    for script, more in (("train", ["out=trained"]), ("decide", ["checkpoint=trained", "out=whole"])):
        answer = typed(folder, script, *TOY, *more)
        assert answer.code == 0, answer.err
    return folder


def sweep(place, out, *more):
    """What comes of a sweep of decisions on the cluster."""
    return typed(place, "decide", "-m", *TOY, "checkpoint=trained", f"out={out}", *more)


def said(*command):
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def states(place, out, jobs=2):
    return [json.loads((place / out / f"{job}/status.json").read_text())["state"] for job in range(jobs)]


def submission(place, out):
    """The number by which SLURM knows what was submitted."""
    (script,) = (place / out / ".submitit").glob("*/*_submission.sh")
    return script.name.partition("_")[0]


def test_shards_merge_to_the_same_bytes_with_the_settings_asked_for(place):
    settings = ("partition=cpu", "account=lab", "qos=short", "comment=toy", "name=ward")
    answer = sweep(
        place,
        "shared",
        *LAUNCHER,
        *(f"hydra.launcher.{each}" for each in settings),
        "+hydra.launcher.additional_parameters.nice=5",
        "shards=4",
        "shard=range(4)",
    )
    assert answer.code == 0, answer.err
    assert content(place / "shared") == content(place / "whole")
    number = submission(place, "shared")
    asked = ("sacct", "-nPX", f"--jobs={number}", "--format=Partition,Account,QOS,JobName,ReqMem,State")
    assert set(said(*asked).splitlines()) == {"cpu|lab|short|ward|1G|COMPLETED"}


def test_a_job_that_fails_stops_no_other(place):
    answer = sweep(place, "failing", *LAUNCHER, "dataset.broken=true,false", "limit=1")
    assert answer.code == 1, answer.err
    assert states(place, "failing") == ["failed", "ok"]
    assert "Traceback" not in answer.err


def test_what_sbatch_refuses_is_one_paragraph(place):
    asked = ("hydra/launcher=submitit_slurm", "hydra.launcher.partition=nowhere", "shards=2", "shard=0,1")
    answer = sweep(place, "refused", *asked)
    assert answer.code == 2, answer.err
    last = answer.err.strip().splitlines()[-1]
    assert "the cluster refused the submission, and no job was started (Batch job submission failed: " in last
    assert "Traceback" not in answer.err
