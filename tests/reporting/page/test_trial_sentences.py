"""Sentences of trials."""

from rehearsal_torch.reporting.page.material import material
from rehearsal_torch.reporting.page.trial_sentences import said_of_trials
from tests.toys import recorded_runs


def test_where_all_settings_wait_the_one_to_keep_is_said_with_the_reason(tmp_path):
    found = material(recorded_runs.trials(tmp_path, own=True))
    found.run.decisions[-1] |= {
        "alteration": None,
        "reason": {"kind": "nothing_left", "text": "all of them wait"},
    }
    title, headline, said = said_of_trials(found)
    assert title == "Next experiment"
    assert headline == "There is nothing to try before further results are known."
    assert said[0] == "To keep, if you had to stop now: a at 0.25."
    assert said[-1] == "Why: all of them wait."


def test_a_refusal_keeps_nothing(tmp_path):
    found = material(recorded_runs.trials(tmp_path))
    found.run.decisions[-1] |= {"alteration": None, "recommendation": None, "estimate": None}
    found.run.decisions[-1] |= {"reason": {"kind": "no_support", "text": "too few"}}
    _, headline, said = said_of_trials(found)
    assert headline == "Nothing is recommended."
    assert "Why: too few." in said
