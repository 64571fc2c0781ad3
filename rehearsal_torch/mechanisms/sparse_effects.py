"""Location-scale mechanisms plus sparse linear effects of the doses, chosen by forward selection.

The networks do not see the doses:

    v = h(x, q) + M_a s + b_a + phi(x, q) * u,        u ~ N(0, Sigma),

with the networks h and phi of the state s, the static features (together x) and the contextual features q.
The mechanism is element-wise bijective in u, and Lipschitz in x with constant

    L_h + max_a |M_a| + L_phi max_i |u_i|.

With residuals r_i = v_i - h_i(x, q) and scales phi_i(x, q) of the networks, which are trained first, the
effect of the doses on output i is

    E_i(s, a) = sum over selected (j, k) of  B_ijk  d_j(a) (1, s)_k,

with the features d(a) = (a, a^2, 1[a > 0]) of each of p doses a in [0, 1]. Given the action it is linear in
the state, E(s, a) = M_a s + b_a: it adds M_a to the Jacobian and nothing to the derivatives of higher order,
and the networks are evaluated once for all actions. Used by `surrogates.transition`.

Each output has a regression of its own, weighted by 1 / phi_i^2: a quadratic of the state and of the other
features is projected out first, because clinicians dose by the state; then, by forward selection, the term
with the largest |t| is added until that falls below a threshold or the largest number of terms is reached.
Everything follows from one Gram matrix per output.

A network that sees the doses next to the state would spread small spurious effects over all outputs, which
the likelihood does not notice but a search for the best action exploits.

Source: Tsirtsis and Gomez-Rodriguez (2023), Sec. 5 (the location-scale mechanism); partialling out: Frisch,
Waugh and Lovell.
"""

from collections.abc import Iterator
from copy import deepcopy
from typing import final

import torch
from torch import Tensor, nn

from rehearsal_torch.data.trainable_part import Examples, Solved, Trained
from rehearsal_torch.estimators.omitted_variable import quadratic
from rehearsal_torch.mechanisms.location_scale import LipschitzNetwork, LocationScale, LocationScaleTrajectory
from rehearsal_torch.mechanisms.mechanism import (
    Curvature,
    CurvedTrajectory,
    Trajectory,
    TransitionMechanism,
    spectral_bound,
)

ROWS = 8192
# A term is selected only if more than this share of it is independent of all others; the relative eigenvalue
# below which a direction of the controls counts as absent.
DEPENDENT, RANK = 1e-3, 1e-10


