"""Graphviz' DOT, as other programs write causal graphs.

    digraph {
      rankdir=LR; node [shape=box];
      0 [label="age"]; 1 [label="bmi"];
      0 -> 1;
      1 -> 2 [dir=both];
    }

An edge with `dir=both` is a hidden common cause, `dir=back` turns it around, and one with `dir=none` has no
direction (`edge_list`). Of an end that is drawn, `arrowtail=none` and `arrowhead=none` leave the arrow away:
causal-learn writes each edge as `dir=both` with both. Circles (`odot`) are refused. A node is called by its
label if it has one. Attributes of other kinds, defaults of `node`, `edge` and `graph`, and settings such as
`rankdir=LR` are ignored; defaults that change the ends of edges, subgraphs, ports and labels in HTML are
refused. The statements are those of dagitty (`graphs.dagitty`).

Source: Gansner, Koutsofios and North (2015), the DOT language.
"""

import re
from collections.abc import Mapping

from rehearsal_torch.files.addresses import beginning
from rehearsal_torch.graphs import arrows
from rehearsal_torch.graphs.dagitty import edges_of
from rehearsal_torch.graphs.edge_list import EdgeList
from rehearsal_torch.graphs.mixed_graph import RehearsalGraph

_HEAD = re.compile(r"\s*(strict\s+)?(di)?graph\b\s*(\"[^\"]*\"|[\w.]+)?\s*\{(?P<body>.*)\}\s*\Z", re.DOTALL)
_COMMENT = re.compile(r"\"[^\"]*\"|/\*.*?\*/|//[^\n]*|^\s*#[^\n]*", re.DOTALL | re.MULTILINE)
# A quoted text is found first, and kept.
_QUOTED = r"\"[^\"]*\""
_LIST = rf"\[(?:[^\]\"]|{_QUOTED})*\]"
_DEFAULTS = re.compile(rf"{_QUOTED}|\b(?P<kind>node|edge|graph)\s*(?P<list>{_LIST})\s*;?", re.IGNORECASE)
_SETTING = re.compile(r"(?<![\w\]\[,])([A-Za-z_]\w*)\s*=\s*(\"[^\"]*\"|[\w.+-]+)\s*;?")
_ATTRIBUTES = re.compile(rf"{_QUOTED}|(?P<list>{_LIST})")
_PAIR = re.compile(r"(\w+)\s*=\s*(?:\"(?P<quoted>[^\"]*)\"|(?P<plain>[^\s,;\"]+))")
_ENDS = re.compile(r"[;\n]")
# Ends of edges as they are drawn where nothing is said of them.
_USUAL = {"dir": ("forward",), "arrowhead": ("normal", "vee"), "arrowtail": ("normal", "vee")}
# `dir` to the ends that are drawn, at the tail and at the head.
_ENDS_OF = {"forward": (False, True), "back": (True, False), "both": (True, True), "none": (False, False)}
_CIRCLES = ("dot", "odot")


def from_dot(text: str) -> RehearsalGraph:
    """Reads DOT.

    Raises:
        ValueError: if it is not a directed graph in DOT, or not a rehearsal graph; the message says where.
    """
    return edges_in_dot(text).graph()


def edges_in_dot(text: str) -> EdgeList:
    """The edges of DOT, some of which may have no direction.

    Raises:
        ValueError: if it is not a directed graph in DOT, or has edges of other kinds; the message says where.
    """
    plain = _COMMENT.sub(lambda found: found[0] if found[0].startswith('"') else " ", text)
    head = _HEAD.match(plain)
    if head is None or head[2] is None:
        raise ValueError("expected `digraph { ... }`, with -> between cause and effect")
    body = head["body"]
    bare = re.sub(_QUOTED, "", body)
    if re.search(r"\bsubgraph\b", bare):
        raise ValueError("a subgraph is read by no rule here: write its edges without it")
    if re.search(r"=\s*<", bare):
        raise ValueError("a label in HTML cannot be read: write it in quotation marks")
    for each in _DEFAULTS.finditer(body):
        if (each["kind"] or "").lower() == "edge":
            _usual(_attributes(each["list"]))
    body = _DEFAULTS.sub(lambda found: " " if found["kind"] else found[0], body)
    labels: dict[str, str] = {}
    pairs: dict[str, list[tuple[str, str]]] = {
        each: [] for each in (arrows.DIRECTED, arrows.BIDIRECTED, arrows.UNDIRECTED)
    }
    names: dict[str, None] = {}
    for statement in _statements(body):
        attributes = dict[str, str]()
        for each in _ATTRIBUTES.finditer(statement):
            attributes |= _attributes(each["list"] or "")
        bare = _ATTRIBUTES.sub(lambda found: " " if found["list"] else found[0], statement)
        _plain_names(bare)
        # Attributes are those of one statement.
        found = edges_of(bare, apart=bool(attributes))
        names |= dict.fromkeys(found.names)
        if not found.directed and not found.bidirected and "label" in attributes:
            labels |= dict.fromkeys(found.names, attributes["label"])
        if found.directed:
            kind = _kind(attributes, " -> ".join(found.directed[0]))
            back = kind == arrows.REVERSED
            pairs[arrows.DIRECTED if back else kind].extend(
                pair[::-1] if back else pair for pair in found.directed
            )
        pairs[arrows.BIDIRECTED].extend(found.bidirected)
    called = {name: labels.get(name, name) for name in names}
    if len(set(called.values())) < len(called):
        raise ValueError("several nodes have the same label: name each variable once")
    directed, bidirected, undirected = (
        tuple((called[one], called[other]) for one, other in each) for each in pairs.values()
    )
    return EdgeList(tuple(called.values()), directed, bidirected, undirected)


