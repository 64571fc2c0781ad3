"""Rows of rehearsal decisions: claimed probabilities, and the true ones if the world knows them.

A row holds, for one method in one context, the true probability of a desired outcome after the decision
(``auf``), the largest possible one (``oracle``) and that without an alteration (``no_action``); the method's
own estimate (``estimate``) with its interval (``lower``, ``upper``); and the seconds of the decision. A
decision without an alteration, refused or by choice, has no interval; its estimate is that of leaving the
present values as they are, where these are known, else that of no action (`recorded_run.before`).

Where a certificate bounds the true probability as well (`credible_bound`), ``lower`` and ``upper`` are those
of the estimate or of the posterior mean, and the bounds on the truth have columns of their own (`TRUTH`).
Source: Du et al. (2026), Sec. 4.1 (AUF probability) and Tab. 1.
"""

import csv
import io
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rehearsal_torch.evaluation.recorded_run import Decided, before, claim
from rehearsal_torch.files.rows import cell

NUMBERS = ("auf", "oracle", "no_action", "estimate", "lower", "upper", "seconds")
COLUMNS = ("dataset", "method", "seed", "context", *NUMBERS)
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
    named = {"dataset": dataset, "method": method, "seed": seed, "context": decided.get("identity", "")}
    return named | {key: number(numbers[key]) for key in NUMBERS}


def interval_of(decided: Decided) -> tuple[Any, Any]:
    """Lower and upper bound of the claimed probability: those of the estimate, else those of the certificate;
    None if there are none.
    """
    certificate = decided.get("certificate") or {}
    lower, upper = claim(decided, "lower"), claim(decided, "upper")
    return (certificate.get("lower"), certificate.get("upper")) if lower is None else (lower, upper)


def truth_bounds(decided: Decided) -> dict[str, float]:
    """The certificate's bounds on the true probability, `TRUTH` to number; NaN without an alteration, empty
    if the certificate has none.
    """
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
    return [
        {**line, "seed": int(line["seed"]), **{key: number(line[key]) for key in NUMBERS}} for line in rows
    ]


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
