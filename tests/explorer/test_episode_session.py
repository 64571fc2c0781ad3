"""The answers about episodes: those of `rt.look_back` and of the objective, to the last digit."""

from dataclasses import replace
from functools import partial

import pytest
import torch

import rehearsal_torch as rt
from rehearsal_torch.cli.errors import UserError
from rehearsal_torch.explorer import courses
from rehearsal_torch.explorer.episode_session import EpisodeSession
from rehearsal_torch.explorer.recorded_episodes import opened_episodes
from rehearsal_torch.explorer.run_material import recorded
from rehearsal_torch.search.sequences.exhaustive import Exhaustive
from rehearsal_torch.verbs.methods import RequestError
from tests.scripts.typing_in import lines
from tests.toys.explored_episodes import DECIDED, FREE, episodes_run, without_times


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return episodes_run(tmp_path_factory.mktemp("episodes") / "run")


@pytest.fixture(scope="module")
def session(folder):
    return EpisodeSession(opened_episodes(recorded(folder)))


def looked_back(session, place, changes, fixed=()):
    """The same question to the verb."""
    case = session.cases[place]
    kept = case.fixed.clone()
    kept[list(fixed)] = True
    return rt.look_back(
        session.surrogate,
        rt.EpisodeCase(case.episode, kept),
        changes,
        reward=session.run.objective.keywords["reward"],
        records=session.run.problem.observations(),
    )


def test_the_page_is_described(session):
    told = session.describe()
    assert told["episodes"] == ["Machine 3", "Machine 15", "Machine 17"]
    assert (told["subject"], told["more"], told["changes"]) == ("machine", 0, 2)
    assert told["doses"] == ["service", "load"]
    assert told["actions"][0] == ["none", "full"]
    assert told["total"] == "Cumulative risk and cost"
    assert told["units"]["wear"] == "%"
    assert told["question"][0].startswith("Looking back at 3 machines: which changes, of at most 2 actions")
    assert "A simulated world" in told["cautions"][0]


def test_an_episode_is_shown_as_observed(session):
    found, case = session.episode(0), session.cases[0]
    assert found["steps"] == 10
    assert found["open"] == list(range(9)), "the run keeps the last action"
    assert (found["most"], found["choices"][9]) == (9, [])
    assert found["course"]["states"][0]["observed"] == case.episode.columns(["wear"])[:, 0].tolist()
    assert found["course"]["states"][0]["after"] is None
    assert sum(found["course"]["rewards"]["observed"]) == pytest.approx(found["observed"])
    assert found["given"][0] == ["none", "reduced"]
    for step, action in enumerate(found["actions"]):
        assert action not in found["choices"][step]


def test_where_no_action_has_a_cost_each_row_of_doses_has_its_action(tmp_path):
    folder = episodes_run(tmp_path / "run", "decision=branch_and_bound", *FREE)
    found = EpisodeSession(opened_episodes(recorded(folder))).episode(0)
    assert len(found["given"]) == len(found["choices"]) == len(found["actions"]) == found["steps"] == 9
    assert len(found["course"]["rewards"]["observed"]) == 10, "the last state follows from the last action"


@pytest.mark.slow
@pytest.mark.parametrize(("place", "changes", "fixed"), [(0, 2, []), (1, 1, [6]), (2, 3, [0]), (0, 0, [])])
def test_the_numbers_are_those_of_look_back(session, place, changes, fixed):
    found = session.look_back(place, changes, fixed, 60.0)
    told = looked_back(session, place, changes, fixed)
    assert found["value"] == -told.trajectory["value"]
    assert found["observed"] == -told.trajectory["observed"]
    assert found["actions"] == told.trajectory["actions"]
    assert found["changed"] == sorted(told.actions())
    assert not set(found["changed"]) & set(fixed)
    assert (found["status"], found["proven"], found["gap"]) == (told.status, True, 0.0)
    rewards = found["course"]["rewards"]
    assert rewards["observed"] == [-each for each in told.trajectory["observed_rewards"]]
    if told.actions():
        assert rewards["after"] == [-each for each in told.trajectory["rewards"]]
        assert rewards["lower"] == [-each for each in told.trajectory["rewards_upper"]]
        gains = told.trajectory["member_gains"]
        observed = -told.trajectory["observed"]
        assert found["range"] == pytest.approx([observed - max(gains), observed - min(gains)])
        said = told.hidden_cause.sentence("actions")
        assert found["overturned"] == f"{said[:1].upper()}{said[1:]}."


def test_the_decisions_of_the_run_are_found_again(session, folder):
    for place, line in enumerate(lines(folder)):
        found = session.look_back(place, 2, [], 60.0)
        assert found["value"] == -line["trajectory"]["value"]
        assert found["actions"] == line["trajectory"]["actions"]


def test_states_are_those_of_the_replay(session):
    found = session.look_back(0, 2, [], 60.0)
    objective = session._objective(session.cases[0], 2)
    states = session.surrogate.member_units(objective.replay(torch.tensor([found["actions"]]))[0])
    for place, one in enumerate(found["course"]["states"]):
        assert one["after"] == states.mean(1)[:, place].tolist()
        assert one["lower"] == states.amin(1)[:, place].tolist()
        assert one["upper"] == states.amax(1)[:, place].tolist()
        assert one["after"][0] == pytest.approx(one["observed"][0])


