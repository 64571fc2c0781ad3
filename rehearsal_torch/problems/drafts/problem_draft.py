"""A first problem file from a table: roles are typed, guessed or left open, and every line says so.

Kinds and roles are those of `problems.drafts.role_guesses`. All other columns that can be used are context;
of experiments they are of the role other. Columns of which more than half is missing are left out, and so are
copies. The first identifier that has another value in every row is proposed to name the cases, and one that
several rows share, or a place, to say which belong together. Graph and desired region cannot be guessed: the
file has a place for them, with an example.

Of experiments, rows without a value of the outcome wait for their result: what is empty in them is no action,
what is not is one, and else they say nothing.
"""

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from rehearsal_torch.data.tables.cell_values import order_unknown
from rehearsal_torch.data.tables.reader import TableError, numbers_of, read_table
from rehearsal_torch.files.redaction import beginning
from rehearsal_torch.problems.drafts.draft_yaml import (
    MARK,
    arrows,
    filled,
    flow,
    node,
    scalar,
    term,
    value,
    variable,
)
from rehearsal_torch.problems.drafts.role_guesses import (
    COUNT,
    FEWEST,
    OUTCOMES,
    Ask,
    Column,
    Roles,
    Source,
    check_names,
    columns_of,
    has_word,
    roles_of,
    typed_names,
    without_copies,
)
from rehearsal_torch.problems.drafts.sequence_draft import episodes, sequence_draft

# The most columns of a draft, and the most rows for which it is asked whether they are experiments.
COLUMNS, EXPERIMENTS = 60, 100
SHARES = (0.05, 0.95)
DECADES = 100  # The ratio of the largest number to the smallest from which a scale is a logarithm.
QUESTIONS = "Is a row a case (cases), a step of a unit (sequence), or an experiment (trials)?"


def draft(
    data: str, out: Path, question: str, typed: Mapping[str, str], ask: Ask | None = None
) -> tuple[str, list[str]]:
    """The text of a problem file for a table, and notes on it. The question is "cases", "sequence", "trials",
    or "auto": then a table of episodes is known by its columns. Outcome, action, unit and time are `typed`,
    guessed, or asked for.

    Raises:
        TableError: if the table cannot be used, or has no such column.
    """
    table = read_table(data, "data")
    check_names(table)
    names = [str(name) for name in table.frame.columns]
    if question in ("cases", "trials") and {"unit", "time"} & set(typed):
        raise TableError(f"unit= and time= are for a sequence: leave them out, or question={question}")
    typed_columns = {option: typed_names(text, option, names) for option, text in typed.items()}
    file = Path(os.path.relpath(Path(data).resolve(), out.parent.resolve())).as_posix()
    source = Source(table, file, str(out), typed_columns, ask)
    notes = [f"Note: {note}." for note in table.notes]
    for name in names:
        if order_unknown(table.frame[name]):
            example = beginning(str(table.frame[name].dropna().iloc[0]), 20)
            dates = f"dates of {name} such as {example} may begin with the day or the month"
            notes.append(f"Note: {dates}, and no row shows which: write them as 2024-03-01.")
    if question == "auto" and not {"unit", "time"} & set(typed_columns):
        question = "cases"
        if (unit_and_time := episodes(table.frame)) is not None:
            question, (unit, time) = "sequence", unit_and_time
            evidence = f"the table has several rows for each {unit}, one for each {time}"
            notes.append(f"Guessed: {evidence}: question=sequence. Add question=cases to decide for rows.")
        elif ask and len(table.frame) <= EXPERIMENTS:
            question = [*ask(QUESTIONS, "question", ("cases", "sequence", "trials")), question][0]
    drafters = {"cases": cases_draft, "trials": trials_draft}
    text, draft_notes = drafters.get(question, sequence_draft)(source)
    return text, notes + draft_notes


