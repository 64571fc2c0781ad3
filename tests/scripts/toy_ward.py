"""A data set of somebody else, in a folder of theirs: what `--config-dir` is for. Small, so that commands
take seconds."""

import os
import signal
import time

import torch

from rehearsal_torch.data.decision import EpisodeCase
from rehearsal_torch.data.episode import Episode, transitions
from rehearsal_torch.problems.problem import Problem

COLUMNS = ("SOFA", "lactate", "age", "mechvent", "dose")


class ToyWard(Problem):
    """Patients under a linear law, five steps each; thirds for training, validation and test. With `fatal`,
    the process is killed, as by a system without memory.
    """

    def __init__(self, patients=60, seed=0, split="test", pause=0.0, broken=False, fatal=False):
        if fatal:
            os.kill(os.getpid(), signal.SIGKILL)
        if broken:
            raise ValueError("expected a ward that is not broken; got broken=true: repair it")
        generator = torch.Generator().manual_seed(seed)
        episodes = [_stay(generator, f"patient-{number}") for number in range(patients)]
        third = patients // 3
        self.parts = {
            "test": episodes[:third],
            "validation": episodes[third : 2 * third],
            "train": episodes[2 * third :],
        }
        self.chosen, self.pause = self.parts[split], pause

    def observations(self):
        return transitions(self.parts["train"])

    def held_out(self):
        return transitions(self.parts["validation"])

    def count(self):
        return len(self.chosen)

    def case(self, index):
        time.sleep(self.pause)
        return EpisodeCase(self.chosen[index])

    def score(self, one_case, decision):
        return {"value": decision.value, "unknown": float("nan")}

    def card(self):
        return {"patients": {name: len(part) for name, part in self.parts.items()}, "columns": list(COLUMNS)}


def _stay(generator, identity):
    state, age, rows = torch.rand(2, generator=generator) + 1, torch.rand(1, generator=generator), []
    for _ in range(5):
        dose = torch.rand(1, generator=generator) * (torch.rand(1, generator=generator) > 0.3)
        rows.append(torch.cat([state, age, (torch.rand(1, generator=generator) > 0.5).float(), dose]))
        state = 0.8 * state - 0.2 * dose + 0.1 * torch.randn(2, generator=generator)
    return Episode(identity, COLUMNS, torch.stack(rows).to(torch.float64))
