"""Nested kernel ridge regression on landmarks: the Nystroem approximation.

With m of the rows as landmarks h_j, the regression function is a sum over landmarks,

    psi(h) = sum_j c_j k_h(h_j, h),   (K_mn K_nm + N lambda_h K_mm) c = K_mn w,

so that J remains a sum of m Gaussians with weights c_j k_x(x_j, x) E[k_u(u_j, U) | x]. The last factor is
estimated by ridge regression, on landmarks in x, of orthonormal features of u on landmarks in u. Fitting
costs O(N m^2), in blocks of rows and without an N x N matrix; with all rows as landmarks it is the exact
estimator. The variance of J adds to the posterior in the span of the landmarks the part of the prior variance
outside the span, so that it does not vanish far from all landmarks.

Ridge regression on landmarks Z uses K_mm = L L^T and the features phi(h) = L^-1 k_m(h), whose inner product
phi(h)^T phi(h') is the Nystroem kernel:

    theta = (sum_i phi_i phi_i^T + r I)^-1 sum_i phi_i t_i^T,
    prediction = theta^T phi(h) = (L^-T theta)^T k_m(h).

Landmarks are the pivots of a pivoted Cholesky factorisation of the kernel, K ~ L L^T with L of rank m; the
next pivot depends on the residual variances d_i = K_ii - sum_j L_ij^2. Greedy pivots (the largest d_i) cover
the edge of the data first and keep the largest error small; pivots sampled with probabilities d_i keep the
sum of errors near that of the best rank-m approximation. Memory is O(n m), time O(n m^2) for n candidate
rows: all, or 65,536 drawn by the seed if there are more. All sums over rows are accumulated in blocks, which
need not be in memory.

Source: Williams and Seeger (2000); Rudi, Camoriano and Rosasco (2015), Eq. (9); Quinonero-Candela and
Rasmussen (2005), Sec. 6 (the variance); Du et al. (2026), Tab. 2; pivots: Fine and Scheinberg (2001);
Harbrecht, Peters and Schneider (2012), Alg. 1 (greedy); Chen et al. (2025), Alg. 1 (sampled).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from rehearsal_torch.data.part import Examples, Sizes
from rehearsal_torch.data.sizes import bounded
from rehearsal_torch.data.tables.block_statistics import drawn, rows_at
from rehearsal_torch.data.tables.blocks import Blocks, in_blocks
from rehearsal_torch.seeding import generator
from rehearsal_torch.surrogates.kernel.nested_ridge import Prepared
from rehearsal_torch.surrogates.kernel.product_kernel import (
    MEDIAN,
    Choice,
    GaussianBumps,
    accumulated,
    gaussian,
    joined,
    kernel_rows,
    lay_out,
)
from rehearsal_torch.surrogates.kernel.product_ridge import LAMBDA, refuse_between

SPENT = 1e-10


def pivoted_cholesky(rows: Tensor, rank: int, stream: torch.Generator | None = None) -> tuple[Tensor, Tensor]:
    """Pivots (m,) in order and L (N, m), m <= rank; stops early once all residual variances are at most
    1e-10.

    Args:
        rows: (N, d), scaled.
        rank: The largest m.
        stream: Generator that samples pivots; None selects them greedily.
    """
    rest, factor, pivots = rows.new_ones(len(rows)), rows.new_empty(min(rank, len(rows)), len(rows)), []
    for j in range(len(factor)):
        if rest.max() <= SPENT:
            break
        pivot = int(rest.argmax() if stream is None else _drawn(rest, stream))
        column = gaussian(rows, rows[pivot : pivot + 1])[:, 0] - factor[:j, pivot] @ factor[:j]
        factor[j] = column / rest[pivot].sqrt()
        rest = (rest - factor[j].square()).clamp_(min=0)
        rest[pivot] = 0.0
        pivots.append(pivot)
    return torch.tensor(pivots, device=rows.device), factor[: len(pivots)].T


def _drawn(rest: Tensor, stream: torch.Generator) -> Tensor:
    """Samples a row with probability proportional to its residual variance; rows at zero are never
    sampled.
    """
    cumulative = rest.masked_fill(rest <= SPENT, 0.0).cumsum(0)
    return torch.searchsorted(
        cumulative, cumulative[-1] * (1 - torch.rand(1, generator=stream, dtype=torch.float64).to(cumulative))
    ).clamp(max=len(rest) - 1)


PIVOTED, SAMPLED, UNIFORM = "pivoted", "sampled", "uniform"
SEEN = 500
CANDIDATES = 65_536
"""Rows among which landmarks are chosen; of more, so many are drawn."""


@dataclass(frozen=True)
class Landmarks:
    """Landmarks and the features that they define.

    Attributes:
        chosen: (m,), indices of the rows.
        centres: (m, d), scaled.
        root: (m, m), L.
    """

    chosen: Tensor
    centres: Tensor
    root: Tensor

    def features(self, rows: Tensor) -> Tensor:
        """phi, (n, d) -> (n, m)."""
        return torch.linalg.solve_triangular(self.root, gaussian(self.centres, rows), upper=False).T


@dataclass(frozen=True)
class Regression:
    """The result of a ridge regression on features.

    Attributes:
        factor: (m, m), Cholesky factor of sum_i phi_i phi_i^T + r I.
        theta: (m, t).
        explained: (t,), sum_i t_i' theta' phi_i: the part of the targets' sum of squares that the fit
            explains.
        total: (m,), sum_i phi_i.
    """

    factor: Tensor
    theta: Tensor
    explained: Tensor
    total: Tensor


def landmarks(rows: Tensor, rank: int, how: str, seed: int) -> Landmarks:
    """Selects at most `rank` rows (N, d) as landmarks, without near-duplicates.

    Args:
        rows: (N, d), scaled.
        rank: m.
        how: "pivoted": greedy pivots; "sampled": pivots sampled by their residual variance; "uniform":
            sampled uniformly.
        seed: Seed of the sampling.

    Raises:
        ValueError: if `how` is unknown.
    """
    if how not in (PIVOTED, SAMPLED, UNIFORM):
        raise ValueError(f"expected `landmarks` to be {PIVOTED!r}, {SAMPLED!r} or {UNIFORM!r}; got {how!r}")
    stream = generator(seed)
    among = (
        torch.randperm(len(rows), generator=stream)[:rank] if how == UNIFORM else torch.arange(len(rows))
    ).to(rows.device)
    pivots, factor = pivoted_cholesky(rows[among], rank, stream if how == SAMPLED else None)
    return Landmarks(among[pivots], rows[among[pivots]], factor[pivots].tril())


def regressed(
    blocks: Blocks[Examples],
    features: Callable[[Examples], Tensor],
    targets: Callable[[Examples], Tensor],
    ridge: float,
) -> Regression:
    """Ridge regression of targets on features of rows in blocks, both given as functions of some rows; the
    blocks are made once.
    """
    sums: tuple[Tensor, ...] | None = None
    for block in blocks:

        def part(span: slice, block: Examples = block) -> tuple[Tensor, ...]:
            rows = tuple(each[span] for each in block)
            phi, projected = features(rows), targets(rows)
            return phi.T @ phi, phi.T @ projected, phi.sum(0)

        first = tuple(each[:1] for each in block)
        columns = features(first).shape[1] + targets(first).shape[1]
        more = accumulated(len(block[0]), columns, part)
        sums = more if sums is None else tuple(one.add_(other) for one, other in zip(sums, more, strict=True))
    assert sums is not None
    moments, cross, total = sums
    moments.diagonal().add_(ridge)
    factor = torch.linalg.cholesky(moments)
    theta = torch.cholesky_solve(cross, factor)
    return Regression(factor, theta, (cross * theta).sum(0), total)


def kernel_errors(rows: Tensor, features: Callable[[Tensor], Tensor], seed: int) -> Tensor:
    """Relative Frobenius error and mean absolute error of phi phi^T against the exact kernel, on at most 500
    rows, (2,).
    """
    some = rows[torch.randperm(len(rows), generator=generator(seed))[:SEEN].to(rows.device)]
    exact, phi = gaussian(some, some), features(some)
    error = phi @ phi.T - exact
    return torch.stack([error.norm() / exact.norm(), error.abs().mean()])


def reported_errors(errors: Tensor) -> dict[str, float]:
    """Errors (stages, 2) by name."""
    kinds, stages = ("frobenius", "mean"), ("outcome", "covariates", "context")
    return {
        f"{stage}_{kind}": float(value)
        for stage, row in zip(stages, errors, strict=False)
        for kind, value in zip(kinds, row, strict=True)
    }


def _used(examples: Examples) -> Examples:
    """Context, covariates, actions and targets."""
    context, before, _, actions, targets = (each.detach() for each in examples[:5])
    return context, before, actions, targets


class LowRankRidge(GaussianBumps):
    """The Nystroem estimator.

    Args:
        first: See `AlterationValue`; there is no sequential form.
        rank: m, the maximum number of landmarks of each kernel.
        landmarks: "pivoted", "sampled" or "uniform", see `landmarks`.
        widths: "median", or "leave_one_out" (the best model on a subset).
        fixed: Widths of context, covariates and actions in standardised coordinates; None selects them by
            `widths`.
        lambda_h: Ridge of stage 1; N lambda_h is added.
        lambda_x: Ridge of stage 2.
        seed: Seed of landmarks and subsets.

    Raises:
        ValueError: if a setting is out of range.
    """

    by_parts: bool = True

    def __init__(
        self,
        first: Sequence[int] = (),
        rank: int = 200,
        landmarks: str = SAMPLED,
        widths: str = MEDIAN,
        fixed: Sequence[float] | None = None,
        lambda_h: float = LAMBDA,
        lambda_x: float = LAMBDA,
        seed: int = 0,
    ) -> None:
        super().__init__(first)
        if rank < 1 or lambda_x <= 0:
            raise ValueError(f"expected a positive rank and lambda_x; got {rank} and {lambda_x}")
        bounded("rank", rank)
        self.rank, self.landmarks, self.lambda_x, self.seed = rank, landmarks, lambda_x, seed
        self.choice = Choice(fixed if fixed is not None else widths, lambda_h, max_models=1, seed=seed)
        self.register_fitted("contexts", "covariates", "widths", "ridge", "coefficients")
        self.register_fitted("root", "factor", "amplitudes", "profile")
        self.register_fitted("context_centres", "embedding", "cover", "errors")
        self.contexts: Tensor
        self.covariates: Tensor
        self.widths: Tensor
        self.ridge: Tensor
        self.coefficients: Tensor
        self.root: Tensor
        self.factor: Tensor
        self.amplitudes: Tensor
        self.profile: Tensor
        self.context_centres: Tensor
        self.embedding: Tensor
        self.cover: Tensor
        self.errors: Tensor

    def sizes(self) -> Sizes:
        """n landmarks; contexts (x) and covariates (u); c landmarks of stage 2, with e features."""
        rows: Sizes = {"contexts": ("n", "x"), "covariates": ("n", "u")}
        chosen: Sizes = {"widths": (3,), "ridge": (1,), "errors": ("s", 2)}
        fit: Sizes = {
            "coefficients": ("n", 2),
            "root": ("n", "n"),
            "factor": ("n", "n"),
            "amplitudes": (2,),
            "profile": ("n",),
        }
        second: Sizes = {"context_centres": ("c", "x"), "embedding": ("c", "e"), "cover": ("n", "v")}
        return {
            **super().sizes(),
            **rows,
            **chosen,
            **fit,
            **(second if self.covariates.ndim == 2 and self.covariates.shape[1] else {}),
        }

    def faults(self) -> list[str]:
        """Sizes, and an embedding whose columns are not the covariates' features and means."""
        found, covariates = super().faults(), self.covariates.shape[-1]
        if not found and covariates and self.embedding.shape[1] != self.cover.shape[1] + covariates:
            found.append(
                f"embedding: expected {self.cover.shape[1] + covariates} columns; got "
                f"{self.embedding.shape[1]}"
            )
        return found

    def solve(self, *examples: Tensor) -> None:
        """Fits both stages on landmarks.

        Raises:
            ValueError: if there are variables between the alterations.
        """
        self.solve_blocks(in_blocks(examples))

    def solve_blocks(self, blocks: Blocks[Examples]) -> None:
        """As `solve`; of the rows, the candidates for landmarks are in memory."""
        refuse_between(blocks[0][2])
        count, rows = len(blocks), blocks.map(lambda _, each: _used(each))
        models = self.choice.models_of(rows.map(lambda _, each: (*each[:3], each[3][:, 0])))
        self.widths, self.ridge = models.widths[0], count * models.ridges
        some = rows_at(rows, drawn(count, CANDIDATES, generator(self.seed)))[:3]
        scaled = joined(some, self.widths)
        marks = landmarks(scaled, self.rank, self.landmarks, self.seed)
        self.contexts, self.covariates, self.centres, self.bump_widths = (
            *(block[marks.chosen] for block in some),
            self.widths[2:].clone(),
        )
        found = regressed(
            rows.map(lambda _, each: (joined(each[:3], self.widths), each[3])),
            lambda each: marks.features(each[0]),
            lambda each: each[1],
            float(self.ridge),
        )
        squares = torch.stack([each[3].square().sum(0) for each in rows]).sum(0)
        self.root, self.factor = marks.root, found.factor
        self.coefficients = torch.linalg.solve_triangular(marks.root.T, found.theta, upper=True)
        self.profile = torch.linalg.solve_triangular(marks.root.T, found.total[:, None], upper=True)[:, 0]
        self.amplitudes = (squares - found.explained) / (count * self.ridge)
        errors = [kernel_errors(scaled, marks.features, self.seed)]
        if some[1].shape[1]:
            errors += self._embed(rows.map(lambda _, each: each[:2]), some[0] / self.widths[0], some[1])
        self.errors = torch.stack(errors)
        lay_out(self)

    def _embed(self, rows: Blocks[Examples], scaled: Tensor, before: Tensor) -> list[Tensor]:
        """Fits stage 2 to contexts and covariates, with landmarks among some of them; the errors of its
        kernels.
        """
        covariates = before / self.widths[1]
        inner = landmarks(covariates, self.rank, self.landmarks, self.seed)
        outer = landmarks(scaled, self.rank, self.landmarks, self.seed)
        found = regressed(
            rows,
            lambda each: outer.features(each[0] / self.widths[0]),
            lambda each: torch.cat([inner.features(each[1] / self.widths[1]), each[1]], -1),
            len(rows) * self.lambda_x,
        )
        self.context_centres, self.embedding = (
            outer.centres,
            torch.linalg.solve_triangular(outer.root.T, found.theta, upper=True),
        )
        self.cover = inner.features(self.covariates / self.widths[1])
        return [
            kernel_errors(covariates, inner.features, self.seed),
            kernel_errors(scaled, outer.features, self.seed),
        ]

    def approximation(self) -> dict[str, float]:
        """Errors of the approximate kernels (of h, u and x) against the exact ones on a subsample: relative
        Frobenius and mean absolute error.
        """
        return reported_errors(self.errors)

    def prepare(self, contexts: Tensor) -> Prepared:
        """Pieces: weights of both targets (B, 1, m), stage-2 weights of the landmarks (B, m), prior variance
        over its amplitude (B,), expected covariates (B, |U|).
        """
        contexts = contexts.to(self.contexts)
        scaled = contexts / self.widths[0]
        reach = gaussian(scaled, self.contexts / self.widths[0])
        prior, expected = reach.new_ones(len(reach)), reach.new_empty(len(reach), 0)
        if self.embedding.numel():
            projected = gaussian(scaled, self.context_centres) @ self.embedding
            embedded, expected = projected.split([self.cover.shape[1], self.covariates.shape[1]], -1)
            reach, prior = reach * (embedded @ self.cover.T), embedded.square().sum(-1)
        weights = [(reach * column)[:, None] for column in self.coefficients.T]
        return Prepared(contexts, (*weights, reach, prior, expected))

    def std(self, prepared: Prepared, actions: Tensor, target: int = 0) -> Tensor:
        """Posterior variance in the span plus prior variance outside the span, as a standard deviation, (...,
        B, k) -> (..., B).
        """
        _, _, reach, prior, _ = prepared.pieces
        query = reach * kernel_rows(actions.to(reach), self.centres, self.widths[2])
        features = torch.linalg.solve_triangular(self.root, query.reshape(-1, query.shape[-1]).T, upper=False)
        inside = self.ridge * torch.linalg.solve_triangular(self.factor, features, upper=False).square().sum(
            0
        )
        outside = (prior - features.square().sum(0).reshape(query.shape[:-1])).clamp(min=0)
        return (self.amplitudes[target] * (inside.reshape(outside.shape) + outside)).sqrt()

    def support(self, prepared: Prepared, actions: Tensor) -> Tensor:
        """Effective number of rows near (x, E[u | x], a) under the approximate kernel, clipped at 0, (B, k)
        -> (B,).
        """
        here = joined((prepared.contexts, prepared.pieces[4], actions.to(prepared.contexts)), self.widths)
        return (
            gaussian(here, joined((self.contexts, self.covariates, self.centres), self.widths)) @ self.profile
        ).clamp(min=0)
