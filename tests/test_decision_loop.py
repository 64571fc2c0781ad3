"""One loop for all: a world in foresight that is learnt from, and episodes in hindsight that are not."""

import json
from dataclasses import replace
from functools import partial

import pytest
import torch

from rehearsal_torch import decision_loop, task_pool
from rehearsal_torch.certificate import CredibleBound
from rehearsal_torch.data.finding import Finding
from rehearsal_torch.decision_loop import rounds
from rehearsal_torch.objectives.counterfactual_return import CounterfactualReturn
from rehearsal_torch.objectives.gaussian_success import GaussianSuccess
from rehearsal_torch.objectives.objective import class_of, objective_for, settings_of
from rehearsal_torch.objectives.step_reward import LinearReward
from rehearsal_torch.objectives.success_probability import SuccessProbability
from rehearsal_torch.problems.cases.changing_world import TwoStores
from rehearsal_torch.problems.cases.linear_examples import RideHailing
from rehearsal_torch.problems.cases.nonlinear_examples import Loan
from rehearsal_torch.problems.world_size import SampleSize
from rehearsal_torch.round_record import answered, decision_of
from rehearsal_torch.search.alterations.mixed_integer import MixedInteger
from rehearsal_torch.search.alterations.projected_newton import ProjectionNewton
from rehearsal_torch.search.sequences.baselines import GreedyChanges
from rehearsal_torch.surrogates.structural.graph_posterior import StructuralPosterior
from rehearsal_torch.surrogates.structural.linear_scm import LinearStructural
from rehearsal_torch.training.surrogate_fit import fit
from tests.toys.episodes import transition_episode
from tests.toys.foresight import (
    Grid,
    GridTogether,
    LinearResponse,
    Market,
    NearOne,
    NearOneTogether,
    near_one,
    near_ones,
)


def fitted(market):
    return fit(LinearResponse(), market.observations())


def test_learning_fits_exactly_what_was_seen():
    market = Market()
    surrogate = fitted(market)
    made = list(rounds(market, surrogate, near_one(), Grid(), range(7), learn=True))
    table = market.observations()
    for each in made:
        table = table + Market().respond(each.case, each.decision)
    torch.testing.assert_close(
        surrogate.response.weights, fit(LinearResponse(), table).response.weights, rtol=1e-10, atol=1e-12
    )


@pytest.mark.parametrize("begin", [0, 1, 4, 6])
def test_learning_that_was_interrupted_goes_on_from_its_answers(begin):
    whole = list(rounds(Market(), fitted(Market()), near_one(noise=1.0), Grid(), range(6), learn=True))
    before = [answered(json.loads(each.line())) for each in whole[:begin]]
    market = Market()
    rest = list(
        rounds(
            market,
            fitted(market),
            near_one(noise=1.0),
            Grid(),
            range(6),
            learn=True,
            begin=begin,
            answers=before,
        )
    )
    assert [each.index for each in rest] == list(range(begin, 6))
    # Least squares may differ in the last bit with where its memory lies.
    for each, other in zip(rest, whole[begin:], strict=True):
        torch.testing.assert_close(each.answer.values, other.answer.values, rtol=1e-9, atol=1e-12)
    assert market.answered == 6 - begin, "nobody is asked twice"


@pytest.mark.slow
def test_a_world_in_foresight_says_whether_a_round_succeeded():
    world = RideHailing(size=SampleSize(rows=20, contexts=12))
    surrogate = fit(StructuralPosterior(world.task, world.hypotheses), world.observations())
    objective = partial(
        SuccessProbability,
        search_scenarios=50,
        validation_scenarios=50,
        test_scenarios=20,
        information_models=20,
    )
    made = list(rounds(world, surrogate, objective, MixedInteger(), learn=True))
    assert [each.success for each in made] == [
        0.8 <= float(each.answer.columns(["rating"])) <= 1 for each in made
    ]
    assert {each.success for each in made} == {True, False}


