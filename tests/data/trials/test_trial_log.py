from dataclasses import replace

import pandas as pd
import pytest
import torch

from rehearsal_torch.data.causal_task import CausalTask
from rehearsal_torch.data.table import Table
from rehearsal_torch.data.trials.trial import Trial
from rehearsal_torch.data.trials.trial_log import TrialLog
from rehearsal_torch.data.trials.typed_settings import tolerances

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


def test_trials_of_another_task_are_named():
    log, (suggestion,) = asked((0.5, 2.0))
    log, _, _ = log.complete(suggestion, {"X": 1.0, "Y": 2.0})
    other = CausalTask.of(
        {"graph": {"parents": {"X": ["a"], "Z": ["X"]}}, "actions": {"a": [0, 1]}, "reward": "Z"}
    )
    assert log.faults() == []
    faults = TrialLog(other, log.trials).faults()
    assert faults
    assert all("trial 1: " in fault for fault in faults)
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
    waits = [Trial(id=9, state="pending", asked={"a": a, "b": b}) for a, b in rows.tolist()]
    log, _, _ = TrialLog(TASK).take(done, waits)
    assert log.settings("pending").tolist() == rows.tolist(), "a setting may be tried twice"
    assert log.take(done, waits)[0] is log
    # A failed trial is known, and so is one of which another session was told.
    log, _ = log.fail(2, "the pump broke")
    log, _, _ = log.complete(4, {"X": 1.0, "Y": 2.0}, ran={"a": 0.51, "b": 2.0})
    assert log.take(done, waits)[0] is log
    further, _, _ = log.take(done, [*waits, Trial(id=9, state="pending", asked={"a": 0.75, "b": 1.0})])
    assert [each.settings for each in further.in_states("pending")][1:] == [{"a": 0.75, "b": 1.0}]


NODES = {"X": 1.0, "Y": 2.0}


@pytest.mark.parametrize(
    ("told", "tolerance", "number"),
    [
        # What has two decimals, and one, of 0.123456 and 6.16.
        ((0.12, 6.2), None, 1),
        ((0.12, 6.1), None, 3),
        ((0.13, 6.2), None, 3),
        # Rounding to whole numbers would be more than a twentieth of the range of a.
        ((0.0, 6.2), None, 3),
        # Of both, the nearest.
        ((0.1, 6.2), 0.05, 1),
        ((0.1, 6.2), 0.02, 3),
        ((0.123456, 6.5), {"b": 0.4}, 1),
        ((0.13, 6.5), {"b": 0.4}, 3),
        ((0.16, 6.5), {"b": 0.4, "a": 0.1}, 2),
        ((0.123456, 6.2), 0, 3),
        ((0.123456, 6.16), 0, 1),
    ],
)
def test_settings_are_those_of_a_pending_trial_up_to_rounding(told, tolerance, number):
    """A rounded setting was a trial of its own, and the suggestion stayed pending for ever."""
    log, _ = asked((0.123456, 6.16), (0.16, 6.45))
    log = TrialLog(TASK, log.trials, tolerances(TASK, tolerance))
    settings = dict(zip("ab", told, strict=True))
    done, trial, _ = log.complete(settings, NODES)
    assert (trial.id, trial.settings) == (number, settings)
    assert [each.id for each in done.in_states("pending")] == [each for each in (1, 2) if each != number]
    row = torch.tensor([[*told, 1.0, 2.0]], dtype=torch.float64)
    taken, _, _ = log.take(Table.observed(("a", "b", "X", "Y"), row))
    assert [each.state for each in taken.trials] == [each.state for each in done.trials]


def test_of_several_suggestions_the_nearest_is_meant_and_it_is_said():
    log = replace(asked((0.1, 6.0), (0.2, 6.0))[0], tolerance=(0.2, 0.0))
    _, trial, notes = log.complete({"a": 0.16, "b": 6.0}, NODES)
    assert trial.id == 2
    assert notes == [
        "trial 2: pending trials [1, 2] have these settings up to rounding, and it is the nearest"
    ]
    assert log.complete({"a": 0.1, "b": 6.0}, NODES)[2] == [], "exactly one of them"


def test_levels_are_told_apart_whatever_the_tolerance():
    task = CausalTask.of({"graph": ["a -> Y"], "actions": {"a": {"values": [0, 0.1, 1]}}, "reward": "Y"})
    log, _ = TrialLog(task, (), tolerances(task, 0.5)).ask(torch.tensor([0.0], dtype=torch.float64))
    assert log.complete({"a": 0.1}, {"Y": 1.0})[1].id == 2
    assert log.complete({"a": 0.02}, {"Y": 1.0})[1].id == 1


