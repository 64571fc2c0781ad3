"""Many rounds of one optimiser: ask, run, tell, with every trial in one file.

The experiment is a formula with two actions, a node between, and a known best reward of 1. The file must grow
linearly, and alone must give the same trials to a process that reads it at the end. Memory must be flat but
for the model of the trials: a matrix of pairs left behind by each of 300 rounds is 70 MiB. In `sessions`,
which begins anew every `FEW` rounds, the model is no larger at the end.
"""

import time
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.endurance.memory import growth, resident
from rehearsal_torch.api.optimiser import CausalOptimiser
from rehearsal_torch.search.trials.acquisition import AcquisitionSearch
from rehearsal_torch.surrogates.network.exogenous_model import ExogenousModel

# Rounds of a session, after which the next begins with no trials.
FEW = 40
TASK = {
    "graph": {"parents": {"X": ["a"], "Y": ["X", "b"]}},
    "actions": {"a": [0, 1], "b": [0, 2]},
    "reward": "Y",
}


def outcome(action: dict[str, float]) -> dict[str, float]:
    """The measured nodes of an experiment."""
    x = action["a"] ** 2
    return {"X": x, "Y": 1 - (x - 0.3) ** 2 - (action["b"] - 1.2) ** 2}


def optimiser(file: Path, task: Mapping[str, Any] = TASK) -> CausalOptimiser:
    """An optimiser that is quick enough for many rounds."""
    plain = partial(ExogenousModel, phi="homoskedastic", components=1)
    search = AcquisitionSearch(screened=64, starts=8, incumbents=3, steps=20)
    return CausalOptimiser(task, surrogate=plain, search=search, initial=6, file=file)


def sessions(count: int, file: Path) -> dict[str, Any]:
    """Runs one optimiser after the other, each for a few rounds with a file of its own, in one process.

    Args:
        count: The number of rounds, of all sessions together.
        file: The file of the trials, which every session begins anew.
    """
    file.parent.mkdir(parents=True, exist_ok=True)
    samples, begun = list[int](), time.perf_counter()
    while len(samples) < count:
        file.unlink(missing_ok=True)
        made = optimiser(file)
        for _ in range(min(FEW, count - len(samples))):
            (action,) = made.ask()
            made.tell(action, outcome(action))
            samples.append(resident())
    seconds = (time.perf_counter() - begun) / count
    return {"rounds": count, "trials": FEW, "memory": growth(samples), "seconds": round(seconds, 3)}


def rounds(count: int, file: Path) -> dict[str, Any]:
    """Runs an optimiser for some rounds.

    Args:
        count: The number of rounds.
        file: The file of the trials; one that exists is removed first, so that memory is that of all rounds.
    """
    file.parent.mkdir(parents=True, exist_ok=True)
    file.unlink(missing_ok=True)
    made = optimiser(file)
    samples, seconds, sizes = list[int](), list[float](), list[int]()
    for _ in range(count):
        began = time.perf_counter()
        (action,) = made.ask()
        made.tell(action, outcome(action))
        seconds.append(time.perf_counter() - began)
        samples.append(resident())
        sizes.append(file.stat().st_size)
    action, reward = made.recommend()
    again = CausalOptimiser.load(file)
    tenth = max(1, count // 10)
    return {
        "rounds": count,
        "memory": growth(samples),
        "bytes": sizes[-1],
        "bytes_per_round": round((sizes[-1] - sizes[0]) / max(1, count - 1), 1),
        "seconds_first": round(sum(seconds[6 : 6 + tenth]) / max(1, len(seconds[6 : 6 + tenth])), 3),
        "seconds_last": round(sum(seconds[-tenth:]) / tenth, 3),
        "read_again": again.trials == made.trials and len(again.trials) == count,
        "pending": len(made.pending),
        "true_reward": round(outcome(action)["Y"], 6),
        "claimed_reward": round(reward, 6),
        "left_over": sorted(path.name for path in file.parent.iterdir() if path != file),
    }
