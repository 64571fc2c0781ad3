"""The text of Tetrad and of causal-learn (`str(graph)`), as they print and save graphs.

    Graph Nodes:
    age;bmi;bp;progression

    Graph Edges:
    1. age --> bmi
    2. bmi <-> bp
    3. bp --> progression

`-->` is a direct cause, `<->` a hidden common cause, and `---` an edge whose direction is unknown
(`edge_list`). The circles of a PAG (`o->`, `o-o`) are refused, and so are Tetrad's marks pd (possibly direct)
and pl (possibly a latent confounder), since each leaves open what the graph is; dd and nl are what an arrow
says here. An arrow of a PAG without marks is read as a direct cause, though there it is an ancestor. Latent
variables, which Tetrad writes in parentheses, are projected out (`latent_projection`). Nodes may be left out,
probabilities of a bootstrap (`[a --> b]:0.9`), attributes and triples are ignored.

Source: Ramsey et al. (2018) (Tetrad); Zheng et al. (2024) (causal-learn), `GeneralGraph.__str__`.
"""

import re
from collections.abc import Collection, Iterator

from rehearsal_torch.files.addresses import beginning
from rehearsal_torch.graphs import arrows
from rehearsal_torch.graphs.edge_list import EdgeList, listed
from rehearsal_torch.graphs.graph_size import check_size
from rehearsal_torch.graphs.latent_projection import projected
from rehearsal_torch.graphs.mixed_graph import RehearsalGraph

_HEAD = re.compile(r"[ \t]*Graph (Nodes|Edges)\b[^\n:]*:[ \t]*(?P<rest>[^\n]*)", re.IGNORECASE)
_BEGINS = re.compile(rf"^{_HEAD.pattern}", re.IGNORECASE | re.MULTILINE)
# What follows the edges: attributes, and triples of three kinds.
_OTHER = re.compile(r"\s*(Graph [^:]*:|Ambiguous |Underline|Dotted |[^\d\s].*:\s*$)", re.IGNORECASE)
_RULE = re.compile(r"\s*=*\s*")
_ARROW = rf"{arrows.PATTERN}|[-<o]-[->o]"
_EDGE = re.compile(rf"\s*(?:\d+\.\s+)?(?P<one>\S.*?)\s+(?P<arrow>{_ARROW})\s+(?P<other>\S.*?)\s*")
_AFTER = re.compile(r"(?P<name>.*?)(?P<marks>(?:\s+[dpn][dl])*)(?:\s+\[.*)?")


def is_tetrad(text: str) -> bool:
    """Whether a text has the nodes or edges of Tetrad and causal-learn."""
    return _BEGINS.search(text) is not None


def from_tetrad(text: str) -> EdgeList:
    """Reads the text of a graph.

    Raises:
        ValueError: if it is none, a line of the edges cannot be read, or an edge has a mark that leaves open
            what it is; the message names the line or the edges.
    """
    if not is_tetrad(text):
        raise ValueError("expected `Graph Nodes:` and `Graph Edges:`, as Tetrad and causal-learn write them")
    lines = list(_lines(text))
    edges = [line for part, line in lines if part == "edges"]
    nodes = _nodes([line for part, line in lines if part == "nodes"], bool(edges))
    if selected := [name for name in nodes if name.startswith("[") and name.endswith("]")]:
        raise ValueError(
            f"{selected[0]} selects the rows, which cannot be corrected for: leave it out if it does not"
        )
    latent = {name[1:-1] for name in nodes if name.startswith("(") and name.endswith(")")}
    names = dict.fromkeys(name[1:-1] if name[1:-1] in latent else name for name in nodes)
    pairs: dict[str, list[tuple[str, str]]] = {
        each: [] for each in (arrows.DIRECTED, arrows.BIDIRECTED, arrows.UNDIRECTED)
    }
    circles, open_marks = list[str](), list[str]()
    for line in edges:
        one, sign, other, marks = _edge(line, (*names, *nodes))
        ends = [name[1:-1] if name[1:-1] in latent else name for name in (one, other)]
        if unknown := [name for name in ends if nodes and name not in names]:
            raise ValueError(
                f"{beginning(line.strip(), 60)!r}: {unknown[0]!r} is not among the nodes {listed([*names])}"
            )
        names |= dict.fromkeys(ends)
        said = f"{one} {sign} {other}"
        if "o" in sign:
            circles.append(said)
        elif {"pd", "pl"} & marks:
            open_marks.append(" ".join([said, *sorted(marks)]))
        elif arrows.arrow(sign) == arrows.REVERSED:
            pairs[arrows.DIRECTED].append((ends[1], ends[0]))
        else:
            pairs[arrows.arrow(sign)].append((ends[0], ends[1]))
    check_size(len(names), len(edges))
    _settled(circles, open_marks)
    directed, bidirected, undirected = (tuple(each) for each in pairs.values())
    if not latent:
        return EdgeList(tuple(names), directed, bidirected, undirected)
    if undirected:
        raise ValueError(
            f"{min(latent)} is latent beside edges without a direction ({' --- '.join(undirected[0])}): "
            "choose their directions, or write <-> in place of the latent variable"
        )
    return EdgeList(*projected(tuple(names), directed, bidirected, latent))


