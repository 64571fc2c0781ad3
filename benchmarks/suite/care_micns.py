"""Rows: decisions under a linear Gaussian model, decision=care and decision=micns, beside closed forms.

The world is a chain x -> a -> m -> y with x -> y: one outcome that is to lie in an interval, three candidate
sets ({a}, {m}, {a, m}), 1,000 observations. With `draws=0` the package compares the sets by the plug-in
probability, as the papers do, and chooses as the reference does; by default it draws 48 models from the
posterior, compares the sets by the predictive probability, and gives an interval and a baseline besides.

For growth in d the chain has d variables; the leading term is the inversion of a triangular d x d matrix for
each candidate set, in the reference the solution of a system of d equations. The package keeps the responses
between calls, so that its rows do not show that term.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from benchmarks.linear import CHAIN, Coefficients, drawn, task
from benchmarks.suite.job import Job
from benchmarks.suite.measuring import Contest, Quality
from benchmarks.suite.plain.linear import PlainDecisions, PlainModel, cheapest, most_probable
from rehearsal_torch.data.decision import Decision, RehearsalCase
from rehearsal_torch.data.rehearsal_task import RehearsalTask
from rehearsal_torch.objectives.chance_cost import ChanceCost
from rehearsal_torch.objectives.gaussian_success import GaussianSuccess
from rehearsal_torch.search.alterations.chance_projection import CheapestAlteration
from rehearsal_torch.search.alterations.projected_newton import ProjectionNewton
from rehearsal_torch.surrogates.structural.linear_scm import LinearStructural
from rehearsal_torch.training.fit import fit

CASES, VARIABLES = (1, 20, 1000), (4, 64, 256, 1000)
CHECKED = (
    "ours also checks each decision against graph, ranges and support, writes a trace, and keeps what "
    "follows from the model alone between calls"
)
SAME = "the same closed form: rounding"
DRAWN = (
    "ours maximises the mean over 48 drawn models, theirs the chance under the fitted one: near the optimum "
    "the difference is of second order"
)
SOLVER = "the same projection, which ours ends within 1e-8 of the cost"
MORE = (
    "as below; ours also gives the predictive probability, its interval and the baseline, and keeps the "
    "models that it draws between calls"
)


def jobs(small: bool = False) -> Iterator[Job]:
    """The rows; small ones for a test."""
    cases, variables = ((1, 5), (4, 6)) if small else (CASES, VARIABLES)
    peer = "closed form, NumPy"
    for count in cases:
        yield Job("care", peer, "cases", count, partial(care, count, 48), MORE, 1)
        yield Job("care, plug-in", peer, "cases", count, partial(care, count, 0), CHECKED, 1)
        yield Job("micns", peer, "cases", count, partial(micns, count, 48), MORE, 1)
        yield Job("micns, plug-in", peer, "cases", count, partial(micns, count, 0), CHECKED, 1)
    for width in variables:
        yield Job("care, plug-in, 20 cases", peer, "d", width, partial(care, 20, 0, width), CHECKED, 3)


def world(variables: int = 4) -> tuple[RehearsalTask, Coefficients]:
    """The chain with its coefficients."""
    between = [f"m{index}" for index in range(variables - 4)]
    chain: Coefficients = {"x": {}, "a": {"x": 0.8}}
    for last, name in zip(["a", *between], between, strict=False):
        chain[name] = {last: 1.0}
    chain |= {"m": {(["a", *between])[-1]: 1.5}, "y": CHAIN["y"]}
    box = {"a": [-1.0, 1.0], "m": [-1.0, 1.0]}
    return task(chain, ["x"], box, {"y": [1.0, 2.0]}, [["a"], ["m"], ["a", "m"]]), chain


def care(count: int, draws: int, variables: int = 4) -> Contest:
    """The most probable success in so many cases."""
    surrogate, model, truth, cases, contexts = prepared(count, draws, variables)
    ours = partial(_decided, surrogate, cases)
    quality = _Judge(model, truth, contexts, draws == 0)
    facts = partial(_operations, ours)
    return Contest(ours, partial(most_probable, model, contexts), quality, facts=facts)


def micns(count: int, draws: int) -> Contest:
    """The cheapest alteration at the chosen level in so many cases."""
    surrogate, model, truth, cases, contexts = prepared(count, draws, 4)
    observed = surrogate.contexts.values.numpy()
    ours = partial(_cheapest, surrogate, cases)
    # Where nothing is feasible, the value is a log-probability, with draws the predictive one.
    tolerance, because = (2e-4, DRAWN) if draws else (1e-7, SOLVER)

    def quality(found: list[Decision], expected: PlainDecisions) -> Quality:
        values = float(np.mean([decision.value for decision in found])), float(expected.values.mean())
        return Quality("mean of -cost, log P if infeasible", *values, tolerance, because)

    def facts(found: list[Decision], expected: PlainDecisions) -> dict[str, float]:
        judged = _Judge(model, truth, contexts, False)(found, expected)
        return {"ours_true_p": judged.ours, "theirs_true_p": judged.theirs} | _operations(ours)

    return Contest(ours, partial(cheapest, model, contexts, observed), quality, facts=facts)


def prepared(
    count: int, draws: int, variables: int
) -> tuple[LinearStructural, PlainModel, PlainModel, list[RehearsalCase], np.ndarray]:
    """The fitted surrogate, the same as arrays, the true world as arrays, cases and their contexts."""
    made, coefficients = world(variables)
    surrogate = fit(LinearStructural(made, draws=draws), drawn(made, coefficients, 1000, 0))
    rows = drawn(made, coefficients, count, 1).columns(made.context)
    cases = [
        RehearsalCase(str(index), dict(zip(made.context, row, strict=True)), made.box.bounds())
        for index, row in enumerate(rows)
    ]
    linear = surrogate.linear_model()
    model = _plain(made, linear.weights, linear.intercept, linear.covariance.diagonal(), linear.names)
    names = made.graph.names
    weights = torch.zeros(len(names), len(names), dtype=torch.float64)
    for child, parents in coefficients.items():
        for parent, weight in parents.items():
            weights[names.index(parent), names.index(child)] = weight
    noise = torch.tensor([0.3 if coefficients[name] else 0.2 for name in names], dtype=torch.float64) ** 2
    truth = _plain(made, weights, torch.zeros(len(names), dtype=torch.float64), noise, names)
    return surrogate, model, truth, cases, rows.numpy()


def _plain(
    made: RehearsalTask,
    weights: torch.Tensor,
    intercept: torch.Tensor,
    variance: torch.Tensor,
    names: tuple[str, ...],
) -> PlainModel:
    arrays = (each.detach().numpy().copy() for each in (weights, intercept, variance))
    return PlainModel(names, *arrays, made.context, "y", (1.0, 2.0), made.box.bounds(), made.candidates)


def _decided(surrogate: LinearStructural, cases: Sequence[RehearsalCase]) -> list[Decision]:
    return ProjectionNewton().batch_search(GaussianSuccess.for_cases(surrogate, cases))


def _cheapest(surrogate: LinearStructural, cases: Sequence[RehearsalCase]) -> list[Decision]:
    return CheapestAlteration(ProjectionNewton()).batch_search(ChanceCost.for_cases(surrogate, cases))


class _Counting(TorchDispatchMode):
    """Counts the tensor operations that run within it."""

    count = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.count += 1
        return func(*args, **(kwargs or {}))


def _operations(ours: Callable[[], object], *_: object) -> dict[str, float]:
    """How many operations of torch one call takes, whatever their size."""
    with _Counting() as counting:
        ours()
    return {"ours_operations": counting.count}


class _Judge:
    """The mean probability of success of decisions, in the model (`plug_in`) or in the true world."""

    def __init__(self, model: PlainModel, truth: PlainModel, contexts: np.ndarray, plug_in: bool) -> None:
        self.by, self.contexts, self.plug_in = model if plug_in else truth, contexts, plug_in

    def __call__(self, found: list[Decision], expected: PlainDecisions) -> Quality:
        ours = [
            self.reached(index, decision.alteration.names, decision.alteration.values.numpy())
            if decision.alteration is not None
            else self.reached(index, (), np.zeros(0))
            for index, decision in enumerate(found)
        ]
        theirs = [
            self.reached(index, self.by.sets[which], expected.actions[which][index])
            for index, which in enumerate(expected.which)
        ]
        name = "mean P of the fitted model" if self.plug_in else "mean true P"
        tolerance, because = (1e-9, SAME) if self.plug_in else (5e-4, DRAWN)
        return Quality(name, float(np.mean(ours)), float(np.mean(theirs)), tolerance, because)

    def reached(self, index: int, names: Sequence[str], values: np.ndarray) -> float:
        """The probability after one alteration."""
        by_context, constant, effect, scale = self.by.effect(names)
        mean = self.contexts[index] @ by_context + constant + values @ effect
        return float(self.by.success(np.asarray(mean), scale))
