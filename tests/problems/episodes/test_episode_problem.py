"""What a table in memory and one on disk have in common."""

import pytest
import torch
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from rehearsal_torch.problems.episodes.episode_file import EpisodeFile
from rehearsal_torch.problems.episodes.episode_problem import plain_task
from rehearsal_torch.problems.episodes.own_episodes import EpisodeTable
from rehearsal_torch.problems.episodes.task import episode_task
from tests.toys.pumps import TASK, table, task


@pytest.fixture(params=["memory", "disk"])
def problem(request, tmp_path):
    if request.param == "memory":
        return EpisodeTable(table(60), TASK, keep_last=2)
    table(60).to_parquet(tmp_path / "t.parquet", index=False)
    return EpisodeFile(tmp_path / "t.parquet", TASK, keep_last=2)


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
    assert card["caution: number of pumps"].startswith("4"), "forty-odd pumps are learnt from"
    assert torch.isfinite(torch.tensor(card["features"]["heat"]["median"]))


WORDS = st.text("abcxyz_ %", min_size=1, max_size=6).map(lambda each: f"w{each}".strip())
COST = st.floats(0, 9, allow_nan=False)


@st.composite
def tasks(draw):
    """Tasks with every part, some of them left out."""
    names = draw(st.lists(WORDS, min_size=8, max_size=8, unique=True))
    unit, time, state, other, fixed, kind, shift, dose = names
    levels = draw(st.lists(WORDS, min_size=2, max_size=4, unique=True))
    ends = sorted(draw(st.tuples(st.integers(-9, 9), st.integers(10, 20))))
    found = {
        "unit": unit,
        "time": time,
        "varying": {state: {"unit": "mm", "range": draw(st.sampled_from([ends, [None, 20], [0, None]]))}},
        "static": {fixed: None, kind: {"values": levels}},
        "contextual": draw(st.sampled_from([[], [shift]])),
        "actions": {
            f"{dose}1": {
                "levels": levels,
                "cost": draw(st.lists(COST, min_size=len(levels), max_size=len(levels))),
            },
            **draw(st.sampled_from([{}, {f"{dose}2": {"unit": "ml", "cost": 0.5, "combine": "mean"}}])),
        },
        "reward": {"weights": {state: draw(COST)}, "score": {"hot": {state: {"> 10": 2}}}, "name": other},
        "missing": draw(st.sampled_from(["refuse", "drop", {"carry": 3}])),
        "words": {"unit": unit, "units": f"{unit}s", "step": time},
    }
    if draw(st.booleans()):
        found["step"] = draw(st.floats(0.5, 30))
    return found


@settings(max_examples=60, deadline=None)
@given(tasks())
def test_a_task_that_was_read_is_written_as_one_that_reads_alike(plain):
    roles = episode_task(plain)
    written = yaml.safe_load(yaml.safe_dump(plain_task(roles), sort_keys=False))
    assert episode_task(written) == roles


@pytest.mark.parametrize("missing", ["refuse", "drop", {"carry": 2}])
def test_the_task_of_pumps_comes_back(missing):
    roles = episode_task(task(missing=missing, levels=4, step=1))
    assert episode_task(plain_task(roles)) == roles
    assert plain_task(roles)["actions"]["valve"] == {
        "levels": ["shut", "half", "open"],
        "cost": [0.0, 1.0, 3.0],
        "combine": "max",
    }
