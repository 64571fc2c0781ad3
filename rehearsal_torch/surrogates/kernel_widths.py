"""Which kernel widths and ridges: models (s_x, s_u, s_a, lambda_h) of the product kernel.

The paper takes the median heuristic. Leave-one-out takes, on a subset of n rows, the errors

    e_i = alpha_i / [(K_hh + n lambda I)^-1]_ii,

in closed form from one eigendecomposition a kernel, over multiples of the medians, one multiple a block. Errors are
measured where the data lie while decisions are taken at their edge, so the best of a grid is a lottery; hence J is
averaged over models that leave-one-out cannot tell apart: those whose squared errors exceed the best model's by less than
`tolerance` standard errors of the paired difference. Of more than `most` such models, evenly spaced ranks are kept.

Source: Du et al. (2026), Sec. 4.1 (median heuristic); Allen (1974) and Rasmussen and Williams (2006), Eq. (5.12)
(leave-one-out); the averaging is ours.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

import torch
from torch import Tensor

from rehearsal_torch.surrogates.product_kernel import gaussian, joined, median_width

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
    """How models are chosen.

    Attributes:
        rule: "median"; "leave_one_out"; or three widths for context, covariates and actions.
        ridge: lambda_h, where leave-one-out does not choose it.
        rows: How many rows leave-one-out looks at.
        tolerance: How many standard errors of difference count as none.
        most: How many models are kept at most.
        seed: Decides the subset.

    Raises:
        ValueError: if a setting is out of range.
    """

    rule: Rule = MEDIAN
    ridge: float = 1e-3
    rows: int = 300
    tolerance: float = 1.0
    most: int = 8
    seed: int = 0

    def __post_init__(self) -> None:
        known = self.rule in (MEDIAN, LEAVE_ONE_OUT) if isinstance(self.rule, str) else len(self.rule) == 3 and all(width > 0 for width in self.rule)
        if not known:
            raise ValueError(
                f"expected `widths` {MEDIAN!r} or {LEAVE_ONE_OUT!r}, or `fixed` three positive numbers (context, covariates, actions); got {self.rule!r}"
            )
        if self.ridge <= 0 or self.rows < 10 or self.tolerance < 0 or self.most < 1:
            raise ValueError(f"expected a positive ridge, at least 10 rows, a tolerance of at least 0 and at least 1 model; got {self}")

    def models(self, blocks: Sequence[Tensor], target: Tensor) -> Models:
        """Models for context, covariates and actions (N, d_v) each, and a target (N,)."""
        if not isinstance(self.rule, str):
            return self._one(target.new_tensor([float(width) for width in self.rule]))
        medians = torch.stack([median_width(block) for block in blocks])
        if self.rule == MEDIAN:
            return self._one(medians)
        kept = torch.randperm(len(target), generator=torch.Generator().manual_seed(self.seed))[: self.rows].to(target.device)
        some, grids = (
            [block[kept] for block in blocks],
            [grid if block.shape[1] else (1.0,) for block, grid in zip(blocks, (BROAD, BROAD, NARROW), strict=True)],
        )
        widths = medians * target.new_tensor(list(product(*grids)))
        errors = torch.stack([leave_one_out(gaussian(rows, rows), target[kept], RIDGES) for rows in (joined(some, each) for each in widths)])
        squares = errors.square().flatten(0, 1)
        best = squares[squares.mean(1).argmin()]
        excess = squares - best
        near = excess.mean(1) <= self.tolerance * excess.std(1) / len(kept) ** 0.5
        ranked = squares.mean(1).masked_fill(~near, float("inf")).argsort()[: int(near.sum())]
        places = torch.linspace(0, len(ranked) - 1, min(len(ranked), self.most), device=ranked.device).round().long()
        chosen = ranked[places]
        return Models(widths[chosen // len(RIDGES)], target.new_tensor(RIDGES)[chosen % len(RIDGES)])

    def _one(self, widths: Tensor) -> Models:
        return Models(widths[None], widths.new_tensor([self.ridge]))


def leave_one_out(gram: Tensor, target: Tensor, ridges: Sequence[float]) -> Tensor:
    """What each row's prediction from all others misses, (n, n), (n,) -> (number of ridges, n); ridges are lambdas, times n.

    Source: Rasmussen and Williams (2006), Eq. (5.12).
    """
    values, vectors = torch.linalg.eigh(gram)
    shrunk = 1 / (values.clamp(min=0) + len(gram) * values.new_tensor(ridges)[:, None])
    coefficients = (shrunk * (vectors.T @ target)) @ vectors.T
    return coefficients / (shrunk @ vectors.square().T)
