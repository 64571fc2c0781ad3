"""Hidden common cause of an action and the outcomes, whose strength is known exactly.

The noise of one action is e = s |e| with s = +-1. The hidden cause h = +-1 is fair, and chooses the sign:

    P(s = h) = (1 + d) / 2,        d = 1 - 1 / Gamma,

so that the action, given everything before it, is drawn from one of two densities, above or below its mean,
with a probability that depends on h. Averaged over h both are equally likely: the law of the action without h
is the one without a hidden cause. Where the action is above its mean,

    f(a | x, u) / f(a | x, u, h) = 1 / (1 + d h),

and 1 / (1 - d h) below. The largest such ratio is 1 / (1 - d) = Gamma, and none is below 1 / Gamma: Gamma is
the strength of `estimators.marginal_sensitivity`. h also moves each outcome by a constant times h. It is not
a variable of the task, and no table shows it. For the rows, h is drawn given s, P(h = s) = (1 + d) / 2, from
a generator of its own: rows with and without a hidden cause are equal in everything but the outcomes.

If the action is set, h is fair. Otherwise it depends on the sign of the action's noise, which integrals over
that noise take into account: Gauss-Legendre on either side of zero, where the integrand jumps.

Source: Tan (2006) and Jesson et al. (2022) (the strength); this cause is ours.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor

from rehearsal_torch.problems.cases.gaussian_region_probability import legendre
from rehearsal_torch.problems.world_size import is_number

FARTHEST = 6.5  # Where integrals over the normal noise end, in standard deviations.


@dataclass(frozen=True)
class HiddenCause:
    """A hidden common cause.

    Attributes:
        action: The variable whose noise it influences; that noise is normal.
        shifts: Outcome to what h = 1 adds to it, and h = -1 subtracts.
        strength: Gamma, at least 1; infinite is allowed, and then h is the sign.
    """

    action: str
    shifts: Mapping[str, float] = field(hash=False)
    strength: float

    def __post_init__(self) -> None:
        if not is_number(self.strength) or not self.strength >= 1:
            expected = "expected the strength of a hidden common cause, a number of at least 1 (1: none)"
            raise ValueError(f"confounding: {expected}; got {self.strength!r}")

    @classmethod
    def of_strength(cls, action: str, shifts: Mapping[str, float], strength: float) -> "HiddenCause | None":
        """The cause; None for strength 1, which is no cause at all."""
        cause = cls(action, dict(shifts), strength)
        return None if cause.strength == 1 else cause

    @property
    def lean(self) -> float:
        """d, by how much more likely the sign of h is than the other."""
        return 1 - 1 / self.strength

    def drawn(self, noise: Tensor, stream: np.random.Generator) -> Tensor:
        """h given the action's noise, (n,) -> (n,) of +-1; leaves the numbers of the stream as they are."""
        sign = _sign(noise)
        (child,) = stream.spawn(1)
        agrees = torch.from_numpy(child.random(len(noise))) < (1 + self.lean) / 2
        return torch.where(agrees, sign, -sign)

    def nodes(self, std: float, count: int) -> tuple[Tensor, Tensor]:
        """Points and weights, (count,) each, for the action's noise; half of them on either side of 0."""
        points, weights = legendre(max(count // 2, 1))
        points = FARTHEST * points
        mass = weights * (-0.5 * points.square()).exp()
        rule = torch.cat([-points.flip(0), points]), torch.cat([mass.flip(0), mass])
        return std * rule[0], rule[1] / rule[1].sum()

    def joint(self, noise: Tensor | None, weights: Tensor) -> tuple[Tensor, Tensor]:
        """h, (2m,), first +1 and then -1, and weights, (2m,), from m nodes over other variables; `noise` is
        the action's at the nodes, None if the action is set.
        """
        cause = torch.tensor([1.0, -1.0], dtype=weights.dtype).repeat_interleave(len(weights))
        share = torch.full_like(cause, 0.5)
        if noise is not None:
            share = (1 + self.lean * cause * _sign(noise).repeat(2)) / 2
        return cause, share * weights.repeat(2)

    def facts(self) -> dict[str, object]:
        """Plain data for the card of a world."""
        strength = self.strength if math.isfinite(self.strength) else "infinite"
        return {"strength": strength, "action": self.action, "shifts": dict(self.shifts)}


def _sign(noise: Tensor) -> Tensor:
    """+1 or -1, (...) -> (...); zero counts as positive."""
    return torch.where(noise >= 0, 1.0, -1.0).to(noise)
