"""Data card of a run in words: its question, a sentence each, and its entries, a line each.

The question says what may be set, what is wanted, and what is known. The short form of the card has the
entries that fit on a line each: where the data come from, how many rows there are, how they are divided. The
whole card adds graph, ranges, bounds and the desired region, written as one would write them by hand (``age
-> bmi``, ``bmi 20 to 35``, ``bmi; bp; bmi and bp``), wrapped and never cut.
"""

import textwrap
from collections.abc import Mapping
from typing import Any

from rehearsal_torch.data.codings.coding import Coding
from rehearsal_torch.data.codings.decision_texts import bound_in_words, card_in_words, recorded_codings
from rehearsal_torch.evaluation.run_record import Decided
from rehearsal_torch.reporting.labels import Wording, with_unit
from rehearsal_torch.reporting.page.html import sentences
from rehearsal_torch.reporting.page.page_content import Material, finite, listed, mapping, shown
from rehearsal_torch.spaces.box import EVEN, levels_text

WIDTH, FEW = 110, 6
# Names of the keys of a card that do not explain themselves.
LABELS = {
    "kept_aside": "rows held out to score the method",
    "desired": "share of rows with a desired outcome",
    "context": "known before deciding",
    "contexts": "cases to decide for",
    "box": "may be set",
    "region": "desired",
    "candidates": "sets of variables that may be set together",
    "ranges": "observed ranges",
    "codings": "texts, in the order of their codes 0, 1, ...",
    "best_radius": "radius of the best settings",
}
# Entries that are told elsewhere, or serve to compare files only.
_LONG_KEYS = frozenset(
    {"graph", "box", "region", "candidates", "ranges", "features", "fingerprint", "noise", "experiments"}
)
# Entries that are warnings or notes, and the experiments that pages list.
_WARNING_KEYS = ("caution", "findings", "notes", "experiments")


def question(report: Material) -> list[str]:
    """The question of a run, a sentence each; empty where the data card does not say it."""
    if report.trials:
        return of_trials(report.card)
    if report.alterations:
        return of_alterations(report.card, any(decision.get("present") for decision in report.run.decisions))
    return _sequences(report.run.decisions, report.words) if report.sequences else []


def region(card: dict[str, Any]) -> list[str]:
    """The faces of the desired region M y <= d, in words; empty where they are not recorded."""
    stated = mapping(card.get("region"))
    names = [str(name) for name in listed(stated.get("names"))]
    faces, codings = [], recorded_codings(card.get("codings"))
    for normal, offset in zip(listed(stated.get("normals")), listed(stated.get("offsets")), strict=False):
        weights, bound = [finite(value) for value in listed(normal)], finite(offset)
        if bound is None or len(weights) != len(names) or None in weights:
            return []
        weight_of = {name: weight or 0.0 for name, weight in zip(names, weights, strict=True)}
        faces.append(_face_in_words(weight_of, bound, codings))
    return [face for face in faces if face]


def _allowed(value: Any) -> tuple[list[Any], list[Any]]:
    """The ends, or the levels, of what may be set."""
    plain = mapping(value)
    return listed(value) or listed(plain.get("range")), listed(plain.get("values") or plain.get("levels"))


def settable(card: dict[str, Any], *keys: str) -> list[str]:
    """The variables that may be set, with their bounds or levels."""
    variables = []
    for name, allowed in [pair for key in keys for pair in mapping(card.get(key)).items()]:
        ends, levels = _allowed(allowed)
        if len(ends) == 2 and ends[0] == ends[1]:
            variables.append(f"{name} (stays at {shown(ends[0])})")
        elif len(ends) == 2:
            variables.append(f"{name} (from {shown(ends[0])} to {shown(ends[1])})")
        elif len(levels) == 1:
            variables.append(f"{name} (to {shown(levels)})")
        elif levels:
            variables.append(f"{name} ({_levels_in_words(levels)})")
        else:
            variables.append(name)
    return variables


