"""Rows of trials: expected rewards of the actions tried and recommended, one row per round.

A row holds, for one round of one run, the expected reward of the action that was tried (``expected``), the
best of all tried so far, the start design included (``best_expected``), the expected reward of the action
that the method would have recommended in that round (``recommended_expected``), the largest possible one
(``optimum``), the best of the start design (``start``) and the seconds of the round. Expected rewards are the
world's own; the method observes one noisy reward per round.

Source: Ren et al. (2025), Sec. 11.1 (expected reward by round).
"""

from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import Any

from rehearsal_torch.evaluation.recorded_run import Decided
from rehearsal_torch.evaluation.rehearsal_rows import number

KEY = ("problem", "setting", "method", "seed")
NUMBERS = ("expected", "best_expected", "recommended_expected", "optimum", "start", "seconds")
COLUMNS = (*KEY, "round", *NUMBERS)
Row = dict[str, Any]


def scored(decided: Decided) -> bool:
    """Whether a world scored the trial with its true expected rewards."""
    score = decided.get("score")
    return isinstance(score, Mapping) and {"expected", "recommended", "optimum", "start"} <= set(score)


def trial_rows(problem: str, setting: str, method: str, seed: int, decisions: Sequence[Decided]) -> list[Row]:
    """The rows of one run, in the order of its rounds.

    Args:
        setting: Variant of the world; empty if there is only one.
        seed: Seed of world and method.
        decisions: Scored trials, with `seconds`, from the first round on.
    """
    scores = [decision["score"] for decision in decisions]
    start = number(scores[0]["start"]) if scores else None
    best = list(accumulate((number(score["expected"]) for score in scores), max, initial=start))[1:]
    rows = []
    for decision, score, so_far in zip(decisions, scores, best, strict=True):
        named = {
            "problem": problem,
            "setting": setting,
            "method": method,
            "seed": seed,
            "round": int(decision["index"]) + 1,
        }
        numbers = {
            "expected": score["expected"],
            "best_expected": so_far,
            "recommended_expected": score["recommended"],
            "optimum": score["optimum"],
            "start": score["start"],
            "seconds": decision.get("seconds"),
        }
        rows.append(named | {key: number(value) for key, value in numbers.items()})
    return rows


def by_seed(rows: Sequence[Row]) -> dict[int, list[Row]]:
    """Maps each seed to its rows, in the order of the rounds."""
    seeds: dict[int, list[Row]] = {}
    for row in sorted(rows, key=lambda row: (row["seed"], row["round"])):
        seeds.setdefault(row["seed"], []).append(row)
    return seeds
