"""Simulated sepsis cohort with known counterfactuals, and the SOFA score.

Simulated patients go through the same validation and episode builder as a real table; in contrast to it, the
true outcomes of a recommended and of the best sequence of actions are known.

Each patient has eight latent coordinates x (logit of FiO2, logarithms of PaO2, platelets, bilirubin,
creatinine and urine, the Glasgow score before rounding, mean blood pressure) with dynamics in steps of four
hours,

    x' = mu + r (x - mu) + e(x, dose, ventilation) + sd * s(dose) * L eps,      eps ~ N(0, I),

around a patient-specific level mu, with r = `REVERSION`, sd = `SPREAD`, and L L' the correlations of the
noise: a location-scale mechanism, element-wise bijective in the noise L eps.
Vasopressors raise a low blood pressure and harm at a sufficient one; fluids help a low pressure and impair
oxygenation. Clinicians treat low pressure, and frail patients (older, readmitted) more readily; so treatment
is confounded by severity, and in the raw table treated patients fare worse. With `confounding` = 0 all of
that severity is in the table, as the method assumes. Towards 1, frailty and each patient's own level mu
become unobserved, and counterfactuals learnt from the table become wrong: the loss can be measured here.

Nothing here is patient data. Levels and rates are tuned to published aggregates of ICU-Sepsis 2.0.1
(Choudhary, Gupta and Thomas, 2024; MIT licence), in brackets those of the default cohort: SOFA 6.35 +- 3.45
[6.25 +- 3.56], ventilated in 37 % of the steps [35.1], 44 % female [44.4], 33 % readmitted [32.0],
vasopressors in 14.1 % [13.7], with 3.5, 4.0, 3.0 and 3.6 % on their levels [3.3, 3.7, 3.3, 3.4], no fluids in
26 % [25.6], and 18.7, 18.8, 18.3 and 18.2 % on theirs [18.7, 18.6, 18.6, 18.4]. Six seeds gave SOFA 6.25 to
6.45, vasopressors 12.9 to 13.8 %, ventilated 35 to 40 %. A patient's features have autocorrelations from step
to step of .45 (PaO2) to .95 (platelets, creatinine), SOFA of .89.

SOFA is the sum of six organ scores, 0 to 4 each, by the AI-Clinician's rules for one four-hour step:

    organ           measured                             1        2        3        4
    lungs           PaO2 / FiO2 (mmHg)                   <= 400   < 300    < 200    < 100
    coagulation     platelets (10^9 / L)                 <= 150   < 100    < 50     < 20
    liver           bilirubin (mg / dL)                  >= 1.2   >= 2     >= 6     > 12
    circulation     mean pressure (mmHg), vasopressor    < 70     < 65     > 0      > 0.1 mcg/kg/min
    nerves          Glasgow coma scale                   <= 14    <= 12    <= 9     <= 5
    kidneys         creatinine (mg / dL)                 >= 1.2   >= 2     >= 3.5   > 5
                    urine (mL in four hours)                               < 84     < 34

The circulation scores the vasopressor given in the very step that is scored.

Source: Tsirtsis and Gomez-Rodriguez (2023), Sec. 5 (the task) and Table 2 (doses per level; the dynamics are
ours); Vincent et al. (1996) and Komorowski et al. (2018), for the four-hour urine limits (SOFA).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from rehearsal_torch.data.decision import Decision, DecisionContext, EpisodeCase, action_name
from rehearsal_torch.data.dose_levels import DoseLevels
from rehearsal_torch.data.episode import Episode
from rehearsal_torch.data.table import Table
from rehearsal_torch.problems.problem import World
from rehearsal_torch.problems.sequences.four_hour_table import DOSES, STATES, VARYING, data_card, read_stays
from rehearsal_torch.problems.sequences.unit_splits import (
    SplitEpisodes,
    best_changed,
    check_split,
    episode_of,
    what_followed,
)
from rehearsal_torch.seeding import numpy_generator


def sofa(states: Tensor, vasopressor: Tensor) -> Tensor:
    """SOFA of four-hour steps, 0 ... 24, from `STATES`, (..., 8), and norepinephrine in mcg/kg/min, (...)."""
    oxygen, arterial, platelets, bilirubin, glasgow, pressure, creatinine, urine = states.unbind(-1)
    ratio = arterial / oxygen
    lungs = _count(ratio <= 400, ratio < 300, ratio < 200, ratio < 100)
    coagulation = _count(platelets <= 150, platelets < 100, platelets < 50, platelets < 20)
    liver = _count(bilirubin >= 1.2, bilirubin >= 2, bilirubin >= 6, bilirubin > 12)
    vasopressor_points = torch.where(vasopressor > 0.1, 4, torch.where(vasopressor > 0, 3, 0)).to(torch.int8)
    circulation = torch.maximum(_count(pressure < 70, pressure < 65), vasopressor_points)
    nerves = _count(glasgow <= 14, glasgow <= 12, glasgow <= 9, glasgow <= 5)
    urine_points = torch.where(urine < 34, 4, torch.where(urine < 84, 3, 0)).to(torch.int8)
    kidneys = _count(creatinine >= 1.2, creatinine >= 2, creatinine >= 3.5, creatinine > 5)
    kidneys = torch.maximum(kidneys, urine_points)
    return (lungs + coagulation + liver + circulation + nerves + kidneys).to(states.dtype)


def _count(*reached: Tensor) -> Tensor:
    return torch.stack(reached).sum(0, dtype=torch.int8)


LONGEST = 20  # Longest horizon by default, in steps of four hours.
VASOPRESSOR = torch.tensor([0.0, 0.04, 0.113, 0.225, 0.788], dtype=torch.float64)  # mcg/kg/min
FLUID = torch.tensor([0.0, 30.0, 80.0, 279.0, 850.0], dtype=torch.float64)  # mL in four hours


def _row(*values: float) -> Tensor:
    return torch.tensor(values, dtype=torch.float64)


# By coordinate, in the order above: the level mu, how frailty and its own draw shift it, sd, and r.
LEVEL = _row(-0.30, np.log(103), np.log(180), np.log(1.0), 13.2, 76.2, np.log(1.32), np.log(262))
FRAILTY = _row(0.32, -0.11, -0.28, 0.48, -2.1, -2.7, 0.40, -0.38)
SPREAD = _row(0.45, 0.26, 0.14, 0.22, 2.2, 7.5, 0.15, 0.55)
OWN = _row(0.45, 0.35, 2.2, 1.5, 0.5, 0.6, 1.6, 0.5)
REVERSION = _row(0.66, 0.40, 0.92, 0.80, 0.66, 0.70, 0.88, 0.50)
_PAIRS = ((0, 1, 0.25), (0, 4, -0.10), (5, 7, 0.20), (6, 7, -0.20), (3, 2, -0.10), (5, 4, 0.05))
_CORRELATION = torch.eye(8, dtype=torch.float64)
for _i, _j, _value in _PAIRS:
    _CORRELATION[_i, _j] = _CORRELATION[_j, _i] = _value
FACTOR = torch.linalg.cholesky(_CORRELATION)


def emit(latent: Tensor) -> Tensor:
    """The observed features of latent states, (..., 8) -> (..., 8) in clinical units (`STATES`)."""
    oxygen = 0.21 + 0.79 * torch.sigmoid(latent[..., 0] - 0.35)
    glasgow = latent[..., 4].round().clamp(3, 15)
    _, arterial, platelets, bilirubin, _, _, creatinine, urine = latent.exp().unbind(-1)
    pressure = latent[..., 5].clamp(25, 180)
    return torch.stack((oxygen, arterial, platelets, bilirubin, glasgow, pressure, creatinine, urine), -1)


def move(latent: Tensor, level: Tensor, doses: Tensor, ventilated: Tensor, noise: Tensor) -> Tensor:
    """x' after four hours, (..., 8), from x, mu, doses (mcg/kg/min, mL), (..., 2), ventilation and L eps."""
    vaso, fluid = torch.log1p(8 * doses[..., 0]), torch.log1p(doses[..., 1] / 100)
    low = torch.sigmoid((72 - latent[..., 5]) / 5)  # the extent to which treatment helps the pressure
    sufficient = 1 - low
    zeros = torch.zeros_like(low)
    effect = torch.stack(
        (
            0.15 * ventilated + 0.04 * fluid * sufficient,
            0.06 * ventilated - 0.012 * fluid,
            -0.006 * vaso + zeros,
            0.006 * vaso * sufficient,
            -1.0 * ventilated + zeros,
            4.5 * vaso * low - 1.2 * vaso * sufficient + 2.0 * fluid * low,
            -0.010 * fluid * low + 0.012 * vaso * sufficient,
            0.10 * fluid * low + 0.08 * vaso * low - 0.06 * vaso * sufficient,
        ),
        -1,
    )
    scale_change = vaso.unsqueeze(-1) * _row(0, 0, 0, 0, 0, 0.12, 0, 0.06)
    scale_change = scale_change - fluid.unsqueeze(-1) * _row(0.018, 0, 0, 0, 0, 0.03, 0, 0.048)
    return level + REVERSION * (latent - level) + effect + SPREAD * (1 + scale_change) * noise


