"""Limits on the sizes that a configuration may request, checked before anything is allocated.

A single number in a configuration can request more memory than a machine has. Every constructor that
allocates by such a number checks it with `bounded`, and announces how many numbers it is about to allocate
with `reserve`. While a checkpoint is loaded, an allowance is in force: the objects that its configuration
builds may hold no more numbers than its weights.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from numbers import Integral

from rehearsal_torch.files.redaction import InputError

# Units of one layer, features, landmarks; numbers of one network.
WIDEST = 2**16
NUMBERS = 2**27
IMPUTATIONS = 200  # How often missing cells may be imputed.
# The largest seed of a configuration: a range of 1 000 003 seeds for each (`seeding.spaced_generator`) is
# within the 63 bits of torch's.
LARGEST_SEED = 2**43 - 1

_remaining: ContextVar[int | None] = ContextVar("numbers that may still be reserved", default=None)


class SizeError(InputError):
    """A size out of range; the message names the key, what was expected, and what was given."""


def bounded(key: str, value: object, largest: int = WIDEST, smallest: int = 1) -> None:
    """Refuses, by a SizeError, a size that is not a whole number from `smallest` to `largest`."""
    if isinstance(value, bool) or not isinstance(value, int) or not smallest <= value <= largest:
        raise SizeError(f"{key}: expected a whole number from {smallest} to {largest}; got {value!r}")


def whole(value: object) -> object:
    """A whole number, NumPy's among them, as one of Python; all else, truth values too, as it is."""
    return int(value) if isinstance(value, Integral) and not isinstance(value, bool) else value


def require(fits: bool, expected: str, **given: object) -> None:
    """Refuses settings out of range, by a ValueError with what was expected and what was given."""
    if not fits:
        shown = ", ".join(f"{name}={value!r}" for name, value in given.items())
        raise ValueError(f"expected {expected}; got {shown}")


def check_seed(seed: object) -> int:
    """The seed of a configuration as an int of Python; a SizeError if it is invalid."""
    seed = whole(seed)
    if isinstance(seed, bool) or not isinstance(seed, int) or seed < 0:
        raise SizeError(f"seed: expected a whole number of at least 0; got {seed!r}")
    if seed > LARGEST_SEED:
        # Python itself writes no whole number of more than 4,300 digits.
        bits = seed.bit_length()
        raise SizeError(f"seed: expected a whole number of at most {LARGEST_SEED}; got one of {bits} bits")
    return seed


def reserve(key: str, count: int) -> None:
    """Announces an allocation of `count` numbers; a SizeError above 2^27 or the current allowance."""
    if count > NUMBERS:
        raise SizeError(f"{key}: expected sizes of at most {NUMBERS} numbers in total (1 GiB); got {count}")
    remaining = _remaining.get()
    if remaining is None:
        return
    if count > remaining:
        raise SizeError(
            f"{key}: expected at most the remaining {remaining} numbers of the weights; got {count}"
        )
    _remaining.set(remaining - count)


@contextmanager
def allowance(count: int) -> Iterator[None]:
    """Limits the reserved numbers to `count` within the block."""
    token = _remaining.set(count)
    try:
        yield
    finally:
        _remaining.reset(token)
