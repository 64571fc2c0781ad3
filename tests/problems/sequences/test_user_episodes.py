import re

import numpy as np
import pandas as pd
import pytest
import torch
import yaml

from rehearsal_torch.data.dose_levels import DoseLevels
from rehearsal_torch.data.episode import following
from rehearsal_torch.data.finding import texts_of
from rehearsal_torch.data.problem_file.diagnostics import TaskError
from rehearsal_torch.problems.drafts.sequence_draft import rule_lines
from rehearsal_torch.problems.sequences.user_episodes import EpisodeTable, fixed_columns
from tests.toys.pumps import TASK, roles_of, table, task


@pytest.fixture(scope="module")
def pumps():
    return EpisodeTable(table(60), TASK)


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_a_file_and_a_frame_give_the_same(tmp_path, pumps, ending):
    file = tmp_path / f"pumps.{ending}"
    getattr(table(60).assign(note="x"), f"to_{ending}")(file, index=False)
    (tmp_path / "task.yaml").write_text(yaml.safe_dump(TASK, sort_keys=False), encoding="utf-8")
    read = EpisodeTable(file, tmp_path / "task.yaml")
    assert read.observations().fingerprint() == pumps.observations().fingerprint()
    assert read.held_out().fingerprint() == pumps.held_out().fingerprint()
    assert read.card()["source"] == file.name
    assert {**read.card(), "source": ""} == {**pumps.card(), "source": ""}


def test_units_are_split_by_their_names(pumps):
    names = {split: {each.identity for each in pumps.episodes(split)} for split in pumps.splits}
    assert set.union(*names.values()) == {str(unit) for unit in range(1, 61)}
    assert sum(map(len, names.values())) == 60
    # More units, in another order, leave every unit where it was.
    more = EpisodeTable(table(80).iloc[::-1], TASK)
    for split, before in names.items():
        assert {each.identity for each in more.episodes(split)} >= before
    other = EpisodeTable(table(60), TASK, seed=1)
    assert {each.identity for each in other.episodes("test")} != names["test"]
    assert pumps.count() == len(names["test"]) == len(pumps.episodes("test"))


def test_cases_are_the_first_steps_of_those_long_enough():
    problem = EpisodeTable(table(60), TASK, horizon=4, split="train")
    assert {problem.case(index).episode.horizon for index in range(problem.count())} == {4}
    assert problem.observations().fingerprint() == EpisodeTable(table(60), TASK).observations().fingerprint()
    with pytest.raises(ValueError, match="no pumps of split 'test' have 9 steps: lower `horizon`"):
        EpisodeTable(table(60), TASK, horizon=9)
    with pytest.raises(IndexError, match="expected a case in 0"):
        problem.case(problem.count())


def test_the_card_counts_and_names(pumps):
    card = pumps.card()
    assert card["pumps"] == 60
    assert card["transitions"] == 300
    assert card["length of a step"] == "1 in hour"
    assert card["missing"] == {"policy": "refuse"}
    assert card["actions"]["valve"] == "shut, half, open"
    assert card["actions"]["oil"].startswith("none, ")
    assert card["actions"]["oil"].endswith(" ml")
    assert card["features"]["flow"]["unit"] == "l/s"
    assert sum(each["pumps"] for each in card["splits"].values()) == 60
    assert texts_of(card)[0].startswith(f"{len(pumps.splits['train'])} pumps to learn from: below")
    assert not any(word in str(card).lower() for word in ("patient", "stay", "sofa"))


def test_a_level_that_never_occurs_is_told_and_not_recommended():
    actions = {"valve": {"levels": ["shut", "half", "open", "burst"]}}
    problem = EpisodeTable(table(60), task(actions=actions))
    words = "valve: burst never occurs among the pumps to learn from, and is not recommended"
    assert words in texts_of(problem.card())
    levels = DoseLevels(("valve",), problem.roles.count)
    levels.solve(problem.observations().columns(("valve",)))
    assert levels.selectable.tolist() == [True, True, True, False]


