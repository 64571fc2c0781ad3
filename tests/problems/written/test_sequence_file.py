"""Problem files that ask for a sequence: the task they stand for, and their faults, each with its line."""

import pytest

from rehearsal_torch.data.problem_file.findings import ProblemError
from rehearsal_torch.problems.episodes.task import episode_task
from rehearsal_torch.problems.written.sequence_file import sequence_problem
from tests.problems.written.conftest import SEQUENCE, changed

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


def faults(file):
    with pytest.raises(ProblemError) as caught:
        sequence_problem(file)
    return list(caught.value.faults)


def test_it_stands_for_the_task_of_the_same_columns(sequence):
    found = sequence_problem(sequence())
    assert found.roles == episode_task(TASK)
    assert len(found.rows.frame) == 240
    assert found.method is None
    assert found.notes == ("maker: its values are A, B, of which A is the reference",)
    assert sequence_problem(sequence(method="greedy")).method == "greedy"


def test_named_levels_of_static_texts_are_their_values(sequence):
    named = sequence_problem(sequence(**changed(SEQUENCE, "maker", levels=["B", "A"])))
    assert named.roles.static[0].values == ("B", "A")
    assert named.notes == ()


def test_policy_and_length_of_steps_are_those_of_the_file(sequence):
    found = sequence_problem(sequence(missing={"carry": 2}, step=2, levels=4)).roles
    assert (found.missing.rule, found.missing.steps, found.step, found.count) == ("carry", 2, 2.0, 4)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"unit": "pmp"}, "line 3, unit: no column 'pmp' in {table}; did you mean 'pump'?"),
        (
            changed(SEQUENCE, "wear", role="varying"),
            "variables.wear.role: expected one of state, static, context, action, other; got 'varying'",
        ),
        (changed(SEQUENCE, "wear", cost=3), "variables.wear.cost: wear is of the role state: leave it out"),
        (changed(SEQUENCE, "wear", kind="categorical"), "variables.wear.kind: expected numbers, one of cont"),
        (changed(SEQUENCE, "valve", kind="categorical"), "levels of an action have an order"),
        (changed(SEQUENCE, "oil", kind="ordinal"), "variables.oil.kind: ordinal needs levels"),
        (changed(SEQUENCE, "valve", kind="continuous"), "kind: continuous is for amounts"),
        (changed(SEQUENCE, "valve", cost={"ajar": 1}), "variables.valve.cost: 'ajar' is no level; there are"),
        (changed(SEQUENCE, "wear", range=[3, 1]), "variables.wear.range: expected lower <= upper"),
        (changed(SEQUENCE, "note", role="static", kind="categorical"), "expected 2 to 50 values in the col"),
        ({"reward": {"weights": {"waer": 1}}}, "reward.weights: 'waer' is no varying column; did you mean"),
        ({"missing": "fill"}, "missing: expected refuse, drop or"),
        (
            {"changes": 0},
            "changes: expected at most how many actions of a unit are changed, a whole number of",
        ),
        (
            {"changes": 2.5},
            "changes: expected at most how many actions of a unit are changed, a whole number",
        ),
        ({"changes": True}, "a whole number of at least 1; got True"),
        ({"chnages": 2}, "chnages: unknown key; did you mean 'changes'?"),
        ({"graph": ["a -> b"]}, "graph: unknown key"),
        (
            {"variables": {**SEQUENCE["variables"], "hour": "state"}},
            "variables.hour: it says whose row it is, or when: take it out",
        ),
        ({"variables": {"oil": {"role": "action", "unit": "ml"}}}, "expected at least one of the role state"),
        ({"time": None}, "time: missing; expected the column of time"),
    ],
)
def test_faults_have_their_line_and_key(sequence, changes, words):
    file = sequence(**changes)
    told = faults(file)
    assert any(words.format(table=file.parent / "pumps.csv") in each for each in told), told


def test_faults_of_cells_are_told_with_those_of_the_file(sequence):
    levels = changed(SEQUENCE, "valve", levels=["shut", "half"], cost=None)["variables"]
    levels["shift"] = {"role": "context", "cost": 1}
    told = faults(sequence(variables=levels))
    assert any("line 2, data: " in each and "expected shut, half; got 'open'" in each for each in told)
    assert any("variables.shift.cost" in each for each in told)


def test_another_question_is_refused_with_the_command(sequence):
    (told,) = faults(sequence(question="trials"))
    assert "line 1, question: the file asks for trials, and is read for sequence: type rehearsal dec" in told
    assert "rt.CausalOptimiser" in told


def test_the_file_says_how_many_actions_may_be_changed(sequence):
    assert sequence_problem(sequence()).changes is None
    assert sequence_problem(sequence(changes=2)).changes == 2
