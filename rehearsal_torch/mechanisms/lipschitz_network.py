"""Networks with a known Lipschitz constant in some of their inputs.

A batch of m networks with one hidden layer,

    z = tanh(c (W_s s + b + W_a a)),    out = c (W_z z + b_z),    c = sqrt(L),

each with its own constant L. W_s and W_z are divided by their largest singular value if that exceeds one, so
that out is L-Lipschitz in s (tanh is 1-Lipschitz), while the dependence on a is unconstrained. The singular
value is exact: the square root of the largest eigenvalue of the smaller Gram matrix. A network without a
constant (L = None) has c = 1 and no division.

Source: Tsirtsis and Gomez-Rodriguez (2023), App. G.2. They always divide by the norm; dividing only if it
exceeds one keeps the guarantee and admits flatter functions.
"""

from collections.abc import Mapping, Sequence
from copy import deepcopy

import torch
from torch import Tensor, nn

from rehearsal_torch.data.sizes import WIDEST, bounded, reserve

NAMES = ("inner", "action", "bias", "outer", "shift")
"""Names of a network's weights."""


class LipschitzNetwork(nn.Module):
    """m one-hidden-layer tanh networks over the same inputs, evaluated in one batch.

    Args:
        smooth: Width of s, the inputs in which each network is Lipschitz.
        free: Width of a, the inputs without a constraint; may be 0.
        outputs: Width of each network's output.
        hidden: Hidden units of each network.
        constants: Each network's Lipschitz constant in s, above 0, or None for no constraint.
    """

    def __init__(
        self, smooth: int, free: int, outputs: int, hidden: int, constants: Sequence[float | None]
    ) -> None:
        super().__init__()
        if min(smooth, outputs, hidden, len(constants)) < 1 or free < 0:
            raise ValueError(
                f"expected positive widths; got smooth={smooth}, free={free}, outputs={outputs}, "
                f"hidden={hidden}"
            )
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
        """Samples the weights as torch's linear layers do: uniform in +-1/sqrt(fan-in)."""
        for weight, fan in (
            (self.inner, self.inner.shape[-1]),
            (self.action, self.action.shape[-1]),
            (self.bias, self.inner.shape[-1]),
        ):
            nn.init.uniform_(weight, -(max(fan, 1) ** -0.5), max(fan, 1) ** -0.5)
        for weight in (self.outer, self.shift):
            nn.init.uniform_(weight, -(self.outer.shape[-1] ** -0.5), self.outer.shape[-1] ** -0.5)

    def forward(self, smooth: Tensor, free: Tensor) -> Tensor:
        """(..., smooth), (..., free) -> (m, ..., outputs)."""
        inner, outer, root = self.weights()
        rows = torch.cat([smooth, free], -1).reshape(-1, smooth.shape[-1] + free.shape[-1])
        weight = torch.cat([inner, self.action], -1) * root
        hidden = torch.tanh(
            torch.baddbmm((self.bias * root[..., 0]).unsqueeze(1), rows.expand(len(root), -1, -1), weight.mT)
        )
        out = torch.baddbmm((self.shift * root[..., 0]).unsqueeze(1), hidden, (outer * root).mT)
        return out.reshape(len(root), *smooth.shape[:-1], out.shape[-1])

    def weights(self) -> tuple[Tensor, Tensor, Tensor]:
        """W_s (m, hidden, smooth) and W_z (m, outputs, hidden) as used, and c = sqrt(L), (m, 1, 1)."""
        root = self.inner.new_tensor(
            [1.0 if constant is None else constant**0.5 for constant in self.constants]
        )
        return self._divided(self.inner), self._divided(self.outer), root[:, None, None]

    def lipschitz(self) -> Tensor:
        """(m,) float64, each network's certified Lipschitz constant in s, from the weights in use."""
        exact = self.exact()
        inner, outer, root = exact.weights()
        return (root[:, 0, 0] ** 2 * spectral_norm(inner) * spectral_norm(outer)).detach()

    def exact(self) -> "LipschitzNetwork":
        """The same networks in float64 (a copy, without gradients)."""
        return deepcopy(self).to(torch.float64).requires_grad_(False)

    @classmethod
    def from_tensors(
        cls, networks: Mapping[str, Mapping[str, Tensor]], constants: Sequence[float | None]
    ) -> "LipschitzNetwork":
        """Networks with user-supplied weights instead of trained ones, kept in their precision and unchanged
        to the last bit.

        Args:
            networks: The m networks: name in messages, to weights: ``inner`` W_s (hidden, smooth), ``action``
                W_a (hidden, free), ``bias`` b (hidden,), ``outer`` W_z (outputs, hidden) and ``shift`` b_z
                (outputs,); all m networks have the same shapes.
            constants: Each network's Lipschitz constant in s; None accepts any weights, and `lipschitz`
                returns the constant that their norms guarantee.

        Raises:
            ValueError: if a tensor is missing, of another shape or not finite, or if a constant would require
                weights to be divided.
        """
        first = next(iter(networks.values()))
        for where, weights in networks.items():
            if set(weights) != set(NAMES):
                raise ValueError(
                    f"{where}: expected the tensors {', '.join(NAMES)}; got "
                    f"{', '.join(sorted(weights)) or 'none'}"
                )
            smooth, free, outputs, hidden = (
                first[name].shape[-1] for name in ("inner", "action", "shift", "bias")
            )
            shapes = ((hidden, smooth), (hidden, free), (hidden,), (outputs, hidden), (outputs,))
            for name, shape in zip(NAMES, shapes, strict=True):
                weight = weights[name]
                if (
                    weight.shape != shape
                    or weight.dtype != first["inner"].dtype
                    or not bool(weight.isfinite().all())
                ):
                    raise ValueError(
                        f"{where}: {name}: expected finite numbers of shape {shape} and "
                        f"{first['inner'].dtype}, as in the first network; "
                        f"got shape {tuple(weight.shape)} and "
                        f"{weight.dtype}{'' if bool(weight.isfinite().all()) else ', not all finite'}"
                    )
        built = cls(smooth, free, outputs, hidden, constants).to(first["inner"])
        with torch.no_grad():
            for name in NAMES:
                built.get_parameter(name).copy_(torch.stack([weights[name] for weights in networks.values()]))
        built.check_norms(tuple(networks), 0.0)
        return built.eval()

    @torch.no_grad()
    def check_norms(self, names: Sequence[str], slack: float = 1e-6) -> None:
        """Refuses weights that would be divided although they are not being trained: ValueError if a network
        with a constant has a norm above 1 + slack, in its own precision or in float64.
        """
        stored = [
            weight.to(dtype)
            for weight in (self.inner, self.outer)
            for dtype in (self.inner.dtype, torch.float64)
        ]
        every = torch.stack([spectral_norm(weight).to(torch.float64) for weight in stored], -1)
        norms = every.unflatten(-1, (2, 2)).amax(-1)
        for where, constant, (inner, outer) in zip(names, self.constants, norms.tolist(), strict=True):
            if constant is not None and max(inner, outer) > 1 + slack:
                raise ValueError(
                    f"{where}: expected weights of spectral norm at most 1 under a Lipschitz constant of "
                    f"{constant:g}; got {inner:.9g} for the "
                    f"state's weights and {outer:.9g} for the output's, which would be divided by them. "
                    "Leave the constant out (None, null in a "
                    "configuration): the weights then stay as they are, and the constant certified from "
                    f"their norms is {inner * outer:.9g}. "
                    "Or divide them yourself; `finish` does so permanently"
                )

    @torch.no_grad()
    def finish(self) -> None:
        """Writes the divided weights back: the stored ones have norm at most one in float64 as well."""
        for weight in (self.inner, self.outer):
            norm = torch.linalg.matrix_norm(weight.to(torch.float64), 2)
            for index, constant in enumerate(self.constants):
                if constant is not None and norm[index] > 1 - 1e-7:
                    weight[index] = (weight[index].to(torch.float64) / norm[index] * (1 - 1e-7)).to(
                        weight.dtype
                    )

    def _divided(self, weight: Tensor) -> Tensor:
        """The weight as used in `forward`."""
        if all(constant is None for constant in self.constants):
            return weight
        norm = spectral_norm(weight).clamp_min(1.0)
        bound = torch.tensor([constant is not None for constant in self.constants], device=norm.device)
        return weight / torch.where(bound, norm, torch.ones_like(norm))[:, None, None]


def spectral_norm(weight: Tensor) -> Tensor:
    """Largest singular value, (..., p, q) -> (...), by the smaller Gram matrix: exact, not a power iteration.

    The gradient u v' (top singular vectors) is finite where the singular value is repeated, and zero at zero.
    On a GPU the products are in float64: whoever allows TF32 there
    (`torch.set_float32_matmul_precision("high")`) has float32 ones with 10 bits.
    """
    exact = weight.double() if weight.is_cuda else weight
    gram = exact.mT @ exact if weight.shape[-1] <= weight.shape[-2] else exact @ exact.mT
    largest = torch.linalg.eigvalsh(gram)[..., -1].clamp_min(torch.finfo(weight.dtype).tiny)
    return largest.sqrt().to(weight.dtype)
