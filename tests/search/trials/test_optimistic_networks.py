import pytest
import torch

from rehearsal_torch.objectives.trials.optimism import Optimism
from rehearsal_torch.search.trials.optimistic_networks import OptimisticNetworks, PerturbedNetworks
from rehearsal_torch.seeding import stream
from tests.toys.causal_toys import WrittenModel, hills, linear_chain, one_case, plain

QUICK = {
    "restarts": 16,
    "kept": 4,
    "screening_steps": 20,
    "steps": 120,
    "rate": 0.1,
    "evaluation_draws": 256,
    "incumbents": 3,
}


def test_pushes_lie_within_their_bounds_and_each_restart_has_its_own():
    networks = PerturbedNetworks({0: 2, 2: 0}, 5, stream(0, "x"))
    inputs = torch.rand(5, 7, 2, dtype=torch.float64)
    perturbations = networks.perturbation(0, inputs)
    assert perturbations.shape == (5, 7)
    assert bool((perturbations.abs() <= 1).all())
    assert networks.perturbation(2, inputs[..., :0]).shape == (5, 7)
    order = torch.tensor([3, 1])
    networks.only(order)
    torch.testing.assert_close(networks.perturbation(0, inputs[order]), perturbations[order])


def test_the_best_network_of_a_linear_chain_is_found():
    model = linear_chain()
    decision = OptimisticNetworks(**QUICK)(Optimism(model, one_case(model.task), beta=2.0))
    # All nodes are pushed up: 3 a - b + 2 (.45 (1 + a) + .2 (1 + b)), largest at a = 1, b = 0.
    assert decision.value == pytest.approx(5.2, abs=0.15)
    assert decision.value <= 5.2 + 0.02
    assert decision.alteration.values.tolist() == pytest.approx([1.0, 0.0], abs=0.1)
    assert decision.recommendation.values.tolist() == pytest.approx([1.0, 0.0], abs=1e-6)


def test_the_objective_of_actions_alone_is_a_lower_bound():
    model = linear_chain()
    objective = Optimism(model, one_case(model.task), beta=2.0)
    at = torch.tensor([[0.4, 0.3]], dtype=torch.float64)
    up = objective.optimistic(at, lambda _, scaled: scaled.new_ones(()), objective.noise)
    assert objective(at).item() == pytest.approx(1.2 - 0.3 + 2 * 0.2 * 1.3, abs=0.01)
    assert up.item() == pytest.approx(objective(at).item() + 2 * 1.5 * 0.3 * 1.4, abs=1e-9)


def test_the_released_rule_stops_within_a_dozen_steps():
    model = linear_chain()
    search = OptimisticNetworks(
        restarts=30, steps=1000, rate=1e-3, stop_rule="released", evaluation_draws=256
    )
    decision = search(Optimism(model, one_case(model.task)))
    assert 11 <= decision.trace["steps"] < 25
    model.task.check_action(decision.alteration.values)


@pytest.mark.parametrize("rule", ["converged", "released"])
def test_the_same_seed_gives_the_same_decision(rule):
    model = linear_chain()

    def asked(seed):
        settings = {**QUICK, "screening_steps": 3, "steps": 15, "stop_rule": rule, "seed": seed}
        return OptimisticNetworks(**settings)(Optimism(model, one_case(model.task, "2"), seed=seed)).to_dict()

    assert asked(0) == asked(0) != asked(1)


def test_limits_are_kept():
    model = hills({"normals": [[1.0, 0.1]], "offsets": [0.5]})
    for rule in ("converged", "released"):
        decision = OptimisticNetworks(**{**QUICK, "steps": 30, "stop_rule": rule})(
            Optimism(model, one_case(model.task))
        )
        model.task.check_action(decision.alteration.values)


@pytest.mark.parametrize(
    "given", [{"stop_rule": "never"}, {"screening_steps": 300}, {"incumbents": 64}, {"rate": 0.0}]
)
def test_bad_settings_are_refused(given):
    with pytest.raises(ValueError, match="expected"):
        OptimisticNetworks(**given)


def levelled_chain(actions, visited, limits=None):
    """The linear chain over other actions."""
    task = plain({"X": ["a"], "Y": ["X", "b"]}, actions, "Y", limits)
    return WrittenModel(task, dict(zip(("X", "Y"), linear_chain().laws, strict=True)), visited)


@pytest.mark.parametrize("rule", ["converged", "released"])
def test_levels_are_kept_and_the_best_are_found(rule):
    actions = {"a": {"values": [0, 1e-5, 0.3, 0.8]}, "b": {"values": [0, 0.5, 2]}}
    model = levelled_chain(actions, [[0.3, 0.5]])
    search = OptimisticNetworks(**{**QUICK, "stop_rule": rule})
    decision = search(Optimism(model, one_case(model.task), beta=2.0))
    # 3 a - b + 2 (.45 (1 + a) + .2 (1 + b)) is largest at a = .8, b = 0.
    assert decision.alteration.values.tolist() == [0.8, 0.0]
    assert decision.value == pytest.approx(2.4 + 2 * (0.81 + 0.2), abs=0.15 if rule == "converged" else 0.6)


def test_levels_beside_free_actions_within_limits():
    # The same with a + b <= .9 and a of 0, .3, 1: a = .3, b = 0.
    actions = {"a": {"values": [0, 0.3, 1]}, "b": [0, 2]}
    model = levelled_chain(actions, [[0.0, 0.5]], {"normals": [[1.0, 1.0]], "offsets": [0.9]})
    decision = OptimisticNetworks(**QUICK)(Optimism(model, one_case(model.task), beta=2.0))
    assert decision.alteration.values[0] == 0.3
    assert float(decision.alteration.values[1]) == pytest.approx(0.0, abs=0.1)
