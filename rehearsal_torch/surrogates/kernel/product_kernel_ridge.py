"""Nested kernel ridge regression with a product kernel, and the four ways to solve it.

With h = (x, u, a) and a Gaussian kernel for each block (`product_kernel`), the published estimator is

    alpha    = (K_hh + N lambda_h I)^-1 w                     desirability given h,
    gamma(x) = (K_xx + N lambda_x I)^-1 k_x(x)                covariates given the context,
    J(a; x)  = sum_i omega_i(x) k_a(a_i, a),   omega(x) = alpha . r(x),   r(x) = k_x(x) . K_uu gamma(x);
    the last factor is one if there are no covariates.

J is linear in the regression function; a Gaussian process of amplitude t and noise variance t N lambda_h
gives it the posterior variance

    t [gamma^T K_uu gamma - q^T (K_hh + N lambda_h I)^-1 q],   q = r(x) . k_a(a),   t = w^T alpha / N,

t being the maximum-evidence amplitude at these widths. Several models are averaged: J is the mean, and the
variance also includes the variance between models.

**exact**: Cholesky factors of both systems. **cg**: conjugate gradients (`product_kernel`) solve them in the
fit, for each batch of contexts, and for variances; N times the rank in memory, N^2 kernel values a step.

**nystrom**: with m of the rows as landmarks h_j, the regression function is a sum over landmarks,

    psi(h) = sum_j c_j k_h(h_j, h),   (K_mn K_nm + N lambda_h K_mm) c = K_mn w,

so that J remains a sum of m Gaussians with weights c_j k_x(x_j, x) E[k_u(u_j, U) | x]. With K_mm = L L^T it
is a ridge regression on the features L^-1 k_m(h): O(N m^2), in blocks of rows. The variance of J adds to the
posterior in the span of the landmarks the part of the prior variance outside the span, so that it does not
vanish far from all landmarks. These are chosen among all rows, or 65,536 drawn by the seed if there are more.

**fourier**: for frequencies w = (w_x, w_u, w_a), normal with standard deviations 1/s_x, 1/s_u, 1/s_a,

    k_h(h, h') = E_w cos(w'(h - h')) ~ (1/R) sum_r [cos cos + sin sin],
    J(a; x)    = Re sum_r (p_r - i q_r) exp(i w_xr'x) E[exp(i w_ur'U) | x] exp(i w_ar'a) / sqrt(R),

with ridge coefficients p_r of the cosines and q_r of the sines; O(N R^2), and O(R) for a step. Ascent starts
at rows that weigh as in the exact estimator, by their dual coefficients (w_i - psi(h_i)) / (N lambda_h).

The last two estimate expectations given x by ridge regression, on landmarks in x, of features of u. Files
hold the rows and no derived tensors; of the last two only if the rows are smaller.

Source: Du et al. (2026), Eq. (5)-(10), Alg. 1, Tab. 2; Rasmussen and Williams (2006), Eq. (2.26) and (5.8);
Chau et al. (2021) for variances of such nested estimates; Williams and Seeger (2000), Rudi, Camoriano and
Rosasco (2015), Eq. (9), and Quinonero-Candela and Rasmussen (2005), Sec. 6 (nystrom and its variance); Rahimi
and Recht (2007), Alg. 1 (fourier).
"""

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.linalg import solve_triangular

from rehearsal_torch.data.size_limits import bounded
from rehearsal_torch.data.trainable_part import Sizes
from rehearsal_torch.seeding import generator
from rehearsal_torch.surrogates.kernel import product_kernel as kernel
from rehearsal_torch.surrogates.kernel.nested_ridge import AlterationValue, Prepared

LAMBDA = 1e-3
# Rows at which an ascent on waves may start; the most frequencies, and rows, of a factor.
STARTS, MAX_FEATURES, MOST_EXACT = 500, 4096, 65_536
SOLVERS = EXACT, GRADIENTS, NYSTROM, FOURIER = "exact", "cg", "nystrom", "fourier"
Blocks = tuple[Tensor, Tensor, Tensor]


