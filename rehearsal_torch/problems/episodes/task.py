"""Tasks of episodes: what the columns of a table of (unit, time) mean, as a YAML file or plain data.

    unit: machine                       # the column that says whose row it is
    time: week                          # the column of time: numbers, or dates, which count in days
    step: 1                             # optional: length of a step, month or week; rows are then merged
    varying:                            # states that a model predicts, with optional unit and range
      wear: {unit: "%", range: [0, 100]}
      vibration: {unit: mm/s}
    static: {age: {unit: years}, model: {values: [A, B, C]}}
    contextual: [shift]                 # optional: varies, but no action changes it
    actions:                            # named or numbered levels, or doses with their unit
      service: {levels: [none, minor, major], cost: [0, 2, 6]}
      coolant: {unit: litres, cost: 0.1}
    levels: 5                           # of doses: none, and quantile intervals of the others
    reward:                             # of a step: weights of states, minus a score, minus costs
      weights: {vibration: -0.5}
      score: {bearing: {wear: {"> 70": 3, "> 85": 6}}}
      name: risk and cost
    missing: refuse                     # or drop, or {carry: 2}
    words: {unit: machine, units: machines, step: week}
    order: [wear, vibration]            # optional: which state acts on which within a step
    rules:                              # optional: which changes may be recommended at all
      support: 5                        # in how many units the dose was given in a comparable step
      most_levels: 1                    # by how many levels a step
      boluses: [coolant]                # a single highest dose between two steps without it
      forbidden: {coolant: lower}       # or raise, or change
      least_gain: 0.5                   # else everything stays as it was

The cost of levels is a list, or a mapping, {major: 6}, in which the others cost nothing; a single number is
the cost of each step up. Of several rows in a step (`combine`), the highest level counts, amounts are added
up, and rates, whose unit is one per time (mg/day, mcg/kg/min, litres per hour), are averaged. All faults are
listed at once, each with the path of its key.

Source: Tsirtsis and Gomez-Rodriguez (2023), Sec. 2 and App. G.1, for the parts of an episode.
"""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

from pydantic import BeforeValidator, Field

from rehearsal_torch.data.task_file import TaskError, task_content
from rehearsal_torch.files.plain import repeated
from rehearsal_torch.files.schema import (
    Fault,
    Name,
    Names,
    Number,
    Schema,
    Sides,
    fault,
    mapping,
    meant,
    read,
    shown,
)
from rehearsal_torch.problems.episodes.roles import Action, Calendar, Carry, Column, EpisodeRoles, Words

# A task as a file, as its content, or as it was read.
TaskLike = str | Path | Mapping[str, Any] | EpisodeRoles | None
MOST_LEVELS = 1000
# What the reader of a table takes for an empty cell.
EMPTY = frozenset(("", "NA", "N/A", "n/a", "nan", "NaN", "-nan", "-NaN", "null", "NULL", "None", "<NA>"))
COLUMNS_AS = "a list of columns, or {column: {unit: mm/s, range: [0, null]}}"
STATIC_AS = "a list of columns, or {column: {unit: years}} or {column: {values: [A, B]}}"
ACTIONS_AS = (
    "{column: {levels: 3}} or {column: {levels: [none, minor, major]}} for levels, {column: {unit: litres}} "
    "for doses"
)
REWARD_AS = "weights of states, a score of limits, or both: {weights: {...}, score: {...}}"
MISSING_AS = "refuse, drop or {carry: m} with m steps of at least 1"
LEVELS_AS = "a whole number of levels, at least 2, or the list of their names"


# A unit per time.
_TIMES = "s|sec|second|min|minute|h|hr|hour|d|day|w|wk|week|mo|month|y|yr|year"
_RATE = re.compile(rf"(/|\bper\b)\s*\d*\s*({_TIMES})s?\b|\b(dai|hour|week|month|year)ly\b", re.IGNORECASE)
_RULE = re.compile(r"\s*(<=|>=|<|>)\s*[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?\s*\Z")


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


