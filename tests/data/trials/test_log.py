import pytest
import torch

from rehearsal_torch.data.causal_task import CausalTask
from rehearsal_torch.data.table import Table
from rehearsal_torch.data.trials.log import TrialLog

TASK = CausalTask.of(
    {
        "graph": {"parents": {"X": ["a", "b"], "Y": ["X"]}},
        "actions": {"a": [0, 1], "b": [0, 10]},
        "reward": "Y",
    }
)


def action(a, b):
    return torch.tensor([a, b], dtype=torch.float64)


def asked(*actions):
    log, made = TrialLog(TASK), []
    for each in actions:
        log, suggestion = log.ask(action(*each))
        made.append(suggestion)
    return log, made


def test_trials_are_numbered_and_completed_in_a_table():
    log, (first, second) = asked((0.5, 2.0), (0.25, 8.0))
    assert (first, log.next_id) == ({"a": 0.5, "b": 2.0}, 3)
    log, trial, notes = log.complete(second, {"X": 1.0, "Y": 2.0, "else": "not read"}, altered=("X",))
    assert (trial.id, trial.state, notes) == (2, "completed", [])
    assert log.table.names == ("a", "b", "X", "Y")
    assert log.table.values.tolist() == [[0.25, 8.0, 1.0, 2.0]]
    assert log.table.altered.tolist() == [[True, True, True, False]]
    assert [each.id for each in log.in_states("pending")] == [1]
    assert log.settings("pending", "completed").tolist() == [[0.5, 2.0], [0.25, 8.0]]


def test_what_was_really_set_replaces_what_was_asked():
    log, (suggestion,) = asked((0.5, 2.0))
    suggestion["b"] = 3.0
    log, trial, _ = log.complete(suggestion, {"X": 1.0, "Y": 2.0})
    assert (trial.asked, trial.ran) == ({"a": 0.5, "b": 2.0}, {"a": 0.5, "b": 3.0})
    assert log.table.values[0].tolist() == [0.5, 3.0, 1.0, 2.0]


def test_an_experiment_that_nobody_asked_for_is_a_trial_of_its_own():
    log, _ = asked((0.5, 2.0))
    log, trial, notes = log.complete({"a": 0.501, "b": 2.0}, {"X": 1.0, "Y": 2.0})
    assert (trial.id, trial.asked, log.next_id) == (2, None, 3)
    assert "recorded as a trial that was not suggested; trial 1 (a 0.5, b 2) is close" in notes[0]
    log, trial, notes = log.complete({"a": 0.9, "b": 9.0}, {"X": 1.0, "Y": 2.0})
    assert (trial.id, notes) == (3, [])


def test_settings_of_a_pending_trial_find_it():
    log, _ = asked((0.5, 2.0))
    _, trial, notes = log.complete({"b": 2.0, "a": 0.5}, {"X": 1.0, "Y": 2.0})
    assert (trial.id, notes) == (1, [])


def test_failed_and_abandoned_trials():
    log, (first, _) = asked((0.5, 2.0), (0.25, 8.0))
    log, trial = log.fail(first, "the pump stopped", nodes={"X": 1.0})
    assert (trial.state, trial.reason, trial.nodes) == ("failed", "the pump stopped", {"X": 1.0})
    log, trial = log.abandon(2)
    assert (trial.id, trial.state) == (2, "abandoned")
    assert len(log.table) == 0
    points = torch.stack([action(0.5, 2.0), action(0.25, 8.0)])
    assert log.contains(points, "pending", "failed").tolist() == [True, False]
    assert log.contains(points, "abandoned").tolist() == [False, True]
    assert TrialLog(TASK).contains(points, "failed").tolist() == [False, False]
    log, trial, _ = log.complete(first, {"X": 1.0, "Y": 0.0})
    assert (trial.state, trial.reason) == ("completed", ""), "a failure may turn out to be none"


@pytest.mark.parametrize(
    ("reference", "nodes", "more", "said"),
    [
        (7, {"X": 1.0, "Y": 2.0}, {}, "no trial has the number 7; there are trials 1 to 1"),
        (1, {"X": 1.0}, {}, "Y"),
        (1, {"X": 1.0, "Y": float("nan")}, {}, "Y"),
        (1, {"X": 1.0, "Y": 2.0}, {"altered": ["Z"]}, "altered, but not a node of the task"),
        (1, {"X": 1.0, "Y": 2.0}, {"altered": "X"}, "expected names of nodes"),
        (None, {"X": 1.0, "Y": 2.0}, {}, "expected a trial's number, a trial, or settings"),
        ({"a": 0.5}, {"X": 1.0, "Y": 2.0}, {}, "b"),
        (
            {"a": 1.5, "b": 2.0},
            {"X": 1.0, "Y": 2.0},
            {},
            "if it was actually run there, pass the settings as ran=",
        ),
    ],
)
def test_what_cannot_be_recorded_is_refused(reference, nodes, more, said):
    log, _ = asked((0.5, 2.0))
    with pytest.raises(ValueError, match="is not recorded") as told:
        log.complete(reference, nodes, **more)
    assert said in str(told.value)


def test_trials_of_another_task_are_named():
    log, (suggestion,) = asked((0.5, 2.0))
    log, _, _ = log.complete(suggestion, {"X": 1.0, "Y": 2.0})
    other = CausalTask.of(
        {"graph": {"parents": {"X": ["a"], "Z": ["X"]}}, "actions": {"a": [0, 1]}, "reward": "Z"}
    )
    assert log.faults() == []
    faults = TrialLog(other, log.trials).faults()
    assert faults
    assert all(fault.startswith("trial 1: ") for fault in faults)
    with pytest.raises(ValueError, match="nothing is abandoned") as told:
        log.abandon({"a": 0.1, "b": 1.0})
    assert "nothing is pending" in str(told.value)


def test_levels_that_are_close_are_different_experiments():
    task = CausalTask.of(
        {
            "graph": {"parents": {"X": ["a", "b"], "Y": ["X"]}},
            "actions": {"a": {"values": [0, 1e-7, 1]}, "b": [0, 10]},
            "reward": "Y",
        }
    )
    log, _ = TrialLog(task).ask(action(0.0, 2.0))
    assert log.contains(action(1e-9, 2.0), "pending")
    assert not log.contains(action(1e-7, 2.0), "pending")
    _, trial, _ = log.complete({"a": 1e-7, "b": 2.0}, {"X": 1.0, "Y": 2.0})
    assert (trial.id, trial.asked) == (2, None)


def test_rows_that_wait_are_pending_once():
    done = Table.observed(("a", "b", "X", "Y"), torch.tensor([[0.5, 2.0, 1.0, 2.0]], dtype=torch.float64))
    rows = torch.stack([action(0.25, 8.0), action(0.25, 8.0), action(0.5, 2.0)])
    log = TrialLog(TASK).complete_rows(done)[0].await_rows(rows, done)
    assert log.settings("pending").tolist() == rows.tolist(), "a setting may be tried twice"
    assert log.await_rows(rows, done) is log
    # A failed trial is known, and so is one of which another session was told.
    log, _ = log.fail(2, "the pump broke")
    log, _, _ = log.complete(4, {"X": 1.0, "Y": 2.0})
    assert log.await_rows(rows, done) is log
    further = log.await_rows(torch.cat([rows, action(0.75, 1.0)[None]]), done)
    assert [each.settings for each in further.in_states("pending")][1:] == [{"a": 0.75, "b": 1.0}]