class ProductRidge(AlterationValue):
    """The estimator of the paper; instances are of the solver's class. `prepare` has the pieces: weights of
    both targets (B, M, n), r(x) (B, M, n), prior variance over t (B, M), expected covariates (B, M, |U|).
    ValueError if a setting is out of range.

    Args:
        first: See `AlterationValue`; there is no sequential form.
        solver: "exact", "cg", "nystrom" or "fourier".
        widths: "median", or "leave_one_out" (the best model on a subset; exact and cg average several).
        fixed: Standardised widths of context, covariates and actions, in place of `widths`.
        lambda_h: Ridge of stage 1; N lambda_h is added to the diagonal.
        lambda_x: Ridge of stage 2.
        rank: Most landmarks of each kernel (nystrom, fourier in stage 2), or rank of preconditioners (cg).
        landmarks: "pivoted", "sampled" or "uniform", see `product_kernel.landmarks`.
        features: Number of cosines and sines (fourier).
        tolerance: Relative residual at which a system counts as solved (cg).
        seed: Seed of landmarks, frequencies and subsets.
    """

    def __init__(
        self,
        first: Sequence[int] = (),
        solver: str = EXACT,
        widths: str = kernel.MEDIAN,
        fixed: Sequence[float] | None = None,
        lambda_h: float = LAMBDA,
        lambda_x: float = LAMBDA,
        rank: int = 200,
        landmarks: str = kernel.SAMPLED,
        features: int = 500,
        tolerance: float = 1e-8,
        seed: int = 0,
    ) -> None:
        super().__init__(first)
        if solver not in SOLVERS:
            raise ValueError(f"expected `solver` to be one of {', '.join(SOLVERS)}; got {solver!r}")
        if type(self) is ProductRidge:
            # Not in `__new__`, whose signature would hide the settings from checks of configurations.
            classes: tuple[type[Any], ...] = GramRidge, GramRidge, LandmarkRidge, FourierRidge
            self.__class__ = classes[SOLVERS.index(solver)]
        if landmarks not in kernel.WAYS:
            raise ValueError(f"expected `landmarks` to be one of {', '.join(kernel.WAYS)}; got {landmarks!r}")
        if lambda_x <= 0 or not 0 < tolerance < 1:
            raise ValueError(
                f"expected a positive lambda_x and a tolerance in (0, 1); got {lambda_x} and {tolerance}"
            )
        bounded("rank", rank)
        bounded("features", features, 2 * MAX_FEATURES, 2)
        self.solver, self.lambda_x, self.rank, self.landmarks = solver, lambda_x, rank, landmarks
        self.pairs, self.tolerance, self.seed = features // 2, tolerance, seed
        models = kernel.MODELS if solver in (EXACT, GRADIENTS) else 1
        self.choice = kernel.Choice(fixed if fixed is not None else widths, lambda_h, models, seed)
        self.register_fitted(contexts=("n", "x"), covariates=("n", "u"), centres=("n", "k"))
        self.register_fitted(widths=("M", 3), ridges=("M",), coefficients=("M", "f", 2), amplitudes=("M", 2))
        if solver in (EXACT, GRADIENTS):
            self.register_fitted("factors", "context_factors", derived=True)
            return
        self.register_fitted("profile", "context_centres", "covariate_centres")
        self.register_fitted("inputs", source=True)  # h of every row, or empty
        self.register_fitted("root", "covariate_root", "factor", "embedding", derived=True)
        if solver == FOURIER:
            self.register_fitted("frequencies", "dual")

    def solve(self, *examples: Tensor) -> None:
        """Fits both stages; ValueError for variables between alterations, or too many rows (exact)."""
        context, before, between, actions, targets = (example.detach() for example in examples[:5])
        if between.shape[1]:
            raise ValueError(
                f"{between.shape[1]} variables lie between the alterations, and the product-kernel "
                "estimators have no sequential form: use surrogate=nested_ridge (spectral), or "
                "surrogate.sequential=false for the paper's single adjustment"
            )
        blocks = (context, before, actions)
        models = self.choice.models(blocks, targets[:, 0])
        self.widths, self.ridges = models.widths, len(targets) * models.ridges
        self._fit(blocks, targets)
        # As loading does: a saved and loaded part gives bit-identical results.
        for name, buffer in list(self.named_buffers(recurse=False)):
            setattr(self, name, buffer.contiguous())

    def _fit(self, blocks: Blocks, targets: Tensor) -> None:
        """Fits all but the models to N rows of context, covariates and actions, and both targets."""
        raise NotImplementedError

    def _context_terms(self, contexts: Tensor, model: int) -> tuple[Tensor, Tensor, Tensor]:
        """r(x) (B, n), the prior variance over t (B,) and the expected covariates (B, |U|) of a model."""
        raise NotImplementedError

    def _variance(self, query: Tensor, prior: Tensor, model: int) -> Tensor:
        """The posterior variance over t of queries q (b, n), (b,)."""
        raise NotImplementedError

    def _store(self, blocks: Blocks, indices: Tensor | slice) -> None:
        self.contexts, self.covariates, self.centres = (block[indices].clone() for block in blocks)

    def _rows(self, model: int = 0) -> Tensor:
        return kernel.joined((self.contexts, self.covariates, self.centres), self.widths[model])

    def prepare(self, contexts: Tensor) -> Prepared:
        """The pieces of the class."""
        contexts = contexts.to(self.contexts)
        models = [self._context_terms(contexts, model) for model in range(len(self.widths))]
        reach, prior, expected = (torch.stack(parts, 1) for parts in zip(*models, strict=True))
        weights = [self._weigh(reach, column) / len(self.widths) for column in self.coefficients.unbind(-1)]
        return Prepared(contexts, (*weights, reach, prior, expected))

    def _weigh(self, reach: Tensor, coefficients: Tensor) -> Tensor:
        """omega from r(x) and alpha (M, n)."""
        return reach * coefficients

    def value(self, prepared: Prepared, actions: Tensor, target: int = 0) -> Tensor:
        """Eq. (9), (..., B, k) -> (..., B)."""
        weights = prepared.pieces[target]
        return kernel.summed(actions.to(weights), self.centres, self.widths[:, 2], weights)

    def value_and_gradient(self, prepared: Prepared, actions: Tensor) -> tuple[Tensor, Tensor]:
        """Eq. (9) and (10), (..., B, k) -> (..., B), (..., B, k), in the precision of the actions."""
        centres, widths = self.centres.to(actions), self.widths[:, 2].to(actions)
        return kernel.summed_with_gradient(actions, centres, widths, prepared.pieces[0].to(actions))

    def value_and_std(self, prepared: Prepared, actions: Tensor, target: int = 0) -> tuple[Tensor, Tensor]:
        """Eq. (9), and the standard deviation within and between models."""
        _, _, reach, prior, _ = prepared.pieces
        means, inner = [], []
        for model in range(len(self.widths)):
            query = self._query(reach[:, model], actions.to(reach), model)
            shape = query.shape[:-1]
            variance = self._variance(query.flatten(0, -2), prior[:, model].expand(shape).flatten(), model)
            inner.append(self.amplitudes[model, target] * variance.reshape(shape))
            means.append(query @ self.coefficients[model, :, target])
        variance = torch.stack(inner).mean(0) + torch.stack(means).var(0, correction=0)
        return self.value(prepared, actions, target), variance.sqrt()

    def _query(self, reach: Tensor, actions: Tensor, model: int) -> Tensor:
        """q, (..., B, n)."""
        distance = (actions.unsqueeze(-2) - self.centres) / self.widths[model, 2]
        return reach * (-0.5 * distance.square().sum(-1)).exp()

    def support(self, prepared: Prepared, actions: Tensor) -> Tensor:
        """Effective number of rows near (x, E[u | x], a), averaged over models, (B, k) -> (B,)."""
        expected = prepared.pieces[4]
        supports = [
            self._kernel_sum(
                kernel.joined((prepared.contexts, expected[:, model], actions.to(expected)), widths), model
            )
            for model, widths in enumerate(self.widths)
        ]
        return torch.stack(supports).mean(0).clamp(min=0)

    def _kernel_sum(self, points: Tensor, model: int) -> Tensor:
        """The sum over rows of the kernel at scaled points (B, d), (B,)."""
        return kernel.gram_product(points, self._rows(model), points.new_ones(len(self.centres), 1))[:, 0]

    def weights(self, prepared: Prepared) -> Tensor:
        """omega, summed over models, (B, n)."""
        return prepared.pieces[0].sum(1)

    @property
    def actions(self) -> Tensor:
        """The actions of the stored rows, (n, k)."""
        return self.centres

    @property
    def widths_of_rows(self) -> tuple[int, int, int]:
        """The widths of the stored rows."""
        return self.contexts.shape[-1], self.covariates.shape[-1], self.centres.shape[-1]


