"""What every causal world promises: the same at every call, expectations that agree with experiments, an
optimum that nothing beats."""

import json
from importlib import import_module

import numpy as np
import pytest
import torch
import yaml
from hydra.utils import instantiate
from omegaconf import OmegaConf

from rehearsal_torch.data.causal_task import CausalTask
from rehearsal_torch.data.decision import Decision
from rehearsal_torch.problems.trials.causal_world import CausalWorld
from rehearsal_torch.problems.trials.settable_worlds import SettableWorld
from rehearsal_torch.spaces.box import Alteration
from tests.places import CONF

DATASETS = CONF / "dataset"
CHANGED = {
    "dropwave, three modes, std": ("dropwave", {"noise": {"modes": 3, "reading": "std"}, "scale": 2.0}),
    "dropwave, means, factors and weights": (
        "dropwave",
        {"noise": {"means": [0.0, 0.3], "factors": [1.0, 4.0], "weights": [0.25, 0.75]}},
    ),
    "dropwave, one mode": ("dropwave", {"noise": {"modes": 1, "sigma": 0.3}}),
    "alpine2, bounded": ("alpine2", {"mechanism": "dgm_bounded", "scale": 1.0, "noise": {"sigma": 0.4}}),
    "alpine2, anm, noise with a mean": (
        "alpine2_unit",
        {"noise": {"modes": 2, "means": [-0.2, 0.4], "factors": [1.4, 1.0]}},
    ),
    "alpine2, non-dgm, three modes": ("alpine2_non_dgm", {"noise": {"modes": 3}, "scale": 0.5}),
    "rosenbrock, noise with a mean": (
        "rosenbrock",
        {"noise": {"means": [-0.2, 0.4], "factors": [1.4, 1.0]}, "scale": 2.0},
    ),
    "epidemic, 13, row, sum": ("epidemic", {"actions": 13, "inputs": "row", "noise": {"sigma": 0.3}}),
    "pooled testing, whole": ("pooled_testing", {"whole": True, "noise": {"sigma": 0.4}}),
    "pooled testing, no noise": ("pooled_testing", {"noise_scale": 0.0}),
    "drawn network, strained": ("drawn_network", {"traits": ["misspecified", "noise", "levels", "far"]}),
}
# Unequal weights of the modes, in every world that has modes.
UNEQUAL = (0.7, 0.3)
WEIGHTED = {
    f"{path.stem}, unequal weights": (path.stem, {"noise": {"modes": 2, "weights": list(UNEQUAL)}})
    for path in sorted(DATASETS.glob("*.yaml"))
    if "weights" in (yaml.safe_load(path.read_text(encoding="utf-8")).get("noise") or {})
}


def targeted(path):
    config = yaml.safe_load(path.read_text(encoding="utf-8"))
    module, _, name = config.pop("_target_").rpartition(".")
    return getattr(import_module(module), name), config


def made(name, seed=0):
    option, changes = {**CHANGED, **WEIGHTED}.get(name, (name, {}))
    config = OmegaConf.load(DATASETS / f"{option}.yaml")
    given = {"path": None} if "path" in config else {}
    return instantiate(OmegaConf.merge(config, given, changes, {"seed": seed}))


WORLDS = [
    path.stem
    for path in sorted(DATASETS.glob("*.yaml"))
    if isinstance(targeted(path)[0], type)
    and issubclass(targeted(path)[0], CausalWorld)
    and not issubclass(targeted(path)[0], SettableWorld)
]
every = pytest.mark.parametrize("name", [*WORLDS, *CHANGED])


@pytest.fixture(scope="module")
def worlds():
    built = {}
    return lambda name: built.setdefault(name, made(name))


def chosen(world, action, keep=None):
    return Decision(
        Alteration(world.task.actions, action),
        0.0,
        recommendation=None if keep is None else Alteration(world.task.actions, keep),
    )


def tried(world):
    """Random actions, and the best one."""
    return torch.cat([world.task.box.sobol(6, seed=3), world.optimal_action[None]])


def test_the_worlds_of_the_papers_are_there():
    assert {"dropwave", "alpine2", "rosenbrock", "ackley", "epidemic", "pooled_testing", "chemostat"} <= set(
        WORLDS
    )


