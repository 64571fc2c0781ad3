"""Rows of recorded runs: claimed numbers, and the true ones if the world knows them.

Rehearsal decisions: a row holds, for one method in one context, the true probability of a desired outcome
after the decision (``auf``), the largest possible one (``oracle``) and that without an alteration
(``no_action``); the method's own estimate (``estimate``) with its interval (``lower``, ``upper``); and the
seconds of the decision. A decision without an alteration, refused or by choice, has no interval; its estimate
is that of leaving the present values as they are, where these are known, else that of no action
(`recorded_run.before`). Where a certificate bounds the true probability as well (`credible_bound`), ``lower``
and ``upper`` are those of the estimate or of the posterior mean, and the bounds on the truth have columns of
their own (`TRUTH`).

Online runs, in which every round updates the model: a row holds, for one round of one repeat, the altered
variable (``target``) and its ``value``, whether the observed outcome was desired (``success``, 0 or 1), the
true probability of that (``p_true``) and the largest possible one (``oracle``), the expected information gain
of the round (``information``, in nats; empty if the method does not compute it), the bounds on the
probability, and the processor time of the whole round in seconds. The names of several altered variables are
joined with a plus sign. In a round without an alteration, target, value, information and bounds are empty.

Trials: a row holds, for one round of one run, the expected reward of the action that was tried
(``expected``), the best of all tried so far, the start design included (``best_expected``), the expected
reward of the action that the method would have recommended in that round (``recommended_expected``), the
largest possible one (``optimum``), the best of the start design (``start``) and the seconds of the round.
Expected rewards are the world's own; the method observes one noisy reward per round.

Source: Du et al. (2026), Sec. 4.1 (AUF probability) and Tab. 1; Qin et al. (2023), Sec. 6 and Fig. 4; Ren et
al. (2025), Sec. 11.1 (expected reward by round).
"""

import csv
import io
import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate
from typing import Any

from rehearsal_torch.evaluation.run_record import Decided, before, claim, effort
from rehearsal_torch.files.csv_rows import cell
from rehearsal_torch.spaces.box import setting_text

NUMBERS = ("auf", "oracle", "no_action", "estimate", "lower", "upper", "seconds")
COLUMNS = ("dataset", "method", "seed", "context", *NUMBERS)
ONLINE_KEY = ("world", "method", "tau", "repeat")
ONLINE_NUMBERS = ("success", "p_true", "oracle", "information", "lower", "upper", "seconds")
ONLINE_COLUMNS = (*ONLINE_KEY, "round", "target", "value", *ONLINE_NUMBERS)
TRIAL_NUMBERS = ("expected", "best_expected", "recommended_expected", "optimum", "start", "seconds")
TRIAL_COLUMNS = ("problem", "setting", "method", "seed", "round", *TRIAL_NUMBERS)
# The interval for the true probability, and its one-sided lower bound.
TRUTH = ("truth_lower", "truth_upper", "truth_least")
Row = dict[str, Any]


def scored_by_world(decided: Decided) -> bool:
    """Whether a world scored the decision with the true probability of a desired outcome."""
    score = decided.get("score")
    return isinstance(score, Mapping) and {"probability", "no_action", "oracle"} <= set(score)


def row(dataset: str, method: str, seed: int, decided: Decided) -> Row:
    """The row of a decision, a line of ``decisions.jsonl`` with its `seconds`; unknown numbers are NaN."""
    score, acted = decided.get("score") or {}, decided.get("alteration") is not None
    lower, upper = interval_of(decided) if acted else (None, None)
    numbers = {
        "auf": score.get("probability"),
        "oracle": score.get("oracle"),
        "no_action": score.get("no_action"),
        "estimate": claim(decided) if acted else before(decided),
        "lower": lower,
        "upper": upper,
        "seconds": decided.get("seconds"),
    }
    key_columns = {"dataset": dataset, "method": method, "seed": seed, "context": decided.get("identity", "")}
    return key_columns | {key: number(numbers[key]) for key in NUMBERS}


def interval_of(decided: Decided) -> tuple[Any, Any]:
    """The bounds of the claimed probability: of the estimate, else of the certificate; None if missing."""
    certificate = decided.get("certificate") or {}
    lower, upper = claim(decided, "lower"), claim(decided, "upper")
    return (certificate.get("lower"), certificate.get("upper")) if lower is None else (lower, upper)