def of_alterations(card: dict[str, Any], present: bool = False) -> list[str]:
    """The question of a rehearsal task; `present`: whether cases state present values of what may be set."""
    context = [str(name) for name in listed(card.get("context"))]
    costs, worth = list(mapping(card.get("costs"))), finite(card.get("worth"))
    known = "" if worth is None else shown(worth), finite(card.get("desired"))
    return sentences(
        "question_of_cases", settable(card, "box"), region(card), context, present, costs, *known
    )


def of_trials(card: dict[str, Any]) -> list[str]:
    """The question of a causal system, by its data card or its task: what may be set, and the reward."""
    pair, reward = both_in_words(card.get("reward")), mapping(card.get("reward"))
    weights, targets = mapping(reward.get("weights")), mapping(reward.get("targets"))
    target_words = [f"{name} to {shown(value)}" for name, value in targets.items()]
    actions, context = settable(card, "actions", "settable"), [*map(str, listed(card.get("context")))]
    constraints, outcome = listed(card.get("constraints")), one_outcome(reward)
    reward_words = outcome or "reward", "" if outcome else weighted_sum(weights)
    return sentences("question_of_trials", actions, context, *reward_words, target_words, constraints, pair)


def both_in_words(reward: object) -> list[str]:
    """Two rewards in words; empty for a single one."""
    return [weighted_sum(mapping(mapping(part).get("weights"))) for part in listed(reward)]


def one_outcome(reward: Mapping[str, Any]) -> str:
    """The name of the outcome that is the reward, empty if it is another function."""
    weights = mapping(reward.get("weights"))
    return next(iter(weights)) if [*map(finite, weights.values())] == [1.0] else ""


def limits(card: dict[str, Any]) -> list[tuple[str, str]]:
    """What the task allows and wants, name to words."""
    may = "; ".join(settable(card, "box", "actions", "settable"))
    pairs = (("may be set", may), ("desired region", " and ".join(region(card))))
    return [(name, words) for name, words in pairs if words]


def _sequences(decisions: list[Decided], words: Wording) -> list[str]:
    changes = [finite(mapping(decision.get("trajectory")).get("changes")) for decision in decisions]
    counts = [int(count) for count in changes if count is not None]
    most = f"at most {shown(max(counts))}" if counts else "some"
    doses = [with_unit(dose.name, ", ".join(dose.levels) or dose.unit) for dose in words.doses]
    return sentences("question_of_episodes", len(decisions), words, most, doses)


def _face_in_words(weights: dict[str, float], bound: float, codings: Mapping[str, Coding]) -> str:
    """w . y <= d in words; one variable alone is compared with a number, or with its text."""
    nonzero = {name: weight for name, weight in weights.items() if weight}
    if not nonzero:
        return ""
    if len(nonzero) == 1:
        ((name, weight),) = nonzero.items()
        if name in codings:
            return bound_in_words(codings[name], bound / weight, weight > 0)
        return f"{name} {'≤' if weight > 0 else '≥'} {shown(bound / weight)}"
    return f"{weighted_sum(nonzero)} ≤ {shown(bound)}"


def weighted_sum(weights: dict[str, Any]) -> str:
    """A weighted sum in words; a weight of 1 is left out."""
    text = ""
    for name, weight in weights.items():
        number = finite(weight)
        sign, size = ("-", -number) if number is not None and number < 0 else ("+", weight)
        factor = "" if finite(size) == 1 else f"{shown(size)} times "
        lead = f" {sign} " if text else sign.removeprefix("+")
        text += f"{lead}{factor}{name}"
    return text


def label(key: str) -> str:
    """The name of a key of a card in reports."""
    return LABELS.get(key, key.replace("_", " "))


def brief(card: Mapping[str, Any]) -> list[str]:
    """The short form: an entry a line, without warnings and without what is long."""
    card = card_in_words(card)
    return [
        line
        for key, value in card.items()
        if key not in _LONG_KEYS and key not in _WARNING_KEYS and _is_short(value)
        for line in _wrapped(label(key), in_words(key, value, card))
    ]


