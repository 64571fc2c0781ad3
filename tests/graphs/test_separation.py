"""c-separation against the definition, path by path, and what it refuses."""

import time
from itertools import pairwise

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rehearsal_torch.graphs.mixed_graph import RehearsalGraph
from rehearsal_torch.graphs.separation import c_separated, connected
from tests.toys.random_graphs import questions, random_graph

EXAMPLES = settings(max_examples=120, derandomize=True, deadline=None)


def runs(graph, path):
    """The path cut into runs of members that bi-directional edges join."""
    found = [[path[0]]]
    for before, after in pairwise(path):
        if graph.clique(before) == graph.clique(after):
            found[-1].append(after)
        else:
            found.append([after])
    return found


def blocked(graph, path, known, printed=False):
    """Whether a path is blocked: by the definition in use, or by the printed one (whose runs lie between two
    directed edges)."""
    parts, arrows = runs(graph, path), set(graph.edges)
    for place, run in enumerate(parts):
        into_first = place > 0 and (parts[place - 1][-1], run[0]) in arrows
        into_last = place + 1 < len(parts) and (parts[place + 1][0], run[-1]) in arrows
        out_first = place > 0 and not into_first
        out_last = place + 1 < len(parts) and not into_last
        if into_first and into_last:
            if not graph.descendants(run) & known:
                return True
        elif printed:
            if 0 < place < len(parts) - 1 and set(run) <= known:
                return True
        elif (out_first and run[0] in known) or (out_last and run[-1] in known):
            return True
    return False


def by_paths(graph, x, y, known, printed=False):
    """Separation by listing all paths."""
    skeleton = nx.Graph([*graph.edges, *graph.bidirected])
    skeleton.add_nodes_from(graph.names)
    paths = (path for one in x for other in y for path in nx.all_simple_paths(skeleton, one, other))
    return all(blocked(graph, path, known, printed) for path in paths)


@EXAMPLES
@given(st.integers(0, 10**6))
def test_the_search_answers_as_listing_all_paths_does(seed):
    graph = random_graph(seed)
    for x, y, known in questions(graph, seed):
        assert c_separated(graph, x, y, known) == by_paths(graph, x, y, known), (graph, x, y, known)


@EXAMPLES
@given(st.integers(0, 10**6))
def test_what_the_printed_definition_separates_is_separated(seed):
    graph = random_graph(seed)
    for x, y, known in questions(graph, seed):
        if by_paths(graph, x, y, known, printed=True):
            assert c_separated(graph, x, y, known)


def test_both_answers_and_both_definitions_occur():
    answers = {True: 0, False: 0}
    apart = 0
    for seed in range(150):
        graph = random_graph(seed)
        for x, y, known in questions(graph, seed, 3):
            answers[c_separated(graph, x, y, known)] += 1
            apart += c_separated(graph, x, y, known) != by_paths(graph, x, y, known, printed=True)
    assert min(answers.values()) > 100
    assert apart > 0


def test_a_member_without_an_arrow_out_opens_no_path():
    graph = RehearsalGraph.mixed("pmny", [("p", "m"), ("p", "n"), ("n", "y")], [("m", "n")])
    assert c_separated(graph, "p", "y", "n")
    assert not by_paths(graph, {"p"}, {"y"}, {"n"}, printed=True), (
        "the printed definition lets the path leave through m"
    )
    assert not c_separated(graph, "p", "y")
    assert c_separated(graph, "m", "y", "n")
    assert not c_separated(graph, "p", "y", "m")


def test_chains_forks_and_colliders_run_through_cliques():
    chain = RehearsalGraph.mixed("abcd", [("a", "b"), ("a", "c"), ("b", "d"), ("c", "d")], [("b", "c")])
    assert c_separated(chain, "a", "d", ("b", "c"))
    assert not c_separated(chain, "a", "d", "b")
    collider = RehearsalGraph.mixed(
        "abcde", [("a", "b"), ("a", "c"), ("d", "b"), ("d", "c"), ("c", "e")], [("b", "c")]
    )
    assert c_separated(collider, "a", "d")
    assert not c_separated(collider, "a", "d", "b"), "b tells of both, and so does c: they move together"
    assert not c_separated(collider, "a", "d", "e"), "a descendant of a member opens the clique"
    fork = RehearsalGraph.mixed("abcd", [("b", "a"), ("c", "d")], [("b", "c")])
    assert not c_separated(fork, "a", "d")
    assert c_separated(fork, "a", "d", "b")
    assert connected(fork, "a", "c") == {"a", "b"}


@pytest.mark.parametrize(
    ("sets", "message"),
    [
        (("a", "b", "a"), r"\['a'\] stand in two of them"),
        ((("a", "b"), "b"), r"\['b'\] stand in two of them"),
        (("a", "z"), r"unknown variables \['z'\]"),
    ],
)
def test_sets_that_overlap_or_are_unknown_are_refused(sets, message):
    graph = RehearsalGraph.of({"b": ("a",)})
    with pytest.raises(ValueError, match=message):
        c_separated(graph, *sets)
    with pytest.raises(ValueError, match="outside `given`"):
        connected(graph, "a", "a")


def test_a_graph_of_a_thousand_variables_is_answered_at_once_and_the_time_grows_with_the_edges():
    seconds = {}
    for count in (1000, 4000):
        stream = np.random.default_rng(count)
        parents = {
            f"v{index}": {f"v{int(other)}" for other in stream.integers(0, index, 4)}
            for index in range(1, count)
        }
        graph = RehearsalGraph.of(parents)
        known = {f"v{index}" for index in range(1, count, 3)}
        spent = []
        for _ in range(3):
            began = time.process_time()
            connected(graph, "v0", known)
            spent.append(time.process_time() - began)
        seconds[count] = min(spent)
    assert seconds[1000] < 0.05
    assert seconds[4000] < 12 * seconds[1000]
