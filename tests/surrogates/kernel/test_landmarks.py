"""Landmarks, chosen or known, and regressions on their features."""

import pytest
import torch

from rehearsal_torch.data.tables.blocks import in_blocks
from rehearsal_torch.surrogates.kernel.landmarks import landmarks, landmarks_at, pivoted_cholesky, regressed
from rehearsal_torch.surrogates.kernel.product_kernel import gaussian
from tests.toys.confounded import rows

WAYS = ["pivoted", "sampled", "uniform"]


def test_pivots_leave_less_than_a_uniform_draw():
    """Greedy pivots at most anywhere, drawn ones in sum."""
    values = torch.cat(rows(500)[:2], -1)
    exact, stream = gaussian(values, values), torch.Generator().manual_seed(1)
    (greedy, factor), (drawn, sampled) = pivoted_cholesky(values, 40), pivoted_cholesky(values, 40, stream)
    for pivots, each in ((greedy, factor), (drawn, sampled)):
        assert len(set(pivots.tolist())) == 40
        assert torch.allclose(each[pivots], each[pivots].tril(), atol=1e-9)
        assert torch.allclose(each @ each[pivots].T, exact[:, pivots], atol=1e-8)
    some = torch.randperm(500, generator=stream)[:40]
    uniform = exact[:, some] @ torch.linalg.pinv(exact[some][:, some], hermitian=True) @ exact[some]
    left = [(exact - each).diagonal() for each in (uniform, factor @ factor.T, sampled @ sampled.T)]
    assert float(left[1].max()) < float(left[0].max())
    assert float(left[2].sum()) < float(left[0].sum())


@pytest.mark.parametrize("how", WAYS)
def test_known_landmarks_have_the_root_with_which_they_were_chosen(how):
    values = torch.cat(rows(200)[:2], -1)
    found = landmarks(values, 50, how, 3)
    again = landmarks_at(values, found.chosen.double(), 50, how, 3)
    assert torch.equal(again.chosen, found.chosen)
    assert torch.equal(again.centres, found.centres)
    assert torch.equal(again.root, found.root)
    torch.testing.assert_close(found.root @ found.root.T, gaussian(found.centres, found.centres))


@pytest.mark.parametrize("how", WAYS)
@pytest.mark.parametrize("wrong", [0.5, 200.0, -1.0, torch.nan])
def test_places_of_no_rows_are_refused(how, wrong):
    values = torch.cat(rows(200)[:2], -1)
    chosen = landmarks(values, 20, how, 0).chosen.double()
    chosen[4] = wrong
    with pytest.raises(ValueError, match="expected places of landmarks among 200 rows; got others"):
        landmarks_at(values, chosen, 20, how, 0)


def test_known_landmarks_that_repeat_are_refused():
    values = torch.cat(rows(30)[:2], -1)
    with pytest.raises(ValueError, match="pivots that are independent; row 3 is none beside the others"):
        landmarks_at(values, torch.tensor([3.0, 3.0]).double(), 20, "pivoted", 0)


def test_a_regression_makes_each_block_once():
    made = []
    blocks = in_blocks(rows(50), 7).map(lambda place, each: made.append(place) or each)
    found = regressed(blocks, lambda each: each[0], lambda each: each[4], 2.0)
    assert made == list(range(8))
    phi, targets = rows(50)[0], rows(50)[4]
    moment = phi.T @ phi + 2.0 * torch.eye(2).double()
    expected = torch.linalg.solve(moment, phi.T @ targets)
    torch.testing.assert_close(found.theta, expected)
    torch.testing.assert_close(found.factor @ found.factor.T, moment)
    torch.testing.assert_close(found.total, phi.sum(0))
    torch.testing.assert_close(found.explained, (targets * (phi @ expected)).sum(0))
