"""A first problem file of experiments from a table: roles are guessed by names.

    outcome    a column with a name such as yield, outcome or y; else the last one
    action     columns with a name such as dose, rate or setting; else the first one that does not number the
               rows
    other      what is measured besides

Rows without a value of the outcome wait for their result: what is empty in them is no action, and else they
say nothing. The graph cannot be guessed: the file has a place for it, with an example.
"""

import numpy as np
import pandas as pd

from rehearsal_torch.data.causal_task import MIN_ROWS
from rehearsal_torch.data.reading import ReadTable, TableError, numbers_of
from rehearsal_torch.problems.written.draft_columns import (
    ACTIONS,
    MARK,
    OUTCOMES,
    commented,
    has_quotes,
    has_word,
    node,
    numbering,
    scalar,
    term,
    value,
    writable,
)

COLUMNS, SHOWN = 60, 5
# A temperature is measured more often than set.
_SET = ACTIONS.replace("temperature|", "")


def trials_draft(table: ReadTable, file: str, written: str) -> str:
    """The text of a problem file that asks for trials.

    Raises:
        TableError: if fewer than two columns have numbers.
    """
    waits = _waiting(table.frame)
    frame, ahead = table.frame[~waits], table.frame[waits]
    columns = {str(name): numbers_of(frame[name]) for name in frame.columns}
    unfit = {name: why for name, each in columns.items() if (why := _unfit(name, each))}
    counted = [name for name, each in columns.items() if name not in unfit and _counts(name, each)]
    # A single column beside the outcome is what was set, though it be 1, 2, 3, ...
    if len(columns) - len(unfit) - len(counted) >= 2:
        unfit |= dict.fromkeys(counted, "it numbers the rows")
    usable = [name for name in columns if name not in unfit][:COLUMNS]
    measured = [name for name in usable if not _fixed(columns[name])]
    if len(usable) < 2 or not measured:
        reasons = "; ".join(f"{name}: {why}" for name, why in [*unfit.items()][:SHOWN])
        raise TableError(
            f"{table.where}: expected at least two columns of numbers without empty cells, an action and an "
            f"outcome that varies; got {len(usable)} ({reasons or 'there are no others'})"
        )
    named = [name for name in measured if has_word(name, OUTCOMES)]
    outcome = named[-1] if named else measured[-1]
    rest = [name for name in usable if name != outcome]
    # What is set is there before the result is.
    known = [name for name in rest if np.isfinite(numbers_of(ahead[name])).all()] or rest
    actions = [name for name in known if has_word(name, _SET)] or known[:1]
    others = [name for name in rest if name not in actions]
    edges = [(one, other) for one in actions for other in [*others, outcome]]
    edges += [(one, outcome) for one in others]
    left_out = [name for name in columns if name not in usable]
    lines = [
        f"# A problem of {len(frame)} experiments. Correct what is guessed, fill in what is marked,",
        f"# then type   rehearsal check {written}",
        *([f"# {len(ahead)} more wait for their result, and are not learnt from."] if len(ahead) else []),
        *commented(table.notes),
        "",
        "# Which experiment next?",
        "question: trials",
        "# The experiments so far, relative to the folder of this file.",
        f"data: {scalar(file)}",
        "",
        "# Every variable, with its role (guessed): an action may be set, the reward is made of outcomes,",
        "# and other is measured in each experiment. An action has a range, or levels: [0, 1, 2].",
        "variables:",
        *(_line(name, columns[name], "action" if name in actions else "other") for name in rest),
        _line(outcome, columns[outcome], "outcome"),
        *(
            f"  # {scalar(name)}: left out: {unfit.get(name, f'one of more than {COLUMNS}')}"
            for name in left_out
        ),
        "",
        "# What directly influences what, an arrow for each; nothing leads into an action.",
        f"graph: {MARK}: the arrows; delete the # before those that hold",
        *(f"  # - {scalar(f'{node(one)} -> {node(other)}')}" for one, other in edges),
        "",
        "# What to maximise: an outcome, or a sum such as yield - 0.2*waste.",
        f"reward: {scalar(outcome)}",
        "# What cannot be set together: inequalities of the actions.",
        f"# limits: {value(f'{term(actions[0])} <= {columns[actions[0]].max():.4g}')}",
    ]
    return "\n".join(lines) + "\n"


def _waiting(frame: pd.DataFrame) -> np.ndarray:
    """The rows without a value of what looks like the outcome, (n,) bool."""
    candidates = [
        name
        for name in frame.columns
        if writable(str(name))
        and frame[name].notna().any()
        and (np.isfinite(numbers_of(frame[name])) | frame[name].isna().to_numpy()).all()
    ]
    named = [name for name in candidates if has_word(str(name), OUTCOMES)]
    if not candidates:
        return np.zeros(len(frame), dtype=bool)
    return np.asarray(frame[[*candidates, *named][-1]].isna().to_numpy(dtype=bool))


def _unfit(name: str, numbers: np.ndarray) -> str:
    """Why a column can be no variable; empty if it can."""
    if not writable(name):
        return "a name of 1 to 200 letters in one line is needed"
    if has_quotes(name):
        return "a name without double quotes is needed"
    if not len(numbers) or not np.isfinite(numbers).all():
        return "no numbers, or empty cells"
    if _fixed(numbers) and not has_word(name, _SET):
        return f"all {len(numbers)} values are {numbers[0]:g}"
    return ""


def _counts(name: str, numbers: np.ndarray) -> bool:
    """Whether a column counts the experiments, and has no name of what is set or measured."""
    named = has_word(name, _SET) or has_word(name, OUTCOMES)
    return not named and numbering(numbers) and bool((np.diff(numbers) > 0).all())


def _fixed(numbers: np.ndarray) -> bool:
    """Whether a column has one value in as many rows as a model is fitted to; only actions may."""
    return len(numbers) >= MIN_ROWS and bool((numbers == numbers[0]).all())


def _line(name: str, numbers: np.ndarray, role: str) -> str:
    low, high = float(numbers.min()), float(numbers.max())
    if role != "action":
        return f"  {scalar(name)}: {role}  # {low:.6g} to {high:.6g}"
    high = high if low < high else low + 1
    return f"  {scalar(name)}: {{role: action, range: [{low:.6g}, {high:.6g}]}}  # the range of the table"
