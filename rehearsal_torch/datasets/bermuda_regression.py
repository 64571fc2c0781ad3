"""The Bermuda reef's equations, fitted to its measurements.

Every column is standardised over its own complete rows; each variable is then regressed by least squares on the variables
that influence it, over the rows in which all of them are measured. Net ecosystem calcification (NEC) is measured in 46 of the
95 rows, so that its equation, and only its, has an intercept.

Source: Courtney et al. (2017) (measurements, Bermuda); Aglietti et al. (2020) and Qin et al. (2023) (graph). Released codes
divide by the standard deviation with n - 1 (Qin et al., 2023 and 2025) or n (Du et al., 2024; Qin et al., 2025b).
"""

from pathlib import Path
from typing import Any

import numpy as np

PARENTS: dict[str, tuple[str, ...]] = {
    "Light": (),
    "Temp": ("Light",),
    "Sal": ("Temp",),
    "DIC": ("Sal",),
    "TA": ("Sal",),
    "Omega": ("Sal", "DIC", "Temp", "TA"),
    "Nut": (),
    "Chla": ("Nut", "Light", "Temp"),
    "pHsw": ("Sal", "DIC", "Temp", "TA"),
    "CO2": ("Sal", "TA", "DIC", "Temp"),
    "NEC": ("Nut", "Light", "pHsw", "Omega", "Chla", "CO2", "Temp"),
}
COLUMNS = {"Nut": "Nutrients_PC1"}


def refit(path: str | Path) -> dict[str, Any]:
    """The equations of a table of measurements, for both standardisations.

    Args:
        path: A CSV with a column for each variable; empty cells are missing.

    Returns:
        ``n - 1`` and ``n``, each with ``weights`` (child to parent to coefficient), ``intercepts``, ``residuals`` (standard
        deviation by maximum likelihood), ``rows`` (of each equation) and ``ranges`` (of the roots).

    Raises:
        ValueError: if a column is missing.
    """
    import pandas as pd

    table = pd.read_csv(path)
    missing = [COLUMNS.get(name, name) for name in PARENTS if COLUMNS.get(name, name) not in table.columns]
    if missing:
        raise ValueError(f"{path}: no column {missing}; it has {list(table.columns)}")
    raw = table[[COLUMNS.get(name, name) for name in PARENTS]].set_axis(list(PARENTS), axis=1).astype(float)
    return {label: _fitted((raw - raw.mean()) / raw.std(ddof=less)) for label, less in (("n - 1", 1), ("n", 0))}


def _fitted(table: Any) -> dict[str, Any]:
    found: dict[str, Any] = {"weights": {}, "intercepts": {}, "residuals": {}, "rows": {}, "ranges": {}}
    for child, parents in PARENTS.items():
        rows = table[[child, *parents]].dropna().to_numpy()
        if not parents:
            found["ranges"][child] = [float(rows.min()), float(rows.max())]
            continue
        design = np.column_stack([np.ones(len(rows)), rows[:, 1:]])
        solution = np.linalg.lstsq(design, rows[:, 0], rcond=None)[0]
        found["weights"][child] = dict(zip(parents, solution[1:].tolist(), strict=True))
        # Over complete columns the intercept is zero but for rounding.
        found["intercepts"][child] = float(solution[0]) if len(rows) < len(table) else 0.0
        found["residuals"][child] = float(np.sqrt(np.mean((rows[:, 0] - design @ solution) ** 2)))
        found["rows"][child] = len(rows)
    return found
