"""What a first draft sees of the columns of a table, and which roles it gives them.

    kind       of texts: two are binary, those of a known scale ordinal, 3 to 12 categorical; of numbers: two
               are binary, up to 20 whole ones integer, others continuous
    left out   columns without a name or with one value, numbers of rows, dates, identifiers, free texts, and
               copies: |correlation| above .999 with another one, or the same order, as a logarithm has it
    given      what nobody sets or asks for: ages, parts of the calendar, who or where somebody is, counts and
               weights of rows, and functions of these, as a column of 0 and 1 that marks a year
    outcome    typed; else the one whose name says it (outcome, target, y); else the only one that can be
    action     typed; else those whose names say it (dose, treatment, setting); else the only other column

A role that this gives to no column is asked for, and left open where nobody answers.

Source: Likert (1932), for some of the scales.
"""

import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from csv import reader
from dataclasses import dataclass, field, replace
from itertools import product

import numpy as np
import pandas as pd

from rehearsal_torch.data.codings.coding import texts_in
from rehearsal_torch.data.tables.identifiers import identifier, words_of
from rehearsal_torch.data.tables.reader import DATE, ReadTable, TableError, number_faults, numbers_of
from rehearsal_torch.files.schema import is_number, meant
from rehearsal_torch.problems.drafts.draft_yaml import MARK, filled, scalar

# The largest number of classes, and how many rows each of them has at least on average; of whole numbers.
CLASSES, EACH, WHOLE = 12, 2, 20
SCALES = (
    ("very low", "low", "medium", "high", "very high"),
    ("low", "moderate", "high"),
    ("low", "normal", "high"),
    ("none", "minimal", "mild", "moderate", "severe", "critical"),
    ("tiny", "small", "medium", "large", "huge"),
    ("never", "rarely", "sometimes", "often", "always"),
    ("very poor", "poor", "fair", "good", "very good", "excellent"),
    ("bad", "average", "good"),
    ("strongly disagree", "disagree", "neutral", "agree", "strongly agree"),
    ("very dissatisfied", "dissatisfied", "neutral", "satisfied", "very satisfied"),
    ("primary", "secondary", "tertiary"),
    ("bronze", "silver", "gold", "platinum"),
)
# Names of what surely comes out, or is set, and what stands in names of values before.
OUTCOMES = "outcomes?|target|results?|response|label|progression|success|yield|score|survived|y"
ACTIONS = "actions?|treatment|treated|treat|trt|dose|dosage|drug|setting|intervention"
BEFORE = "baseline|base|before|pre|initial|previous|past"
CALENDAR, COUNT, FUNCTION = "a part of the calendar", "a count or a weight of rows", "a function of"
GIVEN = {
    "an age": r"l?age(?:s|d|gp|grp|group|sq|yrs|years)?|years old",
    CALENDAR: "date|datetime|timestamp|day|weekday|week|month|mon|quarter|qtr|year|yr|season|period|visit"
    r"|(?:mon|tues|wednes|thurs|fri|satur|sun)day|tues?|wed|thurs?|fri|[dy]\d\d(?:\d\d)?",
    "who somebody is": r"sex|gender|(?:fe)?male|race|ethnic(?:ity)?|nationality|religion|black|(?:non)?white"
    r"|hisp(?:anic)?|asian|birth(?!.*(?:control|weight))|birthplace|born|parity|marital|married",
    "where something is": "state|province|county|country|nation|region|district|city|town|village|continent"
    "|location|origin|latitude|longitude|lat|lon|north|south|east|west|urban|rural|site|block|batch",
    COUNT: r"n|n?cases|n?controls|counts?|freq|frequency|number|nr|population|weights|wgt|fnlwgt",
    "a unit of measurement": "units?|uom",
}
COPY, ROWS, FEWEST, MANY = 0.999, 2000, 10, 30
_UNNAMED = re.compile(r"Unnamed: \d+(_level_\d+)?")
_NUMBER = re.compile(r"\s*[-+]?\d[\d.,]*(?:[eE][-+]?\d+)?(?:\.\d+)?\s*")


