"""Submissions of several jobs: how jobs are grouped, numbered and returned."""

import importlib.util
import json

import pytest
from hydra_plugins.hydra_submitit_launcher.submitit_launcher import BaseSubmititLauncher

from hydra_plugins import rehearsal_batches
from hydra_plugins.rehearsal_batches import LocalBatches, SlurmBatches

JOBS = [[f"seed={seed}", 'path="a, b.csv"'] for seed in range(7)]


@pytest.fixture
def submitted(monkeypatch):
    """The groups that reach submitit, run at once, as submitit would in processes of their own."""
    groups = []

    def launch(launcher, job_overrides, initial_job_idx):
        groups.extend(job_overrides)
        return [
            launcher(list(group), "hydra.sweep.dir", number, f"job_id_for_{number}", {})
            for number, group in enumerate(job_overrides, initial_job_idx)
        ]

    monkeypatch.setattr(BaseSubmititLauncher, "launch", launch)
    monkeypatch.setattr(
        BaseSubmititLauncher, "__call__", lambda _, overrides, *rest: (overrides, rest[1], rest[2])
    )
    return groups


@pytest.mark.parametrize("kind", [LocalBatches, SlurmBatches])
@pytest.mark.parametrize(("size", "sizes"), [(1, [1] * 7), (3, [3, 3, 1]), (7, [7]), (10, [7])])
@pytest.mark.parametrize("first", [0, 5])
def test_each_job_runs_once_with_its_overrides_and_its_number(submitted, kind, size, sizes, first):
    found = kind(jobs_per_submission=size).launch(JOBS, first)
    assert [len(group) for group in submitted] == sizes
    assert list(found) == [
        (job, number, f"job_id_for_{number}") for number, job in enumerate(JOBS, start=first)
    ]
    assert [json.loads(text) for group in submitted for text in group] == JOBS


def test_ten_jobs_a_submission_unless_said(submitted):
    LocalBatches().launch(JOBS * 2, 0)
    assert [len(group) for group in submitted] == [10, 4]


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
