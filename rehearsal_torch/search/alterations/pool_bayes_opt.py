"""Bayesian optimisation over finite pools, several functions in one batch.

Sought is the largest value of each of b functions over a pool of m points of its own, with few evaluations.
Each function has a Gaussian process with a Matern-5/2 kernel, all fitted in one batch; the point that is
evaluated next has the largest upper confidence bound

    mu(z) + kappa sigma(z),

as in the paper, or the largest expected improvement, whose logarithm is computed stably. On a finite pool the
acquisition is compared at every point: nothing has to climb it, and points that do not qualify are simply not
in the pool.

Functions here are smooth and without noise: what looks like noise is interpolated.

Source: Qin et al. (2023), App. C (UCB; kappa 2.576 in the released code); Ament et al. (2023), Unexpected
improvements (log EI).
"""

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from rehearsal_torch.search.budget import UNLIMITED, Budget

Acquisition = Literal["log_ei", "ucb", "every"]
ACQUISITIONS: tuple[Acquisition, ...] = ("log_ei", "ucb", "every")
NOISE = 1e-6


@dataclass(frozen=True)
class Evaluated:
    """What is known of the points of each pool.

    Attributes:
        places: Where the q points that were evaluated stand in their pools, (b, q), in the order in which
            they were asked; some may stand twice.
        values: (b, q).
    """

    places: Tensor
    values: Tensor


def explored(
    function: Callable[[Tensor], Tensor],
    pools: Tensor,
    valid: Tensor,
    probes: int,
    iterations: int,
    acquisition: Acquisition,
    kappa: float = 2.576,
    budget: Budget = UNLIMITED,
) -> Evaluated:
    """Looks for the best point of each of b pools, each with at least one valid point.

    Args:
        function: (b, q, k) -> (b, q), one function a pool.
        pools: (b, m, k).
        valid: Which points count, (b, m) bool.
        probes: The first so many points are evaluated at once.
        iterations: How many more, one after the other.
        acquisition: By what they are chosen; `every` evaluates all valid points at once.
        kappa: The bound's width.
        budget: No more is evaluated after it.
    """
    pool_size = pools.shape[1]
    everything = acquisition == "every" or probes + iterations >= pool_size
    first = torch.arange(pool_size if everything else probes, device=pools.device).expand(len(pools), -1)
    # A pool with fewer valid points than are asked of it is asked its first one again.
    first = torch.where(valid.gather(1, first), first, valid.long().argmax(1, keepdim=True))
    asked, values = first, function(_at(pools, first))
    if not everything:
        low, high = pools.amin(1, keepdim=True), pools.amax(1, keepdim=True)
        unit = (pools - low) / torch.where(high > low, high - low, torch.ones_like(high))
        state: dict[str, Tensor] | None = None
        for _ in range(iterations):
            if budget.out():
                break
            acquisition_values, state = _acquisition_values(unit, asked, values, acquisition, kappa, state)
            acquisition_values = acquisition_values.masked_fill(~valid, -torch.inf).scatter(
                1, asked, -torch.inf
            )
            following = torch.where(
                acquisition_values.isfinite().any(1), acquisition_values.argmax(1), asked[:, 0]
            ).unsqueeze(1)
            asked, values = (
                torch.cat([asked, following], 1),
                torch.cat([values, function(_at(pools, following))], 1),
            )
    return Evaluated(asked, values)


def _at(pools: Tensor, places: Tensor) -> Tensor:
    return pools.gather(1, places.unsqueeze(-1).expand(-1, -1, pools.shape[-1]))


def _acquisition_values(
    unit: Tensor,
    asked: Tensor,
    values: Tensor,
    acquisition: Acquisition,
    kappa: float,
    state: dict[str, Tensor] | None,
) -> tuple[Tensor, dict[str, Tensor]]:
    """The acquisition at every point of the pools, (b, m), and the kernel, learnt from the first points and
    kept from then on.
    """
    # A value that is no number is the worst that is known.
    values = values.where(
        values.isfinite(), values.where(values.isfinite(), torch.inf).amin(1, keepdim=True)
    ).nan_to_num(0.0, 0.0, 0.0)
    spread = values.std(1, keepdim=True)
    seen = (
        (values - values.mean(1, keepdim=True)) / torch.where(spread > 0, spread, torch.ones_like(spread))
    ).unsqueeze(-1)
    with warnings.catch_warnings():
        # Imported where it is needed, as it takes seconds; one of its dependencies warns of its own old ways
        # when imported.
        warnings.simplefilter("ignore", DeprecationWarning)
        from botorch.acquisition.analytic import LogExpectedImprovement, UpperConfidenceBound
        from botorch.exceptions.warnings import BotorchWarning
        from botorch.models import SingleTaskGP
        from botorch.models.utils.gpytorch_modules import get_matern_kernel_with_gamma_prior
        from botorch.optim.fit import fit_gpytorch_mll_scipy
        from gpytorch.mlls import ExactMarginalLogLikelihood
    kernel = get_matern_kernel_with_gamma_prior(unit.shape[-1], torch.Size([len(unit)])).to(unit)
    with warnings.catch_warnings(), torch.enable_grad():
        # Few steps are enough for a choice among points; that they did not converge is meant.
        warnings.simplefilter("ignore", BotorchWarning)
        gp = SingleTaskGP(
            _at(unit, asked),
            seen,
            train_Yvar=torch.full_like(seen, NOISE),
            covar_module=kernel,
            outcome_transform=None,
        )
        if state is None:
            fit_gpytorch_mll_scipy(ExactMarginalLogLikelihood(gp.likelihood, gp), options={"maxiter": 25})
        else:
            gp.covar_module.load_state_dict(state)
    gp.eval()
    chosen = (
        UpperConfidenceBound(gp, beta=kappa**2)
        if acquisition == "ucb"
        else LogExpectedImprovement(gp, best_f=seen.amax(1))
    )
    with torch.no_grad():
        return chosen(unit.transpose(0, 1).unsqueeze(-2)).T, gp.covar_module.state_dict()
