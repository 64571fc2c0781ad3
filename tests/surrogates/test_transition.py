"""How well the noise that a model abducts can be predicted, where it is noise and where it is error."""

import runpy
from dataclasses import replace
from functools import partial
from types import SimpleNamespace

import pytest
import torch

from rehearsal_torch.checkpoint import load, save
from rehearsal_torch.data.episode import Episode, transitions
from rehearsal_torch.data.table import Table
from rehearsal_torch.data.trainable_part import Solved
from rehearsal_torch.mechanisms.location_scale import LocationScale
from rehearsal_torch.problems.sequences import four_hour_table
from rehearsal_torch.problems.sequences.sepsis_cohort import SepsisSimulated
from rehearsal_torch.surrogates import transition
from rehearsal_torch.surrogates.transition import TransitionModel, noise_causes, predictable_noise
from rehearsal_torch.training.gradient_descent import Descent
from rehearsal_torch.training.surrogate_fit import fit
from tests.places import ROOT
from tests.test_checkpoint import CONFIG
from tests.toys.episodes import equation_episode, transition_model
from tests.toys.transitions import CONTEXTUAL, DOSES, NAMES, STATIC, VARYING, model, observations, patients


@pytest.fixture(scope="module")
def surrogate() -> TransitionModel:
    return fit(model(), observations(), Descent(max_epochs=3, progress=False))


def test_examples_are_parents_in_order_and_the_next_varying_state(surrogate: TransitionModel):
    table = observations(seed=4)
    parents, values = surrogate.examples(table)
    assert parents.shape == (len(table), 6)
    assert values.shape == (len(table), 2)
    assert parents.dtype == values.dtype == torch.float32
    features = (*VARYING, *STATIC, *CONTEXTUAL)
    assert torch.allclose(
        surrogate.rescale.unscale(parents[:, :4].double()), table.columns(features), atol=1e-4
    )
    assert torch.allclose(surrogate.units(values.double()), table.columns(("x'", "y'")), atol=1e-5)
    levels = surrogate.levels.levels(surrogate.levels.digitise(table.columns(DOSES)))
    assert torch.equal(parents[:, 4:], (levels / 2 - 0.5).float())


