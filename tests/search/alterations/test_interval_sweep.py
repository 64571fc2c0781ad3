from types import SimpleNamespace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from rehearsal_torch.objectives.scenario_success import ScenarioCount, Scenarios
from rehearsal_torch.search.alterations.interval_sweep import (
    Cover,
    best_of,
    intervals,
    line_sweeps,
    meet,
    spread,
    swept,
)
from rehearsal_torch.surrogates.structural.linear_scm import LinearStructural
from rehearsal_torch.training.surrogate_fit import fit
from tests.toys.counted import Counted, bands, cases
from tests.toys.linear_truth import managing


def tiny(seed, count, faces, width, cases=3):
    """Scenarios whose rows are small whole numbers, so that ends coincide often, and a box."""
    stream = torch.Generator().manual_seed(seed)
    gains = torch.randint(-2, 3, (count, faces, width), generator=stream).double()
    slack = torch.randint(-3, 4, (count, cases, faces), generator=stream).double()
    return (
        Scenarios(gains, slack),
        torch.full((cases, width), -2.0, dtype=torch.float64),
        torch.full((cases, width), 2.0, dtype=torch.float64),
    )


@settings(max_examples=25, deadline=None, derandomize=True)
@given(st.integers(0, 10**6), st.integers(1, 12), st.integers(1, 3))
def test_a_sweep_finds_what_trying_everything_finds(seed, count, faces):
    scenarios, lower, upper = tiny(seed, count, faces, 1)
    found, counts = line_sweeps(scenarios, lower, upper, torch.zeros(1, 3, 1, dtype=torch.float64), 1)
    # With whole coefficients up to 2, the count changes at halves only: every quarter of the box is tried.
    grid = torch.linspace(-2, 2, 17, dtype=torch.float64).reshape(-1, 1, 1).expand(-1, 3, 1)
    assert torch.equal(counts[0], scenarios.desired(grid).sum(-2).amax(0))
    assert torch.equal(scenarios.desired(found).sum(-2), counts)
    assert (found.abs() <= 2).all()


@pytest.mark.slow
def test_sweeps_reach_the_optimum_of_linear_worlds():
    world = managing()
    made, cases = fit(LinearStructural(world.task, 3000), world.table(1000)), world.cases(6)
    (one,) = ScenarioCount.for_cases(
        made, cases, search_scenarios=2000, validation_scenarios=800, test_scenarios=200
    ).sets
    reached = [
        world.success(s, dict(zip(one.names, action, strict=True)))
        for s, action in zip(cases, swept(one, 8, 10, 500).tolist(), strict=True)
    ]
    assert sum(reached) / 6 > 0.96  # the optimum is .973


def plain(gains, slack, lower, upper):
    """The ends of one scenario's interval, row by row."""
    for gain, room in zip(gains.tolist(), slack.tolist(), strict=True):
        if gain == 0 and room < 0:
            return torch.inf, -torch.inf
        lower = max(lower, room / gain) if gain < 0 else lower
        upper = min(upper, room / gain) if gain > 0 else upper
    return lower, upper


def test_intervals_are_those_of_half_lines_and_box():
    gains = torch.tensor([[2.0, -1.0], [0.0, 3.0], [0.0, -1.0], [0.0, 0.0], [-4.0, 1e-13]]).double()
    slack = torch.tensor([[[3.0, 1.0]], [[-1.0, 3.0]], [[0.0, 2.5]], [[0.0, 0.0]], [[8.0, 1.0]]]).double()
    slack = (
        torch.cat([slack, slack + 1.0], 1)[None].expand(3, 5, 2, 2) + torch.arange(3.0)[:, None, None, None]
    )
    lower, upper = torch.full((3, 2), -2.0), torch.tensor([[2.0, 1.0]] * 3)
    left, right = intervals(gains, slack, lower, upper)
    flat = gains.where(gains.abs() > 1e-12, 0.0)
    for place in range(3):
        for case in range(2):
            ends = [
                plain(flat[row], slack[place, row, case], -2.0, float(upper[0, case])) for row in range(5)
            ]
            assert (
                list(zip(left[place, :, case].tolist(), right[place, :, case].tolist(), strict=True)) == ends
            )
    nothing = intervals(gains[3:4], slack[:, 3:4] - 1.0, lower, upper)
    assert nothing[0][0].tolist() == [[torch.inf, -2.0]], "rows without an effect hold or do not"


def test_a_budget_ends_the_sweeps_after_a_line():
    scenarios, lower, upper = tiny(3, 12, 2, 3)
    start, asked = torch.zeros(1, 3, 3, dtype=torch.float64), []

    def after(lines):
        return SimpleNamespace(out=lambda: asked.append(0) or len(asked) >= lines)

    found, _ = line_sweeps(scenarios, lower, upper, start, 9, after(1))
    assert len(asked) == 1
    assert (found[..., 1:] == 0).all(), "the first line is the first axis"
    assert (found[..., 0] != 0).any()
    asked.clear()
    line_sweeps(scenarios, lower, upper, start, 9, after(8))
    # Seven lines a sweep; the first one is never asked about.
    assert len(asked) == 8


