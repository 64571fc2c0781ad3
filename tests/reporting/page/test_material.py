"""What a page is made of, and what becomes of values of another form."""

import math

import pytest

from rehearsal_torch.files.plain import PlainFileError
from rehearsal_torch.reporting.page.material import (
    finite,
    float_of,
    listed,
    mapping,
    material,
    shown,
)
from tests.toys import recorded_runs


def test_a_folder_is_read_whole(tmp_path):
    found = material(recorded_runs.alterations(tmp_path), cases=1, ended=False)
    assert (found.alterations, found.trials, found.sequences) == (True, False, False)
    assert found.card["rows"] == 400
    assert found.record["commit"] == "0123abcd"
    assert found.status["state"] == "ok"
    assert [one["identity"] for one in found.shown] == ["ann"]
    assert found.nouns == ("case", "cases")
    assert material(tmp_path, ended=True).status == {}


def test_of_trials_the_last_decision_alone_is_shown(tmp_path):
    found = material(recorded_runs.trials(tmp_path))
    assert found.trials
    assert [one["index"] for one in found.shown] == [2]


def test_episodes_are_known_by_their_trajectories(sepsis_run):
    found = material(sepsis_run)
    assert (found.sequences, found.words.variable) == (True, "SOFA")
    assert found.nouns == ("episode", "episodes")


def test_a_damaged_folder_is_refused(tmp_path):
    with pytest.raises(FileNotFoundError, match="is not a run folder"):
        material(tmp_path)
    recorded_runs.alterations(tmp_path)
    (tmp_path / "data.yaml").write_text("a: [1")
    with pytest.raises(PlainFileError, match=r"data\.yaml"):
        material(tmp_path)


def test_values_of_another_form_are_left_out():
    assert mapping([1]) == {} == mapping(None)
    assert mapping({1: 2}) == {"1": 2}
    assert listed("ab") == [] == listed({"a": 1})
    assert [finite(each) for each in (True, 10**400)] == [None, None]
    assert [finite(each) for each in (0.5, 2, "2", [1], math.inf, None)] == [0.5, 2.0, None, None, None, None]
    assert float_of(10**400) == math.inf
    assert float_of(-(10**400)) == -math.inf


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (0.30370574, "0.3037"),
        (12345.678912, "12345.679"),
        (3000, "3000"),
        (10**400, "inf"),
        (True, "yes"),
        (None, "none"),
        ([], "none"),
        ({}, "none"),
        ([0.0, "b"], "0, b"),
        ({"a": 1, "b": 0.25}, "a 1, b 0.25"),
        ({"a": [1, 2], "b": 3}, "a: 1, 2; b: 3"),
        ("<b>", "<b>"),
    ],
)
def test_values_in_words(value, words):
    assert shown(value) == words


def test_cases_are_held_out_rows_where_as_many_were_kept_aside(tmp_path):
    card = recorded_runs.CARD | {"kept_aside": 2, "cases": 2}
    assert material(recorded_runs.alterations(tmp_path / "held", card=card)).withholds
    assert not material(tmp_path / "held", rows=True).withholds
    given = recorded_runs.CARD | {"kept_aside": 0, "cases": 2}
    assert not material(recorded_runs.alterations(tmp_path / "given", card=given)).withholds
    assert not material(recorded_runs.trials(tmp_path / "trials")).withholds
