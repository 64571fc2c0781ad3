"""Kinds of variables: which columns are texts, how they are coded, and what actions may be set to.

    binary         two texts, 0 and 1: in the order of levels, else sorted
    ordinal        texts in the order of levels: 0, 1, 2, ...
    categorical    two texts as binary; three and more, of the context and of actions: an indicator for each
                   class but the reference, which is the most frequent class unless it is stated; of an
                   outcome: 1 for the classes that are desired

    continuous     any number; an action needs range: [lower, upper]
    integer        whole numbers; of the range, those that occur in the rows

Numbers of a categorical variable are classes as texts are (`data.codings`); an action of two numbers, or of
whole numbers with an order, is set to those that occur. Of texts and classes, `offered` names those that may
be set, where these are not all. A value that no row has cannot be learnt from, and so is not offered.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from rehearsal_torch.data.codings.coding import (
    MOST,
    NEW,
    Coding,
    coded,
    labelled,
    listed,
    spelled,
    texts_in,
    unknown,
    unseen,
)
from rehearsal_torch.data.codings.task_codings import classes_of, levels_in, places_of
from rehearsal_torch.data.problem_file.cases_schema import VariableForm, has_texts
from rehearsal_torch.data.problem_file.diagnostics import Findings, key
from rehearsal_torch.data.tables.reader import ReadTable, as_number, misspelt_number, numbers_of
from rehearsal_torch.files.redaction import beginning
from rehearsal_torch.files.schema import Fault, FaultsError, is_number
from rehearsal_torch.spaces.box import levels_text

CODED = ("binary", "ordinal", "categorical")
# What tables write in an empty cell.
EMPTY = {"na", "none", "null", "nan", "n/a"}


def only_texts(frame: pd.DataFrame, name: str) -> bool:
    """Whether a column has texts, and nothing that reads as a number."""
    cells = frame[name].dropna().unique().tolist() if name in frame.columns else []
    return bool(cells) and not any(not isinstance(each, str) or is_number(each) for each in cells)


def codings_of(
    variables: Mapping[str, VariableForm], rows: ReadTable, found: Findings
) -> tuple[dict[str, Coding], set[str], list[str]]:
    """The codings of the columns that need one; the columns that have a fault instead; and what was decided
    by itself, a sentence each.
    """
    codings, broken, notes = dict[str, Coding](), set[str](), list[str]()
    for name, about in variables.items():
        if name not in rows.frame.columns:
            continue
        try:
            coding = _coding(name, about, rows.frame[name], rows.where)
        except ValueError as error:
            told = error if isinstance(error, FaultsError) else _wrong(name, str(error))
            found.of_reader(told.faults)
            broken.add(name)
        else:
            if coding is None:
                continue
            codings[name] = coding
            classes = coding.reference is not None
            # Which classes of an outcome are desired says how it is coded.
            if about.reference is None and (about.role != "outcome" if classes else about.levels is None):
                notes.append(f"{name} is coded {coding.words}, {_by_itself(coding, about)}")
    return codings, broken, notes


def _by_itself(coding: Coding, about: VariableForm) -> str:
    """What was not stated, and how it can be."""
    if coding.reference is None:
        return "in alphabetical order (levels: [...] states another)"
    some = "" if about.offered is None else " of those offered"
    return f"the most frequent class{some} (reference: states another)"


def _wrong(name: str, words: str, *part: str) -> FaultsError:
    return FaultsError([Fault(key("variables", name, *part), words)])


def _shown(texts: Sequence[str]) -> str:
    """Some texts for a message; those of a column with many are not shown, since they may be private."""
    return listed(texts) if len(texts) <= 12 else f"{len(texts)} different ones"


def _coding(name: str, about: VariableForm, column: pd.Series, where: str) -> Coding | None:
    """The coding of a column; None if it needs none."""
    texts = texts_in(column)
    if about.kind not in CODED:
        _check_numbers(name, about, texts)
        return None
    # Three different numbers or more may be classes.
    if not (texts or has_texts(about.levels) or (about.kind == "categorical" and column.nunique() > 2)):
        return None
    if about.levels is None:
        _check_unmixed(name, column, texts, where)
    levels = levels_in(column) if about.levels is None else spelled(about.levels, texts)
    if about.kind == "binary" and len(levels) != 2:
        words = f"expected two texts; got {len(levels)}, {_shown(levels)}: write another kind"
        raise _wrong(name, words, "kind" if about.levels is None else "levels")
    if about.kind == "ordinal" and about.levels is None:
        raise _wrong(
            name,
            "the order of its texts is not known: write levels: [...] from the lowest to the highest of "
            f"{_shown(levels)}",
        )
    if about.offered is not None and about.role == "action":
        try:
            places_of(Coding(name, tuple(levels)), about.offered)
        except ValueError as error:
            raise _wrong(name, str(error), "offered") from error
    coding = _of_classes(name, about, column, levels) if about.kind == "categorical" else None
    coding = coding or Coding(name, tuple(levels))
    if (odd := coding.places(column) == -1).any():
        remedy = "correct the column, or add it to levels"
        raise _wrong(name, f"column {name!r} of {where}: {unknown(coding, column, odd)}: {remedy}")
    if lost := unseen(coding, column):
        empty = about.levels is not None and {each.casefold() for each in lost} & EMPTY
        hint = "; cells such as NA, None and null are read as missing" if empty else ""
        raise _wrong(
            name,
            f"no row has {listed(lost)}, so that nothing is known of it{hint}; the rows have "
            f"{_shown(levels_in(column))}: leave it out, or correct it",
            "levels",
        )
    return coding


def _check_numbers(name: str, about: VariableForm, texts: Sequence[str]) -> None:
    """Refuses texts of a variable of numbers."""
    if has_texts(about.levels):
        words = f"levels are texts, and the kind is {about.kind}: write kind: binary, ordinal or categorical"
        raise _wrong(name, words, "levels")
    if len(texts) > 2 and not any(map(is_number, texts)) and about.role != "other":
        remedy = as_number(texts[0]) if all(map(misspelt_number, texts)) else ""
        remedy = (
            f"{remedy} (such as {beginning(texts[0], 30)!r})"
            if remedy
            else "write kind: ordinal with levels: [...] in their order, or kind: categorical without one"
        )
        raise _wrong(name, f"the column has texts ({_shown(texts)}), and the kind is {about.kind}: {remedy}")


def _check_unmixed(name: str, column: pd.Series, texts: Sequence[str], where: str) -> None:
    """Refuses a column that has numbers beside texts."""
    words = [each for each in texts if not is_number(each)]
    cells = column.dropna()
    numbers = np.array([not isinstance(each, str) or is_number(each) for each in cells.tolist()], dtype=bool)
    if words and numbers.any():
        first = int(numbers.argmax())
        raise _wrong(
            name,
            f"the column of {where} has numbers and texts: {beginning(str(cells.iloc[first]), 60)!r} in line "
            f"{int(cells.index[first]) + 2}, {beginning(words[0], 60)!r} elsewhere: correct it, or "
            "state all of them by levels: [...]",
        )


def offered_of(about: VariableForm, levels: Sequence[str]) -> list[str]:
    """The levels that an action may be set to, in their order; all unless ``offered`` names some."""
    named = levels if about.offered is None or about.role != "action" else spelled(about.offered, levels)
    return [each for each in levels if each in named]


def _of_classes(name: str, about: VariableForm, column: pd.Series, levels: Sequence[str]) -> Coding | None:
    """The coding of three classes or more; None for two."""
    if len(levels) <= 2:
        return None
    what = f"categorical with {len(levels)} values ({_shown(levels)})"
    if len(levels) > MOST:
        words = f"{what}; expected at most {MOST} classes: join some of them, or write the role other"
        raise _wrong(name, words, "kind")
    if about.role == "other":
        raise _wrong(
            name,
            f"{what}: of a variable that is not known before deciding, nor set, nor desired, a method has no "
            "model of classes: if it is known before deciding, write the role context; else add a column of "
            "0 and 1 for each class, or write kind: ordinal with levels: [...] if their order has a meaning",
            "kind",
        )
    reference = None if about.reference is None else spelled([about.reference], levels)[0]
    some = offered_of(about, levels)
    stated = about.levels is not None or about.role == "outcome"
    coding = classes_of(name, column, levels, reference, some, stated)
    if coding.reference not in some:
        words = f"{reference} is not offered: name one of {listed(some)}, or leave reference out"
        raise _wrong(name, words, "reference")
    return coding


def cases_in_labels(
    cases: ReadTable,
    codings: Mapping[str, Coding],
    context: Sequence[str],
    found: Findings,
    numbers: Sequence[str] = (),
) -> tuple[pd.DataFrame, list[str]]:
    """The cases with the index of the level in place of each text, and the columns of the context without a
    fault; in columns of numbers, truth values are a fault.
    """
    there = {name: each for name, each in codings.items() if name in cases.frame.columns}
    for name in numbers:
        # YAML reads yes and no as truth values, which say the levels of texts alone.
        cells = cases.frame[name].tolist() if name in cases.frame.columns else []
        truths = [place for place, cell in enumerate(cells) if isinstance(cell, bool | np.bool_)]
        if truths:
            where = cases.at(int(cases.frame.index[truths[0]]))
            found.fault(
                "cases",
                f"{cases.where}: {name}: expected a number; got {cells[truths[0]]} in {where}: write 0 or 1",
            )
    read = coded(cases.frame, there, remedy=NEW, at=cases.at)
    for each in read.faults:
        found.fault("cases", f"{cases.where}: {each}")
    return labelled(cases.frame, there), [name for name in context if name not in read.broken]


TOLERANCE = 1e-9


def kind_faults(name: str, about: VariableForm, column: pd.Series, found: Findings) -> None:
    """Faults of a column of numbers that is not of its kind."""
    numbers, values = numbers_of(column), _values(column)
    path = key("variables", name, "kind")
    odd = np.isfinite(numbers) & (numbers != np.round(numbers))
    if about.kind in ("integer", "ordinal") and odd.any():
        place = int(odd.argmax())
        found.fault(
            path,
            f"expected whole numbers in the column; got {numbers[place]:g} in line "
            f"{int(column.index[place]) + 2}: correct it, or write kind: continuous",
        )
    if about.kind == "binary" and len(values) > 2:
        found.fault(
            path,
            f"expected two values in the column; got {len(values)}, {levels_text(values.tolist())}: correct "
            "the column, or write another kind",
        )


def _values(column: pd.Series) -> np.ndarray:
    """The different finite numbers of a column, sorted."""
    numbers = numbers_of(column)
    return np.unique(numbers[np.isfinite(numbers)])


def settable(
    name: str, about: VariableForm, column: pd.Series, found: Findings, coding: Coding | None = None
) -> Any:
    """What an action may be set to, as a task writes it: [lower, upper] or {values}; None with a fault."""
    try:
        if coding is None:
            return _settable_numbers(name, about, _values(column), found)
        if (part := "range" if about.range is not None else "step" if about.step is not None else "") == "":
            return {"values": offered_of(about, coding.levels)}
        raise _wrong(
            name,
            f"it has {'classes' if coding.of_classes else 'texts'}, all of which are offered "
            f"({listed(coding.levels)}): leave it out, or name some by offered: [...]",
            part,
        )
    except FaultsError as error:
        found.of_reader(error.faults)
        return None


def _settable_numbers(name: str, about: VariableForm, values: np.ndarray, found: Findings) -> Any:
    """The same of an action of numbers, of which the rows have some values."""
    if about.offered is not None:
        words = "is for texts and classes; the column has numbers: name some of them by levels: [...]"
        raise _wrong(name, words, "offered")
    if about.levels is not None:
        offered = [float(each) for each in about.levels]
        near = 1e-9 * (1 + np.abs(values).max(initial=0.0))
        if unseen := [each for each in offered if not (np.abs(values - each) <= near).any()]:
            found.fault(
                key("variables", name, "levels"),
                f"no row has the value {levels_text(unseen)}, so that nothing is known of it; the rows have "
                f"{levels_text(values.tolist())}: offer values that occur, or range",
            )
        return {"values": offered}
    if about.range is None:
        if about.kind in ("binary", "categorical") and len(values):
            return {"values": values.tolist()}
        seen = f", for instance the observed [{values[0]:g}, {values[-1]:g}]" if len(values) else ""
        raise _wrong(name, f"an action needs range: [lower, upper]{seen}, or levels: [...]")
    lower, upper = about.range
    if about.kind == "continuous" and about.step is None:
        return [lower, upper]
    step = about.step or 1.0
    start = lower if about.step is not None else float(np.ceil(lower))
    count = int(np.floor((upper - start) / step + TOLERANCE)) + 1
    inside = values[(values >= lower - TOLERANCE) & (values <= upper + TOLERANCE)]
    turns = np.round((inside - start) / step)
    on_grid = np.abs(start + turns * step - inside) <= TOLERANCE * (1 + np.abs(inside))
    known = inside[on_grid & (turns >= 0) & (turns < max(count, 0))]
    if not len(known):
        raise _wrong(
            name,
            f"no row has one of the values {start:g}, {start + step:g}, ... up to {upper:g}: "
            "nothing is known of their effect; offer values that occur, or leave step out",
        )
    if len(known) < count:
        found.of_variable(
            name,
            "values",
            f"{count - len(known)} of the {count} values that it could be set to occur in no row and are not "
            f"offered; offered are {levels_text(known.tolist())}",
        )
    return {"values": known.tolist()}


def costs(variables: Mapping[str, VariableForm]) -> dict[str, float]:
    """The costs of actions as weights of squared changes, for `micns`; empty if one is no number above 0."""
    given = {name: about.cost for name, about in variables.items() if about.cost is not None}
    if not all(each.up and each.up == each.down and not each.fixed for each in given.values()):
        return {}
    return {name: each.up or 0.0 for name, each in given.items()}


def units_of(variables: Mapping[str, Any]) -> Mapping[str, Any]:
    """The units of variables as words for reports; empty if there are none."""
    units = {name: about.unit for name, about in variables.items() if about.unit}
    return {"units_of": units} if units else {}
