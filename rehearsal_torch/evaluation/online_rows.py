"""Rows of online (sequential) runs, in which every round updates the model: one row per round.

A row holds, for one round of one repeat, the altered variable (``target``) and its ``value``, whether the
observed outcome was desired (``success``, 0 or 1), the true probability of that (``p_true``) and the largest
possible one (``oracle``), the expected information gain of the round (``information``, in nats; empty if the
method does not compute it), the bounds on the probability (``lower``, ``upper``), and the processor time of
the whole round in seconds. The names of several altered variables are joined with a plus sign. In a round
without an alteration, target, value, information and bounds are empty. Rows may hold bounds on the truth as
well (`rehearsal_rows.TRUTH`).

Source: Qin et al. (2023), Sec. 6 and Fig. 4.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from rehearsal_torch.evaluation.recorded_run import Decided, effort
from rehearsal_torch.evaluation.rehearsal_rows import number
from rehearsal_torch.spaces.box import setting_text

KEY = ("world", "method", "tau", "repeat")
NUMBERS = ("success", "p_true", "oracle", "information", "lower", "upper", "seconds")
COLUMNS = (*KEY, "round", "target", "value", *NUMBERS)
Row = dict[str, Any]


def online(decided: Decided) -> bool:
    """Whether a decision belongs to an online run: its outcome was observed and learnt from."""
    return isinstance(decided.get("answer"), Mapping)


def online_row(world: str, method: str, tau: str, repeat: int, decided: Decided) -> Row:
    """The row of one round; unknown numbers are NaN.

    Args:
        tau: The probability threshold, as text; empty for a method without one.
        repeat: Number of the repeat: the seed of world and method.
        decided: A line of ``decisions.jsonl`` of an online run, with `seconds`.
    """
    score, setting = decided.get("score") or {}, decided.get("alteration") or {}
    # A bound for no action would be mistaken for that of an alteration.
    bound = (decided.get("certificate") or {}) if setting else {}
    informed = bool(setting) and effort(decided, "search") == "informative"
    numbers = {
        "success": None if decided.get("success") is None else int(decided["success"]),
        "p_true": score.get("probability"),
        "oracle": score.get("oracle"),
        "information": decided.get("value") if informed else None,
        "lower": bound.get("lower"),
        "upper": bound.get("upper"),
        "seconds": decided.get("seconds"),
    }
    row = {"world": world, "method": method, "tau": tau, "repeat": repeat, "round": int(decided["index"]) + 1}
    row |= {
        "target": "+".join(setting),
        "value": "+".join(setting_text(value, 6) for value in setting.values()),
    }
    return row | {key: number(numbers[key]) for key in NUMBERS}


def by_repeat(rows: Sequence[Row]) -> dict[int, list[Row]]:
    """Maps each repeat to its rows, in the order of the rounds."""
    repeats: dict[int, list[Row]] = {}
    for row in sorted(rows, key=lambda row: (row["repeat"], row["round"])):
        repeats.setdefault(row["repeat"], []).append(row)
    return repeats
