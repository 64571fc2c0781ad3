import numpy as np
import pytest

from rehearsal_torch.reporting.figures.overturning_strength import draw
from rehearsal_torch.reporting.style import drawing


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
        left, right = draw({"m": lines}).axes
    lower, upper, nothing, tipping, mark = left.lines
    strengths = lower.get_xdata()
    assert strengths[[0, -1]] == pytest.approx([1.0, 4.8])
    assert lower.get_ydata()[0] == pytest.approx(0.8)
    assert upper.get_ydata()[0] == pytest.approx(0.9)
    assert np.interp(2.5, strengths, lower.get_ydata()) == pytest.approx(0.5, abs=2e-3)
    assert nothing.get_ydata() == [0.5, 0.5]
    assert tipping.get_xdata() == [2.5, 2.5]
    assert mark.get_label() == "as strong as age (4.00)"
    assert left.get_title() == "m: case 0"
    shares = right.lines[0]
    assert np.interp([1.01, 2.6, 4.0], shares.get_xdata(), shares.get_ydata()) == pytest.approx(
        [2 / 3, 1 / 3, 0.0], abs=0.02
    )
    assert right.get_xscale() == "log"


def test_what_nothing_overturns_and_points_without_an_interval_are_drawn():
    alone = line("0", None, None, None) | {"estimate": {"point": 0.8}}
    with drawing():
        left, right = draw({"m": [alone]}).axes
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
        left = draw({"m": [against]}).axes[0]
    lower, _, present, tipping, _ = left.lines
    assert present.get_label() == "present values, at most"
    where = float(tipping.get_xdata()[0])
    low, high = (np.interp(where, each.get_xdata(), each.get_ydata()) for each in (lower, present))
    assert lower.get_ydata()[0] == pytest.approx(0.8)
    assert low == pytest.approx(high, abs=0.01)


EVEN = "Even without a hidden common cause,"
FAR = "takes a strength of at least 5,000, which is beyond this axis."


@pytest.mark.parametrize(
    ("tippings", "said"),
    [
        ([None], "No hidden common cause can overturn it."),
        ([None, None], "No hidden common cause can overturn any of them."),
        ([5000.0, None], f"Overturning any of them {FAR}"),
        ([5000.0], "Overturning it takes a strength of 5,000, which is beyond this axis."),
        ([1.0], f"{EVEN} it may be no better than no action."),
        ([1.0, 1.0], f"{EVEN} all of them may be no better than no action."),
        ([1.0, 1.0, None], f"{EVEN} 2 of 3 may be no better than no action; no hidden common cause can "
         "overturn the other."),
        ([1.0, 5000.0, None], f"{EVEN} 1 of 3 may be no better than no action; overturning the others {FAR}"),
        ([1.0, 2.5], ""),
    ],
)  # fmt: skip
def test_a_share_that_no_strength_changes_says_why_in_the_panel(tippings, said):
    lines = [line(str(place), 0.8, each, None) for place, each in enumerate(tippings)]
    for each in lines:
        del each["sensitivity"]["covariate"]
    with drawing():
        right = draw({"m": lines}).axes[1]
    assert [each.get_text().replace("\n", " ") for each in right.texts] == ([said] if said else [])
