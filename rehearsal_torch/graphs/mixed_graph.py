"""Rehearsal graphs: directed influences, and cliques of variables that influence each other mutually.

A rehearsal graph has directed edges u -> v and bi-directional edges u <-> v. Its maximal bi-directional
cliques are disjoint, an edge into one member of a clique goes into all of them, and the directed edges order
the cliques. Altering X cuts every edge into X; inside a clique the altered members become parents of the
rest. A directed acyclic graph is the case in which each clique has one member.

Beyond the paper, hidden common causes a <-> b may join any two variables: beside an edge a -> b (a bow), in
cliques that would overlap (a <-> b <-> c without a <-> c), or where an edge goes into one of the two alone,
as in the front door a -> m -> y with a <-> y. No distribution that factorises over cliques represents such
an acyclic directed mixed graph, so only methods that reason by separation in the graph (adjustment) accept
these pairs, which are `hidden`; everything else refuses them.

Graphs from files have at most 1,000 variables and 20,000 edges.

Source: Qin et al. (2023), Def. 1-3 and Sec. 2; Du et al. (2026), App. B; Richardson (2003) (mixed graphs).
"""

from collections import defaultdict
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from graphlib import CycleError, TopologicalSorter
from itertools import combinations
from typing import TypeVar

from rehearsal_torch.files.bounded_yaml import repeated

VARIABLES = 1000
EDGES = 20_000


def check_size(variables: int, edges: int) -> None:
    """Refuses more than 1,000 variables or 20,000 edges; a clique of n counts as n (n - 1) / 2."""
    for count, largest, kind in ((variables, VARIABLES, "variables"), (edges, EDGES, "edges")):
        if count > largest:
            raise ValueError(
                f"expected at most {largest} {kind}; got {count}: is it the graph that was meant?"
            )


Node = TypeVar("Node", bound=Hashable)


