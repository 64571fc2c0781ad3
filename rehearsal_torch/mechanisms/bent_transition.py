"""One time step in closed form: a ridge regression on bends and products of the state, and on doses.

With z the varying state and q the static and contextual features, in standard deviations, and c the state
within its observed range, widened by a tenth on both sides, the next state is

    z'_j = z_j + phi(z, q, a) W_j + sum over the causes k of j of psi(z'_k) V_kj + b_j + e_j,
    m = (1, c, q),
    phi = (m, bends (c_i - x)+, products c_i c_k, m for each level of a, z_0),      psi(c) = (c, bends of c),

with b the level of a unit, z_0 its first state, and e noise (`estimators.panel_ridge`). The causes within a
step are found from the rows: where a pressure below a limit makes lactate rise in the same step, the noise of
the pressure is no noise of lactate, and under other doses it would have done something else.

**Counterfactuals.** What is left of a step, u = z' - z - phi W - psi V with the unit's level in it, is kept,
and the states of the next step come about in their order.

**States that no action is seen to move** keep their observed course. For lags h = 1, 2, 3, z_j(t+h) - z_j(t)
is regressed on the levels of a(t) beside the rest of phi; p_j is three times the smallest p-value of the
three tests. Where a hidden cause drives such a state, its proxies, doses among them, would seem to move it,
and what seems to be moved comes back through all later steps: one such error is worse than all others, so
that the level of all D tests together is .01.

**Errors of the form.** Where the bends are is not known. Each refit has bends of its own, one drawn uniformly
between quantiles in each third (of psi, each fifth) of the values, so that the spread of the refits also
knows how much an answer depends on them.

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
# The fewest units with, and without, a level in which it is tested: one unit alone has no spread.
FEWEST = 5


@dataclass(frozen=True)
class Steps:
    """Transitions of units in float64, those of a unit in their order.

    Attributes:
        states: (n, D), the varying features, on any scale.
        others: (n, Q), static and contextual features.
        actions: (n,) long.
        following: (n, D), the states of the next step, NaN where they were not measured.
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
        """The rows of some units, (U,) bool."""
        rows = kept.repeat_interleave(self.lengths)
        return type(self)(*(each[rows] for each in vars(self).values()))


@dataclass(frozen=True)
class Bends:
    """Where the bends are, of one fit or of R refits: (..., 3, D), of psi (..., 5, D)."""

    early: Tensor
    late: Tensor

    def unsqueezed(self) -> Self:
        """With a dimension for rows after that of the refits."""
        return type(self)(self.early.unsqueeze(-3), self.late.unsqueeze(-3))


