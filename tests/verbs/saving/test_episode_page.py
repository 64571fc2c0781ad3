"""The page of a saved model of episodes."""

from rehearsal_torch.problems.episodes.task import episode_task
from rehearsal_torch.verbs.saving.episode_page import episode_page
from tests.toys.pumps import task


def test_names_of_tables_cannot_end_a_cell_or_a_line():
    odd = task(varying={"flow|` rm": None, "heat": None}, reward={"weights": {"heat": 1}})
    page = episode_page({"data_fingerprint": "f|g"}, episode_task(odd), {})
    assert "| `flow/' rm` | a state, predicted |" in page
    assert "| data | `f/g` |" in page
