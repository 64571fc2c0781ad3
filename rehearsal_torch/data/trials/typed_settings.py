"""Settings as people state them: how far they may lie from what was proposed, and which lie outside."""

import math
from collections.abc import Mapping
from typing import Any

from rehearsal_torch.data.causal_task import CausalTask
from rehearsal_torch.data.trials.trial import finite, named_numbers, unknown_names
from rehearsal_torch.files.redaction import beginning
from rehearsal_torch.files.schema import Fault, FaultsError


def tolerances(task: CausalTask, given: Any) -> tuple[float, ...] | None:
    """How far settings may lie from a pending trial's (`data.trials.trial_log`), in coordinates, NaN
    where the digits say it; None if they say it for all. A number is a share of each range, a mapping has
    units of the actions, and of one on a log scale a share of its value.
    """
    if given is None:
        return None
    share, faults = finite(given), list[str]()
    if share is not None and 0 <= share <= 0.5:
        return tuple(share * span for span in task.spans)
    if share is not None or not isinstance(given, Mapping):
        expected = f"expected a share of each range, from 0 to 0.5, or {{{task.actions[0]}: ...}} in its unit"
        faults.append(f"{expected}; got {beginning(repr(given), 60)}")
        given = {}
    names = [name for name in task.actions if name in given]
    known = named_numbers(given, names, "action", faults, others=True)
    faults += unknown_names(given, task.actions, "the task has no such action")
    faults += [f"{name}: expected at least 0; got {each:g}" for name, each in known.items() if each < 0]
    if faults:
        raise FaultsError([Fault("tolerance", "; ".join(faults))])
    known |= {name: math.log1p(each) for name, each in known.items() if name in task.logs}
    return tuple(known.get(name, math.nan) for name in task.actions)


def outside_bounds(task: CausalTask, settings: Mapping[str, Any]) -> tuple[str, ...]:
    """A message for each of the settings (k,), by name, that lie outside; they remain valid observations."""
    found = []
    for where, row in settings.items():
        try:
            task.check_action(row[: len(task.actions)], where)
        except ValueError as error:
            found.append(str(error))
    return tuple(found)
