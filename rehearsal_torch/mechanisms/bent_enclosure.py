"""Displacements by the closed form of a step, enclosed in affine forms.

With z a path's state in standard deviations, y its displacement, c the state within the ends of the bends,
and D what of y lies within them, the next state before the causes within a step
(`mechanisms.bent_transition`) is displaced by

    sum_i f_ij(y_i) + sum over i <= k of P_ikj ((D_i - M_i) (D_k - M_k) - M_i M_k),    M the middle of D,
    f_ij(y_i) = [i = j] y_i + bends of i in j + D_i (W_ij + sum_k (P_ikj + P_kij) (c_k + M_k)),

where W also has what the doses multiply. Each f_ij is piecewise linear, and so lies between its chord over
the interval of y_i and the largest distances of its kinks from that. Hence a step is a matrix of chords plus
a box, for these distances, the products, and the slopes of doses that are not known yet. What z'_k does to
z'_j within the step has a chord as well; where the dose that moves z'_k is not known, it has one of the
slopes of psi between the values that z'_k may take.

**Affine forms.** The matrices of a path shrink displacements over several steps, but seldom the box around
them in each. Hence y = centre + sum of e_l times column l, with all |e_l| <= 1: a step maps the columns by
its chords, and its box adds one for each state. As each e_l is the same in all steps, what column l adds to a
linear reward adds up before its size is taken.

Source: Moore (1966) (interval arithmetic, and how it wraps); Comba and Stolfi (1993) (affine arithmetic).
"""

from typing import final

import torch
from torch import Tensor

from rehearsal_torch.mechanisms.bent_transition import BENDS, BentTrajectory
from rehearsal_torch.mechanisms.displacement import MARGIN, Enclosure, Intervals


