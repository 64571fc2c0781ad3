"""Codings: what the texts of a column are as numbers.

    levels      low, medium, high    ->  0, 1, 2           one column of codes, in the stated order
    classes     A, B, C              ->  (0, 0), (1, 0),   an indicator for each class but the reference, A:
                                         (0, 1)            the columns ward=B and ward=C
    classes     well, mild, ill      ->  1, 1, 0           an outcome, of which well and mild are desired

A variable of two texts has the codes 0 and 1. An indicator is 1 in rows of its class; the reference is the
class of rows in which all indicators are 0, so that the columns do not add up to a constant. An outcome of
classes is coded by whether its class is desired, so that its classes need no order.

YAML reads yes, no, on, off, true and false as truth values: a truth value stands for the level that is one of
these words. A coded column takes the place of a column of levels; the indicators of classes stand beside the
column. A cell that is none of the levels is a fault with its line. Missing cells stay missing.

Source: Suits (1957), for indicators without a reference class.
"""

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from rehearsal_torch.data.tables.header_checks import line_words
from rehearsal_torch.files.bounded_yaml import repeated
from rehearsal_torch.files.redaction import beginning
from rehearsal_torch.files.schema import Fault, did_you_mean, is_number, meant

YES, NO = frozenset(("yes", "on", "true")), frozenset(("no", "off", "false"))
# A column of more different texts has no levels.
MOST = 50
# How many levels a message shows.
_SHOWN = 10
# How far a number may lie from a code.
_ROUNDING = 1e-9
# Of a class with fewer rows, the effect is hardly known, which is a finding.
RARE = 5
# What to do about a cell that is none of the levels: of rows, and of cases.
_ADD = "correct it, or add it to the levels if rows have it"
NEW = "no row to learn from has it, so that nothing is known of it: correct it, or leave the case out"


@dataclass(frozen=True)
class Coding:
    """The coding of one column.

    Attributes:
        name: The column.
        levels: Its texts: levels in the order of their codes 0, 1, ..., classes in any order.
        reference: The class that has no indicator; None for levels, and for an outcome.
        desired: The desired classes of an outcome, in the order of the levels; else empty.

    Raises:
        ValueError: if there are fewer than 2 levels or more than 50, one is empty, occurs twice or would not
            be kept by a configuration, the reference is none of them, or the desired ones are not some.
    """

    name: str
    levels: tuple[str, ...]
    reference: str | None = None
    desired: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "levels", tuple(self.levels))
        if not 2 <= len(self.levels) <= MOST:
            raise ValueError(f"expected 2 to {MOST} different texts; got {len(self.levels)}")
        if twice := repeated(self.levels):
            raise ValueError(f"{twice[0]!r} occurs twice: keep one")
        for level in self.levels:
            if not level.strip() or "${" in level or level == "???":
                raise ValueError(f"{level!r} cannot be a level: write another text in the column")
        if self.reference is not None and self.reference not in self.levels:
            raise ValueError(f"the reference {self.reference!r} is none of {listed(self.levels)}")
        if others := [level for level in self.desired if level not in self.levels]:
            raise ValueError(f"the desired class {others[0]!r} is none of {listed(self.levels)}")
        if self.desired and (self.reference is not None or set(self.desired) == set(self.levels)):
            expected = f"expected some classes of {listed(self.levels)} to be desired, and no reference"
            raise ValueError(f"{expected}; got {listed(self.desired)}")
        object.__setattr__(self, "desired", tuple(level for level in self.levels if level in self.desired))

    @property
    def of_classes(self) -> bool:
        """Whether its texts have no order."""
        return self.reference is not None or bool(self.desired)

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the coded columns: its own, or those of the indicators, such as ``ward=B``."""
        if self.reference is None:
            return (self.name,)
        return tuple(f"{self.name}={level}" for level in self.levels if level != self.reference)

    @property
    def words(self) -> str:
        """The coding in words, such as ``no = 0, yes = 1``."""
        if self.desired:
            others = [level for level in self.levels if level not in self.desired]
            return f"{alternatives(self.desired)} = 1, {alternatives(others)} = 0"
        if self.reference is None:
            return ", ".join(f"{level} = {code}" for code, level in enumerate(self.levels))
        return f"{', '.join(self.levels)}, with {self.reference} as the reference"

    @property
    def counted(self) -> bool:
        """Whether some level is written as a number, so that a number is a level, and no code."""
        return any(map(is_number, self.levels))

    @cached_property
    def rows(self) -> np.ndarray:
        """The coded columns of each level, (levels, columns)."""
        if self.desired:
            return np.array([[float(level in self.desired)] for level in self.levels])
        if self.reference is None:
            return np.arange(len(self.levels), dtype=np.float64)[:, None]
        return np.delete(np.eye(len(self.levels)), self.levels.index(self.reference), axis=1)

    def place(self, cell: Any) -> int | None:
        """The index of a cell's level, also of a number that is written so; None if it is no level."""
        truth = isinstance(cell, bool | np.bool_)
        text = _word_of(bool(cell), self.levels) if truth else text_of(cell)
        return self.levels.index(text) if text in self.levels else None

    def places(self, column: pd.Series) -> np.ndarray:
        """The index of each cell's level, (n,): NaN where it is missing, -1 where it is no level."""
        cells = column.dropna().unique().tolist()
        known = {cell: -1 if (place := self.place(cell)) is None else place for cell in cells}
        return np.asarray(column.astype(object).map(known).to_numpy(np.float64, na_value=np.nan))

    def encoded(self, places: np.ndarray) -> np.ndarray:
        """The coded columns of rows, (n,) -> (n, columns); NaN where a cell is missing."""
        missing = np.isnan(places)
        codes = self.rows[np.where(missing, 0, places).astype(np.int64)]
        return np.where(missing[:, None], np.nan, codes)

    def text(self, values: Sequence[float]) -> str | None:
        """The level, or (un)desired ones, with some values in the coded columns; None if none has them."""
        try:
            near = [abs(float(value) - round(float(value))) <= _ROUNDING for value in values]
        except (TypeError, ValueError, OverflowError):
            return None
        if len(values) != len(self.columns) or not all(near):
            return None
        codes = [float(round(float(value))) for value in values]
        levels = [level for level, row in zip(self.levels, self.rows.tolist(), strict=True) if row == codes]
        return alternatives(levels) if levels else None

    def to_plain(self) -> Any:
        """Plain data: a list of levels, {classes, reference}, or {classes, desired}."""
        levels = list(self.levels)
        if self.desired:
            return {"classes": levels, "desired": list(self.desired)}
        return levels if self.reference is None else {"classes": levels, "reference": self.reference}

    @classmethod
    def of(cls, name: str, plain: Any) -> "Coding":
        """A coding from plain data, as of `to_plain`; ValueError if they are of another form."""
        if isinstance(plain, list | tuple):
            return cls(name, tuple(level_texts(plain)))
        if isinstance(plain, Mapping) and isinstance(plain.get("classes"), list | tuple):
            classes = tuple(level_texts(plain["classes"]))
            if set(plain) == {"classes", "reference"}:
                return cls(name, classes, level_texts([plain["reference"]])[0])
            if set(plain) == {"classes", "desired"} and isinstance(plain["desired"], list | tuple):
                return cls(name, classes, None, tuple(level_texts(plain["desired"])))
        raise ValueError(no_coding(plain))


