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
        (changed(SEQUENCE, "oil", kind="ordinal"), "variables.oil.kind: ordinal needs levels"),
        (changed(SEQUENCE, "valve", kind="continuous"), "kind: continuous is for amounts"),
        (changed(SEQUENCE, "valve", cost={"ajar": 1}), "variables.valve.cost: 'ajar' is no level; there are"),
        (changed(SEQUENCE, "note", role="static", kind="categorical"), "expected 2 to 50 values in the col"),
        ({"missing": "fill"}, "missing: expected refuse, drop or"),
        (
            {"variables": {**SEQUENCE["variables"], "hour": "state"}},
            "variables.hour: it says whose row it is, or when: take it out",
        ),
    ],
)
def test_faults_have_their_line_and_key(sequence, changes, words):
    file = sequence(**changes)
    told = faults(file)
    assert any(words.format(table=file.parent / "pumps.csv") in each for each in told), told


def test_the_file_says_how_many_actions_may_be_changed(sequence):
    assert sequence_problem(sequence()).changes is None
    assert sequence_problem(sequence(changes=2)).changes == 2
