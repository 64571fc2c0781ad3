"""Average effects of actions over the rows of a table (`surrogates.outcome.average_effects`), as text and
file.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rehearsal_torch.data.estimate import DIFFERENCE, Estimate, Intervals, ends_of, points
from rehearsal_torch.evaluation.claim_rows import number
from rehearsal_torch.evaluation.run_record import Recorded
from rehearsal_torch.files.csv_rows import read_rows
from rehearsal_torch.spaces.box import setting_text
from rehearsal_torch.surrogates.outcome.outcome_regression import OutcomeRegression
from rehearsal_torch.surrogates.surrogate import Surrogate

FILE = "average.csv"
NUMBERS = ("point", "lower", "upper", "level", "beyond", "check", "check_lower", "check_upper")
COLUMNS = ("action", "against", "levels", *NUMBERS, "told")
# Actions of levels against none that one sentence holds.
FEW = 4
NO_ACTION = "no action"


@dataclass(frozen=True)
class AverageEffect:
    """By how much an action changes the mean probability of a desired outcome over the rows.

    Attributes:
        action: Name to value, with texts in place of codes.
        against: The same of what it is compared with; empty for no action.
        gain: The difference with its interval, by the draws of single cases.
        beyond: S, the share of rows in whose place no row is near with the action.
        check: A doubly robust estimate of it; None where there is none, as for continuous actions.
        told: Whether `gain` is told from zero; by a model that does not predict new rows, if `check` is, too.
        contradicted: Whether the two intervals lie apart, so that one of the models is wrong.
        levels: Whether the action is one of levels.
    """

    action: Mapping[str, Any]
    against: Mapping[str, Any]
    gain: Estimate
    beyond: float
    check: Estimate | None
    told: bool
    contradicted: bool
    levels: bool

    def __str__(self) -> str:
        intervals = Intervals()
        parts = [_difference(self.gain, intervals)]
        parts += [] if self.check is None else [f"doubly robust {_difference(self.check, intervals)}"]
        doubts = ["the two contradict each other"] if self.contradicted else []
        doubts += [] if self.told else [_untold(self.gain, self.check)]
        actions = f"{_action_text(self.action)} against {_action_text(self.against)}"
        return "; ".join([f"{actions}: {', '.join(parts)}", *doubts])


def _action_text(action: Mapping[str, Any]) -> str:
    pairs = (
        (name, value if isinstance(value, str) else setting_text(value)) for name, value in action.items()
    )
    return " and ".join(f"{name} {text}" for name, text in pairs) or NO_ACTION


def _difference(estimate: Estimate, intervals: Intervals) -> str:
    sign = "+" if estimate.point > 0 else ""
    return f"{sign}{intervals.difference(estimate.point, ends_of(estimate), estimate.level)}"


def _excludes_zero(estimate: Estimate | None) -> bool:
    lower, upper = (None if estimate is None else ends_of(estimate)) or (0.0, 0.0)
    return lower > 0 or upper < 0


def _untold(gain: Estimate, check: Estimate | None) -> str:
    """That an effect is not told from zero, and why, where one of the intervals is without zero."""
    if _excludes_zero(gain):
        return "not told from zero, as the model predicts left-out rows no better than a constant does"
    return "not told from zero" + (" but by the second estimate" if _excludes_zero(check) else "")


def effects_of(surrogate: Surrogate) -> list[AverageEffect]:
    """Those of all candidate sets; empty where the method has none."""
    if not isinstance(surrogate, OutcomeRegression):
        return []
    task, in_doubt, effects = surrogate.task, bool(surrogate.score.doubt()), []
    for names, averages in zip(task.candidates, surrogate.averages, strict=True):
        if names in task.holding:
            continue
        settings = [
            task.worded(dict(zip(names, row, strict=True)))
            for row in (averages.actions.tolist() if averages.fitted else [])
        ]
        for effect in averages.effects():
            gain = effect.draws.estimate()
            told = _excludes_zero(gain) and (not in_doubt or _excludes_zero(effect.check))
            against = {} if effect.against is None else settings[effect.against]
            levels = set(names) <= set(task.box.levels)
            parts = gain, effect.draws.beyond, effect.check, told, effect.contradicted, levels
            effects.append(AverageEffect(settings[effect.action], against, *parts))
    return effects


def rows_of(effects: Sequence[AverageEffect]) -> list[dict[str, Any]]:
    """The rows of ``average.csv``."""
    rows = []
    for effect in effects:
        numbers = [effect.gain.point, effect.gain.lower, effect.gain.upper, effect.gain.level, effect.beyond]
        check = effect.check
        numbers += [math.nan] * 3 if check is None else [check.point, check.lower, check.upper]
        row = {"action": _action_text(effect.action), "against": _action_text(effect.against)}
        row |= {"levels": "yes" if effect.levels else "no"}
        rows.append(row | dict(zip(NUMBERS, numbers, strict=True)) | {"told": "yes" if effect.told else "no"})
    return rows


def sentence(rows: Sequence[Mapping[str, str]]) -> str:
    """The rows of the file in a sentence: actions of few levels against no action; else empty."""
    shown = [row for row in rows if row["levels"] == "yes" and row["against"] == NO_ACTION]
    if not 0 < len(shown) <= FEW:
        return ""
    intervals, parts = Intervals(), []
    for row in shown:
        point, lower, upper, level, _, *check = (number(row[name]) for name in NUMBERS)
        gain = Estimate(point, DIFFERENCE, lower, upper, level)
        robust = None if math.isnan(check[0]) else Estimate(check[0], DIFFERENCE, check[1], check[2], level)
        text = f"{row['action']} {_difference(gain, intervals)}"
        checks = [] if robust is None else [f"by a second estimate {' to '.join(points(check[1:]))}"]
        parts.append(", ".join([text, *checks, *([] if row["told"] == "yes" else [_untold(gain, robust)])]))
    return f"On average over the rows, against no action: {'; '.join(parts)}."


def averages(run: Recorded) -> str:
    """The sentence of a run; empty if it has none."""
    return sentence(read_rows(run.path / FILE, COLUMNS, NUMBERS))
