"""Random Fourier features with a joint metric for the nested estimator, and bagged ensembles of it.

A product of kernels for x, u and a has widths along these axes alone; the relevant directions often mix them
(the difference of an action and the context, a weighted sum of covariates and actions). A stationary kernel
on h = (x, u, a) with any metric W still factorises in its spectrum: with frequencies w = (w_x, w_u, w_a) = W'
z, z standard normal,

    k(h, h') = E_w[exp(i w'(h - h'))],    exp(i w'h) = exp(i w_x'x) exp(i w_u'u) exp(i w_a'a),

so that with M frequencies and ridge coefficients c the nested expectation is

    J(a; x) = mean + Re sum_m conj(c_m) exp(i w_xm'x) E[exp(i w_um'u) | x] exp(i w_am'a) / sqrt(M)
            = mean + sum_m R_m(x) cos(w_am'a + t_m(x)),

where the expectation is estimated by ridge regression of exp(i w_u'u) on x: a conditional mean embedding, as
in the paper. An ascent step costs O(M k) per context, independent of N. Covariates v between alterations are
treated alike, with their embedding given (x, a_first), which then varies with the action.

All settings are selected from the observations: directions by outer products of gradients of the outcomes,
inverse widths and noise ratio by the evidence on the desirability, the metric of the second stage by the
evidence on the features that it has to predict.

The posterior of J is Gaussian: the first stage contributes phi' S phi with phi the expected features; the
second the posterior variance of the embedding, times the amplitude of the values that it averages.

The difference of two actions is linear in the coefficients as well: its variance is that of one linear
combination, noise |L^-1 (z(a) - z(b))|^2 + left A(q(a) - q(b)), with L the factor of the features' precision,
z the expected features, q the value as a linear combination of the covariates' features, A(q) its amplitude,
and left the second stage's relative variance at its inputs. For near actions it is far smaller than the sum
of both variances. If the second stage depends on actions and these differ, its two standard deviations are
added, an upper bound.

Metrics of nearly equal evidence can recommend very different actions, because the evidence measures errors
where the rows lie, while decisions are taken at the edge of the data. Members fitted to different rows
disagree only there: their mean is more reliable than any member, and their disagreement is part of the
posterior of J,

    J = mean_e J_e,    var J = mean_e var_e + (1 + 1/E) var_e(J_e),

with the unbiased variance over members: the truth is treated as one more draw, and the mean is uncertain.

Source: Du et al. (2026), Eq. (5)-(10) (product kernels); Rahimi and Recht (2007) (frequencies); Breiman
(1996) (bagging).
"""

import math
from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from rehearsal_torch.data.size_limits import bounded
from rehearsal_torch.data.table import evenly
from rehearsal_torch.data.trainable_part import Solved
from rehearsal_torch.seeding import generator, sobol
from rehearsal_torch.surrogates.kernel.metric import MetricRidge, gram, relevant_directions, scaled_metric
from rehearsal_torch.surrogates.kernel.nested_ridge import AlterationValue, Prepared
from rehearsal_torch.surrogates.kernel.product_kernel import Regression, regressed, times, waves_of
from rehearsal_torch.surrogates.surrogate import Modules

RESPONSES, CANDIDATES, FLAT = 16, 192, 1e-6
MAX_FEATURES = 4096  # a Cholesky factor of (2 features) x (2 features) is stored


