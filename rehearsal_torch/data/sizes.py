"""Sizes: what a configuration may ask for, checked before anything is allocated.

One number in a configuration can ask for more memory than a machine has. Every constructor that allocates by
such a number passes it through `bounded`, and announces how many numbers it is about to hold with `reserve`.
While a checkpoint is loaded, an allowance is in force: what its configuration builds may hold no more numbers
than its weights bring.

Source: ours.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

# Units of one layer, features, landmarks; numbers of one network.
WIDEST = 2**16
NUMBERS = 2**27

_left: ContextVar[int | None] = ContextVar("numbers that may still be reserved", default=None)


class SizeError(ValueError):
    """A size that nobody means; its message says key, expected and got."""


def bounded(key: str, value: object, largest: int = WIDEST, smallest: int = 1) -> None:
    """Refuses a size that is no whole number from `smallest` to `largest`.

    Args:
        key: The setting's name.
        value: Its value.
        largest: The most that it may be.
        smallest: The least that it may be.

    Raises:
        SizeError: naming key, expected and got.
    """
    if isinstance(value, bool) or not isinstance(value, int) or not smallest <= value <= largest:
        raise SizeError(f"{key}: expected a whole number from {smallest} to {largest}; got {value!r}")


def reserve(key: str, count: int) -> None:
    """Announces that `count` numbers are about to be allocated for what `key` asks for.

    Raises:
        SizeError: if they are more than 2^27, or more than an allowance that is in force leaves.
    """
    if count > NUMBERS:
        raise SizeError(f"{key}: expected sizes that make at most {NUMBERS} numbers (1 GiB); got {count}")
    left = _left.get()
    if left is None:
        return
    if count > left:
        raise SizeError(
            f"{key}: expected at most the {left} numbers that the weights have left for it; got {count}"
        )
    _left.set(left - count)


@contextmanager
def allowance(count: int) -> Iterator[None]:
    """While it is in force, no more than `count` numbers may be reserved."""
    token = _left.set(count)
    try:
        yield
    finally:
        _left.reset(token)
