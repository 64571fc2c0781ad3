"""What problems of episodes with a task share: cases in retrospect, levels of actions, and words for reports.

What other actions would have brought is unknown, so no decision is scored.

The roles of the columns are written as plain data, which `problems.episodes.task` reads again:

    episode_task(plain_task(roles)) == roles

A card of a fitted model keeps it, so that tables that come later are read as that of the fit. Levels have
their names, costs are written for each level, and a static column with named values keeps their order, as the
first of them is the reference.

Source: Tsirtsis and Gomez-Rodriguez (2023), Sec. 2 (what is given); the rest is ours.
"""

from abc import ABC
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from rehearsal_torch.data.decision import Decision, DecisionContext, EpisodeCase
from rehearsal_torch.data.dose_levels import DoseLevels
from rehearsal_torch.data.episode import Episode
from rehearsal_torch.files.sealed import sealed
from rehearsal_torch.problems.episodes.roles import Action, Carry, Column, EpisodeRoles
from rehearsal_torch.problems.problem import Problem

CAUTION = (
    "Observational data: recommendations rest on the model and on the assumption that nothing hidden "
    "influences both actions and states."
)
SHARES = {"train": 0.7, "validation": 0.1, "test": 0.2}
FEW_UNITS = 100
"""Units to learn from below which the card warns."""


class EpisodeProblem(Problem, ABC):
    """Episodes of units, whose columns a task explains.

    Attributes:
        roles: The content of the task.
        chosen: The episodes to decide on.
        keep_last: How many actions at the end of each of them stay as they were.
        length: The length of a step, in the unit of time.
        first: The time of the first step, if it is the same for all units; None elsewhere.
        largest: Action to its largest amount, or level, among the units to learn from.
    """

    roles: EpisodeRoles
    chosen: Sequence[Episode]
    keep_last: int
    length: float
    first: int | None = None
    largest: Mapping[str, float]

    def surrogate_settings(self) -> Mapping[str, Any]:
        """The columns of a model of transitions, and the number of levels."""
        return self.roles.surrogate_settings()

    def reward_settings(self) -> Mapping[str, Any]:
        """The reward of a step, as the task has it."""
        return self.roles.reward_settings()

    def episode_reading(self) -> Mapping[str, Any]:
        """The task as plain data, the length of a step, the time of the first one, how many actions at the
        end stay, and the largest amounts, sealed.
        """
        amounts = {each.name: self.largest[each.name] for each in self.roles.actions if not each.levels}
        return sealed(
            {
                "task": plain_task(self.roles),
                "step": self.length,
                "first": self.first,
                "keep_last": self.keep_last,
                "amounts": amounts,
            }
        )

    def count(self) -> int:
        """The number of units to decide on."""
        return len(self.chosen)

    def case(self, index: int) -> EpisodeCase:
        """Unit number `index` of the split, in retrospect."""
        if not 0 <= index < self.count():
            raise IndexError(f"expected a case in 0 ... {self.count() - 1}; got {index}")
        return in_retrospect(self.chosen[index], self.keep_last, self.first)

    def score(self, case: DecisionContext, decision: Decision) -> Mapping[str, float]:  # noqa: ARG002
        """Empty: the outcome of other actions is unknown."""
        return {}

    def wording(self) -> Mapping[str, Any]:
        """What units, steps and columns are called in reports."""
        return self.roles.wording()

    def _levels(self) -> DoseLevels:
        """The levels of the actions, fitted to the units to learn from."""
        names = [each.name for each in self.roles.actions]
        levels = DoseLevels(names, self.roles.count)
        levels.solve(self.observations().columns(names))
        return levels

    def _policy(self) -> str:
        rule = self.roles.missing
        return f"carry forward within {rule.steps} steps" if rule.rule == "carry" else rule.rule

    def _unseen(self, levels: DoseLevels) -> dict[str, str]:
        """A note for each action with given levels that no unit to learn from was given, or whose amounts
        share levels.
        """
        table = self.observations()
        found: dict[str, str] = {}
        for each in self.roles.actions:
            if not each.levels:
                note = levels.notes.get(each.name, "")
                found |= {f"levels of {each.name}": note} if note else {}
                continue
            seen = set(table.columns((each.name,))[:, 0].to(torch.long).tolist())
            unseen = [name for place, name in enumerate(each.levels) if place not in seen]
            if unseen:
                found[f"levels of {each.name}"] = (
                    f"{', '.join(unseen)} never occurs among the {self.roles.words.units} to learn from, and "
                    "is not recommended"
                )
        return found

    def _amounts(self, levels: DoseLevels) -> dict[str, str]:
        """The levels of each action in words."""
        return {
            each.name: _shown(each, row)
            for each, row in zip(self.roles.actions, levels.medians.tolist(), strict=True)
        }

    def _few(self, learnt: int) -> dict[str, str]:
        """A caution if there are few units to learn from."""
        if learnt >= FEW_UNITS:
            return {}
        note = f"{learnt} to learn from: below {FEW_UNITS}, claims are worth little"
        return {f"caution: number of {self.roles.words.units}": note}

    def _features(self, rows: Tensor) -> dict[str, dict[str, float | str]]:
        """Range and median of each column of steps, (n, d), with its unit."""
        columns = (*self.roles.varying, *self.roles.static, *self.roles.contextual)
        units = {each.name: each.unit for each in columns}
        return {
            name: {
                "min": float(column.min()),
                "median": float(column.median()),
                "max": float(column.max()),
                **({"unit": units[name]} if units.get(name) else {}),
            }
            for name, column in zip(self.roles.names, rows.T, strict=True)
        }


