"""Nested kernel ridge regression on random Fourier features of the product kernel.

For frequencies w = (w_x, w_u, w_a), normal with standard deviations 1/s_x, 1/s_u, 1/s_a,

    k_h(h, h') = E_w cos(w'(h - h')) ~ (1/R) sum_r [cos cos + sin sin],
    exp(i w'h) = exp(i w_x'x) exp(i w_u'u) exp(i w_a'a),

so that the features factorise as the kernel does. With ridge coefficients p_r and q_r of cosines and sines,

    J(a; x) = Re sum_r c_r(x) exp(i w_ar'a),
    c_r(x) = (p_r - i q_r) exp(i w_xr'x) E[exp(i w_ur'U) | x] / sqrt(R),

where the expectation is estimated by ridge regression on landmarks in x. Fitting costs O(N R^2), in blocks of
rows; an ascent step costs O(R), independent of N. The error of a kernel value decreases as 1/sqrt(R). Ascent
starts at some of the rows, weighted as in the exact estimator by their dual coefficients (w_i - psi(h_i)) /
(N lambda_h). Where all rows are fewer numbers than the factor of stage 1 and the coefficients of stage 2,
they are kept, and files leave these out.

Source: Rahimi and Recht (2007), Alg. 1; Du et al. (2026), Tab. 2.
"""

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from rehearsal_torch.data.part import Sizes
from rehearsal_torch.data.sizes import bounded
from rehearsal_torch.data.tables.blocks import in_blocks
from rehearsal_torch.seeding import generator
from rehearsal_torch.surrogates.kernel.landmarks import (
    PIVOTED,
    SEEN,
    Landmarks,
    Regression,
    kernel_errors,
    landmarks,
    landmarks_at,
    regressed,
    reported_errors,
)
from rehearsal_torch.surrogates.kernel.nested_ridge import AlterationValue, Prepared
from rehearsal_torch.surrogates.kernel.product_kernel import MEDIAN, Choice, gaussian, joined, lay_out
from rehearsal_torch.surrogates.kernel.product_ridge import LAMBDA, refuse_between

# A Cholesky factor of this size is held.
MAX_FEATURES = 4096


