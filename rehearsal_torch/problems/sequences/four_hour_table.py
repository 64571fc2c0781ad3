"""Sepsis stays from tables of four-hour steps: validation, episodes, and the data card.

A table has one row per step, with the number of the stay (``icustayid``) and of the step (``bloc``) and the
features and doses of AI-Clinician's table. Rows are sorted, stays are cut where ``bloc`` has a gap, and short
pieces are dropped and counted. All faults of the table are reported in one message, each with its first row
and a remedy, before any long computation. The data card of a run has sizes, exclusions, dose levels, the
range of each feature, and what the data must not be used for.

AI-Clinician's names are the standard; those of its successor for MIMIC-IV and of the databases themselves are
recognised. A cell is impossible if it lies outside the range that its unit allows (a PaO2 of 0, for
instance). Real tables have a few of them; the user chooses what happens to them, and it is counted:

    refuse   the table is refused, with the first such row of each column (the default)
    drop     the row is left out; the stay is cut there, as at any gap
    clip     the cell is moved to the nearer end of its range

Source: Komorowski et al. (2018) for the columns; Tsirtsis and Gomez-Rodriguez (2023), App. G.1 for their
roles; the MIMIC-IV replication of AI-Clinician (Carnegie Mellon University,
github.com/cmudig/AI-Clinician-MIMICIV) for its names of inputs and outputs of a step.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal, get_args

import numpy as np
import pandas as pd
import torch

from rehearsal_torch.data.dose_levels import DoseLevels
from rehearsal_torch.data.episode import Episode, transitions
from rehearsal_torch.data.finding import Finding, recorded
from rehearsal_torch.data.tables.reader import TableError
from rehearsal_torch.files.schema import listed, meant

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
# The columns whose impossible cells may be dropped or clipped, and the largest share of a column that may be
# impossible; more of it suggests a wrong unit.
MEASURED = tuple(name for name in RANGES if name not in (*BINARY, "age"))
MOST = 0.02


def recognised(frame: pd.DataFrame) -> pd.DataFrame:
    """The table with the names of this project, and with sexes as 0 (male) and 1 (female)."""
    names = {a: name for a, name in ALIASES.items() if a in frame.columns and name not in frame.columns}
    # Of two aliases of one column the first in the list counts.
    first = {name: alias for alias, name in reversed(names.items())}
    # Marks of imputed cells carry the name of their column.
    renamed = {alias: name for name, alias in first.items()}
    table = frame.rename(columns=renamed | {f"{alias}_obs": f"{name}_obs" for alias, name in renamed.items()})
    if list(table.columns).count("gender") == 1 and not pd.api.types.is_numeric_dtype(table["gender"]):
        texts = table["gender"].astype(str).str.strip().str.lower()
        sex = texts.map(SEXES)
        if (sex.notna() | table["gender"].isna()).all() and sex.notna().any():
            table = table.assign(gender=sex.astype(np.float64))
    return table


def settled(table: pd.DataFrame, impossible: Impossible) -> tuple[pd.DataFrame, dict[str, int]]:
    """The table without impossible measured cells (unchanged under "refuse"), and counts of what was done."""
    if impossible not in get_args(Impossible):
        raise ValueError(f"impossible: expected {', '.join(get_args(Impossible))}; got {impossible!r}")
    if impossible == "refuse":
        return table, {}
    counts: dict[str, int] = {}
    dropped = np.zeros(len(table), dtype=bool)
    clipped = {}
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
            clipped[name] = column.clip(low, high)
        else:
            dropped |= outside
    if impossible == "drop" and dropped.any():
        counts["rows with an impossible cell"] = int(dropped.sum())
        return table[~dropped], counts
    return table.assign(**clipped), counts


STATES = ("FiO2_1", "paO2", "Platelets_count", "Total_bili", "GCS", "MeanBP", "Creatinine", "output_4hourly")
VARYING = (*STATES, "SOFA")
STATIC = ("gender", "re_admission", "age")
CONTEXTUAL = ("mechvent",)
DOSES = ("max_dose_vaso", "input_4hourly")
FEATURES = (*VARYING, *STATIC, *CONTEXTUAL)
COLUMNS = (*FEATURES, *DOSES)
# Training stays below which claims about the simulated cohort are worth little: docs/results/calibration.
FEW_STAYS = 400


@dataclass(frozen=True)
class Stays:
    """Episodes of `COLUMNS` (cut at gaps into "12", "12+1", ...), their patients, counts of exclusions."""

    episodes: tuple[Episode, ...]
    patients: tuple[str, ...]
    drops: Mapping[str, int]


def read_stays(
    frame: pd.DataFrame,
    source: str,
    min_length: int = 10,
    max_length: int | None = None,
    age_unit: str = "days",
    impossible: Impossible = "refuse",
    mask: bool = False,
) -> Stays:
    """Validates a table and cuts it into episodes; with `mask`, they mark cells whose ``GCS_obs`` or so is 0.

    The column ``subject_id``, if present, names the patient; without it every stay counts as one, and two
    stays of a person may fall into two splits. If more than 2 % of a column are impossible, its unit is in
    doubt, and the table is refused. TableError lists all faults; ValueError if an argument is out of range.
    """
    lengths_ordered = 2 <= min_length <= (min_length if max_length is None else max_length)
    if not lengths_ordered or age_unit not in ("days", "years"):
        expected = "expected 2 <= min_length <= max_length and age_unit days or years"
        raise ValueError(f"{expected}; got {min_length}, {max_length}, {age_unit!r}")
    table, changes = settled(recognised(frame), impossible)
    required = ("icustayid", "bloc", *COLUMNS)
    faults = _missing_columns(table, required) or _cell_faults(table, required, age_unit)
    if faults:
        raise TableError(listed(source, faults, "nothing was read"))
    stay, bloc = (table[name].to_numpy(np.int64) for name in ("icustayid", "bloc"))
    order = np.lexsort((bloc, stay))
    stay, bloc = stay[order], bloc[order]
    values = table[list(COLUMNS)].to_numpy(np.float64)[order]
    if age_unit == "years":
        values[:, COLUMNS.index("age")] *= YEAR
    patient = _texts(table["subject_id"])[order] if "subject_id" in table else stay.astype(str)
    new_stay, gap = np.diff(stay) != 0, np.diff(bloc) != 1
    begins = np.r_[0, np.nonzero(new_stay | gap)[0] + 1, len(stay)]
    drops = Counter({**changes, "stays cut at a gap in bloc": len(np.unique(stay[1:][~new_stay & gap]))})
    too_long = "rows behind the longest horizon"
    short, short_rows = f"episodes shorter than {min_length} steps", "rows of these"
    # Reasons stand in this order, whatever happens first.
    drops.update(dict.fromkeys((too_long, short, short_rows), 0))
    episodes, patients, pieces = [], [], Counter[int]()
    rows, marks = torch.from_numpy(values), np.zeros(values.shape, bool)
    for column, name in enumerate(COLUMNS):
        if f"{name}_obs" in table:
            marks[:, column] = (table[f"{name}_obs"] == 0).to_numpy()[order]
    for begin, end in pairwise(begins):
        part = rows[begin:end]
        if max_length is not None and len(part) > max_length:
            drops[too_long] += len(part) - max_length
            part = part[:max_length]
        number = int(stay[begin])
        identity = f"{number}+{pieces[number]}" if pieces[number] else str(number)
        pieces[number] += 1
        if len(part) < min_length:
            drops[short] += 1
            drops[short_rows] += len(part)
            continue
        # A view would carry the whole table into every process.
        filled = torch.from_numpy(marks[begin : begin + len(part)].copy()) if mask else None
        episodes.append(Episode(identity, COLUMNS, part.clone(), filled=filled))
        patients.append(str(patient[begin]))
    reasons = {reason: count for reason, count in drops.items() if count}
    return Stays(tuple(episodes), tuple(patients), reasons)


def _missing_columns(table: pd.DataFrame, required: tuple[str, ...]) -> list[str]:
    names = [str(name) for name in table.columns]
    faults = [
        f"{names.count(name)} columns are called {name!r}; keep one of them"
        for name in (*required, "subject_id")
        if names.count(name) > 1
    ]
    return faults + [f"no column {name!r}; {meant(name, names)}" for name in required if name not in names]


def _cell_faults(table: pd.DataFrame, required: tuple[str, ...], age_unit: str) -> list[str]:
    if not len(table):
        return ["expected rows; the table is empty"]
    faults = []
    for name in required:
        column = table[name]
        if not pd.api.types.is_numeric_dtype(column):
            bad = pd.to_numeric(column, errors="coerce").isna() & column.notna()
            expected = "numbers"
            if name == "gender":
                bad &= ~column.astype(str).str.strip().str.lower().isin(list(SEXES))
                expected = "0 (male) and 1 (female), or M and F"
            got = column[bad].iloc[0] if bad.any() else column.dtype
            faults.append(f"{name}: expected {expected}; got {got!r}{_at(bad)}")
            continue
        missing = ~np.isfinite(column.to_numpy(np.float64, na_value=np.nan))
        if missing.any():
            count = f"{int(missing.sum())} missing or infinite values{_at(missing)}"
            faults.append(f"{name}: {count}; impute them or drop the rows")
        elif name not in RANGES and (fractional := column.to_numpy(np.float64) % 1 != 0).any():
            got = f"{column[fractional].iloc[0]:g}{_at(fractional)}, {int(fractional.sum())} such rows"
            faults.append(f"{name}: expected whole numbers; got {got}")
        if name in RANGES:
            faults += _range_faults(name, column.to_numpy(np.float64, na_value=np.nan), age_unit)
    keys = [name for name in ("icustayid", "bloc") if pd.api.types.is_numeric_dtype(table[name])]
    if len(keys) == 2 and table.duplicated(["icustayid", "bloc"]).any():
        repeated = table.duplicated(["icustayid", "bloc"]).to_numpy()
        reason = f"rows repeat a (icustayid, bloc) of an earlier row{_at(repeated)}"
        faults.append(f"{int(repeated.sum())} {reason}; keep one of each")
    return faults + _patient_faults(table)


def _patient_faults(table: pd.DataFrame) -> list[str]:
    """Faults of the patients' numbers, which the split by patient depends on."""
    if "subject_id" not in table:
        return []
    unnamed = table["subject_id"].isna().to_numpy()
    if unnamed.any():
        remedy = "fill them in, or drop the column to split by stay"
        return [f"subject_id: {int(unnamed.sum())} rows name no patient{_at(unnamed)}; {remedy}"]
    several = (table.groupby("icustayid")["subject_id"].transform("nunique") > 1).to_numpy()
    if several.any():
        stay = table["icustayid"][several].iloc[0]
        return [f"subject_id: expected one patient per stay; stay {stay} has several{_at(several)}"]
    return []


