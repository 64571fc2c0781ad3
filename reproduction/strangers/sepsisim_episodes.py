"""Episodes of sepsisim, a simulator that this project did not make, with known counterfactual outcomes.

A unit is a patient of the environment `SepsisManagementEnv` with a seed and a severity of its own, for twelve
hours. Each hour, fluids of 0 to 1,000 mL are given, and the dose of the vasopressor is held, lowered or
raised by .05 mcg/kg/min; antibiotics begin in the first three hours. 35 % of the hours have random actions;
in the others both follow the blood pressure. The reward of an hour is minus lactate. The environment calls a
damage above .9 a death, and is carried on.

The environment draws two normal numbers an hour, of pressure e and urine, from a generator that its seed
begins, and its inflammation depends on neither action. So what other actions would have brought is exact:
with tissue damage D as it was, volume v, dose c, pressure p and lactate l, each kept in its range,

    v' = .85 (v + fluid / 1000),      c' = c + change,
    p' = 75 - 22.5 D' + 8 v' / (1 + .3 max(v', 0)) + 15 c' / (1 + .05 c') + e',
    l' = l + 4 max(1 - p' / 65, 0) + 1.5 D' - .3 min(p' / 65, 1) max(1 - .5 D', .3) (l - 1).

The noise of the pressure acts on lactate within the same hour, with a bend at 65 mmHg, and two mediators of
inflammation are not in the table.

Source: Dhia, sepsisim 0.1.0 (MIT licence), the equations; Tsirtsis and Gomez-Rodriguez (2023), Sec. 2 (the
question).
"""

import math
from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from rehearsal_torch.data.decision import Decision, DecisionContext
from rehearsal_torch.data.dose_levels import DoseLevels
from rehearsal_torch.data.size_limits import NUMBERS, bounded
from rehearsal_torch.problems.sequences.sepsis_cohort import dose_options, recommended
from rehearsal_torch.problems.sequences.unit_splits import best_changed, episode_of
from rehearsal_torch.problems.sequences.user_episodes import EpisodeTable
from rehearsal_torch.seeding import numpy_generator

HOURS, EXPLORED = 12, 0.35
FLUIDS, LEVELS, CHANGES = (0.0, 250.0, 500.0, 750.0, 1000.0), ("hold", "lower", "raise"), (0.0, -0.05, 0.05)
STATES = ("pressure", "lactate", "urine", "volume", "dose", "damage", "bacteria")
# What the environment calls them, and whether antibiotics are active.
SAID = ["map_mmhg", "lactate", "urine_output", "intravascular_volume", "vasopressor_dose", "tissue_damage"]
SAID += ["bacteria", "antibiotic_active"]
TASK: Mapping[str, Any] = {
    "unit": "patient",
    "time": "hour",
    "varying": dict.fromkeys(STATES),
    "contextual": ["antibiotic"],
    "actions": {"fluid": {"unit": "mL"}, "vasopressor": {"levels": list(LEVELS)}},
    "reward": {"weights": {"lactate": -1.0}, "name": "lactate"},
}


