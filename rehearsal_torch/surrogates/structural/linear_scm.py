"""Linear structural models: an equation for every clique of a rehearsal graph, fitted by least squares.

Every maximal clique has an equation given its parents, and one more for each set of its members that may be
altered without the rest: these become further parents of the others, which keep their mutual dependence, with
separate parameters. Each equation is fitted on the rows in which its members were not altered; the joint
distribution under any alteration follows in closed form (see `linear_model`).

Source: Qin et al. (2023), Sec. 2 (alteration graphs), Def. 4 and Sec. 4.1; Qin et al. (2025b), Sec. 4.2.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, TypeVar

import torch
from torch import Tensor

from rehearsal_torch.data.codings.one_hot_actions import candidate_sets
from rehearsal_torch.data.finding import Finding
from rehearsal_torch.data.rehearsal_task import RehearsalTask
from rehearsal_torch.data.size_limits import bounded
from rehearsal_torch.data.table import Table
from rehearsal_torch.data.trainable_part import Solved
from rehearsal_torch.mechanisms.linear_gaussian import AffineMechanism, LinearGaussian
from rehearsal_torch.seeding import spaced_generator
from rehearsal_torch.spaces.box import Box
from rehearsal_torch.surrogates.outcome_draws import KeptDraws
from rehearsal_torch.surrogates.rehearsal_surrogate import RehearsalSurrogate
from rehearsal_torch.surrogates.structural.lack_of_fit import LackOfFit
from rehearsal_torch.surrogates.structural.linear_model import AffineResponse, LinearModel
from rehearsal_torch.surrogates.surrogate import Fits, Modules


@dataclass(frozen=True)
class Equation:
    """A structural equation of several variables."""

    clique: tuple[str, ...]
    altered: tuple[str, ...]  # Its members that are set by intervention; may be empty
    members: tuple[str, ...]  # The c members that the equation determines
    parents: tuple[str, ...]  # The p variables that it depends on: the clique's parents, then `altered`

    @property
    def widths(self) -> tuple[int, int]:
        """p and c."""
        return len(self.parents), len(self.members)

    def rows(self, table: Table) -> Table:
        """The training rows, with unaltered members; only those with `altered` set, if ten per parameter."""
        unaltered = table.unaltered(self.members)
        if not self.altered:
            return unaltered
        columns = [table.names.index(name) for name in self.altered]
        exact = unaltered.altered[:, columns].all(-1)
        if int(exact.sum()) < 10 * (len(self.parents) + 1):
            return unaltered
        return unaltered.rows(exact)


def of_clique(clique: tuple[str, ...], parents: Sequence[str], task: RehearsalTask) -> Iterator[Equation]:
    """A clique's equations: its own, and one for each set that may be altered without the rest."""
    yield Equation(clique, (), clique, tuple(parents))
    free = [name for name in clique if name in task.box.names]
    for altered in candidate_sets(free, task.codings, len(clique) - 1):
        rest = tuple(name for name in clique if name not in altered)
        yield Equation(clique, altered, rest, (*parents, *altered))


def holding(equations: Iterable[Equation], altered: Sequence[str], box: Box | None = None) -> list[Equation]:
    """The equations that hold when `altered` is set; ValueError if a variable is not in the box."""
    if box is not None and (unknown := [name for name in altered if name not in box.names]):
        raise ValueError(f"{unknown} may not be altered; actionable are {list(box.names)}")
    cut = set(altered)
    return [equation for equation in equations if set(equation.altered) == cut & set(equation.clique)]


def rows_before_alteration(touched: Tensor, initial: int | None) -> int:
    """The number of rows before any alteration (n, d), at most `initial`; ValueError if fewer than 3."""
    altered = touched.any(-1).nonzero()
    first = int(altered[0]) if len(altered) else len(touched)
    first = first if initial is None else min(initial, first)
    if first < 3:
        raise ValueError(
            f"expected at least 3 rows before the first altered one; got {first}: begin with observations"
        )
    return first


