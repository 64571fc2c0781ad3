"""Rehearsal graphs as networkx graphs.

A directed edge is an edge with kind "directed". A bi-directional edge is one edge as well, with kind "bidirected", from the
member that stands first to the other; its direction means nothing. Beside a bow's arrow it runs the other way, as a networkx
graph has one edge each way. A networkx graph without kinds is directed. Two opposite edges in it are refused: other programs
write an undirected edge so, which says that the direction is not known, and not that both variables move together.

Source: Hagberg, Schult and Swart (2008) (networkx); the attribute is ours.
"""

from typing import Any

import networkx as nx

from rehearsal_torch.graphs.rehearsal import RehearsalGraph
from rehearsal_torch.graphs.written_graph import check_size

DIRECTED, BIDIRECTED = "directed", "bidirected"


def to_networkx(graph: RehearsalGraph) -> nx.DiGraph:
    """The graph with `kind` on every edge; nodes stand in topological order."""
    made = nx.DiGraph()
    made.add_nodes_from(graph.names)
    made.add_edges_from(graph.edges, kind=DIRECTED)
    bows = set(graph.bows)
    made.add_edges_from((pair[::-1] if pair in bows else pair for pair in graph.bidirected), kind=BIDIRECTED)
    return made


def from_networkx(graph: Any) -> RehearsalGraph:
    """A rehearsal graph of a networkx graph with directed edges, plain or with `kind`.

    Raises:
        ValueError: if its edges have no direction, two opposite ones have no kind, a kind is unknown, there are too many of them, or it is
            no rehearsal graph; the message names the edge or clique.
    """
    if not graph.is_directed():
        raise ValueError("expected a directed networkx graph; got an undirected one: influence has a direction, use nx.DiGraph")
    names = {node: str(data.get("label", node)) for node, data in graph.nodes(data=True)}
    if len(set(names.values())) < len(names):
        raise ValueError("several nodes have the same name: name each variable once")
    check_size(len(names), graph.number_of_edges())
    directed, bidirected = list[tuple[str, str]](), list[tuple[str, str]]()
    for one, other, data in graph.edges(data=True):
        kind = data.get("kind", DIRECTED)
        if kind not in (DIRECTED, BIDIRECTED):
            raise ValueError(f"edge {names[one]} -> {names[other]}: expected kind {DIRECTED!r} or {BIDIRECTED!r}; got {kind!r}")
        if "kind" not in data and one != other and graph.has_edge(other, one) and "kind" not in _data(graph, other, one):
            first, second = names[one], names[other]
            raise ValueError(
                f"{first} -> {second} and {second} -> {first} without `kind` may be an undirected edge, which is no bi-directional one: keep the "
                f"arrow that is meant, or keep one and give it kind={BIDIRECTED!r} where both move together for hidden reasons"
            )
        (bidirected if kind == BIDIRECTED else directed).append((names[one], names[other]))
    return RehearsalGraph.mixed(names.values(), directed, bidirected)


def _data(graph: Any, one: Any, other: Any) -> dict[str, Any]:
    """The attributes of an edge; of the first one in a multigraph."""
    found = graph.get_edge_data(one, other)
    return next(iter(found.values())) if graph.is_multigraph() else found
