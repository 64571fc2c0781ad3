"""Curves, marks and bars are drawn at the recorded numbers, and nothing is drawn without a claim."""

import numpy as np
import pytest

from rehearsal_torch.data.codings.coding import Coding
from rehearsal_torch.reporting.claim_plot import draw
from rehearsal_torch.reporting.style import drawing

AT = np.linspace(0.0, 1.0, 11)


def rows(case="one", along="dose", slope=0.4, present=None, gap=(), at=AT):
    def row(series, x, *cells):
        names = ("point", "lower", "upper", "level")
        texts = ["" if cell is None else str(cell) for cell in cells] + [""] * (4 - len(cells))
        return {"case": case, "along": along, "series": series, "x": str(x)} | dict(
            zip(names, texts, strict=True)
        )

    points = [None if place in gap else 0.3 + slope * x for place, x in enumerate(at)]
    found = [
        row("claim", x, *(4 * [None] if point is None else [point, point - 0.1, point + 0.1, 0.95]))
        for x, point in zip(at, points, strict=True)
    ]
    found += [row("set", 0.8, 0.62, 0.52, 0.72, 0.95), row("before", 0.8, 0.35)]
    found += [] if present is None else [row("present", present)]
    counts = (8, None, 0, 16)
    edges = np.linspace(0, 1, 5)
    found += [row("observations", edges[i], count, edges[i], edges[i + 1]) for i, count in enumerate(counts)]
    return found


def drawn(*given, units=None):
    with drawing():
        return draw([row for part in given for row in part], units)


def test_a_panel_shows_the_claim_its_interval_and_the_marks():
    (axes,) = drawn(rows(present=0.2), units={"dose": "mg"}).axes
    lines = {each.get_label(): each for each in axes.lines}
    curve = lines["claim, the others as recommended"]
    assert curve.get_ydata() == pytest.approx(0.3 + 0.4 * AT)
    band = axes.collections[0]
    assert band.get_label() == "95% interval"
    heights = band.get_paths()[0].vertices[:, 1]
    assert (heights.min(), heights.max()) == pytest.approx((0.2, 0.8))
    assert list(lines["recommended"].get_xdata()) == [0.8, 0.8]
    assert list(lines["present value"].get_xdata()) == [0.2, 0.2]
    assert list(lines["claim for present values"].get_ydata()) == [0.35, 0.35]
    assert (axes.get_xlabel(), axes.get_title()) == ("dose (mg)", "Case one")


def test_bars_are_shares_of_the_panel_and_few_rows_are_hatched():
    (axes,) = drawn(rows()).axes
    known, hidden = axes.containers
    assert [each.get_height() for each in known] == pytest.approx([0.1, 0.0, 0.0, 0.2])
    assert [(each.get_x(), each.get_hatch()) for each in hidden] == [(0.25, "////")]


def test_a_line_is_broken_where_there_is_no_number():
    (axes,) = drawn(rows(gap=(0, 10))).axes
    curve = next(each for each in axes.lines if each.get_label().startswith("claim, "))
    assert list(np.isnan(curve.get_ydata())).count(True) == 2
    shaded = [each for each in axes.patches if each.get_label() == "outside the data"]
    assert [(each.get_x(), each.get_x() + each.get_width()) for each in shaded] == [
        pytest.approx((0.0, 0.05)), pytest.approx((0.95, 1.0))
    ]  # fmt: skip


def test_the_decision_stands_on_its_curve():
    (axes,) = drawn(rows(gap=range(8))).axes
    (point,) = [each for each in axes.lines if each.get_marker() == "o"]
    assert (*point.get_xdata(), *point.get_ydata()) == (0.8, 0.62)
    assert axes.collections[-1].get_segments()[0].tolist() == [[0.8, 0.52], [0.8, 0.72]]


def test_a_decision_outside_the_data_has_no_point_and_no_interval():
    with drawing():
        (axes,) = draw(rows(gap=range(8, 11)), beyond=["one"]).axes
    assert "o" not in {each.get_marker() for each in axes.lines}
    assert [list(each.get_xdata()) for each in axes.lines if each.get_label() == "recommended"] == [
        [0.8, 0.8]
    ]
    assert [each.get_label() for each in axes.collections] == ["95% interval"]


def test_levels_have_bars_and_ticks_at_their_values():
    at = np.arange(7.0)
    kept = [row for row in rows(at=at, slope=0.1, gap=(0,)) if row["series"] != "observations"]
    bar = {"case": "one", "along": "dose", "series": "observations", "point": "9", "level": ""}
    bars = [bar | {"x": str(x), "lower": str(x - 0.4), "upper": str(x + 0.4)} for x in at]
    (axes,) = drawn(kept, bars).axes
    assert axes.get_xticks().tolist() == at.tolist()
    assert [each.get_x() + each.get_width() / 2 for each in axes.containers[0]] == pytest.approx(at)
    curve = next(each for each in axes.lines if each.get_label().startswith("claim, "))
    assert curve.get_marker() == "o", "of levels nothing lies between"
    (shaded,) = [each for each in axes.patches if each.get_label() == "outside the data"]
    assert (shaded.get_x(), shaded.get_width()) == (-0.5, 1.0)
    many = [bar | {"x": str(x), "lower": str(x - 0.4), "upper": str(x + 0.4)} for x in range(20)]
    assert drawn(kept, many).axes[0].get_xticks().tolist() == list(range(0, 20, 3))


def test_cases_have_a_row_and_the_actions_that_matter_most_a_panel():
    slopes = {"a": 0.1, "b": 0.5, "c": 0.3, "d": 0.2}
    first = [rows(along=name, slope=slope) for name, slope in slopes.items()]
    figure = drawn(*first, rows("two", "b"))
    seen = [axes for axes in figure.axes if axes.get_visible()]
    assert [(axes.get_title(), axes.get_xlabel()) for axes in seen] == [
        ("Case one", "b"), ("Case one", "c"), ("Case one", "d"), ("Case two", "b")
    ]  # fmt: skip


def test_nothing_is_drawn_without_a_claim():
    assert drawn() is None
    assert drawn(rows(gap=range(11))) is None


def test_a_long_name_is_cut_and_a_dollar_is_no_formula():
    (axes,) = drawn(rows(case="$a$ " + "x" * 60)).axes
    assert axes.get_title().startswith(r"Case \$a\$ ")
    assert axes.get_title().endswith("...")


def test_classes_have_no_order_and_so_no_line_joins_them():
    found = rows(along="drug", at=np.array([0.0, 1.0, 2.0]))
    for coding, style in (
        (Coding("drug", ("A", "B", "C"), "A"), "None"),
        (Coding("drug", ("low", "medium", "high")), "-"),
    ):
        with drawing():
            (axes,) = draw(found, None, {"drug": coding}).axes
        (curve,) = [each for each in axes.lines if each.get_label().startswith("claim, ")]
        assert (curve.get_linestyle(), curve.get_marker()) == (style, "o")
        assert [each.get_text() for each in axes.get_xticklabels()] == list(coding.levels)
