import time as clock
from dataclasses import asdict, replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from rehearsal_torch.checkpoint import load
from rehearsal_torch.data.decision import EpisodeCase
from rehearsal_torch.objectives.counterfactual_return import CounterfactualReturn
from rehearsal_torch.objectives.step_reward import LinearReward
from rehearsal_torch.objectives.task_reward import StepScore
from rehearsal_torch.problems.sequences.sepsis_cohort import SepsisSimulated
from rehearsal_torch.search.search import UNLIMITED, Budget, Search
from rehearsal_torch.search.sequences.astar import AStar
from rehearsal_torch.search.sequences.baselines import GreedyChanges
from rehearsal_torch.search.sequences.branch_and_bound import BranchAndBound
from rehearsal_torch.search.sequences.branch_tree import EventTree, Limits
from rehearsal_torch.search.sequences.decision_process import Effort, branching_factor, sequence_decision
from rehearsal_torch.search.sequences.exhaustive import Exhaustive
from rehearsal_torch.surrogates.transition_ridge import TransitionRidge
from rehearsal_torch.training.surrogate_fit import fit
from tests.places import PUBLISHED_SEPSIS
from tests.toys.bent_episodes import bent_episode
from tests.toys.episodes import equation_episode, transition_episode
from tests.toys.transitions import CONTEXTUAL, DOSES, STATIC, VARYING, observations, patients

SCORE = StepScore({"x": {"x": {"> -0.5": 1, "> 0": 2, "> 0.6": 4}}, "y": {"y": {"> 0": 1, "> 0.4": 3}}})
PATIENT = BranchAndBound(looseness=float("inf"))


def drawn(
    seed: int, horizon: int, changes: int, width: int, levels: int, spread: float, fixed: tuple[int, ...] = ()
) -> CounterfactualReturn:
    return transition_episode(
        seed,
        horizon,
        changes,
        width,
        levels,
        hidden=8,
        spread=spread,
        fixed=[time for time in fixed if time < horizon],
    )


@pytest.mark.slow
@settings(max_examples=40, deadline=None, derandomize=True)
@given(
    seed=st.integers(0, 10_000),
    horizon=st.integers(2, 7),
    changes=st.integers(0, 3),
    width=st.integers(1, 4),
    levels=st.integers(2, 5),
    spread=st.sampled_from([0.1, 1.0, 3.0]),
    fixed=st.sets(st.integers(0, 6), max_size=2),
)
def test_finds_the_optimum_of_small_instances(seed, horizon, changes, width, levels, spread, fixed):
    objective = drawn(seed, horizon, changes, width, levels, spread, tuple(sorted(fixed)))
    decision, truth = PATIENT(objective), Exhaustive()(objective)
    assert decision.trace["fallback"] is None
    assert decision.trace["proven"]
    assert decision.trace["gap"] == 0.0
    assert decision.value == pytest.approx(truth.value, abs=1e-8 * max(1.0, abs(objective.outcome())))
    assert decision.trace["root_bound"] >= truth.value - 1e-9
    changed = objective.sequence(decision) != objective.observed
    assert changed.sum() <= changes
    assert not set(changed.nonzero()[:, 0].tolist()) & fixed


@pytest.mark.slow
def test_some_early_end_proves_nothing_and_says_so():
    decisions = [
        BranchAndBound(leaves=1, node_limit=1, looseness=float("inf"))(drawn(seed, 7, 4, 3, 4, 10.0))
        for seed in range(20)
    ]
    unproven = [decision for decision in decisions if not decision.trace["proven"]]
    assert unproven
    assert all("node_limit=1" in decision.reason.text and decision.trace["gap"] > 0 for decision in unproven)


def test_no_time_still_gives_an_answer():
    objective = drawn(3, 7, 4, 3, 4, 10.0)
    began = clock.perf_counter()
    decision = BranchAndBound(leaves=1, budget_s=1e-9, looseness=float("inf"))(objective)
    assert clock.perf_counter() - began < 5
    truth = Exhaustive()(objective).value
    assert (
        objective.outcome() <= decision.value <= truth + 1e-9 <= decision.value + decision.trace["gap"] + 1e-8
    )
    assert "budget_s" in decision.reason.text


