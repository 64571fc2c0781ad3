"""The answers about episodes: those of `rt.look_back` and of the objective, to the last digit."""

import threading
from dataclasses import replace
from functools import partial

import pytest
import torch

import rehearsal_torch as rt
import rehearsal_torch.explorer.episode_session as courses
from rehearsal_torch.data.decision import Decision
from rehearsal_torch.data.estimate import Estimate
from rehearsal_torch.data.finding import Finding
from rehearsal_torch.explorer.episode_session import (
    EpisodeSession,
    beyond,
    course,
    optimality,
    search_effort,
    sequence_answer,
    signed,
)
from rehearsal_torch.explorer.open_run import opened_episodes, recorded
from rehearsal_torch.explorer.server import Turns
from rehearsal_torch.explorer.session_choice import session_for
from rehearsal_torch.reporting.labels import Wording
from rehearsal_torch.reporting.page.page_content import shown
from rehearsal_torch.search.search import Budget
from rehearsal_torch.search.sequences.decision_process import Effort, sequence_decision
from rehearsal_torch.search.sequences.exhaustive import Exhaustive
from rehearsal_torch.spaces.box import Alteration
from rehearsal_torch.user_error import RequestError, UserError
from tests.scripts.typing_in import lines
from tests.toys.episodes import transition_episode
from tests.toys.explored_episodes import DECIDED, FREE, episodes_run, without_times
from tests.toys.scored_episodes import weighed_episode
from tests.toys.served import Served


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
    assert told["title"].endswith(": which changes would have lowered the cumulative risk and cost?")
    assert (told["subject"], session.usual) == ("machine", 2)
    assert told["doses"] == ["service", "load"]
    assert told["actions"][0] == ["none", "full"]
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


@pytest.mark.slow
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
    assert (found["status"], found["proven"]) == (told.status, True)
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
    found = session.look_back(0, 1, [], 60.0)
    objective = session._objective(session.cases[0], 1)
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
        (timeless, "Step (one week each)", "Step", 1),
    ):
        told = asked.describe()
        assert (asked.words.time, told["step"], told["start"]) == (time, step, start)
        found = asked.look_back(0, 1, [], 60.0)
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
    found = session.look_back(0, 1, [], 60.0)
    assert found["value"] is None
    assert found["observed"] == before["observed"], "what was observed is known"
    monkeypatch.setattr(
        courses, "_member_states", lambda objective, sequence: torch.full((10, 2, 3), float("nan")).double()
    )
    found = session.replay(0, [before["choices"][0][0], *before["actions"][1:]])
    assert courses.UNDEFINED in found["withheld"]


def test_an_unfinished_search_says_so(session):
    found = replace(opened_episodes(session.material), run=replace(session.run, search=Exhaustive(chunk=1)))
    hurried = EpisodeSession(found).look_back(0, 3, [], 0.01)
    assert hurried["proven"] is False
    assert hurried["state"].startswith("The best found, not proven: ")
    assert "Why there is no proof: the search stopped at its time limit of 0.01 s." in hurried["effort"]
    assert EpisodeSession(found)._limited_search(7.0).budget_s == 7.0
    found.run.search.budget_s = 3.0
    assert EpisodeSession(found)._limited_search(7.0).budget_s == 3.0


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


UNKNOWN = "How much better another one may be is not known."
POINTS = Wording("SOFA", -1.0, "points")


@pytest.mark.parametrize(
    ("trace", "said"),
    [
        ({"gap": 0.0, "proven": True}, []),
        (
            {"gap": 1.25, "proven": False, "stopped": "stopped after budget_s=5", "limit_s": 5.0},
            [
                "Why there is no proof: the search stopped at its time limit of 5 s.",
                "Another one is better by 1.25 points at most.",
            ],
        ),
        # More than what is gained says nothing.
        ({"gap": 2.6, "proven": False}, [UNKNOWN]),
        (
            {"gap": float("inf"), "stopped": "stopped after node_limit=3 expanded nodes"},
            ["Why there is no proof: stopped after node_limit=3 expanded nodes.", UNKNOWN],
        ),
        ({}, [UNKNOWN]),
    ],
)
def test_the_state_of_the_proof_is_a_sentence_and_its_numbers_are_beside_it(trace, said):
    reason = Finding("no_gain", "no change is better")
    found = Decision(None, 3.0, baseline=Estimate(0.5, "return"), reason=reason, trace=trace)
    assert search_effort(found, POINTS)[1:] == said
    assert optimality(found, 2).startswith(
        "Proven: " if trace.get("proven") else "The best found, not proven: "
    )
    assert optimality(replace(found, reason=Finding("invalid", "")), 2) == "", (
        "what was withdrawn is not proven"
    )


