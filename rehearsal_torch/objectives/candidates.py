"""Candidate sets: an objective for each set of variables that may be altered.

A task that leaves open which variables to alter has several sets. Their values are comparable, and a search
answers with the best set for each situation.

A method says by a subclass only how its objectives are made from a surrogate; what a search asks is the same
for all of them.

Source: Du et al. (2026), Eq. (1); Qin et al. (2023), Sec. 4.2 (candidate alterations).
"""

from collections.abc import Sequence
from typing import Any, Generic, TypeVar

from rehearsal_torch.data.decision import RehearsalCase
from rehearsal_torch.data.question import Kind
from rehearsal_torch.objectives.objective import AlterationObjective
from rehearsal_torch.surrogates.rehearsal_surrogate import RehearsalSurrogate
from rehearsal_torch.surrogates.surrogate import Surrogate

T_co = TypeVar("T_co", bound=AlterationObjective, covariant=True)


class Candidates(Generic[T_co]):
    """The sets of variables that may be altered in B situations, an objective each.

    Args:
        cases: The B situations.
        sets: An objective for each candidate set, over the same situations.
        surrogate: What they rest on: its graphs and the observations that it was fitted to decide which
            answers have to be refused or warned of. None gives up those checks.

    Attributes:
        kind: The problems that it is for; see `Objective`.
    """

    kind: Kind | None = "rehearse"

    def __init__(
        self,
        cases: Sequence[RehearsalCase],
        sets: Sequence[T_co],
        surrogate: RehearsalSurrogate | None = None,
    ) -> None:
        self.cases, self.surrogate = tuple(cases), surrogate
        self.sets: tuple[T_co, ...] = tuple(sets)

    @classmethod
    def check(cls, surrogate: Surrogate, **settings: Any) -> None:
        """Refuses settings that do not go with a surrogate; see `Objective.check`."""
