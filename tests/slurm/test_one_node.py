"""Sweeps on SLURM itself: a cluster of one node, as .github/slurm.sh starts it (make test-slurm).

Jobs of the toy ward decide for 20 patients; `dataset.pause` is how long each of them takes.
"""

import json
import os
import signal
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from rehearsal_torch.files.lock import LOCK
from tests.scripts.run_bytes import content
from tests.scripts.typing_in import TOY, typed

SIZE = ("hydra.launcher.cpus_per_task=1", "hydra.launcher.mem_gb=1", "hydra.launcher.timeout_min=10")
BATCHES = ("hydra/launcher=batches_slurm", *SIZE)


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


def finished(place, out):
    """What comes of the sweep in a folder when it is typed again."""
    return typed(place, "decide", *TOY[:2], f"resume={out}", *BATCHES, "hydra.launcher.jobs_per_submission=1")


def said(*command):
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def begun(run, number, seconds=200):
    """Waits until a job has decided for so many patients."""
    ends = time.monotonic() + seconds
    while not (run / "decisions.jsonl").is_file() or len(decisions(run)) < number:
        assert time.monotonic() < ends, f"{run} has not begun"
        time.sleep(0.1)


def decisions(run):
    return (run / "decisions.jsonl").read_bytes().splitlines()


def states(place, out, jobs=2):
    return [json.loads((place / out / f"{job}/status.json").read_text())["state"] for job in range(jobs)]


def submission(place, out):
    """The number by which SLURM knows what was submitted."""
    (script,) = (place / out / ".submitit").glob("*/*_submission.sh")
    return script.name.partition("_")[0]


@pytest.mark.parametrize("launcher", ["submitit_slurm", "batches_slurm"])
def test_shards_merge_to_the_same_bytes_with_the_settings_asked_for(place, launcher):
    settings = ("partition=cpu", "account=lab", "qos=short", "comment=toy", "name=ward")
    answer = sweep(
        place,
        launcher,
        f"hydra/launcher={launcher}",
        *SIZE,
        *(f"hydra.launcher.{each}" for each in settings),
        "+hydra.launcher.additional_parameters.nice=5",
        "shards=4",
        "shard=range(4)",
    )
    assert answer.code == 0, answer.err
    assert content(place / launcher) == content(place / "whole")
    number = submission(place, launcher)
    asked = ("sacct", "-nPX", f"--jobs={number}", "--format=Partition,Account,QOS,JobName,ReqMem,State")
    assert set(said(*asked).splitlines()) == {"cpu|lab|short|ward|1G|COMPLETED"}


def test_a_job_that_fails_stops_no_other(place):
    answer = sweep(place, "failing", *BATCHES, "dataset.broken=true,false", "limit=1")
    assert answer.code == 1, answer.err
    assert states(place, "failing") == ["failed", "ok"]
    assert "Traceback" not in answer.err


@pytest.mark.parametrize("launcher", ["submitit_slurm", "batches_slurm"])
def test_what_sbatch_refuses_is_one_paragraph(place, launcher):
    asked = (f"hydra/launcher={launcher}", "hydra.launcher.partition=nowhere", "shards=2", "shard=0,1")
    answer = sweep(place, f"refused-{launcher}", *asked)
    assert answer.code == 2, answer.err
    last = answer.err.strip().splitlines()[-1]
    assert "the cluster refused the submission, and no job was started (Batch job submission failed: " in last
    assert "Traceback" not in answer.err


@pytest.mark.parametrize("how", ["cancelled", "killed"])
def test_a_submission_that_is_ended_stops_no_other_and_is_taken_up(place, how):
    more = ("shards=2", "shard=0,1", "dataset.pause=1", "hydra.launcher.jobs_per_submission=1")
    with ThreadPoolExecutor() as pool:
        answer = pool.submit(sweep, place, how, *BATCHES, *more)
        begun(place / how / "0", 2)
        ended = f"{submission(place, how)}_0"
        if how == "cancelled":
            said("scancel", ended)
        else:  # as by a system without memory
            os.kill(json.loads((place / how / f"0/{LOCK}.json").read_text())["pid"], signal.SIGKILL)
    told = answer.result().err.strip().splitlines()[-1]
    assert answer.result().code == 2, told
    assert told.startswith("1 of 2 submissions ended before their jobs did: ")
    assert f"{ended} (job 0: killed, or out of time or memory; SLURM says " in told
    assert states(place, how) == ["interrupted" if how == "cancelled" else "failed", "ok"]
    assert 2 <= len(decisions(place / how / "0")) < 10
    answer = finished(place, how)
    assert answer.code == 0, answer.err
    assert decisions(place / how) == decisions(place / "whole")


def test_a_submission_out_of_time_is_taken_up(place):
    limit = ("hydra.launcher.timeout_min=1", "hydra.launcher.signal_delay_s=30")
    answer = sweep(place, "late", *BATCHES, *limit, "dataset.pause=20,0", "limit=6")
    told = answer.err.strip().splitlines()[-1]
    assert answer.code == 2, told
    assert "(jobs 0 to 1: killed, or out of time or memory; SLURM says TIMEOUT)" in told
    assert states(place, "late") == ["interrupted", "skipped"], "the warning before has disturbed nothing"
    assert 0 < len(decisions(place / "late/0")) < 6
    answer = finished(place, "late")
    assert answer.code == 0, answer.err
    assert decisions(place / "late/0") == decisions(place / "whole")[:6]


def test_a_submission_that_is_queued_again_goes_on_where_it_was(place):
    with ThreadPoolExecutor() as pool:
        answer = pool.submit(sweep, place, "again", *BATCHES, "shards=2", "shard=0,1", "dataset.pause=1")
        begun(place / "again/0", 2)
        first = decisions(place / "again/0")
        said("scontrol", "requeue", submission(place, "again"))
    assert answer.result().code == 0, answer.result().err
    assert decisions(place / "again/0")[: len(first)] == first
    assert decisions(place / "again") == decisions(place / "whole")
