"""A first problem file from a table: kinds and roles are guessed, and every line says so.

    outcome    the last column with a name such as outcome, target or y; else the last that can be used and is
               not categorical, if there is one
    action     the column with a name such as dose, price or treatment; else, of those with more than two
               values that are not categorical, the one whose ranks are most correlated with those of the
               outcome
    context    all other columns that can be used

    binary     two values;  integer    up to 20 whole numbers;  continuous    otherwise
    ordinal, categorical    few texts (`problems.written.draft_columns`)

Columns of many texts, with a single value, or of which more than half is missing are left out, with the
reason, and so are dates, copies of others (`problems.written.draft_columns`), and those that identify persons
or rows (`data.tables.identifiers`); the first that has another
value in every row is proposed to name the cases. Graph and desired region cannot be guessed: the file has a
place for them, with an example.

Of experiments, the action is each column with a name such as dose, rate or setting, else the first one that
does not number the rows, and all that is measured besides is of the role other. Rows without a value of the
outcome wait for their result: what is empty in them is no action, and else they say nothing.
"""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from rehearsal_torch.data.causal_task import MIN_ROWS
from rehearsal_torch.data.reading import ReadTable, TableError, number_faults, numbers_of, read_table
from rehearsal_torch.data.tables.identifiers import identifier
from rehearsal_torch.problems.written.draft_columns import (
    ACTIONS,
    COPY,
    MARK,
    OUTCOMES,
    check_names,
    commented,
    copies,
    has_word,
    level,
    node,
    numbering,
    of_dates,
    scalar,
    term,
    text_column,
    unnamed,
    value,
    writable,
)
from rehearsal_torch.problems.written.sequence_draft import dated, sequence_draft, unit_and_time

WHOLE = 20
# The share of missing cells above which a column is left out.
GAPS = 0.5
COLUMNS = 60
SHARES = (0.05, 0.95)


@dataclass(frozen=True)
class _Column:
    name: str
    whole: np.ndarray
    kind: str
    levels: tuple[str, ...] = ()

    @property
    def numbers(self) -> np.ndarray:
        known: np.ndarray = self.whole[~np.isnan(self.whole)]
        return known

    @property
    def gaps(self) -> int:
        return int(np.isnan(self.whole).sum())

    @property
    def seen(self) -> str:
        values = len(np.unique(self.numbers))
        gaps = f", {self.gaps} missing" if self.gaps else ""
        if self.levels:
            return f"{' '.join(', '.join(self.levels).split())}{gaps}"
        return f"{self.numbers.min():.6g} to {self.numbers.max():.6g}, {values} values{gaps}"


def draft(data: str, out: Path, question: str) -> tuple[str, list[str]]:
    """The text of a problem file for a table, and what is to be said of it; the question is "cases",
    "sequence" or "trials", and "auto" tells a table of episodes by its columns.

    Raises:
        TableError: if the table cannot be used.
    """
    table = read_table(data, "data")
    check_names(table)
    file = Path(os.path.relpath(Path(data).resolve(), out.parent.resolve())).as_posix()
    notes = [f"Note: {note}." for note in table.notes]
    episodes = unit_and_time(table.frame) if question in ("auto", "sequence") else None
    if question == "trials":
        return trials_draft(table, file, str(out)), notes
    if question == "sequence" or episodes is not None:
        if question == "auto" and episodes is not None:
            notes.append(
                f"The table has several rows for each {episodes.unit}, one for each {episodes.time}: the "
                "file asks for a sequence. Add question=cases to decide for rows."
            )
        return sequence_draft(table, file, str(out), episodes), notes
    if question == "auto" and (maybe := dated(table.frame)) is not None:
        notes.append(
            f"Note: the table has several rows for each {maybe.unit}, one for each {maybe.time}. Add "
            "question=sequence to decide on what is done step by step."
        )
    return first_draft(table, file, str(out)), notes


