"""What Tsirtsis and Gomez-Rodriguez (2023) prove, as tests."""

import random
from collections.abc import Sequence
from itertools import combinations, pairwise

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from rehearsal_torch.objectives.counterfactual_return import CounterfactualReturn
from rehearsal_torch.search.sequences.astar import Anchors, AStar, LipschitzBound, MonteCarlo, value_constants
from rehearsal_torch.search.sequences.baselines import GreedyChanges, RandomChanges, TopK
from rehearsal_torch.search.sequences.decision_process import CounterfactualProcess, Effort
from rehearsal_torch.search.sequences.exhaustive import Exhaustive
from reproduction.sepsis.facility_location import FacilityLocation
from tests.toys.episodes import equation_episode, partition_episode, transition_episode, value
from tests.toys.published_astar import published


@st.composite
def objectives(draw: st.DrawFn, horizon: int = 7, changes: int = 3, actions: int = 5) -> CounterfactualReturn:
    """Small random instances: T <= 7, k <= 3, A <= 5, D <= 4, some steps fixed, learnt or known, reward with
    or without the action."""
    seed = draw(st.integers(0, 2**32 - 1))
    # Sizes are uniform given the seed: hypothesis alone would draw mostly trees of two or three nodes. The
    # larger of two draws, for the same reason.
    size = random.Random(seed)
    T, k, width, A = (
        max(size.randint(low, high), size.randint(low, high))
        for low, high in ((2, horizon), (0, changes), (1, 4), (1, actions))
    )
    fixed = sorted(size.sample(range(T), size.choice((0, 0, 1, 2))))
    if A > 1 and size.random() < 0.5:
        return transition_episode(seed % 10**6, T, k, width, A, fixed=fixed)
    return equation_episode(seed % 10**6, T, k, width, A, fixed=fixed, acts=size.random() < 0.5)


def strategies(objective: CounterfactualReturn) -> list[Anchors]:
    pool = torch.randn(
        60,
        objective.trajectory.states.shape[1],
        generator=torch.Generator().manual_seed(0),
        dtype=torch.float64,
    )
    return [MonteCarlo(8), MonteCarlo(None, 30, "uniform"), FacilityLocation(pool, 15)]


@settings(max_examples=40, derandomize=True, deadline=None)
@given(objectives())
def test_the_optimum_is_found_with_every_anchor_strategy(objective: CounterfactualReturn) -> None:
    """Sec. 4: A* with a consistent heuristic is optimal; here with the shortcuts, each alone and all
    together."""
    best = Exhaustive()(objective).value
    for anchors in strategies(objective):
        for search in (
            AStar(anchors),
            AStar(anchors, batch=8, incumbent=False),
            AStar(anchors, exact=False),
            AStar(anchors, pooled=True, lookahead=True),
        ):
            decision = search(objective)
            assert decision.value == pytest.approx(best, abs=1e-8)
            assert decision.trace["gap"] == 0.0
    assert GreedyChanges()(objective).value <= best + 1e-9
    assert TopK()(objective).value <= best + 1e-9
    assert RandomChanges(5)(objective).value <= best + 1e-9


@settings(max_examples=60, derandomize=True, deadline=None)
@given(objectives())
def test_the_published_algorithm_finds_the_optimum(objective: CounterfactualReturn) -> None:
    """Algorithm 2 with pooled anchors, Eq. 11 and one node at a time."""
    best = Exhaustive()(objective).value
    for anchors in strategies(objective):
        assert published(anchors)(objective).value == pytest.approx(best, abs=1e-8)


