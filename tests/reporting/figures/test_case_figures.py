import math

import numpy as np
import pytest

from rehearsal_torch.data.codings.coding import Coding
from rehearsal_torch.reporting.decision_frame import decision_frame
from rehearsal_torch.reporting.figure_style import CHANCES, drawing, panels
from rehearsal_torch.reporting.figures.case_figures import (
    NAMED,
    draw_answer,
    draw_calibration,
    draw_claims,
    draw_decisions_into,
    draw_overturning,
    draw_probabilities,
)
from tests.reporting.test_decision_frame import ACTED, NONE, OF


def drawn(lines, of=OF):
    with drawing():
        figure, ((axes,),) = panels()
        draw_decisions_into(axes, decision_frame(lines), of)
        figure.canvas.draw()
    return axes


def test_claims_intervals_and_no_action_stand_at_their_cases():
    refused = NONE | {"reason": {"kind": "no_path", "text": "no path"}, "identity": "$e$"}
    axes = drawn([NONE, ACTED, refused])
    lines = {each.get_label(): each for each in axes.lines}
    assert lines["after the alteration"].get_xydata().tolist() == [[1, 0.8]]
    assert lines["no action"].get_xydata().tolist() == [[0, 0.4], [1, 0.5], [2, 0.4]]
    assert lines["refused"].get_xydata().tolist() == [[2, 0.4]]
    (bars,) = axes.collections
    assert [each.tolist() for each in bars.get_segments()] == [[[1, 0.6], [1, 0.9]]]
    assert bars.get_label() == "95% interval"
    assert [each.get_text() for each in axes.get_xticklabels()] == ["bob", "ann", r"\$e\$"]
    assert axes.get_ylabel() == "Estimated probability of a\ndesired outcome"
    assert axes.get_ylim() == pytest.approx(CHANCES)


def test_many_cases_are_not_named_and_returns_have_an_axis_of_their_own():
    assert "ann" not in [each.get_text() for each in drawn([ACTED] * (NAMED + 1)).get_xticklabels()]
    axes = drawn([ACTED | {"estimate": {"point": -30.0, "of": "return"}}], "return")
    assert axes.get_ylim()[0] < -30
    assert not axes.collections


def test_present_values_stand_where_they_are_known():
    against = ACTED | {"present": {"dose": 1.0}, "unchanged": {"point": 0.45, "of": OF}}
    lines = {each.get_label(): each for each in drawn([NONE, against]).lines}
    assert lines["no action"].get_xydata().tolist() == [[0, 0.4]]
    assert lines["present values"].get_xydata().tolist() == [[1, 0.45]]


def test_a_case_outside_the_data_is_shaded_and_has_no_mark():
    far = ACTED | {"identity": "far", "findings": [{"kind": "support", "text": "few rows are like this"}]}
    axes = drawn([ACTED, far])
    assert {tuple(each) for line in axes.lines for each in line.get_xydata()} == {(0, 0.8), (0, 0.5)}
    (shaded,) = [each for each in axes.patches if each.get_label() == "outside the data"]
    assert (shaded.get_x(), shaded.get_width()) == (0.5, 1.0)


def answer(ends, gain, chance=True):
    with drawing():
        figure = draw_answer(ends, gain, "Estimated chance", ("before", "after"), chance)
        figure.draw_without_rendering()
    return figure.axes


def test_the_answer_has_both_ends_in_per_cent_and_its_difference_beside_zero():
    above, below = answer((0.0, 1.0), (0.25, 1.0))
    assert [list(line.get_xdata()) for line in above.lines] == [[0, 100], [0], [100]]
    assert above.get_xlim() == (-3, 103), "no point is cut at the frame"
    assert [text.get_text() for text in above.texts] == ["before 0.0 %", "after 100.0 %"]
    assert below.collections[0].get_segments()[0].tolist() == [[25, 0], [100, 0]]
    assert list(below.lines[0].get_xdata()) == [0, 0]
    (alone,) = answer((20.0, 5.0), None, chance=False)
    low, high = alone.get_xlim()
    assert low < 5 < 20 < high
    assert [text.get_ha() for text in alone.texts] == ["left", "right"], "names stand outside"


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


def claims_drawn(*given, **named):
    with drawing():
        return draw_claims([row for part in given for row in part], **named)


def test_a_panel_shows_the_claim_its_interval_and_the_marks():
    (axes,) = claims_drawn(rows(present=0.2), units={"dose": "mg"}).axes
    lines = {each.get_label(): each for each in axes.lines}
    curve = lines["estimate, the others as recommended"]
    assert curve.get_ydata() == pytest.approx(0.3 + 0.4 * AT)
    band = axes.collections[0]
    assert band.get_label() == "95% interval"
    heights = band.get_paths()[0].vertices[:, 1]
    assert (heights.min(), heights.max()) == pytest.approx((0.2, 0.8))
    assert list(lines["recommended"].get_xdata()) == [0.8, 0.8]
    assert list(lines["present value"].get_xdata()) == [0.2, 0.2]
    assert list(lines["estimate for present values"].get_ydata()) == [0.35, 0.35]
    assert (axes.get_xlabel(), axes.get_title()) == ("dose (mg)", "Case one")


