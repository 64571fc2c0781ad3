"""Networks by seed: sizes and traits in their shares, each trait is what it says, and the truth is true."""

from collections import Counter

import numpy as np
import pytest
import torch
from scipy.stats import kurtosis, skew

from rehearsal_torch.problems.trials.random_network import (
    CORNER,
    NETWORK_TRAITS,
    NOISES,
    SHAPES,
    DrawnNetwork,
    _unit,
    traits_of,
)
from rehearsal_torch.problems.world_size import Rounds


def gained(world, value):
    """How much the value of an action is above the optimum, in ranges of the reward."""
    return (float(value) - world.optimal_value) / world.reach


def test_each_trait_has_a_share_of_fifteen_in_a_hundred_whatever_the_others_are():
    found = [traits_of(seed) for seed in range(200)]
    shares = Counter(trait for traits in found for trait in traits)
    # Two and a half standard deviations of 200 draws, and of the share .85^5 that has none.
    assert all(abs(shares[trait] / 200 - 0.15) < 0.064 for trait in NETWORK_TRAITS)
    assert abs(sum(not traits for traits in found) / 200 - 0.444) < 0.088


def test_networks_have_the_sizes_that_they_say():
    sizes, widths = set(), set()
    for seed in range(120):
        world = DrawnNetwork(seed=seed)
        names, causes = world.task.actions, [name for inputs in world.parents.values() for name in inputs]
        sizes.add(len(world.parents))
        widths.add(len(names))
        assert set(world.task.nodes) == set(world.parents)
        assert all(1 <= len(inputs) <= 3 for inputs in world.parents.values())
        assert {causes.count(name) for name in names} <= {1, 2}
        assert set(world.task.graph.ancestors(["Y"])) == {*names, *world.parents}
        assert all(0.02 <= mechanism.level <= 0.2 for mechanism in world.mechanisms.values())
        assert world.initial == max(8, 2 * len(names) + 2)
    assert (sizes, widths) == (set(range(3, 9)), set(range(2, 6)))


def test_a_seed_is_a_network_and_a_trait_leaves_the_rest_as_it_is():
    one, again, other = DrawnNetwork(seed=3), DrawnNetwork(seed=3), DrawnNetwork(seed=4)
    assert one.observations().fingerprint() == again.observations().fingerprint()
    assert one.parents != other.parents
    plain = DrawnNetwork([], seed=3)
    assert plain.details()["traits"] == []
    for trait in NETWORK_TRAITS:
        world = DrawnNetwork([trait], seed=3)
        assert world.details()["traits"] == [trait]
        assert world.parents == plain.parents
        assert trait == "misspecified" or world.mechanisms == plain.mechanisms
        assert {node: each.terms for node, each in world.mechanisms.items()} == {
            node: each.terms for node, each in plain.mechanisms.items()
        }
    assert DrawnNetwork(size=Rounds(initial=5), seed=3).initial == 5
    with pytest.raises(ValueError, match="traits: expected some of misspecified, noise"):
        DrawnNetwork(["odd"])


@pytest.mark.parametrize("shape", SHAPES)
def test_shapes_are_finite_and_bend(shape):
    z = torch.linspace(-3, 3, 601, dtype=torch.float64)
    for rate, place in ((0.8, -1.0), (2.0, 1.0), (1.3, 0.2)):
        value = SHAPES[shape](z, rate, place)
        second = value.diff(n=2) / 1e-4
        assert value.abs().max() < 25
        assert second.abs().max() > 0.1
        # Smooth: the second derivative has no jump of its own size.
        assert second.diff().abs().max() < 0.1 * second.abs().max()


@pytest.mark.parametrize("traits", [None, NETWORK_TRAITS])
@pytest.mark.parametrize("seed", range(3))
def test_expectations_are_those_of_fresh_draws_and_their_error_is_small_beside_the_noise(seed, traits):
    world = DrawnNetwork(traits, seed=seed)
    actions = world.task.box.sobol(5, seed=3)
    rewards = world.rewards(
        world.simulate(actions[:, None], world.noise_rows(60_000, np.random.default_rng(5)))
    )
    error = (rewards.mean(-1) - world.expected(actions)).abs() / rewards.std(-1)
    # 60,000 draws have an error of .004 noises, and four of it are rare.
    assert error.max() < 0.03