class ActionEffects(Solved):
    """E(s, a) = M_a s + b_a on D outputs of p doses, from terms with a |t| of at least the threshold."""

    def __init__(self, states: int, doses: int, threshold: float = 4.0, max_terms: int = 6) -> None:
        super().__init__()
        self.states, self.count, self.threshold, self.max_terms = states, doses, threshold, max_terms
        self.register_fitted(coefficients=(states, 3 * doses, 1 + states))
        self.coefficients: Tensor

    def clear(self) -> None:
        """Resets the effects: E = 0 until they are solved for again."""
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
        """Selects terms from features (n, f), first states, doses (n, p), residuals and scales (n, D), which
        are infinite where a residual is unknown: its row has no weight.
        """
        width, row_counts = examples[0].shape[1], examples[3].isfinite().sum(0).tolist()
        controls = 1 + width + width * (width + 1) // 2
        size = controls + 3 * self.count * (1 + self.states) + 1
        gram = torch.zeros(self.states, size, size, dtype=torch.float64, device=examples[0].device)
        for block in zip(*(example.split(ROWS) for example in examples), strict=True):
            self._add(gram, *(rows.to(torch.float64) for rows in block))
        shape = (3 * self.count, 1 + self.states)
        outputs = zip(gram, row_counts, strict=True)
        terms = torch.stack([self._forward_select(output, controls, count) for output, count in outputs])
        self.coefficients = terms.unflatten(1, shape)

    def _add(self, gram: Tensor, features: Tensor, doses: Tensor, residuals: Tensor, scales: Tensor) -> None:
        """Adds rows to the Gram matrix of controls, terms and residual of each output."""
        state = features[:, : self.states]
        columns = torch.cat([quadratic(features), _products(dose_features(doses), state)], -1)
        for output in range(self.states):
            rows = torch.cat([columns, residuals[:, output : output + 1]], -1)
            rows = rows / scales[:, output : output + 1]
            gram[output].addmm_(rows.mT, rows)

    def _forward_select(self, gram: Tensor, controls: int, rows: int) -> Tensor:
        """The coefficients of all terms, given the Gram matrix of controls, terms and residual."""
        inverse, rank = _inverse(gram[:controls, :controls])
        rest = gram[controls:, controls:] - gram[controls:, :controls] @ inverse @ gram[:controls, controls:]
        scales = gram.diagonal()[controls:-1].clamp_min(1e-300)
        chosen: list[int] = []
        for _ in range(self.max_terms):
            residual = rest
            if chosen:
                chosen_gram = rest[chosen][:, chosen]
                residual = rest - rest[:, chosen] @ torch.linalg.solve(chosen_gram, rest[chosen])
            norms = residual.diagonal()[:-1].clamp_min(0.0)
            if rows - rank - len(chosen) <= 1:
                break
            error = (residual[-1, -1].clamp_min(0.0) / (rows - rank - len(chosen) - 1)).sqrt()
            usable = norms > DEPENDENT**2 * scales
            t_values = torch.where(usable, residual[:-1, -1] / (norms.sqrt() * error).clamp_min(1e-300), 0.0)
            t_values[chosen] = 0.0
            best = int(t_values.abs().argmax())
            if float(t_values[best].abs()) < self.threshold:
                break
            chosen.append(best)
        coefficients = torch.zeros_like(scales)
        if chosen:
            coefficients[chosen] = torch.linalg.solve(rest[chosen][:, chosen], rest[chosen, -1])
        return coefficients


def dose_features(doses: Tensor) -> Tensor:
    """(a, a^2, 1[a > 0]), (..., p) -> (..., 3 p)."""
    return torch.cat([doses, doses.square(), (doses > 0).to(doses)], -1)


def _products(doses: Tensor, state: Tensor) -> Tensor:
    """Each dose feature times (1, s), (..., m), (..., D) -> (..., m (1 + D))."""
    return (doses.unsqueeze(-1) * torch.nn.functional.pad(state, (1, 0), value=1.0).unsqueeze(-2)).flatten(-2)


def _inverse(gram: Tensor) -> tuple[Tensor, int]:
    """The pseudo-inverse and the rank of a Gram matrix whose columns may depend on each other."""
    scale = gram.diagonal().clamp_min(1e-300).rsqrt()
    values, vectors = torch.linalg.eigh(gram * scale * scale.unsqueeze(-1))
    inverse = torch.where(values > RANK * values[-1], 1 / values.clamp_min(1e-300), 0.0)
    return (vectors * inverse) @ vectors.mT * scale * scale.unsqueeze(-1), int((inverse > 0).sum())


