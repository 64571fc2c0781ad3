"""Machines in maintenance as a world: episodes of another field, with known counterfactual outcomes.

The simulated table goes through the same task, checks and episode builder as a table of one's own
(`problems.episodes.own_episodes`): ``prepare machines`` writes table and task as files, which read back to
the same observations. In contrast to a table, the true outcome of a recommended sequence is known, and so is
that of the best sequence.

Source: Tsirtsis and Gomez-Rodriguez (2023), Sec. 2 (the question); the machines are ours
(`problems.episodes.machine_dynamics`).
"""

import math
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from rehearsal_torch.data.decision import Decision, DecisionContext, action_name
from rehearsal_torch.data.episode import Episode
from rehearsal_torch.data.table import Table
from rehearsal_torch.problems.episodes.machine_dynamics import (
    ACTIONS,
    LOADS,
    SERVICES,
    STATES,
    TASK,
    recorded,
    simulate,
    true_returns,
    true_trajectory,
)
from rehearsal_torch.problems.episodes.own_episodes import EpisodeTable
from rehearsal_torch.problems.episodes.splits import best_changed, episode_of, what_followed
from rehearsal_torch.problems.problem import SIMULATED, World

MOST_SEQUENCES = 500_000
"""The largest number of sequences that are enumerated for an optimum."""


class Machines(EpisodeTable, World):
    """Simulated machines, split by machine.

    Args:
        machines: Number of machines.
        seed: Seed of the fleet and the splits.
        min_length: Shortest horizon, in weeks, at most 16.
        horizon: If given, cases are the first `horizon` weeks of those machines that have as many.
        split: The split that the cases come from: "train", "validation" or "test".
        keep_last: How many actions at the end of each episode stay as they were.
        changes: k of `optimum`.

    Raises:
        ValueError: if an argument is out of range, or no case is left.
    """

    def __init__(
        self,
        machines: int = 600,
        seed: int = 0,
        min_length: int = 10,
        horizon: int | None = None,
        split: str = "test",
        keep_last: int = 1,
        changes: int = 3,
    ) -> None:
        if changes < 0:
            raise ValueError(f"changes: expected at least 0; got {changes}")
        self.seed, self.changes = seed, changes
        self.fleet = simulate(machines, seed, min_length)
        super().__init__(
            self.fleet.frame(),
            TASK,
            seed=seed,
            min_length=min_length,
            horizon=horizon,
            split=split,
            keep_last=keep_last,
        )
        self._optima: dict[str, float] = {}

    def score(self, case: DecisionContext, decision: Decision) -> Mapping[str, float]:
        """The true outcome of the decision.

        Returns:
            ``true_observed`` and ``true_value``: the true return as operated and as recommended;
            ``true_improvement``: their relative difference; ``true_optimum``: the largest true return with at
            most `changes` changed actions, left out where there are too many sequences to enumerate.
        """
        episode = episode_of(case)
        observed, altered = self.actions(episode, decision)
        before, after = true_returns(self.fleet, _number(episode), torch.stack((observed, altered))).tolist()
        scores = {
            "true_observed": before,
            "true_value": after,
            "true_improvement": (after - before) / abs(before) if before else 0.0,
        }
        best = self.optimum(case)
        return scores if math.isnan(best) else scores | {"true_optimum": best}

    def respond(self, case: DecisionContext, decision: Decision) -> Table:
        """The true transitions under the decision, the changed actions marked as altered."""
        episode = episode_of(case)
        observed, altered = self.actions(episode, decision)
        states = recorded(true_trajectory(self.fleet, _number(episode), altered.unsqueeze(0))[0])
        return what_followed(
            episode,
            dict(zip(STATES, states.T, strict=True)),
            dict(zip(ACTIONS, altered.T, strict=True)),
            altered != observed,
        )

    def optimum(self, case: DecisionContext) -> float:
        """The largest true return with at most `changes` changed actions, by enumeration; NaN if that takes
        more than `MOST_SEQUENCES` sequences.
        """
        episode = episode_of(case)
        if episode.identity not in self._optima:
            self._optima[episode.identity] = self._best(episode)
        return self._optima[episode.identity]

    def actions(self, episode: Episode, decision: Decision) -> tuple[Tensor, Tensor]:
        """The actions as recorded and as recommended, (T, 2) long each.

        A changed step takes the levels of the decision's `doses` if it has any, else those of its action
        number, service * 3 + load.

        Raises:
            ValueError: if the decision changes a step that the episode does not have, or to no level.
        """
        observed = self.fleet.actions[_number(episode), : episode.horizon]
        altered = observed.clone()
        for step, action in decision.actions().items():
            if not 0 <= step < episode.horizon:
                raise ValueError(
                    f"{episode.identity}: action[{step}] is not one of its {episode.horizon} weeks"
                )
            levels = decision.doses.get(action_name(step)) or divmod(action, self.roles.count)
            service, load = (round(float(level)) for level in levels)
            if not 0 <= service < len(SERVICES) or not 0 <= load < len(LOADS):
                raise ValueError(
                    f"{episode.identity}: action[{step}] is service {service} and load {load}; expected "
                    f"levels 0 to {len(SERVICES) - 1} and 0 to {len(LOADS) - 1}"
                )
            altered[step] = torch.tensor([service, load])
        return observed, altered

    def card(self) -> Mapping[str, Any]:
        """The card of a table, with the source and the caution of a simulation."""
        return dict(super().card()) | {
            "source": f"simulated machines, seed {self.seed}",
            "caution": SIMULATED,
        }

    def _best(self, episode: Episode) -> float:
        """The optimum of an episode."""
        machine = _number(episode)
        given = self.fleet.actions[machine, : episode.horizon]
        options = torch.cartesian_prod(torch.arange(len(SERVICES)), torch.arange(len(LOADS)))
        # Without `keep_last`, the last action is open too: it has a cost.
        steps = range(max(episode.horizon - self.keep_last, 0))
        changes = min(self.changes, len(steps))
        sequences = math.comb(len(steps), changes) * len(options) ** changes
        if sequences > MOST_SEQUENCES:
            return math.nan
        return best_changed(
            lambda actions: true_returns(self.fleet, machine, actions), given, [options] * len(steps), changes
        )


def _number(episode: Episode) -> int:
    """The machine's place in the fleet."""
    return int(episode.identity) - 1
