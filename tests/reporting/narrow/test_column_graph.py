"""Graphs in one column: the order of the variables, and what each arc joins."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib.colors import to_hex
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch

from rehearsal_torch.graphs.mixed_graph import RehearsalGraph
from rehearsal_torch.reporting.narrow.column_graph import WIDTH, column_figure
from rehearsal_torch.reporting.style import VERMILION, drawing
from tests.reporting.figures.test_graph import GRAPH, PARTS
from tests.toys.laid_out import faults
from tests.toys.random_graphs import random_graph


def parts(figure):
    """Arrows as (path without heads, hidden), boxes by the name inside, and the names from top to bottom."""
    (axes,) = figure.axes
    arrows = [
        (patch._path_original.vertices, to_hex(patch.get_edgecolor()).upper() == VERMILION)
        for patch in axes.patches
        if isinstance(patch, FancyArrowPatch)
    ]
    boxes = [patch for patch in axes.patches if isinstance(patch, FancyBboxPatch)]
    names = [text for text in axes.texts if text.get_rotation() == 0]
    found = {text.get_text(): box for text, box in zip(names, boxes, strict=True)}
    return arrows, found, [text.get_text() for text in names]


def at(boxes, point):
    """The name of the box on whose edge a point lies."""
    x, y = point
    (name,) = [
        name
        for name, box in boxes.items()
        if box.get_y() - 1e-9 <= y <= box.get_y() + box.get_height() + 1e-9
        and box.get_x() - 1e-9 <= x <= box.get_x() + box.get_width() + 1e-9
    ]
    return name


def test_causes_stand_above_their_effects_and_every_edge_joins_its_variables():
    with drawing():
        figure = column_figure(GRAPH, **PARTS)
        assert faults(figure) == []
    _, boxes, names = parts(figure)
    assert names == ["w", "rec", "con", "time", "rating"]
    assert {name: box.get_linewidth() for name, box in boxes.items()} == {
        "w": 0.9, "rec": 2.0, "con": 0.9, "time": 0.9, "rating": 0.9
    }  # fmt: skip
    tiers = [text.get_text() for text in figure.axes[0].texts if text.get_rotation() == 90]
    assert tiers == ["X", "Z: intermediate", "Y"]


@settings(max_examples=20, derandomize=True, deadline=None)
@given(st.integers(0, 10**6))
def test_every_edge_of_any_graph_is_drawn_once_within_the_figure(seed):
    graph = random_graph(seed, size=8)
    with drawing():
        figure = column_figure(graph, graph.names[-1:], graph.names[1:2], graph.names[:1])
    arrows, boxes, _ = parts(figure)
    joined = {True: [], False: []}
    for points, hidden in arrows:
        joined[hidden].append((at(boxes, points[0]), at(boxes, points[-1])))
        middle = points.mean(axis=0) if len(points) == 2 else points.T @ [1 / 8, 3 / 8, 3 / 8, 1 / 8]
        assert 0 < middle[0] < WIDTH
    assert sorted(joined[False]) == sorted(graph.edges)
    assert sorted(joined[True]) == sorted(graph.bidirected)
    assert figure.get_figwidth() == WIDTH


def test_arcs_of_one_box_do_not_cross():
    graph = RehearsalGraph.of({"b": ("a",), "c": ("a", "b"), "d": ("a", "c"), "e": ("a", "d")})
    with drawing():
        arrows, boxes, names = parts(column_figure(graph))
    assert names == ["a", "b", "c", "d", "e"]
    arcs = {at(boxes, points[-1]): points for points, _ in arrows if at(boxes, points[0]) == "a"}
    starts, widths = ([arcs[name][place] for name in ("c", "d", "e")] for place in (0, 1))
    assert [y for _, y in starts] == sorted(y for _, y in starts), "the farthest begins highest"
    assert [x for x, _ in widths] == sorted(x for x, _ in widths), "the farthest is the widest"


def test_long_names_take_lines_and_end_in_dots():
    names = [
        "diastolic blood pressure in millimetres",
        "a_name_of_very_many_words_that_goes_on_and_on_and_on",
        "$x$",
    ]
    with drawing():
        figure = column_figure(RehearsalGraph.of({names[2]: (names[0], names[1])}))
        assert faults(figure) == []
    _, _, shown = parts(figure)
    assert [text.split("\n")[0] for text in shown] == ["diastolic blood", "a_name_of_very_", "$x$"]
    assert shown[1].endswith("...")
    assert max(text.count("\n") for text in shown) == 2


def test_unknown_variables_are_refused():
    with pytest.raises(ValueError, match=r"unknown variables \['q'\]"):
        column_figure(GRAPH, alterable=("q",))
    with pytest.raises(ValueError, match=r"unknown variables \['q'\]"):
        column_figure(GRAPH, context=("q",))
