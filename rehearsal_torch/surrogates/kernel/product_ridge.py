"""Nested kernel ridge regression with a product kernel, solved exactly by factorisation.

    alpha    = (K_hh + N lambda_h I)^-1 w                     desirability given h = (x, u, a),
    gamma(x) = (K_xx + N lambda_x I)^-1 k_x(x)                covariates given the context,
    J(a; x)  = (alpha . k_x(x) . K_uu gamma(x))^T k_a(a);
    the last factor of the weights, K_uu gamma(x), is one if there are no covariates.

J is linear in the regression function; with r(x) = k_x(x) . K_uu gamma(x), a Gaussian process of amplitude t
and noise variance t N lambda_h gives it the posterior variance

    t [gamma^T K_uu gamma - q^T (K_hh + N lambda_h I)^-1 q],   q = r(x) . k_a(a),   t = w^T alpha / N,

t being the maximum-evidence amplitude at these widths. Several models are averaged: J is the mean, and the
variance also includes the variance between models. Factors are computed in the fit; contexts then cost
triangular solves.

Source: Du et al. (2026), Eq. (5)-(9) and Alg. 1; Rasmussen and Williams (2006), Eq. (2.26) and (5.8); Chau et
al. (2021) for variances of such nested estimates.
"""

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from rehearsal_torch.data.part import Sizes
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

LAMBDA = 1e-3