@settings(max_examples=60, derandomize=True, deadline=None)
@given(objectives(horizon=5, changes=2, actions=3), st.integers(0, 100))
def test_lemma_5_values_are_lipschitz(objective: CounterfactualReturn, seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    lipschitz = value_constants(objective)
    for time in range(objective.horizon):
        centre = objective.trajectory.states[time]
        first, second = centre + torch.randn(
            2, 20, len(centre), generator=generator, dtype=torch.float64
        ) * torch.logspace(-3, 0, 20).to(centre).unsqueeze(-1)
        distance = torch.linalg.vector_norm(first - second, dim=-1)
        for spent in range(objective.changes + 1):
            moved = (value(objective, first, time, spent) - value(objective, second, time, spent)).abs()
            assert (moved <= lipschitz[time] * distance + 1e-10).all()


@settings(max_examples=40, derandomize=True, deadline=None)
@given(objectives(horizon=5, changes=2, actions=3), st.booleans(), st.integers(0, 2))
def test_proposition_6_anchors_are_bounded_from_above(
    objective: CounterfactualReturn, exact: bool, strategy: int
) -> None:
    bound = bounds(objective, strategy, exact)
    for time, anchors in enumerate(bound.anchors):
        for spent in range(objective.changes + 1):
            truth = value(objective, anchors, time, spent)
            assert (bound.values[time][:, spent] >= truth - 1e-13 * (1 + truth.abs())).all()


@settings(max_examples=40, derandomize=True, deadline=None)
@given(objectives(horizon=5, changes=2, actions=3), st.booleans(), st.integers(0, 2), st.integers(0, 100))
def test_both_heuristics_are_admissible_anywhere(
    objective: CounterfactualReturn, exact: bool, strategy: int, seed: int
) -> None:
    bound, generator = bounds(objective, strategy, exact), torch.Generator().manual_seed(seed)
    for time in range(objective.horizon):
        states = objective.trajectory.states[time] + torch.randn(
            15, objective.trajectory.states.shape[1], generator=generator, dtype=torch.float64
        )
        every = list(range(objective.changes + 1))
        truth = torch.stack([value(objective, states, time, spent) for spent in every], -1)
        rounding = 1e-13 * (1 + truth.abs())
        assert (bound.at(states, time, every) >= truth - rounding).all()
        assert (bound.ahead(states, time, every) >= truth - rounding).all()
        assert (bound.interpolated(states, time, every) >= truth - rounding).all()


@settings(max_examples=40, derandomize=True, deadline=None)
@given(objectives(horizon=5, changes=2, actions=3), st.integers(0, 2), st.integers(0, 100))
def test_theorem_7_the_heuristic_is_consistent(
    objective: CounterfactualReturn, strategy: int, seed: int
) -> None:
    """h(x, l, t) >= R(x, a) + h(F_t(x, a), l_a, t + 1) for every action that is allowed."""
    bound, generator = (
        bounds(objective, strategy, exact=False, pooled=True),
        torch.Generator().manual_seed(seed),
    )
    process = bound.process
    for time in range(objective.horizon - 1):
        states = objective.trajectory.states[time] + torch.randn(
            10, objective.trajectory.states.shape[1], generator=generator, dtype=torch.float64
        )
        rewards = process.rewards(states, time)
        for spent in range(objective.changes + 1):
            here = bound.ahead(states, time, [spent])[:, 0]
            kept = (
                process.kept(rewards, time) + bound.ahead(process.keep(states, time), time + 1, [spent])[:, 0]
            )
            # The bounds carry a margin each, one more at every step further from the end.
            assert (here >= kept - 2 * bound.margin - 1e-12).all()
            if spent < objective.changes and len(process.others[time]):
                ahead = bound.ahead(process.branch(states, time).flatten(0, 1), time + 1, [spent + 1]).view(
                    len(states), -1
                )
                assert (
                    here.unsqueeze(-1) >= process.changed(rewards, time) + ahead - 2 * bound.margin - 1e-12
                ).all()


def bounds(
    objective: CounterfactualReturn, strategy: int, exact: bool, pooled: bool = False
) -> LipschitzBound:
    process = CounterfactualProcess(objective, Effort())
    lipschitz = value_constants(objective)
    anchors = strategies(objective)[strategy if objective.changes and len(objective.open) else 2](
        process, lipschitz
    )
    if pooled:
        anchors = [torch.cat(anchors)] * objective.horizon
    return LipschitzBound(process, anchors, lipschitz, exact)


@settings(max_examples=40, derandomize=True, deadline=None)
@given(st.integers(0, 10**6), st.integers(2, 6), st.booleans())
def test_more_changes_are_never_worse(seed: int, horizon: int, acts: bool) -> None:
    values = [
        AStar(MonteCarlo(8))(equation_episode(seed, horizon, changes, acts=acts)).value
        for changes in range(4)
    ]
    assert all(later >= earlier - 1e-9 for earlier, later in pairwise(values))


def splits(numbers: Sequence[int]) -> bool:
    """Whether some of the numbers sum to half of all."""
    return any(
        2 * sum(some) == sum(numbers)
        for size in range(len(numbers) + 1)
        for some in combinations(numbers, size)
    )


@pytest.mark.parametrize(
    ("numbers", "possible"),
    [
        ((1, 1), True),
        ((1, 2), False),
        ((3, 1, 2), True),
        ((1, 1, 1), False),
        ((5, 4, 3, 2), True),
        ((8, 1, 1, 2), False),
        ((7, 5, 3, 2, 1), True),
    ],
)
def test_theorem_4_partition_problems(numbers: tuple[int, ...], possible: bool) -> None:
    objective = partition_episode(numbers)
    assert objective.outcome() == -sum(numbers) / 2
    assert possible == splits(numbers)
    for search in (Exhaustive(), AStar(MonteCarlo(10)), published(MonteCarlo(10))):
        assert (search(objective).value == 0) == possible


@settings(max_examples=60, derandomize=True, deadline=None)
@given(st.lists(st.integers(1, 12), min_size=2, max_size=7))
def test_theorem_4_a_partition_exists_if_and_only_if_the_optimum_is_zero(numbers: list[int]) -> None:
    objective = partition_episode(numbers)
    decision = AStar(MonteCarlo(10))(objective)
    assert (decision.value == 0) == splits(numbers)
    if decision.value == 0:
        added = [
            number
            for number, action in zip(numbers, objective.sequence(decision).tolist(), strict=True)
            if action == 0
        ]
        assert 2 * sum(added) == sum(numbers)