def test_objectives_are_made_for_the_cases_that_a_search_takes():
    market = Market()
    surrogate, cases = fitted(market), [market.case(0), market.case(1)]
    assert class_of(near_one(0.5)) is NearOne
    assert class_of(NearOne) is NearOne
    assert class_of(lambda model, case: NearOne(model, case)) is None
    assert (settings_of(near_one(0.5)), settings_of(NearOne)) == ({"noise": 0.5}, {})
    assert objective_for(near_one(0.5), surrogate, cases[:1]).case is cases[0]
    assert objective_for(near_ones(), surrogate, cases).cases == tuple(cases)
    with pytest.raises(ValueError, match="NearOne is the objective of one case; got 2: choose a search that"):
        objective_for(near_one(), surrogate, cases)


def test_a_function_is_given_what_its_search_decides_for():
    market = Market()
    surrogate = fitted(market)
    alone = list(rounds(market, surrogate, near_one(), Grid(), range(4)))
    for objective, search in (
        (lambda model, one_case: NearOne(model, one_case), Grid()),
        (lambda model, cases: NearOneTogether.for_cases(model, cases), GridTogether()),
    ):
        made = list(rounds(market, surrogate, objective, search, range(4)))
        for one, other in zip(made, alone, strict=True):
            torch.testing.assert_close(one.decision.alteration.values, other.decision.alteration.values)


def test_without_learning_nobody_answers():
    market = Market()
    surrogate = fitted(market)
    before = surrogate.response.weights.clone()
    assert [each.index for each in rounds(market, surrogate, near_one(), Grid(), [3, 1])] == [3, 1]
    assert market.answered == 0
    assert torch.equal(surrogate.response.weights, before)


@pytest.mark.slow
def test_rounds_depend_on_seed_and_index_alone():
    market = Market()
    surrogate = fitted(market)

    def lines(indices, **how):
        return {
            each.index: each.line()
            for each in rounds(market, surrogate, near_one(noise=1.0), Grid(), indices, **how)
        }

    whole = lines(range(6))
    assert lines([5, 2, 0]) == {index: whole[index] for index in (5, 2, 0)}
    assert lines(range(6), workers=2) == whole
    assert lines(range(6), seed=1) != whole
    surrogate.response.weights += 1  # processes that are still there must not go on with what they had
    assert lines(range(6), workers=2) == lines(range(6)) != whole


def test_a_search_that_leaves_a_case_out_is_named():
    class Lazy(GridTogether):
        def batch_search(self, objective):
            return super().batch_search(objective)[1:]

    market = Market()
    with pytest.raises(ValueError, match="Lazy gave 3 decisions: expected one for each of 4 cases"):
        list(rounds(market, fitted(market), near_ones(), Lazy(4), range(4)))


class Marked:
    """Stands in for what says what would overturn a decision: it leaves a mark."""

    def with_sensitivity(self, decisions, certificates):
        return [replace(each, reason=Finding("note", "weighed")) for each in decisions]

    def with_hidden_cause(self, objective, decision):
        return replace(decision, reason=Finding("note", "weighed"))


@pytest.mark.parametrize("kind", ["rehearse", "look_back", "optimise"])
@pytest.mark.parametrize("learn", [False, True])
def test_hidden_causes_are_weighed_offline_by_the_rule_of_the_kind(kind, learn, monkeypatch):
    class Asked(Market):
        pass

    Asked.kind = kind
    made = []
    monkeypatch.setattr(decision_loop, "SequenceOverturning", lambda *given: made.append(given) or Marked())
    market = Asked()
    (found,) = rounds(market, fitted(market), near_one(), Grid(), [0], learn=learn, overturning=Marked())
    assert (str(found.decision.reason) == "weighed") == (not learn and kind in ("rehearse", "look_back"))
    assert len(made) == (not learn and kind == "look_back")


@pytest.mark.parametrize(
    ("workers", "cases", "pays", "shared"),
    [(1, 4, 0, 0), (2, 1, 0, 0), (2, 2, 0, 0), (2, 4, 0, 2), (8, 3, 0, 2), (2, 4, 10, 0)],
)
def test_rounds_after_the_first_group_are_shared_where_that_pays(workers, cases, pays, shared, monkeypatch):
    asked = []
    monkeypatch.setattr(task_pool, "PAYS", pays)

    def noted(work, method, groups, count, ahead):
        asked.append(count)
        return (work(method, group) for group in groups)

    monkeypatch.setattr(task_pool, "_in_processes", noted)
    market = Market()
    made = list(rounds(market, fitted(market), near_one(), Grid(), range(cases), workers=workers))
    assert [each.index for each in made] == list(range(cases))
    assert asked == [shared] * (shared > 0)


