"""Linear regressions that follow a drift.

Rounds t = 1, 2, ... show parents p and a value v = beta_t' p + noise, beta_t moving. For each step size eta
an expert descends the loss l(beta) = (v - beta' p)^2 / 2 of the last round, and the experts vote with weights
that fall with their losses:

    w_eta  <-  w_eta exp(-alpha l(beta_eta)) / sum            with the loss *before* the step,
    beta_eta  <-  Pi_r [beta_eta - eta (beta_eta' p - v) p],     Pi_r the projection onto |beta| <= r,

and beta_hat = sum_eta w_eta beta_eta. Where alpha is left open it is sqrt(ln H / T) for losses in units of
the noise's variance, so that a typical loss is 1/2 in any unit; the theory asks for losses of order one. In a
round in which a decision set v there is nothing to learn of it: that value is skipped. Rounds of many
regressions are taken together, one tensor of regressions x experts x parents.

Columns are standardised by the rows seen first, so that one grid of step sizes serves variables of any unit.

Source: Du et al. (2024), Alg. 1 and Thm. 3.1-3.2 (their code steps with twice the gradient, weighs by losses
after the step and does not project); Zinkevich (2003).
"""

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from rehearsal_torch.data.part import Sizes, Solved

STEPS = (1e-3, 3e-3, 1e-2, 3e-2, 0.1, 0.2, 0.4)


