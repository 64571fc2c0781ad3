"""The study of rounds that learn from each other: each repeat runs a method, or an agent of reinforcement
learning, through all rounds of a world.

``rounds.csv`` has one row per round of a method, and ``jobs.csv`` one line per repeat; the repeat's number is
its seed. ``truth.csv`` has the rows of the method with bounds for the truth, on seeds of its own. Agents have
files of their own without a log: ``rl.csv``, or ``rl_T.csv`` for T rounds if T differs from the paper's
number. An agent's repeat is finished when the file has all its rounds.

Source: Qin et al. (2023), Sec. 6, Fig. 4 and Tab. 1.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from omegaconf import DictConfig

from rehearsal_torch.cli.build import problem_of, seed_and_use_one_thread
from rehearsal_torch.cli.errors import UserError
from rehearsal_torch.evaluation.online_rows import COLUMNS, KEY, NUMBERS, WHOLE, Row, online_row
from rehearsal_torch.evaluation.rehearsal_rows import TRUTH, truth_bounds
from rehearsal_torch.problems.problem import RehearsalProblem
from rehearsal_torch.studies.job import Protocol, attempted, configured, decided_rounds
from rehearsal_torch.studies.online.agent_rounds import rl_rows
from rehearsal_torch.studies.online.counterparts import associative, causal
from rehearsal_torch.studies.plan import Job
from rehearsal_torch.studies.record import Layout, Log, Outcome, Record
from rehearsal_torch.studies.request import Request
from rehearsal_torch.studies.runner import Reproduction, Work
from rehearsal_torch.studies.study_files import study

# The stages: rehearsal methods at the paper's tau and at others, the bounds for the truth, and agents.
ROUNDS, TAUS, BOUNDS, AGENTS = "rounds", "taus", "truth", "rl"
LOG = Log(KEY, ("rounds", "seconds"))
# The record of the methods in a folder.
record_in = partial(
    Record,
    layouts={
        **{
            stage: Layout(study("online").stages[stage].file, KEY, COLUMNS, NUMBERS, WHOLE)
            for stage in (ROUNDS, TAUS)
        },
        BOUNDS: Layout(
            study("online").stages[BOUNDS].file, KEY, (*COLUMNS, *TRUTH), (*NUMBERS, *TRUTH), WHOLE
        ),
    },
    log=LOG,
)


def agents_in(folder: Path, rounds: int) -> Record:
    """The record of the agents for a number of rounds.

    Args:
        folder: The folder of the results; may not exist yet.
        rounds: T, the number of rounds of a repeat.

    Raises:
        PlainFileError: if the file is damaged.
    """
    in_paper = rounds == study("online").facts["rounds"]
    file = study("online").stages[AGENTS].file if in_paper else f"rl_{rounds}.csv"
    return Record(folder, {AGENTS: Layout(file, KEY, COLUMNS, NUMBERS, WHOLE, count=rounds)})


def rows_of(protocol: Protocol, job: Job) -> tuple[list[Row], Mapping[str, Any]]:
    """The rows of a repeat of a method, one per round; seconds are processor time, including the world's.

    Args:
        protocol: What all repeats have in common.
        job: The repeat.

    Raises:
        TypeError: if the problem is not a rehearsal problem.
    """
    config = configuration(protocol, job)
    seed_and_use_one_thread(job.seed)
    problem = problem_of(config)
    if not isinstance(problem, RehearsalProblem):
        raise TypeError(f"expected a rehearsal world; got a {type(problem).__name__}: choose another dataset")
    set_hypotheses(config, problem, study("online").methods[job.method].counterpart)
    rounds = decided_rounds(config, problem)
    rows = []
    for each in rounds:
        row = online_row(job.world, job.method, job.setting, job.seed, each)
        rows.append(row | truth_bounds(each) if job.stage == BOUNDS else row)
    return rows, {}


def agent_outcome(rounds: int, job: Job) -> Outcome[Job]:
    """The rows of a repeat of an agent.

    Args:
        rounds: T, the number of rounds.
        job: The repeat.

    Raises:
        UserError: for an unknown name, a package that is not installed, or an agent that stops early.
    """
    rows = list(rl_rows(job.world, job.method, rounds, job.seed))
    if len(rows) != rounds:
        raise UserError(
            f"{job.method} played {len(rows)} rounds of {rounds}",
            job.world,
            "Choose another agent, or another number of rounds",
        )
    return Outcome(job, rows)


def configuration(protocol: Protocol, job: Job) -> DictConfig:
    """The configuration of a repeat of a method.

    The option `scenarios` sets the objective's numbers of scenarios, unless an override does.

    Args:
        protocol: What all repeats have in common.
        job: The repeat.
    """
    contexts = f"dataset.size.contexts={protocol.options['rounds']}"
    config = configured(protocol.conf, [*job.overrides, contexts, *protocol.overrides])
    for name in ("search_scenarios", "validation_scenarios"):
        overridden = any(text.startswith(f"objective.{name}=") for text in protocol.overrides)
        if name in config.objective and not overridden:
            config.objective[name] = protocol.options["scenarios"]
    return config


def set_hypotheses(config: DictConfig, problem: RehearsalProblem, counterpart: str) -> None:
    """Writes the graphs of a counterpart into the configuration of the surrogate.

    Args:
        config: The configuration, changed in place.
        problem: The problem, whose graphs are modified.
        counterpart: "causal", "associative", or empty for the problem's own graphs.

    Raises:
        ValueError: for an unknown counterpart, or one for which the problem has no graph.
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


def repeats_of(request: Request, stage: str) -> list[Job]:
    """The repeats of a stage; typed methods that belong to the other stage are ignored.

    Args:
        request: What the user asked for.
        stage: One of the stages.
    """
    methods = request.study.groups["agents" if stage == AGENTS else "ours"]
    typed = tuple(name for name in request.names.get("methods", ()) if name in methods)
    others = {axis: names for axis, names in request.names.items() if axis != "methods"}
    return replace(request, names=others | ({"methods": typed} if typed else {})).jobs(stage)


class OnlineRehearsal(Reproduction):
    """The study: methods, then agents."""

    def begin(self) -> dict[str, object] | None:
        """See `Reproduction.begin`; agents share no settings with the methods."""
        return {} if self.request.working == (AGENTS,) else super().begin()

    def works(self) -> Iterator[Work]:
        """See `Reproduction.works`."""
        folder, rounds = self.out.path, self.request.options["rounds"]
        for stage in (ROUNDS, TAUS, BOUNDS):
            if stage in self.request.working:
                compute, protocol = partial(attempted, rows_of), Protocol.of(self.request)
                repeats = repeats_of(self.request, stage)
                yield Work(stage, record_in(folder), repeats, compute, protocol, _reached)
        if AGENTS in self.request.working:
            repeats = repeats_of(self.request, AGENTS)
            yield Work(AGENTS, agents_in(folder, rounds), repeats, agent_outcome, rounds, _mean)

    def documents(self) -> None:
        """See `Reproduction.documents`."""
        from rehearsal_torch.studies.online.documents import documents

        documents(self.out)


def _mean(outcome: Outcome[Job]) -> str:
    return f"{sum(row['p_true'] for row in outcome.rows) / len(outcome.rows):.3f}"


def _reached(outcome: Outcome[Job]) -> str:
    best = sum(row["oracle"] for row in outcome.rows) / len(outcome.rows)
    return f"{_mean(outcome)} of {best:.3f}, {outcome.line['seconds']:.1f} s"
