"""The devices of a training: CUDA GPUs by their numbers, or a number of processes on the CPU.

devices=2, accelerator=cpu         two processes
devices=2, accelerator=gpu         the GPUs 0 and 1, a process each
devices=[1, 3], accelerator=gpu    the GPUs 1 and 3
accelerator=auto                   GPUs if there are some, else the CPU
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Literal

import torch


def possible(devices: object, accelerator: str) -> bool:
    """Whether a training can ask for these devices: a number above zero, or different numbers of GPUs."""
    if isinstance(devices, Sequence) and not isinstance(devices, str):
        numbers = all(
            isinstance(number, int) and not isinstance(number, bool) and number >= 0 for number in devices
        )
        alone = len(devices) == 1
        return numbers and (alone or (accelerator != "cpu" and 0 < len(devices) == len(set(devices))))
    return isinstance(devices, int) and not isinstance(devices, bool) and devices >= 1


def turn(number: int, accelerator: str) -> int | list[int]:
    """The `devices` of a job of a sweep, numbered from 0, whose jobs may run side by side: GPUs in turn where
    there are several, as a number in a list, else 1. A job that sees one GPU alone, as SLURM gives each its
    own, takes that.
    """
    there = 0 if accelerator == "cpu" or not torch.cuda.is_available() else torch.cuda.device_count()
    return [number % there] if there > 1 else 1


def settled(accelerator: Literal["cpu", "gpu", "auto"]) -> Literal["cpu", "gpu"]:
    """What an accelerator is in this process; for "auto", a GPU if there is one."""
    if accelerator == "auto":
        return "gpu" if torch.cuda.is_available() else "cpu"
    return accelerator


@contextmanager
def current_kept(used: Sequence[int]) -> Iterator[None]:
    """Makes torch's current GPU after a training on the GPUs `used` that before it."""
    if not used:
        yield
        return
    before = torch.cuda.current_device()
    try:
        yield
    finally:
        torch.cuda.set_device(before)


def gpus(devices: int | Sequence[int], accelerator: str) -> list[int]:
    """The numbers of the GPUs that a training uses; empty for one on the CPU.

    Raises:
        RuntimeError: if a GPU is asked for that is not there.
    """
    # Apple's GPUs support neither float64 nor the eigenvalue decomposition that exact norms need: only CUDA
    # (or ROCm) GPUs are used.
    if accelerator == "cpu":
        return []
    if not torch.cuda.is_available():
        if accelerator == "gpu":
            raise RuntimeError(
                "expected a CUDA GPU for accelerator=gpu; torch sees none: choose trainer=cpu, or install "
                "the CUDA build of torch"
            )
        return []
    wanted, there = list(range(devices) if isinstance(devices, int) else devices), torch.cuda.device_count()
    if any(number >= there for number in wanted):
        raise RuntimeError(
            f"expected GPUs among those that torch sees, 0 to {there - 1}; got devices={devices!r}: choose "
            f"trainer.devices={there if isinstance(devices, int) else list(range(min(there, len(wanted))))}"
        )
    return wanted