def first_draft(table: ReadTable, file: str, written: str) -> str:
    """The text of a problem file; TableError if fewer than two columns can be used."""
    columns, left_out, identity = _usable(table.frame)
    named = {} if identity is None else {identity: str(table.frame[identity].iloc[0])}
    if len(columns) < 2:
        reasons = "; ".join(f"{name}: {why}" for name, why in left_out) or "there are no others"
        expected = "expected at least two columns of numbers or of few texts, an action and an outcome"
        raise TableError(f"{table.where}: {expected}; got {len(columns)} ({reasons})")
    outcome = _named(columns, OUTCOMES) or (_scaled(columns) or columns)[-1]
    others = [each for each in columns if each is not outcome]
    relevant = max(_scaled(others) or others, key=lambda each: _relevance(each, outcome))
    action = _named(others, ACTIONS) or relevant
    context = [each for each in others if each is not action]
    numbers = {each.name: each.whole for each in _scaled([action, outcome, *context])}
    given = copies(numbers, frozenset((action.name, outcome.name)))
    close = f"up to a factor and a shift (correlation above {COPY:g})"
    left_out += [(name, f"other columns give it: it is {what}, {close}") for name, what in given.items()]
    context = [each for each in context if each.name not in given]
    lines = [
        f"# A problem of {len(table.frame)} rows. Correct what is guessed, fill in what is marked, then type",
        f"#   rehearsal check {written}",
        *commented(table.notes),
        "",
        "# The table, relative to the folder of this file.",
        f"data: {scalar(file)}",
        *_gaps(columns),
        *_identity(identity),
        "",
        "# Every variable, with its role (guessed): context is known before deciding, an action may be set,",
        "# an outcome should come out as desired, other is anything else. Kinds: continuous, integer,",
        "# binary, ordinal, categorical; levels are texts in the order of their codes 0, 1, ...",
        "variables:",
        *(_line(each, "context") for each in context),
        _action(action),
        _line(outcome, "outcome"),
        *(f"  # {scalar(name)}: left out: {why}" for name, why in left_out),
        "",
        "# What directly influences what, an arrow for each; x <-> y if a hidden cause moves both. Add what",
        "# is missing, or name a file (.dagitty, .gml, .graphml).",
        f"graph: {MARK}: the arrows; delete the # before those that hold",
        *_edges([each.name for each in context], action.name, outcome.name),
        "",
        "# Which outcomes are desired: inequalities with <= and >=, joined by and.",
        f"desired: {MARK}, such as {value(_wanted(outcome))}",
        "",
        "# The cases to decide for, a file or a list; without it, rows that are held out.",
        "# cases:",
        f"#   - {_case(context, action, named)}",
    ]
    if not action.levels:
        lines += ["# How far each case may go from its present value."]
        lines += [f"# bounds: {{{scalar(action.name)}: [current - 1, current + 1]}}"]
    return "\n".join(lines) + "\n"


def _usable(frame: pd.DataFrame) -> tuple[list[_Column], list[tuple[str, str]], str | None]:
    """Columns that can be used, why others cannot, and the column that can name the cases."""
    columns, left_out = list[_Column](), list[tuple[str, str]]()
    names = dict[str, bool]()
    for name in map(str, frame.columns):
        share = float(frame[name].isna().mean())
        known = frame[[name]].dropna() if share <= GAPS else frame
        faults = number_faults(known, [name], varying=True)
        numbers = numbers_of(frame[name])
        told = identifier(name, frame[name])
        if not name.strip() or len(name) > 200 or not name.isprintable() or "\n" in name:
            left_out.append((repr(name)[:40], "a name of 1 to 200 letters in one line is needed"))
        elif '"' in name:
            left_out.append((name, "a name without double quotes is needed"))
        elif unnamed(name):
            left_out.append((name, "the column has no name"))
        elif numbering(numbers) and (told is None or told.by_value):
            left_out.append((name, "it numbers the rows"))
        elif of_dates(frame[name]):
            left_out.append((name, "it has dates: write them as numbers, such as days since the first"))
        elif told is not None:
            left_out.append((name, f"it looks like an identifier: {told.reason}"))
            if told.unique:
                names[name] = told.personal
        elif isinstance(texts := text_column(frame, name) if share <= GAPS else None, str):
            left_out.append((name, texts))
        elif texts is not None and len(columns) < COLUMNS:
            columns.append(_Column(name, texts.places, texts.kind, texts.levels))
        elif faults:
            left_out.append((name, faults[0].words))
        elif len(columns) >= COLUMNS:
            left_out.append((name, f"one of more than {COLUMNS} columns"))
        else:
            columns.append(_Column(name, numbers, _kind(numbers[~np.isnan(numbers)])))
    # A number or a code rather than a person's name, and the first of these.
    return columns, left_out, min(names, key=lambda name: names[name]) if names else None


