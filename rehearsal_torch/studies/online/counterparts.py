"""What a decision-maker who does not think in influence would believe: counterparts of rehearsal graphs.

    causal        graphs without bi-directional edges: one of two variables that follow each other is the
                  other's cause, and which one is open. Altering the cause leaves its equation as it was; what
                  was observed and what was altered teach the same slope.
    associative   outcomes are regressed on all that is seen and may be set, as in supervised learning: what
                  moves with the outcome is taken to move it, and what an alteration does to other variables
                  is not followed up.

They show when it pays to model influence: with the same regressions, rows and search.

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