class GramRidge(ProductRidge):
    """Solvers exact and cg, on every row."""

    def sizes(self) -> Sizes:
        """Factors are Cholesky factors or preconditioners."""
        return {**super().sizes(), "coefficients": ("M", "n", 2), **self.derivable()}

    def derivable(self) -> Mapping[str, tuple[int, ...]]:
        """The factors of both stages, from the rows."""
        count = len(self.centres)
        size = len(self.widths), count, count if self.solver == EXACT else min(count, self.rank)
        return {"factors": size, **({"context_factors": size} if self.covariates.numel() else {})}

    def derive(self, name: str) -> Tensor:
        """See `Part.derive`."""
        models = range(len(self.widths))
        if name == "factors":
            factors = [self._factor(self._rows(m), self.ridges[m]) for m in models]
        else:
            factors = [self._factor(self._scaled_contexts(m), self._context_ridge) for m in models]
        return torch.stack(factors)

    def _factor(self, rows: Tensor, ridge: Tensor) -> Tensor:
        if self.solver == GRADIENTS:
            return kernel.preconditioner(rows, self.rank)
        gram = kernel.gaussian(rows, rows)
        gram.diagonal().add_(ridge)
        return torch.linalg.cholesky(gram)

    def _scaled_contexts(self, model: int) -> Tensor:
        return self.contexts / self.widths[model, 0]

    @property
    def _context_ridge(self) -> Tensor:
        return self.contexts.new_tensor(len(self.contexts) * self.lambda_x)

    def _solve_system(self, rows: Tensor, ridge: Tensor, factor: Tensor, vectors: Tensor) -> Tensor:
        if self.solver == EXACT:
            return torch.cholesky_solve(vectors, factor)
        return kernel.conjugate_gradients(rows, float(ridge), vectors, factor, self.tolerance)

    def _fit(self, blocks: Blocks, targets: Tensor) -> None:
        if self.solver == EXACT and len(targets) > MOST_EXACT:
            raise ValueError(
                f"the exact solver factorises a matrix over pairs of rows: expected at most {MOST_EXACT:,} "
                f"rows; got {len(targets):,}: choose decision=cme_nystrom, or surrogate=nested_ridge_cg"
            )
        self._store(blocks, slice(None))
        self.factors = self.derive("factors")
        models = enumerate(zip(self.ridges, self.factors, strict=True))
        self.coefficients = torch.stack(
            [self._solve_system(self._rows(m), ridge, factor, targets) for m, (ridge, factor) in models]
        )
        self.amplitudes = (targets * self.coefficients).sum(1) / len(targets)
        has_covariates = self.covariates.shape[1]
        self.context_factors = self.derive("context_factors") if has_covariates else targets.new_empty(0)

    def _context_terms(self, contexts: Tensor, model: int) -> tuple[Tensor, Tensor, Tensor]:
        contexts_fitted, widths = self._scaled_contexts(model), self.widths[model]
        k_x = kernel.gaussian(contexts / widths[0], contexts_fitted)
        if not self.covariates.shape[1]:
            return k_x, k_x.new_ones(len(k_x)), k_x.new_empty(len(k_x), 0)
        factor = self.context_factors[model]
        gamma = self._solve_system(contexts_fitted, self._context_ridge, factor, k_x.T.contiguous())
        covariates = self.covariates / widths[1]
        k_gamma = kernel.gram_product(covariates, covariates, gamma)
        return k_x * k_gamma.T, (gamma * k_gamma).sum(0), gamma.T @ self.covariates

    def _variance(self, query: Tensor, prior: Tensor, model: int) -> Tensor:
        factor, columns = self.factors[model], query.T.contiguous()
        if self.solver == EXACT:
            explained = solve_triangular(factor, columns, upper=False).square().sum(0)
        else:
            solution = self._solve_system(self._rows(model), self.ridges[model], factor, columns)
            explained = (columns * solution).sum(0)
        return (prior - explained).clamp(min=0)