def _gaps(columns: Sequence[_Column]) -> list[str]:
    """What happens to rows with missing cells, if there are some."""
    some = [f"{each.name}: {each.gaps}" for each in columns if each.gaps]
    if not some:
        return []
    return [
        "",
        f"# Missing cells, by column: {', '.join(some)}. Rows with one are left out (complete), refused, or",
        "# completed by several imputations ({impute: 20}).",
        "missing: complete",
    ]


def _identity(name: str | None) -> list[str]:
    """The column that names the cases, if there is one."""
    if name is None:
        return []
    return [
        "",
        "# The column that names the cases (guessed: it has another value in every row). The names stand in",
        "# the files of a run and in its report; delete the line if these may not be shared.",
        f"identity: {scalar(name)}",
    ]


def _kind(numbers: np.ndarray) -> str:
    values = np.unique(numbers)
    if len(values) == 2:
        return "binary"
    return "integer" if len(values) <= WHOLE and bool((values == np.round(values)).all()) else "continuous"


def _named(columns: Sequence[_Column], words: str) -> _Column | None:
    """The last column with one of some words in its name."""
    return next((each for each in reversed(columns) if has_word(each.name, words)), None)


def _scaled(columns: Sequence[_Column]) -> list[_Column]:
    """The columns whose values have an order."""
    return [each for each in columns if each.kind != "categorical"]


def _relevance(column: _Column, outcome: _Column) -> tuple[bool, float]:
    """Whether a column has more than two values; its rank correlation with the outcome, in size."""
    if len(_scaled([column, outcome])) < 2:
        return column.kind != "binary", 0.0
    both = ~np.isnan(column.whole) & ~np.isnan(outcome.whole)
    one, other = (pd.Series(each.whole[both]).rank() for each in (column, outcome))
    varies = len(one) > 1 and float(np.ptp(one)) > 0 < float(np.ptp(other))
    return column.kind != "binary", float(abs(np.corrcoef(one, other)[0, 1])) if varies else 0.0


def _line(column: _Column, role: str) -> str:
    stated = column.levels if column.kind != "categorical" else ()
    levels = f", levels: [{', '.join(map(scalar, stated))}]" if stated else ""
    return f"  {scalar(column.name)}: {{role: {role}, kind: {column.kind}{levels}}}  # {column.seen}"


def _action(column: _Column) -> str:
    if column.levels:
        first, *_, last = map(scalar, column.levels)
        more = f"offered: [{first}, {last}] offers fewer, cost: {{{first}: 0, ...}} prices a change to each"
        return f"{_line(column, 'action')}; one of them is set; {more}"
    if column.kind == "binary":
        return f"  {scalar(column.name)}: {{role: action, kind: binary}}  # {column.seen}; one of them is set"
    low, high = np.quantile(column.numbers, SHARES)
    if not low < high:
        low, high = column.numbers.min(), column.numbers.max()
    return (
        f"  {scalar(column.name)}: {{role: action, kind: {column.kind}, range: [{low:.6g}, {high:.6g}]}}  "
        f"# {column.seen}; the range holds nine of ten"
    )


def _edges(context: Sequence[str], action: str, outcome: str) -> list[str]:
    pairs = [(each, after) for each in context for after in (action, outcome)] + [(action, outcome)]
    return [f"  # - {scalar(f'{node(one)} -> {node(other)}')}" for one, other in pairs]


