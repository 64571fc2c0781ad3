"""Decisions compared with present values, in a chain whose truth is written down."""

from dataclasses import replace

import pytest
import torch

from rehearsal_torch.claims.abstention_rules import ruled
from rehearsal_torch.claims.improvement_test import changes_nothing, leaving, with_unchanged
from rehearsal_torch.data.decision import Decision, RehearsalCase
from rehearsal_torch.data.finding import Finding
from rehearsal_torch.objectives.gaussian_success import GaussianSuccess
from rehearsal_torch.objectives.objective import chance
from rehearsal_torch.reporting.decision_frame import doubts
from rehearsal_torch.search.alterations.projected_ascent import ProjectedAscent
from rehearsal_torch.search.search import better_judged
from rehearsal_torch.spaces.box import Alteration
from rehearsal_torch.surrogates.structural.linear_scm import LinearStructural
from rehearsal_torch.training.surrogate_fit import fit
from tests.toys.linear_truth import chain, managing

WORLD = chain(reach=3.0)
DOUBLE = torch.float64


def case(x=0.0, task=WORLD.task, **present):
    return RehearsalCase("one", {"x": torch.tensor(x, dtype=DOUBLE)}, task.box.bounds(), present=present)


def objective(*cases, task=WORLD.task):
    return GaussianSuccess.for_cases(fit(LinearStructural(task), WORLD.table(2000)), cases)


def decided(names, *values, estimate=0.5):
    alteration = Alteration(names, torch.tensor(values, dtype=DOUBLE))
    return Decision(alteration, 0.0, estimate=chance(estimate), baseline=chance(0.5))


def test_leaving_things_as_they_are_is_estimated_as_it_is_true():
    one = case(0.3, a=-0.2)
    (found,) = with_unchanged(objective(one), [decided(("a",), 0.9)])
    truth = WORLD.success(one, {"a": -0.2})
    assert found.unchanged.point == pytest.approx(truth, abs=0.03)
    assert found.unchanged.lower <= truth <= found.unchanged.upper
    gain = WORLD.success(one, {"a": 0.9}) - truth
    assert found.gain.lower <= gain <= found.gain.upper
    assert found.gain.point == pytest.approx(gain, abs=0.04)
    assert with_unchanged(objective(one), [found]) == [found]


def test_without_the_present_value_of_everything_that_is_set_nothing_is_compared():
    cases = (case(), case(a=0.1), case(a=0.1, m=0.2))
    decisions = [decided(("a", "m"), 0.5, 0.5)] * 3
    found = with_unchanged(objective(*cases), decisions)
    assert [each.unchanged is not None for each in found] == [False, False, True]
    assert cases[1].kept(("a", "m")) is None
    assert cases[2].kept(()) is None
    assert leaving(cases[2], ("a", "m")) == (
        "leaving a at 0.1 and m at 0.2",
        "leaving a as it is and m as it is",
    )


def test_the_search_recommends_what_is_better_than_the_present_though_worse_than_usual():
    # Usually m is 1.5 and y desired; this case is at -2.9, and may only move a little.
    world = replace(WORLD.task, candidates=(("m",),))
    far = replace(case(1.0, world, m=-0.5), feasible={"m": (-0.5, 0.9), "a": (-3.0, 3.0)})
    searched = objective(far, task=world)
    (found,) = ruled(searched, ProjectedAscent().batch_search(searched))
    assert found.alteration is not None
    assert found.unchanged.point < found.estimate.point < found.baseline.point
    usual = objective(replace(far, present={}), task=world)
    (without,) = ruled(usual, ProjectedAscent().batch_search(usual))
    assert without.reason.kind == "no_gain"


def test_what_is_no_better_than_the_present_is_no_reason_to_act():
    world = replace(WORLD.task, candidates=(("m",),))
    # The best value of m is kept out of reach, and it is the present one.
    good = replace(case(0.0, world, m=1.1), feasible={"m": (-3.0, 0.6), "a": (-3.0, 3.0)})
    searched = objective(good, task=world)
    (found,) = ruled(searched, ProjectedAscent().batch_search(searched))
    assert found.reason.kind == "no_gain"
    assert found.reason.text.startswith("predicted no better than leaving m at 1.1 (")
    assert found.trace["would_set"]["m"] == pytest.approx(0.6)
    eager = ProjectedAscent(declines=False)
    (told,) = ruled(searched, eager.batch_search(searched), declines=False)
    assert told.alteration is not None
    assert any(text.startswith("predicted no better than leaving m at 1.1") for text in told.warnings)


def test_present_values_that_cannot_be_judged_are_said():
    class Refusing(GaussianSuccess):
        def appraise(self, actions):
            return [
                replace(each, refused=Finding("no_support", "no rows are near"))
                for each in super().appraise(actions)
            ]

    searched = Refusing.for_cases(objective(case()).surrogate, [case(m=1.0)])
    (found,) = with_unchanged(searched, [decided(("m",), 1.2)])
    assert found.unchanged is None
    (said,) = found.warnings
    assert said == (
        "leaving m at 1 cannot be compared with it (no rows are near); it is compared with what is usual"
    )


