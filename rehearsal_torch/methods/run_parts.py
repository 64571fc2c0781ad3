"""Runs: all parts that a configuration names, built, checked and fitted.

    run       = build(config)
    surrogate = fitted(run).surrogate
    rounds    = loop.rounds(run.problem, surrogate, run.objective, run.search)

The Python verbs, the commands and the jobs of the papers use these steps. Parts that are expensive, or write
files, are built on demand: the surrogate by `Run.surrogate`, and the trainer by `Run.trainer`.
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from omegaconf import DictConfig, OmegaConf

from rehearsal_torch.certificate import Certificate, Certify
from rehearsal_torch.claims.abstention_rules import Claims
from rehearsal_torch.claims.cross_fitting import CrossFittedClaims, cross_fitted
from rehearsal_torch.claims.graph_robustness import ROWS, Doubts, member_graphs
from rehearsal_torch.data.rehearsal_task import RehearsalTask
from rehearsal_torch.data.table import Table
from rehearsal_torch.data.task_compatibility import Kind
from rehearsal_torch.data.trainable_part import Trained
from rehearsal_torch.graphs.graph_notation import graph_class
from rehearsal_torch.graphs.mixed_graph import RehearsalGraph
from rehearsal_torch.methods.hydra_config import plain, plain_value
from rehearsal_torch.methods.instantiate import build as built
from rehearsal_torch.methods.instantiate import (
    checked,
    made,
    problem_of,
    same_kind,
    seed_and_use_one_thread,
    surrogate_of,
    tasked,
    trainer_of,
)
from rehearsal_torch.methods.presets import CHOOSE, methods_by, methods_with
from rehearsal_torch.objectives.objective import class_of, settings_of
from rehearsal_torch.problems.cases.user_table import RehearsalTable
from rehearsal_torch.problems.problem import Problem, World
from rehearsal_torch.search.search import Search, check_worth
from rehearsal_torch.surrogates.rehearsal_surrogate import RehearsalSurrogate
from rehearsal_torch.surrogates.surrogate import Surrogate
from rehearsal_torch.training.gradient_descent import Descent
from rehearsal_torch.training.surrogate_fit import fit, shareable
from rehearsal_torch.user_error import UserError, as_user_error


@dataclass(frozen=True)
class Method:
    """The objective (`objectives.objective.objective_for`), search and certificate of a method."""

    objective: Callable[..., Any]
    search: Search[Any]
    certify: Certify | None


@dataclass(frozen=True)
class Run(Method):
    """A method with all other parts that a configuration names.

    Attributes:
        surrogate: Returns the unfitted surrogate, with initial weights that depend on the seed alone, or,
            with settled=False, on the current random state.
        trainer: Returns the trainer for a folder, or for None, which stores nothing; None without training.
        learn: Whether the run is online: the surrogate is refitted after each round.
        config: The configuration of the parts, as plain data, every reference resolved.
    """

    problem: Problem
    surrogate: Callable[..., Surrogate]
    trainer: Callable[[Path | None], Descent | None]
    learn: bool
    seed: int
    config: Mapping[str, Any]

    @property
    def kind(self) -> Kind:
        """The kind of the problem (`Problem.kind`)."""
        return self.problem.kind


def build(config: DictConfig, problem: Problem | None = None, method: Method | None = None) -> Run:
    """Seeds all random states, builds the parts of a configuration, and checks that they are compatible
    before anything is fitted.

    Args:
        config: The whole configuration; open values of the surrogate are filled in (`instantiate.tasked`).
        problem: The problem, if it was built before; None builds it.
        method: The method of the configuration, if it was built before.

    Raises:
        UserError: if a part is missing or refuses its values, parts are incompatible, an online run is
            impossible, or the method has yet to be chosen.
    """
    if CHOOSE in config:
        raise UserError(
            "auto takes one of the methods by the rows: it decides for cases of a table, and is no method "
            "that is fitted, or compared with others, by itself",
            "decision=auto",
            "Use it with decide or train, or name a method",
        )
    seed_and_use_one_thread(int(config.seed))
    if method is None and not _reward_is_open(config):
        method = method_of(config)
    problem = problem_of(config) if problem is None else problem
    tasked(config, problem)
    if method is None or problem.facts().reward or problem.facts().imputations:
        method = method_of(config)
    check_graphs(config)
    kind = class_of(method.objective)
    same_kind(problem, None if kind is None else kind.kind)
    same_kind(problem, method.search.kind, type(method.search).__name__)
    return Run(
        method.objective,
        method.search,
        method.certify,
        problem=problem,
        surrogate=partial(surrogate_of, config, problem),
        trainer=partial(trainer_of, config),
        learn=learning(config, problem),
        seed=int(config.seed),
        config=plain(config),
    )


def _reward_is_open(config: DictConfig) -> bool:
    """Whether the task of the episodes determines the reward, so that the method depends on the problem."""
    reward = config.objective.get("reward")
    parts = ("weights", "components", "costs")
    return OmegaConf.is_dict(reward) and all(name in reward and not reward[name] for name in parts)


def check_graphs(config: DictConfig) -> None:
    """Reads the candidate graphs (``graphs=FILE``), if the configuration names any."""
    if (graphs := config.get("graphs")) is not None:
        with as_user_error("graphs"):
            graph_class(plain_value(graphs))


def method_of(config: DictConfig) -> Method:
    """The method of the configuration; UserError if objective or search is missing, or a value is invalid."""
    objective, search, certify = (built(config, group) for group in ("objective", "search", "certificate"))
    if objective is None or search is None:
        fault = "the configuration has no objective or no search"
        raise UserError(fault, "objective and search", "Choose a decision, such as decision=branch_and_bound")
    return Method(objective, checked(search, Search, "a search", "search"), certify)


def suits(method: Method, surrogate: Surrogate) -> None:
    """Raises a UserError unless an objective's settings match a surrogate, fitted or not (the names in a
    reward's weights, say), the search can maximise it, and the certificate can be computed from it.
    """
    if isinstance(method.certify, Certificate):
        with as_user_error("certificate"):
            method.certify.check(surrogate)
    kind, settings = class_of(method.objective), settings_of(method.objective)
    if kind is not None and kind.takes and not isinstance(surrogate, kind.takes):
        required = " or ".join(surrogate_type.__name__ for surrogate_type in kind.takes)
        suitable = methods_with(type(surrogate))
        remedy = f"choose {' or '.join(f'decision={name}' for name in suitable)}, or " if suitable else ""
        raise UserError(
            f"{kind.__name__} decides by a {required}; this model is a {type(surrogate).__name__}",
            "decision",
            f"{remedy}fit a model for this decision: leave checkpoint= out".capitalize(),
        )
    objective_type = type(method.search).maximises()
    if kind is not None and objective_type is not None and not issubclass(kind, objective_type):
        raise UserError(
            f"{type(method.search).__name__} maximises a {objective_type.__name__}; the objective is a "
            f"{kind.__name__}",
            "search",
            "Leave search= out: a decision brings its own",
        )
    if kind is not None:
        with as_user_error("objective"):
            kind.check(surrogate, **settings)
    with as_user_error("search"):
        method.search.check(surrogate, **settings)
    task = surrogate.question()
    if isinstance(task, RehearsalTask) and task.worth is not None and task.costs:
        alternatives = [] if kind is None else methods_by(kind, type(method.search))
        with as_user_error("worth"):
            check_worth(method.objective, method.search, " or ".join(alternatives) or "this method")


def learning(config: DictConfig, problem: Problem) -> bool:
    """Whether the run is online; UserError if it cannot be, and should."""
    if not isinstance(config.learn, bool):
        raise UserError(f"expected true or false; got {config.learn}", "learn")
    if not config.learn:
        return False
    if not isinstance(problem, World):
        raise UserError(
            f"{type(problem).__name__} does not respond to decisions, so that there is nothing to learn from",
            "learn=true",
            "Choose a dataset that is a world",
        )
    if int(config.shards) > 1:
        fault = "each round of an online run needs those before it"
        remedy = "Leave shards out, and spread repeats over seeds instead: -m seed=0,1,2"
        raise UserError(fault, "shards", remedy)
    return True


@dataclass(frozen=True)
class Fitted:
    """A fitted surrogate, the seconds of the fit, its losses (step, name, value) and held-out rows."""

    surrogate: Surrogate
    seconds: float
    readings: list[tuple[int, str, float]]
    held_out: Table | None


def fitted(
    run: Run,
    training: Path | None = None,
    surrogate: Surrogate | None = None,
    *,
    validated: bool = True,
    quiet: bool = True,
    workers: int = 1,
) -> Fitted:
    """Fits the surrogate of a run; the trainer keeps its files in the folder `training`.

    Args:
        validated: Whether held-out rows are used for early stopping.
        quiet: Whether parts with a solver show no progress.
        workers: The number of processes that share the fits of members (`training.surrogate_fit`).
    """
    surrogate = run.surrogate() if surrogate is None else surrogate
    held_out = run.problem.held_out() if validated else None
    trainer, observations = run.trainer(training), [run.problem.observations()]
    began = time.perf_counter()
    # No reference to the rows is kept: a model may release them once it has its examples.
    fit(surrogate, observations.pop(), trainer, held_out, quiet=quiet, workers=workers)
    seconds = time.perf_counter() - began
    readings = [] if trainer is None else trainer.history
    return Fitted(surrogate.eval(), seconds, readings, held_out)


def cross_fitted_claims(
    run: Run, told: Callable[[str], None] | None = None, workers: int = 1
) -> CrossFittedClaims:
    """The cross-fitted claims of a run. All fits use the problem's held-out rows for early stopping; fits on
    GPUs, or with several processes each, are not shared. UserError if the run is not about cases of a table,
    or a fold cannot be fitted to.
    """
    problem, task = run.problem, run.problem.question()
    if not isinstance(task, RehearsalTask):
        raise UserError(
            "these claims are those of alterations, judged by other rows of a table; "
            f"{type(problem).__name__} has none",
            "claims=cross_fitted",
            "Leave claims= out",
        )
    held_out = problem.held_out()
    with as_user_error("claims"):
        trainer = run.trainer(None)
        settings = None if trainer is None else trainer.settled()

        def fitted(table: Table) -> Surrogate:
            return fit(run.surrogate(), table, None if settings is None else settings.settled(), held_out)

        return cross_fitted(
            problem.observations(),
            problem.facts().units,
            task,
            fitted,
            run.objective,
            run.search,
            seed=run.seed,
            told=told,
            workers=workers if shareable(settings) else 1,
        )


def doubts_of(run: Run, surrogate: Surrogate) -> Doubts | None:
    """The doubts about the graph of an offline run on a user's table by a method with one graph; or None."""
    problem = run.problem
    if run.learn or not isinstance(problem, RehearsalTable) or not isinstance(surrogate, RehearsalSurrogate):
        return None
    if len(surrogate.overlap.graphs) > 1 or "task" not in run.config["surrogate"]:
        return None
    trained = any(isinstance(part, Trained) for part in surrogate.modules())
    over_members = run.search.declines and not trained and len(problem.past) <= ROWS
    return Doubts(problem.refuted, over_members, partial(fitted_under, run))


