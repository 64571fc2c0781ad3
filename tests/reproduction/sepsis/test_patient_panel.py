import pytest

from rehearsal_torch.reporting.style import Dose, Wording, drawing
from reproduction.sepsis.patient_panel import changed, draw
from tests.conftest import decision

WORDS = Wording("SOFA", -1.0, "points", "4 h", (Dose("V", "vasopressor", ""), Dose("F", "fluids", "")))


def test_changed_doses_are_told_with_their_direction():
    # Step 1: vasopressor .04 to .113, fluids 279 to 80.
    assert changed(decision(0)) == [(1, 0, True), (1, 1, False)]


def test_both_courses_and_an_arrow_a_dose_are_drawn():
    one = decision(0)
    with drawing():
        (axes,) = draw(one, WORDS).axes
    observed, replayed = axes.lines[:2]
    assert list(observed.get_ydata()) == [12.5] * 4
    assert list(replayed.get_ydata()) == pytest.approx([12.5 * 0.98] * 4)
    arrows = [each for each in axes.texts if each.get_text() == ""]
    assert [each.xyann[1] < each.xy[1] for each in arrows] == [True, False], "up: a higher dose"
    assert [each.get_text() for each in axes.texts if each.get_text()] == ["V", "F"]
    assert axes.get_title() == "Patient stay-0: 2.0% better with at most 3 changed actions"
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("Time step (4 h each)", "SOFA (points)")
    assert axes.lines[2].get_label() == "V: vasopressor changed (arrow up: more)"


def test_nothing_changed_draws_no_arrow():
    one = decision(0)
    one["trajectory"]["doses"] = one["trajectory"]["observed_doses"]
    with drawing():
        (axes,) = draw(one, Wording()).axes
    assert list(axes.texts) == []
    assert len(axes.lines) == 2


def test_of_levels_the_legend_says_which_way_is_up():
    one = decision(0)
    one["trajectory"] |= {"observed_doses": [[0.0, 0.0]], "doses": [[2.0, 1.0]]}
    doses = (Dose("S", "service", "", ("none", "minor", "major"), "towards major"), Dose("L", "load", ""))
    with drawing():
        (axes,) = draw(one, Wording(doses=doses)).axes
    assert [line.get_label() for line in axes.lines[2:]] == [
        "S: service changed (arrow up: towards major)",
        "L: load changed (arrow up: more)",
    ]