def _plain_names(statement: str) -> None:
    """Refuses ports, and settings without an end behind them, which would be read as names."""
    bare = re.sub(_QUOTED, "", statement)
    if port := re.search(r"[\w.]*:[\w.]+", bare):
        raise ValueError(
            f"{port[0]!r} has a port, which is read by no rule here: write the node alone, or a name with a "
            "colon in quotation marks"
        )
    if setting := re.search(r"\w+\s*=\s*\S*", bare):
        raise ValueError(f"{beginning(statement.strip(), 60)!r}: write ; behind the setting {setting[0]!r}")


def _attributes(text: str) -> dict[str, str]:
    """The attributes of a list of them, in its brackets."""
    found = _PAIR.finditer(text[1:-1])
    return {pair[1]: pair["quoted"] if pair["quoted"] is not None else pair["plain"] for pair in found}


def _usual(defaults: Mapping[str, str]) -> None:
    """Refuses defaults of all edges that change what an arrow is."""
    for name, usual in _USUAL.items():
        if name in defaults and defaults[name].lower() not in usual:
            raise ValueError(
                f"the default {name} of all edges is read by no rule here: write it at each edge, a -> b "
                f"[{name}={defaults[name]}]"
            )


def _kind(attributes: Mapping[str, str], edge: str) -> str:
    """The arrow that an edge is drawn as."""
    way = attributes.get("dir", "forward").lower()
    if way not in _ENDS_OF:
        raise ValueError(f"{edge} [dir={way}]: expected dir among {', '.join(_ENDS_OF)}")
    ends = []
    for drawn, name in zip(_ENDS_OF[way], ("arrowtail", "arrowhead"), strict=True):
        shape = attributes.get(name, "normal").lower()
        if drawn and shape in _CIRCLES:
            raise ValueError(
                f"{edge} [{name}={shape}]: a circle marks an end that may be a cause or an effect; write "
                "none or normal, as far as you know it, and dir=both with two arrows if a hidden cause moves "
                "both"
            )
        ends.append(drawn and shape != "none")
    signs = (arrows.UNDIRECTED, arrows.DIRECTED, arrows.REVERSED, arrows.BIDIRECTED)
    return signs[2 * ends[0] + ends[1]]


def to_dot(graph: RehearsalGraph) -> str:
    """The DOT of a graph.

    Raises:
        ValueError: if a name contains a quotation mark.
    """
    lines = [f"  {_quoted(name)};" for name in graph.names]
    lines += [f"  {_quoted(one)} -> {_quoted(other)};" for one, other in graph.edges]
    lines += [f"  {_quoted(one)} -> {_quoted(other)} [dir=both];" for one, other in graph.bidirected]
    return "\n".join(["digraph {", *lines, "}", ""])


def _statements(body: str) -> list[str]:
    """The statements, without settings such as `rankdir=LR`; a quoted text holds no end."""
    parts = re.split(rf"({_QUOTED}|{_LIST})", body)
    # Odd parts are quoted texts and attributes, which are kept as they are.
    marked = [part if place % 2 else _ENDS.sub("\0", part) for place, part in enumerate(parts)]
    made = []
    for statement in "".join(marked).split("\0"):
        bare = statement.strip()
        if bare and not _SETTING.fullmatch(bare):
            made.append(bare)
    return made


def _quoted(name: str) -> str:
    if '"' in name:
        raise ValueError(f"{name!r} has a quotation mark, which DOT cannot write here: rename the variable")
    return f'"{name}"'