def whole(card: Mapping[str, Any]) -> list[str]:
    """All entries but warnings; a mapping of mappings as one line for each."""
    lines, card = list[str](), card_in_words(card)
    for key, value in card.items():
        if key in _WARNING_KEYS:
            continue
        if key == "features" or (
            key not in _LONG_KEYS and isinstance(value, Mapping) and not _is_short(value)
        ):
            lines.append(f"{label(key)}:")
            for name, inner in mapping(value).items():
                lines += [f"  {line}" for line in _wrapped(name, _value_in_words(inner))]
        else:
            lines += _wrapped(label(key), in_words(key, value, card))
    return lines


def _is_short(value: Any) -> bool:
    """Whether a value fits on about one line: a number or text, a few of them, or a few pairs of a few."""
    if isinstance(value, Mapping):
        return len(value) <= FEW and all(
            not isinstance(inner, Mapping | list | tuple)
            or (isinstance(inner, Mapping) and len(inner) <= 2 and not any(map(_nested, inner.values())))
            for inner in value.values()
        )
    return not isinstance(value, list | tuple) or (len(value) <= FEW and not any(map(_nested, value)))


def _nested(value: Any) -> bool:
    return isinstance(value, Mapping | list | tuple)


def in_words(key: str, value: Any, card: Mapping[str, Any]) -> str:
    """An entry of a card in words: ``bmi; bp; bmi and bp`` for sets of variables."""
    if value is None:
        return "none"
    if key == "desired" and isinstance(value, float):
        return f"{100 * value:.1f}%"
    if key == "graph" and isinstance(value, Mapping):
        return _graph_in_words(value)
    if key == "region" and (faces := region(dict(card))):
        return " and ".join(faces)
    if key in ("box", "ranges", "actions") and isinstance(value, Mapping):
        texts = key == "ranges"
        return ", ".join(f"{name} {_range_in_words(inner, texts)}" for name, inner in value.items())
    if key == "candidates" and isinstance(value, list):
        return "; ".join(" and ".join(map(str, listed(inner) or [inner])) for inner in value)
    return _value_in_words(value)


def _value_in_words(value: Any) -> str:
    if isinstance(value, Mapping) and any(map(_nested, value.values())):
        return ", ".join(f"{name} ({_value_in_words(inner)})" for name, inner in value.items())
    if isinstance(value, list | tuple) and any(map(_nested, value)):
        return "; ".join(_value_in_words(inner) for inner in value)
    return shown(value)


def _range_in_words(value: Any, texts: bool) -> str:
    """Two ends, which are numbers or, of an observed range, may be texts; else all allowed values."""
    ends, levels = _allowed(value)
    if len(ends) == 2 and (texts or not any(isinstance(end, str) for end in ends)):
        range_words = f"{shown(ends[0])} to {shown(ends[1])}"
        return f"always {shown(ends[0])}" if ends[0] == ends[1] else range_words
    return _levels_in_words(levels or ends) if levels or ends else f"({shown(value)})"


def _levels_in_words(levels: list[Any]) -> str:
    """Numbers by `levels_text`; texts, and few numbers, as a list."""
    numbers = [finite(level) for level in levels]
    few = len(levels) < EVEN or None in numbers
    return f"one of {shown(levels)}" if few else levels_text([number or 0.0 for number in numbers], "one of ")


def _graph_in_words(value: Mapping[str, Any]) -> str:
    """A graph by its arrows, in the notation in which one is written."""
    arrows = [" -> ".join(map(str, listed(edge))) for edge in listed(value.get("edges"))]
    groups = [listed(group) for key in ("cliques", "hidden") for group in listed(value.get(key))]
    arrows += [" <-> ".join(map(str, group)) for group in groups if len(group) > 1]
    return ", ".join(arrows) or shown(value)


def _wrapped(name: str, words: str) -> list[str]:
    """An entry as lines of at most `WIDTH` characters, the further ones indented."""
    return textwrap.wrap(
        f"{name}: {words}", WIDTH, subsequent_indent="    ", break_long_words=False, break_on_hyphens=False
    )
