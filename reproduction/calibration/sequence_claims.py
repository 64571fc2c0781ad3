"""What is claimed of sequences in worlds of episodes by seed, beside what is true: the jobs of the stage
``sequences``, and their tables by trait.

A row holds a decision, the kinds of its reason and findings, the claimed gain with its interval, the true
gain by replaying the world (0 where nothing is changed), the best gain where it can be enumerated, and the
processor seconds of the fit and of all decisions of the world. ``attained`` is the share of the best gain
that comes true, where that is known. Intervals of means are bootstrap intervals over whole worlds.

Source: Dawid (1982) (calibration).
"""

import math
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rehearsal_torch.evaluation.rows import Row, number
from rehearsal_torch.methods.build import problem_of
from rehearsal_torch.problems.episodes.drawn_episodes import TRAITS, DrawnEpisodes
from reproduction.calibration.drawn_tables import REPORT, has, shown
from reproduction.job import configured, decided_cases
from reproduction.page import Section, table
from reproduction.plan import Job, texts

SEQUENCES = "sequences"
NUMBERS = (
    *("gain", "gain_lower", "gain_upper", "true_gain", "best_gain", "stated"),
    *("units", "fit_seconds", "decision_seconds"),
)
COLUMNS = (
    *("dataset", "method", "seed", "context", "trait", "status", "reason", "findings", "changes"),
    *NUMBERS,
)
# How far below zero a gain counts as worse; and the cases of a world.
WORSE, CASES = 1e-9, 20


def rows_of(options: Mapping[str, Any], job: Job) -> tuple[list[Row], Mapping[str, Any]]:
    """The rows of a job, one per case, and the further cells of its line."""
    config = configured([*job.overrides, "trainer.progress=false", *options["overrides"]])
    world = problem_of(config)
    assert isinstance(world, DrawnEpisodes)
    world.chosen = world.chosen[:CASES]
    began = time.process_time()
    lines, fit_seconds = decided_cases(config, world)
    spent = time.process_time() - began - fit_seconds
    known = {"dataset": job.world, "method": job.method, "seed": job.seed, "trait": world.process.trait}
    facts = {"units": len(world.all), "stated": world.stated or math.nan, "fit_seconds": fit_seconds}
    rows = [known | facts | {"decision_seconds": spent} | _decided(world, line) for line in lines]
    declined = sum(line["alteration"] is None for line in lines)
    return rows, {"fit_seconds": fit_seconds, "decisions": len(lines), "no_action": declined}


def _decided(world: DrawnEpisodes, line: Mapping[str, Any]) -> Row:
    score, gain = line["score"], line.get("gain") or {}
    changed = line["alteration"] or {}
    best = world.optimum(world.case(int(line["index"]))) - score["true_observed"]
    return {
        "context": line["identity"],
        "status": line["status"],
        "reason": (line["reason"] or {}).get("kind", ""),
        "findings": " ".join(each["kind"] for each in line["findings"]),
        "changes": " ".join(changed),
        "gain": number(gain.get("point")),
        "gain_lower": number(gain.get("lower")),
        "gain_upper": number(gain.get("upper")),
        "true_gain": score["true_value"] - score["true_observed"] if changed else 0.0,
        "best_gain": best,
    }


def typed(rows: Sequence[Mapping[str, str]]) -> list[Row]:
    """Rows read from CSV, with numbers as numbers."""
    return [
        {**row, "seed": int(row["seed"]), **{name: number(row[name]) for name in NUMBERS}} for row in rows
    ]


def sections(rows: Sequence[Row]) -> Iterator[Section]:
    """The part of the page about sequences in worlds by seed, a table for each report."""
    if rows:
        yield Section(["## Sequences in worlds by seed", texts("calibration")["sequences"]])
    for number_ in sorted({row["seed"] // (REPORT // 2) for row in rows}):
        some = [row for row in rows if row["seed"] // (REPORT // 2) == number_]
        seeds = [row["seed"] for row in some]
        yield Section([f"### Seeds {min(seeds)} to {max(seeds)}", by_trait(some)])


def by_trait(rows: Sequence[Row]) -> list[str]:
    """A column for all worlds and for each trait, as Markdown."""
    weak = [row for row in rows if not row["stated"] > 1]
    columns = {"all": list(rows), "no strong hidden cause": weak}
    columns |= {trait: [row for row in rows if row["trait"] == trait] for trait in TRAITS}
    lines: dict[str, dict[str, str]] = {}
    for column, some in columns.items():
        for name, cell in _cells(some):
            lines.setdefault(name, {"": name})[column] = cell
    return table(list(lines.values()), ["", *columns])


def _cells(rows: Sequence[Row]) -> Iterator[tuple[str, str]]:
    does = [row for row in rows if row["status"] == "do"]
    chosen = [row for row in rows if row["status"] != "leave"]
    yield "worlds", str(len({row["seed"] for row in rows}))
    for status in ("do", "may", "leave"):
        yield f"*{status}*", shown(rows, has(status), 100)
    for name, some in {"recommended": chosen, "*do*": does}.items():
        claimed, true = (sum(row[key] for row in some) for key in ("gain", "true_gain"))
        yield f"claimed, {name}", shown(some, lambda row: row["gain"])
        yield f"true, {name}", shown(some, lambda row: row["true_gain"])
        yield f"true / claimed, {name}", f"{true / claimed:.2f}" if claimed else "-"
        yield f"interval holds, {name}", shown(some, _held, 100)
        yield f"worse, {name}", shown(some, lambda row: float(row["true_gain"] < -WORSE), 100)
    known = [row for row in rows if not math.isnan(row["best_gain"])]
    best = sum(row["best_gain"] for row in known)
    yield "attained", f"{sum(row['true_gain'] for row in known) / best:.2f}" if best else "-"
    spent = {row["seed"]: row["fit_seconds"] + row["decision_seconds"] for row in rows}
    yield "CPU s, a world", f"{sum(spent.values()) / max(len(spent), 1):.1f}"


def _held(row: Row) -> float:
    return float(row["gain_lower"] - WORSE <= row["true_gain"] <= row["gain_upper"] + WORSE)
