import pytest

from rehearsal_torch.reporting.figures.improvement_distribution import draw
from rehearsal_torch.reporting.style import drawing


def test_several_groups_share_their_bins_and_empty_ones_are_left_out():
    with drawing():
        figure = draw({"one": [0.0, 0.12], "two": [0.24, 0.24, 0.06], "none": []})
    (axes,) = figure.axes
    assert [line.get_label().partition(":")[0] for line in axes.lines] == ["one", "two"]
    left, right = (patch.get_xy()[:, 0] for patch in axes.patches)
    assert left.min() == right.min() == pytest.approx(0.0)
    assert left.max() == right.max() == pytest.approx(24.0)
    assert [patch.get_xy()[:, 1].max() for patch in axes.patches] == [1.0, 2.0]
