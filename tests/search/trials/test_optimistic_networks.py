import numpy as np
import pytest
import torch

from rehearsal_torch.objectives.upper_bounds import Optimism
from rehearsal_torch.search.trials import optimistic_networks as module
from rehearsal_torch.search.trials.optimistic_networks import OptimisticNetworks, PerturbedNetworks
from rehearsal_torch.seeding import round_seed, stream
from tests.defaults import off_defaults
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


def in_units(objective, value):
    best, spread = objective.scale
    return best + spread * value


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
    objective = Optimism(model, one_case(model.task), beta=2.0)
    decision = OptimisticNetworks(**QUICK)(objective)
    # All nodes are pushed up: 3 a - b + 2 (.45 (1 + a) + .2 (1 + b)), largest at a = 1, b = 0.
    assert in_units(objective, decision.value) == pytest.approx(5.2, abs=0.15)
    assert in_units(objective, decision.value) <= 5.2 + 0.02
    assert decision.alteration.values.tolist() == pytest.approx([1.0, 0.0], abs=0.1)
    assert decision.recommendation.values.tolist() == pytest.approx([1.0, 0.0], abs=1e-6)


def test_the_objective_of_actions_alone_is_a_lower_bound():
    model = linear_chain()
    objective = Optimism(model, one_case(model.task), beta=2.0)
    at = torch.tensor([[0.4, 0.3]], dtype=torch.float64)
    up = objective.optimistic(at, lambda _, scaled: scaled.new_ones(()), objective.noise)
    alone = in_units(objective, objective(at).item())
    assert alone == pytest.approx(1.2 - 0.3 + 2 * 0.2 * 1.3, abs=0.01)
    assert in_units(objective, up.item()) == pytest.approx(alone + 2 * 1.5 * 0.3 * 1.4, abs=1e-9)


def test_the_same_seed_gives_the_same_decision():
    model = linear_chain()

    def asked(seed):
        settings = {**QUICK, "screening_steps": 3, "steps": 15, "seed": seed}
        return OptimisticNetworks(**settings)(Optimism(model, one_case(model.task, "2"), seed=seed)).to_dict()

    assert asked(0) == asked(0) != asked(1)


def test_limits_are_kept():
    model = hills({"normals": [[1.0, 0.1]], "offsets": [0.5]})
    decision = OptimisticNetworks(**{**QUICK, "steps": 30})(Optimism(model, one_case(model.task)))
    model.task.check_action(decision.alteration.values)


def levelled_chain(actions, visited, limits=None):
    """The linear chain over other actions."""
    task = plain({"X": ["a"], "Y": ["X", "b"]}, actions, "Y", limits)
    return WrittenModel(task, dict(zip(("X", "Y"), linear_chain().laws, strict=True)), visited)


def test_levels_are_kept_and_the_best_are_found():
    actions = {"a": {"values": [0, 1e-5, 0.3, 0.8]}, "b": {"values": [0, 0.5, 2]}}
    model = levelled_chain(actions, [[0.3, 0.5]])
    objective = Optimism(model, one_case(model.task), beta=2.0)
    decision = OptimisticNetworks(**QUICK)(objective)
    # 3 a - b + 2 (.45 (1 + a) + .2 (1 + b)) is largest at a = .8, b = 0.
    assert decision.alteration.values.tolist() == [0.8, 0.0]
    assert in_units(objective, decision.value) == pytest.approx(2.4 + 2 * (0.81 + 0.2), abs=0.15)


def test_levels_beside_free_actions_within_limits():
    # The same with a + b <= .9 and a of 0, .3, 1: a = .3, b = 0.
    actions = {"a": {"values": [0, 0.3, 1]}, "b": [0, 2]}
    model = levelled_chain(actions, [[0.0, 0.5]], {"normals": [[1.0, 1.0]], "offsets": [0.9]})
    decision = OptimisticNetworks(**QUICK)(Optimism(model, one_case(model.task), beta=2.0))
    assert decision.alteration.values[0] == 0.3
    assert float(decision.alteration.values[1]) == pytest.approx(0.0, abs=0.1)


# Of the linear chain: a in [0, 1], b in [0, 2].
WIDTH = torch.tensor([1.0, 2.0], dtype=torch.float64)


class Asked(Optimism):
    """Notes every evaluation: actions, noise, values, and the gradient by the actions where it is wanted."""

    def __init__(self, model, case):
        super().__init__(model, case, beta=2.0, draws=4)
        self.calls = []

    def optimistic(self, actions, perturbation, noise):
        values = super().optimistic(actions, perturbation, noise)
        gradient = None
        if actions.requires_grad:
            (gradient,) = torch.autograd.grad(values.sum(), actions, retain_graph=True)
        self.calls.append((actions.detach().clone(), noise, values.detach(), gradient))
        return values


def asked(**settings):
    model = linear_chain()
    objective = Asked(model, one_case(model.task, "3"))
    few = {"restarts": 6, "kept": 2, "screening_steps": 3, "steps": 7, "incumbents": 2, "evaluation_draws": 8}
    return objective, OptimisticNetworks(**{**few, **settings})(objective)


def free(actions):
    return (actions / WIDTH).logit()


def test_the_defaults_are_those_of_the_configuration_and_of_the_seed_0() -> None:
    assert set(off_defaults("search/optimistic_networks", OptimisticNetworks)) == {"seed"}
    assert OptimisticNetworks().seed == 0


