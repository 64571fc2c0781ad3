"""Graphs in the notation of configuration files, read strictly.

    {parents: {child: [causes]}, bidirected: [[one, other], ...]}                written by hand
    {cliques: [[...], ...], edges: [[from, to], ...], bows: [[from, to], ...]}
                                                 written by `RehearsalGraph.to_plain`

`bidirected` lists sets of variables that move together because of hidden causes. A pair that a directed edge
joins as well is a bow: a direct effect and a hidden common cause at once. Sizes are bounded before any graph
is built.

Source: Qin et al. (2023), Def. 1-3 (rehearsal graphs).
"""

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Discriminator, Field, Tag
from pydantic_core import PydanticCustomError

from rehearsal_torch.files.schema import FaultsError, Name, Names, Schema, fault, form, list_of, mapping, read
from rehearsal_torch.graphs.mixed_graph import RehearsalGraph

VARIABLES = 1000
EDGES = 20_000
EXPECTED = (
    "{parents: {child: [causes]}, bidirected: [[one, other], ...]} or {cliques: [[...]], edges: [[from, to]]}"
)
PARENTS, CLIQUES = form("parents", "bidirected"), form("cliques", "edges", "bows")


def check_size(variables: int, edges: int) -> None:
    """Refuses graphs that are too large to build.

    Args:
        variables: The number of variables.
        edges: The number of edges; a bi-directional clique of n variables counts as n (n - 1) / 2.

    Raises:
        ValueError: if there are more than 1,000 variables or 20,000 edges.
    """
    for count, largest, kind in ((variables, VARIABLES, "variables"), (edges, EDGES, "edges")):
        if count > largest:
            raise ValueError(
                f"expected at most {largest} {kind}; got {count}: is it the graph that was meant?"
            )


def _parents(parents: dict[str, list[str]]) -> dict[str, list[str]]:
    own = [name for name, causes in parents.items() if name in causes]
    if own:
        raise PydanticCustomError(
            "fault",
            "{words}",
            {"words": f"{', '.join(own)} cannot be a cause of itself: remove it from its own list"},
        )
    return parents


def _set(names: list[str]) -> list[str]:
    if len(names) < 2:
        raise fault("a set of two variables or more", names, "write bidirected: [[one, other]]")
    return names


def _edge(pair: Any) -> Any:
    if not isinstance(pair, list) or len(pair) != 2 or str(pair[0]) == str(pair[1]):
        raise fault("an edge between two different variables, [from, to]", pair)
    return pair


def _directed(pairs: Any) -> Any:
    raise fault(
        "a direction for every edge of the graph that decides",
        pairs,
        "choose one, and name all graphs that may be true with graphs=FILE (docs/influence.md)",
    )


def _clique(names: list[str]) -> list[str]:
    if not names:
        raise fault("one variable or more", names)
    return names


Edge = Annotated[list[Name], BeforeValidator(_edge)]


class ParentsForm(Schema):
    """{parents, bidirected}."""

    parents: Annotated[dict[Name, Names], mapping("{child: [causes]}"), AfterValidator(_parents)]
    bidirected: Annotated[
        list[Annotated[Names, AfterValidator(_set)]], list_of("a list of sets, [[one, other], ...]")
    ] = Field(default_factory=list)
    # Refused with a reason: only a class of graphs has such edges (`graphs.graph_class`).
    undirected: Annotated[Any, BeforeValidator(_directed)] = None

    def graph(self) -> RehearsalGraph:
        """The rehearsal graph.

        Raises:
            ValueError: if it is not a valid rehearsal graph.
        """
        names = {name for child, causes in self.parents.items() for name in (child, *causes)} | {
            name for each in self.bidirected for name in each
        }
        check_size(
            len(names),
            sum(map(len, self.parents.values()))
            + sum(len(each) * (len(each) - 1) // 2 for each in self.bidirected),
        )
        return RehearsalGraph.of(self.parents, self.bidirected)


class CliquesForm(Schema):
    """{cliques, edges, bows}."""

    cliques: Annotated[
        list[Annotated[Names, AfterValidator(_clique)]],
        list_of("a list of cliques, [[...], ...]"),
        Field(min_length=1),
    ]
    edges: Annotated[list[Edge], list_of("a list of edges, [[from, to], ...]")] = Field(default_factory=list)
    bows: Annotated[list[Edge], list_of("a list of edges, [[from, to], ...]")] = Field(default_factory=list)

    def graph(self) -> RehearsalGraph:
        """The rehearsal graph.

        Raises:
            ValueError: if it is not a valid rehearsal graph.
        """
        check_size(
            sum(map(len, self.cliques)),
            len(self.edges) + sum(len(each) * (len(each) - 1) // 2 for each in self.cliques),
        )
        return RehearsalGraph(
            tuple(map(tuple, self.cliques)),
            tuple((one, other) for one, other in self.edges),
            tuple((one, other) for one, other in self.bows),
        )


def _which(plain: Any) -> str:
    keys = plain if isinstance(plain, dict) else {}
    return (
        CLIQUES
        if isinstance(plain, CliquesForm)
        or ("parents" not in keys and not {"cliques", "edges", "bows"}.isdisjoint(keys))
        else PARENTS
    )


WrittenGraph = Annotated[
    Annotated[ParentsForm, Tag(PARENTS)] | Annotated[CliquesForm, Tag(CLIQUES)],
    Discriminator(_which),
    mapping(EXPECTED),
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
    """A graph from plain data.

    Args:
        plain: {cliques, edges}, {parents, bidirected}, or either under `graph`.

    Raises:
        ValueError: if it is neither, has unknown keys, or is not a valid rehearsal graph; all faults are
            listed.
    """
    if isinstance(plain, RehearsalGraph):
        return plain
    under = isinstance(plain, Mapping) and "graph" in plain
    found, faults = read(GraphFile, plain if under else {"graph": plain})
    if faults:
        raise FaultsError(faults)
    made: RehearsalGraph = found["graph"].graph()
    return made
