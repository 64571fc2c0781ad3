"""Rehearsal surrogates: the base class of all models of a rehearsal task, and their overlap diagnostics.

A model predicts everywhere, but the observations support only part of the space: `Overlap` stores where they
lie, so that every answer reports extrapolation. With every context variable and action in units of its
standard deviation over the n rows,

    d_5(x, a) = distance from (x, a) to its 5th nearest row,

a decision is an extrapolation if d_5 exceeds the 97.5th percentile of the rows' own d_5 (each row without
itself): the largest of .99, .975, .95 and .9 at which fewer than 3 % of the decisions in three simulated
worlds (Non-Syn2, Lin-Syn1, the loan; seeds 50 to 54) claimed .3 too much without a warning. The distance is
Euclidean with equal weight on all coordinates: under a metric that was fitted to the outcome, a coordinate
that the fit ignores would never count as far.

Two further diagnostics: the observed range of each variable; and, for actions that by the graph cannot affect
any outcome, whether the observations contradict the graph.

Source: Du et al. (2026), Sec. 2.1, and Qin et al. (2023), Sec. 2 (the task); Loftsgaarden and Quesenberry
(1965) (nearest-neighbour densities); Ramaswamy et al. (2000) (distance to the k-th neighbour as a score).
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
    """Ranges and nearest-neighbour distances of training rows (at most `max_points`); tests of the graphs."""

    needed = False  # a model with user-supplied parameters has no rows, but can be queried

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
        self.register_fitted("limits", finite=False)  # infinite if there are too few rows
        self._trees: tuple[tuple[object, ...], dict[tuple[str, ...], cKDTree]] | None = None

    @property
    def known(self) -> bool:
        """Whether there are enough rows for distances."""
        return len(self.rows) > NEIGHBOURS

    def examples(self, table: Table) -> tuple[Tensor, ...]:
        """The examples of `solve`: the columns in the graph's order, and the rows' places if recorded."""
        places = () if table.places is None else (table.places,)
        return table.columns(self.task.graph.names), *places

    def solve(self, *examples: Tensor) -> None:
        """Fits to (a subset of) variables (n, d), in the graph's order and units, and places of rows (n,)."""
        values = examples[0].detach().to(torch.float64)
        in_order = values[examples[1].argsort()] if len(examples) > 1 else values
        subset = in_order[evenly(len(in_order), MAX_POINTS, in_order.device)]
        records = Table.observed(self.task.graph.names, subset).records()
        p_values = [dependence_given(records, self.task, name) for name in self.unlinked]
        self.p_values = values.new_tensor(p_values)
        inputs = values[:, positions(self.task.graph.names, self.names)]
        spread = inputs.std(0, correction=0)
        self.location, self.scale = inputs.mean(0), torch.where(spread > 0, spread, torch.ones_like(spread))
        self.lowest, self.highest = inputs.aminmax(dim=0)
        stored = inputs[evenly(len(inputs), self.max_points, inputs.device)]
        self.rows = (stored - self.location) / self.scale
        self._limit()

    def sizes(self) -> Sizes:
        """Those of `Part`, and one limit for each of the task's candidate sets."""
        return {**super().sizes(), "limits": (len(self.task.candidates),)}

    def faults(self) -> list[str]:
        """Sizes, and limits that are no distances (infinite ones are valid if there are too few rows)."""
        faults, invalid = super().faults(), self.limits.isnan() | (self.limits < 0)
        if faults or not bool((invalid | (self.limits.isinf() & self.known)).any()):
            return faults
        return [f"limits: expected distances; got {self.limits.tolist()}"]

    def take(self, task: RehearsalTask) -> None:
        """Replaces the task by one over the same variables with other candidate sets, bounds or region."""
        self.task = task
        if self.fitted:
            self._limit()

    def _limit(self) -> None:
        """Sets the limits: the 97.5th percentile of the rows' own distances, for each candidate set."""
        if not self.known:
            self.limits = self.rows.new_full((len(self.task.candidates),), torch.inf)
            return
        sets = [(names, self.rows[:, self._places(names)]) for names in self.task.candidates]
        distances = [self._neighbour_distance(rows, names, NEIGHBOURS + 1) for names, rows in sets]
        self.limits = torch.stack([torch.quantile(own, SHARE) for own in distances])

    def distance(self, names: Sequence[str], contexts: Tensor, actions: Tensor) -> Tensor:
        """d_5, in standard deviations: contexts (B, |X|) and actions (B, k) of `names`, in units -> (B,)."""
        points = self._scaled(torch.cat([contexts, actions], -1), names)
        return self._neighbour_distance(points, names, NEIGHBOURS)

    def stored(self) -> Tensor:
        """The stored rows of context and all actions, (n, d), in units."""
        return self.rows * self.scale + self.location

    def distances(self, names: Sequence[str], point: Tensor, rows: Tensor | None = None) -> Tensor:
        """Distances (n,) in standard deviations of rows (n, d), or those stored, to a decision (|X| + k,)."""
        stored = self.rows if rows is None else (rows.to(self.rows) - self.location) / self.scale
        return (stored[:, self._places(names)] - self._scaled(point, names)).square().sum(-1).sqrt()

    def leverage(self, names: Sequence[str], contexts: Tensor, actions: Tensor) -> Tensor:
        """(1 + v' R^-1 v) / n of contexts (B, |X|) and actions (B, k), in units; R the rows' correlations."""
        rows = self.rows[:, self._places(names)]
        points = self._scaled(torch.cat([contexts.to(rows), actions.to(rows)], -1), names)
        inverse = torch.linalg.pinv(rows.mT @ rows / len(rows), rtol=1e-9, hermitian=True)
        return (1 + ((points @ inverse) * points).sum(-1)) / len(rows)

    def limit(self, names: Sequence[str]) -> float:
        """The 97.5th percentile of the rows' own d_5 for a candidate set."""
        return float(self.limits[self.task.candidates.index(tuple(names))])

    def outside(self, names: Sequence[str], values: Sequence[float]) -> list[Finding]:
        """A ``range`` finding for each value beyond the range of the rows."""
        return self.outside_each(names, [values])[0]

    def outside_each(self, names: Sequence[str], cases: Sequence[Sequence[float]]) -> list[list[Finding]]:
        """`outside` of several cases, (B, len(names))."""
        places = [self.names.index(name) for name in names]
        ends = list(zip(self.lowest[places].tolist(), self.highest[places].tolist(), strict=True))
        slack = [1e-9 * max(abs(low), abs(high), high - low) for low, high in ends]
        findings: list[list[Finding]] = [[] for _ in cases]
        for case_findings, values in zip(findings, cases, strict=True):
            for name, value, (low, high), margin in zip(names, values, ends, slack, strict=True):
                if not low - margin <= value <= high + margin:
                    case_findings.append(self._range_finding(name, value, low, high))
        return findings

    def _range_finding(self, name: str, value: float, low: float, high: float) -> Finding:
        shown, *ends = _distinct_texts(value, low, high)
        between = f"the observations lie between {ends[0]} and {ends[1]}"
        numbers = {"value": value, "lowest": low, "highest": high}
        if name in self.task.box.names:
            return Finding("range", f"{name} is set to {shown}; {between}", numbers)
        general = f"{name} is beyond the rows; {between}"
        return Finding("range", f"{name} is {shown}; {between}", numbers, general)

    def contradictions(self) -> list[Finding]:
        """A finding for each action that has no path to an outcome although the outcomes depend on it."""
        p_values = self.p_values.tolist() or [1.0] * len(self.unlinked)
        return contradictions(self.task, dict(zip(self.unlinked, p_values, strict=True)))

    def _places(self, names: Sequence[str]) -> list[int]:
        return [self.names.index(name) for name in (*self.task.context, *names)]

    def _scaled(self, points: Tensor, names: Sequence[str]) -> Tensor:
        places = self._places(names)
        return (points.to(self.rows) - self.location[places]) / self.scale[places]

    def _neighbour_distance(self, points: Tensor, names: Sequence[str], rank: int) -> Tensor:
        # Beyond 1e150 a square is infinite, and a tree takes finite points alone.
        finite = points.nan_to_num(posinf=1e150, neginf=-1e150).detach().cpu().numpy()
        distance, _ = self._tree(tuple(names)).query(finite, [rank])
        return torch.from_numpy(distance[:, 0]).to(points.device)

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


