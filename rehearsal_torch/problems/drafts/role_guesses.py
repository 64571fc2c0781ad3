"""Kinds and roles of the columns of a table, as a first draft of a problem file guesses them.

    kind       of texts: two are binary, those of a known scale ordinal, 3 to 12 categorical; of numbers: two
               are binary; whole ones integer, if up to 20 differ, or half of those between the ends occur;
               others continuous
    left out   columns without a name or with one value, numbers of rows, dates, identifiers, free texts, and
               copies: |correlation| above .999 with another one, or the same order, as a logarithm has it
    background what nobody sets or asks for: ages, parts of the calendar (but no rates, as 20 a day), who or
               where somebody is, counts and weights of rows, leads and lags, and functions of these, as a
               column of 0 and 1 that marks a year
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
from rehearsal_torch.data.tables.cell_values import DATE
from rehearsal_torch.data.tables.identifiers import identifier, words_of
from rehearsal_torch.data.tables.reader import ReadTable, TableError, are_whole, number_faults, numbers_of
from rehearsal_torch.files.schema import is_number, meant
from rehearsal_torch.problems.drafts.draft_yaml import MARK, filled, omitted, scalar

# The most classes, the rows that each has at least on average, and the most values of an integer variable.
CLASSES, ROWS_PER_CLASS, INTEGERS, OCCUR = 12, 2, 20, 0.5
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
# Words in names of outcomes, of actions, and of values before a treatment.
OUTCOMES = "outcomes?|target|results?|response|responded|label|progression|success|yield|score|survived|y"
ACTIONS = "actions?|treatment|treated|treat|trt|dose|dosage|drug|setting|intervention"
_RATE = re.compile(r"(?:/|(?<![^\W_])(?:per|an?|each|every)(?![^\W_])) *_*[^\W_]+", re.IGNORECASE)
BEFORE = "baseline|base|before|pre|initial|previous|past"
CALENDAR, COUNT, FUNCTION = "a part of the calendar", "a count or a weight of rows", "a function of"
PLACE, SHIFTED = "where something is", "an earlier or a later value of another column"
BACKGROUND = {
    "an age": r"l?age(?:s|d|gp|grp|group|sq|yrs|years)?|years old",
    CALENDAR: "date|datetime|timestamp|day|weekday|weekend|holiday|week|month|mon|quarter|qtr|year|yr|season"
    r"|period|visit|(?:mon|tues|wednes|thurs|fri|satur|sun)day|tues?|wed|thurs?|fri|[dy]\d\d(?:\d\d)?",
    "who somebody is": r"sex|gender|(?:fe)?male|race|ethnic(?:ity)?|nationality|religion|black|(?:non)?white"
    r"|hisp(?:anic)?|asian|birth(?!.*(?:control|weight))|birthplace|born|parity|marital|married",
    SHIFTED: r"l?lag(?!oon|er)[a-z]*\d*|lead\d+",
    PLACE: "state|province|county|country|nation|region|district|city|town|village|continent"
    "|location|origin|latitude|longitude|lat|lon|north|south|east|west|urban|rural|site|block|batch",
    COUNT: r"n|n?cases|n?controls|counts?|freq|frequency|number|nr|population|weights|wgt|fnlwgt",
    "a unit of measurement": "units?|uom",
}
COPY, ROWS, FEWEST, MANY_ROWS = 0.999, 2000, 10, 30
_UNNAMED = re.compile(r"Unnamed: \d+(_level_\d+)?")


@dataclass(frozen=True, eq=False)
class Column:
    """A column of a table.

    Attributes:
        cells: Its numbers, or of texts the index of the level of each row, (n,); NaN where one is missing.
        kind: As a problem file has it.
        levels: Its texts in their order; empty for numbers.
        left_out: Why it can be no variable; empty if it can.
        background: Why nobody would set it, or ask for it; empty if one may.
        named_role: "outcome" or "action" if its name says that it is one; else empty.
        naming: Whether it can name the cases: 1, or 2 for names of persons; else 0.
        groups: Whether it is left out and names what several rows belong to.
    """

    name: str
    cells: np.ndarray
    kind: str = "continuous"
    levels: tuple[str, ...] = ()
    left_out: str = ""
    background: str = ""
    named_role: str = ""
    naming: int = 0
    groups: bool = False

    @property
    def numbers(self) -> np.ndarray:
        """The cells that are not missing."""
        return np.asarray(self.cells[~np.isnan(self.cells)])

    @property
    def missing(self) -> int:
        """The number of missing cells."""
        return int(np.isnan(self.cells).sum())

    @property
    def value_words(self) -> str:
        """Its levels, or its range, and how many cells are missing."""
        ends = f"{self.numbers.min():.6g} to {self.numbers.max():.6g}, {len(np.unique(self.numbers))} values"
        missing = f", {self.missing} missing" if self.missing else ""
        return f"{' '.join(', '.join(self.levels).split()) or ends}{missing}"


def columns_of(frame: pd.DataFrame, most_missing: float = 0.5, varying: bool = True) -> list[Column]:
    """The columns of a table, which may lack a share of their values. Unless they must be `varying`, actions
    and outcomes may have one value, as in the first rows of a campaign.
    """
    columns = [_column(frame[name], str(name), most_missing, varying) for name in frame.columns]
    # Of two columns one was set, even if it is 1, 2, 3, ...
    if sum(not column.left_out for column in columns) < 2:
        columns = [replace(column, left_out=column.left_out.replace(NUMBERS, "")) for column in columns]
    classes = [column for column in columns if column.levels and not column.left_out]
    class_codes = pd.DataFrame({column.name: column.cells for column in classes})
    groups = [column.name for column in columns if (column.background or column.left_out) in GROUPS]
    # Where classes are another combination in each row, whole numbers count the rows of each.
    counts_classes = len(classes) > 1 and len(frame) >= FEWEST and not class_codes.duplicated().any()
    for index, column in enumerate(columns):
        if column.left_out or column.background or column.named_role:
            continue
        reason = next((f"{FUNCTION} {name}" for name in groups if _determined_by(column, frame[name])), "")
        if counts_classes and not column.levels and _are_counts(column.numbers):
            reason = reason or COUNT
        columns[index] = replace(column, background=reason)
    return columns


NUMBERS, DATES = "it numbers the rows", "it has dates: write them as numbers, such as days since the first"
# The columns of which others may be functions.
GROUPS = ("an age", CALENDAR, "who somebody is", DATES)


def _column(cells: pd.Series, name: str, most_missing: float, varying: bool) -> Column:
    numbers, observed = numbers_of(cells), cells.dropna().to_frame()
    values, identity = np.unique(numbers[~np.isnan(numbers)]), identifier(name, cells)
    background, named_role = _meaning_of_name(name, values)
    column = Column(name, numbers, background=background, named_role=named_role)
    if not 0 < len(name.strip()) <= 200 or not name.isprintable():
        return replace(column, left_out="a name of 1 to 200 letters in one line is needed")
    if '"' in name or _UNNAMED.fullmatch(name):
        reason = "a name without double quotes is needed" if '"' in name else "the column has no name"
        return replace(column, left_out=reason)
    if numbering(numbers) and not column.named_role and (identity is None or identity.by_value):
        return replace(column, left_out=NUMBERS)
    if of_dates(cells):
        return replace(column, left_out=DATES)
    if identity is not None:
        naming = (1 + identity.personal) * identity.unique
        reason = f"it looks like an identifier: {identity.reason}"
        return replace(
            column, left_out=reason, naming=naming, groups=_groups(cells) and not identity.personal
        )
    missing = len(cells) - len(observed)
    if missing > most_missing * len(cells) or not len(observed):
        return replace(column, left_out=f"{missing} of {len(cells)} values are missing")
    levels = text_levels(cells)
    if isinstance(levels, str):
        names = background == PLACE or has_word(name, "names?")
        return replace(column, left_out=levels, groups=names and _groups(cells))
    if levels:
        kind = "binary" if len(levels) == 2 else "ordinal" if _scale(levels) else "categorical"
        codes = [levels.index(cell.strip()) if isinstance(cell, str) else np.nan for cell in cells]
        return replace(column, cells=np.array(codes, dtype=np.float64), kind=kind, levels=levels)
    if faults := number_faults(observed, list(observed.columns), varying=varying or not column.named_role):
        return replace(column, left_out=faults[0].words)
    span = values[-1] - values[0] + 1
    counts = _are_counts(values) and (len(values) <= INTEGERS or len(values) >= OCCUR * span)
    return replace(column, kind="binary" if len(values) == 2 else "integer" if counts else "continuous")


def _groups(cells: pd.Series) -> bool:
    """Whether a column has several rows for each of many values."""
    return FEWEST <= cells.nunique() <= len(cells) / ROWS_PER_CLASS and not cells.isna().any()


def _meaning_of_name(name: str, values: np.ndarray) -> tuple[str, str]:
    """What a name means, if nobody sets or asks for that; else the role that it names."""
    meaning = next((reason for reason, words in BACKGROUND.items() if has_word(name, words)), "")
    if meaning and (meaning != COUNT or (len(values) > 2 and _are_counts(values))):
        return meaning, ""
    role_names = (
        role for role, words in (("outcome", OUTCOMES), ("action", ACTIONS)) if has_word(name, words)
    )
    return "", "" if has_word(name, BEFORE) else next(role_names, "")


def _determined_by(column: Column, cells: pd.Series) -> bool:
    """Whether equal cells of another column, each in several rows, go with equal values of a column."""
    codes, values = pd.factorize(cells)
    if not 2 < len(values) <= len(cells) / ROWS_PER_CLASS or len(np.unique(column.numbers)) > len(values):
        return False
    by_cell = pd.Series(column.cells).groupby(codes)
    return bool((by_cell.nunique(dropna=False) <= 1).all())


def _are_counts(numbers: np.ndarray) -> bool:
    return are_whole(numbers) and bool((numbers >= 0).all())


def text_levels(cells: pd.Series) -> tuple[str, ...] | str:
    """The texts of a column in their order, if it has two and more and no numbers; why there are too many."""
    texts, known = texts_in(cells), cells.dropna()
    distinct = known.unique()
    numbers = sum(not isinstance(cell, str) or is_number(cell) for cell in distinct)
    if not len(texts) or numbers * 2 > len(distinct) or (numbers and len(texts) <= CLASSES):
        return ()
    if len(texts) == 1:
        return f"all {len(known)} rows have one text"
    if len(texts) > CLASSES or len(texts) * ROWS_PER_CLASS > len(known) > 2:
        reason = "free texts, names or too many classes: it may stay in the table, as no variable"
        return f"{len(texts)} different texts in {len(known)} rows, which are {reason}"
    scale = _scale(texts)
    return tuple(sorted(texts, key=lambda text: scale.index(text.casefold())) if scale else texts)


def _scale(texts: Sequence[str]) -> Sequence[str]:
    return next((scale for scale in SCALES if {text.casefold() for text in texts} <= set(scale)), ())


def has_word(name: str, words: str) -> bool:
    """Whether a name such as customer_id, customerId or "Customer ID" has one of the words, a pattern."""
    text = " ".join(words_of(_RATE.sub(" ", name)))
    return re.search(rf"(?:\A| )(?:{words})(?:\Z| )", text) is not None


def check_names(table: ReadTable) -> None:
    """Refuses a table without names of columns, whose first row has numbers alone."""
    names = [str(name) for name in table.frame.columns]
    # The second of two columns called 59.0 is 59.0.1.
    if names and all(is_number(re.sub(r"\.\d+\Z", "", name)) for name in names):
        shown = ", ".join(names[:3]) + (", ..." if len(names) > 3 else "")
        raise TableError(
            f"{table.where}: expected the names of columns in the first row; got numbers alone ({shown}): "
            "write a row of names above them; a name that is a number needs a letter, such as y2020"
        )


def of_dates(column: pd.Series) -> bool:
    """Whether a column holds dates."""
    if pd.api.types.is_datetime64_any_dtype(column):
        return True
    cells = column.dropna().head(ROWS)
    return len(cells) > 0 and all(DATE.match(str(cell)) is not None for cell in cells)


def numbering(numbers: np.ndarray) -> bool:
    """Whether whole numbers that rise from row to row number the rows: without gaps, or in many rows."""
    rising = len(numbers) > 2 and are_whole(numbers) and bool((np.diff(numbers) > 0).all())
    return rising and (len(numbers) >= MANY_ROWS or float(np.ptp(numbers)) == len(numbers) - 1)


def copies(columns: Mapping[str, np.ndarray], kept: Sequence[str] = ()) -> dict[str, str]:
    """The columns (n,), NaN where a number is missing, that another one gives, each with that; those `kept`
    are no copies, but may have some.
    """
    names = [*kept, *(name for name in columns if name not in kept)]
    frame, originals = pd.DataFrame({name: columns[name][:ROWS] for name in names}), dict[str, str]()
    close = frame.corr(min_periods=FEWEST).abs().to_numpy() > COPY
    close |= frame.rank().corr(min_periods=MANY_ROWS).abs().to_numpy() > 1 - (1 - COPY) ** 2
    for index, name in enumerate(names[len(kept) :], len(kept)):
        near = (names[other] for other in np.flatnonzero(close[index, :index]))
        if (original := next((other for other in near if other not in originals), None)) is not None:
            originals[name] = original
    return originals


SHOWN = 12
TYPED, NAMED, ALONE, OPEN = "as typed", "its name says it", "no other column can be", ""
KNOWN = "it is known before the result"
_ROLES = {"outcome": "should come out as desired", "action": "may be set"}
Ask = Callable[[str, str, Sequence[str]], Sequence[str]]
"""Asks a question for an option, such as action; the answer is among the names, or empty."""


HEAD = """\
# A problem of $size. Correct what is guessed, fill in what is marked, then type
#   rehearsal check $written
$notes
"""


@dataclass(frozen=True)
class Source:
    """A table; its file, as the draft names it; the file of the draft; the typed columns; whom to ask."""

    table: ReadTable
    file: str
    written: str
    typed: Mapping[str, Sequence[str]] = field(default_factory=dict)
    ask: Ask | None = None

    def fill(
        self,
        template: str,
        roles: "Roles",
        size: str,
        variables: Sequence[str],
        left_out: Mapping[str, str],
        **parts: str | Sequence[str],
    ) -> tuple[str, list[str]]:
        """The text of a draft, with lines for variables and for what is left out, and notes on its roles."""
        text = filled(
            HEAD + template,
            size=size,
            written=self.written,
            notes=[f"# {note}." for note in self.table.notes],
            file=scalar(self.file),
            mark=MARK,
            variables=[*variables, *roles.marks, *omitted(left_out)],
            **parts,
        )
        return text + "\n", roles.notes


@dataclass(frozen=True)
class Roles:
    """Columns of each role, the reason for each of them, the open roles with their candidates, and
    columns that were left out though their name says a role: this, and why. The units are the table's.
    """

    names: Mapping[str, Sequence[str]]
    reasons: dict[str, str]
    open: dict[str, Sequence[str]]
    lost: Mapping[str, tuple[str, str]]
    units: Mapping[str, str]

    def of(self, name: str, other: str) -> str:
        """The role of a column; `other` if it has none of the two."""
        return next((role for role, names in self.names.items() if name in names), other)

    def unit(self, column: Column) -> str:
        """The unit of a column of numbers as a YAML scalar; empty if it is unknown."""
        return scalar(self.units.get(column.name, "")) * (column.kind in ("continuous", "integer"))

    def note(self, column: Column) -> str:
        """The comment at the line of a column."""
        return "; ".join(
            filter(None, (self.reasons.get(column.name, ""), column.background, column.value_words))
        )

    def outcome_in(self, columns: Sequence[Column]) -> Column:
        """The last outcome; where there is none, the last column that may be one."""
        names = self.names["outcome"] or self.open.get("outcome", ())
        return ([column for column in columns if column.name in names] or [*columns])[-1]

    @property
    def marks(self) -> list[str]:
        """A line for each open role."""
        return [
            f"  {MARK}: role: {role}, for what {_ROLES[role]}{_choice(names)}"
            for role, names in self.open.items()
        ]

    @property
    def notes(self) -> list[str]:
        """Sentences on what was left out, what is guessed, and what is open."""
        lost = (f"{name}, which its name calls an {role}: {why}" for name, (role, why) in self.lost.items())
        guessed = [(name, why) for name, why in self.reasons.items() if why != TYPED]
        asked = ((f"which column {_ROLES[role]}{_choice(names)}", role) for role, names in self.open.items())
        return [
            *(f"Left out: {words}." for words in lost),
            *(f"Guessed: {name} {_ROLES[self.of(name, '')]}: {why}." for name, why in guessed),
            *(f"Open: {words}. Add {role}=COLUMN, or fill it in." for words, role in asked),
        ]


def _choice(names: Sequence[str]) -> str:
    return f" ({', '.join(names[:SHOWN]) or 'none looks so'}{', ...' * (len(names) > SHOWN)})"


def roles_of(
    columns: Sequence[Column], source: Source, sure: Sequence[str] = (), numbers: bool = False
) -> Roles:
    """The roles of the columns of a table, of which some are `sure` to be actions, and an outcome may need
    `numbers`; TableError if what was typed cannot be used.
    """
    names: dict[str, list[str]] = {"outcome": [], "action": []}
    usable = [column for column in columns if not column.left_out]
    left_out = {column.name: column.left_out for column in columns}
    named = {column.name: column.named_role for column in columns if column.named_role}
    lost = {name: (role, left_out[name]) for name, role in named.items() if left_out[name]}
    roles = Roles(names, {}, {}, lost, source.table.units)
    for step, (role, role_columns) in product((TYPED, NAMED, ALONE, OPEN), names.items()):
        if role_columns:
            continue
        free = [column for column in usable if not column.background and column.named_role in ("", role)]
        if role == "outcome":
            classes = [
                column for column in free if column.kind == "categorical" or (column.levels and numbers)
            ]
            free = [column for column in free if column.named_role or column not in classes]
            free = free or [column for column in usable if column.background == COUNT]
        candidates = [column.name for column in free if column.name not in roles.reasons]
        chosen = list(source.typed.get(role, ()))
        if step == NAMED:
            certain = {*named, *(sure if role == "action" else ())}
            chosen = [column.name for column in free if column.name in certain]
            chosen = chosen if role == "action" or len(chosen) == 1 else []
        elif step == ALONE:
            chosen = candidates * (len(candidates) == 1 and (role == "outcome" or len(usable) == 2))
        elif step == OPEN and source.ask and candidates:
            chosen = list(source.ask(f"Which column {_ROLES[role]}?", role, candidates))
        for name in chosen:
            fault = left_out.get(name, "it says whose row it is, or when")
            if fault or name in roles.reasons:
                raise TableError(f"{role}={name}: {fault or 'it is the outcome'}")
        role_columns += chosen
        for name in chosen:
            roles.reasons[name] = KNOWN if step == NAMED and name not in named else step or TYPED
        if step == OPEN and not chosen:
            roles.open[role] = candidates
    return roles


def without_copies(columns: Sequence[Column], roles: Roles) -> list[Column]:
    """The columns without those that another one gives, with a role only where all roles are known."""
    chosen = [name for names in roles.names.values() for name in names]
    usable = [column for column in columns if not column.left_out and column.kind != "categorical"]
    cells = {column.name: column.cells for column in usable if not (roles.open and column.name in chosen)}
    originals = copies(cells, [name for name in chosen if name in cells])
    how = f"up to a factor and a shift (correlation above {COPY:g}), or in the same order"
    reasons = {name: f"another column gives it: it is {other}, {how}" for name, other in originals.items()}
    return [replace(column, left_out=column.left_out or reasons.get(column.name, "")) for column in columns]


def typed_names(text: str, option: str, columns: Sequence[str]) -> list[str]:
    """The columns that are typed for an option: one, or of actions a list; TableError if there is none."""
    text = unicodedata.normalize("NFC", text).strip()
    listed = text[1:-1] if text.startswith("[") and text.endswith("]") else text
    several = option == "action" and text not in columns
    names = next(reader([listed], skipinitialspace=True), []) if several else [text]
    for name in map(str.strip, names):
        if name not in columns:
            raise TableError(f"{option}={name}: no column {name!r}; {meant(name, columns)}")
    return list(dict.fromkeys(map(str.strip, names)))
