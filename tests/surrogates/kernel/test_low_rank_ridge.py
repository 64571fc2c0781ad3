import pytest
import torch

from rehearsal_torch.data.tables.blocks import in_blocks
from rehearsal_torch.surrogates.kernel import low_rank_ridge
from rehearsal_torch.surrogates.kernel.low_rank_ridge import LowRankRidge, pivoted_cholesky, regressed
from rehearsal_torch.surrogates.kernel.product_kernel import gaussian
from rehearsal_torch.surrogates.kernel.product_ridge import ProductRidge
from tests.toys.confounded import fitted, points, rows

WIDTHS = [1.2, 0.9, 0.6]


def asked(estimator, contexts, actions):
    prepared = estimator.prepare(contexts)
    of_actions = [
        estimator.value(prepared, actions),
        estimator.value(prepared, actions, 1),
        estimator.std(prepared, actions),
    ]
    return torch.cat([each.flatten() for each in of_actions]), estimator.support(prepared, actions[0])


@pytest.mark.parametrize("covariates", [0, 1])
@pytest.mark.parametrize("how", ["pivoted", "sampled", "uniform"])
def test_all_rows_as_landmarks_are_exact(how, covariates):
    examples, where = rows(150, covariates=covariates), points()
    exact, support = asked(fitted(ProductRidge(fixed=WIDTHS), *examples), *where)
    found, near = asked(fitted(LowRankRidge(fixed=WIDTHS, rank=150, landmarks=how), *examples), *where)
    assert torch.allclose(found, exact, atol=1e-6)
    assert torch.allclose(near, support, atol=1e-5)


@pytest.mark.parametrize("how", ["pivoted", "sampled", "uniform"])
def test_more_landmarks_are_nearer(how):
    examples, where = rows(400), points()
    exact, _ = asked(fitted(ProductRidge(fixed=WIDTHS), *examples), *where)
    off, said = [], []
    for rank in (20, 80, 240):
        estimator = fitted(LowRankRidge(fixed=WIDTHS, rank=rank, landmarks=how), *examples)
        assert len(estimator.actions) <= rank
        off.append(float((asked(estimator, *where)[0] - exact).abs().max()))
        said.append(estimator.approximation()["outcome_frobenius"])
    assert off[2] < off[0] / 4
    assert said[0] > said[1] > said[2]


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


def test_landmarks_do_not_repeat_rows():
    once = rows(40)
    twice = tuple(torch.cat([each, each]) for each in once)
    for how in ("pivoted", "sampled", "uniform"):
        assert len(fitted(LowRankRidge(fixed=WIDTHS, rank=80, landmarks=how), *twice).actions) <= 40


def test_wrong_settings_are_refused():
    with pytest.raises(ValueError, match="expected"):
        LowRankRidge(rank=0)


def test_unknown_landmarks_are_refused():
    with pytest.raises(ValueError, match="landmarks"):
        LowRankRidge(landmarks="random").solve(*rows(30))


@pytest.mark.parametrize("covariates", [0, 1])
@pytest.mark.parametrize("widths", ["median", pytest.param("leave_one_out", marks=pytest.mark.slow)])
@pytest.mark.parametrize("how", ["pivoted", "sampled", "uniform"])
def test_rows_in_blocks_give_the_estimator_of_all_rows(how, widths, covariates, monkeypatch):
    examples, where = rows(400, covariates=covariates), points()
    # Once with all rows as candidates for landmarks, and once with some.
    for candidates in (400, 150):
        monkeypatch.setattr(low_rank_ridge, "CANDIDATES", candidates)
        made = [LowRankRidge(widths=widths, rank=30, landmarks=how) for _ in range(2)]
        made[0].solve(*examples)
        made[1].solve_blocks(in_blocks(examples[:5], 37))
        expected, found = (asked(each, *where) for each in made)
        torch.testing.assert_close(found, expected, rtol=1e-10, atol=1e-10)
        torch.testing.assert_close(made[1].errors, made[0].errors, rtol=1e-10, atol=1e-10)
        assert torch.equal(made[1].centres, made[0].centres)


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
