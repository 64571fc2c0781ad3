"""What each node is learnt from, by hand: a chain a -> X -> Y with a second cause b of Y."""

from copy import deepcopy
from functools import cache

import numpy as np
import pytest
import torch

from rehearsal_torch.checkpoint import CheckpointError, load, save
from rehearsal_torch.data.causal_task import CausalTask
from rehearsal_torch.data.known_reward import WeightedSum
from rehearsal_torch.data.table import Table
from rehearsal_torch.data.trainable_part import NotFittedError
from rehearsal_torch.estimators.gp_posterior import log_posterior
from rehearsal_torch.graphs.mixed_graph import RehearsalGraph
from rehearsal_torch.problems.trials.random_network import DrawnNetwork
from rehearsal_torch.seeding import sobol
from rehearsal_torch.spaces.box import Box
from rehearsal_torch.surrogates.network import exogenous_model
from rehearsal_torch.surrogates.network.exogenous_model import ExogenousModel, NodeRows, UnitCube
from rehearsal_torch.surrogates.structural_counterfactuals import sample
from rehearsal_torch.training.gradient_descent import Descent
from rehearsal_torch.training.surrogate_fit import fit
from tests.toys.noisy_nodes import CHAIN, chain
from tests.toys.rehearsal_methods import CAUSAL, configuration

NODES = {"graph": ("R", "X", "Y"), "independent": ("Y", "X"), "black_box": ("reward",)}
ACTIONS = torch.rand(
    6, 2, generator=torch.Generator().manual_seed(0), dtype=torch.float64
) * 2 - torch.tensor([0.0, 1.0])
every = pytest.mark.parametrize("name", CAUSAL)


def posterior_of(part):
    return log_posterior(part.rows, part.factors(), part.hyper)


def plain(name):
    return {**configuration("surrogate", name), "task": CHAIN.to_plain()}


def made_of(config):
    return ExogenousModel(**{key: value for key, value in config.items() if key != "_target_"})


@cache
def fitted(name):
    """Not to be changed."""
    return fit(made_of(plain(name)), chain(45, 0))


def answers(model):
    network = model.network()
    values, spreads = network.propagate(ACTIONS, model.draws(16, seed=3), spread=network.task.nodes)
    return torch.cat([values.flatten(), *(each.expand(6, 16).flatten() for each in spreads.values())])


@every
def test_every_configuration_is_fitted_saved_and_loaded(name, tmp_path):
    model = fitted(name)
    save(model, plain(name), tmp_path)
    assert torch.equal(answers(model), answers(load(tmp_path)))
    assert tuple(sorted(model.network().task.nodes)) == tuple(sorted(NODES[plain(name)["structure"]]))
    assert model.draws(8).shape == (8, len(NODES[plain(name)["structure"]]))
    assert torch.equal(model.visited(), chain(45, 0).columns(("a", "b")))
    assert torch.isfinite(answers(model)).all()


def test_the_noise_of_what_is_measured_is_at_least_its_known_error():
    errors = {"X": 0.5, "R": 0.2}
    model = fit(made_of({**plain("exogenous"), "task": CHAIN.to_plain() | {"errors": errors}}), chain(45, 0))
    known, free = (
        each.encoder.log_noises.exp().sqrt() * each.cube.scale for each in (model, fitted("exogenous"))
    )
    nodes = model.network().task.nodes
    for index, node in enumerate(nodes):
        floor = errors.get(node, 0.0)
        assert float(known[index]) == pytest.approx(max(float(free[index]), floor), rel=1e-3)
        assert (
            float((model.plausible(16).mechanisms[index].levels * model.cube.scale[index]).min())
            >= floor - 1e-9
        )
    assert any(float(free[nodes.index(node)]) < floor for node, floor in errors.items())


@pytest.mark.slow
@every
def test_fitting_again_as_rows_come_in_is_repeatable_and_a_loaded_model_goes_on_likewise(name, tmp_path):
    table = chain(44, 0)
    first, second = (Table(table.names, table.values[:count], table.altered[:count]) for count in (43, 44))
    one, other = made_of(plain(name)), made_of(plain(name))
    fit(one, first)
    save(one, plain(name), tmp_path)
    fit(one, second)
    fit(fit(other, first), second)
    assert torch.equal(answers(one), answers(other))
    assert torch.equal(answers(one), answers(fit(load(tmp_path), second)))


