"""Decisions beside experiments that are under way."""

from functools import partial

import pytest
import torch

from rehearsal_torch.data.causal_task import CausalTask
from rehearsal_torch.data.decision import Decision
from rehearsal_torch.data.table import Table
from rehearsal_torch.data.trials.log import TrialLog
from rehearsal_torch.objectives.trials.confidence_bound import ConfidenceBound
from rehearsal_torch.objectives.trials.expected_reward import PosteriorMean
from rehearsal_torch.search.trials import proposal
from rehearsal_torch.search.trials.acquisition import AcquisitionSearch
from rehearsal_torch.search.trials.beside_pending import decided_beside
from rehearsal_torch.search.trials.proposal import another_action
from rehearsal_torch.search.trials.recommendation import recommend
from rehearsal_torch.seeding import round_seed
from rehearsal_torch.spaces.box import Alteration
from rehearsal_torch.surrogates.network.exogenous_model import ExogenousModel
from rehearsal_torch.training.fit import fit
from tests.toys.causal_toys import hills, linear_chain, one_case
from tests.toys.noisy_nodes import CHAIN, chain

SEARCH = AcquisitionSearch(screened=64, starts=8, incumbents=2, steps=20)


@pytest.fixture(scope="module")
def fitted():
    table = chain(12, 0)
    model = fit(ExogenousModel(CHAIN, phi="homoskedastic", components=1, kernel="rbf"), table)
    log, _ = TrialLog(CHAIN).complete_rows(Table(table.names, table.values, table.altered))
    return model, log


def settings(decision):
    return decision.alteration.values


def test_what_sets_nothing_is_returned_as_it_is(fitted):
    model, log = fitted
    log, _ = log.ask(torch.tensor([0.1, 0.2], dtype=torch.float64))
    none = Decision(None, 0.0, status="no_action", reason="nothing to try")
    case, make = one_case(CHAIN), partial(ConfidenceBound, draws=4)
    objective, found = decided_beside(make, lambda _: none, model, case, log, seed=0)
    assert found is none
    assert isinstance(objective, ConfidenceBound)
    assert len(objective.visited) == 12


@pytest.mark.slow
def test_the_pending_action_is_not_tried_again_and_claims_stay(fitted):
    model, log = fitted
    case, make = one_case(CHAIN), partial(ConfidenceBound, draws=16)
    alone = SEARCH(make(model, case))
    log, _ = log.ask(settings(alone))
    seen = model.visited().clone()
    objective, beside = decided_beside(make, SEARCH, model, case, log, seed=0)
    assert torch.equal(model.visited(), seen), "the model itself is not conditioned"
    away = (settings(beside) - settings(alone)).abs() / CHAIN.box.width
    assert float(away.max()) > 1e-3
    found = recommend(objective, round_seed(0, case.identity))
    assert beside.recommendation.values.tolist() == found.action.tolist()
    assert beside.estimate.point == found.predicted
    assert beside.trace["pending"] == 1
    assert beside.trace["search"] == "acquisition"
    expected = float(objective.expected(settings(beside)[None], objective.other))
    assert beside.trace["predicted_reward"] == pytest.approx(expected)


@pytest.mark.slow
def test_where_all_settings_wait_nothing_is_set_and_the_one_to_keep_stays():
    offered = {"a": {"values": [0.0, 1.0]}, "b": {"values": [0.0, 1.0]}}
    levels = CausalTask.of(CHAIN.to_plain() | {"actions": offered})
    table = chain(12, 0)
    at = [table.names.index(name) for name in offered]
    values = table.values.clone()
    values[:, at] = values[:, at].gt(0.5).double()
    rows = Table(table.names, values, table.altered)
    model = fit(ExogenousModel(levels, phi="homoskedastic", components=1, kernel="rbf"), rows)
    log, _ = TrialLog(levels).complete_rows(rows)
    for setting in torch.cartesian_prod(*torch.eye(2, dtype=torch.float64)):
        log, _ = log.ask(setting)
    case, make = one_case(levels), partial(ConfidenceBound, draws=16)
    objective, found = decided_beside(make, SEARCH, model, case, log, seed=0)
    kept = recommend(objective, round_seed(0, case.identity))
    assert (found.alteration, found.status) == (None, "no_action")
    assert found.recommendation.values.tolist() == kept.action.tolist()
    assert found.estimate.point == kept.predicted
    assert found.reason.startswith("nothing is left to try")
    assert "predicted_reward" not in found.trace