def _texts(values: Any) -> Any:
    if not isinstance(values, list) or not 2 <= len(values) <= MOST_LEVELS:
        raise fault(f"2 to {MOST_LEVELS} names", values)
    names = [text_of(each) for each in values]
    if empty := [name for name in names if name in EMPTY]:
        raise fault("names", values, f"{empty[0]!r} in a table is read as an empty cell, use another word")
    if twice := repeated(names):
        raise fault("each name once", values, f"{twice[0]} occurs twice, keep one")
    return names


def _levels(value: Any) -> Any:
    if isinstance(value, int) and not isinstance(value, bool) and 2 <= value <= MOST_LEVELS:
        return [str(number) for number in range(value)]
    if isinstance(value, list):
        return _texts(value)
    raise fault(LEVELS_AS, value)


def _features(expected: str) -> BeforeValidator:
    """A list of columns, or a mapping from columns to what is known of them; null and [] for none."""

    def check(value: Any) -> Any:
        if value is None:
            return {}
        names = [value] if isinstance(value, str) else value
        if isinstance(names, list):
            if len({str(name) for name in names}) < len(names):
                raise fault("each column once", value)
            if any(isinstance(name, list | dict) for name in names):
                raise fault(expected, value)
            return {name: {} for name in names}
        if not isinstance(value, dict):
            raise fault(expected, value)
        return {name: _feature(each) for name, each in value.items()}

    return BeforeValidator(check)


def _feature(each: Any) -> Any:
    return {} if each is None else {"range": each} if isinstance(each, list) else each


def _missing(value: Any) -> Any:
    known = isinstance(value, str) and value in ("refuse", "drop")
    carried = value.get("carry") if isinstance(value, dict) and set(value) == {"carry"} else None
    whole = isinstance(carried, int) and not isinstance(carried, bool) and carried >= 1
    if not known and not whole:
        raise fault(MISSING_AS, value)
    return value


def _step(value: Any) -> Any:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if value is not None and value not in get_args(Calendar) and not (number and 0 < value < 1e150):
        expected = "a length above 0, in the unit of the time column (days, for dates), or month or week"
        raise fault(expected, value)
    return value


class FeatureForm(Schema):
    """A state or a contextual column."""

    unit: Name | None = None
    range: Sides | None = None


class StaticForm(FeatureForm):
    """A static column: a number, or one of some values."""

    values: Annotated[list[str], BeforeValidator(_texts)] | None = None


class ActionForm(Schema):
    """An action: levels, or doses."""

    levels: Annotated[list[str], BeforeValidator(_levels)] | None = None
    unit: Name | None = None
    cost: Any = None
    combine: Literal["sum", "mean", "max"] | None = None


class RewardForm(Schema):
    """The reward of a step."""

    weights: Annotated[dict[Name, Number], mapping("{state: weight}")] | None = None
    score: Annotated[dict[Name, Any], mapping('{part: {state: {"> 70": 3}}}')] | None = None
    name: Name | None = None


class WordsForm(Schema):
    """What the units and the steps are called."""

    unit: Name | None = None
    units: Name | None = None
    step: Name | None = None


class RulesForm(Schema):
    """Which changes may be recommended (`objectives.change_rules`)."""

    support: Annotated[int, Field(ge=0)] | None = None
    most_levels: Annotated[int, Field(ge=1)] | None = None
    boluses: Names | None = None
    forbidden: (
        Annotated[dict[Name, Literal["raise", "lower", "change"]], mapping("{action: raise}")] | None
    ) = None
    least_gain: Annotated[Number, Field(ge=0)] | None = None


class EpisodeTaskFile(Schema):
    """The schema of a task of episodes."""

    unit: Name = Field(description="the column that says whose row it is")
    time: Name = Field(description="the column of time")
    step: Annotated[float | int | Calendar | None, BeforeValidator(_step)] = None
    varying: Annotated[dict[Name, FeatureForm], _features(COLUMNS_AS)] = Field(description=COLUMNS_AS)
    static: Annotated[dict[Name, StaticForm], _features(STATIC_AS)] = Field(default_factory=dict)
    contextual: Annotated[dict[Name, FeatureForm], _features(COLUMNS_AS)] = Field(default_factory=dict)
    actions: Annotated[dict[Name, ActionForm], mapping(ACTIONS_AS)] = Field(description=ACTIONS_AS)
    levels: int = 5
    reward: RewardForm = Field(description=REWARD_AS)
    missing: Annotated[Any, BeforeValidator(_missing)] = "refuse"
    words: WordsForm = Field(default_factory=WordsForm)
    rules: RulesForm = Field(default_factory=RulesForm)
    order: Names = Field(default_factory=list)