@dataclass(frozen=True, eq=False)
class Column:
    """A column of a table.

    Attributes:
        cells: Its numbers, or of texts the index of the level of each row, (n,); NaN where one is missing.
        kind: As a problem file has it.
        levels: Its texts in their order; empty for numbers.
        left_out: Why it can be no variable; empty if it can.
        given: Why nobody would set it, or ask for it; empty if one may.
        named: "outcome" or "action" if its name says that it is one; else empty.
        names: Whether it can name the cases: 1, or 2 for names of persons; else 0.
    """

    name: str
    cells: np.ndarray
    kind: str = "continuous"
    levels: tuple[str, ...] = ()
    left_out: str = ""
    given: str = ""
    named: str = ""
    names: int = 0

    @property
    def numbers(self) -> np.ndarray:
        """The cells that are not missing."""
        return np.asarray(self.cells[~np.isnan(self.cells)])

    @property
    def gaps(self) -> int:
        """The number of missing cells."""
        return int(np.isnan(self.cells).sum())

    @property
    def seen(self) -> str:
        """Its values in words."""
        ends = f"{self.numbers.min():.6g} to {self.numbers.max():.6g}, {len(np.unique(self.numbers))} values"
        gaps = f", {self.gaps} missing" if self.gaps else ""
        return f"{' '.join(', '.join(self.levels).split()) or ends}{gaps}"


def columns_of(frame: pd.DataFrame, gaps: float = 0.5, whole: bool = True) -> list[Column]:
    """The columns of a table, which may lack a share of their values; unless it is the `whole` one, and not
    the first rows of a campaign, actions and outcomes may still have one value.
    """
    found = [_column(frame[name], str(name), gaps, whole) for name in frame.columns]
    # A single column beside another is what was set, though it be 1, 2, 3, ...
    if sum(not each.left_out for each in found) < 2:
        found = [replace(each, left_out="") if each.left_out == NUMBERS else each for each in found]
    classes = [each for each in found if each.levels and not each.left_out]
    pairs = pd.DataFrame({each.name: each.cells for each in classes})
    told = ("an age", CALENDAR, "who somebody is", DATES)
    groups = [(each.name, frame[each.name]) for each in found if (each.given or each.left_out) in told]
    # Where classes are another combination in each row, whole numbers count the rows of each.
    counting = len(classes) > 1 and len(frame) >= FEWEST and not pairs.duplicated().any()
    for place, each in enumerate(found):
        if each.left_out or each.given or each.named:
            continue
        why = next((f"{FUNCTION} {name}" for name, cells in groups if _given_by(each, cells)), "")
        if counting and not each.levels and _whole(each.numbers):
            why = why or COUNT
        found[place] = replace(each, given=why)
    return found


NUMBERS, DATES = "it numbers the rows", "it has dates: write them as numbers, such as days since the first"


def _column(cells: pd.Series, name: str, gaps: float, whole: bool) -> Column:
    numbers, known = numbers_of(cells), cells.dropna().to_frame()
    values, told = np.unique(numbers[~np.isnan(numbers)]), identifier(name, cells)
    given, named = _said(name, values)
    column = Column(name, numbers, given=given, named=named)
    if not 0 < len(name.strip()) <= 200 or not name.isprintable():
        return replace(column, left_out="a name of 1 to 200 letters in one line is needed")
    if '"' in name or _UNNAMED.fullmatch(name):
        why = "a name without double quotes is needed" if '"' in name else "the column has no name"
        return replace(column, left_out=why)
    if numbering(numbers) and not column.named and (told is None or told.by_value):
        return replace(column, left_out=NUMBERS)
    if of_dates(cells):
        return replace(column, left_out=DATES)
    if told is not None:
        names = (1 + told.personal) * told.unique
        return replace(column, left_out=f"it looks like an identifier: {told.reason}", names=names)
    missing = len(cells) - len(known)
    if missing > gaps * len(cells) or not len(known):
        return replace(column, left_out=f"{missing} of {len(cells)} values are missing")
    texts = text_levels(cells)
    if isinstance(texts, str):
        return replace(column, left_out=texts)
    if texts:
        kind = "binary" if len(texts) == 2 else "ordinal" if _scale(texts) else "categorical"
        places = [texts.index(each.strip()) if isinstance(each, str) else np.nan for each in cells]
        return replace(column, cells=np.array(places, dtype=np.float64), kind=kind, levels=texts)
    if faults := number_faults(known, list(known.columns), varying=whole or not column.named):
        return replace(column, left_out=faults[0].words)
    small = len(values) <= WHOLE and _whole(values)
    return replace(column, kind="binary" if len(values) == 2 else "integer" if small else "continuous")


def _said(name: str, values: np.ndarray) -> tuple[str, str]:
    """What a column's name says that it is, if nobody sets or asks for that; else the role that it names."""
    said = next((what for what, words in GIVEN.items() if has_word(name, words)), "")
    if said and (said != COUNT or (len(values) > 2 and _whole(values))):
        return said, ""
    roles = (role for role, words in (("outcome", OUTCOMES), ("action", ACTIONS)) if has_word(name, words))
    return "", "" if has_word(name, BEFORE) else next(roles, "")


