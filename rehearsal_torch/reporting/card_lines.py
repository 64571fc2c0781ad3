"""A data card as lines of text for a terminal: the short form, and the whole card on request.

The short form holds what fits on a line each: where the data come from, how many rows there are, how they are
divided. The whole card adds graph, ranges, bounds and the desired region, written as one would write them by
hand (``age -> bmi``, ``bmi 20 to 35``, ``bmi; bp; bmi and bp``), wrapped and never cut.
"""

import textwrap
from collections.abc import Mapping
from typing import Any

from rehearsal_torch.data.codings.texts import card_in_words
from rehearsal_torch.reporting.page.material import listed, mapping, shown
from rehearsal_torch.reporting.page.question import region

WIDTH, FEW = 110, 6
# What the keys of a card are called where they do not say it themselves.
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
# What is told in other words elsewhere, or is for comparing files only.
_LONG = frozenset({"graph", "box", "region", "candidates", "ranges", "features", "fingerprint", "noise"})


def label(key: str) -> str:
    """What a key of a card is called in reports."""
    return LABELS.get(key, key.replace("_", " "))


# What is a warning, and stands among these.
_CAUTIONS = ("caution", "findings")


def brief(card: Mapping[str, Any]) -> list[str]:
    """The short form: an entry a line, without cautions, which are warnings, and without what is long."""
    card = card_in_words(card)
    return [
        line
        for key, value in card.items()
        if key not in _LONG and key not in _CAUTIONS and _is_short(value)
        for line in _wrapped(label(key), in_words(key, value, card))
    ]


def whole(card: Mapping[str, Any]) -> list[str]:
    """All entries but cautions; a mapping of mappings as one line for each."""
    lines, card = list[str](), card_in_words(card)
    for key, value in card.items():
        if key in _CAUTIONS:
            continue
        if key not in _LONG and isinstance(value, Mapping) and not _is_short(value):
            lines.append(f"{label(key)}:")
            lines += [f"  {line}" for name, inner in value.items() for line in _wrapped(name, _plain(inner))]
        elif key == "features":
            lines.append(f"{label(key)}:")
            lines += [
                f"  {line}"
                for name, inner in mapping(value).items()
                for line in _wrapped(name, _plain(inner))
            ]
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
    """An entry of a card in words, by what it is: ``bmi; bp; bmi and bp`` for sets of variables."""
    if value is None:
        return "none"
    if key == "desired" and isinstance(value, float):
        return f"{100 * value:.1f}%"
    if key == "graph" and isinstance(value, Mapping):
        return _graph(value)
    if key == "region" and (faces := region(dict(card))):
        return " and ".join(faces)
    if key in ("box", "ranges", "actions") and isinstance(value, Mapping):
        texts = key == "ranges"
        return ", ".join(f"{name} {_range(inner, texts)}" for name, inner in value.items())
    if key == "candidates" and isinstance(value, list):
        return "; ".join(" and ".join(map(str, listed(inner) or [inner])) for inner in value)
    return _plain(value)


def _plain(value: Any) -> str:
    """A value in words; a mapping of mappings with its inner ones in brackets."""
    if isinstance(value, Mapping) and any(map(_nested, value.values())):
        return ", ".join(f"{name} ({_plain(inner)})" for name, inner in value.items())
    if isinstance(value, list | tuple) and any(map(_nested, value)):
        return "; ".join(_plain(inner) for inner in value)
    return shown(value)


def _range(value: Any, texts: bool) -> str:
    """Two ends, which are numbers or, of a range, may be texts; else all that may be taken."""
    ends = listed(value)
    if len(ends) == 2 and (texts or not any(isinstance(end, str) for end in ends)):
        both = f"{shown(ends[0])} to {shown(ends[1])}"
        return f"always {shown(ends[0])}" if ends[0] == ends[1] else both
    levels = listed(mapping(value).get("values")) or ends
    return f"one of {shown(levels)}" if levels else f"({shown(value)})"


def _graph(value: Mapping[str, Any]) -> str:
    """A graph by its arrows, in the notation in which one is written."""
    arrows = [" -> ".join(map(str, listed(edge))) for edge in listed(value.get("edges"))]
    groups = [listed(group) for key in ("cliques", "bows") for group in listed(value.get(key))]
    arrows += [" <-> ".join(map(str, group)) for group in groups if len(group) > 1]
    return ", ".join(arrows) or shown(value)


def _wrapped(name: str, words: str) -> list[str]:
    """An entry as lines of at most `WIDTH` characters, the further ones set in."""
    return textwrap.wrap(
        f"{name}: {words}", WIDTH, subsequent_indent="    ", break_long_words=False, break_on_hyphens=False
    )
