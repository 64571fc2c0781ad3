"""Linear Gaussian laws against equations that are solved one by one, and joint laws that are conditioned."""

import numpy as np
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from rehearsal_torch.surrogates.structural.linear_model import LinearModel

NAMES = ("p", "q", "r", "s", "t")


def linear_model(seed, altered=(), units=(1.0,) * 5, lead=()):
    """A random law over five variables, parents before children, noises correlated where nothing is set."""
    stream = np.random.default_rng(seed)
    units = np.asarray(units)
    weights = np.triu(stream.normal(size=(*lead, 5, 5)), 1) * (stream.random((5, 5)) < 0.7)
    weights = weights * units / units[:, None]
    root = (stream.normal(size=(*lead, 5, 5)) * 0.4 + np.eye(5)) * units[:, None]
    free = np.array([name not in altered for name in NAMES], dtype=float)
    covariance = root @ np.swapaxes(root, -1, -2) * free * free[:, None]
    made = (weights * free, stream.normal(size=(*lead, 5)) * units * free, covariance)
    return LinearModel(NAMES, tuple(altered), *(torch.from_numpy(each) for each in made))


def equations(made, noise, values):
    """Every variable by its own equation: noise (d,), values (k,)."""
    found = np.zeros(5)
    for place, name in enumerate(NAMES):
        if name in made.altered:
            found[place] = values[made.altered.index(name)]
            continue
        found[place] = float(made.intercept[place]) + noise[place]
        for parent in range(place):
            found[place] += float(made.weights[parent, place]) * found[parent]
    return found


def joint(made, values):
    """Mean and covariance of all variables by equations of unit noises, with `altered` at values."""
    mean = equations(made, np.zeros(5), values)
    effects = np.stack([equations(made, unit, values) - mean for unit in np.eye(5)], 1)
    return mean, effects @ made.covariance.numpy() @ effects.T


def before(made, names):
    """Those of some names that what is set does not change: a context is seen before anything is set."""
    effects = made.total()[:, [NAMES.index(name) for name in made.altered]]
    return tuple(
        name for name in names if name not in made.altered and not bool(effects[NAMES.index(name)].any())
    )


sets = st.sets(st.sampled_from(NAMES), max_size=3).map(lambda names: tuple(sorted(names)))


@settings(max_examples=25, deadline=None, derandomize=True)
@given(seed=st.integers(0, 10_000), altered=sets)
def test_total_effects_are_sums_over_paths(seed, altered):
    made = linear_model(seed, altered)
    zero = equations(made, np.zeros(5), np.zeros(len(altered)))
    reached = [place for place, name in enumerate(NAMES) if name not in altered]
    for place in reached:
        unit = equations(made, np.eye(5)[place], np.zeros(len(altered))) - zero
        np.testing.assert_allclose(made.total()[:, place].numpy(), unit, atol=1e-12)
    mean, covariance = made.moments()
    wanted, spread = joint(made, np.zeros(len(altered)))
    np.testing.assert_allclose(mean.numpy(), wanted, atol=1e-12)
    np.testing.assert_allclose(covariance.numpy(), spread, atol=1e-10)


@settings(max_examples=25, deadline=None, derandomize=True)
@given(
    seed=st.integers(0, 10_000),
    altered=sets,
    context=sets,
    scale=st.lists(st.sampled_from([1e-4, 1.0, 1e5]), min_size=5, max_size=5),
)
def test_the_response_is_the_joint_law_conditioned_on_the_context(seed, altered, context, scale):
    made = linear_model(seed, altered, scale)
    context = before(made, context)
    outcomes = tuple(name for name in NAMES if name not in (*altered, *context))
    if not outcomes:
        return
    response = made.response(context, outcomes)
    stream = np.random.default_rng(seed)
    values, given_ = stream.normal(size=len(altered)), stream.normal(size=len(context))
    mean, covariance = joint(made, values)
    y, x = ([NAMES.index(name) for name in names] for names in (outcomes, context))
    if (
        x
        and np.linalg.cond(covariance[np.ix_(x, x)] / np.outer(*[np.sqrt(np.diag(covariance)[x])] * 2)) > 1e6
    ):
        return
    gain = covariance[np.ix_(y, x)] @ np.linalg.pinv(covariance[np.ix_(x, x)], rcond=1e-30) if x else 0.0
    wanted = mean[y] + (gain @ (given_ - mean[x]) if x else 0.0)
    left = covariance[np.ix_(y, y)] - (gain @ covariance[np.ix_(x, y)] if x else 0.0)
    unit = np.array(scale)[y]
    found = response.base(torch.from_numpy(given_).unsqueeze(0))[0] + response.action @ torch.from_numpy(
        values
    )
    size = 1 + np.abs(response.context.numpy()) @ np.abs(given_) / unit if x else 1
    assert (np.abs(found.numpy() - wanted) / unit <= 1e-6 * size * (1 + np.abs(wanted / unit))).all()
    np.testing.assert_allclose(
        response.covariance.numpy() / np.outer(unit, unit), left / np.outer(unit, unit), rtol=1e-6, atol=1e-6
    )
    assert response.constant.shape == (len(outcomes),)
    assert response.noise.shape == (len(outcomes), 5)
    assert not response.noise[:, [NAMES.index(name) for name in altered]].any()
