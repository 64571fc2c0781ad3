"""A moved model that gets further rows is fitted to them, or conditioned on them, as on the CPU, and stays on
its device.

As in test_devices.py, the device is a stand-in in memory, or a GPU with ``--device cuda``.
"""

from copy import deepcopy
from functools import partial
from typing import Any

import pytest
import torch

from rehearsal_torch.data.decision import Decision
from rehearsal_torch.data.imputation import ImputedTable
from rehearsal_torch.data.table import Table
from rehearsal_torch.data.trials.trial_log import TrialLog
from rehearsal_torch.decision_loop import rounds
from rehearsal_torch.objectives.gaussian_success import GaussianSuccess
from rehearsal_torch.objectives.imputation_success import ImputedSuccess
from rehearsal_torch.problems.cases.nonlinear_examples import Loan
from rehearsal_torch.problems.world_size import SampleSize
from rehearsal_torch.search.alterations.projected_ascent import ProjectedAscent
from rehearsal_torch.search.alterations.projected_newton import ProjectionNewton
from rehearsal_torch.search.trials.proposal import impute_pending
from rehearsal_torch.surrogates.imputation_ensemble import ImputedSurrogate
from rehearsal_torch.surrogates.structural.linear_scm import LinearStructural
from rehearsal_torch.training.gradient_descent import Descent
from rehearsal_torch.training.surrogate_fit import fit
from tests.contracts.test_devices import ROUND, same
from tests.toys.fitted_pair import PAIR, fitted_pair, pair_table
from tests.toys.linear_truth import chain
from tests.toys.place import Place
from tests.toys.rehearsal_methods import SURROGATES, learnt_here

pytestmark = pytest.mark.slow
WORLD = chain()
TABLE = WORLD.table(60)
DOUBLE = torch.float64


def states(one: torch.nn.Module, other: torch.nn.Module, place: Place) -> None:
    assert one.state_dict().keys() == other.state_dict().keys()
    for name, value in one.state_dict().items():
        there = other.state_dict()[name].cpu()
        assert there.dtype == value.dtype
        # A GPU need not be exact where a fit goes on.
        rough = place.value if place.kind == "second" else 1e-3
        assert torch.allclose(value, there, rtol=rough, atol=rough, equal_nan=True), name


def test_a_moved_causal_model_is_conditioned_and_refitted_as_on_the_cpu(place: Place):
    more, expected = pair_table(16) + pair_table(4, 7), deepcopy(fitted_pair())
    expected.condition(more)
    again = fit(deepcopy(expected), more)
    with place.entered() as device:
        other = deepcopy(fitted_pair()).to(device)
        other.condition(more)
        states(expected, other, place)
        assert fit(other, more) is other
        assert other.device.type == device.type
        states(again, other, place)


def test_a_moved_causal_model_heeds_pending_trials_as_on_the_cpu(place: Place):
    log, expected = TrialLog(PAIR), deepcopy(fitted_pair())
    for a, b, x, y in pair_table(8).values.tolist():
        log, _, _ = log.complete(None, {"X": x, "Y": y}, ran={"a": a, "b": b})
    log, _ = log.ask(torch.tensor([0.7, 0.1], dtype=DOUBLE))
    impute_pending(expected, PAIR, log)
    assert len(expected.visited()) == 9
    with place.entered() as device:
        other = deepcopy(fitted_pair()).to(device)
        impute_pending(other, PAIR, log)
        states(expected, other, place)


@pytest.mark.bench
@pytest.mark.parametrize("surrogate", SURROGATES)
def test_a_moved_model_is_refitted_as_on_the_cpu(surrogate: str, place: Place):
    made, grown = learnt_here(surrogate, WORLD.task, TABLE), TABLE + WORLD.table(20, seed=9)

    def again(asked: Any) -> Any:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            return fit(asked, grown, Descent(max_epochs=2, progress=False))

    here = again(deepcopy(made))
    with place.entered() as device:
        other = again(deepcopy(made).to(device))
        assert {each.device.type for each in other.state_dict().values()} == {device.type}
        states(here, other, place)
        on_the_device = Table(grown.names, grown.values.to(device), grown.altered.to(device))
        if surrogate == "linear_structural":
            states(here, fit(deepcopy(made), on_the_device), place)


def test_an_online_run_of_a_moved_model_is_that_of_the_cpu(place: Place):
    world = Loan(size=SampleSize(rows=60, contexts=3))
    made = fit(LinearStructural(world.task), world.observations())
    how = {"objective": GaussianSuccess, "search": ProjectionNewton(), "learn": True}
    here = list(rounds(world, deepcopy(made), **how))
    with place.entered() as device:
        other = deepcopy(made).to(device)
        there = list(rounds(world, other, **how))
        assert other.device.type == device.type
    same([each.decision for each in here], [each.decision for each in there], place)
    assert here[-1].answer is not None
    for one, answer in zip(here, there, strict=True):
        assert one.answer is not None
        assert answer.answer is not None
        assert torch.allclose(one.answer.values, answer.answer.values, atol=place.action)


def test_moved_models_of_imputed_tables_decide_as_on_the_cpu(place: Place):
    holes = TABLE.values.clone()
    holes[torch.rand(holes.shape, generator=torch.Generator().manual_seed(0)) < 0.1] = torch.nan
    table = ImputedTable.of(TABLE.names, holes, 2, 0)
    made = fit(ImputedSurrogate(WORLD.task, partial(LinearStructural), 2), table)

    def decided(asked: ImputedSurrogate) -> list[Decision]:
        objective = ImputedSuccess.for_cases(asked, ROUND, member=GaussianSuccess)
        return ProjectedAscent(starts=4, steps=15).batch_search(objective)

    here = decided(made)
    with place.entered() as device:
        other = deepcopy(made).to(device)
        same(here, decided(other), place)
        states(made, fit(other, table), place)
