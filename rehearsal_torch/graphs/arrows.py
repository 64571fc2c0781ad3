"""Arrows between variables in a text: those that are read, in whatever notation, and those that are refused.

    ->  -->  →  ⟶         from cause to effect
    <-  <--  ←  ⟵         from effect to cause
    <->  <-->  ↔  ⟷       a hidden common cause
    --  ---               an edge whose direction is unknown

Marks of other notations, such as `=>`, `>`, `~` and `⇒`, are no arrows: what they mean differs between
programs, or they are slips. The message says which three there are.

Source: Textor et al. (2016) (dagitty's three); Ramsey et al. (2018) (those of Tetrad, with three signs).
"""

import re

DIRECTED, REVERSED, BIDIRECTED, UNDIRECTED = "->", "<-", "<->", "--"
_NOTATIONS = {
    "-->": DIRECTED,
    "\u2192": DIRECTED,
    "\u27f6": DIRECTED,
    "<--": REVERSED,
    "\u2190": REVERSED,
    "\u27f5": REVERSED,
    "<-->": BIDIRECTED,
    "\u2194": BIDIRECTED,
    "\u27f7": BIDIRECTED,
    "---": UNDIRECTED,
}
WRITE = "write -> (cause to effect), <- (effect to cause) or <-> (a hidden common cause)"
# Unicode's arrows, of which those above are read.
SIGNS = "\u2190-\u21ff\u27f0-\u27ff\u2900-\u297f"
PATTERN = rf"<-->|-->|<--|<->|->|<-|---|--|[{SIGNS}]"
_DASHES = r"-=~|\u2010-\u2015\u2212"
# Looked for where dashes begin, not at each of them.
_MARKS = re.compile(rf"(?<![{_DASHES}])[{_DASHES}]*[<>{SIGNS}]+[{_DASHES}]*|(?<!\S)[{_DASHES}]+(?!\S)")
# The circles of a PAG.
_CIRCLE = re.compile(r"o|[<o]?-+o|o-+")
_CIRCLES = re.compile(r"(?<=\S\s)o?-+o(?=\s\S)")


def arrow(written: str) -> str:
    """One of `->`, `<-`, `<->` and `--` for an arrow in any notation; other texts as they are."""
    return _NOTATIONS.get(written, written)


def has_arrow(text: str) -> bool:
    """Whether a text has an arrow, or a mark that was meant as one."""
    return "--" in text or any(each.search(text) for each in (_MARKS, _CIRCLES))


def no_arrow(text: str) -> str:
    """Which mark of a text is no arrow, and what to write; empty if none looks like one.

    Args:
        text: The words that cannot be read.
    """
    found = _MARKS.search(text)
    return f"{found[0]!r} is no arrow; {WRITE}" if found else ""


def is_mark(word: str) -> bool:
    """Whether a word consists of marks alone, such as `-` and `~`, and is no name."""
    return _MARKS.fullmatch(word) is not None


def unjoined(one: str, other: str) -> str:
    """What to do with two variables that follow each other without an arrow."""
    circle = (
        "; a circle, o, marks an end that may be a cause or an effect: choose"
        if _CIRCLE.fullmatch(one) or _CIRCLE.fullmatch(other)
        else ""
    )
    return (
        f"no arrow joins {one!r} and {other!r}{circle}; {WRITE} between them, {{a b}} for several variables, "
        'a name with a blank in quotation marks, "a b", and ; or a new line between two edges'
    )
