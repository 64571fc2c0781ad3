"""Nested kernel ridge regression with a product kernel, solved exactly by conjugate gradients.

The estimator is that of `product_ridge`, for more rows than a Gram matrix in memory allows: stage 1 is solved
once in the fit, stage 2 for each batch of contexts, and the posterior variance for the actions at which it is
requested. Each system is solved by preconditioned conjugate gradients without forming the kernel matrix,

    (K + r I) z = v,   K v in blocks of rows,   preconditioner P = L L^T + r I,

L being a pivoted Cholesky factor of K of low rank; P^-1 v = [v - L (r I + L^T L)^-1 L^T v] / r. The
preconditioner captures the large eigenvalues, so that few iterations remain. Memory is N times the rank; an
iteration costs N^2 kernel values, which are never kept. Rows may come in blocks, as from a file: the columns
that are used are collected in memory, 8 bytes a number, so that the fit has the bits of a table in memory.

Files leave the preconditioners out: they follow from the rows (their ranks are kept), and decide how long a
system takes rather than what solves it.

Source: Du et al. (2026), Eq. (5)-(9); Gardner et al. (2018), Sec. 4 and Alg. 2, whose solver
(linear_operator's `linear_cg`) is used.
"""

import warnings
from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from rehearsal_torch.data.part import Examples, Sizes
from rehearsal_torch.data.sizes import bounded
from rehearsal_torch.data.tables.block_statistics import columns_of
from rehearsal_torch.data.tables.blocks import ROWS, Blocks, in_blocks
from rehearsal_torch.surrogates.kernel.landmarks import pivoted_cholesky
from rehearsal_torch.surrogates.kernel.nested_ridge import Prepared
from rehearsal_torch.surrogates.kernel.product_kernel import (
    MEDIAN,
    Choice,
    GaussianBumps,
    gaussian,
    gram_product,
    joined,
    kernel_rows,
    lay_out,
)
from rehearsal_torch.surrogates.kernel.product_ridge import LAMBDA, refuse_between


def preconditioner(rows: Tensor, rank: int) -> Tensor:
    """L, (N, d) -> (N, m) with m <= `rank`."""
    return pivoted_cholesky(rows, rank)[1].contiguous()


@torch.no_grad()
def solved(
    rows: Tensor,
    ridge: float,
    vectors: Tensor,
    factor: Tensor,
    tolerance: float = 1e-8,
    iterations: int = 1000,
) -> Tensor:
    """Solves (K + r I) z = v for vectors (N, b).

    Args:
        rows: (N, d), scaled.
        ridge: r.
        vectors: v.
        factor: L of `preconditioner`.
        tolerance: Mean relative residual at which to stop.
        iterations: Maximum number of iterations; without convergence by then the solver warns.

    Source: Gardner et al. (2018), Alg. 2.
    """
    inner = factor.T @ factor
    inner.diagonal().add_(ridge)
    root = torch.linalg.cholesky(inner)

    def product(each: Tensor) -> Tensor:
        return gram_product(rows, rows, each) + ridge * each

    def precondition(each: Tensor) -> Tensor:
        return (each - factor @ torch.cholesky_solve(factor.T @ each, root)) / ridge

    with warnings.catch_warnings():
        # Its loops are scripted on import, which newer versions of torch deprecate.
        warnings.simplefilter("ignore", DeprecationWarning)
        from linear_operator.utils.linear_cg import linear_cg
    # The solver's own `eps` of 1e-10 bounds squares of residuals, and would stop it at residuals of 1e-5.
    found: Tensor = linear_cg(
        product,
        vectors,
        tolerance=tolerance,
        eps=1e-30,
        stop_updating_after=tolerance / 10,
        max_iter=iterations,
        max_tridiag_iter=0,
        preconditioner=precondition,
    )
    return found


