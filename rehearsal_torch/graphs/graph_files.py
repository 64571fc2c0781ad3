"""Graph files: YAML, networkx' GraphML and GML, dagitty and DOT, recognised by their suffix.

    .yaml .yml        {parents: {child: [causes]}, bidirected: [[...]]}, or {cliques, edges, hidden}, alone or
                      under `graph:`
    .graphml .gml     networkx' graphs with the attribute `kind`, as other programs read them
    .dagitty .txt     dagitty's model code
    .pdag             the same, `pdag { ... }`, in which edges may have no direction (`graphs.dagitty`)
    .dot .gv          Graphviz' DOT

In a networkx graph, a directed edge has kind "directed" or none. A bi-directional edge is a single edge too,
with kind "bidirected", from the member that comes first to the other; its direction has no meaning. In a bow
it runs opposite to the directed edge, as a networkx graph has one edge in each direction. Two opposite edges
without a kind are refused: other programs use them for an undirected edge, which means an unknown direction,
not that both variables move together.

    digraph {
      rankdir=LR; node [shape=box];
      0 [label="age"]; 1 [label="bmi"];
      0 -> 1;
      1 -> 2 [dir=both];
    }

In DOT an edge with `dir=both` is a hidden common cause, `dir=back` turns it around, and one with `dir=none`
has no direction. Of an end that is drawn, `arrowtail=none` and `arrowhead=none` leave the arrow away:
causal-learn writes each edge as `dir=both` with both. Circles (`odot`) are refused. Labels name nodes.

A node is hidden if it has `latent`, `hidden` or `unobserved` (alone or =true, =yes, =1) or `observed="no"`,
or is called by such a word (`U [label="Unobserved confounder"]`), in DOT, GraphML and GML. As in dagitty's
code, hidden nodes are projected out: those that they influence share a hidden common cause.

In DOT, attributes of other kinds, defaults of `node`, `edge` and `graph`, and settings such as `rankdir=LR`
are ignored; defaults that change the ends of edges, subgraphs, ports and labels in HTML are refused. DOT is
read here, in one pass over the text, and not by pydot, which takes twice the time for each further pair of
braces around a node (2 s for nine) and 3.5 s, not .1 s, for 4,000 edges.

Source: Qin et al. (2023), Def. 1-3; Hagberg, Schult and Swart (2008) (networkx); Brandes et al. (2002)
(GraphML); Himsolt (1997) (GML); Gansner, Koutsofios and North (2015), the DOT language.
"""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import ParseError

import networkx as nx

from rehearsal_torch.files.bounded_yaml import PlainFileError, read_yaml, text_of
from rehearsal_torch.files.redaction import beginning
from rehearsal_torch.graphs.dagitty import (
    BIDIRECTED,
    DIRECTED,
    REVERSED,
    UNDIRECTED,
    EdgeList,
    edges_of,
    is_latent,
    model_of,
)
from rehearsal_torch.graphs.graph_notation import graph_of
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
_ALONE = re.compile(r"\w+")
_OPEN_SETTING = re.compile(r"(?<!\w)\w++\s*+=\s*+\S*+")
_DEFAULTS = ("node", "edge", "graph")
# Ends of edges as they are drawn where nothing is said of them.
_USUAL = {"dir": ("forward",), "arrowhead": ("normal", "vee"), "arrowtail": ("normal", "vee")}
# `dir` to the ends that are drawn, at the tail and at the head.
_ENDS_OF = {"forward": (False, True), "back": (True, False), "both": (True, True), "none": (False, False)}
_CIRCLES = ("dot", "odot")


