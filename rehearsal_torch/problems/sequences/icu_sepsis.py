"""ICU-Sepsis: a public model of sepsis patients, as episodes with known counterfactuals.

The package `icu-sepsis` has 713 states, clusters of MIMIC-III patients, and two ends, death and survival; 25
actions, five levels of fluid by five of vasopressor; p(j | s, a) of each next state, and the clinicians'
policy. Counterfactuals, which it does not define, are here those of the Gumbel-max model,

    s' = argmax_j  log p(j | s, a) + g_j,        g_j independent standard Gumbel numbers,

whose g are drawn by seed and patient, so that the truth is known. States are numbered by their mean SOFA
score, survival first, of 0 points, and death last, of 24. An episode ends with either, or after twelve steps;
what would have come later does not count. The reward of a step is minus its points.

Source: Choudhary, Gupta and Thomas (2024), ICU-Sepsis (MIT licence), of which only `dynamics.npz` is read;
Oberst and Sontag (2019), Sec. 3.
"""

from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from zipfile import BadZipFile, ZipFile

import numpy as np
import torch
from torch import Tensor

from rehearsal_torch.data.decision import Decision, DecisionContext, EpisodeCase
from rehearsal_torch.data.dose_levels import DoseLevels
from rehearsal_torch.data.episode import Episode
from rehearsal_torch.data.size_limits import NUMBERS, bounded
from rehearsal_torch.data.tables.reader import TableError
from rehearsal_torch.problems.problem import SIMULATED
from rehearsal_torch.problems.sequences.sepsis_cohort import recommended
from rehearsal_torch.problems.sequences.unit_splits import SplitEpisodes, check_split, episode_of
from rehearsal_torch.seeding import numpy_generator

PARTS, DRUGS = ("tx_mat", "d_0", "expert_policy", "sofa_scores"), ("fluid", "vasopressor")
MOST_BYTES, DEATH, LEVELS, SHORTEST, LONGEST = 2**29, 24.0, 5, 4, 12


def dynamics(path: str | None) -> list[np.ndarray]:
    """The `PARTS` of a file, by default of the installed package; TableError if it is another file."""
    package = find_spec("icu_sepsis") if path is None else None
    if package is not None and package.origin is not None:
        path = str(Path(package.origin).parent / "envs/assets/dynamics.npz")
    if path is None or not Path(path).is_file():
        remedy = "pip install --no-deps icu-sepsis, or set path= to its dynamics.npz"
        raise TableError(f"there is no {path or 'package icu-sepsis'}: {remedy}")
    fault = f"{path}: expected the arrays {', '.join(PARTS)} of icu-sepsis, below {MOST_BYTES:,} bytes"
    try:
        with ZipFile(path) as file:
            if sum(member.file_size for member in file.infolist()) > MOST_BYTES:
                raise ValueError("it is larger")
        with np.load(path, allow_pickle=False) as arrays:
            parts = [np.asarray(arrays[name], dtype=np.float64) for name in PARTS]
    except (BadZipFile, KeyError, OSError, ValueError) as error:
        raise TableError(f"{fault}; got another file: {error}") from None
    count, shapes = parts[1].size, [part.shape for part in parts]
    if count < 5 or shapes != [(count, LEVELS**2, count), (count,), (count, LEVELS**2), (count,)]:
        raise TableError(f"{fault}, of S states and {LEVELS**2} actions; got arrays of {shapes}")
    sums = (parts[0].sum(-1), parts[1].sum(), parts[2][:-3].sum(-1))
    if min(part.min() for part in parts) < 0 or max(np.abs(total - 1).max() for total in sums) > 1e-6:
        raise TableError(f"{fault}, with probabilities that add up to 1; some do not")
    return parts