@pytest.mark.slow
def test_a_search_that_finds_a_pending_action_is_given_another(fitted):
    model, log = fitted
    case, make = one_case(CHAIN), partial(PosteriorMean, draws=16)
    # The posterior mean has the same maximum beside its own maximiser.
    for _ in range(2):
        _, found = decided_beside(make, SEARCH, model, case, log, seed=0)
        assert not bool(log.contains(settings(found), "pending"))
        assert found.value == pytest.approx(found.trace["acquisition"])
        log, _ = log.ask(settings(found))
    assert len(log.in_states("pending")) == 2


def small(model_class):
    return partial(model_class, draws=8, evaluation_draws=16)


def begun(task):
    """One completed trial, in the middle of the box."""
    middle = dict(zip(task.actions, (task.box.lower + task.box.width / 2).tolist(), strict=True))
    return TrialLog(task).complete(None, dict.fromkeys(task.nodes, 1.0), ran=middle)[0]


def gave(log, action, **trace):
    """A search that always finds this action."""
    found = Decision(Alteration(log.task.actions, torch.tensor(action).double()), 0.25, trace=trace)
    return lambda objective: found


def test_what_is_found_is_tried_and_the_claim_is_that_of_completed_trials() -> None:
    model = hills()
    log, _ = begun(model.task).ask(torch.tensor([0.5, 0.5], dtype=torch.float64))
    log, _ = log.ask(torch.tensor([1.5, 2.5], dtype=torch.float64))
    case = one_case(model.task, "4")
    search = gave(log, [1.0, 3.0], search="a search", evaluations=7, runner_up="stale", more=2)
    objective, found = decided_beside(small(PosteriorMean), search, model, case, log, seed=5)
    kept = recommend(objective, round_seed(5, "4"))
    assert settings(found).tolist() == [1.0, 3.0]
    assert found.value == found.trace["acquisition"] == 0.25
    assert found.recommendation.values.tolist() == kept.action.tolist()
    assert found.estimate.point == kept.predicted
    assert found.trace["evaluations"] == 7 + kept.evaluations
    assert (found.trace["pending"], found.trace["more"], found.trace["search"]) == (2, 2, "a search")
    # The runner-up is the one beside this recommendation.
    assert found.trace["runner_up"]["action"] == {"a": 0.5, "b": 0.5}
    _, silent = decided_beside(small(PosteriorMean), gave(log, [1.0, 3.0]), model, case, log, seed=5)
    assert silent.trace["evaluations"] == kept.evaluations
    assert silent.trace["search"] == ""


@pytest.mark.parametrize("failed", [False, True])
def test_in_the_place_of_a_pending_or_failed_action_another_is_tried(monkeypatch, failed) -> None:
    monkeypatch.setattr(proposal, "TRIES", 32)
    model = linear_chain()
    log, _ = begun(model.task).ask(torch.tensor([0.5, 0.5], dtype=torch.float64))
    if failed:
        log, _ = log.fail(2, "broke")
    case, make = one_case(model.task), partial(small(ConfidenceBound), propagate="optimistic")
    objective, found = decided_beside(make, gave(log, [0.5, 0.5]), model, case, log, seed=0)
    assert objective.further == 1
    assert torch.equal(settings(found), another_action(objective, log, 0))
    with torch.no_grad():
        # Without a push.
        value = float(objective(torch.cat([settings(found), torch.zeros(1).double()])))
    assert found.value == found.trace["acquisition"] == pytest.approx(value)
    assert found.trace["pending"] == 1 - failed


def test_where_all_that_is_spread_waits_the_action_to_keep_is_said(monkeypatch) -> None:
    monkeypatch.setattr(proposal, "TRIES", 1)
    model = linear_chain()
    case, make, log = one_case(model.task), small(PosteriorMean), begun(model.task)
    log, _ = log.ask(another_action(make(model, case), log, 0))
    search = gave(log, log.settings("pending")[0].tolist(), evaluations=7)
    objective, found = decided_beside(make, search, model, case, log, seed=0)
    kept = recommend(objective, round_seed(0, case.identity))
    assert (found.alteration, found.status) == (None, "no_action")
    assert found.reason.startswith("nothing is left to try")
    assert found.recommendation.values.tolist() == kept.action.tolist()
    assert found.estimate.point == kept.predicted
    assert "predicted_reward" not in found.trace
    assert found.trace["search"] == ""
