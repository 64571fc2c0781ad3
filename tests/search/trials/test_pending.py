"""What is believed of experiments that are under way, and decisions beside them."""

from functools import partial

import pytest
import torch

from rehearsal_torch.data.decision import Decision
from rehearsal_torch.data.finding import Finding
from rehearsal_torch.data.known_reward import FunctionReward
from rehearsal_torch.data.table import Table
from rehearsal_torch.data.trials.trial_log import TrialLog
from rehearsal_torch.objectives.expected_reward import PosteriorMean
from rehearsal_torch.objectives.upper_bounds import ConfidenceBound
from rehearsal_torch.search.trials import proposal
from rehearsal_torch.search.trials.acquisition import AcquisitionSearch, Proposal, TrialSearch, recommend
from rehearsal_torch.search.trials.proposal import (
    another_action,
    aware_of_pending,
    decided_beside,
    expected_rows,
    impute_pending,
)
from rehearsal_torch.seeding import round_seed
from rehearsal_torch.surrogates.network.exogenous_model import ExogenousModel
from rehearsal_torch.training.surrogate_fit import fit
from tests.toys.causal_toys import WrittenLaw, WrittenModel, hills, linear_chain, one_case, plain
from tests.toys.noisy_nodes import CHAIN, chain

DOUBLE = torch.float64


def asked(log, *actions):
    for action in actions:
        log, _ = log.ask(torch.tensor(action, dtype=DOUBLE))
    return log


def log_of(task, rows, *pending):
    """Completed trials, each (actions, nodes), and pending ones."""
    log = TrialLog(task)
    for actions, nodes in rows:
        settings = dict(zip(task.actions, actions, strict=True))
        log, _, _ = log.complete(None, dict(zip(task.nodes, nodes, strict=True)), ran=settings)
    return asked(log, *pending)


def test_each_node_is_carried_along_under_the_mean_of_its_noise():
    model = linear_chain()
    log = log_of(model.task, [((0.2, 0.4), (0.4, 0.3))], (0.5, 1.0), (1.0, 0.0))
    found = expected_rows(model, model.task, log)
    first, second = model.draws(1024, 0).mean(0).tolist()
    x = 2 * found.columns(["a"])[:, 0] + 0.1 * first
    y = 1.5 * x - found.columns(["b"])[:, 0] + 0.1 * second
    assert found.names == (*model.task.actions, *model.task.nodes)
    assert found.columns(["a", "b"]).tolist() == [[0.5, 1.0], [1.0, 0.0]]
    torch.testing.assert_close(found.columns(["X", "Y"]), torch.stack([x, y], -1), atol=1e-12, rtol=0)
    assert found.altered.tolist() == [[name in ("a", "b") for name in found.names]] * 2


def test_a_failed_trial_is_believed_like_a_pending_one_and_an_abandoned_one_is_forgotten():
    model = linear_chain()
    log = log_of(model.task, [((0.2, 0.4), (0.4, 0.3))], (0.5, 1.0), (1.0, 0.0), (0.1, 0.1))
    log, _ = log.fail(3, "the pump broke")
    log, _ = log.abandon(4)
    assert expected_rows(model, model.task, log).columns(["a", "b"]).tolist() == [[0.5, 1.0], [1.0, 0.0]]
    # Of a single one too the actions, and no node, are what was set.
    one = expected_rows(model, model.task, log_of(model.task, [((0.2, 0.4), (0.4, 0.3))], (0.5, 1.0)))
    assert one.altered.tolist() == [[name in ("a", "b") for name in one.names]]


def test_a_node_that_the_model_does_not_speak_of_is_that_of_the_nearest_completed_trial():
    # Near by the share of each action's range: b runs over 2, a over 1.
    task = linear_chain().task
    flat = WrittenModel(
        task.flattened(), {"Y": WrittenLaw(lambda w: w.sum(-1), lambda w: 0 * w[..., 0])}, ((0.2, 0.4),)
    )
    done = [((0.0, 0.0), (-7.0, 1.0)), ((0.5, 2.0), (9.0, 2.0)), ((1.0, 0.0), (3.0, 5.0))]
    log = log_of(task, done, (0.2, 1.2), (0.1, 0.7))
    found = expected_rows(flat, task, log)
    assert found.columns(["X"])[:, 0].tolist() == [9.0, -7.0]
    assert found.columns(["Y"])[:, 0].tolist() == pytest.approx([1.4, 0.8], abs=1e-3)