class SpectralRidge(Solved):
    """One joint-metric estimator with M = `features` frequencies; settings as of `SpectralEnsemble`."""

    def __init__(
        self,
        first: Sequence[int] = (),
        features: int = 400,
        direction_rows: int = 300,
        width_rows: int = 500,
        iterations: int = 25,
        seed: int = 0,
    ) -> None:
        super().__init__()
        if min(features, direction_rows, width_rows, iterations) < 1:
            raise ValueError("expected at least one feature, row and iteration")
        bounded("features", features, MAX_FEATURES)
        self.features, self.direction_rows, self.width_rows = features, direction_rows, width_rows
        self.first, self.iterations, self.seed = tuple(first), iterations, seed
        self.embedding = MetricRidge()
        waves = 2 * features
        self.register_fitted(
            directions=("r", "d"), ratio=(1,), on_context=(features, "x"), on_covariates=(features, "u"),
            on_actions=(features, "k"), coefficients=(waves, 2), mean=(2,), noise=(2,), covariates=("u",),
            kept=("c", "k"),
        )  # fmt: skip
        # h of every row, and the places of the rows of the embedding, in its order.
        self.register_fitted("places", inputs=("n", "d"), source=True)
        self.register_fitted(factor=(waves, waves), rows=("n", "r"), derived=True)

    def solve(self, *examples: Tensor) -> None:
        """See `AlterationValue.solve`."""
        context, before, between, actions, targets, scores = examples
        covariates = torch.cat((before, between), -1)
        inputs = torch.cat((context, covariates, actions), -1)
        stream = generator(self.seed)
        order = torch.randperm(len(inputs), generator=stream).to(inputs.device)
        self._fit_metric(inputs, targets[:, :1] - targets[:, :1].mean(0), scores, order)
        uniform = sobol(len(self.directions), self.seed).draw(self.features, dtype=torch.float64)
        frequencies = torch.special.ndtri(uniform.clamp(1e-6, 1 - 1e-6)).to(inputs) @ self.directions
        blocks = frequencies.split([context.shape[1], covariates.shape[1], actions.shape[1]], -1)
        self.on_context, self.on_covariates, self.on_actions = (block.contiguous() for block in blocks)
        self.inputs, self.places = inputs, inputs.new_empty(0)
        self._regress(targets)
        if covariates.shape[1]:
            waves = self._covariate_waves()
            second = waves[:, self.features :]
            responses = torch.cat((waves[:, :RESPONSES], second[:, :RESPONSES], covariates), -1)
            embedding_inputs = torch.cat((context, actions[:, list(self.first)]), -1)
            self.embedding.solve(embedding_inputs[order], waves[order], responses[order])
            self.places = order[evenly(len(order), self.embedding.rows, order.device)].to(inputs)
        self.rows, self.covariates = self.derive("rows"), covariates.mean(0)
        self.kept = actions[order[:CANDIDATES]]

    def faults(self) -> list[str]:
        """Faults of sizes, of directions, and of the covariates' embedding."""
        faults = super().faults()
        context, covariates, actions = self.widths_of_rows
        columns, responses = context + covariates + actions, context + len(self.first)
        if not faults and self.directions.shape[1] != columns:
            faults.append(f"directions: expected the size (r, {columns}); got {tuple(self.directions.shape)}")
        part, waves = self.embedding, 2 * self.features
        right = part.fitted and (len(part.mean), part.directions.shape[-1]) == (waves, responses)
        if not faults and covariates and not right:
            faults.append(
                f"embedding: expected {waves} means given {responses} inputs, for the {covariates} covariates"
            )
        fault = self.places.numel() and misplaced(self.places, len(part.projected), len(self.inputs))
        return faults or ([fault] if fault else [])

    def derivable(self) -> Mapping[str, tuple[int, ...]]:
        """The factor, the projected rows and the embedding's outputs; only with all rows."""
        if self.inputs.ndim != 2 or not len(self.inputs):
            return {}
        waves, has_embedding = 2 * self.features, self.places.shape != (0,)
        sizes = {"factor": (waves, waves), "rows": (len(self.inputs), len(self.directions))}
        return {**sizes, **({"embedding.centred": (len(self.places), waves)} if has_embedding else {})}

    def derive(self, name: str) -> Tensor:
        """See `Part.derive`."""
        if name == "rows":
            return self.inputs @ self.directions.mT
        if name == "factor":
            return self._regression(self.inputs.new_zeros(len(self.inputs), 2)).factor
        fault = misplaced(self.places, len(self.embedding.projected), len(self.inputs))
        if fault:
            raise ValueError(fault)
        return self._covariate_waves()[self.places.long()] - self.embedding.mean

    def _covariate_waves(self) -> Tensor:
        """(cos(w_u'u), sin(w_u'u)) of every row, (n, 2 M)."""
        context, covariates, _ = self.widths_of_rows
        return waves_of(self.inputs[:, context : context + covariates].contiguous() @ self.on_covariates.mT)

    def _fit_metric(self, inputs: Tensor, target: Tensor, scores: Tensor, order: Tensor) -> None:
        """Directions from the outcomes, then widths and ratio from the desirability."""
        head = order[: self.direction_rows]
        axes = torch.eye(inputs.shape[1], dtype=inputs.dtype, device=inputs.device)
        # Along the axes: a free matrix has too many parameters for so few rows.
        scales = axes.diagonal() / math.sqrt(len(axes))
        metric = scaled_metric(inputs[head], scores[head], axes, scales, 2 * self.iterations)
        basis, relevance = relevant_directions(inputs[head], scores[head], metric)
        tail = order[-self.width_rows :]
        # A constant desirability carries no information about widths.
        if float(target[tail].std(correction=0)) >= FLAT:
            metric = scaled_metric(inputs[tail], target[tail], basis, relevance, self.iterations)
        self.directions, self.ratio = metric.directions, inputs.new_tensor([metric.ratio])

    def _regress(self, targets: Tensor) -> None:
        """Fits the ridge coefficients (2 M, 2) of desirability and indicator."""
        self.mean = targets.mean(0)
        centred = targets - self.mean
        regression = self._regression(centred)
        self.factor, self.coefficients = regression.factor, regression.theta
        # Noise variance at the maximum-evidence amplitude: rho s^2 with s^2 = y' (K + rho I)^-1 y / n.
        self.noise = (centred.square().sum(0) - regression.explained) / len(targets)

    def _regression(self, targets: Tensor) -> Regression:
        """Ridge regression of targets (n, 2) on the features of every row."""
        frequencies = torch.cat((self.on_context, self.on_covariates, self.on_actions), -1)
        phases = self.inputs @ frequencies.mT

        def rows(span: slice) -> tuple[Tensor, Tensor]:
            return waves_of(phases[span]) / math.sqrt(self.features), targets[span]

        return regressed(len(phases), rows, float(self.ratio))

    @property
    def widths_of_rows(self) -> tuple[int, int, int]:
        """The widths of the frequencies' blocks."""
        return self.on_context.shape[-1], self.on_covariates.shape[-1], self.on_actions.shape[-1]

    def prepare(self, contexts: Tensor) -> Prepared:
        """Waves of expected features (B, 2 M), and the embedding's relative variance (B,) if by contexts."""
        waves = waves_of(contexts @ self.on_context.mT) / math.sqrt(self.features)
        if self.on_covariates.shape[1] and not self.first:
            waves = times(waves, self.embedding(contexts))
            return Prepared(contexts, (waves, self.embedding.left(contexts)))
        return Prepared(contexts, (waves,))

    def expected(self, prepared: Prepared, actions: Tensor) -> Tensor:
        """The expected features at actions (..., B, k), (..., B, 2 M)."""
        waves = prepared.pieces[0].to(actions)
        if self.first:
            waves = times(waves, self.embedding(self._inputs(prepared, actions)))
        return times(waves, waves_of(actions @ self.on_actions.mT))

    def _inputs(self, prepared: Prepared, actions: Tensor) -> Tensor:
        contexts = prepared.contexts.expand(*actions.shape[:-1], -1)
        return torch.cat((contexts, actions[..., list(self.first)]), -1)

    def value(self, prepared: Prepared, actions: Tensor, target: int = 0) -> Tensor:
        """See `AlterationValue.value`."""
        return self.mean[target] + self.expected(prepared, actions) @ self.coefficients[:, target]

    def value_and_gradient(self, prepared: Prepared, actions: Tensor) -> tuple[Tensor, Tensor]:
        """See `AlterationValue.value_and_gradient`."""
        if self.first:
            return self._sequential_gradient(prepared, actions)
        along, across = self._amplitudes(prepared, actions)
        phases = actions @ self.on_actions.to(actions).mT
        cosines, sines = phases.cos(), phases.sin()
        values = self.mean[0].to(actions) + (along * cosines + across * sines).sum(-1)
        return values, (across * cosines - along * sines) @ self.on_actions.to(actions)

    def _amplitudes(self, prepared: Prepared, like: Tensor) -> tuple[Tensor, Tensor]:
        """The amplitudes of cos(w'a) and sin(w'a) in J of the smoothed desirability, (B, M) each."""
        cosine, sine = prepared.pieces[0].to(like).chunk(2, -1)
        even, odd = self.coefficients[:, 0].to(like).chunk(2)
        return even * cosine + odd * sine, odd * cosine - even * sine

    def _sequential_gradient(self, prepared: Prepared, actions: Tensor) -> tuple[Tensor, Tensor]:
        """Value and gradient if the embedding depends on the first actions: in mean + q'e(v) both vary."""
        inputs, mixture = self._inputs(prepared, actions).to(actions), self.mixture(prepared, actions, 0)
        even, odd = mixture.chunk(2, -1)
        rotated = torch.cat((odd, -even), -1)
        rows = self.embedding.projected.to(actions)
        metric_directions = self.embedding.directions.to(actions)
        k = self.embedding.similar(inputs)
        value, expected = self._sequential_value(mixture, k)
        first, second = (expected * rotated).chunk(2, -1)
        gradient = (first + second) @ self.on_actions.to(actions)
        pull = k * (mixture @ self.embedding.weights.to(actions).mT)
        projected = pull @ rows - pull.sum(-1, keepdim=True) * (inputs @ metric_directions.mT)
        gradient[..., list(self.first)] += (projected @ metric_directions)[..., prepared.contexts.shape[1] :]
        return value, gradient

    def _sequential_value(self, mixture: Tensor, k: Tensor) -> tuple[Tensor, Tensor]:
        """J of the smoothed desirability and e(v), given q and k(v)."""
        expected = self.embedding.mean.to(k) + k @ self.embedding.weights.to(k)
        return self.mean[0].to(k) + (expected * mixture).sum(-1), expected

    def mixture(self, prepared: Prepared, actions: Tensor, target: int) -> Tensor:
        """The value at covariates u as a linear combination q of (cos(w_u'u), sin(w_u'u)), (..., B, 2 M)."""
        of_context = prepared.contexts.to(actions) @ self.on_context.to(actions).mT
        waves = waves_of(of_context + actions @ self.on_actions.to(actions).mT) / math.sqrt(self.features)
        cosine, sine = waves.chunk(2, -1)
        even, odd = self.coefficients[:, target].to(actions).chunk(2)
        return torch.cat((even * cosine + odd * sine, odd * cosine - even * sine), -1)

    def value_and_std(self, prepared: Prepared, actions: Tensor, target: int = 0) -> tuple[Tensor, Tensor]:
        """See `AlterationValue.value_and_std`."""
        features = self.expected(prepared, actions)
        value = self.mean[target] + features @ self.coefficients[:, target]
        rows = features.reshape(-1, features.shape[-1])
        whitened = torch.linalg.solve_triangular(self.factor, rows.mT, upper=False)
        variance = self.noise[target] * whitened.square().sum(0).reshape(features.shape[:-1])
        return value, (variance + self.unknown(prepared, actions, target)).sqrt()

    def difference_and_variance(
        self, prepared: Prepared, first: Tensor, second: Tensor, target: int
    ) -> tuple[Tensor, Tensor]:
        """J at actions a minus J at actions b, (B, k) each, and its posterior variance, (B,) each."""
        difference = self.expected(prepared, first) - self.expected(prepared, second)
        value = difference @ self.coefficients[:, target]
        whitened = torch.linalg.solve_triangular(self.factor, difference.mT, upper=False)
        variance = self.noise[target] * whitened.square().sum(0)
        if not self.on_covariates.shape[1]:
            return value, variance
        mixtures = [self.mixture(prepared, actions, target) for actions in (first, second)]
        unknown = self.left_of(prepared, first) * self.embedding.amplitude(mixtures[0] - mixtures[1])
        if self.first:
            same_first = (first == second)[..., list(self.first)].all(-1)
            upper = sum(self.unknown(prepared, actions, target).sqrt() for actions in (first, second))
            unknown = torch.where(same_first, unknown, torch.as_tensor(upper).square())
        return value, variance + unknown

    def unknown(self, prepared: Prepared, actions: Tensor, target: int) -> Tensor:
        """The second stage's share of the variance of J."""
        if not self.on_covariates.shape[1]:
            return actions.new_zeros(actions.shape[:-1])
        amplitude = self.embedding.amplitude(self.mixture(prepared, actions, target))
        return self.left_of(prepared, actions) * amplitude

    def left_of(self, prepared: Prepared, actions: Tensor) -> Tensor:
        """The second stage's relative variance, (..., B) or (B,)."""
        return self.embedding.left(self._inputs(prepared, actions)) if self.first else prepared.pieces[1]

    def support(self, prepared: Prepared, actions: Tensor) -> Tensor:
        """See `AlterationValue.support`."""
        covariates = self.covariates.expand(len(actions), -1)
        points = torch.cat((prepared.contexts, covariates, actions), -1) @ self.directions.mT
        return gram(points, self.rows).sum(-1)

    def values_everywhere(self, prepared: Prepared, actions: Tensor) -> Tensor:
        """J of the smoothed desirability at the same actions (n, k) in every context, (B, n), in float32."""
        points = actions.to(torch.float32)
        if self.first:
            points = points.unsqueeze(1).expand(-1, len(prepared.contexts), -1)
            k = self.embedding.similar(self._inputs(prepared, points).to(points))
            return self._sequential_value(self.mixture(prepared, points, 0), k)[0].mT
        along, across = self._amplitudes(prepared, points)
        phases = points @ self.on_actions.to(points).mT
        return self.mean[0].to(points) + along @ phases.cos().mT + across @ phases.sin().mT


