"""Nested kernel ridge regression with a product kernel, solved exactly by conjugate gradients.

The estimator is that of `product_ridge`, for more rows than a Gram matrix in memory allows: stage 1 is solved
once in the fit, stage 2 for each batch of contexts, and the posterior variance for the actions at which it is
requested. Each system is solved by preconditioned conjugate gradients without forming the kernel matrix,

    (K + r I) z = v,   K v in blocks of rows,   preconditioner P = L L^T + r I,

L being a pivoted Cholesky factor of K of low rank; P^-1 v = [v - L (r I + L^T L)^-1 L^T v] / r. The
preconditioner captures the large eigenvalues, so that few iterations remain. Memory is N times the rank; an
iteration costs N^2 kernel values.

Source: Du et al. (2026), Eq. (5)-(9); Gardner et al. (2018), Sec. 4 and Alg. 2, whose solver
(linear_operator's `linear_cg`) is used.
"""

import warnings
from collections.abc import Sequence

import torch
from torch import Tensor

from rehearsal_torch.data.part import Sizes
from rehearsal_torch.data.sizes import bounded
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
    """The paper's estimator, solved by conjugate gradients.

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
        self.register_fitted(
            "contexts",
            "covariates",
            "widths",
            "ridge",
            "coefficients",
            "amplitudes",
            "factor",
            "context_factor",
        )
        self.contexts: Tensor
        self.covariates: Tensor
        self.widths: Tensor
        self.ridge: Tensor
        self.coefficients: Tensor
        self.amplitudes: Tensor
        self.factor: Tensor
        self.context_factor: Tensor

    def sizes(self) -> Sizes:
        """n rows; contexts (x) and covariates (u); preconditioners of rank r and s."""
        rows: Sizes = {"contexts": ("n", "x"), "covariates": ("n", "u"), "widths": (3,), "ridge": (1,)}
        fit: Sizes = {"coefficients": ("n", 2), "amplitudes": (2,), "factor": ("n", "r")}
        second: Sizes = (
            {"context_factor": ("n", "s")} if self.covariates.ndim == 2 and self.covariates.shape[1] else {}
        )
        return {**super().sizes(), **rows, **fit, **second}

    def solve(self, *examples: Tensor) -> None:
        """Fits stage 1, and computes the preconditioner of stage 2.

        Raises:
            ValueError: if there are variables between the alterations.
        """
        context, before, between, actions, targets = (each.detach() for each in examples[:5])
        refuse_between(between)
        models = self.choice.models((context, before, actions), targets[:, 0])
        self.contexts, self.covariates, self.centres = context.clone(), before.clone(), actions.clone()
        self.widths, self.ridge = models.widths[0], len(targets) * models.ridges
        self.bump_widths = self.widths[2:].clone()
        rows = self._rows()
        self.factor = preconditioner(rows, self.rank)
        self.coefficients = solved(rows, float(self.ridge), targets, self.factor, self.tolerance)
        self.amplitudes = (targets * self.coefficients).sum(0) / len(targets)
        self.context_factor = (
            preconditioner(context / self.widths[0], self.rank) if before.shape[1] else targets.new_empty(0)
        )
        lay_out(self)

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
