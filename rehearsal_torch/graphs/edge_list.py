"""The edges of a graph as another program wrote them, some of which may have no direction.

An undirected edge says that one of two variables influences the other, and not which. Such edges make a list
a class of graphs, {parents, undirected} (`graphs.graph_class`), and no rehearsal graph. Without them it is
one.

Source: Qin et al. (2023), Def. 1-3; Verma and Pearl (1990) (what an undirected edge stands for).
"""

from dataclasses import dataclass
from typing import Any

from rehearsal_torch.graphs.mixed_graph import RehearsalGraph

Pairs = tuple[tuple[str, str], ...]
_SHOWN = 5


@dataclass(frozen=True)
class EdgeList:
    """Variables and edges.

    Attributes:
        names: The variables, in the order in which they occur.
        directed: Pairs (cause, effect).
        bidirected: Pairs with a hidden common cause.
        undirected: Pairs of which one influences the other.
    """

    names: tuple[str, ...]
    directed: Pairs
    bidirected: Pairs
    undirected: Pairs = ()

    def graph(self) -> RehearsalGraph:
        """The rehearsal graph.

        Raises:
            ValueError: if an edge has no direction, or the edges are no rehearsal graph; the message names
                them.
        """
        if self.undirected:
            raise ValueError(
                f"{listed([f'{one} -- {other}' for one, other in self.undirected])}: the direction is "
                "unknown, and a rehearsal graph has no such edges: choose one, or write <-> if a hidden "
                "cause moves both; a problem file (graph: FILE) takes all graphs with these edges"
            )
        return RehearsalGraph.mixed(self.names, self.directed, self.bidirected)

    def to_plain(self) -> dict[str, Any]:
        """{parents, bidirected, undirected} of a list with undirected edges; the plain graph of another.

        Raises:
            ValueError: if there is no undirected edge, and the edges are no rehearsal graph.
        """
        if not self.undirected:
            return self.graph().to_plain()
        parents: dict[str, list[str]] = {name: [] for name in self.names}
        for cause, effect in dict.fromkeys(self.directed):
            parents[effect].append(cause)
        plain = {"parents": parents, "undirected": [list(pair) for pair in self.undirected]}
        return plain | ({"bidirected": [list(pair) for pair in self.bidirected]} if self.bidirected else {})


def listed(edges: list[str]) -> str:
    """The first few of some edges, and how many more there are."""
    more = len(edges) - _SHOWN
    return ", ".join(edges[:_SHOWN]) + (f" and {more} more" if more > 0 else "")
