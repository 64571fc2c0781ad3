"""One episode as a problem: a single case without a score."""

from collections.abc import Mapping
from typing import Any

from rehearsal_torch.data.decision import Decision, DecisionContext, EpisodeCase
from rehearsal_torch.data.episode import transitions
from rehearsal_torch.data.question import Columns, Question
from rehearsal_torch.data.table import Table
from rehearsal_torch.problems.problem import Problem


class OneEpisode(Problem):
    """A look-back problem with one episode.

    Args:
        episode_case: The episode, and the time steps whose action is fixed.
        records: The transitions to which the surrogate was fitted; None if they are unknown.
    """

    kind = "look_back"

    def __init__(self, episode_case: EpisodeCase, records: Table | None = None) -> None:
        self.episode_case, self.records = episode_case, records

    def observations(self) -> Table:
        """The records; without them, a table with the episode's columns and no rows: one episode says nothing
        of the others.
        """
        if self.records is not None:
            return self.records
        own = transitions([self.episode_case.episode])
        return Table(own.names, own.values[:0], own.altered[:0])

    def held_out(self) -> Table:
        """The episode's own transitions, (T - 1) rows."""
        return transitions([self.episode_case.episode])

    def question(self) -> Question:
        """The episode's columns."""
        return Columns(self.episode_case.episode.names)

    def count(self) -> int:
        """1."""
        return 1

    def case(self, index: int) -> DecisionContext:
        """The episode.

        Raises:
            IndexError: for an index other than 0.
        """
        if index:
            raise IndexError(f"expected index 0, the only episode; got {index}")
        return self.episode_case

    def score(self, case: DecisionContext, decision: Decision) -> Mapping[str, float]:  # noqa: ARG002
        """Empty: the true counterfactual outcome is unknown."""
        return {}

    def card(self) -> Mapping[str, Any]:
        """The episode's identity, columns and number of time steps."""
        episode = self.episode_case.episode
        return {"episode": episode.identity, "columns": list(episode.names), "time_steps": episode.horizon}
