"""The devices of a training, on machines with any number of GPUs."""

import pytest
import torch

from rehearsal_torch.training.gpus import current_kept, gpus, possible, settled, turn


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


def test_without_a_gpu_auto_trains_on_the_cpu(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert gpus(2, "auto") == gpus([0, 1], "auto") == []
    with pytest.raises(RuntimeError, match="torch sees none: choose trainer=cpu"):
        gpus(1, "gpu")


@pytest.mark.parametrize(
    ("devices", "accelerator"),
    [(0, "cpu"), (True, "gpu"), ("2", "cpu"), ([], "gpu"), ([0, 0], "gpu"), ([0, 1], "cpu"), ([-1], "gpu"),
     ([True], "gpu"), ([0.0], "gpu")],
)  # fmt: skip
def test_what_are_no_devices_is_refused(devices, accelerator):
    assert not possible(devices, accelerator)


def test_auto_is_settled_where_it_is_asked(monkeypatch):
    for there, found in ((True, "gpu"), (False, "cpu")):
        monkeypatch.setattr(torch.cuda, "is_available", lambda there=there: there)
        assert settled("auto") == found
        assert (settled("cpu"), settled("gpu")) == ("cpu", "gpu")


def test_the_current_gpu_comes_back_whatever_happened(monkeypatch):
    current = [3]
    monkeypatch.setattr(torch.cuda, "current_device", lambda: current[-1])
    monkeypatch.setattr(torch.cuda, "set_device", current.append)

    def training(used):
        with current_kept(used):
            current.append(1)
            raise ValueError("on the way")

    with pytest.raises(ValueError, match="on the way"):
        training([1])
    assert current == [3, 1, 3]
    with pytest.raises(ValueError, match="on the way"):
        training([])
    assert current == [3, 1, 3, 1], "the CPU asks for no GPU"
