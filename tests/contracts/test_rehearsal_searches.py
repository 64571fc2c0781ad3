"""One contract over every pair of a search for many situations and the objective that it answers for."""

import json

import pytest
import torch

from rehearsal_torch.search.search import BatchSearch
from tests.places import concrete
from tests.toys.linear_truth import chain, managing
from tests.toys.rehearsal_methods import PAIRS, configuration, decided, learnt

WORLDS = {"one outcome, three sets": chain(), "two outcomes, two actions": managing()}
COUNT = 4
every = pytest.mark.parametrize("pair", PAIRS, ids="-".join)
worlds = pytest.mark.parametrize("world", WORLDS)


@pytest.fixture(scope="module")
def decisions():
    models, made = {}, {}

    def of(pair, world, count=COUNT):
        key = (PAIRS[pair], world)
        if key not in models:
            models[key] = learnt(PAIRS[pair], WORLDS[world].task, WORLDS[world].table(60))
        if (pair, world, count) not in made:
            made[pair, world, count] = decided(models[key], pair, WORLDS[world].cases(COUNT)[:count])
        return made[pair, world, count]

    return of


def test_every_search_for_many_of_the_package_stands_under_this_contract():
    found = {each.__name__ for each in concrete("rehearsal_torch.search", BatchSearch)}
    assert found == {configuration("search", search)["_target_"].rpartition(".")[2] for _, search in PAIRS}


@pytest.mark.slow
@worlds
@every
def test_every_decision_lies_in_the_box_and_says_how_probable_success_is(pair, world, decisions):
    truth, found = WORLDS[world], decisions(pair, world)
    assert len(found) == COUNT
    for decision in found:
        plain = decision.to_dict()
        assert json.loads(json.dumps(plain, allow_nan=False)) == plain or decision.value == -torch.inf
        assert isinstance(decision.trace["search"], str)
        if decision.alteration is None:
            assert decision.reason, "why nothing is recommended"
        else:
            assert decision.alteration.names in truth.task.candidates
            assert decision.trace["altered"] == list(decision.alteration.names)
            assert decision.alteration.values.dtype == torch.float64
            assert decision.alteration.values.shape == (len(decision.alteration.names),)
            assert truth.task.box.only(decision.alteration.names).contains(decision.alteration.values)
        if pair[1] == "no_action":
            assert decision.alteration is None
            continue
        assert 0 <= decision.estimate.point <= 1
        assert 0 <= decision.baseline.point <= 1
        if decision.estimate.lower is not None:
            assert 0 <= decision.estimate.lower <= decision.estimate.point <= decision.estimate.upper <= 1
        assert not {"refused", "warnings", "note"} & set(decision.trace)
        assert all(isinstance(text, str) for text in decision.warnings)
        if decision.alteration is not None and configuration("search", pair[1]).get("declines", True):
            assert decision.estimate.point > decision.baseline.point
        assert decision.seconds > 0


@pytest.mark.slow
@worlds
@every
def test_a_decision_does_not_depend_on_what_else_is_decided(pair, world, decisions):
    for alone, joined in zip(decisions(pair, world, 2), decisions(pair, world), strict=False):
        assert (alone.alteration is None) == (joined.alteration is None)
        assert alone.value == pytest.approx(joined.value, abs=1e-3)
        if alone.alteration is not None:
            assert alone.alteration.names == joined.alteration.names
            assert torch.allclose(alone.alteration.values, joined.alteration.values, atol=2e-2)


@pytest.mark.slow
@every
def test_the_same_question_has_the_same_answer_and_the_global_stream_is_left_alone(pair, decisions):
    world = WORLDS["one outcome, three sets"]
    model = learnt(PAIRS[pair], world.task, world.table(60))
    torch.manual_seed(5)
    expected = torch.rand(2)
    torch.manual_seed(5)
    first = [each.to_dict() for each in decided(model, pair, world.cases(COUNT))]
    assert torch.equal(torch.rand(2), expected)
    assert first == [each.to_dict() for each in decided(model, pair, world.cases(COUNT))]
    assert first == [each.to_dict() for each in decisions(pair, "one outcome, three sets")]
