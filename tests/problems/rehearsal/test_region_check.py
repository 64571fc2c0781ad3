"""A region in which no row lies, or every one: told with the outcomes, their ranges and their bounds."""

import pytest
import torch

from rehearsal_torch.data.table import Table
from rehearsal_torch.problems.rehearsal.region_check import one_sided
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


def test_a_region_that_holds_every_row_is_told():
    told = one_sided(ROWS, Polytope.of({"y": (0.0, None)}))
    assert told.startswith("every one of the 3 rows lies in the desired region: ")
