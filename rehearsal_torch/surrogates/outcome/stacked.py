"""A stack of two estimators of success: a regression of the indicator, and one of the outcomes.

The nested kernel estimator (`kernel.nested_ridge`) regresses whether outcomes are desired; the outcome
regression (`outcome_regression`) regresses the outcomes and counts. Each is better in some worlds, and their
errors differ, so that their weighted mean decides better than either in most:

    J(a; x) = w J_indicator(a; x) + (1 - w) J_outcome(a; x).

The weight comes from two-fold cross-validated predictions p_i and q_i of the n rows' indicators y_i by the
two, given (x, u, v, a); several candidate sets are pooled. The weight with the smallest Brier score is

    w* = clip(sum_i (y_i - q_i)(p_i - q_i) / sum_i (p_i - q_i)^2, 0, 1),

which is little more than chance where few rows are desired, and scores rows, not decisions at the edge of the
rows. It is shrunk towards a weight w_0 that is expected beforehand, both by the effective number of rows m =
min(desired, undesired):

    w = w_0 + (w* - w_0) m / (m + m_0),      w_0 = 1/2 m / (m + m_2)      for m >= m_1,
    w = 0                                                                 for m < m_1.

With many rows w_0 is one half: equal weights are hard to beat. With few, the indicator has little to regress,
while every row has a slack; with fewer than m_1 the outcome regression decides alone. m_0 = 100 and m_1 = 30
were chosen on five simulated worlds, m_2 = 300 on seeds 202 to 205 of ten, by a rule that was fixed before:
among rules whose intervals hold the truth in at least 92 % and which lose at most .02 against the better of
the two in each world. Equal weights throughout lost .09 with 50 and with 90 desired rows; the intervals of
w_0 = 0 held the truth in 90 % on non_syn2.

Source: Wolpert (1992) and Breiman (1996b) (stacked regressions); Gneiting and Raftery (2007) (the Brier
score); Smith and Wallis (2009) (equal weights are hard to beat).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from rehearsal_torch.data.part import Solved
from rehearsal_torch.data.question import Question
from rehearsal_torch.data.rehearsal_task import RehearsalTask
from rehearsal_torch.data.table import Table
from rehearsal_torch.seeding import generator
from rehearsal_torch.surrogates.kernel.nested_ridge import AlterationValue, NestedRidge
from rehearsal_torch.surrogates.kernel.spectral_ensemble import SpectralEnsemble
from rehearsal_torch.surrogates.outcome.outcome_regression import OutcomeRegression
from rehearsal_torch.surrogates.outcome_draws import OutcomeDraws
from rehearsal_torch.surrogates.rehearsal_surrogate import RehearsalSurrogate
from rehearsal_torch.surrogates.surrogate import Fits, SeparateMembers

# m_0, m_1 and m_2: the effective number of rows at which the weight is half as far from w_0 as the best,
# below which the outcome regression decides alone, and at which w_0 is 1/4.
PRIOR_ROWS, FEWEST_ROWS, EQUAL_ROWS = 100.0, 30.0, 300.0


class StackWeight(Solved):
    """The weight of the indicator's regression, from held-out predictions."""

    def __init__(self) -> None:
        super().__init__()
        # The Brier scores of both and of a constant; the numbers of desired and all rows.
        self.register_fitted(weight=(1,), scores=(3,), counts=(2,))

    def faults(self) -> list[str]:
        """Sizes, and a weight that is none."""
        faults = super().faults()
        if faults or 0 <= float(self.weight) <= 1:
            return faults
        return [f"weight: expected a number in [0, 1]; got {float(self.weight)}"]

    def solve(self, *examples: Tensor) -> None:
        """Fits to held-out predictions by the two for every candidate set (n, s, 2), and indicators (n,)."""
        predictions, desired = examples
        first, second = predictions.clamp(0, 1).flatten(1).unflatten(1, (-1, 2)).unbind(-1)
        target = desired.unsqueeze(-1)
        difference = first - second
        best = ((target - second) * difference).sum() / difference.square().sum().clamp_min(1e-300)
        rows = min(float(desired.sum()), float((1 - desired).sum()))
        self.counts = desired.new_tensor([float(desired.sum()), float(len(desired))])
        self.scores = torch.stack(
            [(target - prediction).square().mean() for prediction in (first, second, desired.mean())]
        )
        expected = 0.5 * _share(rows, EQUAL_ROWS)
        weight = expected + (float(best.clamp(0, 1)) - expected) * _share(rows, PRIOR_ROWS)
        self.weight = desired.new_tensor([weight if rows >= FEWEST_ROWS else 0.0])


