import pytest

from rehearsal_torch.reporting.figures.true_probability import draw
from rehearsal_torch.reporting.style import drawing


def decided(probability, oracle, no_action, acted=True):
    score = {"probability": probability, "oracle": oracle, "no_action": no_action}
    return {"score": score, "alteration": {"a": 1.0} if acted else None}


def test_contexts_are_ordered_by_what_is_possible():
    some = [decided(0.6, 0.9, 0.2), decided(0.1, 0.5, 0.1, acted=False), decided(0.4, 0.5, 0.3)]
    with drawing():
        figure = draw({"m": some})
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
        figure = draw({"m": [decided(0.6, 0.9, 0.2)], "n": [decided(0.5, 0.9, 0.2)]})
    assert [len(axes.lines) for axes in figure.axes] == [3, 3]
    assert figure.axes[1].get_title().startswith("n\nmean 0.500")
    assert figure.axes[0].get_ylim() == pytest.approx((-0.02, 1.02))
