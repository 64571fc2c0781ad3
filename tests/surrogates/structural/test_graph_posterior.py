"""The posterior over graphs and parameters: who learns from which row, what weighs graphs, and what scenarios
say."""

import pytest
import torch

from rehearsal_torch.data.rehearsal_task import RehearsalTask
from rehearsal_torch.data.table import Table
from rehearsal_torch.graphs.mixed_graph import RehearsalGraph
from rehearsal_torch.objectives.success_probability import SuccessProbability
from rehearsal_torch.problems.cases.bermuda import Bermuda, bermuda_graphs
from rehearsal_torch.problems.cases.changing_world import FollowedStore
from rehearsal_torch.problems.cases.linear_examples import RideHailing
from rehearsal_torch.problems.world_size import SampleSize
from rehearsal_torch.spaces.box import Box
from rehearsal_torch.spaces.polytope import Polytope
from rehearsal_torch.surrogates.structural.graph_posterior import (
    LEAST,
    EquationDraws,
    GraphBelief,
    StructuralPosterior,
)
from rehearsal_torch.training.surrogate_fit import fit
from tests.toys.linear_truth import chain
from tests.toys.toy_posteriors import Toy, toy_cases

WORLD = chain()
REGRESSIONS = pytest.mark.parametrize("regression", ["conjugate", "ridge"])


def rehearsed(world, names, values, rounds=20, seed=0):
    """Rows in which `names` were set to values drawn around `values`."""
    random = torch.Generator().manual_seed(seed)
    found = []
    for index in range(rounds):
        context = world.given([world.case(index)])[0]
        value = torch.tensor(values, dtype=torch.float64) + 0.3 * torch.randn(
            len(names), generator=random, dtype=torch.float64
        )
        row = world.rehearse(context, names, value, index + 1)
        found.append(Table(row.names, row.values[-1:], row.altered[-1:]))
    return sum(found[1:], found[0])


def learnt(world, table, **settings):
    return fit(StructuralPosterior(world.task, world.hypotheses, **settings), table)


def drawn(model, members, altered=()):
    """Draws of an equation's parameters."""
    (place,) = [
        index
        for index, each in enumerate(model.equations)
        if each.members == members and each.altered == altered
    ]
    return model.regressions[place].draw(4000, torch.Generator().manual_seed(0))


@pytest.fixture(scope="module")
def route():
    return RideHailing(size=SampleSize(rows=300, contexts=60))


@pytest.fixture(scope="module")
def moved(route):
    """Its first rows, and rounds that set the recommendation."""
    return route.observations(), rehearsed(route, ("recommend",), (-1.0,), 60)


def test_an_altered_row_teaches_every_equation_but_that_of_what_was_altered(route, moved):
    first, rounds = moved
    one, other = learnt(route, first), learnt(route, first + rounds)
    for mine, earlier, later in zip(one.equations, one.regressions, other.regressions, strict=True):
        touched = "recommend" in mine.members
        # Means of centred columns are zero but for rounding, which depends on the number of rows.
        same = torch.allclose(earlier.posterior_mean, later.posterior_mean, rtol=0, atol=1e-12)
        assert same == touched
    spoiled = Table(
        rounds.names, torch.where(rounds.altered, rounds.values + 7.0, rounds.values), rounds.altered
    )
    again = learnt(route, first + spoiled)
    for mine, earlier, later in zip(one.equations, other.regressions, again.regressions, strict=True):
        assert torch.equal(earlier.posterior_mean, later.posterior_mean) == (
            "recommend" not in mine.parents
        ), "what was set is seen by its children alone"


def test_the_altered_part_of_a_clique_has_parameters_of_its_own(route, moved):
    first, rounds = moved
    model = learnt(route, first + rounds)
    _, _, joined = drawn(model, ("recommend", "congestion"))
    seen = float((joined[:, 0, 1] / joined[:, 0, 0]).mean())
    weights, _, noise = drawn(model, ("congestion",), ("recommend",))
    assert seen == pytest.approx(3.0 + 0.008 / 0.0144, abs=0.15), (
        "what is seen together has the common noise in its slope"
    )
    assert float(weights[:, -1, 0].mean()) == pytest.approx(3.0, abs=0.05), (
        "what follows from setting has not"
    )
    assert float(noise.mean()) == pytest.approx(0.0144, rel=0.4)


def test_until_there_are_rows_of_its_own_the_association_stands_in(route):
    model = learnt(route, route.observations())
    weights, _, _ = drawn(model, ("congestion",), ("recommend",))
    sure, _, _ = drawn(
        learnt(route, route.observations(), prior_weight=60.0), ("congestion",), ("recommend",)
    )
    assert float(sure[:, -1, 0].mean()) == pytest.approx(3.556, abs=0.1)
    assert float(weights[:, -1, 0].std()) > 2 * float(sure[:, -1, 0].std())


