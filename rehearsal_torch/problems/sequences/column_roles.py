"""The roles of the columns of episodes, and the settings of a method that follow from them.

A problem (`problems.sequences.sequence_schema`) states which columns are states, which are constant, which
are actions, and what a step is worth. A model of transitions and the return of an episode have these as
settings.

Actions with given levels are coded 0 ... L - 1 in the order of the task. A static column with named values
becomes one column of 0 and 1 for each value but the first, "model=B".
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from rehearsal_torch.problems.sequences.time_steps import Calendar


@dataclass(frozen=True)
class Column:
    """A feature of an episode, with its limits, None where they are open; of texts with its `values`."""

    name: str
    unit: str = ""
    low: float | None = None
    high: float | None = None
    values: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """The columns that it becomes in an episode."""
        return tuple(f"{self.name}={value}" for value in self.values[1:]) or (self.name,)


@dataclass(frozen=True)
class Action:
    """An action, or one of its coordinates: its levels in order, or none for doses; its cost for each level,
    or for a unit of a dose, (1,); and how rows that fall into one step are joined: sum, mean or max.
    """

    name: str
    unit: str = ""
    levels: tuple[str, ...] = ()
    costs: tuple[float, ...] = ()
    combine: str = "sum"


@dataclass(frozen=True)
class Carry:
    """What is done about missing values and steps: the rule refuse, drop or carry, and of carry the number of
    steps in a row that are filled with the last value.
    """

    rule: str = "refuse"
    steps: int = 0

    @classmethod
    def of(cls, plain: str | Mapping[Literal["carry"], int]) -> "Carry":
        """The rule from the plain data of a task."""
        return cls(plain) if isinstance(plain, str) else cls("carry", int(plain["carry"]))


@dataclass(frozen=True)
class Words:
    """The words for a unit, such as machine, for several, and for a step, such as week, empty if unknown."""

    unit: str
    units: str
    step: str = ""


@dataclass(frozen=True)
class EpisodeRoles:
    """The roles of the columns of episodes, and the settings of a problem.

    Attributes:
        step: The length of a step, in the unit of time, or a step of the calendar; None if rows are steps.
        varying: The states that a model predicts.
        static: Columns that are constant over an episode.
        contextual: Columns that vary, and that no action changes.
        count: Levels of every action.
        score: Part to criteria, as in `objectives.task_reward`.
        rules: Which changes may be recommended, by the names of `objectives.change_rules`.
        order: States that come about in this order within a step; empty if unknown.
    """

    unit: str
    time: str
    step: float | Calendar | None
    varying: tuple[Column, ...]
    static: tuple[Column, ...]
    contextual: tuple[Column, ...]
    actions: tuple[Action, ...]
    count: int
    weights: Mapping[str, float] = field(default_factory=dict)
    score: Mapping[str, Any] = field(default_factory=dict)
    reward_name: str = ""
    missing: Carry = field(default_factory=Carry)
    words: Words = field(default_factory=lambda: Words("unit", "units"))
    rules: Mapping[str, Any] = field(default_factory=dict)
    order: tuple[str, ...] = ()

    @property
    def features(self) -> tuple[Column, ...]:
        """States, static and contextual columns, in this order."""
        return (*self.varying, *self.static, *self.contextual)

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that are read beside unit and time."""
        return (*(column.name for column in self.features), *(action.name for action in self.actions))

    @property
    def names(self) -> tuple[str, ...]:
        """The columns of the episodes, in order."""
        features = (name for column in self.features for name in column.names)
        return (*features, *(action.name for action in self.actions))

    def surrogate_settings(self) -> dict[str, Any]:
        """The settings of a model of transitions."""
        return {
            "varying": [column.name for column in self.varying],
            "static": [name for column in self.static for name in column.names],
            "contextual": [column.name for column in self.contextual],
            "doses": [column.name for column in self.actions],
            "levels": self.count,
            **({"order": list(self.order)} if self.order else {}),
        }

    def reward_settings(self) -> dict[str, Any]:
        """The reward of a step, as a node of a configuration."""
        costs = {
            action.name: list(action.costs) if action.levels else action.costs[0]
            for action in self.actions
            if action.costs
        }
        return {
            "_target_": "rehearsal_torch.objectives.task_reward.episode_reward",
            "weights": dict(self.weights) or None,
            "components": {part: dict(criteria) for part, criteria in self.score.items()} or None,
            "costs": costs or None,
            "doses": [action.name for action in self.actions],
            "name": self.reward_name or None,
        }

    def rule_settings(self) -> dict[str, Any]:
        """The rules of changes."""
        return {**self.rules, "named": [action.name for action in self.actions if action.levels]}

    def wording(self) -> dict[str, Any]:
        """The words of reports: for units, steps and time, units of columns, names of levels of actions."""
        columns: list[Column | Action] = [*self.varying, *self.actions]
        return {
            **asdict(self.words),
            "time": self.time,
            "units_of": {column.name: column.unit for column in columns if column.unit},
            "levels": {action.name: list(action.levels) for action in self.actions if action.levels},
        }
