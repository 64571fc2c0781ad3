"""Reading and writing rehearsal graphs: YAML, networkx, GraphML, GML, dagitty and DOT; the file ending
decides.

    .yaml .yml        {parents: {child: [causes]}, bidirected: [[...]]}, or {cliques, edges, bows}, alone or
                      under `graph:`
    .graphml .gml     networkx' graphs with the attribute `kind`, as other programs read them
    .dagitty .txt     dagitty's model code
    .pdag             the same, `pdag { ... }`, in which edges may have no direction
    .dot .gv          Graphviz' DOT

`graphs.dagitty` and `graphs.dot` describe the last ones.

In a networkx graph, a directed edge has kind "directed". A bi-directional edge is a single edge too, with
kind "bidirected", from the member that comes first to the other; its direction has no meaning. In a bow it
runs opposite to the directed edge, as a networkx graph has one edge in each direction. Edges without a kind
are directed. Two opposite edges without a kind are refused: other programs use them for an undirected edge,
which means an unknown direction, not that both variables move together.

Source: Qin et al. (2023), Def. 1-3; Hagberg, Schult and Swart (2008) (networkx); Brandes et al. (2002)
(GraphML); Himsolt (1997) (GML).
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import ParseError

import networkx as nx
import yaml

from rehearsal_torch.files.plain import PlainFileError, read_yaml, text_of
from rehearsal_torch.files.writing import write_text
from rehearsal_torch.graphs.dagitty import model_of, to_dagitty
from rehearsal_torch.graphs.dot import edges_in_dot, to_dot
from rehearsal_torch.graphs.mixed_graph import RehearsalGraph, check_size
from rehearsal_torch.graphs.written_graph import graph_of

DIRECTED, BIDIRECTED = "directed", "bidirected"


def to_networkx(graph: RehearsalGraph) -> nx.DiGraph:
    """The graph with `kind` on every edge; nodes are in topological order."""
    exported = nx.DiGraph()
    exported.add_nodes_from(graph.names)
    exported.add_edges_from(graph.edges, kind=DIRECTED)
    bows = set(graph.bows)
    exported.add_edges_from(
        (pair[::-1] if pair in bows else pair for pair in graph.bidirected), kind=BIDIRECTED
    )
    return exported


def from_networkx(graph: Any) -> RehearsalGraph:
    """A rehearsal graph from a networkx graph with directed edges, with or without `kind`.

    Raises:
        ValueError: if its edges have no direction, two opposite edges have no kind, a kind is unknown, there
            are too many edges or variables, or it is not a rehearsal graph; the message names the edge or
            clique.
    """
    if not graph.is_directed():
        raise ValueError("expected a directed networkx graph; got an undirected one: use nx.DiGraph")
    names = {node: str(data.get("label", node)) for node, data in graph.nodes(data=True)}
    if len(set(names.values())) < len(names):
        raise ValueError("several nodes have the same name: name each variable once")
    check_size(len(names), graph.number_of_edges())
    directed, bidirected = list[tuple[str, str]](), list[tuple[str, str]]()
    for source, target, data in graph.edges(data=True):
        kind = data.get("kind", DIRECTED)
        if kind not in (DIRECTED, BIDIRECTED):
            raise ValueError(
                f"edge {names[source]} -> {names[target]}: expected kind {DIRECTED!r} or {BIDIRECTED!r}; got "
                f"{kind!r}"
            )
        if (
            "kind" not in data
            and source != target
            and graph.has_edge(target, source)
            and "kind" not in _data(graph, target, source)
        ):
            first, second = names[source], names[target]
            raise ValueError(
                f"{first} -> {second} and {second} -> {first} without `kind` may be an undirected edge, "
                "which is not a bi-directional one: keep the intended direction, or keep one and give it "
                f"kind={BIDIRECTED!r} if a hidden cause moves both"
            )
        (bidirected if kind == BIDIRECTED else directed).append((names[source], names[target]))
    return RehearsalGraph.mixed(names.values(), directed, bidirected)


def _data(graph: Any, source: Any, target: Any) -> dict[str, Any]:
    """The attributes of an edge; those of the first one in a multigraph."""
    attributes = graph.get_edge_data(source, target)
    return next(iter(attributes.values())) if graph.is_multigraph() else attributes


ENDINGS = (".yaml", ".yml", ".graphml", ".gml", ".dagitty", ".txt", ".pdag", ".dot", ".gv")
_TEXTS = (".dagitty", ".txt", ".pdag")


def write_graph(graph: RehearsalGraph, path: str | Path) -> Path:
    """Writes a graph to a file; missing folders are created. Returns the file.

    Raises:
        ValueError: for an ending that is not in `ENDINGS`.
    """
    file = _known(path)
    if file.suffix in (".yaml", ".yml"):
        return write_text(
            file,
            yaml.safe_dump(graph.to_plain(), sort_keys=False, default_flow_style=None, allow_unicode=True),
        )
    if file.suffix in _TEXTS:
        return write_text(file, to_dagitty(graph))
    if file.suffix in (".dot", ".gv"):
        return write_text(file, to_dot(graph))
    generate = nx.generate_graphml if file.suffix == ".graphml" else nx.generate_gml
    lines = generate(to_networkx(graph))
    return write_text(file, "".join(f"{line}\n" for line in lines))


def read_plain(path: str | Path) -> dict[str, Any]:
    """The graph of a file as plain data; {parents, undirected} if some of its edges have no direction.

    Raises:
        FileNotFoundError: if there is no such file.
        ValueError: for an ending that is not in `ENDINGS`, or if the file cannot be read or holds no graph;
            the message names the file and the fault.
    """
    file = _known(path)
    if not file.is_file():
        raise FileNotFoundError(f"there is no file {file}")
    try:
        if file.suffix in (".yaml", ".yml"):
            return _plain(read_yaml(file))
        text = text_of(file)
        if file.suffix in _TEXTS:
            return model_of(text).to_plain()
        if file.suffix in (".dot", ".gv"):
            return edges_in_dot(text).to_plain()
        graph = nx.parse_graphml(text) if file.suffix == ".graphml" else nx.parse_gml(text)
        return from_networkx(graph).to_plain()
    except PlainFileError:
        raise
    except RecursionError as error:
        raise ValueError(f"{file}: nests too deep to be a graph") from error
    except (
        ValueError,
        KeyError,
        TypeError,
        IndexError,
        AttributeError,
        ParseError,
        nx.NetworkXError,
    ) as error:
        raise ValueError(f"{file}: {' '.join(str(error).split())}") from error


def _plain(written: Any) -> dict[str, Any]:
    """Plain data of a YAML file; what is wrong with undirected edges is told by what reads them."""
    under = written.get("graph", written) if isinstance(written, Mapping) else written
    if isinstance(under, Mapping) and "parents" in under and under.get("undirected"):
        return dict(under)
    return graph_of(written).to_plain()


def _known(path: str | Path) -> Path:
    file = Path(path)
    if file.suffix not in ENDINGS:
        raise ValueError(f"{file}: unknown ending {file.suffix!r}; expected one of {', '.join(ENDINGS)}")
    return file
