"""Process time of tests of c-separation and of learning graphs, in seconds on one core.

    separation    random rehearsal graphs, half of the variables in cliques, a third of them given:
                  `c_separated` for one pair, and `connected` from one variable to all others; the reference
                  is networkx's d-separation of one pair in a compatible directed graph
    learning      Bermuda's 11 variables: Algorithm 2 once, with known roles, and 100 resamples (Eq. 7)

The first query to a graph also builds its lists of causes and effects, and is shown separately; networkx's
graph is built beforehand. Garbage is collected between measurements, not within. If the two answers differ,
the benchmark fails.

Run: python benchmarks/separation.py [--variables 100 1000 10000] [--questions 20] [--repeat 3] [--out DIR]
Writes DIR/separation.csv with one row per measurement and repetition.
"""

import argparse
import csv
import gc
import time
from collections.abc import Callable, Iterator
from functools import partial
from itertools import combinations
from pathlib import Path

import networkx as nx
import numpy as np
import torch

from rehearsal_torch.graphs.bidirection import Background
from rehearsal_torch.graphs.bootstrap import bootstrap
from rehearsal_torch.graphs.learning import learn
from rehearsal_torch.graphs.mixed_graph import RehearsalGraph
from rehearsal_torch.graphs.separation import c_separated, connected
from rehearsal_torch.problems.rehearsal.bermuda import CONTEXT, Bermuda

DEGREE = 3
LIMIT = 0.05


def random_graph(count: int, seed: int) -> RehearsalGraph:
    """A graph with cliques of one to four members, each with about three earlier cliques as causes."""
    stream, cliques = np.random.default_rng(seed), list[tuple[str, ...]]()
    while (made := sum(map(len, cliques))) < count:
        size = min(int(stream.choice([1, 1, 2, 3, 4])), count - made)
        cliques.append(tuple(f"v{made + place}" for place in range(size)))
    edges = []
    for place, clique in enumerate(cliques[1:], 1):
        for cause in {int(each) for each in stream.integers(0, place, DEGREE)}:
            source = cliques[cause][int(stream.integers(len(cliques[cause])))]
            edges += [(source, target) for target in clique]
    return RehearsalGraph(tuple(cliques), tuple(edges))


def timed(call: Callable[[], object]) -> tuple[float, object]:
    """Process seconds, and the result."""
    gc.disable()
    began = time.process_time()
    answer = call()
    spent = time.process_time() - began
    gc.enable()
    return spent, answer


def separations(count: int, questions: int, repeat: int) -> Iterator[dict[str, object]]:
    """Seconds per query, by method."""
    for repetition in range(repeat):
        graph = random_graph(count, repetition)
        dag = nx.DiGraph(list(graph.edges))
        dag.add_nodes_from(graph.names)
        dag.add_edges_from(pair for clique in graph.cliques for pair in combinations(clique, 2))
        stream, names = np.random.default_rng(repetition), list(graph.names)
        spent: dict[str, list[float]] = {"first": [], "c_separated": [], "connected": [], "networkx": []}
        for number in range(questions):
            mixed = [names[index] for index in stream.permutation(len(names))]
            one, other, known = mixed[0], mixed[1], set(mixed[2 : 2 + len(mixed) // 3])
            seconds, separated = timed(partial(c_separated, graph, one, other, known))
            spent["c_separated" if number else "first"].append(seconds)
            spent["connected"].append(timed(partial(connected, graph, one, known))[0])
            seconds, reference = timed(partial(nx.is_d_separator, dag, {one}, {other}, known))
            spent["networkx"].append(seconds)
            assert separated == reference, (graph, one, other, known)
        for method, each in spent.items():
            yield {
                "what": "separation",
                "method": method,
                "size": count,
                "repetition": repetition,
                "seconds": float(np.median(each)),
                "worst": max(each),
            }


def learning(repeat: int) -> Iterator[dict[str, object]]:
    """Seconds to learn Bermuda's graph."""
    world = Bermuda(preset="fitted")
    table = world.observations()
    known = Background.roles(table.names, CONTEXT, world.task.outcomes)
    # The first call imports the library; that is left out.
    learn(table.values[:50], table.names)
    for repetition in range(repeat):
        for method, call in (
            ("once", partial(learn, table.values, table.names, background=known)),
            (
                "100 resamples",
                partial(bootstrap, table.values, table.names, seed=repetition, background=known),
            ),
        ):
            seconds, _ = timed(call)
            yield {
                "what": "learning",
                "method": method,
                "size": len(table),
                "repetition": repetition,
                "seconds": seconds,
                "worst": seconds,
            }


def main() -> None:
    """Measures, prints and writes."""
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("--variables", type=int, nargs="+", default=[100, 1000, 10000])
    parser.add_argument("--questions", type=int, default=20)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--out", type=Path, default=Path("runs/benchmarks"))
    chosen = parser.parse_args()
    torch.set_num_threads(1)
    rows = [row for count in chosen.variables for row in separations(count, chosen.questions, chosen.repeat)]
    rows += learning(chosen.repeat)
    print(f"{'what':<12} {'method':<14} {'size':>6} {'median ms':>10} {'worst ms':>10}")
    for what, method, size in dict.fromkeys((row["what"], row["method"], row["size"]) for row in rows):
        selected = [row for row in rows if (row["what"], row["method"], row["size"]) == (what, method, size)]
        median, worst = (
            1e3 * float(np.median([row["seconds"] for row in selected])),
            1e3 * max(float(str(row["worst"])) for row in selected),
        )
        verdict = (
            ""
            if what != "separation" or size != 1000 or method == "networkx"
            else f"  (aim: {1e3 * LIMIT:.0f})"
        )
        print(f"{what!s:<12} {method!s:<14} {size!s:>6} {median:10.2f} {worst:10.2f}{verdict}")
    chosen.out.mkdir(parents=True, exist_ok=True)
    with (chosen.out / "separation.csv").open("w", newline="", encoding="utf-8") as stream:
        writer = csv.DictWriter(stream, ("what", "method", "size", "repetition", "seconds", "worst"))
        writer.writeheader()
        writer.writerows(rows)


if __name__ == "__main__":
    main()