def test_a_decision_outside_the_data_has_no_point_and_no_interval():
    with drawing():
        (axes,) = draw_claims(rows(gap=range(8, 11)), beyond=["one"]).axes
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
    (axes,) = claims_drawn(kept, bars).axes
    assert axes.get_xticks().tolist() == at.tolist()
    assert [each.get_x() + each.get_width() / 2 for each in axes.containers[0]] == pytest.approx(at)
    curve = next(each for each in axes.lines if each.get_label().startswith("estimate, "))
    assert curve.get_marker() == "o", "of levels nothing lies between"
    (shaded,) = [each for each in axes.patches if each.get_label() == "outside the data"]
    assert (shaded.get_x(), shaded.get_width()) == (-0.5, 1.0)
    many = [bar | {"x": str(x), "lower": str(x - 0.4), "upper": str(x + 0.4)} for x in range(20)]
    assert claims_drawn(kept, many).axes[0].get_xticks().tolist() == list(range(0, 20, 3))


def test_cases_have_a_row_and_the_actions_that_matter_most_a_panel():
    slopes = {"a": 0.1, "b": 0.5, "c": 0.3, "d": 0.2}
    first = [rows(along=name, slope=slope) for name, slope in slopes.items()]
    figure = claims_drawn(*first, rows("two", "b"))
    seen = [axes for axes in figure.axes if axes.get_visible()]
    assert [(axes.get_title(), axes.get_xlabel()) for axes in seen] == [
        ("Case one: largest gain", "b"), ("Case one: largest gain", "c"), ("Case one: largest gain", "d"),
        ("Case two: smallest gain", "b"),
    ]  # fmt: skip


def test_nothing_is_drawn_without_a_claim():
    assert claims_drawn() is None
    assert claims_drawn(rows(gap=range(11))) is None


def test_a_long_name_is_cut_and_a_dollar_is_no_formula():
    (axes,) = claims_drawn(rows(case="$a$ " + "x" * 60)).axes
    assert axes.get_title().startswith(r"Case \$a\$ ")
    assert axes.get_title().endswith("...")


def test_nothing_lies_between_texts_and_so_no_line_joins_them():
    found = rows(along="drug", at=np.array([0.0, 1.0, 2.0]))
    for coding in (Coding("drug", ("A", "B", "C"), "A"), Coding("drug", ("low", "medium", "high"))):
        with drawing():
            (axes,) = draw_claims(found, codings={"drug": coding}).axes
        (curve,) = [each for each in axes.lines if each.get_label().startswith("estimate, ")]
        assert (curve.get_linestyle(), curve.get_marker()) == ("None", "o")
        assert [each.get_text() for each in axes.get_xticklabels()] == list(coding.levels)


def line(identity, lower, tipping, yardstick=4.0):
    return {
        "identity": identity,
        "alteration": {"a": 1.0},
        "estimate": {"point": 0.85, "lower": lower, "upper": 0.9, "level": 0.95},
        "baseline": {"point": 0.5},
        "sensitivity": {"tipping": tipping, "basis": "interval", "yardstick": yardstick, "covariate": "age"},
    }


def test_the_interval_widens_to_the_baseline_and_fewer_and_fewer_stand():
    lines = [line("0", 0.8, 2.5), line("1", 0.4, 1.0), line("2", 0.84, 3.125)]
    with drawing():
        left, right = draw_overturning({"m": lines}).axes
    lower, upper, nothing, tipping, mark = left.lines
    strengths = lower.get_xdata()
    assert strengths[[0, -1]] == pytest.approx([1.0, 4.8])
    assert lower.get_ydata()[0] == pytest.approx(0.8)
    assert upper.get_ydata()[0] == pytest.approx(0.9)
    assert np.interp(2.5, strengths, lower.get_ydata()) == pytest.approx(0.5, abs=2e-3)
    assert nothing.get_ydata() == [0.5, 0.5]
    assert tipping.get_xdata() == [2.5, 2.5]
    assert mark.get_label() == "as strong as age (4.00)"
    assert left.get_title() == "The median recommendation, case 0"
    shares = right.lines[0]
    assert np.interp([1.01, 2.6, 4.0], shares.get_xdata(), shares.get_ydata()) == pytest.approx(
        [2 / 3, 1 / 3, 0.0], abs=0.02
    )
    assert right.get_xscale() == "log"


def test_what_nothing_overturns_and_points_without_an_interval_are_drawn():
    alone = line("0", None, None, None) | {"estimate": {"point": 0.8}}
    with drawing():
        left, right = draw_overturning({"m": [alone]}).axes
    assert left.lines[0].get_ydata()[0] == left.lines[1].get_ydata()[0] == pytest.approx(0.8)
    assert [each.get_label() for each in left.lines[2:]] == ["no action"]
    assert right.lines[0].get_ydata().tolist() == [1.0] * 200
    assert right.get_title() == "Of 1 recommendation, the share that stands"


