"""A*: its modes, its limits, and what it says of them. Optimality stands in tests/papers."""

import re

import pytest
import torch

from rehearsal_torch.data.decision import EpisodeCase
from rehearsal_torch.objectives.counterfactual_return import CounterfactualReturn
from rehearsal_torch.objectives.step_reward import LinearReward
from rehearsal_torch.search.search import Budget
from rehearsal_torch.search.sequences.astar import (
    NO_SUM,
    AStar,
    LipschitzBound,
    MonteCarlo,
    UnboundedError,
    value_constants,
)
from rehearsal_torch.search.sequences.decision_process import CounterfactualProcess, Effort
from rehearsal_torch.search.sequences.exhaustive import Exhaustive
from tests.toys.episodes import KnownTruth, equation_episode, transition_episode, value
from tests.toys.published_astar import published
from tests.toys.scored_episodes import weighed_episode


def test_the_gap_shrinks_with_the_nodes() -> None:
    objective = transition_episode(1, 7, 3, 3, 4)
    gaps = [
        AStar(MonteCarlo(20), batch=1, node_limit=limit)(objective).trace["gap"]
        for limit in (1, 10, 50, 1000)
    ]
    assert gaps == sorted(gaps, reverse=True)
    assert gaps[0] > gaps[2]


def test_the_published_order_expands_what_the_theory_asks_for() -> None:
    """Best first expands every node above the optimum and, ties aside, no other; pruning and batches change
    neither."""
    for seed in range(4):
        objective = transition_episode(seed, 6, 2, 2, 4)
        slow = published(MonteCarlo(20))(objective)
        batched = AStar(MonteCarlo(20), pooled=True, exact=False, lookahead=True, batch=64, incumbent=True)(
            objective
        )
        assert slow.actions() == batched.actions()
        assert slow.trace["expanded"] >= batched.trace["expanded"] >= 0.5 * slow.trace["expanded"]


def test_the_shortcuts_expand_fewer_nodes() -> None:
    objective = transition_episode(2, 8, 3, 3, 5)
    fast, slow = AStar(MonteCarlo(50))(objective), published(MonteCarlo(50))(objective)
    assert fast.actions() == slow.actions()
    assert fast.trace["distances"] < slow.trace["distances"] / 5
    assert (
        slow.trace["effective_branching_factor"] < Exhaustive()(objective).trace["effective_branching_factor"]
    )


def test_more_anchors_expand_no_more_nodes() -> None:
    few, many = (
        sum(
            AStar(MonteCarlo(samples))(transition_episode(seed, 7, 3, 3, 4)).trace["expanded"]
            for seed in range(4)
        )
        for samples in (5, 200)
    )
    assert many < few


def test_a_known_sequence_is_improved_and_never_lost():
    for seed in range(4):
        objective = transition_episode(seed, horizon=5, changes=2)
        best = AStar()(objective)
        known = objective.sequence(best)
        stopped = AStar(node_limit=0).improve(objective, known)
        assert stopped.value == pytest.approx(best.value)
        assert AStar(incumbent=False).improve(objective, known).value == pytest.approx(best.value)
        with pytest.raises(ValueError, match="at most 2 changes; got changes=4"):
            AStar().improve(objective, (objective.observed + 1) % objective.actions)


MODES = {
    "default": AStar(MonteCarlo(20)),
    "one by one, from what was observed": AStar(MonteCarlo(20), batch=1, incumbent=False),
    "bounds of leaves": AStar(MonteCarlo(20), exact=False),
    "pooled": AStar(MonteCarlo(20), pooled=True, lookahead=True, batch=8),
    "published": published(MonteCarlo(10)),
}


@pytest.mark.parametrize("mode", MODES)
def test_every_mode_finds_the_optimum_and_proves_it(mode: str) -> None:
    episodes = [
        equation_episode(0, 5, 2, acts=True),
        equation_episode(1, 5, 2, acts=False, fixed=(1,)),
        equation_episode(2, 4, 1, acts=True),
        transition_episode(3, 5, 2),
        transition_episode(4, 4, 4),
    ]
    for objective in episodes:
        best, decision = Exhaustive()(objective), MODES[mode](objective)
        assert decision.value == pytest.approx(best.value, abs=1e-8)
        assert float(objective(objective.sequence(decision))) == pytest.approx(decision.value, abs=1e-9)
        assert (decision.trace["gap"], decision.trace["proven"], decision.reason) == (0.0, True, best.reason)
        assert decision.trace["root_bound"] >= best.value - 1e-9
        assert decision.trace["expanded"] <= decision.trace["generated"] + 1


