"""What to run next, as files of a run of trials: the initial design, and a table to be filled in.

    start_design.csv    the actions of the initial design that are still to be run
    next.csv            the user's table, with a row for each experiment to run, in which all that is measured
                        is empty; filled in, it is the table of the next decision

Rows that stay empty wait for their result (`problems.causal.waiting_rows`).
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from rehearsal_torch.run_folder import RunFolder

if TYPE_CHECKING:
    from rehearsal_torch.problems.problem import Problem

NEXT = "next.csv"


def write_initial_design(problem: "Problem", folder: RunFolder, seed: int) -> str:
    """Prints the experiments of the initial design that are still to be run, and writes them to
    start_design.csv and next.csv.

    Args:
        seed: Scrambles the design.

    Returns:
        A sentence for the run's status; empty if there are enough experiments, or the problem is of another
        kind.
    """
    design = problem.to_begin(seed)
    if design is None:
        return ""
    past, waiting = problem.observations(), problem.under_way()
    source = problem.card()["source"]
    nodes = ", ".join(name for name in past.names if name not in design.names)
    have = f"{len(past)} experiment{'' if len(past) == 1 else 's'}"
    if waiting is not None:
        have += f", and {len(waiting.in_states('pending'))} that wait for a result"
    lacking = f"There is no model yet: {source} has {have}."
    if not len(design):
        print(f"{lacking} Fill in {nodes} there, and run the same command again.\nRun folder: {folder.path}")
        return f"{have}, too few for a model; nothing else to run first"
    rows = [",".join(f"{value:.10g}" for value in row) for row in design.values.tolist()]
    text = "\n".join([",".join(design.names), *rows]) + "\n"
    folder.write("start_design.csv", text)
    settings = [dict(zip(design.names, row, strict=True)) for row in design.values.tolist()]
    blank = write_next(problem, folder, settings)
    filled = f"{blank} is this table with these rows, to be filled in.\n" if blank else ""
    then = (
        f"Run these, add a row for each with the measured values of {nodes}, and run the same command again:"
    )
    print(f"{lacking} {then}\n{text}{filled}Run folder: {folder.path}", flush=True)
    return f"{have}, too few for a model; {len(design)} to run first"


def write_proposals(problem: "Problem", folder: RunFolder) -> str:
    """Writes the proposed experiments of a run to next.csv.

    Args:
        folder: The run's folder, with its decisions.

    Returns:
        The name of the file; empty if nothing is proposed, or the problem is no table of experiments.
    """
    settings = [one["alteration"] for one in folder.decisions() if one.get("alteration")]
    return write_next(problem, folder, settings) if settings else ""


def write_next(problem: "Problem", folder: RunFolder, settings: Sequence[Mapping[str, float]]) -> str:
    """Writes the table with a row for each setting, which waits for its result.

    Args:
        settings: What to set, action to value.

    Returns:
        The name of the file; empty if the problem is no table of experiments.
    """
    table = problem.with_proposals(settings)
    if table is None:
        return ""
    folder.write(NEXT, table)
    return str(folder.path / NEXT)
