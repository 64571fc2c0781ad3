"""Unmeasured variables as hidden common causes."""

from itertools import combinations

import networkx as nx
from hypothesis import given, settings
from hypothesis import strategies as st

from rehearsal_torch.graphs.latent_projection import projected


def test_a_latent_cause_of_two_is_a_hidden_common_cause():
    names = ("u", "a", "y")
    assert projected(names, [("u", "a"), ("u", "y"), ("a", "y")], [], {"u"}) == (
        ("a", "y"),
        (("a", "y"),),
        (("a", "y"),),
    )


def test_paths_through_latent_variables_are_arrows():
    names = ("a", "l", "m", "y", "z")
    found = projected(names, [("a", "l"), ("l", "m"), ("m", "y"), ("m", "z")], [], {"l", "m"})
    assert found == (("a", "y", "z"), (("a", "y"), ("a", "z")), (("y", "z"),))
    assert projected(names, [("a", "y")], [("l", "z")], {"l"})[2] == ()
    assert projected(names, [("l", "y")], [("l", "z")], {"l"})[2] == (("y", "z"),)


@settings(max_examples=150, deadline=None)
@given(st.integers(0, 2**15 - 1), st.integers(1, 2**6 - 2))
def test_separations_of_the_measured_variables_stay(edges, hidden):
    """Each arc of the projection as a latent variable of its own: the separations must be the same."""
    names = tuple("abcdef")
    pairs = list(combinations(names, 2))
    directed = [pair for place, pair in enumerate(pairs) if edges >> place & 1]
    latent = {name for place, name in enumerate(names) if hidden >> place & 1}
    kept, arrows, arcs = projected(names, directed, [], latent)
    assert kept == tuple(name for name in names if name not in latent)
    before, after = nx.DiGraph(directed), nx.DiGraph(arrows)
    before.add_nodes_from(names)
    after.add_nodes_from(kept)
    for one, other in arcs:
        after.add_edges_from([(f"{one}{other}", one), (f"{one}{other}", other)])
    for one, other in combinations(kept, 2):
        rest = [name for name in kept if name not in (one, other)]
        for size in range(len(rest) + 1):
            for known in combinations(rest, size):
                assert nx.is_d_separator(before, {one}, {other}, set(known)) == nx.is_d_separator(
                    after, {one}, {other}, set(known)
                )
