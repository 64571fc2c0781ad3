"""Drafts of tables of the kinds that people have: the roles that a person would give, or what is open."""

import numpy as np
import pandas as pd
import pytest
import yaml

from rehearsal_torch.console_command import run
from rehearsal_torch.problems.drafts.draft_yaml import MARK
from rehearsal_torch.problems.drafts.problem_draft import draft
from tests.problems.conftest import experiments, pumps

RANDOM = np.random.default_rng(3)


def normal(rows=60):
    return RANDOM.normal(size=rows).round(3)


def persons(rows=60):
    return pd.DataFrame(
        {
            "Patient": RANDOM.permutation(9 * rows)[:rows],
            "age": RANDOM.integers(20, 80, rows),
            "agesq": 0,
            "female": RANDOM.integers(0, 2, rows),
            "bp": normal(rows),
            "dose": RANDOM.integers(0, 4, rows),
            "score": normal(rows),
            "baseline score": normal(rows),
            "Comment": [f"seen by Jane {place}" for place in range(rows)],
        }
    ).assign(agesq=lambda frame: frame["age"] ** 2)


def weather():
    days = pd.date_range("2023-05-01", periods=120)
    return pd.DataFrame(
        {"ozone": normal(120), "wind": normal(120), "Month": days.month, "Day": days.day, "sun": normal(120)}
    )


def market(rows=90):
    day = np.arange(rows)
    marks = {name: (day % 5 == place).astype(int) for place, name in enumerate(("mon", "tues", "wed"))}
    price = np.exp(normal(rows))
    return pd.DataFrame(
        {**marks, "speed": RANDOM.integers(1, 9, rows), "price": price, "lprice": np.log(price), "t": day + 1}
    )


def crossed():
    table = pd.MultiIndex.from_product([["1st", "2nd", "3rd"], ["Male", "Female"], ["No", "Yes"]])
    frame = table.to_frame(index=False, name=["Class", "Sex", "Survived"])
    return frame.assign(Freq=RANDOM.integers(0, 90, len(frame)), people=RANDOM.integers(0, 90, len(frame)))


def panel(units=12, years=6):
    rows = units * years
    year = np.tile(np.arange(1981, 1981 + years), units)
    marks = {f"d{each - 1900}": (year == each).astype(int) for each in range(1982, 1984)}
    place = np.repeat(np.arange(units), years)
    return pd.DataFrame(
        {
            "county": place,
            "year": year,
            "crime": normal(rows),
            "police": normal(rows).clip(0),
            "west": place % 2,
            **marks,
        }
    )


CASES = {
    # table: question, roles, of those that are neither context nor state; identity; what is open
    "persons": (persons(), "cases", {"dose": "action", "score": "outcome"}, "Patient", ()),
    "weather": (weather(), "cases", {}, None, ("outcome", "action")),
    "market": (market(), "cases", {}, None, ("outcome", "action")),
    "crossed": (
        crossed(),
        "cases",
        {"Survived": "outcome", "Freq": "other", "people": "other"},
        None,
        ("action",),
    ),
    "panel": (panel(), "sequence", {"west": "static"}, None, ("action",)),
    "dosed": (panel().rename(columns={"police": "dose"}), "sequence", {"dose": "action"}, None, ()),
    "rate of places": (
        pd.DataFrame({"State": list("abcdefghij") * 6, "Rate": normal(60), "year": np.repeat(range(6), 10)}),
        "sequence",
        {},
        None,
        ("action",),
    ),
}


def drafted(tmp_path, frame, question="auto", **typed):
    frame.to_csv(tmp_path / "t.csv", index=False)
    text, notes = draft(str(tmp_path / "t.csv"), tmp_path / "problem.yaml", question, typed)
    return text, notes


def roles_in(text):
    variables = yaml.safe_load(text.replace(f"{MARK}, such as", ""))["variables"]
    return {name: each if isinstance(each, str) else each["role"] for name, each in variables.items()}


@pytest.mark.parametrize("name", CASES)
def test_roles_are_those_that_a_person_gives_or_open(tmp_path, name):
    frame, question, wanted, identity, open_ = CASES[name]
    text, notes = drafted(tmp_path, frame)
    plain = yaml.safe_load(text.replace(f"{MARK}, such as", ""))
    told = roles_in(text)
    assert plain.get("question", "cases") == question
    assert plain.get("identity") == identity
    assert {each: told.get(each) for each in wanted} == wanted
    both = ("outcome", "action")
    assert set(told.values()) - {"context", "state", "static", "other"} == set(wanted.values()) & {*both}
    assert [role for role in both if f"{MARK}: role: {role}" in text] == list(open_)
    assert [role for role in both if any(f"Add {role}=" in note for note in notes)] == list(open_)
    guessed = [note.split()[1] for note in notes if "its name says it" in note]
    assert sorted(guessed) == sorted(each for each, role in wanted.items() if role in both)
    # Nothing that cannot be set, or that nobody asks for, is offered either.
    offered = " ".join(line for line in text.splitlines() if f"{MARK}: role" in line)
    days = {"Month", "Day", "mon", "tues", "wed", "t", "year", "d82"}
    never = days | {"age", "agesq", "female", "Sex", "west", "State", "county", "Freq"}
    assert not set(offered.replace(",", "").split()) & never


