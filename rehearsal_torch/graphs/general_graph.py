"""Graphs of causal-learn: a matrix with the mark at each end of an edge.

m[i, j] is the mark at i of the edge between i and j: -1 for a tail and 1 for an arrow head, so that i -> j is
m[i, j] = -1 and m[j, i] = 1, and two heads are a hidden common cause. Two tails, and the circles of a PAG
(2), are refused: their direction is unknown.

Source: Zheng et al. (2024), causal-learn's documentation of `GeneralGraph`.
"""

from collections.abc import Sequence
from itertools import combinations
from typing import Any, Protocol, runtime_checkable

from rehearsal_torch.graphs.mixed_graph import RehearsalGraph, check_size

_TAIL, _NONE, _HEAD = -1, 0, 1


@runtime_checkable
class MarkedGraph(Protocol):
    """What is needed of causal-learn's `GeneralGraph`.

    Attributes:
        graph: The marks, (d, d).
    """

    graph: Any

    def get_node_names(self) -> Sequence[str]:
        """The names of the d variables."""
        ...


def from_general_graph(graph: MarkedGraph) -> RehearsalGraph:
    """A graph from causal-learn's `GeneralGraph`.

    Raises:
        ValueError: if the marks are no square matrix, the direction of an edge is unknown, or it is not a
            rehearsal graph; the message names the two variables.
    """
    names = [str(name) for name in graph.get_node_names()]
    marks = [[float(mark) for mark in row] for row in graph.graph]
    size = len(names)
    if len(marks) != size or any(len(row) != size for row in marks):
        raise ValueError(f"expected a square matrix of {size} variables; got {len(marks)} rows")
    check_size(size, sum(mark != _NONE for row in marks for mark in row))
    if own := [name for place, name in enumerate(names) if marks[place][place]]:
        raise ValueError(f"{own[0]} cannot be a cause of itself: take the edge out")
    directed, bidirected = list[tuple[str, str]](), list[tuple[str, str]]()
    for i, j in combinations(range(size), 2):
        ends = marks[i][j], marks[j][i]
        if ends == (_NONE, _NONE):
            continue
        if ends == (_HEAD, _HEAD):
            bidirected.append((names[i], names[j]))
        elif ends == (_TAIL, _HEAD):
            directed.append((names[i], names[j]))
        elif ends == (_HEAD, _TAIL):
            directed.append((names[j], names[i]))
        else:
            raise ValueError(
                f"{names[i]} and {names[j]}: the direction of the edge is unknown (marks {ends[0]:g} and "
                f"{ends[1]:g}): give every edge a direction, also those with the circles of a PAG, or "
                "two heads if a hidden cause moves both"
            )
    return RehearsalGraph.mixed(names, directed, bidirected)
