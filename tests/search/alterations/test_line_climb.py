"""Climbing over kinks: closed forms, coupled coordinates, jumps, and "keep it" to the last bit."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from rehearsal_torch.search.alterations.line_climb import climb, evaluated
from rehearsal_torch.search.budget import Budget

DOUBLE = torch.float64
sizes = st.floats(0.0, 5.0)


def row(*values):
    return torch.tensor([values], dtype=DOUBLE)


def best(value, lower, upper, origin, *starts):
    points, values = climb(value, torch.stack([origin, *starts]), lower, upper, origin)
    which = values[:, 0].argmax()
    return points[which, 0], float(values[which, 0])


def bowl(peak, curvature, cost, origin, jump=0.0):
    def value(actions):
        moved = actions - origin
        smooth = -0.5 * (curvature * (actions - peak).square()).sum(-1)
        return smooth - (cost * moved.abs()).sum(-1) - jump * (moved != 0).to(actions).sum(-1)

    return value


@given(st.floats(-3, 3), st.floats(-3, 3), sizes, st.floats(0.2, 4))
def test_one_coordinate_reaches_the_soft_threshold(peak, origin, cost, curvature):
    found, _ = best(bowl(row(peak), curvature, cost, row(origin)), row(-3.0), row(3.0), row(origin))
    way = peak - origin
    expected = origin + (1 if way > 0 else -1) * max(abs(way) - cost / curvature, 0.0)
    assert float(found) == pytest.approx(expected, abs=2e-3)
    if abs(way) * curvature < cost - 1e-6:
        assert float(found) == origin


def test_what_can_be_had_from_either_action_is_had_from_the_cheaper_one():
    # A concave function of z1 + 2 z2: z2 moves it for half the price.
    def value(actions):
        total = actions[..., 0] + 2 * actions[..., 1]
        return -0.5 * (total - 3).square() - actions.abs() @ torch.tensor([1.0, 1.0], dtype=DOUBLE)

    found, reached = best(value, row(-4.0, -4.0), row(4.0, 4.0), row(0.0, 0.0), row(3.0, 0.0), row(1.0, 1.0))
    # d/dz2: 2 (3 - t) = 1, t = 2.5
    assert found.tolist() == pytest.approx([0.0, 1.25], abs=2e-3)
    assert float(found[0]) == 0.0
    assert reached == pytest.approx(-0.125 - 1.25, abs=1e-5)


@pytest.mark.parametrize(("jump", "expected"), [(0.4, 1.0), (0.6, 0.0)])
def test_a_cost_of_any_change_is_paid_only_if_it_pays(jump, expected):
    # The whole way is worth 1/2.
    found, _ = best(bowl(row(1.0), 1.0, 0.0, row(0.0), jump), row(-2.0), row(2.0), row(0.0))
    assert float(found) == pytest.approx(expected, abs=2e-3)


def test_the_answer_for_a_case_does_not_depend_on_the_cases_beside_it():
    peaks = torch.tensor([[1.0, -1.0], [0.1, 2.0], [-2.0, 0.3]], dtype=DOUBLE)
    cost, zeros = torch.tensor([0.3, 0.7], dtype=DOUBLE), torch.zeros(3, 2, dtype=DOUBLE)
    lower, upper = zeros - 3, zeros + 3
    starts = torch.stack([zeros, zeros + 2, zeros - 1])
    points, values = climb(bowl(peaks, 1.0, cost, zeros), starts, lower, upper, zeros)
    for case in range(3):
        one = slice(case, case + 1)
        alone = climb(
            bowl(peaks[one], 1.0, cost, zeros[one]), starts[:, one], lower[one], upper[one], zeros[one]
        )
        assert torch.equal(alone[0], points[:, one])
        assert torch.equal(alone[1], values[:, one])


def test_a_coordinate_that_is_held_stays():
    lower, upper = row(0.5, -3.0), row(0.5, 3.0)
    points, _ = climb(
        bowl(row(2.0, 2.0), 1.0, 0.0, row(0.0, 0.0)), row(0.5, 0.0)[None], lower, upper, row(0.0, 0.0)
    )
    assert points[0, 0].tolist() == pytest.approx([0.5, 2.0], abs=2e-3)


def test_what_is_undefined_never_wins_and_a_spent_budget_ends_the_climb():
    def value(actions):
        return torch.where(actions[..., 0] > 0, torch.nan, -actions[..., 0].square())

    assert evaluated(value, row(1.0)[None]).tolist() == [[-torch.inf]]
    points, _ = climb(value, row(-2.0)[None], row(-3.0), row(3.0), row(torch.nan))
    assert -1e-2 < float(points) <= 0
    spent = Budget(1e-9)
    points, _ = climb(
        bowl(row(1.0, 1.0), 1.0, 0.0, row(0.0, 0.0)),
        row(0.0, 0.0)[None],
        row(-2.0, -2.0),
        row(2.0, 2.0),
        row(0.0, 0.0),
        spent,
    )
    assert spent.ran_out
    assert float(points[0, 0, 1]) == 0.0


class Recorded:
    """A function of actions, and where it was evaluated."""

    def __init__(self, value):
        self.value, self.seen = value, []

    def __call__(self, actions):
        self.seen.append(actions.clone())
        return self.value(actions)

    def counts(self):
        return [len(each) for each in self.seen]


def test_a_line_has_a_grid_and_finer_ones_around_the_best_each_a_third_as_wide():
    peak, value = 13.37, Recorded(lambda actions: -(actions[..., 0] - 13.37).abs())
    points, _ = climb(value, row(3.0)[None], row(0.0), row(24.0), row(5.5))
    assert value.counts() == [1, 26] + [7] * 6
    grid = [*range(25), 5.5]
    assert value.seen[1].flatten().tolist() == pytest.approx(grid)
    best, width = 13.0, 1.0
    for each in value.seen[2:]:
        expected = [best + width * share / 3 for share in range(-3, 4)]
        assert each.flatten().tolist() == pytest.approx(expected)
        best, width = min([best, *expected], key=lambda z: abs(z - peak)), width / 3
    assert float(points) == pytest.approx(best)


def test_sweeps_are_coarse_at_first_and_at_most_eight():
    # Every evaluation is better than those before.
    value = Recorded(lambda actions: torch.full(actions.shape[:-1], float(len(value.seen)), dtype=DOUBLE))
    start = row(0.5, -0.25)
    climb(value, start[None], row(-2.0, -2.0), row(2.0, 2.0), row(0.0, 0.0))
    first, later = [27, 7, 7] * 3, ([2] + [7] * 6) * 2 + [27, 7, 7]
    assert value.counts() == [1, *first, *later * 7]
    # The third line of a sweep goes through the point before it and the one after.
    change = value.seen[7][:, 0] - start
    after = value.seen[7][0, 0] - start[0]
    assert (change[:, 0] * after[1] - change[:, 1] * after[0]).abs().max() < 1e-12
    assert change.abs().amax(0).min() > 0.5


def test_a_climb_that_no_longer_improves_ends_and_ties_stay():
    value = Recorded(lambda actions: torch.zeros_like(actions[..., 0]))
    start = row(0.5, -0.25)
    points, _ = climb(value, start[None], row(-2.0, -2.0), row(2.0, 2.0), row(0.0, 0.0))
    assert len(value.seen) == 10
    assert torch.equal(points[0], start)


@pytest.mark.parametrize(("upper", "calls"), [((0.5, 3.0), 8), ((0.5, 0.25), 1)])
def test_coordinates_that_are_held_have_no_lines(upper, calls):
    value = Recorded(bowl(row(2.0, 2.0), 1.0, 0.0, row(0.0, 0.0)))
    climb(value, row(0.5, 0.25)[None], row(0.5, 0.25), row(*upper), row(0.0, 0.0))
    assert len(value.seen) == calls


def test_the_two_best_starts_go_on_and_two_keep_their_order():
    # Nothing improves: with a step that is the same everywhere, all starts stay.
    heights = torch.tensor([1.0, 3.0, 2.0], dtype=DOUBLE)
    starts = torch.tensor([[-2.0, -1.0], [0.3, 2.0], [2.0, 0.5]], dtype=DOUBLE)

    def value(actions):
        return heights @ (actions.unsqueeze(-2) == starts).all(-1).to(heights).movedim(-1, 0).flatten(1)

    def reached(some):
        zeros = row(0.0, 0.0)
        at = starts[some].unsqueeze(1)
        points, values = climb(lambda z: value(z).reshape(z.shape[:-1]), at, zeros - 3, zeros + 3, zeros)
        assert torch.equal(value(points), values.flatten())
        return values.flatten().tolist()

    assert reached([0, 1, 2]) == [3.0, 2.0]
    assert reached([0, 2]) == [1.0, 2.0]


@pytest.mark.parametrize("size", [1.0, 1e-7])
def test_a_kink_is_met_exactly_and_not_in_place_of_points_beside_it(size):
    lower, upper, kink = row(-size), row(size), row(0.3 * size)
    # .8 + (.3 - .8) is not .3.
    points, _ = climb(bowl(row(0.2 * size), 1.0, 50.0, kink), row(0.8 * size)[None], lower, upper, kink)
    assert float(points) == float(kink)
    free, _ = best(bowl(row(0.2 * size), 1.0, 0.0, kink), lower, upper, kink)
    assert float(free) == pytest.approx(0.2 * size, rel=1e-2)
