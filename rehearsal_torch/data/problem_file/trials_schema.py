"""The schema of problem files that ask for trials, and of their tasks: actions, measurements, reward, limits.

A problem file asks which experiment to run next:

    question: trials
    data: experiments.csv             # optional: the experiments so far
    variables:
      valve: {role: action, range: [0, 1]}
      dose: {role: action, levels: [0, 1, 2, 5], unit: ml, cost: 3}   # optional: of every unit (`data.costs`)
      catalyst: {role: action, range: [0.001, 10], scale: log}    # counts by its logarithm
      stirring: {role: action, range: [0, 600], before: 300}   # what it was in experiments that do not say it
      solvent: {role: action, kind: categorical, levels: [water, ethanol, toluene]}
      temperature: {role: other, unit: degrees, error: 0.5}   # optional: its standard deviation
      humidity: context               # a root that is known before acting
      pressure: {role: settable, range: [0, 5]}  # a node that may be set, or left to arise
      yield: outcome
    graph: [valve -> temperature, dose -> yield, "{temperature humidity} -> yield"]
    reward: yield                     # or a sum, such as yield - 0.2*waste; the only outcome by default
    limits: 2*valve + dose <= 6       # optional; or faces M a <= d, {names, normals, offsets}
    constraints: temperature <= 60 with 90 %   # optional, of nodes, also several (`outcome_constraint`)
    fixed: {dose: 2}                  # optional: held in the next experiment
    context: {humidity: 0.4}          # in the next experiment
    cost: 10                          # optional: of any experiment, beside that of its settings
    tolerance: 0.01                   # optional: how far what was set may lie from what was proposed

A task has fewer keys. What its reward reads are the outcomes, and the columns of M are the actions:

    graph: [valve -> temperature, dose -> yield, temperature -> yield]
    actions: {valve: [0, 1], dose: {levels: [0, 1, 2, 5]}, catalyst: {range: [0.001, 10], scale: log}}
    reward: yield
    limits: {normals: [[2, 1]], offsets: [6]}
    constraints: [temperature <= 60 with 90 %]
    context: [humidity]
    errors: {temperature: 0.5}

Source: Ren et al. (2025), Sec. 2.2 (Eq. 2), for what a task consists of.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import partial
from typing import Annotated, Any

import numpy as np
from pydantic import BeforeValidator, Discriminator, Field, SkipValidation, Tag

from rehearsal_torch.data.codings.task_codings import faces_of_text
from rehearsal_torch.data.costs import Cost, ExperimentCosts, costs_faults
from rehearsal_torch.data.known_reward import KnownReward, TargetError, TwoRewards, WeightedSum
from rehearsal_torch.data.outcome_constraint import OutcomeConstraint, constrained_names
from rehearsal_torch.data.problem_file.cases_schema import (
    DATA,
    SETTABLE,
    NamedFaces,
    Source,
    missing_roles,
    of_role,
)
from rehearsal_torch.data.problem_file.diagnostics import TaskError, key, name_faults
from rehearsal_torch.data.problem_file.task_file import built_part
from rehearsal_torch.data.problem_file.trial_variable import ROLES_AS, SET_ROLES, Role, Setting, TrialVariable
from rehearsal_torch.files.schema import (
    Fault,
    Name,
    Number,
    Schema,
    fault,
    form,
    mapping,
    meant,
    only,
    optional,
    read,
    refusal,
)
from rehearsal_torch.graphs.graph_notation import EXPECTED, CliquesForm, OrderForm, ParentsForm, WrittenGraph
from rehearsal_torch.graphs.mixed_graph import RehearsalGraph
from rehearsal_torch.spaces.box import Box
from rehearsal_torch.spaces.inequalities import InequalityError, linear
from rehearsal_torch.spaces.polytope import EmptyRegionError, Polytope

ACTIONS_AS = f"{SETTABLE}, or what an action has under variables"
CONTEXT_AS = "roots that are known before acting, [name, ...], or {name: {scale: log}}"
REWARD_AS = (
    "the outcome to maximise, a sum such as yield - 0.2*waste, {weights: {outcome: weight}}, or {targets: "
    "{outcome: value}} for the smallest squared distance; or two sums, such as [yield, -waste], for a front"
)
LIMITS_AS = "inequalities of the actions, such as 2*valve + dose <= 6"
CONSTRAINTS_AS = "inequalities of nodes, each with a probability or 95 %, such as waste <= 0.3 with 90 %"
TOLERANCE_AS = "a share of each range, from 0 to 0.5, or {action: distance} in its unit"
ERRORS_AS = "{node: standard deviation of its measurement error, in its unit}"
METHOD_AS = "the method that decides: a name that decision= takes"
HIDDEN = "of a hidden cause, measure it, or leave it out"
MOST_SETTABLE = 6
# Where each form of a graph states hidden common causes.
_HIDDEN: dict[type, str] = {ParentsForm: "bidirected", CliquesForm: "cliques", OrderForm: "order"}
_NODE, _WEIGHTS, _TARGETS, _KNOWN = form("node"), form("weights"), form("targets", "mean"), form("reward")
_TWO = form("two")


class Weights(Schema):
    """A weighted sum of outcomes."""

    weights: Annotated[dict[Name, Number], mapping("{node: weight}")] = Field(
        description="{outcome: weight} of a sum to maximise"
    )


class Targets(Schema):
    """Target values of outcomes, for the negative mean or sum of the squared distances."""

    targets: Annotated[dict[Name, Number], mapping("{node: target}")] = Field(
        description="{outcome: value} to come close to"
    )
    mean: bool = Field(default=True, description="the mean of the squared distances; false: their sum")


def _is_reward(plain: Any) -> bool:
    name = isinstance(plain, str | int) and not isinstance(plain, bool)
    has_values = isinstance(plain, dict) and not {"weights", "targets"}.isdisjoint(plain)
    two = isinstance(plain, list | tuple) and len(plain) == 2 and not isinstance(plain[0], list)
    return name or has_values or two or isinstance(plain, KnownReward | Weights | Targets)


def _reward_tag(plain: Any) -> str:
    if isinstance(plain, KnownReward | list | tuple):
        return _KNOWN if isinstance(plain, KnownReward) else _TWO
    if isinstance(plain, Weights) or (isinstance(plain, dict) and "weights" in plain):
        return _WEIGHTS
    return _TARGETS if isinstance(plain, dict | Targets) else _NODE


Sums = list[Name | Weights]
Reward = Annotated[
    Annotated[Name, Tag(_NODE)]
    | Annotated[Weights, Tag(_WEIGHTS)]
    | Annotated[Targets, Tag(_TARGETS)]
    | Annotated[KnownReward, Tag(_KNOWN)]
    | Annotated[Sums, Tag(_TWO)],
    Discriminator(_reward_tag),
    BeforeValidator(only(_is_reward, REWARD_AS), json_schema_input_type=Name | Weights | Targets | Sums),
]


def _limits(plain: Any) -> Any:
    """Inequalities, a text or several, as faces."""
    if isinstance(plain, dict):
        return plain
    if not isinstance(plain, str | list) or not plain or not all(isinstance(text, str) for text in plain):
        raise fault(LIMITS_AS, plain)
    try:
        return faces_of_text(plain)[0]
    except InequalityError as error:
        raise refusal(str(error)) from error


def _constraints(plain: Any) -> Any:
    """Outcome constraints, a text or several."""
    lines = [plain] if isinstance(plain, str) else plain
    if not isinstance(lines, list | tuple) or not all(isinstance(line, str) for line in lines):
        raise fault(CONSTRAINTS_AS, plain)
    try:
        return tuple(map(OutcomeConstraint.of, lines))
    except ValueError as error:
        raise refusal(str(error)) from error


Constraints = Annotated[
    tuple[SkipValidation[OutcomeConstraint], ...],
    BeforeValidator(_constraints, json_schema_input_type=str | list[str]),
]


def _is_tolerance(plain: Any) -> bool:
    number = isinstance(plain, int | float) and not isinstance(plain, bool)
    return isinstance(plain, dict) or (number and 0 <= plain <= 0.5)


class TrialsProblem(Schema):
    """A problem of experiments: what may be set, what is measured, and what counts."""

    data: Source | None = optional(f"the experiments so far: {DATA}")
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
    reward: Reward | None = optional(f"{REWARD_AS}; the only outcome by default")
    limits: (
        Annotated[NamedFaces, BeforeValidator(_limits, json_schema_input_type=str | list[str] | NamedFaces)]
        | None
    ) = optional(LIMITS_AS)
    constraints: Constraints = Field(default=(), description=CONSTRAINTS_AS)
    fixed: dict[Name, Setting] = Field(
        default_factory=dict, description="actions that the next experiment holds at a value"
    )
    context: dict[Name, Setting] = Field(
        default_factory=dict, description="the values of the context in the next experiment"
    )
    cost: Cost | None = optional("what any experiment costs, beside its settings")
    tolerance: (
        Annotated[
            Annotated[Number, Field(ge=0, le=0.5)] | dict[Name, Number],
            BeforeValidator(only(_is_tolerance, TOLERANCE_AS)),
        ]
        | None
    ) = optional(f"how far what was set may lie from what was proposed: {TOLERANCE_AS}")
    method: Name | None = optional(METHOD_AS)

    @classmethod
    def between(cls, parts: Mapping[str, Any]) -> list[Fault]:
        """Faults of roles, names, reward and limits, and of a graph that is none of experiments."""
        variables: Mapping[str, TrialVariable] = parts.get("variables", {})
        graph_form, limits, reward, faults = parts.get("graph"), parts.get("limits"), None, list[Fault]()
        constrained = constrained_names(parts.get("constraints", ()))
        actions, settable, outcomes = (of_role(variables, role) for role in (*SET_ROLES, "outcome"))
        faulty = set[str]()
        for name, variable in variables.items():
            for each in variable.faults():
                faults.append(Fault(f"{key('variables', name)}{each.path}", each.words))
                faulty.add(name)
        if not of_role(variables, ""):
            faults += missing_roles(variables, ("action", "outcome")[bool(settable) :])
        if variables and graph_form is not None:
            faults += name_faults(variables, dict.fromkeys(graph_form.named()), HIDDEN)
        if variables and "reward" in parts and (outcomes or parts["reward"] is not None):
            reward = built_part("reward", faults, lambda: reward_in(parts["reward"], variables, outcomes))
        if reward is not None:
            faults += _reward_faults(reward.names, constrained, variables)
        if variables:
            faults += _constraint_faults(constrained, variables, actions)
        if limits is not None and (actions or settable):
            if unknown := [name for name in limits.names if name not in actions]:
                faults.append(Fault("limits", f"{unknown[0]!r} is no action; {meant(unknown[0], actions)}"))
            elif faulty.isdisjoint(actions):
                built_part("limits", faults, lambda: limits_in(limits, box_of(variables)))
        costs = {
            name: built_part(
                f"{key('variables', name)}.cost", faults, partial(variables[name].built_cost, name)
            )
            for name in actions
            if variables[name].cost is not None and name not in faulty
        }
        if "cost" in parts and actions and faulty.isdisjoint(actions) and None not in costs.values():
            faults += costs_faults(costs_in(parts["cost"], variables), box_of(variables))
        graph = None if graph_form is None else built_part("graph", faults, graph_form.graph)
        if graph is not None:
            keys = {"graph.bidirected": f"graph.{_HIDDEN[type(graph_form)]}", "actions": "variables"}
            box = (*actions, *settable)
            ends = {name: (0.0, 1.0) if name in faulty else variables[name].ends() for name in box}
            rewarded = None if reward is None else reward.names
            context = of_role(variables, "context")
            known = causal_faults(graph, ends, rewarded, constrained, context, settable)
            faults += [each.called(keys) for each in known]
        return faults

    def parts(self) -> tuple[Any, ...]:
        """The parts of its task, in the order of `CausalTask`."""
        box = box_of(self.variables)
        limits = None if self.limits is None else limits_in(self.limits, box)
        reward = reward_in(self.reward, self.variables, of_role(self.variables, "outcome"))
        context, settable = (tuple(of_role(self.variables, role)) for role in ("context", "settable"))
        logs = tuple(name for name, variable in self.variables.items() if variable.scale == "log")
        before = {
            name: known for name, each in self.variables.items() if (known := each.known(name)) is not None
        }
        costs = costs_in(self.cost, self.variables)
        codings = tuple(
            variable.coding(name) for name, variable in self.variables.items() if variable.of_texts
        )
        errors = {name: each.error for name, each in self.variables.items() if each.error is not None}
        further = logs, before, costs, errors, settable, codings
        return self.graph.graph(), box, reward, limits, self.constraints, context, *further


def costs_in(each: float | None, variables: Mapping[str, TrialVariable]) -> ExperimentCosts | None:
    """What experiments cost; None if nothing is stated."""
    actions = tuple(of_role(variables, "action"))
    costs = {name: variables[name].built_cost(name) for name in actions if variables[name].cost is not None}
    return None if each is None and not costs else ExperimentCosts(actions, costs, each or 0.0)


def box_of(variables: Mapping[str, TrialVariable]) -> Box:
    """What the actions may be set to."""
    actions = {name: variables[name] for role in SET_ROLES for name in of_role(variables, role)}
    lower, upper = zip(*(action.ends() for action in actions.values()), strict=True)
    levels = {name: values for name, action in actions.items() if (values := action.values()) is not None}
    return Box(tuple(actions), lower, upper, levels)


def reward_in(written: Any, variables: Collection[str], outcomes: Sequence[str]) -> KnownReward:
    """The reward of a problem, by default its only outcome; ValueError if it cannot be read."""
    if isinstance(written, KnownReward):
        return written
    if isinstance(written, list):
        sums = (reward_in(part, variables, outcomes) for part in written)
        return TwoRewards(tuple(part for part in sums if isinstance(part, WeightedSum)))
    if isinstance(written, Weights):
        return WeightedSum(written.weights)
    if isinstance(written, Targets):
        return TargetError(written.targets, written.mean)
    if written is None and len(outcomes) != 1:
        raise ValueError(f"expected {REWARD_AS}, since there are {len(outcomes)} outcomes; got none")
    if written is None or written in variables:
        return WeightedSum({outcomes[0] if written is None else written: 1.0})
    summed = linear(written)
    weights = {name: weight for name, weight in summed.weights.items() if weight}
    if not weights:
        raise ValueError(f"expected {REWARD_AS}; the sum has no outcome")
    if summed.constant:
        raise ValueError(f"a constant, {summed.constant:g}, changes no decision: leave it out")
    return WeightedSum(weights)


def _constraint_faults(
    constrained: Sequence[str], variables: Mapping[str, TrialVariable], actions: Sequence[str]
) -> Iterator[Fault]:
    """Faults of what constraints limit."""
    for name in constrained:
        if name in actions:
            yield Fault("constraints", f"{name} is an action: write its inequalities under limits")
        elif name not in variables:
            yield Fault("constraints", f"{name!r} is no variable; {meant(name, variables)}", "unknown")


def _reward_faults(
    rewarded: Sequence[str], constrained: Sequence[str], variables: Mapping[str, TrialVariable]
) -> Iterator[Fault]:
    """Faults of what a reward reads, and of outcomes that it does not."""
    expected = {
        "action": "expected outcomes; add a variable for the cost of the action",
        "settable": "expected outcomes, which are never set",
        "context": "expected outcomes, which follow from the actions",
        "other": "expected outcomes: write the role outcome there, or take it out",
    }
    for name in rewarded:
        if name not in variables:
            yield Fault("reward", f"{name!r} is not under variables; {meant(name, variables)}", "unknown")
        elif (role := variables[name].role) in expected:
            yield Fault("reward", f"{name} is of the role {role}; {expected[role]}")
    unread = "an outcome that the reward does not read: add it there, or write the role other"
    for name in of_role(variables, "outcome"):
        if name not in (*rewarded, *constrained):
            yield Fault(key("variables", name), unread)


def limits_in(limits: NamedFaces, box: Box) -> Polytope:
    """Limits as faces of all actions of a box; ValueError if they are no faces, or leave no action of it."""
    stated = limits.polytope()
    columns, zeros = dict(zip(stated.names, stated.rows.T, strict=True)), np.zeros(len(stated.limits))
    normals = np.stack([columns.get(name, zeros) for name in box.names], -1)
    faces = Polytope(box.names, normals, stated.limits)
    check_limits(faces, box)
    return faces


def check_limits(limits: Polytope, box: Box) -> None:
    """ValueError if limits leave no action of a box, whatever its levels."""
    identity, ends = np.eye(len(box.names)), (box.upper_ends, np.negative(box.lower_ends))
    normals = np.concatenate([limits.rows, identity, -identity])
    try:
        Polytope(box.names, normals, np.concatenate([limits.limits, *ends]))
    except ValueError as error:
        words = error.reason if isinstance(error, EmptyRegionError) else str(error)
        raise ValueError(f"no action within its bounds satisfies them: {words}") from error


def causal_faults(
    graph: RehearsalGraph,
    actions: Mapping[str, tuple[float, float]],
    rewarded: Sequence[str] | None,
    constrained: Sequence[str] = (),
    context: Sequence[str] = (),
    settable: Sequence[str] = (),
) -> Iterator[Fault]:
    """Faults between the graph, the actions with their smallest and largest value, the nodes that the reward
    reads, None if these are unknown, those that constraints limit, the context, and settable nodes.
    """
    unset = [name for name in actions if name not in settable]
    if pairs := [" <-> ".join(pair) for pair in graph.bidirected if not {*pair}.isdisjoint(unset)]:
        words = f"no hidden cause moves an action, which is set from outside; got {', '.join(pairs)}"
        yield Fault("graph.bidirected", f"{words}: leave it out")
    for name, (lower, upper) in actions.items():
        if not lower < upper:
            words = "expected lower < upper, or at least two levels: leave out what cannot be changed"
            yield Fault(key("actions", name), words)
    targets = {target for _, target in graph.edges}
    if len(settable) > MOST_SETTABLE:
        yield Fault("actions", f"expected at most {MOST_SETTABLE} settable nodes; got {len(settable)}")
    if late := [name for name in actions if name in targets and name not in settable]:
        words = f"actions {late} have parents: an action is set from outside, remove the edges into it"
        yield Fault("graph", words)
    if late := [name for name in context if name in targets]:
        words = f"the context {late} has parents: what follows from others is not known before acting"
        yield Fault("graph", words)
    nodes = set(graph.names)
    if rewarded is None or not nodes.issuperset((*rewarded, *constrained)):
        return
    for name in constrained:
        if not set(actions) & set(graph.ancestors((name,))):
            yield Fault("constraints", f"no action leads to {name}, so that none can keep it: leave it out")
    unreached = nodes.difference(graph.ancestors((*rewarded, *constrained)))
    for kind, names in (("actions", actions), ("context", context)):
        if without_effect := [name for name in names if name in unreached]:
            what = f"{kind} {without_effect} are not ancestors of the reward {list(rewarded)}"
            yield Fault("graph", f"{what}: add their edges, or take them out")


def _context(plain: Any) -> Any:
    names = isinstance(plain, list) and all(isinstance(name, str | int) for name in plain)
    return {name: {} for name in plain} if names else plain


class TaskKeys(Schema):
    """The schema of a task; its actions and limits are validated as those of a problem."""

    graph: WrittenGraph = Field(description=EXPECTED)
    actions: Annotated[dict[Name, Any], mapping(ACTIONS_AS)] = Field(description=ACTIONS_AS)
    settable: Annotated[dict[Name, Any], mapping(ACTIONS_AS)] = Field(default_factory=dict)
    reward: Reward = Field(description=REWARD_AS)
    limits: Any = None
    constraints: Any = ()
    context: Annotated[
        dict[Name, dict[str, Any]],
        BeforeValidator(_context, json_schema_input_type=list[Name] | dict[Name, Any]),
    ] = Field(default_factory=dict, description=CONTEXT_AS)
    cost: Any = None
    errors: dict[Name, Any] = Field(default_factory=dict, description=ERRORS_AS)


TASK_PARTS = tuple(TaskKeys.model_fields)


def problem_of_task(plain: Mapping[str, Any], source: str = "the task") -> TrialsProblem:
    """The problem of a task; a TaskError lists all faults, with the keys of the task."""
    parts, faults = read(TaskKeys, plain)
    if "settable" in plain:
        faults = [each for each in faults if (each.path, each.kind) != ("actions", "missing")]
    # Keys of the problem to those of the task.
    actions, keys = dict[str, Any](), dict[str, str]()
    given = [(part, *pair) for part in ("actions", "settable") for pair in parts.pop(part, {}).items()]
    for part, name, settable in given:
        path, task_path = key("variables", name), key(part, name)
        faults += [Fault(task_path, "is an action")] if name in actions else []
        keys[path] = task_path
        if not isinstance(settable, dict):
            settable, keys[f"{path}.range"] = {"range": settable}, task_path
        elif "values" in settable:
            settable = {"levels": settable["values"], **{k: v for k, v in settable.items() if k != "values"}}
            keys[f"{path}.levels"] = f"{task_path}.values"
        actions[name] = {**settable, "role": "settable" if part == "settable" else "action"}
    if isinstance(parts.get("limits"), dict):
        parts["limits"] = {"names": [name for part, name, _ in given if part == "actions"], **parts["limits"]}
    nodes, reward = parts["graph"].named() if "graph" in parts else [], parts.get("reward")
    context = parts.pop("context", {})
    keys |= {key("variables", name): key("context", name) for name in context if name not in actions}
    faults += [Fault(key("context", name), "is an action") for name in context if name in actions]
    try:
        rewarded = reward_in(reward, nodes, ()).names
    except ValueError:
        rewarded = ()
    part = [*type(reward).model_fields][:1] if isinstance(reward, Schema) else []
    for name in rewarded:
        keys.setdefault(key("variables", name), "reward" if reward == name else key("reward", *part, name))
    roles = dict.fromkeys([*actions, *nodes], "other") | dict.fromkeys(rewarded, "outcome")
    contexts = {name: {**plain, "role": "context"} for name, plain in context.items()}
    variables: dict[str, Any] = roles | contexts | actions
    for name, error in parts.pop("errors", {}).items():
        known = variables.get(name, "other")
        variables[name] = {**(known if isinstance(known, dict) else {"role": known}), "error": error}
        keys[f"{key('variables', name)}.error"] = key("errors", name)
    if variables:
        parts["variables"] = variables
    valid, more = read(TrialsProblem, parts)
    # Missing parts are already among the faults, with the keys of the task.
    faults += [each.called(keys) for each in more if each.kind != "missing"]
    if faults:
        raise TaskError(source, faults)
    return TrialsProblem.model_construct(**valid)