class LandmarkRidge(ProductRidge):
    """Solver nystrom: ridge regression on landmarks, the stored rows, in both stages; one model."""

    def _feature_counts(self) -> tuple[int, int]:
        """The numbers of features of h and of covariates."""
        return len(self.centres), len(self.covariate_centres)

    def _features(self, rows: Tensor) -> Tensor:
        """phi of scaled rows, (n, d) -> (n, f)."""
        return kernel.whitened(self.root, self._rows(), rows)

    def _covariate_features(self, covariates: Tensor) -> Tensor:
        """Features of scaled covariates, (n, |U|) -> (n, e)."""
        return kernel.whitened(self.covariate_root, self.covariate_centres, covariates)

    def _landmarks(self, rows: Tensor) -> Tensor:
        return kernel.landmarks(rows, self.rank, self.landmarks, self.seed)

    def sizes(self) -> Sizes:
        """c landmarks in x, v in u; all r rows, if stored."""
        (f, e), (_, covariates, _) = self._feature_counts(), self.widths_of_rows
        sizes: dict[str, tuple[int | str, ...]] = {
            **super().sizes(), **self._roots(), "coefficients": ("M", f, 2), "profile": (f,),
            "factor": (f, f),
        }  # fmt: skip
        if covariates:
            sizes |= {"context_centres": ("c", "x"), "embedding": ("c", e + covariates)}
        if self.covariate_centres.shape != (0,):
            sizes |= {"covariate_centres": ("v", "u")}
        if self.inputs.shape != (0,):
            sizes |= {"inputs": ("r", sum(self.widths_of_rows))}
        return sizes

    def derivable(self) -> Mapping[str, tuple[int, ...]]:
        """Factors of landmarks; with all rows, also the factor of stage 1 and the embedding."""
        (f, e), (_, covariates, _) = self._feature_counts(), self.widths_of_rows
        sizes = self._roots()
        if self.inputs.ndim == 2 and len(self.inputs):
            sizes["factor"] = (f, f)
            if covariates:
                sizes["embedding"] = (len(self.context_centres), e + covariates)
        return sizes

    def _roots(self) -> dict[str, tuple[int, ...]]:
        f, e = self._feature_counts()
        return {"root": (f, f), **({"covariate_root": (e, e)} if e else {})}

    def derive(self, name: str) -> Tensor:
        """See `Part.derive`."""
        if name == "root":
            return kernel.root_of(self._rows())
        if name == "covariate_root":
            return kernel.root_of(self.covariate_centres)
        context, before, actions = self.inputs.split(list(self.widths_of_rows), -1)
        blocks = (context.contiguous(), before.contiguous(), actions.contiguous())
        if name == "factor":
            return self._first_stage(blocks, self.inputs.new_zeros(len(self.inputs), 2)).factor
        return self._second_stage(blocks)

    def _fit(self, blocks: Blocks, targets: Tensor) -> None:
        empty, (ridge,), count = targets.new_empty(0), self.ridges, len(targets)
        self.context_centres = self.covariate_centres = empty
        self.root = self.covariate_root = self.embedding = empty
        candidates = kernel.candidates(count, self.seed).to(targets.device)
        scaled = [block[candidates] / width for block, width in zip(blocks, self.widths[0], strict=True)]
        indices = self._select_features(blocks, candidates, scaled)
        fit = self._first_stage(blocks, targets)
        self.factor, self.profile, self.coefficients = fit.factor, fit.total, fit.theta[None]
        self.amplitudes = ((targets.square().sum(0) - fit.explained) / (count * ridge))[None]
        if blocks[1].shape[1]:
            self.context_centres = scaled[0][self._landmarks(scaled[0])]
            self.embedding = self._second_stage(blocks)
        self.inputs = torch.cat(blocks, -1)
        if self.inputs.numel() >= self.factor.numel() + self.embedding.numel():
            self.inputs = empty
        self._finalise(targets[indices, 0])

    def _select_features(self, blocks: Blocks, candidates: Tensor, scaled: Sequence[Tensor]) -> Tensor:
        """Selects features and stores rows, given indices and blocks of candidates; the rows' indices."""
        indices = candidates[self._landmarks(torch.cat(list(scaled), -1))]
        self._store(blocks, indices)
        self.root = self.derive("root")
        if self.covariates.shape[1]:
            self.covariate_centres = scaled[1][self._landmarks(scaled[1])]
            self.covariate_root = self.derive("covariate_root")
        return indices

    def _finalise(self, targets: Tensor) -> None:  # noqa: ARG002
        """Replaces coefficients of phi by those of k_m; `targets` (n,) is the stored rows' desirability."""
        self.coefficients = solve_triangular(self.root.T, self.coefficients[0], upper=True)[None]
        self.profile = solve_triangular(self.root.T, self.profile[:, None], upper=True)[:, 0]

    def _first_stage(self, blocks: Blocks, targets: Tensor) -> kernel.Regression:
        def rows(span: slice) -> tuple[Tensor, Tensor]:
            scaled = kernel.joined([block[span] for block in blocks], self.widths[0])
            return self._features(scaled), targets[span]

        return kernel.regressed(len(targets), rows, float(self.ridges))

    def _second_stage(self, blocks: Blocks) -> Tensor:
        """The embedding of covariates and their features, as weights of k_x at the landmarks."""
        (context, before, _), root = blocks, kernel.root_of(self.context_centres)

        def rows(span: slice) -> tuple[Tensor, Tensor]:
            expected = self._covariate_features(before[span] / self.widths[0, 1])
            features = kernel.whitened(root, self.context_centres, context[span] / self.widths[0, 0])
            return features, torch.cat([expected, before[span]], -1)

        regression = kernel.regressed(len(before), rows, len(before) * self.lambda_x)
        return solve_triangular(root.T, regression.theta, upper=True)

    def _expected_covariates(self, contexts: Tensor) -> tuple[Tensor, Tensor]:
        """The expected features of the covariates and the expected covariates, (B, e) and (B, |U|)."""
        projected = kernel.gaussian(contexts / self.widths[0, 0], self.context_centres) @ self.embedding
        count = self._feature_counts()[1]
        return projected[:, :count], projected[:, count:]

    def _context_terms(self, contexts: Tensor, model: int) -> tuple[Tensor, Tensor, Tensor]:
        width = self.widths[model]
        k_x = kernel.gaussian(contexts / width[0], self.contexts / width[0])
        if not self.covariates.shape[1]:
            return k_x, k_x.new_ones(len(k_x)), k_x.new_empty(len(k_x), 0)
        expected, means = self._expected_covariates(contexts)
        row_features = self._covariate_features(self.covariates / width[1])
        return k_x * (expected @ row_features.T), expected.square().sum(-1), means

    def _variance(self, query: Tensor, prior: Tensor, model: int) -> Tensor:
        features = solve_triangular(self.root, query.T, upper=False)
        inside = self.ridges[model] * solve_triangular(self.factor, features, upper=False).square().sum(0)
        return inside + (prior - features.square().sum(0)).clamp(min=0)

    def _kernel_sum(self, points: Tensor, model: int) -> Tensor:
        return kernel.gaussian(points, self._rows(model)) @ self.profile


