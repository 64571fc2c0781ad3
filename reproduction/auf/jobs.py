"""Avoiding undesired futures: each job fits a method in a world and decides in its contexts.

Every stage has a file with one row per decision. ``jobs.csv`` has one line per job, with the seconds of its
fit, the number of its decisions, and how many of them were without action (``idle``) or bore warnings.

Source: Du et al. (2026), Sec. 4 and App. D and E, Fig. 3, 5 and 10, Tab. 1 to 4.
"""

import math
from collections.abc import Mapping
from typing import Any

from rehearsal_torch.evaluation.claim_rows import COLUMNS, Row, number, row, typed
from reproduction.job import configured, decided_cases
from reproduction.plan import Job, study
from reproduction.record import Layout, Record

KEY = ("stage", "dataset", "method", "setting", "seed")
LOG = (*KEY, "state", "fit_seconds", "decisions", "idle", "warned", "commit", "message")
# The stage whose rows have no setting.
TABLE1 = "table1"


def layouts(options: Mapping[str, Any]) -> dict[str, Layout]:  # noqa: ARG001
    """Stage to the file of its rows."""
    with_setting = (*COLUMNS[:2], "setting", *COLUMNS[2:])
    return {
        name: Layout(stage["file"], KEY, COLUMNS if name == TABLE1 else with_setting)
        for name, stage in study("auf")["stages"].items()
    }


def rows_of(options: Mapping[str, Any], job: Job) -> tuple[list[Row], Mapping[str, Any]]:
    """The rows of a job, one per decision, and the further cells of its line."""
    contexts = f"dataset.size.contexts={options['contexts']}"
    decisions, fit_seconds = decided_cases(configured([*job.overrides, contexts, *options["overrides"]]))
    setting = {} if job.stage == TABLE1 else {"setting": job.setting}
    rows = [row(job.world, job.method, job.seed, each) | setting for each in decisions]
    acted = [each for each in decisions if each["alteration"] is not None]
    facts = {
        "fit_seconds": fit_seconds,
        "decisions": len(decisions),
        "idle": len(decisions) - len(acted),
        "warned": sum(bool(each.get("findings")) for each in acted),
    }
    return rows, facts


def recorded_rows(record: Record, stage: str) -> list[Row]:
    """The rows of a stage, with numbers as numbers.

    Each row also has the columns ``setting`` (empty for a stage without settings) and ``fit_seconds``, the
    seconds of its job's fit.
    """
    found = []
    for line in typed(record.rows(stage)):
        key = (stage, *(str(line.get(name, "")) for name in KEY[1:]))
        found.append({"setting": "", **line, "fit_seconds": number(record.lines[key]["fit_seconds"])})
    return found


def job_totals(record: Record, stage: str, column: str) -> dict[tuple[object, object], int]:
    """(world, method) to the sum of a column of ``jobs.csv`` over the jobs of a stage; an empty cell counts
    as 0.
    """
    found: dict[tuple[object, object], int] = {}
    for line in record.lines.values():
        if line["stage"] == stage:
            value = number(line[column])
            key = (line["dataset"], line["method"])
            found[key] = found.get(key, 0) + (0 if math.isnan(value) else int(value))
    return found
