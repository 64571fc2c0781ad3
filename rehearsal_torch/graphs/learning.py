"""Learning rehearsal graphs from observations.

Given a table whose law factorises according to an unknown rehearsal graph that encodes all of its independences, sought
are all rehearsal graphs that say the same of independence (Algorithm 2):

    1  the skeleton: a and b are joined unless some S_ab makes them independent
    2  v-structures: a -> c <- b where a and b are not joined, both are joined to c, and c is not in S_ab
    3  every edge directed whose other direction adds a v-structure or a circle
    4  all Markov-equivalent directed graphs
    5  from each, the rehearsal graphs in which cliques stand in place of directed edges     6  those that are valid

Step 1 is causal-learn's PC skeleton, in its order-independent form; what is known beforehand enters it: required edges
stay, and what lies in a later tier than both ends separates nothing. Tests err, and what they say may contradict itself.
V-structures are therefore taken up strongest first, each where it contradicts none before it, and where no directed graph
has what is left, v-structures are added, few at a time. Both are told; where the tests agree, neither happens.

Source: Qin et al. (2023), App. A.3, Algorithm 2; Spirtes and Glymour (1991) and Colombo and Maathuis (2014) (skeleton).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from torch import Tensor

from rehearsal_torch.graphs.background import Background
from rehearsal_torch.graphs.bidirection import all_standing_for
from rehearsal_torch.graphs.equivalence import MOST, NoMemberError, PartiallyDirected, closed, has_member, members, relaxed
from rehearsal_torch.graphs.independence import Independence, independence
from rehearsal_torch.graphs.rehearsal import RehearsalGraph

Pair = tuple[int, int]
Separators = dict[Pair, list[frozenset[int]]]


@dataclass(frozen=True)
class Learnt:
    """What observations say of the graph.

    Attributes:
        pattern: The class of directed graphs: directed edges are shared by all.
        dags: Its members.
        graphs: All rehearsal graphs they stand for, themselves first, fewest bi-directional edges first.
        notes: What the tests contradicted themselves in, and what background knowledge overruled.
    """

    pattern: PartiallyDirected
    dags: tuple[RehearsalGraph, ...]
    graphs: tuple[RehearsalGraph, ...]
    notes: tuple[str, ...]


def learn(
    values: Tensor,
    names: Sequence[str],
    test: str = "fisherz",
    level: float = 0.05,
    background: Background | None = None,
    bidirected: bool = True,
    most: int = MOST,
) -> Learnt:
    """The rehearsal graphs that a table cannot tell apart.

    Args:
        values: (n, d), rows in which nothing was altered.
        names: The d variables.
        test: The test of conditional independence, see `independence`.
        level: Its level, in (0, 1); independence is kept above it.
        background: Tiers, forbidden and required edges.
        bidirected: Whether to list graphs with bi-directional edges; without, `graphs` are the directed ones.
        most: Largest number of graphs.

    Raises:
        ValueError: if the table or an argument cannot be used, or no graph agrees with the tests and what is known (`NoMemberError`).
        TooManyError: if there are more graphs than `most`.

    Source: Qin et al. (2023), Algorithm 2.
    """
    pattern, notes = pattern_from(independence(values, names, test), names, level, background)
    dags = members(pattern, most)
    return Learnt(pattern, dags, all_standing_for(dags, background, most) if bidirected else dags, notes)


def pattern_from(
    p_value: Independence, names: Sequence[str], level: float = 0.05, background: Background | None = None
) -> tuple[PartiallyDirected, tuple[str, ...]]:
    """The class that a test of independence leaves: steps 1 to 3 of Algorithm 2.

    Args:
        p_value: The test; columns are numbered as `names` are.
        names: The variables.
        level: In (0, 1).
        background: What is known.

    Returns:
        The class, and notes on contradictions.

    Raises:
        ValueError: for a level outside (0, 1), fewer than two variables, a name that stands twice, or background knowledge of unknown variables.
        NoMemberError: if no directed graph agrees.
    """
    if not 0 < level < 1:
        raise ValueError(f"expected a level in (0, 1); got {level}")
    if len(names) < 2 or len(set(names)) < len(names):
        raise ValueError(f"expected two variables or more, each named once; got {list(names)}")
    known = background or Background()
    known.check(names)
    informed = _Informed(p_value, names, known)
    edges, separators = _skeleton(informed, names, level)
    banned = [(a, b) for a, b in edges if not known.permits(names[a], names[b]) and not known.permits(names[b], names[a])]
    edges = [edge for edge in edges if edge not in banned]
    # Nothing parts a pair that is only said not to be joined: the set that comes nearest to parting it stands in.
    separators |= {pair: [_nearest(p_value, pair, edges)] for pair in banned}
    found = PartiallyDirected(tuple(names), (), tuple((names[a], names[b]) for a, b in edges))
    told = [(names[a], names[b]) for a, b in (*edges, *((b, a) for a, b in edges)) if not known.permits(names[b], names[a])]
    found, notes = found.orienting(told), []
    if _circular(found):
        raise NoMemberError("what is known directs the edges that were found in a circle: check tiers, forbidden and required edges")
    for a, c, b in _v_structures(p_value, edges, separators):
        shown, arrows = f"{names[a]} -> {names[c]} <- {names[b]}", [(names[a], names[c]), (names[b], names[c])]
        if not all(known.permits(*arrow) for arrow in arrows):
            notes.append(f"{shown} is left out: it contradicts what is known")
        elif any((end, start) in found.directed for start, end in arrows):
            notes.append(f"{shown} is left out: it contradicts a stronger v-structure")
        elif _circular(found.orienting(arrows)):
            notes.append(f"{shown} is left out: it would close a circle")
        else:
            found = found.orienting(arrows)
    if not has_member(found):
        found, added = relaxed(found, told)
        notes += [f"{one} -> {child} <- {other} is added: without it no directed graph has these edges" for one, child, other in added]
    return closed(found), tuple(notes)


class _Informed:
    """A test that knows what is known: required edges are dependences, and what lies later than both ends separates nothing."""

    # The library's graph reads this name.
    method = "informed"

    def __init__(self, p_value: Independence, names: Sequence[str], known: Background) -> None:
        self.p_value, self.names, self.known = p_value, names, known

    def __call__(self, one: int, other: int, given: Sequence[int] = ()) -> float:
        ends, between = (self.names[one], self.names[other]), [self.names[index] for index in given]
        if self.known.adjacent(*ends) or any(self.known.later(name, ends) for name in between):
            return 0.0
        return self.p_value(int(one), int(other), tuple(int(index) for index in given))


def _skeleton(test: _Informed, names: Sequence[str], level: float) -> tuple[list[Pair], Separators]:
    """The joined pairs, and for each other pair the sets that made it independent."""
    try:
        from causallearn.utils.PCUtils.SkeletonDiscovery import skeleton_discovery
    except ImportError as error:
        raise ModuleNotFoundError("learning graphs needs causal-learn: pip install 'rehearsal-torch[graphs]'") from error
    # Of the table the library reads nothing but its width: the test holds the values.
    found = skeleton_discovery(np.zeros((2, len(names))), level, test, stable=True, show_progress=False)
    edges, separators = [], {}
    for pair in combinations(range(len(names)), 2):
        if found.G.graph[pair] != 0:
            edges.append(pair)
        else:
            separators[pair] = [frozenset(int(index) for index in each) for each in found.sepset[pair] or ()]
    return edges, separators


def _v_structures(p_value: Independence, edges: Sequence[Pair], separators: Separators) -> list[tuple[int, int, int]]:
    """Triples a -> c <- b, strongest first: the smaller the p-value of a and b once c is known as well, the stronger."""
    near = _near(edges)
    found = {}
    for a, b in separators:
        for c in sorted(near.get(a, set()) & near.get(b, set())):
            if not any(c in given for given in separators[a, b]):
                found[a, c, b] = min(p_value(a, b, tuple(sorted(given | {c}))) for given in separators[a, b] or [frozenset()])
    return sorted(found, key=lambda triple: (found[triple], triple))


def _nearest(p_value: Independence, pair: Pair, edges: Sequence[Pair]) -> frozenset[int]:
    """Of the neighbours' sets of two at most, the one given which a pair is least dependent."""
    near = _near(edges)
    around = sorted((near.get(pair[0], set()) | near.get(pair[1], set())) - set(pair))
    sets = [frozenset(given) for size in range(3) for given in combinations(around, size)]
    return max(sets, key=lambda given: p_value(*pair, tuple(sorted(given))))


def _near(edges: Sequence[Pair]) -> dict[int, set[int]]:
    found: dict[int, set[int]] = {}
    for a, b in edges:
        found.setdefault(a, set()).add(b)
        found.setdefault(b, set()).add(a)
    return found


def _circular(pattern: PartiallyDirected) -> bool:
    try:
        RehearsalGraph(tuple((name,) for name in pattern.names), pattern.directed)
    except ValueError:
        return True
    return False
