import pytest

from rehearsal_torch.reporting.figures.effort import draw
from rehearsal_torch.reporting.style import drawing


def decided(expanded, seconds, proven=True):
    return {"trace": {"expanded": expanded, "proven": proven}, "seconds": seconds}


def test_steps_rise_at_proven_episodes_to_the_share_that_is_proven():
    groups = {"A*": [decided(30, 2.0), decided(10, 0.5), decided(99, 9.0, proven=False), decided(20, 1.0)]}
    with drawing():
        figure = draw(groups)
    nodes, seconds = figure.axes
    (line,) = nodes.lines
    assert list(line.get_xdata()) == [10.0, 20.0, 30.0]
    assert line.get_ydata() == pytest.approx([25.0, 50.0, 75.0])
    assert line.get_label() == "A* (75% proven)"
    assert list(seconds.lines[0].get_xdata()) == [0.5, 1.0, 2.0]
    assert (nodes.get_xlabel(), seconds.get_xlabel()) == ("Steps of the search", "Time (s)")
    assert nodes.get_xscale() == seconds.get_xscale() == "log"


def test_nothing_proven_draws_no_step_and_zero_nodes_stand_on_the_scale():
    with drawing():
        figure = draw({"none": [decided(5, 1.0, proven=False)], "zero": [decided(0, 1.0)]})
    none, zero = figure.axes[0].lines
    assert (list(none.get_xdata()), none.get_label()) == ([], "none (0% proven)")
    assert list(zero.get_xdata()) == [1e-4]
    assert zero.get_marker() == "o", "a single step would not be seen"