def test_a_node_of_actions_alone_has_no_sample_axis_until_its_noise_is_added():
    task = CausalTask.of(
        {
            "graph": {"parents": {"X": ["a", "b"]}},
            "actions": {"a": [0.0, 2.0], "b": [-1.0, 1.0]},
            "reward": "X",
        }
    )
    model = fit(ExogenousModel(task), chain(40, 0))
    values, spreads = model.network().propagate(ACTIONS, model.draws(16), spread=("X",))
    assert values.shape == (6, 16, 1)
    assert spreads["X"].shape == (6, 1)


def test_rows_that_were_set_by_hand_are_left_out_where_they_say_nothing():
    free, set_by_hand = chain(40, 0), chain(20, 1, fixed={"X": 1.5})
    both = fit(ExogenousModel(CHAIN, phi="homoskedastic"), free + set_by_hand)
    assert both.encoder.rows.counts.tolist() == [60, 40, 60]
    alone = fit(ExogenousModel(CHAIN, phi="homoskedastic"), free)
    where = torch.full((1, 3), 0.5, dtype=torch.float64), torch.zeros(1, 1, dtype=torch.float64)
    assert torch.allclose(
        both.network().mechanisms[1].forward(*where), alone.network().mechanisms[1].forward(*where), atol=1e-2
    )
    flat = ExogenousModel(CHAIN, structure="black_box")
    assert flat.rows.kept(free + set_by_hand)[:, 0].tolist() == [True] * 40 + [False] * 20
    with pytest.raises(ValueError, match=r"needs 3 .*, and there are 0 in which X was not set"):
        fit(ExogenousModel(CHAIN), set_by_hand + chain(20, 2, fixed={"X": 1.0}))


def test_condition_keeps_hyper_parameters_and_narrows_what_is_not_known():
    table = chain(40, 0)
    model = fit(ExogenousModel(CHAIN, phi="mixture"), table)
    lengths, before = model.encoder.log_lengths.clone(), model.network()
    row = chain(1, 9)
    model.condition(table + row)
    assert torch.equal(model.encoder.log_lengths, lengths)
    assert len(model.visited()) == 41
    law, old = model.network().mechanisms[1], before.mechanisms[1]
    inputs = law.scaled(row.columns(CHAIN.inputs("X")))
    assert float(law.belief(inputs, torch.zeros(1))[1]) < float(old.belief(inputs, torch.zeros(1))[1])
    model.condition(table)
    assert torch.allclose(
        model.network().mechanisms[1].forward(inputs, torch.zeros(1)),
        old.forward(inputs, torch.zeros(1)),
        atol=1e-9,
    )


@pytest.mark.slow
def test_lightning_trains_to_the_same_evidence_and_held_out_rows_do_not_stop_it():
    table = chain(40, 0)
    solved = fit(ExogenousModel(CHAIN), table)
    descent = Descent(
        max_epochs=300, batch_size=64, learning_rate=0.05, patience=1, precision="64-true", progress=False
    )
    trained = fit(ExogenousModel(CHAIN, fitting="train"), table, descent, chain(30, 5))
    assert torch.allclose(posterior_of(solved.encoder), posterior_of(trained.encoder), atol=1e-3)
    assert {name for _, name, _ in descent.history} == {"encoder/train_loss"}
    assert torch.allclose(answers(solved), answers(trained), atol=0.02)


def retold(**changes):
    """The chain's task, changed."""
    return {**CHAIN.to_plain(), **changes}


@pytest.mark.slow
@every
def test_a_checkpoint_answers_other_bounds_and_refuses_another_graph_or_action(name, tmp_path):
    table = chain(45, 0)
    save(fit(made_of(plain(name)), table), plain(name), tmp_path)
    wide = {action: [lower - 1, upper + 2] for action, (lower, upper) in CHAIN.box.bounds().items()}
    loaded = load(tmp_path, task=retold(actions=dict(reversed(wide.items()))))
    assert loaded.task.actions == CHAIN.actions
    assert loaded.task.box.bounds() == {action: tuple(bounds) for action, bounds in wide.items()}
    assert torch.equal(answers(loaded), answers(load(tmp_path)))
    # Rows that come in are fitted as a model of the wider bounds would fit them.
    assert torch.equal(
        fit(loaded, table).cube.width,
        fit(made_of({**plain(name), "task": retold(actions=wide)}), table).cube.width,
    )
    first = CHAIN.graph.edges[0]
    cut = CausalTask(
        type(CHAIN.graph)(CHAIN.graph.cliques, (*CHAIN.graph.edges, added_to(CHAIN.graph))),
        CHAIN.box,
        CHAIN.reward,
    )
    with pytest.raises(
        CheckpointError, match="graph: it was fitted with nothing in their place, and is used with"
    ):
        load(tmp_path, task=cut)
    assert first in cut.graph.edges


