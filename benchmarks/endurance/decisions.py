"""Many decisions of fitted models in one process, one case at a time, as a service makes them.

Two models decide by turns, that of the default method and that of `cme`. The cases are some fixed ones, taken
in turn, so that every decision can be compared with the first one of the same model for the same case: all
must be equal to the last bit, and memory must be flat.
"""

import json
import time
from typing import Any

import pandas as pd

import rehearsal_torch as rt
from benchmarks.endurance.memory import growth, resident

DIFFERENT = 50
# None is the default.
METHODS = (None, "cme")
ROWS = 200
TASK = {
    "graph": {"parents": {"z": ["x"], "y": ["x", "z"]}},
    "context": ["x"],
    "box": {"z": [-2.0, 2.0]},
    "region": {"y": [0.5, 2.0]},
}


def repeated(count: int, every: int = 10) -> dict[str, Any]:
    """Decides `count` times.

    Args:
        count: The number of decisions.
        every: Memory is read after each `every`-th decision.

    Returns:
        Seconds per decision, memory, and how many decisions differed from the first one of their model for
        their case.
    """
    table = observations()
    models = [rt.learn(table, TASK, method=method) for method in METHODS]
    cases = [{"x": float(value)} for value in table["x"][:DIFFERENT]]
    first, samples, different, statuses = dict[tuple[int, int], str](), list[int](), list[int](), set[str]()
    began = time.perf_counter()
    for number in range(count):
        which, place = number % len(models), number // len(models) % DIFFERENT
        (made,) = models[which].decide(cases[place])
        content = made.to_dict()
        content.pop("seconds", None)
        text = json.dumps(content, sort_keys=True)
        statuses.add(made.status)
        if text != first.setdefault((which, place), text):
            different.append(number)
        if number % every == 0:
            samples.append(resident())
    return {
        "decisions": count,
        "models": [model.name for model in models],
        "cases": min(DIFFERENT, -(-count // len(models))),
        "rows": ROWS,
        "statuses": sorted(statuses),
        "compared": count - len(first),
        "different": different,
        "milliseconds": round(1e3 * (time.perf_counter() - began) / count, 2),
        "memory": growth(samples),
    }


def observations() -> pd.DataFrame:
    """The rows that the model is fitted to: z = x + noise, y = (x + z) / 2 + noise."""
    import numpy as np

    stream = np.random.default_rng(0)
    x, noise = stream.normal(size=ROWS), stream.normal(scale=0.3, size=(2, ROWS))
    z = x + noise[0]
    return pd.DataFrame({"x": x, "z": z, "y": (x + z) / 2 + noise[1]})
