"""Gaussian-process regression under Gaussian-mixture noise.

    x_i = f(w_i) + s(w_i) u_i,        f ~ GP,        u_i ~ sum_c p_c N(m_c, v_c),        s known.

With well-separated components the component of each noise value is identified, and f is as certain as under
noise of the components' widths alone. With q(f) = N(mu, tau^2) at the rows and r_ic the probability that row
i belongs to component c, expectation maximisation alternates

    r_ic   ~  p_c N(e_i; m_c, v_c) exp(-t_i^2 / 2 v_c),        e_i = (x_i - mu_i) / s_i,    t_i = tau_i / s_i,
    p, m, v   the moments of e under r, t^2 added to the squares,
    q(f)      a regression with targets x_i - s_i sum_c r_ic m_c / v_c / g_i and noise variances s_i^2 / g_i,
    g_i = sum_c r_ic / v_c,

each of which increases one lower bound of the evidence; between rounds the length-scales are optimised as
well. The mixture is adopted for a node only if it has at least 40 rows and more than hardly any noise, if the
leave-one-out density of its rows is more than 3 nats higher than under normal noise with a mixture fitted
afterwards, and if that noise does not appear to depend on the inputs: a scale that s does not capture would
be mistaken for components.

Source: Kuss (2006), Sec. 5 (Gaussian processes with mixtures as noise); Dempster et al. (1977); the noises:
Ren et al. (2025), Eq. 6.
"""

import math
from dataclasses import replace

import torch
from torch import Tensor

from rehearsal_torch.data.part import Sizes, Solved
from rehearsal_torch.estimators.gaussian_process import GaussianProcesses
from rehearsal_torch.estimators.gp_posterior import HyperParameters, maximise
from rehearsal_torch.estimators.heteroskedastic import MIN_NOISE
from rehearsal_torch.estimators.hsic import independent_probability
from rehearsal_torch.estimators.kernel import Factors, Rows, factors
from rehearsal_torch.estimators.mixture import FLOOR, log_densities

MIN_ROWS, MARGIN, INDEPENDENT = 40, 3.0, 0.3
TURNS, STEPS = 3, 15


