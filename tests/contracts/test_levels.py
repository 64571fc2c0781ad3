"""What every rehearsal method promises where variables can be set to some values only: it sets one of them,
and of several combinations the best by its own judgement."""

from dataclasses import replace

import pytest
import torch

from rehearsal_torch.data.rehearsal_task import RehearsalTask
from tests.toys.linear_truth import managing
from tests.toys.rehearsal_methods import PAIRS, configuration, decided, learnt

WORLD = managing()
BOXES = {
    "all levels": {"raw_cost": {"values": [-4, -1.5, 0, 2]}, "self_pricing": {"values": [6, -6, 1]}},
    "some levels": {"raw_cost": {"values": [-1.5, 0.5]}, "self_pricing": [-6, 6]},
}
SETS = [["self_pricing", "raw_cost"], ["raw_cost"]]
ACTING = [pair for pair in PAIRS if pair[1] != "no_action"]
every = pytest.mark.parametrize("pair", ACTING, ids="-".join)


def task(box):
    return RehearsalTask.of(WORLD.task.to_plain() | {"box": box, "candidates": SETS})


def cases(own, count=3):
    return [replace(each, levels=own.box.levels) for each in WORLD.cases(count)]


@pytest.fixture(scope="module")
def models():
    made = {}

    def of(pair, box):
        key = PAIRS[pair], box
        if key not in made:
            made[key] = learnt(key[0], task(BOXES[box]), WORLD.table(80))
        return made[key]

    return of


@pytest.mark.slow
@pytest.mark.parametrize("box", BOXES)
@every
def test_a_decision_sets_levels(pair, box, models):
    model = models(pair, box)
    own = cases(model.task)
    for one, decision in zip(own, decided(model, pair, own), strict=True):
        would = decision.trace.get("would_set")
        if decision.alteration is None:
            assert would, decision.reason
        names = tuple(would) if decision.alteration is None else decision.alteration.names
        values = (
            torch.tensor(list(would.values())).double()
            if decision.alteration is None
            else decision.alteration.values
        )
        assert names in model.task.candidates
        assert model.task.box.only(names).contains(values), "exactly, not nearly"
        assert 0 <= decision.estimate.point <= 1
        one.check(decision.alteration)


def unsupported(decision):
    return decision.reason is not None and decision.reason.kind == "no_support"


# Where nothing reaches tau, the most probable set is taken, and its value is its information.
@pytest.mark.slow
@pytest.mark.parametrize("pair", [each for each in ACTING if "informative" not in each[1]], ids="-".join)
def test_no_level_alone_is_judged_better_than_the_decision(pair, models):
    model = models(pair, "all levels")
    both = decided(model, pair, cases(model.task))
    alone = []
    for value in BOXES["all levels"]["raw_cost"]["values"]:
        narrow = task({"raw_cost": {"values": [value]}, "self_pricing": BOXES["all levels"]["self_pricing"]})
        model.adopt(narrow)
        alone.append(decided(model, pair, cases(narrow)))
    model.adopt(task(BOXES["all levels"]))
    for place, decision in enumerate(both):
        # What may not be recommended for want of rows comes after what may.
        may = [each[place] for each in alone if not unsupported(each[place])]
        against = [each[place] for each in alone] if unsupported(decision) else may
        assert decision.value == pytest.approx(max(each.value for each in against), abs=1e-6)


def test_methods_that_weigh_costs_or_information_have_a_box_for_every_combination():
    assert {pair[0] for pair in ACTING if not _enumerable(pair)} == {
        "chance_cost", "chance_cost_fixed", "success_probability",
    }  # fmt: skip


def _enumerable(pair):
    module, _, name = configuration("objective", pair[0])["_target_"].rpartition(".")
    return getattr(__import__(module, fromlist=[name]), name).enumerable