def added_to(graph):
    """An edge that the graph does not have yet."""
    names = graph.names
    return next(
        (a, b)
        for place, a in enumerate(names)
        for b in names[place + 1 :]
        if (a, b) not in graph.edges and graph.parents(b)
    )


@every
def test_another_reward_is_answered_unless_it_was_learnt(name, tmp_path):
    save(fitted(name), plain(name), tmp_path)
    nodes = CHAIN.reward.names
    other = retold(reward={"weights": dict.fromkeys(nodes, -2.0)})
    if plain(name)["structure"] == "black_box":
        with pytest.raises(
            CheckpointError,
            match=r"reward: it was fitted with .*weights .*, and is used with .*weights .* -2",
        ):
            load(tmp_path, task=other)
        return
    network, fresh = load(tmp_path, task=other).network(), load(tmp_path).network()
    values = torch.ones(3, len(network.task.nodes), dtype=torch.float64)
    assert network.reward(values).tolist() == [-2.0 * len(nodes)] * 3
    assert fresh.task.nodes == network.task.nodes


@every
def test_what_has_learnt_nothing_says_so(name):
    model = made_of(plain(name))
    for asked in (
        model.network,
        lambda: model.draws(3),
        model.visited,
        lambda: sample(model, ACTIONS, 2),
        lambda: model.condition(chain(45, 0)),
    ):
        with pytest.raises(NotFittedError, match="this ExogenousModel has not been fitted yet"):
            asked()


@every
def test_every_damaged_number_is_noticed(name):
    model = deepcopy(fitted(name))
    assert model.faults() == []
    for key, value in model.state_dict().items():
        if value.is_floating_point() and value.numel():
            model.load_state_dict({key: torch.full_like(value, torch.nan)}, strict=False)
            assert any(fault.startswith(key) for fault in model.faults())
            model.load_state_dict({key: value.nan_to_num()}, strict=False)


def test_the_noise_of_rows_is_that_of_the_laws_that_decide():
    phi = "heteroskedastic"
    table = chain(40, 1)
    model = fit(ExogenousModel(CHAIN, phi=phi, scale="predictive"), table)
    own = fit(ExogenousModel(CHAIN, phi=phi, scale="noise"), table)
    for place, (node, law) in enumerate(
        zip(model.network().task.nodes, model.network().mechanisms, strict=True)
    ):
        if CHAIN.inputs(node):
            inputs, values = law.scaled(table.columns(CHAIN.inputs(node))), table.columns([node])
            assert torch.allclose(
                model.noise_of_rows()[place], law.abduct(inputs, values).squeeze(-1), atol=1e-6
            )
            # The uncertainty of the mean widens the predictive scale, so that noise in its unit is smaller.
            assert bool((model.abducted()[place].abs() < own.abducted()[place].abs()).all())


def test_noise_of_one_component_is_standard_normal() -> None:
    unit = sobol(3, 4).draw(64, dtype=torch.float64)
    model = fit(ExogenousModel(CHAIN, phi="homoskedastic", components=1), chain(20, 0))
    torch.testing.assert_close(model.draws(64, seed=4), torch.special.ndtri(unit))


GRAPH = RehearsalGraph.of({"X": ["a"], "Y": ["X", "b"]})
TASK = CausalTask(GRAPH, Box.of({"a": (0.0, 2.0), "b": (-1.0, 1.0)}), WeightedSum({"Y": 3.0}))
VALUES = torch.tensor(
    [[0.2 * n, 0.1 * n - 0.3, float(n), float(n * n)] for n in range(8)], dtype=torch.float64
)


def table(*altered):
    marks = torch.zeros(8, 4, dtype=torch.bool)
    for row, column in altered:
        marks[row, column] = True
    return Table(("a", "b", "X", "Y"), VALUES, marks)


def test_with_the_graph_a_node_is_learnt_from_its_parents_where_it_was_not_set():
    rows = NodeRows(TASK, "graph")
    assert rows.inputs == (("a",), ("X", "b"))
    inputs, values, kept = rows.examples(table((1, 2), (4, 3)))
    assert inputs.shape == (8, 2, 2)
    assert torch.equal(inputs[:, 0], torch.stack([VALUES[:, 0], torch.zeros(8, dtype=torch.float64)], -1))
    assert torch.equal(inputs[:, 1], VALUES[:, [2, 1]])
    assert torch.equal(values, VALUES[:, 2:])
    assert kept.T.tolist() == [[n != 1 for n in range(8)], [n != 4 for n in range(8)]]