PARTS = tuple(EpisodeTaskFile.model_fields)


def episode_task(task: TaskLike) -> EpisodeRoles:
    """Reads a task of episodes; TaskError lists all faults if it is no YAML file or has wrong parts."""
    if isinstance(task, EpisodeRoles):
        return task
    source, plain = task_content(task, PARTS)
    found, faults = read(EpisodeTaskFile, plain)
    if "levels" in found and not 2 <= found["levels"] <= MOST_LEVELS:
        faults.append(Fault("levels", f"expected 2 to {MOST_LEVELS} levels; got {found['levels']}"))
    states, named = list(found.get("varying", ())), _named(found)
    if "varying" in found and not states:
        faults.append(Fault("varying", "expected at least one state that a model predicts; got none"))
    for name in dict.fromkeys(named):
        if named.count(name) > 1:
            words = f"the column has {named.count(name)} roles; keep one of them"
            faults.append(Fault(name, words, "two roles"))
    actions = [_action(name, form, faults) for name, form in found.get("actions", {}).items()]
    if actions and found.get("levels", 0) >= 2:
        faults += _too_many(actions, int(found["levels"]))
    unknown = [name for name in found.get("order", ()) if states and name not in states]
    faults += [Fault("order", f"{name!r} is no varying column; {meant(name, states)}") for name in unknown]
    if "rules" in found:
        named_doses = [*(found["rules"].boluses or ()), *(found["rules"].forbidden or ())]
        known = [action.name for action in actions]
        unknown = [name for name in named_doses if name not in known]
        faults += [Fault("rules", f"{name!r} is no action; {meant(name, known)}") for name in unknown]
    if "reward" in found:
        faults += _reward_faults(found["reward"], states, actions)
    if faults:
        raise TaskError(source, faults, dict.fromkeys(named))
    return _roles(found, tuple(actions))


def _named(found: Mapping[str, Any]) -> list[str]:
    """Every column that the task names, in the order of its parts."""
    keys = [found[part] for part in ("unit", "time") if part in found]
    return keys + [
        name for part in ("varying", "static", "contextual", "actions") for name in found.get(part, ())
    ]


def _action(name: str, form: ActionForm, faults: list[Fault]) -> Action:
    where = f"actions.{name}"
    if form.levels is not None and form.unit is not None:
        faults.append(Fault(where, "expected levels, or a unit of doses; got both: keep one of them"))
    if form.levels is not None and form.combine in ("sum", "mean"):
        words = f"levels of merged rows are joined by max; got {form.combine}"
        faults.append(Fault(f"{where}.combine", words))
    costs: tuple[float, ...] = ()
    if form.cost is not None:
        costs = _costs(f"{where}.cost", form.cost, form.levels, faults)
    usual = "max" if form.levels is not None else "mean" if _RATE.search(form.unit or "") else "sum"
    return Action(name, form.unit or "", tuple(form.levels or ()), costs, form.combine or usual)


def _costs(where: str, cost: Any, levels: Sequence[str] | None, faults: list[Fault]) -> tuple[float, ...]:
    """The cost of each level, in which levels left out cost nothing, or of one unit of a dose, (1,)."""
    if _is_number(cost):
        return (float(cost),) if levels is None else tuple(float(cost) * each for each in range(len(levels)))
    if levels is None:
        faults.append(Fault(where, f"expected a number, the cost of one unit of the dose; got {shown(cost)}"))
        return ()
    if isinstance(cost, dict):
        try:
            named = {text_of(key): value for key, value in cost.items()}
        except ValueError:
            named = {}
        if wrong := [name for name in named if name not in levels]:
            faults.append(Fault(where, f"{wrong[0]!r} is no level; {meant(wrong[0], levels)}"))
            return ()
        cost = [named.get(name, 0.0) for name in levels]
    if not isinstance(cost, list) or len(cost) != len(levels) or not all(_is_number(each) for each in cost):
        each = f"{len(levels)} numbers, one for each of {', '.join(levels[:10])}"
        words = f"expected a number for each step up, or {each}; got {shown(cost)}"
        faults.append(Fault(where, words))
        return ()
    return tuple(float(each) for each in cost)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= 1e150