def test_blocks_of_rows_are_scaled_as_all_rows_at_once(monkeypatch: pytest.MonkeyPatch):
    table = observations(seed=4)
    whole, parts = model(), model()
    expected = [[each.clone() for each in rows] for _, rows in solved(whole, table)]
    names = whole.rescale.names
    both = torch.cat([table.columns(names), table.columns([f"{name}'" for name in names])])
    assert torch.equal(whole.rescale.lower, both.amin(0))
    assert torch.equal(whole.rescale.upper, both.amax(0))
    monkeypatch.setattr(transition, "BLOCK", 7)
    found = solved(parts, table)
    assert len(table) % 7
    assert len(found[0][1][0]) == 4 * -(-len(table) // 7), "two ends of two steps for each block"
    for (_, one), other in zip(found[1:], expected[1:], strict=True):
        assert all(torch.equal(*pair) for pair in zip(one, other, strict=True))
    assert torch.equal(parts.rescale.lower, whole.rescale.lower)
    assert torch.equal(parts.rescale.upper, whole.rescale.upper)


def solved(made: TransitionModel, table: Table):
    """The parts with their examples; those with a solver are solved."""
    found = []
    for part, examples in made.parts(table):
        if isinstance(part, Solved):
            part.solve(*examples)
        found.append((part, examples))
    return found


def test_a_course_passes_static_and_contextual_features_through(surrogate: TransitionModel):
    """Each step is the mechanism at the observed static and contextual features, with the noise of that
    step."""
    (episode,) = patients(1, 6, seed=5)
    trajectory = surrogate.trajectory(episode)
    mechanism = model().mechanism.double()
    mechanism.load_state_dict(surrogate.mechanism.state_dict())
    boxed = surrogate.rescale.scale(episode.columns(surrogate.rescale.names))
    elsewhere = torch.tensor([[0.2, -0.1]], dtype=torch.float64)
    for time in range(5):
        shown = surrogate.levels.encoded(torch.arange(trajectory.actions))
        taken = torch.cat([boxed[time], shown[trajectory.observed[time]]])
        noise = mechanism.abduct(taken, boxed[time + 1, :2])
        for action in range(trajectory.actions):
            parents = torch.cat([elsewhere[0], boxed[time, 2:], shown[action]])
            assert torch.allclose(
                trajectory.step(elsewhere, time, torch.tensor(action))[0],
                mechanism(parents, noise),
                atol=1e-8,
            )


def test_log_likelihood_is_the_mechanisms(surrogate: TransitionModel):
    table = observations(seed=6)
    assert surrogate.log_likelihood(table).shape == (len(table),)
    assert surrogate.log_likelihood(table).mean().item() == pytest.approx(
        -surrogate.mechanism.loss(*surrogate.examples(table)).item(), rel=1e-5
    )


def test_logarithms_are_undone_in_units_and_have_no_slope():
    made = TransitionModel(
        VARYING, STATIC, CONTEXTUAL, DOSES, partial(LocationScale, hidden=4), levels=3, logarithms=("y",)
    )
    raw = observations()
    positive = type(raw)(
        raw.names,
        torch.where(torch.tensor([name[0] == "y" for name in raw.names]), raw.values.exp(), raw.values),
        raw.altered,
    )
    fit(made, positive, Descent(max_epochs=1, progress=False))
    _, values = made.examples(positive)
    assert torch.allclose(made.units(values.double()), positive.columns(("x'", "y'")), rtol=1e-4, atol=1e-4)
    assert torch.isinf(made.state_scale()).tolist() == [False, True]


def test_one_role_a_column():
    with pytest.raises(ValueError, match="each column has one role"):
        TransitionModel(("x",), ("x",), (), ("a",), partial(LocationScale, hidden=4))
    with pytest.raises(ValueError, match="each column has one role"):
        TransitionModel(("x",), (), (), ("x",), partial(LocationScale, hidden=4))


def owned(dtype: torch.dtype, **rest: float) -> TransitionModel:
    """A model of given weights that do not fit a constant of one."""
    stream = torch.Generator().manual_seed(3)
    shapes = {"inner": (8, 3), "action": (8, 3), "bias": (8,), "outer": (2, 8), "shift": (2,)}
    location, scale = (
        {name: torch.randn(shape, generator=stream, dtype=dtype) for name, shape in shapes.items()}
        for _ in range(2)
    )
    mechanism = LocationScale.from_tensors(location, scale, 0.1 * torch.eye(2, dtype=dtype), **rest)
    ranges = {name: (0.0, 1.5) for name in (*VARYING, *STATIC, *CONTEXTUAL)}
    return TransitionModel.from_tensors(
        VARYING, STATIC, CONTEXTUAL, mechanism, ranges, {DOSES[0]: [0, 1, 2, 3], DOSES[1]: [0, 5]}
    )


def test_own_weights_ranges_and_levels_are_used_as_they_are(tmp_path):
    model = owned(torch.float64)
    inner, outer, _ = model.mechanism.networks.weights()
    assert torch.equal(inner, model.mechanism.networks.inner)
    assert torch.equal(outer, model.mechanism.networks.outer)
    assert torch.linalg.matrix_norm(inner[0].detach(), 2) > 1
    assert model.rescale.upper.tolist() == [1.5] * 4
    assert model.levels.medians.tolist() == [[0.0, 1.0, 2.0, 3.0], [0.0, 5.0, 5.0, 5.0]]
    assert model.selectable.reshape(4, 4)[0].tolist() == [True, True, False, False]
    (episode,) = patients(1, 6, seed=5)
    trajectory = model.trajectory(episode)
    assert torch.equal(trajectory.inner, inner[:, :, :2].reshape(16, 2))
    # In single precision a checkpoint keeps them to the last bit too.
    single = owned(torch.float32)
    made = {
        "_target_": "rehearsal_torch.mechanisms.location_scale.LocationScale",
        "_partial_": True,
        "hidden": 8,
    }
    config = {
        "_target_": "rehearsal_torch.surrogates.transition.TransitionModel",
        "levels": 4,
        "logarithms": [],
    }
    config |= {
        "varying": list(VARYING),
        "static": list(STATIC),
        "contextual": list(CONTEXTUAL),
        "doses": list(DOSES),
    }
    save(
        single,
        {**config, "mechanism": {**made, "location_constant": None, "scale_constant": None}},
        tmp_path / "own",
    )
    loaded = load(tmp_path / "own")
    assert all(
        torch.equal(one, other)
        for one, other in zip(loaded.state_dict().values(), single.state_dict().values(), strict=True)
    )
    assert torch.equal(loaded.trajectory(episode).noise, single.trajectory(episode).noise)
    # Under a constant the same weights would be divided: nothing is decided with them.
    save(
        single,
        {**config, "mechanism": {**made, "location_constant": 1.0, "scale_constant": None}},
        tmp_path / "bound",
    )
    with pytest.raises(
        ValueError,
        match=r"location \(h\): expected weights of spectral norm at most 1 under a Lipschitz constant of 1",
    ):
        load(tmp_path / "bound").trajectory(episode)


def test_own_parts_that_do_not_fit_together_are_refused():
    model = owned(torch.float64)
    ranges = {name: (0.0, 1.0) for name in model.rescale.names}
    with pytest.raises(
        ValueError, match=r"expected a mechanism with 2 smooth parents .* and 2 outputs; got 3, 3 and 2"
    ):
        TransitionModel.from_tensors(
            VARYING, [], CONTEXTUAL, model.mechanism, ranges, {DOSES[0]: [0, 1], DOSES[1]: [0, 1]}
        )
    with pytest.raises(ValueError, match="has not been fitted yet"):
        TransitionModel(VARYING, STATIC, CONTEXTUAL, DOSES, partial(LocationScale, hidden=4)).trajectory(
            patients(1, 4, seed=1)[0]
        )


@pytest.mark.filterwarnings("ignore:Total length of `list` across ranks is zero")
@pytest.mark.filterwarnings("ignore:.*LeafSpec.* is deprecated:FutureWarning")
def test_the_example_of_own_weights_runs(capsys):
    found = runpy.run_path(str(ROOT / "examples/own_weights/own_weights.py"))
    assert found["decision"].value >= found["objective"].outcome()
    assert "Alteration(names=('action[" in capsys.readouterr().out


WARD = (four_hour_table.VARYING, four_hour_table.STATIC, four_hour_table.CONTEXTUAL, four_hour_table.DOSES)


@pytest.fixture(scope="module")
def problem() -> SepsisSimulated:
    return SepsisSimulated(patients=120, seed=0)


@pytest.mark.slow
@pytest.mark.parametrize("constants", [(1.0, 0.1), (0.5, 0.3), (None, None)])
def test_jacobians_stay_below_the_bound(problem, constants):
    torch.manual_seed(0)
    part = partial(LocationScale, hidden=30, location_constant=constants[0], scale_constant=constants[1])
    model = TransitionModel(*WARD, part)
    fit(model, problem.observations(), Descent(max_epochs=3, progress=False))
    found = model.lipschitz(problem.held_out())
    assert 0 < found["jacobian_mean"] <= found["jacobian_largest"]
    assert found["share_largest"] <= 1
    assert found["jacobian_largest"] <= found["bound_largest"]
    if constants[0] is not None and constants[1] is not None:
        assert found["location_constant"] <= constants[0] * (1 + 1e-6)
        assert found["scale_constant"] <= constants[1] * (1 + 1e-6)
    parents, values = (part[:1].double() for part in model.examples(problem.held_out()))
    mechanism = model.mechanism.double()
    noise = mechanism.abduct(parents, values)
    by_hand = torch.autograd.functional.jacobian(
        lambda s: mechanism(torch.cat([s, parents[:, 12:]], -1), noise)[0], parents[:, :12]
    )[:, 0]
    first = Table.observed(problem.held_out().names, problem.held_out().values[:1])
    assert model.lipschitz(first)["jacobian_largest"] == pytest.approx(
        float(torch.linalg.matrix_norm(by_hand, 2)), rel=1e-5
    )


def test_no_rows_are_refused(problem: SepsisSimulated) -> None:
    model = TransitionModel(*WARD, partial(LocationScale, hidden=3))
    table = problem.held_out()
    with pytest.raises(ValueError, match="got none"):
        model.lipschitz(Table.observed(table.names, table.values[:0]))


def test_the_threshold_of_effects_is_that_of_the_configuration():
    made = partial(TransitionModel, VARYING, STATIC, CONTEXTUAL, DOSES, partial(LocationScale, hidden=4))
    few = made(effects="sparse").mechanism
    more = made(effects="sparse", effect_threshold=2.5).mechanism
    assert (few.effects.threshold, more.effects.threshold) == (4.0, 2.5)
    with pytest.raises(ValueError, match="effect_threshold: expected a number above 0; got 0"):
        made(effects="sparse", effect_threshold=0)


def test_values_outside_the_training_range_are_named_beyond_a_slack(surrogate: TransitionModel):
    (episode,) = patients(1, 6, seed=5)
    low, high = (float(end[0]) for end in (surrogate.rescale.lower, surrogate.rescale.upper))
    values = episode.values.clone()
    values[:, 0] = torch.linspace(low, high + 0.04 * (high - low), 6, dtype=torch.float64)
    found = surrogate.outside(Episode("one", episode.names, values))
    assert found[0].text.startswith("x lies between")
    within = surrogate.outside(Episode("one", episode.names, values), 0.05)
    assert not any(each.text.startswith("x ") for each in within)
    assert surrogate.outside(Episode("one", episode.names, values), 0.03)


DOUBLE = torch.float64


def rows(count: int, seed: int) -> Table:
    draws = torch.randn(count, 3, generator=torch.Generator().manual_seed(seed), dtype=DOUBLE)
    return Table.observed(("x", "a", "u"), draws)


def abducting(error: float, members: int = 2):
    """A model of one step that takes u + error sin(2 x) a for noise of its first state."""

    def noise(table: Table):
        x, a, u = table.values.T
        found = torch.stack([u + error * torch.sin(2 * x) * a, 0 * u], -1)
        return table.values[:, :2], found.unsqueeze(1).expand(-1, members, -1)

    return SimpleNamespace(noise=noise)


@pytest.mark.slow
def test_noise_cannot_be_predicted_and_error_can():
    for error, low, high in ((0.0, -0.5, 0.02), (2.0, 0.5, 1.0)):
        first, second = predictable_noise(abducting(error), rows(800, 1), rows(300, 2)).tolist()
        assert low < first < high
        assert second == 0


@pytest.mark.parametrize("times", [0.5, 4.0, 100.0])
def test_of_less_noise_than_matters_a_share_of_what_matters_is_predicted(times):
    given = [rows(400, 1), rows(200, 2)]
    plain = predictable_noise(abducting(2.0), *given)
    _, noise = abducting(2.0).noise(given[1])
    least = torch.stack([times * noise[:, 0, 0].var(correction=0), noise.new_zeros(())])
    found = predictable_noise(abducting(2.0), *given, least)
    assert float(found[0]) == pytest.approx(float(plain[0]) / max(times, 1.0), abs=0.002)
    assert found[1] == plain[1] == 0


def test_what_explains_noise_is_another_state_of_the_same_step_or_a_level_of_each_unit():
    def steps(units, seed):
        draws = torch.Generator().manual_seed(seed)
        x, a, u, v = torch.randn(4, units, 10, generator=draws, dtype=DOUBLE)
        level = torch.randn(units, 1, generator=draws, dtype=DOUBLE).expand(-1, 10)
        values = torch.stack([x, a, u, v, level], -1).flatten(0, 1)
        unit = torch.arange(units).repeat_interleave(10)
        return replace(Table.observed(("x", "a", "u", "v", "level"), values), units=unit)

    def noise(table):
        x, a, u, v, level = table.values.T
        found = torch.stack([2 * v.clamp_min(0) + 0.2 * u, level + 0.5 * u, u], -1)
        return torch.stack([x, a], 1), found.unsqueeze(1)

    def examples(table):
        x, _, _, v, _ = table.values.T
        return table.values[:, :2], torch.stack([x, x, x + v], 1)

    stub = SimpleNamespace(noise=noise, names=("p", "q", "r"), first=SimpleNamespace(examples=examples))
    (within, level) = noise_causes(stub, steps(80, 1), steps(40, 2), [0, 1])
    assert within[0] > 0.8
    assert within[1] < 0.1
    assert level[0] < 0.1
    assert level[1] == pytest.approx(1 / 1.25, abs=0.1)
    assert within[2] == level[2] == 0, "which was not asked for"
    assert noise_causes(stub, steps(80, 1), steps(3, 2), [0, 1]).sum() == 0, "of too few rows"


def test_nothing_is_said_of_few_rows_nor_of_a_model_that_abducts_none():
    for learnt, held_out in ((800, None), (800, 99), (99, 300), (30, 300), (None, 300)):
        given = [None if count is None else rows(count, count) for count in (learnt, held_out)]
        assert predictable_noise(abducting(2.0), *given).numel() == 0
    truth = equation_episode(0).surrogate
    assert predictable_noise(truth, rows(800, 1), rows(300, 2)).numel() == 0
    truth.check_noise(rows(800, 1), rows(300, 2))
    assert truth.predictable_noise is None
    assert truth.noise_shares() == {}


@pytest.mark.parametrize("which", [0, 1])
def test_noise_beyond_arithmetic_is_not_judged(which):
    given = [rows(200, 1), rows(150, 2)]
    given[which].values[0, 2] = 1e300
    assert predictable_noise(abducting(2.0), *given).numel() == 0


def test_a_checkpoint_keeps_it_and_one_without_it_is_read(tmp_path):
    fitted, mechanism = transition_model(0), CONFIG["mechanism"] | {"hidden": 8}
    config = CONFIG | {"varying": ["x0", "x1"], "doses": ["drug0"], "mechanism": mechanism}
    save(fitted, config, tmp_path / "before")
    assert load(tmp_path / "before").predictable_noise.numel() == 0
    shares = torch.tensor([0.25, -0.125], dtype=DOUBLE)
    fitted.noise_check.shares = shares
    save(fitted, config, tmp_path / "after")
    assert torch.equal(load(tmp_path / "after").predictable_noise, shares)
    assert load(tmp_path / "after").noise_shares() == {"x0": 0.25, "x1": -0.125}


def observations_of(count: int, seed: int) -> Table:
    """Episodes of the model's own class."""
    return observations(count, 6, seed)


def bent(count: int, seed: int) -> Table:
    """Episodes of no location-scale class: a fold of the state, which a dose turns over."""
    found, stream = [], torch.Generator().manual_seed(seed)
    for each in patients(count, 6, seed):
        values = each.values.clone()
        for time in range(1, 6):
            sign = 1 - 2 * (values[time - 1, 4] > 0).to(DOUBLE)
            values[time, 0] = 2 * torch.sin(3 * values[time - 1, 0]) * sign + 0.3 * torch.randn(
                (), generator=stream, dtype=DOUBLE
            )
        found.append(Episode(each.identity, NAMES, values))
    return transitions(found)


@pytest.mark.slow
def test_it_speaks_where_the_world_is_of_another_class_and_not_where_it_is_of_the_models_own():
    trainer = Descent(max_epochs=60, learning_rate=1e-2, progress=False)
    for world, low, high in ((observations_of, -0.5, 0.1), (bent, 0.3, 1.0)):
        learnt, held_out = world(300, 1000), world(80, 1001)
        fitted = fit(model(hidden=32), learnt, trainer, held_out)
        assert low < fitted.noise_shares()["x"] < high
