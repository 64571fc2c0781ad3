import pytest
import torch

from rehearsal_torch.objectives.centre_distance import centre_and_radius
from rehearsal_torch.spaces.polytope import Polytope


def ends(*values):
    return torch.tensor(values, dtype=torch.float64)


def test_a_triangle_has_its_incentre():
    # Right triangle of sides 3, 4, 5: radius 1, centre (1, 1).
    region = Polytope(("a", "b"), torch.tensor([[-1.0, 0], [0, -1], [4, 3]]), torch.tensor([0.0, 0, 12]))
    centre, radius = centre_and_radius(region, ends(-9, -9), ends(9, 9))
    assert radius == pytest.approx(1.0)
    assert centre.tolist() == pytest.approx([1.0, 1.0], abs=1e-6)


def test_a_long_rectangle_has_its_middle():
    centre, radius = centre_and_radius(Polytope.of({"a": (0, 1), "b": (2, 12)}), ends(-9, -9), ends(9, 9))
    assert radius == pytest.approx(0.5)
    assert centre.tolist() == pytest.approx([0.5, 7.0], abs=1e-6)


def test_an_open_region_is_cut_at_what_was_observed():
    centre, radius = centre_and_radius(
        Polytope.of({"a": (None, 5.7), "b": (None, 100.0)}), ends(3.7, 60), ends(12, 300)
    )
    assert radius == pytest.approx(1.0)
    assert centre.tolist() == pytest.approx([4.7, 80.0], abs=1e-5)


def test_only_open_sides_are_cut():
    centre, _ = centre_and_radius(Polytope.of({"a": (0.6, None), "b": (0.0, 2.0)}), ends(0, -1), ends(1, 1))
    assert centre.tolist() == pytest.approx([0.8, 1.0], abs=1e-6)


def test_a_region_beyond_everything_observed_widens_the_cut():
    # Observed 0 ... 1, wanted above 2: the range is widened to 0 ... 4 before something is left.
    centre, _ = centre_and_radius(Polytope.of({"a": (2.0, None)}), ends(0), ends(1))
    assert centre.tolist() == pytest.approx([3.0])


def test_a_flat_region_is_refused():
    with pytest.raises(ValueError, match="has an empty interior"):
        centre_and_radius(Polytope.of({"a": (2.0, 2.0)}), ends(0), ends(1))


def test_rows_of_any_length_have_the_same_middle():
    # The rectangle [0, 1] x [2, 12] as faces of lengths 3, 0.5, 2 and 4.
    normals = torch.tensor([[3.0, 0.0], [-0.5, 0.0], [0.0, 2.0], [0.0, -4.0]])
    region = Polytope(("a", "b"), normals, torch.tensor([3.0, 0.0, 24.0, -8.0]))
    centre, radius = centre_and_radius(region, ends(-9, -9), ends(9, 9))
    assert radius == pytest.approx(0.5)
    assert centre.tolist() == pytest.approx([0.5, 7.0], abs=1e-6)


def test_a_region_below_everything_observed_widens_the_cut_downwards():
    centre, radius = centre_and_radius(Polytope.of({"a": (None, -1.0), "b": (0, 8)}), ends(0, 0), ends(1, 1))
    # Observed 0 ... 1, wanted below -1: -1 - 2 = 0 - 3 times the range.
    assert (radius, centre.tolist()) == (pytest.approx(1.0), pytest.approx([-2.0, 4.0], abs=1e-6))
    with pytest.raises(ValueError, match="lies far from all observations"):
        centre_and_radius(Polytope.of({"a": (1e8, None)}), ends(0), ends(1))
