"""Random rehearsal graphs, the directed graphs that are compatible with them, and tables and tests of
independence that agree with them."""

from itertools import permutations, product

import networkx as nx
import numpy as np
import torch

from rehearsal_torch.graphs.mixed_graph import RehearsalGraph
from rehearsal_torch.graphs.separation import c_separated


def random_graph(seed, size=6, density=0.45, joining=0.45):
    """A rehearsal graph of two to `size` variables: consecutive ones are joined by chance, then cliques are
    linked member by member."""
    stream = np.random.default_rng(seed)
    names = [f"v{index}" for index in range(int(stream.integers(2, size + 1)))]
    cliques = [[names[0]]]
    for name in names[1:]:
        if stream.random() < joining:
            cliques[-1].append(name)
        else:
            cliques.append([name])
    edges = [
        (source, target)
        for place, clique in enumerate(cliques)
        for earlier in cliques[:place]
        for source in earlier
        if stream.random() < density
        for target in clique
    ]
    return RehearsalGraph(tuple(map(tuple, cliques)), tuple(edges))


def compatible(graph):
    """Every directed acyclic graph of the same skeleton that keeps the directed edges: one for each order
    within each clique."""
    for orders in product(*(permutations(clique) for clique in graph.cliques)):
        yield ordered(graph, orders)


def ordered(graph, orders=None):
    """The compatible directed graph with these orders within the cliques; None for the graph's own."""
    dag = nx.DiGraph(list(graph.edges))
    dag.add_nodes_from(graph.names)
    dag.add_edges_from(
        (order[i], order[j]) for order in orders or graph.cliques for j in range(len(order)) for i in range(j)
    )
    return dag


def questions(graph, seed, count=6):
    """Random disjoint sets X, Y, Z; X and Y are not empty."""
    stream = np.random.default_rng(seed + 1)
    found = []
    while len(found) < count:
        part = stream.integers(0, 4, len(graph.names))
        sets = [
            {name for name, mine in zip(graph.names, part, strict=True) if mine == index}
            for index in range(3)
        ]
        if sets[0] and sets[1]:
            found.append(sets)
    return found


def random_law(graph, seed):
    """The covariance of V_i = B' PA_i + e_i with a full noise covariance in each clique (Eq. 1): such laws
    factorise according to the graph."""
    stream = np.random.default_rng(seed + 2)
    at = {name: index for index, name in enumerate(graph.names)}
    weights, noise = np.zeros((len(at), len(at))), np.zeros((len(at), len(at)))
    for clique, parents in graph.factors:
        rows = [at[name] for name in clique]
        columns = [at[name] for name in parents]
        weights[np.ix_(rows, columns)] = stream.uniform(0.5, 1.5, (len(rows), len(columns))) * stream.choice(
            [-1, 1], (len(rows), len(columns))
        )
        root = stream.normal(size=(len(rows), len(rows)))
        noise[np.ix_(rows, rows)] = root @ root.T + 0.5 * np.eye(len(rows))
    total = np.linalg.inv(np.eye(len(at)) - weights)
    return total @ noise @ total.T


def oracle(graph, names):
    """A test that never errs."""
    return lambda one, other, between: float(
        c_separated(graph, names[one], names[other], [names[index] for index in between])
    )


def drawn(graph, seed, rows):
    """A table of a linear Gaussian law that factorises according to the graph."""
    root = torch.linalg.cholesky(torch.tensor(random_law(graph, seed)))
    return (
        torch.randn(rows, len(root), generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
        @ root.T
    )
