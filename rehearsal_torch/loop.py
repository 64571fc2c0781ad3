"""The loop that every method runs through.

    situation = problem.situation(index)
    decision  = search(objective(surrogate, situation))
    yield Round(index, situation, decision, certificate, score)

and, where the problem is a world that answers and the surrogate is to learn from it,

    answer    = world.respond(situation, decision)
    table     = table + answer
    surrogate = fit(surrogate, table)

A loop that learns and was interrupted goes on from the answers that were recorded: nothing is decided or
asked twice.

Without learning, rounds do not depend on each other, so several processes may share them. Whatever is drawn
at random in a round comes from (seed, index) alone: the rounds are equal whichever process makes them, and in
whichever order.

A search that answers for many situations is handed them in groups; groups are cut from the whole list of
indices, so that a run that is taken up again meets the same groups.

Source: Qin et al. (2023), Alg. 1 (decide, act, update); Tsirtsis and Gomez-Rodriguez (2023), Sec. 5 (one
episode after the other).
"""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from typing import Any
from uuid import uuid4

import torch

from rehearsal_torch.data.decision import Decision, RehearsalCase
from rehearsal_torch.data.finite import in_numbers
from rehearsal_torch.data.table import Table
from rehearsal_torch.objectives.candidates import Candidates
from rehearsal_torch.objectives.counterfactual_return import CounterfactualReturn
from rehearsal_torch.objectives.objective import Objective
from rehearsal_torch.problems.problem import Problem, World
from rehearsal_torch.round_line import Round
from rehearsal_torch.search.guard import guarded, guarded_sequence
from rehearsal_torch.search.search import BatchSearch, Search
from rehearsal_torch.seeding import paired_seed
from rehearsal_torch.surrogates.surrogate import Surrogate
from rehearsal_torch.training.descent import Descent
from rehearsal_torch.training.fit import fit
from rehearsal_torch.workers import end_with

Certify = Callable[[Surrogate, Any, Decision], Mapping[str, float]]


@dataclass(frozen=True)
class _Method:
    """What makes a round of an index."""

    problem: Problem
    surrogate: Surrogate
    objective: Callable[..., Objective]
    search: Search[Any]
    certify: Certify | None
    seed: int

    def rounds(self, indices: Sequence[int]) -> list[Round]:
        """The rounds of situations that are decided together; the same at every call and in every process."""
        cases = [self.problem.case(index) for index in indices]
        with in_numbers("what was learnt"), torch.random.fork_rng(devices=[]):
            torch.manual_seed(paired_seed(self.seed, indices[0]))
            if isinstance(self.search, BatchSearch):
                objective = self.objective(self.surrogate, cases)
                decisions = self.search.batch_search(objective)
            else:
                maker = self.objective.func if isinstance(self.objective, partial) else self.objective
                several = isinstance(maker, type) and issubclass(maker, Candidates)
                objective = self.objective(self.surrogate, cases if several else cases[0])
                decisions = [self.search(objective)]
            if len(decisions) != len(cases):
                raise ValueError(
                    f"{type(self.search).__name__} gave {len(decisions)} decisions: expected one for each of "
                    f"{len(cases)} situations"
                )
            for case, decision in zip(cases, decisions, strict=True):
                if isinstance(case, RehearsalCase):
                    case.check(decision.alteration)
            # A search of somebody else's may not have asked.
            trajectories: list[dict[str, Any]] = [{} for _ in decisions]
            if isinstance(objective, Candidates):
                decisions = guarded(objective, decisions, self.search.declines)
            else:
                if isinstance(objective, CounterfactualReturn):
                    decisions = [
                        guarded_sequence(objective, decision, self.search.declines) for decision in decisions
                    ]
                trajectories = [objective.trajectory_record(decision) for decision in decisions]
            certificates = [
                None if self.certify is None else self.certify(self.surrogate, objective, decision)
                for decision in decisions
            ]
            scores = [
                self.problem.score(case, decision) for case, decision in zip(cases, decisions, strict=True)
            ]
        rows = zip(indices, cases, decisions, certificates, scores, strict=True)
        return [
            Round(*row, trajectory=each, kind=self.problem.kind)
            for row, each in zip(rows, trajectories, strict=True)
        ]

    def batch_size(self, indices: Sequence[int]) -> list[Sequence[int]]:
        """The indices in groups that are decided together, in order."""
        size = self.search.batch_size if isinstance(self.search, BatchSearch) else 1
        return [indices[start : start + size] for start in range(0, len(indices), size)]


