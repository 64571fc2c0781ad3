"""Problems of trials as they are written: what may be set, what is measured, and what counts.

A problem file asks which experiment to run next:

    question: trials
    data: experiments.csv             # optional: the experiments so far
    variables:
      valve: {role: action, range: [0, 1]}
      dose: {role: action, levels: [0, 1, 2, 5], unit: ml}
      temperature: {role: other, unit: degrees}
      yield: outcome
    graph: [valve -> temperature, dose -> yield, temperature -> yield]
    reward: yield                     # or a sum, such as yield - 0.2*waste; the only outcome by default
    limits: 2*valve + dose <= 6       # optional; or faces M a <= d, {names, normals, offsets}
    fixed: {dose: 2}                  # optional: held in the next experiment
    tolerance: 0.01                   # optional: how far what was set may lie from what was proposed

A task has fewer keys. What its reward reads are the outcomes, and the columns of M are the actions:

    graph: [valve -> temperature, dose -> yield, temperature -> yield]
    actions: {valve: [0, 1], dose: {values: [0, 1, 2, 5]}}
    reward: yield
    limits: {normals: [[2, 1]], offsets: [6]}

Source: Ren et al. (2025), Sec. 2.2 (Eq. 2), for what a task consists of.
"""

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Annotated, Any, Literal, Self, get_args

import numpy as np
from pydantic import AfterValidator, BeforeValidator, Discriminator, Field, PrivateAttr, Tag, WithJsonSchema

from rehearsal_torch.data.known_reward import KnownReward, TargetError, WeightedSum
from rehearsal_torch.data.problem_file.cases_schema import DATA, Source, one_of, positive
from rehearsal_torch.data.problem_file.diagnostics import key, missing_roles, name_faults
from rehearsal_torch.data.problem_file.task_file import (
    SETTABLE,
    LevelNumbers,
    NamedFaces,
    TaskError,
    built_part,
)
from rehearsal_torch.files.schema import (
    Bounds,
    Fault,
    Name,
    Number,
    Schema,
    fault,
    form,
    mapping,
    meant,
    read,
    refusal,
)
from rehearsal_torch.graphs.graph_notation import (
    EXPECTED,
    CliquesForm,
    OrderForm,
    ParentsForm,
    WrittenGraph,
)
from rehearsal_torch.graphs.mixed_graph import RehearsalGraph
from rehearsal_torch.spaces.box import Box
from rehearsal_torch.spaces.inequalities import InequalityError, inequalities, linear
from rehearsal_torch.spaces.polytope import EmptyRegionError, Polytope

Role = Literal["action", "outcome", "other"]
ROLES = get_args(Role)
ROLES_AS = "action (may be set), outcome (the reward is made of it), other (measured in each experiment)"
KINDS = ("continuous", "integer", "binary", "ordinal")
REWARD_AS = (
    "the outcome to maximise, a sum such as yield - 0.2*waste, {weights: {outcome: weight}}, or {targets: "
    "{outcome: value}} for the smallest squared distance"
)
LIMITS_AS = "inequalities of the actions, such as 2*valve + dose <= 6"
TOLERANCE_AS = "a share of each range, from 0 to 0.5, or {action: distance} in its unit"
METHOD_AS = "the method that decides: a name that decision= takes"
HIDDEN = "of a hidden cause, measure it, or leave it out"
CLASSES = (
    "code the classes as numbers in the table, leave kind out, and write levels: [0, 1, 2]; neighbouring "
    "numbers are taken to be alike"
)
MOST_LEVELS = 1000
# Of a step, by which the end of a range may be missed.
ROUNDING = 1e-9
_SETTINGS = ("range", "levels", "step")
# Where each form of a graph states hidden common causes.
_HIDDEN: dict[type, str] = {ParentsForm: "bidirected", CliquesForm: "cliques", OrderForm: "order"}
_NODE, _WEIGHTS, _TARGETS, _KNOWN = form("node"), form("weights"), form("targets", "mean"), form("reward")


