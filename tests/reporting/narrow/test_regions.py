"""Where the panels, the signs and the heading of a figure lie."""

from itertools import combinations

import pytest

from rehearsal_torch.reporting.figures import courses, recovery_panels
from rehearsal_torch.reporting.narrow import png
from rehearsal_torch.reporting.narrow.regions import regions
from rehearsal_torch.reporting.style import DOTS, Wording, drawing, panels, save
from tests.conftest import decision


def two_rows(**size):
    """Three panels of a grid of four, with a legend and a heading."""
    figure, grid = panels(2, 2, **size)
    for place, axes in enumerate([*grid[0], grid[1][0]]):
        axes.plot([0, 1], [0, 10**place], label="a line of $5")
        axes.set(title=f"panel {place}", xlabel="dose", ylabel=f"yield\nin {10**place}")
    grid[1][1].set_visible(False)
    figure.legend(*grid[0][0].get_legend_handles_labels(), loc="outside lower center")
    figure.suptitle("all\nof them")
    return figure


def inside(inner, outer):
    return inner[0] >= outer[0] and inner[1] >= outer[1] and inner[2] <= outer[2] and inner[3] <= outer[3]


def apart(one, other):
    return one[2] <= other[0] or other[2] <= one[0] or one[3] <= other[1] or other[3] <= one[1]


def test_panels_lie_apart_hold_their_texts_and_are_aligned():
    with drawing():
        figure = two_rows()
        found = regions(figure, DOTS)
        scale, high = DOTS / figure.dpi, figure.bbox.height
        texts = [
            [each.get_window_extent() for each in (axes.title, axes.xaxis.label, axes.yaxis.label)]
            for axes in figure.axes[:3]
        ]
    boxes = [panel["box"] for panel in found["panels"]]
    assert len(boxes) == 3
    assert all(apart(one, other) for one, other in combinations(boxes, 2))
    for box, inner in zip(boxes, texts, strict=True):
        for one in inner:
            assert inside(
                [one.x0 * scale, (high - one.y1) * scale, one.x1 * scale, (high - one.y0) * scale], box
            )
    first, second, third = boxes
    assert (first[1], first[3]) == (second[1], second[3]), "equal heights in a row"
    assert (first[0], first[2]) == (third[0], third[2]), "equal sides in a column"
    assert found["panels"][0]["says"] == "panel 0: yield in 1 over dose"
    assert found["heading"] == "all of them"


def test_a_sign_is_left_of_its_text_and_shows_its_line():
    with drawing():
        figure = two_rows()
        found = regions(figure, DOTS)
        (text,) = figure.legends[0].get_texts()
        scale = DOTS / figure.dpi
        begin = text.get_window_extent().x0 * scale
        handle = figure.legends[0].legend_handles[0].get_window_extent()
    (sign,) = found["signs"]
    assert sign["says"] == "a line of $5"
    left, top, right, bottom = sign["box"]
    assert left <= handle.x0 * scale
    assert handle.x1 * scale <= right <= begin
    assert top < (figure.bbox.height - handle.y0) * scale < bottom


def test_axes_over_one_time_are_one_panel():
    with drawing():
        figure = courses.draw(courses.chosen([decision(0), decision(1)]), 2, Wording())
        found = regions(figure, DOTS)
    assert len(figure.axes) > len(found["panels"]) == 2
    assert all("Time step" in panel["says"] for panel in found["panels"])
    assert [sign["says"] for sign in found["signs"]][:2] == ["as observed", "predicted under the changes"]


def test_one_panel_alone_and_colour_bars_are_not_cut():
    with drawing():
        assert regions(panels()[0], DOTS) == {}
        figure, [[one, _]] = panels(1, 2)
        assert len(regions(figure, DOTS)["panels"]) == 2
        figure.colorbar(one.imshow([[0, 1]]))
        assert regions(figure, DOTS) == {}


@pytest.mark.slow
def test_a_saved_picture_holds_its_record(tmp_path):
    rows = [
        {"node": node, "part": "fitted", "quantity": "noise", "value": value, "true": value}
        for node in ("X", "Y")
        for value in ("0.1", "0.2")
    ]
    with drawing():
        picture, _ = save(recovery_panels.figures(rows)["recovered"], tmp_path, "recovered")
    found = png.read(picture.read_bytes())
    assert [panel.says.partition(":")[0] for panel in found.panels] == ["X", "Y"]
    pieces = png.cut(picture.read_bytes(), found.panels)
    assert [png.size(piece)[0] for piece in pieces] == [panel.width for panel in found.panels]
