"""A system whose best setting depends on a context c in [-1, 1], in closed form, with normal U and V:

    X = a + c / 2 + .1 U,       Y = cos 3 (X - .8) - (b - 1 - c)^2 + .1 V,       0 <= a <= 1, 0 <= b <= 2

E[Y | a, b, c] = exp(-.045) cos 3 (a + c / 2 - .8) - (b - 1 - c)^2: best at a = min(.8 - c / 2, 1), b = 1 + c.
"""

import math
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from rehearsal_torch.api.optimiser import CausalOptimiser

HUMID = {
    "graph": {"parents": {"X": ["a", "c"], "Y": ["X", "b", "c"]}},
    "actions": {"a": [0, 1], "b": [0, 2]},
    "reward": "Y",
    "context": ["c"],
}
GRID = [-1 + place / 4 for place in range(9)]


def humid(settings: Mapping[str, float], stream: np.random.Generator) -> dict[str, float]:
    """What an experiment measures."""
    a, b, c = (settings[name] for name in "abc")
    x = a + c / 2 + 0.1 * stream.normal()
    return {"X": x, "Y": math.cos(3 * (x - 0.8)) - (b - 1 - c) ** 2 + 0.1 * stream.normal()}


def mean_reward(a: float, b: float, c: float) -> float:
    return math.exp(-0.045) * math.cos(3 * (a + c / 2 - 0.8)) - (b - 1 - c) ** 2


def best_reward(c: float) -> float:
    return mean_reward(min(0.8 - c / 2, 1), 1 + c, c)


def campaign(seed: int, counts: Sequence[int], task: Mapping = HUMID) -> Iterator[CausalOptimiser]:
    """An optimiser after so many experiments, in contexts that are drawn."""
    optimiser, stream = CausalOptimiser(task, seed=seed), np.random.default_rng(seed)
    for number in range(1, max(counts) + 1):
        c = {"c": stream.uniform(-1, 1)}
        (action,) = optimiser.ask(context=c if "context" in task else None)
        optimiser.tell(action, {**c, **humid({**action, **c}, stream)})
        if number in counts:
            yield optimiser
