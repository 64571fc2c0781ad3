"""Tiles: chances of classes, and which heat is best."""

import pytest
import torch

from rehearsal_torch.problems.rehearsal.classes import Classes
from rehearsal_torch.problems.world_size import SampleSize


def given(world):
    return world.given([world.case(index) for index in range(world.count())])


@pytest.mark.parametrize("name", ["heat", "grade"])
def test_chances_sum_to_one(name):
    values = {key: torch.linspace(-2, 2, 9).double() for key in ("clay", "moisture", "load", "heat")}
    chances = Classes.table.equations[name](values)
    assert chances.shape == (9, 4)
    assert float((chances.sum(-1) - 1).abs().max()) < 1e-12
    assert (chances > 0).all()


def test_the_chances_of_a_class_are_by_hand():
    values = {key: torch.tensor(0.0).double() for key in ("clay", "moisture", "load")}
    scores = torch.tensor([0.0, 0.0, 2 - 1.2 * 0.25, -1.2]).double()
    found = Classes.table.equations["grade"](values | {"heat": torch.tensor(3.0).double()})
    torch.testing.assert_close(found, torch.softmax(scores, 0))


def test_every_heat_is_best_somewhere_and_clay_wants_more():
    world = Classes(size=SampleSize(contexts=200))
    contexts = given(world)
    values = world.optimal(contexts, ("heat",))[0][:, 0]
    assert set(values.tolist()) == set(Classes.table.equations["heat"].levels)
    means = [float(contexts[values == heat, 0].mean()) for heat in Classes.table.equations["heat"].levels]
    assert means == sorted(means)


def test_rows_hold_the_four_classes():
    rows = Classes().observations()
    assert set(rows.columns(("grade",)).flatten().tolist()) == set(Classes.table.equations["grade"].levels)
    assert set(rows.columns(("heat",)).flatten().tolist()) == set(Classes.table.equations["heat"].levels)
