"""One contract over every search for action sequences."""

import json
import math
from collections.abc import Callable

import pytest
import torch

from rehearsal_torch.data.decision import EpisodeCase
from rehearsal_torch.objectives.counterfactual_return import CounterfactualReturn, return_record
from rehearsal_torch.objectives.step_reward import LinearReward
from rehearsal_torch.search.search import Search
from rehearsal_torch.search.sequences.astar import AStar
from rehearsal_torch.search.sequences.baselines import GreedyChanges, RandomChanges, TopK
from rehearsal_torch.search.sequences.branch_and_bound import BranchAndBound
from rehearsal_torch.search.sequences.exhaustive import Exhaustive
from tests.toys.episodes import (
    KnownTruth,
    coded_episode,
    doubled_episode,
    equation_episode,
    idle_dose_episode,
    transition_episode,
    value,
)
from tests.toys.published_astar import published

SEARCHES: dict[str, Callable[[], Search[CounterfactualReturn]]] = {
    "exhaustive": Exhaustive,
    "greedy_changes": GreedyChanges,
    "top_k": TopK,
    "random_changes": RandomChanges,
    "astar": AStar,
    "astar as published": published,
    "branch_and_bound": BranchAndBound,
}
EXACT = {"branch_and_bound", "exhaustive", "astar", "astar as published"}

EPISODES: dict[str, Callable[[], CounterfactualReturn]] = {
    "learnt": lambda: transition_episode(3),
    "learnt, two drugs": lambda: transition_episode(4, horizon=4, drugs=2, levels=2, width=3),
    "some steps fixed": lambda: transition_episode(5, horizon=6, changes=3, fixed=(0, 2)),
    "every step fixed": lambda: transition_episode(6, fixed=range(5)),
    "reward acts": lambda: equation_episode(3),
    "reward acts, last step fixed": lambda: equation_episode(4, fixed=(4,)),
    "reward acts, last step alone open": lambda: equation_episode(5, changes=1, fixed=(0, 1, 2, 3)),
    "reward acts, no change allowed": lambda: equation_episode(6, changes=0),
    "reward acts, more changes than steps": lambda: equation_episode(7, horizon=3, changes=9),
    "one action": lambda: equation_episode(8, actions=1),
    "two actions": lambda: equation_episode(9, actions=2, acts=False),
    "a level without a row": lambda: coded_episode(10),
    "two actions that give the same": lambda: doubled_episode(11),
}
TRACE = {
    "search",
    "expanded",
    "generated",
    "network_evaluations",
    "effective_branching_factor",
    "gap",
    "proven",
}
TRAJECTORY = {
    "horizon",
    "variables",
    "changes",
    "actions",
    "observed_actions",
    "value",
    "observed",
    "rewards",
    "observed_rewards",
    "dose_names",
    "doses",
    "observed_doses",
    "level_doses",
    "improvement",
}


@pytest.mark.parametrize("episode", EPISODES)
@pytest.mark.parametrize("name", SEARCHES)
def test_every_search_answers_alike(name: str, episode: str) -> None:
    objective, search = EPISODES[episode](), SEARCHES[name]()
    decision = search(objective)
    trace, trajectory = decision.trace, return_record(objective, decision)
    sequence, observed = objective.sequence(decision), objective.observed
    changed = (sequence != observed).nonzero()[:, 0]

    assert set(trace) >= TRACE
    assert set(trajectory) == TRAJECTORY
    assert json.loads(json.dumps(decision.to_dict(), allow_nan=False)) == decision.to_dict()
    assert trace["search"] == name.split()[0]
    assert len(sequence) == len(observed)
    assert len(changed) <= objective.changes
    assert set(changed.tolist()) <= set(objective.open.tolist())
    assert all(int(sequence[time]) in objective.candidate_actions(time).tolist() for time in changed.tolist())
    assert 0 <= int(sequence.min()) <= int(sequence.max()) < objective.actions

    assert decision.value == pytest.approx(float(objective(sequence)), abs=1e-9)
    assert decision.estimate.point == trajectory["value"] == decision.value
    assert decision.baseline.point == trajectory["observed"] == objective.outcome()
    assert decision.improvement == trajectory["improvement"]
    assert trajectory["actions"] == sequence.tolist()
    assert sum(trajectory["rewards"]) == pytest.approx(decision.value, abs=1e-9)
    assert sum(trajectory["observed_rewards"]) == pytest.approx(objective.outcome(), abs=1e-9)
    assert decision.seconds > 0
    assert min(trace["expanded"], trace["generated"], trace["network_evaluations"]) >= 0
    assert trace["effective_branching_factor"] >= 1

    if len(changed):
        assert decision.alteration is not None
        assert decision.alteration.names == tuple(f"action[{time}]" for time in changed.tolist())
        assert torch.equal(decision.alteration.values, sequence[changed])
        assert decision.doses == {
            name: tuple(objective.surrogate.doses(action).tolist())
            for name, action in zip(decision.alteration.names, sequence[changed], strict=True)
        }
    else:
        assert decision.alteration is None
        assert decision.reason
    if trace["search"] != "random_changes":
        assert decision.improvement >= 0
    assert trace["proven"] == (trace["gap"] == 0.0)
    only_one = objective.changes == 0 or objective.actions == 1 or not len(objective.open)
    assert trace["proven"] == (name in EXACT or only_one)