class MixtureRegression(GaussianProcesses, Solved):
    """Regressions whose targets and noise variances are those of the last round; nodes without gain keep
    normal noise.

    State: `values`, the observed values; `scales`, s at the rows; the mixtures; and `noise_mean` and
    `noise_std`, the mean and the standard deviation of u, so that (x - f - s noise_mean) / (s noise_std) has
    mean 0 and variance 1.
    """

    def __init__(self, widths: list[int]) -> None:
        super().__init__(widths)
        self.register_fitted(
            "values", "scales", "weights", "means", "variances", "noise_mean", "noise_std", "gain"
        )

    def sizes(self) -> Sizes:
        """Observed values of n rows, and a mixture of k components for each of N regressions."""
        count = len(self.widths)
        own = dict.fromkeys(("values", "scales"), (count, "n")) | dict.fromkeys(
            ("weights", "means", "variances"), (count, "k")
        )
        return {**super().sizes(), **own, **dict.fromkeys(("noise_mean", "noise_std", "gain"), (count,))}

    def solve(self, *examples: Tensor) -> None:
        """Fits to the arguments of `hold`, initial length-scales (n, N, p), the mixture of the leave-one-out
        noise under normal noise (n, N, 3, K), and that noise (n, N).
        """
        inputs, values, kept, variances, lengths, mixtures, noise = examples
        self.adopt(HyperParameters(lengths[0], torch.zeros_like(self.log_noises)))
        rows = self.hold(inputs, values, kept, variances)
        self.values, self.scales = rows.targets.clone(), rows.ratios.sqrt()
        self.weights, self.means, self.variances = (parameter.clone() for parameter in mixtures[0].unbind(-2))
        count = len(self.widths)
        self.noise_mean, self.noise_std, self.gain = (
            torch.full((count,), value, dtype=torch.float64, device=values.device)
            for value in (0.0, 1.0, 0.0)
        )
        several = (self.weights > 0).sum(-1) > 1
        noisy = (rows.ratios * rows.kept).sum(-1) / rows.counts > MIN_NOISE
        places = (several & noisy & (rows.counts >= MIN_ROWS) & rows.used.any(-1)).nonzero()[:, 0]
        places = places[
            independent_probability(noise.mT[places], rows.inputs[places], rows.kept[places]) > INDEPENDENT
        ]
        if not len(places):
            return
        before = self._density(rows.only(places), places)
        pseudo, components, log_lengths = self._turns(rows.only(places), places, TURNS)
        factored = factors(pseudo, log_lengths, torch.zeros_like(before))
        after = _left_out_density(pseudo, factored, self.values[places], self.scales[places], components)
        self.gain[places] = after - before
        self._take(places, after - before > MARGIN, pseudo, components, log_lengths)

    @property
    def adopted(self) -> Tensor:
        """Which regressions adopted a mixture, (N,) bool."""
        return self.gain > MARGIN

    def again(self) -> None:
        """Recomputes targets and noise variances of rows that `hold` stored; length-scales and
        mixtures stay.
        """
        self.values, self.scales = self.targets.clone(), self.ratios.sqrt()
        places = self.adopted.nonzero()[:, 0]
        if len(places):
            rows, components, log_lengths = self._turns(self.rows.only(places), places, 1, learn=False)
            self._take(places, torch.ones_like(places, dtype=torch.bool), rows, components, log_lengths)

    def left_out_residuals(self) -> tuple[Tensor, Tensor]:
        """Leave-one-out residuals, of the observed values where a mixture is adopted, and their
        deviations.
        """
        residual, std = super().left_out_residuals()
        # The left-out mean is the target less its residual.
        own = (
            self.values - (self.targets - residual) - self.scales * self.noise_mean.unsqueeze(-1)
        ) * self.rows.kept
        unknown = (std.square() - self.ratios).clamp_min(0)
        total = (unknown + (self.scales * self.noise_std.unsqueeze(-1)).square()).sqrt()
        mixed = self.adopted.unsqueeze(-1)
        return torch.where(mixed, own, residual), torch.where(mixed, total, std)

    def in_sample_residuals(self) -> tuple[Tensor, Tensor, Tensor]:
        """As `GaussianProcesses.in_sample_residuals`, of the observed values."""
        residual, _, unknown = super().in_sample_residuals()
        own = (
            self.values - (self.targets - residual) - self.scales * self.noise_mean.unsqueeze(-1)
        ) * self.rows.kept
        return own, self.scales * self.noise_std.unsqueeze(-1), unknown

    def _density(self, rows: Rows, places: Tensor) -> Tensor:
        """Leave-one-out log densities under normal noise with the mixture fitted afterwards, (M,)."""
        residual, variance = factors(rows, self.log_lengths[places], self.log_noises[places]).left_out()
        mixtures = (self.weights, self.means, self.variances)
        components = [parameter[places].unsqueeze(1) for parameter in mixtures]
        density = log_densities(residual / variance.sqrt(), *components).logsumexp(-1) - 0.5 * variance.log()
        return (density * rows.kept).sum(-1)

    def _turns(
        self, rows: Rows, places: Tensor, turns: int, learn: bool = True
    ) -> tuple[Rows, tuple[Tensor, Tensor, Tensor], Tensor]:
        """Expectation maximisation: the last pseudo-regression, the mixture (M, K) each, and log l."""
        values, scales, squares = self.values[places], self.scales[places], self.scales[places].square()
        components = (self.weights[places], self.means[places], self.variances[places])
        log_lengths, log_noises = self.log_lengths[places], torch.zeros_like(self.log_noises[places])
        factored = factors(rows, log_lengths, log_noises)
        for turn in range(turns):
            for _ in range(STEPS):
                precision = factored.inverse().diagonal(dim1=-2, dim2=-1)
                mean = rows.targets - rows.ratios * factored.weights
                unknown = (rows.ratios - rows.ratios.square() * precision).clamp_min(0) / squares
                noise = (values - mean) / scales
                share = _shares(noise, unknown, components) * rows.kept.unsqueeze(-1)
                components = _moments(noise, unknown, share) if learn else components
                total_precision = (share / components[2].unsqueeze(1)).sum(-1).clamp_min(1e-12)
                offset = (share * (components[1] / components[2]).unsqueeze(1)).sum(-1) / total_precision
                rows = replace(
                    rows,
                    targets=(values - scales * offset) * rows.kept,
                    ratios=torch.where(rows.kept, squares / total_precision, rows.ratios),
                )
                factored = factors(rows, log_lengths, log_noises)
            if learn and turn < turns - 1:
                log_lengths = maximise(
                    rows, [HyperParameters(log_lengths, log_noises)], free_noise=False
                ).log_lengths
                factored = factors(rows, log_lengths, log_noises)
        return rows, components, log_lengths

    def _take(
        self,
        places: Tensor,
        trusted: Tensor,
        pseudo_rows: Rows,
        components: tuple[Tensor, Tensor, Tensor],
        log_lengths: Tensor,
    ) -> None:
        adopted = places[trusted]
        mean = (components[0] * components[1]).sum(-1)
        spread = ((components[0] * (components[2] + components[1].square())).sum(-1) - mean.square()).sqrt()
        for held, new in (
            (self.targets, pseudo_rows.targets),
            (self.ratios, pseudo_rows.ratios),
            (self.log_lengths, log_lengths),
            (self.weights, components[0]),
            (self.means, components[1]),
            (self.variances, components[2]),
            (self.noise_mean, mean),
            (self.noise_std, spread),
        ):
            held[adopted] = new[trusted]


def _shares(noise: Tensor, unknown: Tensor, components: tuple[Tensor, Tensor, Tensor]) -> Tensor:
    """r, (M, n, K)."""
    weights, means, variances = (parameter.unsqueeze(1) for parameter in components)
    return (
        log_densities(noise, weights, means, variances) - 0.5 * unknown.unsqueeze(-1) / variances
    ).softmax(-1)


def _moments(noise: Tensor, unknown: Tensor, share: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """p, m and v, (M, K) each."""
    total = share.sum(1).clamp_min(1e-12)
    means = (share * noise.unsqueeze(-1)).sum(1) / total
    squares = (noise.unsqueeze(-1) - means.unsqueeze(1)).square() + unknown.unsqueeze(-1)
    return total / total.sum(-1, keepdim=True), means, ((share * squares).sum(1) / total).clamp_min(FLOOR)


def _left_out_density(
    rows: Rows, factored: Factors, values: Tensor, scales: Tensor, components: tuple[Tensor, Tensor, Tensor]
) -> Tensor:
    """Leave-one-out log densities of the observed values under the mixture, (M,)."""
    residual, variance = factored.left_out()
    weights, means, variances = (each.unsqueeze(1) for each in components)
    total = (variance - rows.ratios).clamp_min(0).unsqueeze(-1) + scales.square().unsqueeze(-1) * variances
    deviation = (values - (rows.targets - residual)).unsqueeze(-1) - scales.unsqueeze(-1) * means
    each = weights.log() - 0.5 * (deviation.square() / total + total.log() + math.log(2 * math.pi))
    return (each.logsumexp(-1) * rows.kept).sum(-1)
