"""Sparse effects of doses on each output of a transition, selected and estimated in closed form.

Given a transition whose networks do not see the doses, with residuals r_i = v_i - h_i(x, q) and scales
phi_i(x, q), the effect of the doses on output i is

    E_i(s, a) = sum over selected (j, k) of  B_ijk  d_j(a) (1, s)_k,

with the features d(a) = (a, a^2, 1[a > 0]) of each of p doses a in [0, 1], and the state s. Given the action
it is linear in the state, E(s, a) = M_a s + b_a: neither the bijection in the noise nor the curvature of the
transition changes, and the Lipschitz constant grows by the spectral norm of M_a.

Each output has a regression of its own, weighted by 1 / phi_i^2: a quadratic of the state and of the other
features is projected out first, because clinicians dose by the state; then, by forward selection, the term
with the largest |t| is added until that falls below a threshold or the largest number of terms is reached.
Everything follows from one Gram matrix per output.

Why: a network that sees the doses next to the state spreads small spurious effects over all outputs, which
the likelihood does not notice but a search for the best action exploits.

Source: forward selection and partialling out are textbook (Frisch, Waugh and Lovell).
"""

import torch
from torch import Tensor

from rehearsal_torch.data.part import Solved

ROWS = 8192
"""Rows per block of the Gram matrices."""
DEPENDENT = 1e-3
"""A term whose part that is independent of all others is smaller than this share of it is not selected."""
RANK = 1e-10
"""Relative eigenvalue below which a direction of the controls counts as absent."""


class ActionEffects(Solved):
    """E(s, a) = M_a s + b_a with few terms per output.

    Args:
        states: D, number of outputs; the first D features are the state.
        doses: p, number of doses.
        threshold: The smallest |t| of a term that is selected.
        max_terms: The largest number of terms per output.
    """

    def __init__(self, states: int, doses: int, threshold: float = 4.0, max_terms: int = 6) -> None:
        super().__init__()
        self.states, self.count, self.threshold, self.max_terms = states, doses, threshold, max_terms
        self.register_fitted(coefficients=(states, 3 * doses, 1 + states))
        self.coefficients: Tensor

    def clear(self) -> None:
        """Forgets the effects: E = 0 until they are solved for again."""
        self.coefficients = self.coefficients.new_empty(0)

    def forward(self, states: Tensor, doses: Tensor) -> Tensor:
        """E, states (..., D) and doses (..., p) in [0, 1] -> (..., D)."""
        if not self.fitted:
            return torch.zeros_like(states)
        return _products(dose_features(doses), states) @ self.coefficients.to(states).flatten(1).mT

    def maps(self, doses: Tensor) -> tuple[Tensor, Tensor]:
        """M (A, D, D) and b (A, D) of doses (A, p) in [0, 1]."""
        if not self.fitted:
            shape = (len(doses), self.states)
            return doses.new_zeros(*shape, self.states), doses.new_zeros(shape)
        table = torch.einsum("aj,ijk->aik", dose_features(doses), self.coefficients.to(doses))
        return table[..., 1:].contiguous(), table[..., 0].contiguous()

    @torch.no_grad()
    def solve(self, *examples: Tensor) -> None:
        """Selects and estimates the terms from features (n, f) of which the first D are the state, doses (n,
        p) in [0, 1], residuals (n, D) and scales (n, D) of the outputs.
        """
        count, width = examples[0].shape
        controls = 1 + width + width * (width + 1) // 2
        size = controls + 3 * self.count * (1 + self.states) + 1
        gram = torch.zeros(self.states, size, size, dtype=torch.float64, device=examples[0].device)
        for rows in zip(*(each.split(ROWS) for each in examples), strict=True):
            self._add(gram, *(each.to(torch.float64) for each in rows))
        shape = (3 * self.count, 1 + self.states)
        self.coefficients = torch.stack(
            [self._selected(each, controls, count).unflatten(0, shape) for each in gram]
        )

    def _add(self, gram: Tensor, features: Tensor, doses: Tensor, residuals: Tensor, scales: Tensor) -> None:
        """Adds rows to the Gram matrix of controls, terms and residual of each output."""
        state = features[:, : self.states]
        columns = torch.cat([quadratic(features), _products(dose_features(doses), state)], -1)
        for output in range(self.states):
            rows = torch.cat([columns, residuals[:, output : output + 1]], -1)
            rows = rows / scales[:, output : output + 1]
            gram[output].addmm_(rows.mT, rows)

    def _selected(self, gram: Tensor, controls: int, rows: int) -> Tensor:
        """The coefficients of all terms, given the Gram matrix of controls, terms and residual."""
        inverse, rank = _inverse(gram[:controls, :controls])
        left = gram[controls:, controls:] - gram[controls:, :controls] @ inverse @ gram[:controls, controls:]
        scale = gram.diagonal()[controls:-1].clamp_min(1e-300)
        chosen: list[int] = []
        for _ in range(self.max_terms):
            free = left
            if chosen:
                inside = left[chosen][:, chosen]
                free = left - left[:, chosen] @ torch.linalg.solve(inside, left[chosen])
            length = free.diagonal()[:-1].clamp_min(0.0)
            if rows - rank - len(chosen) <= 1:
                break
            spread = (free[-1, -1].clamp_min(0.0) / (rows - rank - len(chosen) - 1)).sqrt()
            usable = length > DEPENDENT**2 * scale
            ratio = torch.where(usable, free[:-1, -1] / (length.sqrt() * spread).clamp_min(1e-300), 0.0)
            ratio[chosen] = 0.0
            best = int(ratio.abs().argmax())
            if float(ratio[best].abs()) < self.threshold:
                break
            chosen.append(best)
        coefficients = torch.zeros_like(scale)
        if chosen:
            coefficients[chosen] = torch.linalg.solve(left[chosen][:, chosen], left[chosen, -1])
        return coefficients


def dose_features(doses: Tensor) -> Tensor:
    """(a, a^2, 1[a > 0]), (..., p) -> (..., 3 p)."""
    return torch.cat([doses, doses.square(), (doses > 0).to(doses)], -1)


def _products(left: Tensor, state: Tensor) -> Tensor:
    """Each dose feature times (1, s), (..., m), (..., D) -> (..., m (1 + D))."""
    return (left.unsqueeze(-1) * torch.nn.functional.pad(state, (1, 0), value=1.0).unsqueeze(-2)).flatten(-2)


def quadratic(features: Tensor) -> Tensor:
    """1, the features and their products, (n, f) -> (n, 1 + f + f (f + 1) / 2)."""
    first, second = torch.triu_indices(features.shape[1], features.shape[1], device=features.device)
    ones = torch.ones_like(features[:, :1])
    return torch.cat([ones, features, features[:, first] * features[:, second]], -1)


def _inverse(gram: Tensor) -> tuple[Tensor, int]:
    """The pseudo-inverse and the rank of a Gram matrix whose columns may depend on each other."""
    scale = gram.diagonal().clamp_min(1e-300).rsqrt()
    values, vectors = torch.linalg.eigh(gram * scale * scale.unsqueeze(-1))
    inverse = torch.where(values > RANK * values[-1], 1 / values.clamp_min(1e-300), 0.0)
    return (vectors * inverse) @ vectors.mT * scale * scale.unsqueeze(-1), int((inverse > 0).sum())