class DriftingRegression(Solved):
    """J regressions, each with an ensemble of H experts.

    Args:
        parents: For each regression the columns of its parents.
        child: For each regression the column of its value.
        members: For each regression the columns that must be untouched (its clique's other members may have
            been altered otherwise).
        altered: For each regression the columns that must have been set for the round to count; none for an
            ordinary equation.
        steps: The H step sizes, in standardised units.
        rate: alpha, for losses in standardised units; None is sqrt(ln H / horizon) over the noise's variance.
        horizon: T, for how many rounds the default rate is meant.
        radius: r, how far coefficients may go beyond the first ones, as a multiple of 1 + their length.

    Raises:
        ValueError: if the numbers of regressions disagree, or a number is not positive.
    """

    def __init__(
        self,
        parents: Sequence[Sequence[int]],
        child: Sequence[int],
        members: Sequence[Sequence[int]],
        altered: Sequence[Sequence[int]],
        steps: Sequence[float] = STEPS,
        rate: float | None = None,
        horizon: int = 100,
        radius: float = 2.0,
    ) -> None:
        super().__init__()
        if len({len(parents), len(child), len(members), len(altered)}) != 1:
            raise ValueError(
                f"expected as many sets of parents as children; got {len(parents)}, {len(child)}, "
                f"{len(members)}, {len(altered)}"
            )
        if not steps or min(steps) <= 0 or horizon < 1 or radius <= 0 or (rate is not None and rate <= 0):
            raise ValueError(
                f"expected positive step sizes, horizon, radius and rate; got {list(steps)}, {horizon}, "
                f"{radius}, {rate}"
            )
        self.parents = tuple(tuple(each) for each in parents)
        self.child, self.members, self.altered = (
            tuple(child),
            tuple(map(tuple, members)),
            tuple(map(tuple, altered)),
        )
        self.rate, self.slowness = rate, math.sqrt(math.log(max(len(steps), 2)) / horizon)
        self.radius, self.max_parents = radius, max(map(len, self.parents), default=0)
        place = torch.tensor(
            [(*each, *([0] * (self.max_parents - len(each)))) for each in self.parents]
        ).reshape(len(self.child), self.max_parents)
        there = torch.tensor(
            [[True] * len(each) + [False] * (self.max_parents - len(each)) for each in self.parents]
        ).reshape(len(self.child), self.max_parents)
        self.register_buffer("place", place, persistent=False)
        self.register_buffer("there", there, persistent=False)
        self.register_buffer("steps", torch.tensor(list(steps), dtype=torch.float64), persistent=False)
        self.place: Tensor
        self.there: Tensor
        self.steps: Tensor
        self.register_fitted(
            "experts", "votes", "reach", "location", "scale", "seen", "first", "trace", "pace"
        )
        self.experts: Tensor
        self.votes: Tensor
        self.reach: Tensor
        self.location: Tensor
        self.scale: Tensor
        self.seen: Tensor
        self.first: Tensor
        self.trace: Tensor
        self.pace: Tensor

    def sizes(self) -> Sizes:
        """J regressions with H experts each, over d columns."""
        count, experts = len(self.child), len(self.steps)
        own = {
            "experts": (count, experts, self.max_parents + 1),
            "votes": (count, experts),
            "reach": (count,),
            "pace": (count,),
        }
        return {**own, "location": ("d",), "scale": ("d",), "trace": (2, "d"), "seen": (), "first": ()}

    def solve(self, *examples: Tensor) -> None:
        """Goes through the rounds.

        Rounds that were gone through before, known by their sums and the last of them, are not gone through
        again; what is learnt is the same as from all of them at once.

        Args:
            *examples: Rows (n, d); which cells were set, (n, d); the coefficients to begin with, intercepts
                first, (n, J, p + 1) of which the first row counts, and the noise's variances, (n, J),
                likewise; the first `first` rows are those that they came from, (n,).
        """
        values, touched, start, noise, first = examples
        begun = int(first[0])
        done = int(self.seen) if self.seen.numel() else 0
        same = (
            0 < done <= len(values)
            and int(self.first) == begun
            and torch.equal(self.trace, _trace(values, done))
        )
        if not same:
            self._begin(
                values[:begun].to(torch.float64), start[0].to(torch.float64), noise[0].to(torch.float64)
            )
            self.first = first[0].to(torch.float64)
            done = begun
        for row, cells in zip(values[done:].to(torch.float64), touched[done:].tolist(), strict=True):
            self._round(row, cells)
        self.seen, self.trace = self.first.new_tensor(float(len(values))), _trace(values, len(values))

    def coefficients(self) -> tuple[Tensor, Tensor]:
        """Intercepts (J,) and slopes (J, p) in the columns' units; slopes of absent parents are zero."""
        ensemble = (self.votes.unsqueeze(-1) * self.experts).sum(1)
        child = list(self.child)
        unit = torch.where(self.there, self.scale[self.place], torch.ones_like(ensemble[:, 1:]))
        gains = ensemble[:, 1:] * self.scale[child].unsqueeze(-1) / unit
        gains = torch.where(self.there, gains, torch.zeros_like(gains))
        intercepts = (
            self.location[child]
            + self.scale[child] * ensemble[:, 0]
            - (gains * self.location[self.place]).sum(-1)
        )
        return intercepts, gains

    def _begin(self, rows: Tensor, start: Tensor, noise: Tensor) -> None:
        self.location, scale = rows.mean(0), rows.std(0)
        self.scale = torch.where(scale > 0, scale, torch.ones_like(scale))
        child = list(self.child)
        shown = noise / self.scale[child].square()
        self.pace = (
            torch.full_like(shown, self.rate)
            if self.rate is not None
            else self.slowness / shown.clamp_min(1e-6)
        )
        gains = torch.where(
            self.there, start[:, 1:] * self.scale[self.place], torch.zeros_like(start[:, 1:])
        ) / self.scale[child].unsqueeze(-1)
        middle = start[:, 0] + torch.where(
            self.there, start[:, 1:] * self.location[self.place], torch.zeros_like(start[:, 1:])
        ).sum(-1)
        beta = torch.cat([((middle - self.location[child]) / self.scale[child]).unsqueeze(-1), gains], -1)
        self.experts = beta.unsqueeze(1).repeat(1, len(self.steps), 1)
        self.votes = torch.full_like(self.experts[..., 0], 1 / len(self.steps))
        self.reach = self.radius * (1 + beta.norm(dim=-1))

    def _round(self, row: Tensor, cells: Sequence[bool]) -> None:
        counts = [
            not any(cells[index] for index in own) and all(cells[index] for index in set_)
            for own, set_ in zip(self.members, self.altered, strict=True)
        ]
        use = torch.tensor(counts, device=row.device).unsqueeze(-1)
        shown = (row - self.location) / self.scale
        inputs = torch.cat(
            [
                torch.ones_like(shown[:1]).expand(len(self.child), 1),
                torch.where(self.there, shown[self.place], shown.new_zeros(())),
            ],
            -1,
        )
        error = (self.experts * inputs.unsqueeze(1)).sum(-1) - shown[list(self.child)].unsqueeze(-1)
        vote = self.votes.log() - 0.5 * self.pace.unsqueeze(-1) * error.square()
        self.votes = torch.where(use, torch.softmax(vote, -1).clamp_min(1e-12), self.votes)
        moved = self.experts - (self.steps * error).unsqueeze(-1) * inputs.unsqueeze(1)
        length = moved.norm(dim=-1, keepdim=True)
        moved = moved * (self.reach.unsqueeze(-1).unsqueeze(-1) / length.clamp_min(1e-300)).clamp_max(1.0)
        self.experts = torch.where(use.unsqueeze(-1), moved, self.experts)


def _trace(values: Tensor, count: int) -> Tensor:
    """What the first `count` rows are known by, (2, d)."""
    rows = values[:count].detach().to(torch.float64).contiguous()
    return torch.stack([rows.sum(0), rows[-1]])
