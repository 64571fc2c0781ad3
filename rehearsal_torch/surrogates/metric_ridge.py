"""Ridge regression under a learnt metric: conditional means of many outputs with one factorisation.

With centred outputs and the kernel k(v, v') = exp(-|W (v - v')|^2 / 2),

    m(v) = mean + k(v)' A^-1 (Y - mean),    A = K + rho I,    left(v) = 1 - k(v)' A^-1 k(v),

where left is the posterior variance per unit of amplitude: 1 far from all rows. Fitted to features of covariates this is
their conditional mean embedding, the second stage of the nested estimator; the metric is the one under which those very
features are best explained, not the covariates themselves.

Source: Du et al. (2026), Eq. (5) and (8) (gamma(x)); centring and the choice of metric are ours.
"""

import math

import torch
from torch import Tensor

from rehearsal_torch.data.fitted import Sizes, Solved
from rehearsal_torch.surrogates.evidence_metric import free_metric, gram


class MetricRidge(Solved):
    """Regression of q outputs on p inputs.

    Args:
        rows: At most so many rows are kept (evenly spread ones): the factorisation grows with their cube.
        chosen_by: At most so many rows choose the metric.
        iterations: Of L-BFGS, at most.
    """

    def __init__(self, rows: int = 2000, chosen_by: int = 300, iterations: int = 25) -> None:
        super().__init__()
        self.rows, self.chosen_by, self.iterations = rows, chosen_by, iterations
        self.register_fitted("directions", "ratio", "shown", "mean", "factor", "weights", "centred")
        self.directions: Tensor
        self.ratio: Tensor
        self.shown: Tensor
        self.mean: Tensor
        self.factor: Tensor
        self.weights: Tensor
        self.centred: Tensor

    def sizes(self) -> Sizes:
        """n rows of p inputs, seen along r directions, and q outputs."""
        kept = {"shown": ("n", "r"), "factor": ("n", "n"), "weights": ("n", "q"), "centred": ("n", "q")}
        return {"directions": ("r", "p"), "ratio": (1,), "mean": ("q",), **kept}

    def solve(self, *examples: Tensor) -> None:
        """Fits to inputs (n, p), outputs (n, q), and the outputs (n, r) by which the metric is chosen."""
        inputs, outputs, telling = (each[evenly(len(each), self.rows, each.device)] for each in examples)
        some = evenly(len(inputs), self.chosen_by, inputs.device)
        told = telling[some] - telling[some].mean(0)
        told = told[:, told.std(0) > 1e-6]
        if inputs.shape[1] and told.shape[1]:
            metric = free_metric(inputs[some], told / told.std(0), self.iterations)
            self.directions, self.ratio = metric.directions, inputs.new_tensor([metric.ratio])
        else:
            self.directions, self.ratio = inputs.new_zeros(0, inputs.shape[1]), inputs.new_tensor([float(len(inputs))])
        self.shown = inputs @ self.directions.mT
        self.mean = outputs.mean(0)
        self.centred = outputs - self.mean
        self.factor = torch.linalg.cholesky(gram(self.shown, self.shown) + self.ratio * torch.eye(len(inputs), dtype=inputs.dtype, device=inputs.device))
        self.weights = torch.cholesky_solve(self.centred, self.factor)

    def similar(self, inputs: Tensor) -> Tensor:
        """k(v) of inputs (..., p), (..., n)."""
        directions, shown = self.directions.to(inputs), self.shown.to(inputs)
        # A count instead of -1: with no directions there is nothing to infer it from.
        flat = (inputs @ directions.mT).reshape(math.prod(inputs.shape[:-1]), len(directions))
        return gram(flat, shown).reshape(*inputs.shape[:-1], len(shown))

    def forward(self, inputs: Tensor) -> Tensor:
        """m(v), (..., p) -> (..., q)."""
        return self.mean + self.similar(inputs) @ self.weights

    def left(self, inputs: Tensor) -> Tensor:
        """What the rows leave unknown, (..., p) -> (...) in [0, 1]."""
        similar = self.similar(inputs)
        flat = similar.reshape(-1, similar.shape[-1])
        solved = torch.linalg.solve_triangular(self.factor, flat.mT, upper=False)
        return (1 - solved.square().sum(0)).clamp(0, 1).reshape(similar.shape[:-1])

    def amplitude(self, mixture: Tensor) -> Tensor:
        """The prior variance of a mixture (..., q) of the outputs that the evidence suggests, (...)."""
        values = mixture @ self.centred.mT
        flat = values.reshape(-1, values.shape[-1])
        solved = torch.linalg.solve_triangular(self.factor, flat.mT, upper=False)
        return (solved.square().sum(0) / len(self.centred)).reshape(values.shape[:-1])


def evenly(count: int, most: int, device: torch.device) -> Tensor:
    """At most `most` of `count` row numbers, evenly spread."""
    if count <= most:
        return torch.arange(count, device=device)
    return torch.linspace(0, count - 1, most, device=device).round().long()