def misplaced(places: Tensor, count: int, rows: int) -> str:
    """Error message for stored places that are not `count` indices below `rows`; empty if valid."""
    valid = (places >= 0) & (places < rows) & (places == places.floor())
    if places.shape == (count,) and bool(valid.all()):
        return ""
    return (
        f"places: expected {count} whole numbers from 0 to {rows - 1}; got the size {tuple(places.shape)}, "
        "or other numbers"
    )


class SpectralEnsemble(AlterationValue):
    """The average of E joint-metric estimators.

    Args:
        first: Indices of the actions that precede the covariates between alterations.
        members: E.
        features: Number of frequencies per member.
        direction_rows: The most rows from which each member's directions are found.
        width_rows: The most rows from which its widths are fitted.
        iterations: The most iterations of each evidence maximisation.
        seed: Seed; member e uses 1000 seed + e.
    """

    def __init__(
        self,
        first: Sequence[int] = (),
        members: int = 4,
        features: int = 400,
        direction_rows: int = 300,
        width_rows: int = 500,
        iterations: int = 25,
        seed: int = 0,
    ) -> None:
        super().__init__(first)
        if members < 1:
            raise ValueError(f"expected at least 1 member; got {members}")
        bounded("members", members, 1000)
        self.members = Modules[SpectralRidge](
            SpectralRidge(first, features, direction_rows, width_rows, iterations, 1000 * seed + index)
            for index in range(members)
        )

    def _parts(self, prepared: Prepared) -> list[tuple[SpectralRidge, Prepared]]:
        size = len(prepared.pieces) // len(self.members)
        return [
            (member, Prepared(prepared.contexts, prepared.pieces[index * size : (index + 1) * size]))
            for index, member in enumerate(self.members)
        ]

    def solve(self, *examples: Tensor) -> None:
        """Fits every member."""
        for member in self.members:
            member.solve(*examples)

    def derivable(self) -> Mapping[str, tuple[int, ...]]:
        """The rows of every member but the first, which are the same."""
        first, *others = self.members
        if first.inputs.ndim != 2 or not len(first.inputs):
            return {}
        return {f"members.{index}.inputs": tuple(first.inputs.shape) for index in range(1, len(others) + 1)}

    def derive(self, name: str) -> Tensor:  # noqa: ARG002
        """See `Part.derive`."""
        return self.members[0].inputs.clone()

    @property
    def widths_of_rows(self) -> tuple[int, int, int]:
        """The widths of the members' rows, or minus one if they differ."""
        widths = {member.widths_of_rows for member in self.members}
        return widths.pop() if len(widths) == 1 else (-1, -1, -1)

    @property
    def actions(self) -> Tensor:
        """A subset of the historical actions, (n, k)."""
        return self.members[0].kept

    def prepare(self, contexts: Tensor) -> Prepared:
        """See `AlterationValue.prepare`."""
        pieces = (piece for member in self.members for piece in member.prepare(contexts).pieces)
        return Prepared(contexts, tuple(pieces))

    def value(self, prepared: Prepared, actions: Tensor, target: int = 0) -> Tensor:
        """See `AlterationValue.value`."""
        values = [member.value(part, actions, target) for member, part in self._parts(prepared)]
        return torch.stack(values).mean(0)

    def value_and_gradient(self, prepared: Prepared, actions: Tensor) -> tuple[Tensor, Tensor]:
        """See `AlterationValue.value_and_gradient`."""
        pairs = [member.value_and_gradient(part, actions) for member, part in self._parts(prepared)]
        count = len(pairs)
        value, gradient = pairs[0]
        for more, more_gradient in pairs[1:]:
            value, gradient = value + more, gradient + more_gradient
        return value / count, gradient / count

    def value_and_std(self, prepared: Prepared, actions: Tensor, target: int = 0) -> tuple[Tensor, Tensor]:
        """See `AlterationValue.value_and_std`."""
        pairs = [member.value_and_std(part, actions, target) for member, part in self._parts(prepared)]
        values, stds = (torch.stack(column) for column in zip(*pairs, strict=True))
        return values.mean(0), self._mixed(values, stds.square())

    def difference_and_std(
        self, prepared: Prepared, first: Tensor, second: Tensor, target: int = 0
    ) -> tuple[Tensor, Tensor]:
        """The members' differences, and the variance of a mixture of these."""
        parts = self._parts(prepared)
        pairs = [member.difference_and_variance(part, first, second, target) for member, part in parts]
        values, variances = (torch.stack(column) for column in zip(*pairs, strict=True))
        return values.mean(0), self._mixed(values, variances)

    def _mixed(self, values: Tensor, variances: Tensor) -> Tensor:
        """The standard deviation of the mixture, (E, ...) -> (...)."""
        count = len(values)
        between = (1 + 1 / count) * values.var(0) if count > 1 else torch.zeros_like(values[0])
        return (variances.mean(0) + between).sqrt()

    def support(self, prepared: Prepared, actions: Tensor) -> Tensor:
        """See `AlterationValue.support`; the mean over members."""
        return torch.stack([member.support(part, actions) for member, part in self._parts(prepared)]).mean(0)

    def weights(self, prepared: Prepared) -> Tensor:
        """J at historical actions, (B, n)."""
        values = [member.values_everywhere(part, self.actions) for member, part in self._parts(prepared)]
        return sum(values[1:], values[0]) / len(values)
