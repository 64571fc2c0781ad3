"""Rehearsal graphs in files: the ending says which notation.

    .yaml .yml        cliques and edges, or {parents: {child: [causes]}, bidirected: [[...]]}, alone or under `graph:`
    .graphml .gml     networkx' graphs with the attribute `kind`, as other programs read them
    .dagitty .txt     dagitty's model code

Source: Brandes et al. (2002) (GraphML); Himsolt (1997) (GML); Textor et al. (2016) (dagitty).
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import ParseError

import networkx as nx
import yaml

from rehearsal_torch.graphs.dagitty import from_dagitty, to_dagitty
from rehearsal_torch.graphs.networkx_graph import from_networkx, to_networkx
from rehearsal_torch.graphs.rehearsal import RehearsalGraph

ENDINGS = (".yaml", ".yml", ".graphml", ".gml", ".dagitty", ".txt")


def write_graph(graph: RehearsalGraph, path: str | Path) -> Path:
    """Writes a graph; folders that are missing are made.

    Returns:
        The file.

    Raises:
        ValueError: for another ending.
    """
    file = _known(path)
    file.parent.mkdir(parents=True, exist_ok=True)
    if file.suffix in (".yaml", ".yml"):
        file.write_text(yaml.safe_dump(graph.to_plain(), sort_keys=False, default_flow_style=None, allow_unicode=True), encoding="utf-8")
    elif file.suffix in (".dagitty", ".txt"):
        file.write_text(to_dagitty(graph), encoding="utf-8")
    elif file.suffix == ".graphml":
        nx.write_graphml_xml(to_networkx(graph), file)
    else:
        nx.write_gml(to_networkx(graph), file)
    return file


def read_graph(path: str | Path) -> RehearsalGraph:
    """Reads a graph.

    Raises:
        FileNotFoundError: if there is no such file.
        ValueError: for another ending, or if the file cannot be read or holds no rehearsal graph; the message names the file and what is wrong.
    """
    file = _known(path)
    if not file.is_file():
        raise FileNotFoundError(f"there is no file {file}")
    try:
        if file.suffix in (".yaml", ".yml"):
            return graph_of(yaml.safe_load(file.read_text(encoding="utf-8")))
        if file.suffix in (".dagitty", ".txt"):
            return from_dagitty(file.read_text(encoding="utf-8")).graph
        return from_networkx(nx.read_graphml(file) if file.suffix == ".graphml" else nx.read_gml(file))
    except (ValueError, KeyError, TypeError, ParseError, yaml.YAMLError, nx.NetworkXError) as error:
        raise ValueError(f"{file}: {' '.join(str(error).split())}") from error


def graph_of(plain: Any) -> RehearsalGraph:
    """A graph of plain data.

    Args:
        plain: {cliques, edges}, {parents, bidirected}, or either under `graph`.

    Raises:
        ValueError: if it is neither, or no rehearsal graph.
    """
    if isinstance(plain, Mapping) and isinstance(plain.get("graph"), Mapping):
        plain = plain["graph"]
    if isinstance(plain, Mapping) and "cliques" in plain:
        return RehearsalGraph(tuple(map(tuple, plain["cliques"])), tuple((one, other) for one, other in plain.get("edges") or ()))
    if isinstance(plain, Mapping) and isinstance(plain.get("parents"), Mapping):
        parents = {str(child): [str(cause) for cause in causes or ()] for child, causes in plain["parents"].items()}
        return RehearsalGraph.of(parents, [[str(name) for name in clique] for clique in plain.get("bidirected") or ()])
    raise ValueError("expected {cliques: [[...]], edges: [[from, to]]} or {parents: {child: [causes]}, bidirected: [[...]]}")


def _known(path: str | Path) -> Path:
    file = Path(path)
    if file.suffix not in ENDINGS:
        raise ValueError(f"{file}: unknown ending {file.suffix!r}; expected one of {', '.join(ENDINGS)}")
    return file