CASES = """
# The table, relative to the folder of this file.
data: $file
$gaps
$identity
$unit

# Every variable, with its role: context is known before deciding, an action may be set, an outcome should
# come out as desired, other is anything else, such as what is measured after the action. Kinds: continuous,
# integer, binary, ordinal, categorical; levels are texts in the order of their codes 0, 1, ...
variables:
$variables

# What directly influences what, an arrow for each; x <-> y if a hidden cause moves both. Add what is
# missing, or name a file (.dagitty, .gml, .graphml).
graph: $mark: the arrows; delete the # before those that hold
$arrows

# Which outcomes are desired: inequalities with <= and >=, joined by and.
desired: $mark, such as $wanted

# The cases to decide for, a file or a list; without it, rows that are held out.
# cases:
#   - {$case}
$bounds
"""
MISSING = """
# Missing cells, by column: $some. Rows with one are left out (complete), refused, or completed by several
# imputations ({impute: 20}).
missing: complete"""
IDENTITY = """
# The column that names the cases (guessed: it has another value in every row). The names stand in the
# files of a run and in its report; delete the line if these may not be shared.
identity: $name"""
UNIT = """
# The column that says which rows belong together (guessed: several rows have the same): they are held out
# together.
unit: $name"""
BOUNDS = """# How far each case may go from its present value.
# bounds: {$name: [current - 1, current + 1]}"""


def cases_draft(source: Source) -> tuple[str, list[str]]:
    """The text of a problem file of cases, and notes; TableError if fewer than two columns can be used."""
    frame = source.table.frame
    columns = columns_of(frame)
    _check_two_usable(source, columns, "numbers or of few texts, an action and an outcome")
    roles = roles_of(columns, source)
    outcome_names = roles.names["outcome"]
    chosen = [*roles.names["action"], *outcome_names]
    columns = _mark_constant(without_copies(columns, roles), chosen)
    variables = _select_variables(columns, roles)
    context, actions = (
        [column for column in variables if _role(column, roles) == role] for role in ("context", "action")
    )
    groups = sorted(
        (column.name for column in columns if column.groups), key=lambda name: frame[name].nunique()
    )
    identifiers = sorted((column for column in columns if column.naming), key=lambda column: column.naming)
    used = [column.name for column in identifiers[:1]] + groups[-1:]
    missing = ", ".join(f"{column.name}: {column.missing}" for column in variables if column.missing)
    cells = {column.name: scalar(str(frame[column.name].iloc[0])) for column in identifiers[:1]}
    cells |= {column.name: _usual_value(column) for column in [*context, *actions]}
    numeric_actions = [column.name for column in actions if not column.levels]
    return source.fill(
        CASES,
        roles,
        f"{len(frame)} rows",
        [_variable_line(column, roles) for column in variables],
        {name: why for name, why in _left_out(columns, variables).items() if name not in used},
        gaps=filled(MISSING, some=missing) if missing else "",
        identity=filled(IDENTITY, name=scalar(identifiers[0].name)) if identifiers else "",
        unit=filled(UNIT, name=scalar(groups[-1])) if groups else "",
        arrows=arrows(([column.name for column in context], chosen), (roles.names["action"], outcome_names)),
        wanted="  # or ".join(map(value, _desired_examples(roles.outcome_in(variables)))),
        case=", ".join(f"{scalar(name)}: {cell}" for name, cell in cells.items()),
        bounds=filled(BOUNDS, name=scalar(numeric_actions[0])) if numeric_actions else "",
    )


def _mark_constant(columns: Sequence[Column], chosen: Sequence[str]) -> list[Column]:
    """The columns, of which those with one value in all complete rows are left out."""
    complete = ~np.isnan([column.cells for column in columns if not column.left_out]).any(0)
    reason = f"all {complete.sum()} rows that lack nothing have one value"
    if complete.sum() < FEWEST:
        return list(columns)
    usable = (column for column in columns if not column.left_out and column.name not in chosen)
    constant = [column for column in usable if len(np.unique(column.cells[complete])) < 2]
    return [replace(column, left_out=reason) if column in constant else column for column in columns]


