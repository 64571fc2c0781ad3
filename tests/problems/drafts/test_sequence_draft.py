"""A first problem file of episodes: what is guessed, what is left to fill in, and that it is then read."""

import numpy as np
import pandas as pd
import pytest
import yaml

from rehearsal_torch.data.problem_file.diagnostics import ProblemError
from rehearsal_torch.data.tables.reader import ReadTable, TableError
from rehearsal_torch.problems.drafts.draft_yaml import MARK
from rehearsal_torch.problems.drafts.role_guesses import Source
from rehearsal_torch.problems.drafts.sequence_draft import episodes, sequence_draft, step_lines
from rehearsal_torch.problems.sequences.sequence_file import OwnSequence, sequence_problem
from tests.problems.conftest import pumps


def drafted(frame, **typed):
    return sequence_draft(Source(ReadTable(frame, "pumps.csv"), "pumps.csv", "problem.yaml", typed))[0]


def test_a_draft_is_complete_but_for_the_reward(tmp_path):
    pumps().to_csv(tmp_path / "pumps.csv", index=False)
    note = [f"free text {each}" for each in range(240)]
    text = drafted(pumps().assign(note=note), action=["shift", "valve"])
    file = tmp_path / "problem.yaml"
    file.write_text(text)
    with pytest.raises(ProblemError) as caught:
        sequence_problem(file)
    (told,) = caught.value.faults
    assert "reward: nothing is written there yet" in told
    file.write_text(text.replace("reward:  # <- fill in, such as\n#   weights", "reward:\n  weights"))
    plain = yaml.safe_load(file.read_text())
    assert (plain["unit"], plain["time"]) == ("pump", "hour")
    stated = plain["variables"].items()
    roles = {name: about if isinstance(about, str) else about["role"] for name, about in stated}
    states, actions = {"wear": "state", "oil": "state"}, {"shift": "action", "valve": "action"}
    assert roles == {**states, **actions, "maker": "static"}
    problem = OwnSequence(file)
    assert len(problem.all) == 40
    assert problem.roles.static[0].values == ("A", "B")


def test_the_unit_is_the_column_with_one_row_for_each_time():
    assert episodes(pumps()) == ("pump", "hour")
    dated = pumps().assign(day=pd.Timestamp("2024-03-01").strftime("%Y-%m-%d")).drop(columns="hour")
    assert not episodes(dated)
    rows = pd.DataFrame({"age": np.arange(30.0), "week": 1, "y": 2.0})
    assert not episodes(rows)


def test_time_is_a_column_of_dates_or_typed():
    dates = pd.Timestamp("2024-03-01") + pd.to_timedelta(pumps()["hour"], unit="h")
    dated = pumps().assign(hour=dates.dt.strftime("%Y-%m-%d %H:%M")).rename(columns={"hour": "Zeitpunkt"})
    assert episodes(dated) == ("pump", "Zeitpunkt"), "a name that tells nothing"
    with pytest.raises(TableError, match="line 242 has 'Blatt 1' alone: delete it, it is no row of a unit"):
        drafted(pd.concat([pumps(), pd.DataFrame({"maker": ["Blatt 1"]})], ignore_index=True))
    numbered = pumps().rename(columns={"hour": "Nummer"})
    assert episodes(numbered) is None
    with pytest.raises(TableError, match="add unit=COLUMN and time=COLUMN, or question=cases"):
        drafted(numbered)
    assert "unit: pump\ntime: Nummer\n" in drafted(numbered, time=["Nummer"])


def with_rows(keep):
    return lambda frame: frame[[keep(place) for place in range(len(frame))]]


CHANGES = {
    "as it is": lambda frame: frame,
    "odd names": lambda frame: frame.rename(
        columns={"wear": "wear in %", "oil": "oil: ml", "shift": "yes", "valve": "#v", "maker": '{"maker"}'}
    ),
    "numbers of other sizes": lambda frame: frame.assign(wear=-1e9 * frame["wear"], oil=1e-9 * frame["oil"]),
    "amounts": lambda frame: frame.assign(dose=frame["oil"] * 2.5),
    "truth values": lambda frame: frame.assign(alarm=frame["wear"] > 30, tall=frame["pump"] % 2 == 0),
    "truth values with gaps": lambda frame: frame.assign(alarm=[None, True, True, False] * 60),
    "dates": lambda frame: frame.assign(
        day=pd.Timestamp("2024-03-01") + pd.to_timedelta(frame["hour"], unit="D")
    ).drop(columns="hour"),
    "uneven dates": lambda frame: frame.assign(
        day=pd.Timestamp("2024-03-01") + pd.to_timedelta(7 * frame["hour"] + frame["pump"] % 2, unit="D")
    ).drop(columns="hour"),
    "uneven times": lambda frame: frame.assign(hour=frame["hour"] + 0.3 * (frame["shift"] == 1)),
    "few missing steps": with_rows(lambda place: place % 50 != 9),
    "many missing steps": with_rows(lambda place: place % 6 != 2),
    "many empty cells": lambda frame: frame.assign(wear=frame["wear"].where(frame["hour"] != 3)),
    "known once": lambda frame: frame.assign(size=frame["wear"].where(frame["hour"] == 0)),
    "known of few": lambda frame: frame.assign(size=frame["wear"].where(frame["pump"] < 2)),
    "an action of few": lambda frame: frame.assign(stop=((frame["pump"] < 5) & (frame["hour"] == 5)) * 1),
    "a state of few": lambda frame: frame.assign(heat=np.where(frame["pump"] == 3, frame["wear"], 20.5)),
    "shuffled": lambda frame: frame.sample(frac=1, random_state=1),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES.keys())
