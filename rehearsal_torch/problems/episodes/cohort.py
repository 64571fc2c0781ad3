"""The simulated sepsis cohort as a world: true counterfactual outcomes are known.

Simulated patients go through the same validation and the same episode builder as a real table. In contrast to
real data, the true outcome of a recommended sequence of actions is known, and so is that of the best
sequence.

Source: Tsirtsis and Gomez-Rodriguez (2023), Sec. 5 (the task); the cohort is that of
`problems.episodes.simulator`.
"""

from collections.abc import Mapping
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from rehearsal_torch.data.decision import Decision, DecisionContext, EpisodeCase, action_name
from rehearsal_torch.data.dose_levels import DoseLevels
from rehearsal_torch.data.episode import Episode, transitions
from rehearsal_torch.data.table import Table
from rehearsal_torch.problems.episodes.simulator import (
    LONGEST,
    STATES,
    Cohort,
    dose_options,
    emit,
    simulate,
    sofa,
    true_scores,
    true_trajectory,
)
from rehearsal_torch.problems.episodes.splits import (
    SplitEpisodes,
    best_changed,
    check_split,
    episode_of,
    what_followed,
)
from rehearsal_torch.problems.episodes.stays import DOSES, data_card, read_stays
from rehearsal_torch.problems.problem import World

CAUTION = (
    "Simulated patients: for learning the tool and for measuring it, never for evidence about treatments."
)


class SepsisSimulated(World, SplitEpisodes):
    """Simulated sepsis patients, split by patient.

    Args:
        patients: Number of patients.
        seed: Seed of the cohort and the splits.
        confounding: Share of the patients' severity that the table does not show, in [0, 1]
            (`simulator.simulate`).
        min_length: Shortest horizon.
        horizon: If given, cases are the first `horizon` steps of those patients who have as many.
        split: The split that the cases come from: "train", "validation" or "test".
        limit: Largest number of cases; None for all.
        action_lag: Uses the dose of `action_lag` steps earlier as a step's action, for tables whose doses
            act, or are recorded, late. It does not remedy SOFA's scoring the dose of its own step: in the
            simulated cohort it makes more patients worse off (docs/sharp_bits.md).
        changes: k of `optimum`.
        longest: Longest horizon that is simulated.

    Raises:
        ValueError: if there is no such split, or no case is left.
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
        action_lag: int = 0,
        changes: int = 2,
        longest: int = LONGEST,
    ) -> None:
        check_split(split)
        self.seed, self.action_lag, self.changes = seed, action_lag, changes
        self.cohort: Cohort = simulate(patients, seed, min_length, confounding, longest)
        self.stays = read_stays(
            self.cohort.frame(),
            source="simulated",
            min_length=max(2, min_length - action_lag),
            action_lag=action_lag,
        )
        super().__init__(self.stays.episodes, self.stays.patients, seed, split, horizon)
        self.chosen = self.chosen[:limit]
        if not self.chosen:
            raise ValueError(
                f"no patient of split {split!r} is left (horizon={horizon}, limit={limit}): relax these, or "
                "simulate more patients"
            )

    def tested(self) -> Table:
        """Transitions of the test patients."""
        return transitions(self.episodes("test"))

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
        """The true outcome of the decision.

        Returns:
            ``true_observed`` and ``true_value``: minus the sum of the true SOFA scores, as treated and as
            recommended; ``true_improvement``: the relative difference. The same without the points that a
            vasopressor scores because it is given: ``true_organs_observed``, ``true_organs_value`` and
            ``true_organs_improvement``.
        """
        episode = episode_of(case)
        doses = torch.stack(self.trajectories_of_doses(episode, decision))
        states = emit(true_trajectory(self.cohort, int(episode.identity), doses))
        scores = {}
        for name, vasopressor in (("true", doses[..., 0]), ("true_organs", torch.zeros_like(doses[..., 0]))):
            before, after = sofa(states, vasopressor)[:, self.action_lag :].sum(-1).tolist()
            scores[f"{name}_observed"] = -before
            scores[f"{name}_value"] = -after
            scores[f"{name}_improvement"] = (before - after) / before if before else 0.0
        return scores

    def respond(self, case: DecisionContext, decision: Decision) -> Table:
        """The true transitions under the decision, the changed doses marked as altered."""
        episode = episode_of(case)
        observed, altered = (
            doses[: episode.horizon] for doses in self.trajectories_of_doses(episode, decision)
        )
        changed = (altered != observed).any(-1, keepdim=True)
        doses = torch.where(changed, altered, episode.columns(DOSES))
        return what_followed(
            episode,
            dict(zip((*STATES, "SOFA"), self.true_states(episode, decision).T, strict=True)),
            dict(zip(DOSES, doses.T, strict=True)),
            changed.expand(-1, len(DOSES)),
        )

    def optimum(self, case: DecisionContext) -> float:
        """The best true value with at most `changes` changed actions, by enumeration.

        Raises:
            ValueError: if doses are lagged, where actions and steps no longer correspond.
        """
        if self.action_lag:
            raise ValueError("the true optimum is known for action_lag=0 only")
        episode = episode_of(case)
        patient = int(episode.identity)
        doses = dose_options(episode, self.levels)
        selectable = torch.arange(self.levels.actions)[self.levels.selectable]
        observed = self.levels.digitise(episode.columns(DOSES))
        # The last action affects no state and is kept, as in the learnt problem.
        last = episode.horizon - 1
        options = [
            doses[step, torch.cat([selectable, observed[step, None]]).unique()] for step in range(last)
        ]
        return best_changed(
            lambda actions: -true_scores(self.cohort, patient, actions).sum(-1),
            self.cohort.doses[patient, : episode.horizon],
            options,
            min(self.changes, last),
        )

    def true_states(self, episode: Episode, decision: Decision) -> Tensor:
        """The true trajectory under a decision, (T, 9): the eight states and SOFA, in clinical units."""
        patient, altered = int(episode.identity), self.trajectories_of_doses(episode, decision)[1]
        latent = true_trajectory(self.cohort, patient, altered.unsqueeze(0))[0]
        scores = true_scores(self.cohort, patient, altered.unsqueeze(0))[0]
        return torch.cat([emit(latent), scores.unsqueeze(-1)], -1)[self.action_lag :]

    def trajectories_of_doses(self, episode: Episode, decision: Decision) -> tuple[Tensor, Tensor]:
        """The doses as given and as recommended, (T + lag, 2) each; unchanged steps keep the dose that was
        given.

        A changed step takes the doses of the decision if it has any, else the dose level of its action number
        in this data set; the level that was given leaves the dose unchanged.

        Raises:
            ValueError: if the decision changes a time step that the episode does not have.
        """
        observed = self.cohort.doses[int(episode.identity), : episode.horizon + self.action_lag]
        altered = observed.clone()
        for step, action in decision.actions().items():
            if not 0 <= step < episode.horizon:
                raise ValueError(
                    f"{episode.identity}: action[{step}] is not one of its {episode.horizon} time steps"
                )
            doses = decision.doses.get(action_name(step))
            if doses is not None:
                altered[step] = torch.tensor(doses, dtype=altered.dtype)
            elif action != int(self.levels.digitise(observed[step])):
                altered[step] = self.levels.doses(torch.tensor(action)).to(altered)
        return observed, altered

    def card(self) -> Mapping[str, Any]:
        """Sizes, ranges, dose levels, splits, source and caution."""
        return data_card(
            self.stays,
            self.splits,
            source=f"simulated cohort, seed {self.seed}",
            caution=CAUTION,
            levels=self.levels,
        )