def test_more_changes_are_never_worse_and_greedy_never_better():
    values = [PATIENT(drawn(7, 7, changes, 3, 5, 3.0)).value for changes in range(8)]
    assert values == sorted(values)
    for changes, value in enumerate(values):
        assert GreedyChanges()(drawn(7, 7, changes, 3, 5, 3.0)).value <= value + 1e-9


@pytest.mark.slow
def test_thirty_steps_and_eight_changes_need_one_node():
    model, cohort = load(PUBLISHED_SEPSIS), SepsisSimulated(patients=300, horizon=30, longest=30, limit=5)
    objective = CounterfactualReturn(model, cohort.case(4), LinearReward(), 8)
    decision = BranchAndBound(node_limit=10_000)(objective)
    assert decision.trace["proven"]
    # With halves of the bounds of pairs, this one branched on 357 nodes.
    assert decision.trace["recentred"] == 1
    greedy = GreedyChanges()(objective)
    assert decision.value >= greedy.value - 1e-9
    assert decision.trace["root_bound"] - objective.outcome() < 2.5 * (decision.value - objective.outcome())


def test_a_course_without_curvature_falls_back_to_a_star_and_says_so():
    for acts, why in ((False, "does not bound its curvature"), (True, "not linear")):
        objective = equation_episode(0, 5, 2, acts=acts)
        decision = BranchAndBound(enumerated=1)(objective)
        assert decision.trace["search"] == "branch_and_bound"
        assert decision.trace["fallback"] == "astar"
        assert why in decision.reason.text
        assert decision.value == pytest.approx(Exhaustive()(objective).value, abs=1e-8)
        assert decision.trace["proven"]


def test_a_small_tree_without_curvature_is_enumerated():
    objective = equation_episode(0, 5, 2, acts=True)
    objective.trajectory.constants = None
    decision = BranchAndBound()(objective)
    assert (decision.trace["fallback"], decision.trace["proven"]) == ("exhaustive", True)
    assert decision.value == Exhaustive()(objective).value


@pytest.mark.slow
@pytest.mark.parametrize("reward", [LinearReward({"x": -1.0, "y": 0.5}), SCORE], ids=["linear", "score"])
def test_twelve_steps_and_four_changes_are_proven_under_the_closed_form(reward):
    """Two drugs of five levels: 164 million sequences."""
    model = fit(TransitionRidge(VARYING, STATIC, CONTEXTUAL, DOSES, 5), observations(60, 12))
    objective = CounterfactualReturn(model, EpisodeCase(patients(7, 12, seed=7)[-1]), reward, 4)
    decision = BranchAndBound(evaluations=2_000_000)(objective)
    assert (decision.trace["fallback"], decision.trace["proven"]) == (None, True)
    assert decision.value >= GreedyChanges()(objective).value - 1e-9
    assert decision.value == pytest.approx(float(objective(objective.sequence(decision))), abs=1e-9)


def test_a_small_tree_under_the_closed_form_is_enumerated_but_for_limits_of_ones_own():
    objective, few = bent_episode(1, 5, 2), {"proven": True, "search": "branch_and_bound"}
    for search, used in (
        (BranchAndBound(), "exhaustive"),
        (BranchAndBound(enumerated=50), None),
        (BranchAndBound(node_limit=10_000), None),
        (BranchAndBound(fallback=GreedyChanges()), None),
    ):
        trace = search(objective).trace
        assert {name: trace[name] for name in ("fallback", *few)} == {"fallback": used, **few}


def test_too_many_sets_under_the_closed_form_leave_greedy_changes_with_a_gap():
    objective = bent_episode(2, 6, 3, width=2)
    decision, truth = BranchAndBound(sets=1, enumerated=1)(objective), Exhaustive()(objective).value
    assert "25 sets of time steps are more than sets=1" in decision.reason.text
    assert decision.value >= GreedyChanges()(objective).value - 1e-9
    assert truth <= decision.value + decision.trace["gap"] + 1e-9