@pytest.mark.parametrize("limit", [1, 3, 8])
def test_no_more_nodes_are_expanded_than_the_limit(limit: int) -> None:
    objective = transition_episode(1, 7, 3, 3, 4)
    best = Exhaustive()(objective).value
    for search in (
        AStar(MonteCarlo(20), batch=5, node_limit=limit, incumbent=False),
        published(MonteCarlo(20), node_limit=limit),
    ):
        decision = search(objective)
        assert decision.trace["expanded"] == limit
        assert decision.reason.text == f"stopped after node_limit={limit} expanded nodes"
        assert decision.trace["gap"] > 0
        assert decision.value <= best + 1e-9 <= decision.value + decision.trace["gap"] + 2e-9
        assert decision.trace["root_bound"] >= decision.value + decision.trace["gap"] - 1e-9


def test_a_limit_that_is_not_reached_changes_nothing() -> None:
    objective = transition_episode(3, 5, 2)
    free = AStar(MonteCarlo(20), incumbent=False)(objective)
    needed = free.trace["expanded"]
    assert needed > 1
    enough = AStar(MonteCarlo(20), incumbent=False, node_limit=needed)(objective)
    assert (enough.actions(), enough.trace["gap"], enough.reason) == (free.actions(), 0.0, free.reason)


def test_anchors_are_counted_as_they_are_used() -> None:
    objective = transition_episode(1, 6, 2)
    alone, pooled = (AStar(MonteCarlo(20), pooled=each)(objective).trace["anchors"] for each in (False, True))
    # Each of the six steps has the observed state as well.
    drawn = MonteCarlo(20)(CounterfactualProcess(objective, Effort()), value_constants(objective))
    assert alone == sum(len(states) for states in drawn) + 6
    assert pooled == len(torch.unique(torch.cat(drawn), dim=0))


def test_changes_without_effect_are_not_made() -> None:
    for objective in (
        transition_episode(0, 5, 2, spread=0.0),
        equation_episode(0, 4, 0),
        transition_episode(0, 3, 2, fixed=(0, 1, 2)),
    ):
        decision = AStar(incumbent=False)(objective)
        assert decision.alteration is None
        assert (decision.value, decision.trace["gap"]) == (objective.outcome(), 0.0)
    assert (decision.trace["anchors"], decision.trace["distances"], decision.trace["expanded"]) == (0, 0, 0)


def test_what_has_no_lipschitz_constant_is_refused_before_anything_is_fitted() -> None:
    class Jumps(LinearReward):
        def lipschitz(self, *_: object) -> float:
            return torch.inf

    class Two(KnownTruth):
        members = 2

    model, ensemble = transition_episode(0).surrogate, Two(1, 2, lambda x, a: x, 1.0)
    search = AStar()
    with pytest.raises(UnboundedError, match="use branch_and_bound or greedy_changes"):
        search.check(model, reward=Jumps({"x0": 1.0}))
    with pytest.raises(UnboundedError, match=re.escape(NO_SUM)):
        search.check(ensemble, members="worst")
    for surrogate, settings in (
        (model, {"reward": LinearReward({"x0": 1.0}), "members": "worst"}),
        (model, {}),
        (ensemble, {"members": "mean"}),
        (torch.nn.Linear(1, 1), {"reward": Jumps({"x0": 1.0})}),
    ):
        assert search.check(surrogate, **settings) is None


def test_as_many_changes_as_are_allowed_may_be_known() -> None:
    objective = transition_episode(2, 5, 2)
    known = objective.observed.clone()
    known[:2] = (known[:2] + 1) % objective.actions
    decision = AStar(node_limit=0, incumbent=False).improve(objective, known)
    assert decision.value == pytest.approx(max(float(objective(known)), objective.outcome()))


