"""A first problem file from a table: roles are typed, guessed or left open, and every line says so.

Kinds and roles are those of `problems.drafts.role_guesses`. All other columns that can be used are context;
of experiments they are of the role other. Columns of which more than half is missing are left out, and so are
copies. The first identifier that has another value in every row is proposed to name the cases. Graph and
desired region cannot be guessed: the file has a place for them, with an example.

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
    omitted,
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

# How many columns are kept, and rows may be experiments: where there are more, they are not asked about.
COLUMNS, EXPERIMENTS = 60, 100
SHARES = (0.05, 0.95)
QUESTIONS = "Is a row a case (cases), a step of a unit (sequence), or an experiment (trials)?"


def draft(
    data: str, out: Path, question: str, typed: Mapping[str, str], ask: Ask | None = None
) -> tuple[str, list[str]]:
    """The text of a problem file for a table, and what is to be said of it; the question is "cases",
    "sequence" or "trials", and "auto" tells a table of episodes by its columns. Of the columns that are
    `typed` for outcome, action, unit and time, those that are missing and not clear are asked for.

    Raises:
        TableError: if the table cannot be used, or has no such column.
    """
    table = read_table(data, "data")
    check_names(table)
    names = [str(name) for name in table.frame.columns]
    if question in ("cases", "trials") and {"unit", "time"} & set(typed):
        raise TableError(f"unit= and time= are for a sequence: leave them out, or question={question}")
    given = {option: typed_names(text, option, names) for option, text in typed.items()}
    file = Path(os.path.relpath(Path(data).resolve(), out.parent.resolve())).as_posix()
    source, notes = Source(table, file, str(out), given, ask), [f"Note: {note}." for note in table.notes]
    for name in names:
        if order_unknown(table.frame[name]):
            first = beginning(str(table.frame[name].dropna().iloc[0]), 20)
            what = f"dates of {name} such as {first} may begin with the day or the month"
            notes.append(f"Note: {what}, and no row shows which: write them as 2024-03-01.")
    if question == "auto" and not {"unit", "time"} & set(given):
        question = "cases"
        if (found := episodes(table.frame)) is not None:
            question = "sequence"
            told = f"the table has several rows for each {found[0]}, one for each {found[1]}"
            notes.append(f"Guessed: {told}: question=sequence. Add question=cases to decide for rows.")
        elif ask and len(table.frame) <= EXPERIMENTS:
            question = [*ask(QUESTIONS, "question", ("cases", "sequence", "trials")), question][0]
    drafts = {"cases": cases_draft, "trials": trials_draft}
    text, more = drafts.get(question, sequence_draft)(source)
    return text, notes + more


CASES = """\
# A problem of $rows rows. Correct what is guessed, fill in what is marked, then type
#   rehearsal check $written
$notes

# The table, relative to the folder of this file.
data: $file
$gaps
$identity

# Every variable, with its role: context is known before deciding, an action may be set, an outcome should
# come out as desired, other is anything else. Kinds: continuous, integer, binary, ordinal, categorical;
# levels are texts in the order of their codes 0, 1, ...
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
BOUNDS = """# How far each case may go from its present value.
# bounds: {$name: [current - 1, current + 1]}"""