@pytest.mark.parametrize("name", WORLDS)
def test_the_start_design_depends_on_the_seed_alone(worlds, name):
    world, table = worlds(name), worlds(name).observations()
    assert len(table) == world.initial == 2 * (len(world.task.actions) + 1)
    assert table.names == (*world.task.actions, *world.task.nodes)
    assert torch.equal(table.values, made(name).observations().values)
    assert not torch.equal(table.values, made(name, seed=1).observations().values)
    world.task.check(table)
    assert table.altered[:, : len(world.task.actions)].all()
    assert not table.altered[:, len(world.task.actions) :].any()
    assert len(world.held_out()) >= 50
    assert not torch.equal(world.held_out().values[: len(table)], table.values)


@pytest.mark.bench
@pytest.mark.parametrize("name", [*WORLDS, *CHANGED, *WEIGHTED])
def test_expectations_agree_with_experiments(worlds, name):
    world, count = worlds(name), 2000
    actions = tried(world)
    rewards = world.rewards(
        world.simulate(actions[:, None], world.noise_rows(count, np.random.default_rng(5)))
    )
    error = rewards.std(-1) / count**0.5
    assert (
        (rewards.mean(-1) - world.expected(actions)).abs() <= 5 * error + 1e-9 * rewards.abs().amax(-1)
    ).all()


def test_the_modes_of_every_causal_world_can_have_weights(worlds):
    # The chemostat's noise is normal, and has no modes; a drawn network draws its noise.
    assert {option for option, _ in WEIGHTED.values()} == set(WORLDS) - {"chemostat", "drawn_network"}
    for name in WEIGHTED:
        world = worlds(name)
        assert {world.noise[node].weights for node in world.task.nodes} == {UNEQUAL}
        draws = world.noise_rows(4000, np.random.default_rng(8))
        for node, column in zip(world.task.nodes, draws.T, strict=True):
            found = world.noise[node]
            error = (found.variance / len(column)) ** 0.5
            assert abs(float(column.mean()) - found.mean) <= 5 * error, (name, node)


@pytest.mark.slow
@every
def test_expectations_do_not_depend_on_the_batch(worlds, name):
    world = worlds(name)
    actions = tried(world)
    whole = world.expected(actions)
    single = torch.stack([world.expected(each) for each in actions])
    torch.testing.assert_close(whole, single, rtol=1e-10, atol=1e-10)
    assert world.expected(actions.reshape(1, 7, 1, -1)).shape == (1, 7, 1)
    # With another seed a drawn network is another one.
    same = made(name, seed=0 if name.startswith("drawn") else 4)
    torch.testing.assert_close(same.expected(actions), whole, rtol=0, atol=0)


@pytest.mark.slow
@pytest.mark.parametrize("name", [*WORLDS, *CHANGED, *WEIGHTED])
def test_nothing_beats_the_optimum(worlds, name):
    world = worlds(name)
    best = world.optimal_action
    world.task.check_action(best)
    slack = 1e-9 * max(1.0, abs(world.optimal_value))
    assert float(world.expected(best)) == pytest.approx(world.optimal_value, abs=slack)
    box, count = world.task.box, 100
    stream = torch.Generator().manual_seed(0)
    steps = (
        torch.randn(count, len(best), generator=stream, dtype=torch.float64)
        * torch.logspace(-4, -0.5, count, dtype=torch.float64)[:, None]
    )
    others = torch.cat([box.sobol(count, seed=7), box.project(best + steps * box.width)])
    # What is searched for is found to 1e-4 of its size; what is known exactly is exceeded by rounding alone.
    assert float(world.expected(others).max()) <= world.optimal_value + 1e-4 * max(
        1e-3, abs(world.optimal_value)
    )


@pytest.mark.slow
@every
def test_simulation_takes_any_shape(worlds, name):
    world = worlds(name)
    actions, noise = tried(world), world.noise_rows(5, np.random.default_rng(0))
    nodes = world.simulate(actions[:, None], noise)
    assert nodes.shape == (7, 5, len(world.task.nodes))
    torch.testing.assert_close(nodes[2, 3], world.simulate(actions[2], noise[3]), rtol=1e-12, atol=1e-12)
    assert nodes.isfinite().all()
    assert world.rewards(nodes).shape == (7, 5)


