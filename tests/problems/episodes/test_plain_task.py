"""Roles as plain data: what the reader of tasks reads, written again."""

import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from rehearsal_torch.problems.episodes.plain_task import plain_task
from rehearsal_torch.problems.episodes.task import episode_task

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


@settings(max_examples=25, deadline=None)
@given(tasks())
def test_a_task_that_was_read_is_written_as_one_that_reads_alike(plain):
    roles = episode_task(plain)
    written = yaml.safe_load(yaml.safe_dump(plain_task(roles), sort_keys=False))
    assert episode_task(written) == roles