def to_tetrad(graph: RehearsalGraph) -> str:
    """The text of a graph.

    Raises:
        ValueError: if a name cannot be told from the marks of the text.
    """
    edges = [f"{one} --> {other}" for one, other in graph.edges]
    edges += [f"{one} <-> {other}" for one, other in graph.bidirected]
    numbered = [f"{place}. {edge}" for place, edge in enumerate(edges, 1)]
    text = "\n".join(["Graph Nodes:", ";".join(graph.names), "", "Graph Edges:", *numbered, ""])
    # Names have no quotation marks there, so that they are read back before they are trusted.
    try:
        read: EdgeList | None = from_tetrad(text)
    except ValueError:
        read = None
    if read != EdgeList(graph.names, graph.edges, graph.bidirected):
        raise ValueError(
            "a name cannot be told from the marks of Tetrad's text: rename variables whose names have ;, a "
            "comma, brackets or an arrow"
        )
    return text


def _lines(text: str) -> Iterator[tuple[str, str]]:
    """The part ("nodes", "edges", or another) and each of its lines that is not empty."""
    part = ""
    for each in text.splitlines():
        line = each
        if found := _HEAD.fullmatch(line):
            part, line = found[1].lower(), found["rest"]
        elif part == "edges" and _OTHER.match(line) and not _EDGE.fullmatch(line):
            part = ""
        if not _RULE.fullmatch(line):
            yield part, line


def _nodes(lines: list[str], joined: bool) -> list[str]:
    """The variables; those of old versions have blanks between them, where more than one is joined."""
    text = "\n".join(lines)
    for mark in (";", ","):
        if mark in text:
            return [name.strip() for name in re.split(f"[{mark}\n]", text) if name.strip()]
    return text.split() if joined else [name.strip() for name in lines]


def _edge(line: str, names: Collection[str]) -> tuple[str, str, str, set[str]]:
    """One end, the arrow, the other end, and Tetrad's marks, of a line."""
    found = _EDGE.fullmatch(line)
    if found is None:
        raise ValueError(
            f"cannot read {beginning(line.strip(), 60)!r}: expected an edge such as 1. age --> bmi"
        )
    other, marks = found["other"], ""
    if other not in names:
        after = _AFTER.fullmatch(other)
        other, marks = (after["name"], after["marks"]) if after else (other, "")
    return found["one"], found["arrow"], other, set(marks.split())


def _settled(circles: list[str], marked: list[str]) -> None:
    """Refuses edges that leave open what the graph is."""
    if circles:
        raise ValueError(
            f"{listed(circles)}: a circle marks an end that may be a cause or an effect; write -->, <-- or "
            "<->, or --- if one of the two influences the other and no hidden cause moves both"
        )
    if marked:
        raise ValueError(
            f"{listed(marked)}: pd says that the effect may be indirect, and pl that a hidden cause may move "
            "both; write the edge without them if it is direct and has none, add <-> between the two for a "
            "hidden cause, or take the edge out"
        )
