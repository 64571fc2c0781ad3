from rehearsal_torch.graphs.mixed_graph import RehearsalGraph
from rehearsal_torch.reporting.figures.graph_layout import layout

EDGES = [("x", "z"), ("z", "y"), ("x", "y"), ("x", "z2")]
GRAPH = RehearsalGraph.mixed([], EDGES, [("z", "z2")])


def test_tiers_run_from_context_to_outcomes():
    placed = layout(GRAPH, ["x"], ["y"])
    assert placed.column == {"x": 0, "z": 1, "z2": 1, "y": 2}
    assert placed.tiers == (("X", 0, 0), ("Z", 1, 1), ("Y", 2, 2))
    assert set(placed.passing) == {("x", 1)}, "x -> y passes the column of z"


def test_heights_are_centred_and_a_clique_stands_one_below_the_other():
    placed = layout(GRAPH, ["x"], ["y"])
    assert placed.height["x"] == placed.height["y"] == 0.0
    assert abs(placed.height["z"] - placed.height["z2"]) == 1.0
    # Two variables and one passing edge, of heights 1, 1 and 1/2.
    assert placed.span == 2.5
    middle = (placed.height["z"] + placed.height["z2"]) / 2
    assert {abs(middle), abs(placed.passing["x", 1])} == {0.25, 1.0}


def test_without_parts_there_is_one_tier_without_a_label():
    placed = layout(RehearsalGraph.mixed(["a", "b"], [("a", "b")], []))
    assert placed.tiers == (("", 0, 1),)
    assert placed.passing == {}
