import json
import time
from dataclasses import replace

import numpy as np
import pytest
import torch

from rehearsal_torch.data.causal_task import CausalTask
from rehearsal_torch.data.known_reward import FunctionReward
from rehearsal_torch.data.trials.recommendation_history import PastRecommendation
from rehearsal_torch.data.trials.trial import Trial
from rehearsal_torch.data.trials.trial_store import (
    FORMAT,
    Campaign,
    TrialFileError,
    TrialStore,
    read_campaign,
    write_campaign,
)

PLAIN = {
    "graph": {"parents": {"X": ["a", "b"], "Y": ["X"]}},
    "actions": {"a": [0, 1], "b": [0, 10]},
    "reward": "Y",
}


def complete(store, a):
    with store.locked_log() as log:
        made, _, _ = log.complete({"a": a, "b": 1.0}, {"X": 1.0, "Y": 2.0})
        store.keep(made)


def test_in_memory_nothing_is_written(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    store = TrialStore(PLAIN)
    complete(store, 0.5)
    assert (store.seed, store.initial, len(store.log.table)) == (0, 6, 1)
    assert list(tmp_path.iterdir()) == []


def test_a_file_is_gone_on_with(tmp_path):
    file = tmp_path / "trials.json"
    complete(TrialStore(PLAIN, seed=np.int64(4), initial=8, file=file), 0.5)
    again = TrialStore(None, file=file)
    assert (again.seed, again.initial) == (4, 8)
    assert again.log.table.values.tolist() == [[0.5, 1.0, 1.0, 2.0]]
    complete(again, 0.25)
    assert len(json.loads(file.read_text())["trials"]) == 2


def test_what_another_session_wrote_is_seen(tmp_path):
    file = tmp_path / "trials.json"
    one, other = TrialStore(PLAIN, file=file), TrialStore(PLAIN, file=file)
    complete(one, 0.5)
    complete(other, 0.25)
    assert one.fresh().table.values[:, 0].tolist() == [0.5, 0.25]


def test_another_task_of_another_session_is_refused(tmp_path):
    file = tmp_path / "trials.json"
    store = TrialStore(PLAIN, file=file)
    file.write_text(file.read_text().replace('"seed": 0', '"seed": 3'))
    with pytest.raises(
        TrialFileError, match="another process changed the task, the seed or the initial design"
    ):
        store.fresh()


FURTHER = {
    **PLAIN,
    "graph": {"parents": {"X": ["a", "b"], "Y": ["X", "c"]}},
    "actions": {**PLAIN["actions"], "c": [0, 600]},
}
STATED = {**FURTHER, "actions": {**PLAIN["actions"], "c": {"range": [0, 600], "before": 300}}}


def test_an_action_that_comes_later_has_its_stated_value_in_earlier_trials(tmp_path, monkeypatch):
    file = tmp_path / "trials.json"
    store = TrialStore(PLAIN, file=file)
    complete(store, 0.5)
    with store.locked_log() as log:
        store.keep(log.ask(torch.tensor([0.25, 2.0]))[0])
        past = PastRecommendation(after=1, action={"a": 0.5, "b": 1.0}, predicted=2.0, std=0.1)
        store.keep(replace(store.log, recommended=(past,)))
    text = file.read_text()
    with pytest.raises(
        TrialFileError, match=r"c: no value of this action in trials 1 to 2: .*before: NUMBER"
    ):
        TrialStore(FURTHER, file=file)
    with monkeypatch.context() as broken:
        broken.setattr("rehearsal_torch.data.trials.trial_store.write_text", _interrupted)
        with pytest.raises(KeyboardInterrupt):
            TrialStore(STATED, file=file)
    assert file.read_text() == text
    later = TrialStore(STATED, file=file).log
    assert [trial.settings for trial in later.trials] == [
        {"a": 0.5, "b": 1.0, "c": 300},
        {"a": 0.25, "b": 2.0, "c": 300},
    ]
    assert later.tried_at(later.recommended[0].action)
    # The trials say it from now on, whatever the task says.
    assert TrialStore(None, file=file).log.trials == later.trials == TrialStore(FURTHER, file=file).log.trials
    with pytest.raises(TrialFileError, match="another process changed the task"):
        store.fresh()
    with pytest.raises(TrialFileError, match=r"c: .*no such action, .* trials 1 to 2: .*fixed: {c: NUMBER}"):
        TrialStore(PLAIN, file=file)


def _interrupted(*_):
    raise KeyboardInterrupt


def test_what_was_measured_before_it_could_be_set_stays_as_measured(tmp_path):
    file = tmp_path / "trials.json"
    root = {**PLAIN, "graph": {"parents": {"X": ["a", "b"], "Y": ["X", "c"]}}}
    store = TrialStore(root, file=file)
    with store.locked_log() as log:
        store.keep(log.complete({"a": 0.5, "b": 1.0}, {"X": 1.0, "Y": 2.0, "c": 14.0})[0])
    later = TrialStore(STATED, file=file)
    assert later.log.table.columns(("c",)).tolist() == [[14.0]]


def test_a_python_reward_has_to_be_given_again(tmp_path):
    file = tmp_path / "trials.json"
    task = PLAIN | {"reward": FunctionReward(("Y",), lambda values: torch.tanh(values[..., 0]))}
    TrialStore(task, file=file)
    with pytest.raises(TrialFileError, match="the reward is a Python function, which is not stored"):
        TrialStore(None, file=file)
    assert TrialStore(task, file=file).log.trials == ()


@pytest.mark.parametrize("reward", ["Y", FunctionReward(("Y",), lambda each: each[..., 0])])
def test_levels_are_kept_in_the_file(tmp_path, reward):
    file = tmp_path / "trials.json"
    task = CausalTask.of({**PLAIN, "actions": {"a": {"values": [0, 0.1, 1]}, "b": [0, 10]}, "reward": reward})
    TrialStore(task, file=file)
    assert json.loads(file.read_text())["task"]["actions"]["a"] == {"values": [0.0, 0.1, 1.0]}
    again = TrialStore(task if reward != "Y" else None, file=file)
    assert again.task.box.levels == {"a": (0.0, 0.1, 1.0)}


@pytest.mark.slow
def test_twice_the_trials_take_at_most_two_and_a_half_times_the_time(tmp_path):
    spent = []
    for count in (300, 600):
        store, begun = TrialStore(PLAIN, file=tmp_path / f"{count}.json"), time.process_time()
        for place in range(count):
            with store.locked_log() as log:
                asked, suggestion = log.ask(torch.tensor([place / count, 1.0], dtype=torch.float64))
                assert not asked.contains(torch.tensor([2.0, 1.0]), "completed", "pending")
                store.keep(asked)
            with store.locked_log() as log:
                told, _, _ = log.complete(suggestion, {"X": place, "Y": 2.0})
                store.keep(told)
            assert len(store.log.table) == place + 1
        spent.append(time.process_time() - begun)
    assert spent[1] <= 2.5 * spent[0], spent


def test_an_unchanged_file_is_not_parsed_again(tmp_path, monkeypatch):
    store = TrialStore(PLAIN, file=tmp_path / "trials.json")
    complete(store, 0.5)
    monkeypatch.setattr("rehearsal_torch.data.trials.trial_store.campaign_of", None)
    monkeypatch.setattr("rehearsal_torch.data.trials.trial_store.json_of", None)
    complete(store, 0.25)
    assert len(store.fresh().trials) == 2


def test_a_start_design_of_more_than_a_million_is_refused():
    assert TrialStore(PLAIN, initial=10**6).initial == 10**6
    for many in (10**6 + 1, 10**12, 10**5000):
        with pytest.raises(ValueError, match="initial: expected at most 1,000,000 experiments"):
            TrialStore(PLAIN, initial=many)


TRIALS = (
    Trial(id=1, state="completed", asked={"a": 0.1}, ran={"a": 1 / 3}, nodes={"Y": 1e-300}, altered=("Y",)),
    Trial(id=2, state="failed", asked={"a": 0.2}, reason="Überdruck"),
    Trial(id=4, state="completed", ran={"a": 5.0}, nodes={"Y": -0.0}),
    Trial(id=5, state="pending", asked={"a": 0.4}),
)
WHOLE = Campaign(task={"graph": {}}, seed=7, initial=5, trials=TRIALS)


@pytest.mark.parametrize("trials", [(), TRIALS[:1], TRIALS])
def test_what_is_written_comes_back_to_the_last_digit(tmp_path, trials):
    campaign = WHOLE.model_copy(update={"trials": trials})
    text = write_campaign(tmp_path / "new" / "trials.json", campaign)
    assert read_campaign(tmp_path / "new" / "trials.json") == (campaign, text)
    assert len(text.splitlines()) == 4 + len(trials)


@pytest.mark.parametrize(
    ("text", "message"),
    [(WHOLE.text()[:-40], "cannot be read as JSON"), ("[" * 100_000, "levels of nesting")],
)
def test_damaged_files_are_told(tmp_path, text, message):
    (tmp_path / "t.json").write_text(text, encoding="utf-8")
    with pytest.raises(TrialFileError, match=message) as caught:
        read_campaign(tmp_path / "t.json")
    assert str(tmp_path / "t.json") in str(caught.value)


def test_a_place_that_cannot_be_written_is_told(tmp_path):
    (tmp_path / "taken.json").mkdir()
    with pytest.raises(TrialFileError, match=r"cannot be written .*nothing was recorded"):
        write_campaign(tmp_path / "taken.json", WHOLE)
    assert FORMAT.endswith("/1")
    assert [path.name for path in tmp_path.iterdir()] == ["taken.json"]
