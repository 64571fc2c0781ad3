import numpy as np

from rehearsal_torch.reporting.style import drawing
from rehearsal_torch.studies.auf.loan_panels import Loan, Selection, draw


def test_three_panels_show_two_estimates_and_their_outcomes():
    rates = np.array([0.1, 0.2, 0.3])
    outcomes = np.array([[0.7, 0.4], [0.5, 0.2]])
    nested = Selection(np.array([0.2, 0.8, 0.6]), 0.2, outcomes, 0.75)
    single = Selection(np.array([0.9, 0.4, 0.1]), 0.1, outcomes + 0.1, 0.25)
    with drawing():
        left, middle, right = draw(Loan(rates, rates * 2, outcomes - 0.1, 0.125, single, nested)).axes
    assert left.get_title() == "No action: 0.125 desired"
    assert right.get_title() == "Nested: 0.750 desired, single: 0.250"
    assert list(left.lines[0].get_xdata()) == list(outcomes[:, 0] - 0.1)
    curves = {line.get_label(): line for line in middle.lines}
    assert list(curves["truth"].get_ydata()) == list(rates * 2)
    assert list(curves["nested estimate"].get_ydata()) == [0.2, 0.8, 0.6]
    assert list(curves["single estimate"].get_ydata()) == [0.9, 0.4, 0.1]
    assert [line.get_xdata()[0] for line in middle.lines if len(line.get_xdata()) == 2] == [0.2, 0.1]
    assert (middle.get_xlabel(), middle.get_ylabel()) == ("Interest rate", "Probability of a desired outcome")
    for axes in (left, right):
        (corner,) = axes.patches
        assert corner.get_xy() == (0.6, 0.3)
        assert (axes.get_xlabel(), axes.get_ylabel()) == ("Repayment", "Return")
