"""Transition model in closed form: ridge regression on hinges and products of the state, and on doses.

With z the varying state and q the static and contextual features, in standard deviations, and c the state
within its observed range, widened by a tenth on both sides, the next state is

    z'_j = z_j + phi(z, q, a) W_j + sum over the causes k of j of psi(z'_k) V_kj + b_j + e_j,
    m = (1, c, q),
    phi = (m, bends (c_i - x)+, products c_i c_k, m for each level of a, z_0),      psi(c) = (c, bends of c),

with b the level of a unit, z_0 its first state, and e noise (`estimators.panel_ridge`). The causes within a
step are found from the rows: where a pressure below a limit makes lactate rise in the same step, the noise of
the pressure is no noise of lactate, and under other doses it would have done something else.

**Counterfactuals.** The residual of a step, u = z' - z - phi W - psi V, which contains the unit's level, is
kept, and the states of the next step are computed in the causal order within the step.

**States that no action is seen to move** keep their observed course. For lags h = 1, 2, 3, z_j(t+h) - z_j(t)
is regressed on the levels of a(t) beside the rest of phi; p_j is three times the smallest p-value of the
three tests. Where a hidden cause drives such a state, its proxies, doses among them, would seem to move it,
and this false effect feeds back through all later steps: one such error is worse than all others, so that
the level of all D tests together is .01.

**Errors of the form.** The places of the bends are not known. Each refit draws its own, one uniformly between
quantiles in each third (of psi, each fifth) of the values, so that the spread of the refits includes how much
an answer depends on them. Used by `surrogates.transition_ridge`.

Source: Hastie, Tibshirani and Friedman (2009), Ch. 5 (bends); Pearl (2009), Ch. 7 (abduction); Denison,
Mallick and Smith (1998) (bends at random). The form was chosen on worlds of other classes than its own.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import torch
from torch import Tensor

from rehearsal_torch.data.dose_levels import DoseLevels
from rehearsal_torch.data.scaling import quantiles
from rehearsal_torch.data.trainable_part import Part
from rehearsal_torch.estimators.panel_ridge import Panel, fit_panel, levels, moved, within_step
from rehearsal_torch.mechanisms.mechanism import Trajectory, replay
from rehearsal_torch.seeding import generator

BENDS, LATER = 3, 5
# The share of the rows beyond the outermost bends of a refit.
OUTER = 0.02
WIDENED = 0.1
PENALTY = 1.0
LAGS = 3
UNMOVED = 0.01
REFITS = 60
# The fewest units with, and without, a level for which it is tested: one unit alone has no spread.
FEWEST = 5


@dataclass(frozen=True)
class Steps:
    """Transitions of units in float64, those of a unit in their order.

    Attributes:
        states: (n, D), the varying features, on any scale.
        others: (n, Q), static and contextual features.
        actions: (n,) long.
        following: (n, D), the states of the next step, NaN where not measured.
        begins: Whether a row is the first of its unit, (n,) bool.
    """

    states: Tensor
    others: Tensor
    actions: Tensor
    following: Tensor
    begins: Tensor

    @property
    def lengths(self) -> Tensor:
        """Rows of each unit, (U,) long."""
        first = self.begins.nonzero()[:, 0]
        return torch.cat([first, first.new_tensor([len(self.begins)])]).diff()

    def units(self, kept: Tensor) -> Self:
        """The rows of the units of a mask, (U,) bool."""
        rows = kept.repeat_interleave(self.lengths)
        return type(self)(*(values[rows] for values in vars(self).values()))


@dataclass(frozen=True)
class Bends:
    """The knots of the bends, of one fit or of R refits: (..., 3, D), of psi (..., 5, D)."""

    early: Tensor
    late: Tensor

    def unsqueezed(self) -> Self:
        """With a dimension for rows after that of the refits."""
        return type(self)(self.early.unsqueeze(-3), self.late.unsqueeze(-3))


class BentTransition(Part):
    """The closed form of D states and Q other features, fitted to steps, with R refits."""

    def __init__(self, states: int, others: int, doses: DoseLevels, refits: int = REFITS) -> None:
        super().__init__()
        self.outputs, self.refits = states, refits
        self._doses = (doses,)  # a part of the surrogate, not of this one
        m = 1 + states + others
        products, levels = states * (states + 1) // 2, len(doses.names) * (doses.count - 1)
        rows = m + BENDS * states + products + levels * m + states + states * (1 + LATER)
        self.register_fitted(
            centre=(states + others,),
            spread=(states + others,),
            ends=(2, states),
            early=(1 + refits, BENDS, states),
            late=(1 + refits, LATER, states),
            weights=(rows, states),
            refitted=(refits, rows, states),
            kappa=(states,),
            unmoved=(states,),
            causes=(states, states),
            order=(states,),
            reduced=(states,),
        )

    @property
    def doses(self) -> DoseLevels:
        """The levels of the actions."""
        return self._doses[0]

    @property
    def held(self) -> Tensor:
        """The mask of states that keep their observed course, (D,) bool."""
        return self.unmoved > UNMOVED / self.outputs

    def bends(self, refits: bool = False) -> Bends:
        """The bends of the fit, or of all refits."""
        index = slice(1, None) if refits else 0
        return Bends(self.early[index], self.late[index])

    def fit(self, steps: Steps, unmoved: Tensor, seed: int, told: Sequence[int] = ()) -> None:
        """Fits the form, given the states' p-values `unmoved`, (D,), and states in a known order, `told`."""
        z, q, next_z = self._scale(steps)
        imputed, change = _impute(z, next_z), next_z - z
        self.unmoved, bends = unmoved, self._draw_bends(z, imputed)
        panel = Panel(self._design(z, q, steps, bends), change, steps.lengths)
        self.kappa = levels(panel, PENALTY)
        psi = self.psi(imputed, bends)
        causal, order = within_step(panel, self.kappa, psi, self.held, PENALTY, told)
        self.causes, self.order = causal.to(z), order.to(z)
        everywhere = torch.ones_like(panel.features[0], dtype=torch.bool)
        lagged = everywhere.unsqueeze(1).expand(-1, self.outputs)
        weights = fit_panel(panel, self.kappa, lagged, PENALTY)
        self.reduced = torch.zeros_like(self.kappa)
        for outputs, part in panel.alike():
            residual = part.values - part.features @ weights[:, outputs]
            self.reduced[outputs] = residual.var(0, correction=0)
        mask = torch.cat([lagged, causal.repeat_interleave(psi.shape[-1], 0)])
        draws, random = [bends], generator(seed)
        draws += [self._draw_bends(z, imputed, random) for _ in range(self.refits)]
        self.early, self.late = (torch.stack([getattr(draw, name) for draw in draws]) for name in vars(bends))
        fits = []
        for index, draw in enumerate(draws):
            features = torch.cat([self._design(z, q, steps, draw), self.psi(imputed, draw).flatten(1)], 1)
            panel = Panel(features, change, steps.lengths)
            fits.append(fit_panel(panel, self.kappa, mask, PENALTY, random if index else None))
        # In half the memory; a refit still replays the observed states exactly.
        self.weights, self.refitted = fits[0], torch.stack(fits[1:]).to(torch.float32)

    def p_values(self, steps: Steps) -> Tensor:
        """p-values of the hypotheses that no action moves a state, (D,); fits the scales alone."""
        z, q, next_z = self._scale(steps)
        lengths, marks = steps.lengths, self.marks(steps.actions).to(z)
        base = self.features(z, q, self._draw_bends(z, _impute(z, next_z)))[0]
        basis = torch.cat([base, self._initial_state(z, steps)], 1)
        unit = torch.arange(len(lengths), device=z.device).repeat_interleave(lengths)
        by_lag = [torch.ones_like(z[0])]
        for lag in range(LAGS):
            rows = torch.arange(len(z) - lag, device=z.device)
            rows = rows[unit[rows + lag] == unit[rows]]
            if not len(rows):
                break
            by_lag.append(torch.ones_like(z[0]))
            design, counts = torch.cat([basis[rows], marks[rows]], 1), (lengths - lag).clamp_min(0)
            for outputs, part in Panel(design, next_z[rows + lag] - z[rows], counts).alike():
                controls, doses = part.features.split([basis.shape[1], marks.shape[1]], 1)
                total = marks.new_zeros(len(counts), marks.shape[1]).index_add_(0, part.unit, doses)
                exposed, unexposed = (total > 0).sum(0), (total < part.lengths.unsqueeze(1)).sum(0)
                tested = torch.minimum(exposed, unexposed) >= FEWEST
                features, row_counts = (
                    torch.cat([controls, doses[:, tested]], 1),
                    part.lengths[part.lengths > 0],
                )
                panel = Panel(features, part.values, row_counts)
                by_lag[-1][outputs] = moved(panel, int(tested.sum()), PENALTY).to(z)
        return (max(len(by_lag) - 1, 1) * torch.stack(by_lag).amin(0)).clamp_max(1.0)

    def left(self, steps: Steps) -> Tensor:
        """The residual of each step without the level of the unit, (n, D), in standard deviations."""
        z, q = self.scaled(steps.states, steps.others)
        next_z, bends = self.scaled(steps.following, steps.others)[0], self.bends()
        late = self.psi(_impute(z, next_z), bends)
        features = torch.cat([self._design(z, q, steps, bends), late.flatten(1)], 1)
        residual, lengths = next_z - z - features @ self.weights, steps.lengths
        unit = torch.arange(len(lengths), device=z.device).repeat_interleave(lengths)
        sums, counts = (
            residual.new_zeros(len(lengths), self.outputs).index_add_(0, unit, values)
            for values in (residual.where(~residual.isnan(), 0.0), (~residual.isnan()).to(residual))
        )
        return residual - (self.kappa * sums / (1 + self.kappa * counts))[unit]

    def scaled(self, states: Tensor, others: Tensor) -> tuple[Tensor, Tensor]:
        """z and q, (..., D) and (..., Q)."""
        width = self.outputs
        z = (states - self.centre[:width]) / self.spread[:width]
        return z, (others - self.centre[width:]) / self.spread[width:]

    def features(self, z: Tensor, q: Tensor, bends: Bends) -> tuple[Tensor, Tensor]:
        """The columns of phi without doses and z_0, (..., p), and m, (..., 1 + D + Q)."""
        c = z.clamp(self.ends[0], self.ends[1])
        m = torch.cat([torch.ones_like(c[..., :1]), c, q.expand(*c.shape[:-1], -1)], -1)
        hinges = (c.unsqueeze(-2) - bends.early).clamp_min(0).flatten(-2)
        row, column = torch.triu_indices(self.outputs, self.outputs)
        return torch.cat([m, hinges, c[..., row] * c[..., column]], -1), m

    def psi(self, ahead: Tensor, bends: Bends, some: Sequence[int] | slice = slice(None)) -> Tensor:
        """psi of some of the states, (..., D) -> (..., K, B)."""
        c = ahead[..., some].clamp(self.ends[0, some], self.ends[1, some]).unsqueeze(-1)
        hinges = (c - bends.late[..., some].mT).clamp_min(0)
        return torch.cat([c.expand(*hinges.shape[:-1], 1), hinges], -1)

    def marks(self, actions: Tensor) -> Tensor:
        """Indicators of an action's levels above 0, dose by dose, (...) long -> (..., L) bool."""
        levels = torch.arange(1, self.doses.count, device=actions.device)
        return (self.doses.levels(actions).unsqueeze(-1) == levels).flatten(-2)

    def trajectory(
        self, states: Tensor, others: Tensor, observed: Tensor, refits: bool = False
    ) -> "BentTrajectory":
        """The steps of an episode under other actions, with its residuals: (T, D), (T, Q), (T,)."""
        return BentTrajectory(self, states.to(torch.float64), others.to(torch.float64), observed, refits)

    def _scale(self, steps: Steps) -> tuple[Tensor, Tensor, Tensor]:
        """Fits scales and ends; returns z, q and z', (n, D), (n, Q), (n, D), NaN where not measured."""
        rows = torch.cat([steps.states, steps.others], 1)
        spread = rows.std(0, correction=0)
        self.centre, self.spread = rows.mean(0), torch.where(spread > 0, spread, 1.0)
        z, q = self.scaled(steps.states, steps.others)
        next_z = self.scaled(steps.following, steps.others)[0]
        low, high = torch.cat([z, _impute(z, next_z)]).aminmax(dim=0)
        margin = WIDENED * (high - low)
        self.ends = torch.stack([low - margin, high + margin])
        return z, q, next_z

    def _draw_bends(self, z: Tensor, imputed: Tensor, draws: torch.Generator | None = None) -> Bends:
        """Bends at the middle quantile of each part of the rows, or at drawn ones."""
        levels = []
        for count in (BENDS, LATER):
            fractions = torch.full((count,), 0.5, dtype=torch.float64)
            if draws is not None:
                fractions = torch.rand(count, generator=draws, dtype=torch.float64)
            positions = (torch.arange(count) + fractions) / count
            levels.append(OUTER + (1 - 2 * OUTER) * positions)
        return Bends(quantiles(z, levels[0]), quantiles(imputed, levels[1]))

    def _design(self, z: Tensor, q: Tensor, steps: Steps, bends: Bends) -> Tensor:
        """phi, (n, p)."""
        base, m = self.features(z, q, bends)
        doses = self.marks(steps.actions).to(m).unsqueeze(-1) * m.unsqueeze(-2)
        return torch.cat([base, doses.flatten(-2), self._initial_state(z, steps)], 1)

    def _initial_state(self, z: Tensor, steps: Steps) -> Tensor:
        """z_0 of each row's unit, (n, D); 0 for a unit of one row, whose state it would be."""
        repeated = (steps.lengths > 1).unsqueeze(1)
        return (z[steps.begins] * repeated).repeat_interleave(steps.lengths, 0)


