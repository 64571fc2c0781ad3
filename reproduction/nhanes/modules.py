"""The CDC's NHANES modules of 2011-2018: fetching them, and merging them to complete cases.

Ten modules per cycle are joined by SEQN. Codes for "refused" and "don't know" are missing values. Blood
pressure is the first reading; in 2017-2018 the oscillometric module replaces the cuff's, under other names. A
diastolic pressure of 0 counts as a reading, a day of diet counts whatever its recall status. Adults are 20 or
older. ``modules.yaml`` has the SHA-256 of the columns that are used, as the CDC published them.

SAS writes zero in a way that pandas reads as 5.4e-79; such numbers are set back to zero.

Source: Du et al. (2026), App. E.4; the CDC's public-use files, https://wwwn.cdc.gov/nchs/nhanes/, and their
codebooks (names and codes).
"""

import hashlib
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

import numpy as np
import pandas as pd
import yaml

from rehearsal_torch.files.atomic_write import write_bytes
from rehearsal_torch.problems.nhanes.nhanes_generator import OUTCOMES, VARIABLES

SITE = "https://wwwn.cdc.gov/Nchs/Data/Nhanes/Public"
CYCLES: Mapping[str, str] = MappingProxyType(
    {"G": "2011-2012", "H": "2013-2014", "I": "2015-2016", "J": "2017-2018"}
)
PUBLISHED = Path(__file__).with_name("modules.yaml")
ADULT = 20
# Variable to its module, column, and the codes for missing values.
_SOURCES: Mapping[str, tuple[str, str, tuple[int, ...]]] = MappingProxyType(
    {
        "Age": ("DEMO", "RIDAGEYR", ()),
        "Sex": ("DEMO", "RIAGENDR", ()),
        "Race": ("DEMO", "RIDRETH3", ()),
        "FamilyHx_Diabetes": ("MCQ", "MCQ300C", (7, 9)),
        "Education": ("DEMO", "DMDEDUC2", (7, 9)),
        "Income_Ratio": ("DEMO", "INDFMPIR", ()),
        "BMI": ("BMX", "BMXBMI", ()),
        "CalIntake": ("DR1TOT", "DR1TKCAL", ()),
        "CarbIntake": ("DR1TOT", "DR1TCARB", ()),
        "FiberIntake": ("DR1TOT", "DR1TFIBE", ()),
        "Sedentary_min": ("PAQ", "PAD680", (7777, 9999)),
        "SBP": ("BPX", "BPXSY1", ()),
        "DBP": ("BPX", "BPXDI1", ()),
        "TotalCholesterol": ("TCHOL", "LBXTC", ()),
        "HDL": ("HDL", "LBDHDD", ()),
        "HbA1c": ("GHB", "LBXGH", ()),
        "FPG": ("GLU", "LBXGLU", ()),
    }
)
_OSCILLOMETRIC = {"SBP": ("BPXO", "BPXOSY1", ()), "DBP": ("BPXO", "BPXODI1", ())}


@dataclass(frozen=True)
class Cohort:
    """Complete cases, and how many participants each requirement excluded.

    Attributes:
        cases: One row per participant: SEQN, cycle, and the 17 variables.
        attrition: Each requirement, and the number of participants left, by cycle and in all.
        unlike: Modules whose values differ from those that were published when this was written.
    """

    cases: pd.DataFrame
    attrition: pd.DataFrame
    unlike: tuple[str, ...]


def columns_of(cycle: str) -> dict[str, list[str]]:
    """Module to the columns needed from it in a cycle, G ... J."""
    found: dict[str, list[str]] = {}
    for module, column, _ in _sources(cycle).values():
        found.setdefault(module, []).append(column)
    return found


def module_names() -> list[str]:
    """The 40 modules, such as DEMO_G."""
    return [f"{module}_{cycle}" for cycle in CYCLES for module in columns_of(cycle)]


def fetch(folder: Path, site: str = SITE) -> list[str]:
    """Downloads the modules that a folder lacks.

    Args:
        folder: Where they are kept.
        site: The address of the CDC's modules; may be a file:// address.

    Returns:
        The modules that were downloaded.

    Raises:
        OSError: if one cannot be reached.
    """
    folder.mkdir(parents=True, exist_ok=True)
    there = {path.name.upper() for path in folder.iterdir()}
    missing = [name for name in module_names() if f"{name}.XPT" not in there]
    for name in missing:
        address = f"{site.rstrip('/')}/{CYCLES[name[-1]][:4]}/DataFiles/{name}.xpt"
        with urllib.request.urlopen(address, timeout=60) as answer:
            write_bytes(folder / f"{name}.XPT", answer.read())
        print(f"fetched {address}", flush=True)
    return missing


