"""One job between its record and its status, and what became of the jobs of a sweep."""

import json
import os
import shutil
import signal
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from omegaconf import OmegaConf

from rehearsal_torch.cli import job
from rehearsal_torch.cli.job import provenance
from rehearsal_torch.cli.main import recordable
from rehearsal_torch.cli.overrides import composed
from rehearsal_torch.run_folder import RunFolder
from rehearsal_torch.user_error import UserError

CONFIG = OmegaConf.create({"seed": 3, "name": "toy"})


def test_a_record_names_versions_and_machine_and_nothing_of_the_environment(monkeypatch):
    monkeypatch.setenv("SECRET", "a password nobody should see")
    found = provenance("train", ["seed=3", "name=a b"], 3)
    assert found["command"].endswith("seed=3 'name=a b'")
    assert (found["script"], found["overrides"], found["seed"]) == ("train", ["seed=3", "name=a b"], 3)
    assert set(found["versions"]) == {"python", *job.PACKAGES}
    assert all(found["versions"].values())
    assert set(found["machine"]) == {"system", "release", "architecture", "cores"}
    assert "password" not in json.dumps(found)


def test_where_a_run_lies_and_what_is_trusted_are_not_recorded():
    typed = ["seed=1", "out=there", "+out=there", "resume=run", "trusted=[lab]", "outcome=1", "++resume=x"]
    assert recordable(typed) == ["seed=1", "outcome=1"]


def asked(folder, mode="RUN", overrides=("seed=3",)):
    """What Hydra would say of a job."""
    choices = {"dataset": "toy", "hydra/launcher": "basic"}
    return OmegaConf.create(
        {
            "mode": job.RunMode[mode],
            "runtime": {"output_dir": str(folder), "choices": choices},
            "overrides": {"task": [*overrides, "out=run"]},
        }
    )


@pytest.fixture
def carried(tmp_path, monkeypatch):
    """Carries work out in a folder `run`: what is left in `raised`."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(job, "screen", lambda config: None)

    def carry_out(work, mode="RUN"):
        monkeypatch.setattr(job.HydraConfig, "get", staticmethod(lambda: asked(tmp_path / "run", mode)))
        job.raised.clear()
        job.carry_out("train", work, CONFIG)
        return list(job.raised)

    yield carry_out
    job.raised.clear()


def status():
    return json.loads(Path("run/status.json").read_text())


def test_a_job_of_a_cluster_is_finished_after_the_warning_before_its_time_limit(carried, monkeypatch):
    """submitit answers it by an error in the middle of the work, which counted as one of the work's own."""

    def warned(number, frame):
        raise RuntimeError("Job not requeued because: timed-out too many times")

    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGUSR2)}
    signal.signal(signal.SIGUSR2, warned)
    monkeypatch.setenv("SUBMITIT_EXECUTOR", "slurm")

    def work(config, folder, sweep):
        os.kill(os.getpid(), signal.SIGUSR2)
        folder.write_metrics([])
        return "all is well"

    try:
        assert carried(work, "MULTIRUN") == []
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    assert (status()["state"], status()["message"]) == ("ok", "all is well")


def test_a_job_that_ends_well_says_what_came_out(carried):
    seen = []

    def work(config, folder, sweep):
        seen.append((folder.path.as_posix(), sweep, (folder.path / "status.json").exists()))
        assert folder.read_yaml("config.yaml")["out"] == "run"
        folder.write_metrics([])
        return "all is well"

    assert carried(work) == []
    assert seen == [("run", False, False)]
    assert (status()["state"], status()["message"]) == ("ok", "all is well")
    assert status()["overrides"] == ["seed=3"]
    record = RunFolder("run").read_json("run.json")
    assert record["choices"] == {"dataset": "toy"}, "Hydra's own choices are left out"
    assert record["seed"] == 3
    carried(work)
    again = RunFolder("run").read_json("run.json")
    assert again["seconds"] >= record["seconds"], "seconds of all sittings"
    assert {**again, "seconds": 0} == {**record, "seconds": 0}


def failing(error):
    def work(config, folder, sweep):
        raise error

    return work


def test_what_can_be_mended_is_told_without_a_traceback(carried):
    (error,) = carried(failing(UserError("is too small", "size", "Make it larger")))
    assert isinstance(error, UserError)
    assert (status()["state"], status()["message"]) == ("failed", str(error))
    assert not Path("run/error.txt").exists()


def test_a_fault_of_ours_leaves_its_traceback(carried):
    (error,) = carried(failing(RuntimeError("a\n  long\n  story")))
    assert isinstance(error, RuntimeError)
    assert (status()["state"], status()["message"]) == ("failed", "RuntimeError: a long story")
    assert "in work" in Path("run/error.txt").read_text()


def test_an_interruption_says_how_to_go_on(carried):
    with pytest.raises(KeyboardInterrupt):
        carried(failing(KeyboardInterrupt()))
    assert (status()["state"], status()["message"]) == (
        "interrupted",
        "interrupted; continue with resume=run",
    )
    assert not Path("run/error.txt").exists()


def test_what_fails_in_a_folder_that_was_edited_is_told_in_words(carried):
    carried(lambda config, folder, sweep: folder.write_metrics([]) or "well")
    (error,) = carried(failing(AttributeError("gone")))
    assert isinstance(error, UserError)
    assert "the run cannot be resumed from the content of the folder (AttributeError: gone)" in str(error)
    assert "error.txt there shows where it failed" in str(error)
    assert "AttributeError: gone" in Path("run/error.txt").read_text()


@pytest.mark.parametrize("back", [False, True])
def test_a_folder_that_is_removed_while_the_run_works_is_told_in_words(carried, back):
    def work(config, folder, sweep):
        shutil.rmtree(folder.path)
        if back:
            folder.write_metrics([])
            return "all is well"
        return folder.read_json("run.json")["overrides"]

    (error,) = carried(work)
    assert isinstance(error, UserError)
    assert str(error) == (
        "run: the folder was removed, or emptied, while the run worked. Run the same command again, and "
        "leave the folder as it is until the run has ended."
    )
    assert not Path("run/run.json").exists()
    assert not Path("run/status.json").exists()


def test_in_a_sweep_a_job_that_fails_lets_the_others_go_on(carried, capsys):
    assert carried(failing(RuntimeError("no")), mode="MULTIRUN") == []
    assert capsys.readouterr().err == "job in run failed: RuntimeError: no\n"
    assert status()["state"] == "failed"
    with pytest.raises(KeyboardInterrupt):
        carried(failing(KeyboardInterrupt()), mode="MULTIRUN")


def test_a_full_disk_does_not_hide_what_went_wrong(carried, monkeypatch):
    def full(*arguments):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(RunFolder, "close", full)
    (error,) = carried(failing(RuntimeError("the true reason")))
    assert str(error) == "the true reason"


@pytest.mark.parametrize(("trainer", "devices"), [("gpu", [2]), ("cpu", 1)])
def test_jobs_of_a_sweep_that_train_on_gpus_take_them_in_turn(trainer, devices, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 3)
    monkeypatch.setattr(job.HydraConfig, "get", lambda: SimpleNamespace(job=SimpleNamespace(num=5)))
    config, _ = composed(["+experiment=sepsis", f"trainer={trainer}"], multirun=False)
    job.one_device(config)
    assert config.trainer.devices == devices
