"""Lengths of steps: dates in days become the largest whole unit, numbers keep the name of their column."""

import pytest

from rehearsal_torch.problems.episodes.step_length import step_text, time_text
from rehearsal_torch.problems.episodes.task import episode_task

PLAIN = {
    "unit": "pump",
    "time": "when",
    "varying": ["heat"],
    "actions": {"fan": {"levels": ["off", "on"]}},
    "reward": {"weights": {"heat": -1}},
}


@pytest.mark.parametrize(
    ("days", "text"),
    [
        (1.0, "1 day"),
        (7.0, "7 days"),
        (1 / 24, "1 hour"),
        (0.041666666627, "1 hour"),
        (4 / 24, "4 hours"),
        (1.5 / 24, "90 minutes"),
        (1 / 86400, "1 second"),
        (0.25 / 86400, "0.25 seconds"),
        (1.5, "36 hours"),
        (0.0, "0 seconds"),
    ],
)
def test_dates_have_a_unit(days: float, text: str) -> None:
    assert time_text(days, dated=True) == text


def test_numbers_have_the_name_of_their_column_or_of_a_step() -> None:
    plain, named = (episode_task({**PLAIN, "words": words}) for words in ({}, {"step": "hour"}))
    assert step_text(1.0, False, plain) == "1 in when"
    assert step_text(1.0, False, named) == "1 hour"
    assert step_text(0.5, False, named) == "0.5 in when"
    assert step_text(1 / 24, True, plain) == step_text(1 / 24, True, named) == "1 hour"
    assert time_text(0.5, dated=False) == "0.5"
