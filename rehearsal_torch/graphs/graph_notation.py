"""Graphs in the notation of configuration files, read strictly, and classes of graphs.

    {parents: {child: [causes]}, bidirected: [[one, other], ...]}                written by hand
    [season -> price -> sales, price <-> sales]                                  the same, as edges
    {order: [season, [price, stock], sales], forbidden: [season -> sales]}       an order alone
    {cliques: [[...], ...], edges: [[from, to], ...], hidden: [[from, to], ...]}
                                                 written by `RehearsalGraph.to_plain`: cliques of variables
                                                 that influence each other, edges between cliques, and pairs
                                                 with a hidden cause

Edges are a list of strings, or one string with an edge in every line or semicolons between them, in the
notation of dagitty (`graphs.dagitty`): `->` is a direct cause, `<->` a hidden common cause, and {a b} -> c
stands for two edges. `bidirected` lists sets of variables that move together because of hidden causes. A pair
that a directed edge joins as well is a bow: a direct effect and a hidden common cause at once.

In an order, everything may influence whatever comes later, except what is `forbidden`; variables of one place
(a tier; `tiers` is read as `order`) move together because of hidden causes, and none of them influences
another. It is the largest such graph: adjustment then uses all that comes before an action.

A graph of causal-learn is a matrix with the mark at each end of an edge: m[i, j] is the mark at i of the edge
between i and j, -1 for a tail and 1 for an arrow head, so that i -> j is m[i, j] = -1 and m[j, i] = 1, and
two heads are a hidden common cause. Two tails, and the circles of a PAG (2), are refused.

A class of graphs, one of which is taken to be true, is written as

    {parents: {child: [causes]}, undirected: [[one, other], ...]}    edges whose direction is unknown
    [graph, graph, ...]                                              several graphs, each with an optional
                                                                     `probability`
    graphs.yaml, as `rehearsal learn-graph` writes it                the graphs that a table supports, under
                                                                     posterior.graphs, with probabilities

In the first form the members are the directed acyclic graphs with these edges and no other v-structures than
the directed edges have (`graphs.equivalence`). Members without probabilities have equal weights.

Source: Qin et al. (2023), Def. 1-3 and Eq. 7 (equal weights); Zheng et al. (2024), causal-learn's
documentation of `GeneralGraph`; Verma and Pearl (1990), Thm. 1.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from pathlib import Path
from typing import Annotated, Any, Literal, Protocol, runtime_checkable

from pydantic import AfterValidator, BeforeValidator, Discriminator, Field, Tag
from pydantic.json_schema import SkipJsonSchema

from rehearsal_torch.files.bounded_yaml import read_yaml, repeated
from rehearsal_torch.files.redaction import beginning
from rehearsal_torch.files.schema import (
    FaultsError,
    Name,
    Names,
    Schema,
    fault,
    form,
    list_of,
    mapping,
    read,
    refusal,
    shown,
)
from rehearsal_torch.graphs.dagitty import edges_of, has_arrow
from rehearsal_torch.graphs.equivalence import NoMemberError, PartiallyDirected, TooManyGraphsError, members
from rehearsal_torch.graphs.mixed_graph import RehearsalGraph, check_size


@runtime_checkable
class MarkedGraph(Protocol):
    """What is needed of causal-learn's `GeneralGraph`: the marks (d, d), and the names of the d variables."""

    graph: Any

    def get_node_names(self) -> Sequence[str]:
        """The names of the variables."""
        ...


