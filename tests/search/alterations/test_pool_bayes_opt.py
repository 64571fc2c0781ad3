from types import SimpleNamespace

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


def test_as_many_evaluations_as_points_evaluate_all_at_once_in_their_order():
    calls = []

    def counted(points):
        calls.append(points.shape[1])
        return peaked(points)

    result = explored(counted, POOLS[:, :6], ALL[:, :6], 4, 2, "log_ei")
    assert (calls, result.places.tolist()) == ([6], [[*range(6)]] * 3)
    calls.clear()
    result = explored(counted, POOLS[:, :7], ALL[:, :7], 4, 2, "log_ei")
    assert calls == [4, 1, 1]
    assert result.places[:, :4].tolist() == [[0, 1, 2, 3]] * 3
    assert all(len(set(row)) == 6 for row in result.places.tolist()), "no point twice"


def test_a_budget_ends_it_between_evaluations():
    asked = []
    budget = SimpleNamespace(out=lambda: asked.append(0) or len(asked) > 1)
    result = explored(peaked, POOLS, ALL, 4, 5, "ucb", budget=budget)
    assert result.values.shape == (3, 5)


def test_points_and_values_in_other_units_are_asked_in_the_same_order():
    pools = torch.rand(2, 30, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    valid = torch.ones(2, 30, dtype=torch.bool)
    held = torch.full((2, 30, 1), 7.0, dtype=torch.float64)

    def bowl(points):
        return -(points[..., :2] - 0.6).square().sum(-1)

    def elsewhere(points):
        return 1e4 * bowl((points - torch.tensor([-3e3, 50.0])) / torch.tensor([1e3, 4.0])) + 1e4

    moved = pools * torch.tensor([1e3, 4.0]) + torch.tensor([-3e3, 50.0])
    one = explored(bowl, pools, valid, 4, 3, "log_ei").places
    assert torch.equal(explored(elsewhere, moved, valid, 4, 3, "log_ei").places, one)
    # A coordinate that is the same everywhere is no trouble.
    assert explored(bowl, torch.cat([pools, held], -1), valid, 4, 3, "ucb").values.isfinite().all()


@pytest.mark.parametrize(("kappa", "far"), [(0.0, False), (1e3, True)])
def test_a_wide_bound_looks_far_away_and_a_narrow_one_beside_the_best(kappa, far):
    line = torch.arange(21.0, dtype=torch.float64).reshape(1, 21, 1)
    valid = torch.ones(1, 21, dtype=torch.bool)
    result = explored(lambda points: points[..., 0] / 20, line, valid, 4, 1, "ucb", kappa)
    assert (int(result.places[0, -1]) > 12) == far


@pytest.mark.parametrize("acquisition", ["log_ei", "ucb"])
def test_undefined_values_count_as_the_smallest(acquisition):
    # Of those that are asked first, the second has the smallest finite value.
    hole = GRID.reshape(1, 81, 1)[:, ::4]
    valid = torch.ones(1, hole.shape[1], dtype=torch.bool)

    def value(points):
        return torch.where(points[..., 0] < -1.5, torch.nan, -(points[..., 0] - 1).square())

    def lowest(points):
        return torch.where(points[..., 0] < -1.5, -5.0625, -(points[..., 0] - 1).square())

    start = hole[:, [0, 3, 20, 10, *(place for place in range(21) if place not in (0, 3, 20, 10))]]
    one, other = (explored(each, start, valid, 4, 2, acquisition) for each in (value, lowest))
    assert torch.equal(one.places, other.places)
    assert one.values[0, 0].isnan()
