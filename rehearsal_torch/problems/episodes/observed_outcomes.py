"""What happened to the patients of a four-hour table afterwards: deaths, where the table has them.

The public pipelines write an outcome of the whole stay into each of its rows. It is kept for comparison and
never read by a model or a search: no outcome is a feature, so that nothing is fitted to it. The first three
names are those of AI-Clinician's table; other pipelines' names for them are recognised. A value is 0 or 1 (or
true and false), the same in all rows of a stay; a stay whose rows are all empty has no outcome. A column with
other values is left out, and the data card says so.

Source: Komorowski et al. (2018) for the columns; their cohort files (``demog``) and MIMIC-IV
(``hospital_expire_flag``) for the other names.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import pandas as pd

# Name in the table -> what it says.
OUTCOMES: Mapping[str, str] = {
    "died_in_hosp": "death in hospital",
    "died_within_48h_of_out_time": "death within 48 hours of leaving the unit",
    "mortality_90d": "death within 90 days",
}
# Other name -> name here.
ALIASES: Mapping[str, str] = {
    "morta_hosp": "died_in_hosp",
    "hospital_expire_flag": "died_in_hosp",
    "died_in": "died_in_hosp",
    "morta_90": "mortality_90d",
    "morta_90d": "mortality_90d",
}
_TEXTS: Mapping[str, float] = {"true": 1.0, "false": 0.0, "1": 1.0, "0": 0.0, "1.0": 1.0, "0.0": 0.0}


@dataclass(frozen=True)
class ObservedOutcomes:
    """Outcomes of stays.

    Attributes:
        by_stay: The number of a stay, as text, to its outcomes: name to 0 or 1.
        left_out: Column to the reason why it is left out.
    """

    by_stay: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    left_out: Mapping[str, str] = field(default_factory=dict)

    def of(self, identity: str) -> Mapping[str, float]:
        """The outcomes of an episode, "12" or a piece of a stay such as "12+1"; empty if none are known."""
        return self.by_stay.get(identity.partition("+")[0], {})

    def facts(self) -> dict[str, object]:
        """Entries of a data card; empty if the table has no outcome."""
        found: dict[str, object] = {}
        for name, meaning in OUTCOMES.items():
            values = [stay[name] for stay in self.by_stay.values() if name in stay]
            if values:
                found[name] = f"{meaning}: {int(sum(values))} of {len(values)} stays"
        facts: dict[str, object] = {"observed outcomes": found} if found else {}
        return facts | {f"caution: outcome {name}": why for name, why in self.left_out.items()}


def observed_outcomes(table: pd.DataFrame) -> ObservedOutcomes:
    """The outcomes of the stays of a recognised table (`stay_columns.recognised`).

    Args:
        table: One row per step, with ``icustayid``; without it, there are no outcomes.
    """
    columns = [str(name) for name in table.columns]
    if columns.count("icustayid") != 1:
        return ObservedOutcomes()
    by_stay: dict[str, dict[str, float]] = {}
    left_out: dict[str, str] = {}
    for name, meaning in OUTCOMES.items():
        found = [column for column in columns if ALIASES.get(column, column) == name]
        # The table's own name wins over others.
        column = name if name in found else next(iter(found), "")
        if not column:
            continue
        if columns.count(column) > 1:
            left_out[column] = f"{columns.count(column)} columns have this name; {meaning} is left out"
            continue
        values = _numbers(table[column])
        known = values.notna() & table["icustayid"].notna()
        if bool((values.isna() & table[column].notna()).any()):
            odd = table[column][values.isna() & table[column].notna()].iloc[0]
            left_out[column] = f"expected 0 or 1 in every row; got {odd}: {meaning} is left out"
            continue
        each = values[known].groupby(table["icustayid"][known])
        several = each.nunique() > 1
        if bool(several.any()):
            left_out[column] = (
                f"{int(several.sum())} stays have several values, the first of them stay "
                f"{_text(several[several].index[0])}: {meaning} is left out"
            )
            continue
        for stay, value in each.first().items():
            by_stay.setdefault(_text(stay), {})[name] = float(value)
    return ObservedOutcomes(by_stay, left_out)


def _numbers(column: pd.Series) -> pd.Series:
    """0 or 1 of each row; NaN where a cell is empty or is neither."""
    text = column.astype(str).str.strip().str.lower()
    return text.map(_TEXTS).where(column.notna(), np.nan)


def _text(stay: object) -> str:
    """The number of a stay as text, as in the identities of episodes."""
    return str(int(stay)) if isinstance(stay, int | float | np.number) and stay == int(stay) else str(stay)
