"""Columns of texts read as numbers, with the faults of their cells.

A coded column takes the place of a column of levels; the indicators of classes stand beside the column. A
cell that states none of the levels is a fault with its line. Missing cells stay missing.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd

from rehearsal_torch.data.codings.coding import Coding, listed, text_of
from rehearsal_torch.data.tables.frame import line_words
from rehearsal_torch.files.addresses import beginning
from rehearsal_torch.files.schema import Fault, meant

ADD = "correct it, or add it to the levels if rows have it"
NEW = "no row to learn from has it, so that nothing is known of it: correct it, or leave the case out"
# A class of fewer rows is told: its effect is hardly known.
RARE = 5


@dataclass(frozen=True)
class Coded:
    """A table with codes.

    Attributes:
        frame: The rows, with coded columns.
        faults: One sentence for each column that cannot be coded, beginning with its name.
        broken: The columns, and coded columns, that have such a fault.
    """

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
    """Which cell states no level, in words.

    Args:
        column: The cells; the index is the line minus two.
        odd: Which of them state no level, (n,) bool.
    """
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
    """Whether a name is to be looked for as a column of numbers: it is no column of texts, nor the indicator
    of a class.
    """
    if name not in frame.columns:
        return "=" not in name or name.partition("=")[0] not in frame.columns
    return not texts_in(frame[name])
