import pytest
import torch

from rehearsal_torch.search.alterations.pool_bayes_opt import explored

GRID = torch.linspace(-2, 3, 81, dtype=torch.float64)
PEAKS = torch.tensor([-1.4, 0.3, 2.2], dtype=torch.float64)
POOLS = torch.stack(
    [GRID[torch.randperm(81, generator=torch.Generator().manual_seed(row))] for row in range(3)]
).unsqueeze(-1)
ALL = torch.ones(3, 81, dtype=torch.bool)


def peaked(points):
    """One peak a pool, of different heights and units."""
    scale = torch.tensor([[1.0], [1e3], [1e-3]], dtype=torch.float64)
    return scale[: len(points)] * torch.exp(-(points[..., 0] - PEAKS[: len(points), None]).square())


def found(result, pools=POOLS):
    rows = torch.arange(len(pools))
    return pools[rows, result.places[rows, result.values.argmax(1)], 0]


@pytest.mark.slow
@pytest.mark.parametrize("acquisition", ["log_ei", "ucb"])
def test_peaks_are_found_with_a_fraction_of_the_evaluations(acquisition):
    result = explored(peaked, POOLS, ALL, 5, 9, acquisition)
    assert result.values.shape == (3, 14)
    assert torch.equal(result.values, peaked(POOLS.gather(1, result.places.unsqueeze(-1))))
    assert (found(result) - PEAKS).abs().max() < 0.15
    alone = explored(peaked, POOLS[:1], ALL[:1], 5, 9, acquisition)
    assert alone.values.max() > 0.97


def test_evaluating_everything_finds_the_best_point():
    assert (found(explored(peaked, POOLS, ALL, 1, 0, "every")) - PEAKS).abs().max() <= 5 / 80
    assert explored(peaked, POOLS[:, :6], ALL[:, :6], 4, 3, "log_ei").values.shape == (3, 6)


@pytest.mark.parametrize("acquisition", ["log_ei", "ucb", "every"])
def test_points_that_do_not_count_are_never_asked(acquisition):
    valid = torch.arange(81) < torch.tensor([[81], [3], [1]])
    result = explored(peaked, POOLS, valid, 5, 4, acquisition)
    assert valid.gather(1, result.places).all()
    assert set(result.places[1].tolist()) == {0, 1, 2}
    assert set(result.places[2].tolist()) == {0}


def test_a_function_that_does_not_vary_is_no_trouble():
    result = explored(lambda points: torch.ones_like(points[..., 0]), POOLS, ALL, 3, 3, "log_ei")
    assert (result.values == 1).all()


def test_several_dimensions():
    pools = torch.rand(2, 200, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    result = explored(
        lambda points: -(points - 0.6).square().sum(-1),
        pools,
        torch.ones(2, 200, dtype=torch.bool),
        6,
        10,
        "log_ei",
    )
    assert (result.values.amax(1) > -0.01).all()
