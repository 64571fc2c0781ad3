"""The page of a saved model of episodes."""

import yaml

from rehearsal_torch.problems.episodes.task import episode_task
from rehearsal_torch.verbs.saving.episode_page import LIMITS, episode_page
from tests.toys.pumps import task

LABELS = {"class": "TransitionEnsemble", "data_fingerprint": "abc"}


def test_it_says_what_the_columns_are():
    page = episode_page({}, episode_task(task()), LABELS)
    assert "# A model of episodes: `flow`, `heat` under `valve`, `oil`" in page
    assert "| `valve` | an action: one of `shut`, `half`, `open` |" in page
    assert "| `oil` | an action: an amount in `ml` |" in page
    assert "| `pump` | whose row it is: pump |" in page
    assert "| `demand` | given |" in page
    assert "| data_fingerprint | `abc` |" in page
    assert all(f"- {each}" in page for each in LIMITS)
    _, front, _ = page.split("---\n", 2)
    assert yaml.safe_load(front)["license"] == "unknown"


def test_names_of_tables_cannot_end_a_cell_or_a_line():
    odd = task(varying={"flow|` rm": None, "heat": None}, reward={"weights": {"heat": 1}})
    page = episode_page({"data_fingerprint": "f|g"}, episode_task(odd), {})
    assert "| `flow/' rm` | a state, predicted |" in page
    assert "| data | `f/g` |" in page
