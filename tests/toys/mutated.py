"""Plain data that a slip of the pen, another program or somebody with bad intentions changed in one to three
places."""

import copy
import math
from datetime import date

from hypothesis import strategies as st

ODD = [
    None, True, False, 0, -1, 3, 10**400, 0.5, 1e155, math.nan, math.inf, -math.inf, "", " ", "a", "price",
    "1e3", "0,5", "a\nb", "\0", "x" * 300,
    [], [[]], ["a"], [["a"]], ["a", "a"], [["a", "b"]], [["a", "b"], ["b", "a"]], [1, 2], [[1.0, 2.0]],
    [None], [True, False], {}, {"a": None}, {"a": "b"},
    {"a": ["a"]}, {False: 1}, {1: [2]}, {"weights": {"a": 1}}, {"normals": [[1]], "offsets": []},
    {"graph": {}}, b"bytes", {"a", "b"}, date(2020, 1, 1), 1j,
    object(), range(3), ("a", "b"),
]  # fmt: skip


def places(plain, path=()):
    """Every path into nested dictionaries and lists, the whole excluded."""
    inside = plain.items() if isinstance(plain, dict) else enumerate(plain) if isinstance(plain, list) else ()
    for key, content in inside:
        yield (*path, key)
        yield from places(content, (*path, key))


def holder_of(plain, path):
    """What holds the last step of a path into plain data, and that step."""
    *above, last = path
    for key in above:
        plain = plain[key]
    return plain, last


@st.composite
def mutated(draw, plain):
    """A copy of plain data in which one to three places are replaced, left out, renamed or put elsewhere."""
    made = copy.deepcopy(plain)
    for _ in range(draw(st.integers(1, 3))):
        paths = list(places(made))
        if not paths:
            break
        holder, last = holder_of(made, draw(st.sampled_from(paths)))
        change = draw(st.sampled_from(["replace", "replace", "leave out", "rename", "swap"]))
        if change == "leave out":
            del holder[last]
        elif change == "rename" and isinstance(holder, dict):
            holder[
                draw(st.sampled_from([f"{last}x", str(last)[1:], "parents", "cliques", "normals", False, 7]))
            ] = holder.pop(last)
        elif change == "swap":
            holder[last] = copy.deepcopy(made)
        else:
            holder[last] = (
                copy.deepcopy(draw(st.sampled_from(ODD)))
                if draw(st.booleans())
                else draw(st.sampled_from(ODD[:20]))
            )
    return made
