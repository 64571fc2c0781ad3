"""The drug: its effect by hand, and why the recorded rows mislead."""

import pytest
import torch
from torch.special import ndtr

from rehearsal_torch.problems.rehearsal.yes_no import YesNo
from rehearsal_torch.problems.world_size import SampleSize


@pytest.mark.parametrize(("age", "marker", "drug"), [(0.0, 0.0, 1.0), (1.0, -0.5, 0.0), (-0.4, 1.2, 1.0)])
def test_the_probability_is_the_sum_over_frailty(age, marker, drug):
    frail = ndtr(torch.tensor(0.5 * age - 0.3, dtype=torch.float64))
    latent = 0.3 - 0.4 * age + drug * (0.3 + 1.5 * marker - 0.8 * age)
    by_hand = sum(
        chance * ndtr(torch.tensor(latent - level, dtype=torch.float64))
        for level, chance in ((1, frail), (0, 1 - frail))
    )
    given = torch.tensor([[age, marker]], dtype=torch.float64)
    found = YesNo().probability(given, ("drug",), torch.tensor([[drug]], dtype=torch.float64))
    assert float(found) == pytest.approx(float(by_hand), abs=1e-12)


def test_the_drug_is_best_where_its_effect_is_positive():
    world = YesNo(size=SampleSize(contexts=40))
    given = world.given([world.case(index) for index in range(40)])
    values, _ = world.optimal(given, ("drug",))
    effect = 0.3 + 1.5 * given[:, 1] - 0.8 * given[:, 0]
    assert torch.equal(values[:, 0] == 1, effect > 0)


def test_those_with_the_drug_do_worse_than_it_makes_them():
    world = YesNo(size=SampleSize(rows=20_000))
    rows = world.observations()
    frail, drug = rows.columns(("frail",))[:, 0], rows.columns(("drug",))[:, 0]
    assert float(frail[drug == 1].mean()) > float(frail[drug == 0].mean()) + 0.2
    assert set(rows.columns(("well",)).flatten().tolist()) == {0.0, 1.0}
