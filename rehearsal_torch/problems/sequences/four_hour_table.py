"""From a table of four-hour steps to episodes: validation, and the data card.

A table has one row per step, with the number of the stay (``icustayid``) and of the step (``bloc``) and the
features and doses of AI-Clinician's table. Rows are sorted, stays are cut where ``bloc`` has a gap, and short
pieces are dropped and counted. All faults of the table are reported in one message, each with its first row
and a remedy, before any long computation.

The data card is printed at the start of a run and saved with it: sizes, what was excluded and why, the dose
levels, the range of each feature, and what the data must not be used for.

AI-Clinician's names are the standard; those of its successor for MIMIC-IV and of the databases themselves are
recognised. A cell is impossible if it lies outside the range that its unit allows (a PaO2 of 0, for
instance). Real tables have a few of them; what happens to them is the user's choice, and is counted:

    refuse   the table is refused, with the first such row of each column (the default)
    drop     the row is left out; the stay is cut there, as at any gap
    clip     the cell is moved to the nearer end of its range

Source: Komorowski et al. (2018) for the columns; Tsirtsis and Gomez-Rodriguez (2023), App. G.1 for their
roles; the MIMIC-IV replication of AI-Clinician (Carnegie Mellon
University, github.com/cmudig/AI-Clinician-MIMICIV) for its names of inputs and outputs of a step.
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
    """The table without impossible measured cells (with them under "refuse", which leaves the message to the
    validation), and what was done, reason to count.
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
    """Episodes with the columns `COLUMNS` (a stay that is cut at gaps gives "12", "12+1", ...), the patient
    of each, as text, and what was excluded, reason to number of rows or episodes.
    """

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
    """Validates a table and cuts it into episodes; with `mask`, they mark the cells whose column such as
    ``GCS_obs`` is 0.

    Names of other pipelines are recognised (`ALIASES`), and ``subject_id``, if present, names the patient.
    Without it every stay counts as a separate patient, and two stays of one person may fall into two splits.
    If more than 2 % of a column are impossible, its unit is in doubt, and the table is refused.

    Raises:
        TableError: if a column is missing or not numeric, a value is missing or outside its range, the number
            of a stay or step is not an integer, a column or a (stay, bloc) is duplicated, or a stay belongs
            to several patients.
        ValueError: if an argument is out of range.
    """
    ordered = 2 <= min_length <= (min_length if max_length is None else max_length)
    if not ordered or age_unit not in ("days", "years"):
        expected = "expected 2 <= min_length <= max_length and age_unit days or years"
        raise ValueError(f"{expected}; got {min_length}, {max_length}, {age_unit!r}")
    table, changes = settled(recognised(frame), impossible)
    wanted = ("icustayid", "bloc", *COLUMNS)
    faults = _absent(table, wanted) or _faults(table, wanted, age_unit)
    if faults:
        raise TableError(listed(source, faults, "nothing was read"))
    stay, bloc = (table[name].to_numpy(np.int64) for name in ("icustayid", "bloc"))
    order = np.lexsort((bloc, stay))
    stay, bloc = stay[order], bloc[order]
    values = table[list(COLUMNS)].to_numpy(np.float64)[order]
    if age_unit == "years":
        values[:, COLUMNS.index("age")] *= YEAR
    patient = _texts(table["subject_id"])[order] if "subject_id" in table else stay.astype(str)
    other, gap = np.diff(stay) != 0, np.diff(bloc) != 1
    begins = np.r_[0, np.nonzero(other | gap)[0] + 1, len(stay)]
    drops = Counter({**changes, "stays cut at a gap in bloc": len(np.unique(stay[1:][~other & gap]))})
    behind = "rows behind the longest horizon"
    short, of_these = f"episodes shorter than {min_length} steps", "rows of these"
    # Reasons stand in this order, whatever happens first.
    drops.update(dict.fromkeys((behind, short, of_these), 0))
    episodes, patients, piece = [], [], Counter[int]()
    rows, marks = torch.from_numpy(values), np.zeros(values.shape, bool)
    for place, name in enumerate(COLUMNS):
        if f"{name}_obs" in table:
            marks[:, place] = (table[f"{name}_obs"] == 0).to_numpy()[order]
    for begin, end in pairwise(begins):
        part = rows[begin:end]
        if max_length is not None and len(part) > max_length:
            drops[behind] += len(part) - max_length
            part = part[:max_length]
        number = int(stay[begin])
        identity = f"{number}+{piece[number]}" if piece[number] else str(number)
        piece[number] += 1
        if len(part) < min_length:
            drops[short] += 1
            drops[of_these] += len(part)
            continue
        # A view would carry the whole table into every process.
        filled = torch.from_numpy(marks[begin : begin + len(part)].copy()) if mask else None
        episodes.append(Episode(identity, COLUMNS, part.clone(), filled=filled))
        patients.append(str(patient[begin]))
    counted = {reason: count for reason, count in drops.items() if count}
    return Stays(tuple(episodes), tuple(patients), counted)


