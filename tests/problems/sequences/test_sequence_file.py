"""Problem files that ask for a sequence: the task they stand for, and their faults, each with its line."""

import pytest

from rehearsal_torch.problems.sequences import user_episodes
from rehearsal_torch.problems.sequences.sequence_file import OwnSequence
from tests.problems.conftest import pumps

TASK = {
    "unit": "pump",
    "time": "hour",
    "varying": {"wear": {"unit": "%", "range": [0, None]}},
    "static": {"maker": {"values": ["A", "B"]}},
    "contextual": ["shift"],
    "actions": {
        "valve": {"levels": ["shut", "half", "open"], "cost": {"open": 1}},
        "oil": {"unit": "ml", "cost": 0.5},
    },
    "reward": {"weights": {"wear": -0.1}, "name": "profit"},
    "words": {"step": "hour"},
}


def test_units_steps_and_splits_are_counted(sequence):
    problem = OwnSequence(sequence())
    sizes = [len(problem.splits[name]) for name in ("train", "validation", "test")]
    assert sum(sizes) == 40
    assert problem.counted() == (
        f"40 pumps of pumps.csv, of 6 steps of 1 hour; {sizes[0]} to learn from, {sizes[1]} to "
        f"validate, {sizes[2]} to decide for"
    )


def test_every_variable_has_a_row_with_what_was_done(sequence):
    header, *rows = OwnSequence(sequence()).variable_rows()
    assert header[0] == "variable"
    found = {row[0]: row[1:] for row in rows}
    assert set(found) == {"wear", "maker", "shift", "valve", "oil"}
    table = pumps()
    assert found["wear"][:4] == ("state", "%", f"{table.wear.min():.6g}", f"{table.wear.max():.6g}")
    assert found["maker"][-1] == "one of A, B"
    # What is done in the last step of a unit is no part of an episode's transitions, but of its record.
    assert found["valve"][-1].startswith(f"shut {(table.valve == 'shut').mean():.0%}, half ")
    assert found["oil"][-1] == f"none {(table.oil == 0).mean():.0%}, else 1.5 to 3"


def test_each_warning_begins_at_its_number(sequence, tmp_path, monkeypatch):
    problem = OwnSequence(sequence())
    learnt = len(problem.splits["train"])
    for least, few in ((learnt, False), (learnt + 1, True)):
        monkeypatch.setattr(user_episodes, "FEW_UNITS", least)
        assert any("to learn from: below" in each for each in OwnSequence(sequence()).found.warnings) is few
    valve = problem.observations().columns(("valve",))[:, 0]
    rarest = min(int((valve == level).sum()) for level in range(3))
    for rare, told in ((rarest, False), (rarest + 1, True)):
        monkeypatch.setattr(user_episodes, "RARE", rare)
        found = [each for each in OwnSequence(sequence()).found.warnings if "little is known" in each]
        assert bool(found) is told


def test_a_level_that_occurs_once_is_warned_of_and_one_that_never_occurs_by_the_data_card(sequence, tmp_path):
    table = pumps()
    table["valve"] = "shut"
    before = OwnSequence(sequence())
    learnt = before.all[before.splits["train"][0]]
    table.loc[(table.pump == int(learnt.identity)) & (table.hour == 2), "valve"] = "half"
    table.to_csv(tmp_path / "pumps.csv", index=False)
    told = [each for each in OwnSequence(sequence()).found.warnings if "variables.valve" in each]
    assert any("half occurs in 1 of " in each for each in told)
    assert not any("open occurs in 0" in each for each in told)


@pytest.mark.parametrize(("unit", "personal"), [("patient_name", True), ("pump", False)])
def test_units_that_look_like_persons_are_warned_of(sequence, tmp_path, unit, personal):
    table = pumps()
    table["patient_name"] = [f"Ann Other{each} Smith" for each in table["pump"]]
    table.to_csv(tmp_path / "pumps.csv", index=False)
    told = OwnSequence(sequence(unit=unit)).found.warnings
    assert any("unit: " in each and "names of persons" in each for each in told) is personal
