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

It is read here, in one pass over the text, and not by pydot, which takes twice the time for each further pair
of braces around a node (2 s for nine, in a text of 49 letters) and 3.5 s, not .1 s, for 4,000 edges.

Source: Gansner, Koutsofios and North (2015), the DOT language.
"""

import re
from collections.abc import Iterator, Mapping

from rehearsal_torch.files.addresses import beginning
from rehearsal_torch.graphs.dagitty import edges_of
from rehearsal_torch.graphs.edge_list import BIDIRECTED, DIRECTED, REVERSED, UNDIRECTED, EdgeList
from rehearsal_torch.graphs.mixed_graph import RehearsalGraph, check_size

_QUOTED = r'"[^"]*+"'
# What is left open reaches to the end of the text, so that it is read once.
_TOKEN = re.compile(
    rf"""(?P<comment>/\*.*?(?:\*/|\Z)|//[^\n]*+|^[ \t]*+\#[^\n]*+)
    |(?P<quoted>{_QUOTED})
    |(?P<list>\[(?:[^\]"]|{_QUOTED})*+\])
    |(?P<open>["\[].*)
    |(?P<end>[;\n])
    |(?P<plain>[^"\[;\n/]++|/)""",
    re.DOTALL | re.MULTILINE | re.VERBOSE,
)
_HEAD = re.compile(rf"\s*+(?:strict\s++)?digraph\b\s*+(?:{_QUOTED}|[\w.]++)?\s*+\{{")
_SETTING = re.compile(rf"[A-Za-z_]\w*+\s*+=\s*+(?:{_QUOTED}|[\w.+-]++)")
_PAIR = re.compile(rf"(?<!\w)(?P<name>\w++)\s*+=\s*+(?P<value>{_QUOTED}|[^\s,;\"]++)")
_PORT = re.compile(r"(?<![\w.])[\w.]*+:[\w.]++")
_UNENDED = re.compile(r"(?<!\w)\w++\s*+=\s*+\S*+")
_DEFAULTS = ("node", "edge", "graph")
# Ends of edges as they are drawn where nothing is said of them.
_USUAL = {"dir": ("forward",), "arrowhead": ("normal", "vee"), "arrowtail": ("normal", "vee")}
# `dir` to the ends that are drawn, at the tail and at the head.
_ENDS_OF = {"forward": (False, True), "back": (True, False), "both": (True, True), "none": (False, False)}
_CIRCLES = ("dot", "odot")


def edges_in_dot(text: str) -> EdgeList:
    """The edges of DOT, some without a direction; ValueError says where it is none, or has others."""
    pairs: dict[str, list[tuple[str, str]]] = {each: [] for each in (DIRECTED, BIDIRECTED, UNDIRECTED)}
    names, labels = dict[str, None](), dict[str, str]()
    for statement, attributes in _statements(_body(text)):
        if statement.lower() in _DEFAULTS:
            if statement.lower() == "edge":
                _usual(attributes)
            continue
        _plain_names(statement)
        # Attributes are those of one statement.
        edges = edges_of(statement, apart=bool(attributes))
        names |= dict.fromkeys(edges.names)
        if not edges.directed and not edges.bidirected and "label" in attributes:
            labels |= dict.fromkeys(edges.names, attributes["label"])
        if edges.directed:
            kind = _kind(attributes, " -> ".join(edges.directed[0]))
            back = kind == REVERSED
            pairs[DIRECTED if back else kind].extend(pair[::-1] if back else pair for pair in edges.directed)
        pairs[BIDIRECTED].extend(edges.bidirected)
        check_size(len(names), sum(map(len, pairs.values())))
    called = {name: labels.get(name, name) for name in names}
    if len(set(called.values())) < len(called):
        raise ValueError("several nodes have the same label: name each variable once")
    directed, bidirected, undirected = (
        tuple((called[source], called[target]) for source, target in each) for each in pairs.values()
    )
    return EdgeList(tuple(called.values()), directed, bidirected, undirected)


def _body(text: str) -> str:
    """What stands between the braces of the graph, without comments."""
    plain = "".join(" " if token.lastgroup == "comment" else token[0] for token in _tokens(text)).strip()
    head = _HEAD.match(plain)
    if head is None or not plain.endswith("}"):
        raise ValueError("expected `digraph { ... }`, with -> between cause and effect")
    body = plain[head.end() : -1]
    bare = re.sub(_QUOTED, "", body)
    if re.search(r"\bsubgraph\b", bare):
        raise ValueError("a subgraph is read by no rule here: write its edges without it")
    if re.search(r"=\s*+<", bare):
        raise ValueError("a label in HTML cannot be read: write it in quotation marks")
    return body


def _tokens(text: str) -> Iterator[re.Match[str]]:
    for token in _TOKEN.finditer(text):
        if token.lastgroup == "open":
            raise ValueError(
                f"{beginning(token[0], 60)!r}: a quotation mark or a bracket is opened and not closed"
            )
        yield token


def _statements(body: str) -> Iterator[tuple[str, dict[str, str]]]:
    """The statements and their attributes, without settings such as `rankdir=LR`."""
    words, attributes = list[str](), dict[str, str]()
    for token in _tokens(f"{body};"):
        ends = token.lastgroup == "end"
        if token.lastgroup == "list":
            pairs = _PAIR.finditer(token[0][1:-1])
            attributes |= {pair["name"]: pair["value"].removeprefix('"').removesuffix('"') for pair in pairs}
            # Nothing need separate defaults from the next statement.
            ends = len(words) == 1 and words[0].strip().lower() in _DEFAULTS
        elif not ends:
            words.append(token[0])
        if ends:
            statement = "".join(words).strip()
            if statement and not _SETTING.fullmatch(statement):
                yield statement, attributes
            words, attributes = [], {}


def _plain_names(statement: str) -> None:
    """Refuses ports, and settings without an end behind them, which would be read as names."""
    bare = re.sub(_QUOTED, "", statement)
    if port := _PORT.search(bare):
        raise ValueError(
            f"{port[0]!r} has a port, which is read by no rule here: write the node alone, or a name with a "
            "colon in quotation marks"
        )
    if setting := _UNENDED.search(bare):
        raise ValueError(
            f"{beginning(statement, 60)!r}: write ; behind the setting {beginning(setting[0], 60)!r}"
        )


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
    signs = (UNDIRECTED, DIRECTED, REVERSED, BIDIRECTED)
    return signs[2 * ends[0] + ends[1]]


def to_dot(graph: RehearsalGraph) -> str:
    """The DOT of a graph; ValueError if a name contains a quotation mark."""
    lines = [f"  {_quoted(name)};" for name in graph.names]
    lines += [f"  {_quoted(source)} -> {_quoted(target)};" for source, target in graph.edges]
    lines += [f"  {_quoted(source)} -> {_quoted(target)} [dir=both];" for source, target in graph.bidirected]
    return "\n".join(["digraph {", *lines, "}", ""])


def _quoted(name: str) -> str:
    if '"' in name:
        raise ValueError(f"{name!r} has a quotation mark, which DOT cannot write here: rename the variable")
    return f'"{name}"'
