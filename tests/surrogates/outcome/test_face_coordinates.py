"""Coordinates of the outcomes: few, and with the same region."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from rehearsal_torch.spaces.polytope import Polytope
from rehearsal_torch.surrogates.outcome.face_coordinates import FaceCoordinates

NUMBERS = st.floats(-5, 5, allow_nan=False)


def polygon(count):
    turns = torch.arange(count, dtype=torch.float64) * 2 * torch.pi / count
    return Polytope(
        ("y", "z"), torch.stack((turns.cos(), turns.sin()), -1), torch.ones(count, dtype=torch.float64)
    )


REGIONS = [
    Polytope.of({"y": (0, 1)}),
    Polytope.of({"y": (0, 1), "z": (None, 3)}),
    Polytope.of({"y": (None, None), "z": (-2, 3)}),
    Polytope(("y", "z"), torch.tensor([[3.0, -4.0]]).double(), torch.tensor([2.0]).double()),
    Polytope(
        ("y", "z"), torch.tensor([[1.0, -1.0], [-2.0, 2.0]]).double(), torch.tensor([2.0, 1.0]).double()
    ),
    polygon(7),
]
WIDTHS = [1, 2, 1, 1, 1, 2]


@pytest.mark.parametrize(("region", "width"), [*zip(REGIONS, WIDTHS, strict=True)])
def test_there_are_no_more_coordinates_than_directions_or_outcomes(region, width):
    made = FaceCoordinates.of(region)
    assert made.count == width
    assert made.basis.shape == (width, len(region.names))


@settings(max_examples=25, deadline=None, derandomize=True)
@given(st.sampled_from(REGIONS), st.lists(st.tuples(NUMBERS, NUMBERS), min_size=1, max_size=20))
def test_the_region_is_the_same(region, points):
    outcomes = torch.tensor(points, dtype=torch.float64)[:, : len(region.names)]
    made = FaceCoordinates.of(region)
    clear = (region.slack(outcomes).abs() > 1e-9).all(-1)
    assert torch.equal(made.desired(made.of_outcomes(outcomes))[clear], region.contains(outcomes)[clear])
