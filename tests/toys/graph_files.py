"""Graphs of files, as the problem files that name them read them."""

from rehearsal_torch.graphs.formats import read_plain
from rehearsal_torch.graphs.written_graph import graph_of


def read_graph(path):
    return graph_of(read_plain(path))
