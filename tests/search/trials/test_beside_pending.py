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
from rehearsal_torch.search.trials.acquisition import AcquisitionSearch
from rehearsal_torch.search.trials.beside_pending import decided_beside
from rehearsal_torch.search.trials.recommendation import recommend
from rehearsal_torch.seeding import round_seed
from rehearsal_torch.surrogates.network.exogenous_model import ExogenousModel
from rehearsal_torch.training.fit import fit
from tests.toys.causal_toys import one_case
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
