"""Learning rehearsal graphs from observations: PC, all equivalent graphs, and a bootstrap posterior.

Given a table whose distribution factorises according to an unknown rehearsal graph that encodes all of its
conditional independences, the result is all rehearsal graphs with the same independences (Algorithm 2):

    1  the skeleton: a and b are adjacent unless some S_ab makes them independent
    2  v-structures: a -> c <- b where a and b are not adjacent, both are adjacent to c, and c is not in S_ab
    3  every edge is directed whose other direction adds a v-structure or a cycle
    4  all Markov-equivalent directed graphs
    5  from each, the rehearsal graphs in which cliques replace directed edges
    6  those among them that are valid

Step 1 is causal-learn's PC skeleton in its order-independent form, constrained by background knowledge:
required edges stay, and a variable in a later tier than both ends separates nothing. Tests err, and their
results may contradict each other. V-structures are therefore added strongest first, each only where it
contradicts none before it, and where no directed graph has the resulting edges, a minimal number of
v-structures is added greedily. Both are reported in the notes; where the tests agree, neither happens.

The tests of conditional independence answer with a p-value; independence is kept above the level.

    fisherz    partial correlation, for linear Gaussian distributions
    chisq gsq  contingency tables, for columns of integer codes
    kci        kernels, for any distribution; slow beyond a few hundred rows

Fisher's test needs more rows than |S| + 3; where there are fewer distinct rows (resampling repeats rows) it
is not computed, and the pair counts as dependent: there is no evidence of independence.

The posterior. Given n rows, a graph is learnt from each of B resamples of n. These form the set G, and

    P(G | D) = 1 / |G|  for G in the set, 0 elsewhere                                       ("equal", Eq. 7)

or in proportion to how often a graph was learnt, where a resample's single vote is split equally among the
graphs that it cannot tell apart ("frequency"). A resample may be unusable: one of its columns may be
constant, or its graphs too many to list. Such resamples are counted.

Source: Qin et al. (2023), App. A.3, Algorithm 2, and Eq. 7; Spirtes and Glymour (1991) and Colombo and
Maathuis (2014) (skeleton); Fisher (1921); Zhang et al. (2011) (kci); Friedman, Goldszmidt and Wyner (1999),
Sec. 3 (frequencies of graphs). The tests are those of the library causal-learn.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np

from rehearsal_torch.graphs.equivalence import (
    MAX_GRAPHS,
    Background,
    NoMemberError,
    PartiallyDirected,
    TooManyGraphsError,
    all_represented_graphs,
    closed,
    has_member,
    members,
    relaxed,
    signature,
)
from rehearsal_torch.graphs.mixed_graph import RehearsalGraph, neighbours
from rehearsal_torch.seeding import generator

if TYPE_CHECKING:
    from torch import Tensor

TESTS = ("fisherz", "chisq", "gsq", "kci")
Independence = Callable[[int, int, Sequence[int]], float]
_LEVELS = 30


def independence(values: Tensor, names: Sequence[str], test: str = "fisherz") -> Independence:
    """A conditional independence test of the named columns of a table (n, d): a function of columns a and b
    and conditioning columns S to the p-value. A ValueError for unusable columns.
    """
    if test not in TESTS:
        raise ValueError(f"unknown test {test!r}: choose one of {', '.join(TESTS)}")
    table = values.detach().cpu().double().numpy()
    _check(table, names, test)
    distinct = len(np.unique(table, axis=0))
    if test in ("fisherz", "kci") and distinct > len(names) and (tied := _collinear(table, names)):
        raise ValueError(
            f"{tied[-1]} is a linear function of {list(tied[:-1])}: such columns cannot be told apart, "
            "remove one of them"
        )
    p_value = _library("cit").CIT(table, test)

    def answer(first: int, second: int, conditioning: Sequence[int]) -> float:
        if test == "fisherz" and distinct <= len(conditioning) + 4:
            return 0.0
        probability = float(p_value(first, second, tuple(conditioning)))
        return 0.0 if math.isnan(probability) else probability

    return answer


def _library(module: str) -> Any:
    """A module of causal-learn, which is optional."""
    try:
        return import_module(f"causallearn.utils.{module}")
    except ImportError as error:
        raise ModuleNotFoundError(
            "learning graphs needs causal-learn: pip install 'rehearsal-torch[graphs]'"
        ) from error


def _check(table: np.ndarray, names: Sequence[str], test: str) -> None:
    if table.ndim != 2 or table.shape[1] != len(names):
        raise ValueError(f"expected values of shape (n, {len(names)}); got {table.shape}")
    if len(table) < 5:
        raise ValueError(f"expected at least 5 rows; got {len(table)}: too few to test independence")

    def columns(faulty: Callable[[np.ndarray], bool]) -> list[str]:
        return [name for name, column in zip(names, table.T, strict=True) if faulty(column)]

    if incomplete := columns(lambda column: not np.isfinite(column).all()):
        raise ValueError(f"{incomplete} have values that are missing or infinite: drop or impute those rows")
    if constant := columns(lambda column: (column == column[0]).all()):
        raise ValueError(f"{constant} are constant: a constant carries no information, remove the variable")
    not_codes = columns(lambda column: (column != column.round()).any() or len(np.unique(column)) > _LEVELS)
    if not_codes and test in ("chisq", "gsq"):
        raise ValueError(
            f"{test} needs integer codes, at most {_LEVELS} per column; {not_codes} have other values: "
            "use fisherz or kci, or bin them"
        )


def _collinear(table: np.ndarray, names: Sequence[str]) -> tuple[str, ...]:
    """The first column that is a linear function of earlier ones, after those; empty if there is none."""
    scaled = (table - table.mean(0)) / table.std(0)
    basis: list[int] = []
    for index in range(scaled.shape[1]):
        weights, *_ = np.linalg.lstsq(scaled[:, basis], scaled[:, index], rcond=None)
        residual = scaled[:, index] - scaled[:, basis] @ weights
        if np.sqrt((residual**2).mean()) < 1e-7:
            return (
                *(names[column] for column, weight in zip(basis, weights, strict=True) if abs(weight) > 1e-6),
                names[index],
            )
        basis.append(index)
    return ()


Pair = tuple[int, int]
Separators = dict[Pair, list[frozenset[int]]]


@dataclass(frozen=True)
class Learnt:
    """The learnt class, its members, the rehearsal graphs that they represent, and notes on the tests."""

    pattern: PartiallyDirected
    dags: tuple[RehearsalGraph, ...]
    graphs: tuple[RehearsalGraph, ...]
    notes: tuple[str, ...]


def learn(
    values: Tensor,
    names: Sequence[str],
    test: str = "fisherz",
    level: float = 0.05,
    background: Background | None = None,
    bidirected: bool = True,
    max_graphs: int = MAX_GRAPHS,
) -> Learnt:
    """The rehearsal graphs that unaltered observations (n, d) of named variables cannot tell apart;
    independence is kept above the significance `level`, and without `bidirected` `graphs` are the directed
    ones. A ValueError if an argument is invalid or no graph agrees with tests and background knowledge
    (`NoMemberError`), a TooManyGraphsError above `max_graphs`.
    """
    pattern, notes = pattern_from(independence(values, names, test), names, level, background)
    dags = members(pattern, max_graphs)
    return Learnt(
        pattern, dags, all_represented_graphs(dags, background, max_graphs) if bidirected else dags, notes
    )


def pattern_from(
    p_value: Independence, names: Sequence[str], level: float = 0.05, background: Background | None = None
) -> tuple[PartiallyDirected, tuple[str, ...]]:
    """The Markov equivalence class by a test, steps 1 to 3, and notes; NoMemberError if it is empty."""
    if not 0 < level < 1:
        raise ValueError(f"expected a level in (0, 1); got {level}")
    if len(names) < 2 or len(set(names)) < len(names):
        raise ValueError(f"expected two variables or more, each named once; got {list(names)}")
    knowledge = background or Background()
    knowledge.check(names)
    informed = _InformedTest(p_value, names, knowledge)
    edges, separators = _skeleton(informed, names, level)
    forbidden = [
        (a, b)
        for a, b in edges
        if not knowledge.permits(names[a], names[b]) and not knowledge.permits(names[b], names[a])
    ]
    edges = [edge for edge in edges if edge not in forbidden]
    # A pair whose edge is only forbidden has no separating set: the set that comes nearest to separating it
    # is used instead.
    separators |= {pair: [_least_dependent(p_value, pair, edges)] for pair in forbidden}
    pattern = PartiallyDirected(tuple(names), (), tuple((names[a], names[b]) for a, b in edges))
    required = [
        (names[a], names[b])
        for a, b in (*edges, *((b, a) for a, b in edges))
        if not knowledge.permits(names[b], names[a])
    ]
    pattern, notes = pattern.orienting(required), []
    if _cyclic(pattern):
        raise NoMemberError(
            "background knowledge directs the edges that were found into a cycle: check tiers, forbidden "
            "and required edges"
        )
    for a, c, b in _v_structures(p_value, edges, separators):
        structure = f"{names[a]} -> {names[c]} <- {names[b]}"
        arrows = [(names[a], names[c]), (names[b], names[c])]
        if not all(knowledge.permits(*arrow) for arrow in arrows):
            notes.append(f"{structure} is left out: it contradicts background knowledge")
        elif any((end, start) in pattern.directed for start, end in arrows):
            notes.append(f"{structure} is left out: it contradicts a stronger v-structure")
        elif _cyclic(pattern.orienting(arrows)):
            notes.append(f"{structure} is left out: it would close a cycle")
        else:
            pattern = pattern.orienting(arrows)
    if not has_member(pattern):
        pattern, added = relaxed(pattern, required)
        notes += [
            f"{first} -> {child} <- {second} is added: without it no directed graph has these edges"
            for first, child, second in added
        ]
    return closed(pattern), tuple(notes)


class _InformedTest:
    """An independence test that keeps required edges and separates nothing by later variables."""

    # The library's graph reads this name.
    method = "informed"

    def __init__(self, p_value: Independence, names: Sequence[str], known: Background) -> None:
        self.p_value, self.names, self.known = p_value, names, known

    def __call__(self, first: int, second: int, given: Sequence[int] = ()) -> float:
        ends, names = (self.names[first], self.names[second]), [self.names[index] for index in given]
        if self.known.adjacent(*ends) or any(self.known.later(name, ends) for name in names):
            return 0.0
        return self.p_value(int(first), int(second), tuple(int(index) for index in given))


def _skeleton(test: _InformedTest, names: Sequence[str], level: float) -> tuple[list[Pair], Separators]:
    """The adjacent pairs, and for each other pair the sets that made it independent."""
    skeleton_discovery = _library("PCUtils.SkeletonDiscovery").skeleton_discovery
    # The library uses only the number of columns: the values are held by the test.
    skeleton = skeleton_discovery(np.zeros((2, len(names))), level, test, stable=True, show_progress=False)
    pairs = list(combinations(range(len(names)), 2))
    edges = [pair for pair in pairs if skeleton.G.graph[pair] != 0]
    return edges, {
        pair: [frozenset(map(int, separator)) for separator in skeleton.sepset[pair] or ()]
        for pair in pairs
        if pair not in edges
    }


def _v_structures(
    p_value: Independence, edges: Sequence[Pair], separators: Separators
) -> list[tuple[int, int, int]]:
    """Triples a -> c <- b, strongest first: by increasing p-value of a and b given c as well."""
    adjacent = neighbours((), edges)
    probability = {}
    for a, b in separators:
        for c in sorted(adjacent.get(a, set()) & adjacent.get(b, set())):
            if not any(c in z for z in separators[a, b]):
                probability[a, c, b] = min(
                    p_value(a, b, tuple(sorted(z | {c}))) for z in separators[a, b] or [frozenset()]
                )
    return sorted(probability, key=lambda triple: (probability[triple], triple))


def _least_dependent(p_value: Independence, pair: Pair, edges: Sequence[Pair]) -> frozenset[int]:
    """Among sets of at most two neighbours, the one given which a pair is least dependent."""
    adjacent = neighbours((), edges)
    neighbouring = sorted((adjacent.get(pair[0], set()) | adjacent.get(pair[1], set())) - set(pair))
    sets = [frozenset(candidate) for size in range(3) for candidate in combinations(neighbouring, size)]
    return max(sets, key=lambda candidate: p_value(*pair, tuple(sorted(candidate))))


def _cyclic(pattern: PartiallyDirected) -> bool:
    try:
        RehearsalGraph(tuple((name,) for name in pattern.names), pattern.directed)
    except ValueError:
        return True
    return False


WEIGHTS = ("equal", "frequency")


@dataclass(frozen=True)
class GraphPosterior:
    """Distinct graphs by decreasing votes, with probabilities; and unusable resamples by reason."""

    graphs: tuple[RehearsalGraph, ...]
    weights: tuple[float, ...]
    votes: tuple[float, ...]
    resamples: int
    failures: Mapping[str, int]

    def edges(self) -> dict[tuple[str, str, str], float]:
        """(one, arrow, other), arrow "->" or "<->", to the posterior probability of that edge, descending."""
        probability = defaultdict[tuple[str, str, str], float](float)
        for graph, weight in zip(self.graphs, self.weights, strict=True):
            for source, target in graph.edges:
                probability[source, "->", target] += weight
            for first, second in map(sorted, graph.bidirected):
                probability[first, "<->", second] += weight
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
    nothing was altered; `weights` are "equal" or "frequency", `test` to `max_graphs` as of `learn`, and
    `progress` is called with the number of resamples done. A ValueError if every resample is unusable.
    """
    if weights not in WEIGHTS:
        raise ValueError(f"unknown weights {weights!r}: choose {' or '.join(WEIGHTS)}")
    if resamples < 1:
        raise ValueError(f"expected at least one resample; got {resamples}")
    import torch

    stream = generator(seed)
    graph_of: dict[tuple, RehearsalGraph] = {}
    votes, failures = defaultdict[tuple, float](float), Counter[str]()
    for number in range(1, resamples + 1):
        rows = values[torch.randint(len(values), (len(values),), generator=stream).to(values.device)]
        reason = _unusable(rows)
        if not reason:
            try:
                graphs_learnt = learn(rows, names, test, level, background, bidirected, max_graphs).graphs
                for graph in graphs_learnt:
                    graph_of.setdefault(signature(graph), graph)
                    votes[signature(graph)] += 1 / len(graphs_learnt)
            except TooManyGraphsError:
                reason = f"more than {max_graphs} graphs"
        failures.update([reason] if reason else [])
        if progress is not None:
            progress(number)
    if not graph_of:
        raise ValueError(
            f"all {resamples} resamples are unusable "
            f"({', '.join(f'{reason}: {count}' for reason, count in failures.items())}): more rows are needed"
        )
    keys = sorted(graph_of, key=lambda key: -votes[key])
    graphs, counts = tuple(graph_of[key] for key in keys), tuple(votes[key] for key in keys)
    shares = counts if weights == "frequency" else (1.0,) * len(keys)
    masses = tuple(share / sum(shares) for share in shares)
    return GraphPosterior(graphs, masses, counts, resamples, dict(failures))


def _unusable(rows: Tensor) -> str:
    if bool((rows == rows[0]).all(0).any()):
        return "a constant column"
    return "fewer than five different rows" if len(rows.unique(dim=0)) < 5 else ""
