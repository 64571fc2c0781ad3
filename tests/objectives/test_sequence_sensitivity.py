"""Hidden causes of action sequences: the shipped ensemble on a small simulated cohort."""

import json
from functools import partial

import pytest
import torch

from rehearsal_torch.checkpoint import load
from rehearsal_torch.data.decision import Decision, action_name
from rehearsal_torch.data.table import Table
from rehearsal_torch.decision_loop import rounds
from rehearsal_torch.estimators.omitted_variable import bias_factor
from rehearsal_torch.objectives import sequence_sensitivity
from rehearsal_torch.objectives.counterfactual_return import CounterfactualReturn
from rehearsal_torch.objectives.sequence_sensitivity import (
    NO_MODEL,
    NO_RECORDS,
    SequenceOverturning,
    shifted_returns,
)
from rehearsal_torch.objectives.step_reward import LinearReward
from rehearsal_torch.problems.sequences.sepsis_cohort import SepsisSimulated
from rehearsal_torch.round_record import decision_of
from rehearsal_torch.search.sequences.baselines import GreedyChanges
from rehearsal_torch.spaces.box import Alteration
from tests.objectives.test_task_reward import sofa_score
from tests.places import ROOT
from tests.toys.episodes import equation_episode

REWARD = LinearReward({"MeanBP": 1.0, "output_4hourly": 0.01})


@pytest.fixture(scope="module")
def model():
    return load(ROOT / "checkpoints/sepsis")


@pytest.fixture(scope="module")
def problem() -> SepsisSimulated:
    return SepsisSimulated(patients=120, horizon=10)


@pytest.fixture(scope="module")
def hidden(model, problem) -> SequenceOverturning:
    return SequenceOverturning(model, problem.observations)


def objective(model, problem, changes=2, use="mean", index=0):
    return CounterfactualReturn(model, problem.case(index), REWARD, changes, use)


def test_without_shifts_it_is_the_return_and_shifts_are_added_to_every_member(model, problem):
    wanted = objective(model, problem)
    sequence = wanted.sequence(GreedyChanges()(wanted))
    width = len(model.names)
    none = torch.zeros(1, wanted.horizon - 1, width, dtype=torch.float64)
    assert float(shifted_returns(wanted, sequence, none)) == pytest.approx(float(wanted(sequence)))
    last = none.clone()
    last[0, -1, model.names.index("MeanBP")] = 0.1
    gain = 0.1 * float(model.state_scale()[model.names.index("MeanBP")])
    assert float(shifted_returns(wanted, sequence, last) - wanted(sequence)) == pytest.approx(gain)


@pytest.mark.parametrize("use", ["mean", "worst"])
def test_the_tipping_strength_is_where_no_improvement_is_left(model, problem, hidden, use):
    wanted = objective(model, problem, use=use)
    decision = GreedyChanges()(wanted)
    tipping = hidden.tipping(wanted, decision)
    assert 0 < tipping < 1
    assert tipping in torch.logspace(-4, -0.0044, 200, dtype=torch.float64).tolist()
    sequence = wanted.sequence(decision)
    radius = hidden._shift_radius(wanted, sequence)
    changed = (sequence != wanted.observed).nonzero()[:, 0].tolist()
    assert sorted((radius > 0).any(-1).nonzero()[:, 0].tolist()) == changed
    # No improvement is left by one of the corners of the shifts, the same signs at every step or other ones.
    corners = torch.cartesian_prod(*[torch.tensor([-1.0, 1.0])] * radius.shape[1]).to(radius)
    shifts = corners.unsqueeze(1) * bias_factor(torch.tensor(2 * tipping)) * radius
    assert float(shifted_returns(wanted, sequence, shifts).min()) < wanted.outcome()
    # A cause of a tenth of the strength leaves one whatever the signs.
    shifts = corners.unsqueeze(1) * bias_factor(torch.tensor(tipping / 10)) * radius
    assert float(shifted_returns(wanted, sequence, shifts).min()) > wanted.outcome()


def test_a_change_that_moves_no_state_cannot_be_overturned(model, problem, hidden):
    # The full score counts the dose of the last step, after which no state is scored.
    wanted = CounterfactualReturn(model, problem.case(0), sofa_score(), 1)
    last = wanted.horizon - 1
    name, action = action_name(last), (int(wanted.observed[last]) + 1) % 2
    decision = Decision(Alteration((name,), torch.tensor([float(action)], dtype=torch.float64)), 0.0)
    assert wanted.sequence(decision)[last] == action
    assert hidden.tipping(wanted, decision) == 1.0


def test_larger_improvements_need_stronger_causes(model, problem, hidden):
    """The same change, judged by a reward that grants half of its effect, tips at a weaker cause."""
    wanted = objective(model, problem, changes=1)
    decision = GreedyChanges()(wanted)
    tipping = hidden.tipping(wanted, decision)

    class Half(CounterfactualReturn):
        def outcome(self) -> float:
            return super().outcome() + gain / 2

    gain = decision.value - wanted.outcome()
    half = Half(model, wanted.case, REWARD, 1)
    assert hidden.tipping(half, decision) < tipping


