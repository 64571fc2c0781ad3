"""Posterior sample paths of a Gaussian-process regression (Matheron's rule), under drawn hyper-parameters.

For each draw h of the hyper-parameters, with rows (W, y), signal variance s^2 and noise variances s^2 R_h,

    f(w) = m + s phi(w)'theta + k(w, W) v,    v = K^-1 (y - m - s (Phi theta + e)),     K = k(W, W) + R_h,
    theta ~ N(0, I),     e ~ N(0, R_h),       m ~ N(1'K^-1 y / 1'K^-1 1,  s^2 / 1'K^-1 1),

is a sample path of the posterior: phi are random Fourier features of the kernel, which approximate the prior
far from the rows, and the update is exact. It comes with its mirror image 2 mu - f, mu the posterior mean, so
that the mean over a pair is mu. A path is a function: its values at several points are joint, in one
evaluation of O(n + F) a point, with a gradient. Used by `mechanisms.plausible_mechanism`.

`conditioned` adds rows (w, y): f becomes f + c(., w) (c(w, w) + R)^-1 (y - f(w) - e), c the posterior
covariance.

Functions of one or two inputs can be tabulated (`tabulated`): cubic convolution between their values on a
grid that covers the unit cube and a margin, beyond which they are constant. A value then costs 4 or 16 table
entries whatever n is.

BoTorch's `draw_matheron_paths` draws the same paths (a value with its gradient takes 1.0, 1.9 and 1.6 times
as long at n = 20, 100 and 400), but without mirror images, whose mean is free of sampling error, and with a
known mean; a table costs .04 of a path at n = 100.

Source: Wilson et al. (2020), Sec. 3 (pathwise conditioning); Rahimi and Recht (2007), Sutherland and
Schneider (2015) (features in pairs of sine and cosine); Rasmussen and Williams (2006), Eq. 2.25-2.26; Keys
(1981).
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from rehearsal_torch.estimators.gp_kernel import KINDS, MANY, correlation, lower_root
from rehearsal_torch.estimators.gp_posterior import Posterior
from rehearsal_torch.estimators.inducing_points import Induced, inducing
from rehearsal_torch.seeding import generator

# F, number of features; even.
FEATURES = 256
# The fewest and the most nodes of a table along a coordinate, by the number of inputs; nodes within a
# length-scale; and the table's margin around the unit cube.
NODES, WITHIN, MARGIN = {1: (129, 513), 2: (33, 97)}, 5, 0.25
# Numbers in a tensor of kernel values and features: the memory of larger ones is mapped anew each time.
TOGETHER, ON_GPU = 2**20, 2**26


@dataclass(frozen=True)
class FunctionDraws:
    """E = 2 H functions of p inputs, H and their mirror images; b stands for sets of added rows."""

    kind: int  # The kernel, an index into `kernel.KINDS`
    lengths: Tensor  # l, (H, p)
    scales: Tensor  # s, (H,)
    frequencies: Tensor  # Of the features, in units of 1 / l, (H, F / 2, p)
    places: Tensor  # W, or Z for many rows, (n, p)
    means: Tensor  # m, (E,)
    coefficients: Tensor  # theta, (E, F)
    weights: Tensor  # v, (E, n), or (E, *b, n)
    inverses: Tensor  # The inverses of the lower Cholesky factors of K, or R for many rows, (H, n, n)
    added: Tensor | None = None  # Added rows, (*b, m, p)
    added_weights: Tensor | None = None  # (E, *b, m)
    before: "FunctionDraws | None" = None  # Without them
    told: tuple[Tensor, Tensor] | None = None  # Their targets and noise variances, (E, *b, m)

    @classmethod
    def of(
        cls,
        kind: int,
        places: Tensor,
        lengths: Tensor,
        targets: Tensor,
        variances: Tensor,
        scales: Tensor,
        seed: int,
    ) -> "FunctionDraws":
        """H pairs of functions given rows W (n, p) in the unit cube, l (H, p), y and R (H, n), and s (H,)."""
        count, width, rows = *lengths.shape, len(places)
        # The draws belong to the rows, whatever their order.
        order = torch.arange(rows, device=places.device)
        for column in (targets[0], *places.flip(-1).unbind(-1)):
            order = order[column[order].argsort(stable=True)]
        places, targets, variances = places[order], targets[:, order], variances[:, order]
        draws = generator(seed)

        def normal(*shape: int) -> Tensor:
            return torch.randn(*shape, generator=draws, dtype=torch.float64).to(lengths)

        frequencies = normal(count, FEATURES // 2, width)
        if kind:
            # A Matern kernel's spectral density is a multivariate t with 2 nu degrees of freedom.
            freedom = 5 if KINDS[kind] == "matern52" else 3
            chi_square = normal(count, FEATURES // 2, freedom).square().sum(-1, keepdim=True)
            frequencies = frequencies * (freedom / chi_square).sqrt()
        empty = lengths.new_zeros(0)
        built = cls(kind, lengths, scales, frequencies, places, empty, empty, empty, empty)
        scale = scales.unsqueeze(-1)
        theta, level = scale * normal(count, FEATURES), scales * normal(count)
        noise = scale * normal(count, rows)
        if not width:
            # A mean of rows with equal noise.
            mean, std = targets.mean(-1), (variances.mean(-1) / rows).sqrt()
            means = torch.cat([mean + std * level, mean - std * level])
            no_rows = means.new_zeros(len(means), 0)
            return replace(built, means=means, coefficients=no_rows, weights=no_rows, inverses=no_rows)
        if rows > MANY:
            built, inverses, (total, targets_total), solved = built._induced(targets, variances, theta, noise)
            solved_ones, solved_targets, solved_prior = solved
        else:
            root = lower_root(built._between(places, places) + torch.diag_embed(variances))
            eye = torch.eye(rows).to(root)
            inverses = torch.linalg.solve_triangular(root, eye.expand_as(root), upper=False)
            prior = built._prior(places.unsqueeze(0), theta)
            columns = torch.ones_like(targets), targets, prior + noise * variances.sqrt()
            solved_ones, solved_targets, solved_prior = (
                (inverses.mT @ (inverses @ column.unsqueeze(-1))).squeeze(-1) for column in columns
            )
            total, targets_total = solved_ones.sum(-1), solved_targets.sum(-1)
        mean = targets_total / total
        deviation = level / total.sqrt()
        # Posterior mean, and half the difference of a pair.
        centre = solved_targets - mean.unsqueeze(-1) * solved_ones
        deviations = -solved_prior - deviation.unsqueeze(-1) * solved_ones
        return replace(
            built,
            means=torch.cat([mean + deviation, mean - deviation]),
            coefficients=torch.cat([theta, -theta]),
            weights=torch.cat([centre + deviations, centre - deviations]),
            inverses=inverses,
        )

    def _induced(
        self, targets: Tensor, variances: Tensor, theta: Tensor, noise: Tensor
    ) -> tuple["FunctionDraws", Tensor, Tensor, Tensor]:
        """The draws with inducing points in place of many rows; R; and of the columns 1, y and Phi theta + e
        the sums 1'K^-1 of the first two, (2, H), and the weights S C, (3, H, c).
        """
        chosen = inducing(self.places, self.lengths.amin(0).log(), self.kind)
        built = replace(self, places=self.places[chosen])
        at_points = built._prior(built.places.unsqueeze(0), theta)
        roots = targets.new_empty(len(theta), len(chosen), len(chosen))
        totals, weights = targets.new_empty(2, len(theta)), targets.new_empty(3, len(theta), len(chosen))
        # Many rows leave few distinct hyper-parameters.
        _, group_of = torch.cat([self.lengths, variances], -1).unique(dim=0, return_inverse=True)
        for group in (group_of == number for number in range(int(group_of.max()) + 1)):
            first = int(group.nonzero()[0, 0])
            lengths = self.lengths[first].log()
            part = Induced.of(self.places, variances[first], lengths, self.kind, chosen)
            prior = part.at_rows(at_points[group].mT).mT + noise[group] * part.noises.sqrt()
            columns = torch.stack([torch.ones_like(prior), targets[group], prior])
            flat = columns.flatten(0, 1).mT
            totals[:, group] = part.solved(flat).sum(0).reshape(3, -1)[:2]
            weights[:, group] = part.weights(flat).mT.unflatten(0, (3, -1))
            roots[group] = part.basis_root()
        return built, roots, totals, weights

    @classmethod
    def certain(cls, posterior: Posterior) -> "FunctionDraws":
        """A posterior mean as a pair of equal functions, without features."""
        count, width = posterior.places.shape
        zeros = posterior.places.new_zeros
        return cls(
            posterior.kind,
            posterior.scales.reciprocal().unsqueeze(0),
            zeros(1),
            zeros(1, 0, width),
            posterior.places / posterior.scales,
            posterior.mean.expand(2),
            zeros(2, 0),
            posterior.weights.expand(2, count),
            zeros(1, 0, 0),
        )

    def __len__(self) -> int:
        return len(self.means)

    @property
    def width(self) -> int:
        """p."""
        return self.lengths.shape[-1]

    def __call__(self, inputs: Tensor) -> Tensor:
        """The functions at inputs (1 or E, ..., p), all of them or each at its own, (E, ...)."""
        flat = inputs.unsqueeze(-2) if inputs.ndim == 2 else inputs
        values = self._in_blocks(self._values, flat)
        return values.squeeze(-1) if inputs.ndim == 2 else values

    def _in_blocks(self, function: Callable[[Tensor], Tensor], inputs: Tensor) -> Tensor:
        """Values (E, ..., m) of a function of inputs (1 or E, ..., m, p)."""
        numbers = max(len(inputs), len(self.lengths)) * (FEATURES + len(self.places))
        size = (TOGETHER if inputs.is_cpu else ON_GPU) // max(1, numbers * math.prod(inputs.shape[1:-2]))
        return torch.cat([function(part) for part in inputs.split(max(1, size), -2)], -1)

    def few(self, count: int) -> "FunctionDraws":
        """The first pairs, an even number of functions."""
        pairs, chosen = count // 2, first_pairs(torch.arange(len(self)), count).to(self.means.device)
        hyper = {
            name: getattr(self, name)[:pairs] for name in ("lengths", "scales", "frequencies", "inverses")
        }
        per_function = {name: getattr(self, name)[chosen] for name in ("means", "coefficients", "weights")}
        added_weights = None if self.added_weights is None else self.added_weights[chosen]
        if not self.width:
            hyper["inverses"] = self.inverses[chosen]
        before = None if self.before is None else self.before.few(count)
        told = None if self.told is None else (self.told[0][chosen], self.told[1][chosen])
        return replace(self, **hyper, **per_function, added_weights=added_weights, before=before, told=told)

    def conditioned(self, inputs: Tensor, targets: Tensor, variances: Tensor, seed: int) -> "FunctionDraws":
        """The functions given m more rows, (*b, m, p), whose targets and noise variances broadcast against
        (E, *b, m), with gradients. Earlier added rows are added again with these, with new draws of noise.
        A function without inputs stays as it is.
        """
        if not self.width:
            return self
        shape = (len(self), *inputs.shape[:-1])
        targets, variances = targets.expand(shape), variances.expand(shape)
        if self.before is not None and self.added is not None and self.told is not None:
            old = self.added.expand(*inputs.shape[:-2], *self.added.shape[-2:])
            ones = [1] * (inputs.ndim - self.added.ndim)
            joint = [
                torch.cat([past.reshape(len(self), *ones, *past.shape[1:]).expand(*shape[:-1], -1), new], -1)
                for past, new in zip(self.told, (targets, variances), strict=True)
            ]
            return self.before.conditioned(torch.cat([old, inputs], -2), joint[0], joint[1], seed)
        noise = torch.randn(len(self) // 2, *shape[1:], generator=generator(seed), dtype=torch.float64)
        noise = torch.cat([noise, -noise]).to(self.means) * variances.sqrt()
        gains, covariance = self._gains(inputs)
        root = lower_root(covariance + torch.diag_embed(variances))
        residual = (targets - self(inputs.unsqueeze(0)) - noise).unsqueeze(-1)
        signal = self.scales.square().repeat(2).reshape(-1, *[1] * (inputs.ndim - 1))
        added = signal * torch.cholesky_solve(residual, root).squeeze(-1)
        old = self.weights.reshape(len(self), *[1] * (inputs.ndim - 2), -1)
        weights = old - (gains @ added.unsqueeze(-1)).squeeze(-1)
        observed = targets, variances
        return replace(self, weights=weights, added=inputs, added_weights=added, before=self, told=observed)

    @property
    def fits_tables(self) -> bool:
        """Whether there are one or two inputs, and all rows lie in the range of a table."""
        return self.width in NODES and float((self.places - 0.5).abs().amax()) <= 0.5 + MARGIN

    def tabulated(self) -> "TabulatedFunctions":
        """The functions on a grid; ValueError unless they have one or two inputs."""
        if self.width not in NODES:
            raise ValueError(f"expected functions of one or two inputs; got {self.width}")
        fewest, most = NODES[self.width]
        shortest = float(self.lengths.amin(-1).median())
        count = int(min(most, max(fewest, WITHIN * (1 + 2 * MARGIN) / shortest)))
        axis = torch.linspace(-MARGIN, 1 + MARGIN, count, dtype=torch.float64).to(self.means)
        grid = torch.cartesian_prod(*[axis] * self.width).reshape(1, -1, self.width)
        with torch.no_grad():
            values = self._in_blocks(self._updated, grid).reshape(len(self), *[count] * self.width)
            return TabulatedFunctions(values + self._waves(axis))

    def _waves(self, axis: Tensor) -> Tensor:
        """s phi'theta on the grid of an axis, (E, G) or (E, G, G), by sine and cosine of sums."""
        waves = (self.frequencies / self.lengths.unsqueeze(-2)).unsqueeze(-3)
        first, second = (axis.unsqueeze(-1) * waves[..., place] for place in (0, -1))
        second = 0 * second[:, :1] if self.width == 1 else second
        sines, cosines = self.coefficients[: len(waves)].unsqueeze(-2).tensor_split(2, -1)
        turned = sines * second.cos() - cosines * second.sin(), sines * second.sin() + cosines * second.cos()
        left = torch.cat([first.sin(), first.cos()], -1)
        values = math.sqrt(2 / FEATURES) * left @ torch.cat(turned, -1).mT
        return torch.cat([values, -values]).reshape(len(self), *[len(axis)] * self.width)

    def _values(self, inputs: Tensor) -> Tensor:
        """(1 or E, *b, m, p) -> (E, *b, m)."""
        shape = (len(self), *inputs.shape[1:-1])
        if not self.width:
            return self.means.reshape(-1, *[1] * (inputs.ndim - 2)).expand(shape)
        return self._prior(inputs, self.coefficients) + self._updated(inputs)

    def _updated(self, inputs: Tensor) -> Tensor:
        """The functions less s phi'theta; as `_values`."""
        values = self._summed(self._between(inputs, self.places), self.weights)
        if self.added is not None and self.added_weights is not None:
            values = values + self._summed(self._between(inputs, self.added), self.added_weights)
        return values + self.means.reshape(-1, *[1] * (values.ndim - 1))

    def _scaled(self, points: Tensor) -> Tensor:
        """Points over length-scales, (..., p), (1, ..., p) or (E, ..., p) -> (H, ..., p) or (E, ..., p)."""
        lengths = self.lengths if len(points) <= len(self.lengths) else self.lengths.repeat(2, 1)
        return points / lengths.reshape(len(lengths), *[1] * (points.ndim - 2), -1)

    def _prior(self, inputs: Tensor, coefficients: Tensor) -> Tensor:
        """phi'theta, (1 or E, ..., m, p), (H or E, F) -> (H or E, ..., m)."""
        scaled = self._scaled(inputs)
        waves = self.frequencies if len(scaled) == len(self.lengths) else self.frequencies.repeat(2, 1, 1)
        angles = scaled @ waves.reshape(len(scaled), *[1] * (scaled.ndim - 3), *waves.shape[1:]).mT
        sines, cosines = coefficients.tensor_split(2, -1)
        total = self._summed(angles.sin(), sines) + self._summed(angles.cos(), cosines)
        return math.sqrt(2 / FEATURES) * total

    def _between(self, inputs: Tensor, rows: Tensor) -> Tensor:
        """k, of inputs (m, p), (1 or E, ..., m, p), and rows (..., n, p), (H or E, ..., m, n)."""
        left = self._scaled(inputs.unsqueeze(0) if inputs.ndim == 2 else inputs)
        lengths = self.lengths if len(left) == len(self.lengths) else self.lengths.repeat(2, 1)
        right = rows / lengths.reshape(len(left), *[1] * (max(rows.ndim, left.ndim - 1) - 1), -1)
        norms = left.square().sum(-1, keepdim=True) + right.square().sum(-1).unsqueeze(-2)
        return correlation(norms - 2 * left @ right.mT, self.kind)

    def _summed(self, basis: Tensor, weights: Tensor) -> Tensor:
        """Sums of a basis (H or E, ..., m, c) by weights (E, c) or (E, *b, c), (E, ..., m)."""
        weights = weights.reshape(len(weights), *[1] * (basis.ndim - 1 - weights.ndim), *weights.shape[1:])
        if len(basis) == len(weights):
            return (basis @ weights.unsqueeze(-1)).squeeze(-1)
        half = len(basis)
        return torch.cat([(basis @ part.unsqueeze(-1)).squeeze(-1) for part in weights.split(half)])

    def _gains(self, inputs: Tensor) -> tuple[Tensor, Tensor]:
        """K^-1 k(W, w), (E, *b, n, m), and the posterior covariance of rows w, (*b, m, p), (E, *b, m, m)."""
        ones = [1] * (inputs.ndim - 2)
        inverses = self.inverses.reshape(len(self.inverses), *ones, *self.inverses.shape[1:])
        whitened = inverses @ self._between(inputs.unsqueeze(0), self.places).mT
        gains = inverses.mT @ whitened
        covariance = self._between(inputs.unsqueeze(0), inputs) - whitened.mT @ whitened
        covariance = self.scales.square().reshape(-1, *[1] * (covariance.ndim - 1)) * covariance
        return torch.cat([gains, gains]), torch.cat([covariance, covariance])


