"""Rehearsal surrogates: the base class of all models of a rehearsal task.

Besides its own parts, such a surrogate stores where the observations lie (`Overlap`), so that extrapolation
can be reported with every answer.

Source: Du et al. (2026), Sec. 2.1; Qin et al. (2023), Sec. 2 (the task).

Overlap: whether a decision lies in the region covered by the observations.

A model predicts everywhere, but the observations support only part of the space. With every context variable
and action in units of its standard deviation over the n rows,

    d_5(x, a) = distance from (x, a) to its 5th nearest row,

a decision is an extrapolation if d_5 exceeds the 97.5th percentile of the rows' own d_5 (each row without
itself): the largest of .99, .975, .95 and .9 at which fewer than 3 % of the decisions in three simulated
worlds (Non-Syn2, Lin-Syn1, the loan; seeds 50 to 54) claimed .3 too much without being told. The distance is
Euclidean with equal weight on all coordinates: under a metric that was fitted to the outcome, a coordinate
that the fit ignores would never count as far.

Two further diagnostics: the observed range of each variable; and, for actions that by the graph cannot affect
any outcome, whether the observations contradict the graph.

Source: Loftsgaarden and Quesenberry (1965) (nearest-neighbour densities); Ramaswamy et al. (2000) (distance
to the k-th neighbour as an outlier score).
"""

from abc import ABC
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from scipy.spatial import cKDTree
from torch import Tensor

from rehearsal_torch.data.decision import Decision
from rehearsal_torch.data.finding import Finding
from rehearsal_torch.data.graph_check import contradictions, dependence_given
from rehearsal_torch.data.records import positions
from rehearsal_torch.data.rehearsal_task import RehearsalTask
from rehearsal_torch.data.scaling import Standardise
from rehearsal_torch.data.table import Table, evenly
from rehearsal_torch.data.task_compatibility import Kind, Question
from rehearsal_torch.data.trainable_part import Sizes, Solved
from rehearsal_torch.graphs.mixed_graph import RehearsalGraph
from rehearsal_torch.graphs.separation import MAX_POINTS, Adjustment, adjustment, reaches
from rehearsal_torch.spaces.box import setting_text
from rehearsal_torch.surrogates.outcome_draws import MODELS, OutcomeDraws, of_response
from rehearsal_torch.surrogates.structural.linear_model import AffineResponse
from rehearsal_torch.surrogates.surrogate import Surrogate

NEIGHBOURS, SHARE = 5, 0.975
# Rounding of distances, in standard deviations: of equal points they are roots of rounding errors of squares.
ROUNDING = 1e-6