def _select_variables(columns: Sequence[Column], roles: Roles) -> list[Column]:
    """The columns of a draft, those with roles last; of too many, those with the fewest gaps."""
    rank = {name: 1 + (role == "outcome") for role, names in roles.names.items() for name in names}
    usable = [column for column in columns if not column.left_out]
    chosen = sorted(usable, key=lambda column: -1 if column.name in rank else column.missing)[:COLUMNS]
    return sorted(filter(chosen.__contains__, usable), key=lambda column: rank.get(column.name, 0))


def _left_out(columns: Sequence[Column], variables: Sequence[Column]) -> dict[str, str]:
    reason = f"one of more than {COLUMNS}"
    return {column.name: column.left_out or reason for column in columns if column not in variables}


def _check_two_usable(source: Source, columns: Sequence[Column], expected: str) -> None:
    """TableError if fewer than two columns can be used."""
    usable = sum(not column.left_out for column in columns)
    if usable < 2:
        reasons = "; ".join(f"{column.name}: {column.left_out}" for column in columns if column.left_out)
        got = f"{usable} ({reasons or 'there are no others'})"
        raise TableError(f"{source.table.where}: expected at least two columns of {expected}; got {got}")


def _role(column: Column, roles: Roles) -> str:
    return roles.of(column.name, "other" if column.background == COUNT else "context")


def _variable_line(column: Column, roles: Roles) -> str:
    role, note, kind = _role(column, roles), roles.note(column), column.kind
    stated = {"levels": flow(column.levels)} if column.levels and column.kind != "categorical" else {}
    if role == "context" and not column.background:
        note = f"known before deciding? {note}"
    if role == "action" and column.levels:
        first, *_, last = map(scalar, column.levels)
        more = f"offered: [{first}, {last}] offers fewer, cost: {{{first}: 0, ...}} prices a change to each"
        note = f"{note}; one of them is set; {more}"
    elif role == "action" and column.kind == "binary":
        note = f"{note}; one of them is set"
    elif role == "action":
        low, high = np.quantile(column.numbers, SHARES)
        low, high = (low, high) if low < high else (column.numbers.min(), column.numbers.max())
        offered = np.unique(column.numbers[(column.numbers >= low) & (column.numbers <= high)])
        # A whole number that no row has cannot be offered.
        kind = kind if len(offered) > np.floor(high) - np.ceil(low) else "continuous"
        stated, note = {"range": f"[{low:.6g}, {high:.6g}]"}, f"{note}; the range holds nine of ten"
    return variable(column.name, note, role, kind=kind, unit=roles.unit(column), **stated)


def _usual_value(column: Column) -> str:
    """The median of numbers, and the most frequent text, or value of a variable of two."""
    values, counts = np.unique(column.numbers, return_counts=True)
    if column.levels:
        return scalar(column.levels[int(values[counts.argmax()])])
    usual = float(values[counts.argmax()] if column.kind == "binary" else np.median(column.numbers))
    return f"{usual:.4g}" if abs(usual) < 1e4 else f"{usual:.0f}"


def _desired_examples(outcome: Column) -> list[str]:
    """Examples of a desired region: of numbers, in both directions."""
    name, levels = term(outcome.name), list(map(node, outcome.levels))
    if not levels:
        ends = [f">= {outcome.numbers.max():g}", f"<= {outcome.numbers.min():g}"]
        median = f"{np.median(outcome.numbers):.4g}"
        ends = ends if outcome.kind == "binary" else [f"<= {median}", f">= {median}"]
        return [f"{name} {end}" for end in ends]
    if outcome.kind == "categorical":
        return [f"{name} in {{{', '.join(levels[: min(2, len(levels) - 1)])}}}"]
    if outcome.kind == "binary":
        return [f"{name} = {level}" for level in reversed(levels)]
    return [f"{name} <= {levels[-2]}", f"{name} >= {levels[1]}"]


