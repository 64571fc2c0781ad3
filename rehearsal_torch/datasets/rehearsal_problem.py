"""Rehearsal problems: observations, contexts, and a task that says who plays which part.

A simulator is one (`RehearsalWorld`), a user's own table another: methods ask for the task alone.

Source: Du et al. (2026), Sec. 2.1 and 3.1.
"""

from abc import ABC

from rehearsal_torch.data.question import Question
from rehearsal_torch.data.rehearsal_task import RehearsalTask
from rehearsal_torch.datasets.problem import Kind, Problem
from rehearsal_torch.graphs.rehearsal import RehearsalGraph


class RehearsalProblem(Problem, ABC):
    """A problem in foresight.

    Attributes:
        task: Who plays which part.
        hypotheses: Graphs that a method is told of where it is not told the true one; empty where nothing is left open.
    """

    kind: Kind = "rehearse"
    task: RehearsalTask
    hypotheses: tuple[RehearsalGraph, ...] = ()

    def question(self) -> Question:
        """The task."""
        return self.task
