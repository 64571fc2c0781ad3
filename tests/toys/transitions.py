"""A small location-scale world: transitions and episodes from known parameters."""

from functools import partial

import torch
from torch import Tensor

from rehearsal_torch.data.episode import Episode, transitions
from rehearsal_torch.data.table import Table
from rehearsal_torch.mechanisms.location_scale import LocationScale
from rehearsal_torch.surrogates.transition import TransitionModel

VARYING, STATIC, CONTEXTUAL, DOSES = ("x", "y"), ("age",), ("vent",), ("vaso", "fluid")
NAMES = (*VARYING, *STATIC, *CONTEXTUAL, *DOSES)
SLOPE = torch.tensor([[0.8, 0.1], [-0.2, 0.6]], dtype=torch.float64)
EFFECT = torch.tensor([[-0.5, 0.2], [0.1, -0.3]], dtype=torch.float64)
DEVIATION = torch.tensor([0.3, 0.2], dtype=torch.float64)


def patients(count: int, horizon: int, seed: int) -> list[Episode]:
    """Episodes of s' = SLOPE s + EFFECT a + DEVIATION e, with doses half of which are zero."""
    stream = torch.Generator().manual_seed(seed)

    def draw(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=stream, dtype=torch.float64)

    state, steps = draw(count, 2), []
    age, vent = 60 + 10 * draw(count, 1), (draw(count, horizon, 1) > 0).double()
    doses = draw(count, horizon, 2).clamp_min(0)
    for time in range(horizon):
        steps.append(torch.cat([state, age, vent[:, time], doses[:, time]], -1))
        state = state @ SLOPE.T + doses[:, time] @ EFFECT.T + DEVIATION * draw(count, 2)
    values = torch.stack(steps, 1)
    return [Episode(str(index), NAMES, values[index]) for index in range(count)]


def observations(count: int = 40, horizon: int = 6, seed: int = 0) -> Table:
    """Their transitions."""
    return transitions(patients(count, horizon, seed))


def model(
    hidden: int = 8,
    location_constant: float | None = 1.0,
    scale_constant: float | None = 0.1,
    seed: int = 0,
    effects: str = "dense",
) -> TransitionModel:
    """An unfitted transition model, the same for the same seed."""
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        mechanism = partial(
            LocationScale, hidden=hidden, location_constant=location_constant, scale_constant=scale_constant
        )
        return TransitionModel(VARYING, STATIC, CONTEXTUAL, DOSES, mechanism, 3, (), effects)
