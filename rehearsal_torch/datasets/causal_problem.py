"""Problems of causal Bayesian optimisation: where experiments come from."""

from rehearsal_torch.data.causal_task import CausalTask
from rehearsal_torch.data.question import Question
from rehearsal_torch.datasets.problem import Kind, Problem


class CausalProblem(Problem):
    """A problem with a causal task; situation t is the question what to try in round t.

    Attributes:
        task: Who follows from whom, what may be set, what is wanted.
    """

    kind: Kind = "optimise"
    task: CausalTask

    def question(self) -> Question:
        """The task."""
        return self.task
