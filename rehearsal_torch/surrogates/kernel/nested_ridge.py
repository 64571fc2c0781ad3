"""Nested kernel ridge regression: the value of each candidate set by adjustment, without mechanisms.

For each candidate set of altered variables, the covariates to adjust for are read off the graph, and an
estimator is fitted to the nested expectation

    J(a; x) = E[w(Y) | x, a altered] = E_{u | x} E[w(Y) | x, u, a],

with u the covariates that precede the alteration; or, where covariates v between two alterations affect both
a later one and the outcome, its sequential form E_{u | x} E_{v | x, u, a_first} E[w(Y) | x, u, v, a].
Estimators differ in kernels and solvers; all prepare the contexts once and are then cheap in a. The outcome
of no action is a regression on the context alone.

The regression target is a smoothed desirability. In standardised outcomes, with the region's normals of
length one, it is w(y) = prod_k Phi(eta (d_k - m_k' y)). The sharpness eta trades bias (a small eta blurs the
region) against variance (a large one makes a target that is hard to learn). It is selected from the
observations,

    eta = max(eta_0, clearance / r),
    eta_0 = 5, 10, 20 for a positive rate below .1, from .1 to .3, above .3,

with r the radius of the largest ball inside the region: however rare or narrow the region, its centre counts
as desired (Phi(2) = .977 for each face at the default clearance of 2). The paper gives {5, 10, 20} and the
positive rate, not the thresholds; without the second term, heavy-tailed outcomes leave the standardised
region so narrow that w never approaches one.

Source: Du et al. (2026), Sec. 3, Prop. 1, Alg. 1, Eq. (3), Eq. (5)-(9) and Sec. 4.1; Robins (1986) for the
sequential form.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from rehearsal_torch.data.rehearsal_task import RehearsalTask
from rehearsal_torch.data.table import Table
from rehearsal_torch.data.trainable_part import Solved
from rehearsal_torch.spaces.polytope import Polytope
from rehearsal_torch.surrogates.kernel.metric import MetricRidge
from rehearsal_torch.surrogates.rehearsal_surrogate import AdjustedSurrogate
from rehearsal_torch.surrogates.surrogate import Fits, Modules, SeparateMembers

FEW, MANY = 0.1, 0.3


class Desirability(Solved):
    """Outcomes to regression targets; a sharpness of None is selected, at least `clearance` / radius."""

    def __init__(self, region: Polytope, sharpness: float | None = None, clearance: float = 2.0) -> None:
        super().__init__()
        if clearance <= 0 or (sharpness is not None and sharpness <= 0):
            expected = "expected a positive sharpness (or null, to choose it) and clearance"
            raise ValueError(f"{expected}; got {sharpness} and {clearance}")
        self.region, self.chosen, self.clearance = region, sharpness, clearance
        width = (len(region.names),)
        self.register_fitted(location=width, scale=width, sharpness=(1,), rate=(1,))

    def solve(self, *examples: Tensor) -> None:
        """Fits scales, the positive rate and the sharpness to outcomes (N, |Y|)."""
        (outcomes,) = examples
        self.location, self.scale = outcomes.mean(0), outcomes.std(0)
        self.rate = self.region.contains(outcomes).to(torch.float64).mean().reshape(1)
        if self.chosen is not None:
            self.sharpness = torch.tensor([float(self.chosen)], dtype=torch.float64)
            return
        rate = float(self.rate)
        by_rate = 5.0 if rate < FEW else 10.0 if rate <= MANY else 20.0
        radius = self.region.standardised(self.location, self.scale).chebyshev()[1]
        self.sharpness = torch.tensor([max(by_rate, self.clearance / max(radius, 1e-6))], dtype=torch.float64)

    def targets(self, outcomes: Tensor) -> Tensor:
        """The smoothed desirability and the indicator, (N, |Y|) -> (N, 2)."""
        region = self.region.standardised(self.location, self.scale)
        smooth = region.desirability((outcomes - self.location) / self.scale, float(self.sharpness))
        return torch.stack((smooth, self.region.contains(outcomes).to(smooth)), -1)

    def scores(self, outcomes: Tensor) -> Tensor:
        """Normal scores of the faces' slacks, (N, |Y|) -> (N, q), without faces that rank rows alike."""
        slack = self.region.slack(outcomes)
        distinct: list[int] = []
        for face in range(slack.shape[1]):
            pairs = [torch.corrcoef(torch.stack((slack[:, face], slack[:, j])))[0, 1].abs() for j in distinct]
            if all(float(pair) < 0.999 for pair in pairs):
                distinct.append(face)
        ranks = [slack[:, face].argsort().argsort().to(torch.float64) for face in distinct]
        return torch.special.ndtri((torch.stack(ranks, -1) + 0.5) / len(slack))


@dataclass(frozen=True)
class Prepared:
    """An estimator's precomputed pieces (B, ...) for B standardised contexts."""

    contexts: Tensor
    pieces: tuple[Tensor, ...]


