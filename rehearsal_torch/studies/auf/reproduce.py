"""The results of the paper on avoiding undesired futures, in stages that can be stopped and taken up again.

    table1          every method in every world                        table1.csv (Tab. 1)
    scalability     exact, landmarks, random features at many N        table2.csv (Tab. 2)
    eta lambdas     sharpness and ridges                               table3.csv, table4.csv (Tab. 3 and 4)
    learning_curve  our method at growing N                            learning_curve.csv
    sensitivity     fixed widths against chosen ones                   sensitivity.csv
    figures         figures/*.png and *.svg (Fig. 3, 5 and 10), README.md with the numbers behind them

jobs.csv says of every job how long its fit took, and which commit it came from. A job that failed is tried
again.

Source: Du et al. (2026), Sec. 4 and App. D and E.
"""

import argparse
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rehearsal_torch.cli.errors import UserError
from rehearsal_torch.cli.job import commit
from rehearsal_torch.cli.spelling import spoken
from rehearsal_torch.run_folder import RunFolder
from rehearsal_torch.studies.command import agree, ended, known, note, one_thread, say, study_parser

if TYPE_CHECKING:
    from rehearsal_torch.studies.auf.job import Protocol
    from rehearsal_torch.studies.record import Job, StudyRecord

STAGES = ("table1", "scalability", "eta", "lambdas", "learning_curve", "sensitivity", "figures")
# What is measured in seconds is measured alone.
ALONE = ("scalability",)


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the stages asked for; see ``--help``."""
    asked = _parser().parse_args(arguments)
    one_thread()
    return ended(_run, asked, arguments)


def _parser() -> argparse.ArgumentParser:
    parser = study_parser(__doc__, STAGES, "docs/results/auf", "job", "trainer.max_epochs=5")
    parser.add_argument(
        "--seeds",
        nargs="+",
        type=int,
        default=[0, 1, 2, 3, 4],
        metavar="SEED",
        help="of worlds and methods (default: 0 1 2 3 4)",
    )
    parser.add_argument("--contexts", type=int, default=20, help="contexts a seed (default: 20)")
    parser.add_argument(
        "--worlds",
        nargs="+",
        default=None,
        metavar="WORLD",
        help="only these worlds, where a stage has several (default: all)",
    )
    parser.add_argument(
        "--methods",
        nargs="+",
        default=None,
        metavar="METHOD",
        help="only these methods, in table1 (default: all)",
    )
    parser.add_argument(
        "--most", type=int, default=None, metavar="ROWS", help="leave out jobs with more rows (default: none)"
    )
    parser.add_argument(
        "--nhanes",
        type=Path,
        default=None,
        metavar="FOLDER",
        help=f"what {spoken('prepare')} nhanes wrote; its figures are taken over (Fig. 10)",
    )
    return parser


def _run(asked: argparse.Namespace, typed: list[str]) -> int:
    from rehearsal_torch.studies.auf.job import Protocol
    from rehearsal_torch.studies.auf.study import FILES, METHODS, WORLDS, jobs
    from rehearsal_torch.studies.record import StudyRecord

    if asked.contexts < 1 or asked.workers < 1:
        raise UserError(f"expected at least 1 context and 1 worker; got {asked.contexts} and {asked.workers}")
    worlds, methods = known(asked.worlds, WORLDS, "--worlds"), known(asked.methods, METHODS, "--methods")
    began = time.monotonic()
    deadline = None if asked.budget_minutes is None else began + 60 * asked.budget_minutes
    stages = [stage for stage in FILES if stage in asked.stages]
    out = RunFolder(asked.out)
    if stages:
        agree(out, {"contexts": asked.contexts}, asked.set)
        note(out, "reproduce_auf", typed, {"contexts": asked.contexts, "extra": list(asked.set)})
    record = StudyRecord(asked.out, FILES, plain=("table1",))
    protocol = Protocol(asked.conf, asked.contexts, tuple(asked.set), commit() or "")
    left = 0
    for stage in stages:
        planned = [
            job
            for job in jobs(stage, asked.seeds, worlds, methods)
            if asked.most is None or _rows(job) <= asked.most
        ]
        left += _stage(
            stage, record, protocol, planned, 1 if stage in ALONE else asked.workers, deadline, began
        )
    if "figures" in asked.stages:
        from rehearsal_torch.studies.auf.documents import documents

        documents(out, record, asked.nhanes)
        say(began, f"figures and README.md in {asked.out}")
    if left:
        say(began, f"{left} jobs are not done: type the same again to go on with them")
    return 1 if left else 0


def _stage(
    stage: str,
    record: "StudyRecord",
    protocol: "Protocol",
    planned: "Sequence[Job]",
    workers: int,
    deadline: float | None,
    began: float,
) -> int:
    """Runs a stage's jobs that are not done; returns how many are left."""
    from rehearsal_torch.studies.auf.job import done
    from rehearsal_torch.studies.workers import shared

    todo = record.todo(planned)
    say(began, f"{stage}: {len(todo)} of {len(planned)} jobs to do")
    for number, outcome in enumerate(
        shared(done, protocol, todo, min(workers, max(len(todo), 1)), deadline), 1
    ):
        record.add(outcome)
        job, line = outcome.job, outcome.line
        named = " ".join(text for text in (job.dataset, job.method, job.setting, f"seed={job.seed}") if text)
        if line["state"] == "ok":
            mean = sum(row["auf"] for row in outcome.rows) / len(outcome.rows)
            say(began, f"{stage} {number}/{len(todo)}  {named}: {mean:.3f}, fit {line['fit_seconds']:.2f} s")
        else:
            say(began, f"{stage} {number}/{len(todo)}  {named} FAILED: {line['message']}")
    return len(record.todo(planned))


def _rows(job: "Job") -> int:
    return next(
        (int(text.partition("=")[2]) for text in job.overrides if text.startswith("dataset.rows=")), 1000
    )