def from_general_graph(graph: MarkedGraph) -> RehearsalGraph:
    """A graph from causal-learn's; ValueError if an edge has other marks than arrows."""
    names = [str(name) for name in graph.get_node_names()]
    marks = [[float(mark) for mark in row] for row in graph.graph]
    size = len(names)
    if len(marks) != size or any(len(row) != size for row in marks):
        raise ValueError(f"expected a square matrix of {size} variables; got {len(marks)} rows")
    check_size(size, sum(mark != 0 for row in marks for mark in row))
    if loops := [name for index, name in enumerate(names) if marks[index][index]]:
        raise ValueError(f"{loops[0]} cannot be a cause of itself: take the edge out")
    directed, bidirected = list[tuple[str, str]](), list[tuple[str, str]]()
    for i, j in combinations(range(size), 2):
        match marks[i][j], marks[j][i]:
            case (0, 0):
                continue
            case (1, 1):
                bidirected.append((names[i], names[j]))
            case (-1, 1):
                directed.append((names[i], names[j]))
            case (1, -1):
                directed.append((names[j], names[i]))
            case at_i, at_j:
                raise ValueError(
                    f"{names[i]} and {names[j]}: the direction of the edge is unknown (marks {at_i:g} and "
                    f"{at_j:g}): give every edge a direction, also those with the circles of a PAG, or "
                    "two heads if a hidden cause moves both"
                )
    return RehearsalGraph.mixed(names, directed, bidirected)


EXPECTED = (
    "{parents: {child: [causes]}, bidirected: [[one, other], ...]}, edges such as [cause -> effect, ...], or "
    "{order: [first, [second, third], last]}, or {cliques: [[...]], edges: [[from, to]]}"
)
PARENTS, CLIQUES = form("parents", "bidirected"), form("cliques", "edges", "hidden")
ORDER = form("order", "forbidden")


def _check_parents(parents: dict[str, list[str]]) -> dict[str, list[str]]:
    if loops := [name for name, causes in parents.items() if name in causes]:
        raise refusal(f"{', '.join(loops)} cannot be a cause of itself: remove it from its own list")
    return parents


def _check_set(names: list[str]) -> list[str]:
    if len(names) < 2:
        raise fault("a set of two variables or more", names, "write bidirected: [[one, other]]")
    return names


def _check_edge(pair: Any) -> Any:
    if not isinstance(pair, list) or len(pair) != 2 or str(pair[0]) == str(pair[1]):
        raise fault("an edge between two different variables, [from, to]", pair)
    return pair


def _refuse_undirected(pairs: Any) -> Any:
    raise fault(
        "a direction for every edge of the graph that decides",
        pairs,
        "choose one, and name all graphs that may be true with graphs=FILE (docs/influence.md)",
    )


def _check_clique(names: list[str]) -> list[str]:
    if not names:
        raise fault("one variable or more", names)
    return names


Edge = Annotated[list[Name], BeforeValidator(_check_edge)]
_Edges = Annotated[list[Edge], list_of("a list of edges, [[from, to], ...]")]


class ParentsForm(Schema):
    """{parents, bidirected}."""

    parents: Annotated[dict[Name, Names], mapping("{child: [causes]}"), AfterValidator(_check_parents)] = (
        Field(description="{effect: [its causes]}")
    )
    bidirected: Annotated[
        list[Annotated[Names, AfterValidator(_check_set)]], list_of("a list of sets, [[one, other], ...]")
    ] = Field(default_factory=list, description="sets of variables that vary together by a hidden cause")
    # Refused with a reason: only a class of graphs has such edges (`graph_class`).
    undirected: SkipJsonSchema[Annotated[Any, BeforeValidator(_refuse_undirected)]] = None

    def named(self) -> list[str]:
        """The variables, some of them several times."""
        pairs = [(*causes, child) for child, causes in self.parents.items()]
        return [name for members in (*pairs, *self.bidirected) for name in members]

    def graph(self) -> RehearsalGraph:
        """The rehearsal graph; ValueError if it is not a valid one."""
        count = sum(map(len, self.parents.values())) + _pair_count(self.bidirected)
        check_size(len(set(self.named())), count)
        return RehearsalGraph.of(self.parents, self.bidirected)


