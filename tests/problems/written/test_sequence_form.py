"""The schema of problem files that ask for a sequence."""

import pytest

from rehearsal_torch.files.schema import read
from rehearsal_torch.problems.written.sequence_form import SequenceForm
from tests.problems.written.conftest import SEQUENCE

PARTS = {key: each for key, each in SEQUENCE.items() if key != "question"}


def test_a_role_alone_is_a_variable():
    form, faults = read(SequenceForm, PARTS)
    assert faults == []
    assert form["variables"]["shift"].role == "context"
    assert form["variables"]["valve"].levels == ["shut", "half", "open"]
    assert form["missing"] == "refuse"


@pytest.mark.parametrize(
    ("part", "value", "words"),
    [
        ("variables", {"a": {"role": "action", "combine": "median"}}, "variables.a.combine"),
        ("variables", {"a": {"role": "action", "step": 1}}, "unknown key"),
        ("variables", {"a": {"role": "state", "kind": "continous"}}, "did you mean 'continuous'?"),
        ("data", "postgresql://me:hunter2@host/db", "data: data bases and addresses are not read"),
        ("time", True, "time"),
    ],
)
def test_what_is_wrong_is_said_with_its_key(part, value, words):
    _, faults = read(SequenceForm, {**PARTS, part: value})
    assert any(words in each for each in faults), faults
    assert "hunter2" not in " ".join(faults)
