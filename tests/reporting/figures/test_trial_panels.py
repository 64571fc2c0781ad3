"""Trials: curves of the best so far, averages and regret."""

import numpy as np

from rehearsal_torch.reporting.figures import trial_panels
from rehearsal_torch.reporting.style import drawing
from tests.toys.trial_lines import rows


def test_an_average_ends_where_the_shortest_seed_does():
    rounds, means, errors = trial_panels.by_round([*rows(), *rows(seed=1)[:2]], "expected", running=True)
    assert rounds.tolist() == [1, 2]
    assert means.tolist() == [2.0, 1.25]
    assert errors.tolist() == [0.0, 0.0]


def test_figures_show_every_method_beside_the_optimum():
    with drawing():
        figure = trial_panels.draw({"p": {"m": rows(), "n": rows(method="n", seed=1)}})
    best, average, regret = figure.axes
    assert [each.get_label() for each in best.lines] == ["m", "n", "best possible"]
    assert np.allclose(best.lines[-1].get_ydata(), 10.0)
    assert regret.get_yscale() == "log"
    assert np.allclose(regret.lines[0].get_ydata(), [7.0, 4.0, 2.0])
    assert len(average.lines) == 3
