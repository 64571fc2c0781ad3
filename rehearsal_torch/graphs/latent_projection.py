"""Graphs with variables that nobody measured, as graphs of the measured ones with hidden common causes.

For measured variables a and b, the projection has

    a -> b     if a directed path leads from a to b on which all others are unmeasured,
    a <-> b    if paths of that kind lead to a and to b from one unmeasured variable, or from the two ends of
               an edge <->.

It implies the same independences among the measured variables, and the same adjustment sets.

Source: Verma (1993), Graphical aspects of causal models; Richardson et al. (2023), Sec. 2.4.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from itertools import combinations, product

Pair = tuple[str, str]


def projected(
    names: Sequence[str], directed: Iterable[Pair], bidirected: Iterable[Pair], latent: Collection[str]
) -> tuple[tuple[str, ...], tuple[Pair, ...], tuple[Pair, ...]]:
    """The names, the directed and the bidirected edges of the projection, in the order of the names.

    Args:
        names: All variables.
        directed: Pairs (cause, effect) of an acyclic graph.
        bidirected: Pairs with a hidden common cause.
        latent: The unmeasured variables among the names.
    """
    effects: dict[str, list[str]] = defaultdict(list)
    for cause, effect in directed:
        effects[cause].append(effect)
    reached = {name: _measured(name, effects, latent) for name in names}
    ends = {name: reached[name] if name in latent else {name} for name in names}
    pairs = {tuple(sorted(each)) for name in latent for each in combinations(reached[name], 2)}
    for one, other in bidirected:
        pairs |= {tuple(sorted(each)) for each in product(ends[one], ends[other]) if each[0] != each[1]}
    kept = tuple(name for name in names if name not in latent)
    place = {name: at for at, name in enumerate(kept)}
    arrows = tuple((a, b) for a in kept for b in sorted(reached[a], key=place.__getitem__))
    arcs = sorted(tuple(sorted(each, key=place.__getitem__)) for each in pairs)
    return kept, arrows, tuple((one, other) for one, other in arcs)


def _measured(name: str, effects: dict[str, list[str]], latent: Collection[str]) -> set[str]:
    """The measured variables to which a directed path leads through unmeasured ones alone."""
    found, seen, waiting = set[str](), set[str](), [*effects[name]]
    while waiting:
        each = waiting.pop()
        if each in seen:
            continue
        seen.add(each)
        if each in latent:
            waiting += effects[each]
        else:
            found.add(each)
    return found
