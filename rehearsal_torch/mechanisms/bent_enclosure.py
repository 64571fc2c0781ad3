"""Affine arithmetic for the piecewise quadratic transition: bounds on the displacements of a path.

With z a path's state in standard deviations, y its displacement, c the state within the ends of the bends,
and D what of y lies within them, the next state before the causes within a step
(`mechanisms.bent_transition`) is displaced by

    sum_i f_ij(y_i) + sum over i <= k of P_ikj ((D_i - M_i) (D_k - M_k) - M_i M_k),    M the middle of D,
    f_ij(y_i) = [i = j] y_i + bends of i in j + D_i (W_ij + sum_k (P_ikj + P_kij) (c_k + M_k)),

where W includes the weights of the doses. Each f_ij is piecewise linear, and so lies between its chord over
the interval of y_i and the largest distances of its kinks from that. Hence a step is a matrix of chords plus
a box, for these distances, the products, and the slopes of doses that are not known yet. The effect of z'_k
on z'_j within the step has a chord as well; where the dose that moves z'_k is not known, it has one of the
slopes of psi between the values that z'_k may take. Used by `search.sequences.step_tree`.

**Affine forms.** The matrices of a path shrink displacements over several steps, but seldom the box around
them in each. Hence y = centre + sum of e_l times column l, with all |e_l| <= 1: a step maps the columns by
its chords, and its box adds one for each state. As each e_l is the same in all steps, the contributions of
column l to a linear reward add up before its size is taken.

Source: Moore (1966) (interval arithmetic, and how it wraps); Comba and Stolfi (1993) (affine arithmetic).
"""

from typing import final

import torch
from torch import Tensor

from rehearsal_torch.mechanisms.bent_transition import BENDS, BentTrajectory
from rehearsal_torch.mechanisms.displacement import MARGIN, Enclosure, Intervals