def _texts(numbers: pd.Series) -> np.ndarray:
    """Patients' numbers as text, "70" for 70.0 too: a split does not depend on the column's type."""
    if pd.api.types.is_float_dtype(numbers) and (numbers % 1 == 0).all():
        numbers = numbers.astype(np.int64)
    return np.asarray(numbers.astype(str))


def _range_faults(name: str, column: np.ndarray, age_unit: str) -> list[str]:
    lowest, largest, unit = RANGES[name]
    if name == "age" and age_unit == "years":
        largest, unit = 200, "years; a table in days takes dataset.age_unit=days"
    with np.errstate(invalid="ignore"):
        bad = (column < lowest) | (column > largest)
        if name in BINARY:
            bad |= np.isfinite(column) & (column != 0) & (column != 1)
        in_days = name == "age" and age_unit == "days" and np.isfinite(column).any()
        young = in_days and bool(np.nanmax(column) < 150)
    faults = []
    if bad.any():
        got = f"{column[bad][0]:g}{_at(bad)}, {int(bad.sum())} such rows{_remedy(name, bad)}"
        faults.append(f"{name}: expected {lowest:g} to {largest:g} ({unit}); got {got}")
    if young:
        years = f"the largest is {np.nanmax(column):g}, which looks like years: set dataset.age_unit=years"
        faults.append(f"age: expected days; {years}")
    return faults


