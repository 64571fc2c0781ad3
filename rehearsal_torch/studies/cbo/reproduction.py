"""The study of causal Bayesian optimisation: each repeat runs a method through all rounds of a problem.

``traces.csv`` has one row per round, ``jobs.csv`` one line per repeat. A repeat is identified by problem,
setting, method and seed; several stages may plan the same repeat.

Source: Ren et al. (2025), Sec. 7 and 11.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from rehearsal_torch.evaluation.trial_rows import COLUMNS, KEY, NUMBERS, WHOLE, Row, trial_rows
from rehearsal_torch.studies.job import Protocol, attempted, configured, decided_rounds
from rehearsal_torch.studies.plan import Job
from rehearsal_torch.studies.record import Layout, Log, Outcome, Record
from rehearsal_torch.studies.runner import Reproduction, Work
from rehearsal_torch.studies.study_files import study

TRACES = Layout("traces.csv", KEY, COLUMNS, NUMBERS, WHOLE)
LOG = Log(KEY, ("rounds", "seconds"))
# The record of the study in a folder.
record_in = partial(Record, layouts=dict.fromkeys(study("cbo").stages, TRACES), log=LOG)


def rows_of(protocol: Protocol, job: Job) -> tuple[list[Row], Mapping[str, Any]]:
    """The rows of a repeat, one per round; seconds are processor time, including the world's.

    Args:
        protocol: What all repeats have in common.
        job: The repeat.
    """
    config = configured(protocol.conf, [*job.overrides, *protocol.overrides])
    rounds = list(decided_rounds(config))
    return trial_rows(job.world, job.setting, job.method, job.seed, rounds), {}


def limited(job: Job, max_rounds: int | None) -> Job:
    """A repeat with its number of rounds.

    Args:
        job: The repeat.
        max_rounds: Upper limit of the world's number of rounds; None for no limit.
    """
    rounds = study("cbo").worlds[f"{job.world} {job.setting}"].rounds
    if max_rounds is not None:
        rounds = min(rounds, max_rounds)
    return replace(job, overrides=(*job.overrides, f"dataset.size.rounds={rounds}"))


class CausalBayesianOptimisation(Reproduction):
    """The study, stage by stage."""

    def works(self) -> Iterator[Work[Protocol, Job]]:
        """See `Reproduction.works`."""
        record, protocol = record_in(self.out.path), Protocol.of(self.request)
        compute, max_rounds = partial(attempted, rows_of), self.request.options["rounds"]
        for stage in self.request.working:
            repeats = [limited(job, max_rounds) for job in self.request.jobs(stage)]
            yield Work(stage, record, repeats, compute, protocol, _summary)

    def documents(self) -> None:
        """See `Reproduction.documents`."""
        from rehearsal_torch.studies.cbo.documents import documents

        documents(self.out)


def _summary(outcome: Outcome[Job]) -> str:
    last = outcome.rows[-1]
    return (
        f"recommended {last['recommended_expected']:.4g}, best {last['best_expected']:.4g} of "
        f"{last['optimum']:.4g}, {outcome.line['seconds']:.1f} s"
    )
