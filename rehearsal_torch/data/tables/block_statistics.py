"""Statistics of rows in blocks: moments, ranges, quantiles, and rows at given places.

Means and variances of blocks are merged pair by pair: with n rows of mean m and n' further rows of mean m',

    mean = m + (m' - m) n' / (n + n'),       M = M + M' + (m' - m)^2 n n' / (n + n'),

M being the sum of squared deviations from the mean. Nothing is lost where a mean is large beside its standard
deviation. Quantiles are exact: a few columns at a time are in memory. The statistics of a single block are
those of its rows in memory, to the last bit.

Source: Chan, Golub and LeVeque (1983), Eq. (2.1) (merged moments); Hyndman and Fan (1996), definition 7
(quantiles).
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from rehearsal_torch.data.tables.blocks import Blocks

Rows = tuple[Tensor, ...]
CELLS = 2**24
"""Numbers of the columns that are in memory together, where one column has no more."""


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


def extremes(blocks: Blocks[Tensor]) -> tuple[Tensor, Tensor]:
    """The least and the largest value of each column, (d,) each.

    Args:
        blocks: (n_i, d) each, at least one.
    """
    ends = [rows.aminmax(dim=0) for rows in blocks]
    return torch.stack([each.min for each in ends]).amin(0), torch.stack([each.max for each in ends]).amax(0)


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


def quantiles(blocks: Blocks[Tensor], levels: Sequence[float]) -> Tensor:
    """The quantiles of each column, interpolated linearly between rows, (len(levels), d).

    Args:
        blocks: (n_i, d) each, at least one.
        levels: In [0, 1].
    """
    first = blocks[0]
    if blocks.count == 1 and first.numel() <= CELLS:
        return torch.quantile(first, first.new_tensor(levels), dim=0)
    width = first.shape[1]
    together, found = max(1, CELLS // len(blocks)), list[Tensor]()
    for begin in range(0, width, together):
        some = columns_of(blocks, range(begin, min(begin + together, width)))
        found += [_quantiles(column, levels) for column in some.mT]
    return torch.stack(found, -1) if found else first.new_empty(len(levels), 0)


def _quantiles(column: Tensor, levels: Sequence[float]) -> Tensor:
    """As `torch.quantile`, which refuses more than 2^24 numbers."""
    ranked = column.sort().values
    ranks = ranked.new_tensor(levels) * (len(ranked) - 1)
    below, above = ranks.long(), ranks.ceil().long()
    return ranked[below].lerp(ranked[above], ranks - below)


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
