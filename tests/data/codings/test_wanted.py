"""The desired region as the end of a sentence."""

import pytest

from rehearsal_torch.data.codings.coding import Coding
from rehearsal_torch.data.codings.wanted import wanted, wanted_of

SEVERITY = Coding.of("severity", ["low", "medium", "high"])
CODINGS = {"severity": SEVERITY}


@pytest.mark.parametrize(
    ("names", "normals", "offsets", "said"),
    [
        (["y"], [[1.0]], [140.0], "y is at most 140"),
        (["y"], [[-2.0]], [-1.2], "y is at least 0.6"),
        (["y"], [[1.0], [-1.0]], [140.0, -100.0], "y is between 100 and 140"),
        (["x", "y"], [[0.0, 1.0]], [140.0], "y is at most 140"),
        (["severity"], [[1.0]], [1.5], "severity is at most medium"),
        (["severity"], [[1.0]], [0.5], "severity is low"),
        # What is not short is not said.
        (["severity"], [[1.0], [-1.0]], [1.5, -0.5], ""),
        (["x", "y"], [[1.0, 1.0]], [140.0], ""),
        (["x", "y"], [[1.0, 0.0], [0.0, 1.0]], [1.0, 1.0], ""),
        (["y"], [[1.0], [1.0]], [140.0, 130.0], ""),
        (["y" * 70], [[1.0]], [1.0], ""),
        (["y"], [], [], ""),
    ],
)
def test_one_bound_or_a_level_is_said(names, normals, offsets, said):
    assert wanted(names, normals, offsets, CODINGS) == said


@pytest.mark.parametrize(
    "region",
    [None, [], {}, {"names": ["y"]}, {"names": ["y"], "normals": [["a"]], "offsets": [1.0]},
     {"names": ["y", "x"], "normals": [[1.0]], "offsets": [1.0]}, {"names": 3, "normals": 4, "offsets": 5}],
)  # fmt: skip
def test_a_card_that_was_edited_says_nothing(region):
    assert wanted_of({"region": region}) == ""
    whole = {"names": ["y"], "normals": [[1.0]], "offsets": [2.0]}
    assert wanted_of({"region": whole}) == "y is at most 2"
