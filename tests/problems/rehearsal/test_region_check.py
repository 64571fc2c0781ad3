"""A region in which no row lies, or every one: told with the outcomes, their ranges and their bounds."""

import pytest
import torch

from rehearsal_torch.data.table import Table
from rehearsal_torch.problems.rehearsal.region_check import MOST, one_sided
from rehearsal_torch.spaces.polytope import Polytope

ROWS = Table.observed(("x", "y", "z"), torch.tensor([[0.0, 1.0, 9.0], [0.0, 2.0, 7.0], [0.0, 3.0, 5.0]]))


def faces(normals, offsets):
    return Polytope(("y", "z"), torch.tensor(normals), torch.tensor(offsets))


@pytest.mark.parametrize(
    "region",
    [
        Polytope.of({"y": (3.0, None)}),
        Polytope.of({"y": (None, 1.0), "z": (9.0, None)}),
        faces([[1.0, 1.0]], [8.0]),
    ],
)
def test_a_region_with_rows_inside_and_outside_is_not_mentioned(region):
    assert one_sided(ROWS, region) == ""


@pytest.mark.parametrize(
    ("region", "why"),
    [
        (Polytope.of({"y": (100.0, None)}), "y is at most 3, and the region asks for at least 100"),
        (Polytope.of({"z": (None, 4.5)}), "z is at least 5, and the region asks for at most 4.5"),
        (faces([[0.0, -2.0]], [-20.0]), "z is at most 9, and the region asks for at least 10"),
        (faces([[1.0, -1.0]], [-9.0]), "1 y - 1 z is at least -8, and the region asks for at most -9"),
        (
            Polytope.of({"y": (2.5, None), "z": (6.0, None)}),
            "each of its bounds is met by some row, all of them by none",
        ),
        (Polytope.of({"y": (1.2, 1.8)}), "each of its bounds is met by some row, all of them by none"),
        (
            Polytope.of({"y": (4.0, None), "z": (0.0, 4.5)}),
            "y is at most 3, and the region asks for at least 4; z is at least 5, and the region asks for at "
            "most 4.5",
        ),
    ],
)
def test_a_region_without_rows_is_told_with_what_it_lacks(region, why):
    assert one_sided(ROWS, region) == (
        f"none of the 3 rows lies in the desired region: {why}: the rows do not show what leads there; check "
        "its bounds and their units"
    )


def test_few_of_many_faces_are_named():
    told = one_sided(ROWS, faces([[1.0, float(each)] for each in range(6)], [-1.0] * 6))
    assert told.count("the region asks for") == MOST
    assert "; 3 more bounds are met by no row: " in told


def test_a_region_that_holds_every_row_is_told():
    told = one_sided(ROWS, Polytope.of({"y": (0.0, None)}))
    assert told.startswith("every one of the 3 rows lies in the desired region: ")