def _given_by(column: Column, cells: pd.Series) -> bool:
    """Whether equal cells of another column, each in several rows, go with equal values of a column."""
    codes, values = pd.factorize(cells)
    if not 2 < len(values) <= len(cells) / EACH or len(np.unique(column.numbers)) > len(values):
        return False
    by = pd.Series(column.cells).groupby(codes)
    return bool((by.nunique(dropna=False) <= 1).all())


def _whole(numbers: np.ndarray) -> bool:
    """Whether all are whole numbers of at least 0."""
    return bool((numbers == np.round(numbers)).all()) and bool((numbers >= 0).all())


def text_levels(cells: pd.Series) -> tuple[str, ...] | str:
    """The texts of a column in their order, if it has two and more and no numbers; why there are too many."""
    found, known = texts_in(cells), int(cells.notna().sum())
    if len(found) < 2 or any(
        not isinstance(each, str) or is_number(each) for each in cells.dropna().unique()
    ):
        return ()
    if len(found) > CLASSES or len(found) * EACH > known > 2:
        many = "free texts, names or too many classes: it may stay in the table, as no variable"
        return f"{len(found)} different texts in {known} rows, which are {many}"
    scale = _scale(found)
    return tuple(sorted(found, key=lambda text: scale.index(text.casefold())) if scale else found)


def _scale(texts: Sequence[str]) -> Sequence[str]:
    return next((each for each in SCALES if {text.casefold() for text in texts} <= set(each)), ())


def has_word(name: str, words: str) -> bool:
    """Whether one of some words stands in a name such as customer_id, customerId or "Customer ID"."""
    return re.search(rf"(?:\A| )(?:{words})(?:\Z| )", " ".join(words_of(name))) is not None


def check_names(table: ReadTable) -> None:
    """Refuses a table without names of columns, whose first row has numbers alone."""
    names = [str(name) for name in table.frame.columns]
    if names and all(_NUMBER.fullmatch(name) for name in names):
        shown = ", ".join(names[:3]) + (", ..." if len(names) > 3 else "")
        raise TableError(
            f"{table.where}: expected the names of columns in the first row; got numbers alone ({shown}): "
            "write a row of names above them; a name that is a number needs a letter, such as y2020"
        )


def of_dates(column: pd.Series) -> bool:
    """Whether a column holds dates."""
    if pd.api.types.is_datetime64_any_dtype(column):
        return True
    known = column.dropna().head(ROWS)
    return len(known) > 0 and all(DATE.match(str(each)) is not None for each in known)


def numbering(numbers: np.ndarray) -> bool:
    """Whether whole numbers that rise from row to row number the rows: without gaps, or in many rows."""
    rises = len(numbers) > 2 and bool((np.diff(numbers) > 0).all()) and bool((numbers % 1 == 0).all())
    return rises and (len(numbers) >= MANY or float(np.ptp(numbers)) == len(numbers) - 1)


def copies(columns: Mapping[str, np.ndarray], kept: Sequence[str] = ()) -> dict[str, str]:
    """The columns (n,), NaN where a number is missing, that another one gives, each with that; those `kept`
    are no copies, but may have some.
    """
    names = [*kept, *(name for name in columns if name not in kept)]
    frame, found = pd.DataFrame({name: columns[name][:ROWS] for name in names}), dict[str, str]()
    close = frame.corr(min_periods=FEWEST).abs().to_numpy() > COPY
    close |= frame.rank().corr(min_periods=MANY).abs().to_numpy() > 1 - (1 - COPY) ** 2
    for place, name in enumerate(names[len(kept) :], len(kept)):
        if same := [names[each] for each in range(place) if close[place, each] and names[each] not in found]:
            found[name] = same[0]
    return found


SHOWN = 12
TYPED, NAMED, ALONE, OPEN = "as typed", "its name says it", "no other column can be", ""
KNOWN = "it is known before the result"
_ASKED = {"outcome": "should come out as desired", "action": "may be set"}
Ask = Callable[[str, str, Sequence[str]], Sequence[str]]
"""Asks for an option, such as action, in words; the answer is some of the names, or none."""


@dataclass(frozen=True)
class Source:
    """A table; its file, as the draft names it, and the draft's; what was typed, and whom to ask."""

    table: ReadTable
    file: str
    written: str
    typed: Mapping[str, Sequence[str]] = field(default_factory=dict)
    ask: Ask | None = None

    def fill(self, template: str, variables: Sequence[str], **parts: str | Sequence[str]) -> str:
        """The text of a draft."""
        notes = [f"# {note}." for note in self.table.notes]
        common = {"written": self.written, "file": scalar(self.file), "mark": MARK}
        return filled(template, notes=notes, variables=variables, **common, **parts) + "\n"


