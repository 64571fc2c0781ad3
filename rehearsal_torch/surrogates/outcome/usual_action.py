"""What is done where nobody alters anything: draws of the actions given what precedes them.

Continuous actions follow a regression with its pool of whole residual rows
(`estimators.response_regression`). Actions with levels follow a classification of the combinations that
occur, each against all others,

    P(c | z) = Phi(f_c(z)) / sum_c' Phi(f_c'(z)),

of which at most `MOST` are told apart, the most frequent ones. An outcome under no action is then a mixture
over all of them. Given z, continuous actions and levels are taken to be independent.

Source: Robins (1986) (the natural course); Albert and Chib (1993) (the latent functions).
"""

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass

import torch
from torch import Tensor

from rehearsal_torch.data.part import Solved
from rehearsal_torch.estimators.feature_classifier import FeatureClassifier
from rehearsal_torch.estimators.response_regression import ResponseRegression, Responses, sampled_rows

MOST = 12


@dataclass(frozen=True)
class UsualDraws:
    """Draws for N blocks: functions, and residuals of m points in each."""

    functions: Responses | None
    residuals: Tensor | None  # (N, m, k), standardised
    classes: Tensor | None  # (l, N, F)


class UsualAction(Solved):
    """Regression and classification of k actions, those at the places `levels` having levels."""

    needed = False

    def __init__(self, levels: Sequence[int], settings: tuple[int, int, int], seed: int) -> None:
        super().__init__()
        self.levels = tuple(levels)
        self.response = ResponseRegression(*settings, seed=seed)
        self.classes = FeatureClassifier(*settings, seed=seed + 1)
        self.register_fitted(combinations=("l", len(self.levels)))

    def solve(self, *examples: Tensor) -> None:
        """Fits to what precedes the actions (n, p), the actions (n, k), and the units (n,) if there are."""
        given, actions = (example.detach().to(torch.float64) for example in examples[:2])
        self.response.solve(given, actions, *examples[2:])
        if not self.levels:
            self.combinations = given.new_zeros(1, 0)
            return
        chosen = actions[:, list(self.levels)]
        combinations, which, counts = chosen.unique(dim=0, return_inverse=True, return_counts=True)
        frequent = counts.argsort(descending=True, stable=True)[:MOST].sort().values
        self.combinations = combinations[frequent]
        if len(frequent) > 1:
            answers = (which.unsqueeze(-1) == frequent).double()
            kept = answers.any(-1)
            units = (each[kept] for each in examples[2:])
            self.classes.solve(given[kept], answers[kept][:, : 1 if len(frequent) == 2 else None], *units)

    def left_out(self, given: Tensor, actions: Tensor, folds: Tensor) -> Tensor:
        """The chances of the combinations of levels at rows, (n, l): each fold (n,) by the others, with the
        kernels of all rows.
        """
        shape = given.new_ones(len(given), len(self.combinations))
        if len(self.combinations) < 2:
            return shape
        same = (actions[:, None, list(self.levels)] == self.combinations).all(-1)
        for fold in folds.unique().tolist():
            held, refitted = folds == fold, deepcopy(self.classes)
            kept = same.any(-1) & ~held
            refitted.condition(given[kept], same[kept].double()[:, : refitted.location.numel()])
            shape[held] = self._shares(torch.special.ndtr(refitted(given[held])))
        return shape

    def _shares(self, chances: Tensor) -> Tensor:
        """P(c | z) from each combination's own chance, (..., l), or that of the first of two."""
        if chances.shape[-1] == 1:
            chances = torch.cat((chances, 1 - chances), -1)
        return chances / chances.sum(-1, keepdim=True).clamp_min(1e-12)

    def draws(self, blocks: int, points: int, stream: torch.Generator) -> UsualDraws:
        """Draws for N blocks of m points."""
        count = self.response.outputs
        functions = residuals = None
        if len(self.levels) < count:
            functions = self.response.responses(blocks, stream)
            residuals = sampled_rows(self.response.residuals, functions.weights, points, stream)
        classes = self.classes.draws(blocks, stream) if len(self.combinations) > 1 else None
        return UsualDraws(functions, residuals, classes)

    def usual(self, drawn: UsualDraws, given: Tensor) -> tuple[Tensor, Tensor]:
        """Actions (..., N, m, l, k) and their weights (..., N, m, l) at (..., N, m, p)."""
        shape, count = given.shape[:-1], self.response.outputs
        actions = given.new_zeros(*shape, len(self.combinations), count)
        if drawn.functions is not None and drawn.residuals is not None:
            means = self.response.drawn(drawn.functions.functions, given)
            moved = means + self.response.scales(given) * drawn.residuals
            actions = actions + moved.unsqueeze(-2)
        if self.levels:
            actions[..., list(self.levels)] = self.combinations
        if drawn.classes is None:
            return actions, given.new_ones(*shape, 1)
        return actions, self._shares(torch.special.ndtr(self.classes.drawn(drawn.classes, given)))
