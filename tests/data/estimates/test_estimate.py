"""Net values follow from probabilities: point and interval, scaled and shifted."""

import pytest

from rehearsal_torch.data.estimates.estimate import CHANCE, NET_VALUE, Estimate, net


def test_the_interval_of_a_net_value_is_that_of_the_probability():
    found = net(Estimate(0.6, CHANCE, 0.5, 0.75, 0.9), 200.0, 30.0, NET_VALUE)
    assert found == Estimate(90.0, "net value", 70.0, 120.0, 0.9)
    assert net(Estimate(0.6, CHANCE), 200.0, 30.0, NET_VALUE, less=40.0) == Estimate(50.0, "net value")


@pytest.mark.parametrize("missing", range(3))
def test_what_is_unknown_has_no_net_value(missing):
    parts = [Estimate(0.6, CHANCE), 200.0, 30.0]
    parts[missing] = None
    assert net(*parts, NET_VALUE) is None
