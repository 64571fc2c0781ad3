"""A table and a problem file that are right, to be changed."""

import numpy as np
import pandas as pd
import pytest
import yaml

ROWS = 120
RIGHT = {
    "data": "table.csv",
    "variables": {
        "x": "context",
        "a": {"role": "action", "range": [-1, 1]},
        "d": {"role": "action", "kind": "integer", "range": [0, 4]},
        "y": "outcome",
        "z": {"role": "outcome", "unit": "kg"},
    },
    "graph": ["x -> {a d y}", "a -> {y z}", "d -> z"],
    "desired": "y - 2*z >= 0 and z <= 1",
}


def table():
    random = np.random.default_rng(0)
    x, a = random.normal(size=(2, ROWS))
    d = random.integers(0, 4, ROWS)
    y = x + a + 0.1 * random.normal(size=ROWS)
    return pd.DataFrame({"x": x, "a": a, "d": d, "y": y, "z": 0.5 * a + 0.1 * d, "name": "n"})


@pytest.fixture
def written(tmp_path):
    """Writes the table, and the problem with changes; a part that is None is left out."""
    table().to_csv(tmp_path / "table.csv", index=False)

    def write(**changes):
        parts = {**RIGHT, **changes}
        text = yaml.safe_dump(
            {part: each for part, each in parts.items() if each is not None}, sort_keys=False
        )
        (tmp_path / "problem.yaml").write_text(text)
        return tmp_path / "problem.yaml"

    return write
