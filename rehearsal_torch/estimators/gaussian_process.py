"""N Gaussian-process regressions as one part of a surrogate, with rows and hyper-parameters as its state.

The hyper-parameters are either solved for by L-BFGS-B, all regressions in one batch and warm-started from the
last fit, or trained by gradient descent on GPyTorch's marginal log likelihood with priors, of all starts, by
a Lightning trainer. The evidence is not a sum over rows: every step needs all of them, and there is no loss
on held-out rows. Used by `surrogates.network`.

Source: Ren et al. (2025), Sec. 4.1 and 11.1 (Gaussian processes for encoder and decoder); Rasmussen and
Williams (2006), Sec. 5.4; Gardner et al. (2018) (GPyTorch).
"""

import math
from abc import ABC
from collections.abc import Iterator, Sequence
from dataclasses import replace

import torch
from botorch.fit import fit_gpytorch_mll
from botorch.models import SingleTaskGP
from botorch.settings import validate_input_scaling
from gpytorch.constraints import Interval
from gpytorch.distributions import MultivariateNormal
from gpytorch.kernels import MaternKernel, RBFKernel
from gpytorch.likelihoods import GaussianLikelihood
from gpytorch.means import ConstantMean
from gpytorch.mlls import ExactMarginalLogLikelihood
from gpytorch.models import ExactGP
from gpytorch.priors import LogNormalPrior
from gpytorch.settings import fast_computations
from torch import Tensor, nn

from rehearsal_torch.data.trainable_part import Part, Solved, Trained
from rehearsal_torch.estimators.gp_kernel import (
    AHEAD,
    LENGTH_FLOOR,
    LENGTH_SPREAD,
    NOISE_FLOOR,
    NOISE_MEAN,
    NOISE_SPREAD,
    Kernel,
    Learnt,
    Rows,
    factors,
    places,
)
from rehearsal_torch.estimators.gp_posterior import (
    LONGEST,
    NOISIEST,
    HyperParameters,
    Posterior,
    fitted,
    highest,
    maximise,
    reached,
    standing,
    starts,
)
from rehearsal_torch.estimators.inducing_points import learnt
from rehearsal_torch.seeding import seeded

# nu of the Matern kernels, and the variance of a row that a regression leaves out.
SMOOTHNESS, LEFT_OUT = (math.inf, 2.5, 1.5), 1e8


