"""The closed form of a step, on simulated units whose steps are known."""

from dataclasses import replace
from functools import cache

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from rehearsal_torch.data.dose_levels import DoseLevels
from rehearsal_torch.mechanisms.bent_transition import (
    BENDS,
    FEWEST,
    LATER,
    OUTER,
    UNMOVED,
    WIDENED,
    BentTransition,
    Steps,
)
from rehearsal_torch.mechanisms.mechanism import replay

DOUBLE = torch.float64
REFITS = 8
MOVED = torch.zeros(2, dtype=DOUBLE)


def levels(count=3, names=("drug",)):
    return DoseLevels(names, count).fix([list(range(count))] * len(names))


def linear(state, level, other, noise):
    """x' falls with the dose and lifts y' a step later; the other feature acts on both."""
    x, y = state.unbind(-1)
    return torch.stack([0.7 * x - 0.8 * level + 0.3 * other, 0.5 * y + 0.6 * x - 0.2 * other], -1) + noise


def within(state, level, other, noise):
    """The bend of x' moves y' in the same step."""
    x, y = state.unbind(-1)
    new = 0.5 * x - 0.8 * level + noise[..., 0]
    return torch.stack([new, 0.5 * y + 2 * new.clamp_min(0) + 0.5 * noise[..., 1]], -1)


def simulated(move, units, horizon, seed=0, own=0.0):
    """States (U, T, 2), the other feature (U, T, 1), levels (U, T) that depend on x, and noise (U, T, 2)."""
    stream = torch.Generator().manual_seed(seed)

    def draw(*shape):
        return torch.randn(*shape, generator=stream, dtype=DOUBLE)

    other, shift = draw(units, 1), own * draw(units, 2)
    states, given, noises = [draw(units, 2)], [], []
    for _ in range(horizon):
        given.append((states[-1][:, 0] + 1.5 * draw(units)).round().clamp(0, 2).long())
        noises.append(0.5 * draw(units, 2) + shift)
        states.append(move(states[-1], given[-1].double(), other[:, 0], noises[-1]))
    kept = other.unsqueeze(1).expand(-1, horizon, -1)
    return torch.stack(states[:-1], 1), kept, torch.stack(given, 1), torch.stack(noises, 1)


def steps(states, others, actions):
    """The transitions of all units."""
    begins = torch.zeros(states.shape[0], states.shape[1] - 1, dtype=torch.bool)
    begins[:, 0] = True
    rows = (states[:, :-1], others[:, :-1], actions[:, :-1], states[:, 1:], begins)
    return Steps(*(each.flatten(0, 1) for each in rows))


def fitted(rows, unmoved=MOVED, seed=0, doses=None, refits=REFITS):
    made = BentTransition(rows.states.shape[1], rows.others.shape[1], doses or levels(), refits)
    made.fit(rows, unmoved, seed)
    return made


def ahead(course, states, time, actions):
    """The next states by the fit, or by each refit."""
    return course.step(states.expand(*course.noise.shape[:-2], -1, -1), time, actions)


@cache
def known(move=linear, own=0.0):
    """A form, not to be changed, and an episode that it has not seen: states, others, actions, noise."""
    *data, _ = simulated(move, 300, 10, own=own)
    one = [each[0] for each in simulated(move, 1, 8, seed=1, own=own)]
    return fitted(steps(*data)), one


@pytest.mark.parametrize("own", [0.0, 0.5])
def test_the_observed_actions_give_the_observed_states_by_the_fit_and_all_refits(own):
    form, (states, others, actions, _) = known(own=own)
    for refits in (False, True):
        course = form.trajectory(states, others, actions, refits)
        for time in range(7):
            found = ahead(course, states[time : time + 1], time, actions[time])
            assert found.shape == ((REFITS, 1, 2) if refits else (1, 2))
            torch.testing.assert_close(found, states[time + 1].expand_as(found), rtol=0, atol=1e-12)
    every = course.replays(torch.stack([actions, actions]))
    assert torch.equal(every, states.expand(REFITS, 2, -1, -1)), "without the rounding of the step"


