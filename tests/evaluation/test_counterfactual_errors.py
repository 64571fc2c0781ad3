"""The truth panel: a model that is the truth has no error, and references are worse."""

from copy import deepcopy
from functools import partial

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from rehearsal_torch.data.decision import Decision, EpisodeCase, action_name
from rehearsal_torch.evaluation.counterfactual_errors import TruthRow, gain_parts, random_change, truth_rows
from rehearsal_torch.mechanisms.location_scale import LocationScale
from rehearsal_torch.objectives.counterfactual_return import CounterfactualReturn
from rehearsal_torch.objectives.step_reward import LinearReward
from rehearsal_torch.objectives.task_reward import StepScore
from rehearsal_torch.problems.sequences.four_hour_table import CONTEXTUAL, DOSES, STATIC, VARYING
from rehearsal_torch.problems.sequences.sepsis_cohort import STATES, SepsisSimulated
from rehearsal_torch.search.sequences.baselines import GreedyChanges
from rehearsal_torch.spaces.box import Alteration
from rehearsal_torch.surrogates.transition import TransitionModel
from rehearsal_torch.surrogates.transition_ensemble import TransitionEnsemble
from rehearsal_torch.training.gradient_descent import Descent
from rehearsal_torch.training.surrogate_fit import fit

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def problem() -> SepsisSimulated:
    return SepsisSimulated(patients=300, seed=0, horizon=10, limit=6, changes=1)


@pytest.fixture(scope="module")
def model(problem: SepsisSimulated) -> TransitionModel:
    torch.manual_seed(0)
    model = TransitionModel(VARYING, STATIC, CONTEXTUAL, DOSES, partial(LocationScale, hidden=40))
    return fit(model, problem.observations(), Descent(max_epochs=12, progress=False))


@pytest.fixture(scope="module")
def rows(problem: SepsisSimulated, model: TransitionModel) -> list[TruthRow]:
    decided: list[tuple[EpisodeCase, Decision]] = []
    for index in range(problem.count()):
        one_case = problem.case(index)
        decided.append(
            (
                one_case,
                GreedyChanges()(CounterfactualReturn(model, one_case, LinearReward({"SOFA": -1.0}), 1)),
            )
        )
    return list(truth_rows(model, problem, decided, 1))


def mean(rows: list[TruthRow], **wanted: str) -> float:
    found = [row.value for row in rows if all(getattr(row, name) == value for name, value in wanted.items())]
    assert found
    return sum(found) / len(found)


def test_abduction_beats_fresh_noise(rows: list[TruthRow]) -> None:
    for feature in ("MeanBP", "SOFA", "paO2", "Platelets_count"):
        errors = {
            name: mean(rows, sequence="random change", feature=feature, quantity="rmse", estimator=name)
            for name in ("learnt", "fresh noise")
        }
        assert errors["learnt"] < 0.7 * errors["fresh noise"]


def test_regret_is_the_distance_to_the_optimum_and_never_negative(rows: list[TruthRow]) -> None:
    regrets = [row for row in rows if row.quantity == "regret"]
    assert regrets
    assert min(row.value for row in regrets) >= -1e-9
    best, got = (mean(rows, quantity="return", estimator=name) for name in ("true optimum", "true"))
    assert mean(rows, quantity="regret", estimator="true") == pytest.approx(best - got)


def changed(model: TransitionModel, observed: torch.Tensor, chosen: torch.Tensor) -> Decision:
    """The decision of a whole sequence, in a model's own doses."""
    steps = (chosen != observed).nonzero()[:, 0].tolist()
    if not steps:
        return Decision(None, 0.0)
    names = tuple(action_name(step) for step in steps)
    doses = dict(zip(names, map(tuple, model.doses(chosen[steps]).tolist()), strict=True))
    return Decision(Alteration(names, chosen[steps]), 0.0, doses=doses)


