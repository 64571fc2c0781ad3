"""Alteration values: estimators of J(a; x) = E[w(Y) | x, a altered] for one set of altered variables.

What is to be estimated from observations is a nested expectation,

    J(a; x) = E_{u | x} E[w(Y) | x, u, a],

with u the covariates that precede the alteration; or, where covariates v between two alterations influence a later one
and the outcome, its sequential form E_{u | x} E_{v | x, u, a_first} E[w(Y) | x, u, v, a]. Estimators differ in kernels
and in how they solve; all prepare the contexts once and are then cheap in a.

Source: Du et al. (2026), Prop. 1 and Eq. (5)-(9); Robins (1986) for the sequential form.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

from torch import Tensor

from rehearsal_torch.data.fitted import Solved


@dataclass(frozen=True)
class Prepared:
    """What an estimator keeps of B contexts.

    Attributes:
        contexts: (B, |X|), standardised.
        pieces: Tensors with leading dimension B; their meaning is the estimator's own.
    """

    contexts: Tensor
    pieces: tuple[Tensor, ...]


class AlterationValue(Solved, ABC):
    """An estimator of J for one set of k altered variables; everything is in standardised coordinates.

    Args:
        first: Which of the k actions precede the covariates between alterations; empty where there are none.
    """

    def __init__(self, first: Sequence[int] = ()) -> None:
        super().__init__()
        self.first = tuple(first)

    @abstractmethod
    def solve(self, *examples: Tensor) -> None:
        """Fits to N rows: context (N, |X|), before (N, |U|), between (N, |V|), actions (N, k), targets (N, 2), scores (N, q).

        Targets are the smoothed desirability w and the indicator of the desired region; scores are the outcomes as normal scores, from
        which an estimator may learn what matters. Widths of zero columns stand for empty sets.
        """

    @abstractmethod
    def prepare(self, contexts: Tensor) -> Prepared:
        """What depends on contexts (B, |X|) alone."""

    @abstractmethod
    def value(self, prepared: Prepared, actions: Tensor, target: int = 0) -> Tensor:
        """J at actions (..., B, k) -> (..., B); target 0 is the smoothed desirability, 1 the indicator."""

    @abstractmethod
    def value_and_slope(self, prepared: Prepared, actions: Tensor) -> tuple[Tensor, Tensor]:
        """J of the smoothed desirability (..., B) and its gradient (..., B, k).

        Source: Du et al. (2026), Eq. (10).
        """

    @abstractmethod
    def deviation(self, prepared: Prepared, actions: Tensor, target: int = 0) -> Tensor:
        """The posterior standard deviation of J, (..., B, k) -> (..., B)."""

    @abstractmethod
    def support(self, prepared: Prepared, actions: Tensor) -> Tensor:
        """How many rows lie near a decision, (B, k) -> (B,): the sum over rows of k((x, u, a), row), u at its expectation, with k(h, h) = 1."""

    @abstractmethod
    def weights(self, prepared: Prepared) -> Tensor:
        """How much each historical action speaks for itself in each context, (B, N): where an ascent starts.

        Source: Du et al. (2026), Alg. 1, line 13.
        """

    @property
    @abstractmethod
    def actions(self) -> Tensor:
        """The N historical actions, (N, k), or those that are kept of them."""

    @property
    @abstractmethod
    def widths_of_rows(self) -> tuple[int, int, int]:
        """How many context variables, covariates and actions it was fitted to."""
