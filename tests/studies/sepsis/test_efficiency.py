"""How fast the searches are: settings drawn side by side."""

import pytest

from rehearsal_torch.evaluation.bootstrap import Interval
from rehearsal_torch.reporting.style import drawing, save
from rehearsal_torch.studies.sepsis import efficiency
from rehearsal_torch.studies.sepsis.efficiency import Setting
from rehearsal_torch.studies.sepsis.episode_rows import Point
from tests.toys.drawn import texts


def point(x, mean, proven=1.0):
    interval = Interval(mean, 0.9 * mean, 1.1 * mean, 5)
    return Point(x, interval, interval, interval, proven)


@pytest.mark.slow
def test_censored_settings_are_drawn_open_and_say_how_much_is_proven(tmp_path):
    lines = {"A*": [point(1, 1.2), point(2, 1.4, 0.75)], "other": [point(1, 1.1), point(2, 1.1)]}
    with drawing():
        figure = efficiency.draw([Setting("k", lines)])
        shown = texts(save(figure, tmp_path, "x")[1])
    assert shown.count("75% proven") == 2
    assert "Effective branching factor" in shown
    assert "Runtime (s an episode)" in shown
    faces = [line.get_markerfacecolor() for line in figure.axes[0].get_lines() if len(line.get_xdata()) == 1]
    assert faces == ["white"]