def _share(rows: float, others: float) -> float:
    """rows / (rows + others), 0 for none."""
    return rows / max(rows + others, 1e-300)


class StackedRegression(RehearsalSurrogate, SeparateMembers):
    """The two surrogates, fitted to the same rows, and their weight. ValueError if the estimators of the
    indicator cannot predict rows that are left out, or the indicator overrides `parts`.

    Args:
        task: The roles of the variables; plain data or a RehearsalTask.
        indicator: Factory of the regression of the indicator, a `NestedRidge` with `SpectralEnsemble`s.
        outcome: Factory of the outcome regression.
        seed: Seed of the folds.
    """

    by_adjustment: bool = True
    members_are: str = "candidate sets"

    def __init__(
        self,
        task: Mapping[str, Any] | RehearsalTask,
        indicator: Callable[..., NestedRidge],
        outcome: Callable[..., OutcomeRegression],
        seed: int = 0,
    ) -> None:
        super().__init__(task)
        self.indicator, self.outcome = indicator(task=self.task), outcome(task=self.task)
        estimators = self.indicator.values()
        other = {type(part).__name__ for part in estimators if not isinstance(part, SpectralEnsemble)}
        if other:
            expected = "indicator.estimator: expected a SpectralEnsemble, which predicts rows left out"
            raise ValueError(f"{expected}; got {', '.join(sorted(other))}")
        if type(self.indicator).parts is not NestedRidge.parts:
            raise ValueError(
                "indicator: expected a NestedRidge whose parts are common ones and those of each set; got "
                f"{type(self.indicator).__name__}, which overrides `parts`: override `common_parts` or "
                "`member_parts`"
            )
        self.stack, self.seed = StackWeight(), seed

    @property
    def weight(self) -> float:
        """w, the weight of the regression of the indicator; 0 where the front door is needed, which it does
        not use.
        """
        return 0.0 if any(sets.front_door for sets in self.outcome.adjustments) else float(self.stack.weight)

    def separate(self) -> Sequence[AlterationValue]:
        """The indicator's estimators of the candidate sets."""
        return self.indicator.separate()

    def common_parts(self, table: Table) -> Fits:
        """The overlap, the outcome regression, and what the indicator's estimators have in common."""
        self.task.check(table)
        yield self.overlap, self.overlap.examples(table)
        yield from self.outcome.parts(table)
        yield from self.indicator.common_parts(table)

    def member_parts(self, place: int, table: Table) -> Fits:
        """The indicator's estimator of a candidate set."""
        yield from self.indicator.member_parts(place, table)

    def closing_parts(self, table: Table) -> Fits:
        """The weight."""
        order = torch.randperm(len(table), generator=generator(self.seed))
        folds = torch.empty_like(order)
        folds[order] = torch.arange(len(order)) % 2
        desired = self.task.region.contains(table.columns(self.task.outcomes)).to(torch.float64)
        folds = folds.to(desired.device)
        predictions = []
        for which, estimator in enumerate(self.indicator.values()):
            assert isinstance(estimator, SpectralEnsemble)
            first = estimator.left_out(self.indicator.examples(which, table), folds)
            predictions.append(torch.stack((first, self.outcome.left_out(table, which, folds)), -1))
        yield self.stack, (torch.stack(predictions, 1), desired)

    def used(self) -> tuple[str, ...]:
        """All fields, as for both."""
        return self.outcome.used()

    def outcome_draws(self, altered: Sequence[str], given: Tensor, action: Tensor) -> OutcomeDraws | None:
        """Those of the outcome regression, with its weight."""
        draws = self.outcome.outcome_draws(altered, given, action)
        return None if draws is None else replace(draws, weight=1 - self.weight)

    def faults(self) -> list[str]:
        """The parts' faults, and those of both."""
        faults = super().faults()
        if faults:
            return faults
        parts = {"indicator": self.indicator, "outcome": self.outcome}
        return [f"{name}.{fault}" for name, part in parts.items() for fault in part.faults()]

    def _take(self, question: Question) -> None:
        super()._take(question)
        for surrogate in (self.indicator, self.outcome):
            surrogate.adopt(question)
