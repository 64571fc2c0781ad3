"""Bayesian linear regressions: the posterior of c values given p parents, and sequential predictive scores.

    v = b + W' pa + eps,        eps ~ N(0, Sigma),        (W, b, Sigma) ~ p( . | rows).

Some rows form the *basis*: they are known beforehand, possibly with a weight below one each. The others are
*predicted*: row t contributes its log predictive density given the rows before it,

    score = sum_t forgetting^(T - t) log p(v_t | pa_t, rows before t),

so that no row is evidence for a model that has already been fitted to it. The scores weigh graphs against
each other; with forgetting below 1, parameters and scores follow a world that changes.

Implementations: the conjugate posterior (`conjugate_regression`) and ridge regression by evidence
(`evidence_ridge`).

Source: Qin et al. (2023), Sec. 4.1; Dawid (1984) for prequential scores; Raftery et al. (2010) for
forgetting.
"""

from abc import ABC, abstractmethod

import torch
from torch import Tensor

from rehearsal_torch.data.part import Sizes, Solved


class BayesianRegression(Solved, ABC):
    """A posterior of the parameters of c values given p parents.

    Args:
        parents: p, may be 0.
        outputs: c.
        forgetting: Factor by which a row's weight is multiplied per further row of the table, in (0, 1]; 1
            forgets nothing.

    Attributes:
        score: (), in nats per product of the values' units; 0 before any row was predicted.
    """

    def __init__(self, parents: int, outputs: int, forgetting: float = 1.0) -> None:
        super().__init__()
        if not 0 < forgetting <= 1:
            raise ValueError(
                f"expected forgetting in (0, 1]; got {forgetting}: 1 forgets nothing, 0.95 remembers about "
                "20 rows"
            )
        self.parents, self.outputs, self.forgetting = parents, outputs, forgetting
        self.register_fitted("score", "location", "scale")
        self.score: Tensor

    def sizes(self) -> Sizes:
        """One score; a location and a scale for each of p parents and c values."""
        return {"score": (), **dict.fromkeys(("location", "scale"), (self.parents + self.outputs,))}

    @abstractmethod
    def solve(self, *examples: Tensor) -> None:
        """Fits to the rows of a table, in chronological order: parents (n, p); values (n, c); the weight of
        each row in the basis (n,), 0 for rows outside it; the mask of rows that are predicted and then fitted
        to, (n,) bool. A row that is neither counts only as a time step.

        Raises:
            ValueError: if the basis has fewer than 3 rows.
        """

    @abstractmethod
    def draw(self, count: int, stream: torch.Generator) -> tuple[Tensor, Tensor, Tensor]:
        """Posterior samples of the parameters: weights (count, p, c), intercepts (count, c) and covariances
        (count, c, c), by a generator on the CPU.
        """

    @abstractmethod
    def log_predictive(self, parents: Tensor, values: Tensor) -> Tensor:
        """log p(v | pa, all rows), (..., p), (..., c) -> (...), in nats per product of the values' units."""

    def _begin(self, examples: tuple[Tensor, ...]) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """The examples, validated, with columns standardised by the basis."""
        parents, values, basis, to_predict = (example.detach() for example in examples)
        if int((basis > 0).sum()) < 3:
            raise ValueError(
                f"expected at least 3 rows in the basis; got {int((basis > 0).sum())}: "
                "begin with observations"
            )
        columns = torch.cat([parents, values], -1).to(torch.float64)
        basis_columns = columns[basis > 0]
        self.location, scale = basis_columns.mean(0), basis_columns.std(0)
        self.scale = torch.where(scale > 0, scale, torch.ones_like(scale))
        scaled = (columns - self.location) / self.scale
        inputs, targets = scaled[:, : self.parents], scaled[:, self.parents :]
        return inputs, targets, basis.to(torch.float64), to_predict.bool()

    def _raw(self, weights: Tensor, start: Tensor, root: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Standardised weights (K, p, c), intercepts (K, c) and factors (K, c, c) in the columns' units, the
        covariance in place of its factor.
        """
        before, after = self.scale[: self.parents], self.scale[self.parents :]
        coefficients = weights * after / before.unsqueeze(-1)
        intercept = (
            self.location[self.parents :] + start * after - self.location[: self.parents] @ coefficients
        )
        root = root * after.unsqueeze(-1)
        return coefficients, intercept, root @ root.mT