def edges_in_dot(text: str) -> EdgeList:
    """The edges of DOT, some without a direction; ValueError says where it is invalid."""
    pairs: dict[str, list[tuple[str, str]]] = {sign: [] for sign in (DIRECTED, BIDIRECTED, UNDIRECTED)}
    names, labels, latent = dict[str, None](), dict[str, str](), set[str]()
    for statement, attributes in _statements(_graph_body(text)):
        if statement.lower() in _DEFAULTS:
            for name, drawn in _USUAL.items() if statement.lower() == "edge" else ():
                if attributes.get(name, drawn[0]).lower() not in drawn:
                    raise ValueError(
                        f"the default {name} of all edges is read by no rule here: write it at each edge, "
                        f"a -> b [{name}={attributes[name]}]"
                    )
            continue
        _check_names(statement)
        # Attributes are those of one statement.
        edges = edges_of(statement, apart=bool(attributes))
        names |= dict.fromkeys(edges.names)
        if not edges.directed and not edges.bidirected:
            hidden = [name for name in edges.names if is_latent(attributes, attributes.get("label", name))]
            latent.update(hidden)
            visible = [name for name in edges.names if name not in hidden]
            labels |= dict.fromkeys(visible, attributes["label"]) if "label" in attributes else {}
        if edges.directed:
            kind = _arrow(attributes, " -> ".join(edges.directed[0]))
            back = kind == REVERSED
            pairs[DIRECTED if back else kind].extend(pair[::-1] if back else pair for pair in edges.directed)
        pairs[BIDIRECTED].extend(edges.bidirected)
        check_size(len(names), sum(map(len, pairs.values())))
    label_of = {name: labels.get(name, name) for name in names}
    if len(set(label_of.values())) < len(label_of):
        raise ValueError("several nodes have the same label: name each variable once")
    directed, bidirected, undirected = (
        tuple((label_of[source], label_of[target]) for source, target in edges) for edges in pairs.values()
    )
    edge_list = EdgeList(tuple(label_of.values()), directed, bidirected, undirected)
    return edge_list.without({label_of[name] for name in latent})


def _graph_body(text: str) -> str:
    """What stands between the braces of the graph, without comments."""
    code = "".join(" " if token.lastgroup == "comment" else token[0] for token in _tokens(text)).strip()
    head = _HEAD.match(code)
    if head is None or not code.endswith("}"):
        raise ValueError("expected `digraph { ... }`, with -> between cause and effect")
    body = code[head.end() : -1]
    unquoted = re.sub(_QUOTED, "", body)
    if re.search(r"\bsubgraph\b", unquoted):
        raise ValueError("a subgraph is read by no rule here: write its edges without it")
    if re.search(r"=\s*+<", unquoted):
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
            attributes |= dict.fromkeys(_ALONE.findall(_PAIR.sub("", token[0][1:-1])), "")
            # Nothing need separate defaults from the next statement.
            ends = len(words) == 1 and words[0].strip().lower() in _DEFAULTS
        elif not ends:
            words.append(token[0])
        if ends:
            statement = "".join(words).strip()
            if statement and not _SETTING.fullmatch(statement):
                yield statement, attributes
            words, attributes = [], {}


def _check_names(statement: str) -> None:
    """Refuses ports, and settings without an end behind them, which would be read as names."""
    unquoted = re.sub(_QUOTED, "", statement)
    if port := _PORT.search(unquoted):
        raise ValueError(
            f"{port[0]!r} has a port, which is read by no rule here: write the node alone, or a name with a "
            "colon in quotation marks"
        )
    if setting := _OPEN_SETTING.search(unquoted):
        raise ValueError(
            f"{beginning(statement, 60)!r}: write ; behind the setting {beginning(setting[0], 60)!r}"
        )


def _arrow(attributes: Mapping[str, str], edge: str) -> str:
    direction = attributes.get("dir", "forward").lower()
    if direction not in _ENDS_OF:
        raise ValueError(f"{edge} [dir={direction}]: expected dir among {', '.join(_ENDS_OF)}")
    ends = []
    for is_drawn, name in zip(_ENDS_OF[direction], ("arrowtail", "arrowhead"), strict=True):
        shape = attributes.get(name, "normal").lower()
        if is_drawn and shape in _CIRCLES:
            raise ValueError(
                f"{edge} [{name}={shape}]: a circle marks an end that may be a cause or an effect; write "
                "none or normal, as far as you know it, and dir=both with two arrows if a hidden cause moves "
                "both"
            )
        ends.append(is_drawn and shape != "none")
    signs = (UNDIRECTED, DIRECTED, REVERSED, BIDIRECTED)
    return signs[2 * ends[0] + ends[1]]


ONE_WAY, BOTH_WAYS = "directed", "bidirected"
ENDINGS = (".yaml", ".yml", ".graphml", ".gml", ".dagitty", ".txt", ".pdag", ".dot", ".gv")


