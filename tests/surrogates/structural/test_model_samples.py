"""Hypotheses and their equations, and affine scenarios, by enumeration."""

from itertools import pairwise

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from rehearsal_torch.data.rehearsal_task import RehearsalTask
from rehearsal_torch.graphs.mixed_graph import RehearsalGraph
from rehearsal_torch.surrogates.structural.linear_scm import Equation
from rehearsal_torch.surrogates.structural.model_samples import (
    AffineScenarios,
    SampledModels,
    ScenarioModel,
    hypothesis_of,
    shared,
)

DOUBLE = torch.float64
NAMES = ("x", "a", "b", "c", "y")


def task(parents=None, bidirected=()):
    """x is seen, a and b may be set, y is wanted."""
    graph = {
        "parents": {name: ["x"] for name in "abc"} | {"y": ["a", "b", "c"]} if parents is None else parents,
        "bidirected": list(bidirected),
    }
    return RehearsalTask.of(
        {"graph": graph, "context": ["x"], "box": {"a": [0, 1], "b": [0, 1]}, "region": {"y": [0, 1]}}
    )


TASK = task()


def test_a_graph_without_cliques_has_an_equation_for_each_variable_that_is_not_seen():
    made = hypothesis_of(TASK.graph, TASK)
    assert made.graph == TASK.graph
    assert made.equations == (
        Equation(("a",), (), ("a",), ("x",)),
        Equation(("b",), (), ("b",), ("x",)),
        Equation(("c",), (), ("c",), ("x",)),
        Equation(("y",), (), ("y",), ("a", "b", "c")),
    )


def test_a_clique_has_an_equation_for_each_part_of_it_that_may_be_set_without_the_rest():
    made = hypothesis_of(task(bidirected=[["a", "b", "c"]]).graph, TASK)
    clique = ("a", "b", "c")
    assert made.equations[:-1] == (
        Equation(clique, (), clique, ("x",)),
        Equation(clique, ("a",), ("b", "c"), ("x", "a")),
        Equation(clique, ("b",), ("a", "c"), ("x", "b")),
        Equation(clique, ("a", "b"), ("c",), ("x", "a", "b")),
    )


def test_where_every_member_may_be_set_none_of_them_is_left_to_learn():
    parents = {"a": ["x"], "b": ["x"], "c": ["a", "b"], "y": ["c"]}
    made = hypothesis_of(task(parents, [["a", "b"]]).graph, TASK)
    whole = [each.altered for each in made.equations if each.clique == ("a", "b")]
    assert whole == [(), ("a",), ("b",)]
    assert not [each for each in made.under(("a", "b")) if each.clique == ("a", "b")]


def test_members_of_the_context_are_parents_of_the_rest_of_their_clique():
    made = hypothesis_of(
        {"parents": {"b": ["a"], "c": ["x"], "y": ["b", "c"]}, "bidirected": [["x", "a"]]}, TASK
    )
    assert made.equations[0] == Equation(("a",), (), ("a",), ("x",))
    assert not [each for each in made.equations if "x" in each.members]


def test_arrows_into_the_context_are_cut_and_nobody_learns_how_it_comes_about():
    one = hypothesis_of({"parents": {"x": ["a"], "y": ["a", "b", "c"]}}, TASK)
    other = hypothesis_of({"parents": {"y": ["a", "b", "c"]} | {"x": []}}, TASK)
    assert set(one.equations) == set(other.equations)
    assert one.graph != other.graph


def subsets():
    return st.sets(st.sampled_from(("a", "b"))).map(lambda names: tuple(sorted(names)))


@st.composite
def graphs(draw):
    """Random rehearsal graphs over the task's variables: cliques in a random order, arrows between them."""
    order = draw(st.permutations(("a", "b", "c", "y")))
    cuts = draw(st.sets(st.integers(1, 3)))
    ends = [0, *sorted(cuts), 4]
    cliques = [("x",)] + [tuple(order[low:high]) for low, high in pairwise(ends)]
    parents, bidirected = {name: [] for name in NAMES}, []
    for place, clique in enumerate(cliques):
        bidirected += [list(clique)] if len(clique) > 1 else []
        for earlier in cliques[:place]:
            if draw(st.booleans()):
                for name in clique:
                    parents[name] = [*parents[name], *earlier]
    return {"parents": parents, "bidirected": bidirected}


@settings(max_examples=25, deadline=None, derandomize=True)
@given(plain=graphs(), altered=subsets())
def test_under_any_alteration_each_variable_that_is_neither_seen_nor_set_has_one_equation(plain, altered):
    made = hypothesis_of(plain, TASK)
    found = made.under(altered)
    members = [name for each in found for name in each.members]
    assert sorted(members) == sorted(set(NAMES) - {"x", *altered})
    known = {"x", *altered}
    for each in found:
        assert set(each.parents) <= known, "parents come before children"
        known |= set(each.members)
        assert set(each.altered) == set(altered) & set(each.clique)


@settings(max_examples=25, deadline=None, derandomize=True)
@given(plain=graphs(), seed=st.integers(0, 100))
def test_the_order_in_which_a_graph_is_written_makes_no_other_equation(plain, seed):
    stream = torch.Generator().manual_seed(seed)

    def shuffled(values):
        return [values[place] for place in torch.randperm(len(values), generator=stream).tolist()]

    again = {
        "parents": {name: shuffled(plain["parents"][name]) for name in shuffled(list(plain["parents"]))},
        "bidirected": [shuffled(pair) for pair in shuffled(plain["bidirected"])],
    }
    one, other = hypothesis_of(plain, TASK), hypothesis_of(again, TASK)
    assert set(one.equations) == set(other.equations)
    assert set(shared((one, other))) == set(one.equations)


def scenarios(seed=0):
    stream = torch.Generator().manual_seed(seed)
    offset = torch.randn(3, 6, 4, generator=stream, dtype=DOUBLE)
    gain = torch.randn(6, 4, 2, generator=stream, dtype=DOUBLE)
    return AffineScenarios(("x", "a", "b", "y"), ("a", "b"), offset, gain)


def test_some_variables_come_in_the_order_asked_for():
    made, actions = scenarios(), torch.ones(3, 2, dtype=DOUBLE)
    some = made.only(("y", "x"))
    assert (some.names, some.altered) == (("y", "x"), ("a", "b"))
    torch.testing.assert_close(some.rows(actions), made.rows(actions)[..., [3, 0]])
    with pytest.raises(KeyError, match="z"):
        made.only(("z",))


def test_a_model_of_scenarios_says_how_likely_its_graphs_are_and_draws_them():
    assert ScenarioModel.__abstractmethods__ >= {"graph_weights", "sampled"}
    assert SampledModels.__abstractmethods__ == {"graphs", "scenarios", "log_density", "entropy"}
    with pytest.raises(TypeError, match="abstract"):
        ScenarioModel(TASK, [RehearsalGraph.of({"y": ["a"]})])
