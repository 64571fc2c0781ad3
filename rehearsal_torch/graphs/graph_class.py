"""Graph classes: several graphs of the same variables, one of which is taken to be true.

A class is written as

    {parents: {child: [causes]}, undirected: [[one, other], ...]}    edges whose direction is unknown
    [graph, graph, ...]                                              several graphs, each with an optional
                                                                     `probability`
    the graphs.yaml of learn-graph                                   the graphs that a table supports, with
                                                                     their probabilities

In the first form the members are the directed acyclic graphs with these edges and no other v-structures than
the directed edges have: those that observations cannot tell apart (`graphs.equivalence`). Members without
probabilities have equal weights.

Source: Verma and Pearl (1990), Thm. 1; Qin et al. (2023), Eq. 7 (equal weights).
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from rehearsal_torch.files.addresses import beginning
from rehearsal_torch.files.plain import read_yaml
from rehearsal_torch.graphs.equivalence import NoMemberError, PartiallyDirected, TooManyGraphsError, members
from rehearsal_torch.graphs.mixed_graph import RehearsalGraph, check_size
from rehearsal_torch.graphs.written_graph import graph_of

MEMBERS = 200
# Listing the members of a class takes a second or two for so many edges.
UNDIRECTED = 60
_SHOWN = 4
_EXPECTED = (
    "expected {parents: {child: [causes]}, undirected: [[one, other]]}, a list of graphs, or the graphs.yaml "
    "of learn-graph"
)


@dataclass(frozen=True)
class GraphClass:
    """Graphs of the same variables, at most 200, with weights that sum to one."""

    graphs: tuple[RehearsalGraph, ...]
    weights: tuple[float, ...]

    def __post_init__(self) -> None:
        if not 1 <= len(self.graphs) <= MEMBERS:
            raise ValueError(
                f"expected 1 to {MEMBERS} graphs; got {len(self.graphs)}: direct more edges, or leave "
                "improbable graphs out"
            )
        total = sum(self.weights)
        if len(self.weights) != len(self.graphs) or min(self.weights) < 0 or not 0 < total < math.inf:
            raise ValueError(f"expected a probability of at least 0 for each graph; got {list(self.weights)}")
        object.__setattr__(self, "weights", tuple(weight / total for weight in self.weights))
        first = set(self.graphs[0].names)
        for index, graph in enumerate(self.graphs):
            if odd := sorted(set(graph.names) ^ first):
                raise ValueError(
                    f"graph {index}: {odd} are not in all graphs: every graph has the same variables"
                )

    def described(self, index: int) -> str:
        """What sets a member apart: its edges that not all members have."""
        own = [edge for edge in _edges(self.graphs[index]) if edge not in self._shared]
        if not own:
            return "only the edges that all graphs share"
        more = f" and {len(own) - _SHOWN} more" if len(own) > _SHOWN else ""
        return ", ".join(own[:_SHOWN]) + more

    @cached_property
    def _shared(self) -> frozenset[str]:
        """The edges that all members have."""
        return frozenset.intersection(*(frozenset(_edges(graph)) for graph in self.graphs))


def graph_class(written: Any) -> GraphClass:
    """A class from plain data in any of the forms of this module, or from a YAML file with one.

    Raises:
        ValueError: if it is none, a graph is invalid, no directed graph has these edges, or there are more
            than 200.
    """
    if isinstance(written, GraphClass):
        return written
    if isinstance(written, str | Path):
        return graph_class(read_yaml(written))
    if isinstance(written, Mapping):
        learnt = written.get("posterior")
        if isinstance(learnt, Mapping) and "graphs" in learnt:
            return graph_class(learnt["graphs"])
        under = written.get("graph", written)
        if isinstance(under, Mapping) and "parents" in under:
            return _oriented(dict(under))
    if isinstance(written, Sequence) and not isinstance(written, str) and written:
        return _listed(written)
    raise ValueError(_EXPECTED)


def _oriented(plain: dict[str, Any]) -> GraphClass:
    """The members of {parents, undirected}."""
    loose = plain.pop("undirected", [])
    if not isinstance(loose, list) or not all(isinstance(pair, list) and len(pair) == 2 for pair in loose):
        raise ValueError(
            f"undirected: expected a list of pairs, [[one, other], ...]; got {beginning(str(loose), 100)}"
        )
    if len(loose) > UNDIRECTED:
        raise ValueError(
            f"undirected: expected at most {UNDIRECTED} edges; got {len(loose)}: direct some of them"
        )
    pairs = [(str(first), str(second)) for first, second in loose]
    if isinstance(plain["parents"], Mapping):
        ends = dict.fromkeys(name for pair in pairs for name in pair)
        plain["parents"] = {**{name: [] for name in ends}, **plain["parents"]}
    base = graph_of(plain)
    if not loose:
        return GraphClass((base,), (1.0,))
    if base.bidirected:
        raise ValueError(
            "expected no `bidirected` beside `undirected`: list the graphs that may be true instead"
        )
    check_size(len(base.names), len(base.edges) + len(pairs))
    try:
        oriented = members(PartiallyDirected(base.names, base.edges, tuple(pairs)), MEMBERS)
    except TooManyGraphsError as error:
        raise ValueError(
            f"undirected: more than {MEMBERS} graphs have these edges: direct some of them"
        ) from error
    except NoMemberError as error:
        raise ValueError(
            f"undirected: no acyclic graph has these edges without new v-structures ({error}): list the "
            "graphs that may be true instead"
        ) from error
    return GraphClass(oriented, (1.0,) * len(oriented))


def _listed(written: Sequence[Any]) -> GraphClass:
    """A list of graphs with or without probabilities."""
    if len(written) > MEMBERS:
        raise ValueError(f"expected at most {MEMBERS} graphs; got {len(written)}: leave improbable ones out")
    graphs, weights = [], []
    for index, entry in enumerate(written):
        plain = dict(entry) if isinstance(entry, Mapping) else entry
        weight = 1.0
        if isinstance(plain, dict):
            plain.pop("votes", None)
            weight = plain.pop("probability", 1.0)
        if isinstance(weight, bool) or not isinstance(weight, int | float):
            raise ValueError(f"graph {index}: probability: expected a number; got {weight!r}")
        try:
            graphs.append(graph_of(plain))
        except ValueError as error:
            raise ValueError(f"graph {index}: {error}") from error
        weights.append(float(weight))
    return GraphClass(tuple(graphs), tuple(weights))


def _edges(graph: RehearsalGraph) -> list[str]:
    directed = [f"{source} -> {target}" for source, target in graph.edges]
    return directed + [f"{source} <-> {target}" for source, target in map(sorted, graph.bidirected)]