class Overlap(Solved):
    """Ranges and nearest-neighbour distances of the rows that a rehearsal surrogate was fitted to, of which
    at most `max_points` are stored, evenly spaced; and what they say of its candidate graphs.
    """

    # A model with user-supplied parameters has no rows: it can be queried, without overlap diagnostics.
    needed = False

    def __init__(self, task: RehearsalTask, graphs: Sequence[RehearsalGraph], max_points: int = 2000) -> None:
        super().__init__()
        self.task, self.graphs, self.max_points = task, tuple(graphs), max_points
        self.names = (*task.context, *task.box.names)
        self.unlinked = tuple(
            name for name in task.box.names if not reaches(self.graphs, (name,), task.outcomes)
        )
        width = len(self.names)
        self.register_fitted(location=(width,), scale=(width,), lowest=(width,), highest=(width,))
        self.register_fitted(rows=("n", width), p_values=(len(self.unlinked),))
        # Infinite if there are too few rows.
        self.register_fitted("limits", finite=False)
        self._trees: tuple[tuple[object, ...], dict[tuple[str, ...], cKDTree]] | None = None

    @property
    def known(self) -> bool:
        """Whether there are enough rows for distances."""
        return len(self.rows) > NEIGHBOURS

    def examples(self, table: Table) -> tuple[Tensor, ...]:
        """The examples of `solve`: the columns of all variables, in the graph's order, and the places."""
        places = () if table.places is None else (table.places,)
        return table.columns(self.task.graph.names), *places

    def solve(self, *examples: Tensor) -> None:
        """Fits to all variables (n, d), in the graph's order and in units, and where each row was recorded
        (n,), if they stand in another order; of many rows, to some.
        """
        whole = examples[0].detach().to(torch.float64)
        recorded = whole[examples[1].argsort()] if len(examples) > 1 else whole
        some = recorded[evenly(len(recorded), MAX_POINTS, recorded.device)]
        tested = Table.observed(self.task.graph.names, some).records()
        self.p_values = whole.new_tensor(
            [dependence_given(tested, self.task, name) for name in self.unlinked]
        )
        values = whole[:, positions(self.task.graph.names, self.names)]
        spread = values.std(0, correction=0)
        self.location, self.scale = values.mean(0), torch.where(spread > 0, spread, torch.ones_like(spread))
        self.lowest, self.highest = values.aminmax(dim=0)
        kept = values[evenly(len(values), self.max_points, values.device)]
        self.rows = (kept - self.location) / self.scale
        self._limit()

    def sizes(self) -> Sizes:
        """Those that do not depend on the task's candidate sets, and a limit for each of these."""
        return {**super().sizes(), "limits": (len(self.task.candidates),)}

    def faults(self) -> list[str]:
        """Sizes, and limits that are no distances; infinite ones are valid if there are too few rows."""
        faults = super().faults()
        invalid = self.limits.isnan() | (self.limits < 0) | (self.limits.isinf() & self.known)
        return faults or (
            [f"limits: expected distances; got {self.limits.tolist()}"] if bool(invalid.any()) else []
        )

    def take(self, task: RehearsalTask) -> None:
        """Takes over a task with other candidate sets, bounds or region, over the same variables."""
        self.task = task
        if self.fitted:
            self._limit()

    def _limit(self) -> None:
        """Sets the limits: the 97.5th percentile of the rows' own distances, for each candidate set."""
        if not self.known:
            self.limits = self.rows.new_full((len(self.task.candidates),), torch.inf)
            return
        own = [
            self._fifth(self.rows[:, self._places(names)], names, NEIGHBOURS + 1)
            for names in self.task.candidates
        ]
        self.limits = torch.stack([torch.quantile(each, SHARE) for each in own])

    def distance(self, names: Sequence[str], contexts: Tensor, actions: Tensor) -> Tensor:
        """d_5, in standard deviations: contexts (B, |X|) and actions (B, k) of `names`, in units -> (B,)."""
        places = self._places(names)
        whole = torch.cat([contexts, actions], -1).to(self.rows)
        return self._fifth((whole - self.location[places]) / self.scale[places], names, NEIGHBOURS)

    def stored(self) -> Tensor:
        """The stored rows of context and all actions, (n, d), in units."""
        return self.rows * self.scale + self.location

    def distances(self, names: Sequence[str], point: Tensor, rows: Tensor | None = None) -> Tensor:
        """The distance of each row of context and all actions (n, d), or of those stored, to a decision with
        `names` altered (|X| + k,), both in units: (n,), in standard deviations.
        """
        places = self._places(names)
        known = self.rows if rows is None else (rows.to(self.rows) - self.location) / self.scale
        at = (point.to(self.rows) - self.location[places]) / self.scale[places]
        return (known[:, places] - at).square().sum(-1).sqrt()

    def leverage(self, names: Sequence[str], contexts: Tensor, actions: Tensor) -> Tensor:
        """The leverage of decisions, contexts (B, |X|) and actions (B, k) in units, in a linear regression
        with intercept on context and action, over the stored rows: (1 + v' R^-1 v) / n, v in standard
        deviations and R the correlations of the rows; it is 1 / n at their mean.
        """
        places = self._places(names)
        rows = self.rows[:, places]
        whole = torch.cat([contexts.to(rows), actions.to(rows)], -1)
        points = (whole - self.location[places]) / self.scale[places]
        inverse = torch.linalg.pinv(rows.mT @ rows / len(rows), rtol=1e-9, hermitian=True)
        return (1 + ((points @ inverse) * points).sum(-1)) / len(rows)

    def limit(self, names: Sequence[str]) -> float:
        """The 97.5th percentile of the rows' own d_5 for a candidate set."""
        return float(self.limits[self.task.candidates.index(tuple(names))])

    def outside(self, names: Sequence[str], values: Sequence[float]) -> list[Finding]:
        """A finding of the kind ``range`` for each value beyond the range of the rows."""
        return self.outside_each(names, [values])[0]

    def outside_each(self, names: Sequence[str], cases: Sequence[Sequence[float]]) -> list[list[Finding]]:
        """The same for several cases, (B, len(names))."""
        places = [self.names.index(name) for name in names]
        ends = list(zip(self.lowest[places].tolist(), self.highest[places].tolist(), strict=True))
        slack = [1e-9 * max(abs(low), abs(high), high - low) for low, high in ends]
        findings: list[list[Finding]] = [[] for _ in cases]
        for case, values in zip(findings, cases, strict=True):
            for name, value, (low, high), more in zip(names, values, ends, slack, strict=True):
                if not low - more <= value <= high + more:
                    case.append(self._beyond(name, value, low, high))
        return findings

    def _beyond(self, name: str, value: float, low: float, high: float) -> Finding:
        here, *ends = _apart(value, low, high)
        between = f"the observations lie between {ends[0]} and {ends[1]}"
        numbers = {"value": value, "lowest": low, "highest": high}
        if name in self.task.box.names:
            return Finding("range", f"{name} is set to {here}; {between}", numbers)
        return Finding(
            "range", f"{name} is {here}; {between}", numbers, f"{name} is beyond the rows; {between}"
        )

    def contradictions(self) -> list[Finding]:
        """A finding for each action that has no path to an outcome although the outcomes depend on it."""
        p_values = self.p_values.tolist() or [1.0] * len(self.unlinked)
        return contradictions(self.task, dict(zip(self.unlinked, p_values, strict=True)))

    def _places(self, names: Sequence[str]) -> list[int]:
        return [self.names.index(name) for name in (*self.task.context, *names)]

    def _fifth(self, points: Tensor, names: Sequence[str], which: int) -> Tensor:
        # Beyond 1e150 a square is infinite, and a tree takes finite points alone.
        finite = points.nan_to_num(posinf=1e150, neginf=-1e150).detach().cpu().numpy()
        found, _ = self._tree(tuple(names)).query(finite, [which])
        return torch.from_numpy(found[:, 0]).to(points.device)

    def _tree(self, names: tuple[str, ...]) -> cKDTree:
        """The stored rows of context and `names`, as a tree that is made once."""
        version = None if self.rows.is_inference() else self.rows._version
        state = self.rows, version, self.task.context
        if self._trees is None or any(old is not new for old, new in zip(self._trees[0], state, strict=True)):
            self._trees = state, {}
        trees = self._trees[1]
        if names not in trees:
            trees[names] = cKDTree(self.rows[:, self._places(names)].detach().cpu().numpy(), leafsize=64)
        return trees[names]


