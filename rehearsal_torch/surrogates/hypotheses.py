"""Hypotheses: rehearsal graphs that may be true, and the equations that each needs.

The context is seen before anything is set, so that X comes before Z before Y. A hypothesis that says otherwise (a graph that
data alone cannot tell from the others may) keeps its edges among the rest; arrows into the context are cut, and how the
context comes about is nobody's business: graphs that differ there alone foresee the same. Members of the context stand in a
clique as parents of the others.

Equations that two hypotheses share are one equation, learnt once.

Source: Qin et al. (2023), Sec. 2 (alteration graphs), Sec. 3 (X, Z, Y), Prop. 4 (differences in X do not matter).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from rehearsal_torch.data.rehearsal_task import RehearsalTask
from rehearsal_torch.graphs.rehearsal import RehearsalGraph
from rehearsal_torch.graphs.written_graph import graph_of
from rehearsal_torch.surrogates.linear_surrogate import Equation


@dataclass(frozen=True)
class Hypothesis:
    """A graph and its equations.

    Attributes:
        graph: As it was named.
        equations: One for each clique outside the context, and for each set of its members that may be altered without the rest; parents
            before children.
    """

    graph: RehearsalGraph
    equations: tuple[Equation, ...]

    def under(self, altered: Sequence[str]) -> list[Equation]:
        """The equations that hold when `altered` is set from outside, parents before children."""
        cut = set(altered)
        return [each for each in self.equations if set(each.altered) == cut & set(each.clique)]


def hypothesis_of(graph: RehearsalGraph | Mapping[str, Any], task: RehearsalTask) -> Hypothesis:
    """The equations of a graph for a task.

    Args:
        graph: A graph, or plain data as `graph_of` reads them: {cliques, edges} or {parents, bidirected}.
        task: Who plays which part.

    Raises:
        ValueError: if it is no rehearsal graph, or its variables are not the task's.
    """
    made = graph_of(graph)
    made.require_cliques("a hypothesis of a structural posterior")
    if set(made.names) != set(task.graph.names):
        odd = sorted(set(made.names) ^ set(task.graph.names))
        raise ValueError(f"expected a graph over {list(task.graph.names)}; {odd} stand in one of the two alone: a hypothesis has the task's variables")
    found = []
    for clique in made.cliques:
        rest = tuple(_sorted([name for name in clique if name not in task.context], task))
        if not rest:
            continue
        parents = _sorted([*made.parents(clique), *(name for name in clique if name in task.context)], task)
        free = [name for name in rest if name in task.box.names]
        found.append(Equation(rest, (), rest, parents))
        for size in range(1, min(len(free) + 1, len(rest))):
            found += [Equation(rest, chosen, tuple(n for n in rest if n not in chosen), (*parents, *chosen)) for chosen in combinations(free, size)]
    return Hypothesis(made, tuple(found))


def hypotheses_of(graphs: Sequence[RehearsalGraph | Mapping[str, Any]] | None, task: RehearsalTask) -> tuple[Hypothesis, ...]:
    """The hypotheses of a list of graphs; the task's own graph where there are none."""
    return tuple(hypothesis_of(graph, task) for graph in graphs or [task.graph])


def shared(hypotheses: Sequence[Hypothesis]) -> tuple[Equation, ...]:
    """Every equation of any hypothesis, each once."""
    return tuple(dict.fromkeys(each for one in hypotheses for each in one.equations))


def _sorted(names: Sequence[str], task: RehearsalTask) -> tuple[str, ...]:
    # In the task's order, so that hypotheses with other orders find the same equation.
    return tuple(name for name in task.graph.names if name in set(names))
