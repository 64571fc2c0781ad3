import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from rehearsal_torch.mechanisms import sparse_effects
from rehearsal_torch.mechanisms.location_scale import LocationScale
from rehearsal_torch.mechanisms.sparse_effects import (
    ActionEffects,
    SparseEffects,
    SparseTrajectory,
    dose_features,
)
from rehearsal_torch.objectives.counterfactual_return import CounterfactualReturn
from rehearsal_torch.objectives.step_reward import LinearReward
from rehearsal_torch.search.sequences.branch_and_bound import BranchAndBound
from rehearsal_torch.search.sequences.exhaustive import Exhaustive
from tests.toys.episodes import transition_episode

HORIZON, WIDTH = 6, 3
LEVELS = torch.cartesian_prod(torch.arange(3), torch.arange(2)).double() / torch.tensor([2.0, 1.0]) - 0.5


def instance(seed: int, factor: float = 3.0, size: float = 0.5):
    """A mechanism over 3 varying and 1 static features, 1 contextual feature and 2 doses, with an episode."""
    stream = torch.Generator().manual_seed(seed)
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        blind = LocationScale(4, 1, WIDTH, hidden=16)
        with torch.no_grad():
            blind.networks.inner *= factor
            blind.networks.outer *= factor
    made = SparseEffects(blind.to(torch.float64), 2)
    table = torch.randn(WIDTH, 6, 1 + WIDTH, generator=stream, dtype=torch.float64)
    rare = torch.rand(table.shape, generator=stream, dtype=torch.float64) < 0.3
    made.effects.coefficients = size * table * rare
    states = torch.randn(HORIZON, WIDTH, generator=stream, dtype=torch.float64)
    kept = torch.randn(HORIZON - 1, 1, 2, generator=stream, dtype=torch.float64)
    fixed = torch.cat([kept.expand(-1, 6, -1), LEVELS.expand(HORIZON - 1, -1, -1)], -1)
    return made, states, fixed, torch.randint(6, (HORIZON,), generator=stream)


def test_effects_are_fitted_to_what_the_networks_leave_block_by_block(monkeypatch: pytest.MonkeyPatch):
    made, *_ = instance(0)
    stream = torch.Generator().manual_seed(1)
    parents = torch.rand(50, 7, generator=stream) - 0.5
    values = torch.rand(50, WIDTH, generator=stream)
    monkeypatch.setattr(sparse_effects, "ROWS", 8)
    (_, given), (part, examples) = made.float().parts(parents, values)
    assert part is made.effects
    assert torch.equal(given[0], parents[:, :5])
    location, scale = made.blind.double().moments(parents[:, :5].double())
    expected = (parents[:, :5], parents[:, 5:] + 0.5, values.double() - location, scale)
    for found, wanted in zip(examples, expected, strict=True):
        assert found.dtype == torch.float64
        torch.testing.assert_close(found, wanted.double(), atol=1e-14, rtol=1e-14)


