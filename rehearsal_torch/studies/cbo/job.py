"""One repeat of the study of causal Bayesian optimisation: all rounds of a method on a problem."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from hydra import compose, initialize_config_dir

from rehearsal_torch.evaluation.trial_rows import Row, trial_rows
from rehearsal_torch.studies.cbo.study import Trial
from rehearsal_torch.studies.rounds import Outcome, lines, outcome


@dataclass(frozen=True)
class Protocol:
    """What all repeats share.

    Attributes:
        conf: The folder of configurations.
        extra: Overrides of every repeat.
        commit: The commit that the rows come from.
    """

    conf: Path
    extra: tuple[str, ...] = ()
    commit: str = ""


def done(protocol: Protocol, trial: Trial) -> Outcome[Trial]:
    """Goes through a repeat; an error becomes its line's message, so that the others go on."""
    return outcome(trial, lambda: rows_of(protocol, trial), protocol.commit)


def rows_of(protocol: Protocol, trial: Trial) -> Iterator[Row]:
    """A row a round; seconds are the processor's, of everything between two decisions."""
    with initialize_config_dir(str(protocol.conf.resolve()), version_base="1.3"):
        config = compose("config", [*trial.overrides, *protocol.extra])
    yield from trial_rows(trial.problem, trial.setting, trial.method, trial.seed, list(lines(config)))
