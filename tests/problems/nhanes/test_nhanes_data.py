import numpy as np
import pytest
import torch

from rehearsal_torch.problems.nhanes.nhanes_data import Nhanes
from rehearsal_torch.problems.nhanes.nhanes_generator import (
    ACTIONABLE,
    CONTEXT,
    OUTCOMES,
    VARIABLES,
    influence_graph,
)
from rehearsal_torch.problems.world_size import SampleSize


@pytest.fixture(scope="module")
def world():
    return Nhanes(size=SampleSize(contexts=60))


@pytest.fixture(scope="module")
def contexts(world):
    return world.given([world.case(index) for index in range(world.count())])


@pytest.mark.slow
def test_doing_nothing_is_as_good_as_in_the_paper(world, contexts):
    nothing = world.probability(contexts, (), contexts.new_empty(60, 0))
    drawn = world.draw(20_000, np.random.default_rng(0))
    desired = float(world.desired(drawn.columns(world.task.outcomes)).double().mean())
    # In the real data .3622; the paper's contexts give .402 +- .257.
    assert 0.34 < desired < 0.40
    assert float(nothing.mean()) == pytest.approx(desired, abs=3 * float(nothing.std()) / 60**0.5)
    assert 0.17 < float(nothing.std()) < 0.30


def test_alterations_are_clipped_to_the_box(world, contexts):
    names = ("BMI",)
    far, edge = (
        torch.tensor([[value]], dtype=torch.float64) for value in (500.0, world.task.box.bounds()["BMI"][1])
    )
    assert torch.equal(
        world.probability(contexts[:1], names, far), world.probability(contexts[:1], names, edge)
    )
    assert torch.equal(world.rehearse(contexts[0], names, far[0], 5).columns(names), edge.expand(5, 1))


@pytest.mark.slow
def test_five_reach_what_one_reaches(world, contexts):
    single = Nhanes(candidates="single")
    assert single.task.candidates == tuple((name,) for name in ACTIONABLE)
    joint = float(world.optimal(contexts[:1], ACTIONABLE)[1])
    for name in ("BMI", "FiberIntake"):
        alone = float(single.optimal(contexts[:1], (name,))[1])
        assert alone <= joint + 1e-9
        # Along one variable every step can be tried.
        edges = single._edges(name, (name,))
        steps = torch.from_numpy((edges[1:] + edges[:-1]) / 2)[:, None]
        rough = single._probability(contexts[:1].expand(len(steps), -1), (name,), steps, 1024)
        finest = single.probability(contexts[:1].expand(8, -1), (name,), steps[np.argsort(-rough)[:8]])
        assert alone == pytest.approx(float(finest.max()), abs=0.001)


def test_the_chain_and_independent_noise_change_law_and_graph():
    rows = 4000
    plain, other = (
        Nhanes(size=SampleSize(rows=rows)).observations(),
        Nhanes(size=SampleSize(rows=rows), roots="chain", noise="independent").observations(),
    )

    def correlation(table, one, two):
        return float(torch.corrcoef(table.columns((one, two)).T)[0, 1])

    assert abs(correlation(plain, "Education", "Income_Ratio")) < 0.06
    assert correlation(other, "Education", "Income_Ratio") > 0.35
    assert correlation(plain, "HbA1c", "FPG") > correlation(other, "HbA1c", "FPG") + 0.4
    task = Nhanes(roots="chain", noise="independent").task
    assert set(task.graph.clique("Age")) == set(CONTEXT)
    assert task.graph.clique("FPG") == ("FPG",)


@pytest.mark.slow
def test_the_probability_follows_the_noise(contexts):
    paired, apart = (Nhanes(noise=noise) for noise in ("paired", "independent"))
    nothing = contexts.new_empty(1, 0)
    assert (
        float(paired.probability(contexts[:1], (), nothing))
        > float(apart.probability(contexts[:1], (), nothing)) + 0.02
    )
    rows = apart.rehearse(contexts[0], (), nothing[0], 20_000)
    found = float(apart.desired(rows.columns(apart.task.outcomes)).double().mean())
    assert found == pytest.approx(float(apart.probability(contexts[:1], (), nothing)), abs=0.015)


def test_the_graph_is_the_papers():
    graph = influence_graph()
    assert set(graph.names) == set(VARIABLES)
    assert graph.clique("HbA1c") == OUTCOMES
    assert all(len(influence_graph(paired=False).clique(name)) == 1 for name in VARIABLES)
    assert graph.parents(OUTCOMES) == tuple(
        name for name in graph.names if name not in (*OUTCOMES, "CarbIntake", "DBP")
    )
    for name in VARIABLES:
        if name not in CONTEXT:
            assert set(CONTEXT) <= set(graph.parents(name))
    assert set(graph.parents("HDL")) - set(CONTEXT) == {"BMI", "CalIntake"}
    assert set(graph.parents("Sedentary_min")) == set(CONTEXT)
    assert graph.descendants(["CarbIntake"]) == {"CarbIntake"}
    assert set(influence_graph(chain=True).clique("Age")) == set(CONTEXT)


def middle(world, **changed):
    values = dict(zip(ACTIONABLE, world.task.box.centre.tolist(), strict=True)) | changed
    return torch.tensor([[values[name] for name in ACTIONABLE]], dtype=torch.float64)


def test_between_two_edges_the_probability_is_flat(world, contexts):
    edges = world._edges("BMI", ACTIONABLE)
    inside = [edges[40] + share * (edges[41] - edges[40]) for share in (0.1, 0.5, 0.9)]
    found = [float(world.probability(contexts[:1], ACTIONABLE, middle(world, BMI=value))) for value in inside]
    assert max(found) - min(found) < 1e-9
