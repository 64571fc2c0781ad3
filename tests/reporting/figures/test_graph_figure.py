"""Where the parts of a drawn graph stand, and what the files hold."""

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib.colors import to_hex
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch

from rehearsal_torch.graphs.mixed_graph import RehearsalGraph
from rehearsal_torch.reporting.figure_style import VERMILION
from rehearsal_torch.reporting.figures.graph_figure import PASSING, draw_graph, graph_figure, layout
from tests.toys.random_graphs import random_graph

EDGES = [("w", "rec"), ("w", "con"), ("con", "time"), ("w", "time"), ("time", "rating"), ("w", "rating")]
GRAPH = RehearsalGraph.mixed([], EDGES, [("rec", "con")])
PARTS = {"context": ("w",), "alterable": ("rec",), "outcomes": ("rating",)}


@settings(max_examples=60, derandomize=True, deadline=None)
@given(st.integers(0, 10**6))
def test_edges_run_to_the_right_and_pass_no_box(seed):
    graph = random_graph(seed, size=9, density=0.4)
    placed = layout(graph)
    for one, other in graph.edges:
        assert placed.column[one] < placed.column[other]
        assert all(
            (one, place) in placed.passing for place in range(placed.column[one] + 1, placed.column[other])
        )
    for clique in graph.cliques:
        assert len({placed.column[name] for name in clique}) == 1
        assert all(
            placed.height[one] - placed.height[other] == pytest.approx(1) for one, other in pairwise(clique)
        )
    for place in set(placed.column.values()):
        taken = [(placed.height[name], 0.5) for name in graph.names if placed.column[name] == place]
        taken += [(height, PASSING / 2) for (_, column), height in placed.passing.items() if column == place]
        taken.sort()
        assert all(
            higher[0] - lower[0] >= lower[1] + higher[1] - 1e-9 for lower, higher in pairwise(taken)
        ), "nothing overlaps"


def test_without_parts_there_is_one_tier_without_a_label():
    placed = layout(RehearsalGraph.mixed(["a", "b"], [("a", "b")], []))
    assert placed.tiers == (("", 0, 1),)
    assert placed.passing == {}


def arrows(figure):
    return [patch for patch in figure.axes[0].patches if isinstance(patch, FancyArrowPatch)]


def boxes(figure):
    return [patch for patch in figure.axes[0].patches if isinstance(patch, FancyBboxPatch)]


def test_every_edge_is_drawn_and_bidirectional_ones_differ():
    figure = graph_figure(GRAPH, **PARTS)
    assert len(arrows(figure)) == len(GRAPH.edges) + 1
    assert [to_hex(patch.get_edgecolor()).upper() for patch in arrows(figure)].count(VERMILION) == 1
    assert {text.get_text() for text in figure.axes[0].texts} >= set(GRAPH.names)
    assert len({round(patch.get_linewidth(), 2) for patch in boxes(figure)}) == 2, (
        "what may be altered has a thicker frame"
    )


def test_an_arrow_beside_a_hidden_common_cause_is_drawn_with_it():
    figure = graph_figure(RehearsalGraph.of({"b": ("a",), "c": ("b",)}, [("b", "c")]))
    assert [to_hex(patch.get_edgecolor()).upper() for patch in arrows(figure)].count(VERMILION) == 1
    assert len(arrows(figure)) == 3


def test_probable_edges_are_thicker():
    shares = {(one, "->", other): 0.1 for one, other in GRAPH.edges} | {("con", "<->", "rec"): 0.9}
    widths = [patch.get_linewidth() for patch in arrows(graph_figure(GRAPH, probabilities=shares))]
    assert sorted(widths) == widths
    assert widths[-1] > widths[0]


@pytest.mark.parametrize("name", ["price in $", "$\\frac{1}{0}$"])
def test_a_name_is_no_formula(tmp_path, name):
    files = draw_graph(RehearsalGraph.of({"outcome": [name]}), tmp_path)
    assert name in files[1].read_text(encoding="utf-8")


def test_hidden_causes_outside_of_cliques_are_drawn_beside_the_arrows():
    graph = RehearsalGraph.mixed(
        [], [("x", "t"), ("t", "m"), ("m", "y"), ("t", "z")], [("t", "y"), ("z", "y")]
    )
    figure = graph_figure(graph, ("x",), ("t",), ("y",))
    drawn = arrows(figure)
    assert [to_hex(each.get_edgecolor()).upper() for each in drawn].count(VERMILION) == 2
    assert len(drawn) == 6