def _too_many(actions: Sequence[Action], levels: int) -> list[Fault]:
    """The faults of the numbers of levels, which all actions of a model share."""
    largest = max((len(action.levels) for action in actions), default=0)
    if any(not action.levels for action in actions) and largest > levels:
        name = next(action.name for action in actions if len(action.levels) == largest)
        why = f"since {name} has as many and all actions share one number of levels"
        return [Fault("levels", f"expected at least {largest}, {why}; got {levels}")]
    if max(largest, levels) ** len(actions) > 2**20:
        words = f"expected at most {2**20} combinations of levels; take actions out, or use fewer"
        return [Fault("actions", words)]
    return []


def _reward_faults(reward: RewardForm, states: Sequence[str], actions: Sequence[Action]) -> list[Fault]:
    faults = list[Fault]()
    if not reward.weights and not reward.score and not any(action.costs for action in actions):
        faults.append(Fault("reward", f"expected {REWARD_AS}; got none, and no action has a cost"))
    for name in (name for name in reward.weights or {} if states and name not in states):
        faults.append(Fault("reward.weights", f"{name!r} is no varying column; {meant(name, states)}"))
    offered = [*states, *(action.name for action in actions)]
    for part, criteria in (reward.score or {}).items():
        where = f"reward.score.{part}"
        if not isinstance(criteria, dict) or not criteria:
            faults.append(Fault(where, f'expected {{state: {{"> 70": 3}}}}; got {shown(criteria)}'))
            continue
        for quantity, rules in criteria.items():
            names = [each.strip() for each in str(quantity).split("/")]
            for name in (name for name in names if states and name not in offered):
                words = f"{name!r} is neither a varying column nor an action; {meant(name, offered)}"
                faults.append(Fault(where, words))
            if wrong := _wrong_rule(rules):
                expected = 'a comparison and points of at least 0, such as "> 70": 3'
                faults.append(Fault(where, f"expected {expected}; got {wrong}"))
    return faults


def _wrong_rule(rules: Any) -> str:
    """The first rule of a criterion that cannot be read, in words; empty if there is none."""
    if not isinstance(rules, dict) or not rules:
        return shown(rules)
    for text, points in rules.items():
        if not _RULE.match(str(text)) or not _is_number(points) or points < 0:
            return f"{text!r}: {shown(points)}"
    return ""


def _roles(found: Mapping[str, Any], actions: tuple[Action, ...]) -> EpisodeRoles:
    reward, words, missing = found["reward"], found["words"], found["missing"]
    unit = words.unit or found["unit"].replace("_", " ")
    return EpisodeRoles(
        unit=found["unit"],
        time=found["time"],
        step=float(found["step"]) if isinstance(found["step"], int) else found["step"],
        varying=_columns(found["varying"]),
        static=_columns(found["static"]),
        contextual=_columns(found["contextual"]),
        actions=actions,
        count=max(
            [int(found["levels"])] * any(not each.levels for each in actions)
            + [len(each.levels) for each in actions]
        ),
        weights=dict(reward.weights or {}),
        score=dict(reward.score or {}),
        reward_name=reward.name or "",
        missing=Carry.of(missing),
        words=Words(unit, words.units or f"{unit}s", words.step or ""),
        rules=found["rules"].model_dump(exclude_none=True),
        order=tuple(found["order"]),
    )


def _columns(forms: Mapping[str, FeatureForm]) -> tuple[Column, ...]:
    columns = []
    for name, form in forms.items():
        low, high = form.range or (None, None)
        values = tuple(form.values or ()) if isinstance(form, StaticForm) else ()
        columns.append(Column(name, form.unit or "", low, high, values))
    return tuple(columns)
