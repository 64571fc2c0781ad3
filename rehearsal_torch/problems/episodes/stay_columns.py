"""The columns of a four-hour table: names of other pipelines, sexes as text, and impossible cells.

AI-Clinician's names are the standard; those of its successor for MIMIC-IV and of the databases themselves are
recognised. A cell is impossible if it lies outside the range that its unit allows (a PaO2 of 0, for
instance). Real tables have a few of them; what happens to them is the user's choice, and is counted:

    refuse   the table is refused, with the first such row of each column (the default)
    drop     the row is left out; the stay is cut there, as at any gap
    clip     the cell is moved to the nearer end of its range

Source: Komorowski et al. (2018) for the columns; the MIMIC-IV replication of AI-Clinician (Carnegie Mellon
University, github.com/cmudig/AI-Clinician-MIMICIV) for its names of inputs and outputs of a step.
"""

from collections.abc import Mapping
from typing import Literal, get_args

import numpy as np
import pandas as pd

Impossible = Literal["refuse", "drop", "clip"]

YEAR = 365.25

# Other name -> name here; used where the latter is missing.
ALIASES: Mapping[str, str] = {
    "icustay_id": "icustayid",
    "stay_id": "icustayid",
    "input_step": "input_4hourly",
    "output_step": "output_4hourly",
    "sofa": "SOFA",
    "pao2": "paO2",
    "anchor_age": "age",
}
SEXES: Mapping[str, float] = {"m": 0.0, "male": 0.0, "f": 1.0, "female": 1.0}

# Column -> (smallest, largest, unit or remedy for values outside).
RANGES: Mapping[str, tuple[float, float, str]] = {
    "gender": (0, 1, "0 male, 1 female; M and F are read as well"),
    "re_admission": (0, 1, "0 or 1"),
    "age": (0, 200 * YEAR, "days; 91.4 years where older"),
    "mechvent": (0, 1, "0 or 1"),
    "FiO2_1": (0.15, 1.0, "a fraction; divide a percentage by 100"),
    "paO2": (10, 900, "mmHg; a value in kPa is multiplied by 7.5"),
    "Platelets_count": (0, 5000, "10^9 per litre"),
    "Total_bili": (0, 100, "mg/dL; divide micromoles per litre by 17.1"),
    "GCS": (3, 15, "points"),
    "MeanBP": (0, 300, "mmHg"),
    "Creatinine": (0, 150, "mg/dL; divide micromoles per litre by 88.4"),
    "output_4hourly": (-1000, 20000, "mL in four hours"),
    "SOFA": (0, 24, "points"),
    "max_dose_vaso": (0, 50, "mcg/kg/min of norepinephrine"),
    "input_4hourly": (0, 50000, "mL in four hours"),
}
BINARY = ("gender", "re_admission", "mechvent")
MEASURED = tuple(name for name in RANGES if name not in (*BINARY, "age"))
"""The columns whose impossible cells may be dropped or clipped."""
MOST = 0.02
"""The largest share of a column that may be impossible; more of it suggests a wrong unit."""


def recognised(frame: pd.DataFrame) -> pd.DataFrame:
    """The table with the names of this project, and with sexes as 0 (male) and 1 (female)."""
    names = {
        other: own for other, own in ALIASES.items() if other in frame.columns and own not in frame.columns
    }
    # Of two other names for one column the first in the list counts.
    first = {own: other for other, own in reversed(names.items())}
    # Marks of imputed cells carry the name of their column.
    renamed = {other: own for own, other in first.items()}
    table = frame.rename(columns=renamed | {f"{other}_obs": f"{own}_obs" for other, own in renamed.items()})
    if list(table.columns).count("gender") == 1 and not pd.api.types.is_numeric_dtype(table["gender"]):
        text = table["gender"].astype(str).str.strip().str.lower()
        known = text.map(SEXES)
        if (known.notna() | table["gender"].isna()).all() and known.notna().any():
            table = table.assign(gender=known.astype(np.float64))
    return table


def settled(table: pd.DataFrame, impossible: Impossible) -> tuple[pd.DataFrame, dict[str, int]]:
    """Applies the policy for impossible cells.

    Args:
        impossible: The policy.

    Returns:
        The table without impossible measured cells (with them under "refuse", which leaves the message to the
        validation), and what was done, reason to count.

    Raises:
        ValueError: if there is no such policy.
    """
    if impossible not in get_args(Impossible):
        raise ValueError(f"impossible: expected {', '.join(get_args(Impossible))}; got {impossible!r}")
    if impossible == "refuse":
        return table, {}
    counts: dict[str, int] = {}
    bad = np.zeros(len(table), dtype=bool)
    changed = {}
    for name in MEASURED:
        if list(table.columns).count(name) != 1 or not pd.api.types.is_numeric_dtype(table[name]):
            continue
        low, high, _ = RANGES[name]
        column = table[name]
        outside = ((column < low) | (column > high)).to_numpy(bool)
        share = float(outside.mean()) if len(table) else 0.0
        if not 0 < share <= MOST:
            continue
        if impossible == "clip":
            counts[f"cells of {name} moved into [{low:g}, {high:g}]"] = int(outside.sum())
            changed[name] = column.clip(low, high)
        else:
            bad |= outside
    if impossible == "drop" and bad.any():
        counts["rows with an impossible cell"] = int(bad.sum())
        return table[~bad], counts
    return table.assign(**changed), counts
