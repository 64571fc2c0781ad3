"""Decisions as HTML, for notebooks: a sentence and a small table.

Everything that comes from the data, names of variables included, is escaped: a table may hold columns called
``<script>``.
"""

import math
from collections.abc import Hashable, Mapping, Sequence
from html import escape
from typing import Any

import pandas as pd

from rehearsal_torch.reporting.decision_frame import SET

SHOWN = 10
MOST_WORDS = 160


def decision_html(frame: pd.DataFrame, sentences: Sequence[str], shown: int = SHOWN) -> str:
    """Sentences above a table of the first decisions: case, status, what to set, claim with its interval, the
    estimate for no action, and notes.

    Args:
        frame: One row per case, from `decision_frame`.
        sentences: Plain text.
        shown: The largest number of rows.
    """
    actions = [name for name in frame.columns if name.startswith(SET)]
    heads = ["case", "status", *(name.removeprefix(SET) for name in actions)]
    compared = "unchanged" in frame.columns
    heads += ["claimed", "interval", *(["present values"] if compared else []), "no action", "notes"]
    some = frame.head(shown)
    rows = [
        [
            str(row["case"]),
            str(row["status"]).replace("_", " "),
            *(row[name] if isinstance(row[name], str) else _number(row[name]) for name in actions),
            _number(row["estimate"]),
            "" if math.isnan(row["lower"]) else f"{row['lower']:.3g} to {row['upper']:.3g}",
            *([_number(row["unchanged"])] if compared else []),
            _number(row["no_action"]),
            _notes(row),
        ]
        for row in some.to_dict("records")
    ]
    more = len(frame) - len(some)
    below = [f"... and {more} more: to_frame() has all of them"] if more else []
    parts = [*(f"<p>{escape(text)}</p>" for text in sentences), table_html(heads, rows)]
    return "<div>" + "".join([*parts, *(f"<p>{escape(text)}</p>" for text in below)]) + "</div>"


def table_html(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table of plain texts.

    Args:
        heads: The heads of the columns.
        rows: The cells of each row.
    """
    head = "".join(f"<th>{escape(each)}</th>" for each in heads)
    lines = ("".join(f"<td>{escape(cell)}</td>" for cell in row) for row in rows)
    body = "".join(f"<tr>{line}</tr>" for line in lines)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _number(value: float) -> str:
    return "" if math.isnan(value) else f"{value:.4g}"


def _notes(row: Mapping[Hashable, Any]) -> str:
    text = "; ".join(str(row[name]) for name in ("reason", "warnings") if row[name])
    return text if len(text) <= MOST_WORDS else f"{text[:MOST_WORDS].rsplit(' ', 1)[0]} ..."