def equations(task: RehearsalTask) -> tuple[Equation, ...]:
    """Every equation that an alteration may require; ValueError if context and actions share a clique."""
    task.graph.require_cliques("a linear equation for every clique")
    required = list[Equation]()
    for clique in task.graph.cliques:
        free = [name for name in clique if name in task.box.names]
        observed = [name for name in clique if name in task.context]
        if free and observed:
            conflict = f"context {observed} and actionable {free} are in one clique"
            remedy = "an action would change the observed context; take one out of the clique"
            raise ValueError(f"{conflict}: {remedy}")
        required += of_clique(clique, task.graph.parents(clique), task)
    return tuple(required)


MAX_CONTEXTS = 64


class ObservedContexts(Solved):
    """The contexts of the first `MAX_CONTEXTS` rows, for choices before the context is observed."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.register_fitted(values=("n", width))

    def solve(self, *examples: Tensor) -> None:
        """Stores the first rows of contexts (n, |X|)."""
        self.values = examples[0][:MAX_CONTEXTS].detach().clone().to(torch.float64)


# The estimated response, and that of posterior samples (leading dimension) or None.
Responses = tuple[AffineResponse, AffineResponse | None]
Kept = TypeVar("Kept")


class LinearSurrogate(RehearsalSurrogate, ABC):
    """A linear Gaussian model of a task's variables under every alteration."""

    def __init__(self, task: RehearsalTask) -> None:
        super().__init__(task)
        self.equations = equations(self.task)
        self.contexts = ObservedContexts(len(self.task.context))
        self.lack_of_fit = LackOfFit(self.task, self.equations, self.overlap.graphs)

    @abstractmethod
    def estimate(self, equation: Equation) -> AffineMechanism:
        """The estimated mechanism of an equation: weights (p, c)."""

    @abstractmethod
    def drawn(self, equation: Equation) -> AffineMechanism | None:
        """Posterior samples of a mechanism, weights (draws, p, c), the same at every call; or None."""

    def misfit(self) -> Finding | None:
        """The lack of fit of the equations."""
        return self.lack_of_fit.finding(self.task.region, lambda: self.response(()))

    def linear_model(self, altered: Sequence[str] = ()) -> LinearModel:
        """The estimated model under an intervention on `altered`."""
        self.require_fitted()
        return self._assemble(altered, [self.estimate(equation) for equation in self.under(altered)])

    def linear_models_of(self, sets: Iterable[Sequence[str]]) -> list[LinearModel | None]:
        """Posterior samples of the model under each set, every equation drawn once; None without any."""
        self.require_fitted()
        drawn, models = dict[Equation, AffineMechanism | None](), list[LinearModel | None]()
        for altered in sets:
            active = self.under(altered)
            drawn |= {equation: self.drawn(equation) for equation in active if equation not in drawn}
            mechanisms = [mechanism for equation in active if (mechanism := drawn[equation]) is not None]
            models.append(self._assemble(altered, mechanisms) if len(mechanisms) == len(active) else None)
        return models

    def responses_of(self, sets: Sequence[Sequence[str]]) -> list[Responses]:
        """The outcomes' response to context, action and noise for several sets of altered variables."""
        variables, models = (self.task.context, self.task.outcomes), self.linear_models_of(sets)
        return [
            (self.response(names), None if model is None else model.response(*variables))
            for names, model in zip(sets, models, strict=True)
        ]

    def kept(self, key: Hashable, make: Callable[[], Kept]) -> Kept:  # noqa: ARG002
        """A result of the fit and the task alone, which a surrogate may cache; computed by default."""
        return make()

    def under(self, altered: Sequence[str]) -> list[Equation]:
        """The equations that hold when `altered` is set; ValueError if one may not be altered."""
        return holding(self.equations, altered, self.task.box)

    def response(self, altered: Sequence[str] = ()) -> AffineResponse:
        """The outcomes as a function of the context, the altered variables and noise."""
        return self.linear_model(altered).response(self.task.context, self.task.outcomes)

    def _assemble(self, altered: Sequence[str], mechanisms: Sequence[AffineMechanism]) -> LinearModel:
        # Parents before children: altered members of a clique precede the others.
        cliques = (sorted(clique, key=lambda name: name not in altered) for clique in self.task.graph.cliques)
        order = tuple(chain.from_iterable(cliques))
        index_of = {name: index for index, name in enumerate(order)}
        b, width = mechanisms[0].intercept, len(order)
        intercept = b.new_zeros(*b.shape[:-1], width)
        weights, covariance = (b.new_zeros(*intercept.shape, width) for _ in range(2))
        for equation, mechanism in zip(self.under(altered), mechanisms, strict=True):
            # The members that are not altered follow each other.
            first = index_of[equation.members[0]]
            span = slice(first, first + len(equation.members))
            for row, parent in enumerate(equation.parents):
                weights[..., index_of[parent], span] = mechanism.weights[..., row, :]
            intercept[..., span] = mechanism.intercept
            covariance[..., span, span] = mechanism.covariance
        return LinearModel(order, tuple(altered), weights, intercept, covariance)


