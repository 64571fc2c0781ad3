"""Submissions of several jobs: how jobs are grouped, numbered and returned."""

import importlib.util
import json
import os
import re
from typing import ClassVar

import pytest
from hydra_plugins.hydra_submitit_launcher.submitit_launcher import BaseSubmititLauncher
from omegaconf import OmegaConf
from submitit.core.utils import FailedJobError, UncompletedJobError
from submitit.slurm.slurm import SlurmJob

from hydra_plugins import rehearsal_batches
from hydra_plugins.rehearsal_batches import LocalBatches, SlurmBatches
from rehearsal_torch.cli.errors import user_error_from

JOBS = [[f"seed={seed}", 'path="a, b.csv"'] for seed in range(7)]


class Executor:
    """Runs what is submitted at once, where submitit would start processes; or lets a submission end."""

    ends: ClassVar = {}

    def __init__(self, folder, cluster, **more):
        self.groups, self.settings = made[-1], {"folder": folder, "cluster": cluster, **more}
        settings.append(self.settings)

    def update_parameters(self, **parameters):
        self.settings.update(parameters)

    def map_array(self, launcher, groups, *rest):
        self.groups.extend(groups)
        return [Job(launcher, number, each) for number, each in enumerate(zip(groups, *rest, strict=True))]


class Job:
    num_tasks = 1

    def __init__(self, launcher, number, arguments):
        self.job_id = f"id-{number}"
        self.launcher, self.number, self.arguments = launcher, number, arguments

    def task(self, number):
        return self

    def results(self):
        asked_for.append(self.number)
        if self.number in Executor.ends:
            raise Executor.ends[self.number]
        return [self.launcher(*self.arguments)]


made, settings, asked_for = [], [], []


@pytest.fixture(autouse=True)
def no_slurm_of_this_machine(tmp_path_factory, monkeypatch):
    """Commands of SLURM that are installed are not asked."""
    empty = tmp_path_factory.mktemp("commands")
    commands(empty, monkeypatch, squeue="exit 1", sacct="exit 1")


@pytest.fixture
def submitted(monkeypatch):
    """The groups that reach submitit."""
    for each in (made, settings, asked_for):
        each.clear()
    made.append([])
    monkeypatch.setattr(Executor, "ends", {})
    monkeypatch.setattr("submitit.AutoExecutor", Executor)
    monkeypatch.setattr(
        BaseSubmititLauncher, "__call__", lambda _, overrides, *rest: (overrides, rest[1], rest[2])
    )
    return made[-1]


def launcher(kind, folder, size=10, **more):
    made = kind(jobs_per_submission=size, submitit_folder=str(folder / "%j"), **more)
    made.config = OmegaConf.create({"hydra": {"sweep": {"dir": str(folder / "sweep")}}})
    return made


@pytest.mark.parametrize("kind", [LocalBatches, SlurmBatches])
@pytest.mark.parametrize(("size", "sizes"), [(1, [1] * 7), (3, [3, 3, 1]), (7, [7]), (10, [7])])
@pytest.mark.parametrize("first", [0, 5])
def test_each_job_runs_once_with_its_overrides_and_its_number(submitted, tmp_path, kind, size, sizes, first):
    found = launcher(kind, tmp_path, size).launch(JOBS, first)
    assert [len(group) for group in submitted] == sizes
    assert list(found) == [
        (job, number, f"job_id_for_{number}") for number, job in enumerate(JOBS, start=first)
    ]
    assert [json.loads(text) for group in submitted for text in group] == JOBS


def test_ten_jobs_a_submission_unless_said(submitted, tmp_path):
    made = LocalBatches(submitit_folder=str(tmp_path))
    made.config = OmegaConf.create({"hydra": {"sweep": {"dir": str(tmp_path)}}})
    made.launch(JOBS * 2, 0)
    assert [len(group) for group in submitted] == [10, 4]


def test_a_submission_that_ended_stops_no_other_and_is_named(submitted, tmp_path):
    killed = UncompletedJobError("Job id-0 (task: 0) with path x\nhas not produced any output")
    broken = FailedJobError("Job (task=0) failed during processing\n------\nImportError: no module named lab")
    Executor.ends = {0: killed, 2: broken}
    told = (
        "2 of 4 submissions ended before their jobs did: id-0 (jobs 5 to 6: killed, or out of time or "
        "memory), id-2 (jobs 9 to 10: ImportError: no module named lab)"
    )
    # Hydra runs the module again whenever it looks for plugins.
    with pytest.raises(rehearsal_batches.SubmissionsEndedError, match=f"^{re.escape(told)}$") as raised:
        launcher(LocalBatches, tmp_path, 2).launch(JOBS, 5)
    assert asked_for == [0, 1, 2, 3], "all were waited for"
    line = str(user_error_from(raised.value))
    assert line.startswith(told)
    assert "resume=FOLDER" in line


