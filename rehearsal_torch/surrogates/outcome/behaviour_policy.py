"""The natural course of action (treatment model): draws of unaltered actions given what precedes them.

Actions with levels follow a classification of the combinations c that occur, each against all others,

    P(c | z) = Phi(f_c(z)) / sum_c' Phi(f_c'(z)),

and continuous ones a regression on z and the combination, with its pool of whole residual rows
(`estimators.response_regression`), as without a drug there is no dose of it. An outcome under no action is
then a mixture over the combinations. With more than `MOST` combinations all actions follow one regression,
and levels are moved to the nearest combination that occurs.

Source: Robins (1986) (the natural course); Albert and Chib (1993) (the latent functions).
"""

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass

import torch
from torch import Tensor

from rehearsal_torch.data.trainable_part import Solved
from rehearsal_torch.estimators.feature_classifier import FeatureClassifier
from rehearsal_torch.estimators.response_regression import ResponseRegression, Responses, sampled_rows

MOST, KEPT = 12, 256  # combinations that are classified; the most frequent ones to which levels are moved
CHUNK = 4_000_000  # numbers of a block of distances, 32 MB


@dataclass(frozen=True)
class UsualDraws:
    """Draws for N blocks: functions, and residuals of m points in each."""

    functions: Responses | None
    residuals: Tensor | None  # (N, m, k), standardised
    classes: Tensor | None  # (l, N, F)


class UsualAction(Solved):
    """Regression and classification of `count` actions, of which those with indices `levels` have levels."""

    needed = False

    def __init__(self, count: int, levels: Sequence[int], settings: tuple[int, int, int], seed: int) -> None:
        super().__init__()
        self.count, self.levels = count, tuple(levels)
        self.response = ResponseRegression(*settings, seed=seed)
        self.classes = FeatureClassifier(*settings, seed=seed + 1)
        self.register_fitted(combinations=("l", len(self.levels)))

    @property
    def told_apart(self) -> bool:
        """Whether the combinations of levels are classified."""
        return len(self.combinations) <= MOST

    @property
    def regressed(self) -> list[int]:
        """Indices of the regression's actions."""
        return [index for index in range(self.count) if not self.told_apart or index not in self.levels]

    def solve(self, *examples: Tensor) -> None:
        """Fits to predictors (n, p), actions (n, k), and units (n,) if any."""
        predictors, actions = (example.detach().to(torch.float64) for example in examples[:2])
        levels = actions[:, list(self.levels)]
        if not self.levels:
            self.combinations = levels[:1]
            self.response.solve(predictors, actions, *examples[2:])
            return
        combinations, class_of, counts = levels.unique(dim=0, return_inverse=True, return_counts=True)
        self.combinations = combinations[counts.argsort(descending=True, stable=True)[:KEPT].sort().values]
        if len(combinations) > MOST:
            self.response.solve(predictors, actions, *examples[2:])
            return
        if self.regressed:
            self.response.solve(
                torch.cat((predictors, levels), -1), actions[:, self.regressed], *examples[2:]
            )
        if len(combinations) > 1:
            answers = torch.nn.functional.one_hot(class_of, len(combinations)).double()
            self.classes.solve(predictors, answers[:, : 1 if len(combinations) == 2 else None], *examples[2:])

    def left_out(self, given: Tensor, actions: Tensor, folds: Tensor) -> Tensor:
        """Cross-fitted probabilities of the combinations, (n, l), by folds (n,); kernels are of all rows."""
        probabilities = given.new_ones(len(given), len(self.combinations))
        if len(self.combinations) < 2:
            return probabilities
        indicators = (actions[:, None, list(self.levels)] == self.combinations).all(-1).double()
        for fold in folds.unique().tolist():
            held_out, refitted = folds == fold, deepcopy(self.classes)
            refitted.condition(given[~held_out], indicators[~held_out, : refitted.location.numel()])
            probabilities[held_out] = self._shares(torch.special.ndtr(refitted(given[held_out])))
        return probabilities

    def _shares(self, chances: Tensor) -> Tensor:
        """P(c | z) from the one-against-all probabilities (..., l), or that of the first of two."""
        if chances.shape[-1] == 1:
            chances = torch.cat((chances, 1 - chances), -1)
        return chances / chances.sum(-1, keepdim=True).clamp_min(1e-12)

    def draws(self, blocks: int, points: int, stream: torch.Generator) -> UsualDraws:
        """Draws for N blocks of m points."""
        functions = residuals = None
        if self.regressed:
            functions = self.response.responses(blocks, stream)
            residuals = sampled_rows(self.response.residuals, functions.weights, points, stream)
        mixed = self.told_apart and len(self.combinations) > 1
        return UsualDraws(functions, residuals, self.classes.draws(blocks, stream) if mixed else None)

    def usual(self, drawn: UsualDraws, given: Tensor) -> tuple[Tensor, Tensor]:
        """Actions (..., N, m, l, k) and their weights (..., N, m, l) at (..., N, m, p)."""
        shape = given.shape[:-1]
        levels = self.combinations if self.told_apart else self.combinations[:1]
        actions = given.new_zeros(*shape, len(levels), self.count)
        actions[..., list(self.levels)] = levels
        if drawn.functions is not None and drawn.residuals is not None:
            inputs = given.unsqueeze(-2)
            if self.told_apart:
                inputs = torch.cat(
                    (inputs.expand(*shape, len(levels), -1), levels.expand(*shape, *levels.shape)), -1
                )
            # The alternatives as points beside each other.
            points = inputs.flatten(-3, -2)
            means = self.response.drawn(drawn.functions.functions, points).unflatten(-2, inputs.shape[-3:-1])
            scales = self.response.scales(points).unflatten(-2, inputs.shape[-3:-1])
            actions[..., self.regressed] = means + scales * drawn.residuals.unsqueeze(-2)
        if not self.told_apart:
            drawn_levels = actions[..., list(self.levels)]
            parts = drawn_levels.reshape(-1, len(self.levels)).split(CHUNK // len(self.combinations))
            nearest = torch.cat([torch.cdist(part, self.combinations).argmin(-1) for part in parts])
            actions[..., list(self.levels)] = self.combinations[nearest].reshape(drawn_levels.shape)
        if drawn.classes is None:
            return actions, given.new_ones(*shape, 1)
        return actions, self._shares(torch.special.ndtr(self.classes.drawn(drawn.classes, given)))