@every
def test_the_mean_of_a_node_is_that_of_its_equation_over_the_noise(worlds, name):
    world, count = worlds(name), 20_000
    action, noise = world.task.box.sobol(1, seed=9)[0], world.noise_rows(count, np.random.default_rng(4))
    known = dict(zip(world.task.nodes, world.simulate(action, noise[0]), strict=True))
    known |= dict(zip(world.task.actions, action, strict=True))
    for place, node in enumerate(world.task.nodes):
        inputs = {each: known[each] for each in world.task.inputs(node)}
        if not inputs:
            continue  # a root, whose values are sampled
        mean = world.mean_of(node, inputs)
        if mean is None:
            assert (name, node) == ("dropwave_unit", "Y")
            continue
        values = world.equation(node, inputs, noise[:, place]).expand(count)
        assert abs(float(values.mean() - mean)) <= 5 * float(values.std()) / count**0.5 + 1e-9 * abs(
            float(mean)
        )
        two = world.mean_of(node, {key: torch.stack([each, each]) for key, each in inputs.items()})
        torch.testing.assert_close(two, mean.expand(2), rtol=1e-12, atol=1e-12)


# In the released code's Dropwave Y follows from the radius; X is a measurement of it.
@pytest.mark.parametrize("name", [name for name in (*WORLDS, *CHANGED) if name != "dropwave_unit"])
def test_each_node_follows_from_its_inputs_alone(worlds, name):
    world = worlds(name)
    noise = world.noise_rows(1, np.random.default_rng(1))[0]
    first, second = world.task.box.sobol(2, seed=9)
    known = dict(zip(world.task.nodes, world.simulate(first, noise), strict=True))
    for place, node in enumerate(world.task.nodes):
        inputs = world.task.inputs(node)
        # Actions that are no inputs of the node are changed; what it follows from is kept.
        actions = {
            action: (first if action in inputs else second)[where]
            for where, action in enumerate(world.task.actions)
        }
        value = world.equation(node, {each: {**actions, **known}[each] for each in inputs}, noise[place])
        torch.testing.assert_close(value, known[node], rtol=1e-12, atol=1e-12)


# Noise inside the sine has no identifiable part.
DECOMPOSABLE = [name for name in (*WORLDS, *CHANGED) if "non_dgm" not in name and "non-dgm" not in name]


@pytest.mark.parametrize("name", DECOMPOSABLE)
def test_nodes_are_straight_lines_in_the_identifiable_part_of_their_noise(worlds, name):
    world, stream = worlds(name), np.random.default_rng(2)
    action, draws = world.task.box.sobol(1, seed=9)[0], world.noise_rows(3, stream)
    known = dict(zip(world.task.nodes, world.simulate(action, draws[0]), strict=True))
    known |= dict(zip(world.task.actions, action, strict=True))
    for place, node in enumerate(world.task.nodes):
        inputs = {each: known[each] for each in world.task.inputs(node)}
        first, second, third = world.equation(node, inputs, draws[:, place]).expand(3)
        part = world.recoverable(node, draws[:, place])
        torch.testing.assert_close(
            (second - first) * (part[2] - part[0]),
            (third - first) * (part[1] - part[0]),
            rtol=1e-9,
            atol=1e-12,
        )


@pytest.mark.slow
@every
def test_answers_and_scores(worlds, name):
    world = worlds(name)
    one_case, action = world.case(3), world.task.box.sobol(1, seed=2)[0]
    decision = chosen(world, action, world.optimal_action)
    row = world.respond(one_case, decision)
    assert torch.equal(row.values, made(name).respond(one_case, decision).values)
    torch.testing.assert_close(row.columns(world.task.actions)[0], action)
    score = world.score(one_case, decision)
    assert score["expected"] == pytest.approx(float(world.expected(action)))
    assert score["recommended"] == pytest.approx(world.optimal_value)
    assert score["regret"] == pytest.approx(0.0, abs=1e-6 * max(1.0, abs(world.optimal_value)))
    assert score["optimum"] == world.optimum(one_case) == world.optimal_value
    batch = world.respond(one_case, chosen(world, tried(world)))
    assert len(batch) == 7
    with pytest.raises(ValueError, match=r"may be set (within|to)"):
        world.respond(one_case, chosen(world, world.task.box.upper + 1))
    with pytest.raises(IndexError, match="round"):
        world.case(world.size.rounds)


@pytest.mark.parametrize("name", WORLDS)
def test_the_card_and_the_task_are_plain(worlds, name):
    world = worlds(name)
    card = world.card()
    assert json.loads(json.dumps(card)) == card
    assert card["source"]
    assert card["optimum"] == world.optimal_value
    assert card["caution"], "what it must not be used for"
    again = CausalTask.of({key: card[key] for key in ("graph", "actions", "reward", "limits")})
    assert again.nodes == world.task.nodes
    assert {node: again.inputs(node) for node in again.nodes} == {
        node: world.task.inputs(node) for node in world.task.nodes
    }