def row(state, a, **more):
    key = "asked" if state == "pending" else "ran"
    return Trial(id=7, state=state, **{key: {"a": a, "b": 2.0}}, **more)


NOTHING = Table.observed(("a", "b", "X", "Y"), torch.zeros(0, 4))


def test_rows_have_states_and_are_the_trials_that_they_were():
    done = Table.observed(NOTHING.names, torch.tensor([[0.5, 2.0, 1.0, 2.0], [0.75, 2.0, 3.0, 4.0]]))
    rows = [row("pending", 0.1), row("abandoned", 0.3), row("failed", 0.2, nodes={"X": 1.5})]
    log, _, _ = TrialLog(TASK).take(done, rows)
    assert sorted(each.state for each in log.trials) == sorted(
        ["completed", "completed", "pending", "abandoned", "failed"]
    )
    assert log.in_states("failed")[0].nodes == {"X": 1.5}
    again, left_out, _ = log.take(done, rows)
    assert (again is log, left_out) == (True, 2)
    # What waited has failed, what was completed is withdrawn, and what failed stays.
    new = [row("failed", 0.1), row("abandoned", 0.5), row("failed", 0.2)]
    after, left_out, _ = log.take(Table.observed(done.names, done.values[1:]), new)
    states = {each.settings["a"]: each.state for each in after.trials}
    assert (len(after.trials), left_out) == (5, 1)
    assert states == {0.5: "abandoned", 0.75: "completed", 0.1: "failed", 0.2: "failed", 0.3: "abandoned"}


def test_a_row_beside_that_of_the_suggestion_is_another_experiment():
    log, _ = asked((0.123456, 2.0))
    done = Table.observed(NOTHING.names, torch.tensor([[0.12, 2.0, 1.0, 2.0]], dtype=torch.float64))
    both, _, _ = log.take(done, [row("pending", 0.123456)])
    assert [each.state for each in both.trials] == ["pending", "completed"]
    alone, _, notes = log.take(done)
    assert ([each.state for each in alone.trials], notes) == (["completed"], [])
    assert alone.trials[0].ran == {"a": 0.12, "b": 2.0}
    _, _, notes = log.take(Table.observed(done.names, done.values + torch.tensor([0.01, 0, 0, 0])))
    assert ["trial 2: recorded as a trial that was not suggested" in each for each in notes] == [True]


def test_a_failure_of_settings_that_nobody_asked_for_is_a_trial_of_its_own():
    log, _ = asked((0.5, 2.0))
    log, trial = log.fail({"a": 0.25, "b": 1.0}, "too hot")
    assert (trial.id, trial.state, trial.asked, trial.ran) == (2, "failed", None, {"a": 0.25, "b": 1.0})
    assert trial.nodes == {}
    with pytest.raises(ValueError, match="the failure is not recorded") as told:
        log.fail({"a": 1.5, "b": 1.0})
    assert "a may be set within [0, 1]; got 1.5" in str(told.value)
    # What was really set may lie anywhere.
    log, trial = log.fail(None, "too hot", ran={"a": 1.5, "b": 1.0})
    assert (trial.id, trial.ran) == (3, {"a": 1.5, "b": 1.0})
    log, trial = log.fail(1, ran={"a": 0.5, "b": 2.5})
    assert (trial.asked, trial.ran) == ({"a": 0.5, "b": 2.0}, {"a": 0.5, "b": 2.5})
    assert log.contains(torch.stack([action(0.5, 2.0), action(0.5, 2.5)]), "failed").all()


@pytest.mark.parametrize("made", [dict, pd.Series])
def test_measurements_of_a_failure_are_kept(made):
    log, _ = asked((0.5, 2.0))
    failed, trial = log.fail(1, nodes=made({"X": 1.5, "else": 7.0}))
    assert trial.nodes == {"X": 1.5}
    done, _, _ = log.complete(1, made(NODES))
    assert done.fail(1, "wrong unit")[1].nodes == NODES
    assert done.fail(1, "wrong unit", nodes=made({"Y": 3.0}))[1].nodes == {"Y": 3.0}
    assert len(failed.table) == 0