@dataclass(frozen=True)
class Cohort:
    """n simulated patients with latent states; steps past a patient's horizon are simulated but not shown.

    Attributes:
        latent: x, (n, T, 8), with T the longest horizon, 20 by default.
        level: mu, (n, 8).
        noise: L eps of each step, (n, T - 1, 8).
        doses: Vasopressor and fluid, (n, T, 2).
        ventilated: (n, T).
        static: Gender (1 female), readmission, age in days, (n, 3).
        horizon: Number of steps shown, (n,) long.
        frailty: The severity that clinicians observe, (n,); `confounding` is the share that the table lacks.
        died: Within 48 hours of leaving, (n,) of 0 and 1.
    """

    latent: Tensor
    level: Tensor
    noise: Tensor
    doses: Tensor
    ventilated: Tensor
    static: Tensor
    horizon: Tensor
    frailty: Tensor
    died: Tensor

    def scores(self) -> Tensor:
        """SOFA of every step, (n, T)."""
        return sofa(emit(self.latent), self.doses[..., 0])

    def frame(self) -> pd.DataFrame:
        """The table as public pipelines have it: a row per step, AI-Clinician's column names and units."""
        patient, step = (torch.arange(self.latent.shape[1]) < self.horizon[:, None]).nonzero(as_tuple=True)
        columns = {"icustayid": patient, "bloc": step + 1}
        columns |= dict(zip(("gender", "re_admission", "age"), self.static[patient].T, strict=True))
        columns |= {"mechvent": self.ventilated[patient, step]}
        columns |= dict(zip(STATES, emit(self.latent[patient, step]).T, strict=True))
        columns |= {"SOFA": self.scores()[patient, step]}
        columns |= dict(zip(("max_dose_vaso", "input_4hourly"), self.doses[patient, step].T, strict=True))
        columns |= {"died_within_48h_of_out_time": self.died[patient]}
        return pd.DataFrame({name: column.numpy() for name, column in columns.items()})