def test_a_sequence_of_ones_own_is_replayed(session):
    before = session.episode(0)
    actions = list(before["actions"])
    actions[1] = before["choices"][1][1]
    found = session.replay(0, actions)
    objective = session._objective(session.cases[0], 1)
    assert found["value"] == -float(objective(torch.tensor(actions)))
    assert (found["changed"], found["state"], found["proven"]) == ([1], "", None)
    assert found["headline"] == "Your own sequence: 1 of 10 actions changed."
    best = session.look_back(0, 2, [], 60.0)
    assert session.replay(0, best["actions"])["value"] == best["value"]
    same = session.replay(0, before["actions"])
    assert (same["value"], same["headline"]) == (before["observed"], "As observed: nothing is changed.")
    assert not [text for text in same["said"] if text.startswith("Why")], "no search was asked"


def test_steps_are_called_by_the_times_of_the_table_where_these_are_known(session, tmp_path):
    timeless = EpisodeSession(opened_episodes(recorded(without_times(episodes_run(tmp_path / "run")))))
    for asked, time, step, start in (
        (session, "Week", "Week", 1),
        (timeless, "Time step (one week each)", "Time step", 0),
    ):
        told = asked.describe()
        assert (told["time"], told["step"], told["start"]) == (time, step, start)
        found = asked.look_back(0, 2, [], 60.0)
        assert found["changed"], "places from 0"
        names = [text.partition(":")[0] for text in found["said"][: len(found["changed"])]]
        assert names == [f"{step} {start + place}" for place in found["changed"]]
        with pytest.raises(RequestError, match=f"^{step} {start + 9}: its action stays as it was"):
            changed(asked, 9, 6)


def test_outside_the_data_no_replayed_number_leaves_the_session(session, monkeypatch):
    session = EpisodeSession(opened_episodes(session.material))
    narrow = session.surrogate.first.rescale.upper
    most = float(session.cases[0].episode.columns(["wear"]).max())
    narrow[0] = most + 0.01
    before = session.episode(0)
    assert before["outside"] == ""
    far = next(
        found
        for step in before["open"]
        for action in before["choices"][step]
        if (found := session.replay(0, [*before["actions"][:step], action, *before["actions"][step + 1 :]]))[
            "withheld"
        ]
    )
    assert far["withheld"].startswith("outside the data: under these actions wear lies between")
    assert far["value"] is far["range"] is far["course"]["rewards"]["after"] is None
    assert {one["after"] for one in far["course"]["states"]} == {None}
    assert far["said"][0].startswith("Week ")
    assert not any("risk and cost" in text for text in far["said"])
    narrow[0] = float(session.cases[0].episode.columns(["wear"]).max()) - 1.0
    assert session.episode(0)["outside"].startswith("outside the data: wear lies between")
    found = session.look_back(0, 2, [], 60.0)
    assert found["value"] is None
    assert found["observed"] == before["observed"], "what was observed is known"
    monkeypatch.setattr(
        courses, "_states", lambda objective, sequence: torch.full((10, 2, 3), float("nan")).double()
    )
    found = session.replay(0, [before["choices"][0][0], *before["actions"][1:]])
    assert courses.UNDEFINED in found["withheld"]


def test_an_unfinished_search_says_so(session):
    found = replace(
        opened_episodes(session.material), run=replace(session.run, search=Exhaustive(chunk=1, finalists=1))
    )
    hurried = EpisodeSession(found).look_back(0, 3, [], 0.01)
    assert hurried["proven"] is False
    assert hurried["state"].startswith("The best found, not proven: ")
    assert hurried["state"].endswith("Why: the search stopped at its time limit of 0.01 s.")
    assert EpisodeSession(found)._in_time(7.0).budget_s == 7.0
    found.run.search.budget_s = 3.0
    assert EpisodeSession(found)._in_time(7.0).budget_s == 3.0


@pytest.mark.parametrize(
    ("ask", "words"),
    [
        (lambda one: one.episode(DECIDED), "episode: expected one of the 3 episodes; got 3"),
        (lambda one: one.episode(-1), "episode: expected one of the 3 episodes; got -1"),
        (lambda one: one.look_back(0, -1, [], 5.0), "changes: expected a number from 0 to 10; got -1"),
        (lambda one: one.look_back(0, 11, [], 5.0), "changes: expected a number from 0 to 10; got 11"),
        (lambda one: one.look_back(0, 1, [], 0.0), "seconds: expected more than 0, at most 600; got 0"),
        (lambda one: one.look_back(0, 1, [], 1e9), r"seconds: expected .* got 1e\+09"),
        (lambda one: one.look_back(0, 1, [10], 5.0), "fixed: expected steps from 0 to 9; got 10"),
        (lambda one: one.replay(0, [0]), "actions: expected one for each of 10 steps; got 1"),
        (lambda one: changed(one, 1, 9), "Week 2: expected an action from 0 to 8; got 9"),
        (lambda one: changed(one, 1, -1), "Week 2: expected an action from 0 to 8; got -1"),
        (lambda one: changed(one, 1, 2), "Week 2: none and reduced cannot be chosen"),
        (lambda one: changed(one, 9, 6), "Week 10: its action stays as it was; got major and full"),
    ],
)
def test_what_cannot_be_answered_is_refused(session, ask, words):
    with pytest.raises(RequestError, match=words):
        ask(session)


def changed(session, step, action):
    actions = list(session.episode(0)["actions"])
    actions[step] = action
    return session.replay(0, actions)


def test_a_method_of_another_kind_is_refused(session):
    found = opened_episodes(session.material)
    other = partial(lambda surrogate, case, changes: object(), changes=1)
    with pytest.raises(UserError, match="expected the return of an episode; got a object"):
        EpisodeSession(replace(found, run=replace(found.run, objective=other)))
