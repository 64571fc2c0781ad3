"""What is done where nobody alters anything: draws of the actions given what precedes them.

Actions with levels follow a classification of the combinations c that occur, each against all others,

    P(c | z) = Phi(f_c(z)) / sum_c' Phi(f_c'(z)),

and continuous ones a regression on z and the combination, with its pool of whole residual rows
(`estimators.response_regression`): who is given no drug has no dose of it. An outcome under no action is then
a mixture over the combinations. Of more than `MOST` combinations none is told apart: all actions follow one
regression, and levels are moved to the nearest combination that occurs.

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

# Combinations that are told apart, and of more, the most frequent ones to which levels are moved.
MOST, KEPT = 12, 256
# Numbers of a block of distances, 32 MB.
CHUNK = 4_000_000


@dataclass(frozen=True)
class UsualDraws:
    """Draws for N blocks: functions, and residuals of m points in each."""

    functions: Responses | None
    residuals: Tensor | None  # (N, m, k), standardised
    classes: Tensor | None  # (l, N, F)


class UsualAction(Solved):
    """Regression and classification of `count` actions, those at the places `levels` having levels."""

    needed = False

    def __init__(self, count: int, levels: Sequence[int], settings: tuple[int, int, int], seed: int) -> None:
        super().__init__()
        self.count, self.levels = count, tuple(levels)
        self.response = ResponseRegression(*settings, seed=seed)
        self.classes = FeatureClassifier(*settings, seed=seed + 1)
        self.register_fitted(combinations=("l", len(self.levels)))

    @property
    def told_apart(self) -> bool:
        """Whether the combinations of levels have chances of their own."""
        return len(self.combinations) <= MOST

    @property
    def regressed(self) -> list[int]:
        """The places of the actions that the regression is of."""
        return [place for place in range(self.count) if not self.told_apart or place not in self.levels]

    def solve(self, *examples: Tensor) -> None:
        """Fits to what precedes the actions (n, p), the actions (n, k), and the units (n,) if there are."""
        given, actions = (example.detach().to(torch.float64) for example in examples[:2])
        chosen = actions[:, list(self.levels)]
        if not self.levels:
            self.combinations = chosen[:1]
            self.response.solve(given, actions, *examples[2:])
            return
        combinations, which, counts = chosen.unique(dim=0, return_inverse=True, return_counts=True)
        self.combinations = combinations[counts.argsort(descending=True, stable=True)[:KEPT].sort().values]
        if len(combinations) > MOST:
            self.response.solve(given, actions, *examples[2:])
            return
        if self.regressed:
            self.response.solve(torch.cat((given, chosen), -1), actions[:, self.regressed], *examples[2:])
        if len(combinations) > 1:
            answers = torch.nn.functional.one_hot(which, len(combinations)).double()
            self.classes.solve(given, answers[:, : 1 if len(combinations) == 2 else None], *examples[2:])

    def left_out(self, given: Tensor, actions: Tensor, folds: Tensor) -> Tensor:
        """The chances of the combinations of levels at rows, (n, l): each fold (n,) by the others, with the
        kernels of all rows.
        """
        shape = given.new_ones(len(given), len(self.combinations))
        if len(self.combinations) < 2:
            return shape
        same = (actions[:, None, list(self.levels)] == self.combinations).all(-1).double()
        for fold in folds.unique().tolist():
            held, refitted = folds == fold, deepcopy(self.classes)
            refitted.condition(given[~held], same[~held, : refitted.location.numel()])
            shape[held] = self._shares(torch.special.ndtr(refitted(given[held])))
        return shape

    def _shares(self, chances: Tensor) -> Tensor:
        """P(c | z) from each combination's own chance, (..., l), or that of the first of two."""
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
            seen = given.unsqueeze(-2)
            if self.told_apart:
                seen = torch.cat(
                    (seen.expand(*shape, len(levels), -1), levels.expand(*shape, *levels.shape)), -1
                )
            # The alternatives as points beside each other.
            flat = seen.flatten(-3, -2)
            means = self.response.drawn(drawn.functions.functions, flat).unflatten(-2, seen.shape[-3:-1])
            scales = self.response.scales(flat).unflatten(-2, seen.shape[-3:-1])
            actions[..., self.regressed] = means + scales * drawn.residuals.unsqueeze(-2)
        if not self.told_apart:
            actions[..., list(self.levels)] = self._nearest(actions[..., list(self.levels)])
        if drawn.classes is None:
            return actions, given.new_ones(*shape, 1)
        return actions, self._shares(torch.special.ndtr(self.classes.drawn(drawn.classes, given)))

    def _nearest(self, levels: Tensor) -> Tensor:
        """The combination nearest to each of the levels, (..., j) -> (..., j)."""
        parts = levels.reshape(-1, levels.shape[-1]).split(CHUNK // len(self.combinations))
        nearest = torch.cat([torch.cdist(part, self.combinations).argmin(-1) for part in parts])
        return self.combinations[nearest].reshape(levels.shape)
