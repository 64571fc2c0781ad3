from dataclasses import replace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from rehearsal_torch.claims.abstention_rules import claimed, ruled
from rehearsal_torch.data.codings.coding import Coding
from rehearsal_torch.data.codings.one_hot_actions import no_class
from rehearsal_torch.data.decision import Decision, RehearsalCase
from rehearsal_torch.data.finding import Finding
from rehearsal_torch.objectives.chance_cost import ChanceCost
from rehearsal_torch.objectives.gaussian_success import GaussianSuccess
from rehearsal_torch.objectives.kernel_value import KernelValue
from rehearsal_torch.objectives.objective import AlterationObjective, Appraisal, Candidates, chance
from rehearsal_torch.objectives.scenario_success import ScenarioCount
from rehearsal_torch.search.alterations.projected_newton import ProjectionNewton
from rehearsal_torch.spaces.box import Alteration
from rehearsal_torch.surrogates.structural.linear_scm import LinearStructural
from rehearsal_torch.training.surrogate_fit import fit
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
        (ScenarioCount, {"search_scenarios": 40, "validation_scenarios": 10, "test_scenarios": 10}),
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


def test_each_action_is_appraised_by_the_objective_of_its_variables():
    world = managing(candidates=SINGLE_OR_BOTH)
    objective = GaussianSuccess.for_cases(fit(LinearStructural(world.task), world.table(300)), world.cases(3))
    decisions = ProjectionNewton().batch_search(objective)
    decisions[1] = Decision(None, 0.0)
    found = objective.appraisals(decisions)
    assert found[1] is None
    for place in (0, 2):
        decided = decisions[place]
        assert found[place].estimate == decided.estimate
    others = [each for each in objective.sets if each.names != decisions[0].alteration.names]
    assert Candidates(objective.cases, others).appraisals(decisions[:1] * 3) == [None] * 3


def test_decisions_are_withdrawn_unless_the_guard_is_told_not_to():
    made = Candidates([RehearsalCase("0", {}, {"a": (0.0, 1.0)})], [])
    worse = Decision(alterations()[0], 0.0, estimate=chance(0.2), baseline=chance(0.3))
    ((withdrawn,), (warned,)) = ruled(made, [worse]), ruled(made, [worse], declines=False)
    assert withdrawn.reason.kind == "no_gain"
    assert (warned.status, warned.alteration) == ("may", worse.alteration)
    assert warned.findings == (withdrawn.reason,)


class Claims:
    """An objective that says the same of every alteration of its variable."""

    names = ("a",)

    def __init__(self, said):
        self.said = said

    def with_alterations(self, alterations):
        return alterations

    def appraise(self, actions):
        return [self.said if index in actions else None for index in range(2)]


def alterations():
    return [Alteration((name,), torch.ones(1, dtype=torch.float64)) for name in ("a", "b")]


def test_what_is_said_of_somebody_elses_alterations_is_kept_and_nothing_is_withdrawn():
    said = Appraisal(
        chance(0.7),
        chance(0.2),
        (Finding("note", "far"),),
        declined=Finding("no_gain", "too near"),
        trace={"n": 3},
    )
    made = Candidates(
        [RehearsalCase(str(index), {}, {"a": (0.0, 1.0)}) for index in range(2)], [Claims(said)]
    )
    found, second = claimed(made, alterations())
    assert second is None, "no objective has its variable"
    assert (found.refused, found.unsupported) == (None, None)
    first = found.decision
    assert (first.estimate, first.baseline, first.warnings) == (said.estimate, said.baseline, ("far",))
    assert (first.reason, first.trace) == (said.declined, {"n": 3})
    assert first.alteration == alterations()[0]
    made.whole = (Claims(replace(said, refused=Finding("no_path", "no paths"))),)
    (refused, _) = claimed(made, alterations())
    assert refused.decision.reason == refused.refused == Finding("no_path", "no paths")
    made.whole = (Claims(replace(said, estimate=None)),)
    assert claimed(made, alterations()) == [None, None]


LEVELS = {"a": (0.0, 1.0, 3.0), "b": (-1.0, 2.0)}


class Hill(AlterationObjective):
    """Largest at a = target + case, b = 0.5; far from it nothing is acceptable if `near` is set."""

    def __init__(self, cases, names, target=1.2, near=None):
        super().__init__(cases, names)
        self.target, self.near = target, near

    def __call__(self, actions):
        goal = torch.stack(
            [self.target + torch.arange(len(self.cases)).double(), torch.full((len(self.cases),), 0.5)], -1
        )
        place = [("a", "b").index(name) for name in self.names]
        return -(actions - goal[:, place]).square().sum(-1)

    def acceptable(self, actions):
        return super().acceptable(actions) if self.near is None else actions[..., 0] <= self.near

    def starts(self, count):
        return self.lower.expand(count, -1, -1)

    def appraise(self, actions):
        return [Appraisal(chance(0.5), chance(0.4)) for _ in actions]


def cases(count=2, levels=LEVELS):
    bounds = {"a": (0.0, 3.0), "b": (-1.0, 2.0)}
    return [RehearsalCase(str(index), {}, bounds, levels=levels) for index in range(count)]