class BentTransition(Part):
    """The closed form, fitted to steps, with its refits.

    Args:
        states: D.
        others: Q.
        doses: The levels of the actions.
        refits: R.
    """

    def __init__(self, states: int, others: int, doses: DoseLevels, refits: int = REFITS) -> None:
        super().__init__()
        self.outputs, self.refits = states, refits
        self._doses = (doses,)  # a part of the surrogate, not of this one
        own = 1 + states + others
        products, marks = states * (states + 1) // 2, len(doses.names) * (doses.count - 1)
        whole = own + BENDS * states + products + marks * own + states + states * (1 + LATER)
        self.register_fitted(
            centre=(states + others,),
            spread=(states + others,),
            ends=(2, states),
            early=(1 + refits, BENDS, states),
            late=(1 + refits, LATER, states),
            weights=(whole, states),
            refitted=(refits, whole, states),
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
        """Which states keep their observed course, (D,) bool."""
        return self.unmoved > UNMOVED / self.outputs

    def bends(self, refits: bool = False) -> Bends:
        """Those of the fit, or of all refits."""
        which = slice(1, None) if refits else 0
        return Bends(self.early[which], self.late[which])

    def fit(self, steps: Steps, unmoved: Tensor, seed: int, told: Sequence[int] = ()) -> None:
        """Fits it; `unmoved` are the p-values of the states, (D,), and `told` states in their order."""
        z, q, after = self._scale(steps)
        ahead, change = _carried(z, after), after - z
        self.unmoved, bends = unmoved, self._bends(z, ahead)
        panel = Panel(self._shown(z, q, steps, bends), change, steps.lengths)
        self.kappa = levels(panel, PENALTY)
        psi = self.psi(ahead, bends)
        acts, order = within_step(panel, self.kappa, psi, self.held, PENALTY, told)
        self.causes, self.order = acts.to(z), order.to(z)
        everywhere = torch.ones_like(panel.features[0], dtype=torch.bool)
        early = everywhere.unsqueeze(1).expand(-1, self.outputs)
        weights = fit_panel(panel, self.kappa, early, PENALTY)
        self.reduced = torch.zeros_like(self.kappa)
        for places, part in panel.alike():
            left = part.values - part.features @ weights[:, places]
            self.reduced[places] = left.var(0, correction=0)
        used = torch.cat([early, acts.repeat_interleave(psi.shape[-1], 0)])
        drawn, random = [bends], generator(seed)
        drawn += [self._bends(z, ahead, random) for _ in range(self.refits)]
        self.early, self.late = (torch.stack([getattr(each, name) for each in drawn]) for name in vars(bends))
        fits = []
        for place, each in enumerate(drawn):
            features = torch.cat([self._shown(z, q, steps, each), self.psi(ahead, each).flatten(1)], 1)
            panel = Panel(features, change, steps.lengths)
            fits.append(fit_panel(panel, self.kappa, used, PENALTY, random if place else None))
        # Half the memory; a refit replays what was observed exactly all the same.
        self.weights, self.refitted = fits[0], torch.stack(fits[1:]).to(torch.float32)

    def p_values(self, steps: Steps) -> Tensor:
        """Those of the states, (D,), that no action moves them; fits the scales alone."""
        z, q, after = self._scale(steps)
        lengths, marks = steps.lengths, self.marks(steps.actions).to(z)
        base = self.features(z, q, self._bends(z, _carried(z, after)))[0]
        basis = torch.cat([base, self._start(z, steps)], 1)
        unit = torch.arange(len(lengths), device=z.device).repeat_interleave(lengths)
        found = [torch.ones_like(z[0])]
        for lag in range(LAGS):
            row = torch.arange(len(z) - lag, device=z.device)
            row = row[unit[row + lag] == unit[row]]
            if not len(row):
                break
            found.append(torch.ones_like(z[0]))
            shown, left = torch.cat([basis[row], marks[row]], 1), (lengths - lag).clamp_min(0)
            for places, part in Panel(shown, after[row + lag] - z[row], left).alike():
                own, given = part.features.split([basis.shape[1], marks.shape[1]], 1)
                total = marks.new_zeros(len(left), marks.shape[1]).index_add_(0, part.unit, given)
                with_it, without = (total > 0).sum(0), (total < part.lengths.unsqueeze(1)).sum(0)
                seen = torch.minimum(with_it, without) >= FEWEST
                features, some = torch.cat([own, given[:, seen]], 1), part.lengths[part.lengths > 0]
                panel = Panel(features, part.values, some)
                found[-1][places] = moved(panel, int(seen.sum()), PENALTY).to(z)
        return (max(len(found) - 1, 1) * torch.stack(found).amin(0)).clamp_max(1.0)

    def left(self, steps: Steps) -> Tensor:
        """What is left of each step without its level of the unit, (n, D), in standard deviations."""
        z, q = self.scaled(steps.states, steps.others)
        after, bends = self.scaled(steps.following, steps.others)[0], self.bends()
        late = self.psi(_carried(z, after), bends)
        features = torch.cat([self._shown(z, q, steps, bends), late.flatten(1)], 1)
        left, lengths = after - z - features @ self.weights, steps.lengths
        unit = torch.arange(len(lengths), device=z.device).repeat_interleave(lengths)
        total, count = (
            left.new_zeros(len(lengths), self.outputs).index_add_(0, unit, each)
            for each in (left.where(~left.isnan(), 0.0), (~left.isnan()).to(left))
        )
        return left - (self.kappa * total / (1 + self.kappa * count))[unit]

    def scaled(self, states: Tensor, others: Tensor) -> tuple[Tensor, Tensor]:
        """z and q, (..., D) and (..., Q)."""
        width = self.outputs
        z = (states - self.centre[:width]) / self.spread[:width]
        return z, (others - self.centre[width:]) / self.spread[width:]

    def features(self, z: Tensor, q: Tensor, bends: Bends) -> tuple[Tensor, Tensor]:
        """What of phi no dose is in, without z_0, (..., p), and m, (..., 1 + D + Q)."""
        c = z.clamp(self.ends[0], self.ends[1])
        own = torch.cat([torch.ones_like(c[..., :1]), c, q.expand(*c.shape[:-1], -1)], -1)
        bent = (c.unsqueeze(-2) - bends.early).clamp_min(0).flatten(-2)
        row, column = torch.triu_indices(self.outputs, self.outputs)
        return torch.cat([own, bent, c[..., row] * c[..., column]], -1), own

    def psi(self, ahead: Tensor, bends: Bends, some: Sequence[int] | slice = slice(None)) -> Tensor:
        """Of some of the states, (..., D) -> (..., K, B)."""
        c = ahead[..., some].clamp(self.ends[0, some], self.ends[1, some]).unsqueeze(-1)
        bent = (c - bends.late[..., some].mT).clamp_min(0)
        return torch.cat([c.expand(*bent.shape[:-1], 1), bent], -1)

    def marks(self, actions: Tensor) -> Tensor:
        """Which levels an action has, (...) long -> (..., L) bool: those above 0, dose by dose."""
        every = torch.arange(1, self.doses.count, device=actions.device)
        return (self.doses.levels(actions).unsqueeze(-1) == every).flatten(-2)

    def trajectory(
        self, states: Tensor, others: Tensor, observed: Tensor, refits: bool = False
    ) -> "BentTrajectory":
        """The steps of an episode under other actions, with what is left of its own: (T, D), (T, Q), (T,)."""
        return BentTrajectory(self, states.to(torch.float64), others.to(torch.float64), observed, refits)

    def _scale(self, steps: Steps) -> tuple[Tensor, Tensor, Tensor]:
        """Fits scales and ends. z, q and z', (n, D), (n, Q), (n, D), NaN where it was not measured."""
        rows = torch.cat([steps.states, steps.others], 1)
        spread = rows.std(0, correction=0)
        self.centre, self.spread = rows.mean(0), torch.where(spread > 0, spread, 1.0)
        z, q = self.scaled(steps.states, steps.others)
        after = self.scaled(steps.following, steps.others)[0]
        low, high = torch.cat([z, _carried(z, after)]).aminmax(dim=0)
        reach = WIDENED * (high - low)
        self.ends = torch.stack([low - reach, high + reach])
        return z, q, after

    def _bends(self, z: Tensor, ahead: Tensor, draws: torch.Generator | None = None) -> Bends:
        """In the middle of each part of the rows, or where they are drawn."""
        places = []
        for count in (BENDS, LATER):
            inside = torch.full((count,), 0.5, dtype=torch.float64)
            if draws is not None:
                inside = torch.rand(count, generator=draws, dtype=torch.float64)
            shares = (torch.arange(count) + inside) / count
            places.append(OUTER + (1 - 2 * OUTER) * shares)
        return Bends(quantiles(z, places[0]), quantiles(ahead, places[1]))

    def _shown(self, z: Tensor, q: Tensor, steps: Steps, bends: Bends) -> Tensor:
        """phi, (n, p)."""
        base, own = self.features(z, q, bends)
        doses = self.marks(steps.actions).to(own).unsqueeze(-1) * own.unsqueeze(-2)
        return torch.cat([base, doses.flatten(-2), self._start(z, steps)], 1)

    def _start(self, z: Tensor, steps: Steps) -> Tensor:
        """z_0 of each row's unit, (n, D); 0 of a row that stands alone, of which it would be the state."""
        known = (steps.lengths > 1).unsqueeze(1)
        return (z[steps.begins] * known).repeat_interleave(steps.lengths, 0)


def _carried(z: Tensor, after: Tensor) -> Tensor:
    """The next states as causes within the step: those that were not measured, as they were before."""
    return after.where(~after.isnan(), z)


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
        base, own = (part.shape[-1] for part in form.features(self.path[:1], self.others[:1], form.bends()))
        sizes = [base, self.marks.shape[1] * own, width, width * (1 + LATER)]
        self.base, dosed, start, within = weights.split(sizes, -2)
        self.dosed, self.within = dosed.unflatten(-2, (-1, own)), within.unflatten(-2, (width, -1))
        self._start, self.held = self.path[:1] @ start, form.held
        self.acting: list[tuple[int, list[int], Tensor]] = []
        for effect in form.order.long().tolist():
            if causes := form.causes[:, effect].nonzero()[:, 0].tolist():
                self.acting.append((effect, causes, self.within[..., causes, :, effect]))
        before = self.path[:-1].expand(*weights.shape[:-2], -1, -1)
        early = self._early(before, self.others[:-1], observed[:-1])
        late = torch.einsum("...tkb,...kbd->...td", form.psi(self.path[1:], self.rows), self.within)
        self.noise = self.path[1:] - early - late

    def step(self, states: Tensor, time: int, actions: Tensor) -> Tensor:
        """(..., n, D), t, (n,) or () long -> (..., n, D)."""
        early = self._early(self.scaled(states), self.others[time], actions)
        return self._settled(early + self.noise[..., time : time + 1, :], time, self.rows)

    def branch(self, states: Tensor, time: int, actions: Tensor | None = None) -> Tensor:
        """(n, D), t, (A',) long -> (n, A', D); of the fit alone."""
        z, marks = self.scaled(states), self.marks if actions is None else self.marks[actions]
        base, own = self.form.features(z, self.others[time], self.bends)
        early = (z + base @ self.base + self._start + self.noise[time]).unsqueeze(1)
        return self._settled(early + marks @ (own @ self.dosed).transpose(0, 1), time, self.bends)

    def replays(self, actions: Tensor) -> Tensor:
        """The states by each refit under action sequences, (n, H) long -> (R, n, T, D)."""
        return replay(self, actions, len(self.noise))

    def scaled(self, states: Tensor) -> Tensor:
        """z, (..., D)."""
        width = self.form.outputs
        return (states - self.form.centre[:width]) / self.form.spread[:width]

    def _early(self, z: Tensor, others: Tensor, actions: Tensor) -> Tensor:
        """z + phi W, (..., n, D), under the actions of the rows, (n,), or of all, ()."""
        base, own = self.form.features(z, others, self.rows)
        early, marks = z + base @ self.base + self._start, self.marks[actions]
        if not actions.ndim:
            return early + own @ torch.einsum("l,...lmd->...md", marks, self.dosed)
        doses = (marks.unsqueeze(-1) * own.unsqueeze(-2)).flatten(-2)
        return early + doses @ self.dosed.flatten(-3, -2)

    def _settled(self, early: Tensor, time: int, bends: Bends) -> Tensor:
        """The next states, with what acts within the step added state by state in their order."""
        form, width = self.form, self.form.outputs
        z = torch.where(self.held, self.path[time + 1], early)
        for effect, causes, weights in self.acting:
            psi = form.psi(z, bends, causes).flatten(-2)
            z[..., effect] += (psi @ weights.flatten(-2).unsqueeze(-1)).squeeze(-1)
        found = z * form.spread[:width] + form.centre[:width]
        return torch.where(self.held, self.states[time + 1], found)
