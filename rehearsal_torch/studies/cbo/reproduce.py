"""The results of the paper on causal Bayesian optimisation with learnt exogenous distributions, in stages
that can be stopped and taken up again.

    main         every method on the main setting of each problem, four seeds
    panels       the other settings of the paper's figures
    components   numbers of mixture components (Fig. 14)
    kernels      the default with the baselines' kernel, and a baseline with the default's, on Dropwave
    ablation     the default changed in one thing, on the main settings
    choice       which configuration is the default: the ablation's best on the main settings, on other seeds
    figures      README.md and figures/, from traces.csv

traces.csv has a row a round, jobs.csv a line a repeat. A repeat (problem, setting, method, seed) that is done
is not done again; one that was killed begins anew, and one that failed is tried again.

Source: Ren et al. (2025), Sec. 7 and 11.
"""

import argparse
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from rehearsal_torch.cli.errors import UserError
from rehearsal_torch.cli.job import commit
from rehearsal_torch.run_folder import RunFolder
from rehearsal_torch.studies.command import agree, ended, known, note, one_thread, say, study_parser

if TYPE_CHECKING:
    from rehearsal_torch.studies.cbo.study import Trial
    from rehearsal_torch.studies.rounds import Outcome

STAGES = ("main", "panels", "components", "kernels", "ablation", "choice", "figures")


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the stages asked for; see ``--help``."""
    asked = _parser().parse_args(arguments)
    one_thread()
    return ended(_run, asked, arguments)


def _parser() -> argparse.ArgumentParser:
    parser = study_parser(__doc__, STAGES, "docs/results/cbo", "repeat", "search.starts=8")
    parser.add_argument(
        "--settings",
        nargs="+",
        default=None,
        metavar="SETTING",
        help="such as 'dropwave lambda=1 sigma=0.1' (default: those of the stage)",
    )
    parser.add_argument(
        "--methods", nargs="+", default=None, metavar="METHOD", help="default: those of the stage"
    )
    parser.add_argument(
        "--seeds",
        nargs="+",
        type=int,
        default=None,
        metavar="SEED",
        help="default: 0 1 2 3; for choice 200 201 202 203",
    )
    parser.add_argument(
        "--rounds",
        type=int,
        default=None,
        help="at most so many a repeat (default: 100; 140 for pooled testing)",
    )
    return parser


def _run(asked: argparse.Namespace, typed: list[str]) -> int:
    from rehearsal_torch.studies.cbo.job import Protocol, done
    from rehearsal_torch.studies.rounds import carried_out
    from rehearsal_torch.studies.rounds_record import TRIALS, RoundsRecord

    if asked.workers < 1 or (asked.rounds is not None and asked.rounds < 1):
        raise UserError("expected at least 1", "--workers and --rounds")
    began = time.monotonic()
    deadline = None if asked.budget_minutes is None else began + 60 * asked.budget_minutes
    out, left = RunFolder(asked.out), 0
    planned = [trial for stage in asked.stages if stage != "figures" for trial in _planned(stage, asked)]
    if planned:
        agree(out, {"rounds": asked.rounds}, asked.set)
        note(out, "reproduce_cbo", typed, {"rounds": asked.rounds, "extra": list(asked.set)})
        protocol = Protocol(asked.conf, tuple(asked.set), commit() or "")
        left = carried_out(
            RoundsRecord(asked.out, TRIALS), done, protocol, planned, asked.workers, deadline, began, _told
        )
    if "figures" in asked.stages:
        from rehearsal_torch.studies.cbo.documents import documents

        documents(out)
        say(began, f"figures and README.md in {asked.out}")
    if left:
        say(began, f"{left} repeats are not done: type the same again to go on with them")
    return 1 if left else 0


def _planned(stage: str, asked: argparse.Namespace) -> "list[Trial]":
    """A stage's repeats.

    Raises:
        UserError: for a setting or method that the study does not know.
    """
    from rehearsal_torch.studies.cbo import study as cbo_study

    others = tuple(name for name in cbo_study.SETTINGS if name not in cbo_study.MAIN)
    settings, methods = {
        "main": (cbo_study.MAIN, cbo_study.COMPARED),
        "panels": (others, cbo_study.COMPARED),
        "components": (cbo_study.COMPONENTS, cbo_study.COUNTED),
        "kernels": (cbo_study.KINKED, cbo_study.KERNELS),
        "ablation": (cbo_study.MAIN, tuple(cbo_study.ABLATIONS)),
        "choice": (cbo_study.MAIN, cbo_study.CONTENDERS),
    }[stage]
    seeds = cbo_study.FRESH_SEEDS if stage == "choice" else cbo_study.SEEDS
    if asked.settings is not None:
        settings = tuple(known(asked.settings, list(cbo_study.SETTINGS), "--settings"))
    if asked.methods is not None:
        methods = tuple(known(asked.methods, list(cbo_study.VARIANTS), "--methods"))
    return cbo_study.trials(settings, methods, seeds if asked.seeds is None else asked.seeds, asked.rounds)


def _told(outcome: "Outcome[Trial]") -> str:
    last = outcome.rows[-1]
    return (
        f"recommended {last['recommended_expected']:.4g}, best {last['best_expected']:.4g} of "
        f"{last['optimum']:.4g}"
    )