class IcuSepsis(SplitEpisodes):
    """Patients of ICU-Sepsis, split by patient; those with fewer than four states are left out.

    Args:
        path: The file ``dynamics.npz``, None for that of the installed package; TableError for another file.
        count: Number of patients that are drawn.
        changes: k of `optimum`.
    """

    def __init__(
        self, path: str | None = None, count: int = 5000, seed: int = 0, split: str = "test", changes: int = 2
    ) -> None:
        check_split(split)
        bounded("count", count, NUMBERS)
        bounded("changes", changes, NUMBERS, 0)
        self.seed, self.changes, (rows, first, policy, scores) = seed, changes, dynamics(path)
        live = len(first) - 3  # death, survival and the state that follows both are the last
        points = np.concatenate([scores[:live], [DEATH, 0.0]])
        order = np.argsort(points, kind="stable")
        self.points, self._ends = torch.from_numpy(points[order]), order >= live
        rows = rows[order][:, :, order]
        rows[self._ends] = np.eye(live + 2)[self._ends, None]
        with np.errstate(divide="ignore"):
            self.logits = np.log(rows, out=rows)
        self._first, self._policy = first[order].cumsum(), policy[order].cumsum(-1)
        self.levels = DoseLevels(DRUGS, LEVELS).fix([list(range(LEVELS))] * 2)
        units = [unit for unit in map(self._simulate, range(count)) if unit.horizon >= SHORTEST]
        super().__init__(units, [unit.identity for unit in units], seed, split, None)

    def case(self, index: int) -> EpisodeCase:
        """Patient number `index` of the split, in retrospect."""
        return EpisodeCase(self.chosen[index])

    def noise(self, unit: int) -> np.ndarray:
        """The g of each step of a patient, (11, S)."""
        return numpy_generator(self.seed, unit, 1).gumbel(size=(LONGEST - 1, len(self.points)))

    def followed(self, episode: Episode, actions: Tensor) -> Tensor:
        """The numbers of the states under a sequence of actions, (T,) long -> (T,) long."""
        states = [int(episode.columns(["state"])[0])]
        for action, noise in zip(actions[:-1].tolist(), self.noise(int(episode.identity)), strict=False):
            states.append(int((self.logits[states[-1], action] + noise).argmax()))
        return torch.tensor(states)

    def score(self, case: DecisionContext, decision: Decision) -> Mapping[str, float]:
        """Minus the true points, as treated, as recommended and of the best changes, and what is gained."""
        episode = episode_of(case)
        altered = recommended(episode, episode.columns(DRUGS), decision, self.levels)
        before = -float(episode.columns(["SOFA"]).sum())
        after = -float(self.points[self.followed(episode, self.levels.digitise(altered))].sum())
        truth = {"true_value": after, "true_gain": after - before, "true_optimum": self.optimum(case)}
        return {"true_observed": before, **truth}

    def optimum(self, case: DecisionContext) -> float:
        """The largest true return with at most `changes` changed actions, by dynamic programming."""
        episode = episode_of(case)
        noise, reward = self.noise(int(episode.identity)), -self.points.numpy()
        actions = self.levels.digitise(episode.columns(DRUGS)).tolist()
        future = np.zeros((self.changes + 1, len(reward)))
        for step in range(episode.horizon - 2, -1, -1):
            values = (reward + future)[:, (self.logits + noise[step]).argmax(-1)]
            unchanged = values[:, :, actions[step]]
            future = np.maximum(unchanged, np.concatenate([unchanged[:1], values[:-1].max(-1)]))
        return float((reward + future)[-1, int(episode.columns(["state"])[0])])

    def card(self) -> Mapping[str, Any]:
        """Sizes, splits, source and caution."""
        splits = {name: {"patients": len(places)} for name, places in self.splits.items()}
        return {"source": f"ICU-Sepsis, seed {self.seed}", "caution": SIMULATED, "splits": splits}

    def _simulate(self, unit: int) -> Episode:
        """The episode of a patient; nothing is done after its end."""
        chance, noise = numpy_generator(self.seed, unit).random(LONGEST + 1), self.noise(unit)
        states, actions = [int(np.searchsorted(self._first, chance[0] * self._first[-1]))], []
        for step in range(LONGEST):
            policy = self._policy[states[-1]]
            actions.append(int(np.searchsorted(policy, chance[step + 1] * policy[-1])))
            if len(actions) == LONGEST or (self._ends[states[-1]] and step):
                break
            states.append(int((self.logits[states[-1], actions[-1]] + noise[step]).argmax()))
        path, doses = torch.tensor(states), self.levels.doses(torch.tensor(actions))
        values = torch.cat([torch.stack((path.double(), self.points[path]), -1), doses], -1)
        return Episode(str(unit), ("state", "SOFA", *DRUGS), values)
