"""Counted scenarios: the share of sampled futures that become desired.

In scenario i the outcomes are affine in the alteration, Y_i = a_i + B_i z, so that it is desired where the rows of G_i z <= h_i
hold, G_i = M B_i, h_i = d - M a_i. The value of z is the share of scenarios that are desired: a step function of z, an
estimate of P(Y in S | D, x, z) with everything unknown integrated out. A sweep (one variable) or a mixed-integer program finds
its largest value.

Two users: one known graph with sampled parameters (`scenario_count`), and a posterior over graphs (`success_probability`).

Source: Qin et al. (2023), Sec. 4.2, Prop. 5 and Eq. 6.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from rehearsal_torch.data.situation import Foresight
from rehearsal_torch.objectives.alternatives import AlterationObjective, Alternatives
from rehearsal_torch.spaces.polytope import Polytope

TINY = 1e-9


@dataclass(frozen=True)
class Scenarios:
    """n scenarios for B situations; desired where gains @ z <= room.

    Attributes:
        gains: G, (n, l, k).
        room: h, (n, B, l).
    """

    gains: Tensor
    room: Tensor

    def desired(self, actions: Tensor) -> Tensor:
        """Whether each scenario is desired, (..., B, k) -> (..., n, B)."""
        pushed = torch.einsum("slk,...bk->...sbl", self.gains, actions.to(self.gains))
        return (pushed <= self.room + TINY * (1 + self.room.abs())).all(-1)

    def share(self, actions: Tensor) -> Tensor:
        """The share of desired scenarios, (..., B, k) -> (..., B)."""
        return self.desired(actions).double().mean(-2)

    def first(self, count: int) -> "Scenarios":
        """The first of the scenarios."""
        return Scenarios(self.gains[:count], self.room[:count])

    def some(self, which: Tensor) -> "Scenarios":
        """Some of the scenarios, by place (m,)."""
        return Scenarios(self.gains[which], self.room[which])


def rowwise(outcomes: Tensor, slopes: Tensor, region: Polytope) -> Scenarios:
    """Scenarios of affine outcomes.

    Args:
        outcomes: a, (n, B, |Y|), the outcomes at z = 0.
        slopes: B, (n, |Y|, k).
        region: S; its rows are scaled to length one.
    """
    length = region.normals.norm(dim=-1)
    normals, offsets = (region.normals / length.unsqueeze(-1)).to(outcomes), (region.offsets / length).to(outcomes)
    return Scenarios(normals @ slopes, offsets - outcomes @ normals.mT)


class CountObjective(AlterationObjective, ABC):
    """The share of desired scenarios, for one set of altered variables in B situations.

    Args:
        situations: The B situations.
        names: The k altered variables.
        seek: Scenarios that a search sees.
        choose: Others, that validate its finds and choose among sets.
    """

    def __init__(self, situations: Sequence[Foresight], names: Sequence[str], seek: Scenarios, choose: Scenarios) -> None:
        super().__init__(situations, names)
        self.seek, self.choose = seek, choose

    def forward(self, actions: Tensor) -> Tensor:
        """(..., B, k) -> (..., B)."""
        return self.seek.share(actions)

    def share(self, actions: Tensor) -> Tensor:
        """The share by scenarios that the search has not seen, (..., B, k) -> (..., B)."""
        return self.choose.share(actions)

    def starts(self, count: int) -> Tensor:
        """The middle of the box, then points spread over it."""
        unit = torch.quasirandom.SobolEngine(len(self.names), scramble=True, seed=0).draw(count, dtype=torch.float64).to(self.lower)
        unit[0] = 0.5
        return self.lower + unit.unsqueeze(1) * (self.upper - self.lower)


class CountAlternatives(Alternatives, ABC):
    """The share of desired scenarios for every candidate set."""

    @abstractmethod
    def counts(self) -> Sequence[CountObjective]:
        """The objectives, typed."""
