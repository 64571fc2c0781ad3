"""Which set to alter: the predictive probability is not taken in by a badly estimated effect."""

import numpy as np
import pytest
import torch

from rehearsal_torch.objectives.gaussian_success import GaussianSuccess
from rehearsal_torch.search.alterations.projected_newton import ProjectionNewton
from rehearsal_torch.surrogates.structural.linear_scm import LinearStructural
from rehearsal_torch.training.fit import fit
from tests.toys.linear_truth import chain


@pytest.mark.slow
def test_with_few_rows_predictive_choice_is_no_worse_and_its_value_less_exaggerated():
    world = chain(noise=0.2)
    some_cases, reached, said = world.cases(6), {True: [], False: []}, {True: [], False: []}
    for seed in range(20):
        model = fit(LinearStructural(world.task), world.table(15, seed))
        for predictive in (True, False):
            for one_case, decision in zip(
                some_cases,
                ProjectionNewton(predictive=predictive).batch_search(
                    GaussianSuccess.for_cases(model, some_cases)
                ),
                strict=True,
            ):
                set_ = (
                    {}
                    if decision.alteration is None
                    else dict(
                        zip(decision.alteration.names, decision.alteration.values.tolist(), strict=True)
                    )
                )
                reached[predictive].append(world.success(one_case, set_, 2000))
                said[predictive].append(np.exp(decision.value))
    assert np.mean(reached[True]) >= np.mean(reached[False]) - 0.005
    assert abs(np.mean(said[True]) - np.mean(reached[True])) < abs(
        np.mean(said[False]) - np.mean(reached[False])
    )


def test_without_draws_both_are_the_plug_in_choice():
    world = chain()
    model = fit(LinearStructural(world.task, draws=0), world.table(50))
    one, other = (
        ProjectionNewton(predictive=flag).batch_search(GaussianSuccess.for_cases(model, world.cases(5)))
        for flag in (True, False)
    )
    for mine, theirs in zip(one, other, strict=True):
        assert mine.value == theirs.value
        assert torch.equal(mine.alteration.values, theirs.alteration.values)
