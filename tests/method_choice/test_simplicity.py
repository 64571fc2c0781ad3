"""The order of simplicity names every method once."""

import pytest
import torch

from rehearsal_torch.cli.choice.applicable import rehearsing
from rehearsal_torch.cli.choice.preset import with_method
from rehearsal_torch.cli.run import build
from rehearsal_torch.method_choice.simplicity import NOT_COMPARED, PARTS, SIMPLEST_FIRST, place
from rehearsal_torch.training.fit import fit
from tests.cli.test_run import configured


def test_every_method_for_cases_of_a_table_is_compared_or_has_a_reason_why_not():
    assert sorted([*SIMPLEST_FIRST, *NOT_COMPARED]) == sorted(rehearsing())
    assert all((SIMPLEST_FIRST | NOT_COMPARED).values())


def test_linear_equations_stand_before_kernels_and_kernels_before_stacks():
    order = ["none", "care", "outcome_regression", "cme", "cme_stack"]
    assert sorted(order, key=place) == order
    with pytest.raises(ValueError, match=r"expected a method that is compared: none, care, .* got 'micns'"):
        place("micns")


@pytest.mark.slow
@pytest.mark.parametrize("name", PARTS)
def test_a_part_of_a_method_is_the_method_fitted_by_itself(name):
    config = configured("dataset=bank", "dataset.size.rows=60", "decision=care", "seed=4")
    alone = build(with_method(config, name))
    table = alone.problem.observations()
    whole, part = PARTS[name]
    within = fit(build(with_method(config, whole), alone.problem).surrogate(), table).get_submodule(part)
    own = fit(alone.surrogate(), table).state_dict()
    for key, value in within.state_dict().items():
        assert torch.equal(value, own[key]), key
