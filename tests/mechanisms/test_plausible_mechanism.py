from dataclasses import replace

import pytest
import torch

from rehearsal_torch.estimators.function_draws import FunctionDraws
from rehearsal_torch.mechanisms.plausible_mechanism import PlausibleMechanism
from tests.estimators.test_function_draws import AT, TARGETS, drawn

DOUBLE = torch.float64
OFFSET, WIDTH = torch.tensor([-1.0, 2.0]).double(), torch.tensor([4.0, 0.5]).double()
CENTRE, SCALE = torch.tensor(10.0).double(), torch.tensor(3.0).double()
LEVELS, SHIFTS = torch.linspace(0.1, 0.6, 6).double(), torch.linspace(-1, 1, 6).double()
NOISE = torch.randn(5, generator=torch.Generator().manual_seed(0), dtype=DOUBLE)
# (1, t-batches, points, 1, p), in the variables' units.
INPUTS = (OFFSET + WIDTH * AT).reshape(1, 3, 2, 1, 2)


def log_std(pairs=1):
    """A function of the inputs, the same for all members."""
    return FunctionDraws(**{**vars(drawn(pairs=pairs)), "means": torch.zeros(2 * pairs).double()})


def made(**more):
    return PlausibleMechanism(OFFSET, WIDTH, CENTRE, SCALE, drawn(pairs=3), LEVELS, SHIFTS, **more)


def test_drawn_functions_come_in_the_units_of_the_node_with_the_noise_of_their_draw():
    mechanism = made()
    found = mechanism(INPUTS, NOISE)
    values = mechanism.functions(AT.reshape(1, 3, 2, 2)).unsqueeze(-1)
    std, shift = LEVELS.reshape(6, 1, 1, 1), SHIFTS.reshape(6, 1, 1, 1)
    torch.testing.assert_close(found, CENTRE + SCALE * (values + std * (shift + NOISE)))
    own = torch.randn(6, 3, 2, 5, dtype=DOUBLE, generator=torch.Generator().manual_seed(1))
    torch.testing.assert_close(
        mechanism(INPUTS.expand(6, 3, 2, 5, 2), own)[4, 1, 0, 2], mechanism(INPUTS, own)[4, 1, 0, 2]
    )
    few = mechanism.few(4)
    torch.testing.assert_close(few(INPUTS, NOISE), found[[0, 1, 3, 4]])
    # Noise by draws keeps its sign; tables are near.
    assert float((mechanism.tabulated()(INPUTS, NOISE) - found).abs().max()) < 0.05
    with pytest.raises(TypeError, match="tables cannot be conditioned"):
        mechanism.tabulated().conditioned(AT[:2], TARGETS[:2], 0)


def test_the_noise_is_stretched_by_a_function_of_the_inputs():
    shape, rho = log_std(), torch.tensor([0.0, 0.5, 1.0, 0.0, 0.5, 1.0]).double()
    mechanism, plain = made(shape=shape, rho=rho), made()
    silent = mechanism(INPUTS, -SHIFTS.reshape(6, 1, 1, 1))
    std = mechanism(INPUTS, 1 - SHIFTS.reshape(6, 1, 1, 1)) - silent
    logs = shape(AT.unsqueeze(0))[0].reshape(3, 2, 1)
    wanted = SCALE * LEVELS.reshape(6, 1, 1, 1) * (rho.reshape(6, 1, 1, 1) * logs).exp()
    torch.testing.assert_close(std, wanted)
    torch.testing.assert_close(silent, plain(INPUTS, -SHIFTS.reshape(6, 1, 1, 1)))
    torch.testing.assert_close(mechanism.few(2)(INPUTS, NOISE), mechanism(INPUTS, NOISE)[[0, 3]])


@pytest.mark.parametrize("stretched", [False, True])
def test_further_rows_condition_the_functions_with_the_noise_there(stretched):
    more = {"shape": log_std(), "rho": torch.full((6,), 0.5).double()} if stretched else {}
    mechanism = made(**more)
    rows, values = (OFFSET + WIDTH * AT).reshape(3, 2, 2), CENTRE + torch.arange(6).double().reshape(3, 2)
    after = mechanism.conditioned(rows, values, 4)
    std = LEVELS.reshape(6, 1, 1)
    if stretched:
        std = std * (0.5 * more["shape"](AT.unsqueeze(0))[0].reshape(3, 2)).exp()
    targets = (values - CENTRE) / SCALE - std * SHIFTS.reshape(6, 1, 1)
    wanted = mechanism.functions.conditioned(AT.reshape(3, 2, 2), targets, std.square(), 4)
    at = AT.flip(0).reshape(1, 3, 2, 2)
    torch.testing.assert_close(after.functions(at), wanted(at))
    assert after(INPUTS, NOISE).shape == (6, 3, 2, 5)


def test_beyond_the_rows_of_an_input_without_bounds_functions_go_on_at_slopes_that_nobody_knows():
    rows, bounded = AT[:4], torch.tensor([False, True])
    mechanism = made().sloped(rows, bounded, torch.Generator().manual_seed(0))
    inside = (OFFSET + WIDTH * rows).reshape(1, 4, 1, 2)
    torch.testing.assert_close(mechanism(inside, NOISE), made()(inside, NOISE))
    far = inside.clone()
    far[..., 0] = OFFSET[0] + WIDTH[0] * (rows[:, 0].max() + 2)
    far[..., 1] -= 100 * WIDTH[1]
    added = (mechanism(far, NOISE) - made()(far, NOISE)) / SCALE
    torch.testing.assert_close(added, 2 * mechanism.slopes[:, 0].reshape(6, 1, 1).expand(6, 4, 5))
    torch.testing.assert_close(added[3:], -added[:3])
    torch.testing.assert_close(mechanism.few(4)(far, NOISE), mechanism(far, NOISE)[[0, 1, 3, 4]])
    # What is learnt there is known there.
    known = replace(mechanism, levels=torch.full((6,), 1e-4).double(), shifts=torch.zeros(6).double())
    known = known.conditioned(far[0, :1, 0], CENTRE.reshape(1), 0)
    torch.testing.assert_close(known(far[:, :1], NOISE[:1] * 0), CENTRE.expand(6, 1, 1), atol=0.01, rtol=0)
    many = PlausibleMechanism(OFFSET, WIDTH, CENTRE, SCALE, drawn(), LEVELS, SHIFTS)
    slopes = many.sloped(rows, bounded, torch.Generator().manual_seed(1)).slopes
    torch.testing.assert_close(slopes[:, 0].std(), torch.tensor(1.3 / 0.4).double(), rtol=0.05, atol=0)
    assert made().sloped(rows, bounded | True, torch.Generator()).slopes is None
