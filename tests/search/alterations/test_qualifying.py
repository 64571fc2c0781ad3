import numpy as np
import pytest
import torch

from rehearsal_torch.objectives.success_probability import SuccessProbability
from rehearsal_torch.search.alterations.joint_candidates import AlterationBudget
from rehearsal_torch.search.alterations.qualifying import Programs, Qualifying, apart
from tests.toys.toy_posteriors import Toy, toy_cases

TOY = Toy((1.0,), (1.0,), (0.2,), 0.5, (0.5, 2.5))
PROGRAMS = Programs(1, 20, 20)


@pytest.fixture(scope="module")
def one():
    return SuccessProbability.for_cases(
        TOY,
        toy_cases(2),
        search_scenarios=6000,
        validation_scenarios=6000,
        test_scenarios=10,
        information_models=5,
        entropy="sampled",
    ).sets[0]


@pytest.mark.slow
@pytest.mark.parametrize("tau", [0.2, 0.5, 0.8])
def test_the_interval_is_that_of_the_closed_form_and_every_point_qualifies_by_both_samples(one, tau):
    found = Qualifying(tau, 20, None, PROGRAMS)
    pieces = found.pieces(one, 1)
    true = [z for z in np.linspace(-3, 3, 6001) if TOY.success(z) >= tau]
    assert float(pieces[0, 0]) == pytest.approx(true[0], abs=0.06)
    assert float(pieces[-1, 1]) == pytest.approx(true[-1], abs=0.08)
    points = found.points(one, 1).points
    assert points.shape == (20, 1)
    for validating in (True, False):
        assert (one.share_of(1, points, validating=validating) >= tau).all()
    # The most probable stands first, the ends of the interval next.
    assert float(points[0]) == pytest.approx(1.5, abs=0.3)
    assert set(points[1:3, 0].tolist()) == {float(pieces[0, 0]), float(pieces[0, 1])} or len(pieces) > 1


def test_how_far_a_set_stays_from_tau_is_told(one):
    found = Qualifying(0.999, 20, None, PROGRAMS).points(one, 0)
    assert found.points.shape == (0, 1)
    assert found.share == pytest.approx(max(TOY.success(z) for z in np.linspace(-3, 3, 301)), abs=0.02)
    assert Qualifying(0.5, 20, AlterationBudget(0.0, {}, {"a": 50.0}), PROGRAMS).points(one, 0).share == -1


def test_points_are_taken_furthest_first():
    points = torch.tensor([[0.0, 0.0], [0.1, 0.0], [1.0, 0.0], [0.0, 50.0]], dtype=torch.float64)
    begin, width = (
        torch.tensor([[0.0, 0.0]], dtype=torch.float64),
        torch.tensor([1.0, 100.0], dtype=torch.float64),
    )
    assert apart(points, begin, 2, width).tolist() == [[1.0, 0.0], [0.0, 50.0]]
    assert sorted(apart(points, begin, 9, width).tolist()) == sorted(points.tolist())
    assert apart(points[:0], begin, 3, width).shape == (0, 2)
    # Distances from those that are selected are in units of the box as well: the last is close to the first.
    line = torch.tensor([[0.0, 100.0], [0.48, 0.0], [1.0, 0.0], [0.0, 55.0]], dtype=torch.float64)
    assert apart(line, begin, 3, width).tolist() == [[0.0, 100.0], [1.0, 0.0], [0.48, 0.0]]