def _impute(z: Tensor, next_z: Tensor) -> Tensor:
    """The next states as causes within the step, with those not measured carried forward."""
    return next_z.where(~next_z.isnan(), z)


class BentTrajectory(Trajectory):
    """The steps of one episode by the fit, or by R refits at once: states (R, n, D) in place of (n, D)."""

    def __init__(
        self, form: BentTransition, states: Tensor, others: Tensor, observed: Tensor, refits: bool
    ) -> None:
        super().__init__(states, observed, form.doses.actions)
        self.form, self.bends, width = form, form.bends(refits), form.outputs
        self.rows = self.bends.unsqueezed() if refits else self.bends
        weights = form.refitted.to(torch.float64) if refits else form.weights
        self.path, self.others = form.scaled(states, others)
        self.marks = form.marks(torch.arange(self.actions, device=states.device)).to(self.path)
        base, m = (part.shape[-1] for part in form.features(self.path[:1], self.others[:1], form.bends()))
        sizes = [base, self.marks.shape[1] * m, width, width * (1 + LATER)]
        self.base, doses, initial, within = weights.split(sizes, -2)
        self.dosed, self.within = doses.unflatten(-2, (-1, m)), within.unflatten(-2, (width, -1))
        self._initial_state, self.held = self.path[:1] @ initial, form.held
        self.acting: list[tuple[int, list[int], Tensor]] = []
        for effect in form.order.long().tolist():
            if causes := form.causes[:, effect].nonzero()[:, 0].tolist():
                self.acting.append((effect, causes, self.within[..., causes, :, effect]))
        previous = self.path[:-1].expand(*weights.shape[:-2], -1, -1)
        early = self._lagged(previous, self.others[:-1], observed[:-1])
        late = torch.einsum("...tkb,...kbd->...td", form.psi(self.path[1:], self.rows), self.within)
        self.noise = self.path[1:] - early - late

    def step(self, states: Tensor, time: int, actions: Tensor) -> Tensor:
        """(..., n, D), t, (n,) or () long -> (..., n, D)."""
        early = self._lagged(self.scaled(states), self.others[time], actions)
        return self._add_causes(early + self.noise[..., time : time + 1, :], time, self.rows)

    def branch(self, states: Tensor, time: int, actions: Tensor | None = None) -> Tensor:
        """(n, D), t, (A',) long -> (n, A', D); of the fit alone."""
        z, marks = self.scaled(states), self.marks if actions is None else self.marks[actions]
        base, m = self.form.features(z, self.others[time], self.bends)
        early = (z + base @ self.base + self._initial_state + self.noise[time]).unsqueeze(1)
        return self._add_causes(early + marks @ (m @ self.dosed).transpose(0, 1), time, self.bends)

    def replays(self, actions: Tensor) -> Tensor:
        """The states by each refit under action sequences, (n, H) long -> (R, n, T, D)."""
        return replay(self, actions, len(self.noise))

    def scaled(self, states: Tensor) -> Tensor:
        """z, (..., D)."""
        width = self.form.outputs
        return (states - self.form.centre[:width]) / self.form.spread[:width]

    def _lagged(self, z: Tensor, others: Tensor, actions: Tensor) -> Tensor:
        """z + phi W, (..., n, D), under an action per row, (n,), or one for all rows, ()."""
        base, m = self.form.features(z, others, self.rows)
        early, marks = z + base @ self.base + self._initial_state, self.marks[actions]
        if not actions.ndim:
            return early + m @ torch.einsum("l,...lmd->...md", marks, self.dosed)
        doses = (marks.unsqueeze(-1) * m.unsqueeze(-2)).flatten(-2)
        return early + doses @ self.dosed.flatten(-3, -2)

    def _add_causes(self, early: Tensor, time: int, bends: Bends) -> Tensor:
        """The next states, with the effects within the step added state by state in causal order."""
        form, width = self.form, self.form.outputs
        z = torch.where(self.held, self.path[time + 1], early)
        for effect, causes, weights in self.acting:
            psi = form.psi(z, bends, causes).flatten(-2)
            z[..., effect] += (psi @ weights.flatten(-2).unsqueeze(-1)).squeeze(-1)
        states = z * form.spread[:width] + form.centre[:width]
        return torch.where(self.held, self.states[time + 1], states)