def test_every_suggestion_holds_once_the_comment_is_taken_away(tmp_path, change):
    rewards = ("weights", "score")
    change(pumps()).to_csv(tmp_path / "pumps.csv", index=False)
    frame = pd.read_csv(tmp_path / "pumps.csv")
    actions = [name for name in ("shift", "yes", "valve", "#v", "alarm") if name in frame]
    text = drafted(frame, action=actions).replace(f"reward:  {MARK}, such as", "reward:")
    for part in rewards:
        text = text.replace(f"#   {part}:", f"  {part}:")
    (tmp_path / "problem.yaml").write_text(text)
    problem = OwnSequence(tmp_path / "problem.yaml")
    assert len(problem.all) >= 20
    assert set(yaml.safe_load(text)["reward"]) == set(rewards)
    assert problem.counted().startswith(f"{len(problem.all)} pump")
    assert not [each for each in problem.found.warnings if "reward" in each]


def said(frame):
    text = step_lines(frame, "pump", "hour", ["wear"], ["size"])
    return yaml.safe_load(text) or {}, text


def rows(units=10, steps=6):
    hour = np.tile(np.arange(steps), units)
    return pd.DataFrame(
        {"pump": np.repeat(np.arange(units), steps), "hour": hour, "wear": 1.0 + hour, "size": 2.0}
    )


@pytest.mark.parametrize("lacking", [4, 6])
def test_units_are_dropped_while_half_of_them_stay(lacking):
    frame = rows()
    frame = frame[~((frame["pump"] < lacking) & (frame["hour"] == 2))]
    parts, text = said(frame)
    assert "# Some units lack steps. They are faults (refuse),\n# take their unit out (drop)" in text
    rule, left = ("drop", 6) if lacking == 4 else ({"carry": 1}, 10)
    assert parts == {"missing": rule}
    assert f"{left} of 10 units are left" in text


def test_values_are_carried_over_the_usual_gap_and_never_into_the_first_step():
    frame = rows()
    frame.loc[(frame["pump"] < 7) & frame["hour"].isin([2, 3]), "wear"] = None
    frame.loc[(frame["pump"] == 8) & (frame["hour"] == 0), "wear"] = None
    frame.loc[(frame["pump"] == 9) & (frame["hour"] > 0), "size"] = None
    parts, text = said(frame)
    assert parts == {"missing": {"carry": 2}}
    assert "# Empty cells, by column: wear: 15, size: 5. They" in text
    assert "9 of 10 units are left" in text


def test_uneven_distances_are_merged_into_steps():
    frame = rows()
    frame["hour"] = frame["hour"] + np.where(frame["hour"] == 3, 0.4, 0)
    parts, _ = said(frame)
    assert parts == {"step": 1}
    dated = frame.assign(
        hour=[f"2024-03-{1 + 7 * int(each):02d}" for each in np.tile([0, 1, 2, 3, 4, 4.2], 10)]
    )
    assert said(dated)[0]["step"] == 7


def test_an_outcome_at_the_end_is_no_static():
    last = ~pumps()["pump"].duplicated(keep="last")
    text = drafted(pumps().assign(score=np.where(last, pumps()["pump"] % 7, np.nan)), action=["valve"])
    assert (
        "# score: left out: known only later, as an outcome is: 40 of 40 units lack it in their first row"
        in text
    )
    assert "score: 200" not in text, "no empty cell of it matters"


def test_dates_about_a_month_apart_are_calendar_months():
    dates = ["2024-01-03", "2024-02-02", "2024-03-05", "2024-03-28", "2024-05-02", "2024-06-03"]
    frame = rows().assign(hour=dates * 10)
    assert said(frame)[0] == {"step": "month", "missing": {"carry": 1}}
    assert said(rows().assign(hour=[f"2024-0{month}-31"[:7] + "-01" for month in range(1, 7)] * 10)) == (
        {},
        "",
    )