def _distinct_texts(value: float, low: float, high: float) -> list[str]:
    """A value and two bounds in six significant digits, or as many as it takes to tell them apart."""
    by_digits = ([setting_text(number, digits) for number in (value, low, high)] for digits in range(6, 18))
    texts = next((texts for texts in by_digits if texts[0] not in texts[1:]), None)
    return texts or [setting_text(number, 17) for number in (value, low, high)]


class RehearsalSurrogate(Surrogate, ABC):
    """A surrogate of a rehearsal task; its `parts` begin with the overlap and its examples."""

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
        """All but region and candidate sets, which a structural model reads when it decides."""
        return ("graph", "actions", "context", "outcomes")

    def responses(self, altered: Sequence[str], count: int, seed: int = 0) -> AffineResponse | None:
        """The outcomes' response to context, action and noise under `count` posterior samples of the model;
        None without a posterior with normal outcomes. ValueError if a variable may not be altered.
        """

    def misfit(self) -> Finding | None:
        """A lack of fit that the rows show, if tested: decisions are then at most ``may``."""

    @torch.no_grad()
    def surprise(self, case: Any, decision: Decision, answer: Table) -> float | None:
        """Two-sided p-value of the most surprising outcome, times their number; None without `responses`."""
        altered = decision.alteration
        responses = self.responses(() if altered is None else altered.names, MODELS)
        if responses is None or len(answer) != 1:
            return None
        means = responses.base(self.task.given([case]).to(responses.constant))[:, 0]
        if altered is not None:
            means = means + responses.action @ altered.values.to(means)
        spread = responses.covariance.diagonal(dim1=-2, dim2=-1).sqrt()
        outcomes = answer.columns(self.task.outcomes).to(means)
        below = torch.special.ndtr((outcomes - means) / spread).mean(0)
        return min(1.0, 2 * len(below) * float(torch.minimum(below, 1 - below).amin()))

    def outcome_draws(self, altered: Sequence[str], given: Tensor, action: Tensor) -> OutcomeDraws | None:
        """Draws of the outcomes for context (|X|,) and values (k,), in units, by `responses`; or None."""
        responses = self.responses(altered, MODELS)
        return None if responses is None else of_response(responses, given, action)

    def _take(self, question: Question) -> None:
        self.task = RehearsalTask.of(question)  # type: ignore[arg-type]
        self.overlap.take(self.task)


class AdjustedSurrogate(RehearsalSurrogate, ABC):
    """A surrogate with estimators for each candidate set, which adjust for the graph's covariates."""

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
        """All fields: targets depend on the region, and each candidate set has its own estimators."""
        return ("graph", "actions", "context", "outcomes", "region", "candidates")

    def _standardised(self, table: Table, names: Sequence[str]) -> Tensor:
        return self.scaler.standardised(tuple(names), table.columns(tuple(names)))