def test_equations_that_hypotheses_share_are_learnt_once(route):
    model = StructuralPosterior(route.task, route.hypotheses)
    assert len(model.equations) == 9, (
        "two of time, discount and rating; of recommend and of congestion; the clique and its two altered "
        "parts"
    )
    assert len(StructuralPosterior(Bermuda("qwz23").task, bermuda_graphs()).equations) == 10, (
        "eight, and DIC and TA without the salinity"
    )


@REGRESSIONS
@pytest.mark.parametrize("forgetting", [1.0, 0.9])
def test_a_round_weighs_graphs_by_what_was_foreseen_before_it(regression, forgetting):
    world = FollowedStore(size=SampleSize(rows=12))
    table = world.observations() + rehearsed(world, ("price",), (1.0,), 5)
    model = learnt(world, table, regression=regression, forgetting=forgetting)
    logs = torch.zeros(3, dtype=torch.float64)
    for row in range(12, 17):
        before = Table(table.names, table.values[:row], table.altered[:row])
        earlier = learnt(world, before, regression=regression, forgetting=forgetting, initial=12)
        new = Table(table.names, table.values[row : row + 1], table.altered[row : row + 1])
        place = {each: part for each, part in zip(earlier.equations, earlier.regressions, strict=True)}
        foreseen = [
            sum(
                place[each].log_predictive(new.columns(each.parents), new.columns(each.members))
                for each in hypothesis.under(("price",))
            )
            for hypothesis in earlier.hypotheses
        ]
        logs = logs * forgetting + torch.cat(foreseen)
    torch.testing.assert_close(model.graph_log_weights(), torch.log_softmax(logs, 0), rtol=1e-8, atol=1e-8)


def test_graphs_that_setting_tells_apart_are_told_apart(route, moved):
    first, rounds = moved
    assert torch.allclose(
        learnt(route, first).graph_weights(), torch.full((3,), 1 / 3, dtype=torch.float64)
    ), "observations say nothing of the graph"
    few = learnt(route, first + Table(rounds.names, rounds.values[:5], rounds.altered[:5]))
    assert float(few.graph_weights()[1]) < 1e-6, "congestion -> recommend: congestion would not have followed"
    told = learnt(route, first, weights=[0.0, 1.0, 3.0])
    assert told.graph_weights().tolist() == pytest.approx([0.0, 0.25, 0.75])


def test_bermudas_five_graphs_become_the_three_that_differ_in_the_context_alone():
    world = Bermuda("qwz23", size=SampleSize(rows=10, contexts=60))
    model = learnt(world, world.observations() + rehearsed(world, ("Omega",), (-0.5,), 60))
    assert model.graph_weights().tolist() == pytest.approx([1 / 3, 1 / 3, 1 / 3, 0, 0], abs=0.01)
    models = model.sampled(300)
    contexts = world.given([world.case(0), world.case(1)])
    scenarios = models.scenarios(contexts, ("DIC",))
    assert torch.equal(
        scenarios.only(("Light", "Temp", "Sal")).offset, contexts.unsqueeze(1).expand(-1, 300, -1)
    )


def test_weights_collapse_and_come_back():
    world = FollowedStore(size=SampleSize(rows=12, contexts=400))
    gone = FollowedStore(0.0, size=SampleSize(rows=12, contexts=400))
    follows, leads = (
        rehearsed(world, ("price",), (2.0,), 200),
        rehearsed(gone, ("price",), (2.0,), 150, seed=1),
    )
    model = learnt(world, world.observations() + follows)
    logs = model.graph_log_weights()
    assert torch.isfinite(logs).all()
    assert float(logs[2]) < -300, "rival -> price is all but impossible"
    assert float(model.graph_weights().sum()) == pytest.approx(1.0)
    assert 2 not in model.sampled(1000).graphs
    later = learnt(world, world.observations() + follows + leads, forgetting=0.9)
    assert float(later.graph_weights()[2]) > 0.2, "the last rounds say otherwise"
    assert float(learnt(world, world.observations() + follows + leads).graph_weights()[2]) < 1e-6, (
        "unless nothing is forgotten"
    )