def truth_bounds(decided: Decided) -> dict[str, float]:
    """The certificate's bounds on the true probability, if any, by `TRUTH`; NaN without an alteration."""
    certificate, acted = decided.get("certificate") or {}, bool(decided.get("alteration"))
    return {key: number(certificate[key] if acted else None) for key in TRUTH if key in certificate}


def with_truth(columns: Sequence[str], rows: Sequence[Mapping[str, object]]) -> tuple[str, ...]:
    """The columns, followed by those of the bounds on the truth that a row has."""
    return (*columns, *(key for key in TRUTH if any(key in row for row in rows)))


def number(value: object) -> float:
    """The value as a number; NaN for None, an empty text and anything that is not a number."""
    if isinstance(value, str):
        return float(value) if value else math.nan
    return float(value) if isinstance(value, int | float) else math.nan


def typed(rows: Iterable[Mapping[str, str]]) -> list[Row]:
    """Rows read from CSV, with texts converted to numbers."""
    return [{**row, "seed": int(row["seed"]), **{key: number(row[key]) for key in NUMBERS}} for row in rows]


def written(rows: Sequence[Mapping[str, object]], columns: Sequence[str], *, head: bool = True) -> str:
    """Rows as CSV: numbers in six significant digits, enough for probabilities; NaN as an empty cell."""
    text = io.StringIO()
    writer = csv.DictWriter(text, list(columns), lineterminator="\n", restval="", extrasaction="raise")
    if head:
        writer.writeheader()
    writer.writerows({key: _cell(value) for key, value in line.items()} for line in rows)
    return text.getvalue()


def _cell(value: object) -> object:
    if isinstance(value, float):
        return "" if math.isnan(value) else f"{value:.6g}"
    return cell(value)


def online(decided: Decided) -> bool:
    """Whether a decision belongs to an online run: its outcome was observed and learnt from."""
    return isinstance(decided.get("answer"), Mapping)


def online_row(world: str, method: str, tau: str, repeat: int, decided: Decided) -> Row:
    """The row of one round, with the threshold `tau` as text and the seed `repeat`; NaN for unknown."""
    score, setting = decided.get("score") or {}, decided.get("alteration") or {}
    # A bound for no action would be mistaken for that of an alteration.
    bound = (decided.get("certificate") or {}) if setting else {}
    informative = bool(setting) and effort(decided, "search") == "informative"
    numbers = {
        "success": None if decided.get("success") is None else int(decided["success"]),
        "p_true": score.get("probability"),
        "oracle": score.get("oracle"),
        "information": decided.get("value") if informative else None,
        "lower": bound.get("lower"),
        "upper": bound.get("upper"),
        "seconds": decided.get("seconds"),
    }
    row = {"world": world, "method": method, "tau": tau, "repeat": repeat, "round": int(decided["index"]) + 1}
    row["target"] = "+".join(setting)
    row["value"] = "+".join(setting_text(value, 6) for value in setting.values())
    return row | {key: number(numbers[key]) for key in ONLINE_NUMBERS}


def by_run(rows: Iterable[Row], key: str) -> dict[int, list[Row]]:
    """Maps each run, by its "repeat" or "seed", to its rows, in the order of the rounds."""
    runs: dict[int, list[Row]] = {}
    for row in sorted(rows, key=lambda row: (row[key], row["round"])):
        runs.setdefault(row[key], []).append(row)
    return runs


def scored_trial(decided: Decided) -> bool:
    """Whether a world scored the trial with its true expected rewards."""
    score = decided.get("score")
    return isinstance(score, Mapping) and {"expected", "recommended", "optimum", "start"} <= set(score)


def trial_rows(problem: str, setting: str, method: str, seed: int, decisions: Sequence[Decided]) -> list[Row]:
    """The rows of the rounds of a run, all scored, from the first on; `setting` is the world's variant."""
    scores = [decision["score"] for decision in decisions]
    start = number(scores[0]["start"]) if scores else None
    best = list(accumulate((number(score["expected"]) for score in scores), max, initial=start))[1:]
    rows = []
    for decision, score, so_far in zip(decisions, scores, best, strict=True):
        numbers = {
            "expected": score["expected"],
            "best_expected": so_far,
            "recommended_expected": score["recommended"],
            "optimum": score["optimum"],
            "start": score["start"],
            "seconds": decision.get("seconds"),
        }
        row: Row = {"problem": problem, "setting": setting, "method": method, "seed": seed}
        row["round"] = int(decision["index"]) + 1
        rows.append(row | {key: number(value) for key, value in numbers.items()})
    return rows