def test_without_the_graph_rows_are_left_out_in_which_something_between_was_set():
    independent = NodeRows(TASK, "independent")
    assert independent.structured_task.nodes == ("Y",)
    assert set(independent.inputs[0]) == {"a", "b"}
    assert independent.kept(table((1, 2), (4, 3)))[:, 0].tolist() == [n not in (1, 4) for n in range(8)]
    box = NodeRows(TASK, "black_box")
    assert torch.equal(box.values(table())[:, 0], 3.0 * VALUES[:, 3])
    assert box.kept(table((1, 2), (4, 3)))[:, 0].tolist() == [n not in (1, 4) for n in range(8)]


def test_a_value_that_was_not_measured_is_no_example_of_its_node_and_of_what_it_acts_on():
    gaps = Table(("a", "b", "X", "Y"), VALUES.clone(), table((1, 2)).altered)
    gaps.values[3, 2] = torch.nan
    inputs, values, kept = NodeRows(TASK, "graph").examples(gaps)
    assert kept.T.tolist() == [[n not in (1, 3) for n in range(8)], [n != 3 for n in range(8)]]
    assert bool(inputs.isfinite().all() and values.isfinite().all())
    assert NodeRows(TASK, "black_box").kept(gaps)[:, 0].tolist() == [n != 1 for n in range(8)]


def test_a_row_with_a_gap_counts_as_much_as_one_in_which_it_was_set():
    whole, gap = chain(40, 0), chain(41, 0)
    gap.values[40, gap.names.index("R")] = torch.nan
    model, other = (fit(ExogenousModel(CHAIN, phi="homoskedastic"), rows) for rows in (whole, gap))
    place = CHAIN.nodes.index("R")
    assert other.encoder.rows.counts[place] == 40
    assert bool(torch.isfinite(answers(other)).all())
    assert other.contradicted() == model.contradicted()


def test_a_measured_node_is_learnt_though_its_cause_was_not_measured():
    rows = chain(60, 1)
    rows.values[15:, rows.names.index("X")] = torch.nan
    task = CausalTask(CHAIN.graph, CHAIN.box, WeightedSum({"Y": 1.0}))
    alone = fit(ExogenousModel(task), Table(rows.names, rows.values[:15], rows.altered[:15]))
    both, node = fit(ExogenousModel(task), rows), task.nodes.index("Y")
    assert both.encoder.rows.counts[node] == 60
    assert int(both.complete[node].sum()) == 15
    values = {name: torch.linspace(-1, 1, 9).double() for name in ("X", "b")}
    inputs = torch.cartesian_prod(*(values[name] for name in task.inputs("Y")))
    x, b = (inputs[:, task.inputs("Y").index(name)] for name in ("X", "b"))

    def error(model):
        mechanism = model.network().mechanisms[node]
        value = mechanism.forward(mechanism.scaled(inputs), torch.zeros(1, 1).double())[:, 0]
        return float((value - (x**2 / 2 - b)).square().mean().sqrt())

    assert error(both) < 0.8 * error(alone)
    assert torch.isfinite(both.plausible(8).propagate(ACTIONS, both.draws(4))).all()
    held = deepcopy(both)
    held.condition(rows)
    assert torch.allclose(answers(held), answers(both))


def test_inputs_are_scaled_to_the_unit_cube_and_values_standardised():
    rows = NodeRows(TASK, "graph")
    cube = UnitCube(rows)
    inputs, values, kept = rows.examples(table((7, 2)))
    cube.solve(inputs, values, kept)
    scaled = cube.scaled(inputs)
    assert torch.allclose(scaled[:, 0, 0], VALUES[:, 0] / 2.0)
    assert torch.allclose(scaled[:, 1, 0], VALUES[:, 2] / 7.0)
    assert torch.allclose(scaled[:, 1, 1], (VALUES[:, 1] + 1.0) / 2.0)
    left = VALUES[:7, 2]
    assert cube.centre[0] == pytest.approx(float(left.mean()))
    assert cube.scale[0] == pytest.approx(float(left.std()))
    assert cube.faults() == []
    cube.scale[0] = 0.0
    assert cube.faults() == ["width and scale: expected numbers above 0"]