def no_coding(plain: Any) -> str:
    """The fault of plain data that are no coding."""
    expected = "expected its texts in the order of their codes, [low, medium, high]"
    return f"{expected}, or {{classes: [A, B, C], reference: A}}; got {beginning(str(plain), 60)!r}"


def text_of(cell: Any) -> str | None:
    """The text of a cell, also of a finite number; None for anything else."""
    if isinstance(cell, str):
        return cell.strip()
    if isinstance(cell, bool | np.bool_) or not isinstance(cell, int | float | np.number):
        return None
    try:
        return f"{float(cell) + 0.0:.15g}" if math.isfinite(cell) else None
    except OverflowError:
        return None


def _word_of(truth: bool, texts: Sequence[str]) -> str | None:
    """The text that says a truth value; None if none does, or several do."""
    words = [text for text in texts if text.casefold() in (YES if truth else NO)]
    return words[0] if len(words) == 1 else None


def level_texts(levels: Iterable[Any], texts: Sequence[str] = ()) -> list[str]:
    """Levels as texts; a truth value is the one of the column's texts that says it, else yes or no."""
    if isinstance(levels, str):
        raise ValueError(f"expected a list of texts; got the text {beginning(levels, 60)!r}")
    spelled = []
    for level in levels:
        truth = isinstance(level, bool)
        text = _word_of(level, texts) or ("yes" if level else "no") if truth else text_of(level)
        if text is None:
            raise ValueError(
                f"expected texts or numbers; got {beginning(str(level), 60)!r}: put it in quotes"
            )
        spelled.append(text)
    return spelled


def hinted(text: str, levels: Sequence[str]) -> str:
    """The level that was probably meant, as the end of a message; empty if none is similar."""
    near = did_you_mean(text, levels)
    return f"; {near}" if near else ""


def alternatives(levels: Sequence[str]) -> str:
    """One of some levels in words, such as "well, mild or ill"; the first ones if there are many."""
    if len(levels) > _SHOWN:
        return listed(levels)
    return " or ".join([", ".join(levels[:-1]), levels[-1]] if len(levels) > 1 else levels)


def listed(levels: Sequence[str]) -> str:
    """Levels for messages: the first ones, and how many there are if there are more."""
    more = f", ... ({len(levels)} in all)" if len(levels) > _SHOWN else ""
    return ", ".join(map(str, levels[:_SHOWN])) + more


@dataclass(frozen=True)
class Coded:
    """A table with coded columns, a fault for each column that cannot be coded, and the names of these."""

    frame: pd.DataFrame
    faults: tuple[str, ...] = ()
    broken: frozenset[str] = frozenset()


