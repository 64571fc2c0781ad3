"""Bayesian regression on random Fourier features of a composite kernel, with drawn functions and residuals.

For each of q outputs y, standardised over the rows, and standardised inputs h in R^p, a Gaussian process with
a sum of three kernels is fitted by evidence on a subset of the rows,

    k(h, h') = s exp(-sum_d w_d^2 (h_d - h'_d)^2 / 2) + l h'h' + g q(h)'q(h'),
    q(h) = (h_i h_j for i < j, (h_i^2 - 1) / sqrt 2 for all i).

The smooth part has an inverse length-scale per input (automatic relevance determination). The linear and
the product part keep a trend beyond the observed inputs, where the smooth part returns to the mean; the
evidence decides how much of each is used. With K the kernel matrix plus the noise nu I, a = K^-1 y and
G = (K^-1 - a a') / 2, the negative log evidence and its derivative in a parameter t are

    E = y'a / 2 + log |K| / 2,        dE/dt = tr(G dK/dt).

Log-normal priors with wide spreads keep every parameter finite: w about 1/2 of two inputs, falling with the
root of their number (in many dimensions, functions of one length-scale in each would be noise: Hvarfner et
al., 2024), s about 1, l and nu about .1 and .3, g about .1 / p. The minimum is found by L-BFGS-B, from one
start.

With M frequencies z ~ N(0, I), the features of the kernel are

    phi(h) = (sqrt(s/M) cos((w z_m)'h), sqrt(s/M) sin((w z_m)'h), sqrt(l) h, sqrt(g) q(h), 1),

so that phi(h)'phi(h') is the kernel up to the error of M frequencies. All rows then give the posterior of
the coefficients,

    A = P'P + nu I = L L',   beta | rows ~ N(A^-1 P'y, sigma^2 A^-1),   sigma^2 = |y - P beta|^2 / (n - tr H),

at a cost of O(n F^2 + F^3) with F features, in sums over blocks of rows. Drawing beta draws a whole function.
H = P A^-1 P' has the leverages h_i on its diagonal. The residuals that are kept are r_i = (y_i - phi_i'beta)
/ sqrt(1 - h_i): the geometric mean of the in-sample residual, which is too small, and of the leave-one-out
residual (y_i - phi_i'beta) / (1 - h_i), which also contains the uncertainty of the function. Their variance
is that of the noise, whatever its distribution. The residuals of one row belong together.

The value of a drawn function at h = b + a, where only some of the inputs move by a, is linear in features of
a,

    f(b + a) = G(b)'psi(a),    psi(a) = (cos beta_m, sin beta_m, a, a a', 1),   beta_m = (w z_m)_a'a,

so that many values of a cost one matrix product once G has been computed.

phi'A^-1 phi, the posterior variance of the function relative to that of the noise, is the inverse of an
effective number of observations of the same inputs. Used by `surrogates.outcome`.

Source: Rasmussen and Williams (2006), Eq. 4.24 (sums of kernels), Sec. 5.1 (length-scales), Eq. 5.8-5.9
(evidence), Sec. 2.1 (Bayesian linear regression) and 5.4.2 (leave-one-out); Rahimi and Recht (2007) (random
features); Efron (1979) (resampled residuals); Cook and Weisberg (1982), Sec. 2.2 (residuals of constant
variance); Hvarfner et al. (2024) (length-scales in many dimensions).
"""

import math
from abc import abstractmethod
from collections.abc import Callable, Iterable, Sequence

import numpy as np
import torch
from scipy.optimize import minimize
from torch import Tensor

from rehearsal_torch.data.size_limits import bounded
from rehearsal_torch.data.trainable_part import Solved
from rehearsal_torch.seeding import sobol

LOWEST, HIGHEST = -8.0, 4.0
WIDTH_MEAN, WIDTH_SPREAD, AMPLITUDE_SPREAD = math.log(0.5), 1.0, 2.0
NOISE_FLOOR = 1e-4


