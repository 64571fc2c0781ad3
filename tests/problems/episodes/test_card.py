"""Data cards: what they count is what is there."""

import json

import pytest
import torch
import yaml

from rehearsal_torch.data.dose_levels import DoseLevels
from rehearsal_torch.problems.episodes.cohort import SepsisSimulated
from rehearsal_torch.problems.episodes.stays import data_card


@pytest.fixture(scope="module")
def problem() -> SepsisSimulated:
    return SepsisSimulated(patients=120, seed=3)


def test_a_card_is_plain_and_counts_what_is_there(problem: SepsisSimulated) -> None:
    card = problem.card()
    assert yaml.safe_load(yaml.safe_dump(dict(card))) == card
    json.dumps(card)
    assert card["patients"] == card["episodes"] == 120 == sum(card["horizons"]["episodes by steps"].values())
    assert card["transitions"] == sum(episode.horizon - 1 for episode in problem.stays.episodes)
    assert sum(sizes["patients"] for sizes in card["splits"].values()) == 120
    assert card["dose levels"]["max_dose_vaso"] == problem.levels.medians[0].tolist()
    assert card["features"]["SOFA"]["largest"] <= 24
    assert "never for evidence" in card["caution"]


def test_the_fingerprint_tells_data_apart(problem: SepsisSimulated) -> None:
    assert problem.card()["fingerprint"] == SepsisSimulated(patients=120, seed=3).card()["fingerprint"]
    assert problem.card()["fingerprint"] != SepsisSimulated(patients=120, seed=4).card()["fingerprint"]


def test_a_card_says_what_repeated_doses_did_to_the_levels(problem: SepsisSimulated) -> None:
    assert [key for key in problem.card() if "caution" in key] == ["caution"]
    levels = DoseLevels(("tablets", "drops"))
    levels.solve(torch.tensor([[0.0, 1.0], [1.0, 2.0], [2.0, 3.5], [2.0, 4.0], [1.0, 0.0]]))
    card = data_card(problem.stays, problem.splits, source="here", caution="none", levels=levels)
    assert card["caution: levels of tablets"].startswith(
        "2 different non-zero doses, each a level of its own; 2 of 4 levels have no row"
    )
    assert "caution: levels of drops" not in card
    assert card["dose levels"] == {"tablets": [0.0, 1.0, 2.0], "drops": [0.0, 1.0, 2.0, 3.5, 4.0]}