def cases_draft(source: Source) -> tuple[str, list[str]]:
    """The text of a problem file of cases, and what is to be said; TableError if fewer than two columns can
    be used.
    """
    frame = source.table.frame
    columns = columns_of(frame)
    _enough(source, columns, "numbers or of few texts, an action and an outcome")
    roles = roles_of(columns, source)
    chosen = [*roles.names["action"], *roles.names["outcome"]]
    columns = _varying(without_copies(columns, roles), chosen)
    used = _used(columns, roles)
    context, actions, outcomes = (
        [each for each in used if _role(each, roles) == role] for role in ("context", "action", "outcome")
    )
    names = min((each for each in columns if each.names), key=lambda each: each.names, default=None)
    gaps = ", ".join(f"{each.name}: {each.gaps}" for each in used if each.gaps)
    named = "" if names is None else f"{scalar(names.name)}: {scalar(str(frame[names.name].iloc[0]))}, "
    steps = [each.name for each in actions if not each.levels]
    return source.fill(
        CASES,
        [*(_line(each, roles) for each in used), *roles.marks, *_omitted(columns, used)],
        rows=str(len(frame)),
        gaps=filled(MISSING, some=gaps) if gaps else "",
        identity="" if names is None else filled(IDENTITY, name=scalar(names.name)),
        arrows=arrows(
            ([each.name for each in context], chosen), (roles.names["action"], roles.names["outcome"])
        ),
        wanted=value(_wanted((outcomes or used or columns)[-1])),
        case=named + ", ".join(f"{scalar(each.name)}: {_usual(each)}" for each in [*context, *actions]),
        bounds=filled(BOUNDS, name=scalar(steps[0])) if steps else "",
    ), roles.notes


def _varying(columns: Sequence[Column], chosen: Sequence[str]) -> list[Column]:
    """The columns without those that have one value in all rows that lack nothing."""
    cells = np.stack([each.cells for each in columns if not each.left_out])
    whole = ~np.isnan(cells).any(0)
    why = f"all {whole.sum()} rows that lack nothing have one value"
    free = [each for each in columns if not each.left_out and each.name not in chosen]
    same = [each for each in free if whole.sum() >= FEWEST and len(np.unique(each.cells[whole])) < 2]
    return [replace(each, left_out=why) if each in same else each for each in columns]


def _used(columns: Sequence[Column], roles: Roles) -> list[Column]:
    """The columns of a draft, those with roles last; of too many, those with the fewest gaps."""
    place = {name: 1 + (role == "outcome") for role, names in roles.names.items() for name in names}
    able = [each for each in columns if not each.left_out]
    kept = sorted(able, key=lambda each: -1 if each.name in place else each.gaps)[:COLUMNS]
    return sorted((each for each in able if each in kept), key=lambda each: place.get(each.name, 0))


def _omitted(columns: Sequence[Column], used: Sequence[Column]) -> list[str]:
    much = f"one of more than {COLUMNS}"
    return [omitted(each.name, each.left_out or much) for each in columns if each not in used]


def _enough(source: Source, columns: Sequence[Column], what: str) -> None:
    """TableError if fewer than two columns can be used."""
    able = sum(not each.left_out for each in columns)
    if able < 2:
        reasons = "; ".join(f"{each.name}: {each.left_out}" for each in columns if each.left_out)
        got = f"{able} ({reasons or 'there are no others'})"
        raise TableError(f"{source.table.where}: expected at least two columns of {what}; got {got}")


def _role(column: Column, roles: Roles) -> str:
    return roles.of(column.name, "other" if column.given == COUNT else "context")


def _line(column: Column, roles: Roles) -> str:
    role, note, kind = _role(column, roles), roles.seen(column), column.kind
    stated = {"levels": flow(column.levels)} if column.levels and column.kind != "categorical" else {}
    if role == "action" and column.levels:
        first, *_, last = map(scalar, column.levels)
        more = f"offered: [{first}, {last}] offers fewer, cost: {{{first}: 0, ...}} prices a change to each"
        note = f"{note}; one of them is set; {more}"
    elif role == "action" and column.kind == "binary":
        note = f"{note}; one of them is set"
    elif role == "action":
        low, high = np.quantile(column.numbers, SHARES)
        low, high = (low, high) if low < high else (column.numbers.min(), column.numbers.max())
        inside = np.unique(column.numbers[(column.numbers >= low) & (column.numbers <= high)])
        # A whole number that no row has cannot be offered.
        kind = kind if len(inside) > np.floor(high) - np.ceil(low) else "continuous"
        stated, note = {"range": f"[{low:.6g}, {high:.6g}]"}, f"{note}; the range holds nine of ten"
    return variable(column.name, note, role, kind=kind, **stated)