def merged(source: Path) -> Cohort:
    """The complete cases of a folder of modules.

    Args:
        source: A folder with the 40 modules, such as DEMO_G.XPT; the case of file names does not matter.

    Raises:
        ValueError: if the folder or a module is missing or cannot be read, or no participant is complete; all
            faults are listed.
    """
    files = _files(source)
    frames, faults, unlike = [], [], []
    published = yaml.safe_load(PUBLISHED.read_text(encoding="utf-8"))
    for cycle in CYCLES:
        modules = {}
        for module, columns in columns_of(cycle).items():
            name = f"{module}_{cycle}"
            try:
                modules[module] = read_module(files[name], columns)
            except ValueError as error:
                faults.append(str(error))
                continue
            if fingerprint(modules[module]) != published[name]["sha256"]:
                unlike.append(name)
        if not faults:
            frames.append(_joined(modules, cycle))
    if faults:
        raise ValueError("; ".join(faults))
    everyone = pd.concat(frames, ignore_index=True)
    steps = [
        ("participants", pd.Series(True, index=everyone.index)),
        (f"aged {ADULT} or more", everyone["Age"] >= ADULT),
        ("HbA1c and FPG measured", everyone[list(OUTCOMES)].notna().all(axis=1)),
    ]
    steps += [
        (f"{name} known", everyone[name].notna()) for name in VARIABLES if name not in ("Age", *OUTCOMES)
    ]
    left, rows = pd.Series(True, index=everyone.index), []
    for text, kept in steps:
        left &= kept
        counts = everyone.loc[left, "cycle"].value_counts()
        rows.append(
            {
                "required": text,
                **{years: int(counts.get(years, 0)) for years in CYCLES.values()},
                "left": int(left.sum()),
            }
        )
    if not left.any():
        raise ValueError(
            f"{source}: no participant is complete: check that these are the NHANES modules of "
            f"{', '.join(CYCLES.values())}"
        )
    return Cohort(everyone[left].reset_index(drop=True), pd.DataFrame(rows), tuple(unlike))


def read_module(path: Path, columns: list[str]) -> pd.DataFrame:
    """SEQN and some columns of a module, in the order of SEQN.

    Raises:
        ValueError: if the file is not a SAS transport file, lacks a column, or has a participant twice.
    """
    try:
        frame = pd.read_sas(path, format="xport")
    except Exception as error:  # pandas raises various errors for files that it cannot parse
        raise ValueError(
            f"{path.name} cannot be read as a SAS transport file ({error}): fetch it again"
        ) from error
    missing = [column for column in ("SEQN", *columns) if column not in frame.columns]
    if missing:
        raise ValueError(
            f"{path.name} has no column {', '.join(missing)}: check that it is the CDC's module of that name"
        )
    frame = frame[["SEQN", *columns]].astype(float).sort_values("SEQN", ignore_index=True)
    if frame["SEQN"].duplicated().any():
        raise ValueError(
            f"{path.name} names {int(frame['SEQN'].duplicated().sum())} participants twice: fetch it again"
        )
    return frame.mask(frame.abs() < 1e-70, 0.0)


def fingerprint(frame: pd.DataFrame) -> str:
    """SHA-256 of the columns that are used of a module, independent of the rest of the file."""
    values = frame.to_numpy(np.float64)
    values = np.where(np.isnan(values), -1e300, values)
    return hashlib.sha256(
        "\0".join(frame.columns).encode() + np.ascontiguousarray(values, dtype="<f8").tobytes()
    ).hexdigest()


def _sources(cycle: str) -> dict[str, tuple[str, str, tuple[int, ...]]]:
    return {**_SOURCES, **(_OSCILLOMETRIC if cycle == "J" else {})}


def _files(source: Path) -> dict[str, Path]:
    if not source.is_dir():
        raise ValueError(
            f"{source}: there is no such folder: give the folder with the CDC's modules, or add "
            "download=true to fetch them"
        )
    there = {path.name.upper(): path for path in sorted(source.iterdir()) if path.is_file()}
    missing = [name for name in module_names() if f"{name}.XPT" not in there]
    if missing:
        raise ValueError(
            f"{source}: {len(missing)} of {len(module_names())} modules are missing ({', '.join(missing)}): "
            "add download=true to fetch them"
        )
    return {name: there[f"{name}.XPT"] for name in module_names()}


def _joined(modules: Mapping[str, pd.DataFrame], cycle: str) -> pd.DataFrame:
    whole = modules["DEMO"]
    for module, frame in modules.items():
        if module != "DEMO":
            whole = whole.merge(frame, on="SEQN", how="left", validate="one_to_one")
    found = pd.DataFrame({"SEQN": whole["SEQN"].astype(int), "cycle": CYCLES[cycle]})
    for name, (_, column, codes) in _sources(cycle).items():
        found[name] = whole[column].mask(whole[column].isin(codes))
    found["FamilyHx_Diabetes"] = found["FamilyHx_Diabetes"].map({1.0: 1.0, 2.0: 0.0})
    return found