@REGRESSIONS
def test_scenarios_follow_their_own_models(route, moved, regression):
    model = learnt(
        route,
        moved[0] + Table(moved[1].names, moved[1].values[:8], moved[1].altered[:8]),
        regression=regression,
    )
    models = model.sampled(200, seed=3)
    contexts = route.given([route.case(index) for index in range(2)])
    for altered in ((), ("recommend",), ("discount",), ("discount", "recommend")):
        scenarios = models.scenarios(contexts, altered)
        assert scenarios.offset.shape == (2, 200, 7)
        assert scenarios.gain.shape == (200, 7, len(altered))
        actions = torch.tensor([[0.0, 0.0], [1.3, -0.4]], dtype=torch.float64)[
            :, None, : len(altered)
        ].expand(-1, 2, -1)
        rows = scenarios.rows(actions)
        assert torch.equal(rows[..., :2], contexts.unsqueeze(1).expand(2, 2, 200, 2))
        assert torch.allclose(
            scenarios.only(altered).rows(actions), actions.unsqueeze(2).expand(2, 2, 200, -1)
        )
        own = models.log_density(rows, altered).diagonal(dim1=-2, dim2=-1)
        # Noise does not depend on context or action, hence neither does the density of a scenario under its
        # own model.
        torch.testing.assert_close(own, own[0, 0].expand_as(own), rtol=1e-6, atol=1e-6)
        assert float((own[0, 0] + models.entropy(altered)).mean()) == pytest.approx(0.0, abs=0.5)


def test_densities_are_those_of_a_normal_law():
    task = RehearsalTask(
        RehearsalGraph.of({"a": ("x",), "b": ("x",), "y": ("a", "b")}, [("a", "b")]),
        ("x",),
        Box.of({"a": (-1, 1)}),
        Polytope.of({"y": (0, 1)}),
    )
    stream = torch.Generator().manual_seed(0)
    table = Table.observed(("x", "a", "b", "y"), torch.randn(30, 4, dtype=torch.float64, generator=stream))
    models = fit(StructuralPosterior(task), table).sampled(5)
    given = torch.tensor([[0.7]], dtype=torch.float64)
    many = torch.randn(3, 4, dtype=torch.float64, generator=stream)
    many[:, 0] = 0.7
    found = models.log_density(many[:, [task.graph.names.index(name) for name in task.graph.names]], ())
    assert found.shape == (3, 5)
    order = task.graph.names
    base = models.scenarios(given, ())
    # Moments of V given (G, theta) from its own equations, by hand.
    first, last = (models.equation_draws(0, models.hypotheses[0].equations[place]) for place in (0, -1))
    for k in range(5):
        middle = first.intercept[k] + first.weights[k, 0] * 0.7
        step = last.weights[k, :, 0]
        mean = torch.cat([middle, (last.intercept[k] + step @ middle)])
        lift = torch.zeros(3, 3, dtype=torch.float64)
        lift[:2, :2], lift[2, :2], lift[2, 2] = first.root[k], step @ first.root[k], last.root[k, 0, 0]
        law = torch.distributions.MultivariateNormal(mean, scale_tril=lift)
        named = torch.stack([many[:, order.index(name)] for name in ("a", "b", "y")], -1)
        torch.testing.assert_close(found[:, k], law.log_prob(named))
        assert float(models.entropy(())[k]) == pytest.approx(float(law.entropy()))
    assert base.names == order


@REGRESSIONS
def test_with_many_rows_scenarios_are_what_the_world_does(regression):
    world = RideHailing(size=SampleSize(rows=3000, contexts=400))
    count = 400 if regression == "conjugate" else 40
    model = learnt(
        world,
        world.observations() + rehearsed(world, ("recommend",), (-1.0,), count),
        regression=regression,
        prior_weight=0.2,
    )
    context = world.given([world.case(0)])
    for names, value in ((("recommend",), -1.2), (("discount",), 0.5), ((), 0.0)):
        action = torch.full((1, len(names)), value, dtype=torch.float64)
        mine = model.sampled(20_000).scenarios(context, names).rows(action)[0]
        truth = world.rehearse(context[0], names, action[0], 20_000).columns(world.task.graph.names)
        spread = truth.std(0).clamp_min(0.05)
        assert ((mine.mean(0) - truth.mean(0)).abs() < 0.25 * spread).all()
        assert torch.allclose(mine.std(0), truth.std(0), rtol=0.15, atol=1e-9)


def test_models_are_sorted_by_graph_in_proportion_to_the_weights(route):
    model = learnt(route, route.observations(), weights=[0.5, 0.3, 0.2])
    for count in (1, 7, 1000):
        graphs = model.sampled(count, seed=count).graphs
        assert torch.equal(graphs, graphs.sort().values)
        share = torch.bincount(graphs, minlength=3)
        assert ((share - count * torch.tensor([0.5, 0.3, 0.2])).abs() < 1 + 1e-6).all()