class IterativeRidge(GaussianBumps):
    """The paper's estimator, solved by conjugate gradients. Of rows in blocks, it takes as many as one block
    of the usual size holds.

    Args:
        first: See `AlterationValue`; there is no sequential form.
        widths: "median", or "leave_one_out" (the best model on a subset).
        fixed: Widths of context, covariates and actions in standardised coordinates; None selects them by
            `widths`.
        lambda_h: Ridge of stage 1; N lambda_h is added to the diagonal.
        lambda_x: Ridge of stage 2.
        rank: Rank of the preconditioners.
        tolerance: Relative residual at which a system counts as solved.
        seed: Seed of the leave-one-out subset.

    Raises:
        ValueError: if a setting is out of range.
    """

    by_parts: bool = True
    most_rows: int | None = ROWS

    def __init__(
        self,
        first: Sequence[int] = (),
        widths: str = MEDIAN,
        fixed: Sequence[float] | None = None,
        lambda_h: float = LAMBDA,
        lambda_x: float = LAMBDA,
        rank: int = 100,
        tolerance: float = 1e-8,
        seed: int = 0,
    ) -> None:
        super().__init__(first)
        if rank < 1 or lambda_x <= 0 or not 0 < tolerance < 1:
            raise ValueError(
                f"expected a positive rank and lambda_x, and a tolerance in (0, 1); got {rank}, {lambda_x}, "
                f"{tolerance}"
            )
        bounded("rank", rank)
        self.rank, self.lambda_x, self.tolerance = rank, lambda_x, tolerance
        self.choice = Choice(fixed if fixed is not None else widths, lambda_h, max_models=1, seed=seed)
        self.register_fitted("contexts", "covariates", "widths", "ridge", "coefficients", "amplitudes")
        # The ranks of the preconditioners.
        self.register_fitted("ranks", source=True)
        self.register_fitted("factor", "context_factor", derived=True)
        self.contexts: Tensor
        self.covariates: Tensor
        self.widths: Tensor
        self.ridge: Tensor
        self.coefficients: Tensor
        self.amplitudes: Tensor
        self.factor: Tensor
        self.context_factor: Tensor
        self.ranks: Tensor

    def sizes(self) -> Sizes:
        """n rows; contexts (x) and covariates (u); preconditioners of rank r and s."""
        rows: Sizes = {"contexts": ("n", "x"), "covariates": ("n", "u"), "widths": (3,), "ridge": (1,)}
        fit: Sizes = {"coefficients": ("n", 2), "amplitudes": (2,), "factor": ("n", "r")}
        second: Sizes = (
            {"context_factor": ("n", "s")} if self.covariates.ndim == 2 and self.covariates.shape[1] else {}
        )
        ranks: Sizes = {"ranks": (2,)} if self.ranks.shape != (0,) else {}
        return {**super().sizes(), **rows, **fit, **second, **ranks}

    def solve(self, *examples: Tensor) -> None:
        """Fits stage 1, and computes the preconditioner of stage 2.

        Raises:
            ValueError: if there are variables between the alterations.
        """
        self.solve_blocks(in_blocks(examples))

    def solve_blocks(self, blocks: Blocks[Examples]) -> None:
        """As `solve`; all rows are collected in memory."""
        context, before, between, actions, targets = (each.detach() for each in blocks[0][:5])
        refuse_between(between)
        if blocks.count > 1:
            parts = [context.shape[1], before.shape[1], actions.shape[1], targets.shape[1]]
            joint = blocks.map(lambda _, each: torch.cat([each[0], each[1], each[3], each[4]], -1))
            collected = columns_of(joint, range(sum(parts))).split(parts, -1)
            context, before, actions, targets = (each.contiguous() for each in collected)
        models = self.choice.models((context, before, actions), targets[:, 0])
        self.contexts, self.covariates, self.centres = context.clone(), before.clone(), actions.clone()
        self.widths, self.ridge = models.widths[0], len(targets) * models.ridges
        self.bump_widths = self.widths[2:].clone()
        self.factor = self.derive("factor")
        self.coefficients = solved(self._rows(), float(self.ridge), targets, self.factor, self.tolerance)
        self.amplitudes = (targets * self.coefficients).sum(0) / len(targets)
        self.context_factor = self.derive("context_factor") if before.shape[1] else targets.new_empty(0)
        second = self.context_factor.shape[1] if before.shape[1] else 0
        self.ranks = targets.new_tensor([self.factor.shape[1], second])
        lay_out(self)

    def derivable(self) -> Mapping[str, tuple[int, ...]]:
        """The preconditioners, from the rows."""
        if self.ranks.shape != (2,):
            return {}
        count, (first, second) = len(self.centres), self.ranks.int().tolist()
        return {"factor": (count, first), **({"context_factor": (count, second)} if second else {})}

    def derive(self, name: str) -> Tensor:
        """See `Part.derive`."""
        rows = self._rows() if name == "factor" else self.contexts / self.widths[0]
        return preconditioner(rows, self.rank)

    def prepare(self, contexts: Tensor) -> Prepared:
        """Pieces: weights of both targets (B, 1, N), stage-2 weights of the rows (B, N), prior variance over
        its amplitude (B,), expected covariates (B, |U|).
        """
        contexts = contexts.to(self.contexts)
        known = self.contexts / self.widths[0]
        reach = gaussian(contexts / self.widths[0], known)
        prior, expected = reach.new_ones(len(reach)), reach.new_empty(len(reach), 0)
        if self.covariates.shape[1]:
            gamma = solved(
                known, len(known) * self.lambda_x, reach.T.contiguous(), self.context_factor, self.tolerance
            )
            covariates = self.covariates / self.widths[1]
            embedded = gram_product(covariates, covariates, gamma)
            reach, prior, expected = reach * embedded.T, (gamma * embedded).sum(0), gamma.T @ self.covariates
        return Prepared(
            contexts, (*((reach * column)[:, None] for column in self.coefficients.T), reach, prior, expected)
        )

    def std(self, prepared: Prepared, actions: Tensor, target: int = 0) -> Tensor:
        """Solves one more system per action, (..., B, k) -> (..., B)."""
        _, _, reach, prior, _ = prepared.pieces
        query = reach * kernel_rows(actions.to(reach), self.centres, self.widths[2])
        columns = query.reshape(-1, query.shape[-1]).T.contiguous()
        explained = (
            columns * solved(self._rows(), float(self.ridge), columns, self.factor, self.tolerance)
        ).sum(0)
        return (self.amplitudes[target] * (prior - explained.reshape(query.shape[:-1])).clamp(min=0)).sqrt()

    def support(self, prepared: Prepared, actions: Tensor) -> Tensor:
        """Effective number of rows near (x, E[u | x], a), (B, k) -> (B,)."""
        here = joined((prepared.contexts, prepared.pieces[4], actions.to(prepared.contexts)), self.widths)
        return gram_product(here, self._rows(), torch.ones_like(self.coefficients[:, :1]))[:, 0]

    def _rows(self) -> Tensor:
        return joined((self.contexts, self.covariates, self.centres), self.widths)