def test_settings_reach_the_executor(submitted, tmp_path):
    more = {"max_num_timeout": 3, "partition": "cpu", "timeout_min": 5}
    launcher(SlurmBatches, tmp_path, 7, **more).launch(JOBS, 0)
    assert settings == [
        {
            "folder": str(tmp_path / "%j"),
            "cluster": "slurm",
            "slurm_max_num_timeout": 3,
            "slurm_partition": "cpu",
            "timeout_min": 5,
        }
    ]


def test_interrupted_it_says_what_goes_on_and_how_to_end_it(submitted, tmp_path, capsys):
    Executor.ends = {1: KeyboardInterrupt()}
    with pytest.raises(KeyboardInterrupt):
        launcher(SlurmBatches, tmp_path, 3).launch(JOBS, 0)
    assert capsys.readouterr().err.endswith("to end it: scancel id-0 id-1 id-2\n")
    with pytest.raises(KeyboardInterrupt):
        launcher(LocalBatches, tmp_path, 7).launch([*JOBS, ["seed=7"]], 0)
    assert capsys.readouterr().err.endswith("to end it: kill id-0 id-1\n")


def commands(folder, monkeypatch, **scripts):
    """Shell scripts that stand in for the commands of SLURM."""
    for name, script in scripts.items():
        (folder / name).write_text(f"#!/bin/sh\n{script}\n")
        (folder / name).chmod(0o700)
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")


def submission(folder, number):
    """One of submitit's own, whose process leaves nothing behind."""
    job = SlurmJob(folder, number)
    job._results_timeout_s = 0
    return job


@pytest.mark.slow
def test_without_accounting_a_submission_that_was_killed_has_ended(tmp_path, monkeypatch):
    """`sacct`, which submitit asks, fails there: it would wait forever."""
    commands(tmp_path, monkeypatch, sacct="exit 1", squeue=f"cat {tmp_path}/listed")
    listed = tmp_path / "listed"
    listed.write_text("7_0\n7_1\n")
    jobs = [submission(tmp_path, "7_0"), submission(tmp_path, "7_1")]
    monkeypatch.setattr(SlurmBatches.__bases__[0], "_submitted", lambda self, groups: jobs)
    # Between two questions, the submissions leave the queue.
    monkeypatch.setattr("time.sleep", lambda seconds: listed.write_text(""))
    with pytest.raises(rehearsal_batches.SubmissionsEndedError) as raised:
        launcher(SlurmBatches, tmp_path, 4).launch(JOBS, 0)
    assert str(raised.value) == (
        "2 of 2 submissions ended before their jobs did: 7_0 (jobs 0 to 3: killed, or out of time or "
        "memory), 7_1 (jobs 4 to 6: killed, or out of time or memory)"
    )
    assert listed.read_text() == "", "it was waited for"


def test_where_the_queue_does_not_answer_nothing_has_ended(tmp_path, monkeypatch):
    commands(tmp_path, monkeypatch, squeue="exit 1")
    job = submission(tmp_path, "7_0")
    monkeypatch.setattr(SlurmBatches.__bases__[0], "_submitted", lambda self, groups: [job])
    launcher(SlurmBatches, tmp_path)._submitted([])
    assert not job.done(force_check=True)


def test_with_accounting_it_is_told_why_a_submission_ended(tmp_path, monkeypatch):
    commands(tmp_path, monkeypatch, sacct="echo TIMEOUT", squeue="true")
    job = submission(tmp_path, "7")
    monkeypatch.setattr(SlurmBatches.__bases__[0], "_submitted", lambda self, groups: [job])
    with pytest.raises(rehearsal_batches.SubmissionsEndedError, match="memory; SLURM says TIMEOUT") as raised:
        launcher(SlurmBatches, tmp_path, 7).launch(JOBS, 0)
    assert "7 (jobs 0 to 6: " in str(raised.value)


@pytest.mark.parametrize("size", [0, -3])
def test_no_jobs_a_submission_are_refused(size):
    with pytest.raises(ValueError, match=f"jobs_per_submission: expected at least 1; got {size}"):
        LocalBatches(jobs_per_submission=size).launch(JOBS, 0)


def test_settings_are_those_of_submitit():
    made = SlurmBatches(jobs_per_submission=2, partition="cpu", timeout_min=5)
    assert made.params == {"partition": "cpu", "timeout_min": 5}


def test_without_submitit_nothing_is_offered(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    where = importlib.util.spec_from_file_location("alone", rehearsal_batches.__file__)
    alone = importlib.util.module_from_spec(where)
    where.loader.exec_module(alone)
    assert not {"LocalBatches", "SlurmBatches"} & set(vars(alone))
