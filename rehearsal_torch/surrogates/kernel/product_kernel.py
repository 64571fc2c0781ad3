"""The Gaussian product kernel over context, covariates and actions, and the choice of its widths.

    k_h(h, h') = k_x(x, x') k_u(u, u') k_a(a, a'),   k_v(v, v') = exp(-|v - v'|^2 / (2 s_v^2)).

In coordinates divided by the width of their block, k_h is a single Gaussian kernel of width one. An empty
block contributes the constant one.

With this kernel, alteration values are sums of Gaussians over actions,

    J(a; x) = sum_i omega_i(x) exp(-|a_i - a|^2 / (2 s_a^2)),
    grad J  = s_a^-2 sum_i omega_i(x) k_a(a_i, a) (a_i - a).

Contexts enter through the weights, actions through the Gaussians; thousands of contexts and starts are thus
evaluated in one batch, and a step costs as many kernel values as there are centres. An average over models
with different action widths is a sum over widths.

A model is a choice of widths and ridge, (s_x, s_u, s_a, lambda_h). The paper sets s_v to the median distance
between two rows (median heuristic). The leave-one-out rule computes, on a subset of n rows, the errors

    e_i = alpha_i / [(K_hh + n lambda I)^-1]_ii,

in closed form from one eigendecomposition per kernel, over a grid of multiples of the medians, one multiple
per block. Errors are measured where the data lie, while decisions are taken at the edge of the data, so the
minimiser over the grid is largely arbitrary; hence J is averaged over the models that leave-one-out cannot
distinguish: those whose squared errors exceed the best model's by less than `tolerance` standard errors of
the paired difference. Of more than `max_models` such models, evenly spaced ranks are kept.

Source: Du et al. (2026), Ass. 1, Sec. 3.4, Sec. 4.1, Eq. (9) and (10); Gretton et al. (2012), Sec. 8 (median
heuristic); Allen (1974) and Rasmussen and Williams (2006), Eq. (5.12) (leave-one-out); the averaging is ours.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product

import torch
from torch import Tensor, nn

from rehearsal_torch.data.part import Sizes
from rehearsal_torch.data.tables.block_statistics import rows_at
from rehearsal_torch.data.tables.blocks import Blocks, in_blocks
from rehearsal_torch.seeding import generator
from rehearsal_torch.surrogates.kernel.nested_ridge import AlterationValue, Prepared

CACHED = 2**18  # Kernel values per block, so that a block fits into the processor's cache.


class GaussianBumps(AlterationValue, ABC):
    """J as a sum of Gaussians; the first two pieces of `prepare` are their weights for the two targets, (B,
    g, n).

    Args:
        first: See `AlterationValue`.
    """

    def __init__(self, first: Sequence[int]) -> None:
        super().__init__(first)
        self.register_fitted("centres", "bump_widths")
        self.centres: Tensor
        self.bump_widths: Tensor

    def sizes(self) -> Sizes:
        """n centres of k actions; one width, unless a subclass has several."""
        return {"centres": ("n", "k"), "bump_widths": (1,)}

    @abstractmethod
    def prepare(self, contexts: Tensor) -> Prepared:
        """Pieces: weights (B, g, n) of the smoothed desirability, of the indicator, then those specific to
        the estimator.
        """

    @property
    def widths_of_rows(self) -> tuple[int, int, int]:
        """The widths of the stored rows."""
        rows = (self.get_buffer("contexts"), self.get_buffer("covariates"), self.centres)
        return tuple(each.shape[-1] for each in rows)  # type: ignore[return-value]

    def value(self, prepared: Prepared, actions: Tensor, target: int = 0) -> Tensor:
        """Eq. (9), (..., B, k) -> (..., B)."""
        weights, shape = prepared.pieces[target], actions.shape[:-1]
        rows = _by_context(actions.to(weights))
        total = sum(
            superposed(rows, self.centres, width, weights[:, g], False)[..., 0]
            for g, width in enumerate(self.bump_widths)
        )
        return torch.as_tensor(total).T.reshape(shape)

    def value_and_gradient(self, prepared: Prepared, actions: Tensor) -> tuple[Tensor, Tensor]:
        """Eq. (9) and (10), (..., B, k) -> (..., B), (..., B, k), in the precision of the actions: single
        precision is sufficient for an ascent.
        """
        weights, centres, rows = (
            prepared.pieces[0].to(actions),
            self.centres.to(actions),
            _by_context(actions),
        )
        values, gradients = rows.new_zeros(rows.shape[:2]), torch.zeros_like(rows)
        for g, width in enumerate(self.bump_widths.to(actions)):
            moments = superposed(rows, centres, width, weights[:, g], True)
            values += moments[..., 0]
            gradients += (moments[..., 1:] - rows * moments[..., :1]) / width**2
        return values.T.reshape(actions.shape[:-1]), gradients.transpose(0, 1).reshape(actions.shape)

    def weights(self, prepared: Prepared) -> Tensor:
        """omega, summed over the widths, (B, n).

        Source: Du et al. (2026), Alg. 1, line 13.
        """
        return prepared.pieces[0].sum(1)

    @property
    def actions(self) -> Tensor:
        """The centres, (n, k)."""
        return self.centres


def superposed(
    actions: Tensor, centres: Tensor, width: Tensor, weights: Tensor, with_gradient: bool
) -> Tensor:
    """Moments sum_i omega_i k_a(a_i, a) (1, a_i) at actions (B, S, k), centres (n, k), weights (B, n) -> (B,
    S, 1) or (B, S, 1 + k).

    Source: Du et al. (2026), Eq. (9) and (10).
    """
    (contexts, starts, _), near, scaled = actions.shape, centres / width, actions / width
    left = torch.cat(
        [scaled, scaled.new_ones(contexts, starts, 1), -0.5 * scaled.square().sum(-1, keepdim=True)], -1
    )
    right = torch.cat([near, -0.5 * near.square().sum(-1, keepdim=True), near.new_ones(len(near), 1)], -1).T
    step, found = max(1, CACHED // max(starts * len(centres), 1)), []
    for first in range(0, contexts, step):
        some = weights[first : first + step, :, None]
        kernel = (left[first : first + step].flatten(0, 1) @ right).exp_().unflatten(0, (-1, starts))
        found.append(kernel @ (torch.cat([some, some * centres], -1) if with_gradient else some))
    return torch.cat(found)


def kernel_rows(actions: Tensor, centres: Tensor, width: Tensor) -> Tensor:
    """k_a between actions (..., k) and centres (n, k), (..., n)."""
    return (-0.5 * ((actions.unsqueeze(-2) - centres) / width).square().sum(-1)).exp()


def _by_context(actions: Tensor) -> Tensor:
    return actions.reshape(-1, *actions.shape[-2:]).transpose(0, 1)


CELLS = 2**20
PAIRED = 1000


def gaussian(rows: Tensor, centres: Tensor) -> Tensor:
    """exp(-|row - centre|^2 / 2) in scaled coordinates, (n, d) and (m, d) -> (n, m); ones where d = 0.

    Source: Du et al. (2026), Sec. 3.4.
    """
    half = -0.5 * centres.square().sum(-1)
    left = torch.cat([rows, rows.new_ones(len(rows), 1), -0.5 * rows.square().sum(-1, keepdim=True)], -1)
    right = torch.cat([centres, half[:, None], centres.new_ones(len(centres), 1)], -1)
    # One matrix product gives -|row - centre|^2 / 2; rounding may leave it slightly positive.
    return (left @ right.T).clamp_(max=0.0).exp_()


def joined(blocks: Sequence[Tensor], widths: Tensor) -> Tensor:
    """Blocks (n, d_v) side by side, each divided by its width, (number of blocks,): the coordinates
    of k_h.
    """
    return torch.cat([block / width for block, width in zip(blocks, widths, strict=True)], -1)


def median_width(rows: Tensor) -> Tensor:
    """The median distance between two of at most 1,000 evenly spaced rows (n, d) -> (); one for an empty
    block.

    If more than half of all pairs coincide, as for a rare category, the mean distance is used instead.

    Source: Gretton et al. (2012), Sec. 8.
    """
    if not rows.shape[1]:
        return rows.new_ones(())
    return _median_distance(rows[paired_places(len(rows), rows.device)])


def paired_places(count: int, device: torch.device) -> Tensor:
    """The places of the rows of `median_width`, at most 1,000."""
    places = torch.linspace(0, count - 1, min(count, PAIRED), device=device).long()
    # Single precision, which may round the last place up.
    return places.clamp_max_(count - 1)


def _median_distance(some: Tensor) -> Tensor:
    if not some.shape[1]:
        return some.new_ones(())
    distances = torch.nn.functional.pdist(some)
    middle = distances.median()
    return middle if middle > 0 else distances.mean().clamp(min=1e-6)


def spans(rows: int, columns: int) -> Iterator[slice]:
    """Slices of rows such that a block with `columns` columns holds at most 2^20 numbers."""
    step = max(1, CELLS // max(columns, 1))
    return (slice(start, min(start + step, rows)) for start in range(0, rows, step))


def gram_product(rows: Tensor, centres: Tensor, vectors: Tensor) -> Tensor:
    """K v without the matrix K: (n, d), (m, d), (m, b) -> (n, b), in blocks of rows."""
    # Preallocated: small results between large blocks would fragment the heap, up to the size of K.
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
    """Makes every buffer contiguous, as loading does, so that a saved and loaded part gives bit-identical
    results.
    """
    for name, buffer in list(part.named_buffers(recurse=False)):
        setattr(part, name, buffer.contiguous())


BROAD, NARROW = (0.3, 1.0, 3.0, 10.0, 30.0), (0.1, 0.3, 1.0, 3.0)
RIDGES = (1e-4, 1e-3, 1e-2)
MEDIAN, LEAVE_ONE_OUT = "median", "leave_one_out"
Rule = str | Sequence[float]


@dataclass(frozen=True)
class Models:
    """M models.

    Attributes:
        widths: (M, 3), of context, covariates and actions.
        ridges: (M,), lambda_h.
    """

    widths: Tensor
    ridges: Tensor


@dataclass(frozen=True)
class Choice:
    """How models are selected.

    Attributes:
        rule: "median"; "leave_one_out"; or three widths for context, covariates and actions.
        ridge: lambda_h, where leave-one-out does not select it.
        rows: Number of rows in the leave-one-out subset.
        tolerance: Number of standard errors within which models count as equal.
        max_models: Maximum number of models.
        seed: Seed of the subset.

    Raises:
        ValueError: if a setting is out of range.
    """

    rule: Rule = MEDIAN
    ridge: float = 1e-3
    rows: int = 300
    tolerance: float = 1.0
    max_models: int = 8
    seed: int = 0

    def __post_init__(self) -> None:
        known = (
            self.rule in (MEDIAN, LEAVE_ONE_OUT)
            if isinstance(self.rule, str)
            else len(self.rule) == 3 and all(width > 0 for width in self.rule)
        )
        if not known:
            raise ValueError(
                f"expected `widths` {MEDIAN!r} or {LEAVE_ONE_OUT!r}, or `fixed` three positive numbers "
                f"(context, covariates, actions); got {self.rule!r}"
            )
        if self.ridge <= 0 or self.rows < 10 or self.tolerance < 0 or self.max_models < 1:
            raise ValueError(
                "expected a positive ridge, at least 10 rows, a tolerance of at least 0 and at least 1 "
                f"model; got {self}"
            )

    def models(self, blocks: Sequence[Tensor], target: Tensor) -> Models:
        """Models for context, covariates and actions (N, d_v) each, and a target (N,)."""
        return self.models_of(in_blocks((*blocks, target)))

    def models_of(self, rows: Blocks[tuple[Tensor, ...]]) -> Models:
        """Models for blocks of rows: context, covariates, actions (N_i, d_v) and a target (N_i,)."""
        like = rows[0][-1]
        if not isinstance(self.rule, str):
            return self._one(like.new_tensor([float(width) for width in self.rule]))
        *apart, _ = rows_at(rows, paired_places(len(rows), like.device))
        medians = torch.stack([_median_distance(some) for some in apart])
        if self.rule == MEDIAN:
            return self._one(medians)
        kept = torch.randperm(len(rows), generator=generator(self.seed))[: self.rows].to(like.device)
        *some, target = rows_at(rows, kept)
        grids = [
            grid if block.shape[1] else (1.0,)
            for block, grid in zip(some, (BROAD, BROAD, NARROW), strict=True)
        ]
        widths = medians * target.new_tensor(list(product(*grids)))
        errors = torch.stack(
            [
                leave_one_out(gaussian(rows, rows), target, RIDGES)
                for rows in (joined(some, each) for each in widths)
            ]
        )
        squares = errors.square().flatten(0, 1)
        best = squares[squares.mean(1).argmin()]
        excess = squares - best
        near = excess.mean(1) <= self.tolerance * excess.std(1) / len(kept) ** 0.5
        ranked = squares.mean(1).masked_fill(~near, float("inf")).argsort()[: int(near.sum())]
        places = (
            torch.linspace(0, len(ranked) - 1, min(len(ranked), self.max_models), device=ranked.device)
            .round()
            .long()
        )
        chosen = ranked[places]
        return Models(widths[chosen // len(RIDGES)], target.new_tensor(RIDGES)[chosen % len(RIDGES)])

    def _one(self, widths: Tensor) -> Models:
        return Models(widths[None], widths.new_tensor([self.ridge]))


def leave_one_out(gram: Tensor, target: Tensor, ridges: Sequence[float]) -> Tensor:
    """Leave-one-out residuals, (n, n), (n,) -> (number of ridges, n); ridges are lambdas, multiplied by n.

    Source: Rasmussen and Williams (2006), Eq. (5.12).
    """
    values, vectors = torch.linalg.eigh(gram)
    shrunk = 1 / (values.clamp(min=0) + len(gram) * values.new_tensor(ridges)[:, None])
    coefficients = (shrunk * (vectors.T @ target)) @ vectors.T
    return coefficients / (shrunk @ vectors.square().T)
