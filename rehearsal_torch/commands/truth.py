"""What the truth says of a run's decisions, where the data set knows the truth: truth.csv in the run folder."""

from dataclasses import asdict
from typing import TYPE_CHECKING

from rehearsal_torch.commands.closing import written
from rehearsal_torch.history import RunFolder
from rehearsal_torch.round_line import decision_of

if TYPE_CHECKING:
    from rehearsal_torch.datasets.problem import Problem
    from rehearsal_torch.surrogates.surrogate import Surrogate


def compared(folder: RunFolder, problem: "Problem", surrogate: "Surrogate") -> int:
    """Compares decisions and learnt courses with the truth, patient by patient; the noise that was recovered of a causal world, node by node.

    Args:
        folder: Whose decisions.
        problem: Who may know the truth.
        surrogate: What was learnt.

    Returns:
        How many rows were written; 0 where nothing is known.
    """
    from rehearsal_torch.data.situation import Hindsight
    from rehearsal_torch.datasets.causal_world import CausalWorld
    from rehearsal_torch.datasets.recovery_panel import recovery_rows
    from rehearsal_torch.datasets.sepsis_simulated import SepsisSimulated
    from rehearsal_torch.datasets.truth_panel import truth_rows
    from rehearsal_torch.surrogates.causal_model import CausalModel
    from rehearsal_torch.surrogates.transition import TransitionModel

    if isinstance(problem, CausalWorld) and isinstance(surrogate, CausalModel):
        recovered = [asdict(row) for row in recovery_rows(problem, surrogate)]
        if recovered:
            folder.write("truth.csv", written(recovered))
        return len(recovered)
    if not isinstance(problem, SepsisSimulated) or not isinstance(surrogate, TransitionModel):
        return 0
    decisions, changes = [], 0
    for line in folder.decisions():
        situation = problem.situation(line["index"])
        assert isinstance(situation, Hindsight)
        decisions.append((situation, decision_of(line)))
        changes = max(changes, int(line["trajectory"]["changes"]))
    rows = [asdict(row) for row in truth_rows(surrogate, problem, decisions, changes)]
    if rows:
        folder.write("truth.csv", written(rows))
    return len(rows)