def test_constants_follow_the_recursion(monkeypatch) -> None:
    objective = equation_episode(0, 4, acts=False)
    monkeypatch.setattr(objective.trajectory, "lipschitz", lambda: torch.tensor([2.0, 3.0, 5.0]))
    assert value_constants(objective).tolist() == [1 + 2 * (1 + 3 * (1 + 5)), 1 + 3 * (1 + 5), 1 + 5, 1]


def test_without_a_constant_there_is_no_bound(monkeypatch) -> None:
    model = KnownTruth(1, 2, lambda x, a: x * x, None)
    episode = model.episode(
        "square", torch.zeros(3, 1, dtype=torch.float64), torch.zeros(3, dtype=torch.long)
    )
    objective = CounterfactualReturn(model, EpisodeCase(episode), LinearReward({"x0": 1.0}), 1)
    with pytest.raises(UnboundedError, match=r"transition has no Lipschitz constant.*greedy_changes"):
        value_constants(objective)
    monkeypatch.setattr(objective.trajectory, "lipschitz", lambda: torch.ones(2))
    assert value_constants(objective).tolist() == [3, 2, 1]
    monkeypatch.setattr(objective.trajectory, "lipschitz", lambda: torch.tensor([1.0, torch.inf]))
    with pytest.raises(UnboundedError):
        value_constants(objective)
    monkeypatch.setattr(objective.trajectory, "lipschitz", lambda: torch.ones(2))
    objective.constant = torch.inf
    with pytest.raises(UnboundedError, match="reward has no finite"):
        value_constants(objective)


def test_an_anchor_bounds_itself_by_its_own_value() -> None:
    """The distance of a state to itself is zero, also among more than the 25 anchors from which matrix
    products are used."""
    objective = transition_episode(0, 4, 2)
    process = CounterfactualProcess(objective, Effort())
    anchors = [
        100 + torch.randn(60, 2, generator=torch.Generator().manual_seed(time), dtype=torch.float64)
        for time in range(4)
    ]
    bound = LipschitzBound(process, anchors, value_constants(objective))
    for time in range(4):
        there = bound.interpolated(anchors[time], time, [0, 1, 2])
        assert (there <= bound.values[time] + 2 * bound.margin).all()


def test_bounds_hold_after_the_budget() -> None:
    objective = transition_episode(0, 4, 2)
    anchors = [
        torch.cat([state.unsqueeze(0), state + torch.ones(9, 2, dtype=torch.float64)])
        for state in objective.trajectory.states
    ]
    bound = LipschitzBound(
        CounterfactualProcess(objective, Effort()), anchors, value_constants(objective), budget=Budget(0.0)
    )
    assert [len(states) for states in bound.anchors] == [1, 1, 1, 10]
    states = objective.trajectory.states + 0.1
    for time in range(4):
        assert (bound.at(states, time, [0])[:, 0] >= value(objective, states, time, 0) - 1e-12).all()


@pytest.mark.parametrize("exact", [True, False])
def test_anchors_at_every_reachable_state_make_the_bounds_exact(exact: bool) -> None:
    """Sec. 4: with all states of the search graph as anchors, every penalty is zero."""
    for objective in (transition_episode(3, 5, 2), equation_episode(3, 4, 2, fixed=(1,))):
        trajectory, anchors = objective.trajectory, [objective.trajectory.states[:1]]
        for time in range(objective.horizon - 1):
            anchors.append(trajectory.branch(anchors[-1], time).flatten(0, 1))
        bound = LipschitzBound(
            CounterfactualProcess(objective, Effort()), anchors, value_constants(objective), exact
        )
        for time, states in enumerate(anchors):
            for spent in range(3):
                torch.testing.assert_close(
                    bound.values[time][:, spent], value(objective, states, time, spent), rtol=0, atol=1e-8
                )


def test_the_worst_members_return_has_no_constant() -> None:
    with pytest.raises(UnboundedError, match=re.escape(NO_SUM)):
        value_constants(weighed_episode(0, use="worst"))