def coded(
    frame: pd.DataFrame,
    codings: Mapping[str, Coding],
    needed: Collection[str] = (),
    remedy: str = _ADD,
    at: Callable[[int], str] = line_words,
) -> Coded:
    """A table with codes in place of texts.

    Args:
        needed: Columns whose absence is a fault.
        remedy: What to do about a text that is no level.
        at: Where a row stands, in words, from its index.
    """
    codes, faults, broken = dict[str, np.ndarray](), list[str](), set[str]()
    for name, coding in codings.items():
        if name not in frame.columns:
            if name in needed:
                faults.append(f"no column {name!r}; {meant(name, [str(each) for each in frame.columns])}")
                broken |= {name, *coding.columns}
            continue
        places = coding.places(frame[name])
        if (outside := places == -1).any():
            faults.append(f"{name}: {unknown_level(coding, frame[name], outside, at)}: {remedy}")
            broken |= {name, *coding.columns}
        else:
            codes |= dict(zip(coding.columns, coding.encoded(places).T, strict=True))
    for name in codes:
        if name in frame.columns and name not in codings:
            faults.append(f"{name}: there is a column of this name beside the column of classes: rename it")
            broken.add(name)
    if codes:
        others = frame.drop(columns=[name for name in codes if name in frame.columns])
        frame = pd.concat([others, pd.DataFrame(codes, index=frame.index)], axis=1)
    return Coded(frame, tuple(faults), frozenset(broken))


def with_level_places(frame: pd.DataFrame, codings: Mapping[str, Coding]) -> pd.DataFrame:
    """A table with the index of the level in place of each text, NaN where a cell is no level."""
    places = {name: each.places(frame[name]) for name, each in codings.items() if name in frame.columns}
    return frame.assign(**{name: np.where(each == -1, np.nan, each) for name, each in places.items()})


def unknown_level(
    coding: Coding, column: pd.Series, marked: np.ndarray, at: Callable[[int], str] = line_words
) -> str:
    """Which cell is no level, and how many others, in words; `marked` are those, (n,) bool."""
    first = int(marked.argmax())
    cell, where, hint = column.iloc[first], at(int(column.index[first])), ""
    got = f"the number {text_of(cell) or cell}"
    if isinstance(cell, str):
        got, near = repr(beginning(cell, 60)), did_you_mean(cell[:60], coding.levels)
        hint = f" ({near})" if near else ""
    others = int(marked.sum()) - 1
    more = f" (and others in {others} further {'rows' if others > 1 else 'row'})" if others else ""
    return f"expected one of {listed(coding.levels)}; got {got} in {where}{more}{hint}"


def unseen_levels(coding: Coding, column: pd.Series) -> list[str]:
    """The levels that no row has."""
    known = set(coding.places(column).tolist())
    return [level for place, level in enumerate(coding.levels) if place not in known]


def rare_classes(frame: pd.DataFrame, codings: Mapping[str, Coding]) -> dict[str, str]:
    """Variable to a sentence, for those of which some class has fewer than five rows, but one at least."""
    sentences = {}
    for name, coding in codings.items():
        if coding.reference is None or name not in frame.columns:
            continue
        places = coding.places(frame[name])
        counts = {level: int((places == place).sum()) for place, level in enumerate(coding.levels)}
        if few := [f"{level} in {count}" for level, count in counts.items() if 0 < count < RARE]:
            sentences[name] = (
                f"has classes that few rows have ({', '.join(few)} of {len(frame)} rows), so that little is "
                "known of them: join them with others, or add rows"
            )
    return sentences


def lost_classes(frame: pd.DataFrame, codings: Iterable[Coding]) -> list[str]:
    """A fault for each class that no row has; `frame` has coded columns."""
    return [
        f"{coding.name}: none of {len(frame)} rows has the class {name.removeprefix(f'{coding.name}=')}; the "
        "rows that have it are held out: join it with another class, add rows, or hold no rows out"
        for coding in codings
        if coding.reference is not None
        for name in coding.columns
        if name in frame.columns and not (frame[name] == 1).any()
    ]


def uncoded(fault: str) -> str:
    """A fault; of a column of texts, with how a task codes them."""
    if not isinstance(fault, Fault) or fault.kind != "texts":
        return fault
    return f"{fault}; or name its texts in the task, codings: {{{fault.path}: [first, second, ...]}}"


def texts_in(column: pd.Series) -> list[str]:
    """The different texts of a column, sorted; numbers are left out."""
    if column.dtype.kind in "biufcmM":
        return []
    return sorted({cell.strip() for cell in column.dropna().unique().tolist() if isinstance(cell, str)})


def of_numbers(frame: pd.DataFrame, name: str) -> bool:
    """Whether a name is to be a column of numbers: neither one of texts, nor the indicator of a class."""
    if name not in frame.columns:
        return "=" not in name or name.partition("=")[0] not in frame.columns
    return not texts_in(frame[name])
