"""Networks with a known Lipschitz constant in some of their inputs.

Side by side stand m networks with one hidden layer,

    z = tanh(c (W_s s + b + W_a a)),    out = c (W_z z + b_z),    c = sqrt(L),

each with a constant L of its own. W_s and W_z are divided by their largest singular value where that exceeds one,
so out is L-Lipschitz in s (tanh is 1-Lipschitz), while a may act without limit. The singular value is exact: the
square root of the largest eigenvalue of the thinner Gram matrix. A network without a constant (L = None) has c = 1
and no division.

Source: Tsirtsis and Gomez-Rodriguez (2023), App. G.2. They divide by the norm always; dividing only where it
exceeds one keeps the guarantee and admits flatter functions.
"""

from collections.abc import Sequence
from copy import deepcopy

import torch
from torch import Tensor, nn

from rehearsal_torch.data.sizes import WIDEST, bounded, reserve


class LipschitzNetwork(nn.Module):
    """m one-hidden-layer tanh networks over the same inputs, evaluated in one batch.

    Args:
        smooth: Width of s, the inputs in which each network is Lipschitz.
        free: Width of a, the inputs without a constraint.
        outputs: Width of each network's output.
        hidden: Hidden units of each network.
        constants: Each network's Lipschitz constant in s, or None for no constraint.

    Raises:
        ValueError: if a width is below 1 (free may be 0) or a constant is not positive.
    """

    def __init__(self, smooth: int, free: int, outputs: int, hidden: int, constants: Sequence[float | None]) -> None:
        super().__init__()
        if min(smooth, outputs, hidden, len(constants)) < 1 or free < 0:
            raise ValueError(f"expected positive widths; got smooth={smooth}, free={free}, outputs={outputs}, hidden={hidden}")
        if any(constant is not None and constant <= 0 for constant in constants):
            raise ValueError(f"expected positive Lipschitz constants or null; got {list(constants)}")
        self.constants = tuple(constants)
        count = len(self.constants)
        bounded("hidden", hidden)
        for key, width in (("smooth", smooth), ("outputs", outputs), ("free", free)):
            bounded(key, width, WIDEST, 0)
        reserve("hidden", count * (hidden * (smooth + free + outputs + 1) + outputs))
        self.inner = nn.Parameter(torch.empty(count, hidden, smooth))
        self.action = nn.Parameter(torch.empty(count, hidden, free))
        self.bias = nn.Parameter(torch.empty(count, hidden))
        self.outer = nn.Parameter(torch.empty(count, outputs, hidden))
        self.shift = nn.Parameter(torch.empty(count, outputs))
        self.reset()

    def reset(self) -> None:
        """Draws the weights as torch's own linear layers do: uniform in +-1/sqrt(fan-in)."""
        for weight, fan in ((self.inner, self.inner.shape[-1]), (self.action, self.action.shape[-1]), (self.bias, self.inner.shape[-1])):
            nn.init.uniform_(weight, -(max(fan, 1) ** -0.5), max(fan, 1) ** -0.5)
        for weight in (self.outer, self.shift):
            nn.init.uniform_(weight, -(self.outer.shape[-1] ** -0.5), self.outer.shape[-1] ** -0.5)

    def forward(self, smooth: Tensor, free: Tensor) -> Tensor:
        """(..., smooth), (..., free) -> (m, ..., outputs)."""
        inner, outer, root = self.weights()
        rows = torch.cat([smooth, free], -1).reshape(-1, smooth.shape[-1] + free.shape[-1])
        weight = torch.cat([inner, self.action], -1) * root
        hidden = torch.tanh(torch.baddbmm((self.bias * root[..., 0]).unsqueeze(1), rows.expand(len(root), -1, -1), weight.mT))
        out = torch.baddbmm((self.shift * root[..., 0]).unsqueeze(1), hidden, (outer * root).mT)
        return out.reshape(len(root), *smooth.shape[:-1], out.shape[-1])

    def weights(self) -> tuple[Tensor, Tensor, Tensor]:
        """W_s (m, hidden, smooth) and W_z (m, outputs, hidden) as used, and c = sqrt(L), (m, 1, 1)."""
        root = self.inner.new_tensor([1.0 if constant is None else constant**0.5 for constant in self.constants])
        return self._shrunk(self.inner), self._shrunk(self.outer), root[:, None, None]

    def lipschitz(self) -> Tensor:
        """(m,) float64, each network's certified Lipschitz constant in s, from the norms of the weights in use."""
        exact = self.exact()
        inner, outer, root = exact.weights()
        return (root[:, 0, 0] ** 2 * spectral_norm(inner) * spectral_norm(outer)).detach()

    def exact(self) -> "LipschitzNetwork":
        """The same networks in float64 (a copy, without gradients)."""
        return deepcopy(self).to(torch.float64).requires_grad_(False)

    @torch.no_grad()
    def finish(self) -> None:
        """Writes the divided weights back, so that the stored ones have norm at most one in float64 as well."""
        for weight in (self.inner, self.outer):
            norm = torch.linalg.matrix_norm(weight.to(torch.float64), 2)
            for index, constant in enumerate(self.constants):
                if constant is not None and norm[index] > 1 - 1e-7:
                    weight[index] = (weight[index].to(torch.float64) / norm[index] * (1 - 1e-7)).to(weight.dtype)

    def _shrunk(self, weight: Tensor) -> Tensor:
        bound = [constant is not None for constant in self.constants]
        if not any(bound):
            return weight
        norm = spectral_norm(weight).clamp_min(1.0)
        if not all(bound):
            norm = torch.where(torch.tensor(bound, device=norm.device), norm, torch.ones_like(norm))
        return weight / norm[:, None, None]


def spectral_norm(weight: Tensor) -> Tensor:
    """Largest singular value, (..., p, q) -> (...), by the thinner Gram matrix: exact, not a power iteration.

    The derivative u v' of the top singular vectors is finite where the singular value is repeated, and zero at zero.
    """
    gram = weight.mT @ weight if weight.shape[-1] <= weight.shape[-2] else weight @ weight.mT
    return torch.linalg.eigvalsh(gram)[..., -1].clamp_min(torch.finfo(weight.dtype).tiny).sqrt()
