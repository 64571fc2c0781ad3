"""A linear world with costs whose best net value is known by enumeration: y = x + 1.5 a + 0.8 b + noise."""

from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy.stats import norm

NOISE, BOUND = 0.7, 4.0
TASK = {
    "graph": ["x -> {a b y}", "a -> y", "b -> y"],
    "context": ["x"],
    "box": {"a": [-2, 4], "b": [-2.5, 2.5]},
    "region": f"y >= {BOUND}",
    "candidates": [["a", "b"]],
}
COSTS = {"a": {"up": 20, "down": 5}, "b": 15}
WORTH = 100.0


def rows(count=600, seed=0):
    random = np.random.default_rng(seed)
    x = random.normal(size=count)
    a, b = 1 + 0.5 * x + random.normal(size=count), -0.3 * x + random.normal(size=count)
    y = x + 1.5 * a + 0.8 * b + NOISE * random.normal(size=count)
    return pd.DataFrame({"x": x, "a": a, "b": b, "y": y})


CASES = pd.DataFrame({"x": [0.0, 0.5, 1.5], "a": [1.0, 1.0, 2.0], "b": [0.0, 0.0, 1.0]})


@dataclass(frozen=True)
class Truth:
    """One case: its context and present values, and the cost per unit of a upwards."""

    x: float
    a: float
    b: float
    up: float = 20.0
    worth: float = WORTH

    def net(self, a, b):
        """The net value of a setting; arrays broadcast."""
        success = norm.sf((BOUND - (self.x + 1.5 * a + 0.8 * b)) / NOISE)
        cost = self.up * np.maximum(a - self.a, 0) + 5 * np.maximum(self.a - a, 0) + 15 * np.abs(b - self.b)
        return self.worth * success - cost

    def best(self):
        """The largest net value, by a grid that holds the present values."""
        a = np.union1d(np.linspace(-2, 4, 601), [self.a])
        b = np.union1d(np.linspace(-2.5, 2.5, 251), [self.b])
        return float(self.net(a[:, None], b[None]).max())


def truths(cases=CASES, **parts):
    return [Truth(each.x, each.a, each.b, **parts) for each in cases.itertuples()]


def reached(truth, decision):
    """The true net value of a decision."""
    if decision.alteration is None:
        return float(truth.net(truth.a, truth.b))
    return float(truth.net(*decision.alteration.values.tolist()))