def _case(context: Sequence[_Column], action: _Column, named: Mapping[str, str]) -> str:
    """An example of a case; where a column names the cases, with a name."""
    cells = [f"{scalar(name)}: {scalar(text)}" for name, text in named.items()]
    cells += [f"{scalar(each.name)}: {_usual(each)}" for each in [*context, action]]
    return f"{{{', '.join(cells)}}}"


def _usual(column: _Column) -> str:
    """The median of numbers, and the most frequent text, or value of a variable of two."""
    if not column.levels:
        if column.kind == "binary":
            values, often = np.unique(column.numbers, return_counts=True)
            return f"{values[often.argmax()]:g}"
        middle = float(np.median(column.numbers))
        return f"{middle:.4g}" if abs(middle) < 1e4 else f"{middle:.0f}"
    counts = [int((column.numbers == place).sum()) for place in range(len(column.levels))]
    return scalar(column.levels[counts.index(max(counts))])


def _wanted(outcome: _Column) -> str:
    """An example of a desired region."""
    name = term(outcome.name)
    if not outcome.levels and outcome.kind == "binary":
        return f"{name} >= {outcome.numbers.max():g}"
    if not outcome.levels:
        return f"{name} <= {np.median(outcome.numbers):.4g}"
    if outcome.kind == "categorical":
        return f"{name} in {{{', '.join(map(level, outcome.levels[: min(2, len(outcome.levels) - 1)]))}}}"
    bound = outcome.levels[-1] if outcome.kind == "binary" else outcome.levels[-2]
    return f"{name} {'=' if outcome.kind == 'binary' else '<='} {level(bound)}"


SHOWN = 5
# A temperature is measured more often than set.
_SET = ACTIONS.replace("temperature|", "")


def trials_draft(table: ReadTable, file: str, written: str) -> str:
    """The text of a problem file that asks for trials; TableError if fewer than two columns have numbers."""
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
        expected = "expected at least two columns of numbers without empty cells, an action and an outcome"
        got = f"{len(usable)} ({reasons or 'there are no others'})"
        raise TableError(f"{table.where}: {expected} that varies; got {got}")
    outcome = [*measured, *(name for name in measured if has_word(name, OUTCOMES))][-1]
    rest = [name for name in usable if name != outcome]
    # What is set is there before the result is.
    known = [name for name in rest if np.isfinite(numbers_of(ahead[name])).all()] or rest
    actions = [name for name in known if has_word(name, _SET)] or known[:1]
    others = [name for name in rest if name not in actions]
    edges = [(cause, effect) for cause in actions for effect in [*others, outcome]]
    edges += [(cause, outcome) for cause in others]
    left_out, too_many = [name for name in columns if name not in usable], f"one of more than {COLUMNS}"
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
        *(_experiment_line(name, columns[name], "action" if name in actions else "other") for name in rest),
        _experiment_line(outcome, columns[outcome], "outcome"),
        *(f"  # {scalar(name)}: left out: {unfit.get(name, too_many)}" for name in left_out),
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

    def of_numbers(name: str) -> bool:
        empty = frame[name].isna().to_numpy(dtype=bool)
        return not empty.all() and bool((np.isfinite(numbers_of(frame[name])) | empty).all())

    candidates = [name for name in frame.columns if writable(str(name)) and of_numbers(name)]
    named = [name for name in candidates if has_word(str(name), OUTCOMES)]
    if not candidates:
        return np.zeros(len(frame), dtype=bool)
    return np.asarray(frame[[*candidates, *named][-1]].isna().to_numpy(dtype=bool))


def _unfit(name: str, numbers: np.ndarray) -> str:
    """Why a column can be no variable; empty if it can."""
    if not writable(name):
        return "a name of 1 to 200 letters in one line is needed"
    if '"' in name:
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


def _experiment_line(name: str, numbers: np.ndarray, role: str) -> str:
    low, high = float(numbers.min()), float(numbers.max())
    if role != "action":
        return f"  {scalar(name)}: {role}  # {low:.6g} to {high:.6g}"
    high = high if low < high else low + 1
    return f"  {scalar(name)}: {{role: action, range: [{low:.6g}, {high:.6g}]}}  # the range of the table"