def test_a_trial_is_its_own_reference_in_its_own_log():
    log, _ = asked((0.5, 2.0), (0.25, 8.0))
    log, trial, _ = log.complete(log.trials[1], NODES)
    assert (trial.id, trial.ran) == (2, None)
    other, _ = asked((0.75, 2.0))
    with pytest.raises(ValueError, match="report it to the log that suggested it") as told:
        log.complete(other.trials[0], NODES)
    assert "trial 1 has the settings {'a': 0.75, 'b': 2.0} in its own log, and {'a': 0.5" in str(told.value)


def test_a_suggestion_counts_for_a_trial_that_is_not_completed():
    log, (suggestion,) = asked((0.5, 2.0))
    log, _ = log.fail(suggestion, "broke")
    log, trial, _ = log.complete(suggestion, NODES)
    assert (trial.id, trial.ran) == (1, None)
    # Of what is completed, it is a repetition.
    log, trial, _ = log.complete(suggestion, NODES)
    assert (trial.id, trial.asked, trial.ran) == (2, None, {"a": 0.5, "b": 2.0})
    suggestion["a"] = 0.75
    again, (fresh,) = asked((0.5, 2.0))
    _, trial, _ = again.complete(fresh, NODES, ran={"a": 0.5, "b": 2.0})
    assert trial.ran is None, "what was asked for is what ran"


def test_settings_are_matched_up_to_a_millionth_of_the_range():
    for sign in (-1, 1):
        for part, found in ((9e-7, 1), (1.2e-6, 2)):
            log, _ = asked((0.5, 2.0))
            _, trial, _ = log.complete({"a": 0.5, "b": 2.0 + sign * 10 * part}, NODES)
            assert trial.id == found
            _, trial, _ = log.complete({"a": 0.5 + sign * part, "b": 2.0}, NODES)
            assert trial.id == found


def test_settings_are_the_same_experiment_up_to_a_ten_thousandth_of_the_range():
    log, _ = asked((0.5, 2.0))
    points = [(0.5 + 0.9e-4, 2 - 0.9e-3), (0.5 - 0.9e-4, 2 + 0.9e-3), (0.5 + 1.1e-4, 2), (0.5, 2 - 1.1e-3)]
    wide = torch.stack([action(*each) for each in points]).reshape(2, 2, 2)
    assert log.contains(wide, "pending").tolist() == [[True, True], [False, False]]
    assert log.contains(wide, "completed").shape == (2, 2)


def test_a_report_beside_a_pending_trial_is_told_of_the_nearest():
    log, _ = asked((0.2, 2.0), (0.5, 5.0))
    for settings, near in (
        ({"a": 0.24, "b": 1.6}, 1),
        ({"a": 0.46, "b": 5.4}, 2),
        ({"a": 0.44, "b": 5.0}, None),
        ({"a": 0.5, "b": 4.4}, None),
    ):
        _, trial, notes = log.complete(settings, NODES)
        assert trial.id == 3
        assert [f"trial {near} (" in note for note in notes] == ([] if near is None else [True])
        assert all(note.startswith("trial 3: recorded as") for note in notes)


def test_what_ran_outside_is_noted_and_kept():
    log, _ = asked((0.5, 2.0))
    done, trial, notes = log.complete(1, NODES, ran={"a": 1.5, "b": 2.0})
    assert (trial.id, trial.ran) == (1, {"a": 1.5, "b": 2.0})
    (note,) = notes
    assert note.startswith("trial 1: action: a may be set within [0, 1]; got 1.5")
    assert note.endswith("kept as an observation, but no action will be suggested there")
    assert done.table.values[0, 0] == 1.5
    _, trial, notes = log.complete(1, NODES, ran={"a": 0.75, "b": 2.0})
    assert (trial.ran, notes) == ({"a": 0.75, "b": 2.0}, [])


def test_rows_are_left_out_as_often_as_they_are_known():
    values = torch.tensor([[0.5, 2.0, 1.0, 2.0], [0.5, 2.0, 1.0, 2.0], [1.5, 2.0, 1.0, 2.0]])
    marks = torch.tensor([[True, True, False, True]] * 3)
    table = Table(("a", "b", "X", "Y"), values.double(), marks)
    log, left_out, _ = TrialLog(TASK).take(table)
    assert (left_out, len(log.table)) == (0, 3)
    assert log.trials[0].altered == ("Y",)
    assert log.table.altered[0].tolist() == [True, True, False, True]
    log, left_out, _ = log.take(Table(table.names, table.values[:1].repeat(3, 1), marks))
    assert (left_out, len(log.table)) == (2, 4)


