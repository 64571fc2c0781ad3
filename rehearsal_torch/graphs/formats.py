"""Reading and writing rehearsal graphs: YAML, networkx, GraphML, GML and dagitty; the file ending decides.

    .yaml .yml        {parents: {child: [causes]}, bidirected: [[...]]}, or {cliques, edges, bows}, alone or
                      under `graph:`
    .graphml .gml     networkx' graphs with the attribute `kind`, as other programs read them
    .dagitty .txt     dagitty's model code

The notation of dagitty:

    dag {
      weather [adjusted]
      recommend [exposure,pos="0.3,1.0"]
      rating [outcome]
      weather -> recommend
      recommend <-> congestion
      {recommend congestion} -> rating
    }

`a -> b -> c`, `a <- b` and groups in braces are read as well; semicolons may separate statements, and
positions and comments are ignored. A variable may have a role: context is written as adjusted, actionable
variables as exposure, outcomes as outcome. In dagitty `<->` is a hidden common cause; here it joins members
of a clique, so that the graph must satisfy Def. 3, or accompanies a directed edge (a bow). An undirected edge
`--` is refused: its direction is unknown.

In a networkx graph, a directed edge has kind "directed". A bi-directional edge is a single edge too, with
kind "bidirected", from the member that comes first to the other; its direction has no meaning. In a bow it
runs opposite to the directed edge, as a networkx graph has one edge in each direction. Edges without a kind
are directed. Two opposite edges without a kind are refused: other programs use them for an undirected edge,
which means an unknown direction, not that both variables move together.

Source: Qin et al. (2023), Def. 1-3; Textor et al. (2016) (dagitty); Hagberg, Schult and Swart (2008)
(networkx; the attribute is ours); Brandes et al. (2002) (GraphML); Himsolt (1997) (GML).
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import ParseError

import networkx as nx
import yaml

from rehearsal_torch.files.plain import PlainFileError, read_yaml, text_of
from rehearsal_torch.files.writing import write_text
from rehearsal_torch.graphs.mixed_graph import RehearsalGraph
from rehearsal_torch.graphs.written_graph import check_size, graph_of

DIRECTED, BIDIRECTED = "directed", "bidirected"


def to_networkx(graph: RehearsalGraph) -> nx.DiGraph:
    """The graph with `kind` on every edge; nodes are in topological order."""
    made = nx.DiGraph()
    made.add_nodes_from(graph.names)
    made.add_edges_from(graph.edges, kind=DIRECTED)
    bows = set(graph.bows)
    made.add_edges_from((pair[::-1] if pair in bows else pair for pair in graph.bidirected), kind=BIDIRECTED)
    return made


def from_networkx(graph: Any) -> RehearsalGraph:
    """A rehearsal graph from a networkx graph with directed edges, with or without `kind`.

    Raises:
        ValueError: if its edges have no direction, two opposite edges have no kind, a kind is unknown, there
            are too many edges or variables, or it is not a rehearsal graph; the message names the edge or
            clique.
    """
    if not graph.is_directed():
        raise ValueError("expected a directed networkx graph; got an undirected one: use nx.DiGraph")
    names = {node: str(data.get("label", node)) for node, data in graph.nodes(data=True)}
    if len(set(names.values())) < len(names):
        raise ValueError("several nodes have the same name: name each variable once")
    check_size(len(names), graph.number_of_edges())
    directed, bidirected = list[tuple[str, str]](), list[tuple[str, str]]()
    for one, other, data in graph.edges(data=True):
        kind = data.get("kind", DIRECTED)
        if kind not in (DIRECTED, BIDIRECTED):
            raise ValueError(
                f"edge {names[one]} -> {names[other]}: expected kind {DIRECTED!r} or {BIDIRECTED!r}; got "
                f"{kind!r}"
            )
        if (
            "kind" not in data
            and one != other
            and graph.has_edge(other, one)
            and "kind" not in _data(graph, other, one)
        ):
            first, second = names[one], names[other]
            raise ValueError(
                f"{first} -> {second} and {second} -> {first} without `kind` may be an undirected edge, "
                "which is not a bi-directional one: keep the intended direction, or keep one and give it "
                f"kind={BIDIRECTED!r} if a hidden cause moves both"
            )
        (bidirected if kind == BIDIRECTED else directed).append((names[one], names[other]))
    return RehearsalGraph.mixed(names.values(), directed, bidirected)


def _data(graph: Any, one: Any, other: Any) -> dict[str, Any]:
    """The attributes of an edge; those of the first one in a multigraph."""
    found = graph.get_edge_data(one, other)
    return next(iter(found.values())) if graph.is_multigraph() else found


_TOKEN = re.compile(
    r"""\s*(?:(?P<comment>(?:\#|//)[^\n]*|/\*.*?\*/)
    |(?P<setting>\w+\s*=\s*"[^"]*")
    |(?P<edge><->|->|<-|--|@-@|@->|<-@|@--|--@)
    |(?P<mark>[{};])
    |(?P<list>\[[^\]]*\])
    |"(?P<quoted>[^"]*)"
    |(?P<word>[^\s{}\[\];"<>]+?(?=\s|[{}\[\];"]|<->|->|<-|--|$)))""",
    re.DOTALL | re.VERBOSE,
)
_PART = re.compile(r"\b(exposure|outcome|adjusted|latent|unobserved|selected)\b")
_PLAIN = re.compile(r"[A-Za-z_][\w.]*\Z")
_QUOTED = re.compile(r'"[^"]*"')


@dataclass(frozen=True)
class Written:
    """A graph read from dagitty, with the roles of its variables.

    Attributes:
        graph: The influence graph.
        parts: Role ("exposure", "outcome", "adjusted") to the variables that have it.
    """

    graph: RehearsalGraph
    parts: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


def to_dagitty(
    graph: RehearsalGraph,
    context: Iterable[str] = (),
    alterable: Iterable[str] = (),
    outcomes: Iterable[str] = (),
) -> str:
    """The dagitty code of a graph.

    Args:
        graph: The influence graph.
        context: X, marked as adjusted.
        alterable: The actionable variables, marked as exposure.
        outcomes: Y, marked as outcome.

    Raises:
        ValueError: if a role names an unknown variable, or a name contains a quotation mark.
    """
    part = {
        **dict.fromkeys(context, "adjusted"),
        **dict.fromkeys(alterable, "exposure"),
        **dict.fromkeys(outcomes, "outcome"),
    }
    if unknown := sorted(set(part) - set(graph.names)):
        raise ValueError(f"unknown variables {unknown}: the variables are {list(graph.names)}")
    lines = [_quoted(name) + (f" [{part[name]}]" if name in part else "") for name in graph.names]
    lines += [f"{_quoted(one)} -> {_quoted(other)}" for one, other in graph.edges]
    lines += [f"{_quoted(one)} <-> {_quoted(other)}" for one, other in graph.bidirected]
    return "\n".join(["dag {", *(f"  {line}" for line in lines), "}", ""])


def from_dagitty(text: str) -> Written:
    """Reads dagitty code.

    Raises:
        ValueError: if the text is not dagitty code, has edges or variables of kinds that a rehearsal graph
            cannot have, or is not a rehearsal graph; the message says where.
    """
    tokens = _tokens(text)
    kinds = [value for _, value in tokens]
    start = kinds.index("{") if "{" in kinds else -1
    if (
        start < 0
        or kinds[-1] != "}"
        or not 1 <= start <= 2
        or kinds[0].lower() not in ("dag", "mag", "graph", "digraph")
    ):
        raise ValueError("expected `dag { ... }`, as dagitty shows it under model code")
    names: dict[str, None] = {}
    parts: dict[str, list[str]] = {}
    directed: list[tuple[str, str]] = []
    bidirected: list[tuple[str, str]] = []
    body = tokens[start + 1 : -1]
    at, line, before = 0, "", list[str]()
    while at < len(body):
        kind, value = body[at]
        if kind == "edge":
            if value not in ("->", "<-", "<->") or not before:
                undirected = (
                    value == "--"
                    and bool(before)
                    and "; -- means that the direction is unknown: choose one, or write <->"
                )
                raise ValueError(
                    f"edge {value!r}: expected ->, <- or <-> between two variables; a rehearsal graph has no "
                    f"others{undirected or ''}"
                )
            line = value
        elif value == "{" or kind == "word":
            group, at = _group(body, at)
            names |= dict.fromkeys(group)
            check_size(len(names), len(directed) + len(bidirected) + len(before) * len(group) * bool(line))
            for one, other in ((one, other) for one in before for other in group if line):
                (bidirected if line == "<->" else directed).append(
                    (other, one) if line == "<-" else (one, other)
                )
            before, line = group, ""
        elif kind == "list":
            for mark in _PART.findall(_QUOTED.sub("", value)):
                if mark in ("latent", "unobserved", "selected"):
                    raise ValueError(
                        f"{before} is {mark}: a rehearsal graph has observed variables only; join the "
                        "variables that it moves with <->"
                    )
                parts.setdefault(mark, []).extend(before)
        if value == ";":
            if line:
                raise ValueError(f"an edge {line!r} leads nowhere: expected a variable after it")
            before = []
        at += 1
    if line:
        raise ValueError(f"an edge {line!r} leads nowhere: expected a variable after it")
    return Written(
        RehearsalGraph.mixed(names, directed, bidirected),
        {mark: tuple(dict.fromkeys(each)) for mark, each in parts.items()},
    )


def _tokens(text: str) -> list[tuple[str, str]]:
    """(kind, value) of every word, edge, list and mark.

    Raises:
        ValueError: naming the first characters that are none of these.
    """
    found, at, text = list[tuple[str, str]](), 0, text.strip()
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None or match.end() == at:
            raise ValueError(
                f"cannot read {text[at : at + 30].strip()!r} in line {text.count(chr(10), 0, at) + 1}"
            )
        kind = str(match.lastgroup)
        if kind not in ("comment", "setting"):
            found.append(("word" if kind == "quoted" else kind, match[kind]))
        at = match.end()
    return found


def _group(body: Sequence[tuple[str, str]], at: int) -> tuple[list[str], int]:
    """The variable, or the variables in braces, that begin here, and the position where they end."""
    if body[at][1] != "{" or body[at][0] == "word":
        return [body[at][1]], at
    names = list[str]()
    for place in range(at + 1, len(body)):
        kind, value = body[place]
        if (kind, value) == ("mark", "}"):
            return names, place
        if kind != "word":
            raise ValueError(f"expected variables within braces; got {value!r}")
        names.append(value)
    raise ValueError("a brace is opened and not closed")


def _quoted(name: str) -> str:
    if '"' in name:
        raise ValueError(f"{name!r} has a quotation mark, which dagitty cannot write: rename the variable")
    return name if _PLAIN.match(name) else f'"{name}"'


ENDINGS = (".yaml", ".yml", ".graphml", ".gml", ".dagitty", ".txt")


def write_graph(graph: RehearsalGraph, path: str | Path) -> Path:
    """Writes a graph to a file; missing folders are created.

    Returns:
        The file.

    Raises:
        ValueError: for an ending that is not in `ENDINGS`.
    """
    file = _known(path)
    if file.suffix in (".yaml", ".yml"):
        return write_text(
            file,
            yaml.safe_dump(graph.to_plain(), sort_keys=False, default_flow_style=None, allow_unicode=True),
        )
    if file.suffix in (".dagitty", ".txt"):
        return write_text(file, to_dagitty(graph))
    lines = (
        nx.generate_graphml(to_networkx(graph))
        if file.suffix == ".graphml"
        else nx.generate_gml(to_networkx(graph))
    )
    return write_text(file, "".join(f"{line}\n" for line in lines))


def read_graph(path: str | Path) -> RehearsalGraph:
    """Reads a graph from a file.

    Raises:
        FileNotFoundError: if there is no such file.
        ValueError: for an ending that is not in `ENDINGS`, or if the file cannot be read or holds no
            rehearsal graph; the message names the file and the fault.
    """
    file = _known(path)
    if not file.is_file():
        raise FileNotFoundError(f"there is no file {file}")
    try:
        if file.suffix in (".yaml", ".yml"):
            return graph_of(read_yaml(file))
        text = text_of(file)
        if file.suffix in (".dagitty", ".txt"):
            return from_dagitty(text).graph
        return from_networkx(nx.parse_graphml(text) if file.suffix == ".graphml" else nx.parse_gml(text))
    except PlainFileError:
        raise
    except RecursionError as error:
        raise ValueError(f"{file}: nests too deep to be a graph") from error
    except (
        ValueError,
        KeyError,
        TypeError,
        IndexError,
        AttributeError,
        ParseError,
        nx.NetworkXError,
    ) as error:
        raise ValueError(f"{file}: {' '.join(str(error).split())}") from error


def _known(path: str | Path) -> Path:
    file = Path(path)
    if file.suffix not in ENDINGS:
        raise ValueError(f"{file}: unknown ending {file.suffix!r}; expected one of {', '.join(ENDINGS)}")
    return file