def test_amounts_above_every_row_and_values_that_are_copies_are_named():
    frame = table(60)
    frame["hour"] = frame["hour"] + 0.0
    extra = frame[frame["hour"] == 2].assign(hour=2.4, oil=9.0)
    frame["flow"] = frame["flow"].where(frame["hour"] % 3 == 0).ffill()
    problem = EpisodeTable(pd.concat([frame, extra], ignore_index=True), task(step=1))
    told = {each.text: each.numbers for each in problem.findings()}
    (summed,) = (each for each in told if "added up" in each)
    steps, most = (
        int((frame["oil"][frame["hour"] == 2] > 0).sum()),
        frame["oil"][frame["hour"] == 2].max() + 9,
    )
    row = max(9.0, frame["oil"].max())
    assert summed == (
        f"oil: {steps} steps have more than any row ({row:g}), up to {most:g}, as rows are added up: for a "
        "rate, write combine: mean"
    )
    assert told[summed] == {"steps": steps, "row": row, "most": pytest.approx(most)}
    (copied,) = (each for each in told if "carried forward" in each)
    assert copied.startswith("flow: 8")
    assert copied.endswith(
        "% of its values are exactly those before, as if carried forward: the model learns the copies"
    )
    assert told[copied] == {"share": pytest.approx(0.8, abs=0.01)}
    assert not [each for each in EpisodeTable(table(60), TASK).findings() if "carried" in each.text]


def test_faults_of_the_task_come_with_columns_that_the_table_lacks():
    with pytest.raises(TaskError) as wrong:
        EpisodeTable(table(60).drop(columns="demand"), task(levels=0))
    assert wrong.value.faults == (
        "levels: expected 2 to 1000 levels of amounts: none, and intervals of the others; got 0",
        "no column 'demand'; there are pump, hour, flow, heat, bore, maker, valve, oil",
    )


def test_what_leaves_no_unit_says_why():
    with pytest.raises(ValueError, match="no pump with at least 9 steps is left"):
        EpisodeTable(table(60), TASK, min_length=9)
    with pytest.raises(ValueError, match=r"no pump fell into split .* use more pumps"):
        EpisodeTable(table(2), TASK)
    rows = table(20)
    rows.loc[rows["pump"].isin(rows["pump"].unique()[3:]), "flow"] = float("nan")
    lost = r"17 of 20 pumps were left out; flow lacks \d+ of \d+ values: take it out .* no pump fell into"
    with pytest.raises(ValueError, match=lost):
        EpisodeTable(rows, TASK | {"missing": "drop"})
    with pytest.raises(ValueError, match="expected split train, validation or test; got 'tset'"):
        EpisodeTable(table(60), TASK, split="tset")


@pytest.fixture
def problem():
    return EpisodeTable(table(60), TASK, keep_last=2)


def test_cases_keep_their_last_actions(problem):
    case = problem.case(0)
    assert case.fixed.tolist() == [False] * 4 + [True] * 2
    with pytest.raises(IndexError, match="expected a case in 0"):
        problem.case(problem.count())
    assert problem.score(case, None) == {}


def test_the_card_has_levels_and_ranges_in_words(problem):
    card, rows = problem.card(), problem.observations()
    assert card["actions"]["valve"] == "shut, half, open"
    oil = rows.columns(("oil",))
    given = oil[oil > 0]
    levels = [float(each) for each in card["actions"]["oil"].removeprefix("none, ")[:-3].split(", ")]
    assert len(levels) == 4
    assert float(given.min()) <= levels[0] < levels[1] < levels[2] < levels[3] <= float(given.max())
    assert card["features"]["flow"]["unit"] == "l/s"
    assert card["features"]["flow"]["min"] <= float(rows.columns(("flow",)).min())
    assert texts_of(card)[0].startswith("4"), "forty-odd pumps are learnt from"
    assert torch.isfinite(torch.tensor(card["features"]["heat"]["median"]))


ROLES = roles_of(TASK)


@pytest.mark.parametrize(
    ("name", "low", "high", "said"),
    [
        ("flow", 3.0, 3.0, "flow: all values of the pumps to learn from are 3: a constant"),
        ("valve", 0.0, 0.0, "valve: it is shut in all rows of the pumps"),
        ("valve", 1.0, 2.0, "valve: it is never shut among the pumps .*: take this level out"),
        ("oil", 0.0, 0.0, "oil: it is 0 in all rows"),
        ("oil", 0.5, 2.0, "oil: it is never 0 among .*: subtract the usual amount, or give levels"),
    ],
)
def test_columns_from_which_nothing_is_learnt_are_named(name: str, low: float, high: float, said: str):
    least, largest = torch.zeros(len(ROLES.names)), torch.ones(len(ROLES.names))
    assert fixed_columns(ROLES, least, largest) == []
    place = ROLES.names.index(name)
    least[place], largest[place] = low, high
    (fault,) = fixed_columns(ROLES, least, largest)
    assert re.match(said, fault)


