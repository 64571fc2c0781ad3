"""Rows of rounds that learn from each other, and what they come to.

A row says, for one round of one repeat, which variable was altered (``target``) to which ``value``, whether
what followed was wanted (``success``, 0 or 1), how probable that truly was (``p_true``) and could have been
(``oracle``), what the round was expected to teach (``information``, in nats; empty where the method does not
ask), the bound on the probability (``lower``, ``upper``), and the processor's seconds for the whole round.
Several variables are joined with a plus sign. Nothing altered leaves target, value, information and bound
empty.

Source: Qin et al. (2023), Sec. 6 and Fig. 4.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rehearsal_torch.evaluation.recorded_run import Decided, effort
from rehearsal_torch.evaluation.rehearsal_rows import number
from rehearsal_torch.spaces.box import setting_text

COLUMNS = (
    "world",
    "method",
    "tau",
    "repeat",
    "round",
    "target",
    "value",
    "success",
    "p_true",
    "oracle",
    "information",
    "lower",
    "upper",
    "seconds",
)
KEY = COLUMNS[:4]
NUMBERS = ("success", "p_true", "oracle", "information", "lower", "upper", "seconds")
WHOLE = ("repeat", "round")
Row = dict[str, Any]


def online(decided: Decided) -> bool:
    """Whether a decision is of a round that was learnt from."""
    return isinstance(decided.get("answer"), Mapping)


def online_row(world: str, method: str, tau: str, repeat: int, decided: Decided) -> Row:
    """The row of a round; what is unknown is not a number.

    Args:
        world: Its name.
        method: Its name.
        tau: As text; empty for a method without one.
        repeat: Number of the repeat: the seed of world and method.
        decided: A line of ``decisions.jsonl`` of a run that learns, with `seconds`.
    """
    score, bound, setting = (
        decided.get("score") or {},
        decided.get("certificate") or {},
        decided.get("alteration") or {},
    )
    found = {
        "success": None if decided.get("success") is None else int(decided["success"]),
        "p_true": score.get("probability"),
        "oracle": score.get("oracle"),
        "information": decided.get("value") if effort(decided, "search") == "informative" else None,
        "lower": bound.get("lower"),
        "upper": bound.get("upper"),
        "seconds": decided.get("seconds"),
    }
    if not setting:
        # A bound for doing nothing would be read as one for an alteration.
        found |= {"information": None, "lower": None, "upper": None}
    reported = {
        "target": "+".join(setting),
        "value": "+".join(setting_text(value, 6) for value in setting.values()),
    }
    named = {
        "world": world,
        "method": method,
        "tau": tau,
        "repeat": repeat,
        "round": int(decided["index"]) + 1,
    }
    return named | reported | {key: number(found[key]) for key in NUMBERS}


def online_typed(rows: Iterable[Mapping[str, str]]) -> list[Row]:
    """Rows as they were read from CSV, with numbers as numbers."""
    return [
        {
            **line,
            "repeat": int(line["repeat"]),
            "round": int(line["round"]),
            **{key: number(line[key]) for key in NUMBERS},
        }
        for line in rows
    ]


def by_repeat(rows: Sequence[Row]) -> dict[int, list[Row]]:
    """Repeat to its rows in the order of the rounds."""
    found: dict[int, list[Row]] = {}
    for row in sorted(rows, key=lambda row: (row["repeat"], row["round"])):
        found.setdefault(row["repeat"], []).append(row)
    return found