def _usual(column: Column) -> str:
    """The median of numbers, and the most frequent text, or value of a variable of two."""
    values, often = np.unique(column.numbers, return_counts=True)
    if column.levels:
        return scalar(column.levels[int(values[often.argmax()])])
    middle = float(values[often.argmax()] if column.kind == "binary" else np.median(column.numbers))
    return f"{middle:.4g}" if abs(middle) < 1e4 else f"{middle:.0f}"


def _wanted(outcome: Column) -> str:
    """An example of a desired region."""
    name, levels = term(outcome.name), list(map(node, outcome.levels))
    if not levels:
        high = f">= {outcome.numbers.max():g}" if outcome.kind == "binary" else ""
        return f"{name} {high or f'<= {np.median(outcome.numbers):.4g}'}"
    if outcome.kind == "categorical":
        return f"{name} in {{{', '.join(levels[: min(2, len(levels) - 1)])}}}"
    return f"{name} = {levels[-1]}" if outcome.kind == "binary" else f"{name} <= {levels[-2]}"


TRIALS = """\
# A problem of $rows experiments. Correct what is guessed, fill in what is marked,
# then type   rehearsal check $written
$waiting
$notes

# Which experiment next?
question: trials
# The experiments so far, relative to the folder of this file.
data: $file

# Every variable, with its role: an action may be set, the reward is made of outcomes, and other is
# measured in each experiment. An action has a range, or levels: [0, 1, 2].
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
    """The text of a problem file that asks for trials, and what is to be said; TableError if fewer than two
    columns have numbers.
    """
    waits = _waiting(source)
    frame, ahead = source.table.frame[~waits], source.table.frame[waits]
    known = [str(name) for name in frame.columns if np.isfinite(numbers_of(ahead[name])).all()]
    columns = columns_of(frame, gaps=0.0, whole=False)
    columns = [replace(each, left_out="it has texts") if each.levels else each for each in columns]
    # What is not known before the result is no action by its name.
    unsure = [each.name for each in columns if each.named == "action" and each.name not in known]
    columns = [replace(each, named="") if each.name in unsure else each for each in columns]
    _enough(source, columns, "numbers without empty cells, an action and an outcome, that varies")
    roles = roles_of(columns, source, known if len(ahead) else ())
    used = _used(columns, roles)
    others = [each.name for each in used if roles.of(each.name, "") == ""]
    actions, outcomes = (list(roles.names[role]) for role in ("action", "outcome"))
    limits = [f"{term(each.name)} <= {each.numbers.max():.4g}" for each in used if each.name in actions]
    return source.fill(
        TRIALS,
        [*(_experiment(each, roles) for each in used), *roles.marks, *_omitted(columns, used)],
        rows=str(len(frame)),
        waiting=f"# {len(ahead)} more wait for their result, and are not learnt from." if len(ahead) else "",
        arrows=arrows((actions, [*others, *outcomes]), (others, outcomes)),
        reward=scalar(outcomes[0]) if outcomes else f"{MARK}: an outcome",
        limits=filled(LIMITS, limit=value(limits[0])) if limits else "",
    ), roles.notes


def _waiting(source: Source) -> np.ndarray:
    """The rows without a value of what looks like the outcome, (n,) bool."""
    columns = columns_of(source.table.frame, gaps=1.0, whole=False)
    able = [each.name for each in columns if not each.left_out and not each.levels]
    named = [name for name in able if has_word(name, OUTCOMES)]
    last = [*able, *named, *source.typed.get("outcome", ())][-1:]
    return np.asarray(source.table.frame[last].isna().any(axis=1).to_numpy(dtype=bool))


def _experiment(column: Column, roles: Roles) -> str:
    role, (low, high) = roles.of(column.name, "other"), (column.numbers.min(), column.numbers.max())
    ends = {"range": f"[{low:.6g}, {high if low < high else low + 1:.6g}]"} if role == "action" else {}
    return variable(column.name, roles.seen(column), role, **ends)
