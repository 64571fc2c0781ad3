"""Decisions in worlds by seed, with what is true of them: the jobs of the stage ``drawn``, and a command for
seeds below 1000, of which methods are built.

    python -m reproduction.calibration.drawn_claims FOLDER seeds=0-99 decision=outcome_regression
    python -m reproduction.calibration.drawn_claims FOLDER beside=OTHER

The first decides for ten cases in each world and prints the tables of all methods in the folder
(`drawn_tables`); finished worlds are not decided again. ``workers=2`` takes two processes; everything else
that is typed is an override, and names the method. The second prints the tables alone, and what the first
method of the folder gains beside the first method of another one.

A row holds the decision, the kinds of its reason and findings, and its estimates with their intervals; every
number of the trace, as JSON; the true probability after the decision (``auf``), without one, and at the best
of a grid; and the processor seconds of the fit and of all decisions of the world.

Source: Dawid (1982) (calibration).
"""

import json
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rehearsal_torch.cli.batch_decisions import played
from rehearsal_torch.cli.errors import exit_code
from rehearsal_torch.evaluation.claim_rows import Row, number
from rehearsal_torch.methods.instantiate import problem_of
from rehearsal_torch.methods.run_parts import build, fitted
from rehearsal_torch.problems.cases.random_world import DrawnWorld
from rehearsal_torch.user_error import UserError
from reproduction.calibration import drawn_tables
from reproduction.job import configured
from reproduction.plan import Job
from reproduction.record import Layout, Record
from reproduction.run import computed

DRAWN, FILE = "drawn", "drawn.csv"
ESTIMATES = ("estimate", "baseline", "gain")
NUMBERS = (
    *("auf", "no_action", "oracle"),
    *(f"{name}{end}" for name in ESTIMATES for end in ("", "_lower", "_upper")),
    *("rows", "fit_seconds", "decision_seconds"),
)
COLUMNS = (
    *("dataset", "method", "seed", "context", "trait", "status", "reason", "findings", "alteration"),
    *(*NUMBERS, "trace"),
)
# The first seed that is not for building.
REPORTED = 1000
KEY = ("dataset", "method", "seed")


def rows_of(options: Mapping[str, Any], job: Job) -> tuple[list[Row], Mapping[str, Any]]:
    """The rows of a job, one per case, and the further cells of its line."""
    config = configured([*job.overrides, *options["overrides"]])
    world = problem_of(config)
    assert isinstance(world, DrawnWorld)
    for index in range(world.count()):
        # What is best is found before any clock runs.
        world.optimum(world.case(index))
    run = build(config, world)
    began = time.process_time()
    surrogate = fitted(run).surrogate
    learnt = time.process_time()
    lines = [json.loads(each.line()) for each in played(run, surrogate)]
    seconds = {"fit_seconds": learnt - began, "decision_seconds": time.process_time() - learnt}
    known = {"dataset": job.world, "method": job.method, "seed": job.seed, "trait": world.recipe.trait}
    rows = [known | seconds | {"rows": world.size.rows} | _decided(line) for line in lines]
    declined = sum(line["alteration"] is None for line in lines)
    return rows, {"fit_seconds": learnt - began, "decisions": len(lines), "no_action": declined}


def _decided(line: Mapping[str, Any]) -> Row:
    score, found = line["score"], dict[str, Any]()
    for name in ESTIMATES:
        estimate = line.get(name) or {}
        found |= {
            f"{name}{end and '_' + end}": number(estimate.get(end or "point"))
            for end in ("", "lower", "upper")
        }
    return {
        "context": line["identity"],
        "status": line["status"],
        "reason": (line["reason"] or {}).get("kind", ""),
        "findings": " ".join(each["kind"] for each in line["findings"]),
        "alteration": json.dumps(line["alteration"]),
        "auf": number(score["probability"]),
        "no_action": number(score["no_action"]),
        "oracle": number(score["oracle"]),
        **found,
        "trace": json.dumps(numeric(line["trace"])),
    }


def numeric(trace: Mapping[str, Any], at: str = "") -> dict[str, Any]:
    """The numbers of a trace and its lists of numbers, those of mappings within under joined names."""
    found: dict[str, Any] = {}
    for name, value in trace.items():
        if isinstance(value, Mapping):
            found |= numeric(value, f"{at}{name}.")
        elif isinstance(value, int | float) or (
            isinstance(value, list) and value and all(isinstance(each, int | float) for each in value)
        ):
            found[f"{at}{name}"] = value
    return found


def typed(rows: Sequence[Mapping[str, str]]) -> list[Row]:
    """Rows read from CSV, with numbers as numbers and the trace as a mapping."""
    return [
        {
            **row,
            "seed": int(row["seed"]),
            **{name: number(row[name]) for name in NUMBERS},
            "trace": json.loads(row["trace"] or "{}"),
        }
        for row in rows
    ]


def main(words: Sequence[str] | None = None) -> int:
    """The command; `words` None for those of the process."""
    given = list(sys.argv[1:] if words is None else words)
    return exit_code(lambda: _run(given), "Interrupted; type the same again to go on.")


def _record(folder: Path) -> Record:
    return Record(
        folder, {DRAWN: Layout(FILE, KEY, COLUMNS)}, (*KEY, "state", "seconds", "commit", "message")
    )


def _run(words: Sequence[str]) -> int:
    if not words or "=" in words[0]:
        raise UserError(
            "expected a folder first", " ".join(words), "Type FOLDER seeds=0-99 decision=outcome_regression"
        )
    own = {key: value for key, _, value in (word.partition("=") for word in words[1:]) if key in OWN}
    overrides = [word for word in words[1:] if word.partition("=")[0] not in OWN]
    record, failed = _record(Path(words[0])), 0
    if "seeds" in own:
        first, _, last = own["seeds"].partition("-")
        seeds = range(int(first), int(last or first) + 1)
        if seeds.stop > REPORTED:
            remedy = "Report with python -m reproduction.calibration stages=[drawn]"
            raise UserError(f"seeds from {REPORTED} on are for reporting alone", own["seeds"], remedy)
        method = " ".join(overrides)
        todo = [
            Job(
                DRAWN,
                DRAWN,
                "",
                method,
                seed,
                (*WORLD, *overrides, f"seed={seed}"),
                (DRAWN, method, str(seed)),
            )
            for seed in seeds
        ]
        record.mend()
        todo = record.todo(todo)
        jobs = computed(rows_of, {"overrides": []}, todo, int(own.get("workers", 1)))
        for count, (job, rows, line) in enumerate(jobs, 1):
            record.add(job, rows, line)
            failed += line["state"] != "ok"
            said = line["message"] or f"{line['seconds']:.1f} s"
            print(f"{count}/{len(todo)}  seed {job.seed}: {said}", file=sys.stderr, flush=True)
    rows = typed(record.rows(DRAWN))
    print("\n\n".join(drawn_tables.by_method(rows)))
    if "beside" in own:
        other = typed(_record(Path(own["beside"])).rows(DRAWN))
        print("\n" + drawn_tables.beside(rows, other))
    return 1 if failed else 0


OWN = ("seeds", "workers", "beside")
WORLD = ("+experiment=auf", "dataset=drawn")

if __name__ == "__main__":
    sys.exit(main())