def rounds(
    problem: Problem,
    surrogate: Surrogate,
    objective: Callable[..., Objective],
    search: Search[Any],
    indices: Sequence[int] | None = None,
    *,
    learn: bool = False,
    trainer: Descent | None = None,
    certify: Certify | None = None,
    seed: int = 0,
    workers: int = 1,
    begin: int = 0,
    answers: Sequence[Table] = (),
) -> Iterator[Round]:
    """Decides in one situation after the other.

    Args:
        problem: Where situations come from; a `World` where the surrogate is to learn.
        surrogate: What has been learnt so far; refitted in place where it is to learn.
        objective: Makes the objective of (surrogate, situation).
        search: Finds the action.
        indices: Which situations, in which order; None for all.
        learn: Asks the world what follows each decision, and fits the surrogate again.
        trainer: How parts without a solution of their own are fitted again.
        certify: Says of (surrogate, objective, decision) how sure we are.
        seed: Decides everything random, together with the situation's index.
        workers: Processes that share the rounds, each with one thread.
        begin: Leaves out the first so many of `indices`, which an earlier run has decided. Situations that
            are decided together stay together, so that the rest comes out as if nothing had been left out.
        answers: Where the surrogate is to learn, what the world said in the rounds that are left out, in
            their order. The surrogate is fitted again after each, as it was then, so that it must be handed
            over as it was before the first of them.

    Yields:
        A round each, in the order of `indices`; with the world's answer where the surrogate is to learn.

    Raises:
        TypeError: if the surrogate is to learn and the problem does not answer.
        ValueError: if the surrogate is to learn with several workers or without an answer for each round left
            out, or there is no worker.
    """
    if workers < 1:
        raise ValueError(f"expected at least 1 worker; got {workers}")
    chosen = range(problem.count()) if indices is None else indices
    method = _Method(problem, surrogate, objective, search, certify, seed)
    if learn:
        if workers > 1 or begin != len(answers):
            message = (
                f"expected workers=1 and, with {len(answers)} answers, begin={len(answers)}; got "
                f"workers={workers} and begin={begin}"
            )
            raise ValueError(f"each round of a loop that learns needs those before: {message}")
        if not isinstance(problem, World):
            raise TypeError(
                f"learning needs a World that answers; got a {type(problem).__name__}: set learn=False"
            )
        # A round that learns is told what speaks against acting, and acts: what it teaches is not in the
        # estimate.
        method = replace(method, search=copy(search))
        method.search.declines = False
        return _learning(method, problem, chosen, trainer, answers)
    groups = method.batch_size(chosen)
    while groups and len(groups[0]) <= begin:
        begin -= len(groups.pop(0))
    if min(workers, len(groups)) > 1:
        made = _shared(method, groups, min(workers, len(groups)))
    else:
        made = (each for group in groups for each in method.rounds(group))
    return islice(made, begin, None)


def _learning(
    method: _Method, world: World, indices: Sequence[int], trainer: Descent | None, answers: Sequence[Table]
) -> Iterator[Round]:
    table = world.observations()
    for answer in answers:
        table = table + answer
        fit(method.surrogate, table, trainer)
    for index in indices[len(answers) :]:
        (each,) = method.rounds([index])
        answer = world.respond(each.case, each.decision)
        yield replace(each, answer=answer, success=world.success(answer), reward=world.reward(answer))
        table = table + answer
        fit(method.surrogate, table, trainer)


def _shared(method: _Method, groups: Sequence[Sequence[int]], workers: int) -> Iterator[Round]:
    from joblib import Parallel, delayed

    # The method travels to each process once, not with each round. The token keeps joblib from taking up
    # again processes that hold an earlier state of the same surrogate.
    start = {"initializer": _receive, "initargs": (method, uuid4().hex, os.getpid())}
    share = Parallel(
        n_jobs=workers,
        backend="loky",
        return_as="generator",
        pre_dispatch=f"{4 * workers}",
        batch_size=1,
        **start,
    )
    for made in share(delayed(_rounds)(group) for group in groups):
        yield from made


_received: list[_Method] = []


def _receive(method: _Method, token: str, parent: int) -> None:  # noqa: ARG001
    end_with(parent)
    torch.set_num_threads(1)
    _received[:] = [method]


def _rounds(indices: Sequence[int]) -> list[Round]:
    return _received[0].rounds(indices)