EPISODES = {
    "prices": lambda: equation_episode(5, 5, 2),
    "prices, fixed steps": lambda: equation_episode(6, 5, 2, fixed=(1, 4)),
    "no prices": lambda: equation_episode(7, 5, 3, acts=False, fixed=(3,)),
    "learnt": lambda: transition_episode(5, 5, 1),
    "no change": lambda: equation_episode(5, 4, 0),
}


class Plain:
    """The recursion of the module, node by node, with the bounds of three anchors at each step."""

    def __init__(self, objective: CounterfactualReturn, exact: bool) -> None:
        self.objective, self.exact, self.constants = objective, exact, value_constants(objective).tolist()
        stream = torch.Generator().manual_seed(0)
        self.anchors = [
            state + 0.3 * torch.randn(3, len(state), generator=stream, dtype=torch.float64)
            for state in objective.trajectory.states
        ]
        self.tables: dict[tuple[int, int], list[float]] = {}
        for time in reversed(range(objective.horizon)):
            for spent in range(objective.changes + 1):
                self.tables[time, spent] = [self.ahead(anchor, time, spent) for anchor in self.anchors[time]]

    def near(self, state: torch.Tensor, time: int, spent: int) -> float:
        distances = (self.anchors[time] - state).square().sum(-1).sqrt().tolist()
        table = self.tables[time, spent]
        return min(worth + self.constants[time] * far for worth, far in zip(table, distances, strict=True))

    def fixed(self, time: int, spent: int) -> bool:
        last = max(self.objective.open.tolist(), default=-1)
        return self.exact and (
            spent == self.objective.changes or time > last or time == self.objective.horizon - 1
        )

    def at(self, state: torch.Tensor, time: int, spent: int) -> float:
        if self.fixed(time, spent):
            return float(value(self.objective, state.unsqueeze(0), time, spent))
        return self.near(state, time, spent)

    def ahead(self, state: torch.Tensor, time: int, spent: int) -> float:
        objective, here = self.objective, state.unsqueeze(0)
        if time == objective.horizon - 1:
            return float(value(objective, here, time, spent))
        rewards, kept = objective.rewards(state, time), int(objective.observed[time])
        actions = [kept, *(objective.candidate_actions(time).tolist() if spent < objective.changes else [])]
        return max(
            float(rewards[action if objective.reward.acts else 0])
            + self.at(
                objective.trajectory.step(here, time, torch.tensor(action))[0],
                time + 1,
                spent + (action != kept),
            )
            for action in actions
        )


@pytest.mark.parametrize("exact", [True, False])
@pytest.mark.parametrize("name", EPISODES)
def test_bounds_are_those_of_the_recursion_node_by_node(name: str, exact: bool) -> None:
    objective = EPISODES[name]()
    plain, process = Plain(objective, exact), CounterfactualProcess(objective, Effort())
    bound = LipschitzBound(process, plain.anchors, value_constants(objective), exact)
    every = list(range(objective.changes + 1))
    for time in range(objective.horizon):
        states = objective.trajectory.states[[time, -1]] + 0.1
        made = {
            "values": (bound.values[time], plain.anchors[time], plain.ahead),
            "ahead": (bound.ahead(states, time, every), states, plain.ahead),
            "at": (bound.at(states, time, every), states, plain.at),
            "interpolated": (bound.interpolated(states, time, every), states, plain.near),
        }
        for found, points, one in made.values():
            wanted = [[one(point, time, spent) for spent in every] for point in points]
            torch.testing.assert_close(found, torch.tensor(wanted).double(), rtol=1e-6, atol=1e-6)
        assert [bound.fixed(time, spent) for spent in every] == [plain.fixed(time, spent) for spent in every]


def test_distances_are_counted_and_held_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    objective = equation_episode(5, 3, 1)
    plain = Plain(objective, False)

    def made() -> tuple[LipschitzBound, torch.Tensor]:
        process = CounterfactualProcess(objective, Effort())
        bound = LipschitzBound(process, plain.anchors, value_constants(objective), False)
        return bound, bound.interpolated(plain.anchors[0].repeat(4, 1), 1, [1, 0])

    bound, whole = made()
    # Each of three anchors at two steps has a child that is kept and two others; then 12 states.
    assert bound.distances == 2 * (3 + 6) * 3 + 12 * 3
    assert torch.equal(whole[:3], whole[9:])
    monkeypatch.setattr("rehearsal_torch.search.sequences.astar.ENTRIES", 7)
    assert torch.equal(made()[1], whole)
    monkeypatch.setattr("rehearsal_torch.search.sequences.astar.ENTRIES", 1)
    assert torch.equal(made()[1], whole)


