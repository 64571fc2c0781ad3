"""Looking back from Python: the decision of the search itself, and of the command, with errors in words."""

import json
from dataclasses import replace
from functools import partial

import pytest
import torch

import rehearsal_torch as rt
from rehearsal_torch.api.episode_query import OneEpisode
from rehearsal_torch.claims.abstention_rules import ruled
from rehearsal_torch.cli.main import decide, main
from rehearsal_torch.data.decision import Decision, EpisodeCase
from rehearsal_torch.data.episode import transitions
from rehearsal_torch.objectives.change_rules import ChangeRules
from rehearsal_torch.objectives.counterfactual_return import CounterfactualReturn
from rehearsal_torch.objectives.sequence_sensitivity import NO_MODEL, NO_RECORDS
from rehearsal_torch.objectives.step_reward import LinearReward
from rehearsal_torch.problems.sequences.sepsis_cohort import SepsisSimulated
from rehearsal_torch.search.sequences.baselines import GreedyChanges
from rehearsal_torch.search.sequences.branch_and_bound import BranchAndBound
from rehearsal_torch.user_error import RequestWarning
from tests.places import ROOT
from tests.scripts.typing_in import lines
from tests.toys.episodes import equation_episode, transition_episode
from tests.toys.transitions import NAMES, patients

CHECKPOINT = ROOT / "checkpoints" / "sepsis"


@pytest.fixture(scope="module")
def toy():
    """A model and an episode in which drugs matter."""
    drawn = transition_episode(3, horizon=6, changes=2)
    return drawn.surrogate, drawn.case.episode


@pytest.mark.slow
def test_it_is_the_decision_of_the_search(toy):
    model, episode = toy
    objective = CounterfactualReturn(model, rt.EpisodeCase(episode), LinearReward({"x0": -1.0}), changes=2)
    (told,) = ruled(objective, [BranchAndBound()(objective)])
    found = rt.look_back(model, episode, changes=2, reward={"x0": -1.0})
    assert found.trace["hidden_cause"] == NO_RECORDS
    assert replace(found, trace=told.trace).to_dict() == told.to_dict()
    assert found.trace["proven"]
    assert found.estimate.point > found.baseline.point == objective.outcome()
    again = rt.look_back(model, rt.EpisodeCase(episode), 2, reward=LinearReward({"x0": -1.0}))
    assert again.to_dict() == found.to_dict()


@pytest.mark.slow
def test_fixed_steps_stay_and_no_change_is_an_answer(toy):
    model, episode = toy
    fixed = torch.tensor([True, True, False, True, True, True])
    found = rt.look_back(model, rt.EpisodeCase(episode, fixed), reward={"x0": -1.0})
    assert set(found.actions()) <= {2}
    assert rt.look_back(model, episode, changes=0, reward={"x0": -1.0}).reason.kind == "no_gain"


@pytest.mark.slow
def test_a_score_is_chosen_by_name():
    episode = SepsisSimulated(patients=60, horizon=6).case(0).episode
    full, organs = (
        rt.look_back(CHECKPOINT, episode, 1, method="greedy", reward=name)
        for name in ("sofa_score", "sofa_organs")
    )
    scores = episode.columns(("SOFA",))
    assert full.baseline.point == -float(scores.sum())
    assert full.baseline.point <= organs.baseline.point
    assert float(full.value).is_integer()
    with pytest.raises(ValueError, match=r"no reward called 'sofa'. Choose from .*sofa_organs, sofa_score"):
        rt.look_back(CHECKPOINT, episode, 1, reward="sofa")


@pytest.mark.slow
@pytest.mark.parametrize("method", ["astar", "exhaustive", "greedy", "top_k", "random"])
def test_methods_are_chosen_by_name(toy, method):
    model, episode = toy
    best = rt.look_back(model, episode, changes=2, reward={"x0": -1.0})
    found = rt.look_back(model, episode, changes=2, reward={"x0": -1.0}, method=method)
    assert found.value <= best.value + 1e-9
    if method in ("astar", "exhaustive"):
        assert found.value == pytest.approx(best.value, abs=1e-9)


@pytest.mark.slow
def test_a_checkpoint_decides_as_the_command_does(tmp_path):
    typed = ["+experiment=sepsis", "dataset.patients=60", f"checkpoint={CHECKPOINT}", "limit=2", "workers=1"]
    assert main(decide, [*typed, "truth=false", "objective.changes=2", f"out={tmp_path / 'run'}"]) == 0
    world = SepsisSimulated(patients=60, seed=0)
    for index, line in enumerate(lines(tmp_path / "run")):
        found = rt.look_back(
            rt.load(CHECKPOINT), world.case(index).episode, changes=2, records=world.episodes("train")
        )
        plain = json.loads(json.dumps(found.to_dict()))
        assert plain == {key: line[key] for key in plain}
        assert ("hidden_cause" in plain) == ("hidden_cause" in line) == (plain["alteration"] is not None)