def simulate(
    patients: int = 3000,
    seed: int = 0,
    min_length: int = 10,
    confounding: float = 0.0,
    longest: int = LONGEST,
) -> Cohort:
    """Draws a cohort; patient i is the same in any size, but not for another `longest`; 30 % stay so long."""
    if patients < 1 or not 2 <= min_length <= longest or not 0 <= confounding <= 1:
        expected = "expected patients >= 1, 2 <= min_length <= longest, 0 <= confounding <= 1"
        raise ValueError(f"{expected}; got {patients}, {min_length}, {longest}, {confounding}")
    streams = [numpy_generator(seed, patient) for patient in range(patients)]
    normal = torch.from_numpy(np.stack([stream.standard_normal((longest + 2, 12)) for stream in streams]))
    uniform = torch.from_numpy(np.stack([stream.random((longest + 1, 8)) for stream in streams]))
    chance, own_level = uniform[:, 0], normal[:, 0, :8] * SPREAD * OWN
    years = (64.4 + 16.9 * normal[:, 0, 9]).clamp(18, 91.4)
    readmitted = (chance[:, 1] < 0.33).double()
    static = torch.stack(((chance[:, 0] < 0.44).double(), readmitted, years * 365.25), -1)
    observed_severity = 0.8 * (years - 64.4) / 16.9 + 0.6 * (readmitted - 0.33) / 0.47
    frailty = (1 - confounding**2) ** 0.5 * observed_severity + confounding * normal[:, 0, 8]
    level = LEVEL + frailty[:, None] * FRAILTY + confounding * own_level
    deviation = normal[:, 1, :8] @ FACTOR.mT * SPREAD / (1 - REVERSION**2).sqrt()
    latent = level + (1 - confounding**2) ** 0.5 * own_level + deviation
    shorter_stays = min_length + (chance[:, 3] * (longest - min_length)).long()
    horizon = torch.where(chance[:, 2] < 0.3, longest, shorter_stays)
    policy = _Policy(frailty, chance[:, 4])
    noise = normal[:, 2:, :8] @ FACTOR.mT
    steps, doses, ventilated = [latent], [], []
    for time in range(longest):
        dose, vent = policy(emit(steps[-1]), normal[:, 2 + time, 8:10], uniform[:, 1 + time])
        doses.append(dose)
        ventilated.append(vent)
        if time < longest - 1:
            steps.append(move(steps[-1], level, dose, vent, noise[:, time]))
    states, treatment, vents = (torch.stack(parts, 1) for parts in (steps, doses, ventilated))
    last = sofa(emit(states), treatment[..., 0])[torch.arange(patients), horizon - 1]
    died = (chance[:, 5] < torch.sigmoid(-4.6 + 0.32 * last)).long()
    return Cohort(states, level, noise[:, : longest - 1], treatment, vents, static, horizon, frailty, died)


