"""What held-out cases and a known truth say of what a training has learnt: the figures of its card.

    rehearse     by decision: mean true probability of a desired outcome with its 95% bootstrap interval,
                 that of no action and the best possible one, what was claimed, and how many of the claimed
                 intervals hold; for worlds that know the truth
    optimise     by node: recovered against true noise, on rows that the model was not fitted to
    look_back    by search and k: improvements under the model with their 95% bootstrap intervals, and what
                 the truth says of them where it is known

Rounds that learn from each other say nothing of the checkpoint, which is what was learnt before the first of
them, and patients of the training split are not held out. Seconds are left out, so that the same run has the
same figures everywhere.
"""

import math
from collections.abc import Mapping
from pathlib import Path

from rehearsal_torch.evaluation.claim_rows import number
from rehearsal_torch.evaluation.noise_recovery import HELD_OUT, POINT
from rehearsal_torch.evaluation.run_record import Recorded, read
from rehearsal_torch.reporting import alteration_report, trial_report
from rehearsal_torch.reporting.labels import worded
from rehearsal_torch.reporting.sequence_report import summary

Figures = dict[str, dict[str, float | int]]


def held_out(folder: str | Path) -> Figures:
    """What the figures of a run are of (a decision, a node, a search) to name and finite number; empty where
    nothing was held out, or rounds learnt from each other.

    Raises:
        FileNotFoundError: if the folder is none of a run.
    """
    run = read(folder)
    if run.config.get("learn") or run.config.get("split") == "train":
        return {}
    if trial_report.concerns(run):
        figures = _recovered(run)
    elif alteration_report.concerns(run):
        figures = {str(row.pop("method")): row for row in alteration_report.summary_rows(run)}
        figures = {name: row for name, row in figures.items() if math.isfinite(float(row["probability"]))}
    else:
        rows = summary(run, worded(run))
        names = [f"{row.pop('search')}" + (f", k = {row.pop('k')}" if "k" in row else "") for row in rows]
        figures = dict(zip(names, rows, strict=True))
    return {name: _finite(row) for name, row in figures.items()}


def _recovered(run: Recorded) -> dict[str, dict[str, float | int | str]]:
    """Node to what ``truth.csv`` says of its recovered noise, on `rows` rows that were held out."""
    nodes: dict[str, dict[str, float | int | str]] = {}
    for row in run.truth:
        if row.get("part") == HELD_OUT:
            figures = nodes.setdefault(row["node"], {"rows": 0})
            if row["quantity"] == POINT:
                figures["rows"] = int(figures["rows"]) + 1
            else:
                figures[row["quantity"]] = number(row["value"])
    return nodes


def _finite(row: Mapping[str, float | int | str]) -> dict[str, float | int]:
    return {
        name: value if isinstance(value, int) else float(value)
        for name, value in row.items()
        if not isinstance(value, str) and math.isfinite(value) and not name.startswith("seconds")
    }
