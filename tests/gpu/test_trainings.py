"""Trainings on a GPU, as they are typed: the losses of the CPU, states that go on, two GPUs, sweeps.

Tolerances are wide: sums on a GPU are rounded otherwise, and trainings in single precision part with the
epochs. What is looked for are trainings that end, go on and say what went wrong. On a GPU they have not run.
"""

import csv
import os
import signal
import subprocess
import time
from contextlib import suppress
from pathlib import Path

import pytest
import torch

from rehearsal_torch.training.gradient_descent import turn
from tests.scripts.typing_in import command, surroundings

SMALL = (
    "+experiment=sepsis", "dataset.patients=60", "surrogate=transition", "surrogate.mechanism.hidden=8",
    "trainer.patience=null", "limit=1", "workers=1",
)  # fmt: skip
PATIENCE = 900
"""Seconds: the first use of a GPU by a process may take a minute, and so may a busy machine."""
NEAR = {"cpu": 1e-6, "cuda": 2e-2}
"""How far losses may lie from those of one process on the CPU, relatively."""


def typed(folder, *arguments, script="train"):
    """What a script answers: its exit code and what it says."""
    done = subprocess.run(
        command(script, *arguments), cwd=folder, env=surroundings(), capture_output=True, text=True,
        timeout=PATIENCE,
    )  # fmt: skip
    return done.returncode, done.stderr


def trained(folder, out, trainer, *more):
    """The losses of a training that ends well, by step and name."""
    code, said = typed(folder, *SMALL, f"trainer={trainer}", f"out={out}", *more)
    assert code == 0, said[-4000:]
    return losses(folder / out)


def losses(run):
    lines = csv.DictReader((run / "metrics.csv").read_text().splitlines())
    found = {(line["step"], line["name"]): float(line["value"]) for line in lines}
    return {key: value for key, value in found.items() if key[1].endswith("_loss")}


def states(run):
    """The states of all trainings of a run, as they are read where there is no GPU."""
    found = [
        torch.load(path, map_location="cpu", weights_only=True)
        for path in sorted((run / "training").rglob("last.ckpt"))
    ]
    assert found
    return found


def trainer(place):
    return {"cpu": "cpu", "cuda": "gpu"}[place]


class Begun:
    """A training that is under way, from its first state on."""

    def __init__(self, folder, out, *arguments, epochs=100_000):
        self.folder, self.log, self.run = folder, folder / f"{out}.log", folder / out
        self.typed = command("train", *SMALL, f"out={out}", f"trainer.max_epochs={epochs}", *arguments)

    def __enter__(self):
        with self.log.open("w") as log:
            self.process = subprocess.Popen(
                self.typed,
                cwd=self.folder,
                env=surroundings(),
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        ends = time.monotonic() + PATIENCE
        while not list(self.run.rglob("last.ckpt")):
            assert self.process.poll() is None, self.log.read_text()[-4000:]
            assert time.monotonic() < ends, self.log.read_text()[-4000:]
            time.sleep(0.1)
        return self

    def __exit__(self, *_):
        # It and all that it has started, which is a session of its own.
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def peers(self):
        """The processes that share the training, in the order of their ranks."""
        table = subprocess.run(
            ["ps", "-A", "-ww", "-o", "pid=,ppid=,args="], capture_output=True, text=True, check=True
        )
        rows = [line.split(None, 2) for line in table.stdout.splitlines()]
        return sorted(
            int(row[0]) for row in rows if int(row[1]) == self.process.pid and "spawn_main" in row[2]
        )


def test_losses_are_those_of_the_cpu(place, tmp_path):
    here = trained(tmp_path, "here", "cpu", "trainer.max_epochs=3")
    there = trained(tmp_path, "there", trainer(place), "trainer.max_epochs=3")
    assert len(there) == 6
    assert there == pytest.approx(here, rel=NEAR[place])
    for state in states(tmp_path / "there"):
        assert {each.device.type for each in state["state_dict"].values()} == {"cpu"}
        assert state["hyper_parameters"].get("accelerator", "cpu") == trainer(place)
    asked = ("+experiment=sepsis", "dataset.patients=60", "limit=1", "workers=1", "out=decided")
    code, said = typed(tmp_path, *asked, "checkpoint=there/checkpoint", script="decide")
    assert code == 0, said[-4000:]


def test_a_killed_training_goes_on(place, tmp_path):
    epochs = 300
    with Begun(tmp_path, "killed", f"trainer={trainer(place)}", epochs=epochs) as begun:
        os.kill(begun.process.pid, signal.SIGKILL)
        begun.process.wait()
    (before,) = states(tmp_path / "killed")
    code, said = typed(tmp_path, "resume=killed")
    assert code == 0, said[-4000:]
    (after,) = states(tmp_path / "killed")
    assert before["epoch"] <= after["epoch"] == epochs - 1
    whole = trained(tmp_path, "whole", trainer(place), f"trainer.max_epochs={epochs}")
    assert losses(tmp_path / "killed") == pytest.approx(whole, rel=NEAR[place])


def test_two_devices_train_what_one_trains(pair, tmp_path):
    one = trained(tmp_path, "one", trainer(pair), "trainer.max_epochs=3")
    two = trained(tmp_path, "two", trainer(pair), "trainer.max_epochs=3", "trainer.devices=2")
    assert two == pytest.approx(one, rel=NEAR[pair])


@pytest.mark.parametrize("place", ["cuda"], indirect=True)
@pytest.mark.usefixtures("pair")
def test_a_device_by_its_number_trains_what_the_first_one_trains(tmp_path):
    one = trained(tmp_path, "one", "gpu", "trainer.max_epochs=3")
    other = trained(tmp_path, "other", "gpu", "trainer.max_epochs=3", "trainer.devices=[1]")
    assert other == pytest.approx(one, rel=NEAR["cuda"])


def test_a_process_that_is_killed_is_told(pair, tmp_path):
    with Begun(tmp_path, "run", f"trainer={trainer(pair)}", "trainer.devices=2") as begun:
        *_, peer = begun.peers()
        os.kill(peer, signal.SIGKILL)
        assert begun.process.wait(120) != 0
        said = " ".join(begun.log.read_text().split())
        assert "one of the 2 processes of this training has ended (" in said
    # What is kept is a state of both processes.
    (state,) = states(tmp_path / "run")
    assert all(bool(each.isfinite().all()) for each in state["state_dict"].values())


def test_an_interrupted_training_ends_its_processes(pair, tmp_path):
    with Begun(tmp_path, "run", f"trainer={trainer(pair)}", "trainer.devices=2") as begun:
        peers = begun.peers()
        assert len(peers) == 2
        os.kill(begun.process.pid, signal.SIGINT)
        assert begun.process.wait(120) != 0
        assert not any(Path(f"/proc/{peer}").exists() for peer in peers)


def test_jobs_of_a_sweep_train_side_by_side(place, tmp_path):
    sweep = ("-m", *SMALL, f"trainer={trainer(place)}", "trainer.max_epochs=2", "seed=0,1")
    code, said = typed(tmp_path, *sweep, "hydra/launcher=joblib", "out=sweep")
    assert code == 0, said[-4000:]
    assert losses(tmp_path / "sweep/0").keys() == losses(tmp_path / "sweep/1").keys()
    assert losses(tmp_path / "sweep/0") != losses(tmp_path / "sweep/1")
    there = torch.cuda.device_count() if place == "cuda" else 0
    assert turn(1, trainer(place)) == ([1] if there > 1 else 1)
