"""Rehearsal graphs as networkx graphs.

A directed edge is an edge with kind "directed". A bi-directional edge is one edge as well, with kind "bidirected", from the
member that stands first to the other; its direction means nothing. A networkx graph without kinds is directed, and two
opposite edges in it stand for a bi-directional one.

Source: Hagberg, Schult and Swart (2008) (networkx); the attribute is ours.
"""

from typing import Any

import networkx as nx

from rehearsal_torch.graphs.rehearsal import RehearsalGraph

DIRECTED, BIDIRECTED = "directed", "bidirected"


def to_networkx(graph: RehearsalGraph) -> nx.DiGraph:
    """The graph with `kind` on every edge; nodes stand in topological order."""
    made = nx.DiGraph()
    made.add_nodes_from(graph.names)
    made.add_edges_from(graph.edges, kind=DIRECTED)
    made.add_edges_from(graph.bidirected, kind=BIDIRECTED)
    return made


def from_networkx(graph: Any) -> RehearsalGraph:
    """A rehearsal graph of a networkx graph with directed edges, plain or with `kind`.

    Raises:
        ValueError: if its edges have no direction, a kind is unknown, or it is no rehearsal graph; the message names the edge or clique.
    """
    if not graph.is_directed():
        raise ValueError("expected a directed networkx graph; got an undirected one: influence has a direction, use nx.DiGraph")
    names = {node: str(data.get("label", node)) for node, data in graph.nodes(data=True)}
    if len(set(names.values())) < len(names):
        raise ValueError("several nodes have the same name: name each variable once")
    directed, bidirected = [], []
    for one, other, data in graph.edges(data=True):
        kind = data.get("kind", DIRECTED)
        if kind not in (DIRECTED, BIDIRECTED):
            raise ValueError(f"edge {names[one]} -> {names[other]}: expected kind {DIRECTED!r} or {BIDIRECTED!r}; got {kind!r}")
        if kind == BIDIRECTED or ("kind" not in data and graph.has_edge(other, one) and "kind" not in _data(graph, other, one)):
            bidirected.append((names[one], names[other]))
        else:
            directed.append((names[one], names[other]))
    return RehearsalGraph.mixed(names.values(), directed, bidirected)


def _data(graph: Any, one: Any, other: Any) -> dict[str, Any]:
    """The attributes of an edge; of the first one in a multigraph."""
    found = graph.get_edge_data(one, other)
    return next(iter(found.values())) if graph.is_multigraph() else found
