"""MIMIC-III sepsis patients, from the four-hour table of the public pipelines.

AI-Clinician's ``mimic-table.csv`` (one row per step of four hours, 10 to 20 steps around the onset) and its
Python successors have the same columns. The data are licensed to individuals and do not come with this
package. The table is validated first; the numbers of excluded rows and episodes are reported. Deaths, where
the table has them, are kept beside the episodes for comparison; no model reads them (`observed_outcomes`).

Source: Komorowski et al. (2018) for the table; Tsirtsis and Gomez-Rodriguez (2023), Sec. 5 (horizons of at
least 10).
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from rehearsal_torch.data.decision import Decision, DecisionContext, EpisodeCase
from rehearsal_torch.data.dose_levels import DoseLevels
from rehearsal_torch.data.episode import Episode, transitions
from rehearsal_torch.data.reading import TableError, table_file
from rehearsal_torch.data.table import Table
from rehearsal_torch.problems.episodes.observed_outcomes import observed_outcomes
from rehearsal_torch.problems.episodes.simulator import STATES, sofa
from rehearsal_torch.problems.episodes.splits import split as split_patients
from rehearsal_torch.problems.episodes.stay_columns import Impossible, recognised
from rehearsal_torch.problems.episodes.stays import COLUMNS, DOSES, data_card, read_stays
from rehearsal_torch.problems.problem import Problem

CAUTION = (
    "Observational data: recommendations rest on the model and on the assumption of no hidden confounding "
    "of treatment and outcome."
)
SHARES = {"train": 0.7, "validation": 0.1, "test": 0.2}


class Mimic(Problem):
    """Patients of a four-hour table, split by patient.

    Args:
        path: The table, .csv or .csv.gz.
        seed: Seed of the split.
        min_length: Shortest episode, in steps.
        max_length: Longest episode; later steps are dropped.
        horizon: If given, cases are the first `horizon` steps of those episodes that are long enough.
        split: The split that the cases come from: "train", "validation" or "test".
        action_lag: Uses the dose of `action_lag` steps earlier as a step's action, for tables whose doses
            act, or are recorded, late. It does not remedy SOFA's scoring the dose of its own step: in the
            simulated cohort it makes more patients worse off (docs/sharp_bits.md).
        age_unit: "days" as AI-Clinician has it, or "years".
        impossible: What happens to cells outside their ranges: "refuse", "drop" or "clip" (`stay_columns`).

    Raises:
        TableError: if there is no such file, or the table has faults; all are listed.
        ValueError: if no case is left, or an argument is out of range.
    """

    def __init__(
        self,
        path: str | Path | None,
        seed: int = 0,
        min_length: int = 10,
        max_length: int = 20,
        horizon: int | None = None,
        split: str = "test",
        action_lag: int = 0,
        age_unit: str = "days",
        impossible: Impossible = "refuse",
    ) -> None:
        if split not in SHARES:
            raise ValueError(f"expected split train, validation or test; got {split!r}")
        self.path, self.split, self.action_lag = _file(path), split, action_lag
        frame = recognised(table_file(self.path))
        # Missing values are refused; imputed ones are marked in columns such as GCS_obs, 1 where measured.
        self.missing = {
            name: int((frame[f"{name}_obs"] == 0).sum()) for name in COLUMNS if f"{name}_obs" in frame.columns
        }
        self.outcomes = observed_outcomes(frame)
        self.stays = read_stays(
            frame,
            source=str(self.path),
            min_length=min_length,
            max_length=max_length,
            action_lag=action_lag,
            age_unit=age_unit,
            impossible=impossible,
        )
        if not self.stays.episodes:
            raise ValueError(
                f"{self.path}: no episode of at least {min_length} steps is left ({dict(self.stays.drops)}): "
                "lower `min_length`"
            )
        self.splits = split_patients(self.stays.patients, SHARES, seed)
        wanted = self.episodes(split)
        if horizon is not None:
            wanted = [episode.first(horizon) for episode in wanted if episode.horizon >= horizon]
        self.chosen: list[Episode] = wanted
        if not wanted:
            raise ValueError(
                f"{self.path}: no episode of split {split!r} has {horizon} steps: lower `horizon`"
            )

    def observations(self) -> Table:
        """Transitions of the training patients, in the table's units."""
        return self._transitions("train")

    def held_out(self) -> Table:
        """Transitions of the validation patients."""
        return self._transitions("validation")

    def episodes(self, split: str = "train") -> list[Episode]:
        """The episodes of a split."""
        return [self.stays.episodes[place] for place in self.splits[split]]

    def count(self) -> int:
        """The number of episodes to decide on."""
        return len(self.chosen)

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
        found = data_card(
            self.stays,
            self.splits,
            source=str(self.path.name),
            caution=CAUTION,
            levels=levels,
            missing=self.missing or None,
        )
        found |= self.outcomes.facts()
        if self.action_lag:
            return found
        return found | {"agreement of SOFA with its formula": f"{self.sofa_agreement():.1%} of the steps"}

    def sofa_agreement(self) -> float:
        """The share of steps whose SOFA column equals the score of the same step's other columns. It is lower
        where single values were imputed after the score had been computed, or were recorded in other steps.
        """
        equal = [
            sofa(episode.columns(STATES), episode.columns((DOSES[0],))[:, 0])
            == episode.columns(("SOFA",))[:, 0]
            for episode in self.stays.episodes
        ]
        return float(torch.cat(equal).to(torch.float64).mean())

    def _transitions(self, split: str) -> Table:
        return transitions(self.episodes(split))


def _file(path: str | Path | None) -> Path:
    if path is None:
        raise TableError(
            "no table is named: set path=mimic-table.csv (the four-hour table of a public MIMIC-III sepsis "
            "pipeline)"
        )
    file = Path(path)
    if not file.is_file():
        raise TableError(
            f"there is no file {file}: check path=, which is relative to the folder the command is typed in"
        )
    return file
