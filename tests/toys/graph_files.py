"""Graphs of files, as the problem files that name them read them, and files in every notation."""

import networkx as nx
import yaml

from rehearsal_torch.graphs.dagitty import to_dagitty
from rehearsal_torch.graphs.graph_files import read_plain, to_networkx
from rehearsal_torch.graphs.graph_notation import graph_of


def read_graph(path):
    return graph_of(read_plain(path))


def to_dot(graph):
    if any('"' in name for name in graph.names):
        raise ValueError("DOT has no quotation marks in names")
    lines = [f'  "{name}";' for name in graph.names]
    lines += [f'  "{source}" -> "{target}";' for source, target in graph.edges]
    lines += [f'  "{source}" -> "{target}" [dir=both];' for source, target in graph.bidirected]
    return "\n".join(["digraph {", *lines, "}", ""])


def write_graph(graph, path):
    """The file, whose ending decides; missing folders are created."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix in (".yaml", ".yml"):
        text = yaml.safe_dump(graph.to_plain(), sort_keys=False, allow_unicode=True)
    elif path.suffix in (".dagitty", ".txt", ".pdag"):
        text = to_dagitty(graph)
    elif path.suffix in (".dot", ".gv"):
        text = to_dot(graph)
    else:
        generate = nx.generate_graphml if path.suffix == ".graphml" else nx.generate_gml
        text = "".join(f"{line}\n" for line in generate(to_networkx(graph)))
    path.write_text(text, encoding="utf-8")
    return path