@pytest.mark.parametrize("learn", [False, True])
def test_only_an_online_run_acts_against_the_evidence(learn):
    seen = []

    class Watched(Grid):
        def __call__(self, objective):
            seen.append(self.declines)
            return super().__call__(objective)

    market, search = Market(), Watched()
    list(rounds(market, fitted(market), near_one(), search, range(2), learn=learn))
    assert seen == [not learn] * 2
    assert search.declines, "what was passed stays as it was"


def test_one_worker_asks_for_no_cluster(monkeypatch):
    def named():
        raise AssertionError("no cluster was asked for")

    monkeypatch.setattr(task_pool, "named_cluster", named)
    market = Market()
    assert len(list(rounds(market, fitted(market), near_one(), Grid(), range(2), workers=1))) == 2
    with pytest.raises(AssertionError, match="no cluster"):
        list(rounds(market, fitted(market), near_one(), Grid(), range(2), workers=2))


def test_rounds_leave_the_global_stream_alone():
    market = Market()
    torch.manual_seed(3)
    expected = torch.rand(2)
    torch.manual_seed(3)
    list(rounds(market, fitted(market), near_one(noise=1.0), Grid(), range(2)))
    assert torch.equal(torch.rand(2), expected)


def test_the_same_loop_drives_episodes():
    built = transition_episode(0)

    class Ward(Market):
        def case(self, index):
            return built.case

        def score(self, one_case, decision):
            return {"value": decision.value}

    objective = partial(CounterfactualReturn, reward=LinearReward({"x0": -1.0}), changes=2)
    (made,) = rounds(Ward(), built.surrogate, objective, GreedyChanges(), [0])
    assert made.decision.value == GreedyChanges()(built).value
    assert made.score == {"value": made.decision.value}


def lines(market, surrogate, search, indices=range(11), noise=0.0, **how):
    return [each.line() for each in rounds(market, surrogate, near_ones(noise), search, indices, **how)]


def test_situations_that_are_decided_together_are_decided_as_they_would_be_alone():
    market = Market()
    surrogate, search = fitted(market), GridTogether(4)
    whole = lines(market, surrogate, search)
    assert search.groups == [4, 4, 3]
    for joined in (1, 5, 11, 256):
        assert lines(market, surrogate, GridTogether(joined)) == whole
    alone = list(rounds(market, surrogate, near_one(), Grid(), range(11)))
    made = list(rounds(market, surrogate, near_ones(), GridTogether(), range(11)))
    assert [each.index for each in made] == list(range(11))
    for one, other in zip(alone, made, strict=True):
        torch.testing.assert_close(one.decision.alteration.values, other.decision.alteration.values)
        assert one.score == pytest.approx(other.score)


@pytest.mark.parametrize("begin", [0, 1, 3, 4, 5, 8, 10, 11])
def test_what_is_taken_up_again_comes_out_as_if_it_had_not_been_interrupted(begin):
    # With noise that is drawn for a group as a whole, it must meet the same groups.
    market = Market()
    surrogate, search = fitted(market), GridTogether(4)
    whole = lines(market, surrogate, GridTogether(4), noise=1.0)
    assert lines(market, surrogate, search, noise=1.0, begin=begin) == whole[begin:]
    assert sum(search.groups) < 11 - begin + 4, "groups that are done are not done again"


def test_groups_are_cut_from_the_indices_in_the_order_given():
    market = Market()
    surrogate = fitted(market)
    chosen = [7, 2, 9, 4, 0]
    whole = lines(market, surrogate, GridTogether(2), chosen, noise=1.0)
    assert lines(market, surrogate, GridTogether(2), chosen, noise=1.0, begin=3) == whole[3:]
    made = list(rounds(market, surrogate, near_ones(), GridTogether(2), chosen))
    assert [each.index for each in made] == chosen
    assert [each.case.identity for each in made] == [f"round-{index}" for index in chosen]


@pytest.mark.slow
def test_workers_share_groups_and_change_nothing():
    market = Market()
    surrogate = fitted(market)
    whole = lines(market, surrogate, GridTogether(3), noise=1.0)
    assert lines(market, surrogate, GridTogether(3), noise=1.0, begin=5, workers=2) == whole[5:]
    assert lines(market, surrogate, GridTogether(3), noise=1.0, seed=1) != lines(
        market, surrogate, GridTogether(3), noise=1.0
    )