LEAST = {
    **dict.fromkeys(("restarts", "kept", "steps", "evaluation_draws"), 1),
    "screening_steps": 0,
    "incumbents": 0,
}


def test_settings_at_the_ends_of_their_ranges_are_taken() -> None:
    _, decision = asked(**LEAST)
    assert (decision.trace["steps"], decision.trace["restarts"]) == (1, 1)
    assert OptimisticNetworks(screening_steps=150, incumbents=47, rate=0.5).steps == 150


def test_a_perturbation_is_that_of_a_network_with_four_hidden_units_for_each_input() -> None:
    networks = PerturbedNetworks({4: 1, 2: 3}, 2, stream(0, "x"))
    scaled = torch.randn(2, 5, 3, dtype=torch.float64, generator=stream(1, "x"))
    inward, threshold, outward, shift, offset = (each.detach().numpy() for each in networks.weights[5:])
    assert (inward.shape, outward.shape) == ((2, 12, 3), (2, 12))
    found = networks.perturbation(2, scaled).detach().numpy()
    for restart in range(2):
        hidden = np.maximum(scaled[restart].numpy() @ inward[restart].T + threshold[restart], 0)
        inner = hidden @ outward[restart] + shift[restart] + offset[restart]
        np.testing.assert_allclose(found[restart], 2 / (1 + np.exp(-inner)) - 1, rtol=1e-12)


def test_weights_begin_uniform_in_the_usual_range_and_offsets_anywhere() -> None:
    networks = PerturbedNetworks({0: 4, 1: 0}, 4000, stream(0, "x"))
    sizes = (0.5, 0.5, 0.25, 0.25)
    for size, weights in zip(sizes, networks.weights[:4], strict=True):
        values = weights.detach()
        assert float(values.abs().max()) <= size
        assert float(values.max()) == pytest.approx(size, rel=2e-3)
        assert float(values.min()) == pytest.approx(-size, rel=2e-3)
    # Without inputs the range is that of one.
    assert 0.99 < float(networks.weights[8].detach().abs().max()) <= 1
    share = networks.weights[4].detach().sigmoid()
    assert float(share.min()) == pytest.approx(1e-3, abs=5e-4)
    assert 0.998 < float(share.max()) <= 0.999
    assert float(share.min()) >= 1e-3
    assert float(share.mean()) == pytest.approx(0.5, abs=0.02)


def test_random_starts_keep_away_from_the_border() -> None:
    objective, _ = asked(**{**LEAST, "restarts": 4000})
    # The first start is the recommendation.
    unit = objective.calls[0][0][1:] / WIDTH
    assert 1e-3 <= float(unit.min()) < 2e-3
    assert 0.998 < float(unit.max()) <= 0.999


@pytest.mark.parametrize(("incumbents", "known"), [(0, 1), (1, 1), (2, 2), (3, 3)])
def test_the_first_starts_are_the_recommendation_and_the_best_visited_actions(incumbents, known) -> None:
    objective, decision = asked(incumbents=incumbents)
    begun = objective.calls[0][0]
    # The recommendation (1, 0) is moved off the border by 1e-4 of each range.
    assert decision.recommendation.values.tolist() == pytest.approx([1.0, 0.0])
    told = torch.tensor([[1 - 1e-4, 2e-4], [0.6, 0.1], [0.2, 0.4]], dtype=torch.float64)[:known]
    torch.testing.assert_close(begun[:known], told)
    drawn = torch.rand(6, 2, dtype=torch.float64, generator=stream(0, "3"))
    torch.testing.assert_close(begun[known:], ((1e-3 + (1 - 2e-3) * drawn) * WIDTH)[known:])


def test_the_best_restarts_of_the_screening_go_on() -> None:
    objective, decision = asked(rate=0.1)
    rows = [len(actions) for actions, _, _, _ in objective.calls]
    # Three steps of six restarts, their comparison, four steps of two, and the final evaluation.
    assert rows == [6] * 3 + [6] + [2] * 4 + [2]
    assert decision.trace["steps"] == 7
    actions, _, values, gradient = objective.calls[3]
    assert gradient is None
    torch.testing.assert_close(objective.calls[4][0], actions[values.topk(2).indices])
    # The first step of Adam is one of the rate, up the slope.
    first, second = objective.calls[0], objective.calls[1]
    moved = free(second[0]) - free(first[0])
    torch.testing.assert_close(moved, 0.1 * first[3].sign(), atol=1e-4, rtol=1e-4)
    noises = [noise for _, noise, _, _ in objective.calls[:-1]]
    assert all(torch.equal(noise, objective.noise) for noise in noises)


def test_the_last_choice_is_made_with_other_draws_in_parts(monkeypatch) -> None:
    monkeypatch.setattr(module, "CHUNK", 6)
    objective, decision = asked()
    last = objective.calls[8:]
    assert [len(noise) for _, noise, _, _ in last] == [3, 3, 2]
    noise = torch.cat([noise for _, noise, _, _ in last])
    assert torch.equal(noise, objective.draw(8, round_seed(0, "3") + 7))
    values = (3 * last[0][2] + 3 * last[1][2] + 2 * last[2][2]) / 8
    assert decision.value == pytest.approx(float(values.max()), rel=1e-12)
    torch.testing.assert_close(decision.alteration.values, last[0][0][values.argmax()])
