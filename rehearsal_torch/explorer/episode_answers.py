"""What the page shows of a sequence of actions: its changes, its return beside the observed one, its proof.

proven       no other sequence with at most k changes has a larger return, by the fitted model
best found   the search ended before it had a proof; with an upper bound on what is missing where one is
             known
outside      the replay leaves the range of the observations: a sentence stands in place of its numbers
"""

import json
import re
from collections.abc import Mapping
from typing import Any

import torch

from rehearsal_torch.data.decision import Decision
from rehearsal_torch.explorer.courses import beyond, course, signed
from rehearsal_torch.objectives.counterfactual_return import CounterfactualReturn
from rehearsal_torch.reporting.page.material import counted, finite, mapping, shown
from rehearsal_torch.reporting.page.sequence_sentences import said_of_episode
from rehearsal_torch.reporting.style import Wording
from rehearsal_torch.round_line import Round

_LIMIT = re.compile(r"stopped after budget_s=([0-9.e+-]+)")


def sequence_answer(
    objective: CounterfactualReturn, decision: Decision, words: Wording, *, searched: bool
) -> dict[str, Any]:
    """What the page shows of a decision for an episode.

    Args:
        objective: The return of the episode.
        decision: The decision, of a search or put together by hand.
        words: Names and units.
        searched: Whether a search found it, so that there is something to say of a proof.

    Returns:
        Plain data; ``value`` and all else that is replayed is None, with the reason under ``withheld``,
        where the replay lies outside the data.
    """
    sequence = objective.sequence(decision)
    record = objective.trajectory_record(decision)
    found = beyond(objective, sequence)
    withheld = f"outside the data: {'; '.join(found)}" if found else ""
    changed = (sequence != objective.observed).nonzero()[:, 0].tolist()
    # Without changes, the return is the observed one, which is no claim of the model.
    hidden = bool(withheld) and bool(changed)
    line = _line(objective, decision, record)
    if hidden:
        line["trajectory"] = {
            k: line["trajectory"][k] for k in ("observed_actions", "observed_doses", "level_doses", "doses")
        }
    _, headline, said = said_of_episode({**line, "warnings": []}, words)
    if not searched:
        headline = _by_hand(len(changed), len(sequence))
    return {
        "headline": headline,
        "said": said,
        "state": optimality(decision, objective.changes, words, hidden) if searched else "",
        "proven": bool(decision.trace.get("proven")) if searched else None,
        "gap": None if hidden or not searched else finite(decision.trace.get("gap")),
        "withheld": withheld,
        "warnings": [text for text in decision.warnings if not text.startswith("range: ")],
        "overturned": _overturned(decision, words) if searched and not hidden else "",
        "status": decision.status,
        "actions": sequence.tolist(),
        "changed": changed,
        "observed": signed(record["observed"], words),
        "value": None if hidden else signed(record["value"], words),
        "range": None if hidden or not changed else _range(objective, sequence, words),
        "course": course(objective, sequence, record, words, not withheld),
        "seconds": round(decision.seconds, 3),
    }


def optimality(decision: Decision, changes: int, words: Wording, hidden: bool = False) -> str:
    """Whether a sequence is proven to be the best, and how far it may be from it; empty for a refusal.

    Args:
        decision: The decision of a search.
        changes: k.
        words: Names and units.
        hidden: Whether the numbers of the replay are withheld.
    """
    if decision.status == "refused":
        return ""
    trace, most = decision.trace, f"at most {counted(changes, 'changed action')}"
    gap = finite(trace.get("gap"))
    if trace.get("proven"):
        return f"Proven: by this model, no other sequence with {most} is better."
    told = decision.reason if decision.status == "recommended" else ""
    reason = (told or str(trace.get("stopped") or "")).partition("; no gap is known")[0]
    why = f" Why: {_LIMIT.sub(_limit, reason)}." if reason else ""
    if gap is None:
        return (
            f"The best found, not proven: how much better another one with {most} may be is not known.{why}"
        )
    unit = f" {words.unit}" if words.unit else ""
    much = "" if hidden else f", by {shown(gap)}{unit} at most"
    return f"The best found, not proven: another one with {most} may be better{much}.{why}"


def _limit(found: re.Match[str]) -> str:
    return f"the search stopped at its time limit of {found[1]} s"


def _line(objective: CounterfactualReturn, decision: Decision, record: Mapping[str, Any]) -> dict[str, Any]:
    """The decision as a line of decisions.jsonl."""
    made = Round(0, objective.case, decision, None, {}, trajectory=dict(record), kind="look_back")
    return mapping(json.loads(made.line()))


def _by_hand(changed: int, every: int) -> str:
    if not changed:
        return "As observed: nothing is changed."
    return f"Your own sequence: {changed} of {counted(every, 'action')} changed."


def _overturned(decision: Decision, words: Wording) -> str:
    if decision.hidden_cause is None:
        return ""
    said = decision.hidden_cause.sentence(words.actions)
    return f"{said[:1].upper()}{said[1:]}."


@torch.no_grad()
def _range(objective: CounterfactualReturn, sequence: Any, words: Wording) -> list[float] | None:
    """The smallest and the largest return of the models of an ensemble; None for a single model."""
    if objective.surrogate.members == 1:
        return None
    every: list[float] = signed(objective.member_returns(sequence).tolist(), words)
    return [min(every), max(every)]
