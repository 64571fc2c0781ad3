"""Which files may be meant by a name that is not there."""

from pathlib import Path

import pytest

from rehearsal_torch.files.nearby import beside, near_files


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("nofile.yaml", []),
        ("prblem.yaml", ["problem.yaml", "problem.csv"]),
        ("problem.yml", ["problem.csv", "problem.yaml"]),
        ("BIGG.yaml", ["big.yaml"]),
        ("cases.csv.gz", []),
    ],
)
def test_only_names_that_are_alike_are_near(tmp_path, name, near):
    """nofile.yaml was near big.yaml, by their ending."""
    for each in ("big.yaml", "problem.yaml", "problem.csv", "table.csv"):
        (tmp_path / each).touch()
    assert near_files(tmp_path / name) == near


def test_a_folder_that_is_not_there_has_no_files(tmp_path):
    assert near_files(tmp_path / "nowhere/problem.yaml") == beside(Path("/nowhere/problem.yaml")) == []