def _absent(table: pd.DataFrame, wanted: tuple[str, ...]) -> list[str]:
    names = [str(name) for name in table.columns]
    faults = [
        f"{names.count(name)} columns are called {name!r}; keep one of them"
        for name in (*wanted, "subject_id")
        if names.count(name) > 1
    ]
    return faults + [f"no column {name!r}; {meant(name, names)}" for name in wanted if name not in names]


def _faults(table: pd.DataFrame, wanted: tuple[str, ...], age_unit: str) -> list[str]:
    if not len(table):
        return ["expected rows; the table is empty"]
    faults = []
    for name in wanted:
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
        elif name not in RANGES and (broken := column.to_numpy(np.float64) % 1 != 0).any():
            got = f"{column[broken].iloc[0]:g}{_at(broken)}, {int(broken.sum())} such rows"
            faults.append(f"{name}: expected whole numbers; got {got}")
        if name in RANGES:
            faults += _outside(name, column.to_numpy(np.float64, na_value=np.nan), age_unit)
    whole = [name for name in ("icustayid", "bloc") if pd.api.types.is_numeric_dtype(table[name])]
    if len(whole) == 2 and table.duplicated(["icustayid", "bloc"]).any():
        twice = table.duplicated(["icustayid", "bloc"]).to_numpy()
        words = f"rows repeat a (icustayid, bloc) of an earlier row{_at(twice)}"
        faults.append(f"{int(twice.sum())} {words}; keep one of each")
    return faults + _patients(table)


def _patients(table: pd.DataFrame) -> list[str]:
    """Faults of the patients' numbers, which the split by patient depends on."""
    if "subject_id" not in table:
        return []
    nobody = table["subject_id"].isna().to_numpy()
    if nobody.any():
        remedy = "fill them in, or drop the column to split by stay"
        return [f"subject_id: {int(nobody.sum())} rows name no patient{_at(nobody)}; {remedy}"]
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


def _outside(name: str, column: np.ndarray, age_unit: str) -> list[str]:
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
    """What to do about few impossible cells, as an ending of the sentence; empty if there are many."""
    few = name in MEASURED and float(np.mean(bad)) <= MOST
    return "; leave these rows out with dataset.impossible=drop, or move the cells with clip" if few else ""


def _at(bad: np.ndarray | pd.Series) -> str:
    """The position of the first bad row, counted from 1 without the header."""
    places = np.nonzero(np.asarray(bad))[0]
    return f" (first at row {int(places[0]) + 1})" if len(places) else ""


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
    shown = {}
    for name, column in zip(COLUMNS, rows.T, strict=True):
        ordered = column.sort().values
        ends = ordered[[0, len(ordered) // 2, -1]].tolist()
        shown[name] = dict(zip(("min", "median", "max"), ends, strict=True)) | {"unit": RANGES[name][2]}
    medians = zip(levels.names, levels.medians, strict=True)
    filled = {f"{name} filled in upstream": count for name, count in (missing or {}).items()}
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
        "missing values": filled or "none in the table",
        "dropped": dict(stays.drops),
        "splits": {
            name: {"patients": len({stays.patients[place] for place in places}), "episodes": len(places)}
            for name, places in splits.items()
        },
        **recorded(_findings(len(splits["train"]), levels.notes)),
        "dose levels": {name: list(dict.fromkeys(row.tolist())) for name, row in medians},
        "features": shown,
        "fingerprint": transitions(stays.episodes).fingerprint(),
    }


def _findings(stays: int, levels: Mapping[str, str]) -> list[Finding]:
    """That there are too few training stays, and what is to be said of the levels of doses."""
    findings = [Finding("values", f"levels of {name}: {note}") for name, note in levels.items()]
    if stays >= FEW_STAYS:
        return findings
    worth = "claims about the simulated cohort are worth little (docs/results/calibration)"
    words = f"{stays} stays to learn from: below {FEW_STAYS}, {worth}"
    return [Finding("rows", words, {"stays": stays}), *findings]
