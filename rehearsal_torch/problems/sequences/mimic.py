"""MIMIC-III sepsis patients, from the four-hour table of the public pipelines.

AI-Clinician's ``mimic-table.csv`` (one row per step of four hours, 10 to 20 steps around the onset) and its
Python successors have the same columns. The data are licensed to individuals and do not come with this
package. The table is validated first; the numbers of excluded rows and episodes are reported.

Deaths (`observed_outcomes`), which the public pipelines write into each row of a stay, are kept for
comparison and never read by a model or a search. Other pipelines' names for them are recognised. A value is 0
or 1 (or true and false), the same in all rows of a stay; a stay whose rows are all empty has no outcome. A
column with other values is left out, and the data card says so.

Source: Komorowski et al. (2018) for table and columns; their cohort files (``demog``) and MIMIC-IV
(``hospital_expire_flag``) for the other names; Tsirtsis and Gomez-Rodriguez (2023), Sec. 5 (horizons of at
least 10).
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch

from rehearsal_torch.data.decision import Decision, DecisionContext, EpisodeCase
from rehearsal_torch.data.dose_levels import DoseLevels
from rehearsal_torch.data.finding import Finding, findings_of, recorded
from rehearsal_torch.data.tables.reader import table_file
from rehearsal_torch.problems.sequences.four_hour_table import (
    COLUMNS,
    DOSES,
    STATES,
    Impossible,
    data_card,
    read_stays,
    recognised,
)
from rehearsal_torch.problems.sequences.sepsis_cohort import sofa
from rehearsal_torch.problems.sequences.unit_splits import (
    REPEATED,
    SplitEpisodes,
    check_measured,
    check_split,
    repeated_shares,
)

# Name in the table -> meaning.
OUTCOMES: Mapping[str, str] = {
    "died_in_hosp": "death in hospital",
    "died_within_48h_of_out_time": "death within 48 hours of leaving the unit",
    "mortality_90d": "death within 90 days",
}
# Alias -> name in the table.
ALIASES: Mapping[str, str] = {
    "morta_hosp": "died_in_hosp",
    "hospital_expire_flag": "died_in_hosp",
    "died_in": "died_in_hosp",
    "died_48h_of_out": "died_within_48h_of_out_time",
    "morta_90": "mortality_90d",
    "morta_90d": "mortality_90d",
}
# The beginnings of names of outcomes.
_OUTCOME = re.compile(r"died|death|dead|mort|surviv|.*expire", re.IGNORECASE)
_BOOLEANS: Mapping[str, float] = {"true": 1.0, "false": 0.0, "1": 1.0, "0": 0.0, "1.0": 1.0, "0.0": 0.0}


@dataclass(frozen=True)
class ObservedOutcomes:
    """The outcomes of stays, by number as text, name to 0 or 1; and columns left out, with the reason."""

    by_stay: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    left_out: Mapping[str, str] = field(default_factory=dict)

    def of(self, identity: str) -> Mapping[str, float]:
        """The outcomes of an episode, "12" or a piece of a stay such as "12+1"; empty if none are known."""
        return self.by_stay.get(identity.partition("+")[0], {})

    def facts(self) -> dict[str, object]:
        """Entries of a data card; empty if the table has no outcome."""
        counts: dict[str, object] = {}
        for name, meaning in OUTCOMES.items():
            values = [stay[name] for stay in self.by_stay.values() if name in stay]
            if values:
                counts[name] = f"{meaning}: {int(sum(values))} of {len(values)} stays"
        return {"observed outcomes": counts} if counts else {}


def observed_outcomes(table: pd.DataFrame) -> ObservedOutcomes:
    """The outcomes of the stays of a recognised table (`stays.recognised`); none without ``icustayid``."""
    columns = [str(name) for name in table.columns]
    if columns.count("icustayid") != 1:
        return ObservedOutcomes()
    by_stay: dict[str, dict[str, float]] = {}
    extra = [name for name in columns if _OUTCOME.match(name) and ALIASES.get(name, name) not in OUTCOMES]
    left_out = dict.fromkeys(extra, f"no outcome has this name; rename it, if it is {' or '.join(OUTCOMES)}")
    for name, meaning in OUTCOMES.items():
        names = [column for column in columns if ALIASES.get(column, column) == name]
        # The table's own name wins over others.
        column = name if name in names else next(iter(names), "")
        if not column:
            continue
        if columns.count(column) > 1:
            left_out[column] = f"{columns.count(column)} columns have this name; {meaning} is left out"
            continue
        cells = table[column]
        values = cells.astype(str).str.strip().str.lower().map(_BOOLEANS).where(cells.notna(), np.nan)
        invalid = values.isna() & cells.notna()
        if invalid.any():
            got = table[column][invalid].iloc[0]
            left_out[column] = f"expected 0 or 1 in every row; got {got}: {meaning} is left out"
            continue
        complete = values.notna() & table["icustayid"].notna()
        by_value = values[complete].groupby(table["icustayid"][complete])
        several = by_value.nunique() > 1
        if several.any():
            count, first = int(several.sum()), _stay_text(several[several].index[0])
            fault = f"{count} stays have several values, the first of them stay {first}"
            left_out[column] = f"{fault}: {meaning} is left out"
            continue
        for stay, value in by_value.first().items():
            by_stay.setdefault(_stay_text(stay), {})[name] = float(value)
    return ObservedOutcomes(by_stay, left_out)


def _stay_text(stay: object) -> str:
    """The number of a stay as text, as in the identities of episodes."""
    return str(int(stay)) if isinstance(stay, int | float | np.number) and stay == int(stay) else str(stay)


CAUTION = (
    "Observational data: recommendations rest on the model and on the assumption of no hidden confounding "
    "of treatment and outcome."
)


class Mimic(SplitEpisodes):
    """Patients of a four-hour table, split by patient.

    Args:
        path: The table, .csv or .csv.gz.
        seed: Seed of the split.
        min_length: Shortest episode, in steps.
        max_length: Longest episode; later steps are dropped.
        horizon: If given, cases are the first `horizon` steps of those episodes that are long enough.
        split: The split that the cases come from: "train", "validation" or "test".
        age_unit: "days" as AI-Clinician has it, or "years".
        impossible: What happens to cells outside their ranges: "refuse", "drop" or "clip" (`stays`).
        masked: Whether states whose column such as ``GCS_obs`` is 0 are no values for a model to predict.

    A TableError lists all faults of the file; a ValueError says that no case is left or an argument is wrong.
    """

    def __init__(
        self,
        path: str | Path | None,
        seed: int = 0,
        min_length: int = 10,
        max_length: int = 20,
        horizon: int | None = None,
        split: str = "test",
        age_unit: str = "days",
        impossible: Impossible = "refuse",
        masked: bool = False,
    ) -> None:
        check_split(split)
        frame = recognised(table_file(path))
        self.path = Path(str(path))
        self._rows, self.masked = len(frame), masked
        # Missing values are refused; imputed ones are marked in columns such as GCS_obs, 1 where measured.
        marked = [name for name in COLUMNS if f"{name}_obs" in frame.columns]
        self.missing = {name: int((frame[f"{name}_obs"] == 0).sum()) for name in marked}
        if masked and not self.missing:
            expected = "with masked=true, expected columns such as GCS_obs, 0 where the state was filled in"
            raise ValueError(f"{self.path}: {expected}; got none: add them, or learn all with masked=false")
        self.outcomes = observed_outcomes(frame)
        source = str(self.path)
        self.stays = read_stays(frame, source, min_length, max_length, age_unit, impossible, masked)
        if not self.stays.episodes:
            none_left = f"no episode of at least {min_length} steps is left ({dict(self.stays.drops)})"
            raise ValueError(f"{self.path}: {none_left}: lower `min_length`")
        super().__init__(self.stays.episodes, self.stays.patients, seed, split, horizon)
        if not self.chosen:
            too_few = f"no episode of split {split!r} has {horizon} steps"
            raise ValueError(f"{self.path}: {too_few}: lower `horizon`")
        if masked:
            check_measured(self.observations(), STATES, source)

    def case(self, index: int) -> EpisodeCase:
        """Episode number `index` of the split, in retrospect, with the stay's observed outcomes."""
        episode = self.chosen[index]
        return EpisodeCase(episode, outcomes=self.outcomes.of(episode.identity))

    def score(self, case: DecisionContext, decision: Decision) -> Mapping[str, float]:  # noqa: ARG002
        """Empty: the outcome of other treatments is unknown for past patients."""
        return {}

    def card(self) -> Mapping[str, Any]:
        """Sizes, ranges, missing values, exclusions, dose levels, splits, source and caution."""
        levels = DoseLevels(DOSES)
        levels.solve(self.observations().columns(DOSES))
        card = data_card(self.stays, self.splits, self.path.name, CAUTION, levels, missing=self.missing)
        reasons = self.outcomes.left_out.items()
        left_out = [Finding("values", f"outcome {name}: {why}") for name, why in reasons]
        card |= self.outcomes.facts() | recorded([*findings_of(card), *left_out, *self._imputed()])
        return card | {"agreement of SOFA with its formula": f"{self.sofa_agreement():.1%} of the steps"}

    def _imputed(self) -> list[Finding]:
        """The states of which much was filled in upstream, as the table says or as repeated values show."""
        shares = repeated_shares(self.episodes(), [name for name in STATES if name not in self.missing])
        marked = {} if self.masked else self.missing
        shares |= {name: count / self._rows for name, count in marked.items() if name in STATES}
        large = {name: share for name, share in shares.items() if share >= REPEATED}
        share_list = ", ".join(f"{name} {share:.0%}" for name, share in large.items())
        text = f"filled in or carried forward upstream, so that the model learns the copies: {share_list}"
        return [Finding("values", text, large)] if large else []

    def sofa_agreement(self) -> float:
        """The share of steps whose SOFA column is its formula; lower if imputed or recorded elsewhere."""
        rows = torch.cat([episode.columns((*STATES, DOSES[0], "SOFA")) for episode in self.stays.episodes])
        return float((sofa(rows[:, :-2], rows[:, -2]) == rows[:, -1]).double().mean())