@pytest.mark.parametrize("move", [linear, within])
@pytest.mark.parametrize("unmoved", [[0.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
def test_branches_are_steps(move, unmoved):
    *data, _ = simulated(move, 100, 8)
    form, (states, others, actions, _) = fitted(steps(*data), torch.tensor(unmoved, dtype=DOUBLE)), known()[1]
    course = form.trajectory(states, others, actions)
    somewhere = states[:4] + 0.3
    for time in (0, 6):
        branches = course.branch(somewhere, time)
        assert branches.shape == (4, 3, 2)
        for action in range(3):
            one = course.step(somewhere, time, torch.tensor(action))
            torch.testing.assert_close(branches[:, action], one, rtol=0, atol=1e-12)
        some = course.branch(somewhere, time, torch.tensor([2, 0]))
        torch.testing.assert_close(some, branches[:, [2, 0]], rtol=0, atol=1e-12)
    mixed = course.step(somewhere, 0, torch.tensor([2, 0, 1, 1]))
    first = course.branch(somewhere, 0)
    torch.testing.assert_close(mixed, first[torch.arange(4), [2, 0, 1, 1]], rtol=0, atol=1e-12)


def test_replays_are_the_replays_of_each_refit():
    form, (states, others, actions, _) = known(within)
    other = (actions + 1) % 3
    other[:2] = actions[:2]
    every = form.trajectory(states, others, actions, True).replays(torch.stack([other, actions]))
    assert every.shape == (REFITS, 2, 8, 2)
    for place in range(REFITS):
        alone = fitted_as(form, place)
        one = replay(alone.trajectory(states, others, actions), torch.stack([other, actions]))
        torch.testing.assert_close(every[place], one, rtol=1e-9, atol=1e-9)


def fitted_as(form, place):
    """A form whose fit is a refit of another one."""
    made = BentTransition(2, 1, levels(), REFITS)
    made.load_state_dict(form.state_dict())
    made.weights, made.early, made.late = (
        form.refitted[place].to(DOUBLE),
        form.early[[1 + place]],
        form.late[[1 + place]],
    )
    return made


def truth(move, states, others, noise, actions):
    course = [states[0]]
    for time in range(len(states) - 1):
        course.append(move(course[-1], actions[time].double(), others[time, 0], noise[time]))
    return torch.stack(course)


@pytest.mark.parametrize(
    ("move", "alone", "share"), [(linear, False, 0.05), (linear, True, 0.1), (within, False, 0.1)]
)
def test_counterfactuals_are_those_of_a_known_world(move, alone, share):
    """What is wrong of the effects of other actions, over 20 units, as a share of these; also where it is not
    known which rows are a unit's."""
    rows = steps(*simulated(move, 3000, 10)[:3])
    form, wrong, size = fitted(replace(rows, begins=rows.begins | alone), refits=1), [], []
    for states, others, actions, noise in zip(*simulated(move, 20, 8, seed=2), strict=True):
        other = torch.where(torch.arange(8) < 4, 2 - actions, actions)
        found = replay(form.trajectory(states, others, actions), other[None])[0]
        right = truth(move, states, others, noise, other)
        wrong.append(found - right)
        size.append(right - states)
    assert float(torch.stack(size).square().mean().sqrt()) > 0.3
    ratio = torch.stack(wrong).square().sum((0, 1)) / torch.stack(size).square().sum((0, 1))
    assert (ratio.sqrt() < share).all(), ratio.sqrt()


def test_a_bend_of_the_next_state_is_found_and_carried_on():
    form, (states, others, actions, _) = known(within)
    assert form.causes.tolist() == [[0, 1], [0, 0]]
    assert form.order.tolist() == [0, 1]
    # Where x' stays below the bend, the dose does nothing to y'; where it stays above, twice as much.
    high, low = torch.tensor([[4.0, 0.0]]).double(), torch.tensor([[-4.0, 0.0]]).double()
    course = form.trajectory(states, others, actions)
    for state, slope in ((high, 2.0), (low, 0.0)):
        change = course.branch(state, 3)[0, 2] - course.branch(state, 3)[0, 0]
        assert float(change[1] / change[0]) == pytest.approx(slope, abs=0.2)
    assert not bool(known()[0].causes.any()), "in the linear world nothing acts within a step"


def test_what_no_action_moves_keeps_its_course():
    *data, _ = simulated(linear, 100, 8)
    form, (states, others, actions, _) = fitted(steps(*data), torch.tensor([1.0, 0.0]).double()), known()[1]
    assert form.held.tolist() == [True, False]
    other = 2 - actions
    for course in (
        replay(form.trajectory(states, others, actions), other[None])[0],
        form.trajectory(states, others, actions, True).replays(other[None])[0, 0],
    ):
        assert torch.equal(course[:, 0], states[:, 0])
    course = form.trajectory(states, others, actions)
    assert torch.equal(course.branch(states[:2] + 1, 4)[..., 0], states[5, 0].expand(2, 3))


def test_states_are_held_that_are_not_told_from_unmoved_together():
    form = BentTransition(2, 0, levels())
    form.unmoved = torch.tensor([UNMOVED / 2, 1.01 * UNMOVED / 2], dtype=DOUBLE)
    assert form.held.tolist() == [False, True]


def test_p_values_are_small_where_an_action_acts_later_and_large_where_it_does_not():
    *data, _ = simulated(linear, 150, 10)
    form = BentTransition(2, 1, levels())
    direct, later = form.p_values(steps(*data)).tolist()
    assert direct < 1e-12
    assert later < 1e-6, "y is moved by way of x, a step later"
    states, others, actions, _ = simulated(lambda x, level, *rest: linear(x, 0 * level, *rest), 150, 10)
    assert (form.p_values(steps(states, others, actions)) > UNMOVED).all()


@pytest.mark.parametrize("units", [1, FEWEST - 1])
def test_a_level_that_few_units_have_moves_nothing(units):
    """Their noise is no effect of it: a single unit seems to have no spread at all."""
    states, others, _, _ = simulated(lambda x, level, *rest: linear(x, 0 * level, *rest), 60, 6)
    given = torch.zeros(60, 6, dtype=torch.long)
    given[:units] = 1
    states[:units] += 3
    form = BentTransition(2, 1, levels())
    assert form.p_values(steps(states, others, given)).tolist() == [1.0, 1.0]
    assert form.p_values(steps(states, others, 1 - given)).tolist() == [1.0, 1.0], "nor one that few have not"


def test_what_is_left_is_the_noise_without_the_level_of_the_unit():
    form, (states, others, actions, _) = known(own=0.5)
    assert (form.kappa > 0).all()
    rows = steps(states[None], others[None], actions[None])
    noise = form.trajectory(states, others, actions).noise
    shrunk = form.kappa * noise.sum(0) / (1 + form.kappa * 7)
    torch.testing.assert_close(form.left(rows), noise - shrunk, rtol=0, atol=1e-12)


def test_each_refit_has_bends_of_its_own_within_each_part_of_the_values():
    rows = steps(*simulated(linear, 300, 10)[:3])
    form = known()[0]
    z, _ = form.scaled(rows.states, rows.others)
    ahead, _ = form.scaled(rows.following, rows.others)
    for bends, values, count in ((form.early, z, BENDS), (form.late, ahead, LATER)):
        assert bends.shape == (1 + REFITS, count, 2)
        below = (values < bends.unsqueeze(2)).double().mean(2)
        parts = (below - OUTER) / (1 - 2 * OUTER) * count
        assert torch.allclose(parts[0], torch.arange(count).double().unsqueeze(1) + 0.5, atol=0.01)
        from_lower = parts[1:] - torch.arange(count).unsqueeze(1)
        assert bool(((from_lower > -0.01) & (from_lower < 1.01)).all())
        assert len(bends[:, 0, 0].unique()) == 1 + REFITS


def test_far_beyond_the_rows_a_state_moves_on_as_it_is():
    form, (states, others, actions, _) = known()
    ends = form.ends * form.spread[:2] + form.centre[:2]
    reach = WIDENED * (ends[1] - ends[0]) / (1 + 2 * WIDENED)
    rows = steps(*simulated(linear, 300, 10)[:3])
    both = torch.cat([rows.states, rows.following])
    torch.testing.assert_close(ends, torch.stack([both.amin(0) - reach, both.amax(0) + reach]))
    course, far = form.trajectory(states, others, actions), ends[1] + 5
    one, other = (course.branch((far + more).unsqueeze(0), 2) for more in (0.0, 3.0))
    torch.testing.assert_close(other - one, torch.full_like(one, 3.0))


def test_a_level_that_no_row_has_says_nothing_by_the_fit_and_anything_by_the_refits():
    states, others, actions, _ = simulated(linear, 60, 6)
    rows, doses = steps(states, others, actions.clamp_max(1)), levels()
    form = fitted(rows, doses=doses, refits=40)
    course = form.trajectory(states[0], others[0], actions[0].clamp_max(1))
    never, none = (course.branch(states[0, :1], 0)[0, action] for action in (2, 0))
    assert torch.equal(never, none)
    course = form.trajectory(states[0], others[0], actions[0].clamp_max(1), True)
    spread = [ahead(course, states[0, :1], 0, torch.tensor(action)).std(0) for action in (1, 2)]
    assert (spread[1] > 2 * spread[0]).all()


@settings(max_examples=15, deadline=None)
@given(
    width=st.integers(1, 3),
    others=st.integers(0, 2),
    lengths=st.lists(st.integers(1, 4), min_size=1, max_size=6),
    constant=st.booleans(),
    seed=st.integers(0, 10**6),
)
def test_any_few_rows_are_fitted_and_replayed(width, others, lengths, constant, seed):
    """One state, no other columns, single rows, columns of one value, episodes of two steps."""
    stream, rows = torch.Generator().manual_seed(seed), sum(lengths)
    states, following = torch.randn(2, rows, width, generator=stream, dtype=DOUBLE)
    if constant:
        states[:, 0] = following[:, 0] = 3.0
    kept = torch.ones(rows, others, dtype=DOUBLE)
    actions = torch.randint(3, (rows,), generator=stream)
    begins = torch.zeros(rows, dtype=torch.bool)
    begins[torch.tensor([0, *lengths[:-1]]).cumsum(0)] = True
    data = Steps(states, kept, actions, following, begins)
    assert data.lengths.tolist() == lengths
    form = BentTransition(width, others, levels(), 2)
    p = form.p_values(data)
    assert bool(((p >= 0) & (p <= 1)).all())
    assert not constant or p[0] == 1
    form.fit(data, torch.zeros(width, dtype=DOUBLE), seed)
    assert form.faults() == []
    assert all(bool(value.isfinite().all()) for value in form.state_dict().values())
    assert bool(form.left(data).isfinite().all())
    pair = torch.stack([states[0], following[0]])
    for horizon in (2, 3):
        episode = torch.cat([pair, pair[1:]])[:horizon]
        taken = torch.zeros(horizon, dtype=torch.long)
        course = form.trajectory(episode, kept[:1].expand(horizon, -1), taken, True)
        found = course.replays(torch.full((1, horizon - 1), 2))
        assert found.shape == (2, 1, horizon, width)
        assert bool(found.isfinite().all())
        again = ahead(course, episode[:1], 0, taken[0])
        torch.testing.assert_close(again, episode[1].expand_as(again), rtol=0, atol=1e-10)


def test_a_loaded_part_is_the_saved_one():
    form, (states, others, actions, _) = known(within)
    again = BentTransition(2, 1, levels(), REFITS)
    assert not again.fitted
    again.load_state_dict(form.state_dict())
    assert again.fitted
    assert again.faults() == []
    other = (2 - actions)[None]
    for refits in (False, True):
        one, two = (each.trajectory(states, others, actions, refits) for each in (form, again))
        assert torch.equal(one.noise, two.noise)
        found = [ahead(each, states[:2], 3, actions[:2]) for each in (one, two)]
        assert torch.equal(*found)
    assert torch.equal(one.replays(other), two.replays(other))
    damaged = BentTransition(2, 1, levels(), REFITS + 1)
    damaged.load_state_dict(form.state_dict())
    assert any(text.startswith("refitted: expected the size (9, ") for text in damaged.faults())


def test_many_actions_take_no_memory_for_each_refit():
    """Six drugs of six levels: the weights of each action by each refit would be 6^6 x 8 x 3 x 2 numbers."""
    doses = levels(6, tuple("abcdef"))
    states, others, _, _ = simulated(linear, 20, 4)
    actions = torch.randint(doses.actions, (20, 4), generator=torch.Generator().manual_seed(0))
    form = fitted(steps(states, others, actions), doses=doses)
    course = form.trajectory(states[0], others[0], actions[0], True)
    held = [each for each in vars(course).values() if isinstance(each, torch.Tensor)]
    assert max(each.numel() for each in held) <= doses.actions * 6 * 5
    found = ahead(course, states[0, :1], 0, actions[0, 0])
    torch.testing.assert_close(found, states[0, 1].expand_as(found), rtol=0, atol=1e-12)
