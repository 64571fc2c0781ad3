"""One job of a study: what ``scripts/decide.py`` does with a configuration, without a run folder.

An error in a job becomes the message of its line in ``jobs.csv``; the other jobs are not affected.
"""

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hydra import compose, initialize_config_dir
from omegaconf import DictConfig

from rehearsal_torch.cli.batch_decisions import played
from rehearsal_torch.cli.cross_fitting import cross_fitted_claims
from rehearsal_torch.cli.job import commit
from rehearsal_torch.cli.run import build
from rehearsal_torch.cli.verbs.fitting import learnt
from rehearsal_torch.evaluation.interval_levels import IntervalLevels
from rehearsal_torch.files.addresses import beginning
from rehearsal_torch.problems.problem import Problem
from rehearsal_torch.round_line import Round
from rehearsal_torch.studies.record import Each, Outcome, Row
from rehearsal_torch.studies.request import Request
from rehearsal_torch.surrogates.surrogate import Surrogate


@dataclass(frozen=True)
class Protocol:
    """What all jobs of a study have in common.

    Attributes:
        conf: The folder of configurations.
        options: The study's own options.
        overrides: Overrides of every job.
        commit: The commit of the code that computes the rows; empty if unknown.
    """

    conf: Path
    options: Mapping[str, Any] = field(default_factory=dict)
    overrides: tuple[str, ...] = ()
    commit: str = ""

    @classmethod
    def of(cls, request: Request) -> "Protocol":
        """The protocol of a request, with the current commit."""
        return cls(request.conf, request.options, request.overrides, commit() or "")


def configured(conf: Path, overrides: Sequence[str]) -> DictConfig:
    """The configuration of some overrides, outside of a Hydra job.

    Args:
        conf: The folder with ``config.yaml``.
        overrides: Overrides as typed on the command line.
    """
    with initialize_config_dir(str(conf.resolve()), version_base="1.3"):
        return compose("config", list(overrides))


def attempted(
    compute: Callable[[Protocol, Each], tuple[Sequence[Row], Mapping[str, Any]]],
    protocol: Protocol,
    job: Each,
) -> Outcome[Each]:
    """The outcome of a job; an exception is caught, and its message recorded.

    Args:
        compute: Returns the rows of the job, and further columns of its line; a function of a module, since
            other processes look it up by name.
        protocol: What all jobs have in common.
        job: The job.
    """
    began = time.process_time()
    rows: Sequence[Row] = []
    facts: Mapping[str, Any] = {}
    state, message = "ok", ""
    try:
        rows, facts = compute(protocol, job)
    except Exception as error:
        state, message = "failed", beginning(f"{type(error).__name__}: {' '.join(str(error).split())}", 300)
    line = {"state": state, "rounds": len(rows), "seconds": time.process_time() - began}
    return Outcome(job, rows, {**line, "commit": protocol.commit, "message": message, **facts})


def decided_cases(
    config: DictConfig, problem: Problem | None = None, levels: Sequence[float] = ()
) -> tuple[list[dict[str, Any]], float]:
    """The decisions for all cases of a problem, as lines of ``decisions.jsonl`` with their seconds.

    Args:
        config: The whole configuration.
        problem: The problem, if already built; None builds it from the configuration.
        levels: Further levels at which claims have intervals, in the trace (`evaluation.interval_levels`).

    Returns:
        The lines, and the seconds of the fit.
    """
    run = build(config, problem)
    with TemporaryDirectory() as folder:
        fitted = learnt(run, Path(folder))
    claims = cross_fitted_claims(run) if run.config.get("claims") == "cross_fitted" else None
    told = IntervalLevels(fitted.surrogate, run.objective, levels, claims) if levels else claims
    lines = [
        json.loads(each.line()) | {"seconds": each.decision.seconds}
        for each in played(run, fitted.surrogate, claims=told)
    ]
    return lines, fitted.seconds


def decided_rounds(config: DictConfig, problem: Problem | None = None) -> Iterator[dict[str, Any]]:
    """Rounds that learn from each other: the decision of each, as a line of ``decisions.jsonl``.

    The ``seconds`` of a line are the processor time since the previous one, of everything in between.

    Args:
        config: The whole configuration.
        problem: The source of contexts, if already built; None builds it from the configuration.
    """
    _, decisions = learning_rounds(config, problem)
    before = time.process_time()
    for each in decisions:
        now = time.process_time()
        yield json.loads(each.line()) | {"seconds": now - before}
        before = time.process_time()


def learning_rounds(config: DictConfig, problem: Problem | None = None) -> tuple[Surrogate, Iterator[Round]]:
    """Rounds that learn from each other, and the surrogate that they learn.

    The surrogate is refitted in place: beside a round it is the one that made this round, and after the last
    one it has learnt from all of them.

    Args:
        config: The whole configuration.
        problem: The source of contexts, if already built; None builds it from the configuration.
    """
    run = build(config, problem)
    with TemporaryDirectory() as folder:
        surrogate = learnt(run, Path(folder), validated=False).surrogate
    return surrogate, played(run, surrogate)
