import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from rehearsal_torch.problems.sequences.column_roles import Action, Carry, Column, Words
from rehearsal_torch.problems.sequences.sequence_schema import SequenceProblem
from tests.toys.pumps import TASK, roles_of, task


def test_a_task_says_what_every_column_means():
    roles = roles_of(TASK)
    assert (roles.unit, roles.time, roles.step) == ("pump", "hour", None)
    assert roles.varying == (Column("flow", "l/s", 0.0, 100.0), Column("heat"))
    assert roles.static == (Column("bore", "mm"), Column("maker", values=("A", "B", "C")))
    assert roles.actions == (
        Action("valve", "", ("shut", "half", "open"), (0.0, 1.0, 3.0), "max"),
        Action("oil", "ml", (), (0.5,), "sum"),
    )
    assert roles.count == 5
    assert roles.words == Words("pump", "pumps", "")
    assert roles.missing == Carry("refuse")


def test_levels_are_a_number_of_them_or_their_names_and_values():
    def levels(written):
        return roles_of(task(actions={"valve": {"levels": written}})).actions[0].levels

    assert levels(3) == ("0", "1", "2")
    assert levels([-1, 0, 1]) == ("-1", "0", "1")
    assert levels([0.5, "b "]) == ("0.5", "b")


def test_a_cost_is_one_for_each_level_or_rises_with_them():
    def costs(written, levels):
        return roles_of(task(actions={"valve": {"levels": levels, "cost": written}})).actions[0].costs

    assert costs([0, 2, 6], 3) == (0.0, 2.0, 6.0)
    assert costs(1.5, 3) == (0.0, 1.5, 3.0)
    assert costs({"low": 1, "high": 4}, ["low", "high"]) == (1.0, 4.0)


@pytest.mark.parametrize(
    ("unit", "combine"),
    [
        *[(each, "sum") for each in (None, "mg", "mg/dL", "IU/kg", "m/z")],
        *[(each, "mean") for each in ("mcg/kg/min", "mL/4 h", "mg/day", "units per hour", "tablets daily")],
    ],
)
def test_a_unit_per_time_is_a_rate(unit, combine):
    actions = {"valve": {"levels": 3}, "oil": {} if unit is None else {"unit": unit}}
    assert [each.combine for each in roles_of(task(actions=actions)).actions] == ["max", combine]
    actions["oil"]["combine"] = "max"
    assert roles_of(task(actions=actions)).actions[1].combine == "max"


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
    if draw(st.booleans()):
        rules = {"support": 3, "most_levels": 1, "least_gain": 0.5}
        found["rules"] = {**rules, "forbidden": {f"{dose}1": "raise"}}
    return found


@settings(max_examples=60, deadline=None)
@given(tasks())
def test_a_task_that_was_read_is_written_as_one_that_reads_alike(plain):
    problem = SequenceProblem.of(plain)
    written = yaml.safe_load(yaml.safe_dump(problem.to_plain(), sort_keys=False))
    assert SequenceProblem.of(written) == problem
    assert roles_of(written) == problem.roles()


def test_a_task_is_written_with_its_variables():
    assert SequenceProblem.of(TASK).to_plain() == {
        "unit": "pump",
        "time": "hour",
        "variables": {
            "flow": {"role": "state", "unit": "l/s", "range": [0.0, 100.0]},
            "heat": {"role": "state"},
            "bore": {"role": "static", "unit": "mm"},
            "maker": {"role": "static", "levels": ["A", "B", "C"]},
            "demand": {"role": "context"},
            "valve": {"role": "action", "levels": ["shut", "half", "open"], "cost": {"half": 1, "open": 3}},
            "oil": {"role": "action", "unit": "ml", "cost": 0.5},
        },
        "reward": {"weights": {"flow": 0.25}, "score": {"hot": {"heat": {"> 10": 2}}}},
    }


def test_a_task_has_variables_or_the_columns_of_each_role():
    assert roles_of(task(actions="oil")) == roles_of(task(actions={"oil": {}}))
