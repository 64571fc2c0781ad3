"""Graphs that ignore mutual influence, as counterparts of rehearsal graphs.

    causal        graphs without bi-directional edges: one of two variables that influence each other is the
                  cause of the other, and its direction is uncertain. Observations and interventions inform
                  the same coefficient.
    associative   outcomes are regressed on the context and all alterable variables, as in supervised
                  learning: association is interpreted as causation, and effects of an alteration on other
                  variables are ignored.

With the same regressions, observations and search, they show when modelling influence improves decisions.

Source: Qin et al. (2023), Sec. 1 (correlation, influence, causation), Sec. 2 (two stores) and Sec. 6 (REC is
no valid cause).
"""

from collections.abc import Sequence

from rehearsal_torch.graphs.mixed_graph import RehearsalGraph


def causal(hypotheses: Sequence[RehearsalGraph]) -> tuple[RehearsalGraph, ...]:
    """The hypotheses without bi-directional edges.

    Args:
        hypotheses: Rehearsal graphs.

    Raises:
        ValueError: if all of them have bi-directional edges.
    """
    found = tuple(graph for graph in hypotheses if all(len(clique) == 1 for clique in graph.cliques))
    if not found:
        raise ValueError(
            "expected a hypothesis without bi-directional edges; got none: add the directed graphs that the "
            "clique may be taken for"
        )
    return found


def associative(
    names: Sequence[str], context: Sequence[str], settable: Sequence[str], outcomes: Sequence[str]
) -> RehearsalGraph:
    """A graph in which the outcomes depend on context and alterable variables, and the rest on the context.

    Args:
        names: All variables.
        context: The context variables.
        settable: The alterable variables.
    """
    roots: dict[str, list[str]] = {name: [] for name in context}
    seen = {name: list(context) for name in names if name not in (*context, *outcomes)}
    return RehearsalGraph.of({**roots, **seen, **{name: [*context, *settable] for name in outcomes}})
