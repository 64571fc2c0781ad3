"""Kinds of variables: which columns are texts, how they are coded, and what actions may be set to.

    binary         two texts, 0 and 1: in the order of levels, else sorted
    ordinal        texts in the order of levels: 0, 1, 2, ...
    categorical    two texts as binary, unless a reference is stated; three and more, of the context and of
                   actions: an indicator for each class but the reference, by default the most frequent
                   class; of an outcome: 1 for the classes that are desired

    continuous     any number; an action needs range: [lower, upper]
    integer        whole numbers; of the range, those that occur in the rows

Numbers of a categorical variable are classes as texts are (`data.codings`); an action of two numbers, or of
whole numbers with an order, is set to those that occur. Of texts and classes, `offered` names those that may
be set, where these are not all. A value that no row has cannot be learnt from, and so is not offered.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from rehearsal_torch.data.codings.coding import (
    MOST,
    NEW,
    Coding,
    coded,
    level_texts,
    listed,
    texts_in,
    unknown_level,
    unseen_levels,
    with_level_places,
)
from rehearsal_torch.data.codings.task_codings import box_in_codes, levels_in
from rehearsal_torch.data.problem_file.cases_schema import VariableForm, has_texts
from rehearsal_torch.data.problem_file.diagnostics import Findings, first_row, key
from rehearsal_torch.data.tables.reader import ReadTable, as_number, misspelt_number, numbers_of
from rehearsal_torch.files.redaction import beginning
from rehearsal_torch.files.schema import Fault, FaultsError, is_number
from rehearsal_torch.spaces.box import levels_text

# The kinds that texts may be of.
CODED = ("binary", "ordinal", "categorical")
# What tables may have in an empty cell.
_EMPTY = {"na", "none", "null", "nan", "n/a"}
TOLERANCE = 1e-9


def only_texts(frame: pd.DataFrame, name: str) -> bool:
    """Whether a column has texts, and nothing that reads as a number."""
    cells = frame[name].dropna().unique().tolist() if name in frame.columns else []
    return bool(cells) and all(isinstance(cell, str) and not is_number(cell) for cell in cells)


def codings_of(
    variables: Mapping[str, VariableForm], rows: ReadTable, found: Findings
) -> tuple[dict[str, Coding], set[str], list[str]]:
    """The codings of the columns that need one; the columns with a fault instead; and a note for each coding
    that the file leaves to the rows.
    """
    columns = [name for name in variables if name in rows.frame.columns]
    codings, broken = collected(
        columns, lambda name: _coding(name, variables[name], rows.frame[name], rows.where), found
    )
    notes = list[str]()
    for name, coding in codings.items():
        variable = variables[name]
        if coding.reference is None and variable.reference is None and variable.levels is None:
            rule = "in alphabetical order (levels: [...] states another)"
            notes.append(f"{name} is coded {coding.words}, {rule}")
        # An outcome of classes is coded by which of them are desired.
        elif coding.reference is not None and variable.reference is None and variable.role != "outcome":
            offered = "" if variable.offered is None else " of those offered"
            rule = f"the most frequent class{offered} (reference: states another)"
            notes.append(f"{name} is coded {coding.words}, {rule}")
    return codings, broken, notes


def collected(
    names: Iterable[str], coding_of: Callable[[str], Coding | None], found: Findings
) -> tuple[dict[str, Coding], set[str]]:
    """The codings of variables that need one, and the variables with a fault, which is collected."""
    codings, broken = dict[str, Coding](), set[str]()
    for name in names:
        try:
            if (coding := coding_of(name)) is not None:
                codings[name] = coding
        except ValueError as error:
            found.add_faults((error if isinstance(error, FaultsError) else _fault(name, str(error))).faults)
            broken.add(name)
    return codings, broken


def _fault(name: str, words: str, *setting: str) -> FaultsError:
    """The error that a variable, or one of its settings, raises."""
    return FaultsError([Fault(key("variables", name, *setting), words)])


def _shown(texts: Sequence[str]) -> str:
    """Some texts for a message; those of a column with many are not shown, since they may be private."""
    return listed(texts) if len(texts) <= 12 else f"{len(texts)} different ones"


def stated_coding(
    name: str,
    variable: VariableForm,
    column: pd.Series | None = None,
    known: Coding | None = None,
    task: bool = False,
) -> Coding:
    """The coding of a variable of texts or classes. Levels and reference that it does not state are those of
    a column, else of a known coding. The most frequent class is the reference, the first of several, and is
    the first one if no order is stated, so that columns, and what is estimated from them, do not depend on
    names. Two classes that a task lists have a reference, too.
    """
    by_rows = variable.levels is None
    no_reference = variable.kind == "categorical" and variable.reference is None and variable.desired is None
    if column is None and (by_rows or no_reference):
        if known is None:
            part = "levels" if by_rows else "reference"
            raise _fault(name, f"it needs the rows, and there are none here: name the {part}")
        return known
    texts = [] if column is None else levels_in(column)
    levels = texts if variable.levels is None else level_texts(variable.levels, texts)
    if variable.kind == "binary" and len(levels) != 2:
        words = f"expected two texts; got {len(levels)}, {_shown(levels)}: write another kind"
        raise _fault(name, words, "kind" if by_rows else "levels")
    reference = None if variable.reference is None else level_texts([variable.reference], levels)[0]
    if variable.desired is not None:
        return Coding(name, tuple(levels), reference, tuple(level_texts(variable.desired, levels)))
    of_two = (reference is not None and variable.role != "other") or (task and not by_rows)
    if variable.kind != "categorical" or not (len(levels) > 2 or of_two):
        return Coding(name, tuple(levels))
    if len(levels) > MOST and not task:
        expected = f"expected at most {MOST} classes: join some of them, or write the role other"
        raise _fault(name, f"{_classes(levels)}; {expected}", "kind")
    coding = Coding(name, tuple(levels), reference)
    if column is None:
        return coding
    places, offered = coding.places(column), _offered(variable, levels) or levels
    counts = {level: int((places == place).sum()) for place, level in enumerate(levels)}
    if task and reference is None and (lost := [level for level in levels if not counts[level]]):
        raise _fault(name, f"no row has {listed(lost)}, so that nothing is known of it: leave it out")
    frequent = sorted(levels, key=lambda level: -counts[level])
    reference = reference or next(level for level in frequent if level in offered)
    stated = not by_rows or (variable.role == "outcome" and not task)
    return Coding(name, tuple(levels if stated else frequent), reference)


def _classes(levels: Sequence[str]) -> str:
    return f"categorical with {len(levels)} values ({_shown(levels)})"


def _coding(name: str, variable: VariableForm, column: pd.Series, where: str) -> Coding | None:
    """The coding of a column of a file; None if it needs none."""
    texts = texts_in(column)
    if variable.kind not in CODED:
        _check_numbers(name, variable, texts)
        return None
    # Three different numbers or more may be classes.
    classes = variable.kind == "categorical" and column.nunique() > 2
    if not (texts or has_texts(variable.levels) or classes):
        return None
    if variable.levels is None:
        _check_unmixed(name, column, texts, where)
        if variable.kind == "ordinal":
            remedy = f"write levels: [...] from the lowest to the highest of {_shown(levels_in(column))}"
            raise _fault(name, f"the order of its texts is not known: {remedy}")
    coding = stated_coding(name, variable, column)
    if coding.reference is not None and variable.role == "other":
        raise _fault(
            name,
            f"{_classes(coding.levels)}: of a variable that is not known before deciding, nor set, nor "
            "desired, a method has no model of classes: if it is known before deciding, write the role "
            "context; else add a column of 0 and 1 for each class, or write kind: ordinal with levels: [...] "
            "if their order has a meaning",
            "kind",
        )
    offered = _offered(variable, coding.levels)
    known = 0 < len(offered) == len(variable.offered or offered)
    if coding.reference is not None and known and coding.reference not in offered:
        words = f"{coding.reference} is not offered: name one of {listed(offered)}, or leave reference out"
        raise _fault(name, words, "reference")
    if (outside := coding.places(column) == -1).any():
        remedy = "correct the column, or add it to levels"
        raise _fault(name, f"column {name!r} of {where}: {unknown_level(coding, column, outside)}: {remedy}")
    if lost := unseen_levels(coding, column):
        empty = variable.levels is not None and not _EMPTY.isdisjoint(map(str.casefold, lost))
        hint = "; cells such as NA, None and null are read as missing" if empty else ""
        rows = f"the rows have {_shown(levels_in(column))}: leave it out, or correct it"
        words = f"no row has {listed(lost)}, so that nothing is known of it{hint}; {rows}"
        raise _fault(name, words, "levels")
    return coding


def _check_numbers(name: str, variable: VariableForm, texts: Sequence[str]) -> None:
    """Refuses texts of a variable of numbers."""
    if has_texts(variable.levels):
        remedy = "write kind: binary, ordinal or categorical"
        raise _fault(name, f"levels are texts, and the kind is {variable.kind}: {remedy}", "levels")
    if len(texts) > 2 and not any(map(is_number, texts)) and variable.role != "other":
        remedy = "write kind: ordinal with levels: [...] in their order, or kind: categorical without one"
        if all(map(misspelt_number, texts)) and (spelling := as_number(texts[0])):
            remedy = f"{spelling} (such as {beginning(texts[0], 30)!r})"
        raise _fault(
            name, f"the column has texts ({_shown(texts)}), and the kind is {variable.kind}: {remedy}"
        )


def _check_unmixed(name: str, column: pd.Series, texts: Sequence[str], where: str) -> None:
    """Refuses a column that has numbers beside texts."""
    words = next((text for text in texts if not is_number(text)), None)
    cells = column.dropna()
    numbers = cells[[not isinstance(cell, str) or is_number(cell) for cell in cells.tolist()]]
    if words is not None and len(numbers):
        first = f"{beginning(str(numbers.iloc[0]), 60)!r} in line {int(numbers.index[0]) + 2}"
        remedy = "correct it, or state all of them by levels: [...]"
        got = f"{first}, {beginning(words, 60)!r} elsewhere"
        raise _fault(name, f"the column of {where} has numbers and texts: {got}: {remedy}")


def _offered(variable: VariableForm, levels: Sequence[str]) -> list[str]:
    """The levels that an action may be set to, in their order; all unless ``offered`` names some."""
    if variable.offered is None or variable.role != "action":
        return list(levels)
    offered = level_texts(variable.offered, levels)
    return [level for level in levels if level in offered]


def cases_in_labels(
    cases: ReadTable,
    codings: Mapping[str, Coding],
    context: Sequence[str],
    found: Findings,
    numbers: Sequence[str] = (),
) -> tuple[pd.DataFrame, list[str]]:
    """The cases with the index of the level in place of each text, and the columns of the context without a
    fault; collects faults of texts, and of truth values in columns of `numbers`.
    """
    # YAML reads yes and no as truth values, which can only stand for texts.
    for name in [name for name in numbers if name in cases.frame.columns]:
        truths = cases.frame[name].map(lambda cell: isinstance(cell, bool | np.bool_))
        if truths.any():
            got = f"{cases.frame[name][truths].iloc[0]} in {first_row(cases, truths)}"
            found.fault("cases", f"{cases.where}: {name}: expected a number; got {got}: write 0 or 1")
    known = {name: coding for name, coding in codings.items() if name in cases.frame.columns}
    read = coded(cases.frame, known, remedy=NEW, at=cases.at)
    for words in read.faults:
        found.fault("cases", f"{cases.where}: {words}")
    return with_level_places(cases.frame, known), [name for name in context if name not in read.broken]


def kind_faults(name: str, variable: VariableForm, column: pd.Series, found: Findings) -> None:
    """Collects faults of a column of numbers that is not of its kind."""
    numbers, values = numbers_of(column), _values(column)
    path = key("variables", name, "kind")
    fractional = np.isfinite(numbers) & (numbers != np.round(numbers))
    if variable.kind in ("integer", "ordinal") and fractional.any():
        place = int(fractional.argmax())
        got = f"{numbers[place]:g} in line {int(column.index[place]) + 2}"
        remedy = "correct it, or write kind: continuous"
        found.fault(path, f"expected whole numbers in the column; got {got}: {remedy}")
    if variable.kind == "binary" and len(values) > 2:
        got = f"{len(values)}, {levels_text(values.tolist())}"
        remedy = "correct the column, or write another kind"
        found.fault(path, f"expected two values in the column; got {got}: {remedy}")


def _values(column: pd.Series) -> np.ndarray:
    """The different finite numbers of a column, sorted."""
    numbers = numbers_of(column)
    return np.unique(numbers[np.isfinite(numbers)])


def settable(
    name: str, variable: VariableForm, column: pd.Series | None, found: Findings, coding: Coding | None = None
) -> dict[str, Any] | None:
    """What the columns of an action may be set to, [lower, upper] or {values}, of which its own has some;
    None with a fault.
    """
    try:
        if coding is None and column is not None:
            return {name: _settable_numbers(name, variable, _values(column), found)}
        if coding is None:
            stated = variable.range if variable.levels is None else {"values": variable.levels}
            return None if stated is None else {name: stated}
        for setting in ("range", "step"):
            if getattr(variable, setting) is not None:
                what = f"{'classes' if coding.of_classes else 'texts'}, all of which are offered"
                remedy = "leave it out, or name some by offered: [...]"
                raise _fault(name, f"it has {what} ({listed(coding.levels)}): {remedy}", setting)
        return box_in_codes(coding, coding.levels if variable.offered is None else variable.offered)
    except FaultsError as error:
        found.add_faults(error.faults)
    except ValueError as error:
        found.fault(key("variables", name, "offered"), str(error))
    return None


def _settable_numbers(name: str, variable: VariableForm, values: np.ndarray, found: Findings) -> Any:
    """What an action of numbers may be set to, of which the rows have some values."""
    if variable.offered is not None:
        words = "is for texts and classes; the column has numbers: name some of them by levels: [...]"
        raise _fault(name, words, "offered")
    if variable.levels is not None:
        levels = [float(level) for level in variable.levels]
        near = TOLERANCE * (1 + np.abs(values).max(initial=0.0))
        if lost := [level for level in levels if not (np.abs(values - level) <= near).any()]:
            rows = f"the rows have {levels_text(values.tolist())}: offer values that occur, or range"
            words = f"no row has {levels_text(lost, 'the value ')}, so that nothing is known of it; {rows}"
            found.fault(key("variables", name, "levels"), words)
        return {"values": levels}
    if variable.range is None:
        if variable.kind in ("binary", "categorical") and len(values):
            return {"values": values.tolist()}
        example = f", for instance the observed [{values[0]:g}, {values[-1]:g}]" if len(values) else ""
        raise _fault(name, f"an action needs range: [lower, upper]{example}, or levels: [...]")
    lower, upper = variable.range
    if variable.kind == "continuous" and variable.step is None:
        return [lower, upper]
    step = variable.step or 1.0
    start = lower if variable.step is not None else float(np.ceil(lower))
    count = int(np.floor((upper - start) / step + TOLERANCE)) + 1
    inside = values[(values >= lower - TOLERANCE) & (values <= upper + TOLERANCE)]
    steps = np.round((inside - start) / step)
    on_grid = np.abs(start + steps * step - inside) <= TOLERANCE * (1 + np.abs(inside))
    known = inside[on_grid & (steps >= 0) & (steps < count)]
    if not len(known):
        grid = f"{start:g}, {start + step:g}, ... up to {upper:g}"
        remedy = "nothing is known of their effect; offer values that occur, or leave step out"
        raise _fault(name, f"no row has one of the values {grid}: {remedy}")
    if len(known) < count:
        absent = f"{count - len(known)} of the {count} values that it could be set to occur in no row"
        words = f"{absent} and are not offered; offered are {levels_text(known.tolist())}"
        found.of_variable(name, "values", words)
    return {"values": known.tolist()}


def costs(variables: Mapping[str, VariableForm]) -> dict[str, float]:
    """The costs of actions as weights of squared changes, for `micns`; empty if one is no number above 0."""
    stated = {name: variable.cost for name, variable in variables.items() if variable.cost is not None}
    if not all(cost.up and cost.up == cost.down and not cost.fixed for cost in stated.values()):
        return {}
    return {name: cost.up or 0.0 for name, cost in stated.items()}


def units_of(variables: Mapping[str, Any]) -> Mapping[str, Any]:
    """The units of variables as wording of reports; empty if there are none."""
    units = {name: variable.unit for name, variable in variables.items() if variable.unit}
    return {"units_of": units} if units else {}
