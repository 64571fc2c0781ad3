"""What a first draft sees of the columns of a table before it guesses: row numbers, dates, copies.

    names     a first row of numbers alone is a row, and the names are missing
    numbers   whole numbers without gaps, another one in each row, number the rows
    dates     no numbers, and no free texts: they are to be written as numbers
    copies    a column that others give: |correlation| above .999 with one of them or the product of two,
              in the first rows

A copy adds nothing to what the others say, and its effect cannot be told from theirs.

Columns of texts are levels or classes:

    two texts                        binary, sorted
    texts of a known scale           ordinal: low, medium, high; none, mild, moderate, severe; ...
    3 to 12 texts                    categorical
    more, or few rows of each        no variable: names, identifiers or free texts

Source: Likert (1932), for some of the scales.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd
import yaml

from rehearsal_torch.data.codings.coding import texts_in
from rehearsal_torch.data.problem_file.kinds import only_texts
from rehearsal_torch.data.reading import DATE, ReadTable, TableError

# The largest number of classes, and how many rows each of them has at least on average.
CLASSES, EACH = 12, 2
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


@dataclass(frozen=True)
class TextColumn:
    """A column of texts as a variable: its kind (binary, ordinal or categorical), its texts in their order,
    and the index of the level of each row, (n,), NaN where it is missing.
    """

    kind: str
    levels: tuple[str, ...]
    places: np.ndarray


def text_column(frame: pd.DataFrame, name: str) -> TextColumn | str | None:
    """A column of texts as a variable; why it is none; None for a column that has numbers."""
    if not only_texts(frame, name):
        return None
    texts = texts_in(frame[name])
    if len(texts) < 2:
        return None
    known = int(frame[name].notna().sum())
    if len(texts) > CLASSES or len(texts) * EACH > known > 2:
        many = "free texts, names or too many classes: it may stay in the table, as no variable"
        return f"{len(texts)} different texts in {known} rows, which are {many}"
    scale = next((each for each in SCALES if {text.casefold() for text in texts} <= set(each)), None)
    if scale is not None:
        texts = sorted(texts, key=lambda text: scale.index(text.casefold()))
    kind = "binary" if len(texts) == 2 else "categorical" if scale is None else "ordinal"
    places = frame[name].map(lambda cell: texts.index(cell.strip()) if isinstance(cell, str) else np.nan)
    return TextColumn(kind, tuple(texts), places.to_numpy(np.float64))


OUTCOMES = "outcome|target|result|response|label|progression|success|yield|score|y"
ACTIONS = "action|treatment|dose|dosage|drug|price|rate|budget|setting|temperature|intervention"
MARK = "# <- fill in"
_PLAIN = re.compile(r"[^\W\d][\w.]*")


def scalar(text: str) -> str:
    """A text as a YAML scalar in one line, also within braces."""
    return yaml.safe_dump([text], allow_unicode=True, width=10_000, default_flow_style=True).strip()[1:-1]


def value(text: str) -> str:
    """A text as the value of a key, alone in its line: in quotes only where YAML needs them."""
    return yaml.safe_dump({"a": text}, allow_unicode=True, width=10_000).removeprefix("a:").strip()


def node(name: str) -> str:
    """A name as dagitty's statements have it."""
    return name if _PLAIN.fullmatch(name) else f'"{name}"'


def term(name: str) -> str:
    """A name as inequalities have it."""
    if _PLAIN.fullmatch(name) and name not in ("and", "or"):
        return name
    return f'"{name}"' if "`" in name else f"`{name}`"


def level(text: str) -> str:
    """A level as inequalities have it."""
    return text if _PLAIN.fullmatch(text) and text not in ("and", "or") else f'"{text}"'


def has_word(name: str, words: str) -> bool:
    """Whether a name has one of some words, between signs, blanks or its ends."""
    return re.search(rf"(?:\A|[\W_])(?:{words})(?:\Z|[\W_])", name, re.IGNORECASE) is not None


def writable(name: str) -> bool:
    """Whether a column can be a variable: a name of 1 to 200 letters in one line."""
    return bool(name.strip()) and len(name) <= 200 and name.isprintable() and not unnamed(name)


def unnamed(name: str) -> bool:
    """Whether a column has no name in its file, so that its reader has numbered it."""
    return re.fullmatch(r"Unnamed: \d+(_level_\d+)?", name) is not None


def commented(sentences: Iterable[str]) -> list[str]:
    """Sentences as comments."""
    return [f"# {each}." for each in sentences]


COPY, ROWS, FEWEST = 0.999, 2000, 10
_NUMBER = re.compile(r"\s*[-+]?\d[\d.,]*(?:[eE][-+]?\d+)?(?:\.\d+)?\s*")


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
    """Whether a column numbers the rows: whole numbers, another one in each row, without gaps."""
    values = np.unique(numbers)
    whole = bool((values == np.round(values)).all())
    return whole and len(values) == len(numbers) > 2 and float(np.ptp(values)) == len(values) - 1


def copies(columns: Mapping[str, np.ndarray], kept: frozenset[str] = frozenset()) -> dict[str, str]:
    """The columns (n,), NaN where a number is missing, that others give, each with what gives it, such as
    ``x`` or ``x times z``; those `kept` are called no copies, but may have some.
    """
    if not columns:
        return {}
    names = [*(name for name in columns if name in kept), *(name for name in columns if name not in kept)]
    values = np.stack([columns[name][:ROWS] for name in names], -1)
    values = values[~np.isnan(values).any(-1)]
    if len(values) < FEWEST:
        return {}
    found, alone = dict[str, str](), _standardised(values)
    close = np.abs(alone.T @ alone) > COPY
    for place, name in enumerate(names):
        before = [each for each in range(place) if close[place, each] and names[each] not in found]
        if name not in kept and before:
            found[name] = names[before[0]]
    made: dict[str, tuple[str, ...]] = {name: (other,) for name, other in found.items()}
    for place, name in enumerate(names):
        if name in kept or name in found:
            continue
        # A copy may be a factor, as x times z is of x times z times w, but not of what it is made of.
        free = [other for other, called in enumerate(names) if name not in made.get(called, ())]
        others = [other for other in free if other != place]
        for first in others:
            seconds = [each for each in others if each >= first]
            products = _standardised(values[:, [first]] * values[:, seconds])
            near = np.abs(alone[:, place] @ products)
            if near.max() > COPY:
                made[name] = (names[first], names[seconds[int(near.argmax())]])
                found[name] = " times ".join(made[name])
                break
    return found


def _standardised(values: np.ndarray) -> np.ndarray:
    """Columns of mean 0 and length 1, whose inner products are correlations; 0 where a column is constant."""
    centred = values - values.mean(0)
    lengths = np.sqrt((centred**2).sum(0))
    scaled: np.ndarray = centred / np.where(lengths > 0, lengths, 1.0)
    return scaled
