"""Writes a learnt graph: its equivalence class, the probabilities of graphs and edges, and a figure.

graphs.yaml     the options, the equivalence class learnt from the whole table with its graphs, and the
                probabilities of the graphs (Qin et al., 2023, App. A.3 and Eq. 7)
edges.csv       from,edge,to,probability: the probability of every edge
graph.yaml      the most probable graph, in the form of a task file; also graph.dagitty and graph.graphml
figures/        that graph, with line widths by the probabilities of edges, as PNG and SVG
"""

import csv
from collections.abc import Mapping, Sequence
from io import StringIO
from pathlib import Path

import yaml

from rehearsal_torch.files.atomic_write import write_text
from rehearsal_torch.files.csv_rows import cell
from rehearsal_torch.graphs.dagitty import to_dagitty
from rehearsal_torch.graphs.graph_files import to_graphml
from rehearsal_torch.graphs.graph_learning import GraphPosterior, Learnt
from rehearsal_torch.reporting.figures.graph_figure import draw_graph


def write_learnt(
    out: Path,
    options: Mapping[str, str],
    learnt: Learnt,
    posterior: GraphPosterior,
    parts: Mapping[str, Sequence[str]],
) -> list[str]:
    """Writes the files and draws the most probable graph; returns the names of the files. `learnt` comes from
    the whole table, `posterior` from resamples of it; `parts`: context, alterable, outcomes.
    """
    out.mkdir(parents=True, exist_ok=True)
    best, edges = posterior.graphs[0], posterior.edges()
    weighed = zip(posterior.graphs, posterior.weights, posterior.votes, strict=True)
    content = {
        "options": dict(options),
        "class": {
            "directed": [list(edge) for edge in learnt.pattern.directed],
            "undirected": [list(edge) for edge in learnt.pattern.undirected],
            "notes": list(learnt.notes),
            "graphs": [graph.to_plain() for graph in learnt.graphs],
        },
        "posterior": {
            "resamples": posterior.resamples,
            "failures": dict(posterior.failures),
            "graphs": [
                {"probability": weight, "votes": votes, **graph.to_plain()}
                for graph, weight, votes in weighed
            ],
        },
    }
    for name, plain in (("graphs.yaml", content), ("graph.yaml", {"graph": best.to_plain()})):
        text = yaml.safe_dump(plain, sort_keys=False, default_flow_style=None, allow_unicode=True)
        write_text(out / name, text)
    rows = StringIO(newline="")
    writer = csv.writer(rows)
    writer.writerow(("from", "edge", "to", "probability"))
    writer.writerows(
        (cell(source), mark, cell(target), f"{share:.6f}") for (source, mark, target), share in edges.items()
    )
    write_text(out / "edges.csv", rows.getvalue())
    context, alterable, outcomes = (tuple(parts[part]) for part in ("context", "alterable", "outcomes"))
    write_text(out / "graph.dagitty", to_dagitty(best, context, alterable, outcomes))
    write_text(out / "graph.graphml", to_graphml(best))
    figures = draw_graph(best, out / "figures", context, alterable, outcomes, probabilities=edges)
    names = ["graphs.yaml", "edges.csv", "graph.yaml", "graph.dagitty", "graph.graphml"]
    return names + [f"figures/{file.name}" for file in figures]
