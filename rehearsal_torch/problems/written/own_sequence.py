"""A problem file that asks for a sequence: its units, split by unit, and what was done in each step.

Source: `problems.written.sequence_file` (the file); `problems.episodes.own_episodes` (the problem).
"""

from collections.abc import Sequence
from pathlib import Path

from rehearsal_torch.problems.episodes.own_episodes import EpisodeTable
from rehearsal_torch.problems.written.sequence_file import SequenceProblem, sequence_problem


class OwnSequence(EpisodeTable):
    """A problem file, as a table of episodes.

    Args:
        path: The problem file, or one that was read.
        seed: Seed of the split.
        min_length: Shortest episode, in steps.
        max_length: Longest episode; later steps are left out. None for no limit.
        horizon: If given, cases are the first `horizon` steps of those episodes that are long enough.
        split: The split that the cases come from: "train", "validation" or "test".
        keep_last: How many actions at the end of each episode stay as they were.

    Raises:
        ProblemError: if the file cannot be used; all faults are listed.
        TableError: if its table cannot be used; all faults are listed.
        ValueError: if no case is left, or an argument is out of range.
    """

    def __init__(
        self,
        path: str | Path | SequenceProblem | None,
        seed: int = 0,
        min_length: int = 2,
        max_length: int | None = None,
        horizon: int | None = None,
        split: str = "test",
        keep_last: int = 1,
    ) -> None:
        self.problem = path if isinstance(path, SequenceProblem) else sequence_problem(path)
        super().__init__(
            self.problem.rows, self.problem.roles, seed, min_length, max_length, horizon, split, keep_last
        )

    def method_named(self) -> str | None:
        """The file's ``method``."""
        return self.problem.method

    def notes(self) -> Sequence[str]:
        """What the reader of the file decided by itself."""
        return self.problem.notes
