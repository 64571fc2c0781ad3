"""The exogenous noise of the synthetic problems: one, two or three modes.

    one    N(0, sigma^2)
    two    .5 N(mu_1, c_1 sigma^2) + .5 N(mu_2, c_2 sigma^2)
    three  (N(mu_1, c_1 sigma^2) + N(mu_2, c_2 sigma^2) + N(mu_3, c_3 sigma^2)) / 3

The paper gives ranges of mu and c, but values for Dropwave alone. Where it gives ranges, means are symmetric here, so that the
noise has mean zero and an additive model keeps the best action that it has without noise.

Source: Ren et al. (2025), Eq. 6, Eq. 15, Sec. 11.2 and 11.3; the values of mu and c are ours.
"""

from collections.abc import Sequence

from rehearsal_torch.datasets.mixture_noise import MixtureNoise, NoiseReading

# Number of modes to (means, factors).
RANGES = {1: ((0.0,), (1.0,)), 2: ((-0.5, 0.5), (1.0, 0.5)), 3: ((-0.6, 0.0, 0.6), (1.0, 0.5, 1.0))}
Modes = dict[int, tuple[tuple[float, ...], tuple[float, ...]]]


def modal_noise(
    sigma: float,
    modes: int = 2,
    reading: NoiseReading = "variance",
    means: Sequence[float] | None = None,
    factors: Sequence[float] | None = None,
    choices: Modes = RANGES,
) -> MixtureNoise:
    """Noise of equally likely modes.

    Args:
        sigma: The noise level.
        modes: How many modes; decides means and factors that are not given.
        reading: Whether c sigma^2 is a variance, or c sigma a standard deviation.
        means: mu of each mode; None for the choice.
        factors: c of each mode; None for the choice.
        choices: Number of modes to means and factors.

    Raises:
        ValueError: if there is no choice for so many modes, or not one mean and factor each.
    """
    if modes not in choices:
        raise ValueError(f"modes: expected one of {sorted(choices)}; got {modes!r}")
    chosen = [tuple(float(each) for each in (default if given is None else given)) for given, default in zip((means, factors), choices[modes], strict=True)]
    if any(len(each) != modes for each in chosen):
        raise ValueError(f"expected {modes} means and factors; got means {list(chosen[0])} and factors {list(chosen[1])}: give one each, or change modes")
    return MixtureNoise.of(sigma, chosen[0], chosen[1], reading=reading)
