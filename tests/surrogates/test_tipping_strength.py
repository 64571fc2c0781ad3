"""The sensitivity of decisions, by hand and on worlds whose actions are confounded by recorded variables."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from rehearsal_torch.data.decision import Decision, Estimate
from rehearsal_torch.data.finding import Finding
from rehearsal_torch.data.rehearsal_task import RehearsalTask
from rehearsal_torch.data.table import Table
from rehearsal_torch.objectives.objective import chance, difference
from rehearsal_torch.problems.cases.nonlinear_examples import Loan
from rehearsal_torch.problems.world_size import SampleSize
from rehearsal_torch.spaces.box import Alteration
from rehearsal_torch.surrogates.tipping_strength import (
    FEW_ROWS,
    NO_COVARIATE,
    UNRECORDED,
    Overturning,
    RecordedStrengths,
)

LOAN = Loan(size=SampleSize(400, 1))
HALF = chance(0.5)


def setting(estimate, baseline, names=("A2",)):
    values = torch.full((len(names),), 0.5, dtype=torch.float64)
    return Decision(Alteration(names, values), 0.0, estimate=estimate, baseline=baseline)


def weighed(estimate, baseline=HALF, certificate=None, world=LOAN, names=("A2",), table=None):
    rows = world.observations() if table is None else table
    made = Overturning(world.task, lambda: rows)
    return made.with_sensitivity([setting(estimate, baseline, names)], [certificate])[0].sensitivity


def test_it_starts_from_the_lower_end_that_there_is():
    interval = weighed(chance(0.85, 0.8, 0.9), certificate={"truth_lower": 0.1})
    assert (interval.tipping, interval.basis) == (2.5, "interval")
    certified = weighed(chance(0.85), certificate={"lower": 0.7, "truth_lower": 0.6, "n": 10})
    assert (certified.tipping, certified.basis) == (1.25, "certificate")
    alone = weighed(chance(0.8))
    assert (alone.tipping, alone.basis) == (2.5, "point")
    assert weighed(chance(0.85, 0.4, 0.9)).tipping == 1.0
    assert weighed(chance(0.85, 0.4, 0.9), chance(0.0)).tipping == math.inf


def test_it_is_not_said_of_a_claim_that_the_rows_refute():
    made = Overturning(LOAN.task, LOAN.observations)
    refuted = setting(chance(0.85, 0.8, 0.9), HALF).told([Finding("bad_fit", "linear equations do not fit")])
    assert made.with_sensitivity([refuted], [None])[0].sensitivity is None


def test_present_values_are_biased_as_well():
    made = Overturning(LOAN.task, LOAN.observations)
    against = replace(setting(chance(0.85, 0.75, 0.9), HALF), unchanged=chance(0.2))
    # From the lower end .75 against .2: 1 - G (1 - .75) = .2 G.
    found = made.with_sensitivity([against], [None])[0].sensitivity
    assert (found.tipping, found.against) == (pytest.approx(1 / 0.45, abs=1e-4), "the present values")
    # The interval of the difference ends at .6, which is .8 against .2.
    gain = difference(0.65, 0.6, 0.7, 0.95)
    assert made.with_sensitivity([replace(against, gain=gain)], [None])[
        0
    ].sensitivity.tipping == pytest.approx(2.5)


def test_what_an_action_costs_is_overturned_earlier():
    made = Overturning(LOAN.task, LOAN.observations)
    priced = replace(setting(chance(0.85, 0.8, 0.9), HALF), cost=20.0, worth=100.0)
    # From .8 against .5 + .2: (1 - .7) / (1 - .8).
    assert made.with_sensitivity([priced], [None])[0].sensitivity.tipping == pytest.approx(1.5)
    assert made.with_sensitivity([replace(priced, cost=60.0)], [None])[0].sensitivity.tipping == 1.0
    against = replace(priced, unchanged=chance(0.2))
    # 1 - G (1 - .8) - .2 = .2 G.
    assert made.with_sensitivity([against], [None])[0].sensitivity.tipping == pytest.approx(2.0)
    told = replace(priced, worth=None)
    assert made.with_sensitivity([told], [None])[0].sensitivity.tipping == 2.5


def test_the_strongest_covariate_of_the_bank_is_the_sector():
    # A2 = U1 + (X1 + X2) / 2 + N(0, .2): standard deviations .22, .14 and .14.
    made = Overturning(LOAN.task, LOAN.observations)
    found = made.covariates(("A2",))
    assert next(iter(found)) == "U1"
    assert set(found) == {"X1", "X2", "U1"}
    assert weighed(chance(0.8)).covariate == "U1"
    assert weighed(chance(0.8)).yardstick == pytest.approx(found["U1"], rel=1e-5)


def test_nothing_is_said_where_it_does_not_apply():
    table = LOAN.observations()
    some = table.altered.clone()
    some[3, 2] = True
    assert weighed(chance(0.8), table=Table(table.names, table.values, some)) is None
    assert weighed(Estimate(3.0, "return of the episode"), Estimate(1.0, "return of the episode")) is None
    assert weighed(None) is None
    assert weighed(chance(0.8), None) is None
    nothing = Decision(None, 0.0, estimate=chance(0.5), baseline=chance(0.5))
    assert Overturning(LOAN.task, LOAN.observations).with_sensitivity([nothing], [None])[0] is nothing


def test_without_covariates_it_says_so():
    task = RehearsalTask.of(
        {
            "graph": {"parents": {"a": [], "y": ["a"]}},
            "context": [],
            "box": {"a": [0, 1]},
            "region": {"y": [0, 1]},
        }
    )
    stream = np.random.default_rng(0)
    table = Table.observed(("a", "y"), torch.from_numpy(stream.normal(size=(50, 2))))
    decision = setting(chance(0.8), chance(0.5), ("a",))
    found = Overturning(task, lambda: table).with_sensitivity([decision], [None])[0].sensitivity
    assert (found.note, found.yardstick) == (NO_COVARIATE, None)


def test_recorded_strengths_say_the_same_without_the_observations():
    fitted = Overturning(LOAN.task, LOAN.observations)
    names = ("A2",)
    recorded = RecordedStrengths(LOAN.task, {names: fitted.covariates(names), ("X1",): None})
    decision = setting(chance(0.85, 0.8, 0.9), HALF)
    assert recorded.with_sensitivity([decision], [None])[0] == fitted.with_sensitivity([decision], [None])[0]
    assert recorded.with_sensitivity([decision], [None])[0].sensitivity.covariate == "U1"
    few, unknown = (
        recorded.with_sensitivity([setting(chance(0.8), HALF, (name,))], [None])[0] for name in ("X1", "U1")
    )
    assert (few.sensitivity.note, unknown.sensitivity.note) == (FEW_ROWS, UNRECORDED)
    assert few.sensitivity.tipping == 2.5
