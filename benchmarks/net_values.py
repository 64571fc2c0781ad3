"""How close decisions come to the best net value of a linear world where it is known by enumeration.

y = x + 1.5 a + 0.8 b + noise, desired where y >= 4; x is the context, a and b are set together. Changing a
costs 20 per unit upwards and 5 downwards, b 15 either way, and a desired outcome is worth 100. Each case
states its present values. Of each method: the mean true net value of its decisions, the largest distance to
the best one, the share of intervals of the net gain that hold the truth, and the seconds that deciding took,
without and with costs.

Run: python benchmarks/net_values.py [--rows 1000] [--cases 100] [--methods care,cme]
"""

import argparse
import time
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import norm

import rehearsal_torch as rt
from rehearsal_torch.data.decision import Decision

METHODS = ("care", "outcome_regression", "qwz23_offline", "cme")
NOISE, BOUND, WORTH = 0.7, 4.0, 100.0
TASK = {
    "graph": ["x -> {a b y}", "a -> y", "b -> y"],
    "context": ["x"],
    "box": {"a": [-2, 4], "b": [-2.5, 2.5]},
    "region": f"y >= {BOUND}",
    "candidates": [["a", "b"]],
}
COSTS = {"a": {"up": 20, "down": 5}, "b": 15}


def rows(count: int) -> pd.DataFrame:
    """Observations, in which a and b follow x."""
    random = np.random.default_rng(0)
    x, a, b, noise = random.normal(size=(4, count))
    a, b = 1 + 0.5 * x + a, -0.3 * x + b
    return pd.DataFrame({"x": x, "a": a, "b": b, "y": x + 1.5 * a + 0.8 * b + NOISE * noise})


@dataclass(frozen=True)
class Truth:
    """One case: its context and present values."""

    x: float
    a: float
    b: float

    def net(self, a: Any, b: Any) -> Any:
        """The net value of a setting; arrays broadcast."""
        success = norm.sf((BOUND - (self.x + 1.5 * a + 0.8 * b)) / NOISE)
        moved = a - self.a
        cost = 20 * np.maximum(moved, 0) + 5 * np.maximum(-moved, 0) + 15 * np.abs(b - self.b)
        return WORTH * success - cost

    def best(self) -> float:
        """The largest net value, by a grid that holds the present values."""
        a, b = (
            np.union1d(np.linspace(-2, 4, 601), [self.a]),
            np.union1d(np.linspace(-2.5, 2.5, 251), [self.b]),
        )
        return float(self.net(a[:, None], b[None]).max())


def reached(truth: Truth, decision: Decision) -> float:
    """The true net value of a decision."""
    setting = (truth.a, truth.b) if decision.alteration is None else decision.alteration.values.tolist()
    return float(truth.net(*setting))


def cases(count: int) -> pd.DataFrame:
    """Contexts and present values, drawn independently, within the range of the rows."""
    random = np.random.default_rng(5)
    x, a, b = random.normal(size=(3, count))
    return pd.DataFrame({"x": x, "a": 1 + 0.7 * a, "b": 0.7 * b}).clip(-2, 2.4)


def held(truth: Truth, decision: Decision) -> bool | None:
    """Whether the interval of the net gain holds the truth; None without one."""
    gain = decision.net_gain
    if gain is None or gain.lower is None or gain.upper is None:
        return None
    true = reached(truth, decision) - float(truth.net(truth.a, truth.b))
    return gain.lower <= true <= gain.upper


def main() -> None:
    """Prints one line per method."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1000)
    parser.add_argument("--cases", type=int, default=100)
    parser.add_argument("--methods", default=",".join(METHODS))
    options = parser.parse_args()
    table, asked = rows(options.rows), cases(options.cases)
    known = [Truth(each.x, each.a, each.b) for each in asked.itertuples()]
    best = np.array([each.best() for each in known])
    kept = np.mean([each.net(each.a, each.b) for each in known])
    print(f"best {best.mean():.1f}, changing nothing {kept:.1f}")
    for method in options.methods.split(","):
        seconds, made = [], []
        for task in (TASK, TASK | {"costs": COSTS, "worth": WORTH}):
            model = rt.learn(table, task, method=method)
            began = time.perf_counter()
            made = list(model.decide(asked))
            seconds.append(time.perf_counter() - began)
        found = np.array([reached(*pair) for pair in zip(known, made, strict=True)])
        right = [held(*pair) for pair in zip(known, made, strict=True)]
        told = [each for each in right if each is not None]
        print(
            f"{method}: net value {found.mean():.1f}, at most {(best - found).max():.1f} below the best; "
            f"{np.mean(told):.0%} of {len(told)} intervals hold; no action in "
            f"{sum(each.alteration is None for each in made)}; {seconds[0]:.1f} and {seconds[1]:.1f} s"
        )


if __name__ == "__main__":
    main()
