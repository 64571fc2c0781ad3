import pytest
import torch

from rehearsal_torch.data.tables.blocks import in_blocks
from rehearsal_torch.surrogates.kernel import low_rank_ridge
from rehearsal_torch.surrogates.kernel.low_rank_ridge import LowRankRidge
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
@pytest.mark.parametrize("widths", ["median", pytest.param("leave_one_out", marks=pytest.mark.bench)])
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


@pytest.mark.parametrize("covariates", [0, 1])
@pytest.mark.parametrize("how", ["pivoted", "sampled", "uniform"])
def test_what_files_leave_out_follows_from_the_rows_to_the_last_bit(how, covariates):
    estimator = fitted(LowRankRidge(rank=60, landmarks=how), *rows(200, covariates=covariates))
    names = ["root", "factor", "embedding", "cover"] if covariates else ["root", "factor"]
    assert list(estimator.derivable()) == names
    for name, size in estimator.derivable().items():
        assert estimator.derive(name).shape == size
        assert torch.equal(estimator.derive(name), estimator.get_buffer(name)), name


def test_rows_are_kept_only_where_they_are_fewer_numbers_than_the_factors():
    examples = rows(300)
    assert fitted(LowRankRidge(rank=40), *examples).inputs.shape == (300, 4)
    for estimator in (fitted(LowRankRidge(rank=15), *examples), LowRankRidge(rank=40)):
        if not estimator.fitted:
            estimator.solve_blocks(in_blocks(examples, 100))
        assert estimator.derivable() == {}
        assert not any(estimator.get_buffer(name).numel() for name in estimator._sources)
        assert estimator.faults() == []


def test_a_fit_without_covariates_keeps_nothing_of_one_with():
    estimator = fitted(fitted(LowRankRidge(rank=40), *rows(100)), *rows(100, covariates=0))
    again = fitted(LowRankRidge(rank=40), *rows(100, covariates=0))
    assert estimator.faults() == []
    for name, value in again.state_dict().items():
        assert torch.equal(estimator.state_dict()[name], value), name


def test_rows_of_other_columns_are_a_fault():
    estimator = fitted(LowRankRidge(rank=40), *rows(100))
    estimator.inputs = estimator.inputs[:, :-1]
    assert estimator.faults() == ["inputs: expected the size (r, 4); got (100, 3)"]