@pytest.mark.slow
def test_with_the_records_of_the_fit_it_says_what_would_overturn_the_decision_as_a_run_does():
    world, model = SepsisSimulated(), rt.load(CHECKPOINT)
    episode, asked = world.case(0).episode, {"method": "greedy", "reward": {"MeanBP": 1.0}}
    rules, reward = ChangeRules(), LinearReward({"MeanBP": 1.0})
    made = partial(CounterfactualReturn, reward=reward, changes=1, rules=rules)
    (told,) = rt.rounds(world, model, made, GreedyChanges(), [0])
    assert told.decision.hidden_cause is not None
    for records in (world.episodes("train"), world.observations()):
        found = rt.look_back(CHECKPOINT, episode, 1, records=records, **asked)
        assert found.to_dict() == told.decision.to_dict()
    without = rt.look_back(CHECKPOINT, episode, 1, **asked)
    assert without.hidden_cause is None
    assert without.trace == found.trace | {"hidden_cause": NO_RECORDS}
    with pytest.warns(RequestWarning, match=r"sepsis was fitted to other transitions than these \d+ \("):
        other = rt.look_back(CHECKPOINT, episode, 1, records=world.episodes("test"), **asked)
    assert other.hidden_cause not in (None, found.hidden_cause)
    assert replace(other, hidden_cause=found.hidden_cause).to_dict() == found.to_dict()


def test_a_long_episode_is_no_record_of_the_others(toy):
    model, _ = toy
    episode = transition_episode(3, horizon=60).case.episode
    found = rt.look_back(model, episode, 1, method="greedy", reward={"x0": -1.0})
    assert found.alteration is not None
    assert found.hidden_cause is None
    assert found.trace["hidden_cause"] == NO_RECORDS


def test_too_few_records_say_so(toy):
    model, episode = toy
    found = rt.look_back(model, episode, 2, reward={"x0": -1.0}, records=[episode])
    assert found.hidden_cause is None
    assert found.trace["hidden_cause"] == "not computed: there are 5 transitions; expected at least 32"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("records", "words"),
    [
        ([], "records: expected the episodes to which the model was fitted; got none"),
        ([1, 2.0], "got a list of int, float"),
        (
            [rt.Episode("e", ("x0",), torch.zeros(3, 1))],
            r"records: no column \['x1', .*a primed name is that",
        ),
    ],
)
def test_records_of_another_form_are_refused(toy, records, words):
    model, episode = toy
    with pytest.raises(ValueError, match=words) as caught:
        rt.look_back(model, episode, 1, reward={"x0": -1.0}, records=records)
    assert caught.value.__cause__ is None


@pytest.mark.slow
def test_records_that_would_change_nothing_are_refused():
    drawn = equation_episode(0, acts=False)
    told = rt.look_back(drawn.surrogate, drawn.case, 1, reward=drawn.reward)
    assert told.trace["hidden_cause"] == NO_MODEL
    with pytest.raises(ValueError, match="records: a KnownTruth is not a model of transitions with doses"):
        rt.look_back(drawn.surrogate, drawn.case, 1, reward=drawn.reward, records=[drawn.case.episode])


def test_settings_reach_the_search(toy):
    model, episode = toy
    found = rt.look_back(model, episode, 3, reward={"x0": -1.0}, method="astar", **{"search.node_limit": 1})
    assert not found.trace["proven"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"model": torch.nn.Linear(1, 1)}, "model: expected a model of episodes, .* got a Linear"),
        ({"episode": [1, 2]}, "episode: expected an Episode or an EpisodeCase; got a list"),
        ({"episode": rt.Episode("e", ("x0",), torch.zeros(3, 1))}, r"no column \['x1', "),
        ({"changes": -1}, "changes: expected a whole number of at least 0; got -1"),
        ({"reward": None}, r"got \['paO2', 'FiO2_1'"),
        ({"reward": 3}, "reward: expected weights"),
        ({"objective.changes": 2}, "'objective.changes' is the argument `changes`"),
    ],
)
def test_errors_are_sentences(toy, changed, words):
    model, episode = toy
    given = {"model": model, "episode": episode, "reward": {"x0": -1.0}} | changed
    with pytest.raises(ValueError, match=words) as caught:
        rt.look_back(**given)
    assert caught.value.__cause__ is None


def test_one_episode_is_one_situation_without_a_score():
    (episode,) = patients(1, 6, seed=5)
    problem = OneEpisode(EpisodeCase(episode))
    assert problem.count() == 1
    assert problem.kind == "look_back"
    assert problem.case(0).episode is episode
    assert len(problem.held_out()) == 5
    assert problem.question().names == NAMES
    assert problem.score(problem.case(0), Decision(None, 0.0)) == {}
    assert problem.card() == {"episode": "0", "columns": list(NAMES), "time_steps": 6}
    with pytest.raises(IndexError, match="expected index 0, the only episode; got 1"):
        problem.case(1)


def test_its_observations_are_the_records_and_never_the_episode_itself():
    one, *others = patients(4, 6, seed=5)
    records = transitions(others)
    assert OneEpisode(EpisodeCase(one), records).observations() is records
    alone = OneEpisode(EpisodeCase(one)).observations()
    assert len(alone) == 0
    assert alone.names == records.names