class GaussianProcesses(Part, ABC):
    """N regressions, each on the first `widths[i]` of p inputs. The kernel "learnt" selects one per
    regression. `exact` rows are those of a function without noise. ValueError if the kernel is unknown.
    """

    def __init__(self, widths: Sequence[int], kernel: Kernel = "rbf", exact: bool = False) -> None:
        super().__init__()
        self.choice, self.exact = places(kernel), exact
        self.widths = tuple(int(width) for width in widths)
        blank = torch.empty(0, dtype=torch.float64)
        used = torch.arange(max(self.widths)) < torch.tensor(self.widths).unsqueeze(-1)
        defaults = standing(Rows(blank, blank, blank, used, blank))
        self.register_buffer("log_lengths", torch.where(used, defaults.log_lengths, 0.0))
        self.register_buffer("log_noises", torch.where(used.any(-1), defaults.log_noises, 0.0))
        self.register_buffer("kinds", torch.full((len(self.widths),), self.choice[0]))
        self.kinds: Tensor
        rows = len(self.widths), "n"
        self.register_fitted(inputs=(*rows, max(widths)), targets=rows, weights_of_rows=rows, ratios=rows)

    @property
    def used(self) -> Tensor:
        """The mask of each regression's inputs, (N, p) bool."""
        device = self.log_lengths.device
        return torch.arange(self.log_lengths.shape[1], device=device) < torch.tensor(
            self.widths, device=device
        ).unsqueeze(-1)

    @property
    def rows(self) -> Rows:
        """The training rows of the regressions; empty before the first fit."""
        return Rows(self.inputs, self.targets, self.weights_of_rows > 0, self.used, self.ratios, self.kinds)

    @property
    def hyper(self) -> HyperParameters:
        """The hyper-parameters."""
        return HyperParameters(self.log_lengths, self.log_noises)

    def hold(self, inputs: Tensor, targets: Tensor, kept: Tensor, ratios: Tensor | None = None) -> Rows:
        """Stores inputs (n, N, p) in the unit cube, targets, kept rows and noise ratios (n, N)."""
        mask = kept.mT.to(self.log_lengths)
        # Copies: the state shares no memory with the examples.
        self.inputs = (
            inputs.detach().to(self.log_lengths).transpose(0, 1) * mask.unsqueeze(-1) * self.used.unsqueeze(1)
        ).contiguous()
        self.targets = (targets.detach().to(self.log_lengths).mT * mask).contiguous()
        self.weights_of_rows = mask.clone(memory_format=torch.contiguous_format)
        variances = torch.ones_like(mask).mT if ratios is None else ratios.detach().to(mask)
        self.ratios = variances.mT.clone(memory_format=torch.contiguous_format)
        return self.rows

    def adopt(self, hyper: HyperParameters) -> None:
        """Stores hyper-parameters."""
        self.log_lengths = hyper.log_lengths.detach().clone()
        self.log_noises = hyper.log_noises.detach().clone()

    def limit_noise(self, variances: Tensor) -> None:
        """Raises noise variances to what is known of them at least, (N,)."""
        self.log_noises = self.log_noises.maximum(variances.log())

    def like(self, other: "GaussianProcesses") -> None:
        """Copies the kernels of another part."""
        self.kinds = other.kinds.clone()

    def _choose(self, candidates: Sequence[tuple[int, HyperParameters]]) -> None:
        """Selects kernels by the leave-one-out log density: the first unless another leads by `AHEAD`."""
        kinds, points = zip(*candidates, strict=True)
        scores = self.log_noises.new_zeros(len(points), len(self.widths))
        if len(points) > 1:
            scores = torch.stack([self._held_out_score(*candidate) for candidate in candidates])
            scores[0] += AHEAD
        self.kinds = torch.tensor(kinds, device=scores.device)[scores.argmax(0)]
        self.adopt(highest(points, scores))

    def _held_out_score(self, kind: int, hyper: HyperParameters) -> Tensor:
        """Leave-one-out log predictive density summed over `Rows.few`, up to a constant, (N,)."""
        rows = replace(self.rows.few(), kinds=torch.full_like(self.kinds, kind))
        residual, variance = factors(rows, hyper.log_lengths, hyper.log_noises).left_out()
        return -0.5 * ((residual.square() / variance + variance.log()) * rows.kept).sum(-1)

    def factors(self) -> Learnt:
        """The systems of all rows under the current hyper-parameters."""
        return learnt(self.rows, self.hyper.log_lengths, self.hyper.log_noises)

    def left_out_residuals(self) -> tuple[Tensor, Tensor]:
        """Leave-one-out residuals and their standard deviations, noise included, (N, n) each."""
        residual, variance = self.factors().left_out()
        return residual * self.rows.kept, variance.sqrt()

    def in_sample_residuals(self) -> tuple[Tensor, Tensor, Tensor]:
        """In-sample residuals y - mu, and standard deviations of the noise and of mu, (N, n) each."""
        rows = self.rows
        residual, epistemic = self.factors().in_sample()
        noise = self.log_noises.exp().unsqueeze(-1) * rows.ratios
        epistemic = torch.where(rows.used.any(-1, keepdim=True), epistemic.sqrt(), 0.0)
        return residual, noise.sqrt(), epistemic

    def posteriors(self) -> list[Posterior]:
        """The posterior of each regression."""
        factored = self.factors()
        return [
            Posterior.of(self.rows, factored, self.hyper, index, width)
            for index, width in enumerate(self.widths)
        ]


