"""Problem files that ask for a sequence and for trials, with their tables, to be changed."""

import numpy as np
import pandas as pd
import pytest
import yaml

UNITS, STEPS = 40, 6
SEQUENCE = {
    "question": "sequence",
    "data": "pumps.csv",
    "unit": "pump",
    "time": "hour",
    "variables": {
        "wear": {"role": "state", "unit": "%", "range": [0, None]},
        "maker": {"role": "static", "kind": "categorical"},
        "shift": "context",
        "valve": {"role": "action", "levels": ["shut", "half", "open"], "cost": {"open": 1}},
        "oil": {"role": "action", "unit": "ml", "cost": 0.5},
        "note": "other",
    },
    "reward": {"weights": {"wear": -0.1}, "name": "profit"},
    "words": {"step": "hour"},
}
TRIALS = {
    "question": "trials",
    "data": "experiments.csv",
    "variables": {
        "valve": {"role": "action", "range": [0, 1]},
        "dose": {"role": "action", "levels": [0, 1, 2, 5], "unit": "ml"},
        "ambient": "other",
        "temperature": {"role": "other", "unit": "degrees"},
        "waste": "outcome",
        "yield": "outcome",
    },
    "graph": ["{valve ambient} -> temperature", "{temperature dose} -> {yield waste}"],
    "reward": "yield - 0.2*waste",
    "limits": "2*valve + dose <= 6",
}


def pumps():
    random = np.random.default_rng(0)
    rows = UNITS * STEPS
    return pd.DataFrame(
        {
            "pump": np.repeat(np.arange(UNITS), STEPS),
            "hour": np.tile(np.arange(STEPS), UNITS),
            "wear": random.uniform(0, 60, rows).round(3),
            "maker": np.repeat(np.where(np.arange(UNITS) % 2, "B", "A"), STEPS),
            "shift": random.integers(0, 2, rows),
            "valve": random.choice(["shut", "half", "open"], rows),
            "oil": random.choice([0.0, 1.5, 3.0], rows),
            "note": "free text",
        }
    )


def experiments(rows=8):
    random = np.random.default_rng(1)
    valve, ambient = random.uniform(0, 1, rows), random.normal(16, 2, rows)
    dose = random.choice([0.0, 1.0, 2.0, 5.0], rows)
    temperature = ambient + 40 * valve
    return pd.DataFrame(
        {
            "valve": valve,
            "dose": dose,
            "ambient": ambient,
            "temperature": temperature,
            "waste": dose + random.normal(size=rows),
            "yield": 5 - (temperature - 35) ** 2 / 100 - (dose - 2) ** 2,
        }
    )


def _writer(folder, base):
    def write(**changes):
        parts = {key: each for key, each in {**base, **changes}.items() if each is not None}
        file = folder / "problem.yaml"
        file.write_text(yaml.safe_dump(parts, sort_keys=False))
        return file

    return write


@pytest.fixture
def sequence(tmp_path):
    """Writes the table of pumps, and the problem with changes; a part that is None is left out."""
    pumps().to_csv(tmp_path / "pumps.csv", index=False)
    return _writer(tmp_path, SEQUENCE)


@pytest.fixture
def trials(tmp_path):
    """Writes the experiments, and the problem with changes; a part that is None is left out."""
    experiments().to_csv(tmp_path / "experiments.csv", index=False)
    return _writer(tmp_path, TRIALS)


def changed(base, name, **about):
    """The variables of a problem file, with one of them changed; None leaves it out."""
    given = dict(base["variables"])
    return {"variables": {**given, name: {**({} if isinstance(given[name], str) else given[name]), **about}}}
