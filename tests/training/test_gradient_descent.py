from pathlib import Path

import pytest
import torch
from lightning.pytorch.callbacks import Callback
from torch import Tensor, nn

from rehearsal_torch.data.trainable_part import Trained
from rehearsal_torch.mechanisms.location_scale import LocationScale
from rehearsal_torch.training.gradient_descent import Descent, faults, gpus, possible, still_falling, turn


class KilledError(Exception):
    """Stands for a killed process."""


class Killer(Callback):
    """Ends the process at a batch of an epoch."""

    def __init__(self, epoch: int, batch: int) -> None:
        self.epoch, self.batch = epoch, batch

    def on_train_batch_start(self, trainer, pl_module, batch, batch_idx):
        if (trainer.current_epoch, batch_idx) == (self.epoch, self.batch):
            raise KilledError


class Noisy(Trained):
    """A part whose loss draws numbers of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(3))
        self.finished = 0

    def loss(self, *examples: Tensor) -> Tensor:
        (rows,) = examples
        return (rows - self.weight + torch.randn_like(rows)).square().mean()

    def finish(self) -> None:
        self.finished += 1


def mechanism(seed: int = 0) -> LocationScale:
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return LocationScale(3, 2, 2, hidden=8)


def rows(count: int, seed: int) -> tuple[Tensor, Tensor]:
    stream = torch.Generator().manual_seed(seed)
    parents = torch.rand(count, 5, generator=stream) - 0.5
    return parents, 0.7 * parents[:, :2] + 0.1 * torch.randn(count, 2, generator=stream)


def equal(one: nn.Module, other: nn.Module) -> bool:
    return all(torch.equal(value, other.state_dict()[name]) for name, value in one.state_dict().items())


@pytest.mark.parametrize(("held_out", "epoch", "batch"), [(False, 3, 1), (True, 2, 0)])
def test_a_killed_training_goes_on_to_the_same_bits(tmp_path: Path, held_out: bool, epoch: int, batch: int):
    examples, checks = rows(200, 1), rows(50, 2) if held_out else None
    settings = {"max_epochs": 6, "batch_size": 64, "learning_rate": 0.05, "patience": 2, "progress": False}
    whole = mechanism()
    readings = Descent(**settings).train(whole, examples, checks)
    with pytest.raises(KilledError):
        Descent(**settings, folder=tmp_path, callbacks=[lambda: Killer(epoch, batch)]).train(
            mechanism(), examples, checks
        )
    resumed = mechanism(seed=5)  # what the weights start from does not matter: they are in the folder
    again = Descent(**settings, folder=tmp_path)
    assert again.train(resumed, examples, checks) == readings
    assert equal(whole, resumed)


def test_a_loss_with_draws_of_its_own_resumes_to_the_same_bits(tmp_path: Path):
    examples = (rows(100, 1)[0][:, :3],)
    whole, resumed = Noisy(), Noisy()
    Descent(max_epochs=4, batch_size=32, progress=False).train(whole, examples)
    with pytest.raises(KilledError):
        Descent(
            max_epochs=4, batch_size=32, progress=False, folder=tmp_path, callbacks=[lambda: Killer(2, 1)]
        ).train(Noisy(), examples)
    torch.manual_seed(99)
    Descent(max_epochs=4, batch_size=32, progress=False, folder=tmp_path).train(resumed, examples)
    assert equal(whole, resumed)
    assert resumed.finished == 1


@pytest.mark.parametrize(("asked", "inside"), [(1, 1), (None, 3)])
def test_threads_are_those_asked_for_while_training_and_those_before_afterwards(asked, inside):
    seen = []

    class Watch(Callback):
        def on_train_batch_start(self, trainer, pl_module, batch, batch_idx):
            seen.append(torch.get_num_threads())

    before = torch.get_num_threads()
    torch.set_num_threads(3)
    try:
        Descent(max_epochs=1, threads=asked, progress=False, callbacks=[Watch]).train(
            mechanism(), rows(10, 1)
        )
        assert torch.get_num_threads() == 3
    finally:
        torch.set_num_threads(before)
    assert set(seen) == {inside}


def test_early_stopping_restores_the_best_weights():
    examples, checks = rows(40, 1), rows(400, 2)
    part = mechanism()
    descent = Descent(max_epochs=200, batch_size=20, learning_rate=0.2, patience=3, progress=False)
    losses = [
        value for _, name, value in descent.train(part, examples, checks, "m") if name == "m/held_out_loss"
    ]
    best = min(range(len(losses)), key=losses.__getitem__)
    assert len(losses) < 200
    assert len(losses) == best + 1 + 3
    # `finish` shrinks the stored weights by at most 1e-7 beyond the division that the loss has seen.
    assert part.loss(*checks).item() == pytest.approx(losses[best], abs=1e-5)


def test_a_training_that_had_ended_stays_as_it_is(tmp_path: Path):
    examples, checks = rows(40, 1), rows(400, 2)
    settings = {"max_epochs": 200, "batch_size": 20, "learning_rate": 0.2, "patience": 2, "progress": False}
    first, second, third = mechanism(), mechanism(1), mechanism(2)
    readings = Descent(**settings, folder=tmp_path / "a").train(first, examples, checks)
    assert len(readings) < 400, "it ended early"
    assert Descent(**settings, folder=tmp_path / "a").train(second, examples, checks) == readings
    (tmp_path / "a").rename(tmp_path / "b")
    assert Descent(**settings, folder=tmp_path / "b").train(third, examples, checks) == readings
    assert equal(first, second)
    assert equal(first, third)


def test_more_epochs_continue_a_finished_training(tmp_path: Path):
    examples = rows(100, 1)
    whole, longer = mechanism(), mechanism()
    Descent(max_epochs=5, progress=False).train(whole, examples)
    Descent(max_epochs=2, progress=False, folder=tmp_path).train(mechanism(), examples)
    Descent(max_epochs=5, progress=False, folder=tmp_path).train(longer, examples)
    assert equal(whole, longer)


def test_the_train_loss_is_a_mean_over_rows_not_batches():
    """With a rate too small to move anything, the epoch's loss is the loss of all rows, the small last batch
    included."""
    part, examples = mechanism(), rows(70, 1)
    expected = part.loss(*examples).item()
    ((_, _, value),) = Descent(max_epochs=1, batch_size=64, learning_rate=1e-12, progress=False).train(
        part, examples
    )
    assert value == pytest.approx(expected, rel=1e-6)


def test_a_copy_for_other_processes_has_the_accelerator_of_this_one(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    here = Descent(accelerator="auto", max_epochs=3, seed=7)
    here.history.append((0, "part/train_loss", 1.0))
    there = here.settled()
    assert (there.accelerator, there.history, there.max_epochs, there.seed) == ("cpu", [], 3, 7)
    assert (here.accelerator, len(here.history)) == ("auto", 1)


FALLING = [3.0 - 0.1 * epoch for epoch in range(20)]
FLAT = [1.0 + 2.0 * 0.5**epoch for epoch in range(20)]
RISING = [1.0, 0.9, *(1.0 + 0.01 * epoch for epoch in range(10))]


def metrics(losses, part="mechanism"):
    return {f"{part}/{name}": list(enumerate(losses)) for name in ("train_loss", "held_out_loss")}


@pytest.mark.parametrize(
    ("losses", "falls"),
    [
        (FALLING, True),
        (FLAT, False),
        (RISING, False),
        ([2.0, 1.0], True),
        ([1.0, 2.0], False),
        ([1.0], False),
        ([1.0, 1.0, 1.0], False),
        # The last tenth is two epochs: 0.02 below the two before, of a fall of 1.
        ([1.0] + [0.02] * 17 + [0.0, 0.0], True),
        ([1.0] + [0.005] * 17 + [0.0, 0.0], False),
        # Least long ago.
        ([3.0, 0.0] + [2.0] * 16 + [1.0, 1.0], False),
    ],
)
def test_a_loss_falls_if_its_last_tenth_is_a_hundredth_of_the_fall_below_the_tenth_before(losses, falls):
    assert still_falling(losses) is falls


def test_a_training_that_was_cut_off_is_named_by_its_part():
    assert faults(metrics(FALLING, "models.0.mechanism.blind"), 20) == [
        "training not converged: the held-out loss of model 1 of the ensemble was still falling in the last "
        "of 20 epochs: raise trainer.max_epochs"
    ]
    (told,) = faults({"train_loss": list(enumerate(FALLING))}, 20)
    assert told.startswith(
        "training not converged: the loss of the model was still falling in the last of 20"
    )
    assert faults(metrics(FLAT), 20) == []


def test_a_training_that_ended_by_itself_converged_unless_it_ended_at_once():
    assert faults(metrics(FALLING), 30) == [], "stopped early for a reason of its own"
    (told,) = faults(metrics(RISING), 30)
    assert told.startswith(
        "training ended at once: the held-out loss of the model was smallest in the first 2"
    )
    assert faults(metrics([3.0, 2.0, 1.0, 2.0, 3.0]), 30) == []


@pytest.fixture
def three(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 3)


@pytest.mark.parametrize(
    ("devices", "accelerator", "found"),
    [
        (1, "gpu", [0]),
        (2, "gpu", [0, 1]),
        (3, "auto", [0, 1, 2]),
        ([2], "gpu", [2]),
        ([2, 0], "auto", [2, 0]),
        (2, "cpu", []),
    ],
)
@pytest.mark.usefixtures("three")
def test_devices_are_the_first_gpus_or_those_that_are_named(devices, accelerator, found):
    assert possible(devices, accelerator)
    assert gpus(devices, accelerator) == found


@pytest.mark.parametrize(
    ("devices", "words"),
    [
        (4, r"0 to 2; got devices=4: choose trainer\.devices=3"),
        ([1, 3], r"0 to 2; got devices=\[1, 3\]: choose trainer\.devices=\[0, 1\]"),
    ],
)
@pytest.mark.usefixtures("three")
def test_gpus_that_are_not_there_are_refused(devices, words):
    with pytest.raises(RuntimeError, match=words):
        gpus(devices, "gpu")


@pytest.mark.usefixtures("three")
def test_jobs_of_a_sweep_take_gpus_in_turn():
    assert [turn(job, "gpu") for job in range(4)] == [[0], [1], [2], [0]]
    assert turn(1, "auto") == [1]
    assert turn(1, "cpu") == 1


@pytest.mark.parametrize("there", [0, 1])
def test_a_job_that_sees_one_gpu_or_none_takes_the_first_device(there, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: there > 0)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: there)
    assert [turn(job, each) for job in range(2) for each in ("gpu", "auto")] == [1] * 4


def test_training_leaves_the_random_state_alone():
    torch.manual_seed(3)
    expected = torch.rand(4)
    torch.manual_seed(3)
    Descent(max_epochs=1, progress=False).train(Noisy(), (rows(10, 1)[0][:, :3],))
    assert torch.equal(torch.rand(4), expected)


def test_lightnings_file_holds_plain_values_only(tmp_path: Path):
    Descent(max_epochs=2, progress=False, folder=tmp_path).train(
        mechanism(), rows(50, 1), rows(20, 2), "step"
    )
    state = torch.load(tmp_path / "step" / "last.ckpt", weights_only=True)
    assert state["hyper_parameters"]["batch_size"] == 256
    assert {type(value) for value in state["hyper_parameters"].values()} <= {int, float, str, type(None)}
    assert len(state["readings"]) == 4