@dataclass(frozen=True)
class RehearsalGraph:
    """Cliques, disjoint sets that cover every variable, kept in a topological order; directed edges (from,
    to) between their members; and the pairs outside of cliques that a hidden common cause joins. A ValueError
    names every clique that overlaps, every edge with an unknown variable, inside one clique or to a part of
    one, every hidden pair with a member of a larger clique, and a cycle.
    """

    cliques: tuple[tuple[str, ...], ...]
    edges: tuple[tuple[str, str], ...]
    hidden: tuple[tuple[str, str], ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "edges", _pairs(self.edges))
        object.__setattr__(self, "hidden", _pairs(self.hidden))
        for clique in self.cliques:
            if isinstance(clique, str):
                raise ValueError(
                    f"expected a clique, a list of variables; got the text {clique!r}: write [{clique!r}]"
                )
        object.__setattr__(self, "cliques", tuple(tuple(map(str, clique)) for clique in self.cliques))
        names = [name for clique in self.cliques for name in clique]
        if repeats := sorted(repeated(names)):
            raise ValueError(f"{repeats} are in two cliques: maximal bi-directional cliques must not overlap")
        clique_of = {name: clique for clique in self.cliques for name in clique}
        if faults := [*self._edge_faults(clique_of, names), *self._hidden_faults(clique_of)]:
            raise ValueError("; ".join(faults))
        object.__setattr__(self, "cliques", self._ordered(clique_of))

    def _edge_faults(self, clique_of: Mapping[str, tuple[str, ...]], names: Sequence[str]) -> Iterator[str]:
        edges = set(self.edges)
        for source, target in self.edges:
            if unknown := [name for name in (source, target) if name not in clique_of]:
                yield (
                    f"edge {source} -> {target}: unknown variable {unknown}; the variables are {list(names)}"
                )
            elif clique_of[source] == clique_of[target]:
                yield (
                    f"edge {source} -> {target} lies inside the clique {clique_of[source]}: members of a "
                    "clique are joined by bi-directional edges alone"
                )
            elif excluded := [name for name in clique_of[target] if (source, name) not in edges]:
                yield (
                    f"edge {source} -> {target} reaches only part of the clique {clique_of[target]}: add "
                    f"{source} -> {', '.join(excluded)}"
                )

    def _hidden_faults(self, clique_of: Mapping[str, tuple[str, ...]]) -> Iterator[str]:
        for pair in self.hidden:
            for name in pair:
                if name not in clique_of:
                    yield f"{' <-> '.join(pair)}: unknown variable {name!r}"
                elif len(clique_of[name]) > 1:
                    yield (
                        f"{' <-> '.join(pair)} is hidden, and {name} is in the clique {clique_of[name]} as "
                        "well: take the pair out, or write the clique's pairs as hidden, too"
                    )

    def _ordered(self, clique_of: Mapping[str, tuple[str, ...]]) -> tuple[tuple[str, ...], ...]:
        before: dict[tuple[str, ...], set[tuple[str, ...]]] = {clique: set() for clique in self.cliques}
        for source, target in self.edges:
            before[clique_of[target]].add(clique_of[source])
        # Ties are broken by the order in which the cliques were named.
        rank = {clique: index for index, clique in enumerate(self.cliques)}
        sorter, order = TopologicalSorter(before), list[tuple[str, ...]]()
        try:
            sorter.prepare()
            ready = set(sorter.get_ready())
            while ready:
                order.append(min(ready, key=rank.__getitem__))
                sorter.done(order[-1])
                ready = (ready - {order[-1]}) | set(sorter.get_ready())
        except CycleError as error:
            cycle = " -> ".join(
                "{" + ", ".join(clique) + "}" if len(clique) > 1 else clique[0] for clique in error.args[1]
            )
            raise ValueError(f"the edges form a cycle: {cycle}; remove one of them") from error
        return tuple(order)

    @classmethod
    def of(
        cls, parents: Mapping[str, Iterable[str]], bidirected: Iterable[Sequence[str]] = ()
    ) -> "RehearsalGraph":
        """A graph from each variable's direct causes (a string is one) and sets joined pairwise by
        bi-directional edges. Members of a clique share the union of their parents; where that or the sets
        give no cliques (Def. 3), parents are kept and the pairs are `hidden`. ValueError for a cycle.
        """
        causes_of = {
            str(child): (causes,) if isinstance(causes, str) else tuple(map(str, causes))
            for child, causes in parents.items()
        }
        names = dict.fromkeys(name for child, causes in causes_of.items() for name in (*causes, child))
        if loops := [name for name, causes in causes_of.items() if name in causes]:
            raise ValueError(f"{loops} are among their own causes: remove them from their own lists")
        joined = list[tuple[str, ...]]()
        for members in bidirected:
            if isinstance(members, str):
                raise ValueError(
                    f"expected a set of variables that move together; got the text {members!r}: write [one, "
                    "other]"
                )
            joined.append(tuple(dict.fromkeys(map(str, members))))
        arrows = [(cause, child) for child, causes in causes_of.items() for cause in causes]
        pairs = [pair for clique in joined for pair in combinations(clique, 2)]
        directed = {frozenset(edge) for edge in arrows}
        cliques = {
            frozenset(clique): clique
            for clique in joined
            if directed.isdisjoint(map(frozenset, combinations(clique, 2)))
        }
        clique_of = {name: clique for clique in cliques.values() for name in clique}
        names |= dict.fromkeys(name for clique in joined for name in clique)
        shared = [(cause, member) for cause, child in arrows for member in clique_of.get(child, (child,))]
        if len(clique_of) == sum(map(len, cliques)) and not _has_cycle(shared):
            arrows = shared
            names = dict.fromkeys(member for name in names for member in clique_of.get(name, (name,)))
        return cls.mixed(names, arrows, pairs)

    @classmethod
    def mixed(
        cls, names: Iterable[str], directed: Iterable[Sequence[str]], bidirected: Iterable[Sequence[str]] = ()
    ) -> "RehearsalGraph":
        """A graph from single edges: directed (from, to), and bidirected in any order. Variables that satisfy
        Def. 3 form cliques, other pairs are `hidden`, and variables of edges are added. A ValueError names
        edges that are no pairs, opposite edges and cycles.
        """
        arrows, arcs = _pairs(directed), _pairs(bidirected)
        directed_pairs = set(arrows)
        for a, b in arrows:
            if (b, a) in directed_pairs:
                raise ValueError(
                    f"{a} -> {b} and {b} -> {a} join the same two variables: keep one of the "
                    f"two, or write {a} <-> {b} if a hidden cause moves both"
                )
        # A bow has the direction of its edge.
        arcs = _pairs(pair[::-1] if pair[::-1] in directed_pairs else pair for pair in arcs)
        ends = [end for pair in (*arrows, *arcs) for end in pair]
        adjacent = neighbours([*map(str, names), *ends], arcs)
        causes: dict[str, set[str]] = {name: set() for name in adjacent}
        for a, b in arrows:
            causes[b].add(a)
        clique_of = {name: _clique(name, adjacent, causes) for name in adjacent}
        hidden = tuple(
            pair for pair in arcs if clique_of[pair[0]] is None or clique_of[pair[1]] != clique_of[pair[0]]
        )
        return cls(tuple(dict.fromkeys(clique_of[name] or (name,) for name in adjacent)), arrows, hidden)

    def require_cliques(self, method: str) -> None:
        """Refuses a graph with hidden pairs, which are named, for a method that factorises over cliques."""
        if self.hidden:
            edges = set(self.edges)
            pairs = ", ".join(
                f"{a} -> {b} beside {a} <-> {b}" if (a, b) in edges else f"{a} <-> {b}"
                for a, b in self.hidden
            )
            raise ValueError(
                f"{method} cannot represent {pairs}: it needs a graph that factorises over cliques, in which "
                "at most one edge joins two variables, whoever shares hidden causes shares them with all of "
                "the clique, and an edge into one goes into all; take an edge out or add those that are "
                "missing, if that is true, or decide by adjustment, decision=cme or outcome_regression"
            )

    @cached_property
    def bidirected(self) -> tuple[tuple[str, str], ...]:
        """The bi-directional edges, each pair once, hidden ones last."""
        return (*(pair for clique in self.cliques for pair in combinations(clique, 2)), *self.hidden)

    @cached_property
    def factors(self) -> tuple[tuple[tuple[str, ...], tuple[str, ...]], ...]:
        """(clique, its parents), topologically ordered: factors P(clique | parents), without hidden pairs."""
        self.require_cliques("a factorisation over cliques")
        order = {name: index for index, name in enumerate(self.names)}
        return tuple(
            (clique, tuple(sorted(self._causes.get(clique[0], ()), key=order.__getitem__)))
            for clique in self.cliques
        )

    def factorisation(self) -> str:
        """The joint distribution as a product, such as ``P(a) P(b, c | a)``."""
        return " ".join(
            f"P({', '.join(clique)}{' | ' if parents else ''}{', '.join(parents)})"
            for clique, parents in self.factors
        )

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Every variable, in a topological order."""
        return tuple(name for clique in self.cliques for name in clique)

    def clique(self, name: str) -> tuple[str, ...]:
        """The clique of a variable."""
        return next(clique for clique in self.cliques if name in clique)

    def parents(self, names: str | Sequence[str]) -> tuple[str, ...]:
        """Direct causes of a variable or of a clique, in the graph's order."""
        targets = {names} if isinstance(names, str) else set(names)
        causes = {source for source, target in self.edges if target in targets}
        return tuple(name for name in self.names if name in causes)

    def descendants(self, names: Iterable[str], altered: Iterable[str] = ()) -> frozenset[str]:
        """All variables reached from `names`, included, along directed edges, of a clique all members; with
        `altered`, in the graph in which these are set. ValueError if one of them is unknown.
        """
        cut, start = self._checked_names(altered), set(names)
        clique_members = [member for name in cut & start for member in self.clique(name) if member not in cut]
        return closure([*start, *clique_members], self.effects, cut)

    def ancestors(self, names: Iterable[str]) -> frozenset[str]:
        """Everything from which `names` are reached along directed edges, themselves included."""
        return closure(names, self._causes)

    def minimal_sets(
        self, settable: Sequence[str], outcomes: Collection[str], held: Collection[str] = ()
    ) -> tuple[tuple[str, ...], ...]:
        """The sets of variables to set in which none is without effect: from each a directed path leads to an
        outcome around all others, unless it is `held`, and so in all sets; the smallest first.

        Source: Lee and Bareinboim (2018), "Structural causal bandits: where to intervene?", Prop. 1.
        """
        free = [name for name in settable if name not in held]
        sets = (
            tuple(name for name in settable if name in held or name in chosen)
            for size in range(len(free) + 1)
            for chosen in combinations(free, size)
        )

        def acts(name: str, members: tuple[str, ...]) -> bool:
            return not self.descendants((name,), {*members} - {name}).isdisjoint(outcomes)

        return tuple(s for s in sets if all(name in held or acts(name, s) for name in s))

    @cached_property
    def effects(self) -> dict[str, list[str]]:
        """Each variable that has some to its direct effects."""
        effects: dict[str, list[str]] = defaultdict(list)
        for source, target in self.edges:
            effects[source].append(target)
        return dict(effects)

    @cached_property
    def _causes(self) -> dict[str, list[str]]:
        causes: dict[str, list[str]] = defaultdict(list)
        for source, target in self.edges:
            causes[target].append(source)
        return dict(causes)

    def joined(self, name: str, among: Collection[str]) -> tuple[str, ...]:
        """Those of some variables before `name` in the order that a path of bi-directional edges, between
        these and no later ones, joins with it.
        """
        earlier = {*among}.intersection(self.names[: self.names.index(name)]) | {name}
        pairs = [pair for pair in self.bidirected if earlier.issuperset(pair)]
        reached = closure((name,), {key: [*near] for key, near in neighbours((), pairs).items()})
        return tuple(other for other in self.names if other in reached and other != name)

    def altered(self, names: Iterable[str]) -> "RehearsalGraph":
        """The graph without edges into `names`, which become parents of the rest of their cliques."""
        cut = self._checked_names(names)
        edges = [(source, target) for source, target in self.edges if target not in cut]
        cliques: list[tuple[str, ...]] = []
        for clique in self.cliques:
            unset = tuple(name for name in clique if name not in cut)
            set_members = [name for name in clique if name in cut]
            cliques += [(name,) for name in set_members] + ([unset] if unset else [])
            edges += [(source, target) for source in set_members for target in unset]
        return RehearsalGraph(
            tuple(cliques), tuple(edges), tuple(pair for pair in self.hidden if not cut & set(pair))
        )

    def _checked_names(self, altered: Iterable[str]) -> frozenset[str]:
        cut = frozenset(altered)
        if unknown := cut.difference(self.names):
            raise ValueError(f"cannot alter {sorted(unknown)}: the variables are {list(self.names)}")
        return cut

    def to_plain(self) -> dict[str, list]:
        """Plain lists, from which `RehearsalGraph(**plain)` restores the graph."""
        parts = {"cliques": self.cliques, "edges": self.edges}
        parts |= {"hidden": self.hidden} if self.hidden else {}
        return {key: [list(names) for names in sets] for key, sets in parts.items()}


