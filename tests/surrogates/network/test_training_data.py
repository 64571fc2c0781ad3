"""What each node is learnt from, by hand: a chain a -> X -> Y with a second cause b of Y."""

import pytest
import torch

from rehearsal_torch.data.causal_task import CausalTask
from rehearsal_torch.data.known_reward import WeightedSum
from rehearsal_torch.data.table import Table
from rehearsal_torch.graphs.mixed_graph import RehearsalGraph
from rehearsal_torch.spaces.box import Box
from rehearsal_torch.surrogates.network.training_data import NodeRows, UnitCube

GRAPH = RehearsalGraph.of({"X": ["a"], "Y": ["X", "b"]})
TASK = CausalTask(GRAPH, Box.of({"a": (0.0, 2.0), "b": (-1.0, 1.0)}), WeightedSum({"Y": 3.0}))
VALUES = torch.tensor(
    [[0.2 * n, 0.1 * n - 0.3, float(n), float(n * n)] for n in range(8)], dtype=torch.float64
)


def table(*altered):
    marks = torch.zeros(8, 4, dtype=torch.bool)
    for row, column in altered:
        marks[row, column] = True
    return Table(("a", "b", "X", "Y"), VALUES, marks)


def test_with_the_graph_a_node_is_learnt_from_its_parents_where_it_was_not_set():
    rows = NodeRows(TASK, "graph")
    assert rows.inputs == (("a",), ("X", "b"))
    inputs, values, kept = rows.examples(table((1, 2), (4, 3)))
    assert inputs.shape == (8, 2, 2)
    assert torch.equal(inputs[:, 0], torch.stack([VALUES[:, 0], torch.zeros(8, dtype=torch.float64)], -1))
    assert torch.equal(inputs[:, 1], VALUES[:, [2, 1]])
    assert torch.equal(values, VALUES[:, 2:])
    assert kept.T.tolist() == [[n != 1 for n in range(8)], [n != 4 for n in range(8)]]


def test_without_the_graph_rows_are_left_out_in_which_something_between_was_set():
    independent = NodeRows(TASK, "independent")
    assert independent.structured_task.nodes == ("Y",)
    assert set(independent.inputs[0]) == {"a", "b"}
    assert independent.kept(table((1, 2), (4, 3)))[:, 0].tolist() == [n not in (1, 4) for n in range(8)]
    box = NodeRows(TASK, "black_box")
    assert torch.equal(box.values(table())[:, 0], 3.0 * VALUES[:, 3])
    assert box.kept(table((1, 2), (4, 3)))[:, 0].tolist() == [n not in (1, 4) for n in range(8)]


def test_too_few_rows_and_constants_are_named():
    with pytest.raises(ValueError, match=r"X: expected at least 5 rows .* not set; got 4"):
        NodeRows(TASK, "graph").examples(table(*((n, 2) for n in range(4))))
    same = Table(("a", "b", "X", "Y"), VALUES.clone(), table().altered)
    same.values[:, 2] = 1.5
    with pytest.raises(ValueError, match=r"X: all 8 values that were not set are 1\.5: a constant"):
        NodeRows(TASK, "graph").examples(same)
    with pytest.raises(ValueError, match="expected a structure of"):
        NodeRows(TASK, "tree")


def test_inputs_are_scaled_to_the_unit_cube_and_values_standardised():
    rows = NodeRows(TASK, "graph")
    cube = UnitCube(rows)
    inputs, values, kept = rows.examples(table((7, 2)))
    cube.solve(inputs, values, kept)
    scaled = cube.scaled(inputs)
    assert torch.allclose(scaled[:, 0, 0], VALUES[:, 0] / 2.0)
    assert torch.allclose(scaled[:, 1, 0], VALUES[:, 2] / 7.0)
    assert torch.allclose(scaled[:, 1, 1], (VALUES[:, 1] + 1.0) / 2.0)
    left = VALUES[:7, 2]
    assert cube.centre[0] == pytest.approx(float(left.mean()))
    assert cube.scale[0] == pytest.approx(float(left.std()))
    assert cube.faults() == []
    cube.scale[0] = 0.0
    assert cube.faults() == ["width and scale: expected numbers above 0"]
