"""The edges of a graph as another program wrote them, in whatever notation of arrows.

    ->  -->  →  ⟶         from cause to effect
    <-  <--  ←  ⟵         from effect to cause
    <->  <-->  ↔  ⟷       a hidden common cause
    --  ---               an edge whose direction is unknown

Marks of other notations, such as `=>`, `>`, `~` and `⇒`, are no arrows: what they mean differs between
programs, or they are slips. The message says which three there are.

An undirected edge says that one of two variables influences the other, and not which. Such edges make a list
a class of graphs, {parents, undirected} (`graphs.graph_class`), and no rehearsal graph. Without them it is
one.

Graphs with unmeasured variables are projected to graphs of the measured ones with hidden common causes. For
measured variables a and b, the projection has

    a -> b     if a directed path leads from a to b on which all others are unmeasured,
    a <-> b    if paths of that kind lead to a and to b from one unmeasured variable, or from the two ends of
               an edge <->.

It implies the same independences among the measured variables, and the same adjustment sets.

Source: Qin et al. (2023), Def. 1-3; Verma and Pearl (1990) (what an undirected edge stands for); Verma
(1993), Graphical aspects of causal models; Richardson et al. (2023), Sec. 2.4 (the projection); Textor et al.
(2016) (dagitty's arrows).
"""

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations, product
from typing import Any

from rehearsal_torch.graphs.mixed_graph import RehearsalGraph, closure

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
    return "--" in text or any(pattern.search(text) for pattern in (_MARKS, _CIRCLES))


def no_arrow(text: str) -> str:
    """Which mark of words is no arrow, and what to write; empty if none looks like one."""
    mark = _MARKS.search(text)
    return f"{mark[0]!r} is no arrow; {WRITE}" if mark else ""


def is_mark(word: str) -> bool:
    """Whether a word consists of marks alone, such as `-` and `~`, and is no name."""
    return _MARKS.fullmatch(word) is not None


def unjoined(a: str, b: str) -> str:
    """What to do with two variables that follow each other without an arrow."""
    circled = _CIRCLE.fullmatch(a) or _CIRCLE.fullmatch(b)
    circle = "; a circle, o, marks an end that may be a cause or an effect: choose" if circled else ""
    return (
        f"no arrow joins {a!r} and {b!r}{circle}; {WRITE} between them, {{a b}} for several variables, "
        'a name with a blank in quotation marks, "a b", and ; or a new line between two edges'
    )


Pairs = tuple[tuple[str, str], ...]
_SHOWN = 5


@dataclass(frozen=True)
class EdgeList:
    """Variables, in the order in which they occur, and edges: directed (cause, effect), bidirected with a
    hidden common cause, undirected of which one influences the other.
    """

    names: tuple[str, ...]
    directed: Pairs
    bidirected: Pairs
    undirected: Pairs = ()

    def graph(self) -> RehearsalGraph:
        """The rehearsal graph.

        Raises:
            ValueError: if an edge has no direction, or the edges are no rehearsal graph; the message names
                them.
        """
        if self.undirected:
            raise ValueError(
                f"{listed([f'{first} -- {second}' for first, second in self.undirected])}: the direction is "
                "unknown, and a rehearsal graph has no such edges: choose one, or write <-> if a hidden "
                "cause moves both; a problem file (graph: FILE) takes all graphs with these edges"
            )
        return RehearsalGraph.mixed(self.names, self.directed, self.bidirected)

    def to_plain(self) -> dict[str, Any]:
        """{parents, bidirected, undirected} of a list with undirected edges; the plain graph of another."""
        if not self.undirected:
            return self.graph().to_plain()
        parents: dict[str, list[str]] = {name: [] for name in self.names}
        for cause, effect in dict.fromkeys(self.directed):
            parents[effect].append(cause)
        plain = {"parents": parents, "undirected": [list(pair) for pair in self.undirected]}
        return plain | ({"bidirected": [list(pair) for pair in self.bidirected]} if self.bidirected else {})


def listed(edges: list[str]) -> str:
    """The first few of some edges, and how many more there are."""
    more = len(edges) - _SHOWN
    return ", ".join(edges[:_SHOWN]) + (f" and {more} more" if more > 0 else "")


Pair = tuple[str, str]


def projected(
    names: Sequence[str], directed: Iterable[Pair], bidirected: Iterable[Pair], latent: Collection[str]
) -> tuple[tuple[str, ...], tuple[Pair, ...], tuple[Pair, ...]]:
    """Names, directed and bidirected edges of the projection of an acyclic graph, in the names' order."""
    effects: dict[str, list[str]] = defaultdict(list)
    for cause, effect in directed:
        effects[cause].append(effect)
    reached = {name: _measured(name, effects, latent) for name in names}
    ends = {name: reached[name] if name in latent else {name} for name in names}
    pairs = {tuple(sorted(pair)) for name in latent for pair in combinations(reached[name], 2)}
    for first, second in bidirected:
        pairs |= {tuple(sorted(pair)) for pair in product(ends[first], ends[second]) if pair[0] != pair[1]}
    kept = tuple(name for name in names if name not in latent)
    order = {name: index for index, name in enumerate(kept)}
    arrows = tuple((a, b) for a in kept for b in sorted(reached[a], key=order.__getitem__))
    arcs = sorted(tuple(sorted(pair, key=order.__getitem__)) for pair in pairs)
    return kept, arrows, tuple((first, second) for first, second in arcs)


def _measured(name: str, effects: dict[str, list[str]], latent: Collection[str]) -> set[str]:
    """The measured variables to which a directed path leads through unmeasured ones alone."""
    through = {hidden: effects[hidden] for hidden in latent}
    return set(closure(effects[name], through)) - set(latent)