class SparseEffects(nn.Module, TransitionMechanism):
    """v = h(parents) + effects(doses) + phi(parents) * u with jointly normal u. Parents are those of the
    mechanism `blind`, which is trained first: the smooth ones, then contextual features; then p doses as
    levels in [-1/2, 1/2].
    """

    def __init__(self, blind: LocationScale, doses: int, threshold: float = 4.0) -> None:
        super().__init__()
        self.blind, self.doses = blind, doses
        self.smooth, self.outputs = blind.smooth, blind.outputs
        self.effects = ActionEffects(blind.outputs, doses, threshold)

    @property
    def networks(self) -> LipschitzNetwork:
        """h and phi before its softplus."""
        return self.blind.networks

    @property
    def factor(self) -> Tensor:
        """The trained parameters of Sigma; see `LocationScale`."""
        return self.blind.factor

    def moments(self, parents: Tensor) -> tuple[Tensor, Tensor]:
        """h + effects and phi, (..., p) -> (..., c) each."""
        location, scale = self.blind.moments(self.unseen(parents))
        return location + self.effect(parents), scale

    def unseen(self, parents: Tensor) -> Tensor:
        """The parents without the doses, (..., p) -> (..., p - doses)."""
        return parents[..., : -self.doses]

    def shares(self, parents: Tensor) -> Tensor:
        """The doses in [0, 1], (..., p) -> (..., doses)."""
        return parents[..., -self.doses :] + 0.5

    def effect(self, parents: Tensor) -> Tensor:
        """M_a s + b_a, (..., p) -> (..., c); zero before the effects have been solved for."""
        effect: Tensor = self.effects(parents[..., : self.outputs], self.shares(parents))
        return effect

    def forward(self, parents: Tensor, noise: Tensor) -> Tensor:
        """(..., p), (..., c) -> (..., c)."""
        return self.blind.forward(self.unseen(parents), noise) + self.effect(parents)

    def abduct(self, parents: Tensor, values: Tensor) -> Tensor:
        """(..., p), (..., c) -> (..., c)."""
        return self.blind.abduct(self.unseen(parents), values - self.effect(parents))

    def noise(self, shape: tuple[int, ...]) -> Tensor:
        """Samples of N(0, Sigma), (*shape, c)."""
        return self.blind.noise(shape)

    def log_likelihood(self, parents: Tensor, values: Tensor) -> Tensor:
        """log p(values | parents) of each row, (..., p), (..., c) -> (...)."""
        return self.blind.log_likelihood(self.unseen(parents), values - self.effect(parents))

    def parts(self, parents: Tensor, values: Tensor) -> Iterator[tuple[Solved | Trained, tuple[Tensor, ...]]]:
        """The networks without doses, then the effects, from their residuals in float64."""
        self.effects.clear()
        yield from self.blind.parts(self.unseen(parents), values)
        yield self.effects, self._effect_examples(deepcopy(self.blind).to(torch.float64), parents, values)

    @torch.no_grad()
    def _effect_examples(self, exact: LocationScale, parents: Tensor, values: Tensor) -> Examples:
        """The examples of `ActionEffects.solve`, with residuals of the float64 networks `exact`."""
        # In blocks: the hidden units of all rows would take more memory than anything else of a fit.
        widths = (parents.shape[-1] - self.doses, self.doses, self.outputs, self.outputs)
        arrays = tuple(
            torch.empty(len(parents), width, dtype=torch.float64, device=parents.device) for width in widths
        )
        for start in range(0, len(parents), ROWS):
            block = slice(start, start + ROWS)
            features = self.unseen(parents[block]).to(torch.float64)
            location, scale = exact.moments(features)
            residuals = values[block].to(torch.float64) - location
            unknown = residuals.isnan()
            residuals, scale = residuals.masked_fill(unknown, 0.0), scale.masked_fill(unknown, torch.inf)
            rows = features, self.shares(parents[block]).to(torch.float64), residuals, scale
            for target, part in zip(arrays, rows, strict=True):
                target[block] = part
        return arrays

    def lipschitz(self, noise: Tensor) -> Tensor:
        """K = L_h + |M| + L_phi max_i |u_i|, (..., c) -> (...), |M| summed over dose features."""
        blind_bound = self.blind.lipschitz(noise)
        if not self.effects.fitted:
            return blind_bound
        matrices = self.effects.coefficients[..., 1:].to(torch.float64).transpose(0, 1)
        return blind_bound + torch.linalg.matrix_norm(matrices, 2).sum()

    @torch.no_grad()
    def unroll(self, states: Tensor, fixed: Tensor, observed: Tensor) -> Trajectory:
        """The episode's trajectory in float64: (T, c), (T - 1, A, p - c), (T,) long."""
        states, fixed = states.to(torch.float64), fixed.to(torch.float64)
        networks, unseen = self.networks.exact(), self.unseen(fixed[:, :1])
        single_action = torch.zeros_like(observed)
        blind = LocationScaleTrajectory.fold(networks, self.blind.floor, states, unseen, single_action)
        matrices, shifts = self.effects.maps(self.shares(fixed).flatten(0, 1))
        steps = fixed.shape[:2]
        return SparseTrajectory(blind, observed, matrices.unflatten(0, steps), shifts.unflatten(0, steps))


