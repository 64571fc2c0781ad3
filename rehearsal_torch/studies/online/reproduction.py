"""The study of rounds that learn from each other: each repeat takes a method, or an agent of reinforcement
learning, through all rounds of a world.

It builds what ``scripts/decide.py`` builds, from the same configuration, and decides through the same loop.
rounds.csv has one row per round, jobs.csv one line per repeat; its seed is the repeat's number. Agents have
a file of their own, rl.csv, and rl_T.csv for T rounds where T is not the paper's; an agent's repeat is done
where the file has all its rounds.

Source: Qin et al. (2023), Sec. 6, Fig. 4 and Tab. 1.
"""

from collections.abc import Iterator
from pathlib import Path

from omegaconf import DictConfig

from rehearsal_torch.cli.build import problem_of, seed_and_use_one_thread
from rehearsal_torch.cli.errors import UserError
from rehearsal_torch.evaluation.online_rows import COLUMNS, KEY, NUMBERS, WHOLE, Row, online_row
from rehearsal_torch.problems.problem import RehearsalProblem
from rehearsal_torch.studies.job import Protocol, attempted, configured, lines
from rehearsal_torch.studies.online.agent_rounds import rl_rows
from rehearsal_torch.studies.online.counterparts import associative, causal
from rehearsal_torch.studies.plan import Job, jobs
from rehearsal_torch.studies.record import Layout, Log, Outcome, Record
from rehearsal_torch.studies.request import Request
from rehearsal_torch.studies.runner import Reproduction, Work
from rehearsal_torch.studies.study_files import study

LEARNING, AGENTS = "rounds", "rl"
LOG = Log(KEY, ("rounds", "seconds"))


def record_in(folder: Path) -> Record:
    """The record of the methods.

    Args:
        folder: Where it is, or is going to be.

    Raises:
        PlainFileError: if its jobs.csv is damaged.
    """
    file = study("online").stages[LEARNING].file
    return Record(folder, {LEARNING: Layout(file, KEY, COLUMNS, NUMBERS, WHOLE)}, LOG)


def agents_in(folder: Path, rounds: int) -> Record:
    """The record of the agents that played so many rounds.

    Args:
        folder: Where it is, or is going to be.
        rounds: T.

    Raises:
        PlainFileError: if it is damaged.
    """
    usual = rounds == study("online").facts["rounds"]
    file = study("online").stages[AGENTS].file if usual else f"rl_{rounds}.csv"
    return Record(folder, {AGENTS: Layout(file, KEY, COLUMNS, NUMBERS, WHOLE, count=rounds)})


def done(protocol: Protocol, job: Job) -> Outcome[Job]:
    """Does a repeat of a method; an error becomes its line's message, so that the others go on."""
    return attempted(job, lambda: (list(rows_of(protocol, job)), {}), protocol.commit)


def played(rounds: int, job: Job) -> Outcome[Job]:
    """Does a repeat of an agent.

    Args:
        rounds: T.
        job: Which.

    Raises:
        UserError: for an unknown name, a package that is not installed, or fewer rounds than asked for.
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
    """A repeat's configuration."""
    contexts = f"dataset.contexts={protocol.options['rounds']}"
    config = configured(protocol.conf, [*job.overrides, contexts, *protocol.overrides])
    for name in ("search_scenarios", "validation_scenarios"):
        asked = any(text.startswith(f"objective.{name}=") for text in protocol.overrides)
        if name in config.objective and not asked:
            config.objective[name] = protocol.options["scenarios"]
    return config


def rows_of(protocol: Protocol, job: Job) -> Iterator[Row]:
    """One row per round, as it is made; seconds are the processor's, of everything between two decisions.

    Raises:
        TypeError: if the problem is not one of rehearsal.
    """
    config = configuration(protocol, job)
    seed_and_use_one_thread(job.seed)
    problem = problem_of(config)
    if not isinstance(problem, RehearsalProblem):
        raise TypeError(f"expected a rehearsal world; got a {type(problem).__name__}: choose another dataset")
    believed(config, problem, study("online").methods[job.method].counterpart)
    for line in lines(config, problem):
        yield online_row(job.world, job.method, job.setting, job.seed, line)


def believed(config: DictConfig, problem: RehearsalProblem, counterpart: str) -> None:
    """Writes a counterpart's graphs into the surrogate's configuration; changes nothing for a method with
    graphs of its own.

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


def planned(request: Request, stage: str) -> list[Job]:
    """A stage's repeats; names that belong to the other stage are left to it."""
    names = dict(request.names)
    group = request.study.groups["agents" if stage == AGENTS else "ours"]
    chosen = tuple(name for name in names.pop("methods", ()) if name in group)
    return jobs(request.study, stage, **names, methods=chosen or None, seeds=request.seeds)


class OnlineRehearsal(Reproduction):
    """The study: methods, then agents."""

    def begin(self) -> dict[str, object] | None:
        """See `Reproduction.begin`; agents share no settings with the methods."""
        return {} if self.request.working == (AGENTS,) else super().begin()

    def works(self) -> Iterator[Work]:
        """See `Reproduction.works`."""
        folder, rounds = self.out.path, self.request.options["rounds"]
        if LEARNING in self.request.working:
            repeats = planned(self.request, LEARNING)
            yield Work(LEARNING, record_in(folder), repeats, done, Protocol.of(self.request), _reached)
        if AGENTS in self.request.working:
            repeats = planned(self.request, AGENTS)
            yield Work(AGENTS, agents_in(folder, rounds), repeats, played, rounds, _mean)

    def documents(self) -> None:
        """See `Reproduction.documents`."""
        from rehearsal_torch.studies.online.documents import documents

        documents(self.out)


def _mean(outcome: Outcome[Job]) -> str:
    return f"{sum(row['p_true'] for row in outcome.rows) / len(outcome.rows):.3f}"


def _reached(outcome: Outcome[Job]) -> str:
    best = sum(row["oracle"] for row in outcome.rows) / len(outcome.rows)
    return f"{_mean(outcome)} of {best:.3f}, {outcome.line['seconds']:.1f} s"