class _Policy:
    """The clinicians' treatment policy, step by step, for n patients in a batch."""

    def __init__(self, severity: Tensor, chance: Tensor) -> None:
        self.severity = severity
        self.vaso, self.fluid = torch.zeros(2, *severity.shape, dtype=torch.long)
        self.vent = (chance < torch.sigmoid(-0.62 + 0.9 * severity)).double()

    def __call__(self, shown: Tensor, jitter: Tensor, chance: Tensor) -> tuple[Tensor, Tensor]:
        """Observed states (n, 8), normal (n, 2), uniform (n, 8) -> doses (n, 2), ventilated (n,)."""
        low = torch.sigmoid((65 - shown[:, 5]) / 4)
        start = (0.022 + 0.71 * low + 0.11 * (self.severity > 0.8)).clamp(0, 0.95)
        vaso_changes = chance[:, 0] > torch.where(self.vaso > 0, 0.86, 0.80)
        new_level = torch.where(chance[:, 1] < start, 1 + (4 * chance[:, 2]).long(), 0)
        self.vaso = torch.where(vaso_changes, new_level, self.vaso)
        no_fluid = (0.235 - 0.17 * low).clamp_min(0.03)
        some_fluid = (1 + chance[:, 3] * (3.9 + 0.6 * low)).long().clamp_max(4)
        new_level = torch.where(chance[:, 5] < no_fluid, 0, some_fluid)
        self.fluid = torch.where(chance[:, 4] > 0.5, new_level, self.fluid)
        vent_chance = torch.sigmoid(-0.68 + 0.9 * self.severity + 0.8 * (shown[:, 4] < 9))
        self.vent = torch.where(chance[:, 6] > 0.93, (chance[:, 7] < vent_chance).double(), self.vent)
        dose_level = torch.stack((VASOPRESSOR[self.vaso], FLUID[self.fluid]), -1)
        return dose_level * torch.exp(0.25 * jitter), self.vent