@pytest.mark.parametrize("name", ["persons", "dosed", "weather", "crossed", "panel", "pumps", "experiments"])
def test_a_draft_that_asks_nothing_passes_the_check_once_it_is_filled_in(tmp_path, name, capsys):
    typed = {
        "weather": {"outcome": "ozone", "action": "[wind, sun]"},
        "crossed": {"action": "Class"},
        "panel": {"action": "police", "outcome": "crime", "unit": "county"},
        "pumps": {"action": "shift,valve"},
    }.get(name, {})
    frames = {table: frame for table, (frame, *_) in CASES.items()}
    frames |= {"crossed": pd.concat([crossed()] * 5), "pumps": pumps(), "experiments": experiments()}
    frame = frames[name]
    question = "trials" if name == "experiments" else "auto"
    text, _ = drafted(tmp_path, frame, question, **typed)
    assert f"{MARK}: role" not in text
    for marked in ("reward:  ", "desired: "):
        text = text.replace(f"{marked}{MARK}, such as ", marked).replace(f"{marked}{MARK}, such as", marked)
    text = text.replace("#   weights:", "  weights:").replace("  # - ", "  - ")
    assert MARK in text or "graph" not in text
    (tmp_path / "problem.yaml").write_text(text)
    assert run("check", [f"problem={tmp_path / 'problem.yaml'}"]) == 0, capsys.readouterr().err


def test_a_measured_column_of_whole_numbers_is_no_unit(tmp_path):
    """Where each time occurs once, only what is in blocks, or is called so, says whose rows they are."""
    text, _ = drafted(tmp_path, market())
    assert "unit:" not in text
    called = market().rename(columns={"speed": "machine"}).drop(columns=["mon", "tues", "wed", "lprice"])
    text, notes = drafted(tmp_path, called)
    assert "unit: machine\ntime: t\n" in text
    assert notes[0] == (
        "Guessed: the table has several rows for each machine, one for each t: question=sequence. Add "
        "question=cases to decide for rows."
    )
    text, _ = drafted(tmp_path, market(), unit="speed")
    assert "unit: speed\ntime: t\n" in text


def test_what_no_row_or_unit_can_begin_with_is_left_out(tmp_path):
    """Changes are empty in the first step of each unit, and gaps may leave a column with one value."""
    frame = panel().assign(change=lambda each: each.groupby("county")["crime"].diff())
    text, _ = drafted(tmp_path, frame, action="police")
    assert "  # change: left out: the first step of 12 of 12 units lacks it\n" in text
    assert "missing:" not in text
    assert "  # d82, d83: left out: a part of the calendar: the time says it\n" in text
    late = panel().assign(late=lambda each: (each["year"] == 1986) * RANDOM.integers(0, 2, 72))
    text, _ = drafted(tmp_path, late)
    # In no step but the last.
    assert "  # late: left out: only 0 of 12 units have another value than 0\n" in text
    rows = persons().assign(drinks=np.repeat([0, 1], 30), often=[np.nan] * 25 + [2] * 5 + [1, 3] * 15)
    rows.loc[25:29, "drinks"] = 1
    text, _ = drafted(tmp_path, rows)
    assert "  # drinks: left out: all 35 rows that lack nothing have one value\n" in text


def test_marks_of_times_and_shifted_columns_are_no_states(tmp_path):
    """Tables of panels have a column of 0 and 1 for each region and year, and leads and lags."""
    frame = panel().assign(
        lead1=normal(72),
        lagCrime=normal(72),
        post=lambda each: (each["year"] > 1983) & (each["county"] % 3 > 0),
    )
    for year in range(1981, 1985):
        frame[f"r{year}"] = ((frame["year"] == year) & (frame["west"] == 1)).astype(int)
    text, _ = drafted(tmp_path, frame, action="post")
    assert {name for name, role in roles_in(text).items() if role == "state"} == {"crime", "police"}
    assert "  # r1981, r1982, r1983, r1984: left out: one of 4 columns that mark a year each\n" in text
    assert "  # lead1, lagCrime: left out: an earlier or a later value of another column: other st" in text


def test_rows_of_one_place_belong_together_and_units_are_written(tmp_path):
    """A place of many names was left out without use, and a unit that the header says was lost."""
    places = [f"town {row // 4}" for row in range(60)]
    frame = persons().assign(village=places).rename(columns={"bp": "bp (mmHg)", "score": "score (%)"})
    frame["smoker (yes/no)"] = RANDOM.integers(0, 2, 60)
    plain = yaml.safe_load(drafted(tmp_path, frame)[0])
    assert plain["unit"] == "village"
    assert {name: about["unit"] for name, about in plain["variables"].items() if "unit" in about} == {
        "bp (mmHg)": "mmHg", "score (%)": "%"
    }  # fmt: skip
    trials = experiments().rename(columns={"yield": "yield (%)"})
    plain = yaml.safe_load(drafted(tmp_path, trials, "trials", outcome="yield (%)")[0])
    assert plain["variables"]["yield (%)"] == {"role": "outcome", "unit": "%"}
    text, _ = drafted(tmp_path, panel().rename(columns={"crime": "crime (1/a)"}))
    assert yaml.safe_load(text)["variables"]["crime (1/a)"] == {"role": "state", "unit": "1/a"}


def test_a_draft_asks_what_is_known_before_and_takes_whole_numbers_for_counts(tmp_path):
    stream = np.random.default_rng(2)
    counts = {"visits": stream.integers(0, 40, 600), "apgar": stream.integers(0, 11, 600)}
    frame = pd.DataFrame(counts | {"weight": stream.integers(360, 5204, 600), "care": counts["apgar"] % 3})
    frame.to_csv(tmp_path / "births.csv", index=False)
    typed = {"action": "visits", "outcome": "weight"}
    text, _ = draft(str(tmp_path / "births.csv"), tmp_path / "problem.yaml", "cases", typed)
    lines = {line.split(":")[0].strip(): line for line in text.splitlines()}
    assert "kind: integer" in lines["visits"]
    assert "kind: continuous" in lines["weight"]
    assert "# known before deciding? 0 to 10" in lines["apgar"]
    assert "# or weight >= " in lines["desired"]