@dataclass(frozen=True)
class Roles:
    """Columns of each role, why each of them has it, the open roles, with what may take them, and columns
    that were left out though their name says a role: this, and why.
    """

    names: Mapping[str, Sequence[str]]
    why: dict[str, str]
    open: dict[str, str]
    lost: Mapping[str, tuple[str, str]]

    def of(self, name: str, other: str) -> str:
        """The role of a column; `other` if it has none of the two."""
        return next((role for role, names in self.names.items() if name in names), other)

    def seen(self, column: Column) -> str:
        """What is said of a column at its line."""
        return "; ".join(filter(None, (self.why.get(column.name, ""), column.given, column.seen)))

    @property
    def marks(self) -> list[str]:
        """The lines of what is open."""
        return [f"  {MARK}: role: {role}, for what {_ASKED[role]}{some}" for role, some in self.open.items()]

    @property
    def notes(self) -> list[str]:
        """What is guessed, and what is open, a sentence each."""
        guessed = [(name, why) for name, why in self.why.items() if why != TYPED]
        told = [
            f"Left out: {name}, which its name calls an {role}: {why}."
            for name, (role, why) in self.lost.items()
        ]
        told += [f"Guessed: {name} {_ASKED[self.of(name, '')]}: {why}." for name, why in guessed]
        asked = [(f"Open: which column {_ASKED[role]}{some}", role) for role, some in self.open.items()]
        return told + [f"{words}. Add {role}=COLUMN, or fill it in." for words, role in asked]


def roles_of(
    columns: Sequence[Column], source: Source, sure: Sequence[str] = (), numbers: bool = False
) -> Roles:
    """The roles of the columns of a table, of which some are `sure` to be actions, and an outcome may need
    `numbers`; TableError if what was typed cannot be used.
    """
    names: dict[str, list[str]] = {"outcome": [], "action": []}
    lost = {each.name: (each.named, each.left_out) for each in columns if each.named and each.left_out}
    roles, left_out = Roles(names, {}, {}, lost), {each.name: each.left_out for each in columns}
    able = [each for each in columns if not each.left_out]
    for step, (role, taken) in product((TYPED, NAMED, ALONE, OPEN), names.items()):
        if taken:
            continue
        free = [each for each in able if not each.given and each.named in ("", role)]
        if role == "outcome":
            classes = [each for each in free if each.kind == "categorical" or (each.levels and numbers)]
            free = [each for each in free if each.named or each not in classes]
            free = free or [each for each in able if each.given == COUNT]
        could = [each.name for each in free if each.name not in roles.why]
        found = list(source.typed.get(role, ()))
        if step == NAMED:
            found = [each.name for each in free if each.named or (role == "action" and each.name in sure)]
            found = found if role == "action" or len(found) == 1 else []
        elif step == ALONE:
            found = could * (len(could) == 1 and (role == "outcome" or len(able) == 2))
        elif step == OPEN and source.ask and could:
            found = list(source.ask(f"Which column {_ASKED[role]}?", role, could))
        for name in found:
            told = left_out.get(name, "it says whose row it is, or when")
            if told or name in roles.why:
                raise TableError(f"{role}={name}: {told or 'it is the outcome'}")
        taken += found
        called = {each.name for each in able if each.named}
        known = {name: KNOWN for name in found if step == NAMED and name not in called}
        roles.why.update(dict.fromkeys(found, step or TYPED) | known)
        if step == OPEN and not found:
            more = ", ..." if len(could) > SHOWN else ""
            roles.open[role] = f" ({', '.join(could[:SHOWN]) or 'none looks so'}{more})"
    return roles


def without_copies(columns: Sequence[Column], roles: Roles) -> list[Column]:
    """The columns without those that another one gives, with a role only where all roles are known."""
    chosen = [name for names in roles.names.values() for name in names]
    able = [each for each in columns if not each.left_out and each.kind != "categorical"]
    ordered = {each.name: each.cells for each in able if not (roles.open and each.name in chosen)}
    given = copies(ordered, [name for name in chosen if name in ordered])
    close = f"up to a factor and a shift (correlation above {COPY:g}), or in the same order"
    why = {name: f"another column gives it: it is {what}, {close}" for name, what in given.items()}
    return [replace(each, left_out=each.left_out or why.get(each.name, "")) for each in columns]


def typed_names(text: str, option: str, columns: Sequence[str]) -> list[str]:
    """The columns that are typed for an option: one, or of actions a list; TableError if there is none."""
    text = unicodedata.normalize("NFC", text).strip()
    inner = text[1:-1] if text.startswith("[") and text.endswith("]") else text
    several = option == "action" and text not in columns
    names = next(reader([inner], skipinitialspace=True), []) if several else [text]
    for name in map(str.strip, names):
        if name not in columns:
            raise TableError(f"{option}={name}: no column {name!r}; {meant(name, columns)}")
    return list(dict.fromkeys(map(str.strip, names)))