class SolvedProcesses(GaussianProcesses, Solved):
    """Regressions whose hyper-parameters are found by L-BFGS-B."""

    def solve(self, *examples: Tensor) -> None:
        """Fits to inputs (n, N, p), targets and the mask of kept rows, (n, N); those without rows stay."""
        last_fit = self.hyper if self.inputs.numel() else None
        all_rows = self.hold(*examples)
        indices = (all_rows.counts > 0).nonzero()[:, 0]
        if not len(indices):
            return
        previous, optimum = None if last_fit is None else last_fit.only(indices), None
        candidates = []
        for kind in self.choice:
            rows = replace(all_rows, kinds=torch.full_like(self.kinds, kind)).only(indices).few()
            optimum = fitted(rows, previous, optimum, self.exact)
            candidates.append((kind, self.hyper.filled(indices, optimum)))
        self._choose(candidates)


class BotorchProcesses(GaussianProcesses, Solved):
    """Regressions by BoTorch alone, with the same priors: a `SingleTaskGP` each, by `fit_gpytorch_mll` from
    its one start. The kernel is rbf (else a ValueError).
    """

    def __init__(self, widths: Sequence[int], kernel: Kernel = "rbf", exact: bool = False) -> None:
        super().__init__(widths, kernel, exact)
        if kernel != "rbf":
            raise ValueError(f"expected kernel=rbf with fitting=botorch; got {kernel!r}")

    def solve(self, *examples: Tensor) -> None:
        """Fits to inputs (n, N, p), targets (n, N) and the mask of kept rows (n, N)."""
        rows = self.hold(*examples).few()
        lengths, noises = self.log_lengths.clone(), self.log_noises.clone()
        for index, width in enumerate(self.widths):
            kept = rows.kept[index]
            if width and bool(kept.any()):
                inputs, targets = rows.inputs[index][kept][:, :width], rows.targets[index][kept]
                with validate_input_scaling(False), torch.enable_grad(), seeded(index):
                    model = SingleTaskGP(inputs, targets.unsqueeze(-1), outcome_transform=None)
                    fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
                lengths[index, :width] = model.covar_module.lengthscale.detach().flatten().log()
                noises[index] = model.likelihood.noise.detach().log().squeeze()
        self.adopt(HyperParameters(lengths, noises))


class Ascents(ExactGP):
    """GPyTorch models, M starts of N regressions; inputs are over the root of their number, for one prior."""

    def __init__(self, kind: int, used: Tensor, count: int) -> None:
        shape = torch.Size([count, len(used)])
        noise = LogNormalPrior(NOISE_MEAN, NOISE_SPREAD), Interval(NOISE_FLOOR, NOISIEST), shape
        super().__init__(None, None, GaussianLikelihood(*noise))
        self.register_buffer("root", used.sum(-1).clamp_min(1).double().sqrt()[:, None, None], False)
        self.mean_module = ConstantMean(batch_shape=shape)
        prior = LogNormalPrior(math.sqrt(2), LENGTH_SPREAD)
        arguments = {
            "ard_num_dims": used.shape[1],
            "batch_shape": shape,
            "lengthscale_prior": prior,
            "lengthscale_constraint": Interval(LENGTH_FLOOR / self.root, LONGEST / self.root),
        }
        self.covar_module = MaternKernel(SMOOTHNESS[kind], **arguments) if kind else RBFKernel(**arguments)
        # Without inputs the length-scale stays at the mode.
        self.covar_module.lengthscale = prior.mode.expand(*shape, 1, used.shape[1])
        self.double()

    def forward(self, inputs: Tensor) -> MultivariateNormal:
        """The prior at inputs (N, n, p)."""
        scaled = inputs / self.root
        return MultivariateNormal(self.mean_module(scaled), self.covar_module(scaled))

    def log_posterior(self, rows: Rows) -> Tensor:
        """log p(y | l, v, m) + log p(l) + log p(v) per row, (M, N), up to a constant."""
        noise = torch.where(rows.kept, self.likelihood.noise, LEFT_OUT)
        with fast_computations(log_prob=False):
            likelihood = ExactMarginalLogLikelihood(self.likelihood, self)
            return likelihood(self.forward(rows.inputs), rows.targets, noise=noise)

    @torch.no_grad()
    def begin(self, used: Tensor, points: list[HyperParameters]) -> None:
        """Sets the starts."""
        lengths = torch.stack([point.log_lengths for point in points]).exp().unsqueeze(-2) / self.root
        self.covar_module.lengthscale = torch.where(
            used.unsqueeze(-2), lengths, self.covar_module.lengthscale
        )
        self.likelihood.noise = torch.stack([point.log_noises for point in points]).exp().unsqueeze(-1)

    def ends(self, used: Tensor) -> list[HyperParameters]:
        """The hyper-parameters reached from each start; log l and log v are 0 without inputs."""
        lengths = (self.covar_module.lengthscale * self.root).log().squeeze(-2)
        noises = self.likelihood.noise.log().squeeze(-1)
        lengths, noises = torch.where(used, lengths, 0.0), torch.where(used.any(-1), noises, 0.0)
        return [HyperParameters(*pair) for pair in zip(lengths, noises, strict=True)]


