"""The Gaussian product kernel over context, covariates and actions.

    k_h(h, h') = k_x(x, x') k_u(u, u') k_a(a, a'),   k_v(v, v') = exp(-|v - v'|^2 / (2 s_v^2)).

In coordinates that are divided by their block's width, k_h is one Gaussian kernel of width one. An empty block is the
constant one. The median heuristic sets s_v to the median distance between two rows.

Source: Du et al. (2026), Ass. 1 and Sec. 3.4; Gretton et al. (2012), Sec. 8 (median heuristic).
"""

from collections.abc import Callable, Iterator, Sequence

import torch
from torch import Tensor, nn

CELLS = 2**20
PAIRED = 1000


def gaussian(rows: Tensor, centres: Tensor) -> Tensor:
    """exp(-|row - centre|^2 / 2) in scaled coordinates, (n, d) and (m, d) -> (n, m); ones where d = 0.

    Source: Du et al. (2026), Sec. 3.4.
    """
    half = -0.5 * centres.square().sum(-1)
    left = torch.cat([rows, rows.new_ones(len(rows), 1), -0.5 * rows.square().sum(-1, keepdim=True)], -1)
    right = torch.cat([centres, half[:, None], centres.new_ones(len(centres), 1)], -1)
    # One matrix product gives -|row - centre|^2 / 2; rounding may leave a little above zero.
    return (left @ right.T).clamp_(max=0.0).exp_()


def joined(blocks: Sequence[Tensor], widths: Tensor) -> Tensor:
    """Blocks (n, d_v) side by side, each divided by its width (number of blocks,): the coordinates of k_h."""
    return torch.cat([block / width for block, width in zip(blocks, widths, strict=True)], -1)


def median_width(rows: Tensor) -> Tensor:
    """The median distance between two of at most 1,000 evenly spaced rows (n, d) -> (); one for an empty block.

    Where more than half of all pairs are equal, as for a rare category, the mean distance stands in.

    Source: Gretton et al. (2012), Sec. 8.
    """
    if not rows.shape[1]:
        return rows.new_ones(())
    some = rows[torch.linspace(0, len(rows) - 1, min(len(rows), PAIRED), device=rows.device).long()]
    distances = torch.nn.functional.pdist(some)
    middle = distances.median()
    return middle if middle > 0 else distances.mean().clamp(min=1e-6)


def spans(rows: int, columns: int) -> Iterator[slice]:
    """Slices of rows, so that a block of so many columns holds at most 2^20 numbers."""
    step = max(1, CELLS // max(columns, 1))
    return (slice(start, min(start + step, rows)) for start in range(0, rows, step))


def gram_product(rows: Tensor, centres: Tensor, vectors: Tensor) -> Tensor:
    """K v without the matrix K: (n, d), (m, d), (m, b) -> (n, b), in blocks of rows."""
    # Into one result: small results between large blocks would fragment the heap, up to the size of K.
    found = vectors.new_empty(len(rows), vectors.shape[1])
    for span in spans(len(rows), len(centres)):
        torch.mm(gaussian(rows[span], centres), vectors, out=found[span])
    return found


def accumulated(rows: int, columns: int, part: Callable[[slice], tuple[Tensor, ...]]) -> tuple[Tensor, ...]:
    """The sum of a tuple of tensors over blocks of rows."""
    first, *others = spans(rows, columns)
    total = part(first)
    for span in others:
        total = tuple(whole.add_(more) for whole, more in zip(total, part(span), strict=True))
    return total


def lay_out(part: nn.Module) -> None:
    """Lays out every buffer in memory as loading does, so that a saved and loaded part computes the same to the last bit."""
    for name, buffer in list(part.named_buffers(recurse=False)):
        setattr(part, name, buffer.contiguous())
