"""Ridge regression on panels, against least squares with the whole covariance, and on simulated units."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from rehearsal_torch.estimators.panel_ridge import (
    FREE,
    KAPPAS,
    Panel,
    fit_panel,
    levels,
    moved,
    penalties,
    within_step,
)

PENALTY = 1.0


def normal(seed, *shape):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def drawn(seed, units=60, steps=(3, 9), width=3, kappa=0.5, values=1, effect=1.0):
    """Units of some lengths whose rows have a level of their own; the features act by 1, -1, 1, ..."""
    stream = torch.Generator().manual_seed(seed)
    lengths = torch.randint(steps[0], steps[1] + 1, (units,), generator=stream)
    rows = int(lengths.sum())
    features = torch.cat([torch.ones(rows, 1, dtype=torch.float64), normal(seed + 1, rows, width)], 1)
    weights = effect * torch.tensor([(-1.0) ** place for place in range(width)]).double()
    level = math.sqrt(kappa) * normal(seed + 2, units, values)
    left = normal(seed + 3, rows, values) + level.repeat_interleave(lengths, 0)
    return Panel(features, (features[:, 1:] @ weights).unsqueeze(1) + left, lengths)


def whole(panel):
    """Every feature for every value."""
    return torch.ones(panel.features.shape[1], panel.values.shape[1], dtype=torch.bool)


def covariance(panel, kappa):
    """That of all rows: of e, and of the level that those of a unit have in common."""
    same = (panel.unit.unsqueeze(1) == panel.unit).double()
    return torch.eye(len(panel.unit), dtype=torch.float64) + kappa * same


@pytest.mark.parametrize("kappa", [0.0, 0.1, 1.6])
def test_ridge_on_levelled_rows_is_generalised_least_squares(kappa):
    panel = drawn(0, units=12)
    root = torch.linalg.cholesky(torch.linalg.inv(covariance(panel, kappa)))
    levelled = panel.levelled(kappa)
    for mine, rows in ((levelled.features, panel.features), (levelled.values, panel.values)):
        torch.testing.assert_close(mine.mT @ mine, rows.mT @ root @ root.mT @ rows, rtol=1e-12, atol=1e-10)
    features, values = root.mT @ panel.features, root.mT @ panel.values
    gram = features.mT @ features + torch.diag(penalties(features.shape[1], PENALTY))
    naive = torch.linalg.solve(gram, features.mT @ values)
    found = fit_panel(panel, torch.tensor([kappa], dtype=torch.float64), whole(panel), PENALTY)
    torch.testing.assert_close(found, naive, rtol=1e-10, atol=1e-12)


def test_values_have_a_level_and_features_of_their_own():
    panel, other = drawn(0, units=30), drawn(0, units=30)
    panel = Panel(panel.features, torch.cat([panel.values, other.values * 2], 1), panel.lengths)
    used = whole(panel)
    used[2, 1] = False
    kappa = torch.tensor([0.4, 0.0], dtype=torch.float64)
    found = fit_panel(panel, kappa, used, PENALTY)
    alone = fit_panel(
        Panel(panel.features, panel.values[:, :1], panel.lengths), kappa[:1], used[:, :1], PENALTY
    )
    torch.testing.assert_close(found[:, :1], alone, rtol=1e-12, atol=1e-12)
    kept = torch.tensor([0, 1, 3])
    fewer = Panel(panel.features[:, kept], panel.values[:, 1:], panel.lengths)
    torch.testing.assert_close(found[kept, 1:], fit_panel(fewer, kappa[1:], whole(fewer), PENALTY))
    assert found[2, 1] == 0


@pytest.mark.parametrize("kappa", [0.0, 0.2, 0.8])
def test_kappa_is_found_from_the_rows(kappa):
    panel = drawn(3, units=500, kappa=kappa, values=4)
    found, grid = levels(panel, PENALTY), torch.tensor(KAPPAS, dtype=torch.float64)
    assert set(found.tolist()) <= set(grid.tolist())
    away = (grid.unsqueeze(1) == found).double().argmax(0) - KAPPAS.index(kappa)
    assert away.abs().max() <= 1, "no farther off than the next one on the grid"


@settings(max_examples=25, deadline=None)
@given(
    lengths=st.lists(st.integers(1, 6), min_size=1, max_size=8),
    width=st.integers(0, 4),
    values=st.integers(1, 3),
    seed=st.integers(0, 10**6),
)
def test_any_panel_has_finite_weights_levels_and_p_values(lengths, width, values, seed):
    rows = sum(lengths)
    features = torch.cat([torch.ones(rows, 1, dtype=torch.float64), normal(seed, rows, width)], 1)
    panel = Panel(features, normal(seed + 1, rows, values), torch.tensor(lengths))
    assert panel.unit.tolist() == [unit for unit, length in enumerate(lengths) for _ in range(length)]
    kappa = levels(panel, PENALTY)
    assert kappa.shape == (values,)
    for draws in (None, torch.Generator().manual_seed(seed)):
        found = fit_panel(panel, kappa, whole(panel), PENALTY, draws)
        assert found.shape == (1 + width, values)
        assert bool(found.isfinite().all())
    p = moved(panel, width, PENALTY)
    assert p.shape == (values,)
    assert bool(((p >= 0) & (p <= 1)).all())
    assert width < len(lengths) or p.tolist() == [1.0] * values, "no more units than features"


def test_refits_are_drawn_by_their_generator():
    panel = drawn(0)
    kappa = levels(panel, PENALTY)

    def refit(seed):
        return fit_panel(panel, kappa, whole(panel), PENALTY, torch.Generator().manual_seed(seed))

    fit = fit_panel(panel, kappa, whole(panel), PENALTY)
    assert torch.equal(refit(1), refit(1))
    assert not torch.equal(refit(1), refit(2))
    assert (refit(1) != fit).all()


@pytest.mark.parametrize("kappa", [0.0, 0.8])
def test_refits_spread_as_fits_to_other_units_do(kappa):
    known, draws = torch.tensor([kappa], dtype=torch.float64), torch.Generator().manual_seed(0)
    one = drawn(0, units=80, kappa=kappa)
    refits = torch.stack([fit_panel(one, known, whole(one), PENALTY, draws) for _ in range(300)])
    fits = []
    for seed in range(300):
        panel = drawn(10 * seed + 1000, units=80, kappa=kappa)
        fits.append(fit_panel(panel, known, whole(panel), PENALTY))
    ratio = refits.std(0) / torch.stack(fits).std(0)
    assert (ratio > 1 / 1.5).all()
    assert (ratio < 1.5).all()


def test_where_rows_say_nothing_refits_spread_as_the_prior():
    panel = drawn(0, units=80, kappa=0.0)
    silent = torch.cat([panel.features, torch.zeros(len(panel.unit), 1, dtype=torch.float64)], 1)
    panel, draws = Panel(silent, panel.values, panel.lengths), torch.Generator().manual_seed(0)
    known = torch.zeros(1, dtype=torch.float64)
    refits = torch.stack([fit_panel(panel, known, whole(panel), 4.0, draws)[-1, 0] for _ in range(300)])
    assert float(refits.std()) == pytest.approx(1 / math.sqrt(4.0), rel=0.15), "sigma is 1"
    assert abs(float(refits.mean())) < 0.1
    assert fit_panel(panel, known, whole(panel), 4.0)[-1, 0] == 0
    assert penalties(3, 4.0).tolist() == [FREE, 4.0, 4.0]


@pytest.mark.parametrize("kappa", [0.0, 0.8])
def test_p_values_are_uniform_without_an_effect(kappa):
    found = torch.cat(
        [
            moved(drawn(10 * seed, units=60, kappa=kappa, values=5, effect=0.0), 2, PENALTY)
            for seed in range(60)
        ]
    )
    assert stats.kstest(found.numpy(), "uniform").pvalue > 0.01
    assert 0.01 < float((found < 0.05).double().mean()) < 0.1


def test_p_values_are_small_where_there_is_an_effect():
    panel = drawn(5, units=60, kappa=0.8, effect=0.3)
    assert float(moved(panel, 3, PENALTY)) < 1e-6
    assert float(moved(panel, 1, PENALTY)) < 1e-3


def blocks(values):
    """Each value with two bends of it, (n, D, 3)."""
    return torch.stack([values, (values + 0.5).clamp_min(0), (values - 0.5).clamp_min(0)], -1)


def ordered(panel, fixed=(), values=None, told=()):
    width = panel.values.shape[1]
    still = torch.zeros(width, dtype=torch.bool)
    still[list(fixed)] = True
    late = blocks(panel.values if values is None else values)
    acts, order = within_step(panel, torch.zeros(width, dtype=torch.float64), late, still, PENALTY, told)
    return acts, order.tolist()


@pytest.mark.parametrize(("cause", "effect"), [(0, 1), (1, 0), (2, 0)])
def test_a_bent_cause_within_a_step_is_found_with_its_direction(cause, effect):
    panel = drawn(7, units=150, values=3, kappa=0.0)
    values = panel.values.clone()
    values[:, effect] += 1.5 * values[:, cause].clamp_min(0)
    acts, order = ordered(Panel(panel.features, values, panel.lengths))
    assert acts.nonzero().tolist() == [[cause, effect]]
    assert order.index(cause) < order.index(effect)
    assert sorted(order) == [0, 1, 2]


@pytest.mark.parametrize("told", [(0, 1), (1, 0), (2, 0, 1), (1, 2, 0)])
def test_an_order_that_is_told_is_kept_and_the_rest_is_found(told):
    panel = drawn(7, units=150, values=3, kappa=0.0)
    values = panel.values.clone()
    values[:, 1] += 1.5 * values[:, 0].clamp_min(0)
    acts, order = ordered(Panel(panel.features, values, panel.lengths), told=told)
    places = [order.index(each) for each in told]
    assert places == sorted(places)
    assert bool(acts[0, 1]) == (told.index(0) < told.index(1))
    assert not bool(acts[1, 0]) or told.index(1) < told.index(0)


def test_what_nothing_moves_comes_first_and_has_no_cause():
    panel = drawn(7, units=150, values=3, kappa=0.0)
    values = panel.values.clone()
    values[:, 0] += 1.5 * values[:, 2].clamp_min(0)
    panel = Panel(panel.features, values, panel.lengths)
    acts, order = ordered(panel, fixed=(0,))
    assert order[0] == 0
    assert not bool(acts[:, 0].any()), "the arrow is not turned into a cause of what is fixed"
    acts, order = ordered(panel, fixed=(2,))
    assert (order[0], acts.nonzero().tolist()) == (2, [[2, 0]])
    acts, order = ordered(panel, fixed=(0, 1, 2))
    assert (order, bool(acts.any())) == ([0, 1, 2], False)


def test_a_chain_is_found_without_the_way_round_it():
    panel = drawn(11, units=200, values=3, kappa=0.0)
    values = panel.values.clone()
    values[:, 2] += 1.5 * values[:, 0].clamp_min(0)
    values[:, 1] += 1.5 * (values[:, 2] - 1).clamp_min(0)
    acts, order = ordered(Panel(panel.features, values, panel.lengths))
    assert acts.nonzero().tolist() == [[0, 2], [2, 1]]
    assert order == [0, 2, 1]


def test_the_best_graph_is_that_of_all_orders():
    """The dynamic program, against a walk through all orders of three values by plain least squares."""
    panel = drawn(13, units=40, values=3, kappa=0.0)
    mixed = panel.values.clone()
    mixed[:, 1] += 0.4 * mixed[:, 0].clamp_min(0)
    mixed[:, 2] += 0.3 * mixed[:, 1]
    panel = Panel(panel.features, mixed, panel.lengths)
    late, rows = blocks(mixed), len(mixed)

    def score(value, causes):
        columns = torch.cat([panel.features, late[:, list(causes)].flatten(1)], 1)
        weights = penalties(columns.shape[1], PENALTY)
        left = panel.values[:, value] - columns @ torch.linalg.solve(
            columns.mT @ columns + torch.diag(weights), columns.mT @ panel.values[:, value]
        )
        return -rows / 2 * float(left.square().sum().log()) - math.log(rows) / 2 * 3 * len(causes)

    graphs = []
    for place in range(2**6):
        arrows = [(a, b) for a in range(3) for b in range(3) if a != b]
        chosen = [arrow for bit, arrow in enumerate(arrows) if place >> bit & 1]
        acts = torch.zeros(3, 3, dtype=torch.bool)
        for a, b in chosen:
            acts[a, b] = True
        if bool(
            (
                torch.linalg.matrix_power(acts.double(), 3) + torch.linalg.matrix_power(acts.double(), 2)
            ).trace()
            > 0
        ):
            continue
        total = sum(score(value, acts[:, value].nonzero()[:, 0].tolist()) for value in range(3))
        graphs.append((total, acts.tolist()))
    assert len(graphs) == 25, "graphs of three values without a circle"
    assert ordered(panel)[0].tolist() == max(graphs)[1]


def test_each_value_is_fitted_to_the_rows_in_which_it_is_known():
    panel = drawn(3, units=40, values=3)
    known = torch.rand(panel.values.shape, generator=torch.Generator().manual_seed(0)) < 0.4
    known[:, 0], known[panel.unit == 5] = True, torch.tensor([True, False, False])
    masked = Panel(panel.features, panel.values.where(known, torch.nan), panel.lengths)
    kappa = levels(masked, PENALTY)
    weights = fit_panel(masked, kappa, whole(masked), PENALTY)
    refit = fit_panel(masked, kappa, whole(masked), PENALTY, torch.Generator().manual_seed(1))
    assert refit.isfinite().all()
    late = normal(9, len(panel.values), 3, 2)
    acts, order = within_step(masked, kappa, late, torch.zeros(3, dtype=torch.bool), PENALTY)
    assert sorted(order.tolist()) == [0, 1, 2]
    assert not acts.any()
    for place, rows in enumerate(known.T):
        lengths = torch.bincount(panel.unit[rows], minlength=40)
        own = Panel(panel.features[rows], panel.values[rows][:, [place]], lengths[lengths > 0])
        torch.testing.assert_close(levels(own, PENALTY), kappa[[place]])
        alone = fit_panel(own, kappa[[place]], whole(own), PENALTY)
        torch.testing.assert_close(alone, weights[:, [place]], rtol=1e-10, atol=1e-12)


def test_what_differs_between_few_units_alone_moves_nothing():
    """Levels of doses that a unit keeps, and noise that is its own."""
    found = []
    for seed in range(100):
        panel = drawn(10 * seed, units=30, steps=(8, 8), effect=0.0)
        given = torch.rand(30, 2, 1, generator=torch.Generator().manual_seed(seed)) > torch.linspace(
            0.2, 0.8, 4
        )
        features = torch.cat([panel.features, given.flatten(1)[panel.unit].double()], 1)
        found.append(float(moved(Panel(features, panel.values, panel.lengths), 8, PENALTY)))
    assert sum(p < 0.01 for p in found) < 12
