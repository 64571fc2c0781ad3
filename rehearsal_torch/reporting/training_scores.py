"""Figures of a model card: what held-out cases and a known truth say of a training.

    rehearse     by decision: mean true probability of a desired outcome with its 95% bootstrap interval,
                 that of no action and the best possible one, what was claimed, and how many of the claimed
                 intervals hold; for worlds that know the truth
    optimise     by node: recovered against true noise, on rows that the model was not fitted to
    look_back    by search and k: improvements under the model with their 95% bootstrap intervals, and what
                 the truth says of them where it is known

Rounds that learn from each other say nothing of the checkpoint, which was learnt before them, and patients of
the training split are not held out. Seconds are left out, so that a run has the same figures everywhere.
"""

import math
from collections.abc import Mapping
from pathlib import Path

from rehearsal_torch.evaluation.claim_rows import number
from rehearsal_torch.evaluation.noise_recovery import HELD_OUT, POINT
from rehearsal_torch.evaluation.run_record import Recorded, read
from rehearsal_torch.reporting import alteration_report
from rehearsal_torch.reporting.labels import worded
from rehearsal_torch.reporting.sequence_report import summary

Figures = dict[str, dict[str, float | int]]


def held_out(folder: str | Path) -> Figures:
    """Decision, node or search to its figures, name to finite number; empty where nothing was held out, or
    rounds learnt from each other. FileNotFoundError if the folder is none of a run.
    """
    run = read(folder)
    if run.config.get("learn") or run.config.get("split") == "train":
        return {}
    if run.of_trials:
        figures = _recovered_noise(run)
    elif run.of_cases:
        figures = {str(row.pop("method")): row for row in alteration_report.summary_rows(run)}
        figures = {name: row for name, row in figures.items() if math.isfinite(float(row["probability"]))}
    else:
        rows = summary(run, worded(run))
        names = [f"{row.pop('search')}" + (f", k = {row.pop('k')}" if "k" in row else "") for row in rows]
        figures = dict(zip(names, rows, strict=True))
    return {name: _finite_numbers(row) for name, row in figures.items()}


def _recovered_noise(run: Recorded) -> dict[str, dict[str, float | int | str]]:
    """Node to the quantities of its recovered noise in ``truth.csv``, on `rows` held-out rows."""
    nodes: dict[str, dict[str, float | int | str]] = {}
    for row in run.truth:
        if row.get("part") == HELD_OUT:
            figures = nodes.setdefault(row["node"], {"rows": 0})
            if row["quantity"] == POINT:
                figures["rows"] = int(figures["rows"]) + 1
            else:
                figures[row["quantity"]] = number(row["value"])
    return nodes


def _finite_numbers(row: Mapping[str, float | int | str]) -> dict[str, float | int]:
    return {
        name: value if isinstance(value, int) else float(value)
        for name, value in row.items()
        if not isinstance(value, str) and math.isfinite(value) and not name.startswith("seconds")
    }
