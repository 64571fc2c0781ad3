"""One repeat of the study of structural rehearsal models: all rounds of a method in a world, learning from
each.

It builds what ``scripts/decide.py`` builds, from the same configuration, and decides through the same loop.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from hydra import compose, initialize_config_dir
from omegaconf import DictConfig

from rehearsal_torch.cli.build import problem_of, seed_and_use_one_thread
from rehearsal_torch.evaluation.online_rows import Row, online_row
from rehearsal_torch.problems.problem import RehearsalProblem
from rehearsal_torch.studies.qwz23.counterparts import associative, causal
from rehearsal_torch.studies.qwz23.study import METHODS
from rehearsal_torch.studies.rounds import Outcome, lines, outcome
from rehearsal_torch.studies.rounds_record import Repeat


@dataclass(frozen=True)
class Protocol:
    """What all repeats share.

    Attributes:
        conf: The folder of configurations.
        rounds: How many rounds a repeat has.
        scenarios: How many scenarios a search sees, and how many validate.
        extra: Overrides of every repeat.
        commit: The commit that the rows come from.
    """

    conf: Path
    rounds: int = 100
    scenarios: int = 4000
    extra: tuple[str, ...] = ()
    commit: str = ""


def done(protocol: Protocol, repeat: Repeat) -> Outcome[Repeat]:
    """Goes through a repeat; an error becomes its line's message, so that the others go on."""
    return outcome(repeat, lambda: rows_of(protocol, repeat), protocol.commit)


def configured(protocol: Protocol, repeat: Repeat) -> DictConfig:
    """The repeat's configuration."""
    with initialize_config_dir(str(protocol.conf.resolve()), version_base="1.3"):
        config = compose(
            "config", [*repeat.overrides, f"dataset.contexts={protocol.rounds}", *protocol.extra]
        )
    for name in ("search_scenarios", "validation_scenarios"):
        if name in config.objective and not any(
            text.startswith(f"objective.{name}=") for text in protocol.extra
        ):
            config.objective[name] = protocol.scenarios
    return config


def rows_of(protocol: Protocol, repeat: Repeat) -> Iterator[Row]:
    """A row a round, as it is made; seconds are the processor's, of everything between two decisions.

    Raises:
        TypeError: if the world is none in foresight.
    """
    config = configured(protocol, repeat)
    seed_and_use_one_thread(repeat.repeat)
    problem = problem_of(config)
    if not isinstance(problem, RehearsalProblem):
        raise TypeError(
            f"expected a world in foresight; got a {type(problem).__name__}: choose another dataset"
        )
    believed(config, problem, METHODS[repeat.method].counterpart)
    for line in lines(config, problem):
        yield online_row(repeat.world, repeat.method, repeat.tau, repeat.repeat, line)


def believed(config: DictConfig, problem: RehearsalProblem, counterpart: str) -> None:
    """Writes a counterpart's graphs into the surrogate's configuration; changes nothing for a method with
    beliefs of its own.

    Raises:
        ValueError: for a counterpart that is not known, or that the problem has no graph for.
    """
    if not counterpart:
        return
    if counterpart not in ("causal", "associative"):
        raise ValueError(f"expected causal or associative; got {counterpart!r}")
    task = problem.task
    graphs = (
        causal(problem.hypotheses)
        if counterpart == "causal"
        else (associative(task.graph.names, task.context, task.box.names, task.outcomes),)
    )
    config.surrogate.hypotheses = [graph.to_plain() for graph in graphs]