def test_regret_is_measured_over_the_models_own_doses(problem, model):
    """The best single change among a model's doses has no regret, though those doses are not the
    problem's."""
    other = deepcopy(model)
    other.levels.fix(torch.tensor([[0.0, 0.01, 0.02, 0.05, 0.09], [0.0, 500.0, 1000.0, 2000.0, 4000.0]]))
    differ = 0
    for index in range(problem.count()):
        one_case = problem.case(index)
        observed = other.levels.digitise(one_case.episode.columns(DOSES))[:-1]
        sequences = observed.repeat(9 * 25, 1)
        sequences[torch.arange(9 * 25), torch.arange(9 * 25) // 25] = torch.arange(9 * 25) % 25
        tried = [changed(other, observed, chosen) for chosen in sequences]
        best = max(tried, key=lambda decision: problem.score(one_case, decision)["true_value"])
        regret = [
            row.value
            for row in truth_rows(other, problem, [(one_case, best)], 1)
            if (row.quantity, row.estimator) == ("regret", "true")
        ]
        assert regret == pytest.approx([0.0])
        differ += problem.optimum(one_case) != problem.score(one_case, best)["true_value"]
    assert differ


def test_random_changes_are_single_and_repeatable(problem: SepsisSimulated, model: TransitionModel) -> None:
    for index in range(problem.count()):
        episode = problem.case(index).episode
        first, again = (random_change(model, problem, episode) for _ in range(2))
        assert first.actions() == again.actions()
        assert first.doses == again.doses
        ((step, action),) = first.actions().items()
        assert action != int(model.levels.digitise(episode.columns(DOSES))[step])


@pytest.fixture(scope="module")
def scored(problem: SepsisSimulated) -> list[TruthRow]:
    """The rows of an ensemble that does not have SOFA among its states, decided by the score's rules."""
    torch.manual_seed(0)
    member = partial(
        TransitionModel,
        STATES,
        STATIC,
        CONTEXTUAL,
        DOSES,
        partial(LocationScale, hidden=40),
        effects="sparse",
    )
    model = fit(TransitionEnsemble(member, 2), problem.observations(), Descent(max_epochs=12, progress=False))
    reward = StepScore({"pressure": {"MeanBP": {"< 70": 1, "< 65": 2}}})
    decided = [
        (case, GreedyChanges()(CounterfactualReturn(model, case, reward, 1)))
        for case in map(problem.case, range(problem.count()))
    ]
    return list(truth_rows(model, problem, decided, 1, claims=["reward"] * len(decided)))


def test_a_model_without_sofa_is_scored_by_its_rules(scored: list[TruthRow], rows: list[TruthRow]) -> None:
    errors = {
        name: mean(scored, sequence="random change", feature="SOFA", quantity="rmse", estimator=name)
        for name in ("learnt", "fresh noise")
    }
    assert errors["learnt"] < 0.5 * errors["fresh noise"]
    # What happens if nothing changes does not depend on the model, but for the columns it is read from.
    unchanged = [
        mean(
            each, sequence="random change", feature="SOFA", quantity=quantity, estimator="observed trajectory"
        )
        for quantity in ("rmse", "rmse of all steps")
        for each in (scored, rows)
    ]
    assert unchanged[0] == pytest.approx(unchanged[1])
    assert unchanged[2] == pytest.approx(unchanged[3])


def test_a_change_of_the_last_action_is_compared_too(problem, model):
    """It changes no state, only the score of its own step."""
    case = problem.case(0)
    last = case.episode.horizon - 1
    observed = int(model.levels.digitise(case.episode.columns(DOSES))[last])
    other = (observed + 5) % model.levels.actions
    name = action_name(last)
    doses = {name: tuple(model.doses(torch.tensor(other)).tolist())}
    decision = Decision(Alteration((name,), torch.tensor([other])), -1.0, doses=doses)
    found = [
        row for row in truth_rows(model, problem, [(case, decision)], 1) if row.sequence == "recommended"
    ]
    assert {row.quantity for row in found} >= {"rmse of all steps", "gain", "improvement"}
    assert not any(row.quantity in ("rmse", "regret") for row in found)
    assert all(row.value == row.value for row in found if row.estimator != "claimed")


def test_a_claim_bears_the_name_that_it_is_given(scored: list[TruthRow], rows: list[TruthRow]) -> None:
    features = [
        {row.feature for row in each if (row.quantity, row.estimator) == ("improvement", "claimed")}
        for each in (scored, rows)
    ]
    assert features == [{"reward"}, {"SOFA"}]
    assert {row.feature for row in rows if (row.quantity, row.estimator) == ("improvement", "true")} == {
        "SOFA",
        "organ SOFA",
    }


PROBLEM = SepsisSimulated(patients=100, seed=0, horizon=10)


def doing(changed: dict[int, int]) -> Decision:
    names = tuple(action_name(step) for step in changed)
    alteration = Alteration(names, torch.tensor(list(changed.values()))) if changed else None
    return Decision(alteration, 0.0)


@pytest.mark.slow
@given(
    st.integers(0, PROBLEM.count() - 1), st.dictionaries(st.integers(0, 8), st.integers(0, 24), max_size=3)
)
def test_parts_sum_to_the_gain(index: int, changed: dict[int, int]) -> None:
    one_case, decision = PROBLEM.case(index), doing(changed)
    parts, score = gain_parts(PROBLEM, one_case.episode, decision), PROBLEM.score(one_case, decision)
    assert sum(parts) == pytest.approx(score["true_value"] - score["true_observed"])


def test_fluids_alone_are_not_scored() -> None:
    for index in range(PROBLEM.count()):
        observed = PROBLEM.levels.digitise(PROBLEM.case(index).episode.columns(PROBLEM.levels.names)).tolist()
        same_vasopressor = {2: observed[2] // 5 * 5 + (observed[2] + 1) % 5}
        doses = PROBLEM.trajectories_of_doses(PROBLEM.case(index).episode, doing(same_vasopressor))
        if torch.equal(doses[0][:, 0], doses[1][:, 0]):
            parts = gain_parts(PROBLEM, PROBLEM.case(index).episode, doing(same_vasopressor))
            assert parts[1] == 0
            break
    else:
        pytest.fail("expected a patient whose third step has no vasopressor")


def test_a_vasopressor_given_to_the_untreated_costs_points_by_scoring() -> None:
    counted = 0
    for index in range(PROBLEM.count()):
        episode = PROBLEM.case(index).episode
        if (
            float(episode.columns(["max_dose_vaso"])[3, 0]) == 0
            and float(episode.columns(["MeanBP"])[3, 0]) >= 70
        ):
            assert gain_parts(PROBLEM, episode, doing({3: 20}))[1] == -4
            counted += 1
    assert counted > 3