TRIALS = """$waiting

# Which experiment next?
question: trials
# The experiments so far, relative to the folder of this file.
data: $file

# Every variable, with its role: an action may be set, the reward is made of outcomes, a context is known
# before acting, and other is measured in each experiment. An action has a range, or levels: [0, 1, 2].
variables:
$variables

# What directly influences what, an arrow for each; nothing leads into an action.
graph: $mark: the arrows; delete the # before those that hold
$arrows

# What to maximise: an outcome, or a sum such as yield - 0.2*waste.
reward: $reward
$limits
"""
LIMITS = """# What cannot be set together: inequalities of the actions.
# limits: $limit"""


def trials_draft(source: Source) -> tuple[str, list[str]]:
    """The text of a problem file of trials, and notes; TableError if fewer than two columns have numbers."""
    waiting = _pending_rows(source)
    frame, pending = source.table.frame[~waiting], source.table.frame[waiting]
    known_before = [str(name) for name in frame.columns if np.isfinite(numbers_of(pending[name])).all()]
    columns = columns_of(frame, varying=False)
    # What is not known before the result is no action by its name.
    for index, column in enumerate(columns):
        if column.named_role == "action" and column.name not in known_before:
            columns[index] = replace(column, named_role="")
    roles = roles_of(columns, source, known_before if len(pending) else (), numbers=True)
    # What is measured is a number.
    columns = [
        replace(column, left_out="it has texts")
        if column.levels and column.name not in roles.names["action"]
        else column
        for column in columns
    ]
    _check_two_usable(source, columns, "numbers without empty cells, an action and an outcome, that varies")
    variables = _select_variables(columns, roles)
    other_names = [column.name for column in variables if roles.of(column.name, "") == ""]
    actions, outcomes = (list(roles.names[role]) for role in ("action", "outcome"))
    largest = {
        term(column.name): column.numbers.max()
        for column in variables
        if column.name in actions and not column.levels and not _over_decades(column)
    }
    limits = [f"{name} <= {number:.4g}" for name, number in largest.items()]
    waiting_note = f"# {len(pending)} more wait for their result, and are not learnt from."
    return source.fill(
        TRIALS,
        roles,
        f"{len(frame)} experiments",
        [_experiment_line(column, roles) for column in variables],
        _left_out(columns, variables),
        waiting=waiting_note if len(pending) else "",
        arrows=arrows((actions, [*other_names, *outcomes]), (other_names, outcomes)),
        reward=scalar(outcomes[0]) if outcomes else f"{MARK}: an outcome",
        limits=filled(LIMITS, limit=value(limits[0])) if limits else "",
    )


def _pending_rows(source: Source) -> np.ndarray:
    """The rows without a value of the likely outcome, (n,) bool."""
    columns = columns_of(source.table.frame, most_missing=1.0, varying=False)
    usable = [column.name for column in columns if not column.left_out and not column.levels]
    named = [name for name in usable if has_word(name, OUTCOMES)]
    outcome = [*usable, *named, *source.typed.get("outcome", ())][-1:]
    return np.asarray(source.table.frame[outcome].isna().any(axis=1).to_numpy(dtype=bool))


def _experiment_line(column: Column, roles: Roles) -> str:
    role, (low, high) = roles.of(column.name, "other"), (column.numbers.min(), column.numbers.max())
    if column.levels:
        note = f"{roles.note(column)} <- the observed texts; write all that may be set"
        return variable(column.name, note, role, kind=column.kind, levels=flow(column.levels))
    ends = {"range": f"[{low:.6g}, {high if low < high else low + 1:.6g}]"} if role == "action" else {}
    note = roles.note(column)
    note += " <- the observed extremes; write how far it may be set" if ends else ""
    scale = "log" if ends and _over_decades(column) else ""
    return variable(column.name, note, role, unit=roles.unit(column), **ends, scale=scale)


def _over_decades(column: Column) -> bool:
    """Whether positive numbers span two orders of magnitude."""
    return bool(0 < DECADES * column.numbers.min() <= column.numbers.max())