def test_questions_are_about_the_same_models(route):
    model = learnt(route, route.observations())
    contexts = route.given([route.case(0)])
    one, other = model.sampled(50, seed=4), model.sampled(50, seed=4)
    first = one.scenarios(contexts, ("recommend",))
    other.scenarios(contexts, ("discount",))
    again = other.scenarios(contexts, ("recommend",))
    assert torch.equal(first.offset, again.offset)
    assert torch.equal(first.gain, again.gain)
    assert not torch.equal(first.offset, model.sampled(50, seed=5).scenarios(contexts, ("recommend",)).offset)


def test_a_table_that_begins_with_altered_rows_is_refused(route, moved):
    with pytest.raises(ValueError, match="begin with observations"):
        learnt(route, moved[1])


def test_what_may_not_be_altered_is_refused(route):
    models = learnt(route, route.observations()).sampled(3)
    with pytest.raises(ValueError, match=r"\['time'\] may not be altered"):
        models.scenarios(route.given([route.case(0)]), ("time",))
    with pytest.raises(ValueError, match="at least 1 model"):
        learnt(route, route.observations()).sampled(0)


def test_without_hypotheses_the_tasks_graph_is_the_only_one():
    model = fit(StructuralPosterior(WORLD.task.to_plain()), WORLD.table(60))
    assert model.graph_weights().tolist() == [1.0]
    assert StructuralPosterior(WORLD.task, []).hypotheses == StructuralPosterior(WORLD.task, None).hypotheses


@pytest.mark.parametrize("width", [1, 3])
def test_draws_of_an_equation_hold_the_factor_of_their_noise(width):
    stream = torch.Generator().manual_seed(width)
    mixed = torch.randn(6, width, width, generator=stream, dtype=torch.float64)
    covariance = mixed @ mixed.mT + torch.eye(width, dtype=torch.float64)
    weights, intercept = torch.randn(6, 2, width, generator=stream), torch.randn(6, width, generator=stream)
    made = EquationDraws.of(weights, intercept, covariance)
    torch.testing.assert_close(made.root @ made.root.mT, covariance)
    some = made.part(2, 5)
    assert torch.equal(some.weights, weights[2:5])
    assert torch.equal(some.intercept, intercept[2:5])
    assert torch.equal(some.root, made.root[2:5])


FEW = {"search_scenarios": 50, "validation_scenarios": 50, "information_models": 5, "entropy": "sampled"}


def belief(lengths, unaltered):
    graphs = torch.cat([torch.full((length,), index) for index, length in enumerate(lengths)])
    weights = torch.tensor(lengths, dtype=torch.float64) / sum(lengths)
    return GraphBelief(graphs, weights, unaltered)


def test_gains_are_those_of_each_graphs_own_scenarios():
    lengths = (60, 40, 5)
    unaltered = torch.zeros(105, 2, dtype=torch.bool)
    unaltered[60:70] = True
    desired = torch.zeros(105, 2, dtype=torch.bool)
    # Case 0: helps under both graphs. Case 1: helps under the first, hurts under the second.
    desired[:30], desired[60:90, 0], desired[60:64, 1] = True, True, True
    first, second = belief(lengths, unaltered).judged(desired)
    assert first == {
        "stand": pytest.approx(100 / 105, abs=1e-6),
        "worst": 0.5,
        "worst_graph": 0,
        "worst_weight": pytest.approx(60 / 105, abs=1e-6),
        "judged": pytest.approx(100 / 105, abs=1e-6),
        "graphs": 3,
    }
    assert second["stand"] == pytest.approx(60 / 105, abs=1e-6)
    assert (second["worst"], second["worst_graph"]) == (pytest.approx(-0.15), 1)


def test_graphs_with_few_scenarios_are_not_judged():
    lengths = (LEAST - 1, LEAST - 1)
    none = torch.zeros(sum(lengths), 1, dtype=torch.bool)
    assert belief(lengths, none).judged(none) == [{"judged": 0.0, "graphs": 2}]


def test_an_action_that_only_one_graph_supports_is_recorded_as_such():
    # Under the second graph y falls with a: what helps under the first hurts there.
    toy = Toy((0.7, 0.3), (1.0, -1.0), (0.1, 0.1))
    (one,) = SuccessProbability.for_cases(toy, toy_cases(1), test_scenarios=2000, **FEW).sets
    (found,) = one.appraise(torch.tensor([[1.5]], dtype=torch.float64))
    graphs = found.trace["graphs"]
    assert graphs["stand"] == pytest.approx(0.7)
    assert (graphs["worst_graph"], graphs["worst_weight"]) == (1, pytest.approx(0.3))
    assert graphs["worst"] < -0.1
    assert found.estimate.point > found.baseline.point, "on average it helps"


def test_a_single_graph_is_not_compared():
    (one,) = SuccessProbability.for_cases(Toy(), toy_cases(1), **FEW).sets
    assert one.appraise(torch.tensor([[1.5]], dtype=torch.float64))[0].trace == {}
