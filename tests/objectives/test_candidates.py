from dataclasses import replace

import pytest
import torch

from rehearsal_torch.data.decision import Decision, RehearsalCase
from rehearsal_torch.objectives.candidates import Candidates, appraisals, claimed, estimates
from rehearsal_torch.objectives.chance_cost import ChanceCost
from rehearsal_torch.objectives.gaussian_success import GaussianSuccess
from rehearsal_torch.objectives.kernel_value import KernelValue
from rehearsal_torch.objectives.objective import Appraisal, chance
from rehearsal_torch.objectives.scenario_success import ScenarioCount
from rehearsal_torch.search.alterations.projected_newton import ProjectionNewton
from rehearsal_torch.spaces.box import Alteration
from rehearsal_torch.surrogates.structural.linear_scm import LinearStructural
from rehearsal_torch.training.fit import fit
from tests.toys.linear_truth import managing
from tests.toys.rehearsal_toys import confounded, confounded_table, fitted, some_cases

WORLD = managing()
SINGLE_OR_BOTH = (("raw_cost",), ("raw_cost", "self_pricing"))


@pytest.fixture(scope="module")
def linear():
    return fit(LinearStructural(WORLD.task, draws=60), WORLD.table(200))


@pytest.mark.parametrize(
    ("made_of", "options"),
    [
        (GaussianSuccess, {}),
        (ChanceCost, {"level": 0.8}),
        (
            ScenarioCount,
            {"search_scenarios": 40, "validation_scenarios": 10, "test_scenarios": 10},
        ),
    ],
)
def test_there_is_an_objective_for_each_candidate_set_of_the_task(linear, made_of, options):
    cases = WORLD.cases(3)
    made = made_of.for_cases(linear, cases, **options)
    assert isinstance(made, Candidates)
    assert made.surrogate is linear
    assert made.cases == tuple(cases)
    assert [each.names for each in made.sets] == list(WORLD.task.candidates)
    assert all(type(each) is made_of and each.cases == tuple(cases) for each in made.sets)


def test_those_of_a_kernel_surrogate_too():
    surrogate = fitted(confounded(candidates=[["a"], ["a", "c"]]), confounded_table(60))
    made = KernelValue.for_cases(surrogate, some_cases(surrogate.task, 2))
    assert [type(each) for each in made.sets] == [KernelValue, KernelValue]
    assert [each.names for each in made.sets] == [("a",), ("a", "c")]
    values = made.sets[0](torch.zeros(2, len(made.sets[0].names), dtype=torch.float64))
    assert values.shape == (2,)


def test_settings_are_refused_by_the_methods_that_have_a_say(linear):
    KernelValue.check(linear, weights={"nothing": 1.0})
    with pytest.raises(ValueError, match="expected positive weights and references"):
        ChanceCost.check(linear, weights={"nothing": 1.0})


def test_sets_without_a_surrogate_are_kept_as_given():
    case = RehearsalCase("0", {}, {"a": (0.0, 1.0)})
    made = Candidates([case], [])
    assert (made.cases, made.sets, made.surrogate) == ((case,), (), None)


def test_each_action_is_appraised_by_the_objective_of_its_variables():
    world = managing(candidates=SINGLE_OR_BOTH)
    objective = GaussianSuccess.for_cases(fit(LinearStructural(world.task), world.table(300)), world.cases(3))
    decisions = ProjectionNewton().batch_search(objective)
    decisions[1] = Decision(None, 0.0, status="no_action")
    found = appraisals(objective.sets, decisions)
    assert found[1] is None
    points, draws = estimates(objective, decisions)
    assert draws == [None] * 3
    assert bool(points[1].isnan())
    for place in (0, 2):
        decided = decisions[place]
        assert found[place].estimate == decided.estimate
        assert float(points[place]) == decided.estimate.point
    others = [each for each in objective.sets if each.names != decisions[0].alteration.names]
    assert appraisals(others, decisions[:1] * 3) == [None] * 3


def test_an_alteration_has_no_steps_to_record():
    made = Candidates([RehearsalCase("0", {}, {"a": (0.0, 1.0)})], [])
    assert made.trajectory_record(Decision(None, 0.0, status="no_action")) == {}


def test_decisions_are_withdrawn_unless_the_guard_is_told_not_to():
    made = Candidates([RehearsalCase("0", {}, {"a": (0.0, 1.0)})], [])
    worse = Decision(alterations()[0], 0.0, estimate=chance(0.2), baseline=chance(0.3))
    ((withdrawn,), (warned,)) = made.guarded([worse]), made.guarded([worse], declines=False)
    assert (withdrawn.status, withdrawn.alteration) == ("no_action", None)
    assert (warned.status, warned.alteration) == ("recommended", worse.alteration)
    assert warned.warnings == (withdrawn.reason,)


class Claims:
    """An objective that says the same of every alteration of its variable."""

    names = ("a",)

    def __init__(self, said):
        self.said = said

    def with_alterations(self, alterations):
        return alterations

    def appraise(self, actions):
        return [self.said if index in actions else None for index in range(2)]


class Unguarded(Candidates):
    """Candidates whose decisions come back as they are, with what the guard was told."""

    def guarded(self, decisions, declines=True):
        self.declines = declines
        return decisions


def alterations():
    return [Alteration((name,), torch.ones(1, dtype=torch.float64)) for name in ("a", "b")]


def test_what_is_said_of_somebody_elses_alterations_is_kept_and_nothing_is_withdrawn():
    said = Appraisal(chance(0.7), chance(0.2), ("far",), refused="", declined="too near", trace={"n": 3})
    made = Unguarded([RehearsalCase(str(index), {}, {"a": (0.0, 1.0)}) for index in range(2)], [Claims(said)])
    first, second = claimed(made, alterations())
    assert made.declines is False
    assert second is None, "no objective has its variable"
    assert (first.estimate, first.baseline, first.warnings) == (said.estimate, said.baseline, ("far",))
    assert (first.reason, first.trace) == ("too near", {"n": 3, "refused": "", "unsupported": ""})
    assert first.alteration == alterations()[0]
    made.whole = (Claims(replace(said, refused="no paths")),)
    (refused, _) = claimed(made, alterations())
    assert (refused.reason, refused.trace["refused"]) == ("no paths", "no paths")
    made.whole = (Claims(replace(said, estimate=None)),)
    assert claimed(made, alterations()) == [None, None]
