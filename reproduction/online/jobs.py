"""Rounds that learn from each other: each repeat runs a method, or an agent of reinforcement learning,
through all rounds of a world.

``rounds.csv`` has one row per round of a method, and ``jobs.csv`` one line per repeat; the repeat's number is
its seed. ``truth.csv`` has the rows of the method with bounds for the truth, on seeds of its own. Agents have
files of their own: ``rl.csv``, or ``rl_T.csv`` for T rounds if T differs from the paper's number. An agent's
repeat is finished when the file has all its rounds.

Source: Qin et al. (2023), Sec. 6, Fig. 4 and Tab. 1.
"""

from collections.abc import Mapping
from typing import Any

from omegaconf import DictConfig

from rehearsal_torch.evaluation.claim_rows import (
    ONLINE_COLUMNS,
    ONLINE_KEY,
    TRUTH,
    Row,
    online_row,
    truth_bounds,
)
from rehearsal_torch.methods.instantiate import problem_of, seed_and_use_one_thread
from rehearsal_torch.problems.problem import RehearsalProblem
from reproduction.job import configured, decided_rounds
from reproduction.online.agent_rounds import rl_rows
from reproduction.online.counterparts import associative, causal
from reproduction.plan import Job, entry, study
from reproduction.record import Layout

# The stages: rehearsal methods at the paper's tau and at others, the bounds for the truth, and agents.
ROUNDS, TAUS, BOUNDS, AGENTS = "rounds", "taus", "truth", "rl"
LOG = (*ONLINE_KEY, "state", "rounds", "seconds", "commit", "message")


def layouts(options: Mapping[str, Any]) -> dict[str, Layout]:
    """Stage to the file of its rows."""
    stages, rounds = study("online")["stages"], options["rounds"]
    in_paper = rounds == study("online")["facts"]["rounds"]
    agents = stages[AGENTS]["file"] if in_paper else f"rl_{rounds}.csv"
    methods = Layout(stages[ROUNDS]["file"], ONLINE_KEY, ONLINE_COLUMNS)
    return {
        ROUNDS: methods,
        TAUS: methods,
        BOUNDS: Layout(stages[BOUNDS]["file"], ONLINE_KEY, (*ONLINE_COLUMNS, *TRUTH)),
        AGENTS: Layout(agents, ONLINE_KEY, ONLINE_COLUMNS, count=rounds),
    }


def rows_of(options: Mapping[str, Any], job: Job) -> tuple[list[Row], Mapping[str, Any]]:
    """The rows of a repeat, one per round; seconds of a method are processor time, including the world's.

    Raises:
        TypeError: if the problem is not a rehearsal problem.
        ValueError: if an agent stops early.
    """
    if job.stage == AGENTS:
        rows = list(rl_rows(job.world, job.method, options["rounds"], job.seed))
        if len(rows) != options["rounds"]:
            raise ValueError(f"{job.method} played {len(rows)} rounds of {options['rounds']}")
        return rows, {}
    config = configuration(options, job)
    seed_and_use_one_thread(job.seed)
    problem = problem_of(config)
    if not isinstance(problem, RehearsalProblem):
        raise TypeError(f"expected a rehearsal world; got a {type(problem).__name__}: choose another dataset")
    set_hypotheses(config, problem, entry(study("online"), "methods", job.method).get("counterpart", ""))
    rows = []
    for each in decided_rounds(config, problem):
        row = online_row(job.world, job.method, job.setting, job.seed, each)
        rows.append(row | truth_bounds(each) if job.stage == BOUNDS else row)
    return rows, {}


def configuration(options: Mapping[str, Any], job: Job) -> DictConfig:
    """The configuration of a repeat of a method.

    The option `scenarios` sets the objective's numbers of scenarios, unless an override does.
    """
    contexts = f"dataset.size.contexts={options['rounds']}"
    config = configured([*job.overrides, contexts, *options["overrides"]])
    for name in ("search_scenarios", "validation_scenarios"):
        overridden = any(text.startswith(f"objective.{name}=") for text in options["overrides"])
        if name in config.objective and not overridden:
            config.objective[name] = options["scenarios"]
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
