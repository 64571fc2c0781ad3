"""One job of the study of avoiding undesired futures: fit a method in a world, decide in its contexts, ask
the world.

It builds what ``scripts/decide.py`` builds, from the same configuration, and decides through the same loop.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from hydra import compose, initialize_config_dir
from omegaconf import DictConfig

from rehearsal_torch.cli.batch_decisions import played
from rehearsal_torch.cli.run import build
from rehearsal_torch.cli.verbs.fitting import learnt
from rehearsal_torch.evaluation.rehearsal_rows import row
from rehearsal_torch.studies.record import Job, Outcome


@dataclass(frozen=True)
class Protocol:
    """What all jobs share.

    Attributes:
        conf: The folder of configurations.
        contexts: How many contexts a seed has.
        extra: Overrides of every job.
        commit: The commit that the rows come from.
    """

    conf: Path
    contexts: int
    extra: tuple[str, ...] = ()
    commit: str = ""


def done(protocol: Protocol, job: Job) -> Outcome:
    """Runs a job; an error becomes its line's message, so that the other jobs go on."""
    try:
        return _done(protocol, job)
    except Exception as error:
        message = f"{type(error).__name__}: {' '.join(str(error).split())}"[:300]
        return Outcome(
            job,
            [],
            {
                "state": "failed",
                "fit_seconds": "",
                "decisions": 0,
                "idle": 0,
                "warned": 0,
                "commit": protocol.commit,
                "message": message,
            },
        )


def configured(protocol: Protocol, job: Job) -> DictConfig:
    """The job's configuration."""
    told = [
        f"dataset={job.dataset}",
        f"seed={job.seed}",
        *job.overrides,
        f"dataset.contexts={protocol.contexts}",
        *protocol.extra,
    ]
    with initialize_config_dir(str(protocol.conf.resolve()), version_base="1.3"):
        return compose("config", ["+experiment=auf", *told])


def _done(protocol: Protocol, job: Job) -> Outcome:
    config = configured(protocol, job)
    run = build(config)
    with TemporaryDirectory() as folder:
        fitted = learnt(run, Path(folder))
    made = list(played(run, fitted.surrogate))
    lines = [json.loads(each.line()) | {"seconds": each.decision.seconds} for each in made]
    no_action_count = sum(line["alteration"] is None for line in lines)
    warned = sum(bool(line.get("warnings")) and line["alteration"] is not None for line in lines)
    told = {
        "state": "ok",
        "fit_seconds": fitted.seconds,
        "decisions": len(lines),
        "idle": no_action_count,
        "warned": warned,
        "commit": protocol.commit,
        "message": "",
    }
    return Outcome(job, [row(job.dataset, job.method, job.seed, line) for line in lines], told)