class ProductRidge(GaussianBumps):
    """The paper's estimator.

    Args:
        first: See `AlterationValue`; there is no sequential form.
        widths: "median", or "leave_one_out", which also selects lambda_h and averages models.
        fixed: Widths of context, covariates and actions in standardised coordinates; None selects them by
            `widths`.
        lambda_h: Ridge of stage 1; N lambda_h is added to the diagonal.
        lambda_x: Ridge of stage 2.
        rows: Number of rows in the leave-one-out subset.
        tolerance: Number of standard errors within which leave-one-out errors count as equal.
        models: Maximum number of models that are averaged.
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
        rows: int = 300,
        tolerance: float = 1.0,
        models: int = 8,
        seed: int = 0,
    ) -> None:
        super().__init__(first)
        if lambda_x <= 0:
            raise ValueError(f"expected a positive `lambda_x`; got {lambda_x}")
        self.choice, self.lambda_x = (
            Choice(fixed if fixed is not None else widths, lambda_h, rows, tolerance, models, seed),
            lambda_x,
        )
        self.register_fitted("contexts", "covariates", "widths", "ridges", "coefficients")
        self.register_fitted("amplitudes", "context_widths")
        self.register_fitted("factors", "context_factors", derived=True)
        self.contexts: Tensor
        self.covariates: Tensor
        self.widths: Tensor
        self.ridges: Tensor
        self.coefficients: Tensor
        self.factors: Tensor
        self.amplitudes: Tensor
        self.context_widths: Tensor
        self.context_factors: Tensor

    def sizes(self) -> Sizes:
        """M models of n rows; contexts (x) and covariates (u); w context widths."""
        own = {
            "bump_widths": (
                len(self.widths[:, 2].unique())
                if self.widths.ndim == 2 and self.widths.shape[1] == 3
                else "g",
            )
        }
        rows: Sizes = {"contexts": ("n", "x"), "covariates": ("n", "u"), "widths": ("M", 3), "ridges": ("M",)}
        fit: Sizes = {
            "coefficients": ("M", "n", 2),
            "factors": ("M", "n", "n"),
            "amplitudes": ("M", 2),
            "context_widths": ("w",),
        }
        second: Sizes = (
            {"context_factors": ("w", "n", "n")}
            if self.covariates.ndim == 2 and self.covariates.shape[1]
            else {}
        )
        return {**super().sizes(), **own, **rows, **fit, **second}

    def solve(self, *examples: Tensor) -> None:
        """Fits both stages: one factorisation per model, and one per context width if there are covariates.

        Raises:
            ValueError: if there are variables between the alterations.
        """
        context, before, between, actions, targets = (each.detach() for each in examples[:5])
        refuse_between(between)
        blocks, rows = (context, before, actions), len(targets)
        chosen = self.choice.models(blocks, targets[:, 0])
        self.contexts, self.covariates, self.centres = context.clone(), before.clone(), actions.clone()
        self.widths, self.ridges = chosen.widths, chosen.ridges
        self.bump_widths = self.widths[:, 2].unique()
        self.factors = self.derive("factors")
        self.coefficients = torch.cholesky_solve(targets.expand(len(self.widths), -1, -1), self.factors)
        self.amplitudes = (targets * self.coefficients).sum(1) / rows
        self.context_widths = self.widths[:, 0].unique() if before.shape[1] else self.widths.new_empty(0)
        self.context_factors = self.derive("context_factors")
        lay_out(self)

    def derivable(self) -> Mapping[str, tuple[int, ...]]:
        """The factors of both stages, from the rows."""
        count = len(self.centres)
        if not all(each.ndim == 2 and len(each) == count for each in (self.contexts, self.covariates)):
            return {}
        second = {"context_factors": (len(self.context_widths), count, count)}
        return {"factors": (len(self.widths), count, count), **(second if len(self.context_widths) else {})}

    def derive(self, name: str) -> Tensor:
        """See `Part.derive`."""
        if name == "factors":
            rows = (self.contexts, self.covariates, self.centres)
            pairs = zip(self.widths, self.ridges, strict=True)
            return torch.stack([_factor(joined(rows, each), ridge) for each, ridge in pairs])
        ridge = self.contexts.new_tensor(self.lambda_x)
        factors = [_factor(self.contexts / width, ridge) for width in self.context_widths]
        return torch.stack(factors) if factors else self.contexts.new_empty(0)

    def prepare(self, contexts: Tensor) -> Prepared:
        """Pieces: weights of both targets (B, g, N), r (B, M, N), prior variance over t (B, M), expected
        covariates (B, M, |U|).
        """
        contexts = contexts.to(self.contexts)
        reaches, priors, expected = zip(*(self._reach(contexts, each) for each in self.widths), strict=True)
        reach = torch.stack(reaches, 1)
        pieces = [self._grouped(reach, target) for target in range(self.coefficients.shape[-1])]
        return Prepared(contexts, (*pieces, reach, torch.stack(priors, 1), torch.stack(expected, 1)))

    def std(self, prepared: Prepared, actions: Tensor, target: int = 0) -> Tensor:
        """Standard deviation within and between models, (..., B, k) -> (..., B)."""
        _, _, reach, prior, _ = prepared.pieces
        means, inner = [], []
        for m, (widths, factor) in enumerate(zip(self.widths, self.factors, strict=True)):
            query = reach[:, m] * kernel_rows(actions.to(reach), self.centres, widths[2])
            explained = (
                torch.linalg.solve_triangular(factor, query.reshape(-1, query.shape[-1]).T, upper=False)
                .square()
                .sum(0)
            )
            inner.append(
                self.amplitudes[m, target] * (prior[:, m] - explained.reshape(query.shape[:-1])).clamp(min=0)
            )
            means.append(query @ self.coefficients[m, :, target])
        return (torch.stack(inner).mean(0) + torch.stack(means).var(0, correction=0)).sqrt()

    def support(self, prepared: Prepared, actions: Tensor) -> Tensor:
        """Effective number of rows near (x, E[u | x], a), averaged over models, (B, k) -> (B,)."""
        expected, near = prepared.pieces[4], []
        for m, widths in enumerate(self.widths):
            here = joined((prepared.contexts, expected[:, m], actions.to(expected)), widths)
            near.append(
                gram_product(
                    here,
                    joined((self.contexts, self.covariates, self.centres), widths),
                    here.new_ones(len(self.centres), 1),
                )[:, 0]
            )
        return torch.stack(near).mean(0)

    def _grouped(self, reach: Tensor, target: int) -> Tensor:
        """omega (B, g, N): the models' mean, with models of equal action width summed."""
        omega = reach * self.coefficients[..., target] / len(self.widths)
        return torch.stack([omega[:, self.widths[:, 2] == width].sum(1) for width in self.bump_widths], 1)

    def _reach(self, contexts: Tensor, widths: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """r(x) (B, N), gamma^T K_uu gamma (B,) and gamma^T U (B, |U|) of one model."""
        near = gaussian(contexts / widths[0], self.contexts / widths[0])
        if not self.covariates.shape[1]:
            return near, near.new_ones(len(near)), near.new_empty(len(near), 0)
        place = int((self.context_widths == widths[0]).nonzero()[0, 0])
        gamma = torch.cholesky_solve(near.T, self.context_factors[place])
        covariates = self.covariates / widths[1]
        embedded = gram_product(covariates, covariates, gamma)
        return near * embedded.T, (gamma * embedded).sum(0), gamma.T @ self.covariates


def refuse_between(between: Tensor) -> None:
    """Refuses variables between alterations: a product kernel does not factorise over them.

    Raises:
        ValueError: if there are such variables.
    """
    if between.shape[1]:
        raise ValueError(
            f"{between.shape[1]} variables lie between the alterations, and the product-kernel estimators "
            "have no sequential form: "
            "use surrogate=nested_ridge (spectral), or surrogate.sequential=false for the paper's single "
            "adjustment"
        )


def _factor(rows: Tensor, ridge: Tensor) -> Tensor:
    gram = gaussian(rows, rows)
    gram.diagonal().add_(len(rows) * ridge)
    return torch.linalg.cholesky(gram)