def test_what_cannot_be_abandoned_is_told_with_what_is_pending():
    log, _ = asked((0.5, 2.0), (0.25, 8.0))
    log, _ = log.abandon(2)
    for reference, said in (
        ({"a": 0.1, "b": 1.0}, "no pending trial has these settings; the pending trials are [1]"),
        (7, "no trial has the number 7"),
        ({"a": 0.1}, "b: no value for this action"),
    ):
        with pytest.raises(ValueError, match="nothing is abandoned") as told:
            log.abandon(reference)
        assert str(told.value).startswith(f"nothing is abandoned: {said}")
        assert "\n" not in str(told.value)
    with pytest.raises(ValueError, match="reason: expected a string"):
        log.abandon(1, reason=None)
    assert [each.state for each in log.trials] == ["pending", "abandoned"]


def test_trials_that_lack_a_value_are_faults_once():
    whole, _, _ = asked((0.5, 2.0))[0].complete(1, NODES)
    lacking = TrialLog(TASK, (whole.trials[0].with_changes(nodes={"X": 1.0}, ran={"a": 0.5}),))
    assert whole.faults() == []
    assert len(lacking.faults()) == 2
    assert all("trial 1: " in each for each in lacking.faults())
    # What failed need not have been measured.
    assert TrialLog(TASK, (whole.trials[0].with_changes(state="failed", nodes={}),)).faults() == []


@pytest.mark.parametrize("seed", range(5))
def test_a_log_that_grew_knows_what_a_log_of_its_trials_knows(seed):
    random = torch.Generator().manual_seed(seed)

    def drawn(most):
        return int(torch.randint(most, (), generator=random))

    log = TrialLog(TASK)
    for _ in range(60):
        step, number = drawn(5), drawn(max(len(log.trials), 1)) + 1
        if step < 2 or not log.trials:
            log, _ = log.ask(action(drawn(9) / 8, drawn(9)))
        elif step == 2:
            log, *_ = log.complete(number, {"X": drawn(9), "Y": drawn(9)}, ("X",) * drawn(2))
        elif step == 3:
            ran = {"a": 0.1, "b": drawn(9)} if drawn(2) else None
            log, *_ = log.complete(number, {"X": drawn(9), "Y": drawn(9)}, ran=ran)
        else:
            log, _ = (log.fail, log.abandon)[drawn(2)](number, "why")
        fresh = TrialLog(TASK, log.trials)
        assert log.table.values.tolist() == fresh.table.values.tolist()
        assert log.table.altered.tolist() == fresh.table.altered.tolist()
        points = action(drawn(9) / 8, drawn(9)).expand(3, 2)
        for states in (("completed",), ("pending", "failed")):
            assert log.contains(points, *states).tolist() == fresh.contains(points, *states).tolist()
            known = [
                [each["a"], each["b"]] for t in log.in_states(*states) for each in (t.asked, t.ran) if each
            ]
            assert bool(log.contains(points, *states)[0]) == (points[0].tolist() in known)


def test_there_may_be_a_million_trials():
    log, _ = asked((0.5, 2.0))
    full = TrialLog(TASK, (log.trials[0].with_changes(id=10**6),))
    done, trial, _ = full.complete(10**6, {"X": 1.0, "Y": 2.0})
    assert (trial.id, len(done.table)) == (10**6, 1)


def test_a_lost_value_is_no_fault_and_is_added_when_it_is_found():
    names, gap = ("a", "b", "X", "Y"), [0.5, 2.0, float("nan"), 2.0]
    lost, found = (
        Table.observed(names, torch.tensor([row], dtype=torch.float64)) for row in (gap, [0.5, 2.0, 1.0, 2.0])
    )
    log, left_out, _ = TrialLog(TASK).take(lost)
    assert (log.faults(), left_out, dict(log.trials[0].nodes)) == ([], 0, {"Y": 2.0})
    assert log.table.values[0].tolist()[3] == 2.0
    assert bool(log.table.values[0, 2].isnan())
    log, left_out, _ = log.take(found)
    assert (len(log.trials), left_out, dict(log.trials[0].nodes)) == (1, 0, {"X": 1.0, "Y": 2.0})
    assert log.table.values.tolist() == [[0.5, 2.0, 1.0, 2.0]]
    log, left_out, _ = log.take(lost)
    assert (left_out, dict(log.trials[0].nodes)) == (1, {"X": 1.0, "Y": 2.0})
