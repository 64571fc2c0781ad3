"""Tasks of causal Bayesian optimisation: causal graph, actions, reward, limits and outcome constraints.

Each node X_i of a directed acyclic graph is a function of its parents, of action variables, and of
independent noise,

    X_i = f_i(Z_i, A_i, U_i).

Actions are roots of the graph; an edge from an action to a node is a soft intervention on the node, and one
action may affect several nodes. The aim is the action vector with the largest expected reward, where the
reward is a known function of the nodes. Some roots c may be a context, which is known before acting and has
no mechanism: then the aim is the best action given it, a*(c) = argmax_a E[r | a, c].

Texts, such as solvents, are numbers in tables and tensors: their places 0, 1, ... in the coding. Without an
order they are an indicator each to mechanisms. Trials have the texts.

What is on a log scale counts by its logarithm: to mechanisms, in distances, and as a coordinate of the region
that is searched. Everywhere else it stands in its unit.

Some nodes may be settable: an experiment sets those of a set S of them, by hard interventions, to values s,
and leaves the others to arise from their mechanisms, max over S, s of E[r | do(S = s)]. In a vector of
settings NaN stands for a node that is not set. Only sets of which no member is without effect count
(`RehearsalGraph.minimal_sets`); of those, sets that could be the best for unbounded values alone (POMIS) are
not told apart, because values are bounded.

Hidden common causes may join nodes, X_i <-> X_j. What they say of a node is then said by the nodes before it
that they join with it, by their values as they arise, and by the parents of these, which are inputs of its
mechanism: the conditional distributions of a c-component given those before and their parents are the same
under all interventions. A node that is set has a value that would have arisen, which is not observed; it is
drawn from the node's own mechanism, so that what was seen and what was set are told apart.

Source: Ren et al. (2025), Sec. 2.2 (Eq. 2) and Sec. 3 (Eq. 3); Krause and Ong (2011), Sec. 2 (contexts);
Aglietti et al. (2020), "Causal Bayesian optimization", Sec. 2, and Lee and Bareinboim (2018) (sets); Tian and
Pearl (2002), Lemma 4 (c-components), and Richardson and Robins (2013) (values that would have arisen).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import pandas as pd

from rehearsal_torch.data.codings.coding import Coding, hinted, listed
from rehearsal_torch.data.codings.decision_texts import in_numbers, worded
from rehearsal_torch.data.costs import ExperimentCosts
from rehearsal_torch.data.known_reward import KnownReward
from rehearsal_torch.data.outcome_constraint import OutcomeConstraint, constrained_names
from rehearsal_torch.data.problem_file.cases_schema import faces
from rehearsal_torch.data.problem_file.diagnostics import key
from rehearsal_torch.data.problem_file.task_file import built
from rehearsal_torch.data.problem_file.trials_schema import (
    TrialsProblem,
    causal_faults,
    check_limits,
    problem_of_task,
)
from rehearsal_torch.data.records import Records, check_fit
from rehearsal_torch.data.trials.trial import Settings, named_numbers, unknown_names
from rehearsal_torch.files.redaction import beginning
from rehearsal_torch.files.schema import Fault, FaultsError
from rehearsal_torch.graphs.mixed_graph import RehearsalGraph
from rehearsal_torch.spaces.box import Box, as_tensor, levels_text, numbers
from rehearsal_torch.spaces.polytope import Polytope

if TYPE_CHECKING:
    from numpy.typing import ArrayLike
    from torch import Tensor

    from rehearsal_torch.data.decision import RehearsalCase
    from rehearsal_torch.data.table import Table
    from rehearsal_torch.spaces.candidate_region import CandidateRegion

MIN_ROWS, MIN_WHOLE = 5, 3  # Experiments; of which so many teach a node's mechanism.
POSITIVE = "expected a number above 0, since its scale is log"
# What bounds and limits allow for rounding, as a share of a range.
ROUNDING = 1e-6
EPS = float(np.finfo(np.float64).eps)


# What the name of a node's value as it arises, whether or not the node is set, ends in.
ARISING = " (arising)"


def arising(name: str) -> str:
    """The name of a node's value as it arises, whether or not the node is set."""
    return f"{name}{ARISING}"


