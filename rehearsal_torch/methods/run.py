"""Runs: all parts that a configuration names, built and checked once.

    run       = build(config)
    surrogate = fitted(run).surrogate           methods.fitting
    rounds    = loop.rounds(run.problem, surrogate, run.objective, run.search)

The verbs of Python, the commands and the jobs of the papers use these steps. Parts that are expensive, or
write files, are built on demand: the surrogate by `Run.surrogate`, with initial weights that depend on the
seed alone, and the trainer by `Run.trainer`, with the folder that it may use.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from omegaconf import DictConfig, OmegaConf

from rehearsal_torch.certificate import Certificate, Certify
from rehearsal_torch.data.question import Kind
from rehearsal_torch.data.rehearsal_task import RehearsalTask
from rehearsal_torch.graphs.written_graph import graph_class
from rehearsal_torch.methods.build import build as built
from rehearsal_torch.methods.build import (
    problem_of,
    same_kind,
    seed_and_use_one_thread,
    surrogate_of,
    tasked,
    trainer_of,
)
from rehearsal_torch.methods.conf import plain
from rehearsal_torch.methods.presets import CHOOSE, methods_by, methods_with
from rehearsal_torch.objectives.objective import class_of, settings_of
from rehearsal_torch.problems.problem import Problem, World
from rehearsal_torch.search.search import Search, check_worth
from rehearsal_torch.surrogates.surrogate import Surrogate
from rehearsal_torch.training.descent import Descent
from rehearsal_torch.user_error import UserError, as_user_error


@dataclass(frozen=True)
class Method:
    """The objective, search and certificate of a method.

    Attributes:
        objective: What the search maximises (`objectives.objective.objective_for`).
        certify: Returns a certificate for a decision; None for no certificates.
    """

    objective: Callable[..., Any]
    search: Search[Any]
    certify: Certify | None


@dataclass(frozen=True)
class Run(Method):
    """A method with all other parts that a configuration names.

    Attributes:
        surrogate: Returns the unfitted surrogate; the same at every call, unless it is called with
            settled=False: its initial weights are then drawn from the current random state.
        trainer: Returns the trainer for a folder, or for None, which stores nothing; returns None if nothing
            needs training.
        learn: Whether the run is online: the surrogate is refitted after each round.
        config: The configuration of what was built, as plain data, every reference resolved.
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
    """Seeds all random states, builds the parts of a configuration, and checks that they are compatible:
    every error that can be detected before a fit is reported before it.

    Args:
        config: The whole configuration; open values of the surrogate are filled in (`build.tasked`).
        problem: A problem that was built before, because several runs share it or the configuration depends
            on it; None builds it.
        method: The method of the configuration, if it was built before.

    Raises:
        UserError: if a part is missing or refuses its values, parts are of different kinds, the graphs that
            may be true cannot be used, an online run is impossible, or the method has yet to be chosen.
    """
    if CHOOSE in config:
        raise UserError(
            "auto takes one of the methods by the rows: it decides for cases of a table, and is no method "
            "that is fitted, or compared with others, by itself",
            "decision=auto",
            "Use it with decide or train, or name a method",
        )
    seed_and_use_one_thread(int(config.seed))
    if method is None and not _left_to_the_task(config):
        method = method_of(config)
    problem = problem_of(config) if problem is None else problem
    tasked(config, problem)
    if method is None or problem.facts().reward or problem.facts().imputations:
        method = method_of(config)
    check_graphs(config)
    made = class_of(method.objective)
    same_kind(problem, None if made is None else made.kind)
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


def _left_to_the_task(config: DictConfig) -> bool:
    """Whether the configuration leaves the reward of a step to the task of the episodes, so that there is no
    method before the data set is known.
    """
    reward = config.objective.get("reward")
    parts = ("weights", "components", "costs")
    return OmegaConf.is_dict(reward) and all(name in reward and not reward[name] for name in parts)


def check_graphs(config: DictConfig) -> None:
    """Reads the graphs that may be true (``graphs=FILE``), if the configuration names any.

    Raises:
        UserError: if they cannot be used.
    """
    written = config.get("graphs")
    if written is None:
        return
    with as_user_error("graphs"):
        graph_class(OmegaConf.to_container(written) if OmegaConf.is_config(written) else written)


def method_of(config: DictConfig) -> Method:
    """The method of the configuration; built before anything is fitted, so that an invalid value is reported
    early.

    Raises:
        UserError: if there is no objective or no search, one refuses its values, or the search is none.
    """
    objective, search, certify = (
        built(config, "objective"),
        built(config, "search"),
        built(config, "certificate"),
    )
    if objective is None or search is None:
        raise UserError(
            "the configuration has no objective or no search",
            "objective and search",
            "Choose a decision, such as decision=branch_and_bound",
        )
    if not isinstance(search, Search):
        raise UserError(
            f"expected a search; got {type(search).__name__}", "search", "See the folder conf/search"
        )
    return Method(objective, search, certify)


def suits(method: Method, surrogate: Surrogate) -> None:
    """Checks that an objective's settings match a surrogate, fitted or not (the names in a reward's weights,
    for example), that the search can maximise it, and that the certificate can be computed from it.

    Raises:
        UserError: if they do not.
    """
    if isinstance(method.certify, Certificate):
        with as_user_error("certificate"):
            method.certify.check(surrogate)
    made = class_of(method.objective)
    settings = settings_of(method.objective)
    if made is not None and made.takes and not isinstance(surrogate, made.takes):
        needed = " or ".join(each.__name__ for each in made.takes)
        suited = methods_with(type(surrogate))
        remedy = f"choose {' or '.join(f'decision={name}' for name in suited)}, or " if suited else ""
        raise UserError(
            f"{made.__name__} decides by a {needed}; this model is a {type(surrogate).__name__}",
            "decision",
            f"{remedy}fit a model for this decision: leave checkpoint= out".capitalize(),
        )
    sought = type(method.search).maximises()
    if made is not None and sought is not None and not issubclass(made, sought):
        raise UserError(
            f"{type(method.search).__name__} maximises a {sought.__name__}; the objective is a "
            f"{made.__name__}",
            "search",
            "Leave search= out: a decision brings its own",
        )
    if made is not None:
        with as_user_error("objective"):
            made.check(surrogate, **settings)
    with as_user_error("search"):
        method.search.check(surrogate, **settings)
    task = surrogate.question()
    if isinstance(task, RehearsalTask) and task.worth is not None and task.costs:
        named = [] if made is None else methods_by(made, type(method.search))
        with as_user_error("worth"):
            check_worth(method.objective, method.search, " or ".join(named) or "this method")


def learning(config: DictConfig, problem: Problem) -> bool:
    """Whether the run is online.

    Raises:
        UserError: if it should be, and cannot.
    """
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
        raise UserError(
            "each round of an online run needs those before it",
            "shards",
            "Leave shards out, and spread repeats over seeds instead: -m seed=0,1,2",
        )
    return True