class SepsisimEpisodes(EpisodeTable):
    """Patients of sepsisim, split by patient.

    Args:
        units: Number of patients; patient i is the same in any number.
        seed: Seed of the patients and of the split.
        changes: k of `optimum`.

    Attributes:
        log: What the environment said, (n, T, 8): `STATES` and whether antibiotics are active.
        given: Fluid in mL, and the number of the vasopressor's level, (n, T, 2).
        noise: That of pressure and of urine, (n, T, 2).
    """

    def __init__(self, units: int = 400, seed: int = 0, changes: int = 2) -> None:
        bounded("units", units, NUMBERS)
        bounded("changes", changes, NUMBERS, 0)
        self.changes = changes
        patients = [_patient(seed, unit) for unit in range(units)]
        parts = (torch.from_numpy(np.stack(each)) for each in zip(*patients, strict=True))
        self.log, self.given, self.noise = parts
        super().__init__(self.frame(), TASK, seed)
        names = [action.name for action in self.roles.actions]
        self.levels = DoseLevels(names, self.roles.count)
        self.levels.solve(self.observations().columns(names))

    def frame(self) -> pd.DataFrame:
        """The table: a row for each patient and hour."""
        patient, hour = np.divmod(np.arange(len(self.log) * HOURS), HOURS)
        columns: dict[str, Any] = {"patient": patient, "hour": hour}
        columns |= dict(zip((*STATES, "antibiotic"), self.log.flatten(0, 1).T.numpy(), strict=True))
        fluid, level = self.given.flatten(0, 1).T.numpy()
        return pd.DataFrame({**columns, "fluid": fluid, "vasopressor": np.array(LEVELS)[level.astype(int)]})

    def true_states(self, unit: int, actions: Tensor) -> Tensor:
        """`STATES` under sequences of fluid and number of level, (n, T, 2) -> (n, T, 7)."""
        log, noise = self.log[unit], self.noise[unit]
        _, lactate, _, volume, dose = (log[0, place].expand(len(actions)) for place in range(5))
        found = [log[0, :7].expand(len(actions), -1)]
        steps = torch.tensor(CHANGES, dtype=torch.float64)[actions[..., 1].long()]
        for hour in range(1, actions.shape[1]):
            dose = (dose + steps[:, hour - 1]).clamp(0, 2)
            volume = (0.85 * (volume + actions[:, hour - 1, 0] / 1000)).clamp(-1, 10)
            filled = 8 * volume / (1 + 0.3 * volume.clamp_min(0))
            tone = 15 * dose / (1 + 0.05 * dose)
            pressure = (75 - 22.5 * log[hour, 5] + filled + tone + noise[hour, 0]).clamp(20, 150)
            share = pressure / 65
            made = 4 * (1 - share).clamp_min(0) + 1.5 * log[hour, 5]
            cleared = 0.3 * share.clamp_max(1) * (1 - 0.5 * log[hour, 5]).clamp_min(0.3) * (lactate - 1)
            lactate = (lactate + made - cleared).clamp(0.1, 30)
            low, usual = (
                0.3 * (pressure - 50).clamp_min(0) / 15,
                0.3 + 0.2 * ((pressure - 65) / 30).clamp_max(1),
            )
            urine = (torch.where(pressure < 65, low, usual) + noise[hour, 1]).clamp(0, 2)
            moved = torch.stack((pressure, lactate, urine, volume, dose), -1)
            found.append(torch.cat([moved, log[hour, 5:7].expand(len(actions), -1)], -1))
        return torch.stack(found, 1)

    def true_returns(self, unit: int, actions: Tensor) -> Tensor:
        """Minus the sum of lactate under sequences of fluid and number of level, (n, T, 2) -> (n,)."""
        return -self.true_states(unit, actions)[..., 1].sum(-1)

    def score(self, case: DecisionContext, decision: Decision) -> Mapping[str, float]:
        """The true return as treated (``true_observed``) and as recommended (``true_value``), the difference
        (``true_gain``), and the difference as a share (``true_improvement``).
        """
        episode = episode_of(case)
        given = self.given[int(episode.identity)]
        both = torch.stack((given, recommended(episode, given, decision, self.levels)))
        before, after = self.true_returns(int(episode.identity), both).tolist()
        gain = {"true_gain": after - before, "true_improvement": (after - before) / abs(before)}
        return {"true_observed": before, "true_value": after, **gain}

    def optimum(self, case: DecisionContext) -> float:
        """The largest true return with at most `changes` changed hours, by enumeration of all levels; NaN if
        these are more than 500,000 sequences.
        """
        episode = episode_of(case)
        unit, last = int(episode.identity), HOURS - self.keep_last
        options = dose_options(episode, self.levels)[:last, self.levels.selectable]
        if math.comb(last, self.changes) * options.shape[1] ** self.changes > 500_000:
            return math.nan
        return best_changed(partial(self.true_returns, unit), self.given[unit], list(options), self.changes)


def _patient(seed: int, unit: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """What the environment says, (T, 8), what was done, (T, 2), and its noise, (T, 2)."""
    from sepsisim.envs.sepsis_management import SepsisManagementEnv

    draw = numpy_generator(seed, unit)
    own, severity = int(draw.integers(2**31)), str(draw.choice(["easy", "medium", "hard"]))
    begins, environment = int(draw.integers(3)), SepsisManagementEnv(severity)
    _, said = environment.reset(seed=own)
    log, given = [], []
    for hour in range(HOURS):
        log.append([float(said[name]) for name in SAID])
        pressure, dose = said["map_mmhg"], said["vasopressor_dose"]
        fluid = int(np.searchsorted([-80.0, -70.0, -65.0], -pressure))
        level = 2 if pressure < 65 else 1 if pressure > 80 and dose > 0 else 0
        if draw.random() < EXPLORED:
            fluid, level = int(draw.integers(len(FLUIDS))), int(draw.integers(len(LEVELS)))
        given.append([FLUIDS[fluid], float(level)])
        if hour < HOURS - 1:
            action = np.array([FLUIDS[fluid], CHANGES[level], float(hour >= begins)])
            said = environment.step(action)[-1]
    # The same numbers as the environment's: before the first of either noise, it draws a uniform one.
    again = np.random.default_rng(own)
    noise = [[(again.uniform(), again.normal(0, 2))[1], (again.uniform(), again.normal(0, 0.05))[1]]]
    noise += [[again.normal(0, 2), again.normal(0, 0.05)] for _ in range(HOURS - 1)]
    return np.array(log), np.array(given), np.array(noise)
