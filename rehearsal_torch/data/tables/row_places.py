"""Places of some of many rows: spread evenly, or drawn."""

import torch
from torch import Tensor


def evenly(count: int, most: int, device: torch.device | None = None) -> Tensor:
    """The places of at most `most` evenly spaced rows, the first and the last among them, (m,)."""
    every = torch.linspace(0, count - 1, min(most, count), dtype=torch.float64, device=device)
    return every.round().long()


def drawn(count: int, most: int, stream: torch.Generator) -> Tensor:
    """The places of at most `most` rows, in order: all of them, or as many drawn without replacement, (m,).

    Args:
        count: The number of rows.
        most: The largest number of places.
        stream: Random number generator, on the CPU; not used if all rows are taken.
    """
    if count <= most:
        return torch.arange(count)
    return torch.randperm(count, generator=stream)[:most].sort().values
