"""Points of a cube for alterations, there and back."""

import pytest
import torch

from rehearsal_torch.adapters.gymnasium import AlterationCode
from rehearsal_torch.spaces.box import Alteration
from tests.toys.linear_truth import chain

TASK = chain(reach=2.0).task


def test_the_largest_of_the_first_numbers_chooses_the_set():
    code = AlterationCode(TASK)
    assert (code.choices, code.names, code.size) == (3, ("a", "m"), 5)
    made = code.decode([0.1, 0.9, -0.3, 0.5, -1.0])
    assert made.names == ("m",)
    assert made.values.tolist() == [-2.0]
    assert code.decode(torch.tensor([0.0, 0.0, 0.2, 0.5, 7.0])).values.tolist() == [1.0, 2.0]


def test_encoding_is_the_way_back():
    code = AlterationCode(TASK)
    for names, values in ((("a",), [0.3]), (("a", "m"), [-2.0, 1.1])):
        alteration = Alteration(names, torch.tensor(values, dtype=torch.float64))
        again = code.decode(code.encode(alteration))
        assert again.names == names
        assert again.values.tolist() == pytest.approx(values)
    with pytest.raises(ValueError, match="one of"):
        code.encode(Alteration(("m", "a"), torch.zeros(2)))


def test_a_single_set_needs_no_choice():
    task = type(TASK)(TASK.graph, TASK.context, TASK.box, TASK.region, (("m",),))
    code = AlterationCode(task)
    assert (code.choices, code.size) == (0, 1)
    assert code.decode([0.25]).values.tolist() == [0.5]


@pytest.mark.parametrize("point", [[0.0] * 4, [0.0, 0.0, 0.0, float("nan"), 0.0]])
def test_points_that_are_none_are_refused(point):
    with pytest.raises(ValueError, match="expected 5 finite numbers"):
        AlterationCode(TASK).decode(point)
