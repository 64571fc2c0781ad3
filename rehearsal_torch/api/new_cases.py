"""Cases that come after a fit: contexts to decide for, without the rows of the fit."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from torch import Tensor

from rehearsal_torch.data.costs import CaseCosts
from rehearsal_torch.data.decision import Decision, DecisionContext, RehearsalCase
from rehearsal_torch.data.rehearsal_task import RehearsalTask
from rehearsal_torch.data.table import Table
from rehearsal_torch.problems.problem import RehearsalProblem


class NewCases(RehearsalProblem):
    """Cases of a rehearsal task.

    Args:
        given: The contexts, (B, |X|), in the task's order.
        identities: The names of the B cases.
        present: The present values of actions in each case; empty if none are known.
        bounds: Bounds that take the place of the task's in every case, name to (lower, upper).
        unit_costs: The costs per unit that each case states (`data.tables.cases`); empty if there are none.
    """

    def __init__(
        self,
        task: RehearsalTask,
        given: Tensor,
        identities: Sequence[str],
        present: Sequence[Mapping[str, float]] = (),
        bounds: Mapping[str, tuple[float, float]] = MappingProxyType({}),
        unit_costs: Sequence[Mapping[str, float]] = (),
    ) -> None:
        self.task, self.given, self.identities, self.bounds = task, given, tuple(identities), bounds
        self.present = tuple(present) or ({},) * len(given)
        self.unit_costs = tuple(unit_costs) or ({},) * len(given)

    def observations(self) -> Table:
        """A table with the task's variables and no rows: the cases say nothing of outcomes."""
        names = self.task.graph.names
        return Table.observed(names, self.given.new_zeros(0, len(names)))

    def held_out(self) -> Table:
        """The same."""
        return self.observations()

    def count(self) -> int:
        """The number of cases."""
        return len(self.given)

    def case(self, index: int) -> RehearsalCase:
        """Case number `index`.

        Raises:
            IndexError: if there is no such case.
        """
        if not 0 <= index < self.count():
            raise IndexError(f"expected a case in 0 ... {self.count() - 1}; got {index}")
        return RehearsalCase(
            self.identities[index],
            dict(zip(self.task.context, self.given[index], strict=True)),
            {**self.task.box.bounds(), **self.bounds},
            levels=self.task.box.levels,
            present=self.present[index],
            codings=self.task.codings,
            costs=CaseCosts.of(self.task.costs, self.task.worth, self.present[index], self.unit_costs[index]),
        )

    def score(self, case: DecisionContext, decision: Decision) -> Mapping[str, float]:  # noqa: ARG002
        """Empty: what follows is not known yet."""
        return {}

    def card(self) -> Mapping[str, Any]:
        """The number of cases."""
        return {"cases": self.count()}