@pytest.mark.parametrize("names", [("a", "b"), ("b", "a")])
def test_where_all_have_levels_each_case_keeps_its_best_combination(names):
    (only,) = Hill(cases(), names).boxes()
    expected = torch.tensor([[1.0, -1.0], [3.0, -1.0]]).double()[:, [("a", "b").index(n) for n in names]]
    assert torch.equal(only.lower, expected)
    assert torch.equal(only.upper, expected)
    assert torch.equal(only.project(torch.zeros(2, 2).double()), expected)
    assert only.levels == {}


def test_what_is_acceptable_comes_first_and_without_any_the_largest():
    one = Hill(cases(), ("a",), near=0.5)
    grid = torch.tensor(LEVELS["a"]).double().unsqueeze(-1)
    assert one.highest(grid).flatten().tolist() == [0.0, 0.0]
    one.near = -1.0
    assert one.highest(grid).flatten().tolist() == [1.0, 3.0]


def test_where_some_have_levels_there_is_a_box_for_each():
    whole = Hill(cases(levels={"a": LEVELS["a"]}), ("b", "a"))
    made = list(whole.boxes())
    assert [each.fixed for each in made] == [{"a": 0.0}, {"a": 1.0}, {"a": 3.0}]
    assert [each.label() for each in made] == ["b+a=0", "b+a=1", "b+a=3"]
    for each, level in zip(made, LEVELS["a"], strict=True):
        assert each.lower.tolist() == [[-1.0, level]] * 2
        assert each.upper.tolist() == [[2.0, level]] * 2
    assert whole.lower.tolist() == [[-1.0, 0.0]] * 2, "the whole one is unchanged"


def test_candidates_keep_the_whole_sets_beside_those_that_are_searched():
    some = cases()
    made = Candidates(some, [Hill(some, ("a",)), Hill(some, ("a", "b"))])
    assert [each.names for each in made.whole] == [("a",), ("a", "b")]
    assert all(not each.levels for each in made.sets)
    assert made.sets is made.sets, "evaluated once"


def test_too_many_boxes_are_refused_by_name():
    levels = {"a": tuple(each / 100 for each in range(301))}
    one = Hill(cases(levels=levels), ("a",))
    assert len(list(one.boxes())) == 1
    one.enumerable = False
    most = Hill(cases(levels={"a": levels["a"][:256]}), ("a",))
    most.enumerable = False
    assert len(list(most.boxes())) == 256
    with pytest.raises(
        ValueError, match="a: 301 combinations of values; Hill is searched for each by itself"
    ):
        list(one.boxes())


def test_cases_of_a_batch_have_the_same_levels():
    some = [cases()[0], cases(levels={"a": (0.0, 3.0)})[1]]
    with pytest.raises(ValueError, match=r"1: the levels .* differ from those of 0"):
        Hill(some, ("a", "b"))


class Ranked(Hill):
    """Values of any order."""

    def __init__(self, cases, names, seed):
        super().__init__(cases, names)
        self.weights = torch.randn(len(names), len(names), generator=torch.Generator().manual_seed(seed))

    def __call__(self, actions):
        return torch.einsum("...i,ij,...j->...", actions, self.weights.double(), actions)


@pytest.mark.slow
@given(st.integers(3, 6), st.integers(3, 4), st.booleans(), st.booleans(), st.integers(0, 999))
def test_what_is_searched_holds_one_class_of_each_variable(one, other, free, enumerable, seed):
    codings = [Coding(name, tuple(map(str, range(size))), "1") for name, size in (("v", one), ("w", other))]
    columns = [column for each in codings for column in each.columns]
    names = (*columns[1:], "d", columns[0])
    levels = dict.fromkeys(columns, (0.0, 1.0)) | ({} if free else {"d": (0.0, 0.5, 2.0)})
    case = RehearsalCase(
        "1", {}, dict.fromkeys(columns, (0.0, 1.0)) | {"d": (0.0, 2.0)}, levels=levels, codings=tuple(codings)
    )
    whole = Ranked([case], names, seed)
    whole.enumerable = enumerable
    made = list(whole.boxes())
    assert len(made) == (1 if enumerable and not free else one * other * (1 if free else 3))
    for each in made:
        assert no_class(names, each.lower, codings) is None
        assert torch.equal(each.lower[:, :-2], each.upper[:, :-2])
        assert no_class(names, each.project(torch.full_like(each.lower, 9.0)), codings) is None
    if enumerable and not free:
        every = [each.lower for each in _searched(whole).boxes()]
        assert float(whole(made[0].lower)) == pytest.approx(max(float(whole(each)) for each in every))


def _searched(one):
    made = Ranked(one.cases, one.names, 0)
    made.enumerable = False
    return made


def test_a_held_class_is_told_by_its_name():
    coding = Coding("v", ("A", "B", "C"), "A")
    case = RehearsalCase(
        "1",
        {},
        {"v=B": (0.0, 1.0), "v=C": (0.0, 1.0), "d": (0.0, 2.0)},
        levels={"v=B": (0.0, 1.0), "v=C": (0.0, 1.0)},
        codings=(coding,),
    )
    made = list(Hill([case], ("d", "v=B", "v=C")).boxes())
    assert [each.label() for each in made] == ["d+v=A", "d+v=B", "d+v=C"]