def products(inputs: Tensor) -> Tensor:
    """q(h), (..., p) -> (..., p (p + 1) / 2), row by row of the upper triangle."""
    if inputs.shape[-1] == 0:
        return inputs
    first, second = torch.triu_indices(inputs.shape[-1], inputs.shape[-1], device=inputs.device)
    paired = inputs[..., first] * inputs[..., second]
    return torch.where(first == second, (paired - 1) / math.sqrt(2), paired)


def minimum(
    function: Callable[[np.ndarray], tuple[float, np.ndarray]],
    start: np.ndarray,
    bounds: Sequence[tuple[float | None, float | None]],
    iterations: int,
) -> np.ndarray:
    """The minimum of a function with its gradient, by L-BFGS-B."""
    options = {"maxiter": iterations, "maxfun": 2 * iterations, "maxcor": 20}
    optimum = minimize(function, start, jac=True, method="L-BFGS-B", bounds=bounds, options=options)
    return np.asarray(optimum.x)


# The inverse length-scales w, (p,); s, l, g and nu.
Kernel = tuple[Tensor, tuple[float, float, float, float]]


def most_probable(inputs: Tensor, output: Tensor, iterations: int) -> Kernel:
    """The largest evidence times prior, for standardised inputs (n, p), p may be 0, and output (n,)."""
    width = inputs.shape[1]
    evidence = _Evidence(inputs, output - output.mean())
    scale = 1 / max(1, width)
    start = np.concatenate(
        [np.full(width, math.log(0.5 * math.sqrt(scale))), np.log([1.0, 0.5 * scale, 0.1 * scale, 0.4])]
    )
    return evidence.read(minimum(evidence.with_prior, start, [(LOWEST, HIGHEST)] * len(start), iterations))


class _Evidence:
    """E and its gradient for one output, in the logarithms of (w, s, l, g, nu)."""

    def __init__(self, inputs: Tensor, output: Tensor) -> None:
        self.inputs, self.output, self.width = inputs, output, inputs.shape[1]
        self.straight = inputs @ inputs.mT
        features = products(inputs)
        self.paired = features @ features.mT
        self.means = np.concatenate(
            [
                np.full(self.width, WIDTH_MEAN - 0.5 * math.log(max(1, self.width) / 2)),
                np.log([1.0, 0.1, 0.1 / max(1, self.width), 0.3]),
            ]
        )
        self.spreads = np.concatenate([np.full(self.width, WIDTH_SPREAD), np.full(4, AMPLITUDE_SPREAD)])

    def read(self, point: np.ndarray) -> Kernel:
        """The parameters of a point."""
        smooth, linear, product, noise = np.exp(point[self.width :]).tolist()
        widths = torch.from_numpy(np.exp(point[: self.width])).to(self.inputs)
        return widths, (smooth, linear, product, noise + NOISE_FLOOR)

    def with_prior(self, point: np.ndarray) -> tuple[float, np.ndarray]:
        """E minus the log prior, and its gradient."""
        value, gradient = self(point)
        deviation = (point - self.means) / self.spreads
        return value + 0.5 * float(deviation @ deviation), gradient + deviation / self.spreads

    def __call__(self, point: np.ndarray) -> tuple[float, np.ndarray]:
        widths, (smooth, linear, product, noise) = self.read(point)
        scaled = self.inputs * widths
        squares = scaled.square().sum(-1)
        rbf = (squares.unsqueeze(-1) + squares - 2 * scaled @ scaled.mT).clamp_min_(0).mul_(-0.5).exp_()
        rbf *= smooth
        kernel = rbf + linear * self.straight
        kernel += product * self.paired
        kernel.diagonal().add_(noise)
        factor = torch.linalg.cholesky(kernel)
        weights = torch.cholesky_solve(self.output.unsqueeze(-1), factor).squeeze(-1)
        value = 0.5 * self.output @ weights + factor.diagonal().log().sum()
        weighting = torch.cholesky_inverse(factor)
        weighting.addr_(weights, weights, alpha=-1).mul_(0.5)
        amplitudes = [
            float((weighting * rbf).sum()),
            linear * float((weighting * self.straight).sum()),
            product * float((weighting * self.paired).sum()),
            (noise - NOISE_FLOOR) * float(weighting.diagonal().sum()),
        ]
        rbf *= weighting
        slopes = (rbf.sum(-1, keepdim=True) * scaled.square()).sum(0) - (scaled * (rbf @ scaled)).sum(0)
        return float(value), np.concatenate([-2 * slopes.cpu().numpy(), np.array(amplitudes)])