def closure(
    names: Iterable[Node], steps: Mapping[Node, Sequence[Node]], closed: Collection[Node] = ()
) -> frozenset[Node]:
    """Everything that is reached from `names` in steps, themselves included, without entering `closed`."""
    reached = set(names)
    queue = list(reached)
    while queue:
        for name in steps.get(queue.pop(), ()):
            if name not in reached and name not in closed:
                reached.add(name)
                queue.append(name)
    return frozenset(reached)


def neighbours(names: Iterable[Node], edges: Iterable[tuple[Node, Node]]) -> dict[Node, set[Node]]:
    """Node to those that an edge joins with it, in whatever direction."""
    near: dict[Node, set[Node]] = {name: set() for name in names}
    for a, b in edges:
        near.setdefault(a, set()).add(b)
        near.setdefault(b, set()).add(a)
    return near


def _pairs(edges: Iterable[Sequence[str]]) -> tuple[tuple[str, str], ...]:
    """Edges as pairs of different names, without duplicates."""
    pairs: dict[tuple[str, str], None] = {}
    for edge in edges:
        ends = [str(end) for end in edge] if not isinstance(edge, str) else []
        if len(ends) != 2 or ends[0] == ends[1]:
            raise ValueError(
                f"expected an edge between two different variables; got {edge!r}: write it as [one, other]"
            )
        pairs[ends[0], ends[1]] = None
    return tuple(pairs)


def _clique(
    name: str, adjacent: Mapping[str, set[str]], causes: Mapping[str, set[str]]
) -> tuple[str, ...] | None:
    """The maximal bi-directional clique of a variable by Def. 3, in the order of `adjacent`, or None."""
    members = adjacent[name] | {name}
    for joined in members:
        if (
            adjacent[joined] | {joined} != members
            or causes[joined] != causes[name]
            or causes[joined] & members
        ):
            return None
    return tuple(member for member in adjacent if member in members)


def _has_cycle(edges: Iterable[tuple[str, str]]) -> bool:
    before: dict[str, set[str]] = {}
    for source, target in edges:
        before.setdefault(target, set()).add(source)
    try:
        TopologicalSorter(before).prepare()
    except CycleError:
        return True
    return False