def test_without_lipschitz_constants_nothing_is_proven():
    objective = equation_episode(0, 5, 2, acts=False)
    objective.trajectory.constants = None
    decision = BranchAndBound(enumerated=1)(objective)
    assert decision.trace["fallback"] == "greedy_changes"
    assert decision.trace["gap"] is None
    assert not decision.trace["proven"]
    assert "Lipschitz" in decision.reason.text


def test_a_logged_reward_has_no_linear_form():
    objective = drawn(0, 4, 1, 2, 3, 3.0)
    objective.surrogate.rescale.logged[0] = True
    assert BranchAndBound()(objective).trace["fallback"] is not None


def test_a_loose_model_falls_back_to_a_star():
    objective = drawn(3, 7, 4, 3, 4, 10.0)
    decision = BranchAndBound(looseness=1.0, enumerated=1)(objective)
    assert decision.trace["fallback"] == "astar"
    assert "looseness=1" in decision.reason.text
    assert decision.value == pytest.approx(Exhaustive()(objective).value, abs=1e-8)


def tree_of(objective: CounterfactualReturn) -> EventTree:
    tree = EventTree(objective, Effort(), Limits(20_000, 100_000, 1.0, UNLIMITED, None))
    tree.run()
    return tree


LOOSE = [seed for seed in range(12) if tree_of(drawn(seed, 7, 4, 3, 4, 10.0)).loose]


def test_a_fallback_has_what_is_left_of_the_limits_and_begins_with_the_best_sequence(monkeypatch):
    objective, asked, improve = drawn(LOOSE[0], 7, 4, 3, 4, 10.0), [], AStar.improve

    def watched(search, objective, known):
        asked.append((search.budget_s, search.node_limit, known))
        return improve(search, objective, known)

    monkeypatch.setattr(AStar, "improve", watched)
    tree = tree_of(objective)
    BranchAndBound(looseness=1.0, budget_s=30.0, node_limit=1000)(objective)
    BranchAndBound(looseness=1.0, budget_s=1e-9, fallback=AStar(budget_s=50.0))(objective)
    BranchAndBound(looseness=1.0, fallback=AStar(budget_s=50.0))(objective)
    (left, nodes, known), (none, _, _), (own, _, _) = asked
    assert 0 < left < 30.0
    assert nodes == 1000 - tree.effort.expanded
    assert torch.equal(known, tree.sequence)
    assert none == 0.0
    assert own == 50.0


def test_evaluations_are_bounded_or_not():
    assert BranchAndBound(evaluations=None).evaluations is None
    assert BranchAndBound(evaluations=1).evaluations == 1


def test_as_many_events_as_allowed_need_no_fallback():
    objective = drawn(0, 5, 2, 2, 3, 3.0)
    count = int(objective.choices.sum())
    for events, falls in ((count, False), (count - 1, True)):
        decision = BranchAndBound(events=events, looseness=float("inf"), enumerated=1)(objective)
        assert (decision.trace["fallback"] is not None) == falls
        assert (f"events={events}" in str(decision.reason)) == falls


@pytest.mark.parametrize("fallback", [None, GreedyChanges()], ids=["astar", "greedy"])
def test_what_a_loose_tree_knew_counts_in_the_fallback(fallback):
    for seed in LOOSE[:3]:
        objective = drawn(seed, 7, 4, 3, 4, 10.0)
        tree, alone = tree_of(objective), GreedyChanges()(objective)
        decision = BranchAndBound(looseness=1.0, budget_s=1e-9, fallback=fallback)(objective)
        assert decision.value >= tree.observed + tree.best - 1e-9
        assert decision.value == pytest.approx(float(objective(objective.sequence(decision))), abs=1e-9)
        assert decision.trace["root_bound"] <= tree.observed + tree.bound + 1e-9
        assert decision.value + decision.trace["gap"] <= tree.observed + tree.bound + 1e-9
        assert Exhaustive()(objective).value <= decision.value + decision.trace["gap"] + 1e-8
        assert decision.trace["proven"] == (decision.trace["gap"] == 0.0)
        assert decision.trace["expanded"] >= tree.effort.expanded
        if fallback is not None:
            whole = BranchAndBound(looseness=1.0, fallback=fallback)(objective)
            done = alone.trace["network_evaluations"] + tree.effort.network_evaluations
            assert whole.trace["network_evaluations"] == done
            expanded = alone.trace.get("expanded", 0) + tree.effort.expanded
            assert whole.trace["expanded"] == expanded
            assert whole.trace["effective_branching_factor"] == branching_factor(expanded, objective.horizon)