def test_a_part_tips_where_its_own_step_shifted_is_no_better_than_without_it(model, problem, hidden):
    wanted = objective(model, problem)
    decision = GreedyChanges()(wanted)
    parts, sequence = hidden.part_tippings(wanted, decision), wanted.sequence(decision)
    radius, steps = hidden._shift_radius(wanted, sequence), sorted(decision.actions())
    assert list(parts) == [action_name(step) for step in steps[::-1]]
    assert len(steps) > 1
    for step in steps[::-1]:
        without, alone = sequence.clone(), torch.zeros_like(radius)
        without[step], alone[step] = wanted.observed[step], radius[step]
        corners = torch.cartesian_prod(*[torch.tensor([-1.0, 1.0])] * radius.shape[1]).to(radius)
        tipping = torch.tensor(parts[action_name(step)], dtype=torch.float64)
        for factor, better in ((1.001, False), (0.1, True)):
            shifts = corners.unsqueeze(1) * bias_factor(factor * tipping) * alone
            least = float(shifted_returns(wanted, sequence, shifts).min())
            assert (least > float(wanted(without))) == better
        sequence = without


def test_the_decision_carries_it_with_the_strongest_covariate(model, problem, hidden):
    wanted = objective(model, problem)
    decision = hidden.with_hidden_cause(wanted, GreedyChanges()(wanted))
    found = decision.hidden_cause
    assert found is not None
    assert found.covariate in model.first.rescale.names
    assert found.state in model.names
    assert 0 < found.yardstick < 1
    kept = GreedyChanges()(objective(model, problem, changes=0))
    assert hidden.with_hidden_cause(wanted, kept) is kept


def test_rounds_record_it_and_read_it_back(model, problem):
    made = partial(CounterfactualReturn, reward=REWARD, changes=1)
    (found,) = rounds(problem, model, made, GreedyChanges(), [0])
    assert found.decision.hidden_cause is not None
    line = json.loads(found.line())
    assert line["hidden_cause"] == found.decision.hidden_cause.to_dict()
    assert decision_of(line).hidden_cause == found.decision.hidden_cause


def test_where_the_rows_do_not_say_the_trace_names_the_reason(model, problem):
    table = problem.observations()
    wanted = objective(model, problem)
    decision = GreedyChanges()(wanted)
    cases = [
        (Table(table.names, table.values[:50], table.altered[:50]), "there are 50 transitions; expected at"),
        (Table(table.names, table.values[:0], table.altered[:0]), NO_RECORDS),
        (Table(table.names, table.values, torch.ones_like(table.altered)), "decisions altered some of the"),
        (Table.observed(("a", "b"), torch.zeros(500, 2, dtype=torch.float64)), "no column ['FiO2_1', "),
    ]
    for rows, words in cases:
        silent = SequenceOverturning(model, lambda rows=rows: rows).with_hidden_cause(wanted, decision)
        assert silent.hidden_cause is None
        assert words in silent.trace["hidden_cause"]
        assert silent.trace == decision.trace | {"hidden_cause": silent.trace["hidden_cause"]}
        assert json.loads(json.dumps(silent.to_dict()))["trace"] == silent.trace


def test_models_of_other_kinds_have_none_and_say_so():
    wanted = equation_episode(0)
    hidden = SequenceOverturning(wanted.surrogate, lambda: pytest.fail("needs no rows"))
    assert hidden.model is None
    assert hidden.spread == NO_MODEL


def test_two_rows_for_each_column_of_the_regressions_are_needed(model, problem):
    table, first = problem.observations(), model.first
    covariates, doses = len(first.rescale.names), len(first.dose_names)
    # A constant, the covariates, their squares and products, and the doses.
    least = 2 * (1 + covariates + covariates * (covariates + 1) // 2 + doses)
    few, enough = (
        SequenceOverturning(model, lambda rows=rows: Table.observed(table.names, table.values[:rows]))
        for rows in (least - 1, least)
    )
    assert few.spread == f"not computed: there are {least - 1} transitions; expected at least {least}"
    assert not isinstance(enough.spread, str)


def test_doses_that_do_not_vary_say_nothing(model, problem):
    table = problem.observations()
    values = table.values.clone()
    for name in model.dose_names:
        values[:, table.names.index(name)] = 1.0
    same = SequenceOverturning(model, lambda: Table.observed(table.names, values))
    assert same.spread == "not computed: no dose varies among the transitions"


def test_of_many_rows_evenly_spaced_ones_are_taken(model, problem, monkeypatch):
    table = Table.observed(problem.observations().names, problem.observations().values)
    monkeypatch.setattr(sequence_sensitivity, "MOST_ROWS", 700)
    places = torch.linspace(0, len(table) - 1, 700, dtype=torch.float64).round().long()
    assert len(table) > 700
    found, wanted = (
        SequenceOverturning(model, lambda rows=rows: rows).spread
        for rows in (table, Table.observed(table.names, table.values[places]))
    )
    assert torch.equal(found.precision, wanted.precision)
    assert torch.equal(found.residual, wanted.residual)
    # Those of the model that claims.
    left = model.closed.residuals(Table.observed(table.names, table.values[places]))
    residual = (left - left.mean(0)).square().mean(0).sqrt()
    torch.testing.assert_close(found.residual, residual, rtol=1e-5, atol=1e-7)
