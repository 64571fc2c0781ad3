"""Emergency visits: Poisson counts, and what helps."""

import pytest
import torch
from scipy.stats import poisson as reference

from rehearsal_torch.problems.rehearsal.visits import MOST, Visits, poisson
from rehearsal_torch.problems.world_size import SampleSize


@pytest.mark.parametrize("rate", [0.2, 3.0, 30.0])
def test_counts_are_those_of_a_poisson_variable(rate):
    chances = poisson(torch.tensor(rate, dtype=torch.float64))
    expected = torch.from_numpy(reference.pmf(range(MOST + 1), rate))
    torch.testing.assert_close(chances, expected, rtol=0, atol=1e-12)
    assert float(chances.sum()) == pytest.approx(1, abs=1e-12)
    assert torch.equal(poisson(torch.tensor(99.0).double()), poisson(torch.tensor(30.0).double()))


def test_the_nurse_helps_where_the_distance_is_below_one():
    world = Visits(size=SampleSize(contexts=10))
    given = world.given([world.case(index) for index in range(10)])
    values, best = world.optimal(given, ("nurse", "calls"))
    assert torch.equal(values[:, 0] == 1, given[:, 1] < 1)
    wanted = (2 + 0.8 * given[:, 0]).clamp(0, 4)
    assert float((values[:, 1] - wanted).abs().max()) < 0.05
    assert best.mean() > 0.5


def test_rows_are_counts():
    visits = Visits().observations().columns(("visits",))
    assert torch.equal(visits, visits.round())
    assert float(visits.min()) == 0
    assert len(visits.unique()) > 10
