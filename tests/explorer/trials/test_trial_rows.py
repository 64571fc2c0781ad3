"""Trials as rows: every one once, the latest first, with rewards and the best so far."""

from rehearsal_torch.explorer.trials import trial_rows
from rehearsal_torch.explorer.trials.trial_rows import course, shown_trials
from tests.toys.explored_trials import quick, system


def test_rows_are_the_trials(tmp_path):
    made = quick(tmp_path / "trials.json")
    one, two, three, four = made.ask(4)
    made.tell(one, system(one))
    made.tell(two.trial, {"X": 0.5, "Y": 2.0}, ran={"a": 0.5, "b": 1})
    made.fail(three, "the pump stopped")
    found = shown_trials(made.task, made.trials)
    assert [row["id"] for row in found["rows"]] == [4, 3, 2, 1]
    assert [row["state"] for row in found["rows"]] == ["pending", "failed", "completed", "completed"]
    assert [row["id"] for row in found["pending"]] == [4]
    assert found["pending"][0]["settings"] == dict(four)
    ran = found["rows"][2]
    assert (ran["settings"], ran["asked"], ran["reward"]) == ({"a": 0.5, "b": 1.0}, dict(two), 2.0)
    assert (found["rows"][1]["reason"], found["rows"][1]["reward"]) == ("the pump stopped", None)
    first = system(one)["Y"]
    assert found["course"] == {"numbers": [1, 2], "rewards": [first, 2.0], "best": [first, 2.0]}


def test_the_best_so_far_never_falls():
    assert course([1, 3, 4], [2.0, 1.0, 3.0])["best"] == [2.0, 2.0, 3.0]
    assert course([], [])["best"] == []


def test_many_trials_are_counted(tmp_path, monkeypatch):
    monkeypatch.setattr(trial_rows, "MOST", 2)
    made = quick(tmp_path / "trials.json")
    made.ask(5)
    found = shown_trials(made.task, made.trials)
    assert ([row["id"] for row in found["rows"]], found["more"]) == ([5, 4], 3)
    assert len(found["pending"]) == 5, "each of them waits for its result"
