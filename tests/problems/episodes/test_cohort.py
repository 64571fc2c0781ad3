"""The embedded problem: splits, truth, and what it says of decisions."""

import pytest
import torch

from rehearsal_torch.data.decision import Decision, action_name
from rehearsal_torch.evaluation.truth_panel import true_return
from rehearsal_torch.problems.episodes.cohort import SepsisSimulated
from rehearsal_torch.search.sequences.baselines import GreedyChanges
from rehearsal_torch.search.sequences.exhaustive import Exhaustive
from rehearsal_torch.spaces.box import Alteration


@pytest.fixture(scope="module")
def problem() -> SepsisSimulated:
    return SepsisSimulated(patients=150, seed=0, horizon=10, changes=1)


def doing(changed: dict[int, int]) -> Decision:
    """The decision that gives other actions at some steps, as somebody else's search would write it."""
    names = tuple(action_name(step) for step in changed)
    alteration = Alteration(names, torch.tensor(list(changed.values()))) if changed else None
    return Decision(alteration, 0.0)


def observed_actions(problem: SepsisSimulated, index: int) -> torch.Tensor:
    return problem.levels.digitise(problem.case(index).episode.columns(problem.levels.names))


def test_observations_are_of_training_patients_alone(problem: SepsisSimulated) -> None:
    tables = [problem.observations(), problem.held_out(), problem.tested()]
    assert sum(map(len, tables)) == sum(episode.horizon - 1 for episode in problem.stays.episodes)
    pressures = [set(table.columns(["MeanBP"])[:, 0].tolist()) for table in tables]
    assert not pressures[0] & pressures[2]
    assert not pressures[0] & pressures[1]


def test_nothing_changed_is_what_was_observed(problem: SepsisSimulated) -> None:
    for index in range(5):
        episode, decision = problem.case(index).episode, doing({})
        states = problem.true_states(episode, decision)
        torch.testing.assert_close(states, episode.values[:, :9], rtol=1e-10, atol=1e-10)
        score = problem.score(problem.case(index), decision)
        assert (
            score["true_value"]
            == score["true_observed"]
            == pytest.approx(-float(episode.columns(["SOFA"]).sum()))
        )
        assert score["true_improvement"] == 0


def test_the_course_answers_as_the_law_does(problem: SepsisSimulated) -> None:
    """The enumerated course, whose actions are level medians, agrees with the law under the same doses."""
    for index in range(3):
        one_case = problem.case(index)
        objective = true_return(problem.cohort, problem.levels, one_case.episode, 2)
        decision = doing({2: 17, 5: 0})
        sequence = objective.sequence(decision)
        assert float(objective(sequence)) == pytest.approx(problem.score(one_case, decision)["true_value"])
        assert float(objective(objective.observed)) == pytest.approx(objective.outcome())
        assert objective.outcome() == pytest.approx(problem.score(one_case, decision)["true_observed"])


@pytest.mark.slow
def test_the_optimum_is_at_least_what_any_decision_gives(problem: SepsisSimulated) -> None:
    one_case = problem.case(1)
    best = problem.optimum(one_case)
    single = [
        problem.score(one_case, doing({step: action}))["true_value"]
        for step in range(9)
        for action in range(25)
    ]
    assert best == pytest.approx(max(single))
    objective = true_return(problem.cohort, problem.levels, one_case.episode, 2)
    assert Exhaustive()(objective).value >= GreedyChanges()(objective).value >= objective.outcome()


def test_a_response_marks_what_was_altered(problem: SepsisSimulated) -> None:
    decision = doing({3: 24 if int(observed_actions(problem, 0)[3]) != 24 else 0})
    table = problem.respond(problem.case(0), decision)
    dosed = table.names.index("max_dose_vaso")
    assert len(table) == 9
    assert table.altered.sum() == 4
    assert table.altered[3, dosed]
    assert table.altered[2, len(table.names) // 2 + dosed]
    observed = problem.case(0).episode
    torch.testing.assert_close(table.values[:3, 0], observed.values[:3, 0])


def test_lagged_doses_are_judged_at_the_step_at_which_they_were_given() -> None:
    lagged = SepsisSimulated(patients=150, seed=0, action_lag=1)
    decision = doing({})
    score = lagged.score(lagged.case(0), decision)
    assert (
        score["true_value"]
        == score["true_observed"]
        == pytest.approx(-float(lagged.case(0).episode.columns(["SOFA"]).sum()))
    )
    states = lagged.true_states(lagged.case(0).episode, decision)
    torch.testing.assert_close(states, lagged.case(0).episode.values[:, :9], rtol=1e-10, atol=1e-10)
    with pytest.raises(ValueError, match="action_lag=0 only"):
        lagged.optimum(lagged.case(0))