def _apart(value: float, low: float, high: float) -> list[str]:
    """A value and two bounds in six significant digits, or in as many as show that it is none of them."""
    said = list[str]()
    for digits in range(6, 18):
        said = [setting_text(each, digits) for each in (value, low, high)]
        if said[0] not in said[1:]:
            break
    return said


class RehearsalSurrogate(Surrogate, ABC):
    """A surrogate of a rehearsal task; `parts` begins with ``self.overlap, self.overlap.examples(table)``."""

    kind: Kind | None = "rehearse"
    has_responses: bool = False  # Whether `responses` draws from a posterior; known before anything is fitted

    def __init__(
        self, task: Mapping[str, Any] | RehearsalTask, graphs: Sequence[RehearsalGraph] | None = None
    ) -> None:
        super().__init__()
        self.task = RehearsalTask.of(task)
        self.overlap = Overlap(self.task, (self.task.graph,) if graphs is None else graphs)

    def question(self) -> Question:
        """The task."""
        return self.task

    def used(self) -> tuple[str, ...]:
        """Without region and candidate sets, which a structural model reads when it decides."""
        return ("graph", "actions", "context", "outcomes")

    def responses(self, altered: Sequence[str], count: int, seed: int = 0) -> AffineResponse | None:
        """The outcomes' response to context, action and noise when variables are set, under models drawn from
        the posterior by the seed alone: `count` equally likely ones in a leading dimension; None if there is
        no posterior over models with normal outcomes. ValueError if a variable may not be altered.
        """

    def misfit(self) -> Finding | None:
        """What the rows refute of the model, if it was tested: decisions by it are then at most ``may``."""

    @torch.no_grad()
    def surprise(self, case: Any, decision: Decision, answer: Table) -> float | None:
        """The two-sided p-value of the most surprising outcome, times their number; None without a posterior
        over models with normal outcomes.
        """
        altered = decision.alteration
        responses = self.responses(() if altered is None else altered.names, MODELS)
        if responses is None or len(answer) != 1:
            return None
        middle = responses.base(self.task.given([case]).to(responses.constant))[:, 0]
        if altered is not None:
            middle = middle + responses.action @ altered.values.to(middle)
        spread = responses.covariance.diagonal(dim1=-2, dim2=-1).sqrt()
        outcomes = answer.columns(self.task.outcomes).to(middle)
        below = torch.special.ndtr((outcomes - middle) / spread).mean(0)
        return min(1.0, 2 * len(below) * float(torch.minimum(below, 1 - below).amin()))

    def outcome_draws(self, altered: Sequence[str], given: Tensor, action: Tensor) -> OutcomeDraws | None:
        """Draws of the outcomes in one case, with context (|X|,) and values (k,) of a candidate set, or none
        for no action, in units; by default those of `responses`. None without any.
        """
        responses = self.responses(altered, MODELS)
        return None if responses is None else of_response(responses, given, action)

    def _take(self, question: Question) -> None:
        self.task = RehearsalTask.of(question)  # type: ignore[arg-type]
        self.overlap.take(self.task)


class AdjustedSurrogate(RehearsalSurrogate, ABC):
    """A surrogate with estimators for each candidate set, which adjust for covariates that the graph tells,
    by the sequential formula where a single adjustment set does not exist and `sequential` is set; all in
    standardised variables.
    """

    by_adjustment: bool = True
    by_front_door: bool = False  # Whether it evaluates the front-door formula

    def __init__(self, task: Mapping[str, Any] | RehearsalTask, sequential: bool) -> None:
        super().__init__(task)
        self.scaler = Standardise(self.task.graph.names)
        graph, front_door = self.task.graph, self.by_front_door
        self.adjustments: tuple[Adjustment, ...] = tuple(
            adjustment(graph, self.task.context, altered, self.task.outcomes, sequential, front_door)
            for altered in self.task.candidates
        )

    def used(self) -> tuple[str, ...]:
        """All fields: targets depend on the region, and each candidate set has estimators of its own."""
        return ("graph", "actions", "context", "outcomes", "region", "candidates")

    def _shown(self, table: Table, names: Sequence[str]) -> Tensor:
        return self.scaler.standardised(tuple(names), table.columns(tuple(names)))
