"""Faults and warnings of a problem file, each with its line."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from rehearsal_torch.data.task_file import TaskError
from rehearsal_torch.files.schema import path_of
from rehearsal_torch.files.yaml_lines import line_at


class ProblemError(TaskError):
    """A problem file that cannot be used; its message lists every fault."""


def key(*parts: str) -> str:
    """The dotted path of a key, as messages write it."""
    return path_of(parts)


@dataclass
class Findings:
    """What was found in a problem file.

    Attributes:
        source: The file.
        lines: Dotted path to line.
        faults: What makes it unusable.
        warnings: What its author should look at.
    """

    source: str
    lines: dict[str, int] = field(default_factory=dict)
    faults: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    def fault(self, path: str, words: str) -> None:
        """A fault at a key; once."""
        told = self.placed(path, words)
        if told not in self.faults:
            self.faults.append(told)

    def warn(self, path: str, words: str) -> None:
        """A warning at a key; once."""
        told = self.placed(path, words)
        if told not in self.warnings:
            self.warnings.append(told)

    def placed(self, path: str, words: str) -> str:
        """Words with the line and the key that they are about."""
        line = line_at(self.lines, path)
        where = "" if line is None else f"line {line}, "
        return f"{where}{path}: {words}" if path else words

    def of_reader(self, faults: Sequence[str]) -> None:
        """Faults of the schema's reader, which begin with their path."""
        for each in faults:
            path, colon, words = each.partition(": ")
            self.fault(path if colon else "", words if colon else each)

    def settle(self) -> None:
        """Ends with the faults, if there are any.

        Raises:
            ProblemError: with all faults.
        """
        if self.faults:
            raise ProblemError(self.source, self.faults)