@pytest.mark.parametrize(("weight", "unit"), [(1.0, 1.0), (-2.0, -0.5)])
def test_where_the_reward_alone_is_learnt_its_single_node_follows_from_it(weight, unit):
    task = plain({"X": ["a"], "Y": ["X"]}, {"a": [0, 1]}, {"weights": {"Y": weight}})
    reward = plain({"reward": ["a"]}, {"a": [0, 1]}, "reward")
    model = WrittenModel(
        reward, {"reward": WrittenLaw(lambda w: 10 * w[..., 0], lambda w: 0 * w[..., 0])}, ((0.2,),)
    )
    found = expected_rows(model, task, log_of(task, [((0.2,), (3.0, 4.0))], (0.5,)))
    assert found.columns(["Y"]).item() == pytest.approx(5 * unit, abs=1e-3)
    assert found.columns(["X"]).item() == 3.0


def test_a_reward_of_several_nodes_says_nothing_of_any_single_one():
    task = plain(
        {"X": ["a"], "Y": ["a"]}, {"a": [0, 1]}, FunctionReward(("X", "Y"), lambda x: x[..., 0] * x[..., 1])
    )
    reward = plain({"reward": ["a"]}, {"a": [0, 1]}, "reward")
    model = WrittenModel(
        reward, {"reward": WrittenLaw(lambda w: 10 * w[..., 0], lambda w: 0 * w[..., 0])}, ((0.2,),)
    )
    found = expected_rows(model, task, log_of(task, [((0.2,), (3.0, 4.0))], (0.5,)))
    assert found.columns(["X", "Y"]).tolist() == [[3.0, 4.0]]


class Told(PosteriorMean):
    takes_pending = True

    def __init__(self, surrogate, case, pending=None):
        super().__init__(surrogate, case)
        self.pending = pending


@pytest.mark.parametrize("make", [Told, partial(Told)])
def test_an_objective_that_takes_pending_actions_is_told_of_them_and_the_model_stays(make):
    model, seen = linear_chain(), []
    model.condition = lambda table: seen.append(len(table))
    log = log_of(model.task, [((0.2, 0.4), (0.4, 0.3))], (0.5, 1.0), (1.0, 0.0), (0.1, 0.1))
    log, _ = log.abandon(4)
    log, _ = log.fail(3, "the pump broke")
    made = aware_of_pending(make, model, one_case(model.task), log)
    assert made.pending.tolist() == [[0.5, 1.0], [1.0, 0.0]]
    assert seen == []
    done = log_of(model.task, [((0.2, 0.4), (0.4, 0.3))])
    assert aware_of_pending(make, model, one_case(model.task), done).pending is None


@pytest.mark.parametrize("make", [PosteriorMean, lambda model, case: PosteriorMean(model, case)])
def test_for_others_they_are_imputed_before_the_objective_is_made(make):
    model, seen = linear_chain(), []
    model.condition = lambda table: seen.append(len(table))
    log = log_of(model.task, [((0.2, 0.4), (0.4, 0.3))], (0.5, 1.0))
    assert isinstance(aware_of_pending(make, model, one_case(model.task), log), PosteriorMean)
    assert seen == [1, 2]
    aware_of_pending(make, model, one_case(model.task), log_of(model.task, [((0.2, 0.4), (0.4, 0.3))]))
    assert seen == [1, 2]


def test_what_is_expected_follows_from_the_completed_trials_alone():
    model, seen = linear_chain(), []
    model.condition = lambda table: seen.append(table)
    log = log_of(model.task, [((0.2, 0.4), (0.4, 0.3))], (0.5, 1.0))
    impute_pending(model, model.task, log)
    assert [len(table) for table in seen] == [1, 2]
    assert torch.equal(seen[0].values, log.table.values)
    assert torch.equal(seen[1].values[1:], expected_rows(model, model.task, log).values)


def test_believing_a_trial_takes_the_epistemic_uncertainty_there_and_moves_no_hyper_parameter():
    table = chain(24, 0)
    model = fit(ExogenousModel(CHAIN, phi="homoskedastic", components=1, kernel="rbf"), table)
    log, *_ = TrialLog(CHAIN).take(Table(table.names, table.values, table.altered))
    far = torch.stack([CHAIN.box.upper, CHAIN.box.lower])
    log = asked(log, *far.tolist())
    before = {name: each.clone() for name, each in model.encoder.state_dict().items() if "log_" in name}
    draws = torch.zeros(1, len(CHAIN.nodes), dtype=DOUBLE)
    _, unsure = model.network().propagate(far, draws, spread=CHAIN.nodes)
    impute_pending(model, CHAIN, log)
    _, sure = model.network().propagate(far, draws, spread=CHAIN.nodes)
    assert before
    assert all(torch.equal(model.encoder.state_dict()[name], each) for name, each in before.items())
    assert all(bool((sure[node] < unsure[node]).all()) for node in CHAIN.nodes)


SEARCH = AcquisitionSearch(screened=64, starts=8, incumbents=2, steps=20)