class _Bent:
    """Piecewise linear functions of F values, by the weights, (F, 1 + B, J), of what of each lies within the
    ends, (2, F), and of its bends, (B, F).
    """

    def __init__(self, bends: Tensor, ends: Tensor, weights: Tensor) -> None:
        self.bends, self.weights = bends.T, weights
        self.knots = torch.cat([ends[:1], bends, ends[1:]]).T
        # Between the knots; none beyond them.
        self.slopes = torch.nn.functional.pad(weights.cumsum(1), (0, 0, 1, 1))

    def __call__(self, z: Tensor, lower: Tensor, upper: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """The displacements at the ends of an interval and at its P - 2 knots, what of them lies within the
        ends, and what the functions do: (n, F) each -> (F, P, n), (F, P, n), (F, P, n, J).
        """
        z, lower, upper = (each.T.unsqueeze(1) for each in (z, lower, upper))
        knots, bends = self.knots.unsqueeze(2), self.bends[:, None, None]
        moved = torch.cat([lower, upper, (knots - z).maximum(lower).minimum(upper)], 1)
        c, at = (each.maximum(knots[:, :1]).minimum(knots[:, -1:]) for each in (z, z + moved))
        bent = ((each.unsqueeze(-1) - bends).clamp_min(0) for each in (at, c))
        features = torch.cat([(at - c).unsqueeze(-1), next(bent) - next(bent)], -1)
        return moved, at - c, (features.flatten(1, 2) @ self.weights).unflatten(1, moved.shape[1:])

    def between(self, lower: Tensor, upper: Tensor) -> tuple[Tensor, Tensor]:
        """The smallest and the largest slope between two values, (n, F) each -> (n, F, J) each."""
        begins, ends = (
            torch.nn.functional.pad(self.knots, side, value=far)
            for side, far in (((1, 0), -torch.inf), ((0, 1), torch.inf))
        )
        met = ((lower.unsqueeze(-1) <= ends) & (upper.unsqueeze(-1) >= begins)).unsqueeze(-1)
        slopes = (self.slopes.where(met, far) for far in (torch.inf, -torch.inf))
        return next(slopes).amin(-2), next(slopes).amax(-2)


def _chords(moved: Tensor, values: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The slopes of chords, (F, n, J), and the middle and half of what lies off them in sum, (n, J) each."""
    span = (moved[:, 1] - moved[:, 0]).clamp_min(torch.finfo(moved.dtype).tiny)
    chord = (values[:, 1] - values[:, 0]) / span.unsqueeze(-1)
    low, high = (values - moved.unsqueeze(-1) * chord.unsqueeze(1)).aminmax(dim=1)
    return chord, (low + high).sum(0) / 2, (high - low).sum(0) / 2


@final
class BentEnclosure(Enclosure):
    """One step of an episode by the fit. Columns, (1, n, g, F), are of the F states that some action moves,
    in standard deviations.

    Args:
        allowed: The actions to which that of the step may be changed, (A,) bool.
        gradient: Of a linear reward, (D,), if its sum is to be known.
    """

    def __init__(
        self, course: BentTrajectory, time: int, allowed: Tensor, gradient: Tensor | None = None
    ) -> None:
        form, width, taken = course.form, course.form.outputs, course.observed[time]
        self.course, self.free = course, (~form.held).nonzero()[:, 0]
        free, count = self.free, int((~form.held).sum())
        self.spread, self.ends = form.spread[free], form.ends
        self.gradient = None if gradient is None else gradient[free] * self.spread
        row, column = torch.triu_indices(width, width, device=free.device)
        sizes = [len(course.base) - BENDS * width - len(row), BENDS * width, len(row)]
        linear, bent, products = course.base[:, free].split(sizes)
        bends = bent.unflatten(0, (BENDS, width))[:, free]
        weights = torch.stack([linear[1 + free], *bends], 1)
        self.early = _Bent(course.bends.early[:, free], form.ends[:, free], weights)
        self.still = torch.eye(count).to(weights).unsqueeze(1)
        pairs = products.new_zeros(width, width, count)
        pairs[row, column] = products
        self.pairs = (pairs + pairs.transpose(0, 1))[:, free]
        self.row, self.column = torch.triu_indices(count, count, device=free.device)
        self.products = pairs[free[self.row], free[self.column]]
        # A square lies on one side of zero.
        self.side = 0.5 * self.products * (self.row == self.column).unsqueeze(1)
        every = allowed.clone()
        every[taken] = True
        dosed = course.dosed[:, 1 + free][..., free]
        self.own = torch.einsum("l,lij->ij", course.marks[taken], dosed)
        lower, upper = torch.einsum("al,lij->aij", course.marks[every], dosed).aminmax(dim=0)
        self.turn = (lower + upper) / 2, (upper - lower) / 2
        place = {state: number for number, state in enumerate(free.tolist())}
        self.acting: list[tuple[int, list[int], _Bent]] = []
        for effect, causes, weights in course.acting:
            kept = [number for number, cause in enumerate(causes) if cause in place]
            some = [causes[number] for number in kept]
            psi = _Bent(course.bends.late[:, some], form.ends[:, some], weights[kept].unsqueeze(-1))
            self.acting.append((place[effect], [place[cause] for cause in some], psi))

    def kept(self, before: Intervals, here: Tensor, ahead: Tensor) -> Intervals:
        """Without a hull."""
        centre, columns, box, _ = self._moved(before, here, self.own)
        return self._settled(centre, columns, box, before.gained, ahead)

    def changed(self, before: Intervals, here: Tensor, ahead: Tensor, hull: Intervals) -> Intervals:
        """The hull is a box."""
        centre, columns, box, size = self._moved(before, here, self.turn[0])
        return self._settled(centre, columns, box + size @ self.turn[1], before.gained, ahead, hull)

    def _moved(self, before: Intervals, here: Tensor, dosed: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Centre, columns and box before the causes within the step, and the largest |D|, (n, F)."""
        centre, radius = self._scaled(before)
        columns = torch.diag_embed(radius) if before.columns is None else before.columns[0]
        z = self.course.scaled(here).expand(len(centre), -1)
        moved, steps, values = self.early(z[:, self.free], centre - radius, centre + radius)
        low, high = steps[:, 0].T, steps[:, 1].T
        middle, half = (low + high) / 2, (high - low) / 2
        reach = z.clamp(self.ends[0], self.ends[1]).index_add(1, self.free, middle)
        slope = dosed.unsqueeze(1) + torch.einsum("nk,kij->inj", reach, self.pairs)
        chord, added, box = _chords(moved, values + steps.unsqueeze(-1) * slope.unsqueeze(1))
        chord = chord + self.still
        square, spread = (each[:, self.row] * each[:, self.column] for each in (middle, half))
        margin = MARGIN * (1 + z.abs().amax(-1) + (centre.abs() + radius).sum(-1)).unsqueeze(1)
        centre = torch.einsum("ni,inj->nj", centre, chord) + added
        centre = centre - square @ self.products + spread @ self.side
        box = box + spread @ (self.products.abs() - self.side.abs()) + margin
        return centre, columns @ chord.transpose(0, 1), box, torch.maximum(-low, high)

    def _settled(
        self,
        centre: Tensor,
        columns: Tensor,
        box: Tensor,
        gained: Tensor | None,
        ahead: Tensor,
        hull: Intervals | None = None,
    ) -> Intervals:
        """With what acts within the step, and the hull."""
        z = self.course.scaled(ahead)[:, self.free]
        effects = None if hull is None else self._scaled(hull)
        for effect, causes, psi in self.acting:
            mine, own, along = centre[:, causes], box[:, causes], columns[..., causes]
            size, at = along.abs().sum(-2) + own, z[:, causes]
            if effects is None:
                moved, _, values = psi(at, mine - size, mine + size)
                slopes, added, more = (each[..., 0] for each in _chords(moved, values))
                slope = slopes.T
            else:
                at, spread = at + effects[0][:, causes], effects[1][:, causes]
                low, high = psi.between(
                    at - spread + (mine - size).clamp_max(0), at + spread + (mine + size).clamp_min(0)
                )
                slope, added = (low + high)[..., 0] / 2, mine.new_zeros(())
                more = ((high - low)[..., 0] / 2 * (mine.abs() + size)).sum(-1)
            centre[:, effect] += (slope * mine).sum(-1) + added
            columns[..., effect] += (slope.unsqueeze(-2) * along).sum(-1)
            box[:, effect] += (slope.abs() * own).sum(-1) + more
        if effects is not None:
            centre, box = centre + effects[0], box + effects[1]
        columns = torch.cat([columns, torch.diag_embed(box)], -2)
        found = ahead.new_zeros(2, len(centre), ahead.shape[-1])
        found[..., self.free] = torch.stack([centre, columns.abs().sum(-2)]) * self.spread
        if self.gradient is not None:
            more = (columns @ self.gradient).unsqueeze(0)
            if gained is not None:
                more[..., : gained.shape[-1]] += gained
            gained = more
        return Intervals(found[:1], found[1:], columns.unsqueeze(0), gained)

    def _scaled(self, intervals: Intervals) -> tuple[Tensor, Tensor]:
        """Centre and radius of the states that some action moves, (n, F) each."""
        return intervals.centre[0][:, self.free] / self.spread, intervals.radius[0][
            :, self.free
        ] / self.spread
