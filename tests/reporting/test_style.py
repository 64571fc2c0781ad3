import matplotlib
import pytest

from rehearsal_torch.files import writing
from rehearsal_torch.reporting.style import (
    COLOURS,
    MARKERS,
    Dose,
    Wording,
    drawing,
    panels,
    save,
    wording,
)


def test_settings_hold_within_the_block_alone():
    before = matplotlib.rcParams["svg.fonttype"], matplotlib.rcParams["legend.frameon"]
    with drawing():
        assert (matplotlib.rcParams["svg.fonttype"], matplotlib.rcParams["legend.frameon"]) == ("none", False)
    assert (matplotlib.rcParams["svg.fonttype"], matplotlib.rcParams["legend.frameon"]) == before


def test_a_figure_is_saved_to_the_same_bytes_every_time(tmp_path):
    def saved(name):
        with drawing():
            figure, [[axes]] = panels(width=2, height=2)
            axes.plot([0, 1], [1, 0])
            return [path.read_bytes() for path in save(figure, tmp_path / name, "figure")]

    assert saved("one") == saved("two")
    assert sorted(path.name for path in (tmp_path / "one").iterdir()) == ["figure.png", "figure.svg"]


@pytest.mark.parametrize("weights", [{"SOFA": -1, "GCS": 1}, {"SOFA": -2}, {"SOFA": "-1"}, None])
def test_other_rewards_have_neutral_words(weights):
    words = wording({"objective": {"reward": {"weights": weights}}})
    assert words == Wording()
    assert (words.total, words.time) == ("Cumulative reward", "Time step")


def test_fifty_lines_have_different_colours_or_markers():
    pairs = {(COLOURS[index % len(COLOURS)], MARKERS[index % len(MARKERS)]) for index in range(50)}
    assert len(pairs) == 50


MACHINES = {
    "unit": "machine",
    "units": "machines",
    "step": "week",
    "units_of": {"wear": "%", "oil": "ml"},
    "actions": ["service", "speed", "oil"],
}
SEPSIS = {
    "surrogate": {"doses": ["max_dose_vaso"]},
    "objective": {"reward": {"components": {}, "name": "organ SOFA"}},
}


def test_a_data_set_says_what_its_units_and_actions_are_called():
    words = wording(SEPSIS, {**MACHINES, "reward": {"weights": {"wear": -1}, "components": None}})
    assert (words.subject, words.subjects, words.actions) == ("machine", "machines", "actions")
    assert (words.variable, words.sign, words.level) == ("wear", -1.0, "wear (%)")
    assert words.time == "Time step (one week each)"
    assert words.file == "machine"
    # Letters differ, where names begin alike.
    assert [each.letter for each in words.doses] == ["S", "P", "O"]
    # A level without a name may count down.
    assert [each.upwards for each in words.doses] == ["higher value", "higher value", "more"]
    assert words.doses[2] == Dose("O", "oil", "ml")
    assert words.dose(3).name == "action 4"
    assert words.an_action == "an action"
    assert words.titled("7") == "Machine 7"
    assert wording(SEPSIS).subject == "patient"
    assert wording(SEPSIS).doses == (Dose("V", "vasopressor", "mcg/kg/min"),)


@pytest.mark.parametrize("odd", [3, "text", [1], {"service": 2}])
def test_edited_words_of_another_form_are_left_out(odd):
    words = wording(SEPSIS, {**MACHINES, "units_of": odd, "levels": odd, "actions": ["service", "oil"]})
    assert [each.name for each in words.doses] == ["service", "oil"]
    assert words.doses[0].levels == ()
    fallen_back = wording(SEPSIS, {**MACHINES, "actions": 3})
    assert [each.name for each in fallen_back.doses] == ["max_dose_vaso"]


def test_a_figure_that_finds_no_space_leaves_the_old_one(tmp_path, monkeypatch):
    with drawing():
        files = save(panels(1, 1)[0], tmp_path, "one")
        before = [file.read_bytes() for file in files]

        def full(handle):
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(writing.os, "fsync", full)
        with pytest.raises(OSError, match="No space"):
            save(panels(2, 1)[0], tmp_path, "one")
    assert [file.read_bytes() for file in files] == before
    assert sorted(tmp_path.iterdir()) == sorted(files)
