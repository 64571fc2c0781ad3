"""Columns of episodes from which nothing can be learnt: states of one value, and actions that never change.

They follow from the least and the largest value of each column among the units to learn from.

Source: ours.
"""

from torch import Tensor

from rehearsal_torch.problems.episodes.roles import EpisodeRoles


def fixed_columns(roles: EpisodeRoles, least: Tensor, largest: Tensor) -> list[str]:
    """The faults of states and contextual columns with one value, and of actions that never are, or always
    are, at their lowest level.

    Args:
        roles: What the columns mean.
        least: The least value of each of `EpisodeRoles.names`, (d,); actions are at least 0.
        largest: The largest values, (d,).
    """
    lows = dict(zip(roles.names, least.tolist(), strict=True))
    highs = dict(zip(roles.names, largest.tolist(), strict=True))
    units, faults = roles.words.units, []
    settings = roles.surrogate_settings()
    faults = [
        f"{name}: all values of the {units} to learn from are {lows[name]:g}: a constant carries no "
        "information, take the column out"
        for name in (*settings["varying"], *settings["contextual"])
        if lows[name] == highs[name]
    ]
    for each in roles.actions:
        lowest = each.levels[0] if each.levels else "0"
        if highs[each.name] == 0:
            faults.append(
                f"{each.name}: it is {lowest} in all rows of the {units} to learn from: nothing can be "
                "learnt about other actions, take the column out"
            )
        elif lows[each.name] != 0:
            faults.append(
                f"{each.name}: it is never {lowest} among the {units} to learn from, so that nothing is "
                "known about it: "
                + ("take this level out" if each.levels else "subtract the usual amount, or give levels")
            )
    return faults
