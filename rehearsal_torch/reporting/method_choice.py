"""Why a run used its method, where it was chosen from the rows: sentences, and a table of all methods.

Read from ``method_choice.json`` and ``method_choice.csv`` of the run folder; other runs have neither.
"""

import math
from collections.abc import Sequence

from rehearsal_torch.evaluation.recorded_run import Recorded
from rehearsal_torch.evaluation.rehearsal_rows import number
from rehearsal_torch.files.plain import TEXTS, checked, read_json
from rehearsal_torch.files.rows import read_rows
from rehearsal_torch.reporting.page.markup import Markup, joined, paragraphs
from rehearsal_torch.reporting.page.markup import table as table_of
from rehearsal_torch.reporting.text_table import text_table

TABLE, RECORD = "method_choice.csv", "method_choice.json"
NUMBERS = (
    *("value", "gain", "gain_error", "behind", "behind_error", "brier", "brier_context", "brier_constant"),
    *("gain_lower", "gain_upper", "worse", "worse_error", "judges", "seconds"),
)
HEADS = (
    *("method", "value", "above nothing", "behind the best", "Brier", "context only", "constant"),
    *("judges", ""),
)
WORDS = (0, len(HEADS) - 1)
CAPTION = (
    "The methods that were compared, simplest first; above nothing: 95% intervals of what each gains; "
    "other differences with one standard error"
)


def reasons(run: Recorded) -> list[str]:
    """The sentences of the choice; empty if the method of the run was not chosen from its rows.

    Raises:
        PlainFileError: if the record is damaged.
    """
    path = run.path / RECORD
    if not path.exists():
        return []
    sentences: list[str] = checked(read_json(path), str(path), {"sentences": TEXTS}, ("sentences",))[
        "sentences"
    ]
    return sentences


def text(run: Recorded) -> list[str]:
    """Sentences and table for a terminal; empty if the method was not chosen."""
    rows = _rows(run)
    if not rows:
        return []
    return [text_table(HEADS, rows, CAPTION, texts=WORDS), *reasons(run)]


def section(run: Recorded) -> Markup:
    """Sentences and table for the page; empty if the method was not chosen."""
    rows = _rows(run)
    if not rows:
        return Markup()
    return joined([paragraphs(reasons(run)), table_of(CAPTION, HEADS, rows, WORDS)])


def _rows(run: Recorded) -> Sequence[Sequence[str]]:
    """The methods that were compared, as cells."""
    lines = read_rows(run.path / TABLE, ("method", "compared", "chosen", *NUMBERS), NUMBERS)
    return [
        (
            line["method"],
            _cell(line["value"]),
            _within(line["gain_lower"], line["gain_upper"]),
            _pair(line["behind"], line["behind_error"]),
            _cell(line["brier"], 4),
            _cell(line["brier_context"], 4),
            _cell(line["brier_constant"], 4),
            _cell(line["judges"], 2),
            "taken" if line["chosen"] == "yes" else "",
        )
        for line in lines
        if line["compared"] == "yes"
    ]


def _pair(value: str, error: str) -> str:
    return "-" if not value else f"{_cell(value)} ± {_cell(error)}"


def _within(lower: str, upper: str) -> str:
    """The interval of a gain, if there is one."""
    return "-" if not lower else f"[{_cell(lower, 2)}, {_cell(upper, 2)}]"


def _cell(written: str, digits: int = 3) -> str:
    value = number(written)
    return "-" if math.isnan(value) else f"{value:.{digits}f}"
