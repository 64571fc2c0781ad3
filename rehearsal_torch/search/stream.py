"""Random streams that belong to an item, not to a worker.

Given a seed and an episode's identity, the stream is the same wherever and in whatever order the episode is searched,
so that a cohort split over any number of workers gives the same numbers.
"""

import hashlib

import torch


def stream(seed: int, identity: str) -> torch.Generator:
    """A generator on the processor, seeded by SHA-256 of the seed and the identity."""
    digest = hashlib.sha256(f"{seed}\0{identity}".encode()).digest()
    return torch.Generator().manual_seed(int.from_bytes(digest[:8], "big") >> 1)
