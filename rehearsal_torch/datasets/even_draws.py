"""Evenly spread draws of independent noises.

    u_i = F_i^{-1}(v_i),        v a scrambled Sobol sequence in the unit cube.

Means over them are off by about 1/n for smooth functions, where independent draws are off by 1/sqrt(n); being the same for every
action, they make the mean a smooth function of the action.

Source: Owen (1998).
"""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor
from torch.quasirandom import SobolEngine

from rehearsal_torch.datasets.mixture_noise import MixtureNoise

FINE = 20_001


def quantiles(law: MixtureNoise, levels: Tensor) -> Tensor:
    """F^{-1} of a mixture, (...) in (0, 1) -> (...): linear between 20,001 points within nine deviations."""
    means, deviations = np.asarray(law.means), np.asarray(law.deviations)
    if deviations.max() == 0:
        order = np.argsort(means)
        place = np.searchsorted(np.cumsum(np.asarray(law.weights)[order])[:-1], levels.numpy())
        return torch.from_numpy(means[order][place])
    where = np.linspace((means - 9 * deviations).min(), (means + 9 * deviations).max(), FINE)
    return torch.from_numpy(np.interp(levels.numpy(), law.cdf(where), where))


def even_draws(laws: Sequence[MixtureNoise], power: int, seed: int = 0) -> Tensor:
    """2^power draws of each law, (2^power, m)."""
    levels = SobolEngine(len(laws), scramble=True, seed=seed).draw_base2(power, dtype=torch.float64).clamp(1e-12, 1 - 1e-12)
    return torch.stack([quantiles(law, column) for law, column in zip(laws, levels.T, strict=True)], -1)
