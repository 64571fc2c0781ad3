"""Which methods apply to a problem: those that can be built for its task and its rows.

What a method needs (a graph without a hidden cause beside an arrow, a posterior, costs) is known to its
surrogate, objective and search alone. Each method is therefore built as for a run, up to the fit, and what it
answers is the reason. What only a fit shows, the comparison adds.
"""

from collections.abc import Callable
from copy import deepcopy
from functools import partial

from omegaconf import DictConfig, open_dict

from rehearsal_torch.data.rehearsal_task import RehearsalTask
from rehearsal_torch.data.table import Table
from rehearsal_torch.method_choice.comparison import compared
from rehearsal_torch.method_choice.one_split import Candidate, Limits
from rehearsal_torch.method_choice.rule import (
    NOT_COMPARED,
    NOTHING,
    PARTS,
    SIMPLEST_FIRST,
    Choice,
    Standing,
    chosen,
)
from rehearsal_torch.methods.build import same_kind
from rehearsal_torch.methods.conf import composed, plain
from rehearsal_torch.methods.presets import AUTO, CHOOSE, capabilities, decides_for, methods, nodes
from rehearsal_torch.methods.run import Run, build, suits
from rehearsal_torch.problems.problem import Problem
from rehearsal_torch.surrogates.surrogate import Surrogate
from rehearsal_torch.training.fit import fit
from rehearsal_torch.user_error import UserError, as_user_error, did_you_mean

_ASKED = {"rehearse": "cases of a table", "look_back": "a sequence", "optimise": "trials"}


def choose(
    config: DictConfig,
    problem: Problem,
    told: Callable[[str], None] | None = None,
    workers: int = 1,
) -> Choice:
    """Compares the methods that apply to a problem, and takes one.

    Args:
        config: The whole configuration, with the limits of the comparison (``choose``).
        told: Is told of the progress; None for silence.
        workers: The number of processes that share the comparison.

    Raises:
        UserError: if the problem is of another kind, a limit is out of range, or nothing can be compared.
    """
    same_kind(problem, "rehearse")
    task, seed, table = problem.question(), int(config.seed), problem.observations()
    assert isinstance(task, RehearsalTask)
    with as_user_error("decision=auto"):
        limits = Limits(**plain(config)[CHOOSE])
        candidates, others = applicable(config, problem)
        found = compared(table, problem.facts().units, task, candidates, limits, seed, told, workers)
        idle = all(each.method != NOTHING for each in others)
        rest = [each for each in others if each.method != NOTHING]
        refused = [Standing(name, False, False, reason) for name, reason in found.refused.items()]
        return chosen(found, len(table), SIMPLEST_FIRST, [*refused, *rest], idle)


def with_method(config: DictConfig, method: str) -> DictConfig:
    """A copy of a configuration in which another method decides, with its own settings.

    Args:
        config: The whole configuration, of a problem of kind ``rehearse``.
        method: The name of a file in ``conf/decision``.
    """
    made = deepcopy(config)
    with open_dict(made):
        made.pop(CHOOSE, None)
        for name, node in nodes(method).items():
            made[name] = node
    return made


def applicable(config: DictConfig, problem: Problem) -> tuple[list[Candidate], list[Standing]]:
    """The methods to compare, simplest first, and all others with the reason.

    Args:
        problem: A problem of kind ``rehearse``.
    """
    candidates: list[Candidate] = []
    others: list[Standing] = []
    for name in (*SIMPLEST_FIRST, *NOT_COMPARED):
        try:
            run = build(with_method(config, name), problem)
            suits(run, run.surrogate())
        except (UserError, ValueError) as error:
            others.append(Standing(name, False, False, _sentence(error)))
            continue
        if name in NOT_COMPARED:
            others.append(Standing(name, True, False, NOT_COMPARED[name]))
        elif name != NOTHING:
            within = PARTS.get(name)
            made = Candidate(name, partial(_fitted, run), run.objective, run.search, within)
            candidates.append(made)
    return candidates, others


def fits(problem: Problem, name: str) -> None:
    """Refuses a method that cannot decide for a problem; nothing is fitted.

    Args:
        problem: A problem of kind ``rehearse``.

    Raises:
        UserError: if it cannot be built for the task and the rows.
    """
    run = build(with_method(composed("own_problem"), name), problem)
    suits(run, run.surrogate())


def wished(problem: Problem) -> str | None:
    """The method that a problem file names; None if it names none.

    Raises:
        UserError: if there is no such method for its question.
    """
    found = problem.facts().method
    if found is None:
        return None
    if decides_for(found, problem.kind):
        task = problem.question()
        weighed = isinstance(task, RehearsalTask) and task.worth is not None and task.costs
        if weighed and found != AUTO and not capabilities(found).costs:
            raise UserError(
                f"{found} does not look for the largest probability of a desired outcome, so that costs "
                "cannot be weighed against worth by it",
                "method",
                "Leave worth out, so that costs are told and do not count, or name another method, such as "
                "cme_stack or care",
            )
        return found
    known = methods(problem.kind)
    raise UserError(
        f"there is no method {found!r} for {_ASKED[problem.kind]}",
        "method",
        did_you_mean(found, known) or f"Choose from {', '.join(sorted(known))}",
    )


def _fitted(run: Run, table: Table) -> Surrogate:
    return fit(run.surrogate(), table)


def _sentence(error: Exception) -> str:
    """What is wrong, without what to do about it."""
    text = error.what if isinstance(error, UserError) else str(error)
    return " ".join(text.split()).rstrip(".")
