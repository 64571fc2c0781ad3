"""Qin et al. (2023), App. A.2: Lemma 13, Thm. 15, 16 and 17, on random rehearsal graphs.

Thm. 15 and 17 speak of all laws that factorise according to a graph. Linear Gaussian laws with random weights
stand for them: exact covariances, so that a conditional independence is an equality, and with probability one
there is no independence beyond those that the graph says.
"""

import networkx as nx
import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from rehearsal_torch.graphs.separation import c_separated, connected
from tests.toys.random_graphs import compatible, ordered, questions, random_graph, random_law

EXAMPLES = settings(max_examples=100, derandomize=True, deadline=None)


@EXAMPLES
@given(st.integers(0, 10**6))
def test_lemma_13_members_of_a_clique_are_separated_together(seed):
    graph = random_graph(seed)
    for x, y, known in questions(graph, seed):
        for one in sorted(x):
            for other in sorted(y):
                if c_separated(graph, one, other, known):
                    assert c_separated(
                        graph, set(graph.clique(one)) - known, set(graph.clique(other)) - known, known
                    )


@EXAMPLES
@given(st.integers(0, 10**6))
def test_theorem_16_every_compatible_directed_graph_d_separates_the_same(seed):
    graph = random_graph(seed)
    dags = list(compatible(graph))
    assert all(nx.is_directed_acyclic_graph(dag) for dag in dags)
    for x, y, known in questions(graph, seed, 4):
        answer = c_separated(graph, x, y, known)
        assert all(nx.is_d_separator(dag, x, y, known) == answer for dag in dags), (graph, x, y, known)


@EXAMPLES
@given(st.integers(0, 10**6))
def test_theorem_15_separation_is_independence_and_theorem_17_nothing_else_is(seed):
    graph = random_graph(seed)
    covariance = random_law(graph, seed)
    for x, y, known in questions(graph, seed):
        at = {name: index for index, name in enumerate(graph.names)}
        i, j, z = ([at[name] for name in sorted(names)] for names in (x, y, known))
        partial = covariance[np.ix_(i, j)]
        if z:
            partial = partial - covariance[np.ix_(i, z)] @ np.linalg.solve(
                covariance[np.ix_(z, z)], covariance[np.ix_(z, j)]
            )
        if c_separated(graph, x, y, known):
            assert abs(partial).max() < 1e-10, "Thm. 15"
        else:
            assert abs(partial).max() > 1e-7, "Thm. 17"


@EXAMPLES
@given(st.integers(0, 10**6))
def test_larger_graphs_agree_with_one_compatible_directed_graph(seed):
    graph = random_graph(seed, size=25, density=0.15)
    dag = ordered(graph)
    for x, y, known in questions(graph, seed, 3):
        assert c_separated(graph, x, y, known) == nx.is_d_separator(dag, x, y, known)
        reached = connected(graph, x, known)
        assert reached == x | {
            name for name in set(graph.names) - known - x if not nx.is_d_separator(dag, x, {name}, known)
        }