def judged_by_graphs(
    run: Run,
    surrogate: Surrogate,
    written: Any,
    claims: Claims | None = None,
    told: Callable[[str], None] | None = None,
    doubts: Doubts | None = None,
) -> Claims | None:
    """The claims of a run, then the tests of its graph by the rows, then the graphs under which its decisions
    stand (`claims.graph_robustness`): the `written` ones (`graphs.graph_notation`), else those that fit the
    rows of a user's table as well, if they are few.

    Args:
        doubts: The doubts of the run; None finds them.

    Raises:
        UserError: if the graphs cannot be read or do not suit the task, or the run does not decide for cases
            of a table by a method with one graph.
    """
    doubts = doubts_of(run, surrogate) if doubts is None else doubts
    if written is None:
        if doubts is None or not isinstance(surrogate, RehearsalSurrogate):
            return claims
        return doubts.claims(surrogate, run.objective, run.search.declines, claims, told)
    if run.learn or run.kind != "rehearse" or "task" not in run.config["surrogate"]:
        raise UserError(
            "only decisions for cases of a table, by a method that is fitted once, are compared over graphs",
            "graphs",
            "Leave graphs= out",
        )
    with as_user_error("graphs"):
        graphs = graph_class(written)
        if doubts is None or not isinstance(surrogate, RehearsalSurrogate):
            refit = partial(fitted_under, run)
            return member_graphs(graphs, surrogate, refit, run.objective, claims, told)
        return doubts.claims(surrogate, run.objective, run.search.declines, claims, told, graphs)


def fitted_under(run: Run, graph: RehearsalGraph) -> RehearsalSurrogate:
    """The method of a run, fitted to its observations under another graph of the task's variables."""
    seed_and_use_one_thread(run.seed)
    task = RehearsalTask.of(run.config["surrogate"]["task"]).to_plain() | {"graph": graph.to_plain()}
    refitted: RehearsalSurrogate = made({**run.config["surrogate"], "task": task}, "surrogate")
    fit(refitted, run.problem.observations(), run.trainer(None), run.problem.held_out())
    return refitted
