"""The posterior of one Gaussian-process regression, its factors computed once.

    mu(w) = m + k(w, W) a,        tau(w)^2 = k(w, w) - |L^-1 k(W, w)|^2,        K = L L'.

The mean costs the products of a new row with all n rows, O(n), the deviation O(n^2).

Source: Rasmussen and Williams (2006), Eq. 2.25-2.26 and Alg. 2.1.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from rehearsal_torch.mechanisms.gaussian_process import Factors, Rows
from rehearsal_torch.mechanisms.gaussian_process_map import HyperParameters
from rehearsal_torch.mechanisms.stationary_kernel import correlation

LEAST = 1e-12


@dataclass(frozen=True)
class Posterior:
    """One regression's posterior, its factors cached; without inputs a constant.

    Attributes:
        scales: 1 / l, (p,).
        places: Rows over l, (n, p).
        halves: Half their squared lengths, (n,).
        weights: (n,).
        inverse: The inverse of the lower Cholesky factor, transposed, (n, n).
        mean: m, ().
        vague: The deviation without inputs, ().
        kind: The kernel, a place in `stationary_kernel.KINDS`.
    """

    scales: Tensor
    places: Tensor
    halves: Tensor
    weights: Tensor
    inverse: Tensor
    mean: Tensor
    vague: Tensor
    kind: int = 0

    @classmethod
    def of(cls, rows: Rows, found: Factors, hyper: HyperParameters, place: int, width: int) -> "Posterior":
        """The posterior of one of N regressions.

        Args:
            rows: Of all.
            found: Factors of all.
            hyper: Hyper-parameters of all.
            place: Which one.
            width: How many inputs it has.
        """
        kept = rows.kept[place]
        scales = (-hyper.log_lengths[place, :width]).exp()
        places = rows.inputs[place][kept][:, :width] * scales
        root = found.root[place][kept][:, kept]
        inverse = torch.linalg.solve_triangular(root, torch.eye(len(root), dtype=root.dtype, device=root.device), upper=False).mT.contiguous()
        kind = 0 if rows.kinds is None else int(rows.kinds[place])
        vague = (hyper.log_noises[place].exp() / kept.sum()).sqrt()
        return cls(scales, places, 0.5 * places.square().sum(-1), found.weights[place][kept], inverse, found.mean[place], vague, kind)

    def products(self, scaled: Tensor) -> Tensor:
        """k(w, W), (..., p) -> (..., n)."""
        near = scaled * self.scales
        # Rounding may leave an exponent of 1e-16 above zero, which does no harm.
        exponents = near @ self.places.mT - self.halves - 0.5 * near.square().sum(-1, keepdim=True)
        return exponents.exp() if self.kind == 0 else correlation(exponents.mul(-2).clamp_min(0), self.kind)

    def guess(self, scaled: Tensor) -> Tensor:
        """mu(w), (..., p) -> (...)."""
        if not scaled.shape[-1]:
            return self.mean.expand(scaled.shape[:-1])
        return self.products(scaled) @ self.weights + self.mean

    def believed(self, scaled: Tensor) -> tuple[Tensor, Tensor]:
        """mu(w) and tau(w), (..., p) -> (...), (...)."""
        if not scaled.shape[-1]:
            return self.mean.expand(scaled.shape[:-1]), self.vague.expand(scaled.shape[:-1])
        products = self.products(scaled)
        left = 1 - (products @ self.inverse).square().sum(-1)
        return products @ self.weights + self.mean, left.clamp_min(LEAST).sqrt()
