"""The first words of a campaign: while experiments are too few for a model, what to run first."""

from typing import TYPE_CHECKING

from rehearsal_torch.history import RunFolder

if TYPE_CHECKING:
    from rehearsal_torch.datasets.problem import Problem


def begun_with(problem: "Problem", folder: RunFolder, seed: int) -> str:
    """Prints the experiments of the start design that are still to be run, and keeps them as start_design.csv.

    Args:
        problem: Where experiments come from.
        folder: The run's folder.
        seed: Scrambles the design.

    Returns:
        A sentence for the run's status; empty where there are experiments enough to decide, or the problem is another one.
    """
    from rehearsal_torch.datasets.experiment_table import ExperimentTable

    design = problem.to_begin(seed) if isinstance(problem, ExperimentTable) else None
    if design is None or not isinstance(problem, ExperimentTable):
        return ""
    rows = [",".join(f"{value:.10g}" for value in row) for row in design.values.tolist()]
    text = "\n".join([",".join(design.names), *rows]) + "\n"
    folder.write("start_design.csv", text)
    have = f"{len(problem.past)} experiment{'' if len(problem.past) == 1 else 's'}"
    then = f"Run these, add a row for each with what came out ({', '.join(problem.task.nodes)}), and type the same again:"
    print(f"There is no model yet: {problem.source} has {have}. {then}\n{text}Run folder: {folder.path}", flush=True)
    return f"{have}, too few for a model; {len(design)} to run first"
