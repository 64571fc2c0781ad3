"""Statistics of rows in blocks: moments, and rows at given places.

Means and variances of blocks are merged pair by pair: with n rows of mean m and n' further rows of mean m',

    mean = m + (m' - m) n' / (n + n'),       M = M + M' + (m' - m)^2 n n' / (n + n'),

M being the sum of squared deviations from the mean. Nothing is lost where a mean is large beside its standard
deviation. The statistics of a single block are those of its rows, to the last bit.

Source: Chan, Golub and LeVeque (1983), Eq. (2.1) (merged moments).
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from rehearsal_torch.data.tables.blocks import Blocks
from rehearsal_torch.data.tables.row_places import drawn

__all__ = ["columns_of", "drawn", "moments", "rows_at"]

Rows = tuple[Tensor, ...]


def moments(blocks: Blocks[Tensor], correction: int = 0) -> tuple[Tensor, Tensor]:
    """Means and standard deviations of the columns, (d,) each.

    Args:
        blocks: (n_i, d) each, at least one.
        correction: What is subtracted from the number of rows in the denominator of the variance.
    """
    if blocks.count == 1:
        (only,) = blocks
        return only.mean(0), only.std(0, correction=correction)
    count, mean, spread = 0, torch.zeros(()), torch.zeros(())
    for rows in blocks:
        own, squares = rows.mean(0), rows.var(0, correction=0) * len(rows)
        if not count:
            mean, spread = own, squares
        else:
            apart, share = own - mean, len(rows) / (count + len(rows))
            mean, spread = mean + apart * share, spread + squares + apart.square() * (count * share)
        count += len(rows)
    return mean, (spread / (count - correction)).sqrt()


def rows_at(blocks: Blocks[Rows], places: Tensor) -> Rows:
    """The rows at some places, in the order of the places; blocks without any of them are not made.

    Args:
        blocks: Tensors (n_i, ...), at least one block.
        places: (m,), from 0; a place may occur several times.

    Raises:
        IndexError: if there is no such row.
    """
    if len(places) and not 0 <= int(places.min()) <= int(places.max()) < len(blocks):
        raise IndexError(f"expected places in 0 ... {len(blocks) - 1}; got {places.min()} to {places.max()}")
    if blocks.count == 1:
        return tuple(each[places.to(each.device)] for each in blocks[0])
    order, begin = places.argsort(), 0
    ranked, found = places[order], list[Rows]()
    for number, count in enumerate(blocks.rows):
        here = ranked[(ranked >= begin) & (ranked < begin + count)] - begin
        last = number == blocks.count - 1
        if len(here) or (last and not found):
            found.append(tuple(each[here.to(each.device)] for each in blocks[number]))
        begin += count
    back = order.argsort()
    return tuple(torch.cat(each)[back.to(each[0].device)] for each in zip(*found, strict=True))


def columns_of(blocks: Blocks[Tensor], places: Sequence[int]) -> Tensor:
    """Some columns of all rows, in memory, (n, k).

    Args:
        blocks: (n_i, d) each, at least one.
        places: Of the columns.
    """
    if blocks.count == 1:
        return blocks[0][:, list(places)]
    first = blocks[0]
    found, begin = first.new_empty(len(blocks), len(places)), len(first)
    found[:begin] = first[:, list(places)]
    for number in range(1, blocks.count):
        rows = blocks[number]
        found[begin : begin + len(rows)] = rows[:, list(places)]
        begin += len(rows)
    return found
