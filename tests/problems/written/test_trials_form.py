"""The schema of problem files that ask for trials."""

import pytest

from rehearsal_torch.files.schema import read
from rehearsal_torch.problems.written.trials_form import TrialsForm
from tests.problems.written.conftest import TRIALS

PARTS = {key: each for key, each in TRIALS.items() if key != "question"}


@pytest.mark.parametrize(
    ("part", "value", "words"),
    [
        ("variables", {"a": {"role": "action", "kind": "categorical"}}, "and write levels: [0, 1, 2]; neigh"),
        ("variables", {"a": {"role": "action", "step": 0}}, "expected a number above 0"),
    ],
)
def test_what_is_wrong_is_said_with_its_key(part, value, words):
    _, faults = read(TrialsForm, {**PARTS, part: value})
    assert any(words in each for each in faults), faults
