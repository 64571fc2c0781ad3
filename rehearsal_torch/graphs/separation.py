"""c-separation: which variables say nothing about which, once others are known.

In a rehearsal graph a path may run through several members of one clique, m1 <-> ... <-> ml. Given Z, it is blocked

    as a chain or fork   where a member with an arrow out of the run, along the path, lies in Z
    as a collider        where neither a member of the run nor a descendant of one lies in Z

and Z c-separates X from Y when it blocks every path between them. No path is listed. Arrows into one member of a clique
go into all of them, so it is enough to know of each clique whether it was entered from a cause ("below") or from within
or from an effect ("above"). Entering lets the path go on to the effects of every member outside Z; entering from above, or
from below where the clique or a descendant is in Z, lets it go on to the causes outside Z. Each edge is met twice at most.

The definition differs in one place from the printed one, which blocks a chain or fork only where the *whole* run lies in
Z. With p -> {m, n}, m <-> n, n -> y and Z = {n}, the printed one leaves p -> m <-> n -> y open, though every law
P(p) P(m, n | p) P(y | n) makes p and y independent given n, and every compatible directed graph d-separates them: Thm. 16
and 17 would not hold. (Their proof lets the path leave through m, which has no arrow to y.) With the definition above
they do; what the printed one separates, this one does as well, so Thm. 15 is untouched.

Source: Qin et al. (2023), Def. 12, Lemma 13, Thm. 15-17; Shachter (1998), Bayes-Ball, for the search without paths.
"""

from collections.abc import Iterable

from rehearsal_torch.graphs.rehearsal import RehearsalGraph


def c_separated(graph: RehearsalGraph, one: str | Iterable[str], other: str | Iterable[str], given: str | Iterable[str] = ()) -> bool:
    """Whether `given` c-separates two sets of variables.

    Args:
        graph: Who influences whom.
        one: X, a variable or several.
        other: Y, likewise.
        given: Z, likewise; empty for independence without conditions.

    Raises:
        ValueError: if the three sets are not disjoint, or name an unknown variable.

    Source: Qin et al. (2023), Def. 12.
    """
    x, y, z = _named(graph, one), _named(graph, other), _named(graph, given)
    shared = sorted((x & y) | (x & z) | (y & z))
    if shared:
        raise ValueError(f"expected three disjoint sets; {shared} stand in two of them: take them out of one")
    return not connected(graph, x, z) & y


def connected(graph: RehearsalGraph, sources: str | Iterable[str], given: str | Iterable[str] = ()) -> frozenset[str]:
    """Every variable outside `given` that is not c-separated from `sources` by it; the sources themselves included.

    Args:
        graph: Who influences whom.
        sources: X, a variable or several, outside Z.
        given: Z, likewise.

    Raises:
        ValueError: if the two sets overlap, or name an unknown variable.
    """
    start, known = _named(graph, sources), _named(graph, given)
    if start & known:
        raise ValueError(f"expected sources outside `given`; got {sorted(start & known)} in both: take them out of one")
    clique_of = {name: index for index, clique in enumerate(graph.cliques) for name in clique}
    effects: list[set[int]] = [set() for _ in graph.cliques]
    for source, target in graph.edges:
        if source not in known:
            effects[clique_of[source]].add(clique_of[target])
    causes = [{clique_of[name] for name in parents if name not in known} for _, parents in graph.factors]
    # A clique opens as a collider when one of its members, or a descendant of one, is known.
    opened = {clique_of[name] for name in graph.ancestors(known)}
    above, below = {clique_of[name] for name in start}, set[int]()
    waiting = [(index, True) for index in sorted(above)]
    while waiting:
        index, entered_above = waiting.pop()
        following = [(effect, False) for effect in effects[index] if effect not in below]
        if entered_above or index in opened:
            following += [(cause, True) for cause in causes[index] if cause not in above]
        for place, upwards in following:
            (above if upwards else below).add(place)
        waiting += following
    return frozenset(name for index in above | below for name in graph.cliques[index] if name not in known)


def _named(graph: RehearsalGraph, names: str | Iterable[str]) -> frozenset[str]:
    """A set of variables of the graph; a text is one variable."""
    found = frozenset((names,) if isinstance(names, str) else names)
    unknown = sorted(found - set(graph.names))
    if unknown:
        raise ValueError(f"unknown variables {unknown}: the variables are {list(graph.names)}")
    return found