class Answer(Search):
    """A search of one's own that has one answer, and whose trace says what it is told to say."""

    def __init__(self, sequence, **trace):
        self.sequence, self.trace = sequence, trace

    def __call__(self, objective):
        found = sequence_decision(objective, self.sequence, Effort(), Budget(), search="answer", gap=None)
        return replace(found, trace=self.trace)


def test_a_fallback_as_good_as_the_tree_answers_and_need_not_count_its_effort():
    objective = drawn(LOOSE[0], 7, 4, 3, 4, 10.0)
    tree = tree_of(objective)
    trace = BranchAndBound(looseness=1.0, fallback=Answer(tree.sequence, tries=7))(objective).trace
    said = {"fallback": "Answer", "tries": 7, "proven": False, **asdict(tree.effort)}
    assert {name: trace[name] for name in said} == said
    bounds = tree.observed + tree.bound, tree.bound - tree.best
    assert (trace["root_bound"], trace["gap"]) == pytest.approx(bounds)


@pytest.mark.parametrize(("beyond", "proven"), [(0.5, True), (2.0, False)])
def test_a_bound_above_the_best_by_rounding_alone_is_a_proof(beyond, proven):
    objective = drawn(LOOSE[0], 7, 4, 3, 4, 10.0)
    tree = tree_of(objective)
    worse = Answer(objective.observed, gap=tree.best + beyond * tree.tolerance)
    decision = BranchAndBound(looseness=1.0, fallback=worse)(objective)
    assert torch.equal(objective.sequence(decision), tree.sequence), "the tree's is the better one"
    gap = 0.0 if proven else pytest.approx(2.0 * tree.tolerance, rel=1e-3)
    assert (decision.trace["proven"], decision.trace["gap"]) == (proven, gap)


def test_a_fallback_that_runs_out_of_time_says_whether_a_gap_is_known():
    search = BranchAndBound(looseness=1.0, fallback=GreedyChanges(budget_s=1e-9))
    loose, refused = drawn(LOOSE[0], 7, 4, 3, 4, 10.0), equation_episode(0, 5, 2, acts=False)
    known, unknown = search(loose).trace, search(refused).trace
    assert (known["stopped"], known["gap"] > 0) == ("stopped after budget_s=1e-09", True)
    assert (unknown["stopped"], unknown["gap"]) == ("stopped after budget_s=1e-09; no gap is known", None)


def test_a_fallback_in_the_remaining_time_names_the_budget_that_was_asked_for():
    objective = drawn(LOOSE[0], 7, 4, 3, 4, 10.0)
    for fallback in (GreedyChanges(), AStar()):
        decision = BranchAndBound(looseness=1.0, budget_s=1e-9, fallback=fallback)(objective)
        assert decision.trace["stopped"].startswith("stopped after budget_s=1e-09")
        assert "budget_s=0" not in decision.reason.text


def test_a_fallback_of_ones_own_keeps_its_smaller_limit_of_nodes():
    own, objective = AStar(node_limit=3), drawn(3, 7, 4, 3, 4, 10.0)
    made = BranchAndBound(node_limit=50, fallback=own)
    assert [
        made._limited_fallback(objective, UNLIMITED, expanded).node_limit for expanded in (10, 49, 60)
    ] == [3, 1, 0]
    assert BranchAndBound(fallback=own)._limited_fallback(objective, UNLIMITED, 10).node_limit == 3
    other = BranchAndBound(node_limit=50, fallback=AStar())
    assert other._limited_fallback(objective, UNLIMITED, 10).node_limit == 40
    assert own.node_limit == 3