@pytest.mark.parametrize("name", SEARCHES)
def test_every_search_answers_the_same_again(name: str) -> None:
    first, again = (SEARCHES[name]()(transition_episode(11)) for _ in range(2))
    assert json.dumps(first.to_dict()) == json.dumps(again.to_dict())


@pytest.mark.parametrize("name", [name for name in SEARCHES if name != "random_changes"])
def test_a_change_without_effect_is_not_recommended(name: str) -> None:
    model = KnownTruth(2, 3, lambda x, a: torch.sin(1.3 * x) + 0.0 * a.unsqueeze(-1), 1.3)
    states = torch.randn(5, 2, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    episode = model.episode("idle", states, torch.tensor([0, 1, 2, 0, 1]))
    decision = SEARCHES[name]()(
        CounterfactualReturn(model, EpisodeCase(episode), LinearReward({"x0": -1.0}), 2)
    )
    assert decision.alteration is None
    assert decision.improvement == 0


@pytest.mark.parametrize("name", [name for name in SEARCHES if name != "random_changes"])
def test_a_dose_without_effect_stays_as_observed(name: str) -> None:
    objective = idle_dose_episode()
    decision = SEARCHES[name]()(objective)
    sequence, observed = objective.sequence(decision), objective.observed
    assert decision.improvement > 0
    assert (sequence % 3).tolist() == (observed % 3).tolist()
    assert (sequence // 3).tolist() == [2, 1, 2, 1]


@pytest.mark.parametrize("name", [name for name in SEARCHES if name != "random_changes"])
def test_no_recommended_change_gains_nothing(name: str) -> None:
    for make in (idle_dose_episode, lambda: transition_episode(4, horizon=4, drugs=2, levels=2, width=3)):
        objective = make()
        decision = SEARCHES[name]()(objective)
        sequence = objective.sequence(decision)
        for time in (sequence != objective.observed).nonzero()[:, 0].tolist():
            without = sequence.clone()
            without[time] = objective.observed[time]
            assert abs(float(objective(without)) - decision.value) > 1e-9


@pytest.mark.parametrize("name", SEARCHES)
def test_no_search_says_more_than_the_optimum(name: str) -> None:
    for seed in range(4):
        objective = transition_episode(seed, horizon=4, changes=2)
        best = Exhaustive()(objective).value
        decision = SEARCHES[name]()(objective)
        assert decision.value <= best + 1e-9
        if name in EXACT:
            assert decision.value == pytest.approx(best, abs=1e-9)
        assert math.isfinite(decision.value)


@pytest.mark.slow
@pytest.mark.parametrize("name", SEARCHES)
def test_no_search_selects_a_level_without_a_row_or_a_change_that_gives_the_same(name: str) -> None:
    for seed in range(6):
        for objective in (coded_episode(seed), doubled_episode(seed, acts=bool(seed % 2))):
            decision = SEARCHES[name]()(objective)
            given = objective.surrogate.doses(objective.observed)
            for time, action in decision.actions().items():
                assert action in objective.candidate_actions(time).tolist()
                assert decision.doses[f"action[{time}]"] != tuple(given[time].tolist())
            if name in EXACT:
                assert decision.value == pytest.approx(
                    float(value(objective, objective.trajectory.states[:1], 0, 0)), abs=1e-9
                )
