"""Random number generation: the derivation of every seed and every generator of the project.

These derivations must not change, or published results cannot be reproduced. Each turns the seed of a
configuration and an item (a round, an episode, a patient, a purpose) into a generator of its own, so that no
draw depends on the number, the order or the process of others. All other draws come from the global state,
which `seed_everything` sets.

Torch is imported by the functions that need it: files are read and checked without it.

Source: Steele, Lea and Flood (2014), splitmix64; numpy.random.SeedSequence; Sobol (1967) and Owen (1998),
scrambled sequences. The derivations are ours.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import torch
    from torch.quasirandom import SobolEngine

_SPACING = 1_000_003
# The noise of a world's true expected rewards, the same for every seed (common random numbers).
COMMON_NOISE = 20_251_121


def seed_everything(seed: int) -> None:
    """Seeds the global states of Python, NumPy and torch: for initial weights and third-party code."""
    random.seed(seed)
    np.random.seed(seed % 2**32)  # noqa: NPY002  third-party code may read the global state; ours does not
    seed_draws(seed)


def seed_draws(seed: int) -> None:
    """Seeds torch's global state on the CPU, from which all draws are made, and not that of GPUs."""
    import torch

    torch.default_generator.manual_seed(seed)


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Seeds torch's global state by `seed_draws`, and restores it afterwards."""
    import torch

    with torch.random.fork_rng(devices=[]):
        seed_draws(seed)
        yield


def generator(seed: int) -> torch.Generator:
    """A CPU generator with this seed: permutations, resamples, directions of one fit or sweep."""
    import torch

    return torch.Generator().manual_seed(seed)


def numpy_generator(seed: int, *purpose: int) -> np.random.Generator:
    """NumPy's generator with this seed (bootstrap intervals, checks, reference agents), or for one `purpose`
    of a world or table (observations, held-out rows, contexts, noise, a simulated patient).
    """
    return np.random.default_rng((seed, *purpose))


def sobol(width: int, seed: int = 0) -> SobolEngine:
    """A scrambled Sobol sequence in `width` dimensions: space-filling points of a box, quasi-random noise."""
    from torch.quasirandom import SobolEngine

    return SobolEngine(width, scramble=True, seed=seed)


def paired_seed(seed: int, place: int) -> int:
    """A 63-bit seed by NumPy's SeedSequence: rounds of the loop, posterior draws of a structural equation."""
    return int(np.random.SeedSequence((seed, place)).generate_state(1, np.uint64)[0] >> 1)


def paired_generator(seed: int, place: int) -> torch.Generator:
    """A generator seeded by `paired_seed`."""
    return generator(paired_seed(seed, place))


def epoch_seed(seed: int, epoch: int) -> int:
    """A 63-bit seed of a training epoch (a splitmix64 step): the order of rows, random draws of a loss."""
    state = (seed * 0x9E3779B97F4A7C15 + (epoch + 1) * 0xBF58476D1CE4E5B9) % 2**64
    state = (state ^ (state >> 30)) * 0x94D049BB133111EB % 2**64
    return (state ^ (state >> 31)) >> 1


def stream(seed: int, identity: str) -> torch.Generator:
    """A generator of an item, such as an episode to search, by SHA-256."""
    return generator(_sha256_integer(f"{seed}\0{identity}", 8) >> 1)


def round_seed(seed: int, identity: str) -> int:
    """A 31-bit seed of a round of trials, by SHA-256: the draws and starting points of a search."""
    return _sha256_integer(f"{seed}\0{identity}", 4) >> 1


def split_position(seed: int, patient: str) -> float:
    """The position of a patient in [0, 1), by SHA-256, which determines the split that it belongs to."""
    return _sha256_integer(f"{seed}/{patient}", 8) / 2**64


def spaced_generator(seed: int, place: int) -> torch.Generator:
    """A generator from a range of 1 000 003 seeds reserved for `seed`: draws of a structural equation, the
    noise of flows, scenarios, the action sequences of a truth panel.
    """
    return generator(_SPACING * seed + place)


def _sha256_integer(text: str, n_bytes: int) -> int:
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:n_bytes], "big")
