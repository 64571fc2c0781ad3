"""Bayesian optimisation over finite pools, several functions in one batch.

The aim is to find, with few evaluations, the maximum of each of b functions over its own pool of m points.
Each function has a Gaussian process with a Matern-5/2 kernel, all fitted in one batch; the next point to
evaluate has the largest upper confidence bound

    mu(z) + kappa sigma(z),

as in the paper, or the largest log expected improvement, computed in a numerically stable way. On a finite
pool the acquisition is evaluated at every point: no inner optimisation is needed, and infeasible points are
simply not in the pool.

The functions are smooth and deterministic; apparent noise is interpolated.

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
    """The evaluated points of each pool.

    Attributes:
        places: Indices of the q evaluated points in their pools, (b, q), in the order of evaluation; an index
            may occur twice.
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
    """Searches each of b pools for its best point; each pool has at least one valid point.

    Args:
        function: (b, q, k) -> (b, q), one function per pool.
        pools: (b, m, k).
        valid: Which points are valid, (b, m) bool.
        probes: Number of leading points that are evaluated at the start.
        iterations: Number of further, sequential evaluations.
        acquisition: The acquisition function; `every` evaluates all valid points at once.
        kappa: Width of the upper confidence bound.
        budget: No further evaluation begins once it is spent.
    """
    pool_size = pools.shape[1]
    everything = acquisition == "every" or probes + iterations >= pool_size
    first = torch.arange(pool_size if everything else probes, device=pools.device).expand(len(pools), -1)
    # In a pool with fewer valid points than requested, the first valid one is evaluated again.
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
    """The acquisition at every point of the pools, (b, m), and the state of the kernel, which is fitted to
    the first points and kept from then on.
    """
    # Undefined values are replaced by the smallest finite one.
    values = values.where(
        values.isfinite(), values.where(values.isfinite(), torch.inf).amin(1, keepdim=True)
    ).nan_to_num(0.0, 0.0, 0.0)
    spread = values.std(1, keepdim=True)
    standardised = (
        (values - values.mean(1, keepdim=True)) / torch.where(spread > 0, spread, torch.ones_like(spread))
    ).unsqueeze(-1)
    with warnings.catch_warnings():
        # Imported here since it takes seconds; a dependency raises a deprecation warning on import.
        warnings.simplefilter("ignore", DeprecationWarning)
        from botorch.acquisition.analytic import LogExpectedImprovement, UpperConfidenceBound
        from botorch.exceptions.warnings import BotorchWarning
        from botorch.models import SingleTaskGP
        from botorch.models.utils.gpytorch_modules import get_matern_kernel_with_gamma_prior
        from botorch.optim.fit import fit_gpytorch_mll_scipy
        from gpytorch.mlls import ExactMarginalLogLikelihood
    kernel = get_matern_kernel_with_gamma_prior(unit.shape[-1], torch.Size([len(unit)])).to(unit)
    with warnings.catch_warnings(), torch.enable_grad():
        # Few steps are enough to choose among points; the missing convergence is intended.
        warnings.simplefilter("ignore", BotorchWarning)
        gp = SingleTaskGP(
            _at(unit, asked),
            standardised,
            train_Yvar=torch.full_like(standardised, NOISE),
            covar_module=kernel,
            outcome_transform=None,
        )
        if state is None:
            fit_gpytorch_mll_scipy(ExactMarginalLogLikelihood(gp.likelihood, gp), options={"maxiter": 25})
        else:
            gp.covar_module.load_state_dict(state)
    gp.eval()
    acquisition_function = (
        UpperConfidenceBound(gp, beta=kappa**2)
        if acquisition == "ucb"
        else LogExpectedImprovement(gp, best_f=standardised.amax(1))
    )
    with torch.no_grad():
        return acquisition_function(unit.transpose(0, 1).unsqueeze(-2)).T, gp.covar_module.state_dict()