def test_a_search_for_many_learns_one_round_at_a_time():
    market = Market()
    surrogate, search = fitted(market), GridTogether(4)
    assert len(list(rounds(market, surrogate, near_ones(), search, range(5), learn=True))) == 5
    assert search.groups == [1] * 5, "each answer is learnt from before the next decision"
    assert market.answered == 5


def test_certificates_are_asked_for_each_decision_of_a_group():
    market = Market()
    asked = []
    made = rounds(
        market,
        fitted(market),
        near_ones(),
        GridTogether(3),
        range(4),
        certify=lambda s, o, d: asked.append(d) or {"probability": len(asked) / 10},
    )
    assert [each.certificate["probability"] for each in made] == [0.1, 0.2, 0.3, 0.4]


def test_what_cannot_be_done_is_refused():
    market = Market()
    surrogate = fitted(market)
    with pytest.raises(ValueError, match="workers=1"):
        rounds(market, surrogate, near_one(), Grid(), learn=True, workers=2)
    with pytest.raises(ValueError, match="begin=0; got workers=1 and begin=1"):
        rounds(market, surrogate, near_one(), Grid(), learn=True, begin=1)
    with pytest.raises(ValueError, match="at least 1 worker"):
        rounds(market, surrogate, near_one(), Grid(), workers=0)

    class Archive(Market.__mro__[2]):  # a Problem that is no World
        observations, held_out, count, case = (
            Market.observations,
            Market.held_out,
            Market.count,
            Market.case,
        )
        score, card, __init__ = Market.score, Market.card, Market.__init__

    with pytest.raises(TypeError, match="World that responds"):
        rounds(Archive(), surrogate, near_one(), Grid(), learn=True)


def test_a_search_that_ends_in_no_number_is_an_error_about_what_was_learnt():
    class Broken(Grid):
        def __call__(self, objective):
            raise FloatingPointError("expected finite values and slopes of the objective")

    market = Market()
    with pytest.raises(
        ValueError, match="no answer follows from the fitted surrogate: expected finite values"
    ):
        list(rounds(market, fitted(market), near_one(), Broken(), [0]))


def test_recommendations_say_what_would_overturn_them_and_refusals_do_not():
    world = Loan(size=SampleSize(60, 3))
    surrogate = fit(LinearStructural(world.task), world.observations())
    made = list(rounds(world, surrogate, GaussianSuccess, ProjectionNewton()))
    for each in made:
        found = each.decision.sensitivity
        assert (found is not None) == (each.decision.alteration is not None)
    assert any(each.decision.sensitivity for each in made)


@pytest.mark.slow
def test_a_world_that_changes_is_noticed_and_learnt_anew_and_a_resumed_run_does_the_same():
    def run(**rest):
        world = TwoStores(change=12, size=SampleSize(rows=10, contexts=26), seed=4)
        surrogate = fit(StructuralPosterior(world.task, world.at(0).hypotheses), world.observations())
        counts = {"search_scenarios": 200, "validation_scenarios": 200, "information_models": 10}
        objective = partial(SuccessProbability, test_scenarios=200, **counts)
        certify = CredibleBound(models=100, n=100)
        return list(
            rounds(world, surrogate, objective, MixedInteger(), learn=True, certify=certify, seed=4, **rest)
        )

    whole = run()
    told = [
        each.index for each in whole if any(finding.kind == "bad_fit" for finding in each.decision.findings)
    ]
    assert len(told) == 1
    assert 13 <= told[0] <= 17
    assert whole[told[0]].decision.status == "may"
    later = whole[told[0] + 2 :]
    held = [
        each.certificate["truth_lower"] <= each.score["probability"] <= each.certificate["truth_upper"]
        for each in later
    ]
    assert sum(held) >= 0.8 * len(held)
    before = [json.loads(each.line()) for each in whole[: told[0] + 1]]
    answers, earlier = ([make(line) for line in before] for make in (answered, decision_of))
    rest = run(begin=len(before), answers=answers, earlier=earlier)
    for each, other in zip(rest, whole[len(before) :], strict=True):
        torch.testing.assert_close(each.answer.values, other.answer.values, rtol=1e-9, atol=1e-12)
