"""Codings: what the texts of a column are as numbers.

    levels      low, medium, high    ->  0, 1, 2           one column of codes, in the stated order
    classes     A, B, C              ->  (0, 0), (1, 0),   an indicator for each class but the reference, A:
                                         (0, 1)            the columns ward=B and ward=C
    classes     well, mild, ill      ->  1, 1, 0           an outcome, of which well and mild are desired

A variable of two texts has the codes 0 and 1. An indicator is 1 in rows of its class; the reference is the
class of rows in which all indicators are 0, so that the columns do not add up to a constant. Of an outcome
only whether its class is desired is kept, so that its classes need no order.

YAML reads yes, no, on, off, true and false as truth values: a truth value stands for the level that is one of
these words.

A coded column takes the place of a column of levels; the indicators of classes stand beside the column. A
cell that states none of the levels is a fault with its line. Missing cells stay missing.

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
from rehearsal_torch.files.schema import Fault, is_number, meant

YES, NO = frozenset(("yes", "on", "true")), frozenset(("no", "off", "false"))
# More levels than these are no levels but texts.
MOST = 50
# How many levels a message shows.
SHOWN = 10
CLOSE = 1e-9


@dataclass(frozen=True)
class Coding:
    """The coding of one column.

    Attributes:
        name: The column.
        levels: Its texts: of levels in the order of their codes 0, 1, ..., of classes in any order.
        reference: Of classes: the one that has no indicator; None for levels, and for an outcome.
        desired: Of classes of an outcome: those that are desired, in the order of the levels; else empty.

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
        if odd := [each for each in self.levels if not each.strip() or "${" in each or each == "???"]:
            raise ValueError(f"{odd[0]!r} cannot be a level: write another text in the column")
        if self.reference is not None and self.reference not in self.levels:
            raise ValueError(f"the reference {self.reference!r} is none of {listed(self.levels)}")
        if unknown := [each for each in self.desired if each not in self.levels]:
            raise ValueError(f"the desired class {unknown[0]!r} is none of {listed(self.levels)}")
        if self.desired and (self.reference is not None or set(self.desired) == set(self.levels)):
            expected = f"expected some classes of {listed(self.levels)} to be desired, and no reference"
            raise ValueError(f"{expected}; got {listed(self.desired)}")
        ordered = tuple(each for each in self.levels if each in self.desired)
        object.__setattr__(self, "desired", ordered)

    @property
    def of_classes(self) -> bool:
        """Whether its texts have no order."""
        return self.reference is not None or bool(self.desired)

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the coded columns: its own, or those of the indicators, such as ``ward=B``."""
        if self.reference is None:
            return (self.name,)
        return tuple(f"{self.name}={each}" for each in self._indicated)

    @property
    def words(self) -> str:
        """The coding in words, such as ``no = 0, yes = 1``."""
        if self.desired:
            others = [each for each in self.levels if each not in self.desired]
            return f"{either(self.desired)} = 1, {either(others)} = 0"
        if self.reference is None:
            return ", ".join(f"{each} = {code}" for code, each in enumerate(self.levels))
        return f"{', '.join(self.levels)}, with {self.reference} as the reference"

    @property
    def counted(self) -> bool:
        """Whether some level is written as a number, so that a number states a level or nothing."""
        return any(is_number(each) for each in self.levels)

    @cached_property
    def rows(self) -> np.ndarray:
        """The coded columns of each level, (levels, columns)."""
        if self.desired:
            return np.array([[float(each in self.desired)] for each in self.levels])
        if self.reference is None:
            return np.arange(len(self.levels), dtype=np.float64)[:, None]
        return np.stack([[float(each == one) for one in self._indicated] for each in self.levels])

    @property
    def _indicated(self) -> tuple[str, ...]:
        return tuple(each for each in self.levels if each != self.reference)

    def place(self, cell: Any) -> int | None:
        """The index of the level that a cell states, also as a number that is written so; None for none."""
        truth = isinstance(cell, bool | np.bool_)
        text = _word_of(bool(cell), self.levels) if truth else text_of(cell)
        return self.levels.index(text) if text in self.levels else None

    def places(self, column: pd.Series) -> np.ndarray:
        """The index of each cell's level, (n,): NaN where it is missing, -1 where it states no level."""
        cells = column.dropna().unique().tolist()
        known = {cell: -1 if (place := self.place(cell)) is None else place for cell in cells}
        found = column.astype(object).map(known)
        return np.asarray(found.to_numpy(np.float64, na_value=np.nan))

    def encoded(self, places: np.ndarray) -> np.ndarray:
        """The coded columns of rows, (n,) -> (n, columns); NaN where a cell is missing."""
        missing = np.isnan(places)
        found = self.rows[np.where(missing, 0, places).astype(np.int64)].copy()
        found[missing] = np.nan
        return found

    def text(self, values: Sequence[float]) -> str | None:
        """The level, or (un)desired ones, with some values in the coded columns; None if none has them."""
        try:
            near = [abs(float(each) - round(float(each))) <= CLOSE for each in values]
        except (TypeError, ValueError, OverflowError):
            return None
        if len(values) != len(self.columns) or not all(near):
            return None
        wanted = [float(round(float(each))) for each in values]
        found = [self.levels[place] for place, row in enumerate(self.rows.tolist()) if row == wanted]
        return either(found) if found else None

    def to_plain(self) -> Any:
        """Plain data: a list of levels, {classes, reference}, or {classes, desired}."""
        levels = list(self.levels)
        if self.desired:
            return {"classes": levels, "desired": list(self.desired)}
        return levels if self.reference is None else {"classes": levels, "reference": self.reference}

    @classmethod
    def of(cls, name: str, plain: Any) -> "Coding":
        """A coding from plain data; a ValueError if they are of another form."""
        if isinstance(plain, list | tuple):
            return cls(name, tuple(spelled(plain)))
        classes = plain.get("classes") if isinstance(plain, Mapping) else None
        if isinstance(plain, Mapping) and isinstance(classes, list | tuple):
            if set(plain) == {"classes", "reference"}:
                (reference,) = spelled([plain["reference"]])
                return cls(name, tuple(spelled(classes)), reference)
            if set(plain) == {"classes", "desired"} and isinstance(plain["desired"], list | tuple):
                return cls(name, tuple(spelled(classes)), None, tuple(spelled(plain["desired"])))
        expected = "expected its texts in the order of their codes, [low, medium, high]"
        got = f"got {beginning(str(plain), 60)!r}"
        raise ValueError(f"{expected}, or {{classes: [A, B, C], reference: A}}; {got}")