def to_networkx(graph: RehearsalGraph) -> nx.DiGraph:
    """The graph with `kind` on every edge; nodes are in topological order."""
    exported = nx.DiGraph()
    exported.add_nodes_from(graph.names)
    exported.add_edges_from(graph.edges, kind=ONE_WAY)
    exported.add_edges_from(
        (pair[::-1] if pair in graph.hidden else pair for pair in graph.bidirected), kind=BOTH_WAYS
    )
    return exported


def to_graphml(graph: RehearsalGraph) -> str:
    """GraphML, with `kind` on every edge."""
    return "".join(f"{line}\n" for line in nx.generate_graphml(to_networkx(graph)))


def from_networkx(graph: Any) -> RehearsalGraph:
    """A rehearsal graph from a directed networkx graph, with or without `kind`. A ValueError, which says
    where, for edges without direction, unknown kinds, opposite edges without one, or an invalid graph.
    """
    if not graph.is_directed():
        raise ValueError("expected a directed networkx graph; got an undirected one: use nx.DiGraph")
    names = {node: str(data.get("label", node)) for node, data in graph.nodes(data=True)}
    if len(set(names.values())) < len(names):
        raise ValueError("several nodes have the same name: name each variable once")
    check_size(len(names), graph.number_of_edges())
    directed, bidirected = list[tuple[str, str]](), list[tuple[str, str]]()
    for source, target, data in graph.edges(data=True):
        kind = data.get("kind", ONE_WAY)
        if kind not in (ONE_WAY, BOTH_WAYS):
            raise ValueError(
                f"edge {names[source]} -> {names[target]}: expected kind {ONE_WAY!r} or {BOTH_WAYS!r}; got "
                f"{kind!r}"
            )
        if "kind" not in data and source != target and graph.has_edge(target, source):
            back = graph.get_edge_data(target, source)
            first, second = names[source], names[target]
            if "kind" not in (next(iter(back.values())) if graph.is_multigraph() else back):
                raise ValueError(
                    f"{first} -> {second} and {second} -> {first} without `kind` may be an undirected edge, "
                    "which is not a bi-directional one: keep the intended direction, or keep one and give it "
                    f"kind={BOTH_WAYS!r} if a hidden cause moves both"
                )
        (bidirected if kind == BOTH_WAYS else directed).append((names[source], names[target]))
    latent = {names[node] for node, data in graph.nodes(data=True) if is_latent(data, names[node])}
    every = EdgeList(tuple(names.values()), tuple(directed), tuple(bidirected))
    return every.without(latent).graph()


def read_plain(path: str | Path) -> dict[str, Any]:
    """The graph of a file as plain data, or {parents, undirected}; ValueError if it holds none."""
    file = Path(path)
    if file.suffix not in ENDINGS:
        raise ValueError(f"{file}: unknown ending {file.suffix!r}; expected one of {', '.join(ENDINGS)}")
    if not file.is_file():
        raise FileNotFoundError(f"there is no file {file}")
    try:
        if file.suffix in (".yaml", ".yml"):
            return _plain(read_yaml(file))
        text = text_of(file)
        if file.suffix in (".dagitty", ".txt", ".pdag"):
            return model_of(text).to_plain()
        if file.suffix in (".dot", ".gv"):
            return edges_in_dot(text).to_plain()
        graph = nx.parse_graphml(text) if file.suffix == ".graphml" else nx.parse_gml(text)
        return from_networkx(graph).to_plain()
    except PlainFileError:
        raise
    except RecursionError as error:
        raise ValueError(f"{file}: nests too deep to be a graph") from error
    except (ValueError, LookupError, TypeError, AttributeError, ParseError, nx.NetworkXError) as error:
        raise ValueError(f"{file}: {' '.join(str(error).split())}") from error


def _plain(document: Any) -> dict[str, Any]:
    """The graph of a YAML file; undirected edges are validated by what reads them."""
    under = document.get("graph", document) if isinstance(document, Mapping) else document
    if isinstance(under, Mapping) and "parents" in under and under.get("undirected"):
        return dict(under)
    return graph_of(document).to_plain()
