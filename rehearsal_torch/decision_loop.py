"""The decision loop that every method runs through: one round per case, offline or online.

    case     = problem.case(index)
    decision = search(objective(surrogate, case))
    decision = annotated(context, decision)                 the list of `claims`, in its order
    yield Round(index, case, decision, certificate, score)

and in an online (sequential) run, where the world responds and the surrogate is refitted after each round,

    answer    = world.respond(case, decision)
    table     = table + answer
    surrogate = fit(surrogate, table)

The outcomes are compared with the claims (`estimators.sequential_test`). Where they contradict these, the
world has changed: the next decision says so, and the model is learnt anew from the first observations and the
rows since the contradiction began.

An interrupted online run resumes from the recorded responses, without deciding or querying the world twice.

Offline rounds are independent of each other, so several processes may share them (`task_pool`). All random
draws of a round depend on (seed, index) alone, neither on the process that computes it nor on the order.

Trials whose results are awaited are not proposed again (`search.trials.proposal`).

A batch search (`BatchSearch`) is given the cases in batches. Batches are cut from the whole list of indices,
so that a resumed run meets the same batches.

Source: Qin et al. (2023), Alg. 1 (decide, act, update); Tsirtsis and Gomez-Rodriguez (2023), Sec. 5 (one
episode after the other).
"""

import math
from collections.abc import Callable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import partial, reduce
from itertools import chain, islice, zip_longest
from typing import Any

from rehearsal_torch.certificate import Certify
from rehearsal_torch.claims.abstention_rules import (
    RULES,
    Claims,
    Judged,
    Overturned,
    OverturnedSequences,
    annotated,
)
from rehearsal_torch.claims.claim_context import Annotator, Context
from rehearsal_torch.claims.improvement_test import informed
from rehearsal_torch.data.decision import CHANCE, Decision, RehearsalCase
from rehearsal_torch.data.finding import Finding
from rehearsal_torch.data.non_finite import in_numbers
from rehearsal_torch.data.table import Table
from rehearsal_torch.estimators.sequential_test import ClaimWatch
from rehearsal_torch.objectives.counterfactual_return import trajectory_record
from rehearsal_torch.objectives.objective import objective_for
from rehearsal_torch.objectives.sequence_sensitivity import SequenceOverturning
from rehearsal_torch.problems.problem import Problem, World
from rehearsal_torch.round_record import Round
from rehearsal_torch.search.search import BatchSearch, Search
from rehearsal_torch.seeding import paired_seed, seeded
from rehearsal_torch.surrogates.surrogate import Surrogate
from rehearsal_torch.surrogates.tipping_strength import Overturning, for_question
from rehearsal_torch.task_pool import on_cpu, results
from rehearsal_torch.training.gradient_descent import Descent
from rehearsal_torch.training.surrogate_fit import fit


@dataclass(frozen=True)
class _Method:
    """The parts from which the rounds of any indices are computed."""

    problem: Problem
    surrogate: Surrogate
    objective: Callable[..., Any]
    search: Search[Any]
    certify: Certify | None
    seed: int
    annotators: tuple[Annotator, ...] = RULES

    def rounds(self, indices: Sequence[int]) -> list[Round]:
        """The rounds of one batch of cases; the same at every call and in every process."""
        cases = self.problem.cases(indices)
        with in_numbers("the fitted surrogate"), seeded(paired_seed(self.seed, indices[0])):
            objective, decisions = self._search(cases)
            if len(decisions) != len(cases):
                raise ValueError(
                    f"{type(self.search).__name__} gave {len(decisions)} decisions: expected one for each of "
                    f"{len(cases)} cases"
                )
            for case, decision in zip(cases, decisions, strict=True):
                if isinstance(case, RehearsalCase):
                    case.check(decision.alteration)
            certify = None if self.certify is None else partial(self.certify, self.surrogate, objective)
            context = Context(objective, cases, self.search.declines, certify)
            decisions = annotated(context, decisions, self.annotators)
            certificates = [
                context.certificate(number, decision) for number, decision in enumerate(decisions)
            ]
            scores = list(map(self.problem.score, cases, decisions))
            trajectories = [trajectory_record(objective, decision) for decision in decisions]
        rows = zip(indices, cases, decisions, certificates, scores, strict=True)
        return [
            Round(*row, trajectory=trajectory, kind=self.problem.kind)
            for row, trajectory in zip(rows, trajectories, strict=True)
        ]

    def _search(self, cases: Sequence[Any]) -> tuple[Any, list[Decision]]:
        """The objective of a batch of cases, and the decisions that the search finds."""
        if isinstance(self.search, BatchSearch):
            objective = objective_for(self.objective, self.surrogate, cases)
            return objective, self.search.batch_search(objective)
        if (waiting := self.problem.facts().waiting) is not None:
            # Only trials need BoTorch, which takes as long to load as a table to decide for.
            from rehearsal_torch.search.trials.proposal import decided_beside

            build: Any = self.objective
            model: Any = self.surrogate
            objective, decision = decided_beside(build, self.search, model, cases[0], waiting, self.seed)
            return objective, [decision]
        objective = objective_for(self.objective, self.surrogate, cases, batch=False)
        return objective, [self.search(objective)]

    def batches(self, indices: Sequence[int]) -> list[Sequence[int]]:
        """The indices in batches that are decided jointly, in order."""
        size = self.search.batch_size if isinstance(self.search, BatchSearch) else 1
        return [indices[start : start + size] for start in range(0, len(indices), size)]