@pytest.mark.slow
@pytest.mark.parametrize(("seed", "traits"), [(1, None), (2, NETWORK_TRAITS)])
def test_no_random_action_is_better_than_the_optimum(seed, traits):
    world = DrawnNetwork(traits, seed=seed)
    world.task.check_action(world.optimal_action)
    assert float(world.expected(world.optimal_action)) == pytest.approx(world.optimal_value, rel=1e-12)
    values = world.expected(world.task.box.sobol(4096, seed=9))
    assert gained(world, values.max()) <= 0
    # The range is that of actions, which the optimum ends.
    assert float(values.max() - values.min()) == pytest.approx(world.reach, rel=0.1)


@pytest.mark.parametrize("seed", range(6))
def test_a_misspecified_mechanism_jumps_bends_or_has_a_noise_that_depends_on_an_input(seed):
    world = DrawnNetwork(["misspecified"], seed=seed)
    ((node, kind),) = world.details()["faults"].items()
    mechanism, strain = world.mechanisms[node], world.mechanisms[node].strain
    z = torch.linspace(-2, 2, 4001, dtype=torch.float64)
    inputs = dict.fromkeys(world.parents[node], torch.zeros_like(z)) | {strain.name: z}
    steps = mechanism.signal(inputs).diff()
    noises = mechanism(inputs, torch.ones_like(z)) - mechanism(inputs, torch.zeros_like(z))
    jumps, bends = steps.abs().max() > 0.1, steps.diff().abs().max() > 20 * steps.diff().abs().median()
    assert (bool(jumps), bool(bends and not jumps), bool(noises.max() > 4 * noises.min())) == (
        kind == "jump",
        kind == "kink",
        kind == "noise",
    )


@pytest.mark.parametrize("kind", NOISES)
def test_noises_have_mean_0_and_variance_1_and_are_not_normal(kind):
    noise = _unit(NOISES[kind])
    assert (noise.mean, noise.variance) == pytest.approx((0.0, 1.0), abs=1e-12)
    draws = noise.draw(40_000, np.random.default_rng(1))
    assert {"skewed": skew(draws) > 1, "heavy tails": kurtosis(draws) > 5, "two modes": kurtosis(draws) < -1}[
        kind
    ]


def test_one_or_two_actions_have_two_to_five_levels():
    boxes = [DrawnNetwork(["levels"], seed=seed).task.box for seed in range(60)]
    assert {len(box.levels) for box in boxes} == {1, 2}
    assert {len(values) for box in boxes for values in box.levels.values()} == {2, 3, 4, 5}


@pytest.mark.parametrize("seed", range(4))
def test_a_far_start_design_lies_in_a_corner_away_from_the_optimum(seed):
    world, plain = DrawnNetwork(["far"], seed=seed), DrawnNetwork([], seed=seed)
    low, width = world.task.box.lower, world.task.box.width
    actions = (world.observations().columns(world.task.actions) - low) / width
    best = (world.optimal_action - low) / width
    assert ((actions.max(0).values <= CORNER) | (actions.min(0).values >= 1 - CORNER)).all()
    assert ((actions.mean(0) - best).abs() > 0.3).all()
    assert torch.equal(world.held_out().values, plain.held_out().values)


def test_a_wrong_graph_differs_in_one_arrow_and_everything_leads_to_the_reward():
    lost, gains = Counter(), Counter()
    for seed in range(60):
        world = DrawnNetwork(["wrong_arrow"], seed=seed)
        true = {(cause, node) for node, inputs in world.parents.items() for cause in inputs}
        given = {(cause, node) for node in world.task.nodes for cause in world.task.inputs(node)}
        lost[len(true - given)] += 1
        gains["".join("reversed" if (b, a) in true else "moved" for a, b in given - true)] += 1
        assert set(world.task.graph.ancestors(["Y"])) == {*world.task.actions, *world.parents}
        # What is simulated is the true network, up to the order of the columns.
        plain = DrawnNetwork([], seed=seed)
        actions, noise = plain.task.box.sobol(3, seed=2), torch.zeros(len(true), dtype=torch.float64)
        found, expected = (
            each.rewards(each.simulate(actions, noise[: len(each.task.nodes)])) for each in (world, plain)
        )
        torch.testing.assert_close(found, expected, rtol=0, atol=0)
    assert set(lost) == {1}
    assert set(gains) == {"", "reversed", "moved"}