def text_of(cell: Any) -> str | None:
    """A cell as a level is written; None for anything but texts and finite numbers."""
    if isinstance(cell, str):
        return cell.strip()
    if isinstance(cell, bool | np.bool_) or not isinstance(cell, int | float | np.number):
        return None
    try:
        return f"{float(cell) + 0.0:.15g}" if math.isfinite(cell) else None
    except OverflowError:
        return None


def _word_of(truth: bool, texts: Sequence[str]) -> str | None:
    """The one of some texts that says a truth value; None if none does, or several do."""
    words = [text for text in texts if text.casefold() in (YES if truth else NO)]
    return words[0] if len(words) == 1 else None


def spelled(levels: Iterable[Any], texts: Sequence[str] = ()) -> list[str]:
    """Levels as texts; a truth value is the one of the column's texts that says it, else yes or no."""
    if isinstance(levels, str):
        raise ValueError(f"expected a list of texts; got the text {beginning(levels, 60)!r}")
    found = []
    for each in levels:
        text = text_of(each)
        if isinstance(each, bool):
            text = _word_of(each, texts) or ("yes" if each else "no")
        if text is None:
            raise ValueError(f"expected texts or numbers; got {beginning(str(each), 60)!r}: put it in quotes")
        found.append(text)
    return found


def hinted(text: str, levels: Sequence[str]) -> str:
    """The level that was probably meant, as the end of a message; empty if none is near."""
    same = [each for each in levels if each.casefold() == text.casefold()]
    near = f"did you mean {same[0]!r}?" if same else meant(text, levels)
    return f"; {near}" if near.startswith("did you mean") else ""


def either(levels: Sequence[str]) -> str:
    """One of some levels in words: well, mild or none; the first ones if there are many."""
    if len(levels) > SHOWN:
        return listed(levels)
    return " or ".join([", ".join(levels[:-1]), levels[-1]] if len(levels) > 1 else levels)


def listed(levels: Sequence[str], shown: int = SHOWN) -> str:
    """Levels for messages: the first ones, and how many there are if there are more."""
    more = f", ... ({len(levels)} in all)" if len(levels) > shown else ""
    return ", ".join(map(str, levels[:shown])) + more


ADD = "correct it, or add it to the levels if rows have it"
NEW = "no row to learn from has it, so that nothing is known of it: correct it, or leave the case out"
# A class of fewer rows is told: its effect is hardly known.
RARE = 5


@dataclass(frozen=True)
class Coded:
    """A table with coded columns, a fault for each column that cannot be coded, and these columns."""

    frame: pd.DataFrame
    faults: tuple[str, ...] = ()
    broken: frozenset[str] = frozenset()