class FourierRidge(AlterationValue):
    """The random-feature estimator.

    Args:
        first: See `AlterationValue`; there is no sequential form.
        features: 2 R, the number of cosines and sines.
        rank: Maximum number of landmarks of stage 2.
        widths: "median", or "leave_one_out" (the best model on a subset).
        fixed: Widths of context, covariates and actions in standardised coordinates; None selects them by
            `widths`.
        lambda_h: Ridge of stage 1; N lambda_h is added.
        lambda_x: Ridge of stage 2.
        seed: Seed of frequencies and subsets.

    Raises:
        ValueError: if a setting is out of range.
    """

    def __init__(
        self,
        first: Sequence[int] = (),
        features: int = 500,
        rank: int = 200,
        widths: str = MEDIAN,
        fixed: Sequence[float] | None = None,
        lambda_h: float = LAMBDA,
        lambda_x: float = LAMBDA,
        seed: int = 0,
    ) -> None:
        super().__init__(first)
        if features < 2 or rank < 1 or lambda_x <= 0:
            raise ValueError(
                f"expected at least 2 features, 1 landmark and a positive lambda_x; got {features}, {rank}, "
                f"{lambda_x}"
            )
        bounded("features", features, 2 * MAX_FEATURES, 2)
        bounded("rank", rank)
        self.pairs, self.rank, self.lambda_x, self.seed = features // 2, rank, lambda_x, seed
        self.choice = Choice(fixed if fixed is not None else widths, lambda_h, max_models=1, seed=seed)
        self.register_fitted("widths", "ridge", "frequencies", "coefficients", "amplitudes", "total")
        self.register_fitted("context_centres", "kept", "kept_contexts", "kept_covariates", "dual")
        # h of every row, and the places of the landmarks of stage 2 among them.
        self.register_fitted("inputs", "context_places", source=True)
        self.register_fitted("factor", "embedding", derived=True)
        # Errors that are not computed are nan.
        self.register_fitted("errors", finite=False)
        self.widths: Tensor
        self.ridge: Tensor
        self.frequencies: Tensor
        self.coefficients: Tensor
        self.factor: Tensor
        self.amplitudes: Tensor
        self.total: Tensor
        self.context_centres: Tensor
        self.embedding: Tensor
        self.errors: Tensor
        self.kept: Tensor
        self.kept_contexts: Tensor
        self.kept_covariates: Tensor
        self.dual: Tensor
        self.inputs: Tensor
        self.context_places: Tensor

    def sizes(self) -> Sizes:
        """R pairs of features over d columns; n stored rows of contexts (x), covariates (u) and actions (k);
        c landmarks of stage 2; all r rows, where they are kept.
        """
        waves = 2 * self.pairs
        fit: Sizes = {
            "widths": (3,),
            "ridge": (1,),
            "frequencies": (self.pairs, "d"),
            "coefficients": (waves, 2),
            "factor": (waves, waves),
        }
        kept: Sizes = {
            "kept": ("n", "k"),
            "kept_contexts": ("n", "x"),
            "kept_covariates": ("n", "u"),
            "dual": ("n",),
        }
        covariates = self.kept_covariates.shape[-1]
        second: Sizes = (
            {"context_centres": ("c", "x"), "embedding": ("c", waves + covariates)} if covariates else {}
        )
        whole: Sizes = {"inputs": ("r", sum(self.widths_of_rows))} if self.inputs.shape != (0,) else {}
        places: Sizes = {"context_places": ("c",)} if whole and covariates else {}
        numbers: Sizes = {"amplitudes": (2,), "total": (waves,), "errors": ("s", 2)}
        return {**fit, **numbers, **kept, **second, **whole, **places}

    def faults(self) -> list[str]:
        """Sizes, and frequencies over other columns."""
        found = super().faults()
        columns = sum(each.shape[-1] for each in (self.kept_contexts, self.kept_covariates, self.kept))
        if not found and self.frequencies.shape[1] != columns:
            found.append(
                f"frequencies: expected the size ({self.pairs}, {columns}); got "
                f"{tuple(self.frequencies.shape)}"
            )
        return found

    def solve(self, *examples: Tensor) -> None:
        """Fits both stages.

        Raises:
            ValueError: if there are variables between the alterations.
        """
        context, before, between, actions, targets = (each.detach() for each in examples[:5])
        refuse_between(between)
        blocks, count, stream = (
            (context, before, actions),
            len(targets),
            generator(self.seed),
        )
        models = self.choice.models(blocks, targets[:, 0])
        self.widths, self.ridge = models.widths[0], count * models.ridges
        rows = joined(blocks, self.widths)
        self.frequencies = torch.randn(self.pairs, rows.shape[1], generator=stream, dtype=torch.float64).to(
            rows
        )
        found = self._first(rows, targets)
        self.coefficients, self.factor, self.total = found.theta, found.factor, found.total
        self.amplitudes = (targets.square().sum(0) - found.explained) / (count * self.ridge)
        some = torch.randperm(count, generator=stream)[:SEEN].to(rows.device)
        self.kept_contexts, self.kept_covariates, self.kept = (block[some] for block in blocks)
        self.dual = (targets[some, 0] - self._waves(rows[some]) @ self.coefficients[:, 0]) / self.ridge
        errors = [kernel_errors(rows, self._waves, self.seed)]
        self.context_centres = self.embedding = self.context_places = rows.new_empty(0)
        if before.shape[1]:
            scaled = context / self.widths[0]
            outer = landmarks(scaled, self.rank, PIVOTED, self.seed)
            self.context_centres, self.context_places = outer.centres, outer.chosen.to(rows)
            self.embedding = self._second(scaled, before, outer)
            errors += [
                errors[0].new_full((2,), float("nan")),
                kernel_errors(scaled, outer.features, self.seed),
            ]
        self.errors = torch.stack(errors)
        self.inputs = torch.cat(blocks, -1)
        if self.inputs.numel() >= self.factor.numel() + self.embedding.numel():
            self.inputs = self.context_places = rows.new_empty(0)
        lay_out(self)

    def derivable(self) -> Mapping[str, tuple[int, ...]]:
        """The factor of stage 1 and the coefficients of stage 2; only with all rows."""
        if self.inputs.ndim != 2 or not len(self.inputs):
            return {}
        waves, covariates = 2 * self.pairs, self.kept_covariates.shape[-1]
        second = {"embedding": (len(self.context_places), waves + covariates)}
        return {"factor": (waves, waves), **(second if covariates else {})}

    def derive(self, name: str) -> Tensor:
        """See `Part.derive`."""
        parts = self.inputs.split(list(self.widths_of_rows), -1)
        context, before, actions = (each.contiguous() for each in parts)
        if name == "factor":
            rows = joined((context, before, actions), self.widths)
            return self._first(rows, rows.new_zeros(len(rows), 2)).factor
        scaled = context / self.widths[0]
        outer = landmarks_at(scaled, self.context_places, self.rank, PIVOTED, self.seed)
        return self._second(scaled, before, outer)

    def _first(self, rows: Tensor, targets: Tensor) -> Regression:
        """Stage 1, of scaled rows (n, d) and targets (n, 2)."""
        return regressed(
            in_blocks((rows, targets)),
            lambda each: self._waves(each[0]),
            lambda each: each[1],
            float(self.ridge),
        )

    def _second(self, scaled: Tensor, before: Tensor, outer: Landmarks) -> Tensor:
        """The coefficients of stage 2, of scaled contexts and covariates (n, |U|)."""
        phases = (before / self.widths[1]) @ self._block(scaled.shape[1], before.shape[1]).T
        found = regressed(
            in_blocks((scaled, phases, before)),
            lambda each: outer.features(each[0]),
            lambda each: torch.cat([each[1].cos(), each[1].sin(), each[2]], -1),
            len(scaled) * self.lambda_x,
        )
        return torch.linalg.solve_triangular(outer.root.T, found.theta, upper=True)

    def approximation(self) -> dict[str, float]:
        """Errors of the approximate kernels (of h, and of x) against the exact ones on a subsample: relative
        Frobenius and mean absolute error.
        """
        return {name: error for name, error in reported_errors(self.errors).items() if error == error}

    def prepare(self, contexts: Tensor) -> Prepared:
        """Pieces: expected features of (x, U), (B, 2 R), the weights (B, 2 R) of cosines and sines for each
        of the two targets, expected covariates (B, |U|).
        """
        contexts = contexts.to(self.frequencies)
        scaled = contexts / self.widths[0]
        phase = scaled @ self._block(0, contexts.shape[1]).T
        waves, expected = torch.complex(phase.cos(), phase.sin()), phase.new_empty(len(phase), 0)
        if self.embedding.numel():
            projected = gaussian(scaled, self.context_centres) @ self.embedding
            cosine, sine, expected = projected.split(
                [self.pairs, self.pairs, projected.shape[1] - 2 * self.pairs], -1
            )
            waves = waves * torch.complex(cosine, sine)
        waves = waves / self.pairs**0.5
        weights = []
        for column in self.coefficients.T:
            mixed = waves * torch.complex(
                *(column * column.new_tensor([1.0, -1.0]).repeat_interleave(self.pairs)).chunk(2)
            )
            weights.append(torch.cat([mixed.real, -mixed.imag], -1))
        return Prepared(contexts, (torch.cat([waves.real, waves.imag], -1), *weights, expected))

    def value(self, prepared: Prepared, actions: Tensor, target: int = 0) -> Tensor:
        """(..., B, k) -> (..., B)."""
        phase = self._phase(actions)
        return (torch.cat([phase.cos(), phase.sin()], -1) * prepared.pieces[1 + target]).sum(-1)

    def value_and_gradient(self, prepared: Prepared, actions: Tensor) -> tuple[Tensor, Tensor]:
        """(..., B, k) -> (..., B), (..., B, k), in the precision of the actions."""
        frequencies, (even, odd) = (
            (self._actions_block() / self.widths[2]).to(actions),
            prepared.pieces[1].to(actions).chunk(2, -1),
        )
        phase = actions @ frequencies.T
        cosine, sine = phase.cos(), phase.sin()
        return (even * cosine + odd * sine).sum(-1), (odd * cosine - even * sine) @ frequencies

    def std(self, prepared: Prepared, actions: Tensor, target: int = 0) -> Tensor:
        """The posterior standard deviation in the span of the features, (..., B, k) -> (..., B)."""
        phase, (real, imaginary) = self._phase(actions), prepared.pieces[0].chunk(2, -1)
        cosine, sine = phase.cos(), phase.sin()
        features = torch.cat([real * cosine - imaginary * sine, real * sine + imaginary * cosine], -1)
        solved = torch.linalg.solve_triangular(
            self.factor, features.reshape(-1, features.shape[-1]).T, upper=False
        )
        return (
            self.amplitudes[target] * self.ridge * solved.square().sum(0).reshape(features.shape[:-1])
        ).sqrt()

    def support(self, prepared: Prepared, actions: Tensor) -> Tensor:
        """Effective number of rows near (x, E[u | x], a) under the approximate kernel, clipped at 0, (B, k)
        -> (B,).
        """
        here = joined((prepared.contexts, prepared.pieces[3], actions.to(prepared.contexts)), self.widths)
        return (self._waves(here) @ self.total).clamp(min=0)

    def weights(self, prepared: Prepared) -> Tensor:
        """Dual coefficients times the kernel in context and expected covariates, (B, n) for the
        stored rows.
        """
        here = joined((prepared.contexts, prepared.pieces[3]), self.widths[:2])
        return self.dual * gaussian(here, joined((self.kept_contexts, self.kept_covariates), self.widths[:2]))

    @property
    def widths_of_rows(self) -> tuple[int, int, int]:
        """The widths of the stored rows."""
        return self.kept_contexts.shape[-1], self.kept_covariates.shape[-1], self.kept.shape[-1]

    @property
    def actions(self) -> Tensor:
        """The actions of at most 500 rows, (n, k)."""
        return self.kept

    def _waves(self, rows: Tensor) -> Tensor:
        phase = rows @ self.frequencies.T
        return torch.cat([phase.cos(), phase.sin()], -1) / self.pairs**0.5

    def _block(self, start: int, width: int) -> Tensor:
        return self.frequencies[:, start : start + width]

    def _actions_block(self) -> Tensor:
        return self.frequencies[:, -self.kept.shape[1] :]

    def _phase(self, actions: Tensor) -> Tensor:
        return (actions.to(self.frequencies) / self.widths[2]) @ self._actions_block().T