@dataclass(frozen=True)
class TabulatedFunctions:
    """E functions by their values on a grid, (E, G) or (E, G, G)."""

    table: Tensor

    def __len__(self) -> int:
        return len(self.table)

    def few(self, count: int) -> "TabulatedFunctions":
        """The first pairs, an even number of functions."""
        return TabulatedFunctions(first_pairs(self.table, count))

    def __call__(self, inputs: Tensor) -> Tensor:
        """The functions at inputs (1 or E, ..., p), (E, ...)."""
        count, width = self.table.shape[-1], inputs.shape[-1]
        # A point between the second node and the last but one has two nodes on either side.
        position = ((inputs + MARGIN) * ((count - 1) / (1 + 2 * MARGIN))).clamp(1, count - 2 - 1e-9)
        first = position.detach().floor()
        weights = _cubic(position - first)
        index = first.long() - 1
        offset = (torch.arange(len(self)) * count**width).to(index).reshape(-1, *[1] * (inputs.ndim - 2))
        flat, steps = self.table.reshape(-1), torch.arange(4, device=index.device)
        rows = index[..., 0].unsqueeze(-1) + steps
        if width == 1:
            return (flat[rows + offset.unsqueeze(-1)] * weights[..., 0, :]).sum(-1)
        cells = rows.unsqueeze(-1) * count + (index[..., 1].unsqueeze(-1) + steps).unsqueeze(-2)
        values = flat[cells + offset[..., None, None]]
        return ((values @ weights[..., 1, :].unsqueeze(-1)).squeeze(-1) * weights[..., 0, :]).sum(-1)


def first_pairs(values: Tensor, count: int) -> Tensor:
    """The first `count` / 2 of E / 2 values, and their mirror images, (count, ...)."""
    half = len(values) // 2
    return torch.cat([values[: count // 2], values[half : half + count // 2]])


def _cubic(fraction: Tensor) -> Tensor:
    """Weights of the four nodes around a point at a fraction of a cell, (...) -> (..., 4)."""
    square, cube = fraction.square(), fraction**3
    return torch.stack(
        [
            -0.5 * fraction + square - 0.5 * cube,
            1 - 2.5 * square + 1.5 * cube,
            0.5 * fraction + 2 * square - 1.5 * cube,
            -0.5 * square + 0.5 * cube,
        ],
        -1,
    )