def test_nodes_whose_noise_depends_on_what_they_do_not_have_are_contradicted():
    stream = torch.Generator().manual_seed(1)
    a, b = torch.rand(2, 40, generator=stream, dtype=torch.float64)
    a, b = 2 * a, 2 * b - 1
    noise = 0.1 * torch.randn(2, 40, generator=stream, dtype=torch.float64)
    x = (2 * a).sin() + noise[0]
    for hidden, told in ((0.0, ()), (1.5, ("Y",))):
        y = x - b.square() + hidden * a + noise[1]
        rows = Table(
            ("a", "b", "X", "Y"),
            torch.stack([a, b, x, y], -1),
            torch.tensor([True, True, False, False]).expand(40, 4).clone(),
        )
        assert fit(ExogenousModel(TASK, phi="homoskedastic", components=1), rows).contradicted() == told
    few = Table(rows.names, rows.values[:11], rows.altered[:11])
    assert fit(ExogenousModel(TASK, phi="homoskedastic", components=1), few).contradicted() == ()


def contradicted(traits, rows=60, seeds=range(40, 46)):
    """How many networks by seed have a mechanism that their experiments contradict."""
    found = 0
    for seed in seeds:
        world, stream = DrawnNetwork(seed=seed, traits=traits), np.random.default_rng(seed)
        table = world.experiments(world.random_actions(rows, stream), world.noise_rows(rows, stream))
        found += bool(fit(ExogenousModel(world.task), table).contradicted())
    return found


@pytest.mark.slow
def test_residuals_contradict_a_graph_that_lacks_an_arrow_and_no_other():
    assert contradicted(["wrong_arrow"]) >= 3
    assert contradicted([]) == 0


@pytest.mark.slow
@pytest.mark.parametrize(
    ("rows", "options"),
    [(560, {"kernel": "rbf"}), pytest.param(2500, {"decoder": "gp"}, marks=pytest.mark.slow)],
)
def test_many_rows_give_noises_of_two_modes_and_of_a_varying_scale_their_scales(rows, options):
    stream = torch.Generator().manual_seed(1)
    first, second = torch.rand(2, rows, generator=stream, dtype=torch.float64)
    normal, sign = torch.randn(2, rows, generator=stream, dtype=torch.float64)
    x = (5 * first).sin() + 0.3 * sign.sign() + 0.06 * normal
    y = x * second + (0.05 + 0.3 * second) * torch.randn(rows, generator=stream, dtype=torch.float64)
    parents = {"X": ("a",), "Y": ("X", "b")}
    model = ExogenousModel(
        {
            "graph": {"parents": parents},
            "actions": {"a": (0.0, 1.0), "b": (0.0, 1.0)},
            "reward": {"weights": {"Y": 1.0}},
        },
        **options,
    )
    altered = torch.tensor([[True, True, False, False]]).repeat(rows, 1)
    altered[: rows // 8, 2] = True
    table = Table(("a", "b", "X", "Y"), torch.stack([first, second, x, y], -1), altered)
    fit(model, table)
    recovered, kept = model.recovered(), model.processes.rows.kept
    for own, where in zip(recovered, kept, strict=True):
        assert float(own[where].std()) == pytest.approx(1, abs=0.05)
    assert not model.contradicted()
    model.condition(table)
    torch.testing.assert_close(model.recovered(), recovered)
    actions, noise = torch.rand(5, 2, generator=stream, dtype=torch.float64), model.draws(256)
    values = model.network().propagate(actions, noise)[0]
    drawn = model.plausible(16).propagate(actions.unsqueeze(-2), noise).squeeze(-3)
    torch.testing.assert_close(drawn.mean((0, -2)), values.mean(-2), rtol=0, atol=0.1)
    wide = torch.tensor((0.3**2 + 0.06**2) ** 0.5, dtype=torch.float64).expand(5)
    for each in (values, *drawn):
        torch.testing.assert_close(each[..., 0].std(-1), wide, rtol=0.2, atol=0)
    assert model.spread.varies.tolist() == [False, True]
    assert model.mixed.adopted[0] or rows > 560


def test_what_incomplete_rows_have_in_common_is_summed_in_blocks(monkeypatch):
    """Of ten thousand such rows all products at once would take gigabytes."""
    shared = torch.randn(4, 11, generator=torch.Generator().manual_seed(0)).double()
    products = (shared.mT @ shared).abs()
    monkeypatch.setattr(exogenous_model, "COMPARED", 3)
    assert torch.allclose(exogenous_model._common(shared), products.sum(-1) - products.diagonal())