@pytest.mark.slow
@given(seed=st.integers(0, 10_000), factor=st.floats(0.2, 20.0))
@settings(max_examples=20, deadline=None, derandomize=True)
def test_the_trajectory_is_the_mechanism_with_abducted_noise(seed: int, factor: float):
    made, states, fixed, observed = instance(seed, factor)
    trajectory = made.unroll(states, fixed, observed)
    rows = torch.randn(5, WIDTH, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    for time in range(HORIZON - 1):
        parents = torch.cat([states[time], fixed[time, observed[time]]])
        noise = made.abduct(parents, states[time + 1])
        torch.testing.assert_close(made.forward(parents, noise), states[time + 1], atol=1e-10, rtol=0)
        torch.testing.assert_close(trajectory.noise[time], noise, atol=1e-8, rtol=1e-8)
        again = trajectory.step(states[time : time + 1], time, observed[time])
        torch.testing.assert_close(again[0], states[time + 1], atol=1e-10, rtol=0)
        every = trajectory.branch(rows, time)
        for action in range(6):
            expected = made.forward(torch.cat([rows, fixed[time, action].expand(5, -1)], -1), noise)
            torch.testing.assert_close(every[:, action], expected, atol=1e-8, rtol=1e-8)
            one = trajectory.step(rows, time, torch.tensor(action))
            torch.testing.assert_close(one, expected, atol=1e-8, rtol=1e-8)
        actions = torch.tensor([5, 0, 3, 3, 1])
        torch.testing.assert_close(trajectory.step(rows, time, actions), every[torch.arange(5), actions])
        some = torch.tensor([4, 2])
        torch.testing.assert_close(trajectory.branch(rows, time, some), every[:, some])


def smooth_step(trajectory: SparseTrajectory, row, time: int, action: int):
    """F_t written out without in-place operations."""
    blind = trajectory.blind
    half = blind.inner.shape[0] // 2
    hidden = torch.tanh(blind.inner @ row + blind.offsets[time, 0])
    location = blind.location[0] @ hidden[:half] + blind.location[1]
    raw = blind.scale[0] @ hidden[half:] + blind.scale[1]
    scale = torch.nn.functional.softplus(raw) + blind.floor
    effect = trajectory.matrices[time, action] @ row + trajectory.shifts[time, action]
    return location + effect + scale * trajectory.noise[time]


@pytest.mark.slow
@given(seed=st.integers(0, 10_000), radius=st.floats(0.0, 2.0))
@settings(max_examples=15, deadline=None, derandomize=True)
def test_derivatives_are_exact_and_their_bounds_hold_on_the_ball(seed: int, radius: float):
    made, states, fixed, observed = instance(seed)
    trajectory = made.unroll(states, fixed, observed)
    stream = torch.Generator().manual_seed(seed)
    row, covector = torch.randn(2, WIDTH, generator=stream, dtype=torch.float64)
    ways = torch.nn.functional.normalize(torch.randn(8, WIDTH, generator=stream, dtype=torch.float64), dim=-1)
    constants = trajectory.lipschitz()
    assert (constants <= made.lipschitz(trajectory.noise) * (1 + 1e-8)).all()
    for time in (0, HORIZON - 2):
        curvature = trajectory.curvature(
            row[None], time, covector[None], torch.tensor([radius], dtype=torch.float64)
        )
        for action in (0, 5):
            step = lambda x, t=time, a=action: smooth_step(trajectory, x, t, a)  # noqa: E731
            jacobian = torch.func.jacrev(step)
            hessian = torch.func.jacrev(torch.func.jacrev(lambda x, f=step: f(x) @ covector))
            torch.testing.assert_close(curvature.jacobian[0, action], jacobian(row), atol=1e-9, rtol=1e-9)
            torch.testing.assert_close(curvature.hessian[0, action], hessian(row), atol=1e-8, rtol=1e-8)
            torch.testing.assert_close(trajectory.jacobians(row[None], time)[0, action], jacobian(row))
            for way in ways:
                there = row + radius * way
                norm = torch.linalg.matrix_norm(jacobian(there), 2)
                assert norm <= curvature.jacobian_norm[0, action] * (1 + 1e-9)
                assert norm <= constants[time] * (1 + 1e-9)


def test_the_likelihood_is_that_of_the_values_without_the_effects():
    made, states, fixed, observed = instance(8)
    parents = torch.cat([states[:-1], fixed[torch.arange(HORIZON - 1), observed[:-1]]], -1)
    found = made.log_likelihood(parents, states[1:])
    plain = made.blind.log_likelihood(parents[:, :-2], states[1:] - made.effect(parents))
    torch.testing.assert_close(found, plain)
    torch.manual_seed(0)
    drawn = made.noise((20_000,))
    sigma = made.blind.cholesky() @ made.blind.cholesky().mT
    torch.testing.assert_close(drawn.T.cov(), sigma, atol=2e-3, rtol=0.05)


@pytest.mark.parametrize("seed", range(3))
def test_the_best_sequence_is_proven_and_is_that_of_enumeration(seed: int):
    objective = transition_episode(seed, horizon=6, changes=2, levels=3, drugs=2, effects="sparse")
    wanted = CounterfactualReturn(objective.surrogate, objective.case, LinearReward({"x0": -1.0}), 2)
    assert isinstance(wanted.trajectory, SparseTrajectory)
    best, certified = Exhaustive()(wanted), BranchAndBound()(wanted)
    assert certified.trace["proven"]
    assert certified.value == pytest.approx(best.value, abs=1e-9)


def drawn(rows: int, seed: int, beta: float = 0.4, quadratic: float = 1.0):
    """Features (n, 4) of which two are the state, doses that depend on them, scales, and residuals: the first
    output moves with the first dose times the second state and with the second dose given at all."""
    stream = torch.Generator().manual_seed(seed)

    def normal(*shape):
        return torch.randn(*shape, generator=stream, dtype=torch.float64)

    state, other = 0.2 * normal(rows, 2), (normal(rows, 2) > 0).double() - 0.5
    wish = torch.sigmoid(2 * state[:, :1] - other[:, :1] + normal(rows, 2))
    doses = torch.where(wish > 0.5, wish, 0.0)
    scales = 0.05 * (1 + state[:, :1].abs()).expand(-1, 2) * torch.tensor([1.0, 2.0], dtype=torch.float64)
    effect = beta * doses[:, 0] * state[:, 1] + 0.1 * beta * (doses[:, 1] > 0)
    confounded = quadratic * (state[:, 0].square() - 0.3 * state[:, 0] + other[:, 1] * state[:, 1])
    residuals = torch.stack([effect + confounded, confounded], -1) + scales * normal(rows, 2)
    return torch.cat([state, other], -1), doses, residuals, scales


def test_terms_that_made_the_data_are_found_and_no_others():
    made = ActionEffects(2, 2)
    made.solve(*drawn(20_000, 1))
    # Of (a, a^2, 1[a > 0]) of two doses times (1, s, t): the first times t, and whether the second is given.
    assert made.coefficients[0].nonzero().tolist() == [[0, 2], [5, 0]]
    assert not bool(made.coefficients[1].any())
    assert made.coefficients[0, 0, 2].item() == pytest.approx(0.4, abs=0.02)
    assert made.coefficients[0, 5, 0].item() == pytest.approx(0.04, abs=0.004)


@pytest.mark.parametrize("seed", range(10))
def test_nothing_is_selected_where_doses_do_nothing(seed):
    """Doses and residuals share a quadratic of the state, which is no effect of the doses. Of 36 terms in 10
    draws one with |t| > 4 is expected in 2 % of all runs."""
    made = ActionEffects(2, 2)
    made.solve(*drawn(5000, 100 + seed, beta=0.0))
    assert not bool(made.coefficients.any())


def test_the_estimate_is_weighted_least_squares_of_the_selected_terms():
    features, doses, residuals, scales = drawn(3000, 3)
    made = ActionEffects(2, 2)
    made.solve(features, doses, residuals, scales)
    chosen = made.coefficients[0].flatten().nonzero()[:, 0]
    assert len(chosen)
    state = torch.nn.functional.pad(features[:, :2], (1, 0), value=1.0)
    terms = (dose_features(doses).unsqueeze(-1) * state.unsqueeze(-2)).flatten(1)[:, chosen]
    pairs = [features[:, i] * features[:, j] for i in range(4) for j in range(i, 4)]
    columns = torch.cat([torch.ones(3000, 1), features, torch.stack(pairs, -1), terms], -1)
    weight = 1 / scales[:, :1]
    plain = torch.linalg.lstsq(columns * weight, residuals[:, :1] * weight, driver="gelsd").solution
    torch.testing.assert_close(
        plain[-len(chosen) :, 0], made.coefficients[0].flatten()[chosen], rtol=1e-6, atol=1e-9
    )


def test_maps_and_values_agree_and_the_number_of_terms_is_bounded():
    features, doses, residuals, scales = drawn(20_000, 1)
    made = ActionEffects(2, 2, max_terms=1)
    assert torch.equal(made(features[:3, :2], doses[:3]), torch.zeros(3, 2, dtype=torch.float64))
    made.solve(features, doses, residuals, scales)
    assert made.coefficients.count_nonzero(dim=(1, 2)).tolist() == [1, 0]
    matrices, shifts = made.maps(doses[:50])
    expected = (matrices @ features[:50, :2].unsqueeze(-1))[..., 0] + shifts
    torch.testing.assert_close(made(features[:50, :2], doses[:50]), expected)
    made.clear()
    assert not made.fitted
    assert not made.maps(doses[:5])[0].any()


def test_rows_without_a_residual_have_no_say_in_the_effects_on_that_state():
    made, *_ = instance(0)
    parents = torch.rand(400, 7, generator=torch.Generator().manual_seed(1), dtype=torch.float64) - 0.5
    values = made(parents, made.noise((400,)))
    unknown = torch.zeros_like(values, dtype=torch.bool)
    unknown[::3, 0] = True
    found = []
    for each, rows in ((values.masked_fill(unknown, torch.nan), slice(None)), (values, ~unknown[:, 0])):
        (_, _), (part, examples) = made.parts(parents[rows], each[rows])
        part.solve(*examples)
        found.append(part.coefficients)
    torch.testing.assert_close(found[0][0], found[1][0])
    assert found[0].isfinite().all()
    assert found[0][0].any()


@pytest.mark.parametrize("rows", [10, 20, 40, 80])
def test_small_tables_have_no_spurious_effects(rows):
    """The controls take up degrees of freedom: with few rows left, nothing can be told from noise."""
    made, found = ActionEffects(2, 2), 0
    for seed in range(10):
        made.solve(*drawn(rows, 200 + seed, beta=0.0))
        found += int(made.coefficients.count_nonzero())
    assert found <= 2