MAX_DRAWS = 100_000
KEPT_CELLS = 2_000_000  # 16 MB, cached between cases


class LinearStructural(LinearSurrogate):
    """A linear Gaussian mechanism for every equation. ValueError if the number of draws is negative.

    Args:
        task: The roles of the variables; plain data or a RehearsalTask.
        draws: Number of posterior samples of the parameters (epistemic uncertainty); 0 for none.
        seed: Seed of the samples.
    """

    has_responses = True

    def __init__(self, task: RehearsalTask, draws: int = 48, seed: int = 0) -> None:
        super().__init__(task)
        if draws < 0:
            raise ValueError(f"expected draws >= 0; got {draws}")
        bounded("draws", draws, MAX_DRAWS, 0)
        self.draws, self.seed = draws, seed
        self._kept: KeptDraws[Any] = KeptDraws(KEPT_CELLS)
        self._places = {equation: index for index, equation in enumerate(self.equations)}
        self.mechanisms = Modules[LinearGaussian](LinearGaussian(*eq.widths) for eq in self.equations)

    def parts(self, table: Table) -> Fits:
        """The overlap; every equation with its rows; the lack of fit; then the observed contexts."""
        self.task.check(table)
        yield self.overlap, self.overlap.examples(table)
        for equation in self.equations:
            rows = equation.rows(table)
            yield self.mechanism(equation), (rows.columns(equation.parents), rows.columns(equation.members))
        yield self.lack_of_fit, self.lack_of_fit.examples(table)
        yield self.contexts, (table.columns(self.task.context),)

    def mechanism(self, equation: Equation) -> LinearGaussian:
        """The mechanism of an equation."""
        return self.mechanisms[self._places[equation]]

    def estimate(self, equation: Equation) -> AffineMechanism:
        """Least squares, weights (p, c)."""
        return self.mechanism(equation).estimate()

    def drawn(self, equation: Equation) -> AffineMechanism | None:
        """Posterior samples (draws, ...), which depend on the seed and the equation's index alone."""
        return self._sampled(equation, self.draws, self.seed) if self.draws else None

    def _sampled(self, equation: Equation, count: int, seed: int) -> AffineMechanism:
        return self.mechanism(equation).posterior(count, spaced_generator(seed, self._places[equation]))

    def kept(self, key: Hashable, make: Callable[[], Kept]) -> Kept:
        """Cached until the model changes; `cells` is an upper bound, at most 6 d numbers of an outcome."""
        task, sets = self.task, len(self.task.candidates) + 1
        cells = 6 * len(task.graph.names) * len(task.outcomes) * (self.draws + 1) * sets
        buffers = (mechanism._buffers.values() for mechanism in self.mechanisms)
        source = [tensor for tensor in chain.from_iterable(buffers) if tensor is not None]
        value: Kept = self._kept.get((key, self.draws, self.seed), source, cells, make)
        return value

    def responses(self, altered: Sequence[str], count: int, seed: int = 0) -> AffineResponse | None:
        """Independent of `draws`."""
        self.require_fitted()
        samples = [self._sampled(equation, count, seed) for equation in self.under(altered)]
        return self._assemble(altered, samples).response(self.task.context, self.task.outcomes)
