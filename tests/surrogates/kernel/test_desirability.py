"""Targets: the smoothed desirability, its indicator, and how sharp it is."""

import pytest
import torch

from rehearsal_torch.spaces.polytope import Polytope
from rehearsal_torch.surrogates.kernel.nested_ridge import Desirability


def outcomes(count=2000, width=2, seed=0):
    return 3 + 2 * torch.randn(
        count, width, generator=torch.Generator().manual_seed(seed), dtype=torch.float64
    )


def made(bounds, values=None, **settings):
    found = Desirability(Polytope.of(bounds), **settings)
    found.solve(outcomes(width=len(bounds)) if values is None else values)
    return found


@pytest.mark.parametrize(("lower", "sharpness"), [(6.0, 5.0), (4.0, 20.0), (4.3, 10.0)])
def test_sharpness_follows_the_positive_rate(lower, sharpness):
    found = made({"y": (lower, None)})
    assert found.sharpness.tolist() == [sharpness]
    assert float(found.rate) == pytest.approx(float((outcomes(width=1) >= lower).double().mean()))


def test_in_a_narrow_region_the_centre_still_counts_as_desired():
    found = made({"y": (2.9, 3.1), "z": (None, None)})
    assert float(found.sharpness) > 20
    centre, edge = found.targets(torch.tensor([[3.0, 0.0], [3.1, 0.0]], dtype=torch.float64))[:, 0].tolist()
    assert centre == pytest.approx(float(torch.special.ndtr(torch.tensor(2.0)) ** 2), abs=1e-3)
    assert edge == pytest.approx(0.5, abs=1e-3)
    wider = made({"y": (2.9, 3.1), "z": (None, None)}, clearance=4.0)
    assert float(wider.sharpness) == pytest.approx(2 * float(found.sharpness))


def test_targets_are_the_desirability_in_standard_deviations_and_the_indicator():
    values = outcomes()
    found = made({"y": (2, 5), "z": (None, 4)}, values, sharpness=8.0)
    smooth, indicator = found.targets(values).T
    inside = ((values >= values.new_tensor([2, -torch.inf])) & (values <= values.new_tensor([5, 4]))).all(-1)
    assert torch.equal(indicator, inside.double())
    spread = values.std(0)
    by_hand = torch.special.ndtr(8 * (values[:, 0] - 2) / spread[0]) * torch.special.ndtr(
        8 * (5 - values[:, 0]) / spread[0]
    )
    assert torch.allclose(smooth, by_hand * torch.special.ndtr(8 * (4 - values[:, 1]) / spread[1]))


def test_units_do_not_matter():
    values = outcomes()
    one = made({"y": (2, 5), "z": (None, 4)}, values)
    other = made(
        {"y": (200 - 7, 500 - 7), "z": (None, 0.04 - 7)}, values * values.new_tensor([100, 0.01]) - 7
    )
    assert torch.allclose(one.sharpness, other.sharpness)
    assert torch.allclose(
        one.targets(values), other.targets(values * values.new_tensor([100, 0.01]) - 7), atol=1e-9
    )


def test_scores_are_normal_and_faces_that_say_the_same_count_once():
    values = outcomes()
    found = made({"y": (2, 5), "z": (None, 4)}, values)
    scores = found.scores(values)
    assert scores.shape == (2000, 2), "two sides of one outcome order the rows alike"
    assert scores.mean(0).abs().max() < 1e-6
    assert (scores.std(0) - 1).abs().max() < 0.01
    assert torch.equal(scores[:, 0].argsort(), (-values[:, 0]).argsort())
    heavy = found.scores(values**3 * 1e6)
    assert torch.allclose(heavy[:, 0].sort().values, scores[:, 0].sort().values), (
        "outliers have no more say than others"
    )


@pytest.mark.parametrize("settings", [{"sharpness": 0.0}, {"sharpness": -1.0}, {"clearance": 0.0}])
def test_wrong_settings_are_refused(settings):
    with pytest.raises(ValueError, match="expected a positive sharpness"):
        Desirability(Polytope.of({"y": (0, 1)}), **settings)