def true_trajectory(cohort: Cohort, patient: int, doses: Tensor) -> Tensor:
    """Latent states (n, T, 8) under sequences of doses, (n, T, 2), with the patient's own noise."""
    states = [cohort.latent[patient, :1].expand(len(doses), -1)]
    for time in range(doses.shape[1] - 1):
        vent, noise = cohort.ventilated[patient, time], cohort.noise[patient, time]
        states.append(move(states[-1], cohort.level[patient], doses[:, time], vent, noise))
    return torch.stack(states, 1)


def true_scores(cohort: Cohort, patient: int, doses: Tensor) -> Tensor:
    """SOFA under other doses, (n, T, 2) -> (n, T)."""
    return sofa(emit(true_trajectory(cohort, patient, doses)), doses[..., 0])


def dose_options(episode: Episode, levels: DoseLevels) -> Tensor:
    """The doses of each action at each step, (T, A, 2): the observed dose, else the levels' medians."""
    doses = episode.columns(levels.names)
    actions = torch.arange(levels.actions)
    observed = levels.digitise(doses)
    table = levels.doses(actions).expand(len(doses), -1, -1)
    return torch.where((actions == observed[:, None]).unsqueeze(-1), doses.unsqueeze(1), table)


def recommended(episode: Episode, observed: Tensor, decision: Decision, levels: DoseLevels) -> Tensor:
    """The doses under a decision, (T, p): those observed, except at changed steps, which have the decision's
    `doses` or, without these, those of its action's levels; an action of the observed levels changes nothing.
    """
    altered = observed.clone()
    for step, action in decision.actions().items():
        if not 0 <= step < episode.horizon:
            steps = f"{episode.horizon} time steps"
            raise ValueError(f"{episode.identity}: action[{step}] is not one of its {steps}")
        doses = decision.doses.get(action_name(step))
        if doses is not None:
            altered[step] = torch.tensor(doses, dtype=altered.dtype)
        elif action != int(levels.digitise(observed[step])):
            altered[step] = levels.doses(torch.tensor(action)).to(altered)
    return altered


CAUTION = (
    "Simulated patients: for learning the tool and for measuring it, never for evidence about treatments."
)


