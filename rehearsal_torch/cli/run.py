"""A run: everything that a configuration names, built and checked once.

    run       = build(config)
    surrogate = fit(run, folder)                 cli.verbs.fitting
    count     = decide(run, folder, surrogate)   cli.batch_decisions

Scripts, the jobs of a sweep and the studies go this way. What costs much, or keeps files, is made when it is
needed: the surrogate by `Run.surrogate`, its first weights drawn from the seed alone, and the trainer by
`Run.trainer`, which is handed the folder that it may use.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from omegaconf import DictConfig

from rehearsal_torch.cli.build import build as built
from rehearsal_torch.cli.build import (
    plain,
    problem_of,
    same_kind,
    seed_and_use_one_thread,
    surrogate_of,
    tasked,
    trainer_of,
)
from rehearsal_torch.cli.errors import UserError, as_user_error

if TYPE_CHECKING:
    from rehearsal_torch.data.question import Kind
    from rehearsal_torch.loop import Certify
    from rehearsal_torch.objectives.candidates import Candidates
    from rehearsal_torch.objectives.objective import Objective
    from rehearsal_torch.problems.problem import Problem
    from rehearsal_torch.search.search import Search
    from rehearsal_torch.surrogates.surrogate import Surrogate
    from rehearsal_torch.training.descent import Descent


@dataclass(frozen=True)
class Method:
    """What to decide by.

    Attributes:
        objective: Makes an objective of (surrogate, situation).
        search: Finds the action.
        certify: Says how sure we are; None where nothing does.
    """

    objective: "Callable[..., Objective]"
    search: "Search[Any]"
    certify: "Certify | None"


@dataclass(frozen=True)
class Run:
    """Everything that a configuration names.

    Attributes:
        problem: Where situations come from.
        surrogate: Makes what will be learnt, unfitted; the same at every call.
        objective: Makes an objective of (surrogate, situation).
        search: Finds the action.
        certificate: Says how sure we are; None where nothing does.
        trainer: Makes the trainer of a folder, or of None, which keeps nothing; gives None where nothing
            needs training.
        learn: Whether rounds learn from each other.
        seed: Where everything random starts.
        kind: What is asked (`Problem.kind`).
        config: The configuration as plain data, every reference resolved.
    """

    problem: "Problem"
    surrogate: "Callable[[], Surrogate]"
    objective: "Callable[..., Objective]"
    search: "Search[Any]"
    certificate: "Certify | None"
    trainer: "Callable[[Path | None], Descent | None]"
    learn: bool
    seed: int
    kind: "Kind"
    config: Mapping[str, Any]


def build(config: DictConfig, problem: "Problem | None" = None) -> Run:
    """Seeds everything random, builds what a configuration names, and checks that it goes together: nothing
    that could be refused before a fit is left for after it.

    Args:
        config: The whole configuration; what the surrogate leaves open is filled in (`build.tasked`).
        problem: What was built before, where several runs share it, or it is needed to complete the
            configuration; None builds it.

    Raises:
        UserError: if a part is missing or refuses its values, parts are of different kinds, or rounds are to
            learn and cannot.
    """
    seed_and_use_one_thread(int(config.seed))
    method = method_of(config)
    problem = problem_of(config) if problem is None else problem
    tasked(config, problem)
    if (required := _kind(method.objective)) is not None:
        same_kind(problem, required)
    return Run(
        problem=problem,
        surrogate=partial(surrogate_of, config, problem),
        objective=method.objective,
        search=method.search,
        certificate=method.certify,
        trainer=partial(trainer_of, config),
        learn=learning(config, problem),
        seed=int(config.seed),
        kind=problem.kind,
        config=plain(config),
    )


def method_of(config: DictConfig) -> Method:
    """What the configuration decides by; built before anything is fitted, so that a wrong value costs no
    time.

    Raises:
        UserError: if there is no objective or no search, or one refuses its values.
    """
    objective, search, certify = (
        built(config, "objective"),
        built(config, "search"),
        built(config, "certificate"),
    )
    if objective is None or search is None:
        raise UserError(
            "nothing says what to decide by",
            "objective and search",
            "Choose a decision, such as decision=branch_and_bound",
        )
    return Method(objective, search, certify)


def suits(method: Method | Run, surrogate: "Surrogate") -> None:
    """Whether an objective's settings go with a surrogate, fitted or not: the names that a reward weighs,
    say.

    Raises:
        UserError: if they do not.
    """
    made = _class(method.objective)
    if made is not None and isinstance(method.objective, partial):
        with as_user_error("objective"):
            made.check(surrogate, **method.objective.keywords)


def _class(objective: "Callable[..., Objective]") -> "type[Objective | Candidates[Any]] | None":
    """The class that makes the objectives; None where a function does."""
    from rehearsal_torch.objectives.candidates import Candidates
    from rehearsal_torch.objectives.objective import Objective

    made = objective.func if isinstance(objective, partial) else objective
    return made if isinstance(made, type) and issubclass(made, Objective | Candidates) else None


def _kind(objective: "Callable[..., Objective]") -> "Kind | None":
    """The kind of problem whose actions an objective values; None for any."""
    made = _class(objective)
    return None if made is None else made.kind


def learning(config: DictConfig, problem: "Problem") -> bool:
    """Whether rounds learn from each other.

    Raises:
        UserError: if they are to and cannot.
    """
    from rehearsal_torch.problems.problem import World

    if not isinstance(config.learn, bool):
        raise UserError(f"expected true or false; got {config.learn}", "learn")
    if not config.learn:
        return False
    if not isinstance(problem, World):
        raise UserError(
            f"{type(problem).__name__} does not answer, so that there is nothing to learn from",
            "learn=true",
            "Choose a dataset that is a world",
        )
    if int(config.shards) > 1:
        raise UserError(
            "each round that learns needs those before it",
            "shards",
            "Leave shards out, and spread repeats over seeds instead: -m seed=0,1,2",
        )
    return True
