"""Objectives of variables with levels: one box for each combination, or the best of them."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from rehearsal_torch.data.codings.class_actions import no_class
from rehearsal_torch.data.codings.coding import Coding
from rehearsal_torch.data.decision import RehearsalCase
from rehearsal_torch.objectives.candidates import Candidates
from rehearsal_torch.objectives.levels import highest, levelled
from rehearsal_torch.objectives.objective import AlterationObjective, Appraisal, chance

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


def test_objectives_without_levels_stay():
    one = Hill(cases(levels={}), ("a", "b"))
    assert levelled([one]) == (one,)
    assert one.label() == "a+b"


@pytest.mark.parametrize("names", [("a", "b"), ("b", "a")])
def test_where_all_have_levels_each_case_keeps_its_best_combination(names):
    (only,) = levelled([Hill(cases(), names)])
    expected = torch.tensor([[1.0, -1.0], [3.0, -1.0]]).double()[:, [("a", "b").index(n) for n in names]]
    assert torch.equal(only.lower, expected)
    assert torch.equal(only.upper, expected)
    assert torch.equal(only.project(torch.zeros(2, 2).double()), expected)
    assert only.levels == {}


def test_what_is_acceptable_comes_first_and_without_any_the_largest():
    one = Hill(cases(), ("a",), near=0.5)
    grid = torch.tensor(LEVELS["a"]).double().unsqueeze(-1)
    assert highest(one, grid).flatten().tolist() == [0.0, 0.0]
    one.near = -1.0
    assert highest(one, grid).flatten().tolist() == [1.0, 3.0]


def test_where_some_have_levels_there_is_a_box_for_each():
    whole = Hill(cases(levels={"a": LEVELS["a"]}), ("b", "a"))
    made = levelled([whole])
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
    assert len(levelled([one])) == 1
    one.enumerable = False
    most = Hill(cases(levels={"a": levels["a"][:256]}), ("a",))
    most.enumerable = False
    assert len(levelled([most])) == 256
    with pytest.raises(
        ValueError, match="a: 301 combinations of values; Hill is searched for each by itself"
    ):
        levelled([one])


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
    made = levelled([whole])
    assert len(made) == (1 if enumerable and not free else one * other * (1 if free else 3))
    for each in made:
        assert no_class(names, each.lower, codings) is None
        assert torch.equal(each.lower[:, :-2], each.upper[:, :-2])
        assert no_class(names, each.project(torch.full_like(each.lower, 9.0)), codings) is None
    if enumerable and not free:
        every = [each.lower for each in levelled([_searched(whole)])]
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
    made = levelled([Hill([case], ("d", "v=B", "v=C"))])
    assert [each.label() for each in made] == ["d+v=A", "d+v=B", "d+v=C"]