class SepsisSimulated(World, SplitEpisodes):
    """Simulated sepsis patients, split by patient; ValueError if there is no such split, or no case is left.

    Args:
        patients: Number of patients.
        seed: Seed of the cohort and the splits.
        confounding: Share of the patients' severity that the table does not show, in [0, 1] (`simulate`).
        min_length: Shortest horizon.
        horizon: If given, cases are the first `horizon` steps of those patients who have as many.
        split: The split that the cases come from: "train", "validation" or "test".
        limit: Largest number of cases; None for all.
        changes: k of `optimum`.
        longest: Longest horizon that is simulated.
    """

    def __init__(
        self,
        patients: int = 3000,
        seed: int = 0,
        confounding: float = 0.0,
        min_length: int = 10,
        horizon: int | None = None,
        split: str = "test",
        limit: int | None = None,
        changes: int = 2,
        longest: int = LONGEST,
    ) -> None:
        check_split(split)
        self.seed, self.changes = seed, changes
        self.cohort: Cohort = simulate(patients, seed, min_length, confounding, longest)
        self.stays = read_stays(self.cohort.frame(), "simulated", max(2, min_length))
        super().__init__(self.stays.episodes, self.stays.patients, seed, split, horizon)
        self.chosen = self.chosen[:limit]
        if not self.chosen:
            fault = f"no patient of split {split!r} is left (horizon={horizon}, limit={limit})"
            raise ValueError(f"{fault}: relax these, or simulate more patients")

    def case(self, index: int) -> EpisodeCase:
        """Patient number `index` of the split, in retrospect."""
        return EpisodeCase(self.chosen[index])

    @cached_property
    def levels(self) -> DoseLevels:
        """The dose levels of the training patients."""
        levels = DoseLevels(DOSES)
        levels.solve(self.observations().columns(DOSES))
        return levels

    def score(self, case: DecisionContext, decision: Decision) -> Mapping[str, float]:
        """Minus the sum of the true SOFA scores, as treated (``true_observed``) and recommended
        (``true_value``), the relative difference (``true_improvement``), and these without points for a given
        vasopressor (``true_organs_observed`` ...).
        """
        episode = episode_of(case)
        doses = torch.stack(self.trajectories_of_doses(episode, decision))
        states = emit(true_trajectory(self.cohort, int(episode.identity), doses))
        scores = {}
        for name, vasopressor in (("true", doses[..., 0]), ("true_organs", torch.zeros_like(doses[..., 0]))):
            before, after = sofa(states, vasopressor).sum(-1).tolist()
            scores[f"{name}_observed"] = -before
            scores[f"{name}_value"] = -after
            scores[f"{name}_improvement"] = (before - after) / before if before else 0.0
        return scores

    def respond(self, case: DecisionContext, decision: Decision) -> Table:
        """The true transitions under the decision, the changed doses marked as altered."""
        episode = episode_of(case)
        dose_pair = self.trajectories_of_doses(episode, decision)
        observed, altered = (doses[: episode.horizon] for doses in dose_pair)
        changed = (altered != observed).any(-1, keepdim=True)
        doses = torch.where(changed, altered, episode.columns(DOSES))
        states = dict(zip(VARYING, self.true_states(episode, decision).T, strict=True))
        actions = dict(zip(DOSES, doses.T, strict=True))
        return what_followed(episode, states, actions, changed.expand(-1, len(DOSES)))

    def optimum(self, case: DecisionContext) -> float:
        """The best true value with at most `changes` changed actions, by enumeration."""
        return self.best(episode_of(case), self.changes, self.levels)

    def best(self, episode: Episode, changes: int, levels: DoseLevels) -> float:
        """The best true value with so many changed actions, of given levels."""
        patient, last = int(episode.identity), episode.horizon - 1
        doses, observed = dose_options(episode, levels), levels.digitise(episode.columns(DOSES))
        selectable = torch.arange(levels.actions)[levels.selectable]
        # The last action affects no state and is kept, as in the learnt problem.
        choices = [torch.cat([selectable, observed[step, None]]).unique() for step in range(last)]
        options = [doses[step, actions] for step, actions in enumerate(choices)]

        def value(actions: Tensor) -> Tensor:
            return -true_scores(self.cohort, patient, actions).sum(-1)

        treated = self.cohort.doses[patient, : episode.horizon]
        return best_changed(value, treated, options, min(changes, last))

    def true_states(self, episode: Episode, decision: Decision) -> Tensor:
        """The true trajectory under a decision, (T, 9): the eight states and SOFA, in clinical units."""
        patient, altered = int(episode.identity), self.trajectories_of_doses(episode, decision)[1]
        latent = true_trajectory(self.cohort, patient, altered.unsqueeze(0))[0]
        scores = true_scores(self.cohort, patient, altered.unsqueeze(0))[0]
        return torch.cat([emit(latent), scores.unsqueeze(-1)], -1)

    def trajectories_of_doses(self, episode: Episode, decision: Decision) -> tuple[Tensor, Tensor]:
        """The doses as given and as recommended, (T, 2) each (`recommended`)."""
        observed = self.cohort.doses[int(episode.identity), : episode.horizon]
        return observed, recommended(episode, observed, decision, self.levels)

    def card(self) -> Mapping[str, Any]:
        """Sizes, ranges, dose levels, splits, source and caution."""
        return data_card(self.stays, self.splits, f"simulated cohort, seed {self.seed}", CAUTION, self.levels)
