"""Columns that identify persons or rows, by their names and their values.

    by name      the last word is id, identifier, uuid, ...; or the words are those of a person's data: name,
                 email, phone, address, zip, date of birth, social security number, ...
    by both      the last word is patient, customer, ...; and texts or whole numbers differ in every row
    by value     texts that differ in every row; whole numbers that differ in every row and either have no
                 gaps (row numbers) or five digits and more, equally many in all rows (customer numbers) or
                 rising from row to row

Nothing can be learnt from such a column, and what it holds may be private. Columns with two values are never
taken for identifiers: a column `phone` of 0 and 1 says who has one.

Source: Regulation (EU) 2016/679 (GDPR), Art. 4 (1), for what identifies a person.
"""

import re
from dataclasses import dataclass

import numpy as np
import pandas as pd

from rehearsal_torch.data.tables.reader import are_whole, numbers_of

LAST = frozenset(("id", "ids", "identifier", "uuid", "guid"))
_PERSONAL = (
    "name, names, surname, firstname, lastname, fullname, username, email, e mail, mail, phone, telephone, "
    "mobile, fax, ssn, social security, passport, iban, address, street, zip, zipcode, postcode, "
    "postal code, birthdate, birthday, birth date, date of birth, dob"
)
PERSONAL = tuple(tuple(words.split()) for words in _PERSONAL.split(","))
# Things have names, too: the word before says whether it is that of a person.
NAMES = (("name",), ("names",))
_PERSONS = (
    "first last middle maiden full given family user customer client patient person employee worker student "
    "contact owner member applicant doctor nurse guest buyer driver teacher"
)
PERSONS = frozenset(_PERSONS.split())
# Words that may follow them: phone number, zip code.
AFTER = frozenset(("number", "nr", "no", "code"))
# Rows from which different values mean something, and the fewest digits of a customer number.
ROWS, DIGITS = 20, 5


@dataclass(frozen=True)
class Identifier:
    """Why a column is taken for an identifier; and whether each row has another value, so that it can name
    cases, it is named like data of a person, and its values show it, not its name.
    """

    reason: str
    unique: bool
    personal: bool
    by_value: bool = False


def identifier(name: str, column: pd.Series) -> Identifier | None:
    """Why a column looks like an identifier; None if it does not."""
    cells = column.dropna()
    distinct = cells.nunique()
    if distinct <= 2:
        return None
    unique = len(cells) == len(column) == distinct
    words = words_of(name)
    personal = next((phrase for phrase in PERSONAL if _ends_in(phrase, words)), None)
    if personal in NAMES and not unique and len(words) > 1 and not PERSONS & set(words):
        # A region name, a product name: names of things, of which several rows have the same.
        personal = None
    if personal is not None:
        return Identifier(f"its name says that it holds a person's data ({' '.join(personal)})", unique, True)
    if words and words[-1] in LAST:
        return Identifier(f"its name ends in {words[-1]}", unique, False)
    if not unique:
        return None
    numbers = numbers_of(cells)
    if words and words[-1] in PERSONS and not (numbers % 1 > 0).any():
        return Identifier(f"every row names another {words[-1]}", True, False)
    reason = _reason_by_value(numbers) if len(cells) >= ROWS else ""
    return Identifier(reason, True, False, True) if reason else None


def _reason_by_value(numbers: np.ndarray) -> str:
    """Why values that differ in every row, NaN for texts, identify the rows; empty if they do not."""
    if np.isnan(numbers).all():
        return "every row has another text"
    if not are_whole(numbers):
        return ""
    if np.ptp(numbers) == len(numbers) - 1:
        return "every row has another whole number, without gaps"
    lengths = np.floor(np.log10(np.maximum(np.abs(numbers), 1))) + 1
    if lengths.min() == lengths.max() >= DIGITS:
        return f"every row has another number of {int(lengths[0])} digits"
    rising = lengths.min() >= DIGITS and (np.diff(numbers) > 0).all()
    return "every row has a larger whole number than the row before" if rising else ""


def words_of(name: str) -> list[str]:
    """The words of a name such as customer_id, customerId or "Customer ID", in lower case."""
    spaced = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", " ", name)
    return [word for word in re.split(r"[\W_]+", spaced.lower()) if word]


def _ends_in(phrase: tuple[str, ...], words: list[str]) -> bool:
    """Whether words end in a phrase, or in one and a word such as number."""
    ends = [words, words[:-1]] if len(words) > 1 and words[-1] in AFTER else [words]
    return any(tuple(end[-len(phrase) :]) == phrase for end in ends)
