"""The study of causal Bayesian optimisation: each repeat takes a method through all rounds of a problem.

traces.csv has one row per round, jobs.csv one line per repeat. A repeat is known by problem, setting,
method and seed, whichever stages plan it.

Source: Ren et al. (2025), Sec. 7 and 11.
"""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from rehearsal_torch.evaluation.trial_rows import COLUMNS, KEY, NUMBERS, WHOLE, trial_rows
from rehearsal_torch.studies.job import Protocol, attempted, configured, lines
from rehearsal_torch.studies.plan import Job, jobs
from rehearsal_torch.studies.record import Layout, Log, Outcome, Record
from rehearsal_torch.studies.runner import Reproduction, Work
from rehearsal_torch.studies.study_files import study

TRACES = Layout("traces.csv", KEY, COLUMNS, NUMBERS, WHOLE)
LOG = Log(KEY, ("rounds", "seconds"))


def record_in(folder: Path) -> Record:
    """The study's record.

    Args:
        folder: Where it is, or is going to be.

    Raises:
        PlainFileError: if its jobs.csv is damaged.
    """
    return Record(folder, dict.fromkeys(study("cbo").stages, TRACES), LOG)


def done(protocol: Protocol, job: Job) -> Outcome[Job]:
    """Does a repeat: one row per round; an error becomes its line's message, so that the others go on.

    Seconds are the processor's, of everything between two decisions.
    """

    def make() -> tuple[list, dict]:
        config = configured(protocol.conf, [*job.overrides, *protocol.overrides])
        return trial_rows(job.world, job.setting, job.method, job.seed, list(lines(config))), {}

    return attempted(job, make, protocol.commit)


def limited(job: Job, rounds: int | None) -> Job:
    """A repeat of its world's number of rounds.

    Args:
        job: The repeat.
        rounds: At most so many; None for no limit.
    """
    own = study("cbo").worlds[f"{job.world} {job.setting}"].rounds
    length = own if rounds is None else min(rounds, own)
    return replace(job, overrides=(*job.overrides, f"dataset.rounds={length}"))


class CausalBayesianOptimisation(Reproduction):
    """The study, stage by stage."""

    def works(self) -> Iterator[Work[Protocol, Job]]:
        """See `Reproduction.works`."""
        record, protocol = record_in(self.out.path), Protocol.of(self.request)
        for stage in self.request.working:
            planned = jobs(self.request.study, stage, **self.request.names, seeds=self.request.seeds)
            limit = self.request.options["rounds"]
            yield Work(stage, record, [limited(job, limit) for job in planned], done, protocol, _summary)

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
