"""Rows in blocks that are made when they are asked for, and kept by nobody.

    blocks[0], ..., blocks[m - 1]        examples of a part, of n_0, ..., n_{m-1} rows

A model is fitted to more rows than fit in memory by going through blocks of them, as often as it needs to:
each block is the same whenever it is made.

Source: ours.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Generic, TypeVar

import torch

ROWS = 65_536
"""Rows of a block, where nothing else is said."""
Item = TypeVar("Item", covariant=True)
Other = TypeVar("Other")


class Blocks(Generic[Item]):
    """Blocks of rows.

    Args:
        rows: The number of rows of each block.
        make: Makes block i; the same at every call.

    Raises:
        ValueError: if a block has no row.
    """

    def __init__(self, rows: Sequence[int], make: Callable[[int], Item]) -> None:
        if any(count < 1 for count in rows):
            raise ValueError(f"expected at least one row in each block; got {list(rows)[:20]}")
        self.rows, self._make = tuple(rows), make

    def __len__(self) -> int:
        """The number of rows of all blocks."""
        return sum(self.rows)

    @property
    def count(self) -> int:
        """The number of blocks."""
        return len(self.rows)

    def __getitem__(self, place: int) -> Item:
        """Block number `place`, 0 ... count - 1.

        Raises:
            IndexError: if there is no such block.
        """
        if not 0 <= place < self.count:
            raise IndexError(f"expected a block in 0 ... {self.count - 1}; got {place}")
        return self._make(place)

    def __iter__(self) -> Iterator[Item]:
        """The blocks in order, made one by one."""
        return (self._make(place) for place in range(self.count))

    def map(self, change: Callable[[int, Item], Other]) -> "Blocks[Other]":
        """The blocks after a change that keeps their numbers of rows.

        Args:
            change: From the number of a block and its content to the new content.
        """
        make = self._make
        return Blocks(self.rows, lambda place: change(place, make(place)))


def in_blocks(examples: tuple[torch.Tensor, ...], rows: int = ROWS) -> Blocks[tuple[torch.Tensor, ...]]:
    """Examples in memory as blocks, without a copy.

    Args:
        examples: (n, ...) each, at least one row.
        rows: Rows of a block; the last one may be smaller.
    """
    count = len(examples[0])
    if count <= rows:
        return Blocks([count], lambda _: examples)
    ends = range(0, count, rows)
    return Blocks(
        [min(rows, count - begin) for begin in ends],
        lambda place: tuple(each[place * rows : (place + 1) * rows] for each in examples),
    )
