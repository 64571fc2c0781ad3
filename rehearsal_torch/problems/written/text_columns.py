"""Columns of texts in a first draft: whether they are levels or classes, and in which order.

    two texts                        binary, sorted
    texts of a known scale           ordinal: low, medium, high; none, mild, moderate, severe; ...
    3 to 12 texts                    categorical
    more, or few rows of each        no variable: names, identifiers or free texts

Source: Likert (1932), for some of the scales; the rest is ours.
"""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from rehearsal_torch.data.codings.columns import texts_in
from rehearsal_torch.data.problem_file.kinds import only_texts

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
    """A column of texts as a variable.

    Attributes:
        kind: binary, ordinal or categorical.
        levels: Its texts, in their order.
        places: The index of the level of each row, (n,), NaN where it is missing.
    """

    kind: str
    levels: tuple[str, ...]
    places: np.ndarray


def text_column(frame: pd.DataFrame, name: str) -> TextColumn | str | None:
    """A column of texts as a variable; why it is none; None for a column that has numbers.

    Args:
        frame: The rows.
        name: The column.
    """
    if not only_texts(frame, name):
        return None
    texts = texts_in(frame[name])
    if len(texts) < 2:
        return None
    known = int(frame[name].notna().sum())
    if len(texts) > CLASSES or len(texts) * EACH > known > 2:
        return (
            f"{len(texts)} different texts in {known} rows, which are free texts, names or too many "
            "classes: it may stay in the table, as no variable"
        )
    scale = next((each for each in SCALES if {text.casefold() for text in texts} <= set(each)), None)
    if scale is not None:
        texts = sorted(texts, key=lambda text: scale.index(text.casefold()))
    kind = "binary" if len(texts) == 2 else "categorical" if scale is None else "ordinal"
    places = frame[name].map(lambda cell: texts.index(cell.strip()) if isinstance(cell, str) else np.nan)
    return TextColumn(kind, tuple(texts), places.to_numpy(np.float64))