def test_beside_present_values_both_bounds_meet_at_the_tipping_strength():
    # 1 - G (1 - p) = 1 - (1 - q) / G for q = .4 and p = .8, q and the lower end of the difference.
    against = line("0", 0.7, 3**0.5) | {
        "unchanged": {"point": 0.4},
        "gain": {"point": 0.45, "lower": 0.4, "upper": 0.5},
    }
    with drawing():
        left = draw_overturning({"m": [against]}).axes[0]
    lower, _, present, tipping, _ = left.lines
    assert present.get_label() == "present values, at most"
    where = float(tipping.get_xdata()[0])
    low, high = (np.interp(where, each.get_xdata(), each.get_ydata()) for each in (lower, present))
    assert lower.get_ydata()[0] == pytest.approx(0.8)
    assert low == pytest.approx(high, abs=0.01)


def scored(probability, oracle, no_action, acted=True):
    score = {"probability": probability, "oracle": oracle, "no_action": no_action}
    return {"score": score, "alteration": {"a": 1.0} if acted else None}


def test_contexts_are_ordered_by_what_is_possible():
    some = [scored(0.6, 0.9, 0.2), scored(0.1, 0.5, 0.1, acted=False), scored(0.4, 0.5, 0.3)]
    with drawing():
        figure = draw_probabilities({"m": some})
    (axes,) = figure.axes
    best, nothing, acted, declined = axes.lines
    assert list(best.get_ydata()) == [0.5, 0.5, 0.9]
    assert list(nothing.get_ydata()) == [0.1, 0.3, 0.2]
    assert (list(acted.get_xdata()), list(acted.get_ydata())) == ([2, 3], [0.4, 0.6])
    assert (list(declined.get_xdata()), list(declined.get_ydata())) == ([1], [0.1])
    assert axes.get_title() == "m\nmean 0.367, best 0.633, no action 0.200"
    assert axes.get_ylabel() == "True probability of a desired outcome"
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == [
        "best possible",
        "no action",
        "decision",
        "decision without alteration",
    ]


def test_a_method_that_never_declined_has_no_open_points():
    with drawing():
        figure = draw_probabilities({"m": [scored(0.6, 0.9, 0.2)], "n": [scored(0.5, 0.9, 0.2)]})
    assert [len(axes.lines) for axes in figure.axes] == [3, 3]
    assert figure.axes[1].get_title().startswith("n\nmean 0.500")
    assert figure.axes[0].get_ylim() == pytest.approx(CHANCES)


def claim_row(estimate, auf, lower=math.nan, upper=math.nan):
    return {"estimate": estimate, "auf": auf, "lower": lower, "upper": upper}


def test_claims_stand_beside_truths_and_intervals_that_hold_are_counted():
    rows = [
        claim_row(0.6, 0.5, 0.4, 0.7),
        claim_row(0.8, 0.9, 0.7, 0.85),
        claim_row(0.7, math.nan),
        claim_row(0.4, 0.4),
    ]
    with drawing():
        (axes,) = draw_calibration({"m": rows}).axes
    points, equal = axes.lines
    assert points.get_xdata() == pytest.approx([0.6, 0.8, 0.4])
    assert points.get_ydata() == pytest.approx([0.5, 0.9, 0.4])
    assert equal.get_label() == "estimate = truth"
    (bars,) = axes.collections
    assert [segment.tolist() for segment in bars.get_segments()] == [
        [[0.4, 0.5], [0.7, 0.5]],
        [[0.7, 0.9], [0.85, 0.9]],
    ]
    assert axes.get_title() == "m\nestimated 0.600, true 0.600\ninterval holds for 50%"
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("Estimated probability", "True probability")


def test_a_method_without_claims_says_so_and_places_without_a_method_are_hidden():
    with drawing():
        axes = draw_calibration({name: [claim_row(math.nan, 0.5)] for name in "abcd"}).axes
    assert [each.get_visible() for each in axes] == [True] * 4 + [False] * 2
    assert axes[0].get_title() == "a\nno estimates"


def test_both_intervals_are_drawn_and_counted_apart():
    ends = {"truth_lower": 0.3, "truth_upper": 0.8}
    rows = [claim_row(0.6, 0.5, 0.55, 0.7) | ends, claim_row(0.8, 0.9, 0.7, 0.95) | ends]
    with drawing():
        (axes,) = draw_calibration({"m": rows}).axes
    narrow, wide = axes.collections
    assert narrow.get_linewidths()[0] > wide.get_linewidths()[0]
    assert [segment[:, 0].tolist() for segment in wide.get_segments()] == [[0.3, 0.8]] * 2
    assert axes.get_title().splitlines()[2:] == [
        "truth inside the interval of the posterior mean 50%,",
        "of the truth 50%",
    ]