def test_states_that_were_carried_are_masked_or_refused():
    frame = table(200)
    frame["flow"] = frame["flow"].where(frame["hour"] % 3 == 0)
    carry = task(missing={"carry": 2})
    learnt, masked = (EpisodeTable(frame, carry, masked=each) for each in (False, True))
    assert any("copies" in text for text in texts_of(learnt.card()))
    assert not any("copies" in text for text in texts_of(masked.card()))
    assert masked.card()["missing"]["policy"] == "carry forward within 2 steps, states not learnt"
    known = ~following(masked.observations(), ("flow",)).isnan()
    assert int(known.sum()) == len(masked.episodes())
    frame["heat"] = frame["heat"].where(frame["hour"] == 0)
    words = (
        r"the table: with masked=true, .* 100 such steps of 10 units to learn from; got heat in 0 of 0 "
        r"units: take these states out, merge rows into longer steps, or learn what was filled in too, "
        r"masked=false"
    )
    with pytest.raises(ValueError, match=words):
        EpisodeTable(frame, task(missing={"carry": 5}), masked=True)
    later = frame["heat"].where(frame["pump"] > 9)
    frame["heat"] = table(200)["heat"].where((frame["hour"] == 0) | (frame["pump"] <= 9), later)
    with pytest.raises(ValueError, match=r"got heat in .* of [0-9] units"):
        EpisodeTable(frame, task(missing={"carry": 5}), masked=True)
    with pytest.raises(ValueError, match=r"with masked=true, expected missing: \{carry: m\}.*; got refuse"):
        EpisodeTable(table(200), task(), masked=True)


@pytest.mark.parametrize(("stated", "rule"), [({}, 1), ({"rules": {"most_levels": 4}}, 4)])
def test_a_dose_changes_by_no_more_levels_than_recorded_unless_the_task_says_so(stated, rule):
    random = np.random.default_rng(0)
    walks = np.clip(np.cumsum(random.choice([-1, 0, 1], (60, 12)), 1) + random.integers(0, 6, (60, 1)), 0, 5)
    frame = pd.DataFrame({"pump": np.repeat(range(60), 12), "hour": np.tile(range(12), 60)})
    frame = frame.assign(oil=walks.ravel(), level=random.normal(size=720))
    plain = {"unit": "pump", "time": "hour", "varying": ["level"], "actions": {"oil": {"unit": "ml"}}}
    table = EpisodeTable(frame, {**plain, "reward": {"weights": {"level": 1}}, "levels": 6, **stated})
    assert table.facts().rules["most_levels"] == rule
    assert table.facts().reading["task"]["rules"]["most_levels"] == rule
    limited = [
        finding.text for finding in table.findings() if "99% of the changes of actions" in finding.text
    ]
    assert len(limited) == (not stated)
    draft = rule_lines(frame.sample(frac=1, random_state=0), "pump", "hour", ["oil"])
    assert draft.endswith("rules: {most_levels: 1}")


def test_the_last_actions_stay_as_they_were(pumps):
    assert pumps.case(0).fixed.tolist() == [False] * 5 + [True]
    assert len(EpisodeTable(table(60), TASK, keep_last=0).case(0).fixed) == 0
    assert EpisodeTable(table(60), TASK, keep_last=3).case(0).fixed.tolist() == [False] * 3 + [True] * 3
    assert EpisodeTable(table(60), TASK, keep_last=99).case(0).fixed.all()
    with pytest.raises(ValueError, match="keep_last: expected at least 0 steps; got -1"):
        EpisodeTable(table(60), TASK, keep_last=-1)


def test_doses_are_quantised_on_the_units_to_learn_from_alone(pumps):
    frame = table(60)
    learnt = {each.identity for each in pumps.episodes("train")}
    frame.loc[~frame["pump"].astype(str).isin(learnt) & (frame["oil"] > 0), "oil"] *= 50
    assert EpisodeTable(frame, TASK).card()["actions"] == pumps.card()["actions"]
