"""Small run folders of each kind, with numbers that can be checked by hand, for the pages of runs."""

import json

from rehearsal_torch.run_folder import SECONDS, RunFolder
from tests.toys import trial_lines

CHANCE = "probability of a desired outcome"
GRAPH = {
    "cliques": [["score"], ["rate"], ["repaid"]],
    "edges": [["score", "rate"], ["score", "repaid"], ["rate", "repaid"]],
}
CARD = {
    "source": "table.csv",
    "rows": 400,
    "desired": 0.58,
    "context": ["score"],
    "box": {"rate": [0.0, 1.0]},
    "region": {"names": ["repaid"], "normals": [[-1.0]], "offsets": [-0.6]},
    "ranges": {"score": [0.0, 1.0], "rate": [-0.5, 1.5], "repaid": [0.25, 0.75]},
    "caution": "observational data",
    "caution: rate": "hardly varies",
    "fingerprint": "abc123",
}
RECORD = {
    "command": "rehearsal decide table.csv",
    "script": "decide",
    "overrides": [],
    "seed": 3,
    "versions": {"python": "3.12.1", "torch": "2.0"},
    "commit": "0123abcd",
    "choices": {"decision": "cme", "dataset": "table"},
    "data_fingerprint": "abc123",
}


def recommended(index=0, identity="ann", rate=0.3, point=0.8, before=0.6):
    """A recommendation with an interval, a sensitivity and support."""
    return {
        "index": index,
        "kind": "rehearse",
        "identity": identity,
        "given": {"score": 0.25},
        "status": "may",
        "alteration": {"rate": rate},
        "value": point,
        "estimate": {"point": point, "of": CHANCE, "lower": point - 0.1, "upper": 0.9, "level": 0.95},
        "baseline": {"point": before, "of": CHANCE},
        "sensitivity": {"tipping": 1.5, "basis": "interval", "yardstick": 2.25, "covariate": "age"},
        "findings": [{"kind": "claim", "text": "rate is far out"}],
        "reason": None,
        "trace": {"search": "toy", "support": 42.5, "distance": 0.75, "estimates": {"linear": 0.7}},
        "score": {},
    }


def refused(index=1, identity="bob"):
    """A refusal with the alteration that was withdrawn."""
    return {
        "index": index,
        "kind": "rehearse",
        "identity": identity,
        "given": {"score": 0.5},
        "status": "leave",
        "alteration": None,
        "value": 0.1,
        "estimate": {"point": 0.2, "of": CHANCE, "lower": 0.0, "upper": 0.7, "level": 0.9},
        "baseline": {"point": 0.5, "of": CHANCE},
        "findings": [],
        "reason": {"kind": "no_support", "text": "no support: only 0 rows are near"},
        "trace": {"search": "toy", "support": 0.0, "would_set": {"rate": 5.0}},
        "score": {},
    }


def alterations(path, lines=None, card=CARD, record=RECORD, config=None):
    """A run of alterations: one recommendation and one refusal, or other lines."""
    return written(
        path,
        [recommended(), refused()] if lines is None else lines,
        card,
        {"kind": "rehearse", **record},
        {"name": "loans", "seed": 3} if config is None else config,
    )


def trials(path, own=False):
    """A run of three trials in a world, or the next trial of a system of one's own."""
    card = {"rows": 6, "actions": {"a": [0.0, 1.0]}, "reward": {"weights": {"y": 1.0}}}
    record = RECORD | {"kind": "optimise", "choices": {"decision": "excbo", "dataset": "dropwave"}}
    if own:
        line = trial_lines.line(0, 2.0, 3.0) | {"score": {}, "reward": None}
        card |= {"best reward so far": 3.5, "at": {"a": 0.75}}
        return written(path, [line], card, record, {"name": "own_system"})
    lines = [
        trial_lines.line(index, *pair) for index, pair in enumerate(((2.0, 3.0), (0.5, 6.0), (4.0, 8.0)))
    ]
    trace = {"acquisition": 5.5, "predicted_reward": 4.5, "evaluations": 120}
    return written(path, [line | {"trace": trace} for line in lines], card, record, {"name": "cbo"})


def written(path, lines, card, record, config):
    """A run folder."""
    folder = RunFolder(path)
    folder.write_yaml("config.yaml", config)
    folder.write_json("run.json", record)
    folder.write_yaml("data.yaml", card)
    folder.write_json("status.json", {"state": "ok", "message": "decided", "overrides": [], "seconds": 1.0})
    folder.write_metrics([(line["index"], SECONDS, 0.5) for line in lines])
    kept = [{key: value for key, value in line.items() if key != "seconds"} for line in lines]
    folder.write("decisions.jsonl", "".join(json.dumps(line) + "\n" for line in kept))
    return path