class AlterationValue(Solved, ABC):
    """An estimator of J for one set of k altered variables, in standardised coordinates. The actions with
    indices `first` precede covariates between the alterations.
    """

    def __init__(self, first: Sequence[int] = ()) -> None:
        super().__init__()
        self.first = tuple(first)

    @abstractmethod
    def solve(self, *examples: Tensor) -> None:
        """Fits to N rows: context (N, |X|), before (N, |U|), between (N, |V|), actions (N, k), smoothed
        desirability and indicator (N, 2), and normal scores of the outcomes (N, q).
        """

    @abstractmethod
    def prepare(self, contexts: Tensor) -> Prepared:
        """Everything that depends on contexts (B, |X|) alone."""

    @abstractmethod
    def value(self, prepared: Prepared, actions: Tensor, target: int = 0) -> Tensor:
        """J at actions (..., B, k) -> (..., B); target 0 is the smoothed desirability, 1 the indicator."""

    @abstractmethod
    def value_and_gradient(self, prepared: Prepared, actions: Tensor) -> tuple[Tensor, Tensor]:
        """J of the smoothed desirability (..., B), Eq. (9), and its gradient (..., B, k), Eq. (10)."""

    @abstractmethod
    def value_and_std(self, prepared: Prepared, actions: Tensor, target: int = 0) -> tuple[Tensor, Tensor]:
        """J and its posterior standard deviation, (..., B, k) -> (..., B) each."""

    def difference_and_std(
        self, prepared: Prepared, first: Tensor, second: Tensor, target: int = 0
    ) -> tuple[Tensor, Tensor] | None:
        """J at one action minus J at another, (B, k) -> (B,), and its posterior deviation; or None."""

    @abstractmethod
    def support(self, prepared: Prepared, actions: Tensor) -> Tensor:
        """Effective number of rows near a decision, (B, k) -> (B,): sum of k((x, E u, a), row) over rows."""

    @abstractmethod
    def weights(self, prepared: Prepared) -> Tensor:
        """Weights of the historical actions as starting points of the ascent, (B, N) (Alg. 1, line 13)."""

    @property
    @abstractmethod
    def actions(self) -> Tensor:
        """The N historical actions, (N, k), or the stored subset."""

    @property
    @abstractmethod
    def widths_of_rows(self) -> tuple[int, int, int]:
        """The numbers of context variables, covariates and actions in the fit."""


class NestedRidge(AdjustedSurrogate, SeparateMembers):
    """One estimator for each candidate set.

    Args:
        task: The roles of the variables; plain data or a RehearsalTask.
        estimator: Factory of the estimator of a set; called with `first`.
        sharpness: eta in standardised outcomes; None selects it.
        clearance: Lower bound on the selected eta in a narrow region, see `Desirability`.
        sequential: Uses the sequential formula without a single valid adjustment set; otherwise the paper's
            single adjustment, with a warning.
    """

    members_are: str = "candidate sets"

    def __init__(
        self,
        task: Mapping[str, Any] | RehearsalTask,
        estimator: Callable[..., AlterationValue],
        sharpness: float | None = None,
        clearance: float = 2.0,
        sequential: bool = True,
    ) -> None:
        super().__init__(task, sequential)
        self.desirability = Desirability(self.task.region, sharpness, clearance)
        self.no_action = MetricRidge()
        self.estimators = Modules[AlterationValue](
            estimator(first=[names.index(name) for name in adjustment.first])
            for names, adjustment in zip(self.task.candidates, self.adjustments, strict=True)
        )

    def separate(self) -> Sequence[AlterationValue]:
        """The estimators."""
        return self.values()

    def common_parts(self, table: Table) -> Fits:
        """The overlap, the scaler, the desirability, and the regression without action."""
        self.task.check(table)
        yield self.overlap, self.overlap.examples(table)
        yield self.scaler, (table.columns(self.task.graph.names),)
        outcomes = table.columns(self.task.outcomes)
        yield self.desirability, (outcomes,)
        targets, scores = self.desirability.targets(outcomes), self.desirability.scores(outcomes)
        context = self._standardised(table, self.task.context)
        yield self.no_action, (context, targets, torch.cat((targets, scores), -1))

    def member_parts(self, place: int, table: Table) -> Fits:
        """The estimator of a candidate set."""
        yield self.estimators[place], self.examples(place, table)

    def examples(self, place: int, table: Table) -> tuple[Tensor, ...]:
        """The examples of `AlterationValue.solve`; the desirability has been fitted."""
        adjustment, names = self.adjustments[place], self.task.candidates[place]
        sets = self.task.context, adjustment.before, adjustment.between, names
        outcomes = table.columns(self.task.outcomes)
        targets, scores = self.desirability.targets(outcomes), self.desirability.scores(outcomes)
        return (*(self._standardised(table, columns) for columns in sets), targets, scores)

    def faults(self) -> list[str]:
        """The parts' faults, and widths of estimators that differ from the task's."""
        faults = super().faults()
        if faults:
            return faults
        context = len(self.task.context)
        sets = zip(self.task.candidates, self.adjustments, self.estimators, strict=True)
        for index, (names, adjustment, estimator) in enumerate(sets):
            expected = (context, len(adjustment.before) + len(adjustment.between), len(names))
            if estimator.widths_of_rows != expected:
                faults.append(
                    f"estimators.{index}: expected {expected} context variables, covariates and actions; got "
                    f"{estimator.widths_of_rows}"
                )
        width = self.no_action.directions.shape[-1]
        if width != context:
            faults.append(f"no_action.directions: expected {context} columns; got {width}")
        return faults

    def values(self) -> list[AlterationValue]:
        """The estimators, in the order of the task's candidate sets."""
        return list(self.estimators)
