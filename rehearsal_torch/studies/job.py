"""One job of a study: what ``scripts/decide.py`` does with a configuration, without a run folder.

A job that fails leaves its message and lets the others go on.
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
from rehearsal_torch.cli.job import commit
from rehearsal_torch.cli.run import build
from rehearsal_torch.cli.verbs.fitting import learnt
from rehearsal_torch.problems.problem import Problem
from rehearsal_torch.studies.record import Each, Outcome, Row
from rehearsal_torch.studies.request import Request


@dataclass(frozen=True)
class Protocol:
    """What all jobs of a study share.

    Attributes:
        conf: The folder of configurations.
        options: The study's own options.
        overrides: Overrides of every job.
        commit: The commit that the rows come from.
    """

    conf: Path
    options: Mapping[str, Any] = field(default_factory=dict)
    overrides: tuple[str, ...] = ()
    commit: str = ""

    @classmethod
    def of(cls, request: Request) -> "Protocol":
        """The protocol of a request, at the commit of today."""
        return cls(request.conf, request.options, request.overrides, commit() or "")


def configured(conf: Path, overrides: Sequence[str]) -> DictConfig:
    """A configuration outside of a Hydra job.

    Args:
        conf: The folder with config.yaml.
        overrides: As they would be typed.
    """
    with initialize_config_dir(str(conf.resolve()), version_base="1.3"):
        return compose("config", list(overrides))


def attempted(
    job: Each, make: Callable[[], tuple[Sequence[Row], Mapping[str, Any]]], commit: str
) -> Outcome[Each]:
    """Does a job; an error becomes the message of its line.

    Args:
        job: Which.
        make: Makes its rows, and further facts for its line.
        commit: The commit that they come from.
    """
    began = time.process_time()
    rows: Sequence[Row] = []
    facts: Mapping[str, Any] = {}
    state, message = "ok", ""
    try:
        rows, facts = make()
    except Exception as error:
        state, message = "failed", f"{type(error).__name__}: {' '.join(str(error).split())}"[:300]
    line = {"state": state, "rounds": len(rows), "seconds": time.process_time() - began}
    return Outcome(job, rows, {**line, "commit": commit, "message": message, **facts})


def lines(config: DictConfig, problem: Problem | None = None) -> Iterator[dict[str, Any]]:
    """The line of each round of rounds that learn from each other, as it is made.

    Its ``seconds`` are the processor's, of everything since the line before.

    Args:
        config: The whole configuration.
        problem: Where contexts come from, where it was built before; None builds it.
    """
    run = build(config, problem)
    with TemporaryDirectory() as folder:
        surrogate = learnt(run, Path(folder), validated=False).surrogate
    made = played(run, surrogate)
    before = time.process_time()
    for each in made:
        now = time.process_time()
        yield json.loads(each.line()) | {"seconds": now - before}
        before = time.process_time()