def test_paths_are_rolled_out_only_where_they_are_fixed() -> None:
    objective = equation_episode(5, 5, 2)
    process = CounterfactualProcess(objective, Effort())
    bound = LipschitzBound(process, Plain(objective, True).anchors, value_constants(objective))
    for spent, steps in (([0, 1], 0), ([0, 2], 3), ([2], 3)):
        process.effort.network_evaluations = 0
        bound.at(objective.trajectory.states[:4], 1, spent)
        assert process.effort.network_evaluations == 4 * steps


def test_bounds_are_raised_by_more_than_rounding() -> None:
    objective = equation_episode(5, 4, 2)
    lipschitz = value_constants(objective)
    bound = LipschitzBound(
        CounterfactualProcess(objective, Effort()), Plain(objective, True).anchors, lipschitz
    )
    size = float(objective.rewards(objective.trajectory.states).abs().sum()) + float(lipschitz[0])
    assert 1e-12 * size < bound.margin <= 1.01e-12 * (1 + size)
    own = bound.interpolated(bound.anchors[1], 1, [0])[:, 0]
    assert bool((own <= bound.values[1][:, 0] + bound.margin).all())


def test_anchors_without_a_finite_state_or_value_bound_nothing() -> None:
    def steep(x: torch.Tensor, a: torch.Tensor) -> torch.Tensor:
        return torch.where(x > 5, torch.nan, x + a.unsqueeze(-1))

    model = KnownTruth(1, 2, steep, 1.0)
    episode = model.episode("steep", torch.zeros(3, 1, dtype=torch.float64), torch.zeros(3).long())
    objective = CounterfactualReturn(model, EpisodeCase(episode), LinearReward({"x0": 1.0}), 1)
    anchors = [torch.tensor([[0.0], [torch.nan], [9.0]], dtype=torch.float64)] * 3
    bound = LipschitzBound(CounterfactualProcess(objective, Effort()), anchors, value_constants(objective))
    assert [states.tolist() for states in bound.anchors] == [[[0.0], [9.0]]] * 3
    assert bound.values[2].tolist() == [[0.0, 0.0], [9.0, 9.0]]
    assert bound.values[1].tolist() == [[1.0, 0.0], [torch.inf, torch.inf]]
    assert bound.at(torch.tensor([[9.0]]).double(), 1, [0]).item() == pytest.approx(1.0 + 2 * 9.0)


def made(objective, anchors):
    return anchors(CounterfactualProcess(objective, Effort()), value_constants(objective))


@pytest.mark.parametrize("weights", ["lipschitz", "uniform"])
def test_sampled_anchors_are_reachable_and_start_with_the_observed_state(weights: str) -> None:
    objective = transition_episode(1, 5, 2, levels=3)
    sets = made(objective, MonteCarlo(400, weights=weights))
    start, layer = objective.trajectory.states[:1], {0: objective.trajectory.states[:1]}
    for time, states in enumerate(sets):
        assert torch.equal(states[0], objective.trajectory.states[time])
        assert len(torch.unique(states, dim=0)) == len(states)
        reachable = torch.cat(list(layer.values()))
        assert torch.cdist(states, reachable).amin(1).max() < 1e-7
        if time < 3:
            # 400 draws of at most two changes leave no reachable state out at the first steps.
            assert len(states) == len(reachable)
        if time == 4:
            break
        ahead: dict[int, torch.Tensor] = {}
        for spent, here in layer.items():
            ahead[spent] = torch.cat(
                [ahead.get(spent, start[:0]), objective.trajectory.step(here, time, objective.observed[time])]
            )
            if spent < 2:
                ahead[spent + 1] = torch.cat(
                    [
                        ahead.get(spent + 1, start[:0]),
                        objective.trajectory.branch(here, time, objective.candidate_actions(time)).flatten(
                            0, 1
                        ),
                    ]
                )
        layer = ahead