CHUNK = 4_000_000
MAX_FREQUENCIES = 2048
MAX_RESIDUALS = 2000
LARGEST_LEVERAGE = 0.95


class FeatureRegression(Solved):
    """The base of regressions and classifications: M = `frequencies`, which are drawn with the seed, as are
    at most `evidence_rows` rows to which kernels are fitted.
    """

    def __init__(
        self, frequencies: int = 100, evidence_rows: int = 250, iterations: int = 30, seed: int = 0
    ) -> None:
        super().__init__()
        if min(frequencies, evidence_rows, iterations) < 1:
            expected = "expected at least one frequency, row and iteration"
            raise ValueError(f"{expected}; got {frequencies}, {evidence_rows} and {iterations}")
        bounded("frequencies", frequencies, MAX_FREQUENCIES)
        self.frequencies, self.evidence_rows, self.iterations = frequencies, evidence_rows, iterations
        self.seed = seed
        self.register_fitted(
            location=("q",), scale=("q",), widths=("q", "p"), amplitudes=("q", 4),
            directions=(frequencies, "p"), coefficients=("q", "f"), noise=("q",), residuals=("n", "q"),
        )  # fmt: skip
        # The rows with their weights and units, where they take less memory than the roots of regressions,
        # which follow from them.
        self.register_fitted(rows=("m", "p"), row_weights=("q", "m"), row_units=("m",), source=True)
        self.register_fitted(root=("q", "f", "f"), derived=True)

    def faults(self) -> list[str]:
        """Inconsistent sizes, and variances that are not positive."""
        faults = super().faults()
        if faults:
            return faults
        expected = self.features_of(self.inputs)
        if self.coefficients.shape[1] != expected:
            return [
                f"coefficients: expected {expected} features for {self.inputs} inputs; got "
                f"{self.coefficients.shape[1]}"
            ]
        positive = {"scale": self.scale, "noise": self.noise, "amplitudes": self.amplitudes[:, -1]}
        return [
            f"{name}: expected numbers above 0; got {value.tolist()}"
            for name, value in positive.items()
            if not bool((value > 0).all())
        ]

    @property
    def inputs(self) -> int:
        """p."""
        return int(self.directions.shape[1])

    @property
    def outputs(self) -> int:
        """q."""
        return len(self.location)

    def features_of(self, inputs: int) -> int:
        """F, the number of features of p inputs."""
        return 2 * self.frequencies + inputs + inputs * (inputs + 1) // 2 + 1

    def _fit_kernels(self, examples: Iterable[tuple[Tensor, Tensor]]) -> None:
        """Fits the kernel of each output to its inputs (n, p) and output (n,), and draws the frequencies."""
        fits = [most_probable(inputs, column, self.iterations) for inputs, column in examples]
        self.widths = torch.stack([widths for widths, _ in fits])
        self.amplitudes = self.widths.new_tensor([amplitudes for _, amplitudes in fits])
        width = self.widths.shape[1]
        unit = sobol(max(width, 1), self.seed).draw(self.frequencies, dtype=torch.float64)
        self.directions = torch.special.ndtri(unit.clamp(1e-6, 1 - 1e-6))[:, :width].to(self.widths)

    @abstractmethod
    def condition(self, inputs: Tensor, outputs: Tensor) -> None:
        """The posterior and the residuals for other rows, (n, p) and (n, q), with the kernels as they are."""

    def features(self, inputs: Tensor, output: int) -> Tensor:
        """phi of one output, (..., p) -> (..., F)."""
        smooth, linear, product, _ = self.amplitudes[output]
        phases = inputs @ (self.directions * self.widths[output]).mT
        amplitude = (smooth / self.frequencies).sqrt()
        waves = [amplitude * phases.cos(), amplitude * phases.sin()]
        polynomial = [linear.sqrt() * inputs, product.sqrt() * products(inputs)]
        return torch.cat([*waves, *polynomial, inputs.new_ones(*inputs.shape[:-1], 1)], -1)

    def forward(self, inputs: Tensor) -> Tensor:
        """The posterior means, (..., p) -> (..., q); of many points in blocks."""
        points = inputs.reshape(inputs.shape[:-1].numel(), inputs.shape[-1])
        block = max(1, CHUNK // self.coefficients.shape[1])
        means = [
            torch.cat([self.features(rows, output) @ beta for rows in points.split(block)])
            for output, beta in enumerate(self.coefficients)
        ]
        return self.location + self.scale * torch.stack(means, -1).reshape(*inputs.shape[:-1], self.outputs)

    def draws(self, count: int, stream: torch.Generator) -> Tensor:
        """Coefficients of functions drawn from the posterior, (q, D, F), of standardised outputs."""
        shape = (self.outputs, self.coefficients.shape[1], count)
        normal = torch.randn(shape, dtype=torch.float64, generator=stream).to(self.root)
        deviations = torch.linalg.solve_triangular(self.root.mT, normal, upper=True)
        deviations = deviations * self.noise.sqrt()[:, None, None]
        return (self.coefficients.unsqueeze(-1) + deviations).mT

    def drawn(self, functions: Tensor, inputs: Tensor) -> Tensor:
        """Values of drawn functions (q, D, F) at inputs of their own, (..., D, m, p) -> (..., D, m, q)."""
        values = [
            (self.features(inputs, output) @ beta.unsqueeze(-1)).squeeze(-1)
            for output, beta in enumerate(functions)
        ]
        return self.location + self.scale * torch.stack(values, -1)

    def common(self, functions: Tensor, inputs: Tensor) -> Tensor:
        """Values of G functions in each of N groups, (q, N, G, F), at the same inputs (..., N, m, p): (...,
        N, m, G, q). As `drawn`, without a tensor of all features, most of the work where G is small.
        """
        values = []
        for output, beta in enumerate(functions):
            smooth, linear, product, _ = self.amplitudes[output]
            cosine, sine, straight, paired, constant = beta.mT.split(self._blocks(), -2)
            phases = inputs @ (self.directions * self.widths[output]).mT
            amplitude = (smooth / self.frequencies).sqrt()
            result = phases.cos() @ (amplitude * cosine)
            result += phases.sin_() @ (amplitude * sine)
            # h'(Q h + l) for each function, by products of matrices.
            form, shift = _forms((product.sqrt() * paired).mT.flatten(0, -2), self.inputs)
            form = form.unflatten(0, beta.shape[:2]).transpose(-3, -2).flatten(-2)
            linear_forms = (inputs @ form).unflatten(-1, (beta.shape[1], self.inputs))
            linear_forms += linear.sqrt() * straight.mT.unsqueeze(-3)
            result += (linear_forms @ inputs.unsqueeze(-1)).squeeze(-1)
            values.append(result + (constant - shift.unflatten(0, beta.shape[:2]).unsqueeze(-2)))
        return self.location + self.scale * torch.stack(values, -1)

    def along(self, functions: Tensor, base: Tensor, moving: Sequence[int]) -> Tensor:
        """G, (..., q, D, m, C), of drawn functions (q, D, F) around a base (..., D, m, p): their values where
        the k inputs at the places `moving` move by a are G'psi(a), with psi of `moved_features`.
        """
        width, indices, coefficients = self.inputs, list(moving), []
        for output, beta in enumerate(functions):
            smooth, linear, product, _ = self.amplitudes[output]
            cosine, sine, straight, paired, constant = beta.split(self._blocks(), -1)
            phases = base @ (self.directions * self.widths[output]).mT
            amplitude = (smooth / self.frequencies).sqrt()
            cosines, sines = amplitude * phases.cos(), amplitude * phases.sin()
            cosine, sine = cosine.unsqueeze(-2), sine.unsqueeze(-2)
            slopes = (linear.sqrt() * straight).unsqueeze(-2)
            constants = constant + (base * slopes).sum(-1)
            slope = slopes[..., indices].expand(*base.shape[:-1], -1)
            pieces = [cosine * cosines + sine * sines, sine * cosines - cosine * sines]
            form, shift = _forms(paired * product.sqrt(), width)
            half_slopes = base @ form
            constants = constants - shift.unsqueeze(-1) + (half_slopes * base).sum(-1)
            quadratic = form[:, None, indices][..., indices].flatten(-2)
            pieces += [slope + 2 * half_slopes[..., indices], quadratic.expand(*base.shape[:-1], -1)]
            coefficients.append(torch.cat([*pieces, constants.unsqueeze(-1)], -1))
        return torch.stack(coefficients, -4)

    def moved_features(self, moves: Tensor, moving: Sequence[int]) -> Tensor:
        """psi of each output for moves a of the inputs at given places, (..., k) -> (..., q, C)."""
        phases = torch.einsum("...k,qmk->...qm", moves, self.frequencies_of(moving))
        shape = (*moves.shape[:-1], self.outputs)
        linear = moves.unsqueeze(-2).expand(*shape, -1)
        quadratic = (linear.unsqueeze(-1) * linear.unsqueeze(-2)).flatten(-2)
        return torch.cat([phases.cos(), phases.sin(), linear, quadratic, moves.new_ones(*shape, 1)], -1)

    def frequencies_of(self, places: Sequence[int]) -> Tensor:
        """The frequencies w z of some inputs for each output, (q, M, k)."""
        return self.directions[:, list(places)] * self.widths[:, None, list(places)]

    def in_units(self, values: Tensor) -> Tensor:
        """Standardised outputs to outputs, with q in the last dimension."""
        return self.location + self.scale * values

    def _blocks(self) -> list[int]:
        width = self.inputs
        return [self.frequencies, self.frequencies, width, width * (width + 1) // 2, 1]


def _forms(paired: Tensor, width: int) -> tuple[Tensor, Tensor]:
    """The quadratic forms x'Q x - c of coefficients of products, (D, p (p + 1) / 2) -> (D, p, p), (D,)."""
    first, second = torch.triu_indices(width, width, device=paired.device)
    diagonal = first == second
    entries = torch.where(diagonal, paired / math.sqrt(2), paired / 2)
    form = paired.new_zeros(len(paired), width, width)
    form[:, first, second] = entries
    form[:, second, first] = entries
    return form, entries[:, diagonal].sum(-1)


def between_units(residuals: Tensor, groups: Tensor) -> float:
    """t, the variance between units over that within them, by analysis of variance; at least 0."""
    counts = torch.bincount(groups).to(residuals)
    units, rows = len(counts), len(groups)
    if units < 2 or units == rows:
        return 0.0
    means = residuals.new_zeros(units).index_add_(0, groups, residuals) / counts
    within = float((residuals - means[groups]).square().sum()) / (rows - units)
    mean = float(residuals.mean())
    between = float((counts * (means - mean).square()).sum()) / (units - 1)
    unit_size = (rows - float(counts.square().sum()) / rows) / (units - 1)
    return max(0.0, (between / max(within, 1e-300) - 1) / unit_size)
