"""How like the participants the generator's rows are.

Compared are the correlation matrices, by the mean absolute error over all cells (the diagonal, which is right by
definition, included as well as left out: the paper does not say), each variable's distribution, by the largest distance
between the two distribution functions, and how often the outcomes are as desired. All four readings of the paper are
measured: context variables apart or in a chain, the outcomes' noises apart or paired.

Source: Du et al. (2026), App. E.4, Table 5 and Fig. 10.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.stats import ks_2samp

from rehearsal_torch.datasets.nhanes_generator import Generator
from rehearsal_torch.datasets.nhanes_variables import DESIRED, OUTCOMES, VARIABLES

Array = NDArray[np.float64]
PUBLISHED_ERROR = 0.0483
DRAWS = 20_000


@dataclass(frozen=True, eq=False)
class Validation:
    """The comparison.

    Attributes:
        real: Participants, (n, 17).
        generated: Rows of the default generator, (DRAWS, 17).
        correlations: The two correlation matrices, real and generated, (2, 17, 17).
        summary: What goes into the generator's card.
    """

    real: Array
    generated: Array
    correlations: Array
    summary: dict[str, Any]


def validated(generator: Generator, cases: pd.DataFrame, seed: int = 0) -> Validation:
    """Compares draws with complete cases."""
    real = cases[list(VARIABLES)].to_numpy(float)
    true = np.corrcoef(real.T)
    off = ~np.eye(len(true), dtype=bool)
    readings: dict[str, dict[str, float]] = {}
    drawn = {}
    for chain in (False, True):
        for paired in (True, False):
            name = f"roots {'chain' if chain else 'independent'}, noise {'paired' if paired else 'independent'}"
            drawn[name] = generator.draw(DRAWS, np.random.default_rng(seed), chain, paired)
            error = np.abs(np.corrcoef(drawn[name].T) - true)
            readings[name] = {
                "correlation_mae": round(float(error.mean()), 4),
                "correlation_mae_off_diagonal": round(float(error[off].mean()), 4),
                "desired": round(float(_desired(drawn[name])), 4),
            }
    first = next(iter(readings))
    distances = {name: round(float(ks_2samp(real[:, place], drawn[first][:, place]).statistic), 4) for place, name in enumerate(VARIABLES)}
    summary = {
        "default": first,
        "correlation_mae": readings[first]["correlation_mae"],
        "correlation_mae_paper": PUBLISHED_ERROR,
        "desired_real": round(float(_desired(real)), 4),
        "desired_generated": readings[first]["desired"],
        "draws": DRAWS,
        "readings": readings,
        "largest_distance_of_distributions": distances,
    }
    return Validation(real, drawn[first], np.stack([true, np.corrcoef(drawn[first].T)]), summary)


def _desired(rows: Array) -> float:
    """Share of rows strictly below both bounds: HbA1c is recorded to 0.1 %, so that its bound itself occurs and counts as too high."""
    places = [VARIABLES.index(name) for name in OUTCOMES]
    return np.all([rows[:, place] < DESIRED[name][1] for place, name in zip(places, OUTCOMES, strict=True)], axis=0).mean()
