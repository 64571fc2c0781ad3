"""Answers of the searches over action sequences.

Whatever searched, the answer is an action sequence, judged by the same objective in the same way: its return, the
observed return, and how much work it took. The effective branching factor b of a search that expanded N nodes of
an episode of T steps solves

    N = 1 + b + b^2 + ... + b^T.

Source: Tsirtsis and Gomez-Rodriguez (2023), Sec. 5.
"""

import math
from dataclasses import asdict, dataclass

import torch
from torch import Tensor

from rehearsal_torch.data.decision import Decision, Estimate, action_name
from rehearsal_torch.objectives.counterfactual_return import CounterfactualReturn
from rehearsal_torch.spaces.alteration import Alteration


@dataclass
class Effort:
    """What a search has spent.

    Attributes:
        expanded: Nodes taken from the queue and expanded.
        generated: Nodes made.
        network_evaluations: Single steps F_t(x, a) computed.
    """

    expanded: int = 0
    generated: int = 0
    network_evaluations: int = 0


def sequence_decision(
    objective: CounterfactualReturn,
    actions: Tensor,
    effort: Effort,
    seconds: float,
    *,
    search: str,
    gap: float | None,
    reason: str = "",
    declines: bool = True,
    **trace: object,
) -> Decision:
    """The decision that stands for an action sequence.

    Args:
        objective: What was searched; its `forward` gives the value that is reported.
        actions: The best sequence found, (H,) long.
        effort: What the search has spent.
        seconds: Wall-clock time of the search.
        search: The search's name.
        gap: How far, at most, the optimum can lie above the value, in the reward's unit; 0 when proven; None where nothing is known.
        reason: What the reader must know.
        declines: Whether a sequence that is no better than the observed one by the model's own estimate is given up; otherwise it bears a warning.
        trace: Further plain values.
    """
    observed, sequence = objective.observed, objective.settled(actions.to(objective.observed))
    changed = (sequence != observed).nonzero()[:, 0].tolist()
    outcome = objective.outcome()
    value, warnings = float(objective(sequence)) if changed else outcome, objective.warnings()
    finite = math.isfinite(value)
    if changed and not finite:
        changed, reason = [], f"the best sequence found has the return {value}: the model has no number for it"
    elif changed and not value > outcome:
        said = f"no better than what was done by the model's own estimate ({value:.6g} against {outcome:.6g})"
        if declines:
            changed, value, reason = [], outcome, reason or said
        else:
            warnings = (*warnings, said)
    quiet = "" if changed else "no change of at most k actions is better than what was done"
    found = {
        "search": search,
        **asdict(effort),
        "effective_branching_factor": branching_factor(effort.expanded, objective.horizon),
        "gap": gap,
        "proven": gap == 0.0,
    }
    names = tuple(action_name(time) for time in changed)
    return Decision(
        Alteration(names, sequence[changed]) if changed else None,
        value,
        status="recommended" if changed else "no_action" if finite else "refused",
        estimate=_return(value),
        baseline=_return(outcome),
        doses=dict(zip(names, map(tuple, objective.surrogate.doses(sequence[changed]).tolist()), strict=True)) if changed else {},
        warnings=warnings,
        reason=reason or quiet,
        trace={**found, **trace},
        seconds=seconds,
    )


def _return(value: float) -> Estimate | None:
    return Estimate(value, "return of the episode") if math.isfinite(value) else None


def branching_factor(nodes: int, horizon: int) -> float:
    """b with nodes = 1 + b + ... + b^horizon, at least 1; by bisection to 1e-12."""
    if nodes <= horizon + 1:
        return 1.0
    powers = torch.arange(horizon + 1, dtype=torch.float64)
    low, high = 1.0, float(nodes)
    while high - low > 1e-12 * high:
        middle = (low + high) / 2
        low, high = (middle, high) if float((middle**powers).sum()) < nodes else (low, middle)
    return (low + high) / 2
