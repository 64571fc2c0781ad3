"""Draws of the outcomes that a model expects in one case, after an alteration or without one.

The draws are of linear coordinates t = B y of the outcomes: the outcomes themselves, or the directions in
which the faces of the desired region lie (`surrogates.outcome.face_coordinates`). Each is one of

    a function or parameters drawn from the posterior, with noise as it was found in the observations,

so that they hold both what is unknown and the noise. The share of them in the region estimates the
probability of a desired outcome; it is the claim of a method that rests on these draws alone.

Source: Gelman et al. (2013), Sec. 7.1 (the posterior predictive distribution).
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from rehearsal_torch.seeding import generator
from rehearsal_torch.spaces.polytope import Polytope
from rehearsal_torch.surrogates.outcome.face_coordinates import FaceCoordinates
from rehearsal_torch.surrogates.structural.linear_model import AffineResponse

# Models, and draws of the noise of each.
MODELS, EACH = 64, 128


@dataclass(frozen=True)
class OutcomeDraws:
    """Draws of the outcomes in one case.

    Attributes:
        values: t, (n, q), in the coordinates' units; on the device of the context.
        basis: B, (q, |Y|).
        weight: The weight, in the method's estimate, of the model that they come from.
    """

    values: Tensor
    basis: Tensor
    weight: float = 1.0

    def bounds(self, region: Polytope) -> list[tuple[float, float]]:
        """The (lower, upper) bounds of each coordinate in the desired region, infinite where there is none.

        A face that bounds several coordinates at once belongs to none of them.

        Args:
            region: The desired region of the outcomes.
        """
        found = [(-torch.inf, torch.inf) for _ in self.basis]
        lengths = region.normals.norm(dim=-1)
        for normal, offset in zip(region.normals / lengths[:, None], region.offsets / lengths, strict=True):
            for place, row in enumerate(self.basis.to(normal)):
                along = float(normal @ row) / float(row @ row)
                if bool((normal - along * row).abs().amax() > 1e-9):
                    continue
                bound, (lower, upper) = float(offset) / along, found[place]
                found[place] = (lower, min(upper, bound)) if along > 0 else (max(lower, bound), upper)
        return found

    def share(self, region: Polytope) -> float:
        """The share of the draws that lie in the desired region.

        Args:
            region: The desired region of the outcomes.
        """
        faces = FaceCoordinates.of(region)
        same = faces.basis.shape == self.basis.shape and bool(
            (faces.basis == self.basis.to(faces.basis)).all()
        )
        # Draws of other coordinates than those of the faces are draws of the outcomes themselves.
        own = self.values if same else faces.of_outcomes(self.values @ torch.linalg.inv(self.basis).mT)
        return float(faces.desired(own.to(torch.float64)).to(torch.float64).mean())


def of_response(response: AffineResponse, given: Tensor, action: Tensor, seed: int = 0) -> OutcomeDraws:
    """Draws of an affine response with normal noise, under models drawn from the posterior.

    Args:
        response: The response, with the M models in its leading dimension.
        given: The context, (|X|,).
        action: The values that are set, (k,).
    """
    home, like = given.device, response.constant
    given, action = given.to(like.device), action.to(like.device)
    means = response.base(given.unsqueeze(0)).squeeze(-2) + (response.action @ action)
    # In a common unit: eigenvalues are found to rounding of the largest one.
    unit = response.covariance.diagonal(dim1=-2, dim2=-1).clamp_min(0).sqrt()
    unit = torch.where(unit > 0, unit, torch.ones_like(unit)).unsqueeze(-1)
    # The signs of eigenvectors, on which draws depend, are those of the CPU on every device.
    values, vectors = torch.linalg.eigh((response.covariance / (unit * unit.mT)).cpu())
    root = unit * (vectors * values.clamp_min(0).sqrt().unsqueeze(-2)).to(unit.device)
    noise = torch.randn(EACH, *means.shape, dtype=means.dtype, generator=generator(1000 * seed + 97)).to(
        means.device
    )
    draws = means + (root @ noise.unsqueeze(-1)).squeeze(-1)
    outcomes = draws.shape[-1]
    return OutcomeDraws(
        draws.reshape(-1, outcomes).to(home), torch.eye(outcomes, dtype=draws.dtype, device=home)
    )
