"""How steep a learnt transition is, beside what is promised of it.

A location-scale mechanism promises |g(s, a, u) - g(s', a, u)| <= K_u |s - s'| with K_u = L_h + L_phi max_i |u_i|. The
Jacobian of g in the smooth parents says how much of that promise is used: its spectral norm never exceeds K_u, and
the further below it stays, the looser are all searches that live on K_u.

Source: Tsirtsis and Gomez-Rodriguez (2023), Def. 1 and Sec. 5.
"""

from copy import deepcopy
from dataclasses import asdict, dataclass

import torch
from torch import Tensor

from rehearsal_torch.data.table import Table
from rehearsal_torch.surrogates.transition import TransitionModel


@dataclass(frozen=True)
class Steepness:
    """Norms over observed transitions with their abducted noise, in the surrogate's coordinates.

    Attributes:
        location_constant: The certified constant of h.
        scale_constant: The certified constant of phi.
        bound_mean: K_u, averaged.
        bound_largest: The largest K_u.
        jacobian_mean: Spectral norm of the Jacobian, averaged.
        jacobian_largest: The largest such norm.
        share_largest: The largest share of its own K_u that a Jacobian uses, at most 1.
    """

    location_constant: float
    scale_constant: float
    bound_mean: float
    bound_largest: float
    jacobian_mean: float
    jacobian_largest: float
    share_largest: float

    def to_dict(self) -> dict[str, float]:
        """Plain data."""
        return asdict(self)


def steepness(surrogate: TransitionModel, table: Table, rows: int = 1000) -> Steepness:
    """Measures a fitted transition on the first rows of a table of transitions.

    Args:
        surrogate: What was fitted.
        table: Transitions in their units.
        rows: At most how many are looked at.

    Raises:
        ValueError: if there is no row.
    """
    if not len(table):
        raise ValueError("expected transitions to measure the steepness at; got none")
    mechanism = deepcopy(surrogate.mechanism).to(torch.float64)
    parents, values = (part[:rows].to(torch.float64) for part in surrogate.examples(table))
    with torch.no_grad():
        noise = mechanism.abduct(parents, values)
    smooth = mechanism.smooth

    def moved(state: Tensor, rest: Tensor, u: Tensor) -> Tensor:
        location, scale = mechanism.moments(torch.cat([state, rest]).unsqueeze(0))
        return (location + scale * u)[0]

    jacobians = torch.func.vmap(torch.func.jacrev(moved))(parents[:, :smooth], parents[:, smooth:], noise).detach()
    norms, bounds = torch.linalg.matrix_norm(jacobians, 2), mechanism.lipschitz(noise)
    location, scale = mechanism.networks.lipschitz().tolist()
    return Steepness(location, scale, float(bounds.mean()), float(bounds.max()), float(norms.mean()), float(norms.max()), float((norms / bounds).max()))
