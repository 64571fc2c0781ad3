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

Source: Suits (1957), for indicators without a reference class.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from rehearsal_torch.files.addresses import beginning
from rehearsal_torch.files.plain import repeated
from rehearsal_torch.files.schema import is_number, meant

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
        ValueError: if there are fewer than 2 levels or more than 50, one is empty or occurs twice, the
            reference is none of them, the desired ones are not some of them, or a configuration would not
            keep a text as it is.
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
            raise ValueError(
                f"expected some classes of {listed(self.levels)} to be desired, and no reference; got "
                f"{listed(self.desired)}"
            )
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
        return tuple(f"{self.name}={each}" for each in self.levels if each != self.reference)

    @property
    def words(self) -> str:
        """The coding in words, such as ``no = 0, yes = 1``."""
        if self.desired:
            return f"{either(self.desired)} = 1, {either(self._others)} = 0"
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
    def _others(self) -> tuple[str, ...]:
        return tuple(each for each in self.levels if each not in self.desired)

    @property
    def _indicated(self) -> tuple[str, ...]:
        return tuple(each for each in self.levels if each != self.reference)

    def place(self, cell: Any) -> int | None:
        """The index of the level that a cell states; None if it states none of them.

        Args:
            cell: A text, a truth value, or a number, which states the level that is written like it.
        """
        if isinstance(cell, bool | np.bool_):
            among = YES if cell else NO
            found = [place for place, each in enumerate(self.levels) if each.casefold() in among]
            return found[0] if len(found) == 1 else None
        text = text_of(cell)
        return self.levels.index(text) if text in self.levels else None

    def places(self, column: pd.Series) -> np.ndarray:
        """The index of each cell's level, (n,): NaN where it is missing, -1 where it states no level."""
        known = {}
        for cell in column.dropna().unique().tolist():
            place = self.place(cell)
            known[cell] = -1 if place is None else place
        found = column.astype(object).map(known)
        return np.asarray(found.to_numpy(np.float64, na_value=np.nan))

    def encoded(self, places: np.ndarray) -> np.ndarray:
        """The coded columns of rows, (n,) -> (n, columns); NaN where a cell is missing."""
        missing = np.isnan(places)
        found = self.rows[np.where(missing, 0, places).astype(np.int64)].copy()
        found[missing] = np.nan
        return found

    def text(self, values: Sequence[float]) -> str | None:
        """The level with some values in the coded columns, or those that are desired, or those that are not;
        None if no level has them.
        """
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
        """A coding from plain data.

        Raises:
            ValueError: if they are of another form.
        """
        if isinstance(plain, list | tuple):
            return cls(name, tuple(spelled(plain)))
        classes = plain.get("classes") if isinstance(plain, Mapping) else None
        if isinstance(plain, Mapping) and isinstance(classes, list | tuple):
            if set(plain) == {"classes", "reference"}:
                (reference,) = spelled([plain["reference"]])
                return cls(name, tuple(spelled(classes)), reference)
            if set(plain) == {"classes", "desired"} and isinstance(plain["desired"], list | tuple):
                return cls(name, tuple(spelled(classes)), None, tuple(spelled(plain["desired"])))
        raise ValueError(
            "expected its texts in the order of their codes, [low, medium, high], or {classes: [A, B, C], "
            f"reference: A}}; got {beginning(str(plain), 60)!r}"
        )


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


def spelled(levels: Iterable[Any], texts: Sequence[str] = ()) -> list[str]:
    """Levels as texts, as YAML holds them.

    Args:
        levels: Texts, numbers and truth values.
        texts: The texts of the column: a truth value is the one of them that says it, else yes or no.

    Raises:
        ValueError: if one is of another kind.
    """
    if isinstance(levels, str):
        raise ValueError(f"expected a list of texts; got the text {beginning(levels, 60)!r}")
    found = []
    for each in levels:
        if isinstance(each, bool):
            among = YES if each else NO
            said = [text for text in texts if text.casefold() in among]
            found.append(said[0] if len(said) == 1 else "yes" if each else "no")
            continue
        text = text_of(each)
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
