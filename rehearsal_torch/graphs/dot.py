"""Graphviz' DOT, as other programs write causal graphs.

    digraph {
      rankdir=LR; node [shape=box];
      0 [label="age"]; 1 [label="bmi"];
      0 -> 1;
      1 -> 2 [dir=both];
    }

An edge with `dir=both` is a hidden common cause, `dir=back` turns it around. A node is called by its label
if it has one. Attributes of other kinds, `node`, `edge` and `graph` defaults and settings such as
`rankdir=LR` are ignored; subgraphs, ports and labels in HTML are refused. The statements are those of
dagitty (`graphs.dagitty`).

Source: Gansner, Koutsofios and North (2015), the DOT language.
"""

import re

from rehearsal_torch.graphs.dagitty import edges_of
from rehearsal_torch.graphs.mixed_graph import RehearsalGraph

_HEAD = re.compile(r"\s*(strict\s+)?(di)?graph\b\s*(\"[^\"]*\"|[\w.]+)?\s*\{(?P<body>.*)\}\s*\Z", re.DOTALL)
_COMMENT = re.compile(r"\"[^\"]*\"|/\*.*?\*/|//[^\n]*|^\s*#[^\n]*", re.DOTALL | re.MULTILINE)
_DEFAULTS = re.compile(r"\b(node|edge|graph)\s*\[[^\]]*\]\s*;?", re.IGNORECASE)
_SETTING = re.compile(r"(?<![\w\]\[,])([A-Za-z_]\w*)\s*=\s*(\"[^\"]*\"|[\w.+-]+)\s*;?")
_ATTRIBUTES = re.compile(r"\[(?P<inside>(?:[^\]\"]|\"[^\"]*\")*)\]")
_PAIR = re.compile(r"(\w+)\s*=\s*(?:\"(?P<quoted>[^\"]*)\"|(?P<plain>[^\s,;\"]+))")
_ENDS = re.compile(r"[;\n]")


def from_dot(text: str) -> RehearsalGraph:
    """Reads DOT.

    Raises:
        ValueError: if it is not a directed graph in DOT, or not a rehearsal graph; the message says where.
    """
    plain = _COMMENT.sub(lambda found: found[0] if found[0].startswith('"') else " ", text)
    head = _HEAD.match(plain)
    if head is None or head[2] is None:
        raise ValueError("expected `digraph { ... }`, with -> between cause and effect")
    body = head["body"]
    if re.search(r"\bsubgraph\b", body):
        raise ValueError("a subgraph is read by no rule here: write its edges without it")
    if re.search(r"=\s*<", body):
        raise ValueError("a label in HTML cannot be read: write it in quotation marks")
    body = _DEFAULTS.sub(" ", body)
    labels: dict[str, str] = {}
    directed: list[tuple[str, str]] = []
    bidirected: list[tuple[str, str]] = []
    names: dict[str, None] = {}
    for statement in _statements(body):
        attributes = dict[str, str]()
        for each in _ATTRIBUTES.finditer(statement):
            attributes |= {
                pair[1]: pair["quoted"] if pair["quoted"] is not None else pair["plain"]
                for pair in _PAIR.finditer(each["inside"])
            }
        # Attributes are those of one statement.
        found = edges_of(_ATTRIBUTES.sub(" ", statement), apart=bool(attributes))
        names |= dict.fromkeys(found.names)
        if not found.directed and not found.bidirected and "label" in attributes:
            labels |= dict.fromkeys(found.names, attributes["label"])
        arrows = (
            [pair[::-1] for pair in found.directed] if attributes.get("dir") == "back" else found.directed
        )
        (bidirected if attributes.get("dir") == "both" else directed).extend(arrows)
        bidirected.extend(found.bidirected)
    called = {name: labels.get(name, name) for name in names}
    if len(set(called.values())) < len(called):
        raise ValueError("several nodes have the same label: name each variable once")
    return RehearsalGraph.mixed(
        called.values(),
        [(called[one], called[other]) for one, other in directed],
        [(called[one], called[other]) for one, other in bidirected],
    )


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
    parts = re.split(r"(\"[^\"]*\"|\[(?:[^\]\"]|\"[^\"]*\")*\])", body)
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