class CliquesForm(Schema):
    """{cliques, edges, hidden}."""

    cliques: Annotated[
        list[Annotated[Names, AfterValidator(_check_clique)]], list_of("a list of cliques, [[...], ...]")
    ] = Field(min_length=1, description="all variables, in sets that vary together; most have one member")
    edges: _Edges = Field(default_factory=list, description="arrows, [[cause, effect], ...]")
    hidden: _Edges = Field(
        default_factory=list, description="pairs with a hidden common cause that do not form cliques"
    )

    def named(self) -> list[str]:
        """The variables."""
        return [name for clique in self.cliques for name in clique]

    def graph(self) -> RehearsalGraph:
        """The rehearsal graph; ValueError if it is not a valid one."""
        check_size(len(self.named()), len(self.edges) + _pair_count(self.cliques))
        edges, hidden = (tuple((a, b) for a, b in pairs) for pairs in (self.edges, self.hidden))
        return RehearsalGraph(tuple(map(tuple, self.cliques)), edges, hidden)


def _pair_count(sets: Sequence[Sequence[str]]) -> int:
    return sum(len(names) * (len(names) - 1) // 2 for names in sets)


def _as_tier(names: Any) -> Any:
    return [names] if isinstance(names, str | int | float) else names


class OrderForm(Schema):
    """{order, forbidden}."""

    order: Annotated[
        list[
            Annotated[
                Names,
                BeforeValidator(_as_tier, json_schema_input_type=str | list[str | int]),
                AfterValidator(_check_clique),
            ]
        ],
        list_of("a list of variables, or of lists of variables, from the first to the last"),
    ] = Field(min_length=2, description="variables from first to last, each a cause of all later ones")
    forbidden: Annotated[list[str], list_of("a list of edges, [cause -> effect, ...]")] = Field(
        default_factory=list, description="arrows that do not exist"
    )

    def named(self) -> list[str]:
        """The variables."""
        return [name for names in self.order for name in names]

    def graph(self) -> RehearsalGraph:
        """The largest graph that agrees with the order; ValueError if there is no valid one."""
        tier = {name: index for index, names in enumerate(self.order) for name in names}
        count = len(self.named())
        check_size(count, count * (count - 1) // 2)
        if repeats := repeated(self.named()):
            raise ValueError(f"order: {repeats[0]} stands in it more than once: keep one place")
        forbidden = set[tuple[str, str]]()
        for line in self.forbidden:
            statement = edges_of(line)
            for cause, effect in statement.directed:
                if tier.get(cause, count) >= tier.get(effect, -1):
                    raise ValueError(
                        f"forbidden: {cause} -> {effect}: expected an edge from a variable of the "
                        "order to a later one; others are excluded already"
                    )
            if statement.bidirected:
                raise ValueError(
                    f"forbidden: {line!r}: expected ->; places of their own separate two variables"
                )
            forbidden |= set(statement.directed)
        edges = ((cause, effect) for effect in tier for cause in tier if tier[cause] < tier[effect])
        return RehearsalGraph(
            tuple(map(tuple, self.order)), tuple(edge for edge in edges if edge not in forbidden)
        )


def _form_tag(value: Any) -> str:
    keys = value if isinstance(value, dict) else {}
    if isinstance(value, OrderForm) or ("order" in keys and "parents" not in keys):
        return ORDER
    of_cliques = "parents" not in keys and not {"cliques", "edges", "hidden"}.isdisjoint(keys)
    return CLIQUES if isinstance(value, CliquesForm) or of_cliques else PARENTS


def _parents_form(plain: Any) -> Any:
    """Edges in dagitty's notation as {parents, bidirected}; tiers, as other tools call them, as an order."""
    if isinstance(plain, dict) and "tiers" in plain and "order" not in plain:
        return {"order" if key == "tiers" else key: value for key, value in plain.items()}
    if not isinstance(plain, str | list) or not plain:
        return plain
    lines = [plain] if isinstance(plain, str) else plain
    if not any(isinstance(line, str) and has_arrow(line) for line in lines):
        return plain
    parents, bidirected = dict[str, list[str]](), list[list[str]]()
    for index, line in enumerate(lines):
        where = f"edge {index + 1}, {shown(line)}: " if isinstance(plain, list) else ""
        if not isinstance(line, str):
            raise refusal(f"{where}expected a string such as cause -> effect")
        try:
            statement = edges_of(line)
        except ValueError as error:
            raise refusal(f"{where}{error}") from error
        if loops := [cause for cause, effect in statement.directed if cause == effect]:
            hint = "; if it has a blank, put the name in double quotes" if "{" in line else ""
            raise refusal(f"{where}{loops[0]} cannot be a cause of itself: take the arrow out{hint}")
        for name in statement.names:
            parents.setdefault(name, [])
        for cause, effect in statement.directed:
            if cause not in parents[effect]:
                parents[effect].append(cause)
        bidirected += [sorted(pair) for pair in statement.bidirected if sorted(pair) not in bidirected]
    return {"parents": parents, "bidirected": bidirected}


WrittenGraph = Annotated[
    Annotated[ParentsForm, Tag(PARENTS)]
    | Annotated[CliquesForm, Tag(CLIQUES)]
    | Annotated[OrderForm, Tag(ORDER)],
    Discriminator(_form_tag),
    mapping(EXPECTED),
    BeforeValidator(
        _parents_form,
        json_schema_input_type=str
        | list[str]
        | ParentsForm
        | OrderForm
        | CliquesForm
        | dict[Literal["tiers", "forbidden"], Any],
    ),
]


class GraphFile(Schema):
    """A file that holds a graph under `graph`; the other entries of a task file are ignored."""

    graph: WrittenGraph = Field(description=EXPECTED)
    context: Any = None
    box: Any = None
    region: Any = None
    candidates: Any = None
    actions: Any = None
    reward: Any = None
    limits: Any = None


def graph_of(plain: Any) -> RehearsalGraph:
    """A graph from any form above, alone or under `graph`, or causal-learn's; ValueError with all faults."""
    if isinstance(plain, RehearsalGraph):
        return plain
    if isinstance(plain, MarkedGraph):
        return from_general_graph(plain)
    under = isinstance(plain, Mapping) and "graph" in plain
    parsed, faults = read(GraphFile, plain if under else {"graph": plain})
    if faults:
        raise FaultsError(faults)
    graph: RehearsalGraph = parsed["graph"].graph()
    return graph


MEMBERS = 200
# Listing the members of a class takes a second or two for so many edges.
MAX_UNDIRECTED = 60
_SHOWN = 4
_EXPECTED_CLASS = (
    "expected {parents: {child: [causes]}, undirected: [[one, other]]}, a list of graphs, or the graphs.yaml "
    "of learn-graph"
)


@dataclass(frozen=True)
class GraphClass:
    """Graphs of the same variables, at most 200, with weights that sum to one."""

    graphs: tuple[RehearsalGraph, ...]
    weights: tuple[float, ...]

    def __post_init__(self) -> None:
        if not 1 <= len(self.graphs) <= MEMBERS:
            raise ValueError(
                f"expected 1 to {MEMBERS} graphs; got {len(self.graphs)}: direct more edges, or leave "
                "improbable graphs out"
            )
        total = sum(self.weights)
        if len(self.weights) != len(self.graphs) or min(self.weights) < 0 or not 0 < total < math.inf:
            raise ValueError(f"expected a probability of at least 0 for each graph; got {list(self.weights)}")
        object.__setattr__(self, "weights", tuple(weight / total for weight in self.weights))
        first = set(self.graphs[0].names)
        for index, graph in enumerate(self.graphs):
            if unshared := sorted(set(graph.names) ^ first):
                raise ValueError(
                    f"graph {index}: {unshared} are not in all graphs: every graph has the same variables"
                )

    def described(self, index: int) -> str:
        """What sets a member apart: its edges that not all members have."""
        distinct = [edge for edge in _edge_texts(self.graphs[index]) if edge not in self._shared]
        if not distinct:
            return "only the edges that all graphs share"
        more = f" and {len(distinct) - _SHOWN} more" if len(distinct) > _SHOWN else ""
        return ", ".join(distinct[:_SHOWN]) + more

    @cached_property
    def _shared(self) -> frozenset[str]:
        """The edges that all members have."""
        return frozenset.intersection(*(frozenset(_edge_texts(graph)) for graph in self.graphs))


def graph_class(written: Any) -> GraphClass:
    """A class from any form above or a YAML file; ValueError if invalid, without members, or over 200."""
    if isinstance(written, GraphClass):
        return written
    if isinstance(written, str | Path):
        return graph_class(read_yaml(written))
    if isinstance(written, Mapping):
        posterior = written.get("posterior")
        if isinstance(posterior, Mapping) and "graphs" in posterior:
            return graph_class(posterior["graphs"])
        graph = written.get("graph", written)
        if isinstance(graph, Mapping) and "parents" in graph:
            return _class_of_undirected(dict(graph))
    if isinstance(written, Sequence) and not isinstance(written, str) and written:
        return _class_of_list(written)
    raise ValueError(_EXPECTED_CLASS)


def _class_of_undirected(value: dict[str, Any]) -> GraphClass:
    loose = value.pop("undirected", [])
    if not isinstance(loose, list) or not all(isinstance(pair, list) and len(pair) == 2 for pair in loose):
        raise ValueError(
            f"undirected: expected a list of pairs, [[one, other], ...]; got {beginning(str(loose), 100)}"
        )
    if len(loose) > MAX_UNDIRECTED:
        raise ValueError(
            f"undirected: expected at most {MAX_UNDIRECTED} edges; got {len(loose)}: direct some of them"
        )
    pairs = [(str(first), str(second)) for first, second in loose]
    if isinstance(value["parents"], Mapping):
        ends = dict.fromkeys(name for pair in pairs for name in pair)
        value["parents"] = {**{name: [] for name in ends}, **value["parents"]}
    graph = graph_of(value)
    if not loose:
        return GraphClass((graph,), (1.0,))
    if graph.bidirected:
        raise ValueError(
            "expected no `bidirected` beside `undirected`: list the graphs that may be true instead"
        )
    try:
        oriented = members(PartiallyDirected(graph.names, graph.edges, tuple(pairs)), MEMBERS)
    except TooManyGraphsError as error:
        raise ValueError(
            f"undirected: more than {MEMBERS} graphs have these edges: direct some of them"
        ) from error
    except NoMemberError as error:
        raise ValueError(
            f"undirected: no acyclic graph has these edges without new v-structures ({error}): list the "
            "graphs that may be true instead"
        ) from error
    return GraphClass(oriented, (1.0,) * len(oriented))


def _class_of_list(entries: Sequence[Any]) -> GraphClass:
    if len(entries) > MEMBERS:
        raise ValueError(f"expected at most {MEMBERS} graphs; got {len(entries)}: leave improbable ones out")
    graphs, weights = [], []
    for index, entry in enumerate(entries):
        plain, weight = entry, 1.0
        if isinstance(entry, Mapping):
            plain = {key: value for key, value in entry.items() if key not in ("votes", "probability")}
            weight = entry.get("probability", 1.0)
        if isinstance(weight, bool) or not isinstance(weight, int | float):
            raise ValueError(f"graph {index}: probability: expected a number; got {weight!r}")
        try:
            graphs.append(graph_of(plain))
        except ValueError as error:
            raise ValueError(f"graph {index}: {error}") from error
        weights.append(float(weight))
    return GraphClass(tuple(graphs), tuple(weights))


def _edge_texts(graph: RehearsalGraph) -> list[str]:
    directed = [f"{source} -> {target}" for source, target in graph.edges]
    return directed + [f"{source} <-> {target}" for source, target in map(sorted, graph.bidirected)]
