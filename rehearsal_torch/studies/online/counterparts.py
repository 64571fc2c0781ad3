"""Counterparts of rehearsal graphs that ignore mutual influence, for comparison.

    causal        graphs without bi-directional edges: of two variables that influence each other one is taken
                  as the cause of the other, and which one is uncertain. Observations and interventions inform
                  the same coefficient.
    associative   outcomes are regressed on the context and all alterable variables, as in supervised
                  learning: association is taken for causation, and effects of an alteration on other
                  variables are ignored.

They show when modelling influence pays, with the same regressions, observations and search.

Source: Qin et al. (2023), Sec. 1 (correlation, influence, causation), Sec. 2 (two stores) and Sec. 6 (REC is
no valid cause).
"""

from collections.abc import Sequence

from rehearsal_torch.graphs.mixed_graph import RehearsalGraph


def causal(hypotheses: Sequence[RehearsalGraph]) -> tuple[RehearsalGraph, ...]:
    """The hypotheses without bi-directional edges.

    Raises:
        ValueError: if none is left.
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
    """A graph in which the outcomes have all that is seen and may be set as parents, and everything else
    depends on what is seen alone.

    Args:
        names: All variables.
        context: What is seen.
        settable: What may be set.
        outcomes: What is to come out.
    """
    roots: dict[str, list[str]] = {name: [] for name in context}
    seen = {name: list(context) for name in names if name not in (*context, *outcomes)}
    return RehearsalGraph.of({**roots, **seen, **{name: [*context, *settable] for name in outcomes}})