def test_a_search_that_gave_up_says_why():
    made = Alteration(("action[0]",), torch.tensor([1]))
    reason = "its 354,521 sets of time steps are more than sets=200,000"
    trace = {"gap": 2.5, "proven": False}
    found = Decision(made, 0.0, baseline=Estimate(-3.0, "return"), reason=reason, trace=trace)
    assert f"Why there is no proof: {reason}." in search_effort(found, Wording())


def test_a_withheld_gap_has_no_number():
    found = Decision(None, 2.0, baseline=Estimate(0.0, "return"), trace={"gap": 1.25})
    assert "1.25" not in str(search_effort(found, POINTS, hidden=True))
    assert optimality(found, 1).endswith("at most 1 changed action may be better.")


def test_a_sequence_by_hand_has_its_own_headline_and_no_proof():
    one = transition_episode(3, horizon=5, changes=1)
    sequence = one.observed.clone()
    sequence[2] = one.candidate_actions(2)[0]
    made = sequence_decision(one, sequence, Effort(), Budget(), search="by hand", gap=None, declines=False)
    one.surrogate.rescale.lower.fill_(-1e6)
    one.surrogate.rescale.upper.fill_(1e6)
    found = sequence_answer(one, made, POINTS, searched=False)
    assert found["headline"] == "Your own sequence: 1 of 4 actions changed."
    assert (found["changed"], found["state"], found["range"]) == ([2], "", None)
    with torch.no_grad():
        assert found["value"] == -float(one(sequence))
    assert found["observed"] == -one.outcome()
    given = one.case.episode.columns(["drug0"])[2]
    set_to = one.surrogate.doses(sequence[2])
    assert f" from {shown(float(given))} to {shown(float(set_to))}." in found["said"][0], (
        "not that of a level"
    )


@pytest.fixture(scope="module")
def session_episode_routes(tmp_path_factory):
    return session_for(episodes_run(tmp_path_factory.mktemp("episodes") / "run"))


@pytest.fixture(scope="module")
def served(session_episode_routes):
    found = Served(session_episode_routes)
    yield found
    found.end()


def test_answers_are_those_of_the_session(served, session_episode_routes):
    session = session_episode_routes
    text = served.ask("/")[2]
    assert [f'<option value="{number}">' in text for number in range(3)] == [True] * 3
    asked = {"episode": 1, "changes": 2, "fixed": [0], "seconds": 30}
    html, found = served.ask("/api/look-back", asked)[2], session.look_back(1, 2, [0], 30.0)
    assert found["headline"] in html
    assert html.count('class="altered"') == len(found["changed"]) > 0
    assert 'id="keep-0" name="fixed" value="0" aria-label="keep Week 1 as it was" checked' in html
    actions = {str(step): found["actions"][step] for step in found["changed"]}
    html = served.ask("/api/replay", {"episode": 1, "actions": actions})[2]
    assert session.replay(1, found["actions"])["headline"] in html
    assert served.ask("/api/states", {"episode": 1, "actions": actions})[2].count("<img") == 3


def test_questions_about_cases_are_not_answered_here(served):
    assert served.ask("/api/what-if", {"given": {}, "set": {}})[0] == 404


@pytest.mark.parametrize(
    ("path", "body", "words"),
    [
        ("/api/episode", {}, "episode: Field required"),
        ("/api/episode", {"episode": "0"}, "episode: Input should be a valid integer"),
        ("/api/look-back", {"episode": 0, "changes": 1.5, "seconds": 5}, "changes"),
        ("/api/look-back", '{"episode": 0, "changes": 1, "seconds": 1e999}', "seconds"),
        ("/api/look-back", {"episode": 0, "changes": 1, "seconds": 5, "budget": 1}, "Extra inputs"),
        ("/api/replay", {"episode": 0, "actions": {"10": 0}}, "actions: expected steps from 0 to 9; got 10"),
        ("/api/replay", {"episode": 0, "actions": {"-1": 0}}, "actions: expected steps from 0 to 9; got -1"),
    ],
)
def test_bad_questions_come_back_with_a_message(served, path, body, words):
    status, _, content = served.ask(path, body)
    assert 400 <= status < 500
    assert words in content["message"]


def test_a_question_that_comes_meanwhile_is_turned_away(served, session_episode_routes):
    begun, ended = threading.Event(), threading.Event()
    session_episode_routes._turns = Turns(0.01)

    def holding():
        with session_episode_routes._turns.turn():
            begun.set()
            ended.wait(20)

    other = threading.Thread(target=holding)
    other.start()
    begun.wait(10)
    status, _, content = served.ask("/api/episode", {"episode": 0})
    ended.set()
    other.join()
    assert (status, content["message"]) == (
        409,
        "another question is still being answered: ask again when it is",
    )
    assert served.ask("/api/episode", {"episode": 0})[0] == 200


