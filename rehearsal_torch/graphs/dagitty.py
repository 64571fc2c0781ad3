"""Edges as other programs write them, and dagitty's model code, whose statements task files use.

    ->  -->  →  ⟶         from cause to effect
    <-  <--  ←  ⟵         from effect to cause
    <->  <-->  ↔  ⟷       a hidden common cause
    --  ---               an edge whose direction is unknown

    dag {
      weather [adjusted]
      recommend [exposure,pos="0.3,1.0"]
      rating [outcome]
      weather -> recommend
      recommend <-> congestion
      {recommend congestion} -> rating
    }

Chains `a -> b <- c` and groups in braces, with commas or without, are read as well; semicolons may separate
statements, and positions and comments are ignored. Marks of other notations, such as `=>`, `>`, `~` and `⇒`,
are no arrows: what they mean differs between programs, or they are slips. A variable may have a role: context
is written as adjusted, actionable variables as exposure, outcomes as outcome. Here `<->` stands for a
hidden common cause, and joins the members of a clique where the graph satisfies Def. 3.

An undirected edge says that one of two variables influences the other, and not which. It is refused but in
`pdag { ... }`: such edges make a list a class of graphs, {parents, undirected} (`graphs.graph_notation`).

Variables that are marked as latent are projected out. For measured variables a and b, the projection has

    a -> b     if a directed path leads from a to b on which all others are unmeasured,
    a <-> b    if paths of that kind lead to a and to b from one unmeasured variable, or from the two ends of
               an edge <->.

It implies the same independences among the measured variables, and the same adjustment sets.

Source: Textor et al. (2016) (dagitty); Qin et al. (2023), Def. 1-3; Verma and Pearl (1990) (undirected
edges); Verma (1993), Graphical aspects of causal models; Richardson et al. (2023), Sec. 2.4 (projection).
"""

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations, product
from typing import Any

from rehearsal_torch.graphs.mixed_graph import RehearsalGraph, check_size, closure

