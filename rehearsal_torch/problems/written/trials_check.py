"""What a problem file that asks for trials holds, and warnings about what its author may not mean.

no model yet         fewer than five experiments
outside              an experiment whose action may not be set any more
never tried          an action that had one value in all experiments
not used             a variable from which no path leads to the reward
"""

from rehearsal_torch.data.causal_task import MIN_ROWS
from rehearsal_torch.data.problem_file.findings import key
from rehearsal_torch.problems.causal.waiting_rows import waiting
from rehearsal_torch.problems.written.trials_file import OwnTrials
from rehearsal_torch.spaces.box import levels_text

SHOWN = 3


def counted(problem: OwnTrials) -> str:
    """How many experiments there are, and the best so far; one sentence."""
    rows = len(problem.past)
    told = f"{rows} experiment{'' if rows == 1 else 's'} of {problem.source}"
    if not rows:
        return told
    card = problem.card()
    at = ", ".join(f"{name} {value:.6g}" for name, value in card["at"].items())
    return f"{told}; the best reward so far is {card['best reward so far']:.6g}, at {at}"


def variable_rows(problem: OwnTrials) -> list[tuple[str, ...]]:
    """A row for each variable, the header first: variable, role, unit, smallest and largest value, and what
    an action may be set to.
    """
    rows: list[tuple[str, ...]] = [("variable", "role", "unit", "from", "to", "may be set to")]
    task = problem.task
    for name, about in problem.problem.variables.items():
        ends = ["", ""]
        if name in problem.past.names and len(problem.past):
            column = problem.past.columns((name,))
            ends = [f"{float(end):.6g}" for end in (column.min(), column.max())]
        settable = ""
        if name in task.actions:
            lower, upper = task.box.bounds()[name]
            levels = task.box.levels.get(name)
            settable = f"{lower:g} to {upper:g}" if levels is None else levels_text(levels)
        rows.append((name, about.role, about.unit or "", *ends, settable))
    return rows


def warned(problem: OwnTrials) -> list[str]:
    """The warnings, those of the file itself first; each with its line."""
    found, task = problem.problem.found, problem.task
    rows = len(problem.past)
    if rows < MIN_ROWS:
        found.warn(
            "data", f"fewer than {MIN_ROWS} experiments: there is no model yet, and the first ones are listed"
        )
    outside = _outside(problem)
    for sentence in outside[:SHOWN]:
        found.warn("data", f"{sentence}: kept to learn from, and not proposed")
    if len(outside) > SHOWN:
        found.warn("data", f"{len(outside) - SHOWN} more experiments lie outside what may be set")
    for name in task.actions if rows >= MIN_ROWS else ():
        column = problem.past.columns((name,))[:, 0]
        if bool((column == column[0]).all()):
            found.warn(
                key("variables", name),
                f"it was {float(column[0]):g} in all experiments, so that nothing is known of its effect yet",
            )
    for name, about in problem.problem.variables.items():
        if name in task.graph.names and name not in (*task.actions, *task.nodes):
            found.warn(
                key("variables", name),
                f"no directed path leads from this {about.role} to the reward, and so it is not used",
            )
    return found.warnings


def _outside(problem: OwnTrials) -> list[str]:
    """A sentence for each experiment whose action may not be set any more, with its line."""
    task, rows = problem.task, problem.problem.rows.frame
    waits = waiting(rows, task)
    lines = [*rows.index[~waits], *rows.index[waits]]
    told = []
    for line, row in zip(lines, [*problem.past.columns(task.actions), *problem.waiting], strict=True):
        try:
            task.check_action(row, f"{problem.source}, line {int(line) + 2}")
        except ValueError as error:
            told.append(str(error))
    return told
