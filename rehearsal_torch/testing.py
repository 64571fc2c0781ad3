"""What the package relies on in surrogates, objectives and searches of cases, checked on classes of your own.

    assert broken_promises(HeatedRoom(), TwoLines, InsideProbability, Grid()) == []

The classes are used together, on one problem, as `decide` uses them: parts that hold all that is learnt, a
fit and a search that depend on nothing random of the process, values of a case that do not depend on the
others, decisions within the bounds of each case, and an answer when the time is up.
"""

import json
from collections.abc import Callable, Iterator
from copy import deepcopy
from typing import Any

import torch

from rehearsal_torch.claims.abstention_rules import ruled
from rehearsal_torch.data.decision import Decision
from rehearsal_torch.data.rehearsal_task import RehearsalTask
from rehearsal_torch.data.trainable_part import Solved, Trained
from rehearsal_torch.objectives.objective import AlterationObjective, Candidates, objective_for
from rehearsal_torch.problems.problem import RehearsalProblem
from rehearsal_torch.search.search import BatchSearch
from rehearsal_torch.surrogates.rehearsal_surrogate import RehearsalSurrogate
from rehearsal_torch.training.gradient_descent import Descent
from rehearsal_torch.training.surrogate_fit import fit

CASES, ROUNDING = 3, 1e-8


def broken_promises(
    problem: RehearsalProblem,
    surrogate: Callable[[RehearsalTask], RehearsalSurrogate],
    objective: Callable[..., AlterationObjective],
    search: BatchSearch[Any],
    trainer: Descent | None = None,
) -> list[str]:
    """A sentence for each promise that a method of cases breaks; empty if it keeps all that can be checked.

    What raises is not caught: the traceback shows where. Numbers are not judged: compare decisions with the
    truth of a world.

    Args:
        problem: Rows to learn from, and at least two cases.
        surrogate: Builds an unfitted surrogate of a task, as a class does.
        objective: The class of the objectives, or a partial of it.
        trainer: For parts that are trained by gradients.
    """
    table, task = problem.observations(), problem.task
    fitted = fit(surrogate(task), table, trainer)
    broken = [*_of_parts(surrogate(task), table)]
    again = fit(surrogate(task), table, trainer)
    restored = surrogate(task)
    restored.load_state_dict(fitted.state_dict())
    broken += [f"surrogate: {fault}" for fault in fitted.faults()]
    if fitted.question() is None or not set(fitted.used()) <= {
        *("graph", "actions", "context", "outcomes", "region", "candidates", "levels", "codings")
    }:
        broken.append("surrogate: question() is the task, and used() names fields that the fit depends on")
    cases = [problem.case(index) for index in range(min(CASES, problem.count()))]
    built = [objective_for(objective, model, cases) for model in (fitted, again, restored)]
    if not all(isinstance(each, Candidates) for each in built):
        return [*broken, "objective: for_cases gives Candidates, one AlterationObjective for each set"]
    singles = [objective_for(objective, fitted, [case]) for case in cases]
    broken += _of_objectives(built, singles)
    return broken + list(_of_search(search, built[0], singles))


def _of_parts(unfitted: RehearsalSurrogate, table: Any) -> Iterator[str]:
    modules = {id(module) for module in unfitted.modules()}
    for number, (part, examples) in enumerate(unfitted.parts(table), 1):
        label = f"surrogate: part {number}, {type(part).__name__},"
        if not isinstance(part, Solved | Trained):
            yield f"{label} is neither Solved nor Trained"
            return
        if id(part) not in modules:
            yield f"{label} is no submodule, so that a checkpoint loses it: assign it to self in __init__"
        if not examples or len({len(example) for example in examples}) != 1:
            yield f"{label} has no examples, or some of different lengths"
            return
        if not isinstance(part, Solved):
            return
        part.solve(*examples)


def _of_objectives(built: list[Candidates[Any]], singles: list[Candidates[Any]]) -> Iterator[str]:
    for place, whole in enumerate(built[0].whole):
        label, size = f"objective: {whole.label()}:", (len(whole.cases), len(whole.names))
        starts = whole.starts(4)
        if starts.shape[-1:] != size[1:]:
            yield f"{label} starts(4) has the shape {tuple(starts.shape)}; expected (4, {size[0]}, {size[1]})"
            continue
        unit = torch.linspace(0, 1, 4, dtype=torch.float64).reshape(-1, 1, 1)
        actions = whole.project(whole.lower + unit * (whole.upper - whole.lower))
        state = torch.get_rng_state()
        values = whole(actions)
        if not torch.equal(state, torch.get_rng_state()):
            yield f"{label} values change the random state: draw from a torch.Generator of their own"
        if values.shape != (4, size[0]) or not bool(values.isfinite().all()):
            shape = tuple(values.shape)
            yield f"{label} values of actions (4, {size[0]}, {size[1]}) are {shape}, or not finite"
            continue
        for which, words in ((1, "a second fit has other values"), (2, "a loaded state has other values")):
            if not torch.allclose(values, built[which].whole[place](actions), rtol=ROUNDING, atol=ROUNDING):
                yield f"{label} {words}: keep all that is learnt in buffers, and draw by a seed"
        alone = [single.whole[place](actions[:, [row]]) for row, single in enumerate(singles)]
        if not torch.allclose(values, torch.cat(alone, -1), rtol=1e-6, atol=1e-6):
            yield f"{label} the value of a case depends on the cases beside it"
        appraisals = whole.appraise(actions[0])
        if len(appraisals) != size[0]:
            yield f"{label} appraise gives {len(appraisals)} appraisals of {size[0]} cases"


def _of_search(
    search: BatchSearch[Any], objective: Candidates[Any], singles: list[Candidates[Any]]
) -> Iterator[str]:
    if search.kind != "rehearse":
        yield f'search: its kind is {search.kind!r}; expected "rehearse"'
    state = torch.get_rng_state()
    decisions = _decided(search, objective)
    if not torch.equal(state, torch.get_rng_state()) and not search.draws:
        yield "search: it changes the random state, and says by draws = False that it does not"
    if len(decisions) != len(objective.cases):
        yield f"search: {len(decisions)} decisions of {len(objective.cases)} cases"
        return
    if _plain(_decided(search, objective)) != _plain(decisions):
        yield "search: the same question has another answer the second time"
    for case, decision, single in zip(objective.cases, decisions, singles, strict=True):
        try:
            case.check(decision.alteration)
            json.dumps(decision.to_dict(), allow_nan=False)
        except (ValueError, TypeError) as error:
            yield f"search: case {case.identity}: {error}"
        (alone,) = _decided(search, single)
        if (alone.alteration is None) != (decision.alteration is None):
            yield f"search: the decision for case {case.identity} depends on the cases beside it"
    ended = deepcopy(search)
    ended.budget_s = 1e-9
    if len(_decided(ended, objective)) != len(decisions):
        yield "search: no answer for each case when budget_s is over: check a Budget between steps"


def _decided(search: BatchSearch[Any], objective: Candidates[Any]) -> list[Decision]:
    return ruled(objective, search.batch_search(objective), search.declines)


def _plain(decisions: list[Decision]) -> list[str]:
    return [json.dumps(decision.to_dict(), sort_keys=True, default=str) for decision in decisions]
