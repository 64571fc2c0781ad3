"""Tables for people, as CSV that a spreadsheet shows and does not compute.

A spreadsheet takes a cell that begins with = + - @, a tab or a line break for a formula, also where it is
the name of a case or a column, and a formula may fetch pages or start programs. Such a text gets an
apostrophe in front; numbers are written as they are. A text that begins with apostrophes before such a sign
gets one more, so that `as_written` finds every text again.

Source: OWASP, CSV injection.
"""

import csv
import io
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

_FORMULA, _MARKED = re.compile(r"'*[=+\-@\t\r\n]"), re.compile(r"'+[=+\-@\t\r\n]")


def cell(value: Any) -> Any:
    """A value as a cell: a text that would be a formula begins with an apostrophe; all else stays."""
    return f"'{value}" if isinstance(value, str) and _FORMULA.match(value) and not _number(value) else value


def as_written(text: str) -> str:
    """The text of which `cell` has made a cell."""
    return text[1:] if _MARKED.match(text) else text


def as_csv(rows: Sequence[Mapping[str, Any]], nan: str = "") -> str:
    """Rows with the union of their columns in order of appearance: numbers in full precision, missing values
    as empty cells.

    Args:
        rows: Column to value.
        nan: How NaN is written.
    """
    columns = list(dict.fromkeys(name for row in rows for name in row))
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(map(cell, columns))
    for row in rows:
        values = [row.get(name, "") for name in columns]
        writer.writerow([nan if _missing(value) else cell(value) for value in values])
    return text.getvalue()


def _missing(value: Any) -> bool:
    return isinstance(value, float) and math.isnan(value)


def _number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return text[:1] in "+-"
