"""A system whose best setting depends on a context c in [-1, 1], in closed form, with normal U and V:

    X = a + c / 2 + .1 U,       Y = cos 3 (X - .8) - (b - 1 - c)^2 + .1 V,       0 <= a <= 1, 0 <= b <= 2

E[Y | a, b, c] = exp(-.045) cos 3 (a + c / 2 - .8) - (b - 1 - c)^2: best at a = min(.8 - c / 2, 1), b = 1 + c.
"""

import math
from collections.abc import Mapping

import numpy as np

HUMID = {
    "graph": {"parents": {"X": ["a", "c"], "Y": ["X", "b", "c"]}},
    "actions": {"a": [0, 1], "b": [0, 2]},
    "reward": "Y",
    "context": ["c"],
}


def humid(settings: Mapping[str, float], stream: np.random.Generator) -> dict[str, float]:
    """What an experiment measures."""
    a, b, c = (settings[name] for name in "abc")
    x = a + c / 2 + 0.1 * stream.normal()
    return {"X": x, "Y": math.cos(3 * (x - 0.8)) - (b - 1 - c) ** 2 + 0.1 * stream.normal()}
