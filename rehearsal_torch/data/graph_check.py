"""A check of a task's graph against the observations.

If the graph has no directed path from an action to an outcome, the two must be independent given the context
and the action's adjustment set. This independence can be tested on any table of observations.
"""

from collections.abc import Mapping

from rehearsal_torch.data.finding import Finding
from rehearsal_torch.data.rehearsal_task import RehearsalTask
from rehearsal_torch.data.table import Table
from rehearsal_torch.graphs.separation import adjustment, dependence, reaches

SIGNIFICANT = 1e-3


def contradiction(task: RehearsalTask, name: str, p_value: float) -> Finding:
    """The finding if outcomes depend on an action that by the graph cannot change them."""
    return Finding(
        "refuted_graph",
        f"setting {name} cannot change {', '.join(task.outcomes)} by the graph, but in the "
        f"observations they depend on it (p = {p_value:.1g}): an edge or a common cause may be missing, or "
        "the rows may be a time series",
        {"p": p_value},
    )


def untrue_graph(table: Table, task: RehearsalTask) -> list[Finding]:
    """A finding for each action that by the graph changes no outcome, if the table contradicts that."""
    unlinked = [name for name in task.box.names if not reaches((task.graph,), (name,), task.outcomes)]
    return contradictions(task, {name: dependence_given(table, task, name) for name in unlinked})


def contradictions(task: RehearsalTask, p_values: Mapping[str, float]) -> list[Finding]:
    """A finding for each action that by the graph changes no outcome, and on which outcomes depend: of the
    indicators of its classes, for the one on which they depend most.
    """
    found: dict[str, float] = {}
    for name, p in p_values.items():
        (variable,) = task.variables((name,))
        if p < SIGNIFICANT / len(p_values):
            found[variable] = min(p, found.get(variable, p))
    return [contradiction(task, name, p) for name, p in found.items()]


def dependence_given(table: Table, task: RehearsalTask, name: str) -> float:
    """The p-value of independence of the outcomes and an action, given the context and the adjustment set."""
    known = adjustment(task.graph, task.context, (name,), task.outcomes)
    given = table.columns((*task.context, *known.before))
    return dependence(table.columns((name,))[:, 0], table.columns(task.outcomes), given)
