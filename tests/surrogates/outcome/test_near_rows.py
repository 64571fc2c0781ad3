"""Which points have rows near, in tables whose actions leave more or less open."""

import math

import pytest
import torch

from rehearsal_torch.surrogates.outcome import near_rows
from rehearsal_torch.surrogates.outcome.near_rows import LEAST, NearRows


def drawn(count: int = 1000, seed: int = 0) -> torch.Tensor:
    return torch.randn(count, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def fitted(rows: torch.Tensor, left: torch.Tensor, drawn: range = range(0)) -> NearRows:
    made = NearRows(drawn)
    made.solve(rows, left, left)
    return made


def far(near: NearRows, rows: torch.Tensor, left: torch.Tensor) -> torch.Tensor:
    return near.far(near.around(near.observed(rows)), left, left)


def share(near: NearRows, rows: torch.Tensor, left: torch.Tensor) -> float:
    return float(far(near, rows, left).to(torch.float64).mean())


def test_most_rows_are_near_the_others_and_strange_actions_are_not() -> None:
    rows, noise = drawn(), drawn(seed=1)[:, :1]
    near, fresh = fitted(rows, 0.15 * noise), drawn(seed=2)
    assert share(near, fresh, 0.15 * drawn(seed=3)[:, :1]) < 0.1
    assert share(near, fresh, torch.full((1000, 1), 0.6, dtype=torch.float64)) > 0.95
    assert (
        share(near, torch.full((1, 2), 9.0, dtype=torch.float64), torch.zeros(1, 1, dtype=torch.float64)) == 1
    )


def test_freedom_is_that_of_comparable_rows() -> None:
    rows = drawn()
    tight = rows[:, :1] > 0
    noise = torch.where(tight, 0.1, 1.0) * drawn(seed=1)[:, :1]
    near, one = fitted(rows, noise), torch.ones(2, 1, dtype=torch.float64)
    points = torch.tensor([[1.0, 0.0], [-1.0, 0.0]], dtype=torch.float64)
    assert far(near, points, one).tolist() == [True, False]


def test_actions_that_never_vary_are_near_at_their_value_alone() -> None:
    rows = drawn()
    near = fitted(rows, torch.zeros(1000, 1, dtype=torch.float64))
    at = torch.zeros(1, 2, dtype=torch.float64)
    assert not far(near, at, torch.zeros(1, 1, dtype=torch.float64)).any()
    assert far(near, at, torch.full((1, 1), 0.01, dtype=torch.float64)).all()


def test_rows_of_few_values_are_near_around_them_and_draws_are_moved_to_them() -> None:
    values = torch.arange(1000, dtype=torch.float64) % 2
    rows = torch.stack((values, drawn()[:, 0]), -1)
    near = fitted(rows, drawn(seed=1)[:, :1], drawn=range(1))
    assert float(near.radii.min()) >= LEAST
    between = torch.tensor([[0.3, 0.0], [0.0, 0.0]], dtype=torch.float64)
    moved = near.observed(between)
    assert moved.tolist() == [[0.0, 0.0], [0.0, 0.0]]
    # A dose of 0, of which the habit at the moved covariates is taken.
    assert far(near, between, -moved[:, :1]).tolist() == [False, False]


def test_too_few_rows_tell_nothing() -> None:
    assert not fitted(drawn(5), drawn(5, seed=1)[:, :1]).known
    assert fitted(drawn(6), drawn(6, seed=1)[:, :1]).known


@pytest.mark.parametrize("spread", [0.1, 0.3])
def test_doses_of_rows_with_the_same_value_of_a_covariate_are_near(spread: float) -> None:
    """Draws are means with residuals: what they are moved to is where the habit is asked, too."""
    values = (torch.arange(1000) % 2).to(torch.float64).unsqueeze(-1)
    noise = spread * drawn(seed=1)[:, :1]
    near = fitted(values, noise, drawn=range(1))
    points = values + 0.3 * drawn(seed=2)[:, :1].clamp(-1.6, 1.6)
    mixed = 2 * torch.randperm(500, generator=torch.Generator().manual_seed(3))
    doses = 2 * values + torch.stack((noise[mixed], noise[mixed + 1]), 1).reshape(1000, 1)
    habit = 2 * near.observed(points)
    assert share(near, points, doses - habit) < 0.1
    assert far(near, points[:2], 1 - habit[:2]).tolist() == [True, True]


@pytest.mark.parametrize("width", [0, 1])
def test_the_order_of_the_rows_does_not_matter(width: int) -> None:
    values = (torch.arange(1000) % 2).to(torch.float64).unsqueeze(-1)[:, :width]
    left = torch.where(drawn()[:, :1] > 0, 1.0, -1.0) + 0.1 * drawn(seed=1)[:, :1]
    order = left[:, 0].argsort()
    one, other = fitted(values, left), fitted(values[order], left[order])
    points = torch.zeros(40, width, dtype=torch.float64)
    doses = torch.linspace(-3, 3, 40, dtype=torch.float64).unsqueeze(-1)
    assert torch.allclose(one.radii, other.radii, rtol=1e-6)
    assert far(one, points, doses).equal(far(other, points, doses))
    assert far(one, points[:2], torch.tensor([[9.0], [1.0]], dtype=torch.float64)).tolist() == [True, False]


def test_rows_that_are_repeated_say_what_they_say_once() -> None:
    rows, noise, fresh, other = drawn(300), drawn(300, seed=1)[:, :1], drawn(seed=2), 2 * drawn(seed=3)[:, :1]
    once, often = fitted(rows, noise), fitted(rows.repeat(6, 1), noise.repeat(6, 1))
    assert torch.allclose(once.radii, often.radii, rtol=1e-9)
    assert far(once, fresh, other).equal(far(often, fresh, other))


def test_without_covariates_the_actions_alone_count() -> None:
    near = fitted(torch.zeros(500, 0, dtype=torch.float64), drawn(500)[:, :1])
    points = torch.zeros(2, 0, dtype=torch.float64)
    assert far(near, points, torch.tensor([[0.5], [4.0]], dtype=torch.float64)).tolist() == [False, True]


@pytest.mark.parametrize(
    ("name", "value"), [("radii", [[math.nan, 1.0]]), ("radii", [1.0]), ("open", [[1.0]])]
)
def test_a_damaged_state_is_named(name: str, value: list) -> None:
    near = fitted(drawn(), drawn(seed=1)[:, :1])
    assert near.faults() == []
    setattr(near, name, torch.tensor(value, dtype=torch.float64))
    assert any(name in fault for fault in near.faults())


def test_blocks_of_points_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    near, points, left = fitted(drawn(300), drawn(300, seed=1)[:, :1]), drawn(50, seed=2), drawn(50, seed=3)
    whole = far(near, points, left[:, :1])
    monkeypatch.setattr(near_rows, "CHUNK", 700)
    assert far(near, points, left[:, :1]).equal(whole)


def test_several_actions_at_the_same_points_are_those_of_each() -> None:
    near, points, left = fitted(drawn(300), drawn(300, seed=1)[:, :1]), drawn(50, seed=2), drawn(50, seed=3)
    around, several = near.around(points), torch.stack((left[:, :1], left[:, 1:], 9 + left[:, :1]))
    found = near.far(around, several, several)
    assert found.shape == (3, 50)
    for one, own in zip(found, several, strict=True):
        assert one.equal(near.far(around, own, own))
    assert found[2].all()


@pytest.mark.parametrize(("count", "share"), [(1000, 0.5), (1000, 0.03), (20_000, 0.02)])
def test_a_level_that_few_rows_have_at_random_has_rows_near(count, share) -> None:
    """It was once far everywhere, as less than one row in forty had it."""
    rows, stream = drawn(count), torch.Generator().manual_seed(1)
    level = (torch.rand(count, 1, generator=stream) < share).double()
    near = NearRows([], 1000, [0])
    near.solve(rows, level - level.mean(), level)
    for value in (0.0, 1.0):
        at = torch.full((200, 1), value, dtype=torch.float64)
        assert float(near.far(near.around(drawn(200, 5)), at - level.mean(), at).double().mean()) < 0.2


def test_a_level_is_far_where_only_others_are_given_and_unknown_ones_everywhere() -> None:
    rows = drawn()
    level = (rows[:, :1] > 0).double()
    near = NearRows([], 1000, [0])
    near.solve(rows, level - level.mean(), level)
    points = torch.tensor([[1.5, 0.0], [-1.5, 0.0]], dtype=torch.float64)
    for value, expected in ((1.0, [False, True]), (0.0, [True, False]), (2.0, [True, True])):
        at = torch.full((2, 1), value, dtype=torch.float64)
        assert near.far(near.around(points), at - level.mean(), at).tolist() == expected


def test_where_no_level_has_more_than_five_rows_they_are_compared_together() -> None:
    """An empty minimum once ended the fit."""
    rows, level = drawn(40), (torch.arange(40.0) % 8).double().unsqueeze(-1)
    near = NearRows([], 1000, [0])
    near.solve(rows, level - level.mean(), level)
    at = torch.full((20, 1), 4.0, dtype=torch.float64)
    assert near.radii.shape == (1, 2)
    assert not near.far(near.around(drawn(20, 1)), at - level.mean(), at).all()


def test_a_level_that_hardly_any_row_has_is_far_everywhere():
    """Sixteen scattered rows of 1,600 once had every case within their reach."""
    rows, level = drawn(1600), (torch.arange(1600) % 100 == 0).double().unsqueeze(-1)
    near = NearRows([], 2000, [0])
    near.solve(rows, level - level.mean(), level)
    at = torch.ones(200, 1, dtype=torch.float64)
    assert near.far(near.around(drawn(200, 5)), at - level.mean(), at).all()
    assert not near.far(near.around(drawn(200, 5)), -level.mean() * at, 0 * at).all()
