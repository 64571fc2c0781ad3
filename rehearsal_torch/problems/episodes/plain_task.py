"""The roles of the columns of episodes as plain data: what `problems.episodes.task` reads, written again.

    episode_task(plain_task(roles)) == roles

A card of a fitted model keeps it, so that tables that come later are read as that of the fit. Levels have
their names, costs are written for each level, and a static column with named values keeps their order, as the
first of them is the reference.
"""

from collections.abc import Mapping
from typing import Any

from rehearsal_torch.problems.episodes.roles import Action, Carry, Column, EpisodeRoles


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