def _remedy(name: str, bad: np.ndarray) -> str:
    """The remedy for a few impossible cells, as an ending of the sentence; empty if there are many."""
    few = name in MEASURED and float(np.mean(bad)) <= MOST
    return "; leave these rows out with dataset.impossible=drop, or move the cells with clip" if few else ""


def _at(bad: np.ndarray | pd.Series) -> str:
    """The position of the first bad row, counted from 1 without the header."""
    rows = np.nonzero(np.asarray(bad))[0]
    return f" (first at row {int(rows[0]) + 1})" if len(rows) else ""


def data_card(
    stays: Stays,
    splits: Mapping[str, Sequence[int]],
    source: str,
    caution: str,
    levels: DoseLevels,
    missing: Mapping[str, int] | None = None,
) -> dict[str, Any]:
    """The data card; `missing` counts the values of each column that were imputed upstream."""
    rows = torch.cat([episode.values for episode in stays.episodes])
    lengths = sorted(episode.horizon for episode in stays.episodes)
    features = {}
    for name, column in zip(COLUMNS, rows.T, strict=True):
        sorted_column = column.sort().values
        summary = sorted_column[[0, len(sorted_column) // 2, -1]].tolist()
        features[name] = dict(zip(("min", "median", "max"), summary, strict=True)) | {"unit": RANGES[name][2]}
    medians = zip(levels.names, levels.medians, strict=True)
    imputed = {f"{name} filled in upstream": count for name, count in (missing or {}).items()}
    return {
        "source": source,
        "caution": caution,
        "patients": len(set(stays.patients)),
        "episodes": len(stays.episodes),
        "transitions": sum(lengths) - len(lengths),
        "horizons": {
            "min": lengths[0],
            "median": lengths[len(lengths) // 2],
            "max": lengths[-1],
            "episodes by steps": dict(sorted(Counter(lengths).items())),
        },
        "missing values": imputed or "none in the table",
        "dropped": dict(stays.drops),
        "splits": {
            name: {"patients": len({stays.patients[i] for i in indices}), "episodes": len(indices)}
            for name, indices in splits.items()
        },
        **recorded(_warnings(len(splits["train"]), levels.notes)),
        "dose levels": {name: list(dict.fromkeys(row.tolist())) for name, row in medians},
        "features": features,
        "fingerprint": transitions(stays.episodes).fingerprint(),
    }


def _warnings(stays: int, levels: Mapping[str, str]) -> list[Finding]:
    """Warnings of few training stays and of dose levels."""
    findings = [Finding("values", f"levels of {name}: {note}") for name, note in levels.items()]
    if stays >= FEW_STAYS:
        return findings
    claim_quality = "claims about the simulated cohort are worth little (docs/results/calibration)"
    text = f"{stays} stays to learn from: below {FEW_STAYS}, {claim_quality}"
    return [Finding("rows", text, {"stays": stays}), *findings]