def rounds(
    problem: Problem,
    surrogate: Surrogate,
    objective: Callable[..., Any],
    search: Search[Any],
    indices: Sequence[int] | None = None,
    *,
    learn: bool = False,
    trainer: Descent | None = None,
    certify: Certify | None = None,
    claims: Claims | None = None,
    seed: int = 0,
    workers: int = 1,
    begin: int = 0,
    answers: Sequence[Table] = (),
    earlier: Sequence[Decision] = (),
    overturning: Overturning | None = None,
) -> Iterator[Round]:
    """Decides case after case.

    Args:
        problem: Where the cases come from; a `World` for an online run.
        surrogate: The fitted surrogate; refitted in place in an online run.
        objective: A class of objectives, a partial of one with its settings, or a function
            (`objectives.objective.objective_for`).
        indices: Which cases, in which order; None for all.
        learn: Runs online: queries the world after each decision, and refits the surrogate.
        trainer: How parts without a closed-form fit are refitted.
        certify: Returns a certificate for (surrogate, objective, decision); None for no certificates.
        claims: Replaces the claims of the decisions and of no action (`claims`); None keeps the method's own.
        seed: Determines all random draws, together with the case's index.
        workers: Processes that may share the rounds, each with one thread, where the first batch says that it
            pays (`task_pool`); 1 computes them in this process. Above 1, a copy on the CPU decides for a
            model on a GPU; and within ``joblib.parallel_config(backend="dask")``, that cluster computes so
            many batches at a time.
        begin: The number of leading `indices` to skip, which an earlier run has decided.
        answers: For an online run, the world's responses in the skipped rounds, in order. The surrogate is
            refitted after each of them, so it must be passed in its state before the first one.
        earlier: The decisions of the skipped rounds, whose claims are watched; empty watches none of them.
        overturning: What would overturn a recommendation offline, where the problem lacks the observations of
            the fit; None finds it from the problem's observations.

    Yields:
        One round per index, in the order of `indices`.

    Raises:
        TypeError: if the run is online and the problem is not a `World`.
        ValueError: if an online run has several workers, or skips rounds without responses; workers below 1.
        ClusterError: if joblib's context names a backend that cannot share tasks, or a cluster that cannot
            compute them.
    """
    if workers < 1:
        raise ValueError(f"expected at least 1 worker; got {workers}")
    all_indices = range(problem.count()) if indices is None else indices
    # In an online run, decisions choose the actions of further rows: hidden causes do not.
    if learn or problem.kind != "rehearse":
        overturning = None
    elif overturning is None:
        overturning = for_question(surrogate.question(), problem.observations)
    look_back = not learn and problem.kind == "look_back"
    sequence_overturning = SequenceOverturning(surrogate, problem.observations) if look_back else None
    annotators: tuple[Annotator, ...] = (
        *RULES,
        *([] if claims is None else [Judged(claims)]),
        informed,
        *([] if overturning is None else [Overturned(overturning)]),
        *([] if sequence_overturning is None else [OverturnedSequences(sequence_overturning)]),
    )
    method = _Method(problem, surrogate, objective, search, certify, seed, annotators)
    if learn:
        if workers > 1 or begin != len(answers):
            mismatch = (
                f"expected workers=1 and, with {len(answers)} answers, begin={len(answers)}; got "
                f"workers={workers} and begin={begin}"
            )
            raise ValueError(f"each round of an online run needs those before it: {mismatch}")
        if not isinstance(problem, World):
            raise TypeError(
                f"an online run needs a World that responds; got a {type(problem).__name__}: set learn=False"
            )
        # An online round acts despite evidence against it: the estimate lacks the value of the information.
        method = replace(method, search=copy(search))
        method.search.declines = False
        return _online_rounds(method, problem, all_indices, trainer, answers, earlier)
    if workers > 1 and surrogate.device.type != "cpu":
        method = on_cpu(method)
    batches = method.batches(all_indices)
    while batches and len(batches[0]) <= begin:
        begin -= len(batches.pop(0))
    rounds = chain.from_iterable(results(_Method.rounds, method, batches, workers, timed=True))
    return islice(rounds, begin, None)


