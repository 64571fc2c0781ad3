"""What was learnt of a graph, in a folder that people and programs read.

    graphs.yaml     the options, the class of the whole table with its graphs, and the probabilities of the
                    graphs
    edges.csv       one,line,other,probability: the probability of every edge
    graph.yaml      the most probable graph, as a task file takes it; also graph.dagitty and graph.graphml
    figures/        that graph, lines as thick as edges are probable, as PNG and SVG

Source: Qin et al. (2023), App. A.3 and Eq. 7 (what is written).
"""

import csv
from collections.abc import Mapping, Sequence
from pathlib import Path

import yaml

from rehearsal_torch.graphs.bootstrap import GraphPosterior
from rehearsal_torch.graphs.formats import to_dagitty, write_graph
from rehearsal_torch.graphs.learning import Learnt
from rehearsal_torch.reporting.figures.graph import draw_graph


def write_learnt(
    out: Path,
    options: Mapping[str, str],
    learnt: Learnt,
    posterior: GraphPosterior,
    parts: Mapping[str, Sequence[str]],
) -> list[str]:
    """Writes and draws.

    Args:
        out: The folder; made if missing.
        options: What was asked for.
        learnt: What the whole table says.
        posterior: The probabilities of graphs.
        parts: "context", "alterable" and "outcomes" to their variables.

    Returns:
        The names of the files.
    """
    out.mkdir(parents=True, exist_ok=True)
    best, edges = posterior.graphs[0], posterior.edges()
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
                for graph, weight, votes in zip(
                    posterior.graphs, posterior.weights, posterior.votes, strict=True
                )
            ],
        },
    }
    for name, plain in (("graphs.yaml", content), ("graph.yaml", {"graph": best.to_plain()})):
        (out / name).write_text(
            yaml.safe_dump(plain, sort_keys=False, default_flow_style=None, allow_unicode=True),
            encoding="utf-8",
        )
    with (out / "edges.csv").open("w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream)
        writer.writerow(("one", "line", "other", "probability"))
        writer.writerows((*edge, f"{share:.6f}") for edge, share in edges.items())
    context, alterable, outcomes = (tuple(parts[part]) for part in ("context", "alterable", "outcomes"))
    (out / "graph.dagitty").write_text(to_dagitty(best, context, alterable, outcomes), encoding="utf-8")
    write_graph(best, out / "graph.graphml")
    figures = draw_graph(best, out / "figures", "graph", context, alterable, outcomes, probabilities=edges)
    return [
        "graphs.yaml",
        "edges.csv",
        "graph.yaml",
        "graph.dagitty",
        "graph.graphml",
        *(f"figures/{file.name}" for file in figures),
    ]
