"""What is claimed of sequences beside what is true, in worlds of episodes by seed, in a simulator of others
and in fresh cohorts: the jobs of the stages ``sequences``, ``sepsisim`` and ``cohorts``, and their tables.

A row holds a decision, the kinds of its reason and findings, the claimed gain with its interval, the true
gain by replaying the world (0 where nothing is changed), of patients also without the points of the
vasopressor, the best gain where it can be enumerated, and the processor seconds of the fit and of all
decisions of the world. ``attained`` is the share of the best gain that comes true, where that is known.
Intervals of means are bootstrap intervals over whole worlds. The mean over the recommended cases of one world
is claimed with the mean half-width of their intervals, as they share their errors.

Source: Dawid (1982) (calibration).
"""

import math
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rehearsal_torch.evaluation.claim_rows import Row, number
from rehearsal_torch.methods.instantiate import problem_of
from rehearsal_torch.problems.sequences.random_episodes import TRAITS, DrawnEpisodes
from rehearsal_torch.problems.sequences.unit_splits import SplitEpisodes
from reproduction.calibration.drawn_tables import REPORT, has, shown
from reproduction.job import configured, decided_cases
from reproduction.page import Section, table
from reproduction.plan import Job, texts

SEQUENCES, SEPSISIM, COHORTS = "sequences", "sepsisim", "cohorts"
STAGES = (SEQUENCES, SEPSISIM, COHORTS)
NUMBERS = (
    *("gain", "gain_lower", "gain_upper", "true_gain", "organ_gain", "best_gain", "stated"),
    *("units", "fit_seconds", "decision_seconds"),
)
COLUMNS = (
    *("dataset", "method", "seed", "context", "trait", "status", "reason", "findings", "changes"),
    *NUMBERS,
)
# How far below zero a gain counts as worse; and the cases of a drawn world, and of others.
WORSE, CASES, MORE_CASES = 1e-9, 20, 60
SEEDS = 10  # Of a report of other worlds, at most.


def rows_of(options: Mapping[str, Any], job: Job) -> tuple[list[Row], Mapping[str, Any]]:
    """The rows of a job, one per case, and the further cells of its line."""
    config = configured([*job.overrides, "trainer.progress=false", *options["overrides"]])
    world = problem_of(config)
    assert isinstance(world, SplitEpisodes)
    drawn = world if isinstance(world, DrawnEpisodes) else None
    world.chosen = world.chosen[: MORE_CASES if drawn is None else CASES]
    began = time.process_time()
    lines, fit_seconds = decided_cases(config, world)
    spent = time.process_time() - began - fit_seconds
    known = {"dataset": job.world, "method": job.method, "seed": job.seed}
    known["trait"] = "" if drawn is None else drawn.process.trait
    stated = math.nan if drawn is None else drawn.stated or math.nan
    facts = {"units": len(world.all), "stated": stated, "fit_seconds": fit_seconds}
    rows = [known | facts | {"decision_seconds": spent} | _decided(world, line) for line in lines]
    declined = sum(line["alteration"] is None for line in lines)
    return rows, {"fit_seconds": fit_seconds, "decisions": len(lines), "no_action": declined}


def _decided(world: Any, line: Mapping[str, Any]) -> Row:
    score, gain = line["score"], line.get("gain") or {}
    changed = line["alteration"] or {}
    organs = score.get("true_organs_value", math.nan) - score.get("true_organs_observed", math.nan)
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
        "organ_gain": organs if changed else 0.0,
        "best_gain": best,
    }


def typed(rows: Sequence[Mapping[str, str]]) -> list[Row]:
    """Rows read from CSV, with numbers as numbers."""
    return [
        {**row, "seed": int(row["seed"]), **{name: number(row[name]) for name in NUMBERS}} for row in rows
    ]


def sections(rows: Sequence[Row]) -> Iterator[Section]:
    """The part of the page about sequences: a table for each report by seed, and one of other worlds."""
    if rows:
        yield Section(["## Sequences in worlds by seed", texts("calibration")["sequences"]])
    drawn = [row for row in rows if row["trait"]]
    for number_ in sorted({row["seed"] // (REPORT // 2) for row in drawn}):
        some = [row for row in drawn if row["seed"] // (REPORT // 2) == number_]
        seeds = [row["seed"] for row in some]
        yield Section([f"### Seeds {min(seeds)} to {max(seeds)}", by_trait(some)])
    others = dict[str, list[Row]]()
    for row in (row for row in rows if not row["trait"]):
        report = f"seeds from {row['seed'] // SEEDS * SEEDS}"
        others.setdefault(f"{row['dataset']}: {row['method']}, {report}", []).append(row)
    if others:
        yield Section(["### A simulator of others, and fresh cohorts", _table(others)])


def by_trait(rows: Sequence[Row]) -> list[str]:
    """A column for all worlds and for each trait, as Markdown."""
    weak = [row for row in rows if not row["stated"] > 1]
    columns = {"all": list(rows), "no strong hidden cause": weak}
    columns |= {trait: [row for row in rows if row["trait"] == trait] for trait in TRAITS}
    return _table(columns)


def _table(columns: Mapping[str, Sequence[Row]]) -> list[str]:
    """A column for each part of the rows."""
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
    if not all(math.isnan(row["organ_gain"]) for row in chosen):
        yield "true, without the points of the drug", shown(chosen, lambda row: row["organ_gain"])
    yield "interval of the mean holds, worlds", _means_held(chosen)
    known = [row for row in rows if not math.isnan(row["best_gain"])]
    best = sum(row["best_gain"] for row in known)
    yield "attained", f"{sum(row['true_gain'] for row in known) / best:.2f}" if best else "-"
    spent = {row["seed"]: row["fit_seconds"] + row["decision_seconds"] for row in rows}
    yield "CPU s, a world", f"{sum(spent.values()) / max(len(spent), 1):.1f}"


def _means_held(rows: Sequence[Row]) -> str:
    """In how many worlds the mean claim, with the mean half-width, holds the mean truth."""
    ends = dict[tuple[Any, Any], list[float]]()
    for row in (row for row in rows if not math.isnan(row["gain_lower"])):
        sums = ends.setdefault((row["dataset"], row["seed"]), [0.0, 0.0, 0.0])
        for place, key in enumerate(("gain_lower", "true_gain", "gain_upper")):
            sums[place] += row[key]
    held = sum(lower - WORSE <= true <= upper + WORSE for lower, true, upper in ends.values())
    return f"{held} of {len(ends)}"


def _held(row: Row) -> float:
    return float(row["gain_lower"] - WORSE <= row["true_gain"] <= row["gain_upper"] + WORSE)
