"""What a run was asked, in sentences, from its data card: what may be set, what is wanted, what is known."""

from collections.abc import Mapping
from typing import Any

from rehearsal_torch.data.codings.coding import Coding
from rehearsal_torch.data.codings.texts import bound_in_words, recorded_codings
from rehearsal_torch.evaluation.recorded_run import Decided
from rehearsal_torch.reporting.page.material import Material, counted, finite, listed, mapping, shown
from rehearsal_torch.reporting.wording import Dose, Wording


def question(of: Material) -> list[str]:
    """The question of a run, a sentence each; empty where the data card does not say it."""
    if of.trials:
        return of_trials(of.card)
    if of.alterations:
        return of_alterations(of.card, any(decision.get("present") for decision in of.run.decisions))
    return _sequences(of.run.decisions, of.words) if of.sequences else []


def region(card: dict[str, Any]) -> list[str]:
    """The faces of the desired region M y <= d, in words; empty where they are not recorded."""
    stated = mapping(card.get("region"))
    names = [str(name) for name in listed(stated.get("names"))]
    faces, codings = [], recorded_codings(card.get("codings"))
    for normal, offset in zip(listed(stated.get("normals")), listed(stated.get("offsets")), strict=False):
        weights, bound = [finite(value) for value in listed(normal)], finite(offset)
        if bound is None or len(weights) != len(names) or None in weights:
            return []
        faces.append(
            _face(dict(zip(names, (weight or 0.0 for weight in weights), strict=True)), bound, codings)
        )
    return [face for face in faces if face]


def settable(card: dict[str, Any], key: str) -> list[str]:
    """The variables that may be set, with their bounds or levels."""
    variables = []
    for name, given in mapping(card.get(key)).items():
        ends, levels = listed(given), listed(mapping(given).get("values"))
        if len(ends) == 2 and ends[0] == ends[1]:
            variables.append(f"{name} (stays at {shown(ends[0])})")
        elif len(ends) == 2:
            variables.append(f"{name} (from {shown(ends[0])} to {shown(ends[1])})")
        elif levels:
            variables.append(f"{name} (one of {shown(levels)})")
        else:
            variables.append(name)
    return variables


def of_alterations(card: dict[str, Any], present: bool = False) -> list[str]:
    """The question of a rehearsal task: what may be set, what is wanted, what is known before.

    Args:
        present: Whether cases state the present values of what may be set.
    """
    sentences, faces, may = [], region(card), settable(card, "box")
    if may:
        what = f"What should be set in each case? Candidates: {', '.join(may)}."
        sentences.append(what)
    if faces:
        sentences.append(f"Wanted: an outcome with {' and '.join(faces)}.")
    known = [str(name) for name in listed(card.get("context"))]
    if known:
        sentences.append(f"Known of each case before deciding: {', '.join(known)}.")
    if present:
        sentences.append(
            "Where a case states the present values of what is set, the comparison is with these; what is "
            "usual in such a case stands beside it."
        )
    elif known:
        sentences.append(
            "No action means what usually happens to such a case, not the values that the candidates have "
            "now."
        )
    priced, worth = mapping(card.get("costs")), finite(card.get("worth"))
    if priced:
        counted_as = (
            "they are told, and not weighed"
            if worth is None
            else f"a desired outcome is worth {shown(worth)} in their unit"
        )
        sentences.append(f"Changes of {', '.join(map(str, priced))} have costs; {counted_as}.")
    share = finite(card.get("desired"))
    if share is not None:
        sentences.append(f"Of the rows that the method learnt from, {100 * share:.1f}% have such an outcome.")
    return sentences


def of_trials(card: dict[str, Any]) -> list[str]:
    """The question of a causal system: what may be set, and what the reward is.

    Args:
        card: The data card, or a task as plain data.
    """
    may, reward = settable(card, "actions"), mapping(card.get("reward"))
    sentences = []
    if may:
        sentences = [
            "Which setting has the largest expected reward, and which one should be tried next? Free to set: "
            f"{', '.join(may)}."
        ]
    weights, targets = mapping(reward.get("weights")), mapping(reward.get("targets"))
    if weights:
        sentences.append(f"The reward is {weighted_sum(weights)}.")
    elif targets:
        near = ", ".join(f"{name} to {shown(value)}" for name, value in targets.items())
        sentences.append(f"The reward grows as outcomes come near their targets: {near}.")
    return sentences


def _sequences(decisions: list[Decided], words: Wording) -> list[str]:
    changes = {finite(mapping(decision.get("trajectory")).get("changes")) for decision in decisions} - {None}
    most = (
        f"at most {shown(int(max(count for count in changes if count is not None)))}" if changes else "some"
    )
    actions = " and ".join(map(_action, words.doses))
    better = "lowered" if words.sign < 0 else "raised"
    what = f"cumulative {words.variable}" + (f" ({words.unit})" if words.unit else "")
    return [
        f"Looking back at {counted(len(decisions), words.episode, words.episodes)}: which changes, of {most} "
        f"actions in each, would have {better} the {what}?",
        *([f"An action sets {actions}."] if actions else []),
    ]


def _action(dose: Dose) -> str:
    """A coordinate of an action, with its levels or its unit if they are known."""
    how = ", ".join(dose.levels) or dose.unit
    return f"{dose.name} ({how})" if how else dose.name


def _face(weights: dict[str, float], bound: float, codings: Mapping[str, Coding]) -> str:
    """w . y <= d in words; one variable alone is compared with a number, or with a text if it has texts."""
    used = {name: weight for name, weight in weights.items() if weight}
    if not used:
        return ""
    if len(used) == 1:
        ((name, weight),) = used.items()
        if name in codings:
            return bound_in_words(codings[name], bound / weight, weight > 0)
        return f"{name} {'≤' if weight > 0 else '≥'} {shown(bound / weight)}"
    return f"{weighted_sum(used)} ≤ {shown(bound)}"


def weighted_sum(weights: dict[str, Any]) -> str:
    """A weighted sum in words; a weight of 1 is left out."""
    parts = [
        name if finite(weight) == 1 else f"{shown(weight)} times {name}" for name, weight in weights.items()
    ]
    return " + ".join(parts)
