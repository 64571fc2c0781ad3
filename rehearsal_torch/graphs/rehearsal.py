"""Rehearsal graphs: who influences whom, and who moves together.

A rehearsal graph has directed edges u -> v and bi-directional edges u <-> v. Its maximal bi-directional cliques are
disjoint, an edge into one member of a clique goes into all of them, and the directed edges order the cliques.
Altering X cuts every arrow into X; inside a clique the altered members become parents of the rest. A directed acyclic
graph is the case in which each clique has one member.

Source: Qin et al. (2023), Def. 1-3 and Sec. 2; Du et al. (2026), App. B.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from graphlib import CycleError, TopologicalSorter


@dataclass(frozen=True)
class RehearsalGraph:
    """Cliques, and the directed edges between their members.

    Attributes:
        cliques: Disjoint; together they hold every variable. Kept in a topological order.
        edges: Pairs (from, to).

    Raises:
        ValueError: if cliques overlap, an edge names an unknown variable, joins two members of one clique or reaches only part of a clique, or
            the edges run in a circle; the message names the clique or edge.
    """

    cliques: tuple[tuple[str, ...], ...]
    edges: tuple[tuple[str, str], ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "edges", tuple(dict.fromkeys((str(source), str(target)) for source, target in self.edges)))
        object.__setattr__(self, "cliques", tuple(tuple(str(name) for name in clique) for clique in self.cliques))
        names = [name for clique in self.cliques for name in clique]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise ValueError(f"{twice} stand in two cliques: maximal bi-directional cliques must not overlap")
        clique_of = {name: clique for clique in self.cliques for name in clique}
        for source, target in self.edges:
            unknown = [name for name in (source, target) if name not in clique_of]
            if unknown:
                raise ValueError(f"edge {source} -> {target}: unknown variable {unknown}; the variables are {names}")
            if clique_of[source] == clique_of[target]:
                raise ValueError(
                    f"edge {source} -> {target} lies inside the clique {clique_of[source]}: members of a clique are joined by bi-directional edges alone"
                )
            left_out = [name for name in clique_of[target] if (source, name) not in set(self.edges)]
            if left_out:
                raise ValueError(f"edge {source} -> {target} reaches only part of the clique {clique_of[target]}: add {source} -> {', '.join(left_out)}")
        object.__setattr__(self, "cliques", self._ordered(clique_of))

    def _ordered(self, clique_of: Mapping[str, tuple[str, ...]]) -> tuple[tuple[str, ...], ...]:
        before: dict[tuple[str, ...], set[tuple[str, ...]]] = {clique: set() for clique in self.cliques}
        for source, target in self.edges:
            before[clique_of[target]].add(clique_of[source])
        try:
            # Among cliques that could come next, the one that was named first comes first.
            sorter, place, order = TopologicalSorter(before), {clique: index for index, clique in enumerate(self.cliques)}, []
            sorter.prepare()
            ready = set(sorter.get_ready())
            while ready:
                first = min(ready, key=lambda clique: place[clique])
                order.append(first)
                sorter.done(first)
                ready = (ready - {first}) | set(sorter.get_ready())
        except CycleError as error:
            circle = " -> ".join("{" + ", ".join(clique) + "}" if len(clique) > 1 else clique[0] for clique in error.args[1])
            raise ValueError(f"the edges run in a circle: {circle}; take one of them out") from error
        return tuple(order)

    @classmethod
    def of(cls, parents: Mapping[str, Iterable[str]], bidirected: Iterable[Sequence[str]] = ()) -> "RehearsalGraph":
        """A graph of variable to parents, and cliques of bi-directional edges.

        Every variable that is only named as a parent is a root. Members of a clique share the union of what is written for them.

        Args:
            parents: Variable to its direct causes.
            bidirected: Sets of variables that are joined pairwise by bi-directional edges.
        """
        names = list(dict.fromkeys([name for child, causes in parents.items() for name in (*causes, child)]))
        joined = [tuple(clique) for clique in bidirected]
        names += [name for clique in joined for name in clique if name not in names]
        inside = {name: clique for clique in joined for name in clique}
        cliques = list(dict.fromkeys(inside.get(name, (name,)) for name in names))
        edges = [(cause, member) for child, causes in parents.items() for cause in causes for member in inside.get(child, (child,))]
        return cls(tuple(cliques), tuple(edges))

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Every variable, in a topological order."""
        return tuple(name for clique in self.cliques for name in clique)

    def clique(self, name: str) -> tuple[str, ...]:
        """The clique of a variable."""
        return next(clique for clique in self.cliques if name in clique)

    def parents(self, names: str | Sequence[str]) -> tuple[str, ...]:
        """Direct causes of a variable or of a clique, in the graph's order."""
        wanted = {names} if isinstance(names, str) else set(names)
        causes = {source for source, target in self.edges if target in wanted}
        return tuple(name for name in self.names if name in causes)

    def descendants(self, names: Iterable[str]) -> frozenset[str]:
        """Everything reached from `names` along directed edges, themselves included; a reached member of a clique brings the others with it."""
        return self._closure(names, {source: [t for s, t in self.edges if s == source] for source, _ in self.edges})

    def ancestors(self, names: Iterable[str]) -> frozenset[str]:
        """Everything from which `names` are reached along directed edges, themselves included."""
        return self._closure(names, {target: [s for s, t in self.edges if t == target] for _, target in self.edges})

    def _closure(self, names: Iterable[str], steps: Mapping[str, Sequence[str]]) -> frozenset[str]:
        found, waiting = set(names), list(names)
        while waiting:
            for name in steps.get(waiting.pop(), ()):
                if name not in found:
                    found.add(name)
                    waiting.append(name)
        return frozenset(found)

    def altered(self, names: Iterable[str]) -> "RehearsalGraph":
        """The graph in which `names` are set from outside: arrows into them are cut; in a clique they become parents of the other members.

        Source: Qin et al. (2023), Sec. 2 (alteration graphs).
        """
        cut = set(names)
        unknown = cut - set(self.names)
        if unknown:
            raise ValueError(f"cannot alter {sorted(unknown)}: the variables are {list(self.names)}")
        edges = [(source, target) for source, target in self.edges if target not in cut]
        cliques: list[tuple[str, ...]] = []
        for clique in self.cliques:
            rest = tuple(name for name in clique if name not in cut)
            inside = [name for name in clique if name in cut]
            cliques += [(name,) for name in inside] + ([rest] if rest else [])
            edges += [(source, target) for source in inside for target in rest]
        return RehearsalGraph(tuple(cliques), tuple(edges))

    def to_plain(self) -> dict[str, list]:
        """Plain lists for a configuration: `cliques` and `edges`; `RehearsalGraph(**plain)` gives the graph back."""
        return {"cliques": [list(clique) for clique in self.cliques], "edges": [list(edge) for edge in self.edges]}