def coded(
    frame: pd.DataFrame,
    codings: Mapping[str, Coding],
    needed: Collection[str] = (),
    remedy: str = ADD,
    at: Callable[[int], str] = line_words,
) -> Coded:
    """A table with codes in place of texts.

    Args:
        needed: Columns whose absence is a fault; others are coded if they are there.
        remedy: What to do about a text that is no level.
    """
    made, faults, broken = dict[str, np.ndarray](), list[str](), set[str]()
    for name, coding in codings.items():
        if name not in frame.columns:
            if name in needed:
                faults.append(f"no column {name!r}; {meant(name, [str(each) for each in frame.columns])}")
                broken |= {name, *coding.columns}
            continue
        places = coding.places(frame[name])
        odd = places == -1
        if odd.any():
            faults.append(f"{name}: {unknown(coding, frame[name], odd, at)}: {remedy}")
            broken |= {name, *coding.columns}
            continue
        made |= dict(zip(coding.columns, coding.encoded(places).T, strict=True))
    for name in [name for name in made if name in frame.columns and name not in codings]:
        faults.append(f"{name}: there is a column of this name beside the column of classes: rename it")
        broken.add(name)
    if not made:
        return Coded(frame, tuple(faults), frozenset(broken))
    beside = frame.drop(columns=[name for name in made if name in frame.columns])
    columns = pd.DataFrame(made, index=frame.index)
    return Coded(pd.concat([beside, columns], axis=1), tuple(faults), frozenset(broken))


def labelled(frame: pd.DataFrame, codings: Mapping[str, Coding]) -> pd.DataFrame:
    """A table with the index of the level in place of each text, NaN where a cell states none."""
    found = {
        name: np.where((places := coding.places(frame[name])) == -1, np.nan, places)
        for name, coding in codings.items()
        if name in frame.columns
    }
    return frame.assign(**found) if found else frame


def unknown(coding: Coding, column: pd.Series, odd: np.ndarray, at: Callable[[int], str] = line_words) -> str:
    """Which cell states no level, in words; `odd` marks those that do not, (n,) bool."""
    first = int(odd.argmax())
    cell = column.iloc[first]
    got = repr(beginning(cell, 60)) if isinstance(cell, str) else f"the number {text_of(cell) or cell}"
    near = meant(cell[:60], coding.levels) if isinstance(cell, str) else ""
    hint = f" ({near})" if near.startswith("did you mean") else ""
    others = int(odd.sum()) - 1
    more = f" (and others in {others} further {'rows' if others > 1 else 'row'})" if others else ""
    where = at(int(column.index[first]))
    return f"expected one of {listed(coding.levels)}; got {got} in {where}{more}{hint}"


def unseen(coding: Coding, column: pd.Series) -> list[str]:
    """The levels that no row has."""
    known = set(coding.places(column).tolist())
    return [each for place, each in enumerate(coding.levels) if place not in known]


def rare_classes(frame: pd.DataFrame, codings: Mapping[str, Coding]) -> dict[str, str]:
    """Each variable of classes of which some have fewer than five rows, and what is said of it."""
    sentences = {}
    for name, coding in codings.items():
        if coding.reference is None or name not in frame.columns:
            continue
        places = coding.places(frame[name])
        counts = {each: int((places == place).sum()) for place, each in enumerate(coding.levels)}
        if few := [f"{each} in {count}" for each, count in counts.items() if 0 < count < RARE]:
            sentences[name] = (
                f"has classes that few rows have ({', '.join(few)} of {len(frame)} rows), so that little is "
                "known of them: join them with others, or add rows"
            )
    return sentences


def lost_classes(frame: pd.DataFrame, codings: Iterable[Coding]) -> list[str]:
    """A fault for each variable of classes of which no row of a part is left."""
    return [
        f"{coding.name}: none of {len(frame)} rows has the class {name.removeprefix(f'{coding.name}=')}; the "
        "rows that have it are held out: join it with another class, add rows, or hold no rows out"
        for coding in codings
        if coding.reference is not None
        for name in coding.columns
        if name in frame.columns and not (frame[name] == 1).any()
    ]


def uncoded(fault: str) -> str:
    """A fault of a column of texts, with how a task codes them."""
    if not isinstance(fault, Fault) or fault.kind != "texts":
        return fault
    return f"{fault}; or name its texts in the task, codings: {{{fault.path}: [first, second, ...]}}"


def texts_in(column: pd.Series) -> list[str]:
    """The different texts of a column, sorted; numbers are left out."""
    if column.dtype.kind in "biufcmM":
        return []
    cells = column.dropna().unique().tolist()
    return sorted({each.strip() for each in cells if isinstance(each, str)})


def of_numbers(frame: pd.DataFrame, name: str) -> bool:
    """Whether a name is to be a column of numbers: neither one of texts, nor the indicator of a class."""
    if name not in frame.columns:
        return "=" not in name or name.partition("=")[0] not in frame.columns
    return not texts_in(frame[name])