@dataclass(frozen=True)
class CausalTask:
    """The causal graph, the actions with their bounds and limits, and the reward.

    Attributes:
        graph: Nodes and actions; a directed acyclic graph.
        box: The actions, with bounds or levels in their units.
        reward: A known function of some nodes.
        limits: Linear constraints M a <= d on the actions; None for the box alone.
        constraints: Limits that nodes must keep with a probability.
        context: Roots of the graph that are known before acting.
        logs: Actions and contexts on a log scale, which are above 0.
        before: What actions and context were in experiments that do not say it.
        costs: What experiments cost; None if it does not count.
        errors: Standard deviations of the measurement errors of nodes, in their units, where they are known.
        settable: Those of the box's variables that are nodes, and need not be set.
        codings: Of actions and contexts of texts: with a reference where the texts have no order.

    Raises:
        ValueError: if hidden causes join an action, another action or a context is not a root, a name is
            unknown, an action has an empty range or a single level, or one on a log scale may be 0 or has
            limits, or no action within the box, at the levels, satisfies the limits.
    """

    graph: RehearsalGraph
    box: Box
    reward: KnownReward
    limits: Polytope | None = None
    constraints: tuple[OutcomeConstraint, ...] = ()
    context: tuple[str, ...] = ()
    logs: tuple[str, ...] = ()
    before: Settings = field(default_factory=dict)
    costs: ExperimentCosts | None = None
    errors: Mapping[str, float] = field(default_factory=dict)
    settable: tuple[str, ...] = ()
    codings: tuple[Coding, ...] = ()

    def __post_init__(self) -> None:
        if faults := list(self._faults()):
            raise FaultsError(faults)
        if self.limits is not None:
            self._check_limits(self.limits)

    def _faults(self) -> Iterator[Fault]:
        known = set(self.graph.names)
        parts = {
            **{"actions": self.box.names, "reward": self.reward.names},
            **{"constraints": self.constrained, "context": self.context},
            **{"logs": self.logs, "before": tuple(self.before), "errors": tuple(self.errors)},
        }
        for part, names in parts.items():
            if unknown := [name for name in names if name not in known]:
                has = f"it has {list(self.graph.names)}: add them, with their edges"
                yield Fault(part, f"{unknown} are not in the graph; {has}")
        if wanted := [name for name in self.reward.names if name in self.box.names]:
            yield Fault("reward", f"reads the actions {wanted}: expected nodes; add a node for their cost")
        if twice := [name for name in self.context if name in (*self.box.names, *self.reward.names)]:
            yield Fault("context", f"{twice} are actions or rewarded: expected what neither is")
        if not self.box.names:
            yield Fault("actions", "expected at least one action")
        if self.reward.labels and (self.constraints or self.settable):
            yield Fault("reward", "expected one, such as a sum, beside constraints and settable nodes")
        if self.costs is not None and self.settable:
            yield Fault("cost", f"what it costs to set {list(self.settable)} is not known: leave costs out")
        bounds = self.box.bounds()
        for name in self.logs:
            if name not in self.settings or bounds.get(name, (1.0,))[0] <= 0:
                yield Fault(key("actions", name), "a log scale is for an action or a context above 0")
        groups = self.reward.names, self.constrained, self.context, self.settable
        yield from causal_faults(self.graph, bounds, *groups)

    def _check_limits(self, limits: Polytope) -> None:
        if limits.names != self.box.names:
            words = f"expected the actions {list(self.box.names)}, in this order; got {list(limits.names)}"
            raise FaultsError([Fault("limits", words)])
        limited = [name for name, rows in zip(self.actions, limits.rows.T, strict=True) if rows.any()]
        if bent := [name for name in limited if name in self.logs or name in self.coded]:
            what = "has scale: log: bound it by its range, or" if bent[0] in self.logs else "has texts:"
            words = f"limits are linear, and {bent[0]} {what} take it out of them"
            raise FaultsError([Fault("limits", words)])
        try:
            check_limits(limits, self.box)
        except ValueError as error:
            raise FaultsError([Fault("limits", str(error))]) from error
        if not self.region().possible():
            words = "no combination of the levels satisfies them: check their signs, or offer other levels"
            raise FaultsError([Fault("limits", words)])

    def region(self, held: Mapping[str, Sequence[float]] | None = None) -> CandidateRegion:
        """The feasible actions; `held` has further levels, such as the value of an action that is held."""
        levels = {**self.box.levels, **(held or {})}
        indices = {name: index for index, name in enumerate(self.actions) if name in levels}
        return self._plain_region.at({index: levels[name] for name, index in indices.items()})

    @cached_property
    def _plain_region(self) -> CandidateRegion:
        # It has tensors, without which a task is read and checked unless it has limits.
        from rehearsal_torch.spaces.candidate_region import CandidateRegion

        return CandidateRegion.within(self.box.lower, self.box.upper, self.limits, self.log_columns)

    @cached_property
    def log_columns(self) -> tuple[int, ...]:
        """The columns of actions on a log scale."""
        return tuple(column for column, name in enumerate(self.actions) if name in self.logs)

    @cached_property
    def coded(self) -> dict[str, Coding]:
        """The codings by name."""
        return {coding.name: coding for coding in self.codings}

    @cached_property
    def classes(self) -> tuple[str, ...]:
        """Actions and contexts of texts without an order."""
        return tuple(coding.name for coding in self.codings if coding.of_classes)

    @cached_property
    def places(self) -> dict[str, Coding]:
        """The codings by name, each of the places of its texts."""
        return {name: Coding(name, coding.levels) for name, coding in self.coded.items()}

    def shown(self, settings: Mapping[str, float]) -> dict[str, Any]:
        """Settings with texts in place of their numbers."""
        return worded(settings, self.places) if self.codings else dict(settings)

    def row(self, settings: Mapping[str, Any]) -> list[float]:
        """The inverse: a number for each action and context, NaN where there is none."""
        values = in_numbers(settings, self.places) if self.codings else settings
        return [values.get(name, math.nan) for name in self.settings]

    def features(self, name: str, value: Tensor) -> list[Tensor]:
        """What a variable is to mechanisms: an indicator for each of its texts, or its coordinate."""
        if name not in self.classes:
            return [self.coordinate(name, value)]
        known, places = ~value.isnan(), range(len(self.coded[name].levels))
        return [(value.round() == place).to(value).where(known, value) for place in places]

    def feature_names(self, node: str) -> tuple[str, ...]:
        """The names of a node's inputs by `features`."""
        texts = {name: self.coded[name].levels for name in self.classes}
        names = self.inputs(node)
        return tuple(f"{name}={text}" if text else name for name in names for text in texts.get(name, ("",)))

    def coordinate(self, name: str, value: Any) -> Any:
        """A number, or a tensor of some, as it counts in distances and to mechanisms: its logarithm on a log
        scale.
        """
        if name not in self.logs:
            return value
        return math.log(value) if isinstance(value, float) else value.log()

    def coordinates(self, settings: Tensor) -> Tensor:
        """Settings (..., k), actions and maybe the context, by `coordinate`."""
        from rehearsal_torch.spaces.candidate_region import logarithms

        names = self.settings[: settings.shape[-1]]
        return logarithms(settings, [column for column, name in enumerate(names) if name in self.logs])

    @cached_property
    def spans(self) -> tuple[float, ...]:
        """The ranges of the actions in coordinates."""
        bounds = self.box.bounds().items()
        return tuple(self.coordinate(name, high) - self.coordinate(name, low) for name, (low, high) in bounds)

    @cached_property
    def width(self) -> Tensor:
        """`spans`, (k,)."""
        return as_tensor(self.spans)

    @cached_property
    def near(self) -> Tensor:
        """A quarter of the smallest distance between levels in coordinates, (k,); infinite without any."""
        levels = {
            name: [self.coordinate(name, value) for value in values]
            for name, values in self.box.levels.items()
        }
        gaps = [np.diff(levels[name]).min() / 4 if name in levels else math.inf for name in self.actions]
        return as_tensor(gaps)

    def grid(self, name: str, ends: tuple[float, float], count: int) -> Tensor:
        """Values of an action at equal distances on its scale, (count,)."""
        grid = np.geomspace if name in self.logs else np.linspace
        return as_tensor(grid(*ends, count))

    def setting_count(self, held: Mapping[str, Sequence[float]]) -> int | None:
        """The number of different settings, at the levels `held`; None where an action may move between its
        bounds, or limits leave more than can be listed.
        """
        if self.limits is None:
            choices = [held.get(name, self.box.levels.get(name, ())) for name in self.actions]
            return math.prod(map(len, choices)) or None
        settings = self.region(held).finite()
        return None if settings is None else len(settings)

    @property
    def actions(self) -> tuple[str, ...]:
        """The k actions, in the box's order."""
        return self.box.names

    @cached_property
    def required(self) -> tuple[str, ...]:
        """The actions that every experiment sets."""
        return tuple(name for name in self.box.names if name not in self.settable)

    @property
    def constrained(self) -> tuple[str, ...]:
        """The nodes that constraints limit."""
        return constrained_names(self.constraints)

    @cached_property
    def settings(self) -> tuple[str, ...]:
        """What is settled before an experiment is run: the k actions, then the context."""
        return (*self.box.names, *self.context)

    @cached_property
    def nodes(self) -> tuple[str, ...]:
        """The N modelled nodes: those of the reward and constraints, and their ancestors, causes first."""
        reaching = self.graph.ancestors((*self.reward.names, *self.constrained))
        names = (name for name in self.graph.names if name in reaching)
        return tuple(name for name in names if name in self.settable or name not in self.settings)

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """The columns of a table of experiments: required actions, context, and nodes."""
        return (*self.required, *self.context, *self.nodes)

    def settings_of(self, rows: Table | Records) -> Any:
        """The settings of the rows of a table, (n, k), NaN for nodes that were not set."""
        values, altered = cast("Any", rows.columns(self.settings)), cast("Any", rows.altered)
        for name in self.settable:
            values[~altered[:, rows.names.index(name)], self.settings.index(name)] = math.nan
        return values

    def named(self, settings: Tensor) -> dict[str, float]:
        """Settings (k,) by name, without nodes that are not set."""
        named = zip(self.settings, settings.tolist(), strict=False)
        return {name: value for name, value in named if not math.isnan(value)}

    def sets(self, levels: Mapping[str, Sequence[float]]) -> tuple[dict[str, tuple[float, ...]], ...]:
        """The `levels`, for each set of nodes to set, with NaN as the only one of those that are not; a node
        that they hold at a value is in all sets.
        """
        held = [name for name in self.settable if len(levels.get(name, ())) == 1]
        sets = self.graph.minimal_sets(self.settable, (*self.reward.names, *self.constrained), held)
        given, unset = {name: tuple(values) for name, values in levels.items()}, (math.nan,)
        return tuple({**given, **{n: unset for n in self.settable if n not in chosen}} for chosen in sets)

    @property
    def initial_count(self) -> int:
        """The default number of experiments before the first model: 2 (k + 1) with k actions, at least 5."""
        return max(MIN_ROWS, 2 * (len(self.actions) + 1))

    def joined(self, node: str) -> tuple[str, ...]:
        """The nodes and context before a node that hidden causes join with it."""
        return self.graph.joined(node, (*self.context, *self.nodes)) if self.graph.bidirected else ()

    def inputs(self, node: str) -> tuple[str, ...]:
        """The inputs of a node's mechanism: parents and actions, in the graph's order; with those that hidden
        causes join with it also these, as they arise (`arising`), and their parents.
        """
        joined = self.joined(node)
        causes = {
            *self.graph.parents((node, *joined)),
            *(name for name in joined if name not in self.settable),
        }
        others = (arising(name) for name in joined if name in self.settable)
        return (*(name for name in self.graph.names if name in causes), *others)

    def cells(self, rows: Table | Records, names: Sequence[str]) -> Any:
        """Columns of a table, (n, len(names)), NaN of a node as it arises where it was set."""
        known = [name.removesuffix(ARISING) for name in names]
        values, altered = cast("Any", rows.columns(known)), cast("Any", rows.altered)
        for index, (name, column) in enumerate(zip(names, known, strict=True)):
            if name != column:
                values[altered[:, rows.names.index(column)], index] = math.nan
        return values

    def reward_of(self, table: Table) -> Tensor:
        """The reward of each row, (n,)."""
        return self.reward(table.columns(self.reward.names))

    def keeps(self, table: Table) -> list[bool]:
        """Whether each row is known to have kept all constraints."""
        kept = [
            (limit.excess(table.columns(limit.names)) <= 0).all(-1).tolist() for limit in self.constraints
        ]
        return [all(row) for row in zip(*kept, strict=True)] if kept else [True] * len(table)

    def flattened(self) -> CausalTask:
        """The task without its structure: nodes of reward and constraints are functions of all settings."""
        graph = RehearsalGraph.of(dict.fromkeys((*self.reward.names, *self.constrained), self.settings))
        errors = {name: error for name, error in self.errors.items() if name in graph.names}
        return replace(self, graph=graph, errors=errors)

    def check(self, table: Table) -> None:
        """Refuses a table to which no model can be fitted: a column is missing, there are fewer than 5 rows
        (of a node, 3 in which it and its inputs were measured), a value is infinite or beyond 1e150, or an
        action is missing, or a node is the same in all. Actions may lie `outside`.
        """
        remedies = (
            "try a few more actions first, spread over their ranges",
            "drop those rows, or measure again",
        )
        rows, gaps = table.records(), (*self.context, *self.nodes)
        check_fit(rows, self.columns, MIN_ROWS, "nodes", remedies, (), gaps)
        if lacking := self._few(rows) or self._same(rows):
            raise ValueError(f"no model can be fitted yet: {lacking}; {remedies[0]}")

    def lacking(self, rows: Records) -> str:
        """Why no model can be fitted to experiments yet, in words: there are too few, or a node or all
        actions were the same in all of them; empty if one can be fitted.
        """
        if few := self._few(rows):
            return few
        settings = self.settings_of(rows)[:, : len(self.actions)]
        if (settings == settings[0]).all():
            return f"all {len(rows)} experiments were run at the same setting"
        return self._same(rows)

    def _measured(self, node: str, rows: Records) -> np.ndarray:
        """The rows that say something of a node's mechanism, (n,) bool: it was not set, and it and its inputs
        were measured.
        """
        measured: np.ndarray = ~np.isnan(self.cells(rows, (node, *self.inputs(node)))).any(-1)
        return measured if rows.altered is None else measured & ~rows.altered[:, rows.names.index(node)]

    def _few(self, rows: Records) -> str:
        """Whether there are too few experiments; empty if there are enough."""
        least, count, such = MIN_ROWS, len(rows), ""
        if count >= MIN_ROWS:
            counts = {name: int(self._measured(name, rows).sum()) for name in self.nodes}
            name, count = min(counts.items(), key=lambda pair: pair[1])
            least, such = MIN_WHOLE, f" in which {name} was not set, and it and its causes were measured"
        there = f"there {'is' if count == 1 else 'are'} {count}{such}"
        return "" if count >= least else f"a model needs {least} completed experiments, and {there}"

    def _same(self, rows: Records) -> str:
        """Which node was the same in all experiments; empty if none was."""
        for name in self.nodes:
            column = rows.columns([name])[self._measured(name, rows), 0]
            if len(column) >= MIN_WHOLE and (column == column[0]).all():
                return f"{name} was {float(column[0]):g} in all {len(column)} experiments"
        return ""

    def check_action(self, action: ArrayLike | Tensor, where: str = "action") -> None:
        """Refuses an action (k,) outside the box, its levels or the limits, up to rounding."""
        values = numbers(action)
        fits = values.shape == (len(self.actions),)
        unset = np.isnan(values) & ([name in self.settable for name in self.actions] if fits else False)
        if not fits or not (np.isfinite(values) | unset).all():
            expected = f"expected {len(self.actions)} finite numbers for {list(self.actions)}"
            raise ValueError(f"{where}: {expected}; got {values.tolist()}")
        for name, value in zip(self.actions, values.tolist(), strict=True):
            if not math.isnan(value) and (fault := self._unsettable(name, value)):
                raise ValueError(f"{where}: {fault}")
        if self.limits is None:
            return
        slack = self.limits.slacks(np.where(unset, 0.0, values))
        if not (slack >= -self._limits_margin(self.limits)).all():
            by = f"{-float(slack.min()):g} (face {int(slack.argmin())})"
            raise ValueError(f"{where}: {values.tolist()} violates the limits on the actions by {by}")

    def _unsettable(self, name: str, value: float) -> str:
        """Why an action may not be set to a value; empty if it may."""
        (lower, upper), levels = self.box.bounds()[name], self.box.levels.get(name)
        slack = ROUNDING * (upper - lower) + 4 * EPS * max(abs(lower), abs(upper))
        if levels is not None and min(abs(level - value) for level in levels) > min(
            slack, self.box.level_margin(name)
        ):
            offered, remedy = f"to {levels_text(levels)}", "take one of these, or offer the value in the task"
        elif not lower - slack <= value <= upper + slack:
            offered, remedy = f"within [{lower:g}, {upper:g}]", "move it inside, or widen the bounds"
        else:
            return ""
        return f"{name} may be set {offered}; got {value:g}: {remedy}"

    def held(self, fixed: Settings | None, context: Settings | None = None) -> dict[str, tuple[float, ...]]:
        """Actions that are fixed at a value, and the context, complete unless it is None, as levels for
        `region`; all faults at once.
        """
        faults, context_faults = list[str](), list[str]()
        seen = {} if context is None else self.numbers(context, self.context, "context", context_faults)
        if context_faults and isinstance(context, Mapping) and not context:
            example = ", ".join(f"{name}: ..." for name in self.context)
            context_faults = [f"expected the values for which to decide, {{{example}}}; got none"]
        given = {} if fixed is None else fixed
        names = [name for name in self.actions if not isinstance(given, Mapping) or name in given]
        values = self.numbers(given, names, "action", faults, others=True)
        if isinstance(given, Mapping):
            faults += unknown_names(given, self.actions, "the task has no such action")
        faults += [fault for name, value in values.items() if (fault := self._unsettable(name, value))]
        held: dict[str, tuple[float, ...]] = {
            name: (self.box.nearest_value(name, value),) for name, value in values.items()
        }
        if held and not faults and self.limits is not None and not self.region(held).possible():
            remedy = "fix it at another value, or widen the limits"
            faults.append(f"no values of the other actions satisfy the limits: {remedy}")
        parts = ("context", context_faults), ("fixed", faults)
        if faults or context_faults:
            raise FaultsError([Fault(part, "; ".join(words)) for part, words in parts if words])
        return held | {name: (seen[name],) for name in self.context if name in seen}

    def numbers(
        self, given: Any, wanted: Iterable[str], what: str, faults: list[str], others: bool = False
    ) -> dict[str, float]:
        """As `named_numbers`, of actions and context: above 0 on a log scale."""
        if isinstance(given, pd.Series):
            given = given.to_dict()
        if self.codings and isinstance(given, Mapping):
            given = {**given}
            for name in {*wanted} & {*given} & {*self.coded}:
                if (place := self.coded[name].place(given[name])) is None:
                    levels, value = self.coded[name].levels, given.pop(name)
                    got = f"got {beginning(repr(value), 60)}{hinted(str(value), levels)}"
                    faults.append(f"{name}: expected one of {listed(levels)}; {got}")
                else:
                    given[name] = float(place)
            wanted = [name for name in wanted if name in given or name not in self.coded]
        values = named_numbers(given, wanted, what, faults, others)
        faults += [
            f"{name}: {POSITIVE}; got {value:g}"
            for name, value in values.items()
            if name in self.logs and value <= 0
        ]
        return values

    def case(
        self, identity: str, held: Mapping[str, Sequence[float]] = MappingProxyType({})
    ) -> RehearsalCase:
        """The question which action to try, with actions and context `held`."""
        from rehearsal_torch.data.decision import RehearsalCase

        levels = {**self.box.levels, **{name: tuple(values) for name, values in held.items()}}
        given = {name: as_tensor(levels.pop(name)[0]) for name in self.context if name in levels}
        return RehearsalCase(identity, given, self.box.bounds(), levels=levels)

    def _limits_margin(self, limits: Polytope) -> np.ndarray:
        """The tolerance of the limits, (l,): a millionth of the change across the box, plus rounding."""
        lower, upper = np.array(self.box.lower_ends), np.array(self.box.upper_ends)
        weights = np.abs(limits.rows)
        size = weights @ np.maximum(np.abs(lower), np.abs(upper)) + np.abs(limits.limits)
        margin: np.ndarray = ROUNDING * (weights @ (upper - lower)) + 4 * EPS * size
        return margin

    def to_plain(self, reward: bool = True) -> dict[str, Any]:
        """Plain data for a configuration, maybe without the reward: a Python function is a ValueError."""
        box = self._plain_actions()
        settable = {name: box.pop(name) for name in self.settable}
        limits = None if self.limits is None else faces(self.limits)
        if limits and settable:
            columns = [self.actions.index(name) for name in self.required]
            limits["normals"] = [[row[column] for column in columns] for row in limits["normals"]]
        return {
            "graph": self.graph.to_plain(),
            **({"actions": box} if box else {}),
            "reward": self.reward.to_plain() if reward else None,
            "limits": limits,
            **({"constraints": list(map(str, self.constraints))} if self.constraints else {}),
            **({"context": self._plain_context()} if self.context else {}),
            **({"cost": self.costs.each} if self.costs is not None and self.costs.each else {}),
            **({"errors": dict(self.errors)} if self.errors else {}),
            **({"settable": settable} if settable else {}),
        }

    def _plain_actions(self) -> dict[str, Any]:
        plain = self.box.to_plain()
        for name in self.actions:
            stated, levels = self._stated(name), name in self.box.levels
            if name in self.coded:
                plain[name] = stated
            elif stated:
                values = plain[name]["values"] if levels else plain[name]
                plain[name] = {"levels" if levels else "range": values, **stated}
        return plain

    def _plain_context(self) -> Any:
        stated = {name: self._stated(name) for name in self.context}
        return stated if any(stated.values()) else list(self.context)

    def _stated(self, name: str) -> dict[str, Any]:
        """What a task states of an action or a context beside its numbers."""
        costs, coding = {} if self.costs is None else self.costs.actions, self.coded.get(name)
        texts: dict[str, Any] = {}
        if coding is not None:
            kind = "categorical" if coding.of_classes else "ordinal"
            texts = {"kind": kind, "levels": list(coding.levels)}
        return {
            **texts,
            **({"scale": "log"} if name in self.logs else {}),
            **({"before": self.before[name]} if name in self.before else {}),
            **({"cost": costs[name].to_plain()} if name in costs else {}),
        }

    @classmethod
    def of(
        cls, plain: Mapping[str, Any] | TrialsProblem | CausalTask, source: str = "the task"
    ) -> CausalTask:
        """The task of a problem (`data.problem_file.trials_schema`), or of plain data, as written by
        `to_plain` or by hand.

        Raises:
            TaskError: if a part is missing or wrong; all faults are listed.
        """
        if isinstance(plain, CausalTask):
            return plain
        problem = plain if isinstance(plain, TrialsProblem) else problem_of_task(plain, source)
        return built(source, lambda: cls(*problem.parts()))