class TrainedProcesses(GaussianProcesses, Trained):
    """Hyper-parameters by gradient descent on GPyTorch's marginal log likelihood, the best of all starts."""

    def __init__(self, widths: Sequence[int], kernel: Kernel = "rbf", exact: bool = False) -> None:
        super().__init__(widths, kernel, exact)
        count = 3 if exact else 2
        self.ascents = nn.ModuleList(Ascents(kind, self.used, count) for kind in self.choice)

    @property
    def uses_held_out(self) -> bool:
        """False: the evidence guards against overfitting."""
        return False

    def loss(self, *examples: Tensor) -> Tensor:
        """Negative log evidence and log prior per row, summed over regressions and starts, (), of the rows of
        `hold` and, in each row, their number (n,). ValueError if the batch does not contain all rows.
        """
        *example, count = examples
        if len(count) != int(count[0]):
            expected = f"expected all {int(count[0])} rows in one batch; got {len(count)}"
            raise ValueError(f"{expected}: set trainer.batch_size to {int(count[0])} or more")
        rows_changed = self.inputs.ndim != 3 or self.inputs.shape[1] != len(count)
        rows = self.hold(*example).few()
        for kind, ascents in self._trials():
            if rows_changed:
                ascents.begin(self.used, starts(replace(rows, kinds=kind), exact=self.exact))
        return -torch.stack([ascents.log_posterior(rows).sum() for _, ascents in self._trials()]).sum()

    @torch.no_grad()
    def finish(self) -> None:
        """Keeps the best result of each regression; the stored rows are those of the last step."""
        candidates = []
        for kind, ascents in self._trials():
            ends, rows = ascents.ends(self.used), replace(self.rows.few(), kinds=kind)
            best = highest(ends, torch.stack([reached(rows, end) for end in ends]))
            candidates.append((int(kind[0]), best))
        self._choose(candidates)

    def _trials(self) -> Iterator[tuple[Tensor, Ascents]]:
        """The kernels, in each regression, and the ascents under each."""
        for kind, part in zip(self.choice, self.ascents, strict=True):
            assert isinstance(part, Ascents)
            yield torch.full_like(self.kinds, kind), part


class GivenNoise(GaussianProcesses, Solved):
    """Regressions with known noise variances of the rows, `ratios`; only length-scales are fitted."""

    def solve(self, *examples: Tensor) -> None:
        """Fits to the arguments of `hold`, initial length-scales (n, N, p) and the mask of regressions to fit
        (n, N), equal in all rows; one that is not fitted keeps the initial length-scales.
        """
        inputs, targets, kept, variances, lengths, to_fit = examples
        self.adopt(HyperParameters(lengths[0], torch.zeros_like(self.log_noises)))
        rows = self.hold(inputs, targets, kept, variances)
        indices = (to_fit[0] & self.used.any(-1)).nonzero()[:, 0]
        if not len(indices):
            return
        start = HyperParameters(self.log_lengths[indices], self.log_noises[indices])
        optimum = maximise(rows.only(indices).few(), [start], free_noise=False)
        log_lengths = self.log_lengths.clone()
        log_lengths[indices] = optimum.log_lengths
        self.adopt(HyperParameters(log_lengths, self.log_noises))
