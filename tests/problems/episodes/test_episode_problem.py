"""Cases, levels and ranges of a table of episodes."""

import pytest
import torch

from rehearsal_torch.problems.episodes.own_episodes import EpisodeTable
from tests.toys.pumps import TASK, table


@pytest.fixture
def problem():
    return EpisodeTable(table(60), TASK, keep_last=2)


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