def test_a_set_that_holds_the_others_is_searched_instead():
    sides = managing(candidates=(("raw_cost",), ("self_pricing",), ("raw_cost", "self_pricing")))
    given = {name: torch.tensor(0.0, dtype=DOUBLE) for name in ("cf", "ei")}
    known = RehearsalCase("one", given, sides.task.box.bounds(), present={"raw_cost": 1.0})
    beyond = replace(known, present={"raw_cost": 7.0})
    surrogate = fit(LinearStructural(sides.task), sides.table(300))
    searched = GaussianSuccess.for_cases(surrogate, [known, beyond, replace(known, present={})])
    # raw_cost moves self_pricing, which is no action that it leaves alone.
    assert better_judged(searched, searched.sets).tolist() == [[False] * 3, [True, False, False], [False] * 3]
    (found,) = with_unchanged(
        GaussianSuccess.for_cases(
            surrogate, [replace(beyond, present={"raw_cost": 7.0, "self_pricing": 0.5})]
        ),
        [decided(("self_pricing",), 0.4)],
    )
    assert (
        "the present value of raw_cost (7) is not used: what is not set is assumed to take what is "
        "usual for such a case"
    ) in found.warnings
    (first,) = doubts([found.findings, []])
    assert first.startswith("In 1 of 2 cases, before and after are those of a case that is usual in")


def test_what_is_left_alone_is_held_at_its_present_value():
    sides = managing(candidates=(("raw_cost",), ("self_pricing",)))
    task = sides.task.holding_present({"raw_cost", "self_pricing"})
    given = {name: torch.tensor(0.0, dtype=DOUBLE) for name in ("cf", "ei")}
    present = {"raw_cost": 1.5, "self_pricing": -1.0}
    known = RehearsalCase("one", given, task.box.bounds(), present=present)
    cases = [known, replace(known, present={}), replace(known, present={**present, "raw_cost": 7.0})]
    searched = GaussianSuccess.for_cases(fit(LinearStructural(task), sides.table(2000)), cases)
    # raw_cost moves self_pricing, and is moved by nothing that may be set.
    assert [part.held for part in searched.sets] == [(), (), ("raw_cost",)]
    holding, *others = ruled(searched, ProjectedAscent().batch_search(searched))
    assert holding.alteration.names == ("raw_cost", "self_pricing")
    assert holding.alteration.values[0] == 1.5
    setting = dict(zip(holding.alteration.names, holding.alteration.values.tolist(), strict=True))
    assert holding.estimate.point == pytest.approx(sides.success(known, setting), abs=0.03)
    assert holding.unchanged.point == pytest.approx(sides.success(known, present), abs=0.03)
    assert not any(finding.kind == "present" for finding in holding.findings)
    assert all(len(decision.trace["altered"]) == 1 for decision in others)


def test_a_present_value_that_is_no_level_cannot_be_held():
    sides = managing(candidates=(("raw_cost",), ("self_pricing",), ("raw_cost", "self_pricing")))
    given = {name: torch.tensor(0.0, dtype=DOUBLE) for name in ("cf", "ei")}
    bounds, levels = sides.task.box.bounds(), {"raw_cost": (-1.0, 1.0)}
    known = RehearsalCase("one", given, bounds, levels=levels, present={"raw_cost": 1.0})
    cases = [known, replace(known, present={"raw_cost": 0.5})]
    searched = GaussianSuccess.for_cases(fit(LinearStructural(sides.task), sides.table(300)), cases)
    assert better_judged(searched, searched.whole)[1].tolist() == [True, False]


def test_what_is_left_at_a_known_value_is_said_where_that_of_what_is_set_is_unknown():
    sides = managing(candidates=(("raw_cost",), ("self_pricing",)))
    given = {name: torch.tensor(0.0, dtype=DOUBLE) for name in ("cf", "ei")}
    known = RehearsalCase("one", given, sides.task.box.bounds(), present={"raw_cost": 1.0})
    searched = GaussianSuccess.for_cases(fit(LinearStructural(sides.task), sides.table(300)), [known])
    (found,) = with_unchanged(searched, [decided(("self_pricing",), 0.4)])
    assert found.unchanged is None
    assert found.warnings[0].startswith("the present value of raw_cost (1) is not used")


def test_what_leaves_everything_as_it_is_changes_nothing():
    one = case(a=0.25, m=0.5)
    assert changes_nothing(decided(("a", "m"), 0.25, 0.5), one)
    assert not changes_nothing(decided(("a", "m"), 0.25, 0.5 + 1e-12), one)
    assert not changes_nothing(decided(("a",), 0.25), case())
    assert not changes_nothing(Decision(None, 0.0), one)
