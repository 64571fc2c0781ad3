"""Rehearsal graphs in files: the ending says which notation.

    .yaml .yml        {parents: {child: [causes]}, bidirected: [[...]]}, or {cliques, edges, bows}, alone or under `graph:`
    .graphml .gml     networkx' graphs with the attribute `kind`, as other programs read them
    .dagitty .txt     dagitty's model code

Source: Brandes et al. (2002) (GraphML); Himsolt (1997) (GML); Textor et al. (2016) (dagitty).
"""

from pathlib import Path
from xml.etree.ElementTree import ParseError

import networkx as nx
import yaml

from rehearsal_torch.files.plain import PlainFileError, read_yaml, text_of
from rehearsal_torch.files.writing import write_text
from rehearsal_torch.graphs.dagitty import from_dagitty, to_dagitty
from rehearsal_torch.graphs.networkx_graph import from_networkx, to_networkx
from rehearsal_torch.graphs.rehearsal import RehearsalGraph
from rehearsal_torch.graphs.written_graph import graph_of

ENDINGS = (".yaml", ".yml", ".graphml", ".gml", ".dagitty", ".txt")


def write_graph(graph: RehearsalGraph, path: str | Path) -> Path:
    """Writes a graph; folders that are missing are made.

    Returns:
        The file.

    Raises:
        ValueError: for another ending.
    """
    file = _known(path)
    if file.suffix in (".yaml", ".yml"):
        return write_text(file, yaml.safe_dump(graph.to_plain(), sort_keys=False, default_flow_style=None, allow_unicode=True))
    if file.suffix in (".dagitty", ".txt"):
        return write_text(file, to_dagitty(graph))
    lines = nx.generate_graphml(to_networkx(graph)) if file.suffix == ".graphml" else nx.generate_gml(to_networkx(graph))
    return write_text(file, "".join(f"{line}\n" for line in lines))


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
            return graph_of(read_yaml(file))
        text = text_of(file)
        if file.suffix in (".dagitty", ".txt"):
            return from_dagitty(text).graph
        return from_networkx(nx.parse_graphml(text) if file.suffix == ".graphml" else nx.parse_gml(text))
    except PlainFileError:
        raise
    except RecursionError as error:
        raise ValueError(f"{file}: nests too deep to be a graph") from error
    except (ValueError, KeyError, TypeError, IndexError, AttributeError, ParseError, nx.NetworkXError) as error:
        raise ValueError(f"{file}: {' '.join(str(error).split())}") from error


def _known(path: str | Path) -> Path:
    file = Path(path)
    if file.suffix not in ENDINGS:
        raise ValueError(f"{file}: unknown ending {file.suffix!r}; expected one of {', '.join(ENDINGS)}")
    return file