@pytest.fixture(scope="module")
def fitted():
    table = chain(12, 0)
    model = fit(ExogenousModel(CHAIN, phi="homoskedastic", components=1, kernel="rbf"), table)
    log, *_ = TrialLog(CHAIN).take(Table(table.names, table.values, table.altered))
    return model, log


def settings(decision):
    return decision.alteration.values


def test_what_sets_nothing_is_returned_as_it_is(fitted):
    model, log = fitted
    log, _ = log.ask(torch.tensor([0.1, 0.2], dtype=torch.float64))
    none = Decision(None, 0.0, reason=Finding("no_gain", "nothing to try"))
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
    found = recommend(objective, round_seed(0, objective.case.identity))
    assert beside.recommendation.values.tolist() == found.action.tolist()
    assert beside.estimate.point == found.predicted
    assert beside.trace["pending"] == 1
    assert beside.trace["search"] == "acquisition"
    expected = float(objective.expected(settings(beside)[None]))
    assert beside.trace["predicted_reward"] == pytest.approx(expected)


def small(model_class):
    return partial(model_class, draws=8)


def begun(task):
    """One completed trial, in the middle of the box."""
    middle = dict(zip(task.actions, (task.box.lower + task.box.width / 2).tolist(), strict=True))
    return TrialLog(task).complete(None, dict.fromkeys(task.nodes, 1.0), ran=middle)[0]


class Gave(TrialSearch):
    """A search that always finds this action."""

    def __init__(self, action, **facts):
        super().__init__()
        self.proposal = Proposal(torch.tensor(action, dtype=DOUBLE), 0.25, facts)

    def propose(self, objective, budget):
        return self.proposal


def test_what_is_found_is_tried_and_the_claim_is_that_of_completed_trials() -> None:
    model = hills()
    log, _ = begun(model.task).ask(torch.tensor([0.5, 0.5], dtype=torch.float64))
    log, _ = log.ask(torch.tensor([1.5, 2.5], dtype=torch.float64))
    case = one_case(model.task, "4")
    search = Gave([1.0, 3.0], search="a search", evaluations=7, runner_up="stale", more=2)
    objective, found = decided_beside(small(PosteriorMean), search, model, case, log, seed=5)
    kept = recommend(objective, round_seed(5, objective.case.identity))
    assert settings(found).tolist() == [1.0, 3.0]
    assert found.value == found.trace["acquisition"] == 0.25
    assert found.recommendation.values.tolist() == kept.action.tolist()
    assert found.estimate.point == kept.predicted
    assert found.trace["evaluations"] == 7 + kept.evaluations
    assert (found.trace["pending"], found.trace["more"], found.trace["search"]) == (2, 2, "a search")
    # The runner-up is the one beside this recommendation.
    assert found.trace["runner_up"]["action"] == {"a": 0.5, "b": 0.5}
    _, silent = decided_beside(small(PosteriorMean), Gave([1.0, 3.0]), model, case, log, seed=5)
    assert silent.trace["evaluations"] == kept.evaluations


@pytest.mark.parametrize("failed", [False, True])
def test_in_the_place_of_a_pending_or_failed_action_another_is_tried(monkeypatch, failed) -> None:
    monkeypatch.setattr(proposal, "TRIES", 32)
    model = linear_chain()
    log, _ = begun(model.task).ask(torch.tensor([0.5, 0.5], dtype=torch.float64))
    if failed:
        log, _ = log.fail(2, "broke")
    case, make = one_case(model.task), small(ConfidenceBound)
    _, found = decided_beside(make, Gave([0.5, 0.5]), model, case, log, seed=0)
    objective = make(model, case)
    assert torch.equal(settings(found), another_action(objective, log, 0))
    with torch.no_grad():
        value = float(objective(settings(found)))
    assert found.value == found.trace["acquisition"] == pytest.approx(value)
    assert found.trace["pending"] == 1 - failed


def test_where_all_that_is_spread_waits_the_action_to_keep_is_said(monkeypatch) -> None:
    monkeypatch.setattr(proposal, "TRIES", 1)
    model = linear_chain()
    case, make, log = one_case(model.task), small(PosteriorMean), begun(model.task)
    log, _ = log.ask(another_action(make(model, case), log, 0))
    search = Gave(log.settings("pending")[0].tolist(), evaluations=7)
    objective, found = decided_beside(make, search, model, case, log, seed=0)
    kept = recommend(objective, round_seed(0, objective.case.identity))
    assert (found.alteration, found.reason.kind) == (None, "nothing_left")
    assert found.reason.text.startswith("nothing is left to try")
    assert found.recommendation.values.tolist() == kept.action.tolist()
    assert found.estimate.point == kept.predicted
    assert "predicted_reward" not in found.trace
