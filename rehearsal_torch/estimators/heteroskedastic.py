"""Heteroskedastic noise: a scale that depends on the inputs, where the data support it.

Given leave-one-out residuals r_i and variances v_i of regressions with noise variance v, a second process
learns

    h(w) = E[log r^2 | w] + 1.2704
    (the mean of a log chi-square with one degree of freedom is -1.2704),

and, with its own leave-one-out predictions h_i, the noise variance at row i is modelled as k v exp(rho h_i),
so that the row's predictive variance is

    q_i = max(v_i - v, 0) + k v exp(rho h_i),        k such that mean_i r_i^2 / q_i = 1.

rho is the one of 0, 1/4, 1/2, 3/4, 1 that maximises sum_i log N(r_i; 0, q_i), and 0 unless the gain is more
than 2 nats: a node with homoskedastic noise keeps it. So does a node with hardly any noise, v at most 1e-3 of
its variance: its residuals are mostly the epistemic error of the mean, and where the mean has a large
gradient, the error from too few rows looks like noise.

Source: Goldberg et al. (1998) and Kersting et al. (2007) for a second process on log residuals; leave-one-out
forms: Rasmussen and Williams (2006), Eq. 5.10-5.12; the purpose: Ren et al. (2025), Thm. 4.1 (sigma_phi must
match f_b).
"""

import math

import torch
from torch import Tensor

from rehearsal_torch.data.part import Sizes, Solved
from rehearsal_torch.estimators.gaussian_process import SolvedProcesses

LOG_CHI_SQUARE = 1.2704
SHARES = (0.0, 0.25, 0.5, 0.75, 1.0)
MARGIN = 2.0
# A tenth of a per cent of the node's variance.
MIN_NOISE = 1e-3
TINY = 1e-6
HALVINGS = 50
WIDEST = 12.0


class InputDependentNoise(Solved):
    """The variance functions of N noises: s(w)^2 = level * exp(rho * h(w)), h standardised; input-dependent
    where that gains more than `MARGIN` nats.
    """

    def __init__(self, widths: list[int], margin: float = MARGIN) -> None:
        super().__init__()
        self.margin = margin
        self.processes = SolvedProcesses(widths)
        self.register_fitted("rho", "level", "gain")

    def sizes(self) -> Sizes:
        """One number for each of N noises."""
        return dict.fromkeys(("rho", "level", "gain"), (len(self.processes.widths),))

    def solve(self, *examples: Tensor) -> None:
        """Fits to inputs (n, N, p), leave-one-out residuals and variances, noises and kept rows, (n, N)."""
        inputs, residuals, variances, noises, kept = examples
        rows = kept.sum(0)
        squares = residuals.square()
        typical = (squares * kept).sum(0) / rows
        logs = (squares + TINY * typical).log() + LOG_CHI_SQUARE
        centre = torch.where(kept, logs, 0.0).sum(0) / rows
        spread = (torch.where(kept, logs - centre, 0.0).square().sum(0) / (rows - 1)).sqrt()
        standard = (logs - centre) / spread
        noisy = noises[0] > MIN_NOISE
        self.processes.solve(inputs, standard, kept, noisy.expand(kept.shape))
        residual, _ = self.processes.factors().left_out()
        predicted = (standard - residual.mT) * spread  # h_i, up to a constant
        latent = (variances - noises).clamp_min(0)
        scores = []
        for share in SHARES:
            shape = noises * _shape(share * predicted, kept)
            total = latent + _calibrated(squares, latent, shape, kept) * shape
            scores.append(
                torch.where(kept, -0.5 * (squares / total + total.log() + math.log(2 * math.pi)), 0.0).sum(0)
            )
        score = torch.stack(scores)
        best = score.argmax(0)
        self.gain = score.amax(0) - score[0]
        best = torch.where((self.gain > self.margin) & noisy, best, 0)
        shares = torch.tensor(SHARES, dtype=score.dtype, device=score.device)[best]
        self.rho = shares * spread
        self.level = noises[0]
        # The level is calibrated with the in-sample shape, which is the one used in predictions.
        level = self.level * _calibrated(squares, latent, self.at(inputs), kept)
        self.level = torch.where(best > 0, level, self.level)

    @property
    def varies(self) -> Tensor:
        """Which noises depend on the inputs, (N,) bool."""
        return self.rho > 0

    def at(self, inputs: Tensor) -> Tensor:
        """s(w)^2 of inputs (n, N, p), (n, N)."""
        log_shapes = [
            posterior.posterior_mean(inputs[:, index, : posterior.scales.numel()])
            for index, posterior in enumerate(self.processes.posteriors())
        ]
        return self.level * (self.rho * torch.stack(log_shapes, -1)).exp()


def _shape(exponents: Tensor, kept: Tensor) -> Tensor:
    """exp of exponents (n, N), normalised to mean one over the kept rows."""
    middle = torch.where(kept, exponents, 0.0).sum(0) / kept.sum(0)
    unnormalised = (exponents - middle).clamp(-WIDEST, WIDEST).exp()
    return unnormalised / (torch.where(kept, unnormalised, 0.0).sum(0) / kept.sum(0))


def _calibrated(squares: Tensor, latent: Tensor, noises: Tensor, kept: Tensor) -> Tensor:
    """k with mean r^2 / (latent + k noise) = 1, (N,); the mean is decreasing in k: bisection of log k."""
    low, high = torch.full_like(squares[0], math.log(1e-3)), torch.full_like(squares[0], math.log(1e3))
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        ratio = torch.where(kept, squares / (latent + middle.exp() * noises), 0.0).sum(0) / kept.sum(0)
        low, high = torch.where(ratio > 1, middle, low), torch.where(ratio > 1, high, middle)
    return ((low + high) / 2).exp()