def _kind(value: Any) -> Any:
    """One of the kinds; of classes, with how they are coded."""
    if value == "categorical":
        raise fault(f"one of {', '.join(KINDS)}", value, CLASSES)
    return one_of(KINDS)(value)


class TrialVariable(Schema):
    """A variable of experiments: an action, or something that is measured."""

    role: Annotated[str, BeforeValidator(one_of(ROLES)), WithJsonSchema({"enum": list(ROLES)})] = Field(
        description=ROLES_AS
    )
    kind: Annotated[str, BeforeValidator(_kind), WithJsonSchema({"enum": list(KINDS)})] = Field(
        default="continuous", description="of an action: what may be set"
    )
    unit: Name | None = Field(default=None, description="its unit, for the reader")
    range: Bounds | None = Field(default=None, description="of an action: [lower, upper]")
    levels: LevelNumbers | None = Field(
        default=None, description="of an action: the only values that it may be set to"
    )
    step: Annotated[Number, AfterValidator(positive)] | None = Field(
        default=None, description="of an action: the distance of its values, from the lower end of range"
    )

    # Of one that was read with faults, its other parts stand for it, so that all others are told, too.
    _told: tuple[Fault, ...] = PrivateAttr(())

    @classmethod
    def of(cls, plain: Any) -> Self:
        """A variable of plain data, its role alone or all of it, right or with `faults`."""
        right, faults = read(cls, {"role": plain} if isinstance(plain, str) else plain)
        made = cls.model_construct(**{"role": "", **right})
        made._told = tuple(Fault(f".{each.path}" if each.path else "", each.words) for each in faults)
        return made

    def values(self) -> list[float] | None:
        """The values that an action may be set to, ascending; None for a whole range."""
        if self.levels is not None:
            return sorted(self.levels)
        if self.range is None:
            return [0.0, 1.0]
        if self.step is None and self.kind == "continuous":
            return None
        start, step, count = self._grid(*self.range)
        return [start + step * place for place in range(count)]

    def ends(self) -> tuple[float, float]:
        """The smallest and the largest value that an action may be set to."""
        values = self.values() or self.range or [0.0, 0.0]
        return values[0], values[-1]

    def faults(self) -> Iterator[Fault]:
        """What is wrong with it, at paths behind its own."""
        given = [each for each in _SETTINGS if getattr(self, each) is not None]
        if self._told:
            yield from self._told
        elif self.role != "action":
            words = f"is for actions; its role is {self.role}: leave it out"
            yield from (Fault(f".{each}", words) for each in given)
        elif self.levels is not None:
            words = "levels are all values that may be set: leave it out"
            yield from (Fault(f".{each}", words) for each in given if each != "levels")
        elif self.range is None and self.kind != "binary":
            yield Fault("", "an action needs range: [lower, upper], or levels: [...]")
        elif self.range is not None and (self.step is not None or self.kind != "continuous"):
            start, step, count = self._grid(*self.range)
            if not 2 <= count <= MOST_LEVELS:
                there = "are more" if count > MOST_LEVELS else f"is {max(count, 0)}"
                values = f"values from {start:g} to {self.range[1]:g} at distances of {step:g}"
                words = f"expected 2 to {MOST_LEVELS} {values}; there {there}: correct range or step"
                yield Fault("", words)

    def _grid(self, lower: float, upper: float) -> tuple[float, float, int]:
        """First value, distance and number of the values of a range with a step."""
        start, step = (float(math.ceil(lower)), 1.0) if self.step is None else (lower, self.step)
        return start, step, int(min((upper - start) / step + ROUNDING, MOST_LEVELS) // 1 + 1)


class Weights(Schema):
    """A weighted sum of outcomes."""

    weights: Annotated[dict[Name, Number], mapping("{node: weight}")]


class Targets(Schema):
    """Target values of outcomes, for the negative mean or sum of the squared distances."""

    targets: Annotated[dict[Name, Number], mapping("{node: target}")]
    mean: bool = True


def _reward(plain: Any) -> Any:
    named = isinstance(plain, str | int) and not isinstance(plain, bool)
    stated = isinstance(plain, dict) and not {"weights", "targets"}.isdisjoint(plain)
    if not (named or stated or isinstance(plain, KnownReward | Weights | Targets)):
        raise fault(REWARD_AS, plain)
    return plain


def _reward_kind(plain: Any) -> str:
    if isinstance(plain, KnownReward):
        return _KNOWN
    if isinstance(plain, Weights) or (isinstance(plain, dict) and "weights" in plain):
        return _WEIGHTS
    return _TARGETS if isinstance(plain, dict | Targets) else _NODE


Reward = Annotated[
    Annotated[Name, Tag(_NODE)]
    | Annotated[Weights, Tag(_WEIGHTS)]
    | Annotated[Targets, Tag(_TARGETS)]
    | Annotated[KnownReward, Tag(_KNOWN)],
    Discriminator(_reward_kind),
    BeforeValidator(_reward, json_schema_input_type=Name | Weights | Targets),
]


def _limits(plain: Any) -> Any:
    """Inequalities as named faces."""
    if isinstance(plain, dict):
        return plain
    lines = [plain] if isinstance(plain, str) else plain
    if not isinstance(lines, list) or not lines or not all(isinstance(each, str) for each in lines):
        raise fault(LIMITS_AS, plain)
    try:
        found = inequalities(lines)
    except InequalityError as error:
        raise refusal(str(error)) from error
    normals = [list(each) for each in found.normals]
    return {"names": list(found.names), "normals": normals, "offsets": list(found.offsets)}


def _tolerance(plain: Any) -> Any:
    number = isinstance(plain, int | float) and not isinstance(plain, bool)
    if not (isinstance(plain, dict) or (number and 0 <= plain <= 0.5)):
        raise fault(TOLERANCE_AS, plain)
    return plain


class TrialsProblem(Schema):
    """A problem of experiments: what may be set, what is measured, and what counts."""

    data: Source | None = Field(default=None, description=f"the experiments so far: {DATA}")
    variables: Annotated[
        dict[
            Name,
            Annotated[
                TrialVariable, BeforeValidator(TrialVariable.of, json_schema_input_type=TrialVariable | Role)
            ],
        ],
        mapping("{variable: {role: ...}}"),
    ] = Field(description=f"{{variable: {{role: ...}}}}; the roles are {ROLES_AS}")
    graph: WrittenGraph = Field(
        description="edges such as [cause -> effect, ...], or a file (.dagitty, .dot, .gml, .graphml, ...)"
    )
    reward: Reward | None = Field(default=None, description=f"{REWARD_AS}; the only outcome by default")
    limits: (
        Annotated[NamedFaces, BeforeValidator(_limits, json_schema_input_type=str | list[str] | NamedFaces)]
        | None
    ) = Field(default=None, description=LIMITS_AS)
    fixed: dict[Name, Number] = Field(
        default_factory=dict, description="actions that the next experiment holds at a value"
    )
    tolerance: (
        Annotated[Annotated[Number, Field(ge=0, le=0.5)] | dict[Name, Number], BeforeValidator(_tolerance)]
        | None
    ) = Field(
        default=None,
        description=f"how far what was set may lie from what was proposed: {TOLERANCE_AS}",
    )
    method: Name | None = Field(default=None, description=METHOD_AS)

    @classmethod
    def between(cls, parts: Mapping[str, Any]) -> list[Fault]:
        """Faults of roles, names, reward and limits, and of a graph that is none of experiments."""
        variables: Mapping[str, TrialVariable] = parts.get("variables", {})
        written, graph, reward, faults = parts.get("graph"), None, None, list[Fault]()
        actions, outcomes = (of_role(variables, role) for role in ("action", "outcome"))
        own = {name: list(about.faults()) for name, about in variables.items()}
        for name, told in own.items():
            faults += [Fault(f"{key('variables', name)}{each.path}", each.words) for each in told]
        if variables and not of_role(variables, ""):
            faults += missing_roles(variables, ("action", "outcome"))
        if variables and written is not None:
            faults += name_faults(variables, dict.fromkeys(written.named()), HIDDEN)
        if variables and "reward" in parts and (outcomes or parts["reward"] is not None):
            reward = built_part("reward", faults, lambda: reward_in(parts["reward"], variables, outcomes))
        if reward is not None:
            faults += _reward_faults(reward.names, variables)
        if (limits := parts.get("limits")) is not None and actions:
            if odd := [name for name in limits.names if name not in actions]:
                faults.append(Fault("limits", f"{odd[0]!r} is no action; {meant(odd[0], actions)}"))
            elif not any(own[name] for name in actions):
                built_part("limits", faults, lambda: limits_in(limits, box_of(variables)))
        if written is not None and (graph := built_part("graph", faults, written.graph)) is not None:
            called = {"graph.bidirected": f"graph.{_HIDDEN[type(written)]}", "actions": "variables"}
            some = {name: (0.0, 1.0) if own[name] else variables[name].ends() for name in actions}
            found = causal_faults(graph, some, None if reward is None else reward.names)
            faults += [each.called(called) for each in found]
        return faults

    def parts(self) -> tuple[RehearsalGraph, Box, KnownReward, Polytope | None]:
        """Graph, actions, reward and limits of the task that it stands for."""
        box = box_of(self.variables)
        limits = None if self.limits is None else limits_in(self.limits, box)
        reward = reward_in(self.reward, self.variables, of_role(self.variables, "outcome"))
        return self.graph.graph(), box, reward, limits


def of_role(variables: Mapping[str, TrialVariable], role: str) -> list[str]:
    """The variables of a role, in their order."""
    return [name for name, about in variables.items() if about.role == role]


def box_of(variables: Mapping[str, TrialVariable]) -> Box:
    """What the actions may be set to."""
    actions = {name: variables[name] for name in of_role(variables, "action")}
    lower, upper = ([each.ends()[end] for each in actions.values()] for end in (0, 1))
    levels = {name: values for name, each in actions.items() if (values := each.values()) is not None}
    return Box(tuple(actions), lower, upper, levels)


def reward_in(
    written: str | Weights | Targets | KnownReward | None, named: Collection[str], outcomes: Sequence[str]
) -> KnownReward:
    """The reward that is written, of variables that are `named`; ValueError if it cannot be read."""
    if isinstance(written, KnownReward):
        return written
    if isinstance(written, Weights):
        return WeightedSum(written.weights)
    if isinstance(written, Targets):
        return TargetError(written.targets, written.mean)
    if written is None and len(outcomes) != 1:
        raise ValueError(f"expected {REWARD_AS}, since there are {len(outcomes)} outcomes; got none")
    if written is None or written in named:
        return WeightedSum({outcomes[0] if written is None else written: 1.0})
    summed = linear(written)
    weights = {name: each for name, each in summed.weights.items() if each}
    if not weights:
        raise ValueError(f"expected {REWARD_AS}; the sum has no outcome")
    if summed.constant:
        raise ValueError(f"a constant, {summed.constant:g}, changes no decision: leave it out")
    return WeightedSum(weights)


def _reward_faults(rewarded: Sequence[str], variables: Mapping[str, TrialVariable]) -> Iterator[Fault]:
    """Faults of what a reward reads, and of outcomes that it does not."""
    expected = {
        "action": "expected outcomes; add a variable for the cost of the action",
        "other": "expected outcomes: write the role outcome there, or take it out",
    }
    for name in rewarded:
        if name not in variables:
            yield Fault("reward", f"{name!r} is not under variables; {meant(name, variables)}", "unknown")
        elif (role := variables[name].role) in expected:
            yield Fault("reward", f"{name} is of the role {role}; {expected[role]}")
    unread = "an outcome that the reward does not read: add it there, or write the role other"
    for name in of_role(variables, "outcome"):
        if name not in rewarded:
            yield Fault(key("variables", name), unread)


def limits_in(limits: NamedFaces, box: Box) -> Polytope:
    """Limits in the actions of a box; ValueError if they are no faces, or leave no action of it."""
    own = limits.polytope(limits.names)
    columns, nothing = dict(zip(own.names, own.rows.T, strict=True)), np.zeros(len(own.limits))
    rows = np.stack([columns.get(name, nothing) for name in box.names], -1)
    found = Polytope(box.names, rows, own.limits)
    check_limits(found, box)
    return found


def check_limits(limits: Polytope, box: Box) -> None:
    """ValueError if limits leave no action of a box, whatever its levels."""
    unit, ends = np.eye(len(box.names)), (box.upper_ends, np.negative(box.lower_ends))
    normals = np.concatenate([limits.rows, unit, -unit])
    try:
        Polytope(box.names, normals, np.concatenate([limits.limits, *ends]))
    except ValueError as error:
        words = error.reason if isinstance(error, EmptyRegionError) else str(error)
        raise ValueError(f"no action within its bounds satisfies them: {words}") from error


def causal_faults(
    graph: RehearsalGraph, actions: Mapping[str, tuple[float, float]], rewarded: Sequence[str] | None
) -> Iterator[Fault]:
    """Faults of a graph, of actions with their smallest and largest value, and of what the reward reads; None
    if that is unknown.
    """
    if graph.bidirected:
        pairs = ", ".join(f"{one} <-> {other}" for one, other in graph.bidirected)
        expected = f"expected none, because the noise of the nodes is independent; got {pairs}"
        remedy = "leave it out, or measure the hidden cause and add it as a node"
        yield Fault("graph.bidirected", f"{expected}: {remedy}")
    for name, (lower, upper) in actions.items():
        if not lower < upper:
            words = "expected lower < upper, or at least two levels: leave out what cannot be changed"
            yield Fault(key("actions", name), words)
    targets = {target for _, target in graph.edges}
    if late := [name for name in actions if name in targets]:
        words = f"actions {late} have parents: an action is set from outside, remove the edges into it"
        yield Fault("graph", words)
    known = set(graph.names)
    if rewarded is None or not known.issuperset(rewarded):
        return
    reaching = graph.ancestors(rewarded)
    if without_effect := [name for name in actions if name in known and name not in reaching]:
        what = f"actions {without_effect} are not ancestors of the reward {list(rewarded)}"
        yield Fault("graph", f"{what}: add their edges, or take them out")


class TaskKeys(Schema):
    """The keys of a task; what they hold is that of a problem, and actions have a form of their own."""

    graph: WrittenGraph = Field(description=EXPECTED)
    actions: Annotated[dict[Name, Any], mapping(SETTABLE)] = Field(description=SETTABLE)
    reward: Reward = Field(description=REWARD_AS)
    limits: Any = None


TASK_PARTS = tuple(TaskKeys.model_fields)


def problem_of_task(plain: Mapping[str, Any], source: str = "the task") -> TrialsProblem:
    """The problem that a task stands for; a TaskError lists all faults, with the keys of the task."""
    parts, faults = read(TaskKeys, plain)
    variables, called = dict[str, Any](), dict[str, str]()
    for name, each in parts.pop("actions", {}).items():
        path, own = key("variables", name), key("actions", name)
        called |= {path: own, f"{path}.range": own, f"{path}.levels": f"{own}.values"}
        listed = isinstance(each, dict)
        given = each["values"] if listed and set(each) == {"values"} else each
        variables[name] = {"role": "action", "levels" if listed else "range": given}
    if isinstance(parts.get("limits"), dict):
        parts["limits"] = {"names": list(variables), **parts["limits"]}
    named, reward = parts["graph"].named() if "graph" in parts else [], parts.get("reward")
    try:
        rewarded = reward_in(reward, named, ()).names
    except ValueError:
        rewarded = ()
    inside = [*type(reward).model_fields][:1] if isinstance(reward, Schema) else []
    for name in (each for each in rewarded if each not in variables):
        called[key("variables", name)] = "reward" if reward == name else key("reward", *inside, name)
    others = dict.fromkeys([*variables, *named], "other") | dict.fromkeys(rewarded, "outcome")
    if variables := others | variables:
        parts["variables"] = variables
    right, more = read(TrialsProblem, parts)
    # What is missing was told with the keys of the task.
    faults += [each.called(called) for each in more if each.kind != "missing"]
    if faults:
        raise TaskError(source, faults)
    return TrialsProblem.model_construct(**right)
