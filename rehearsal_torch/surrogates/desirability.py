"""Desirability of observed outcomes: the smoothed target that kernel ridge regression is fitted to.

In standardised outcomes, with the region's normals of length one, the target is w(y) = prod_k Phi(eta (d_k - m_k' y)).
The sharpness eta trades bias (a small eta blurs the region) against variance (a large one makes a target that is hard to
learn). The rule, from the observations alone:

    eta = max(eta_0, clearance / r),    eta_0 = 5, 10, 20 for a positive rate below .1, from .1 to .3, above .3,

with r the radius of the largest ball inside the region: however rare or narrow the region, its centre counts as desired
(Phi(2) = .977 for each face at the default clearance of 2). The paper names {5, 10, 20} and the positive rate, not the
thresholds; without the second term, outcomes with heavy tails leave the standardised region so narrow that w never nears one.

Source: Du et al. (2026), Eq. (3) and Sec. 4.1; thresholds and clearance are ours.
"""

import torch
from torch import Tensor

from rehearsal_torch.data.fitted import Sizes, Solved
from rehearsal_torch.spaces.polytope import Polytope

FEW, MANY = 0.1, 0.3


class Desirability(Solved):
    """Outcomes to targets.

    Args:
        region: Where the outcomes should fall.
        sharpness: eta; None chooses it.
        clearance: eta times the radius is at least this, where eta is chosen.

    Raises:
        ValueError: if a number is not positive.
    """

    def __init__(self, region: Polytope, sharpness: float | None = None, clearance: float = 2.0) -> None:
        super().__init__()
        if clearance <= 0 or (sharpness is not None and sharpness <= 0):
            raise ValueError(f"expected a positive sharpness (or null, to choose it) and clearance; got {sharpness} and {clearance}")
        self.region, self.chosen, self.clearance = region, sharpness, clearance
        self.register_fitted("location", "scale", "sharpness", "rate")
        self.location: Tensor
        self.scale: Tensor
        self.sharpness: Tensor
        self.rate: Tensor

    def sizes(self) -> Sizes:
        """A location and a scale for each outcome."""
        width = len(self.region.names)
        return {"location": (width,), "scale": (width,), "sharpness": (1,), "rate": (1,)}

    def solve(self, *examples: Tensor) -> None:
        """Learns scales, the positive rate and the sharpness from outcomes (N, |Y|)."""
        (outcomes,) = examples
        self.location, self.scale = outcomes.mean(0), outcomes.std(0)
        self.rate = self.region.contains(outcomes).to(torch.float64).mean().reshape(1)
        if self.chosen is not None:
            self.sharpness = torch.tensor([float(self.chosen)], dtype=torch.float64)
            return
        rate = float(self.rate)
        by_rate = 5.0 if rate < FEW else 10.0 if rate <= MANY else 20.0
        radius = self.region.standardised(self.location, self.scale).chebyshev()[1]
        self.sharpness = torch.tensor([max(by_rate, self.clearance / max(radius, 1e-6))], dtype=torch.float64)

    def targets(self, outcomes: Tensor) -> Tensor:
        """The smoothed desirability and the indicator, (N, |Y|) -> (N, 2)."""
        region = self.region.standardised(self.location, self.scale)
        smooth = region.desirability((outcomes - self.location) / self.scale, float(self.sharpness))
        return torch.stack((smooth, self.region.contains(outcomes).to(smooth)), -1)

    def scores(self, outcomes: Tensor) -> Tensor:
        """Normal scores of the faces' slacks, (N, |Y|) -> (N, q); faces that order the rows alike count once."""
        slack = self.region.slack(outcomes)
        ranks = slack.argsort(0).argsort(0).to(torch.float64)
        kept: list[int] = []
        for face in range(slack.shape[1]):
            pairs = [torch.corrcoef(torch.stack((slack[:, face], slack[:, other])))[0, 1].abs() for other in kept]
            if all(float(pair) < 0.999 for pair in pairs):
                kept.append(face)
        return torch.special.ndtri((ranks[:, kept] + 0.5) / len(slack))