@final
class SparseTrajectory(CurvedTrajectory):
    """F_t(x, a) = h(x, q_t) + M_{t,a} x + b_{t,a} + phi(x, q_t) * u_t, from the trajectory of the networks
    alone with a single action, the actions taken (T,) long, M (T - 1, A, D, D) and b (T - 1, A, D).
    """

    def __init__(
        self, blind: LocationScaleTrajectory, observed: Tensor, matrices: Tensor, shifts: Tensor
    ) -> None:
        super().__init__(blind.states, observed, matrices.shape[1])
        self.matrices, self.shifts = matrices, shifts
        time = torch.arange(len(shifts), device=observed.device)
        previous = blind.states[:-1]
        taken = matrices[time, observed[:-1]], shifts[time, observed[:-1]]
        effect = (taken[0] @ previous.unsqueeze(-1))[..., 0] + taken[1]
        location, scale = blind.moments(previous, blind.offsets[:, 0])
        self.blind = blind.with_noise((blind.states[1:] - location - effect) / scale)
        self.noise = self.blind.noise
        # (1, x) times this is the effect of each action: one narrow product for all actions.
        self._effects = torch.cat([shifts.unsqueeze(-1), matrices], -1).flatten(1, 2).mT.contiguous()

    def step(self, states: Tensor, time: int, actions: Tensor) -> Tensor:
        """(n, D), t, (n,) or () long -> (n, D)."""
        blind = self.blind.step(states, time, torch.zeros_like(actions))
        matrices, shifts = self.matrices[time, actions], self.shifts[time, actions]
        if actions.ndim == 0:
            return blind + torch.addmm(shifts, states, matrices.mT)
        return blind + (matrices @ states.unsqueeze(-1))[..., 0] + shifts

    def branch(self, states: Tensor, time: int, actions: Tensor | None = None) -> Tensor:
        """(n, D), t, (A',) long -> (n, A', D)."""
        blind = self.blind.step(states, time, self.observed.new_zeros(()))
        columns = self._effects[time].unflatten(-1, (self.actions, -1))
        selected = (columns if actions is None else columns[:, actions]).flatten(1)
        effects = torch.addmm(selected[0], states, selected[1:]).unflatten(-1, (-1, states.shape[-1]))
        return blind.unsqueeze(1) + effects

    def lipschitz(self) -> Tensor:
        """(T - 1,) float64, L_h + max_a |M_a| + L_phi max_i |u_i| from the weights in use."""
        norms = torch.linalg.matrix_norm(self.matrices.to(torch.float64), 2).amax(-1)
        return self.blind.lipschitz() + norms * (1 + 1e-9)

    def jacobians(self, states: Tensor, time: int) -> Tensor:
        """(n, D), t -> (n, A, D, D)."""
        return self.blind.jacobians(states, time) + self.matrices[time]

    def curvature(self, states: Tensor, time: int, covectors: Tensor, radii: Tensor) -> Curvature:
        """The curvature of the networks alone, apart from the first derivative."""
        blind = self.blind.curvature(states, time, covectors, radii)
        shape = (len(states), self.actions)
        jacobian = blind.jacobian + self.matrices[time]
        jacobian_norm = torch.minimum(
            spectral_bound(jacobian) + blind.second_derivative_norm * radii[:, None],
            blind.jacobian_norm + spectral_bound(self.matrices[time]),
        )
        hessian, second = blind.hessian.expand(*shape, -1, -1), blind.second_derivative_norm.expand(shape)
        return Curvature(jacobian, hessian, jacobian_norm, second, blind.hessian_lipschitz.expand(shape))
