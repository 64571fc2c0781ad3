"""Random number generation: the derivation of every seed and every generator of the project.

These derivations must not change, or published results cannot be reproduced. Each turns the seed of a
configuration, and what the draws belong to (a round, an episode, a patient, a purpose), into a generator of
its own, so that no draw depends on how many others were made before it, in which order, or in which process.

All other draws come from the global state, which `seed_everything` sets.

Source: Steele, Lea and Flood (2014), splitmix64; numpy.random.SeedSequence; Sobol (1967) and Owen (1998),
scrambled sequences. The derivations are ours.

Torch is loaded where its generators are asked for: files are read and checked without it.
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
# The noise of a world's true expected rewards: the same for every seed, so that they are compared under
# common random numbers.
COMMON_NOISE = 20_251_121


def seed_everything(seed: int) -> None:
    """Seeds the global states of Python, NumPy and torch: for initial weights and third-party code."""
    random.seed(seed)
    np.random.seed(seed % 2**32)  # noqa: NPY002  third-party code may read the global state; ours does not
    seed_draws(seed)


def seed_draws(seed: int) -> None:
    """Seeds torch's global state on the CPU, from which all draws are made; those of GPUs, which are the
    caller's, stay as they are (`torch.manual_seed` sets them all, and `torch.random.fork_rng` with
    ``devices=[]`` restores none).
    """
    import torch

    torch.default_generator.manual_seed(seed)


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Seeds torch's global state on the CPU (`seed_draws`), and restores it afterwards."""
    import torch

    with torch.random.fork_rng(devices=[]):
        seed_draws(seed)
        yield


def generator(seed: int) -> torch.Generator:
    """A CPU generator with this seed: permutations, resamples, directions of one fit or sweep."""
    import torch

    return torch.Generator().manual_seed(seed)


def numpy_generator(seed: int, *purpose: int) -> np.random.Generator:
    """NumPy's generator with this seed, by SeedSequence: bootstrap intervals, checks, reference agents; for
    one purpose of a world or a table: observations, held-out rows, contexts, noise, a simulated patient.
    """
    return np.random.default_rng((seed, *purpose))


def sobol(width: int, seed: int = 0) -> SobolEngine:
    """A scrambled Sobol sequence in `width` dimensions: space-filling points of a box, quasi-random noise."""
    from torch.quasirandom import SobolEngine

    return SobolEngine(width, scramble=True, seed=seed)


def paired_seed(seed: int, place: int) -> int:
    """A 63-bit seed of the pair (seed, place), by NumPy's SeedSequence: used for the rounds of the loop and
    the posterior draws of a structural equation.
    """
    return int(np.random.SeedSequence((seed, place)).generate_state(1, np.uint64)[0] >> 1)


def paired_generator(seed: int, place: int) -> torch.Generator:
    """A generator seeded by `paired_seed`."""
    return generator(paired_seed(seed, place))


def epoch_seed(seed: int, epoch: int) -> int:
    """A 63-bit seed of a training epoch, decorrelated from neighbouring pairs (a splitmix64 step): used for
    the order of the rows and the random draws of a loss.
    """
    state = (seed * 0x9E3779B97F4A7C15 + (epoch + 1) * 0xBF58476D1CE4E5B9) % 2**64
    state = (state ^ (state >> 30)) * 0x94D049BB133111EB % 2**64
    return (state ^ (state >> 31)) >> 1


def stream(seed: int, identity: str) -> torch.Generator:
    """A generator of an item, such as an episode to search, by SHA-256: independent of the process and of the
    order in which the items are processed.
    """
    return generator(_hashed(f"{seed}\0{identity}", 8) >> 1)


def round_seed(seed: int, identity: str) -> int:
    """A 31-bit seed of a round of trials, by SHA-256: draws and starting points of a search."""
    return _hashed(f"{seed}\0{identity}", 4) >> 1


def split_position(seed: int, patient: str) -> float:
    """The position of a patient in [0, 1), by SHA-256, which determines its split."""
    return _hashed(f"{seed}/{patient}", 8) / 2**64


def spaced_generator(seed: int, place: int) -> torch.Generator:
    """A generator from a range of 1 000 003 seeds reserved for `seed`: draws of a structural equation, the
    noise of flows, scenarios, the action sequences of a truth panel.
    """
    return generator(_SPACING * seed + place)


def _hashed(text: str, size: int) -> int:
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:size], "big")