class FourierRidge(LandmarkRidge):
    """Solver fourier: waves replace features of landmarks, but for those in x; at most 500 starts."""

    def _feature_counts(self) -> tuple[int, int]:
        return 2 * self.pairs, 2 * self.pairs

    def _features(self, rows: Tensor) -> Tensor:
        return kernel.waves_of(rows @ self.frequencies.T) / self.pairs**0.5

    def _covariate_features(self, covariates: Tensor) -> Tensor:
        return kernel.waves_of(covariates @ self._frequency_blocks()[1].T)

    def _frequency_blocks(self) -> tuple[Tensor, ...]:
        """The frequencies of context, covariates and actions."""
        return self.frequencies.split(list(self.widths_of_rows), -1)

    def sizes(self) -> Sizes:
        """R frequencies over the columns of h; n starts."""
        return {**super().sizes(), "frequencies": (self.pairs, sum(self.widths_of_rows)), "dual": ("n",)}

    def _roots(self) -> dict[str, tuple[int, ...]]:
        return {}

    def _select_features(self, blocks: Blocks, candidates: Tensor, scaled: Sequence[Tensor]) -> Tensor:  # noqa: ARG002
        stream, columns = generator(self.seed), sum(block.shape[1] for block in blocks)
        normal = torch.randn(self.pairs, columns, generator=stream, dtype=torch.float64)
        self.frequencies = normal.to(blocks[0])
        indices = torch.randperm(len(blocks[0]), generator=stream)[:STARTS].to(candidates.device)
        self._store(blocks, indices)
        return indices

    def _finalise(self, targets: Tensor) -> None:
        self.dual = (targets - self._features(self._rows()) @ self.coefficients[0, :, 0]) / self.ridges

    def _context_terms(self, contexts: Tensor, model: int) -> tuple[Tensor, Tensor, Tensor]:
        waves = kernel.waves_of((contexts / self.widths[model, 0]) @ self._frequency_blocks()[0].T)
        means = waves.new_empty(len(waves), 0)
        if self.covariates.shape[1]:
            expected, means = self._expected_covariates(contexts)
            waves = kernel.times(waves, expected)
        return waves / self.pairs**0.5, waves.new_ones(len(waves)), means

    def _weigh(self, reach: Tensor, coefficients: Tensor) -> Tensor:
        """The weights of cos(w_a'a) and sin(w_a'a)."""
        real, imaginary = reach.chunk(2, -1)
        cosines, sines = coefficients.chunk(2, -1)
        return torch.cat([cosines * real + sines * imaginary, sines * real - cosines * imaginary], -1)

    def value(self, prepared: Prepared, actions: Tensor, target: int = 0) -> Tensor:
        """(..., B, k) -> (..., B)."""
        weights = prepared.pieces[target][:, 0]
        return (self._action_waves(actions.to(weights)) * weights).sum(-1)

    def value_and_gradient(self, prepared: Prepared, actions: Tensor) -> tuple[Tensor, Tensor]:
        """(..., B, k) -> (..., B), (..., B, k), in the precision of the actions."""
        frequencies = (self._frequency_blocks()[2] / self.widths[0, 2]).to(actions)
        even, odd = prepared.pieces[0][:, 0].to(actions).chunk(2, -1)
        phase = actions @ frequencies.T
        cosine, sine = phase.cos(), phase.sin()
        return (even * cosine + odd * sine).sum(-1), (odd * cosine - even * sine) @ frequencies

    def _action_waves(self, actions: Tensor) -> Tensor:
        return kernel.waves_of((actions / self.widths[0, 2]) @ self._frequency_blocks()[2].T)

    def _query(self, reach: Tensor, actions: Tensor, model: int) -> Tensor:  # noqa: ARG002
        return kernel.times(reach, self._action_waves(actions))

    def _variance(self, query: Tensor, prior: Tensor, model: int) -> Tensor:  # noqa: ARG002
        """Posterior variance in the span of the features."""
        return self.ridges[model] * solve_triangular(self.factor, query.T, upper=False).square().sum(0)

    def _kernel_sum(self, points: Tensor, model: int) -> Tensor:  # noqa: ARG002
        return self._features(points) @ self.profile

    def weights(self, prepared: Prepared) -> Tensor:
        """Dual coefficients times the kernel in context and expected covariates, (B, n)."""
        widths = self.widths[0, :2]
        points = kernel.joined((prepared.contexts, prepared.pieces[4][:, 0]), widths)
        return self.dual * kernel.gaussian(points, kernel.joined((self.contexts, self.covariates), widths))