class _PiecewiseLinear:
    """Piecewise linear functions of F values, by the weights, (F, 1 + B, J), of each value clamped to the
    ends, (2, F), and of its bends, (B, F).
    """

    def __init__(self, bends: Tensor, ends: Tensor, weights: Tensor) -> None:
        self.bends, self.weights = bends.T, weights
        self.knots = torch.cat([ends[:1], bends, ends[1:]]).T
        # Zero beyond the outermost knots.
        self.slopes = torch.nn.functional.pad(weights.cumsum(1), (0, 0, 1, 1))

    def __call__(self, z: Tensor, lower: Tensor, upper: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """The displacements y at the ends of an interval and at its P - 2 knots, their part within the ends,
        and the changes of the functions: (n, F) each -> (F, P, n), (F, P, n), (F, P, n, J).
        """
        z, lower, upper = (values.T.unsqueeze(1) for values in (z, lower, upper))
        knots, bends = self.knots.unsqueeze(2), self.bends[:, None, None]
        y = torch.cat([lower, upper, (knots - z).maximum(lower).minimum(upper)], 1)
        c, moved = (values.maximum(knots[:, :1]).minimum(knots[:, -1:]) for values in (z, z + y))
        hinges = ((values.unsqueeze(-1) - bends).clamp_min(0) for values in (moved, c))
        features = torch.cat([(moved - c).unsqueeze(-1), next(hinges) - next(hinges)], -1)
        return y, moved - c, (features.flatten(1, 2) @ self.weights).unflatten(1, y.shape[1:])

    def between(self, lower: Tensor, upper: Tensor) -> tuple[Tensor, Tensor]:
        """The smallest and the largest slope between two values, (n, F) each -> (n, F, J) each."""
        starts, ends = (
            torch.nn.functional.pad(self.knots, side, value=infinity)
            for side, infinity in (((1, 0), -torch.inf), ((0, 1), torch.inf))
        )
        touched = ((lower.unsqueeze(-1) <= ends) & (upper.unsqueeze(-1) >= starts)).unsqueeze(-1)
        slopes = (self.slopes.where(touched, infinity) for infinity in (torch.inf, -torch.inf))
        return next(slopes).amin(-2), next(slopes).amax(-2)


def _chords(y: Tensor, values: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Slopes of chords, (F, n, J), and centre and half-width of the sum of deviations, (n, J) each."""
    span = (y[:, 1] - y[:, 0]).clamp_min(torch.finfo(y.dtype).tiny)
    slopes = (values[:, 1] - values[:, 0]) / span.unsqueeze(-1)
    low, high = (values - y.unsqueeze(-1) * slopes.unsqueeze(1)).aminmax(dim=1)
    return slopes, (low + high).sum(0) / 2, (high - low).sum(0) / 2


@final
class BentEnclosure(Enclosure):
    """One step of an episode by the fit. Columns, (1, n, g, F), are of the F states that some action moves,
    in standard deviations.

    Args:
        allowed: The actions to which that of the step may be changed, (A,) bool.
        gradient: The gradient of a linear reward, (D,), if its sum is to be bounded.
    """

    def __init__(
        self, course: BentTrajectory, time: int, allowed: Tensor, gradient: Tensor | None = None
    ) -> None:
        form, width, observed = course.form, course.form.outputs, course.observed[time]
        self.course, self.free = course, (~form.held).nonzero()[:, 0]
        free, moved = self.free, int((~form.held).sum())
        self.spread, self.ends = form.spread[free], form.ends
        self.gradient = None if gradient is None else gradient[free] * self.spread
        row, column = torch.triu_indices(width, width, device=free.device)
        sizes = [len(course.base) - BENDS * width - len(row), BENDS * width, len(row)]
        linear_weights, bend_weights, products = course.base[:, free].split(sizes)
        bends = bend_weights.unflatten(0, (BENDS, width))[:, free]
        weights = torch.stack([linear_weights[1 + free], *bends], 1)
        self.early = _PiecewiseLinear(course.bends.early[:, free], form.ends[:, free], weights)
        self.still = torch.eye(moved).to(weights).unsqueeze(1)
        pairs = products.new_zeros(width, width, moved)
        pairs[row, column] = products
        self.pairs = (pairs + pairs.transpose(0, 1))[:, free]
        self.row, self.column = torch.triu_indices(moved, moved, device=free.device)
        self.products = pairs[free[self.row], free[self.column]]
        # A square lies on one side of zero.
        self.side = 0.5 * self.products * (self.row == self.column).unsqueeze(1)
        possible = allowed.clone()
        possible[observed] = True
        dosed = course.dosed[:, 1 + free][..., free]
        self.own = torch.einsum("l,lij->ij", course.marks[observed], dosed)
        lower, upper = torch.einsum("al,lij->aij", course.marks[possible], dosed).aminmax(dim=0)
        self.turn = (lower + upper) / 2, (upper - lower) / 2
        position = {state: index for index, state in enumerate(free.tolist())}
        self.acting: list[tuple[int, list[int], _PiecewiseLinear]] = []
        for effect, causes, weights in course.acting:
            indices = [index for index, cause in enumerate(causes) if cause in position]
            moving = [causes[index] for index in indices]
            psi = _PiecewiseLinear(
                course.bends.late[:, moving], form.ends[:, moving], weights[indices].unsqueeze(-1)
            )
            self.acting.append((position[effect], [position[cause] for cause in moving], psi))

    def kept(self, before: Intervals, here: Tensor, ahead: Tensor) -> Intervals:
        """The next intervals, as affine forms."""
        centre, columns, box, _ = self._lag(before, here, self.own)
        return self._add_causes(centre, columns, box, before.gained, ahead)

    def changed(self, before: Intervals, here: Tensor, ahead: Tensor, hull: Intervals) -> Intervals:
        """The next intervals, with the hull as a box."""
        centre, columns, box, size = self._lag(before, here, self.turn[0])
        return self._add_causes(centre, columns, box + size @ self.turn[1], before.gained, ahead, hull)

    def _lag(self, before: Intervals, here: Tensor, dosed: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Centre, columns and box without effects within the step, and the largest |D|, (n, F)."""
        centre, radius = self._scaled(before)
        columns = torch.diag_embed(radius) if before.columns is None else before.columns[0]
        z = self.course.scaled(here).expand(len(centre), -1)
        displacements, clamped, values = self.early(z[:, self.free], centre - radius, centre + radius)
        low, high = clamped[:, 0].T, clamped[:, 1].T
        middle, half = (low + high) / 2, (high - low) / 2
        location = z.clamp(self.ends[0], self.ends[1]).index_add(1, self.free, middle)
        slope = dosed.unsqueeze(1) + torch.einsum("nk,kij->inj", location, self.pairs)
        chord, offset, box = _chords(displacements, values + clamped.unsqueeze(-1) * slope.unsqueeze(1))
        chord = chord + self.still
        square, spread = (part[:, self.row] * part[:, self.column] for part in (middle, half))
        margin = MARGIN * (1 + z.abs().amax(-1) + (centre.abs() + radius).sum(-1)).unsqueeze(1)
        centre = torch.einsum("ni,inj->nj", centre, chord) + offset
        centre = centre - square @ self.products + spread @ self.side
        box = box + spread @ (self.products.abs() - self.side.abs()) + margin
        return centre, columns @ chord.transpose(0, 1), box, torch.maximum(-low, high)

    def _add_causes(
        self,
        centre: Tensor,
        columns: Tensor,
        box: Tensor,
        gained: Tensor | None,
        ahead: Tensor,
        hull: Intervals | None = None,
    ) -> Intervals:
        """Adds the effects within the step, and the hull."""
        z = self.course.scaled(ahead)[:, self.free]
        jump = None if hull is None else self._scaled(hull)
        for effect, causes, psi in self.acting:
            mid, cause_box, along = centre[:, causes], box[:, causes], columns[..., causes]
            size, at = along.abs().sum(-2) + cause_box, z[:, causes]
            if jump is None:
                y, _, values = psi(at, mid - size, mid + size)
                slopes, offset, widening = (part[..., 0] for part in _chords(y, values))
                slope = slopes.T
            else:
                at, spread = at + jump[0][:, causes], jump[1][:, causes]
                low, high = psi.between(
                    at - spread + (mid - size).clamp_max(0), at + spread + (mid + size).clamp_min(0)
                )
                slope, offset = (low + high)[..., 0] / 2, mid.new_zeros(())
                widening = ((high - low)[..., 0] / 2 * (mid.abs() + size)).sum(-1)
            centre[:, effect] += (slope * mid).sum(-1) + offset
            columns[..., effect] += (slope.unsqueeze(-2) * along).sum(-1)
            box[:, effect] += (slope.abs() * cause_box).sum(-1) + widening
        if jump is not None:
            centre, box = centre + jump[0], box + jump[1]
        columns = torch.cat([columns, torch.diag_embed(box)], -2)
        intervals = ahead.new_zeros(2, len(centre), ahead.shape[-1])
        intervals[..., self.free] = torch.stack([centre, columns.abs().sum(-2)]) * self.spread
        if self.gradient is not None:
            total = (columns @ self.gradient).unsqueeze(0)
            if gained is not None:
                total[..., : gained.shape[-1]] += gained
            gained = total
        return Intervals(intervals[:1], intervals[1:], columns.unsqueeze(0), gained)

    def _scaled(self, intervals: Intervals) -> tuple[Tensor, Tensor]:
        """Centre and radius of the states that some action moves, (n, F) each."""
        centre, radius = (
            part[0][:, self.free] / self.spread for part in (intervals.centre, intervals.radius)
        )
        return centre, radius
