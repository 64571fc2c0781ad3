"""The schema of problem files that ask for a sequence, and of their tasks: roles of columns, and the reward.

    question: sequence
    data: machines.csv                  # one row for each unit and time
    unit: machine                       # the column that says whose row it is
    time: week                          # the column of time: numbers, or dates, which count in days
    step: 1                             # optional: length of a step, month or week; rows are then merged
    variables:
      wear: {role: state, unit: "%", range: [0, 100]}
      age: {role: static, unit: years}
      model: {role: static, levels: [A, B, C]}
      shift: context                    # varies, but no action changes it
      service: {role: action, levels: [none, minor, major], cost: [0, 2, 6]}
      coolant: {role: action, unit: litres, cost: 0.1}
    levels: 5                           # of amounts: none, and quantile intervals of the others
    reward:                             # of a step: weights of states, minus a score, minus costs
      weights: {wear: -0.5}
      score: {bearing: {wear: {"> 70": 3, "> 85": 6}}}
      name: risk and cost
    missing: refuse                     # or drop, or {carry: 2}
    words: {unit: machine, units: machines, step: week}
    order: [wear]                       # optional: which state acts on which within a step
    rules:                              # optional: which changes may be recommended at all
      support: 5                        # in how many units the amount was given in a comparable step
      most_levels: 1                    # by how many levels a step
      boluses: [coolant]                # a single highest amount between two steps without it
      forbidden: {coolant: lower}       # or raise, or change
      least_gain: 0.5                   # else everything stays as it was
    changes: 3                          # at most so many actions of a unit are changed

The cost of levels is a list, or a mapping, {major: 6}, in which the others cost nothing; a single number is
the cost of each step up. Of several rows in a step (`combine`), the highest level counts, amounts are added
up, and rates, whose unit is one per time (mg/day, mcg/kg/min, litres per hour), are averaged.

A task, a YAML file or plain data, has no question, data, method and changes. In place of variables it may
have the columns of each role (`renamed`):

    varying: {wear: {unit: "%", range: [0, 100]}}
    static: {age: {unit: years}, model: {values: [A, B, C]}}
    contextual: [shift]
    actions: {service: {levels: [none, minor, major]}, coolant: {unit: litres}}

Source: Tsirtsis and Gomez-Rodriguez (2023), Sec. 2 and App. G.1, for the parts of an episode.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

from pydantic import AfterValidator, BeforeValidator, Field, ValidationInfo, WithJsonSchema
from pydantic_core import PydanticCustomError

from rehearsal_torch.data.problem_file.cases_schema import DATA, Kind, Source, missing_roles, of_role, one_of
from rehearsal_torch.data.problem_file.diagnostics import TaskError
from rehearsal_torch.data.problem_file.task_file import task_content
from rehearsal_torch.files.bounded_yaml import repeated
from rehearsal_torch.files.schema import (
    LARGEST,
    Fault,
    Name,
    Names,
    Number,
    Schema,
    Sides,
    fault,
    mapping,
    meant,
    only,
    optional,
    path_of,
    plain_of,
    read,
    refusal,
    shown,
)
from rehearsal_torch.problems.sequences.column_roles import Action, Carry, Column, EpisodeRoles, Words
from rehearsal_torch.problems.sequences.time_steps import Calendar

ROLES = ("state", "static", "context", "action", "other")
ROLES_AS = (
    "state (a model predicts it), static (constant in a unit), context (varies, and no action changes it), "
    "action, or other"
)
REWARD_AS = "weights of states, a score of limits, or both: {weights: {...}, score: {...}}"
MISSING_AS = "refuse, drop or {carry: m} with m steps of at least 1"
STEP_AS = "a length above 0, in the unit of the time column (days, for dates), or month or week"
LEVELS_AS = "a whole number of levels, at least 2, or the list of their names"
MOST_LEVELS = 1000
MOST_COMBINATIONS = 2**20
# Texts that are an empty cell in a table.
EMPTY = frozenset(("", "NA", "N/A", "n/a", "nan", "NaN", "-nan", "-NaN", "null", "NULL", "None", "<NA>"))
# Role to the settings that a variable may have beside its role and kind.
_SETTINGS = {
    "state": ("unit", "range"),
    "static": ("unit", "range", "levels"),
    "context": ("unit", "range"),
    "action": ("unit", "levels", "cost", "combine"),
    "other": ("unit", "range", "levels"),
}
_NUMBERS = ("continuous", "integer", "binary")

# A unit per time.
_TIMES = (
    "s|sec|second|min|minute|h|hr|hour|d|day|w|wk|week|mo|month|y|yr|year|"
    "sekunde|std|stunde|tag|woche|monat|jahr"
)
_OFTEN = "(dai|hour|week|month|year)ly|(st.nd|t.g|w.chent|monat|j.hr)lich"
_RATE = re.compile(rf"(/|\b(per|pro|je)\b)\s*\d*\s*({_TIMES})(s|e|en|n)?\b|\b({_OFTEN})\b", re.IGNORECASE)
_COMPARISON = re.compile(r"\s*(<=|>=|<|>)\s*[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?\s*\Z")


def text_of(value: Any) -> str:
    """A level or a category as text: whole numbers without a decimal point."""
    if isinstance(value, bool):
        remedy = "YAML reads yes, no, on and off as Booleans, so put it in quotes"
        raise fault("a name or a number", value, remedy)
    if isinstance(value, int | float):
        return f"{value:.12g}"
    if not isinstance(value, str) or not value.strip():
        raise fault("a name or a number", value)
    return value.strip()


def _levels(value: Any, info: ValidationInfo) -> list[str]:
    """The names of levels, of an action also from their number."""
    static = info.data.get("role") == "static"
    if isinstance(value, int) and value in range(2, MOST_LEVELS + 1) and not static:
        return [str(number) for number in range(value)]
    if not isinstance(value, list) or not 2 <= len(value) <= MOST_LEVELS:
        list_only = static or isinstance(value, list)
        raise fault(f"2 to {MOST_LEVELS} names" if list_only else LEVELS_AS, value)
    names = [text_of(name) for name in value]
    if empty := [name for name in names if name in EMPTY]:
        raise fault("names", value, f"{empty[0]!r} in a table is read as an empty cell, use another word")
    if twice := repeated(names):
        raise fault("each name once", value, f"{twice[0]} occurs twice, keep one")
    return names


def _cost(value: Any) -> Any:
    costs = value.values() if isinstance(value, dict) else value if isinstance(value, list) else [value]
    if not all(map(_is_number, costs)):
        raise fault("a number, a list of numbers, or {level: number}", value)
    return {text_of(level): cost for level, cost in value.items()} if isinstance(value, dict) else value


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= LARGEST


def _is_missing_rule(value: Any) -> bool:
    steps = value.get("carry") if isinstance(value, dict) and len(value) == 1 else None
    return value in ("refuse", "drop") or (type(steps) is int and steps >= 1)


def _is_step(value: Any) -> bool:
    return value in (None, *get_args(Calendar)) or (_is_number(value) and 0 < value < LARGEST)


def _variable(plain: Any) -> Any:
    return {"role": plain} if isinstance(plain, str) else plain


class SequenceVariable(Schema):
    """A variable of episodes: a column of the table."""

    role: Annotated[str, BeforeValidator(one_of(ROLES)), WithJsonSchema({"enum": list(ROLES)})] = Field(
        description=ROLES_AS
    )
    kind: Kind | None = optional("what its values are; categorical for static texts")
    unit: Name | None = optional("its unit; amounts of an action have one")
    range: Annotated[Sides, Field(min_length=2, max_length=2)] | None = optional(
        "[lowest, highest] possible value, null for an open side"
    )
    levels: (
        Annotated[
            list[str],
            BeforeValidator(
                _levels,
                json_schema_input_type=Annotated[int, Field(ge=2, le=MOST_LEVELS)]
                | Annotated[list[str | float], Field(min_length=2, max_length=MOST_LEVELS)],
            ),
        ]
        | None
    ) = optional(
        "of an action: its levels in order, or their number; of static texts: all of them, the "
        "reference first"
    )
    cost: Annotated[float | list[float] | dict[str, float], BeforeValidator(_cost)] | None = optional(
        "of an action: of each level, or of one unit of an amount"
    )
    combine: Literal["sum", "mean", "max"] | None = optional(
        "of an action: how rows that fall into one step are joined"
    )

    def costs(self) -> tuple[float, ...]:
        """The cost of each level, or of one unit of an amount, (1,); PydanticCustomError if it is neither."""
        cost, levels = self.cost, self.levels
        if cost is None:
            return ()
        if isinstance(cost, float):
            return (cost,) if levels is None else tuple(cost * place for place in range(len(levels)))
        if levels is None:
            raise fault("a number, the cost of one unit of the dose", cost)
        if isinstance(cost, dict):
            if unknown := [name for name in cost if name not in levels]:
                raise refusal(f"{unknown[0]!r} is no level; {meant(unknown[0], levels)}")
            return tuple(cost.get(name, 0.0) for name in levels)
        if len(cost) != len(levels):
            numbers = f"{len(levels)} numbers, one for each of {', '.join(levels[:10])}"
            raise fault(f"a number for each step up, or {numbers}", cost)
        return tuple(cost)

    def faults(self, where: str) -> Iterator[Fault]:
        """Faults of settings that do not go with its role, its kind, or each other; `where` is its path."""
        role, kind, levels = self.role, self.kind, self.levels
        for setting in ("unit", "range", "levels", "cost", "combine"):
            if getattr(self, setting) is not None and setting not in _SETTINGS[role]:
                yield Fault(f"{where}.{setting}", f"a variable of the role {role} has none: leave it out")
        if role in ("state", "context") and kind not in (None, *_NUMBERS):
            expected = f"expected numbers, one of {', '.join(_NUMBERS)}, for the role {role}; got {kind}"
            yield Fault(f"{where}.kind", f"{expected}: write a column of 0 and 1 for each value but one")
        if role != "action":
            return
        if kind == "categorical":
            order = "levels of an action have an order, from least to most"
            remedy = "write kind: ordinal and levels, or an action of its own for each class"
            yield Fault(f"{where}.kind", f"{order}: {remedy}")
        if kind in ("binary", "ordinal") and levels is None:
            words = f"{kind} needs levels: [...], in order; leave kind out for amounts"
            yield Fault(f"{where}.kind", words)
        if kind == "continuous" and levels is not None:
            yield Fault(f"{where}.levels", "kind: continuous is for amounts: leave one of the two out")
        if levels is not None and self.unit is not None:
            yield Fault(where, "expected levels, or a unit of doses; got both: keep one of them")
        if levels is not None and self.combine in ("sum", "mean"):
            yield Fault(f"{where}.combine", f"levels of merged rows are joined by max; got {self.combine}")
        try:
            self.costs()
        except PydanticCustomError as error:
            yield Fault(f"{where}.cost", error.message())

    def action(self, name: str) -> Action:
        """The coordinate of an action that it is."""
        combine = "max" if self.levels else "mean" if _RATE.search(self.unit or "") else "sum"
        return Action(name, self.unit or "", tuple(self.levels or ()), self.costs(), self.combine or combine)

    def column(self, name: str) -> Column:
        """The feature that it is."""
        low, high = self.range or (None, None)
        return Column(name, self.unit or "", low, high, tuple(self.levels or ()))


_CRITERIA = '{state: {"> 70": 3}}'
_Criteria = Annotated[dict[Name, Annotated[dict[Name, Number], mapping('{"> 70": 3}')]], mapping(_CRITERIA)]


class SequenceReward(Schema):
    """The reward of a step."""

    weights: Annotated[dict[Name, Number], mapping("{state: weight}")] | None = optional(
        "{state: what a unit of it is worth}, negative for a harm"
    )
    score: Annotated[dict[Name, _Criteria], mapping(f"{{part: {_CRITERIA}}}")] | None = optional(
        f"part to points beyond limits, {_CRITERIA}, which count against the reward; of each part the most"
    )
    name: Name | None = optional("what reports call the reward")


class SequenceWords(Schema):
    """What the units and the steps are called."""

    unit: Name | None = optional("of one unit, such as machine; the column's name by default")
    units: Name | None = optional("of several, such as machines")
    step: Name | None = optional("of a step, such as week")


class SequenceRules(Schema):
    """Which changes may be recommended (`objectives.change_rules`)."""

    support: Annotated[int, Field(ge=0)] | None = optional(
        "in how many units an amount was given in a comparable step, at least; 5 by default, 0 for any"
    )
    most_levels: Annotated[int, Field(ge=1)] | None = optional(
        "by how many levels an action changes in a step, at most; by default as 99 % of the recorded changes"
    )
    boluses: Names | None = optional(
        "actions whose highest amount may be given in a single step, with none before and after"
    )
    forbidden: (
        Annotated[dict[Name, Literal["raise", "lower", "change"]], mapping("{action: raise}")] | None
    ) = optional("{action: the kind of change that is never recommended}")
    least_gain: (
        Annotated[Number, AfterValidator(only(lambda value: value >= 0, "a number of at least 0"))] | None
    ) = optional("what all changes together must gain, at least, in the unit of the reward; 0 by default")


class SequenceProblem(Schema):
    """A problem of episodes: whose rows, what was done in each step, and what a step is worth."""

    data: Source | None = Field(description=DATA)
    unit: Name = Field(description="the column that says whose row it is")
    time: Name = Field(description="the column of time: numbers, or dates, which count in days")
    step: Annotated[
        Annotated[float, Field(gt=0)] | Calendar | None, BeforeValidator(only(_is_step, STEP_AS))
    ] = optional("the length of a step, into which rows are merged, or month or week")
    variables: Annotated[
        dict[
            Name,
            Annotated[
                SequenceVariable, BeforeValidator(_variable, json_schema_input_type=SequenceVariable | str)
            ],
        ],
        mapping("{variable: {role: ...}}"),
    ] = Field(description=f"{{variable: {{role: ...}}}}; the roles are {ROLES_AS}")
    levels: Annotated[int, Field(ge=2, le=MOST_LEVELS)] = Field(
        default=5, description=f"2 to {MOST_LEVELS} levels of amounts: none, and intervals of the others"
    )
    reward: SequenceReward = Field(description=REWARD_AS)
    missing: Annotated[
        Literal["refuse", "drop"]
        | Annotated[dict[Literal["carry"], Annotated[int, Field(ge=1)]], Field(min_length=1)],
        BeforeValidator(only(_is_missing_rule, MISSING_AS)),
    ] = Field(default="refuse", description=f"empty cells and missing steps: {MISSING_AS}")
    words: SequenceWords = Field(
        default=SequenceWords(),
        description="what reports call things: {unit: machine, units: machines, step: week}",
    )
    order: Names = Field(default=[], description="states that come about in this order within a step")
    rules: SequenceRules = Field(
        default=SequenceRules(),
        description="which changes may be recommended: {most_levels: 1, forbidden: {...}}",
    )
    method: Name | None = optional("the method that decides: a name that decision= takes")
    changes: Annotated[int, Field(ge=1)] | None = optional(
        "at most how many actions of a unit are changed, a whole number of at least 1"
    )

    @classmethod
    def of(cls, task: "TaskLike") -> "SequenceProblem":
        """The problem of a task; a TaskError lists all faults if it is no YAML file or has wrong parts."""
        if isinstance(task, SequenceProblem):
            return task
        source, content = task_content(task, _TASK_PARTS)
        problem, keys, faults = renamed(plain_of(content))
        valid, others = read(cls, problem)
        # Missing parts of a task without variables are already among the faults.
        others = [each for each in others if not keys or (each.path, each.kind) != ("variables", "missing")]
        if faults := [*(each.called(keys) for each in others), *faults]:
            columns = [problem.get("unit"), problem.get("time"), *(problem.get("variables") or ())]
            raise TaskError(source, faults, dict.fromkeys(name for name in columns if isinstance(name, str)))
        return cls.model_construct(**valid)

    @classmethod
    def between(cls, parts: Mapping[str, Any]) -> Iterable[Fault]:
        """Faults of roles, of settings that do not go together, and of names of states and actions."""
        unit, time, variables = parts.get("unit"), parts.get("time"), parts.get("variables")
        if unit is not None and unit == time:
            yield Fault("time", f"{time!r} says whose row it is: name the column of time")
        if variables is None:
            return
        for name, variable in variables.items():
            where = path_of(("variables", name))
            if name in (unit, time) and variable.role != "other":
                yield Fault(where, "it says whose row it is, or when: take it out of variables")
            yield from variable.faults(where)
        yield from missing_roles(variables, ("state", "action"))
        states, names = of_role(variables, "state"), of_role(variables, "action")
        actions = {name: variables[name] for name in names}
        if "levels" in parts:
            yield from _too_many(actions, parts["levels"])
        rules = parts.get("rules") or SequenceRules()
        yield from _unknown("rules", (*(rules.boluses or ()), *(rules.forbidden or ())), names, "action")
        yield from _unknown("order", parts.get("order", ()), states, "state")
        reward = parts.get("reward")
        if reward is None:
            return
        if not (reward.weights or reward.score or any(each.cost is not None for each in actions.values())):
            yield Fault("reward", f"expected {REWARD_AS}; got none, and no action has a cost")
        yield from _unknown("reward.weights", reward.weights or (), states, "state")
        for part, criteria in (reward.score or {}).items():
            where = path_of(("reward", "score", part))
            for ratio, points in criteria.items():
                columns = map(str.strip, ratio.split("/"))
                yield from _unknown(where, columns, states and states + names, "state and no action")
                for text, number in points.items():
                    if not _COMPARISON.match(text) or number < 0:
                        expected = 'a comparison and points of at least 0, such as "> 70": 3'
                        yield Fault(where, f"expected {expected}; got {text!r}: {number:g}")

    def roles(self) -> EpisodeRoles:
        """The roles of its columns."""
        words, reward = self.words, self.reward
        unit = words.unit or self.unit.replace("_", " ")
        varying, static, contextual = (
            tuple(self.variables[name].column(name) for name in of_role(self.variables, role))
            for role in ("state", "static", "context")
        )
        actions = tuple(self.variables[name].action(name) for name in of_role(self.variables, "action"))
        return EpisodeRoles(
            unit=self.unit,
            time=self.time,
            step=self.step,
            varying=varying,
            static=static,
            contextual=contextual,
            actions=actions,
            count=max((len(each.levels) or self.levels for each in actions), default=self.levels),
            weights=dict(reward.weights or {}),
            score=dict(reward.score or {}),
            reward_name=reward.name or "",
            missing=Carry.of(self.missing),
            words=Words(unit, words.units or f"{unit}s", words.step or ""),
            rules=self.rules.model_dump(exclude_none=True),
            order=tuple(self.order),
        )

    def to_plain(self) -> dict[str, Any]:
        """The task as plain data, which `of` reads back; parts with their default are left out."""
        return self.model_dump(
            exclude={"data", "method", "changes"}, exclude_none=True, exclude_defaults=True
        )


def _unknown(part: str, names: Iterable[str], known: Sequence[str], role: str) -> Iterator[Fault]:
    """Faults of names that are not known, unless nothing is."""
    for name in names if known else ():
        if name not in known:
            yield Fault(part, f"{name!r} is no {role}; {meant(name, known)}")


def _too_many(actions: Mapping[str, SequenceVariable], levels: int) -> Iterator[Fault]:
    """Faults of the number of levels, which all actions of a model share."""
    counts = {name: len(action.levels or ()) for name, action in actions.items()}
    largest = max(counts.values(), default=0)
    if 0 in counts.values() and largest > levels:
        name = next(name for name, count in counts.items() if count == largest)
        why = f"since {name} has as many and all actions share one number of levels"
        yield Fault("levels", f"expected at least {largest}, {why}; got {levels}")
    elif max(largest, levels) ** len(actions) > MOST_COMBINATIONS:
        words = f"expected at most {MOST_COMBINATIONS} combinations of levels"
        yield Fault("variables", f"{words}; take actions out, or use fewer")


# A task as a file, as plain data, or validated.
TaskLike = str | Path | Mapping[str, Any] | SequenceProblem | None
_ROLE_OF_PART = {"varying": "state", "static": "static", "contextual": "context", "actions": "action"}
# The parts that a problem file has, and a task has not.
_FILE_PARTS = ("data", "method", "changes")
_TASK_PARTS = (
    *_ROLE_OF_PART,
    *(part for part in SequenceProblem.model_fields if part not in ("variables", *_FILE_PARTS)),
)
_COLUMNS_AS = (
    "a list of columns, each once, or {column: {unit: mm/s, range: [0, null]}}, of actions {column: {levels: "
    "[none, minor, major]}}"
)


def renamed(task: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, str], list[Fault]]:
    """A task with the parts of a problem, variables in the place of columns of each role.

    Returns:
        The parts; keys of variables to those of the task, for `Fault.called`, empty if the task has
        variables; and the faults of columns.
    """
    faults = [Fault(part, "a task has none: leave it out") for part in _FILE_PARTS if part in task]
    problem = {"data": None} | {part: task[part] for part in task if part not in _FILE_PARTS}
    if "variables" in task:
        return problem, {}, faults
    variables, keys = dict[str, Any](), {"variables": "actions"}
    for part, role in _ROLE_OF_PART.items():
        columns = _columns(problem.pop(part, None))
        if columns is None or (not columns and part in ("varying", "actions")):
            got = f"; got {shown(task[part])}" if part in task else ""
            faults.append(Fault(part, f"{'' if got else 'missing; '}expected {_COLUMNS_AS}{got}"))
            continue
        for key, content in columns.items():
            name = str(key) if type(key) is int else key
            task_path, path = path_of((part, name)), path_of(("variables", name))
            settings = {} if content is None else {"range": content} if isinstance(content, list) else content
            if not isinstance(name, str):
                faults.append(Fault(part, f"expected a name; got {shown(key)}: put it in quotes"))
            elif name in variables:
                faults.append(Fault(name, "the column has several roles; keep one of them"))
            elif not isinstance(settings, dict) or "role" in settings:
                faults.append(
                    Fault(task_path, f"expected {{key: value}} without a role; got {shown(content)}")
                )
            else:
                keys[path] = task_path
                if role == "static":
                    keys[f"{path}.levels"] = f"{task_path}.values"
                    settings = {"levels" if each == "values" else each: settings[each] for each in settings}
                variables[name] = {"role": role, **settings}
    return problem | ({"variables": variables} if variables else {}), keys, faults


def _columns(plain: Any) -> dict[Any, Any] | None:
    """Column to its settings, None for those of a list of columns; None if it is neither."""
    names = [plain] if isinstance(plain, str) else [] if plain is None else plain
    if isinstance(names, list):
        valid = all(isinstance(name, str | int) for name in names) and not repeated(map(str, names))
        return dict.fromkeys(names) if valid else None
    return names if isinstance(names, dict) else None
