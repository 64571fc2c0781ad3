"""Bootstrap posterior over graphs: learning the graph from samples drawn with replacement.

Given n rows, a graph is learnt from each of B resamples of n rows. The resulting graphs form the set G, and

    P(G | D) = 1 / |G|  for G in the set, 0 elsewhere                                       ("equal", Eq. 7)

or, as in the bootstrap from which the approximation comes, in proportion to how often a graph was learnt,
where a resample's single vote is split equally among the graphs that it cannot tell apart     ("frequency").

A resample may be unusable: one of its columns may be constant, or its graphs too many to list. Such resamples
are counted.

Source: Qin et al. (2023), Eq. 7; Friedman, Goldszmidt and Wyner (1999), Sec. 3 (frequencies, of edges and of
graphs).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from rehearsal_torch.graphs.bidirection import Background, signature
from rehearsal_torch.graphs.equivalence import MAX_GRAPHS, TooManyGraphsError
from rehearsal_torch.graphs.learning import learn
from rehearsal_torch.graphs.mixed_graph import RehearsalGraph
from rehearsal_torch.seeding import generator

WEIGHTS = ("equal", "frequency")


@dataclass(frozen=True)
class GraphPosterior:
    """Graphs and their posterior probabilities.

    Attributes:
        graphs: Distinct graphs, most probable first; ties in the order of decreasing votes.
        weights: Their probabilities, which sum to one.
        votes: The number of resamples from which each was learnt, a resample's vote being split among its
            graphs.
        resamples: The number of resamples drawn.
        failures: Reason why a resample was unusable, to the number of such resamples.
    """

    graphs: tuple[RehearsalGraph, ...]
    weights: tuple[float, ...]
    votes: tuple[float, ...]
    resamples: int
    failures: Mapping[str, int]

    def edges(self) -> dict[tuple[str, str, str], float]:
        """(one, arrow, other), arrow "->" or "<->", to the posterior probability of that edge, descending."""
        probability: dict[tuple[str, str, str], float] = {}
        for graph, weight in zip(self.graphs, self.weights, strict=True):
            for source, target in graph.edges:
                probability[source, "->", target] = probability.get((source, "->", target), 0.0) + weight
            for pair in graph.bidirected:
                first, second = sorted(pair)
                probability[first, "<->", second] = probability.get((first, "<->", second), 0.0) + weight
        return dict(sorted(probability.items(), key=lambda item: (-item[1], item[0])))


def bootstrap(
    values: Tensor,
    names: Sequence[str],
    resamples: int = 100,
    seed: int = 0,
    weights: str = "equal",
    test: str = "fisherz",
    level: float = 0.05,
    background: Background | None = None,
    bidirected: bool = True,
    max_graphs: int = MAX_GRAPHS,
    progress: Callable[[int], None] | None = None,
) -> GraphPosterior:
    """The posterior probabilities of rehearsal graphs, given observations (n, d) of named variables in which
    nothing was altered.

    Args:
        resamples: B.
        weights: "equal" or "frequency".
        test: As `learn`, with `level`, `background`, `bidirected` and `max_graphs`; a resample with more
            graphs is unusable.
        progress: Called after each resample with the number of resamples done.

    Raises:
        ValueError: if an argument or the table is invalid, or every resample is unusable.
    """
    if weights not in WEIGHTS:
        raise ValueError(f"unknown weights {weights!r}: choose {' or '.join(WEIGHTS)}")
    if resamples < 1:
        raise ValueError(f"expected at least one resample; got {resamples}")
    draws = generator(seed)
    graph_of: dict[tuple, RehearsalGraph] = {}
    votes: dict[tuple, float] = {}
    failures: dict[str, int] = {}
    for done in range(1, resamples + 1):
        rows = values[torch.randint(len(values), (len(values),), generator=draws).to(values.device)]
        reason = _unusable(rows)
        if not reason:
            try:
                learnt = learn(rows, names, test, level, background, bidirected, max_graphs).graphs
                for graph in learnt:
                    key = signature(graph)
                    graph_of.setdefault(key, graph)
                    votes[key] = votes.get(key, 0.0) + 1 / len(learnt)
            except TooManyGraphsError:
                reason = f"more than {max_graphs} graphs"
        if reason:
            failures[reason] = failures.get(reason, 0) + 1
        if progress is not None:
            progress(done)
    if not graph_of:
        raise ValueError(
            f"all {resamples} resamples are unusable "
            f"({', '.join(f'{reason}: {count}' for reason, count in failures.items())}): more rows are needed"
        )
    keys = sorted(graph_of, key=lambda key: -votes[key])
    total = sum(votes.values()) if weights == "frequency" else float(len(keys))
    masses = [votes[key] / total if weights == "frequency" else 1 / total for key in keys]
    graphs, counts = tuple(graph_of[key] for key in keys), tuple(votes[key] for key in keys)
    return GraphPosterior(graphs, tuple(masses), counts, resamples, failures)


def _unusable(rows: Tensor) -> str:
    """Why a resample cannot be used; empty if it can."""
    if bool((rows == rows[0]).all(0).any()):
        return "a constant column"
    return "fewer than five different rows" if len(rows.unique(dim=0)) < 5 else ""
