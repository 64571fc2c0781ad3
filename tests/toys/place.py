"""Where the tests of devices move models to: a stand-in in memory, or a GPU (``--device``)."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch

from tests.toys.second_device import second_device


class Place:
    """Another device: its name, how it is entered, and how far apart results on it and on the CPU may be.

    Attributes:
        value: Largest difference of values and estimates.
        action: Largest difference of actions.
    """

    def __init__(self, kind: str) -> None:
        self.kind, (self.value, self.action) = kind, {"second": (1e-9, 1e-9), "cuda": (1e-5, 1e-3)}[kind]

    @contextmanager
    def entered(self) -> Iterator[torch.device]:
        if self.kind == "cuda":
            yield torch.device("cuda")
            return
        with second_device() as device:
            yield device
