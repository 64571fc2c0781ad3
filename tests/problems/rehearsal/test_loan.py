"""BankExp: reference values, and the printed equations simulated anew."""

import numpy as np
import pytest
import torch

from rehearsal_torch.problems.rehearsal.loan import Loan

DRAWS = 400_000


def idle(given):
    return given.new_empty(len(given), 0)


def column(*values):
    return torch.tensor([values], dtype=torch.float64)


def evenly(count):
    return (torch.arange(count, dtype=torch.float64).unsqueeze(-1) + 0.5) / count


def square(count):
    return torch.cartesian_prod(evenly(count)[:, 0], evenly(count)[:, 0])


@pytest.mark.slow
@pytest.mark.parametrize(("noise", "no_action", "best"), [("std", 0.559, 0.8447), ("variance", 0.382, 0.570)])
def test_the_bank(noise, no_action, best):
    world, given = Loan(noise), square(20)
    # The references do not say over how many contexts they average; ours are a grid over all of them (std:
    # .848 against .8447).
    assert float(world.probability(given, (), idle(given)).mean()) == pytest.approx(no_action, abs=0.012)
    assert float(world.optimal(given, ["A2"])[1].mean()) == pytest.approx(best, abs=0.005)


def test_the_bank_by_debt():
    given = torch.tensor([[0.5, 0.0], [0.5, 0.5], [0.5, 1.0]], dtype=torch.float64)
    values, best = Loan().optimal(given, ["A2"])
    assert best.tolist() == pytest.approx([0.8125, 0.8497, 0.8812], abs=0.003)
    assert values[1].item() == pytest.approx(0.29, abs=0.02)


def test_the_bank_simulated_anew():
    random = np.random.default_rng(0)
    u = random.beta(2, 2, DRAWS)
    e1, e2, e3 = random.standard_normal((3, DRAWS))
    for rate, names in ((None, ()), (0.35, ["A2"])):
        a = u + 0.5 * 0.3 + 0.5 * 0.8 - 0.5 + 0.2 * e1 if rate is None else rate
        y1 = 1 / (1 + np.exp(-(2 * u**1.1 - 1.5 * a + 0.2 * 0.8 + 0.4))) + 0.05 * e2
        y2 = 0.8 * a + 0.5 * u + 0.05 * e3
        value = column() if rate is None else column(rate)
        assert float(Loan().probability(column(0.3, 0.8), names, value.reshape(1, -1))) == pytest.approx(
            ((y1 >= 0.6) & (y2 >= 0.3)).mean(), abs=0.004
        )
