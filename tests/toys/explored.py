"""A small fitted model and the run folder that holds it, as the explorer reads them."""

import json
from functools import cache
from pathlib import Path

import pandas as pd
import torch
import yaml

import rehearsal_torch as rt
from rehearsal_torch.api.rehearsal_request import NewCases
from rehearsal_torch.checkpoint import save
from rehearsal_torch.round_record import Round
from tests.toys.linear_truth import chain

CASES = {"anna": 0.1, "bob": -0.4}
BOUNDS = {"a": (0.0, 0.5)}
# Of the second case.
PRESENT = {"a": 0.25, "m": 1.0}
TASK = chain().task.to_plain() | {
    "box": {"a": [-4.0, 4.0], "m": {"values": [-1.0, 0.0, 1.0]}},
    "candidates": [["a"], ["m"], ["a", "m"]],
}


@cache
def small_model():
    """CARE on 120 rows of a chain x -> a -> m -> y; a may be set beyond the rows, and m has levels."""
    return rt.learn(rows(), TASK, method="care")


def rows():
    table = chain().table(120)
    return pd.DataFrame(table.values.numpy(), columns=list(table.names)).assign(m=lambda them: them.m.round())


def run_folder(folder: Path, **config) -> Path:
    """Writes a run with two cases, the second with bounds of its own.

    Args:
        folder: Where to.
        config: Further keys of config.yaml.
    """
    model = small_model()
    folder.mkdir()
    surrogate = {**model.nodes["surrogate"], "task": model.task.to_plain()}
    save(model.surrogate, surrogate, folder / "checkpoint", {"data": model.card["data"]})
    settings = {"objective": model.nodes["objective"], "search": model.nodes["search"], "certificate": {}}
    (folder / "config.yaml").write_text(yaml.safe_dump({**settings, "seed": 0, **config}))
    card = {**model.card["data"], "caution": "these rows were simulated"}
    (folder / "data.yaml").write_text(yaml.safe_dump(card))
    record = {"kind": "rehearse", "choices": {"decision": "care"}, "script": "decide"}
    (folder / "run.json").write_text(json.dumps(record))
    given = torch.tensor([[value] for value in CASES.values()], dtype=torch.float64)
    problem = NewCases(model.task, given, list(CASES))
    lines = []
    for place, decision in enumerate(model.decide([{"x": value} for value in CASES.values()])):
        case = problem.case(place)
        line = json.loads(Round(place, case, decision, None, {}, kind="rehearse").line())
        lines.append(json.dumps(line | ({"bounds": BOUNDS, "present": PRESENT} if place else {})))
    (folder / "decisions.jsonl").write_text("\n".join(lines) + "\n")
    return folder