def test_an_impossible_size_ends() -> None:
    sets = made(transition_episode(1, 3, 1, levels=2), MonteCarlo(None, 10_000))
    assert [len(states) for states in sets] == [1, 2, 3]


def test_draws_belong_to_the_episode_and_the_seed() -> None:
    def sizes(identity: int, seed: int) -> list[list[float]]:
        return [
            states.tolist()
            for states in made(transition_episode(identity, 6, 3, levels=5), MonteCarlo(5, seed=seed))
        ]

    assert sizes(0, 0) == sizes(0, 0)
    assert sizes(0, 0) != sizes(0, 1)


def test_each_sequence_is_replayed_once() -> None:
    objective, effort = transition_episode(1, 6, 2), Effort()
    MonteCarlo(5)(CounterfactualProcess(objective, effort), value_constants(objective))
    # The observed sequence and five drawn ones move on five times.
    assert effort.network_evaluations == 6 * 5


def test_no_sequence_more_than_needed_is_taken() -> None:
    objective = transition_episode(2, 6, 3, levels=5)
    totals = [sum(map(len, made(objective, MonteCarlo(None, size)))) for size in range(1, 30)]
    assert totals[0] == 6
    for size, total in enumerate(totals, 1):
        assert total == min(each for each in totals if each >= size)


ACTIONS = 50_000


def told_episode(changes: int, fixed: tuple[int, ...] = ()) -> CounterfactualReturn:
    """Many actions, of which 0 was taken throughout; a state tells the four actions before it."""
    model = KnownTruth(4, ACTIONS, lambda x, a: torch.cat([x[:, 1:], a.unsqueeze(-1).to(x)], -1), 1.0)
    episode = model.episode("told", torch.zeros(5, 4, dtype=torch.float64), torch.zeros(5).long())
    mask = torch.zeros(5, dtype=torch.bool)
    mask[list(fixed)] = True
    return CounterfactualReturn(model, EpisodeCase(episode, mask), LinearReward({"x0": 1.0}), changes)


def drawn_sequences(
    objective: CounterfactualReturn, anchors: MonteCarlo, lipschitz: torch.Tensor
) -> torch.Tensor:
    """The drawn sequences but for the observed one: hardly any is drawn twice."""
    return anchors(CounterfactualProcess(objective, Effort()), lipschitz)[-1][1:]


@pytest.mark.parametrize(("changes", "fixed", "most"), [(1, (), 1), (3, (), 3), (3, (1, 2), 2), (9, (), 4)])
def test_up_to_k_open_steps_change_to_any_action(changes: int, fixed: tuple[int, ...], most: int) -> None:
    uniform = MonteCarlo(1500, weights="uniform")
    drawn = drawn_sequences(told_episode(changes, fixed), uniform, torch.ones(5))
    moved = drawn != 0
    numbers = moved.sum(-1).bincount(minlength=5)
    assert int(numbers[most + 1 :].sum()) == 0
    # Each number of changes is as likely: 1500 / most are expected, and five standard deviations allowed.
    assert (numbers[1 : most + 1] - 1500 / most).abs().max() < 100
    assert not moved[:, list(fixed)].any()
    chosen = drawn[moved]
    assert (chosen.min(), chosen.max()) == (pytest.approx(1, abs=500), pytest.approx(ACTIONS, abs=500))
    assert float(chosen.mean()) == pytest.approx(ACTIONS / 2, rel=0.06)
    shares = moved.sum(0)[[step for step in range(4) if step not in fixed]] / moved.sum()
    assert shares.tolist() == pytest.approx([1 / len(shares)] * len(shares), abs=0.06)


def test_steps_change_in_proportion_to_their_constants() -> None:
    lipschitz = torch.tensor([8.0, 4.0, 2.0, 2.0, 7.0], dtype=torch.float64)
    for weights, shares in (("lipschitz", [0.5, 0.25, 0.125, 0.125]), ("uniform", [0.25] * 4)):
        drawn = drawn_sequences(told_episode(1), MonteCarlo(1500, weights=weights), lipschitz)
        assert (drawn != 0).double().mean(0).tolist() == pytest.approx(shares, abs=0.06)