COST = Wording("cost", -1.0)


@pytest.fixture
def one():
    """An episode with a single model."""
    return transition_episode(3, horizon=5, changes=2)


def test_rewards_are_told_as_the_variable_that_they_are_minus():
    assert signed([1.0, -2.0, 0.0], COST) == [-1.0, 2.0, 0.0]
    assert str(signed(0.0, COST)) == "0.0", "not minus zero"
    assert signed(3.0, Wording()) == 3.0
    assert signed(None, COST) is None


def test_a_single_model_has_no_band(one):
    sequence = one.observed.clone()
    sequence[1] = one.candidate_actions(1)[0]
    record = {"rewards": [1.0] * 5, "observed_rewards": [2.0] * 5}
    found = course(one, sequence, record, COST, True)
    assert found["rewards"]["after"] == [-1.0] * 5
    assert found["rewards"]["lower"] is found["states"][0]["lower"] is None
    states = one.surrogate.units(one.replay(sequence.unsqueeze(0))[0])
    assert found["states"][1]["after"] == states[:, 1].tolist()
    assert found["states"][1]["observed"] == one.case.episode.columns(["x1"])[:, 0].tolist()


def test_without_changes_or_leave_nothing_is_replayed(one):
    record = {"rewards": [1.0] * 5, "observed_rewards": [1.0] * 5}
    assert course(one, one.observed, record, COST, True)["rewards"]["after"] is None
    sequence = one.observed.clone()
    sequence[1] = one.candidate_actions(1)[0]
    assert course(one, sequence, record, COST, False)["states"][0]["after"] is None


def test_the_band_is_that_of_the_models():
    several = weighed_episode(2, members=3, use="mean")
    sequence = several.observed.clone()
    sequence[0] = several.candidate_actions(0)[0]
    bounds = {"rewards_lower": [0.0] * 5, "rewards_upper": [3.0] * 5}
    record = {"rewards": [1.0] * 5, "observed_rewards": [2.0] * 5, **bounds}
    found = course(several, sequence, record, COST, True)
    assert (found["rewards"]["lower"], found["rewards"]["upper"]) == ([-3.0] * 5, [0.0] * 5)
    states = several.surrogate.member_units(several.replay(sequence.unsqueeze(0))[0])
    assert found["states"][0]["upper"] == states[..., 0].amax(1).tolist()


def test_a_replay_beyond_the_observations_is_named(one):
    sequence = one.observed.clone()
    sequence[1] = one.candidate_actions(1)[0]
    states = one.surrogate.units(one.replay(sequence.unsqueeze(0))[0])
    rescale = one.surrogate.rescale
    observed = one.case.episode.columns(["x0"])
    rescale.lower[0] = min(float(observed.min()), float(states[:, 0].min())) - 1.0
    rescale.upper[0] = max(float(observed.max()), float(states[:, 0].max())) + 1.0
    said = [text for text in beyond(one, sequence) if "x0" in text]
    assert said == []
    rescale.upper[0] = float(observed.max()) - 0.1
    said = [text for text in beyond(one, one.observed) if "x0" in text]
    assert said[0].startswith("x0 lies between")


def rising(one):
    """A sequence under which x0 rises above what was observed, and its states."""
    observed = one.case.episode.columns(["x0"])
    for step in one.open.tolist():
        for action in one.candidate_actions(step):
            sequence = one.observed.clone()
            sequence[step] = action
            states = one.surrogate.units(one.replay(sequence.unsqueeze(0))[0])[:, 0]
            if float(states.max()) > float(observed.max()):
                return sequence, states
    raise AssertionError("x0 rises under no single change")


@pytest.mark.parametrize(("beside", "said"), [(0.04, False), (0.06, True)])
def test_a_predicted_state_may_lie_a_twentieth_of_the_range_beyond(one, beside, said):
    sequence, states = rising(one)
    rescale = one.surrogate.rescale
    low = min(float(states.min()), float(one.case.episode.columns(["x0"]).min())) - 1.0
    # The trajectory was computed in the coordinates of the range before.
    replayed = one.replay(sequence.unsqueeze(0))
    one.replay = lambda sequences: replayed
    width = (float(states.max()) - low) / (1 + beside)
    units = one.surrogate.units(replayed[0])
    rescale.lower[0], rescale.upper[0] = low, low + width
    one.surrogate.units = lambda _: units
    found = [text for text in beyond(one, sequence) if text.startswith("under these actions x0")]
    assert bool(found) is said
