"""Graphs as tables: a list of edges, or a matrix with a row and a column for each variable.

    from,to,kind                  ,age,bmi,progression
    age,bmi,                      age,0,1,1
    bmi,progression,              bmi,0,0,1
    age,progression,bidirected    progression,0,0,0

In a list, `kind` is `directed` (also if it is empty or not there) or `bidirected`. In a matrix of 0 and 1
the row is the cause and the column the effect; 1 on both sides of the diagonal is refused, since it may
mean a hidden common cause or an unknown direction.

A matrix with -1 is read as causal-learn writes it: m[i, j] is the mark at the end of the edge at i, -1 for
a tail and 1 for an arrow head, so that i -> j is m[i, j] = -1 and m[j, i] = 1, and two heads are a hidden
common cause. Two tails, and the circles of a PAG (2), are refused: their direction is unknown.

Source: Zheng et al. (2024), causal-learn's documentation of `GeneralGraph`, for its marks.
"""

import csv
import io
from collections.abc import Sequence
from itertools import combinations
from typing import Any, Protocol, runtime_checkable

from rehearsal_torch.graphs.graph_size import check_size
from rehearsal_torch.graphs.mixed_graph import RehearsalGraph

FROM, TO, KIND = ("from", "source", "cause"), ("to", "target", "effect"), "kind"
DIRECTED, BIDIRECTED = "directed", "bidirected"


def from_table(text: str) -> RehearsalGraph:
    """Reads a list of edges, or a matrix, from CSV.

    Raises:
        ValueError: if it is neither, or not a rehearsal graph; the message names the line.
    """
    rows = [
        [cell.strip() for cell in row] for row in csv.reader(io.StringIO(text)) if any(map(str.strip, row))
    ]
    if not rows:
        raise ValueError("expected a list of edges with the columns from and to, or a matrix; got no lines")
    head = [cell.lower() for cell in rows[0]]
    if len(head) >= 2 and head[0] in FROM and head[1] in TO:
        return _listed(rows[1:], head)
    names = rows[0][1:]
    if [row[0] for row in rows[1:]] != names:
        raise ValueError(
            "expected a list of edges with the columns from and to, or a matrix whose rows have the "
            "names of its "
            f"columns, in the same order; got the columns {rows[0][:6]}"
        )
    return from_matrix(
        [[_mark(cell, line) for cell in row[1:]] for line, row in enumerate(rows[1:], 2)], names
    )


def from_matrix(matrix: Sequence[Sequence[float]], names: Sequence[str]) -> RehearsalGraph:
    """A graph from a matrix.

    Args:
        matrix: d rows of d numbers, of 0 and 1, or with the marks of causal-learn.
        names: The d variables.

    Raises:
        ValueError: if it is not square, has other numbers, or is not a rehearsal graph.
    """
    size = len(names)
    if len(matrix) != size or any(len(row) != size for row in matrix):
        raise ValueError(f"expected a square matrix of {size} variables; got {len(matrix)} rows")
    marked = any(value < 0 for row in matrix for value in row)
    allowed = (-1, 0, 1) if marked else (0, 1)
    check_size(size, sum(value != 0 for row in matrix for value in row))
    directed, bidirected = list[tuple[str, str]](), list[tuple[str, str]]()
    for i, j in combinations(range(size), 2):
        here, there = matrix[i][j], matrix[j][i]
        if here not in allowed or there not in allowed:
            raise ValueError(
                f"{names[i]} and {names[j]}: expected marks among {list(allowed)}; got {here:g} and "
                f"{there:g}: write a direction for every edge, also for those with the circles of a PAG"
            )
        if here == there == 0:
            continue
        if here == there == (-1 if marked else 1) or (marked and 0 in (here, there)):
            raise ValueError(
                f"{names[i]} and {names[j]}: the direction of the edge is unknown: choose one, or "
                "write the graph "
                "as a list of edges with kind bidirected if a hidden cause moves both"
            )
        if marked and here == there == 1:
            bidirected.append((names[i], names[j]))
        else:
            forward = here == -1 if marked else here == 1
            directed.append((names[i], names[j]) if forward else (names[j], names[i]))
    own = [name for place, name in enumerate(names) if matrix[place][place]]
    if own:
        raise ValueError(f"{own[0]} cannot be a cause of itself: write 0 on the diagonal")
    return RehearsalGraph.mixed(names, directed, bidirected)


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
        ValueError: as `from_matrix`.
    """
    names = [str(name) for name in graph.get_node_names()]
    return from_matrix([[float(value) for value in row] for row in graph.graph], names)


def to_table(graph: RehearsalGraph) -> str:
    """The list of edges of a graph as CSV; a variable without edges has a line of its own, without `to`."""
    text = io.StringIO()
    lines = csv.writer(text, lineterminator="\n")
    lines.writerow(("from", "to", KIND))
    joined = {name for pair in (*graph.edges, *graph.bidirected) for name in pair}
    lines.writerows((name, "", "") for name in graph.names if name not in joined)
    lines.writerows((one, other, DIRECTED) for one, other in graph.edges)
    lines.writerows((one, other, BIDIRECTED) for one, other in graph.bidirected)
    return text.getvalue()


def _listed(rows: Sequence[Sequence[str]], head: Sequence[str]) -> RehearsalGraph:
    place = head.index(KIND) if KIND in head else None
    names: dict[str, None] = {}
    directed, bidirected = list[tuple[str, str]](), list[tuple[str, str]]()
    for line, row in enumerate(rows, 2):
        cells = [*row, "", "", ""]
        kind = DIRECTED if place is None else cells[place].lower() or DIRECTED
        if kind not in (DIRECTED, BIDIRECTED):
            raise ValueError(
                f"line {line}: expected kind {DIRECTED} or {BIDIRECTED}; got {cells[place or 0]!r}"
            )
        if not cells[0]:
            raise ValueError(f"line {line}: expected a variable under {head[0]}; got nothing")
        names |= dict.fromkeys(cell for cell in cells[:2] if cell)
        if cells[1]:
            (bidirected if kind == BIDIRECTED else directed).append((cells[0], cells[1]))
    check_size(len(names), len(directed) + len(bidirected))
    return RehearsalGraph.mixed(names, directed, bidirected)


def _mark(cell: str, line: int) -> float:
    try:
        return float(cell or 0)
    except ValueError:
        raise ValueError(f"line {line}: expected 0 or 1 in a matrix; got {cell!r}") from None