@pytest.mark.parametrize("same", [True, False], ids=["one box", "boxes of their own"])
def test_a_case_is_swept_as_it_is_alone(same):
    for seed in range(4):
        stream = torch.Generator().manual_seed(seed)
        gains, slack = (torch.randn(40, *each, 3, generator=stream).double() for each in ((2,), (8,)))
        scenarios = Scenarios(gains, 0.7 * slack[..., :2] - 0.3)
        upper = torch.full((8, 3), 2.0, dtype=torch.float64)
        if not same:
            upper = 4 * torch.rand(8, 3, generator=stream, dtype=torch.float64)
            # One that is a point in one variable, and one in all of them.
            upper[2, 1], upper[5] = -2.0, -2.0
        box, starts = [torch.full_like(upper, -2.0), upper], torch.full((1, 8, 3), -2.0, dtype=torch.float64)
        starts[..., 0] = torch.minimum(torch.zeros(8, dtype=torch.float64), upper[:, 0])
        joined, most = line_sweeps(scenarios, *box, starts, 10)
        assert (most > scenarios.desired(starts).sum(-2)).any()
        for case in range(8):
            some = [each[[case]] for each in box]
            alone, count = line_sweeps(scenarios.one(case), *some, starts[:, [case]], 10)
            assert int(count) == int(most[0, case])
            assert torch.allclose(alone[0, 0], joined[0, case], rtol=0, atol=1e-9)


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_where_no_scenario_of_two_boxes_can_be_desired_each_takes_its_least_violation(sign):
    gains = torch.tensor([[[sign, 0.0]]], dtype=torch.float64).expand(5, 1, 2)
    scenarios = Scenarios(gains, torch.full((5, 2, 1), -100.0, dtype=torch.float64))
    lower = torch.tensor([[-2.0, 0.0], [-1.0, 0.0]], dtype=torch.float64)
    upper = torch.tensor([[3.0, 1.0], [7.0, 2.0]], dtype=torch.float64)
    found, counts = line_sweeps(scenarios, lower, upper, torch.zeros(1, 2, 2, dtype=torch.float64), 2)
    assert counts.tolist() == [[0, 0]]
    assert found[0, :, 0].tolist() == ([-2.0, -1.0] if sign > 0 else [3.0, 7.0])


@pytest.mark.parametrize("names", ["a", "ab"])
def test_boxes_far_from_zero_have_the_answers_of_those_at_zero(names):
    found = [(0, 4), (1, 5), (2, 6), (3, 7)]
    one = Counted(
        cases(tuple(names), (-10.0, 10.0), (1e5 - 10, 1e5 + 10)),
        tuple(names),
        *[bands(found, 0.0, 1e5, direction=[1.0] * len(names))] * 2,
    )
    actions = swept(one, 2, 2, 3) - torch.tensor([[0.0], [1e5]], dtype=torch.float64)
    assert (actions.sum(-1) - 3.5).abs().max() <= 0.5
    assert torch.allclose(actions[0], actions[1], rtol=0, atol=1e-6)
    if names == "a":
        assert actions.flatten().tolist() == [3.5, 3.5]


ENDS = st.lists(st.tuples(st.integers(-6, 6), st.integers(-6, 6)), max_size=14)
GRID = torch.arange(-7, 7.01, 0.25, dtype=torch.float64)


def cover(pairs):
    left, right = (
        torch.tensor([float(pair[side]) for pair in pairs], dtype=torch.float64) for side in (0, 1)
    )
    return Cover.of(left, right)


def inside(pieces, points=GRID):
    return ((pieces[:, 0] <= points[:, None]) & (points[:, None] <= pieces[:, 1])).any(-1)


@settings(max_examples=25, deadline=None, derandomize=True)
@given(ENDS, ENDS, st.integers(1, 3))
def test_unions_meet_where_both_hold(one, other, least):
    first, second = cover(one).at_least(least), cover(other).at_least(least)
    assert torch.equal(inside(meet(first, second)), inside(first) & inside(second))


def test_coinciding_ends_count_as_covered():
    stream = np.random.default_rng(0)
    for _ in range(25):
        pairs = stream.integers(-6, 7, (stream.integers(1, 9), 2)).tolist()
        counts = sum(((low <= GRID) & (high >= GRID)).long() for low, high in pairs)
        for least in (1, 2, 3):
            pieces = cover(pairs).at_least(least)
            assert torch.equal(inside(pieces), counts >= least)
            assert (pieces[1:, 0] > pieces[:-1, 1]).all()
        point, most = cover(pairs).deepest()
        assert most == int(counts.max())
        deepest = cover(pairs).at_least(most) if most else torch.full((1, 2), torch.nan)
        assert np.array_equal(point, float(deepest[0].mean()), equal_nan=True), "the middle of the first"


@pytest.mark.parametrize(
    ("count", "points"),
    [
        (1, [3.0]),
        (2, [3.0, 6.0]),
        (3, [3.0, 6.0, 4.25]),
        (4, [3.0, 6.0, 0.0, 0.5]),
        (5, [3.0, 6.0, 0.0, 0.5, 4.25]),
        (10, [3.0, 6.0, 0.0, 0.5, 2.0, 2.0, 4.25, 5.125, 3.375, 3.8125]),
    ],
)
def test_of_few_points_the_ends_of_the_longest_pieces_come_first(count, points):
    # Then .5, .75, .25, .375 of the whole length of 3.5.
    pieces = torch.tensor([[0.0, 0.5], [2.0, 2.0], [3.0, 6.0]], dtype=torch.float64)
    assert spread(pieces, count).tolist() == points


def test_the_largest_counts_win():
    actions = torch.arange(12.0).reshape(3, 2, 2)
    counts = torch.tensor([[1, 5], [3, 5], [2, 4]])
    assert best_of(actions, counts).tolist() == [[4.0, 5.0], [2.0, 3.0]]