DIRECTED, REVERSED, BIDIRECTED, UNDIRECTED = "->", "<-", "<->", "--"
_NOTATIONS = {
    **dict.fromkeys(("-->", "\u2192", "\u27f6"), DIRECTED),
    **dict.fromkeys(("<--", "\u2190", "\u27f5"), REVERSED),
    **dict.fromkeys(("<-->", "\u2194", "\u27f7"), BIDIRECTED),
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


def has_arrow(text: str) -> bool:
    """Whether a text has an arrow, or a mark that was meant as one."""
    return "--" in text or any(pattern.search(text) for pattern in (_MARKS, _CIRCLES))


def _arrow_fault(text: str) -> str:
    """Which mark of words is no arrow, and what to write; empty if none looks like one."""
    mark = _MARKS.search(text)
    return f"{mark[0]!r} is no arrow; {WRITE}" if mark else ""


def _unjoined_fault(a: str, b: str) -> str:
    circled = _CIRCLE.fullmatch(a) or _CIRCLE.fullmatch(b)
    circle = "; a circle, o, marks an end that may be a cause or an effect: choose" if circled else ""
    words = not circled and _PLAIN.match(a) and _PLAIN.match(b)
    blank = f'; if it has a blank, put the name in double quotes, "{a} {b}"' if words else ""
    return (
        f"no arrow joins {a!r} and {b!r}{circle}; {WRITE} between them, {{a b}} for several variables, and "
        f"; or a new line between two edges{blank}"
    )


Pair = tuple[str, str]
_SHOWN = 5
Token = tuple[str, str, int]  # (kind, value, line)


@dataclass(frozen=True)
class EdgeList:
    """Variables in order and edges: directed, bidirected (a hidden cause), undirected (either way)."""

    names: tuple[str, ...]
    directed: tuple[Pair, ...]
    bidirected: tuple[Pair, ...]
    undirected: tuple[Pair, ...] = ()
    # Role to the variables that have it.
    parts: Mapping[str, Sequence[str]] = field(default_factory=dict)

    def graph(self) -> RehearsalGraph:
        """The rehearsal graph; ValueError if an edge has no direction, or the edges are none."""
        if self.undirected:
            edges = [f"{first} -- {second}" for first, second in self.undirected[:_SHOWN]]
            more = len(self.undirected) - _SHOWN
            raise ValueError(
                f"{', '.join(edges)}{f' and {more} more' if more > 0 else ''}: the direction is "
                "unknown, and a rehearsal graph has no such edges: choose one, or write <-> if a hidden "
                "cause moves both; a problem file (graph: FILE) takes all graphs with these edges"
            )
        return RehearsalGraph.mixed(self.names, self.directed, self.bidirected)

    def without(self, latent: Collection[str]) -> "EdgeList":
        """The projection onto the others; ValueError if one has a role, or some edge no direction."""
        if not latent:
            return self
        first = sorted(latent)[0]
        if self.undirected:
            raise ValueError(
                f"{first} is latent beside edges without a direction ({' -- '.join(self.undirected[0])}): "
                "choose their directions, or write <-> in place of the latent variable"
            )
        for mark, names in self.parts.items():
            if conflicts := [name for name in names if name in latent]:
                raise ValueError(f"{conflicts[0]} is latent and {mark}: a variable with a role is observed")
        return EdgeList(*projected(self.names, self.directed, self.bidirected, latent), (), self.parts)

    def to_plain(self) -> dict[str, Any]:
        """{parents, bidirected, undirected} of a list with undirected edges; the plain graph of another."""
        if not self.undirected:
            return self.graph().to_plain()
        parents: dict[str, list[str]] = {name: [] for name in self.names}
        for cause, effect in dict.fromkeys(self.directed):
            parents[effect].append(cause)
        form = {"parents": parents, "undirected": [list(pair) for pair in self.undirected]}
        return form | ({"bidirected": [list(pair) for pair in self.bidirected]} if self.bidirected else {})


_YES, _NO = ("", "1", "yes", "true"), ("0", "no", "false")
_UNSEEN = re.compile(
    r"(?i)(unobserved|unmeasured|latent|hidden)(\s+(common\s+)?(confounder|cause|variable|factor)s?)?\s*\d*"
)


def is_latent(attributes: Mapping[str, Any], called: str) -> bool:
    """Whether a node of another program's graph stands for a hidden variable: it is marked, or called so."""
    marks = {str(name).lower(): str(value).lower() for name, value in attributes.items()}
    marked = any(marks.get(name) in _YES for name in ("latent", "hidden", "unobserved"))
    return marked or marks.get("observed") in _NO or _UNSEEN.fullmatch(called.strip()) is not None


def projected(
    names: Sequence[str], directed: Iterable[Pair], bidirected: Iterable[Pair], latent: Collection[str]
) -> tuple[tuple[str, ...], tuple[Pair, ...], tuple[Pair, ...]]:
    """Names, directed and bidirected edges of the projection of an acyclic graph, in the names' order."""
    effects: dict[str, list[str]] = defaultdict(list)
    for cause, effect in directed:
        effects[cause].append(effect)
    steps = {hidden: effects[hidden] for hidden in latent}
    reached = {name: set(closure(effects[name], steps)) - set(latent) for name in names}
    ends = {name: reached[name] if name in latent else {name} for name in names}
    pairs = {tuple(sorted(pair)) for name in latent for pair in combinations(reached[name], 2)}
    for first, second in bidirected:
        pairs |= {tuple(sorted(pair)) for pair in product(ends[first], ends[second]) if pair[0] != pair[1]}
    measured = tuple(name for name in names if name not in latent)
    order = {name: index for index, name in enumerate(measured)}
    arrows = tuple((a, b) for a in measured for b in sorted(reached[a], key=order.__getitem__))
    arcs = sorted(tuple(sorted(pair, key=order.__getitem__)) for pair in pairs)
    return measured, arrows, tuple((first, second) for first, second in arcs)


_TOKEN = re.compile(
    rf"""\s*(?:(?P<comment>(?:\#|//)[^\n]*|/\*.*?(?:\*/|\Z))
    |(?P<setting>\w+\s*=\s*"[^"]*")
    |(?P<edge>{PATTERN}|@-@|@->|<-@|@--|--@)
    |(?P<mark>[{{}};,])
    |(?P<list>\[[^\]]*\])
    |"(?P<quoted>[^"]*)"|`(?P<ticked>[^`]*)`
    |(?P<word>[^\s{{}}\[\];,"`<>{SIGNS}]+?(?=\s|[{{}}\[\];,"`]|{PATTERN}|$)))""",
    re.DOTALL | re.VERBOSE,
)
_PART = re.compile(r"\b(exposure|outcome|adjusted|latent|unobserved|selected)\b")
_PLAIN = re.compile(r"[A-Za-z_][\w.]*\Z")
_QUOTED = re.compile(r'"[^"]*"')
PARTIAL = "pdag"  # Of a model some of whose edges have no direction.


def to_dagitty(
    graph: RehearsalGraph,
    context: Iterable[str] = (),
    alterable: Iterable[str] = (),
    outcomes: Iterable[str] = (),
) -> str:
    """A graph with roles in dagitty's code; ValueError for unknown names or those with a quotation mark."""
    role_of = {
        **dict.fromkeys(context, "adjusted"),
        **dict.fromkeys(alterable, "exposure"),
        **dict.fromkeys(outcomes, "outcome"),
    }
    if unknown := sorted(set(role_of) - set(graph.names)):
        raise ValueError(f"unknown variables {unknown}: the variables are {list(graph.names)}")
    lines = [_quoted(name) + (f" [{role_of[name]}]" if name in role_of else "") for name in graph.names]
    lines += [f"{_quoted(source)} -> {_quoted(target)}" for source, target in graph.edges]
    lines += [f"{_quoted(source)} <-> {_quoted(target)}" for source, target in graph.bidirected]
    return "\n".join(["dag {", *(f"  {line}" for line in lines), "}", ""])


def model_of(text: str) -> EdgeList:
    """The statements of `dag { ... }` or `pdag { ... }`; ValueError says where the text is invalid."""
    tokens = _tokens(text)
    # A brace in quotation marks is a name.
    kinds = [value if kind != "word" or index < 1 else "" for index, (kind, value, _) in enumerate(tokens)]
    start = kinds.index("{") if "{" in kinds else -1
    if (
        start < 0
        or kinds[-1] != "}"
        or not 1 <= start <= 2
        or kinds[0].lower() not in ("dag", PARTIAL, "mag", "graph", "digraph")
    ):
        raise ValueError("expected `dag { ... }`, as dagitty shows it under model code")
    return _edge_list(tokens[start + 1 : -1], kinds[0].lower() == PARTIAL)


def edges_of(text: str, apart: bool = True) -> EdgeList:
    """Reads statements without `dag { ... }` around them, such as ``a -> b <- c``; errors as of `model_of`.
    They stand `apart`, by new lines or semicolons, unless blanks separate them, as in dagitty and DOT.
    """
    tokens = _tokens(text)
    if apart:
        _check_joined(tokens)
    return _edge_list(tokens)


def _check_joined(tokens: Sequence[Token]) -> None:
    depth, previous = 0, None
    for kind, value, line in tokens:
        opens, closes = (kind, value) == ("mark", "{"), (kind, value) == ("mark", "}")
        if (kind == "word" or opens) and previous is not None and previous[1] == line and not depth:
            raise ValueError(_unjoined_fault(previous[0], value))
        depth += opens - closes
        if kind == "word" or closes:
            previous = (value, line)
        elif not depth:
            previous = None


def _edge_list(body: Sequence[Token], partial: bool = False) -> EdgeList:
    names: dict[str, None] = {}
    roles: dict[str, list[str]] = {}
    pairs: dict[str, list[tuple[str, str]]] = {sign: [] for sign in (DIRECTED, BIDIRECTED, UNDIRECTED)}
    arrows = (DIRECTED, REVERSED, *list(pairs)[1 : 2 + partial])
    at, arrow, before, marks_before = 0, "", list[str](), set[str]()
    while at < len(body):
        kind, value, _ = body[at]
        if kind == "edge":
            if value not in arrows or not before:
                unknown = (
                    value == "--"
                    and bool(before)
                    and "; -- means that the direction is unknown: choose one, or write <->, or, in a "
                    "problem file, graph: {parents: {effect: [causes]}, undirected: [[one, other]]}"
                )
                raise ValueError(
                    f"edge {' '.join([*before[:1], value])!r}: expected ->, <- or <-> between two variables; "
                    f"a rehearsal graph has no others{unknown or ''}"
                )
            if arrow:
                hint = "; <-> is written without a blank" if (arrow, value) == ("<-", "->") else ""
                raise ValueError(f"{arrow} {value}: expected a variable between two arrows{hint}")
            arrow = value
        elif (kind, value) == ("mark", ","):
            raise ValueError(
                f"a comma follows {', '.join(before) or 'no variable'}: write {{a b}} for several variables, "
                "; or a new line between two edges, and a name with a comma in quotation marks"
            )
        elif value == "{" or kind == "word":
            group, at = _braced(body, at)
            names |= dict.fromkeys(group)
            check_size(len(names), sum(map(len, pairs.values())) + len(before) * len(group) * bool(arrow))
            for source, target in ((source, target) for source in before for target in group if arrow):
                if arrow == REVERSED:
                    pairs[DIRECTED].append((target, source))
                else:
                    pairs[arrow].append((source, target))
            before, arrow, marks_before = group, "", set()
        elif kind == "list":
            marks = dict.fromkeys(_PART.findall(_QUOTED.sub("", value)))
            for mark in (mark for mark in marks if mark not in marks_before):
                if mark == "selected":
                    raise ValueError(
                        f"{', '.join(before)} is selected: rows that were chosen by a variable cannot be "
                        "corrected for; leave the mark out if they were not"
                    )
                roles.setdefault("latent" if mark == "unobserved" else mark, []).extend(before)
            marks_before |= set(marks)
        if (kind, value) == ("mark", ";"):
            if arrow:
                raise ValueError(f"an edge {arrow!r} leads nowhere: expected a variable after it")
            before = []
        at += 1
    if arrow:
        raise ValueError(f"an edge {arrow!r} leads nowhere: expected a variable after it")
    latent = set(roles.pop("latent", ()))
    directed, bidirected, undirected = (tuple(edges) for edges in pairs.values())
    return EdgeList(tuple(names), directed, bidirected, undirected, roles).without(latent)


def _tokens(text: str) -> list[Token]:
    """(kind, value, line) of every word, edge, list and mark."""
    tokens, position, line, text = list[Token](), 0, 1, text.strip()
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None or match.end() == position:
            excerpt = text[position : position + 30].strip()
            reason = _arrow_fault(excerpt)
            raise ValueError(f"cannot read {excerpt!r} in line {line}{': ' if reason else ''}{reason}")
        kind = str(match.lastgroup)
        line += text.count("\n", position, match.start(kind))
        value = _NOTATIONS.get(match[kind], match[kind])
        no_arrow = kind == "word" and _MARKS.fullmatch(value)
        if no_arrow or (kind == "edge" and re.match(f"[{SIGNS}]", value)):
            raise ValueError(f"line {line}: {_arrow_fault(value)}")
        if kind not in ("comment", "setting"):
            tokens.append(
                (
                    "word" if kind in ("quoted", "ticked") else kind,
                    match[kind] if kind != "edge" else value,
                    line,
                )
            )
        line += text.count("\n", match.start(kind), match.end())
        position = match.end()
    return tokens


def _braced(body: Sequence[Token], start: int) -> tuple[list[str], int]:
    """The variable, or the variables in braces, that begin here, and the position where they end."""
    if body[start][1] != "{" or body[start][0] == "word":
        return [body[start][1]], start
    names = list[str]()
    for index in range(start + 1, len(body)):
        kind, value, _ = body[index]
        if (kind, value) == ("mark", "}"):
            return names, index
        if (kind, value) == ("mark", ","):
            continue
        if kind != "word":
            raise ValueError(f"expected variables within braces; got {value!r}")
        names.append(value)
    raise ValueError("a brace is opened and not closed")


def _quoted(name: str) -> str:
    if '"' in name:
        raise ValueError(f"{name!r} has a quotation mark, which dagitty cannot write: rename the variable")
    return name if _PLAIN.match(name) else f'"{name}"'