def _online_rounds(
    method: _Method,
    world: World,
    indices: Sequence[int],
    trainer: Descent | None,
    answers: Sequence[Table],
    earlier: Sequence[Decision],
) -> Iterator[Round]:
    history = _History(world.observations(), len(indices), method.surrogate)
    recorded = zip_longest(answers, earlier[: len(answers)])
    for index, (answer, decision) in zip(indices, recorded, strict=False):
        history.take(answer, world.case(index), decision, world.verdict(answer).success)
        fit(method.surrogate, history.table, trainer)
    for index in indices[len(answers) :]:
        (current,) = method.rounds([index])
        if history.contradicted is not None:
            current = replace(current, decision=current.decision.told([history.contradicted]))
        answer = world.respond(current.case, current.decision)
        verdict = world.verdict(answer)
        yield replace(current, answer=answer, success=verdict.success, reward=verdict.reward)
        history.take(answer, current.case, current.decision, verdict.success)
        fit(method.surrogate, history.table, trainer)


class _History:
    """The rows that an online run has learnt from and not forgotten, with the claims that are watched."""

    def __init__(self, first: Table, rounds: int, surrogate: Surrogate) -> None:
        self.first, self.table, self.answers = first, first, list[Table]()
        self.watch, self.surrogate = ClaimWatch(rounds), surrogate
        # The number of answers before each watched round.
        self.places = list[int]()
        self.contradicted: Finding | None = None

    def take(self, answer: Table, case: Any, decision: Decision | None, success: bool | None) -> None:
        """Adds a round, before the surrogate is fitted to it; forgets rows from before a contradiction."""
        self.contradicted = None
        self.answers.append(answer)
        claim = None
        if decision is not None and success is not None:
            claim = decision.estimate if decision.alteration is not None else decision.baseline
        if decision is not None and claim is not None and claim.of == CHANCE and math.isfinite(claim.point):
            self.places.append(len(self.answers) - 1)
            self.watch.see(claim.point, bool(success), self.surrogate.surprise(case, decision, answer))
        begin = self.watch.begin
        if begin is None:
            self.table = self.table + answer
            return
        claimed, succeeded = self.watch.claimed[begin:], self.watch.succeeded[begin:]
        consequence = "the model is learnt anew from these and the first observations"
        if self.surrogate.tracks:
            consequence, self.table = "the model goes on following the drift", self.table + answer
        else:
            self.answers = self.answers[self.places[begin] :]
            self.table = reduce(Table.__add__, self.answers, self.first)
        self.contradicted = Finding(
            "bad_fit",
            f"outcomes contradict what was claimed of them (of the last {len(claimed)}, {sum(succeeded)} "
            f"desired where {sum(claimed):.1f} were expected): {consequence}",
            {"rounds": len(claimed), "succeeded": sum(succeeded), "claimed": sum(claimed)},
        )
        self.watch, self.places = ClaimWatch(self.watch.rounds), []