def in_retrospect(episode: Episode, keep_last: int, first: int | None = None) -> EpisodeCase:
    """An episode to look back at, whose last actions stay as they were.

    Args:
        episode: The episode.
        keep_last: How many of them.
        first: The time of its first step; None if it is not known.
    """
    fixed = torch.zeros(episode.horizon if keep_last else 0, dtype=torch.bool)
    fixed[max(episode.horizon - keep_last, 0) :] = True
    return EpisodeCase(episode, fixed, first=first)


def _shown(action: Action, amounts: Sequence[float]) -> str:
    """The levels of an action in words, given the amounts that they stand for."""
    if action.levels:
        return ", ".join(action.levels)
    return f"none, {', '.join(f'{each:.4g}' for each in dict.fromkeys(amounts[1:]))} {action.unit}".strip()


def plain_task(roles: EpisodeRoles) -> dict[str, Any]:
    """The content of a task.

    Args:
        roles: What the columns mean.

    Returns:
        Dictionaries, lists, numbers and texts; parts that say nothing are left out.
    """
    found: dict[str, Any] = {"unit": roles.unit, "time": roles.time}
    if roles.step is not None:
        found["step"] = roles.step
    for part, columns in (
        ("varying", roles.varying),
        ("static", roles.static),
        ("contextual", roles.contextual),
    ):
        if columns:
            found[part] = {each.name: _column(each) for each in columns}
    found["actions"] = {each.name: _action(each) for each in roles.actions}
    if any(not each.levels for each in roles.actions):
        found["levels"] = roles.count
    reward = {"weights": dict(roles.weights), "score": _copied(roles.score), "name": roles.reward_name}
    found["reward"] = {name: value for name, value in reward.items() if value}
    found["missing"] = _policy(roles.missing)
    words = roles.words
    found["words"] = {
        "unit": words.unit,
        "units": words.units,
        **({"step": words.step} if words.step else {}),
    }
    return found


def _column(each: Column) -> dict[str, Any]:
    found: dict[str, Any] = {"unit": each.unit} if each.unit else {}
    if each.low is not None or each.high is not None:
        found["range"] = [each.low, each.high]
    if each.values:
        found["values"] = list(each.values)
    return found


def _action(each: Action) -> dict[str, Any]:
    found: dict[str, Any] = {"levels": list(each.levels)} if each.levels else {}
    if each.unit:
        found["unit"] = each.unit
    if each.costs:
        found["cost"] = list(each.costs) if each.levels else each.costs[0]
    found["combine"] = each.combine
    return found


def _policy(missing: Carry) -> str | dict[str, int]:
    return {"carry": missing.steps} if missing.rule == "carry" else missing.rule


def _copied(plain: Any) -> Any:
    """Nested mappings as dictionaries."""
    if isinstance(plain, Mapping):
        return {name: _copied(each) for name, each in plain.items()}
    return plain
