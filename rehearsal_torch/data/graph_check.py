"""Whether observations contradict a task's graph.

Where by the graph no directed path leads from an action to an outcome, the two must be independent given the
context and the action's adjustment set. A test of that independence comes free with every table.

Source: `graphs.influence_paths` (the test).
"""

from rehearsal_torch.data.rehearsal_task import RehearsalTask
from rehearsal_torch.data.table import Table
from rehearsal_torch.graphs.influence_paths import dependence, reaches
from rehearsal_torch.graphs.separation import adjustment

SIGNIFICANT = 1e-3


def contradiction(task: RehearsalTask, name: str, p_value: float) -> str:
    """What is said where outcomes depend on an action that by the graph cannot change them."""
    return (
        f"graph: by the graph setting {name} cannot change {', '.join(task.outcomes)}, but in the "
        "observations they depend on it "
        f"(p = {p_value:.1g}): an arrow or a common cause may be missing, or rows follow each other in time"
    )


def untrue_graph(table: Table, task: RehearsalTask) -> list[str]:
    """A sentence for each action that by the task's graph cannot change an outcome, where the table says
    otherwise.
    """
    unlinked = [name for name in task.box.names if not reaches((task.graph,), (name,), task.outcomes)]
    found = [(name, dependence_given(table, task, name)) for name in unlinked]
    return [contradiction(task, name, p) for name, p in found if p < SIGNIFICANT / len(unlinked)]


def dependence_given(table: Table, task: RehearsalTask, name: str) -> float:
    """The p-value of independence of the outcomes and an action, given the context and what precedes the
    action.
    """
    known = adjustment(task.graph, task.context, (name,), task.outcomes)
    given = table.columns((*task.context, *known.before))
    return dependence(table.columns((name,))[:, 0], table.columns(task.outcomes), given)
